"""Logs that are kept beside the notebook."""

import os
from pathlib import Path

import pytest

from mpilab.panel import log


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return tmp_path


def test_a_log_is_found_under_a_counter_and_its_kind(folder):
    assert log.keep("noise", kind="deadlock") == Path("mpilab-logs/0001-deadlock.txt")
    assert log.keep("more", kind="crash") == Path("mpilab-logs/0002-crash.txt")
    assert (folder / "mpilab-logs" / "0002-crash.txt").read_text() == "more"


def test_the_last_20_are_kept_and_the_counter_goes_on():
    for number in range(25):
        log.keep(str(number))
    names = sorted(os.listdir(log.DIRECTORY))
    assert len(names) == 20
    assert (names[0], names[-1]) == ("0006-failure.txt", "0025-failure.txt")


def test_files_that_are_not_ours_stay(folder):
    (folder / log.DIRECTORY).mkdir()
    (folder / log.DIRECTORY / "notes.txt").write_text("mine")
    for number in range(22):
        log.keep(str(number))
    assert (folder / log.DIRECTORY / "notes.txt").read_text() == "mine"


def test_where_nothing_can_be_written_there_is_no_log_and_no_error(folder):
    (folder / log.DIRECTORY).write_text("a file, not a folder")
    assert log.keep("noise") is None


def test_the_path_is_relative_to_the_notebook_wherever_the_program_has_gone(folder, monkeypatch):
    (folder / "work").mkdir()
    monkeypatch.setenv("JPY_SESSION_NAME", str(folder / "lab.ipynb"))
    monkeypatch.chdir(folder / "work")
    assert log.keep("noise") == Path("work/mpilab-logs/0001-failure.txt")


def test_a_kind_never_leads_out_of_the_folder(folder):
    path = log.keep("noise", kind="../../Evil Kind")
    assert path == Path("mpilab-logs/0001-evil-kind.txt")
    assert (folder / path).is_file()


def test_an_endless_log_is_cut_to_its_end(folder):
    path = log.keep("x" * (log.MOST_BYTES + 100) + "the end")
    data = (folder / path).read_bytes()
    assert len(data) < log.MOST_BYTES + 100
    assert data.startswith(b"[cut here]") and data.endswith(b"the end")
