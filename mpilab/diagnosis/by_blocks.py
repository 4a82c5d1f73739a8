"""Wrong results of collectives whose buffers hold a block from each rank: allgather, gather and
alltoallv."""

from dataclasses import replace

import numpy as np

from mpilab.datatypes import datatype
from mpilab.diagnosis import arrivals, deliveries, fills, shares, unfinished, words
from mpilab.diagnosis.certain import OWN_MISSING
from mpilab.diagnosis.model import Table
from mpilab.diagnosis.pictures import ABSENT, ELSEWHERE, RIGHT, UNTOUCHED, WRONG
from mpilab.expected import COLLECTIVES, GUARD_BYTES, block_places

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
    """The mistake that the wrong blocks look like, by what they hold; '' where they tell nothing.

    codes [ranks, blocks] are those of mpilab.diagnosis.pictures.
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
    """What to look at, for this pattern."""
    if pattern == OWN_MISSING:
        return _OWN[case.collective]
    if pattern == DISPLACED:
        whose = {}
        for _, block in np.argwhere(drawn.grid == ELSEWHERE).tolist():
            whose[block] = int(drawn.source[drawn.grid[:, block] == ELSEWHERE, block][0])
        return _DISPLACED.format(rule=shares.rotation(case, whose))
    if pattern == NEVER:
        block = differences[0].untouched[0] if differences[0].untouched else -1
        fact = deliveries.sent_by(evidence, block) if case.collective == "gather" else ""
        return f"{fact} {_NEVER}".strip()
    return _elsewhere(case, evidence.result.outputs, differences)


def with_cause(evidence, case, found, codes):
    """The Diagnosis `found` with what the calls and the memory of the other ranks tell."""
    if found.pattern != DISPLACED:
        late = unfinished.as_the_cause(evidence, found)
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
        return found  # mpilab.diagnosis.exchanges has looked at what lies there
    wrong = np.argwhere(codes == WRONG).tolist()
    held = fills.fills(case, evidence.result.outputs, wrong)
    if 4 * len(held) >= int((codes != RIGHT).sum()):
        pattern, hint, places = fills.explain(evidence, held)
        found = replace(found, pattern=pattern, hint=hint, places=places)
    note = arrivals.note(evidence, found.ranks)
    return replace(found, notes=(note,) if note else ())


def _elsewhere(case, outputs, differences):
    """A hint on where the data of a wrong block lies instead, or ''."""
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


def headline(differences, codes):
    """What is wrong, behind 'wrong result on ranks 0 to 3: '."""
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
