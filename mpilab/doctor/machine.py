"""Checks of Python, the C compiler and the build, and of shared memory, cores and disk space."""

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
from mpilab.kernels import build, openmpi
from mpilab.util import kit
from mpilab.util.processes import trouble
from mpilab.util.system import install_line

MIB = 1 << 20
# Open MPI 5's btl/sm creates a segment of 16 MiB per rank; pages are allocated on first touch.
SEGMENT = 16 * MIB
RANKS = 8  # the most that the labs use on a laptop
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
        return Finding(WARNING, f"other versions than tested: {'; '.join(wrong)}", remedy)
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
            f"{install_line('compiler')}; or name another one: export OMPI_CC=clang",
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
        remedy = "'mpilab run allgather_ring' compiles them, and tells what is amiss"
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
    remedy = "install the compiler's libasan and libubsan: gcc brings them on Debian; clang needs "
    remedy += "libclang-rt-dev"
    if said.code != 0:
        return Finding(
            MISSING, f"no program with sanitizers can be linked: {trouble(said)}", remedy
        )
    said = around.run([program])
    if said.code != 0:
        return Finding(FAILED, f"a program with sanitizers does not run: {trouble(said)}", remedy)
    return Finding(OK, "address and undefined link and run")


@probe("addr2line", why="the line of your cell that a rank waits in or crashed in")
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
    if not os.path.isdir(folder):
        return Finding(MISSING, f"there is no {folder}", remedy)
    usage = shutil.disk_usage(folder)
    try:
        with tempfile.TemporaryFile(prefix="mpilab-doctor-", dir=folder) as segment:
            segment.truncate(SEGMENT)
            os.posix_fallocate(segment.fileno(), 0, MIB)
    except OSError as error:
        return Finding(FAILED, f"no segment can be made in {folder}: {error.strerror}", remedy)
    ranks = usage.free // SEGMENT
    found = f"{size(usage.free)} of {size(usage.total)} free in {folder}"
    if ranks < 2:
        return Finding(FAILED, f"{found}: too little for two ranks ({size(SEGMENT)} each)", remedy)
    if ranks < RANKS:
        return Finding(WARNING, f"{found}: enough for {ranks} ranks ({size(SEGMENT)} each)", remedy)
    return Finding(OK, f"{found}; a rank takes up to {size(SEGMENT)}")


@probe("cores", why="ranks beyond the cores take turns: right, but slower and noisier")
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
        return Finding(WARNING, found, "times of runs mean little here: use two cores or more")
    return Finding(OK, found)


@probe("disk", needed=True, why="notebooks, compiled kernels and recordings need room")
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
    remedy = "" if worst == OK else "free some room, or name another folder: export TMPDIR=..."
    return Finding(worst, "; ".join(told), remedy)


def size(count: int) -> str:
    """A number of bytes in words: '16 MiB'."""
    for unit, bytes_a_unit in (("GiB", 1 << 30), ("MiB", MIB)):
        if count >= bytes_a_unit:
            return f"{count / bytes_a_unit:.3g} {unit}"
    return f"{count / 1024:.3g} KiB"


def _writable(folder: str, around: Surroundings) -> bool:
    """Whether a file can be created in the folder; true for the kit's, which may be read-only."""
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
