"""Collect the submissions in a platform's download into the folders that `mpilab grade` reads.

collect() writes STUDENT/LAB.ipynb for each student, and submissions.csv with students and times.
Who is in the class, and when each student handed in, is in the platform's own list (`enrolled`).
"""

import io
import json
import os
import re
import stat
import zipfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo
from functools import partial
from pathlib import Path, PurePosixPath
from zoneinfo import ZoneInfo

import yaml

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
from mpilab.util.files import atomic_write, bare_cell, csv_text, read_csv, read_table
from mpilab.util.text import composed

_JUNK = ("__MACOSX", ".git", ".ipynb_checkpoints")

MOODLE, CANVAS, GITHUB, NBGRADER = "moodle", "canvas", "github-classroom", "nbgrader"
GRADESCOPE = "gradescope"
# In the export of Gradescope: who sent what, and when.
_METADATA = "submission_metadata.yml"

# From Moodle 4.1 on, a folder's name does not end in '_'.
MOODLE_NAME = re.compile(
    r"(?P<name>.+?)_(?P<id>\d+)_assignsubmission_(?P<kind>file|onlinetext)(?:_(?P<file>.*))?"
)
CANVAS_NAME = re.compile(
    r"(?P<start>(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)_(?P<submission>\d+)_)(?P<file>.+)"
)
# In an anonymous assignment, and what a student typed instead of sending a file (lib/
# content_zipper.rb).
CANVAS_ANONYMOUS = re.compile(
    r"(?P<start>(?:(?P<late>LATE)_)?(?P<name>anon_(?P<id>\w+?))_(?P<submission>\d+)_)(?P<file>.+)"
)
_CANVAS_TEXT = re.compile(
    r"(?:(?P<name>[^_]+)(?P<late>_LATE)?_(?P<id>\d+)|(?:LATE_)?(?P<anonymous>anon_\w+?))"
    r"_(?:text|link)\.html"
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
    read    a function that returns its bytes; raises Ungradable if it is too large or damaged
    """

    parts: tuple[str, ...]
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

    @property
    def around(self) -> tuple[str, ...]:
        """The path of the one folder at the top that holds all files; () if there is none.

        A student's own folder is none: its contents are not the platform's.
        """
        tops = {found.parts[:-1][:1] for found in self.files}
        top = tops.pop() if len(tops) == 1 else ()
        is_students = (*top, ".git") in self.folders or any(map(MOODLE_NAME.fullmatch, top))
        return () if is_students else top


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
        Found((*found.parts, *each.parts), partial(_read_within, found, number))
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
                files.append(Found(parts, partial(_read, path)))
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
            files.append(Found(parts, read))
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


# Layouts of the platforms' downloads, which show which student submitted a file.
#
# The time of a file in a download says nothing: Moodle (4.1 and later) and Canvas give it the time
# of the download, and a clone has that of the clone.
#
# Moodle      Anna Schmidt_12345_assignsubmission_file/lab.ipynb; before 4.1, the folder's name ends
#             in '_'; without folders, the file's name follows that '_' (mod/assign/locallib.php,
#             download_submissions)
# Canvas      schmidtanna_LATE_12345_67890_lab-1.ipynb: user, submission, number of resubmissions
# GitHub      assignment-username/..., as 'gh classroom clone student-repos' creates it
# nbgrader    submitted/STUDENT/LAB/LAB.ipynb, with timestamp.txt next to it
# Gradescope  submission_12345/..., with submission_metadata.yml next to it


@dataclass(frozen=True)
class Piece:
    """A file that a student submitted.

    student, id   the platform's name and number of the student; the id is '' if there is none
    file          the student's own name for the file
    found         the Found that holds it
    time          when it was submitted, an aware datetime; None if the download does not say
    late          True or False according to the platform; None if it does not say
    attempt       how many times the file had been submitted before
    is_text       a text that was typed into the platform, instead of a file
    number        the platform's number of the file; '' if there is none
    """

    student: str
    id: str
    file: str
    found: Found
    time: datetime | None
    late: bool | None = None
    attempt: int = 0
    is_text: bool = False
    number: str = ""


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
    level = len(files.around)
    has_submitted = _has_submitted(files)
    for found in files.files:
        parts = found.parts
        if "submitted" in parts[: level + 1]:
            parts = parts[parts.index("submitted") + 1 :]
        elif has_submitted:
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
    """(pieces, other files) of a GitHub Classroom's repositories, called `prefix` and user."""
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


def gradescope(files: Files, lab: str, prefix: str = "") -> Sorted:
    """(pieces, other files) of Gradescope's 'Export Submissions'; each author has the files.

    The number of a student is the e-mail address, by which Gradescope's autograder knows them.
    """
    # Not further down: a student may hand in a file of that name.
    lists = {each.parts[:-1]: each for each in _made_by_platform(files) if each.name == _METADATA}
    authors: dict[tuple[str, ...], list[tuple[str, str, datetime | None]]] = {}
    for around, found in lists.items():
        for folder, entry in _metadata(found).items():
            authors[(*around, str(folder))] = entry
    pieces, others = [], []
    for found in files.files:
        if found.name == _METADATA:
            continue
        place = next((p for p in authors if found.parts[: len(p)] == p), None)
        if place is None:
            others.append(found)
            continue
        file = "/".join(found.parts[len(place) :])
        pieces += [Piece(name, email, file, found, time) for name, email, time in authors[place]]
    return pieces, others


def _metadata(found: Found) -> dict[str, list[tuple[str, str, datetime | None]]]:
    """{folder: [(name, address, time) of each author]} in Gradescope's list of submissions."""
    try:
        listed = {}
        for folder, entry in yaml.safe_load(found.read()).items():
            created = entry.get(":created_at")
            time = moment(created, UTC) if isinstance(created, str) else created
            if time is not None and time.tzinfo is None:
                time = time.replace(tzinfo=UTC)
            people = entry[":submitters"]
            listed[folder] = [(one[":name"], str(one[":email"]), time) for one in people]
    except (
        yaml.YAMLError,
        ValueError,
        KeyError,
        TypeError,
        AttributeError,
        RecursionError,
    ) as error:
        raise InputError(
            f"{found.path}: not as Gradescope writes it ({error!r}); export the submissions again"
        ) from None
    return listed


def _made_by_platform(files: Files) -> list[Found]:
    """The files at the top of a download."""
    level = len(files.around)
    return [found for found in files.files if len(found.parts) == level + 1]


def _has_submitted(files: Files) -> bool:
    """Whether nbgrader's folder 'submitted' is at the top of a download, or around it."""
    level = len(files.around)
    return any("submitted" in found.parts[:-1][: level + 1] for found in files.files)


def _folders(files: Files, depth: int) -> list[str]:
    """The sorted names of the folders at a depth."""
    return sorted({parts[depth] for parts in files.folders if len(parts) > depth} - {".git"})


LAYOUTS = {
    MOODLE: moodle,
    CANVAS: canvas,
    GITHUB: github,
    NBGRADER: nbgrader,
    GRADESCOPE: gradescope,
}


def layout_of(files: Files, lab: str) -> str:
    """The name of a download's layout; InputError if it has none of LAYOUTS.

    Only names that the platform has given count: students give those further down.
    """
    made, level = _made_by_platform(files), len(files.around)
    if any(found.name == _METADATA for found in made):
        return GRADESCOPE
    if any(MOODLE_NAME.fullmatch(part) for f in files.files for part in f.parts[: level + 1]):
        return MOODLE
    if any(_canvas(found) for found in made):
        return CANVAS
    if _has_submitted(files):
        return NBGRADER
    repositories = {len(folder) for folder in files.folders if folder[-1] == ".git"}
    # Before nbgrader without 'submitted': a repository may have a folder that is named LAB.
    if level + 2 in repositories:
        return GITHUB
    if any(len(f.parts) == 3 and f.parts[1] == lab for f in files.files):
        return NBGRADER
    if 3 in repositories:
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
            if not file:
                return None
            is_text = match["kind"] == "onlinetext"
            return Piece(match["name"], match["id"], file, found, None, is_text=is_text)
    return None


def _canvas(found: Found) -> Piece | None:
    if text := _CANVAS_TEXT.fullmatch(found.name):
        name = text["name"] or text["anonymous"]
        number = text["id"] or name.removeprefix("anon_")
        return Piece(name, number, found.name, found, None, "LATE_" in found.name, is_text=True)
    match = CANVAS_ANONYMOUS.fullmatch(found.name) or CANVAS_NAME.fullmatch(found.name)
    if match is None:
        return None
    again = _AGAIN.search(match["file"])
    attempt = int(again[1]) if again else 0
    return Piece(
        *(match["name"], match["id"], match["file"], found, None, bool(match["late"]), attempt),
        number=match["submission"],
    )


def _stamp(found: Found | None) -> datetime | None:
    """The time in nbgrader's timestamp.txt; None if there is none or it cannot be parsed."""
    try:
        return moment(found.read().decode("utf-8"), UTC) if found else None
    except (ValueError, KeyError, OSError, Ungradable):
        return None


def moment(text: str, zone: tzinfo | None) -> datetime:
    """The time in a text such as '2026-11-20 22:10:05.123456 UTC', with a date as in ISO 8601.

    Instead of UTC, it may have another zone's name or its offset; without one, it is in `zone`, or
    in that of this machine. Raises ValueError, OverflowError or KeyError for anything else.
    """
    day, *rest = re.sub(r"(?<=\d)T(?=\d)", " ", text).split()
    clock, *names = rest or ["00:00"]
    time = datetime.fromisoformat(f"{day} {clock}")
    if time.tzinfo is not None:
        return time
    if names and re.fullmatch(r"[+-]\d{4}", names[0]):
        return datetime.fromisoformat(f"{time.isoformat()}{names[0]}")
    if names:
        zone = UTC if names[0] == "UTC" else ZoneInfo(names[0])
    return _in_zone(time, zone)


def _in_zone(time: datetime, zone: tzinfo | None) -> datetime:
    """A naive time as one in `zone`; without one, in this machine's zone as it is at that time."""
    return time.replace(tzinfo=zone) if zone else time.astimezone()


# The platforms' lists of a class: who is in it, and when each student handed in.
#
# Moodle      the assignment's grading worksheet in English: Identifier ('Participant 12345'), Full
#             name, Status, Last modified (submission)
# Canvas      its submissions as JSON, with include[]=user (doc/api/submissions.md)
# GitHub      Classroom's CSV: github_username, submission_timestamp
# Gradescope  the grades of the assignment as CSV: First Name, Last Name (or Name), Email
# others      a CSV with the columns student and, if it is known, time and id


@dataclass(frozen=True)
class Enrolled:
    """A student of the class.

    student, id   as in Piece
    time          when the submission was handed in, an aware datetime; None if unknown, or if there
                  is none
    late          True or False according to the platform; None if it does not say
    files         the platform's numbers of the files in the submission, which a group shares
    """

    student: str
    id: str = ""
    time: datetime | None = None
    late: bool | None = None
    files: frozenset[str] = frozenset()


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MOODLE_TIME = re.compile(
    r"(?:\w+, )?(?:(?P<day>\d{1,2}) (?P<month>[A-Za-z]+)|(?P<month2>[A-Za-z]+) (?P<day2>\d{1,2}))"
    r",? (?P<year>\d{4}),? (?P<hour>\d{1,2}):(?P<minute>\d\d)(?::\d\d)?(?: (?P<half>[AP])M)?",
    re.IGNORECASE,
)
_NO_TIME = ("", "-", "–")


def enrolled(path: str | Path, zone: tzinfo | None = None) -> list[Enrolled]:
    """The class in a platform's list, see above; times without a zone are in `zone`.

    By default, that is this machine's. Raises InputError for another file, or a time that cannot be
    read.
    """
    path = Path(path)
    text = read_csv(path)
    if text.lstrip().startswith("["):
        return _enrolled_canvas(path, text)
    columns, body = read_table(path)
    rows = [
        (f"{path}:{line}", {name: composed(bare_cell(cell)) for name, cell in row.items()})
        for line, row in body
    ]
    for column, read in (
        ("Identifier", _enrolled_moodle),
        ("github_username", _enrolled_github),
        ("Email", _enrolled_gradescope),
        ("student", _enrolled_plain),
    ):
        if column in columns:
            return [read(where, row, zone) for where, row in rows]
    raise InputError(
        f"{path}: not a class list; it has the columns {', '.join(columns)}. Give Moodle's grading "
        "worksheet in English, Canvas's submissions as JSON, the CSV of GitHub Classroom or "
        "Gradescope, or one with a column 'student'"
    )


def _enrolled_moodle(where: str, row: Mapping[str, str], zone: tzinfo | None) -> Enrolled:
    number = row["Identifier"].split()[-1] if row["Identifier"].strip() else ""
    if not number.isdigit():
        raise InputError(
            f"{where}: Identifier {row['Identifier']!r} has no number; download it again"
        )
    status = row.get("Status", "")
    text = " ".join(row.get("Last modified (submission)", "").split())
    name = row.get("Full name") or f"Participant {number}"
    if text in _NO_TIME or status.startswith("No submission"):
        return Enrolled(name, number)
    match = _MOODLE_TIME.fullmatch(text)
    month = ((match["month"] or match["month2"])[:3].lower() if match else "") or "-"
    if match is None or month not in _MONTHS:
        raise InputError(
            f"{where}: the submission of {name} was last modified at {text!r}, which is not a time "
            "as Moodle writes it in English; choose English, and download the worksheet again"
        )
    hour = int(match["hour"])
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].upper() == "P")
    date = (int(match["year"]), _MONTHS.index(month) + 1, int(match["day"] or match["day2"]))
    try:
        time = _in_zone(datetime(*date, hour, int(match["minute"])), zone)
    except (ValueError, OverflowError):
        raise InputError(f"{where}: {name}: there is no time {text!r}; correct it") from None
    return Enrolled(name, number, time, bool(re.search(r"\blate\b", status)))


