"""What people decide about marks: points for free text, overrides, lateness.

A decision is added to the gradebook beside the verdicts, with its time, its author and a reason; it
changes no verdict, and is never changed or removed itself: a later one on the same thing counts
instead (mpilab/grading/effective.py). Each is bound to what it was made about, so that points for
one text are never points for another.
"""

import getpass
import hashlib
import os
import uuid
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from mpilab.errors import InputError
from mpilab.verdict import MANUAL

# Points for an item that waits for a person; other points for whatever; when it was handed in.
POINTS, OVERRIDE, LATE = "points", "override", "late"


@dataclass(frozen=True)
class Decision:
    """One decision of a person.

    exercise, item  what it is on: an item, a whole exercise (no item), the total (neither).
    kind            POINTS, OVERRIDE or LATE.
    points          given; None takes back what was decided before, and is None for LATE.
    reason          an override's reason; the comment on manual points, which may be empty.
    about           what it was made about, as `about_of` tells.
    details         POINTS: {"most": points that the item was worth}; LATE: see lateness.py.
    who, decided    login, and UTC time (ISO 8601); the gradebook fills in the time and the token,
                    which tells this decision from all others, in whatever gradebook it is.
    """

    lab: str
    student: str
    exercise: str
    item: str
    kind: str
    points: float | None
    reason: str = ""
    about: str = ""
    details: dict = field(default_factory=dict)
    who: str = ""
    decided: str = ""
    token: str = ""

    @property
    def on(self):
        """What a later decision has to share with this one to take its place."""
        return (self.student, self.kind, self.exercise, self.item)

    @property
    def withdrawn(self):
        """True where it takes back what was decided before."""
        return self.points is None and not self.details


def login():
    """Who decides: the name that this user is logged in by."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"user {os.getuid()}"


def stamped(decisions, after):
    """The decisions with who, times and tokens; each time is later than the one before it.

    A clock that was set back must not make an older decision count: `after` is the newest time
    that the gradebook knows, or None.
    """
    for decision in decisions:
        now = datetime.now(UTC)
        if after is not None:
            now = max(now, datetime.fromisoformat(after) + timedelta(microseconds=1))
        after = now.isoformat(timespec="microseconds")
        yield replace(decision, who=decision.who or login(), decided=after, token=uuid.uuid4().hex)


def about_of(run, exercise=None):
    """What a decision is made about, as a hash: the text of the answer to `exercise` (an
    ExerciseVerdict of the run), or all answers of the run.

    Where no text is known (nobody could read it), the whole submission stands for it.
    """
    chosen = run.verdict.exercises if exercise is None else (exercise,)
    texts = [each.answer for each in chosen]
    if not texts or None in texts:
        texts = [run.submission or run.key, *(text or "" for text in texts)]
    whole = hashlib.sha256()
    for text in texts:
        data = text.encode()
        whole.update(len(data).to_bytes(8, "little") + data)
    return whole.hexdigest()


def manual(run, exercise, item, points, comment=""):
    """The Decision that gives `points` for an item that waits for a person; None takes them back.

    Raises InputError where there is no such item, it waits for nobody, or is worth less.
    """
    found, (part,) = _find(run, exercise, item)
    if part.outcome != MANUAL:
        raise InputError(
            f"{run.verdict.student}, {exercise}, {item}: not for a person to mark, it has been "
            f"judged ({part.outcome}); to give other points, use 'mpilab marks override'"
        )
    _check_range(points, part.points, f"{run.verdict.student}, {exercise}, {item}")
    return Decision(run.verdict.lab, run.verdict.student, exercise, item, POINTS, points,
                    comment.strip() if points is not None else "", about_of(run, found),
                    {"most": part.points} if points is not None else {})  # fmt: skip


def override(run, points, reason, exercise="", item=""):
    """The Decision that sets an item, an exercise or, without both, the total to `points`.

    None takes an override back. Raises InputError without a reason, for points out of range, and
    where there is no such exercise or item.
    """
    verdict = run.verdict
    where = ", ".join(filter(None, (verdict.student, exercise or "total", item)))
    if not reason.strip():
        raise InputError(f"{where}: an override without a reason; say why: --reason '...'")
    if item and not exercise:
        raise InputError(f"item {item!r}: of which exercise? Add --exercise")
    if exercise:
        found, parts = _find(run, exercise, item)
        most, about = sum(part.points for part in parts), about_of(run, found)
    else:
        most, about = sum(each.points for each in verdict.exercises), about_of(run)
    _check_range(points, most, where)
    return Decision(verdict.lab, verdict.student, exercise, item, OVERRIDE, points,
                    reason.strip(), about)  # fmt: skip


def _find(run, exercise, item):
    """(ExerciseVerdict, its items: all, or the one called `item`)."""
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


def _check_range(points, most, where):
    if points is not None and not 0 <= points <= most:
        raise InputError(f"{where}: {points:g} points; write 0 to {most:g}")
