"""Bring what is made of a gradebook up to date with what people have decided: pages and marks.

A feedback page is made when a submission is judged. What people change later are the marks on it:
those are put in their places, between the marks that the templates leave, and the rest stays.
"""

from contextlib import contextmanager
from pathlib import Path

from markupsafe import escape

from mpilab.errors import InputError
from mpilab.grading import feedback, marks
from mpilab.grading.effective import effective
from mpilab.grading.gradebook import Gradebook
from mpilab.whole_file import write_whole

GRADEBOOK = "gradebook.sqlite"


@contextmanager
def opened(out, lab):
    """The Gradebook of a folder that `mpilab grade --out` has filled, while the block lasts.

    Raises InputError where there is none, or none of this lab: a gradebook is not made by asking
    for it.
    """
    path = Path(out) / GRADEBOOK
    if not path.is_file():
        raise InputError(f"{out}: holds no {GRADEBOOK}; name a folder that 'mpilab grade --lab "
                         f"{lab} --out' has filled")  # fmt: skip
    with Gradebook(path) as book:
        if not book.newest(lab):
            raise InputError(f"{path}: no verdict on lab {lab!r}; check --lab, or grade it first")
        yield book


def refresh(book, lab, out, points=None):
    """Write grades.csv of the folder `out`, and the marks on its pages, anew; (list of Effective in
    the order of the CSV, notes on pages that could not be).

    points   {exercise: points}, the columns of the CSV; by default those of the verdicts.

    Where somebody else changes the gradebook meanwhile, it is done again: whoever writes last has
    read what is in it.
    """
    while True:
        version = book.version()
        verdicts = marks.in_order(effective(book, lab))
        notes = refresh_pages(book, verdicts, out)
        marks.write_csv(verdicts, Path(out) / "grades.csv", points or points_of(verdicts))
        if book.version() == version:
            return verdicts, notes


def refresh_pages(book, verdicts, out):
    """Put the marks of `verdicts`, Effective of one lab, on their pages; a list of notes."""
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


def remarked(page, verdict):
    """The text of a page with the marks of an Effective; None where it has no places for them."""
    parts = feedback.template("feedback_parts.html.j2").module
    mark = feedback.mark_view(verdict)
    pieces = [("score", parts.score(mark)), ("state", parts.state(mark))]
    for number, exercise in enumerate(verdict.exercises, start=1):
        view = feedback.exercise_view(exercise, number)
        pieces.append((f"points {escape(exercise.exercise)}", parts.points(view)))
    for name, text in pieces:
        page = page and replaced(page, name, text)
    return page


def rejudged(page, verdict, exercise, answer):
    """The text of a page after the exercise called `exercise` has been judged anew, for a
    SubmissionVerdict and the text of the answer; None where it has no place for it."""
    parts = feedback.template("feedback_parts.html.j2").module
    number, found = next(
        (number, each)
        for number, each in enumerate(verdict.exercises, start=1)
        if each.exercise == exercise
    )
    view = feedback.exercise_view(found, number, answer)
    mark = feedback.mark_view(verdict)
    for name, text in (
        (f"exercise {escape(exercise)}", parts.section(view)),
        ("score", parts.score(mark)),
        ("state", parts.state(mark)),
    ):
        page = page and replaced(page, name, text)
    return page


def replaced(page, name, text):
    """`page` with `text` in the place of the part called `name`; None where there is none."""
    first, last = f"<!--mpilab:{name}-->", f"<!--/mpilab:{name}-->"
    before, found, rest = page.partition(first)
    _, ended, after = rest.partition(last)
    if not (found and ended):
        return None
    # As markup, the text would escape what it is put between.
    return before + str(text).strip() + after


def points_of(verdicts):
    """{exercise: points}, in the lab's order, from verdicts."""
    return {each.exercise: each.points for verdict in verdicts for each in verdict.exercises}


def _judged(verdict, runs):
    """False for who has no verdict on what was handed in: the page is of something older."""
    return verdict.reason == runs[verdict.student].verdict.reason
