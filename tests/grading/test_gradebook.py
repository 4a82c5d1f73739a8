"""The gradebook survives everything but a disk failure, and prints the same text each time."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from mpilab.diagnosis.model import DEADLOCK, Diagnosis, Place, Table
from mpilab.errors import InputError
from mpilab.grading.gradebook import Gradebook, key
from mpilab.grading.marks import mark_table, points, write_csv
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

LAB = "02-allgather"
ROOT = Path(__file__).parents[2]


def verdict(student="anna", *outcomes, reason="", worth=7.5, lab=LAB):
    items = tuple(
        ItemVerdict(f"i{n}", f"Item {n}", worth, outcome, "why" * (outcome != "pass"))
        for n, outcome in enumerate(outcomes)
    )
    exercises = (ExerciseVerdict("ring", "Ring", items),) if items else ()
    return SubmissionVerdict(student, lab, exercises, reason, "bubblewrap")


@pytest.fixture
def book(tmp_path):
    with Gradebook(tmp_path / "out" / "gradebook.sqlite") as opened:
        yield opened


def test_a_verdict_comes_back_exactly_as_it_was_recorded(book):
    evidence = {
        "ranks": 3,
        "shape": (3, (1, 2)),
        "table": [{"rank": 0, "call": "MPI_Recv"}],
        "raw": b"\0\xff",
        "by rank": {0: 1.5, "$dict": None},
        "text": "a\nb \ud800 ü",
        "infinite": float("inf"),
        "_seed": 7,
    }
    diagnosis = Diagnosis(
        DEADLOCK,
        "ranks 0 and 1 wait \ud800",
        places=(Place(3, "MPI_Recv(…);", "both wait here", 5),),
        cycle=(0, 1),
        tables=(Table("calls", ("rank", "call"), ((0, "MPI_Recv"), (1, ""))),),
        printed=((1, "here\n"),),
    )
    item = ItemVerdict("any", "Any P", 12, "fail", "P = 3", evidence, False, (diagnosis,))
    given = SubmissionVerdict(
        "Zoë",
        LAB,
        (
            ExerciseVerdict("ring", "Ring", (item, ItemVerdict("m", "M", 0.1, "manual"))),
            ExerciseVerdict("none", "No items", ()),
            ExerciseVerdict("last", "Last", (item,)),
        ),
        "a reason",
        "bubblewrap",
    )
    book.record(given, "k", feedback=Path("feedback/Zoë.html"), seconds=1.5)
    assert book.find("Zoë", "k") == given
    run = book.find_run("Zoë", "k")
    assert (run.feedback, run.seconds, run.key) == ("feedback/Zoë.html", 1.5, "k")
    assert run.recorded.endswith("+00:00")


def test_numpy_values_and_paths_in_the_evidence_come_back_as_plain_ones(book):
    evidence = {"got": np.array([1, 2]), "rank": np.int32(3), "file": Path("a.c")}
    item = ItemVerdict("a", "A", 1, "fail", "no", evidence)
    book.record(SubmissionVerdict("anna", LAB, (ExerciseVerdict("e", "E", (item,)),)), "k")
    found = book.find("anna", "k").exercises[0].items[0].evidence
    assert found == {"got": [1, 2], "rank": 3, "file": "a.c"}


def test_only_the_same_student_and_key_find_a_verdict(book):
    book.record(verdict("anna", "pass"), "k1")
    assert book.find("anna", "k1") == verdict("anna", "pass")
    assert book.find("anna", "k2") is None and book.find("ben", "k1") is None


def test_a_regrade_keeps_the_history_and_the_newest_counts(book):
    book.record(verdict("anna", "fail"), "k1")
    book.record(verdict("ben", "fail"), "k1")
    book.record(verdict("anna", "pass"), "k2")
    book.record(verdict("anna", "pass", lab="03-other"), "k3")
    assert book.verdicts(LAB) == [verdict("anna", "pass"), verdict("ben", "fail")]
    assert [run.key for run in book.history("anna", LAB)] == ["k2", "k1"]


def test_going_back_to_an_older_file_is_graded_again_so_that_the_newest_run_counts(book):
    book.record(verdict("anna", "pass"), "first")
    book.record(verdict("anna", "fail"), "second")
    assert book.find("anna", "first") is None
    book.record(verdict("anna", "pass"), "first")
    assert book.find("anna", "first") == book.verdicts(LAB)[0] == verdict("anna", "pass")


def test_the_key_changes_with_every_part_and_with_where_parts_end():
    keys = {key("ab", "c"), key("a", "bc"), key("abc"), key("ab", "d"), key("ab", "c", "1")}
    assert len(keys) == 5 and key(b"ab", "c") == key("ab", "c")


def test_what_was_recorded_is_there_for_the_next_grader(tmp_path):
    path = tmp_path / "g.sqlite"
    with Gradebook(path) as book:
        book.record(verdict("anna", "pass"), "k")
    with Gradebook(path) as book:
        assert book.find("anna", "k") == verdict("anna", "pass")


def test_several_threads_may_record_at_once(book):
    threads = [
        threading.Thread(target=lambda n=n: book.record(verdict(f"s{n}", "pass"), "k"))
        for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.student for each in book.verdicts(LAB)] == [f"s{n}" for n in range(8)]


def test_a_verdict_that_cannot_be_stored_leaves_no_half_of_itself(book):
    book.record(verdict("anna", "pass"), "k")
    broken = SubmissionVerdict(
        "anna",
        LAB,
        (ExerciseVerdict("ring", "Ring", (ItemVerdict("a", "A", 1, "pass", reason=object()),)),),
    )
    with pytest.raises(InputError):
        book.record(broken, "k2")
    assert [run.key for run in book.history("anna", LAB)] == ["k"]


KILLED = """
import os, signal, sys
from mpilab.grading.gradebook import Gradebook
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

