"""The figures that compare our kernels with Open MPI's: what is compared with what."""

import nbformat
import pytest

from mpilab.bench import FIGURES, figures
from mpilab.errors import MpilabError
from mpilab.kernels import openmpi
from mpilab.measure import by_level
from mpilab.models.declared import kernels_of
from mpilab.util.kit import ROOT

OTHER_THAN_OURS = {
    "allgather": {"default", "linear", "two_proc", "sparbit"},
    "allreduce": {"default", "basic_linear", "nonoverlapping"},
    "barrier": {"default", "two_proc"},
}


@pytest.mark.parametrize("collective", figures.COLLECTIVES)
def test_each_algorithm_of_open_mpi_is_held_against_ours_of_the_same_kind(collective):
    theirs = set(openmpi.algorithms()[collective].values())
    others = OTHER_THAN_OURS.get(collective, {"default"})
    ours = {figures.same_algorithm(collective, name) for name in theirs - others}
    assert {f"{collective}_{name}" for name in ours} <= set(kernels_of(collective))
    assert len(ours) == len(theirs - others)
    for name in others & theirs:
        assert f"{collective}_{name}" not in kernels_of(collective) or name == "linear"


def test_the_ratio_of_the_same_algorithm_is_ours_over_theirs(monkeypatch):
    medians = {
        ("ours", "linear", 4, 8): 2.0,
        ("openmpi", "basic_linear", 4, 8): 1.0,
        ("ours", "chain", 4, 8): 3.0,
        ("openmpi", "chain", 4, 8): 4.0,
        ("ours", "linear", 4, 64): 5.0,
        ("openmpi", "default", 4, 64): 10.0,
    }
    monkeypatch.setattr(figures, "_medians", lambda collective, number: medians)
    assert figures.same_algorithm_ratios("bcast") == [2.0, 0.75]


def test_the_best_ratio_is_the_geometric_mean_over_the_default_of_open_mpi(monkeypatch):
    medians = {
        ("ours", "linear", 2, 8): 2.0,
        ("openmpi", "default", 2, 8): 1.0,
        ("openmpi", "chain", 2, 8): 0.1,
        ("ours", "linear", 4, 64): 3.0,
        ("ours", "chain", 4, 64): 1.0,
        ("openmpi", "default", 4, 64): 8.0,
    }
    monkeypatch.setattr(figures, "_medians", lambda collective, number: medians)
    assert figures.best_ratios("bcast") == pytest.approx([0.5] * figures.SWEEPS)
    assert figures.points_lost("bcast") == [1]


def test_one_lucky_sweep_chooses_no_algorithm(monkeypatch):
    def medians(collective, number):
        return {
            ("ours", "linear", 4, 8): 1.0,
            ("ours", "chain", 4, 8): 0.1 if number == 0 else 2.0,
            ("openmpi", "default", 4, 8): 1.0,
        }

    sweeps = [medians("bcast", number) for number in range(figures.SWEEPS)]
    monkeypatch.setattr(figures, "_medians", lambda collective, number: sweeps[number])
    assert figures.best_ratios("bcast") == pytest.approx([1.0] * figures.SWEEPS)


@pytest.mark.parametrize(("times", "lost"), [([1.2, 1.2, 1.2, 1.2, 1.3], 1), ([1, 1, 1, 1, 3], 0)])
def test_a_point_is_lost_if_its_whole_interval_is(monkeypatch, times, lost):
    sweeps = [
        {("ours", "linear", 4, 8): seconds, ("openmpi", "default", 4, 8): 1.0} for seconds in times
    ]
    monkeypatch.setattr(figures, "_medians", lambda collective, number: sweeps[number])
    assert figures.points_lost("bcast") == [lost]


@pytest.mark.parametrize("collective", figures.BOUNDED_KERNELS)
def test_what_is_held_against_the_links_is_a_kernel_by_kernel_ratio(collective, monkeypatch):
    """The best kernel with the best segment counts; only kernels of the kit are named."""
    asked = {}

    def over_least(of, order, size, *, names, segments):
        asked.update(of=of, order=order, size=size, names=names)
        return {(name, segment): 1.5 - segment / 1e6 for name in names for segment in segments}

    monkeypatch.setattr(figures.by_level, "over_least", over_least)
    measure, _, aim, _ = FIGURES[f"{collective}_rr_2MB_vs_bound"]
    cut = {"bcast": 4096, "reduce": 4096, "allreduce": 65536}.get(collective, 0)
    assert (measure(), aim) == ([1.5 - cut / 1e6], "≤ 1.05")
    assert (asked["of"], asked["order"], asked["size"]) == (collective, "rr", 2 << 20)
    assert set(asked["names"]) <= set(kernels_of(collective))


def test_a_kernel_over_the_least_time_is_simulated_in_that_order(require_tool):
    """A flat tree sends the message into each group once in SEQ order, and more often in RR."""
    require_tool("smpirun")
    names = ["bcast_binomial", "bcast_pipelined"]
    seq, rr = (
        by_level.over_least("bcast", order, 65536, names=names, segments=(0, 1024))
        for order in ("seq", "rr")
    )
    assert set(seq) == {(name, segment) for name in names for segment in (0, 1024)}
    assert 1 <= seq["bcast_pipelined", 1024] == rr["bcast_pipelined", 1024] < 1.5
    assert seq["bcast_binomial", 0] < rr["bcast_binomial", 0]


def test_every_collective_has_the_three_figures():
    for collective in figures.COLLECTIVES:
        for name in ("same_algorithm_ratio", "best_ratio", "points_lost"):
            assert f"{collective}_{name}" in FIGURES


def test_every_lab_has_a_figure_of_running_all():
    labs = [path.stem.replace("-", "_") for path in ROOT.glob("labs/source/*.py")]
    assert len(labs) >= 7
    assert all(f"run_all_{lab}_seconds" in FIGURES for lab in labs)
    assert all(f"run_all_solved_{lab}_seconds" in FIGURES for lab in labs)


def test_processor_time_is_that_of_the_program_and_what_it_waits_for():
    busy = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    (spent,) = figures._processor_seconds(["-c", parent], 1)
    assert spent > 0.3


def notebook(folder, *sources):
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in sources])
    nbformat.write(made, folder / "lab.ipynb")
    return folder / "lab.ipynb"


@pytest.mark.slow
def test_the_first_result_of_a_lab_is_the_first_output_below_its_cluster(tmp_path):
    lab = notebook(
        tmp_path,
        "print('no result yet')",
        "# Cluster(4) would start here",
        "import sys; print('not a result', file=sys.stderr)",
        "print('a result')",
        "raise SystemError('is not run')",
    )
    assert 0 < figures._first_result(lab) < 60
    with pytest.raises(MpilabError, match="no cell below the start of the cluster has a result"):
        figures._first_result(notebook(tmp_path, "print('Cluster(4)')"))
