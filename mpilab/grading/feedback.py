"""The feedback page of a student, a single self-contained HTML file, and evidence as JSON.

The page contains text that a student controls (answers, output, names), and an instructor opens it.
So everything is escaped, and the page has no script and a policy that forbids scripts.
"""

import base64
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from mpilab.diagnosis.render import card, style
from mpilab.grading.decisions import (
    POINTS,
    Decision,
    Effective,
    EffectiveExercise,
    EffectiveItem,
)
from mpilab.grading.submission import printed
from mpilab.judging.verdict import (
    ABSENT,
    FAIL,
    MANUAL,
    PASS,
    UNGRADABLE,
    ExerciseVerdict,
    ItemVerdict,
    SubmissionVerdict,
)
from mpilab.util.text import plain

Judged = ItemVerdict | EffectiveItem

# Evidence as JSON and back; tuples, bytes and keys that are not strings are preserved.


def dumps(evidence: Any) -> str:
    """`evidence`, nested in any way, as JSON text."""
    return json.dumps(_plain(evidence))


def loads(text: str) -> Any:
    """The evidence in a text from `dumps`; numpy values and paths become plain Python values."""
    return _rich(json.loads(text))


def _plain(value: Any) -> Any:
    """Convert evidence to JSON types; `_rich` is the inverse."""
    if isinstance(value, dict):
        if all(isinstance(name, str) and not name.startswith("$") for name in value):
            return {name: _plain(each) for name, each in value.items()}
        return {"$dict": [[_plain(name), _plain(each)] for name, each in value.items()]}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if isinstance(value, tuple):
        return {"$tuple": [_plain(each) for each in value]}
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    if value is None or isinstance(value, (str, int, float)):
        return value
    # numpy scalars and arrays have tolist(); anything else becomes text.
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)


def _rich(value: Any) -> Any:
    if isinstance(value, list):
        return [_rich(each) for each in value]
    if isinstance(value, dict):
        if "$dict" in value:
            return {_rich(name): _rich(each) for name, each in value["$dict"]}
        if "$tuple" in value:
            return tuple(_rich(each) for each in value["$tuple"])
        if "$bytes" in value:
            return base64.b64decode(value["$bytes"])
        return {name: _rich(each) for name, each in value.items()}
    return value


# The evidence of an item on the page: text, tables, lines of the answer, a picture. Everything is
# sanitized here or escaped by the template. (Verdicts of an mpilab that kept no diagnoses have the
# words of a diagnosis in their evidence.)

VALUE_CHARACTERS = 2_000
TABLE_ROWS = 64
CONTEXT_LINES = 5
LISTING_LINES = 400

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
# Evidence with its own place on the page.
_SPECIAL = {"table", "source", "lines", "hint", "svg", "svg_alt", "reproduce"}


def evidence_view(item: Judged, name: str, answer: str | None) -> dict[str, Any]:
    """The diagnoses and the evidence of an item, sorted into the parts that the template shows.

    name   identifies the item on the page.
    """
    evidence = shown(item.evidence)
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
        if answer and 1 <= line <= len(lines):
            excerpt = listing(answer, marked_lines(item), around=line)
        elif text:
            excerpt = {
                "lines": [{"number": line, "text": plain(text), "marked": True}],
                "note": "",
                "wrap": True,
            }
    drawn = None
    if evidence.get("svg"):
        alt = evidence.get("svg_alt") or f"Picture of what happened: {item.reason or item.title}"
        drawn = image(evidence["svg"], alt, "What the ranks called, step by step")
    elif evidence.get("svg_alt"):
        text = _text(evidence["svg_alt"])
        pairs.append({"label": _label("picture"), "text": text, "block": False})
    return {
        "diagnoses": [
            card(diagnosis, f"{name}-{number}")
            for number, diagnosis in enumerate(item.diagnoses, start=1)
        ],
        "pairs": pairs,
        "tables": tables,
        "excerpt": excerpt,
        "image": drawn,
        "hint": _text(evidence.get("hint") or ""),
        "reproduce": _text(evidence["reproduce"]) if evidence.get("reproduce") else "",
    }


def shown(value: Any) -> Any:
    """`value` without the entries, at any depth, whose names begin with '_'."""
    if isinstance(value, Mapping):
        return {
            name: shown(each)
            for name, each in value.items()
            if not (isinstance(name, str) and name.startswith("_"))
        }
    if isinstance(value, (list, tuple)):
        return [shown(each) for each in value]
    return value


def _source(evidence: Mapping[str, Any]) -> tuple[int, str] | None:
    """(line, text) of the evidence's 'source', or None."""
    source = evidence.get("source")
    if isinstance(source, Mapping) and isinstance(source.get("line"), int):
        return source["line"], str(source.get("text") or "")
    return None


