"""Render a Diagnosis as HTML and as plain text.

`fragment` makes HTML for JupyterLab; `text` is for the terminal, papermill's output and the
feedback.
"""

import re
import secrets
import textwrap
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import quote

from mpilab.diagnosis.model import (
    COMPILE_ERROR,
    COMPILE_WARNING,
    CRASH,
    DEADLOCK,
    ERROR,
    LEAK,
    MPI_ERROR,
    SANITIZER,
    TIME_OUT,
    WRONG_RESULT,
)
from mpilab.util.text import plain

# Shared by HTML and text: titles, cuts, excerpts, cycles. A diagnosis quotes output of students'
# programs, which may contain terminal colors, control characters and endless lines. All of it
# passes through `plain` and is cut to a readable size, with a note of what was omitted.

TITLES = {
    DEADLOCK: ("✗", "Deadlock"),
    TIME_OUT: ("⏱", "Time-out"),
    CRASH: ("✗", "Crash"),
    SANITIZER: ("✗", "Caught by the sanitizer"),
    MPI_ERROR: ("✗", "MPI error"),
    WRONG_RESULT: ("✗", "Wrong result"),
    LEAK: ("⚠", "Leak"),
    COMPILE_ERROR: ("✗", "It does not compile"),
    COMPILE_WARNING: ("⚠", "Compiler warning"),
    ERROR: ("✗", "It could not be run"),
}
SPEAKERS = {
    COMPILE_ERROR: "the compiler",
    COMPILE_WARNING: "the compiler",
    SANITIZER: "the sanitizer",
}
# These accompany a correct result: worth knowing, but no cause for alarm.
MILD = (LEAK, COMPILE_WARNING)

SENTENCES_CHARACTERS = 1200
CELL_CHARACTERS, TABLE_ROWS, TABLE_COLUMNS, TABLES = 160, 64, 16, 8
PLACES, NOTES = 8, 12
PRINTED_LINES, ALL_PRINTED_LINES, LINE_CHARACTERS = 60, 240, 240
LOG_LINES = 60
TAB = 4


def title_of(kind):
    """(symbol, words) of a kind of diagnosis, e.g. ('✗', 'Deadlock')."""
    return TITLES[kind]


def headline(diagnosis):
    """The headline as a full sentence, without the kind, which is shown before it anyway."""
    said = sentence(diagnosis.headline)
    for name in (title_of(diagnosis.kind)[1], diagnosis.kind):
        if said.lower().startswith((f"{name.lower()}: ", f"{name.lower()} ")):
            said = said[len(name) :].removeprefix(":").lstrip()
            break
    first = said.partition(" ")[0]
    return said[:1].upper() + said[1:] if first.isalpha() else said


def speaker(kind):
    """The program that wrote the log of such a diagnosis."""
    return SPEAKERS.get(kind, "Open MPI")


def urgent(kind):
    """Whether the run or the build failed, so that a screen reader should announce it at once."""
    return kind not in MILD


