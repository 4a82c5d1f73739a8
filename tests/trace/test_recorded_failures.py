"""What a recording shows about failures: MPI errors, crashes, exits, where a rank computes,
leaks."""

import signal

import numpy as np
import pytest
from c_kernels import PREAMBLE, line_of, run, source_of

from mpilab.cases.case import Case
from mpilab.kernels.build import build
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import CRASH, DONE, TIME_OUT
from mpilab.trace.callsites import lines_of
from mpilab.trace.recording import NOBODY, RECEIVES, operations

# Error classes of Open MPI.
ERR_TAG, ERR_COMM, ERR_RANK, ERR_REQUEST, ERR_ROOT, ERR_GROUP, ERR_TRUNCATE, ERR_IN_STATUS = (
    4,
    5,
    6,
    7,
    8,
    9,
    15,
    18,
)
ERR_OTHER = 16

HELPERS = """
static int deep(volatile int *from)
{
    volatile int local[64] = {0};
    local[*from % 64] = *from + 1;
    return deep(&local[*from % 64]) + local[0]; /* deeper */
}
static void failing_operation(void *in, void *inout, int *length, MPI_Datatype *type)
{
    (void)in, (void)inout, (void)length, (void)type;
    *(volatile int *)24 = 1; /* in the operation */
}
static void __attribute__((noinline)) smash(int length)
{
    char small[8];
    memset(small, 'a', (size_t)length);
    __asm__ volatile("" : : "r"(small) : "memory");
} /* smashed */
struct cached {
    MPI_Request started, persistent;
    MPI_Datatype datatype;
};
static int free_more(MPI_Comm comm, int key, void *value, void *extra)
{
    struct cached *cached = value;
    (void)comm, (void)key, (void)extra;
    MPI_Wait(&cached->started, MPI_STATUS_IGNORE);
    MPI_Request_free(&cached->persistent);
    return MPI_Type_free(&cached->datatype);
}
static int free_cached(MPI_Comm comm, int key, void *value, void *extra)
{
    MPI_Comm *cached = value;
    (void)comm, (void)key, (void)extra;
    MPI_Barrier(*cached); /* in the callback */
    return MPI_Comm_free(cached);
}
"""

# Rank 0 sends eight ints with tag 7 and then one with tag 8; rank 1 has room for four of the first.
TRUNCATED = """
    int data[8] = {0}, flag = 0, index = 0, done = 0, indices[2];
    MPI_Request r[2];
    MPI_Status s[2];
    (void)flag, (void)index, (void)done, (void)indices, (void)r, (void)s;
    if (rank == 0) {
        MPI_Send(data, 8, MPI_INT, 1, 7, comm);
        MPI_Send(data, 1, MPI_INT, 1, 8, comm);
        return MPI_SUCCESS;
    }
    MPI_Irecv(data, 4, MPI_INT, 0, 7, comm, &r[0]); /* started */
    MPI_Irecv(&data[4], 1, MPI_INT, 0, 8, comm, &r[1]);
"""
ENDS = {
    "Wait": "MPI_Wait(&r[0], MPI_STATUS_IGNORE);",
    "Waitall": "MPI_Waitall(2, r, MPI_STATUSES_IGNORE);",
    "Waitany": "MPI_Waitany(1, r, &index, MPI_STATUS_IGNORE);",
    "Waitsome": "MPI_Waitsome(1, r, &done, indices, s);",
    "Test": "while (!flag && MPI_Test(&r[0], &flag, s) == MPI_SUCCESS);",
    "Testall": "while (!flag && MPI_Testall(2, r, &flag, s) == MPI_SUCCESS);",
    "Testany": "while (!flag && MPI_Testany(1, r, &index, &flag, s) == MPI_SUCCESS);",
    "Testsome": "while (!done && MPI_Testsome(1, r, &done, indices, s) == MPI_SUCCESS);",
}

