"""Marks as CSV: for a spreadsheet, for Moodle's grade import, and into the CSV of a platform.

A student without a final mark has an empty cell, never a zero. Texts that a spreadsheet would run
as a formula get a ' before them; identifiers in a platform's own file are left as they are.
"""

from dataclasses import dataclass, field

from mpilab.errors import InputError
from mpilab.grading.marks import points
from mpilab.instructor.exports.matching import Rows, find
from mpilab.instructor.marks import csv_text, read_rows, require_final, safe_cell

# What Canvas knows a student by; any other column of its gradebook is somebody's mark.
CANVAS_COLUMNS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Integration ID", "Root Account",
                  "Section")  # fmt: skip
MOODLE_COLUMNS = ("Identifier", "Full name", "ID number", "Username", "Email address")


@dataclass(frozen=True)
class Exported:
    """A CSV as text, and what was not matched.

    without   students of ours that the platform's file does not have
    unmarked  rows of the platform's file that have no mark of ours, by their first column
    """

    text: str
    without: list = field(default_factory=list)
    unmarked: list = field(default_factory=list)


def plain_csv(marks, partial=False):
    """Everything: points of each exercise, before and after the penalty, and the status."""
    open_ones = require_final(marks, partial)
    header = ["student", "lab", *marks.exercises, "before penalty", "penalty", "total", "out of",
              "status"]  # fmt: skip
    rows = [header]
    for each in marks.students:
        awarded = {exercise.exercise: exercise.awarded for exercise in each.exercises}
        final = each.student not in open_ones
        rows.append([
            safe_cell(each.student),
            each.lab,
            *(points(awarded.get(exercise)) for exercise in marks.exercises),
            *((points(each.raw_total), points(each.penalty), points(each.total)) if final
              else ("", "", "")),
            points(each.points),
            each.status,
        ])  # fmt: skip
    return Exported(csv_text(rows))


def moodle(marks, *, column="", identifier="username", roster=None, partial=False):
    """For Moodle's grade import: a column that identifies the student, and one of points.

    `identifier` is the header of the first column; its values come from the column of that name in
    `roster` ({student: {column: value}}), or are the students' names here without a roster.
    """
    open_ones = require_final(marks, partial)
    rows, without = [[identifier, column or marks.title]], []
    for each in marks.students:
        if roster is None:
            known = each.student
        else:
            known = roster.get(each.student, {}).get(identifier.casefold(), "")
        if not known:
            without.append(each.student)
            continue
        total = "" if each.student in open_ones else points(each.total)
        rows.append([safe_cell(known), total])
    _refuse_twice([row[0] for row in rows[1:]], identifier)
    return Exported(csv_text(rows), without)


def moodle_worksheet(marks, template, *, roster=None, match="", partial=False, scale=False):
    """Fill the grading worksheet of a Moodle assignment, a CSV, with points."""
    open_ones = require_final(marks, partial)
    header, *body = read_rows(template)
    grade = _column(header, "Grade", template)
    rows = Rows(header, body, MOODLE_COLUMNS, template)
    found = find(marks.students, rows, roster, match)
    most = header.index("Maximum Grade") if "Maximum Grade" in header else None
    filled = [header]
    for place, row in enumerate(body):
        each = found.get(place)
        if each is not None:
            row = [*row, *[""] * (len(header) - len(row))]
            possible = row[most] if most is not None else ""
            row[grade] = (
                "" if each.student in open_ones else _scaled(each, possible, scale, template)
            )
            filled.append(row)
    return _matched(filled, marks, found, body)


def canvas(marks, template, column, *, roster=None, match="", partial=False, scale=False):
    """Fill one assignment's column of a gradebook that Canvas exported; a CSV for its import.

    Only the columns that identify students and the one called `column` (its number in brackets may
    be left out) are kept, so that nobody else's marks are touched.
    """
    open_ones = require_final(marks, partial)
    header, *body = read_rows(template)
    place_of = _assignment(header, column, template)
    kept = [place for place, name in enumerate(header) if name.strip() in CANVAS_COLUMNS]
    if "ID" not in (header[place].strip() for place in kept):
        raise InputError(f"{template}: no column 'ID'; export the gradebook from Canvas again")
    special = [row for row in body if not _cell(row, header.index("ID")).strip()]
    students = [row for row in body if _cell(row, header.index("ID")).strip()]
    possible = next(
        (_cell(row, place_of) for row in special if "Points Possible" in _cell(row, 0)), ""
    )
    rows = Rows(header, students, CANVAS_COLUMNS, template)
    found = find(marks.students, rows, roster, match)
    cut = [[*(_cell(row, place) for place in kept), _cell(row, place_of)]
           for row in [header, *special]]  # fmt: skip
    for place, row in enumerate(students):
        each = found.get(place)
        if each is not None:
            total = "" if each.student in open_ones else _scaled(each, possible, scale, template)
            cut.append([*(_cell(row, place) for place in kept), total])
    return _matched(cut, marks, found, students)


def read_roster(path):
    """{student: {column in lower case: value}} of a CSV with a column 'student', e.g. the
    submissions.csv of 'mpilab collect'."""
    header, *body = read_rows(path)
    names = [name.strip().casefold() for name in header]
    if "student" not in names:
        raise InputError(f"{path}: no column 'student'; it has {', '.join(header)}")
    roster = {}
    for row in body:
        entry = {name: _cell(row, place).strip() for place, name in enumerate(names)}
        student = entry["student"].removeprefix("'")
        if student in roster:
            raise InputError(f"{path}: {student!r} is there twice; keep one row")
        roster[student] = entry
    return roster


def _matched(rows, marks, found, body):
    names = {each.student for each in found.values()}
    without = [each.student for each in marks.students if each.student not in names]
    unmarked = [_cell(row, 0) for place, row in enumerate(body) if place not in found]
    return Exported(csv_text(rows), without, unmarked)


def _scaled(student, possible, scale, template):
    """The points of an Effective as a platform that gives `possible` of them wants to have them."""
    try:
        most = float(possible.replace(",", "."))
    except ValueError:
        return points(student.total)
    if most == student.points or not student.points:
        return points(student.total)
    if not scale:
        raise InputError(
            f"{template}: gives {points(most)} points for this, and {student.lab} is worth "
            f"{points(student.points)}; change it there, or scale the marks with --scale"
        )
    return points(round(student.total * most / student.points, 2))


def _assignment(header, wanted, template):
    """The place of the column that is called so, with or without Canvas's number behind it."""
    bare = [name.strip().rpartition(" (")[0] or name.strip() for name in header]
    places = [place for place, name in enumerate(header) if name.strip() == wanted]
    places = places or [place for place, name in enumerate(bare) if name == wanted]
    if len(places) == 1 and header[places[0]].strip() not in CANVAS_COLUMNS:
        return places[0]
    known = [name for name in header if name.strip() not in CANVAS_COLUMNS]
    several = "there are several" if len(places) > 1 else "there is none"
    raise InputError(
        f"{template}: column {wanted!r}: {several}; write one of {', '.join(known)} with --column"
    )


def _column(header, name, template):
    if name not in header:
        raise InputError(f"{template}: no column {name!r}; it has {', '.join(header)}")
    return header.index(name)


def _refuse_twice(values, column):
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise InputError(
            f"{column} {', '.join(twice[:5])}: several students have it; mend the roster"
        )


def _cell(row, place):
    return row[place] if place < len(row) else ""
