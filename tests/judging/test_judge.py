"""Faults of kernels are found and named; what cannot be judged is not marked."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
from c_kernels import PREAMBLE, build_kernels, run

from mpilab.cases.case import Case
from mpilab.cases.output import Output
from mpilab.diagnosis.model import COMPILE_ERROR, LEAK, MPI_ERROR, WRONG_RESULT, Diagnosis
from mpilab.judging.judge import (
    fail_all,
    first_wrong,
    for_student,
    judge_exercise,
    judge_item,
    plan,
    ungradable,
)
from mpilab.judging.rubric import Exercise, Item
from mpilab.judging.verdict import FAIL, PASS, UNGRADABLE
from mpilab.runners.result import CRASH, DEADLOCK, DONE, ERROR, SKIPPED, Result
from mpilab.trace.recording import Recording

RING = """
static int ring(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
                int recvcount, MPI_Datatype recvtype, MPI_Comm comm, int last_round)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int round = 1; round <= last_round; round++)
        MPI_Sendrecv(block(recvbuf, (rank - round + 1 + size) % size, recvcount, recvtype),
                     recvcount, recvtype, (rank + 1) % size, TAG,
                     block(recvbuf, (rank - round + size) % size, recvcount, recvtype),
                     recvcount, recvtype, (rank + size - 1) % size, TAG, comm, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}
#define GATHER(rounds) \\
    ring(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm, rounds)
