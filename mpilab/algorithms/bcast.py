"""The broadcast algorithms, named after the C kernels `bcast_<name>`: schedules and costs.

P ranks, a message of m bytes in S segments, log to base 2, p2 the largest power of two <= P,
rest = P - p2, K the fan-out or radix:

    algorithm               rounds                        messages                  bytes
    linear                  1                             P-1                       (P-1) m
    chain                   ceil((P-1)/K) + S-1           (P-1) S                   (P-1) m
    pipeline                P-2 + S                       (P-1) S                   (P-1) m
    binary                  depth of the K-ary tree + S-1 (P-1) S                   (P-1) m
    split_binary            floor(log P) + S              (P-1) (S+1), odd P        (P-1) m
    binomial                floor(log P) + S-1            (P-1) S                   (P-1) m
    knomial                 depth of the tree + S-1       (P-1) S                   (P-1) m
    scatter_allgather       2 log p2 (+1 if rest)         P-1 + p2 log p2           about 2 (P-1) m
    scatter_allgather_ring  ceil(log P) + P-1             (P-1) (P+1)               about 2 (P-1) m

split_binary cuts each half of the message into S segments; the last two algorithms move (P-1) m
bytes, plus what their scatter moves beyond m. A single rank sends nothing. The headers of the
kernels have the exact formulas and the sources.

Sources of the costs: Nuriyev, Rico-Gallego, Lastovetsky, "Model-based selection of optimal MPI
broadcast algorithms for multi-core clusters", JPDC 165, 2022; Thakur, Rabenseifner, Gropp,
"Optimization of Collective Communication Operations in MPICH", IJHPCA 19(1), 2005.
"""

from collections.abc import Sequence

from mpilab.algorithms import algorithm, trees
from mpilab.algorithms.algorithm import (
    AMBER,
    BLUE,
    BROWN,
    GREEN,
    OLIVE,
    PINK,
    PURPLE,
    RED,
    TEAL,
    Algorithm,
    Call,
    Coefficients,
    ModelCall,
    Plan,
    Step,
    Transfer,
    table,
)
from mpilab.algorithms.formula import ceil_log2, floor_log2


def linear(call: Call) -> Plan:
    """The root sends the whole message to all other ranks at the same time."""
    others = [rank for rank in range(call.ranks) if rank != call.root]
    step = [Transfer(call.root, rank, (0,)) for rank in others]
    return _from_root(call, [step], (call.count,))


def linear_cost(call: ModelCall) -> Coefficients:
    """γ(P) (α + mβ). Source: Nuriyev et al. (2022)."""
    served = call.at_once(call.ranks - 1)
    return served, served * call.bytes


def chain_cost(call: ModelCall) -> Coefficients:
    """(⌈(P-1)/K⌉ - 1)(α + sβ) + γ(K+1) (Sα + mβ)."""
    return trees.chain_down_cost(call, call.fanout or trees.CHAINS)


def pipeline_cost(call: ModelCall) -> Coefficients:
    """(P-2)(α + sβ) + Sα + mβ."""
    return trees.chain_down_cost(call, 1, trees.PIPELINE_SEGMENT)


def binary_cost(call: ModelCall) -> Coefficients:
    """γ(K+1) ((D-1)(α + sβ) + Sα + mβ) on a complete tree of depth D."""
    return trees.kary_cost(call, call.at_once)


def binomial_cost(call: ModelCall) -> Coefficients:
    """⌈log2 P⌉ (Sα + mβ); with γ, γ(⌈log2 P⌉ + 1)(Sα + mβ), and the time further down the tree."""
    return trees.knomial_down_cost(call, 2)


def knomial_cost(call: ModelCall) -> Coefficients:
    """Like binomial, with radix K: (K-1) log_K P children and log_K P levels."""
    return trees.knomial_down_cost(call, call.radix or trees.RADIX)


