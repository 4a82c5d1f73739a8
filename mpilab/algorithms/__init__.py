"""Algorithms: what each one sends, in which round, and what that costs, before anything runs.

In: a collective, an algorithm, a number of ranks. Out: its schedule, messages and costs, under the
names of our kernels or Open MPI's; the functions here find algorithms by name.

allgather, allreduce, barrier, bcast, gather, reduce, scatter
              a module for each collective contains the whole Python description of its algorithms:
              schedule, cost, tunables, color and marker
trees         the trees and blocks from which they are built
algorithm     the parts of an algorithm, its schedule, and the messages in it
formula       evaluates the cost formulas in the headers of the kernels
requests      the file requests of a read
remapping     orders for run-time rank remapping, and remapped schedules
"""

from types import ModuleType
from typing import NamedTuple

from mpilab.algorithms import allgather, allreduce, barrier, bcast, gather, reduce, scatter
from mpilab.algorithms.algorithm import (
    PARTS,
    Algorithm,
    Call,
    CostFunction,
    Counts,
    Look,
    Schedule,
    Transfer,
    counts,
    holdings,
    in_rounds,
    message_bytes,
    parts,
)
from mpilab.cases.case import collective_of
from mpilab.errors import InputError
from mpilab.util.text import suggestion

__all__ = [
    "ALGORITHMS",
    "BLOCKWISE",
    "COLLECTIVES",
    "OPENMPI_COSTS",
    "ROOTED",
    "Costs",
    "Counts",
    "Schedule",
    "Transfer",
    "algorithm_of",
    "algorithms",
    "costs_of",
    "counts",
    "holdings",
    "looks",
    "message_bytes",
    "ours_of",
    "parts",
    "schedule_in_segments",
    "schedule_of",
    "tunables",
]

# To add a collective, add its module; to add an algorithm, add it to ALGORITHMS of its module.
_MODULES: dict[str, ModuleType] = {
    "allgather": allgather,
    "bcast": bcast,
    "gather": gather,
    "scatter": scatter,
    "reduce": reduce,
    "allreduce": allreduce,
    "barrier": barrier,
}
ALGORITHMS: dict[str, dict[str, Algorithm]] = {
    collective: module.ALGORITHMS for collective, module in _MODULES.items()
}
COLLECTIVES = tuple(ALGORITHMS)
ROOTED = tuple(name for name in COLLECTIVES if collective_of(name).is_rooted)
BLOCKWISE = ("allgather", "gather", "scatter")  # count is that of one rank's block

# The cost functions of Open MPI 5's algorithms, under its names, which are those that
# `ompi_info --param coll tuned -l 9` prints. Left out, because they have no separate formula:
# "ignore" or "default" (a choice among the others), and allreduce "nonoverlapping" (whatever reduce
# and bcast choose).
OPENMPI_COSTS: dict[str, dict[str, CostFunction]] = {
    collective: {one.openmpi: one.cost for one in module.ALGORITHMS.values() if one.openmpi}
    | getattr(module, "OPENMPI_ONLY", {})
    for collective, module in _MODULES.items()
}


def looks() -> dict[str, Look]:
    """The Look of each algorithm, by its name and by Open MPI's, whatever the collective."""
    found = {}
    for known in ALGORITHMS.values():
        for name, algorithm in known.items():
            found[name] = algorithm.look
            if algorithm.openmpi:
                found[algorithm.openmpi] = algorithm.look
    return found


class Costs(NamedTuple):
    """Cost of an algorithm: rounds, messages, total bytes, bytes sent by the busiest rank."""

    rounds: int
    messages: int
    bytes: int
    max_bytes_sent: int


def algorithms(collective: str) -> tuple[str, ...]:
    """The names of our algorithms of a collective, in the order of the labs."""
    if collective not in ALGORITHMS:
        raise InputError(
            f"collective {collective!r} is unknown; use one of {', '.join(COLLECTIVES)}"
            f"{suggestion(collective, COLLECTIVES)}"
        )
    return tuple(ALGORITHMS[collective])


def algorithm_of(collective: str, algorithm: str) -> Algorithm:
    """The Algorithm of these names; InputError, listing the known names, if there is none."""
    known = algorithms(collective)
    if algorithm not in known:
        raise InputError(
            f"{algorithm!r} is not an algorithm of {collective}; use one of {', '.join(known)}"
            f"{suggestion(algorithm, known)}"
        )
    return ALGORITHMS[collective][algorithm]


def ours_of(collective: str, openmpi: str) -> str:
    """Our name of an algorithm of Open MPI's; "" if we don't have it."""
    known = ALGORITHMS[collective].items()
    return next((name for name, algorithm in known if algorithm.openmpi == openmpi), "")


