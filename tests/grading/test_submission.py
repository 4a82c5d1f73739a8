"""Finding and reading what a class submitted, whatever it is."""

import io
import json
import os
import stat
import struct
import tracemalloc
import zipfile

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from mpilab.errors import InputError, Ungradable
from mpilab.grading import submission
from mpilab.grading.submission import (
    Submission,
    class_of,
    find_submissions,
    parse,
    student_name,
)

LAB = "02-allgather"
FILE = f"{LAB}.ipynb"
GOOD = nbformat.writes(new_notebook(cells=[new_code_cell("x = 1")])).encode()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def put(path, data=GOOD):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def test_a_class_is_not_held_in_memory(tmp_path):
    large = 8 * 2**20
    for number in range(6):
        put(tmp_path / f"student{number}" / FILE, GOOD + b" " * large)
    tracemalloc.start()
    try:
        found = find_submissions(tmp_path, LAB)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < large / 8 and most < 3 * large
    assert all(each.data == GOOD + b" " * large for each in found)


def problems(found):
    return {each.student: each.problem for each in found}


def test_a_folder_of_students_is_read_sorted_and_without_its_other_files(tmp_path):
    for name in ("zoe", "Anna", "ben"):
        put(tmp_path / name / FILE)
    put(tmp_path / "expected.csv", b"")
    put(tmp_path / ".git" / "config", b"")
    put(tmp_path / "__MACOSX" / FILE, b"")
    found = find_submissions(tmp_path, LAB)
    assert found == [Submission(name, LAB, GOOD) for name in ("Anna", "ben", "zoe")]


@pytest.mark.parametrize("around", ["", "class-2024/"])
def test_a_zip_of_the_class_is_read_like_the_folder(tmp_path, around):
    path = put(
        tmp_path / "class.zip",
        zipped(
            {
                f"{around}ben/{FILE}": GOOD,
                f"{around}anna/{FILE}": GOOD,
                f"{around}empty/": "",
                f"{around}anna/.ipynb_checkpoints/{FILE}": "old",
                f"__MACOSX/{around}anna/._{FILE}": "junk",
            }
        ),
    )
    found = find_submissions(path, LAB)
    assert [each.student for each in found] == ["anna", "ben", "empty"]
    assert found[0].data == GOOD and found[2].problem == f"empty: no {FILE}"


def test_a_folder_of_zips_takes_the_student_from_the_zips_name(tmp_path):
    put(tmp_path / "anna.zip", zipped({FILE: GOOD}))
    put(tmp_path / "ben.zip", zipped({f"my lab\\{FILE}": GOOD, "notes.txt": "hi"}))
    put(tmp_path / "cleo.zip", zipped({f"a/{FILE}": GOOD, f"b/{FILE}": GOOD}))
    found = find_submissions(tmp_path, LAB)
    assert [each.data for each in found] == [GOOD, GOOD, b""]
    assert "2 notebooks of that name" in found[2].problem


def test_one_students_zip_on_its_own_is_a_class_of_one(tmp_path):
    path = put(tmp_path / "anna.zip", zipped({FILE: GOOD}))
    assert find_submissions(path, LAB) == [Submission("anna", LAB, GOOD)]


def test_an_empty_folder_and_a_wrong_file_name_are_problems_that_name_the_file(tmp_path):
    (tmp_path / "anna").mkdir()
    put(tmp_path / "ben" / f"{LAB} (1).ipynb")
    found = problems(find_submissions(tmp_path, LAB))
    assert found["anna"] == f"anna: no {FILE}"
    assert f"'{LAB} (1).ipynb'" in found["ben"]


def test_a_student_who_handed_in_twice_is_asked_which(tmp_path):
    put(tmp_path / "anna" / FILE)
    put(tmp_path / "anna.zip", zipped({FILE: GOOD}))
    (only,) = find_submissions(tmp_path, LAB)
    assert "handed in 2 times" in only.problem and only.data == b""


def test_a_loose_notebook_is_listed_and_not_forgotten(tmp_path):
    put(tmp_path / "anna" / FILE)
    put(tmp_path / "ben.ipynb")
    assert "beside the students' folders" in problems(find_submissions(tmp_path, LAB))["ben"]


