"""A class in numbers: how marks are distributed, which items were lost, how long grading took."""

from collections import Counter, defaultdict
from dataclasses import dataclass
from statistics import mean, median

from mpilab.instructor.failures import failures, kind_of, without_name
from mpilab.instructor.marks import ungradable_reasons

NONE, LESS, HALF, FULL, OPEN = "no points", "less than half", "half or more", "all points", "open"
BANDS = (NONE, LESS, HALF, FULL, OPEN)
BINS = 10


@dataclass(frozen=True)
class Lost:
    """An item: how many students lost points on it, of how many who have been judged."""

    exercise: str
    item: str
    title: str
    points: float
    students: int
    judged: int


@dataclass(frozen=True)
class Summary:
    """What a report tells.

    statuses   {status: students}
    totals     final totals, sorted
    bins       (from, to, students) of the totals; the last one includes its end
    bands      {exercise: {one of BANDS: students}}
    lost       Lost of every item that anybody lost, most students first
    failures   Failures, see mpilab.instructor.failures
    ungradable (reason, students) of what could not be judged, most students first
    waiting    {exercise: students whose text a person has yet to read}
    seconds    wall seconds of each submission that are known, sorted
    """

    marks: object
    statuses: dict
    totals: list
    bins: list
    bands: dict
    lost: list
    failures: list
    ungradable: list
    waiting: dict
    seconds: list

    @property
    def middle(self):
        """(mean, median) of the totals; None where there is no final one."""
        return (mean(self.totals), median(self.totals)) if self.totals else None


def summary(marks):
    """The Summary of ClassMarks."""
    totals = sorted(each.total for each in marks.students if each.status == "graded")
    return Summary(
        marks,
        dict(Counter(each.status for each in marks.students)),
        totals,
        _bins(totals, marks.points),
        _bands(marks),
        _lost(marks.students),
        failures(marks.students),
        _ungradable(marks.students),
        _waiting(marks.students),
        sorted(marks.seconds.values()),
    )


def _bins(totals, most):
    """Ten equal parts of 0 to `most`, and how many totals are in each."""
    edges = [most * number / BINS for number in range(BINS + 1)]
    counts = [0] * BINS
    for total in totals:
        counts[min(int(BINS * total / most), BINS - 1) if most else 0] += 1
    return list(zip(edges, edges[1:], counts, strict=False))


def _bands(marks):
    bands = {exercise: dict.fromkeys(BANDS, 0) for exercise in marks.exercises}
    for student in marks.students:
        for exercise in student.exercises:
            bands[exercise.exercise][_band(exercise)] += 1
    return bands


def _band(exercise):
    if exercise.awarded is None:
        return OPEN
    if exercise.awarded >= exercise.points:
        return FULL
    if exercise.awarded <= 0:
        return NONE
    return HALF if exercise.awarded * 2 >= exercise.points else LESS


def _lost(students):
    lost, judged, known = Counter(), Counter(), {}
    for student in students:
        for exercise in student.exercises:
            for item in exercise.items:
                name = (exercise.exercise, item.item)
                known.setdefault(name, (item.title or item.item, item.points))
                judged[name] += item.awarded is not None
                lost[name] += item.awarded is not None and item.awarded < item.points
    found = [Lost(*name, *known[name], lost[name], judged[name]) for name in known if lost[name]]
    return sorted(found, key=lambda each: -each.students)


def _ungradable(students):
    groups = defaultdict(list)
    for student in students:
        if student.status == "ungradable":
            for reason in ungradable_reasons(student):
                reason = without_name(reason, student.student)
                groups[kind_of(reason)].append((student.student, reason))
    found = [(group[0][1], [name for name, _ in group]) for group in groups.values()]
    return sorted(found, key=lambda each: -len(each[1]))


def _waiting(students):
    waiting = Counter(each.exercise for s in students for each in s.exercises if each.waiting)
    return dict(waiting)
