"""Find the submissions of a class, and read them without trusting them.

A class is a folder or a zip of `<student>/<lab>.ipynb`, or a folder of `<student>.zip`; it may also
be a single notebook. A student's bad file becomes a `Submission` with a `problem`; it never stops
the class.
"""

import errno
import hashlib
import io
import json
import os
import re
import stat
import struct
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import IO, Any, NoReturn

import nbformat
from nbformat import NotebookNode

from mpilab.errors import InputError, Ungradable
from mpilab.grading.release import answer_id
from mpilab.judging.verdict import NOT_HANDED_IN
from mpilab.util.files import atomic_write, bare_cell, read_table
from mpilab.util.kit import ROOT
from mpilab.util.text import composed, plain
from mpilab.util.units import bytes_of

# Lists and objects in a notebook's JSON: each takes 30 times as many bytes in memory as in the
# file. A notebook with large figures has about ten thousand.
PART_LIMIT = 1_000_000
CELL_LIMIT = 10_000
DEPTH_LIMIT = 100
_FRESH = "copy the answers into a fresh copy of the lab"

MiB = 1024 * 1024
NOTEBOOK_LIMIT = 20 * MiB
# Of the zip of one submission. That of a class may unpack to this, and NOTEBOOK_LIMIT for each
# submission in it; only its notebooks are ever unpacked.
ARCHIVE_LIMIT = 64 * MiB
MEMBER_LIMIT = 10_000
# Of the zip of a class. zipfile keeps a kilobyte for each member.
CLASS_MEMBER_LIMIT = 200_000
# The variable in which an instructor sets another limit for the zip of a class, e.g. 8G.
ZIP_LIMIT_VARIABLE = "MPILAB_ZIP_LIMIT"

# Deflate reaches at most 1032; a notebook that printed one line a million times stays below 500.
RATIO_LIMIT = 500

# What zipfile raises for a damaged or encrypted zip.
ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error),
    *(NotImplementedError, RuntimeError, ValueError),
)

OUTPUT_CHARACTERS, OUTPUT_LINES = 4_000, 60
ALL_OUTPUT_CHARACTERS = 200_000

NAME_LIMIT = 100
FILE_NAME_LIMIT = 255  # characters; no file system has longer names

# Beside the submissions that 'mpilab collect' wrote, and beside their marks: who sent which file.
TABLE = "submissions.csv"
# A table of students: {student: {lowercase column: value}}.
Roster = dict[str, dict[str, str]]

# Characters that change the reading direction can make one name look like another.
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


# Untrusted notebooks. A few megabytes of JSON can become gigabytes of objects, and any value may
# have the wrong type. So lists and objects are counted before parsing, and only the parts that are
# named here are checked and used.


