"""Costs of our gathers of blocks of m bytes; mpilab.models.costs defines a and b.

γ(P), which is measured on a sender, plays no role: the root receives messages one by one.
"""

import numpy as np

from mpilab.algorithms.formula import ceil_log2

FIRST_PART = 1024  # src_c/gather/linear_sync.c
GO_AHEAD = 8


def linear(call):
    """(P-1)(α + mβ) at the root's port.

    Source: Nuriyev, Rico-Gallego, Lastovetsky (2022), whose experiments end with this gather.
    """
    others = call.ranks - 1
    return others, others * call.bytes


def binomial(call):
    """⌈log2 P⌉ α + (P-1) mβ. Source: Thakur, Rabenseifner, Gropp (2005), section 4."""
    return ceil_log2(call.ranks), (call.ranks - 1) * call.bytes


def linear_sync(call):
    """(P-1)(2α + (m + 8) β) for blocks in one part: a go-ahead of 8 bytes, and the block.

    With two parts, the rest of a block arrives while the next rank gets its go-ahead; the last
    rank's rest costs one more message. Source: Open MPI 5, coll/base, "linear_sync"; cost: ours.
    """
    others, size = call.ranks - 1, call.bytes
    parts, first = call.cut(size, FIRST_PART)
    rest = size - first
    in_two = GO_AHEAD + others * first + (others - 1) * np.maximum(GO_AHEAD, rest) + rest
    return (
        np.where(parts > 1, 2 * others + 1, 2 * others),
        np.where(parts > 1, in_two, others * (size + GO_AHEAD)),
    )