path, fatal = sys.argv[1], int(sys.argv[2])
items = tuple(ItemVerdict(f"i{n}", "", 1, "pass") for n in range(2))
with Gradebook(path) as book:
    statements = 0
    def trace(statement):
        global statements
        statements += 1
        if statements == fatal:
            os.kill(os.getpid(), signal.SIGKILL)
    book._database.set_trace_callback(trace)
    book.record(SubmissionVerdict("anna", "lab", (ExerciseVerdict("e", "E", items),)), "new")
print("done")
"""


def test_a_grader_killed_before_any_statement_leaves_the_whole_verdict_or_none(tmp_path):
    """BEGIN, run, exercise, two items, COMMIT: killed before each, then not at all."""
    outcomes = []
    for fatal in range(1, 8):
        path = tmp_path / f"{fatal}.sqlite"
        old = SubmissionVerdict("anna", "lab", ())
        with Gradebook(path) as book:
            book.record(old, "old")
        end = subprocess.run(
            [sys.executable, "-c", KILLED, path, str(fatal)],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        with Gradebook(path) as book:
            (newest,) = book.verdicts("lab")
            keys = [run.key for run in book.history("anna", "lab")]
            book.record(old, "again")
        outcomes.append((end.returncode, keys))
        assert len(newest.exercises) == len(keys) - 1
        assert not newest.exercises or len(newest.exercises[0].items) == 2
    assert outcomes == [(-signal.SIGKILL, ["old"])] * 6 + [(0, ["new", "old"])]


OPEN = """
import sys
from mpilab.grading.gradebook import Gradebook
for line in sys.stdin:
    with Gradebook(line.strip()):
        print("open", flush=True)
