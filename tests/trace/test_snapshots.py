"""Snapshots of the receive buffer: what the recorder stores, and what they show."""

import numpy as np
import pytest
from c_kernels import build_kernels

from mpilab.cases.case import Case, block_places
from mpilab.cases.data import DATATYPES, GUARD_BYTES
from mpilab.errors import InputError
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import CRASH, DONE, gather
from mpilab.trace.recording import Recording, operations
from mpilab.trace.snapshots import AT_FINISH, AT_START, UNKNOWN, UNTOUCHED, origin, read

BODIES = {
    "in_order": """
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int i = 0; i < size; i++)
        MPI_Bcast(block(recvbuf, i, recvcount, recvtype), recvcount, recvtype, i, comm);
    MPI_Barrier(comm);""",
    "after_the_last_call": "MPI_Barrier(comm); memset(recvbuf, 7, 4);",
    "killed": """
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    MPI_Barrier(comm);
    if (rank == 0) kill(getpid(), SIGKILL);
    MPI_Barrier(comm);""",
    "many": """
    for (int i = 0; i < 3000; i++) {
        memcpy(recvbuf, &i, sizeof i);
        MPI_Sendrecv(&i, 1, MPI_INT, 0, 1, &rank, 1, MPI_INT, 0, 1, MPI_COMM_SELF, NULL);
    }""",
}
PREAMBLE = '#define _GNU_SOURCE\n#include "mpilab.h"\n' + "".join(
    f"#include <{name}.h>\n" for name in ("signal", "string", "unistd")
)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("snapshots"), BODIES, PREAMBLE)


@pytest.fixture
def snapshots_of(library, monkeypatch):
    """A function: (Result, Snapshots of each rank) of one case, read before the files are
    removed."""
    kept = []

    def gather_all(directory, number, case, outcome, **more):
        paths = [directory / f"{number}.{rank}.mem" for rank in range(case.ranks)]
        kept.extend(read(path) for path in paths if path.exists())
        return gather(directory, number, case, outcome, **more)

    monkeypatch.setattr("mpilab.runners.run.gather", gather_all)

    def run(name, ranks=3, count=4, datatype="int", snapshots=True, **more):
        kept.clear()
        case = Case("allgather", ranks, count, datatype, snapshots=snapshots, **more)
        (result,) = run_cases(library, f"allgather_{name}", [case])
        return result, list(kept)

    return run


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("datatype", DATATYPES)
def test_snapshots_show_block_after_block_arrive(snapshots_of, datatype, in_place):
    result, taken = snapshots_of("in_order", datatype=datatype, in_place=in_place)
    assert result.outcome == DONE
    for rank, snapshots in enumerate(taken):
        held = origin(result.case, snapshots.memory, rank)
        assert held[-1].tolist() == [0, 1, 2]
        begin = [rank if in_place and slot == rank else UNTOUCHED for slot in range(3)]
        assert held[0].tolist() == begin
        # A block is either present or absent, and once present it stays.
        assert np.isin(held, [UNTOUCHED, 0, 1, 2]).all()
        assert (np.diff(held != UNTOUCHED, axis=0, n=1) >= 0).all()
        data = slice(GUARD_BYTES, -GUARD_BYTES)
        assert (snapshots.memory[-1] == result.outputs[rank].received[data]).all()


def test_a_snapshot_names_the_call_that_brought_it(snapshots_of):
    result, taken = snapshots_of("in_order")
    for rank, snapshots in enumerate(taken):
        first, *records, last = snapshots.records.tolist()
        assert (first, last) == (AT_START, AT_FINISH)
        calls = [operations()[int(result.ranks[rank].records["operation"][i])] for i in records]
        # The rank's own block, then two of the three broadcasts; the barrier changes nothing.
        assert calls == ["MPI_Sendrecv", "MPI_Bcast", "MPI_Bcast"]
        assert records == sorted(records)


