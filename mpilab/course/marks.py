"""The marks of a class in effect, its most common failures, and statistics for reports."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from mpilab.errors import InputError
from mpilab.grading.decisions import Effective, EffectiveExercise
from mpilab.grading.gradebook import effective
from mpilab.grading.marks import is_unisolated, opened, unconfirmed_exercises
from mpilab.judging import rubric
from mpilab.judging.verdict import ABSENT, FAIL, UNGRADABLE
from mpilab.util.kit import ROOT
from mpilab.util.text import plain

LISTED = 10  # students in an error message

_CASE = re.compile(r"^With [^:]*: ")
_QUOTED = re.compile(r"'[^']*'|‘[^’]*’|“[^”]*”|\"[^\"]*\"")
_NUMBER = re.compile(
    r"(?<![\w#])[+-]?(?:0x[0-9a-f]+|\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)", re.IGNORECASE
)
_LIST = re.compile(r"#(?:(?:, | and | to |, and )#)+")
_CHAIN = re.compile(r"((?: [a-z]+)+ #)\1+")

NONE, LESS, HALF, FULL, OPEN = "no points", "less than half", "half or more", "all points", "open"
BANDS = (NONE, LESS, HALF, FULL, OPEN)
BINS = 10


@dataclass(frozen=True)
class ClassMarks:
    """All marks of a lab.

    title     the lab's title; its id if the lab is not in this copy of mpilab
    students  a list of Effective, sorted by student
    seconds   {student: wall seconds that grading took}, where known
    """

    lab: str
    title: str
    students: list[Effective]
    seconds: dict[str, float]

    @property
    def points(self) -> float:
        """The points possible: the maximum over students, as a missing submission may have none."""
        return max(each.points for each in self.students)

    @property
    def exercises(self) -> dict[str, tuple[str, float]]:
        """{exercise id: (title, points)} in the lab's order."""
        return {
            each.exercise: (each.title or each.exercise, each.points)
            for student in self.students
            for each in student.exercises
        }

    @property
    def unfinished(self) -> list[Effective]:
        """The students without a final mark, ungradable ones first."""
        waiting = [each for each in self.students if each.status != "graded"]
        return sorted(waiting, key=lambda each: (each.status != "ungradable", each.student))


def class_marks(out: str | Path, lab: str) -> ClassMarks:
    """The ClassMarks of a lab from the folder `out` that `mpilab grade` has filled.

    Raises InputError if there is no gradebook, or no verdict on this lab in it.
    """
    with opened(out, lab) as book:
        students = effective(book, lab)
        runs = book.newest(lab)
    if not students:
        raise InputError(f"{out}: no verdict on lab {lab!r}; check --lab, or grade the lab first")
    seconds = {run.verdict.student: run.seconds for run in runs if run.seconds is not None}
    return ClassMarks(lab, _title(lab), students, seconds)


def require_final(marks: ClassMarks, partial: bool) -> set[str]:
    """The set of students without a final mark, which must not be exported, and never as zero.

    If there are any, raises InputError with a list of them unless `partial`.
    """
    waiting = marks.unfinished
    if waiting and not partial:
        listed = [f"  {plain(each.student)}: {why_unfinished(each)}" for each in waiting[:LISTED]]
        if len(waiting) > LISTED:
            listed.append(f"  and {len(waiting) - LISTED} more")
        raise InputError(
            f"{len(waiting)} of {len(marks.students)} students have no final mark in {marks.lab}; "
            "finish their grading (mpilab marks), or leave their cells empty with --partial:\n"
            + "\n".join(listed)
        )
    return {each.student for each in waiting}


def why_unfinished(student: Effective) -> str:
    """Why an Effective has no final mark, in one line."""
    if student.status == ABSENT:
        return "nothing was handed in; for 0 points: mpilab marks absent --zero"
    if student.status == "ungradable":
        return "ungradable: " + "; ".join(ungradable_reasons(student))
    items = [f"{each.exercise}" for each in student.exercises if each.awarded is None]
    return f"awaiting manual grading: {', '.join(items)}"


def ungradable_reasons(student: Effective) -> list[str]:
    """Why an Effective is ungradable: its own reason, or one for each ungradable exercise."""
    if student.reason:
        return [one_line(student.reason)]
    return [
        f"{exercise.exercise}: {one_line(reasons[0]) or 'no reason given'}"
        for exercise in student.exercises
        if (
            reasons := [
                item.reason
                for item in exercise.items
                if item.outcome == UNGRADABLE and item.awarded is None
            ]
        )
    ]


def one_line(text: str) -> str:
    """The first line of a text, or the last line of a traceback, cut to 300 characters."""
    lines = [line.strip() for line in plain(text).split("\n") if line.strip()] or [""]
    line, trace, _ = lines[0].partition("Traceback (most recent call last):")
    line += lines[-1] * bool(trace)
    return line if len(line) <= 300 else line[:299] + "…"