def _enrolled_github(where: str, row: Mapping[str, str], zone: tzinfo | None) -> Enrolled:
    name = _named(where, row["github_username"], "github_username")
    return Enrolled(name, "", time_in(where, name, row.get("submission_timestamp", ""), zone))


def _enrolled_gradescope(where: str, row: Mapping[str, str], zone: tzinfo | None) -> Enrolled:
    both = f"{row.get('First Name', '')} {row.get('Last Name', '')}"
    return Enrolled(_named(where, row.get("Name") or both, "Name"), row["Email"].strip())


def _enrolled_plain(where: str, row: Mapping[str, str], zone: tzinfo | None) -> Enrolled:
    name = _named(where, row["student"], "student")
    return Enrolled(name, row.get("id", ""), time_in(where, name, row.get("time", ""), zone))


def _enrolled_canvas(path: Path, text: str) -> list[Enrolled]:
    """The students in Canvas's submissions: one JSON list, or several, as its API sends pages."""
    found, place, decoder = [], 0, json.JSONDecoder()
    try:
        while place < len(text.rstrip()):
            page, place = decoder.raw_decode(text, len(text) - len(text[place:].lstrip()))
            for each in page:
                number = str(each.get("user_id") or each["anonymous_id"])
                name = each["user"]["sortable_name"] if "user" in each else f"anon_{number}"
                time = each["submitted_at"] and moment(each["submitted_at"], UTC)
                late = bool(each.get("late")) if time else None
                sent = frozenset(str(file["id"]) for file in each.get("attachments") or ())
                found.append(Enrolled(canvas_name(name), number, time or None, late, sent))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: not Canvas's submissions as JSON ({error!r}); fetch them again from its API "
            "with include[]=user"
        ) from None
    return found


