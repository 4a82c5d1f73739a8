"""One exercise is judged again for all students, and everything else remains, in the real
sandbox."""

import csv
import shutil
import zipfile
from pathlib import Path

import nbformat
import pytest
from small_kit import ANSWERS, LAB, WRONG, edit, hand_in, made_kit, newest

from mpilab.cli import main
from mpilab.course.collect import collect
from mpilab.errors import InputError
from mpilab.grading.answers import answer_cells
from mpilab.grading.decisions import manual, override
from mpilab.grading.grade import Assignment, grade
from mpilab.grading.gradebook import Gradebook, run_of
from mpilab.grading.regrade import regrade
from mpilab.grading.submission import class_of
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

# A class is graded in a fixture, with other tests beside it.
pytestmark = pytest.mark.timeout(1500)


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """(folder, submissions, kit) of two students, graded for real; the texts have been read."""
    folder = tmp_path_factory.mktemp("graded")
    kit = made_kit(folder / "kit")
    for number, student, answers in ((101, "anna", {}), (102, "ben", {"placement": WRONG})):
        hand_in(kit, folder / "handed-in", student, **answers)
        moodles = f"{student}_{number}_assignsubmission_file"
        (folder / "handed-in" / student).rename(folder / "handed-in" / moodles)
    collect(folder / "handed-in", folder / "class", LAB)
    grade(folder / "class", LAB, folder / "out", progress=False, root=kit)
    with Gradebook(folder / "out" / "gradebook.sqlite") as book:
        anna, ben = (run_of(book, LAB, student) for student in ("anna", "ben"))
        book.decide(
            [
                manual(anna, "by_distance", "text", 5, "well said"),
                override(ben, 4, "shown in person", "placement"),
            ]
        )
    return folder / "out", folder / "class", kit


@pytest.fixture
def kit(graded, tmp_path):
    """A modifiable copy of the kit with which the class was graded."""
    return Path(shutil.copytree(graded[2], tmp_path / "kit"))


@pytest.fixture
def out(graded, tmp_path):
    """A copy of the graded folder, so that each test may change it."""
    shutil.copytree(graded[0], tmp_path / "out")
    return tmp_path / "out"


def grades(out):
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def exercises(run):
    return {each.exercise: each for each in run.verdict.exercises}


