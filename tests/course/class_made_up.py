"""A class with a fabricated gradebook, for reports and exports."""

from mpilab.grading.gradebook import Gradebook
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

LAB = "77-made-up"
ITEMS = {"ring": ("any-size", "any-type"), "essay": ("text",)}


def verdict(student, outcomes, reasons=None, reason="", points=5.0):
    """A SubmissionVerdict: `outcomes` of ring's two items and the essay, in their order."""
    outcomes, reasons = iter(outcomes), dict(reasons or {})
    exercises = tuple(
        ExerciseVerdict(
            exercise,
            exercise.title(),
            tuple(
                ItemVerdict(item, f"{item} works", points, next(outcomes), reasons.get(item, ""))
                for item in items
            ),
        )
        for exercise, items in ITEMS.items()
    )
    return SubmissionVerdict(student, LAB, exercises, reason, "none")


def class_in(out, *verdicts, seconds=2.0):
    """A folder as `mpilab grade` leaves it, with the given verdicts as the newest."""
    out.mkdir(parents=True, exist_ok=True)
    with Gradebook(out / "gradebook.sqlite") as book:
        for each in verdicts:
            book.record(each, f"key of {each.student}", seconds=seconds)
    return out
