"""Collect the submissions in a platform's download into the folders that `mpilab grade` reads.

collect() writes STUDENT/LAB.ipynb for each student, and submissions.csv with students and times.
"""

import io
import os
import re
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

from mpilab.errors import InputError, Ungradable
from mpilab.grading.submission import (
    TABLE,
    Spool,
    limited,
    member_of,
    member_path,
    open_archive,
    student_name,
)
from mpilab.util.files import atomic_write, bare_cell, csv_text, read_rows

_JUNK = ("__MACOSX", ".git", ".ipynb_checkpoints")

MOODLE, CANVAS, GITHUB, NBGRADER = "moodle", "canvas", "github-classroom", "nbgrader"

# From Moodle 4.1 on, a folder's name does not end in '_'.
MOODLE_NAME = re.compile(
    r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?P<kind>file|onlinetext)(?:_(?P<file>.*))?"
)
CANVAS_NAME = re.compile(
    r"(?P<start>(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<submission>\d+)_)(?P<file>.+)"
)
_AGAIN = re.compile(r"-(\d+)(?=\.[^.]+$)")

COLUMNS = ("student", "time", "late", "id", "source", "lab", "platform")
_FORMER_COLUMNS = COLUMNS[:5]

# What browsers, platforms and users append to the name of a second copy.
_COPY = re.compile(r"(?:-\d+|[ _]?\(\d+\)|[ _]\d+|[-_ ]copy\d*)$", re.IGNORECASE)
_AUTO = "auto"


# Reading a download, a folder or a zip. Nothing is unpacked to disk, and no link is followed.


@dataclass(frozen=True)
class Found:
    """A file of the download.

    parts   its path below the source
    time    when it was last changed, an aware datetime; None if unknown
    read    a function that returns its bytes; raises Ungradable if it is too large or damaged
    """

    parts: tuple[str, ...]
    time: datetime | None
    read: Callable[[], bytes]

    @property
    def name(self) -> str:
        """The file name without its folder."""
        return self.parts[-1]

    @property
    def path(self) -> str:
        """The path below the source as text, for messages."""
        return "/".join(self.parts)


@dataclass(frozen=True)
class Files:
    """The contents of a download.

    name      name of the folder or zip, without the suffix
    files     list of Found, sorted by path
    refused   messages about links and other entries that are not regular files
    folders   paths of all folders as tuples, including the ignored ones
    """

    name: str
    files: list[Found]
    refused: list[str]
    folders: set[tuple[str, ...]]


@contextmanager
def opened(source: str | Path) -> Iterator[Files]:
    """Context manager for the Files of a folder or zip, which are readable until it exits."""
    source = Path(source)
    if source.is_dir():
        yield _folder(source)
    elif source.is_file():
        with open(source, "rb") as file, open_archive(file, source, of_class=True) as archive:
            yield _archive(archive, source)
    else:
        raise InputError(
            f"{source}: no such folder or zip; name the file or folder that you downloaded"
        )


def notebooks_within(found: Found) -> list[Found]:
    """The notebooks in a student's own zip, as a list of Found; [] for any other file.

    Raises InputError or Ungradable for a suspicious zip.
    """
    if not found.name.lower().endswith(".zip"):
        return []
    data = io.BytesIO(found.read())
    with open_archive(data, found.path) as archive:
        inner = _archive(archive, found.path)
    # Read when it is needed, so that a class's notebooks are not in memory together.
    return [
        Found((*found.parts, *each.parts), found.time, partial(_read_within, found, number))
        for number, each in enumerate(inner.files)
        if each.name.endswith(".ipynb")
    ]


def _read_within(found: Found, number: int) -> bytes:
    """The file of that number in a student's own zip."""
    with open_archive(io.BytesIO(found.read()), found.path) as archive:
        return _archive(archive, found.path).files[number].read()


