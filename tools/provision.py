"""The steps of setup, in order, one line each, and their results in .venv.

The stamp `.venv/mpilab-setup.json` is written last, so an interrupted setup is repeated. A lock
prevents two setups from running at once.
"""

import contextlib
import fcntl
import importlib
import json
import os
import platform
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import machine
import packages
import pyenvironment
from problem import Problem

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"


@dataclass(frozen=True)
class Place:
    """Where the kit's Python packages are, and what is known about them.

    prefix   the environment
    stamp    written when it is ready; `tests` when the tests' packages are also installed
    lock     held by a running setup
    name     in messages
    conda    whether it is a conda environment, which we do not create
    """

    prefix: Path
    stamp: Path
    tests: Path
    lock: Path
    name: str
    conda: bool = False


VENV_PLACE = Place(
    VENV,
    VENV / "mpilab-setup.json",
    VENV / "mpilab-test-tools.json",
    ROOT / ".venv.lock",
    VENV.name,
)


def conda():
    """The conda environment of this Python. The Makefile names the same stamps."""
    build = ROOT / "build"
    build.mkdir(exist_ok=True)
    return Place(
        Path(sys.prefix),
        build / "mpilab-conda.json",
        build / "mpilab-conda-tests.json",
        build / "mpilab-conda.lock",
        f"the conda environment {sys.prefix}",
        conda=True,
    )


# Setup ends if these are missing; what would serve instead of the packages.
ENDS_WITHOUT = {
    "compiler": "another compiler than cc: OMPI_CC=clang make ...",
    "venv": "another Python: make PYTHON=... setup",
}
# Setup continues without these; what does not work then.
GOES_ON_WITHOUT = {
    "make": "make: the C code must be built before anything runs ('make build')",
    "sanitizers": "libasan and libubsan: '%%kernel --sanitize' builds nothing",
    "bwrap": "a sandbox: only submissions that you trust can be graded (--unsafe-no-sandbox)",
    "smpicc": "SimGrid: marks are not confirmed by simulation, items that need a "
    "simulated cluster are ungradable, and simulation cells of the labs do not run",
    "jail": "isolated answers: marks come from runs in which an answer shares its process with "
    "what records and checks it",
    "namespaces": "emulated hosts: without them, ranks are assigned places on hosts (--places)",
}


def inputs():
    """The files on which setup depends; the Makefile lists the same ones."""
    return [ROOT / "pyproject.toml", ROOT / "constraints.txt", *(ROOT / "tools").glob("*.py")]


def say(text):
    """One line of progress."""
    print(f"setup: {text}", flush=True)


@contextlib.contextmanager
def step(text):
    """Print `text` at once and its seconds at the end; yields a function that shows a detail.

    The detail follows the text while the step runs, on terminals only.
    """
    start = time.monotonic()
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns - 1

    def detail(words):
        if terminal:
            line = f"setup: {text} ... {words}"
            print(f"\r\033[K{line[:width]}", end="", flush=True)

    print(f"setup: {text} ...", end="", flush=True)
    try:
        yield detail
    except BaseException:
        print(flush=True)
        raise
    if terminal:
        print(f"\r\033[Ksetup: {text} ...", end="")
    print(f" {time.monotonic() - start:.1f} s", flush=True)


@contextlib.contextmanager
def alone(path):
    """Hold the lock file `path`, after waiting for its current holder. Raises Problem if it cannot
    be created: the kit belongs to another user, or the disk is full."""
    try:
        lock = path.open("w")
    except OSError as error:
        raise Problem(
            f"setup may not write here: {error.strerror}",
            str(path.parent),
            "have its owner run 'make setup', or clone the kit into a folder of your own",
        ) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another setup is at work here ({path.name}); waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fresh(stamp, sources, prefix=VENV):
    """Whether `stamp` is newer than every file of `sources` and was made for this very folder and
    the environment `prefix`."""
    try:
        written = stamp.stat().st_mtime
        told = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return False
    if any(path.stat().st_mtime > written for path in sources):
        return False
    same = told.get("home") == str(ROOT) and told.get("prefix", str(VENV)) == str(prefix)
    return same and (prefix / "bin" / "python").exists()


def write(stamp, **facts):
    """Write `facts` into `stamp` atomically."""
    told = {"home": str(ROOT), **facts}
    partial = stamp.with_suffix(".partial")
    partial.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    partial.replace(stamp)


def provision(with_test_tools=False, place=VENV_PLACE):
    """Do whatever remains to be done at `place`. Raises Problem if that is impossible."""
    with alone(place.lock):
        if not fresh(place.stamp, inputs(), place.prefix):
            facts = use_conda(place) if place.conda else make_venv(place)
            say(f"ready: {place.prefix} (Python {facts['python']}, {facts['mpi']})")
        elif not with_test_tools:
            say(f"{place.name} is ready, nothing to do")
        if with_test_tools and not fresh(place.tests, [*inputs(), place.stamp], place.prefix):
            get_test_tools(place)


