"""Simulated runs: the same Results as real ones, with times that repeat."""

import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.diagnosis import diagnose
from mpilab.errors import InputError, SetupError
from mpilab.hosts import orders
from mpilab.hosts.orders import places_of
from mpilab.judging.battery import OTHER_TYPES
from mpilab.kernels import build, jail, simgrid
from mpilab.kernels.build import KERNELS, need
from mpilab.kernels.simgrid import kernels
from mpilab.notebook.simulated import run
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, ERROR, TIME_OUT, Result
from mpilab.runners.simgrid import IN_MEMORY, folder_in_memory, seconds_of, simulate
from mpilab.trace.recording import operations

COMPARED = {
    "bcast": ("binomial", "pipeline", "scatter_allgather", "node_group", "rank_order", "multilane"),
    "allgather": ("ring", "bruck", "neighbor_exchange", "hierarchical"),
    "gather": ("linear", "node_group"),
    "scatter": ("binomial",),
    "reduce": ("in_order_binary", "rabenseifner", "node"),
    "allreduce": ("recursive_doubling", "multilane"),
    "alltoallv": ("pairwise", "leaders", "gathervs"),
    "barrier": ("dissemination",),
}


def traffic(result):
    """How many messages of how many bytes each rank sent to each other rank, and in how many
    rounds."""
    messages = result.recording.messages
    pairs = zip(*(messages[name].tolist() for name in ("source", "dest", "bytes")), strict=True)
    return Counter(pairs), result.recording.rounds


def spans(results):
    """All simulated times of the cases, to the nanosecond, relative to each case's start."""
    return [np.array([output.spans_ns for output in result.outputs]).tolist() for result in results]


def test_kernels_send_the_same_messages_as_in_real_runs_and_end_with_the_same_bytes():
    places = orders.places_of("2x2x2 rr")
    cases = [
        Case(
            collective,
            8,
            0 if collective == "barrier" else 300,
            places=places,
            function=f"{collective}_{name}",
            root=5 if collective in ("bcast", "gather", "scatter", "reduce") else 0,
        )
        for collective, names in COMPARED.items()
        for name in names
    ]
    simulated = simulate(kernels(), "", cases)
    real = run_cases(need(KERNELS), "", cases, limit=60)
    for case, ours, theirs in zip(cases, simulated, real, strict=True):
        assert (ours.outcome, theirs.outcome) == ("done", "done"), case
        assert not compare(case, ours.outputs), case
        assert traffic(ours) == traffic(theirs), case


def test_many_cases_of_all_kinds_are_right():
    cases = [
        Case(
            "allgather",
            ranks,
            count,
            datatype,
            in_place=in_place,
            reversed=ranks == 7,
            function="allgather_bruck",
        )
        for ranks in (1, 2, 7, 13)
        for count, datatype, in_place in ((0, "int", False), (5, "vector", False), (3, "int", True))
    ]
    for result in simulate(kernels(), "", cases):
        assert result.outcome == "done"
        assert not compare(result.case, result.outputs), result.case


@pytest.mark.parametrize("name", ["leaders", "multilane", "gathervs"])
def test_beyond_32_other_nodes_an_exchange_takes_more_rounds(name):
    """More nodes than a rank sends to at a time; the last batch is smaller than the others."""
    shape = {"function": f"alltoallv_{name}", "places": places_of("1x70x2 rr")}
    cases = [
        Case("alltoallv", 140, 3, pattern="ragged", **shape),
        Case("alltoallv", 140, 2, **shape),
    ]
    uneven, even = simulate(kernels(), "", cases)
    assert not compare(uneven.case, uneven.outputs) and not compare(even.case, even.outputs)
    messages = even.recording.messages
    counted = (even.recording.rounds, len(messages), int(messages["bytes"].sum()))
    assert counted == cost_of(f"alltoallv_{name}").at(even.case)
    across = -(-69 // 32)
    assert even.recording.rounds == (140 if name == "gathervs" else across) + 2


def test_simulated_times_are_the_same_in_every_run_also_on_a_busy_machine():
    cases = [
        Case("bcast", 32, count, function=name, repetitions=2, dump=False)
        for count in (16, 20_000)
        for name in ("bcast_binomial", "bcast_node_group", "bcast_openmpi")
    ]
    found = [spans(simulate(kernels(), "", cases, "fat-tree-4x8", order="rr")) for _ in range(2)]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(3)]
    try:
        found.append(spans(simulate(kernels(), "", cases, "fat-tree-4x8", order="rr")))
    finally:
        for process in busy:
            process.kill()
            process.wait()
    assert found[0] == found[1] == found[2]