def _folder(source: Path) -> Files:
    files, refused, folders = [], [], set()
    for where, names, leaves in os.walk(source, followlinks=False):
        here = Path(where).relative_to(source).parts
        for name in [*names]:
            if name in _JUNK:
                names.remove(name)
                folders.add((*here, name))
            elif Path(where, name).is_symlink():
                names.remove(name)
                refused.append(f"{'/'.join((*here, name))}: a link, not followed")
            else:
                folders.add((*here, name))
        for leaf in leaves:
            path, parts = Path(where, leaf), (*here, leaf)
            status = path.lstat()
            if stat.S_ISREG(status.st_mode):
                time = datetime.fromtimestamp(int(status.st_mtime)).astimezone()
                files.append(Found(parts, time, partial(_read, path)))
            elif not _hidden(leaf):
                kind = "a link, not followed" if stat.S_ISLNK(status.st_mode) else "not a file"
                refused.append(f"{'/'.join(parts)}: {kind}")
    return Files(source.resolve().name, _visible(files), sorted(refused), folders)


def _archive(archive: zipfile.ZipFile, name: str | Path) -> Files:
    files: list[Found] = []
    folders: set[tuple[str, ...]] = set()
    for member in archive.infolist():
        parts = member_path(member).parts
        folders.update(parts[:end] for end in range(1, len(parts)))
        if parts and not member.is_dir():
            read = partial(member_of, archive, [member], PurePosixPath(str(name)).name)
            files.append(Found(parts, _zip_time(member), read))
    return Files(PurePosixPath(str(name)).stem, _visible(files), [], folders)


def _visible(files: Iterable[Found]) -> list[Found]:
    kept = [each for each in files if not any(part in _JUNK for part in each.parts)]
    return sorted((each for each in kept if not _hidden(each.name)), key=lambda each: each.parts)


def _hidden(name: str) -> bool:
    return name.startswith(".")


def _read(path: Path) -> bytes:
    # Since the listing, the file may have been replaced by a link or by a pipe that blocks forever.
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Ungradable(f"{path} is not a file")
        return limited(file, path.name)


def _zip_time(member: zipfile.ZipInfo) -> datetime | None:
    """The time of a zip member, stored in the local time of the machine that created the zip.

    None for 1980-01-01, the earliest date that a zip can store.
    """
    if member.date_time[:3] == (1980, 1, 1):
        return None
    try:
        return datetime(*member.date_time).astimezone()
    except ValueError:
        return None


# Layouts of the platforms' downloads, which show which student submitted a file.
#
# Moodle      Anna Schmidt_12345_assignsubmission_file/lab.ipynb; before 4.1, the folder's name ends
#             in '_'; without folders, the file's name follows that '_' (mod/assign/locallib.php,
#             download_submissions)
# Canvas      schmidtanna_LATE_12345_67890_lab-1.ipynb: user, submission, number of resubmissions
# GitHub      assignment-username/..., as 'gh classroom clone student-repos' creates it
# nbgrader    submitted/STUDENT/LAB/LAB.ipynb, with timestamp.txt next to it


@dataclass(frozen=True)
class Piece:
    """A file that a student submitted.

    student, id   the platform's name and number of the student; the id is '' if there is none
    file          the student's own name for the file
    found         the Found that holds it
    time          when it was submitted, an aware datetime; None if the download does not say
    late          True or False according to the platform; None if it does not say
    attempt       how many times the file had been submitted before
    """

    student: str
    id: str
    file: str
    found: Found
    time: datetime | None
    late: bool | None = None
    attempt: int = 0


# The pieces, and the files that are no student's notebook.
Sorted = tuple[list[Piece], list[Found]]


def moodle(files: Files, lab: str, prefix: str = "") -> Sorted:
    """(pieces, files that belong to no student) of Moodle's 'download all submissions'."""
    return _each(files, _moodle)


def canvas(files: Files, lab: str, prefix: str = "") -> Sorted:
    """(pieces, other files) of Canvas's 'download submissions'."""
    return _each(files, _canvas)


def nbgrader(files: Files, lab: str, prefix: str = "") -> Sorted:
    """(pieces, other files) of an nbgrader course, or of its folder 'submitted'."""
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


