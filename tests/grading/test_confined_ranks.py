"""What the ranks of a native run may ask of the operating system, tried in the real sandbox.

The library is built here: the checks that the grader makes of an answer refuse most of these calls
by name, and an answer that computes addresses needs no names.
"""

import socket
import struct
import subprocess

import numpy as np
import pytest

from mpilab.cases import data
from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.diagnosis.model import CRASH
from mpilab.grading import referee
from mpilab.grading import sandbox as sandbox_module
from mpilab.grading.referee import REAL, Compiled, run
from mpilab.grading.sandbox import Bubblewrap, open_sandbox
from mpilab.judging.rubric import Exercise
from mpilab.kernels import build as build_module
from mpilab.kernels.build import build
from mpilab.runners.result import DONE

# What each kernel does before its work; it returns 77 if a file was opened that it must not reach.
ATTACKS = {
    "forks": "if (fork() == 0) _exit(0);",
    "clones": "syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);",
    "runs_a_program": 'execl("/bin/true", "true", (char *)0);',
    "kills_mpirun": "kill(getppid(), SIGKILL);",
    "kills_everybody": "kill(-1, SIGKILL);",
    "traces_mpirun": "ptrace(PTRACE_ATTACH, getppid(), 0, 0);",
    "starts_a_thread": "pthread_t one; if (pthread_create(&one, 0, nothing, 0) == 0)"
    " pthread_join(one, 0); else return 78;",
    "reads_the_job": 'if (open("/lab/job.json", O_RDONLY) >= 0) return 77;',
    "reads_what_the_job_came_in": 'if (open("/proc/1/fd/0", O_RDONLY) >= 0) return 77;',
    "rewrites_a_result": 'if (open("/lab/results/0.0.out", O_RDWR) >= 0) return 77;',
    "finds_seeds_in_its_list_of_cases": "return finds_a_seed() ? 77 : MPI_SUCCESS;",
    "connects_again_for_seeds": 'return connects(getenv("MPILAB_SEEDS")) ? 77 : MPI_SUCCESS;',
    "writes_into_mpirun": 'char path[40]; sprintf(path, "/proc/%d/mem", getppid());'
    " if (open(path, O_RDWR) >= 0) return 77;",
}
STOPPED = {
    "forks": "it tried to start a process",
    "clones": "it tried to start a process",
    "runs_a_program": "it tried to run a program",
    "kills_mpirun": "it tried to send a signal to another process",
    "kills_everybody": "it tried to send a signal to another process",
    "traces_mpirun": "it tried to reach the memory of another process",
}
HEAD = """
#define _GNU_SOURCE
#include "mpilab.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>
void *nothing(void *argument) { return argument; }
int finds_a_seed(void)
{
    char text[1 << 16] = "", *path = text;
    int file = open("/proc/self/cmdline", O_RDONLY);
    if (read(file, text, sizeof text - 1) <= 0)
        return 1;
    for (int i = 0; i < 3; i++)
        path += strlen(path) + 1;
    file = open(path, O_RDONLY);
    text[read(file, text, sizeof text - 1)] = 0;
    return strstr(text, "seed=0") == NULL || strstr(text, "SEED") != NULL;
}
int connects(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    strcpy(address.sun_path, path);
    return connect(socket(AF_UNIX, SOCK_STREAM, 0), (void *)&address, sizeof address) == 0;
}
"""
KERNEL = """
int {name}(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{{
    {attack}
    return MPI_Bcast(buffer, count, datatype, root, comm);
}}
"""
SEED = 20261124
LAST = Case("bcast", ranks=2, count=3, seed=SEED, function="honest")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """{attack: Result} of a sandboxed run of all of them, between two honest cases."""
    kernels = {"honest": "", **ATTACKS}
    source = HEAD.replace("SEED", str(SEED)) + "".join(
        KERNEL.format(name=name, attack=kernels[name]) for name in kernels
    )
    built = build(source, tmp_path_factory.mktemp("attacks"))
    library = referee.FILES[REAL][0]
    compiled = Compiled({}, {library: built.library.read_bytes()})
    exercise = Exercise("attacks", "", "kernel", items=(), function="honest", collective="bcast")
    cases = [Case("bcast", ranks=2, count=2, seed=SEED, function=name) for name in kernels]
    plan = [*cases, LAST], [(str(number),) for number in range(len(cases) + 1)]
    tried = run(open_sandbox(slot=8), exercise, compiled, plan)
    return {
        result.case if result.case == LAST else result.case.function: result
        for result in tried.results
    }


