"""Update feedback pages and grades.csv after manual decisions, and explain a student's marks.

A feedback page is written when a submission is judged. Later decisions change only the marks on it,
which stand between markers that the templates leave; the rest of the page stays.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from markupsafe import escape

from mpilab.errors import InputError
from mpilab.grading import feedback, marks
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
from mpilab.grading.marks import points as short
from mpilab.grading.referee import DETAILS, LOG
from mpilab.judging.verdict import SubmissionVerdict, simulated_by
from mpilab.util.files import write_whole
from mpilab.util.text import plain, suggestion

GRADEBOOK = "gradebook.sqlite"

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
        lines.insert(1, f"All this is of an older file, and listed is: ungradable. {absent}")
    if counted.late is not None:
        lines.append(f"  lateness: {counted.late.reason} {_by(counted.late)}")
        if counted.decision is not None:
            lines.append("    takes nothing: the total was set manually")
        elif counted.total is not None:
            lines.append(f"    takes {short(counted.penalty)} of {short(counted.raw_total)}")
    if counted.decision is not None:
        lines.append(f"  total: {_told(counted.decision)}")
    if counted.notes:
        lines += ["", "To be looked at:", *(f"  {note}" for note in counted.notes)]
    lines += ["", "History, oldest first:"]
    events = [(each.recorded, _run_line(each)) for each in runs[::-1]]
    own = [each for each in decisions if each.student == student]
    events += [(each.decided, _decision_line(each, standing)) for each in own]
    lines += [f"  {_time(when)}  {line}" for when, line in sorted(events, key=_when)]
    return plain("\n".join(lines))


def _head(counted: Effective) -> str:
    total = "no total yet" if counted.total is None else f"{short(counted.total)}"
    return f"{counted.student}, {counted.lab}: {total} of {short(counted.points)}, {counted.status}"


def _parts(counted: Effective) -> Iterator[str]:
    width = max((len(each.exercise) for each in counted.exercises), default=0)
    for exercise in counted.exercises:
        given = short(exercise.awarded) or "-"
        told = f", {_told(exercise.decision)}" if exercise.decision else ""
        yield f"  {exercise.exercise:<{width}}  {given} of {short(exercise.points)}{told}"
        for item in exercise.items:
            how = _told(item.decision) if item.decision else _judged_text(item)
            yield f"    {item.item}: {short(item.awarded) or '-'} of {short(item.points)}, {how}"


def _judged_text(item: EffectiveItem) -> str:
    if item.proposal is not None:
        return f"awaits manual grading; {short(item.proposal)} had been given for another text"
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
    total = "no total" if run.verdict.total is None else f"{short(run.verdict.total)} points"
    known = f"rubric {run.assignment[:8] or 'unknown'}, file {run.submission[:8] or 'unknown'}"
    if run.verdict.simgrid:
        known += f", {simulated_by(run.verdict.simgrid)}"
    return f"judged: {total}, {run.verdict.status} ({known})"


def _decision_line(decision: Decision, standing: Mapping[Subject, Decision]) -> str:
    where = "/".join(filter(None, (decision.exercise, decision.item))) or "total"
    later = "" if standing[decision.on] is decision else " (replaced later)"
    who, said = decision.who, f': "{decision.reason}"' if decision.reason else ""
    if decision.kind == LATE:
        what = "lateness taken back" if decision.withdrawn else "lateness"
    elif decision.withdrawn:
        what = f"{where}: {'points' if decision.kind == POINTS else 'override'} taken back"
    elif decision.kind == POINTS:
        what = f"{where}: {short(decision.points)} points given"
    else:
        what = f"{where}: set to {short(decision.points)}"
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
        if not book.newest(lab):
            meant = suggestion(lab, _labs(book))
            raise InputError(
                f"{path}: no verdict on lab {lab!r}; check --lab, or grade it first{meant}"
            )
        yield book


def only_lab(out: str | Path) -> str:
    """The only lab with verdicts in the gradebook in the folder `out`; InputError otherwise."""
    path = Path(out) / GRADEBOOK
    if not path.is_file():
        raise InputError(
            f"{out}: holds no {GRADEBOOK}; name a folder that 'mpilab grade --out' has filled"
        )
    with Gradebook(path) as book:
        labs = _labs(book)
    if len(labs) != 1:
        found = ", ".join(labs) or "none"
        raise InputError(f"{path}: verdicts on several labs ({found}); choose one with --lab LAB")
    return labs[0]


def _labs(book: Gradebook) -> list[str]:
    return sorted({run.verdict.lab for run in book.runs()})


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
        verdicts = sorted(effective(book, lab), key=marks.listing_order)
        notes = refresh_pages(book, verdicts, out)
        marks.write_csv(verdicts, Path(out) / "grades.csv", points or points_of(verdicts))
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
            notes.append(f"{page}: not there, so the marks could not be put on it")
            continue
        old = page.read_text(encoding="utf-8")
        new = remarked(old, each)
        if new is None:
            notes.append(f"{page}: made by an older mpilab, so it keeps the marks that it has")
        elif new != old:
            write_whole(page, new)
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
