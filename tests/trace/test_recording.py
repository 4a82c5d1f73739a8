"""The recorder writes what happened, and mpilab.trace.recording reads it: layout, completion,
matching."""

import re
import subprocess

import numpy as np
import pytest
from c_kernels import PREAMBLE, build_kernels, line_of, run, source_of
from recordings_made_up import written

from mpilab.errors import InputError
from mpilab.kernels import openmpi
from mpilab.kernels.build import build
from mpilab.runners.result import CRASH, DEADLOCK, DONE, TIME_OUT
from mpilab.trace.callsites import lines_of
from mpilab.trace.recording import (
    ANY,
    CANCELLED,
    CHANGED,
    COLLECTIVE,
    HEADER,
    MESSAGE,
    NOBODY,
    NONE,
    NULL_REQUESTS,
    POLLS,
    RECEIVES,
    RECORD,
    SENDS,
    SYNCHRONOUS,
    WORLD,
    RankRecording,
    Recording,
    cut,
    operations,
    peek,
)
from mpilab.util.kit import ROOT

# Two ranks meet without MPI: one opens a pipe for reading, the other for writing.
MEET = """#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
static void meet(int how)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/meet", getenv("TMPDIR"));
    mkfifo(path, 0600); /* whoever comes first */
    close(open(path, how));
}
"""
BODIES = {
    # Rank 0 sends to 1 in many ways; rank 1 receives in many ways.
    "completion": """
    int data[8] = {0}, done = 0, index, indices[8], count;
    MPI_Request r[3];
    MPI_Status status[3];
    if (rank == 0) {
        for (int i = 0; i < 8; i++)
            MPI_Isend(data, i, MPI_INT, 1, 10 + i, comm, &r[0]), MPI_Wait(&r[0], MPI_STATUS_IGNORE);
        return MPI_SUCCESS;
    }
    for (int i = 0; i < 2; i++)
        MPI_Irecv(data, 8, MPI_INT, 0, 10 + i, comm, &r[i]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Irecv(data, 8, MPI_INT, 0, 12, comm, &r[0]);
    MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE);
    MPI_Irecv(data, 8, MPI_INT, MPI_ANY_SOURCE, 13, comm, &r[0]);
    MPI_Waitsome(1, r, &count, indices, status);
    MPI_Irecv(data, 8, MPI_INT, 0, 14, comm, &r[0]);
    while (!done) MPI_Test(&r[0], &done, MPI_STATUS_IGNORE);
    MPI_Irecv(data, 8, MPI_INT, 0, 15, comm, &r[0]);
    for (done = 0; !done;) MPI_Testall(1, r, &done, status);
    MPI_Irecv(data, 8, MPI_INT, 0, 16, comm, &r[0]);
    for (done = 0; !done;) MPI_Testany(1, r, &index, &done, &status[0]);
    MPI_Irecv(data, 8, MPI_INT, 0, MPI_ANY_TAG, comm, &r[0]);
    for (count = 0; count == 0;) MPI_Testsome(1, r, &count, indices, MPI_STATUSES_IGNORE);""",
    "wildcards": """
    int value = rank;
    MPI_Status status;
    if (rank > 0) {
        MPI_Send(&value, 1, MPI_INT, 0, 40 + rank, comm);
    } else {
        MPI_Request request;
        MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        MPI_Irecv(&value, 1, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &request);
        MPI_Wait(&request, &status);
        MPI_Probe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &status);
        MPI_Recv(&value, 1, MPI_INT, status.MPI_SOURCE, status.MPI_TAG, comm, &status);
    }""",
    # Odd ranks in a separate communicator, in reverse order, beside the world's messages.
    "communicators": """
    MPI_Comm half, twin, again;
    int value = 0, own, others;
    MPI_Comm_split(comm, rank % 2, -rank, &half);
    MPI_Comm_dup(half, &twin);
    MPI_Comm_dup(comm, &again);
    MPI_Comm_rank(half, &own);
    MPI_Comm_size(half, &others);
    for (int i = 0; i < 2; i++) {
        const MPI_Comm used = i ? twin : half;
        MPI_Sendrecv(&rank, 1, MPI_INT, (own + 1) % others, 3, &value, 1, MPI_INT,
                     (own + others - 1) % others, 3, used, MPI_STATUS_IGNORE);
    }
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 4, &value, 1, MPI_INT,
                 (rank + size - 1) % size, 4, again, MPI_STATUS_IGNORE);
    if (rank == 0) MPI_Barrier(MPI_COMM_SELF);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Comm_free(&half);
    MPI_Comm_free(&twin);
    MPI_Comm_free(&again);
    MPI_Comm_dup(comm, &again);
    MPI_Barrier(again);
    MPI_Comm_free(&again);""",
    "persistent": """
    int out = rank, in;
    MPI_Request r[2];
    MPI_Send_init(&out, 1, MPI_INT, (rank + 1) % size, 9, comm, &r[0]);
    MPI_Recv_init(&in, 1, MPI_INT, (rank + size - 1) % size, MPI_ANY_TAG, comm, &r[1]);
    MPI_Startall(2, r);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    MPI_Start(&r[1]);
    MPI_Start(&r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Wait(&r[1], MPI_STATUS_IGNORE);
    MPI_Request_free(&r[0]);
    MPI_Request_free(&r[1]);""",
    "polling": """
    int value = 0, done = 0, other = 0, flag;
    MPI_Request r[3] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    if (rank == 1) {
        meet(O_RDONLY);
        MPI_Send(&value, 1, MPI_INT, 0, 1, comm);
        MPI_Send(&value, 1, MPI_INT, 0, 2, comm);
        return MPI_SUCCESS;
    }
    MPI_Irecv(&value, 1, MPI_INT, 1, 1, comm, &r[1]);
    MPI_Irecv(&value, 1, MPI_INT, 1, 2, comm, &r[2]);
    for (int polls = 0; !done || !other; polls++) {
        if (polls == 20) meet(O_WRONLY);
        for (int i = 0; i < 2; i++)
            MPI_Test(&r[i], &flag, MPI_STATUS_IGNORE), done |= i && flag;
        MPI_Test(&r[2], &flag, MPI_STATUS_IGNORE), other |= flag;
    }""",
    "probing": """
    int value = 0, flag = 0;
    if (rank == 1) {
        meet(O_RDONLY);
        MPI_Send(&value, 1, MPI_INT, 0, 1, comm);
        return MPI_SUCCESS;
    }
    for (int polls = 0; !flag; polls++) {
        if (polls == 20) meet(O_WRONLY);
        MPI_Iprobe(1, 1, comm, &flag, MPI_STATUS_IGNORE);
    }
    MPI_Recv(&value, 1, MPI_INT, 1, 1, comm, MPI_STATUS_IGNORE);""",
    "buffered": """
    int value = 0;
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, 1, comm); /* here */
    MPI_Recv(&value, 1, MPI_INT, 1 - rank, 1, comm, MPI_STATUS_IGNORE);""",
    "synchronous": """
    int value = 0;
    MPI_Request r[4];
    MPI_Isend(&rank, 1, MPI_INT, 1 - rank, 1, comm, &r[0]);
    MPI_Issend(&rank, 1, MPI_INT, 1 - rank, 2, comm, &r[1]);
    MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 1, comm, &r[2]);
    MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 2, comm, &r[3]);
    MPI_Waitall(4, r, MPI_STATUSES_IGNORE);""",
    "many": """
    int value = 0;
    for (int i = 0; i < 15000; i++)
        MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &value, 1, MPI_INT, 1 - rank, 1, comm,
                     MPI_STATUS_IGNORE);""",
    "itself": """
    int value = 0;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, rank, 1, comm, &request);
    MPI_Send(&rank, 1, MPI_INT, rank, 1, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    copy_local(&rank, 1, MPI_INT, &value, 1, MPI_INT);
    MPI_Sendrecv(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, &value, 1, MPI_INT, MPI_PROC_NULL, 1, comm,
                 MPI_STATUS_IGNORE);""",
    "cancelled": """
    int value = 0;
    MPI_Request request;
    MPI_Irecv(&value, 1, MPI_INT, 1 - rank, 77, comm, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &value, 1, MPI_INT, 1 - rank, 1, comm,
                 MPI_STATUS_IGNORE);""",
    "lost": """
    int value = 0;
    if (rank == 0) MPI_Send(&value, 1, MPI_INT, 1, 1, comm);""",
    "overtaking": """
    int value[3] = {0};
    MPI_Request r[3];
    if (rank == 0) {
        for (int i = 1; i <= 3; i++)
            MPI_Send(value, i, MPI_INT, 1, i == 3, comm);
        return MPI_SUCCESS;
    }
    MPI_Irecv(value, 3, MPI_INT, 0, 1, comm, &r[0]);
    MPI_Irecv(value, 3, MPI_INT, 0, 0, comm, &r[1]);
    MPI_Irecv(value, 3, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &r[2]);
    MPI_Wait(&r[2], MPI_STATUS_IGNORE);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE);""",
    "killed": "int value = 0; MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &value, 1, MPI_INT, "
    "1 - rank, 1, comm, MPI_STATUS_IGNORE); if (rank == 1) raise(SIGKILL); "
    "MPI_Recv(&value, 1, MPI_INT, 1, 2, comm, MPI_STATUS_IGNORE);",
    "segfault": "int value = 0; MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 1, &value, 1, MPI_INT, "
    "1 - rank, 1, comm, MPI_STATUS_IGNORE); if (rank == 1) *(volatile int *)8 = 1; "
    "MPI_Recv(&value, 1, MPI_INT, 1, 2, comm, MPI_STATUS_IGNORE);",
    "collectives": """
    int data[16] = {0};
    MPI_Request request;
    MPI_Bcast(data, 4, MPI_INT, 1, comm);
    MPI_Ibarrier(comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, data, 2, MPI_INT, comm);""",
}
SOURCE = source_of(BODIES, PREAMBLE + MEET)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(SOURCE, tmp_path_factory.mktemp("recording")).library


