"""A class graded in shares and merged equals the class graded at once."""

import csv
import sqlite3
from pathlib import Path

import pytest

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.grading import gradebook as books
from mpilab.grading import regrade as merging
from mpilab.grading.grade import Assignment, part_of
from mpilab.grading.gradebook import SCHEMA, Gradebook
from mpilab.grading.regrade import merge
from mpilab.grading.submission import find_submissions
from mpilab.judging.judge import ungradable
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

LAB = "02-allgather"
CLASS = Path(__file__).parents[2] / "grading" / "sample-class"


def verdict(student, outcome="pass", lab=LAB):
    item = ItemVerdict("i", "Item", 5.0, outcome, "why" * (outcome != "pass"))
    return SubmissionVerdict(student, lab, (ExerciseVerdict("ring", "Ring", (item,)),), "", "none")


def fill(folder, *verdicts, keys=None, assignment="rubric one"):
    """A folder as `mpilab grade` leaves it; each page says when it was created."""
    (folder / "feedback").mkdir(parents=True, exist_ok=True)
    with Gradebook(folder / "gradebook.sqlite") as book:
        for number, each in enumerate(verdicts):
            (folder / "feedback" / f"{each.student}.html").write_text(f"{folder.name} {number}")
            key, page = keys[number] if keys else "key", f"feedback/{each.student}.html"
            book.record(each, key, seconds=1.0, feedback=page, assignment=assignment)
    return folder


def rows(out):
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.mark.parametrize("parts", [1, 3, 5, 13])
def test_every_submission_is_in_exactly_one_share(parts):
    found = find_submissions(CLASS, LAB)
    shares = [part_of(found, (part, parts)) for part in range(1, parts + 1)]
    assert sorted(s.student for share in shares for s in share) == [s.student for s in found]
    assert max(map(len, shares)) - min(map(len, shares)) <= 1


@pytest.mark.parametrize("text", ["0/3", "4/3", "2", "a/b", "1/0", "-1/3"])
def test_a_share_that_there_is_not_is_named_with_an_example(text, capsys):
    with pytest.raises(SystemExit) as end:
        main(["grade", str(CLASS), "--lab", LAB, "--out", "x", f"--share={text}"])
    assert end.value.code == 2
    assert f"'{text}' is not a share; write K/N, e.g. 1/3" in capsys.readouterr().err


def test_shares_are_merged_with_marks_pages_and_history(tmp_path):
    one = fill(tmp_path / "1", verdict("anna", "fail"), verdict("anna"), keys=["old", "new"])
    two = fill(tmp_path / "2", verdict("ben", "manual"))
    done = merge(tmp_path / "all", [one, two])
    assert (done.added, done.lab, done.missing, done.notes) == (3, LAB, [], [])
    assert (tmp_path / "all" / "grades.csv").read_text() == (
        f"student,lab,ring,total,status\nanna,{LAB},5,5,graded\nben,{LAB},,0,awaiting-manual\n"
    )
    assert (tmp_path / "all" / "feedback" / "anna.html").read_text() == "1 1"
    with Gradebook(tmp_path / "all" / "gradebook.sqlite") as book:
        assert [run.key for run in book.history("anna", LAB)] == ["new", "old"]
        assert book.history("ben", LAB)[0].seconds == 1.0


def test_merging_twice_adds_nothing_and_a_regraded_share_replaces_its_marks(tmp_path):
    one, two = fill(tmp_path / "1", verdict("anna")), fill(tmp_path / "2", verdict("ben", "fail"))
    out = tmp_path / "all"
    merge(out, [one, two])
    csv_bytes, gradebook = (out / "grades.csv").read_bytes(), _dump(out)
    assert merge(out, [two, one]).added == 0
    assert (out / "grades.csv").read_bytes() == csv_bytes
    assert _dump(out) == gradebook
    fill(two, verdict("ben"), keys=["better"])
    assert merge(out, [one, two]).added == 1
    assert rows(out)["ben"]["total"] == "5"
    assert [path.name for path in (out / "feedback").iterdir() if path.suffix != ".html"] == []


def test_an_older_run_that_comes_later_does_not_count_as_the_newest(tmp_path):
    older = fill(tmp_path / "old", verdict("anna", "fail"), keys=["older"])
    newer = fill(tmp_path / "new", verdict("anna"), keys=["newer"])
    out = tmp_path / "all"
    merge(out, [newer])
    assert merge(out, [older]).added == 1
    assert rows(out)["anna"]["total"] == "5"
    assert (out / "feedback" / "anna.html").read_text() == "new 0"
    with Gradebook(out / "gradebook.sqlite") as book:
        assert [run.key for run in book.history("anna", LAB)] == ["newer", "older"]


