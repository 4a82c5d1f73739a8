"""Manual decisions (points for free text, overrides, lateness), and the marks that result.

The gradebook stores decisions beside the verdicts, with time, author and reason. A decision changes
no verdict and is never changed or removed; a later one on the same thing replaces it. Each is bound
to the answer it was made about, so that points for one text never count for another.

`manual` and `override` make decisions; `of_run` applies them to a verdict.
"""

import getpass
import hashlib
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mpilab.diagnosis.model import Diagnosis
from mpilab.errors import InputError
from mpilab.judging.verdict import (
    ABSENT,
    MANUAL,
    NOT_HANDED_IN,
    UNGRADABLE,
    ExerciseVerdict,
    ItemVerdict,
    SubmissionVerdict,
)

# Points for an item that awaits manual grading; other points for anything; lateness.
POINTS, OVERRIDE, LATE = "points", "override", "late"

# What a decision applies to: student, kind, exercise, item.
Subject = tuple[str, str, str, str]


@dataclass(frozen=True)
class Run:
    """One entry: a verdict, and when and how it was reached.

    feedback     path of the student's page, or ''.
    seconds      wall time of the grading, or None.
    recorded     time in UTC (ISO 8601).
    assignment   identifies the lab and the rubric; '' if an older mpilab did not record it.
    submission   digest of the submission; '' likewise.
    """

    verdict: SubmissionVerdict
    key: str
    feedback: str
    seconds: float | None
    recorded: str
    assignment: str = ""
    submission: str = ""

    @property
    def identity(self) -> tuple[str, str, str, str]:
        """What identifies this run across all gradebooks."""
        return (self.verdict.lab, self.verdict.student, self.key, self.recorded)


@dataclass(frozen=True)
class Decision:
    """One manual decision.

    exercise, item  what it applies to: an item, a whole exercise (no item), the total (neither).
    kind            POINTS, OVERRIDE or LATE.
    points          given; None withdraws the previous decision, and is None for LATE.
    reason          an override's reason, or the comment on manual points, which may be empty.
    about           the answers it was made about, as a hash; see `about_of`.
    details         POINTS: {"most": points that the item was worth}; LATE: see Rule.details in
                    mpilab/course/manual.py.
    who, decided    login, and UTC time (ISO 8601).
    token           identifies the decision across all gradebooks; the gradebook fills in time and
                    token.
    """

    lab: str
    student: str
    exercise: str
    item: str
    kind: str
    points: float | None
    reason: str = ""
    about: str = ""
    details: dict[str, Any] = field(default_factory=dict)
    who: str = ""
    decided: str = ""
    token: str = ""

    @property
    def on(self) -> Subject:
        """What a later decision must share with this one to replace it."""
        return (self.student, self.kind, self.exercise, self.item)

    @property
    def withdrawn(self) -> bool:
        """True if it withdraws the previous decision."""
        return self.points is None and not self.details


