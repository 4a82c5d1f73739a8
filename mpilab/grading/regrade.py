"""Judge one exercise again for a whole class, after its part of the rubric has changed.

The verdicts on the other exercises stay as they are, word for word, in a run that is recorded with
the rubric as it is now. So that is allowed only where they are what that rubric would say: on the
same file, by the same grader, and by parts of the rubric that have not changed. (The hidden seeds
of all exercises change with any word of a rubric; a verdict by older seeds stands.)
"""

import time
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from pathlib import Path

from mpilab.build import ROOT
from mpilab.errors import InputError, Ungradable
from mpilab.grading import marks, pages
from mpilab.grading.answers import answer_cells, is_blank, transplant
from mpilab.grading.grade import DIFFERENCES, Assignment, prepare
from mpilab.grading.referee import Referee
from mpilab.grading.submission import find_submissions, parse
from mpilab.grading.workers import Workers
from mpilab.judge import ungradable
from mpilab.whole_file import write_whole


@dataclass(frozen=True)
class Regraded:
    """What `regrade` did.

    verdicts  of the whole class, Effective, in the order of the CSV.
    changes   {student: (points of the exercise before, after)} of who was judged again.
    left      {student: why not}: who has to be graded as a whole first.
    notes     on feedback pages.
    """

    verdicts: list
    changes: dict
    left: dict
    notes: list
    points: dict

    @property
    def table(self):
        """The mark table as text."""
        return marks.mark_table(self.verdicts, self.points)


def regrade(out, submissions, lab, exercise, *, again=False, jobs=None, unsafe=False,
            progress=True, root=ROOT):  # fmt: skip
    """Judge `exercise` again for all `submissions` that the gradebook in `out` has verdicts on.

    Who has a verdict by the present rubric is passed over, unless `again`: so it can be interrupted
    and started anew. Raises InputError, before anything is judged, where the rubric of another
    exercise has changed as well, naming those.
    """
    from tqdm.auto import tqdm

    out, assignment = Path(out), Assignment.load(lab, root)
    asked = assignment.rubric.exercise(exercise)
    found = find_submissions(submissions, lab)
    with pages.opened(out, lab) as book:
        runs = {run.verdict.student: run for run in book.newest(lab)}
        left = _left(found, runs)
        able = [s for s in found if s.student not in left]
        _refuse_other_changes(assignment, exercise, [runs[s.student] for s in able])
        todo = [s for s in able if again or runs[s.student].key != assignment.key(s)]
        changes, notes = {}, []
        with tqdm(total=len(able), initial=len(able) - len(todo), desc=f"judging {exercise}",
                  unit="submission", disable=not progress) as bar:  # fmt: skip
            if todo:
                prepare(assignment)
                with Workers(jobs, unsafe=unsafe) as workers:
                    futures = {
                        workers.submit(_again, assignment, asked, s, runs[s.student], book, out): s
                        for s in todo
                    }
                    for future in as_completed(futures):
                        student = futures[future].student
                        changes[student], note = future.result()
                        notes += [note] * bool(note)
                        bar.update()
        verdicts, more = pages.refresh(book, lab, out, assignment.points)
        notes += more
    return Regraded(verdicts, dict(sorted(changes.items())), left, notes, assignment.points)


def _left(found, runs):
    """{student: why no single exercise can be judged again}."""
    left = {}
    for submission in found:
        run = runs.get(submission.student)
        if run is None:
            left[submission.student] = "has not been graded yet"
        elif not run.submission:
            left[submission.student] = "was graded by an mpilab that kept no digest of the file"
        elif run.submission != submission.digest:
            left[submission.student] = "has handed in another file since"
    return left


def _refuse_other_changes(assignment, exercise, runs):
    """InputError where something else changed than what the rubric says of `exercise`."""
    changed = {}
    for run in runs:
        known = {each.exercise: each.rubric for each in run.verdict.exercises}
        for name in {**known, **assignment.parts}:
            if name != exercise and known.get(name) != assignment.parts.get(name):
                changed.setdefault(name, run.verdict.student)
    if changed:
        named = ", ".join(f"{name} (e.g. {student})" for name, student in changed.items())
        raise InputError(
            f"regrade {exercise}: not only its rubric is another than the verdicts are by, but "
            f"also that of {named}, or the version of mpilab; undo that, or grade the whole lab "
            "with 'mpilab grade'"
        )


def _again(sandbox, assignment, exercise, submission, run, book, out):
    """Judge, record and show one exercise of one student; ((points before, after), note)."""
    started = time.monotonic()
    keep = out / DIFFERENCES / submission.student
    judged = _judge(assignment, exercise, submission, Referee(sandbox, keep))
    place = [each.exercise for each in run.verdict.exercises].index(exercise.id)
    parts = list(run.verdict.exercises)
    before, parts[place] = parts[place], judged
    kept_apart = run.verdict.sandbox
    if kept_apart != sandbox.description:
        kept_apart = f"{kept_apart}; {exercise.id}: {sandbox.description}"
    verdict = replace(run.verdict, exercises=tuple(parts), sandbox=kept_apart)
    note = _show(out / run.feedback, verdict, exercise.id, judged.answer)
    book.record(verdict, assignment.key(submission), feedback=run.feedback,
                seconds=time.monotonic() - started, assignment=assignment.digest,
                submission=submission.digest)  # fmt: skip
    return (before.awarded, judged.awarded), note


def _judge(assignment, exercise, submission, referee):
    """The ExerciseVerdict, as mpilab.grading.grade.judge gives it."""
    part = assignment.parts[exercise.id]
    try:
        notebook, problems = transplant(assignment.notebook, parse(submission))
    except Ungradable:
        verdict = ungradable(exercise, "The submission could not be read.")
        return replace(verdict, rubric=part)
    for problem in problems:
        if problem.grade_id == exercise.id and problem.ungradable:
            return replace(ungradable(exercise, problem.reason), rubric=part)
    stub = answer_cells(assignment.notebook)[exercise.id]
    source = answer_cells(notebook)[exercise.id]
    verdict = referee.judge(exercise, source, blank=is_blank(source, stub))
    return replace(verdict, answer=source, rubric=part)


def _show(page, verdict, exercise, answer):
    """Put the new verdict on the student's page; '' or why that could not be."""
    if not page.is_file():
        return f"{page}: not there, so the verdict could not be put on it"
    text = pages.rejudged(page.read_text(encoding="utf-8"), verdict, exercise, answer)
    if text is None:
        return f"{page}: made by an older mpilab, so it keeps the verdict that it has"
    write_whole(page, text)
    return ""
