"""All checks of one machine, in a fixed order."""

import shutil
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

from tqdm import tqdm

# The modules register their probes when they are imported.
from mpilab.doctor import base, emulated, extras, grading, machine, ranks  # noqa: F401
from mpilab.doctor.check import FAILED, MISSING, PROBES, Check, Surroundings
from mpilab.errors import MpilabError

# The order of the table: what the labs need comes first, each thing after what it rests on.
ORDER = (
    "python", "packages", "jupyterlab", "compiler", "open-mpi", "mpi-settings", "mpirun",
    "shared-memory", "cores", "disk", "c-build", "engines", "addr2line", "sanitizers",
    "bubblewrap", "grading-limits", "emulated-hosts", "simgrid", "slurm", "chromium",
)  # fmt: skip
# All checks together; a check that begins later than that still gets a second.
SECONDS = 15.0


def examine(names=(), *, progress=True):
    """The Checks of this machine, or those called `names`. Takes about five seconds, 15 at most
    where programs hang. `progress` shows a bar on stderr, where that is a terminal."""
    probes = sorted(
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
        done = dict(_all(probes, folder, why_not, until, progress))
    finally:
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)
    return [done[one.name] for one in probes]


def healthy(checks):
    """Does everything work that the labs need?"""
    return not any(one.needed and one.status in (FAILED, MISSING) for one in checks)


def _all(probes, folder, why_not, until, progress):
    """(name, Check) as they come in. Those that start ranks or compilers follow one another."""

    def check(one):
        begin = time.monotonic()
        around = Surroundings(folder, why_not, min(begin + one.limit, until))
        return one.name, _check(one, around, begin)

    # One thread for those that would disturb each other, one for the others.
    with (
        ThreadPoolExecutor(1) as alone,
        ThreadPoolExecutor(1) as others,
        tqdm(total=len(probes), desc="looking at this machine", unit="check", file=sys.stderr,
             disable=None if progress else True, leave=False) as bar,
    ):  # fmt: skip
        waiting = [(alone if one.alone else others).submit(check, one) for one in probes]
        for future in as_completed(waiting):
            bar.update()
            yield future.result()


def _check(one, around, begin):
    try:
        status, found, remedy = one.function(around)
    except MpilabError as error:
        status, found, remedy = FAILED, " ".join(str(error).split()), ""
    except Exception as error:  # a check that breaks says so, and the others go on
        status, found = FAILED, f"the check itself broke: {type(error).__name__}: {error}"
        remedy = "report this line: it is a fault of mpilab's doctor"
    seconds = round(time.monotonic() - begin, 3)
    return Check(one.name, status, found, remedy, one.why, one.needed, seconds)