def canvas_name(sortable: str) -> str:
    """A name such as 'Schmidt, Anna' as in Canvas's file names: 'schmidtanna'."""
    return re.sub(r"\W", "", composed(sortable)).lower()


def _named(where: str, name: str, column: str) -> str:
    """The name in a row; InputError if there is none."""
    if not name.strip():
        raise InputError(f"{where}: no {column}; fill it in, or delete the row")
    return name.strip()


def time_in(
    where: str | Path, student: str, text: str, zone: tzinfo | None = None
) -> datetime | None:
    """The student's time in a table, as `moment` reads it; None if there is none.

    Raises InputError, which begins with `where` and the student, if it is not a time.
    """
    try:
        return None if text.strip() in _NO_TIME else moment(text, zone)
    except (ValueError, OverflowError, KeyError):
        raise InputError(
            f"{where}: {student}: {text!r} is not a time; write e.g. 2026-11-20T23:59, or "
            "2026-11-20T23:59+01:00"
        ) from None


# Writing STUDENT/LAB.ipynb and the table of submissions.


@dataclass(frozen=True)
class Collected:
    """The result of `collect`.

    layout    a key of LAYOUTS
    students  {student: the Piece that was collected}
    changed   students whose notebook is new or differs from the previous one
    absent    students of the class who handed in nothing
    timeless  students whose submission has no time
    notes     a line for each choice that the instructor may want to check
    left      a line for each file or student that was not collected
    """

    layout: str
    students: dict[str, Piece]
    changed: list[str]
    absent: list[str]
    timeless: list[str]
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
    roster: str | Path | None = None,
    zone: tzinfo | None = None,
) -> Collected:
    """Write DEST/STUDENT/LAB.ipynb and DEST/submissions.csv from a download; Collected.

    If a student submitted several files, the last attempt counts. `prefix` precedes the user in the
    names of GitHub Classroom's repositories; `with_ids` appends the platform's number to each name.
    `roster` is the platform's list of the class, and `zone` that of its times (see `enrolled`): the
    table then has its times, and rows of students who handed in nothing.
    Raises InputError, before writing anything, if two students would get the same name.
    """
    dest = Path(dest)
    if Path(source).is_dir() and dest.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(
            f"{dest}: is inside {source}, so it would be collected next time; name another folder"
        )
    members = enrolled(roster, zone) if roster else []
    with opened(source) as files:
        layout = layout_of(files, lab) if layout == _AUTO else layout
        pieces, others = LAYOUTS[layout](files, lab, prefix)
        pieces = [replace(piece, student=composed(piece.student)) for piece in pieces]
        notes: list[str] = []
        left = [*files.refused, *(f"{found.path}: belongs to no student" for found in others)]
        if roster:
            pieces, members = _enroll(pieces, members, notes, Path(roster).name)
        names = _names([*pieces, *members], with_ids, left)
        groups: dict[str, list[Piece]] = defaultdict(list)
        for piece in pieces:
            if _person(piece) in names:
                groups[names[_person(piece)]].append(piece)
        chosen: dict[str, Piece] = {}
        for student, own in groups.items():
            try:
                last = _last(student, own, lab, layout, notes, left)
            except (InputError, Ungradable) as error:
                left.append(f"{student}: {error}")
                continue
            if last is not None:
                chosen[student] = last
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
    table = _Table(dest, lab, layout)
    table.check(contents)
    sent = {student: own[0] for student, own in groups.items()} | chosen
    changed = table.add(sent, contents, notes)
    if roster:
        absent = {names[_person(one)]: one for one in members if _person(one) in names}
        for student in table.list_absent(absent, f"not in {Path(source).name}"):
            left.append(f"{student}: handed in {absent[student].time}, but has no file here")
    table.write()
    return Collected(layout, chosen, changed, table.absent, table.timeless, notes, left)


