"""Copies of the kit in other places, and Python environments for them, created in a second or
two."""

import os
import shutil
import sys
from pathlib import Path

from mpilab.kernels.simgrid import kernels
from mpilab.util.kit import ROOT

# The files in Git, and what 'make setup' compiles.
KIT = (
    "mpilab",
    "src_c",
    "labs",
    "grading",
    "hostfiles",
    "slurm",
    "data",
    "docs",
    "tools",
    "Makefile",
    "MANIFEST.in",
    "README.md",
    "LICENSE",
    "pyproject.toml",
    "constraints.txt",
    "environment.yml",
)


def copy_of_kit(folder, *, compiled=True):
    """Copy the kit to `folder`, a new one; with `compiled`, it includes what is compiled for
    simulations, except the last step, which is left to the first simulation."""
    leave_out = shutil.ignore_patterns("__pycache__", "mpilab-logs", ".ipynb_checkpoints", ".lock")
    for name in KIT:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=leave_out)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    if compiled:
        kernels()
        left = ("nbgrader", "python", "sanitize", ".lock")
        last = ("mpilab_kernels.*", "mpilab-harness-sanitized")
        leave_out = shutil.ignore_patterns(*left, *last)
        shutil.copytree(ROOT / "build", folder / "build", ignore=leave_out)
    return folder


def python_in(folder):
    """The interpreter of a copy of this Python's environment in `folder`/.venv, with all of its
    packages and with Open MPI, but without mpilab. Files are linked, not copied, where they can."""
    prefix = Path(sys.prefix)
    venv = folder / ".venv"
    shutil.copytree(
        prefix,
        venv,
        symlinks=True,
        copy_function=_link,
        ignore=shutil.ignore_patterns("*mpilab*", "__pycache__"),
    )
    return venv / "bin" / Path(sys.executable).name


def objects_for(given):
    """Copy object files of the kit's build beside the sources `given` from which they were made.

    Copies keep the times of the originals, so 'make' finds them up to date. Libraries, which also
    contain the answers, are linked from what is there.
    """
    kernels()  # no process builds the objects of simulations while they are copied
    for source in (given / "src_c").rglob("*.c"):
        name = source.relative_to(given / "src_c")
        for path in (Path("build", name), Path("build", "simulated", name)):
            for made in (path.with_suffix(".o"), path.with_suffix(".d")):
                if (ROOT / made).exists():
                    (given / made).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(ROOT / made, given / made)


def _link(source, target, **_):
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system
        shutil.copy2(source, target, follow_symlinks=False)
