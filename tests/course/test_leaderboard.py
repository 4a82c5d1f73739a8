"""A class on the leaderboard: answers from a gradebook, simulated in the sandbox."""

import csv
from pathlib import Path

import pytest

from mpilab.cli import main
from mpilab.course import leaderboard
from mpilab.errors import InputError, Ungradable
from mpilab.grading.gradebook import Gradebook
from mpilab.grading.proving import bugs_of
from mpilab.grading.release import solutions
from mpilab.judging import rubric
from mpilab.judging.verdict import FAIL, PASS, ExerciseVerdict, ItemVerdict, SubmissionVerdict

# A class is graded in a fixture, with other tests beside it.
pytestmark = pytest.mark.timeout(1500)

LAB = "06-tune-and-scale"
ROOT = Path(__file__).resolve().parents[2]
RUBRIC = rubric.load(ROOT / "grading" / LAB / "rubric.toml")
# Like the lab's own file, with less to simulate.
BOARD = """
exercise = "own"
than = "bcast_node_group"
platforms = ["groups-2x2x2 rr", "four-groups rr"]
counts = [16, 65536]
roots = [0, -1]
"""


def verdict(student, source, failed=()):
    """The referee's verdict on an answer to `own`: it failed these items."""
    items = tuple(
        ItemVerdict(
            item.id,
            item.title,
            item.points,
            FAIL if item.id in failed else PASS,
            "it is wrong there" if item.id in failed else "",
        )
        for item in RUBRIC.exercise("own").items
    )
    return SubmissionVerdict(student, LAB, (ExerciseVerdict("own", "own", items, answer=source),))


@pytest.fixture(scope="module")
def graded(tmp_path_factory):
    """A folder with a gradebook: ada's answer is good, ben's a tree, cleo's is wrong, and dan's is
    wrong in cases that the rubric does not contain."""
    out = tmp_path_factory.mktemp("graded")
    good = solutions(ROOT / "labs" / "source" / f"{LAB}.py")["own"]
    bugs = {bug.name: bug.source for bug in bugs_of(LAB, RUBRIC)}
    with Gradebook(out / "gradebook.sqlite") as book:
        for number, one in enumerate(
            (
                verdict("ben", bugs["own-never-cut.c"], ("pipelined", "slow-links")),
                verdict("ada", good),
                verdict("cleo", bugs["own-last-piece-is-lost.c"], ("long",)),
                verdict("dan", bugs["own-lowest-rank-leads.c"]),
            )
        ):
            book.record(one, f"key {number}")
    return out


@pytest.fixture
def board(monkeypatch, tmp_path):
    """The lab, with the board above."""
    folder = tmp_path / "grading" / LAB
    folder.mkdir(parents=True)
    (folder / "leaderboard.toml").write_text(BOARD)
    for name in ("rubric.toml", "answers.py"):
        (folder / name).symlink_to(ROOT / "grading" / LAB / name)
    read = leaderboard.load
    monkeypatch.setattr(leaderboard, "load", lambda lab: read(lab, tmp_path))
    return folder / "leaderboard.toml"


