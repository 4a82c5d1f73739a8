"""The evidence of an item as a page of feedback shows it: text, tables, lines of the answer, a
picture. Everything is made harmless here, or escaped by the template."""

import base64
from collections.abc import Mapping, Sequence

from mpilab.plain import plain

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
# Evidence that has a place of its own on the page.
_SPECIAL = {"table", "source", "lines", "hint", "svg", "svg_alt", "reproduce"}


def evidence_view(item, answer):
    """The evidence of an item, sorted into what the template knows to draw."""
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
        if 1 <= line <= len(lines):
            excerpt = listing(answer, marked_lines(evidence), around=line)
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
        "pairs": pairs,
        "tables": tables,
        "excerpt": excerpt,
        "image": drawn,
        "hint": _text(evidence.get("hint") or ""),
        "reproduce": _text(evidence["reproduce"]) if evidence.get("reproduce") else "",
    }


def shown(value):
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


def _source(evidence):
    """(line, text) of the evidence's 'source', or None."""
    source = evidence.get("source")
    if isinstance(source, Mapping) and isinstance(source.get("line"), int):
        return source["line"], str(source.get("text") or "")
    return None


def marked_lines(evidence):
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


def listing(answer, marked, around=None):
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


def image(svg, alt, caption):
    """A drawing of ours, for the template."""
    # As an image, an SVG can neither run scripts nor load anything.
    data = base64.b64encode(svg.encode()).decode()
    return {
        "url": f"data:image/svg+xml;base64,{data}",
        "alt": plain(alt),
        "caption": plain(caption),
    }
