"""Feedback goes back through the platform that a submission came from: collect, grade, return, and
read what was written as that platform's import does. Nobody gets anybody else's page."""

import csv
import html
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from marks_made_up import LAB, hand_in, unreadable, verdict

from mpilab.cli import main
from mpilab.cli.course import RETURNS
from mpilab.course.feedback import PLATFORMS
from mpilab.grading.decisions import manual, override
from mpilab.grading.gradebook import Gradebook, run_of
from mpilab.grading.submission import class_of, keep_table
from mpilab.util.kit import ROOT

NOTEBOOK = b"{}"


def put(root, *paths):
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(NOTEBOOK)


def run(*words, code=0):
    assert main([str(word) for word in words]) == code


def graded(source, base, *collected, unread=(), late=()):
    """Collect `source` and grade it like `judged`; the output folder."""
    collect_code = 1 if "--expect-rest" in collected else 0
    more = [word for word in collected if word != "--expect-rest"]
    run("collect", source, base / "class", "--lab", LAB, *more, code=collect_code)
    return judged(base, unread=unread, late=late)


def judged(base, *, unread=(), late=()):
    """Grade the folder `class` in `base` as `mpilab grade` would; the output folder.

    All texts get 8 and 7 points, except those of `unread`; `late` are two days late.
    """
    out, classroom = base / "out", base / "class"
    found = class_of(classroom, LAB)
    students = [each.student for each in found if not each.problem]
    for each in found:
        wrong = "fail" if each.student in late else "pass"
        given = verdict(each.student, f"the text of {each.student}", wrong)
        hand_in(out, unreadable(each.student, each.problem) if each.problem else given)
    keep_table(classroom, out)
    with Gradebook(out / "gradebook.sqlite") as book:
        runs = {student: run_of(book, LAB, student) for student in students}
        book.decide(
            manual(runs[student], exercise, "text", points, f"well put, {student}")
            for student in students
            if student not in unread
            for exercise, points in (("why", 8), ("table", 7))
        )
    if not late:
        return out
    times = base / "times.csv"
    times.write_text(
        "student,time\n" + "".join(f'"{one}",2026-11-22T10:00\n' for one in late), encoding="utf-8"
    )
    due = ("--due", "2026-11-20T23:59", "--per-day", "10%")
    run("marks", "late", out, "--lab", LAB, *due, "--times", times)
    return out


def whose(page):
    """The student in the title of a page."""
    return html.unescape(page.partition("<title>")[2].partition("</title>")[0]).partition(
        ": feedback for "
    )[2]


def texts(archive):
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist()}


# Moodle


def moodle_zip_import(archive, participants):
    """{student: (file name, page)} as mod/assign/feedback/file/importziplib.php reads a zip.

    participants   {number: student}
    """
    found = {}
    for path, page in texts(archive).items():
        parts = path.split("/")
        while parts:
            info = parts.pop(0).split("_", 4)
            if len(info) < 4 or not info[1].isdigit() or int(info[1]) not in participants:
                continue
            if info[2:4] != ["assignsubmission", "file"]:  # the name of a plugin
                continue
            name = "/".join([*info[4:], *parts]).lstrip("/")
            student = participants[int(info[1])]
            assert student not in found
            found[student] = (name, page)
            break
    return found


def moodle_sheet_import(path, participants):
    """{student: (grade, comment)} as mod/assign/feedback/offline/importgradeslib.php reads it."""
    with open(path, encoding="utf-8", newline="") as file:
        header, *body = csv.reader(file)
    columns = {name: place for place, name in enumerate(header)}
    at = [columns[name] for name in ("Identifier", "Grade", "Last modified (grade)")]
    assert columns["Feedback comments"] > 0
    assert all(len(row) == len(header) for row in body)
    return {
        participants[int(row[at[0]][len("Participant ") :])]: (
            row[at[1]],
            row[columns["Feedback comments"]],
        )
        for row in body
    }


MOODLES = {101: "Anna Schmidt", 102: "Anna schmidt", 103: "=Dan;@x", 104: "Eva", 105: "Finn"}


