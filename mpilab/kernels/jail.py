"""Build a kernel for the jail, where it can access only its own memory and the MPI calls offered.

    answer.c --clang--> kernel.wasm --wasm2c--> kernel.c --gcc--> a shared object with the recorder

In: C sources and the kernel's function. Out: a shared object like any other, whose function has its
native prototype; the harness makes its buffers in the kernel's memory. src_c/runtime/jail contains
what is compiled once, and documents what a kernel may access. The checks here run before wasm2c,
which copies names of imports into its C and trusts their types.
"""

import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from mpilab.errors import BuildError, NotOffered, SetupError
from mpilab.kernels import build, openmpi, simgrid, symbols
from mpilab.util import kit
from mpilab.util.system import install_line

SOURCES = kit.ROOT / "src_c" / "runtime" / "jail"
FOLDER = kit.BUILD / "jail"
TOOLS = ("clang", "wasm-ld", "wasm2c")
COMPILE_SECONDS = 120.0
# Versions of wabt that were tested: those of Debian 12 and 13. A version between them changed its
# names.
WASM2C = ("1.0.32", "1.0.36")
# Calling an undeclared function is an error in newer clangs; the linker says what is missing. Of a
# function called main, clang accepts only the prototype of a program's; a kernel may have any.
_TARGET = (
    *("clang", "--target=wasm32-wasi", "-std=c11", "-O2", "-mexec-model=reactor"),
    *("-Wno-error=implicit-function-declaration", "-Dmain=main_in_kernel"),
    *("-fsanitize=array-bounds", "-fsanitize-trap=array-bounds"),  # as in a native run
    # Headers of what is not offered may be included: the linker says what is missing.
    *(f"-D_WASI_EMULATED_{what}" for what in ("GETPID", "MMAN", "PROCESS_CLOCKS", "SIGNAL")),
)
# wasi-libc's own printf and scanf lack %Lf.
_LIBRARIES = ("-lc-printscan-long-double",)
STACK_BYTES = 1 << 20
MEMORY_BYTES = 1 << 31  # of the kernel and of the harness's buffers together

# Argument and return types of the one function that is called from outside (inside/entry.c): i has
# 32 bits, l 64.
ENTRY = {
    "allgather": "iiiiiii>i",
    "allreduce": "iiiiii>i",
    "alltoallv": "iiiiiiiii>i",
    "barrier": "i>i",
    "bcast": "iiiii>i",
    "gather": "iiiiiiii>i",
    "read": "iliiiiiiii>i",
    "reduce": "iiiiiii>i",
    "scatter": "iiiiiiii>i",
}
_EXPORTS = {
    "_initialize": ">",
    "jail_combine": "iiiii>",
    "jail_copy": "iiiii>l",
    "jail_delete": "iiiii>i",
    "jail_tune": "iiiiiii>",
}
# Only the part of WASI that printing needs; exit(), which ends the kernel; and what a loop that
# polls may call.
WASI = {
    "fd_close": "i>i",
    "fd_fdstat_get": "ii>i",
    "fd_seek": "ilii>i",
    "fd_write": "iiii>i",
    "proc_exit": "i>",
    "sched_yield": ">i",
}
# What inside/inside.c calls.
_OURS = {
    "mpilab_memory_freed": "i>",
    "mpilab_memory_made": "ii>",
    "mpilab_place": "i>",
    "mpilab_statics": "ii>",
}
_WRAPPED = ("malloc", "calloc", "realloc", "free", "aligned_alloc", "posix_memalign")
_TYPES = {0x7F: "i", 0x7E: "l", 0x7D: "f", 0x7C: "d"}
_FUNCTION, _MEMORY = 0, 2  # kinds of imports and exports
_ERROR = re.compile(r"^(\S+?):(\d+):(?:\d+:)? (?:fatal )?error: (.+)$", re.MULTILINE)


@cache
def unavailable(limit: float = COMPILE_SECONDS) -> str:
    """Why nothing can be built for the jail on this machine, in words; "" if it can. The trial may
    take `limit` seconds."""
    absent = [program for program in TOOLS if shutil.which(program) is None]
    if absent:
        return f"not on PATH: {', '.join(absent)}"
    if wasm2c_version() not in WASM2C:
        return f"wasm2c has version {wasm2c_version()}, not {' or '.join(WASM2C)}"
    # The libraries are files of two more packages, in places that depend on clang's version.
    tried = build.run([*_TARGET, "-o", "/dev/null", str(SOURCES / "trial.c")], limit)
    return build.last_lines(tried.stderr, 2) if tried.returncode else ""


def how_to_install() -> str:
    """How to install what builds for the jail on this machine, as a command or a sentence."""
    return install_line("jail")


def prepare(simulated: bool) -> None:
    """Build what all kernels in the jail share, here, since a sandbox cannot."""
    _need_parts(simulated=False)
    if simulated:
        _need_parts(simulated=True)


