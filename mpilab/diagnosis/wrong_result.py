"""Wrong results: which ranks, which blocks, expected and got, and which mistake it looks like."""

from dataclasses import asdict, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mpilab import snapshots
from mpilab.datatypes import datatype
from mpilab.diagnosis import arrivals, fills, unfinished, words
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table
from mpilab.expected import COLLECTIVES, GUARD_BYTES, block_places
from mpilab.harness import Case, compare
from mpilab.snapshots import origin

# What a block is, in `grid`; the figure (mpilab/plots/blocks.py) counts them alike.
RIGHT, WRONG, UNTOUCHED, ELSEWHERE = range(4)
SHOWN_RANKS, SHOWN_DIFFERENCES, DETAILED = 16, 6, 256
OUTSIDE = "memory outside of the receive buffer was overwritten"
SEND_CHANGED = "the send buffer was changed"
HOLES = "the holes between the elements of the datatype were overwritten"

HINTS = {
    "own block missing": "Every rank also has to put its own block into its receive buffer, unless "
    "sendbuf is MPI_IN_PLACE: place_own_block in mpilab.h does that.",
    "blocks never written": "Nothing was written to these blocks: does the loop reach every rank, "
    "also if the number of ranks is no power of two, or odd?",
    "blocks in the wrong place": "The blocks have come, but to other places: block i of the "
    "receive buffer is that of rank i. Look at the index that is given to block().",
    "out of the receive buffer": "The kernel writes before or behind the receive buffer, which "
    "has recvcount elements for each rank. Look at the last index, and at how a block's address is "
    "computed.",
    "send buffer changed": "The send buffer belongs to the caller: it may be read, never written. "
    "Take the receive buffer, or memory of your own, for what is under way.",
    "extent ignored": "From one element to the next it is MPI_Type_get_extent bytes, holes "
    "included, not MPI_Type_size; and a block has to be copied with its datatype, not with memcpy. "
    "block() and copy_local() in mpilab.h do both.",
}

# What the memory alone proves; every other pattern may have its cause in the calls.
CERTAIN = ("out of the receive buffer", "extent ignored", "send buffer changed",
           "own block missing")  # fmt: skip


class _Remembering(Case):
    """The same case, which computes only once what it expects: with many ranks that is costly."""

    @cached_property
    def _right(self):
        return super().expected()

    def expected(self):
        """Receive memory of every rank after a right call: list of uint8 arrays."""
        return self._right


def _remembering(case):
    return case if isinstance(case, _Remembering) else _Remembering(**asdict(case))


class Difference(NamedTuple):
    """The first wrong element of a block: `expected` and `got` are its number, or bytes in hex."""

    element: int
    expected: str
    got: str


def wrong_result(evidence):
    """The Diagnosis of a run whose buffers are not as they should be; None where they are."""
    case, outputs = _remembering(evidence.result.case), evidence.result.outputs
    differences = compare(case, outputs)
    if not differences:
        return None
    codes, source, _ = picture(case, outputs)
    pattern = _pattern(case, outputs, differences, codes)
    ranks = tuple(difference.rank for difference in differences)
    found = Diagnosis(
        WRONG_RESULT,
        f"wrong result on {words.ranks(ranks)}: {_headline(differences, codes)}",
        pattern=pattern,
        hint=HINTS.get(pattern, "") or _displaced(case, outputs, differences),
        ranks=ranks,
        tables=tuple(filter(None, (_wrong_blocks(differences, codes, source),
                                   _expected_and_got(case, outputs, differences)))),
    )  # fmt: skip
    return found if pattern in CERTAIN else _with_cause(evidence, case, found, codes)


