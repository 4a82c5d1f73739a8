"""What a kernel leaves behind is reported with the line that created it, and how to free it."""

import pytest
from made_up import call, meet, over, recv, run_of, send, sites_are_lines  # noqa: F401

from mpilab.diagnosis import diagnose
from mpilab.trace.recording import LEAKED, NONBLOCKING, SENDS

pytestmark = pytest.mark.usefixtures("sites_are_lines")
DUP = over(meet("Comm_dup", line=7), flags=8 | LEAKED)
TYPE = over(call("Type_vector", 5, flags=LEAKED))
GROUP = over(call("Group_incl", 8, flags=LEAKED))
REQUEST = over(send(1, line=3, name="Isend", flags=SENDS | NONBLOCKING | LEAKED))


def left(*of_ranks, headers=None):
    ended = {rank: {"ended_ns": 9} for rank in range(len(of_ranks))}
    return diagnose(
        run_of(
            *of_ranks,
            outcome="done",
            finished=range(len(of_ranks)),
            headers=ended if headers is None else headers,
        )
    )


@pytest.mark.parametrize(
    ("record", "pattern", "words", "remedy"),
    [
        (DUP, "communicator leaked", "never freed a communicator made in line 7", "MPI_Comm_free"),
        (TYPE, "datatype leaked", "never freed a datatype made in line 5", "MPI_Type_free(&type)"),
        (GROUP, "group leaked", "never freed a group made in line 8", "MPI_Group_free(&group)"),
        (REQUEST, "request leaked", "never completed a request started in line 3", "MPI_Wait"),
    ],
)
def test_what_leaked_is_told_with_its_line_and_remedy(record, pattern, words, remedy):
    found = left([record], [over(recv(0))])
    assert (found.kind, found.pattern, found.ranks) == ("leak", pattern, (0,))
    assert found.headline == f"the result is right, but rank 0 {words}"
    assert remedy in found.hint
    assert found.lines == (record["site"],)


def test_a_communicator_is_a_likely_leak_only_until_the_end_has_been_seen():
    assert "probably never freed" in left([DUP], [], headers={}).headline


def test_many_of_one_line_are_counted():
    found = left([TYPE, TYPE], [TYPE, TYPE])
    assert "ranks 0 and 1 never freed 4 datatypes made in line 5" in found.headline
    assert found.tables[0].rows == (
        (0, "datatype", "MPI_Type_vector", 5, 2),
        (1, "datatype", "MPI_Type_vector", 5, 2),
    )


def test_all_kinds_are_told_the_first_as_the_pattern():
    found = left([TYPE, DUP], [])
    assert found.pattern == "communicator leaked"
    assert found.notes == ("Besides, rank 0 never freed a datatype made in line 5.",)


def test_a_message_that_nobody_received_is_told():
    found = left([over(send(1, line=4)), over(send(1, line=4))], [over(recv(0))])
    assert found.pattern == "unexpected message"
    assert "1 message that rank 0 sent to rank 1 in line 4 was never received" in found.headline


def test_a_message_to_oneself_counts_as_well():
    assert left([over(send(0, line=4))]).pattern == "unexpected message"


@pytest.mark.parametrize(
    "receiver",
    [
        [over(recv(0))],
        [recv(0, name="Irecv", end_ns=1)],
        [over(call("Mrecv", 1))],
        [over(recv(0), error=15)],
    ],
)
def test_a_message_that_was_received_or_may_have_been_is_no_leak(receiver):
    found = left([over(send(1))], receiver)
    assert found is None or found.kind != "leak"


def test_a_recording_that_is_not_whole_proves_nothing():
    assert left([over(send(1))], [], headers={1: {"dropped": 3}}) is None
