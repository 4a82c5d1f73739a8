"""Export marks into nbgrader's gradebook.db through nbgrader's own API.

nbgrader need not be installed with mpilab: any Python that can import it will do.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from mpilab.course.marks import one_line, require_final
from mpilab.errors import MpilabError, SetupError
from mpilab.judging.verdict import MANUAL
from mpilab.util.kit import ROOT
from mpilab.util.text import plain

# The environment with nbgrader that tools/nbgrader_venv.py creates.
OWN = ROOT / "build" / "nbgrader" / "bin" / "python"
_WRITER = Path(__file__).with_name("nbgrader_writer.py")


def nbgrader(marks, path, *, partial=False, python=None):
    """Write the assignment of a lab into the gradebook at `path`; a list of students.

    Each exercise becomes a graded cell of one notebook. An exercise without points gets no score
    and, unless the total is final, is marked for manual grading; nbgrader counts it as 0.
    """
    require_final(marks, partial)
    python = python or find_python()
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    ran = subprocess.run(
        # -I: do not search this folder, which has a module called nbgrader, too.
        [python, "-I", _WRITER, path],
        input=json.dumps(table(marks)),
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


def table(marks):
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


def find_python():
    """The path of a Python that can import nbgrader; SetupError with a remedy if there is none."""
    for python in (sys.executable, OWN):
        if Path(python).exists():
            look = "import importlib.util, sys; sys.exit(not importlib.util.find_spec('nbgrader'))"
            if subprocess.run([python, "-I", "-c", look], capture_output=True).returncode == 0:
                return python
    raise SetupError(
        "nbgrader is not installed here; get it into an environment of its own with 'python3 "
        "tools/nbgrader_venv.py', or name a Python that has it with --python"
    )


def environment_of(python):
    """The environment variables to run `python` with.

    PATH begins with its folder, because nbgrader calls alembic, which is there, by its bare name.
    """
    path = f"{Path(python).absolute().parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {**os.environ, "PATH": path}


def _penalty(student):
    """Points that nbgrader must deduct from the sum of the cells to get our total."""
    if student.status != "graded":
        return 0.0
    return sum(each.awarded or 0.0 for each in student.exercises) - student.total


def _grades(student, known, texts, final):
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


def _comment(exercise):
    """The comment for the student on an exercise, one line per item."""
    if exercise.decision is not None:
        return plain(exercise.decision.reason)
    lines = (
        f"{item.title or item.item}: {' '.join(filter(None, (item.reason, item.comment)))}"
        for item in exercise.items
        if item.reason or item.comment
    )
    return plain("\n".join(lines))