ERRORS = {
    f"truncated_{name}": f"{TRUNCATED}{code}\nMPI_Waitall(2, r, s);" for name, code in ENDS.items()
} | {
    "truncated": """
    int data[8] = {0};
    if (rank == 0) MPI_Send(data, 8, MPI_INT, 1, 7, comm);
    else MPI_Recv(data, 4, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE); /* too small */""",
    "nobody": "MPI_Send(&rank, 1, MPI_INT, 99, 7, comm); /* to nobody */\n"
    "MPI_Isend(&rank, 1, MPI_INT, 0, -5, comm, &(MPI_Request){0});\n"
    "MPI_Bcast(&rank, 1, MPI_INT, 99, comm);",
    "unwrapped": """
    int value;
    MPI_Barrier(comm);
    for (int i = 0; i < 300; i++)
        MPI_Comm_rank(MPI_COMM_NULL, &value); /* no communicator */
    MPI_Group_size(MPI_GROUP_NULL, &value);
    MPI_Barrier(comm);""",
    "elsewhere": """
    int value = 0;
    MPI_Comm again;
    MPI_Send(&value, 1, MPI_INT, 1, 0, MPI_COMM_SELF); /* self */
    MPI_Send(&value, 1, MPI_INT, 9, 0, MPI_COMM_WORLD); /* world */
    MPI_Comm_dup(comm, &again);
    MPI_Send(&value, 1, MPI_INT, 9, 0, again); /* again */
    MPI_Comm_free(&again);
    MPI_Barrier(again); /* freed */
    MPI_Wait(NULL, MPI_STATUS_IGNORE); /* no request */""",
    "nulls": """
    int value = 0;
    MPI_Sendrecv(&rank, 1, MPI_DATATYPE_NULL, rank, 1, &value, 1, MPI_INT, rank, 1, comm,
                 MPI_STATUS_IGNORE);
    MPI_Type_free(NULL);
    MPI_Start(NULL);
    MPI_Request_free(NULL);
    MPI_Waitall(-1, NULL, MPI_STATUSES_IGNORE);""",
    "begins_and_ends": """
    int provided = -1;
    MPI_Init(NULL, NULL); /* begins */
    MPI_Init_thread(NULL, NULL, MPI_THREAD_SINGLE, &provided);
    MPI_Finalize();
    if (provided >= MPI_THREAD_SINGLE)
        MPI_Barrier(comm);""",
    "nobody_and_anybody": """
    int value = 0;
    MPI_Send(&value, 1, MPI_INT, MPI_PROC_NULL, 0, comm);
    MPI_Sendrecv(&rank, 1, MPI_INT, 1 - rank, 0, &value, 1, MPI_INT, MPI_ANY_SOURCE, 0, comm,
                 MPI_STATUS_IGNORE);""",
    "handled": """
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Send(&rank, 1, MPI_INT, 99, 7, comm);""",
}

CRASHES = {
    "segfault": "if (rank == 1) *(volatile int *)8 = 1; /* here */\nMPI_Barrier(comm);",
    "bus": "if (rank == 1) raise(SIGBUS); /* here */\nMPI_Barrier(comm);",
    "trap": "if (rank == 1) __builtin_trap(); /* here */\nMPI_Barrier(comm);",
    # What that is on aarch64.
    "breakpoint": "if (rank == 1) raise(SIGTRAP); /* here */\nMPI_Barrier(comm);",
    "abort": "if (rank == 1) abort(); /* here */\nMPI_Barrier(comm);",
    "freed": """
    char *volatile memory = malloc(100);
    free(memory);
    if (rank == 1) free(memory); /* here */
    MPI_Barrier(comm);""",
    "endless": "int zero = 0;\nif (rank == 1) deep(&zero);\nMPI_Barrier(comm);",
    "divided": "volatile int none = 0;\nif (rank == 1) none = size / none; /* here */\n"
    "MPI_Barrier(comm);",
    "buffer": "int *nowhere = (int *)(long)(rank * 4096);\n"
    "if (rank == 0) MPI_Send(&size, 1, MPI_INT, 1, 0, comm);\n"
    "else MPI_Recv(nowhere, 1, MPI_INT, 0, 0, comm, MPI_STATUS_IGNORE); /* here */\n",
    "operation": "MPI_Op op;\nint value = 0;\nMPI_Op_create(failing_operation, 1, &op);\n"
    "MPI_Allreduce(&rank, &value, 1, MPI_INT, op, comm);\n",
    "argument": "if (rank == 1) MPI_Comm_free(NULL); /* here */\nMPI_Barrier(comm);",
    "jump": "void (*volatile nowhere)(void) = NULL;\nif (rank == 1) nowhere(); /* here */\n"
    "MPI_Barrier(comm);",
    "library": "if (rank == 1) memset((void *)64, 0, 1 << (16 + rank)); /* here */\n"
    "MPI_Barrier(comm);",
    "smashed": "if (rank == 1) smash(256 * size);\nMPI_Barrier(comm);",
    "wild": "char *volatile wild = (char *)0x6161616161616161;\n"
    "if (rank == 1) *wild = 1; /* here */\nMPI_Barrier(comm);",
    "left": "if (rank == 1) exit(3); /* here */\nMPI_Barrier(comm);",
    "mpi_abort": "if (rank == 1) MPI_Abort(comm, 42); /* here */\nMPI_Barrier(comm);",
    "fatal": "MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);\n"
    "if (rank == 1) MPI_Send(&rank, 1, MPI_INT, 99, 7, comm); /* here */\n"
    "MPI_Barrier(comm);",
    "spinning": "MPI_Barrier(comm);\nif (rank == 1)\n"
    "    for (volatile long i = 0;; i++) /* spin */\n        ;",
}