def split_binary(call: Call) -> Plan:
    """One half of the message goes down each of two binary trees; then ranks swap halves in pairs.

    One tree holds the odd ranks, the other the even ones; halves are sent in segments. Segment s of
    half h is block h S + s. On an even number of ranks, the last one is a leaf in both trees and
    has no partner to swap with. Source: src_c/bcast/split_binary.c.
    """
    ranks, real = call.ranks, call.real
    longer = call.count - call.count // 2
    first = algorithm.pieces(longer, call.element_bytes, call.segment)
    segments = len(first)
    second = (*first[:-1], call.count // 2 - sum(first[:-1]))
    members = ranks // 2  # of each tree

    def member(half: int, index: int) -> int:
        return real(min(2 * index + 1 + half, ranks - 1))

    steps: list[Step] = []
    for segment in range(segments) if ranks > 1 else ():
        block = (segment, segments + segment)
        steps.append([Transfer(call.root, member(half, 0), (block[half],)) for half in (0, 1)])
        for half in (0, 1):
            for index in range(members):
                below = [c for c in (2 * index + 1, 2 * index + 2) if c < members]
                steps.append(
                    [
                        Transfer(member(half, index), member(half, child), (block[half],))
                        for child in below
                    ]
                )
    halves = tuple(range(segments)), tuple(range(segments, 2 * segments))
    for index in range(members):
        one, other = member(0, index), member(1, index)
        if one != other:
            steps.append([Transfer(one, other, halves[0]), Transfer(other, one, halves[1])])
    return _from_root(call, steps, first + second)


def split_binary_cost(call: ModelCall) -> Coefficients:
    """γ(3) ((D-1)(α + sβ) + Sα + m/2 β) down two trees of depth D, then α + m/2 β to swap halves.

    Each half is cut into S segments. If P is even, one rank is a leaf in both trees: it receives
    two segments at the same time, and has no partner to swap with. Source: Nuriyev et al. (2022),
    "split-binary tree".
    """
    half = call.bytes / 2
    members, both = call.ranks // 2, call.at_once(2)
    depth = 1 + floor_log2(members)
    # As in a binary tree, the ranks above the deepest level may have only one child.
    last = 2 if call.ranks % 2 == 0 else trees.last_level(members, 2) if depth > 1 else 0
    filling = (depth - 2) * both + call.at_once(last) if depth > 1 else 0
    a, b = trees.pipelined_cost(filling, both, *call.cut(half), half)
    return (a + 1, b + half) if call.ranks > 2 else (a, b)


def scatter_allgather(call: Call) -> Plan:
    """Binomial scatter, then allgather by recursive doubling.

    If P is not a power of two, there are p2 blocks, and the surplus ranks get the whole message at
    the end.
    """
    core = trees.largest_power_of_two(call.ranks)
    steps = [
        *trees.scatter(call, core),
        *trees.double(call, core),
        *trees.unfold(call, core),
    ]
    return _from_root(call, steps, algorithm.blocks(call.count, core))


def scatter_allgather_cost(call: ModelCall) -> Coefficients:
    """2 log2 C α + 2 (C-1)/C mβ, and α + mβ to unfold if P is not C, a power of two.

    Source: Thakur, Rabenseifner, Gropp (2005), section 4.3.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks != 1 << steps
    return 2 * steps + rest, (2 * (1 - 0.5**steps) + rest) * call.bytes


def scatter_allgather_ring(call: Call) -> Plan:
    """Binomial scatter of P blocks, then allgather around the ring."""
    ranks, real = call.ranks, call.real
    steps = trees.scatter(call, ranks)
    for number in range(1, ranks):
        steps.append(
            [Transfer(real(v), real(v + 1), ((v - number + 1) % ranks,)) for v in range(ranks)]
        )
    return _from_root(call, steps, algorithm.blocks(call.count, ranks))


def scatter_allgather_ring_cost(call: ModelCall) -> Coefficients:
    """(⌈log2 P⌉ + P-1) α + 2 (P-1)/P mβ. Source: Thakur et al. (2005), section 4.3."""
    ranks = call.ranks
    return ceil_log2(ranks) + ranks - 1, 2 * (ranks - 1) / ranks * call.bytes


def _from_root(call: Call, steps: list[Step], elements: Sequence[int]) -> Plan:
    return Plan(steps, call.sizes(elements), (call.root,) * len(elements))


ALGORITHMS = table(
    Algorithm(linear, linear_cost, RED, openmpi="basic_linear"),
    Algorithm(
        trees.bcast_along("chain"), chain_cost, AMBER, "m", fanout=trees.CHAINS, openmpi="chain"
    ),
    Algorithm(trees.bcast_along("pipeline"), pipeline_cost, OLIVE, "m", openmpi="pipeline"),
    Algorithm(
        trees.bcast_along("binary"),
        binary_cost,
        TEAL,
        "m",
        fanout=trees.FANOUT,
        openmpi="binary_tree",
    ),
    Algorithm(split_binary, split_binary_cost, PINK, "m/2", openmpi="split_binary_tree"),
    Algorithm(trees.bcast_along("binomial"), binomial_cost, BLUE, "m", openmpi="binomial"),
    Algorithm(
        trees.bcast_along("knomial"), knomial_cost, BROWN, "m", radix=trees.RADIX, openmpi="knomial"
    ),
    Algorithm(scatter_allgather, scatter_allgather_cost, PURPLE, openmpi="scatter_allgather"),
    Algorithm(
        scatter_allgather_ring, scatter_allgather_ring_cost, GREEN, openmpi="scatter_allgather_ring"
    ),
)
