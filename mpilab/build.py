"""Compile a kernel: from C source to a shared object that can be loaded and recorded.

The student's source keeps its own line numbers: what the compiler says names the cell and its line.
"""

import os
import re
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from mpilab import openmpi
from mpilab.errors import BuildError, SetupError

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "src_c" / "include"
BUILD = ROOT / "build"
RECORDER = BUILD / "librecorder.a"
HARNESS = BUILD / "libmpilab_harness.so"
HARNESS_PROGRAM = BUILD / "mpilab-harness"
KERNELS = BUILD / "libmpilab_kernels.so"

# Tail calls would hide the line of the kernel that an MPI call was made in; of DWARF 5 as gcc 12
# writes it, addr2line 2.40 tells the wrong file.
FLAGS = ("-std=c11", "-fPIC", "-O2", "-gdwarf-4", "-fno-omit-frame-pointer",
         "-fno-optimize-sibling-calls")  # fmt: skip
# A function that nobody declared is an error at its line, as for newer compilers by themselves.
WARNINGS = ("-Wall", "-Wextra", "-Werror=implicit-function-declaration")
# A tab counts as one column, as in the line that is shown.
SAYING = ("-fdiagnostics-color=never", "-ftabstop=1")

_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<text>.*)$"
)
# The linker names the line where it has debugging information, otherwise the section.
_UNDEFINED = re.compile(r"^.*?:(?:(?P<line>\d+)|\([^)]*\)): (?P<text>undefined reference to .*)$")


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler, at `line` and `column` (from 1) of the source."""

    severity: str
    line: int
    column: int
    text: str
    source: str = ""

    @property
    def is_error(self):
        """Does it keep the kernel from being built?"""
        return "error" in self.severity

    def __str__(self):
        pointer = ""
        if self.source:
            pointer = f"\n    {self.source}\n    {' ' * max(self.column - 1, 0)}^"
        return f"line {self.line}: {self.severity}: {self.text}{pointer}"


@dataclass(frozen=True)
class Built:
    """A shared object with a kernel, and the warnings that came with it."""

    library: Path
    object: Path
    warnings: tuple = ()


def need(path):
    """`path` of the C build; SetupError with the remedy when it is not there."""
    if not path.exists():
        raise SetupError(f"{path}: not built yet. Run 'make build' in {ROOT}.")
    return path


def compile_object(source, target, *, name="cell", timeout=60.0):
    """Compile C text into the object file `target`; returns the warnings.

    `name` is what diagnostics call the source. Raises BuildError, with the diagnostics, when the
    compiler refuses it or takes longer than `timeout` seconds.
    """
    target = Path(target)
    c_file = target.with_suffix(".c")
    c_file.write_text(f'#line 1 "{name}"\n{source}\n', encoding="utf-8")
    command = [openmpi.tool("mpicc"), *FLAGS, *WARNINGS, *SAYING, f"-I{INCLUDE}",
               "-c", str(c_file), "-o", str(target)]  # fmt: skip
    said = _run(command, timeout)
    diagnostics = parse_diagnostics(said.stderr, source, name)
    if said.returncode != 0:
        errors = [d for d in diagnostics if d.is_error]
        summary = "\n".join(map(str, errors)) or said.stderr.strip() or "no reason given"
        raise BuildError(f"the compiler refused {name}:\n{summary}", diagnostics)
    return diagnostics


def link(objects, library, *, source="", name="cell", timeout=60.0):
    """Link objects and a recorder of their own into the shared object `library`.

    Raises BuildError for a function that is nowhere, at the line of `source` that calls it.
    """
    command = [openmpi.tool("mpicc"), "-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined",
               "-o", str(library), *map(str, objects), "-Wl,--whole-archive", str(need(RECORDER)),
               "-Wl,--no-whole-archive", "-lm", "-ldl"]  # fmt: skip
    said = _run(command, timeout)
    if said.returncode != 0:
        diagnostics = parse_diagnostics(said.stderr, source, name)
        summary = "\n".join(map(str, diagnostics)) or said.stderr.strip() or "no reason given"
        raise BuildError(f"the linker refused {name}:\n{summary}", diagnostics)


def cell_source(cell):
    """C text of a %%kernel cell. The magic becomes an empty line: lines keep their numbers."""
    first, newline, rest = cell.partition("\n")
    return newline + rest if first.startswith("%%") else cell


def build(source, directory, *, name="cell", stem="kernel"):
    """Compile and link C text into `directory`/`stem`.so; returns Built. Raises BuildError."""
    directory = Path(directory)
    object_file, library = directory / f"{stem}.o", directory / f"{stem}.so"
    warnings = compile_object(source, object_file, name=name)
    link([object_file], library, source=source, name=name)
    return Built(library, object_file, warnings)


def parse_diagnostics(text, source, name):
    """The messages of gcc or clang, and of the linker, about the source called `name`."""
    lines = source.split("\n")
    found = []
    for line in text.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match and match["file"] == name:
            number = int(match["line"])
            shown = lines[number - 1] if 0 < number <= len(lines) else ""
            found.append(Diagnostic(match["severity"], number, int(match["column"] or 1),
                                    match["text"], shown.expandtabs(1)))  # fmt: skip
        elif match := _UNDEFINED.match(line):
            number = int(match["line"] or 0)
            shown = lines[number - 1] if 0 < number <= len(lines) else ""
            column = len(shown) - len(shown.lstrip()) + 1
            found.append(Diagnostic("error", number, column, match["text"], shown.expandtabs(1)))
    return tuple(found)


def _run(command, timeout):
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", errors="replace", start_new_session=True,
        env={**os.environ, "LC_ALL": "C"})  # fmt: skip
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        # mpicc starts the compiler, which starts more: all of them are of one session.
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise BuildError(
            f"{Path(command[0]).name}: no end after {timeout:g} s; look for an #include or a macro "
            "that expands without end"
        ) from None
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)
