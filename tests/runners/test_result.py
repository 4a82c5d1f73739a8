"""What a case leaves behind is read the same way for both backends."""

import numpy as np
from recordings_made_up import written

from mpilab.cases.case import Case
from mpilab.runners.result import DONE, PRINTED_BYTES, blame, gather, read_printed
from mpilab.trace.recording import RECORD, RankRecording, operations

NUMBERS = {name: number for number, name in operations().items()}


def rank_of(tmp_path, rank, records=(), **header):
    return RankRecording(written(tmp_path / f"0.{rank}.rec", rank, records=records, **header))


def test_a_signal_is_blamed_before_an_exit_and_an_abort(tmp_path):
    abort = np.zeros(1, RECORD)
    abort["operation"], abort["count"] = NUMBERS["MPI_Abort"], 7
    quiet = rank_of(tmp_path, 0)
    aborts = rank_of(tmp_path, 1, abort)
    leaves = rank_of(tmp_path, 2, exited=1, exit_status=3)
    crashes = rank_of(tmp_path, 3, signal=11)
    assert blame([quiet, None]) is None
    assert blame([quiet, aborts]) == (1, "MPI_Abort(7)")
    assert blame([quiet, aborts, leaves]) == (2, "exit status 3")
    assert blame([None, aborts, leaves, crashes]) == (3, "SIGSEGV")


def test_of_two_crashes_the_lowest_rank_is_blamed_whoever_was_first(tmp_path):
    calls = np.zeros(2, RECORD)
    calls["begin_ns"] = [100, 200]
    late = rank_of(tmp_path, 0, calls, signal=11)
    early = rank_of(tmp_path, 1, calls[:1], signal=6)
    assert blame([late, early]) == (0, "SIGSEGV")


def test_a_rank_that_left_the_kernel_is_not_to_blame(tmp_path):
    assert blame([rank_of(tmp_path, 0, signal=11, closed_ns=5)]) is None
    assert blame([rank_of(tmp_path, 0, signal=11, crash_site=3, closed_ns=5, ended_ns=6)]) is None


def test_a_rank_that_crashed_in_a_function_attached_to_its_communicator_is_to_blame(tmp_path):
    assert blame([rank_of(tmp_path, 0, signal=11, crash_site=3, closed_ns=5)]) == (0, "SIGSEGV")


def test_of_endless_output_the_end_is_kept_and_marked(tmp_path):
    (tmp_path / "0.1.txt").write_text("first\n" + "x" * 99 + "\n" + "line\n" * PRINTED_BYTES)
    (tmp_path / "0.0.txt").write_text("hello\n")
    (tmp_path / "0.2.txt").write_text("")
    printed, noise = read_printed(tmp_path, 0, Case("allgather", 3, 1))
    assert noise == {}
    assert set(printed) == {0, 1}
    assert printed[0] == "hello\n"
    assert printed[1].startswith("… line\n")
    assert len(printed[1]) <= PRINTED_BYTES + 2


def test_what_open_mpi_prints_of_a_crash_is_kept_apart(tmp_path):
    (tmp_path / "0.0.txt").write_text(
        "sum 3\n[vm:28568] *** Process received signal ***\n[vm:28568] [ 0] /lib/libc.so.6\n[x]\n"
    )
    result = gather(tmp_path, 0, Case("allgather", 1, 1), DONE, log="mpirun noticed")
    assert result.printed == {0: "sum 3\n[x]\n"}
    assert result.log == (
        "mpirun noticed\n[vm:28568] *** Process received signal ***\n"
        "[vm:28568] [ 0] /lib/libc.so.6\n"
    )


def test_a_rank_that_never_began_leaves_no_recording_of_the_whole(tmp_path):
    rank_of(tmp_path, 0, closed_ns=5)
    result = gather(tmp_path, 0, Case("allgather", 2, 1), DONE)
    assert result.recording is None
    assert [rank is None for rank in result.ranks] == [False, True]


def test_a_recording_that_the_kernel_wrote_over_is_none_and_the_rest_is_read(tmp_path):
    rank_of(tmp_path, 0, closed_ns=5)
    written(tmp_path / "0.1.rec", 1, count=99)
    result = gather(tmp_path, 0, Case("allgather", 2, 1), DONE)
    assert [rank is None for rank in result.ranks] == [False, True]
    assert result.recording is None
