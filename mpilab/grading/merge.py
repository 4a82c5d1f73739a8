"""Put gradebooks together: a class that was graded in shares becomes one gradebook, one CSV and one
folder of feedback, as if it had been graded in one go.

Nobody is lost on the way: a student whose share was not graded, or not to its end, is listed as
ungradable, with the reason. Merging twice changes nothing.
"""

from dataclasses import dataclass
from pathlib import Path

from mpilab.build import ROOT
from mpilab.errors import InputError
from mpilab.grading import marks, pages
from mpilab.grading.grade import Assignment
from mpilab.grading.gradebook import Gradebook
from mpilab.grading.submission import find_submissions
from mpilab.whole_file import write_whole

GRADEBOOK = pages.GRADEBOOK


@dataclass(frozen=True)
class Merged:
    """What `merge` did.

    verdicts   of the whole class, in the order of the CSV
    added      runs that the merged gradebook did not have
    missing    students without a verdict on what they handed in
    notes      what was amiss with the parts, in words
    points     {exercise: points}, or the exercises' names
    """

    out: Path
    lab: str
    verdicts: list
    added: int
    missing: list
    notes: list
    points: object

    @property
    def table(self):
        """The mark table as text."""
        return marks.mark_table(self.verdicts, self.points)


@dataclass(frozen=True)
class _Part:
    """A directory with a gradebook: the runs in it, oldest first, and what people decided."""

    folder: Path
    runs: list
    decisions: list

    def newest(self, lab):
        """{student: the run of this lab that counts}."""
        return {run.verdict.student: run for run in self.of(lab)[0]}

    def of(self, lab):
        """(runs, decisions) of this lab."""
        return (
            [run for run in self.runs if run.verdict.lab == lab],
            [decision for decision in self.decisions if decision.lab == lab],
        )


def merge(out, folders, *, submissions=None, lab=None, root=ROOT):
    """Merge the gradebooks of `folders` (each as `grade` leaves it) into the folder `out`; Merged.

    submissions   what was graded, as for `grade`: then every student appears in the CSV, who has no
                  verdict on this very submission as ungradable.
    lab           its name; may be left out where the gradebooks hold one lab only.

    Raises InputError where the gradebooks hold verdicts on different labs, or by different rubrics,
    and, without `submissions`, where a folder has no gradebook.
    """
    out = Path(out)
    parts, notes = _read(out, folders, complain=submissions is None)
    lab = lab or _only_lab(parts, submissions)
    assignment = None if submissions is None else Assignment.load(lab, root)
    _check_assignments(parts, lab, assignment)
    (out / "feedback").mkdir(parents=True, exist_ok=True)
    students = {student for part in parts for student in part.newest(lab)}
    missing = []
    with Gradebook(out / GRADEBOOK) as book:
        # The pages come first: a gradebook that is whole has all of its pages.
        notes += _copy_feedback(out, parts, lab, book)
        added = sum(book.absorb(*part.of(lab)) for part in parts)
        if submissions is not None:
            found = find_submissions(submissions, lab)
            students = {submission.student for submission in found}
            missing = [s.student for s in found if not book.find(s.student, assignment.key(s))]
        book.list_class(lab, {**dict.fromkeys(students, ""), **_reasons(missing, len(folders))})
        verdicts, more = pages.refresh(book, lab, out, assignment and assignment.points)
        notes += more
    points = assignment.points if assignment else pages.points_of(verdicts)
    return Merged(out, lab, verdicts, added, missing, notes, points)


def _read(out, folders, complain):
    """([_Part], notes); `complain`: a folder without a gradebook is an error, not a note."""
    parts, notes = [], []
    for folder in map(Path, folders):
        if folder.resolve() == out.resolve():
            raise InputError(f"{folder}: is to be merged into itself; name another folder for OUT")
        if not (folder / GRADEBOOK).is_file():
            if complain:
                raise InputError(
                    f"{folder}: holds no {GRADEBOOK}; name folders that 'mpilab grade --out' has "
                    "filled, or add --submissions to have those who miss listed as ungradable"
                )
            notes.append(f"{folder}: no {GRADEBOOK}; its job did not get that far")
            continue
        with Gradebook(folder / GRADEBOOK) as book:
            runs = book.runs()
            labs = dict.fromkeys(run.verdict.lab for run in runs)
            decisions = [decision for lab in labs for decision in book.decisions(lab)]
            parts.append(_Part(folder, runs, decisions))
    return parts, notes


def _only_lab(parts, submissions):
    """The one lab that all gradebooks are of."""
    labs = {run.verdict.lab: part.folder for part in parts for run in part.runs}
    if len(labs) == 1:
        return next(iter(labs))
    if not labs:
        raise InputError("merge: no verdict in any gradebook, so which lab is it? Add --lab LAB")
    listed = ", ".join(f"{lab} in {folder}" for lab, folder in sorted(labs.items()))
    raise InputError(f"merge: verdicts on several labs ({listed}); choose one with --lab LAB")


def _check_assignments(parts, lab, assignment):
    """Marks by different rubrics, or of different labs, must not stand in one column."""
    seen = {} if assignment is None else {assignment.digest: f"{lab} as it is now"}
    for part in parts:
        newest = part.newest(lab)
        if part.runs and not newest:
            other = part.runs[-1].verdict.lab
            raise InputError(f"{part.folder}: holds verdicts on {other}, none on {lab}; leave it "
                             f"out, or grade {lab} into it")  # fmt: skip
        for student, run in newest.items():
            seen.setdefault(run.assignment, f"{student} in {part.folder}")
    if len(seen) > 1:
        (one, first), (other, second) = list(seen.items())[:2]
        raise InputError(
            f"merge: {first} and {second} were not graded by the same lab, rubric and version of "
            f"mpilab ({one[:8] or 'unknown'} and {other[:8] or 'unknown'}); grade the older share "
            "again into its folder: only what has changed takes time"
        )


def _copy_feedback(out, parts, lab, book):
    """Copy each student's newest page; notes on those that are not there."""
    newest = {}
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
            notes.append(f"{page}: not there, though {student} was graded")
            continue
        write_whole(target, page.read_bytes())
    return notes


def _reasons(missing, shares):
    """{student: why there is no verdict on what was handed in}."""
    reason = (
        f"Not graded: none of the {shares} merged gradebooks has a verdict on this submission; the "
        "job that was to grade it failed, ran out of time, or saw an older file. Grade again: what "
        "is done is kept."
    )
    return dict.fromkeys(missing, reason)
