"""One page of feedback for one student: a single HTML file that needs nothing but itself.

The page holds text that a student controls (answers, output, names), and a teacher opens it. So
everything is escaped, there is no script, and the page's own policy forbids one.
"""

from dataclasses import replace
from functools import cache
from pathlib import Path

import jinja2

from mpilab.grading.decisions import POINTS
from mpilab.grading.evidence_view import evidence_view, image, listing, marked_lines, shown
from mpilab.grading.printed_output import printed
from mpilab.plain import plain
from mpilab.verdict import FAIL, MANUAL, PASS, UNGRADABLE

# What was missed comes first; the symbol stands beside a word, never alone.
_OUTCOMES = {
    FAIL: ("✗", "not yet"),
    UNGRADABLE: ("?", "could not be judged"),
    MANUAL: ("…", "a person reads it"),
    PASS: ("✓", "passed"),
}
_STATUS = {
    "graded": "graded",
    "ungradable": "could not be judged",
    "awaiting-manual": "waiting for a person to read it",
}
# Which case it was.
_CASE = ("ranks", "count", "datatype", "root", "op", "segment", "fanout", "radix", "places",
         "reproduce")  # fmt: skip


def render(verdict, *, notebook=None, answers=None, lab_title="", recording_views=None, note=""):
    """The feedback page for a SubmissionVerdict, as a str to be written as UTF-8.

    notebook         the executed notebook; the text that its cells printed is shown.
    answers          dict of grade_id (= exercise) to the student's source, for the listings.
    lab_title        the lab's name for people; its id where empty.
    recording_views  dict of exercise to a list of {"svg": str, "alt": str, "caption": str}: our
                     own drawings of a recording, embedded as images.
    note             what was amiss when the notebook was run.

    Of an item's evidence, 'table' (a list of dicts) becomes a table, 'source' ({"line": n,
    "text": str}) and 'lines' (numbers) are highlighted in the answer, 'hint' stands first, 'svg'
    (with 'svg_alt', which alone says why there is none) is an image, 'reproduce' code to try; the
    rest is listed by name. A name that begins with '_' (a hidden seed) is never shown, at any
    depth.
    """
    answers = answers or {}
    views = recording_views or {}
    exercises = [
        exercise_view(
            exercise, number, answers.get(exercise.exercise), views.get(exercise.exercise, ())
        )
        for number, exercise in enumerate(verdict.exercises, start=1)
    ]
    return template("feedback.html.j2").render(
        student=plain(verdict.student),
        lab=plain(lab_title or verdict.lab),
        mark=mark_view(verdict),
        exercises=exercises,
        printed=printed(notebook) if notebook is not None else [],
        note=plain(note),
        sandbox=plain(verdict.sandbox),
    )


@cache
def template(name):
    """The template of this name, beside this module; whatever it is given is escaped."""
    # select_autoescape goes by file name and would not escape in a '.j2'.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def mark_view(verdict):
    """The marks of a SubmissionVerdict or an Effective, for the template."""
    items = [item for exercise in verdict.exercises for item in exercise.items]
    late = getattr(verdict, "late", None)
    decision = getattr(verdict, "decision", None)
    said = [f"The total was set by a person: {plain(decision.reason)}"] if decision else []
    if late and verdict.penalty:
        said.append(plain(late.reason))
    return {
        "status": verdict.status,
        "status_words": _STATUS[verdict.status],
        "reason": plain(verdict.reason),
        "total": _points(verdict.total),
        "out_of": _points(sum(item.points for item in items)) if items else "",
        "passed": sum(item.outcome == PASS for item in items),
        "count": len(items),
        "penalty": _points(verdict.penalty) if late and verdict.penalty else "",
        "said": said,
    }


def exercise_view(exercise, number, answer=None, views=()):
    """An ExerciseVerdict or EffectiveExercise, the lab's number `number`, for the template."""
    decision = getattr(exercise, "decision", None)
    order = list(_OUTCOMES)
    items = sorted(exercise.items, key=lambda item: order.index(item.outcome))
    lines = {line for item in items if item.outcome != PASS for line in marked_lines(item.evidence)}
    return {
        "id": exercise.exercise,
        "number": number,
        "said": f"The points were set by a person: {plain(decision.reason)}" if decision else "",
        "title": plain(exercise.title or exercise.exercise),
        "awarded": _points(exercise.awarded),
        "points": _points(exercise.points),
        "items": [_item_view(item, answer) for item in _told_once(items)],
        "views": [image(view["svg"], view["alt"], view.get("caption", "")) for view in views],
        "answer": listing(answer, lines) if answer and answer.strip() else None,
    }


def _told_once(items):
    """The items, those with the mistake of one before them without saying all of it again."""
    seen = set()
    for item in items:
        mistake = (item.evidence.get("hint"), tuple(sorted(marked_lines(item.evidence))))
        if item.outcome == PASS or not all(mistake):
            yield item
            continue
        if mistake in seen:
            case = {name: item.evidence[name] for name in _CASE if name in item.evidence}
            item = replace(item, evidence={**case, "note": "The same mistake as above."})
        seen.add(mistake)
        yield item


def _item_view(item, answer):
    symbol, word = _OUTCOMES[item.outcome]
    style, reason, decision = item.outcome, item.reason, getattr(item, "decision", None)
    if decision is not None:
        symbol, style = "✎", "given"
        word, reason = _by_a_person(decision, item)
    return {
        "title": plain(item.title or item.item),
        "outcome": item.outcome,
        "symbol": symbol,
        "word": word,
        "style": style,
        "awarded": _points(item.awarded),
        "points": _points(item.points),
        "reason": plain(reason),
        "evidence": evidence_view(item, answer) if shown(item.evidence) else None,
    }


def _by_a_person(decision, item):
    """(word, reason) of an item whose points a person has given."""
    if decision.kind == POINTS:
        return "read by a person", decision.reason
    judged = f" (before: {_OUTCOMES[item.outcome][1]}. {item.reason})" if item.reason else ""
    return "set by a person", f"{decision.reason}{judged}"


def _points(value):
    return "–" if value is None else f"{round(value, 4) + 0.0:.10g}"