@pytest.fixture
def record(library):
    """A function: the recording of one kernel that must complete."""

    def recorded(name, **case):
        result = run(library, name, **case)
        assert result.outcome == DONE, result.hang or result.detail
        return result.recording

    return recorded


def calls(rank, name):
    """The records of one operation of a rank."""
    numbers = [number for number, known in operations().items() if known == name]
    return rank.records[rank.records["operation"] == numbers[0]]


# --- Layout


def test_both_languages_agree_on_every_field(tmp_path):
    lines = []
    for struct, dtype in (("mpilab_record", RECORD), ("mpilab_header", HEADER)):
        lines.append(f'printf("{struct} %zu\\n", sizeof(struct {struct}));')
        for field in dtype.names:
            lines.append(
                f'printf("{struct}.{field} %zu %zu\\n", offsetof(struct {struct}, '
                f"{field}), sizeof(((struct {struct} *)0)->{field}));"
            )
    program = tmp_path / "layout.c"
    program.write_text(
        "#include <stdio.h>\n#include <stddef.h>\n#include <mpi.h>\n"
        f'#include "{ROOT}/src_c/runtime/recorder/record.h"\n'
        "int main(void) {\n" + "\n".join(lines) + "\nreturn 0; }\n"
    )
    subprocess.run(
        [openmpi.tool("mpicc"), str(program), "-o", str(tmp_path / "layout")], check=True
    )
    said = subprocess.run([tmp_path / "layout"], capture_output=True, text=True, check=True)
    ours = []
    for struct, dtype in (("mpilab_record", RECORD), ("mpilab_header", HEADER)):
        ours.append(f"{struct} {dtype.itemsize}")
        for name in dtype.names:
            kind, offset = dtype.fields[name][:2]
            ours.append(f"{struct}.{name} {offset} {kind.itemsize}")
    assert said.stdout.splitlines() == ours


