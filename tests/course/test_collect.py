"""Downloads from platforms become folders that can be graded, with times, and no student's work is
lost, mixed up or overwritten."""

import csv
import io
import json
import os
import re
import tracemalloc
import zipfile
from datetime import UTC, datetime, timedelta, timezone
from time import tzset

import pytest

from mpilab.cli import main
from mpilab.course.collect import collect, enrolled
from mpilab.course.manual import times_of_csv
from mpilab.errors import InputError
from mpilab.grading import submission
from mpilab.grading.submission import class_of, find_submissions, read_roster
from mpilab.judging.verdict import NOT_HANDED_IN

LAB = "02-allgather"
FILE = f"{LAB}.ipynb"
NOON = datetime(2026, 11, 20, 12, 0, 0).astimezone()


def put(root, files, time=NOON):
    """Write {path: content} below root, all last changed at `time`."""
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
        os.utime(target, (time.timestamp(),) * 2)
    return root


def zipped(files):
    """{path: content or (content, time)} as the bytes of a zip."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for path, content in files.items():
            content, time = content if isinstance(content, tuple) else (content, NOON)
            archive.writestr(zipfile.ZipInfo(path, time.timetuple()[:6]), content)
    return data.getvalue()


def table(dest):
    with open(dest / "submissions.csv", encoding="utf-8", newline="") as file:
        return {row["student"]: row for row in csv.DictReader(file)}


def taken(dest):
    return {each.student: each.data for each in find_submissions(dest, LAB)}


MOODLE = {
    f"Anna Schmidt_101_assignsubmission_file_/{FILE}": b"anna",
    f"Ben O'Neil_102_assignsubmission_file_{FILE}": b"ben",
    "Cleo_103_assignsubmission_file_/my answer.ipynb": b"cleo",
    "Dan_104_assignsubmission_file_/lab.zip": zipped({f"work/{FILE}": b"dan"}),
    "Dan_104_assignsubmission_onlinetext_/onlinetext.html": b"see my file",
    "Eva_105_assignsubmission_onlinetext_/onlinetext.html": b"sorry",
    "Finn_106_assignsubmission_file_/notes.txt": b"none",
    f"Gil_107_assignsubmission_file/{FILE}": b"gil",  # since Moodle 4.1
}


@pytest.mark.parametrize("form", ["folder", "zip", "folder in a zip"])
def test_moodles_download_in_both_its_forms(form, tmp_path):
    if form == "folder":
        source = put(tmp_path / "download", MOODLE)
    else:
        around = "class/" if form == "folder in a zip" else ""
        source = tmp_path / "download.zip"
        source.write_bytes(zipped({around + path: data for path, data in MOODLE.items()}))
    done = collect(source, tmp_path / "class", LAB)
    assert done.layout == "moodle"
    assert taken(tmp_path / "class") == {
        "Anna Schmidt": b"anna",
        "Ben O'Neil": b"ben",
        "Cleo": b"cleo",
        "Dan": b"dan",
        "Gil": b"gil",
    }
    row = table(tmp_path / "class")["Anna Schmidt"]
    # The times of the files are those of the download.
    assert (row["time"], row["id"], row["late"]) == ("", "101", "")
    assert times_of_csv(tmp_path / "class" / "submissions.csv") == {}
    assert [note.partition(":")[0] for note in done.notes] == ["Cleo", "Dan"]
    assert any(line.startswith("Eva: a text typed into Moodle, but no file") for line in done.left)
    assert sorted(line.split("_")[0].split(":")[0].split("/")[-1] for line in done.left) == [
        "Eva",
        "Finn",
    ]


def test_120_executed_notebooks_are_collected_one_too_large_is_listed_and_none_stays_in_memory(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(submission, "NOTEBOOK_LIMIT", 2**20)
    data = os.urandom(2**20)
    source = tmp_path / "download.zip"
    with zipfile.ZipFile(source, "w") as archive:
        for number in range(120):
            folder = f"Student {number:03}_{number}_assignsubmission_file_"
            if number % 2:
                archive.writestr(f"{folder}/lab.zip", zipped({FILE: data[:-1000]}))
            else:
                archive.writestr(f"{folder}/{FILE}", data)
        archive.writestr(f"Zoe_200_assignsubmission_file_/{FILE}", data + b"x")
    tracemalloc.start()
    try:
        done = collect(source, tmp_path / "class", LAB)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(done.students) == 120 and most < 20 * 2**20
    (left,) = done.left
    assert left.startswith("Zoe: ") and "larger than 1 MiB" in left
    assert {len(each) for each in taken(tmp_path / "class").values()} == {2**20, 2**20 - 1000}


def test_names_that_begin_a_formula_in_some_locale_are_guarded_and_read_back(tmp_path):
    names = (";=1+1", "＝1+1", '"=x', "'-y", "a;@b")
    source = put(
        tmp_path / "download",
        {f"{name}_{at}_assignsubmission_file_/{FILE}": b"x" for at, name in enumerate(names)},
    )
    for _ in range(2):  # the second time, it reads its own table
        collect(source, tmp_path / "class", LAB)
        text = (tmp_path / "class" / "submissions.csv").read_text(encoding="utf-8")
        assert "\n;'=1+1," in text and "\n'＝1+1," in text
    assert set(names) == set(taken(tmp_path / "class"))
    assert set(read_roster(tmp_path / "class" / "submissions.csv")) == set(names)


def test_canvas_files_carry_the_number_the_lateness_and_the_attempt(tmp_path):
    source = put(
        tmp_path / "download",
        {
            f"schmidtanna_9001_70001_{FILE}": b"first",
            f"schmidtanna_9001_70001_{LAB}-1.ipynb": b"second",
            f"oneilben_LATE_9002_70002_{LAB}-10.ipynb": b"tenth",
            f"oneilben_LATE_9002_70002_{LAB}-9.ipynb": b"ninth",
            "readme.txt": b"",
        },
    )
    done = collect(source, tmp_path / "class", LAB)
    assert done.layout == "canvas" and done.left == ["readme.txt: belongs to no student"]
    assert taken(tmp_path / "class") == {"schmidtanna": b"second", "oneilben": b"tenth"}
    rows = table(tmp_path / "class")
    assert [rows[who]["late"] for who in ("schmidtanna", "oneilben")] == ["no", "yes"]
    assert rows["oneilben"]["id"] == "9002"


def test_of_several_copies_the_last_counts_by_its_number_and_never_by_a_time(tmp_path):
    early, late = datetime(2026, 11, 19, 8), datetime(2026, 11, 19, 9)
    source = tmp_path / "download.zip"
    source.write_bytes(
        zipped(
            {
                f"Anna_1_assignsubmission_file_/{LAB} (1).ipynb": (b"later", early),
                f"Anna_1_assignsubmission_file_/{FILE}": (b"earlier", late),
                "Anna_1_assignsubmission_file_/scratch.ipynb": (b"other", datetime(2026, 11, 20)),
                f"Ben_2_assignsubmission_file_/a/{FILE}": (b"one", early),
                f"Ben_2_assignsubmission_file_/b/{FILE}": (b"two", late),
                "Cleo_3_assignsubmission_file_/x.ipynb": b"x",
                "Cleo_3_assignsubmission_file_/y.ipynb": b"y",
                f"Dan_4_assignsubmission_file_/{LAB} (10).ipynb": (b"tenth", early),
                f"Dan_4_assignsubmission_file_/{LAB} (9).ipynb": (b"ninth", late),
            }
        )
    )
    done = collect(source, tmp_path / "class", LAB)
    assert taken(tmp_path / "class") == {"Anna": b"later", "Dan": b"tenth"}
    assert "taken for the last of 2" in done.notes[0]
    assert "Ben: which one counts?" in done.left[0] and "Cleo: several notebooks" in done.left[1]


def test_repositories_of_a_github_classroom_without_what_git_keeps(tmp_path):
    repositories = {
        f"mpi-lab-anna-b/{FILE}": b"anna",
        "mpi-lab-anna-b/.git/config": b"[core]",
        f"mpi-lab-anna-b/.git/{FILE}": b"no",
        f"mpi-lab-anna-c/deep/{FILE}": b"deep",
        f"mpi-lab-anna-c/{FILE}": b"another anna",
    }
    wanted = {"anna-b": b"anna", "anna-c": b"another anna"}
    source = put(tmp_path / "repositories", repositories)
    with pytest.raises(InputError, match="--prefix mpi-lab-anna-$"):
        collect(source, tmp_path / "class", LAB)
    done = collect(source, tmp_path / "class", LAB, prefix="mpi-lab-")
    assert done.layout == "github-classroom" and taken(tmp_path / "class") == wanted
    assert table(tmp_path / "class")["anna-b"]["time"] == ""
    # As 'gh classroom clone student-repos' names the folder around them, they need no --prefix.
    source = put(tmp_path / "gh" / "mpi-lab-submissions", repositories)
    for number, path in enumerate((source, source.parent)):
        collect(path, tmp_path / f"class {number}", LAB)
        assert taken(tmp_path / f"class {number}") == wanted


@pytest.mark.parametrize(
    ("stamp", "hour"),
    [
        ("2026-11-20 22:10:05.123456 UTC", 22),
        ("2026-11-20 22:10:05.123456 Europe/Berlin", 21),
        ("2026-11-20 22:10:05 +0200", 20),
    ],
)
def test_an_nbgrader_course_with_its_timestamps(stamp, hour, tmp_path):
    source = put(
        tmp_path / "course",
        {
            f"submitted/anna/{LAB}/{FILE}": b"anna",
            f"submitted/anna/{LAB}/timestamp.txt": stamp.encode(),
            f"submitted/ben/{LAB}/{FILE}": b"ben",
            "submitted/ben/other/other.ipynb": b"other",
            f"source/{LAB}/{FILE}": b"reference",
            f"autograded/anna/{LAB}/{FILE}": b"graded",
        },
    )
    done = collect(source, tmp_path / "class", LAB)
    assert done.layout == "nbgrader" and done.left == [
        "submitted/ben/other/other.ipynb: belongs to no student"
    ]
    assert taken(tmp_path / "class") == {"anna": b"anna", "ben": b"ben"}
    time = times_of(done)["anna"].astimezone(UTC)
    assert (time.hour, time.minute, time.second) == (hour, 10, 5)


def times_of(done):
    return {student: piece.time for student, piece in done.students.items()}


def test_collecting_again_changes_nothing_and_a_later_download_replaces(tmp_path):
    dest = tmp_path / "class"
    first = put(
        tmp_path / "1",
        {
            f"Anna_1_assignsubmission_file_/{FILE}": b"old",
            f"Ben_2_assignsubmission_file_/{FILE}": b"ben",
        },
    )
    assert collect(first, dest, LAB).changed == ["Anna", "Ben"]
    before = {path: path.stat().st_ino for path in dest.rglob("*.ipynb")}
    csv_bytes = (dest / "submissions.csv").read_bytes()
    assert collect(first, dest, LAB).changed == []
    assert {path: path.stat().st_ino for path in dest.rglob("*.ipynb")} == before
    assert (dest / "submissions.csv").read_bytes() == csv_bytes

    second = put(tmp_path / "2", {f"Anna_1_assignsubmission_file_/{FILE}": b"new"})
    assert collect(second, dest, LAB).changed == ["Anna"]
    assert taken(dest) == {"Anna": b"new", "Ben": b"ben"} and set(table(dest)) == {"Anna", "Ben"}


def test_two_students_of_one_name_are_refused_until_their_numbers_tell_them_apart(tmp_path):
    source = put(
        tmp_path / "1",
        {
            f"Anna_1_assignsubmission_file_/{FILE}": b"one",
            f"anna_2_assignsubmission_file_/{FILE}": b"two",
        },
    )
    with pytest.raises(InputError, match="have the name 'anna'.*--with-ids"):
        collect(source, tmp_path / "class", LAB)
    assert not (tmp_path / "class").exists()
    collect(source, tmp_path / "class", LAB, with_ids=True)
    assert taken(tmp_path / "class") == {"Anna_1": b"one", "anna_2": b"two"}


def test_links_lead_nowhere_in_and_nowhere_out(tmp_path):
    secret = put(tmp_path / "secret", {FILE: b"secret"})
    source = put(tmp_path / "1", {f"Anna_1_assignsubmission_file_/{FILE}": b"anna"})
    (source / "Ben_2_assignsubmission_file_").symlink_to(secret)
    (source / "Cleo_3_assignsubmission_file_").mkdir()
    (source / "Cleo_3_assignsubmission_file_" / FILE).symlink_to(secret / FILE)
    done = collect(source, tmp_path / "class", LAB)
    assert set(done.students) == {"Anna"}
    assert [line.rpartition(": ")[2] for line in done.left] == ["a link, not followed"] * 2

    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "Anna").symlink_to(secret)
    with pytest.raises(InputError, match="is a link, or is reached through one"):
        collect(source, tmp_path / "other", LAB)
    assert (secret / FILE).read_bytes() == b"secret"


def test_a_zip_that_leads_out_of_itself_or_a_bomb_within_harms_nobody_else(tmp_path):
    source = tmp_path / "download.zip"
    source.write_bytes(zipped({f"../Anna_1_assignsubmission_file_/{FILE}": b"x"}))
    with pytest.raises(InputError, match="a path outside it"):
        collect(source, tmp_path / "class", LAB)
    climber = zipped({f"../../{FILE}": b"x"})
    source = put(
        tmp_path / "2",
        {
            f"Anna_1_assignsubmission_file_/{FILE}": b"anna",
            "Ben_2_assignsubmission_file_/lab.zip": climber,
        },
    )
    done = collect(source, tmp_path / "class", LAB)
    assert taken(tmp_path / "class") == {"Anna": b"anna"}
    assert done.left[0].startswith("Ben: ") and "a path outside it" in done.left[0]


@pytest.mark.parametrize(
    "name",
    [f"{LAB} ({'9' * 5000}).ipynb", f"x{'-1' * 30_000}.ipynb"],
    ids=["number of a copy", "copy of a copy"],
)
def test_a_name_in_a_students_zip_that_is_longer_than_any_files_is_refused(name, tmp_path):
    """The first was an internal error, and the second took minutes."""
    files = {f"Anna_1_assignsubmission_file_/{FILE}": b"anna"}
    files["Ben_2_assignsubmission_file_/lab.zip"] = zipped({name: b"ben"})
    done = collect(put(tmp_path / "1", files), tmp_path / "class", LAB)
    assert taken(tmp_path / "class") == {"Anna": b"anna"}
    (told,) = done.left
    assert told.startswith("Ben: Ben_2_assignsubmission_file_/lab.zip: the zip holds '")
    assert f"a name of {len(name)} characters, more than 255; rename it" in told


def test_what_lies_in_the_destination_already_is_not_overwritten(tmp_path):
    dest = put(tmp_path / "class", {f"Anna/{FILE}": b"by hand"})
    source = put(tmp_path / "1", {f"Anna_1_assignsubmission_file_/{FILE}": b"anna"})
    with pytest.raises(InputError, match="already exists, and was not written by"):
        collect(source, dest, LAB)
    assert (dest / "Anna" / FILE).read_bytes() == b"by hand"
    with pytest.raises(InputError, match="would be collected next time"):
        collect(source, source / "class", LAB)


def test_the_command_lists_what_it_did_not_understand_and_ends_with_1(tmp_path, capsys):
    evil = {f"=cmd|_7_assignsubmission_file_/{FILE}": b"x", "no\x1b[2Jthing.txt": b""}
    source = put(tmp_path / "1", {f"Anna_1_assignsubmission_file_/{FILE}": b"anna", **evil})
    dest = tmp_path / "class"
    assert main(["collect", str(source), str(dest), "--lab", LAB]) == 1
    said = capsys.readouterr()
    assert "2 submissions of 02-allgather from moodle, 2 of them new" in said.out
    assert (
        "NOT COLLECTED: nothing.txt: belongs to no student" in said.err and "\x1b" not in said.err
    )
    assert "\n'=cmd|," in (dest / "submissions.csv").read_text()
    assert main(["collect", str(dest), str(tmp_path / "again"), "--lab", LAB]) == 1
    assert "not a known platform's layout" in capsys.readouterr().err


def test_who_has_no_time_is_left_out(tmp_path):
    listed = tmp_path / "times.csv"
    listed.write_text("student,time\nanna,2026-11-20T12:00Z\nben,\n", encoding="utf-8")
    assert set(times_of_csv(listed)) == {"anna"}


GRADESCOPE = """\
---
submission_1001:
  :submitters:
  - :name: Anna Schmidt
    :sid: '17'
    :email: Anna@x.org
  :created_at: 2026-11-20 21:10:05.462434000 Z
  :score: 0.0
  :status: processed
