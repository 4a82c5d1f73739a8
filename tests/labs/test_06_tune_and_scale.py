"""Lab 06, where it differs from the others (test_every_lab.py)."""

import re
from math import isnan

import nbformat
import pytest
from lab_notebook import REDUCED, LabNotebook, checks, execute, shown

from mpilab.measure.crossover import KINDS, LINK, OTHERS, crossings, read, simulate
from mpilab.models import cost
from tests.right_answers import answers_of

LAB = LabNotebook("06-tune-and-scale")
crossover = answers_of(LAB.name).crossover


def told(notebook, words):
    """The output of the one code cell that contains these words."""
    (cell,) = [c for c in notebook.cells if c.cell_type == "code" and words in c.source]
    return shown(cell)


@pytest.mark.parametrize("algorithm", ["scatter_allgather", "scatter_allgather_ring"])
@pytest.mark.parametrize("ranks", [4, 64, 4096])
def test_at_the_crossover_both_cost_the_same(algorithm, ranks):
    link = LINK
    size = crossover(algorithm, ranks, link.alpha, link.beta)
    tree, other = (cost("bcast", name, ranks, size, link) for name in ("binomial", algorithm))
    assert tree == pytest.approx(other)


@pytest.mark.parametrize("ranks", [8, 64, 4096])
def test_at_the_pipelines_crossover_its_best_segments_cost_as_much_as_the_tree(ranks):
    link = LINK
    size = crossover("pipeline", ranks, link.alpha, link.beta)
    best = min(
        (ranks - 2 + pieces) * (link.alpha + size / pieces * link.beta)
        for pieces in range(1, 1 << 13)
    )
    assert best == pytest.approx(cost("bcast", "binomial", ranks, size, link), rel=0.01)
    # Below it, the tree is cheaper; above it, the tree is not.
    assert crossover("pipeline", ranks, 2 * link.alpha, link.beta) == pytest.approx(2 * size)


def test_the_crossovers_that_are_handed_out_fall_for_the_scatter_and_grow_for_the_pipeline():
    rows = read()
    scatter, pipeline = (
        list(crossings(rows, "flat", name).values()) for name in ("scatter_allgather", "pipeline")
    )
    assert scatter == sorted(scatter, reverse=True) and len(scatter) >= 5
    # On 4 ranks, a chain is hardly longer than a tree; on 4,096, no message was long enough.
    pipeline = [size for size in pipeline[1:] if not isnan(size)]
    assert pipeline == sorted(pipeline) and len(pipeline) >= 4
    for name in OTHERS:
        for kind in KINDS:
            assert 0 not in crossings(rows, kind, name).values()


@pytest.mark.slow
def test_what_is_handed_out_is_what_is_simulated():
    rows = read()
    again = simulate([4, 64], [1024, 65536], algorithms=["binomial", "pipeline"])
    handed = {row[:4]: row[5] for row in rows.tolist()}
    assert len(again) == 12
    for row in again.tolist():
        assert handed[row[:4]] == pytest.approx(row[5], rel=1e-3), row


@pytest.mark.slow
def test_the_solved_lab_shows_what_it_promises(solved_run):
    done = solved_run(LAB)
    # The rules that result from the measurements, and whether Open MPI would send the same without
    # them, differ from run to run.
    proofs = told(done, "proofs = ")
    assert re.search(r"\d+ cases?: .*\d+ took effect|\d+ cannot be told apart", proofs), proofs
    assert "'64K' is read as 64" in told(done, "broken = ")
    assert "default/rules" in told(done, "compared = ")
    assert "simulated here" in told(done, "ALGORITHMS = ")
    alternative = told(done, "KERNELS = [")
    assert "simulated on groups-4x2x2 rr" in alternative
    assert "slurm/kernel.sbatch bcast_own" in told(done, "command = [")


@pytest.mark.slow
def test_without_simgrid_the_lab_shows_our_figures(tmp_path):
    notebook = LAB.solved()
    hide = nbformat.v4.new_code_cell(
        "import os\nfrom mpilab.kernels import simgrid as build\n\n"
        "_which = build.shutil.which\n"
        "build.shutil.which = lambda name, *rest: None if name.startswith('smpi') "
        "else _which(name, *rest)"
    )
    first_import = next(i for i, c in enumerate(notebook.cells) if "import mpilab\n" in c.source)
    notebook.cells.insert(first_import + 1, hide)
    done = execute(notebook, tmp_path, **REDUCED[LAB.name])
    assert "Not simulated: " in told(done, "ALGORITHMS = ")
    assert ", ours" in told(done, "ALGORITHMS = ")
    assert "These were simulated by us" in told(done, "KERNELS = [")
    assert all("all public checks pass" in text for text in checks(done).values())
