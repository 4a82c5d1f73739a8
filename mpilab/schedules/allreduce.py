"""The schedules of the allreduces, in the names of the C kernels `allreduce_<name>`.

P ranks, a message of m bytes, log is to base 2, p2 the largest power of two <= P, rest = P - p2;
segmented_ring has S segments in each of P blocks:

    algorithm           rounds                          messages               bytes
    recursive_doubling  log p2 (+2 if rest)             p2 log p2 + 2 rest     m a message
    ring                2 (P-1)                         2 P (P-1)              2 (P-1) m
    segmented_ring      ceil((P-1) S / 2) + P-1, S > 1  P (P-1) (S+1)          2 (P-1) m
    rabenseifner        2 log p2 (+2 if rest)           2 p2 log p2 + 2 rest   2 (P-1) m

The operation commutes: for one that does not, all kernels do what recursive_doubling does. One rank
alone sends nothing.
"""

from mpilab.counting import segments as count_segments
from mpilab.schedules import blocks, cutting
from mpilab.schedules.schedule import Transfer
from mpilab.schedules.steps import Plan

RING_SEGMENT = 65536  # SEGMENT_BYTES of src_c/allreduce/segmented_ring.c


def recursive_doubling(call):
    """Partners at distance 1, 2, 4 … swap all they have, and both reduce it.

    On other rank counts than powers of two, each odd one of the first 2 (P - p2) ranks hands its
    data to its left neighbour before, and gets the result from there.
    """
    core = blocks.largest_power_of_two(call.ranks)
    folded = call.ranks - core

    def rank(number):
        return 2 * number if number < folded else number + folded

    folding = [(2 * number + 1, 2 * number) for number in range(folded)]
    steps = [
        [Transfer(odd, even, (0,)) for odd, even in folding],
        *(
            [Transfer(rank(number), rank(number ^ distance), (0,)) for number in range(core)]
            for distance in blocks.powers_of_two(core)
        ),
        [Transfer(even, odd, (0,)) for odd, even in folding],
    ]
    return Plan(steps, call.sizes((call.count,)))


def ring(call):
    """Each of P blocks goes round and takes in every rank's part of it; then the blocks of the
    result go round."""
    steps = [_round(call.ranks, number, 1) for number in range(1, 2 * call.ranks - 1)]
    return Plan(steps, call.sizes(cutting.blocks(call.count, call.ranks)))


def segmented_ring(call):
    """The ring whose blocks go round in S segments, two of which are under way at any time, until
    they are reduced; the blocks of the result go round as a whole.

    Segment s of block b is block b S + s. Source: src_c/allreduce/segmented_ring.c.
    """
    ranks = call.ranks
    longest = -(-call.count // ranks)
    number = count_segments(longest, call.element_bytes, call.segment or RING_SEGMENT)
    exchanges = [
        [
            Transfer(rank, (rank + 1) % ranks, ((rank - lap + 1) % ranks * number + segment,))
            for rank in range(ranks)
        ]
        for lap in range(1, ranks)
        for segment in range(number)
    ]
    at_once = 1 if number == 1 else 2
    steps = [
        sum(exchanges[begin : begin + at_once], []) for begin in range(0, len(exchanges), at_once)
    ]
    steps += [_round(ranks, lap, number) for lap in range(ranks, 2 * ranks - 1)]
    elements = [
        piece
        for block in cutting.blocks(call.count, ranks)
        for piece in cutting.blocks(block, number)
    ]
    return Plan(steps, call.sizes(elements))


def rabenseifner(call):
    """Reduce-scatter by recursive halving, then allgather by recursive doubling; on other rank
    counts than powers of two, the rest hand their data over before and get the result at the end.
    """
    core = blocks.largest_power_of_two(call.ranks)
    steps = [
        *blocks.fold(call, core),
        *blocks.halve(call, core),
        *blocks.double(call, core),
        *blocks.unfold(call, core),
    ]
    return Plan(steps, call.sizes(cutting.blocks(call.count, core)))


def _round(ranks, number, segments):
    """In round `number` of a ring each rank passes on the block that it received last, all of its
    segments: in round 1 its own, in round P the one that is complete by then."""
    passed = [(rank - number + 1) % ranks for rank in range(ranks)]
    return [
        Transfer(
            rank,
            (rank + 1) % ranks,
            tuple(range(passed[rank] * segments, (passed[rank] + 1) * segments)),
        )
        for rank in range(ranks)
    ]


ALGORITHMS = {
    algorithm.__name__: algorithm
    for algorithm in (recursive_doubling, ring, segmented_ring, rabenseifner)
}
