"""Compile a kernel: from C source to a shared object that can be loaded and recorded.

The student's source keeps its own line numbers: what the compiler says names the cell and its line.
"""

import os
import re
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mpilab import openmpi
from mpilab.errors import BuildError, BuildTimeOut, SetupError

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = ROOT / "src_c" / "include"
BUILD = ROOT / "build"
RECORDER = BUILD / "librecorder.a"
HARNESS = BUILD / "libmpilab_harness.so"
HARNESS_PROGRAM = BUILD / "mpilab-harness"
OSU_PROGRAM = BUILD / "mpilab-osu"
DISTANCE_PROGRAM = BUILD / "distance"
CANNON_PROGRAM = BUILD / "mpilab-cannon"
HARNESS_SANITIZED = BUILD / "mpilab-harness-sanitized"
KERNELS = BUILD / "libmpilab_kernels.so"
TIDIES_S = 2.0  # what make gets to remove what it has half made

# Tail calls would hide the line of the kernel that an MPI call was made in; of DWARF 5 as gcc 12
# writes it, addr2line 2.40 tells the wrong file.
FLAGS = ("-std=c11", "-fPIC", "-O2", "-gdwarf-4", "-fno-omit-frame-pointer",
         "-fno-optimize-sibling-calls")  # fmt: skip
# A function that nobody declared is an error at its line, as for newer compilers by themselves.
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Werror=implicit-function-declaration")
# AddressSanitizer and UndefinedBehaviorSanitizer. By what it knows of malloc and free the compiler
# would remove the very mistakes that are looked for.
SANITIZERS = ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
              "-fno-builtin-malloc", "-fno-builtin-calloc", "-fno-builtin-realloc",
              "-fno-builtin-free")  # fmt: skip
# A tab counts as one column, as in the line that is shown.
SAYING = ("-fdiagnostics-color=never", "-ftabstop=1")

_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<text>.*)$"
)
# The linker names the line where it has debugging information, otherwise the section.
_UNDEFINED = re.compile(
    r"^.*?:(?:(?P<line>\d+)|\([^)]*\)): (?:warning: )?(?P<text>undefined reference to .*)$"
)
# What the runtime of the sanitizers defines is in the program that loads the kernel.
_OF_RUNTIME = re.compile(r"undefined reference to `__(asan|ubsan|sanitizer)_\w+'")


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
    sanitized: bool = False  # it can only be loaded into `sanitized_harness()`
    source: str = ""


def need(path):
    """`path` of the C build; SetupError with the remedy when it is not there."""
    if not path.exists():
        raise SetupError(f"{path}: not built yet. Run 'make build' in {ROOT}.")
    return path


def compile_object(source, target, *, name="cell", timeout=60.0, sanitize=False):
    """Compile C text into the object file `target`; returns the warnings.

    `name` is what diagnostics call the source. Raises BuildError, with the diagnostics, when the
    compiler refuses it or takes longer than `timeout` seconds.
    """
    target = Path(target)
    c_file = target.with_suffix(".c")
    c_file.write_text(f'#line 1 "{name}"\n{source}\n', encoding="utf-8")
    command = [openmpi.tool("mpicc"), *FLAGS, *(SANITIZERS if sanitize else ()), *WARNINGS,
               *SAYING, f"-I{INCLUDE}", "-c", str(c_file), "-o", str(target)]  # fmt: skip
    said = run(command, timeout)
    diagnostics = parse_diagnostics(said.stderr, source, name)
    if said.returncode != 0:
        errors = [d for d in diagnostics if d.is_error]
        summary = "\n".join(map(str, errors)) or said.stderr.strip() or "no reason given"
        raise BuildError(f"the compiler refused {name}:\n{summary}", diagnostics)
    return diagnostics


def link(objects, library, *, source="", name="cell", timeout=60.0, sanitize=False):
    """Link objects and a recorder of their own into the shared object `library`.

    Raises BuildError for a function that is nowhere, at the line of `source` that calls it.
    """
    # clang leaves the runtime to the program: what is missing is then told, and judged here.
    flags = (*SANITIZERS, "-Wl,--warn-unresolved-symbols") if sanitize else ()
    command = [openmpi.tool("mpicc"), "-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined", *flags,
               "-o", str(library), *map(str, objects), "-Wl,--whole-archive", str(need(RECORDER)),
               "-Wl,--no-whole-archive", "-lm", "-ldl"]  # fmt: skip
    said = run(command, timeout)
    diagnostics = parse_diagnostics(said.stderr, source, name)
    missing = [d for d in diagnostics if "undefined reference" in d.text]
    if said.returncode != 0 or (sanitize and missing):
        summary = "\n".join(map(str, diagnostics)) or said.stderr.strip() or "no reason given"
        raise BuildError(f"the linker refused {name}:\n{summary}", diagnostics)


