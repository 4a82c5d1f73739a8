"""Marks for other programs: all of them, with manual decisions, and never a zero for a missing
mark."""

import csv
import json
import re
import subprocess
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from class_made_up import LAB, class_in, verdict

from mpilab.cli import main
from mpilab.cli.course import TARGETS
from mpilab.course import export as exporting
from mpilab.course.manual import Rule, decide
from mpilab.course.marks import class_marks
from mpilab.diagnosis.model import Diagnosis
from mpilab.grading.decisions import manual, override
from mpilab.grading.gradebook import Gradebook
from mpilab.judging.verdict import BLANK

DUE = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.fixture
def out(tmp_path):
    """anna 15, ben 7.5 (half for the essay, 25 % late), cleo 0, =dan 13 by hand: all final."""
    folder = class_in(
        tmp_path / "out",
        verdict("anna", ["pass"] * 3),
        verdict("ben", ["fail", "pass", "manual"], {"any-size": "It <b>hangs</b>."}),
        verdict("cleo", ["fail"] * 3),
        verdict("=dan", ["pass", "pass", "fail"]),
    )
    with Gradebook(folder / "gradebook.sqlite") as book:
        runs = {run.verdict.student: run for run in book.newest(LAB)}
        book.decide(
            [
                manual(runs["ben"], "essay", "text", 5.0, "well put"),
                override(runs["=dan"], 13.0, "agreed on in class"),
            ]
        )
        rule = Rule(DUE, per_day=0.25)
        times = {"ben": DUE + timedelta(hours=1)}
        book.decide(decide(book, LAB, times, rule))
    return folder


@pytest.fixture
def unfinished(out):
    """The same, and two who have no final mark."""
    return class_in(
        out,
        verdict("eva", ["ungradable"] * 3, {}, "not valid JSON"),
        verdict("finn", ["pass", "pass", "manual"]),
    )


TOTALS = {"anna": "15", "ben": "7.5", "cleo": "0", "=dan": "13"}


def export(out, target, *arguments):
    return main(["export", str(out), "--lab", LAB, "--to", target, *map(str, arguments)])


def rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("target", TARGETS)
def test_without_a_final_mark_nothing_is_exported_and_everybody_is_named(
    target, unfinished, tmp_path, capsys
):
    # Canvas's own file is requested first, and read after the marks.
    needed = ("--template", "gradebook.csv", "--column", "Lab 2") if target == "canvas" else ()
    if target == "research":
        needed = ("--consent", consents(tmp_path, *TOTALS, "eva", "finn"))
    before = sorted(unfinished.rglob("*"))
    assert export(unfinished, target, *needed) == 1
    said = capsys.readouterr().err
    assert "2 of 6 students have no final mark" in said and "--partial" in said
    assert "  eva: ungradable: not valid JSON\n  finn: awaiting manual grading: essay" in said
    assert sorted(unfinished.rglob("*")) == before


def test_the_csv_has_everything_and_no_formula(unfinished, capsys):
    assert export(unfinished, "csv", "--partial") == 0
    assert rows(unfinished / "marks.csv") == [
        [
            "student",
            "lab",
            "ring",
            "essay",
            "before penalty",
            "penalty",
            "total",
            "out of",
            "status",
        ],
        ["'=dan", LAB, "10", "0", "13", "0", "13", "15", "graded"],
        ["anna", LAB, "10", "5", "15", "0", "15", "15", "graded"],
        ["ben", LAB, "5", "5", "10", "2.5", "7.5", "15", "graded"],
        ["cleo", LAB, "0", "0", "0", "0", "0", "15", "graded"],
        ["eva", LAB, "", "", "", "", "", "15", "ungradable"],
        ["finn", LAB, "10", "", "", "", "", "15", "awaiting-manual"],
    ]


def test_moodles_grade_import_takes_identifiers_from_a_roster(unfinished, tmp_path, capsys):
    known = ("anna;a@x.org", "ben;b@x.org", "'=dan;d@x.org", "eva;e@x.org", "finn;f@x.org")
    roster = write(tmp_path / "roster.csv", "\n".join(["student;Email address", *known]))
    status = export(
        unfinished,
        "moodle",
        "--partial",
        "--roster",
        roster,
        "--id-column",
        "Email address",
        "--column",
        "Lab 2",
    )
    assert status == 1 and "NOT EXPORTED, no identifier or row: cleo" in capsys.readouterr().err
    assert rows(unfinished / "moodle.csv") == [
        ["Email address", "Lab 2"],
        ["d@x.org", "13"],
        ["a@x.org", "15"],
        ["b@x.org", "7.5"],
        ["e@x.org", ""],
        ["f@x.org", ""],
    ]
    twice = write(tmp_path / "twice.csv", "student,username\nanna,a\nben,a\n")
    assert export(unfinished, "moodle", "--partial", "--roster", twice) == 1
    assert "username a: several students have it" in capsys.readouterr().err


