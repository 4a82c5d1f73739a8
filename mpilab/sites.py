"""From a call site in a recording to the line of the source."""

import subprocess
from functools import lru_cache
from pathlib import Path


@lru_cache(maxsize=4096)
def lines_of(library, offsets):
    """(function, file, line) for each offset into `library`; line 0 where nothing is known.

    `offsets` is a tuple of return addresses, as the recorder writes them. A call in an inlined
    helper of mpilab.h is told as the line of the kernel that used the helper; if it was not
    inlined, nobody knows.
    """
    if not offsets or not Path(library).exists():
        return tuple(("", "", 0) for _ in offsets)
    # A return address is that of the next instruction, which may belong to the next line.
    addresses = [hex(max(int(offset) - 1, 0)) for offset in offsets]
    said = subprocess.run(["addr2line", "-a", "-f", "-i", "-e", str(library), *addresses],
                          capture_output=True, text=True, check=False)  # fmt: skip
    frames = []
    for line in said.stdout.splitlines():
        if line.startswith("0x"):
            frames.append([])
        elif frames:
            frames[-1].append(line)
    frames += [[]] * (len(offsets) - len(frames))
    return tuple(_outside_of_helpers(lines) for lines in frames)


def _outside_of_helpers(lines):
    places = zip(lines[::2], lines[1::2], strict=False)
    pairs = [(function, *_place(place)) for function, place in places]
    own = [pair for pair in pairs if not pair[1].endswith("mpilab.h")]
    return (own or [("", "", 0)])[0]


def _place(text):
    file, _, line = text.partition(" (")[0].rpartition(":")
    return Path(file).name if file != "??" else "", int(line) if line.isdigit() else 0
