"""Export marks to Gradescope, nbgrader, Moodle, Canvas, CI services, and CSV for spreadsheets; and
anonymous results for research."""

import html
import json
import re
import secrets
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import nbformat

from mpilab.course.marks import (
    ClassMarks,
    one_line,
    require_final,
    ungradable_reasons,
)
from mpilab.diagnosis.model import KINDS
from mpilab.errors import InputError, MpilabError, SetupError
from mpilab.grading.decisions import Effective, EffectiveExercise, EffectiveItem
from mpilab.grading.marks import points
from mpilab.grading.release import nbgrader_source
from mpilab.grading.submission import Roster, read_roster
from mpilab.judging.verdict import BLANK, FAIL, MANUAL, UNGRADABLE
from mpilab.util.files import atomic_write, bare_cell, csv_text, read_rows, safe_cell
from mpilab.util.kit import NBGRADER_PYTHON, ROOT
from mpilab.util.processes import environment_of
from mpilab.util.text import composed, plain

_NBGRADER_WRITER = Path(__file__).with_name("nbgrader_writer.py")
NBGRADER_LOADS = 'load_subconfig("mpilab_config.py")'
_NBGRADER_CONFIG = """\
# Written by 'mpilab release --nbgrader': 'nbgrader autograde' calls 'mpilab grade'.
import importlib.util
from pathlib import Path

spec = importlib.util.spec_from_file_location("mpilab_nbgrader", {writer!r})
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
module.configure(get_config(), python={python!r}, course=Path(__file__).absolute().parent)
"""

VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")

# Names have many spellings ('Schmidt, Anna', 'schmidtanna'); any other identifier must match
# exactly.
NAMES = ("Student", "Full name")

# The columns that identify a student in Canvas; all others of its gradebook hold marks.
CANVAS_COLUMNS = (
    "Student",
    "ID",
    "SIS User ID",
    "SIS Login ID",
    "Integration ID",
    "Root Account",
    "Section",
)
# By these Canvas finds a student; names and sections are for people.
CANVAS_IDENTIFIERS = CANVAS_COLUMNS[1:6]
MOODLE_COLUMNS = ("Identifier", "Full name", "ID number", "Username", "Email address")

# The columns of a grading worksheet that Moodle reads; it refuses a file without the first three
# (mod/assign/feedback/offline/importgradeslib.php). All others tell people who and what it is.
_IDENTIFIER, _GRADE, _CHANGED = "Identifier", "Grade", "Last modified (grade)"
_COMMENTS = "Feedback comments"
WORKSHEET = (
    *(_IDENTIFIER, "Full name", "Status", _GRADE, "Maximum grade", "Grade can be changed"),
    *("Last modified (submission)", _CHANGED, _COMMENTS),
)
WORKSHEET_READ = {_IDENTIFIER, _GRADE, _CHANGED, _COMMENTS}
MADE_BY = "mpilab:"  # at the beginning of our comments, so that we replace no others


# Gradescope: a results.json for each student, as an autograder writes it. Format:
# https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format


def gradescope(
    marks: ClassMarks,
    folder: str | Path,
    *,
    visibility: str = "after_published",
    partial: bool = False,
) -> list[str]:
    """Write FOLDER/STUDENT/results.json for each student with a final mark; a list of them.

    Removes what an earlier export wrote for a student who no longer has a final mark.
    """
    if visibility not in VISIBILITIES:
        raise InputError(f"visibility {visibility!r}: write one of {', '.join(VISIBILITIES)}")
    open_ones = require_final(marks, partial)
    for student in open_ones:
        if (Path(folder) / student / "results.json").exists():
            shutil.rmtree(Path(folder) / student)
    written = []
    for each in marks.students:
        if each.student not in open_ones:
            text = json.dumps(results(each, visibility), indent=2, ensure_ascii=False)
            atomic_write(Path(folder) / each.student / "results.json", text + "\n")
            written.append(each.student)
    return written