def test_a_clock_that_was_set_back_does_not_change_the_order_within_a_book(tmp_path, monkeypatch):
    first = fill(tmp_path / "1", verdict("anna", "fail"), verdict("anna"), keys=["a", "b"])
    with sqlite3.connect(first / "gradebook.sqlite") as database:
        database.execute("UPDATE runs SET recorded = '2001-01-01T00:00:00.000+00:00' WHERE id = 2")
    database.close()
    merge(tmp_path / "all", [first, fill(tmp_path / "2", verdict("ben"))])
    assert rows(tmp_path / "all")["anna"]["total"] == "5"


def test_different_rubrics_and_different_labs_are_refused_with_the_folder(tmp_path):
    one = fill(tmp_path / "1", verdict("anna"))
    other = fill(tmp_path / "2", verdict("ben"), assignment="rubric two")
    with pytest.raises(InputError, match="anna in .*/1 and ben in .*/2 were not graded by the sam"):
        merge(tmp_path / "all", [one, other])
    lab = fill(tmp_path / "3", verdict("ben", lab="03-rank-mapping"))
    with pytest.raises(InputError, match="several labs.*02-allgather in .*03-rank-mapping in .*"):
        merge(tmp_path / "all", [one, lab])
    with pytest.raises(InputError, match="/3: holds verdicts on 03-rank-mapping, none on 02-allg"):
        merge(tmp_path / "all", [one, lab], lab=LAB)
    assert not (tmp_path / "all").exists()


def test_a_gradebook_of_the_version_before_is_brought_up_to_date(tmp_path):
    path = tmp_path / "gradebook.sqlite"
    fill(tmp_path, verdict("anna"))
    with sqlite3.connect(path) as database:
        for column in ("assignment", "submission", "simgrid", "jail"):
            database.execute(f"ALTER TABLE runs DROP COLUMN {column}")
        for column in ("unconfirmed", "diagnoses"):
            database.execute(f"ALTER TABLE items DROP COLUMN {column}")
        for column in ("answer", "rubric"):
            database.execute(f"ALTER TABLE exercises DROP COLUMN {column}")
        for table in ("decisions", "class"):
            database.execute(f"DROP TABLE {table}")
        database.execute("PRAGMA user_version = 1")
    database.close()
    with Gradebook(path) as book:
        book.record(verdict("ben"), "k", assignment="a")
        assert [run.assignment for run in book.runs()] == ["", "a"]
        assert book.verdicts(LAB)[0] == verdict("anna")
        (version,) = book._database.execute("PRAGMA user_version").fetchone()
    assert version == SCHEMA == 6


def test_folders_without_a_gradebook_and_into_themselves_are_refused(tmp_path):
    one = fill(tmp_path / "1", verdict("anna"))
    with pytest.raises(InputError, match="nothing: holds no gradebook.sqlite; .*--submissions"):
        merge(tmp_path / "all", [one, tmp_path / "nothing"])
    with pytest.raises(InputError, match="merged into itself"):
        merge(one, [one])


def test_who_was_not_graded_is_listed_as_ungradable_with_the_reason(tmp_path, capsys):
    """Share 2 of 3 never started; in share 3, one submission has changed since it was graded."""
    assignment = Assignment.load(LAB)
    found = find_submissions(CLASS, LAB)
    for part in (1, 3):
        share = part_of(found, (part, 3))
        verdicts = [
            SubmissionVerdict(
                s.student,
                LAB,
                tuple(ungradable(exercise, "made up") for exercise in assignment.rubric.exercises),
            )
            for s in share
        ]
        keys = [assignment.key(s) for s in share]
        if part == 3:
            keys[0] = books.key("an older file")
        fill(tmp_path / str(part), *verdicts, keys=keys, assignment=assignment.digest)
    out = tmp_path / "all"
    folders = [str(tmp_path / str(part)) for part in (1, 2, 3)]
    assert main(["merge", str(out), *folders, "--submissions", str(CLASS), "--lab", LAB]) == 1
    said = capsys.readouterr()
    lost = [s.student for s in part_of(found, (2, 3))] + [part_of(found, (3, 3))[0].student]
    assert f"NOT GRADED: {', '.join(sorted(lost))}" in said.err
    assert f"{tmp_path / '2'}: no gradebook.sqlite; its job did not finish" in said.err
    assert f"{lost[0]}: Not graded: none of the 3 merged gradebooks has a verdict" in said.out
    listed = rows(out)
    assert list(listed) == sorted(s.student for s in found)
    assert {listed[student]["status"] for student in lost} == {"ungradable"}
    assert {listed[student]["total"] for student in lost} == {""}
    with Gradebook(out / merging.GRADEBOOK) as book:
        assert {run.verdict.student for run in book.runs()}.isdisjoint(lost[:-1])


def _dump(out):
    with sqlite3.connect(out / "gradebook.sqlite") as database:
        return list(database.iterdump())
