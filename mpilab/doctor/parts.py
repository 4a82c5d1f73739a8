"""Checks of Open MPI and engines, the grading sandbox, emulated hosts, SimGrid, Slurm, Chromium."""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from mpilab.doctor.check import (
    FAILED,
    MISSING,
    OK,
    WARNING,
    Finding,
    Surroundings,
    first_line,
    probe,
    which,
)
from mpilab.doctor.machine import GREETING, HELLO, hello
from mpilab.grading import isolation
from mpilab.hosts.emulated import capabilities
from mpilab.kernels import openmpi
from mpilab.util.kit import PACKAGES, ROOT
from mpilab.util.processes import trouble
from mpilab.util.system import install_line, namespace_remedy

# For some labs or for developers only: SimGrid, Slurm, Chromium.

# A topology with switches inside a zone, like the kit's platforms: SimGrid 4.0 crashes on such a
# cluster outside a zone.
_PLATFORM = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <zone id="world" routing="Full">
    <cluster id="c" prefix="n" suffix="" radical="0-1" speed="1Gf" bw="125MBps" lat="50us"
             topology="FAT_TREE" topo_parameters="1;2;1;1"/>
  </zone>
</platform>
"""


@probe(
    "simgrid",
    limit=8,
    alone=True,
    why="simulated ranks, up to thousands, with times that repeat: labs 03 to 06 and grading "
    "make use of them",
)
def simgrid(around: Surroundings) -> Finding:
    """Check that smpicc compiles and smpirun simulates two ranks on a fat tree."""
    absent = [name for name in ("smpicc", "smpirun") if not shutil.which(name)]
    if absent:
        return Finding(MISSING, f"not on PATH: {', '.join(absent)}", install_line("smpicc"))
    version = first_line(around.run(["smpirun", "-version"]).stdout)
    for name, text in (("smpi.c", HELLO), ("c.xml", _PLATFORM), ("hosts", "n0\nn1\n")):
        (around.folder / name).write_text(text)
    said = around.run(["smpicc", "smpi.c", "-o", "smpi"], cwd=around.folder)
    if said.code == 0:
        command = ["smpirun", "-np", "2", "-platform", "c.xml", "-hostfile", "hosts"]
        command += ["--cfg=smpi/simulate-computation:no", "./smpi"]
        said = around.run(command, cwd=around.folder)
        if said.code == 0 and GREETING in said.stdout:
            return Finding(OK, f"{version}, two simulated ranks run")
    return Finding(
        FAILED,
        f"{version}: two simulated ranks do not run: {trouble(said)}",
        install_line("smpicc"),
    )


@probe("slurm", limit=6, why="labs as jobs of a cluster: sbatch slurm/...; not needed elsewhere")
def slurm(around: Surroundings) -> Finding:
    """Check that sinfo and sbatch are installed, and that a controller has nodes that take jobs."""
    there = [name for name in ("sinfo", "sbatch", "srun", "slurmd", "slurmctld") if which(name)]
    if not {"sinfo", "sbatch"} <= set(there):
        found = f"only {', '.join(there)}" if there else "not installed"
        return Finding(
            MISSING, found, install_line("slurm") + ", or work on your cluster's login node"
        )
    version = first_line(around.run(["sinfo", "--version"]).stdout) or "Slurm"
    said = around.run(["sinfo", "--noheader", "--format=%P %D %t"])
    if said.code != 0:
        return Finding(
            FAILED,
            f"{version} is installed, but no controller answers: {trouble(said, 1)}",
            "start slurmctld and slurmd, or set SLURM_CONF to your cluster's slurm.conf",
        )
    states = [line.split() for line in said.stdout.splitlines() if len(line.split()) == 3]
    ready = sum(int(count) for _, count, state in states if re.match(r"idle|mix|alloc", state))
    if not ready:
        return Finding(
            WARNING,
            f"{version} answers, but no node takes jobs: "
            f"{' / '.join(map(' '.join, states)) or 'no nodes'}",
            "scontrol show node tells why; scontrol update NodeName=... State=RESUME",
        )
    partitions = sorted({partition.rstrip("*") for partition, _, _ in states})
    return Finding(OK, f"{version}, {ready} nodes in {', '.join(partitions)}")


@probe("chromium", limit=8, why="the tests of JupyterLab itself (make test); no lab needs it")
def chromium(around: Surroundings) -> Finding:
    """Check that a headless Chromium starts and loads a page."""
    path = which("chromium", "chromium-browser", "google-chrome")
    if path is None:
        return Finding(MISSING, "not on PATH", install_line("chromium"))
    version = around.run([path, "--version"])
    home = {**os.environ, "HOME": str(around.folder), "XDG_RUNTIME_DIR": str(around.folder)}
    said = around.run(
        [
            path,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            f"--user-data-dir={around.folder / 'chromium'}",
            "--dump-dom",
            "data:text/html,<p>up</p>",
        ],
        environment=home,
    )
    if said.code != 0 or "<p>up</p>" not in said.stdout:
        return Finding(
            FAILED,
            f"{first_line(version.stdout) or path} shows no page: {trouble(said, 1)}",
            install_line("chromium"),
        )
    return Finding(OK, f"{first_line(version.stdout)}, headless")


# Grading: the sandbox and its limits.

GRADING = "mpilab grade keeps submissions apart from your account"


@probe("bubblewrap", limit=6, why=f"{GRADING}; without it only --unsafe-no-sandbox grades")
def bubblewrap(around: Surroundings) -> Finding:
    """Check that bwrap is installed and creates a sandbox for an unprivileged user."""
    path = shutil.which("bwrap")
    if sys.platform != "linux":
        return Finding(
            MISSING,
            f"bubblewrap is for Linux, this is {sys.platform}",
            "grade on Linux, in WSL2 or in a container",
        )
    if path is None:
        return Finding(MISSING, "bwrap is not on PATH", install_line("bwrap"))
    version = first_line(around.run([path, "--version"]).stdout)
    # Like the grader, drop root privileges before starting bubblewrap.
    command = isolation.trial(path)
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *command]
    said = around.run(command, cwd="/")
    if said.code != 0:
        remedy = namespace_remedy(program=path)
        if isolation.is_too_old(said.stderr):
            remedy = f"get bubblewrap {isolation.OLDEST} or newer: {isolation.WHERE}"
        return Finding(FAILED, f"{version} makes no sandbox: {trouble(said)}", remedy)
    return Finding(OK, f"{version}, {path}")


@probe("grading-limits", limit=8, why=f"{GRADING}, and bounds their memory and processes")
def grading_limits(around: Surroundings) -> Finding:
    """Show what the grader's sandbox would use here, according to the grader's own probe."""
    script = "from mpilab.grading.sandbox import open_sandbox; print(open_sandbox().description)"
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGES}:{os.environ.get('PYTHONPATH', '')}"}
    said = around.run([sys.executable, "-c", script], environment=environment)
    if said.code != 0:
        return Finding(FAILED, f"no sandbox: {trouble(said, 1)}", "see bubblewrap above")
    description = first_line(said.stdout)
    if "watchdog" in description:
        return Finding(
            WARNING,
            description,
            "run the grader as root, or in a session of systemd "
            "(systemd-run --user works), for limits that hold",
        )
    return Finding(OK, description)


# Emulated hosts: namespaces, and links with a given bandwidth and latency.


@probe(
    "emulated-hosts",
    limit=8,
    why="labs 03 and 04 on several hosts of this machine (mpilab hosts): without them on one "
    "host whose ranks pretend to be on several",
)
def emulated_hosts(around: Surroundings) -> Finding:
    """Show which capabilities mpilab.hosts.emulated finds by trying, and what is missing."""
    found = capabilities.probe()
    if found.namespaces == "none":
        if found.missing:
            return Finding(
                MISSING, f"not found: {', '.join(found.missing)}", install_line("namespaces")
            )
        return Finding(FAILED, found.reason, namespace_remedy(program=sys.executable))
    if not found.tbf:
        return Finding(
            WARNING, found.describe(), "a kernel with CONFIG_NET_SCH_TBF: modprobe sch_tbf"
        )
    if not found.latency_by:
        return Finding(WARNING, found.describe(), "make build, which makes the relay")
    return Finding(OK, found.describe())


# Open MPI: its version, two ranks, the settings in effect, and the engines.

# Open MPI's own settings files; the environment overrides them.
PARAMETER_FILES = (".openmpi/mca-params.conf", ".prte/mca-params.conf", ".pmix/mca-params.conf")
_SELECTED = re.compile(r"select: component (\w+) selected")
# Output of Open MPI that is due to our verbosity settings.
_VERBOSE = re.compile(r"^\[[^\]]*:\d+\] (?:mca|select|selected|check|btl).*$", re.MULTILINE)
_BTL = re.compile(r"Using (\w+) btl for send to")


@probe("open-mpi", needed=True, why="the ranks are Open MPI's")
def open_mpi(around: Surroundings) -> Finding:
    """Check mpirun's version."""
    mpirun = openmpi.tool("mpirun")
    said = around.run([mpirun, "--version"])
    version = re.search(r"Open MPI\)?\s+v?(\d[\w.]*)", said.stdout)
    if said.code != 0 or version is None:
        return Finding(FAILED, f"{mpirun} --version: {trouble(said)}", f"make setup in {ROOT}")
    if int(version[1].split(".")[0]) < 5:
        return Finding(
            WARNING,
            f"Open MPI {version[1]}, {mpirun}",
            f"the kit is made for Open MPI 5: make setup in {ROOT} brings it",
        )
    return Finding(OK, f"Open MPI {version[1]}, {mpirun}")


