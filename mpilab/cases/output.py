"""What a kernel left in memory, and what is wrong with it.

The harness writes an Output for each rank; `compare` finds its Differences from what the case
should leave.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import COLLECTIVES, SEED_STEP, Case, Memory, block_places, gap_places
from mpilab.cases.data import GUARD_BYTES
from mpilab.errors import InputError

_HEADER_BYTES = 72


@dataclass(frozen=True)
class Output:
    """The output of one rank: its return code, its memory and the time of each call.

    checksums   with fresh data, those of the receive and the send memory after each call, warm-up
           included: uint64 [calls, 2].
    held   the most bytes of other ranks' data that the kernel held at once, as far as it counts
           them (src_c/common/exchange/exchange.c).
    """

    rank: int
    returned: int
    received: Memory
    sent: Memory
    spans_ns: NDArray[np.int64] = field(repr=False)  # [repetitions, 2]: begin, end
    held: int = 0
    checksums: NDArray[np.uint64] = field(
        default_factory=lambda: np.zeros((0, 2), np.uint64), repr=False
    )

    @classmethod
    def read(cls, path: Path | str) -> "Output":
        """Read an output file of the harness; InputError if it is invalid or incomplete."""
        with open(path, "rb") as file:
            return cls.parse(file.read(), path)

    @classmethod
    def parse(cls, data: bytes, path: Path | str) -> "Output":
        """The same from `data`, the content of the file that is, or was, at `path`."""
        whole = len(data) >= _HEADER_BYTES and data[:8] == b"MPILABO2"
        header = data[:_HEADER_BYTES] if whole else bytes(_HEADER_BYTES)
        words = (int(word) for word in np.frombuffer(header, np.int64))
        _, rank, _, returned, received, sent, repetitions, held, checked = words
        after = _HEADER_BYTES + received + sent
        at = after + 16 * repetitions
        is_whole = whole and len(data) == at + 16 * checked
        if not is_whole or min(received, sent, repetitions, checked) < 0:
            raise InputError(f"{path}: the harness's output file is incomplete; run the case again")
        memory = np.frombuffer(data, np.uint8, received + sent, _HEADER_BYTES)
        spans = np.frombuffer(data, np.int64, 2 * repetitions, after).reshape(-1, 2)
        checksums = np.frombuffer(data, np.uint64, 2 * checked, at).reshape(-1, 2)
        return cls(rank, returned, memory[:received], memory[received:], spans, held, checksums)


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


def wrong_calls(case: Case, outputs: Sequence[Output]) -> dict[int, tuple[int, ...]]:
    """{call: ranks} of the calls of which only checksums are kept and that left a wrong result.

    Calls count from 0: all of a case with fresh data, those of a sequence before the last. Every
    byte counts, as in `compare`.
    """
    wrong = {}
    calls = case.earlier() or [case.of_call(call) for call in range(case.calls)]
    for call, one in enumerate(calls):
        before = one.before()
        expected = COLLECTIVES[one.collective].after(one, before)
        ranks = tuple(
            rank
            for rank, output in enumerate(outputs[: one.ranks])
            if len(output.checksums) != len(calls)
            or output.checksums[call].tolist()
            != [_checksum(expected[rank]), _checksum(before[rank][0])]
        )
        if ranks:
            wrong[call] = ranks
    return wrong


def _checksum(memory: Memory) -> int:
    """Like region_checksum in src_c/runtime/harness/buffers.c."""
    words = np.zeros(-(-len(memory) // 8), np.uint64)
    words.view(np.uint8)[: len(memory)] = memory
    words ^= np.arange(1, len(words) + 1, dtype=np.uint64) * np.uint64(SEED_STEP)
    words = (words ^ words >> np.uint64(32)) * np.uint64(0xD6E8FEB86659FD93)
    return int((words ^ words >> np.uint64(32)).sum(dtype=np.uint64))


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
        notes.append("memory outside the receive buffer was overwritten")
    gaps = np.zeros_like(wrong)
    gaps[gap_places(case, rank)] = True
    if (outside & gaps).any():
        notes.append("the gaps between the blocks were overwritten")
    if (outside & ~guard & ~gaps).any():
        notes.append("the holes between the elements of the datatype were overwritten")
    if not blocks and not notes:
        return None
    return Difference(rank, tuple(blocks), tuple(untouched), tuple(notes))
