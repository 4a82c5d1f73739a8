"""A fabricated graded class: a folder as `mpilab grade` leaves it, with free text."""

from mpilab.grading.feedback import render
from mpilab.grading.gradebook import Gradebook, key
from mpilab.judging.verdict import ExerciseVerdict, ItemVerdict, SubmissionVerdict

LAB = "02-allgather"
TEXTS = {
    "anna": "Every link is used once,\nand only neighbours talk.",
    "ben": '=HYPERLINK("http://x") <script>alert(1)</script>',
    "cleo": "It is faster; because it is.",
}
CRITERIA = (
    {"points": 5, "text": "the bytes of the busiest link"},
    {"points": 3, "text": "the number of rounds"},
)


def verdict(student, text, any_size="pass", second="The table has no errors bars."):
    """A kernel of 6 + 4 points, and two texts of 8 and 7."""
    items = (
        ItemVerdict("any", "Any P", 6.0, any_size, "P = 3: deadlock" * (any_size != "pass")),
        ItemVerdict("two", "Powers of two", 4.0, "pass"),
    )

    def waiting(points, *criteria):
        evidence = {"criteria": list(criteria)} if criteria else {}
        manually = "This is graded manually."
        return (ItemVerdict("text", "Explanation", points, "manual", manually, evidence),)

    exercises = (
        ExerciseVerdict("ring", "Ring allgather", items, f"int ring; // {student}", "r1"),
        ExerciseVerdict("why", "Why the ring wins", waiting(8.0, *CRITERIA), text, "r2"),
        ExerciseVerdict("table", "What the table says", waiting(7.0), second, "r3"),
    )
    return SubmissionVerdict(student, LAB, exercises, "", "none")


def unreadable(student, why="not valid JSON"):
    """A submission that could not be read, or, for NOT_HANDED_IN, none."""
    parts = tuple(
        ExerciseVerdict(
            each.exercise,
            each.title,
            tuple(
                ItemVerdict(i.item, i.title, i.points, "ungradable", "It could not be read.")
                for i in each.items
            ),
            None,
            each.rubric,
        )
        for each in verdict(student, "").exercises
    )
    return SubmissionVerdict(student, LAB, parts, why, "none")


def hand_in(out, given):
    """Record a verdict, and write its page, as grading does."""
    page = out / "feedback" / f"{given.student}.html"
    page.parent.mkdir(parents=True, exist_ok=True)
    answers = {each.exercise: each.answer for each in given.exercises if each.answer}
    page.write_text(render(given, answers=answers), encoding="utf-8")
    digest = key(given.student, given.reason, *answers.values())
    with Gradebook(out / "gradebook.sqlite") as book:
        book.record(
            given,
            key(digest, "rubric"),
            feedback=f"feedback/{page.name}",
            seconds=1.0,
            assignment="rubric one",
            submission=digest,
        )


def graded_class(out):
    """Three students whose texts await manual grading; the folder. Ben's ring deadlocks."""
    for student, text in TEXTS.items():
        hand_in(out, verdict(student, text, "fail" if student == "ben" else "pass"))
    return out
