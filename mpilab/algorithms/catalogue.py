"""The catalog of algorithms: the schedule and the cost of each algorithm of each collective."""

from typing import NamedTuple

from mpilab.algorithms import allgather, allreduce, barrier, bcast, gather, reduce, scatter
from mpilab.algorithms.schedule import Call, Plan, Schedule, counts, in_rounds
from mpilab.cases.case import collective_of
from mpilab.errors import InputError

_MODULES = {
    "allgather": allgather,
    "bcast": bcast,
    "gather": gather,
    "scatter": scatter,
    "reduce": reduce,
    "allreduce": allreduce,
    "barrier": barrier,
}
COLLECTIVES = tuple(_MODULES)
ROOTED = tuple(name for name in COLLECTIVES if collective_of(name).is_rooted)
BLOCKWISE = ("allgather", "gather", "scatter")  # count is that of one rank's block

# The tunables of each algorithm, as stated in its kernel's header.
_SEGMENTED = {
    "bcast": ("chain", "pipeline", "binary", "split_binary", "binomial", "knomial"),
    "gather": ("linear_sync",),
    "reduce": ("chain", "pipeline", "binary", "binomial", "in_order_binary"),
    "allreduce": ("segmented_ring",),
}
_FANOUT = {"bcast": ("chain", "binary"), "reduce": ("chain", "binary")}
_RADIX = {"bcast": ("knomial",)}


class Costs(NamedTuple):
    """Cost of an algorithm: rounds, messages, total bytes, bytes sent by the busiest rank."""

    rounds: int
    messages: int
    bytes: int
    max_bytes_sent: int


def algorithms(collective):
    """The names of our algorithms of a collective, in the order of the labs."""
    return tuple(_algorithms(collective))


def tunables(collective, algorithm):
    """Which of 'segment', 'fanout', 'radix' an algorithm uses, as a tuple."""
    _algorithm(collective, algorithm)
    known = {"segment": _SEGMENTED, "fanout": _FANOUT, "radix": _RADIX}
    return tuple(name for name, where in known.items() if algorithm in where.get(collective, ()))


def schedule_of(
    collective,
    algorithm,
    ranks,
    *,
    root=0,
    count=None,
    element_bytes=1,
    segment=0,
    fanout=0,
    radix=0,
):
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
    function = _algorithm(collective, algorithm)
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
    plan = _allgather(function, call) if collective == "allgather" else function(call)
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


def schedule_in_segments(collective, algorithm, ranks, segments=1, *, root=0, fanout=0, radix=0):
    """The Schedule of a message that an algorithm cuts into `segments` segments (1 or more).

    That is the number in the message, in a half of it (bcast split_binary), in a block (allreduce
    segmented_ring), or in a rank's block, whose first segment goes ahead of the others (gather
    linear_sync). An algorithm that does not cut ignores it. Other arguments and errors are those of
    `schedule_of`.
    """
    if segments < 1:
        raise InputError(f"segments={segments}: a message has at least one; give 1 or more")
    count, segment = None, 0
    if "segment" in tunables(collective, algorithm):
        cut = {"split_binary": 2, "segmented_ring": ranks}.get(algorithm, 1)
        count, segment = cut * segments, 1
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


def costs_of(collective, algorithm, ranks, bytes, segment=0, *, root=0, fanout=0, radix=0):
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


def _allgather(function, call):
    sizes = call.sizes((call.count,) * call.ranks)
    return Plan(function(call.ranks), sizes, tuple(range(call.ranks)))


def _algorithms(collective):
    if collective not in _MODULES:
        raise InputError(
            f"collective {collective!r} is unknown; take one of {', '.join(COLLECTIVES)}"
        )
    return _MODULES[collective].ALGORITHMS


def _algorithm(collective, algorithm):
    known = _algorithms(collective)
    if algorithm not in known:
        raise InputError(
            f"{algorithm!r} is not an algorithm of {collective}; take one of {', '.join(known)}"
        )
    return known[algorithm]


def _check(collective, algorithm, ranks, root, count, element_bytes, segment, fanout, radix):
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
