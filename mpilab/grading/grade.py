"""Grade a class: all submissions for a lab, into one gradebook, a CSV file and feedback pages.

A submission is graded if it is new, if it, the lab or the rubric has changed, or if the machine
made its last verdict ungradable.
"""

import compileall
import json
import os
import time
from copy import deepcopy
from dataclasses import MISSING, dataclass, fields, is_dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import nbformat
from nbformat import NotebookNode
from tqdm.auto import tqdm

from mpilab import __version__
from mpilab.cases.case import Case
from mpilab.errors import InputError, SetupError, Ungradable
from mpilab.grading import gradebook, marks
from mpilab.grading.answers import answer_cells, exercises_only, is_blank, transplant
from mpilab.grading.decisions import Effective
from mpilab.grading.feedback import render
from mpilab.grading.referee import LOG, NOTEBOOK_RESERVE_S, Referee, kernel_reserve
from mpilab.grading.release import trusted
from mpilab.grading.run import PACE, Limits
from mpilab.grading.sandbox import Outcome, Sandbox
from mpilab.grading.submission import (
    Submission,
    class_of,
    keep_table,
    parse,
    read,
    with_outputs,
)
from mpilab.grading.workers import Pool, Workers, run_inside
from mpilab.hosts.places import as_text
from mpilab.judging import agreement
from mpilab.judging.judge import ungradable
from mpilab.judging.rubric import KERNEL, TEXT, Exercise, Rubric
from mpilab.judging.rubric import load as load_rubric
from mpilab.judging.verdict import (
    MANUAL,
    NO_SIMGRID,
    NOT_HANDED_IN,
    NOT_ISOLATED,
    UNGRADABLE,
    ExerciseVerdict,
    SubmissionVerdict,
)
from mpilab.kernels import jail
from mpilab.kernels.build import KERNELS, need
from mpilab.kernels.simgrid import how_to_install, kernels, version
from mpilab.util import door, faults, kit
from mpilab.util.files import atomic_write
from mpilab.util.kit import ROOT

CELL_SECONDS = 45
LIMITS = Limits(
    wall_seconds=180,
    processes=400,
    output_bytes=24 << 20,
    file_bytes=32 << 20,
    memory=3 << 30,
)
EXECUTED = "executed.ipynb"
# The last path shows which cores are close to each other, and reveals nothing about users.
READABLE = (
    kit.PACKAGES / "mpilab",
    *(kit.ROOT / name for name in ("src_c", "data", "hostfiles", "labs/checks")),
    kit.BUILD,
    Path("/sys/devices/system/cpu"),
)

GRADER_FAILED = (
    "the grader failed. Your instructor has been informed; your answer loses no points for this."
)
INCOMPLETE = (
    "Parts of this page could not be generated. Your instructor has been informed; the points are "
    "correct."
)

# Files of cases on which simulation and Open MPI disagree: OUT/differences/STUDENT/…
DIFFERENCES = "differences"


# Run a submission's notebook with papermill in the sandbox. Its output is shown in the feedback and
# does not affect the points.


@dataclass(frozen=True)
class Execution:
    """The executed notebook (None if it could not be retrieved), and a note on what went wrong."""

    notebook: NotebookNode | None
    note: str = ""