def _title(lab: str) -> str:
    path = ROOT / "grading" / lab / "rubric.toml"
    return rubric.load(path).title if path.is_file() else lab


# The most common failures of a class: reasons that differ only in numbers and names are grouped.


@dataclass(frozen=True)
class Failure:
    """Students who lost the same items of an exercise for the same kind of reason.

    items     pairs (item id, title)
    students  their names, sorted
    example   (student, reason) of one of them
    """

    exercise: str
    items: tuple[tuple[str, str], ...]
    students: tuple[str, ...]
    example: tuple[str, str]


def kind_of(reason: str) -> str:
    """A reason without its case, numbers and quoted names: equal for reasons of the same kind."""
    text = _CASE.sub("", one_line(reason))
    text = _NUMBER.sub("#", _QUOTED.sub("'…'", text))
    text = _LIST.sub("#", text)
    # The length of a circular wait depends on the case.
    return _CHAIN.sub(r"\1", text)


def failures(students: Sequence[Effective]) -> list[Failure]:
    """The Failures in a list of Effective, those with most students first."""
    # (exercise, kind) -> item -> {student: reason}
    groups: dict[tuple[str, str], dict[str, dict[str, str]]] = defaultdict(dict)
    titles = {}
    for student in students:
        for exercise in student.exercises:
            for item in exercise.items:
                if item.outcome == FAIL:
                    group = groups[exercise.exercise, kind_of(item.reason)]
                    group.setdefault(item.item, {})[student.student] = item.reason
                    titles[exercise.exercise, item.item] = item.title or item.item
    found = []
    for (lost, _), items in groups.items():
        # One mistake often loses several items: report items lost by the same students once.
        together: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for name, reasons in items.items():
            together[tuple(sorted(reasons))].append(name)
        for who, names in together.items():
            example = (who[0], one_line(items[names[0]][who[0]]))
            pairs = tuple((name, titles[lost, name]) for name in names)
            found.append(Failure(lost, pairs, who, example))
    order = list(dict.fromkeys(each.exercise for student in students for each in student.exercises))
    found.sort(key=lambda each: (-len(each.students), order.index(each.exercise), each.example))
    return found


def without_name(text: str, student: str) -> str:
    """A text with the student's name replaced by STUDENT."""
    if not student.strip():
        return text
    return re.sub(rf"(?<!\w){re.escape(student)}(?!\w)", "STUDENT", text, flags=re.IGNORECASE)


# Statistics of a class: distribution of marks, lost items, grading time.


@dataclass(frozen=True)
class Lost:
    """How many students lost points on an item, of how many judged, and why.

    reasons   (number of students, one of their reasons, without its author's name) for each kind of
              reason, the most frequent first. Points that were taken by hand have none.
    """

    exercise: str
    item: str
    title: str
    points: float
    students: int
    judged: int
    reasons: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class Summary:
    """The contents of a report.

    statuses     {status: number of students}
    totals       final totals, sorted
    bins         (from, to, number of students) of what is `shown`; the last one includes its end
    bands        {exercise: {one of BANDS: number of students}}
    lost         a Lost for each item on which anyone lost points, most students first
    failures     list of Failure
    ungradable   (reason, students), most students first
    waiting      {exercise: number of students whose text awaits manual grading}
    pending      points of the items that await manual grading for at least one student
    subtotals    points of each student without those items, before penalties, sorted; only of
                 students of whom all other items are judged. Empty if nothing is pending.
    unconfirmed  {exercise: number of students whose points no simulation has confirmed}
    unisolated   number of students whose C answers were not judged in the jail
    seconds      known wall seconds of the submissions, sorted
    """

    marks: ClassMarks
    statuses: dict[str, int]
    totals: list[float]
    bins: list[tuple[float, float, int]]
    bands: dict[str, dict[str, int]]
    lost: list[Lost]
    failures: list[Failure]
    ungradable: list[tuple[str, list[str]]]
    waiting: dict[str, int]
    pending: float
    subtotals: list[float]
    unconfirmed: dict[str, int]
    unisolated: int
    seconds: list[float]

    @property
    def is_early(self) -> bool:
        """True if more students await manual grading than have a final mark.

        The final marks are then those of students without a text, and say little of the class.
        """
        return self.statuses.get("awaiting-manual", 0) > self.statuses.get("graded", 0)

    @property
    def shown(self) -> list[float]:
        """What `bins` and `middle` are of: the totals, or the subtotals while it `is_early`."""
        return self.subtotals if self.is_early else self.totals

    @property
    def most(self) -> float:
        """The maximum of what is `shown`."""
        return self.marks.points - (self.pending if self.is_early else 0)

    @property
    def middle(self) -> tuple[float, float] | None:
        """(mean, median) of what is `shown`; None if there is nothing."""
        return (mean(self.shown), median(self.shown)) if self.shown else None


