"""What a notebook calls: run a kernel on the active cluster.

import mpilab
cluster = mpilab.Cluster(4).start()
mpilab.run("allgather_ring", ranks=4, count=2)

or, to see what crosses between the nodes and groups of a cluster,

cluster = mpilab.Cluster(hosts="two-groups", order="rr").start()
mpilab.run("bcast_node_group")
"""

from functools import cache

from mpilab import interactive, launch
from mpilab.build import KERNELS, ROOT, need
from mpilab.cluster.engines import active_cluster
from mpilab.diagnosis.model import WRONG_RESULT
from mpilab.diagnosis.shrink import smallest
from mpilab.errors import ClusterError, InputError
from mpilab.expected import COLLECTIVES
from mpilab.harness import Case
from mpilab.kernelrun import KernelRun, usual
from mpilab.orders import places_of

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


@cache
def _simulated(built):
    from mpilab.simulated.build import build

    return build(built.source, built.library.parent, stem=f"{built.library.stem}-simulated").library


def simulated_library(function):
    """The program for SimGrid of a kernel of this notebook's %%kernel cells, built when it is first
    asked for; None where no cell defines it. Raises BuildError, and SetupError without SimGrid."""
    return _simulated(kernels[function]) if function in kernels else None


def is_sanitized(function):
    """Was this kernel compiled by `%%kernel --sanitize`?"""
    return function in kernels and kernels[function].sanitized


def run_cases(function, cases, **options):
    """Run cases of a kernel; list of Result (options: see mpilab.interactive.run_cases).

    They run on the active cluster, or with an mpirun of their own (on the same hosts) if the kernel
    was compiled with sanitizers: these have to be in a process from its beginning.
    """
    library = library_of(function)
    if is_sanitized(function):
        return launch.run_cases(library, function, cases, sanitize=True, **_hosts(), **options)
    return interactive.run_cases(active_cluster(), library, function, cases, **options)


def _hosts():
    """Which hosts the active cluster is on, for mpilab.launch; {} without one."""
    try:
        cluster = active_cluster()
    except ClusterError:
        return {}
    return {"hosts": cluster.hosts, "names": cluster.names} if cluster.hosts else {}


def run(function, *, ranks=None, count=None, datatype=None, in_place=False, reversed=False,
        strict=False, seed=1, root=0, op="sum", segment=0, fanout=0, radix=0, places=(),
        budget=0, pattern="even", matrix="", buffer=0, aggregators=0, shrink=True):  # fmt: skip
    """Run a kernel once on the active cluster, and record it; KernelRun.

    ranks, count   of the call; by default all ranks of the cluster, and 4 elements a block (of the
                   whole message in a bcast, reduce or allreduce; none in a barrier).
    datatype       byte, int (the default), contiguous, vector, struct, shifted or mixed; of a read
                   double, and no other.
    strict         make buffered sends synchronous: a program that relies on buffering hangs.
    root           of a bcast, gather, scatter or reduce.
    op             of a reduce or allreduce: "sum", or "compose", which does not commute.
    segment, fanout, radix   what the algorithm is tuned by (segment in bytes); 0: its own default.
    places         where the ranks pretend to be: a text such as "2x2x2 rr" (see mpilab.orders), or
                   the mpilab.places.Place of each rank; they tell how many ranks there are.
    budget         bytes that a rank may hold of other ranks' data; 0: the algorithm's own default.
    pattern        of an alltoallv: "even", "ragged" or "sparse", see mpilab.exchange.
    matrix         of a read: "12x12", or "12x10 by 4x2 on 2x3", see mpilab.matrices.distribution.
    buffer, aggregators   of a read: bytes that one request is for at most, and ranks that read for
                   all; 0: the algorithm's own default.
    shrink         after a wrong result, look for the smallest case that goes wrong as well.
    """
    places = places_of(places) if isinstance(places, str) else tuple(places)
    if ranks is None:
        ranks = len(places) or active_cluster().n
    collective = function.partition("_")[0]
    count, datatype, matrix = usual(collective, count, datatype, matrix)
    case = Case(collective, ranks, count, datatype, in_place, reversed, strict, seed,
                snapshots=True, root=root, op=op, segment=segment, fanout=fanout,
                radix=radix, places=places, budget=budget, pattern=pattern, matrix=matrix,
                buffer=buffer, aggregators=aggregators)  # fmt: skip
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
