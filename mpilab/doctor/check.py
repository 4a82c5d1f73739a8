"""Define and register checks, run programs in them, and judge what works from their results."""

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from mpilab.errors import SetupError
from mpilab.util import processes

OK, WARNING, MISSING, FAILED = "ok", "warning", "missing", "failed"
WORKS, LIMITED, BROKEN = "works", "limited", "broken"
# What running ranks takes: names of checks.
RANKS = ("python", "packages", "compiler", "open-mpi", "mpirun", "shared-memory", "disk", "c-build")
# The uses that decide the exit status of `mpilab doctor` by default.
EXPECTED = ("labs", "grading")
SHORTEST_S = 1.0  # minimum time for a program, even after the time for all checks


@dataclass(frozen=True)
class Check:
    """The result of one check.

    name     its stable name, e.g. 'shared-memory'
    status   ok; warning (works, but needs attention); missing; failed (present, but broken)
    found    what was found: version, path, numbers, or what went wrong
    remedy   what to do; '' if nothing
    why      its purpose, and what does not work without it
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


class Finding(NamedTuple):
    """The result of a probe."""

    status: str
    found: str
    remedy: str = ""


@dataclass(frozen=True)
class Probe:
    """A registered check: `function(surroundings)` returns a Finding."""

    name: str
    function: "ProbeFunction"
    needed: bool
    limit: float
    why: str
    alone: bool


ProbeFunction = Callable[["Surroundings"], Finding]
PROBES: list[Probe] = []


def probe(
    name: str, *, why: str, needed: bool = False, limit: float = 5.0, alone: bool = False
) -> Callable[[ProbeFunction], ProbeFunction]:
    """Register the decorated function as a check.

    limit   seconds that it may take.
    alone   whether it starts ranks or compilers: such checks run one at a time, in order.
    """

    def register(function: ProbeFunction) -> ProbeFunction:
        PROBES.append(Probe(name, function, needed, limit, why, alone))
        return function

    return register


class Surroundings:
    """The environment of a probe: a temporary folder and a time limit.

    folder    a temporary folder, shared by all checks; raises SetupError if there is none
    left      seconds that the probe still has
    """

    def __init__(self, folder: Path | None, trouble: str, until: float) -> None:
        self._folder, self._trouble, self._until = folder, trouble, until

    @property
    def folder(self) -> Path:
        if self._folder is None:
            raise SetupError(f"no temporary folder: {self._trouble}")
        return self._folder

    @property
    def left(self) -> float:
        return max(self._until - time.monotonic(), SHORTEST_S)

    def run(
        self,
        command: Iterable[object],
        *,
        environment: Mapping[str, str] | None = None,
        stdin: str = "",
        cwd: str | Path | None = None,
    ) -> processes.Said:
        """Run `command` until it ends or the probe's time is over; its exit status and output.

        By then, all processes that it started have ended. Raises FileNotFoundError for an unknown
        program.
        """
        variables = {**(os.environ if environment is None else environment), "LC_ALL": "C"}
        return processes.run(
            command, self.left, environment=variables, stdin=stdin, cwd=cwd or self._folder
        )


def first_line(text: str) -> str:
    """The first line that is not empty; '' if there is none."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def which(*names: str) -> str | None:
    """The path of the first of these programs that is on PATH; None if there is none."""
    return next(filter(None, map(shutil.which, names)), None)


# Verdicts: whether each use of the kit works here, works with limits, or does not work.


@dataclass(frozen=True)
class Use:
    """A use of the kit, and the checks on which it depends.

    title    its name in a sentence
    needs    names of the checks that must not fail
    misses   {name of a check: what does not work if it fails}
    """

    title: str
    needs: tuple[str, ...]
    misses: dict[str, str]


# The names of `mpilab doctor --for`, in the order of the table.
USES = {
    "labs": Use(
        "labs",
        (*RANKS, "jupyterlab", "engines", "cores"),
        {
            "simgrid": "simulation cells of the labs do not run",
            "emulated-hosts": "in labs 03 and 04, all ranks run on one host, with assigned places",
            "addr2line": "a deadlock or crash is reported without the line of the cell",
            "sanitizers": "%%kernel --sanitize builds nothing",
        },
    ),
    "grading": Use(
        "grading",
        (*RANKS, "engines", "bubblewrap", "grading-limits"),
        {
            "simgrid": "marks are not confirmed by simulation, and items that need a simulated "
            "cluster are ungradable",
            "jail": "marks are listed as not isolated: an answer shares its process with what "
            "records and checks it",
        },
    ),
    "hosts": Use("emulated hosts", (*RANKS, "emulated-hosts"), {}),
    "simulation": Use("simulation", ("python", "packages", "compiler", "disk", "simgrid"), {}),
    "slurm": Use("Slurm", ("slurm",), {}),
}


@dataclass(frozen=True)
class Verdict:
    """Whether one use of the kit works on this machine.

    name      a key of USES
    status    works; limited (works, but see `reasons`); broken (does not work)
    reasons   what does not work, or the first check that failed; empty if everything works
    remedies  what to do, one for each reason; '' if there is nothing to do
    """

    name: str
    status: str
    reasons: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()


def verdicts(checks: Iterable[Check]) -> list[Verdict]:
    """A Verdict for each use with at least one check in `checks`; absent checks count as passed."""
    made = {check.name: check for check in checks}
    return [
        _verdict(name, use, made)
        for name, use in USES.items()
        if any(check in made for check in use.needs)
    ]


def work(found: Iterable[Verdict], uses: Iterable[str] = EXPECTED) -> bool:
    """Whether all of `uses`, keys of USES, work, at least with limits."""
    return not any(one.status == BROKEN for one in found if one.name in uses)


def _verdict(name: str, use: Use, made: Mapping[str, Check]) -> Verdict:
    needed = [made[check] for check in use.needs if check in made]
    gone = [one for one in needed if one.status in (FAILED, MISSING)]
    if gone:
        others = ", ".join(one.name for one in gone[1:])
        reason = f"{gone[0].name}: {gone[0].found}" + (f"; also {others}" if others else "")
        return Verdict(name, BROKEN, (reason,), (gone[0].remedy,))
    limits = [(f"{one.name}: {one.found}", one.remedy) for one in needed if one.status == WARNING]
    for check, lost in use.misses.items():
        one = made.get(check)
        if one is not None and one.status in (FAILED, MISSING):
            limits.append((f"{lost} ({check}: {one.found})", one.remedy))
    status = LIMITED if limits else WORKS
    return Verdict(name, status, tuple(one for one, _ in limits), tuple(two for _, two in limits))
