"""Programs of SMPI: the kit's kernels, or those of a C file, with recorder and harness.

A program is a shared object PROGRAM.so with debugging information, which recordings refer to, and
PROGRAM.run beside it without: every rank gets a copy of that one. The sources are those of the real
runs; src_c/simulated has what differs.
"""

import fcntl
import os
import shutil
from functools import cache
from pathlib import Path

from mpilab import build as real
from mpilab.build import FLAGS, INCLUDE, ROOT, SAYING, WARNINGS, Built
from mpilab.errors import BuildError, SetupError
from mpilab.sites import SIMULATED_KERNELS

FOLDER = real.BUILD / "simulated"
KERNELS = SIMULATED_KERNELS
LIBRARY = FOLDER / "libsimulated.a"
DIFFERENCES = ROOT / "src_c" / "simulated" / "simulated.h"


def tool(name):
    """The path of smpicc or smpirun; SetupError where SimGrid is not installed."""
    path = shutil.which(name)
    if path is None:
        from mpilab.doctor.check import install

        raise SetupError(
            f"{name}: not on PATH, so nothing can be simulated. SimGrid brings it: "
            f"{install('smpicc')} (see 'mpilab doctor')"
        )
    return path


def available():
    """Is SimGrid installed?"""
    return None not in map(shutil.which, ("smpicc", "smpirun"))


@cache
def kernels():
    """The program with all kernels of the kit; what has changed is built when first asked for.

    Raises SetupError without SimGrid, BuildError where it cannot be built.
    """
    smpicc = tool("smpicc")
    if KERNELS.exists() and not os.access(FOLDER, os.W_OK):
        return KERNELS  # in the grader's sandbox, where nothing can have changed
    FOLDER.mkdir(parents=True, exist_ok=True)
    sources = ROOT / "src_c"
    place = os.path.relpath(real.BUILD, sources)  # make takes a blank for the end of a name
    with open(FOLDER / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two notebooks may ask at once
        said = real.run(["make", "-s", "-C", str(sources), f"BUILD={place}", f"SMPICC={smpicc}",
                          f"-j{os.cpu_count() or 1}", "simulated"], 600.0)  # fmt: skip
    if said.returncode != 0:
        raise BuildError(
            f"{KERNELS}: cannot be made; run 'make -C src_c simulated' in {ROOT}. The compiler "
            f"said:\n{real.last_lines(said.stderr)}"
        )
    return KERNELS


def build(source, directory, *, name="cell", stem="kernel", timeout=60.0, made=False):
    """Compile C text into the program `directory`/`stem`.so for simulated runs; returns Built.

    made   the kit's own C code is built already, and must not be built here.

    Errors and warnings are told as those of mpilab.build.build, at the lines of `source`. Raises
    BuildError, and SetupError without SimGrid.
    """
    tool("smpicc")
    if made:
        real.need(LIBRARY)
    else:
        kernels()  # with them comes the recorder
    directory = Path(directory)
    object_file, library = directory / f"{stem}.o", directory / f"{stem}.so"
    c_file = object_file.with_suffix(".c")
    c_file.write_text(f'#line 1 "{name}"\n{source}\n', encoding="utf-8")
    arguments = [*FLAGS, *WARNINGS, *SAYING, f"-I{INCLUDE}", "-DSMPI_NO_OVERRIDE_MALLOC",
                 "-include", str(DIFFERENCES), c_file.name, "-o", object_file.name]  # fmt: skip
    said = real.run(_smpicc(arguments, directory, stem, "-c"), timeout)
    warnings = real.parse_diagnostics(said.stderr, source, name)
    if said.returncode != 0:
        _refuse("the compiler", name, [w for w in warnings if w.is_error], warnings, said)
    arguments = ["-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-o", library.name,
                 object_file.name, "-Wl,--whole-archive", str(LIBRARY), "-Wl,--no-whole-archive",
                 "-lm", "-ldl"]  # fmt: skip
    said = real.run(_smpicc(arguments, directory, stem), timeout)
    if said.returncode != 0:
        found = real.parse_diagnostics(said.stderr, source, name)
        _refuse("the linker", name, found, found, said)
    real.run(["objcopy", "--strip-all", str(library), str(library.with_suffix(".run"))], timeout)
    return Built(library, object_file, warnings)


def _smpicc(arguments, directory, stem, *options):
    """The command that runs smpicc in `directory`. It is a script that takes arguments apart at
    their blanks: so they come from a file of the compiler's, and no path is among them."""
    quoted = (argument.replace("\\", "\\\\").replace('"', '\\"') for argument in arguments)
    text = "".join(f'"{argument}"\n' for argument in quoted)
    (directory / f"{stem}.arguments").write_text(text, encoding="utf-8")
    return ["sh", "-c", 'cd "$0" && exec "$@"', str(directory), tool("smpicc"), *options,
            f"@{stem}.arguments"]  # fmt: skip


def _refuse(who, name, told, diagnostics, said):
    summary = "\n".join(map(str, told)) or said.stderr.strip() or "no reason given"
    raise BuildError(f"{who} refused {name}:\n{summary}", diagnostics)
