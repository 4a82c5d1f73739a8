"""`mpilab marks`: the instructors' tool on the command line."""

import csv
import os
import re
import zipfile

import pytest
from marks_made_up import LAB, TEXTS, graded_class, hand_in, unreadable, verdict

from mpilab.cli import main
from mpilab.judging.verdict import NOT_HANDED_IN


@pytest.fixture
def out(tmp_path):
    return graded_class(tmp_path / "out")


def marks(verb, out, *more):
    return main(["marks", verb, str(out), "--lab", LAB, *map(str, more)])


def rows(path):
    with open(path, encoding="utf-8-sig", newline="") as file:
        return list(csv.DictReader(file))


def fill(path, change):
    """Write a CSV again with every row as `change` leaves it."""
    found = rows(path)
    for row in found:
        change(row)
    with open(path, "w", encoding="utf-8-sig", newline="") as file:
        writer = csv.DictWriter(file, found[0])
        writer.writeheader()
        writer.writerows(found)


def test_a_csv_goes_out_with_the_texts_and_comes_back_with_points(out, tmp_path, capsys):
    path = tmp_path / "manual.csv"
    assert marks("export", out, path) == 0
    exported = rows(path)
    assert [(row["exercise"], row["student"]) for row in exported] == [
        (exercise, student) for exercise in ("why", "table") for student in TEXTS
    ]
    assert exported[0]["text"] == TEXTS["anna"] and exported[0]["most"] == "8"
    # A spreadsheet would run this one.
    assert exported[1]["text"] == "'" + TEXTS["ben"]

    def read(row):
        if row["exercise"] == "why":
            row["points"], row["comment"] = "6,5", "-1 for the second line"

    fill(path, read)
    assert marks("import", out, path) == 0
    assert "3 marks imported" in capsys.readouterr().out
    assert [row["why"] for row in rows(out / "grades.csv")] == ["6.5"] * 3
    page = (out / "feedback" / "anna.html").read_text(encoding="utf-8")
    assert "6.5 / 8" in page and "-1 for the second line" in page and "16.5 / 25" in page

    assert marks("import", out, path) == 0
    assert "0 marks imported" in capsys.readouterr().out
    assert marks("export", out, path) == 0 and len(rows(path)) == 3
    assert marks("export", out, path, "--all") == 0
    assert (rows(path)[0]["points"], rows(path)[0]["comment"]) == ("6.5", "'-1 for the second line")
    assert marks("import", out, path) == 0
    assert "0 marks imported" in capsys.readouterr().out


@pytest.mark.parametrize("name", [";=1+1", "＝1+1", "'=x", '";@x', "a,-b"])
def test_points_reach_a_student_whose_name_would_begin_a_formula(name, out, tmp_path, capsys):
    hand_in(out, verdict(name, f"{name} wrote this"))
    path = tmp_path / "manual.csv"
    assert marks("export", out, path) == 0
    exported = {row["student"]: row for row in rows(path)}
    assert name not in exported and len(exported) == len(TEXTS) + 1

    def read(row):
        if row["student"] not in TEXTS:
            row["points"], row["comment"] = "5", "=well done"

    fill(path, read)
    assert marks("import", out, path) == 0
    assert "2 marks imported" in capsys.readouterr().out
    (row,) = [row for row in rows(out / "grades.csv") if row["student"] not in TEXTS]
    assert row["why"] == "5" and row["student"] != name
    assert marks("export", out, path, "--all") == 0
    assert marks("import", out, path) == 0
    assert "0 marks imported" in capsys.readouterr().out


def test_a_csv_with_any_wrong_row_is_not_taken_and_every_one_is_named(out, tmp_path, capsys):
    path = tmp_path / "manual.csv"
    assert marks("export", out, path) == 0
    hand_in(out, verdict("cleo", "Another text."))
    wrong = {("why", "ben"): "8.5", ("table", "anna"): "many", ("why", "cleo"): "3"}

    def read(row):
        row["points"] = wrong.get((row["exercise"], row["student"]), "1")
        if (row["exercise"], row["student"]) == ("table", "ben"):
            row["student"] = "bob"
        if (row["exercise"], row["student"]) == ("table", "cleo"):
            row["points"], row["comment"] = "", "good"

    fill(path, read)
    assert marks("import", out, path) == 1
    said = capsys.readouterr().err
    # Anna's text has a line break, so ben's row begins in line 4.
    for line, words in [
        (4, "ben, why, text: 8.5 points; write 0 to 8"),
        (5, "the text has changed since the export"),
        (6, "points 'many': not a number"),
        (7, "student 'bob': not in the gradebook"),
        (8, "a comment without points"),
    ]:
        assert f"{path}:{line}: " in said and words in said
    assert len(re.findall(r"manual.csv:\d+:", said)) == 5
    assert marks("export", out, path) == 0 and len(rows(path)) == 6