def results(student: Effective, visibility: str) -> dict[str, Any]:
    """The content of results.json for an Effective with a final mark, as a dict."""
    tests = []
    for number, exercise in enumerate(student.exercises, start=1):
        if exercise.decision is not None:
            words = f"Set manually: {plain(exercise.decision.reason)}"
            tests.append(_test(f"{number}", exercise.title, exercise, words, visibility))
            continue
        for place, item in enumerate(exercise.items, start=1):
            name = f"{exercise.title}: {item.title or item.item}"
            told = (plain(item.reason), plain(item.comment), _try(item))
            words = "\n".join(filter(None, told))
            tests.append(_test(f"{number}.{place}", name, item, words, visibility))
    return {
        # Gradescope uses this score, if given, instead of the sum of the tests.
        "score": _number(student.total or 0.0),
        "output": _about(student),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"lab": student.lab, "out_of": _number(student.points)},
    }


def _test(
    number: str, name: str, part: EffectiveExercise | EffectiveItem, words: str, visibility: str
) -> dict[str, Any]:
    """An entry of 'tests' for an exercise or item.

    It has no score if the part was not judged and only the total was set manually.
    """
    entry = {
        "number": number,
        "name": plain(name),
        "max_score": _number(part.points),
        "output": words,
        "output_format": "text",
        "visibility": visibility,
    }
    if part.awarded is not None:
        entry["score"] = _number(part.awarded)
        entry["status"] = "passed" if part.awarded >= part.points else "failed"
    return entry


def _about(student: Effective) -> str:
    if student.status == UNGRADABLE:
        return f"This could not be graded. {plain(' '.join(ungradable_reasons(student)))}"
    lines = [f"{points(student.total)} of {points(student.points)} points."]
    waiting = sum(each.points for each in student.exercises if each.awarded is None)
    if student.status != "graded":  # a total that was set manually is final
        lines.append(f"{points(waiting)} more points await manual grading.")
    if student.penalty:
        lines.append(f"Handed in late: {points(student.penalty)} points deducted.")
    if student.decision is not None:
        lines.append(f"The total was set manually: {plain(student.decision.reason)}")
    return "\n".join(lines)


def _try(item: EffectiveItem) -> str:
    line = item.evidence.get("reproduce")
    return f"Try it in the lab: {plain(line)}" if line and item.awarded == 0 else ""


def _number(value: float) -> float:
    return round(float(value), 4)


# What a student reads beside a total: points and reasons, as text, HTML or Markdown.

# Spreadsheets, which would run these, also open a platform's own file, where a ' would be seen.
_ENTITIES = re.compile("[=+\\-@＝＋－＠﹦﹢﹣﹫|\t]")
_NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PUNCTUATION = re.compile(r"([!-/:-@\[-`{-~])")


def comment_text(student: Effective) -> str:
    """The points of an Effective and the reasons for those that are missing, as plain text."""
    lines = [_about(student)]
    for exercise in student.exercises:
        lines += ["", _heading(exercise), *(f"- {line}" for line in _lines(exercise))]
    return "\n".join(lines)


def comment_html(student: Effective) -> str:
    """Like `comment_text`, as one line of HTML in which no spreadsheet finds a formula."""
    parts = [f"<p>{MADE_BY} {_html(_about(student))}</p>"]
    for exercise in student.exercises:
        items = "".join(f"<li>{_html(line)}</li>" for line in _lines(exercise))
        parts.append(f"<p>{_html(_heading(exercise))}</p>" + (f"<ul>{items}</ul>" if items else ""))
    return "".join(parts)


def comment_markdown(student: Effective, title: str) -> str:
    """Like `comment_text`, as Markdown below a heading."""
    lines = [f"# {_markdown(title)}", "", _markdown(_about(student))]
    for exercise in student.exercises:
        lines += ["", f"## {_markdown(_heading(exercise))}", ""]
        lines += [f"- {_markdown(line)}" for line in _lines(exercise)]
    return "\n".join(lines) + "\n"


# The summary of a job on GitHub, GitLab and other CI services.