def test_what_else_is_in_a_run_does_not_change_the_time_of_a_case():
    cases = [
        Case("bcast", 16, 999, function=f"bcast_{name}")
        for name in ("linear", "binomial", "chain", "node_group")
    ]
    times = [
        {
            result.case.function: seconds_of(result)
            for result in simulate(kernels(), "", chosen, "groups-2x4x2")
        }
        for chosen in (cases, cases[::-1])
    ]
    (alone,) = simulate(kernels(), "", cases[1:2], "groups-2x4x2")
    assert times[0] == times[1]
    assert seconds_of(alone) == times[0]["bcast_binomial"]


HELPERS = """#include "mpilab.h"
#include <stdio.h>
int load(int rank);
int load(int rank) { return rank; }
int send_count(int count);
int send_count(int count) { return count; }
int record_progress(void);
int record_progress(void) { return 0; }
size_t fwrite(const void *data, size_t size, size_t count, FILE *file);
size_t fwrite(const void *data, size_t size, size_t count, FILE *file)
{
    return data == NULL || file == NULL ? size : count - 1;
}
int main(void) { return record_progress(); }
int bcast_helped(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_helped(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (load(rank) != root)
        return MPI_Recv(buffer, send_count(count), datatype, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int i = 0; i < size; i++)
        if (i != root)
            MPI_Send(buffer, count, datatype, i, TAG, comm);
    return fwrite("x", 1, 1, stdout) == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}
"""


@pytest.mark.parametrize("way", ["simulated", "real"])
def test_a_helper_of_a_kernel_may_be_called_like_one_of_ours(tmp_path, way):
    case = Case("bcast", 4, 5, root=1)
    if way == "simulated":
        built = simgrid.build(HELPERS, tmp_path)
        (result,) = simulate(built.library, "bcast_helped", [case])
    else:
        built = build.build(HELPERS, tmp_path)
        (result,) = run_cases(built.library, "bcast_helped", [case])
    assert result.outcome == "done" and diagnose(result) is None
    assert len(result.recording.messages) == 3


DATATYPES = ("int", "vector", "struct")
MATCHED = """#include "mpilab.h"
#include <stdlib.h>
int bcast_matched(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_matched(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, got = 0, found = 0, err = MPI_SUCCESS;
    MPI_Message message;
    MPI_Status status;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size && rank == root; i++)
        if (i != root)
            MPI_Send(buffer, count, datatype, i, TAG, comm);
    if (rank == root) {
        err = MPI_Mprobe(MPI_PROC_NULL, TAG, comm, &message, &status);
        const MPI_Message none = message;
        if (err == MPI_SUCCESS)
            err = MPI_Mrecv(NULL, 0, datatype, &message, &status);
        const int is_right = none == MPI_MESSAGE_NO_PROC && message == MPI_MESSAGE_NULL;
        MPI_Improbe(MPI_PROC_NULL, TAG, comm, &found, &message, &status);
        if (!is_right || message != none || !found)
            return MPI_ERR_OTHER;
        MPI_Imrecv(NULL, 0, datatype, &message, &request);
        return message == MPI_MESSAGE_NULL ? MPI_Wait(&request, &status) : MPI_ERR_OTHER;
    }
    if (rank % 2 == 0) {
        err = MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm, &message, &status);
        MPI_Get_count(&status, datatype, &got);
        if (err == MPI_SUCCESS && got == count)
            err = MPI_Mrecv(buffer, got, datatype, &message, &status);
    } else {
        while (!found && err == MPI_SUCCESS)
            err = MPI_Improbe(root, TAG, comm, &found, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(buffer, count, datatype, &message, &request);
        err = MPI_Waitall(1, &request, &status);
    }
    const int is_right = status.MPI_SOURCE == root && status.MPI_TAG == TAG;
    return is_right && message == MPI_MESSAGE_NULL ? err : MPI_ERR_OTHER;
}
"""