def test_a_moodle_worksheet_is_filled_by_the_number_in_the_name_of_the_download(
    unfinished, tmp_path, capsys
):
    header = (
        "Identifier,Full name,Email address,Status,Grade,Maximum Grade,Last modified (grade),"
        "Feedback comments\n"
    )
    sheet = write(
        tmp_path / "sheet.csv",
        header
        + "".join(
            f'Participant {number},"{name}",,Submitted,,{most},-,\n'
            for number, name, most in (
                (11, "Anna A.", "15.00"),
                (12, "Ben", "15.00"),
                (15, "eva", "15.00"),
                (19, "Zoe", "15.00"),
            )
        ),
    )
    roster = write(tmp_path / "submissions.csv", "student,time,late,id,source\nanna,,,11,x\n")
    target = tmp_path / "filled.csv"
    status = export(
        unfinished, "moodle", "--partial", "--template", sheet, "--roster", roster, "-o", target
    )
    said = capsys.readouterr().err
    assert status == 1 and "no mark for the row of: Participant 19" in said
    assert [line.rpartition(" ")[2] for line in said.splitlines() if "NOT EXPORTED" in line] == [
        "=dan",
        "cleo",
        "finn",
    ]
    assert [(row[0], row[4]) for row in rows(target)] == [
        ("Identifier", "Grade"),
        ("Participant 11", "15"),
        ("Participant 12", "7.5"),
        ("Participant 15", ""),
    ]


def test_a_moodle_worksheet_may_hold_long_texts_that_were_typed_into_moodle(out, tmp_path):
    sheet = write(
        tmp_path / "sheet.csv",
        "Identifier,Full name,Grade,Last modified (grade),Online text\n"
        f"Participant 1,anna,,-,{'long ' * 40_000}\n",
    )
    assert export(out, "moodle", "--template", sheet) == 1
    assert rows(out / "moodle.csv")[1][:3] == ["Participant 1", "anna", "15"]


CANVAS = (
    "Student,ID,SIS User ID,SIS Login ID,Section,Quiz (11),Lab 2 (22),Current Score\n"
    ",,,,,Manual Posting,,(read only)\n"
    "    Points Possible,,,,,10,{most},(read only)\n"
    '"An, Na",501,007,anna,A,9,,90\n'
    '"B, Ben",502,008,ben,A,8,,80\n'
    '"Cle, O",503,009,c.o,A,7,99,70\n'
    '"Dan, Eq",504,-010,=dan,A,6,,60\n'
    '"Eva",505,011,e,A,5,,50\n'
    '"Student, Test",599,,,A,,,\n'
)


def test_a_canvas_gradebook_gets_one_column_and_loses_nobodys_identity(
    unfinished, tmp_path, capsys
):
    template = write(tmp_path / "canvas.csv", CANVAS.format(most=15))
    status = export(unfinished, "canvas", "--partial", "--template", template, "--column", "Lab 2")
    said = capsys.readouterr().err
    assert status == 1 and "NOT EXPORTED, no identifier or row: finn" in said
    assert "no mark for the row of: Student, Test" in said
    assert rows(unfinished / "canvas.csv") == [
        ["Student", "ID", "SIS User ID", "SIS Login ID", "Section", "Lab 2 (22)"],
        ["", "", "", "", "", ""],
        ["    Points Possible", "", "", "", "", "15"],
        ["An, Na", "501", "007", "anna", "A", "15"],
        ["B, Ben", "502", "008", "ben", "A", "7.5"],
        ["Cle, O", "503", "009", "c.o", "A", "0"],
        ["Dan, Eq", "504", "-010", "=dan", "A", "13"],
        ["Eva", "505", "011", "e", "A", ""],
    ]


@pytest.mark.parametrize(
    ("most", "arguments", "words"),
    [
        (
            10,
            ["--column", "Lab 2"],
            "gives 10 points for this assignment, but 77-made-up is worth 15",
        ),
        (15, ["--column", "Lab 3"], "column 'Lab 3': there is none; write one of Quiz (11), Lab 2"),
        (15, ["--column", "Section"], "column 'Section': there is none"),
        (15, ["--column", "Lab 2", "--match", "Login"], "no column 'Login'"),
        (15, [], "--to canvas: export the gradebook of the course from Canvas"),
    ],
)
def test_what_canvas_would_take_wrongly_is_refused(most, arguments, words, out, tmp_path, capsys):
    template = write(tmp_path / "canvas.csv", CANVAS.format(most=most))
    assert export(out, "canvas", "--template", template, *arguments) == 1
    assert words in capsys.readouterr().err and not (out / "canvas.csv").exists()


