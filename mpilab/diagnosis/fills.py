"""Whose memory a wrong block holds.

The harness fills every buffer with data of its own, so what was sent or moved before the right data
had come is known wherever it lies.
"""

from collections import Counter
from typing import NamedTuple

import numpy as np

from mpilab.diagnosis import deliveries
from mpilab.expected import COLLECTIVES, block_places

LOOKED_AT, BEGINNING = 4096, 16
LEAST_BYTES = 4  # fewer may be alike by chance
TOO_EARLY, WRONG_BLOCK, OWN_BLOCK = (
    "a block sent too early", "the wrong block sent", "own block missing")  # fmt: skip


class Fill(NamedTuple):
    """Block `block` of `rank` holds what was in block `slot` of rank `source` before the call."""

    rank: int
    block: int
    source: int
    slot: int

    @property
    def pattern(self):
        """The mistake that it looks like."""
        if self.block == self.source != self.rank:
            return OWN_BLOCK if self.slot == self.source else WRONG_BLOCK
        return TOO_EARLY


def fills(case, outputs, wrong):
    """[Fill] of those of the blocks `wrong`, (rank, block), that hold a buffer's first contents."""
    if case.block_bytes < LEAST_BYTES or not wrong:
        return []
    held = {}  # the beginning of a block is enough to find it, and much less to keep
    for rank, block in wrong[:LOOKED_AT]:
        memory, places = outputs[rank].received, block_places(case, block, rank)
        if len(places) >= LEAST_BYTES and places[-1] < memory.size:
            held.setdefault(memory[places[:BEGINNING]].tobytes(), []).append((rank, block))
    found = []
    for source in range(case.ranks):
        before = case.regions(source)[1]
        for slot in range(COLLECTIVES[case.collective].blocks(case, source).received):
            if case.in_place and slot == source:
                continue
            data = before[block_places(case, slot, source)]
            for rank, block in held.get(data[:BEGINNING].tobytes(), ()):
                whole = outputs[rank].received[block_places(case, block, rank)]
                if (rank, block) != (source, slot) and np.array_equal(whole, data):
                    found.append(Fill(rank, block, source, slot))
    return sorted(found)


def explain(evidence, found):
    """(pattern, hint, Places) of most of the Fills `found`."""
    pattern = Counter(fill.pattern for fill in found).most_common(1)[0][0]
    fill = next(fill for fill in found if fill.pattern == pattern)
    whose = "its own" if fill.source == fill.rank else f"rank {fill.source}'s"
    hint = (
        f"Rank {fill.rank}'s block {fill.block} holds what was in {whose} block {fill.slot} "
        "before anything had been put there: "
    )
    calls = deliveries.sends(evidence, fill.source)
    lines = {evidence.spot(call.site) for call in calls}
    at = evidence.at(calls[0]) if len(lines) == 1 else ""
    if pattern == OWN_BLOCK:
        hint += (
            f"rank {fill.source} sent its own block{at} before it was put into the receive "
            "buffer: place_own_block in mpilab.h does that."
        )
    elif pattern == WRONG_BLOCK:
        hint += (
            f"rank {fill.source} sent block {fill.slot}{at} instead of its own one: "
            "block(recvbuf, rank, recvcount, recvtype)."
        )
    elif fill.source == fill.rank:
        hint += "it was moved before the data had come."
    else:
        hint += (
            f"it was sent on{at} before it had come there, or the wrong blocks were "
            "sent. Wait for a block before you send it on."
        )
    senders = {fill.source for fill in found if fill.source != fill.rank}
    places = [
        call for source in sorted(senders)[:64] for call in deliveries.sends(evidence, source)
    ]
    if fill.source == fill.rank or len({evidence.spot(call.site) for call in places}) > 1:
        return pattern, hint, ()  # which of several lines it was, nobody knows
    return pattern, hint, evidence.places(places, "send it here")
