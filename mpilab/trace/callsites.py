"""Source lines of the call sites in a recording, and of what sanitizers report.

The formats of reports are those of gcc 12 to 14 and clang 14 to 18 (their wording of regions
differs).
"""

import re
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from mpilab.cases.data import GUARD_BYTES
from mpilab.kernels.build import INCLUDE, KERNELS
from mpilab.kernels.simgrid import KERNELS as SIMULATED_KERNELS
from mpilab.util.kit import ROOT

# Of the kit's own kernels. They may have been compiled elsewhere, but in a folder of this name.
SOURCES = ROOT / "src_c"

# Limits, since a process may have written arbitrary data into its recording.
SITES_AT_ONCE = 2000
SOURCE_BYTES = 1 << 20
_LINE_DIRECTIVE = re.compile(r'#line 1 "(.*)"$')


def lines_of(library: str | Path, offsets: tuple[int, ...]) -> tuple[tuple[str, str, int], ...]:
    """(function, file, line) for each offset into `library`; line 0 if unknown.

    A source of the kit's own kernels is named by its path below src_c ('bcast/linear.c'), since
    several collectives have a file of the same name; any other file by its name alone.

    `offsets` is a tuple of return addresses, as written by the recorder. A call in an inlined
    helper of mpilab.h maps to the line of the kernel that used the helper; if the helper was not
    inlined, the line is unknown.
    """
    try:
        changed = Path(library).stat().st_mtime_ns
    except (OSError, ValueError):
        return tuple(("", "", 0) for _ in offsets)
    known, more = _lines_of(str(library), changed, tuple(offsets[:SITES_AT_ONCE])), len(offsets)
    return known + (("", "", 0),) * (more - len(known))


@lru_cache(maxsize=4096)
def _lines_of(
    library: str, _changed: int, offsets: tuple[int, ...]
) -> tuple[tuple[str, str, int], ...]:
    if not offsets:
        return ()
    # A return address points to the next instruction, which may belong to the next line.
    addresses = [hex(max(int(offset) - 1, 0)) for offset in offsets]
    try:
        said = subprocess.run(
            ["addr2line", "-a", "-f", "-i", "-e", library, *addresses],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        ).stdout
    except FileNotFoundError:  # binutils is not installed
        said = ""
    frames: list[list[str]] = []
    for line in said.splitlines():
        if line.startswith("0x"):
            frames.append([])
        elif frames:
            frames[-1].append(line)
    frames += [[]] * (len(offsets) - len(frames))
    is_ours = _is_ours(Path(library))
    return tuple(_outside_of_helpers(lines, is_ours) for lines in frames[: len(offsets)])


def _is_ours(library: Path) -> bool:
    """Whether the library holds the kit's own kernels."""
    return library in (KERNELS, SIMULATED_KERNELS)


def _outside_of_helpers(lines: list[str], is_ours: bool) -> tuple[str, str, int]:
    places = zip(lines[::2], lines[1::2], strict=False)
    pairs = [(function, *_place(place, is_ours)) for function, place in places]
    own = [pair for pair in pairs if not pair[1].endswith("mpilab.h")]
    return (own or [("", "", 0)])[0]


def _place(text: str, is_ours: bool) -> tuple[str, int]:
    path, _, line = text.partition(" (")[0].rpartition(":")
    _, is_below, below = path.rpartition(f"/{SOURCES.name}/") if is_ours else ("", "", "")
    file = below if is_below else Path(path).name
    return file if path != "??" else "", int(line) if line.isdigit() else 0


def source_text(library: str | Path, file: str) -> str:
    """The text of `file`, as `lines_of` names it; '' if unknown."""
    return "\n".join(_lines(library, file))


def source_line(library: str | Path, file: str, line: int) -> str:
    """The text of `line` (from 1) of `file`, as `lines_of` names it; '' if unknown.

    The source of a kernel that mpilab.kernels.build has built is next to it.
    """
    lines = _lines(library, file)
    return lines[line - 1].rstrip().expandtabs(4) if 0 < line <= len(lines) else ""