def build(source, directory, *, name="cell", stem="kernel", sanitize=False):
    """Compile and link C text into `directory`/`stem`.so; returns Built.

    With `sanitize`, AddressSanitizer and UndefinedBehaviorSanitizer watch over the kernel.
    Raises BuildError; with `sanitize` also SetupError where the compiler has none.
    """
    directory = Path(directory)
    object_file, library = directory / f"{stem}.o", directory / f"{stem}.so"
    if sanitize:
        sanitized_harness()
    warnings = compile_object(source, object_file, name=name, sanitize=sanitize)
    link([object_file], library, source=source, name=name, sanitize=sanitize)
    return Built(library, object_file, warnings, sanitize, source)


def sanitized_harness(timeout=120.0):
    """The harness program that holds the sanitizers' runtime; it is made when first asked for.

    Raises SetupError, with the remedy, where it cannot be made.
    """
    said = _make("sanitized-harness", timeout)
    if said.returncode != 0:
        raise SetupError(
            f"{HARNESS_SANITIZED}: cannot be made, so there are no runs with sanitizers. Your "
            "compiler has to bring AddressSanitizer: sudo apt-get install gcc (its libasan), or "
            f"libclang-rt-dev for clang. The compiler said:\n{last_lines(said.stderr)}"
        )
    return HARNESS_SANITIZED


def ping_pong(timeout=120.0):
    """The program that measures the recorder; it is made when first asked for.

    Raises SetupError where it cannot be made.
    """
    said = _make("ping-pong", timeout)
    if said.returncode != 0:
        raise SetupError(
            f"{BUILD / 'ping-pong'}: cannot be made; run 'make build' in {ROOT}. "
            f"The compiler said:\n{last_lines(said.stderr)}"
        )
    return BUILD / "ping-pong"


def _make(target, timeout):
    """Run make for one target of src_c/Makefile; SetupError where there is no make."""
    # make takes a blank for the end of a name; paths as seen from src_c hold none of ours.
    sources = ROOT / "src_c"
    mpicc, place = (os.path.relpath(path, sources) for path in (openmpi.tool("mpicc"), BUILD))
    try:
        return run(["make", "-s", "-C", str(sources), f"MPICC={mpicc}", f"BUILD={place}", target],
                    timeout)  # fmt: skip
    except FileNotFoundError:
        raise SetupError(f"make: not found, for {target}; sudo apt-get install make") from None


def last_lines(text, lines=6):
    """The last lines of what a program said, for a message; 'nothing' if it said none."""
    return "\n".join(text.strip().splitlines()[-lines:]) or "nothing"


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
        elif (match := _UNDEFINED.match(line)) and not _OF_RUNTIME.search(line):
            number = int(match["line"] or 0)
            shown = lines[number - 1] if 0 < number <= len(lines) else ""
            column = len(shown) - len(shown.lstrip()) + 1
            found.append(Diagnostic("error", number, column, match["text"], shown.expandtabs(1)))
    return tuple(found)


def run(command, timeout):
    """Run a compiler, linker or make to its end: CompletedProcess, with what it said in English.

    Raises BuildError after `timeout` seconds. Then, and where we are interrupted, it and all that
    it has started are ended: whoever builds next must not meet them.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        encoding="utf-8", errors="replace", start_new_session=True,
        env={**os.environ, "LC_ALL": "C"})  # fmt: skip
    try:
        stdout, stderr = process.communicate(timeout=timeout)
    except BaseException as error:
        _end_session(process)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise BuildTimeOut(
            f"{Path(command[0]).name}: no end after {timeout:g} s; look for an #include or a macro "
            "that expands without end"
        ) from None
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def _end_session(process):
    """End a process and all of its session: mpicc starts the compiler, which starts more. make gets
    the time to remove what it has half made."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.communicate(timeout=TIDIES_S)
            return
        except subprocess.TimeoutExpired:
            continue
