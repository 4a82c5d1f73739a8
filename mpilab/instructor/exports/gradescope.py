"""Gradescope's results.json for each student, as its autograders write them.

The format: https://gradescope-autograders.readthedocs.io/en/latest/specs/#output-format
"""

import json
import shutil
from pathlib import Path

from mpilab.errors import InputError
from mpilab.grading.marks import points
from mpilab.instructor.marks import require_final
from mpilab.plain import plain
from mpilab.whole_file import write_whole

VISIBILITIES = ("visible", "after_due_date", "after_published", "hidden")


def gradescope(marks, folder, *, visibility="after_published", partial=False):
    """Write FOLDER/STUDENT/results.json for each student with a final mark; a list of who.

    What an earlier export left there for a student who has no final mark now is removed.
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
            write_whole(Path(folder) / each.student / "results.json", text + "\n")
            written.append(each.student)
    return written


def results(student, visibility):
    """The content of results.json for an Effective with a final mark, as a dict."""
    tests = []
    for number, exercise in enumerate(student.exercises, start=1):
        if exercise.decision is not None:
            words = f"Set by hand: {plain(exercise.decision.reason)}"
            tests.append(_test(f"{number}", exercise.title, exercise, words, visibility))
            continue
        for place, item in enumerate(exercise.items, start=1):
            name = f"{exercise.title}: {item.title or item.item}"
            words = [plain(item.reason), plain(item.comment), _try(item)]
            words = "\n".join(filter(None, words))
            tests.append(_test(f"{number}.{place}", name, item, words, visibility))
    return {
        # Where it is given, it counts, and not the sum of the tests.
        "score": _number(student.total),
        "output": _about(student),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": visibility,
        "stdout_visibility": "hidden",
        "tests": tests,
        "extra_data": {"lab": student.lab, "out_of": _number(student.points)},
    }


def _test(number, name, part, words, visibility):
    """An entry of 'tests' for something with points; without a score where nobody could say, and
    the total was set by hand."""
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


def _about(student):
    lines = [f"{points(student.total)} of {points(student.points)} points."]
    if student.penalty:
        lines.append(f"Handed in late: {points(student.penalty)} points less.")
    if student.decision is not None:
        lines.append(f"The total was set by hand: {plain(student.decision.reason)}")
    return "\n".join(lines)


def _try(item):
    line = item.evidence.get("reproduce")
    return f"Try it in the lab: {plain(line)}" if line and item.awarded == 0 else ""


def _number(value):
    return round(float(value), 4)
