"""Wrong results of collectives with a block from each rank: allgather, gather and alltoallv."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mpilab.cases import counts as exchange
from mpilab.cases.case import COLLECTIVES, block_places
from mpilab.cases.data import GUARD_BYTES, datatype
from mpilab.diagnosis import memory as arrivals
from mpilab.diagnosis import memory as fills
from mpilab.diagnosis import model, requests, single
from mpilab.diagnosis.memory import OWN_MISSING, sent_by
from mpilab.diagnosis.model import Table
from mpilab.diagnosis.pictures import ABSENT, ELSEWHERE, RIGHT, UNTOUCHED, WRONG

# Alltoallv: blocks of any length, at any displacement.

DISPLACED_PIECES, ANOTHER, WRONG_BLOCK, PART = (
    "blocks in the wrong place",
    "the block of another rank",
    "the wrong block sent",
    "part of the message missing",
)
LEAST_BYTES = 4  # fewer may match by chance
LOOKED_AT = 256  # at most so many wrong blocks are examined


class Finding(NamedTuple):
    """What is known of the wrong block of `source` on `rank`.

    at   DISPLACED_PIECES: the element of the receive buffer at which it begins; ANOTHER: the rank
         that it is meant for; WRONG_BLOCK: the element of the source's send buffer at which the
         data begins; PART: the number of elements that arrived.
    """

    pattern: str
    rank: int
    source: int
    at: int


def explain(case, outputs, differences):
    """(pattern, hint) of the most common finding in the wrong blocks; ('', '') if unknown."""
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
    """A hint if each pair exchanged the amounts of the opposite direction, or ''."""
    counts = exchange.elements(case)
    short = np.argwhere((counts > counts.T) & ~np.eye(case.ranks, dtype=bool)).tolist()
    come = [_come(case, outputs, rank, source) for source, rank in short[:LOOKED_AT]]
    wanted = [counts[rank, source] for source, rank in short[:LOOKED_AT]]
    exact = [n == other for n, other in zip(come, wanted, strict=True)]
    # A block that is too long overwrites the next one and hides what arrived there.
    if 2 * sum(exact) <= len(come) or not all(
        n == -1 or is_exact for n, is_exact in zip(come, exact, strict=True)
    ):
        return ""
    source, rank = short[0]
    return (
        f"From rank {source} to rank {rank} go {model.number(int(counts[source, rank]), 'element')}"
        f", and {counts[rank, source]} from rank {rank} to rank {source}; each pair has exchanged "
        "what belongs to its other direction. Send sendcounts[dest], and receive "
        "recvcounts[source]."
    )


def _come(case, outputs, rank, source):
    """Number of elements of a block that arrived; -1 if unknown."""
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
        return Finding(DISPLACED_PIECES, rank, source, at)
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
    """Number of elements of a block that arrived, if all others are unchanged; else -1."""
    size = datatype(case.datatype)[1].size
    is_right = (got == right).reshape(-1, size).all(axis=1)
    elements = len(is_right) if is_right.all() else int(np.argmin(is_right))
    rest = slice(elements * size, None)
    return elements if (got[rest] == before[rest]).all() else -1


def _element_at(case, memory, data):
    """The element of a buffer at which `data` begins; -1 if it is not there."""
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
        f"Rank {found.rank} has got {found.at} of the {model.number(count, 'element')} that rank "
        f"{found.source} has for it (recvcounts[{found.source}] here, sendcounts[{found.rank}] "
        "there). Is something cut into parts, and a remainder forgotten?"
    )


_HINTS = {
    DISPLACED_PIECES: _displaced,
    ANOTHER: _of_another,
    WRONG_BLOCK: _wrong_block,
    PART: _part,
}

# Allgather and gather, and what all three have in common.

DISPLACED, NEVER = "blocks in the wrong place", "blocks never written"
SHOWN_RANKS = 16
_OWN = {
    "allgather": "Every rank also has to put its own block into its receive buffer, unless sendbuf "
    "is MPI_IN_PLACE: place_own_block in mpilab.h does that.",
    "alltoallv": "Every rank also has to copy its block for itself, from sdispls[rank] to "
    "rdispls[rank], unless sendbuf is MPI_IN_PLACE.",
    "gather": "The root also has to put its own block into its receive buffer, unless sendbuf is "
    "MPI_IN_PLACE: place_own_block in mpilab.h does that.",
}
_NEVER = (
    "Nothing was written to these blocks: does the loop reach every rank, also if the number of "
    "ranks is no power of two, or odd?"
)
_DISPLACED = (
    "The blocks have come, but to other places: block i of the receive buffer is that of rank i. "
    "{rule}Look at the index that is given to block()."
)


def pattern(differences, codes):
    """The likely mistake, judged by what the wrong blocks hold; '' if unknown.

    codes   [ranks, blocks], those of mpilab.diagnosis.pictures.
    """
    wrong = [(d.rank, block) for d in differences for block in d.blocks]
    kinds = [codes[place] for place in wrong]
    if not wrong:
        return ""
    if all(rank == block for rank, block in wrong) and set(kinds) == {UNTOUCHED}:
        return OWN_MISSING
    if 2 * kinds.count(ELSEWHERE) >= len(kinds):
        return DISPLACED
    if 2 * kinds.count(UNTOUCHED) >= len(kinds):
        return NEVER
    return ""


def hint(evidence, case, differences, drawn, pattern):
    """What to check for this pattern."""
    if pattern == OWN_MISSING:
        return _OWN[case.collective]
    if pattern == DISPLACED:
        whose = {}
        for _, block in np.argwhere(drawn.grid == ELSEWHERE).tolist():
            whose[block] = int(drawn.source[drawn.grid[:, block] == ELSEWHERE, block][0])
        return _DISPLACED.format(rule=single.rotation(case, whose))
    if pattern == NEVER:
        block = differences[0].untouched[0] if differences[0].untouched else -1
        fact = sent_by(evidence, block) if case.collective == "gather" else ""
        return f"{fact} {_NEVER}".strip()
    return _elsewhere(case, evidence.result.outputs, differences)


def with_cause(evidence, case, found, codes):
    """The Diagnosis `found`, refined by the calls and the memory of the other ranks."""
    if found.pattern != DISPLACED:
        late = requests.as_the_cause(evidence, found)
        if late is not None:
            return late
    codes = np.where(codes == ABSENT, RIGHT, codes)
    told = arrivals.into_one_place(evidence, codes, UNTOUCHED)
    if told is not None:
        return replace(found, pattern=DISPLACED, hint=told[0], places=told[1])
    if found.pattern == DISPLACED:
        displaced = np.flatnonzero((codes == ELSEWHERE).any(axis=1)).tolist()
        told = arrivals.from_any_rank(evidence, displaced)
        return found if told is None else replace(found, hint=told[0], places=told[1])
    if COLLECTIVES[case.collective].exchanges:
        return found  # `explain` has examined these blocks
    wrong = np.argwhere(codes == WRONG).tolist()
    held = fills.fills(case, evidence.result.outputs, wrong)
    if 4 * len(held) >= int((codes != RIGHT).sum()):
        pattern, hint, places = fills.explain_fill(evidence, held)
        found = replace(found, pattern=pattern, hint=hint, places=places)
    note = arrivals.note(evidence, found.ranks)
    return replace(found, notes=(note,) if note else ())


def _elsewhere(case, outputs, differences):
    """A hint on where the data of a wrong block is instead, or ''."""
    layout = datatype(case.datatype)[1]
    alike = not COLLECTIVES[case.collective].exchanges
    if layout.extent != layout.size or case.block_bytes < 4 or not alike:
        return ""
    expected = case.expected()
    partly = ""
    for difference in differences:
        memory = outputs[difference.rank].received.tobytes()
        for block in difference.blocks:
            data = expected[difference.rank][block_places(case, block)].tobytes()
            at, wanted = memory.find(data) - GUARD_BYTES, block * case.block_bytes
            if at >= -GUARD_BYTES and at != wanted:
                size = f"{model.number(case.count, 'element')} of {layout.extent} bytes"
                return (
                    f"On rank {difference.rank}, block {block} lies {at} bytes from the beginning "
                    f"of the receive buffer; it should be {wanted}: "
                    f"{model.number(block, 'block')} of {size}."
                )
            begin = data[: max(len(data) // 4, 1)]
            if not partly and memory[wanted + GUARD_BYTES :][: len(begin)] == begin:
                partly = (
                    f"On rank {difference.rank}, only the beginning of block {block} is right: is "
                    "a number of elements given where bytes are wanted (memcpy, malloc)?"
                )
    return partly


def headline(differences, codes):
    """What is wrong, to follow 'wrong result on ranks 0 to 3: '."""
    first = differences[0]
    told = first.describe().partition(": ")[2]
    more = len(differences) - 1
    alike = all(
        (len(d.blocks), len(d.untouched), d.notes)
        == (len(first.blocks), len(first.untouched), first.notes)
        for d in differences
    )
    wrong = int(((codes != RIGHT) & (codes != ABSENT)).sum())
    if not more or not first.blocks:
        return told
    if alike and wrong == len(differences):
        kinds = {int(codes[d.rank, d.blocks[0]]) for d in differences}
        what = {UNTOUCHED: "was never written", ELSEWHERE: "is in the wrong place"}
        return f"one block each {what.get(*kinds, 'is wrong') if len(kinds) == 1 else 'is wrong'}"
    return f"{wrong} of {codes.size} blocks are not right; on rank {first.rank}, {told}"


def table(differences, codes, source):
    """Table of the wrong blocks of each rank, by what they hold."""
    rows = []
    for difference in differences[:SHOWN_RANKS]:
        kinds = {
            kind: [b for b in difference.blocks if codes[difference.rank, b] == kind]
            for kind in (WRONG, UNTOUCHED, ELSEWHERE)
        }
        moved = ", ".join(
            f"{block} holds {source[difference.rank, block]}" for block in kinds[ELSEWHERE][:8]
        )
        if len(kinds[ELSEWHERE]) > 8:
            moved += ", …"
        rows.append(
            (
                difference.rank,
                model.runs(kinds[WRONG]),
                model.runs(kinds[UNTOUCHED]),
                moved,
                "; ".join(difference.notes),
            )
        )
    columns = ("rank", "wrong", "never written", "another rank's block", "also")
    more = len(differences) - SHOWN_RANKS
    title = "Wrong blocks" + (f" (and on {model.number(more, 'more rank')})" if more > 0 else "")
    return Table(title, columns, tuple(rows))
