"""Answers, and nothing else, are copied into the trusted lab."""

import ast
import builtins
import copy

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from mpilab.errors import InputError
from mpilab.grading.answers import answer_cells, is_blank, lift, transplant, without_examples
from mpilab.grading.release import trusted
from mpilab.util.kit import ROOT

every_lab = pytest.mark.parametrize(
    "lab", sorted((ROOT / "labs" / "source").glob("*.py")), ids=lambda path: path.stem
)


def answer(name, source, make=new_code_cell):
    meta = {"nbgrader": {"grade_id": name, "solution": True}}
    return make(source, metadata=meta, id=name)


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


EXAMPLES = """\
import numpy as np
import mpilab
from mpilab.plots.style import show
from mpilab.plots.schedule import rounds
cluster = mpilab.Cluster(4).start()
"""


def left_of(*cells, answered="%%kernel ring\nint ring(void);", after="lab.check('ring')"):
    """The sources before the answer that `without_examples` leaves, after a first cell that
    imports and starts, and all that follows."""
    made = [new_code_cell(source) for source in (EXAMPLES, *cells)]
    notebook = new_notebook(cells=[*made, answer("ring", answered), new_code_cell(after)])
    before = copy.deepcopy(notebook)
    shortened = without_examples(notebook)
    assert notebook == before
    assert [shortened.cells[0].source, *(cell.source for cell in shortened.cells[-2:])] == [
        EXAMPLES,
        answered,
        after,
    ]
    assert len(shortened.cells) == len(notebook.cells)
    return [cell.source for cell in shortened.cells[1:-2]]


def test_cells_before_the_first_answer_that_only_show_something_are_empty():
    assert left_of(
        "drawn = mpilab.predict('')\nshow(rounds(range(8)))",
        "drawn.answer('8', right=8)",
        "mpilab.run('allgather_sends_first', count=25_000)",
        "for row in np.sort([2, 1]):\n    print(row)",
    ) == ["", "", "", ""]


def test_an_example_stays_if_a_later_cell_may_use_its_names():
    run = "example = mpilab.run('allgather_ring')"
    assert left_of(run) == [""]
    assert left_of(run, after="print(example)") == [run]
    assert left_of(run, answered="def cost(p):\n    return example.rounds") == [run]
    assert left_of(run, answered="%%kernel ring\nint example;") == [""]
    function = "def shown():\n    return example"
    assert left_of(run, function, after="shown()") == [run, function]
    assert left_of(run, function) == ["", ""]
    extended = "example.append(1)"
    assert left_of(run, extended, "example.show('rounds')", after="print(example)") == [
        run,
        extended,
        "",
    ]


@pytest.mark.parametrize(
    "source",
    [
        "%%kernel example\nint example(void);",
        "%matplotlib inline",
        "import sys",
        "cluster.restart()",
        "mpilab.Cluster(8).start()",
        "np.random.default_rng = None",
        "open('file', 'w')",
        "values = {}\nvalues['a'] = 1",
        "subprocess.run(['make'])",
    ],
)
def test_a_cell_that_leaves_something_behind_stays(source):
    assert left_of(source) == [source]


@every_lab
def test_without_examples_every_lab_still_defines_what_it_uses(lab):
    notebook = without_examples(trusted(lab))
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


def test_without_illustrations_and_what_needs_them():
    def cell(source, **metadata):
        return new_code_cell(source, metadata=metadata)

    sources = {
        "table = [1]\nmany = simulate(table)": "",
        "%%kernel slow\nint slow(void);": "",
        "print(many)": "",
        "fastest = min(many)": "",
        "print(fastest)": "",
        "print(table)": "print(table)",  # another cell binds it, too
        "def first(many):\n    return many[0]": "def first(many):\n    return many[0]",
        "%%kernel many\nint many(void);": "%%kernel many\nint many(void);",
    }
    tagged = [cell(source, tags=["illustration"]) for source in list(sources)[:2]]
    others = [cell(source) for source in list(sources)[2:]]
    mine = answer("mine", "many + fastest")
    made = new_notebook(cells=[mine, cell("table = []"), *tagged, *others])
    left = [each.source for each in without_examples(made).cells]
    assert left == [mine.source, "table = []", *sources.values()]


@every_lab
def test_no_answer_and_no_check_is_left_out_of_a_graded_lab(lab):
    before = trusted(lab)
    for cell, left in zip(before.cells, without_examples(before).cells, strict=True):
        if "grade_id" in cell.metadata.get("nbgrader", {}):
            assert left.source == cell.source
    assert not any("simulated.sweep" in cell.source for cell in without_examples(before).cells)


def test_lab_02_is_run_without_its_deadlocks_and_schedules():
    notebook = without_examples(trusted(ROOT / "labs" / "source" / "02-allgather.py"))
    text = "\n".join(cell.source for cell in notebook.cells)
    assert 'mpilab.run("allgather_sends_first"' not in text
    assert 'schedule("bruck", 5)' not in text
    assert "cluster = mpilab.Cluster(RANKS).start()" in text and "lab.check(" in text