# Marked objects are never freed.
LEAKS = {
    "Isend": "MPI_Request r; MPI_Isend(&rank, 1, MPI_INT, rank, 1, comm, &r); /* leak */\n"
    "MPI_Recv(&rank, 1, MPI_INT, rank, 1, comm, MPI_STATUS_IGNORE);",
    "Irecv": "MPI_Request r;\n"
    "static int value;\nMPI_Irecv(&value, 1, MPI_INT, rank, 1, comm, &r); /* leak */",
    "overwritten": """MPI_Request r;
             MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &r); /* leak */
             MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &r);
             MPI_Wait(&r, MPI_STATUS_IGNORE);""",
    "other": """MPI_Request one, other;
             MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &one);
             MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &other); /* leak */
             MPI_Wait(&one, MPI_STATUS_IGNORE);""",
    "freed": """MPI_Request r;
             static int value;
             MPI_Irecv(&value, 1, MPI_INT, rank, 1, comm, &r);
             MPI_Request q;
             MPI_Isend(&rank, 1, MPI_INT, rank, 1, comm, &q); /* leak */
             MPI_Request_free(&q);
             MPI_Wait(&r, MPI_STATUS_IGNORE);""",
    "Ibarrier": "MPI_Request r;\nMPI_Ibarrier(comm, &r); /* leak */",
    "Recv_init": "MPI_Request r; MPI_Recv_init(&rank, 1, MPI_INT, rank, 1, comm, &r); /* leak */",
    "started": """MPI_Request r;
             static int value;
             MPI_Recv_init(&value, 1, MPI_INT, rank, 1, comm, &r); /* leak */
             MPI_Start(&r); /* leak */""",
    "completed": """MPI_Request r;
             MPI_Send_init(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &r); /* leak */
             MPI_Start(&r);
             MPI_Wait(&r, MPI_STATUS_IGNORE);""",
    "Comm_dup": "MPI_Comm c;\nMPI_Comm_dup(comm, &c); /* leak */",
    "Comm_split": "MPI_Comm c;\nMPI_Comm_split(comm, rank % 2, 0, &c); /* leak */",
    "Type_commit": """MPI_Datatype t;
             MPI_Type_vector(2, 1, 2, MPI_INT, &t); /* leak */
             MPI_Type_commit(&t);""",
    "Type_dup": "MPI_Datatype t; MPI_Type_dup(MPI_INT, &t); /* leak */",
    "inner": """MPI_Datatype t, u;
             MPI_Type_contiguous(2, MPI_INT, &t); /* leak */
             MPI_Type_create_resized(t, 0, 64, &u);
             MPI_Type_free(&u);""",
}
NO_LEAKS = {
    "requests": """
    MPI_Request r[6];
    static int value;
    MPI_Irecv(&value, 1, MPI_INT, rank, 1, comm, &r[0]);
    MPI_Isend(&rank, 1, MPI_INT, rank, 1, comm, &r[1]);
    MPI_Ibarrier(comm, &r[2]);
    MPI_Waitall(3, r, MPI_STATUSES_IGNORE);
    MPI_Irecv(&value, 1, MPI_INT, rank, 1, comm, &r[0]);
    MPI_Cancel(&r[0]);
    MPI_Request_free(&r[0]);
    MPI_Irecv(&value, 1, MPI_INT, rank, 1, comm, &r[0]);
    MPI_Cancel(&r[0]);
    MPI_Wait(&r[0], MPI_STATUS_IGNORE);
    MPI_Send_init(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &r[0]);
    MPI_Start(&r[0]);
    MPI_Request copy = r[0];
    MPI_Wait(&copy, MPI_STATUS_IGNORE);
    MPI_Request_free(&copy);
    for (int i = 0; i < 6; i++)
        MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &r[i]);
    for (int i = 5; i >= 0; i--)
        MPI_Wait(&r[i], MPI_STATUS_IGNORE);""",
    "communicators": """
    MPI_Comm one, other, none;
    MPI_Comm_dup(comm, &one);
    MPI_Comm_split(one, rank, 0, &other);
    MPI_Comm_split(one, MPI_UNDEFINED, 0, &none);
    MPI_Comm_free(&one);
    MPI_Comm_disconnect(&other);""",
    "datatypes": """
    MPI_Datatype one, other;
    MPI_Type_contiguous(2, MPI_INT, &one);
    MPI_Type_dup(one, &other);
    MPI_Type_commit(&other);
    MPI_Type_free(&one);
    MPI_Type_free(&other);""",
    "cached": """
    static int key = MPI_KEYVAL_INVALID;
    static MPI_Comm cached;
    if (key == MPI_KEYVAL_INVALID)
        MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_cached, &key, NULL);
    MPI_Comm_dup(comm, &cached);
    MPI_Comm_set_attr(comm, key, &cached);""",
    "cached_more": """
    int key;
    static struct cached cached;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_more, &key, NULL);
    MPI_Isend(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &cached.started);
    MPI_Send_init(&rank, 1, MPI_INT, MPI_PROC_NULL, 1, comm, &cached.persistent);
    MPI_Type_dup(MPI_INT, &cached.datatype);
    MPI_Comm_set_attr(comm, key, &cached);""",
    "cached_on_own": """
    int key;
    static MPI_Comm cached, own;
    MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, free_cached, &key, NULL);
    MPI_Comm_dup(comm, &own);
    MPI_Comm_dup(own, &cached);
    MPI_Comm_set_attr(own, key, &cached);
    MPI_Comm_free(&own); /* calls back */
    MPI_Comm_free_keyval(&key);""",
}
MATCHED = {
    "Mrecv": """
    int data[4] = {0};
    MPI_Message message, second;
    MPI_Comm again;
    MPI_Comm_dup(comm, &again);
    if (rank == 0) {
        MPI_Request r[2];
        MPI_Isend(data, 3, MPI_INT, 1, 5, again, &r[0]);
        MPI_Isend(data, 2, MPI_INT, 1, 6, comm, &r[1]);
        MPI_Waitall(2, r, MPI_STATUSES_IGNORE);
    } else {
        int flag = 0;
        MPI_Request request;
        MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, again, &message, MPI_STATUS_IGNORE);
        while (!flag) MPI_Improbe(0, 6, comm, &flag, &second, MPI_STATUS_IGNORE);
        MPI_Mrecv(data, 4, MPI_INT, &message, MPI_STATUS_IGNORE);
        MPI_Imrecv(data, 4, MPI_INT, &second, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_free(&again);""",
}
BODIES = {
    **ERRORS,
    **CRASHES,
    **{f"leak_{name}": body for name, body in LEAKS.items()},
    **{f"no_leak_{name}": body for name, body in NO_LEAKS.items()},
    **MATCHED,
}
SOURCE = source_of(BODIES, PREAMBLE + HELPERS)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(SOURCE, tmp_path_factory.mktemp("failures")).library