def calls_within(
    library: str | Path, file: str, function: str, begin: int
) -> list[tuple[int, str]]:
    """[(line, text)] of the calls of `function` after line `begin` in the same enclosing function.

    That function ends with a brace at the beginning of a line, as in the kit's style.
    """
    found = []
    called = re.compile(rf"\b{re.escape(function)}\s*\(") if function else None
    for number, text in enumerate(_lines(library, file), 1):
        if called is None or (number > begin and text.startswith("}")):
            break
        if number > begin and called.search(text):
            found.append((number, text.rstrip().expandtabs(4)))
    return found


def _lines(library: str | Path, file: str) -> list[str]:
    """The lines of a source file; [] if unknown."""
    for path, skipped in _sources(Path(library), file) if file else ():
        text = _text(path)
        if text:
            return text.split("\n")[skipped:]
    return []


def _sources(library: Path, file: str) -> Iterator[tuple[Path, int]]:
    """(path, number of lines to skip) of every file that may be the source `file`."""
    beside, name = library.with_suffix(".c"), Path(file).name
    directive = _LINE_DIRECTIVE.match(_text(beside).partition("\n")[0])
    if directive and Path(directive[1]).name == name:
        yield beside, 1
    if _is_ours(library) and name.endswith(".c") and ".." not in Path(file).parts:
        yield SOURCES / file, 0
    if name == "mpilab.h":
        yield INCLUDE / name, 0


def _text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(SOURCE_BYTES)
    except OSError:
        return ""


# Parse the reports of AddressSanitizer and UndefinedBehaviorSanitizer.

ADDRESS, UNDEFINED = "AddressSanitizer", "UndefinedBehaviorSanitizer"
OUT_OF_BOUNDS, USE_AFTER_FREE, UNDEFINED_BEHAVIOR = (
    "out of bounds",
    "use after free",
    "undefined behavior",
)
NULL_POINTER, NOT_YOURS, STACK_EXHAUSTED = (
    "a null pointer",
    "memory that is not yours",
    "stack exhausted",
)
HEAP_CORRUPTED, DIVISION_BY_ZERO = "heap corrupted", "division by zero"
FIRST_PAGE = 4096

_ERROR = re.compile(r"^==\d+==ERROR: AddressSanitizer: (?P<text>.*)$", re.MULTILINE)
_RUNTIME_ERROR = re.compile(
    r"^(?P<file>[^\n:]+):(?P<line>\d+):(?P<column>\d+): runtime error: (?P<text>.*)$",
    re.MULTILINE,
)
_KIND = re.compile(r"attempting (double-free|free)\b|([\w-]+)")
_FRAME = re.compile(
    r"^ +#\d+ 0x[0-9a-f]+ +(?:in (?P<function>\S+) ?)?"
    r"(?:\((?P<module>[^()]+)\+0x(?P<offset>[0-9a-f]+)\)|(?P<file>[^\s:]+):(?P<line>\d+)(?::\d+)?)?"
)
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d+)", re.MULTILINE)
_SIGNAL_ACCESS = re.compile(r"caused by a (READ|WRITE) memory access")
_ADDRESS = re.compile(r"(?:address|on|-ed:) (0x[0-9a-f]+)")
_REGION = re.compile(
    r"is located \d+ bytes [a-z ]+ (?P<size>\d+)-byte region \[(?P<begin>0x[0-9a-f]+),"
)
_GLOBAL = re.compile(
    r"is located (?P<distance>\d+) bytes (?P<direction>[a-z ]+) "
    r"global variable '(?P<name>[^']+)'.*? of size (?P<size>\d+)"
)
_IN_FRAME = re.compile(r"is located in stack of thread T\d+ at offset (\d+) in frame")
_VARIABLE = re.compile(r"\[(\d+), (\d+)\) '([^']+)'(?: \(line \d+\))? <== Memory access")
_DEADLY = re.compile(r"^(?:AddressSanitizer|UndefinedBehaviorSanitizer):DEADLYSIGNAL\n?", re.M)

Frame = tuple[str, str, int]  # function, file, line; file is the library if it has no line


