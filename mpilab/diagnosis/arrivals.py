"""Where received blocks went: receives from any rank, and all receives into one block."""

from dataclasses import replace

import numpy as np

from mpilab.diagnosis import words
from mpilab.recording import ANY, RECEIVES

TRUNCATED = "message truncated"


def received(evidence, rank, from_any=False):
    """[Call]: the receives of `rank` that got another rank's data; `from_any`: of any sender."""
    recorded = evidence.ranks[rank]
    if recorded is None:
        return []
    records = recorded.records
    chosen = (records["flags"] & RECEIVES != 0) & (records["got_bytes"] > 0)
    chosen &= (records["done_ns"] != 0) & (records["got_peer"] >= 0)
    chosen &= records["got_peer"] != rank
    if from_any:
        chosen &= records["peer"] == ANY
    return evidence.calls(rank, np.flatnonzero(chosen).tolist())


def into_one_place(evidence, codes, untouched):
    """(hint, Places) where every rank with wrong blocks has received two messages or more into one
    block, its own or the one with the same number everywhere; None otherwise.

    codes [ranks, blocks] are those of mpilab.diagnosis.wrong_result.grid.
    """
    ranks = np.flatnonzero((codes != 0).any(axis=1)).tolist()
    calls = {rank: received(evidence, rank) for rank in ranks}
    written = {
        rank: [b for b in np.flatnonzero(codes[rank] != untouched).tolist() if b != rank]
        for rank in ranks
    }
    if any(len(calls[rank]) < 2 or len(written[rank]) > 1 for rank in ranks):
        return None
    same = {block for blocks in written.values() for block in blocks}
    if len(same) > 1 or any(not written[rank] and same - {rank} for rank in ranks):
        return None
    place = min(same, default="own")
    if not any(codes[rank, rank if place == "own" else place] for rank in ranks):
        return None  # what is there is right: the others went elsewhere
    calls = [call for of_rank in calls.values() for call in of_rank]
    what = "the place of the rank's own block" if place == "own" else f"the place of block {place}"
    lines = {evidence.spot(call.site) for call in calls}
    where = f" in {calls[0].name}{evidence.at(calls[0])}" if len(lines) == 1 else ""
    hint = (
        f"Every block was received into {what}, one over the other: look at the index of the "
        f"block{where}. A block belongs into the place of the rank that it comes from."
    )
    return hint, evidence.places(calls, "receive it here")


def from_any_rank(evidence, displaced):
    """(hint, Places) where ranks of `displaced`, which hold blocks in the wrong place, have taken
    two messages or more of any sender; None otherwise."""
    calls = _of_any(evidence, displaced)
    if not calls:
        return None
    hint = (
        f"{_lines(evidence, calls)} from any rank (MPI_ANY_SOURCE), and messages come in any "
        "order: store the block at the place of status.MPI_SOURCE, or name the source."
    )
    return hint, evidence.places(calls, "receive from any rank here")


def note(evidence, ranks):
    """A sentence on receives from any rank on `ranks`, wrong for whatever reason, or ''."""
    calls = _of_any(evidence, ranks)
    told = calls and f"{_lines(evidence, calls)} from any rank (MPI_ANY_SOURCE)"
    return f"{told}: a message of a later step may come first. Name the source." if told else ""


def _of_any(evidence, ranks):
    """The receives from any sender on those of `ranks` where they took messages of several."""
    calls = []
    for rank in ranks:
        mine = received(evidence, rank, from_any=True)
        if len({call.got_peer for call in mine}) > 1:
            calls += mine
    return calls


def _lines(evidence, calls):
    """'Line 3 receives', 'Lines 3 and 5 receive'."""
    lines = sorted({evidence.line(call) for call in calls} - {0})
    if not lines:
        return f"{calls[0].name} receives"
    return (
        f"Line{'s' * (len(lines) > 1)} {words.listing(lines[:4])} receive{'s' * (len(lines) < 2)}"
    )


def sharpened(evidence, found):
    """The Diagnosis `found` of a message that was too long, with a better hint where the receive
    would have taken any rank's; any other as it is."""
    if found.pattern != TRUNCATED:
        return found
    for rank in found.ranks:
        for call in received(evidence, rank, from_any=True):
            if call.error and call.got_bytes > call.bytes and call.got_peer < evidence.size:
                hint = (
                    f"{call.name}{evidence.at(call)} receives from any rank (MPI_ANY_SOURCE), and "
                    f"has taken rank {call.got_peer}'s message, which was meant for another "
                    "receive, maybe of a later step. Name the source."
                )  # fmt: skip
                return replace(found, hint=hint)
    return found
