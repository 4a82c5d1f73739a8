"""The marks of a class: the CSV file, and the table that the command line prints."""

import csv
import io
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mpilab.grading.decisions import OVERRIDE, Effective
from mpilab.judging.verdict import UNGRADABLE, SubmissionVerdict
from mpilab.util.files import write_whole

UNCONFIRMED = "not confirmed by simulation"

# A spreadsheet evaluates a cell that begins with one of these as a formula.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


# What is listed: as judged, or with the manual decisions.
Verdict = SubmissionVerdict | Effective


def safe_cell(text: str) -> str:
    """A text as a cell of a CSV, prefixed with ' if a spreadsheet would run it as a formula."""
    return "'" * text.startswith(FORMULA) + text


def bare_cell(text: str) -> str:
    """The text that `safe_cell` has made `text` of."""
    return text[1:] if text.startswith("'") and text[1:].startswith(FORMULA) else text


def listing_order(verdict: Verdict) -> tuple[bool, str]:
    """The key by which verdicts are listed: the ungradable ones first, then by student."""
    return verdict.status != "ungradable", verdict.student


def points(value: float | None) -> str:
    """Points in their shortest form: '12', '7.5', and '' for None."""
    return "" if value is None else f"{round(value, 4) + 0.0:.10g}"


def write_csv(verdicts: Sequence[Verdict], path: str | Path, exercises: Iterable[str]) -> None:
    """Write the marks to `path`: student, lab, a column for each exercise, total, status.

    `verdicts` are SubmissionVerdicts or Effectives; `exercises` are the ids of the lab's exercises
    in order (a dict of id to points also works). If lateness has been checked, there is a column
    for the penalty; if marks rest on Open MPI alone, one that names the exercises. The file is
    replaced atomically, and the same verdicts give the same bytes.
    """
    path = Path(path)
    exercises = list(exercises)
    late = any(map(_late, verdicts))
    unconfirmed = any(map(unconfirmed_exercises, verdicts))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        [
            "student",
            "lab",
            *exercises,
            *["penalty"] * late,
            "total",
            "status",
            *[UNCONFIRMED] * unconfirmed,
        ]
    )
    for verdict in sorted(verdicts, key=listing_order):
        awarded = {each.exercise: each.awarded for each in verdict.exercises}
        writer.writerow(
            [
                *(safe_cell(verdict.student), verdict.lab),
                *(points(awarded.get(exercise)) for exercise in exercises),
                *[points(_penalty(verdict))] * late,
                *(points(verdict.total), verdict.status),
                *[" ".join(unconfirmed_exercises(verdict))] * unconfirmed,
            ]
        )
    write_whole(path, text.getvalue())


def mark_table(verdicts: Sequence[Verdict], exercises: Mapping[str, float] | Iterable[str]) -> str:
    """The marks as a plain text table.

    The notes below it tell why submissions are ungradable, which decisions do not count, and what
    no simulation has confirmed. A star marks overridden points. `exercises` is a dict of exercise
    id to maximum points, in column order; for a list of ids, the points come from the verdicts.
    """
    if not isinstance(exercises, Mapping):
        found = {each.exercise: each.points for verdict in verdicts for each in verdict.exercises}
        exercises = {exercise: found.get(exercise, 0) for exercise in exercises}
    maxima = [points(most) for most in exercises.values()]
    late = any(map(_late, verdicts))
    total = f"/{points(sum(exercises.values()))}"
    table = [
        ["student", *exercises, *["penalty"] * late, "total", "status"],
        ["", *(f"/{most}" for most in maxima), *[""] * late, total, ""],
    ]
    notes, doubts = [], []
    for verdict in sorted(verdicts, key=listing_order):
        awarded = {
            each.exercise: _shown(each.awarded, each, each.items) for each in verdict.exercises
        }
        marks = [awarded.get(exercise, "-") for exercise in exercises]
        student = _printable(verdict.student)
        if late:
            marks.append(points(_penalty(verdict)) or "-")
        table.append([student, *marks, _shown(verdict.total, verdict), verdict.status])
        doubts += [f"  {_printable(note)}" for note in getattr(verdict, "notes", ())]
        notes += [f"{student}: {_printable(reason)}" for reason in _reasons(verdict)]

    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        # Align names and status to the left, numbers to the right.
        cells = [
            _filled(cell, width, left=place in (0, len(row) - 1))
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(2, "  ".join("-" * width for width in widths))
    if notes:
        lines += ["", "ungradable:", *(f"  {note}" for note in notes)]
    if doubts:
        lines += ["", "to be looked at:", *doubts]
    counts = Counter(name for verdict in verdicts for name in unconfirmed_exercises(verdict))
    if counts:
        told = [
            f"  {name}: {counts[name]} of {len(verdicts)}" for name in exercises if counts[name]
        ]
        lines += ["", f"{UNCONFIRMED} (SimGrid was not installed where they were judged):", *told]
    return "\n".join(lines)


def unconfirmed_exercises(verdict: Verdict) -> list[str]:
    """The ids of exercises in a SubmissionVerdict or Effective judged on Open MPI alone."""
    return [
        each.exercise
        for each in verdict.exercises
        if getattr(each, "decision", None) is None and any(item.unconfirmed for item in each.items)
    ]


def _late(verdict: Verdict) -> bool:
    return isinstance(verdict, Effective) and verdict.late is not None


def _penalty(verdict: Verdict) -> float | None:
    """The late penalty in points; None if lateness was not checked, or there is no total."""
    if not isinstance(verdict, Effective) or verdict.late is None or verdict.total is None:
        return None
    return verdict.penalty


def _shown(value: float | None, whole: object, parts: Iterable[object] = ()) -> str:
    """Points for the table, with a star if an override set them."""
    hands = [getattr(part, "decision", None) for part in (whole, *parts)]
    star = "*" * any(hand is not None and hand.kind == OVERRIDE for hand in hands)
    return (points(value) or "-") + star


def _reasons(verdict: Verdict) -> list[str]:
    """Why a submission is ungradable, one reason for each such exercise; empty if it is not."""
    if verdict.status != UNGRADABLE:
        return []
    if verdict.reason:
        return [verdict.reason]
    return [
        f"{exercise.exercise}: {reasons[0] or 'no reason given'}"
        for exercise in verdict.exercises
        if exercise.awarded is None
        if (reasons := [item.reason for item in exercise.items if item.outcome == UNGRADABLE])
    ]


def _printable(text: str) -> str:
    """One line without control characters: a student's text must not control the terminal."""
    return "".join(
        "\ufffd" if unicodedata.category(sign) in ("Cc", "Cs") else sign
        for sign in " ".join(text.split())
    )


def _width(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def _filled(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text
