"""Change the gradebook of a graded class: merge shares, or regrade one exercise.

`merge` turns a class that was graded in shares into one gradebook, one CSV and one folder of
feedback, as if it had been graded at once. A student whose share was not graded completely is
listed as ungradable, with the reason. Merging twice changes nothing.

`regrade` judges one exercise again for a whole class, after its part of the rubric has changed.
The verdicts on the other exercises are copied, word for word, into a run that is recorded with the
current rubric. This is allowed only if that rubric would give the same verdicts: on the same file,
by the same grader, and by unchanged parts of the rubric. (The hidden seeds of all exercises change
with every edit of a rubric; a verdict with older seeds stays valid.)
"""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tqdm.auto import tqdm

from mpilab.errors import InputError, Ungradable
from mpilab.grading import marks
from mpilab.grading.answers import answer_cells, is_blank, transplant
from mpilab.grading.decisions import Decision, Effective, Run
from mpilab.grading.grade import DIFFERENCES, Assignment, prepare, tool_notes, verdict_on
from mpilab.grading.gradebook import Gradebook
from mpilab.grading.sandbox import Sandbox
from mpilab.grading.submission import (
    Submission,
    class_of,
    keep_table,
    parse,
)
from mpilab.grading.workers import Workers
from mpilab.judging.judge import ungradable
from mpilab.judging.rubric import Exercise
from mpilab.judging.verdict import (
    NOT_HANDED_IN,
    ExerciseVerdict,
    SubmissionVerdict,
    isolated_by,
    simulated_by,
)
from mpilab.util import door, faults
from mpilab.util.files import atomic_write
from mpilab.util.kit import ROOT

GRADEBOOK = marks.GRADEBOOK


# Merge gradebooks.


@dataclass(frozen=True)
class Merged:
    """The result of `merge`.

    verdicts   of the whole class, in the order of the CSV
    added      number of runs that the merged gradebook did not have
    missing    students without a verdict on their submission
    notes      what was wrong with the parts, in words
    points     {exercise: maximum points}
    """

    out: Path
    lab: str
    verdicts: list[Effective]
    added: int
    missing: list[str]
    notes: list[str]
    points: dict[str, float]

    @property
    def table(self) -> str:
        """The mark table as text."""
        return marks.mark_table(self.verdicts, self.points)


@dataclass(frozen=True)
class _Part:
    """A folder with a gradebook: its runs, oldest first, and its manual decisions."""

    folder: Path
    runs: list[Run]
    decisions: list[Decision]

    def newest(self, lab: str) -> dict[str, Run]:
        """{student: the run of this lab that counts}."""
        return {run.verdict.student: run for run in self.of(lab)[0]}

    def of(self, lab: str) -> tuple[list[Run], list[Decision]]:
        """(runs, decisions) of this lab."""
        return (
            [run for run in self.runs if run.verdict.lab == lab],
            [decision for decision in self.decisions if decision.lab == lab],
        )


def merge(
    out: str | Path,
    folders: Sequence[str | Path],
    *,
    submissions: str | Path | None = None,
    lab: str | None = None,
    roster: str | Path | None = None,
    root: str | Path = ROOT,
) -> Merged:
    """Merge the gradebooks that `grade` left in `folders` into the folder `out`; returns a Merged.

    submissions   what was graded, as for `grade`: the CSV then lists every student, and a student
                  without a verdict on this very submission is ungradable.
    lab           the lab's name; optional if the gradebooks hold only one lab.
    roster        as for `grade`.

    All shares must be graded with the same SimGrid, which need not be on this machine.

    Raises InputError if the gradebooks hold verdicts on different labs, or by different rubrics or
    versions of SimGrid, and, without `submissions`, if a folder has no gradebook.
    """
    out = Path(out)
    parts, notes = _read(out, folders, complain=submissions is None)
    lab = lab or _only_lab(parts, submissions)
    tools = _only_tools(parts, lab)
    assignment = None if submissions is None else Assignment.load(lab, root)
    if assignment:
        assignment = replace(
            assignment,
            simgrid=tools["simgrid"] or assignment.simgrid,
            jail=tools["jail"] or assignment.jail,
        )
    _check_assignments(parts, lab, assignment)
    (out / "feedback").mkdir(parents=True, exist_ok=True)
    for part in parts:
        keep_table(part.folder, out)
    students = {student for part in parts for student in part.newest(lab)}
    missing: list[str] = []
    with Gradebook(out / GRADEBOOK) as book:
        # Copy the pages first, so that a complete gradebook has all of its pages.
        notes += _copy_feedback(out, parts, lab, book)
        added = sum(book.absorb(*part.of(lab)) for part in parts)
        if submissions is not None and assignment is not None:
            found = class_of(submissions, lab, roster=roster)
            students = {submission.student for submission in found}
            missing = [s.student for s in found if not book.find(s.student, assignment.key(s))]
        book.list_class(lab, {**dict.fromkeys(students, ""), **_reasons(missing, len(folders))})
        points = assignment.points if assignment else None
        verdicts, more = marks.refresh(book, lab, out, points)
        notes += more
    points = points or marks.points_of(verdicts)
    return Merged(out, lab, verdicts, added, missing, notes, points)