def test_both_languages_agree_on_flags_and_names_of_calls(tmp_path):
    program = tmp_path / "names.c"
    program.write_text(
        "#include <stdio.h>\n"
        f'#include "{ROOT}/src_c/runtime/recorder/record.h"\n'
        '#define X(name) printf("%d " #name "\\n", MPILAB_##name);\n'
        'int main(void) { MPILAB_OPERATIONS(X) printf("%d %d %d %d %d %d %d %d %d %d %d\\n",\n'
        "MPILAB_SENDS, MPILAB_RECEIVES, MPILAB_NONBLOCKING, MPILAB_COLLECTIVE, MPILAB_WAITS,\n"
        "MPILAB_POLLS, MPILAB_SYNCHRONOUS, MPILAB_CANCELLED, MPILAB_ANY, MPILAB_NOBODY,\n"
        'MPILAB_NONE); printf("%d %d %d\\n", MPILAB_NULL_REQUESTS, MPILAB_CHANGED,\n'
        "MPILAB_WORLD);\n"
        "return 0; }\n"
    )
    subprocess.run([openmpi.tool("mpicc"), str(program), "-o", str(tmp_path / "names")], check=True)
    said = subprocess.run([tmp_path / "names"], capture_output=True, text=True, check=True)
    *names, values, more = said.stdout.splitlines()
    assert names == [
        f"{number} {name.removeprefix('MPI_')}" for number, name in operations().items()
    ]
    assert values.split() == [str(1 << bit) for bit in range(8)] + [str(ANY), str(NOBODY), "-1"]
    assert more.split() == [str(NULL_REQUESTS), str(CHANGED), str(WORLD)]
    assert len(set(operations().values())) == len(operations())


