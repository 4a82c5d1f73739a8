"""Random calls of the jail's shim reach nothing outside, and crash neither the shim nor MPI."""

import sys

import pytest

from mpilab.kernels import jail
from mpilab.util.kit import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import fuzz_jail

SEEDS = (1, 2, 2040, 2063)


@pytest.fixture(scope="module")
def program():
    return fuzz_jail.build_program()


@pytest.fixture
def simulated_program(require_tool):
    require_tool("smpicc")
    return fuzz_jail.build_program(simulated=True)


@pytest.fixture(autouse=True)
def tools(require_tool):
    for name in jail.TOOLS:
        require_tool(name)


def test_every_call_that_the_jail_offers_is_made():
    table, simulated = fuzz_jail.table(), fuzz_jail.table(simulated=True)
    for name, kind in {**jail.offered(), **jail.WASI}.items():
        row = f"FUZZED{'' if kind.partition('>')[2] else '_VOID'}({name}, "
        assert row in table
        assert (row in simulated) == ("MPI_File_" not in name)


def test_calls_that_no_exercise_can_allow_are_left_out_if_asked():
    weights = {
        line.partition("(")[2].split(", ")[0]: int(line.split(", ")[4].rstrip(")"))
        for line in fuzz_jail.table(allowed=True).splitlines()
    }
    assert weights["MPI_Reduce_scatter_block"] == weights["MPI_Bcast"] == 0
    assert weights["MPI_Isend"] and weights["MPI_File_read_all"] and weights["mpilab_place"]


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_find_nothing(seed, ranks, program, tmp_path):
    sequence = fuzz_jail.Sequence(seed, ranks, 150)
    for made, ended in fuzz_jail.run_past_traps(sequence, tmp_path):
        assert ended.calls(), ended.error
        assert ended.why == "", fuzz_jail.report(made, ended)


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 3])
def test_random_calls_find_nothing_in_a_simulation(ranks, simulated_program, tmp_path):
    for seed in (1, 6, 106):
        sequence = fuzz_jail.Sequence(seed, ranks, 150, simulated=True)
        for made, ended in fuzz_jail.run_past_traps(sequence, tmp_path):
            assert ended.calls(), ended.error
            assert not ended.why or not fuzz_jail.is_real(ended), fuzz_jail.report(made, ended)


def test_calls_after_a_trap_are_made_in_a_run_without_it(program, tmp_path):
    """With this seed, the first run ends after few calls: a collective fails on one rank alone."""
    made = [run for _, run in fuzz_jail.run_past_traps(fuzz_jail.Sequence(5016, 1, 100), tmp_path)]
    assert made[0].ending != "end" and made[0].trapped()
    assert made[-1].ending == "end" and not made[-1].trapped()
    assert len(made[-1].calls()) > 4 * len(made[0].calls())


def _as_if(monkeypatch, found_if):
    """Runs of ten calls, of which 3 traps in a callback and ends the run."""

    def run(sequence, folder):
        made = [n for n in range(10) if n not in sequence.skipped]
        log = "".join(f"{n} MPI_Barrier(1) = 0\n" for n in made if n < 3 or 3 not in made)
        if 3 in made:
            nested = f"{fuzz_jail.NESTED} MPI_Type_free(0x1) ! MPI_Type_free: lent, in a callback"
            log += f"3 MPI_Comm_dup(1, 0x2)\n{nested}\nend\n"
        error = "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x12"
        is_found = 3 not in made and found_if(made)
        return fuzz_jail._judged(99 if is_found else 0, error * is_found, [log])

    monkeypatch.setattr(fuzz_jail, "run", run)


def test_what_a_trap_hides_is_found_without_it(tmp_path, monkeypatch):
    _as_if(monkeypatch, lambda made: 7 in made)
    (_, first), (sequence, last) = fuzz_jail.run_past_traps(fuzz_jail.Sequence(1, 1, 10), tmp_path)
    assert first.why == "" and first.trapped() == {3}
    assert "heap-buffer-overflow" in last.why and fuzz_jail.is_real(last)
    assert sequence.skipped == {3}