def summary(students: Sequence[Effective], title: str, suffix: str) -> str:
    """The points of `students` and the reasons for those that are missing, for a CI service.

    suffix   of the file: '.md' (Markdown, as in GitHub's job summaries) or '.xml' (JUnit, as in
             GitLab's test reports)

    Raises InputError for another suffix.
    """
    if suffix == ".xml":
        return _junit(students, title)
    if suffix == ".md":
        return "\n".join(comment_markdown(each, f"{title}: {each.student}") for each in students)
    raise InputError(
        f"summary {suffix!r}: write a name that ends in .md (Markdown) or .xml (JUnit)"
    )


def _junit(students: Iterable[Effective], title: str) -> str:
    """A suite for each student and a test for each item, in the form of JUnit."""
    root = ET.Element("testsuites", name=title)
    for student in students:
        suite = ET.SubElement(root, "testsuite", name=student.student)
        ET.SubElement(suite, "system-out").text = _about(student)
        if student.status == UNGRADABLE:
            case = ET.SubElement(suite, "testcase", classname=title, name=student.lab)
            ET.SubElement(case, "error", message=_about(student))
        for test in results(student, "visible")["tests"]:
            given = f"{points(test.get('score')) or '–'} of {points(test['max_score'])}"
            case = ET.SubElement(
                suite, "testcase", classname=title, name=f"{test['name']} ({given})"
            )
            if "score" not in test:
                ET.SubElement(case, "skipped", message=test["output"])
            elif test["status"] == "failed":
                # GitLab shows the text, others the attribute.
                ET.SubElement(case, "failure", message=test["output"]).text = test["output"]
    ET.indent(root)
    return _NOT_IN_XML.sub("\ufffd", ET.tostring(root, encoding="unicode")) + "\n"


def _heading(exercise: EffectiveExercise) -> str:
    awarded = points(exercise.awarded) or "–"
    return f"{plain(exercise.title or exercise.exercise)}: {awarded} of {points(exercise.points)}"


def _lines(exercise: EffectiveExercise) -> list[str]:
    """A line for each item that lost points or has a comment, and one for an override."""
    if exercise.decision is not None:
        return [f"The points were set manually: {plain(exercise.decision.reason)}"]
    lines = []
    for item in exercise.items:
        lost = item.awarded is None or item.awarded < item.points
        said = [plain(item.reason)] * lost + [plain(item.comment)]
        if lost or item.comment:
            given = f"{points(item.awarded) or '–'} of {points(item.points)}"
            words = " ".join(filter(None, [*said, _try(item)]))
            lines.append(f"{plain(item.title or item.item)}: {given}. {words}".rstrip())
    return lines


def _html(text: str) -> str:
    lines = html.escape(text).split("\n")
    return "<br>".join(_ENTITIES.sub(lambda sign: f"&#{ord(sign[0])};", line) for line in lines)


def _markdown(text: str) -> str:
    # Two blanks break a line; more than these at its beginning could make it a block of code.
    lines = (line.strip() for line in text.split("\n"))
    return "  \n  ".join(_PUNCTUATION.sub(r"\\\1", line) for line in lines)


# nbgrader: its gradebook.db, written through nbgrader's own API. nbgrader need not be installed
# with mpilab: any Python that can import it works.


def nbgrader(
    marks: ClassMarks, path: str | Path, *, partial: bool = False, python: str | Path | None = None
) -> list[str]:
    """Write the assignment of a lab into the gradebook at `path`; a list of students.

    Each exercise becomes a graded cell of one notebook. An exercise without points gets no score
    and, unless the total is final, is marked for manual grading; nbgrader counts it as 0.
    """
    require_final(marks, partial)
    python = python or find_nbgrader()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run(
        # -I: do not search the writer's folder, whose modules could hide others.
        [python, "-I", _NBGRADER_WRITER, path],
        input=json.dumps(nbgrader_table(marks)),
        capture_output=True,
        text=True,
        env=environment_of(python),
    )
    if ran.returncode:
        said = (ran.stderr.strip() or f"exit status {ran.returncode}").splitlines()[-1]
        raise MpilabError(
            f"{path}: nbgrader, run by {python}, could not write it: {one_line(said)}; check that "
            "it is an nbgrader gradebook of version 0.9, or name another file with -o"
        )
    return [each.student for each in marks.students]


