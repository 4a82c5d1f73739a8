"""The checks: Python, compiler and build; memory, cores and disk; Open MPI and engines; the rest.

The rest is the grading sandbox, emulated hosts, SimGrid, Slurm and Chromium. Each function is one
check, registered under the name that `mpilab doctor` shows.
"""

import operator
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

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
from mpilab.hosts.emulated import hosts
from mpilab.kernels import build, jail, openmpi
from mpilab.util import kit, system
from mpilab.util.kit import PACKAGES, ROOT
from mpilab.util.processes import trouble
from mpilab.util.system import install_line, namespace_remedy

MIB = 1 << 20
# Open MPI 5's btl/sm creates a segment of 16 MiB per rank; pages are allocated on first touch.
SEGMENT = 16 * MIB
RANKS = 8  # the maximum that the labs use on a laptop
# For a lab's notebook, kernels and recordings; the .venv is already installed.
TIGHT, ENOUGH = 100 * MIB, 1024 * MIB
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
CPU_V1 = Path("/sys/fs/cgroup/cpu")

OLDEST_PYTHON = (3, 11)
COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    "==": operator.eq,
}
# The packages whose versions are shown; all others that mpilab needs are checked as well.
TOLD = ("ipyparallel", "mpi4py", "numpy", "plotly", "papermill", "jupyterlab")

HELLO = """#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    int rank, size, sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("hello from %d ranks, sum %d\\n", size, sum);
    MPI_Finalize();
    return 0;
}
"""
# What HELLO prints with two ranks.
GREETING = "hello from 2 ranks, sum 1"


# Python, its packages, the C compiler and the build.


@probe("python", needed=True, why="everything runs in it")
def python(around: Surroundings) -> Finding:
    """Check the interpreter's version, and show its path."""
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return Finding(
            FAILED,
            found,
            f"mpilab needs Python {oldest} or newer: make PYTHON=python{oldest} setup",
        )
    return Finding(OK, found)


