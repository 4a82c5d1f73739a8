"""The kernels through shared memory with mpirun: the correct bytes and nothing else, without a
message on one node, and as MPI's own on several."""

import re
import subprocess
import sys

import pytest
from test_collective_kernels import cases

from mpilab.cases.case import COLLECTIVES, Case
from mpilab.cases.output import compare, wrong_calls
from mpilab.errors import InputError
from mpilab.hosts.orders import places_of
from mpilab.kernels import openmpi
from mpilab.kernels.build import KERNELS
from mpilab.measure import sweep
from mpilab.measure.guard import choose
from mpilab.models.declared import kernels_of, shared_of
from mpilab.notebook.simulated import check_kernel
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.trace.recording import operations
from mpilab.util.kit import ROOT

RANKS = (1, 2, 3, 5, 8)
NAMES = [kernel for collective in COLLECTIVES for kernel in shared_of(collective)]
SLOT_BYTES = 16384

# Uses and frees communicators, and prints how much this process has mapped of shared memory after
# the second and after the last.
FREEING = """
import ctypes
from mpi4py import MPI
kernels = ctypes.CDLL(%r)

def mapped():
    with open("/proc/self/maps") as lines:
        return sum("mpi" in line or "shm" in line or "win" in line for line in lines)

seen = []
for _ in range(20):
    comm = MPI.COMM_WORLD.Dup()
    handle = ctypes.c_void_p.from_address(MPI._addressof(comm))
    assert kernels.barrier_shared(handle) == 0
    comm.Free()
    seen.append(mapped())
if MPI.COMM_WORLD.rank == 0:
    print(seen[1], seen[-1])
"""


def check(results):
    for result in results:
        case = result.case.describe()
        assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
        assert {output.returned for output in result.outputs} == {0}, case
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], case


def long_cases(function, ranks):
    """Messages that fill more slots than there are, to the byte and beyond, from several roots."""
    collective = function.partition("_")[0]
    about = COLLECTIVES[collective]
    if not about.has_blocks:
        return []
    last = ranks - 1 if about.is_rooted else 0
    return [
        Case(collective, ranks, count, "int", root=root, function=function, record=False)
        for count in (SLOT_BYTES // 4, 6 * SLOT_BYTES // 4, 6 * SLOT_BYTES // 4 + 1)
        for root in sorted({0, last})
    ]


def test_there_is_one_for_each_collective_but_alltoallv_and_read():
    assert {name.partition("_")[0] for name in NAMES} == set(COLLECTIVES) - {"alltoallv", "read"}


def test_they_call_no_kernel_that_a_handout_may_lack():
    for file in (ROOT / "src_c" / "shared").glob("*.c"):
        called = re.findall(r"\b(?:{})_\w+\(".format("|".join(COLLECTIVES)), file.read_text())
        assert called == [], file.name


@pytest.mark.parametrize("ranks", RANKS)
def test_every_rank_ends_with_the_right_bytes_and_sends_no_message(ranks):
    wanted = [case for name in NAMES for case in (*cases(name, ranks), *long_cases(name, ranks))]
    results = run_cases(KERNELS, NAMES[0], wanted, limit=60.0)
    assert len(results) == len(wanted)
    check(results)
    dense = ("int", "byte", "double")
    for result in results:
        if result.recording is not None and result.case.datatype in dense:
            assert len(result.recording.messages) == 0, result.case.describe()


@pytest.mark.parametrize("ranks", [2, 5])
@pytest.mark.parametrize("sequence", ["again", "duplicate", "parts", "roots"])
def test_calls_in_a_row_and_on_several_communicators_keep_apart(ranks, sequence):
    wanted = [
        Case(
            name.partition("_")[0],
            ranks,
            5000 if COLLECTIVES[name.partition("_")[0]].has_blocks else 0,
            sequence=sequence,
            function=name,
        )
        for name in NAMES
        if sequence != "roots" or COLLECTIVES[name.partition("_")[0]].is_rooted
    ]
    check(run_cases(KERNELS, NAMES[0], wanted, limit=60.0))


def test_every_call_of_many_has_its_own_data():
    """Timed calls, each with fresh contents: the slots are overwritten many times."""
    wanted = [
        Case(
            name.partition("_")[0],
            4,
            10000,
            function=name,
            record=False,
            dump=False,
            repetitions=50,
            fresh=True,
        )
        for name in NAMES
        if name != "barrier_shared"
    ]
    results = run_cases(KERNELS, NAMES[0], wanted, limit=60.0)
    for result in results:
        assert result.outcome == DONE and wrong_calls(result.case, result.outputs) == {}


def test_on_several_nodes_each_is_mpis_own():
    places = places_of("1x2x2 rr")
    wanted = [
        Case(
            kernel.partition("_")[0],
            4,
            100 if COLLECTIVES[kernel.partition("_")[0]].has_blocks else 0,
            places=places,
            function=kernel,
        )
        for kernel in NAMES
    ]
    results = run_cases(KERNELS, NAMES[0], wanted, limit=60.0)
    check(results)
    names = operations()
    for result in results:
        for rank in result.recording.ranks:
            made = {names[code] for code in rank.records["operation"]}
            own = f"MPI_{result.case.collective.capitalize()}"
            assert own in made and not made & {"MPI_Send", "MPI_Isend"}, (own, made)


def test_the_memory_is_freed_with_its_communicator():
    command = [openmpi.tool("mpirun"), "-n", "2", sys.executable, "-c", FREEING % str(KERNELS)]
    ran = subprocess.run(
        command, env=openmpi.environment(2), capture_output=True, text=True, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    second, last = map(int, ran.stdout.split())
    assert last == second > 0


def test_they_are_swept_by_name_and_belong_to_no_group():
    group, _ = choose("bcast", "ours")
    assert "ours:shared" not in map(str, group) and "bcast_shared" not in kernels_of("bcast")
    with pytest.raises(InputError, match="there is no such alltoallv"):
        choose("alltoallv", "ours:shared")
    for collective in ("bcast", "barrier"):
        report = sweep.Report()
        table = sweep.sweep(
            collective,
            ranks=[2],
            sizes=[8],
            algorithms="ours:shared,openmpi:default",
            repetitions=20,
            report=report,
            progress=False,
        )
        assert report.warnings() == []
        assert set(table["algorithm"]) == {"shared", "default"}


def test_they_are_not_simulated():
    with pytest.raises(InputError, match="bcast_shared is not simulated: it sends no messages"):
        check_kernel("bcast_shared")
