"""What a kernel prints is kept by rank, and nothing else of the program changes."""

import os
import subprocess
import sys

import pytest
from c_kernels import build_kernels, run

from mpilab.cases.case import Case
from mpilab.cluster.engines import Cluster
from mpilab.kernels import build, openmpi
from mpilab.runners.engines import run_cases
from mpilab.runners.result import CRASH, DEADLOCK, DONE
from tests.conftest import WITHOUT_MPIRUN

PREAMBLE = (
    '#include "mpilab.h"\n#include <assert.h>\n#include <signal.h>\n#include <stdio.h>\n'
    "#include <stdlib.h>\n#include <unistd.h>\n"
)
BODIES = {
    "speaks": """
    printf("rank %d of %d\\n", rank, size);
    fprintf(stderr, "count %d\\n", recvcount);
    write(1, "written\\n", 8);
    system("echo from a child");""",
    "is_silent": "",
    "half_a_line": """
    printf("got ");
    putchar('h');
    printf("ere");
    if (rank == 1) raise(SIGKILL);
    MPI_Barrier(comm);""",
    "asserts": "assert(rank != 1); MPI_Barrier(comm);",
    "frees_twice": "char *volatile p = malloc(8); free(p); if (rank == 1) free(p);"
    " MPI_Barrier(comm);",
    "stands_still": 'printf("waiting\\n"); MPI_Recv(recvbuf, 1, MPI_INT, rank, 1, comm, NULL);',
    "exits": 'printf("bye"); if (rank == 1) exit(3); MPI_Barrier(comm);',
    "buffers": """
    static char room[1 << 16];
    setvbuf(stdout, room, _IOFBF, sizeof room);
    printf("buffered\\n");""",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("printed"), BODIES, PREAMBLE)


def test_every_way_to_print_is_kept_by_rank_and_in_order(library):
    result = run(library, "speaks", ranks=3)
    assert result.outcome == DONE
    assert result.printed == {
        rank: f"rank {rank} of 3\ncount 4\nwritten\nfrom a child\n" for rank in range(3)
    }
    assert "written" not in result.log


def test_ranks_are_those_of_the_kernels_communicator(library):
    result = run(library, "speaks", ranks=2, reversed=True)
    assert result.printed[0].startswith("rank 0 of 2")


def test_all_calls_of_a_case_are_kept(library):
    result = run(library, "speaks", warmup=1, repetitions=2)
    assert result.printed[1].count("rank 1 of 2") == 3


def test_a_case_that_leaves_no_files_keeps_nothing(library):
    assert run(library, "speaks", record=False, dump=False).printed == {}
    assert run(library, "speaks", record=False).printed != {}


def test_who_prints_nothing_is_not_listed(library):
    assert run(library, "is_silent").printed == {}


def test_words_before_a_crash_are_kept_also_without_a_newline(library):
    result = run(library, "half_a_line")
    assert result.outcome == CRASH
    assert result.printed == {0: "got here", 1: "got here"}


def test_words_before_exit_are_kept(library):
    assert run(library, "exits").printed[1].startswith("bye")


@pytest.mark.parametrize(
    ("name", "words"),
    [("asserts", "Assertion `rank != 1"), ("frees_twice", "free(): double free detected")],
)
def test_the_last_words_of_the_c_library_are_kept(library, name, words):
    result = run(library, name)
    assert result.outcome == CRASH
    assert words in result.printed[1]


def test_what_a_rank_said_before_it_hung_is_kept(library):
    result = run(library, "stands_still")
    assert result.outcome == DEADLOCK
    assert result.printed == {0: "waiting\n", 1: "waiting\n"}


def test_a_kernel_that_buffers_is_heard_too(library):
    result = run(library, "buffers", repetitions=2)
    assert result.printed == {0: "buffered\n" * 2, 1: "buffered\n" * 2}


# Calls the harness on one rank, as an engine does, from a program with its own stdout.
PROGRAM = """
import ctypes, os, sys
from mpi4py import MPI
harness, library, directory = sys.argv[1:]
harness = ctypes.CDLL(harness)
harness.mpilab_run_case.argtypes = [ctypes.c_void_p] + 4 * [ctypes.c_char_p]
comm = ctypes.c_void_p.from_address(MPI._addressof(MPI.COMM_SELF))
libc = ctypes.CDLL(None)
libc.printf(b"before\\n")
open_before = sorted(os.listdir("/proc/self/fd"))
for number in (0, 1):
    line = sys.stdin.readline().strip().encode()
    assert harness.mpilab_run_case(comm, line, library.encode(), b"allgather_speaks",
                                   directory.encode()) == 0
    libc.printf(b"between\\n")
assert sorted(os.listdir("/proc/self/fd")) == open_before, os.listdir("/proc/self/fd")
libc.printf(b"after\\n")
libc.fflush(None)
"""


@pytest.fixture
def program(library, tmp_path):
    """A function: run PROGRAM with stdout closed or not, return (what it printed, its files)."""

    def call(**more):
        case = Case("allgather", 1, 4)
        said = subprocess.run(
            [sys.executable, "-c", PROGRAM, str(build.HARNESS), str(library), str(tmp_path)],
            input=f"{case.line(0)}\n{case.line(1)}\n",
            env=openmpi.environment(1, **WITHOUT_MPIRUN),
            text=True,
            timeout=300,
            **more,
        )
        files = {path.name: path.read_text() for path in tmp_path.glob("*.txt")}
        return said, files

    return call


SPOKEN = "rank 0 of 1\ncount 4\nwritten\nfrom a child\n"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="needs /proc")
def test_the_program_around_keeps_its_own_stdout_and_descriptors(program):
    said, files = program(capture_output=True)
    assert said.returncode == 0, said.stderr
    assert said.stdout == "before\nbetween\nbetween\nafter\n"
    assert files == {"0.0.txt": SPOKEN, "1.0.txt": SPOKEN}


@pytest.mark.slow
def test_engines_keep_what_a_kernel_prints_and_their_own_stdout(library):
    def places():
        import os

        return [(os.fstat(number).st_dev, os.fstat(number).st_ino) for number in (1, 2)]

    with Cluster(2, progress=False) as cluster:
        before = cluster.apply(places)
        cases = [Case("allgather", 2, 4)] * 2
        results = run_cases(cluster, library, "allgather_speaks", cases)
        assert [result.outcome for result in results] == [DONE, DONE]
        for result in results:
            assert result.printed[1].startswith("rank 1 of 2\ncount 4\nwritten\n")
        assert cluster.apply(places) == before
        (result,) = run_cases(cluster, library, "allgather_half_a_line", cases[:1])
        assert result.outcome == CRASH
        assert result.printed[1].startswith("got here")