def _enroll(
    pieces: Iterable[Piece], members: Iterable[Enrolled], notes: list[str], roster: str
) -> tuple[list[Piece], list[Enrolled]]:
    """(the pieces with what the class's list says of them, the students who have none).

    Students are found by the number of the file or their own, else by name. For a group, Moodle has
    a copy for each member, and puts the group's name and '-' before theirs; Canvas has one file,
    under the group's name, which each member gets.
    """
    members = list(members)
    by_id = {one.id: one for one in members if one.id}
    by_name = {one.student.casefold(): one for one in members}
    found, seen, unknown = [], set(), {}
    for piece in pieces:
        owners = [one for one in members if piece.number in one.files]
        if not owners:
            one = by_id.get(piece.id) or by_name.get(piece.student.casefold())
            is_other = one and one.id and piece.id and one.id != piece.id  # a namesake
            owners = [one] if one and not is_other else []
        if not owners:
            unknown[piece.student] = f"{piece.student}: {piece.found.path}: is not in {roster}"
            found.append(piece)
        for one in owners:
            seen.add(one)
            is_known = piece.number in one.files or piece.student.endswith(f"-{one.student}")
            name = one.student if is_known else piece.student
            late = piece.late if one.late is None else one.late
            id_, time = one.id or piece.id, one.time or piece.time
            found.append(replace(piece, student=name, id=id_, time=time, late=late))
    notes += unknown.values()
    return found, [one for one in members if one not in seen]


