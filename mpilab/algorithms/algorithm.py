"""What a module of this package states about an algorithm: its schedule, cost, tunables and look.

    def ring(call: Call) -> Plan: ...                    who sends what, in which step
    def ring_cost(call: ModelCall) -> Coefficients: ...  a and b of T = a α + b β

    ALGORITHMS = table(Algorithm(ring, ring_cost, GREEN, openmpi="ring"), ...)

`in_rounds` turns the steps of a plan into the rounds of a Schedule: messages in rounds,
the blocks that each rank holds after each, and counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms.formula import segments
from mpilab.errors import InputError

# Cutting a message into segments of a given size, or into a number of (almost) equal blocks.


def pieces(count: int, element_bytes: int, segment_bytes: int) -> tuple[int, ...]:
    """Elements of each segment of a message (mpilab_cut in src_c/common/tree/tree.h).

    A segment has as many whole elements of the `count` as fit into `segment_bytes`, but at least
    one; only the last one may be shorter. With segment_bytes 0, or without elements, there is one
    segment.
    """
    number = segments(count, element_bytes, segment_bytes)
    each = max(1, segment_bytes // element_bytes) if number > 1 else count
    return (each,) * (number - 1) + (count - (number - 1) * each,)


def blocks(count: int, parts: int) -> tuple[int, ...]:
    """Elements of each of `parts` blocks of `count` elements.

    They are as equal as possible; some are empty if there are too few elements. The same as
    mpilab_block_begin in src_c/common/tree/blocks.h.
    """
    ends = [count * index // parts for index in range(parts + 1)]
    return tuple(end - begin for begin, end in pairwise(ends))


@dataclass(frozen=True)
class Transfer:
    """One message: `source` sends the blocks `blocks` to `dest`, in that order.

    The schedule defines what a block is; in a reduction, a message carries partial results of it. A
    message without blocks only tells the receiver that its sender has reached this point.
    """

    source: int
    dest: int
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """Every message of one algorithm on `ranks` ranks.

    rounds   one tuple of Transfers for each round. A rank holds what it sends in a round before
             that round begins, so messages of one round do not wait for each other. In a real run,
             a rank that has nothing to do in a round proceeds to the next one at once.
    sizes    bytes of each block; None if all have the same, unspecified number of bytes.
    owners   the rank that has each block at the start. None: block i is rank i's. (): every rank
             has a part of every block, to be reduced (or there are no blocks, in a barrier).
    names    labels of the blocks in figures; None for their numbers.
    """

    algorithm: str
    ranks: int
    rounds: tuple[tuple[Transfer, ...], ...]
    sizes: tuple[int, ...] | None = None
    collective: str = "allgather"
    root: int = 0
    owners: tuple[int, ...] | None = None
    names: tuple[str, ...] | None = None

    def transfers(self) -> list[Transfer]:
        """All transfers, round by round."""
        return [transfer for transfers in self.rounds for transfer in transfers]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.ranks if self.sizes is None else len(self.sizes)

    @property
    def reduces(self) -> bool:
        """Do ranks combine parts of a block (reduce, allreduce), rather than forward it?"""
        return self.owners == () and self.blocks > 0

    def name(self, block: int) -> str:
        """Label of a block."""
        return str(block) if self.names is None else self.names[block]


@dataclass(frozen=True, eq=False)
class Counts:
    """Totals of a schedule with blocks of a given size.

    messages_between[s, d], bytes_between[s, d]: int64 matrices [P, P], from rank s to rank d.
    """

    rounds: int
    messages_between: NDArray[np.int64]
    bytes_between: NDArray[np.int64]

    @property
    def messages(self) -> int:
        """Messages of all ranks."""
        return int(self.messages_between.sum())

    @property
    def total_bytes(self) -> int:
        """Bytes of all messages."""
        return int(self.bytes_between.sum())

    @property
    def max_bytes_sent(self) -> int:
        """Bytes sent by the rank that sends most."""
        return int(self.bytes_between.sum(axis=1).max(initial=0))

    @property
    def max_bytes_received(self) -> int:
        """Bytes received by the rank that receives most."""
        return int(self.bytes_between.sum(axis=0).max(initial=0))


def holdings(schedule: Schedule) -> NDArray[np.bool_]:
    """Which blocks each rank holds: bool array [rounds + 1, rank, block]; row 0 is the start.

    Raises InputError for a reduction or a barrier, whose ranks hold parts of blocks: see `parts`.
    """
    if schedule.owners == ():
        raise InputError(
            f"holdings of {schedule.collective} {schedule.algorithm}: its ranks combine parts "
            "instead of forwarding blocks; use mpilab.schedules.parts"
        )
    held = np.zeros((len(schedule.rounds) + 1, schedule.ranks, schedule.blocks), dtype=bool)
    owners = range(schedule.ranks) if schedule.owners is None else schedule.owners
    held[0, list(owners), range(schedule.blocks)] = True
    for number, transfers in enumerate(schedule.rounds, start=1):
        held[number] = held[number - 1]
        for transfer in transfers:
            held[number, transfer.dest, list(transfer.blocks)] = True
    return held


def parts(schedule: Schedule) -> NDArray[np.bool_]:
    """Whose parts of each block a rank has: bool array [rounds + 1, rank, block, whose].

    Row 0 is the start, when every rank has its own part of every block. This is for reductions and
    barriers; in a barrier there is one block, which says which ranks have entered, and every
    message carries it. Raises InputError for any other collective (see `holdings`).
    """
    if schedule.owners != ():
        raise InputError(
            f"parts of {schedule.collective} {schedule.algorithm}: its ranks forward blocks "
            "unchanged; use mpilab.schedules.holdings"
        )
    blocks = max(1, schedule.blocks)
    has = np.zeros((len(schedule.rounds) + 1, schedule.ranks, blocks, schedule.ranks), dtype=bool)
    has[0] = np.eye(schedule.ranks, dtype=bool)[:, None, :]
    for number, transfers in enumerate(schedule.rounds, start=1):
        has[number] = has[number - 1]
        for transfer in transfers:
            moved = list(transfer.blocks) or [0]
            has[number, transfer.dest, moved] |= has[number - 1, transfer.source, moved]
    return has


def message_bytes(schedule: Schedule, transfer: Transfer, block_bytes: int | None = None) -> int:
    """Bytes of one message; `block_bytes` only if the schedule has no block sizes.

    Raises InputError if the size of blocks is given twice, or not at all.
    """
    return sum(_sizes(schedule, block_bytes)[block] for block in transfer.blocks)


def counts(schedule: Schedule, block_bytes: int | None = None) -> Counts:
    """The Counts of `schedule`; with blocks of `block_bytes` bytes if it has no block sizes.

    Raises InputError if the size of blocks is given twice, or not at all.
    """
    sizes = _sizes(schedule, block_bytes)
    messages = np.zeros((schedule.ranks, schedule.ranks), dtype=np.int64)
    volume = np.zeros_like(messages)
    for transfer in schedule.transfers():
        messages[transfer.source, transfer.dest] += 1
        volume[transfer.source, transfer.dest] += sum(sizes[block] for block in transfer.blocks)
    return Counts(len(schedule.rounds), messages, volume)


def _sizes(schedule: Schedule, block_bytes: int | None) -> tuple[int, ...]:
    if schedule.sizes is None and block_bytes is not None:
        return (block_bytes,) * schedule.ranks
    if schedule.sizes is not None and block_bytes is None:
        return schedule.sizes
    which = "needs the size of a block" if block_bytes is None else "knows its blocks' sizes"
    remedy = "give block_bytes" if block_bytes is None else "omit block_bytes"
    raise InputError(
        f"block_bytes={block_bytes}: the schedule of {schedule.collective} "
        f"{schedule.algorithm} {which}; {remedy}"
    )


# What a module states about an algorithm.


class Look(NamedTuple):
    """Color and marker of an algorithm in figures."""

    color: str
    marker: str


# A look stands for a message pattern, so that an algorithm looks the same in every figure of every
# lab, whatever the collective and the author. Two algorithms of one collective share neither color
# nor marker. Each color has a contrast of 3:1 on white and on JupyterLab's dark background; markers
# are for readers who can't tell the colors apart.
RED = Look("#d4553e", "triangle-up")
AMBER = Look("#b8740c", "square")
OLIVE = Look("#8a8412", "hexagon")
GREEN = Look("#2f9150", "diamond")
TEAL = Look("#0c8f9e", "x")
BLUE = Look("#3b7dd8", "circle")
PURPLE = Look("#9b5fd0", "cross")
PINK = Look("#c9498f", "triangle-down")
BROWN = Look("#8c7464", "pentagon")
GRAY = Look("#7a7e85", "octagon")


@dataclass(frozen=True)
class Call:
    """The call of a collective for which a schedule is made.

    count           elements, of a block or of the whole message (see
                    mpilab.algorithms.schedule_of).
    element_bytes   bytes of one element.
    segment, fanout, radix   as in mpilab_tuning of src_c/include/mpilab.h; 0 is the default.
    """

    ranks: int
    root: int = 0
    count: int = 1
    element_bytes: int = 1
    segment: int = 0
    fanout: int = 0
    radix: int = 0

    def real(self, virtual: int) -> int:
        """The rank whose virtual rank (counted from the root) is `virtual`."""
        return (virtual + self.root) % self.ranks

    def sizes(self, elements: Sequence[int]) -> tuple[int, ...]:
        """Bytes of the parts of a message, from the elements of each."""
        return tuple(number * self.element_bytes for number in elements)


# The messages of a step start together; a rank that takes part in a step finishes it before its
# next one; other ranks proceed. So a blocking send is a separate step, an exchange (MPI_Sendrecv)
# of all ranks is one step, and so are sends that a rank starts together before it waits for them.
Step = list[Transfer]


@dataclass(frozen=True)
class Plan:
    """What an algorithm sends: steps, and the blocks in them.

    steps    in an order that every rank follows.
    sizes    bytes of each block.
    owners   the rank that has each block at the start; () if all have a part of it (reduce,
             allreduce) or there are no blocks (barrier).
    names    labels of the blocks in figures; () for their numbers.
    """

    steps: list[Step]
    sizes: tuple[int, ...] = ()
    owners: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


def in_rounds(ranks: int, steps: Sequence[Step]) -> tuple[tuple[Transfer, ...], ...]:
    """The Transfers of `steps` in rounds, each sorted by sender.

    The round of a message is 1 + the latest round among the messages that its sender had finished
    sending or receiving before: its depth in Lamport's happens-before order, exactly as in a
    recording (mpilab.trace.recording.Recording).
    """
    rounds: list[Step] = []
    depth = [0] * ranks
    for step in steps:
        begun = [(depth[transfer.source] + 1, transfer) for transfer in step]
        for number, transfer in begun:
            if number > len(rounds):
                rounds.append([])
            rounds[number - 1].append(transfer)
            for rank in (transfer.source, transfer.dest):
                depth[rank] = max(depth[rank], number)
    # The sort is stable: messages of a rank stay in the order in which it starts them.
    return tuple(tuple(sorted(one, key=lambda transfer: transfer.source)) for one in rounds)


# a number, or an array with one entry for each number of bytes
Quantity = float | NDArray[np.float64]
# (a, b) of T = a α + b β: a in messages, b in bytes
Coefficients = tuple[Quantity, Quantity]
GammaFunction = Callable[[int], float]


@dataclass(frozen=True)
class ModelCall:
    """The arguments of one call in the cost formulas.

    ranks     P, 2 or more.
    bytes     m, an array of floats: of a block, or of the whole message (see mpilab.models.costs).
    segment, fanout, radix   0: the algorithm's default.
    gamma     γ(P), or None: messages leave a rank one by one.
    own_defaults   segment 0 means our kernel's default; otherwise it means no segments, as in Open
                   MPI.
    """

    ranks: int
    bytes: NDArray[np.float64]
    segment: float = 0
    fanout: int = 0
    radix: int = 0
    gamma: GammaFunction | None = None
    own_defaults: bool = True

    def at_once(self, receivers: int) -> float:
        """Cost of serving `receivers` receivers at the same time, in units of serving one.

        It is γ(receivers + 1), or their number if messages leave one by one.
        """
        return float(receivers) if self.gamma is None else float(self.gamma(receivers + 1))

    def cut(
        self, length: NDArray[np.float64], default: int = 0
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """(S, bytes of a full segment) if `length` bytes are cut into segments."""
        segment = self.segment or (default if self.own_defaults else 0)
        if not segment:
            return np.ones_like(length), length
        return np.maximum(1, np.ceil(length / segment)), np.minimum(length, segment)


PlanFunction = Callable[[Call], Plan]
CostFunction = Callable[[ModelCall], Coefficients]

# Parts of a message, each of which is cut into segments, from the number of ranks; the notation is
# that of the kernels' headers (mpilab.algorithms.formula). FIRST: only the first part of each block
# has its own size.
FIRST = "first"
PARTS: dict[str, Callable[[int], int]] = {
    "m": lambda ranks: 1,
    "m/2": lambda ranks: 2,
    "m/P": lambda ranks: ranks,
    FIRST: lambda ranks: 1,
}


@dataclass(frozen=True)
class Algorithm:
    """One algorithm of a collective; its name is that of the kernel and of the function `plan`.

    plan       what it sends.
    cost       its cost, in closed form.
    look       color and marker in figures.
    cut        what is cut into segments, a key of PARTS; "" for algorithms without the tunable.
    fanout, radix   defaults of these tunables; 0 for algorithms without them.
    openmpi    its name in Open MPI 5 (`ompi_info --param coll tuned -l 9`); "" if Open MPI does not
               have it.
    """

    plan: PlanFunction
    cost: CostFunction
    look: Look
    cut: str = ""
    fanout: int = 0
    radix: int = 0
    openmpi: str = ""

    @property
    def name(self) -> str:
        """The kernel's name, without the collective."""
        return self.plan.__name__

    @property
    def tunables(self) -> tuple[str, ...]:
        """Which of 'segment', 'fanout', 'radix' the algorithm uses."""
        used = {"segment": self.cut, "fanout": self.fanout, "radix": self.radix}
        return tuple(name for name, value in used.items() if value)


def table(*algorithms: Algorithm) -> dict[str, Algorithm]:
    """The algorithms by name, in this order."""
    return {algorithm.name: algorithm for algorithm in algorithms}