@probe("packages", needed=True, why="ranks, notebooks and plots come from them")
def packages(around: Surroundings) -> Finding:
    """Check the versions of the Python packages against mpilab's requirements."""
    wanted = [_requirement(text) for text in metadata.requires("mpilab") or ()]
    missing, wrong, there = [], [], {}
    for name, bounds in filter(None, wanted):
        try:
            there[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            missing.append(name)
            continue
        if not _within(there[name], bounds):
            wrong.append(f"{name} {there[name]} (wanted {','.join(map(''.join, bounds))})")
    remedy = f"make setup in {kit.ROOT}"
    if missing:
        return Finding(MISSING, f"not installed: {', '.join(missing)}", remedy)
    if wrong:
        return Finding(WARNING, f"versions differ from those tested: {'; '.join(wrong)}", remedy)
    return Finding(OK, ", ".join(f"{name} {there[name]}" for name in TOLD if name in there))


@probe(
    "compiler",
    needed=True,
    limit=8,
    alone=True,
    why="your kernels are C: they are compiled when the cell runs",
)
def compiler(around: Surroundings) -> Finding:
    """Check that mpicc compiles and links an MPI program."""
    mpicc = openmpi.tool("mpicc")
    behind = first_line(around.run([mpicc, "--showme:command"]).stdout) or "cc"
    if not which(behind):
        return Finding(
            MISSING,
            f"mpicc calls '{behind}', which is not on PATH",
            f"{install_line('compiler')}; or choose another compiler: export OMPI_CC=clang",
        )
    source = around.folder / "hello.c"
    source.write_text(HELLO)
    said = around.run([mpicc, *build.FLAGS, source, "-o", around.folder / "hello"])
    version = first_line(around.run([behind, "--version"]).stdout)
    if said.code != 0:
        return Finding(
            FAILED,
            f"{behind} ({version}) does not build an MPI program: {trouble(said)}",
            install_line("compiler"),
        )
    others = [name for name in ("gcc", "clang") if name != behind and which(name)]
    also = f"; there is also {', '.join(others)} (OMPI_CC picks one)" if others else ""
    return Finding(OK, f"{behind}: {version}, through {mpicc}{also}")


@probe("c-build", needed=True, why="the recorder, the harness and the kit's own kernels")
def c_build(around: Surroundings) -> Finding:
    """Check that the products of src_c exist and are not older than their sources."""
    products = (build.RECORDER, build.KERNELS, build.HARNESS, build.HARNESS_PROGRAM)
    remedy = f"make build in {kit.ROOT}"
    if kit.is_cached():
        remedy = "'mpilab run allgather_ring' compiles them, and reports what is wrong"
    absent = [path.name for path in products if not path.exists()]
    if absent:
        return Finding(MISSING, f"not in {kit.BUILD}: {', '.join(absent)}", remedy)
    if kit.is_cached():  # changed sources would use another folder
        return Finding(OK, f"{len(products)} files in {kit.BUILD}, up to date")
    sources = [path for path in (kit.ROOT / "src_c").rglob("*") if path.suffix in (".c", ".h")]
    made = min(path.stat().st_mtime for path in products)
    newer = [str(path.relative_to(kit.ROOT)) for path in sources if path.stat().st_mtime > made]
    if newer and _stale(around):
        shown = ", ".join(sorted(newer)[:3]) + (", ..." if len(newer) > 3 else "")
        return Finding(WARNING, f"{kit.BUILD} is older than {shown}", remedy)
    return Finding(OK, f"{len(products)} files in {kit.BUILD}, up to date")


@probe(
    "sanitizers",
    limit=8,
    alone=True,
    why="%%kernel --sanitize finds writes out of bounds with AddressSanitizer",
)
def sanitizers(around: Surroundings) -> Finding:
    """Check that a program with AddressSanitizer and UndefinedBehaviorSanitizer links and runs."""
    mpicc = openmpi.tool("mpicc")
    source = around.folder / "sane.c"
    source.write_text("int main(void) { return 0; }\n")
    program = around.folder / "sane"
    command = [mpicc, "-fsanitize=address,undefined", source, "-o", program]
    said = around.run(command)
    remedy = (
        "install the compiler's libasan and libubsan: on Debian, gcc includes them; clang needs "
    )
    remedy += "libclang-rt-dev"
    if said.code != 0:
        return Finding(
            MISSING, f"no program with sanitizers can be linked: {trouble(said)}", remedy
        )
    said = around.run([program])
    if said.code != 0:
        return Finding(FAILED, f"a program with sanitizers does not run: {trouble(said)}", remedy)
    return Finding(OK, "address and undefined link and run")


@probe("addr2line", why="finds the line of your cell in which a rank waits or crashed")
def addr2line(around: Surroundings) -> Finding:
    """Check that addr2line is installed and runs."""
    path = shutil.which("addr2line")
    if path is None:
        return Finding(MISSING, "not on PATH", install_line("compiler"))
    said = around.run([path, "--version"])
    if said.code != 0:
        return Finding(FAILED, f"{path}: {trouble(said)}", install_line("compiler"))
    return Finding(OK, f"{first_line(said.stdout)}, {path}")


@probe("jupyterlab", needed=True, limit=14, why="the labs are notebooks: make lab opens them")
def jupyterlab(around: Surroundings) -> Finding:
    """Check that JupyterLab can be imported and that a server can listen on this machine."""
    script = (
        "import socket, jupyterlab.labapp, jupyterlab\n"
        "with socket.socket() as server:\n"
        "    server.bind(('127.0.0.1', 0)); server.listen()\n"
        "    print(jupyterlab.__version__)\n"
    )
    said = around.run([sys.executable, "-c", script])
    if said.code != 0:
        return Finding(
            FAILED, trouble(said), f"make setup in {kit.ROOT}; a server needs the address 127.0.0.1"
        )
    return Finding(OK, f"{said.stdout.strip()}, a port on 127.0.0.1 can be opened")


def hello(around: Surroundings) -> list[str | Path]:
    """The command for the compiled HELLO, or if there is none, for a Python equivalent."""
    program = around.folder / "hello"
    if program.exists():
        return [program]
    script = (
        "from mpi4py import MPI; c = MPI.COMM_WORLD; s = c.allreduce(c.rank)\n"
        "if c.rank == 0: print(f'hello from {c.size} ranks, sum {s}')\n"
    )
    return [sys.executable, "-c", script]


def _stale(around: Surroundings) -> bool:
    """Whether make would build anything. Times alone mislead if a checkout touched the files."""
    make = shutil.which("make")
    if make is None:
        return True
    # make splits names at blanks: paths relative to src_c contain none.
    folder = Path(kit.ROOT) / "src_c"
    mpicc = os.path.relpath(openmpi.tool("mpicc"), folder)
    return around.run([make, "-q", "-C", folder, "all", f"MPICC={mpicc}"]).code != 0


def _requirement(text: str) -> tuple[str, list[tuple[str, str]]] | None:
    """('numpy', [('>=', '2.2'), ...]) for a requirement that applies here; None for others."""
    text, _, marker = text.partition(";")
    if "extra" in marker or ("sys_platform" in marker and sys.platform not in marker):
        return None
    name = re.match(r"[\w.-]+", text)
    return name and (name[0], re.findall(r"(>=|<=|==|<|>)\s*([\w.]+)", text))


def _within(version: str, bounds: Iterable[tuple[str, str]]) -> bool:
    return all(COMPARISONS[sign](_numbers(version), _numbers(bound)) for sign, bound in bounds)


def _numbers(version: str) -> tuple[int, ...]:
    """(9, 2) for '9.2.0rc1': the numbers of the release without trailing zeros."""
    release = re.match(r"[\d.]*", version)
    numbers = [int(part) for part in release[0].split(".") if part] if release else []
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


# Shared memory, cores and disk space.


@probe("shared-memory", needed=True, why="ranks on one machine pass their messages through it")
def shared_memory(around: Surroundings, folder: str = "/dev/shm") -> Finding:
    """Check that there is room for the ranks' segments and that one can be created."""
    remedy = "mount a tmpfs there; in Docker: docker run --shm-size=1g"
    if not Path(folder).is_dir():
        return Finding(MISSING, f"there is no {folder}", remedy)
    usage = shutil.disk_usage(folder)
    try:
        with tempfile.TemporaryFile(prefix="mpilab-doctor-", dir=folder) as segment:
            segment.truncate(SEGMENT)
            os.posix_fallocate(segment.fileno(), 0, MIB)
    except OSError as error:
        return Finding(FAILED, f"no segment can be created in {folder}: {error.strerror}", remedy)
    ranks = usage.free // SEGMENT
    found = f"{size(usage.free)} of {size(usage.total)} free in {folder}"
    if ranks < 2:
        return Finding(FAILED, f"{found}: too little for two ranks ({size(SEGMENT)} each)", remedy)
    if ranks < RANKS:
        return Finding(WARNING, f"{found}: enough for {ranks} ranks ({size(SEGMENT)} each)", remedy)
    return Finding(OK, f"{found}; a rank needs up to {size(SEGMENT)}")


@probe("cores", why="surplus ranks share cores: results are right, but times longer and noisier")
def cores(around: Surroundings) -> Finding:
    """Count the cores that this process may use, and say what happens with more ranks."""
    usable, quota = len(os.sched_getaffinity(0)), _quota()
    found = f"{usable} core{'s' if usable != 1 else ''}"
    if usable < (os.cpu_count() or usable):
        found += f" of {os.cpu_count()}"
    if quota is not None and quota < usable:
        found += f", but {quota:g} of their time (a container's limit)"
        usable = int(quota)
    strategy = openmpi.yielding(usable + 1, usable or 1)
    pause = int(strategy["OMPI_MCA_threads_pthreads_nanosleep_time"]) // 1000
    found += f"; with more ranks, those that wait sleep for {pause} µs or longer"
    if usable < 2:
        return Finding(
            WARNING, found, ("times of runs are not meaningful here: use two cores or more")
        )
    return Finding(OK, found)


@probe("disk", needed=True, why="notebooks, compiled kernels and recordings need space")
def disk(around: Surroundings) -> Finding:
    """Check the free space in the temporary folder and in the kit's folder."""
    places = {"the temporary folder": tempfile.gettempdir(), "the kit": str(kit.ROOT)}
    told, worst = [], OK
    for name, folder in places.items():
        free = shutil.disk_usage(folder).free
        told.append(f"{size(free)} free in {folder} ({name})")
        if free < TIGHT or not _writable(folder, around):
            worst = FAILED
            if free >= TIGHT:
                told[-1] += ", which cannot be written to"
        elif free < ENOUGH and worst == OK:
            worst = WARNING
    remedy = "" if worst == OK else "free some space, or name another folder: export TMPDIR=..."
    return Finding(worst, "; ".join(told), remedy)


def size(count: int) -> str:
    """A number of bytes in words: '16 MiB'."""
    for unit, bytes_a_unit in (("GiB", 1 << 30), ("MiB", MIB)):
        if count >= bytes_a_unit:
            return f"{count / bytes_a_unit:.3g} {unit}"
    return f"{count / 1024:.3g} KiB"


def _writable(folder: str, around: Surroundings) -> bool:
    """Whether a file can be created in the folder; true for the kit's folder, which may be
    read-only."""
    if folder == str(kit.ROOT):
        return True
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _quota() -> float | None:
    """The control group's CPU limit, in cores; None if there is none."""
    try:
        quota, period = CPU_MAX.read_text().split()
    except (OSError, ValueError):
        try:
            quota = (CPU_V1 / "cpu.cfs_quota_us").read_text().strip()
            period = (CPU_V1 / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return None if quota in ("max", "-1") else int(quota) / int(period)


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
    why="thousands of simulated ranks with reproducible times, for labs and grading",
)
def simgrid(around: Surroundings) -> Finding:
    """Check that smpicc compiles and smpirun simulates two ranks on a fat tree."""
    absent = [name for name in ("smpicc", "smpirun") if not shutil.which(name)]
    if absent:
        return Finding(MISSING, f"not on PATH: {', '.join(absent)}", install_line("smpicc"))
    version = first_line(around.run(["smpirun", "-version"]).stdout)
    for name, text in (("smpi.c", HELLO), ("c.xml", _PLATFORM), ("hosts", "n0\nn1\n")):
        (around.folder / name).write_text(text)
    # As for all simulations: both split the name of a temporary folder at blanks (runners.simgrid).
    environment = {**os.environ, "TMPDIR": "."}
    said = around.run(
        ["smpicc", "smpi.c", "-o", "smpi"], cwd=around.folder, environment=environment
    )
    if said.code == 0:
        command = ["smpirun", "-np", "2", "-platform", "c.xml", "-hostfile", "hosts"]
        command += ["--cfg=smpi/simulate-computation:no", "--cfg=smpi/tmpdir:.", "./smpi"]
        said = around.run(command, cwd=around.folder, environment=environment)
        if said.code == 0 and GREETING in said.stdout:
            return Finding(OK, f"{version}, two simulated ranks run")
    return Finding(
        FAILED,
        f"{version}: two simulated ranks do not run: {trouble(said)}",
        install_line("smpicc"),
    )


@probe("jail", limit=8, why="isolates graded answers from what records and checks them")
def isolation(around: Surroundings) -> Finding:
    """Check that C compiles to WebAssembly with its library, and that this wasm2c is known."""
    absent = [name for name in jail.TOOLS if not shutil.which(name)]
    if absent:
        return Finding(MISSING, f"not on PATH: {', '.join(absent)}", install_line("jail"))
    if why := jail.unavailable(around.left):
        return Finding(FAILED, why, install_line("jail"))
    version = first_line(around.run(["clang", "--version"]).stdout)
    return Finding(OK, f"{version}, wasm2c {jail.wasm2c_version()}")


@probe("slurm", limit=6, why="labs as jobs on a cluster: sbatch slurm/...; not needed elsewhere")
def slurm(around: Surroundings) -> Finding:
    """Check that sinfo and sbatch are installed, and that a controller has nodes that take jobs."""
    there = [name for name in ("sinfo", "sbatch", "srun", "slurmd", "slurmctld") if which(name)]
    if not {"sinfo", "sbatch"} <= set(there):
        found = f"only {', '.join(there)}" if there else "not installed"
        return Finding(MISSING, found, install_line("slurm") + ", or use your cluster's login node")
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
            "scontrol show node gives the reason; scontrol update NodeName=... State=RESUME",
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
            f"{first_line(version.stdout) or path} displays no page: {trouble(said, 1)}",
            install_line("chromium"),
        )
    return Finding(OK, f"{first_line(version.stdout)}, headless")


