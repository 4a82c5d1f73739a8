"""The reduce algorithms, named after the C kernels `reduce_<name>`: schedules and costs.

P ranks, a message of m bytes in S segments, log to base 2, p2 the largest power of two <= P,
rest = P - p2, K the fan-out:

    algorithm        rounds                                  messages          bytes
    linear           1                                       P-1               (P-1) m
    chain            ceil((P-1)/K) + S-1                     (P-1) S           (P-1) m
    pipeline         P-2 + S                                 (P-1) S           (P-1) m
    binary           depth of the K-ary tree + S-1           (P-1) S           (P-1) m
    binomial         floor(log P) + S-1                      (P-1) S           (P-1) m
    in_order_binary  ceil(log(max(root, P-1-root)+1)) + S-1  (P-1) S           (P-1) m
    rabenseifner     2 log p2 (+1 if rest)                   P-1 + p2 log p2   about 2 (P-1) m

Every message carries a partial result; a block is a part of the message that is reduced separately.
The operation is commutative; for one that is not, the kernels chain, pipeline, binary, binomial and
rabenseifner fall back to in_order_binary. A single rank sends nothing.

Costs are those of a reduction to rank 0. A rank receives its children's messages one by one (at
most two receives are open), so γ(P) does not appear. The time to reduce a byte is not separate: it
is part of the β that is fitted to runs of the algorithm. Source unless stated otherwise: Thakur,
Rabenseifner, Gropp (2005), section 4.4, and the broadcast's formula, mirrored.
"""

from mpilab.algorithms import algorithm, trees
from mpilab.algorithms.algorithm import (
    AMBER,
    BLUE,
    BROWN,
    OLIVE,
    PINK,
    RED,
    TEAL,
    Algorithm,
    Call,
    Coefficients,
    ModelCall,
    Plan,
    Transfer,
    table,
)
from mpilab.algorithms.formula import ceil_log2, floor_log2


def linear(call: Call) -> Plan:
    """Every rank sends its data to the root, all at the same time."""
    others = [rank for rank in range(call.ranks) if rank != call.root]
    step = [Transfer(rank, call.root, (0,)) for rank in others]
    return Plan([step], call.sizes((call.count,)))


def linear_cost(call: ModelCall) -> Coefficients:
    """(P-1)(α + mβ)."""
    others = call.ranks - 1
    return others, others * call.bytes


def chain_cost(call: ModelCall) -> Coefficients:
    """(⌊(P-1)/K⌋ - 1)(α + sβ) + K (Sα + mβ)."""
    return trees.chain_up_cost(call, call.fanout or trees.CHAINS)


def pipeline_cost(call: ModelCall) -> Coefficients:
    """(P-2)(α + sβ) + Sα + mβ."""
    return trees.chain_up_cost(call, 1, trees.PIPELINE_SEGMENT)


def binary_cost(call: ModelCall) -> Coefficients:
    """K ((D-1)(α + sβ) + Sα + mβ) on a complete tree of depth D.

    On an incomplete tree, this is an overestimate: messages from shallower leaves arrive earlier.
    """
    return trees.kary_cost(call, float)


def binomial_cost(call: ModelCall) -> Coefficients:
    """⌈log2 P⌉ (Sα + mβ): the root receives ⌈log2 P⌉ messages for each segment."""
    steps = ceil_log2(call.ranks)
    return trees.pipelined_cost(0, steps, *call.cut(call.bytes), call.bytes)


def in_order_binary_cost(call: ModelCall) -> Coefficients:
    """2 ((D-2)(α + sβ) + Sα + mβ) + α + sβ, D = ⌈log2 P⌉, to rank 0, which has only one child."""
    children = min(2, call.ranks - 2)
    segments, piece = call.cut(call.bytes)
    if children == 0:
        return segments, call.bytes
    depth = ceil_log2(call.ranks)
    a, b = trees.pipelined_cost((depth - 2) * children, children, segments, piece, call.bytes)
    return a + 1, b + piece


def rabenseifner(call: Call) -> Plan:
    """Reduce-scatter by recursive halving, then a binomial gather.

    If P is not a power of two, there are p2 blocks, and the surplus ranks send their data before.
    """
    core = trees.largest_power_of_two(call.ranks)
    steps = [*trees.fold(call, core), *trees.halve(call, core), *trees.gather(call, core)]
    return Plan(steps, call.sizes(algorithm.blocks(call.count, core)))


def rabenseifner_cost(call: ModelCall) -> Coefficients:
    """2 log2 C α + 2 (C-1)/C mβ, and α + mβ to fold if P is not C, a power of two.

    Source: Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks != 1 << steps
    return 2 * steps + rest, (2 * (1 - 0.5**steps) + rest) * call.bytes


ALGORITHMS = table(
    Algorithm(linear, linear_cost, RED, openmpi="linear"),
    Algorithm(
        trees.reduce_along("chain"), chain_cost, AMBER, "m", fanout=trees.CHAINS, openmpi="chain"
    ),
    Algorithm(trees.reduce_along("pipeline"), pipeline_cost, OLIVE, "m", openmpi="pipeline"),
    Algorithm(
        trees.reduce_along("binary"), binary_cost, TEAL, "m", fanout=trees.FANOUT, openmpi="binary"
    ),
    Algorithm(trees.reduce_along("binomial"), binomial_cost, BLUE, "m", openmpi="binomial"),
    Algorithm(
        trees.reduce_along("in_order_binary"),
        in_order_binary_cost,
        PINK,
        "m",
        openmpi="in-order_binary",
    ),
    Algorithm(rabenseifner, rabenseifner_cost, BROWN, openmpi="rabenseifner"),
)
