"""The tables that diagnoses show: one row a call, and what each rank waits for."""

import pytest
from c_kernels import build_kernels, run
from made_up import meet, over, recv, run_of, send, sites_are_lines, wait  # noqa: F401

from mpilab.diagnosis import diagnose
from mpilab.diagnosis.evidence import LAST_CALLS, Evidence
from mpilab.trace.matching import communicator_of


def evidence_of(*of_ranks, **more):
    return Evidence(run_of(*of_ranks, **more))


def exchange(to, source, line=3, **values):
    values = {"name": "Sendrecv", "line": line, **values}
    return [over(send(to, **values)), over(recv(source, **values))]


OWN = {"communicator": communicator_of((0,))}


@pytest.mark.usefixtures("sites_are_lines")
def test_a_send_receive_is_one_row():
    rows = evidence_of([*exchange(1, 2), *exchange(1, 1)], [], []).last_calls(0).rows
    assert [row[:5] for row in rows] == [
        ("MPI_Sendrecv", "to 1, from 2", 0, 4, 3),
        ("MPI_Sendrecv", "to 1, from 1", 0, 4, 3),
    ]


@pytest.mark.usefixtures("sites_are_lines")
def test_the_error_of_either_half_is_that_of_the_row():
    first, second = exchange(1, 1)
    table = evidence_of([{**first, "error": 6}, second], []).last_calls(0)
    assert [row[-1] for row in table.rows] == ["MPI_ERR_RANK"]


@pytest.mark.usefixtures("sites_are_lines")
def test_as_many_rows_as_calls_are_asked_for_are_shown_whole():
    rows = evidence_of(exchange(1, 1) * 30, []).last_calls(0).rows
    assert len(rows) == LAST_CALLS and {row[1] for row in rows} == {"to 1, from 1"}


@pytest.mark.usefixtures("sites_are_lines")
def test_a_copy_within_the_rank_is_no_call_and_a_message_to_itself_is_one():
    copied, itself = exchange(0, 0, **OWN), exchange(0, 0, line=7)
    assert [row[4] for row in evidence_of([*copied, *itself], []).last_calls(0).rows] == [7]
    assert evidence_of(copied, []).last_calls(0) is None
    failed = [{**record, "error": 6} for record in copied]
    assert len(evidence_of(failed, []).last_calls(0).rows) == 1


def test_the_copy_of_a_kernel_is_known_by_the_number_of_its_communicator(tmp_path):
    body = """
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    MPI_Barrier(comm);
    MPI_Send(&rank, 1, MPI_INT, 99, 0, comm);"""
    result = run(build_kernels(tmp_path, {"copying": body}), "copying", ranks=3)
    for rank in range(3):
        rows = Evidence(result).last_calls(rank).rows
        assert [row[0] for row in rows] == ["MPI_Barrier", "MPI_Send"]


@pytest.mark.usefixtures("sites_are_lines")
def test_of_several_requests_it_is_told_how_many_more_there_are():
    def rank(number):
        others = [other for other in range(4) if other != number]
        return [
            *(recv(other, name="Irecv", line=4, waiter=3, end_ns=1) for other in others),
            wait(line=6, name="Waitall"),
        ]

    rows = evidence_of(*map(rank, range(4))).doing().rows
    assert [row[2] for row in rows] == ["from 1 and 2 more", *["from 0 and 2 more"] * 3]


@pytest.mark.usefixtures("sites_are_lines")
def test_a_line_in_which_more_ranks_wait_names_them_all():
    found = diagnose(
        run_of([recv(3, line=8)], [recv(0, line=8)], [recv(1, line=8)], [], finished=[3])
    )
    assert found.ranks == (0, 3)
    assert [place.label for place in found.places] == ["ranks 0 to 2 wait here"]


@pytest.mark.usefixtures("sites_are_lines")
def test_all_that_have_sent_past_their_receiver_are_named():
    others = (
        [
            over(send(1 - rank, tag=1, line=4)),
            over(send(1 - rank, tag=1, line=4)),
            recv(1 - rank, tag=2, line=6),
        ]
        for rank in range(2)
    )
    found = diagnose(run_of(*others))
    assert found.pattern == "mismatched tags"
    assert found.places[-1].label == "ranks 0 and 1 have sent here"


@pytest.mark.usefixtures("sites_are_lines")
def test_a_message_to_oneself_does_not_count_among_those_from_anywhere():
    got = over(recv(-1), got_peer=1)
    found = diagnose(
        run_of([*exchange(0, 0, **OWN), got, recv(-1, line=5)], [over(send(0))], finished=[1])
    )
    assert "1 message was sent to it" in found.hint


@pytest.mark.usefixtures("sites_are_lines")
def test_a_circle_of_several_ranks_is_shown_before_one_of_a_rank_with_itself():
    def rank(number):
        peers = (1 - number, number)
        return [
            *(recv(peer, name="Irecv", line=4, waiter=2, end_ns=1) for peer in peers),
            wait(line=6, name="Waitall"),
        ]

    assert diagnose(run_of(rank(0), rank(1))).cycle == (0, 1)
