"""A lab in a course of nbgrader: the real nbgrader releases, validates and autogrades it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

from mpilab.cli import main
from mpilab.grading.release import answer_id, nbgrader_source, solutions
from mpilab.util.kit import ROOT

LAB = "02-allgather"
SOURCE = ROOT / "labs" / "source" / f"{LAB}.py"
READ = """
import json, sys
from nbgrader.api import Gradebook
with Gradebook("sqlite:///gradebook.db") as book:
    submission = book.find_submission(sys.argv[1], sys.argv[2])
    print(json.dumps({
        grade.name: (grade.auto_score, grade.max_score, grade.needs_manual_grade)
        for notebook in submission.notebooks for grade in notebook.grades
    }))
"""


@pytest.mark.parametrize("source", sorted((ROOT / "labs" / "source").glob("*.py")), ids=str)
def test_every_code_answer_of_every_lab_has_a_test_cell_with_its_points(source):
    notebook = nbgrader_source(source)
    cells = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    tests = {cell.metadata.nbgrader.grade_id: cell for cell in cells if not answer_id(cell)}
    for cell in filter(answer_id, cells):
        if cell.cell_type == "markdown":
            assert cell.metadata.nbgrader.grade and cell.metadata.nbgrader.points > 0
            continue
        test = tests.pop(f"check_{answer_id(cell)}")
        assert not cell.metadata.nbgrader.grade and "points" not in cell.metadata.nbgrader
        assert test.metadata.nbgrader.grade and test.metadata.nbgrader.locked
        assert test.metadata.nbgrader.points > 0
        compile(test.source, test.metadata.nbgrader.grade_id, "exec")
        assert test.source.startswith("lab.check(") and test.source.endswith(").require()")
    assert not [name for name, cell in tests.items() if cell.metadata.nbgrader.grade]


def test_a_configuration_of_the_course_is_kept_and_the_line_to_add_is_told(tmp_path, capsys):
    own = tmp_path / "nbgrader_config.py"
    own.write_text("c = get_config()\n")
    assert main(["release", LAB, "--nbgrader", str(tmp_path)]) == 0
    assert own.read_text() == "c = get_config()\n"
    assert 'load_subconfig("mpilab_config.py")' in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first time, pip downloads nbgrader
def test_nbgrader_shows_our_points_and_reasons_and_runs_nothing_itself(tmp_path):
    from nbgrader_venv import nbgrader_python

    python, course = nbgrader_python(), tmp_path / "course"
    assert main(["release", LAB, "--nbgrader", str(course)]) == 0
    assert main(["kernelspec", "install", "--prefix", str(tmp_path)]) == 0

    def nbgrader(*command, status=0):
        path = f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
        known = {"PATH": path, "JUPYTER_PATH": str(tmp_path / "share" / "jupyter")}
        done = subprocess.run(
            [python, "-m", "nbgrader", *command],
            cwd=course,
            env={**os.environ, **known},
            capture_output=True,
            text=True,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    def grades(student):
        command = [python, "-c", READ, LAB, student]
        told = subprocess.run(command, cwd=course, capture_output=True, text=True, check=True)
        return json.loads(told.stdout)

    nbgrader("generate_assignment", LAB)
    notebook = nbformat.read(course / "release" / LAB / f"{LAB}.ipynb", as_version=4)
    known = solutions(SOURCE)
    answers = {
        "nonblocking_all": known["nonblocking_all"].replace(";", "", 1),
        "cost_model": known["cost_model"],
        "crossover": "At 4 KiB.",
    }
    for cell in notebook.cells:
        cell.source = answers.get(answer_id(cell), cell.source)
    ran = tmp_path / "ran"
    touch = f"import pathlib; pathlib.Path({str(ran)!r}).touch()"
    notebook.cells.append(nbformat.v4.new_code_cell(touch))
    file = course / "submitted" / "anna" / LAB / f"{LAB}.ipynb"
    file.parent.mkdir(parents=True)
    nbformat.write(notebook, file)

    # What the student sees before handing it in: the public checks decide.
    said = nbgrader("validate", str(file))
    failed = [line.strip() for line in said.splitlines() if line.strip().startswith("lab.check")]
    assert failed == [
        'lab.check("nonblocking_all").require()',
        'lab.check("pairwise").require()',
    ]
    assert "not all public checks pass" in said
    assert ran.exists()
    ran.unlink()

    nbgrader("autograde", LAB)
    assert not ran.exists()
    assert grades("anna") == {
        "check_nonblocking_all": [0, 30, False],
        "check_pairwise": [0, 35, False],
        "check_cost_model": [20, 20, False],
        "crossover": [None, 8, True],
        "published": [0, 7, False],
    }
    nbgrader("generate_feedback", LAB)
    page = (course / "feedback" / "anna" / LAB / f"{LAB}.html").read_text(encoding="utf-8")
    assert "is missing at the end of this line" in page and "20.0 / 100.0" in page
    assert (course / "mpilab" / LAB / "anna" / "feedback" / "anna.html").is_file()

    # Where mpilab cannot grade, nobody gets a zero.
    shutil.copytree(file.parent, course / "submitted" / "ben" / LAB)
    config = course / "mpilab_config.py"
    config.write_text(config.read_text().replace(repr(sys.executable), repr("/bin/false")))
    nbgrader("autograde", LAB, "--student", "ben", status=1)
    assert not (course / "autograded" / "ben" / LAB).exists()
    assert {score for score, _, _ in grades("ben").values()} == {None}
