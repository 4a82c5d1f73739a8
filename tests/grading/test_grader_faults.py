"""The grader's own faults: ungradable for the student, a log for the instructor, no marks lost."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from marks_made_up import graded_class
from small_kit import LAB, hand_in, made_kit

from mpilab import diagnosis
from mpilab.cases.case import Case
from mpilab.cli import main
from mpilab.course.manual import MarkingServer
from mpilab.diagnosis import compiler
from mpilab.diagnosis.compiler import diagnose_build, diagnose_warnings
from mpilab.diagnosis.compiler import rules as prototypes
from mpilab.errors import BuildError
from mpilab.grading import grade as grading
from mpilab.grading import inside
from mpilab.grading.gradebook import Gradebook
from mpilab.grading.marks import explain, opened
from mpilab.kernels.build import build
from mpilab.runners.result import CRASH, Result
from mpilab.util import faults

SECRET = "/root/secret/path is broken"
ROOT = Path(__file__).resolve().parents[2]


# Grades like the command, and reports when the Python answer is called.
SLEEPER = """
import pathlib, sys
from dataclasses import replace
from mpilab.grading import referee
from mpilab.grading.grade import grade
from mpilab.util import door

folder, run_job = pathlib.Path(sys.argv[1]), referee.run_job

def told(*arguments, **options):
    (folder / "begun").write_text("begun")
    return run_job(*arguments, **options)

referee.run_job = told
referee.CALL_LIMITS = replace(referee.CALL_LIMITS, wall_seconds=10_000)
sys.exit(door.run("mpilab", lambda: grade(folder / "class", sys.argv[2], folder / "out",
                                          progress=False, root=folder / "kit") and 0))
"""


@pytest.fixture
def logs(tmp_path, monkeypatch):
    """The folder for logs of this test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "mpilab" / "logs"


def fails(*_, **__):
    raise RuntimeError(SECRET)


def graded(tmp_path):
    """A class of one, graded: (Report, the page)."""
    kit = tmp_path / "kit"
    if not kit.exists():
        made_kit(kit)
        hand_in(kit, tmp_path / "class", "anna")
    report = grading.grade(tmp_path / "class", LAB, tmp_path / "out", progress=False, root=kit)
    return report, (tmp_path / "out" / "feedback" / "anna.html").read_text()


def nothing_of_ours(page, logs):
    assert SECRET not in page and "RuntimeError" not in page and "Traceback" not in page
    assert str(logs) not in page


def the_log(report, logs):
    """The only log: the notes for the instructor name it, and it holds the traceback."""
    (path,) = logs.iterdir()
    assert [note for note in report.notes if str(path) in note]
    text = path.read_text()
    assert "Traceback (most recent call last)" in text and SECRET in text
    return path


def test_a_fault_over_an_answer_is_ungradable_and_only_the_instructor_reads_why(
    tmp_path, logs, monkeypatch, capsys
):
    monkeypatch.setattr("mpilab.grading.referee.Referee._function", fails)
    report, page = graded(tmp_path)
    (verdict,) = report.verdicts
    outcomes = {each.exercise: each.items[0].outcome for each in verdict.exercises}
    assert outcomes == {"placement": "ungradable", "bcast_linear": "pass", "by_distance": "manual"}
    reason = verdict.exercises[0].items[0].reason
    assert reason.startswith("the grader failed. Your instructor has been informed")
    assert reason in page
    nothing_of_ours(page, logs)
    log = the_log(report, logs)
    with Gradebook(tmp_path / "out" / "gradebook.sqlite") as book:
        assert str(log) in explain(book, LAB, "anna")
    assert main(["report", str(tmp_path / "out"), "--lab", LAB, "--names"]) == 0
    assert f"anna, placement: the grader failed, see {log}" in capsys.readouterr().out


