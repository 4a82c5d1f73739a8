"""Bring a download into folders STUDENT/LAB.ipynb, with a table of who handed in what and when."""

import os
import re
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from mpilab.errors import InputError, Ungradable
from mpilab.grading.submission import student_name
from mpilab.instructor.collecting import layouts
from mpilab.instructor.collecting.source import notebooks_within, opened
from mpilab.instructor.marks import csv_text, read_rows, safe_cell
from mpilab.whole_file import write_whole

TABLE = "submissions.csv"
COLUMNS = ("student", "time", "late", "id", "source")
# What browsers, platforms and people append to a file that they have twice.
_COPY = re.compile(r"(?:-\d+|[ _]?\(\d+\)|[ _]\d+|[-_ ]copy\d*)$", re.IGNORECASE)
_AUTO = "auto"


@dataclass(frozen=True)
class Collected:
    """What `collect` did.

    layout    one of layouts.LAYOUTS
    students  {student: the Piece that was taken}
    changed   students whose notebook is another one than was there before
    notes     what was taken with a doubt
    left      what was not understood, a line each
    """

    layout: str
    students: dict
    changed: list
    notes: list
    left: list


def collect(source, dest, lab, *, layout=_AUTO, prefix="", with_ids=False):
    """Write DEST/STUDENT/LAB.ipynb and DEST/submissions.csv from a download; Collected.

    Of several files of a student the newest counts. `prefix` is what stands before the user in the
    names of GitHub Classroom's repositories; `with_ids` puts the platform's number behind each
    name. Raises InputError, and has written nothing, where two students would get one name.
    """
    dest = Path(dest)
    if Path(source).is_dir() and dest.resolve().is_relative_to(Path(source).resolve()):
        raise InputError(f"{dest}: lies in {source}, so it would be collected next time; name "
                         "another folder")  # fmt: skip
    with opened(source) as files:
        layout = layouts.layout_of(files, lab) if layout == _AUTO else layout
        pieces, others = layouts.LAYOUTS[layout](files, lab, prefix)
        left = [*files.refused, *(f"{each.path}: nobody's" for each in others)]
        groups = _by_student(pieces, with_ids, left)
        chosen, notes = {}, []
        for student, own in groups.items():
            try:
                chosen[student] = _newest(student, own, lab, notes, left)
            except (InputError, Ungradable) as error:
                left.append(f"{student}: {error}")
        chosen = {student: piece for student, piece in chosen.items() if piece is not None}
        if not chosen:
            listed = "\n  ".join(["", *left[:10]])
            raise InputError(f"{source}: no submission of {lab} found as {layout}{listed}")
        contents = {}
        for student, piece in list(chosen.items()):
            try:
                contents[student] = piece.found.read()
            except (InputError, Ungradable, OSError) as error:
                left.append(f"{student}: {error}")
                del chosen[student]
    changed = _write(dest, lab, chosen, contents)
    return Collected(layout, chosen, changed, notes, left)


def _by_student(pieces, with_ids, left):
    """{student's name: pieces}; InputError where two students would get the same."""
    groups = defaultdict(list)
    for piece in pieces:
        groups[piece.student, piece.id].append(piece)
    named, folded = {}, {}
    for (name, number), own in sorted(groups.items()):
        try:
            student = student_name(f"{name}_{number}" if with_ids and number else name)
        except InputError as error:
            left.append(f"{own[0].found.path}: {error}")
            continue
        # Not every disk tells upper from lower case.
        other = folded.setdefault(student.casefold(), (name, number))
        if other != (name, number):
            told = " and ".join(filter(None, [" ".join(other), f"{name} {number}".strip()]))
            remedy = "tell them apart with --with-ids" if number else "rename one of them"
            raise InputError(f"two students would both be called {student!r}: {told}; {remedy}")
        named[student] = own
    return named


def _newest(student, pieces, lab, notes, left):
    """The piece that counts, or None, with the reason in `left`."""
    notebooks = []
    for piece in pieces:
        if piece.file.endswith(".ipynb"):
            notebooks.append(piece)
        for inner in notebooks_within(piece.found):
            notebooks.append(replace(piece, file=inner.name, found=inner))
    called = [piece for piece in notebooks if _stem(piece.file, lab) == lab.casefold()]
    if not called and len(notebooks) == 1:
        notes.append(f"{student}: {notebooks[0].found.path}: taken, though it is not called "
                     f"{lab}.ipynb")  # fmt: skip
        called = notebooks
    if not called:
        there = ", ".join(sorted(piece.found.path for piece in notebooks or pieces)[:5])
        several = "several notebooks, none of them" if notebooks else "no notebook"
        left.append(f"{student}: {several} called {lab}.ipynb: {there}")
        return None
    never = datetime.min.replace(tzinfo=UTC)
    rank = {piece: (piece.time or never, piece.attempt, -len(piece.found.parts))
            for piece in called}  # fmt: skip
    best = max(called, key=rank.get)
    equals = [piece for piece in called if rank[piece] == rank[best]]
    if len(equals) > 1:
        left.append(f"{student}: which is the newest? "
                    + ", ".join(piece.found.path for piece in equals))  # fmt: skip
        return None
    if len(called) > 1:
        notes.append(f"{student}: {best.found.path}: the newest of {len(called)}")
    return best


def _stem(file, lab):
    """The name of a file without its folder, suffix, and what was appended to a copy of it."""
    stem = file.rpartition("/")[2].removesuffix(".ipynb").casefold()
    while stem != lab.casefold() and _COPY.search(stem):
        stem = _COPY.sub("", stem)
    return stem


def _write(dest, lab, chosen, contents):
    """Write what has changed; the students whose notebook it is. Checks all before any is written.

    Students of an earlier collection who are not in this one stay, and so do their rows.
    """
    rows = {row[0].removeprefix("'"): row for row in _rows(dest)}
    for student in chosen:
        path = dest / student / f"{lab}.ipynb"
        if path.parent.is_symlink() or path.is_symlink():
            raise InputError(f"{path}: is a link, or lies behind one; remove it")
        if path.exists() and student not in rows and path.read_bytes() != contents[student]:
            raise InputError(f"{path}: is there already, and not from collecting; move it away")
    changed = []
    for student, piece in chosen.items():
        path = dest / student / f"{lab}.ipynb"
        if not path.exists() or path.read_bytes() != contents[student]:
            write_whole(path, contents[student])
            changed.append(student)
        if piece.time is not None:
            os.utime(path, (piece.time.timestamp(),) * 2)
        rows[student] = _row(student, piece)
    write_whole(dest / TABLE, csv_text([COLUMNS, *(rows[student] for student in sorted(rows))]))
    return changed


def _rows(dest):
    """The rows of an earlier collection."""
    if not (dest / TABLE).exists():
        return []
    header, *rows = read_rows(dest / TABLE)
    if tuple(header) != COLUMNS:
        raise InputError(f"{dest / TABLE}: not made by 'mpilab collect'; move it away")
    return rows


def _row(student, piece):
    time = piece.time.isoformat(timespec="seconds") if piece.time else ""
    late = {True: "yes", False: "no", None: ""}[piece.late]
    return [safe_cell(student), time, late, piece.id, safe_cell(piece.found.path)]
