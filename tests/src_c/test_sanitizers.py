"""The kernels, the recorder and the harness, all three built with sanitizers.

Kernels alone, as a student builds them: tests/kernels/test_sanitized_kernels.py.
"""

import subprocess

import pytest
from c_kernels import build_kernels

from mpilab.algorithms.allgather import ALGORITHMS
from mpilab.cases.case import Case
from mpilab.cases.counts import PATTERNS
from mpilab.cases.output import compare
from mpilab.hosts.places import Place
from mpilab.kernels import build, openmpi
from mpilab.runners.mpirun import Mpirun, run_cases
from mpilab.runners.result import CRASH, DONE
from mpilab.util.kit import BUILD, ROOT

pytestmark = pytest.mark.slow

SANITIZED = BUILD / "sanitize"
REPORTS = ("ERROR: AddressSanitizer", "runtime error")
CASES = [
    Case("allgather", ranks, count, datatype, in_place, in_place, strict, snapshots=True)
    for ranks in (1, 2, 3, 5)
    for count, datatype, in_place, strict in (
        (0, "int", False, False),
        (1, "struct", False, True),
        (7, "shifted", True, False),
        (7, "mixed", False, False),
        (100, "vector", False, False),
        (1, "byte", True, True),
    )
]


@pytest.fixture(scope="module")
def sanitized():
    said = subprocess.run(
        ["make", "-C", str(ROOT / "src_c"), f"MPICC={openmpi.tool('mpicc')}", "sanitize"],
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stderr
    return SANITIZED


@pytest.fixture
def run(sanitized, monkeypatch):
    """A function: Results under the sanitizers, and what the ranks said."""
    monkeypatch.setattr(build, "HARNESS_PROGRAM", sanitized / "mpilab-harness")
    # Open MPI itself leaks; its leaks at exit are not ours.
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0:abort_on_error=1")
    monkeypatch.setenv("UBSAN_OPTIONS", "print_stacktrace=1")
    said = []
    end = Mpirun.end

    def read_first(self):
        said.append(self.said())
        end(self)

    monkeypatch.setattr(Mpirun, "end", read_first)

    def results(library, function, cases):
        came = run_cases(library, function, cases, limit=60.0)
        printed = (text for result in came for text in result.printed.values())
        return came, "".join([*said, *printed])

    return results


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_kernel_of_ours_runs_without_a_report(run, sanitized, algorithm):
    results, said = run(sanitized / "libmpilab_kernels.so", f"allgather_{algorithm}", CASES)
    for report in REPORTS:
        assert report not in said, said
    for result in results:
        assert result.outcome == DONE, f"{result.case.describe()}: {result.detail}"
        assert compare(result.case, result.outputs) == []


@pytest.mark.parametrize("algorithm", ["linear", "pairwise", "leaders", "gathervs", "multilane"])
def test_an_alltoallv_of_ours_runs_without_a_report(run, sanitized, algorithm):
    places = tuple(Place(name) for name in ("n1", "n2", "n1", "n1", "n3", "n2"))
    cases = [
        Case("alltoallv", 6, count, datatype, in_place, places=places, pattern=pattern, budget=800)
        for pattern in PATTERNS
        for in_place in (False, True)
        for count, datatype in ((0, "int"), (9, "struct"), (9, "mixed"))
    ]
    results, said = run(sanitized / "libmpilab_kernels.so", f"alltoallv_{algorithm}", cases)
    for report in REPORTS:
        assert report not in said, said
    for result in results:
        assert result.outcome == DONE, f"{result.case.describe()}: {result.detail}"
        assert compare(result.case, result.outputs) == []


def test_the_sanitizers_are_at_work(run, tmp_path):
    library = build_kernels(tmp_path, {"late": "free(recvbuf);"})
    (result,), said = run(library, "allgather_late", [Case("allgather", 1, 4)])
    assert result.outcome == CRASH
    assert "ERROR: AddressSanitizer" in said