@dataclass(frozen=True)
class Report:
    """One report.

    tool       ADDRESS or UNDEFINED.
    kind       AddressSanitizer's term ('heap-buffer-overflow'); 'runtime error' for the other.
    summary    the message in its first line.
    pattern    the mistake, as in a Diagnosis, such as OUT_OF_BOUNDS.
    frames     (function, file, line) of the kernel, the innermost first; file without directories.
    call       the MPI call in which it happened ('MPI_Recv'); '' outside MPI.
    access     'WRITE of size 4', or '' if unknown.
    object     what was overrun or misused: 'the receive buffer (32 bytes)'; '' if unknown.
    region     the address relative to the object: 'just past its end', 'inside of it'.
    column     column of the innermost line, 0 if unknown.
    freed, allocated   like `frames`, for the memory that was accessed; () if unknown.
    text       the whole report.
    address    the address that was accessed, None if unknown.
    """

    tool: str
    kind: str
    summary: str
    pattern: str
    frames: tuple[Frame, ...] = ()
    call: str = ""
    access: str = ""
    object: str = ""
    region: str = ""
    column: int = 0
    freed: tuple[Frame, ...] = ()
    allocated: tuple[Frame, ...] = ()
    text: str = ""
    address: int | None = None


def separate(printed: str) -> tuple[str, str]:
    """(what the kernel printed, report or ''): gcc's UndefinedBehaviorSanitizer writes to stderr.

    It ends the process, so its report comes last.
    """
    printed = _DEADLY.sub("", printed)
    found = _RUNTIME_ERROR.search(printed)
    if found is None:
        return printed, ""
    begin = found.start()
    frames, _ = _of_kernel(_stacks(printed[begin:])["mistake"])
    if frames and found["file"].endswith(frames[0][1]):
        # The kernel's last line may lack a newline.
        left_open = found["file"].removesuffix(frames[0][1])
        begin += 0 if left_open.endswith("/") else len(left_open)
    return printed[:begin], printed[begin:]


def parse(text: str) -> Report | None:
    """The first Report in `text`, or None if there is none."""
    if found := _ERROR.search(text):
        return _address_report(found["text"], text[found.start() :])
    if found := _RUNTIME_ERROR.search(text):
        return _undefined_report(found, text[found.start() :])
    return None


def _address_report(summary: str, text: str) -> Report:
    named_kind = _KIND.match(summary)  # a kernel may print a line that only begins like a report
    attempted, word = named_kind.groups() if named_kind else ("", "unknown")
    kind = {"free": "bad-free"}.get(attempted, attempted) or word
    stacks = _stacks(text)
    frames, call = _of_kernel(stacks["mistake"])
    freed, allocated = _of_kernel(stacks["freed"])[0], _of_kernel(stacks["allocated"])[0]
    allocators = {function for function, _, _ in stacks["allocated"]}
    access = _ACCESS.search(text)
    signalled = _SIGNAL_ACCESS.search(text)
    named = _ADDRESS.search(summary)
    address = int(named[1], 16) if named else None
    return Report(
        ADDRESS,
        kind,
        summary,
        _address_pattern(kind, address),
        frames,
        call,
        f"{access[1]} of size {access[2]}" if access else signalled[1] if signalled else "",
        *_region(text, address or 0, allocators),
        0,
        freed,
        allocated,
        text,
        address,
    )


def _address_pattern(kind: str, address: int | None) -> str:
    if kind in ("double-free", "heap-use-after-free") or kind.startswith("stack-use-after"):
        return USE_AFTER_FREE
    if "overflow" in kind and kind != "stack-overflow" or "underflow" in kind:
        return OUT_OF_BOUNDS
    if kind in ("SEGV", "BUS"):
        # The report omits an address that no pointer can have.
        return NOT_YOURS if address is None or address >= FIRST_PAGE else NULL_POINTER
    return {
        "use-after-poison": OUT_OF_BOUNDS,
        "negative-size-param": OUT_OF_BOUNDS,
        "stack-overflow": STACK_EXHAUSTED,
        "bad-free": HEAP_CORRUPTED,
        "FPE": DIVISION_BY_ZERO,
    }.get(kind, UNDEFINED_BEHAVIOR)


