"""Grade a class: every submission of a lab, into one gradebook, a CSV and a page for each student.

Only what is new is graded: a submission, lab or rubric that has changed, or a verdict that was
held up by the machine.
"""

import compileall
import time
from concurrent.futures import as_completed
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import nbformat

from mpilab import __version__, exercises
from mpilab.build import ROOT
from mpilab.errors import InputError, MpilabError, SetupError, Ungradable
from mpilab.grading import gradebook as books
from mpilab.grading import marks, pages
from mpilab.grading.answers import answer_cells, is_blank, transplant
from mpilab.grading.essence import essence
from mpilab.grading.execute import execute
from mpilab.grading.feedback import render
from mpilab.grading.referee import Referee
from mpilab.grading.release import trusted
from mpilab.grading.submission import find_submissions, parse
from mpilab.grading.workers import Pool, Workers
from mpilab.judge import ungradable
from mpilab.simulated import build as simulated
from mpilab.verdict import MANUAL, SubmissionVerdict
from mpilab.whole_file import write_whole

# Of cases that came out differently in simulation and on Open MPI: OUT/differences/STUDENT/…
DIFFERENCES = "differences"


@dataclass(frozen=True)
class Assignment:
    """A lab as the grader holds it: the trusted notebook and the rubric."""

    lab: str
    notebook: object
    rubric: exercises.Rubric

    @classmethod
    def load(cls, lab, root=ROOT):
        """Read labs/source/LAB.py and grading/LAB/rubric.toml; InputError if one is missing or
        they don't fit together."""
        rubric_path = Path(root) / "grading" / lab / "rubric.toml"
        text = rubric_path.read_bytes() if rubric_path.exists() else b""
        rubric = exercises.load(rubric_path, seed=int(books.key(text)[:12], 16))
        notebook = trusted(Path(root) / "labs" / "source" / f"{lab}.py")
        stubs = answer_cells(notebook)
        for exercise in rubric.exercises:
            if exercise.id not in stubs:
                known = ", ".join(stubs)
                raise InputError(
                    f"{rubric_path}: exercise {exercise.id!r} has no answer cell in the lab; "
                    f"it has {known}"
                )
        return cls(lab, notebook, rubric)

    @property
    def points(self):
        """{exercise id: points that can be had}."""
        return {exercise.id: exercise.points for exercise in self.rubric.exercises}

    @cached_property
    def digest(self):
        """What identifies lab, rubric and grader, as a hash: verdicts under different ones cannot
        stand side by side."""
        return books.key(nbformat.writes(self.notebook), self.rubric.digest_text, __version__)

    @cached_property
    def parts(self):
        """{exercise id: what identifies all that a verdict on it depends on, as a hash}: what it
        asks and the stub of its answer, but not the hidden seeds, which change with any word of
        the rubric."""
        stubs = answer_cells(self.notebook)
        return {exercise.id: books.key(essence(exercise), stubs[exercise.id], __version__)
                for exercise in self.rubric.exercises}  # fmt: skip

    def key(self, submission):
        """What a verdict depends on, as a hash."""
        return books.key(submission.digest, nbformat.writes(self.notebook),
                         self.rubric.digest_text, __version__)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """What `grade` did: verdicts of the whole class as they count, in order, which students were
    graded, and notes on pages that the marks of people could not be put on."""

    verdicts: list
    graded: list
    assignment: Assignment
    out: Path
    seconds: float
    sandbox: str
    notes: tuple = ()

    @property
    def table(self):
        """The mark table as text."""
        return marks.mark_table(self.verdicts, self.assignment.points)


def grade(submissions, lab, out, *, jobs=None, unsafe=False, progress=True, root=ROOT,
          share=None):  # fmt: skip
    """Grade all submissions of `lab` below `submissions` into the directory `out`; Report.

    Leaves gradebook.sqlite, grades.csv and feedback/STUDENT.html there. `jobs` parts of the work
    (mpilab.grading.workers) are done at a time. With share=(k, n) only the k-th of n shares is
    graded (see `part_of`), for mpilab.grading.merge to put together. Raises InputError and
    SetupError before any work is done; what goes wrong with one submission makes that one
    ungradable, with the reason.
    """
    from tqdm.auto import tqdm

    started = time.monotonic()
    assignment = Assignment.load(lab, root)
    found = part_of(find_submissions(submissions, lab), share)
    workers = Workers(jobs, unsafe=unsafe)
    prepare(assignment)
    out = Path(out)
    (out / "feedback").mkdir(parents=True, exist_ok=True)
    with books.Gradebook(out / "gradebook.sqlite") as book:
        todo = [s for s in found if _standing(book, assignment, s) is None]
        with (
            # As many submissions are under way as there are parts done at a time: the next one's
            # notebook starts its cluster while the referee is at work on the last one's answers.
            Pool(workers.jobs) as pool,
            workers,
            tqdm(
                total=len(found),
                initial=len(found) - len(todo),
                desc=f"grading {lab}",
                unit="submission",
                disable=not progress,
            ) as bar,
        ):
            futures = [pool.submit(_grade_one, assignment, s, workers, book, out) for s in todo]
            for future in as_completed(futures):
                future.result()
                bar.update()
        book.list_class(lab, {submission.student: "" for submission in found})
        verdicts, notes = pages.refresh(book, lab, out, assignment.points)
    graded = [submission.student for submission in todo]
    return Report(
        verdicts,
        graded,
        assignment,
        out,
        time.monotonic() - started,
        workers.description,
        tuple(notes),
    )


