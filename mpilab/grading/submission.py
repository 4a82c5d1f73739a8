"""Find what a class handed in, and read it without trusting it.

Accepted are a folder, or a zip, of `<student>/<lab>.ipynb`, and a folder of `<student>.zip`. One
student's bad file becomes a `Submission` with a `problem`; it never stops the class.
"""

import errno
import hashlib
import io
import json
import os
import re
import stat
import struct
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

import nbformat

from mpilab.errors import InputError, Ungradable

MiB = 1024 * 1024
NOTEBOOK_LIMIT = 20 * MiB
ARCHIVE_LIMIT = 64 * MiB
MEMBER_LIMIT = 10_000
# Deflate reaches 1032 at most; a notebook that printed one line a million times stays below 500.
RATIO_LIMIT = 500
NAME_LIMIT = 100

_ZIP_ERRORS = (
    *(zipfile.BadZipFile, zlib.error, EOFError, OSError, struct.error),
    *(NotImplementedError, RuntimeError, ValueError),
)
# Signs that turn the reading direction can make one name look like another.
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


@dataclass(frozen=True)
class Submission:
    """What one student handed in for one lab.

    data     the bytes of the notebook; empty where they could not be read.
    problem  why there is nothing to judge, for the student and the teacher; else empty.
    """

    student: str
    lab: str
    data: bytes = b""
    problem: str = ""

    @property
    def digest(self):
        """SHA-256 of all that the verdict can depend on, in hex."""
        return hashlib.sha256(self.problem.encode() + b"\0" + self.data).hexdigest()


def find_submissions(path, lab):
    """Every student's submission for `lab` in the folder or zip `path`, sorted by student.

    Raises InputError where `path` is neither, holds no submission at all, or is a zip that could
    not be meant well (see `open_archive`).
    """
    path = Path(path)
    if path.is_dir():
        found = _in_folder(path, lab)
    elif path.is_file() and (path.suffix.lower() == ".zip" or zipfile.is_zipfile(path)):
        with open(path, "rb") as file, open_archive(file, path) as archive:
            found = _in_archive(archive, path, lab)
    else:
        what = "is neither a folder nor a zip" if path.exists() else "does not exist"
        raise InputError(f"{path}: {what}; name a folder or zip of <student>/{lab}.ipynb")
    if not found:
        raise InputError(f"{path}: holds no submission; expected <student>/{lab}.ipynb in it")

    found.sort(key=lambda submission: submission.student)
    return [
        _only(list(same)) for _, same in groupby(found, key=lambda submission: submission.student)
    ]


def student_name(name):
    """`name` of a folder or zip as a student's name, in Unicode's composed form.

    Raises InputError for a name that is empty, a path, longer than 100 characters, or that holds
    signs which don't print.
    """
    shown = ascii(name[:NAME_LIMIT])
    if not name.strip() or name in (".", ".."):
        raise InputError(f"{shown} is no student's name; rename the folder")
    if "/" in name or "\\" in name:
        raise InputError(f"{shown}: a student's name can't hold '/' or '\\'; rename the folder")
    # A feedback file is named after the student, and file names end at 255 bytes.
    if len(name) > NAME_LIMIT or len(os.fsencode(name)) > 240:
        raise InputError(
            f"{shown}…: a student's name of {len(name)} characters is longer than "
            f"{NAME_LIMIT}; rename the folder"
        )
    if any(map(_unprintable, name)):
        raise InputError(f"{shown}: a student's name can't hold control characters; rename it")
    return unicodedata.normalize("NFC", name)


def parse(submission):
    """The notebook of a submission, as a NotebookNode with the outputs that came with it.

    Raises Ungradable, with what to do about it, for anything that isn't a notebook of format 4.
    """
    where = f"{submission.student}/{submission.lab}.ipynb"
    if submission.problem:
        raise Ungradable(submission.problem)
    try:
        text = submission.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Ungradable(
            f"{where}: byte {error.start} is not UTF-8 text; save the notebook from JupyterLab "
            "and hand in that file as it is"
        ) from error
    if not text.strip():
        raise Ungradable(f"{where}: the file is empty; save the notebook and hand it in again")
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        hint = "open it in JupyterLab: if it doesn't open there either, go back to an older copy"
        if text.lstrip().startswith("<"):
            hint = "it is a web page: download the notebook itself"
        raise Ungradable(
            f"{where}: not valid JSON (line {error.lineno}, column {error.colno}: {error.msg}), "
            f"so it is no notebook; {hint}"
        ) from error
    except RecursionError as error:
        raise Ungradable(_too_deep(where)) from error
    except ValueError as error:
        raise Ungradable(
            f"{where}: not usable as JSON ({error}); save the notebook again"
        ) from error
    _check_shape(content, where)
    try:
        notebook = nbformat.from_dict(content)
    except RecursionError as error:
        raise Ungradable(_too_deep(where)) from error
    for cell in notebook.cells:
        if not isinstance(cell.source, str):
            cell.source = "".join(cell.source)
    return notebook