def _undefined_report(found: re.Match[str], text: str) -> Report:
    frames, call = _of_kernel(_stacks(text)["mistake"])
    here = (frames[0][0] if frames else "", Path(found["file"]).name, int(found["line"]))
    words = found["text"]
    if "out of bounds" in words or "insufficient space" in words:
        pattern = OUT_OF_BOUNDS
    elif "null pointer" in words:
        pattern = NULL_POINTER
    else:
        pattern = DIVISION_BY_ZERO if "division by zero" in words else UNDEFINED_BEHAVIOR
    return Report(
        UNDEFINED,
        "runtime error",
        words,
        pattern,
        (here, *frames[1:]),
        call,
        column=int(found["column"]),
        text=text,
    )


def _stacks(text: str) -> dict[str, list[Frame]]:
    """{'mistake': frames, 'freed': …, 'allocated': …}: the first stack of each kind, or []."""
    stacks: dict[str, list[Frame]] = {"mistake": [], "freed": [], "allocated": []}
    name, frames = "mistake", []
    for line in [*text.splitlines(), ""]:
        if frame := _FRAME.match(line):
            frames.append(_frame(frame))
        elif frames:
            stacks[name] = stacks.get(name) or frames
            frames = []
        if begun := re.match(r"(?:previously )?(freed|allocated) by", line):
            name = begun[1]
        elif re.match(r"Address .* is located in stack|SUMMARY", line):
            name = "elsewhere"
    return stacks


def _frame(match: re.Match[str]) -> Frame:
    """(function, file, line) of a frame; without debug information, file is its library."""
    if match["file"]:
        return match["function"] or "", match["file"], int(match["line"])
    function, module = match["function"] or "", match["module"] or ""
    if module and not function:
        # There was no symbolizer. A frame's offset is the last byte of its instruction; `lines_of`
        # expects the next one.
        function, file, line = lines_of(module, (int(match["offset"], 16) + 1,))[0]
        if line and not _is_harness(module):
            return function, file, line
    return function, module, 0


def _of_kernel(frames: list[Frame]) -> tuple[tuple[Frame, ...], str]:
    """(frames, call): the frames between the harness and the kernel's MPI call, if any."""
    end = next((i for i, frame in enumerate(frames) if _is_harness(frame[1])), len(frames))
    inside = [i for i in range(end) if frames[i][0].startswith(("MPI_", "PMPI_"))]
    begin = inside[-1] + 1 if inside else 0
    call = frames[inside[-1]][0].removeprefix("P") if inside else ""
    own = tuple(
        (function, Path(file).name, line)
        for function, file, line in frames[begin:end]
        if line
        and "libsanitizer" not in file
        and "compiler-rt" not in file
        and not file.endswith(("mpilab.h", ".S"))  # memcpy and the like are in assembly language
    )
    return own, call


def _is_harness(file: str) -> bool:
    path = Path(file)
    return path.parent.name == "harness" or path.name.startswith(("libmpilab_harness.", "libc."))


def _region(text: str, address: int, allocators: Collection[str]) -> tuple[str, str]:
    """(object, where the address is relative to it)."""
    if found := _REGION.search(text):
        # The report's own distance counts from the end of a long access.
        size, position = int(found["size"]), address - int(found["begin"], 16)
        for buffer in ("send", "receive"):
            # The harness's allocation includes the guard zones of its buffers.
            if f"make_{buffer}_region" in allocators:
                data = size - 2 * GUARD_BYTES
                return f"the {buffer} buffer ({data} bytes)", _where(position - GUARD_BYTES, data)
        return f"{size} bytes from malloc()", _where(position, size)
    if found := min(_GLOBAL.finditer(text), key=lambda m: int(m["distance"]), default=None):
        size, distance = int(found["size"]), int(found["distance"])
        begin = {"inside of": distance, "to the left of": -distance, "before": -distance}
        where = _where(begin.get(found["direction"], size + distance), size)
        return f"'{found['name']}' ({size} bytes)", where
    if (frame := _IN_FRAME.search(text)) and (found := _VARIABLE.search(text)):
        first, size = int(found[1]), int(found[2]) - int(found[1])
        return f"'{found[3]}' ({size} bytes)", _where(int(frame[1]) - first, size)
    return "", ""


def _where(position: int, size: int) -> str:
    if position < 0:
        return f"{-position} bytes before it"
    if position < size:
        return "inside it"
    return "just past its end" if position == size else f"{position - size} bytes past its end"
