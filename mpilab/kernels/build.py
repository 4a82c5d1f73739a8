"""Compile a kernel from C source to a shared object that can be loaded and recorded.

The source keeps its line numbers: compiler messages refer to the cell and its lines.
"""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mpilab.errors import BuildError, BuildTimeOut, InputError, SetupError
from mpilab.kernels import openmpi
from mpilab.util import door, kit
from mpilab.util.kit import BUILD, ROOT

# The first line of a C answer: `%%kernel [--sanitize] FUNCTION`.

MAGIC, SANITIZE = "%%kernel", "--sanitize"
# What the recorder puts before the names of malloc and its relatives (recorder/leftovers.c).
_HEAP = "mpilab_heap_"
# Open MPI never frees some of its memory, so leaks need not be the kernel's.
_COMMON = "exitcode=66:abort_on_error=0:handle_abort=0:symbolize=1"
_LOG = "sanitizer"
INCLUDE = ROOT / "src_c" / "include"
RECORDER = BUILD / "librecorder.a"
HARNESS = BUILD / "libmpilab_harness.so"
HARNESS_PROGRAM = BUILD / "mpilab-harness"
SEEDS = BUILD / "mpilab-seeds"
OSU_PROGRAM = BUILD / "mpilab-osu"
DISTANCE_PROGRAM = BUILD / "distance"
CANNON_PROGRAM = BUILD / "mpilab-cannon"
HARNESS_SANITIZED = BUILD / "mpilab-harness-sanitized"
KERNELS = BUILD / "libmpilab_kernels.so"
TIDIES_S = 2.0  # time for make to remove unfinished files
TOOL_S = 60.0  # for nm, objcopy and objdump
# Address space of each build process. A kernel takes a tenth of it; a macro that doubles itself
# would exhaust the machine's memory before the time limit.
MEMORY_LIMIT = 4 << 30
# Tail calls would hide the kernel's line of an MPI call; with DWARF 5 from gcc 12, addr2line 2.40
# reports the wrong file. An index outside of its array ends the rank, which could otherwise go on
# and be right by luck.
FLAGS = (
    "-std=c11",
    "-fPIC",
    "-O2",
    "-gdwarf-4",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fsanitize=bounds",
    "-fsanitize-undefined-trap-on-error",
)
# An undeclared function is an error at its line, as it is by default in newer compilers.
WARNINGS = ("-Wall", "-Wextra", "-Wshadow", "-Werror=implicit-function-declaration")
# AddressSanitizer and UndefinedBehaviorSanitizer. With built-in malloc and free, the compiler would
# optimize away the very mistakes that they should find.
SANITIZERS = (
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-undefined-trap-on-error",
    "-fno-sanitize-recover=undefined",
    "-fno-builtin-malloc",
    "-fno-builtin-calloc",
    "-fno-builtin-realloc",
    "-fno-builtin-free",
)
# A tab counts as one column, as in the source line shown.
MESSAGE_FLAGS = ("-fdiagnostics-color=never", "-ftabstop=1")
_DIAGNOSTIC = re.compile(
    r"^(?P<file>[^:\n]+):(?P<line>\d+):(?:(?P<column>\d+):)? "
    r"(?P<severity>fatal error|error|warning|note): (?P<text>.*)$"
)
# The linker gives the line if there is debugging information, otherwise the section.
_UNDEFINED = re.compile(
    r"^.*?:(?:(?P<line>\d+)|\([^)]*\)): (?:warning: )?(?P<text>undefined reference to .*)$"
)
# The linker names the archive's function first, and then where the kernel defines the same name.
_TWICE = re.compile(
    r"^.*(?P<text>multiple definition of [`']\w+')"
    r"(?:.*:(?P<line>\d+): first defined here|.*: first defined here)$"
)
# A stricter limit, as in the grader's sandbox, remains in force.
_LIMITED = 'ulimit -v "$0" 2>/dev/null; exec "$@"'
# gcc, clang, and the C++ library of either.
_OUT_OF_MEMORY = re.compile(r"out of memory|memory exhausted|bad_alloc", re.IGNORECASE)
# The program that loads the kernel provides the sanitizers' runtime.
_OF_RUNTIME = re.compile(r"undefined reference to `__(asan|ubsan|sanitizer)_\w+'")


def split(source: str) -> tuple[str, str]:
    """(the %%kernel line or "", the C text) of an answer cell.

    The line becomes an empty one, so that the others keep their numbers. As in a notebook, empty
    lines may precede it.
    """
    lines = source.split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if not lines[first].lstrip().startswith("%%"):
        return "", source
    return lines[first].strip(), "\n".join(["" for _ in lines[: first + 1]] + lines[first + 1 :])