def test_a_csv_that_a_spreadsheet_has_spoilt_is_refused_with_a_remedy(out, tmp_path, capsys):
    path = tmp_path / "manual.csv"
    assert marks("export", out, path) == 0
    good = path.read_text(encoding="utf-8-sig")
    for content, words in [
        (good.replace("text_id", "id").encode(), "manual.csv:1: no column text_id"),
        ("Ärger".encode("latin-1"), "byte 0 is not UTF-8; save it as 'CSV UTF-8'"),
        (b"", "manual.csv: is empty; a CSV with a header is needed"),
    ]:
        path.write_bytes(content)
        assert marks("import", out, path) == 1
        assert words in capsys.readouterr().err
    semicolons = [
        [row["student"], "why", "text", "7,5", "", row["text_id"]]
        for row in csv.DictReader(good.splitlines(keepends=True))
        if row["exercise"] == "why"
    ]
    lines = ["student;exercise;item;points;comment;text_id", *map(";".join, semicolons)]
    path.write_text("\r\n".join(lines), encoding="utf-8")
    assert marks("import", out, path) == 0
    assert [row["why"] for row in rows(out / "grades.csv")] == ["7.5"] * 3


def test_an_override_is_shown_with_its_reason_and_can_be_removed(out, capsys):
    ring = ("--student", "ben", "--exercise", "ring", "--item", "any")
    assert marks("override", out, *ring, "--points", "5", "--reason", "compiler <flag>") == 0
    assert capsys.readouterr().out == "ben: 9 of 25, awaiting-manual\n"
    page = (out / "feedback" / "ben.html").read_text(encoding="utf-8")
    assert "compiler &lt;flag&gt; (before: not yet. P = 3: deadlock)" in page
    assert "✎</span> set manually" in page and "9 / 25" in page
    assert marks("show", out) == 0
    assert re.search(r"^ben +9\* +- +- +9 ", capsys.readouterr().out, re.M)
    assert marks("override", out, *ring, "--remove", "--reason", "wrong student") == 0
    assert "ben: 4 of 25" in capsys.readouterr().out
    assert "set manually" not in (out / "feedback" / "ben.html").read_text(encoding="utf-8")
    for wrong in (["--points", "11"], ["--points", "-1"]):
        assert (
            marks(
                "override", out, "--student", "ben", "--exercise", "ring", *wrong, "--reason", "x"
            )
            == 1
        )
        assert "write 0 to 10" in capsys.readouterr().err