@pytest.fixture
def record(library):
    """A function: the RankRecordings of a kernel that must complete."""

    def recorded(name, **case):
        result = run(library, name, **case)
        assert result.outcome == DONE, result.log
        return result.recording.ranks

    return recorded


@pytest.fixture
def crash(library):
    """A function: the Result of a kernel in which rank 1 must end early."""

    def crashed(name, **case):
        result = run(library, name, **case)
        assert result.outcome == CRASH, result.log
        return result

    return crashed


def name_of(record):
    return operations()[int(record["operation"])]


def lines(rank, sites):
    """(function, line) of call sites of this rank."""
    told = lines_of(rank.header["object"].decode(), tuple(int(site) for site in sites))
    assert {file for _, file, _ in told} <= {"cell"}, told
    return [(function, line) for function, _, line in told]


def failed(rank):
    """(call, error class, line) of each record with an error."""
    records = rank.records[rank.errors]
    return [
        (name_of(record), int(record["error"]), line)
        for record, (_, line) in zip(records, lines(rank, records["site"]), strict=True)
    ]


def marked(name, mark="/* here */"):
    """Number of the lines of allgather_NAME that hold `mark`."""
    texts = SOURCE.split("\n")
    begin = texts.index(f"MPILAB_ALLGATHER({name})")
    end = texts.index("}", begin)
    return [number for number in range(begin + 1, end + 1) if mark in texts[number - 1]]