def parse(options: str) -> tuple[str, bool]:
    """(function, True if --sanitize is given) from a %%kernel line; InputError if no function."""
    words = options.split()
    names = [word for word in words if word != SANITIZE]
    if len(names) != 1 or not names[0].isidentifier():
        raise InputError(f"%%kernel {options!r}: name the function, e.g. %%kernel allgather_ring")
    return names[0], SANITIZE in words


def function_of(source: str) -> str:
    """The function that the %%kernel line of an answer cell names; "" if there is none."""
    line, _ = split(source)
    if not line.startswith(MAGIC):
        return ""
    try:
        return parse(line.removeprefix(MAGIC))[0]
    except InputError:
        return ""


# AddressSanitizer and UndefinedBehaviorSanitizer: settings and reports.


def settings(directory: Path | str) -> dict[str, str]:
    """Environment variables that make ranks write their reports to `directory`.

    Raises SetupError if the sanitizers cannot parse its path.
    """
    path = str(Path(directory) / _LOG)
    quote = next((quote for quote in "\"'" if quote not in path), None)
    if quote is None:
        raise SetupError(
            f"{directory}: the sanitizers accept no path with both kinds of quotes; set TMPDIR to "
            "another folder, e.g. TMPDIR=/tmp"
        )
    log = f"log_path={quote}{path}{quote}:{_COMMON}"
    return {
        "ASAN_OPTIONS": f"{log}:detect_leaks=0:detect_stack_use_after_return=1",
        "UBSAN_OPTIONS": f"{log}:print_stacktrace=1:halt_on_error=1",
    }


def reports(directory: Path | str, rank_of: Mapping[int, int]) -> dict[int, str]:
    """{rank: report} of the sanitizers for the ranks that left a report in `directory`.

    rank_of   the rank of each process, by its number.
    """
    found = {}
    for path in sorted(Path(directory).glob(f"{_LOG}.*")):
        process = path.suffix.removeprefix(".")
        rank = rank_of.get(int(process)) if process.isdigit() else None
        if rank is not None:
            found[rank] = path.read_text(encoding="utf-8", errors="replace")
    return found


@dataclass(frozen=True)
class Diagnostic:
    """One message of the compiler, at `line` and `column` (from 1) of the source."""

    severity: str
    line: int
    column: int
    text: str
    source: str = ""

    @property
    def is_error(self) -> bool:
        """True if it prevents the kernel from being built."""
        return "error" in self.severity

    def __str__(self) -> str:
        pointer = ""
        if self.source:
            pointer = f"\n    {self.source}\n    {' ' * max(self.column - 1, 0)}^"
        return f"line {self.line}: {self.severity}: {self.text}{pointer}"


@dataclass(frozen=True)
class Built:
    """A shared object with a kernel, and the warnings that came with it."""

    library: Path
    object: Path
    warnings: tuple[Diagnostic, ...] = ()
    sanitized: bool = False  # can only be loaded into `sanitized_harness()`
    source: str = ""


def need(path: Path) -> Path:
    """`path` in the C build; in the user's cache, compiled on first use.

    Raises SetupError with the remedy if that fails or if `path` does not exist.
    """
    if not path.exists():
        if kit.is_cached() and path.is_relative_to(BUILD) and not BUILD.exists():
            _build_in_cache()
        if not path.exists():
            remedy = f"Delete {BUILD}, then run the same command again."
            if not kit.is_cached() or not path.is_relative_to(BUILD):
                remedy = f"Run 'make build' in {ROOT}."
            raise SetupError(f"{path}: not built yet. {remedy}")
    return path