def login() -> str:
    """The login name of the user who decides."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def stamped(decisions: Iterable[Decision], after: str | None) -> Iterator[Decision]:
    """Yield the decisions with author, time and token; each time is later than the one before it.

    `after` is the newest time in the gradebook, or None: if the clock was set back, an older
    decision must not count.
    """
    for decision in decisions:
        now = datetime.now(UTC)
        if after is not None:
            now = max(now, datetime.fromisoformat(after) + timedelta(microseconds=1))
        after = now.isoformat(timespec="microseconds")
        yield replace(decision, who=decision.who or login(), decided=after, token=uuid.uuid4().hex)


def about_of(run: Run, exercise: "ExerciseVerdict | EffectiveExercise | None" = None) -> str:
    """The hash of what a decision is made about: one answer, or all answers of the run.

    exercise   the one answer's, as judged or with decisions.

    If a text is unknown because it could not be read, the hash covers the whole submission.
    """
    chosen = run.verdict.exercises if exercise is None else (exercise,)
    texts = [each.answer for each in chosen]
    if not texts or None in texts:
        texts = [run.submission or run.key, *(text or "" for text in texts)]
    whole = hashlib.sha256()
    for text in texts:
        data = (text or "").encode()
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def manual(run: Run, exercise: str, item: str, points: float | None, comment: str = "") -> Decision:
    """The Decision that gives `points` for an item that awaits manual grading; None withdraws them.

    Raises InputError if there is no such item, it is not graded manually, or it is worth fewer
    points.
    """
    found, (part,) = _find(run, exercise, item)
    if part.outcome != MANUAL:
        raise InputError(
            f"{run.verdict.student}, {exercise}, {item}: the item is not graded manually, but was "
            f"judged ({part.outcome}); to change its points, use 'mpilab marks override'"
        )
    _check_range(points, part.points, f"{run.verdict.student}, {exercise}, {item}")
    return Decision(
        run.verdict.lab,
        run.verdict.student,
        exercise,
        item,
        POINTS,
        points,
        comment.strip() if points is not None else "",
        about_of(run, found),
        {"most": part.points} if points is not None else {},
    )


def override(
    run: Run, points: float | None, reason: str, exercise: str = "", item: str = ""
) -> Decision:
    """The Decision that sets an item, an exercise or, with neither, the total to `points`.

    None withdraws an override. Raises InputError without a reason, for points out of range, and if
    there is no such exercise or item.
    """
    verdict = run.verdict
    where = ", ".join(filter(None, (verdict.student, exercise or "total", item)))
    if not reason.strip():
        raise InputError(f"{where}: the override has no reason; add --reason '...'")
    if item and not exercise:
        raise InputError(f"item {item!r}: of which exercise? Add --exercise")
    if exercise:
        found, parts = _find(run, exercise, item)
        most, about = sum(part.points for part in parts), about_of(run, found)
    else:
        most, about = sum(each.points for each in verdict.exercises), about_of(run)
    _check_range(points, most, where)
    return Decision(
        verdict.lab, verdict.student, exercise, item, OVERRIDE, points, reason.strip(), about
    )


def _find(run: Run, exercise: str, item: str) -> tuple[ExerciseVerdict, list[ItemVerdict]]:
    """(ExerciseVerdict, all of its items or only the one called `item`)."""
    exercises = {each.exercise: each for each in run.verdict.exercises}
    if exercise not in exercises:
        raise InputError(
            f"exercise {exercise!r}: not in the verdict on {run.verdict.student}; it has "
            f"{', '.join(exercises)}"
        )
    found = exercises[exercise]
    parts = [part for part in found.items if item in ("", part.item)]
    if not parts:
        known = ", ".join(part.item for part in found.items)
        raise InputError(f"item {item!r}: not in exercise {exercise}; it has {known}")
    return found, parts


def _check_range(points: float | None, most: float, where: str) -> None:
    if points is not None and not 0 <= points <= most:
        raise InputError(f"{where}: {points:g} points; write 0 to {most:g}")


# Apply the newest decision on each thing, in this order: points for free text; overrides of items,
# of exercises, of the total; the late penalty, unless the total was overridden. A decision about
# another answer does not count: points for free text are then shown as a proposal, and an override
# is stale until confirmed.


@dataclass(frozen=True)
class EffectiveItem:
    """An item with the points that count.

    outcome, reason, evidence, diagnoses   as judged: decisions change points, not findings.
    awarded      points that count; None while they are undecided.
    decision     the Decision that gave them; None if the referee did.
    proposal     points that were given for another text, if none were given for this one.
    stale        an override that does not count, because the answer or its maximum has changed
                 since.
    unconfirmed  the points are the referee's, from runs on Open MPI alone.
    """

    item: str
    title: str
    points: float
    outcome: str
    reason: str
    evidence: dict[str, Any]
    awarded: float | None
    decision: Decision | None = None
    proposal: float | None = None
    stale: Decision | None = None
    unconfirmed: bool = False
    diagnoses: tuple[Diagnosis, ...] = ()

    @property
    def comment(self) -> str:
        """The instructor's words to the student: a comment, or an override's reason."""
        return self.decision.reason if self.decision else ""


@dataclass(frozen=True)
class EffectiveExercise:
    """An exercise with the points that count.

    `decision` and `stale` are overrides of the whole exercise.
    """

    exercise: str
    title: str
    items: tuple[EffectiveItem, ...]
    answer: str | None
    awarded: float | None
    decision: Decision | None = None
    stale: Decision | None = None

    @property
    def points(self) -> float:
        """The maximum points."""
        return sum(item.points for item in self.items)

    @property
    def waiting(self) -> tuple[EffectiveItem, ...]:
        """The items that still await manual grading."""
        if self.decision:
            return ()
        return tuple(i for i in self.items if i.outcome == MANUAL and i.awarded is None)


@dataclass(frozen=True)
class Effective:
    """A submission with the marks that count.

    status     'not-handed-in', 'ungradable', 'awaiting-manual' or 'graded', after all decisions.
    total      points so far, after the penalty; None if it is ungradable or not handed in.
    raw_total  the same before the penalty.
    points     the maximum.
    penalty    points deducted for lateness.
    late       the Decision on lateness that counts, or None.
    decision   an override of the total, or None.
    notes      sentences for the instructor: decisions that do not count, and why.
    reason, sandbox, jail  as in SubmissionVerdict.
    """

    student: str
    lab: str
    exercises: tuple[EffectiveExercise, ...]
    status: str
    total: float | None
    raw_total: float | None
    points: float
    penalty: float
    late: Decision | None
    decision: Decision | None
    notes: tuple[str, ...]
    reason: str = ""
    sandbox: str = ""
    jail: str = ""

    @property
    def is_absent(self) -> bool:
        """True if nothing was handed in, even if points were set by hand."""
        return self.reason == NOT_HANDED_IN

    @property
    def decided(self) -> bool:
        """True if a manual decision gave any of its marks."""
        return bool(self.late or self.decision) or any(
            each.decision or any(item.decision for item in each.items) for each in self.exercises
        )


def newest(decisions: Iterable[Decision]) -> dict[Subject, Decision]:
    """{Decision.on: the newest such Decision}, from decisions in chronological order."""
    return {decision.on: decision for decision in decisions}


def of_run(run: Run, standing: Mapping[Subject, Decision]) -> Effective:
    """The Effective of a Run, given the `newest` decisions on its lab."""
    verdict, student = run.verdict, run.verdict.student
    notes: list[str] = []

    def find(kind: str, exercise: str = "", item: str = "") -> Decision | None:
        decision = standing.get((student, kind, exercise, item))
        return None if decision is None or decision.withdrawn else decision

    exercises = tuple(_exercise(run, each, find, notes) for each in verdict.exercises)
    notes += _homeless(verdict, standing)
    most = sum(each.points for each in exercises)
    decision, stale = _valid(find(OVERRIDE), about_of(run), most, f"{student}: the total", notes)
    status = _status(verdict, exercises) if decision is None else "graded"
    late = find(LATE)
    if late is not None and late.about != about_of(run):
        notes.append(
            f"{student}: handed in again after the lateness was computed; run 'mpilab marks late' "
            "again"
        )
    raw = None if status in (UNGRADABLE, ABSENT) else sum(each.awarded or 0.0 for each in exercises)
    penalty = 0.0
    if decision is not None:
        raw = decision.points
    elif late is not None and raw is not None:
        penalty = raw * late.details["share"]
    total = None if raw is None else raw - penalty
    return Effective(
        student,
        verdict.lab,
        exercises,
        status,
        total,
        raw,
        most,
        penalty,
        late,
        decision,
        tuple(notes),
        verdict.reason,
        verdict.sandbox,
        verdict.jail,
    )


def missing(student: str, lab: str, exercises: Sequence[ExerciseVerdict], reason: str) -> Effective:
    """The Effective of a student without a verdict; `exercises` are any student's on the lab."""
    shape = tuple(
        EffectiveExercise(
            each.exercise,
            each.title,
            tuple(
                EffectiveItem(i.item, i.title, i.points, UNGRADABLE, reason, {}, None)
                for i in each.items
            ),
            None,
            None,
        )
        for each in exercises
    )
    return Effective(
        student,
        lab,
        shape,
        "ungradable",
        None,
        None,
        sum(each.points for each in shape),
        0.0,
        None,
        None,
        (),
        reason,
    )


