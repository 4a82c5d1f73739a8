"""Answers, and nothing else, are copied into the trusted lab."""

import ast
import builtins
import copy

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from mpilab.errors import InputError
from mpilab.grading.answers import answer_cells, exercises_only, is_blank, lift, transplant
from mpilab.grading.release import trusted
from mpilab.util.kit import ROOT

every_lab = pytest.mark.parametrize(
    "lab", sorted((ROOT / "labs" / "source").glob("*.py")), ids=lambda path: path.stem
)


def answer(name, source, make=new_code_cell):
    meta = {"nbgrader": {"grade_id": name, "solution": True}}
    return make(source, metadata=meta, id=name)


def check(source):
    meta = {"nbgrader": {"grade_id": "check", "solution": False, "locked": True}}
    return new_code_cell(source, metadata=meta)


@pytest.fixture
def lab():
    return new_notebook(
        cells=[
            new_code_cell("from mpilab import check", id="setup"),
            answer("ring", "%%kernel ring\n// YOUR CODE HERE"),
            new_code_cell("check('ring')", id="check"),
            answer("why", "YOUR ANSWER HERE", new_markdown_cell),
        ]
    )


@pytest.fixture
def handed_in(lab):
    notebook = copy.deepcopy(lab)
    notebook.cells[1].source = "%%kernel ring\r\nreal work"
    notebook.cells[3].source = "because"
    return notebook


def test_only_the_sources_of_answer_cells_go_into_the_trusted_copy(lab, handed_in):
    handed_in.cells[0].source = "check = lambda _: 'full marks'"
    handed_in.cells[2].source = "steal()"
    handed_in.cells.insert(0, new_code_cell("import os; os._exit(0)"))
    handed_in.cells[2].outputs = [{"output_type": "stream", "name": "stdout", "text": "20/20"}]
    handed_in.cells[2].metadata.tags = ["injected-parameters"]
    handed_in.metadata.kernelspec = {"name": "evil", "display_name": "evil"}
    before = copy.deepcopy(lab)
    notebook, problems = transplant(lab, handed_in)
    expected = copy.deepcopy(lab)
    expected.cells[1].source = "%%kernel ring\nreal work"
    expected.cells[3].source = "because"
    assert notebook == expected
    assert lab == before and problems == []


def test_a_cell_type_stays_the_trusted_one(lab, handed_in):
    handed_in.cells[3] = answer("why", "!rm -rf ~", new_code_cell)
    notebook, _ = transplant(lab, handed_in)
    assert notebook.cells[3].cell_type == "markdown"


def test_a_missing_answer_counts_as_blank_with_a_note(lab, handed_in):
    del handed_in.cells[1]
    notebook, (problem,) = transplant(lab, handed_in)
    assert notebook.cells[1].source == lab.cells[1].source
    assert (problem.grade_id, problem.kind, problem.ungradable) == ("ring", "missing", False)
    assert "counts as blank" in problem.reason


def test_two_different_cells_of_one_name_make_that_exercise_ungradable(lab, handed_in):
    handed_in.cells.append(answer("ring", "another try"))
    notebook, (problem,) = transplant(lab, handed_in)
    assert problem.ungradable and "cells 2 and 5" in problem.reason
    assert notebook.cells[1].source == lab.cells[1].source
    assert notebook.cells[3].source == "because"


def test_a_copy_with_the_same_text_is_no_problem(lab, handed_in):
    handed_in.cells.append(copy.deepcopy(handed_in.cells[1]))
    assert lift(lab, handed_in) == ({"ring": "%%kernel ring\nreal work", "why": "because"}, [])


def test_answers_without_metadata_are_recognized_by_their_cell_ids(lab, handed_in):
    for cell in handed_in.cells:
        cell.metadata = {}
    answers, problems = lift(lab, handed_in)
    assert answers == {"ring": "%%kernel ring\nreal work", "why": "because"}
    assert [(p.kind, p.ungradable) for p in problems] == [("moved", False)] * 2


def test_metadata_of_any_shape_are_not_trusted_and_do_no_harm(lab, handed_in):
    for metadata in (None, [], {"nbgrader": 3}, {"nbgrader": {"grade_id": ["ring"]}}):
        handed_in.cells[0].metadata = metadata
        assert lift(lab, handed_in)[0]["ring"] == "%%kernel ring\nreal work"


def test_a_notebook_with_no_answer_of_the_lab_is_ungradable_and_not_a_zero(lab, handed_in):
    for cell in handed_in.cells:
        cell.metadata, cell.id = {}, "x" + cell.id
    answers, problems = lift(lab, handed_in)
    assert answers == {} and [p.grade_id for p in problems] == ["ring", "why"]
    assert all(p.ungradable and "none of the 2 answer cells" in p.reason for p in problems)


