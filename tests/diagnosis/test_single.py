"""Wrong results of bcast, scatter, reduce and allreduce are explained by elements and
contributions."""

import json
from dataclasses import replace

import numpy as np
import pytest
from made_up import meet, over, recv, run_of, send, sites_are_lines  # noqa: F401
from test_wrong_result import outputs_of

from mpilab.cases.case import Case, block_places
from mpilab.cases.data import GUARD_BYTES, fold
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import Diagnosis
from mpilab.diagnosis.wrong_result import ABSENT, ELSEWHERE, RIGHT, UNTOUCHED, WRONG, picture
from mpilab.plots import failures

pytestmark = pytest.mark.usefixtures("sites_are_lines")
BCAST = Case("bcast", 4, 10, root=1)
SCATTER = Case("scatter", 4, 3, root=1)


def put(case, put_into):
    """Outputs in which `put_into(rank, elements, before)` has changed the elements of each rank;
    `elements` is [count, bytes], and right at first."""

    def change(rank, received, before, right):
        places = block_places(case, 0)
        if len(received) > places[-1] + GUARD_BYTES:
            data = received[places].reshape(case.count, -1)
            put_into(rank, data, before[places].reshape(case.count, -1))
            received[places] = data.reshape(-1)

    return outputs_of(case, change)


def told(case, put_into, records=None):
    records = records or [[] for _ in range(case.ranks)]
    found = diagnose(
        run_of(
            *records,
            outcome="done",
            finished=range(case.ranks),
            case=case,
            outputs=put(case, put_into),
        )
    )
    if found is not None:
        assert Diagnosis.from_json(json.loads(json.dumps(found.to_json()))) == found
    return found


def first(case, rank):
    return case.regions(rank)[1][block_places(case, 0)].reshape(case.count, -1)


def given(case, rank):
    return case.regions(rank)[0][block_places(case, 0)]


# --- bcast


def test_the_end_of_a_message_that_was_never_written_is_told_by_its_first_element():
    found = told(BCAST, lambda rank, data, before: rank > 1 and _copy(data, before, 7, 10))
    assert (found.pattern, found.ranks) == ("part of the message missing", (2, 3))
    assert found.headline == (
        "wrong result on ranks 2 and 3: nothing was written from element 7 onward"
    )
    assert found.tables[0].rows == (
        (2, "7 to 9", "nothing was written"),
        (3, "7 to 9", "nothing was written"),
    )


def _copy(data, other, begin, end):
    data[begin:end] = other[begin:end]


@pytest.mark.parametrize(
    ("case", "begin", "said"),
    [
        (
            replace(BCAST, segment=16),
            8,
            "10 elements are 2 segments of 16 bytes with 4 elements each, "
            "and 2 left over: exactly what is missing.",
        ),
        (BCAST, 8, "10 elements are 4 parts, one for each of 4 ranks, with 2 elements each, and 2"),
        (replace(BCAST, segment=16), 9, None),
        (BCAST, 5, None),
    ],
)
def test_a_remainder_is_named_only_where_the_numbers_say_so(case, begin, said):
    found = told(case, lambda rank, data, before: rank == 3 and _copy(data, before, begin, 10))
    assert ("left over" in found.hint) == (said is not None)
    assert found.hint.startswith(said or "Rank 3 has received no message")


@pytest.mark.parametrize("datatype", ["byte", "int", "contiguous", "vector", "struct", "shifted"])
def test_a_message_that_never_came_is_known_with_any_datatype(datatype):
    case = replace(BCAST, datatype=datatype)
    found = told(case, lambda rank, data, before: rank == 2 and _copy(data, before, 0, 10))
    assert (found.pattern, found.ranks) == ("message never received", (2,))
    assert found.hint.startswith("Rank 2 has received no message, and no rank has sent one to it.")


def test_what_was_received_is_counted_where_it_went_elsewhere():
    records = [[], [over(send(2, bytes=40))], [over(recv(1), got_bytes=40)], []]
    found = told(
        BCAST, lambda rank, data, before: rank == 2 and _copy(data, before, 0, 10), records
    )
    assert found.hint.startswith("Rank 2 has received 1 message with 40 bytes in all.")


def test_nothing_is_said_of_messages_where_a_collective_may_have_moved_the_data():
    records = [[], [], [over(meet("Bcast", root=1, members=4))], []]
    found = told(
        BCAST, lambda rank, data, before: rank == 2 and _copy(data, before, 0, 10), records
    )
    assert "received" not in found.hint