# --- MPI errors


@pytest.mark.parametrize("strict", [False, True])
def test_a_message_that_is_too_long_is_told_with_where_it_came_from(record, strict):
    sender, receiver = record("truncated", strict=strict)
    assert failed(receiver) == [("MPI_Recv", ERR_TRUNCATE, *marked("truncated", "/* too small */"))]
    (truncated,) = receiver.records[receiver.errors]
    assert (truncated["got_peer"], truncated["got_tag"], truncated["got_bytes"]) == (0, 7, 32)
    assert (truncated["bytes"], truncated["communicator"]) == (
        16,
        sender.records[0]["communicator"],
    )
    assert failed(sender) == []


@pytest.mark.parametrize("end", ENDS)
def test_the_call_that_started_a_failed_request_has_its_error(record, end):
    _, receiver = record(f"truncated_{end}")
    started, other = receiver.records[:2]
    assert name_of(started) == "MPI_Irecv"
    assert (started["error"], started["got_peer"], started["got_tag"], started["got_bytes"]) == (
        ERR_TRUNCATE,
        0,
        7,
        32,
    )
    assert started["done_ns"] != 0
    assert (other["error"], other["got_bytes"], other["done_ns"] != 0) == (0, 4, True)
    # The call that detected it has an error as well: the same, or MPI_ERR_IN_STATUS.
    (call,) = {
        (name_of(record), int(record["error"])) for record in receiver.records[receiver.errors[1:]]
    }
    assert call[0] == f"MPI_{end}" and call[1] in (ERR_TRUNCATE, ERR_IN_STATUS)
    assert len(receiver.leaked) == 0


def test_a_message_that_was_too_long_is_not_left_over(library):
    recording = run(library, "truncated").recording
    (message,) = recording.messages
    assert (message["source"], message["dest"], message["receive_record"]) == (0, 1, 0)


def test_a_send_that_was_refused_is_no_message(library):
    result = run(library, "nobody")
    assert result.outcome == DONE
    assert len(result.recording.messages) == 0


def test_arguments_that_mpi_refuses_are_told_by_their_class(record):
    (line,) = marked("nobody", "/* to nobody */")
    for rank in record("nobody"):
        assert failed(rank) == [
            ("MPI_Send", ERR_RANK, line),
            ("MPI_Isend", ERR_TAG, line + 1),
            ("MPI_Bcast", ERR_ROOT, line + 2),
        ]
        to_nobody = rank.records[0]
        assert (to_nobody["peer"], to_nobody["got_peer"], to_nobody["members"]) == (NOBODY, 99, 2)


def test_mpi_is_neither_begun_nor_ended_by_a_kernel(record):
    (line,) = marked("begins_and_ends", "/* begins */")
    for rank in record("begins_and_ends"):
        assert failed(rank) == [
            ("MPI_Init", ERR_OTHER, line),
            ("MPI_Init_thread", ERR_OTHER, line + 1),
            ("MPI_Finalize", ERR_OTHER, line + 2),
        ]
        assert name_of(rank.records[-1]) == "MPI_Barrier" and not rank.records[-1]["error"]