def _with_cause(evidence, case, found, codes):
    """The same diagnosis with what the calls and the memory of the other ranks tell."""
    if found.pattern != "blocks in the wrong place":
        late = unfinished.as_the_cause(evidence, found)
        if late is not None:
            return late
    told = arrivals.into_one_place(evidence, codes, UNTOUCHED)
    if told is not None:
        return replace(found, pattern="blocks in the wrong place", hint=told[0], places=told[1])
    if found.pattern == "blocks in the wrong place":
        displaced = np.flatnonzero((codes == ELSEWHERE).any(axis=1)).tolist()
        told = arrivals.from_any_rank(evidence, displaced)
        return found if told is None else replace(found, hint=told[0], places=told[1])
    wrong = np.argwhere(codes == WRONG).tolist()
    held = fills.fills(case, evidence.result.outputs, wrong)
    if 4 * len(held) >= int((codes != RIGHT).sum()):
        pattern, hint, places = fills.explain(evidence, held)
        found = replace(found, pattern=pattern, hint=hint, places=places)
    note = arrivals.note(evidence, found.ranks)
    return replace(found, notes=(note,) if note else ())


def grid(case, outputs):
    """int8 [ranks, blocks]: RIGHT, WRONG, UNTOUCHED (as before the call) or ELSEWHERE (the whole
    block of another rank). Ranks that receive fewer blocks are filled up with RIGHT."""
    return picture(case, outputs)[0]


def picture(case, outputs):
    """(grid, source, details), as mpilab.plots.blocks draws them.

    source [ranks, blocks] is whose block lies there, -1 where nobody knows; details
    {(rank, block): 'expected 5, got 7'} of the first wrong blocks.
    """
    case = _remembering(case)
    expected = case.expected()
    shapes = [COLLECTIVES[case.collective].blocks(case, rank) for rank in range(case.ranks)]
    width = max(shape.received for shape in shapes)
    codes = np.zeros((case.ranks, width), np.int8)
    source = np.full(codes.shape, -1, np.int64)
    details = {}
    for rank, output in enumerate(outputs[: case.ranks]):
        if output.received.shape != expected[rank].shape:
            codes[rank] = WRONG
            continue
        wrong = _wrong_slots(case, output.received, expected[rank], shapes[rank].received)
        source[rank, : shapes[rank].received] = np.arange(shapes[rank].received)
        if not wrong:
            continue
        whose = origin(case, output.received[GUARD_BYTES:][:-GUARD_BYTES], rank)[wrong]
        source[rank, wrong] = np.where(whose >= 0, whose, -1)
        codes[rank, wrong] = np.select(
            [whose >= 0, whose == snapshots.UNTOUCHED], [ELSEWHERE, UNTOUCHED], WRONG
        )
        for block in wrong[: max(DETAILED - len(details), 0)]:
            found = _first_difference(case, expected[rank], output.received, block)
            details[rank, block] = (
                f"element {found.element}: expected {found.expected}, got {found.got}"
            )
    return codes, source, details


def first_difference(case, outputs, rank, block):
    """The first wrong element of `block` on `rank`; None if the block is right."""
    return _first_difference(case, case.expected()[rank], outputs[rank].received, block)


def _first_difference(case, expected, got, block):
    if got.shape != expected.shape:
        return None
    layout, places = datatype(case.datatype)[1], block_places(case, block)
    wrong = np.flatnonzero(got[places] != expected[places])
    if not wrong.size:
        return None
    element = int(wrong[0]) // layout.size
    inside = places[element * layout.size : (element + 1) * layout.size]
    return Difference(element, _value(case, expected[inside]), _value(case, got[inside]))


def _wrong_slots(case, received, expected, blocks):
    return [i for i in range(blocks)
            if (received[p := block_places(case, i)] != expected[p]).any()]  # fmt: skip


def _value(case, data):
    if case.datatype == "int":
        return str(int(data.view(np.int32)[0])) if data.size == 4 else data.tobytes().hex()
    return data[:16].tobytes().hex(" ")


def _pattern(case, outputs, differences, codes):
    notes = {note for difference in differences for note in difference.notes}
    wrong = [(d.rank, block) for d in differences for block in d.blocks]
    kinds = [codes[place] for place in wrong]
    if OUTSIDE in notes:
        return "out of the receive buffer"
    if HOLES in notes or _packed(case, outputs, wrong):
        return "extent ignored"
    if SEND_CHANGED in notes:
        return "send buffer changed"
    if not wrong:
        return ""
    if all(rank == block for rank, block in wrong) and set(kinds) == {UNTOUCHED}:
        return "own block missing"
    if 2 * kinds.count(ELSEWHERE) >= len(kinds):
        return "blocks in the wrong place"
    if 2 * kinds.count(UNTOUCHED) >= len(kinds):
        return "blocks never written"
    return ""


