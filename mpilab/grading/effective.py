"""What counts: the verdicts after what people have decided about them.

The newest decision on a thing counts, in this order: points given for free text; overrides of
items, of exercises, of the total; then what lateness takes from a total that was not set by hand.
A decision that was made about another answer does not count: points for free text are then shown
as a proposal, an override is stale until it is confirmed.
"""

import difflib
from dataclasses import dataclass

from mpilab.errors import InputError
from mpilab.grading.decisions import LATE, OVERRIDE, POINTS, Decision, about_of
from mpilab.verdict import MANUAL, UNGRADABLE, ExerciseVerdict, ItemVerdict


@dataclass(frozen=True)
class EffectiveItem:
    """An item as it counts.

    outcome, reason, evidence   as judged: people change points, not what was found.
    awarded   points that count; None as long as nobody can say.
    decision  the Decision that gave them; None where it is the referee's word.
    proposal  points that were given for another text, where no others have been.
    stale     an override that does not count: the answer has changed since.
    """

    item: str
    title: str
    points: float
    outcome: str
    reason: str
    evidence: dict
    awarded: float | None
    decision: Decision | None = None
    proposal: float | None = None
    stale: Decision | None = None

    @property
    def comment(self):
        """What a person said to the student about it: a comment, or an override's reason."""
        return self.decision.reason if self.decision else ""


@dataclass(frozen=True)
class EffectiveExercise:
    """An exercise as it counts; `decision` and `stale` are overrides of the whole exercise."""

    exercise: str
    title: str
    items: tuple
    answer: str | None
    awarded: float | None
    decision: Decision | None = None
    stale: Decision | None = None

    @property
    def points(self):
        """Points that can be had."""
        return sum(item.points for item in self.items)

    @property
    def waiting(self):
        """The items that a person has yet to read."""
        if self.decision:
            return ()
        return tuple(i for i in self.items if i.outcome == MANUAL and i.awarded is None)


@dataclass(frozen=True)
class Effective:
    """A submission as it counts.

    status     'ungradable', 'awaiting-manual' or 'graded', once decisions are taken into account.
    total      points after the penalty, so far; None where it is ungradable.
    raw_total  the same before the penalty.
    points     that can be had.
    penalty    points that lateness takes.
    late       the Decision on lateness that counts, or None.
    decision   an override of the total, or None.
    notes      list of sentences for the instructor: decisions that do not count, and why.
    reason, sandbox  as in SubmissionVerdict.
    """

    student: str
    lab: str
    exercises: tuple
    status: str
    total: float | None
    raw_total: float | None
    points: float
    penalty: float
    late: Decision | None
    decision: Decision | None
    notes: tuple
    reason: str = ""
    sandbox: str = ""

    @property
    def decided(self):
        """True where any mark of it is a person's."""
        parts = [part for each in self.exercises for part in (each, *each.items)]
        return bool(self.late or self.decision or any(part.decision for part in parts))


def effective(book, lab):
    """What counts for each student of the class, a list of Effective sorted by student.

    The class is the one that was graded or merged last; who is in it without a verdict on what was
    handed in is ungradable. A gradebook that knows of no class has all students with a verdict.
    """
    runs = {run.verdict.student: run for run in book.newest(lab)}
    standing = newest(book.decisions(lab))
    absent = book.class_list(lab) or dict.fromkeys(runs, "")
    shape = next((run.verdict.exercises for run in runs.values() if run.verdict.exercises), ())
    return [
        of_run(runs[student], standing)
        if student in runs and not reason
        else missing(student, lab, shape, reason or "There is no verdict on it.")
        for student, reason in sorted(absent.items())
    ]


def run_of(book, lab, student):
    """The Run of a student that people may decide about.

    Raises InputError for a student who has none, or none on what was handed in last.
    """
    runs = book.history(student, lab)
    listed = book.class_list(lab) or {each.student: "" for each in book.verdicts(lab)}
    if student not in listed:
        near = difflib.get_close_matches(student, listed, n=3) or sorted(listed)[:3]
        raise InputError(f"student {student!r}: not in the class of {lab} in {book.path}; it has, "
                         f"e.g., {', '.join(near) or 'nobody'}")  # fmt: skip
    if listed[student] or not runs:
        raise InputError(f"student {student!r}: there is no verdict on what was handed in; grade "
                         f"it first. {listed[student]}")  # fmt: skip
    return runs[0]


def newest(decisions):
    """{what it is on: the newest Decision on it}, of decisions in their order."""
    return {decision.on: decision for decision in decisions}