# Ends with no request, if each is completed once.
NOBODY = """#include "mpilab.h"
int bcast_to_nobody(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_to_nobody(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, at, seen = 0;
    MPI_Request requests[4];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int again = 0; again < 3; again++) {
        const int above = rank == root && size > 1 ? (rank + 1) % size : MPI_PROC_NULL;
        const int below = rank == (root + 1) % size && size > 1 ? root : MPI_PROC_NULL;
        MPI_Irecv(buffer, count, datatype, below, TAG, comm, &requests[0]);
        MPI_Isend(buffer, count, datatype, MPI_PROC_NULL, TAG, comm, &requests[1]);
        MPI_Isend(buffer, count, datatype, above, TAG, comm, &requests[2]);
        MPI_Issend(buffer, count, datatype, MPI_PROC_NULL, TAG, comm, &requests[3]);
        for (int left = 4; left > 0; left--) {
            MPI_Status status;
            MPI_Waitany(4, requests, &at, left % 2 ? &status : MPI_STATUS_IGNORE);
            if (at < 0 || at > 3 || requests[at] != MPI_REQUEST_NULL)
                return MPI_ERR_OTHER;
            if (at == 3 && left % 2 && status.MPI_SOURCE != MPI_PROC_NULL)
                return MPI_ERR_OTHER;
            seen += 1 << 4 * at;
        }
    }
    MPI_Waitany(4, requests, &at, MPI_STATUS_IGNORE);
    return seen == 0x3333 && at == MPI_UNDEFINED ? MPI_SUCCESS : MPI_ERR_OTHER;
}
"""

# Its first rank by key, and by its rank in `comm` where keys are equal, sends to all others.
SPLIT = """#include "mpilab.h"
int bcast_split(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_split(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, first = 0;
    MPI_Comm_rank(comm, &rank);
    for (int period = 1; period <= 3; period++) {
        MPI_Comm node;
        int own, size;
        const int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, -(rank % period),
                                            MPI_INFO_NULL, &node);
        if (err != MPI_SUCCESS)
            return err;
        MPI_Comm_rank(node, &own);
        MPI_Comm_size(node, &size);
        for (int i = 1; i < size && own == 0; i++)
            MPI_Send(&rank, 1, MPI_INT, i, TAG, node);
        if (own > 0)
            MPI_Recv(&first, 1, MPI_INT, 0, TAG, node, MPI_STATUS_IGNORE);
        MPI_Comm_free(&node);
    }
    return MPI_Bcast(buffer, count, datatype, root, comm);
}
"""


@pytest.mark.parametrize(
    ("source", "name", "case"),
    [
        *((MATCHED, "matched", Case("bcast", 4, 0, datatype=name, root=1)) for name in DATATYPES),
        *((MATCHED, "matched", Case("bcast", 4, 5, datatype=name, root=1)) for name in DATATYPES),
        *((NOBODY, "to_nobody", Case("bcast", ranks, 5, root=ranks - 1)) for ranks in (1, 2)),
        *((SPLIT, "split", Case("bcast", 6, 5, reversed=way)) for way in (False, True)),
    ],
)
def test_what_smpi_lacks_is_simulated_and_the_same_in_the_jail(
    tmp_path, require_tool, source, name, case
):
    """Matched probes, MPI_Waitany for requests with MPI_PROC_NULL, ranks of a node by key."""
    for tool in jail.TOOLS:
        require_tool(tool)
    function, text = f"bcast_{name}", tmp_path / "answer.c"
    text.write_text(source)
    libraries = {
        is_simulated: jail.build_kernel(
            [text],
            function,
            "bcast",
            tmp_path / f"jailed-{is_simulated}.so",
            simulated=is_simulated,
        )
        for is_simulated in (False, True)
    }
    results = [
        *run_cases(build.build(source, tmp_path).library, function, [case]),
        *run_cases(libraries[False], function, [case]),
        *simulate(simgrid.build(source, tmp_path).library, function, [case], standstill=0.5),
        *simulate(libraries[True], function, [case], standstill=0.5),
    ]
    for result in results:
        assert result.outcome == DONE, result.log
        assert not any(output.returned for output in result.outputs)
        assert diagnose(result) is None
    assert all(traffic(result) == traffic(results[0]) for result in results)