@pytest.mark.slow
def test_a_class_is_ranked_by_simulated_time_and_wrong_answers_are_not(graded, board, capsys):
    assert main(["leaderboard", LAB, str(graded), "--names", "--no-progress"]) == 0
    printed = capsys.readouterr().out
    with open(graded / "leaderboard.csv", newline="") as file:
        _, *rows = csv.reader(file)
    assert [row[:2] for row in rows] == [["1", "ada"], ["2", "ben"], ["", "cleo"], ["", "dan"]]
    assert float(rows[0][2]) > 1.2 and float(rows[1][2]) < float(rows[0][2])
    assert len(rows[0]) == 3 + 4 + 1 and all(float(one) > 0 for one in rows[0][3:7])
    assert "it is wrong there" in rows[2][-1]
    assert "simulated on" in rows[3][-1] and "wrong result" in rows[3][-1]
    assert printed.splitlines()[1].split()[:2] == ["1", "ada"]
    page = (graded / "leaderboard.html").read_text()
    assert "<link" not in page and "src=" not in page and "Not ranked" in page

    first = (graded / "leaderboard.csv").read_bytes()
    assert main(["leaderboard", LAB, str(graded), "--no-progress"]) == 0
    named = capsys.readouterr().out
    anonymous = (graded / "leaderboard.csv").read_text()
    for student in ("ada", "ben", "cleo", "dan"):
        assert student not in named and student not in anonymous
        assert student not in (graded / "leaderboard.html").read_text()
    # Simulated times are the same every time.
    assert anonymous.split(",", 2)[0] == first.decode().split(",", 2)[0]
    assert [line.split(",")[2:7] for line in anonymous.splitlines()[1:3]] == [
        line.split(",")[2:7] for line in first.decode().splitlines()[1:3]
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('than = "bcast_node_group"\n', "", "'than' is missing"),
        ("counts", "sizes", "is unknown"),
        ('"own"', '"crossover"', "only one kernel can be timed"),
        ("groups-2x2x2 rr", "groups-2x2", "groups-4x4x8"),
        ("[16, 65536]", "[]", "no case in it"),
    ],
)
def test_a_board_that_makes_no_sense_is_told(board, old, new, words):
    board.write_text(BOARD.replace(old, new))
    with pytest.raises(InputError, match=r"leaderboard\.toml") as told:
        leaderboard.load(LAB)
    assert words in str(told.value)


def test_a_lab_without_a_board_is_told():
    with pytest.raises(InputError, match="has no leaderboard"):
        leaderboard.load("02-allgather")


def test_cells_that_a_spreadsheet_would_run_are_quoted(tmp_path):
    board = leaderboard.Board("Topology", None, "bcast_node_group", {}, frozenset())
    entry = leaderboard.Entry("=1+1", None, {}, "-2 is not a rank")
    leaderboard.write_csv([entry], {"=1+1": "=1+1"}, board, tmp_path / "board.csv")
    assert "\n,'=1+1,,'-2 is not a rank\n" in (tmp_path / "board.csv").read_text()


@pytest.mark.parametrize(
    ("taken", "words"),
    [
        (0.0, "it took 0 s, which is impossible"),
        (-1e-6, "which is impossible"),
        (float("nan"), "it took nan s, which is impossible"),
        (float("inf"), "which is impossible"),
        (ZeroDivisionError("float division by zero"), "could not be timed"),
        (Ungradable("the compiled answer did not come out", "\x1b[31m/root"), "did not come out"),
    ],
)
def test_one_answer_whose_time_is_odd_ends_nobody_else_s_place(taken, words, monkeypatch, tmp_path):
    board = leaderboard.load(LAB)

    def times(board, source, sandbox):
        if "odd" not in source:
            return dict.fromkeys(board.points, 1e-4)
        if isinstance(taken, Exception):
            raise taken
        return dict.fromkeys(board.points, taken)

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # the location of the log of a fault
    monkeypatch.setattr(leaderboard, "times", times)
    monkeypatch.setattr(leaderboard.agreement, "kernel_ns", lambda than, case: 200_000)
    odd = "o\x1b[2J\ndd\u202e<b>"
    verdicts = [verdict(odd, "/* odd */"), verdict("ada", "int x;")]
    entries = leaderboard.rank(board, verdicts, None)
    assert [(one.student, one.score) for one in entries] == [
        ("ada", pytest.approx(2.0)),
        (odd, None),
    ]
    assert words in entries[1].reason
    names = {one.student: one.student for one in entries}
    text = leaderboard.as_text(entries, names, board)
    assert "o dd" in text and len(text.splitlines()) == 3
    page = leaderboard.page(entries, names, board, "Topology")
    leaderboard.write_csv(entries, names, board, tmp_path / "board.csv")
    for shown in (text, page, (tmp_path / "board.csv").read_text(encoding="utf-8")):
        assert "\x1b" not in shown and "\u202e" not in shown
    assert "<b>" not in page


def test_nicknames_differ_and_stay():
    students = [f"student{number}" for number in range(300)]
    names = leaderboard.nicknames(students, LAB)
    assert len(set(names.values())) == 300
    assert names == leaderboard.nicknames(students[::-1], LAB)
    assert names != leaderboard.nicknames(students, "another lab")