submission_1002:
  :submitters:
  - :name: Ben
    :email: ben@x.org
  - :name: Cleo
    :email: cleo@x.org
  :created_at: 2026-11-21 08:00:00.000000000 Z
"""


def test_gradescopes_export_tells_authors_and_times_also_of_groups(tmp_path):
    around = "assignment_77_export"
    source = tmp_path / "export.zip"
    source.write_bytes(
        zipped(
            {
                f"{around}/submission_metadata.yml": GRADESCOPE.encode(),
                f"{around}/submission_1001/{FILE}": b"anna",
                f"{around}/submission_1002/labs/{FILE}": b"both",
                f"{around}/submission_1003/{FILE}": b"nobody's",
            }
        )
    )
    roster = tmp_path / "grades.csv"
    roster.write_text("First Name,Last Name,SID,Email,Status\nDan,Ott,18,dan@x.org,Missing\n")
    done = collect(source, tmp_path / "class", LAB, roster=roster)
    assert done.layout == "gradescope" and done.absent == ["Dan Ott"] and done.timeless == []
    assert taken(tmp_path / "class") == {"Anna Schmidt": b"anna", "Ben": b"both", "Cleo": b"both"}
    rows = table(tmp_path / "class")
    assert rows["Anna Schmidt"]["id"] == "Anna@x.org"
    assert times_of_csv(tmp_path / "class" / "submissions.csv")["Cleo"] == datetime(
        2026, 11, 21, 8, tzinfo=UTC
    )
    assert done.left == [f"{around}/submission_1003/{FILE}: belongs to no student"]
    source.write_bytes(zipped({"submission_metadata.yml": b"submission_1: [", f"a/{FILE}": b""}))
    with pytest.raises(InputError, match="submission_metadata.yml: not as Gradescope writes it"):
        collect(source, tmp_path / "class", LAB)


# The platforms' lists: who is in the class, and when each student handed in.

WORKSHEET = """\
Identifier,Full name,Email address,Status,Grade,Maximum grade,Last modified (submission)
Participant 101,Anna Schmidt,a@x.org,"Submitted for grading - 2 hours late - ",,100,"{anna}"
Participant 102,Ben,b@x.org,Submitted for grading - ,,100,"Friday, 20 November 2026, 9:59 PM"
Participant 103,Eva,e@x.org,Submitted for grading - ,,100,"Friday, 20 November 2026, 8:00 AM"
Participant 104,Finn,f@x.org,No submission - ,,100,-
"""
DOWNLOAD = {
    f"Anna Schmidt_101_assignsubmission_file/{FILE}": b"anna",
    f"Team 7-Ben_102_assignsubmission_file/{FILE}": b"ben",  # of a group's submission
    "Eva_103_assignsubmission_onlinetext/onlinetext.html": b"sorry",
}
CEST = timezone(timedelta(hours=1))


@pytest.mark.parametrize(
    "anna",
    [
        "Saturday, 21 November 2026, 1:59 AM",
        "Saturday, November 21, 2026, 1:59 AM",
        "21 November 2026, 01:59",
    ],
)
def test_moodles_worksheet_gives_the_times_and_who_handed_in_nothing(anna, tmp_path, capsys):
    source = tmp_path / "download.zip"
    source.write_bytes(zipped(DOWNLOAD))  # its members have one time, that of the download
    sheet = put(tmp_path, {"sheet.csv": WORKSHEET.format(anna=anna).encode()}) / "sheet.csv"
    dest = tmp_path / "class"
    words = ["collect", str(source), str(dest), "--lab", LAB, "--roster", str(sheet)]
    assert main([*words, "--zone", "Europe/Berlin"]) == 1
    said = capsys.readouterr()
    assert "1 handed in nothing: Finn" in said.out and "without a time" not in said.err
    assert "NOT COLLECTED: Eva: a text typed into Moodle, but no file" in said.err
    times = times_of_csv(dest / "submissions.csv")
    assert times["Anna Schmidt"] == datetime(2026, 11, 21, 1, 59, tzinfo=CEST)
    assert times["Ben"] == datetime(2026, 11, 20, 21, 59, tzinfo=CEST)
    rows = table(dest)
    assert {name: row["late"] for name, row in rows.items() if row["time"]} == {
        "Anna Schmidt": "yes",
        "Ben": "no",
        "Eva": "no",
    }
    problems = {each.student: each.problem for each in class_of(dest, LAB)}
    assert problems["Finn"] == NOT_HANDED_IN and rows["Finn"]["source"] == ""
    assert "No notebook could be collected (Eva_103_" in problems["Eva"]
    assert problems["Anna Schmidt"] == problems["Ben"] == ""
    # Finn hands in after all, and Anna leaves the class.
    later = tmp_path / "later.zip"
    later.write_bytes(zipped({f"Finn_104_assignsubmission_file/{FILE}": b"finn"}))
    text = WORKSHEET.replace("No submission - ,,100,-", "Submitted for grading - ,,100,{anna}")
    sheet.write_text(text.format(anna='"Sunday, 22 November 2026, 9:00 AM"').replace('""', '"'))
    assert main(["collect", str(later), *words[2:]]) == 0
    assert {each.student: each.problem for each in class_of(dest, LAB)}["Finn"] == ""


def test_who_handed_in_another_lab_is_absent_in_this_one_all_the_same(tmp_path):
    other, dest = "03-rank-mapping", tmp_path / "class"
    first = {
        f"{name}_{number}_assignsubmission_file/{other}.ipynb": b"x"
        for name, number in (("Anna Schmidt", 101), ("Ben", 102), ("Finn", 104))
    }
    collect(put(tmp_path / "1", first), dest, other)
    sheet = put(tmp_path, {"sheet.csv": WORKSHEET.format(anna="-").encode()}) / "sheet.csv"
    second = put(tmp_path / "2", {f"Ben_102_assignsubmission_file/{FILE}": b"ben"})
    done = collect(second, dest, LAB, roster=sheet)
    assert done.absent == ["Anna Schmidt", "Finn"]
    problems = {each.student: each.problem for each in class_of(dest, LAB)}
    assert problems["Finn"] == problems["Anna Schmidt"] == NOT_HANDED_IN
    assert problems["Ben"] == "" and "(not in 2)" in problems["Eva"]
    assert {each.student: each.problem for each in class_of(dest, other)} == {
        "Anna Schmidt": "",
        "Ben": "",
        "Finn": "",
    }
    # In a class without that table, a folder without the notebook is to be looked at.
    roster = put(tmp_path, {"roster.csv": b"student\nFinn\n"}) / "roster.csv"
    assert "Finn: " in {e.student: e.problem for e in class_of(dest, LAB, roster=roster)}["Finn"]


def test_a_worksheet_in_another_language_is_refused_with_the_remedy(tmp_path):
    source = put(tmp_path / "download", DOWNLOAD)
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(WORKSHEET.format(anna="Samstag, 21. November 2026, 01:59"), "utf-8")
    with pytest.raises(InputError, match="sheet.csv:2: .*Anna Schmidt.*choose English"):
        collect(source, tmp_path / "class", LAB, roster=sheet)
    sheet.write_text("Kennung,Name\n1,Anna\n", "utf-8")
    with pytest.raises(InputError, match="not a class list; it has the columns Kennung, Name"):
        collect(source, tmp_path / "class", LAB, roster=sheet)
    assert not (tmp_path / "class").exists()


def canvas_submission(number, name, time, late=False):
    """As GET /api/v1/courses/…/assignments/…/submissions?include[]=user returns it."""
    return {
        "user_id": number,
        "submitted_at": time,
        "late": late,
        "missing": time is None,
        "workflow_state": "submitted" if time else "unsubmitted",
        "user": {"id": number, "name": name, "sortable_name": name},
    }


def test_canvas_gives_times_by_its_api_and_texts_are_told_from_nothing(tmp_path):
    source = put(
        tmp_path / "download",
        {
            f"schmidtanna_LATE_9001_70001_{FILE}": b"anna",
            "evacleo_9003_text.html": b"my text",
            "evadan_LATE_9004_link.html": b"my link",
        },
    )
    pages = [
        [
            canvas_submission(9001, "Schmidt, Anna", "2026-11-20T23:10:00Z", True),
            canvas_submission(9002, "O'Neil, Ben", None),
        ],
        [
            canvas_submission(9003, "Eva, Cleo", "2026-11-20T20:10:00Z"),
            canvas_submission(9004, "Eva, Dan", "2026-11-21T20:10:00Z", True),
        ],
    ]
    listed = tmp_path / "submissions.json"
    listed.write_text("\n".join(map(json.dumps, pages)), "utf-8")  # as its pages come
    done = collect(source, tmp_path / "class", LAB, roster=listed)
    assert done.absent == ["oneilben"] and done.timeless == []
    assert [line.partition(":")[0] for line in done.left] == ["evacleo", "evadan"]
    rows = table(tmp_path / "class")
    assert rows["schmidtanna"]["time"] == "2026-11-20T23:10:00+00:00"
    assert [rows[name]["late"] for name in sorted(rows)] == ["no", "yes", "", "yes"]
    listed.write_text('[{"errors": 1}]', "utf-8")
    with pytest.raises(InputError, match=r"submissions.json: not Canvas's submissions"):
        collect(source, tmp_path / "class", LAB, roster=listed)


def test_each_member_of_a_group_of_canvas_gets_its_file_and_a_lost_one_is_no_zero(tmp_path):
    source = put(tmp_path / "download", {f"team7_9001_70001_{FILE}": b"ours"})
    shared = {"attachments": [{"id": 70001, "filename": FILE}]}
    listed = tmp_path / "submissions.json"
    submissions = [
        canvas_submission(9001, "Schmidt, Anna", "2026-11-20T23:10:00Z") | shared,
        canvas_submission(9002, "O'Neil, Ben", "2026-11-20T23:10:00Z") | shared,
        canvas_submission(9003, "Eva, Cleo", "2026-11-20T20:10:00Z"),
        canvas_submission(9004, "Ott, Dan", None),
    ]
    listed.write_text(json.dumps(submissions), "utf-8")
    done = collect(source, tmp_path / "class", LAB, roster=listed)
    assert taken(tmp_path / "class") == {"schmidtanna": b"ours", "oneilben": b"ours"}
    assert {name: row["id"] for name, row in table(tmp_path / "class").items()} == {
        "schmidtanna": "9001",
        "oneilben": "9002",
        "evacleo": "9003",
        "ottdan": "9004",
    }
    assert done.absent == ["ottdan"] and "evacleo: handed in 2026-11-20" in done.left[0]
    problems = {each.student: each.problem for each in class_of(tmp_path / "class", LAB)}
    assert problems["evacleo"] == "No notebook could be collected (not in download)."


def test_an_anonymous_assignment_of_canvas(tmp_path):
    source = put(
        tmp_path / "download",
        {f"anon_a1B2c_70001_{FILE}": b"one", f"LATE_anon_9zZ_70002_{LAB}-1.ipynb": b"two"},
    )
    done = collect(source, tmp_path / "class", LAB)
    assert done.layout == "canvas"
    assert taken(tmp_path / "class") == {"anon_a1B2c": b"one", "anon_9zZ": b"two"}
    assert {row["id"]: row["late"] for row in table(tmp_path / "class").values()} == {
        "a1B2c": "no",
        "9zZ": "yes",
    }


CLASSROOM = """\
assignment_name,github_username,roster_identifier,student_repository_name,submission_timestamp
mpi-lab,anna,anna@x.org,mpi-lab-anna,2026-11-20 22:10:05 UTC
mpi-lab,ben,ben@x.org,mpi-lab-ben,2026-11-20T21:00:00Z
mpi-lab,cleo,cleo@x.org,,
"""


def test_a_classrooms_csv_gives_times_and_a_time_by_hand_stays_while_the_file_does(tmp_path):
    clones = put(
        tmp_path / "mpi-lab-submissions",
        {
            f"mpi-lab-anna/{FILE}": b"anna",
            f"mpi-lab-ben/{FILE}": b"ben",
            "mpi-lab-ben/.git/config": b"[core]",
        },
    )
    dest = tmp_path / "class"
    assert collect(clones, dest, LAB).timeless == ["anna", "ben"]
    path = dest / "submissions.csv"
    path.write_text(path.read_text().replace("anna,,", "anna,2026-11-21T01:00Z,"), "utf-8")
    assert collect(clones, dest, LAB).timeless == ["ben"]
    assert table(dest)["anna"]["time"] == "2026-11-21T01:00Z"
    put(clones, {f"mpi-lab-anna/{FILE}": b"anna again"})
    done = collect(clones, dest, LAB)
    assert done.timeless == ["anna", "ben"] and "2026-11-21T01:00Z is removed" in done.notes[0]
    (tmp_path / "classroom.csv").write_text(CLASSROOM, "utf-8")
    done = collect(clones, dest, LAB, roster=tmp_path / "classroom.csv")
    assert done.absent == ["cleo"] and done.timeless == []
    # A spreadsheet may leave out the empty cells at the end of a row.
    path.write_text(path.read_text() + "dan,,\n", "utf-8")
    collect(clones, dest, LAB)
    assert table(dest)["dan"]["lab"] == ""
    assert times_of_csv(path)["anna"] == datetime(2026, 11, 20, 22, 10, 5, tzinfo=UTC)


def test_a_namesake_gets_nobodys_time_and_strangers_are_told(tmp_path):
    source = put(tmp_path / "1", {f"Anna_1_assignsubmission_file_/{FILE}": b"anna"})
    sheet = tmp_path / "sheet.csv"
    sheet.write_text(
        "Identifier,Full name,Status,Last modified (submission)\n"
        'Participant 2,Anna,Submitted for grading,"Friday, 20 November 2026, 9:59 PM"\n'
    )
    with pytest.raises(InputError, match="have the name 'Anna': Anna 1 and Anna 2"):
        collect(source, tmp_path / "class", LAB, roster=sheet)
    done = collect(source, tmp_path / "class", LAB, roster=sheet, with_ids=True)
    assert done.timeless == ["Anna_1"] and "Anna_2: handed in 2026-11-20" in done.left[0]
    assert done.notes == [f"Anna: Anna_1_assignsubmission_file_/{FILE}: is not in sheet.csv"]


def test_a_name_that_macos_has_decomposed_is_that_of_the_class_list(tmp_path):
    composed, decomposed = "Zoë", "Zoe\u0308"
    sheet = tmp_path / "roster.csv"
    sheet.write_text(f"student,time\n{composed},2026-11-20T12:00Z\n", encoding="utf-8")
    source = put(tmp_path / "mpi-lab-submissions", {f"mpi-lab-{decomposed}/{FILE}": b"zoe"})
    (source / f"mpi-lab-{decomposed}" / ".git").mkdir()
    done = collect(source, tmp_path / "class", LAB, roster=sheet)
    assert taken(tmp_path / "class") == {composed: b"zoe"}
    assert done.absent == done.timeless == done.notes == []

    sheet.write_text(json.dumps([canvas_submission(1, decomposed, None)]), "utf-8")
    source = put(tmp_path / "canvas", {f"{composed.lower()}_1_2_{FILE}": b"zoe"})
    done = collect(source, tmp_path / "canvas class", LAB, roster=sheet)
    assert list(done.students) == [composed.lower()] and done.absent == []


def test_a_damaged_notebook_in_a_decomposed_folder_is_told_as_such(tmp_path):
    folder = put(tmp_path / "class", {f"Zoe\u0308/{FILE}": b""}) / f"Zoe\u0308/{FILE}"
    folder.unlink()
    folder.symlink_to("/nowhere")
    table = "student,source\nZoë,Zoe\u0308/02-allgather.ipynb\n"
    (tmp_path / "class" / "submissions.csv").write_text(table, "utf-8")
    (found,) = class_of(tmp_path / "class", LAB)
    assert "is a symbolic link" in found.problem


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "Europe/Berlin")
    tzset()
    yield
    monkeypatch.undo()
    tzset()


def test_a_time_without_a_zone_is_in_that_of_this_machine_at_that_time(berlin, tmp_path):
    sheet = tmp_path / "roster.csv"
    for day in ("15 January", "15 July"):
        sheet.write_text(WORKSHEET.format(anna=f"{day} 2026, 12:00"), "utf-8")
        anna = enrolled(sheet)[0].time
        hour = 11 if day == "15 January" else 10
        assert (anna.astimezone(UTC).hour, anna.hour) == (hour, 12)
    sheet.write_text("student,time\nanna,2026-01-15T12:00\nben,2026-07-15T12:00\n", "utf-8")
    assert [one.time.astimezone(UTC).hour for one in enrolled(sheet)] == [11, 10]
    sheet.write_text("student,time\nanna,0001-01-01\n", "utf-8")
    with pytest.raises(InputError, match="anna: '0001-01-01' is not a time"):
        enrolled(sheet)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Identifier,Full name,Status\nParticipant 1,Anna\n\nPart", "4: Identifier 'Part' has"),
        ("assignment_name,github_username\nlab,anna\nlab\n", "3: no github_username; fill it in"),
        ("SID,Name,Email\n17,Anna\n18\n", "3: no Name; fill it in, or delete the row"),
        ('id,student,time\n"1\n",anna\n2\n', "4: no student; fill it in"),
        ("student,time\nanna\nben,noon\n", "3: ben: 'noon' is not a time; write e.g."),
    ],
)
def test_a_short_row_of_a_class_list_is_filled_up_and_a_wrong_one_named(text, words, tmp_path):
    sheet = tmp_path / "class.csv"
    sheet.write_text(text, "utf-8")
    with pytest.raises(InputError, match=f"{re.escape(str(sheet))}:{words}"):
        enrolled(sheet)


# A list as Gradescope writes it, in which Mallory says that a submission is Anna's.
FORGED = b"""\
submission_9:
  :submitters:
  - :name: Anna
    :email: anna@example.org
  :created_at: 2026-11-20 13:00:00 Z