def test_the_history_of_a_mark_tells_all_that_led_to_it(out, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("LOGNAME", "mueller")
    path = tmp_path / "manual.csv"
    assert marks("export", out, path) == 0
    fill(path, lambda row: row.update(points="5", comment="fair"))
    assert marks("import", out, path) == 0
    monkeypatch.setenv("LOGNAME", "schmidt")
    assert marks("override", out, "--student", "anna", "--points", "25", "--reason", "prize") == 0
    capsys.readouterr()
    assert marks("history", out, "anna") == 0
    said = capsys.readouterr().out
    assert said.startswith("anna, 02-allgather: 25 of 25, graded\n")
    now, history = said.split("History, oldest first:")
    assert re.search(r'text: 5 of 8, graded by mueller, \S+ \S+: "fair"', now)
    assert re.search(r'total: set by schmidt, \S+ \S+: "prize"', now)
    events = [line.split("  ", 2)[2] for line in history.strip("\n").splitlines()]
    assert events[0].startswith("judged: 10 points, awaiting-manual (rubric rubric o, file ")
    assert events[1:] == [
        'why/text: 5 points given by mueller: "fair"',
        'table/text: 5 points given by mueller: "fair"',
        'total: set to 25 by schmidt: "prize"',
    ]


RULE = ("--due", "2026-11-20T23:59+00:00", "--per-day", "10%", "--most", "25%", "--grace", "15m")


@pytest.mark.parametrize(
    ("time", "share"),
    [
        ("2026-11-20T23:59:00+00:00", 0),
        ("2026-11-21T00:14:00+00:00", 0),  # the grace's last moment
        ("2026-11-21T00:14:01+00:00", 0.1),
        ("2026-11-21T23:59:00+00:00", 0.1),
        ("2026-11-21T23:59:01+00:00", 0.2),
        ("2026-11-22T01:00:00+01:00", 0.2),  # 00:00 in UTC
        ("2026-11-30T00:00:00+00:00", 0.25),
    ],
)
def test_each_day_begun_costs_its_share_up_to_the_most(out, tmp_path, time, share):
    times = tmp_path / "times.csv"
    times.write_text(f"student,time\nanna,{time}\n")
    assert marks("late", out, *RULE, "--times", times) == 0
    anna = {row["student"]: row for row in rows(out / "grades.csv")}["anna"]
    assert (float(anna["penalty"]), float(anna["total"])) == (10 * share, 10 - 10 * share)
    assert anna["ring"] == "10"


def test_lateness_is_told_worked_out_again_extended_and_taken_back(out, tmp_path, capsys):
    times = tmp_path / "times.csv"
    times.write_text("student,time\nanna,2026-11-22T10:00Z\nben,2026-11-20T10:00Z\n")

    def late(*more):
        assert marks("late", out, *RULE, "--times", times, *more) == 0
        said = capsys.readouterr()
        return [row["penalty"] for row in rows(out / "grades.csv")], said

    penalties, said = late()
    assert penalties == ["2", "0", ""]
    assert "2 days late, 20 % of the points (10 % a day)." in said.out
    assert "1 of 3 late; 2 new decisions" in said.out
    assert "no submission time is known for: cleo" in said.err
    page = (out / "feedback" / "anna.html").read_text(encoding="utf-8")
    assert "8 / 25" in page and "Deducted for lateness" in page and "2 days late" in page

    assert "0 new decisions" in late()[1].out
    # More points have been given, and the penalty is a share of them.
    assert (
        marks(
            "override",
            out,
            "--student",
            "anna",
            "--exercise",
            "why",
            "--points",
            "8",
            "--reason",
            "oral",
        )
        == 0
    )
    assert late()[0][0] == "3.6"
    assert late("--extension", "anna=2d")[0][0] == "0"
    assert late()[0][0] == "0"  # once granted, it stays
    assert late("--extension", "anna=0")[0][0] == "3.6"
    # A different rule for all.
    assert late("--per-day", "5%")[0][0] == "1.8"
    assert marks("late", out, "--remove") == 0
    assert "penalty" not in rows(out / "grades.csv")[0]
    page = (out / "feedback" / "anna.html").read_text(encoding="utf-8")
    assert "18 / 25" in page and "days late" not in page
    capsys.readouterr()
    assert marks("history", out, "anna") == 0
    said = capsys.readouterr().out
    assert said.count("lateness by") == 4 and said.count("lateness withdrawn") == 1


def test_a_name_may_be_typed_in_either_form_of_unicode(out, tmp_path, capsys):
    typed = "Zoe\u0308"
    hand_in(out, verdict("Zoë", "Fewer messages."))
    times, path = tmp_path / "times.csv", tmp_path / "manual.csv"
    times.write_text(f"student,time\n{typed},2026-11-22T10:00Z\n", encoding="utf-8")
    assert marks("late", out, *RULE, "--times", times, "--extension", f"{typed}=1d") == 0
    assert "Zoë: Handed in" in capsys.readouterr().out
    assert marks("export", out, path) == 0

    def read(row):
        if row["student"] == "Zoë":
            row["student"], row["points"] = typed, "5"

    fill(path, read)
    assert marks("import", out, path) == 0
    assert "2 marks imported" in capsys.readouterr().out
    assert marks("override", out, "--student", typed, "--points", "9", "--reason", "oral") == 0
    assert "Zoë: 9 of 25" in capsys.readouterr().out
    assert marks("history", out, typed) == 0


def test_a_submission_after_lateness_was_looked_at_is_to_be_looked_at_again(out, tmp_path, capsys):
    times = tmp_path / "times.csv"
    times.write_text("student,time\nanna,2026-11-20T10:00Z\n")
    assert marks("late", out, *RULE, "--times", times) == 0
    hand_in(out, verdict("anna", "Again."))
    capsys.readouterr()
    assert marks("show", out) == 0
    assert "anna: handed in again after the lateness was computed" in capsys.readouterr().out


def test_times_are_taken_from_the_files_that_were_handed_in(out, tmp_path):
    folder = tmp_path / "class"
    for student, day in (("anna", 20), ("ben", 21), ("cleo", 22)):
        notebook = folder / student / f"{LAB}.ipynb"
        notebook.parent.mkdir(parents=True)
        notebook.write_text("{}")
        os.utime(notebook, (0, 1795176000 + (day - 20) * 86400))  # noon in UTC
    assert marks("late", out, *RULE, "--submissions", folder) == 0
    assert [row["penalty"] for row in rows(out / "grades.csv")] == ["0", "0.4", "2"]


def test_times_are_taken_from_a_zip_that_windows_has_made(out, tmp_path, capsys):
    folder = tmp_path / "class.zip"
    with zipfile.ZipFile(folder, "w") as archive:
        for student, day in (("anna", 20), ("ben", 21), ("cleo", 0)):
            member = zipfile.ZipInfo("x")
            member.filename = f"class\\{student}\\{LAB}.ipynb"
            member.date_time = (2026, 11, day, 12, 0, 0) if day else (1980, 0, 0, 0, 0, 0)
            archive.writestr(member, "{}")
    assert marks("late", out, *RULE, "--submissions", folder) == 0
    assert [row["penalty"] for row in rows(out / "grades.csv")] == ["0", "0.4", ""]
    assert "no submission time is known for: cleo" in capsys.readouterr().err


@pytest.mark.parametrize("separator", [";", "\t"])
def test_times_are_read_from_a_file_that_a_spreadsheet_has_saved(separator, out, tmp_path, capsys):
    times = tmp_path / "times.csv"
    lines = ["student,time,note", ",,", 'anna,2026-11-22T10:00Z,"two\nlines"', "ben"]
    text = "\r\n".join(lines).replace(",", separator)
    times.write_text(f"\ufeff{text}", encoding="utf-8")
    assert marks("late", out, *RULE, "--times", times) == 0
    assert "1 of 3 late; 1 new decisions" in capsys.readouterr().out
    times.write_text(f"{text}\r\nanna{separator}".replace("\r\n", "\n"), encoding="utf-8")
    assert marks("late", out, *RULE, "--times", times) == 1
    assert f"{times}:6: anna is on two lines" in capsys.readouterr().err


def test_who_handed_in_nothing_has_no_mark_until_the_instructor_says_zero(out, capsys):
    hand_in(out, unreadable("zoe", NOT_HANDED_IN))
    hand_in(out, unreadable("yan"))
    assert marks("absent", out) == 0
    assert capsys.readouterr().out == "zoe: no mark\n1 of 5 students handed in nothing\n"
    row = rows(out / "grades.csv")[-1]
    assert (row["student"], row["total"], row["status"]) == ("zoe", "", "not-handed-in")
    assert main(["export", str(out), "--lab", LAB]) == 1
    assert "zoe: nothing was handed in; for 0 points: mpilab marks absent --zero" in (
        capsys.readouterr().err
    )
    assert main(["report", str(out), "--lab", LAB]) == 0
    assert re.search(r"handed in nothing:? +1\b", capsys.readouterr().out)

    for _ in range(2):
        assert marks("absent", out, "--zero") == 0
    assert capsys.readouterr().out.startswith("zoe: 0 points\n")
    totals = {row["student"]: (row["total"], row["status"]) for row in rows(out / "grades.csv")}
    assert totals["zoe"] == ("0", "graded") and totals["yan"] == ("", "ungradable")
    assert marks("history", out, "zoe") == 0
    assert capsys.readouterr().out.count("total: set to 0 by") == 1  # the second time, none is new
    assert marks("late", out, "--due", "2026-11-20", "--per-day", "10%", "--remove") == 0
    assert marks("absent", out, "--remove") == 0
    assert rows(out / "grades.csv")[-1]["total"] == ""

    assert marks("absent", out, "--zero") == 0
    hand_in(out, verdict("zoe", "late, but here"))  # the zero is not about this
    capsys.readouterr()
    assert marks("absent", out) == 0
    said = capsys.readouterr()
    assert said.out == "0 of 5 students handed in nothing\n"
    assert rows(out / "grades.csv")[-1]["total"] == "10"


def test_a_platform_that_calls_somebody_late_is_compared_with_the_rule(out, tmp_path, capsys):
    table = out / "submissions.csv"
    table.write_text(
        "student,time,late\nanna,2026-11-20T12:00Z,yes\nben,2026-11-20T12:00Z,no\n"
        "cleo,2026-11-23T12:00Z,no\n"
    )
    assert marks("late", out, "--due", "2026-11-21T12:00Z", "--per-day", "10%") == 0
    said = capsys.readouterr().err.splitlines()
    assert [line.partition(";")[0] for line in said] == [
        "anna: not late by this rule, late according to the platform",
        "cleo: late by this rule, not late according to the platform",
    ]


def test_without_any_time_nobody_is_taken_for_punctual(out, capsys):
    (out / "submissions.csv").write_text("student,time,late\nanna,,\nben,,\ncleo,,\n")
    assert marks("late", out, "--due", "2026-11-21T12:00Z", "--per-day", "10%") == 1
    assert "no submission of 02-allgather has a time; collect with --roster" in (
        capsys.readouterr().err
    )
    # Nor do the times of collected files count, which are those of the collection.
    asked = ("--due", "2020-01-01", "--per-day", "10%", "--submissions", out)
    assert marks("late", out, *asked) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--due", "tomorrow"], "--due: 'tomorrow' is not a time; write e.g. 2026-11-20T23:59"),
        (["--per-day", "ten"], "--per-day 'ten': not a share of the points; write e.g. 10%"),
        (["--per-day", "110%"], "--per-day '110%': not a share"),
        (["--grace", "15"], "--grace '15': not a duration; write e.g. 15m"),
        (["--extension", "anna"], "--extension 'anna': write STUDENT=TIME, e.g. anna=3d"),
        (["--extension", "zoe=3d"], "student 'zoe': no verdict on 02-allgather"),
    ],
)
def test_a_wrong_rule_for_lateness_is_named_with_an_example(
    out, tmp_path, capsys, arguments, words
):
    times = tmp_path / "times.csv"
    times.write_text("student,time\nanna,2026-11-20T10:00Z\n")
    assert marks("late", out, *RULE, "--times", times, *arguments) == 1
    assert words in capsys.readouterr().err


