"""The marks of a class as they count, for whatever is made of them; and who has none yet."""

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from mpilab import exercises
from mpilab.build import ROOT
from mpilab.errors import InputError
from mpilab.grading.effective import effective
from mpilab.grading.pages import opened
from mpilab.plain import plain
from mpilab.verdict import UNGRADABLE

LISTED = 10  # students in an error message


@dataclass(frozen=True)
class ClassMarks:
    """All marks of a lab.

    title     the lab's name for people, its id where the lab is not in this copy of mpilab
    students  a list of Effective, sorted by student
    seconds   {student: wall seconds that grading took}, where they are known
    """

    lab: str
    title: str
    students: list
    seconds: dict

    @property
    def points(self):
        """Points that can be had: the most of anybody, since who is missing may know of none."""
        return max(each.points for each in self.students)

    @property
    def exercises(self):
        """{exercise id: (title, points)} in the lab's order."""
        return {
            each.exercise: (each.title or each.exercise, each.points)
            for student in self.students
            for each in student.exercises
        }

    @property
    def unfinished(self):
        """The students without a final mark, the ungradable ones first."""
        waiting = [each for each in self.students if each.status != "graded"]
        return sorted(waiting, key=lambda each: (each.status != "ungradable", each.student))


def class_marks(out, lab):
    """ClassMarks of a lab from the folder `out` that `mpilab grade` has filled; InputError where
    there is no gradebook, or nothing in it on this lab."""
    with opened(out, lab) as book:
        students = effective(book, lab)
        runs = book.newest(lab)
    if not students:
        raise InputError(f"{out}: no verdict on lab {lab!r}; check --lab, or grade it first")
    seconds = {run.verdict.student: run.seconds for run in runs if run.seconds is not None}
    return ClassMarks(lab, _title(lab), students, seconds)


def require_final(marks, partial):
    """The students whose marks are not to be given out, {student}; they are never a zero.

    Raises InputError with a list of them unless `partial`.
    """
    waiting = marks.unfinished
    if waiting and not partial:
        listed = [f"  {plain(each.student)}: {why_unfinished(each)}" for each in waiting[:LISTED]]
        if len(waiting) > LISTED:
            listed.append(f"  and {len(waiting) - LISTED} more")
        raise InputError(
            f"{len(waiting)} of {len(marks.students)} students have no final mark in {marks.lab}; "
            "finish them (mpilab marks), or leave their cells empty with --partial:\n"
            + "\n".join(listed)
        )
    return {each.student for each in waiting}


def why_unfinished(student):
    """Why an Effective is no final mark, in one line."""
    if student.status == "ungradable":
        return "ungradable: " + "; ".join(ungradable_reasons(student))
    items = [f"{each.exercise}" for each in student.exercises if each.awarded is None]
    return f"a person has to read {', '.join(items)}"


def ungradable_reasons(student):
    """The reasons why an Effective is ungradable: its own, or one for each exercise that is."""
    if student.reason:
        return [one_line(student.reason)]
    return [
        f"{exercise.exercise}: {one_line(reasons[0]) or 'no reason given'}"
        for exercise in student.exercises
        if (reasons := [item.reason for item in exercise.items
                        if item.outcome == UNGRADABLE and item.awarded is None])
    ]  # fmt: skip


def one_line(text):
    """The first line of a text from a program or a student, at most 300 characters of it; of a
    traceback, its last line."""
    lines = [line.strip() for line in plain(text).split("\n") if line.strip()] or [""]
    line, trace, _ = lines[0].partition("Traceback (most recent call last):")
    line += lines[-1] * bool(trace)
    return line if len(line) <= 300 else line[:299] + "…"


def safe_cell(text):
    """A text as a cell of a CSV: a spreadsheet would run some as formulas, these get a ' before."""
    return "'" * str(text).startswith(("=", "+", "-", "@", "\t", "\r")) + str(text)


def csv_text(rows):
    """Rows of cells as the text of a CSV file; the cells are written as they are."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def read_rows(path):
    """The rows of a CSV file as lists of texts, whatever its separator, without empty rows.

    Raises InputError for what cannot be read.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check the name") from error
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is not UTF-8; save it as CSV UTF-8"
        ) from error
    first = text.partition("\n")[0]
    separator = max(",;\t", key=first.count)
    rows = [row for row in csv.reader(io.StringIO(text), delimiter=separator) if any(row)]
    if not rows:
        raise InputError(f"{path}: is empty; a CSV with a header is needed")
    return rows


def _title(lab):
    path = ROOT / "grading" / lab / "rubric.toml"
    return exercises.load(path).title if path.is_file() else lab
