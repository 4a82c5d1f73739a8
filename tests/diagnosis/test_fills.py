"""Memory that was sent before any data had arrived in it is recognized wherever it is."""

import pytest
from made_up import over, run_of, send, sites_are_lines  # noqa: F401
from test_wrong_result import outputs_of

from mpilab.cases.case import Case, block_places
from mpilab.cases.output import Output
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.memory import Fill, fills
from mpilab.diagnosis.wrong_result import WRONG, picture

pytestmark = pytest.mark.usefixtures("sites_are_lines")
CASE = Case("allgather", 3, 2)


def put(*moved, case=CASE):
    """Outputs in which block `block` of `rank` holds what block `slot` of `source` held first."""

    def change(rank, received, before, right):
        for fill in moved:
            if fill.rank == rank:
                first = case.regions(fill.source)[1]
                received[block_places(case, fill.block)] = first[block_places(case, fill.slot)]

    return outputs_of(case, change)


def told(*moved, records=None):
    records = records or [[over(send((rank + 1) % 3, line=17))] for rank in range(3)]
    return diagnose(
        run_of(*records, outcome="done", finished=range(3), case=CASE, outputs=put(*moved))
    )


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("datatype", ["int", "vector", "struct", "shifted", "mixed"])
def test_the_first_contents_of_a_block_are_known_wherever_they_lie(datatype, in_place):
    case = Case("allgather", 3, 2, datatype, in_place=in_place)
    moved = [Fill(0, 1, 2, 1), Fill(1, 0, 0, 1), Fill(2, 1, 2, 0)]
    wrong = [(fill.rank, fill.block) for fill in moved]
    assert fills(case, put(*moved, case=case), wrong) == moved
    codes, *_ = picture(case, put(*moved, case=case))
    assert all(codes[place] == WRONG for place in wrong)


def test_other_data_and_tiny_blocks_are_nobodys():
    outputs = put()
    outputs[0].received[block_places(CASE, 1)] = 7
    assert fills(CASE, outputs, [(0, 1), (0, 2)]) == []
    tiny = Case("allgather", 3, 1, "byte")
    assert fills(tiny, put(Fill(0, 1, 2, 1), case=tiny), [(0, 1)]) == []


def test_an_output_of_the_wrong_size_holds_nothing_known():
    outputs = put(Fill(0, 1, 2, 1))
    outputs[0] = Output(0, 0, outputs[0].received[:9], outputs[0].sent, outputs[0].spans_ns)
    assert fills(CASE, outputs, [(0, 1), (0, 2)]) == []


def test_a_block_that_was_sent_on_before_it_came_is_told():
    found = told(Fill(0, 1, 2, 1), Fill(1, 2, 0, 2))
    assert (found.pattern, found.ranks) == ("a block sent too early", (0, 1))
    assert found.hint.startswith(
        "Rank 0's block 1 holds what was in rank 2's block 1 before it was filled: "
        "it was sent on (line 17) before it arrived"
    )
    assert found.lines == (17,) and found.places[0].label == "ranks 0 and 2 send it here"


def test_another_block_than_the_own_one_is_told():
    found = told(Fill(1, 0, 0, 1), Fill(2, 0, 0, 2))
    assert found.pattern == "the wrong block sent"
    assert "rank 0 sent block 1 (line 17) instead of its own: block(recvbuf, rank" in found.hint


def test_an_own_block_that_was_not_there_yet_is_missing():
    found = told(Fill(1, 0, 0, 0), Fill(2, 0, 0, 0))
    assert found.pattern == "own block missing" and "place_own_block" in found.hint


def test_what_was_moved_within_a_rank_names_no_send():
    found = told(Fill(1, 0, 1, 2))
    assert (found.pattern, found.lines) == ("a block sent too early", ())
    assert found.hint == (
        "Rank 1's block 0 holds what was in its own block 2 before it was filled: it was copied "
        "before the data arrived."
    )


def test_of_several_lines_none_is_blamed():
    two = [over(send(1, line=17)), over(send(2, line=18))]
    found = told(Fill(0, 1, 2, 1), records=[two, two, [two[0] | {"peer": 0}, two[1] | {"peer": 0}]])
    assert found.lines == () and "(line" not in found.hint