def test_what_changes_after_the_last_call_is_in_the_last_snapshot(snapshots_of):
    result, taken = snapshots_of("after_the_last_call")
    for rank, snapshots in enumerate(taken):
        assert snapshots.records.tolist() == [AT_START, AT_FINISH]
        assert origin(result.case, snapshots.memory[-1], rank).tolist() == [UNKNOWN, -1, -1]


def test_the_file_of_a_killed_rank_is_whole(snapshots_of):
    result, taken = snapshots_of("killed", ranks=2)
    assert result.outcome == CRASH
    assert taken[0].records.tolist()[0] == AT_START
    assert AT_FINISH not in taken[0].records
    assert origin(result.case, taken[0].memory, 0).tolist() == [[-1, -1], [0, -1]]


def test_of_many_snapshots_the_first_and_the_last_are_kept(snapshots_of):
    result, taken = snapshots_of("many", ranks=1)
    assert result.outcome == DONE
    assert len(taken[0].records) == 1024
    assert taken[0].memory[-2, :4].view(np.int32) == 1021
    assert taken[0].memory[-1, :4].view(np.int32) == 2999


def test_without_the_wish_or_with_a_large_buffer_there_are_none(snapshots_of):
    assert snapshots_of("in_order", snapshots=False)[1] == []
    assert snapshots_of("in_order", ranks=2, count=513)[1] == []
    assert len(snapshots_of("in_order", ranks=2, count=512)[1]) == 2


def test_snapshots_change_nothing_in_the_recording(snapshots_of):
    with_them, without = (snapshots_of("in_order", snapshots=wish)[0] for wish in (True, False))
    for one, other in zip(with_them.ranks, without.ranks, strict=True):
        assert (one.records["operation"] == other.records["operation"]).all()
    assert isinstance(with_them.recording, Recording)


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", DATATYPES)
def test_the_origin_of_a_block_is_seen_wherever_it_lies(name, in_place):
    case = Case("allgather", 4, 3, name, in_place=in_place)
    memory = case.expected()[2][GUARD_BYTES:-GUARD_BYTES].copy()
    places = [block_places(case, slot) - GUARD_BYTES for slot in range(4)]
    assert origin(case, memory, 2).tolist() == [0, 1, 2, 3]
    memory[places[0]] = memory[places[3]]
    assert origin(case, memory, 2).tolist() == [3, 1, 2, 3]
    memory[places[1][-1]] ^= 1
    assert origin(case, memory, 2).tolist() == [3, UNKNOWN, 2, 3]
    outside = np.ones(len(memory), bool)
    outside[np.concatenate(places)] = False
    memory[outside] ^= 255  # the holes of the datatype are not part of a block
    assert origin(case, memory, 2).tolist() == [3, UNKNOWN, 2, 3]


def test_without_elements_nothing_is_touched():
    case = Case("allgather", 3, 0)
    assert origin(case, np.zeros((2, 0), np.uint8), 1).tolist() == [[UNTOUCHED] * 3] * 2


def test_of_blocks_that_look_alike_the_right_one_is_named():
    # With 40 ranks and blocks of one byte, some blocks must be equal.
    case = Case("allgather", 40, 1, "byte")
    memory = case.expected()[0][GUARD_BYTES:-GUARD_BYTES]
    assert len(np.unique(memory)) < 40
    assert origin(case, memory, 0).tolist() == list(range(40))


@pytest.mark.parametrize("keep", [0, 31, 33, 32 + 24])
def test_a_torn_file_is_refused_with_its_name(keep, tmp_path):
    header = b"MPILABM1" + np.array([5, 1024, 2], np.int64).tobytes()
    one = np.array([3, 0], np.int64).tobytes() + bytes(range(8))
    path = tmp_path / "0.1.mem"
    path.write_bytes(header + one + one + b"room")
    taken = read(path)
    assert taken.records.tolist() == [3, 3]
    assert taken.memory.tolist() == [[0, 1, 2, 3, 4]] * 2
    path.write_bytes((header + one + one)[:keep])
    with pytest.raises(InputError, match="0.1.mem: the file of snapshots"):
        read(path)