def test_wrong_times_are_named_with_file_and_line(out, tmp_path, capsys):
    times = tmp_path / "times.csv"
    for content, words in [
        ("student,time\nanna,20.11.2026\n", f"{times}:2: '20.11.2026' is not a time"),
        ("student,time\nanna,2026-11-20\nanna,2026-11-21\n", f"{times}:3: anna is on two"),
        ("name,when\n", f"{times}:1: no columns student and time"),
        ("student,time\nzoe,2026-11-20\n", "student 'zoe': no verdict"),
    ]:
        times.write_text(content)
        assert marks("late", out, *RULE, "--times", times) == 1
        assert words in capsys.readouterr().err


def test_a_folder_without_a_gradebook_or_with_another_lab_is_named(out, tmp_path, capsys):
    assert marks("show", tmp_path) == 1
    assert "holds no gradebook.sqlite; name a folder that 'mpilab grade" in capsys.readouterr().err
    assert not (tmp_path / "gradebook.sqlite").exists()
    assert main(["marks", "show", str(out), "--lab", "03-rank-mapping"]) == 1
    assert "no verdict on lab '03-rank-mapping'" in capsys.readouterr().err


def test_a_page_that_is_not_there_or_has_no_places_for_marks_is_noted(out, capsys):
    (out / "feedback" / "anna.html").unlink()
    (out / "feedback" / "ben.html").write_text("<p>of an older mpilab</p>")
    for student in ("anna", "ben"):
        assert marks("override", out, "--student", student, "--points", "9", "--reason", "x") == 0
    said = capsys.readouterr().err
    assert "anna.html: missing" in said and "ben.html: made by an older mpilab" in said
    assert (out / "feedback" / "ben.html").read_text() == "<p>of an older mpilab</p>"
