"""Every broken kernel is explained as its header says, in the engines and with mpirun, and leaves
nothing behind."""

import json
import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Lock

import psutil
import pytest
from corpus import ENGINES, FOLDER, MPIRUN, all_broken

from mpilab import Cluster
from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.compiler import diagnose_build, diagnose_warnings
from mpilab.diagnosis.model import (
    COMPILE_WARNING,
    CRASH,
    DEADLOCK,
    ERROR,
    KINDS,
    LEAK,
    MPI_ERROR,
    SANITIZER,
    TIME_OUT,
    TRAP,
    WRONG_RESULT,
)
from mpilab.errors import BuildError
from mpilab.kernels.build import KERNELS
from mpilab.runners.engines import run_cases
from mpilab.runners.result import DONE

CORPUS = all_broken()
RUNS = [(broken, backend) for broken in CORPUS for backend in broken.backends]
COMPILER_MESSAGES = [broken for broken in CORPUS if not broken.backends]
WORKERS = 2  # mpirun mostly waits for lack of progress: two at once cost hardly more than one

PATTERNS = {
    DEADLOCK: {
        "head-to-head receives",
        "sends that rely on buffering",
        "mismatched tags",
        "wrong root",
        "a collective that a rank never enters",
        "different collectives",
        "different counts",
        "a request never completed",
        "a loop that ends early",
        "a receive from the wrong rank",
        "different communicators",
        "a message to oneself",
        "a message left over",
        "polling in vain",
        "mismatched partners",
        "a missing send",
    },
    MPI_ERROR: {
        "message truncated",
        "a rank that does not exist",
        "invalid count",
        "invalid datatype",
        "invalid communicator",
        "invalid request",
        "invalid tag",
        "invalid root",
        "invalid buffer",
        "different counts",
        "MPI initialized or finalized in a kernel",
    },
    CRASH: {
        "memory that is not yours",
        "a negative size",
        "a null pointer",
        "heap corrupted",
        "stack exhausted",
        "division by zero",
        "an assertion failed",
        "exit() was called",
        "MPI_Abort was called",
        "a request that was never started",
        "MPI_IN_PLACE used as an address",
    },
    SANITIZER: {"out of bounds", "use after free", "undefined behavior"},
    WRONG_RESULT: {
        "wrong root",
        "a collective that a rank never enters",
        "blocks never written",
        "blocks in the wrong place",
        "own block missing",
        "outside the receive buffer",
        "send buffer changed",
        "extent ignored",
        "a request never completed",
        "a block sent too early",
        "the wrong block sent",
        "message never received",
        "part of the message missing",
        "parts in the wrong place",
        "a message forwarded too early",
        "the root's message changed",
        "the block of another rank",
        "a contribution missing",
        "a contribution counted twice",
        "contributions never combined",
        "recvbuf combined before it was set",
        "order of a non-commutative operation",
        "left too early",
        "header not skipped",
        "rows and columns swapped",
        "Fortran order",
        "part never read",
        "elements counted as bytes",
        "block-cyclic distribution ignored",
    },
    LEAK: {
        "request leaked",
        "communicator leaked",
        "datatype leaked",
        "view left on the file",
        "unexpected message",
    },
    TIME_OUT: {"an endless loop"},
}


RIGHT = Case("allgather", 4, 3)


@pytest.fixture(scope="module")
def library_of(tmp_path_factory):
    """A function: the shared object of a broken kernel, compiled once."""
    built, lock = {}, Lock()

    def library(broken):
        with lock:
            if broken.name not in built:
                directory = tmp_path_factory.mktemp(broken.name)
                built[broken.name] = broken.build(directory).library
        return built[broken.name]

    return library


@pytest.fixture(scope="module")
def engines(library_of):
    """A function that returns the Result of a broken kernel on the same cluster each time, which
    must be usable again afterwards."""
    with Cluster(4, progress=False) as cluster:

        def run(broken):
            result = broken.run(library_of(broken), cluster)
            (after,) = run_cases(cluster, KERNELS, "allgather_ring", [RIGHT])
            assert after.outcome == DONE, f"not usable again: {after.detail}"
            assert compare(RIGHT, after.outputs) == []
            return result

        yield run


@pytest.fixture(scope="module")
def mpirun(library_of, request):
    """A function that returns the Result of a broken kernel with mpirun. Those that the selected
    tests need are started in advance, while the engines run."""
    calls = [item.callspec.params for item in request.session.items if hasattr(item, "callspec")]
    wanted = [call["broken"] for call in calls if call.get("backend") == MPIRUN]
    with ThreadPoolExecutor(WORKERS) as pool:
        coming = {
            broken: pool.submit(lambda chosen=broken: chosen.run(library_of(chosen)))
            for broken in wanted
        }
        yield lambda broken: coming[broken].result()
        pool.shutdown(cancel_futures=True)