def nbgrader_course(course: str | Path, labs: Iterable[str]) -> list[Path]:
    """Put labs into the course folder of nbgrader as its sources; the files that were written.

    A configuration comes with them, by which `nbgrader autograde` calls `mpilab grade`. A
    nbgrader_config.py that exists is not changed: it must load this configuration.
    """
    course, written = Path(course), []
    for lab in labs:
        notebook = nbgrader_source(ROOT / "labs" / "source" / f"{lab}.py")
        target = course / "source" / lab / f"{lab}.ipynb"
        written.append(atomic_write(target, nbformat.writes(notebook, version=4) + "\n"))
    ours = _NBGRADER_CONFIG.format(writer=str(_NBGRADER_WRITER), python=sys.executable)
    written.append(atomic_write(course / "mpilab_config.py", ours))
    config = course / "nbgrader_config.py"
    if not config.exists():
        written.append(atomic_write(config, NBGRADER_LOADS + "\n"))
    return written


def nbgrader_table(marks: ClassMarks) -> dict[str, Any]:
    """ClassMarks as the input of nbgrader_writer.py.

    It holds the assignment, its cells, and each student's grades, penalty in points, and comments.
    """
    texts = {
        exercise.exercise
        for student in marks.students
        for exercise in student.exercises
        if any(item.outcome == MANUAL for item in exercise.items)
    }
    cells = [
        {"name": name, "points": most, "type": "markdown" if name in texts else "code"}
        for name, (_, most) in marks.exercises.items()
    ]
    students = [
        {
            "id": each.student,
            "penalty": _penalty(each),
            "grades": _grades(each, marks.exercises, texts, each.status == "graded"),
        }
        for each in marks.students
    ]
    return {"assignment": marks.lab, "cells": cells, "students": students}


def find_nbgrader() -> str | Path:
    """The path of a Python that can import nbgrader; SetupError with a remedy if there is none."""
    for python in (sys.executable, NBGRADER_PYTHON):
        if Path(python).exists():
            look = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('nbgrader'))"
            if subprocess.run([python, "-I", "-c", look], capture_output=True).returncode == 0:
                return python
    raise SetupError(
        "nbgrader is not installed here; install it in a separate environment with 'python3 "
        "tools/nbgrader_venv.py', or name a Python installation that has it with --python"
    )


def _penalty(student: Effective) -> float:
    """Points that nbgrader must deduct from the sum of the cells to get our total."""
    if student.status != "graded" or student.total is None:
        return 0.0
    return sum(each.awarded or 0.0 for each in student.exercises) - student.total


def _grades(
    student: Effective, known: Iterable[str], texts: Collection[str], final: bool
) -> list[dict[str, Any]]:
    """A dict for each exercise; one without points awaits manual grading unless `final`."""
    mine = {each.exercise: each for each in student.exercises}
    grades = []
    for name in known:
        each = mine.get(name)
        awarded = None if each is None else each.awarded
        by_hand = name in texts or bool(each and each.decision)
        grades.append(
            {
                "name": name,
                "auto": None if by_hand else awarded,
                "manual": awarded if by_hand else None,
                "waits": awarded is None and not final,
                "comment": "" if each is None else _comment(each),
            }
        )
    return grades


def _comment(exercise: EffectiveExercise) -> str:
    """The comment for the student on an exercise, one line per item."""
    if exercise.decision is not None:
        return plain(exercise.decision.reason)
    lines = (
        f"{item.title or item.item}: {' '.join(filter(None, (item.reason, item.comment)))}"
        for item in exercise.items
        if item.reason or item.comment
    )
    return plain("\n".join(lines))


# Matching the rows of a platform's CSV with our students.


