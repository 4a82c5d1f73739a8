"""Runs without progress in calls on files: which rank waits for which, and which for the disk."""

import pytest
from made_up import (  # noqa: F401
    FINISHED,
    call,
    meet,
    over,
    rank_of,
    recv,
    run_of,
    sites_are_lines,
    wait,
)

from mpilab.diagnosis import diagnose
from mpilab.runners.hang import can_progress
from mpilab.runners.result import TIME_OUT
from mpilab.trace.recording import COLLECTIVE, NONBLOCKING, READS_FILE

pytestmark = pytest.mark.usefixtures("sites_are_lines")


def read_all(line=5, sequence=0, name="File_read_all", members=3, **values):
    """A collective read of the file that all ranks have opened."""
    flags = COLLECTIVE | READS_FILE | (NONBLOCKING if name.startswith("File_i") else 0)
    return meet(
        name,
        line=line,
        sequence=sequence,
        members=members,
        **{"flags": flags, "file": 1, "bytes": 96, **values},
    )


def read_at(line=7, name="File_read_at", **values):
    """A read that only its own rank makes."""
    flags = READS_FILE | (NONBLOCKING if name.startswith("File_i") else 0)
    return call(name, line, **{"flags": flags, "bytes": 64, "offset": 128, "file": 1, **values})


def moves(*of_ranks, finished=()):
    return can_progress(
        [
            rank_of(number, len(of_ranks), records, **(FINISHED if number in finished else {}))
            for number, records in enumerate(of_ranks)
        ]
    )


@pytest.mark.parametrize(
    "waits_for_disk",
    [
        [read_at()],
        [read_at(name="File_read")],
        [call("File_seek", 3, file=1)],
        [over(read_at(name="File_iread_at", waiter=1), done_ns=0), wait()],
    ],
)
def test_a_rank_that_waits_for_the_disk_only_will_go_on(waits_for_disk):
    assert moves(waits_for_disk, [recv(0)])
    assert moves(waits_for_disk, [], finished=[1])


def test_a_collective_read_goes_on_when_all_have_come():
    assert moves(*[[read_all()]] * 3)
    assert not moves(*[[read_all()]] * 2, [], finished=[2])
    begun = over(read_all(name="File_iread_all", waiter=1), done_ns=0)
    assert moves(*[[begun, wait()]] * 3)
    assert not moves(*[[begun, wait()]] * 2, [], finished=[2])


def test_who_keeps_away_from_a_collective_read_is_named():
    found = diagnose(run_of([read_all()], [read_all()], [], finished=[2]))
    assert found.pattern == "a collective that a rank never enters"
    assert found.headline == (
        "deadlock: ranks 0 and 1 wait in MPI_File_read_all for rank 2, and none can continue"
    )
    assert found.ranks == (2,)
    assert found.lines == (5,)
    assert "Every rank that has opened a file must make each collective call on it" in found.hint


def test_ranks_that_wait_in_different_calls_on_one_file_are_told():
    found = diagnose(run_of([read_all()], [read_all()], [read_all(9, name="File_close", flags=8)]))
    assert found.pattern == "different collectives"
    assert "On the same file, rank 2 calls MPI_File_close (line 9)" in found.hint


def test_reads_of_different_files_do_not_meet():
    other = read_all(6, communicator=10, file=2)
    found = diagnose(run_of([read_all()], [read_all()], [other]))
    assert found.pattern == "different files"
    assert "on different files: rank 2 (line 6) on file A and ranks 0 and 1" in found.hint


def test_a_long_read_is_no_deadlock_and_its_offset_is_shown():
    found = diagnose(run_of([read_at()], [recv(0)], outcome=TIME_OUT))
    assert found.headline == "time-out: ranks 0 and 1 wait inside MPI for too long"
    shown = diagnose(run_of([over(read_at(error=35))], [], outcome="done", finished=[0, 1]))
    (row,) = shown.tables[0].rows
    assert row[1:3] == ("MPI_File_read_at", "at byte 128")
    assert row[5] == 64
