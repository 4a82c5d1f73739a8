"""Wrong results: which ranks and blocks, expected and actual values, and the likely mistake."""

from dataclasses import replace

from mpilab.cases.case import COLLECTIVES
from mpilab.cases.output import compare
from mpilab.diagnosis import blocks, memory, model, reads, requests, single
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table
from mpilab.diagnosis.pictures import first_difference, picture, remembering

SHOWN_DIFFERENCES = 6


def wrong_result(evidence):
    """The Diagnosis of a run with wrong buffers; None if all are correct."""
    case, outputs = remembering(evidence.result.case), evidence.result.outputs
    differences = compare(case, outputs)
    if not differences:
        return None
    if COLLECTIVES[case.collective].reads:
        return reads.wrong_read(evidence, case, differences)
    explain = _of_single_blocks if memory.is_single(case) else _of_many_blocks
    return explain(evidence, case, differences)


def _of_many_blocks(evidence, case, differences):
    outputs = evidence.result.outputs
    drawn = picture(case, outputs)
    pattern, hint = memory.explain_certain(case, outputs, differences)
    is_known = False
    if not pattern and COLLECTIVES[case.collective].exchanges:
        pattern, hint = blocks.explain(case, outputs, differences)
        is_known = bool(pattern)
    pattern = pattern or blocks.pattern(differences, drawn.grid)
    found = _diagnosis(
        differences,
        blocks.headline(differences, drawn.grid),
        pattern,
        hint or blocks.hint(evidence, case, differences, drawn, pattern),
        blocks.table(differences, drawn.grid, drawn.source),
        _expected_and_got(case, outputs, differences, ("block",)),
    )
    if pattern in memory.PATTERNS:
        return found
    if is_known:
        return requests.as_the_cause(evidence, found) or found
    return blocks.with_cause(evidence, case, found, drawn.grid)


def _of_single_blocks(evidence, case, differences):
    outputs = evidence.result.outputs
    by_rank = single.read(case, outputs)
    pattern, hint = memory.explain_certain(case, outputs, differences)
    told = single.explain_single(evidence, case, by_rank) or single.Told()
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


def _diagnosis(differences, said, pattern, hint, *tables):
    ranks = tuple(difference.rank for difference in differences)
    return Diagnosis(
        WRONG_RESULT,
        _headline(differences, said),
        pattern=pattern,
        hint=hint,
        ranks=ranks,
        tables=tuple(filter(None, tables)),
    )


def _headline(differences, said):
    return f"wrong result on {model.ranks(one.rank for one in differences)}: {said}"


def _expected_and_got(case, outputs, differences, columns):
    """Table of the first wrong elements, with the `columns` that identify a block."""
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
    return Table(
        f"Expected and got: the first wrong element{of}",
        ("rank", *columns, "element", "expected", "got"),
        tuple(rows),
    )
