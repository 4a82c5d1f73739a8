"""What a schedule is, who holds which block after each round, and what it all adds up to."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Transfer:
    """One message: `source` sends the blocks `blocks` to `dest`, in that order.

    A block is named by the rank that owned it at the start.
    """

    source: int
    dest: int
    blocks: tuple[int, ...]


@dataclass(frozen=True)
class Schedule:
    """Every message of one algorithm on `ranks` ranks.

    rounds: one tuple of Transfers for each round. What a rank sends in a round, it held before
    that round; the messages of one round therefore don't wait for each other. In a real run a
    rank that has nothing to do in a round goes ahead to the next one at once.
    """

    algorithm: str
    ranks: int
    rounds: tuple[tuple[Transfer, ...], ...]

    def transfers(self):
        """All transfers, round after round."""
        return [transfer for transfers in self.rounds for transfer in transfers]


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

    At the start every rank holds its own block, as in an allgather.
    """
    held = np.zeros((len(schedule.rounds) + 1, schedule.ranks, schedule.ranks), dtype=bool)
    held[0] = np.eye(schedule.ranks, dtype=bool)
    for number, transfers in enumerate(schedule.rounds, start=1):
        held[number] = held[number - 1]
        for transfer in transfers:
            held[number, transfer.dest, list(transfer.blocks)] = True
    return held


def counts(schedule, block_bytes):
    """Counts of `schedule` with blocks of `block_bytes` bytes."""
    messages = np.zeros((schedule.ranks, schedule.ranks), dtype=np.int64)
    blocks = np.zeros_like(messages)
    for transfer in schedule.transfers():
        messages[transfer.source, transfer.dest] += 1
        blocks[transfer.source, transfer.dest] += len(transfer.blocks)
    return Counts(len(schedule.rounds), messages, blocks * block_bytes)