def prepare(assignment):
    """Build what judging needs, before anything runs in a sandbox."""
    _prepare_simulation(assignment)
    # In the sandbox nobody may write: what is compiled now is not compiled for each submission.
    compileall.compile_dir(ROOT / "mpilab", quiet=1)


def _prepare_simulation(assignment):
    """Build what simulations need; SetupError where the rubric needs them and there is none."""
    if simulated.available():
        simulated.kernels()
    elif any(exercise.needs_simulation for exercise in assignment.rubric.exercises):
        simulated.tool("smpirun")


def part_of(submissions, share):
    """The k-th of n shares of a list, for share=(k, n) with k from 1 to n: k, k + n, k + 2n, …; all
    of it for None. Raises InputError for other numbers."""
    if share is None:
        return submissions
    part, parts = share
    if not 1 <= part <= parts:
        raise InputError(
            f"share {part}/{parts}: there is none; write 1/{max(parts, 1)} to "
            f"{max(parts, 1)}/{max(parts, 1)}"
        )
    return submissions[part - 1 :: parts]


def _standing(book, assignment, submission):
    """The verdict that still stands, or None: new, changed, held up by the machine before, or given
    by an older mpilab that did not keep the texts which a person has to read."""
    verdict = book.find(submission.student, assignment.key(submission))
    if verdict is None or (verdict.status == "ungradable" and not verdict.reason):
        return None
    if any(each.answer is None and MANUAL in each.outcomes() for each in verdict.exercises):
        return None
    return verdict


def _grade_one(assignment, submission, workers, book, out):
    started = time.monotonic()
    keep = out / DIFFERENCES / submission.student
    verdict, page = judge(assignment, submission, workers, keep=keep)
    feedback = out / "feedback" / f"{submission.student}.html"
    write_whole(feedback, page)
    book.record(verdict, assignment.key(submission), feedback=str(feedback.relative_to(out)),
                seconds=time.monotonic() - started, assignment=assignment.digest,
                submission=submission.digest)  # fmt: skip


def _judged(sandbox, keep, exercise, source, blank):
    """The referee's verdict. What the referee fails over, one answer made it fail over: nobody
    else's marks wait for that, and nobody loses points by it."""
    try:
        return Referee(sandbox, keep).judge(exercise, source, blank=blank)
    except SetupError:
        raise
    except Exception as error:
        return ungradable(exercise, f"the grader failed: {type(error).__name__}: {error}")


def judge(assignment, submission, workers, keep=None):
    """(SubmissionVerdict, feedback page as HTML) of one submission, whose parts Workers do.

    keep   a directory for what the referee keeps (mpilab.grading.referee.Referee).
    """
    rubric = assignment.rubric
    try:
        submitted = parse(submission)
        notebook, problems = transplant(assignment.notebook, submitted)
    except Ungradable as error:
        verdict = SubmissionVerdict(
            submission.student,
            assignment.lab,
            tuple(
                replace(
                    ungradable(exercise, "The submission could not be read."),
                    rubric=assignment.parts[exercise.id],
                )
                for exercise in rubric.exercises
            ),
            str(error),
            workers.description,
        )
        return verdict, render(verdict, lab_title=rubric.title)

    stubs, answers = answer_cells(assignment.notebook), answer_cells(notebook)
    refused = {problem.grade_id: problem.reason for problem in problems if problem.ungradable}
    shown = workers.submit(_shown, notebook, rubric.parameters)  # first: it takes longest
    judged = {}
    for exercise in rubric.exercises:
        if exercise.id not in refused:
            source = answers[exercise.id]
            blank = is_blank(source, stubs[exercise.id])
            judged[exercise.id] = workers.submit(_judged, keep, exercise, source, blank)
    verdicts = [
        replace(judged[exercise.id].result(), answer=answers[exercise.id])
        if exercise.id in judged
        else ungradable(exercise, refused[exercise.id])
        for exercise in rubric.exercises
    ]
    verdict = SubmissionVerdict(
        submission.student,
        assignment.lab,
        tuple(replace(each, rubric=assignment.parts[each.exercise]) for each in verdicts),
        "",
        workers.description,
    )
    executed, note = shown.result()
    return verdict, render(
        verdict, notebook=executed, answers=answers, lab_title=rubric.title, note=note
    )


def _shown(sandbox, notebook, parameters):
    """(executed notebook or None, note): what a notebook shows when it is run."""
    try:
        execution = execute(notebook, parameters, sandbox)
        return execution.notebook, execution.note
    except MpilabError as error:
        return None, f"Your notebook could not be run: {error}"
