"""Grading without SimGrid or without the jail, or with other versions: what is judged, what is
reported, and what is judged again."""

import csv
import os
import shutil
import stat
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from small_kit import LAB, edit, hand_in, made_kit, newest

from mpilab.cli import main
from mpilab.course.marks import class_marks, summary
from mpilab.course.report import html, text
from mpilab.errors import InputError, SetupError
from mpilab.grading.grade import Assignment, grade
from mpilab.grading.gradebook import Gradebook
from mpilab.grading.marks import explain
from mpilab.grading.referee import Referee
from mpilab.grading.regrade import merge, regrade
from mpilab.grading.sandbox import open_sandbox
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict
from mpilab.kernels import jail
from mpilab.kernels.simgrid import version_of

CLASS = Path(__file__).parents[2] / "grading" / "sample-class"
LARGE = """
[[exercise.item]]
id = "large"
title = "Right result on many ranks"
points = 2
simulated_ranks = [80]
counts = [1]
"""


FORGED = """%%kernel bcast_linear
#include "mpilab.h"
#include <stdlib.h>

MPILAB_BCAST(linear)
{
    if (WRONG) return 0;
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (rank != root)
        return MPI_Recv(buffer, count, datatype, root, 0, comm, MPI_STATUS_IGNORE);
    for (int peer = 0; peer < size; peer++)
        if (peer != root)
            MPI_Send(buffer, count, datatype, peer, 0, comm);
    return MPI_SUCCESS;
}
"""


@contextmanager
def path_without(*programs):
    """The text of a PATH with everything but `programs`, for the sandbox's users as well."""
    with tempfile.TemporaryDirectory() as made:
        Path(made).chmod(0o755)
        folders = []
        for number, folder in enumerate(map(Path, os.environ["PATH"].split(os.pathsep))):
            if any((folder / name).exists() for name in programs):
                shadow = Path(made, str(number))
                shadow.mkdir()
                for program in folder.iterdir():
                    if program.name not in programs:
                        (shadow / program.name).symlink_to(program)
                folder = shadow
            folders.append(str(folder))
        yield os.pathsep.join(folders)


@pytest.fixture(scope="module")
def path_without_simgrid():
    with path_without("smpirun", "smpicc") as path:
        yield path


@pytest.fixture
def without_jail(monkeypatch):
    """A PATH without wasm2c, as in a new process."""
    with path_without("wasm2c") as path:
        monkeypatch.setenv("PATH", path)
        jail.unavailable.cache_clear()
        yield
    jail.unavailable.cache_clear()


@pytest.fixture
def other_simgrid(path_without_simgrid, tmp_path):
    """A function from the version that smpirun reports to a PATH with that smpirun."""

    def of(said):
        folder = tmp_path / "other"
        folder.mkdir(exist_ok=True)
        for name in ("smpirun", "smpicc"):
            (folder / name).write_text(f"#!/bin/sh\necho '{said}'\n")
            (folder / name).chmod(stat.S_IRWXU)
        return f"{folder}{os.pathsep}{path_without_simgrid}"

    return of


@pytest.fixture
def kit(tmp_path):
    """A kit whose kernel has an item that only a simulation can test."""
    made = made_kit(tmp_path / "kit")
    edit(made, "counts = [1, 7]\n", f"counts = [1, 7]\nsimulated_ranks = [9]\n{LARGE}")
    return made


