"""The marks of a class: grades.csv, the printed table, and their history from the gradebook.

A feedback page is written when a submission is judged. Later decisions change only the marks on it,
which stand between markers that the templates leave; the rest of the page stays.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import escape

from mpilab.errors import InputError
from mpilab.grading import feedback
from mpilab.grading.decisions import (
    LATE,
    OVERRIDE,
    POINTS,
    Decision,
    Effective,
    EffectiveItem,
    Run,
    Subject,
    newest,
    of_run,
)
from mpilab.grading.gradebook import Gradebook, effective, run_of
from mpilab.grading.referee import DETAILS, LOG
from mpilab.judging.verdict import (
    NOT_ISOLATED,
    UNGRADABLE,
    SubmissionVerdict,
    isolated_by,
    simulated_by,
)
from mpilab.util.files import atomic_write, csv_text
from mpilab.util.text import plain, suggestion

GRADEBOOK = "gradebook.sqlite"
UNCONFIRMED = "not confirmed by simulation"
UNISOLATED = "not isolated"

# What is listed: as judged, or with the manual decisions.
Verdict = SubmissionVerdict | Effective


def listing_order(verdict: Verdict) -> tuple[bool, str]:
    """The key by which verdicts are listed: the ungradable ones first, then by student."""
    return verdict.status != "ungradable", verdict.student


def points(value: float | None) -> str:
    """Points in their shortest form: '12', '7.5', and '' for None."""
    return "" if value is None else f"{round(value, 4) + 0.0:.10g}"


def write_csv(verdicts: Sequence[Verdict], path: str | Path, exercises: Iterable[str]) -> None:
    """Write the marks to `path`: student, lab, a column for each exercise, total, status.

    `verdicts` are SubmissionVerdicts or Effectives; `exercises` are the ids of the lab's exercises
    in order (a dict of id to points also works). If lateness has been checked, there is a column
    for the penalty; if marks rest on Open MPI alone, one that names the exercises; if answers were
    not judged in the jail, one that says "yes" for these students. The file is
    replaced atomically, and the same verdicts give the same bytes.
    """
    path = Path(path)
    exercises = list(exercises)
    late = any(map(_late, verdicts))
    unconfirmed = any(map(unconfirmed_exercises, verdicts))
    unisolated = any(map(is_unisolated, verdicts))
    rows = [
        [
            "student",
            "lab",
            *exercises,
            *["penalty"] * late,
            "total",
            "status",
            *[UNCONFIRMED] * unconfirmed,
            *[UNISOLATED] * unisolated,
        ]
    ]
    for verdict in sorted(verdicts, key=listing_order):
        awarded = {each.exercise: each.awarded for each in verdict.exercises}
        rows.append(
            [
                *(verdict.student, verdict.lab),
                *(points(awarded.get(exercise)) for exercise in exercises),
                *[points(_penalty(verdict))] * late,
                *(points(verdict.total), verdict.status),
                *[" ".join(unconfirmed_exercises(verdict))] * unconfirmed,
                *["yes" if is_unisolated(verdict) else ""] * unisolated,
            ]
        )
    atomic_write(path, csv_text(rows))


def mark_table(verdicts: Sequence[Verdict], exercises: Mapping[str, float] | Iterable[str]) -> str:
    """The marks as a plain text table.

    The notes below it explain why submissions are ungradable, which decisions do not count, and
    what no simulation has confirmed. A star marks overridden points. `exercises` is a dict of
    exercise id to maximum points, in column order; for a list of ids, the points come from the
    verdicts.
    """
    if not isinstance(exercises, Mapping):
        found = {each.exercise: each.points for verdict in verdicts for each in verdict.exercises}
        exercises = {exercise: found.get(exercise, 0) for exercise in exercises}
    maxima = [points(most) for most in exercises.values()]
    late = any(map(_late, verdicts))
    total = f"/{points(sum(exercises.values()))}"
    table = [
        ["student", *exercises, *["penalty"] * late, "total", "status"],
        ["", *(f"/{most}" for most in maxima), *[""] * late, total, ""],
    ]
    notes, doubts = [], []
    for verdict in sorted(verdicts, key=listing_order):
        awarded = {
            each.exercise: _shown(each.awarded, each, each.items) for each in verdict.exercises
        }
        marks = [awarded.get(exercise, "-") for exercise in exercises]
        student = _printable(verdict.student)
        if late:
            marks.append(points(_penalty(verdict)) or "-")
        table.append([student, *marks, _shown(verdict.total, verdict), verdict.status])
        doubts += [f"  {_printable(note)}" for note in getattr(verdict, "notes", ())]
        notes += [f"{student}: {_printable(reason)}" for reason in _reasons(verdict)]

    widths = [max(map(_width, column)) for column in zip(*table, strict=True)]
    lines = []
    for row in table:
        # Align names and status to the left, numbers to the right.
        cells = [
            _filled(cell, width, left=place in (0, len(row) - 1))
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    lines.insert(2, "  ".join("-" * width for width in widths))
    if notes:
        lines += ["", "ungradable:", *(f"  {note}" for note in notes)]
    if doubts:
        lines += ["", "to be reviewed:", *doubts]
    counts = Counter(name for verdict in verdicts for name in unconfirmed_exercises(verdict))
    if counts:
        told = [
            f"  {name}: {counts[name]} of {len(verdicts)}" for name in exercises if counts[name]
        ]
        lines += ["", f"{UNCONFIRMED} (SimGrid was not installed where they were judged):", *told]
    if alone := sum(map(is_unisolated, verdicts)):
        lines += ["", f"{UNISOLATED} (judged where the jail was not installed): {alone}"]
    return "\n".join(lines)


def unconfirmed_exercises(verdict: Verdict) -> list[str]:
    """The ids of exercises in a SubmissionVerdict or Effective judged on Open MPI alone."""
    return [
        each.exercise
        for each in verdict.exercises
        if getattr(each, "decision", None) is None and any(item.unconfirmed for item in each.items)
    ]


def is_unisolated(verdict: Verdict) -> bool:
    """True if C answers of a SubmissionVerdict or Effective were not judged in the jail."""
    return verdict.jail == NOT_ISOLATED


def _late(verdict: Verdict) -> bool:
    return isinstance(verdict, Effective) and verdict.late is not None


def _penalty(verdict: Verdict) -> float | None:
    """The late penalty in points; None if lateness was not checked, or there is no total."""
    if not isinstance(verdict, Effective) or verdict.late is None or verdict.total is None:
        return None
    return verdict.penalty


def _shown(value: float | None, whole: object, parts: Iterable[object] = ()) -> str:
    """Points for the table, with a star if an override set them."""
    hands = [getattr(part, "decision", None) for part in (whole, *parts)]
    star = "*" * any(hand is not None and hand.kind == OVERRIDE for hand in hands)
    return (points(value) or "-") + star


def _reasons(verdict: Verdict) -> list[str]:
    """Why a submission is ungradable, one reason for each such exercise; empty if it is not."""
    if verdict.status != UNGRADABLE:
        return []
    if verdict.reason:
        return [verdict.reason]
    return [
        f"{exercise.exercise}: {reasons[0] or 'no reason given'}"
        for exercise in verdict.exercises
        if exercise.awarded is None
        if (reasons := [item.reason for item in exercise.items if item.outcome == UNGRADABLE])
    ]


def _printable(text: str) -> str:
    """One line without control characters: a student's text must not control the terminal."""
    return "".join(
        "\ufffd" if unicodedata.category(sign) in ("Cc", "Cs") else sign
        for sign in " ".join(text.split())
    )