# --- Completion


def test_every_kind_of_wait_and_test_tells_what_was_received(record):
    sender, receiver = record("completion").ranks
    received = calls(receiver, "MPI_Irecv")
    assert list(received["got_tag"]) == list(range(10, 18))
    assert list(received["got_bytes"]) == [4 * i for i in range(8)]
    assert (received["got_peer"] == 0).all()
    assert (received["done_ns"] >= received["end_ns"]).all()
    assert list(received["peer"]) == [0, 0, 0, ANY, 0, 0, 0, 0]
    assert list(received["tag"]) == [*range(10, 17), ANY]
    assert (received["bytes"] == 32).all()
    assert (calls(sender, "MPI_Isend")["done_ns"] != 0).all()
    for name in ("MPI_Waitall", "MPI_Waitany", "MPI_Waitsome"):
        (index,) = np.flatnonzero(receiver.records["operation"] == _number(name))
        assert index in received["waiter"], name
    assert receiver.finished and sender.finished


def test_all_messages_of_it_are_matched(record):
    messages = record("completion").messages
    assert list(messages["tag"]) == list(range(10, 18))
    assert (messages["receive_record"] != NONE).all()
    assert (messages["received_ns"] > messages["sent_ns"]).all()


def test_wildcards_are_recorded_as_such_and_with_what_came(record):
    recording = record("wildcards", ranks=4)
    root = recording.ranks[0]
    got = np.concatenate([calls(root, "MPI_Recv"), calls(root, "MPI_Irecv")])
    assert {(int(r["got_peer"]), int(r["got_tag"])) for r in got} == {(1, 41), (2, 42), (3, 43)}
    assert list(calls(root, "MPI_Irecv")["peer"]) == [ANY]
    assert list(calls(root, "MPI_Irecv")["tag"]) == [ANY]
    messages = recording.messages
    assert sorted(messages["source"]) == [1, 2, 3]
    assert (messages["receive_record"] != NONE).all()


def test_messages_do_not_overtake_and_wildcards_take_what_is_left(record):
    recording = record("overtaking")
    messages = recording.messages
    receives = [recording.ranks[1].records[m["receive_record"]] for m in messages]
    assert [int(r["got_bytes"]) for r in receives] == [4, 8, 12]
    assert [int(r["tag"]) for r in receives] == [0, ANY, 1]


