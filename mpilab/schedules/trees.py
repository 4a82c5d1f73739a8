"""Trees over ranks, and what travels along them (src_c/tree/tree.h, in Python).

Trees are built of *virtual* ranks, v = (rank - root) mod P, so that the root is 0 whatever rank it
has; a Tree has real ranks.

    chain(K=1)      chain(K=2)       k-ary(K=2)        k-nomial(K=2) = binomial
    0-1-2-3-4       0-1-2            0                 0
                    |                |-- 1 -- 3, 4     |-- 4 -- 6 -- 7,  4 -- 5
                    3-4              |-- 2 -- 5, 6     |-- 2 -- 3
                                                       |-- 1
"""

from dataclasses import dataclass
from functools import cached_property

from mpilab.errors import InputError
from mpilab.schedules.schedule import Transfer

MOST_CHILDREN = 256  # MPILAB_MOST_CHILDREN of src_c/tree/tree.h
CHAINS, FANOUT, RADIX = 4, 2, 4  # the kernels' defaults


@dataclass(frozen=True)
class Tree:
    """A tree of ranks.

    parent     of each rank; None for the root.
    children   of each rank, in the order in which a broadcast begins to serve them.
    """

    root: int
    parent: tuple[int | None, ...]
    children: tuple[tuple[int, ...], ...]

    @cached_property
    def top_down(self):
        """All ranks, a parent before its children, level by level."""
        order = [self.root]
        for rank in order:
            order += self.children[rank]
        return tuple(order)

    @cached_property
    def depths(self):
        """How many messages each rank is away from the root."""
        depths = [0] * len(self.parent)
        for rank in self.top_down[1:]:
            depths[rank] = depths[self.parent[rank]] + 1
        return tuple(depths)

    @property
    def depth(self):
        """The largest of `depths`."""
        return max(self.depths)


def _tree(ranks, root, children_of):
    """The Tree in which virtual rank v has the virtual ranks children_of(v) for children."""
    parent, children = [None] * ranks, [()] * ranks
    for virtual in range(ranks):
        rank = (virtual + root) % ranks
        children[rank] = tuple((child + root) % ranks for child in children_of(virtual))
        for child in children[rank]:
            parent[child] = rank
    return Tree(root, tuple(parent), tuple(children))


def chain(ranks, root=0, fanout=0):
    """`fanout` chains (0: 4) of (almost) equal length, whose first ranks are the root's children.

    The first ones are one rank longer where the lengths differ.
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
    """The parent of v is v without its lowest digit that is not 0, to base `radix` (0: 4).

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
    """A binary tree that stands in the order of ranks, with `root` at its root.

    All ranks under the first of two children are lower than the rank itself, all under the other
    one are higher. A rank below the root is in the middle of the ranks that it stands for.
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
    """The steps of a broadcast of `segments` segments: a rank passes one on to all its children at
    once, as soon as it has it (mpilab_bcast_along)."""
    return [
        [Transfer(rank, child, (segment,)) for child in tree.children[rank]]
        for segment in range(segments)
        for rank in tree.top_down
        if tree.children[rank]
    ]


def up(tree, segments):
    """The steps of a reduction of `segments` segments: a rank hands one up when it has taken those
    of all its children in (mpilab_reduce_along)."""
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
