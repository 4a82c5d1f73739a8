"""Deadlocks are distinguished from time-outs and mere slowness, with the rank for which each
waits."""

import time

import numpy as np
import pytest
from c_kernels import build, line_of, run, source_of
from recordings_made_up import written

from mpilab.cases.case import Case
from mpilab.runners.hang import (
    BLOCKED,
    COMPUTING,
    FINISHED,
    NOT_BEGUN,
    POLLING,
    Hang,
    RankState,
    Watch,
    can_progress,
    never_began,
    read_states,
)
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DEADLOCK, DONE, SPENT, TIME_OUT, Result
from mpilab.runners.run import run_in_turn
from mpilab.trace.recording import (
    ANY,
    COLLECTIVE,
    HEADER,
    NONBLOCKING,
    POLLS,
    RECEIVES,
    RECORD,
    SENDS,
    SYNCHRONOUS,
    WAITS,
    RankRecording,
    operations,
)

BODIES = {
    "head_to_head": """
    int value = 0;
    if (rank == 0)
        MPI_Recv(&value, 1, MPI_INT, 1, 7, comm, MPI_STATUS_IGNORE); /* zero */
    else
        MPI_Recv(&value, 2, MPI_INT, 0, 8, comm, MPI_STATUS_IGNORE); /* one */""",
    "circle": """
    int value = 0;
    MPI_Request r[2];
    MPI_Irecv(&value, 1, MPI_INT, (rank + 1) % size, 7, comm, &r[0]);
    MPI_Irecv(&value, 1, MPI_INT, (rank + 2) % size, 7, comm, &r[1]);
    MPI_Waitall(2, r, MPI_STATUSES_IGNORE); /* waits */""",
    "leaves_early": """
    int value = 0;
    if (rank == 0) return MPI_SUCCESS;
    MPI_Recv(&value, 1, MPI_INT, 0, 7, comm, MPI_STATUS_IGNORE);""",
    "talks": """
    for (int value = 0;; value++)
        MPI_Sendrecv(&value, 1, MPI_INT, rank, 3, recvbuf, 1, MPI_INT, rank, 3, comm,
                     MPI_STATUS_IGNORE);""",
    "no_barrier": "if (rank != 1) MPI_Barrier(comm); "
    "else MPI_Recv(recvbuf, 1, MPI_INT, 0, 1, comm, MPI_STATUS_IGNORE);",
    "other_collective": "if (rank) MPI_Barrier(comm); else "
    "MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, recvbuf, 1, MPI_INT, comm);",
    "other_tag": """
    MPI_Request request;
    MPI_Irecv(recvbuf, 1, MPI_INT, 1 - rank, rank, comm, &request);
    MPI_Send(&rank, 1, MPI_INT, 1 - rank, rank, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);""",
    "never_sent": """
    MPI_Request request;
    MPI_Irecv(recvbuf, 1, MPI_INT, MPI_ANY_SOURCE, 3, comm, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);""",
    "polls": """
    int flag = 0;
    MPI_Request request;
    MPI_Irecv(recvbuf, 1, MPI_INT, 1 - rank, 3, comm, &request);
    while (!flag) MPI_Test(&request, &flag, MPI_STATUS_IGNORE); /* polls */""",
    "probes": """
    int flag = 0;
    while (!flag) MPI_Iprobe(1 - rank, 3, comm, &flag, MPI_STATUS_IGNORE);""",
    "endless": """
    if (rank == 1) for (volatile int i = 0;; i++);
    MPI_Recv(recvbuf, 1, MPI_INT, 1, 3, comm, MPI_STATUS_IGNORE);""",
    "slow": """
    if (rank == 0) usleep(2000000), MPI_Send(&rank, 1, MPI_INT, 1, 3, comm);
    else MPI_Recv(recvbuf, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);""",
    "slow_after_test": """
    int flag = 0;
    MPI_Request request;
    if (rank == 0) {
        MPI_Irecv(recvbuf, 1, MPI_INT, 1, 3, comm, &request);
        MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
        usleep(2500000);
        MPI_Send(&rank, 1, MPI_INT, 1, 3, comm);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(recvbuf, 1, MPI_INT, 0, 3, comm, MPI_STATUS_IGNORE);
        MPI_Send(&rank, 1, MPI_INT, 0, 3, comm);
    }""",
    "left_over": """
    static int large[1 << 20];
    MPI_Request request;
    MPI_Issend(large, 1 << 20, MPI_INT, 1 - rank, 3, comm, &request);""",
}
SOURCE = source_of(BODIES)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build(SOURCE, tmp_path_factory.mktemp("hang")).library