@pytest.fixture
def of_moodle(tmp_path):
    """Two of one name but for case, a formula, a text online only, and one whose marks wait."""
    source = tmp_path / "download"
    put(
        source,
        f"Anna Schmidt_101_assignsubmission_file/{LAB}.ipynb",  # Moodle 4.1 and later
        "Anna Schmidt_101_assignsubmission_onlinetext/onlinetext.html",
        f"Anna schmidt_102_assignsubmission_file_/deep_er/{LAB}.ipynb",  # before
        f"=Dan;@x_103_assignsubmission_file_{LAB}.ipynb",  # without folders
        "Eva_104_assignsubmission_onlinetext/onlinetext.html",
        f"Finn_105_assignsubmission_file/{LAB}.ipynb",
    )
    return graded(
        *(source, tmp_path, "--expect-rest", "--with-ids"),
        unread=["Finn_105"],
        late=["=Dan;@x_103"],
    )


def test_moodle_takes_pages_by_number_and_points_with_reasons_by_identifier(of_moodle, capsys):
    run("feedback", of_moodle, code=1)
    said = capsys.readouterr().err
    assert "Finn_105: awaiting manual grading: why, table" in said
    assert "Eva_104: ungradable: No notebook could be collected (Eva_104_" in said
    assert not (of_moodle / "moodle").exists()
    run("feedback", of_moodle, "--partial")
    said = capsys.readouterr()
    assert "moodle: 3 of 5 students" in said.out and said.err == ""
    pages = moodle_zip_import(of_moodle / "moodle" / "feedback.zip", MOODLES)
    assert {student: (name, whose(page)) for student, (name, page) in pages.items()} == {
        "Anna Schmidt": (f"{LAB}-feedback.html", "Anna Schmidt_101"),
        "Anna schmidt": (f"{LAB}-feedback.html", "Anna schmidt_102"),
        "=Dan;@x": (f"{LAB}-feedback.html", "=Dan;@x_103"),
    }
    assert "well put, Anna schmidt_102" in pages["Anna schmidt"][1]  # the marks in effect
    sheet = moodle_sheet_import(of_moodle / "moodle" / "worksheet.csv", MOODLES)
    # 19 of 25 points, and 20 % less for two days.
    assert {student: grade for student, (grade, _) in sheet.items()} == {
        "Anna Schmidt": "25",
        "Anna schmidt": "25",
        "=Dan;@x": "15.2",
    }
    comment = html.unescape(sheet["=Dan;@x"][1])
    assert comment.startswith("<p>mpilab: 15.2 of 25 points.<br>Handed in late: 3.8 points")
    assert "<li>Any P: 0 of 6. P = 3: deadlock</li>" in comment
    assert "well put, =Dan;@x_103" in comment and "Anna" not in comment


def test_a_time_that_was_filled_in_by_hand_reaches_moodles_worksheet_or_is_named(of_moodle, capsys):
    table, written = of_moodle / "submissions.csv", of_moodle / "moodle" / "worksheet.csv"
    untimed = table.read_text("utf-8")
    table.write_text(untimed.replace("Schmidt_101,,", "Schmidt_101,12.5.2025 10:00,"), "utf-8")
    run("feedback", of_moodle, "--partial", code=1)
    said = capsys.readouterr().err
    assert f"{table}: Anna Schmidt_101: '12.5.2025 10:00' is not a time; write e.g. 2026" in said
    table.write_text(untimed.replace("Schmidt_101,,", "Schmidt_101,2025-05-12 10:00,"), "utf-8")
    run("feedback", of_moodle, "--partial")
    assert ',"Monday, 12 May 2025, 10:00 AM",' in written.read_text("utf-8")


FULL = (
    "Identifier,Full name,ID number,Email address,Status,Grade,Maximum grade,"
    "Marking workflow state,Grade can be changed,Last modified (submission),Online text,"
    "Last modified (grade),Feedback comments\n"
)


def sheet_row(number, name, comment="", text=""):
    status = "Submitted for grading - " if number else "No submission - "
    return (
        f'Participant {number},"{name}",,{name[:1]}@x.org,"{status}",,25.00,Not marked,Yes,'
        f'"Friday, 20 November 2026, 10:00 PM","{text}",-,"{comment}"\n'
    )