def tunables(collective: str, algorithm: str) -> tuple[str, ...]:
    """Which of 'segment', 'fanout', 'radix' an algorithm uses."""
    return algorithm_of(collective, algorithm).tunables


def schedule_of(
    collective: str,
    algorithm: str,
    ranks: int,
    *,
    root: int = 0,
    count: int | None = None,
    element_bytes: int = 1,
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
) -> Schedule:
    """The Schedule of our kernel `<collective>_<algorithm>`, message by message, round by round.

    ranks          P, 1 or more.
    root           of bcast, gather, scatter and reduce; 0 for the others, which have none.
    count          elements of a block (allgather, gather, scatter) or of the whole message (bcast,
                   reduce, allreduce); unused in a barrier. None: one element per rank, so that no
                   block is empty.
    element_bytes  bytes of one element.
    segment, fanout, radix   as in mpilab_tuning of src_c/include/mpilab.h, the segment in bytes; 0
                   is the algorithm's default. Algorithms ignore tunables that they do not have
                   (see `tunables`).

    The round of a message is its depth in happens-before order, as in a recording of the kernel.
    Raises InputError for an unknown name or an invalid number.
    """
    plan_of = algorithm_of(collective, algorithm).plan
    if count is None:
        count = 1 if collective in BLOCKWISE else ranks
    _check(collective, algorithm, ranks, root, count, element_bytes, segment, fanout, radix)
    call = Call(
        int(ranks),
        int(root),
        0 if collective == "barrier" else int(count),
        int(element_bytes),
        int(segment),
        int(fanout),
        int(radix),
    )
    plan = plan_of(call)
    return Schedule(
        algorithm,
        call.ranks,
        in_rounds(call.ranks, plan.steps),
        plan.sizes,
        collective,
        call.root,
        plan.owners,
        plan.names or None,
    )


def schedule_in_segments(
    collective: str,
    algorithm: str,
    ranks: int,
    segments: int = 1,
    *,
    root: int = 0,
    fanout: int = 0,
    radix: int = 0,
) -> Schedule:
    """The Schedule of a message that an algorithm cuts into `segments` segments (1 or more).

    That is the number in the message, in a half of it (bcast split_binary), in a block (allreduce
    segmented_ring), or in a rank's block, whose first segment precedes the others (gather
    linear_sync). An algorithm that does not segment ignores it. Other arguments and errors are
    those of `schedule_of`.
    """
    if segments < 1:
        raise InputError(f"segments={segments}: a message has at least one; give 1 or more")
    count, segment = None, 0
    if cut := algorithm_of(collective, algorithm).cut:
        count, segment = PARTS[cut](ranks) * segments, 1
    return schedule_of(
        collective,
        algorithm,
        ranks,
        root=root,
        count=count,
        segment=segment,
        fanout=fanout,
        radix=radix,
    )


def costs_of(
    collective: str,
    algorithm: str,
    ranks: int,
    bytes: int,
    segment: int = 0,
    *,
    root: int = 0,
    fanout: int = 0,
    radix: int = 0,
) -> Costs:
    """The Costs of an algorithm, counted from its schedule.

    bytes   m, of a block (allgather, gather, scatter) or of the whole message; elements have one
            byte, so that any number of segments and blocks is possible.

    Other arguments and errors are those of `schedule_of`.
    """
    counted = counts(
        schedule_of(
            collective,
            algorithm,
            ranks,
            root=root,
            count=bytes,
            segment=segment,
            fanout=fanout,
            radix=radix,
        )
    )
    return Costs(counted.rounds, counted.messages, counted.total_bytes, counted.max_bytes_sent)


def _check(
    collective: str,
    algorithm: str,
    ranks: int,
    root: int,
    count: int,
    element_bytes: int,
    segment: int,
    fanout: int,
    radix: int,
) -> None:
    least = {
        "ranks": (ranks, 1),
        "root": (root, 0),
        "count": (count, 0),
        "element_bytes": (element_bytes, 1),
        "segment": (segment, 0),
        "fanout": (fanout, 0),
        "radix": (radix, 0),
    }
    for name, (value, smallest) in least.items():
        if value < smallest:
            raise InputError(
                f"{name}={value} for the schedule of {collective} {algorithm}: give {smallest} or "
                "more"
            )
    if root >= (ranks if collective in ROOTED else 1):
        remedy = f"0 to {ranks - 1}" if collective in ROOTED else "0: it has no root"
        raise InputError(
            f"root={root} for the schedule of {collective} {algorithm} on {ranks} ranks: give "
            f"{remedy}"
        )
