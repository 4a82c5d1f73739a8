"""Grading on each push: the jobs in deploy/ci for GitHub Classroom and GitLab, run for real."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import nbformat
import pytest
from class_made_up import LAB as MADE_UP
from class_made_up import class_in, verdict

from mpilab.cli import main
from mpilab.course.export import summary
from mpilab.course.marks import class_marks
from mpilab.errors import InputError
from mpilab.grading.decisions import override
from mpilab.grading.gradebook import Gradebook
from mpilab.grading.release import answer_id, release, solutions
from mpilab.grading.submission import find_submissions
from mpilab.util.kit import ROOT
from tests.ci_jobs import PUSHED_BY, github_job, github_script, gitlab_job, gitlab_script

LAB = "02-allgather"


@pytest.fixture
def repository(tmp_path):
    """A student's clone with two answers, and modules that must not be imported outside of the
    sandbox."""
    source = ROOT / "labs" / "source" / f"{LAB}.py"
    notebook = nbformat.reads(nbformat.writes(release(source)), as_version=4)
    answers = {"cost_model": solutions(source)["cost_model"], "crossover": "At 4 KiB."}
    for cell in notebook.cells:
        cell.source = answers.get(answer_id(cell), cell.source)
    folder = tmp_path / "clone of anna's"
    (folder / "labs").mkdir(parents=True)
    nbformat.write(notebook, folder / "labs" / f"{LAB}.ipynb")
    for name in ("json", "numpy", "sitecustomize"):
        (folder / f"{name}.py").write_text("raise SystemExit('imported from the repository')")
    return folder


def shell(script):
    """The CompletedProcess of a job's shell, which finds this kit's `mpilab` and `python3`."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["sh", "-c", script], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )


def jobs_temp(tmp_path):
    folder = tmp_path / "temp"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_a_push_to_github_gets_points_and_reasons_as_the_summary(repository, tmp_path):
    temp = jobs_temp(tmp_path)
    done = shell(github_script(repository, temp))
    assert done.returncode == 0, done.stdout + done.stderr
    text = (temp / "step_summary").read_text(encoding="utf-8")
    assert f"\\: {PUSHED_BY.replace('-', chr(92) + '-')}" in text.splitlines()[0]
    assert "20 of 100 points\\." in text and "8 more points await manual grading" in text
    assert re.search(r"^## Pairwise.*0 of 35", text, re.M) and "left blank" in text
    # The two lines that GitHub Classroom reads.
    (report,) = re.findall(r"^::notice title=Autograding report::(.*)$", done.stdout, re.M)
    assert json.loads(report) == {"totalPoints": 20, "maxPoints": 100}
    assert "::notice title=Autograding complete::Points 20/100\n" in done.stdout
    page = (repository / "feedback" / f"{PUSHED_BY}.html").read_text(encoding="utf-8")
    assert "left blank" in page


@pytest.mark.slow
def test_a_push_to_gitlab_gets_points_and_reasons_as_a_test_report(repository, tmp_path):
    done = shell(gitlab_script(repository, jobs_temp(tmp_path)))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "20 of 100 points" in done.stdout
    suite = ET.parse(repository / gitlab_job()[1]["artifacts"]["reports"]["junit"]).find(
        "testsuite"
    )
    assert suite.get("name") == PUSHED_BY
    failed = [case for case in suite if case.find("failure") is not None]
    passed = [case for case in suite.findall("testcase") if not list(case)]
    assert failed and passed
    assert "left blank" in failed[0].find("failure").text
    assert (repository / "feedback" / f"{PUSHED_BY}.html").is_file()


@pytest.mark.parametrize(
    ("script", "linked"), [(github_script, "labs"), (gitlab_script, f"labs/{LAB}.ipynb")]
)
def test_a_repository_cannot_hand_in_a_file_of_the_image(script, linked, repository, tmp_path):
    ada = ROOT / "grading" / "sample-class" / "ada"
    place = repository / linked
    (repository / "labs" / f"{LAB}.ipynb").unlink()
    if linked == "labs":
        place.rmdir()
    place.symlink_to(ada if linked == "labs" else ada / f"{LAB}.ipynb")
    done = shell(script(repository, jobs_temp(tmp_path)))
    assert done.returncode != 0
    assert "This could not be graded" in done.stderr
    page = (repository / "feedback" / f"{PUSHED_BY}.html").read_text(encoding="utf-8")
    assert "is a symbolic link" in page


def test_the_jobs_use_the_instructors_image_and_give_the_submission_no_token():
    workflow, job = github_job()
    assert job["container"]["image"] == "${{ vars.MPILAB_IMAGE }}"
    assert "--privileged" in job["container"]["options"]
    assert workflow["permissions"] == {"contents": "read"}
    checkout = next(step for step in job["steps"] if step.get("uses", "").startswith("actions/che"))
    assert checkout["with"]["persist-credentials"] is False
    assert gitlab_job()[1]["image"] == {"name": "$MPILAB_IMAGE", "entrypoint": [""]}


def test_a_summary_says_what_failed_what_waits_and_what_could_not_be_graded(tmp_path):
    out = class_in(
        tmp_path,
        verdict("anna", ["pass", "fail", "manual"], {"any-type": "It <b>hangs</b>\uffff."}),
        verdict("eva", ["ungradable"] * 3, {}, "not valid JSON"),
    )
    students = class_marks(out, MADE_UP).students
    text = summary(students, "Ring", ".md")
    assert "5 of 15 points\\." in text and "5 more points await manual grading" in text
    assert "It \\<b\\>hangs" in text and "could not be graded\\. not valid JSON" in text
    anna, eva = ET.fromstring(summary(students, "Ring", ".xml"))
    kinds = [[part.tag for part in case] for case in anna.findall("testcase")]
    assert kinds == [[], ["failure"], ["skipped"]]
    assert "It <b>hangs</b>" in anna.find(".//failure").get("message")
    assert "not valid JSON" in eva.find(".//error").get("message")


def test_nothing_awaits_grading_once_the_total_was_set_manually(tmp_path):
    out = class_in(tmp_path, verdict("finn", ["pass", "pass", "manual"]))
    with Gradebook(out / "gradebook.sqlite") as book:
        (run,) = book.newest(MADE_UP)
        book.decide([override(run, 13.0, "agreed on in class")])
    text = summary(class_marks(out, MADE_UP).students, "Ring", ".md")
    assert "13 of 15 points" in text and "await manual grading" not in text


def test_a_summary_of_another_kind_is_refused_before_anything_is_graded(repository, capsys):
    file = str(repository / "labs" / f"{LAB}.ipynb")
    assert main(["grade", file, "--summary", "report.html"]) == 1
    assert "'.html': write a name that ends in .md" in capsys.readouterr().err


def test_a_single_notebook_is_its_folders_submission_unless_a_student_is_named(repository):
    file = repository / "labs" / f"{LAB}.ipynb"
    (anna,) = find_submissions(file, LAB, "anna")
    (labs,) = find_submissions(file, LAB)
    assert (anna.student, labs.student) == ("anna", "labs")
    assert anna.data == labs.data == file.read_bytes() and not anna.problem
    with pytest.raises(InputError, match="must be named 03-rank-mapping.ipynb"):
        find_submissions(file, "03-rank-mapping")
    with pytest.raises(InputError, match="--student anna names the author of a single notebook"):
        find_submissions(file.parent, LAB, "anna")
