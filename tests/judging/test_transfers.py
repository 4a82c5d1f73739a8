"""A correct result needs messages that carried it: recordings are compared with the data."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from c_kernels import PREAMBLE, source_of
from recordings_made_up import written

from mpilab.cases.case import COLLECTIVES, Case
from mpilab.cases.output import compare
from mpilab.judging import agreement, judge, rubric
from mpilab.judging.rubric import Item
from mpilab.judging.transfers import (
    differing_calls,
    is_examined,
    need,
    other_data,
    shortfall,
)
from mpilab.judging.verdict import PASS, UNGRADABLE
from mpilab.kernels import build, simgrid
from mpilab.kernels.simgrid import kernels
from mpilab.runners.mpirun import run_cases
from mpilab.runners.simgrid import simulate
from mpilab.trace.recording import (
    RECEIVES,
    RECORD,
    SENDS,
    RankRecording,
    Recording,
)

ROOT = Path(__file__).resolve().parents[2]
HOSTILE = ROOT / "tests" / "hostile"
EXERCISE = rubric.load(HOSTILE / "course/grading/hostile/rubric.toml").exercise("bcast_linear")
# The message for each attack of the corpus.
ATTACKS = {
    "data_in_keys": "ended with 28 bytes from other ranks, but received 0 in messages",
    "data_in_tags": "ended with 28 bytes from other ranks, but received 0 in messages",
    "requests_made_unrecorded": "a request that no recorded call had made",
    "receives_begun_unrecorded": "a request that no recorded call had made",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_data_that_no_recorded_message_brought_cannot_be_graded(name, tmp_path):
    source = (HOSTILE / "kernels" / f"{name}.c").read_text()
    plan = agreement.to_simulate(EXERCISE)
    library = simgrid.build(source, tmp_path).library
    simulated = simulate(library, "bcast_linear", plan[0], groups=plan[1])
    found = agreement.Witness(simulated)
    cases, groups = agreement.to_run(EXERCISE, found)
    real_library = build.build(source, tmp_path).library
    real = run_cases(real_library, "bcast_linear", cases, groups=groups)
    assert not any(compare(each.case, each.outputs) for each in (*simulated, *real))
    verdict, _ = agreement.judge_exercise(EXERCISE, agreement.Witness(real), found)
    anyone = verdict.items[0]
    assert anyone.outcome == UNGRADABLE
    assert ATTACKS[name] in anyone.reason
    assert not verdict.awarded
    for results in (simulated, real):
        alone = judge.judge_exercise(EXERCISE, results).items[0]
        assert ATTACKS[name] in alone.reason, "each of both says so alone"


@pytest.fixture(scope="module")
def right():
    """A right allgather of 4 ranks, recorded."""
    (result,) = simulate(kernels(), "allgather_ring", [Case("allgather", 4, 6)])
    return result


def emptied(rank):
    """The RankRecording of a rank whose header says that nothing was called."""
    header = np.array([rank.header])
    header["count"] = 0
    return RankRecording(rank.path, header.tobytes())


def test_a_recording_that_was_cleared_cannot_be_graded(right):
    cleared = Recording([*right.recording.ranks[:3], emptied(right.recording.ranks[3])])
    result = replace(right, recording=cleared, ranks=cleared.ranks)
    item = Item("one", "One", 1, (right.case,))
    assert judge.judge_item(EXERCISE, item, [right]).outcome == PASS
    said = judge.judge_item(EXERCISE, item, [result])
    assert said.outcome == UNGRADABLE
    assert "rank 0 ended with 72 bytes from other ranks, but received 0 in messages" in said.reason


def test_receives_of_messages_that_nobody_sent_do_not_count(right):
    cleared = Recording([emptied(right.recording.ranks[0]), *right.recording.ranks[1:]])
    assert "but received" in shortfall(right.case, cleared)


def simulated(tmp_path, body, case):
    built = simgrid.build(source_of({"x": body}, "#include <stdint.h>\n" + PREAMBLE), tmp_path)
    (result,) = simulate(built.library, "allgather_x", [case])
    assert result.outcome == "done" and not compare(case, result.outputs), result
    return shortfall(case, result.recording)


# All ranks of a simulation share one process: an address is enough to read another rank's memory.
ADDRESSES = """
    const void *own = sendbuf;
    const int bytes = recvcount * (int)sizeof(int);
    for (int round = 0; round < size; round++) {
        const int to = (rank + round) % size, from = (rank + size - round) % size;
        const void *other = own;
        MPI_Sendrecv(&own, sizeof own, MPI_BYTE, to, 0, &other, sizeof other, MPI_BYTE, from, 0,
                     comm, MPI_STATUS_IGNORE);
        memcpy((char *)recvbuf + from * bytes, other, (size_t)bytes);
    }
    MPI_Barrier(comm);