@pytest.mark.parametrize("part", ["transplant", "mark_view"])
def test_a_fault_over_a_whole_submission_is_ungradable_and_the_next_is_graded(
    tmp_path, logs, monkeypatch, part
):
    if part == "transplant":
        monkeypatch.setattr(grading, "transplant", fails)
        report, page = graded(tmp_path)
        assert report.verdicts[0].status == "ungradable"
        nothing_of_ours(page, logs)
        the_log(report, logs)
        monkeypatch.undo()
        monkeypatch.setenv("XDG_STATE_HOME", str(logs.parents[1]))
        report, _ = graded(tmp_path)
        assert report.graded == ["anna"] and report.verdicts[0].status == "awaiting-manual"
        return
    monkeypatch.setattr("mpilab.grading.feedback.listing", fails)
    report, page = graded(tmp_path)
    assert report.verdicts[0].status == "awaiting-manual"
    assert "Parts of this page could not be generated. Your instructor has been informed" in page
    nothing_of_ours(page, logs)
    the_log(report, logs)


def test_a_notebook_that_the_grader_fails_to_run_costs_no_marks(tmp_path, logs, monkeypatch):
    monkeypatch.setattr(grading, "execute", fails)
    report, page = graded(tmp_path)
    assert report.verdicts[0].status == "awaiting-manual"
    assert "Your notebook could not be run. Your instructor has been informed." in page
    nothing_of_ours(page, logs)
    the_log(report, logs)


class TestAnExplanationThatFails:
    """It never costs the verdict: the plain message of the compiler, or of the run, is reported."""

    @pytest.fixture
    def refused(self, tmp_path):
        with pytest.raises(BuildError) as error:
            build("int a = 1\nint b;\n", tmp_path)
        return error.value

    def test_of_a_compile_error_leaves_the_compilers_words(self, refused, logs, monkeypatch):
        monkeypatch.setattr(compiler, "_causes", fails)
        found = diagnose_build(refused, "int a = 1\nint b;\n")
        assert found.kind == "compile-error"
        assert re.match(r"It does not compile: line \d: expected ", found.headline)
        assert found.lines and SECRET not in str(found)
        assert SECRET in next(logs.iterdir()).read_text()

    def test_of_a_warning_too(self, tmp_path, logs, monkeypatch):
        built = build("static int unused;\n", tmp_path)
        monkeypatch.setattr(compiler, "_causes", fails)
        found = diagnose_warnings(built.warnings, built.source)
        assert found.headline.startswith("It compiles, with a warning: line 1: ")
        assert SECRET in next(logs.iterdir()).read_text()

    def test_without_the_prototypes_of_mpi_a_forgotten_semicolon_still_gets_its_verdict(
        self, tmp_path, logs, monkeypatch
    ):
        monkeypatch.setattr(prototypes, "include_directory", fails)
        for cached in (prototypes.functions, prototypes.constants, prototypes.types):
            cached.cache_clear()
        prototypes.names.cache_clear()
        monkeypatch.setattr(inside, "WORK", tmp_path)
        source = (
            "#include <mpi.h>\nint f(void)\n{\n    MPI_Barier(MPI_COMM_WORLD)\n    return 0;\n}\n"
        )
        inside.compile_answer(
            {"function": "f", "allowed": [], "source": source, "simulated": False}
        )
        said = (tmp_path / "compiled.json").read_text()
        assert "It does not compile: line 4: " in said and SECRET not in said

    def test_of_a_run_leaves_that_it_went_wrong(self, crashed, logs, monkeypatch):
        monkeypatch.setattr(diagnosis, "_first_cause", fails)
        found = diagnosis.explain(crashed)
        assert (found.kind, found.headline) == ("crash", "a rank crashed")
        assert SECRET in next(logs.iterdir()).read_text()

    @pytest.fixture
    def crashed(self):
        return Result(Case("allgather", 2, 1), CRASH, crashed=(0, "SIGSEGV"))


def test_a_fault_in_the_sandbox_is_logged_outside_of_it(tmp_path, logs, monkeypatch):
    monkeypatch.setattr("mpilab.grading.referee.asdict", lambda case: {"no": "case"})
    report, page = graded(tmp_path)
    (verdict,) = report.verdicts
    assert verdict.exercises[1].items[0].outcome == "ungradable"
    assert "Traceback" not in page and "TypeError" not in page and str(ROOT) not in page
    texts = [path.read_text() for path in logs.iterdir()]
    assert any("in the sandbox" in text and "Traceback" in text for text in texts)


