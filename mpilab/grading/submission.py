"""Find what a class handed in, and read it without trusting it.

Accepted are a folder, or a zip, of `<student>/<lab>.ipynb`, and a folder of `<student>.zip`. One
student's bad file becomes a `Submission` with a `problem`; it never stops the class.
"""

import errno
import hashlib
import os
import stat
import tempfile
import unicodedata
import zipfile
from functools import partial
from itertools import groupby
from pathlib import Path, PurePosixPath

from mpilab.errors import InputError, Ungradable
from mpilab.grading.notebooks import bare, read
from mpilab.grading.zips import limited, member_of, member_path, open_archive

NAME_LIMIT = 100

# Signs that turn the reading direction can make one name look like another.
_TURNING = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


class Spool:
    """Notebooks of a class that wait in a file: there may be hundreds, of 20 MiB each."""

    def __init__(self):
        self._file = tempfile.TemporaryFile(prefix="mpilab-submissions-")
        self._end = 0

    def add(self, data):
        """Put bytes away; the place from which `get` brings them back."""
        place = (self._end, len(data))
        self._file.seek(self._end)
        self._file.write(data)
        self._file.flush()
        self._end += len(data)
        return place

    def get(self, place):
        """The bytes that were put there, for any thread."""
        begin, length = place
        return os.pread(self._file.fileno(), length, begin)


class Submission:
    """What one student handed in for one lab.

    data     the bytes of the notebook; empty where they could not be read. With a Spool they wait
             there, and not in memory.
    problem  why there is nothing to judge, for the student and the teacher; else empty.
    digest   SHA-256 of all that the verdict can depend on, in hex.
    """

    def __init__(self, student, lab, data=b"", problem="", spool=None):
        self.student, self.lab, self.problem = student, lab, problem
        self.digest = hashlib.sha256(problem.encode() + b"\0" + data).hexdigest()
        self._spool = spool
        self._data = data if spool is None else spool.add(data)

    @property
    def data(self):
        """The bytes of the notebook."""
        return self._data if self._spool is None else self._spool.get(self._data)

    def _key(self):
        return (self.student, self.lab, self.digest)

    def __eq__(self, other):
        return isinstance(other, Submission) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())

    def __repr__(self):
        return f"Submission({self.student!r}, {self.lab!r}, problem={self.problem!r})"


def find_submissions(path, lab):
    """Every student's submission for `lab` in the folder or zip `path`, sorted by student.

    Raises InputError where `path` is neither, holds no submission at all, or is a zip that could
    not be meant well (see `open_archive`).
    """
    path, made = Path(path), partial(_made, Spool())
    if path.is_dir():
        found = _in_folder(path, lab, made)
    elif path.is_file() and (path.suffix.lower() == ".zip" or zipfile.is_zipfile(path)):
        with open(path, "rb") as file, open_archive(file, path) as archive:
            found = _in_archive(archive, path, lab, made)
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
    """The notebook of a submission: a NotebookNode with type, id, grade_id and source of its cells.

    The rest (outputs, attachments, other metadata) is left out: it decides nothing. Raises
    Ungradable, with what to do about it, for anything that isn't a notebook of format 4.
    """
    where = f"{submission.student}/{submission.lab}.ipynb"
    if submission.problem:
        raise Ungradable(submission.problem)
    return bare(read(submission.data, where))


def _in_folder(path, lab, made):
    """Submissions in a class's folder, unsorted, one for each thing that could be one."""
    found = []
    for entry in os.scandir(path):
        base, suffix = os.path.splitext(entry.name)
        if _junk(entry.name):
            continue
        dangling = entry.is_symlink() and not os.path.exists(entry.path)
        if entry.is_dir() or dangling:
            found.append(made(entry.name, lab, lambda e=entry: _from_folder(e.path, lab)))
        elif suffix.lower() == ".zip":
            found.append(made(base, lab, lambda e=entry: _from_zip(e.path, lab)))
        elif suffix == ".ipynb":
            found.append(made(base, lab, lambda e=entry: _loose(e.name)))
    return found


def _in_archive(archive, path, lab, made):
    """Submissions in a class's zip, or the one of a student's zip."""
    wanted = f"{lab}.ipynb"
    members = {}
    for member in archive.infolist():
        parts = member_path(member).parts
        if parts and not any(map(_junk, parts)):
            members.setdefault(parts, []).append(member)
    if (wanted,) in members:
        return [made(path.stem, lab, lambda: member_of(archive, members[wanted,], path))]
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
            made(
                name,
                lab,
                lambda member=member, others=others: (
                    member_of(archive, member, path) if member else _absent(lab, others)
                ),
            )
        )
    for parts in members:
        if len(parts) == 1 and parts[0].endswith((".zip", ".ipynb")):
            result.append(made(PurePosixPath(parts[0]).stem, lab, lambda p=parts: _loose(p[0])))
    return result


def _made(spool, name, lab, read):
    """The Submission of the student `name`, whose bytes `read()` returns or says why not."""
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


def _printable_name(name):
    """A refused name as it is listed: short enough for a file, and nobody else's."""
    shown = "".join("\ufffd" if _unprintable(c) or c in "/\\" else c for c in name).strip(" .")
    if "\ufffd" not in shown or len(shown) > NAME_LIMIT // 2:
        # Cut off where another student's name ends, it would be taken for that student.
        shown = f"{shown[: NAME_LIMIT // 2].strip(' .')}…"
    return "(no name)" if shown == "…" else shown


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
        _check_file(handle, wanted, "hand in the notebook")
        return limited(file, wanted)


def _from_zip(path, lab):
    """The notebook in a student's zip, at its top or in any folder of it."""
    if os.path.islink(path):
        raise Ungradable("the zip is a symbolic link, which is not followed; hand in the file")
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(handle, "rb") as file:
        _check_file(handle, "the zip", "hand in a zip")
        name = os.path.basename(path)
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


def _check_file(handle, what, remedy):
    """Raise Ungradable unless the open file is a plain one, under one name alone.

    A hard link may be another student's file, or one that only the grader may read.
    """
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode):
        raise Ungradable(f"{what} is not a file; {remedy}")
    if about.st_nlink > 1:
        raise Ungradable(
            f"{what} is a hard link: the file has {about.st_nlink} names, and may be somebody "
            "else's; copy it ('cp --no-preserve=links') if it is the student's own"
        )


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
