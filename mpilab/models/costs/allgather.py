"""Costs of our allgathers of blocks of m bytes; mpilab.models.costs defines a and b.

Source unless stated otherwise: Thakur, Rabenseifner, Gropp (2005), section 4.1.
"""

from mpilab.algorithms.formula import ceil_log2, floor_log2


def nonblocking_gather_bcast(call):
    """(P-1)(α + mβ) to gather, γ(P) (α + P mβ) to send everything to every rank."""
    ranks = call.ranks
    served = call.at_once(ranks - 1)
    return ranks - 1 + served, (ranks - 1 + served * ranks) * call.bytes


def nonblocking_all(call):
    """γ(P) (α + mβ): each rank sends its block to all others at the same time.

    Source: as linear broadcast; γ, measured with one sender, does not include that all ranks send.
    """
    served = call.at_once(call.ranks - 1)
    return served, served * call.bytes


def pairwise(call):
    """⌈log2 P⌉ α + (P-1) mβ. Source: Bruck, Ho, Kipnis, Upfal, Weathersby (1997)."""
    return ceil_log2(call.ranks), (call.ranks - 1) * call.bytes


def bruck(call):
    """⌈log2 P⌉ α + (P-1) mβ. Source: Bruck, Ho, Kipnis, Upfal, Weathersby (1997)."""
    return pairwise(call)


def ring(call):
    """(P-1)(α + mβ)."""
    return call.ranks - 1, (call.ranks - 1) * call.bytes


def recursive_doubling(call):
    """log2 P α + (P-1) mβ for a power of two.

    Otherwise C is the largest power of two below P, and R = P - C ranks fold: α + mβ before, and α
    + P mβ at the end. The first ranks then also have the blocks of those that folded: in the round
    at distance d, d + min(d, R) blocks. Source: folding as in section 4.5 of the paper.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks - (1 << steps)
    blocks = sum((1 << step) + min(1 << step, rest) for step in range(steps))
    if rest:
        return steps + 2, (1 + blocks + call.ranks) * call.bytes
    return steps, blocks * call.bytes


def neighbor_exchange(call):
    """P/2 α + (P-1) mβ for even P; odd numbers of ranks take the ring.

    Source: Chen, Zhang, Zhang, Yuan (2005).
    """
    if call.ranks % 2:
        return ring(call)
    return call.ranks // 2, (call.ranks - 1) * call.bytes


def two_proc(call):
    """α + mβ: two ranks exchange blocks; for P = 2 only. Source: Open MPI 5, coll/base."""
    return 1, call.bytes
