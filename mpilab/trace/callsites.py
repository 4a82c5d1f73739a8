"""Map the call sites in a recording to source lines."""

import re
import subprocess
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from mpilab.kernels.build import INCLUDE, KERNELS
from mpilab.kernels.simgrid import KERNELS as SIMULATED_KERNELS
from mpilab.util.kit import ROOT

# Limits, since a process may have written arbitrary data into its recording.
SITES_AT_ONCE = 2000
SOURCE_BYTES = 1 << 20
_LINE_DIRECTIVE = re.compile(r'#line 1 "(.*)"$')


def lines_of(library: str | Path, offsets: tuple[int, ...]) -> tuple[tuple[str, str, int], ...]:
    """(function, file, line) for each offset into `library`; line 0 if unknown.

    `offsets` is a tuple of return addresses, as the recorder writes them. A call in an inlined
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
    return tuple(_outside_of_helpers(lines) for lines in frames[: len(offsets)])


def _outside_of_helpers(lines: list[str]) -> tuple[str, str, int]:
    places = zip(lines[::2], lines[1::2], strict=False)
    pairs = [(function, *_place(place)) for function, place in places]
    own = [pair for pair in pairs if not pair[1].endswith("mpilab.h")]
    return (own or [("", "", 0)])[0]


def _place(text: str) -> tuple[str, int]:
    file, _, line = text.partition(" (")[0].rpartition(":")
    return Path(file).name if file != "??" else "", int(line) if line.isdigit() else 0


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
    for path, skipped in _sources(Path(library), Path(file).name) if file else ():
        text = _text(path)
        if text:
            return text.split("\n")[skipped:]
    return []


def _sources(library: Path, name: str) -> Iterator[tuple[Path, int]]:
    """(path, number of lines to skip) of every file that may be the source `name`."""
    beside = library.with_suffix(".c")
    directive = _LINE_DIRECTIVE.match(_text(beside).partition("\n")[0])
    if directive and Path(directive[1]).name == name:
        yield beside, 1
    if library in (KERNELS, SIMULATED_KERNELS):
        yield from (
            (path, 0) for path in sorted((ROOT / "src_c").rglob("*.c")) if path.name == name
        )
    if name == "mpilab.h":
        yield INCLUDE / name, 0


def _text(path: Path) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(SOURCE_BYTES)
    except OSError:
        return ""