def test_marks_are_scaled_and_rows_that_fit_two_are_refused(out, tmp_path, capsys):
    template = write(tmp_path / "canvas.csv", CANVAS.format(most=10))
    assert export(out, "canvas", "--template", template, "--column", "Lab 2", "--scale") == 0
    assert [row[-1] for row in rows(out / "canvas.csv")[3:]] == ["10", "5", "0", "8.67"]
    template.write_text(CANVAS.format(most=15).replace("Eva", "anna"))
    assert export(out, "canvas", "--template", template, "--column", "Lab 2") == 1
    assert "2 rows match the student 'anna'; name the column" in capsys.readouterr().err
    assert (
        export(
            out, "canvas", "--template", template, "--column", "Lab 2", "--match", "SIS Login ID"
        )
        == 1
    )
    assert "NOT EXPORTED, no identifier or row: cleo" in capsys.readouterr().err


@pytest.mark.parametrize("most", ["", "1,000.00"])
def test_marks_cannot_be_scaled_to_a_maximum_that_is_no_number(most, out, tmp_path, capsys):
    template = write(tmp_path / "canvas.csv", CANVAS.format(most=f'"{most}"'))
    canvas = ("canvas", "--template", template, "--column", "Lab 2")
    assert export(out, *canvas) == 0
    assert [row[-1] for row in rows(out / "canvas.csv")[3:]] == ["15", "7.5", "0", "13"]
    assert export(out, *canvas, "--scale") == 1
    said = f"{template}: Points Possible of 'Lab 2 (22)': {most!r} is not a number"
    assert said in capsys.readouterr().err

    header = "Identifier,Full name,Grade,Maximum Grade,Last modified (grade)\n"
    template = write(tmp_path / "sheet.csv", f'{header}Participant 1,anna,,"{most}",-\n')
    assert export(out, "moodle", "--template", template, "--scale") == 1
    assert f"{template}: Maximum grade: {most!r} is not a number" in capsys.readouterr().err


def test_blanks_around_the_names_of_canvas_columns_do_no_harm(out, tmp_path):
    text = CANVAS.format(most=15).replace("Student,ID,", "Student, ID ,", 1)
    template = write(tmp_path / "canvas.csv", text)
    assert export(out, "canvas", "--template", template, "--column", "Lab 2") == 0
    assert [row[-1] for row in rows(out / "canvas.csv")[3:]] == ["15", "7.5", "0", "13"]


def test_gradescope_gets_one_file_each_with_all_that_its_specification_names(unfinished, capsys):
    folder = unfinished / "gradescope"
    (folder / "eva").mkdir(parents=True)
    (folder / "eva" / "results.json").write_text('{"score": 15}')  # of an earlier export
    assert export(unfinished, "gradescope", "--partial", "--visibility", "hidden") == 0
    found = {path.parent.name: json.loads(path.read_text()) for path in folder.glob("*/*")}
    assert {student: f"{each['score']:g}" for student, each in found.items()} == TOTALS
    ben = found["ben"]
    assert "2.5 points deducted" in ben["output"] and ben["visibility"] == "hidden"
    assert ben["tests"][0] == {
        "number": "1.1",
        "name": "Ring: any-size works",
        "score": 0.0,
        "max_score": 5.0,
        "status": "failed",
        "output": "It <b>hangs</b>.",
        "output_format": "text",
        "visibility": "hidden",
    }
    assert [test["number"] for test in ben["tests"]] == ["1.1", "1.2", "2.1"]
    assert ben["tests"][2]["output"] == "well put"
    assert "agreed on in class" in found["=dan"]["output"]
    assert export(unfinished, "gradescope", "--partial", "--visibility", "always") == 1
    assert "write one of visible, after_due_date" in capsys.readouterr().err


def consents(folder, *students, more=""):
    """A consent table in which these students agreed."""
    agreed = "".join(f"{exporting.safe_cell(each)},yes\n" for each in students)
    return write(folder / "consent.csv", f"student,consent\n{agreed}{more}")