def read(data: bytes, where: str) -> dict[str, Any]:
    """Parse the bytes of a notebook into a dict whose cells all have a source.

    Raises Ungradable, with a remedy, for anything but a notebook of format 4.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Ungradable(
            f"{where}: byte {error.start} is not UTF-8 text; save the notebook from JupyterLab "
            "and hand in that file as it is"
        ) from error
    if not text.strip():
        raise Ungradable(f"{where}: the file is empty; save the notebook and hand it in again")
    if text.count("{") + text.count("[") > PART_LIMIT:
        raise Ungradable(
            f"{where}: more than {PART_LIMIT} lists and objects in it; clear the outputs and save "
            "it again"
        )
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "open it in JupyterLab: if it doesn't open there either, go back to an older copy"
        if text.lstrip().startswith("<"):
            hint = "it is a web page: download the notebook itself"
        raise Ungradable(
            f"{where}: not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}), "
            f"so it is not a notebook; {hint}"
        ) from error
    except RecursionError as error:
        raise Ungradable(_too_deep(where)) from error
    except ValueError as error:
        raise Ungradable(
            f"{where}: not usable as JSON ({error}); save the notebook again"
        ) from error
    if _is_deep(content):
        raise Ungradable(_too_deep(where))
    _check_shape(content, where)
    return content


def bare(content: dict[str, Any]) -> NotebookNode:
    """What `read` returned as a NotebookNode, with type, id, grade_id and source of each cell."""
    cells = [_bare_cell(cell) for cell in content["cells"]]
    return nbformat.from_dict({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": cells})


def with_outputs(content: dict[str, Any]) -> NotebookNode:
    """Like `bare`, with the tags of each cell and the text of its outputs.

    From an output, this keeps the text of a stream, the traceback of an error, and text/plain.
    """
    notebook = bare(content)
    for cell, submitted in zip(notebook.cells, content["cells"], strict=True):
        metadata, outputs = submitted.get("metadata"), submitted.get("outputs")
        tags = metadata.get("tags") if isinstance(metadata, dict) else None
        # This identifies an answer cell as well: see mpilab.grading.release.answer_id.
        if "nbgrader" in cell.metadata:
            cell.metadata.nbgrader.solution = metadata["nbgrader"].get("solution") is True
        cell.metadata.tags = [tag for tag in _listed(tags) if isinstance(tag, str)]
        cell.outputs = [
            nbformat.from_dict(each) for each in map(_bare_output, _listed(outputs)) if each
        ]
    return notebook


def _bare_cell(cell: dict[str, Any]) -> dict[str, Any]:
    """The parts of a cell that are used; values of the wrong type are left out."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    grade_id = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    bare_cell = {"cell_type": "raw", "source": _text(cell["source"]), "metadata": {}}
    if isinstance(grade_id, str):
        bare_cell["metadata"] = {"nbgrader": {"grade_id": grade_id}}
    return bare_cell | {key: cell[key] for key in ("cell_type", "id") if _is_text(cell.get(key))}


def _bare_output(output: Any) -> dict[str, Any] | None:
    """An output reduced to its text; None if it has none."""
    if not isinstance(output, dict):
        return None
    kind = output.get("output_type")
    if kind == "stream":
        name = "stderr" if output.get("name") == "stderr" else "stdout"
        return {"output_type": kind, "name": name, "text": _text(output.get("text"))}
    if kind == "error":
        lines = [line for line in _listed(output.get("traceback")) if _is_text(line)]
        named = {key: _text(output.get(key)) for key in ("ename", "evalue")}
        said = any((lines, *named.values()))
        return {"output_type": kind, "traceback": lines, **named} if said else None
    data = output.get("data")
    text = _text(data.get("text/plain")) if isinstance(data, dict) else ""
    if not text:
        return None
    return {"output_type": "display_data", "data": {"text/plain": text}, "metadata": {}}


def _text(value: Any) -> str:
    """Text that may be a list of lines; "" for anything else."""
    return value if _is_text(value) else "".join(filter(_is_text, _listed(value)))


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_deep(content: Any) -> bool:
    """True if the JSON is nested more deeply than that of any notebook."""
    level = [content] if isinstance(content, dict | list) else []
    for _ in range(DEPTH_LIMIT):
        inner = (part.values() if isinstance(part, dict) else part for part in level)
        level = [each for parts in inner for each in parts if isinstance(each, dict | list)]
        if not level:
            return False
    return True


def _too_deep(where: str) -> str:
    return f"{where}: nested too deeply to be a notebook; copy the answers into a fresh copy"


def _check_shape(content: Any, where: str) -> None:
    """Raise Ungradable unless the parts of `content` that we use are those of a notebook."""
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise Ungradable(f"{where}: JSON, but not a notebook (it has no nbformat); {_FRESH}")
    if content["nbformat"] < 4:
        raise Ungradable(
            f"{where}: a notebook of the old format {content['nbformat']}; upgrade it with "
            "'jupyter nbconvert --to notebook --inplace FILE' and hand it in again"
        )
    if content["nbformat"] > 4:
        raise Ungradable(
            f"{where}: notebook format {content['nbformat']} is newer than the grader knows; "
            "save it as format 4"
        )
    cells = content.get("cells")
    if not isinstance(cells, list):
        raise Ungradable(f"{where}: JSON, but not a notebook (it has no cells); {_FRESH}")
    if len(cells) > CELL_LIMIT:
        raise Ungradable(f"{where}: {len(cells)} cells, more than {CELL_LIMIT}; {_FRESH}")
    for number, cell in enumerate(cells, start=1):
        source = cell.get("source") if isinstance(cell, dict) else None
        lines: list[Any] = source if isinstance(source, list) else [source]
        if not all(map(_is_text, lines)):
            raise Ungradable(f"{where}: cell {number} has no source; {_FRESH}")
        if any(unicodedata.category(c) == "Cs" for line in lines for c in set(line)):
            raise Ungradable(f"{where}: cell {number} holds half a character, not text; {_FRESH}")


