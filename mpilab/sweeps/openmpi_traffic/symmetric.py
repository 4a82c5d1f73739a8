"""What Open MPI's barrier, allgather and allreduce send, algorithm by algorithm.

As in rooted.py: a Shape in, the messages or None out; the names are Open MPI's own. Where the
schedule is that of our kernel, it is taken from mpilab.schedules.
"""

from mpilab.schedules import schedule_of
from mpilab.schedules.blocks import largest_power_of_two as core_of
from mpilab.sweeps.openmpi_traffic import rooted
from mpilab.sweeps.openmpi_traffic.blocks import fold, halving, left_rank, windows
from mpilab.sweeps.openmpi_traffic.shape import spread


def _as_ours(collective, algorithm, shape):
    """The messages of our kernel: for each, as many elements as its blocks have."""
    plan = schedule_of(collective, algorithm, shape.ranks)
    return [
        (transfer.source, transfer.dest, len(transfer.blocks) * shape.count)
        for transfer in plan.transfers()
    ]


# --- barrier: the count is 0


def barrier_linear(shape):
    """As ours."""
    return _as_ours("barrier", "linear", shape)


def barrier_double_ring(shape):
    """As ours."""
    return _as_ours("barrier", "double_ring", shape)


def barrier_recursive_doubling(shape):
    """As ours."""
    return _as_ours("barrier", "recursive_doubling", shape)


def barrier_bruck(shape):
    """As ours, the dissemination barrier."""
    return _as_ours("barrier", "dissemination", shape)


def barrier_two_proc(shape):
    """Two ranks swap; None for any other number of them."""
    return [(0, 1, 0), (1, 0, 0)] if shape.ranks == 2 else None


def barrier_tree(shape):
    """As ours."""
    return _as_ours("barrier", "tree", shape)


# --- allgather


def allgather_bruck(shape):
    """As ours."""
    return _as_ours("allgather", "bruck", shape)


def allgather_recursive_doubling(shape):
    """As ours; None for other than a power of two (Open MPI then runs bruck)."""
    if core_of(shape.ranks) != shape.ranks:
        return None
    return _as_ours("allgather", "recursive_doubling", shape)


def allgather_ring(shape):
    """As ours."""
    return _as_ours("allgather", "ring", shape)


def allgather_neighbor(shape):
    """As ours; None for an odd number of ranks (Open MPI then runs the ring)."""
    return _as_ours("allgather", "neighbor_exchange", shape) if shape.ranks % 2 == 0 else None


def allgather_two_proc(shape):
    """Two ranks swap their blocks; None for any other number of them."""
    return [(0, 1, shape.count), (1, 0, shape.count)] if shape.ranks == 2 else None


def allgather_sparbit(shape):
    """As many blocks as in bruck's algorithm, at distances from the largest to 1, one by one.

    Source: Loch, Koslovski, "Sparbit: a new logarithmic-cost and data locality-aware MPI Allgather
    algorithm", SBAC-PAD 2021.
    """
    ranks, held, messages = shape.ranks, 1, []
    for step in reversed(range((ranks - 1).bit_length())):
        distance = 1 << step
        # A rank holds every (2 distance)-th block. One of them would come twice, unless the blocks
        # at this distance close the circle of ranks.
        sent = -(-ranks // distance) - held
        messages += [(v, (v + distance) % ranks, shape.count) for v in range(ranks)] * sent
        held += sent
    return messages


def allgather_linear(shape):
    """A gather to rank 0 and a bcast from there, each as Open MPI decides: all that this may be."""
    gathered = _known(
        shape, rooted.gather_linear, rooted.gather_binomial, rooted.gather_linear_sync
    )
    whole = _with_count(shape, shape.count * shape.ranks)
    return _pairs(gathered, _known(whole, *_BCASTS))


# --- allreduce

_BCASTS = (
    rooted.bcast_linear, rooted.bcast_chain, rooted.bcast_pipeline, rooted.bcast_split_binary,
    rooted.bcast_binary, rooted.bcast_binomial, rooted.bcast_knomial,
    rooted.bcast_scatter_allgather, rooted.bcast_scatter_allgather_ring,
)  # fmt: skip
_REDUCES = (
    rooted.reduce_linear, rooted.reduce_chain, rooted.reduce_pipeline, rooted.reduce_binary,
    rooted.reduce_binomial, rooted.reduce_in_order_binary, rooted.reduce_rabenseifner,
)  # fmt: skip


def _with_count(shape, count):
    return shape.__class__(shape.ranks, count, shape.element_bytes)


def _known(shape, *algorithms):
    plain = _with_count(shape, shape.count)
    return [messages for algorithm in algorithms if (messages := algorithm(plain)) is not None]


def _pairs(firsts, seconds):
    return [first + second for first in firsts for second in seconds]


def allreduce_linear(shape):
    """A linear reduce to rank 0, and a linear bcast from there."""
    to_0 = [(v, 0, shape.count) for v in range(1, shape.ranks)]
    return to_0 + [(0, v, shape.count) for v in range(1, shape.ranks)]


def allreduce_nonoverlapping(shape):
    """A reduce and a bcast, each as Open MPI decides by itself: all that this may be."""
    return _pairs(_known(shape, *_REDUCES), _known(shape, *_BCASTS))


def allreduce_recursive_doubling(shape):
    """Partners at distance 1, 2, 4 … swap all; before, some even ranks hand theirs to the odd."""
    core, messages = core_of(shape.ranks), []
    rest = shape.ranks - core
    for even in range(0, 2 * rest, 2):
        messages += [(even, even + 1, shape.count), (even + 1, even, shape.count)]

    def rank(new):
        return 2 * new + 1 if new < rest else new + rest

    for step in range(core.bit_length() - 1):
        messages += [(rank(new), rank(new ^ 1 << step), shape.count) for new in range(core)]
    return messages


def allreduce_ring(shape):
    """Twice P-1 steps around the ring; None with less than an element for each rank."""
    return _ring(shape, 1) if shape.count >= shape.ranks else None


def allreduce_segmented_ring(shape):
    """As the ring, but on the first way round every block goes in segments.

    None where the message is not larger than a segment for each rank (then it is the ring).
    """
    ranks, count, round_trip = shape.ranks, shape.count, shape.ranks * shape.piece()
    if count < round_trip:
        return None
    phases, rest = divmod(count, round_trip)
    return _ring(shape, phases + (rest >= ranks and rest > round_trip // 2))


def _ring(shape, phases):
    ranks, blocks, messages = shape.ranks, spread(shape.count, shape.ranks), []
    for v in range(ranks):
        right = (v + 1) % ranks
        for step in range(ranks - 1):
            messages += [(v, right, part) for part in spread(blocks[(v - step) % ranks], phases)]
            messages.append((v, right, blocks[(v + 1 - step) % ranks]))
    return messages


def allreduce_rabenseifner(shape):
    """Recursive halving and doubling; ranks that were folded away get the result at the end.

    None with less elements than ranks that halve.
    """
    if shape.count < core_of(shape.ranks):
        return None
    kept, _ = windows(shape)
    messages = halving(shape)
    for step, row in enumerate(kept):
        messages += [
            (left_rank(shape, new), left_rank(shape, new ^ 1 << step), elements)
            for new, elements in enumerate(row)
        ]
    folded = len(fold(shape)) // 3
    return messages + [(2 * pair, 2 * pair + 1, shape.count) for pair in range(folded)]