@pytest.fixture
def hung(library):
    """A function: the Hang of a kernel that must end in a deadlock."""

    def of(name, **case):
        begin = time.monotonic()
        result = run(library, name, limit=60.0, **case)
        assert result.outcome == DEADLOCK
        assert time.monotonic() - begin < 50  # before the limit, even on a busy machine
        return result.hang

    return of


def test_two_receives_head_to_head_are_told_with_cycle_and_lines(hung):
    hang = hung("head_to_head")
    zero, one = (line_of(SOURCE, f"/* {name} */") for name in ("zero", "one"))
    assert hang.cycle() == (0, 1)
    assert hang.describe() == (
        f"rank 0 is blocked in MPI_Recv from rank 1 (tag 7, 4 bytes), line {zero}; "
        f"rank 1 is blocked in MPI_Recv from rank 0 (tag 8, 8 bytes), line {one}. "
        "Cycle: 0 waits for 1 waits for 0"
    )
    assert hang.table()[1] == {
        "rank": 1,
        "state": BLOCKED,
        "call": "MPI_Recv",
        "peer": 0,
        "tag": 8,
        "bytes": 8,
        "line": one,
    }


def test_ranks_are_those_of_the_kernels_communicator(hung):
    assert hung("head_to_head", reversed=True).describe().count("rank 0 is blocked") == 1
    assert [state.tag for state in hung("head_to_head", reversed=True).states] == [7, 8]


def test_a_wait_for_requests_names_the_request_and_the_line_of_the_wait(hung):
    hang = hung("circle", ranks=4)
    assert {state.call for state in hang.states} == {"MPI_Waitall for MPI_Irecv"}
    assert {state.line for state in hang.states} == {line_of(SOURCE, "/* waits */")}
    assert [state.peer for state in hang.states] == [1, 2, 3, 0]
    assert hang.states[0].waits_for == (1, 2)
    assert hang.cycle() == (0, 2)


def test_a_rank_that_returned_is_not_stuck_and_not_in_the_sentence(hung):
    hang = hung("leaves_early")
    assert [state.state for state in hang.states] == [FINISHED, BLOCKED]
    assert hang.cycle() == ()
    assert "rank 0 had" not in hang.describe()
    assert hang.states[0].describe() == "rank 0 had returned from the kernel"


def test_a_collective_that_a_rank_does_not_enter_names_that_rank(hung):
    hang = hung("no_barrier", ranks=3)
    assert "rank 0 is blocked in MPI_Barrier (rank 1 has not called it)" in hang.describe()
    assert "rank 1 is blocked in MPI_Recv from rank 0" in hang.describe()
    assert hang.cycle() == (0, 1)


def test_collectives_that_do_not_fit_are_a_deadlock(hung):
    assert {state.state for state in hung("other_collective", ranks=3).states} == {BLOCKED}


def test_messages_with_other_tags_do_not_match(hung):
    hang = hung("other_tag")
    assert [state.tag for state in hang.states] == [0, 1]
    assert hang.cycle() == (0, 1)


def test_a_request_that_nobody_completes_is_a_deadlock(hung):
    hang = hung("never_sent")
    assert "MPI_Wait for MPI_Irecv from any rank (tag 3, 4 bytes)" in hang.describe()
    assert hang.table()[0]["peer"] == "any"
    assert hang.cycle() == ()


@pytest.mark.parametrize(("name", "call"), [("polls", "MPI_Test"), ("probes", "MPI_Iprobe")])
def test_polling_for_what_never_comes_is_a_deadlock_and_no_time_out(hung, name, call):
    hang = hung(name)
    assert [state.state for state in hang.states] == [POLLING] * 2
    assert hang.describe().startswith(f"rank 0 polls in {call}")


def test_a_poll_names_whom_it_waits_for(hung):
    hang = hung("polls")
    assert "rank 0 polls in MPI_Test for MPI_Irecv from rank 1 (tag 3, 4 bytes)" in hang.describe()
    assert hang.states[1].line == line_of(SOURCE, "/* polls */")
    assert hang.cycle() == (0, 1)


def test_an_endless_loop_is_a_time_out_that_names_the_rank(library):
    result = run(library, "endless", work=0.5)
    assert result.outcome == TIME_OUT
    assert result.hang.describe() == "rank 1 was computing, without any MPI call"
    assert result.hang.states[0].state == BLOCKED


def test_work_is_a_limit_in_processor_time(library):
    begin = time.monotonic()
    result = run_with_work(library, "endless", work=0.5)
    assert result.outcome == TIME_OUT
    assert "rank 1 was computing" in result.hang.describe()
    assert time.monotonic() - begin < 30


