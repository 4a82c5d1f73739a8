"""Wrong results are reported by rank and block, with the mistake that they resemble."""

import numpy as np
import pytest
from made_up import over, recv, run_of

from mpilab.cases.case import Case, block_places
from mpilab.cases.data import GUARD_BYTES
from mpilab.cases.output import Output
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.wrong_result import (
    ELSEWHERE,
    RIGHT,
    UNTOUCHED,
    WRONG,
    first_difference,
    grid,
    picture,
)
from mpilab.plots import failures
from mpilab.runners.result import Result

CASE = Case("allgather", 3, 2)


def outputs_of(case, change):
    """Correct outputs, modified by `change(rank, received, before, right)`; `right` is the expected
    memory of the rank."""
    after, outputs = case.expected(), []
    for rank in range(case.ranks):
        sent, before = case.regions(rank)
        received = after[rank].copy()
        change(rank, received, before, after[rank])
        outputs.append(Output(rank, 0, received, sent.copy(), np.zeros((1, 2), np.int64)))
    return outputs


def diagnosed(case, change):
    return diagnose(Result(case, "done", outputs=outputs_of(case, change)))


def places(block, case=CASE):
    return block_places(case, block)


def forget(*forgotten):
    def change(rank, received, before, right):
        for whose, block in forgotten:
            if rank == whose:
                received[places(block)] = before[places(block)]

    return change


def rotate(rank, received, before, right):
    for block in range(3):
        received[places(block)] = right[places((block + rank) % 3)]


def test_the_own_block_that_is_missing_everywhere_is_known():
    found = diagnosed(CASE, forget((0, 0), (1, 1), (2, 2)))
    assert (found.kind, found.pattern, found.ranks) == (
        "wrong-result",
        "own block missing",
        (0, 1, 2),
    )
    assert found.headline == "wrong result on ranks 0 to 2: one block each was never written"


def test_blocks_that_nobody_wrote_are_known():
    found = diagnosed(CASE, forget((1, 0), (1, 2)))
    assert (found.pattern, found.ranks) == ("blocks never written", (1,))
    assert found.tables[0].rows == ((1, "", "0 and 2", "", ""),)


def test_blocks_in_the_wrong_place_are_told_with_whose_they_are():
    found = diagnosed(CASE, rotate)
    assert (found.pattern, found.ranks) == ("blocks in the wrong place", (1, 2))
    assert found.tables[0].rows[0] == (1, "", "", "0 holds 1, 1 holds 2, 2 holds 0", "")


def test_writing_behind_the_buffer_comes_first():
    def change(rank, received, before, right):
        received[places(0)] = before[places(0)]
        received[-GUARD_BYTES] ^= 1

    assert diagnosed(CASE, change).pattern == "outside the receive buffer"


def test_a_send_buffer_that_was_changed_is_known():
    outputs = outputs_of(CASE, lambda *nothing: None)
    outputs[2].sent[GUARD_BYTES] ^= 1
    found = diagnose(Result(CASE, "done", outputs=outputs))
    assert (found.pattern, found.ranks) == ("send buffer changed", (2,))


def test_blocks_that_lie_as_if_extents_were_sizes_are_known():
    case = Case("allgather", 3, 4, "vector")

    def change(rank, received, before, right):
        received[:] = before
        for block in range(3):
            at = places(block, case) - block * 4 * (32 - 24)
            received[at] = right[places(block, case)]

    assert diagnosed(case, change).pattern == "extent ignored"


def test_holes_that_were_overwritten_are_an_ignored_extent():
    def change(rank, received, before, right):
        received[GUARD_BYTES + 12] ^= 1

    assert diagnosed(Case("allgather", 2, 2, "vector"), change).pattern == "extent ignored"


def test_a_block_that_lies_elsewhere_is_told_in_bytes():
    def change(rank, received, before, right):
        received[:] = before
        received[places(1) - 4] = right[places(1)]

    found = diagnosed(CASE, change)
    assert (
        "On rank 0, block 1 is 4 bytes from the beginning of the receive buffer; it should be 8"
        in found.hint
    ) == (found.pattern == "")


def cut(rank, received, before, right):
    """Of the block of rank 2, ranks 0 and 1 have all but the last element."""
    if rank != 2:
        received[places(2, LONG)[-4:]] = before[places(2, LONG)[-4:]]


LONG = Case("allgather", 3, 5)


@pytest.mark.parametrize(
    ("size", "told"),
    [
        (16, "are right: it has received a message of just 16 bytes, from rank 2."),
        (20, "are right."),
    ],
)
def test_a_block_that_ends_early_is_told_with_the_message_that_was_too_short(size, told):
    received = over(recv(2), got_bytes=size)
    result = run_of(
        [received],
        [],
        [],
        case=LONG,
        outcome="done",
        finished=(0, 1, 2),
        outputs=outputs_of(LONG, cut),
    )
    hint = diagnose(result).hint
    assert hint.startswith("On rank 0, only the first 16 of the 20 bytes of block 2 are right")
    assert hint.endswith(told)


