"""What every test may ask for. Nothing heavy here: it is imported for each run."""

import fcntl
import os
import shutil
from contextlib import ExitStack

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Where several workers run tests at a time, one that is marked `alone` waits until no other
    test runs, and none begins until it has ended.

    Around the whole test, because what a fixture of a module starts (a cluster) is started before
    any fixture of the test itself, and ended after it.
    """
    if "PYTEST_XDIST_WORKER" not in os.environ:
        return (yield)
    folder = item.config.cache.mkdir("alone")
    is_alone = item.get_closest_marker("alone") is not None
    with ExitStack() as held:
        # Who waits for the second lock keeps the first: so the others cannot pass by for ever.
        with open(folder / "turn.lock", "w") as turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            running = held.enter_context(open(folder / "running.lock", "w"))
            fcntl.flock(running, fcntl.LOCK_EX if is_alone else fcntl.LOCK_SH)
        return (yield)


@pytest.fixture
def require_tool():
    """A function: the path of a program, by name; several names are tried in turn.

    Where there is none the test is skipped, but fails under CI=true: there set-up had to bring it.
    """

    def find(*names):
        for name in names:
            path = shutil.which(name)
            if path is not None:
                return path
        message = (
            f"{' or '.join(names)}: not found on PATH; 'make test' run by root installs what tests "
            "need, or see tools/packages.py for the Debian package"
        )
        if os.environ.get("CI", "").lower() in ("1", "true", "yes"):
            pytest.fail(message)
        pytest.skip(message)

    return find
