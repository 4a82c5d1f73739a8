"""Check this machine and suggest fixes: `mpilab doctor`.

In: this machine. Out: a Check for each thing that the kit needs, with a remedy for each problem.

    checks = examine()          a list of Check, in a fixed order
    print(table(checks)) for people; as_json(checks) for programs
    verdicts(checks)            what they mean for labs, grading, hosts, simulation and Slurm
    work(verdicts(checks))      whether labs and grading work
    healthy(checks)             whether everything that the labs need works

Every check (`probes`) tests the real thing: it compiles, runs or starts something. Each has its own
time limit, and a second try if that may have been too short; an error in one check becomes its
status and does not affect the others. No files or processes are left behind. `check` says what each
use of the kit needs.
"""

import json
import shutil
import sys
import tempfile
import textwrap
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

from tqdm import tqdm

from mpilab import __version__

# This module registers its probes when imported.
from mpilab.doctor import probes  # noqa: F401
from mpilab.doctor.check import (
    BROKEN,
    EXPECTED,
    FAILED,
    LIMITED,
    MISSING,
    OK,
    PROBES,
    USES,
    WARNING,
    WORKS,
    Check,
    Probe,
    Surroundings,
    Verdict,
    verdicts,
    work,
)
from mpilab.errors import MpilabError
from mpilab.util import door
from mpilab.util.kit import revision

# The order of the table: first what the labs need, and each check after those on which it depends.
ORDER = (
    "python",
    "packages",
    "jupyterlab",
    "compiler",
    "open-mpi",
    "mpi-settings",
    "mpirun",
    "shared-memory",
    "cores",
    "disk",
    "c-build",
    "engines",
    "addr2line",
    "sanitizers",
    "bubblewrap",
    "grading-limits",
    "emulated-hosts",
    "simgrid",
    "jail",
    "slurm",
    "chromium",
)
# Time limit for all checks; a check that starts later still gets a second.
SECONDS = 15.0
# Time limit of a second try, alone: for a machine that is busy, or whose disk caches are cold.
SECOND_TRY_S = 45.0


def examine(names: Collection[str] = (), *, progress: bool = True) -> list[Check]:
    """Run all checks, or those called `names`; a list of Check.

    It takes about ten seconds. A check that fails after more than half of its time gets a second
    try of up to SECOND_TRY_S: if that succeeds, it is a warning that says how long it took.
    `progress` shows a bar on stderr if that is a terminal.
    """
    selected = sorted(
        (one for one in PROBES if not names or one.name in names),
        key=lambda one: ORDER.index(one.name),
    )
    until = time.monotonic() + SECONDS
    folder, why_not = None, ""
    try:
        folder = Path(tempfile.mkdtemp(prefix="mpilab-doctor-"))
    except OSError as error:
        why_not = str(error)
    try:
        done = dict(_all(selected, folder, why_not, until, progress))
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    return [done[one.name] for one in selected]


def healthy(checks: Iterable[Check]) -> bool:
    """Whether everything that the labs need works."""
    return not any(one.needed and one.status in (FAILED, MISSING) for one in checks)


def _all(
    selected: Sequence[Probe], folder: Path | None, why_not: str, until: float, progress: bool
) -> Iterator[tuple[str, Check]]:
    """Yield (name, Check) as they finish. Probes that start ranks or compilers run in sequence."""

    slow: list[Probe] = []

    def check(one: Probe) -> tuple[str, Check]:
        left = min(one.limit, until - time.monotonic())
        made = _check(one, folder, why_not, left)
        if made.status in (FAILED, MISSING) and made.seconds > left / 2:
            slow.append(one)
        return one.name, made

    # One thread for the probes that would disturb each other, one for the others.
    with (
        ThreadPoolExecutor(1) as alone,
        ThreadPoolExecutor(1) as others,
        tqdm(
            total=len(selected),
            desc="checking this machine",
            unit="check",
            file=sys.stderr,
            disable=None if progress else True,
            leave=False,
        ) as bar,
    ):
        waiting = [(alone if one.alone else others).submit(check, one) for one in selected]
        for future in door.as_completed(waiting):
            bar.update()
            yield future.result()
        for one in sorted(slow, key=selected.index):
            bar.set_description(f"checking {one.name} once more, with more time")
            yield one.name, _second_try(_check(one, folder, why_not, SECOND_TRY_S))