def _read(
    out: Path, folders: Iterable[str | Path], complain: bool
) -> tuple[list[_Part], list[str]]:
    """([_Part], notes); with `complain`, a folder without a gradebook is an error, not a note."""
    parts, notes = [], []
    for folder in map(Path, folders):
        if folder.resolve() == out.resolve():
            raise InputError(f"{folder}: cannot be merged into itself; name another folder for OUT")
        if not (folder / GRADEBOOK).is_file():
            if complain:
                raise InputError(
                    f"{folder}: holds no {GRADEBOOK}; name folders that 'mpilab grade --out' has "
                    "filled, or add --submissions to list missing students as ungradable"
                )
            notes.append(f"{folder}: no {GRADEBOOK}; its job did not finish")
            continue
        with Gradebook(folder / GRADEBOOK) as book:
            runs = book.runs()
            labs = dict.fromkeys(run.verdict.lab for run in runs)
            decisions = [decision for lab in labs for decision in book.decisions(lab)]
            parts.append(_Part(folder, runs, decisions))
    return parts, notes


def _only_lab(parts: Sequence[_Part], submissions: str | Path | None) -> str:
    """The only lab in the gradebooks; InputError if there are none or several."""
    labs = {run.verdict.lab: part.folder for part in parts for run in part.runs}
    if len(labs) == 1:
        return next(iter(labs))
    if not labs:
        raise InputError("merge: no verdict in any gradebook, so the lab is unknown; add --lab LAB")
    listed = ", ".join(f"{lab} in {folder}" for lab, folder in sorted(labs.items()))
    raise InputError(f"merge: verdicts on several labs ({listed}); choose one with --lab LAB")


# The fields of a verdict that name the tools it was judged with, and their values in words.
_TOOLS = {"simgrid": simulated_by, "jail": isolated_by}


def _only_tools(parts: Sequence[_Part], lab: str) -> dict[str, str]:
    """The versions of the tools behind all verdicts, '' for those that no gradebook names.

    Raises InputError if one has several: the marks of all shares must come about in the same way.
    """
    tools: dict[str, str] = {}
    for field, words in _TOOLS.items():
        seen: dict[str, str] = {}
        for part in parts:
            for student, run in part.newest(lab).items():
                if version := getattr(run.verdict, field):
                    seen.setdefault(version, f"{student} in {part.folder}")
        if len(seen) > 1:
            told = " and ".join(f"{who} {words(what)}" for what, who in list(seen.items())[:2])
            raise InputError(
                f"merge: {told}: all shares of a class must be judged with the same tools; grade "
                "one of them again, into its folder, on the machine of the other"
            )
        tools[field] = next(iter(seen), "")
    return tools


def _check_assignments(parts: Sequence[_Part], lab: str, assignment: Assignment | None) -> None:
    """Raise InputError if one column would hold marks of different rubrics or labs."""
    seen = {} if assignment is None else {assignment.digest: f"{lab} in its current version"}
    for part in parts:
        newest = part.newest(lab)
        if part.runs and not newest:
            other = part.runs[-1].verdict.lab
            raise InputError(
                f"{part.folder}: holds verdicts on {other}, none on {lab}; leave it "
                f"out, or grade {lab} into it"
            )
        for student, run in newest.items():
            seen.setdefault(run.assignment, f"{student} in {part.folder}")
    if len(seen) > 1:
        (one, first), (other, second) = list(seen.items())[:2]
        raise InputError(
            f"merge: {first} and {second} were not graded by the same lab, rubric and version of "
            f"mpilab ({one[:8] or 'unknown'} and {other[:8] or 'unknown'}); grade the older share "
            "again into its folder: unchanged results are reused"
        )


