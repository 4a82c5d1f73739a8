"""Every case ends, whatever its kernel does, and leaves nothing behind."""

import os

import pytest
from c_kernels import PREAMBLE, build_kernels, run

from mpilab.cases.case import Case
from mpilab.cases.data import GUARD_BYTES
from mpilab.cases.output import Output, compare
from mpilab.errors import SetupError
from mpilab.kernels import build, openmpi
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import CRASH, DEADLOCK, DONE, ERROR, SKIPPED, TIME_OUT, leaves_state
from mpilab.trace.recording import HEADER, RECORD, RankRecording

BODIES = {
    "right": """
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int i = 0; i < size; i++)
        MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);""",
    # What it does depends on the count: 1 right, 2 crash, 3 deadlock, 4 endless.
    "by_count": """
    if (recvcount == 2 && rank == 1) raise(SIGSEGV);
    if (recvcount == 2 || recvcount == 3) MPI_Barrier(rank ? comm : MPI_COMM_SELF);
    if (recvcount == 2 || recvcount == 3) MPI_Recv(recvbuf, 1, MPI_INT, rank, 1, comm, NULL);
    if (recvcount == 4) for (volatile int i = 0;; i++);
    return allgather_right(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);""",
    "aborts": "if (rank == 1) abort();",
    "leaves": "_exit(7);",
    # By the count: 1 raises a signal, 2 exits, 3 aborts, when the communicator is freed.
    "attaches": """
    int key;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, deletes, &key, NULL);
    MPI_Comm_set_attr(comm, key, (void *)(long)(rank == 1 ? recvcount : 0));""",
    # The size of a block of the heap, which precedes it, matters when the harness frees the buffer.
    "overwrites": """
    if (recvcount == 1) ((long *)((char *)recvbuf - GUARD))[-1] = 1;
    return allgather_right(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);""",
    "crashes_later": """
    static int calls;
    if (calls++ == 1) raise(SIGSEGV);
    return allgather_right(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);""",
    "shows": 'printf("%s", getenv("OMPI_MCA_btl_sm_backing_directory"));',
    "prints": 'for (int i = 0; i < 20000; i++) write(1, "0123456789\\n", 11); raise(SIGSEGV);',
}
GUARD = f"#include <stdio.h>\n#define GUARD {GUARD_BYTES}\n"
DELETES = """
static int deletes(MPI_Comm comm, int key, void *value, void *extra)
{
    if ((long)value == 1) raise(SIGSEGV);
    if ((long)value == 2) exit(3);
    if ((long)value == 3) MPI_Abort(comm, 4);
    return MPI_SUCCESS;
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("launch"), BODIES, PREAMBLE + GUARD + DELETES)


def by_count(library, *counts, ranks=2, **options):
    cases = [Case("allgather", ranks, count) for count in counts]
    return run_cases(library, "allgather_by_count", cases, limit=60.0, work=1.0, **options)


def outcomes(results):
    return [result.outcome for result in results]


def test_results_come_in_the_order_of_the_cases_whatever_their_ranks(library):
    cases = [Case("allgather", ranks, 3) for ranks in (3, 1, 2, 3)]
    cases[3] = Case("allgather", 3, 5)
    seen = []
    results = run_cases(library, "allgather_right", cases, on_result=seen.append)
    assert [result.case for result in results] == cases
    assert outcomes(results) == [DONE] * 4
    assert [result.case.ranks for result in seen] == [1, 2, 3, 3]
    for result in results:
        assert compare(result.case, result.outputs) == []


def test_a_crash_names_rank_and_signal_and_later_cases_are_run(library):
    results = by_count(library, 1, 2, 5, 6)
    assert outcomes(results) == [DONE, CRASH, DONE, DONE]
    assert results[1].crashed == (1, "SIGSEGV")
    assert [compare(r.case, r.outputs) for r in results if r.outcome == DONE] == [[]] * 3


def test_a_crash_when_the_communicator_is_freed_is_one_of_its_case(library):
    cases = [Case("allgather", 3, count) for count in (1, 2, 3, 4)]
    results = run_cases(library, "allgather_attaches", cases)
    assert outcomes(results) == [CRASH, CRASH, CRASH, DONE]
    ends = [(1, "SIGSEGV"), (1, "exit status 3"), (1, "MPI_Abort(4)"), None]
    assert [result.crashed for result in results] == ends


def test_the_rank_that_crashed_is_told_in_the_kernels_communicator(library):
    cases = [Case("allgather", 3, 2, reversed=True)]
    (result,) = run_cases(library, "allgather_by_count", cases)
    assert result.crashed == (1, "SIGSEGV")
    (result,) = run_cases(library, "allgather_aborts", [Case("allgather", 4, 1, reversed=True)])
    assert result.crashed == (1, "SIGABRT")


def test_a_rank_that_leaves_is_a_crash_without_a_signal(library):
    # Of two ranks, the other could abort before mpirun has seen the status.
    result = run(library, "leaves", ranks=1)
    assert result.outcome == CRASH
    assert result.crashed == (None, "exit status 7")


def test_cases_of_failed_groups_only_are_skipped(library):
    groups = [("a",), ("a", "b"), ("a",), ("b",), ("c",), ("a", "b")]
    results = by_count(library, 2, 1, 5, 3, 6, 7, groups=groups)
    assert outcomes(results) == [CRASH, DONE, SKIPPED, DEADLOCK, DONE, SKIPPED]


def test_without_groups_nothing_is_skipped(library):
    assert outcomes(by_count(library, 3, 4, 2, 1)) == [DEADLOCK, TIME_OUT, CRASH, DONE]


def test_segments_of_open_mpi_are_in_a_directory_that_is_the_runs_own(library):
    first, second = (run(library, "shows").printed for _ in range(2))
    assert len(set(first.values())) == len(set(second.values())) == 1
    assert first[0].startswith("/dev/shm/mpilab-")
    assert first[0] != second[0]


def test_a_case_that_crashes_only_after_another_is_tried_alone(library):
    cases = [Case("allgather", 2, count) for count in (1, 2, 3)]
    results = run_cases(library, "allgather_crashes_later", cases, groups=[("a",), ("b",), ("b",)])
    assert [result.outcome for result in results] == [DONE] * 3


@pytest.mark.parametrize("record", [True, False])
def test_a_case_does_not_pay_for_memory_that_an_earlier_one_has_overwritten(library, record):
    cases = [Case("allgather", 2, count, record=record) for count in (1, 2, 3)]
    results = run_cases(library, "allgather_overwrites", cases, groups=[("a",), ("b",), ("b",)])
    assert outcomes(results) == [DONE] * 3
    assert [compare(result.case, result.outputs) for result in results[1:]] == [[]] * 2


@pytest.mark.usefixtures("leaves_nothing")
@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_nothing_is_left_behind(library, count):
    by_count(library, count)


@pytest.mark.usefixtures("leaves_nothing")
def test_nothing_is_left_behind_where_the_callback_raises(library):
    def stop(result):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        by_count(library, 1, 4, on_result=stop)


@pytest.mark.usefixtures("leaves_nothing")
def test_nothing_is_left_behind_where_it_cannot_start(library, monkeypatch, tmp_path):
    monkeypatch.setattr(build, "HARNESS_PROGRAM", tmp_path / "gone")
    with pytest.raises(SetupError, match="gone: not built yet. Run 'make build'"):
        by_count(library, 1)


def test_raw_files_are_kept_where_they_are_wanted(library, tmp_path):
    by_count(library, 1, 5, keep=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{number}.{rank}.{kind}" for number in (0, 1) for rank in (0, 1) for kind in ("out", "rec")
    )
    assert Output.read(tmp_path / "1.1.out").rank == 1


@pytest.mark.parametrize("count", [1, 2, 3])
def test_kept_recordings_of_confined_ranks_are_as_large_as_their_calls(count, library, tmp_path):
    by_count(library, count, keep=tmp_path, confined=tmp_path)
    paths = sorted(tmp_path.glob("*.rec"))
    assert len(paths) == 2
    for path in paths:
        records = len(RankRecording(path).records)
        assert path.stat().st_size == HEADER.itemsize + records * RECORD.itemsize


def test_a_case_that_is_not_recorded_is_run_and_timed(library):
    case = Case("allgather", 2, 1, record=False, dump=False, warmup=2, repetitions=20)
    (result,) = run_cases(library, "allgather_right", [case])
    assert result.recording is None
    for output in result.outputs:
        assert output.spans_ns.shape == (20, 2)
        assert (output.spans_ns[:, 1] > output.spans_ns[:, 0]).all()
        assert (output.spans_ns[1:, 0] >= output.spans_ns[:-1, 1]).all()
        assert len(output.received) == len(output.sent) == 0


def test_a_function_that_is_not_there_is_an_error_and_no_failure(library):
    result = run(library, "missing")
    assert result.outcome == ERROR
    assert result.detail == f"{library}: no function allgather_missing in it"


def test_a_library_that_cannot_be_loaded_is_an_error(tmp_path):
    result = run(tmp_path / "gone.so", "right")
    assert result.outcome == ERROR
    assert "gone.so" in result.detail


def test_an_mpirun_that_fails_is_an_error_with_what_it_said(library, monkeypatch, tmp_path):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text(
        "#!/bin/sh\n"
        "echo srun: cluster configuration lacks support for cpu binding\n"  # and is not asked to
        "echo there are no slots today; exit 1\n"
    )
    mpirun.chmod(0o755)
    monkeypatch.setattr(openmpi, "tool", lambda name: str(mpirun))
    result = run(library, "right")
    assert result.outcome == ERROR
    assert "no slots today" in result.detail
    assert "cpu binding" not in result.detail


@pytest.mark.usefixtures("leaves_nothing")
def test_an_mpirun_that_never_starts_the_ranks_is_an_error_and_no_failure(
    library, monkeypatch, tmp_path
):
    mpirun = tmp_path / "mpirun"
    mpirun.write_text("#!/bin/sh\necho waiting for a node; sleep 1000\n")
    mpirun.chmod(0o755)
    monkeypatch.setattr(openmpi, "tool", lambda name: str(mpirun))
    result = run(library, "right", limit=1.0)
    assert result.outcome == ERROR
    assert "waiting for a node" in result.detail


def test_a_kernel_that_prints_much_is_told_by_its_end(library):
    result = run(library, "prints")
    assert result.outcome == CRASH
    assert result.crashed[1] == "SIGSEGV"
    assert len(result.detail) < 5000


def test_runs_do_not_depend_on_the_directory_that_they_are_started_in(
    library, monkeypatch, tmp_path
):
    monkeypatch.chdir(tmp_path)
    assert run(library, "right").outcome == DONE
    assert os.listdir(tmp_path) == []


def test_strict_mode_holds_for_a_run_that_is_not_recorded(tmp_path):
    library = build_kernels(
        tmp_path,
        {
            "sends_first": """
        MPI_Send(recvbuf, 1, MPI_INT, 1 - rank, 5, comm);
        MPI_Recv(recvbuf, 1, MPI_INT, 1 - rank, 5, comm, MPI_STATUS_IGNORE);"""
        },
    )
    timed = {"record": False, "dump": False, "repetitions": 3}
    assert run(library, "sends_first", **timed).outcome == DONE
    assert run(library, "sends_first", strict=True, limit=8.0, **timed).outcome == TIME_OUT


def test_a_run_that_leaves_messages_behind_is_the_last_of_its_mpirun(tmp_path):
    library = build_kernels(
        tmp_path,
        {
            "stray": """
        if (rank == 0 && recvcount == 1) MPI_Send(&rank, 1, MPI_INT, 1, TAG, comm);
        if (rank == 1 && recvcount == 2) {
            int flag;
            MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &flag, MPI_STATUS_IGNORE);
            if (flag) return MPI_ERR_OTHER;
        }
        return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);"""
        },
    )
    cases = [Case("allgather", 2, count) for count in (1, 2, 3)]
    results = run_cases(library, "allgather_stray", cases)
    assert [leaves_state(result) for result in results] == [True, False, False]
    pids = [{int(rank.header["pid"]) for rank in result.ranks} for result in results]
    assert pids[0].isdisjoint(pids[1])
    assert pids[1] == pids[2]
    assert [compare(result.case, result.outputs) for result in results] == [[], [], []]