# Untrusted zips: read in memory, never unpacked to disk; what they declare is not trusted.


def open_archive(file: IO[bytes], name: str | Path, *, of_class: bool = False) -> zipfile.ZipFile:
    """Open the zip in the binary file object `file` as a ZipFile, if its directory looks harmless.

    Raises InputError if it is not a zip, has more than 10,000 members or more than 64 MiB
    unpacked, or if a member's name leads out of the archive. The zip of a class may have 200,000
    members, and unpack to 20 MiB more for each submission, or to what the variable MPILAB_ZIP_LIMIT
    says. Nothing is ever unpacked to disk.
    """
    again = "make the zip again from the folder"
    size = file.seek(0, io.SEEK_END)
    most = CLASS_MEMBER_LIMIT if of_class else MEMBER_LIMIT
    if (size > ARCHIVE_LIMIT and not of_class) or _directory_bytes(file, size) > most * 512:
        remedy = "unpack it and name the folder" if of_class else "hand in the notebook alone"
        raise InputError(f"{name}: the zip is too large ({size} bytes); {remedy}")
    try:
        archive = zipfile.ZipFile(file)
    except ZIP_ERRORS as error:
        raise InputError(f"{name}: not a readable zip ({error}); {again}") from error
    members = archive.infolist()
    if len(members) > most:
        remedy = "leave out what the lab didn't ask for"
        if of_class:
            remedy = "unpack it and name the folder"
        raise InputError(f"{name}: {len(members)} files in the zip, more than {most}; {remedy}")
    total = sum(member.file_size for member in members)
    if of_class:
        number = _number_of_submissions(members)
        limit = _zip_limit() or ARCHIVE_LIMIT + number * NOTEBOOK_LIMIT
        if total > limit:
            raise InputError(
                f"{name}: {total // MiB} MiB unpacked, more than {limit // MiB} for {number} "
                f"submissions; unpack it and name the folder, or, if you trust it, set "
                f"{ZIP_LIMIT_VARIABLE}={total // MiB + 1}M"
            )
    elif total > ARCHIVE_LIMIT:
        raise InputError(
            f"{name}: {total // MiB} MiB unpacked, more than {ARCHIVE_LIMIT // MiB}; clear the "
            "outputs, or hand in the notebook alone"
        )
    for member in members:
        parts = member_path(member).parts
        if ".." in parts or parts[:1] == ("/",) or re.match(r"[A-Za-z]:", "".join(parts[:1])):
            raise InputError(
                f"{name}: the zip holds {ascii(member.filename)}, a path outside it; {again}"
            )
        # In a class's zip, a platform may have put the student's name before that of the file.
        longest = max(parts, key=len, default="")
        if len(longest) > FILE_NAME_LIMIT and not of_class:
            raise InputError(
                f"{name}: the zip holds {ascii(longest[:40])}…, a name of {len(longest)} "
                f"characters, more than {FILE_NAME_LIMIT}; rename it, and zip it again"
            )
    return archive


def _number_of_submissions(members: Iterable[zipfile.ZipInfo]) -> int:
    """The number of students' files or folders in the zip of a class, which may have folders around
    all of them."""
    paths = {member_path(member).parts for member in members if not member.is_dir()} - {()}
    while len({parts[0] for parts in paths}) == 1 and all(len(parts) > 1 for parts in paths):
        paths = {parts[1:] for parts in paths}
    return len({parts[0] for parts in paths})


def _zip_limit() -> int:
    """The limit in bytes that the user has set for the zip of a class, or 0."""
    text = os.environ.get(ZIP_LIMIT_VARIABLE, "")
    try:
        return bytes_of(text) if text else 0
    except InputError as error:
        raise InputError(f"{ZIP_LIMIT_VARIABLE}={text}: {error}") from None


