"""Requests never completed explain a wrong result; a correct one was luck."""

import pytest
from made_up import meet, over, poll, recv, run_of, send, sites_are_lines, wait  # noqa: F401
from test_wrong_result import CASE, forget, outputs_of

from mpilab.diagnosis import diagnose
from mpilab.trace.recording import COLLECTIVE, LEAKED, NONBLOCKING, RECEIVES, SENDS

pytestmark = pytest.mark.usefixtures("sites_are_lines")
RECEIVED, SENT = RECEIVES | NONBLOCKING, SENDS | NONBLOCKING
OTHERS = ([over(send(0))], [over(send(0))])


def pending(peer, line=16, **values):
    return recv(
        peer, line=line, name="Irecv", **{"end_ns": 5, "flags": RECEIVED | LEAKED, **values}
    )


def isend(peer, line=17, **values):
    return send(peer, line=line, name="Isend", **{"end_ns": 5, "flags": SENT | LEAKED, **values})


def told(records, others=OTHERS, wrong=True, change=None):
    """The Diagnosis of rank 0 with these records, and blocks 1 and 2 missing there if `wrong`."""
    change = change or (forget((0, 1), (0, 2)) if wrong else lambda *nothing: None)
    return diagnose(
        run_of(
            records,
            *others,
            outcome="done",
            finished=range(3),
            case=CASE,
            outputs=outputs_of(CASE, change),
        )
    )


@pytest.fixture
def source(monkeypatch):
    """A dict of lines, {number: text}, of which a kernel is made."""
    lines = {}
    monkeypatch.setattr(
        "mpilab.diagnosis.requests.source_line", lambda library, file, line: lines.get(line, "")
    )
    return lines


def test_receives_never_waited_for_are_the_cause_of_missing_blocks():
    found = told([pending(1), pending(2), isend(1), isend(2)])
    assert (found.kind, found.pattern, found.ranks) == (
        "wrong-result",
        "a request never completed",
        (0,),
    )
    assert found.headline == (
        "wrong result on rank 0: 2 MPI_Irecv (line 16) were started and never waited for: the "
        "data may not have arrived yet"
    )
    assert found.hint.startswith("Wait for every request") and "MPI_Waitall" in found.hint
    assert found.lines == (16,)
    assert found.notes[0] == "The same applies to 2 MPI_Isend (line 17)."


def test_a_collective_that_was_never_waited_for_is_a_cause_as_well():
    begun = meet("Ibcast", line=4, end_ns=5, flags=COLLECTIVE | NONBLOCKING | LEAKED)
    assert told([begun]).headline.startswith("wrong result on rank 0: 1 MPI_Ibcast (line 4) was")


@pytest.mark.parametrize("name", ["Test", "Testall", "Testany", "Testsome"])
def test_a_test_that_said_no_is_no_wait(name):
    found = told([pending(1, waiter=2), pending(2, waiter=2), poll(22, name)])
    assert found.hint.startswith(f"MPI_{name} (line 22) does not wait")
    assert found.lines == (16, 22)
    assert "were started and never completed" in found.headline


@pytest.mark.parametrize("name", ["Waitany", "Waitsome"])
def test_a_wait_for_one_of_several_is_told(name):
    found = told([pending(1, waiter=2), pending(2, waiter=2), over(wait(22, name))])
    assert found.hint.startswith(f"MPI_{name} (line 22) waits for one of the requests")


def test_a_wait_for_too_few_says_how_many_it_got():
    first = over(recv(1, line=16, name="Irecv", flags=RECEIVED), waiter=4)
    sent = over(isend(1, flags=SENT), waiter=4)
    found = told([first, sent, pending(2), isend(2), over(wait(20, "Waitall"), count=2)])
    assert found.hint.startswith("MPI_Waitall (line 20) got 2 of 4 requests")
    assert found.lines == (16, 20)
    assert found.places[1].label == "rank 0 waits for 2 of 4 requests here"


def test_a_single_wait_for_several_requests_says_how_many_it_got():
    second = over(recv(2, line=16, name="Irecv", flags=RECEIVED), waiter=2)
    found = told([pending(1), second, over(wait(20))])
    assert found.hint.startswith("MPI_Wait (line 20) was given 1 of 2 requests. Wait for each")


ISEND = "MPI_Isend(own, n, type, i, TAG, comm, &{});"
IRECV = "MPI_Irecv(block(recvbuf, i, n, type), n, type, i, TAG, comm, &{});"


def overwriting(receive, sent, between=""):
    """The hint on requests kept in these variables, of which the send's alone is waited for."""
    return {16: IRECV.format(receive), 17: between, 18: ISEND.format(sent)}, [
        pending(1),
        over(isend(1, line=18, flags=SENT), waiter=2),
        over(wait(20)),
    ]


@pytest.mark.parametrize("name", ["request", "requests[i]", "requests[2 * i]"])
def test_a_request_variable_that_is_overwritten_is_told(source, name):
    lines, records = overwriting(name, name)
    source.update(lines)
    found = told(records)
    assert found.hint.startswith(
        f"{name.replace(' ', '')} was overwritten by line 18 while the request of line 16 was still"
    )
    assert found.lines == (16, 18)


@pytest.mark.parametrize(
    ("receive", "sent", "between"),
    [
        ("requests[n++]", "requests[n++]", ""),
        ("requests[n]", "requests[n]", "n++;"),
        ("requests[n]", "requests[n]", "n += 1;"),
        ("in", "out", ""),
    ],
)
def test_a_request_that_may_be_another_is_not_called_overwritten(source, receive, sent, between):
    lines, records = overwriting(receive, sent, between)
    source.update(lines)
    assert "overwritten" not in told(records).hint


def test_a_variable_that_a_loop_uses_again_is_told_also_on_a_second_line(source):
    source.update(
        {
            16: "MPI_Irecv(block(recvbuf, i, n, type), n, /* one */",
            17: "          type, i, TAG, comm, &request);",
        }
    )
    second = over(recv(2, line=16, name="Irecv", flags=RECEIVED), waiter=2)
    found = told([pending(1), second, over(wait(20))])
    assert found.hint.startswith("request was overwritten by the next iteration of the loop")


def test_a_right_result_with_data_still_coming_is_luck():
    found = told([pending(1), pending(2)], wrong=False)
    assert (found.kind, found.pattern) == ("leak", "request leaked")
    assert found.headline == (
        "the result is right, but only by luck: 2 MPI_Irecv (line 16) were "
        "started and never waited for"
    )
    assert found.hint.startswith("Next time, the kernel may return before the data arrives. Wait")


@pytest.mark.parametrize("wrong", [True, False])
def test_a_receive_that_nobody_sends_to_brings_no_data(wrong):
    found = told([pending(1, tag=5)], wrong=wrong)
    assert (found.pattern, "luck" in found.headline) == (
        "blocks never written" if wrong else "request leaked",
        False,
    )


def test_sends_that_nobody_waited_for_are_no_cause_of_missing_blocks():
    found = told([isend(1)], others=([over(recv(0))], []))
    assert found.pattern == "blocks never written"
    assert "never completed a request started in line 17" in found.notes[0]


def test_what_the_memory_proves_is_told_before_requests():
    def change(rank, received, before, right):
        received[-1] ^= 1

    found = told([pending(1)], change=change)
    assert found.pattern == "outside the receive buffer"
    assert "never completed a request" in found.notes[0]
