"""Random calls of the jail's shim reach nothing outside, and crash neither the shim nor MPI."""

import sys

import pytest

from mpilab.kernels import jail
from mpilab.util.kit import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import fuzz_jail

# The seeds' last bit chooses the implementation of MPI-IO.
SEEDS = (1, 2, 2040, 2063)


@pytest.fixture(scope="module")
def program():
    return fuzz_jail.build_program()


@pytest.fixture(autouse=True)
def tools(require_tool):
    for name in jail.TOOLS:
        require_tool(name)


def test_every_call_that_the_jail_offers_is_made():
    roles = fuzz_jail.roles()
    for name in jail.offered():
        assert name in roles or not name.startswith("MPI_")
        assert f"FUZZED({name}, " in fuzz_jail.table() or not name.startswith("MPI_")


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_random_calls_find_nothing(seed, ranks, program, tmp_path):
    sequence = fuzz_jail.Sequence(seed, ranks, 150)
    ended = fuzz_jail.run(sequence, tmp_path)
    assert ended.calls(), ended.error
    assert ended.why == "", fuzz_jail.report(sequence, ended)


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
    assert "--seed 7 --ranks 1 --calls 10 --skip 0-1,3-4,6-9" in fuzz_jail.report(least, found)
    assert fuzz_jail._from_ranges("0-1,3-4,6-9") == least.skipped