def member_of(
    archive: zipfile.ZipFile, members: Sequence[zipfile.ZipInfo], name: str | Path
) -> bytes:
    """The bytes of the one notebook among `members` of a zip."""
    if len(members) > 1:
        raise Ungradable(f"{name}: {len(members)} notebooks of that name in the zip; keep one")
    (member,) = members
    shown = f"{name}: {ascii(member.filename)[1:-1]}"
    if stat.S_ISLNK(member.external_attr >> 16):
        raise Ungradable(f"{shown} is a symbolic link; hand in the file itself")
    if member.flag_bits & 1:
        raise Ungradable(f"{shown} is encrypted; make the zip without a password")
    # The other methods are rare, and lzma lets the file choose how much memory it needs.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Ungradable(f"{shown} is packed in an unusual way; make an ordinary zip")
    if member.file_size > max(MiB, RATIO_LIMIT * member.compress_size):
        raise Ungradable(f"{shown} unpacks to {member.file_size} bytes; clear the outputs first")
    try:
        with archive.open(member) as file:
            return limited(file, shown)
    except ZIP_ERRORS as error:
        raise Ungradable(f"{shown} is damaged ({error}); make the zip again") from error


def limited(file: IO[bytes], name: str) -> bytes:
    data = file.read(NOTEBOOK_LIMIT + 1)
    if len(data) > NOTEBOOK_LIMIT:
        raise Ungradable(
            f"{name} is larger than {NOTEBOOK_LIMIT // MiB} MiB; clear the outputs and save again"
        )
    return data


def member_path(member: zipfile.ZipInfo) -> PurePosixPath:
    """The path of a zip member, in which some Windows programs write backslashes."""
    return PurePosixPath(member.filename.replace("\\", "/"))


def _directory_bytes(file: IO[bytes], size: int) -> int:
    """The size of a zip's directory in bytes, from its end record; 0 if there is no end record.

    zipfile reads the whole directory into memory before its members can be counted.
    """
    file.seek(max(0, size - 65_557 - 76))
    tail = file.read()
    file.seek(0)
    # As in zipfile: first an end record without a comment, otherwise the last end record.
    at = len(tail) - 22
    if at < 0 or tail[at : at + 4] != b"PK\x05\x06" or tail[-2:] != b"\0\0":
        at = tail.rfind(b"PK\x05\x06")
    if not 0 <= at <= len(tail) - 22:
        return 0
    (stated,) = struct.unpack_from("<I", tail, at + 12)
    if at >= 76 and tail[at - 20 : at - 16] == b"PK\x06\x07":
        stated = max(stated, *struct.unpack_from("<Q", tail, at - 76 + 40))
    return stated


# The output of a student's notebook, cut to what a feedback page can hold.


def printed(notebook: NotebookNode) -> list[dict[str, str]]:
    """What the code cells of a notebook printed, as a list of dicts (where, kind, text, note).

    Only streams, text/plain and tracebacks, without color codes; each is cut at 4,000 characters
    or 60 lines, all together at 200,000 characters, and `note` says what was left out. Cells that
    the grader injected are neither named nor shown: they contain the hidden parameters.
    """
    shown, left = [], ALL_OUTPUT_CHARACTERS
    for number, cell in enumerate(notebook.cells, start=1):
        injected = "injected-parameters" in cell.metadata.get("tags", ())
        if cell.cell_type != "code" or injected:
            continue
        name = answer_id(cell)
        where = f"Cell {number}" + (f" (your answer “{plain(name)}”)" if name else "")
        for output in cell.get("outputs", ()):
            kind, text = _output_text(output)
            text = plain(text).strip("\n")
            if not text.strip():
                continue
            if left <= 0:
                shown.append(
                    {"where": where, "kind": "", "text": "", "note": "The rest is omitted here."}
                )
                return shown
            text, note = _cut(text)
            left -= len(text)
            shown.append({"where": where, "kind": kind, "text": text, "note": note})
    return shown


