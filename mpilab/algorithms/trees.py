"""Trees of ranks, and the messages sent along them (src_c/common/tree/tree.h, in Python).

Trees are built from *virtual* ranks, v = (rank - root) mod P, so that the root is always 0; a Tree
has real ranks.

    chain(K=1)      chain(K=2)       k-ary(K=2)        k-nomial(K=2) = binomial
    0-1-2-3-4       0-1-2            0                 0
                    |                |-- 1 -- 3, 4     |-- 4 -- 6 -- 7,  4 -- 5
                    3-4              |-- 2 -- 5, 6     |-- 2 -- 3
                                                       |-- 1
"""

from dataclasses import dataclass
from functools import cached_property

from mpilab.algorithms.schedule import Transfer
from mpilab.errors import InputError

# Scattering, exchanging, reducing or gathering the blocks of a message
# (src_c/common/tree/blocks.h). Virtual rank v < parts owns block v. If an algorithm needs a power
# of two, the first `core` ranks do the work; each rank v from `core` up sends its data to v - core
# before (`fold`), or gets the result from there at the end (`unfold`).


def largest_power_of_two(ranks):
    """The largest power of two that is at most `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def powers_of_two(limit):
    """1, 2, 4 … below `limit`: ceil(log2(limit)) of them."""
    return [1 << step for step in range((limit - 1).bit_length())]


def subtree(virtual, ranks):
    """The virtual ranks, below `ranks`, of the binomial subtree with root `virtual`: v, v + 1, …"""
    lowest_bit = virtual & -virtual or ranks
    return range(virtual, min(virtual + lowest_bit, ranks))


def binomial_sends(parts):
    """(virtual source, virtual child) of the sends of a scatter down the binomial tree, in order.

    A rank sends to one child after the other, the largest part first.
    """
    return [
        (virtual, virtual + distance)
        for virtual in range(parts)
        for distance in reversed(powers_of_two(parts))
        if (virtual == 0 or distance < (virtual & -virtual)) and virtual + distance < parts
    ]


def scatter(call, parts):
    """Binomial scatter: the root cuts the message into `parts` blocks, and v < parts gets block v.

    With it come the blocks of all ranks in its subtree.
    """
    return [
        [Transfer(call.real(source), call.real(child), tuple(subtree(child, parts)))]
        for source, child in binomial_sends(parts)
    ]


def gather(call, core):
    """Binomial gather: blocks of the virtual ranks below `core`, a power of two, go to the root."""
    return [
        [
            Transfer(
                call.real(virtual),
                call.real(virtual - distance),
                tuple(range(virtual, virtual + distance)),
            )
        ]
        for distance in powers_of_two(core)
        for virtual in range(distance, core, 2 * distance)
    ]


def double(call, core):
    """Allgather by recursive doubling: partners at distance 1, 2, 4 … exchange all they have."""
    return [_swap(call, core, distance, mine=True) for distance in powers_of_two(core)]


def halve(call, core):
    """Reduce-scatter by recursive halving: partners at distance core / 2 … 2, 1 exchange halves.

    Each sends the half of its blocks that it does not keep.
    """
    return [_swap(call, core, distance, mine=False) for distance in reversed(powers_of_two(core))]


def _swap(call, core, distance, mine):
    def sent(virtual):
        first = (virtual if mine else virtual ^ distance) // distance * distance
        return tuple(range(first, first + distance))

    return [
        Transfer(call.real(virtual), call.real(virtual ^ distance), sent(virtual))
        for virtual in range(core)
    ]


def fold(call, core):
    """The ranks from `core` up send all their data to the ranks that work for them."""
    everything = tuple(range(core))
    return [
        [Transfer(call.real(virtual), call.real(virtual - core), everything)]
        for virtual in range(core, call.ranks)
    ]


def unfold(call, core):
    """The ranks from `core` up get the whole result."""
    everything = tuple(range(core))
    return [
        [Transfer(call.real(virtual - core), call.real(virtual), everything)]
        for virtual in range(core, call.ranks)
    ]


MOST_CHILDREN = 256  # MPILAB_MOST_CHILDREN of src_c/common/tree/tree.h
CHAINS, FANOUT, RADIX = 4, 2, 4  # the kernels' defaults


@dataclass(frozen=True)
class Tree:
    """A tree of ranks.

    parent     of each rank; None for the root.
    children   of each rank, in the order in which a broadcast starts to send to them.
    """

    root: int
    parent: tuple[int | None, ...]
    children: tuple[tuple[int, ...], ...]

    @cached_property
    def top_down(self):
        """All ranks, parents before children, level by level."""
        order = [self.root]
        for rank in order:
            order += self.children[rank]
        return tuple(order)

    @cached_property
    def depths(self):
        """Number of messages from the root to each rank."""
        depths = [0] * len(self.parent)
        for rank in self.top_down[1:]:
            depths[rank] = depths[self.parent[rank]] + 1
        return tuple(depths)

    @property
    def depth(self):
        """The largest of `depths`."""
        return max(self.depths)


def _tree(ranks, root, children_of):
    """The Tree in which virtual rank v has the virtual children children_of(v)."""
    parent, children = [None] * ranks, [()] * ranks
    for virtual in range(ranks):
        rank = (virtual + root) % ranks
        children[rank] = tuple((child + root) % ranks for child in children_of(virtual))
        for child in children[rank]:
            parent[child] = rank
    return Tree(root, tuple(parent), tuple(children))


def chain(ranks, root=0, fanout=0):
    """`fanout` chains (0: 4) of (almost) equal length, whose first ranks are the root's children.

    If the lengths differ, the first chains are one rank longer.
    """
    chains = min(_checked("fanout", fanout or CHAINS, 1), ranks - 1)
    _check_children("fanout", fanout, chains)
    length, longer = divmod(ranks - 1, chains) if chains else (0, 0)
    begins = [1 + index * length + min(index, longer) for index in range(chains)]
    ends = {*begins, ranks}

    def children_of(virtual):
        if virtual == 0:
            return begins
        return [virtual + 1] if virtual + 1 not in ends else []

    return _tree(ranks, root, children_of)


def kary(ranks, root=0, fanout=0):
    """Virtual rank v has the children K v + 1 … K v + K, for K = `fanout` (0: 2)."""
    fanout = _checked("fanout", fanout or FANOUT, 1)
    _check_children("fanout", fanout, min(fanout, ranks - 1))

    def children_of(virtual):
        first = fanout * virtual + 1
        return range(first, min(first + fanout, ranks))

    return _tree(ranks, root, children_of)


def knomial(ranks, root=0, radix=0):
    """The parent of v is v with its lowest nonzero digit, in base `radix` (0: 4), set to 0.

    Radix 2 gives the binomial tree.
    """
    radix = _checked("radix", radix or RADIX, 2)

    def children_of(virtual):
        weight = 1
        while weight < ranks and virtual // weight % radix == 0:
            weight *= radix
        children = []
        while weight > 1:
            weight //= radix
            children += range(virtual + weight, min(virtual + radix * weight, ranks), weight)
        return children

    _check_children("radix", radix, len(children_of(0)))
    return _tree(ranks, root, children_of)


def in_order(ranks, root=0):
    """An in-order binary tree of the ranks, with `root` at its root.

    All ranks under the first of two children are lower than the rank itself, all under the other
    one are higher. A rank below the root is in the middle of its subtree.
    """
    parent, children = [None] * ranks, [()] * ranks
    waiting = [(root, 0, ranks)]
    while waiting:
        top, begin, end = waiting.pop()
        halves = [half for half in ((begin, top), (top + 1, end)) if half[0] < half[1]]
        below = [(first + (last - first - 1) // 2, first, last) for first, last in halves]
        children[top] = tuple(child for child, *_ in below)
        for child in children[top]:
            parent[child] = top
        waiting += below
    return Tree(root, tuple(parent), tuple(children))


def down(tree, segments):
    """The steps of a broadcast of `segments` segments (mpilab_bcast_along).

    As soon as a rank has a segment, it forwards it to all its children at the same time.
    """
    return [
        [Transfer(rank, child, (segment,)) for child in tree.children[rank]]
        for segment in range(segments)
        for rank in tree.top_down
        if tree.children[rank]
    ]


def up(tree, segments):
    """The steps of a reduction of `segments` segments (mpilab_reduce_along).

    A rank sends a segment up once it has received that of all its children.
    """
    return [
        [Transfer(rank, tree.parent[rank], (segment,))]
        for segment in range(segments)
        for rank in reversed(tree.top_down)
        if tree.parent[rank] is not None
    ]


def _checked(name, value, least):
    if value < least:
        raise InputError(
            f"{name}={value} makes no tree; give {least} or more, or 0 for the default"
        )
    return value


def _check_children(name, value, children):
    if children > MOST_CHILDREN:
        raise InputError(
            f"{name}={value}: a rank would have {children} children, and the kernels have room for "
            f"{MOST_CHILDREN}; give a smaller {name}"
        )