def test_a_message_to_oneself_or_to_nobody_is_none(record):
    recording = record("itself")
    assert len(recording.messages) == 0
    assert recording.rounds == 0
    assert recording.matrix()[0].sum() == 0
    assert recording.messages.dtype == MESSAGE
    assert (calls(recording.ranks[0], "MPI_Sendrecv")["peer"][-2:] == NOBODY).all()


def test_a_cancelled_receive_receives_nothing(record):
    recording = record("cancelled")
    for rank in recording.ranks:
        (cancelled,) = calls(rank, "MPI_Irecv")
        assert cancelled["flags"] & CANCELLED
    assert [int(message["tag"]) for message in recording.messages] == [1, 1]


def test_a_message_that_nobody_receives_is_a_message(record):
    (message,) = record("lost").messages
    assert (message["source"], message["dest"], message["bytes"]) == (0, 1, 4)
    assert (message["receive_record"], message["received_ns"], message["round"]) == (NONE, -1, 1)


def test_persistent_requests_are_a_message_each_time_they_are_started(record):
    recording = record("persistent", ranks=3)
    assert list(recording.messages["dest"]) == [1, 1, 2, 2, 0, 0]
    assert list(recording.messages["round"]) == [1, 2] * 3
    assert recording.messages["bytes"].sum() == 6 * 4
    for rank in recording.ranks:
        started = np.concatenate([calls(rank, "MPI_Startall"), calls(rank, "MPI_Start")])
        received = started[started["flags"] & RECEIVES != 0]
        assert list(received["got_tag"]) == [9, 9]
        assert list(received["tag"]) == [ANY, ANY]


# --- Communicators


@pytest.mark.parametrize("reversed", [False, True])
def test_ranks_of_a_sub_communicator_are_told_as_those_of_the_whole(record, reversed):
    recording = record("communicators", ranks=4, reversed=reversed)
    messages = recording.messages
    inside = messages[messages["tag"] == 3]
    pairs = sorted(zip(inside["source"].tolist(), inside["dest"].tolist(), strict=True))
    assert pairs == [(0, 2)] * 2 + [(1, 3)] * 2 + [(2, 0)] * 2 + [(3, 1)] * 2
    assert (messages["receive_record"] != NONE).all()
    for message in messages:
        receive = recording.ranks[message["dest"]].records[message["receive_record"]]
        assert receive["got_peer"] == message["source"]


@pytest.mark.parametrize("reversed", [False, True])
def test_a_communicator_has_one_number_and_another_one_than_its_relatives(record, reversed):
    ranks = record("communicators", ranks=4, reversed=reversed).ranks

    def numbers(rank):
        exchanges = calls(rank, "MPI_Sendrecv")
        half, twin, again = exchanges["communicator"][exchanges["flags"] & SENDS != 0]
        world, late = calls(rank, "MPI_Barrier")["communicator"][-2:]
        (base,) = set(calls(rank, "MPI_Comm_split")["communicator"])
        return {
            "half": half,
            "twin": twin,
            "again": again,
            "world": world,
            "late": late,
            "base": base,
        }

    told = [numbers(rank) for rank in ranks]
    for name in ("again", "world", "late", "base"):
        assert len({number[name] for number in told}) == 1, name
    assert told[0] == told[2] and told[1] == told[3]
    assert told[0]["half"] != told[1]["half"]
    for number in told:
        assert len(set(number.values())) == 6


def test_collectives_are_numbered_and_know_root_and_members(record):
    recording = record("collectives", ranks=3)
    for rank in recording.ranks:
        collective = rank.records[rank.records["flags"] & COLLECTIVE != 0]
        assert [operations()[int(c["operation"])] for c in collective] == [
            "MPI_Bcast",
            "MPI_Ibarrier",
            "MPI_Allgather",
        ]
        assert list(collective["sequence"]) == [0, 1, 2]
        assert list(collective["peer"]) == [1, NONE, NONE]
        assert (collective["members"] == 3).all()
        assert (collective["done_ns"] != 0).all()
    assert len(recording.messages) == 0