def _output_text(output: NotebookNode) -> tuple[str, str]:
    """(kind, text) of one output of a cell; the text is empty if there is none."""
    if output.output_type == "stream":
        return ("error stream" if output.get("name") == "stderr" else "printed"), output.text
    if output.output_type == "error":
        return "error", "\n".join(output.traceback) or f"{output.ename}: {output.evalue}"
    return "value", output.get("data", {}).get("text/plain", "")


def _cut(text: str) -> tuple[str, str]:
    """(`text` cut to the limits, a note on what was cut or '')."""
    lines = text.split("\n")
    short = "\n".join(lines[:OUTPUT_LINES])[:OUTPUT_CHARACTERS]
    if short == text:
        return text, ""
    return short, (
        f"Cut here: {len(text) - len(short):,} of {len(text):,} characters "
        f"({len(lines):,} lines) are omitted."
    )


# Find the submissions of a class.


class Spool:
    """A file for the notebooks of a class: there may be hundreds, of 20 MiB each."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="mpilab-submissions-")  # noqa: SIM115
        self._end = 0

    def add(self, data: bytes) -> tuple[int, int]:
        """Store bytes; returns their place, for `get`."""
        place = (self._end, len(data))
        self._file.seek(self._end)
        self._file.write(data)
        self._file.flush()
        self._end += len(data)
        return place

    def get(self, place: tuple[int, int]) -> bytes:
        """The bytes at `place`; any thread may call it."""
        begin, length = place
        return os.pread(self._file.fileno(), length, begin)


class Submission:
    """One student's submission for one lab.

    data     the bytes of the notebook; empty if they could not be read. With a Spool, they are
             kept there, not in memory.
    problem  why there is nothing to judge, for the student and the instructor; else empty.
    digest   SHA-256, in hex, of everything in it that the verdict can depend on.
    """

    def __init__(
        self,
        student: str,
        lab: str,
        data: bytes = b"",
        problem: str = "",
        spool: Spool | None = None,
    ) -> None:
        self.student, self.lab, self.problem = student, lab, problem
        self.digest = hashlib.sha256(problem.encode() + b"\0" + data).hexdigest()
        self._spool = spool
        self._data = data if spool is None else b""
        self._place = (0, 0) if spool is None else spool.add(data)

    @property
    def data(self) -> bytes:
        """The bytes of the notebook."""
        return self._data if self._spool is None else self._spool.get(self._place)

    def _key(self) -> tuple[str, str, str]:
        return (self.student, self.lab, self.digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Submission) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"Submission({self.student!r}, {self.lab!r}, problem={self.problem!r})"


def find_submissions(path: str | Path, lab: str, student: str = "") -> list[Submission]:
    """Every student's submission for `lab` in the folder or zip `path`, sorted by student.

    `path` may also be the notebook LAB.ipynb of one student, whose name is `student` or else that
    of its folder. Raises InputError if `path` is none of these, contains no submission, or is a
    suspicious zip (see `open_archive`).
    """
    path, made = Path(path), partial(_made, Spool())
    if path.suffix == ".ipynb" and os.path.lexists(path):
        if path.stem != lab:
            raise InputError(f"{path}: a single notebook must be named {lab}.ipynb; rename it")
        return [made(student or path.absolute().parent.name, lab, lambda: _from_file(path))]
    if student:
        raise InputError(
            f"{path}: --student {student} names the author of a single notebook; name a file "
            f"{lab}.ipynb"
        )
    if path.is_dir():
        found = _in_folder(path, lab, made)
    elif path.is_file() and (path.suffix.lower() == ".zip" or zipfile.is_zipfile(path)):
        with open(path, "rb") as file, open_archive(file, path, of_class=True) as archive:
            found = _in_archive(archive, path, lab, made)
    else:
        what = "is no folder, zip or notebook" if path.exists() else "does not exist"
        raise InputError(f"{path}: {what}; name a folder or zip of <student>/{lab}.ipynb")
    if not found:
        raise InputError(f"{path}: holds no submission; expected <student>/{lab}.ipynb in it")

    found.sort(key=lambda submission: submission.student)
    return [
        _only(list(same)) for _, same in groupby(found, key=lambda submission: submission.student)
    ]


def class_of(
    path: str | Path, lab: str, student: str = "", roster: str | Path | None = None
) -> list[Submission]:
    """Like `find_submissions`, with the students of a roster who have no notebook there.

    The problem of their submissions is NOT_HANDED_IN, or, if the roster names another source than
    a notebook, that no notebook could be collected. The default roster is PATH/submissions.csv.
    Raises InputError for a roster that `read_roster` refuses.
    """
    found = find_submissions(path, lab, student)
    table = Path(roster) if roster else Path(path, TABLE)
    if student or not (roster or (Path(path).is_dir() and table.is_file())):
        return found
    known = {submission.student.casefold(): submission for submission in found}
    for student, row in read_roster(table, lab).items():
        here = known.get(student.casefold())
        if here is not None:
            # The folder may hold another lab's notebook, and the table says that nothing came.
            if not here.problem or "source" not in row or _has_file(Path(path), here.student, lab):
                continue
            found.remove(here)
        source = row.get("source", "")
        problem = f"No notebook could be collected ({source})." if source else NOT_HANDED_IN
        found.append(Submission(student, lab, problem=problem))
    return sorted(found, key=lambda submission: submission.student)


def _has_file(folder: Path, student: str, lab: str) -> bool:
    """True if the student's folder, however its name is composed, holds LAB.ipynb or a link."""
    return folder.is_dir() and any(
        composed(entry.name) == student and os.path.lexists(entry / f"{lab}.ipynb")
        for entry in folder.iterdir()
    )