def _person(one: Piece | Enrolled) -> tuple[str, str]:
    """(the platform's name, its number)."""
    return one.student, one.id


def _names(
    people: Iterable[Piece | Enrolled], with_ids: bool, left: list[str]
) -> dict[tuple[str, str], str]:
    """{(name, number): student}; InputError if two students would get the same name."""
    names: dict[tuple[str, str], str] = {}
    folded: dict[str, tuple[str, str]] = {}
    for name, number in sorted(set(map(_person, people))):
        try:
            student = student_name(f"{name}_{number}" if with_ids and number else name)
        except InputError as error:
            left.append(str(error))
            continue
        # Not every file system is case-sensitive.
        other = folded.setdefault(student.casefold(), (name, number))
        if other != (name, number):
            told = " and ".join(filter(None, [" ".join(other), f"{name} {number}".strip()]))
            remedy = "tell them apart with --with-ids" if number else "rename one of them"
            raise InputError(f"two students would have the name {student!r}: {told}; {remedy}")
        names[name, number] = student
    return names


def _last(
    student: str, pieces: list[Piece], lab: str, layout: str, notes: list[str], left: list[str]
) -> Piece | None:
    """The piece that counts; None if there is none, with the reason added to `left`."""
    texts = [piece for piece in pieces if piece.is_text]
    files = [piece for piece in pieces if not piece.is_text]
    if texts and not files:
        path = texts[0].found.path
        left.append(f"{student}: a text typed into {layout.capitalize()}, but no file: {path}")
        return None
    notes += [
        f"{student}: {piece.found.path}: a text besides the file, not graded" for piece in texts
    ]
    notebooks = []
    for piece in files:
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
        there = ", ".join(sorted(piece.found.path for piece in notebooks or files)[:5])
        several = "several notebooks, none" if notebooks else "no notebook"
        left.append(f"{student}: {several} named {lab}.ipynb: {there}")
        return None
    never = datetime.min.replace(tzinfo=UTC)
    rank = {
        piece: (
            piece.time or never,
            piece.attempt,
            _copy_number(piece.file),
            -len(piece.found.parts),
        )
        for piece in called
    }
    best = max(called, key=lambda piece: rank[piece])
    equals = [piece for piece in called if rank[piece] == rank[best]]
    if len(equals) > 1:
        listed = ", ".join(piece.found.path for piece in equals)
        left.append(
            f"{student}: which one counts? {listed}; unpack the download, remove the others, and "
            "collect from the folder"
        )
        return None
    if len(called) > 1:
        notes.append(f"{student}: {best.found.path}: taken for the last of {len(called)}")
    return best


