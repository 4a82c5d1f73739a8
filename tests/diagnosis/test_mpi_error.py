"""An MPI error is reported with the first call that failed, and its arguments."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from made_up import NOW, call, meet, over, recv, run_of, send, sites_are_lines, wait  # noqa: F401

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose, model
from mpilab.kernels import openmpi

pytestmark = pytest.mark.usefixtures("sites_are_lines")
NUMBERS = model.NUMBERS
TRUNCATE = NUMBERS["MPI_ERR_TRUNCATE"]


def done(*of_ranks, **more):
    return diagnose(run_of(*of_ranks, outcome="done", finished=range(len(of_ranks)), **more))


def failing(record, name, **values):
    return over(record, error=NUMBERS[name], **values)


def none(number, line=1, receives=False, members=2, **values):
    """A call that gives a rank that does not exist, as the recorder writes it."""
    values = {"got_peer": number, "members": members, "end_ns": NOW, **values}
    return (recv if receives else send)(-2, line=line, **values)


def refused(record, name="MPI_ERR_RANK", **values):
    return {**record, "error": NUMBERS[name], **values}


def test_a_message_that_is_too_long_is_told_with_both_sizes():
    found = done([], [failing(recv(0, tag=3, line=14), "MPI_ERR_TRUNCATE", got_bytes=40)])
    assert found.headline == (
        "rank 1: MPI_Recv returned MPI_ERR_TRUNCATE in line 14: the message from rank 0 (tag 3) "
        "has 40 bytes, but the receive has room for 4"
    )
    assert (found.kind, found.pattern, found.ranks) == ("mpi-error", "message truncated", (1,))
    table = found.tables[0]
    assert table.title == "The call that failed"
    assert table.rows == ((1, "MPI_Recv", "from 0", 3, 1, 4, 14, "MPI_ERR_TRUNCATE"),)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [
        ("RANK", "a rank that does not exist"),
        ("COUNT", "invalid count"),
        ("TYPE", "invalid datatype"),
        ("COMM", "invalid communicator"),
        ("REQUEST", "invalid request"),
        ("TAG", "invalid tag"),
        ("ROOT", "invalid root"),
        ("BUFFER", "invalid buffer"),
        ("INTERN", ""),
    ],
)
def test_the_class_of_the_error_gives_the_pattern(name, pattern):
    found = done([failing(send(1, line=4), f"MPI_ERR_{name}")], [])
    assert found.pattern == pattern
    assert f"returned MPI_ERR_{name} in line 4" in found.headline
    assert found.hint or not pattern


def test_the_earliest_error_of_all_ranks_is_the_one():
    found = done(
        [failing(send(1, line=4), "MPI_ERR_TAG", end_ns=NOW - 5)],
        [failing(send(0, line=6), "MPI_ERR_COUNT", end_ns=NOW - 9)],
    )
    assert found.pattern == "invalid count"
    assert found.ranks == (1, 0)
    assert "After that, MPI_Send returned MPI_ERR_TAG on rank 0 (line 4)." in found.notes


def test_a_wait_is_told_with_the_request_that_failed():
    request = failing(
        recv(0, tag=3, line=5, name="Irecv"), "MPI_ERR_TRUNCATE", waiter=1, got_bytes=8
    )
    found = done([], [request, failing(wait(line=7, name="Waitall"), "MPI_ERR_IN_STATUS")])
    assert found.headline.startswith("rank 1: MPI_Waitall returned MPI_ERR_TRUNCATE in line 7")
    assert found.lines == (7, 5)
    assert [row[1] for row in found.tables[0].rows] == ["MPI_Irecv"]


def test_of_a_send_receive_the_half_that_is_wrong_is_shown():
    pair = [
        refused(record, site=3)
        for record in (over(send(1, name="Sendrecv")), none(7, receives=True, name="Sendrecv"))
    ]
    found = done(pair, [])
    assert [row[2] for row in found.tables[0].rows] == ["from 7"]


def test_a_call_that_is_not_recorded_otherwise_has_its_name():
    found = done(
        [call("Other", 18, **{"error": NUMBERS["MPI_ERR_TOPOLOGY"], "end_ns": 5})],
        [],
        headers={0: {"unknown_call": b"MPI_Cart_shift"}},
    )
    assert found.headline.startswith("rank 0: MPI_Cart_shift returned MPI_ERR_TOPOLOGY in line 18")


def test_the_number_of_a_rank_that_does_not_exist_is_told():
    found = done([], [refused(none(2, line=5))])
    assert found.headline == (
        "rank 1: MPI_Send returned MPI_ERR_RANK in line 5: there is no rank 2, only ranks 0 and 1"
    )
    assert found.tables[0].rows[0][2] == "to 2"
    assert "(rank + i) % size" in found.hint


def test_a_send_to_minus_one_is_a_send_to_no_rank():
    found = done([refused(over(send(-1, line=5)))], [], [])
    assert "there is no rank -1, only ranks 0 to 2" in found.headline
    assert "(rank - i + size) % size" in found.hint


def test_a_negative_rank_that_happened_to_mean_something_before_is_told():
    earlier = [over(recv(2, line=5)), over(recv(-1, line=5), got_peer=2), over(recv(-2, line=5))]
    found = done([*earlier, refused(none(-3, line=5, receives=True))], [], [])
    (note,) = found.notes
    assert "-1 and -2" in note and "MPI_ANY_SOURCE and MPI_PROC_NULL" in note
    assert done([refused(none(-3, receives=True))], [], []).notes == ()


def test_partners_by_xor_are_told_to_need_a_power_of_two():
    records = [
        [over(send(1, line=5)), over(send(2, line=5))],
        [over(send(0, line=5)), refused(none(3, line=5, members=3))],
        [refused(none(3, line=5, members=3)), over(send(0, line=5))],
    ]
    found = done(*records)
    assert "power of two, and 3 is not" in found.hint
    assert "root" not in found.hint and "block" not in found.hint
    records[1][0]["peer"] = 2  # 1 ^ 2 has two bits
    assert "power of two" not in done(*records).hint


def test_partners_by_xor_with_a_root_are_told_how_to_count_from_it():
    """A binomial broadcast from rank 2 of 3: it sends to 2 ^ 2 and 1 ^ 2."""
    root = [over(send(0, line=5)), refused(none(3, line=5, members=3))]
    found = done([], [], root, case=Case("bcast", 3, 2, root=2))
    assert "power of two, and 3 is not" in found.hint
    assert "(rank - root + size) % size" in found.hint and "block" not in found.hint


def test_a_rank_of_another_communicator_is_told_with_where_that_was_made():
    made = over(call("Comm_split", 15))
    found = done([made, refused(none(2, line=23, members=2))], [], [], [])
    assert "there is no rank 2 in its communicator, only ranks 0 and 1" in found.headline
    assert "or make the call on comm" in found.hint
    assert [(p.line, p.label) for p in found.places] == [
        (23, "rank 0 calls it here"),
        (15, "rank 0 creates the communicator here"),
    ]


def test_of_ranks_that_fail_in_one_line_the_lowest_is_told_first():
    def failed(*ends):
        return [refused(over(send(0, tag=-5, line=4)), "MPI_ERR_TAG", end_ns=end) for end in ends]

    found = done(failed(NOW - 3, NOW - 2), failed(NOW - 9, NOW - 8), failed(NOW - 7))
    assert found.ranks == (0, 1, 2)
    assert [row[0] for row in found.tables[0].rows] == [0, 1, 2, 0]
    assert "the tag is -5" in found.headline


def test_any_tag_of_a_send_is_named():
    found = done([refused(over(send(1, tag=-1, line=4)), "MPI_ERR_TAG")], [])
    assert found.headline.endswith("the tag is -1, MPI_ANY_TAG, which is for receives only")


def test_requests_that_nobody_started_are_counted():
    started = over(recv(1, line=5, name="Irecv"), waiter=1)
    waiting = refused(over(wait(line=7, name="Waitall", count=3)), "MPI_ERR_REQUEST")
    found = done([started, waiting], [])
    assert "MPI_Waitall got 3 requests, but only 1 of them was ever started" in found.headline
    assert "MPI_REQUEST_NULL" in found.hint


@pytest.mark.parametrize("name", ["Init", "Init_thread", "Finalize"])
def test_a_kernel_neither_begins_nor_ends_mpi(name):
    found = done([refused(over(call(name, 21)), "MPI_ERR_OTHER")], [])
    assert found.pattern == "MPI initialized or finalized in a kernel"
    assert f"Remove MPI_{name}" in found.hint
    assert found.lines == (21,)


def test_with_mpi_in_place_the_datatype_to_take_is_named():
    case = Case("allgather", 2, 4, in_place=True)
    found = done([refused(over(send(1, line=4)), "MPI_ERR_TYPE")], [], case=case)
    assert "use recvcount, recvtype" in found.hint
    assert "IN_PLACE" not in done([refused(over(send(1)), "MPI_ERR_TYPE")], []).hint


def test_a_call_that_failed_because_a_rank_died_is_no_fault():
    found = done([refused(over(send(1)), "MPI_ERR_PROC_FAILED")], [])
    assert found is None


@pytest.mark.parametrize(
    ("codes", "headline", "hint"),
    [
        ((0, 1, 2, 3), "ranks 1 to 3 returned 1 to 3: their own rank", "not its rank"),
        (
            (4, 4, 4, 4),
            "the kernel returned error code 4 (MPI_ERR_TAG) on ranks 0 to 3",
            "not size",
        ),
        ((0, 6, 0, 0), "the kernel returned error code 6 (MPI_ERR_RANK) on rank 1", "err"),
        ((0, 6, 0, 5), "the kernel returned error codes: 6 on rank 1, 5 on rank 3", "err"),
    ],
)
def test_what_the_kernel_itself_returned_is_told(codes, headline, hint):
    case = Case("allgather", 4, 4, dump=False)
    outputs = [SimpleNamespace(rank=rank, returned=code) for rank, code in enumerate(codes)]
    found = done([], [], [], [], case=case, outputs=outputs)
    assert found.headline == headline and hint in found.hint


def test_ranks_that_failed_alike_share_a_place():
    found = done(*([failing(meet("Bcast", line=4), "MPI_ERR_ROOT")] for _ in range(3)))
    assert [place.label for place in found.places] == ["ranks 0 to 2 call it here"]
    assert found.ranks == (0, 1, 2)


def test_the_names_are_those_of_the_installed_mpi():
    directory = openmpi.tool("mpicc").rpartition("/bin/")[0]
    text = Path(directory, "include", "mpi.h").read_text(encoding="utf-8")
    installed = dict(re.findall(r"^#define (MPI_SUCCESS|MPI_ERR_\w+)\s+(\d+)\s*$", text, re.M))
    del installed["MPI_ERR_LASTCODE"]
    assert {name: int(number) for name, number in installed.items()} == NUMBERS
    assert model.class_name(15) == "MPI_ERR_TRUNCATE"
    assert model.class_name(999) == "error 999"
