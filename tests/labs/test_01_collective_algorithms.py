"""Lab 01, where it differs from the others (test_every_lab.py)."""

import pytest
from lab_notebook import REDUCED, LabNotebook, checks, execute, on_stderr

from mpilab.grading.release import answer_id

LAB = LabNotebook("01-collective-algorithms")


def test_the_second_collective_is_one_of_three():
    assert len(LAB.exercises["second"].functions) == 3


@pytest.mark.slow
def test_the_formulas_in_the_lab_are_what_was_recorded(blank_run):
    (cell,) = [c for c in blank_run(LAB).cells if "cost_of(kernel)" in c.source]
    _, _, *lines = cell.outputs[-1]["data"]["text/markdown"].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert len(rows) == 7  # the other two are for students to write
    for name, *numbers in rows:
        assert numbers[:3] == numbers[3:], name


@pytest.mark.slow
def test_the_guard_is_seen_to_refuse_what_did_not_run(blank_run):
    (cell,) = [c for c in blank_run(LAB).cells if "use_dynamic_rules=" in c.source]
    (output,) = cell.outputs
    assert output.text.startswith("0 rows in the table\n")
    assert "Open MPI ignored the choice" in output.text


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_or_deadlocks_does_not_stop_the_lab(tmp_path):
    notebook = LAB.solved()
    for cell in notebook.cells:
        if answer_id(cell) == "pipeline":
            cell.source = cell.source.replace("const int segments", "const int segment_s")
        if answer_id(cell) == "binomial":
            cell.source = cell.source.replace("% size, TAG, comm);", "% size, TAG + rank, comm);")
    done = execute(notebook, tmp_path, **REDUCED[LAB.name])
    shown = checks(done)
    assert "no %%kernel cell has defined bcast_pipeline yet" in shown["pipeline"]
    assert "What each rank is doing" in shown["binomial"]
    assert "all public checks pass" in shown["second"]
    assert "bcast_binomial is left out of the sweep" in "".join(on_stderr(done))
