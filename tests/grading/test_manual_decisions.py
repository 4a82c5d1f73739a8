"""Manual decisions are kept beside the verdicts, are never lost, and never apply to another
answer."""

import sqlite3

import pytest
from marks_made_up import LAB, TEXTS, graded_class, hand_in, unreadable, verdict

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.grading import marks
from mpilab.grading.decisions import manual, override
from mpilab.grading.gradebook import Gradebook, effective, run_of
from mpilab.grading.marks import explain, refresh
from mpilab.grading.regrade import merge

# The tables of the previous version, as that mpilab created them.
SCHEMA_2 = """
CREATE TABLE runs (id INTEGER PRIMARY KEY, student TEXT NOT NULL, lab TEXT NOT NULL,
    key TEXT NOT NULL, status TEXT NOT NULL, total REAL, reason TEXT NOT NULL,
    sandbox TEXT NOT NULL, feedback TEXT NOT NULL, seconds REAL, recorded TEXT NOT NULL,
    assignment TEXT NOT NULL DEFAULT '');
CREATE INDEX runs_of_student ON runs (lab, student, id);
CREATE TABLE exercises (run INTEGER NOT NULL REFERENCES runs (id), place INTEGER NOT NULL,
    exercise TEXT NOT NULL, title TEXT NOT NULL, PRIMARY KEY (run, place)) WITHOUT ROWID;
CREATE TABLE items (run INTEGER NOT NULL REFERENCES runs (id), exercise INTEGER NOT NULL,
    place INTEGER NOT NULL, item TEXT NOT NULL, title TEXT NOT NULL, points REAL NOT NULL,
    outcome TEXT NOT NULL, reason TEXT NOT NULL, evidence TEXT NOT NULL,
    PRIMARY KEY (run, exercise, place)) WITHOUT ROWID;
INSERT INTO runs VALUES (1, 'anna', '02-allgather', 'k', 'awaiting-manual', 0, '', 'none', '', 1,
    '2026-01-01T00:00:00.000+00:00', 'a');
INSERT INTO exercises VALUES (1, 0, 'why', 'Why');
INSERT INTO items VALUES (1, 0, 0, 'text', 'Explanation', 8, 'manual', 'A person reads this.',
    '{}');
PRAGMA application_id = 1836083564;
PRAGMA user_version = 2;
"""


@pytest.fixture
def out(tmp_path):
    return graded_class(tmp_path / "out")


def decide(out, student, make, *details):
    """Add the decision `make(run, *details)` about a student; what is kept."""
    with Gradebook(out / "gradebook.sqlite") as book:
        (kept,) = book.decide([make(run_of(book, LAB, student), *details)])
    return kept


def counted(out, student="anna"):
    with Gradebook(out / "gradebook.sqlite") as book:
        return next(each for each in effective(book, LAB) if each.student == student)


def points(out, student="anna"):
    return [each.awarded for each in counted(out, student).exercises]


def test_points_for_free_text_make_the_submission_graded(out):
    assert (counted(out).status, counted(out).total) == ("awaiting-manual", 10)
    decide(out, "anna", manual, "why", "text", 6.5, "See slide 12.")
    decide(out, "anna", manual, "table", "text", 0)
    after = counted(out)
    assert (after.status, after.total, after.points) == ("graded", 16.5, 25)
    assert after.exercises[1].items[0].comment == "See slide 12."
    assert counted(out, "ben").status == "awaiting-manual"
    with Gradebook(out / "gradebook.sqlite") as book:
        assert book.verdicts(LAB)[0].exercises[1].items[0].awarded is None


def test_another_text_waits_again_with_the_old_points_as_a_proposal(out):
    decide(out, "anna", manual, "why", "text", 6.5)
    decide(out, "anna", manual, "table", "text", 7)
    hand_in(out, verdict("anna", "I thought again."))
    after = counted(out)
    assert points(out) == [10, None, 7] and after.status == "awaiting-manual"
    assert after.exercises[1].items[0].proposal == 6.5
    assert (
        "anna: why, text: awaits grading again, the text has changed; it had 6.5 points"
    ) in after.notes[0]
    hand_in(out, verdict("anna", TEXTS["anna"]))
    assert points(out) == [10, 6.5, 7]