def _copy_feedback(out: Path, parts: Sequence[_Part], lab: str, book: Gradebook) -> list[str]:
    """Copy each student's newest page; returns notes on missing pages."""
    newest: dict[str, tuple[str, Run, Path | None]] = {}
    for run in book.runs():
        if run.verdict.lab == lab:
            newest[run.verdict.student] = (run.recorded, run, None)
    for part in parts:
        for student, run in part.newest(lab).items():
            if student not in newest or newest[student][0] < run.recorded:
                newest[student] = (run.recorded, run, part.folder)
    notes = []
    for student, (_, run, folder) in newest.items():
        if folder is None or not run.feedback:
            continue
        page, target = folder / run.feedback, out / "feedback" / f"{student}.html"
        if not page.is_file():
            notes.append(f"{page}: not there, although {student} was graded")
            continue
        atomic_write(target, page.read_bytes())
    return notes


def _reasons(missing: Iterable[str], shares: int) -> dict[str, str]:
    """{student: why there is no verdict on the submission}."""
    reason = (
        f"Not graded: none of the {shares} merged gradebooks has a verdict on this submission; its "
        "job failed, ran out of time, or saw an older file. Grade again: finished work is kept."
    )
    return dict.fromkeys(missing, reason)


# Regrade one exercise.


@dataclass(frozen=True)
class Regraded:
    """The result of `regrade`.

    verdicts  Effectives of the whole class, in the order of the CSV.
    changes   {student: (points of the exercise before, after)} for the students judged again.
    left      {student: why not} for the students who must be graded as a whole first.
    notes     for the instructor: pages that could not be updated, missing SimGrid, logs.
    """

    verdicts: list[Effective]
    changes: dict[str, tuple[float | None, float | None]]
    left: dict[str, str]
    notes: list[str]
    points: dict[str, float]

    @property
    def table(self) -> str:
        """The mark table as text."""
        return marks.mark_table(self.verdicts, self.points)


def regrade(
    out: str | Path,
    submissions: str | Path,
    lab: str,
    exercise: str,
    *,
    again: bool = False,
    jobs: int | None = None,
    unsafe: bool = False,
    progress: bool = True,
    root: str | Path = ROOT,
) -> Regraded:
    """Judge `exercise` again for all `submissions` with a verdict in the gradebook in `out`.

    Skips students with a verdict by the current rubric unless `again`, so that it can be
    interrupted and restarted. Raises InputError, before judging anything, if the rubric of another
    exercise has changed as well, and names it.
    """
    out, assignment = Path(out), Assignment.load(lab, root)
    logged = len(faults.recorded())
    asked = assignment.rubric.exercise(exercise)
    found = [s for s in class_of(submissions, lab) if s.problem != NOT_HANDED_IN]
    with marks.opened(out, lab) as book:
        runs = {run.verdict.student: run for run in book.newest(lab)}
        left = _left(found, runs)
        able = [s for s in found if s.student not in left]
        _refuse_other_changes(assignment, exercise, [runs[s.student] for s in able])
        todo = [s for s in able if again or runs[s.student].key != assignment.key(s)]
        changes, notes = {}, []
        with tqdm(
            total=len(able),
            initial=len(able) - len(todo),
            desc=f"judging {exercise}",
            unit="submission",
            disable=not progress,
        ) as bar:
            if todo:
                prepare(assignment)
                with Workers(jobs, unsafe=unsafe) as workers:
                    with door.deferred():  # as in `grade`
                        futures = {
                            workers.submit(
                                _again, assignment, asked, s, runs[s.student], book, out
                            ): s
                            for s in todo
                        }
                    for future in door.as_completed(futures):
                        student = futures[future].student
                        changes[student], note = future.result()
                        notes += [note] * bool(note)
                        bar.update()
        verdicts, more = marks.refresh(book, lab, out, assignment.points)
        notes += [*more, *(tool_notes(assignment) if changes else ())]
        notes += map(str, faults.recorded()[logged:])
    return Regraded(verdicts, dict(sorted(changes.items())), left, notes, assignment.points)


