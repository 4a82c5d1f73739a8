"""One check: its form, how it is registered, and how it runs other programs."""

import importlib
import os
import shutil
import sys
import time
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path

from mpilab import programs
from mpilab.build import ROOT
from mpilab.errors import SetupError

OK, WARNING, MISSING, FAILED = "ok", "warning", "missing", "failed"
STATUSES = (OK, WARNING, MISSING, FAILED)
SHORTEST_S = 1.0  # what a program gets at least, when the time for all checks is over


@dataclass(frozen=True)
class Check:
    """What was found out about one thing.

    name     its stable name, e.g. 'shared-memory'
    status   ok; warning (works, but look at it); missing (not there); failed (there, but broken)
    found    what is there: version, path, numbers, or what went wrong
    remedy   what to do, '' where all is well
    why      what it is for, and what one cannot do without it
    needed   whether the labs need it
    seconds  how long the check took
    """

    name: str
    status: str
    found: str
    remedy: str
    why: str
    needed: bool
    seconds: float = 0.0


# What a probe returns.
Finding = namedtuple("Finding", "status found remedy", defaults=("",))


@dataclass(frozen=True)
class Probe:
    """A check before it was made: `function(surroundings)` returns a Finding."""

    name: str
    function: object
    needed: bool
    limit: float
    why: str
    alone: bool


PROBES = []


def probe(name, *, why, needed=False, limit=5.0, alone=False):
    """Register the decorated function as a check.

    limit   seconds that it may take.
    alone   it starts ranks or compilers: such checks run one after the other, in their order.
    """

    def register(function):
        PROBES.append(Probe(name, function, needed, limit, why, alone))
        return function

    return register


class Surroundings:
    """What a probe has at hand: a folder of its own making, and a clock.

    folder    a temporary folder, the same for all checks; SetupError where none can be made
    left      seconds that the probe still has
    """

    def __init__(self, folder, trouble, until):
        self._folder, self._trouble, self._until = folder, trouble, until

    @property
    def folder(self):
        if self._folder is None:
            raise SetupError(f"no temporary folder: {self._trouble}")
        return self._folder

    @property
    def left(self):
        return max(self._until - time.monotonic(), SHORTEST_S)

    def run(self, command, *, environment=None, stdin="", cwd=None):
        """Run `command` to its end or to the end of the probe's time; returns what it Said.

        All that it started has ended then. Raises FileNotFoundError for an unknown program.
        """
        variables = {**(os.environ if environment is None else environment), "LC_ALL": "C"}
        return programs.run(command, self.left, environment=variables, stdin=stdin,
                            cwd=cwd or self._folder)  # fmt: skip


def first_line(text):
    """The first line that is not empty; ''."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def install(*needs):
    """The line to type on this system to get `needs`, keys of tools/packages.py."""
    try:
        return _packages().install_line(*needs)
    except ImportError:
        # A handout has no tools/ folder.
        return f"install {', '.join(needs)} with your system's package manager"


def namespace_remedy():
    """What lets a plain user make namespaces on this kernel."""
    try:
        return _packages().namespace_remedy()
    except ImportError:
        return "allow user namespaces; in Docker: docker run --privileged"


def which(*names):
    """The path of the first of these programs that is on PATH; None."""
    return next(filter(None, map(shutil.which, names)), None)


def _packages():
    folder = str(Path(ROOT) / "tools")
    sys.path.insert(0, folder)
    try:
        return importlib.import_module("packages")
    finally:
        sys.path.remove(folder)
