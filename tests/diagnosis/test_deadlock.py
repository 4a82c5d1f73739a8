"""Each common mistake behind a deadlock is recognized, with ranks, lines, tags in the hint."""

import pytest
from made_up import meet, over, poll, recv, run_of, send, sites_are_lines, wait  # noqa: F401

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose

pytestmark = pytest.mark.usefixtures("sites_are_lines")


def diagnosed(*of_ranks, **more):
    found = diagnose(run_of(*of_ranks, **more))
    assert found.kind == "deadlock"
    return found


def test_two_ranks_that_both_receive_first_are_told_with_their_lines():
    found = diagnosed([recv(1, line=12)], [recv(0, line=14)])
    assert found.pattern == "head-to-head receives"
    assert found.hint.startswith(
        "Rank 0 (line 12) and rank 1 (line 14) both receive before they send"
    )
    assert (found.ranks, found.cycle, found.lines) == ((0, 1), (0, 1), (12, 14))
    assert found.headline == "deadlock: rank 0 waits for rank 1, and rank 1 for rank 0"


def test_the_table_shows_what_each_rank_waits_for_since_when():
    (table,) = diagnosed([recv(1, tag=7, line=12)], [recv(-1, tag=-1, line=14)]).tables
    assert table.columns == ("rank", "call", "peer", "tag", "bytes", "line", "since")
    assert table.rows == (
        (0, "MPI_Recv", "from 1", 7, 4, 12, "1.5 s"),
        (1, "MPI_Recv", "from any", "any", 4, 14, "1.5 s"),
    )


def test_ranks_of_one_line_share_a_place():
    found = diagnosed(*([recv((rank + 1) % 4, line=5)] for rank in range(4)))
    (place,) = found.places
    assert (place.line, place.text, place.label) == (5, "text 5", "ranks 0 to 3 wait here")
    assert "Ranks 0 to 3 (line 5) all receive before they send" in found.hint


def test_pairs_that_wait_for_one_another_are_all_named():
    found = diagnosed(*([recv(rank ^ 1)] for rank in range(4)))
    assert found.pattern == "head-to-head receives"
    assert found.ranks == (0, 1, 2, 3)


def test_requests_waited_for_head_to_head_are_the_same_mistake():
    def rank(peer):
        return [recv(peer, line=3, name="Irecv", waiter=1, end_ns=1), wait(line=4)]

    found = diagnosed(rank(1), rank(0))
    assert (found.pattern, found.lines) == ("head-to-head receives", (4, 3))


@pytest.mark.parametrize("name", ["Send", "Ssend"])
def test_sends_in_a_circle_rely_on_buffering(name):
    found = diagnosed(*([send((rank + 1) % 3, line=8, name=name)] for rank in range(3)))
    assert found.pattern == "sends that rely on buffering"
    assert found.ranks == (0, 1, 2)
    assert ("MPI_Send may wait for its receiver" in found.hint) == (name == "Send")


def test_a_send_to_a_rank_in_a_barrier_relies_on_buffering():
    found = diagnosed([send(1, line=8)], [meet("Barrier", line=9)])
    assert found.pattern == "sends that rely on buffering"
    assert "Rank 0 (line 8) waits in MPI_Send" in found.hint


def test_strict_mode_is_said():
    found = diagnosed([send(1)], [send(0)], case=Case("allgather", 2, 4, strict=True))
    assert found.notes[0].startswith("Strict mode is on")


def test_a_message_with_another_tag_is_told_with_both_tags_and_lines():
    found = diagnosed([recv(1, tag=8, line=14)], [over(send(0, tag=7, line=9))], finished=[1])
    assert found.pattern == "mismatched tags"
    assert found.hint.startswith(
        "Rank 1 has sent with tag 7 to rank 0 (line 9), but rank 0 waits for tag 8 (line 14)."
    )
    assert (found.ranks, found.lines) == ((0,), (14, 9))


def test_a_message_that_was_received_already_is_no_other_tag():
    found = diagnosed(
        [over(recv(1, tag=7)), recv(1, tag=8)], [over(send(0, tag=7)), recv(0, tag=8)]
    )
    assert found.pattern == "head-to-head receives"


def test_a_message_for_a_request_that_nobody_waits_for_is_no_other_tag():
    found = diagnosed(
        [recv(1, tag=7, name="Irecv", end_ns=1), recv(1, tag=8)],
        [over(send(0, tag=7)), recv(0, tag=8)],
    )
    assert found.pattern == "head-to-head receives"