# --- Polling


def test_a_loop_that_polls_at_two_places_takes_a_record_for_each(record):
    poller = record("polling").ranks[0]
    tests = calls(poller, "MPI_Test")
    assert len(tests) <= 4
    assert tests["count"].max() > 10
    assert (calls(poller, "MPI_Irecv")["done_ns"] != 0).all()
    assert poller.header["dropped"] == 0


def test_a_loop_that_probes_takes_one_record(record):
    poller = record("probing").ranks[0]
    (probe,) = calls(poller, "MPI_Iprobe")
    assert probe["count"] > 10
    assert not probe["flags"] & POLLS  # the last time there was an answer


# --- Strict mode


def test_without_strict_mode_a_buffered_send_returns(record):
    recording = record("buffered")
    assert recording.rounds == 1
    assert not (calls(recording.ranks[0], "MPI_Send")["flags"] & SYNCHRONOUS).any()


def test_in_strict_mode_it_really_blocks_and_the_line_is_told(library):
    result = run(library, "buffered", strict=True)
    assert result.outcome == DEADLOCK
    assert [state.call for state in result.hang.states] == ["MPI_Send"] * 2
    assert [state.line for state in result.hang.states] == [line_of(SOURCE, "/* here */")] * 2
    for rank in result.recording.ranks:
        (send,) = calls(rank, "MPI_Send")
        assert send["flags"] & SYNCHRONOUS
        assert send["end_ns"] == send["done_ns"] == 0


@pytest.mark.parametrize("strict", [False, True])
def test_synchronous_sends_are_flagged(record, strict):
    for rank in record("synchronous", strict=strict).ranks:
        assert bool(calls(rank, "MPI_Isend")["flags"][0] & SYNCHRONOUS) == strict
        assert calls(rank, "MPI_Issend")["flags"][0] & SYNCHRONOUS
        assert rank.header["strict"] == strict


@pytest.mark.parametrize("strict", [False, True])
def test_persistent_sends_are_strict_too(record, strict):
    for rank in record("persistent", ranks=3, strict=strict).ranks:
        started = calls(rank, "MPI_Start")
        (sent,) = started[started["flags"] & SENDS != 0]
        assert bool(sent["flags"] & SYNCHRONOUS) == strict


# --- Files


def test_more_calls_than_fit_are_counted_and_the_run_goes_on(record):
    recording = record("many")
    for rank in recording.ranks:
        assert rank.header["dropped"] == 2 * 15000 - 20000
        assert len(rank.records) == rank.header["capacity"] == 20000
    assert not recording.complete
    assert len(recording.messages) == 20000


@pytest.mark.parametrize(("name", "signal"), [("killed", "SIGKILL"), ("segfault", "SIGSEGV")])
def test_the_file_is_whole_after_the_end_of_a_rank(library, name, signal):
    result = run(library, name)
    assert result.outcome == CRASH
    assert result.crashed == (1, signal)
    dead = result.recording.ranks[1]
    assert not dead.finished
    assert len(calls(dead, "MPI_Sendrecv")) == 2
    assert (calls(dead, "MPI_Sendrecv")["done_ns"] != 0).all()
    assert len(result.recording.messages) == 2
    assert not result.recording.complete


def test_the_header_tells_who_wrote_it(record, library):
    recording = record("itself", ranks=3)
    for number, rank in enumerate(recording.ranks):
        assert (rank.rank, rank.header["size"]) == (number, 3)
        assert rank.header["object"].decode() == str(library)
        assert rank.header["pid"] > 0
        assert 0 < rank.header["opened_ns"] < rank.header["closed_ns"]
        assert rank.current is None


def test_every_call_site_is_a_line_of_the_kernel(record, library):
    recording = record("buffered")
    records = recording.ranks[0].records
    places = lines_of(str(library), tuple(int(site) for site in records["site"]))
    here = line_of(SOURCE, "/* here */")
    assert [(file, line) for _, file, line in places] == [("cell", here), ("cell", here + 1)]
    assert {function for function, _, _ in places} == {"allgather_buffered"}