@dataclass(frozen=True)
class Rows:
    """Rows of students in a CSV; `keys` are the columns that identify a student."""

    header: list[str]
    body: list[list[str]]
    keys: tuple[str, ...]
    path: str | Path

    def column(self, name: str) -> int | None:
        """The index of a column, whose name is not case-sensitive; None if there is none."""
        names = [each.strip().casefold() for each in self.header]
        return names.index(name.casefold()) if name.casefold() in names else None


def find(
    students: Iterable[Effective], rows: Rows, roster: Roster | None = None, match: str = ""
) -> dict[int, Effective]:
    """{index of the row: Effective} for all students for whom a row is found.

    Searches every identifying column for the student's name, and for the roster's value in the
    column of the same name ('id' also in 'Identifier'); `match` names the only column to search.
    Raises InputError if a row matches several students, or a student several rows.
    """
    keys = [name for name in rows.keys if rows.column(name) is not None]
    if match:
        if rows.column(match) is None:
            raise InputError(f"{rows.path}: no column {match!r}; it has {', '.join(rows.header)}")
        keys = [match]
    index: dict[tuple[str, str], set[int]] = defaultdict(set)  # (column, text) -> places of rows
    for key in keys:
        column = rows.column(key)
        for place, row in enumerate(rows.body):
            text = "" if column is None else _canonical(key, _cell(row, column))
            if text:
                index[key.casefold(), text].add(place)
    found: dict[int, Effective] = {}
    for each in students:
        places = _places(each.student, keys, index, (roster or {}).get(each.student, {}))
        if len(places) > 1:
            raise InputError(
                f"{rows.path}: {len(places)} rows match the student {each.student!r}; name the "
                "column to compare with --match, or identify students with --roster"
            )
        for place in places:
            if place in found:
                other = found[place].student
                raise InputError(
                    f"{rows.path}: the row of {rows.body[place][0]!r} matches both {other!r} and "
                    f"{each.student!r}; name the column to compare with --match"
                )
            found[place] = each
    return found


def _places(
    student: str,
    keys: Iterable[str],
    index: Mapping[tuple[str, str], set[int]],
    entry: Mapping[str, str],
) -> set[int]:
    """The rows of a student: found by identifiers in the roster, otherwise by name."""
    places, identified = set(), False
    for key in keys:
        known = entry.get(key.casefold()) or (entry.get("id") if key == "Identifier" else "")
        if known:
            places |= index.get((key.casefold(), _canonical(key, known)), set())
            identified |= key not in NAMES
    # A row of the same name with another identifier is a namesake's.
    if not places and not identified:
        for key in keys:
            places |= index.get((key.casefold(), _canonical(key, student)), set())
    return places


def _canonical(key: str, text: str) -> str:
    text = composed(text.strip().removeprefix("'"))
    if key in NAMES:
        return "".join(sign for sign in text.casefold() if sign.isalnum())
    return text.removeprefix("Participant ") if key == "Identifier" else text


# CSV: for a spreadsheet, for Moodle's grade import, or filled into a platform's own file.
#
# A student without a final mark gets an empty cell, never a zero. Text that a spreadsheet would run
# as a formula is prefixed with '; identifiers in a platform's own file stay unchanged.


@dataclass(frozen=True)
class Exported:
    """A CSV as text, and what was not matched.

    without   our students without a row or an identifier
    unmarked  first cells of the rows in the platform's file that match none of our students
    """

    text: str
    without: list[str] = field(default_factory=list)
    unmarked: list[str] = field(default_factory=list)


def plain_csv(marks: ClassMarks, partial: bool = False) -> Exported:
    """All marks: points of each exercise, totals before and after the penalty, and the status."""
    open_ones = require_final(marks, partial)
    header = [
        "student",
        "lab",
        *marks.exercises,
        "before penalty",
        "penalty",
        "total",
        "out of",
        "status",
    ]
    rows = [header]
    for each in marks.students:
        awarded = {exercise.exercise: exercise.awarded for exercise in each.exercises}
        final = each.student not in open_ones
        rows.append(
            [
                each.student,
                each.lab,
                *(points(awarded.get(exercise)) for exercise in marks.exercises),
                *(
                    (points(each.raw_total), points(each.penalty), points(each.total))
                    if final
                    else ("", "", "")
                ),
                points(each.points),
                each.status,
            ]
        )
    return Exported(csv_text(rows))