def _exercise(
    run: Run, exercise: ExerciseVerdict, find: Callable[..., Decision | None], notes: list[str]
) -> EffectiveExercise:
    about, where = about_of(run, exercise), f"{run.verdict.student}: {exercise.exercise}"
    items = tuple(
        _item(exercise.exercise, item, find, about, f"{where}, {item.item}", notes)
        for item in exercise.items
    )
    given = [item.awarded for item in items if item.awarded is not None]
    awarded: float | None = sum(given) if len(given) == len(items) else None
    decision, stale = _valid(
        find(OVERRIDE, exercise.exercise), about, exercise.points, where, notes
    )
    if decision is not None:
        awarded = decision.points
    return EffectiveExercise(
        exercise.exercise, exercise.title, items, exercise.answer, awarded, decision, stale
    )


def _item(
    exercise: str,
    item: ItemVerdict,
    find: Callable[..., Decision | None],
    about: str,
    where: str,
    notes: list[str],
) -> EffectiveItem:
    awarded, decision, proposal = item.awarded, None, None
    given = find(POINTS, exercise, item.item)
    if given is not None and item.outcome == MANUAL:
        if given.about == about and given.details["most"] == item.points:
            awarded, decision = given.points, given
        else:
            proposal = given.points
            why = (
                "the text has changed"
                if given.about != about
                else f"the item was worth {given.details['most']:g} then"
            )
            notes.append(f"{where}: awaits grading again, {why}; it had {given.points:g} points")
    changed, stale = _valid(find(OVERRIDE, exercise, item.item), about, item.points, where, notes)
    if changed is not None:
        awarded, decision = changed.points, changed
    return EffectiveItem(
        item.item,
        item.title,
        item.points,
        item.outcome,
        item.reason,
        item.evidence,
        awarded,
        decision,
        proposal,
        stale,
        item.unconfirmed and decision is None,
        item.diagnoses,
    )


