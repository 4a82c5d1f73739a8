"""What a kernel left in memory, and what is wrong with it.

The harness writes an Output for each rank; `compare` finds its Differences from what the case
should leave.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import COLLECTIVES, Case, Memory, block_places, gap_places
from mpilab.cases.data import GUARD_BYTES
from mpilab.errors import InputError


@dataclass(frozen=True)
class Output:
    """The output of one rank: its return code, its memory and the time of each call.

    held   the most bytes of other ranks' data that the kernel held at a time, as far as it counts
           them (src_c/common/exchange/exchange.c).
    """

    rank: int
    returned: int
    received: Memory
    sent: Memory
    spans_ns: NDArray[np.int64] = field(repr=False)  # [repetitions, 2]: begin, end
    held: int = 0

    @classmethod
    def read(cls, path: Path | str) -> "Output":
        """Read an output file of the harness; InputError if it is invalid or incomplete."""
        with open(path, "rb") as file:
            return cls.parse(file.read(), path)

    @classmethod
    def parse(cls, data: bytes, path: Path | str) -> "Output":
        """The same from `data`, the content of the file that is, or was, at `path`."""
        words = np.frombuffer(data[:64], np.int64) if len(data) >= 64 else np.zeros(8, np.int64)
        _, rank, _, returned, received, sent, repetitions, held = (int(word) for word in words)
        whole = 64 + received + sent + 16 * repetitions
        if data[:8] != b"MPILABO1" or min(received, sent, repetitions) < 0 or len(data) != whole:
            raise InputError(f"{path}: not a whole output file of the harness; run the case again")
        memory = np.frombuffer(data, np.uint8, received + sent, 64)
        spans = np.frombuffer(data, np.int64, 2 * repetitions, 64 + received + sent)
        spans = spans.reshape(-1, 2)
        return cls(rank, returned, memory[:received], memory[received:], spans, held)


@dataclass(frozen=True)
class Difference:
    """What is wrong in one rank's memory; `blocks` are the receive blocks with wrong data."""

    rank: int
    blocks: tuple[int, ...] = ()
    untouched: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def describe(self) -> str:
        """A clause such as 'rank 2: blocks 0, 3 are wrong (3 was never written)'."""
        words = []
        if self.blocks:
            plural = len(self.blocks) > 1
            words.append(
                f"block{'s' * plural} {_listing(self.blocks)} {'are' if plural else 'is'} wrong"
            )
            if self.untouched:
                never = (
                    "none of it was"
                    if self.untouched == self.blocks and not plural
                    else (
                        "none of them was"
                        if self.untouched == self.blocks
                        else f"{_listing(self.untouched)} "
                        f"{'were' if len(self.untouched) > 1 else 'was'} never"
                    )
                )
                words[-1] += f" ({never} written)"
        return f"rank {self.rank}: " + "; ".join([*words, *self.notes])


def _listing(numbers: Sequence[int], most: int = 8) -> str:
    shown = ", ".join(map(str, numbers[:most]))
    return shown if len(numbers) <= most else f"{shown}, … ({len(numbers)} in all)"


def compare(case: Case, outputs: Iterable[Output]) -> list[Difference]:
    """Compare the outputs of all ranks with what the case should leave: list of Difference.

    Every byte counts: the data, the holes of the datatype, the guard zones around both buffers, and
    the send buffer, which a kernel must not change.
    """
    before = case.before()
    expected = COLLECTIVES[case.collective].after(case, before)
    return [
        difference
        for rank, output in enumerate(outputs)
        if (difference := _compare_rank(case, rank, output, before[rank], expected[rank]))
        is not None
    ]


def _compare_rank(
    case: Case, rank: int, output: Output, before: tuple[Memory, Memory], expected: Memory
) -> Difference | None:
    sent_before, received_before = before
    if output.received.shape != expected.shape or output.sent.shape != sent_before.shape:
        return Difference(rank, notes=("the output has the wrong size",))
    wrong = output.received != expected
    notes = []
    if (output.sent != sent_before).any():
        notes.append("the send buffer was changed")
    elif not wrong.any():
        return None
    data = np.zeros_like(wrong)
    blocks, untouched = [], []
    count = COLLECTIVES[case.collective].blocks(case, rank).received
    for index in range(count):
        places = block_places(case, index, rank)
        data[places] = True
        if wrong[places].any():
            blocks.append(index)
            if (output.received[places] == received_before[places]).all():
                untouched.append(index)
    outside = wrong & ~data
    guard = np.zeros_like(wrong)
    guard[:GUARD_BYTES] = guard[len(guard) - GUARD_BYTES :] = True
    if (outside & guard).any():
        notes.append("memory outside of the receive buffer was overwritten")
    gaps = np.zeros_like(wrong)
    gaps[gap_places(case, rank)] = True
    if (outside & gaps).any():
        notes.append("the gaps between the blocks were overwritten")
    if (outside & ~guard & ~gaps).any():
        notes.append("the holes between the elements of the datatype were overwritten")
    if not blocks and not notes:
        return None
    return Difference(rank, tuple(blocks), tuple(untouched), tuple(notes))