@pytest.mark.slow
class TestAGradedClass:
    def test_keeps_the_texts_that_people_read(self, graded):
        out, folder, _ = graded
        anna = exercises(newest(out)["anna"])
        notebook = nbformat.read(folder / "anna" / f"{LAB}.ipynb", as_version=4)
        answers = answer_cells(notebook)
        assert {name: each.answer for name, each in anna.items()} == {
            name: answers[name] for name in ANSWERS
        }

    def test_returns_what_was_collected_from_moodle_with_the_marks_in_effect(self, out):
        with Gradebook(out / "gradebook.sqlite") as book:
            book.decide([manual(run_of(book, LAB, "ben"), "by_distance", "text", 2, "too short")])
        assert main(["marks", "show", str(out)]) == main(["feedback", str(out)]) == 0
        with zipfile.ZipFile(out / "moodle" / "feedback.zip") as archive:
            pages = {name: archive.read(name).decode() for name in archive.namelist()}
        assert [name.split("_assign")[0] for name in pages] == ["anna_101", "ben_102"]
        anna, ben = pages.values()
        assert "well said" in anna and "so it is on" in anna and "shown in person" not in anna
        assert "too short" in ben and "shown in person" in ben
        with open(out / "moodle" / "worksheet.csv", encoding="utf-8", newline="") as file:
            sheet = {row["Identifier"]: row for row in csv.DictReader(file)}
        totals = {row["student"]: row["total"] for row in grades(out)}
        assert sheet["Participant 101"]["Grade"] == totals["anna"]
        assert sheet["Participant 102"]["Grade"] == totals["ben"]
        assert "shown in person" in sheet["Participant 102"]["Feedback comments"]

    def test_changes_in_one_exercise_only_and_nothing_of_people_is_lost(self, graded, out, kit):
        folder = graded[1]
        before = newest(out)
        page = (out / "feedback" / "anna.html").read_text(encoding="utf-8")
        edit(kit, 'title = "By slot"\npoints = 6', 'title = "Host by host"\npoints = 10')
        done = regrade(out, folder, LAB, "placement", progress=False, root=kit)
        after = newest(out)
        assert done.left == {} and done.notes == []
        assert done.changes == {"anna": (6, 10), "ben": (0, 0)}
        for student in ("anna", "ben"):
            for name, exercise in exercises(before[student]).items():
                assert name == "placement" or exercises(after[student])[name] == exercise
            assert after[student].assignment == Assignment.load(LAB, kit).digest
        with open(out / "grades.csv", encoding="utf-8", newline="") as file:
            rows = {row["student"]: row for row in csv.DictReader(file)}
        assert (rows["anna"]["placement"], rows["ben"]["placement"]) == ("10", "4")
        assert (rows["anna"]["total"], rows["anna"]["status"]) == ("18", "graded")

        again = (out / "feedback" / "anna.html").read_text(encoding="utf-8")
        assert "Host by host" in again and "Host by host" not in page
        assert "well said" in again and "18 / 28" in again
        # What the notebook printed is still there.
        printed = "What your notebook printed"
        assert page.partition(printed)[2] == again.partition(printed)[2] != ""
        assert "so it is on 0" in again
        # Grading finds everything up to date now, and a second regrade has nothing to do.
        assert grade(folder, LAB, out, progress=False, root=kit).graded == []
        assert regrade(out, folder, LAB, "placement", progress=False, root=kit).changes == {}

    def test_whose_other_exercises_are_asked_differently_is_refused_with_their_names(
        self, graded, out, kit
    ):
        edit(kit, "counts = [1, 7]", "counts = [1, 8]")
        with pytest.raises(InputError, match=r"regrade placement: .* bcast_linear \(e.g. anna\)"):
            regrade(out, graded[1], LAB, "placement", progress=False, root=kit)
        assert newest(out) == newest(graded[0])

    def test_names_who_has_handed_in_another_file_or_was_not_graded(
        self, graded, out, kit, tmp_path, capsys, monkeypatch
    ):
        folder = tmp_path / "class"
        shutil.copytree(graded[1], folder)
        hand_in(kit, folder, "ben")
        hand_in(kit, folder, "zoe")
        # The command is for the labs of the kit itself; this one is a copy.
        monkeypatch.setitem(regrade.__kwdefaults__, "root", kit)
        command = ["regrade", str(out), str(folder), "--lab", LAB, "--exercise", "placement"]
        assert main([*command, "--again", "--no-progress"]) == 1
        said = capsys.readouterr()
        assert "placement judged again for 1 of 2" in said.out
        assert (
            "NOT JUDGED AGAIN: ben has handed in another file since then; use 'mpilab grade'"
        ) in (said.err)
        assert "NOT JUDGED AGAIN: zoe has not been graded yet" in said.err
        assert newest(out)["ben"] == newest(graded[0])["ben"]


def test_an_exercise_that_the_lab_has_not_is_named(tmp_path, capsys):
    command = ["regrade", str(tmp_path), str(tmp_path), "--lab", LAB, "--exercise", "plaement"]
    assert main(command) == 1
    assert "exercise 'plaement': not in lab 00-first-contact; it has" in capsys.readouterr().err


def test_an_exercise_that_was_added_after_grading_is_refused(tmp_path):
    kit = made_kit(tmp_path / "kit")
    hand_in(kit, tmp_path / "class", "anna")
    (submission,) = class_of(tmp_path / "class", LAB)
    parts = Assignment.load(LAB, kit).parts
    judged = tuple(
        ExerciseVerdict(name, name, (ItemVerdict("all", "All", 5.0, "pass"),), None, part)
        for name, part in parts.items()
        if name != "placement"
    )
    (tmp_path / "out").mkdir()
    with Gradebook(tmp_path / "out" / "gradebook.sqlite") as book:
        given = SubmissionVerdict("anna", LAB, judged, "", "none")
        book.record(given, "key", seconds=1.0, submission=submission.digest)
    with pytest.raises(InputError, match=r"regrade placement: .* without this .* \(for anna, for"):
        regrade(tmp_path / "out", tmp_path / "class", LAB, "placement", progress=False, root=kit)


def test_hidden_seeds_and_remarks_do_not_make_another_exercise(tmp_path):
    kit = made_kit(tmp_path / "kit")
    before = Assignment.load(LAB, kit)
    edit(kit, "[parameters]", "# A remark that changes every hidden seed.\n[parameters]")
    after = Assignment.load(LAB, kit)
    assert after.digest != before.digest and after.parts == before.parts
    edit(kit, "ranks = [2, 3]", "ranks = [2, 5]")
    changed = Assignment.load(LAB, kit).parts
    assert [name for name in changed if changed[name] != before.parts[name]] == ["bcast_linear"]
