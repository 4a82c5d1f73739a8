"""Lab 04, where it differs from the others (test_every_lab.py)."""

import ast
import re

import nbformat
import pytest
from lab_notebook import REDUCED, LabNotebook, checks, execute, shown

from mpilab.grading.referee import Referee
from mpilab.grading.release import answer_id, solutions
from mpilab.grading.sandbox import open_sandbox
from mpilab.measure import by_level

LAB = LabNotebook("04-topology")


@pytest.fixture(scope="module")
def referee():
    return Referee(open_sandbox(slot=6))


def lost(verdict):
    return {item.item for item in verdict.items if item.outcome != "pass"}


def reasons(verdict):
    return {item.item: item.reason for item in verdict.items}


@pytest.mark.slow
def test_any_order_that_crosses_as_asked_is_right(referee):
    """A different one from the solution's: the groups, and the hosts of each, in reverse order."""
    source = solutions(LAB.source)["hosts"] + (
        "\n\n_first = hosts\n\n\ndef hosts(root, goal):\n"
        '    return [f"n{5 - int(name[1])}" for name in _first(root, goal)]\n'
    )
    verdict = referee.judge(LAB.exercises["hosts"], source, blank=False)
    assert lost(verdict) == set(), reasons(verdict)


@pytest.mark.slow
def test_the_formulas_of_the_solution_are_what_the_lab_records(solved_run):
    (told,) = [shown(c) for c in solved_run(LAB).cells if "for way, (kernel, order)" in c.source]
    rows = re.findall(r"^(\w+) +(\w+) .* recorded (\[.*\]), yours (\[.*\])$", told, re.MULTILINE)
    assert [(way, shape) for way, shape, _, _ in rows] == [
        (way, shape)
        for way in ("flat_seq", "flat_rr", "levels", "gather_levels")
        for shape in ("4x2x1", "1x2x4")
    ]
    for way, shape, recorded, yours in rows:
        assert ast.literal_eval(recorded) == ast.literal_eval(yours), (way, shape)


@pytest.mark.slow
def test_a_rank_holds_no_more_than_its_budget_in_the_lab(blank_run):
    (told,) = [shown(c) for c in blank_run(LAB).cells if "for budget in" in c.source]
    units = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20}
    rows = re.findall(r"budget +([\d.]+) (\w+): a rank holds at most ([\d.]+) (\w+)", told)
    assert len(rows) == 3
    for budget, unit, held, of in rows:
        assert 0 < float(held) * units[of] <= float(budget) * units[unit]


@pytest.mark.slow
def test_without_emulated_hosts_the_lab_shows_our_figures(tmp_path):
    """As on macOS, or in the grader's sandbox; and with a kernel that does not compile."""
    notebook = LAB.solved()
    for cell in notebook.cells:
        if answer_id(cell) == "two_level":
            cell.source = cell.source.replace("int place;", "int plaice;")
    refuse = nbformat.v4.new_code_cell(
        "from mpilab.errors import SetupError\n\n\n"
        "def _refuse(*_, **__):\n    raise SetupError('no namespaces')\n\n\n"
        "by_level.measure = _refuse"
    )
    first_import = next(i for i, c in enumerate(notebook.cells) if "import mpilab\n" in c.source)
    notebook.cells.insert(first_import + 1, refuse)
    done = execute(notebook, tmp_path, **REDUCED[LAB.name])
    (told,) = [shown(cell) for cell in done.cells if "told = " in cell.source]
    assert "Not here: no namespaces" in told
    assert f"ours, {by_level.read()['machine'][0]}" in told
    assert "no %%kernel cell has defined bcast_two_level yet" in checks(done)["two_level"]
    assert "all public checks pass" in checks(done)["reordered"]
