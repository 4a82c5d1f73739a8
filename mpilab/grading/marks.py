"""The marks of a class: the CSV for the records, and the table that the command line prints."""

import csv
import io
import os
import tempfile
import unicodedata
from collections.abc import Mapping
from pathlib import Path

from mpilab.verdict import UNGRADABLE


def in_order(verdicts):
    """Verdicts as they are listed: the ungradable ones first, then by student."""
    return sorted(verdicts, key=lambda each: (each.status != "ungradable", each.student))


def points(value):
    """Points in their shortest form: '12', '7.5', and '' for None."""
    return "" if value is None else f"{round(value, 4) + 0.0:.10g}"


def write_csv(verdicts, path, exercises):
    """Write the marks as `path`: student, lab, a column for each exercise, total, status.

    `exercises` are the ids of the lab's exercises in their order (a dict of id to points will
    do). The file is replaced in one step, and the same verdicts give the same bytes.
    """
    path = Path(path)
    exercises = list(exercises)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["student", "lab", *exercises, "total", "status"])
    for verdict in in_order(verdicts):
        awarded = {each.exercise: each.awarded for each in verdict.exercises}
        # A spreadsheet would run a cell that begins with one of these signs as a formula.
        student = "'" * verdict.student.startswith(("=", "+", "-", "@")) + verdict.student
        writer.writerow(
            [
                *(student, verdict.lab),
                *(points(awarded.get(exercise)) for exercise in exercises),
                *(points(verdict.total), verdict.status),
            ]
        )
    handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except BaseException:
        os.unlink(scratch)
        raise


def mark_table(verdicts, exercises):
    """The marks as a plain text table, and below it why a submission is ungradable.

    `exercises` is a dict of exercise id to the points that can be had, in the order of columns;
    of a plain list of ids, the points are taken from the verdicts.
    """
    if not isinstance(exercises, Mapping):
        found = {each.exercise: each.points for verdict in verdicts for each in verdict.exercises}
        exercises = {exercise: found.get(exercise, 0) for exercise in exercises}
    maxima = [points(most) for most in exercises.values()]
    table = [
        ["student", *exercises, "total", "status"],
        ["", *(f"/{most}" for most in maxima), f"/{points(sum(exercises.values()))}", ""],
    ]
    notes = []
    for verdict in in_order(verdicts):
        awarded = {each.exercise: each.awarded for each in verdict.exercises}
        marks = [points(awarded.get(exercise)) or "-" for exercise in exercises]
        student = _printable(verdict.student)
        table.append([student, *marks, points(verdict.total) or "-", verdict.status])
        notes += [f"{student}: {_printable(reason)}" for reason in _reasons(verdict)]

    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        # Names and status to the left, numbers to the right.
        cells = [
            _filled(cell, width, left=place in (0, len(row) - 1))
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(2, "  ".join("-" * width for width in widths))
    if notes:
        lines += ["", "ungradable:", *(f"  {note}" for note in notes)]
    return "\n".join(lines)


def _reasons(verdict):
    """Why a submission is ungradable, one reason for each exercise that is; else nothing."""
    if verdict.reason:
        return [verdict.reason]
    return [
        f"{exercise.exercise}: {reasons[0] or 'no reason given'}"
        for exercise in verdict.exercises
        if (reasons := [item.reason for item in exercise.items if item.outcome == UNGRADABLE])
    ]


def _printable(text):
    """One line without control characters: a student's text must not steer the terminal."""
    return "".join(
        "\ufffd" if unicodedata.category(sign) in ("Cc", "Cs") else sign
        for sign in " ".join(text.split())
    )


def _width(text):
    """Columns that `text` takes on a terminal."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def _filled(text, width, left):
    space = " " * (width - _width(text))
    return text + space if left else space + text