def _copy_number(file: str) -> int:
    """The number that a browser or a platform has appended to the name of a copy; 0 without."""
    number = re.search(r"(\d+)\)?$", "".join(_COPY.findall(file.removesuffix(".ipynb"))))
    return int(number[1]) if number else 0


def _stem(file: str, lab: str) -> str:
    """The file name without its folder, its suffix, and anything appended to a copy."""
    stem = file.rpartition("/")[2].removesuffix(".ipynb").casefold()
    while stem != lab.casefold() and _COPY.search(stem):
        stem = _COPY.sub("", stem)
    return stem


class _Table:
    """The table of submissions below `dest`: the rows of a lab, and those of others, which stay.

    Students with a notebook from an earlier collection who are not in this one stay, too.
    """

    def __init__(self, dest: Path, lab: str, layout: str) -> None:
        self.dest, self.lab, self.layout = dest, lab, layout
        known = [row if len(row) > 5 else [*row, lab, ""] for row in self._read()]
        self.others = [row for row in known if row[5] != lab]
        self.rows = {row[0]: row for row in known if row[5] == lab}

    def _read(self) -> list[list[str]]:
        """The rows that an earlier collection wrote."""
        path = self.dest / TABLE
        if not path.exists():
            return []
        columns, rows = read_table(path)
        if tuple(columns) not in (COLUMNS, _FORMER_COLUMNS):
            raise InputError(f"{path}: not written by 'mpilab collect'; move it")
        return [list(map(bare_cell, row.values())) for _, row in rows]

    def _path(self, student: str) -> Path:
        return self.dest / student / f"{self.lab}.ipynb"

    def check(self, contents: Mapping[str, Callable[[], bytes]]) -> None:
        """Raise InputError if a notebook would replace one that was not collected."""
        for student, content in contents.items():
            path = self._path(student)
            if path.parent.is_symlink() or path.is_symlink():
                raise InputError(f"{path}: is a link, or is reached through one; remove it")
            if path.exists() and student not in self.rows and path.read_bytes() != content():
                raise InputError(
                    f"{path}: already exists, and was not written by 'mpilab collect'; move it"
                )

    def add(
        self,
        pieces: Mapping[str, Piece],
        contents: Mapping[str, Callable[[], bytes]],
        notes: list[str],
    ) -> list[str]:
        """Write the notebooks that have changed, and return their students.

        `pieces` are of all students who sent something, `contents` the notebooks of those who sent
        one. A time that was filled in by hand stays as long as the notebook does.
        """
        changed = []
        for student, piece in pieces.items():
            path, before, row = (
                self._path(student),
                self.rows.get(student),
                self._row(student, piece),
            )
            if student not in contents:
                if before is None or not path.exists():
                    self.rows[student] = row
                continue
            content = contents[student]()
            if not path.exists() or path.read_bytes() != content:
                atomic_write(path, content)
                changed.append(student)
                if before and before[1] and not row[1]:
                    notes.append(f"{student}: a new file, so its time {before[1]} is removed")
            elif before:
                row[1:3] = [new or old for new, old in zip(row[1:3], before[1:3], strict=True)]
            if piece.time is not None:
                os.utime(path, (piece.time.timestamp(),) * 2)
            self.rows[student] = row
        return changed

    def list_absent(self, students: Mapping[str, Enrolled], lost: str) -> list[str]:
        """List {student: Enrolled} as those who handed in nothing, instead of those listed before.

        Returns those with a time and without a file of an earlier collection; `lost` is in the
        place of the path of their files.
        """
        self.rows = {name: row for name, row in self.rows.items() if row[4]}
        new = [name for name in students if name not in self.rows]
        for student in new:
            one = students[student]
            time = one.time.isoformat(timespec="seconds") if one.time else ""
            row = [student, time, "", one.id, lost if time else "", self.lab, self.layout]
            self.rows[student] = row
        return [student for student in new if students[student].time]

    @property
    def absent(self) -> list[str]:
        """The students who handed in nothing."""
        return sorted(name for name, row in self.rows.items() if not row[4])

    @property
    def timeless(self) -> list[str]:
        """The students whose submission has no time."""
        return sorted(name for name, row in self.rows.items() if row[4] and not row[1])

    def write(self) -> None:
        """Write the table."""
        table = sorted([*self.others, *self.rows.values()], key=lambda row: (row[5], row[0]))
        atomic_write(self.dest / TABLE, csv_text([COLUMNS, *table]))

    def _row(self, student: str, piece: Piece) -> list[str]:
        time = piece.time.isoformat(timespec="seconds") if piece.time else ""
        late = {True: "yes", False: "no", None: ""}[piece.late]
        return [student, time, late, piece.id, piece.found.path, self.lab, self.layout]
