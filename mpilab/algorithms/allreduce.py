"""The allreduce algorithms, named after the C kernels `allreduce_<name>`: schedules and costs.

P ranks, a message of m bytes, log to base 2, p2 the largest power of two <= P, rest = P - p2;
segmented_ring cuts each of P blocks into S segments:

    algorithm           rounds                          messages               bytes
    recursive_doubling  log p2 (+2 if rest)             p2 log p2 + 2 rest     m per message
    ring                2 (P-1)                         2 P (P-1)              2 (P-1) m
    segmented_ring      ceil((P-1) S / 2) + P-1, S > 1  P (P-1) (S+1)          2 (P-1) m
    rabenseifner        2 log p2 (+2 if rest)           2 p2 log p2 + 2 rest   2 (P-1) m

The operation is commutative; for one that is not, all kernels fall back to recursive_doubling. A
single rank sends nothing. The time to reduce a byte is in the β that is fitted to runs of the
algorithm.
"""

from mpilab.algorithms import algorithm, bcast, reduce, trees
from mpilab.algorithms.algorithm import (
    BROWN,
    GREEN,
    OLIVE,
    PURPLE,
    Algorithm,
    Call,
    Coefficients,
    CostFunction,
    ModelCall,
    Plan,
    Step,
    Transfer,
    table,
)
from mpilab.algorithms.formula import floor_log2
from mpilab.algorithms.formula import segments as count_segments

RING_SEGMENT = 65536  # SEGMENT_BYTES of src_c/allreduce/segmented_ring.c


def recursive_doubling(call: Call) -> Plan:
    """Partners at distance 1, 2, 4 … exchange everything they have, and both reduce it.

    If P is not a power of two, each odd rank of the first 2 (P - p2) sends its data to its left
    neighbor before, and gets the result from it after.
    """
    core = trees.largest_power_of_two(call.ranks)
    folded = call.ranks - core

    def rank(number: int) -> int:
        return 2 * number if number < folded else number + folded

    folding = [(2 * number + 1, 2 * number) for number in range(folded)]
    steps = [
        [Transfer(odd, even, (0,)) for odd, even in folding],
        *(
            [Transfer(rank(number), rank(number ^ distance), (0,)) for number in range(core)]
            for distance in trees.powers_of_two(core)
        ),
        [Transfer(even, odd, (0,)) for odd, even in folding],
    ]
    return Plan(steps, call.sizes((call.count,)))


def recursive_doubling_cost(call: ModelCall) -> Coefficients:
    """log2 C (α + mβ), and 2 (α + mβ) to fold and unfold if P is not C, a power of two.

    Source: Thakur, Rabenseifner, Gropp (2005), section 4.5.
    """
    steps = floor_log2(call.ranks)
    rounds = steps + 2 * (call.ranks != 1 << steps)
    return rounds, rounds * call.bytes


def ring(call: Call) -> Plan:
    """Each of P blocks circulates and is reduced on its way; then the result's blocks circulate."""
    steps = [_round(call.ranks, number, 1) for number in range(1, 2 * call.ranks - 1)]
    return Plan(steps, call.sizes(algorithm.blocks(call.count, call.ranks)))


def ring_cost(call: ModelCall) -> Coefficients:
    """2 (P-1) (α + m/P β).

    Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    JPDC 69(2), 2009.
    """
    rounds = 2 * (call.ranks - 1)
    return rounds, rounds / call.ranks * call.bytes


def segmented_ring(call: Call) -> Plan:
    """The ring with each block in S segments, two of which are in flight at any time.

    Blocks circulate in segments until they are reduced; the blocks of the result circulate whole.
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
        for block in algorithm.blocks(call.count, ranks)
        for piece in algorithm.blocks(block, number)
    ]
    return Plan(steps, call.sizes(elements))


def segmented_ring_cost(call: ModelCall) -> Coefficients:
    """(P-1)(S + 1) α + 2 (P-1)/P mβ with S segments per block.

    This model has only α and β, so segments only add cost; what they actually hide is the time to
    reduce. Source: Open MPI 5, coll/base, "ring_segmented".
    """
    others, block = call.ranks - 1, call.bytes / call.ranks
    segments, _ = call.cut(block, RING_SEGMENT)
    return others * (segments + 1), 2 * others * block


def rabenseifner(call: Call) -> Plan:
    """Reduce-scatter by recursive halving, then allgather by recursive doubling.

    If P is not a power of two, the surplus ranks send their data before and get the result after.
    """
    core = trees.largest_power_of_two(call.ranks)
    steps = [
        *trees.fold(call, core),
        *trees.halve(call, core),
        *trees.double(call, core),
        *trees.unfold(call, core),
    ]
    return Plan(steps, call.sizes(algorithm.blocks(call.count, core)))


def rabenseifner_cost(call: ModelCall) -> Coefficients:
    """2 log2 C α + 2 (C-1)/C mβ, and 2 (α + mβ) to fold and unfold if P is not C, a power of two.

    Source: Rabenseifner (2004); Thakur, Rabenseifner, Gropp (2005), section 4.5.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks != 1 << steps
    return 2 * (steps + rest), 2 * (1 - 0.5**steps + rest) * call.bytes


def _round(ranks: int, number: int, segments: int) -> Step:
    """The Transfers of round `number` of a ring: each rank passes on the block it received last.

    All segments of the block go together. In round 1, it is the rank's own block; in round P, the
    one that is complete by then.
    """
    passed = [(rank - number + 1) % ranks for rank in range(ranks)]
    return [
        Transfer(
            rank,
            (rank + 1) % ranks,
            tuple(range(passed[rank] * segments, (passed[rank] + 1) * segments)),
        )
        for rank in range(ranks)
    ]


def basic_linear_cost(call: ModelCall) -> Coefficients:
    """Linear reduction, then linear broadcast. Source: Open MPI 5, coll/base, "basic_linear"."""
    up, down = reduce.linear_cost(call), bcast.linear_cost(call)
    return up[0] + down[0], up[1] + down[1]


ALGORITHMS = table(
    Algorithm(recursive_doubling, recursive_doubling_cost, PURPLE, openmpi="recursive_doubling"),
    Algorithm(ring, ring_cost, GREEN, openmpi="ring"),
    Algorithm(segmented_ring, segmented_ring_cost, OLIVE, "m/P", openmpi="segmented_ring"),
    Algorithm(rabenseifner, rabenseifner_cost, BROWN, openmpi="rabenseifner"),
)
# Not ours. Left out is "nonoverlapping": whatever Open MPI's reduce and bcast choose.
OPENMPI_ONLY: dict[str, CostFunction] = {"basic_linear": basic_linear_cost}
