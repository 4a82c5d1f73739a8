"""Costs of our allreduces of m bytes; mpilab.models.costs defines a and b.

As in a reduction, the time to reduce a byte is in the β that is fitted to runs of the algorithm.
"""

from mpilab.algorithms.formula import floor_log2
from mpilab.models.costs import bcast, reduce

RING_SEGMENT = 65536  # src_c/allreduce/segmented_ring.c


def recursive_doubling(call):
    """log2 C (α + mβ), and 2 (α + mβ) to fold and unfold if P is not C, a power of two.

    Source: Thakur, Rabenseifner, Gropp (2005), section 4.5.
    """
    steps = floor_log2(call.ranks)
    rounds = steps + 2 * (call.ranks != 1 << steps)
    return rounds, rounds * call.bytes


def ring(call):
    """2 (P-1) (α + m/P β).

    Source: Patarasuk, Yuan, "Bandwidth optimal all-reduce algorithms for clusters of workstations",
    JPDC 69(2), 2009.
    """
    rounds = 2 * (call.ranks - 1)
    return rounds, rounds / call.ranks * call.bytes


def segmented_ring(call):
    """(P-1)(S + 1) α + 2 (P-1)/P mβ with S segments per block.

    This model has only α and β, so segments only add cost; what they hide is the time to reduce.
    Source: Open MPI 5, coll/base, "ring_segmented".
    """
    others, block = call.ranks - 1, call.bytes / call.ranks
    segments, _ = call.cut(block, RING_SEGMENT)
    return others * (segments + 1), 2 * others * block


def rabenseifner(call):
    """2 log2 C α + 2 (C-1)/C mβ, and 2 (α + mβ) to fold and unfold if P is not C, a power of two.

    Source: Rabenseifner (2004); Thakur, Rabenseifner, Gropp (2005), section 4.5.
    """
    steps = floor_log2(call.ranks)
    rest = call.ranks != 1 << steps
    return 2 * (steps + rest), 2 * (1 - 0.5**steps + rest) * call.bytes


def basic_linear(call):
    """Linear reduction, then linear broadcast. Source: Open MPI 5, coll/base, "basic_linear"."""
    up, down = reduce.linear(call), bcast.linear(call)
    return up[0] + down[0], up[1] + down[1]