def test_links_are_not_followed_wherever_they_lead(tmp_path):
    secret = put(tmp_path / "secret" / FILE)
    box = tmp_path / "class"
    put(box / "good" / FILE)
    (box / "file").mkdir()
    (box / "file" / FILE).symlink_to(secret)
    (box / "sibling").mkdir()
    (box / "sibling" / FILE).symlink_to(box / "good" / FILE)
    (box / "folder").symlink_to(secret.parent)
    (box / "dangling").symlink_to(tmp_path / "nowhere")
    (box / "circle").symlink_to(box / "circle")
    (box / "packed.zip").symlink_to(put(tmp_path / "x.zip", zipped({FILE: GOOD})))
    found = find_submissions(box, LAB)
    for each in found:
        if each.student != "good":
            assert "symbolic link" in each.problem and each.data == b""
    assert len(found) == 7


def test_a_named_pipe_does_not_hang_the_grader(tmp_path):
    (tmp_path / "anna").mkdir()
    os.mkfifo(tmp_path / "anna" / FILE)
    os.mkfifo(tmp_path / "ben.zip")
    found = problems(find_submissions(tmp_path, LAB))
    assert "is not a file" in found["anna"] and "is not a file" in found["ben"]


def test_a_notebook_above_the_size_limit_is_a_problem(tmp_path, monkeypatch):
    monkeypatch.setattr(submission, "NOTEBOOK_LIMIT", 2 * 1024 * 1024)
    put(tmp_path / "anna" / FILE, b" " * (2 * 1024 * 1024 + 1))
    put(tmp_path / "ben" / FILE)
    found = problems(find_submissions(tmp_path, LAB))
    assert "larger than 2 MiB" in found["anna"] and found["ben"] == ""