def cut(text, most):
    """`text`, cleaned and cut to at most `most` characters; an ellipsis marks the cut."""
    text = plain(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def sentence(text, most=SENTENCES_CHARACTERS):
    """`text` for a paragraph: cut, with single spaces."""
    return cut(" ".join(plain(text).split()), most)


def last_lines(text, most):
    """(lines, number omitted) of `text`: its last `most` lines, long ones cut.

    A program's last output says most about how it ended.
    """
    lines = plain(text).rstrip("\n").split("\n")
    kept = [cut(line.expandtabs(TAB), LINE_CHARACTERS).rstrip() for line in lines[-most:]]
    return kept, max(0, len(lines) - most)


def printed(diagnosis):
    """((rank, lines, number of lines omitted), ...), and the ranks omitted entirely."""
    shown, left, omitted = [], ALL_PRINTED_LINES, []
    for rank, text in diagnosis.printed:
        if left <= 0:
            omitted.append(rank)
            continue
        lines, out = last_lines(text, min(PRINTED_LINES, left))
        left -= len(lines)
        shown.append((rank, lines, out))
    return tuple(shown), tuple(omitted)


def rows_of(table):
    """(columns, rows, number of rows omitted) of a Table, each cell a short str."""
    columns = [sentence(name, CELL_CHARACTERS) for name in table.columns[:TABLE_COLUMNS]]
    kept = [
        [sentence(cell, CELL_CHARACTERS) for cell in row[:TABLE_COLUMNS]]
        for row in table.rows[:TABLE_ROWS]
    ]
    return columns, kept, max(0, len(table.rows) - TABLE_ROWS)


def is_number(cell):
    """Whether the cell holds a number (or nothing) and is therefore right-aligned."""
    return re.fullmatch(r"-?[\d.,]*", cell) is not None


def cycle(ranks):
    """'0 → 1 → 0': the ranks in a circular wait; a long one is cut in the middle."""
    circle = [str(rank) for rank in (*ranks, *ranks[:1])]
    if len(circle) > 20:
        circle = [*circle[:10], "…", *circle[-4:]]
    return " → ".join(circle)


def waiting(ranks):
    """'rank 0 waits for rank 1, which waits for rank 0': a short cycle in words, or ''."""
    if not 1 <= len(ranks) <= 4:
        return ""
    first, *others = (*ranks[1:], ranks[0])
    return f"rank {ranks[0]} waits for rank {first}" + "".join(
        f", which waits for rank {rank}" for rank in others
    )


def numbered(count, noun):
    """'1 row', '2 rows'."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@dataclass(frozen=True)
class Row:
    """A row of an excerpt: line `number` ('' in rows without code), text, and kind."""

    number: str
    text: str
    kind: str  # 'code', 'pointer' or 'file'


def excerpt(places, width):
    """Rows that show the lines of `places`, each with a caret and its labels below.

    width  maximum characters of a row's text; longer lines are cut around their column.
    """
    merged = {}
    for place in places:
        merged.setdefault((place.file, place.line), []).append(place)
    shown = list(merged.items())[:PLACES]
    sources = {key: plain(group[0].text).replace("\n", " ") for key, group in shown}
    wide = [source.expandtabs(TAB) for source in sources.values() if source.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in wide), default=0)
    result, file = [], ""
    for (name, line), group in shown:
        if name != file:
            file = name
            result.append(
                Row("", f"in {cut(name, width - 4)}:" if name else "in the cell:", "file")
            )
        column = next((p.column for p in group if p.column), 0)
        code, caret = _window(sources[name, line], margin, column, width)
        result.append(Row(str(line), code, "code"))
        label = "; ".join(dict.fromkeys(sentence(p.label) for p in group if p.label))
        result += [Row("", text, "pointer") for text in _pointer(code, caret, label, width)]
    if len(merged) > PLACES:
        result.append(Row("", f"… and {numbered(len(merged) - PLACES, 'more line')}", "pointer"))
    return result


def _window(source, margin, column, width):
    """(text, caret): the part of `source` around `column` that fits; caret -1 without a column."""
    text = source.expandtabs(TAB)[margin:].rstrip()
    caret = max(0, len(source[: column - 1].expandtabs(TAB)) - margin) if column else -1
    if len(text) <= width:
        return text, caret
    start = min(max(0, caret - width // 2), len(text) - width)
    part = text[start : start + width]
    head, tail = "…" * (start > 0), "…" * (start + width < len(text))
    part = head + part[len(head) : len(part) - len(tail)] + tail
    return part, min(caret - start, width - 1) if column else -1


def _pointer(code, caret, label, width):
    """The rows under a line of code: a caret or an arrow, and the label."""
    if not label and caret < 0:
        return []
    sign = "^" if caret >= 0 else "↑"
    indent = caret if caret >= 0 else len(code) - len(code.lstrip())
    if indent + 2 + min(len(label), 30) <= width:
        hang = " " * (indent + 2)
        lines = textwrap.wrap(label, width - len(hang)) or [""]
        return [f"{' ' * indent}{sign} {lines[0]}".rstrip(), *(hang + line for line in lines[1:])]
    # No room to the right of the caret.
    return [" " * indent + sign, *textwrap.wrap(label, width)]


# HTML for JupyterLab: one compact card. JupyterLab removes the style sheet, the roles and every
# color that is a variable from an untrusted output. The rest is still readable: the order of the
# elements shows what belongs together, and JupyterLab keeps the few inline styles.

EXCERPT_WIDTH = 120
# Our own text and background colors where the theme's would not be legible: white on red 5.6:1,
# dark on amber 9.5:1, in every theme.
ALARM, MILD_CLASSES = ("#c62f26", "#ffffff"), ("#f5b54a", "#241a00")

_CARD = "margin:4px 0 8px;padding:10px 14px;border-left:5px solid {};border-radius:4px"
_BADGE = (
    "display:inline-block;padding:1px 10px;border-radius:10px;font-weight:600;"
    "background-color:{};color:{}"
)
_LEFT = ' style="text-align:left"'
_RIGHT = ' style="text-align:right"'


def fragment(diagnosis, log_link="", *, title=""):
    """HTML of the diagnosis, with all quoted text escaped and the size bounded.

    log_link  path of the full log, relative to the notebook; '' if it is not kept.
    title     what was run; shown above the headline.
    """
    name = f"mpilab-{secrets.token_hex(4)}"
    colours = ALARM if urgent(diagnosis.kind) else MILD_CLASSES
    parts = [
        _head(diagnosis, name, colours, title),
        _excerpt_html(diagnosis.places),
        _cycle_html(diagnosis.cycle),
        *(_table_html(table) for table in diagnosis.tables[:TABLES]),
        _notes(diagnosis.notes[:NOTES]),
        _printed_html(diagnosis),
        _log(diagnosis, log_link),
    ]
    mood = "alarm" if urgent(diagnosis.kind) else "mild"
    return (
        f"<style>{_style()}</style>"
        f'<section class="mpilab-panel mpilab-{mood}" aria-labelledby="{name}" '
        f'data-kind="{_text(diagnosis.kind)}" style="{_CARD.format(colours[0])}">'
        + "".join(parts)
        + "</section>"
    )


@cache
def _style():
    return Path(__file__).with_name("panel.css").read_text(encoding="utf-8").strip()


def _text(words_of_others):
    return escape(str(words_of_others), quote=True)


def _head(diagnosis, name, colours, title):
    """What a screen reader announces at once: kind, headline, hint; no tables, no log."""
    symbol, kind = title_of(diagnosis.kind)
    # The variation selector requests the text symbol instead of the emoji.
    badge = f'<span aria-hidden="true">{symbol}\ufe0e </span>{_text(kind)}'
    pattern = f" <strong>{_text(sentence(diagnosis.pattern))}</strong>"
    run = f'<span class="mpilab-run">{_text(sentence(title))}</span>'
    role = "alert" if urgent(diagnosis.kind) else "status"
    return (
        f'<div role="{role}" aria-labelledby="{name}">'
        f'<div class="mpilab-title" style="margin-bottom:6px"><span id="{name}">'
        f'<span class="mpilab-badge" style="{_BADGE.format(*colours)}">{badge}</span>'
        f"{pattern if diagnosis.pattern else ''}</span>"
        f"{f' {run}' if title else ''}</div>"
        f'<p class="mpilab-headline">{_text(headline(diagnosis))}</p>'
        f"{_hint(diagnosis.hint)}</div>"
    )


def _hint(hint):
    if not hint:
        return ""
    return f'<p class="mpilab-hint"><strong>What to try:</strong> {_text(sentence(hint))}</p>'


def _scrollable(kind, label, content, height="none"):
    """A scrollable part; it can take the focus, so the keyboard can scroll it."""
    return (
        f'<div class="mpilab-{kind}" role="region" aria-label="{_text(label)}" tabindex="0" '
        f'style="overflow:auto;max-height:{height}">{content}</div>'
    )


def _pre(content):
    return f'<pre style="white-space:pre">{content}</pre>'


def _excerpt_html(places):
    if not places:
        return ""
    digits = max(len(str(place.line)) for place in places)
    lines = []
    for row in excerpt(places, EXCERPT_WIDTH):
        if row.kind == "file":
            lines.append(f"<strong>{_text(row.text)}</strong>")
        elif row.kind == "code":
            lines.append(
                '<span class="mpilab-line"><span aria-hidden="true">▶</span> '
                f"{row.number:>{digits}} │ {_text(row.text)}</span>"
            )
        else:
            lines.append(f"<strong>  {'':{digits}} │ {_text(row.text)}</strong>")
    code = "\n".join(lines)
    return _scrollable("code", "Lines of the source", _pre(code))


def _cycle_html(ranks):
    if not ranks:
        return ""
    told = waiting(ranks)
    return (
        f'<p>Cycle of waiting: <strong class="mpilab-cycle">{_text(cycle(ranks))}</strong>'
        f"{f' ({_text(told)})' if told else ''}</p>"
    )


def _table_html(table):
    columns, rows, left_out = rows_of(table)
    title = sentence(table.title)
    numbers = [all(is_number(row[i]) for row in rows if i < len(row)) for i in range(len(columns))]
    sides = [_RIGHT if number else _LEFT for number in numbers]
    head = _cells(columns, sides, ["col"] * len(columns))
    # The first column holds row headers if its entries are distinct.
    firsts = [row[0] for row in rows if row]
    scopes = ["row" if len(set(firsts)) == len(firsts) else ""] + [""] * len(columns)
    body = "".join(f"<tr>{_cells(row, sides, scopes)}</tr>" for row in rows)
    more = f"<p>… and {numbered(left_out, 'more row')}</p>" if left_out else ""
    return _scrollable(
        "table",
        title,
        f"<table><caption{_LEFT}>{_text(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}",
    )


def _cells(row, sides, scopes):
    """The cells of a row; one with a scope ('row', 'col') is a header."""
    return "".join(
        f'<th scope="{scope}"{side}>{_text(cell)}</th>'
        if scope
        else f"<td{side}>{_text(cell)}</td>"
        for cell, side, scope in zip(row, sides, scopes, strict=False)
    )


def _notes(notes):
    if not notes:
        return ""
    items = "".join(f"<li>{_text(sentence(note))}</li>" for note in notes)
    return f'<ul class="mpilab-notes">{items}</ul>'


def _printed_html(diagnosis):
    shown, omitted = printed(diagnosis)
    if not shown:
        return ""
    blocks = []
    for rank, lines, left_out in shown:
        said = f", the last {len(lines)} of {len(lines) + left_out} lines" if left_out else ""
        content = _text("\n".join(lines))
        blocks.append(
            f"<p>rank {rank}{said}:</p>"
            + _scrollable("code", f"Printed by rank {rank}", _pre(content), "18em")
        )
    if omitted:
        more = numbered(len(omitted), "more rank")
        blocks.append(f"<p>Not shown: what {more} printed.</p>")
    ranks = ", ".join(str(rank) for rank, _ in diagnosis.printed[:16])
    ranks += ", …" if len(diagnosis.printed) > 16 else ""
    noun = "rank" if len(diagnosis.printed) == 1 else "ranks"
    return _fold(f"Printed by {noun} {ranks}", "".join(blocks))


def _log(diagnosis, link):
    parts = []
    if diagnosis.log.strip():
        lines, left_out = last_lines(diagnosis.log, LOG_LINES)
        said = f"<p>The last {len(lines)} of {len(lines) + left_out} lines:</p>" if left_out else ""
        content = _text("\n".join(lines))
        label = f"What {speaker(diagnosis.kind)} said"
        parts.append(_fold(label, said + _scrollable("code", label, _pre(content), "18em")))
    if link:
        parts.append(
            f'<p class="mpilab-log"><a href="{_text(quote(link))}" target="_blank">'
            f"Open the whole log</a> ({_text(link)})</p>"
        )
    return "".join(parts)


def _fold(summary, content):
    return f"<details><summary>{_text(summary)}</summary>{content}</details>"


# Plain text.

WIDTH = 100
INDENT = "  "
GAP = "  "


def text(diagnosis):
    """The diagnosis in lines of at most 100 columns, without the log and a final newline.

    The first line is the kind and the headline. Then follow what to try, the lines of the source,
    the circular wait, tables, notes, and what the ranks printed.
    """
    symbol, kind = title_of(diagnosis.kind)
    paragraphs = [_wrapped(f"{symbol} {kind}: {headline(diagnosis)}", "")]
    if diagnosis.pattern:
        paragraphs[0] += _wrapped(f"It looks like: {sentence(diagnosis.pattern)}.")
    if diagnosis.hint:
        paragraphs.append(_wrapped(f"What to try: {sentence(diagnosis.hint)}"))
    paragraphs += [
        _excerpt(diagnosis.places),
        _cycle(diagnosis.cycle),
        *(_table(table) for table in diagnosis.tables[:TABLES]),
        [line for note in diagnosis.notes[:NOTES] for line in _note(note)],
        *_printed(diagnosis),
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


def _wrapped(sentence, indent=INDENT):
    return textwrap.wrap(
        sentence, WIDTH, initial_indent=indent, subsequent_indent=INDENT, break_on_hyphens=False
    )


def _note(note):
    return textwrap.wrap(sentence(note), WIDTH, initial_indent="  - ", subsequent_indent="    ")


def _excerpt(places):
    digits = max((len(str(place.line)) for place in places), default=0)
    frame = len(INDENT) + len("▶ ") + digits + len(" │ ")
    lines = []
    for row in excerpt(places, WIDTH - frame):
        if row.kind == "file":
            lines.append(INDENT + row.text)
            continue
        mark = "▶" if row.kind == "code" else " "
        lines.append(f"{INDENT}{mark} {row.number:>{digits}} │ {row.text}".rstrip())
    return lines


def _cycle(ranks):
    if not ranks:
        return []
    told = waiting(ranks)
    return _wrapped(f"Cycle of waiting: {cycle(ranks)}" + (f" ({told})" if told else ""))


def _table(table):
    columns, rows, left_out = rows_of(table)
    lines = _wrapped(sentence(table.title))
    widths = _widths([columns, *rows])
    right = [all(is_number(row[i]) for row in rows if i < len(row)) for i in range(len(columns))]
    lines += _row(columns, widths, right)
    lines.append(INDENT + GAP.join("─" * width for width in widths))
    for row in rows:
        lines += _row(row, widths, right)
    if left_out:
        lines.append(f"{INDENT}… and {numbered(left_out, 'more row')}")
    return lines


def _widths(rows):
    """Widths of the columns; the widest ones shrink until the row fits."""
    widths = [max(len(row[i]) if i < len(row) else 0 for row in rows) for i in range(len(rows[0]))]
    room = WIDTH - len(INDENT) - len(GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row(cells, widths, right):
    """The lines of one row; a cell that is wider than its column wraps."""
    parts = [
        textwrap.wrap(cell, max(width, 1)) or [""]
        for cell, width in zip(cells, widths, strict=False)
    ]
    return [
        (
            INDENT
            + GAP.join(
                f"{part[i] if i < len(part) else '':{'>' if on_right else '<'}{width}}"
                for part, width, on_right in zip(parts, widths, right, strict=False)
            )
        ).rstrip()
        for i in range(max(map(len, parts), default=0))
    ]


def _printed(diagnosis):
    shown, omitted = printed(diagnosis)
    for rank, lines, left_out in shown:
        said = f" (the last {len(lines)} of {len(lines) + left_out} lines)" if left_out else ""
        yield [
            f"{INDENT}Printed by rank {rank}{said}:",
            *(f"{INDENT}│ {cut(line, WIDTH - 4)}".rstrip() for line in lines),
        ]
    if omitted:
        yield _wrapped(f"Not shown: what {numbered(len(omitted), 'more rank')} printed.")