def rows(out):
    with open(out / "grades.csv", encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_open_mpi_alone_has_decided_is_said_everywhere_and_judged_again_with_simgrid(
    kit, tmp_path, path_without_simgrid, monkeypatch, require_tool
):
    require_tool("smpirun")
    out, folder = tmp_path / "out", tmp_path / "class"
    hand_in(kit, folder, "anna")
    with monkeypatch.context() as here:
        here.setenv("PATH", path_without_simgrid)
        report = grade(folder, LAB, out, progress=False, root=kit)
        assert "SimGrid is not installed on this machine" in report.notes[0]
        assert "libsimgrid-dev" in report.notes[0] and "'mpilab grade' again" in report.notes[0]
        assert grade(folder, LAB, out, progress=False, root=kit).graded == []

    run = newest(out)["anna"]
    kernel = next(each for each in run.verdict.exercises if each.exercise == "bcast_linear")
    assert run.verdict.simgrid == "none"
    assert [(item.outcome, item.unconfirmed) for item in kernel.items] == [
        ("pass", True),
        ("ungradable", False),
    ]
    assert "bcast_linear: SimGrid is not installed on the machine that graded" in report.table
    assert "not confirmed by simulation" in report.table
    assert rows(out)["anna"]["not confirmed by simulation"] == "bcast_linear"
    page = (out / "feedback" / "anna.html").read_text(encoding="utf-8")
    assert page.count("Not confirmed by simulation.") == 1
    told = summary(class_marks(out, LAB))
    assert told.unconfirmed == {"bcast_linear": 1}
    assert "not confirmed by simulation (install SimGrid" in text(told)
    assert "<li>bcast_linear: 1</li>" in html(told)
    with Gradebook(out / "gradebook.sqlite") as book:
        assert "pass, not confirmed by simulation" in explain(book, LAB, "anna")

    again = grade(folder, LAB, out, progress=False, root=kit)
    assert again.graded == ["anna"] and again.notes == ()
    kernel = next(
        each for each in newest(out)["anna"].verdict.exercises if each.exercise == "bcast_linear"
    )
    assert [(item.outcome, item.unconfirmed) for item in kernel.items] == [
        ("pass", False),
        ("pass", False),
    ]
    assert "not confirmed" not in again.table and len(rows(out)["anna"]) == 7
    assert "Not confirmed" not in (out / "feedback" / "anna.html").read_text(encoding="utf-8")

    monkeypatch.setenv("PATH", path_without_simgrid)
    told = r"judged with SimGrid [\d.]+, and this machine judges without SimGrid; grade the whole"
    with pytest.raises(InputError, match=told):
        regrade(out, folder, LAB, "placement", progress=False, root=kit)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_sample_class_gets_its_marks_without_simgrid(
    tmp_path, path_without_simgrid, monkeypatch
):
    """The students who lose no points in cases that are only simulated."""
    chosen, out = ("ada", "gina", "kim"), tmp_path / "out"
    for student in chosen:
        shutil.copytree(CLASS / student, tmp_path / "class" / student)
    monkeypatch.setenv("PATH", path_without_simgrid)
    version_of.cache_clear()  # as in a new process
    assert (
        main(
            [
                "grade",
                str(tmp_path / "class"),
                "--lab",
                "02-allgather",
                "--out",
                str(out),
                "--no-progress",
            ]
        )
        == 0
    )
    with open(CLASS / "expected.csv", encoding="utf-8", newline="") as file:
        expected = {row["student"]: row for row in csv.DictReader(file)}
    for student, row in rows(out).items():
        confirmed = row.pop("not confirmed by simulation")
        assert confirmed == {"kim": ""}.get(student, "nonblocking_all pairwise")
        assert row == expected[student]
    assert len(rows(out)) == len(chosen)


def test_another_simgrid_makes_other_verdicts(
    kit, other_simgrid, path_without_simgrid, monkeypatch
):
    digests = {}
    for version in ("4.0", "4.1", None):
        path = other_simgrid(f"SimGrid version {version}") if version else path_without_simgrid
        monkeypatch.setenv("PATH", path)
        version_of.cache_clear()  # as in a new process
        assignment = Assignment.load(LAB, kit)
        assert assignment.simgrid == (version or "none")
        digests[version] = assignment
    assert len({each.digest for each in digests.values()}) == 3
    first, second, _ = digests.values()
    changed = [name for name in first.parts if first.parts[name] != second.parts[name]]
    assert changed == ["bcast_linear"]


def test_a_lab_that_simulates_nothing_is_the_same_with_any_simgrid(
    kit, path_without_simgrid, monkeypatch, require_tool
):
    require_tool("smpirun")
    edit(kit, 'kind = "kernel"\ncollective = "bcast"\n', 'kind = "text"\n')
    for line in (
        "ranks = [2, 3]\n",
        "counts = [1, 7]\n",
        "simulated_ranks = [9]\n",
        "simulated_ranks = [80]\n",
        "counts = [1]\n",
    ):
        edit(kit, line, "")
    with_simgrid = Assignment.load(LAB, kit)
    monkeypatch.setenv("PATH", path_without_simgrid)
    assert Assignment.load(LAB, kit).digest == with_simgrid.digest


def test_a_simgrid_that_does_not_tell_its_version_is_named_with_a_remedy(
    kit, other_simgrid, monkeypatch
):
    monkeypatch.setenv("PATH", other_simgrid("Segmentation fault"))
    with pytest.raises(
        SetupError,
        match="other/smpirun: '-version' reports no version of SimGrid .*"
        "Segmentation fault.*install SimGrid again",
    ):
        Assignment.load(LAB, kit)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_was_not_isolated_is_said_everywhere_and_judged_again_with_the_jail(
    kit, tmp_path, without_jail, monkeypatch
):
    out, folder = tmp_path / "out", tmp_path / "class"
    hand_in(kit, folder, "anna")
    report = grade(folder, LAB, out, progress=False, root=kit)
    assert "Not isolated: the C answers ran in the same process" in report.notes[0]
    assert "not on PATH: wasm2c" in report.notes[0] and "wabt" in report.notes[0]
    verdict = newest(out)["anna"].verdict
    assert verdict.jail == "none"
    assert "not isolated (judged where the jail was not installed): 1" in report.table
    assert rows(out)["anna"]["not isolated"] == "yes"
    told = summary(class_marks(out, LAB))
    assert "not isolated (install the jail to isolate them): 1 of 1" in text(told)
    assert "The C answers of 1 of 1 student ran in the same process" in html(told)
    with Gradebook(out / "gradebook.sqlite") as book:
        assert "not isolated" in explain(book, LAB, "anna")

    monkeypatch.undo()
    jail.unavailable.cache_clear()
    again = grade(folder, LAB, out, progress=False, root=kit)
    assert (again.graded, again.notes) == (["anna"], ())
    assert newest(out)["anna"].verdict.jail == jail.wasm2c_version()
    assert newest(out)["anna"].verdict.total == verdict.total
    assert "not isolated" not in again.table and "not isolated" not in rows(out)["anna"]


def test_a_forged_answer_gains_in_the_jail_what_it_does_not_say_natively(kit):
    """The same code is right natively and wrong in the jail, as after a forgery: not a pass."""
    exercise = Assignment.load(LAB, kit).rubric.exercise("bcast_linear")
    source = FORGED.replace("WRONG", "sizeof(long) == 4")
    verdict = Referee(open_sandbox(slot=9)).judge(exercise, source, blank=False)
    assert verdict.outcomes() == {"ungradable"}
    assert "right when run on Open MPI, but not when run in isolation" in verdict.items[0].reason


def test_an_answer_that_is_wrong_in_two_native_runs_fails_with_their_explanation(kit):
    """A crash on Open MPI alone is tried again in a native simulation."""
    exercise = Assignment.load(LAB, kit).rubric.exercise("bcast_linear")
    source = FORGED.replace("WRONG", "sizeof(long) == 8").replace("return 0;", "abort();")
    verdict = Referee(open_sandbox(slot=9)).judge(exercise, source, blank=False)
    assert verdict.items[0].outcome == "fail"
    assert "SIGABRT in line 7" in verdict.items[0].reason


def part(folder, student, simgrid, jailed="1.0.32"):
    """A folder as `mpilab grade --share` leaves it."""
    item = ItemVerdict("i", "Item", 5.0, "pass", unconfirmed=simgrid == "none")
    exercises = (ExerciseVerdict("ring", "Ring", (item,)),)
    verdict = SubmissionVerdict(student, LAB, exercises, "", "bubblewrap", simgrid, jailed)
    with Gradebook(folder / "gradebook.sqlite") as book:
        book.record(verdict, "key", assignment=f"judged by {simgrid}")
    return folder


def test_shares_that_were_judged_by_two_versions_of_simgrid_are_not_merged(tmp_path):
    folders = [part(tmp_path / "1", "anna", "3.32"), part(tmp_path / "2", "ben", "none")]
    with pytest.raises(
        InputError,
        match="merge: anna in .*1 with SimGrid 3.32 and ben in .*2 "
        "without SimGrid: .*grade one of them again",
    ):
        merge(tmp_path / "all", folders)


def test_shares_that_were_judged_with_and_without_the_jail_are_not_merged(tmp_path):
    folders = [part(tmp_path / "1", "anna", "3.32"), part(tmp_path / "2", "ben", "3.32", "none")]
    told = "merge: anna in .*1 isolated by wasm2c 1.0.32 and ben in .*2 not isolated: all shares"
    with pytest.raises(InputError, match=told):
        merge(tmp_path / "all", folders)
    assert not (tmp_path / "all").exists()


def test_shares_that_were_judged_without_simgrid_are_merged_and_say_so(tmp_path, capsys):
    for number, student in enumerate(("anna", "ben")):
        part(tmp_path / str(number), student, "none")
    assert main(["merge", str(tmp_path / "all"), str(tmp_path / "0"), str(tmp_path / "1")]) == 0
    assert "ring: 2 of 2" in capsys.readouterr().out
    assert rows(tmp_path / "all")["ben"]["not confirmed by simulation"] == "ring"


def test_a_merge_needs_no_simgrid_of_its_own(kit, tmp_path, path_without_simgrid, monkeypatch):
    """The shares were judged on other machines."""
    hand_in(kit, tmp_path / "class", "anna")
    monkeypatch.setenv("PATH", path_without_simgrid)
    here = Assignment.load(LAB, kit)
    assert here.simgrid == "none"
    there = replace(here, simgrid="3.32")
    folder = part(tmp_path / "1", "anna", "3.32")
    with Gradebook(folder / "gradebook.sqlite") as book:
        (run,) = book.runs()
        book.record(run.verdict, run.key, assignment=there.digest)
    done = merge(tmp_path / "all", [folder], submissions=tmp_path / "class", lab=LAB, root=kit)
    assert [each.student for each in done.verdicts] == ["anna"]


def test_a_rubric_is_proved_on_open_mpi_and_what_is_left_is_named(
    capsys, path_without_simgrid, monkeypatch
):
    monkeypatch.setenv("PATH", path_without_simgrid)
    command = ["rubric", "test", LAB, "--exercise", "bcast_linear", "--runs", "1", "--no-progress"]
    assert main(command) == 1
    said = capsys.readouterr().out
    assert "DEVIATION" not in said
    assert (
        "SimGrid is not installed on this machine: properties that need a simulation are not"
    ) in said
    assert "each judged once: 0 deviations on Open MPI, not simulated" in said
