"""Whole sweeps: their results, what is left out, and continuing after a kill."""

import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest
from c_kernels import build_kernels
from living import is_alive

from mpilab.cases.case import COLLECTIVES, Case
from mpilab.errors import InputError
from mpilab.kernels import build, openmpi
from mpilab.measure import sweep
from mpilab.measure import sweep as sweep_run
from mpilab.measure.sweep_table import read
from mpilab.runners.mpirun import run_cases

ROOT = Path(__file__).resolve().parents[2]
QUICK = dict(repetitions=3, warmup=1, progress=False, oversubscribe=True)


def points(table):
    return [
        (str(row["library"]), str(row["algorithm"]), int(row["ranks"]), int(row["bytes"]))
        for row in table
        if row["repetition"] == 0
    ]


@pytest.mark.parametrize(
    "collective", ["bcast", "gather", "scatter", "reduce", "allgather", "allreduce", "barrier"]
)
def test_every_algorithm_of_every_collective_is_timed(collective):
    report = sweep.Report()
    table = sweep.sweep(collective, ranks=[4], sizes="256", segment=64, report=report, **QUICK)
    assert report.warnings() == []
    known = [
        a
        for a in sweep_run.Plan.make(collective, [4], "256", "ours,openmpi").algorithms
        if a.name != "two_proc"
    ]
    assert [point[:2] for point in points(table)] == [(a.library, a.name) for a in known]
    assert len(table) == 3 * len(known)
    assert (table["span_s"] > 0).all() and (table["span_s"] >= table["max_s"]).all()
    assert (table["max_s"] >= table["mean_s"]).all() and (table["mean_s"] >= table["min_s"]).all()
    assert set(table["bytes"]) == {0 if collective == "barrier" else 256}
    assert len(report.defaults) == 1


def test_an_open_mpi_that_cannot_choose_at_run_time_gets_an_mpirun_for_each(monkeypatch):
    jobs = []

    def note(library, function, cases, **options):
        jobs.append(
            {
                name: value
                for name, value in options["settings"].items()
                if name.startswith("OMPI_MCA_coll_tuned_bcast")
            }
        )
        assert {case.openmpi for case in cases} == {-1}
        return run_cases(library, function, cases, **options)

    monkeypatch.setattr(sweep_run, "run_cases", note)
    monkeypatch.setattr(openmpi, "version", lambda: "mpirun (Open MPI) 5.0.5")
    report = sweep.Report()
    table = sweep.sweep(
        "bcast",
        ranks=[4],
        sizes="256",
        segment=64,
        report=report,
        algorithms="ours:chain,openmpi:1,openmpi:3,openmpi:9",
        **QUICK,
    )
    assert report.warnings() == []
    assert [point[:2] for point in points(table)] == [
        ("ours", "chain"),
        ("openmpi", "basic_linear"),
        ("openmpi", "pipeline"),
        ("openmpi", "scatter_allgather_ring"),
    ]
    name = "OMPI_MCA_coll_tuned_bcast_algorithm"
    assert {name: "3", f"{name}_segmentsize": "64"} in jobs
    assert {} in jobs  # ours


def test_the_guard_also_refuses_what_the_settings_of_an_mpirun_did_not_bring_about(monkeypatch):
    monkeypatch.setenv("OMPI_MCA_coll_tuned_use_dynamic_rules", "false")
    report = sweep.Report()
    table = sweep.sweep(
        "bcast",
        ranks=[4],
        sizes="256",
        choose="mca",
        report=report,
        algorithms="openmpi:1,openmpi:9",
        **QUICK,
    )
    assert len(table) == 0
    assert "ignored the choice" in " ".join(report.warnings())


def test_ours_and_open_mpis_run_in_one_job_in_turn(monkeypatch):
    runs = []

    def note(library, function, cases, **options):
        runs.append([case for case in cases if case.repetitions == 3])
        return run_cases(library, function, cases, **options)

    monkeypatch.setattr(sweep_run, "run_cases", note)
    sweep.sweep("bcast", ranks=[2], sizes="8,16", algorithms="ours:linear,openmpi:1", **QUICK)
    (timed,) = [run for run in runs if run]
    assert [(case.function, case.count) for case in timed] == [
        ("bcast_linear", 8),
        ("bcast_openmpi", 8),
        ("bcast_linear", 16),
        ("bcast_openmpi", 16),
    ]
    assert not any(case.record or case.dump for case in timed)


def test_a_wrong_result_is_never_timed(monkeypatch):
    bcast = COLLECTIVES["bcast"]

    def spoilt(case, before):
        after = bcast.after(case, before)
        if case.count == 16:
            after[1][70] ^= 1
        return after

    monkeypatch.setitem(COLLECTIVES, "bcast", replace(bcast, after=spoilt))
    with pytest.warns(
        UserWarning,
        match="ours:linear with 2 ranks and 16 bytes is omitted: its "
        "result is wrong: rank 1: block 0 is wrong",
    ):
        table = sweep.sweep("bcast", ranks=[2], sizes="8,16", algorithms="ours:linear", **QUICK)
    assert points(table) == [("ours", "linear", 2, 8)]


RIGHT = """
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int i = 0; i < size; i++)
        MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);"""
BODIES = {
    "pairwise": RIGHT,
    "ring": "if (recvcount == 2) return MPI_ERR_OTHER;" + RIGHT,
    "bruck": "if (recvcount == 2 && rank == 1) raise(SIGSEGV);" + RIGHT,
}