def test_calls_without_end_are_limited_in_processor_time(library):
    result = run_with_work(library, "talks", most_work=1.0)
    assert result.outcome == TIME_OUT
    assert {state.call for state in result.hang.states} & {"MPI_Sendrecv"}


class EndlessRun:
    """Stands for a run of cases that all take too long."""

    def __init__(self, cases):
        self.cases = cases

    def results(self, most_work):
        for number, case in self.cases.items():
            yield number, Result(case, TIME_OUT, detail=str(most_work))
            return


def test_the_processor_time_of_a_case_is_halved_after_each_time_out():
    cases = [Case("barrier", 2, 0, seed=seed) for seed in range(5)]
    results = run_in_turn(cases, [range(2), range(2, 5)], EndlessRun, most_work=10.0)
    assert [result.detail for result in results] == ["10.0", "5.0", "2.5", "2.0", "2.0"]


class CostlyRun:
    """Stands for a run of cases that end well, after 9 s of processor time each."""

    used = 0.0

    def __init__(self, cases):
        self.cases = cases

    def results(self, left_of_all):
        for number, case in self.cases.items():
            CostlyRun.used += 9.0
            yield number, Result(case, DONE)


def test_cases_that_are_left_when_the_processor_time_of_all_is_used_up_are_spent():
    cases = [Case("barrier", 2, 0, seed=seed) for seed in range(200)]
    told = []
    results = run_in_turn(
        cases,
        [range(100), range(100, 200)],
        CostlyRun,
        on_result=told.append,
        budget=20.0,
        used=lambda fresh: CostlyRun.used,
    )
    assert [result.outcome for result in results] == [DONE] * 3 + [SPENT] * 197
    assert CostlyRun.used == 27.0
    assert told == results


class HungRun:
    """Stands for a run of cases that compute without end, and are watched every half second."""

    used, given = 0.0, []

    def __init__(self, cases):
        self.cases = cases

    def results(self, most_work, left_of_all):
        number, case = next(iter(self.cases.items()))
        HungRun.given.append(most_work)
        begun = HungRun.used
        while HungRun.used < begun + most_work and left_of_all() > 0:
            HungRun.used += 0.5
        hang = Hang(TIME_OUT, (), is_spent=left_of_all() <= 0)
        yield number, Result(case, TIME_OUT, hang=hang)


def test_the_case_that_uses_up_the_processor_time_of_all_is_ended_then():
    cases = [Case("barrier", 2, 0, seed=seed) for seed in range(5)]
    options = {"most_work": 4.0, "budget": 7.0, "used": lambda fresh: HungRun.used}
    results = run_in_turn(cases, [range(5)], HungRun, **options)
    assert [result.outcome for result in results] == [TIME_OUT, TIME_OUT] + [SPENT] * 3
    assert (HungRun.given, HungRun.used) == ([4.0, 2.0, 2.0], 7.0)


def run_with_work(library, name, **limits):
    cases = [Case("allgather", 2, 4)]
    return run_cases(library, f"allgather_{name}", cases, limit=60.0, **limits)[0]


def test_who_waits_and_spins_does_not_use_up_the_processor_time_of_who_computes(library):
    assert run_with_work(library, "slow", work=0.5).outcome == DONE


@pytest.mark.parametrize("name", ["slow", "slow_after_test"])
def test_a_rank_that_is_slow_is_no_deadlock(library, name):
    begin = time.monotonic()
    assert run(library, name, standstill=0.5).outcome == DONE
    assert time.monotonic() - begin >= 2


def test_a_message_left_over_does_not_keep_the_case_from_ending(library):
    assert run(library, "left_over").outcome == DONE


# --- Without running anything


def records(*entries):
    """Records of one rank: (call, flags, peer, tag, more fields)."""
    numbers = {name: number for number, name in operations().items()}
    made = []
    for call, flags, peer, tag, more in entries:
        record = np.zeros(1, RECORD)[0]
        values = {
            "operation": numbers[call],
            "flags": flags,
            "communicator": 9,
            "peer": peer,
            "tag": tag,
            "waiter": -1,
            "got_peer": -1,
            "begin_ns": 1,
            **more,
        }
        for name, value in values.items():
            record[name] = value
        made.append(record)
    return made