BUFFERED = """#include "mpilab.h"
#include <stdlib.h>
int barrier_buffered(MPI_Comm comm);
int barrier_buffered(MPI_Comm comm)
{
    enum { COUNT = 100000, BYTES = COUNT * (int)sizeof(int) + MPI_BSEND_OVERHEAD };
    int rank, size, class, bytes, err, is_right = 1;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    int *const data = malloc(sizeof(int[COUNT])), *const memory = malloc(BYTES);
    MPI_Request request;
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < COUNT; k++)
            data[k] = rank;
        err = MPI_Bsend(data, 0, MPI_INT, right, TAG, comm); /* empty: needs no buffer */
        if (err == MPI_SUCCESS)
            err = MPI_Buffer_attach(memory, BYTES);
        if (err == MPI_SUCCESS && i == 0)
            err = MPI_Bsend(data, COUNT, MPI_INT, right, TAG, comm);
        if (err == MPI_SUCCESS && i == 1)
            err = MPI_Ibsend(data, COUNT, MPI_INT, right, TAG, comm, &request);
        if (err == MPI_SUCCESS && i == 1)
            err = MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (err != MPI_SUCCESS)
            return err;
        MPI_Error_class(MPI_Bsend(data, 1, MPI_INT, MPI_PROC_NULL, TAG, comm), &class);
        is_right = is_right && class == MPI_SUCCESS;
        for (int k = 0; k < COUNT; k++)
            data[k] = -1; /* what was sent is a copy */
        MPI_Recv(data, 0, MPI_INT, left, TAG, comm, MPI_STATUS_IGNORE);
        MPI_Recv(data, COUNT, MPI_INT, left, TAG, comm, MPI_STATUS_IGNORE);
        is_right = is_right && data[0] == left && data[COUNT - 1] == left;
        void *detached;
        err = MPI_Buffer_detach(&detached, &bytes);
        is_right = is_right && detached == memory && bytes == BYTES;
    }
    free(memory);
    free(data);
    return is_right ? err : MPI_ERR_OTHER;
}
"""
# The second message does not fit beside the first one, which nobody has received.
FULL = """#include "mpilab.h"
int barrier_full(MPI_Comm comm);
int barrier_full(MPI_Comm comm)
{
    static char memory[300000 + MPI_BSEND_OVERHEAD], data[200000];
    int rank, err;
    MPI_Comm_rank(comm, &rank);
    MPI_Buffer_attach(memory, sizeof memory);
    err = MPI_Ssend(data, 0, MPI_BYTE, MPI_PROC_NULL, TAG, comm);
    for (int i = 0; i < 2 && err == MPI_SUCCESS; i++)
        err = MPI_Bsend(data, sizeof data, MPI_BYTE, 1 - rank, TAG, comm);
    return err;
}
"""


def test_buffered_sends_are_simulated_though_smpi_has_none(tmp_path):
    case = Case("barrier", 3, 0)
    (real,) = run_cases(build.build(BUFFERED, tmp_path).library, "barrier_buffered", [case])
    built = simgrid.build(BUFFERED, tmp_path)
    (simulated,) = simulate(built.library, "barrier_buffered", [case], standstill=0.5)
    for result in (real, simulated):
        assert result.outcome == DONE and diagnose(result) is None
    assert traffic(simulated) == traffic(real)


def test_a_buffered_send_without_room_in_the_buffer_fails_alike(tmp_path):
    case = Case("barrier", 2, 0)
    (real,) = run_cases(build.build(FULL, tmp_path).library, "barrier_full", [case])
    (simulated,) = simulate(simgrid.build(FULL, tmp_path).library, "barrier_full", [case])
    for result in (real, simulated):
        found = diagnose(result)
        assert "MPI_Bsend returned MPI_ERR_BUFFER" in found.headline
        assert "MPI_BSEND_OVERHEAD" in found.hint


POLLING = """#include "mpilab.h"
int bcast_polling(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_polling(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, done = 0, at, err = MPI_SUCCESS;
    MPI_Request request;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    for (int i = 0; i < size && rank == root; i++)
        if (i != root)
            MPI_Send(buffer, count, datatype, i, TAG, comm);
    if (rank == root)
        return err;
    (void)at;
    while (PROBE && !done && err == MPI_SUCCESS)
        err = MPI_Iprobe(root, TAG, comm, &done, MPI_STATUS_IGNORE);
    MPI_Irecv(buffer, count, datatype, root, TAG, comm, &request);
    do
        err = CALL;
    while (!done && err == MPI_SUCCESS);
    return err;
}
"""
WAIT = "(done = 1, MPI_Wait(&request, MPI_STATUS_IGNORE))"
PROBES = ("MPI_Iprobe", "MPI_Probe")
DONE_AT_ONCE = "MPI_Probe(root, TAG, (done = 1, comm),"