def _packed(case, outputs, wrong):
    """Does a block lie where it would if extents were sizes?"""
    layout = datatype(case.datatype)[1]
    if layout.extent == layout.size or case.count == 0:
        return False
    expected = case.expected()
    for rank, block in wrong:
        memory = outputs[rank].received
        right = expected[rank][block_places(case, block)]
        for other in range(1, case.ranks):
            begin = GUARD_BYTES + other * case.count * layout.size
            places = begin + layout.offsets(case.count)
            if other == block and places[-1] < memory.size and (memory[places] == right).all():
                return True
    return False


def _displaced(case, outputs, differences):
    """A hint on where the data of a wrong block lies instead, or ''."""
    layout = datatype(case.datatype)[1]
    if layout.extent != layout.size or case.block_bytes < 4:
        return ""
    expected = case.expected()
    partly = ""
    for difference in differences:
        memory = outputs[difference.rank].received.tobytes()
        for block in difference.blocks:
            data = expected[difference.rank][block_places(case, block)].tobytes()
            at, wanted = memory.find(data) - GUARD_BYTES, block * case.block_bytes
            if at >= -GUARD_BYTES and at != wanted:
                size = f"{words.number(case.count, 'element')} of {layout.extent} bytes"
                return (
                    f"On rank {difference.rank}, block {block} lies {at} bytes from the beginning "
                    f"of the receive buffer; it should be {wanted}: "
                    f"{words.number(block, 'block')} of {size}."
                )
            begin = data[: max(len(data) // 4, 1)]
            if not partly and memory[wanted + GUARD_BYTES :][: len(begin)] == begin:
                partly = (
                    f"On rank {difference.rank}, only the beginning of block {block} is right: is "
                    "a number of elements given where bytes are wanted (memcpy, malloc)?"
                )
    return partly


def _headline(differences, codes):
    first = differences[0]
    told = first.describe().partition(": ")[2]
    more = len(differences) - 1
    alike = all(
        (len(d.blocks), len(d.untouched), d.notes)
        == (len(first.blocks), len(first.untouched), first.notes)
        for d in differences
    )
    wrong = int((codes != RIGHT).sum())
    if not more or not first.blocks:
        return told
    if alike and wrong == len(differences):
        kinds = {int(codes[d.rank, d.blocks[0]]) for d in differences}
        what = {UNTOUCHED: "was never written", ELSEWHERE: "is in the wrong place"}
        return f"one block each {what.get(*kinds, 'is wrong') if len(kinds) == 1 else 'is wrong'}"
    return f"{wrong} of {codes.size} blocks are not right; on rank {first.rank}, {told}"


def _wrong_blocks(differences, codes, source):
    rows = []
    for difference in differences[:SHOWN_RANKS]:
        kinds = {kind: [b for b in difference.blocks if codes[difference.rank, b] == kind]
                 for kind in (WRONG, UNTOUCHED, ELSEWHERE)}  # fmt: skip
        moved = ", ".join(f"{block} holds {source[difference.rank, block]}"
                          for block in kinds[ELSEWHERE][:8])  # fmt: skip
        if len(kinds[ELSEWHERE]) > 8:
            moved += ", …"
        rows.append((difference.rank, words.runs(kinds[WRONG]), words.runs(kinds[UNTOUCHED]),
                     moved, "; ".join(difference.notes)))  # fmt: skip
    columns = ("rank", "wrong", "never written", "another rank's block", "also")
    more = len(differences) - SHOWN_RANKS
    title = "Wrong blocks" + (f" (and on {words.number(more, 'more rank')})" if more > 0 else "")
    return Table(title, columns, tuple(rows))


def _expected_and_got(case, outputs, differences):
    rows = []
    for difference in differences:
        for block in difference.blocks[:2]:
            if len(rows) < SHOWN_DIFFERENCES:
                found = first_difference(case, outputs, difference.rank, block)
                if found is not None:
                    rows.append((difference.rank, block, *found))
    if not rows:
        return None
    columns = ("rank", "block", "element", "expected", "got")
    return Table("Expected and got: the first wrong element of a block", columns, tuple(rows))
