"""Logs that are kept beside the notebook."""

import os
from pathlib import Path

import pytest

from mpilab.notebook import panel


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("JPY_SESSION_NAME", raising=False)
    return tmp_path


def test_a_log_is_found_under_a_counter_and_its_kind(folder):
    assert panel.keep("noise", kind="deadlock") == Path("mpilab-logs/0001-deadlock.txt")
    assert panel.keep("more", kind="crash") == Path("mpilab-logs/0002-crash.txt")
    assert (folder / "mpilab-logs" / "0002-crash.txt").read_text() == "more"


def test_the_last_20_are_kept_and_the_counter_goes_on():
    for number in range(25):
        panel.keep(str(number))
    names = sorted(os.listdir(panel.DIRECTORY))
    assert len(names) == 20
    assert (names[0], names[-1]) == ("0006-failure.txt", "0025-failure.txt")


def test_files_that_are_not_ours_stay(folder):
    (folder / panel.DIRECTORY).mkdir()
    (folder / panel.DIRECTORY / "notes.txt").write_text("mine")
    for number in range(22):
        panel.keep(str(number))
    assert (folder / panel.DIRECTORY / "notes.txt").read_text() == "mine"


def test_where_nothing_can_be_written_there_is_no_log_and_no_error(folder):
    (folder / panel.DIRECTORY).write_text("a file, not a folder")
    assert panel.keep("noise") is None


def test_the_path_is_relative_to_the_notebook_wherever_the_program_has_gone(folder, monkeypatch):
    (folder / "work").mkdir()
    monkeypatch.setenv("JPY_SESSION_NAME", str(folder / "lab.ipynb"))
    monkeypatch.chdir(folder / "work")
    assert panel.keep("noise") == Path("work/mpilab-logs/0001-failure.txt")


def test_a_kind_never_leads_out_of_the_folder(folder):
    path = panel.keep("noise", kind="../../Evil Kind")
    assert path == Path("mpilab-logs/0001-evil-kind.txt")
    assert (folder / path).is_file()


def test_an_endless_log_is_cut_to_its_end(folder):
    path = panel.keep("x" * (panel.MOST_BYTES + 100) + "the end")
    data = (folder / path).read_bytes()
    assert len(data) < panel.MOST_BYTES + 100
    assert data.startswith(b"[cut here]") and data.endswith(b"the end")
