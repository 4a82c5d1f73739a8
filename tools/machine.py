"""Check that this machine suits the kit. Each check raises Problem or returns silently."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packages import install_line, system
from problem import Problem

# A full .venv takes 0.7 GB; pip unpacks its downloads and keeps a cache beside that.
NEEDED_BYTES = 2 * 10**9

CONDA_ROUTE = "take the conda route: conda env create -f environment.yml"


def check_folder(root):
    """Raise Problem if the path of the kit contains the separator of folders in PATH (':'), or
    characters that make (a newline, a backslash) or setuptools ('$') interprets."""
    odd = sorted(set(str(root)) & set("\n:$\\"))
    if odd:
        raise Problem(
            f"the folder's path holds {odd[0]!r}, which make or Python's tools cannot take",
            str(root),
            f"move it, e.g. mv {str(root)!r} ~/mpilab",
        )


def check_not_macos(name=None):
    """Raise Problem on macOS, whatever the origin of Python and Open MPI."""
    if (name or platform.system()) == "Darwin":
        raise Problem(
            "mpilab does not build on macOS: its C code is linked with GNU ld, which macOS lacks",
            f"{platform.platform()}, {sys.executable}",
            "use a Linux container or a Linux virtual machine, e.g. with Debian; conda does not "
            "help here",
        )


def check_platform(name=None, machine=None, libc=None, bits=None):
    """Raise Problem if Open MPI has no wheel for this platform.

    There are wheels for glibc 2.28 and later on x86_64 and aarch64.
    """
    name = name or platform.system()
    machine = machine or platform.machine()
    libc = libc if libc is not None else platform.libc_ver()
    bits = bits or (64 if sys.maxsize > 2**32 else 32)
    where = f"{name} {machine}, {bits}-bit Python {sys.executable}"
    if name != "Linux" or machine not in ("x86_64", "aarch64") or bits != 64:
        raise Problem(f"Open MPI has no wheel for {name} {machine}", where, CONDA_ROUTE)
    library, version = libc
    if library != "glibc":
        raise Problem(
            f"Open MPI's wheel needs glibc, and this C library is "
            f"{library or 'another one (musl?)'}",
            where,
            "use a distribution with glibc, e.g. the container image debian:12",
        )
    if tuple(int(part) for part in version.split(".")[:2]) < (2, 28):
        raise Problem(f"Open MPI's wheel needs glibc 2.28, this is {version}", where, CONDA_ROUTE)


def check_compiler(*options, compiler=None, remedy=""):
    """Raise Problem if a C compiler is missing or cannot link a program.

    options   for the compiler
    compiler  its name; None: the one that mpicc calls
    remedy    what to do in that case, if not installing the system's package
    """
    compiler = compiler or os.environ.get("OMPI_CC", "cc")
    remedy = remedy or (
        f"{install_line('compiler')}   (another compiler than cc: OMPI_CC=clang make ...)"
    )
    if shutil.which(compiler) is None:
        where = f"PATH={os.environ.get('PATH', '')}"
        raise Problem(f"no C compiler: {compiler!r} was not found", where, remedy)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "hello.c")
        source.write_text('#include <stdio.h>\nint main(void) { return puts("") < 0; }\n')
        run = subprocess.run(
            [compiler, *options, "-o", Path(folder, "hello"), source],
            capture_output=True,
            text=True,
            errors="replace",
        )
    if run.returncode:
        said = (run.stderr.strip() or f"exit status {run.returncode}").splitlines()[0]
        raise Problem(
            f"the C compiler {compiler!r} cannot make a program: {said}",
            shutil.which(compiler),
            remedy,
        )


def check_venv():
    """Raise Problem if this Python cannot create a virtual environment."""
    if not has_venv():
        raise Problem(
            "this Python cannot make a virtual environment: its modules venv and ensurepip are "
            "missing",
            sys.executable,
            f"{install_line('venv')}   or name another Python: make PYTHON=... setup",
        )


def missing(apart_from=()):
    """What the kit needs from the system but is missing: {need: Problem, or None if a program is
    just not on PATH}, in the order of the table's NEEDS; without the needs in `apart_from`."""
    found = dict.fromkeys(system.absent())
    checks = {
        "compiler": check_compiler,
        "venv": check_venv,
        "sanitizers": lambda: check_compiler("-fsanitize=address,undefined"),
    }
    for need, check in checks.items():
        if need in apart_from or (need == "sanitizers" and "compiler" in found):
            continue
        try:
            check()
        except Problem as problem:
            found[need] = problem
    return {need: found[need] for need in system.NEEDS if need in found and need not in apart_from}


def free_bytes(folder):
    """Bytes that this user may still write on the disk that holds `folder`."""
    return shutil.disk_usage(folder).free


def check_disk(folder, free=free_bytes):
    """Raise Problem if less than NEEDED_BYTES are free at `folder`, as measured by `free`."""
    left = free(folder)
    if left < NEEDED_BYTES:
        raise Problem(
            f"the disk is nearly full: {left / 1e9:.2f} GB free, "
            f"{NEEDED_BYTES / 1e9:.0f} GB needed",
            str(folder),
            "free some space ('pip cache purge' and 'make clean' may help), "
            "or move the folder to a larger disk",
        )


def has_venv():
    """Whether this Python can create a .venv with pip in it, for which Debian has a separate
    package."""
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
