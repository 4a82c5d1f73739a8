"""A barrier is reported as broken only if the messages prove it."""

from dataclasses import replace

import pytest
from made_up import FINISHED, call, meet, over, rank_of, recv, run_of, send, sites_are_lines  # noqa: F401

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.trace.recording import Recording

pytestmark = pytest.mark.usefixtures("sites_are_lines")
STEP = 1000


def barrier(*of_ranks, function="barrier_mine", **header):
    """The Result of a barrier with these calls on each rank; call i of a rank takes place at i."""
    timed = [
        [
            {
                **record,
                "begin_ns": STEP * (at + 1),
                "end_ns": STEP * (at + 1) + 500,
                "done_ns": STEP * (at + 1) + 500,
            }
            for at, record in enumerate(records)
        ]
        for records in of_ranks
    ]
    size = len(of_ranks)
    result = run_of(*timed, outcome="done", finished=range(size), case=Case("barrier", size, 0))
    ranks = [
        rank_of(number, size, records, **FINISHED, **header) for number, records in enumerate(timed)
    ]
    return replace(result, recording=Recording(ranks), ranks=ranks, function=function)


def test_a_rank_that_is_told_of_nobody_is_named_with_whom_it_misses():
    found = diagnose(
        barrier([over(recv(1)), over(recv(2))], [over(send(0, line=17))], [over(send(0, line=17))])
    )
    assert (found.kind, found.pattern, found.ranks) == ("wrong-result", "left too early", (1, 2))
    assert found.headline == "no barrier: rank 1 can leave it before ranks 0 and 2 have come"
    assert (
        "rank 0 has heard of all ranks, but what rank 0 knows does not reach the others"
    ) in found.hint
    assert found.tables[0].rows == ((1, "0 and 2"), (2, "0 and 1"))
    assert found.lines == (17,) and found.places[0].label == "ranks 1 and 2 make the last call here"


def test_an_answer_makes_it_a_barrier():
    assert diagnose(barrier([over(recv(1)), over(send(1))], [over(send(0)), over(recv(0))])) is None


def test_too_few_rounds_are_counted():
    ranks = [[over(send((rank + 1) % 4)), over(recv((rank - 1) % 4))] for rank in range(4)]
    hint = diagnose(barrier(*ranks)).hint
    assert "After 1 round, each rank has heard of 2 of 4 ranks, itself included" in hint
    assert "4 ranks need at least 2" in hint


def test_a_barrier_without_messages_is_told_so():
    assert "No message was sent at all" in diagnose(barrier([], [], [])).hint


@pytest.mark.parametrize(
    "records",
    [
        [over(meet("Barrier", members=2))],
        [over(call("Mrecv", 9, flags=2, peer=-2, got_peer=-2, got_bytes=0))],
    ],
)
def test_calls_by_which_ranks_may_have_heard_of_each_other_prove_nothing(records):
    assert diagnose(barrier(records, records)) is None


def test_what_is_not_recorded_proves_nothing():
    assert diagnose(barrier([], [], function="barrier_openmpi")) is None
    assert diagnose(barrier([], [], dropped=1)) is None
