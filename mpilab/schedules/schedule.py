"""What a schedule is, who holds which block after each round, and what it all adds up to."""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError


@dataclass(frozen=True)
class Transfer:
    """One message: `source` sends the blocks `blocks` to `dest`, in that order.

    What a block is, the schedule says; in a reduction, a message carries partial results of it. A
    message without blocks carries nothing but the word that its sender has come so far.
    """

    source: int
    dest: int
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """Every message of one algorithm on `ranks` ranks.

    rounds   one tuple of Transfers for each round. What a rank sends in a round, it held before
             that round; the messages of one round therefore don't wait for each other. In a real
             run a rank that has nothing to do in a round goes ahead to the next one at once.
    sizes    bytes of each block; None where all have the same number of bytes, whatever it is.
    owners   the rank that has each block at the start. None: block i is rank i's. (): every rank
             has a part of every block, to be reduced (or there are no blocks, in a barrier).
    names    what the blocks are called in figures; None for their numbers.
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
        """All transfers, round after round."""
        return [transfer for transfers in self.rounds for transfer in transfers]

    @property
    def blocks(self):
        """How many blocks there are."""
        return self.ranks if self.sizes is None else len(self.sizes)

    @property
    def reduces(self):
        """Do ranks put parts of a block together (reduce, allreduce), rather than hand it on?"""
        return self.owners == () and self.blocks > 0

    def name(self, block):
        """What a block is called."""
        return str(block) if self.names is None else self.names[block]


@dataclass(frozen=True, eq=False)
class Counts:
    """What a schedule adds up to with blocks of a given size.

    messages_between[s, d], bytes_between[s, d]: int64 matrices [P, P], from rank s to rank d.
    """

    rounds: int
    messages_between: np.ndarray
    bytes_between: np.ndarray

    @property
    def messages(self):
        """Messages of all ranks together."""
        return int(self.messages_between.sum())

    @property
    def total_bytes(self):
        """Bytes of all messages together."""
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
    """Who holds what: bool array [rounds + 1, rank, block]; row 0 is the start.

    Raises InputError for a reduction and for a barrier, whose ranks hold parts of what is to come:
    see `parts`.
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
    """Whose parts of each block a rank has: bool array [rounds + 1, rank, block, whose]; row 0 is
    the start, when every rank has its own part of every block.

    For reductions, and for barriers: there is one block, the news of who has come, and every
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
    """Bytes of one message; `block_bytes` only where the schedule does not know its blocks' sizes.

    Raises InputError where the size of blocks is told twice, or not at all.
    """
    return sum(_sizes(schedule, block_bytes)[block] for block in transfer.blocks)


def counts(schedule, block_bytes=None):
    """Counts of `schedule`; with blocks of `block_bytes` bytes where it does not know their sizes.

    Raises InputError where the size of blocks is told twice, or not at all.
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
