"""Points for free text by way of a spreadsheet: what waits for a person goes out as a CSV, and
comes back with points.

A row says which text it is about (text_id), so that points can't land on a text that nobody read.
"""

import csv
import io
import re
from pathlib import Path

from mpilab.errors import InputError
from mpilab.grading.decisions import POINTS, about_of, manual
from mpilab.grading.effective import effective
from mpilab.plain import plain
from mpilab.verdict import MANUAL

COLUMNS = ("student", "exercise", "item", "most", "text", "before", "points", "comment", "text_id")
NEEDED = ("student", "exercise", "item", "points", "comment", "text_id")
# A spreadsheet would run a cell that begins with one of these signs as a formula.
FORMULA = ("=", "+", "-", "@", "\t")


def export(book, lab, path, everything=False):
    """Write a row for each item that waits for a person, by exercise, then by student; how many.

    everything   also those that have points, to be looked through again.
    """
    runs = {run.verdict.student: run for run in book.newest(lab)}
    text, count = io.StringIO(), 0
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    for where, each, exercise, item in readable(effective(book, lab)):
        if item.awarded is not None and not everything:
            continue
        given = item.decision
        before = "" if item.proposal is None else f"{item.proposal:g} for another text"
        row = [each.student, *where, f"{item.points:g}", plain(exercise.answer or ""), before,
               f"{given.points:g}" if given else "", given.reason if given else ""]  # fmt: skip
        about = about_of(runs[each.student], exercise)[:16]
        writer.writerow([*map(_guarded, row), about])
        count += 1
    # With a byte order mark, spreadsheets know that it is UTF-8.
    Path(path).write_text(text.getvalue(), encoding="utf-8-sig", newline="")
    return count


def readable(verdicts):
    """What people read, exercise by exercise: ((exercise, item), Effective, EffectiveExercise,
    EffectiveItem). Left out is what an override stands for."""
    found = {}
    for each in verdicts:
        for exercise in each.exercises:
            for item in exercise.items:
                hand = exercise.decision or item.decision
                if item.outcome == MANUAL and (hand is None or hand.kind == POINTS):
                    where = (exercise.exercise, item.item)
                    found.setdefault(where, []).append((where, each, exercise, item))
    return [row for rows in found.values() for row in rows]


def read(book, lab, path):
    """The Decisions of a CSV that `export` has written and a person has filled in.

    Rows without points, and those that say what counts already, are left out. Raises InputError
    with file:line for every row that is wrong; then nothing of the file may be taken.
    """
    path = Path(path)
    runs = {run.verdict.student: run for run in book.newest(lab)}
    students = {_guarded(student): student for student in runs}
    waiting = {
        (each.student, *where): item for where, each, _, item in readable(effective(book, lab))
    }
    decisions, wrong, seen = [], [], {}
    for line, row in _rows(path):
        try:
            if not row["points"].strip():
                if row["comment"].strip():
                    raise InputError("a comment without points; fill in points too")
                continue
            decision = _decision(row, runs, students)
            if (first := seen.setdefault(decision.on, line)) != line:
                raise InputError(f"the same item as in line {first}; keep one of them")
            item = waiting.get((decision.student, decision.exercise, decision.item))
            if item is None:
                raise InputError("an override stands for it; take that back first")
            now = item.decision
            if now is None or (now.points, now.reason) != (decision.points, decision.reason):
                decisions.append(decision)
        except InputError as error:
            wrong.append(f"{path}:{line}: {error}")
    if wrong:
        more = f"\n… and {len(wrong) - 20} more" if len(wrong) > 20 else ""
        raise InputError("nothing was taken:\n" + "\n".join(wrong[:20]) + more)
    return decisions


def _decision(row, runs, students):
    if row["student"] not in students:
        raise InputError(f"student {row['student']!r}: not in the gradebook; don't change names")
    run = runs[students[row["student"]]]
    number = row["points"].strip()
    if not re.fullmatch(r"\d+([.,]\d+)?", number):
        raise InputError(f"points {number!r}: not a number; write e.g. 7 or 7.5")
    points, comment = float(number.replace(",", ".")), row["comment"]
    if comment[1:].startswith(FORMULA):
        comment = comment.removeprefix("'")
    decision = manual(run, row["exercise"], row["item"], points, comment)
    if row["text_id"].strip() != decision.about[:16]:
        raise InputError("the text has changed since the export; export again, and read it anew")
    return decision


def _rows(path):
    """(line, {column: text}) of each row; `line` is where it begins."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file") from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}: byte {error.start} is not UTF-8; save it as 'CSV UTF-8'"
        ) from None
    head = text.partition("\n")[0]
    # Where the comma is the decimal sign, spreadsheets write semicolons between columns.
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=";" if ";" in head else ",")
    columns = next(reader, [])
    if missing := [name for name in NEEDED if name not in columns]:
        raise InputError(f"{path}:1: no column {', '.join(missing)}; keep the first line as it "
                         f"was exported: {','.join(COLUMNS)}")  # fmt: skip
    line = reader.line_num + 1
    for cells in reader:
        if any(map(str.strip, cells)):
            yield line, {**dict.fromkeys(columns, ""), **dict(zip(columns, cells, strict=False))}
        line = reader.line_num + 1


def _guarded(text):
    return "'" * text.startswith(FORMULA) + text