def test_a_fault_of_the_marking_page_is_told_to_the_page_in_three_parts(
    tmp_path, logs, monkeypatch, capfd
):
    graded_class(tmp_path / "out")
    monkeypatch.setattr(MarkingServer, "answers", fails)
    with (
        opened(tmp_path / "out", "02-allgather") as book,
        MarkingServer(book, "02-allgather") as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with pytest.raises(HTTPError) as answer:
            urlopen(f"{server.url}answers", timeout=60)
        with urlopen(server.url, timeout=60) as page:  # it continues to serve
            assert page.status == 200
        server.shutdown()
    assert answer.value.code == 500
    told = json.loads(answer.value.read())["error"]
    (log,) = logs.iterdir()
    assert re.fullmatch(
        rf"unexpected RuntimeError: {SECRET}\n  where:  .*\n  remedy: .*\n *{log}", told
    )
    assert "Traceback" in log.read_text()
    assert "Traceback" not in "".join(capfd.readouterr())


def test_a_request_that_ends_early_is_refused_and_is_no_fault(tmp_path, logs, monkeypatch, capfd):
    graded_class(tmp_path / "out")
    monkeypatch.setattr("mpilab.course.manual._Handler.timeout", 0.2)
    with (
        opened(tmp_path / "out", "02-allgather") as book,
        MarkingServer(book, "02-allgather") as server,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        own = {"Origin": server.url.rpartition("/")[0].rpartition("/")[0]}
        headers = {**own, "Content-Type": "application/json", "Content-Length": "100"}
        with pytest.raises(HTTPError) as answer:
            urlopen(Request(f"{server.url}points", b"{", headers), timeout=60)
        server.shutdown()
    assert answer.value.code == 408
    assert "fewer than 100 bytes within 0.2 s" in json.loads(answer.value.read())["error"]
    assert not logs.exists() and "bug" not in "".join(capfd.readouterr())


def test_a_fault_of_the_class_report_is_told_in_three_parts(tmp_path, logs, monkeypatch, capsys):
    graded_class(tmp_path / "out")
    monkeypatch.setattr("mpilab.course.marks._waiting", fails)
    assert main(["report", str(tmp_path / "out"), "--lab", "02-allgather"]) == 1
    said = capsys.readouterr().err
    (log,) = logs.iterdir()
    assert said.startswith(f"mpilab: unexpected RuntimeError: {SECRET}\n  where:  mpilab report")
    assert str(log) in said and "Traceback" not in said


def test_of_many_logs_the_newest_stay(logs):
    for number in range(faults.KEPT + 5):
        faults.keep(f"details {number}", "testing")
    kept = sorted(logs.iterdir())
    assert len(kept) == faults.KEPT
    assert "details 4\n" not in "".join(path.read_text() for path in kept)
    assert f"details {faults.KEPT + 4}\n" in "".join(path.read_text() for path in kept)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_what_runs_in_the_sandbox_and_keeps_what_is_done(tmp_path, number):
    """Also where SIGINT was ignored from the beginning, as in a script's background job."""
    kit = made_kit(tmp_path / "kit")
    answer = "import time\n\ndef placement(*_):\n    time.sleep(1000)\n"
    hand_in(kit, tmp_path / "class", "anna", placement=answer)
    os.mkfifo(tmp_path / "begun")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        process = subprocess.Popen(
            [sys.executable, "-c", SLEEPER, tmp_path, LAB],
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
    finally:
        signal.signal(signal.SIGINT, before)
    with process:
        assert (tmp_path / "begun").read_text() == "begun"
        process.send_signal(number)
        said = process.communicate(timeout=600)[1]
    assert process.returncode == 128 + number, said
    assert "Traceback" not in said and "finished work is kept." in said
    with Gradebook(tmp_path / "out" / "gradebook.sqlite") as book:
        assert book.newest(LAB) == []
