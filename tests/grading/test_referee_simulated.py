"""The referee's two ways to run a kernel, simulated and on Open MPI: what only one of them finds,
and marks for simulated time."""

from dataclasses import replace

import pytest

from mpilab.grading.feedback import render
from mpilab.grading.referee import DETAILS, Referee
from mpilab.grading.sandbox import open_sandbox
from mpilab.judging import rubric
from mpilab.judging.verdict import SubmissionVerdict
from mpilab.trace.recording import Recording

RUBRIC = """
lab = "99-test"
[[exercise]]
id = "tree"
title = "A broadcast"
kind = "kernel"
collective = "bcast"
function = "bcast_tree"
allowed = ["point-to-point"]
[[exercise.item]]
id = "right"
title = "Right result"
points = 3
ranks = [1, 4]
simulated_ranks = [2, 5, 33]
counts = [7]
[[exercise.item]]
id = "large"
title = "Right result on many ranks"
points = 2
simulated_ranks = [80]
counts = [1]
[[exercise.item]]
id = "fast"
title = "At least twice as fast as one after the other"
points = 5
platforms = ["groups-4x4x1 rr"]
than = "bcast_linear"
faster = 2.0
counts = [65536]
messages = "P - 1"
"""
HEAD = """%%kernel bcast_tree
#include "mpilab.h"
int bcast_tree(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int relative = (rank - root + size) % size;
"""
BINOMIAL = """
    int bit = 1;
    for (; bit < size && !(relative & bit); bit <<= 1)
        ;
    if (relative)
        MPI_Recv(buffer, count, datatype, (rank - bit + size) % size, 1, comm, MPI_STATUS_IGNORE);
    for (bit >>= 1; bit; bit >>= 1)
        if (relative + bit < size)
            MPI_Send(buffer, count, datatype, (rank + bit) % size, 1, comm);
    return MPI_SUCCESS;
}
"""
LINEAR = """
    if (relative)
        return MPI_Recv(buffer, count, datatype, root, 1, comm, MPI_STATUS_IGNORE);
    for (int other = 1; other < size; other++)
        MPI_Send(buffer, count, datatype, (root + other) % size, 1, comm);
    return MPI_SUCCESS;
}
"""
NOTHING_ON = "    if (size == {}) return MPI_SUCCESS;\n"
# Students should not use these macros, but they make a difference: the first witness is
# WebAssembly, the third simulated.
IN_JAIL = "#ifdef __wasm__\n{}#endif\n"
NATIVELY = "#ifndef __wasm__\n{}#endif\n"
ON_OPEN_MPI = "#if !defined __wasm__ && !defined MPILAB_SIMULATED_H\n{}#endif\n"
NOTHING = "    return MPI_SUCCESS;\n"


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    path = tmp_path_factory.mktemp("rubric") / "rubric.toml"
    path.write_text(RUBRIC)
    return rubric.load(path, seed=5).exercise("tree")


@pytest.fixture
def judged(asked, tmp_path):
    def by_item(body):
        referee = Referee(open_sandbox(slot=9), tmp_path / "kept")
        verdict = referee.judge(asked, HEAD + body, blank=False)
        return {item.item: item for item in verdict.items}

    return by_item


def outcomes(items):
    return {name: item.outcome for name, item in items.items()}


def test_a_right_and_fast_kernel_gets_its_points(judged, tmp_path):
    assert outcomes(judged(BINOMIAL)) == {"right": "pass", "large": "pass", "fast": "pass"}
    assert not (tmp_path / "kept").exists()


# About a second of processor time of each rank, in bursts with a call of MPI after each: they are
# so short that no rank is found to compute without end on a slow machine, either.
BURNS = """
    for (int burst = 0; burst < 30; burst++) {
        for (volatile int i = 0; i < 20 * 1000 * 1000; i++)
            ;
        MPI_Sendrecv(0, 0, MPI_INT, rank, 2, 0, 0, MPI_INT, rank, 2, comm, MPI_STATUS_IGNORE);
    }
"""


