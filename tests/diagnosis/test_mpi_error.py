"""An MPI error is told by the first call that failed, with its arguments."""

import re

import pytest
from made_up import NOW, call, meet, over, recv, run_of, send, sites_are_lines, wait  # noqa: F401

from mpilab import openmpi
from mpilab.diagnosis import diagnose, error_classes

pytestmark = pytest.mark.usefixtures("sites_are_lines")
NUMBERS = error_classes.NUMBERS
TRUNCATE = NUMBERS["MPI_ERR_TRUNCATE"]


def done(*of_ranks, **more):
    return diagnose(run_of(*of_ranks, outcome="done", finished=range(len(of_ranks)), **more))


def failing(record, name, **values):
    return over(record, error=NUMBERS[name], **values)


def test_a_message_that_is_too_long_is_told_with_both_sizes():
    found = done([], [failing(recv(0, tag=3, line=14), "MPI_ERR_TRUNCATE", got_bytes=40)])
    assert found.headline == (
        "rank 1: MPI_Recv returned MPI_ERR_TRUNCATE in line 14: the message from rank 0 (tag 3) "
        "has 40 bytes, the receive has room for 4"
    )
    assert (found.kind, found.pattern, found.ranks) == ("mpi-error", "message truncated", (1,))
    table = found.tables[0]
    assert table.title == "The call that failed"
    assert table.rows == ((1, "MPI_Recv", "from 0", 3, 1, 4, 14, "MPI_ERR_TRUNCATE"),)


@pytest.mark.parametrize(
    ("name", "pattern"),
    [("RANK", "a rank that does not exist"), ("COUNT", "invalid count"),
     ("TYPE", "invalid datatype"), ("COMM", "invalid communicator"),
     ("REQUEST", "invalid request"), ("TAG", "invalid tag"), ("ROOT", "invalid root"),
     ("BUFFER", "invalid buffer"), ("INTERN", "")],
)  # fmt: skip
def test_the_class_of_the_error_gives_the_pattern(name, pattern):
    found = done([failing(send(1, line=4), f"MPI_ERR_{name}")], [])
    assert found.pattern == pattern
    assert f"returned MPI_ERR_{name} in line 4" in found.headline
    assert found.hint or not pattern


def test_the_earliest_error_of_all_ranks_is_the_one():
    found = done([failing(send(1, line=4), "MPI_ERR_TAG", end_ns=NOW - 5)],
                 [failing(send(0, line=6), "MPI_ERR_COUNT", end_ns=NOW - 9)])  # fmt: skip
    assert found.pattern == "invalid count"
    assert found.ranks == (1, 0)
    assert "After that, MPI_Send returned MPI_ERR_TAG on rank 0 (line 4)." in found.notes


def test_a_wait_is_told_with_the_request_that_failed():
    request = failing(recv(0, tag=3, line=5, name="Irecv"), "MPI_ERR_TRUNCATE", waiter=1,
                      got_bytes=8)  # fmt: skip
    found = done([], [request, failing(wait(line=7, name="Waitall"), "MPI_ERR_IN_STATUS")])
    assert found.headline.startswith("rank 1: MPI_Waitall returned MPI_ERR_TRUNCATE in line 7")
    assert found.lines == (7, 5)
    assert [row[1] for row in found.tables[0].rows] == ["MPI_Irecv"]


def test_of_a_send_receive_the_half_that_is_wrong_is_shown():
    pair = [failing(record, "MPI_ERR_RANK", site=3) for record in (
        send(1, name="Sendrecv"), recv(-2, name="Sendrecv"))]  # fmt: skip
    found = done(pair, [])
    assert [row[2] for row in found.tables[0].rows] == ["no such rank"]


def test_a_call_that_is_not_recorded_otherwise_has_its_name():
    found = done([call("Other", 18, **{"error": NUMBERS["MPI_ERR_TOPOLOGY"], "end_ns": 5})], [],
                 headers={0: {"unknown_call": b"MPI_Cart_shift"}})  # fmt: skip
    assert found.headline.startswith("rank 0: MPI_Cart_shift returned MPI_ERR_TOPOLOGY in line 18")


def test_ranks_that_failed_alike_share_a_place():
    found = done(*([failing(meet("Bcast", line=4), "MPI_ERR_ROOT")] for _ in range(3)))
    assert [place.label for place in found.places] == ["ranks 0 to 2 call it here"]
    assert found.ranks == (0, 1, 2)


def test_the_names_are_those_of_the_installed_mpi():
    directory = openmpi.tool("mpicc").rpartition("/bin/")[0]
    text = open(f"{directory}/include/mpi.h", encoding="utf-8").read()
    installed = dict(re.findall(r"^#define (MPI_SUCCESS|MPI_ERR_\w+)\s+(\d+)\s*$", text, re.M))
    del installed["MPI_ERR_LASTCODE"]
    assert {name: int(number) for name, number in installed.items()} == NUMBERS
    assert error_classes.name(15) == "MPI_ERR_TRUNCATE"
    assert error_classes.name(999) == "error 999"
