"""A rubric, and the proof of one, as text."""

from mpilab.grading.proving import BLANK, BUG, REFERENCE
from mpilab.rubric import KERNEL
from mpilab.verdict import FAIL


def rubric_table(rubric):
    """Exercises and items of a Rubric, with points, cases on Open MPI and in simulation."""
    rows = [("exercise", "item", "points", "real", "simulated", "title")]
    for exercise in rubric.exercises:
        for each in exercise.variants or (exercise,):
            rows.append((exercise.id, "", f"{each.points:g}", *_tried(each, each.items),
                         each.title))  # fmt: skip
            rows += [("", item.id, f"{item.points:g}", *_tried(each, [item]), item.title)
                     for item in each.items]  # fmt: skip
    total = sum(exercise.points for exercise in rubric.exercises)
    return f"{_aligned(rows)}\n\n{rubric.title}: {total:g} points"


def _tried(exercise, items):
    """What is tried, each case once: on Open MPI, and in simulation; calls of a Python function."""
    if exercise.kind == KERNEL:
        real = {case for item in items for case in item.cases}
        simulated = {case for item in items for case in item.simulated}
        return str(len(real)), str(len(real | simulated))
    calls = {repr(call) for item in items for call in item.arguments}
    return (f"{len(calls)} calls" if calls else "a person"), ""


def proof_table(proof):
    """A line for each answer of a Proof: what it must lose, what it lost, and its points."""
    rows = [("exercise", "answer", "must lose", "lost", "points", "ok")]
    for each in proof.proved:
        items = [item for item, wanted in each.answer.wanted.items() if wanted == FAIL]
        verdict = each.verdicts[0]
        given = "a person's" if verdict.awarded is None else f"{verdict.awarded:g}"
        lost = [item.item for item in verdict.items if item.outcome == FAIL]
        rows.append((each.answer.exercise, each.answer.name, _named(items, verdict),
                     _named(lost, verdict), f"{given} of {verdict.points:g}",
                     "NO" if each.deviations else "yes"))  # fmt: skip
    return _aligned(rows)


def counts(proof):
    """The last line: how many answers there were, and how many deviations."""
    roles = ", ".join(f"{proof.count(role)} {words}" for role, words in (
        (REFERENCE, "references"), (BLANK, "blanks"), (BUG, "seeded bugs")))  # fmt: skip
    runs = "once" if proof.runs == 1 else f"{proof.runs} times"
    cases = len(proof.deviations)
    said = f"{cases} deviation{'s' * (cases != 1)}" if cases else "all as it should be"
    return f"{proof.lab}: {roles}, each judged {runs}: {said}"


def _named(items, verdict):
    if not items:
        return "-"
    return "all" if len(items) == len(verdict.items) else " ".join(items)


def _aligned(rows):
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