# Grading: the sandbox and its limits.

GRADING = "mpilab grade sandboxes submissions"


@probe("bubblewrap", limit=6, why=f"{GRADING}; without it only --unsafe-no-sandbox grades")
def bubblewrap(around: Surroundings) -> Finding:
    """Check that bwrap is installed and creates a sandbox for an unprivileged user."""
    path = shutil.which("bwrap")
    if sys.platform != "linux":
        return Finding(
            MISSING,
            f"bubblewrap needs Linux; this is {sys.platform}",
            "grade on Linux, in WSL2 or in a container",
        )
    if path is None:
        return Finding(MISSING, "bwrap is not on PATH", install_line("bwrap"))
    version = first_line(around.run([path, "--version"]).stdout)
    # Like the grader, drop root privileges before starting bubblewrap.
    command = system.trial(path)
    if os.geteuid() == 0:
        command = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--", *command]
    said = around.run(command, cwd="/")
    if said.code != 0:
        remedy = namespace_remedy(program=path)
        if system.is_too_old(said.stderr):
            remedy = f"get bubblewrap {system.OLDEST} or newer: {system.WHERE}"
        return Finding(FAILED, f"{version} creates no sandbox: {trouble(said)}", remedy)
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
            "(systemd-run --user works), for enforced limits",
        )
    return Finding(OK, description)