def test_an_unchanged_or_empty_answer_is_blank_and_a_changed_one_is_not():
    stub = "def f():\n    # YOUR CODE HERE\n    raise NotImplementedError"
    assert is_blank(stub, stub) and is_blank(stub + "  \n\n", stub) and is_blank(" \n", stub)
    assert not is_blank(stub + "\nprint(1)", stub)


def test_the_answers_of_our_own_notebook_come_as_a_dict(lab):
    assert answer_cells(lab) == {
        "ring": "%%kernel ring\n// YOUR CODE HERE",
        "why": "YOUR ANSWER HERE",
    }
    lab.cells.append(answer("ring", ""))
    with pytest.raises(InputError, match="twice"):
        answer_cells(lab)


SETUP = """\
import numpy as np
import mpilab
cluster = mpilab.Cluster(4).start()
lab = mpilab.Lab("ring")
"""


def left_of(*cells, answered="%%kernel ring\nint ring(void);", after="lab.check('ring')"):
    """What `exercises_only` leaves of cells between the first one and the answer."""
    made = [new_code_cell(source) for source in (SETUP, *cells)]
    notebook = new_notebook(cells=[*made, answer("ring", answered), check(after)])
    before = copy.deepcopy(notebook)
    shortened = exercises_only(notebook)
    assert notebook == before
    assert len(shortened.cells) == len(notebook.cells)
    left = [cell.source for cell in shortened.cells]
    assert [left[0], *left[-2:]] == [SETUP, answered, after]
    return left[1:-2]


@pytest.mark.parametrize(
    "source",
    [
        "drawn = mpilab.predict('')\nshow(rounds(range(8)))",
        "mpilab.run('allgather_sends_first', count=25_000)",
        "table = mpilab.sweep(['ring'], ranks=[2])",
        "if lab.check('ring').passed:\n    table = mpilab.sweep(['ring'], ranks=[2])",
        "lab.check('ring')",
        "[ring for ring in lab]",
        "print(*cluster.apply(print))",
        "%%kernel example\nint example(void);",
        "import sys",
    ],
)
def test_a_cell_that_no_exercise_needs_is_empty(source):
    assert left_of(source) == [""]


@pytest.mark.parametrize(
    "source",
    [
        "%matplotlib inline",
        "!make",
        "other = mpilab.Cluster(8).start()",
        "cluster.stop()",
    ],
)
def test_a_cell_that_leaves_something_behind_stays(source):
    assert left_of(source) == [source]


def test_a_cell_stays_if_a_later_one_needs_its_names():
    run = "example = mpilab.run('ring')"
    assert left_of(run, after="lab.check('ring', example)") == [run]
    function = "def shown():\n    return example"
    checks = "lab.check('ring', shown)"
    assert left_of(run, function, after=checks) == [run, function]
    assert left_of(function, run, after=checks) == [function, run]
    assert left_of(run, "def shown(example):\n    return example", after=checks)[0] == ""
    kernel = "%%kernel example\nint example(void);"
    assert left_of(kernel, "%time example") == [kernel, "%time example"]


def test_an_answer_in_python_gets_what_is_imported_and_nothing_else():
    cells = "import sys", "from os import path as sys_path", "table = mpilab.sweep(['ring'])"
    answered = "def cost(p):\n    return sys.maxsize + len(table)"
    assert left_of(*cells, answered=answered) == ["import sys", "", ""]
    assert left_of(*cells, answered="%%kernel ring\nint sys;") == ["", "", ""]


@every_lab
def test_what_is_left_of_a_lab_defines_what_it_uses(lab):
    notebook = exercises_only(trusted(lab))
    trees = []
    for cell in notebook.cells:
        if cell.cell_type == "code" and not cell.source.startswith("%"):
            trees += ast.walk(ast.parse(cell.source))
    names = [node for node in trees if isinstance(node, ast.Name)]
    known = {node.id for node in names if not isinstance(node.ctx, ast.Load)} | set(dir(builtins))
    for node in trees:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            known |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.ExceptHandler):
            known.add(node.name)
    assert {node.id for node in names if isinstance(node.ctx, ast.Load)} - known == set()


@every_lab
def test_no_answer_and_no_check_is_left_out_of_a_graded_lab(lab):
    before = trusted(lab)
    for cell, left in zip(before.cells, exercises_only(before).cells, strict=True):
        if "grade_id" in cell.metadata.get("nbgrader", {}):
            assert left.source == cell.source


@every_lab
def test_no_measurement_and_no_prediction_is_left_of_a_graded_lab(lab):
    left = [cell.source for cell in exercises_only(trusted(lab)).cells if cell.cell_type == "code"]
    for word in ("predict(", ".sweep(", "osu.run(", "simulated.run(", "mpilab.run("):
        assert not any(word in source for source in left)
    assert any(source.startswith("lab.check(") for source in left)
    assert any("mpilab.Cluster(RANKS).start()" in source for source in left)
