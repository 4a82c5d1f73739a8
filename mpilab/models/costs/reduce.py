"""Costs of our reductions of m bytes to rank 0; mpilab.models.costs defines a and b.

A rank receives its children's messages one by one (at most two receives are open), so γ(P) plays no
role. The time to reduce a byte is not separate: it is in the β that is fitted to runs of the
algorithm.

Source unless stated otherwise: Thakur, Rabenseifner, Gropp (2005), section 4.4, and the mirror
image of the broadcast's formula.
"""

from mpilab.algorithms.formula import ceil_log2, floor_log2
from mpilab.models.costs import trees

PIPELINE_SEGMENT = 8192  # src_c/reduce/pipeline.c


def linear(call):
    """(P-1)(α + mβ)."""
    others = call.ranks - 1
    return others, others * call.bytes


def chain(call):
    """(⌊(P-1)/K⌋ - 1)(α + sβ) + K (Sα + mβ)."""
    return trees.chain_up(call, call.fanout or trees.CHAINS)


def pipeline(call):
    """(P-2)(α + sβ) + Sα + mβ."""
    return trees.chain_up(call, 1, PIPELINE_SEGMENT)


def binary(call):
    """K ((D-1)(α + sβ) + Sα + mβ) on a complete tree of depth D.

    On an incomplete tree, this is too much: messages from shallower leaves arrive earlier.
    """
    return trees.kary(call, float)


def binomial(call):
    """⌈log2 P⌉ (Sα + mβ): the root receives ⌈log2 P⌉ messages for each segment."""
    steps = ceil_log2(call.ranks)
    return trees.pipelined(0, steps, *call.cut(call.bytes), call.bytes)


def in_order_binary(call):
    """2 ((D-2)(α + sβ) + Sα + mβ) + α + sβ, D = ⌈log2 P⌉, to rank 0, which has only one child."""
    children = min(2, call.ranks - 2)
    segments, piece = call.cut(call.bytes)
    if children == 0:
        return segments, call.bytes
    depth = ceil_log2(call.ranks)
    a, b = trees.pipelined((depth - 2) * children, children, segments, piece, call.bytes)
    return a + 1, b + piece


def rabenseifner(call):
    """2 log2 C α + 2 (C-1)/C mβ, and α + mβ to fold if P is not C, a power of two.

    Source: Rabenseifner, "Optimization of Collective Reduction Operations", ICCS 2004.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks != 1 << steps
    return 2 * steps + rest, (2 * (1 - 0.5**steps) + rest) * call.bytes
