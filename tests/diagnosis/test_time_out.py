"""A time-out is told with the rank that computes and the lines in which it was met."""

import pytest
from made_up import NOW, over, poll, recv, run_of, send, sites_are_lines  # noqa: F401

from mpilab.diagnosis import diagnose

pytestmark = pytest.mark.usefixtures("sites_are_lines")


def timed_out(*of_ranks, **more):
    return diagnose(run_of(*of_ranks, outcome="time-out", **more))


def test_the_rank_that_computes_is_told_with_its_lines_and_looks():
    found = timed_out([recv(1, line=4)], [over(send(0, line=9))], samples={1: [14, 15, 16, 14, 0]})
    assert found.headline == "time-out: rank 1 computes without end in lines 14 to 16"
    assert (found.kind, found.pattern, found.ranks) == ("time-out", "an endless loop", (1,))
    assert found.places[0].label == "rank 1 was met here in 2 of 5 looks"
    assert found.lines == (14, 15, 16, 9)
    assert found.tables[1].rows == ((1, "14 to 16", "4 of 5"),)
    assert found.notes == ("The last MPI call of rank 1 was MPI_Send (line 9).",)


def test_without_looks_the_last_call_is_what_is_known():
    found = timed_out([recv(1)], [over(send(0, line=9))])
    assert (found.pattern, found.lines) == ("", (9,))


def test_a_rank_that_asked_too_rarely_to_be_polling_polls_in_vain():
    asked = poll(line=6, name="Iprobe", peer=0, tag=1, end_ns=NOW - 10**10)
    found = timed_out([recv(1)], [asked])
    assert found.pattern == "polling in vain"
    assert "Rank 1 asked with MPI_Iprobe (line 6) 99 times" in found.hint


def test_a_rank_that_never_calls_mpi_is_told_so():
    assert timed_out([recv(1)], []).notes == ("Rank 1 has made no MPI call at all.",)


def test_more_calls_than_fit_are_a_loop_of_calls():
    found = timed_out([recv(1)], [over(send(0, line=3))], headers={1: {"dropped": 7}})
    assert "goes on making MPI calls, more than a recording holds" in found.notes[0]


def test_a_deadlock_that_was_not_certain_is_told_as_one_if_it_is_recognised():
    assert timed_out([recv(1)], [recv(0)]).kind == "deadlock"


def test_ranks_that_wait_for_what_is_under_way_are_a_time_out():
    found = timed_out([recv(1, line=3)], [over(send(0))], finished=[1])
    assert found.kind == "time-out"
    assert "rank 0 waits inside MPI" in found.headline


def test_a_message_that_keeps_all_from_ending_is_told():
    found = timed_out([over(send(1, line=5))], [], finished=[0, 1])
    assert (found.kind, found.pattern, found.lines) == ("time-out", "a message left over", (5,))