def make(
    *targets: str, timeout: float = 600.0, smpicc: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run make with targets of src_c/Makefile in BUILD; CompletedProcess.

    Holds a lock, since two notebooks may build at once. Raises SetupError if there is no make or
    BUILD is not writable.
    """
    if kit.is_cached() and not BUILD.exists():
        _build_in_cache()
    try:
        with kit.locked(BUILD / ".lock"):
            return _make(BUILD, targets, timeout, smpicc)
    except OSError as error:
        raise SetupError(
            f"{BUILD}: {error.strerror}, so {', '.join(targets)} cannot be compiled there. Make "
            "this folder and its contents writable, or delete it if it is yours"
        ) from None


def _build_in_cache(timeout: float = 600.0) -> None:
    """Compile the kit's C code into BUILD, a folder in the user's cache that does not exist yet.

    Copies what the kit's owner has compiled. The folder appears only when all is done, so that a
    process killed meanwhile leaves nothing that looks complete.
    """
    scratch = BUILD.with_name(f"{BUILD.name}.part")
    try:
        with kit.locked(BUILD.with_name(f"{BUILD.name}.lock")):
            if BUILD.exists():  # another process built it first
                return
            shutil.rmtree(scratch, ignore_errors=True)
            if not _copied_from_owner(scratch):
                print(f"mpilab: compiling the kit's C code into {BUILD}, once", file=sys.stderr)
            sources = scratch / "src_c"
            sources.mkdir(parents=True)
            for entry in (ROOT / "src_c").iterdir():
                (sources / entry.name).symlink_to(entry)
            said = _make(scratch, ("all",), timeout)
            if said.returncode == 0:
                scratch.rename(BUILD)
    except OSError as error:
        raise SetupError(
            f"{error.filename or BUILD}: {error.strerror}, so the kit's C code cannot be compiled. "
            "Set XDG_CACHE_HOME to a folder that you can write to, with 20 MB free"
        ) from None
    if said.returncode != 0:
        raise SetupError(
            f"{BUILD}: the kit's C code cannot be compiled. 'mpilab doctor' shows what this "
            f"machine lacks. The compiler said:\n{last_lines(said.stderr)}"
        )


def _copied_from_owner(folder: Path) -> bool:
    """Copy the kit's own build folder; True if there was one that we may read."""
    leave_out = shutil.ignore_patterns("nbgrader", "sanitize", "src_c", ".lock", "*.part")
    try:
        if (ROOT / "build" / KERNELS.name).exists():
            shutil.copytree(ROOT / "build", folder, ignore=leave_out)
            return True
    except (shutil.Error, PermissionError):
        shutil.rmtree(folder, ignore_errors=True)
    return False


def _make(
    place: Path, targets: Iterable[str], timeout: float, smpicc: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run make for the build folder `place`."""
    # make splits names at blanks. So file paths are relative, without any part of the user's, and
    # program paths are passed in the environment and expanded by the shell.
    sources = place / "src_c" if place != ROOT / "build" else ROOT / "src_c"
    command = [
        "make",
        "-s",
        "-C",
        str(sources),
        f"BUILD={os.path.relpath(place, sources)}",
        'MPICC="$$MPILAB_MPICC"',
        f"-j{os.cpu_count() or 1}",
    ]
    programs = {"MPILAB_MPICC": openmpi.tool("mpicc")}
    if smpicc:
        command.append('SMPICC="$$MPILAB_SMPICC"')
        programs["MPILAB_SMPICC"] = smpicc
    try:
        return run([*command, *targets], timeout, programs)
    except FileNotFoundError:
        from_where = f"PATH={os.environ.get('PATH', '')}"
        raise SetupError(
            f"make: not found ({from_where}), for {', '.join(targets)}; sudo apt-get install make"
        ) from None


def compile_object(
    source: str,
    target: Path | str,
    *,
    name: str = "cell",
    timeout: float = 60.0,
    sanitize: bool = False,
) -> tuple[Diagnostic, ...]:
    """Compile C text into the object file `target`; return the warnings.

    `name` is the source's name in diagnostics. Raises BuildError, with the diagnostics, if the
    compiler rejects the source or takes longer than `timeout` seconds.
    """
    target = Path(target)
    c_file = target.with_suffix(".c")
    c_file.write_text(f'#line 1 "{name}"\n{source}\n', encoding="utf-8")
    command = [
        openmpi.tool("mpicc"),
        *FLAGS,
        *(SANITIZERS if sanitize else ()),
        *WARNINGS,
        *MESSAGE_FLAGS,
        f"-I{INCLUDE}",
        "-c",
        str(c_file),
        "-o",
        str(target),
    ]
    said = run(command, timeout)
    diagnostics = parse_diagnostics(said.stderr, source, name)
    if said.returncode != 0:
        errors = [d for d in diagnostics if d.is_error]
        summary = "\n".join(map(str, errors)) or _own_words(said.stderr) or "no reason given"
        raise BuildError(f"the compiler refused {name}:\n{summary}", diagnostics)
    return diagnostics


def _own_words(stderr: str) -> str:
    """What a compiler says besides its messages on the source: the errors in other files, by their
    names alone, or else why it was ended."""
    lines = stderr.strip().splitlines()
    errors = [m for m in map(_DIAGNOSTIC.match, lines) if m and "error" in m["severity"]]
    if errors:
        lines = [f"{Path(m['file']).name}:{m['line']}: error: {m['text']}" for m in errors]
    return "\n".join(line for line in lines if errors or not _DIAGNOSTIC.match(line))


def link(
    objects: Iterable[Path | str],
    library: Path | str,
    *,
    source: str = "",
    name: str = "cell",
    timeout: float = 60.0,
    sanitize: bool = False,
) -> None:
    """Link objects and their own copy of the recorder into the shared object `library`.

    Raises BuildError for an undefined function, at the line of `source` that calls it.
    """
    # With clang, the program provides the runtime: undefined symbols are warnings, checked below.
    flags = (*SANITIZERS, "-Wl,--warn-unresolved-symbols") if sanitize else ()
    command = [
        openmpi.tool("mpicc"),
        "-shared",
        "-Wl,-Bsymbolic",
        "-Wl,--no-undefined",
        *flags,
        "-o",
        str(library),
        *map(str, objects),
        "-Wl,--whole-archive",
        str(need(RECORDER)),
        "-Wl,--no-whole-archive",
        "-lm",
        "-ldl",
    ]
    said = run(command, timeout)
    diagnostics = parse_diagnostics(said.stderr, source, name)
    missing = [d for d in diagnostics if "undefined reference" in d.text]
    if said.returncode != 0 or (sanitize and missing):
        summary = "\n".join(map(str, diagnostics)) or said.stderr.strip() or "no reason given"
        raise BuildError(f"the linker refused {name}:\n{summary}", diagnostics)


def keep_names_apart(object_file: Path, archive: Path, *, watch_heap: bool = True) -> Path:
    """A copy of an object file that can be linked with `archive`; the object file if it can be.

    Names defined in both are made local to the copy: a kernel's helper may be called `load`, like
    one of ours, or `main`, and our own calls of `fwrite` still reach the C library. With
    `watch_heap`, calls of malloc and its relatives go to the recorder, which notices what is never
    freed.
    """
    defined, used, _ = symbols_in(archive)
    of_kernel, called, _ = symbols_in(object_file)
    both = sorted(
        name
        for name in of_kernel & (defined | used)
        if not name.startswith(("MPI_", "PMPI_", "mpilab_"))
    )
    heap = [name for name in sorted(called) if watch_heap and f"{_HEAP}{name}" in defined]
    if not both and not heap:
        return object_file
    copy = object_file.with_suffix(".linked.o")
    names = object_file.with_suffix(".names")
    names.write_text("".join(f"{name}\n" for name in both), encoding="utf-8")
    options = [
        *([f"--localize-symbols={names}"] if both else []),  # objcopy refuses an empty file
        *(f"--redefine-sym={name}={_HEAP}{name}" for name in heap),
    ]
    binutils("objcopy", *options, str(object_file), str(copy))
    return copy


def symbols_in(file: Path | str) -> tuple[set[str], set[str], set[str]]:
    """(defined, used, run when loaded): names in an object file or in a whole archive."""
    # Without a plugin of its own, nm loads all that are installed: LLVM's takes 30 ms.
    said = binutils("nm", "--plugin=/dev/null", "--format=posix", str(file))
    defined, used, resolvers = set(), set(), set()
    for line in said.splitlines():
        name, *rest = line.split()
        kind = rest[0] if rest else ""  # an archive member's own line has only a name
        if kind in ("U", "w", "v"):
            used.add(name)
        elif kind == "i":
            resolvers.add(name)
        elif kind == "u" or (kind.isupper() and kind != "N"):
            defined.add(name)
    return defined, used, resolvers


def build(
    source: str,
    directory: Path | str,
    *,
    name: str = "cell",
    stem: str = "kernel",
    sanitize: bool = False,
) -> Built:
    """Compile and link C text into `directory`/`stem`.so; return Built.

    With `sanitize`, the kernel runs under AddressSanitizer and UndefinedBehaviorSanitizer.
    Raises BuildError; with `sanitize` also SetupError if the compiler has no sanitizers.
    """
    directory = Path(directory)
    object_file, library = directory / f"{stem}.o", directory / f"{stem}.so"
    if sanitize:
        sanitized_harness()
    warnings = compile_object(source, object_file, name=name, sanitize=sanitize)
    # A sanitizer tells who called malloc and free.
    linked = keep_names_apart(object_file, need(RECORDER), watch_heap=not sanitize)
    link([linked], library, source=source, name=name, sanitize=sanitize)
    return Built(library, object_file, warnings, sanitize, source)


def sanitized_harness(timeout: float = 120.0) -> Path:
    """The harness program with the sanitizers' runtime, built on first use.

    Raises SetupError, with the remedy, if the build fails.
    """
    said = make("sanitized-harness", timeout=timeout)
    if said.returncode != 0:
        raise SetupError(
            f"{HARNESS_SANITIZED}: cannot be built, so sanitizers are not available. Your compiler "
            "must include AddressSanitizer: sudo apt-get install gcc (its libasan), or "
            f"libclang-rt-dev for clang. The compiler said:\n{last_lines(said.stderr)}"
        )
    return HARNESS_SANITIZED


def ping_pong(timeout: float = 120.0) -> Path:
    """The program that measures the recorder's overhead, built on first use.

    Raises SetupError if the build fails.
    """
    said = make("ping-pong", timeout=timeout)
    if said.returncode != 0:
        raise SetupError(
            f"{BUILD / 'ping-pong'}: cannot be built; run 'make build' in {ROOT}. "
            f"The compiler said:\n{last_lines(said.stderr)}"
        )
    return BUILD / "ping-pong"


def last_lines(text: str, lines: int = 6) -> str:
    """The last lines of a program's output, for a message; 'nothing' if it is empty."""
    return "\n".join(text.strip().splitlines()[-lines:]) or "nothing"


def parse_diagnostics(text: str, source: str, name: str) -> tuple[Diagnostic, ...]:
    """The messages of gcc, clang and the linker about the source called `name`."""
    lines = source.split("\n")
    found = []
    for line in text.splitlines():
        match = _DIAGNOSTIC.match(line)
        if match and match["file"] == name:
            number = int(match["line"])
            shown = lines[number - 1] if 0 < number <= len(lines) else ""
            found.append(
                Diagnostic(
                    match["severity"],
                    number,
                    int(match["column"] or 1),
                    match["text"],
                    shown.expandtabs(1),
                )
            )
        elif _OF_RUNTIME.search(line):
            continue
        elif match := _TWICE.match(line) or _UNDEFINED.match(line):
            number = int(match["line"] or 0)
            shown = lines[number - 1] if 0 < number <= len(lines) else ""
            column = len(shown) - len(shown.lstrip()) + 1
            found.append(Diagnostic("error", number, column, match["text"], shown.expandtabs(1)))
    return tuple(found)


def run(
    command: Sequence[str], timeout: float, variables: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a compiler, linker or make to its end; CompletedProcess, with its output in English.

    `variables` are added to the environment. Raises BuildError after `timeout` seconds, or if the
    program needs more than MEMORY_LIMIT. After a time-out or an interrupt, the whole session is
    ended, so that it cannot disturb the next build.
    """
    if shutil.which(command[0]) is None:
        raise FileNotFoundError(2, "not found", str(command[0]))
    process = None
    try:
        with door.deferred():
            process = subprocess.Popen(
                ["sh", "-c", _LIMITED, str(MEMORY_LIMIT >> 10), *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                start_new_session=True,
                env={**os.environ, **(variables or {}), "LC_ALL": "C"},
            )
        stdout, stderr = process.communicate(timeout=timeout)
    except BaseException as error:
        if process is not None:
            _end_session(process)
        if not isinstance(error, subprocess.TimeoutExpired):
            raise
        raise BuildTimeOut(
            f"{Path(command[0]).name}: did not finish within {timeout:g} s; look for an #include "
            "or a macro that expands endlessly"
        ) from None
    if process.returncode != 0 and _OUT_OF_MEMORY.search(stderr):
        raise BuildError(
            f"{Path(command[0]).name}: out of memory (its limit is {MEMORY_LIMIT >> 20} MiB); "
            "look for an #include or a macro that expands endlessly"
        )
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def binutils(*command: str) -> str:
    """What a program of the package binutils printed, as `run` reads it.

    Raises BuildError if it fails, SetupError if it is not installed.
    """
    try:
        said = run(command, TOOL_S)
    except FileNotFoundError:
        raise SetupError(
            f"{command[0]}: not found (PATH={os.environ.get('PATH', '')}), to inspect compiled "
            "code; sudo apt-get install binutils"
        ) from None
    if said.returncode != 0:
        raise BuildError(f"{command[0]}: {said.stderr.strip()}")
    return said.stdout


def _end_session(process: subprocess.Popen[str]) -> None:
    """End a process and its whole session: mpicc starts the compiler, which starts more programs.

    make gets time to remove unfinished files.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        try:
            process.communicate(timeout=TIDIES_S)
            return
        except subprocess.TimeoutExpired:
            continue