def marked_lines(item: Judged) -> set[int]:
    """The line numbers of the answer that the diagnoses and the evidence of an item name."""
    marked = {line for diagnosis in item.diagnoses for line in diagnosis.lines}
    source, lines = _source(item.evidence), item.evidence.get("lines")
    more = lines if isinstance(lines, (list, tuple)) else ()
    marked |= {line for line in more if isinstance(line, int)}
    return marked | {source[0]} if source else marked


def _is_rows(value: Any) -> bool:
    return (
        isinstance(value, Sequence)
        and not isinstance(value, (str, bytes))
        and bool(value)
        and all(isinstance(row, Mapping) for row in value)
    )


def _table(caption: str, rows: Sequence[Mapping[Any, Any]]) -> dict[str, Any]:
    columns = list(dict.fromkeys(name for row in rows for name in row))
    return {
        "caption": caption,
        "columns": [_label(name) if name != "rank" else "Rank" for name in columns],
        "rows": [[_text(row.get(name, "")) for name in columns] for row in rows[:TABLE_ROWS]],
        "note": f"{len(rows) - TABLE_ROWS} more rows are omitted."
        if len(rows) > TABLE_ROWS
        else "",
    }


def _label(name: Any) -> str:
    name = plain(name)
    words = _LABELS.get(name.lower(), name.replace("_", " ").strip())
    return words[:1].upper() + words[1:]


def _text(value: Any) -> str:
    """A value of the evidence as text."""
    if value is None:
        return "–"
    if hasattr(value, "tolist"):  # numpy scalars and arrays
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
        text = f"{text[:VALUE_CHARACTERS]} … ({len(text) - VALUE_CHARACTERS} more characters)"
    return text


def listing(answer: str, marked: Collection[int], around: int | None = None) -> dict[str, Any]:
    """The lines of an answer with their numbers; only those near the line `around`, if given."""
    lines = [plain(line)[:VALUE_CHARACTERS] for line in answer.split("\n")]
    first, last = 1, min(len(lines), LISTING_LINES)
    if around is not None:
        first, last = max(1, around - CONTEXT_LINES), min(len(lines), around + CONTEXT_LINES)
    return {
        "lines": [
            {"number": number, "text": lines[number - 1], "marked": number in marked}
            for number in range(first, last + 1)
        ],
        # In prose, each paragraph is one long line; code keeps its layout.
        "wrap": any(len(line) > 160 for line in lines),
        "note": f"{len(lines) - last} more lines are omitted."
        if around is None and last < len(lines)
        else "",
    }


def image(svg: str, alt: str, caption: str) -> dict[str, str]:
    """One of our own drawings, for the template."""
    # As an image, an SVG can neither run scripts nor load anything.
    data = base64.b64encode(svg.encode()).decode()
    return {
        "url": f"data:image/svg+xml;base64,{data}",
        "alt": plain(alt),
        "caption": plain(caption),
    }


# In the page's order, failed items first. A symbol always comes with a word.
_OUTCOMES = {
    FAIL: ("✗", "not yet"),
    UNGRADABLE: ("?", "could not be judged"),
    MANUAL: ("…", "graded manually"),
    PASS: ("✓", "passed"),
}
_STATUS = {
    "graded": "graded",
    "ungradable": "could not be judged",
    "awaiting-manual": "awaiting manual grading",
    ABSENT: "not handed in",
}
# The evidence that identifies a case.
_CASE = (
    "ranks",
    "count",
    "datatype",
    "root",
    "op",
    "segment",
    "fanout",
    "radix",
    "places",
    "reproduce",
)