def test_points_out_of_range_on_the_wrong_thing_or_of_nobody_are_refused(out):
    with pytest.raises(InputError, match="anna, why, text: 9 points; write 0 to 8"):
        decide(out, "anna", manual, "why", "text", 9)
    with pytest.raises(InputError, match="write 0 to 8"):
        decide(out, "anna", manual, "why", "text", float("nan"))
    with pytest.raises(InputError, match="judged .pass.*mpilab marks override"):
        decide(out, "anna", manual, "ring", "any", 3)
    with pytest.raises(InputError, match="exercise 'rong': not in .*; it has ring, why, table"):
        decide(out, "anna", override, 1, "typo", "rong")
    with pytest.raises(InputError, match="item 'thre': not in exercise ring; it has any, two"):
        decide(out, "anna", override, 1, "typo", "ring", "thre")
    with pytest.raises(InputError, match="'ana': not in the class.*anna"):
        decide(out, "ana", manual, "why", "text", 1)
    with pytest.raises(InputError, match="the override has no reason"):
        decide(out, "anna", override, 1, "  ", "ring")


def test_overrides_of_item_exercise_and_total_count_and_can_be_taken_back(out):
    decide(out, "ben", override, 5, "compiler flag", "ring", "any")
    assert points(out, "ben") == [9, None, None]
    decide(out, "ben", override, 10, "shown in person", "ring")
    assert points(out, "ben") == [10, None, None]
    decide(out, "ben", override, 20, "oral exam")
    assert (counted(out, "ben").total, counted(out, "ben").status) == (20, "graded")
    decide(out, "ben", override, None, "mistaken for Ken")
    decide(out, "ben", override, None, "sorry", "ring")
    assert points(out, "ben") == [9, None, None]
    assert counted(out, "ben").status == "awaiting-manual"


def test_an_override_is_stale_when_its_answer_changes_until_it_is_confirmed(out, capsys):
    decide(out, "ben", override, 5, "compiler flag", "ring", "any")
    decide(out, "ben", override, 8, "read it aloud", "why")
    hand_in(out, verdict("ben", "Another text.", "fail"))
    assert points(out, "ben") == [9, None, None]
    (note,) = counted(out, "ben").notes
    assert "ben: why: stale override to 8 (read it aloud): the answer has changed" in note
    assert main(["marks", "show", str(out), "--lab", LAB]) == 0
    assert f"to be reviewed:\n  {note}" in capsys.readouterr().out
    confirm = ["marks", "confirm", str(out), "--lab", LAB, "--student", "ben"]
    assert main([*confirm, "--exercise", "why"]) == 0
    assert points(out, "ben") == [9, 8, None] and counted(out, "ben").notes == ()
    assert main([*confirm, "--exercise", "table"]) == 1
    assert "ben, table: there is no override to confirm" in capsys.readouterr().err


def test_what_could_not_be_read_is_graded_by_an_override_of_that_file_alone(out):
    hand_in(out, unreadable("lena"))
    assert (counted(out, "lena").status, counted(out, "lena").total) == ("ungradable", None)
    decide(out, "lena", override, 12, "shown on her laptop")
    assert (counted(out, "lena").status, counted(out, "lena").total) == ("graded", 12)
    hand_in(out, verdict("lena", "A text."))
    assert counted(out, "lena").total == 10 and "stale override" in counted(out, "lena").notes[0]


def test_decisions_are_only_added_and_each_says_who_and_when(out, monkeypatch):
    monkeypatch.setenv("LOGNAME", "mueller")
    first = decide(out, "anna", manual, "why", "text", 3)
    second = decide(out, "anna", manual, "why", "text", 4)
    assert first.who == "mueller" and first.decided < second.decided
    with Gradebook(out / "gradebook.sqlite") as book:
        assert book.decisions(LAB) == [first, second]
    with sqlite3.connect(out / "gradebook.sqlite") as database:
        for forbidden in ("UPDATE decisions SET points = 8", "DELETE FROM decisions"):
            with pytest.raises(sqlite3.IntegrityError, match="a decision is never"):
                database.execute(forbidden)
    database.close()


def test_the_decision_made_last_counts_though_the_clock_was_set_back(out):
    decide(out, "anna", manual, "why", "text", 3)
    with sqlite3.connect(out / "gradebook.sqlite") as database:
        database.execute("DROP TRIGGER decisions_stay")
        database.execute("UPDATE decisions SET decided = '2999-01-01T00:00:00.000000+00:00'")
    database.close()
    decide(out, "anna", manual, "why", "text", 4)
    assert points(out) == [10, 4, None]


