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
from mpilab.expected import COLLECTIVES
from mpilab.harness import Case
from mpilab.kernelrun import KernelRun, usual_count

# function name -> Built: the kernels of this notebook's %%kernel cells, newest first in use.
kernels = {}


def library_of(function):
    """The shared object with this kernel: the notebook's own first, then the kit's."""
    if function in kernels:
        return kernels[function].library
    collective, _, algorithm = function.partition("_")
    # Open MPI's own are COLLECTIVE_openmpi, all in one file.
    own = algorithm == "openmpi" and collective in COLLECTIVES
    if own or (ROOT / "src_c" / collective / f"{algorithm}.c").is_file():
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


def run(function, *, ranks=None, count=None, datatype="int", in_place=False, reversed=False,
        strict=False, seed=1, root=0, op="sum", segment=0, fanout=0, radix=0,
        shrink=True):  # fmt: skip
    """Run a kernel once on the active cluster, and record it; KernelRun.

    ranks, count   of the call; by default all ranks of the cluster, and 4 elements a block (of the
                   whole message in a bcast, reduce or allreduce; none in a barrier).
    datatype       byte, int, contiguous, vector, struct, shifted or mixed.
    strict         make buffered sends synchronous: a program that relies on buffering hangs.
    root           of a bcast, gather, scatter or reduce.
    op             of a reduce or allreduce: "sum", or "compose", which does not commute.
    segment, fanout, radix   what the algorithm is tuned by (segment in bytes); 0: its own default.
    shrink         after a wrong result, look for the smallest case that goes wrong as well.
    """
    ranks = active_cluster().n if ranks is None else ranks
    collective = function.partition("_")[0]
    if count is None:
        count = usual_count(collective)
    case = Case(collective, ranks, count, datatype, in_place, reversed, strict, seed,
                snapshots=True, root=root, op=op, segment=segment, fanout=fanout,
                radix=radix)  # fmt: skip
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