def test_elements_passed_for_bytes_are_told_so():
    def change(rank, received, before, right):
        received[places(1, LONG)[5:]] = before[places(1, LONG)[5:]]

    assert "only the first 4 of the 20 bytes of block 1" in diagnosed(LONG, change).hint
    assert "where bytes are expected (memcpy, malloc)?" in diagnosed(LONG, change).hint
    assert "memcpy" not in diagnosed(LONG, cut).hint


def test_expected_and_got_are_numbers_for_int_and_bytes_otherwise():
    found = diagnosed(CASE, forget((1, 0)))
    right = CASE.expected()[1][places(0)].view(np.int32)
    before = CASE.regions(1)[1][places(0)].view(np.int32)
    assert found.tables[1].rows == ((1, 0, 0, str(right[0]), str(before[0])),)
    case = Case("allgather", 2, 1, "contiguous")
    (row,) = (
        diagnosed(
            case,
            lambda rank, received, *_: received.__setitem__(70, received[70] ^ 255 * (rank == 0)),
        )
        .tables[1]
        .rows
    )
    assert row[3] != row[4] and len(row[4].split()) == 12


def test_the_grid_and_the_picture_tell_every_block():
    def change(rank, received, before, right):
        if rank == 1:
            received[places(0)] = before[places(0)]
            received[places(1)] = right[places(2)]
            received[places(2)[0]] ^= 1

    outputs = outputs_of(CASE, change)
    codes, source, details, columns = picture(CASE, outputs)
    assert codes.tolist() == [[RIGHT] * 3, [UNTOUCHED, ELSEWHERE, WRONG], [RIGHT] * 3]
    assert source.tolist() == [[0, 1, 2], [-1, 2, -1], [0, 1, 2]]
    assert set(details) == {(1, 0), (1, 1), (1, 2)}
    assert details[1, 2].startswith("element 0: expected ")
    assert (grid(CASE, outputs) == codes).all()
    assert (RIGHT, WRONG, UNTOUCHED, ELSEWHERE) == (
        failures.RIGHT,
        failures.WRONG,
        failures.UNTOUCHED,
        failures.ELSEWHERE,
    )
    assert columns is None and failures.blocks(codes, source, details, columns).data


def test_the_first_difference_of_a_right_block_is_none():
    outputs = outputs_of(CASE, forget((0, 1)))
    assert first_difference(CASE, outputs, 0, 1).element == 0
    assert first_difference(CASE, outputs, 0, 2) is None


@pytest.mark.parametrize("datatype", ["byte", "int", "vector", "struct", "shifted", "mixed"])
def test_a_right_result_of_any_datatype_has_no_diagnosis(datatype):
    assert diagnosed(Case("allgather", 3, 3, datatype), lambda *nothing: None) is None


def test_an_output_of_the_wrong_size_is_no_riddle():
    outputs = outputs_of(CASE, lambda *nothing: None)
    short = Output(0, 0, outputs[0].received[:-1], outputs[0].sent, outputs[0].spans_ns)
    found = diagnose(Result(CASE, "done", outputs=[short, *outputs[1:]]))
    assert (found.kind, found.ranks) == ("wrong-result", (0,))


def test_an_error_code_without_a_failed_call_is_told():
    outputs = outputs_of(CASE, lambda *nothing: None)
    outputs[2] = Output(2, 7, outputs[2].received, outputs[2].sent, outputs[2].spans_ns)
    found = diagnose(Result(CASE, "done", outputs=outputs))
    assert (found.kind, found.pattern, found.ranks) == ("mpi-error", "", (2,))
    assert found.headline == "the kernel returned error code 7 (MPI_ERR_REQUEST) on rank 2"


def test_blocks_of_a_gather_that_are_off_by_the_root_are_told_so():
    case = Case("gather", 4, 2, root=1)

    def rotate(rank, received, before, right):
        for block in range(4) if rank == 1 else ():
            received[places(block, case)] = right[places((block + 1) % 4, case)]

    found = diagnosed(case, rotate)
    assert (found.pattern, found.ranks) == ("blocks in the wrong place", (1,))
    assert "All are off by 1, the root's rank" in found.hint


def test_a_gather_without_the_roots_own_block_is_known():
    case = Case("gather", 3, 2, root=2)

    def leave_out(rank, received, before, right):
        if rank == 2:
            received[places(2, case)] = before[places(2, case)]

    found = diagnosed(case, leave_out)
    assert (found.pattern, found.ranks) == ("own block missing", (2,))
    assert found.hint.startswith("The root must also put its own block")
