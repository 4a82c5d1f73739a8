"""Ranks that disagree in a collective are reported even if no rank waits in it anymore."""

from dataclasses import replace

import numpy as np
import pytest
from made_up import (  # noqa: F401
    FINISHED,
    NUMBERS,
    meet,
    over,
    rank_of,
    recv,
    run_of,
    send,
    sites_are_lines,
)

from mpilab.diagnosis import diagnose
from mpilab.diagnosis.collectives import because_of_collectives, disagreement
from mpilab.diagnosis.evidence import Evidence
from mpilab.diagnosis.model import LEAK, MPI_ERROR, WRONG_RESULT, Diagnosis, Place
from mpilab.trace.recording import COLLECTIVE, ERR_TRUNCATE

pytestmark = pytest.mark.usefixtures("sites_are_lines")
WRONG = Diagnosis(
    WRONG_RESULT,
    "wrong result on rank 1: 3 blocks",
    pattern="blocks never written",
    places=(Place(5, "text 5"), Place(9, "text 9")),
    notes=("A note.",),
)


def bcast(root=0, bytes=16, line=5, sequence=0, **values):  # noqa: A002
    values = {"members": values.pop("members", 3), "bytes": bytes, **values}
    return over(
        meet(values.pop("name", "Bcast"), line=line, root=root, sequence=sequence, **values)
    )


def ended(*of_ranks, found=WRONG, **more):
    """`found` with the evidence of a run that has come to its end."""
    run = run_of(*of_ranks, outcome="done", finished=range(len(of_ranks)), **more)
    return because_of_collectives(found, Evidence(run))


def test_roots_that_differ_are_the_cause_of_a_wrong_result():
    found = ended(*([bcast(root=rank)] for rank in range(3)))
    assert (found.kind, found.pattern) == (WRONG_RESULT, "wrong root")
    assert found.headline == "wrong result: ranks call MPI_Bcast with different roots"
    assert "rank 1 calls MPI_Bcast with root 1 (line 5)" in found.hint
    assert found.lines == (5, 9)
    assert found.places[0].label == "ranks 0 to 2 call it here"
    assert found.notes == ("Wrong result on rank 1: 3 blocks.", "A note.")


def test_other_amounts_are_the_cause_of_an_error_there():
    error = replace(WRONG, kind=MPI_ERROR)
    cut = bcast(error=ERR_TRUNCATE)
    found = ended([bcast(bytes=64)], [cut], [cut], found=error)
    assert found.pattern == "different counts"
    assert found.headline == "MPI error: ranks call MPI_Bcast with different amounts of data"
    assert "rank 0 calls it with 64 bytes (line 5) and ranks 1 and 2 call it with 16" in found.hint


def test_a_collective_that_only_the_root_has_called_is_told():
    found = ended([bcast(line=7)], [], [])
    assert found.headline == "wrong result: only rank 0 called MPI_Bcast"
    assert "Only rank 0 called MPI_Bcast (line 7), ranks 1 and 2 never did." in found.hint
    assert found.ranks == (1, 2, 0)


def test_the_earliest_disagreement_is_told():
    def rank(number):
        return [
            bcast(root=number, bytes=number, sequence=1, begin_ns=1, line=3),
            bcast(sequence=2, name="Gather" if number else "Bcast", line=4),
        ]

    assert ended(*map(rank, range(3))).pattern == "wrong root"


@pytest.mark.parametrize(
    "of_ranks",
    [
        ([bcast()],) * 3,
        # In a gather, the root may pass MPI_IN_PLACE, and other collectives accept different
        # amounts.
        ([bcast(bytes=0, name="Gather")], [bcast(name="Gather")], [bcast(name="Gather")]),
        tuple([bcast(bytes=rank, name="Gatherv")] for rank in range(3)),
        # Communicators of one rank, and parts whose ranks are unknown.
        tuple([bcast(root=rank, members=1)] for rank in range(3)),
        ([bcast(members=2)], [], []),
        # A rank that does not free a communicator leaks it; and no rank leaves its creation alone.
        ([bcast(root=-1, name="Comm_free")], [], []),
        ([bcast(root=-1, name="Comm_dup")], [], []),
        # After an error, or with one, nothing is certain.
        ([over(send(1), error=6), bcast(root=0)], [bcast(root=1)], [bcast(root=1)]),
        ([bcast(root=-2, error=8)], [bcast()], [bcast()]),
        ([bcast()], [over(send(9), error=6)], []),
        # No number of a communicator: it is none.
        tuple([bcast(root=rank, communicator=0)] for rank in range(3)),
        # One number for two communicators.
        ([bcast(root=0), bcast(root=1)], [bcast()], [bcast()]),
    ],
)
def test_what_ranks_may_do_is_no_disagreement(of_ranks):
    assert ended(*of_ranks) is WRONG


def test_what_is_no_failure_of_the_run_is_left_as_it_is():
    leak = replace(WRONG, kind=LEAK)
    roots = [[bcast(root=rank)] for rank in range(3)]
    assert ended(*roots, found=leak) is leak
    assert ended(*roots, found=None) is None


def test_a_rank_with_more_calls_than_fit_may_have_called_it():
    assert ended([bcast()], [], [], headers={2: {"dropped": 1}}) is WRONG


def test_a_disagreement_of_the_past_is_what_a_deadlock_is_told_by():
    found = diagnose(
        run_of(*([bcast(root=rank), recv((rank + 1) % 3, line=8)] for rank in range(3)))
    )
    assert (found.kind, found.pattern) == ("deadlock", "wrong root")
    assert set(found.lines) == {5, 8}


@pytest.mark.parametrize(
    ("call", "receive"), [(bcast(), recv(0, line=8)), (bcast(root=1, name="Gather"), recv(0))]
)
def test_who_receives_what_the_other_gave_to_a_collective_is_told(call, receive):
    found = diagnose(run_of([call, recv(1, line=9)], [receive], [], finished=[2]))
    assert found.pattern == "a collective that a rank never enters"
    assert f"rank 0 has called {name(call)}, rank 1 waits in MPI_Recv" in found.headline
    assert f"every rank must call {name(call)} itself" in found.hint
    assert 5 in found.lines and found.ranks == (1,)


def test_a_receive_from_a_rank_that_met_everybody_is_none_of_that():
    found = diagnose(run_of([bcast(), recv(1)], [bcast(), recv(0)], [bcast()], finished=[2]))
    assert found.pattern == "head-to-head receives"


def name(call):
    return next(f"{known}" for known, number in NUMBERS.items() if number == call["operation"])


def test_numbers_that_mean_nothing_do_no_harm():
    random = np.random.default_rng(7)
    run = run_of([bcast()] * 50, [bcast()] * 50, [bcast()] * 50)
    for rank in run.ranks:
        raw = random.integers(0, 256, rank.records.nbytes, dtype=np.uint8)
        rank.records = raw.view(rank.records.dtype).copy()
        rank.records["flags"] |= COLLECTIVE
        rank.records["communicator"][::2] = 9
        rank.records["sequence"][::3] = 0
    assert disagreement(Evidence(run)) is None or disagreement(Evidence(run)).hint


def test_many_collectives_are_compared_at_once():
    number = 100_000
    ranks = [rank_of(rank, 2, [bcast()], **FINISHED) for rank in range(2)]
    for rank in ranks:
        rank.records = np.repeat(rank.records, number)
        rank.records["sequence"] = np.arange(number)
        rank.records["members"] = 2
    ranks[1].records["peer"][-1] = 1
    run = run_of([], [], outcome="done")
    run.ranks = ranks
    assert disagreement(Evidence(run)).pattern == "wrong root"