def summary(marks: ClassMarks) -> Summary:
    """The Summary of ClassMarks; of students who handed in nothing, only their number counts."""
    students = [each for each in marks.students if not each.is_absent]
    final = [each.total for each in students if each.status == "graded"]
    totals = sorted(total for total in final if total is not None)
    pending, subtotals = _subtotals(students)
    found = Summary(
        marks,
        dict(Counter(ABSENT if each.is_absent else each.status for each in marks.students)),
        totals,
        [],
        _bands(replace(marks, students=students)),
        _lost(students),
        failures(students),
        _ungradable(students),
        _waiting(students),
        pending,
        subtotals,
        dict(Counter(name for each in students for name in unconfirmed_exercises(each))),
        sum(map(is_unisolated, students)),
        sorted(marks.seconds.values()),
    )
    return replace(found, bins=_bins(found.shown, found.most))


def _bins(totals: Iterable[float], most: float) -> list[tuple[float, float, int]]:
    """A histogram of the totals with ten equal bins from 0 to `most`."""
    edges = [most * number / BINS for number in range(BINS + 1)]
    counts = [0] * BINS
    for total in totals:
        counts[min(int(BINS * total / most), BINS - 1) if most else 0] += 1
    return list(zip(edges, edges[1:], counts, strict=False))


def _bands(marks: ClassMarks) -> dict[str, dict[str, int]]:
    bands = {exercise: dict.fromkeys(BANDS, 0) for exercise in marks.exercises}
    for student in marks.students:
        for exercise in student.exercises:
            bands[exercise.exercise][_band(exercise)] += 1
    return bands


def _band(exercise: EffectiveExercise) -> str:
    if exercise.awarded is None:
        return OPEN
    if exercise.awarded >= exercise.points:
        return FULL
    if exercise.awarded <= 0:
        return NONE
    return HALF if exercise.awarded * 2 >= exercise.points else LESS


def _lost(students: Iterable[Effective]) -> list[Lost]:
    lost: Counter[tuple[str, str]] = Counter()
    judged: Counter[tuple[str, str]] = Counter()
    known: dict[tuple[str, str], tuple[str, float]] = {}
    kinds: dict[tuple[str, str], dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for student in students:
        for exercise in student.exercises:
            for item in exercise.items:
                name = (exercise.exercise, item.item)
                known.setdefault(name, (item.title or item.item, item.points))
                judged[name] += item.awarded is not None
                is_lost = item.awarded is not None and item.awarded < item.points
                lost[name] += is_lost
                if is_lost and item.outcome == FAIL and item.reason:
                    reason = without_name(one_line(item.reason), student.student)
                    kinds[name][kind_of(reason)].append(reason)
    found = [
        Lost(*name, title, most, lost[name], judged[name], _counted(kinds[name]))
        for name, (title, most) in known.items()
        if lost[name]
    ]
    return sorted(found, key=lambda each: -each.students)


def _counted(kinds: Mapping[str, Sequence[str]]) -> tuple[tuple[int, str], ...]:
    """(number of reasons, the first of them) for each kind, the most frequent first."""
    found = [(len(reasons), reasons[0]) for reasons in kinds.values()]
    return tuple(sorted(found, key=lambda each: -each[0]))


def _ungradable(students: Iterable[Effective]) -> list[tuple[str, list[str]]]:
    groups: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for student in students:
        if student.status == "ungradable":
            for reason in ungradable_reasons(student):
                reason = without_name(reason, student.student)
                groups[kind_of(reason)].append((student.student, reason))
    found = [(group[0][1], [name for name, _ in group]) for group in groups.values()]
    return sorted(found, key=lambda each: -len(each[1]))


def _subtotals(students: Iterable[Effective]) -> tuple[float, list[float]]:
    """(points that are pending for anyone, sorted points of the students without these items)."""
    students = list(students)
    pending = {
        (exercise.exercise, item.item): item.points
        for student in students
        for exercise in student.exercises
        for item in exercise.waiting
    }
    if not pending:
        return 0.0, []
    found = []
    for student in students:
        awarded: list[float | None] = []
        for exercise in student.exercises:
            open_ones = [i for i in exercise.items if (exercise.exercise, i.item) in pending]
            if open_ones:
                awarded += [item.awarded for item in exercise.items if item not in open_ones]
            else:
                awarded.append(exercise.awarded)  # with an override of the whole exercise
        known = [value for value in awarded if value is not None]
        if student.exercises and len(known) == len(awarded):
            found.append(sum(known))
    return sum(pending.values()), sorted(found)


def _waiting(students: Iterable[Effective]) -> dict[str, int]:
    waiting = Counter(each.exercise for s in students for each in s.exercises if each.waiting)
    return dict(waiting)