@probe("mpirun", needed=True, limit=8, alone=True, why="sweeps and grading start ranks with it")
def mpirun(around: Surroundings) -> Finding:
    """Check that two ranks start, exchange messages and end."""
    with tempfile.TemporaryDirectory(prefix="mpilab-doctor-", dir=_segments()) as segments:
        environment = openmpi.environment(2) | {
            "TMPDIR": str(around.folder),
            "OMPI_MCA_btl_sm_backing_directory": segments,
            # Print which transports are really used.
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
        remedy = (
            "run it by hand to see all of it: mpirun -n 2 hostname; a firewall on the "
            "loopback interface and a full temporary folder are common causes"
        )
        return Finding(FAILED, f"two ranks do not run: {trouble(said)}", mine + remedy)
    pml = _SELECTED.search(said.stderr)
    btls = sorted(set(_BTL.findall(said.stderr)))
    taken = f"pml {pml[1]}" if pml else "pml unknown"
    taken += f", btl {', '.join(btls)}" if btls else ""
    if pml and pml[1] == "ob1" and btls and "sm" not in btls:
        return Finding(
            WARNING,
            f"two ranks run with {taken}: not through shared memory",
            "look at shared-memory and mpi-settings",
        )
    return Finding(OK, f"two ranks run with {taken}")


@probe("mpi-settings", why="the kit tunes Open MPI; a setting of yours that differs wins over it")
def mpi_settings(around: Surroundings) -> Finding:
    """Find settings of the user that override the kit's."""
    ours = openmpi.settings(os.cpu_count() or 1)
    mine = {
        name: value
        for name, value in os.environ.items()
        if name.startswith(("OMPI_MCA_", "PRTE_MCA_", "PMIX_MCA_"))
    }
    against = [
        f"{name}={value} (ours: {ours[name]})"
        for name, value in sorted(mine.items())
        if name in ours and value != ours[name]
    ]
    beside = [f"{name}={value}" for name, value in sorted(mine.items()) if name not in ours]
    beside += [f"~/{name}" for name in PARAMETER_FILES if _sets_something(Path.home() / name)]
    if against:
        names = " ".join(text.split("=")[0] for text in against)
        return Finding(
            WARNING,
            f"yours instead of the kit's: {'; '.join(against)}",
            f"unset {names}, unless you mean it",
        )
    if beside:
        return Finding(
            WARNING, f"set by you: {', '.join(beside)}", "unset or remove them, unless you mean it"
        )
    taken = ", ".join(
        f"{name.removeprefix('OMPI_MCA_')}={value}" for name, value in openmpi.TRANSPORTS.items()
    )
    return Finding(OK, f"the kit's: {taken}; none of yours")


@probe(
    "engines",
    needed=True,
    limit=12,
    alone=True,
    why="the ranks of a notebook: mpilab.Cluster(4).start()",
)
def engines(around: Surroundings) -> Finding:
    """Check that a cluster of two engines starts and responds."""
    script = (
        "import time, mpilab\n"
        "begin = time.monotonic()\n"
        f"cluster = mpilab.Cluster(2, progress=False, timeout={max(around.left - 2, 1):.1f})\n"
        "with cluster:\n"
        "    assert cluster.apply(int) == [0, 0]\n"
        "    print(f'{time.monotonic() - begin:.1f}')\n"
    )
    environment = {**os.environ, "PYTHONPATH": f"{PACKAGES}:{os.environ.get('PYTHONPATH', '')}"}
    said = around.run([sys.executable, "-c", script], environment=environment)
    if said.code != 0:
        return Finding(
            FAILED,
            f"a cluster of 2 ranks does not start: {trouble(said)}",
            f"look at mpirun and packages above first; then make setup in {ROOT}",
        )
    return Finding(OK, f"a cluster of 2 ranks is up after {first_line(said.stdout)} s")


def _segments() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _sets_something(path: Path) -> bool:
    try:
        lines = path.read_text(errors="replace").splitlines()
    except OSError:
        return False
    return any(line.strip() and not line.strip().startswith("#") for line in lines)