def test_one_bad_zip_never_stops_the_class(tmp_path):
    put(tmp_path / "good" / FILE)
    put(tmp_path / "noise.zip", b"no zip at all")
    put(tmp_path / "empty.zip", b"")
    put(tmp_path / "climber.zip", zipped({f"../{FILE}": GOOD}))
    put(tmp_path / "absolute.zip", zipped({f"/etc/{FILE}": GOOD}))
    put(tmp_path / "drive.zip", zipped({f"C:\\x\\{FILE}": GOOD}))
    put(tmp_path / "bomb.zip", zipped({FILE: b"\0" * 19_000_000}))
    put(tmp_path / "large.zip", zipped({FILE: GOOD, "x": b"\0" * 70_000_000}))
    put(tmp_path / "many.zip", zipped({f"{n}": "" for n in range(10_001)}))
    put(tmp_path / "nothing.zip", zipped({"notes.txt": ""}))
    link = zipfile.ZipInfo(FILE)
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    put(tmp_path / "link.zip", zipped({link: "/etc/passwd"}))
    secret = bytearray(zipped({FILE: GOOD}))
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        secret[secret.index(mark) + offset] |= 1
    put(tmp_path / "secret.zip", secret)
    torn = bytearray(zipped({FILE: GOOD}))
    torn[len(FILE) + 40] ^= 0xFF
    put(tmp_path / "torn.zip", torn)
    odd = io.BytesIO()
    with zipfile.ZipFile(odd, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(FILE, GOOD)
    put(tmp_path / "odd.zip", odd.getvalue())

    found = problems(find_submissions(tmp_path, LAB))
    expected = {
        "good": "",
        "noise": "not a readable zip",
        "empty": "not a readable zip",
        "climber": "a path outside it",
        "absolute": "a path outside it",
        "drive": "a path outside it",
        "bomb": "unpacks to 19000000 bytes",
        "large": "66 MiB unpacked, more than 64",
        "many": "more than 10000",
        "nothing": f"no {FILE}",
        "link": "symbolic link",
        "secret": "encrypted",
        "torn": "is damaged",
        "odd": "unusual way",
    }
    assert found.keys() == expected.keys()
    for student, words in expected.items():
        assert words in found[student] and bool(words) == bool(found[student]), student


def class_zip(path, sizes):
    """A zip of one notebook per size, in bytes, as students run and hand them in."""
    noise = os.urandom(2**20)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for number, size in enumerate(sizes):
            data = GOOD + noise.hex().encode()
            archive.writestr(f"mpi/student{number:03}/{FILE}", data[:size].ljust(size))
    return path


def test_a_class_of_120_executed_notebooks_in_one_zip_is_read(tmp_path):
    found = find_submissions(class_zip(tmp_path / "class.zip", [2**20] * 120), LAB)
    assert set(problems(found).values()) == {""} and len(found) == 120
    assert all(len(each.data) == 2**20 for each in found)
    assert submission.only_lab(tmp_path / "class.zip") == LAB


def test_one_notebook_above_the_limit_does_not_refuse_the_class(tmp_path, monkeypatch):
    monkeypatch.setattr(submission, "NOTEBOOK_LIMIT", 2**20)
    path = class_zip(tmp_path / "class.zip", [1000, 2**20 + 1, 2**20])
    told = problems(find_submissions(path, LAB))
    assert "larger than 1 MiB; clear the outputs" in told.pop("student001")
    assert set(told.values()) == {""}


def test_a_class_zip_has_a_limit_that_grows_with_its_submissions(tmp_path, monkeypatch):
    monkeypatch.setattr(submission, "ARCHIVE_LIMIT", 2**20)
    monkeypatch.setattr(submission, "NOTEBOOK_LIMIT", 2**19)
    small = class_zip(tmp_path / "small.zip", [2**19] * 40)
    assert len(find_submissions(small, LAB)) == 40
    with zipfile.ZipFile(small, "a") as archive:
        archive.writestr("mpi/student000/movie.mp4", b"x" * 2**21)
    limit = "more than 21 for 40 submissions; unpack it .* set MPILAB_ZIP_LIMIT=23M"
    with pytest.raises(InputError, match=f"22 MiB unpacked, {limit}"):
        find_submissions(small, LAB)
    monkeypatch.setenv("MPILAB_ZIP_LIMIT", "23M")
    assert len(find_submissions(small, LAB)) == 40
    monkeypatch.setenv("MPILAB_ZIP_LIMIT", "much")
    with pytest.raises(InputError, match="MPILAB_ZIP_LIMIT=much: 'much' is not a size"):
        find_submissions(small, LAB)


def test_a_class_zip_may_have_more_members_than_that_of_a_student(tmp_path):
    path = tmp_path / "class.zip"
    files = {f"student{number}/{name}": b"" for number in range(20) for name in range(600)}
    put(path, zipped({f"anna/{FILE}": GOOD, **files}))
    found = problems(find_submissions(path, LAB))
    assert found["anna"] == "" and len(found) == 21


def test_a_class_zip_whose_directory_claims_to_be_huge_is_refused_unread(tmp_path):
    data = bytearray(zipped({f"anna/{FILE}": GOOD}))
    data[-10:-6] = struct.pack("<I", 500_000_000)
    path = put(tmp_path / "class.zip", data)
    with pytest.raises(InputError, match="too large"):
        find_submissions(path, LAB)


def test_a_class_zip_that_leads_out_of_itself_is_refused_as_a_whole(tmp_path):
    path = put(tmp_path / "class.zip", zipped({f"anna/{FILE}": GOOD, "../../etc/x": ""}))
    with pytest.raises(InputError, match="a path outside it"):
        find_submissions(path, LAB)


def test_a_linked_notebook_in_a_class_zip_is_that_students_problem_alone(tmp_path):
    link = zipfile.ZipInfo(f"ben/{FILE}")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    path = put(tmp_path / "class.zip", zipped({f"anna/{FILE}": GOOD, link: "../anna"}))
    found = problems(find_submissions(path, LAB))
    assert found["anna"] == "" and "symbolic link" in found["ben"]


def test_nothing_to_grade_is_an_error_that_says_what_was_expected(tmp_path):
    for path in (tmp_path, tmp_path / "missing", put(tmp_path / "notes.txt", b"x")):
        with pytest.raises(InputError, match=f"<student>/{LAB}"):
            find_submissions(path, LAB)


@pytest.mark.parametrize(
    "name", ["", "  ", ".", "..", "a/b", "a\\b", "a\nb", "a\x1b[31m", "x" * 101, "\u0958" * 80]
)
def test_a_name_that_could_do_harm_is_refused(name):
    with pytest.raises(InputError, match="rename"):
        student_name(name)


def test_a_name_that_turns_the_text_around_or_is_no_text_is_refused():
    for name in ("anna\u202egpj", os.fsdecode(b"\xff\xfe")):
        with pytest.raises(InputError, match="control characters"):
            student_name(name)


def test_the_two_spellings_of_an_umlaut_are_one_student():
    assert student_name("Zoe\u0308") == student_name("Zo\u00eb") == "Zo\u00eb"


def test_a_folder_with_a_refused_name_is_listed_under_a_printable_one(tmp_path):
    put(tmp_path / "an\x1bna" / FILE)
    (only,) = find_submissions(tmp_path, LAB)
    assert only.student == "an\ufffdna" and "control characters" in only.problem


def test_the_digest_follows_the_bytes_and_the_problem():
    digests = {
        Submission("a", LAB, data, problem).digest for data in (b"x", b"y") for problem in "pq"
    }
    assert len(digests) == 4
    assert Submission("a", LAB, b"x").digest == Submission("b", LAB, b"x").digest


def shape(**changes):
    content = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": [], **changes}
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the file is empty"),
        (b'{"cells": [}', r"not valid JSON \(line 1, column 12"),
        (b"<!DOCTYPE html>", "web page"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        (GOOD.decode().encode("utf-16"), "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (
            b'{"nbformat": 4, "cells": [], "metadata": ' + b'{"a":' * 900 + b"1" + b"}" * 901,
            "deeply",
        ),
        (b'{"a": ' + b"9" * 5000 + b"}", "not usable as JSON"),
        (b"[1, 2]", "not a notebook"),
        (b'{"nbformat": 3, "worksheets": []}', "old format 3; upgrade it with"),
        (shape(nbformat=5), "newer than the grader knows"),
        (shape(cells={}), "has no cells"),
        (shape(cells=[{"source": 3}]), "cell 1 has no source"),
        (shape(cells=["x"]), "cell 1 has no source"),
        (shape(cells=[{"source": "\ud800"}]), "half a character"),
    ],
)
def test_what_is_no_notebook_is_ungradable_with_a_reason_that_helps(data, words):
    with pytest.raises(Ungradable, match=words) as refusal:
        parse(Submission("anna", LAB, data))
    assert str(refusal.value).startswith(f"anna/{FILE}: ")