def explained(broken, found):
    """Compare a Diagnosis with the header of the file."""
    assert found is not None, "nothing was found to be wrong"
    said = f"{found.kind}: {found.pattern or '(no pattern)'}: {found.headline} | {found.hint}"
    assert found.kind == broken.kind, said
    if broken.pattern is not None:
        assert found.pattern == broken.pattern, said
    assert set(broken.ranks) <= set(found.ranks), (found.ranks, said)
    if len(broken.ranks) == 1:
        assert found.ranks[0] == broken.ranks[0], (found.ranks, said)
    if broken.lines:
        assert found.lines and found.lines[0] in broken.first_lines, (found.lines, said)
        assert set(broken.lines) <= set(found.lines), (found.lines, said)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "backend"), RUNS, ids=[f"{broken.name}-{backend}" for broken, backend in RUNS]
)
def test_a_run_that_fails_is_explained(broken, backend, request):
    found = diagnose(request.getfixturevalue(backend)(broken))
    explained(broken, found)
    assert found.ranks, "no rank was named"


@pytest.mark.parametrize(
    "broken", COMPILER_MESSAGES, ids=[broken.name for broken in COMPILER_MESSAGES]
)
def test_a_compiler_message_is_explained_at_its_line(broken, tmp_path):
    try:
        built = broken.build(tmp_path)
    except BuildError as error:
        found = diagnose_build(error, broken.source)
        if broken.kind == COMPILE_WARNING:  # gcc 14 rejects what gcc 12 warns about
            found = replace(found, kind=COMPILE_WARNING)
    else:
        found = diagnose_warnings(built.warnings, broken.source)
    explained(broken, found)


# One of each kind, and those that end differently from the rest of their kind.
SAMPLE = (
    "head_to_head_ring",
    "buffering_large",
    "heap_double_free",
    "exits",
    "mpi_abort",
    "communicator_freed",
    "request_leaked",
    "message_left_over",
    "endless_on_one_rank",
    "null_pointer_malloc",
)


@pytest.mark.slow
def test_nothing_is_left_behind_of_processes_shared_memory_and_files(leaves_nothing):
    marker = f"corpus-{uuid.uuid4().hex}"
    ran = subprocess.run(
        [sys.executable, str(FOLDER / "corpus.py"), *SAMPLE],
        env={**os.environ, "MPILAB_TEST_MARKER": marker},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stderr
    outcomes = json.loads(ran.stdout.splitlines()[-1])
    assert [len(outcomes[backend]) for backend in (ENGINES, MPIRUN)] == [len(SAMPLE)] * 2
    assert outcomes[ENGINES] == outcomes[MPIRUN]
    assert processes_with(marker) == []


def processes_with(marker):
    """Processes that have inherited the marker, as texts."""
    return [
        " ".join(process.info["cmdline"] or [process.info["name"]])
        for process in psutil.process_iter(["name", "cmdline", "environ"])
        if (process.info["environ"] or {}).get("MPILAB_TEST_MARKER") == marker
    ]


def test_the_corpus_covers_every_pattern_and_every_kind():
    assert len(CORPUS) >= 30
    patterns = {(broken.kind, broken.pattern) for broken in CORPUS}
    wanted = {(kind, pattern) for kind, names in PATTERNS.items() for pattern in names}
    assert wanted - patterns == set()
    # Only the jail traps: tests/kernels/test_jail.py.
    assert {kind for kind, pattern in patterns} == set(KINDS) - {ERROR, TRAP}


@pytest.mark.parametrize("broken", CORPUS, ids=[broken.name for broken in CORPUS])
def test_a_header_is_whole_and_names_what_there_is(broken):
    keys = {
        "Fault",
        "Collective",
        "Case",
        "Diagnosis",
        "Pattern",
        "Ranks",
        "Limit",
        "Build",
        "Backends",
    }
    assert set(broken.header) <= keys and broken.header["Fault"].endswith(".")
    assert broken.function.startswith(f"{broken.collective}_")
    algorithm = broken.function.removeprefix(f"{broken.collective}_")
    assert f"{broken.function}(" in broken.source or (
        f"MPILAB_{broken.collective.upper()}({algorithm})\n{{" in broken.source
    )
    assert broken.pattern is None or broken.pattern in PATTERNS[broken.kind]
    assert broken.lines or broken.kind == WRONG_RESULT
    assert broken.source.count("/* <-") == len(broken.first_lines)
    assert 15 <= len(broken.source.partition("*/")[2].splitlines()) <= 50
    if broken.backends:
        assert set(broken.backends) <= {ENGINES, MPIRUN}
        assert all(rank < broken.case.ranks for rank in broken.ranks)
        assert broken.case.ranks <= 4 or ENGINES not in broken.backends
