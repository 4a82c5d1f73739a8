"""Lab 02, where it differs from the others (test_every_lab.py)."""

import re

import pytest
from lab_notebook import REDUCED, LabNotebook, checks, execute

from mpilab.grading.release import answer_id

LAB = LabNotebook("02-allgather")


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_or_deadlocks_does_not_stop_the_lab(tmp_path):
    notebook = LAB.solved()
    for cell in notebook.cells:
        if answer_id(cell) == "nonblocking_all":
            cell.source = cell.source.replace("MPI_Waitall(started,", "MPI_Waitall(start")
        if answer_id(cell) == "pairwise":
            cell.source = cell.source.replace("dest, TAG, recvbuf", "dest, TAG + rank, recvbuf")
    done = execute(notebook, tmp_path, **REDUCED[LAB.name])
    compiled = next(cell for cell in done.cells if answer_id(cell) == "nonblocking_all")
    panel = compiled.outputs[0]["data"]["text/plain"]
    assert re.search(r"It does not compile: Line \d+: 'start' is not declared", panel)
    assert "'started'" in panel
    shown = checks(done)
    assert "no %%kernel cell has defined" in shown["nonblocking_all"]
    assert "It looks like: mismatched tags." in shown["pairwise"]
    assert "What each rank is doing" in shown["pairwise"]
