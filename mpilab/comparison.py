"""What a kernel left behind, held against what it should have left."""

from dataclasses import dataclass

import numpy as np

from mpilab.expected import COLLECTIVES, GUARD_BYTES, block_places, gap_places


@dataclass(frozen=True)
class Difference:
    """What is wrong in one rank's memory; `blocks` are the receive blocks with wrong data."""

    rank: int
    blocks: tuple = ()
    untouched: tuple = ()
    notes: tuple = ()

    def describe(self):
        """One sentence part: 'rank 2: blocks 0, 3 are wrong (3 was never written)'."""
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


def _listing(numbers, most=8):
    shown = ", ".join(map(str, numbers[:most]))
    return shown if len(numbers) <= most else f"{shown}, … ({len(numbers)} in all)"


def compare(case, outputs):
    """Hold the outputs of all ranks against what the case should leave: list of Difference.

    Every byte counts: the data, the holes of the datatype, the guard zones around both buffers,
    and the send buffer, which a kernel must not change.
    """
    before = case.before()
    expected = COLLECTIVES[case.collective].after(case, before)
    return [
        difference
        for rank, output in enumerate(outputs)
        if (difference := _compare_rank(case, rank, output, before[rank], expected[rank]))
        is not None
    ]


def _compare_rank(case, rank, output, before, expected):
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