def test_research_gets_results_of_those_who_agreed_and_nothing_that_tells_who_they_are(
    unfinished, tmp_path, capsys
):
    no = "cleo,no\nfinn,\n"  # and eva is not in it
    agreed = consents(tmp_path, "anna", "ben", "=dan", "zoe", more=no)
    assert export(unfinished, "research", "--consent", agreed) == 0
    said = capsys.readouterr()
    assert "3 of 6 students agreed" in said.out
    assert "agreed, but has no marks in 77-made-up: zoe" in said.err
    assert "only 3 participants (fewer than 20)" in said.err
    assert "3 of 3 participants have points that nobody else" in said.err
    table, codebook = (unfinished / "research" / n for n in ("results.csv", "codebook.md"))
    header, *body = rows(table)
    found = {}
    for participant, *cells in body:
        found.setdefault(participant, []).append(cells)
    expected = [
        [  # =dan, whose total was set
            [LAB, "ring", "any-size", "5", "5", "referee", "pass", ""],
            [LAB, "ring", "any-type", "5", "5", "referee", "pass", ""],
            [LAB, "essay", "text", "5", "0", "referee", "fail", "other"],
            [LAB, "", "", "15", "13", "person", "", ""],
        ],
        [
            [LAB, "ring", "any-size", "5", "5", "referee", "pass", ""],
            [LAB, "ring", "any-type", "5", "5", "referee", "pass", ""],
            [LAB, "essay", "text", "5", "5", "referee", "pass", ""],
        ],
        [  # ben, before the late penalty
            [LAB, "ring", "any-size", "5", "0", "referee", "fail", "other"],
            [LAB, "ring", "any-type", "5", "5", "referee", "pass", ""],
            [LAB, "essay", "text", "5", "5", "person", "manual", ""],
        ],
    ]
    assert sorted(found.values()) == sorted(expected)
    text = table.read_text() + codebook.read_text()
    for private in ("anna", "ben", "dan", "zoe", "hangs", "well put", "agreed on", "2026"):
        assert private not in text
    assert re.findall(r"\*\*(\w+)\*\*", codebook.read_text()) == header
    # Another export has other participants, in another order: no name leads to them.
    assert export(unfinished, "research", "--consent", agreed) == 0
    assert not {row[0] for row in rows(table)[1:]} & found.keys()


def test_the_order_of_participants_tells_nothing(tmp_path):
    names = [f"student{number:02}" for number in range(40)]
    out = class_in(
        tmp_path / "out",
        *(verdict(name, ["fail" if at < 20 else "pass"] * 3) for at, name in enumerate(names)),
    )
    export(out, "research", "--consent", consents(tmp_path, *names))
    outcomes = [row[7] for row in rows(out / "research" / "results.csv")[1:]]
    assert outcomes.count("fail") == 60 and outcomes not in (
        sorted(outcomes),
        sorted(outcomes)[::-1],
    )


def test_research_tells_the_kind_of_a_failure_and_not_its_words(tmp_path, capsys):
    hung = Diagnosis("deadlock", "Every rank of Anna's waits")
    made = verdict("anna", ["fail", "fail", "fail"], {"any-type": BLANK, "text": "12 messages"})
    ring, essay = made.exercises
    items = (replace(ring.items[0], diagnoses=(hung,)), ring.items[1])
    out = class_in(tmp_path / "out", replace(made, exercises=(replace(ring, items=items), essay)))
    assert export(out, "research", "--consent", consents(tmp_path, "anna")) == 0
    assert [row[8] for row in rows(out / "research" / "results.csv")[1:]] == [
        "deadlock",
        "blank",
        "other",
    ]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (None, "--to research: say who agreed, with --consent FILE.csv"),
        ("student,consent\nanna,maybe\n", "'anna' has 'maybe' as consent; write yes or no"),
        ("student,id\nanna,1\n", "no column 'consent'; add one"),
        ("student,consent\nanna,no\nben,\n", "none of the 4 students of 77-made-up has 'yes'"),
    ],
)
def test_without_a_clear_consent_nothing_is_exported_for_research(
    table, words, out, tmp_path, capsys
):
    arguments = ("--consent", write(tmp_path / "consent.csv", table)) if table else ()
    assert export(out, "research", *arguments) == 1
    assert words in capsys.readouterr().err and not (out / "research").exists()