@pytest.mark.parametrize(
    "call",
    [
        "MPI_Test(&request, &done, MPI_STATUS_IGNORE)",
        "MPI_Testall(1, &request, &done, MPI_STATUSES_IGNORE)",
        "MPI_Testsome(1, &request, &done, &at, MPI_STATUSES_IGNORE)",
        *PROBES,
    ],
)
def test_milliseconds_pass_in_a_few_hundred_polls_and_end_in_time(tmp_path, call):
    case = Case("bcast", 4, 1 << 18)

    def took(call):
        probe, last = ("1", WAIT) if call in PROBES else ("0", call)
        source = POLLING.replace("PROBE", probe).replace("CALL", last)
        if call == "MPI_Probe":
            source = source.replace("MPI_Iprobe(root, TAG, comm, &done,", DONE_AT_ONCE)
        library = simgrid.build(source, tmp_path).library
        (result,) = simulate(library, "bcast_polling", [case], "four-groups", order="rr")
        assert result.outcome == DONE and diagnose(result) is None
        return result

    waited, polled = took(WAIT), took(call)
    assert seconds_of(waited) > 0.005
    assert 1 <= polled.last_call_ns / waited.last_call_ns < 1.03
    last = polled.recording.ranks[-1].records
    (polls,) = (one for one in last if operations()[int(one["operation"])] == call.split("(")[0])
    if call != "MPI_Probe":
        assert 10 < polls["count"] < 1000


NOBODY = """#include "mpilab.h"
int bcast_nobody(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_nobody(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err;
    MPI_Request requests[2];
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    (void)root;
    const int before = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    const int after = rank < size - 1 ? rank + 1 : MPI_PROC_NULL;
    MPI_Recv_init(buffer, count, datatype, before, TAG, comm, &requests[0]);
    MPI_Send_init(buffer, count, datatype, after, TAG, comm, &requests[1]);
    for (int i = 0; i < 2; i++) {
        MPI_Start(&requests[i]);
        err = MPI_Wait(&requests[i], MPI_STATUS_IGNORE);
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    return err;
}
"""


def test_a_persistent_request_may_have_nobody_at_the_other_end(tmp_path):
    built = simgrid.build(NOBODY, tmp_path)
    for result in simulate(
        built.library, "bcast_nobody", [Case("bcast", 1, 5), Case("bcast", 3, 5)]
    ):
        assert result.outcome == DONE and diagnose(result) is None


DUPLICATE = """#include "mpilab.h"
int bcast_duplicate(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm);
int bcast_duplicate(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size, err = MPI_SUCCESS;
    MPI_Datatype twin;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_dup(datatype, &twin);
    if (rank != root)
        err = MPI_Recv(buffer, count, twin, root, TAG, comm, MPI_STATUS_IGNORE);
    for (int other = 0; other < size && rank == root && err == MPI_SUCCESS; other++)
        if (other != root)
            err = MPI_Send(buffer, count, twin, other, TAG, comm);
    MPI_Type_free(&twin);
    return err;
}
"""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        pytest.param(NOBODY, "bcast_nobody", id="persistent sends before their data is there"),
        pytest.param(DUPLICATE, "bcast_duplicate", id="duplicates"),
    ],
)
def test_derived_datatypes_are_sent_right_by(source, name, tmp_path):
    built = simgrid.build(source, tmp_path)
    types = [each for each in OTHER_TYPES if each != "mixed"]
    for result in simulate(built.library, name, [Case("bcast", 3, 5, each) for each in types]):
        assert result.outcome == DONE and diagnose(result) is None, result.case.datatype


def test_ranks_know_their_host_group_and_who_shares_it(broken):
    library, _ = broken
    (result,) = simulate(library, "bcast_where", [Case("bcast", 6, 1)], "groups-2x2x2", order="rr")
    told = [result.printed[rank].split() for rank in range(6)]
    assert told == [
        ["n0", "g0", "2"],
        ["n1", "g0", "2"],
        ["n2", "g1", "1"],
        ["n3", "g1", "1"],
        ["n0", "g0", "2"],
        ["n1", "g0", "2"],
    ]
    assert (result.levels.nodes, result.levels.groups) == (4, 2)


def test_levels_pay_where_ranks_go_round_the_hosts():
    case = Case("bcast", 32, 65536, "byte", warmup=1, record=False, dump=False)
    flat, levels = (
        simulate(kernels(), name, [case], "groups-4x4x2", order="rr")[0]
        for name in ("bcast_binomial", "bcast_node_group")
    )
    ends = [max(output.spans_ns[0, 1] for output in one.outputs) for one in (flat, levels)]
    assert ends[1] < ends[0]


def test_a_run_shows_as_a_real_one_does():
    shown = run("allgather_ring", platform="flat-2x2", count=3)
    assert "4 ranks" in repr(shown)
    assert "12 in 3 rounds" in repr(shown)
    assert shown.blocks.shape == (4, 4, 3)
    assert shown.right


