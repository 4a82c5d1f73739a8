"""Open MPI: its version, two ranks that really run, the settings in force, the engines."""

import os
import re
import sys
import tempfile
from pathlib import Path

from mpilab import openmpi
from mpilab.build import ROOT
from mpilab.doctor.base import GREETING, hello
from mpilab.doctor.check import FAILED, OK, WARNING, Finding, first_line, probe
from mpilab.programs import trouble

# Open MPI's own files of settings; the environment wins over them.
PARAMETER_FILES = (".openmpi/mca-params.conf", ".prte/mca-params.conf", ".pmix/mca-params.conf")
_SELECTED = re.compile(r"select: component (\w+) selected")
# What Open MPI says because we asked it to be verbose.
_VERBOSE = re.compile(r"^\[[^\]]*:\d+\] (?:mca|select|selected|check|btl).*$", re.MULTILINE)
_BTL = re.compile(r"Using (\w+) btl for send to")


@probe("open-mpi", needed=True, why="the ranks are Open MPI's")
def open_mpi(around):
    """mpirun's version."""
    mpirun = openmpi.tool("mpirun")
    said = around.run([mpirun, "--version"])
    version = re.search(r"Open MPI\)?\s+v?(\d[\w.]*)", said.stdout)
    if said.code != 0 or version is None:
        return Finding(FAILED, f"{mpirun} --version: {trouble(said)}", f"make setup in {ROOT}")
    if int(version[1].split(".")[0]) < 5:
        return Finding(WARNING, f"Open MPI {version[1]}, {mpirun}", "the kit is made for Open MPI "
                       f"5: make setup in {ROOT} brings it")  # fmt: skip
    return Finding(OK, f"Open MPI {version[1]}, {mpirun}")


@probe("mpirun", needed=True, limit=8, alone=True, why="sweeps and grading start ranks with it")
def mpirun(around):
    """Two ranks start, talk to each other and end."""
    with tempfile.TemporaryDirectory(prefix="mpilab-doctor-", dir=_segments()) as segments:
        environment = openmpi.environment(2) | {
            "TMPDIR": str(around.folder),
            "OMPI_MCA_btl_sm_backing_directory": segments,
            # They say which transports they really took.
            "OMPI_MCA_pml_base_verbose": "10",
            "OMPI_MCA_btl_base_verbose": "10",
            "OMPI_MCA_bml_base_verbose": "10",
        }
        command = [openmpi.tool("mpirun"), "-n", "2", *hello(around)]
        said = around.run(command, environment=environment)
    if said.code != 0 or GREETING not in said.stdout:
        settings = mpi_settings(around)
        mine = f"{settings.remedy}; then try again. Else " if settings.status == WARNING else ""
        said = said._replace(stderr=_VERBOSE.sub("", said.stderr))
        remedy = ("run it by hand to see all of it: mpirun -n 2 hostname; a firewall on the "
                  "loopback interface and a full temporary folder are common causes")  # fmt: skip
        return Finding(FAILED, f"two ranks do not run: {trouble(said)}", mine + remedy)
    pml = _SELECTED.search(said.stderr)
    btls = sorted(set(_BTL.findall(said.stderr)))
    taken = f"pml {pml[1]}" if pml else "pml unknown"
    taken += f", btl {', '.join(btls)}" if btls else ""
    if pml and pml[1] == "ob1" and btls and "sm" not in btls:
        return Finding(WARNING, f"two ranks run with {taken}: not through shared memory",
                       "look at shared-memory and mpi-settings")  # fmt: skip
    return Finding(OK, f"two ranks run with {taken}")


@probe("mpi-settings", why="the kit tunes Open MPI; a setting of yours that differs wins over it")
def mpi_settings(around):
    """Settings of the user's that override the kit's."""
    ours = openmpi.settings(os.cpu_count() or 1)
    mine = {name: value for name, value in os.environ.items()
            if name.startswith(("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_"))}  # fmt: skip
    against = [
        f"{name}={value} (ours: {ours[name]})"
        for name, value in sorted(mine.items())
        if name in ours and value != ours[name]
    ]
    beside = [f"{name}={value}" for name, value in sorted(mine.items()) if name not in ours]
    beside += [f"~/{name}" for name in PARAMETER_FILES if _sets_something(Path.home() / name)]
    if against:
        names = " ".join(text.split("=")[0] for text in against)
        return Finding(WARNING, f"yours instead of the kit's: {'; '.join(against)}",
                       f"unset {names}, unless you mean it")  # fmt: skip
    if beside:
        return Finding(WARNING, f"set by you: {', '.join(beside)}",
                       "unset or remove them, unless you mean it")  # fmt: skip
    taken = ", ".join(f"{name.removeprefix('OMPI_MCA_')}={value}"
                      for name, value in openmpi.TRANSPORTS.items())  # fmt: skip
    return Finding(OK, f"the kit's: {taken}; none of yours")


@probe("engines", needed=True, limit=12, alone=True,
       why="the ranks of a notebook: mpilab.Cluster(4).start()")  # fmt: skip
def engines(around):
    """A cluster of two engines starts and answers."""
    script = (
        "import time, mpilab\n"
        "begin = time.monotonic()\n"
        f"cluster = mpilab.Cluster(2, progress=False, timeout={max(around.left - 2, 1):.1f})\n"
        "with cluster:\n"
        "    assert cluster.apply(int) == [0, 0]\n"
        "    print(f'{time.monotonic() - begin:.1f}')\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    said = around.run([sys.executable, "-c", script], environment=environment)
    if said.code != 0:
        return Finding(FAILED, f"a cluster of 2 ranks does not start: {trouble(said)}",
                       "look at mpirun and packages above first; then make setup in "
                       f"{ROOT}")  # fmt: skip
    return Finding(OK, f"a cluster of 2 ranks is up after {first_line(said.stdout)} s")


def _segments():
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _sets_something(path):
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(line.strip() and not line.strip().startswith("#") for line in lines)
