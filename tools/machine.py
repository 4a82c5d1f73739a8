"""Is this machine fit for the kit? Each check raises Problem, or returns quietly."""

import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from packages import install_line
from problem import Problem

# A full .venv takes 0.7 GB; pip unpacks its downloads and keeps a cache beside that.
NEEDED_BYTES = 2 * 10**9

CONDA_ROUTE = "take the conda route: conda env create -f environment.yml"


def check_folder(root):
    """Raise Problem where the path of the kit would break venv (':') or make (the others)."""
    odd = sorted(set(str(root)) & set("\n:$#'\"\\"))
    if odd:
        raise Problem(
            f"the folder's path holds {odd[0]!r}, which make or Python's venv cannot take",
            str(root),
            f"move it, e.g. mv {str(root)!r} ~/mpilab",
        )


def check_platform(system=None, machine=None, libc=None, bits=None):
    """Raise Problem where Open MPI has no wheel for this platform.

    There are wheels for glibc 2.28 and later on x86_64 and aarch64, and for macOS.
    """
    system = system or platform.system()
    machine = machine or platform.machine()
    libc = libc if libc is not None else platform.libc_ver()
    bits = bits or (64 if sys.maxsize > 2**32 else 32)
    where = f"{system} {machine}, {bits}-bit Python {sys.executable}"
    if system == "Darwin":
        return
    if system != "Linux" or machine not in ("x86_64", "aarch64") or bits != 64:
        raise Problem(f"Open MPI has no wheel for {system} {machine}", where, CONDA_ROUTE)
    name, version = libc
    if name != "glibc":
        raise Problem(
            f"Open MPI's wheel needs glibc, and this C library is {name or 'another one (musl?)'}",
            where,
            "use a distribution with glibc, e.g. the container image debian:12",
        )
    if tuple(int(part) for part in version.split(".")[:2]) < (2, 28):
        raise Problem(f"Open MPI's wheel needs glibc 2.28, this is {version}", where, CONDA_ROUTE)


def check_compiler():
    """Raise Problem where the C compiler that mpicc calls is missing or cannot link a program."""
    compiler = os.environ.get("OMPI_CC", "cc")
    remedy = f"{install_line('compiler')}   (another compiler than cc: OMPI_CC=clang make ...)"
    if shutil.which(compiler) is None:
        where = f"PATH={os.environ.get('PATH', '')}"
        raise Problem(f"no C compiler: {compiler!r} was not found", where, remedy)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "hello.c")
        source.write_text('#include <stdio.h>\nint main(void) { return puts("") < 0; }\n')
        run = subprocess.run(
            [compiler, "-o", Path(folder, "hello"), source],
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


def free_bytes(folder):
    """Bytes that this user may still write on the disk that holds `folder`."""
    return shutil.disk_usage(folder).free


def check_disk(folder, free=free_bytes):
    """Raise Problem where less than NEEDED_BYTES are free at `folder`; `free` measures."""
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
    """Whether this Python can make a .venv with pip in it; Debian ships that as a package."""
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))
