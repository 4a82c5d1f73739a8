"""Of several causes, the first is reported and the others appear in notes; no recording makes it
raise."""

import json

import numpy as np
import pytest
from made_up import meet, over, poll, rank_of, recv, run_of, send, sites_are_lines, wait  # noqa: F401

from mpilab.cases.case import Case
from mpilab.cases.output import Output
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import KINDS, Diagnosis
from mpilab.runners.hang import Hang, RankState, read_states
from mpilab.runners.result import Result
from mpilab.trace.recording import HEADER, LEAKED, RECORD, WORLD

pytestmark = pytest.mark.usefixtures("sites_are_lines")
TRUNCATE = 15


def outputs(case, right=True, returned=0):
    after = case.expected()
    return [
        Output(
            rank,
            returned,
            after[rank] if right else case.regions(rank)[1],
            case.regions(rank)[0],
            np.zeros((1, 2), np.int64),
        )
        for rank in range(case.ranks)
    ]


CASE = Case("allgather", 2, 4)
FAILED = over(recv(1, line=9), error=TRUNCATE, got_bytes=40)
LEFT = over(meet("Comm_dup", line=7), flags=8 | LEAKED)


def done(*of_ranks, right=True, returned=0, **more):
    return run_of(
        *of_ranks,
        outcome="done",
        case=CASE,
        finished=(0, 1),
        outputs=outputs(CASE, right, returned),
        **more,
    )


def test_nothing_is_wrong_with_a_right_run():
    assert diagnose(done([], [])) is None


def test_what_was_found_elsewhere_is_taken_as_it_is():
    found = Diagnosis("crash", "somewhere else")
    assert diagnose(done([], [], right=False, diagnosis=found)) is found


@pytest.mark.parametrize(
    ("records", "right", "returned", "kind"),
    [
        ([FAILED, LEFT], False, 1, "mpi-error"),
        ([LEFT], False, 1, "mpi-error"),
        ([LEFT], False, 0, "wrong-result"),
        ([LEFT], True, 0, "leak"),
    ],
)
def test_the_first_cause_is_told_and_the_leak_besides(records, right, returned, kind):
    found = diagnose(done(records, [], right=right, returned=returned))
    assert found.kind == kind
    if kind != "leak":
        words = " ".join(found.notes)
        assert kind == "wrong-result" or "Besides: wrong result on ranks 0 and 1" in words
        assert "communicator" in words or kind == "mpi-error"


def test_a_wrong_result_tells_the_leak_in_a_note():
    found = diagnose(done([LEFT], [], right=False))
    assert found.notes == ("Besides, rank 0 probably never freed a communicator made in line 7.",)


def test_a_deadlock_after_an_error_is_told_as_the_error_with_what_all_ranks_do():
    found = diagnose(run_of([FAILED], [recv(0, line=4)], finished=[0]))
    assert (found.kind, found.pattern, found.ranks) == ("mpi-error", "message truncated", (0,))
    assert [table.title for table in found.tables][:2] == [
        "The call that failed",
        "What each rank is doing",
    ]
    assert "Then rank 1 waited forever." in found.notes


def test_a_call_that_failed_comes_before_the_crash_after_it():
    found = diagnose(
        run_of(
            [FAILED],
            [],
            outcome="crash",
            crashed=(0, "SIGSEGV"),
            headers={0: {"signal": 11, "crash_site": 12}},
        )
    )
    assert (found.kind, found.pattern, found.ranks) == ("mpi-error", "message truncated", (0,))
    assert found.lines == (9, 12)
    assert found.notes[0].startswith("Then rank 0 crashed with SIGSEGV in line 12")


def test_a_call_that_failed_comes_before_a_wild_address_that_a_sanitizer_met():
    report = "==7==ERROR: AddressSanitizer: SEGV on unknown address (pc 0x7f bp 0x60 sp 0x7f T0)\n"
    found = diagnose(
        run_of([FAILED], [], outcome="crash", crashed=(0, "exit status 66"), sanitizer={0: report})
    )
    assert (found.kind, found.pattern) == ("mpi-error", "message truncated")
    assert "memory that is not its own" in found.notes[0]
    assert found.log == report


