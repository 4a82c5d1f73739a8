"""What Open MPI's bcast, reduce, gather and scatter send, algorithm by algorithm.

Every function takes a Shape and gives the messages, (source, destination, elements) each, or None
where Open MPI would run another algorithm in its place. The names are Open MPI's own.

Source: what the algorithms are documented to do in Open MPI 5.0 (ompi/mca/coll/base, one file for
each collective, and coll_base_topo.c for the trees); tests/sweeps/test_openmpi_traffic.py holds it
against what 5.0.11 sends.
"""

from mpilab.schedules.blocks import largest_power_of_two as core_of
from mpilab.schedules.blocks import subtree
from mpilab.sweeps.openmpi_traffic import trees
from mpilab.sweeps.openmpi_traffic.blocks import (
    doubling_allgather,
    gather_halves,
    halving,
    ring_allgather,
    scatter_blocks,
)
from mpilab.sweeps.openmpi_traffic.shape import CHAIN_FANOUT, RADIX, cut


def _down(shape, edges):
    """Every segment goes along every edge, from parent to child."""
    return [
        (shape.rank(parent), shape.rank(child), piece)
        for parent, child in edges
        for piece in shape.pieces()
    ]


def _up(messages):
    return [(child, parent, elements) for parent, child, elements in messages]


# --- bcast


def bcast_linear(shape):
    """The root sends the whole message to every other rank."""
    return [(shape.root, shape.rank(v), shape.count) for v in range(1, shape.ranks)]


def bcast_chain(shape):
    """Down several chains, in segments."""
    return _down(shape, trees.chain(shape.ranks, shape.fanout or CHAIN_FANOUT))


def bcast_pipeline(shape):
    """Down one chain, in segments."""
    return _down(shape, trees.pipeline(shape.ranks))


def bcast_binary(shape):
    """Down a binary tree, in segments."""
    return _down(shape, trees.binary(shape.ranks))


def bcast_split_binary(shape):
    """One half down the odd ranks' tree, the other down the even ranks'; then pairs swap.

    None where a half is smaller than a segment, or empty.
    """
    halves = (shape.count - shape.count // 2, shape.count // 2)
    size = shape.element_bytes
    if halves[1] == 0 or shape.segment > halves[1] * size:
        return None
    piece = max(shape.segment, size) // size if shape.segment else shape.count
    messages = []
    for parent, child in trees.binary(shape.ranks):
        half = (child + 1) % 2
        messages += [
            (shape.rank(parent), shape.rank(child), elements)
            for elements in cut(halves[half], piece)
        ]
    last = shape.ranks - 1
    for odd in range(1, last, 2):
        messages.append((shape.rank(odd), shape.rank(odd + 1), halves[0]))
        messages.append((shape.rank(odd + 1), shape.rank(odd), halves[1]))
    if shape.ranks % 2 == 0:  # the last rank has no partner: the root gives it the other half
        messages.append((shape.root, shape.rank(last), halves[1]))
    return messages


def bcast_binomial(shape):
    """Down a binomial tree, in segments."""
    return _down(shape, trees.binomial(shape.ranks))


def bcast_knomial(shape):
    """Down a k-nomial tree, in segments."""
    return _down(shape, trees.knomial(shape.ranks, shape.radix or RADIX))


def bcast_scatter_allgather(shape):
    """Scatter, then recursive doubling; None with less than an element for each rank."""
    if shape.count < shape.ranks:
        return None
    return scatter_blocks(shape) + doubling_allgather(shape)


def bcast_scatter_allgather_ring(shape):
    """Scatter, then a ring; None with less than an element for each rank."""
    if shape.count < shape.ranks:
        return None
    return scatter_blocks(shape) + ring_allgather(shape)


# --- reduce


def reduce_linear(shape):
    """Every rank sends its data to the root."""
    return _up(bcast_linear(shape))


def reduce_chain(shape):
    """Up several chains, in segments."""
    return _up(bcast_chain(shape))


def reduce_pipeline(shape):
    """Up one chain, in segments."""
    return _up(bcast_pipeline(shape))


def reduce_binary(shape):
    """Up a binary tree, in segments."""
    return _up(bcast_binary(shape))


def reduce_binomial(shape):
    """Up an in-order binomial tree, in segments."""
    return _up(_down(shape, trees.in_order_binomial(shape.ranks)))


def reduce_in_order_binary(shape):
    """Up a binary tree to the last rank, which hands the result to the root."""
    messages = [
        (child, parent, piece)
        for parent, child in trees.in_order_binary(shape.ranks)
        for piece in shape.pieces()
    ]
    last = shape.ranks - 1
    return messages + [(last, shape.root, shape.count)] * (shape.root != last)


def reduce_rabenseifner(shape):
    """Recursive halving, then a binomial gather; None with less elements than ranks that halve."""
    if shape.ranks < 2 or shape.count < core_of(shape.ranks):
        return None
    return halving(shape) + gather_halves(shape)


# --- gather and scatter


def gather_linear(shape):
    """Every rank sends its block to the root."""
    return _up(bcast_linear(shape))


def gather_binomial(shape):
    """Up an in-order binomial tree, all blocks under a rank in one message."""
    return _up(scatter_binomial(shape))


def gather_linear_sync(shape):
    """The root calls one rank after the other, which sends a first segment and the rest."""
    first, messages = shape.piece(), []
    for v in range(1, shape.ranks):
        messages += [
            (shape.root, shape.rank(v), 0),
            (shape.rank(v), shape.root, first),
            (shape.rank(v), shape.root, shape.count - first),
        ]
    return messages


def scatter_linear(shape):
    """The root sends every rank its block (non-blocking in linear_nb: the same messages)."""
    return bcast_linear(shape)


def scatter_binomial(shape):
    """Down an in-order binomial tree, all blocks under a rank in one message."""
    return [
        (shape.rank(parent), shape.rank(child), len(subtree(child, shape.ranks)) * shape.count)
        for parent, child in trees.in_order_binomial(shape.ranks)
    ]