def test_an_answer_that_burns_time_in_each_case_ends_when_its_own_is_used_up(asked):
    items = tuple(item for item in asked.items if item.id == "right")
    referee = Referee(open_sandbox(slot=9), reserve=2.0)
    asked = replace(asked, items=items)
    (item,) = referee.judge(asked, HEAD + BURNS + BINOMIAL, blank=False).items
    assert (item.outcome, item.awarded) == ("fail", 0)
    assert "the answer had used up the processor time that it has; a right one" in item.reason


def test_a_trap_in_the_jail_is_on_the_page_with_the_line_of_the_native_run(asked):
    source = HEAD + "    volatile int none = 0;\n    if (size > 2) return size / none;\n" + BINOMIAL
    line = source[: source.index("size / none")].count("\n") + 1
    verdict = Referee(open_sandbox(slot=9)).judge(asked, source, blank=False)
    page = render(SubmissionVerdict("anna", "02-allgather", (verdict,), ""))
    assert f"crashed with SIGFPE in line {line}: it divided by zero" in page
    assert "division by zero" in page and "Look at the divisor" in page


ROUND = """
    const int next = (rank + 1) % size, previous = (rank - 1 + size) % size;
    MPI_Sendrecv(0, 0, MPI_INT, next, 2, 0, 0, MPI_INT, previous, 2, comm, MPI_STATUS_IGNORE);
"""


def test_right_data_by_other_messages_in_isolation_are_ungradable(judged, tmp_path):
    items = judged(NATIVELY.format(ROUND) + BINOMIAL)
    assert outcomes(items) == {"right": "ungradable", "large": "pass", "fast": "pass"}
    assert (
        "right, but it sends other messages in isolation than on Open MPI" in items["right"].reason
    )
    assert (tmp_path / "kept" / "tree" / "right" / "first").is_dir()


FREES_A_SEND_TO_NOBODY = """
    MPI_Request sent;
    MPI_Isend(buffer, 0, datatype, MPI_PROC_NULL, 3, comm, &sent);
    MPI_Request_free(&sent);
"""


def test_a_send_to_nobody_that_is_freed_at_once_is_right(judged):
    """SMPI aborts on it."""
    items = judged(FREES_A_SEND_TO_NOBODY + BINOMIAL)
    assert items["right"].outcome == "pass"


def test_a_right_but_slow_kernel_is_told_both_times_and_how_to_see_them(judged):
    items = judged(LINEAR)
    assert outcomes(items) == {"right": "pass", "large": "pass", "fast": "fail"}
    assert items["fast"].reason == (
        "With 16 ranks, count 65536, datatype int, root 0, simulated on groups-4x4x1 rr: the "
        "result is right, but it takes 341.6 µs of simulated time, where bcast_linear takes "
        "315.8 µs: 0.92 times as fast, and 2 times is required."
    )
    assert items["fast"].evidence["reproduce"] == (
        'mpilab.simulated.run("bcast_tree", ranks=16, count=65536, platform="groups-4x4x1 rr")'
    )


def test_what_is_wrong_in_simulation_is_tried_on_open_mpi_before_it_costs_points(judged):
    items = judged(NOTHING_ON.format(33) + BINOMIAL)
    assert outcomes(items) == {"right": "fail", "large": "pass", "fast": "pass"}
    assert items["right"].reason.startswith("With 33 ranks, count 7")
    assert items["right"].evidence["reproduce"].startswith("mpilab.simulated.run(")


def test_more_ranks_than_a_machine_has_room_for_are_judged_by_simulation(judged):
    items = judged(NOTHING_ON.format(80) + BINOMIAL)
    assert outcomes(items) == {"right": "pass", "large": "fail", "fast": "pass"}


def test_a_stack_overrun_on_many_ranks_costs_only_the_items_that_have_them(judged):
    overrun = """
    if (size >= 52) {
        volatile char *const row = __builtin_alloca(64 << 20);
        for (long i = (64 << 20) - 1; i >= 0; i -= 1024)
            row[i] = 1;
    }
"""
    items = judged(overrun + BINOMIAL)
    assert outcomes(items) == {"right": "pass", "large": "fail", "fast": "pass"}
    assert items["large"].reason.startswith("With 80 ranks, count 1")


