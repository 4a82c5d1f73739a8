"""What goes wrong most often in a class: reasons that say the same about other numbers."""

import re
from collections import defaultdict
from dataclasses import dataclass

from mpilab.instructor.marks import one_line
from mpilab.verdict import FAIL

_CASE = re.compile(r"^With [^:]*: ")
_QUOTED = re.compile(r"'[^']*'|‘[^’]*’|“[^”]*”|\"[^\"]*\"")
_NUMBER = re.compile(
    r"(?<![\w#])[+-]?(?:0x[0-9a-f]+|\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?)", re.IGNORECASE
)
_LIST = re.compile(r"#(?:(?:, | and | to |, and )#)+")
_CHAIN = re.compile(r"((?: [a-z]+)+ #)\1+")


@dataclass(frozen=True)
class Failure:
    """Students who lost the same items of an exercise for the same kind of reason.

    items     pairs (item id, title)
    students  who, sorted
    example   (student, reason) of one of them
    """

    exercise: str
    items: tuple
    students: tuple
    example: tuple


def kind_of(reason):
    """What two reasons share that differ in the case, in numbers and in quoted names only."""
    text = _CASE.sub("", one_line(reason))
    text = _NUMBER.sub("#", _QUOTED.sub("'…'", text))
    text = _LIST.sub("#", text)
    # How long a circle of ranks is depends on the case.
    return _CHAIN.sub(r"\1", text)


def failures(students):
    """The Failures of a class, those of most students first, from a list of Effective."""
    groups = defaultdict(dict)  # (exercise, kind) -> item -> {student: reason}
    titles = {}
    for student in students:
        for exercise in student.exercises:
            for item in exercise.items:
                if item.outcome == FAIL:
                    group = groups[exercise.exercise, kind_of(item.reason)]
                    group.setdefault(item.item, {})[student.student] = item.reason
                    titles[exercise.exercise, item.item] = item.title or item.item
    found = []
    for (exercise, _), items in groups.items():
        # One mistake often loses several items: those that the same students lost are told once.
        together = defaultdict(list)
        for item, reasons in items.items():
            together[tuple(sorted(reasons))].append(item)
        for who, names in together.items():
            example = (who[0], one_line(items[names[0]][who[0]]))
            pairs = tuple((name, titles[exercise, name]) for name in names)
            found.append(Failure(exercise, pairs, who, example))
    order = list(dict.fromkeys(each.exercise for student in students for each in student.exercises))
    found.sort(key=lambda each: (-len(each.students), order.index(each.exercise), each.example))
    return found


def without_name(text, student):
    """A text without the name of the student whom it is about."""
    if not student.strip():
        return text
    return re.sub(rf"(?<!\w){re.escape(student)}(?!\w)", "STUDENT", text, flags=re.IGNORECASE)
