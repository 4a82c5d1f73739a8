"""A file is either complete, or as it was before."""

import ctypes
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from mpilab.util.files import atomic_write, replace_folder


def test_text_and_bytes_are_written_as_they_are_into_folders_that_are_made(tmp_path):
    path = atomic_write(tmp_path / "new" / "page.html", "a\r\nµ\n")
    assert path.read_bytes() == b"a\r\n\xc2\xb5\n"
    assert atomic_write(path, b"\x00\xff").read_bytes() == b"\x00\xff"
    assert list(path.parent.iterdir()) == [path]


def test_the_umask_decides_the_mode_of_a_new_file_and_a_mode_that_was_set_stays(tmp_path):
    path = tmp_path / "marks.csv"
    before = os.umask(0o027)
    try:
        assert atomic_write(path, "new").stat().st_mode & 0o777 == 0o640
        path.chmod(0o600)
        assert atomic_write(path, "newer").stat().st_mode & 0o777 == 0o600
    finally:
        os.umask(before)


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
def test_where_a_step_fails_the_old_file_is_still_there_and_nothing_else(
    step, tmp_path, monkeypatch
):
    path = atomic_write(tmp_path / "marks.csv", "old")

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match="No space left"):
        atomic_write(path, "new")
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]


def test_what_a_killed_writer_left_is_taken_over(tmp_path):
    (tmp_path / ".page.html.part").write_text("half a page, and longer than the new one")
    path = atomic_write(tmp_path / "page.html", "whole")
    assert path.read_text() == "whole" and list(tmp_path.iterdir()) == [path]


def test_a_scratch_file_that_goes_while_it_is_looked_at_is_made_again(tmp_path, monkeypatch):
    scratch = tmp_path / ".page.part"
    stat, looks = os.stat, []

    def stat_too_late(path, **kwargs):
        if path == scratch:
            looks.append(path)
            if len(looks) == 1:  # at this moment, another writer puts its page into place
                os.replace(scratch, tmp_path / "page")
        return stat(path, **kwargs)

    monkeypatch.setattr(os, "stat", stat_too_late)
    assert atomic_write(tmp_path / "page", "whole").read_text() == "whole"
    assert len(looks) == 2 and not scratch.exists()


def test_of_many_writers_at_once_one_wins_and_nothing_is_mixed(tmp_path):
    texts = [letter * 1_000 for letter in "abcdefgh"]
    with ThreadPoolExecutor(len(texts)) as pool:
        for _ in range(100):
            list(pool.map(lambda text: atomic_write(tmp_path / "page", text), texts))
            assert (tmp_path / "page").read_text() in texts
    assert [path.name for path in tmp_path.iterdir()] == ["page"]


@pytest.mark.parametrize("there", ["exchanged", "renamed", "empty", "none"])
def test_a_folder_takes_the_place_of_another_and_its_rights(there, tmp_path, monkeypatch):
    new, target = tmp_path / "new", tmp_path / "target"
    atomic_write(new / "file", "new")
    if there in ("exchanged", "renamed"):
        atomic_write(target / "file", "old")
        atomic_write(target / "more", "old")
    elif there == "empty":
        target.mkdir()
    if target.exists():
        target.chmod(0o2770)
    if there == "renamed":  # without renameat2, as on macOS
        monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    replace_folder(new, target)
    assert [path.name for path in target.iterdir()] == ["file"]
    assert (target / "file").read_text() == "new"
    assert os.listdir(tmp_path) == ["target"]
    if there != "none":
        assert target.stat().st_mode & 0o7777 == 0o2770


def test_where_a_folder_cannot_take_the_place_the_old_one_is_put_back(tmp_path, monkeypatch):
    target = tmp_path / "target"
    atomic_write(target / "file", "old")
    monkeypatch.setattr(ctypes, "CDLL", lambda *_, **__: object())
    (tmp_path / "new").mkdir()
    original = type(target).rename

    def busy(path, other):
        if path.name == "new":
            raise OSError(16, "Device or resource busy", str(path))
        return original(path, other)

    monkeypatch.setattr(type(target), "rename", busy)
    with pytest.raises(OSError, match="busy"):
        replace_folder(tmp_path / "new", target)
    assert (target / "file").read_text() == "old"