def test_mpi_comm_world_in_place_of_comm_is_noted_beside_what_is_wrong():
    record = {**FAILED, "communicator": WORLD}
    assert diagnose(done([record], [])).notes[-1] == (
        "Line 9 uses MPI_COMM_WORLD instead of comm: ranks may be numbered differently there."
    )
    assert not any("WORLD" in note for note in diagnose(done([FAILED], [])).notes)


def test_a_report_of_a_sanitizer_comes_first():
    report = "cell:7:5: runtime error: signed integer overflow: 1 + 2 cannot be represented\n"
    found = diagnose(
        run_of([FAILED], [], outcome="crash", crashed=(0, "exit status 66"), sanitizer={0: report})
    )
    assert (found.kind, found.ranks) == ("sanitizer", (0,))
    assert "Before, MPI_Recv (line 9) had returned MPI_ERR_TRUNCATE on rank 0." in found.notes


def test_what_was_printed_and_the_log_are_kept():
    found = diagnose(done([LEFT], [], printed={1: "hello", 0: "well"}, log="noise"))
    assert found.printed == ((0, "well"), (1, "hello"))
    assert found.log == "noise"


@pytest.mark.parametrize("outcome", ["skipped", "error"])
def test_a_case_that_was_not_run_has_a_diagnosis_too(outcome):
    found = diagnose(Result(CASE, outcome, detail="no slots\nmore of it"))
    assert found.kind == "error"
    assert outcome == "skipped" or "no slots" in found.headline


def test_a_kernel_that_is_not_there_is_named():
    found = diagnose(Result(CASE, "error", detail="/tmp/x.so: no function allgather_mine in it"))
    assert found.headline == "there is no kernel allgather_mine"


def test_a_run_without_recordings_is_no_riddle():
    hang = Hang("deadlock", (RankState(0, "blocked", "MPI_Recv"),))
    found = diagnose(Result(Case("allgather", 3, 4, record=False), "deadlock", hang=hang))
    assert (found.kind, found.ranks) == ("deadlock", (0,))


def hostile(random, size):
    """The recording of a rank that wrote arbitrary data into it, even nearly correct data."""
    count = int(random.integers(0, 12))
    records = np.zeros(count, RECORD)
    for name in RECORD.names:
        limits = np.iinfo(RECORD[name])
        wild = random.integers(limits.min, limits.max, count, dtype=RECORD[name])
        near = random.integers(-2, size + 1, count).clip(limits.min).astype(RECORD[name])
        records[name] = np.where(random.integers(0, 12, count) == 0, wild, near)
    records["operation"] = random.integers(0, 110, count)
    records["flags"] = random.integers(0, 1 << 10, count)
    for name in ("error", "done_ns", "end_ns"):
        records[name] *= random.integers(0, 2)
    made = rank_of(0, size, [])
    made.records = records
    for name in HEADER.names:
        if HEADER[name].kind in "iu" and HEADER[name].shape == () and random.integers(0, 3) == 0:
            made.header[name] = (1, 11, np.iinfo(HEADER[name]).max)[random.integers(0, 3)]
    made.header["current"] = random.integers(-2, 14)
    made.header["unknown_call"] = random.bytes(20)
    return made


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("outcome", ["deadlock", "time-out", "crash", "done"])
def test_recordings_of_a_hostile_process_make_nothing_raise(outcome, seed):
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 5))
    ranks = [hostile(random, size) if random.integers(0, 8) else None for _ in range(size)]
    states = read_states(ranks)
    case = Case("allgather", size, 2)
    crashed = [None, (None, "exit status 1"), (0, "SIGSEGV"), (size + 3, "MPI_ERR_TRUNCATE")]
    found = diagnose(
        Result(
            case,
            outcome,
            ranks=ranks,
            states=states,
            hang=Hang(outcome, states),
            crashed=crashed[seed % 4],
            library="kernel.so",
            outputs=outputs(case, right=seed % 2),
            samples={0: [5, 0, 2**63]},
            printed={0: "\x00\x1b[31m"},
        )
    )
    if found is not None:
        assert found.kind in KINDS
        assert Diagnosis.from_json(json.loads(json.dumps(found.to_json()))).headline