@pytest.fixture
def ranks(tmp_path):
    """A function: RankRecordings of ranks with these records, each inside its last call."""

    def recorded(*of_ranks, inside=True):
        return [
            RankRecording(
                written(
                    tmp_path / f"0.{number}.rec",
                    number,
                    len(of_ranks),
                    made,
                    current=len(made) - 1 if inside else -1,
                )
            )
            for number, made in enumerate(of_ranks)
        ]

    return recorded


OPEN, OVER = {}, {"end_ns": 5, "done_ns": 5}


def recv(peer, tag=0, more=OPEN):
    return ("MPI_Recv", RECEIVES, peer, tag, more)


def send(peer, tag=0, more=OPEN):
    return ("MPI_Send", SENDS, peer, tag, more)


@pytest.mark.parametrize(
    ("zero", "one", "may"),
    [
        ([recv(1)], [recv(0)], False),
        ([recv(1)], [send(0)], True),
        ([recv(1)], [send(0, more=OVER)], True),
        ([recv(1)], [send(0, tag=1)], False),
        ([recv(ANY, ANY)], [send(0, tag=1)], True),
        ([recv(1, more=OVER | {"got_peer": 1}), recv(1)], [send(0, more=OVER)], False),
        ([send(1)], [send(0)], False),
        ([recv(-2)], [send(0)], False),
        ([("MPI_Probe", 0, ANY, 1, OPEN)], [send(0, 1, OVER)], True),
        ([("MPI_Probe", 0, 1, 2, OPEN)], [send(0, 1, OVER)], False),
        ([("MPI_Iprobe", POLLS, 1, 1, OVER)], [send(0, 1, OVER)], True),
        ([("MPI_Iprobe", 0, 1, 1, OVER)], [send(0, 1, OVER)], False),
        ([("MPI_Irecv", RECEIVES, 1, 0, OPEN), send(1)], [send(0)], True),
    ],
)
def test_what_may_still_come_about(ranks, zero, one, may):
    assert can_progress(ranks(records(*zero), records(*one))) == may


def meet(name, root=-1, members=2, sequence=0, more=OPEN):
    return (name, COLLECTIVE, root, 0, {"members": members, "sequence": sequence, **more})


@pytest.mark.parametrize(
    ("zero", "one", "may"),
    [
        (meet("MPI_Barrier"), meet("MPI_Barrier"), True),
        (meet("MPI_Barrier"), meet("MPI_Barrier", more=OVER), True),
        (meet("MPI_Barrier"), meet("MPI_Barrier", sequence=1), False),
        (meet("MPI_Barrier"), meet("MPI_Bcast"), False),
        (meet("MPI_Bcast", root=0), meet("MPI_Bcast", root=1), False),
        (meet("MPI_Barrier", members=3), meet("MPI_Barrier", members=3), False),
        (meet("MPI_Barrier", more=OVER), meet("MPI_Barrier", more=OVER), False),
    ],
)
def test_a_collective_goes_on_when_all_have_come_to_the_same_one(ranks, zero, one, may):
    assert can_progress(ranks(records(zero), records(one))) == may


def test_a_rank_that_stopped_asking_is_computing(ranks):
    (idle,) = ranks(records(("MPI_Test", POLLS, -1, -1, {"end_ns": 10**9})), inside=False)
    assert read_states([idle], now_ns=10**9 + 10**8)[0].state == POLLING
    late = read_states([idle], now_ns=10**9 + 10**10)[0]
    assert late.state == COMPUTING
    assert late.describe() == "rank 0 was computing after MPI_Test"


def test_a_rank_without_a_file_never_began(tmp_path):
    states = read_states([None, None])
    assert [state.state for state in states] == [NOT_BEGUN] * 2
    assert states[1].describe() == "rank 1 never started"
    assert never_began(states)
    watch = Watch(tmp_path, 0, 2, standstill=0.0, limit=0.0)
    assert watch.poll().kind == "time-out"


def test_a_recording_that_a_kernel_has_overwritten_counts_as_none(tmp_path):
    for rank in (0, 1):
        written(tmp_path / f"0.{rank}.rec", rank, 2)
    path = tmp_path / "0.1.rec"
    data = bytearray(path.read_bytes())
    begin = HEADER.fields["count"][1]
    data[begin : begin + 8] = (-1).to_bytes(8, "little", signed=True)
    path.write_bytes(data)
    watch = Watch(tmp_path, 0, 2, standstill=0.0, limit=60.0)
    assert watch.poll() is None
    assert watch.read()[1] is None


def test_the_limit_holds_also_where_all_ranks_are_finished(tmp_path):
    for rank in (0, 1):
        written(tmp_path / f"0.{rank}.rec", rank, 2, closed_ns=5)
    assert Watch(tmp_path, 0, 2, limit=60.0).poll() is None
    hang = Watch(tmp_path, 0, 2, limit=0.0).poll()
    assert hang.kind == "time-out"
    assert "every rank had returned from the kernel" in hang.describe()


