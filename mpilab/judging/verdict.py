"""The referee's verdict on a submission: points and a reason for every item.

An *item* is the smallest part that carries points; an *exercise* is a list of items; a submission
has one verdict for each exercise of the lab.
"""

from dataclasses import dataclass, field
from typing import Any

from mpilab.diagnosis.model import Diagnosis

PASS, FAIL, UNGRADABLE, MANUAL = "pass", "fail", "ungradable", "manual"
NO_SIMGRID = NOT_ISOLATED = "none"
BLANK = "This answer was left blank."  # the reason of each of its items
# The status of a student of the class without a submission, and the reason of the verdict.
ABSENT, NOT_HANDED_IN = "not-handed-in", "Nothing was handed in."


def simulated_by(simgrid: str) -> str:
    """A nonempty `simgrid` of a SubmissionVerdict in words: the SimGrid version that judged it."""
    return "without SimGrid" if simgrid == NO_SIMGRID else f"with SimGrid {simgrid}"


def isolated_by(jail: str) -> str:
    """A nonempty `jail` of a SubmissionVerdict in words: what the answers were isolated by."""
    return "not isolated" if jail == NOT_ISOLATED else f"isolated by wasm2c {jail}"


@dataclass(frozen=True)
class ItemVerdict:
    """One item: what it asks, what it is worth, and its outcome.

    outcome      PASS, FAIL, UNGRADABLE (no fault is proved) or MANUAL (graded manually).
    reason       a sentence for the student; empty for a plain pass.
    evidence     the failing case: ranks, count, datatype, call …, as far as known.
    unconfirmed  judged by runs on Open MPI alone, although simulation was wanted as well.
    diagnoses    of the run and of the compiler: what went wrong, where, what to try.
    """

    item: str
    title: str
    points: float
    outcome: str
    reason: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    unconfirmed: bool = False
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def awarded(self) -> float | None:
        """Points given; None while they are undecided."""
        return {PASS: self.points, FAIL: 0.0}.get(self.outcome)


@dataclass(frozen=True)
class ExerciseVerdict:
    """All items of one exercise.

    answer  the text that was judged; None if it could not be identified.
    rubric  a hash of the rubric and code that judged it (see Assignment.parts); empty if unknown.
    """

    exercise: str
    title: str
    items: tuple[ItemVerdict, ...]
    answer: str | None = None
    rubric: str = ""

    @property
    def points(self) -> float:
        """The maximum points."""
        return sum(item.points for item in self.items)

    @property
    def awarded(self) -> float | None:
        """Points given; None if an item is ungradable or awaits manual grading."""
        given = [item.awarded for item in self.items if item.awarded is not None]
        return sum(given) if len(given) == len(self.items) else None

    def outcomes(self) -> set[str]:
        """The set of the items' outcomes."""
        return {item.outcome for item in self.items}


@dataclass(frozen=True)
class SubmissionVerdict:
    """One student's submission for one lab.

    reason   why the whole submission is ungradable, or NOT_HANDED_IN; empty if its exercises could
             be judged.
    sandbox  what the student's code was sandboxed with, in words, for the gradebook.
    simgrid  the version of SimGrid, or NO_SIMGRID; '' if the lab simulates nothing or an older
             mpilab did not record it.
    jail     the version of wasm2c, if C answers were judged in the jail (mpilab.kernels.jail), or
             NOT_ISOLATED; '' if the lab has none or an older mpilab did not record it.
    """

    student: str
    lab: str
    exercises: tuple[ExerciseVerdict, ...]
    reason: str = ""
    sandbox: str = ""
    simgrid: str = ""
    jail: str = ""

    @property
    def status(self) -> str:
        """'not-handed-in', or the most urgent of 'ungradable', 'awaiting-manual' and 'graded'."""
        if self.reason == NOT_HANDED_IN:
            return ABSENT
        outcomes = set().union(*(exercise.outcomes() for exercise in self.exercises))
        if self.reason or UNGRADABLE in outcomes:
            return "ungradable"
        return "awaiting-manual" if MANUAL in outcomes else "graded"

    @property
    def total(self) -> float | None:
        """The points of all exercises judged so far; None if ungradable or not handed in."""
        if self.status in (UNGRADABLE, ABSENT):
            return None
        return sum(exercise.awarded or 0.0 for exercise in self.exercises)
