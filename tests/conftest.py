"""Fixtures for all tests. Nothing heavy here: this file is imported for each run."""

import fcntl
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import pytest
import thorough
from xdist.scheduler import LoadFileScheduling

# Files that take longest, longest first: a worker that began one of them last would delay the end
# for all others. Tests that run alone come before them, when no worker has to wait.
LONGEST = (
    "fresh/test_container.py",
    "fresh/test_fresh_systems.py",
    "hostile/test_hostile.py",
    "labs/test_rubrics.py",
    "labs/test_every_lab.py",
    "grading/test_killed.py",
    "grading/test_grade.py",
    "broken/test_corpus.py",
    "kernels/test_jail_same.py",
    "slurm/test_slurm_jobs.py",
    "browser/test_jupyterhub.py",
    "judging/test_transfers.py",
    "browser/test_failures.py",
    "src_c/test_format.py",
    "src_c/test_sanitizers.py",
    "browser/test_site.py",
    "course/test_nbgrader_course.py",
    "course/test_export.py",
    "browser/test_lab_02.py",
    "cluster/test_engines.py",
    "cluster/test_cluster_on_hosts_life.py",
    "test_adding_an_algorithm.py",
    "test_adding_an_exercise.py",
    "test_kit_anywhere.py",
    "test_split.py",
)
TESTS = Path(__file__).parent
# No thorough test begins after this time, in seconds since the epoch: .ci/run has to end.
LAST_BEGIN = float(os.environ.get("MPILAB_LAST_BEGIN", "inf"))
TOO_LATE = "the time that CI has was up"