"""


def test_addresses_sent_in_place_of_data_are_too_few_bytes(tmp_path):
    said = simulated(tmp_path, ADDRESSES, Case("allgather", 3, 6))
    assert said == "rank 0 ended with 48 bytes from other ranks, but received 16 in messages"


# As many bytes as the data have, but all to the right neighbor and in one round; the keys of
# MPI_Comm_split carry the addresses.
NEIGHBORS = """
    const int bytes = recvcount * (int)sizeof(int);
    static char nothing[1 << 12];
    MPI_Sendrecv(nothing, (size - 1) * bytes, MPI_BYTE, (rank + 1) % size, 0, nothing + (1 << 11),
                 (size - 1) * bytes, MPI_BYTE, (rank + size - 1) % size, 0, comm,
                 MPI_STATUS_IGNORE);
    for (int from = 0; from < size; from++) {
        uintptr_t address = rank == from ? (uintptr_t)sendbuf : 0;
        for (int bit = 0; bit < 64; bit++) {
            MPI_Comm ordered;
            int place;
            MPI_Comm_split(comm, 0, rank == from ? 2 * (int)(address >> bit & 1) : 1, &ordered);
            MPI_Comm_rank(ordered, &place);
            MPI_Comm_free(&ordered);
            if (rank != from && place == rank - (rank > from))
                address |= (uintptr_t)1 << bit;
        }
        memcpy((char *)recvbuf + from * bytes, (const void *)address, (size_t)bytes);
    }
    MPI_Barrier(comm);
"""


def test_enough_bytes_along_the_wrong_way_are_noticed(tmp_path):
    said = simulated(tmp_path, NEIGHBORS, Case("allgather", 3, 6))
    assert said == (
        "the result of rank 2 depends on rank 0, but no chain of messages leads from rank 0 to "
        "rank 2"
    )


def test_communicators_whose_keys_could_carry_the_data_are_limited(tmp_path):
    there = NEIGHBORS.replace("(rank + size - 1)", "(rank + 1)")
    said = simulated(tmp_path, there, Case("allgather", 2, 6))
    assert said == (
        "rank 0 created 128 communicators in one call, whose colors and keys can carry data"
    )


# Right, and as few bytes between ranks as the ring's: each message has the right length, but
# nothing in it; the data is in the tags of empty messages, or in the order of the ranks of
# communicators.
IN_TAGS = """
    const int bytes = recvcount * (int)sizeof(int), right = (rank + 1) % size;
    const int left = (rank + size - 1) % size;
    static char nothing[2][1 << 12];
    unsigned char *const all = recvbuf;
    memcpy(all + rank * bytes, sendbuf, (size_t)bytes);
    for (int round = 1; round < size; round++) {
        const int mine = (rank - round + 1 + size) % size, other = (rank - round + size) % size;
        MPI_Sendrecv(nothing[0], bytes, MPI_BYTE, right, 0, nothing[1], bytes, MPI_BYTE, left, 0,
                     comm, MPI_STATUS_IGNORE);
        for (int i = 0; i < bytes; i++) {
            MPI_Status status;
            MPI_Sendrecv(NULL, 0, MPI_BYTE, right, all[mine * bytes + i], NULL, 0, MPI_BYTE, left,
                         MPI_ANY_TAG, comm, &status);
            all[other * bytes + i] = (unsigned char)status.MPI_TAG;
        }
    }
"""
# The same messages for any data: their order tells it.
IN_ORDER = (
    IN_TAGS.partition("        for (int i")[0]
    + """
        for (int i = 0; i < 8 * bytes; i++) {
            MPI_Status status, late;
            const int first = all[mine * bytes + i / 8] >> i % 8 & 1;
            MPI_Sendrecv(NULL, 0, MPI_BYTE, right, first, NULL, 0, MPI_BYTE, left, MPI_ANY_TAG,
                         comm, &status);
            MPI_Sendrecv(NULL, 0, MPI_BYTE, right, !first, NULL, 0, MPI_BYTE, left, MPI_ANY_TAG,
                         comm, &late);
            all[other * bytes + i / 8] &= (unsigned char)~(1 << i % 8);
            all[other * bytes + i / 8] |= (unsigned char)(status.MPI_TAG << i % 8);
        }
    }
"""
)
IN_KEYS = """
    const int bytes = recvcount * (int)sizeof(int), other = 1 - rank;
    static char nothing[2][1 << 12];
    unsigned char *const all = recvbuf;
    memset(all, 0, (size_t)(2 * bytes));
    memcpy(all + rank * bytes, sendbuf, (size_t)bytes);
    MPI_Sendrecv(nothing[0], bytes, MPI_BYTE, other, 0, nothing[1], bytes, MPI_BYTE, other, 0,
                 comm, MPI_STATUS_IGNORE);
    for (int bit = 0; bit < 16 * bytes; bit++) {
        MPI_Comm ordered;
        const int from = bit & 1, at = from * bytes + bit / 16;
        int place;
        MPI_Comm_split(comm, 0, rank == from ? 2 * (all[at] >> bit / 2 % 8 & 1) : 1, &ordered);
        MPI_Comm_rank(ordered, &place);
        MPI_Comm_free(&ordered);
        if (rank != from)
            all[at] |= (unsigned char)((place == 0) << bit / 2 % 8);
    }
