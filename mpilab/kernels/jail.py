"""Build a kernel for the jail: it reaches its own memory, and of MPI what the jail offers.

    answer.c --clang--> kernel.wasm --wasm2c--> kernel.c --gcc--> a shared object with the recorder

In: C sources and the kernel's function. Out: a shared object like any other, whose function has its
native prototype; the harness makes its buffers in the kernel's memory. src_c/runtime/jail has what
is compiled once, and says what a kernel may reach. The checks here come before wasm2c: it prints
names of imports into its C, and believes their types.
"""

import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path

from mpilab.errors import BuildError, SetupError
from mpilab.kernels import build, openmpi, simgrid
from mpilab.util import kit
from mpilab.util.system import install_line

SOURCES = kit.ROOT / "src_c" / "runtime" / "jail"
FOLDER = kit.BUILD / "jail"
TOOLS = ("clang", "wasm-ld", "wasm2c")
COMPILE_SECONDS = 120.0
# Versions of wabt that were tried: those of Debian 12 and 13. One between them changed its names.
WASM2C = ("1.0.32", "1.0.36")
STACK_BYTES = 1 << 20
MEMORY_BYTES = 1 << 31  # of the kernel and of the harness's buffers together

# What the one function that is called from outside takes (inside/entry.c), and returns: i has 32
# bits, l 64.
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
    "jail_delete": "iiiii>i",
    "jail_tune": "iiiiiii>",
}
# Of WASI, no more than printing needs.
_WASI = {"fd_close": "i>i", "fd_fdstat_get": "ii>i", "fd_seek": "ilii>i", "fd_write": "iiii>i"}
_TYPES = {0x7F: "i", 0x7E: "l", 0x7D: "f", 0x7C: "d"}
_FUNCTION, _MEMORY = 0, 2  # kinds of imports and exports


def available() -> bool:
    """True if the programs that build for the jail are installed."""
    return None not in map(shutil.which, TOOLS)


def offered() -> dict[str, str]:
    """{name of an MPI call: its type} of all that a kernel in the jail can call."""
    lines = (SOURCES / "calls.txt").read_text(encoding="utf-8").splitlines()
    calls = dict(line.split() for line in lines if not line.startswith("#"))
    return {**calls, "mpilab_place": "i>"}


def build_kernel(
    sources: Sequence[Path],
    function: str,
    collective: str,
    library: Path,
    *,
    simulated: bool = False,
    timeout: float = 120.0,
) -> Path:
    """Build `function`, a kernel of `collective`, from C files into the shared object `library`.

    simulated   for SimGrid's SMPI: a program with recorder and harness, and beside it LIBRARY.run
                (mpilab.kernels.simgrid).

    Intermediate files go into a folder beside it. Raises BuildError if the compiler rejects a
    source, or if the kernel calls what the jail does not offer; SetupError if a program is missing.
    """
    _need_programs()
    parts = simgrid.FOLDER / "jail" if simulated else FOLDER
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
    ]
    files = [*sources, SOURCES / "inside" / "entry.c", parts / "inside.o"]
    target = ["clang", "--target=wasm32-wasi", "-std=c11", "-O2", "-mexec-model=reactor"]
    _run([*target, *include, *of_kernel, *linking, "-o", str(module), *map(str, files)], timeout)
    modules = check(module.read_bytes(), collective)
    _run(["wasm2c", "-n", "kernel", str(module), "-o", str(folder / "kernel.c")], timeout)
    flags = [
        *("-std=gnu11", "-O1", "-fPIC", "-w", "-fno-strict-aliasing", "-fstack-clash-protection"),
        *("-I.", f"-I{SOURCES}", f"-I{build.INCLUDE}", *of_kernel),
        f"-DMPILAB_IMPORTED={len(modules)}",
        f"-DMPILAB_WASM2C={wasm2c_version().rpartition('.')[2]}",
    ]
    if simulated:
        flags += ["-DSMPI_NO_OVERRIDE_MALLOC", "-include", str(simgrid.DIFFERENCES)]
    compiled = []
    for source in (folder / "kernel.c", SOURCES / "trampoline.c"):
        compiled.append(f"{source.stem}.o")
        _compile([*flags, "-c", str(source), "-o", compiled[-1]], folder, simulated, timeout)
    recorder = simgrid.LIBRARY if simulated else build.RECORDER
    made = [*compiled, str(parts / "shim.o"), str(parts / "wasm2c_runtime.o")]
    whole = ["-Wl,--whole-archive", str(build.need(recorder)), "-Wl,--no-whole-archive"]
    options = ["-shared", "-Wl,-Bsymbolic", "-Wl,--no-undefined", "-o", "kernel.so"]
    _compile([*options, *made, *whole, "-lm", "-ldl"], folder, simulated, timeout)
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


