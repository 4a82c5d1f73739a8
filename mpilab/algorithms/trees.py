"""Trees of ranks, the messages and plans along them (src_c/common/tree), and what these cost.

Trees are built from *virtual* ranks, v = (rank - root) mod P, so that the root is always 0; a Tree
has real ranks.

    chain(K=1)      chain(K=2)       k-ary(K=2)        k-nomial(K=2) = binomial
    0-1-2-3-4       0-1-2            0                 0
                    |                |-- 1 -- 3, 4     |-- 4 -- 6 -- 7,  4 -- 5
                    3-4              |-- 2 -- 5, 6     |-- 2 -- 3
                                                       |-- 1
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from mpilab.algorithms import algorithm
from mpilab.algorithms.algorithm import (
    Call,
    Coefficients,
    ModelCall,
    Plan,
    PlanFunction,
    Quantity,
    Step,
    Transfer,
)
from mpilab.algorithms.formula import ceil_div, ceil_log, kary_depth, knomial_depth
from mpilab.errors import InputError

MOST_CHILDREN = 256  # MPILAB_MOST_CHILDREN of src_c/common/tree/tree.h
CHAINS, FANOUT, RADIX = 4, 2, 4  # the kernels' defaults
PIPELINE_SEGMENT = 8192  # SEGMENT_BYTES of src_c/bcast/pipeline.c and src_c/reduce/pipeline.c

# Scattering, exchanging, reducing, gathering the blocks of a message (src_c/common/tree/blocks.h).
# Virtual rank v < parts owns block v. If an algorithm needs a power of two, the first `core` ranks
# do the work; each rank v from `core` up sends its data to v - core before (`fold`), or gets the
# result from there at the end (`unfold`).


def largest_power_of_two(ranks: int) -> int:
    """The largest power of two that is at most `ranks`."""
    return 1 << (ranks.bit_length() - 1)


def powers_of_two(limit: int) -> list[int]:
    """1, 2, 4 … below `limit`: ceil(log2(limit)) of them."""
    return [1 << step for step in range((limit - 1).bit_length())]


def subtree(virtual: int, ranks: int) -> range:
    """The virtual ranks, below `ranks`, of the binomial subtree with root `virtual`: v, v + 1, …"""
    lowest_bit = virtual & -virtual or ranks
    return range(virtual, min(virtual + lowest_bit, ranks))


def binomial_sends(parts: int) -> list[tuple[int, int]]:
    """(virtual source, virtual child) of the sends of a scatter down the binomial tree, in order.

    A rank sends to one child after another, the largest part first.
    """
    return [
        (virtual, virtual + distance)
        for virtual in range(parts)
        for distance in reversed(powers_of_two(parts))
        if (virtual == 0 or distance < (virtual & -virtual)) and virtual + distance < parts
    ]


def scatter(call: Call, parts: int) -> list[Step]:
    """Binomial scatter: the root cuts the message into `parts` blocks, and v < parts gets block v.

    With it come the blocks of all ranks in its subtree.
    """
    return [
        [Transfer(call.real(source), call.real(child), tuple(subtree(child, parts)))]
        for source, child in binomial_sends(parts)
    ]


def gather(call: Call, core: int) -> list[Step]:
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


def double(call: Call, core: int) -> list[Step]:
    """Allgather by recursive doubling: partners at distance 1, 2, 4 … exchange everything they
    have."""
    return [_swap(call, core, distance, mine=True) for distance in powers_of_two(core)]


def halve(call: Call, core: int) -> list[Step]:
    """Reduce-scatter by recursive halving: partners at distance core / 2 … 2, 1 exchange halves.

    Each sends the half of its blocks that it does not keep.
    """
    return [_swap(call, core, distance, mine=False) for distance in reversed(powers_of_two(core))]


def _swap(call: Call, core: int, distance: int, mine: bool) -> Step:
    def sent(virtual: int) -> tuple[int, ...]:
        first = (virtual if mine else virtual ^ distance) // distance * distance
        return tuple(range(first, first + distance))

    return [
        Transfer(call.real(virtual), call.real(virtual ^ distance), sent(virtual))
        for virtual in range(core)
    ]


def fold(call: Call, core: int) -> list[Step]:
    """The ranks from `core` up send all their data to the ranks that work for them."""
    everything = tuple(range(core))
    return [
        [Transfer(call.real(virtual), call.real(virtual - core), everything)]
        for virtual in range(core, call.ranks)
    ]


def unfold(call: Call, core: int) -> list[Step]:
    """The ranks from `core` up get the whole result."""
    everything = tuple(range(core))
    return [
        [Transfer(call.real(virtual - core), call.real(virtual), everything)]
        for virtual in range(core, call.ranks)
    ]


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
    def top_down(self) -> tuple[int, ...]:
        """All ranks, parents before children, level by level."""
        order = [self.root]
        for rank in order:
            order += self.children[rank]
        return tuple(order)

    @cached_property
    def depths(self) -> tuple[int, ...]:
        """Number of messages from the root to each rank."""
        depths = [0] * len(self.parent)
        for rank in self.top_down:
            for child in self.children[rank]:
                depths[child] = depths[rank] + 1
        return tuple(depths)

    @cached_property
    def edges_up(self) -> list[tuple[int, int]]:
        """(rank, its parent) of all ranks but the root, children before parents."""
        pairs = [(rank, self.parent[rank]) for rank in reversed(self.top_down)]
        return [(rank, parent) for rank, parent in pairs if parent is not None]

    @property
    def depth(self) -> int:
        """The largest of `depths`."""
        return max(self.depths)


def _tree(ranks: int, root: int, children_of: Callable[[int], Iterable[int]]) -> Tree:
    """The Tree in which virtual rank v has the virtual children children_of(v)."""
    parent: list[int | None] = [None] * ranks
    children: list[tuple[int, ...]] = [()] * ranks
    for virtual in range(ranks):
        rank = (virtual + root) % ranks
        children[rank] = tuple((child + root) % ranks for child in children_of(virtual))
        for child in children[rank]:
            parent[child] = rank
    return Tree(root, tuple(parent), tuple(children))


def chain(ranks: int, root: int = 0, fanout: int = 0) -> Tree:
    """`fanout` chains (0: 4) of (almost) equal length, whose first ranks are the root's children.

    If the lengths differ, the first chains are one rank longer.
    """
    chains = min(_checked("fanout", fanout or CHAINS, 1), ranks - 1)
    _check_children("fanout", fanout, chains)
    length, longer = divmod(ranks - 1, chains) if chains else (0, 0)
    begins = [1 + index * length + min(index, longer) for index in range(chains)]
    ends = {*begins, ranks}

    def children_of(virtual: int) -> list[int]:
        if virtual == 0:
            return begins
        return [virtual + 1] if virtual + 1 not in ends else []

    return _tree(ranks, root, children_of)


def kary(ranks: int, root: int = 0, fanout: int = 0) -> Tree:
    """Virtual rank v has the children K v + 1 … K v + K, for K = `fanout` (0: 2)."""
    fanout = _checked("fanout", fanout or FANOUT, 1)
    _check_children("fanout", fanout, min(fanout, ranks - 1))

    def children_of(virtual: int) -> range:
        first = fanout * virtual + 1
        return range(first, min(first + fanout, ranks))

    return _tree(ranks, root, children_of)


def knomial(ranks: int, root: int = 0, radix: int = 0) -> Tree:
    """The parent of v is v with its lowest nonzero digit, in base `radix` (0: 4), set to 0.

    Radix 2 gives the binomial tree.
    """
    radix = _checked("radix", radix or RADIX, 2)

    def children_of(virtual: int) -> list[int]:
        weight = 1
        while weight < ranks and virtual // weight % radix == 0:
            weight *= radix
        children: list[int] = []
        while weight > 1:
            weight //= radix
            children += range(virtual + weight, min(virtual + radix * weight, ranks), weight)
        return children

    _check_children("radix", radix, len(children_of(0)))
    return _tree(ranks, root, children_of)


def in_order(ranks: int, root: int = 0) -> Tree:
    """An in-order binary tree of the ranks, with `root` at its root.

    All ranks under the first of two children are lower than the rank itself; all under the second
    are higher. A rank below the root is in the middle of its subtree.
    """
    parent: list[int | None] = [None] * ranks
    children: list[tuple[int, ...]] = [()] * ranks
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


def down(tree: Tree, segments: int) -> list[Step]:
    """The steps of a broadcast of `segments` segments (mpilab_bcast_along).

    As soon as a rank has a segment, it forwards it to all its children at the same time.
    """
    return [
        [Transfer(rank, child, (segment,)) for child in tree.children[rank]]
        for segment in range(segments)
        for rank in tree.top_down
        if tree.children[rank]
    ]


def up(tree: Tree, segments: int) -> list[Step]:
    """The steps of a reduction of `segments` segments (mpilab_reduce_along).

    A rank sends a segment up once it has received that of all its children.
    """
    return [
        [Transfer(rank, parent, (segment,))]
        for segment in range(segments)
        for rank, parent in tree.edges_up
    ]


# What algorithms send along, down in a broadcast and up in a reduction: the tree of a call, and the
# bytes of a segment.
ALONG: dict[str, Callable[[Call], tuple[Tree, int]]] = {
    "chain": lambda call: (chain(call.ranks, call.root, call.fanout), call.segment),
    "pipeline": lambda call: (chain(call.ranks, call.root, 1), call.segment or PIPELINE_SEGMENT),
    "binary": lambda call: (kary(call.ranks, call.root, call.fanout), call.segment),
    "binomial": lambda call: (knomial(call.ranks, call.root, 2), call.segment),
    "knomial": lambda call: (knomial(call.ranks, call.root, call.radix), call.segment),
    "in_order_binary": lambda call: (in_order(call.ranks, call.root), call.segment),
}


def bcast_along(name: str) -> PlanFunction:
    """The plan of a broadcast down the tree `name` of ALONG, in segments."""

    def plan(call: Call) -> Plan:
        tree, pieces = _cut(call, name)
        return Plan(down(tree, len(pieces)), call.sizes(pieces), (call.root,) * len(pieces))

    plan.__name__ = name
    return plan


def reduce_along(name: str) -> PlanFunction:
    """The plan of a reduction up the tree `name` of ALONG, in segments."""

    def plan(call: Call) -> Plan:
        tree, pieces = _cut(call, name)
        return Plan(up(tree, len(pieces)), call.sizes(pieces))

    plan.__name__ = name
    return plan


def _cut(call: Call, name: str) -> tuple[Tree, tuple[int, ...]]:
    """(Tree, elements of each segment) of a call."""
    tree, segment = ALONG[name](call)
    return tree, algorithm.pieces(call.count, call.element_bytes, segment)


def _checked(name: str, value: int, least: int) -> int:
    if value < least:
        raise InputError(
            f"{name}={value} makes no tree; give {least} or more, or 0 for the default"
        )
    return value


def _check_children(name: str, value: int, children: int) -> None:
    if children > MOST_CHILDREN:
        raise InputError(
            f"{name}={value}: a rank would have {children} children, but the kernels allow at most "
            f"{MOST_CHILDREN}; give a smaller {name}"
        )


# The cost of a message sent along a tree in segments, down or up. With S segments of s bytes, of a
# message of m bytes, every formula here is
#
#     a = x + y S        b = x s + y m
#
# where y is the work of the busiest rank for each segment, and x the cost of the first (or last)
# segment on the rest of its path: the pipeline must be filled once. b is exact for a shorter last
# segment, and grows with m, whereas the textbook's (x + y S) (m / S) drops at each new segment.
#
# Source: Nuriyev, Rico-Gallego, Lastovetsky (2022), section 4, with different formulas where our
# kernels differ from Open MPI's; Pjesivac-Grbovic et al. (2007), section 3.


def pipelined_cost(
    x: float, y: float, segments: Quantity, piece: Quantity, length: Quantity
) -> Coefficients:
    """(a, b) of the formula above."""
    return x + y * segments, x * piece + y * length


def chain_down_cost(call: ModelCall, chains: int, default_segment: int = 0) -> Coefficients:
    """x = ⌈(P-1)/K⌉ - 1, y = γ(K+1): the root serves K chains, every other rank serves one rank.

    With K = 1, the pipeline: (P - 2 + S)(α + (m/S) β). Source: Nuriyev et al. (2022), "K-chain";
    Watts, van de Geijn, "A pipelined broadcast for multidimensional meshes", Parallel Processing
    Letters 5(2), 1995.
    """
    chains = min(chains, call.ranks - 1)
    return pipelined_cost(
        ceil_div(call.ranks - 1, chains) - 1,
        call.at_once(chains),
        *call.cut(call.bytes, default_segment),
        call.bytes,
    )


def chain_up_cost(call: ModelCall, chains: int, default_segment: int = 0) -> Coefficients:
    """x = ⌊(P-1)/K⌋ - 1, y = K.

    The root receives one message after another, once the shortest chain has reached it.
    """
    chains = min(chains, call.ranks - 1)
    return pipelined_cost(
        (call.ranks - 1) // chains - 1,
        chains,
        *call.cut(call.bytes, default_segment),
        call.bytes,
    )


def kary_cost(call: ModelCall, at_once: Callable[[int], float]) -> Coefficients:
    """x = (D-2) w(K) + w(k), y = w(K) for a tree of depth D, where w(k) is the cost of k children.

    The deepest level may be incomplete: the first of the ranks above it has k children. On a
    complete tree this is (D - 1 + S) w(K). Source: Nuriyev et al. (2022), "binary tree", for K = 2.
    """
    fanout = min(call.fanout or FANOUT, call.ranks - 1)
    depth = kary_depth(call.ranks, fanout)
    inner = at_once(fanout)
    return pipelined_cost(
        (depth - 2) * inner + at_once(last_level(call.ranks, fanout)) if depth > 1 else 0,
        inner,
        *call.cut(call.bytes),
        call.bytes,
    )


def last_level(ranks: int, fanout: int) -> int:
    """Children of the first rank above the deepest level of a k-ary tree."""
    first, depth = 0, kary_depth(ranks, fanout)
    for _ in range(depth - 1):
        first = fanout * first + 1
    return min(fanout, ranks - 1 - fanout * first)


def knomial_children(ranks: int, radix: int) -> int:
    """Children of the root of a k-nomial tree; no rank has more."""
    children, weight = 0, 1
    while weight < ranks:
        children += min(radix - 1, (ranks - 1) // weight)
        weight *= radix
    return children


def knomial_down_cost(call: ModelCall, radix: int) -> Coefficients:
    """The cost if the root has c children, and each rank serves all its children at the same time.

    one by one   x = 0, y = c: while the root serves the next child, the first one serves its own;
                 ⌈log2 P⌉ (α + mβ) for one segment in a binomial tree. Source: Thakur, Rabenseifner,
                 Gropp (2005), section 4.3.
    with γ       x = Σ γ((D-j)(K-1) + 1) for j = 1 … depth-1, y = γ(c + 1), D = ⌈log_K P⌉: all
                 children of a rank get the message at the same time, and the largest of them has
                 K-1 children fewer. Source: Nuriyev et al. (2022), "binomial tree", for K = 2.
    """
    children = knomial_children(call.ranks, radix)
    digits = ceil_log(call.ranks, radix)
    rest = range(1, knomial_depth(call.ranks, radix))
    filling = sum(call.at_once((digits - level) * (radix - 1)) for level in rest)
    return pipelined_cost(
        0 if call.gamma is None else filling,
        call.at_once(children),
        *call.cut(call.bytes),
        call.bytes,
    )
