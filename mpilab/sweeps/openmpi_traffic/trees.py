"""The trees of Open MPI's collectives: lists of (parent, child), counted from the root.

Some differ from ours (src_c/tree): the binomial tree of bcast loses the *highest* bit from child to
parent, the binary tree keeps odd ranks under 1 and even ones under 2.
"""

from mpilab.schedules import trees
from mpilab.sweeps.openmpi_traffic.shape import MOST_CHILDREN


def _edges(tree):
    return [(parent, v) for v, parent in enumerate(tree.parent) if parent is not None]


def chain(ranks, fanout):
    """`fanout` chains of almost equal length, as ours; at most 32."""
    return _edges(trees.chain(ranks, fanout=min(fanout, MOST_CHILDREN)))


def pipeline(ranks):
    """One chain."""
    return chain(ranks, 1)


def binary(ranks):
    """Rank v, on a level with 2^l ranks, is the parent of v + 2^l and v + 2^(l+1)."""
    edges = []
    for v in range(ranks):
        width = 1 << ((v + 1).bit_length() - 1)
        edges += [(v, child) for child in (v + width, v + 2 * width) if child < ranks]
    return edges


def binomial(ranks):
    """A rank's parent lacks its highest bit: that of bcast."""
    return [(v - (1 << (v.bit_length() - 1)), v) for v in range(1, ranks)]


def in_order_binomial(ranks):
    """A rank's parent lacks its lowest bit, as in ours: those under a rank follow it."""
    return knomial(ranks, 2)


def knomial(ranks, radix):
    """A rank's parent lacks its lowest digit that is not 0, in base `radix`, as in ours."""
    return _edges(trees.knomial(ranks, radix=radix))


def in_order_binary(ranks):
    """A binary tree in the order of ranks under the *last* one; these are ranks as they are."""
    edges = []

    def build(first, size):
        top = first + size - 1
        if size == 2:
            edges.append((top, first))
        elif size > 2:
            half = size // 2
            edges.extend([(top, top - 1), (top, first + half - 1)])
            build(first + half, size - half - 1)
            build(first, half)

    build(0, ranks)
    return edges
