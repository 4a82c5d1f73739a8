"""One simulated run of a kernel, shown as a real one."""

from mpilab import session
from mpilab.build import ROOT
from mpilab.errors import InputError
from mpilab.harness import Case
from mpilab.kernelrun import KernelRun, usual
from mpilab.orders import places_of
from mpilab.simulated.build import kernels
from mpilab.simulated.platforms import platform as platform_of
from mpilab.simulated.run import simulate
from mpilab.simulated.standing import words


def run(function, *, platform=None, ranks=None, count=None, datatype=None, order="seq", seed=1,
        library=None, places=(), **more):  # fmt: skip
    """Simulate a kernel once and return its KernelRun, with simulated times.

    function   name of the kernel: of a %%kernel cell of this notebook, one of the kit's, or of
               `library` (mpilab.simulated.build.build).
    platform   a name such as "fat-tree-16x8", also with an order ("fat-tree-16x8 rr", see
               mpilab.simulated.standing), a Platform or a Description; default: one host.
    ranks      default: every slot of the platform, as many as there are places, or 4. More than
               slots where all hosts take as many.
    places     in place of a platform: as in mpilab.run.
    count, …   as in mpilab.Case; `order` and `seed` as in mpilab.simulated.simulate.
    """
    collective = function.partition("_")[0]
    if library is None:
        library = session.simulated_library(function)
    if library is None:
        check_kernel(function)
        library = kernels()
    places = places_of(places) if isinstance(places, str) else tuple(places)
    if isinstance(platform, str) and " " in platform.strip():
        platform, order, seed = words(platform)
    if ranks is None:
        slots = len(order) if not isinstance(order, str) else len(places) or 4
        ranks = slots if platform is None else platform_of(platform).description.slots
    count, datatype, _ = usual(collective, count, datatype)
    case = Case(collective, ranks, count, datatype, places=places, **more)
    (result,) = simulate(library, function, [case], platform, order=order, seed=seed)
    return KernelRun(function, result)


def check_kernel(function):
    """InputError, with the names that there are, unless `function` is a kernel of the kit."""
    from mpilab.promises import kernels_of

    collective = function.partition("_")[0]
    auto = [f"{collective}_auto"] if (ROOT / "src_c" / collective / "auto.c").exists() else []
    known = [*kernels_of(collective), *auto, f"{collective}_openmpi"]
    if function not in known:
        raise InputError(
            f"kernel {function!r}: the kit has none of that name; it has {', '.join(known)}. "
            "One of your own has to be in a file or library that you name"
        )