def state(rank, *waits_for):
    return RankState(rank, BLOCKED, "MPI_Recv", waits_for=waits_for)


@pytest.mark.parametrize(
    ("waits", "cycle"),
    [
        ({0: (1,), 1: (0,)}, (0, 1)),
        ({0: (1,), 1: (2,), 2: (1,)}, (1, 2)),
        ({0: (3, 1), 1: (2,), 2: (0,), 3: ()}, (0, 1, 2)),
        ({0: (1,), 1: ()}, ()),
        ({0: (0,)}, (0,)),
    ],
)
def test_the_cycle_is_found_whichever_request_closes_it(waits, cycle):
    states = tuple(state(rank, *peers) for rank, peers in waits.items())
    assert Hang("deadlock", states).cycle() == cycle


def test_many_ranks_are_summed_up():
    words = Hang("deadlock", tuple(state(rank) for rank in range(20))).describe()
    assert words.count("is blocked in") == 6
    assert words.endswith("; and 14 more")


def requests(*calls, name="MPI_Waitall"):
    """Requests, and the wait for all of them that the rank is in."""
    flags = {
        "MPI_Irecv": RECEIVES | NONBLOCKING,
        "MPI_Isend": SENDS | NONBLOCKING,
        "MPI_Issend": SENDS | NONBLOCKING | SYNCHRONOUS,
    }
    begun = [
        (call, flags[call], peer, tag, {"end_ns": 2, "waiter": len(calls)})
        for call, peer, tag in calls
    ]
    return records(*begun, (name, WAITS, -1, -1, OPEN))


@pytest.mark.parametrize(
    ("zero", "one", "may"),
    [
        # All requests of a Waitall must complete, but only one of a Waitany.
        (requests(("MPI_Irecv", 1, 0), ("MPI_Irecv", 1, 5)), records(send(0)), True),
        (
            requests(("MPI_Irecv", 1, 0), ("MPI_Irecv", 1, 5)),
            records(send(0, more=OVER), recv(0)),
            False,
        ),
        (
            requests(("MPI_Irecv", 1, 0), ("MPI_Irecv", 1, 5), name="MPI_Waitany"),
            records(send(0, more=OVER), recv(0)),
            True,
        ),
        # A send that may be buffered may be complete; a synchronous one is not.
        (
            requests(("MPI_Irecv", 1, 0), ("MPI_Isend", 1, 5)),
            records(send(0, more=OVER), recv(0)),
            True,
        ),
        (
            requests(("MPI_Irecv", 1, 0), ("MPI_Issend", 1, 5)),
            records(send(0, more=OVER), recv(0)),
            False,
        ),
        (requests(("MPI_Isend", 1, 5)), records(recv(0)), False),
        # A message for a request for which no rank waits lets no rank continue.
        (
            records(("MPI_Irecv", RECEIVES, 1, 0, {"end_ns": 2}), recv(1, 7)),
            records(send(0, more=OVER), recv(0)),
            False,
        ),
        # The first receive takes the message; the second one gets nothing.
        (
            records(("MPI_Irecv", RECEIVES, 1, 0, {"end_ns": 2}), recv(1)),
            records(send(0, more=OVER), recv(0)),
            False,
        ),
    ],
)
def test_what_may_come_about_is_not_always_enough_to_go_on(ranks, zero, one, may):
    assert can_progress(ranks(zero, one)) == may


def test_a_collective_with_different_amounts_of_data_does_not_go_on(ranks):
    def bcast(size):
        return records(meet("MPI_Bcast", root=0, more={"bytes": size}))

    assert can_progress(ranks(bcast(4), bcast(4)))
    assert not can_progress(ranks(bcast(4), bcast(8)))


def test_the_request_that_nothing_comes_for_is_the_one_that_is_shown(ranks):
    waiting = requests(("MPI_Irecv", 1, 0), ("MPI_Irecv", 1, 5))
    shown = read_states(ranks(waiting, records(send(0, more=OVER), recv(0))))[0]
    assert (shown.call, shown.tag) == ("MPI_Waitall for MPI_Irecv", 5)


def test_a_probe_tells_for_whom_it_looks(ranks):
    (rank,) = ranks(records(("MPI_Probe", 0, ANY, 4, OPEN)))
    assert read_states([rank])[0].describe().endswith("MPI_Probe from any rank (tag 4)")