def execute(
    notebook: NotebookNode, parameters: dict[str, Any], sandbox: Sandbox, usual: float
) -> Execution:
    """Run a trusted notebook with a student's answers in it; returns an Execution.

    usual   the seconds of processor time that it takes with right answers.

    Never raises for what the answers do; raises Ungradable if the sandbox itself fails.
    """
    notebook = deepcopy(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            # A failing answer must not hide the output of the cells after it.
            tags = cell.metadata.setdefault("tags", [])
            tags.append("raises-exception")
    job = {"parameters": parameters, "cell_seconds": CELL_SECONDS}
    outcome = run_inside(
        sandbox,
        "execute",
        job,
        files={"notebook.ipynb": nbformat.writes(notebook).encode()},
        readable=READABLE,
        ranks=4,
        limits=replace(LIMITS, total_cpu_seconds=(usual + NOTEBOOK_RESERVE_S) * PACE.factor),
        collect=[EXECUTED],
    )
    return Execution(_notebook(outcome), _note(outcome))


def _notebook(outcome: Outcome) -> NotebookNode | None:
    """The executed notebook, possibly forged by a cell; None if it is missing or incomplete."""
    try:
        return with_outputs(read(outcome.files[EXECUTED], EXECUTED))
    except (KeyError, Ungradable):
        return None


def _note(outcome: Outcome) -> str:
    if outcome.reason:
        return f"Your notebook was stopped: it exceeded the limit on {outcome.reason}."
    if outcome.returncode != 0:
        # The error output may name paths of the grader.
        faults.keep(outcome.stderr.decode(errors="replace"), "running a notebook in the sandbox")
        return "Your notebook did not finish: its kernel may have died."
    return ""


# Fingerprints of exercises: two that ask the same have the same fingerprint.


def fingerprint(exercise: Exercise) -> str:
    """The fingerprint of an Exercise: its text without the hidden seeds of its cases.

    The seeds change with every edit of the rubric, even in another exercise. Default values are
    left out, so that a new field in rubrics changes no fingerprint.
    """
    return json.dumps(_plain(exercise), sort_keys=True)


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        every = ((each, getattr(value, each.name)) for each in fields(value))
        said = {
            each.name: own for each, own in every if each.default is MISSING or own != each.default
        }
        if isinstance(value, Case):
            said.pop("seed", None)
            if value.places or value.platform:
                # The places behind the name, because a cluster's description may change.
                said["places"] = as_text(value.levels.places)
        return {name: _plain(each) for name, each in said.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {str(name): _plain(each) for name, each in value.items()}
    return value if isinstance(value, (str, int, float, bool)) or value is None else repr(value)


@dataclass(frozen=True)
class Assignment:
    """A lab to grade: the trusted notebook, the rubric, and the tools to judge with.

    simgrid, jail   as in SubmissionVerdict.
    """

    lab: str
    notebook: NotebookNode
    rubric: Rubric
    simgrid: str = ""
    jail: str = ""

    @classmethod
    def load(cls, lab: str, root: str | Path = ROOT) -> Self:
        """Read labs/source/LAB.py and grading/LAB/rubric.toml.

        Raises InputError if one is missing or they do not match.
        """
        rubric_path = Path(root) / "grading" / lab / "rubric.toml"
        text = rubric_path.read_bytes() if rubric_path.exists() else b""
        rubric = load_rubric(rubric_path, seed=int(gradebook.key(text)[:12], 16))
        notebook = trusted(Path(root) / "labs" / "source" / f"{lab}.py")
        stubs = answer_cells(notebook)
        for exercise in rubric.exercises:
            if exercise.id not in stubs:
                known = ", ".join(stubs)
                raise InputError(
                    f"{rubric_path}: exercise {exercise.id!r} has no answer cell in the lab; "
                    f"it has {known}"
                )
        simulates = any(map(agreement.is_simulated, rubric.exercises))
        simgrid = (version() or NO_SIMGRID) if simulates else ""
        isolation = ""
        if any(exercise.kind == KERNEL for exercise in rubric.exercises):
            isolation = NOT_ISOLATED if jail.unavailable() else jail.wasm2c_version()
        return cls(lab, notebook, rubric, simgrid, isolation)

    @property
    def points(self) -> dict[str, float]:
        """{exercise id: maximum points}."""
        return {exercise.id: exercise.points for exercise in self.rubric.exercises}

    @cached_property
    def digest(self) -> str:
        """A hash of lab, rubric and grader; verdicts with different ones must not be combined."""
        return gradebook.key(*self._everything)

    @cached_property
    def parts(self) -> dict[str, str]:
        """{exercise id: hash of everything but the answer that a verdict on it depends on}.

        This includes what the exercise asks and the stub of its answer, but not the hidden seeds,
        which change with every edit of the rubric.
        """
        stubs = answer_cells(self.notebook)
        return {
            exercise.id: gradebook.key(
                fingerprint(exercise),
                stubs[exercise.id],
                __version__,
                *[self.simgrid] * agreement.is_simulated(exercise),
                *[self.jail] * (exercise.kind == KERNEL),
            )
            for exercise in self.rubric.exercises
        }

    def key(self, submission: Submission) -> str:
        """A hash of everything that a verdict on `submission` depends on."""
        return gradebook.key(submission.digest, *self._everything)

    @cached_property
    def _everything(self) -> tuple[str, ...]:
        """Everything but the submission that a verdict depends on, as texts."""
        told = (nbformat.writes(self.notebook), self.rubric.digest_text, __version__)
        return (*told, *filter(None, (self.simgrid, self.jail)))


@dataclass(frozen=True)
class Report:
    """The result of `grade`.

    verdicts   Effectives of the whole class, in the order of the CSV.
    graded     the students who were graded this time.
    notes      for the instructor: pages that could not be updated, missing SimGrid, logs.
    """

    verdicts: list[Effective]
    graded: list[str]
    assignment: Assignment
    out: Path
    seconds: float
    sandbox: str
    notes: tuple[str, ...] = ()

    @property
    def table(self) -> str:
        """The mark table as text."""
        return marks.mark_table(self.verdicts, self.assignment.points)


def grade(
    submissions: str | Path,
    lab: str,
    out: str | Path,
    *,
    jobs: int | None = None,
    unsafe: bool = False,
    progress: bool = True,
    root: str | Path = ROOT,
    share: tuple[int, int] | None = None,
    student: str = "",
    roster: str | Path | None = None,
) -> Report:
    """Grade all submissions for `lab` in `submissions` into the folder `out`; returns a Report.

    `submissions`, `student` and `roster` are those of mpilab.grading.submission.class_of.

    Writes gradebook.sqlite, grades.csv and feedback/STUDENT.html there. `jobs` sandboxed jobs
    (see mpilab.grading.workers) run at a time. With share=(k, n), only the k-th of n shares is
    graded (see `part_of`); mpilab.grading.regrade.merge combines them. Raises InputError and
    SetupError before any work is done; a problem with one submission makes only that one
    ungradable, with the reason. If the grader itself fails, the student is told only that, and the
    notes name the log.
    """
    started = time.monotonic()
    logged = len(faults.recorded())
    assignment = Assignment.load(lab, root)
    found = part_of(class_of(submissions, lab, student, roster), share)
    workers = Workers(jobs, unsafe=unsafe)
    prepare(assignment)
    out = Path(out)
    (out / "feedback").mkdir(parents=True, exist_ok=True)
    with gradebook.Gradebook(out / "gradebook.sqlite") as book:
        todo = [s for s in found if _standing(book, assignment, s) is None]
        with (
            # As many submissions are in progress as jobs run at a time: the next notebook starts
            # its cluster while the referee judges the answers of the submission before it.
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
            with door.deferred():  # an interrupt while a thread starts may leave a lock held
                futures = [pool.submit(_grade_one, assignment, s, workers, book, out) for s in todo]
            for future in door.as_completed(futures):
                future.result()
                bar.update()
        book.list_class(lab, {submission.student: "" for submission in found})
        keep_table(submissions, out)
        verdicts, notes = marks.refresh(book, lab, out, assignment.points)
    graded = [submission.student for submission in todo]
    return Report(
        verdicts,
        graded,
        assignment,
        out,
        time.monotonic() - started,
        workers.description,
        (*notes, *tool_notes(assignment), *map(str, faults.recorded()[logged:])),
    )


def prepare(assignment: Assignment) -> None:
    """Build what judging needs before anything runs in a sandbox."""
    need(KERNELS)
    if assignment.simgrid not in ("", NO_SIMGRID):
        kernels()
    if assignment.jail not in ("", NOT_ISOLATED):
        jail.prepare(simulated=assignment.simgrid not in ("", NO_SIMGRID))
    # The sandbox cannot write bytecode, so compile it once here instead of in each submission. A
    # kit that is not writable is used as it is.
    if os.access(kit.PACKAGES / "mpilab", os.W_OK):
        compileall.compile_dir(kit.PACKAGES / "mpilab", quiet=1)


def tool_notes(assignment: Assignment) -> list[str]:
    """Sentences for the instructor: which tools this machine lacks, and what to do."""
    notes = []
    if assignment.simgrid == NO_SIMGRID:
        notes.append(
            "SimGrid is not installed on this machine: marks are based on Open MPI runs alone, and "
            f"items that need a simulated cluster are ungradable. Install it ({how_to_install()}), "
            "then run 'mpilab grade' again, which judges them again."
        )
    if assignment.jail == NOT_ISOLATED:
        notes.append(
            "Not isolated: the C answers ran in the same process as what records and checks them, "
            f"because this machine cannot build for the jail ({jail.unavailable()}). Install what "
            f"it needs ({jail.how_to_install()}), then run 'mpilab grade' again."
        )
    return notes


def part_of(submissions: list[Submission], share: tuple[int, int] | None) -> list[Submission]:
    """The k-th of n shares of a list, elements k, k + n, k + 2n, …, for share=(k, n); all for None.

    Raises InputError unless k is from 1 to n.
    """
    if share is None:
        return submissions
    part, parts = share
    if not 1 <= part <= parts:
        raise InputError(
            f"share {part}/{parts}: no such share; write 1/{max(parts, 1)} to "
            f"{max(parts, 1)}/{max(parts, 1)}"
        )
    return submissions[part - 1 :: parts]


def _standing(
    book: gradebook.Gradebook, assignment: Assignment, submission: Submission
) -> SubmissionVerdict | None:
    """The verdict that is still valid, or None if the submission must be graded.

    That is the case if it is new or changed, if the machine made its verdict ungradable, or if an
    older mpilab did not keep the texts that are graded manually.
    """
    verdict = book.find(submission.student, assignment.key(submission))
    if verdict is None or (not verdict.reason and _is_held_up(verdict)):
        return None
    if any(each.answer is None and MANUAL in each.outcomes() for each in verdict.exercises):
        return None
    return verdict


def _is_held_up(verdict: SubmissionVerdict) -> bool:
    """True if an item is ungradable that may be judged next time.

    Items that need a missing SimGrid do not count: once it is installed, the key differs anyway.
    """
    return any(
        item.outcome == UNGRADABLE and item.reason != agreement.NO_SIMULATION
        for exercise in verdict.exercises
        for item in exercise.items
    )


def _grade_one(
    assignment: Assignment,
    submission: Submission,
    workers: Workers,
    book: gradebook.Gradebook,
    out: Path,
) -> None:
    started = time.monotonic()
    keep = out / DIFFERENCES / submission.student
    verdict, page = _judged_whole(assignment, submission, workers, keep)
    if workers.canceled:  # then the verdict may merely reflect the interrupt
        return
    feedback = out / "feedback" / f"{submission.student}.html"
    atomic_write(feedback, page)
    book.record(
        verdict,
        assignment.key(submission),
        feedback=str(feedback.relative_to(out)),
        seconds=time.monotonic() - started,
        assignment=assignment.digest,
        submission=submission.digest,
    )


def _judged_whole(
    assignment: Assignment, submission: Submission, workers: Workers, keep: Path
) -> tuple[SubmissionVerdict, str]:
    """Like `judge`; if the grader fails on the submission as a whole, the submission is
    ungradable."""
    try:
        return judge(assignment, submission, workers, keep=keep)
    except SetupError:
        raise
    except Exception as error:
        if workers.canceled:
            raise
        log = faults.record(error, f"grading {submission.student}")
        parts = tuple(
            replace(grader_failed(exercise, log), rubric=assignment.parts[exercise.id])
            for exercise in assignment.rubric.exercises
        )
        verdict = SubmissionVerdict(
            submission.student,
            assignment.lab,
            parts,
            "",
            workers.description,
            assignment.simgrid,
            assignment.jail,
        )
        return verdict, page_of(verdict, lab_title=assignment.rubric.title)


def verdict_on(
    sandbox: Sandbox,
    rubric: Rubric,
    student: str,
    keep: Path | None,
    exercise: Exercise,
    source: str,
    blank: bool,
) -> ExerciseVerdict:
    """The referee's verdict on one answer to an exercise of `rubric`.

    If the referee fails, only this answer is ungradable: no other marks are delayed, and no student
    loses points.
    """
    try:
        referee = Referee(sandbox, keep, kernel_reserve(rubric.exercises))
        return referee.judge(exercise, source, blank=blank)
    except SetupError:
        raise
    except Exception as error:
        if sandbox.canceled:
            raise
        return grader_failed(exercise, faults.record(error, f"judging {exercise.id} of {student}"))


def grader_failed(exercise: Exercise, log: Path | None) -> ExerciseVerdict:
    """The verdict if the grader failed: it tells the student, and names the instructor's log."""
    return ungradable(exercise, GRADER_FAILED, {LOG: str(log or "the log could not be written")})


def page_of(verdict: SubmissionVerdict, **more: Any) -> str:
    """The feedback page of a verdict (see `render`), as complete as possible.

    If a picture, listing or notebook cannot be shown, the rest of the page still appears.
    """
    try:
        return render(verdict, **more)
    except Exception as error:
        faults.record(error, f"making the page of {verdict.student}")
    bare = replace(
        verdict,
        exercises=tuple(
            replace(
                each,
                items=tuple(replace(item, evidence={}, diagnoses=()) for item in each.items),
            )
            for each in verdict.exercises
        ),
    )
    return render(bare, lab_title=more.get("lab_title", ""), note=INCOMPLETE)


def judge(
    assignment: Assignment, submission: Submission, workers: Workers, keep: Path | None = None
) -> tuple[SubmissionVerdict, str]:
    """Judge one submission with Workers; returns (SubmissionVerdict, feedback page as HTML).

    keep   a folder for the files that mpilab.grading.referee.Referee keeps.
    """
    rubric = assignment.rubric
    try:
        submitted = parse(submission)
        notebook, problems = transplant(assignment.notebook, submitted)
    except Ungradable as error:
        is_absent = submission.problem == NOT_HANDED_IN
        unread = NOT_HANDED_IN if is_absent else "The submission could not be read."
        verdict = SubmissionVerdict(
            submission.student,
            assignment.lab,
            tuple(
                replace(
                    ungradable(exercise, unread),
                    rubric=assignment.parts[exercise.id],
                )
                for exercise in rubric.exercises
            ),
            error.public,
            workers.description,
            assignment.simgrid,
            assignment.jail,
        )
        return verdict, page_of(verdict, lab_title=rubric.title)

    stubs, answers = answer_cells(assignment.notebook), answer_cells(notebook)
    refused = {problem.grade_id: problem.reason for problem in problems if problem.ungradable}
    blank = {name: is_blank(answers[name], stub) for name, stub in stubs.items()}
    shown = None
    if any(each.kind != TEXT and not blank[each.id] for each in rubric.exercises):
        # First: it takes longest.
        shown = workers.submit(_shown, submission.student, exercises_only(notebook), rubric)
    judged = {}
    for exercise in rubric.exercises:
        if exercise.id not in refused:
            source = answers[exercise.id]
            judged[exercise.id] = workers.submit(
                verdict_on, rubric, submission.student, keep, exercise, source, blank[exercise.id]
            )
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
        assignment.simgrid,
        assignment.jail,
    )
    executed, note = shown.result() if shown else (None, "")
    return verdict, page_of(
        verdict, notebook=executed, answers=answers, lab_title=rubric.title, note=note
    )


def _shown(
    sandbox: Sandbox, student: str, notebook: NotebookNode, rubric: Rubric
) -> tuple[NotebookNode | None, str]:
    """Run a notebook for its output; returns (executed notebook or None, note)."""
    try:
        execution = execute(notebook, rubric.parameters, sandbox, rubric.notebook_seconds)
        return execution.notebook, execution.note
    except Ungradable as error:
        if error.details:
            faults.keep(str(error), f"running the notebook of {student}")
        return None, f"Your notebook could not be run: {error.public}"
    except Exception as error:
        if sandbox.canceled:
            raise
        faults.record(error, f"running the notebook of {student}")
        return None, "Your notebook could not be run. Your instructor has been informed."