def github(files: Files, lab: str, prefix: str = "") -> Sorted:
    """(pieces, other files) of a GitHub Classroom's repositories, whose names begin with `prefix`.

    No time is known: files carry the time of the clone.
    """
    tops, around = _folders(files, 0), files.name
    within: tuple[str, ...] = ()
    if len(tops) == 1 and tops[0].endswith("-submissions"):
        within, around, tops = (tops[0],), tops[0], _folders(files, 1)
    if not prefix:
        # gh puts all repositories into ASSIGNMENT-submissions.
        starts = [around.removesuffix("-submissions"), lab, lab.partition("-")[2]]
        fits = (
            f"{start}-"
            for start in starts
            if start and tops and all(top.startswith(f"{start}-") for top in tops)
        )
        prefix = next(fits, "")
    if not prefix:
        shared = os.path.commonprefix(tops).rpartition("-")[0]
        raise InputError(
            "github-classroom: the prefix before the user's name is unknown in folders such as "
            f"{', '.join(tops[:3]) or '(there are none)'}; give it with --prefix "
            f"{shared or 'assignment'}-"
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


def _folders(files: Files, depth: int) -> list[str]:
    """The sorted names of the folders at a depth."""
    return sorted({parts[depth] for parts in files.folders if len(parts) > depth} - {".git"})


LAYOUTS = {MOODLE: moodle, CANVAS: canvas, GITHUB: github, NBGRADER: nbgrader}


def layout_of(files: Files, lab: str) -> str:
    """The name of a download's layout; InputError if it has none of LAYOUTS."""
    names = [part for found in files.files for part in found.parts]
    if any(MOODLE_NAME.fullmatch(name) for name in names):
        return MOODLE
    if any(CANVAS_NAME.fullmatch(found.name) for found in files.files):
        return CANVAS
    submitted = any("submitted" in found.parts[:-1] for found in files.files)
    if submitted or any(len(f.parts) == 3 and f.parts[1] == lab for f in files.files):
        return NBGRADER
    if any(folder[-1] == ".git" and len(folder) in (2, 3) for folder in files.folders):
        return GITHUB
    shown = ", ".join(found.path for found in files.files[:3]) or "nothing at all"
    raise InputError(
        f"not a known platform's layout; it holds {shown}. Name the platform with --from "
        f"{', '.join(LAYOUTS)}; folders STUDENT/{lab}.ipynb need no collecting"
    )


def _each(files: Files, read: Callable[[Found], Piece | None]) -> Sorted:
    pieces, others = [], []
    for found in files.files:
        piece = read(found)
        if piece is None:
            others.append(found)
        else:
            pieces.append(piece)
    return pieces, others


def _moodle(found: Found) -> Piece | None:
    for depth, part in enumerate(found.parts):
        if match := MOODLE_NAME.fullmatch(part):
            below = "/".join(found.parts[depth + 1 :])
            file = below or match["file"]
            if not file or match["kind"] != "file":
                return None
            return Piece(match["name"], match["id"], file, found, found.time)
    return None


def _text_of(found: Found) -> str:
    """The name of the student who typed this text into Moodle; '' if it is no such text."""
    matches = filter(None, map(MOODLE_NAME.fullmatch, found.parts))
    return next((match["name"] for match in matches if match["kind"] == "onlinetext"), "")


def _canvas(found: Found) -> Piece | None:
    match = CANVAS_NAME.fullmatch(found.name)
    if match is None:
        return None
    again = _AGAIN.search(match["file"])
    return Piece(
        match["name"],
        match["id"],
        match["file"],
        found,
        found.time,
        bool(match["late"]),
        int(again[1]) if again else 0,
    )


def _stamp(found: Found | None) -> datetime | None:
    """The time in nbgrader's timestamp.txt; None if there is none or it cannot be parsed.

    Example: '2026-11-20 22:10:05.123456 UTC'; instead of UTC, another zone's name or its offset.
    """
    if found is None:
        return None
    try:
        day, clock, *zone = found.read().decode("utf-8").split()
        time = datetime.fromisoformat(f"{day} {clock}")
        if time.tzinfo is None:
            name = zone[0] if zone else "UTC"
            numeric = re.fullmatch(r"[+-]\d{4}", name)
            time = (
                datetime.fromisoformat(f"{time.isoformat()}{name}")
                if numeric
                else time.replace(tzinfo=UTC if name == "UTC" else ZoneInfo(name))
            )
        return time
    except (ValueError, KeyError, OSError, Ungradable):
        return None


# Writing STUDENT/LAB.ipynb and the table of submissions.


@dataclass(frozen=True)
class Collected:
    """The result of `collect`.

    layout    a key of LAYOUTS
    students  {student: the Piece that was collected}
    changed   students whose notebook is new or differs from the previous one
    notes     a line for each choice that the instructor may want to check
    left      a line for each file or student that was not collected
    """

    layout: str
    students: dict[str, Piece]
    changed: list[str]
    notes: list[str]
    left: list[str]


def collect(
    source: str | Path,
    dest: str | Path,
    lab: str,
    *,
    layout: str = _AUTO,
    prefix: str = "",
    with_ids: bool = False,
) -> Collected:
    """Write DEST/STUDENT/LAB.ipynb and DEST/submissions.csv from a download; Collected.

    If a student submitted several files, the newest counts. `prefix` precedes the user in the names
    of GitHub Classroom's repositories; `with_ids` appends the platform's number to each name.
    Raises InputError, before writing anything, if two students would get the same name.
    """
    dest = Path(dest)
    if Path(source).is_dir() and dest.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(
            f"{dest}: is inside {source}, so it would be collected next time; name another folder"
        )
    with opened(source) as files:
        layout = layout_of(files, lab) if layout == _AUTO else layout
        pieces, others = LAYOUTS[layout](files, lab, prefix)
        left, notes = list(files.refused), []
        senders = {piece.student for piece in pieces}
        for found in others:
            if (name := _text_of(found)) in senders:
                notes.append(f"{name}: {found.path}: a text besides the file, not graded")
            elif name:
                left.append(f"{name}: a text typed into Moodle, but no file: {found.path}")
            else:
                left.append(f"{found.path}: belongs to no student")
        groups = _by_student(pieces, with_ids, left)
        chosen: dict[str, Piece] = {}
        for student, own in groups.items():
            try:
                newest = _newest(student, own, lab, notes, left)
            except (InputError, Ungradable) as error:
                left.append(f"{student}: {error}")
                continue
            if newest is not None:
                chosen[student] = newest
        if not chosen:
            listed = "\n  ".join(["", *left[:10]])
            raise InputError(f"{source}: no submission of {lab} found as {layout}{listed}")
        spool, contents = Spool(), {}
        for student, piece in list(chosen.items()):
            try:
                contents[student] = partial(spool.get, spool.add(piece.found.read()))
            except (InputError, Ungradable, OSError) as error:
                left.append(f"{student}: {error}")
                del chosen[student]
    changed = _write(dest, lab, layout, chosen, contents)
    return Collected(layout, chosen, changed, notes, left)


def _by_student(pieces: Iterable[Piece], with_ids: bool, left: list[str]) -> dict[str, list[Piece]]:
    """{student's name: pieces}; InputError if two students would get the same name."""
    groups: dict[tuple[str, str], list[Piece]] = defaultdict(list)
    for piece in pieces:
        groups[piece.student, piece.id].append(piece)
    named: dict[str, list[Piece]] = {}
    folded: dict[str, tuple[str, str]] = {}
    for (name, number), own in sorted(groups.items()):
        try:
            student = student_name(f"{name}_{number}" if with_ids and number else name)
        except InputError as error:
            left.append(f"{own[0].found.path}: {error}")
            continue
        # Not every file system is case-sensitive.
        other = folded.setdefault(student.casefold(), (name, number))
        if other != (name, number):
            told = " and ".join(filter(None, [" ".join(other), f"{name} {number}".strip()]))
            remedy = "tell them apart with --with-ids" if number else "rename one of them"
            raise InputError(f"two students would have the name {student!r}: {told}; {remedy}")
        named[student] = own
    return named


def _newest(
    student: str, pieces: list[Piece], lab: str, notes: list[str], left: list[str]
) -> Piece | None:
    """The piece that counts; None if there is none, with the reason added to `left`."""
    notebooks = []
    for piece in pieces:
        if piece.file.endswith(".ipynb"):
            notebooks.append(piece)
        for inner in notebooks_within(piece.found):
            notebooks.append(replace(piece, file=inner.name, found=inner))
    called = [piece for piece in notebooks if _stem(piece.file, lab) == lab.casefold()]
    if not called and len(notebooks) == 1:
        notes.append(
            f"{student}: {notebooks[0].found.path}: accepted, although it is not named {lab}.ipynb"
        )
        called = notebooks
    if not called:
        there = ", ".join(sorted(piece.found.path for piece in notebooks or pieces)[:5])
        several = "several notebooks, none" if notebooks else "no notebook"
        left.append(f"{student}: {several} named {lab}.ipynb: {there}")
        return None
    never = datetime.min.replace(tzinfo=UTC)
    rank = {
        piece: (piece.time or never, piece.attempt, -len(piece.found.parts)) for piece in called
    }
    best = max(called, key=lambda piece: rank[piece])
    equals = [piece for piece in called if rank[piece] == rank[best]]
    if len(equals) > 1:
        left.append(
            f"{student}: which is the newest? " + ", ".join(piece.found.path for piece in equals)
        )
        return None
    if len(called) > 1:
        notes.append(f"{student}: {best.found.path}: the newest of {len(called)}")
    return best


def _stem(file: str, lab: str) -> str:
    """The file name without its folder, its suffix, and anything appended to a copy."""
    stem = file.rpartition("/")[2].removesuffix(".ipynb").casefold()
    while stem != lab.casefold() and _COPY.search(stem):
        stem = _COPY.sub("", stem)
    return stem


def _write(
    dest: Path,
    lab: str,
    layout: str,
    chosen: Mapping[str, Piece],
    contents: Mapping[str, Callable[[], bytes]],
) -> list[str]:
    """Write the notebooks that have changed, and return their students. Checks all paths first.

    Students from an earlier collection who are not in this one stay, with their rows; so do the
    rows of other labs.
    """
    known = [row if len(row) > 5 else [*row, lab, ""] for row in _rows(dest)]
    others = [row for row in known if row[5] != lab]
    rows = {row[0]: row for row in known if row[5] == lab}
    for student in chosen:
        path = dest / student / f"{lab}.ipynb"
        if path.parent.is_symlink() or path.is_symlink():
            raise InputError(f"{path}: is a link, or is reached through one; remove it")
        if path.exists() and student not in rows and path.read_bytes() != contents[student]():
            raise InputError(
                f"{path}: already exists, and was not written by 'mpilab collect'; move it"
            )
    changed = []
    for student, piece in chosen.items():
        path = dest / student / f"{lab}.ipynb"
        if not path.exists() or path.read_bytes() != contents[student]():
            atomic_write(path, contents[student]())
            changed.append(student)
        if piece.time is not None:
            os.utime(path, (piece.time.timestamp(),) * 2)
        rows[student] = [*_row(student, piece), lab, layout]
    table = sorted([*others, *rows.values()], key=lambda row: (row[5], row[0]))
    atomic_write(dest / TABLE, csv_text([COLUMNS, *table]))
    return changed


def _rows(dest: Path) -> list[list[str]]:
    """The rows that an earlier collection wrote."""
    if not (dest / TABLE).exists():
        return []
    header, *rows = read_rows(dest / TABLE)
    if tuple(header) not in (COLUMNS, _FORMER_COLUMNS):
        raise InputError(f"{dest / TABLE}: not written by 'mpilab collect'; move it")
    return [list(map(bare_cell, row)) for row in rows]


def _row(student: str, piece: Piece) -> list[str]:
    time = piece.time.isoformat(timespec="seconds") if piece.time else ""
    late = {True: "yes", False: "no", None: ""}[piece.late]
    return [student, time, late, piece.id, piece.found.path]