def test_nobody_and_anybody_are_ranks_that_need_no_number(record):
    for rank in record("nobody_and_anybody"):
        assert [int(r["members"]) for r in rank.records] == [0, 0, 0]
        assert failed(rank) == []


def test_a_failing_call_that_is_not_recorded_gets_a_record_and_is_named(record):
    (line,) = marked("unwrapped", "/* no communicator */")
    for rank in record("unwrapped"):
        assert failed(rank) == [
            ("MPI_Other", ERR_COMM, line),
            ("MPI_Other", ERR_GROUP, line + 1),
        ]
        assert list(rank.records["count"][rank.errors]) == [300, 1]
        assert list(rank.errors) == [1, 2] and len(rank.records) == 4
        assert rank.header["unknown_call"] == b"MPI_Comm_rank"


def test_errors_on_other_communicators_are_no_end_of_the_job_either(record):
    for rank in record("elsewhere"):
        expected = [
            ("MPI_Send", ERR_RANK, *marked("elsewhere", "/* self */")),
            ("MPI_Send", ERR_RANK, *marked("elsewhere", "/* world */")),
            ("MPI_Send", ERR_RANK, *marked("elsewhere", "/* again */")),
            ("MPI_Barrier", ERR_COMM, *marked("elsewhere", "/* freed */")),
            ("MPI_Wait", ERR_REQUEST, *marked("elsewhere", "/* no request */")),
        ]
        assert failed(rank) == expected
        assert rank.header["unknown_call"] == b""


def test_null_handles_and_null_pointers_are_mpi_errors(record):
    for rank in record("nulls"):
        assert [call for call, _, _ in failed(rank)] == [
            "MPI_Sendrecv",
            "MPI_Sendrecv",
            "MPI_Type_free",
            "MPI_Start",
            "MPI_Request_free",
            "MPI_Waitall",
        ]
        assert len(rank.records) == len(rank.errors)
        assert rank.current is None


def test_a_kernel_may_handle_errors_itself(record):
    for rank in record("handled"):
        assert [(call, error) for call, error, _ in failed(rank)] == [("MPI_Send", ERR_RANK)]


# --- Crashes


@pytest.mark.parametrize(
    ("name", "number", "address"),
    [
        ("segfault", signal.SIGSEGV, 8),
        ("bus", signal.SIGBUS, None),
        ("trap", signal.SIGILL, None),
        ("breakpoint", signal.SIGTRAP, None),
        ("abort", signal.SIGABRT, None),
        ("freed", signal.SIGABRT, None),
        ("divided", signal.SIGFPE, None),
        ("buffer", signal.SIGSEGV, 4096),
        ("argument", signal.SIGSEGV, 0),
        ("jump", signal.SIGSEGV, 0),
        ("library", signal.SIGSEGV, 64),
        ("wild", signal.SIGSEGV, None),
    ],
)
@pytest.mark.parametrize("strict", [False, True])
def test_a_signal_is_told_with_the_line_of_the_kernel(crash, name, number, address, strict):
    result = crash(name, strict=strict)
    assert result.crashed == (1, number.name)
    rank = result.ranks[1]
    told, site, where = rank.crash
    assert told == number
    assert where == address
    assert lines(rank, [site]) == [(f"allgather_{name}", *marked(name))]
    assert not rank.finished
    assert result.ranks[0].crash is None


def test_a_crash_in_a_function_that_mpi_calls_is_told_there(crash):
    result = crash("operation")
    (rank,) = [rank for rank in result.ranks if rank.crash is not None][:1]
    line = line_of(SOURCE, "/* in the operation */")
    assert lines(rank, [rank.crash[1]]) == [("failing_operation", line)]
    assert name_of(rank.records[rank.current]) == "MPI_Allreduce"


def test_an_exhausted_stack_is_survived_for_long_enough(crash):
    result = crash("endless")
    assert result.crashed == (1, "SIGSEGV")
    ((function, line),) = lines(result.ranks[1], [result.ranks[1].crash[1]])
    assert function == "deep"
    assert line in range(line_of(SOURCE, "static int deep"), line_of(SOURCE, "/* deeper */") + 1)