def _left(found: Iterable[Submission], runs: Mapping[str, Run]) -> dict[str, str]:
    """{student: why a single exercise cannot be judged again}."""
    left = {}
    for submission in found:
        run = runs.get(submission.student)
        if run is None:
            left[submission.student] = "has not been graded yet"
        elif not run.submission:
            left[submission.student] = (
                "was graded by an mpilab that did not store the file's digest"
            )
        elif run.submission != submission.digest:
            left[submission.student] = "has handed in another file since then"
    return left


def _refuse_other_changes(assignment: Assignment, exercise: str, runs: Sequence[Run]) -> None:
    """Raise InputError if anything but the rubric's part on `exercise` has changed, or if that was
    added."""
    changed: dict[str, str] = {}
    for run in runs:
        known = {each.exercise: each.rubric for each in run.verdict.exercises}
        if exercise not in known:
            raise InputError(
                f"regrade {exercise}: the lab was graded without this exercise (for "
                f"{run.verdict.student}, for instance); grade the whole lab with 'mpilab grade'"
            )
        for name in {**known, **assignment.parts}:
            if name != exercise and known.get(name) != assignment.parts.get(name):
                changed.setdefault(name, run.verdict.student)
    if changed:
        _refuse_other_tools(assignment, exercise, runs)
        named = ", ".join(f"{name} (e.g. {student})" for name, student in changed.items())
        raise InputError(
            f"regrade {exercise}: besides its rubric, that of {named} or the version of mpilab has "
            "changed since the verdicts; undo that, or grade the whole lab with 'mpilab grade'"
        )


def _refuse_other_tools(assignment: Assignment, exercise: str, runs: Iterable[Run]) -> None:
    """Raise InputError if a verdict was given with other tools than the current ones."""
    for field, words in _TOOLS.items():
        now = getattr(assignment, field)
        for run in runs:
            before = getattr(run.verdict, field)
            if before and now and before != now:
                raise InputError(
                    f"regrade {exercise}: the other exercises (of {run.verdict.student}, for "
                    f"instance) were judged {words(before)}, and this machine judges {words(now)}; "
                    "grade the whole lab with 'mpilab grade', or regrade where they were judged"
                )


def _again(
    sandbox: Sandbox,
    assignment: Assignment,
    exercise: Exercise,
    submission: Submission,
    run: Run,
    book: Gradebook,
    out: Path,
) -> tuple[tuple[float | None, float | None], str]:
    """Judge, record and show one exercise of one student: ((points before, after), note)."""
    started = time.monotonic()
    keep = out / DIFFERENCES / submission.student
    judged = _judge(assignment, exercise, submission, sandbox, keep)
    place = [each.exercise for each in run.verdict.exercises].index(exercise.id)
    parts = list(run.verdict.exercises)
    before, parts[place] = parts[place], judged
    isolation = run.verdict.sandbox
    if isolation != sandbox.description:
        isolation = f"{isolation}; {exercise.id}: {sandbox.description}"
    verdict = replace(
        run.verdict,
        exercises=tuple(parts),
        sandbox=isolation,
        simgrid=assignment.simgrid,
        jail=assignment.jail,
    )
    note = _show(out / run.feedback, verdict, exercise.id, judged.answer)
    book.record(
        verdict,
        assignment.key(submission),
        feedback=run.feedback,
        seconds=time.monotonic() - started,
        assignment=assignment.digest,
        submission=submission.digest,
    )
    return (before.awarded, judged.awarded), note


def _judge(
    assignment: Assignment, exercise: Exercise, submission: Submission, sandbox: Sandbox, keep: Path
) -> ExerciseVerdict:
    """The ExerciseVerdict; see mpilab.grading.grade.judge."""
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
    blank = is_blank(source, stub)
    student, rubric = submission.student, assignment.rubric
    verdict = verdict_on(sandbox, rubric, student, keep, exercise, source, blank)
    return replace(verdict, answer=source, rubric=part)


def _show(page: Path, verdict: SubmissionVerdict, exercise: str, answer: str | None) -> str:
    """Put the new verdict on the student's page; returns '' or the reason for a failure."""
    if not page.is_file():
        return f"{page}: missing, so the verdict could not be added to it"
    text = marks.rejudged(page.read_text(encoding="utf-8"), verdict, exercise, answer)
    if text is None:
        return f"{page}: made by an older mpilab, so its verdict is unchanged"
    atomic_write(page, text)
    return ""