def render(
    verdict: SubmissionVerdict,
    *,
    notebook: Any = None,
    answers: Mapping[str, str] | None = None,
    lab_title: str = "",
    recording_views: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
    note: str = "",
) -> str:
    """The feedback page for a SubmissionVerdict, as a str to be written as UTF-8.

    notebook         the executed notebook; the text that its cells printed is shown.
    answers          dict of grade_id (= exercise) to the student's source, for the listings.
    lab_title        the lab's title; if empty, its id is shown.
    recording_views  dict of exercise to a list of {"svg": str, "alt": str, "caption": str}: our
                     own drawings of a recording, embedded as images.
    note             what went wrong when the notebook was run.

    An item's diagnoses are shown as in the notebook (mpilab.diagnosis.render). In its evidence,
    'table' (a list of dicts) becomes a table, 'source' ({"line": n, "text": str}) and 'lines'
    (numbers) are highlighted in the answer, 'hint' comes first, 'svg' is an image with the text
    alternative 'svg_alt' (which, alone, says why there is no image), and 'reproduce' is code to
    try; the rest is listed by name. Names that begin with '_' (such as a
    hidden seed) are never shown, at any depth.
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
        diagnosis_style=Markup(style()),
    )


@cache
def template(name: str) -> jinja2.Template:
    """The template of this name in this folder; it escapes all values that it is given."""
    # select_autoescape decides by file name and would not escape in a '.j2' file.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(name)


def mark_view(verdict: SubmissionVerdict | Effective) -> dict[str, Any]:
    """The marks of a SubmissionVerdict or Effective, for the template."""
    items = [item for exercise in verdict.exercises for item in exercise.items]
    late = decision = None
    penalty = 0.0
    if isinstance(verdict, Effective):
        late, decision, penalty = verdict.late, verdict.decision, verdict.penalty
    said = [f"The total was set manually: {plain(decision.reason)}"] if decision else []
    if late and penalty:
        said.append(plain(late.reason))
    return {
        "status": verdict.status,
        "status_words": _STATUS[verdict.status],
        "reason": plain(verdict.reason),
        "total": _points(verdict.total),
        "out_of": _points(sum(item.points for item in items)) if items else "",
        "passed": sum(item.outcome == PASS for item in items),
        "count": len(items),
        "penalty": _points(penalty) if late and penalty else "",
        "said": said,
    }


def exercise_view(
    exercise: ExerciseVerdict | EffectiveExercise,
    number: int,
    answer: str | None = None,
    views: Sequence[Mapping[str, str]] = (),
) -> dict[str, Any]:
    """An ExerciseVerdict or EffectiveExercise, the `number`-th of the lab, for the template."""
    decision = getattr(exercise, "decision", None)
    order = list(_OUTCOMES)
    judged: list[Judged] = list(exercise.items)
    items = sorted(judged, key=lambda item: order.index(item.outcome))
    lines = {line for item in items if item.outcome != PASS for line in marked_lines(item)}
    return {
        "id": exercise.exercise,
        "number": number,
        "said": f"The points were set manually: {plain(decision.reason)}" if decision else "",
        "title": plain(exercise.title or exercise.exercise),
        "awarded": _points(exercise.awarded),
        "points": _points(exercise.points),
        "items": [
            _item_view(item, f"item-{number}-{place}", answer)
            for place, item in enumerate(_told_once(items), start=1)
        ],
        "views": [image(view["svg"], view["alt"], view.get("caption", "")) for view in views],
        "answer": listing(answer, lines) if answer and answer.strip() else None,
    }


def _told_once(items: Iterable[Judged]) -> Iterator[Judged]:
    """Yield the items; one that repeats an earlier mistake keeps only its case, as evidence."""
    seen = set()
    for item in items:
        hints = [item.evidence.get("hint"), *(each.hint for each in item.diagnoses)]
        mistake = (tuple(filter(None, hints)), tuple(sorted(marked_lines(item))))
        if item.outcome == PASS or not all(mistake):
            yield item
            continue
        if mistake in seen:
            case = {name: item.evidence[name] for name in _CASE if name in item.evidence}
            evidence = {**case, "note": "The same mistake as above."}
            item = replace(item, evidence=evidence, diagnoses=())
        seen.add(mistake)
        yield item


def _item_view(item: Judged, name: str, answer: str | None) -> dict[str, Any]:
    symbol, word = _OUTCOMES[item.outcome]
    style, reason, decision = item.outcome, item.reason, getattr(item, "decision", None)
    if decision is not None:
        symbol, style = "✎", "given"
        word, reason = _manual_words(decision, item)
    return {
        "title": plain(item.title or item.item),
        "outcome": item.outcome,
        "symbol": symbol,
        "word": word,
        "style": style,
        "awarded": _points(item.awarded),
        "points": _points(item.points),
        "reason": plain(reason),
        "unconfirmed": item.unconfirmed and decision is None,
        "evidence": evidence_view(item, name, answer)
        if item.diagnoses or shown(item.evidence)
        else None,
    }


def _manual_words(decision: Decision, item: Judged) -> tuple[str, str]:
    """(word, reason) of an item whose points were given manually."""
    if decision.kind == POINTS:
        return "graded manually", decision.reason
    judged = f" (before: {_OUTCOMES[item.outcome][1]}. {item.reason})" if item.reason else ""
    return "set manually", f"{decision.reason}{judged}"


def _points(value: float | None) -> str:
    return "–" if value is None else f"{round(value, 4) + 0.0:.10g}"