def offered() -> dict[str, str]:
    """{name: type} of the MPI calls available to a kernel in the jail."""
    lines = (SOURCES / "calls.txt").read_text(encoding="utf-8").splitlines()
    calls = dict(line.split() for line in lines if not line.startswith("#"))
    return {**calls, **_OURS}


def build_kernel(
    sources: Sequence[Path],
    function: str,
    collective: str,
    library: Path,
    *,
    allowed: Collection[str] | None = None,
    simulated: bool = False,
    timeout: float = 120.0,
) -> Path:
    """Build `function`, a kernel of `collective`, from C files into the shared object `library`.

    allowed     the groups of MPI calls that the exercise permits (mpilab.kernels.symbols); None:
                all that are offered.
    simulated   for SimGrid's SMPI: a program with recorder and harness, and beside it LIBRARY.run
                (mpilab.kernels.simgrid).

    Intermediate files go into a folder beside it. Raises NotOffered if the kernel uses a function
    that is not available to it, BuildError if the compiler rejects a source, SetupError if a
    program is missing.
    """
    parts = simgrid.FOLDER / "jail" if simulated else FOLDER
    if not _given(parts):
        if why := unavailable():
            raise SetupError(
                f"nothing can be built for the jail ({why}). Install: {how_to_install()}"
            )
        _need_parts(simulated)
    folder = library.with_suffix(".jail")
    folder.mkdir(parents=True, exist_ok=True)
    of_kernel = [f"-DMPILAB_COLLECTIVE_{collective}", f"-DMPILAB_FUNCTION={function}"]
    module = folder / "kernel.wasm"
    include = [f"-I{SOURCES / 'inside'}", f"-I{parts}", f"-I{build.INCLUDE}"]
    linking = [
        "-Wl,--stack-first",
        f"-Wl,-z,stack-size={STACK_BYTES}",
        "-Wl,--strip-all",
        f"-Wl,--max-memory={MEMORY_BYTES}",
        *(f"-Wl,--wrap={name}" for name in _WRAPPED),
    ]
    files = [*sources, SOURCES / "inside" / "entry.c", parts / "inside.o"]
    made = [*linking, "-o", str(module), *map(str, files), *_LIBRARIES]
    _run([*_TARGET, *include, *of_kernel, *made], timeout)
    modules = check(module.read_bytes(), collective, allowed)
    _run(["wasm2c", "-n", "kernel", str(module), "-o", str(folder / "kernel.c")], timeout)
    flags = [  # most of a build's time goes here; -Og takes two thirds of what -O1 takes
        *("-std=gnu11", "-Og", "-fPIC", "-w", "-fno-strict-aliasing", "-fstack-clash-protection"),
        *("-I.", f"-I{SOURCES}", f"-I{build.INCLUDE}", *of_kernel),
        f"-DMPILAB_IMPORTED={len(modules)}",
        f"-DMPILAB_WASM2C={wasm2c_version().rpartition('.')[2]}",
        f"-DMPILAB_STACK_BYTES={STACK_BYTES}",
    ]
    if simulated:
        flags += ["-DSMPI_NO_OVERRIDE_MALLOC", "-include", str(simgrid.DIFFERENCES)]
    compiled = []
    for source in (folder / "kernel.c", SOURCES / "trampoline.c"):
        compiled.append(f"{source.stem}.o")
        _compile([*flags, "-c", str(source), "-o", compiled[-1]], folder, simulated, timeout)
    recorder = simgrid.LIBRARY if simulated else build.RECORDER
    parts_made = [*compiled, str(parts / "shim.o"), str(parts / "wasm2c_runtime.o")]
    whole = ["-Wl,--whole-archive", str(build.need(recorder)), "-Wl,--no-whole-archive"]
    options = ["-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-o", "kernel.so"]
    _compile([*options, *parts_made, *whole, "-lm", "-ldl"], folder, simulated, timeout)
    (folder / "kernel.so").replace(library)
    if simulated:
        _run(["objcopy", "--strip-all", str(library), str(library.with_suffix(".run"))], timeout)
    return library


def _compile(arguments: list[str], folder: Path, simulated: bool, timeout: float) -> None:
    """Run mpicc or smpicc in `folder`."""
    if simulated:
        command = simgrid.smpicc(arguments, folder, "jail")
    else:
        command = [
            "sh",
            "-c",
            'cd "$0" && exec "$@"',
            str(folder),
            openmpi.tool("mpicc"),
            *arguments,
        ]
    _run(command, timeout)


@cache
def wasm2c_version() -> str:
    """The version of wabt, e.g. '1.0.32'."""
    said = build.run(["wasm2c", "--version"], COMPILE_SECONDS).stdout.split("-")
    return said[0].strip()


def _given(parts: Path) -> bool:
    """True in the grader's sandbox, where nothing can be built: the grader has tried the tools and
    built the parts."""
    return (parts / "inside.o").exists() and not os.access(parts, os.W_OK)


