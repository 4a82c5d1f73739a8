"""What the ranks of a native run may ask of the operating system, tried in the real sandbox.

The library is built here: the checks that the grader makes of an answer refuse most of these calls
by name, and an answer that computes addresses needs no names.
"""

import pytest

from mpilab.cases.case import Case
from mpilab.diagnosis.model import CRASH
from mpilab.grading import referee
from mpilab.grading import sandbox as sandbox_module
from mpilab.grading.referee import REAL, Compiled, run
from mpilab.grading.sandbox import Bubblewrap, open_sandbox
from mpilab.judging.rubric import Exercise
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
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <unistd.h>
void *nothing(void *argument) { return argument; }
"""
KERNEL = """
int {name}(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{{
    {attack}
    return MPI_Bcast(buffer, count, datatype, root, comm);
}}
"""
LAST = Case("bcast", ranks=2, count=3, function="honest")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """{attack: Result} of a sandboxed run of all of them, between two honest cases."""
    kernels = {"honest": "", **ATTACKS}
    source = HEAD + "".join(KERNEL.format(name=name, attack=kernels[name]) for name in kernels)
    built = build(source, tmp_path_factory.mktemp("attacks"))
    library = referee.FILES[REAL][0]
    compiled = Compiled({}, {library: built.library.read_bytes()})
    exercise = Exercise("attacks", "", "kernel", items=(), function="honest", collective="bcast")
    cases = [Case("bcast", ranks=2, count=2, function=name) for name in kernels]
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


def test_a_system_that_cannot_confine_ranks_is_named_in_the_gradebook(monkeypatch):
    assert "native runs without" not in Bubblewrap("v1").description
    monkeypatch.setattr(sandbox_module, "not_confined", lambda: ("seccomp", "Landlock"))
    assert Bubblewrap("v1").description.endswith(
        "; native runs without seccomp; native runs without Landlock"
    )