def test_merging_keeps_the_decisions_of_both_books_and_the_newest_counts(tmp_path):
    one, two = graded_class(tmp_path / "1"), graded_class(tmp_path / "2")
    decide(one, "anna", manual, "why", "text", 3, "first reader")
    decide(one, "ben", override, 6, "compiler flag", "ring", "any")
    decide(two, "anna", manual, "why", "text", 5, "second reader")
    for order in ([one, two], [two, one]):
        out = tmp_path / f"all {order[0].name}"
        merge(out, order)
        merge(out, order)
        assert points(out) == [10, 5, None] and points(out, "ben") == [10, None, None]
        with Gradebook(out / "gradebook.sqlite") as book:
            assert len(book.decisions(LAB)) == 3
        assert "anna,02-allgather,10,5,,15," in (out / "grades.csv").read_text()
        page = (out / "feedback" / "anna.html").read_text(encoding="utf-8")
        assert "second reader" in page and "first reader" not in page
    # Decisions on the merged gradebook remain when a share is merged again.
    decide(out, "anna", manual, "why", "text", 8, "third reader")
    merge(out, [one, two])
    assert points(out) == [10, 8, None]


def test_who_has_no_verdict_stays_on_the_list_when_marks_are_written_again(out):
    with Gradebook(out / "gradebook.sqlite") as book:
        book.list_class(LAB, {"anna": "", "cleo": "the job failed", "dora": "the job failed"})
        verdicts, _ = refresh(book, LAB, out)
        with pytest.raises(
            InputError, match="'cleo': the submission has no verdict.*the job failed"
        ):
            run_of(book, LAB, "cleo")
        assert "the current status is: ungradable. the job failed" in explain(book, LAB, "cleo")
    assert [(each.student, each.status) for each in verdicts] == [
        ("cleo", "ungradable"),
        ("dora", "ungradable"),
        ("anna", "awaiting-manual"),
    ]
    assert [line.split(",")[0] for line in (out / "grades.csv").read_text().splitlines()[1:]] == [
        "cleo",
        "dora",
        "anna",
    ]
    assert verdicts[1].points == 25


def test_what_somebody_else_decides_meanwhile_is_in_the_csv_of_whoever_writes_last(
    out, monkeypatch
):
    write_csv, written = marks.write_csv, []

    def write_late(verdicts, path, exercises):
        if not written:  # between our reading and our writing
            decide(out, "anna", manual, "why", "text", 8, "somebody else")
        written.append(path)
        write_csv(verdicts, path, exercises)

    monkeypatch.setattr(marks, "write_csv", write_late)
    with Gradebook(out / "gradebook.sqlite") as book:
        refresh(book, LAB, out)
    assert len(written) == 2 and points(out) == [10, 8, None]
    assert "anna,02-allgather,10,8,," in (out / "grades.csv").read_text()


def test_a_gradebook_of_schema_2_is_upgraded_and_its_marks_stay(tmp_path):
    path = tmp_path / "gradebook.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(SCHEMA_2)
    database.close()
    with Gradebook(path) as book:
        (run,) = book.runs()
        assert (run.submission, run.assignment, run.verdict.exercises[0].answer) == ("", "a", None)
        assert effective(book, LAB)[0].status == "awaiting-manual"
        book.decide([manual(run, "why", "text", 5)])
    with Gradebook(path) as book:
        assert effective(book, LAB)[0].total == 5
        # A student who submits again has a known text, which is not the one that was marked.
        hand_in(tmp_path, verdict("anna", "Known."))
        assert effective(book, LAB)[0].exercises[1].items[0].proposal == 5


def test_a_total_set_by_hand_is_not_made_less_by_lateness(out, tmp_path):
    times = tmp_path / "times.csv"
    times.write_text("student,time\nben,2026-11-21T10:00\n")
    assert (
        main(
            [
                "marks",
                "late",
                str(out),
                "--lab",
                LAB,
                "--due",
                "2026-11-20T23:59",
                "--per-day",
                "10%",
                "--times",
                str(times),
            ]
        )
        == 0
    )
    assert (counted(out, "ben").penalty, counted(out, "ben").total) == (0.4, 3.6)
    decide(out, "ben", override, 20, "oral exam")
    assert (counted(out, "ben").penalty, counted(out, "ben").total) == (0, 20)
