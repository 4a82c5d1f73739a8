"""Kernels that fail in a simulation: the same verdicts and lines as in real runs."""

import pytest
from c_kernels import PREAMBLE, line_of, source_of

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.kernels import simgrid
from mpilab.notebook.session import KernelRun
from mpilab.runners.simgrid import simulate


def show(broken, name, **more):
    """(Result, what is shown of it, the number of a line of broken.c by its comment)."""
    library, line = broken
    case = Case("bcast", 4, 5, **more)
    (result,) = simulate(library, f"bcast_{name}", [case], "flat-2x2", standstill=0.5)
    return result, repr(KernelRun(f"bcast_{name}", result)), line


@pytest.mark.parametrize("record", [True, False])
def test_a_deadlock_names_every_blocked_call_and_the_cycle(broken, record):
    result, shown, line = show(broken, "head_to_head", record=record)
    assert result.outcome == "deadlock"
    assert [(s.state, s.call, s.line) for s in result.states] == [
        ("blocked", "MPI_Recv", line("deadlock")),
        ("blocked", "MPI_Recv", line("deadlock")),
        ("finished", "", 0),
        ("finished", "", 0),
    ]
    assert result.hang.cycle() == (0, 1)
    assert result.case.record == record
    assert "head-to-head receives" in shown


def test_sends_that_rely_on_buffering_deadlock_in_strict_mode_only(broken):
    assert show(broken, "buffered")[0].outcome == "done"
    result, shown, line = show(broken, "buffered", strict=True)
    assert result.outcome == "deadlock"
    assert {state.line for state in result.states} == {line("relies on buffering")}
    assert "rely on buffering" in shown


def test_a_message_that_is_too_long_is_told_at_the_line_of_its_receive(broken):
    result, shown, line = show(broken, "truncated")
    assert result.outcome == "done"
    assert f"MPI_Recv returned MPI_ERR_TRUNCATE in line {line('short')}" in shown


@pytest.mark.parametrize(
    ("name", "comment", "crashed"),
    [
        ("null_pointer", "crash", (2, "SIGSEGV")),
        ("left", "exit", (1, "exit status 3")),
    ],
)
def test_a_rank_that_ends_early_is_named_with_its_line(broken, name, comment, crashed):
    result, shown, line = show(broken, name)
    assert (result.outcome, result.crashed) == ("crash", crashed)
    assert f"in line {line(comment)}" in shown


# The communicator is freed after the kernel has returned.
ABORTS = """
static int aborts(MPI_Comm comm, int key, void *value, void *extra)
{
    (void)key, (void)value, (void)extra;
    return MPI_Abort(comm, 4);  /* aborts */
}
"""
ATTACHES = """
    int key;
    if (rank == 1 && recvcount == 2) {
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, aborts, &key, NULL);
        MPI_Comm_set_attr(comm, key, NULL);
    }
"""


def test_an_abort_when_the_communicator_is_freed_is_one_of_its_case(tmp_path):
    source = source_of({"attaches": ATTACHES}, PREAMBLE + ABORTS)
    library = simgrid.build(source, tmp_path).library
    cases = [Case("allgather", 3, count) for count in (1, 2, 3)]
    results = simulate(library, "allgather_attaches", cases)
    assert [result.outcome for result in results] == ["done", "crash", "done"]
    assert results[1].crashed == (1, "MPI_Abort(4)")
    assert diagnose(results[1]).lines == (line_of(source, "/* aborts */"),)


def test_a_rank_that_computes_for_ever_is_met_at_its_line(broken):
    result, shown, line = show(broken, "endless")
    assert result.outcome == "time-out"
    assert list(result.samples) == [1]
    assert f"Rank 1 computes without end in line {line('endless')}" in shown


def test_a_wrong_result_is_compared_as_in_a_real_run(broken):
    result, shown, _ = show(broken, "silent")
    assert result.outcome == "done"
    assert "nothing was written" in shown


def test_an_error_code_that_a_kernel_returns_is_told_by_open_mpis_name(broken):
    result, shown, _ = show(broken, "refuses")
    assert [output.returned for output in result.outputs] == [0, 8, 0, 0]
    assert "MPI_ERR_ROOT" in shown


def test_cases_after_one_that_fails_are_simulated_all_the_same(broken):
    library, _ = broken
    cases = [
        Case("bcast", 4, 5, function=f"bcast_{name}")
        for name in ("head_to_head", "silent", "null_pointer", "silent")
    ]
    found = simulate(library, "", cases, groups=[("a",), ("b",), ("a",), ("b",)])
    assert [one.outcome for one in found] == ["deadlock", "done", "skipped", "done"]


MISSING = """#include "mpilab.h"
int bcast_missing(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_missing(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    MPI_Datatype type;
    (void)buffer, (void)count, (void)root, (void)comm;
    return MPI_Type_create_darray(1, 0, 1, (int[]){4}, (int[]){MPI_DISTRIBUTE_CYCLIC}, (int[]){1},
                                  (int[]){1}, MPI_ORDER_C, datatype, &type);
}
"""


def test_a_call_that_simgrid_does_not_have_is_named_and_is_no_crash_of_the_kernel(tmp_path):
    built = simgrid.build(MISSING, tmp_path)
    (result,) = simulate(built.library, "bcast_missing", [Case("bcast", 2, 5)])
    assert result.outcome == "error"
    assert result.detail == "SimGrid cannot simulate MPI_Type_create_darray"