def read_roster(path: str | Path, lab: str = "") -> Roster:
    """The Roster in a CSV with a column 'student'.

    For example, the submissions.csv of 'mpilab collect', whose rows of other labs are left out.
    Raises InputError if there is no such column, and, with file:line, for a name that no student
    can have, or that occurs twice; upper and lower case are the same.
    """
    columns, rows = read_table(path)
    if "student" not in map(str.casefold, columns):
        raise InputError(f"{path}: no column 'student'; it has {', '.join(columns)}")
    roster: Roster = {}
    lines: dict[str, int] = {}
    for line, row in rows:
        entry = {name.casefold(): bare_cell(cell.strip()) for name, cell in row.items()}
        if lab and entry.get("lab", "") not in ("", lab):
            continue
        try:
            student = student_name(entry["student"], "correct the row")
        except InputError as error:
            raise InputError(f"{path}:{line}: {error}") from None
        first = lines.setdefault(student.casefold(), line)
        if first != line:
            raise InputError(
                f"{path}:{line}: {student!r} occurs twice, also in line {first}; keep one row"
            )
        roster[student] = entry | {"student": student}
    return roster


def only_lab(path: str | Path) -> str:
    """The only lab of which the folder or zip `path` holds notebooks; InputError otherwise.

    `path` may be a single notebook. Zips of single students are not opened.
    """
    path = Path(path)
    if path.is_dir():
        names = [each.name for each in path.glob("*/*.ipynb")]
    elif path.is_file() and zipfile.is_zipfile(path):
        with open(path, "rb") as file, open_archive(file, path, of_class=True) as archive:
            names = [member_path(member).name for member in archive.infolist()]
    else:
        names = [path.name]
    known = [each.stem for each in sorted((ROOT / "labs" / "source").glob("*.py"))]
    labs = [lab for lab in known if f"{lab}.ipynb" in names]
    if len(labs) != 1:
        found = f"notebooks of several labs ({', '.join(labs)})" if labs else "no notebook of a lab"
        raise InputError(f"{path}: {found}; add --lab, one of {', '.join(known)}")
    return labs[0]


def student_name(name: str, remedy: str = "rename the folder") -> str:
    """The student's name from the `name` of a folder or zip, in Unicode's composed form.

    Raises InputError, ending in `remedy`, for a name that is empty, a path, longer than 100
    characters, or that contains unprintable characters.
    """
    name = composed(name)  # which may be longer
    shown = ascii(name[:NAME_LIMIT])
    if not name.strip() or name in (".", ".."):
        raise InputError(f"{shown} is not a student's name; {remedy}")
    if "/" in name or "\\" in name:
        raise InputError(f"{shown}: a student's name can't hold '/' or '\\'; {remedy}")
    # The feedback page is named after the student, and file names have at most 255 bytes.
    if len(name) > NAME_LIMIT or len(os.fsencode(name)) > 240:
        raise InputError(
            f"{shown}…: a student's name of {len(name)} characters is longer than "
            f"{NAME_LIMIT}; {remedy}"
        )
    if any(map(_unprintable, name)):
        raise InputError(f"{shown}: a student's name can't hold control characters; {remedy}")
    return name