def _valid(
    decision: Decision | None, about: str, most: float, where: str, notes: list[str]
) -> tuple[Decision | None, Decision | None]:
    """(override, None) if it counts; (None, override), with a note, if it is stale."""
    if decision is None or (decision.about == about and (decision.points or 0.0) <= most):
        return decision, None
    why = (
        "the answer has changed since"
        if decision.about != about
        else f"its maximum is now {most:g}"
    )
    notes.append(
        f"{where}: stale override to {decision.points:g} ({decision.reason}): {why}; "
        "confirm it with 'mpilab marks confirm', or override again"
    )
    return None, decision


def _homeless(verdict: SubmissionVerdict, standing: Mapping[Subject, Decision]) -> list[str]:
    """Notes on decisions about an exercise or item that the lab no longer has."""
    known = {("", "")}
    for each in verdict.exercises:
        known |= {(each.exercise, ""), *((each.exercise, item.item) for item in each.items)}
    return [
        f"{verdict.student}: {', '.join(filter(None, decision.on[2:]))}: the decision on it does "
        "not count: the verdict has no such item"
        for decision in standing.values()
        if decision.student == verdict.student
        and not decision.withdrawn
        and decision.on[2:] not in known
    ]


def _status(verdict: SubmissionVerdict, exercises: Sequence[EffectiveExercise]) -> str:
    """Like SubmissionVerdict.status, for the parts that no decision settles."""
    waiting = [item for each in exercises if each.awarded is None for item in each.items]
    outcomes = {item.outcome for item in waiting if item.awarded is None}
    decided = exercises and all(
        each.decision or all(item.decision for item in each.items) for each in exercises
    )
    if verdict.reason == NOT_HANDED_IN and not decided:
        return ABSENT
    if UNGRADABLE in outcomes or (verdict.reason and not decided):
        return "ungradable"
    return "awaiting-manual" if MANUAL in outcomes else "graded"