def test_a_buffer_sent_on_before_anything_had_come_is_traced_to_its_line():
    def early(rank, data, before):
        if rank == 3:
            data[4:] = first(BCAST, 2)[4:]

    found = told(BCAST, early, [[], [], [over(send(3, line=17))], []])
    assert (found.pattern, found.lines) == ("a message forwarded too early", (17,))
    assert found.hint.startswith(
        "On rank 3, elements 4 to 9 hold what was in rank 2's receive buffer before the call: "
        "rank 2 forwarded it (line 17)"
    )


def test_a_rank_that_was_taken_for_the_root_is_named():
    def from_zero(rank, data, before):
        data[:] = first(BCAST, 0)

    found = told(BCAST, from_zero)
    assert (found.pattern, found.ranks) == ("wrong root", (0, 1, 2, 3))
    assert "the root, rank 1, and the others received rank 0's buffer" in found.headline


def test_nobody_is_taken_for_the_root_while_others_are_right():
    def change(rank, data, before):
        if rank == 1:
            data[:] = first(BCAST, 0)

    found = told(BCAST, change)
    assert (found.pattern, found.ranks) == ("the root's message changed", (1,))


def test_parts_that_were_swapped_are_told_with_where_they_belong():
    def swap(rank, data, before):
        if rank == 0:
            data[:] = np.concatenate([data[5:], data[:5]])

    found = told(BCAST, swap)
    assert found.pattern == "parts in the wrong place"
    assert "elements 0 to 4 hold what belongs to elements 5 to 9" in found.headline


def test_wrong_data_of_which_nothing_is_known_get_no_pattern():
    found = told(BCAST, lambda rank, data, before: rank == 0 and data.__setitem__(3, 7))
    assert (found.pattern, found.hint) == ("", "")
    assert found.headline == "wrong result on rank 0: element 3 is wrong"
    assert found.tables[1].columns == ("rank", "element", "expected", "got")


def test_elements_that_lie_as_if_the_extent_were_the_size_are_known():
    case = replace(BCAST, datatype="vector")

    def change(rank, received, before, right):
        if rank == 3:
            received[:] = before
            for element in range(case.count):
                at = block_places(replace(case, count=1), 0)
                received[at + 24 * element] = right[at + 32 * element]

    found = diagnose(
        run_of(
            [],
            [],
            [],
            [],
            outcome="done",
            finished=range(4),
            case=case,
            outputs=outputs_of(case, change),
        )
    )
    assert found.pattern == "extent ignored"


# --- scatter


def sent(rank):
    places = block_places(replace(SCATTER, count=12), 0)
    return SCATTER.regions(SCATTER.root)[0][places].reshape(4, 3, 4)[rank]


@pytest.mark.parametrize("datatype", ["int", "mixed"])
def test_whose_block_a_rank_has_got_is_told(datatype):
    case = replace(SCATTER, datatype=datatype, root=0)
    right = [memory[block_places(case, 0)].reshape(3, -1) for memory in case.expected()]

    def swap(rank, data, before):
        if rank in (2, 3):
            data[:] = right[5 - rank]

    found = told(case, swap)
    assert (found.pattern, found.ranks) == ("the block of another rank", (2, 3))
    assert found.headline.endswith("on rank 2, the buffer holds the block of rank 3")
    assert found.hint.startswith("Rank 2 has the block of rank 3 and rank 3 has the block of rank")


def test_blocks_that_are_all_off_by_the_root_are_told_so():
    found = told(SCATTER, lambda rank, data, before: rank != 1 and _set(data, sent((rank + 3) % 4)))
    assert found.ranks == (0, 2, 3) and "All are off by 1, the root's rank" in found.hint
    swapped = told(SCATTER, lambda rank, data, before: rank > 1 and _set(data, sent(5 - rank)))
    assert "off by" not in swapped.hint


def _set(data, other):
    data[:] = other


def test_data_from_between_two_blocks_are_told_by_their_place_at_the_root():
    block = np.concatenate([sent(2)[1:], sent(3)[:1]])
    found = told(SCATTER, lambda rank, data, before: rank == 2 and _set(data, block))
    assert found.pattern == "parts in the wrong place"
    assert found.hint.startswith(
        "On rank 2, the buffer holds what begins at element 7 of the root's send buffer; its own "
        "block begins at element 6, after 2 blocks of 3 elements."
    )


def test_the_root_alone_without_its_block_has_not_taken_it():
    found = told(SCATTER, lambda rank, data, before: rank == 1 and _set(data, before))
    assert found.pattern == "own block missing" and "take_own_block" in found.hint


# --- reduce and allreduce


def summed(case, *counts):
    """Data of the contributions, each so many times."""
    total = sum(
        np.uint64(times) * given(case, rank).view(np.uint32).astype(np.uint64)
        for rank, times in enumerate(counts)
    )
    return (total & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.uint8).reshape(case.count, -1)


REDUCE = Case("reduce", 4, 2, root=2)