#define BLOCK(i) ((char *)block(recvbuf, i, recvcount, recvtype))
"""

BODIES = {
    "right": "GATHER(size - 1);",
    "wrong_block": """GATHER(size - 1);
        if (rank == 1) memcpy(BLOCK(size - 1), BLOCK(0), BLOCK(1) - BLOCK(0));""",
    "off_by_one": """GATHER(size - 1);
        char first[4096];
        const long bytes = BLOCK(1) - BLOCK(0);
        memcpy(first, BLOCK(0), bytes);
        memmove(BLOCK(0), BLOCK(1), bytes * (size - 1));
        memcpy(BLOCK(size - 1), first, bytes);""",
    "holes": "GATHER(size - 1); BLOCK(0)[1] ^= 0x55;",
    "beyond": "GATHER(size - 1); if (rank == 2) *(int *)BLOCK(size) ^= 0x55555555;",
    "before": "GATHER(size - 1); if (rank == 0) BLOCK(0)[-1] ^= 0x55;",
    "sendbuf": "GATHER(size - 1); if (rank == 3) *(char *)sendbuf ^= 0x55;",
    "missing": "GATHER(size - 2);",
    "no_in_place": """GATHER(size - 1);
        if (sendbuf == MPI_IN_PLACE) memset(BLOCK(rank), 0, BLOCK(1) - BLOCK(0));""",
    "in_place_as_address": """MPI_Sendrecv(sendbuf, sendcount, sendtype, 0, TAG, BLOCK(rank),
            recvcount, recvtype, 0, TAG, MPI_COMM_SELF, MPI_STATUS_IGNORE);""",
    "world": """comm = MPI_COMM_WORLD;
        MPI_Comm_rank(comm, &rank);
        GATHER(size - 1);""",
    "error": "GATHER(size - 1); if (rank == 1) return MPI_ERR_OTHER;",
    "integer_division": "if (rank == 1) return recvcount / (size - 4);",
    "chatty": """GATHER(size - 1);
        for (int i = 0; i < 10001; i++)
            copy_local(&rank, 1, MPI_INT, &size, 1, MPI_INT);""",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("judge"), BODIES, PREAMBLE + RING)


@pytest.fixture
def verdict(library):
    """A function: the ItemVerdict on one kernel in one case on four ranks."""

    def judged(name, counted=(), **case):
        result = run(library, name, ranks=4, **case)
        item = Item("item", "An item", 5, (result.case,), counted)
        return judge_item(Exercise("x", "X", "kernel", (item,), "allgather", name), item, [result])

    return judged


ALL_PAIRS = (("rounds", "1"), ("messages", "P * (P - 1)"), ("bytes", "P * (P - 1) * m"))
THE_RING = (("rounds", "P - 1"), *ALL_PAIRS[1:])


@pytest.mark.parametrize("datatype", ["int", "struct", "mixed"])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_right_kernel_passes_without_a_word(verdict, datatype, in_place):
    said = verdict("right", THE_RING, datatype=datatype, in_place=in_place, reversed=True)
    assert (said.outcome, said.reason, said.awarded) == (PASS, "", 5)


@pytest.mark.parametrize(
    ("name", "case", "words"),
    [
        ("wrong_block", {}, r"wrong result on rank 1: block 3 is wrong\.$"),
        ("wrong_block", {"datatype": "contiguous"}, r"rank 1: block 3 is wrong\.$"),
        ("off_by_one", {"count": 7}, r"on ranks 0 to 3: 16 of 16 blocks are wrong; on rank 0"),
        ("holes", {"datatype": "struct"}, "the holes between the elements .*overwritten"),
        ("holes", {"datatype": "shifted"}, "the holes between the elements of the datatype"),
        ("beyond", {}, r"rank 2: memory outside the receive buffer was overwritten\.$"),
        ("beyond", {"count": 0}, "rank 2: memory outside the receive buffer was overwritten"),
        ("before", {}, "rank 0: memory outside the receive buffer was overwritten"),
        ("sendbuf", {}, r"rank 3: the send buffer was changed\.$"),
        ("missing", {}, r"on ranks 0 to 3: one block each was never written\.$"),
        ("no_in_place", {"in_place": True}, "MPI_IN_PLACE: wrong result on ranks 0 to 3: one"),
        ("in_place_as_address", {"in_place": True}, "MPI_Sendrecv returned MPI_ERR_TYPE in line"),
        ("world", {"reversed": True}, "ranks in reverse order: wrong result on ranks 0 to 3: 16"),
        ("error", {}, r"the kernel returned error code 16 \(MPI_ERR_OTHER\) on rank 1\.$"),
        ("integer_division", {}, r"rank 1 crashed with SIGFPE in line \d+: it divided by zero\.$"),
    ],
)
def test_a_fault_fails_and_is_named(verdict, name, case, words):
    said = verdict(name, **case)
    assert said.outcome == FAIL
    assert said.awarded == 0
    assert re.search(words, said.reason), said.reason
    assert said.reason.startswith(f"With 4 ranks, count {case.get('count', 4)}, datatype ")
    assert said.evidence["ranks"] == 4
    assert said.evidence["reproduce"].startswith(f'mpilab.run("{name}", ranks=4, count=')


@pytest.mark.parametrize("name", ["no_in_place", "world", "holes"])
def test_a_fault_that_a_case_cannot_show_passes_it(verdict, name):
    assert verdict(name).outcome == (FAIL if name == "holes" else PASS)


def test_a_right_result_by_another_algorithm_is_told_by_its_counts(verdict):
    said = verdict("right", ALL_PAIRS)
    assert said.outcome == FAIL
    assert "right, but by another algorithm: 3 rounds where the algorithm has 1." in said.reason
    assert "messages" not in said.reason  # their number is the same
    assert said.evidence["rounds counted"] == 3


def test_the_mirror_image_of_an_algorithm_is_told_by_where_its_messages_go(verdict):
    """Rounds, messages and bytes are the same."""
    assert verdict("right", (*THE_RING, ("to", "(rank + 1) % P"))).outcome == PASS
    said = verdict("right", (*THE_RING, ("to", "(rank - 1) % P")))
    assert said.outcome == FAIL
    assert said.reason.endswith(
        "by another algorithm: rank 0 sends to rank 1, where the algorithm has rank 3."
    )
    by_round = ("to", "(rank + min(round, 2)) % P")
    assert verdict("right", (by_round,)).reason.endswith(
        "algorithm: in round 2, rank 0 sends to rank 1, where the algorithm has rank 2."
    )


def test_a_recording_that_is_full_is_ungradable_where_something_is_counted(verdict):
    assert verdict("chatty").outcome == PASS
    said = verdict("chatty", THE_RING)
    assert said.outcome == UNGRADABLE
    assert said.awarded is None
    assert "the recording of the run is not complete" in said.reason


def test_the_reproducing_call_names_every_option(verdict):
    said = verdict("sendbuf", datatype="vector", reversed=True, strict=True, count=1)
    assert said.evidence["reproduce"] == (
        'mpilab.run("sendbuf", ranks=4, count=1, datatype="vector", reversed=True, strict=True)'
    )


# --- Without running anything

ONE, TWO, THREE = (Case("allgather", 2, count, record=False) for count in (1, 2, 3))


def exercise(**items):
    made = tuple(Item(name, name.upper(), 1, cases) for name, cases in items.items())
    return Exercise("x", "X", "kernel", made, "allgather", "f")


def done(case):
    outputs = [
        Output(rank, 0, after, case.regions(rank)[0], np.zeros((1, 2), np.int64))
        for rank, after in enumerate(case.expected())
    ]
    return Result(case, DONE, outputs=outputs)


def crashed(case, what="SIGSEGV"):
    return Result(case, CRASH, crashed=(0, what))


def outcomes(verdict):
    return [item.outcome for item in verdict.items]


def test_a_case_that_two_items_share_is_planned_once_for_both():
    cases, groups = plan(exercise(a=(ONE, TWO), b=(TWO, THREE)))
    assert cases == [ONE, TWO, THREE]
    assert groups == [("a",), ("a", "b"), ("b",)]


def test_cases_with_more_ranks_than_there_are_are_not_planned_nor_missed():
    large = Case("allgather", 8, 1)
    asked = exercise(a=(ONE, large), b=(large,))
    assert plan(asked, most_ranks=4) == ([ONE], [("a",)])
    verdict = judge_exercise(asked, [done(ONE)], most_ranks=4)
    assert outcomes(verdict) == [PASS, UNGRADABLE]
    assert "too few ranks" in verdict.items[1].reason


def test_a_case_without_a_result_is_never_a_pass():
    verdict = judge_exercise(exercise(a=(ONE, TWO)), [done(ONE)])
    assert outcomes(verdict) == [UNGRADABLE]
    assert "count 2" in verdict.items[0].reason


def test_a_failure_decides_although_a_skipped_case_comes_before_it():
    results = [Result(ONE, SKIPPED), done(TWO), crashed(THREE)]
    verdict = judge_exercise(exercise(a=(ONE, TWO, THREE)), results)
    assert outcomes(verdict) == [FAIL]
    assert "count 3" in verdict.items[0].reason


def test_a_failure_decides_although_another_case_could_not_be_run():
    results = [Result(ONE, ERROR, detail="no slots"), crashed(TWO)]
    assert outcomes(judge_exercise(exercise(a=(ONE, TWO)), results)) == [FAIL]


def test_a_skipped_case_without_a_failure_is_ungradable():
    results = [done(ONE), Result(TWO, SKIPPED)]
    verdict = judge_exercise(exercise(a=(ONE, TWO)), results)
    assert outcomes(verdict) == [UNGRADABLE]
    assert "skipped" in verdict.items[0].reason


def test_a_case_that_could_not_be_run_is_ungradable_with_its_reason():
    verdict = judge_exercise(exercise(a=(ONE,)), [Result(ONE, ERROR, detail="no slots today")])
    assert outcomes(verdict) == [UNGRADABLE]
    assert "no slots today" in verdict.items[0].reason
    assert verdict.awarded is None


def test_memory_that_the_machine_did_not_have_is_nobodys_fault():
    verdict = judge_exercise(exercise(a=(ONE,)), [crashed(ONE, "SIGBUS")])
    assert outcomes(verdict) == [UNGRADABLE]
    assert "full" in verdict.items[0].reason


def test_a_result_without_the_recording_that_is_counted_is_ungradable():
    item = Item("a", "A", 1, (ONE,), (("messages", "2"),))
    kernel = Exercise("x", "X", "kernel", (item,), "allgather", "f")
    assert outcomes(judge_exercise(kernel, [done(ONE)])) == [UNGRADABLE]
    empty = done(ONE)
    empty.recording = Recording([])  # of none of its ranks
    assert outcomes(judge_exercise(kernel, [empty])) == [UNGRADABLE]


def test_an_answer_that_is_not_run_fails_or_stays_open_as_a_whole():
    asked = exercise(a=(ONE,), b=(TWO,))
    assert outcomes(fail_all(asked, "blank")) == [FAIL, FAIL]
    assert fail_all(asked, "blank").awarded == 0
    assert outcomes(ungradable(asked, "disk full")) == [UNGRADABLE, UNGRADABLE]
    assert ungradable(asked, "disk full").awarded is None


def test_a_deadlock_is_told_with_its_table(library, tmp_path):
    hung = build_kernels(
        tmp_path, {"hung": "MPI_Recv(recvbuf, 1, MPI_INT, 1 - rank, 5, comm, MPI_STATUS_IGNORE);"}
    )
    result = run(hung, "hung")
    assert result.outcome == DEADLOCK
    item = Item("a", "A", 1, (result.case,))
    said = judge_item(Exercise("x", "X", "kernel", (item,)), item, [result])
    assert said.outcome == FAIL
    assert "deadlock: rank 0 waits for rank 1, and rank 1 for rank 0." in said.reason
    (diagnosis,) = said.diagnoses
    assert diagnosis.cycle == (0, 1) and diagnosis.pattern == "head-to-head receives"
    assert "MPI_Sendrecv" in diagnosis.hint
    (table,) = (each for each in diagnosis.tables if each.title == "What each rank is doing")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    assert [(row["rank"], row["call"], row["tag"]) for row in rows] == [
        (0, "MPI_Recv", 5),
        (1, "MPI_Recv", 5),
    ]


def test_what_the_sandbox_says_of_a_run_explains_and_does_not_decide(library):
    """Text from inside may be forged: it neither fails a correct answer nor passes a wrong one."""
    right, wrong = run(library, "right", ranks=4), run(library, "missing", ranks=4)
    item = Item("a", "A", 1, (right.case,))
    asked = Exercise("x", "X", "kernel", (item,))
    forged = Diagnosis(MPI_ERROR, "an error, forged", hint="forged")
    assert judge_item(asked, item, [replace(right, diagnosis=forged)]).outcome == PASS
    for words in (forged, Diagnosis(LEAK, "forged")):
        said = judge_item(asked, item, [replace(wrong, diagnosis=words)])
        assert said.outcome == FAIL
        assert "forged" not in str((said.reason, said.evidence, said.diagnoses))
    told = Diagnosis(WRONG_RESULT, "wrong result, told inside", hint="look at line 3")
    said = judge_item(asked, item, [replace(wrong, diagnosis=told)])
    assert said.reason.endswith("wrong result, told inside.")
    assert said.diagnoses == (told,)


def test_a_verdict_keeps_neither_the_graders_log_nor_hostile_amounts_of_text():
    printed = tuple((rank, "x" * 40_000) for rank in range(64))
    found = Diagnosis(CRASH, "rank 1 crashed", hint="Look.", printed=printed, log="/srv/grader")
    kept = for_student(found)
    assert kept.log == "" and (kept.headline, kept.hint) == (found.headline, found.hint)
    assert len(json.dumps(kept.to_json())) < 100_000
    short = Diagnosis(COMPILE_ERROR, "line 3: no such name", log="cell:3:1: error: ...")
    assert for_student(short) == short


def test_an_error_of_mpi_that_the_kernel_ignores_fails(tmp_path):
    ignores = build_kernels(
        tmp_path,
        {
            "ignores": """
        MPI_Send(recvbuf, 1, MPI_INT, size, 5, comm); /* no such rank */
        return MPI_Allgather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, comm);"""
        },
    )
    result = run(ignores, "ignores")
    item = Item("a", "A", 1, (result.case,))
    said = judge_item(Exercise("x", "X", "kernel", (item,)), item, [result])
    assert said.outcome == FAIL
    assert "MPI_Send returned MPI_ERR_RANK" in said.reason


def test_a_diagnosis_that_breaks_down_is_ungradable(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def broken(result):
        raise IndexError("record 7")

    monkeypatch.setattr("mpilab.judging.judge.diagnose", broken)
    verdict = judge_exercise(exercise(a=(ONE,)), [done(ONE)])
    assert outcomes(verdict) == [UNGRADABLE]
    (log,) = (tmp_path / "mpilab" / "logs").iterdir()
    assert "IndexError: record 7" in log.read_text()  # not for the student
    assert "IndexError" not in verdict.items[0].reason
    assert "its output could not be read" in verdict.items[0].reason


def test_a_leak_is_told_by_what_leaked_and_where_not_as_another_algorithm(monkeypatch):
    said = "the result is right, but rank 0 never completed a request started in line 27"
    leak = Diagnosis(LEAK, said)
    monkeypatch.setattr("mpilab.judging.judge.diagnose", lambda result: leak)
    monkeypatch.setattr("mpilab.judging.judge._need_recording", lambda result: None)
    monkeypatch.setattr("mpilab.judging.judge.counts", lambda recording, levels: {"leaks": 2})
    case = Case("bcast", 2, 4)
    item = Item("clean", "Clean", 1, cases=(case,), counted=(("leaks", "0"),))
    found = first_wrong(item, [Result(case, DONE)])
    assert (found.reason, found.diagnosis) == (f"{said}.", leak)
    assert list(found.evidence.values()) == [2]
    # The same beside what belongs to the algorithm, and is as it should be.
    counted = {"reads": 4, "leaks": 0, "views_left": 2}
    monkeypatch.setattr("mpilab.judging.judge.counts", lambda recording, levels: counted)
    formulas = (("reads", "4"), ("views_left", "0"), ("leaks", "0"))
    found = first_wrong(replace(item, counted=formulas), [Result(case, DONE)])
    assert (found.reason, found.diagnosis) == (f"{said}.", leak)
    assert found.evidence == {"ranks that left a view": 2}
    formulas = (("reads", "2"), *formulas[1:])
    found = first_wrong(replace(item, counted=formulas), [Result(case, DONE)])
    assert (
        "by another algorithm: 4 read requests where the algorithm has 2, 2 ranks" in found.reason
    )