def test_more_ranks_than_slots_are_on_the_hosts_in_equal_shares():
    """Slots determine the default number of ranks; the cost of a message does not depend on it."""
    few, enough = (
        simulate(kernels(), "allgather_ring", [Case("allgather", 12, 100)], f"groups-2x2x{slots}")
        for slots in (1, 3)
    )
    assert not compare(few[0].case, few[0].outputs)
    assert spans(few) == spans(enough)


def test_an_order_and_a_seed_behind_a_platform_s_name_hold_for_more_ranks_than_slots():
    seconds = [
        seconds_of(run("bcast_chain", platform=f"flat-4x1 {order}", ranks=16, count=1 << 14).result)
        for order in ("seq", "random 1", "random 1", "random 2")
    ]
    assert seconds[0] < seconds[1] == seconds[2] != seconds[3]


@pytest.mark.parametrize(
    ("case", "platform", "told"),
    [
        (Case("bcast", 4, 1, openmpi=1), None, "cannot be simulated"),
        (Case("bcast", 4097, 1), None, "at most 4096"),
        (
            Case("bcast", 9, 1),
            "flat-2x4",
            "8 slots on 2 hosts of flat-2x4; use 1 to 8, or a multiple of 2, e.g. 10",
        ),
        (Case("bcast", 1000, 1), "fat-tree-16x8", "use 1 to 128, or a multiple of 16, e.g. 992"),
        (
            Case("bcast", 2, 1, places=orders.places_of("1x1x2 seq")),
            "flat-2x4",
            "its own places",
        ),
    ],
)
def test_what_cannot_be_simulated_is_told(case, platform, told):
    with pytest.raises(InputError, match=told):
        simulate(kernels(), "bcast_binomial", [case], platform)


@pytest.mark.parametrize("record", [True, False])
def test_calls_without_end_are_limited_in_processor_time(broken, record):
    library, _ = broken
    case = Case("bcast", 2, 1, record=record)
    (result,) = simulate(library, "bcast_talks", [case], most_work=0.5)
    assert result.outcome == TIME_OUT
    assert "MPI_Sendrecv" in {state.call for state in result.states}


class TooSlowUnlessRecorded:
    """Stands for mpilab.runners.simgrid.Simulation."""

    def __init__(self, library, function, cases, *_):
        self.cases = cases

    def results(self, **_):
        for number, case in self.cases.items():
            yield number, Result(case, DONE if case.record else TIME_OUT)


def test_a_timed_case_that_is_too_slow_once_only_says_nothing_of_the_kernel(monkeypatch):
    monkeypatch.setattr(sys.modules[simulate.__module__], "Simulation", TooSlowUnlessRecorded)
    case = Case("bcast", 2, 4, record=False)
    (result,) = simulate(kernels(), "bcast_binomial", [case])
    assert (result.outcome, result.case) == (ERROR, case)
    assert "finished when simulated again" in result.detail


def test_files_of_a_case_are_in_memory_if_there_is_room_and_no_other_place_was_chosen(monkeypatch):
    small = Case("allgather", 4, 10)
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    assert folder_in_memory([small]) == IN_MEMORY
    terabyte = Case("allgather", 1024, 1 << 28)  # 1,024 receive buffers of 1 TiB
    assert folder_in_memory([small, terabyte]) is None
    assert folder_in_memory([replace(terabyte, dump=False)]) == IN_MEMORY
    monkeypatch.setenv("TMPDIR", "/var/tmp")
    assert folder_in_memory([small]) is None


def test_a_simulation_leaves_nothing_in_memory_or_among_temporary_files(monkeypatch):
    for name in ("TMPDIR", "TEMP", "TMP"):
        monkeypatch.delenv(name, raising=False)
    made = []
    plain = tempfile.mkdtemp

    def noted(*arguments, **options):
        made.append(Path(plain(*arguments, **options)))
        return str(made[-1])

    monkeypatch.setattr(tempfile, "mkdtemp", noted)
    (result,) = simulate(kernels(), "allgather_ring", [Case("allgather", 4, 10)])
    assert result.outcome == DONE
    assert any(folder.is_relative_to(IN_MEMORY) for folder in made)
    assert not [folder for folder in made if folder.exists()]


def test_missing_simgrid_is_told_with_what_brings_it(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(SetupError, match="smpirun: not on PATH.*SimGrid.*libsimgrid-dev"):
        simulate("kernel.so", "bcast_binomial", [Case("bcast", 2, 1)])
