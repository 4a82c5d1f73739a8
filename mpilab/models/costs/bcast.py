"""Costs of our broadcasts of m bytes; mpilab.models.costs defines a and b.

Sources: Nuriyev, Rico-Gallego, Lastovetsky, "Model-based selection of optimal MPI broadcast
algorithms for multi-core clusters", JPDC 165, 2022; Thakur, Rabenseifner, Gropp, "Optimization of
Collective Communication Operations in MPICH", IJHPCA 19(1), 2005.
"""

from mpilab.algorithms.formula import ceil_log2, floor_log2
from mpilab.models.costs import trees

PIPELINE_SEGMENT = 8192  # src_c/bcast/pipeline.c


def linear(call):
    """γ(P) (α + mβ). Source: Nuriyev et al. (2022)."""
    served = call.at_once(call.ranks - 1)
    return served, served * call.bytes


def chain(call):
    """(⌈(P-1)/K⌉ - 1)(α + sβ) + γ(K+1) (Sα + mβ)."""
    return trees.chain_down(call, call.fanout or trees.CHAINS)


def pipeline(call):
    """(P-2)(α + sβ) + Sα + mβ."""
    return trees.chain_down(call, 1, PIPELINE_SEGMENT)


def binary(call):
    """γ(K+1) ((D-1)(α + sβ) + Sα + mβ) on a complete tree of depth D."""
    return trees.kary(call, call.at_once)


def binomial(call):
    """⌈log2 P⌉ (Sα + mβ); with γ, γ(⌈log2 P⌉ + 1)(Sα + mβ), and the time further down the tree."""
    return trees.knomial_down(call, 2)


def knomial(call):
    """As binomial, with radix K: (K-1) log_K P children and log_K P levels."""
    return trees.knomial_down(call, call.radix or trees.RADIX)


def split_binary(call):
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
    a, b = trees.pipelined(filling, both, *call.cut(half), half)
    return (a + 1, b + half) if call.ranks > 2 else (a, b)


def scatter_allgather(call):
    """2 log2 C α + 2 (C-1)/C mβ, and α + mβ to unfold if P is not C, a power of two.

    Source: Thakur, Rabenseifner, Gropp (2005), section 4.3.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks != 1 << steps
    return 2 * steps + rest, (2 * (1 - 0.5**steps) + rest) * call.bytes


def scatter_allgather_ring(call):
    """(⌈log2 P⌉ + P-1) α + 2 (P-1)/P mβ. Source: Thakur et al. (2005), section 4.3."""
    ranks = call.ranks
    return ceil_log2(ranks) + ranks - 1, 2 * (ranks - 1) / ranks * call.bytes
