"""The traffic matrices that each of Open MPI's own algorithms must produce, for checking runs.

`expected(collective, name, shape)` returns them, for the names that Open MPI lists itself
(`mpilab.kernels.openmpi.algorithms`). Algorithms that send the same messages cannot be
distinguished: this applies to scatter's linear and linear_nb always, and to many algorithms on 2
ranks.

Messages are lists of (source, destination, elements). The function of an algorithm takes a Shape
and returns its messages, or None where Open MPI would run another algorithm instead.

Source: the algorithms as documented in Open MPI 5.0 (ompi/mca/coll/base, one file for each
collective, and coll_base_topo.c for the trees); tests/measure/test_openmpi_traffic.py compares them
with what 5.0.11 sends.
"""

import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from mpilab.algorithms import schedule_of, trees
from mpilab.algorithms.trees import Tree, subtree
from mpilab.algorithms.trees import largest_power_of_two as core_of
from mpilab.cases.case import Case
from mpilab.errors import InputError, MpilabError
from mpilab.kernels import openmpi
from mpilab.kernels.build import KERNELS, need
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE

Message = tuple[int, int, int]  # source, destination, elements
Edge = tuple[int, int]  # parent, child
# Open MPI 5.0: defaults of coll_tuned_*_algorithm_chain_fanout and
# coll_tuned_bcast_algorithm_knomial_radix, and the most children in a tree (MAXTREEFANOUT).
CHAIN_FANOUT, RADIX, MOST_CHILDREN = 4, 4, 32
# Seconds for a run whose messages are counted.
LIMIT_S = 60.0

# Matrices of messages and bytes between ranks, as counted or as expected.


@dataclass(frozen=True, eq=False)
class Counted:
    """messages[s, d] and bytes[s, d], int64 matrices [P, P]: from rank s to rank d."""

    messages: np.ndarray
    bytes: np.ndarray

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counted):
            return NotImplemented
        return np.array_equal(self.messages, other.messages) and np.array_equal(
            self.bytes, other.bytes
        )

    __hash__ = None  # type: ignore[assignment]  # objects compared by their arrays have no hash

    def __add__(self, other: "Counted") -> "Counted":
        return Counted(self.messages + other.messages, self.bytes + other.bytes)

    def describe(self) -> str:
        """'6 messages, 6000 bytes: 1→2 4×, 0→1 2×' (pairs of ranks with most messages first)."""
        pairs = sorted(
            zip(*np.nonzero(self.messages), strict=True), key=lambda pair: -self.messages[pair]
        )
        shown = ", ".join(f"{s}→{d} {self.messages[s, d]}×" for s, d in pairs[:6])
        if len(pairs) > 6:
            shown += f" and {len(pairs) - 6} more pairs"
        return f"{self.messages.sum()} messages, {self.bytes.sum()} bytes" + (
            f": {shown}" if shown else ""
        )


def from_messages(ranks: int, messages: Iterable[Message], element_bytes: int) -> Counted:
    """The Counted of `messages`: an iterable of (source, destination, elements)."""
    counted = Counted(np.zeros((ranks, ranks), np.int64), np.zeros((ranks, ranks), np.int64))
    for source, destination, elements in messages:
        counted.messages[source, destination] += 1
        counted.bytes[source, destination] += elements * element_bytes
    return counted