def keep_table(folder: str | Path, out: str | Path) -> None:
    """Copy the table of 'mpilab collect' in `folder`, if there is one, to `out`."""
    table = Path(folder) / TABLE
    if table.is_file() and not table.is_symlink():
        atomic_write(Path(out) / TABLE, table.read_bytes())


def parse(submission: Submission) -> NotebookNode:
    """The notebook of a submission: a NotebookNode with type, id, grade_id and source of its cells.

    The rest (outputs, attachments, other metadata) decides nothing and is left out. Raises
    Ungradable, with a remedy, for anything but a notebook of format 4.
    """
    where = f"{submission.student}/{submission.lab}.ipynb"
    if submission.problem:
        raise Ungradable(submission.problem)
    return bare(read(submission.data, where))


def _in_folder(path: Path, lab: str, made: Callable[..., Submission]) -> list[Submission]:
    """The submissions in a class's folder, unsorted, one for each entry that could be one."""
    found = []
    for entry in os.scandir(path):
        base, suffix = Path(entry.name).stem, Path(entry.name).suffix
        if _junk(entry.name):
            continue
        # Path.exists would raise an error for a link to a place that we may not access.
        dangling = entry.is_symlink() and not os.path.exists(entry.path)  # noqa: PTH110
        if dangling or entry.is_dir():
            found.append(made(entry.name, lab, lambda e=entry: _from_folder(e.path, lab)))
        elif suffix.lower() == ".zip":
            found.append(made(base, lab, lambda e=entry: _from_zip(e.path, lab)))
        elif suffix == ".ipynb":
            found.append(made(base, lab, lambda e=entry: _loose(e.name)))
    return found


def _in_archive(
    archive: zipfile.ZipFile, path: Path, lab: str, made: Callable[..., Submission]
) -> list[Submission]:
    """The submissions in a class's zip, or the one in a student's zip."""
    wanted = f"{lab}.ipynb"
    members: dict[tuple[str, ...], list[zipfile.ZipInfo]] = {}
    for member in archive.infolist():
        parts = member_path(member).parts
        if parts and not any(map(_junk, parts)):
            members.setdefault(parts, []).append(member)
    if (wanted,) in members:
        return [made(path.stem, lab, lambda: member_of(archive, members[wanted,], path))]
    # Zipping a folder, rather than its contents, adds one folder around all students.
    around = {parts[0] for parts in members}
    if len(around) == 1 and any(len(p) == 3 and p[2] == wanted for p in members):
        members = {parts[1:]: found for parts, found in members.items() if len(parts) > 1}

    students: dict[str, dict[tuple[str, ...], list[zipfile.ZipInfo]]] = {}
    for parts, found in members.items():
        if len(parts) > 1 or found[0].is_dir():
            students.setdefault(parts[0], {})[parts[1:]] = found
    result = []
    for name, files in students.items():
        own = files.get((wanted,))
        others = [parts[0] for parts in files if len(parts) == 1]
        result.append(
            made(
                name,
                lab,
                lambda own=own, others=others: (
                    member_of(archive, own, path) if own else _absent(lab, others)
                ),
            )
        )
    for parts in members:
        if len(parts) == 1 and parts[0].endswith((".zip", ".ipynb")):
            result.append(made(PurePosixPath(parts[0]).stem, lab, lambda p=parts: _loose(p[0])))
    return result


def _made(spool: Spool, name: str, lab: str, read: Callable[[], bytes]) -> Submission:
    """The Submission of the student `name`; `read` returns its bytes, or raises why it cannot."""
    try:
        student = student_name(name)
    except InputError as error:
        return Submission(_printable_name(name), lab, problem=str(error))
    try:
        return Submission(student, lab, read(), spool=spool)
    except (InputError, Ungradable) as error:
        return Submission(student, lab, problem=f"{student}: {error}")
    except OSError as error:
        return Submission(
            student, lab, problem=f"{student}: cannot be read ({error.strerror}); check the file"
        )


