"""Grade a class: every submission of a lab, into one gradebook, a CSV and a page for each student.

Only what is new is graded: a submission, lab or rubric that has changed, or a verdict that was
held up by the machine.
"""

import compileall
import os
import queue
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

import nbformat

from mpilab import __version__, exercises
from mpilab.build import ROOT
from mpilab.errors import InputError, MpilabError, Ungradable
from mpilab.grading import gradebook as books
from mpilab.grading import marks
from mpilab.grading.answers import answer_cells, is_blank, transplant
from mpilab.grading.execute import execute
from mpilab.grading.feedback import render
from mpilab.grading.referee import Referee
from mpilab.grading.release import trusted
from mpilab.grading.sandbox import open_sandbox
from mpilab.grading.submission import find_submissions, parse
from mpilab.judge import ungradable
from mpilab.verdict import SubmissionVerdict


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

    def key(self, submission):
        """What a verdict depends on, as a hash."""
        return books.key(submission.digest, nbformat.writes(self.notebook),
                         self.rubric.digest_text, __version__)  # fmt: skip


@dataclass(frozen=True)
class Report:
    """What `grade` did: verdicts of the whole class, in order, and which students were graded."""

    verdicts: list
    graded: list
    assignment: Assignment
    out: Path
    seconds: float
    sandbox: str

    @property
    def table(self):
        """The mark table as text."""
        return marks.mark_table(self.verdicts, self.assignment.points)


def grade(submissions, lab, out, *, jobs=None, unsafe=False, progress=True, root=ROOT):
    """Grade all submissions of `lab` below `submissions` into the directory `out`; Report.

    Leaves gradebook.sqlite, grades.csv and feedback/STUDENT.html there. `jobs` submissions are
    graded at a time. Raises InputError and SetupError before any work is done; what goes wrong
    with one submission makes that one ungradable, with the reason.
    """
    from tqdm.auto import tqdm

    # A submission is idle now and then, when its lab waits for a deadlock to be noticed.
    jobs = jobs or len(os.sched_getaffinity(0)) + 1
    started = time.monotonic()
    assignment = Assignment.load(lab, root)
    found = find_submissions(submissions, lab)
    # In the sandbox nobody may write: what is compiled now is not compiled for each submission.
    compileall.compile_dir(ROOT / "mpilab", quiet=1)
    sandboxes = queue.SimpleQueue()
    for slot in range(jobs):
        sandbox = open_sandbox(unsafe=unsafe, slot=slot)
        sandboxes.put(sandbox)
    out = Path(out)
    (out / "feedback").mkdir(parents=True, exist_ok=True)
    with books.Gradebook(out / "gradebook.sqlite") as book:
        todo = [s for s in found if _standing(book, assignment, s) is None]
        with (
            ThreadPoolExecutor(jobs) as pool,
            tqdm(
                total=len(found),
                initial=len(found) - len(todo),
                desc=f"grading {lab}",
                unit="submission",
                disable=not progress,
            ) as bar,
        ):
            futures = [pool.submit(_grade_one, assignment, s, sandboxes, book, out) for s in todo]
            try:
                for future in as_completed(futures):
                    future.result()
                    bar.update()
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        students = {submission.student for submission in found}
        verdicts = marks.in_order([v for v in book.verdicts(lab) if v.student in students])
    marks.write_csv(verdicts, out / "grades.csv", assignment.points)
    graded = [submission.student for submission in todo]
    return Report(
        verdicts, graded, assignment, out, time.monotonic() - started, sandbox.description
    )


def _standing(book, assignment, submission):
    """The verdict that still stands, or None: new, changed, or held up by the machine before."""
    verdict = book.find(submission.student, assignment.key(submission))
    if verdict is None or (verdict.status == "ungradable" and not verdict.reason):
        return None
    return verdict


def _grade_one(assignment, submission, sandboxes, book, out):
    started = time.monotonic()
    sandbox = sandboxes.get()
    try:
        verdict, page = judge(assignment, submission, sandbox)
    finally:
        sandboxes.put(sandbox)
    feedback = out / "feedback" / f"{submission.student}.html"
    partial = feedback.with_suffix(".part")
    partial.write_text(page, encoding="utf-8")
    partial.replace(feedback)
    book.record(verdict, assignment.key(submission), feedback=str(feedback.relative_to(out)),
                seconds=time.monotonic() - started)  # fmt: skip


def judge(assignment, submission, sandbox):
    """(SubmissionVerdict, feedback page as HTML) of one submission."""
    rubric = assignment.rubric
    try:
        submitted = parse(submission)
        notebook, problems = transplant(assignment.notebook, submitted)
    except Ungradable as error:
        verdict = SubmissionVerdict(
            submission.student,
            assignment.lab,
            tuple(
                ungradable(exercise, "The submission could not be read.")
                for exercise in rubric.exercises
            ),
            str(error),
            sandbox.description,
        )
        return verdict, render(verdict, lab_title=rubric.title)

    stubs, answers = answer_cells(assignment.notebook), answer_cells(notebook)
    refused = {problem.grade_id: problem.reason for problem in problems if problem.ungradable}
    referee = Referee(sandbox)
    verdicts = []
    for exercise in rubric.exercises:
        if exercise.id in refused:
            verdicts.append(ungradable(exercise, refused[exercise.id]))
            continue
        source = answers[exercise.id]
        verdicts.append(referee.judge(exercise, source, blank=is_blank(source, stubs[exercise.id])))
    verdict = SubmissionVerdict(
        submission.student, assignment.lab, tuple(verdicts), "", sandbox.description
    )
    try:
        execution = execute(notebook, rubric.parameters, sandbox)
        shown, note = execution.notebook, execution.note
    except MpilabError as error:
        shown, note = None, f"Your notebook could not be run: {error}"
    return verdict, render(
        verdict, notebook=shown, answers=answers, lab_title=rubric.title, note=note
    )
