"""A diagnosis as HTML for JupyterLab: one compact card.

Where JupyterLab does not trust an output it takes away the style sheet, the roles and every colour
that is a variable. What is left still reads well: the order of the elements says what belongs
together, and the few styles that stand at the elements are of the kind that is let through.
"""

import secrets
from functools import cache
from html import escape
from pathlib import Path
from urllib.parse import quote

from mpilab.panel import words

EXCERPT_WIDTH = 120
# Own colours, both of them, where the theme's would not be legible: white on red 5.6:1, dark on
# amber 9.5:1, in every theme.
ALARM, MILD = ("#c62f26", "#ffffff"), ("#f5b54a", "#241a00")

_CARD = "margin:4px 0 8px;padding:10px 14px;border-left:5px solid {};border-radius:4px"
_BADGE = ("display:inline-block;padding:1px 10px;border-radius:10px;font-weight:600;"
          "background-color:{};color:{}")  # fmt: skip
_LEFT = ' style="text-align:left"'
_RIGHT = ' style="text-align:right"'


def fragment(diagnosis, log_link="", *, title=""):
    """HTML of the diagnosis, all that it quotes escaped, its size bounded.

    log_link  where the whole log is, as a path relative to the notebook; '' where it isn't kept.
    title     what was run; stands above the headline.
    """
    name = f"mpilab-{secrets.token_hex(4)}"
    colours = ALARM if words.urgent(diagnosis.kind) else MILD
    parts = [
        _head(diagnosis, name, colours, title),
        _excerpt(diagnosis.places),
        _cycle(diagnosis.cycle),
        *(_table(table) for table in diagnosis.tables[: words.TABLES]),
        _notes(diagnosis.notes[: words.NOTES]),
        _printed(diagnosis),
        _log(diagnosis, log_link),
    ]
    mood = "alarm" if words.urgent(diagnosis.kind) else "mild"
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
    """What a screen reader says at once: the kind, the headline, the hint; no tables, no log."""
    symbol, kind = words.title(diagnosis.kind)
    # The variation selector asks for the plain sign, not for a coloured picture.
    badge = f'<span aria-hidden="true">{symbol}\ufe0e </span>{_text(kind)}'
    pattern = f" <strong>{_text(words.sentence(diagnosis.pattern))}</strong>"
    run = f'<span class="mpilab-run">{_text(words.sentence(title))}</span>'
    role = "alert" if words.urgent(diagnosis.kind) else "status"
    return (
        f'<div role="{role}" aria-labelledby="{name}">'
        f'<div class="mpilab-title" style="margin-bottom:6px"><span id="{name}">'
        f'<span class="mpilab-badge" style="{_BADGE.format(*colours)}">{badge}</span>'
        f"{pattern if diagnosis.pattern else ''}</span>"
        f"{f' {run}' if title else ''}</div>"
        f'<p class="mpilab-headline">{_text(words.headline(diagnosis))}</p>'
        f"{_hint(diagnosis.hint)}</div>"
    )


def _hint(hint):
    if not hint:
        return ""
    return f'<p class="mpilab-hint"><strong>What to try:</strong> {_text(words.sentence(hint))}</p>'


def _scrollable(kind, label, content, height="none"):
    """A part that may be larger than its place: it takes the focus, so that keys can move it."""
    return (
        f'<div class="mpilab-{kind}" role="region" aria-label="{_text(label)}" tabindex="0" '
        f'style="overflow:auto;max-height:{height}">{content}</div>'
    )


def _pre(content):
    return f'<pre style="white-space:pre">{content}</pre>'


def _excerpt(places):
    if not places:
        return ""
    digits = max(len(str(place.line)) for place in places)
    lines = []
    for row in words.excerpt(places, EXCERPT_WIDTH):
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


def _cycle(ranks):
    if not ranks:
        return ""
    told = words.waiting(ranks)
    return (
        f'<p>Cycle of waiting: <strong class="mpilab-cycle">{_text(words.cycle(ranks))}</strong>'
        f"{f' ({_text(told)})' if told else ''}</p>"
    )


def _table(table):
    columns, rows, left_out = words.rows(table)
    title = words.sentence(table.title)
    numbers = [all(words.is_number(row[i]) for row in rows if i < len(row))
               for i in range(len(columns))]  # fmt: skip
    sides = [_RIGHT if number else _LEFT for number in numbers]
    head = _cells(columns, sides, ["col"] * len(columns))
    # The first column heads the rows where it tells them apart.
    firsts = [row[0] for row in rows if row]
    scopes = ["row" if len(set(firsts)) == len(firsts) else ""] + [""] * len(columns)
    body = "".join(f"<tr>{_cells(row, sides, scopes)}</tr>" for row in rows)
    more = f"<p>… and {words.numbered(left_out, 'more row')}</p>" if left_out else ""
    return _scrollable(
        "table",
        title,
        f"<table><caption{_LEFT}>{_text(title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{body}</tbody></table>{more}",
    )


def _cells(row, sides, scopes):
    """The cells of a row; one with a scope ('row', 'col') is a heading."""
    return "".join(
        f'<th scope="{scope}"{side}>{_text(cell)}</th>'
        if scope
        else f"<td{side}>{_text(cell)}</td>"
        for cell, side, scope in zip(row, sides, scopes, strict=False)
    )


def _notes(notes):
    if not notes:
        return ""
    items = "".join(f"<li>{_text(words.sentence(note))}</li>" for note in notes)
    return f'<ul class="mpilab-notes">{items}</ul>'


def _printed(diagnosis):
    shown, omitted = words.printed(diagnosis)
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
        more = words.numbered(len(omitted), "more rank")
        blocks.append(f"<p>Not shown: what {more} printed.</p>")
    ranks = ", ".join(str(rank) for rank, _ in diagnosis.printed[:16])
    ranks += ", …" if len(diagnosis.printed) > 16 else ""
    noun = "rank" if len(diagnosis.printed) == 1 else "ranks"
    return _fold(f"Printed by {noun} {ranks}", "".join(blocks))


def _log(diagnosis, link):
    parts = []
    if diagnosis.log.strip():
        lines, left_out = words.last_lines(diagnosis.log, words.LOG_LINES)
        said = f"<p>The last {len(lines)} of {len(lines) + left_out} lines:</p>" if left_out else ""
        content = _text("\n".join(lines))
        label = f"What {words.speaker(diagnosis.kind)} said"
        parts.append(_fold(label, said + _scrollable("code", label, _pre(content), "18em")))
    if link:
        parts.append(
            f'<p class="mpilab-log"><a href="{_text(quote(link))}" target="_blank">'
            f"Open the whole log</a> ({_text(link)})</p>"
        )
    return "".join(parts)


def _fold(summary, content):
    return f"<details><summary>{_text(summary)}</summary>{content}</details>"