def _printable_name(name: str) -> str:
    """A rejected name, made printable, short enough for a file, and unlike other students'
    names."""
    shown = "".join("\ufffd" if _unprintable(c) or c in "/\\" else c for c in name).strip(" .")
    if "\ufffd" not in shown or len(shown) > NAME_LIMIT // 2:
        # Without the ellipsis, the cut name might be that of another student.
        shown = f"{shown[: NAME_LIMIT // 2].strip(' .')}…"
    return "(no name)" if shown == "…" else shown


def _only(same: Sequence[Submission]) -> Submission:
    """The submission of a student, or one with a problem if there are several."""
    if len(same) == 1:
        return same[0]
    student, lab = same[0].student, same[0].lab
    own = [submission.problem for submission in same if submission.problem]
    return Submission(
        student,
        lab,
        problem="; ".join(
            [
                f"{student}: handed in {len(same)} times (a folder and a zip, or two names that "
                "read the same); keep one",
                *own,
            ]
        ),
    )


def _from_file(path: Path) -> bytes:
    """The notebook at `path`, of which no part may be a link: a student may have made the folders
    above it, too, and a link could lead to a reference notebook."""
    for part in (path, *path.parents):
        if part.is_symlink():
            raise Ungradable(
                f"{part} is a symbolic link, which is not followed; name the file by its real path"
            )
    return _from_folder(str(path.parent), path.stem)


def _from_folder(folder: str, lab: str) -> bytes:
    """The notebook in a student's folder; neither the folder nor the file may be a link."""
    wanted = f"{lab}.ipynb"
    linked = "is a symbolic link, which is not followed; hand in the file itself"
    if Path(folder).is_symlink():
        raise Ungradable(f"the folder {linked}")
    within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer forever.
        handle = os.open(wanted, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
    except FileNotFoundError:
        return _absent(lab, os.listdir(within))  # noqa: PTH208 - a descriptor has no Path
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Ungradable(f"{wanted} {linked}") from error
        raise
    finally:
        os.close(within)
    with open(handle, "rb") as file:
        _check_file(handle, wanted, "hand in the notebook")
        return limited(file, wanted)


def _from_zip(path: str, lab: str) -> bytes:
    """The notebook in a student's zip, at its top level or in any folder."""
    if Path(path).is_symlink():
        raise Ungradable("the zip is a symbolic link, which is not followed; hand in the file")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        _check_file(handle, "the zip", "hand in a zip")
        name = Path(path).name
        with open_archive(file, name) as archive:
            files = [
                member
                for member in archive.infolist()
                if not member.is_dir() and not any(map(_junk, member_path(member).parts))
            ]
            wanted = [m for m in files if member_path(m).name == f"{lab}.ipynb"]
            if not wanted:
                return _absent(lab, [member_path(member).name for member in files])
            return member_of(archive, wanted, name)


def _check_file(handle: int, what: str, remedy: str) -> None:
    """Raise Ungradable unless the open file is a regular file with only one name.

    A hard link may be another student's file, or one that only the grader may read.
    """
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        raise Ungradable(f"{what} is not a file; {remedy}")
    if about.st_nlink > 1:
        raise Ungradable(
            f"{what} is a hard link: the file has {about.st_nlink} names, and may belong to "
            "another student; copy it ('cp --no-preserve=links') if it is the student's own"
        )


def _absent(lab: str, others: Iterable[str]) -> NoReturn:
    near = sorted(name for name in others if name.endswith((".ipynb", ".zip")))[:3]
    remedy = "rename it if it is the notebook, and unpack a zip"
    there = f"; there is {', '.join(map(ascii, near))}: {remedy}" if near else ""
    raise Ungradable(f"no {lab}.ipynb{there}")


def _loose(name: str) -> NoReturn:
    raise Ungradable(
        f"{ascii(name)} is beside the students' folders; unpack it or move it into a folder with "
        "the student's name"
    )


def _junk(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _unprintable(sign: str) -> bool:
    return sign in _TURNING or unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")
