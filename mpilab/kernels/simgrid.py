"""Build programs for SMPI, with recorder and harness: the kit's kernels, or those of a C file.

A program is a shared object PROGRAM.so with debugging information, to which recordings refer, and
a stripped PROGRAM.run, of which every rank gets a copy. The sources are those of real runs;
src_c/runtime/simulated contains the differences.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import NoReturn

from mpilab.errors import BuildError, SetupError
from mpilab.kernels import build as real
from mpilab.kernels.build import FLAGS, INCLUDE, MESSAGE_FLAGS, WARNINGS, Built, Diagnostic
from mpilab.util import kit
from mpilab.util.kit import ROOT
from mpilab.util.system import install_line

FOLDER = kit.BUILD / "simulated"
KERNELS = FOLDER / "mpilab_kernels.so"
LIBRARY = FOLDER / "libsimulated.a"
DIFFERENCES = ROOT / "src_c" / "runtime" / "simulated" / "simulated.h"
VERSION_S = 30.0
_VERSION = re.compile(r"SimGrid version (\d+(?:\.\d+)+)")


def tool(name: str) -> str:
    """The path of smpicc or smpirun; SetupError if SimGrid is not installed."""
    path = shutil.which(name)
    if path is None:
        raise SetupError(
            f"{name}: not on PATH, so nothing can be simulated. It is part of SimGrid: "
            f"{how_to_install()} (see 'mpilab doctor')"
        )
    return path


def how_to_install() -> str:
    """How to install SimGrid on this machine, as a command or a sentence."""
    return install_line("smpicc")


def available() -> bool:
    """True if SimGrid is installed."""
    return None not in map(shutil.which, ("smpicc", "smpirun"))


def version() -> str | None:
    """SimGrid's version, e.g. '3.32'; None if it is not installed. Raises as `version_of`."""
    return version_of(tool("smpirun")) if available() else None


@cache
def version_of(smpirun: str) -> str:
    """The SimGrid version of this smpirun; SetupError if it does not report one."""
    said = real.run([smpirun, "-version"], VERSION_S)
    found = _VERSION.search(said.stdout)
    if said.returncode != 0 or found is None:
        raise SetupError(
            f"{smpirun}: '-version' reports no version of SimGrid (exit status {said.returncode}: "
            f"{real.last_lines(said.stdout + said.stderr)!r}); install SimGrid again: "
            f"{how_to_install()}"
        )
    return found[1]


@cache
def kernels() -> Path:
    """The program with all kernels of the kit, rebuilt on first use if sources have changed.

    Raises SetupError without SimGrid, BuildError if the build fails.
    """
    compiler = tool("smpicc")
    if KERNELS.exists() and not os.access(FOLDER, os.W_OK):
        return KERNELS  # in the grader's sandbox, where nothing can have changed
    said = real.make("simulated", smpicc=compiler)
    if said.returncode != 0:
        raise BuildError(
            f"{KERNELS}: cannot be built; 'mpilab doctor' shows what this machine lacks. The "
            f"compiler said:\n{real.last_lines(said.stderr)}"
        )
    return KERNELS


def build(
    source: str,
    directory: Path | str,
    *,
    name: str = "cell",
    stem: str = "kernel",
    timeout: float = 60.0,
    made: bool = False,
) -> Built:
    """Compile C text into the program `directory`/`stem`.so for simulated runs; return Built.

    made   the kit's own C code is already built and must not be built here.

    Errors and warnings refer to the lines of `source`, as in mpilab.kernels.build.build.
    Raises BuildError, and SetupError without SimGrid.
    """
    tool("smpicc")
    if made:
        real.need(LIBRARY)
    else:
        kernels()  # builds the recorder, too
    directory = Path(directory)
    object_file, library = directory / f"{stem}.o", directory / f"{stem}.so"
    c_file = object_file.with_suffix(".c")
    c_file.write_text(f'#line 1 "{name}"\n{source}\n', encoding="utf-8")
    arguments = [
        *FLAGS,
        *WARNINGS,
        *MESSAGE_FLAGS,
        f"-I{INCLUDE}",
        "-DSMPI_NO_OVERRIDE_MALLOC",
        "-include",
        str(DIFFERENCES),
        c_file.name,
        "-o",
        object_file.name,
    ]
    said = real.run(smpicc(arguments, directory, stem, "-c"), timeout)
    warnings = real.parse_diagnostics(said.stderr, source, name)
    if said.returncode != 0:
        _refuse("the compiler", name, [w for w in warnings if w.is_error], warnings, said)
    arguments = [
        "-shared",
        "-Wl,-Bsymbolic",
        "-Wl,--no-undefined",
        "-o",
        library.name,
        real.keep_names_apart(object_file, LIBRARY).name,
        "-Wl,--whole-archive",
        str(LIBRARY),
        "-Wl,--no-whole-archive",
        "-lm",
        "-ldl",
    ]
    said = real.run(smpicc(arguments, directory, stem), timeout)
    if said.returncode != 0:
        found = real.parse_diagnostics(said.stderr, source, name)
        _refuse("the linker", name, found, found, said)
    real.run(["objcopy", "--strip-all", str(library), str(library.with_suffix(".run"))], timeout)
    return Built(library, object_file, warnings)


def smpicc(arguments: Iterable[str], directory: Path, stem: str, *options: str) -> list[str]:
    """The command that runs smpicc in `directory`.

    smpicc is a script that splits its arguments at blanks. So they go into a response file for
    the compiler, and contain no paths.
    """
    quoted = (argument.replace("\\", "\\\\").replace('"', '\\"') for argument in arguments)
    text = "".join(f'"{argument}"\n' for argument in quoted)
    (directory / f"{stem}.arguments").write_text(text, encoding="utf-8")
    return [
        "sh",
        "-c",
        'cd "$0" && exec "$@"',
        str(directory),
        tool("smpicc"),
        *options,
        f"@{stem}.arguments",
    ]


def _refuse(
    who: str,
    name: str,
    told: Iterable[Diagnostic],
    diagnostics: Sequence[Diagnostic],
    said: subprocess.CompletedProcess[str],
) -> NoReturn:
    summary = "\n".join(map(str, told)) or said.stderr.strip() or "no reason given"
    raise BuildError(f"{who} refused {name}:\n{summary}", diagnostics)