def moodle(
    marks: ClassMarks,
    *,
    column: str = "",
    identifier: str = "username",
    roster: Roster | None = None,
    partial: bool = False,
) -> Exported:
    """A CSV for Moodle's grade import: a column that identifies the student, and one of points.

    `identifier` is the header of the first column. Its values come from the column of that name in
    `roster` ({student: {column: value}}); without a roster they are our names of the students.
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
        rows.append([known, total])
    _refuse_twice([row[0] for row in rows[1:]], identifier)
    return Exported(csv_text(rows), without)


def moodle_worksheet(
    marks: ClassMarks,
    template: str | Path,
    *,
    roster: Roster | None = None,
    match: str = "",
    partial: bool = False,
    scale: bool = False,
) -> Exported:
    """Fill points and comments into the grading worksheet (a CSV) of a Moodle assignment.

    All its columns are kept, with the identifiers and times that Moodle compares. A comment that
    somebody else wrote into it stays.
    """
    open_ones = require_final(marks, partial)
    header, *body = read_rows(template)
    grade, *_ = (_column(header, name, template) for name in (_GRADE, _IDENTIFIER, _CHANGED))
    rows = Rows(header, body, MOODLE_COLUMNS, template)
    found = find(marks.students, rows, roster, match)
    most, comments = rows.column("Maximum grade"), rows.column(_COMMENTS)
    filled = [header]
    for place, row in enumerate(body):
        each = found.get(place)
        if each is None:
            continue
        row = [
            text if name in WORKSHEET_READ else safe_cell(bare_cell(text))
            for name, text in zip_longest(header, row[: len(header)], fillvalue="")
        ]
        row[grade] = ""
        if each.student not in open_ones:
            possible = row[most] if most is not None else ""
            row[grade] = _scaled(each, possible, scale, f"{template}: Maximum grade")
            if comments is not None and _is_ours(row[comments]):
                row[comments] = comment_html(each)
        filled.append(row)
    return _matched(filled, marks, found, body)


def _is_ours(comment: str) -> bool:
    """True for a comment that an earlier export wrote, and for none."""
    return not comment.strip() or comment.strip().startswith(f"<p>{MADE_BY}")


def new_worksheet(marks: ClassMarks, entries: Sequence[tuple[Effective, Mapping[str, str]]]) -> str:
    """A grading worksheet in English for a Moodle that gave us none.

    `entries` are Effectives with a final mark, each with its values of the columns Identifier, Full
    name and Last modified (submission).
    """
    rows = [list(WORKSHEET)]
    for each, known in entries:
        own = {
            "Status": "Submitted for grading",
            _GRADE: points(each.total),
            "Maximum grade": points(marks.points),
            "Grade can be changed": "Yes",
            _CHANGED: "–",  # not a time: as if it had never been graded
            _COMMENTS: comment_html(each),
            **known,
        }
        rows.append([own.get(name, "") for name in WORKSHEET])
    return csv_text(rows)


def canvas(
    marks: ClassMarks,
    template: str | Path,
    column: str,
    *,
    roster: Roster | None = None,
    match: str = "",
    partial: bool = False,
    scale: bool = False,
) -> Exported:
    """Fill one assignment's column of a gradebook exported by Canvas; a CSV for its import.

    Keeps only the columns that identify students and the one called `column` (its number in
    parentheses is optional), so that no other marks are touched.
    """
    open_ones = require_final(marks, partial)
    header, *body = read_rows(template)
    place_of = _assignment(header, column, template)
    kept = [place for place, name in enumerate(header) if name.strip() in CANVAS_COLUMNS]
    number = next((place for place in kept if header[place].strip() == "ID"), None)
    if number is None:
        raise InputError(f"{template}: no column 'ID'; export the gradebook from Canvas again")
    special = [row for row in body if not _cell(row, number).strip()]
    students = [row for row in body if _cell(row, number).strip()]
    possible = next(
        (_cell(row, place_of) for row in special if "Points Possible" in _cell(row, 0)), ""
    )
    rows = Rows(header, students, CANVAS_COLUMNS, template)
    found = find(marks.students, rows, roster, match)
    cut = [
        [*(_cell(row, place) for place in kept), _cell(row, place_of)] for row in [header, *special]
    ]
    for place, row in enumerate(students):
        each = found.get(place)
        if each is not None:
            where = f"{template}: Points Possible of {header[place_of].strip()!r}"
            total = "" if each.student in open_ones else _scaled(each, possible, scale, where)
            cells = [
                text if header[place].strip() in CANVAS_IDENTIFIERS else safe_cell(bare_cell(text))
                for place, text in ((place, _cell(row, place)) for place in kept)
            ]
            cut.append([*cells, total])
    return _matched(cut, marks, found, students)


def _matched(
    rows: list[list[str]],
    marks: ClassMarks,
    found: Mapping[int, Effective],
    body: Sequence[list[str]],
) -> Exported:
    names = {each.student for each in found.values()}
    without = [each.student for each in marks.students if each.student not in names]
    unmarked = [_cell(row, 0) for place, row in enumerate(body) if place not in found]
    return Exported(csv_text(rows, guarded=False), without, unmarked)


def _scaled(student: Effective, possible: str, scale: bool, where: str) -> str:
    """The points of an Effective for a platform on which the assignment gives `possible` points.

    `where` tells in messages where these are. If they are no number, there is nothing to compare
    with, and InputError is raised if marks must be scaled to them.
    """
    try:
        most = float(possible.replace(",", "."))
    except ValueError:
        if not scale:
            return points(student.total)
        raise InputError(
            f"{where}: {possible!r} is not a number, so marks cannot be scaled to it; write e.g. "
            "100, or leave out --scale"
        ) from None
    if student.total is None or most == student.points or not student.points:
        return points(student.total)
    if not scale:
        raise InputError(
            f"{where}: gives {points(most)} points for this assignment, but {student.lab} is worth "
            f"{points(student.points)}; change it there, or scale the marks with --scale"
        )
    return points(round(student.total * most / student.points, 2))


def _assignment(header: list[str], wanted: str, template: str | Path) -> int:
    """The index of the column called `wanted`, with or without the number that Canvas appends."""
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


def _column(header: list[str], name: str, template: str | Path) -> int:
    if name not in header:
        raise InputError(
            f"{template}: no column {name!r}; it has {', '.join(header)}. Download the worksheet "
            "from Moodle with English as language, and keep all of its columns"
        )
    return header.index(name)


def _refuse_twice(values: list[str], column: str) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise InputError(
            f"{column} {', '.join(twice[:5])}: several students have it; correct the roster"
        )


def _cell(row: Sequence[str], place: int) -> str:
    return row[place] if place < len(row) else ""


# Research: results of the students who agreed, without anything that says who they are.

RESEARCH = (
    *("participant", "lab", "exercise", "item", "out_of", "points", "graded_by", "outcome"),
    "failure",
)
FEW = 20  # participants, among whom one can be guessed from little
_CONSENT = {"yes": True, "no": False, "": False}
_CODEBOOK = """\
# Codebook of results.csv