# Emulated hosts: namespaces, and links with a given bandwidth and latency.


@probe(
    "emulated-hosts",
    limit=8,
    why=(
        "labs 03 and 04 on several hosts of this machine (mpilab hosts): without them, on one "
        "host whose ranks report assigned places"
    ),
)
def emulated_hosts(around: Surroundings) -> Finding:
    """Show which capabilities mpilab.hosts.emulated detects by testing, and what is missing."""
    found = hosts.probe()
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
# Output of Open MPI caused by our verbosity settings.
_VERBOSE = re.compile(r"^\[[^\]]*:\d+\] (?:mca|select|selected|check|btl).*$", re.MULTILINE)
_BTL = re.compile(r"Using (\w+) btl for send to")


@probe("open-mpi", needed=True, why="Open MPI runs the ranks")
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
            f"the kit needs Open MPI 5: make setup in {ROOT} installs it",
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
            "for the full output, run: mpirun -n 2 hostname; a firewall on the "
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


@probe("mpi-settings", why="the kit tunes Open MPI; your own settings take precedence")
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
            f"your settings override the kit's: {'; '.join(against)}",
            f"unset {names}, unless they are intended",
        )
    if beside:
        return Finding(
            WARNING,
            f"set by you: {', '.join(beside)}",
            "unset or remove them, unless they are intended",
        )
    taken = ", ".join(
        f"{name.removeprefix('OMPI_MCA_')}={value}" for name, value in openmpi.TRANSPORTS.items()
    )
    return Finding(OK, f"the kit's: {taken}; none set by you")


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