def test_a_message_on_another_communicator_is_told():
    found = diagnosed([recv(1, line=4)], [over(send(0, line=6, communicator=10))], finished=[1])
    assert found.pattern == "different communicators"
    assert "on one communicator (line 6), but rank 0 waits on another (line 4)" in found.hint


def test_barriers_of_different_communicators_are_told():
    found = diagnosed([meet("Barrier", line=4)], [meet("Barrier", line=6, communicator=10)])
    assert found.pattern == "different communicators"
    assert found.ranks == (0, 1)


def test_roots_that_differ_are_told_with_the_odd_one_first():
    found = diagnosed(
        *([meet("Bcast", line=5, root=int(rank == 1), members=3)] for rank in range(3))
    )
    assert found.pattern == "wrong root"
    assert found.hint.startswith(
        "Rank 1 calls MPI_Bcast with root 1 (line 5) and ranks 0 and 2 call MPI_Bcast with root 0"
    )
    assert found.ranks == (1, 0)
    assert found.headline == "deadlock: ranks call MPI_Bcast with different roots"


def test_different_collectives_are_told_also_of_ranks_that_went_on():
    ahead = [over(meet("Bcast", line=4, root=1)), meet("Barrier", sequence=1)]
    found = diagnosed([meet("Barrier", line=3)], ahead)
    assert found.pattern == "different collectives"
    assert "rank 1 calls MPI_Bcast (line 4) and rank 0 calls MPI_Barrier (line 3)" in found.hint
    assert found.ranks == (0,)


def test_different_counts_are_told_in_bytes():
    found = diagnosed(
        [over(meet("Bcast", line=3, root=0, bytes=4))],
        [meet("Bcast", line=4, root=0, bytes=16)],
        finished=[0],
    )
    assert found.pattern == "different counts"
    assert "rank 0 calls it with 4 bytes (line 3)" in found.hint


def test_the_root_of_a_gather_may_bring_nothing():
    found = diagnosed(
        [meet("Gather", root=0, members=3, bytes=0)],
        [meet("Gather", root=0, members=3, bytes=8)],
        [recv(0)],
    )
    assert found.pattern == "a collective that a rank never enters"


def test_a_collective_that_a_rank_never_enters_tells_what_it_does_instead():
    found = diagnosed(
        [meet("Barrier", line=20, members=3)],
        [],
        [meet("Barrier", line=20, members=3)],
        finished=[1],
    )
    assert found.pattern == "a collective that a rank never enters"
    assert found.hint.startswith(
        "Ranks 0 and 2 wait in MPI_Barrier (line 20), but rank 1 never calls it: rank 1 has "
        "returned."
    )
    assert found.ranks == (1,)
    assert "wait in MPI_Barrier for rank 1" in found.headline


def test_a_rank_that_returned_too_early_is_told_with_its_sends():
    found = diagnosed(
        [over(recv(1)), over(recv(1)), recv(1, line=9)],
        [over(send(0)), over(send(0))],
        finished=[1],
    )
    assert found.pattern == "a loop that ends early"
    assert found.hint.startswith(
        "Rank 1 has returned after sending 2 messages to rank 0; rank 0 still waits for one more "
        "(line 9)"
    )
    assert found.ranks == (0, 1)


def test_partners_that_do_not_name_each_other_are_told_with_how_often_they_did():
    def rank(*partners):
        return [
            call
            for partner in partners
            for call in (
                over(send(partner, line=6, name="Sendrecv")),
                over(recv(partner, line=6, name="Sendrecv")),
            )
        ]

    last = rank(0)
    for half in last:
        half.update(end_ns=0, done_ns=0, got_peer=-1)
    found = diagnosed([*rank(2, 1)], [*rank(0, 0)], [*rank(0), *last], finished=[0, 1])
    assert (found.pattern, found.ranks) == ("mismatched partners", (2, 0))
    assert "rank 2 named rank 0 2 times, and rank 0 named rank 2 1 time" in found.hint
    assert "3 ranks cannot all be paired" in found.hint


def test_a_rank_that_went_round_as_often_has_left_out_a_send():
    found = diagnosed([recv(1, line=5)], [over(recv(2, line=5))], [over(send(1))], finished=[1, 2])
    assert found.pattern == "a missing send"
    assert "look for an if that skips the send" in found.hint


def test_a_rank_that_took_more_than_it_gave_has_left_out_a_send():
    found = diagnosed([over(send(1)), recv(1, line=5)], [over(recv(0, line=7))], finished=[1])
    assert found.pattern == "a missing send"
    assert "It has received 1 message from rank 0 and sent none in return" in found.hint