def test_a_fault_at_null_hides_no_other_report():
    log = f"1 MPI_Waitall(2, 0x8, 0x0)\n{fuzz_jail._FAULT_TRAPS}\n"
    fault = "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000{} (pc 0x55)\n"
    overrun = "==2==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x12\n"
    at_null = fuzz_jail._judged(99, fault.format("018"), [log])
    assert at_null.why == "" and at_null.unfinished() == {1}
    assert "SEGV" in fuzz_jail._judged(99, fault.format("55512345018"), [log]).why
    assert "heap-buffer-overflow" in fuzz_jail._judged(99, fault.format("018") + overrun, [log]).why


def test_a_fault_in_the_guard_zones_of_a_kernels_memory_is_a_trap():
    log = "# memory 0x7f0000000000\n1 MPI_Send(0x8)"
    fault = "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x{:012x} (pc 0x55)\n"
    for distance in (-(1 << 31), 0, (1 << 33) + (1 << 31) - 1):
        inside = fault.format(0x7F0000000000 + distance)
        assert fuzz_jail._judged(99, inside, [log]).why == ""
    for distance in (-(1 << 31) - 1, (1 << 33) + (1 << 31)):
        beyond = fault.format(0x7F0000000000 + distance)
        assert "SEGV" in fuzz_jail._judged(99, beyond, [log]).why
    assert "SEGV" in fuzz_jail._judged(99, fault.format(0x18), ["1 MPI_Send(0x8)"]).why


def test_simgrid_ends_a_run_without_a_finding_except_by_memory_that_it_has_freed():
    log = "# memory 0x7f0000000000\n1 MPI_Wait(0x8)"
    critical = "[n0:0:(1) 0.0] request.cpp:89: [root/CRITICAL] {}\nAborted\n"
    refused = fuzz_jail._judged(134, critical.format("Invalid operator"), [log])
    assert (refused.why, refused.ending, refused.unfinished()) == ("", fuzz_jail.GIVEN_UP, {1})
    freed = fuzz_jail._judged(134, critical.format("Whoops, wrong refcount"), [log])
    assert "refcount" in freed.why
    # What SimGrid does to ranks after it has found a deadlock is no finding.
    fault = "==1==ERROR: AddressSanitizer: SEGV on unknown address 0x000000000018 (pc 0x55)\n"
    waiting = fuzz_jail._judged(99, "Deadlock detected\n" + fault, [log])
    assert (waiting.why, waiting.ending, waiting.unfinished()) == ("", "blocked", {1})
    aborted = fuzz_jail._judged(99, "MPI_Abort was called, something\n" + fault, [log])
    assert (aborted.why, aborted.ending) == ("", fuzz_jail.GIVEN_UP)
    earlier = fuzz_jail._judged(99, fault + "Deadlock detected\n", [log])
    assert "SEGV" in earlier.why


def test_a_report_of_a_sanitizer_is_found_and_shortened(tmp_path, monkeypatch):
    """As if the fifth call had overrun a buffer, if the second was made before."""

    def run(sequence, folder):
        made = [n for n in range(10) if n not in sequence.skipped]
        log = "".join(f"{n} MPI_Barrier(1) = 0\n" for n in made)
        is_found = {2, 5} <= set(made)
        error = "==1==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x12" * is_found
        return fuzz_jail._judged(99 if is_found else 0, error, [log])

    monkeypatch.setattr(fuzz_jail, "run", run)
    sequence = fuzz_jail.Sequence(7, 1, 10)
    first = run(sequence, tmp_path)
    least, found = fuzz_jail.minimized(sequence, first, tmp_path, float("inf"))
    assert [number for number, _, _ in found.calls()] == [2, 5]
    assert "--seed 7 --ranks 1 --calls 10 --builds openmpi --skip 0-1,3-4,6-9" in fuzz_jail.report(
        least, found
    )
    assert fuzz_jail._from_ranges("0-1,3-4,6-9") == least.skipped
