"""What is taken from an untrusted notebook: text, and nothing else."""

import json
import os

import pytest

from mpilab.errors import Ungradable
from mpilab.grading import submission
from mpilab.grading.submission import bare, find_submissions, printed, read, with_outputs

LAB = "02-allgather"
CELL = {"cell_type": "code", "source": ["a\n", "b"], "metadata": {}}


def data(*cells, **more):
    return json.dumps({"nbformat": 4, "cells": cells, **more}).encode()


@pytest.mark.parametrize(
    "odd",
    [
        {"id": []},
        {"id": 5},
        {"metadata": []},
        {"metadata": {"nbgrader": "x"}},
        {"cell_type": {}},
        {"metadata": {"nbgrader": {"grade_id": {}, "solution": 1}, "tags": 5}},
        {"outputs": 5},
        {"outputs": [5, {}, [], {"output_type": []}, {"output_type": "stream", "text": {}}]},
        {"outputs": [{"output_type": "error", "traceback": 5, "ename": []}]},
        {"outputs": [{"output_type": "display_data", "data": {"text/plain": [5, {}]}}]},
    ],
)
def test_a_value_of_another_type_is_left_out(odd):
    content = read(data(CELL | odd, CELL), "here")
    for notebook in (bare(content), with_outputs(content)):
        assert [cell.source for cell in notebook.cells] == ["a\nb", "a\nb"]
        assert printed(notebook) == []


def test_text_of_outputs_is_kept_and_nothing_else():
    outputs = [
        {"output_type": "stream", "name": "stderr", "text": ["one\n", "two"]},
        {"output_type": "execute_result", "data": {"text/plain": "42", "text/html": "<b>42</b>"}},
        {"output_type": "error", "ename": "E", "evalue": "v", "traceback": ["line", 5]},
    ]
    metadata = {"nbgrader": {"grade_id": "ring", "solution": True}, "other": "x"}
    notebook = with_outputs(read(data({**CELL, "metadata": metadata, "outputs": outputs}), "here"))
    assert [(each["kind"], each["text"]) for each in printed(notebook)] == [
        ("error stream", "one\ntwo"),
        ("value", "42"),
        ("error", "line"),
    ]
    assert "ring" in printed(notebook)[0]["where"]
    assert "html" not in str(notebook) and "other" not in str(notebook)


def test_injected_parameters_stay_unshown():
    cell = {
        **CELL,
        "metadata": {"tags": ["injected-parameters"]},
        "outputs": [{"output_type": "stream", "text": "hidden"}],
    }
    assert printed(with_outputs(read(data(cell), "here"))) == []


def test_a_notebook_that_would_unfold_is_refused_before_it_does(monkeypatch):
    monkeypatch.setattr(submission, "PART_LIMIT", 50)
    assert read(data({**CELL, "outputs": [{}] * 20}), "here")
    with pytest.raises(Ungradable, match="^here: more than 50 lists and objects"):
        read(data({**CELL, "outputs": [{}] * 50}), "here")
    monkeypatch.setattr(submission, "CELL_LIMIT", 3)
    with pytest.raises(Ungradable, match="4 cells, more than 3"):
        read(data(*[CELL] * 4), "here")


def test_a_refused_name_is_never_another_students(tmp_path):
    for name in ("ada", "ada" + " " * 100 + "x", "ada\x1b", "é" * 119, "  "):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{LAB}.ipynb").write_bytes(data(CELL))
    found = {each.student: each.problem for each in find_submissions(tmp_path, LAB)}
    assert len(found) == 5 and found["ada"] == ""
    assert found["(no name)"] and found["ada…"] and found["ada\ufffd"]
    assert all(len(os.fsencode(f"{name}.html")) < 255 for name in found)


def test_a_file_with_a_second_name_is_a_problem(tmp_path):
    (tmp_path / "class" / "ada").mkdir(parents=True)
    (tmp_path / "secret").write_bytes(data(CELL))
    os.link(tmp_path / "secret", tmp_path / "class" / "ada" / f"{LAB}.ipynb")
    (only,) = find_submissions(tmp_path / "class", LAB)
    assert "is a hard link: the file has 2 names" in only.problem and only.data == b""