@pytest.mark.parametrize("datatype", ["int", "contiguous", "vector", "shifted"])
@pytest.mark.parametrize(
    ("counts", "pattern", "said"),
    [
        ((1, 1, 1, 0), "a contribution missing", "lacks the contribution of rank 3"),
        ((0, 1, 1, 0), "a contribution missing", "lacks the contributions of ranks 0 and 3"),
        ((1, 2, 1, 1), "a contribution counted twice", "counts rank 1 twice"),
        (
            (0, 3, 1, 1),
            "a contribution counted twice",
            "lacks the contribution of rank 0 and counts rank 1 three times",
        ),
        ((0, 0, 0, 1), "contributions never combined", "is the contribution of rank 3 alone"),
        ((0, 0, 1, 0), "a contribution missing", "is the contribution of rank 2 alone"),
    ],
)
def test_of_which_contributions_a_sum_is_made_is_told(datatype, counts, pattern, said):
    case = replace(REDUCE, datatype=datatype)
    found = told(case, lambda rank, data, before: _set(data, summed(case, *counts)))
    assert (found.pattern, found.ranks) == (pattern, (2,))
    assert found.headline == f"wrong result on rank 2: the result {said}"


def test_a_single_number_is_enough_to_tell_a_sum():
    case = replace(REDUCE, count=1, ranks=8)
    counts = (1, 1, 1, 1, 1, 0, 1, 1)
    found = told(case, lambda rank, data, before: _set(data, summed(case, *counts)))
    assert found.headline.endswith("lacks the contribution of rank 5")


def test_a_rank_that_sent_nothing_is_told_beside_its_missing_contribution():
    found = told(
        REDUCE,
        lambda rank, data, before: _set(data, summed(REDUCE, 1, 1, 1, 0)),
        [[over(send(2))], [over(send(2))], [], []],
    )
    assert "Rank 3 has sent no message." in found.hint
    assert "power of two" not in found.hint


def test_a_rank_that_has_received_and_keeps_its_own_data_has_not_combined():
    records = [[over(send(2))], [], [over(recv(0), got_bytes=8)], []]
    found = told(REDUCE, lambda rank, data, before: _set(data, summed(REDUCE, 0, 0, 1, 0)), records)
    assert found.pattern == "contributions never combined"
    assert "Rank 2 has received 1 message with 8 bytes in all. MPI_Reduce_local(a" in found.hint


def test_parts_of_a_result_may_be_made_of_different_contributions():
    case = Case("allreduce", 3, 6)

    def change(rank, data, before):
        if rank == 1:
            data[:2] = summed(case, 1, 0, 1)[:2]
            data[4:] = summed(case, 1, 1, 2)[4:]

    found = told(case, change)
    assert found.tables[0].rows == (
        (1, "0 to 1", "ranks 0 and 2"),
        (1, "4 to 5", "ranks 0 and 1, rank 2 twice"),
    )


def test_what_was_in_recvbuf_before_is_known_in_a_sum():
    def stale(rank, data, before):
        total = summed(REDUCE, 1, 1, 0, 1).reshape(-1).view(np.uint32) + before.reshape(-1).view(
            np.uint32
        )
        data[:] = total.view(np.uint8).reshape(data.shape)

    found = told(REDUCE, stale)
    assert found.pattern == "recvbuf combined before it was set"
    assert "has what was in rank 2's receive buffer before the call in it" in found.headline


def test_with_in_place_the_receive_buffer_is_a_contribution():
    case = replace(REDUCE, in_place=True)
    others = summed(case, 1, 1, 0, 1)
    found = told(case, lambda rank, data, before: _set(data, others))
    assert found.headline.endswith("the result lacks the contribution of rank 2")


def test_the_result_that_was_never_written_is_told():
    found = told(REDUCE, lambda rank, data, before: _set(data, before))
    assert found.pattern == "result never written"


@pytest.mark.parametrize("ranks", [3, 4, 7, 12])
def test_the_order_of_a_composition_is_told(ranks):
    case = Case("reduce", ranks, 4, op="compose")
    order = [*range(1, ranks), 0]
    value = fold("compose", [given(case, rank) for rank in order]).reshape(4, -1)
    found = told(case, lambda rank, data, before: _set(data, value))
    assert found.pattern == "order of a non-commutative operation"
    assert found.headline.endswith(f"takes ranks in the order {', '.join(map(str, order))}")


def test_a_contribution_that_is_missing_counts_more_than_the_order():
    case = Case("reduce", 4, 4, op="compose")
    value = fold("compose", [given(case, rank) for rank in (3, 0, 1)]).reshape(4, -1)
    found = told(case, lambda rank, data, before: _set(data, value))
    assert found.pattern == "a contribution missing"
    assert "lacks the contribution of rank 2 and takes ranks in the order 3, 0, 1" in found.headline


