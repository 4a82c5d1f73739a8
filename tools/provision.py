"""The steps of set-up, in order, one line each; and what became of them, in .venv.

The stamp `.venv/mpilab-setup.json` is written last, so a set-up that was interrupted is done
again. A lock keeps two of them apart.
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
from pathlib import Path

import machine
import packages
import pyenvironment
from problem import Problem

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / "mpilab-setup.json"
TEST_STAMP = VENV / "mpilab-test-tools.json"


def inputs():
    """The files that set-up depends on; the Makefile lists the same ones."""
    return [ROOT / "pyproject.toml", ROOT / "constraints.txt", *(ROOT / "tools").glob("*.py")]


def say(text):
    """One line of progress."""
    print(f"setup: {text}", flush=True)


@contextlib.contextmanager
def step(text):
    """Print `text` at once and its seconds at the end; yields a function that shows a detail.

    The detail stands behind the text while the step goes on, on terminals only.
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
    """Hold the lock file `path`; wait for whoever holds it."""
    with path.open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"another set-up is at work here ({path.name}); waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def fresh(stamp, sources):
    """Whether `stamp` is newer than every file of `sources` and was made for this very folder."""
    try:
        written = stamp.stat().st_mtime
        told = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return False
    if any(path.stat().st_mtime > written for path in sources):
        return False
    return told.get("home") == str(ROOT) and (VENV / "bin" / "python").exists()


def write(stamp, **facts):
    """Write `facts` into `stamp`, whole or not at all."""
    told = {"home": str(ROOT), **facts}
    partial = stamp.with_suffix(".partial")
    partial.write_text(json.dumps(told, indent=2, ensure_ascii=False) + "\n")
    os.replace(partial, stamp)


def provision(with_test_tools=False):
    """Do whatever is not done yet. Raises Problem where that is impossible."""
    with alone(ROOT / ".venv.lock"):
        if not fresh(STAMP, inputs()):
            set_up()
        elif not with_test_tools:
            say(f"{VENV.name} is ready, nothing to do")
        if with_test_tools and not fresh(TEST_STAMP, [*inputs(), STAMP]):
            get_test_tools()


def set_up():
    """Check the machine, make .venv and install everything into it."""
    machine.check_folder(ROOT)
    machine.check_platform()
    machine.check_compiler()
    machine.check_disk(ROOT)
    ensure_venv_module()
    sandbox = ensure_bubblewrap()
    STAMP.unlink(missing_ok=True)
    if not pyenvironment.usable(VENV):
        with step(f"making .venv with Python {platform.python_version()}"):
            pyenvironment.make(VENV)
    with step("installing the packages of constraints.txt") as detail:
        pyenvironment.install(VENV, ROOT, detail)
    with step("trying Open MPI and mpi4py"):
        facts = pyenvironment.prove(VENV)
    write(STAMP, sandbox=sandbox, **facts)
    say(f"ready: {VENV} (Python {facts['python']}, {facts['mpi']})")


def get(names, needs, root_only=False):
    """Install `needs` where nobody has to be asked; `names` stands in the progress line.

    Returns why that was not possible, or an empty string.
    """
    why = packages.hindrance(root_only)
    if not why:
        with step(f"installing {names} (apt-get)"):
            why = packages.install(needs)
    return why


def ensure_venv_module():
    """Get Debian's python3-venv where it is missing and nobody has to be asked."""
    if machine.has_venv():
        return
    why = get(packages.VENV_PACKAGE, ["venv"])
    importlib.invalidate_caches()
    if not machine.has_venv():
        raise Problem(
            "this Python cannot make a virtual environment: its modules venv and ensurepip are "
            f"missing ({why or packages.VENV_PACKAGE + ' did not bring them'})",
            sys.executable,
            f"{packages.install_line('venv')}   or name another Python: make PYTHON=... setup",
        )


def ensure_bubblewrap():
    """Get bubblewrap where nobody has to be asked; never fail. Returns what was found, in words."""
    why = ""
    if shutil.which("bwrap") is None and sys.platform == "linux":
        why = get("bubblewrap", ["bwrap"])
    try:
        packages.check_bubblewrap()
    except Problem as problem:
        say(f"going on without a sandbox{f' ({why})' if why else ''}. {problem}")
        return problem.what
    return "bubblewrap"


def get_test_tools():
    """Get the commands that tests need, for root; else print the line to type. Never fail."""
    missing = [tool for tool in packages.TEST_TOOLS if shutil.which(tool) is None]
    if missing:
        names = ", ".join(missing)
        why = get(f"{names} for the tests", missing, root_only=True)
        if why:
            say(
                f"tests that need {names} will be skipped ({why})\n"
                f"  where:  PATH={os.environ.get('PATH', '')}\n"
                f"  remedy: {packages.install_line(*missing)}"
            )
    write(TEST_STAMP, tools={tool: shutil.which(tool) for tool in packages.TEST_TOOLS})


def print_sandbox_flag():
    """Print the flag with which `mpilab grade` goes on where there is no sandbox, and a warning."""
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
