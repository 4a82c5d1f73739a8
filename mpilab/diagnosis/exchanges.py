"""Wrong results of an alltoallv: blocks of all lengths, which lie anywhere."""

from collections import Counter
from typing import NamedTuple

import numpy as np

from mpilab import exchange
from mpilab.datatypes import datatype
from mpilab.diagnosis import words
from mpilab.expected import GUARD_BYTES, block_places

DISPLACED, ANOTHER, WRONG_BLOCK, PART = (
    "blocks in the wrong place", "the block of another rank", "the wrong block sent",
    "part of the message missing")  # fmt: skip
LEAST_BYTES = 4  # fewer may be alike by chance
LOOKED_AT = 256  # so many wrong blocks are looked for elsewhere


class Finding(NamedTuple):
    """What is known of the wrong block of `source` on `rank`.

    at   DISPLACED: the element of the receive buffer that it begins at; ANOTHER: the rank that it
         is meant for; WRONG_BLOCK: the element of the source's send buffer that came instead; PART:
         how many elements have come.
    """

    pattern: str
    rank: int
    source: int
    at: int


def explain(case, outputs, differences):
    """(pattern, hint) of what most of the wrong blocks are; ('', '') where nobody knows."""
    swapped = _swapped(case, outputs)
    if swapped:
        return PART, swapped
    wrong = [(d.rank, block) for d in differences for block in d.blocks][:LOOKED_AT]
    found = [one for place in wrong if (one := _find(case, outputs, *place)) is not None]
    if 2 * len(found) < len(wrong) or not found:
        return "", ""
    pattern = Counter(one.pattern for one in found).most_common(1)[0][0]
    first = next(one for one in found if one.pattern == pattern)
    return pattern, _HINTS[pattern](case, first)


def _swapped(case, outputs):
    """A hint where each pair has exchanged as much as belongs to its other direction, or ''."""
    counts = exchange.elements(case)
    short = np.argwhere((counts > counts.T) & ~np.eye(case.ranks, dtype=bool)).tolist()
    come = [_come(case, outputs, rank, source) for source, rank in short[:LOOKED_AT]]
    wanted = [counts[rank, source] for source, rank in short[:LOOKED_AT]]
    exact = [n == other for n, other in zip(come, wanted, strict=True)]
    # What is too long for its place goes into the next one, and hides what has come there.
    if 2 * sum(exact) <= len(come) or not all(
        n == -1 or is_exact for n, is_exact in zip(come, exact, strict=True)
    ):
        return ""
    source, rank = short[0]
    return (
        f"From rank {source} to rank {rank} go {words.number(int(counts[source, rank]), 'element')}"
        f", and {counts[rank, source]} from rank {rank} to rank {source}; each pair has exchanged "
        "what belongs to its other direction. Send sendcounts[dest], and receive "
        "recvcounts[source]."
    )


def _come(case, outputs, rank, source):
    """How many elements of a block have come; -1 where nobody knows."""
    memory, places = outputs[rank].received, block_places(case, source, rank)
    right = case.expected()[rank]
    if memory.shape != right.shape:
        return -1
    return _beginning(case, memory[places], right[places], case.regions(rank)[1][places])


def _find(case, outputs, rank, source):
    """The Finding of one wrong block, or None."""
    memory, places = outputs[rank].received, block_places(case, source, rank)
    right, before = case.expected()[rank][places], case.regions(rank)[1][places]
    if memory.shape != case.expected()[rank].shape or len(places) < LEAST_BYTES:
        return None
    got = memory[places]
    at = _element_at(case, memory, right)
    if at >= 0:
        return Finding(DISPLACED, rank, source, at)
    if (got == before).all():
        return None
    elements = _beginning(case, got, right, before)
    if elements > 0:
        return Finding(PART, rank, source, elements)
    for other in range(case.ranks):
        meant = case.expected()[other][block_places(case, source, other)]
        length = min(len(meant), len(got))
        if other != rank and length >= LEAST_BYTES and (meant[:length] == got[:length]).all():
            return Finding(ANOTHER, rank, source, other)
    if not case.in_place and datatype(case.datatype)[2] == 1:
        sent = case.regions(source)[0]
        at = _element_at(case, sent, got)
        if at >= 0:
            return Finding(WRONG_BLOCK, rank, source, at)
    return None


def _beginning(case, got, right, before):
    """How many elements of a block have come, if all others are as they were before; else -1."""
    size = datatype(case.datatype)[1].size
    is_right = (got == right).reshape(-1, size).all(axis=1)
    elements = len(is_right) if is_right.all() else int(np.argmin(is_right))
    rest = slice(elements * size, None)
    return elements if (got[rest] == before[rest]).all() else -1


def _element_at(case, memory, data):
    """The element of a buffer at which `data` begin; -1 where they are nowhere."""
    layout = datatype(case.datatype)[1]
    if layout.extent != layout.size:
        return -1
    at = memory[GUARD_BYTES:-GUARD_BYTES].tobytes().find(data.tobytes())
    return at // layout.extent if at >= 0 and at % layout.extent == 0 else -1


def _displaced(case, found):
    belongs = exchange.received(case, found.rank).begins[found.source]
    return (
        f"On rank {found.rank}, the block of rank {found.source} begins at element {found.at} of "
        f"the receive buffer; it belongs to element rdispls[{found.source}] = {belongs}. Blocks "
        "may lie in any order, and apart from each other: rdispls alone tells where."
    )


def _of_another(case, found):
    to = "copy to itself" if found.at == found.source else f"send to rank {found.at}"
    return (
        f"Rank {found.rank} has got what rank {found.source} should {to}. What "
        f"is for rank {found.rank} begins at element sdispls[{found.rank}] of the send buffer: "
        "look at the index of sdispls and sendcounts, which is that of the destination."
    )


def _wrong_block(case, found):
    begin = exchange.sent(case, found.source).begins[found.rank]
    return (
        f"What rank {found.source} has sent to rank {found.rank} begins at element {found.at} of "
        f"its send buffer; the block begins at element sdispls[{found.rank}] = {begin}. Send "
        "buffer and receive buffer have displacements of their own, in elements, not bytes."
    )


def _part(case, found):
    count = int(exchange.received(case, found.rank).counts[found.source])
    return (
        f"Rank {found.rank} has got {found.at} of the {words.number(count, 'element')} that rank "
        f"{found.source} has for it (recvcounts[{found.source}] here, sendcounts[{found.rank}] "
        "there). Is something cut into parts, and a remainder forgotten?"
    )


_HINTS = {DISPLACED: _displaced, ANOTHER: _of_another, WRONG_BLOCK: _wrong_block, PART: _part}