def open_archive(file, name):
    """The zip in the binary file object `file` as a ZipFile, once its directory looks harmless.

    Raises InputError where it is no zip, has more than 10,000 members or more than 64 MiB
    unpacked, or where a member's name leads out of the archive. Nothing is ever unpacked to disk.
    """
    again = "make the zip again from the folder"
    size = file.seek(0, io.SEEK_END)
    if size > ARCHIVE_LIMIT or _directory_bytes(file, size) > MEMBER_LIMIT * 512:
        raise InputError(f"{name}: the zip is too large ({size} bytes); hand in the notebook alone")
    try:
        archive = zipfile.ZipFile(file)
    except _ZIP_ERRORS as error:
        raise InputError(f"{name}: not a readable zip ({error}); {again}") from error
    members = archive.infolist()
    if len(members) > MEMBER_LIMIT:
        raise InputError(
            f"{name}: {len(members)} files in the zip, more than {MEMBER_LIMIT}; leave out what "
            "the lab didn't ask for"
        )
    total = sum(member.file_size for member in members)
    if total > ARCHIVE_LIMIT:
        raise InputError(
            f"{name}: {total // MiB} MiB unpacked, more than {ARCHIVE_LIMIT // MiB}; clear the "
            "outputs, or unpack the zip of a large class and name the folder"
        )
    for member in members:
        parts = _member_path(member).parts
        if ".." in parts or parts[:1] == ("/",) or re.match(r"[A-Za-z]:", "".join(parts[:1])):
            raise InputError(
                f"{name}: the zip holds {ascii(member.filename)}, a path out of it; {again}"
            )
    return archive


def _in_folder(path, lab):
    """Submissions in a class's folder, unsorted, one for each thing that could be one."""
    found = []
    for entry in os.scandir(path):
        base, suffix = os.path.splitext(entry.name)
        if _junk(entry.name):
            continue
        dangling = entry.is_symlink() and not os.path.exists(entry.path)
        if entry.is_dir() or dangling:
            found.append(_made(entry.name, lab, lambda e=entry: _from_folder(e.path, lab)))
        elif suffix.lower() == ".zip":
            found.append(_made(base, lab, lambda e=entry: _from_zip(e.path, lab)))
        elif suffix == ".ipynb":
            found.append(_made(base, lab, lambda e=entry: _loose(e.name)))
    return found


def _in_archive(archive, path, lab):
    """Submissions in a class's zip, or the one of a student's zip."""
    wanted = f"{lab}.ipynb"
    members = {}
    for member in archive.infolist():
        parts = _member_path(member).parts
        if parts and not any(map(_junk, parts)):
            members.setdefault(parts, []).append(member)
    if (wanted,) in members:
        return [_made(path.stem, lab, lambda: _member_of(archive, members[wanted,], path))]
    # Zipping a folder, rather than what is in it, puts one more folder around all students.
    around = {parts[0] for parts in members}
    if len(around) == 1 and any(len(p) == 3 and p[2] == wanted for p in members):
        members = {parts[1:]: found for parts, found in members.items() if len(parts) > 1}

    students = {}
    for parts, found in members.items():
        if len(parts) > 1 or found[0].is_dir():
            students.setdefault(parts[0], {})[parts[1:]] = found
    result = []
    for name, files in students.items():
        member = files.get((wanted,))
        others = [parts[0] for parts in files if len(parts) == 1]
        result.append(
            _made(
                name,
                lab,
                lambda member=member, others=others: (
                    _member_of(archive, member, path) if member else _absent(lab, others)
                ),
            )
        )
    for parts in members:
        if len(parts) == 1 and parts[0].endswith((".zip", ".ipynb")):
            result.append(_made(PurePosixPath(parts[0]).stem, lab, lambda p=parts: _loose(p[0])))
    return result


def _made(name, lab, read):
    """The Submission of the student `name`, whose bytes `read()` returns or says why not."""
    try:
        student = student_name(name)
    except InputError as error:
        shown = "".join("\ufffd" if _unprintable(c) or c in "/\\" else c for c in name)
        return Submission(shown[:NAME_LIMIT].strip(" .") or "(no name)", lab, problem=str(error))
    try:
        return Submission(student, lab, data=read())
    except (InputError, Ungradable) as error:
        return Submission(student, lab, problem=f"{student}: {error}")
    except OSError as error:
        return Submission(
            student, lab, problem=f"{student}: cannot be read ({error.strerror}); check the file"
        )


def _only(same):
    """The submission of a student, or one with a problem where there are several."""
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


def _from_folder(folder, lab):
    """The notebook in a student's folder; neither the folder nor the file may be a link."""
    wanted = f"{lab}.ipynb"
    linked = "is a symbolic link, which is not followed; hand in the file itself"
    if os.path.islink(folder):
        raise Ungradable(f"the folder {linked}")
    within = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        # Without O_NONBLOCK, opening a named pipe would wait for a writer for ever.
        handle = os.open(wanted, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=within)
    except FileNotFoundError:
        return _absent(lab, os.listdir(within))
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise Ungradable(f"{wanted} {linked}") from error
        raise
    finally:
        os.close(within)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Ungradable(f"{wanted} is not a file; hand in the notebook")
        return _limited(file, wanted)


