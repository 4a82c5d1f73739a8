"""Schedules as data: messages in rounds, the blocks that each rank holds after each, and counts."""

from dataclasses import dataclass
from itertools import pairwise

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
    message without blocks only tells that its sender has come this far.
    """

    source: int
    dest: int
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """Every message of one algorithm on `ranks` ranks.

    rounds   one tuple of Transfers for each round. A rank held what it sends in a round before that
             round, so messages of one round do not wait for each other. In a real run, a rank that
             has nothing to do in a round goes ahead to the next one at once.
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
            f"holdings of {schedule.collective} {schedule.algorithm}: its ranks do not hand blocks "
            "on, they put parts together; take mpilab.schedules.parts"
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
    barriers; in a barrier there is one block, the news of which ranks have entered, and every
    message carries it. Raises InputError for any other collective (see `holdings`).
    """
    if schedule.owners != ():
        raise InputError(
            f"parts of {schedule.collective} {schedule.algorithm}: its ranks hand blocks on as "
            "they are; take mpilab.schedules.holdings"
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
    remedy = "give block_bytes" if block_bytes is None else "leave block_bytes out"
    raise InputError(
        f"block_bytes={block_bytes}: the schedule of {schedule.collective} "
        f"{schedule.algorithm} {which}; {remedy}"
    )