# The lock file that this worker holds while a test runs, and between two that are `alone`.
_held = []


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items):
    for item in items:
        if thorough.is_named(item.nodeid):
            item.add_marker("thorough")
    place = {TESTS / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


class OneWorkerForAFileOrALab(LoadFileScheduling):
    """The tests of a file run in one worker, which shares their fixtures. In labs/, however, the
    tests of each lab run in one worker, since a lab takes as long as many a file; so do those of a
    demo on a fresh system."""

    def _split_scope(self, nodeid):
        file, _, name = nodeid.partition("::")
        if file == "tests/fresh/test_fresh_systems.py":
            return f"{file}{name[name.find('[') :]}" if "[" in name else nodeid
        if not file.startswith("tests/labs/"):
            return file
        # A test of all labs ends in [03-rank-mapping]; test_03_rank_mapping.py is about that one.
        of_all = re.search(r"\[(\d\d)-[\w-]+\]$", name)
        of_one = re.search(r"/test_(\d\d)_\w+\.py$", file)
        lab = of_all or of_one
        # Proving a rubric and running a lab have nothing in common.
        return f"{file if 'rubrics' in file else 'tests/labs'}[{lab[1]}]" if lab else file


@pytest.hookimpl(optionalhook=True)  # there are runs without xdist
def pytest_xdist_make_scheduler(config, log):
    if config.getvalue("dist") == "loadfile":
        return OneWorkerForAFileOrALab(config, log)
    return None


def pytest_terminal_summary(terminalreporter, config):
    if config.option.markexpr == thorough.LEFT_OUT:
        terminalreporter.write_line(
            "The thorough tests were left out: 'make test-all' runs them, and only them."
        )
    skipped = terminalreporter.stats.get("skipped", ())
    late = [each.nodeid for each in skipped if TOO_LATE in str(each.longrepr)]
    if late:
        files = ", ".join(sorted({nodeid.partition("::")[0] for nodeid in late}))
        count = f"{len(late)} test{'s' * (len(late) > 1)}"
        terminalreporter.write_line(f"NOT TESTED: {TOO_LATE} before {count} began, of {files}")


@pytest.hookimpl(tryfirst=True)  # before fixtures
def pytest_runtest_setup(item):
    if time.time() > LAST_BEGIN and item.get_closest_marker("thorough"):
        skip(TOO_LATE, owed=False)


def is_alone(item):
    return item is not None and item.get_closest_marker("alone") is not None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """If several workers run tests at once, a test marked `alone` waits until no other test runs,
    and no other begins until it, and any `alone` tests that follow it in its file, have ended.

    It wraps the whole test, because what a module's fixture starts (a cluster) begins before any
    fixture of the test itself, and ends after it.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    if not _held:
        _held.append(lock(item.config.cache.mkdir("alone"), is_alone(item)))
    try:
        return (yield)
    finally:
        if not (is_alone(item) and is_alone(nextitem) and nextitem.path == item.path):
            _held.pop().close()


def lock(folder, exclusive):
    """The open file whose closing ends the lock.

    A lock of this kind (lockf) belongs to the process and ends with it. One of the other kind
    (flock) would survive in a process that a test forked, as long as that runs.
    """
    # A worker that waits for the second lock keeps the first, so the others cannot overtake it
    # forever.
    with open(folder / "turn.lock", "a+") as turn:
        fcntl.lockf(turn, fcntl.LOCK_EX)
        running = open(folder / "running.lock", "a+")  # noqa: SIM115 (closed where the test ends)
        fcntl.lockf(running, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
    return running


def skip(why, owed=True):
    """Skip the test; under CI=true, fail it if setup should have installed what is missing
    (`owed`)."""
    if owed and os.environ.get("CI", "").lower() in ("1", "true", "yes"):
        pytest.fail(why)
    pytest.skip(f"NOT TESTED: {why}")


@pytest.fixture(scope="session")
def no_hosts():
    """A function that skips the test for a reason why there are no emulated hosts; under CI=true,
    it fails the test for root, who can create namespaces wherever CI runs."""

    def give_up(reason):
        skip(f"no emulated hosts on this machine: {reason}", owed=os.geteuid() == 0)

    return give_up


@pytest.fixture(scope="session")
def namespaces(no_hosts):
    """The Capabilities of this machine; without namespaces, like `no_hosts`."""
    from mpilab.hosts.emulated import probe

    found = probe()
    if found.namespaces == "none":
        no_hosts(found.reason)
    return found


@pytest.fixture
def require_tool():
    """A function: the path of a program, by name; several names are tried in turn.

    If there is none, the test is skipped, but fails under CI=true, where setup should have
    installed it.
    """

    def find(*names):
        for name in names:
            path = shutil.which(name)
            if path is not None:
                return path
        return skip(
            f"{' or '.join(names)}: not found on PATH; 'make test' run by root installs what tests "
            "need, or see tools/packages.py for the Debian package"
        )

    return find


@pytest.fixture
def leaves_nothing(monkeypatch, tmp_path):
    """Checks that the test leaves no child process, and no file in a temporary folder of its own
    or in shared memory, while other tests may use the latter."""
    # Not tmp_path: Open MPI puts sockets into it, whose paths must be short. But pytest must make
    # tmp_path before the default place changes.
    folder = Path(tempfile.mkdtemp(prefix="leaves-"))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    before, children = _in_shared_memory(), _children()
    yield
    assert [path.name for path in folder.iterdir()] == []
    folder.rmdir()
    assert _children() <= children
    # What another test has just created is not in use yet, and what it is about to remove no more.
    ends = time.monotonic() + 30
    while left := _used_by_nobody(_in_shared_memory() - before):
        assert time.monotonic() < ends, left


def _children():
    import psutil  # noqa: PLC0415

    return {process.pid for process in psutil.Process().children(recursive=True)}


# Settings of a rank without mpirun, which would leave the segment of btl/sm in shared memory.
WITHOUT_MPIRUN = {"OMPI_MCA_btl": "self"}


def _in_shared_memory():
    """The names in /dev/shm, without Open MPI's own: it leaves a segment of each rank that another
    test has run without mpirun. The runs of the kit have directories of their own there."""
    names = os.listdir("/dev/shm") if os.path.isdir("/dev/shm") else ()
    return {name for name in names if not name.startswith("sm_segment.")}


def _used_by_nobody(names):
    """Those of these files and directories in /dev/shm that no process uses."""
    free = set(names)
    for process in Path("/proc").glob("[0-9]*") if free else ():
        held = ""
        for what in ("maps", "environ"):
            try:
                held += (process / what).read_text(errors="replace")
            except OSError:
                continue  # it has just ended, or belongs to another user
        free -= {name for name in free if f"/dev/shm/{name}" in held}
    return {name for name in free if Path("/dev/shm", name).exists()}