def test_a_submission_with_a_problem_is_ungradable_for_that_reason():
    with pytest.raises(Ungradable, match="^lost$"):
        parse(Submission("anna", LAB, problem="lost"))


def test_a_notebook_of_any_minor_format_and_with_a_byte_order_mark_is_read():
    cell = {"cell_type": "code", "source": ["a\n", "b"], "metadata": {}, "outputs": []}
    notebook = parse(
        Submission("anna", LAB, b"\xef\xbb\xbf" + shape(nbformat_minor=0, cells=[cell]))
    )
    assert notebook.cells[0].source == "a\nb"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ('anna,"two\nlines"\n,no name\n', r"4: '' is not a student's name; correct the row"),
        ("a/b,x\n", "2: 'a/b': a student's name can't hold '/'"),
        ("anna,x\n\nAnna,y\n", "4: 'Anna' occurs twice, also in line 2; keep one row"),
        ("Zo\u00eb,x\nZoe\u0308,y\n", "3: 'Zo\u00eb' occurs twice, also in line 2"),
    ],
)
def test_a_row_of_a_roster_that_names_nobody_or_a_student_again_is_named(rows, words, tmp_path):
    put(tmp_path / "class" / "anna" / FILE)
    roster = put(tmp_path / "roster.csv", f"student,note\n{rows}".encode())
    with pytest.raises(InputError, match=f"{roster}:{words}"):
        class_of(tmp_path / "class", LAB, roster=roster)