def _second_try(made: Check) -> Check:
    if made.status != OK:
        return made
    return replace(
        made,
        status=WARNING,
        found=f"{made.found}; it took {made.seconds:.0f} s, and the first try was too short",
        remedy="this machine is busy or slow: end other programs, and expect to wait",
    )


def _check(one: Probe, folder: Path | None, why_not: str, limit: float) -> Check:
    begin = time.monotonic()
    around = Surroundings(folder, why_not, begin + limit)
    try:
        status, found, remedy = one.function(around)
    except MpilabError as error:
        status, found, remedy = FAILED, " ".join(str(error).split()), ""
    except Exception as error:  # report the failure of a check, and run the others
        status, found = FAILED, f"the check itself failed: {type(error).__name__}: {error}"
        remedy = "report this line: it is a bug in mpilab doctor"
    seconds = round(time.monotonic() - begin, 3)
    return Check(one.name, status, found, remedy, one.why, one.needed, seconds)


# The checks as a table for human readers, and as JSON for programs.

WORDS = {WORKS: "works", LIMITED: "works, with limits", BROKEN: "does not work"}
MARKS = {OK: "✓", WARNING: "!", FAILED: "✗", MISSING: "–"}


def table(checks: Sequence[Check], width: int = 100) -> str:
    """The checks as aligned text: a line each, and a remedy below each problem."""
    column = max((len(one.name) for one in checks), default=0)
    lines = [line for one in checks for line in _lines(one, column, width)]
    judged = verdicts(checks)
    return "\n".join([*lines, "", *_judged(judged, width), _summary(checks)])


def as_json(checks: Sequence[Check]) -> str:
    """The checks as JSON text.

    {mpilab, revision, healthy, verdicts: [fields of a Verdict], checks: [fields of a Check]}
    """
    told = {
        "mpilab": __version__,
        "revision": revision(),
        "healthy": healthy(checks),
        "verdicts": list(map(asdict, verdicts(checks))),
        "checks": list(map(asdict, checks)),
    }
    return json.dumps(told, indent=2, ensure_ascii=False)


def _lines(one: Check, column: int, width: int) -> Iterator[str]:
    mark = MARKS[FAILED if one.needed and one.status == MISSING else one.status]
    indent = " " * (column + 4)
    yield from _wrapped(one.found, width, f"{mark} {one.name:{column}}  ", indent)
    if one.status != OK:
        for word, text in (("why", one.why), ("remedy", one.remedy)):
            if text:
                yield from _wrapped(f"{word}: {text}", width, indent, indent + "  ")


def _judged(judged: Sequence[Verdict], width: int) -> Iterator[str]:
    """Yield the lines of a paragraph for each verdict, and an empty line after them."""
    column = max((len(USES[one.name].title) for one in judged), default=0)
    for one in judged:
        indent = " " * (column + 2)
        first = f"{USES[one.name].title:{column}}  {WORDS[one.status]}"
        if len(one.reasons) == 1:
            first += f": {one.reasons[0]}"
        elif one.reasons:
            first += ":"
        yield from _wrapped(first, width, "", indent)
        for reason in one.reasons if len(one.reasons) > 1 else ():
            yield from _wrapped(f"- {reason}", width, indent, indent + "  ")
        for remedy in filter(None, dict.fromkeys(one.remedies)):
            yield from _wrapped(f"remedy: {remedy}", width, indent, indent + "  ")
    if judged:
        yield ""


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _summary(checks: Sequence[Check]) -> str:
    bad = [one.name for one in checks if one.needed and one.status in (FAILED, MISSING)]
    lacking = [one.name for one in checks if not one.needed and one.status in (FAILED, MISSING)]
    if bad:
        return f"The labs will not work here yet: {', '.join(bad)}. Start with the first ✗."
    if any(name in USES["labs"].misses for name in lacking):
        return "The labs work here, with the limits above."
    if lacking:
        return f"The labs work here. Only optional parts are missing: {', '.join(lacking)}."
    return "The labs work here."


__all__ = [
    "Check",
    "EXPECTED",
    "USES",
    "Verdict",
    "as_json",
    "examine",
    "healthy",
    "table",
    "verdicts",
    "work",
]