def test_moodles_own_worksheet_is_filled_and_keeps_all_its_columns(of_moodle, tmp_path, capsys):
    template = tmp_path / "sheet.csv"
    template.write_text(
        FULL
        + sheet_row(101, "Anna Schmidt")
        + sheet_row(102, "Anna schmidt", comment="See me. A colleague")
        + sheet_row(103, "=Dan;@x", text="=1+1")
        + sheet_row(104, "Eva", text="my text")
        + sheet_row(105, "Finn")
        + sheet_row(106, "Zoe"),
        encoding="utf-8",
    )
    run("feedback", of_moodle, "--partial", "--template", template)
    said = capsys.readouterr().err
    assert [line.rpartition(" ")[2] for line in said.splitlines()] == ["106"]
    filled = of_moodle / "moodle" / "worksheet.csv"
    sheet = moodle_sheet_import(filled, MOODLES)
    assert {student: grade for student, (grade, _) in sheet.items()} == {
        "Anna Schmidt": "25",
        "Anna schmidt": "25",
        "=Dan;@x": "15.2",
        "Eva": "",  # Moodle skips a row without a grade
        "Finn": "",
    }
    assert sheet["Anna schmidt"][1] == "See me. A colleague" and sheet["Finn"][1] == ""
    with open(filled, encoding="utf-8", newline="") as file:
        header, *body = csv.reader(file)
    assert ",".join(header) + "\n" == FULL
    assert body[2][1] == "'=Dan;'@x" and body[2][10] == "'=1+1"  # Moodle reads neither
    assert {row[11] for row in body} == {"-"}
    # Filled in a second time, it gets new comments, but only where ours were.
    run("feedback", of_moodle, "--partial", "--template", filled)
    assert moodle_sheet_import(filled, MOODLES) == sheet


def test_moodle_is_not_sent_names_by_which_it_finds_nobody(of_moodle, tmp_path, capsys):
    run("export", of_moodle, "--to", "moodle", "--partial", code=1)
    assert "Give the assignment's grading worksheet as --template" in capsys.readouterr().err
    assert not (of_moodle / "moodle.csv").exists()
    roster = tmp_path / "roster.csv"
    roster.write_text("student,username\nAnna Schmidt_101,as1\n")
    run("export", of_moodle, "--to", "moodle", "--partial", "--roster", roster, code=1)
    assert (of_moodle / "moodle.csv").read_text("utf-8").splitlines()[1:] == ["as1,25"]


def test_a_namesakes_row_is_not_taken_for_a_student_who_has_none(of_moodle, tmp_path, capsys):
    template = tmp_path / "sheet.csv"
    template.write_text(
        FULL + sheet_row(102, "Anna schmidt") + sheet_row(999, "Anna Schmidt_101"), "utf-8"
    )
    run("feedback", of_moodle, "--partial", "--template", template, code=1)
    assert f"Anna Schmidt_101: no row in {template}" in capsys.readouterr().err
    assert set(moodle_sheet_import(of_moodle / "moodle" / "worksheet.csv", MOODLES)) == {
        "Anna schmidt"
    }


# Canvas


def canvas_zip_import(archive, submissions):
    """{student: page} as Assignment#infer_comment_context_from_filename in canvas-lms finds them.

    submissions   {(user's number, attachment's number): student}
    """
    found = {}
    for path, page in texts(archive).items():
        words = path.rpartition("/")[2].split("_")
        user, attachment = [int(word) for word in words if word.isdigit()][:2]
        assert not words[-1].startswith("link")
        student = submissions[user, attachment]
        assert student not in found
        found[student] = page
    return found


def test_canvas_takes_pages_by_its_numbers_and_reasons_through_its_api(tmp_path, capsys):
    source = tmp_path / "download"
    put(
        source,
        f"schmidtanna_LATE_9001_70001_{LAB}-1.ipynb",
        "Schmidtanna_9002_70002_link_7_8.ipynb",
        f"b_9003_70003_{LAB}.ipynb",
    )
    names = ("schmidtanna_9001", "Schmidtanna_9002", "b_9003")
    out = graded(source, tmp_path, "--with-ids", late=names[:1], unread=names[2:])
    run("feedback", out, "--partial")
    assert "canvas: 2 of 3 students" in capsys.readouterr().out
    numbers = {(9001, 70001): names[0], (9002, 70002): names[1], (9003, 70003): names[2]}
    pages = canvas_zip_import(out / "canvas" / "feedback.zip", numbers)
    assert {student: whose(page) for student, page in pages.items()} == {n: n for n in names[:2]}
    body = json.loads((out / "canvas" / "comments.json").read_text("utf-8"))
    comments = {int(user): data["text_comment"] for user, data in body["grade_data"].items()}
    assert set(comments) == {9001, 9002}
    assert comments[9001].startswith("15.2 of 25 points.\nHanded in late: 3.8 points deducted.\n")
    assert "- Any P: 0 of 6. P = 3: deadlock" in comments[9001]
    assert "well put, Schmidtanna_9002" in comments[9002]


