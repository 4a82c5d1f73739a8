"""From a call site in a recording to the line of the source."""

import re
import subprocess
from functools import lru_cache
from pathlib import Path

from mpilab.build import INCLUDE, KERNELS, ROOT

SIMULATED_KERNELS = KERNELS.parent / "simulated" / "mpilab_kernels.so"  # mpilab.simulated
# A recording may come from a process that wrote into it what it liked.
SITES_AT_ONCE = 2000
SOURCE_BYTES = 1 << 20
_LINE_DIRECTIVE = re.compile(r'#line 1 "(.*)"$')


def lines_of(library, offsets):
    """(function, file, line) for each offset into `library`; line 0 where nothing is known.

    `offsets` is a tuple of return addresses, as the recorder writes them. A call in an inlined
    helper of mpilab.h is told as the line of the kernel that used the helper; if it was not
    inlined, nobody knows.
    """
    try:
        changed = Path(library).stat().st_mtime_ns
    except (OSError, ValueError):
        return tuple(("", "", 0) for _ in offsets)
    known, more = _lines_of(str(library), changed, tuple(offsets[:SITES_AT_ONCE])), len(offsets)
    return known + (("", "", 0),) * (more - len(known))


@lru_cache(maxsize=4096)
def _lines_of(library, _changed, offsets):
    if not offsets:
        return ()
    # A return address is that of the next instruction, which may belong to the next line.
    addresses = [hex(max(int(offset) - 1, 0)) for offset in offsets]
    try:
        said = subprocess.run(["addr2line", "-a", "-f", "-i", "-e", library, *addresses],
                              capture_output=True, text=True, errors="replace",
                              check=False).stdout  # fmt: skip
    except FileNotFoundError:  # no binutils here
        said = ""
    frames = []
    for line in said.splitlines():
        if line.startswith("0x"):
            frames.append([])
        elif frames:
            frames[-1].append(line)
    frames += [[]] * (len(offsets) - len(frames))
    return tuple(_outside_of_helpers(lines) for lines in frames[: len(offsets)])


def _outside_of_helpers(lines):
    places = zip(lines[::2], lines[1::2], strict=False)
    pairs = [(function, *_place(place)) for function, place in places]
    own = [pair for pair in pairs if not pair[1].endswith("mpilab.h")]
    return (own or [("", "", 0)])[0]


def _place(text):
    file, _, line = text.partition(" (")[0].rpartition(":")
    return Path(file).name if file != "??" else "", int(line) if line.isdigit() else 0


def source_line(library, file, line):
    """The text of `line` (from 1) of `file`, as `lines_of` names it; '' where nobody knows it.

    The source of a kernel that mpilab.build has built lies beside it.
    """
    lines = _lines(library, file)
    return lines[line - 1].rstrip().expandtabs(4) if 0 < line <= len(lines) else ""


def calls_within(library, file, function, begin):
    """[(line, text)] of the calls of `function` from line `begin` on to the end of the function
    that this line is in: a brace at the beginning of a line, as in our style."""
    found = []
    called = re.compile(rf"\b{re.escape(function)}\s*\(") if function else None
    for number, text in enumerate(_lines(library, file), 1):
        if called is None or (number > begin and text.startswith("}")):
            break
        if number > begin and called.search(text):
            found.append((number, text.rstrip().expandtabs(4)))
    return found


def _lines(library, file):
    """The lines of a source, [] where nobody knows them."""
    for path, skipped in _sources(Path(library), Path(file).name) if file else ():
        text = _text(path)
        if text:
            return text.split("\n")[skipped:]
    return []


def _sources(library, name):
    """(path, lines before its first one) of every file that may be the source called `name`."""
    beside = library.with_suffix(".c")
    directive = _LINE_DIRECTIVE.match(_text(beside).partition("\n")[0])
    if directive and Path(directive[1]).name == name:
        yield beside, 1
    if library in (KERNELS, SIMULATED_KERNELS):
        yield from ((path, 0) for path in sorted((ROOT / "src_c").glob("*/*.c"))
                    if path.name == name)  # fmt: skip
    if name == "mpilab.h":
        yield INCLUDE / name, 0


def _text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(SOURCE_BYTES)
    except OSError:
        return ""
