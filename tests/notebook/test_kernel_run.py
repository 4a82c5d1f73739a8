"""What a notebook shows of one run: summary, panel, figures, the smallest failing case."""

import pytest
from c_kernels import build, line_of, source_of
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from mpilab.cases.case import Case
from mpilab.cluster.engines import Cluster
from mpilab.diagnosis.model import DEADLOCK, LEAK, WRONG_RESULT
from mpilab.errors import InputError, MpilabError
from mpilab.judging import judge
from mpilab.notebook import lab, session
from mpilab.notebook.lab import Lab
from mpilab.notebook.session import KernelRun
from mpilab.plots import style
from mpilab.runners.result import ERROR, Result

GATHERED = "MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);"
BODIES = {
    # Wrong from 3 ranks and 2 elements up.
    "by_size": f"""
    int err = {GATHERED}
    if (size >= 3 && recvcount >= 2 && rank == 1)
        ((int *)recvbuf)[1] ^= 1;
    return err;""",
    "leaky": f"""
    MPI_Comm own;
    MPI_Comm_dup(comm, &own); /* leaks */
    return {GATHERED}""",
    "talks": f"""
    printf("rank %d is here\\n", rank);
    return {GATHERED}""",
    "hangs": "MPI_Recv(recvbuf, 1, MPI_INT, (rank + 1) % size, 3, comm, MPI_STATUS_IGNORE);",
}
SOURCE = source_of(BODIES).replace('#include "mpilab.h"', '#include "mpilab.h"\n#include <stdio.h>')


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    built = build(SOURCE, tmp_path_factory.mktemp("kernelrun"))
    with Cluster(4, progress=False) as cluster:
        session.kernels |= {f"allgather_{name}": built for name in BODIES}
        yield cluster
        session.kernels.clear()


@pytest.fixture(autouse=True)
def shell():
    """Outputs are captured where there is an IPython to display them."""
    yield InteractiveShell.instance()
    InteractiveShell.clear_instance()


def shown(value):
    """(what is printed, [text of each output])."""
    with capture_output() as captured:
        value._ipython_display_()
    return captured.stdout, [output.data["text/plain"] for output in captured.outputs]


def test_a_right_run_is_a_summary_and_no_panel(cluster):
    run = session.run("allgather_ring", count=2)
    assert run.right and run.trouble == "" and run.diagnosis is None
    stdout, panels = shown(run)
    assert panels == []
    assert "right on every rank" in stdout
    assert "12 in 3 rounds" in stdout


@pytest.mark.parametrize("view", ["timeline", "matrix", "rounds"])
def test_every_view_of_a_run_is_a_figure_with_a_text(cluster, view):
    run = session.run("allgather_bruck", count=2)
    figure = run.figure(view)
    assert "allgather_bruck" in figure.layout.title.text
    assert len(style.alt(figure).splitlines()) > 3


def test_an_unknown_view_and_buffers_too_large_to_draw_are_refused(cluster):
    run = session.run("allgather_ring", count=2000)
    with pytest.raises(InputError, match="'movie': unknown; write one of timeline, matrix, rounds"):
        run.figure("movie")
    with pytest.raises(InputError, match="too large to be drawn .*smaller count"):
        run.figure("rounds")


def test_the_smallest_case_that_goes_wrong_is_found_and_told(cluster):
    run = session.run("allgather_by_size", count=9, datatype="int")
    assert run.diagnosis.kind == WRONG_RESULT
    assert (run.smallest.ranks, run.smallest.count) == (3, 2)
    assert "The smallest failing case: 3 ranks, count 2" in repr(run)
    stdout, outputs = shown(run)
    assert stdout == ""
    assert "Wrong result" in outputs[0]
    assert "[figure: " in outputs[1]


def test_a_leak_is_told_although_the_result_is_right(cluster):
    run = session.run("allgather_leaky", count=2)
    assert run.right
    assert run.diagnosis.kind == LEAK
    assert run.diagnosis.lines == (line_of(SOURCE, "/* leaks */"),)
    stdout, outputs = shown(run)
    assert "right on every rank" in stdout
    assert "⚠ Leak" in outputs[0]


def test_what_a_right_kernel_prints_is_shown_by_rank(cluster):
    text = repr(session.run("allgather_talks", ranks=3, count=1))
    assert "rank 2 printed:\n    rank 2 is here" in text


def test_a_deadlock_has_its_picture_and_its_timeline(cluster):
    run = session.run("allgather_hangs", ranks=3)
    assert run.diagnosis.kind == DEADLOCK
    assert not run.right
    (waiting,) = run.figures()
    assert "0" in style.alt(waiting)
    assert "never" in style.alt(run.figure("timeline"))
    with pytest.raises(MpilabError, match="did not finish"):
        _ = run.blocks


def test_a_case_that_cannot_be_run_has_a_panel_too():
    result = Result(Case("allgather", 2, 1), ERROR, detail="mpirun: not there")
    assert (
        "could not be run: mpirun: not there" in repr(KernelRun("allgather_ring", result)).lower()
    )


def test_a_check_shows_the_first_run_that_failed(cluster, tmp_path):
    hangs = source_of({"pairwise": BODIES["hangs"]})
    session.kernels["allgather_pairwise"] = build(hangs, tmp_path)
    checked = Lab("02-allgather").check("pairwise")
    assert not checked.passed
    assert checked.telling.diagnosis.kind == DEADLOCK
    listing, panel = shown(checked)[1][:2]
    assert "not yet" in listing
    assert "Deadlock" in panel and "What each rank is doing" in panel


def test_a_strict_check_makes_every_run_strict(cluster, tmp_path):
    """Correct as long as MPI buffers: all public checks except those for buffering pass."""
    buffered = source_of(
        {
            "pairwise": f"""
    int token = 0, err = {GATHERED}
    MPI_Send(&token, 1, MPI_INT, (rank + 1) % size, 5, comm);
    MPI_Recv(&token, 1, MPI_INT, (rank + size - 1) % size, 5, comm, MPI_STATUS_IGNORE);
    return err;"""
        }
    )
    built = build(buffered, tmp_path)
    exercise = Lab("02-allgather").rubric.exercise("pairwise")
    cases, _ = judge.plan(exercise, most_ranks=4)
    assert {case.strict for case in cases} == {False, True}
    strict, _ = judge.plan(lab.strictly(exercise), most_ranks=4)
    assert {case.strict for case in strict} == {True}
    session.kernels["allgather_pairwise"] = built
    (plain,) = session.run_cases("allgather_pairwise", [Case("allgather", 3, 1)])
    (hung,) = session.run_cases("allgather_pairwise", [Case("allgather", 3, 1, strict=True)])
    assert (plain.outcome, hung.outcome) == ("done", "deadlock")