"""


def test_a_new_gradebook_may_be_opened_by_two_graders_at_the_same_moment(tmp_path):
    graders = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for _ in range(2)
    ]
    for number in range(60):  # without the wait, every third or so of these failed
        for grader in graders:
            grader.stdin.write(f"{tmp_path / str(number)}\n")
            grader.stdin.flush()
        for grader in graders:
            assert grader.stdout.readline() == "open\n", grader.communicate()[1]
    for grader in graders:
        assert grader.communicate()[1] == ""


def test_every_change_gives_the_gradebook_another_version_whoever_makes_it(book):
    with Gradebook(book.path) as other:
        versions = [book.version()]
        book.record(verdict("anna", "pass"), "k1")
        versions.append(book.version())
        other.record(verdict("ben", "pass"), "k2")
        versions.append(book.version())
        other.list_class(LAB, {"anna": "", "ben": ""})
        versions.append(book.version())
    assert len(set(versions)) == 4
    book.decisions(LAB)
    assert book.version() == versions[-1]


def test_a_damaged_gradebook_is_named_with_what_to_do(tmp_path):
    path = tmp_path / "g.sqlite"
    path.write_bytes(b"no database " * 100)
    with pytest.raises(InputError, match="damaged.*move it and grade again"), Gradebook(path):
        pass
    path.unlink()
    with Gradebook(path) as book:
        for n in range(40):
            book.record(verdict(f"s{n}", "pass"), "k" * 200)
    data = bytearray(path.read_bytes())
    data[2 * 4096 : -4096] = os.urandom(len(data) - 3 * 4096)
    path.write_bytes(data)
    with pytest.raises(InputError, match="damaged.*move it and grade again"), Gradebook(path):
        pass


def test_a_foreign_database_is_refused_and_left_as_it_was(tmp_path):
    path = tmp_path / "photos.sqlite"
    with sqlite3.connect(path) as foreign:
        foreign.execute("CREATE TABLE photos (id)")
    foreign.close()
    before = path.read_bytes()
    with pytest.raises(InputError, match="not a gradebook of mpilab"), Gradebook(path):
        pass
    assert path.read_bytes() == before


def test_a_gradebook_of_a_newer_mpilab_is_refused_with_both_versions(tmp_path):
    path = tmp_path / "g.sqlite"
    with Gradebook(path):
        pass
    with sqlite3.connect(path) as newer:
        newer.execute("PRAGMA user_version = 8")
    newer.close()
    with pytest.raises(InputError, match="version 8.*reads version 6"), Gradebook(path):
        pass


def test_a_locked_gradebook_says_that_another_program_writes(tmp_path):
    path = tmp_path / "g.sqlite"
    with Gradebook(path, wait=0.05) as book:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(InputError, match="another program has been writing.*0.05 s"):
            book.record(verdict("anna", "pass"), "k")
        assert book.find("anna", "k") is None
        other.execute("COMMIT")
        other.close()
        book.record(verdict("anna", "pass"), "k")
        assert book.find("anna", "k") is not None


def test_a_gradebook_that_cannot_be_opened_names_its_path(tmp_path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "g.sqlite"):
        with pytest.raises(InputError, match="can't be opened or written"), Gradebook(path):
            pass


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (12.0, "12"),
        (7.5, "7.5"),
        (0, "0"),
        (-0.0, "0"),
        (0.1 + 0.2, "0.3"),
        (100, "100"),
        (None, ""),
    ],
)
def test_points_are_printed_in_their_shortest_form(value, text):
    assert points(value) == text


def test_the_csv_lists_the_ungradable_first_and_is_the_same_bytes_whatever_the_order(tmp_path):
    given = [
        verdict("zoe", "pass", "pass"),
        verdict("ben", "ungradable", "pass"),
        verdict("anna", "fail", "pass"),
        verdict("=cmd()", "pass"),
        verdict("mia, m", "manual", "pass"),
        verdict("tom", reason="no notebook"),
    ]
    expected = (
        "student,lab,ring,essay,total,status\n"
        "ben,02-allgather,,,,ungradable\n"
        "tom,02-allgather,,,,ungradable\n"
        "'=cmd(),02-allgather,7.5,,7.5,graded\n"
        "anna,02-allgather,7.5,,7.5,graded\n"
        '"mia, m",02-allgather,,,0,awaiting-manual\n'
        "zoe,02-allgather,15,,15,graded\n"
    )
    for order in (given, given[::-1]):
        write_csv(order, tmp_path / "grades.csv", {"ring": 15, "essay": 5})
        assert (tmp_path / "grades.csv").read_bytes() == expected.encode()
    assert [path.name for path in tmp_path.iterdir()] == ["grades.csv"]


@pytest.mark.parametrize("sign", "=+-@")
def test_a_name_that_a_spreadsheet_would_calculate_is_made_text(tmp_path, sign):
    write_csv([verdict(f"{sign}A1", "pass")], tmp_path / "g.csv", ["ring"])
    assert f"\n'{sign}A1,02-allgather" in (tmp_path / "g.csv").read_text()


def test_a_csv_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "g.csv"
    write_csv([verdict("anna", "pass")], path, ["ring"])
    before = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_csv([verdict("ben", "pass")], path, ["ring"])
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["g.csv"]


def test_the_mark_table_is_aligned_and_gives_the_reasons_below():
    table = mark_table(
        [
            verdict("李明", "pass", "fail"),
            verdict("annabella", "ungradable", "pass"),
            verdict("tom\x1b[2J", reason="not\nvalid JSON"),
        ],
        {"ring": 15, "essay": 2.5},
    )
    assert table == (
        "student    ring  essay  total  status\n"
        "            /15   /2.5  /17.5\n"
        "---------  ----  -----  -----  ----------\n"
        "annabella     -      -      -  ungradable\n"
        "tom\ufffd[2J       -      -      -  ungradable\n"
        "李明        7.5      -    7.5  graded\n"
        "\n"
        "ungradable:\n"
        "  annabella: ring: why\n"
        "  tom\ufffd[2J: not valid JSON"
    )


def test_the_mark_table_takes_the_points_from_the_verdicts_where_it_gets_only_names():
    assert "/15" in mark_table([verdict("anna", "pass", "fail")], ["ring"]).splitlines()[1]
