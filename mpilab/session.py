"""What a notebook calls: run a kernel on the active cluster.

import mpilab
cluster = mpilab.Cluster(4).start()
mpilab.run("allgather_ring", ranks=4, count=2)
"""

from mpilab import interactive, launch
from mpilab.build import KERNELS, ROOT, need
from mpilab.cluster.engines import active_cluster
from mpilab.diagnosis.model import WRONG_RESULT
from mpilab.diagnosis.shrink import smallest
from mpilab.errors import InputError
from mpilab.harness import Case
from mpilab.kernelrun import KernelRun

# function name -> Built: the kernels of this notebook's %%kernel cells, newest first in use.
kernels = {}


def library_of(function):
    """The shared object with this kernel: the notebook's own first, then the kit's."""
    if function in kernels:
        return kernels[function].library
    collective, _, algorithm = function.partition("_")
    if (ROOT / "src_c" / collective / f"{algorithm}.c").is_file():
        return need(KERNELS)
    raise InputError(
        f"kernel {function!r}: neither a %%kernel cell of this notebook nor the kit defines it; "
        "run the cell that does, and mind the spelling"
    )


def is_sanitized(function):
    """Was this kernel compiled by `%%kernel --sanitize`?"""
    return function in kernels and kernels[function].sanitized


def run_cases(function, cases, **options):
    """Run cases of a kernel; list of Result (options: see mpilab.interactive.run_cases).

    They run on the active cluster, or with an mpirun of their own if the kernel was compiled with
    sanitizers: these have to be in a process from its beginning.
    """
    library = library_of(function)
    if is_sanitized(function):
        return launch.run_cases(library, function, cases, sanitize=True, **options)
    return interactive.run_cases(active_cluster(), library, function, cases, **options)


def run(function, *, ranks=None, count=4, datatype="int", in_place=False, reversed=False,
        strict=False, seed=1, shrink=True):  # fmt: skip
    """Run a kernel once on the active cluster, and record it; KernelRun.

    ranks, count   of the call; by default all ranks of the cluster and 4 elements a block.
    datatype       byte, int, contiguous, vector, struct, shifted or mixed.
    strict         make buffered sends synchronous: a program that relies on buffering hangs.
    shrink         after a wrong result, look for the smallest case that goes wrong as well.
    """
    ranks = active_cluster().n if ranks is None else ranks
    case = Case(function.partition("_")[0], ranks, count, datatype, in_place, reversed, strict,
                seed, snapshots=True)  # fmt: skip
    done = _run(function, case)
    if shrink and done.diagnosis is not None and done.diagnosis.kind == WRONG_RESULT:
        least, tried = smallest(case, lambda smaller: _is_wrong(function, smaller))
        done = KernelRun(function, done.result, least, tried)
    return done


def _run(function, case):
    (result,) = run_cases(function, [case])
    return KernelRun(function, result)


def _is_wrong(function, case):
    diagnosis = _run(function, case).diagnosis
    return diagnosis is not None and diagnosis.kind == WRONG_RESULT
