"""Costs of our barriers; mpilab.models.costs defines a; b is 0, as messages are empty.

Source: Hensgen, Finkel, Manber, "Two algorithms for barrier synchronization", International Journal
of Parallel Programming 17(1), 1988; Open MPI 5, coll/base.
"""

from mpilab.algorithms.formula import ceil_log2, floor_log2


def linear(call):
    """(P-1) α for the reports, γ(P) α for the release."""
    others = call.ranks - 1
    return others + call.at_once(others), 0.0


def double_ring(call):
    """2P α."""
    return 2 * call.ranks, 0.0


def recursive_doubling(call):
    """log2 C α, and 2α to fold and unfold if P is not C, a power of two."""
    steps = floor_log2(call.ranks)
    return steps + 2 * (call.ranks != 1 << steps), 0.0


def dissemination(call):
    """⌈log2 P⌉ α."""
    return ceil_log2(call.ranks), 0.0


def tree(call):
    """2 ⌈log2 P⌉ α: what rank 0 receives, and what it sends."""
    return 2 * ceil_log2(call.ranks), 0.0


def two_proc(call):
    """α: two ranks exchange a message; for P = 2 only. Source: Open MPI 5, coll/base."""
    return 1, 0.0