def test_a_smashed_stack_does_not_hide_where_it_was_smashed(crash):
    result = crash("smashed")
    assert result.crashed == (1, "SIGSEGV")
    (place,) = lines(result.ranks[1], [result.ranks[1].crash[1]])
    assert place == ("smash", line_of(SOURCE, "/* smashed */"))


def test_a_call_of_exit_is_told_with_its_status_and_line(crash):
    result = crash("left")
    status, site = result.ranks[1].exited
    assert status == 3
    assert lines(result.ranks[1], [site]) == [("allgather_left", *marked("left"))]
    assert result.crashed == (1, "exit status 3")
    assert result.ranks[1].crash is None


def test_a_call_of_mpi_abort_is_told_with_its_code(crash):
    result = crash("mpi_abort")
    rank = result.ranks[1]
    aborted = rank.records[-1]
    assert (name_of(aborted), aborted["count"]) == ("MPI_Abort", 42)
    assert [line for _, line in lines(rank, [aborted["site"]])] == marked("mpi_abort")
    assert rank.exited is None


def test_the_end_by_a_fatal_error_is_not_taken_for_exit(crash):
    rank = crash("fatal").ranks[1]
    assert rank.exited is None
    assert name_of(rank.records[rank.current]) == "MPI_Send"


# --- Where a rank computes


def test_a_rank_that_computes_says_where(library):
    result = run(library, "spinning", work=0.5)
    assert result.outcome == TIME_OUT
    assert list(result.samples) == [1]
    (line,) = marked("spinning", "/* spin */")
    for function, told in lines(result.ranks[1], result.samples[1]):
        assert function == "allgather_spinning"
        assert told in (line, line + 1)


# --- Leaks


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", LEAKS)
def test_what_is_never_freed_is_told_where_it_was_made(record, name, strict):
    for rank in record(f"leak_{name}", strict=strict):
        told = [line for _, line in lines(rank, rank.records["site"][rank.leaked])]
        assert told == marked(f"leak_{name}", "/* leak */")


@pytest.mark.parametrize("name", NO_LEAKS)
def test_what_is_freed_is_no_leak(record, name):
    for rank in record(f"no_leak_{name}"):
        assert [name_of(r) for r in rank.records[rank.leaked]] == []
        assert rank.header["ended_ns"] >= rank.header["closed_ns"] > 0


def test_a_call_in_a_callback_does_not_end_the_call_around_it(record):
    for rank in record("no_leak_cached_on_own"):
        names = [name_of(r) for r in rank.records]
        assert names == ["MPI_Comm_dup"] * 2 + ["MPI_Comm_free", "MPI_Barrier", "MPI_Comm_free"]
        outer, barrier, inner = rank.records[2:]
        assert outer["begin_ns"] <= barrier["begin_ns"] <= inner["end_ns"] <= outer["end_ns"]
        assert rank.current is None


def test_leaks_of_one_case_are_not_those_of_the_next(library):
    cases = [Case("allgather", 2, 4)] * 2
    results = run_cases(library, "allgather_leak_Comm_dup", cases)
    for result in results:
        assert [len(rank.leaked) for rank in result.recording.ranks] == [1, 1]


# --- Matched probes


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("reversed", [False, True])
def test_the_receive_of_a_matched_message_knows_where_it_came_from(library, strict, reversed):
    result = run(library, "Mrecv", strict=strict, reversed=reversed)
    assert result.outcome == DONE, result.hang or result.detail
    receiver = result.recording.ranks[1]
    received = receiver.records[receiver.records["flags"] & RECEIVES != 0]
    assert [name_of(r) for r in received] == ["MPI_Mrecv", "MPI_Imrecv"]
    assert list(received["got_peer"]) == list(received["peer"]) == [0, 0]
    assert list(received["got_tag"]) == [5, 6]
    assert list(received["got_bytes"]) == [12, 8]
    messages = result.recording.messages
    assert sorted(messages["receive_record"]) == list(
        np.flatnonzero(receiver.records["flags"] & RECEIVES)
    )