@pytest.mark.parametrize("op", ["sum", "compose"])
def test_a_result_that_is_no_set_of_contributions_is_left_unexplained(op):
    case = Case("allreduce", 4, 40, op=op)
    noise = np.random.default_rng(3).integers(0, 256, (40, 4), np.uint8)
    found = told(case, lambda rank, data, before: rank == 0 and _set(data, noise))
    assert (found.pattern, found.hint) == ("", "")


def test_one_number_of_a_composition_is_too_little_to_tell_an_order_of_many():
    case = Case("reduce", 7, 1, op="compose")
    value = fold("compose", [given(case, rank) for rank in (3, 1, 0, 2, 6, 5, 4)]).reshape(1, -1)
    assert told(case, lambda rank, data, before: _set(data, value)).pattern == ""


def test_many_ranks_are_told_of_by_what_is_likely():
    case = Case("allreduce", 24, 4)
    counts = [int(rank < 16) for rank in range(24)]
    found = told(case, lambda rank, data, before: rank == 5 and _set(data, summed(case, *counts)))
    assert found.headline.endswith("lacks the contributions of ranks 16 to 23")
    assert "24 is not a power of two: what do the ranks from 16 upward do?" in found.hint


# --- pictures


def test_elements_are_drawn_and_ranks_without_a_buffer_stay_empty():
    outputs = put(REDUCE, lambda rank, data, before: _copy(data, before, 1, 2))
    drawn = picture(REDUCE, outputs)
    assert drawn.grid.tolist() == [[ABSENT] * 2, [ABSENT] * 2, [RIGHT, UNTOUCHED], [ABSENT] * 2]
    assert drawn.columns == ("0", "1") and drawn.details == {(2, 1): "nothing was written"}
    assert (RIGHT, WRONG, UNTOUCHED, ELSEWHERE, ABSENT) == (
        failures.RIGHT,
        failures.WRONG,
        failures.UNTOUCHED,
        failures.ELSEWHERE,
        failures.ABSENT,
    )
    assert failures.blocks(*drawn).data


def test_many_elements_share_columns():
    case = replace(BCAST, count=100)
    outputs = put(case, lambda rank, data, before: rank == 0 and _copy(data, before, 99, 100))
    drawn = picture(case, outputs)
    assert drawn.grid.shape == (4, 32) and drawn.columns[-1] == "96 to 99"
    assert np.argwhere(drawn.grid != RIGHT).tolist() == [[0, 31]]
    assert failures.blocks(*drawn).layout.xaxis.ticktext


def test_another_ranks_block_is_drawn_with_its_rank():
    outputs = put(SCATTER, lambda rank, data, before: rank == 3 and _set(data, sent(0)))
    drawn = picture(SCATTER, outputs)
    assert (drawn.grid[3] == ELSEWHERE).all() and (drawn.source[3] == 0).all()


def test_a_gather_shows_the_blocks_of_its_root_only():
    case = Case("gather", 3, 2, root=1)
    drawn = picture(case, outputs_of(case, lambda *nothing: None))
    assert drawn.grid.tolist() == [[ABSENT] * 3, [RIGHT] * 3, [ABSENT] * 3]
    assert drawn.columns is None and failures.blocks(*drawn).data


@pytest.mark.parametrize(
    "case",
    [
        Case("bcast", 3, 5, "struct", root=2),
        Case("gather", 3, 2, "mixed", root=1),
        Case("scatter", 3, 2, "mixed", in_place=True, root=2),
        Case("bcast", 3, 0),
        Case("reduce", 3, 2, "shifted", op="compose", root=1),
        Case("allreduce", 3, 2, "vector", in_place=True),
        Case("allreduce", 1, 0),
    ],
)
def test_a_right_result_of_any_collective_has_no_diagnosis(case):
    outputs = outputs_of(case, lambda *nothing: None)
    assert (
        diagnose(
            run_of(
                *[[]] * case.ranks,
                outcome="done",
                finished=range(case.ranks),
                case=case,
                outputs=outputs,
            )
        )
        is None
    )


@pytest.mark.parametrize("collective", ["bcast", "gather", "scatter", "reduce", "allreduce"])
def test_what_lies_outside_of_the_buffer_is_told_with_what_there_is(collective):
    case = Case(collective, 3, 2)

    def change(rank, received, before, right):
        if rank == 0:
            received[-1] ^= 1

    found = diagnose(
        run_of(
            [],
            [],
            [],
            outcome="done",
            finished=range(3),
            case=case,
            outputs=outputs_of(case, change),
        )
    )
    assert (found.pattern, found.ranks) == ("outside the receive buffer", (0,))
    assert "each rank" in found.hint if collective == "gather" else "each rank" not in found.hint
