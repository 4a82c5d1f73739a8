"""A time-out is reported with the rank that computes and the lines in which it was sampled."""

import pytest
from made_up import (
    BEGUN,
    NOW,
    call,
    meet,
    over,
    poll,
    recv,
    run_of,
    send,
    sites_are_lines,  # noqa: F401
)

from mpilab.diagnosis import diagnose
from mpilab.trace.matching import communicator_of

pytestmark = pytest.mark.usefixtures("sites_are_lines")


def timed_out(*of_ranks, **more):
    return diagnose(run_of(*of_ranks, outcome="time-out", **more))


def test_the_rank_that_computes_is_told_with_its_lines_and_looks():
    found = timed_out([recv(1, line=4)], [over(send(0, line=9))], samples={1: [14, 15, 16, 14, 0]})
    assert found.headline == "time-out: rank 1 computes without end in lines 14 to 16"
    assert (found.kind, found.pattern, found.ranks) == ("time-out", "an endless loop", (1,))
    assert found.places[0].label == "rank 1 was sampled here in 2 of 5 samples"
    assert found.lines == (14, 15, 16, 9)
    assert found.tables[1].rows == ((1, "14 to 16", "4 of 5"),)
    assert found.notes == ("The last MPI call of rank 1 was MPI_Send (line 9).",)


def test_ranks_that_never_began_do_not_compute():
    found = timed_out([recv(1)], [over(send(0, line=9))], None, None, samples={1: [14]})
    assert found.headline == "time-out: rank 1 computes without end in line 14"
    assert found.ranks == (1,) and found.notes[1:] == ("Ranks 2 and 3 never started.",)
    found = timed_out([recv(1)], None)
    assert (found.headline, found.ranks) == ("time-out: rank 1 never started", (1,))
    assert "not the cause" in found.hint


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


def test_ranks_that_were_met_in_the_same_line_are_told_together():
    found = timed_out(
        [over(send(1, line=9))], [over(recv(0, line=9))], samples={0: [14, 14], 1: [14, 15]}
    )
    assert [(place.line, place.label) for place in found.places] == [
        (14, "ranks 0 and 1 were sampled here"),
        (15, "rank 1 was sampled here in 1 of 2 samples"),
        (9, "the last call of ranks 0 and 1"),
    ]
    assert found.notes[0] == "The last MPI call of rank 0 was MPI_Send (line 9)."


def test_lines_of_a_source_that_nobody_has_are_not_shown(monkeypatch):
    def lines_of(library, offsets):
        return tuple(("f", "waits.c" if site == 99 else "cell", int(site)) for site in offsets)

    def source_line(library, file, line):
        return "" if file == "waits.c" else "text"

    monkeypatch.setattr("mpilab.diagnosis.evidence.lines_of", lines_of)
    monkeypatch.setattr("mpilab.diagnosis.evidence.source_line", source_line)
    found = timed_out([over(send(1, line=9))], [], finished=[1], samples={0: [99, 14]})
    assert found.headline.endswith("in line 14") and found.lines == (14, 9)
    assert all(place.file == "" for place in found.places)


def test_a_rank_that_makes_the_same_call_again_and_again_is_told_so():
    again = [over(send(0, line=3, name="Sendrecv")), over(recv(0, line=3, name="Sendrecv"))] * 60
    found = timed_out(again, [], finished=[1], samples={0: [3, 3]})
    assert found.headline == "time-out: rank 0 calls MPI_Sendrecv without end in line 3"
    assert "repeatedly, always with itself" in found.hint
    # Met elsewhere, it only computes after so many of them.
    found = timed_out(again, [], finished=[1], samples={0: [8]})
    assert found.headline == "time-out: rank 0 computes without end in line 8"


def test_an_endless_loop_of_collectives_is_no_deadlock_wherever_time_was_up():
    calls = [over(meet("Comm_dup", line=3, sequence=n)) for n in range(120)]
    latest = meet("Comm_dup", line=3, sequence=120, begin_ns=NOW - 10**6)
    ahead = [*calls, {**latest, "sequence": 121}]
    found = timed_out(ahead, [*calls, latest])
    assert found.headline == "time-out: ranks 0 and 1 call MPI_Comm_dup without end"
    assert (found.pattern, found.lines) == ("an endless loop", (3,))
    # A rank that has been in the same call for long waits.
    waiting = {**latest, "begin_ns": BEGUN}
    assert timed_out([*calls, waiting], [*calls, waiting]).pattern != "an endless loop"


def test_an_endless_loop_of_several_calls_is_told_with_them():
    pair = [over(meet("Comm_dup", line=3)), over(call("Comm_free", 4))]
    found = timed_out(pair * 60, [], finished=[1], samples={0: [3, 3]})
    assert found.headline == (
        "time-out: rank 0 calls MPI_Comm_dup and MPI_Comm_free without end in line 3"
    )


def test_a_loop_that_tests_requests_which_are_complete_is_told_so():
    request = over(recv(1, name="Irecv", line=4), waiter=1)
    tested = over(poll(line=6), flags=0)  # it was answered
    assert timed_out([request, tested], [], finished=[1], samples={0: [6, 7]}).hint.startswith(
        "All requests of rank 0 are complete, but its loop keeps testing them with MPI_Test "
        "(line 6)"
    )
    elsewhere = timed_out([request, tested], [], finished=[1], samples={0: [7]})
    open_one = timed_out(
        [request, recv(1, name="Irecv", end_ns=1), tested], [], finished=[1], samples={0: [6]}
    )
    assert "All requests" not in elsewhere.hint + open_one.hint


def test_the_copy_of_the_own_block_is_no_last_call():
    own = {"communicator": communicator_of((0,)), "line": 5, "name": "Sendrecv"}
    found = timed_out(
        [over(send(0, **own)), over(recv(0, **own))], [], finished=[1], samples={0: [14]}
    )
    assert found.lines == (14,)
    assert found.notes == ("Rank 0 has only copied its own data.",)