def test_a_number_of_ranks_that_is_no_power_of_two_is_named():
    assert "3 is not a power of two" in diagnosed([recv(2)], [], [], finished=[1, 2]).hint
    assert "power of two" not in diagnosed([recv(1)], [], finished=[1]).hint


def test_waiting_for_any_rank_when_all_have_returned_is_one_receive_too_many():
    found = diagnosed([over(recv(-1), got_peer=1), recv(-1)], [over(send(0))], finished=[1])
    assert found.pattern == "a loop that ends early"
    assert "1 message was sent to it" in found.hint


def test_a_message_from_another_rank_than_the_one_waited_for_is_told():
    found = diagnosed([recv(1, line=4)], [], [over(send(0, line=6))], finished=[1, 2])
    assert found.pattern == "a receive from the wrong rank"
    assert "waits for rank 1 (line 4), which never sends to it" in found.hint
    assert "rank 2 has sent to rank 0 (line 6)" in found.hint


def test_a_ring_that_receives_from_the_wrong_side_is_no_head_to_head():
    def rank(number):
        return [over(send((number + 1) % 3)), recv((number + 1) % 3)]

    found = diagnosed(*map(rank, range(3)))
    assert found.pattern == "a receive from the wrong rank"
    assert found.ranks == (0, 1, 2)


def test_a_circle_with_a_message_from_a_rank_outside_of_it_is_no_head_to_head():
    found = diagnosed([recv(2, line=4)], [over(send(2, line=6))], [recv(0, line=4)], finished=[1])
    assert (found.pattern, found.ranks) == ("a receive from the wrong rank", (2,))
    assert "Rank 2 waits for rank 0 (line 4), which never sends to it; but rank 1" in found.hint


def test_a_number_of_ranks_is_not_blamed_for_a_second_message_that_does_not_come():
    found = diagnosed([over(recv(1)), recv(1)], [over(send(0))], [], finished=[1, 2])
    assert found.pattern == "a loop that ends early" and "power of two" not in found.hint


@pytest.mark.parametrize("record", [send(0, line=5, name="Ssend"), recv(0, line=5)])
def test_a_message_to_oneself_is_told(record):
    found = diagnosed([record], [recv(0)])
    assert found.pattern == "a message to oneself"
    assert found.ranks == (0,)
    assert "itself with MPI_" in found.hint and "(line 5)" in found.hint


def test_a_send_that_nobody_receives_any_more_is_left_over():
    found = diagnosed([send(1, tag=3, line=7)], [], finished=[1])
    assert found.pattern == "a message left over"
    assert "until rank 1 receives its message (tag 3, 4 bytes), but rank 1 has returned" in (
        found.hint
    )


def test_a_request_that_nobody_answers_is_told_with_its_line():
    found = diagnosed([recv(-1, line=3, name="Irecv", waiter=1, end_ns=1), wait(line=8)], [recv(0)])
    assert found.pattern == "a request never completed"
    assert found.hint.startswith(
        "Rank 0 waits in MPI_Wait (line 8) for the MPI_Irecv from any rank (line 3), but no rank"
    )


def test_of_several_requests_the_one_that_nothing_comes_for_is_shown():
    found = diagnosed(
        [
            recv(2, name="Irecv", waiter=2, end_ns=1),
            recv(1, tag=5, name="Irecv", waiter=2, end_ns=1),
            wait(name="Waitall"),
        ],
        [recv(0)],
        [over(send(0))],
        finished=[2],
    )
    assert found.tables[0].rows[0][:4] == (0, "MPI_Waitall for MPI_Irecv", "from 1", 5)
    assert found.pattern == "a request never completed"


@pytest.mark.parametrize("name", ["Test", "Iprobe"])
def test_polling_in_vain_is_told(name):
    polling = (
        [recv(1, name="Irecv", waiter=1, end_ns=1), poll(line=6)]
        if name == "Test"
        else [poll(line=6, name="Iprobe", peer=1, tag=0)]
    )
    found = diagnosed(polling, [recv(0)])
    assert found.pattern == "polling in vain"
    assert f"Rank 0 polls with MPI_{name} (line 6) for a message from rank 1" in (found.hint)


def test_a_deadlock_that_nobody_knows_still_tells_who_waits():
    found = diagnosed([meet("Barrier", line=4, members=1)], [meet("Barrier", line=4, members=1)])
    assert found.pattern == ""
    assert found.ranks == (0, 1)
    assert found.hint
