"""Blocks that all went to one place, or to another sender's place, are identified by their
receives."""

import pytest
from made_up import over, recv, run_of, send, sites_are_lines  # noqa: F401
from test_wrong_result import outputs_of

from mpilab.cases.case import Case, block_places
from mpilab.diagnosis import diagnose
from mpilab.trace.recording import ANY, ERR_TRUNCATE

pytestmark = pytest.mark.usefixtures("sites_are_lines")
CASE = Case("allgather", 3, 2)
SEVERAL = "Each rank with a wrong block received several messages"


def got(source, line=17, **values):
    return over(recv(source, line=line), **{"got_bytes": 8, "got_peer": source, **values})


def from_any(source, line=17, **values):
    return got(source, line, **{"peer": ANY, **values})


def told(records, held):
    """The Diagnosis of rank 0 with these records, whose blocks hold `held`: a rank's, or None."""

    def change(rank, received, before, right):
        for slot, source in enumerate(held) if rank == 0 else ():
            data = (
                before[block_places(CASE, slot)]
                if source is None
                else right[block_places(CASE, source)]
            )
            received[block_places(CASE, slot)] = data

    return diagnose(
        run_of(
            records,
            [],
            [],
            outcome="done",
            finished=range(3),
            case=CASE,
            outputs=outputs_of(CASE, change),
        )
    )


@pytest.mark.parametrize(
    ("held", "where"),
    [((2, None, None), "its own block. "), ((0, 2, None), "block 1 and its own block. ")],
)
def test_receives_into_one_place_are_told_without_a_guess_at_the_cause(held, where):
    found = told([got(1), got(2)], held)
    assert found.pattern == "blocks in the wrong place"
    assert found.hint.startswith(f"{SEVERAL}, but wrote nothing outside {where}")
    assert "the datatype of MPI_Recv (line 17)" in found.hint and found.lines == (17,)


@pytest.mark.parametrize(
    ("records", "held"),
    [
        ([got(1)], (2, None, None)),
        ([got(1), got(2)], (0, 1, None)),
        ([got(1), got(2)], (0, None, None)),
        ([], (2, None, None)),
    ],
)
def test_what_was_not_received_twice_or_lies_right_is_another_fault(records, held):
    assert SEVERAL not in told(records, held).hint


def test_blocks_of_any_rank_in_another_ones_place_are_told():
    found = told([from_any(2), from_any(1)], (0, 2, 1))
    assert found.pattern == "blocks in the wrong place" and found.lines == (17,)
    assert found.hint.startswith("Line 17 receives from any rank (MPI_ANY_SOURCE)")
    assert "status.MPI_SOURCE" in found.hint


@pytest.mark.parametrize("records", [[got(2), got(1)], [from_any(2), from_any(2)]])
def test_receives_with_a_name_or_of_one_sender_are_not_blamed(records):
    assert "MPI_ANY_SOURCE" not in told(records, (0, 2, 1)).hint


def test_receives_from_any_rank_are_noted_beside_another_fault():
    found = told([from_any(2, line=17), from_any(1, line=18)], (0, 1, None))
    assert found.pattern == "blocks never written"
    assert found.notes == (
        "Lines 17 and 18 receive from any rank (MPI_ANY_SOURCE): a message of a later step may "
        "arrive first. Name the source.",
    )


def test_a_message_too_long_for_a_receive_from_any_rank_is_one_of_another_step():
    failed = from_any(1, line=9, got_bytes=32, error=ERR_TRUNCATE)
    found = told([failed], (0, 1, 2))
    assert (found.kind, found.pattern) == ("mpi-error", "message truncated")
    assert found.hint.startswith(
        "MPI_Recv (line 9) receives from any rank (MPI_ANY_SOURCE), and got rank 1's message"
    )


def test_a_message_too_long_for_a_receive_with_a_name_keeps_its_hint():
    found = told([got(1, got_bytes=32, error=ERR_TRUNCATE)], (0, 1, 2))
    assert "Compare count and datatype" in found.hint


def test_a_gather_into_one_place_is_told_by_its_root_alone():
    case = Case("gather", 3, 2)

    def change(rank, received, before, right):
        for slot in (1, 2) if rank == 0 else ():
            received[block_places(case, slot)] = before[block_places(case, slot)]
        if rank == 0:
            received[block_places(case, 0)] = right[block_places(case, 2)]

    found = diagnose(
        run_of(
            [got(1), got(2)],
            [],
            [],
            outcome="done",
            finished=range(3),
            case=case,
            outputs=outputs_of(case, change),
        )
    )
    assert found.hint.startswith(f"{SEVERAL}, but wrote nothing outside its own block. ")
