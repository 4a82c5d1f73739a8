"""What the referee says about a submission: points and a reason for every item.

An *item* is the smallest thing that carries points; an *exercise* is a list of items; a
submission has one verdict for each exercise of the lab.
"""

from dataclasses import dataclass, field

PASS, FAIL, UNGRADABLE, MANUAL = "pass", "fail", "ungradable", "manual"


@dataclass(frozen=True)
class ItemVerdict:
    """One item: what it asks, what it is worth, and what came of it.

    outcome   PASS, FAIL, UNGRADABLE (nobody's fault is proved) or MANUAL (a person reads it).
    reason    a sentence for the student; empty for a plain pass.
    evidence  the failing case: ranks, count, datatype, call, line …, whatever is known.
    """

    item: str
    title: str
    points: float
    outcome: str
    reason: str = ""
    evidence: dict = field(default_factory=dict)

    @property
    def awarded(self):
        """Points given, or None as long as nobody can say."""
        return {PASS: self.points, FAIL: 0.0}.get(self.outcome)


@dataclass(frozen=True)
class ExerciseVerdict:
    """All items of one exercise.

    answer  the text that was judged; None where nobody could tell which it is.
    rubric  what it was judged by, as a hash (see Assignment.part); empty where that is not known.
    """

    exercise: str
    title: str
    items: tuple
    answer: str | None = None
    rubric: str = ""

    @property
    def points(self):
        """Points that can be had."""
        return sum(item.points for item in self.items)

    @property
    def awarded(self):
        """Points given, or None where an item is ungradable or waits for a person."""
        given = [item.awarded for item in self.items]
        return None if None in given else sum(given)

    def outcomes(self):
        """The set of the items' outcomes."""
        return {item.outcome for item in self.items}


@dataclass(frozen=True)
class SubmissionVerdict:
    """One student's submission for one lab.

    reason  why the whole submission is ungradable; empty where its exercises could be judged.
    sandbox what kept the student's code apart, in words; it goes into the gradebook.
    """

    student: str
    lab: str
    exercises: tuple
    reason: str = ""
    sandbox: str = ""

    @property
    def status(self):
        """'ungradable' before 'awaiting-manual' before 'graded': the most urgent thing to do."""
        outcomes = set().union(*(exercise.outcomes() for exercise in self.exercises))
        if self.reason or UNGRADABLE in outcomes:
            return "ungradable"
        return "awaiting-manual" if MANUAL in outcomes else "graded"

    @property
    def total(self):
        """Points of all exercises that have been judged; None where it is ungradable."""
        if self.status == "ungradable":
            return None
        return sum(exercise.awarded or 0.0 for exercise in self.exercises)
