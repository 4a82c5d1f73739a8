"""One page of feedback for one student: a single HTML file that needs nothing but itself.

The page holds text that a student controls (answers, output, names), and a teacher opens it. So
everything is escaped, there is no script, and the page's own policy forbids one.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import jinja2

from mpilab.grading.decisions import POINTS
from mpilab.grading.release import answer_id
from mpilab.plain import plain
from mpilab.verdict import FAIL, MANUAL, PASS, UNGRADABLE

OUTPUT_CHARACTERS, OUTPUT_LINES = 4_000, 60
ALL_OUTPUT_CHARACTERS = 200_000
VALUE_CHARACTERS = 2_000
TABLE_ROWS = 64
CONTEXT_LINES = 5
LISTING_LINES = 400

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
_LABELS = {
    "p": "ranks",
    "procs": "ranks",
    "rank": "on rank",
    "line": "line of your answer",
    "got": "what arrived",
    "op": "operation",
    "segment": "segment, in bytes",
    "fanout": "fan-out",
}
# Evidence that has a place of its own on the page.
_CASE = ("ranks", "count", "datatype", "root", "op", "segment", "fanout", "radix", "places",
         "reproduce")  # fmt: skip
_SPECIAL = {"table", "source", "lines", "hint", "svg", "svg_alt", "reproduce"}


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


def printed(notebook):
    """What the code cells of a notebook printed, as a list of dicts (where, kind, text, note).

    Streams, text/plain and tracebacks only, without colour codes; each is cut at 4,000 characters
    or 60 lines, all together at 200,000 characters, and `note` says what was left out. Cells that
    the grader injected stay unnamed and unshown: they hold the hidden parameters.
    """
    shown, left = [], ALL_OUTPUT_CHARACTERS
    for number, cell in enumerate(notebook.cells, start=1):
        injected = "injected-parameters" in cell.metadata.get("tags", ())
        if cell.cell_type != "code" or injected:
            continue
        name = answer_id(cell)
        where = f"Cell {number}" + (f" (your answer “{plain(name)}”)" if name else "")
        for output in cell.get("outputs", ()):
            kind, text = _output_text(output)
            text = plain(text).strip("\n")
            if not text.strip():
                continue
            if left <= 0:
                shown.append(
                    {"where": where, "kind": "", "text": "", "note": "The rest is left out here."}
                )
                return shown
            text, note = _cut(text)
            left -= len(text)
            shown.append({"where": where, "kind": kind, "text": text, "note": note})
    return shown


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
    lines = {line for item in items if item.outcome != PASS for line in _marked(item.evidence)}
    return {
        "id": exercise.exercise,
        "number": number,
        "said": f"The points were set by a person: {plain(decision.reason)}" if decision else "",
        "title": plain(exercise.title or exercise.exercise),
        "awarded": _points(exercise.awarded),
        "points": _points(exercise.points),
        "items": [_item_view(item, answer) for item in _told_once(items)],
        "views": [_image(view["svg"], view["alt"], view.get("caption", "")) for view in views],
        "answer": _listing(answer, lines) if answer and answer.strip() else None,
    }


def _told_once(items):
    """The items, those with the mistake of one before them without saying all of it again."""
    seen = set()
    for item in items:
        mistake = (item.evidence.get("hint"), tuple(sorted(_marked(item.evidence))))
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
        "evidence": _evidence_view(item, answer) if _shown(item.evidence) else None,
    }


def _by_a_person(decision, item):
    """(word, reason) of an item whose points a person has given."""
    if decision.kind == POINTS:
        return "read by a person", decision.reason
    judged = f" (before: {_OUTCOMES[item.outcome][1]}. {item.reason})" if item.reason else ""
    return "set by a person", f"{decision.reason}{judged}"


def _evidence_view(item, answer):
    """The evidence of an item, sorted into what the template knows to draw."""
    evidence = _shown(item.evidence)
    pairs, tables = [], []
    for name, value in evidence.items():
        if _is_rows(value):
            tables.append(_table("" if name == "table" else _label(name), value))
        elif name not in _SPECIAL and value is not None and value != "":
            text = _text(value)
            pairs.append({"label": _label(name), "text": text, "block": "\n" in text})
    excerpt = None
    if (source := _source(evidence)) is not None:
        line, text = source
        lines = answer.split("\n") if answer else []
        if 1 <= line <= len(lines):
            excerpt = _listing(answer, _marked(evidence), around=line)
        elif text:
            excerpt = {
                "lines": [{"number": line, "text": plain(text), "marked": True}],
                "note": "",
                "wrap": True,
            }
    image = None
    if evidence.get("svg"):
        alt = evidence.get("svg_alt") or f"Picture of what happened: {item.reason or item.title}"
        image = _image(evidence["svg"], alt, "What the ranks called, step by step")
    elif evidence.get("svg_alt"):
        text = _text(evidence["svg_alt"])
        pairs.append({"label": _label("picture"), "text": text, "block": False})
    return {
        "pairs": pairs,
        "tables": tables,
        "excerpt": excerpt,
        "image": image,
        "hint": _text(evidence.get("hint") or ""),
        "reproduce": _text(evidence["reproduce"]) if evidence.get("reproduce") else "",
    }


def _shown(value):
    """`value` without the entries, at any depth, whose names begin with '_'."""
    if isinstance(value, Mapping):
        return {
            name: _shown(each)
            for name, each in value.items()
            if not (isinstance(name, str) and name.startswith("_"))
        }
    if isinstance(value, (list, tuple)):
        return [_shown(each) for each in value]
    return value


def _source(evidence):
    """(line, text) of the evidence's 'source', or None."""
    source = evidence.get("source")
    if isinstance(source, Mapping) and isinstance(source.get("line"), int):
        return source["line"], str(source.get("text") or "")
    return None


