"""Python, its packages, the C compiler and what was built with it."""

import os
import platform
import re
import shutil
import sys
from importlib import metadata
from pathlib import Path

from mpilab import build, openmpi
from mpilab.doctor.check import (
    FAILED,
    MISSING,
    OK,
    WARNING,
    Finding,
    first_line,
    install,
    probe,
    which,
)
from mpilab.programs import trouble

OLDEST_PYTHON = (3, 11)
# The packages whose versions are told; all others that mpilab needs have to be there as well.
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


@probe("python", needed=True, why="everything runs in it")
def python(around):
    """The interpreter's version, and whose it is."""
    found = f"{platform.python_version()}, {sys.executable}"
    if sys.version_info[:2] < OLDEST_PYTHON:
        oldest = ".".join(map(str, OLDEST_PYTHON))
        return Finding(FAILED, found, f"mpilab needs Python {oldest} or newer: make PYTHON=python"
                       f"{oldest} setup")  # fmt: skip
    return Finding(OK, found)


@probe("packages", needed=True, why="ranks, notebooks and plots come from them")
def packages(around):
    """The versions of the Python packages, against what mpilab asks for."""
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
    remedy = f"make setup in {build.ROOT}"
    if missing:
        return Finding(MISSING, f"not installed: {', '.join(missing)}", remedy)
    if wrong:
        return Finding(WARNING, f"other versions than tested: {'; '.join(wrong)}", remedy)
    return Finding(OK, ", ".join(f"{name} {there[name]}" for name in TOLD if name in there))


@probe("compiler", needed=True, limit=8, alone=True,
       why="your kernels are C: they are compiled when the cell runs")  # fmt: skip
def compiler(around):
    """mpicc compiles and links an MPI program."""
    mpicc = openmpi.tool("mpicc")
    behind = first_line(around.run([mpicc, "--showme:command"]).stdout) or "cc"
    if not which(behind):
        return Finding(
            MISSING,
            f"mpicc calls '{behind}', which is not on PATH",
            f"{install('compiler')}; or name another one: export OMPI_CC=clang",
        )
    source = around.folder / "hello.c"
    source.write_text(HELLO)
    said = around.run([mpicc, *build.FLAGS, source, "-o", around.folder / "hello"])
    version = first_line(around.run([behind, "--version"]).stdout)
    if said.code != 0:
        return Finding(FAILED, f"{behind} ({version}) does not build an MPI program: "
                       f"{trouble(said)}", install("compiler"))  # fmt: skip
    others = [name for name in ("gcc", "clang") if name != behind and which(name)]
    also = f"; there is also {', '.join(others)} (OMPI_CC picks one)" if others else ""
    return Finding(OK, f"{behind}: {version}, through {mpicc}{also}")


@probe("c-build", needed=True, why="the recorder, the harness and the kit's own kernels")
def c_build(around):
    """What src_c builds is there and not older than its source."""
    products = (build.RECORDER, build.KERNELS, build.HARNESS, build.HARNESS_PROGRAM)
    remedy = f"make build in {build.ROOT}"
    absent = [path.name for path in products if not path.exists()]
    if absent:
        return Finding(MISSING, f"not in {build.BUILD}: {', '.join(absent)}", remedy)
    sources = [path for path in (build.ROOT / "src_c").rglob("*") if path.suffix in (".c", ".h")]
    made = min(path.stat().st_mtime for path in products)
    newer = [str(path.relative_to(build.ROOT)) for path in sources if path.stat().st_mtime > made]
    if newer and _stale(around):
        shown = ", ".join(sorted(newer)[:3]) + (", ..." if len(newer) > 3 else "")
        return Finding(WARNING, f"{build.BUILD} is older than {shown}", remedy)
    return Finding(OK, f"{len(products)} files in {build.BUILD}, up to date")


@probe("sanitizers", limit=8, alone=True,
       why="%%kernel --sanitize finds writes out of bounds with AddressSanitizer")  # fmt: skip
def sanitizers(around):
    """A program with AddressSanitizer and UndefinedBehaviorSanitizer links and runs."""
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
def addr2line(around):
    """addr2line is there and answers."""
    path = shutil.which("addr2line")
    if path is None:
        return Finding(MISSING, "not on PATH", install("compiler"))
    said = around.run([path, "--version"])
    if said.code != 0:
        return Finding(FAILED, f"{path}: {trouble(said)}", install("compiler"))
    return Finding(OK, f"{first_line(said.stdout)}, {path}")


@probe("jupyterlab", needed=True, limit=14, why="the labs are notebooks: make lab opens them")
def jupyterlab(around):
    """JupyterLab can be imported, and a server can listen on this machine."""
    script = (
        "import socket, jupyterlab.labapp, jupyterlab\n"
        "with socket.socket() as server:\n"
        "    server.bind(('127.0.0.1', 0)); server.listen()\n"
        "    print(jupyterlab.__version__)\n"
    )
    said = around.run([sys.executable, "-c", script])
    if said.code != 0:
        return Finding(FAILED, trouble(said), f"make setup in {build.ROOT}; a server needs the "
                       "address 127.0.0.1")  # fmt: skip
    return Finding(OK, f"{said.stdout.strip()}, a port on 127.0.0.1 can be opened")


def hello(around):
    """The compiled HELLO, or a Python program that does the same where there is none."""
    program = around.folder / "hello"
    if program.exists():
        return [program]
    script = (
        "from mpi4py import MPI; c = MPI.COMM_WORLD; s = c.allreduce(c.rank)\n"
        "if c.rank == 0: print(f'hello from {c.size} ranks, sum {s}')\n"
    )
    return [sys.executable, "-c", script]


def _stale(around):
    """Would make build anything? Times alone lie where a checkout touched the files."""
    make = shutil.which("make")
    if make is None:
        return True
    # make takes a blank for the end of a name: paths as seen from src_c hold none of ours.
    folder = Path(build.ROOT) / "src_c"
    mpicc = os.path.relpath(openmpi.tool("mpicc"), folder)
    return around.run([make, "-q", "-C", folder, "all", f"MPICC={mpicc}"]).code != 0


def _requirement(text):
    """('numpy', [('>=', '2.2'), ...]) of a requirement that applies here; None for others."""
    text, _, marker = text.partition(";")
    if "extra" in marker or ("sys_platform" in marker and sys.platform not in marker):
        return None
    name = re.match(r"[\w.-]+", text)[0]
    return name, re.findall(r"(>=|<=|==|<|>)\s*([\w.]+)", text)


def _within(version, bounds):
    compare = {">=": lambda a, b: a >= b, "<": lambda a, b: a < b, "<=": lambda a, b: a <= b,
               ">": lambda a, b: a > b, "==": lambda a, b: a == b}  # fmt: skip
    return all(compare[sign](_numbers(version), _numbers(bound)) for sign, bound in bounds)


def _numbers(version):
    """(9, 2) of '9.2.0rc1': the release's numbers without zeros at the end."""
    numbers = [int(part) for part in re.match(r"[\d.]+", version)[0].split(".") if part]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)
