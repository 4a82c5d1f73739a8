"""Wrong results of an alltoallv are identified by what is in the place of a block."""

import numpy as np
import pytest

from mpilab.cases import counts as exchange
from mpilab.cases.case import Case, block_places, gap_places, sent_places
from mpilab.cases.data import GUARD_BYTES
from mpilab.cases.output import Output
from mpilab.diagnosis import diagnose
from mpilab.runners.result import Result

CASE = Case("alltoallv", 4, 4, pattern="ragged")


def diagnosed(change, case=CASE):
    """The Diagnosis of outputs that were correct until `change(rank, received, before)`."""
    after, outputs = case.expected(), []
    for rank in range(case.ranks):
        sent, before = case.regions(rank)
        received = after[rank].copy()
        change(rank, received, before)
        outputs.append(Output(rank, 0, received, sent.copy(), np.zeros((1, 2), np.int64)))
    return diagnose(Result(case, "done", outputs=outputs))


def test_a_block_at_another_place_is_told_with_its_displacement():
    def one_behind_the_other(rank, received, before):
        right = received.copy()
        received[:] = before
        at = GUARD_BYTES
        for source in range(4):
            data = right[block_places(CASE, source, rank)]
            received[at : at + len(data)] = data
            at += len(data)

    found = diagnosed(one_behind_the_other)
    assert (found.kind, found.pattern) == ("wrong-result", "blocks in the wrong place")
    belongs = exchange.received(CASE, 0).begins[0]
    assert found.hint.startswith("On rank 0, the block of rank 0 begins at element 0 of the rec")
    assert belongs > 0 and f"it belongs at element rdispls[0] = {belongs}." in found.hint


def test_the_block_for_another_rank_is_told_with_whom_it_was_for():
    case = Case("alltoallv", 3, 5)

    def from_the_next(rank, received, before):
        for source in range(3):
            data = case.regions(source)[0][sent_places(case, (rank + 1) % 3, source)]
            received[block_places(case, source, rank)] = data

    found = diagnosed(from_the_next, case)
    assert found.pattern == "the block of another rank"
    assert found.hint.startswith("Rank 0 received what rank 0 should send to rank 1.")
    assert "begins at element sdispls[0] of the send buffer" in found.hint


def test_what_was_taken_from_another_place_of_the_send_buffer_is_told():
    def by_rdispls(rank, received, before):
        for source in range(4):
            places = block_places(CASE, source, rank)
            begin = int(exchange.received(CASE, source).begins[rank])
            sent = CASE.regions(source)[0][GUARD_BYTES:-GUARD_BYTES]
            data = sent[4 * begin : 4 * begin + len(places)]
            received[places[: len(data)]] = data

    found = diagnosed(by_rdispls)
    assert found.pattern == "the wrong block sent"
    assert "have separate displacements, in elements, not bytes" in found.hint


@pytest.mark.parametrize("datatype", ["int", "struct", "mixed"])
def test_the_end_of_a_block_that_has_not_come_is_told_in_elements(datatype):
    case = Case("alltoallv", 2, 8, datatype)

    def without_the_end(rank, received, before):
        for source in range(2):
            places = block_places(case, source, rank)
            rest = places[6 * len(places) // 8 :]
            received[rest] = before[rest]

    found = diagnosed(without_the_end, case)
    assert found.pattern == "part of the message missing"
    assert found.hint.startswith(
        "Rank 0 received 6 of the 8 elements that rank 0 has for it (recvcounts[0] here, "
        "sendcounts[0] there)."
    )


def test_counts_of_the_other_direction_are_told_with_both_counts():
    counts = exchange.elements(CASE)

    def swapped(rank, received, before):
        for source in range(4):
            places = block_places(CASE, source, rank)
            rest = places[4 * counts[rank, source] :]
            received[rest] = before[rest]

    found = diagnosed(swapped)
    assert found.pattern == "part of the message missing"
    assert (
        "Rank 0 should send 6 elements to rank 1, and rank 1 should send 4 to rank 0"
    ) in found.hint


def test_own_blocks_that_are_missing_are_known_also_where_one_of_them_is_empty():
    def forget(rank, received, before):
        places = block_places(CASE, rank, rank)
        received[places] = before[places]

    found = diagnosed(forget)
    assert exchange.elements(CASE).diagonal().tolist() == [2, 8, 4, 0]
    assert (found.pattern, found.ranks) == ("own block missing", (0, 1, 2))
    assert "from sdispls[rank] to rdispls[rank]" in found.hint


def test_blocks_that_nobody_wrote_are_told_as_such():
    def forget(rank, received, before):
        if rank < 2:
            received[:] = before

    found = diagnosed(forget)
    assert (found.pattern, found.ranks) == ("blocks never written", (0, 1))


def test_gaps_between_blocks_are_no_holes_of_the_datatype():
    case = Case("alltoallv", 3, 4, "struct", pattern="ragged")

    def spill(rank, received, before):
        received[gap_places(case, rank)[-1]] ^= 1

    found = diagnosed(spill, case)
    assert found.headline == (
        "wrong result on ranks 0 to 2: the gaps between the blocks were overwritten"
    )
    assert found.pattern == ""


def test_blocks_without_their_holes_are_known_at_any_displacement():
    case = Case("alltoallv", 3, 4, "vector", pattern="ragged")

    def packed(rank, received, before):
        right = received.copy()
        received[:] = before
        side = exchange.received(case, rank)
        for source in range(3):
            data = right[block_places(case, source, rank)]
            at = GUARD_BYTES + 24 * int(side.begins[source])
            received[at : at + len(data)] = data

    assert diagnosed(packed, case).pattern == "extent ignored"


def test_noise_is_told_without_a_pattern():
    def scramble(rank, received, before):
        received[block_places(CASE, 2, rank)] ^= 0x5A

    found = diagnosed(scramble)
    assert found.kind == "wrong-result" and found.pattern == ""
    assert found.tables[1].rows[0][:2] == (0, 2)