def test_a_helper_of_the_header_is_told_as_the_line_that_used_it(record, library):
    recording = record("itself")
    sites = [int(site) for site in calls(recording.ranks[0], "MPI_Sendrecv")["site"][:1]]
    ((_, file, line),) = lines_of(str(library), tuple(sites))
    marked = [n for n, text in enumerate(SOURCE.split("\n"), 1) if "copy_local(&rank" in text]
    assert (file, [line]) == ("cell", marked)


def test_a_helper_that_was_not_inlined_is_not_taken_for_the_kernel(tmp_path):
    pointer = "int (*volatile copy)(const void *, int, MPI_Datatype, void *, int, MPI_Datatype) "
    body = """copy(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype);
              MPI_Barrier(comm); /* here */"""
    source = source_of({"helped": body}, f'#include "mpilab.h"\n{pointer}= copy_local;\n')
    library = build(source, tmp_path).library
    records = run(library, "helped").recording.ranks[0].records
    places = lines_of(str(library), tuple(int(site) for site in records["site"]))
    assert [line for _, _, line in places] == [0, 0, line_of(source, "/* here */")]


def test_sites_of_what_is_not_there_have_no_line(tmp_path):
    assert lines_of(str(tmp_path / "gone.so"), (1, 2)) == (("", "", 0),) * 2
    assert lines_of(str(tmp_path / "gone.so"), ()) == ()


# A message to oneself would take the place of one that is under way.
COPIES = """
    const char under_way[] = "under way", own[] = "my own...";
    char copy[sizeof own], last[sizeof own];
    MPI_Datatype same;
    MPI_Request request;
    MPI_Type_dup(MPI_CHAR, &same);
    MPI_Isend(under_way, 9, MPI_CHAR, 0, TAG, MPI_COMM_SELF, &request);
    copy_local(own, 9, {}, copy, 9, {});
    MPI_Recv(last, 9, MPI_CHAR, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    MPI_Type_free(&same);
    if (memcmp(copy, under_way, 9) == 0)
        return MPI_ERR_OTHER;
    if (memcmp(copy, own, 9) != 0 || memcmp(last, under_way, 9) != 0)
        return MPI_ERR_UNKNOWN;"""
SENT, COPIED = 16, 0  # MPI_ERR_OTHER, MPI_SUCCESS


@pytest.mark.parametrize(
    ("types", "record", "how"),
    [
        (("MPI_CHAR", "MPI_CHAR"), False, COPIED),
        (("MPI_CHAR", "MPI_CHAR"), True, SENT),
        (("same", "same"), False, SENT),  # it might have holes
        (("MPI_CHAR", "same"), False, SENT),
    ],
)
def test_a_copy_is_a_message_to_oneself_only_where_it_must_be(tmp_path, types, record, how):
    library = build_kernels(tmp_path, {"copies": COPIES.format(*types)})
    result = run(library, "copies", ranks=1, record=record)
    assert [output.returned for output in result.outputs] == [how]


# --- What is not a recording


def test_files_that_are_no_recordings_are_refused_with_their_name(tmp_path):
    path = tmp_path / "0.0.rec"
    for content in (b"", b"MPILABR5", b"\0" * 4096, b"x" * 1640):
        path.write_bytes(content)
        with pytest.raises(InputError, match="0.0.rec: not a recording"):
            RankRecording(path)
        assert peek(path) is None
    assert peek(tmp_path / "gone.rec") is None
    with pytest.raises(InputError, match="1.1.rec: no such recording"):
        (tmp_path / "1.0.rec").touch()
        Recording.load(tmp_path, 1, 2)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"record_bytes": 103}, "another version"),
        ({"count": 5}, "announces 5 records, but has room for 0"),
        ({"count": -1}, "announces -1 records"),
    ],
)
def test_a_recording_that_contradicts_itself_is_refused(tmp_path, header, words):
    with pytest.raises(InputError, match=words):
        RankRecording(written(tmp_path / "0.0.rec", **header))