# In a trap, a tool ends the run: no data prove anything.
TRAP = "    if (size == 4) __builtin_trap();\n"


@pytest.mark.parametrize(
    ("only", "there", "not_there"),
    [
        (IN_JAIL.format(TRAP), "run on Open MPI", "run in isolation"),
        (IN_JAIL.format(NOTHING), "run on Open MPI", "run in isolation"),
        (ON_OPEN_MPI.format(TRAP), "run in isolation", "run on Open MPI"),
    ],
)
def test_a_difference_is_ungradable_and_the_files_of_both_are_kept(
    judged, tmp_path, only, there, not_there
):
    item = judged(only + BINOMIAL)["right"]
    assert item.outcome == "ungradable" and item.awarded is None
    assert f"right when {there}, but not when {not_there}: " in item.reason
    kept = tmp_path / "kept" / "tree" / "right"
    assert sorted(path.name for path in kept.iterdir()) == ["first", "real"]
    if NOTHING in only:  # a run that has ended early may leave no whole recording
        for way in kept.iterdir():
            ranks = len(list(way.glob("*.rec")))
            assert ranks in (2, 4)
            for rank in range(ranks):
                (way / f"{rank}.rec").rename(way / f"0.{rank}.rec")
            assert Recording.load(way, 0, ranks).complete


@pytest.mark.parametrize("only", [ON_OPEN_MPI.format(NOTHING), NATIVELY.format(TRAP)])
def test_wrong_data_on_open_mpi_or_a_crash_in_two_native_runs_decide(judged, only):
    item = judged(only + BINOMIAL)["right"]
    assert item.outcome == "fail"
    assert item.reason.startswith("With 4 ranks, count 7")


def test_what_only_clang_refuses_is_ungradable_with_its_line_for_the_instructor(judged):
    items = judged("    int twice(int n) { return 2 * n; }\n" + BINOMIAL)
    assert set(outcomes(items).values()) == {"ungradable"}
    assert items["right"].reason == "it could not be built in isolation"
    assert items["right"].evidence[DETAILS] == (
        "in isolation: clang: line 9 of cell: function definition is not allowed here"
    )


def test_what_simgrid_does_not_have_is_tried_on_open_mpi_alone(judged):
    cyclic = """
    MPI_Datatype unused;
    MPI_Type_create_darray(1, 0, 1, (int[]){4}, (int[]){MPI_DISTRIBUTE_CYCLIC}, (int[]){1},
                           (int[]){1}, MPI_ORDER_C, MPI_INT, &unused);
    MPI_Type_free(&unused);
"""
    items = judged(cyclic + BINOMIAL)
    assert outcomes(items) == {"right": "pass", "large": "ungradable", "fast": "ungradable"}
    assert items["right"].unconfirmed
    assert items["fast"].reason == (
        "SimGrid cannot simulate MPI_Type_create_darray, and only a simulation can time it."
    )
    items = judged(cyclic + NOTHING_ON.format(5) + BINOMIAL)
    assert items["right"].outcome == "fail"  # a case that otherwise is only simulated


def test_without_simgrid_open_mpi_decides_alone_and_what_needs_simulation_is_not_lost(
    judged, monkeypatch
):
    monkeypatch.setattr("mpilab.grading.referee.available", lambda: False)
    items = judged(BINOMIAL)
    assert outcomes(items) == {"right": "pass", "large": "ungradable", "fast": "ungradable"}
    assert [item.unconfirmed for item in items.values()] == [True, False, False]
    assert "SimGrid is not installed" in items["fast"].reason
    items = judged(NOTHING_ON.format(4) + BINOMIAL)
    assert (items["right"].outcome, items["right"].unconfirmed) == ("fail", True)


def test_what_is_simulated_is_not_marked_as_unconfirmed(judged):
    assert not any(item.unconfirmed for item in judged(BINOMIAL).values())
