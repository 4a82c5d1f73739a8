"""Downloads from platforms become folders that can be graded, with times, and no student's work is
lost, mixed up or overwritten."""

import csv
import io
import os
import tracemalloc
import zipfile
from datetime import UTC, datetime

import pytest

from mpilab.cli import main
from mpilab.course.collect import collect
from mpilab.course.export import read_roster
from mpilab.course.manual import times_of_csv
from mpilab.errors import InputError
from mpilab.grading import submission
from mpilab.grading.submission import find_submissions

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
    assert (datetime.fromisoformat(row["time"]), row["id"], row["late"]) == (NOON, "101", "")
    assert times_of_csv(tmp_path / "class" / "submissions.csv")["Dan"] == NOON
    assert [note.partition(":")[0] for note in done.notes] == ["Dan", "Cleo"]
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
    times = times_of_csv(tmp_path / "class" / "submissions.csv")
    assert set(times) == set(names) == set(taken(tmp_path / "class"))
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


def test_the_newest_of_several_files_counts_whatever_it_is_called(tmp_path):
    early, late = datetime(2026, 11, 19, 8), datetime(2026, 11, 19, 9)
    source = tmp_path / "download.zip"
    source.write_bytes(
        zipped(
            {
                f"Anna_1_assignsubmission_file_/{LAB} (1).ipynb": (b"later", late),
                f"Anna_1_assignsubmission_file_/{FILE}": (b"earlier", early),
                "Anna_1_assignsubmission_file_/scratch.ipynb": (b"other", datetime(2026, 11, 20)),
                f"Ben_2_assignsubmission_file_/a/{FILE}": (b"one", early),
                f"Ben_2_assignsubmission_file_/b/{FILE}": (b"two", early),
                "Cleo_3_assignsubmission_file_/x.ipynb": b"x",
                "Cleo_3_assignsubmission_file_/y.ipynb": b"y",
            }
        )
    )
    done = collect(source, tmp_path / "class", LAB)
    assert taken(tmp_path / "class") == {"Anna": b"later"}
    assert "the newest of 2" in done.notes[0]
    assert "Ben: which is the newest?" in done.left[0] and "Cleo: several notebooks" in done.left[1]


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