def make_venv(place):
    """Check the machine, create .venv, install everything into it and write its stamp. Returns what
    pyenvironment.prove found."""
    machine.check_folder(ROOT)
    machine.check_not_macos()
    machine.check_platform()
    machine.check_disk(ROOT)
    get_system_packages()
    sandbox = try_sandbox()
    place.stamp.unlink(missing_ok=True)
    if not pyenvironment.usable(place.prefix):
        with step(f"making .venv with Python {platform.python_version()}"):
            pyenvironment.make(place.prefix)
    with step("installing the packages of constraints.txt") as detail:
        pyenvironment.install(place.prefix, ROOT, detail)
    pyenvironment.link_extension(place.prefix, ROOT)
    with step("trying Open MPI and mpi4py"):
        facts = pyenvironment.prove(place.prefix)
        pyenvironment.check_mpicc(place.prefix)
    write(place.stamp, sandbox=sandbox, **facts)
    return facts


def use_conda(place):
    """Check the machine and the conda environment, add the kit itself to it and write the stamp.
    Returns what pyenvironment.prove found."""
    machine.check_folder(ROOT)
    machine.check_not_macos()
    get_system_packages(apart_from=("compiler", "sanitizers", "make", "venv"))
    sandbox = try_sandbox()
    pyenvironment.check_conda(place.prefix, ROOT)
    mpicc = str(place.prefix / "bin" / "mpicc")
    machine.check_compiler(compiler=mpicc, remedy="conda install -c conda-forge c-compiler")
    if not pyenvironment.holds(place.prefix, ROOT):
        with step("adding the kit to the conda environment") as detail:
            # Without dependencies: pip would install a second Open MPI.
            wanted = ["--no-deps", "-e", "."]
            pyenvironment.install(place.prefix, ROOT, detail, wanted, ROOT / "build")
    pyenvironment.link_extension(place.prefix, ROOT)
    with step("trying Open MPI and mpi4py"):
        facts = pyenvironment.prove(place.prefix)
    write(place.stamp, prefix=str(place.prefix), sandbox=sandbox, **facts)
    return facts


def get(names, needs, root_only=False):
    """Install `needs` if no confirmation is needed; `names` appears in the progress line.

    Returns why that was not possible, or an empty string.
    """
    why = packages.hindrance(root_only)
    if not why:
        with step(f"installing {names} (apt-get)"):
            why = packages.install(needs)
    return why


def get_system_packages(apart_from=()):
    """Install what the system lacks if no confirmation is needed; else list together what an
    administrator has to install, and what does not work until then.

    apart_from   needs that are met in another way

    Raises Problem if setup cannot continue: without a C compiler or Python's venv.
    """
    missing = machine.missing(apart_from)
    if not missing:
        return
    why = get(in_words(missing), list(missing))
    importlib.invalidate_caches()
    missing = machine.missing(apart_from)
    line = packages.install_line(*missing)
    reason = why or "installed, but still not found"
    fatal = [need for need in ENDS_WITHOUT if need in missing]
    if fatal:
        what = "; ".join(missing[need].what for need in fatal)
        others = in_words(need for need in missing if need not in fatal)
        also = f"; this system also lacks {others}" if others else ""
        raise Problem(
            f"{what}{also} ({reason})",
            missing[fatal[0]].where,
            f"{line}   (or {', '.join(ENDS_WITHOUT[need] for need in fatal)})",
        )
    if missing:
        say(
            f"this system lacks {in_words(missing)} ({reason})\n"
            f"  where:  PATH={os.environ.get('PATH', '')}\n"
            f"  remedy: {line}"
        )
    for need in missing:
        say(f"going on without {GOES_ON_WITHOUT[need]}")


def in_words(needs):
    """The needs as a list in a sentence: 'make, bubblewrap, SimGrid'."""
    return ", ".join(packages.system.NEEDS[need] for need in needs)


def try_sandbox():
    """If submissions cannot be isolated here, say why. Returns what was found, in words."""
    try:
        packages.check_bubblewrap()
    except Problem as problem:
        if shutil.which("bwrap") is not None:
            say(f"going on without a sandbox. {problem}")
        return problem.what
    return "bubblewrap"


def get_test_tools(place=VENV_PLACE):
    """Install the Python packages that only tests and style checks need (raises Problem), and for
    root the commands that tests need; for other users, print the line to type."""
    wanted = ["-e", ".[test]"]
    if place.conda:
        wanted = pyenvironment.requirements(ROOT)["test"]
    with step("installing the packages of the tests") as detail:
        pyenvironment.install(place.prefix, ROOT, detail, wanted, place.stamp.parent)
    missing = [tool for tool in packages.TEST_TOOLS if shutil.which(tool) is None]
    if missing:
        names = ", ".join(missing)
        why = get(f"{names} for the tests", missing, root_only=True)
        if why:
            say(
                f"tests that need {names} are skipped ({why})\n"
                f"  where:  PATH={os.environ.get('PATH', '')}\n"
                f"  remedy: {packages.install_line(*missing)}"
            )
    tools = {tool: shutil.which(tool) for tool in packages.TEST_TOOLS}
    write(place.tests, prefix=str(place.prefix), tools=tools)


def print_sandbox_flag():
    """Print the flag that lets `mpilab grade` run without a sandbox, and a warning."""
    try:
        packages.check_bubblewrap()
    except Problem as problem:
        bar = "!" * 78
        print(
            f"{bar}\nWARNING: grading WITHOUT A SANDBOX. These submissions are our own; never do "
            f"this to\nsubmissions of students: their code would run as you.\n{problem}\n{bar}",
            file=sys.stderr,
        )
        print("--unsafe-no-sandbox")