def _from_zip(path, lab):
    """The notebook in a student's zip, at its top or in any folder of it."""
    if os.path.islink(path):
        raise Ungradable("the zip is a symbolic link, which is not followed; hand in the file")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise Ungradable("the zip is not a file; hand in a zip")
        name = os.path.basename(path)
        with open_archive(file, name) as archive:
            files = [
                member
                for member in archive.infolist()
                if not member.is_dir() and not any(map(_junk, _member_path(member).parts))
            ]
            wanted = [m for m in files if _member_path(m).name == f"{lab}.ipynb"]
            if not wanted:
                return _absent(lab, [_member_path(member).name for member in files])
            return _member_of(archive, wanted, name)


def _member_of(archive, members, name):
    """The bytes of the one notebook among `members` of a zip."""
    if len(members) > 1:
        raise Ungradable(f"{name}: {len(members)} notebooks of that name in the zip; keep one")
    (member,) = members
    shown = f"{name}: {ascii(member.filename)[1:-1]}"
    if stat.S_ISLNK(member.external_attr >> 16):
        raise Ungradable(f"{shown} is a symbolic link; hand in the file itself")
    if member.flag_bits & 1:
        raise Ungradable(f"{shown} is encrypted; make the zip without a password")
    # The other methods are rare, and lzma lets the file choose how much memory it takes.
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Ungradable(f"{shown} is packed in an unusual way; make an ordinary zip")
    if member.file_size > max(MiB, RATIO_LIMIT * member.compress_size):
        raise Ungradable(f"{shown} unpacks to {member.file_size} bytes; clear the outputs first")
    try:
        with archive.open(member) as file:
            return _limited(file, shown)
    except _ZIP_ERRORS as error:
        raise Ungradable(f"{shown} is damaged ({error}); make the zip again") from error


def _limited(file, name):
    data = file.read(NOTEBOOK_LIMIT + 1)
    if len(data) > NOTEBOOK_LIMIT:
        raise Ungradable(
            f"{name} is larger than {NOTEBOOK_LIMIT // MiB} MiB; clear the outputs and save again"
        )
    return data


def _absent(lab, others):
    near = sorted(name for name in others if name.endswith((".ipynb", ".zip")))[:3]
    remedy = "rename it if that is meant, and unpack a zip"
    there = f"; there is {', '.join(map(ascii, near))}: {remedy}" if near else ""
    raise Ungradable(f"no {lab}.ipynb{there}")


def _loose(name):
    raise Ungradable(
        f"{ascii(name)} lies beside the students' folders; unpack it or move it into a folder "
        "that has the student's name"
    )


def _junk(name):
    return name.startswith(".") or name == "__MACOSX"


def _unprintable(sign):
    return sign in _TURNING or unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp")


def _member_path(member):
    """The path of a zip member; some programs of Windows write backslashes into it."""
    return PurePosixPath(member.filename.replace("\\", "/"))


def _directory_bytes(file, size):
    """Bytes of a zip's directory as its end record says, 0 where there is none to be found.

    zipfile reads the whole directory into memory before anyone can count its members.
    """
    file.seek(max(0, size - 65_557 - 76))
    tail = file.read()
    file.seek(0)
    # As zipfile does: the end record without a comment first, else the last one there is.
    at = len(tail) - 22
    if at < 0 or tail[at : at + 4] != b"PK\x05\x06" or tail[-2:] != b"\0\0":
        at = tail.rfind(b"PK\x05\x06")
    if not 0 <= at <= len(tail) - 22:
        return 0
    (stated,) = struct.unpack_from("<I", tail, at + 12)
    if at >= 76 and tail[at - 20 : at - 16] == b"PK\x06\x07":
        stated = max(stated, *struct.unpack_from("<Q", tail, at - 76 + 40))
    return stated


def _too_deep(where):
    return f"{where}: nested too deeply to be a notebook; copy the answers into a fresh copy"


def _check_shape(content, where):
    """Raise Ungradable unless `content` is a notebook as far as we use it."""
    fresh = "copy the answers into a fresh copy of the lab"
    if not isinstance(content, dict) or not isinstance(content.get("nbformat"), int):
        raise Ungradable(f"{where}: JSON, but not a notebook (it has no nbformat); {fresh}")
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
        raise Ungradable(f"{where}: JSON, but not a notebook (it has no cells); {fresh}")
    for number, cell in enumerate(cells, start=1):
        source = cell.get("source") if isinstance(cell, dict) else None
        lines = source if isinstance(source, list) else [source]
        if not all(isinstance(line, str) for line in lines):
            raise Ungradable(f"{where}: cell {number} has no source; {fresh}")
        if any(unicodedata.category(c) == "Cs" for line in lines for c in set(line)):
            raise Ungradable(f"{where}: cell {number} holds half a character, no text; {fresh}")
