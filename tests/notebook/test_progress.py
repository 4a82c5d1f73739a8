"""A student's progress, from the saved notebooks and the last results of the public checks."""

import json
import shutil

import nbformat
import pytest
from IPython.core.interactiveshell import InteractiveShell

import mpilab
from mpilab.cluster.engines import Cluster
from mpilab.grading.release import solutions
from mpilab.kernels.build import build
from mpilab.notebook import lab, session
from mpilab.util.kit import ROOT

LAB = "00-first-contact"
SOURCE = ROOT / "labs" / "source" / f"{LAB}.py"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A student's folder with only lab 00; this process is the kernel of its notebook."""
    shutil.copy(ROOT / "labs" / f"{LAB}.ipynb", tmp_path)
    monkeypatch.setenv("JPY_SESSION_NAME", str(tmp_path / f"{LAB}.ipynb"))
    return tmp_path


def answer(folder, **sources):
    """Save the notebook with these texts in its answer cells."""
    path = folder / f"{LAB}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    for cell in notebook.cells:
        cell.source = sources.get(cell.metadata.get("nbgrader", {}).get("grade_id"), cell.source)
    nbformat.write(notebook, path)


def first_lab():
    found = mpilab.progress().labs[0]
    assert found.lab == LAB
    return found


def states(found):
    return {each.id: each.words for each in found.answers}


@pytest.fixture
def define():
    """A function that runs a cell that defines a Python function, as a notebook does: its source
    remains available."""
    shell = InteractiveShell.instance()

    def run(name, source):
        shell.run_cell(source)
        return shell.user_ns[name]

    yield run
    InteractiveShell.clear_instance()


def test_a_fresh_folder_has_begun_nothing_and_other_labs_are_not_there(folder):
    found = first_lab()
    assert (found.done, len(found.answers)) == (0, 5)
    assert set(states(found).values()) == {"not started"}
    others = mpilab.progress().labs[1:]
    assert len(others) == 6
    assert {each.trouble for each in others} == {"the notebook is not in this folder"}
    assert not (folder / ".mpilab-checks").exists()


def test_a_written_answer_is_done_and_one_that_can_be_checked_is_not_until_it_was(folder):
    answer(folder, by_distance="Because of α.", placement="def placement(a, b, c):\n    pass")
    found = first_lab()
    assert states(found)["by_distance"] == "answered"
    assert states(found)["placement"] == "answered, not checked yet"
    assert found.done == 1


def test_a_python_answer_follows_its_check_until_it_is_changed(folder, define):
    right = solutions(SOURCE)["placement"]
    wrong = right.replace("if rank < free:", "if rank <= free:")
    assert wrong != right
    checks = lab.Lab(LAB)
    answer(folder, placement=wrong)
    assert not checks.check("placement", define("placement", wrong)).passed
    assert states(first_lab())["placement"] == "not all public checks pass yet"
    answer(folder, placement=right)
    assert states(first_lab())["placement"].startswith("changed since the last check")
    assert checks.check("placement", define("placement", right)).passed
    assert states(first_lab())["placement"] == "all public checks pass"
    assert first_lab().done == 1


def test_a_kernel_that_passes_its_checks_is_done(folder, tmp_path):
    cell = solutions(SOURCE)["bcast_linear"]
    answer(folder, bcast_linear=cell)
    session.kernels["bcast_linear"] = build("\n" + cell.partition("\n")[2], tmp_path)
    try:
        with Cluster(4, progress=False):
            assert lab.Lab(LAB).check("bcast_linear").passed
    finally:
        session.kernels.clear()
    assert states(first_lab())["bcast_linear"] == "all public checks pass"


def test_a_grader_s_run_leaves_nothing_behind(folder, monkeypatch, define):
    monkeypatch.delenv("JPY_SESSION_NAME")
    monkeypatch.chdir(folder)
    right = solutions(SOURCE)["placement"]
    lab.Lab(LAB).check("placement", define("placement", right))
    assert [path.name for path in folder.iterdir()] == [f"{LAB}.ipynb"]


@pytest.mark.parametrize(
    "content", ["{", "[1]", '{"placement": 3}', '{"placement": {"answer": 1}}']
)
def test_a_file_of_checks_that_somebody_changed_counts_as_none(folder, content):
    answer(folder, placement="x = 1")
    (folder / ".mpilab-checks").mkdir()
    (folder / ".mpilab-checks" / f"{LAB}.json").write_text(content)
    assert states(first_lab())["placement"] == "answered, not checked yet"


@pytest.mark.parametrize("content", ["", "{", '{"cells": 3}'])
def test_a_broken_notebook_is_told_and_ends_nothing(folder, content):
    (folder / f"{LAB}.ipynb").write_text(content)
    assert "cannot be read: get a fresh copy" in first_lab().trouble


def test_the_table_names_each_answer_and_escapes_what_is_in_it(folder):
    shown = mpilab.progress()
    html, text = shown._repr_html_(), repr(shown)
    assert f'<a href="{LAB}.ipynb">' in html and "0&nbsp;of&nbsp;5" in html
    titles = [
        each["title"]
        for each in json.loads((ROOT / "labs" / "checks" / "answers.json").read_text())[
            LAB
        ].values()
    ]
    assert all(title in html and title in text for title in titles)