def test_the_members_of_a_group_of_canvas_all_get_words_and_one_gets_the_page(tmp_path, capsys):
    put(tmp_path / "download", f"team7_9001_70001_{LAB}.ipynb")
    shared = {"attachments": [{"id": 70001}]}
    listed = tmp_path / "submissions.json"
    members = [
        canvas_submission(9001, "anna", "2026-11-20T21:10:00Z") | shared,
        canvas_submission(9002, "ben", "2026-11-20T21:10:00Z") | shared,
    ]
    listed.write_text(json.dumps(members))
    out = graded(tmp_path / "download", tmp_path, "--roster", listed)
    run("feedback", out)
    assert "canvas: 2 of 2 students" in capsys.readouterr().out
    pages = canvas_zip_import(out / "canvas" / "feedback.zip", {(9001, 70001): "anna"})
    assert {name: whose(page) for name, page in pages.items()} == {"anna": "anna"}
    body = json.loads((out / "canvas" / "comments.json").read_text("utf-8"))
    assert set(body["grade_data"]) == {"9001", "9002"}


# nbgrader


def test_nbgrader_finds_its_own_tree_with_the_keys_that_release_needs(tmp_path, capsys):
    course = tmp_path / "course"
    for student in ("anna", "ben", "finn"):
        put(course, f"submitted/{student}/{LAB}/{LAB}.ipynb")
        own = course / "submitted" / student / LAB
        (own / "timestamp.txt").write_text("2026-11-20 22:10:05 UTC")
        (own / "submission_secret.txt").write_text(f"secret of {student}")
    put(course, f"feedback/finn/{LAB}/{LAB}.html")  # of an earlier return
    out = graded(course, tmp_path, late=["ben"], unread=["finn"])
    run("feedback", out, "--partial", "-o", course)
    assert f"nbgrader release_feedback {LAB}" in capsys.readouterr().out
    # nbgrader's CourseDirectory: feedback/{student_id}/{assignment_id}/{notebook_id}.html
    pages = {path.parts[-3]: path for path in course.glob(f"feedback/*/{LAB}/{LAB}.html")}
    assert {name: whose(path.read_text("utf-8")) for name, path in pages.items()} == {
        "anna": "anna",
        "ben": "ben",
    }
    for student, path in pages.items():
        assert path.with_name("submission_secret.txt").read_text() == f"secret of {student}"
        assert path.with_name("timestamp.txt").read_text() == "2026-11-20 22:10:05 UTC"
    assert "3.8" in pages["ben"].read_text("utf-8")
    (course / "submitted" / "ben" / LAB / "submission_secret.txt").unlink()
    run("feedback", out, "--partial", "-o", tmp_path / "elsewhere", "--source", course)
    assert "no timestamp.txt and submission_secret.txt of ben;" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first time, pip downloads nbgrader