def _need_programs() -> None:
    for program in TOOLS:
        if shutil.which(program) is None:
            raise SetupError(
                f"{program}: not on PATH, so nothing can be built for the jail. It comes with: "
                f"{install_line(program)}"
            )
    if wasm2c_version() not in WASM2C:
        raise SetupError(
            f"wasm2c {wasm2c_version()}: the jail needs {' or '.join(WASM2C)}, Debian 12's or 13's"
        )


@cache
def wasm2c_version() -> str:
    """The version of wabt, e.g. '1.0.32'."""
    said = build.run(["wasm2c", "--version"], COMPILE_SECONDS).stdout.split("-")
    return said[0].strip()


def _need_parts(simulated: bool) -> None:
    """What is compiled once, by the Makefile: shim, runtime, and the kernel's side of mpilab.h."""
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
        raise BuildError(f"it uses {names}, which a kernel is not offered")
    raise BuildError(f"{command[0]}: {build.last_lines(said.stderr)}")


# --- the module, before wasm2c sees it (WebAssembly core specification 1.0, section 5.5)


def check(data: bytes, collective: str) -> list[str]:
    """The names of the modules that a kernel's module imports from, sorted.

    Raises BuildError if an import or an export is not known by its exact name and type, if it
    imports anything but functions, or if code of its own would run when it is loaded.
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
    known = {"mpi": offered(), "wasi_snapshot_preview1": _WASI}
    for module, name, number in imports:
        kind = known.get(module, {}).get(name)
        if kind is None and module == "wasi_snapshot_preview1":
            raise BuildError(
                f"it uses the system ({name}), which a kernel is not offered: no files, "
                "no clock, no environment, no exit"
            )
        if kind is None:
            raise BuildError(f"it uses {name[:60]!r}, which a kernel is not offered")
        if types[number] != kind:
            raise BuildError(f"it declares {name} with other parameters than MPI's")


class _Reader:
    """Numbers and texts of a section; BuildError where it ends too early."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def byte(self) -> int:
        if self._at >= len(self._data):
            raise BuildError("the module of the kernel is cut off")
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
            raise BuildError("the module of the kernel is cut off")
        self._at += count
        return self._data[self._at - count : self._at]

    def text(self) -> str:
        return self.take(self.number()).decode("utf-8", errors="replace")

    def rest(self) -> bool:
        return self._at < len(self._data)


def _sections(data: bytes) -> Iterator[tuple[int, bytes]]:
    reader = _Reader(data)
    if reader.take(8) != b"\0asm\1\0\0\0":
        raise BuildError("the module of the kernel is no WebAssembly")
    while reader.rest():
        section = reader.byte()
        yield section, reader.take(reader.number())


def _function_type(reader: _Reader) -> str:
    if reader.byte() != 0x60:
        raise BuildError("the module of the kernel has a type that is no function's")
    halves = ["".join(_TYPES.get(reader.byte(), "?") for _ in range(reader.number())) for _ in "><"]
    return ">".join(halves)


def _import(reader: _Reader) -> tuple[str, str, int]:
    module, name, kind = reader.text(), reader.text(), reader.byte()
    if kind != _FUNCTION:
        raise BuildError(f"it imports {name[:60]!r}, which is no function")
    return module, name, reader.number()