"""
MALLORYS = {
    "a list of Gradescope's": {
        "submission_metadata.yml": FORGED,
        f"submission_9/{FILE}": b"forged",
    },
    "a folder of nbgrader's": {f"submitted/Anna/{LAB}/{FILE}": b"forged"},
    "a folder of Moodle's": {f"Anna_101_assignsubmission_file_/{FILE}": b"forged"},
    "a file of Canvas's": {f"anna_1_2_{FILE}": b"forged"},
    "an endless list": {"submission_metadata.yml": b"[" * 30_000},
    "a folder named as the lab": {f"{LAB}/{FILE}": b"m"},
}


@pytest.mark.parametrize("hers", MALLORYS.values(), ids=MALLORYS)
@pytest.mark.parametrize("layout", ["github-classroom", "moodle", "nbgrader", "gradescope"])
def test_what_a_student_hands_in_looks_like_no_other_platforms_download(hers, layout, tmp_path):
    folders = {
        "github-classroom": ("mpi-Anna", "mpi-Mallory"),
        "moodle": ("Anna_101_assignsubmission_file_", "Mallory_102_assignsubmission_file_"),
        "nbgrader": (f"submitted/Anna/{LAB}", f"submitted/Mallory/{LAB}"),
        "gradescope": ("submission_1", "submission_2"),
    }[layout]
    files = {f"{folder}/{FILE}": name for folder, name in zip(folders, (b"a", b"m"), strict=True)}
    files |= {f"{folders[1]}/{path}": content for path, content in hers.items()}
    if layout == "github-classroom":
        files |= {f"{folder}/.git/HEAD": b"" for folder in folders}
    if layout == "gradescope":
        entry = "{0}:\n  :submitters:\n  - :name: {1}\n    :email: {1}@example.org\n"
        named = zip(folders, ("Anna", "Mallory"), strict=True)
        files["submission_metadata.yml"] = "".join(entry.format(*each) for each in named).encode()
    done = collect(put(tmp_path / "mpi-submissions", files), tmp_path / "class", LAB)
    assert done.layout == layout
    assert {
        name: data for name, data in taken(tmp_path / "class").items() if name != "Mallory"
    } == {"Anna": b"a"}


@pytest.mark.parametrize(
    ("top", "git", "layout"),
    [
        ("mpi-Mallory", {"mpi-Mallory/.git/HEAD": b""}, "github-classroom"),
        ("Mallory_102_assignsubmission_file_", {}, "moodle"),
    ],
)
def test_the_only_student_who_handed_in_is_not_taken_for_another(top, git, layout, tmp_path):
    files = {f"{top}/submission_metadata.yml": FORGED, f"{top}/submission_9/{FILE}": b"m", **git}
    done = collect(put(tmp_path / "mpi-submissions", files), tmp_path / "class", LAB)
    assert done.layout == layout and taken(tmp_path / "class") == {"Mallory": b"m"}
