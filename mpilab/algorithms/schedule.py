"""Schedules as data: messages in rounds, the blocks that each rank holds after each, and counts."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from mpilab.algorithms.formula import segments
from mpilab.errors import InputError

# Cutting a message into segments of a given size, or into a number of (almost) equal blocks.


def pieces(count, element_bytes, segment_bytes):
    """Elements of each segment of a message of `count` (mpilab_cut in src_c/common/tree/tree.h).

    A segment has as many whole elements as fit into `segment_bytes`, but at least one; only the
    last one may be shorter. With segment_bytes 0, or without elements, there is one segment.
    """
    number = segments(count, element_bytes, segment_bytes)
    each = max(1, segment_bytes // element_bytes) if number > 1 else count
    return (each,) * (number - 1) + (count - (number - 1) * each,)


def blocks(count, parts):
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

    def transfers(self):
        """All transfers, round by round."""
        return [transfer for transfers in self.rounds for transfer in transfers]

    @property
    def blocks(self):
        """Number of blocks."""
        return self.ranks if self.sizes is None else len(self.sizes)

    @property
    def reduces(self):
        """Do ranks combine parts of a block (reduce, allreduce), rather than forward it?"""
        return self.owners == () and self.blocks > 0

    def name(self, block):
        """Label of a block."""
        return str(block) if self.names is None else self.names[block]


@dataclass(frozen=True, eq=False)
class Counts:
    """Totals of a schedule with blocks of a given size.

    messages_between[s, d], bytes_between[s, d]: int64 matrices [P, P], from rank s to rank d.
    """

    rounds: int
    messages_between: np.ndarray
    bytes_between: np.ndarray

    @property
    def messages(self):
        """Messages of all ranks."""
        return int(self.messages_between.sum())

    @property
    def total_bytes(self):
        """Bytes of all messages."""
        return int(self.bytes_between.sum())

    @property
    def max_bytes_sent(self):
        """Bytes sent by the rank that sends most."""
        return int(self.bytes_between.sum(axis=1).max(initial=0))

    @property
    def max_bytes_received(self):
        """Bytes received by the rank that receives most."""
        return int(self.bytes_between.sum(axis=0).max(initial=0))


def holdings(schedule):
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


def parts(schedule):
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


def message_bytes(schedule, transfer, block_bytes=None):
    """Bytes of one message; `block_bytes` only if the schedule has no block sizes.

    Raises InputError if the size of blocks is given twice, or not at all.
    """
    return sum(_sizes(schedule, block_bytes)[block] for block in transfer.blocks)


def counts(schedule, block_bytes=None):
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


def _sizes(schedule, block_bytes):
    if (schedule.sizes is None) == (block_bytes is None):
        which = "needs the size of a block" if block_bytes is None else "knows its blocks' sizes"
        remedy = "give block_bytes" if block_bytes is None else "leave block_bytes out"
        raise InputError(
            f"block_bytes={block_bytes}: the schedule of {schedule.collective} "
            f"{schedule.algorithm} {which}; {remedy}"
        )
    return schedule.sizes if block_bytes is None else (block_bytes,) * schedule.ranks


# From *steps* to rounds. The messages of a step start together; a rank that takes part in a step
# finishes it before its next one, other ranks go ahead. So a blocking send is a step of its own, an
# exchange (MPI_Sendrecv) of all ranks is one step, and so are sends that a rank starts together
# before it waits for them.


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

    def real(self, virtual):
        """The rank whose virtual rank, counted from the root, is `virtual`."""
        return (virtual + self.root) % self.ranks

    def sizes(self, elements):
        """Bytes of the parts of a message, from the elements of each."""
        return tuple(number * self.element_bytes for number in elements)


@dataclass(frozen=True)
class Plan:
    """What an algorithm sends: steps, and the blocks in them.

    steps    lists of Transfers, in an order that every rank follows.
    sizes    bytes of each block.
    owners   the rank that has each block at the start; () if all have a part of it (reduce,
             allreduce) or there are no blocks (barrier).
    names    labels of the blocks in figures; () for their numbers.
    """

    steps: list[list[Transfer]]
    sizes: tuple[int, ...] = ()
    owners: tuple[int, ...] = field(default=())
    names: tuple[str, ...] = field(default=())


def in_rounds(ranks, steps):
    """The Transfers of `steps` in rounds, each sorted by sender: a tuple of tuples.

    The round of a message is 1 + the latest round among the messages that its sender had finished
    sending or receiving before: its depth in Lamport's happens-before order, exactly as in a
    recording (mpilab.trace.recording.Recording).
    """
    rounds = []
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