"""


@pytest.mark.parametrize(
    ("body", "ranks", "count"), [(IN_TAGS, 4, 3), (IN_ORDER, 3, 2), (IN_KEYS, 2, 1)]
)
def test_useless_messages_beside_data_in_tags_or_keys_are_noticed(body, ranks, count, tmp_path):
    built = simgrid.build(source_of({"x": body}), tmp_path)
    case = Case("allgather", ranks, count)
    assert is_examined(case)
    both = simulate(built.library, "allgather_x", [case, other_data(case)])
    for result in both:
        assert result.outcome == "done" and not compare(result.case, result.outputs), result
        assert shortfall(result.case, result.recording) == ""
    said = differing_calls(*[result.recording for result in both])
    assert said == (
        "the tags, lengths, number or communicators of the messages of rank 0 depend on the data, "
        "and could carry it"
    )


@pytest.mark.parametrize(
    ("case", "received", "sent"),
    [
        (Case("allgather", 3, 2), [16, 16, 16], [8, 8, 8]),
        (Case("allgather", 3, 2, datatype="vector", in_place=True), [96] * 3, [48] * 3),
        (Case("allgather", 1, 2), [0], [0]),
        (Case("allgather", 3, 0), [0] * 3, [0] * 3),
        (Case("bcast", 3, 2, root=1), [8, 0, 8], [0, 8, 0]),
        (Case("gather", 3, 2, root=1), [0, 16, 0], [8, 0, 8]),
        (Case("scatter", 3, 2, root=1), [8, 0, 8], [0, 16, 0]),
        (Case("reduce", 3, 2, root=1), [0, 8, 0], [8, 0, 8]),
        (Case("allreduce", 3, 2), [8] * 3, [8] * 3),
        (Case("barrier", 3, 0), [0] * 3, [0] * 3),
        (Case("alltoallv", 4, 2, pattern="sparse"), [8, 16, 8, 0], [16, 0, 0, 16]),
        (Case("read", 4, 1, datatype="double", matrix="8x8"), [0] * 4, [0] * 4),
    ],
    ids=lambda each: each.describe() if isinstance(each, Case) else "",
)
def test_what_each_rank_needs_follows_from_the_data(case, received, sent):
    found = need(case)
    assert (found.received.tolist(), found.sent.tolist()) == (received, sent)


def cases_of(collective):
    """Cases of every kind for the kernels of a collective."""
    about = COLLECTIVES[collective]
    for ranks in (1, 2, 5, 8, 13, 16):
        for count in (1, 7, 100) if about.has_blocks else (0,):
            for root in {0, ranks - 1} if about.is_rooted else {0}:
                for in_place in (False, True) if about.in_place else (False,):
                    for pattern in ("even", "ragged", "sparse") if about.exchanges else ("even",):
                        yield Case(
                            collective,
                            ranks,
                            count,
                            datatype="vector" if count == 7 else "int",
                            root=root,
                            in_place=in_place,
                            pattern=pattern,
                            reversed=count == 1,
                        )


KERNELS = [
    f"{path.parent.name}_{path.stem}"
    for path in sorted((ROOT / "src_c").glob("*/*.c"))
    if path.parent.name in COLLECTIVES and path.parent.name != "read"
]


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_of_the_kit_sends_what_its_data_need(kernel):
    cases = list(cases_of(kernel.partition("_")[0]))
    placed = [replace(case, platform="groups-2x2x4 rr") for case in cases if case.ranks == 16]
    again = {other_data(case): case for case in placed[-4:] if is_examined(case)}
    found = {}
    for result in simulate(kernels(), kernel, [*cases, *placed, *again]):
        assert result.outcome == "done" and not compare(result.case, result.outputs)
        assert not shortfall(result.case, result.recording), result.case.describe()
        found[result.case] = result.recording
    for other, case in again.items():
        assert not differing_calls(found[case], found[other]), case.describe()


def made_up(folder, rank, unreceived):
    """A rank of a broadcast on two, with one message of 16 bytes, and many that nobody receives."""
    records = np.zeros(unreceived + 1, RECORD)
    records["operation"], records["flags"], records["communicator"] = 1, SENDS, 77
    records["peer"], records["tag"] = 1 - rank, 100 + np.arange(len(records))
    records["got_peer"] = records["got_tag"] = -1
    records["begin_ns"] = records["end_ns"] = records["done_ns"] = 5
    first = {"tag": 7, "bytes": 16, "begin_ns": 1, "end_ns": 2, "done_ns": 2}
    if rank == 1:
        first |= {"operation": 5, "flags": RECEIVES, "end_ns": 3, "done_ns": 3}
        first |= {"got_peer": 0, "got_tag": 7}
    for name, value in first.items():
        records[name][0] = value
    path = written(
        folder / f"{rank}.rec", rank, records=records, capacity=len(records), closed_ns=9
    )
    return RankRecording(path)


def test_messages_that_nobody_receives_hold_nobody_up(tmp_path):
    """Each was once compared with each record of its receiver, which took minutes."""
    recording = Recording([made_up(tmp_path, rank, 100_000) for rank in (0, 1)])
    assert len(recording.messages) == 200_001
    assert shortfall(Case("bcast", 2, 4), recording) == ""