def _marked(evidence):
    """Line numbers of the answer that the evidence speaks of."""
    source, lines = _source(evidence), evidence.get("lines")
    more = lines if isinstance(lines, (list, tuple)) else ()
    return ({source[0]} if source else set()) | {line for line in more if isinstance(line, int)}


def _is_rows(value):
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and bool(value)
        and all(isinstance(row, Mapping) for row in value)
    )


def _table(caption, rows):
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "caption": caption,
        "columns": [_label(name) if name != "rank" else "Rank" for name in columns],
        "rows": [[_text(row.get(name, "")) for name in columns] for row in rows[:TABLE_ROWS]],
        "note": f"{len(rows) - TABLE_ROWS} more rows are left out."
        if len(rows) > TABLE_ROWS
        else "",
    }


def _label(name):
    name = plain(name)
    words = _LABELS.get(name.lower(), name.replace("_", " ").strip())
    return words[:1].upper() + words[1:]


def _text(value):
    """A value of the evidence as text."""
    if value is None:
        return "–"
    if hasattr(value, "tolist"):  # numpy's scalars and arrays
        value = value.tolist()
    if isinstance(value, bool):
        text = "yes" if value else "no"
    elif isinstance(value, float):
        text = f"{value:.10g}"
    elif isinstance(value, Mapping):
        text = ", ".join(f"{_text(name)}: {_text(each)}" for name, each in value.items())
    elif isinstance(value, (list, tuple)):
        text = ", ".join(_text(each) for each in value)
    else:
        text = plain(value)
    if len(text) > VALUE_CHARACTERS:
        text = f"{text[:VALUE_CHARACTERS]} … ({len(text) - VALUE_CHARACTERS} characters more)"
    return text


def _listing(answer, marked, around=None):
    """Lines of an answer with their numbers; only those near the line `around` if given."""
    lines = [plain(line)[:VALUE_CHARACTERS] for line in answer.split("\n")]
    first, last = 1, min(len(lines), LISTING_LINES)
    if around is not None:
        first, last = max(1, around - CONTEXT_LINES), min(len(lines), around + CONTEXT_LINES)
    return {
        "lines": [
            {"number": number, "text": lines[number - 1], "marked": number in marked}
            for number in range(first, last + 1)
        ],
        # Prose comes as one long line a paragraph; code keeps its shape.
        "wrap": any(len(line) > 160 for line in lines),
        "note": f"{len(lines) - last} more lines are left out."
        if around is None and last < len(lines)
        else "",
    }


def _image(svg, alt, caption):
    # As an image, an SVG can neither run scripts nor load anything.
    data = base64.b64encode(svg.encode()).decode()
    return {
        "url": f"data:image/svg+xml;base64,{data}",
        "alt": plain(alt),
        "caption": plain(caption),
    }


def _output_text(output):
    """(kind, text) of one output of a cell; the text is empty where it printed none."""
    if output.output_type == "stream":
        return ("error stream" if output.get("name") == "stderr" else "printed"), output.text
    if output.output_type == "error":
        return "error", "\n".join(output.traceback) or f"{output.ename}: {output.evalue}"
    return "value", output.get("data", {}).get("text/plain", "")


def _cut(text):
    """`text` within the limits, and a note on what was cut, '' where nothing was."""
    lines = text.split("\n")
    short = "\n".join(lines[:OUTPUT_LINES])[:OUTPUT_CHARACTERS]
    if short == text:
        return text, ""
    return short, (
        f"Cut here: {len(text) - len(short):,} of {len(text):,} characters "
        f"({len(lines):,} lines) are left out."
    )


def _points(value):
    return "–" if value is None else f"{round(value, 4) + 0.0:.10g}"
