"""From the submissions of a class to the pairs of answers that resemble each other."""

from dataclasses import dataclass

from mpilab.build import ROOT
from mpilab.errors import InputError, Ungradable
from mpilab.grading.answers import answer_cells, is_blank, lift
from mpilab.grading.grade import Assignment
from mpilab.grading.release import solutions
from mpilab.grading.submission import find_submissions, parse
from mpilab.rubric import KERNEL
from mpilab.similarity.compare import FEWEST, answers_of, pairs_of

# Copies that were renamed and rearranged stay above it, independent kernels below: see
# docs/reporting.md.
THRESHOLD = 0.7
LONGEST = 100_000  # characters of an answer that anybody would write


@dataclass(frozen=True)
class Similar:
    """What `search` found.

    pairs      every pair that shares a passage, the largest share first
    compared   how many answers were compared
    notes      whose answers were not compared, and why
    """

    lab: str
    title: str
    threshold: float
    pairs: list
    compared: int
    notes: list

    @property
    def chosen(self):
        """The pairs whose share reaches the threshold."""
        return [pair for pair in self.pairs if pair.share >= self.threshold]


def search(submissions, lab, exercise, *, threshold=THRESHOLD, keep_reference=False,
           progress=False, root=ROOT):  # fmt: skip
    """Compare the answers to a kernel exercise of a lab pair by pair; Similar.

    What the lab gave to everybody does not count, nor what is as in our own answers unless
    `keep_reference`. Raises InputError for an exercise that is not written in C.
    """
    if not 0 <= threshold <= 1:
        raise InputError(f"threshold {threshold:g}: it is a share; write a number from 0 to 1")
    assignment = Assignment.load(lab, root)
    asked = assignment.rubric.exercise(exercise)
    if asked.kind != KERNEL:
        kernels = [each.id for each in assignment.rubric.exercises if each.kind == KERNEL]
        raise InputError(
            f"exercise {exercise!r} of {lab} is of kind {asked.kind}; only answers in C are "
            f"compared: {', '.join(kernels) or 'this lab has none'}"
        )
    stub = answer_cells(assignment.notebook)[exercise]
    sources, notes = _sources(find_submissions(submissions, lab), assignment.notebook, exercise)
    blank = sorted(student for student, source in sources.items() if is_blank(source, stub))
    for student in blank:
        del sources[student]
        notes.append(f"{student}: blank")
    for student in [student for student, source in sources.items() if len(source) > LONGEST]:
        notes.append(f"{student}: {len(sources.pop(student))} characters, more than {LONGEST}; "
                     "look at it by hand")  # fmt: skip
    given = [stub]
    if not keep_reference:
        given.append(solutions(root / "labs" / "source" / f"{lab}.py")[exercise])
        given += [(root / "src_c" / name).read_text(encoding="utf-8") for name in asked.references]
    pairs, short = pairs_of(answers_of(sources, given), progress=progress)
    notes += [
        f"{answer.student}: only {answer.own} tokens that are neither given nor as in our own "
        f"answer; fewer than {FEWEST} say nothing"
        for answer in short
    ]
    return Similar(lab, asked.title, threshold, pairs, len(sources) - len(short), notes)


def _sources(submissions, notebook, exercise):
    """({student: source of the answer}, why others have none)."""
    sources, notes = {}, []
    for submission in submissions:
        try:
            answers, problems = lift(notebook, parse(submission))
        except Ungradable as error:
            notes.append(str(error))
            continue
        if exercise in answers:
            sources[submission.student] = answers[exercise]
        else:
            reasons = [each.reason for each in problems if each.grade_id == exercise]
            notes.append(f"{submission.student}: {'; '.join(reasons)}")
    return sources, notes