def _width(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    return sum(
        0 if unicodedata.combining(sign) else 2 if unicodedata.east_asian_width(sign) in "WF" else 1
        for sign in text
    )


def _filled(text: str, width: int, left: bool) -> str:
    space = " " * (width - _width(text))
    return text + space if left else space + text


# Explain a mark from the gradebook: what counts now, and its history.


def explain(book: Gradebook, lab: str, student: str) -> str:
    """A text with a student's points and who gave them, then runs and decisions, oldest first.

    Raises InputError for a student who is not in the gradebook.
    """
    runs = book.history(student, lab) or [run_of(book, lab, student)]
    decisions = book.decisions(lab)
    standing = newest(decisions)
    counted = of_run(runs[0], standing)
    lines = [_head(counted), "", *_parts(counted)]
    if absent := (book.class_list(lab) or {}).get(student):
        lines.insert(
            1, (f"All this is about an older file; the current status is: ungradable. {absent}")
        )
    if counted.late is not None:
        lines.append(f"  lateness: {counted.late.reason} {_by(counted.late)}")
        if counted.decision is not None:
            lines.append("    no deduction: the total was set manually")
        elif counted.total is not None:
            lines.append(f"    takes {points(counted.penalty)} of {points(counted.raw_total)}")
    if counted.decision is not None:
        lines.append(f"  total: {_told(counted.decision)}")
    if counted.notes:
        lines += ["", "To be reviewed:", *(f"  {note}" for note in counted.notes)]
    lines += ["", "History, oldest first:"]
    events = [(each.recorded, _run_line(each)) for each in runs[::-1]]
    own = [each for each in decisions if each.student == student]
    events += [(each.decided, _decision_line(each, standing)) for each in own]
    lines += [f"  {_time(when)}  {line}" for when, line in sorted(events, key=_when)]
    return plain("\n".join(lines))


def _head(counted: Effective) -> str:
    total = "no total yet" if counted.total is None else points(counted.total)
    most = points(counted.points)
    return f"{counted.student}, {counted.lab}: {total} of {most}, {counted.status}"


def _parts(counted: Effective) -> Iterator[str]:
    width = max((len(each.exercise) for each in counted.exercises), default=0)
    for exercise in counted.exercises:
        given = points(exercise.awarded) or "-"
        told = f", {_told(exercise.decision)}" if exercise.decision else ""
        yield f"  {exercise.exercise:<{width}}  {given} of {points(exercise.points)}{told}"
        for item in exercise.items:
            how = _told(item.decision) if item.decision else _judged_text(item)
            yield f"    {item.item}: {points(item.awarded) or '-'} of {points(item.points)}, {how}"


def _judged_text(item: EffectiveItem) -> str:
    if item.proposal is not None:
        return f"awaits manual grading; {points(item.proposal)} were given for an earlier text"
    outcome = item.outcome + ", not confirmed by simulation" * item.unconfirmed
    said = f": {' '.join(item.reason.split())[:160]}" if item.reason else ""
    if log := item.evidence.get(LOG):
        said += f" (log: {log})"
    if details := item.evidence.get(DETAILS):
        said += f" (details: {' '.join(details.split())[-300:]})"
    return outcome + said


def _told(decision: Decision) -> str:
    verb = {POINTS: "graded", OVERRIDE: "set"}[decision.kind]
    said = f': "{decision.reason}"' if decision.reason else ""
    return f"{verb} {_by(decision)}{said}"


def _by(decision: Decision) -> str:
    return f"by {decision.who}, {_time(decision.decided)}"


def _run_line(run: Run) -> str:
    total = "no total" if run.verdict.total is None else f"{points(run.verdict.total)} points"
    known = f"rubric {run.assignment[:8] or 'unknown'}, file {run.submission[:8] or 'unknown'}"
    if run.verdict.simgrid:
        known += f", {simulated_by(run.verdict.simgrid)}"
    if run.verdict.jail:
        known += f", {isolated_by(run.verdict.jail)}"
    return f"judged: {total}, {run.verdict.status} ({known})"


def _decision_line(decision: Decision, standing: Mapping[Subject, Decision]) -> str:
    where = "/".join(filter(None, (decision.exercise, decision.item))) or "total"
    later = "" if standing[decision.on] is decision else " (later replaced)"
    who, said = decision.who, f': "{decision.reason}"' if decision.reason else ""
    if decision.kind == LATE:
        what = "lateness withdrawn" if decision.withdrawn else "lateness"
    elif decision.withdrawn:
        what = f"{where}: {'points' if decision.kind == POINTS else 'override'} withdrawn"
    elif decision.kind == POINTS:
        what = f"{where}: {points(decision.points)} points given"
    else:
        what = f"{where}: set to {points(decision.points)}"
    return f"{what} by {who}{said}{later}"


def _when(event: tuple[str, str]) -> datetime:
    return datetime.fromisoformat(event[0])


def _time(text: str) -> str:
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")


@contextmanager
def opened(out: str | Path, lab: str) -> Iterator[Gradebook]:
    """Open the Gradebook in a folder that `mpilab grade --out` has filled; a context manager.

    Raises InputError if there is none, or it has no verdict on this lab; never creates one.
    """
    path = Path(out) / GRADEBOOK
    if not path.is_file():
        raise InputError(
            f"{out}: holds no {GRADEBOOK}; name a folder that 'mpilab grade --lab "
            f"{lab} --out' has filled"
        )
    with Gradebook(path) as book:
        if lab not in (labs := book.labs()):
            meant = suggestion(lab, labs)
            raise InputError(
                f"{path}: no verdict on lab {lab!r}; check --lab, or grade the lab first{meant}"
            )
        yield book


def only_lab(out: str | Path) -> str:
    """The only lab with verdicts in the gradebook in the folder `out`; InputError otherwise."""
    path = Path(out) / GRADEBOOK
    if not path.is_file():
        raise InputError(f"{out}: holds no {GRADEBOOK}; name an output folder of 'mpilab grade'")
    with Gradebook(path) as book:
        labs = book.labs()
    if len(labs) != 1:
        found = ", ".join(labs) or "none"
        raise InputError(f"{path}: verdicts on several labs ({found}); choose one with --lab LAB")
    return labs[0]


def refresh(
    book: Gradebook, lab: str, out: str | Path, points: Mapping[str, float] | None = None
) -> tuple[list[Effective], list[str]]:
    """Rewrite grades.csv and the marks on the pages in the folder `out`.

    points   {exercise: points}, the columns of the CSV; by default those of the verdicts.

    Returns (list of Effective in the order of the CSV, notes on pages that could not be updated).
    If another process changes the gradebook meanwhile, it starts again, so that the last one to
    write has read the current state.
    """
    while True:
        version = book.version()
        verdicts = sorted(effective(book, lab), key=listing_order)
        notes = refresh_pages(book, verdicts, out)
        write_csv(verdicts, Path(out) / "grades.csv", points or points_of(verdicts))
        if book.version() == version:
            return verdicts, notes


def refresh_pages(book: Gradebook, verdicts: Sequence[Effective], out: str | Path) -> list[str]:
    """Put the marks of `verdicts`, Effectives of one lab, on their pages; returns notes."""
    notes, lab = [], next((each.lab for each in verdicts), "")
    touched = {decision.student for decision in book.decisions(lab)}
    runs = {run.verdict.student: run for run in book.newest(lab)} if touched else {}
    for each in verdicts:
        if each.student not in touched or each.student not in runs or not _judged(each, runs):
            continue
        page = Path(out) / (runs[each.student].feedback or f"feedback/{each.student}.html")
        if not page.is_file():
            notes.append(f"{page}: missing, so the marks could not be added to it")
            continue
        old = page.read_text(encoding="utf-8")
        new = remarked(old, each)
        if new is None:
            notes.append(f"{page}: made by an older mpilab, so its marks are unchanged")
        elif new != old:
            atomic_write(page, new)
    return notes


def remarked(page: str, verdict: Effective) -> str | None:
    """The text of a page with the marks of an Effective; None if it has no place for them."""
    parts: Any = feedback.template("feedback_parts.html.j2").module
    mark = feedback.mark_view(verdict)
    pieces = [("score", parts.score(mark)), ("state", parts.state(mark))]
    for number, exercise in enumerate(verdict.exercises, start=1):
        view = feedback.exercise_view(exercise, number)
        pieces.append((f"points {escape(exercise.exercise)}", parts.points(view)))
    return _with_parts(page, pieces)


def rejudged(
    page: str, verdict: SubmissionVerdict, exercise: str, answer: str | None
) -> str | None:
    """The text of a page after a regrade of the exercise with the id `exercise`.

    verdict is a SubmissionVerdict, answer the text of the answer. None if the page has no place
    for it.
    """
    parts: Any = feedback.template("feedback_parts.html.j2").module
    number, found = next(
        (number, each)
        for number, each in enumerate(verdict.exercises, start=1)
        if each.exercise == exercise
    )
    view = feedback.exercise_view(found, number, answer)
    mark = feedback.mark_view(verdict)
    pieces = [
        (f"exercise {escape(exercise)}", parts.section(view)),
        ("score", parts.score(mark)),
        ("state", parts.state(mark)),
    ]
    return _with_parts(page, pieces)


def _with_parts(page: str, pieces: Sequence[tuple[str, str]]) -> str | None:
    """`page` with new texts of its parts, [(name, text)]; None if one of them is missing."""
    new: str | None = page
    for name, text in pieces:
        new = new and replaced(new, name, text)
    return new


def replaced(page: str, name: str, text: str) -> str | None:
    """`page` with `text` in place of the part called `name`; None if there is no such part."""
    first, last = f"<!--mpilab:{name}-->", f"<!--/mpilab:{name}-->"
    before, found, rest = page.partition(first)
    _, ended, after = rest.partition(last)
    if not (found and ended):
        return None
    # If it stayed Markup, `text` would escape the page around it.
    return before + str(text).strip() + after


def points_of(verdicts: Sequence[Effective]) -> dict[str, float]:
    """{exercise: maximum points}, in the lab's order, from verdicts."""
    return {each.exercise: each.points for verdict in verdicts for each in verdict.exercises}


def _judged(verdict: Effective, runs: Mapping[str, Run]) -> bool:
    """False if the latest submission has no verdict, so that the page is about an older one."""
    return verdict.reason == runs[verdict.student].verdict.reason