def _record(operation, flags, peer, *, begin, done, got_peer=-1):
    record = np.zeros(1, RECORD)[0]
    values = {
        "operation": operation,
        "flags": flags,
        "communicator": 7,
        "peer": peer,
        "begin_ns": begin,
        "end_ns": done,
        "done_ns": done,
        "got_peer": got_peer,
    }
    for name, value in values.items():
        record[name] = value
    return record


@pytest.mark.parametrize("tick", [1, 1000])
def test_rounds_are_found_with_a_clock_that_ticks_slowly(tmp_path, tick):
    """Three exchanges of two ranks, all calls within one tick of the clock or one tick each."""
    ranks = []
    for rank in (0, 1):
        records = []
        for step in range(3):
            begin = 10**9 + step * (tick == 1)
            done = begin if tick == 1000 else begin + 1
            records.append(_record(11, SENDS, 1 - rank, begin=begin, done=done))
            records.append(
                _record(11, RECEIVES, 1 - rank, begin=begin, done=done, got_peer=1 - rank)
            )
        path = written(tmp_path / f"0.{rank}.rec", rank, records=records)
        ranks.append(RankRecording(path))
    assert list(Recording(ranks).messages["round"]) == [1, 2, 3] * 2


def test_the_matrix_adds_up_messages_and_bytes(library):
    result = run(library, "wildcards", ranks=4)
    count, volume = result.recording.matrix()
    expected = np.zeros((4, 4), np.int64)
    expected[1:, 0] = 1
    assert (count == expected).all()
    assert (volume == 4 * expected).all()


def test_the_recorder_wraps_every_call_that_it_names():
    said = subprocess.run(
        ["nm", "-g", str(ROOT / "build" / "librecorder.a")],
        capture_output=True,
        text=True,
        check=True,
    )
    found = re.findall(r" T (MPI_\w+|mpilab_heap_\w+)$", said.stdout, re.MULTILINE)
    wrapped = {name.removeprefix("mpilab_heap_") for name in found}
    # A failing call that is none of them is reported as MPI_Other; disconnecting frees, and so do
    # more; a name is wrapped to be replaced, not to be recorded.
    also = {"MPI_Comm_disconnect", "MPI_Get_processor_name"}
    also |= {"MPI_Group_free", "MPI_Free_mem", "free"}
    assert wrapped == set(operations().values()) - {"MPI_Other"} | also


def test_a_time_out_has_a_recording_as_well(tmp_path):
    library = build_kernels(tmp_path, {"endless": "for (volatile int i = 0;; i++);"})
    result = run(library, "endless", work=0.5)
    assert result.outcome == TIME_OUT
    assert [len(rank.records) for rank in result.recording.ranks] == [0, 0]


def _number(name):
    return next(number for number, known in operations().items() if known == name)


def test_the_room_for_further_records_is_cut_off(tmp_path):
    records = np.zeros(3, RECORD)
    records["tag"] = (1, 2, 3)
    path = written(tmp_path / "0.0.rec", records=records)
    used = path.stat().st_size
    with open(path, "ab") as file:
        file.truncate(used + 20000 * RECORD.itemsize)
    cut(path)
    assert path.stat().st_size == used
    assert RankRecording(path).records["tag"].tolist() == [1, 2, 3]
    cut(path)
    assert path.stat().st_size == used


@pytest.mark.parametrize("count", [-1, -(2**40), 4, 2**40])
def test_a_recording_that_contradicts_itself_is_not_cut(count, tmp_path):
    path = written(tmp_path / "0.0.rec", records=np.zeros(3, RECORD), count=count)
    whole = path.read_bytes()
    cut(path)
    assert path.read_bytes() == whole


def test_what_is_no_recording_is_not_cut(tmp_path):
    path = tmp_path / "0.0.rec"
    for content in (b"", b"x" * 4000):
        path.write_bytes(content)
        cut(path)
        assert path.read_bytes() == content