def test_a_total_set_by_hand_is_final_though_nothing_could_be_judged(tmp_path):
    out = class_in(tmp_path / "out", verdict("gus", ["ungradable"] * 3, {}, "not valid JSON"))
    with Gradebook(out / "gradebook.sqlite") as book:
        book.decide([override(book.newest(LAB)[0], 9.0, "shown in person")])
    assert export(out, "csv") == export(out, "gradescope") == 0
    assert rows(out / "marks.csv")[1][2:] == ["", "", "9", "0", "9", "15", "graded"]
    found = json.loads((out / "gradescope" / "gus" / "results.json").read_text())
    assert found["score"] == 9 and not any("score" in test for test in found["tests"])
    (student,) = exporting.nbgrader_table(class_marks(out, LAB))["students"]
    assert student["penalty"] == -9  # nbgrader's own total, of the cells, omits it
    assert not any(grade["waits"] for grade in student["grades"])


def test_a_roster_keeps_the_apostrophe_of_a_name_but_not_that_of_a_guarded_cell(tmp_path):
    roster = tmp_path / "roster.csv"
    roster.write_text("student,id\n'aisha,1\n'=dan,2\n")
    assert list(exporting.read_roster(roster)) == ["'aisha", "=dan"]


def test_a_name_finds_its_row_in_either_form_of_unicode(tmp_path):
    out = class_in(tmp_path / "out", verdict("Zoë", ["pass"] * 3))
    header = "Identifier,Full name,Grade,Last modified (grade)\n"
    sheet = write(tmp_path / "sheet.csv", f"{header}Participant 1,Zoe\u0308,,-\n")
    assert export(out, "moodle", "--template", sheet) == 0
    assert rows(out / "moodle.csv")[1][2] == "15"
    assert export(out, "research", "--consent", consents(tmp_path, "Zoe\u0308")) == 0


def test_without_nbgrader_the_way_to_it_is_told(out, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(exporting, "NBGRADER_PYTHON", tmp_path / "none")
    monkeypatch.setattr(exporting.sys, "executable", "/bin/false")
    assert export(out, "nbgrader") == 1
    assert "python3 tools/nbgrader_venv.py" in capsys.readouterr().err


READ = """
import json, sys
from nbgrader.api import Gradebook
from nbgrader.plugins import CsvExportPlugin
with Gradebook("sqlite:///" + sys.argv[1]) as book:
    plugin = CsvExportPlugin()
    plugin.to = sys.argv[3]
    plugin.export(book)  # what 'nbgrader export' does
    print(json.dumps([[each.to_dict(), [g.to_dict() for n in each.notebooks for g in n.grades],
                       each.late_submission_penalty,
                       {c.name: c.comment for n in each.notebooks for c in n.comments}]
                      for each in book.assignment_submissions(sys.argv[2])]))
"""


@pytest.mark.slow
@pytest.mark.timeout(900)  # the first time, pip downloads nbgrader
def test_nbgrader_reads_what_was_exported_to_it(unfinished, tmp_path):
    from nbgrader_venv import nbgrader_python

    python, book = nbgrader_python(), tmp_path / "gradebook.db"
    make = (
        "from nbgrader.api import Gradebook; import sys\n"
        "with Gradebook('sqlite:///' + sys.argv[1]) as book:\n"
        "    book.add_assignment('other'); book.add_student('zoe')"
    )
    env = exporting.environment_of(python)
    subprocess.run([python, "-c", make, book], check=True, env=env)
    for _ in range(2):  # the second time, it replaces the first
        arguments = ("--partial", "--python", python, "-o", book)
        assert export(unfinished, "nbgrader", *arguments) == 0
    target = tmp_path / "grades.csv"
    read = subprocess.run(
        [python, "-c", READ, book, LAB, target], check=True, capture_output=True, env=env
    )
    found = {
        each["student"]: (each, {g["name"]: g for g in grades}, penalty, comments)
        for each, grades, penalty, comments in json.loads(read.stdout)
    }
    assert set(found) == {*TOTALS, "eva", "finn"}
    for student, total in TOTALS.items():
        each, _, penalty, _ = found[student]
        assert (each["score"] - penalty, each["max_score"]) == (float(total), 15.0)
        assert not each["needs_manual_grade"]
    for student in ("eva", "finn"):
        assert found[student][0]["needs_manual_grade"]
    ben = found["ben"]
    assert (ben[1]["ring"]["auto_score"], ben[1]["essay"]["manual_score"]) == (5.0, 5.0)
    assert ben[2] == 2.5 and ben[3]["ring"] == "any-size works: It <b>hangs</b>."
    assert found["finn"][1]["essay"]["manual_score"] is None

    with open(target, newline="") as file:
        told = {
            (row["assignment"], row["student_id"]): row["score"] for row in csv.DictReader(file)
        }
    assert {student: f"{float(told[LAB, student]):g}" for student in TOTALS} == TOTALS
    assert ("other", "zoe") in told