def read(directory: str | Path, number: int, ranks: int) -> Counted:
    """The Counted of monitored case `number`, kept by
    `mpilab.runners.mpirun.run_cases(keep=directory)`.

    Raises InputError if a rank's file is missing or incomplete.
    """
    counted = from_messages(ranks, (), 1)
    for rank in range(ranks):
        path = Path(directory) / f"{number}.{rank}.mon"
        data = path.read_bytes() if path.exists() else b""
        words = np.frombuffer(data[: len(data) // 8 * 8], np.int64)
        if data[:8] != b"MPILABM1" or len(words) != 4 + 2 * ranks or words[1] != rank:
            raise InputError(f"{path}: the count of messages is incomplete; run the case again")
        counted.messages[rank] = words[4 : 4 + ranks]
        counted.bytes[rank] = words[4 + ranks :]
    return counted


def count(function: str, ranks: int, bytes: int, *, segment: int = 0) -> Counted:
    """Run a kernel that calls MPI's own collective, such as bcast_openmpi, and count its messages
    below MPI: Counted.

    bytes     of a block, or of the whole message in a bcast.
    segment   bytes, for kernels that cut a message; 0: their default.

    Nothing is timed, so there may be more ranks than cores. Raises MpilabError if the run fails.
    """
    case = Case(
        function.partition("_")[0],
        ranks,
        bytes,
        "byte",
        segment=segment,
        record=False,
        monitor=True,
        function=function,
    )
    with tempfile.TemporaryDirectory(prefix="mpilab-counted-") as kept:
        (result,) = run_cases(
            need(KERNELS), "", [case], limit=LIMIT_S, keep=kept, settings=openmpi.CHOOSING
        )
        if result.outcome != DONE:
            raise MpilabError(
                f"{function} with {case.describe()}: {result.outcome}: "
                f"{result.hang.describe() if result.hang else result.detail or 'no reason given'}"
            )
        return read(kept, 0, ranks)


# The arguments of Open MPI's collectives, and how these segment a message.


@dataclass(frozen=True)
class Shape:
    """One call: `count` elements of `element_bytes` bytes on `ranks` ranks.

    count is that of a block for allgather, gather and scatter, otherwise of the whole message.
    segment is in bytes; for segment, fanout and radix, 0 is Open MPI's default: no segments, 4, 4.
    """

    ranks: int
    count: int = 0
    element_bytes: int = 1
    root: int = 0
    segment: int = 0
    fanout: int = 0
    radix: int = 0

    def rank(self, virtual: int) -> int:
        """The rank with the virtual number `virtual`, counted from the root."""
        return (virtual + self.root) % self.ranks

    def piece(self) -> int:
        """Elements of a segment: the number nearest to the segment size, or the whole message.

        A segment size below one element, or not below the message, has no effect.
        """
        if not self.element_bytes <= self.segment < self.element_bytes * self.count:
            return self.count
        whole, rest = divmod(self.segment, self.element_bytes)
        return whole + (rest > self.element_bytes // 2)

    def pieces(self) -> list[int]:
        """Elements of every segment of the message, in order."""
        return cut(self.count, self.piece())


def cut(count: int, piece: int) -> list[int]:
    """Sizes of the pieces when cutting `count` elements by `piece`; the last may be smaller."""
    return [min(piece, count - at) for at in range(0, count, piece)] if piece else []


def spread(count: int, parts: int) -> list[int]:
    """Sizes of `parts` blocks of `count` elements, the first ones larger by one: list of int."""
    least, larger = divmod(count, parts)
    return [least + (part < larger) for part in range(parts)]


# Messages split into one block per rank: scatter and allgather, halving and gather.


def _blocks(shape: Shape) -> list[int]:
    """Elements of each rank's block: ceil(count / ranks) each until none are left."""
    size = -(-shape.count // shape.ranks)
    return [max(0, min(size, shape.count - v * size)) for v in range(shape.ranks)]


def scatter_blocks(shape: Shape) -> list[Message]:
    """Down an in-order binomial tree; a rank with only empty blocks below it gets no message."""
    blocks, messages = _blocks(shape), []
    for child in range(1, shape.ranks):
        lowest = child & -child
        elements = sum(blocks[child : child + lowest])
        if elements:
            messages.append((shape.rank(child - lowest), shape.rank(child), elements))
    return messages


def ring_allgather(shape: Shape) -> list[Message]:
    """In each of P - 1 steps, each rank forwards the block that it received last."""
    blocks = _blocks(shape)
    return [
        (shape.rank(v), shape.rank(v + 1), blocks[(v - step) % shape.ranks])
        for step in range(shape.ranks - 1)
        for v in range(shape.ranks)
    ]


def doubling_allgather(shape: Shape) -> list[Message]:
    """Partners at distance 1, 2, 4 … exchange everything they have.

    A rank whose partner does not exist gets that partner's data from a rank of its own group, by
    halving the group.
    """
    ranks, blocks, messages = shape.ranks, _blocks(shape), []

    def group(first: int, size: int) -> int:
        return sum(blocks[first : first + size])

    distance = 1
    while distance < ranks:
        for v in range(ranks):
            mine, partner = v - v % distance, v ^ distance
            if partner < ranks:
                messages.append((shape.rank(v), shape.rank(partner), group(mine, distance)))
            theirs = mine ^ distance
            served = ranks - mine - distance  # the ranks of my group that have a partner
            if theirs + distance <= ranks:
                continue
            step = distance >> 1
            while step:
                other, first = v ^ step, v - v % (2 * step)
                if v < other and v < first + served <= other:
                    messages.append((shape.rank(v), shape.rank(other), group(theirs, distance)))
                step >>= 1
        distance <<= 1
    return messages


def fold(shape: Shape) -> list[Message]:
    """The first ranks reduce halves in pairs, so that a power of two ranks remains."""
    lower = shape.count // 2
    upper = shape.count - lower
    messages = []
    for even in range(0, 2 * (shape.ranks - core_of(shape.ranks)), 2):
        messages += [(even, even + 1, upper), (even + 1, even, lower), (even + 1, even, upper)]
    return messages


def left_rank(shape: Shape, new: int) -> int:
    """The rank with the number `new` among those that remain after folding."""
    rest = shape.ranks - core_of(shape.ranks)
    return 2 * new if new < rest else new + rest


def windows(shape: Shape) -> tuple[list[list[int]], list[list[int]]]:
    """(what each remaining rank keeps, what it sends) in each step of the halving, in elements.

    Two lists [step][new number]. In step i the partner is at distance 2^i; the rank with the lower
    number keeps the first half.
    """
    core = core_of(shape.ranks)
    size, kept, given = [shape.count] * core, [], []
    for step in range(core.bit_length() - 1):
        upper = [bool(new >> step & 1) for new in range(core)]
        first = [whole // 2 for whole in size]
        given.append([f if up else w - f for w, f, up in zip(size, first, upper, strict=True)])
        size = [whole - gone for whole, gone in zip(size, given[-1], strict=True)]
        kept.append(size)
    return kept, given


def halving(shape: Shape) -> list[Message]:
    """Folding, then ranks exchange halves of what they have, at distance 1, 2, 4 …"""
    _, given = windows(shape)
    return fold(shape) + [
        (left_rank(shape, new), left_rank(shape, new ^ 1 << step), elements)
        for step, row in enumerate(given)
        for new, elements in enumerate(row)
    ]


def gather_halves(shape: Shape) -> list[Message]:
    """After halving, gather the blocks up a binomial tree to the root.

    A folded root takes the place of rank 0 and gets that rank's block from it.
    """
    kept, _ = windows(shape)
    core, messages = core_of(shape.ranks), []
    rest = shape.ranks - core
    is_folded = shape.root < 2 * rest and shape.root % 2 == 1
    if is_folded:
        top = 0
        messages.append((0, shape.root, kept[-1][0]))
    else:
        top = shape.root // 2 if shape.root < 2 * rest else shape.root - rest

    def rank(new: int) -> int:
        return shape.root if is_folded and new == 0 else left_rank(shape, new)

    for new in range(core):
        for step in reversed(range(core.bit_length() - 1)):
            partner = new ^ 1 << step
            if partner >> step == top >> step:  # the root is in the partner's half
                messages.append((rank(new), rank(partner), kept[step][new]))
                break
    return messages


# The trees of Open MPI's collectives: lists of (parent, child), counted from the root. Some differ
# from ours (src_c/common/tree): in the binomial tree of bcast, the parent lacks the child's
# *highest* bit; the binary tree has odd ranks under 1 and even ranks under 2.


def _edges(tree: Tree) -> list[Edge]:
    return [(parent, v) for v, parent in enumerate(tree.parent) if parent is not None]


def chain(ranks: int, fanout: int) -> list[Edge]:
    """`fanout` chains of almost equal length, like ours; at most 32."""
    return _edges(trees.chain(ranks, fanout=min(fanout, MOST_CHILDREN)))


def pipeline(ranks: int) -> list[Edge]:
    """One chain."""
    return chain(ranks, 1)


def binary(ranks: int) -> list[Edge]:
    """Rank v, on a level with 2^l ranks, is the parent of v + 2^l and v + 2^(l+1)."""
    edges = []
    for v in range(ranks):
        width = 1 << ((v + 1).bit_length() - 1)
        edges += [(v, child) for child in (v + width, v + 2 * width) if child < ranks]
    return edges


def binomial(ranks: int) -> list[Edge]:
    """The tree of bcast: a rank's parent lacks its highest bit."""
    return [(v - (1 << (v.bit_length() - 1)), v) for v in range(1, ranks)]


def in_order_binomial(ranks: int) -> list[Edge]:
    """Like ours, a rank's parent lacks its lowest bit: a rank's descendants follow it."""
    return knomial(ranks, 2)


def knomial(ranks: int, radix: int) -> list[Edge]:
    """Like ours, a rank's parent lacks its lowest nonzero digit in base `radix`."""
    return _edges(trees.knomial(ranks, radix=radix))


def in_order_binary(ranks: int) -> list[Edge]:
    """An in-order binary tree under the *last* rank; its ranks are not counted from the root."""
    edges = []

    def build(first: int, size: int) -> None:
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


# The algorithms of bcast, reduce, gather and scatter, under Open MPI's names.


def _down(shape: Shape, edges: Iterable[Edge]) -> list[Message]:
    """Send every segment along every edge, from parent to child."""
    return [
        (shape.rank(parent), shape.rank(child), piece)
        for parent, child in edges
        for piece in shape.pieces()
    ]


def _up(messages: Iterable[Message]) -> list[Message]:
    return [(child, parent, elements) for parent, child, elements in messages]


# --- bcast


def bcast_linear(shape: Shape) -> list[Message]:
    """The root sends the whole message to every other rank."""
    return [(shape.root, shape.rank(v), shape.count) for v in range(1, shape.ranks)]


def bcast_chain(shape: Shape) -> list[Message]:
    """Down several chains, in segments."""
    return _down(shape, chain(shape.ranks, shape.fanout or CHAIN_FANOUT))


def bcast_pipeline(shape: Shape) -> list[Message]:
    """Down one chain, in segments."""
    return _down(shape, pipeline(shape.ranks))


def bcast_binary(shape: Shape) -> list[Message]:
    """Down a binary tree, in segments."""
    return _down(shape, binary(shape.ranks))


def bcast_split_binary(shape: Shape) -> list[Message] | None:
    """One half down the odd ranks' tree, the other down the even ranks'; then pairs exchange them.

    None if a half is smaller than a segment, or empty.
    """
    halves = (shape.count - shape.count // 2, shape.count // 2)
    size = shape.element_bytes
    if halves[1] == 0 or shape.segment > halves[1] * size:
        return None
    piece = max(shape.segment, size) // size if shape.segment else shape.count
    messages = []
    for parent, child in binary(shape.ranks):
        half = (child + 1) % 2
        messages += [
            (shape.rank(parent), shape.rank(child), elements)
            for elements in cut(halves[half], piece)
        ]
    last = shape.ranks - 1
    for odd in range(1, last, 2):
        messages.append((shape.rank(odd), shape.rank(odd + 1), halves[0]))
        messages.append((shape.rank(odd + 1), shape.rank(odd), halves[1]))
    if shape.ranks % 2 == 0:  # the last rank has no partner: the root sends it the other half
        messages.append((shape.root, shape.rank(last), halves[1]))
    return messages


def bcast_binomial(shape: Shape) -> list[Message]:
    """Down a binomial tree, in segments."""
    return _down(shape, binomial(shape.ranks))


def bcast_knomial(shape: Shape) -> list[Message]:
    """Down a k-nomial tree, in segments."""
    return _down(shape, knomial(shape.ranks, shape.radix or RADIX))


def bcast_scatter_allgather(shape: Shape) -> list[Message] | None:
    """Scatter, then recursive doubling; None with fewer elements than ranks."""
    if shape.count < shape.ranks:
        return None
    return scatter_blocks(shape) + doubling_allgather(shape)


def bcast_scatter_allgather_ring(shape: Shape) -> list[Message] | None:
    """Scatter, then a ring; None with fewer elements than ranks."""
    if shape.count < shape.ranks:
        return None
    return scatter_blocks(shape) + ring_allgather(shape)


# --- reduce


def reduce_linear(shape: Shape) -> list[Message]:
    """Every rank sends its data to the root."""
    return _up(bcast_linear(shape))


def reduce_chain(shape: Shape) -> list[Message]:
    """Up several chains, in segments."""
    return _up(bcast_chain(shape))


def reduce_pipeline(shape: Shape) -> list[Message]:
    """Up one chain, in segments."""
    return _up(bcast_pipeline(shape))


def reduce_binary(shape: Shape) -> list[Message]:
    """Up a binary tree, in segments."""
    return _up(bcast_binary(shape))


def reduce_binomial(shape: Shape) -> list[Message]:
    """Up an in-order binomial tree, in segments."""
    return _up(_down(shape, in_order_binomial(shape.ranks)))


def reduce_in_order_binary(shape: Shape) -> list[Message]:
    """Up a binary tree to the last rank, which sends the result to the root."""
    messages = [
        (child, parent, piece)
        for parent, child in in_order_binary(shape.ranks)
        for piece in shape.pieces()
    ]
    last = shape.ranks - 1
    return messages + [(last, shape.root, shape.count)] * (shape.root != last)


def reduce_rabenseifner(shape: Shape) -> list[Message] | None:
    """Recursive halving, then a binomial gather; None with fewer elements than ranks that halve."""
    if shape.ranks < 2 or shape.count < core_of(shape.ranks):
        return None
    return halving(shape) + gather_halves(shape)


# --- gather and scatter


def gather_linear(shape: Shape) -> list[Message]:
    """Every rank sends its block to the root."""
    return _up(bcast_linear(shape))


def gather_binomial(shape: Shape) -> list[Message]:
    """Up an in-order binomial tree, all blocks under a rank in one message."""
    return _up(scatter_binomial(shape))


def gather_linear_sync(shape: Shape) -> list[Message]:
    """The root asks one rank after another, and each sends a first segment and the rest."""
    first, messages = shape.piece(), []
    for v in range(1, shape.ranks):
        messages += [
            (shape.root, shape.rank(v), 0),
            (shape.rank(v), shape.root, first),
            (shape.rank(v), shape.root, shape.count - first),
        ]
    return messages


def scatter_linear(shape: Shape) -> list[Message]:
    """The root sends every rank its block (non-blocking in linear_nb: the same messages)."""
    return bcast_linear(shape)


def scatter_binomial(shape: Shape) -> list[Message]:
    """Down an in-order binomial tree, all blocks under a rank in one message."""
    return [
        (shape.rank(parent), shape.rank(child), len(subtree(child, shape.ranks)) * shape.count)
        for parent, child in in_order_binomial(shape.ranks)
    ]


# The algorithms of barrier, allgather and allreduce. Schedules that equal those of our kernels come
# from mpilab.algorithms.


def _as_ours(collective: str, algorithm: str, shape: Shape) -> list[Message]:
    """The messages of our kernel, each with the elements of its blocks."""
    plan = schedule_of(collective, algorithm, shape.ranks)
    return [
        (transfer.source, transfer.dest, len(transfer.blocks) * shape.count)
        for transfer in plan.transfers()
    ]


# --- barrier: the count is 0


def barrier_linear(shape: Shape) -> list[Message]:
    """Same as ours."""
    return _as_ours("barrier", "linear", shape)


def barrier_double_ring(shape: Shape) -> list[Message]:
    """Same as ours."""
    return _as_ours("barrier", "double_ring", shape)


def barrier_recursive_doubling(shape: Shape) -> list[Message]:
    """Same as ours."""
    return _as_ours("barrier", "recursive_doubling", shape)


def barrier_bruck(shape: Shape) -> list[Message]:
    """Same as our dissemination barrier."""
    return _as_ours("barrier", "dissemination", shape)


def barrier_two_proc(shape: Shape) -> list[Message] | None:
    """Two ranks exchange messages; None for any other number of ranks."""
    return [(0, 1, 0), (1, 0, 0)] if shape.ranks == 2 else None


def barrier_tree(shape: Shape) -> list[Message]:
    """Same as ours."""
    return _as_ours("barrier", "tree", shape)


# --- allgather


def allgather_bruck(shape: Shape) -> list[Message]:
    """Same as ours."""
    return _as_ours("allgather", "bruck", shape)


def allgather_recursive_doubling(shape: Shape) -> list[Message] | None:
    """Same as ours; None unless P is a power of two (otherwise Open MPI runs bruck)."""
    if core_of(shape.ranks) != shape.ranks:
        return None
    return _as_ours("allgather", "recursive_doubling", shape)


def allgather_ring(shape: Shape) -> list[Message]:
    """Same as ours."""
    return _as_ours("allgather", "ring", shape)


def allgather_neighbor(shape: Shape) -> list[Message] | None:
    """Same as ours; None for an odd number of ranks (Open MPI then runs the ring)."""
    return _as_ours("allgather", "neighbor_exchange", shape) if shape.ranks % 2 == 0 else None


def allgather_two_proc(shape: Shape) -> list[Message] | None:
    """Two ranks exchange their blocks; None for any other number of ranks."""
    return [(0, 1, shape.count), (1, 0, shape.count)] if shape.ranks == 2 else None


def allgather_sparbit(shape: Shape) -> list[Message]:
    """As many blocks as in Bruck's algorithm, one by one, at distances from the largest to 1.

    Source: Loch, Koslovski, "Sparbit: a new logarithmic-cost and data locality-aware MPI Allgather
    algorithm", SBAC-PAD 2021.
    """
    ranks, held, messages = shape.ranks, 1, []
    for step in reversed(range((ranks - 1).bit_length())):
        distance = 1 << step
        # A rank holds every (2 distance)-th block. One of them would arrive twice, unless the
        # blocks at this distance complete the ring of ranks.
        sent = -(-ranks // distance) - held
        messages += [(v, (v + distance) % ranks, shape.count) for v in range(ranks)] * sent
        held += sent
    return messages


def allgather_linear(shape: Shape) -> list[list[Message]]:
    """A gather to rank 0, then a bcast, each as Open MPI decides: all possible combinations."""
    gathered = _known(shape, gather_linear, gather_binomial, gather_linear_sync)
    whole = _with_count(shape, shape.count * shape.ranks)
    return _pairs(gathered, _known(whole, *_BCASTS))


# --- allreduce

_BCASTS = (
    bcast_linear,
    bcast_chain,
    bcast_pipeline,
    bcast_split_binary,
    bcast_binary,
    bcast_binomial,
    bcast_knomial,
    bcast_scatter_allgather,
    bcast_scatter_allgather_ring,
)
_REDUCES = (
    reduce_linear,
    reduce_chain,
    reduce_pipeline,
    reduce_binary,
    reduce_binomial,
    reduce_in_order_binary,
    reduce_rabenseifner,
)


def _with_count(shape: Shape, count: int) -> Shape:
    return shape.__class__(shape.ranks, count, shape.element_bytes)


def _known(
    shape: Shape, *algorithms: Callable[[Shape], list[Message] | None]
) -> list[list[Message]]:
    plain = _with_count(shape, shape.count)
    return [messages for algorithm in algorithms if (messages := algorithm(plain)) is not None]


def _pairs(firsts: list[list[Message]], seconds: list[list[Message]]) -> list[list[Message]]:
    return [first + second for first in firsts for second in seconds]


def allreduce_linear(shape: Shape) -> list[Message]:
    """A linear reduce to rank 0, then a linear bcast from there."""
    to_0 = [(v, 0, shape.count) for v in range(1, shape.ranks)]
    return to_0 + [(0, v, shape.count) for v in range(1, shape.ranks)]


def allreduce_nonoverlapping(shape: Shape) -> list[list[Message]]:
    """A reduce, then a bcast, each as Open MPI decides: all possible combinations."""
    return _pairs(_known(shape, *_REDUCES), _known(shape, *_BCASTS))


def allreduce_recursive_doubling(shape: Shape) -> list[Message]:
    """Some even ranks send everything to odd ones; then partners at distance 1, 2, 4 … exchange
    everything."""
    core, messages = core_of(shape.ranks), []
    rest = shape.ranks - core
    for even in range(0, 2 * rest, 2):
        messages += [(even, even + 1, shape.count), (even + 1, even, shape.count)]

    def rank(new: int) -> int:
        return 2 * new + 1 if new < rest else new + rest

    for step in range(core.bit_length() - 1):
        messages += [(rank(new), rank(new ^ 1 << step), shape.count) for new in range(core)]
    return messages


def allreduce_ring(shape: Shape) -> list[Message] | None:
    """Twice P - 1 steps around the ring; None with fewer elements than ranks."""
    return _ring(shape, 1) if shape.count >= shape.ranks else None


def allreduce_segmented_ring(shape: Shape) -> list[Message] | None:
    """The ring, but with every block sent in segments in the first pass.

    None if the message is smaller than one segment for each rank (then it is the ring).
    """
    ranks, count, round_trip = shape.ranks, shape.count, shape.ranks * shape.piece()
    if count < round_trip:
        return None
    phases, rest = divmod(count, round_trip)
    return _ring(shape, phases + (rest >= ranks and rest > round_trip // 2))


def _ring(shape: Shape, phases: int) -> list[Message]:
    ranks, blocks, messages = shape.ranks, spread(shape.count, shape.ranks), []
    for v in range(ranks):
        right = (v + 1) % ranks
        for step in range(ranks - 1):
            messages += [(v, right, part) for part in spread(blocks[(v - step) % ranks], phases)]
            messages.append((v, right, blocks[(v + 1 - step) % ranks]))
    return messages


def allreduce_rabenseifner(shape: Shape) -> list[Message] | None:
    """Recursive halving and doubling; folded ranks get the result at the end.

    None with fewer elements than ranks that halve.
    """
    if shape.count < core_of(shape.ranks):
        return None
    kept, _ = windows(shape)
    messages = halving(shape)
    for step, row in enumerate(kept):
        messages += [
            (left_rank(shape, new), left_rank(shape, new ^ 1 << step), elements)
            for new, elements in enumerate(row)
        ]
    folded = len(fold(shape)) // 3
    return messages + [(2 * pair, 2 * pair + 1, shape.count) for pair in range(folded)]


PATTERNS: dict[str, dict[str, Callable[[Shape], list | None]]] = {
    "bcast": {
        "basic_linear": bcast_linear,
        "chain": bcast_chain,
        "pipeline": bcast_pipeline,
        "split_binary_tree": bcast_split_binary,
        "binary_tree": bcast_binary,
        "binomial": bcast_binomial,
        "knomial": bcast_knomial,
        "scatter_allgather": bcast_scatter_allgather,
        "scatter_allgather_ring": bcast_scatter_allgather_ring,
    },
    "reduce": {
        "linear": reduce_linear,
        "chain": reduce_chain,
        "pipeline": reduce_pipeline,
        "binary": reduce_binary,
        "binomial": reduce_binomial,
        "in-order_binary": reduce_in_order_binary,
        "rabenseifner": reduce_rabenseifner,
    },
    "gather": {
        "basic_linear": gather_linear,
        "binomial": gather_binomial,
        "linear_sync": gather_linear_sync,
    },
    "scatter": {
        "basic_linear": scatter_linear,
        "binomial": scatter_binomial,
        "linear_nb": scatter_linear,
    },
    "barrier": {
        "linear": barrier_linear,
        "double_ring": barrier_double_ring,
        "recursive_doubling": barrier_recursive_doubling,
        "bruck": barrier_bruck,
        "two_proc": barrier_two_proc,
        "tree": barrier_tree,
    },
    "allgather": {
        "linear": allgather_linear,
        "bruck": allgather_bruck,
        "recursive_doubling": allgather_recursive_doubling,
        "ring": allgather_ring,
        "neighbor": allgather_neighbor,
        "two_proc": allgather_two_proc,
        "sparbit": allgather_sparbit,
    },
    "allreduce": {
        "basic_linear": allreduce_linear,
        "nonoverlapping": allreduce_nonoverlapping,
        "recursive_doubling": allreduce_recursive_doubling,
        "ring": allreduce_ring,
        "segmented_ring": allreduce_segmented_ring,
        "rabenseifner": allreduce_rabenseifner,
    },
}
# These call two other collectives whose algorithms Open MPI chooses: they return all possibilities.
_COMPOSED = (allgather_linear, allreduce_nonoverlapping)


@cache
def expected(collective: str, name: str, shape: Shape) -> tuple[Counted, ...]:
    """Everything that algorithm `name` of `collective` may send for this Shape: tuple of Counted.

    Usually one; several for an algorithm that calls other collectives and lets Open MPI choose
    theirs; () if it is not defined for this shape and Open MPI runs another algorithm instead. A
    single rank sends nothing. Raises InputError for an algorithm whose messages are not known here.
    """
    try:
        algorithm = PATTERNS[collective][name]
    except KeyError:
        raise InputError(
            f"Open MPI's {collective} algorithm {name!r}: its messages are not known here, so it "
            "cannot be distinguished from others; known are "
            f"{', '.join(PATTERNS.get(collective, ()))}"
        ) from None
    if shape.ranks == 1:
        return (from_messages(1, (), 1),)
    found = algorithm(shape)
    if found is None:
        return ()
    lists = found if algorithm in _COMPOSED else [found]
    return tuple(from_messages(shape.ranks, messages, shape.element_bytes) for messages in lists)


def matching(collective: str, counted: Counted | None, shape: Shape) -> list[str]:
    """Names of all algorithms of `collective` that may have sent the counted messages."""
    return [
        name
        for name in PATTERNS.get(collective, ())
        if any(counted == pattern for pattern in expected(collective, name, shape))
    ]