@pytest.mark.parametrize("attack", STOPPED)
def test_a_rank_that_leaves_its_process_is_stopped_and_told_why(results, attack):
    result = results[attack]
    assert result.outcome == CRASH
    assert f": {STOPPED[attack]}, which graded answers may not do" in result.diagnosis.headline
    assert "in line " in result.diagnosis.headline


@pytest.mark.parametrize("attack", [name for name in ATTACKS if name not in STOPPED])
def test_a_rank_reaches_no_file_of_the_grader_and_keeps_its_threads(results, attack):
    assert results[attack].outcome == DONE
    assert {output.returned for output in results[attack].outputs} == {0}


def test_honest_cases_beside_attacks_are_judged_as_ever(results):
    for result in (results["honest"], results[LAST]):
        assert result.outcome == DONE and result.recording
        assert not compare(result.case, result.outputs)


class Seeds:
    """mpilab-seeds with two cases, 5 and 8, and connections of two ranks."""

    def __init__(self, folder):
        path = str(folder / "seeds")
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path)
            server.listen()
            self.process = subprocess.Popen(
                [build_module.need(build_module.SEEDS), str(server.fileno()), "2"],
                stdin=subprocess.PIPE,
                pass_fds=[server.fileno()],
            )
            self.process.stdin.write(f"5 {SEED}\n8 {SEED + 1}\n".encode())
            self.process.stdin.close()
            self.ranks = [socket.socket(socket.AF_UNIX) for _ in range(2)]
            for rank in self.ranks:
                rank.connect(path)

    def ask(self, connection, *, case=5, call=0, rank, stream=1, first=1, count=20_000):
        """The words that a rank gets; None if it is refused."""
        asking = self.ranks[connection]
        asking.sendall(struct.pack("=qqiiqq", case, call, rank, stream, first, count))
        got = b""
        while len(got) < 8 * count and (more := asking.recv(1 << 16)):
            got += more
        return np.frombuffer(got, np.uint64) if got else None


@pytest.fixture
def seeds(tmp_path):
    made = Seeds(tmp_path)
    yield made
    for rank in made.ranks:
        rank.close()
    assert made.process.wait(10) == 0


def test_a_rank_gets_its_own_contents_from_the_process_that_has_the_seeds(seeds):
    for rank in range(2):
        expected = data.words(SEED, [rank], 2, 20_000)[0]
        assert np.array_equal(seeds.ask(rank, rank=rank, stream=2), expected)
    later = seeds.ask(1, rank=1, case=8, first=11, count=10)
    assert np.array_equal(later, data.words(SEED + 1, [1], 1, 20)[0, 10:])


@pytest.mark.parametrize(
    "request_of",
    [
        {"rank": 1},  # of a second rank in the same case
        {"rank": 0, "case": 5},  # of an earlier case
        {"rank": 0, "case": 9},  # of no case
        {"rank": -1, "case": 8},
        {"rank": 0, "case": 8, "stream": 4},
        {"rank": 0, "case": 8, "count": -1},
    ],
)
def test_a_rank_gets_no_contents_of_others_and_none_of_earlier_cases(seeds, request_of):
    assert seeds.ask(0, rank=0, case=8) is not None
    assert seeds.ask(0, **{"case": 8, **request_of}) is None
    assert seeds.ask(1, rank=1, case=8) is not None  # others are not disturbed


def test_a_system_that_cannot_confine_ranks_is_named_in_the_gradebook(monkeypatch):
    assert "native runs without" not in Bubblewrap("v1").description
    monkeypatch.setattr(sandbox_module, "not_confined", lambda: ("seccomp", "Landlock"))
    assert Bubblewrap("v1").description.endswith(
        "; native runs without seccomp; native runs without Landlock"
    )
