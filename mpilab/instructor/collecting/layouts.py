"""How learning platforms name what they let you download, and whose file is which.

Moodle      Anna Schmidt_12345_assignsubmission_file_/lab.ipynb, or with the file's name behind the
            last underscore instead of in the folder (mod/assign/locallib.php, download_submissions)
Canvas      schmidtanna_LATE_12345_67890_lab-1.ipynb: user, submission, and how often handed in
GitHub      assignment-username/..., as 'gh classroom clone student-repos' makes it
nbgrader    submitted/STUDENT/LAB/LAB.ipynb, and timestamp.txt beside it
"""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from mpilab.errors import InputError, Ungradable
from mpilab.instructor.collecting.source import Found

MOODLE, CANVAS, GITHUB, NBGRADER = "moodle", "canvas", "github-classroom", "nbgrader"

_MOODLE = re.compile(r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_file_(?P<file>.*)")
_CANVAS = re.compile(
    r"(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<submission>\d+)_(?P<file>.+)"
)
_AGAIN = re.compile(r"-(\d+)(?=\.[^.]+$)")


@dataclass(frozen=True)
class Piece:
    """A file that a student handed in.

    student, id   as the platform names them; the id is '' where it tells none
    file          its name as the student had it
    found         where it is
    time          when it was handed in, an aware datetime; None where the download doesn't tell
    late          True or False as the platform says; None where it doesn't
    attempt       how often the file had been handed in before
    """

    student: str
    id: str
    file: str
    found: Found
    time: datetime | None
    late: bool | None = None
    attempt: int = 0


def moodle(files, lab, prefix=""):
    """(pieces, files that are nobody's) of Moodle's 'download all submissions'."""
    return _each(files, _moodle)


def canvas(files, lab, prefix=""):
    """The same for Canvas's 'download submissions'."""
    return _each(files, _canvas)


def nbgrader(files, lab, prefix=""):
    """The same for an nbgrader course, or its folder 'submitted'."""
    stamps = {each.parts[:-1]: each for each in files.files if each.name == "timestamp.txt"}
    pieces, others = [], []
    for found in files.files:
        parts = found.parts
        if "submitted" in parts:
            parts = parts[parts.index("submitted") + 1 :]
        elif any(part == "submitted" for folder in files.folders for part in folder):
            continue  # the course's own files: source, release, autograded …
        if found.name == "timestamp.txt":
            continue
        if len(parts) < 3 or parts[1] != lab:
            others.append(found)
            continue
        depth = len(found.parts) - len(parts) + 2
        stamp = stamps.get(found.parts[:depth])
        pieces.append(Piece(parts[0], "", "/".join(parts[2:]), found, _stamp(stamp)))
    return pieces, others


def github(files, lab, prefix=""):
    """The same for the repositories of a GitHub Classroom, whose names begin with `prefix`.

    No time is known: files have that of the clone.
    """
    tops, within, around = _folders(files, 0), (), files.name
    if len(tops) == 1 and tops[0].endswith("-submissions"):
        within, around, tops = (tops[0],), tops[0], _folders(files, 1)
    if not prefix:
        # gh puts all repositories into ASSIGNMENT-submissions.
        starts = [around.removesuffix("-submissions"), lab, lab.partition("-")[2]]
        fits = (f"{start}-" for start in starts if start and tops
                and all(top.startswith(f"{start}-") for top in tops))  # fmt: skip
        prefix = next(fits, "")
    if not prefix:
        shared = os.path.commonprefix(tops).rpartition("-")[0]
        raise InputError(
            "github-classroom: where does the user's name begin in folders such as "
            f"{', '.join(tops[:3]) or '(there are none)'}? Say what stands before it: "
            f"--prefix {shared or 'assignment'}-"
        )
    pieces, others = [], []
    for found in files.files:
        parts = found.parts[len(within) :]
        user = parts[0].removeprefix(prefix) if len(parts) > 1 else ""
        if user and parts[0].startswith(prefix):
            pieces.append(Piece(user, "", "/".join(parts[1:]), found, None))
        else:
            others.append(found)
    return pieces, others


def _folders(files, depth):
    """Names of the folders at a depth, sorted."""
    return sorted({parts[depth] for parts in files.folders if len(parts) > depth} - {".git"})


LAYOUTS = {MOODLE: moodle, CANVAS: canvas, GITHUB: github, NBGRADER: nbgrader}


def layout_of(files, lab):
    """The name of the layout that a download has; InputError where it is none of them."""
    names = [part for found in files.files for part in found.parts]
    if any(_MOODLE.fullmatch(name) for name in names):
        return MOODLE
    if any(_CANVAS.fullmatch(found.name) for found in files.files):
        return CANVAS
    submitted = any("submitted" in found.parts[:-1] for found in files.files)
    if submitted or any(len(f.parts) == 3 and f.parts[1] == lab for f in files.files):
        return NBGRADER
    if any(folder[-1] == ".git" and len(folder) in (2, 3) for folder in files.folders):
        return GITHUB
    shown = ", ".join(found.path for found in files.files[:3]) or "nothing at all"
    raise InputError(
        f"not the layout of a platform that we know; it holds {shown}. Say which with --from "
        f"{', '.join(LAYOUTS)}; folders STUDENT/{lab}.ipynb need no collecting"
    )


def _each(files, read):
    pieces, others = [], []
    for found in files.files:
        piece = read(found)
        if piece is None:
            others.append(found)
        else:
            pieces.append(piece)
    return pieces, others


def _moodle(found):
    for depth, part in enumerate(found.parts):
        if match := _MOODLE.fullmatch(part):
            below = "/".join(found.parts[depth + 1 :])
            file = below or match["file"]
            return Piece(match["name"], match["id"], file, found, found.time) if file else None
    return None


def _canvas(found):
    match = _CANVAS.fullmatch(found.name)
    if match is None:
        return None
    again = _AGAIN.search(match["file"])
    return Piece(match["name"], match["id"], match["file"], found, found.time,
                 bool(match["late"]), int(again[1]) if again else 0)  # fmt: skip


def _stamp(found):
    """The time in nbgrader's timestamp.txt: '2026-11-20 22:10:05.123456 UTC', or a zone's name or
    its offset; None where there is none that can be read."""
    if found is None:
        return None
    try:
        day, clock, *zone = found.read().decode("utf-8").split()
        time = datetime.fromisoformat(f"{day} {clock}")
        if time.tzinfo is None:
            name = zone[0] if zone else "UTC"
            numeric = re.fullmatch(r"[+-]\d{4}", name)
            time = (datetime.fromisoformat(f"{time.isoformat()}{name}") if numeric
                    else time.replace(tzinfo=UTC if name == "UTC" else ZoneInfo(name)))  # fmt: skip
        return time
    except (ValueError, KeyError, OSError, Ungradable):
        return None