def test_what_crashes_or_returns_an_error_is_left_out_with_the_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(build, "KERNELS", build_kernels(tmp_path, BODIES))
    report = sweep.Report()
    table = sweep.sweep(
        "allgather",
        ranks=[2],
        sizes="1,2,4",
        report=report,
        **QUICK,
        algorithms="ours:pairwise,ours:ring,ours:bruck",
    )
    assert [(name, size) for _, name, _, size in points(table)] == [
        ("pairwise", 1),
        ("ring", 1),
        ("bruck", 1),
        ("pairwise", 2),
        ("pairwise", 4),
        ("ring", 4),
    ]
    assert report.warnings() == [
        "ours:ring with 2 ranks and 2 bytes is omitted: it returned the MPI error 16",
        "ours:bruck with 2 ranks and 2 bytes is omitted: crash: rank 1 ended with SIGSEGV",
        "ours:bruck with 2 ranks and 4 bytes is omitted: it had already failed, and was not "
        "tried again",
    ]


def test_alone_a_rank_has_no_choice_of_algorithms():
    report = sweep.Report()
    table = sweep.sweep(
        "bcast",
        ranks=[1],
        sizes="8",
        report=report,
        **QUICK,
        algorithms="ours:linear,openmpi:default,openmpi:1",
    )
    assert points(table) == [("ours", "linear", 1, 8), ("openmpi", "default", 1, 8)]
    assert len(report.left_out) == 1


def test_what_is_done_is_not_done_again_and_more_can_be_added(tmp_path, monkeypatch):
    out = tmp_path / "sweep.csv"
    options = dict(out=out, algorithms="ours:linear,openmpi:1", ranks=[2], **QUICK)
    first = sweep.sweep("bcast", sizes="8,16", **options)
    before = out.read_text()
    monkeypatch.setattr(sweep_run, "run_cases", lambda *a, **o: pytest.fail("nothing is missing"))
    assert (sweep.sweep("bcast", sizes="8,16", **options) == first).all()
    assert points(sweep.sweep("bcast", sizes="16", **options)) == points(first)[2:]
    monkeypatch.undo()
    more = sweep.sweep("bcast", sizes="8,16,32", **options)
    assert out.read_text().startswith(before)
    assert points(more) == points(first) + [
        ("ours", "linear", 2, 32),
        ("openmpi", "basic_linear", 2, 32),
    ]
    with pytest.raises(InputError, match="segment 0, not 4"):
        sweep.sweep("bcast", sizes="8", segment=4, **options)


def test_a_sweep_that_was_killed_goes_on_where_it_was_and_leaves_nothing_behind(tmp_path):
    out = tmp_path / "sweep.csv"
    command = [
        sys.executable,
        "-m",
        "mpilab",
        "sweep",
        "barrier",
        "--ranks",
        "2",
        "--algorithms",
        "ours,openmpi",
        "--repetitions",
        "500",
        "--warmup",
        "1",
        "-o",
        str(out),
        "--no-progress",
    ]
    process = subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    family = psutil.Process(process.pid)
    children = []
    while not out.exists() or out.read_text().count("\n") < 2:
        children = family.children(recursive=True)
        try:
            process.wait(0.01)
            break
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    process.wait()
    psutil.wait_procs(children, timeout=300)
    assert not [child for child in children if is_alive(child.pid)]
    before = points(read(out))
    with open(out, "a") as file:
        file.write("barrier,openmpi,tr")  # torn
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert said.returncode == 0, said.stderr
    table = read(out)
    assert points(table)[: len(before)] == before
    assert len(points(table)) == len(set(points(table))) == len(table) // 500
    algorithms = sweep_run.Plan.make("barrier", [2], None, "ours,openmpi").algorithms
    assert {point[:2] for point in points(table)} == {(a.library, a.name) for a in algorithms}


def test_one_mpirun_runs_several_functions():
    names = ("bcast_linear", "bcast_binomial", "bcast_openmpi")
    cases = [Case("bcast", 2, 8, "byte", function=name, record=False) for name in names]
    with tempfile.TemporaryDirectory() as kept:
        results = run_cases(build.need(build.KERNELS), "gather_linear", cases, keep=kept)
        assert sorted(path.name for path in Path(kept).iterdir()) == sorted(
            f"{case}.{rank}.out" for case in range(3) for rank in range(2)
        )
    assert [result.function for result in results] == list(names)
    for result in results:
        expected = result.case.expected()
        assert all(np.array_equal(o.received, expected[o.rank]) for o in result.outputs)


def test_an_unknown_way_to_choose_is_refused():
    with pytest.raises(InputError, match="choose='magic': write 'mpi_t' or 'mca'"):
        sweep.sweep("bcast", ranks=[2], sizes="8", choose="magic", **QUICK)


@pytest.mark.parametrize(("left", "met"), [([50, 60], True), ([29, 60], False)])
def test_a_barrier_without_messages_is_one_if_the_clock_says_so(left, met):
    recording = SimpleNamespace(messages=np.empty(0))
    outputs = [
        SimpleNamespace(spans_ns=np.array([[0, 1], [entered, gone]]))
        for entered, gone in zip([20, 30], left, strict=True)
    ]
    assert sweep.all_meet(recording, outputs) == met