def test_nbgrader_itself_releases_what_was_written(tmp_path):
    from nbgrader_venv import nbgrader_python

    course, exchange, python = tmp_path / "course", tmp_path / "exchange", nbgrader_python()
    exchange.mkdir(mode=0o777)
    exchange.chmod(0o777)
    for student in ("anna", "ben"):
        put(course, f"submitted/{student}/{LAB}/{LAB}.ipynb")
        own = course / "submitted" / student / LAB
        (own / "timestamp.txt").write_text("2026-11-20 22:10:05 UTC")
        (own / "submission_secret.txt").write_text(f"secret of {student}")
    out = graded(course, tmp_path, unread=["ben"])
    run("feedback", out, "--partial", "-o", course)
    ran = subprocess.run(
        [python, "-m", "nbgrader", "release_feedback", LAB, "--course", "mpi"]
        + [f"--Exchange.root={exchange}", f"--CourseDirectory.root={course}"],
        cwd=course,
        env={**os.environ, "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    # One that fetch_feedback finds by the student's key alone.
    (released,) = (exchange / "mpi" / "feedback").glob("*.html")
    assert whose(released.read_text("utf-8")) == "anna"


# GitHub Classroom


def git(repository, *words):
    ran = subprocess.run(
        ["git", "-C", repository, "-c", "user.name=x", "-c", "user.email=x@x", *words],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
def test_each_clone_of_a_classroom_gets_a_commit_that_nothing_else_notices(tmp_path, capsys):
    clones = tmp_path / "mpi-lab-submissions"
    for user in ("anna", "ann-anna", "finn"):
        clone = clones / f"mpi-lab-{user}"
        put(clone, f"{LAB}.ipynb")
        git(clone, "init", "-q", "-b", "main")
        git(clone, "add", ".")
        git(clone, "commit", "-qm", "done")
        hook = clone / ".git" / "hooks" / "reference-transaction"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch '{tmp_path}/hook-ran'\n")
        hook.chmod(0o755)
    (clones / "mpi-lab-anna" / "notes.txt").write_text("not committed")
    out = graded(clones, tmp_path, late=["anna"], unread=["finn"])
    run("feedback", out, "--partial", code=1)
    assert "--source DIR" in capsys.readouterr().err
    branch = f"feedback-{LAB}"
    for _ in range(2):
        run("feedback", out, "--partial", "--source", clones)
    said = capsys.readouterr()
    assert f"git -C CLONE push origin {branch}" in said.out and "2 of them as before" in said.err
    for user in ("anna", "ann-anna"):
        clone = clones / f"mpi-lab-{user}"
        assert git(clone, "rev-list", "--count", f"main..{branch}") == "1"
        changed = git(clone, "diff", "--name-status", "main", branch).splitlines()
        assert changed == [f"A\tfeedback/{LAB}.html", f"A\tfeedback/{LAB}.md"]
        assert whose(git(clone, "show", f"{branch}:feedback/{LAB}.html")) == user
    anna = clones / "mpi-lab-anna"
    words = git(anna, "show", f"{branch}:feedback/{LAB}.md")
    assert "15\\.2 of 25 points\\." in words and "P \\= 3\\: deadlock" in words
    assert git(anna, "status", "--porcelain") == "?? notes.txt"
    assert git(anna, "branch", "--show-current") == "main"
    assert branch not in git(clones / "mpi-lab-finn", "branch", "--list")
    assert not (tmp_path / "hook-ran").exists()


# Folders, Gradescope, and every platform


def test_without_a_table_everybody_gets_a_folder(tmp_path, capsys):
    out = tmp_path / "out"
    for student in ("anna", "ben"):
        hand_in(out, verdict(student, "text"))
    hand_in(out, unreadable("cleo"))
    with Gradebook(out / "gradebook.sqlite") as book:
        book.decide([override(run_of(book, LAB, s), 20, "shown") for s in ("anna", "cleo")])
    put(out, f"folders/ben/{LAB}.html")  # of an earlier return, before his text was read
    run("feedback", out, "--partial")
    pages = {path.parent.name: path.read_text("utf-8") for path in out.glob("folders/*/*.html")}
    assert {name: whose(page) for name, page in pages.items()} == {"anna": "anna", "cleo": "cleo"}
    assert "The total was set manually: shown" in pages["cleo"]
    run("feedback", out, "--partial", "--to", "gradescope")
    results = json.loads((out / "gradescope" / "anna" / "results.json").read_text("utf-8"))
    assert results["score"] == 20 and len(results["tests"]) == 4
    assert not (out / "gradescope" / "ben").exists()


CANVAS_GRADEBOOK = """\
Student,ID,SIS User ID,SIS Login ID,Section,Lab 2 (22)
    Points Possible,,,,,100
"An, Na",501,007,anna,A,
"O, Zo",502,008,zoe,A,
"""


GRADESCOPE_METADATA = """\
submission_1:
  :submitters:
  - :name: anna
    :sid: '17'
    :email: Anna@x.org
  :created_at: 2026-11-20 21:10:05.462434000 Z
"""


def canvas_submission(number, name, time):
    """As GET /api/v1/courses/…/assignments/…/submissions?include[]=user returns it."""
    return {
        "user_id": number,
        "submitted_at": time,
        "late": False,
        "user": {"id": number, "sortable_name": name},
    }


def downloads():
    """What each platform would offer, in the current folder: anna has handed in, zoe has not."""
    notebook = (ROOT / "labs" / f"{LAB}.ipynb").read_bytes()
    clone = Path("mpi-lab-submissions", "mpi-lab-anna")
    own = Path("course", "submitted", "anna", LAB)
    for folder in (Path("class", "anna"), own, clone):
        folder.mkdir(parents=True)
        (folder / f"{LAB}.ipynb").write_bytes(notebook)
    (own / "timestamp.txt").write_text("2026-11-20 22:10:05 UTC")
    (own / "submission_secret.txt").write_text("secret")
    zips = {
        "moodle.zip": f"anna_101_assignsubmission_file/{LAB}.ipynb",
        "canvas.zip": f"anna_501_70001_{LAB}.ipynb",
    }
    for name, path in zips.items():
        with zipfile.ZipFile(name, "w") as archive:
            archive.writestr(path, notebook)
    rows = (sheet_row(101, "anna"), sheet_row(0, "zoe").replace("Participant 0", "Participant 102"))
    Path("worksheet.csv").write_text((FULL + "".join(rows)).replace("25.00", "100"), "utf-8")
    listed = [
        canvas_submission(501, "anna", "2026-11-20T21:10:00Z"),
        canvas_submission(502, "zoe", None),
    ]
    Path("submissions.json").write_text(json.dumps(listed), "utf-8")
    Path("classroom.csv").write_text(
        "assignment_name,github_username,roster_identifier,submission_timestamp\n"
        "mpi-lab,anna,a@x.org,2026-11-20 21:10:05 UTC\nmpi-lab,zoe,z@x.org,\n"
    )
    Path("roster.csv").write_text("student\nanna\nzoe\n")
    Path("gradebook.csv").write_text(CANVAS_GRADEBOOK)
    with zipfile.ZipFile("gradescope.zip", "w") as archive:
        archive.writestr(f"assignment_77_export/submission_1/{LAB}.ipynb", notebook)
        archive.writestr("assignment_77_export/submission_metadata.yml", GRADESCOPE_METADATA)
    Path("gradescope.csv").write_text("Name,SID,Email\nanna,17,Anna@x.org\nzoe,18,zoe@x.org\n")
    git(clone, "init", "-q", "-b", "main")
    git(clone, "add", ".")
    git(clone, "commit", "-qm", "done")


REPORTING = Path(__file__).resolve().parents[2] / "docs" / "reporting.md"
ROUND_TRIPS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in REPORTING.read_text("utf-8").partition("## Collect")[0].splitlines()[2:]
    if line.startswith("| ") and "`" in line
]


@pytest.fixture(scope="module")
def judged_once(tmp_path_factory):
    """The output folder of `mpilab grade` on anna's notebook, a blank one: the same for all
    platforms, so that the tests below need not judge it again."""
    base = tmp_path_factory.mktemp("graded")
    (base / "class" / "anna").mkdir(parents=True)
    shutil.copy(ROOT / "labs" / f"{LAB}.ipynb", base / "class" / "anna")
    run("grade", base / "class", "--lab", LAB, "--out", base / "out", *GRADE)
    return base / "out"


GRADE = ("--unsafe-no-sandbox", "--no-progress")


@pytest.mark.parametrize(("platform", "before", "after", "files"), ROUND_TRIPS)
def test_each_round_trip_of_the_docs_is_made_by_its_commands(
    platform, before, after, files, judged_once, tmp_path, monkeypatch, capsys, require_tool
):
    require_tool("git")
    monkeypatch.chdir(tmp_path)
    downloads()
    shutil.copytree(judged_once, "out")
    collects = [shlex.split(command) for command in re.findall(r"`mpilab ([^`]*)`", before)]
    if collects:
        shutil.rmtree("class")
    for command in collects:
        run(*command)
    roster = ["--roster", "roster.csv"] if "`--roster roster.csv`" in before else []
    capsys.readouterr()
    run("grade", "class", "--lab", LAB, "--out", "out", *GRADE, *roster)
    students = 2 if "--roster" in before else 1
    # Only zoe's verdict is new.
    assert f"{students - 1} of {students} submissions graded" in capsys.readouterr().out
    run("marks", "override", "out", "--student", "anna", "--points", "20", "--reason", "read")
    for command in re.findall(r"`mpilab ([^`]*)`", after):
        if "--to nbgrader" not in command:  # tests/course/test_export.py needs nbgrader for that
            run(*shlex.split(command))
    assert "NOT RETURNED" not in capsys.readouterr().err
    for name in re.findall(r"`([^`]*)`", files):
        if name.startswith("feedback-"):
            clone = tmp_path / "mpi-lab-submissions" / "mpi-lab-anna"
            assert whose(git(clone, "show", f"{name}:feedback/{LAB}.html")) == "anna"
        elif not name.endswith("gradebook.db"):
            assert Path(name).stat().st_size > 0, name
    READ_BACK.get(platform, list)()


def moodle_reads():
    """What Moodle's two imports find in what was written."""
    known = {101: "anna", 102: "zoe"}
    sheet = moodle_sheet_import("out/moodle/worksheet.csv", known)
    assert {name: grade for name, (grade, _) in sheet.items()} == {"anna": "20", "zoe": "0"}
    pages = moodle_zip_import("out/moodle/feedback.zip", known)
    assert {name: whose(page) for name, (_, page) in pages.items()} == {"anna": "anna"}


def canvas_reads():
    """What Canvas's imports find in what was written."""
    pages = canvas_zip_import("out/canvas/feedback.zip", {(501, 70001): "anna"})
    assert whose(pages["anna"]) == "anna"
    sent = json.loads(Path("out/canvas/comments.json").read_text("utf-8"))["grade_data"]
    assert sent["501"]["text_comment"].startswith("20 of 100 points.")
    assert sent["502"]["text_comment"].startswith("0 of 100 points.")
    with open("out/canvas.csv", encoding="utf-8", newline="") as file:
        found = {row["ID"]: row["Lab 2 (22)"] for row in csv.DictReader(file) if row["ID"]}
    assert found == {"501": "20", "502": "0"}


def gradescope_hands_out(home, *emails):
    """What run_autograder leaves in results/ for a submission of these users, and its words."""
    shutil.rmtree(home / "results", ignore_errors=True)
    users = [{"email": email, "id": n, "name": "x"} for n, email in enumerate(emails)]
    (home / "submission_metadata.json").write_text(json.dumps({"id": 1, "users": users}))
    ran = subprocess.run(
        [home / "source" / "run_autograder"],
        env={"PATH": os.environ["PATH"], "MPILAB_AUTOGRADER": str(home)},
        capture_output=True,
        text=True,
    )
    file = home / "results" / "results.json"
    assert (ran.returncode == 0) == file.exists()
    return json.loads(file.read_text("utf-8")) if file.exists() else ran.stderr


def gradescope_reads():
    """What its container does with what was written."""
    home = Path("container").absolute()
    with zipfile.ZipFile("out/gradescope/autograder.zip") as archive:
        archive.extractall(home / "source")
        for name in ("run_autograder", "setup.sh"):
            mode = archive.getinfo(name).external_attr >> 16
            assert mode == 0o755
            (home / "source" / name).chmod(mode)
    assert subprocess.run([home / "source" / "setup.sh"]).returncode == 0
    anna = gradescope_hands_out(home, "anna@X.org")
    assert anna["score"] == 20 and len(anna["tests"]) > 4
    assert gradescope_hands_out(home, "zoe@x.org")["score"] == 0
    assert "There are no marks for dan@x.org yet" in gradescope_hands_out(home, "dan@x.org")
    assert "marks for dan@x.org" in gradescope_hands_out(home, "Anna@x.org", "dan@x.org")
    # Two in a group have one result, or none.
    assert "differ" in gradescope_hands_out(home, "Anna@x.org", "zoe@x.org")


READ_BACK = {"Moodle": moodle_reads, "Canvas": canvas_reads, "Gradescope": gradescope_reads}


def test_every_platform_has_a_round_trip():
    known = [row[0].lower().replace(" ", "-") for row in ROUND_TRIPS]
    assert sorted([*known[:-1], "folders"]) == sorted(PLATFORMS)


def test_the_command_offers_what_there_is():
    assert set(RETURNS) == {"auto", *PLATFORMS}


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("other", ["Anna", "straße", "e\u0301va"])
def test_names_that_differ_in_case_or_composition_never_share_a_page(
    platform, other, tmp_path, capsys
):
    """Some file systems and platforms would take these for one."""
    twin = {"Anna": "anna", "straße": "STRASSE", "e\u0301va": "éva"}[other]
    out = tmp_path / "out"
    for student in (other, twin):
        hand_in(out, verdict(student, "text"))
    with Gradebook(out / "gradebook.sqlite") as book:
        book.decide([override(run_of(book, LAB, s), 20, "shown") for s in (other, twin)])
    before = sorted(out.rglob("*"))
    run("feedback", out, "--to", platform, "--source", tmp_path, code=1)
    said = capsys.readouterr().err
    assert sorted(path for path in out.rglob("*") if path.suffix == ".html") == [
        path for path in before if path.suffix == ".html"
    ]
    if platform in ("folders", "gradescope", "nbgrader"):
        assert "nothing was written" in said and sorted(out.rglob("*")) == before
    else:  # it finds nobody by name
        assert said.count("NOT RETURNED") == 2


@pytest.mark.parametrize("change", ["same number", "another's number", "another's file"])
def test_a_table_edited_into_confusion_sends_nobody_another_page(change, of_moodle, capsys):
    table = of_moodle / "submissions.csv"
    text = table.read_text("utf-8")
    if change == "same number":
        text = re.sub("_102_", "_101_", text).replace(",102,", ",101,")
    elif change == "another's number":
        text = text.replace(",102,", ",101,")
    else:
        text = text.replace("Anna schmidt_102_assign", "Anna Schmidt_101_assign")
    table.write_text(text, "utf-8")
    run("feedback", of_moodle, "--partial", code=1)
    said = capsys.readouterr().err
    if change == "same number":
        assert "the number '101' would be both" in said and not (of_moodle / "moodle").exists()
    else:
        assert "NOT RETURNED: Anna schmidt_102: " in said
        pages = moodle_zip_import(of_moodle / "moodle" / "feedback.zip", MOODLES)
        assert {whose(page) for _, page in pages.values()} == {"Anna Schmidt_101", "=Dan;@x_103"}


def test_a_page_that_was_copied_or_renamed_by_hand_is_refused(tmp_path, capsys):
    out = tmp_path / "out"
    for student in ("anna", "ben"):
        hand_in(out, verdict(student, "text"))
    with Gradebook(out / "gradebook.sqlite") as book:
        book.decide([override(run_of(book, LAB, s), 20, "shown") for s in ("anna", "ben")])
    ben = out / "feedback" / "ben.html"
    mine = ben.read_text("utf-8")
    ben.write_text((out / "feedback" / "anna.html").read_text("utf-8"), "utf-8")
    run("feedback", out, code=1)
    assert "it is not the page of 'ben'" in capsys.readouterr().err
    ben.unlink()
    run("feedback", out, code=1)
    assert "NOT RETURNED: ben: " in capsys.readouterr().err
    assert [path.parent.name for path in out.glob("folders/*/*")] == ["anna"]
    ben.write_text(mine.replace("<!--mpilab:score-->", ""), "utf-8")
    run("feedback", out, code=1)
    assert "ben.html is of an older mpilab" in capsys.readouterr().err


def test_a_table_for_two_labs_gives_each_its_own_rows(tmp_path, capsys):
    for lab, number in ((LAB, 101), ("03-rank-mapping", 555)):
        source = tmp_path / lab
        put(source, f"Anna_{number}_assignsubmission_file/{lab}.ipynb")
        run("collect", source, tmp_path / "class", "--lab", lab)
    # The later lab's number must not be that of the earlier lab's page.
    out = graded(tmp_path / LAB, tmp_path)
    run("feedback", out)
    assert set(texts(out / "moodle" / "feedback.zip")) == {
        f"Anna_101_assignsubmission_file/{LAB}-feedback.html"
    }
    rows = list(csv.DictReader(io.StringIO((out / "submissions.csv").read_text("utf-8"))))
    assert [(row["lab"], row["id"]) for row in rows] == [(LAB, "101"), ("03-rank-mapping", "555")]


def test_a_late_submission_is_found_by_the_table_without_naming_it(tmp_path, capsys):
    put(tmp_path / "download", f"Anna_1_assignsubmission_file/{LAB}.ipynb")
    roster = tmp_path / "roster.csv"
    roster.write_text("student,time\nanna,2026-11-20T22:00\n")
    out = graded(tmp_path / "download", tmp_path, "--roster", roster)
    due = ("--due", "2020-01-01", "--per-day", "10%", "--most", "40%")
    run("marks", "late", out, "--lab", LAB, *due)
    assert "1 of 1 late" in capsys.readouterr().out
    assert Path(out / "submissions.csv").is_file()