def of_run(run, standing):
    """Effective of a Run, given the `newest` decisions of its lab."""
    verdict, student, notes = run.verdict, run.verdict.student, []

    def find(kind, exercise="", item=""):
        decision = standing.get((student, kind, exercise, item))
        return None if decision is None or decision.withdrawn else decision

    exercises = tuple(_exercise(run, each, find, notes) for each in verdict.exercises)
    notes += _homeless(verdict, standing)
    most = sum(each.points for each in exercises)
    decision, stale = _valid(find(OVERRIDE), about_of(run), most, f"{student}: the total", notes)
    status = _status(verdict, exercises) if decision is None else "graded"
    late = find(LATE)
    if late is not None and late.about != about_of(run):
        notes.append(f"{student}: handed in anew since the lateness was looked at; "
                     "run 'mpilab marks late' again")  # fmt: skip
    raw = None if status == "ungradable" else sum(each.awarded or 0.0 for each in exercises)
    penalty = 0.0
    if decision is not None:
        raw = decision.points
    elif late is not None and raw is not None:
        penalty = raw * late.details["share"]
    total = None if raw is None else raw - penalty
    return Effective(student, verdict.lab, exercises, status, total, raw, most, penalty, late,
                     decision, tuple(notes), verdict.reason, verdict.sandbox)  # fmt: skip


def missing(student, lab, exercises, reason):
    """Effective of a student without a verdict; `exercises` are as anybody's of the lab."""
    shape = tuple(
        EffectiveExercise(each.exercise, each.title, tuple(
            EffectiveItem(i.item, i.title, i.points, UNGRADABLE, reason, {}, None)
            for i in each.items
        ), None, None) for each in exercises
    )  # fmt: skip
    return Effective(student, lab, shape, "ungradable", None, None,
                     sum(each.points for each in shape), 0.0, None, None, (), reason)  # fmt: skip


def _exercise(run, exercise: ExerciseVerdict, find, notes):
    about, where = about_of(run, exercise), f"{run.verdict.student}: {exercise.exercise}"
    items = tuple(
        _item(exercise.exercise, item, find, about, f"{where}, {item.item}", notes)
        for item in exercise.items
    )
    given = [item.awarded for item in items]
    awarded = None if None in given else sum(given)
    decision, stale = _valid(find(OVERRIDE, exercise.exercise), about, exercise.points, where,
                             notes)  # fmt: skip
    if decision is not None:
        awarded = decision.points
    return EffectiveExercise(exercise.exercise, exercise.title, items, exercise.answer, awarded,
                             decision, stale)  # fmt: skip


def _item(exercise, item: ItemVerdict, find, about, where, notes):
    awarded, decision, proposal = item.awarded, None, None
    given = find(POINTS, exercise, item.item)
    if given is not None and item.outcome == MANUAL:
        if given.about == about and given.details["most"] == item.points:
            awarded, decision = given.points, given
        else:
            proposal = given.points
            why = ("the text has changed" if given.about != about else
                   f"the item was worth {given.details['most']:g} then")  # fmt: skip
            notes.append(f"{where}: waits again, {why}; {given.points:g} points had been given")
    changed, stale = _valid(find(OVERRIDE, exercise, item.item), about, item.points, where, notes)
    if changed is not None:
        awarded, decision = changed.points, changed
    return EffectiveItem(item.item, item.title, item.points, item.outcome, item.reason,
                         item.evidence, awarded, decision, proposal, stale)  # fmt: skip


def _valid(decision, about, most, where, notes):
    """(the override, None) where it counts, (None, the override) where it is stale, with a note."""
    if decision is None or (decision.about == about and decision.points <= most):
        return decision, None
    why = ("the answer has changed since" if decision.about != about else
           f"only {most:g} can be had now")  # fmt: skip
    notes.append(f"{where}: stale override to {decision.points:g} ({decision.reason}): {why}; "
                 "confirm it with 'mpilab marks confirm', or override anew")  # fmt: skip
    return None, decision


def _homeless(verdict, standing):
    """Notes on decisions about an exercise or item that the lab no longer has."""
    known = {("", "")}
    for each in verdict.exercises:
        known |= {(each.exercise, ""), *((each.exercise, item.item) for item in each.items)}
    return [
        f"{verdict.student}: {', '.join(filter(None, decision.on[2:]))}: a decision on it does not "
        "count, there is no such item in the verdict"
        for decision in standing.values()
        if decision.student == verdict.student
        and not decision.withdrawn
        and decision.on[2:] not in known
    ]


def _status(verdict, exercises):
    """As SubmissionVerdict.status, of what no decision stands for."""
    waiting = [item for each in exercises if each.awarded is None for item in each.items]
    outcomes = {item.outcome for item in waiting if item.awarded is None}
    decided = exercises and all(
        each.decision or all(item.decision for item in each.items) for each in exercises
    )
    if UNGRADABLE in outcomes or (verdict.reason and not decided):
        return "ungradable"
    return "awaiting-manual" if MANUAL in outcomes else "graded"
