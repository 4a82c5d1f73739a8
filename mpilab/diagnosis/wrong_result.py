"""Wrong results: which ranks and blocks, expected and actual values, and the likely mistake.

A Picture is the receive memory of all ranks as a grid of ranks by blocks, or by elements of the
message; mpilab.plots.failures draws it.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.cases import counts as exchange
from mpilab.cases.case import COLLECTIVES, Case, Memory, block_places
from mpilab.cases.data import GUARD_BYTES, datatype
from mpilab.cases.output import Difference, Output, compare, wrong_calls
from mpilab.diagnosis import memory, model, reads, requests, single
from mpilab.diagnosis.evidence import Evidence
from mpilab.diagnosis.memory import OWN_MISSING, content, sent_by
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table
from mpilab.trace import snapshots
from mpilab.trace.snapshots import origin

# States of a block; the figure (mpilab/plots/failures.py) uses the same numbers.
RIGHT, WRONG, UNTOUCHED, ELSEWHERE, ABSENT = range(5)
DETAILED = 256
MOST_COLUMNS = 32  # if there are more, neighboring elements share a column
DISPLACED_PIECES, ANOTHER, WRONG_BLOCK, PART = (
    "blocks in the wrong place",
    "the block of another rank",
    "the wrong block sent",
    "part of the message missing",
)
LEAST_BYTES = 4  # fewer may match by chance
BY_CHANCE = 0.1  # behind the end of its data, more bytes than this share are not right by chance
LOOKED_AT = 256  # at most this many wrong blocks are examined
SHOWN_DIFFERENCES = 6


class _Remembering(Case):
    """The same case, which caches its expected memory: with many ranks, computing it is costly."""

    @cached_property
    def _before(self) -> list[tuple[Memory, Memory]]:
        return super().before()

    def before(self) -> list[tuple[Memory, Memory]]:
        """Like Case.before, cached."""
        return self._before

    @cached_property
    def _right(self) -> list[Memory]:
        return super().expected()

    def expected(self) -> list[Memory]:
        """Receive memory of every rank after a correct call: list of uint8 arrays."""
        return self._right


def remembering(case: Case) -> Case:
    """The same Case, which caches its expected memory."""
    if isinstance(case, _Remembering):
        return case
    return _Remembering(**{each.name: getattr(case, each.name) for each in fields(case)})


class Element(NamedTuple):
    """The first wrong element of a block: `expected` and `got` are its value, or bytes in hex."""

    element: int
    expected: str
    got: str


class Picture(NamedTuple):
    """What mpilab.plots.failures.blocks draws.

    grid     int8 [ranks, columns]: RIGHT, WRONG, UNTOUCHED (as before the call), ELSEWHERE (another
             rank's block) or ABSENT (the rank has no receive buffer).
    source   int [ranks, columns]: the rank whose block is there, -1 if unknown.
    details  {(rank, column): text} of the first wrong columns.
    columns  names of the columns if they are elements, not blocks: '0 to 15'; else None.
    """

    grid: NDArray[np.int8]
    source: NDArray[np.int64]
    details: dict[tuple[int, int], str]
    columns: tuple[str, ...] | None


def picture(case: Case, outputs: Sequence[Output]) -> Picture:
    """The Picture of the receive memory of all ranks."""
    case = remembering(case)
    return _of_elements(case, outputs) if memory.is_single(case) else _of_blocks(case, outputs)


def grid(case: Case, outputs: Sequence[Output]) -> NDArray[np.int8]:
    """Only the grid, int8 [ranks, columns]: see Picture."""
    return picture(case, outputs).grid


def _received(case: Case) -> list[int]:
    """Number of blocks that each rank receives."""
    return [COLLECTIVES[case.collective].blocks(case, rank).received for rank in range(case.ranks)]


def _of_blocks(case: Case, outputs: Sequence[Output]) -> Picture:
    expected, blocks = case.expected(), _received(case)
    codes = np.full((case.ranks, max(blocks)), RIGHT, np.int8)
    source = np.full(codes.shape, -1, np.int64)
    details: dict[tuple[int, int], str] = {}
    for rank, output in enumerate(outputs[: case.ranks]):
        if output.received.shape != expected[rank].shape:
            codes[rank] = WRONG
            continue
        if not blocks[rank]:
            codes[rank] = ABSENT
            continue
        wrong = _wrong_slots(case, rank, output.received, expected[rank], blocks[rank])
        source[rank, : blocks[rank]] = np.arange(blocks[rank])
        if not wrong:
            continue
        whose = origin(case, output.received[GUARD_BYTES:][:-GUARD_BYTES], rank)[wrong]
        source[rank, wrong] = np.where(whose >= 0, whose, -1)
        codes[rank, wrong] = np.select(
            [whose >= 0, whose == snapshots.UNTOUCHED], [ELSEWHERE, UNTOUCHED], WRONG
        )
        for block in wrong[: max(DETAILED - len(details), 0)]:
            found = _first_difference(case, rank, expected[rank], output.received, block)
            if found is not None:
                details[rank, block] = (
                    f"element {found.element}: expected {found.expected}, got {found.got}"
                )
    return Picture(codes, source, details, None)


def _of_elements(case: Case, outputs: Sequence[Output]) -> Picture:
    expected, received = case.expected(), _received(case)
    width = min(max(case.count, 1), MOST_COLUMNS)
    begins = [case.count * column // width for column in range(width + 1)]
    codes = np.zeros((case.ranks, width), np.int8)
    source = np.full(codes.shape, -1, np.int64)
    details: dict[tuple[int, int], str] = {}
    codes[[rank for rank, blocks in enumerate(received) if blocks == 0]] = ABSENT
    for rank, output in enumerate(outputs[: case.ranks]):
        if output.received.shape != expected[rank].shape:
            codes[rank] = WRONG
    for rank, of_rank in single.read(case, outputs).items():
        for column in range(width):
            here = [
                part
                for part in of_rank
                if part.begin < begins[column + 1] and part.end > begins[column]
            ]
            code, whose, part = _of_column(here)
            codes[rank, column], source[rank, column] = code, whose
            if part is not None and len(details) < DETAILED:
                details[rank, column] = content(part, case.count)
    return Picture(codes, source, details, tuple(map(_named, begins[:-1], begins[1:])))


def _of_column(here: Sequence[memory.Part]) -> tuple[int, int, memory.Part | None]:
    """(code, source, Part) of a column, from its first wrong Part; (RIGHT, -1, None) if none."""
    wrong = [part for part in here if part.held.kind != memory.RIGHT]
    if not wrong:
        return RIGHT, -1, None
    held = wrong[0].held
    if held.kind == memory.UNTOUCHED:
        return UNTOUCHED, -1, wrong[0]
    if held.kind == memory.BLOCK:
        return ELSEWHERE, held.rank, wrong[0]
    if held.kind == memory.COMBINED and sum(held.counts) == 1 and held.rank < 0:
        return ELSEWHERE, held.counts.index(1), wrong[0]
    return WRONG, -1, wrong[0]


def _named(begin: int, end: int) -> str:
    return str(begin) if end - begin <= 1 else f"{begin} to {end - 1}"


def first_difference(
    case: Case, outputs: Sequence[Output], rank: int, block: int
) -> Element | None:
    """The first wrong element of `block` on `rank`; None if the block is correct."""
    return _first_difference(case, rank, case.expected()[rank], outputs[rank].received, block)


def _first_difference(
    case: Case, rank: int, expected: Memory, got: Memory, block: int
) -> Element | None:
    if got.shape != expected.shape:
        return None
    layout, places = datatype(case.datatype)[1], block_places(case, block, rank)
    wrong = np.flatnonzero(got[places] != expected[places])
    if not wrong.size:
        return None
    element = int(wrong[0]) // layout.size
    inside = places[element * layout.size : (element + 1) * layout.size]
    return Element(element, _value(case, expected[inside]), _value(case, got[inside]))


def _wrong_slots(
    case: Case, rank: int, received: Memory, expected: Memory, blocks: int
) -> list[int]:
    return [
        i
        for i in range(blocks)
        if (received[p := block_places(case, i, rank)] != expected[p]).any()
    ]


def _value(case: Case, data: Memory) -> str:
    if case.datatype == "int":
        return str(int(data.view(np.int32)[0])) if data.size == 4 else data.tobytes().hex()
    return data[:16].tobytes().hex(" ")


# Alltoallv: blocks of any length, at any displacement.


class Finding(NamedTuple):
    """What is known about the wrong block of `source` on `rank`.

    at   DISPLACED_PIECES: the element of the receive buffer at which it begins; ANOTHER: the rank
         for which it is meant; WRONG_BLOCK: the element of the source's send buffer at which the
         data begins; PART: the number of elements that arrived.
    """

    pattern: str
    rank: int
    source: int
    at: int


def _explain_exchange(
    case: Case, outputs: Sequence[Output], differences: Sequence[Difference]
) -> tuple[str, str]:
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


def _swapped(case: Case, outputs: Sequence[Output]) -> str:
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
        f"Rank {source} should send {model.number(int(counts[source, rank]), 'element')} to rank "
        f"{rank}, and rank {rank} should send {counts[rank, source]} to rank {source}; each pair "
        "used the amounts of the opposite direction. Send sendcounts[dest], and receive "
        "recvcounts[source]."
    )


def _come(case: Case, outputs: Sequence[Output], rank: int, source: int) -> int:
    """Number of elements of a block that arrived; -1 if unknown."""
    memory, places = outputs[rank].received, block_places(case, source, rank)
    right = case.expected()[rank]
    if memory.shape != right.shape:
        return -1
    return _beginning(case, memory[places], right[places], case.regions(rank)[1][places])


def _find(case: Case, outputs: Sequence[Output], rank: int, source: int) -> Finding | None:
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


def _beginning(case: Case, got: Memory, right: Memory, before: Memory) -> int:
    """Number of elements of a block that arrived, if all others are unchanged; else -1."""
    size = datatype(case.datatype)[1].size
    is_right = (got == right).reshape(-1, size).all(axis=1)
    elements = len(is_right) if is_right.all() else int(np.argmin(is_right))
    rest = slice(elements * size, None)
    return elements if (got[rest] == before[rest]).all() else -1


def _element_at(case: Case, memory: Memory, data: Memory) -> int:
    """The element of a buffer at which `data` begins; -1 if it is not there."""
    layout = datatype(case.datatype)[1]
    if layout.extent != layout.size:
        return -1
    at = memory[GUARD_BYTES:-GUARD_BYTES].tobytes().find(data.tobytes())
    return at // layout.extent if at >= 0 and at % layout.extent == 0 else -1


def _displaced(case: Case, found: Finding) -> str:
    belongs = exchange.received(case, found.rank).begins[found.source]
    return (
        f"On rank {found.rank}, the block of rank {found.source} begins at element {found.at} of "
        f"the receive buffer; it belongs at element rdispls[{found.source}] = {belongs}. Blocks "
        "may be in any order, with gaps between them: only rdispls gives their positions."
    )


def _of_another(case: Case, found: Finding) -> str:
    to = "copy to itself" if found.at == found.source else f"send to rank {found.at}"
    return (
        f"Rank {found.rank} received what rank {found.source} should {to}. The block for rank "
        f"{found.rank} begins at element sdispls[{found.rank}] of the send buffer: check that "
        "sdispls and sendcounts are indexed by the destination."
    )


def _wrong_block(case: Case, found: Finding) -> str:
    begin = exchange.sent(case, found.source).begins[found.rank]
    return (
        f"What rank {found.source} has sent to rank {found.rank} begins at element {found.at} of "
        f"its send buffer; the block begins at element sdispls[{found.rank}] = {begin}. The send "
        "and receive buffers have separate displacements, in elements, not bytes."
    )


def _part(case: Case, found: Finding) -> str:
    count = int(exchange.received(case, found.rank).counts[found.source])
    return (
        f"Rank {found.rank} received {found.at} of the {model.number(count, 'element')} that rank "
        f"{found.source} has for it (recvcounts[{found.source}] here, sendcounts[{found.rank}] "
        "there). Is the block split into segments, and the remainder forgotten?"
    )


_HINTS: dict[str, Callable[[Case, Finding], str]] = {
    DISPLACED_PIECES: _displaced,
    ANOTHER: _of_another,
    WRONG_BLOCK: _wrong_block,
    PART: _part,
}

# Allgather and gather, and code shared by all three.

DISPLACED, NEVER = "blocks in the wrong place", "blocks never written"
SHOWN_RANKS = 16
_OWN = {
    "allgather": "Every rank must also put its own block into its receive buffer, unless sendbuf "
    "is MPI_IN_PLACE: place_own_block in mpilab.h does that.",
    "alltoallv": (
        "Every rank must also copy its own block from sdispls[rank] to rdispls[rank], unless "
        "sendbuf is MPI_IN_PLACE."
    ),
    "gather": "The root must also put its own block into its receive buffer, unless sendbuf is "
    "MPI_IN_PLACE: place_own_block in mpilab.h does that.",
}
_NEVER = (
    "Nothing was written to these blocks: does the loop reach every rank, even if the number of "
    "ranks is odd or not a power of two?"
)
_DISPLACED = (
    "The blocks arrived, but in the wrong places: block i of the receive buffer is that of rank "
    "i. {rule}Check the index passed to block()."
)


def _pattern_of_blocks(differences: Sequence[Difference], codes: NDArray[np.int8]) -> str:
    """The likely mistake, judged by what the wrong blocks hold; '' if unknown.

    codes   [ranks, blocks], those of `picture`.
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


def _hint_of_blocks(
    evidence: Evidence, case: Case, differences: Sequence[Difference], drawn: Picture, pattern: str
) -> str:
    """What to check for this pattern."""
    if pattern == OWN_MISSING:
        return _OWN[case.collective]
    if pattern == DISPLACED:
        whose: dict[int, int] = {}
        for _, block in np.argwhere(drawn.grid == ELSEWHERE).tolist():
            whose[block] = int(drawn.source[drawn.grid[:, block] == ELSEWHERE, block][0])
        return _DISPLACED.format(rule=single.rotation(evidence, case, whose))
    if pattern == NEVER:
        block = differences[0].untouched[0] if differences[0].untouched else -1
        fact = sent_by(evidence, block) if case.collective == "gather" else ""
        return f"{fact} {_NEVER}".strip()
    return _elsewhere(evidence, case, differences)


def _with_cause(
    evidence: Evidence, case: Case, found: Diagnosis, codes: NDArray[np.int8]
) -> Diagnosis:
    """The Diagnosis `found`, refined by the calls and the memory of the other ranks."""
    if found.pattern != DISPLACED:
        late = requests.as_the_cause(evidence, found)
        if late is not None:
            return late
    codes = np.where(codes == ABSENT, RIGHT, codes)
    told = memory.into_one_place(evidence, codes, UNTOUCHED)
    if told is not None:
        return replace(found, pattern=DISPLACED, hint=told[0], places=told[1])
    if found.pattern == DISPLACED:
        displaced = np.flatnonzero((codes == ELSEWHERE).any(axis=1)).tolist()
        told = memory.from_any_rank(evidence, displaced)
        return found if told is None else replace(found, hint=told[0], places=told[1])
    if COLLECTIVES[case.collective].exchanges:
        return found  # `_explain_exchange` has examined these blocks
    wrong = np.argwhere(codes == WRONG).tolist()
    held = memory.fills(case, evidence.result.outputs, wrong)
    if 4 * len(held) >= int((codes != RIGHT).sum()):
        pattern, hint, places = memory.explain_fill(evidence, held)
        found = replace(found, pattern=pattern, hint=hint, places=places)
    note = memory.note(evidence, found.ranks)
    return replace(found, notes=(note,) if note else ())


def _elsewhere(evidence: Evidence, case: Case, differences: Sequence[Difference]) -> str:
    """A hint on where the data of a wrong block is instead, or where it ends, or ''."""
    layout = datatype(case.datatype)[1]
    alike = not COLLECTIVES[case.collective].exchanges
    if layout.extent != layout.size or case.block_bytes < 4 or not alike:
        return ""
    expected = case.expected()
    partly = ""
    for difference in differences:
        rank = difference.rank
        kept = evidence.result.outputs[rank].received.tobytes()
        for block in difference.blocks:
            data = expected[rank][block_places(case, block)]
            at, wanted = kept.find(data.tobytes()) - GUARD_BYTES, block * case.block_bytes
            if at >= -GUARD_BYTES and at != wanted:
                size = f"{model.number(case.count, 'element')} of {layout.extent} bytes"
                return (
                    f"On rank {rank}, block {block} is {at} bytes from the beginning "
                    f"of the receive buffer; it should be {wanted}: "
                    f"{model.number(block, 'block')} of {size}."
                )
            partly = partly or _cut(evidence, case, rank, block, data)
    return partly


def _cut(evidence: Evidence, case: Case, rank: int, block: int, data: Memory) -> str:
    """A hint if at least a quarter of this block is right, and nothing behind it; or ''."""
    got, size = evidence.result.outputs[rank].received[block_places(case, block)], len(data)
    right = int(np.argmax(got != data))  # up to the first byte that differs
    if 4 * right < size or (got[right:] == data[right:]).mean() > BY_CHANCE:
        return ""
    element = datatype(case.datatype)[1].size
    whole = right - right % element  # behind the end, a byte may be right by chance
    told = (
        f"On rank {rank}, only the first {whole:,} of the {size:,} bytes of block {block} are right"
    )
    if sources := memory.sources_of(evidence, rank, whole):
        from_whom = model.ranks(sources)
        return f"{told}: it has received a message of just {whole:,} bytes, from {from_whom}."
    if whole == case.count - case.count % element:
        return f"{told}: is a number of elements passed where bytes are expected (memcpy, malloc)?"
    return f"{told}."


def _headline_of_blocks(differences: Sequence[Difference], codes: NDArray[np.int8]) -> str:
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
        (kind,) = kinds if len(kinds) == 1 else (WRONG,)
        return f"one block each {what.get(kind, 'is wrong')}"
    return f"{wrong} of {codes.size} blocks are wrong; on rank {first.rank}, {told}"


def _table_of_blocks(
    differences: Sequence[Difference], codes: NDArray[np.int8], source: NDArray[np.int64]
) -> Table:
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


def wrong_result(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of a run with wrong buffers; None if all are correct."""
    case, outputs = remembering(evidence.result.case), evidence.result.outputs
    differences = compare(case, outputs)
    if not differences:
        return None
    if COLLECTIVES[case.collective].reads:
        return reads.wrong_read(evidence, case, differences)
    explain = _of_single_blocks if memory.is_single(case) else _of_many_blocks
    return explain(evidence, case, differences)


_ORDINALS = ("first", "second")
_HINT_OF_CALLS = (
    "Each call gets its own data, and the number of ranks may differ from one call to the next: "
    "take rank and size from comm in each call, and keep nothing of them in static variables."
)
_HINT_OF_ROOTS = (
    "Each call has another root and its own data. Some ranks may be in the next call already while "
    "others are still in this one: with MPI_ANY_SOURCE, a rank can get a message of the next call "
    "first. Name the rank that you receive from."
)
MIXED_UP = "a message of another call"


def wrong_earlier(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of a sequence in which a call before the last left a wrong result, or None."""
    case, outputs = evidence.result.case, evidence.result.outputs
    wrong = wrong_calls(case, outputs) if case.sequence else {}
    for number, ranks in wrong.items():
        earlier, mixed = case.earlier(), mixed_up(evidence)
        size = earlier[number].ranks
        where = f", on a communicator of {size} of the {case.ranks} ranks," * (size < case.ranks)
        return Diagnosis(
            WRONG_RESULT,
            f"the {_ORDINALS[number]} of {len(earlier) + 1} calls{where} left a wrong result on "
            f"{model.ranks(ranks)}",
            hint=_HINT_OF_ROOTS if case.sequence == "roots" else _HINT_OF_CALLS,
            ranks=ranks,
            places=() if mixed is None else mixed.places,
        )
    return None


def mixed_up(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of calls from different roots that got the right messages by luck: a receive
    from any rank may as well get a message of the next call. None if there is no such receive."""
    result = evidence.result
    if result.case.sequence != "roots" or result.recording is None:
        return None
    outputs = sorted(result.outputs, key=lambda output: output.rank)
    found = result.recording.mixed_up([output.spans_ns[:, 0] for output in outputs])
    if not found:
        return None
    messages = result.recording.messages
    found.sort(key=lambda pair: messages["dest"][pair[0]])
    receives = [
        call
        for message, _ in found
        for call in evidence.calls(
            int(messages["dest"][message]), [int(messages["receive_record"][message])]
        )
    ]
    first, other = receives[0], messages[found[0][1]]
    return Diagnosis(
        WRONG_RESULT,
        f"right only by luck: {first.name}{evidence.at(first)} of rank {first.rank} receives from "
        f"any rank (MPI_ANY_SOURCE), and may get what rank {other['source']} sends it in a later "
        "call",
        MIXED_UP,
        _HINT_OF_ROOTS,
        ranks=tuple(dict.fromkeys(call.rank for call in receives)),
        places=evidence.places(receives, "receive from any rank here"),
    )


def _of_many_blocks(evidence: Evidence, case: Case, differences: Sequence[Difference]) -> Diagnosis:
    outputs = evidence.result.outputs
    drawn = picture(case, outputs)
    pattern, hint = memory.explain_certain(case, outputs, differences)
    is_known = False
    if not pattern and COLLECTIVES[case.collective].exchanges:
        pattern, hint = _explain_exchange(case, outputs, differences)
        is_known = bool(pattern)
    pattern = pattern or _pattern_of_blocks(differences, drawn.grid)
    found = _diagnosis(
        differences,
        _headline_of_blocks(differences, drawn.grid),
        pattern,
        hint or _hint_of_blocks(evidence, case, differences, drawn, pattern),
        _table_of_blocks(differences, drawn.grid, drawn.source),
        _expected_and_got(case, outputs, differences, ("block",)),
    )
    if pattern in memory.PATTERNS:
        return found
    if is_known:
        return requests.as_the_cause(evidence, found) or found
    return _with_cause(evidence, case, found, drawn.grid)


def _of_single_blocks(
    evidence: Evidence, case: Case, differences: Sequence[Difference]
) -> Diagnosis:
    outputs = evidence.result.outputs
    by_rank = single.read(case, outputs)
    pattern, hint = memory.explain_certain(case, outputs, differences)
    told = single.explain_single(evidence, case, by_rank) or single.Explanation()
    notes = model.listing({note for one in differences for note in one.notes})
    said = single.headline(case, by_rank) if by_rank else notes
    found = _diagnosis(
        differences,
        said,
        pattern,
        hint,
        single.table(case, by_rank) if by_rank else None,
        _expected_and_got(case, outputs, differences, ()),
    )
    if pattern:
        return replace(found, headline=f"{found.headline}; {notes}") if by_rank and notes else found
    late = None if told.is_certain else requests.as_the_cause(evidence, found)
    if late is not None:
        return late
    note = memory.note(evidence, found.ranks)
    return replace(
        found,
        pattern=told.pattern,
        hint=told.hint,
        places=told.places,
        headline=_headline(differences, told.headline) if told.headline else found.headline,
        notes=(note,) if note else (),
    )


def _diagnosis(
    differences: Sequence[Difference], said: str, pattern: str, hint: str, *tables: Table | None
) -> Diagnosis:
    ranks = tuple(difference.rank for difference in differences)
    return Diagnosis(
        WRONG_RESULT,
        _headline(differences, said),
        pattern=pattern,
        hint=hint,
        ranks=ranks,
        tables=tuple(filter(None, tables)),
    )


def _headline(differences: Sequence[Difference], said: str) -> str:
    return f"wrong result on {model.ranks(one.rank for one in differences)}: {said}"


def _expected_and_got(
    case: Case,
    outputs: Sequence[Output],
    differences: Sequence[Difference],
    columns: tuple[str, ...],
) -> Table | None:
    """Table of the first wrong elements, with the `columns` that identify a block."""
    rows: list[tuple[str | int, ...]] = []
    for difference in differences:
        for block in difference.blocks[:2]:
            if len(rows) < SHOWN_DIFFERENCES:
                found = first_difference(case, outputs, difference.rank, block)
                if found is not None:
                    rows.append((difference.rank, *((block,) if columns else ()), *found))
    if not rows:
        return None
    of = " of a block" if columns else ""
    return Table(
        f"Expected and got: the first wrong element{of}",
        ("rank", *columns, "element", "expected", "got"),
        tuple(rows),
    )