@cache
def _need_parts(simulated: bool) -> None:
    """The parts that the Makefile compiles once: shim, runtime, and the kernel's side of
    mpilab.h. They are rebuilt on first use if sources have changed."""
    if simulated:
        simgrid.kernels()
        said = build.make("simulated-jail", timeout=COMPILE_SECONDS, smpicc=simgrid.tool("smpicc"))
    else:
        said = build.make("jail", timeout=COMPILE_SECONDS)
    if said.returncode != 0:
        raise BuildError(f"the jail cannot be built: {build.last_lines(said.stderr)}")


def _run(command: list[str], timeout: float) -> None:
    said = build.run(command, timeout)
    if said.returncode == 0:
        return
    missing = re.findall(r"undefined symbol: (\S+)", said.stderr)
    if missing:
        names = ", ".join(dict.fromkeys(missing))
        raise NotOffered(f"it uses {names}, which is not available to a kernel")
    errors = [
        f"line {line} of {file}: {text}" for file, line, text in _ERROR.findall(said.stderr)[:3]
    ]
    raise BuildError(f"{command[0]}: {'; '.join(errors) or build.last_lines(said.stderr)}")


# --- the module, before wasm2c sees it (WebAssembly core specification 1.0, section 5.5)


def check(data: bytes, collective: str, allowed: Collection[str] | None = None) -> list[str]:
    """The names of the modules that a kernel's module imports from, sorted.

    Raises NotOffered if it imports a function that is not known by its exact name and type, or
    whose group is not in `allowed`; BuildError if it imports anything but functions, has other
    exports than a kernel, or has code that would run when it is loaded.
    """
    types, imports, functions, exports = [], [], [], []
    for section, body in _sections(data):
        reader = _Reader(body)
        if section == 1:
            types = [_function_type(reader) for _ in range(reader.number())]
        elif section == 2:
            imports = [_import(reader) for _ in range(reader.number())]
        elif section == 3:
            functions = [reader.number() for _ in range(reader.number())]
        elif section == 7:
            exports = [
                (reader.text(), reader.byte(), reader.number()) for _ in range(reader.number())
            ]
        elif section == 8:
            raise BuildError("it has a function that would run when it is loaded")
    _check_imports(imports, types)
    if allowed is not None:
        refused = symbols.calls_not_allowed((name for _, name, _ in imports), allowed)
        if refused:
            raise NotOffered("; ".join(refused))
    all_types = [number for _, _, number in imports] + functions
    expected = {**_EXPORTS, "jail_kernel": ENTRY[collective]}
    for name, kind, number in exports:
        if (name, kind) == ("memory", _MEMORY):
            continue
        if kind != _FUNCTION or name not in expected:
            raise BuildError(f"it exports {name[:60]!r}")
        if types[all_types[number]] != expected.pop(name):
            raise BuildError(f"{name} is not of the type that the jail calls it with")
    if expected:
        raise BuildError(f"it does not export {', '.join(expected)}")
    return sorted({module for module, _, _ in imports})


def _check_imports(imports: Iterable[tuple[str, str, int]], types: Sequence[str]) -> None:
    known = {"mpi": offered(), "wasi_snapshot_preview1": WASI}
    for module, name, number in imports:
        kind = known.get(module, {}).get(name)
        if kind is None and module == "wasi_snapshot_preview1":
            raise NotOffered(
                f"it uses the system ({name}), which is not available to a kernel: no files, "
                "no clock, no environment"
            )
        if kind is None:
            raise NotOffered(f"it uses {name[:60]!r}, which is not available to a kernel")
        if types[number] != kind:
            raise NotOffered(f"it declares {name} with parameters that differ from MPI's")


class _Reader:
    """Numbers and texts of a section; BuildError where it ends too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        if self._at >= len(self._data):
            raise BuildError("the module of the kernel is truncated")
        self._at += 1
        return self._data[self._at - 1]

    def number(self) -> int:
        """An unsigned number in LEB128."""
        value = shift = 0
        while shift < 35:
            byte = self.byte()
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
        raise BuildError("the module of the kernel has a number of more than 32 bits")

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self._at:
            raise BuildError("the module of the kernel is truncated")
        self._at += count
        return self._data[self._at - count : self._at]

    def text(self) -> str:
        return self.take(self.number()).decode("utf-8", errors="replace")

    def rest(self) -> bool:
        return self._at < len(self._data)


def _sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(data)
    if reader.take(8) != b"\0asm\1\0\0\0":
        raise BuildError("the module of the kernel is not WebAssembly")
    while reader.rest():
        section = reader.byte()
        yield section, reader.take(reader.number())


def _function_type(reader: _Reader) -> str:
    if reader.byte() != 0x60:
        raise BuildError("the module of the kernel has a type that is not a function's")
    halves = ["".join(_TYPES.get(reader.byte(), "?") for _ in range(reader.number())) for _ in "><"]
    return ">".join(halves)


def _import(reader: _Reader) -> tuple[str, str, int]:
    module, name, kind = reader.text(), reader.text(), reader.byte()
    if kind != _FUNCTION:
        raise BuildError(f"it imports {name[:60]!r}, which is not a function")
    return module, name, reader.number()
