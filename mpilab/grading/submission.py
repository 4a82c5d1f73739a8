"""Find what a class handed in, and read it without trusting it.

Accepted are a folder, or a zip, of `<student>/<lab>.ipynb`, and a folder of `<student>.zip`. One
student's bad file becomes a `Submission` with a `problem`; it never stops the class.
"""

import errno
import hashlib
import json
import os
import stat
import unicodedata
import zipfile
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path, PurePosixPath

import nbformat

from mpilab.errors import InputError, Ungradable
from mpilab.grading.zips import limited, member_of, member_path, open_archive

NAME_LIMIT = 100

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
        parts = member_path(member).parts
        if parts and not any(map(_junk, parts)):
            members.setdefault(parts, []).append(member)
    if (wanted,) in members:
        return [_made(path.stem, lab, lambda: member_of(archive, members[wanted,], path))]
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
                    member_of(archive, member, path) if member else _absent(lab, others)
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
        return limited(file, wanted)


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
                if not member.is_dir() and not any(map(_junk, member_path(member).parts))
            ]
            wanted = [m for m in files if member_path(m).name == f"{lab}.ipynb"]
            if not wanted:
                return _absent(lab, [member_path(member).name for member in files])
            return member_of(archive, wanted, name)


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
