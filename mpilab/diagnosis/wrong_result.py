"""Wrong results: which ranks, which blocks, expected and got, and which mistake it looks like."""

from dataclasses import replace

from mpilab.diagnosis import (
    arrivals,
    by_blocks,
    certain,
    exchanges,
    parts,
    reads,
    single,
    unfinished,
    words,
)
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table
from mpilab.diagnosis.pictures import (
    ABSENT,
    ELSEWHERE,
    RIGHT,
    UNTOUCHED,
    WRONG,
    first_difference,
    grid,
    picture,
    remembering,
)
from mpilab.expected import COLLECTIVES
from mpilab.harness import compare

__all__ = ["ABSENT", "ELSEWHERE", "RIGHT", "UNTOUCHED", "WRONG", "first_difference", "grid",
           "picture", "wrong_result"]  # fmt: skip
SHOWN_DIFFERENCES = 6


def wrong_result(evidence):
    """The Diagnosis of a run whose buffers are not as they should be; None where they are."""
    case, outputs = remembering(evidence.result.case), evidence.result.outputs
    differences = compare(case, outputs)
    if not differences:
        return None
    if COLLECTIVES[case.collective].reads:
        return reads.wrong_read(evidence, case, differences)
    explain = _of_single_blocks if parts.is_single(case) else _of_many_blocks
    return explain(evidence, case, differences)


def _of_many_blocks(evidence, case, differences):
    outputs = evidence.result.outputs
    drawn = picture(case, outputs)
    pattern, hint = certain.explain(case, outputs, differences)
    is_known = False
    if not pattern and COLLECTIVES[case.collective].exchanges:
        pattern, hint = exchanges.explain(case, outputs, differences)
        is_known = bool(pattern)
    pattern = pattern or by_blocks.pattern(differences, drawn.grid)
    found = _diagnosis(
        differences, by_blocks.headline(differences, drawn.grid), pattern,
        hint or by_blocks.hint(evidence, case, differences, drawn, pattern),
        by_blocks.table(differences, drawn.grid, drawn.source),
        _expected_and_got(case, outputs, differences, ("block",)),
    )  # fmt: skip
    if pattern in certain.PATTERNS:
        return found
    if is_known:
        return unfinished.as_the_cause(evidence, found) or found
    return by_blocks.with_cause(evidence, case, found, drawn.grid)


def _of_single_blocks(evidence, case, differences):
    outputs = evidence.result.outputs
    by_rank = single.read(case, outputs)
    pattern, hint = certain.explain(case, outputs, differences)
    told = single.explain(evidence, case, by_rank) or single.Told()
    notes = words.listing({note for one in differences for note in one.notes})
    said = single.headline(case, by_rank) if by_rank else notes
    found = _diagnosis(
        differences, said, pattern, hint,
        single.table(case, by_rank) if by_rank else None,
        _expected_and_got(case, outputs, differences, ()),
    )  # fmt: skip
    if pattern:
        return replace(found, headline=f"{found.headline}; {notes}") if by_rank and notes else found
    late = None if told.is_certain else unfinished.as_the_cause(evidence, found)
    if late is not None:
        return late
    note = arrivals.note(evidence, found.ranks)
    return replace(
        found, pattern=told.pattern, hint=told.hint, places=told.places,
        headline=_headline(differences, told.headline) if told.headline else found.headline,
        notes=(note,) if note else (),
    )  # fmt: skip


def _diagnosis(differences, said, pattern, hint, *tables):
    ranks = tuple(difference.rank for difference in differences)
    return Diagnosis(
        WRONG_RESULT, _headline(differences, said), pattern=pattern, hint=hint, ranks=ranks,
        tables=tuple(filter(None, tables)),
    )  # fmt: skip


def _headline(differences, said):
    return f"wrong result on {words.ranks(one.rank for one in differences)}: {said}"


def _expected_and_got(case, outputs, differences, columns):
    """Table of the first wrong elements, with the `columns` that tell one block from another."""
    rows = []
    for difference in differences:
        for block in difference.blocks[:2]:
            if len(rows) < SHOWN_DIFFERENCES:
                found = first_difference(case, outputs, difference.rank, block)
                if found is not None:
                    rows.append((difference.rank, *((block,) if columns else ()), *found))
    if not rows:
        return None
    of = " of a block" if columns else ""
    return Table(f"Expected and got: the first wrong element{of}",
                 ("rank", *columns, "element", "expected", "got"), tuple(rows))  # fmt: skip