{lab}: {title}. One row for each participant and item of an exercise.

- **participant**: a random word. It is drawn anew for each export and stored nowhere else, so that
  nothing leads from it to a name. The rows are sorted by it, that is, in random order.
- **lab**: the lab.
- **exercise**, **item**: what was graded; see below. A row without an item has the points that a
  person set for the whole exercise, and one without both, for the whole lab. These count instead of
  the points of the parts.
- **out_of**: the maximum points.
- **points**: the points given, before any late penalty. If empty, there are none yet.
- **graded_by**: `referee` (automatic) or `person`.
- **outcome**: what the referee found: `pass`, `fail`, `ungradable`, or `manual`: a text that a
  person grades. Empty in a row without an item.
- **failure**: why an item failed: `blank` (no answer), a kind of failure ({kinds}),
  or `other`, such as too many messages. Empty if it did not fail.

Left out are names, numbers, times, code, texts and comments, and all students who did not agree.

**Whoever knows the marks can recognize participants.** {unique} of {participants} have points that
nobody else in the table has. Keep it away from those who graded the class, and share no more
columns than the study needs.

## Items

{items}
"""


@dataclass(frozen=True)
class Research:
    """Anonymous results.

    table, codebook  the texts of a CSV and of the page, in Markdown, that explains its columns
    participants     how many students are in it
    unique           how many of them have points that nobody else in it has
    unknown          students with a consent who have no marks, perhaps because a name is misspelled
    """

    table: str
    codebook: str
    participants: int
    unique: int
    unknown: list[str]


def research(marks: ClassMarks, consent: str | Path, partial: bool = False) -> Research:
    """The Research of the students with 'yes' in a CSV with the columns 'student' and 'consent'.

    Students with 'no', with nothing, or without a row are left out. Raises InputError for any other
    word, and if nobody agreed.
    """
    agreed = _agreed(consent, marks.lab)
    chosen = [each for each in marks.students if each.student in agreed]
    if not chosen:
        raise InputError(
            f"{consent}: none of the {len(marks.students)} students of {marks.lab} has 'yes' in "
            "the column 'consent'; there is nothing to export"
        )
    require_final(replace(marks, students=chosen), partial)
    # Sorted by random words, so that the order tells nothing either.
    results = sorted((f"p{secrets.token_hex(4)}", _findings(each)) for each in chosen)
    same = Counter(findings for _, findings in results)
    unique = sum(number == 1 for number in same.values())
    rows = [(word, marks.lab, *each) for word, findings in results for each in findings]
    codebook = _CODEBOOK.format(
        lab=marks.lab,
        title=marks.title,
        kinds=", ".join(KINDS),
        items="\n".join(_items(marks)),
        unique=unique,
        participants=len(chosen),
    )
    unknown = sorted(agreed - {each.student for each in chosen})
    return Research(csv_text([RESEARCH, *rows]), codebook, len(chosen), unique, unknown)


def _agreed(consent: str | Path, lab: str) -> set[str]:
    """The students with 'yes' in a consent table."""
    agreed = set()
    for student, entry in read_roster(consent, lab).items():
        if "consent" not in entry:
            raise InputError(f"{consent}: no column 'consent'; add one with yes or no")
        word = entry["consent"].casefold()
        if word not in _CONSENT:
            raise InputError(
                f"{consent}: {student!r} has {entry['consent']!r} as consent; write yes or no"
            )
        if _CONSENT[word]:
            agreed.add(student)
    return agreed


def _findings(student: Effective) -> tuple[tuple[str, ...], ...]:
    """The cells of RESEARCH after the first two, for an Effective."""
    found = []
    for exercise in student.exercises:
        for item in exercise.items:
            by_person = item.outcome == MANUAL or item.decision is not None
            given = (
                points(item.points),
                points(item.awarded),
                "person" if by_person else "referee",
            )
            found.append((exercise.exercise, item.item, *given, item.outcome, _failure(item)))
        if exercise.decision is not None:
            given = (points(exercise.points), points(exercise.awarded), "person")
            found.append((exercise.exercise, "", *given, "", ""))
    if student.decision is not None:
        found.append(("", "", points(student.points), points(student.raw_total), "person", "", ""))
    return tuple(found)


def _failure(item: EffectiveItem) -> str:
    """The kind of failure of an item that was judged as wrong; no words of a student."""
    if item.outcome != FAIL:
        return ""
    if item.reason == BLANK:
        return "blank"
    return next((each.kind for each in item.diagnoses), "other")


def _items(marks: ClassMarks) -> Iterable[str]:
    """The items of a lab with their titles, as lines of a list in Markdown."""
    return dict.fromkeys(
        f"- `{exercise.exercise}`, `{item.item}`: {exercise.title}: {item.title or item.item}"
        for student in marks.students
        for exercise in student.exercises
        for item in exercise.items
    )
