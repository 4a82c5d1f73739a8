"""Render a Diagnosis as HTML and as plain text.

`fragment` is the panel in JupyterLab, `card` the same on a feedback page, and `text` is for the
terminal and papermill's output. The template diagnosis.j2 alone defines which parts they show, in
which order and in which words; html.j2 and text.j2 lay the parts out.
"""

import re
import secrets
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import jinja2
from markupsafe import Markup

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
    TRAP,
    WRONG_RESULT,
    Diagnosis,
    Place,
    Table,
    number,
    ranks,
)
from mpilab.util.text import plain

# Shared by HTML and text: titles, cuts, excerpts, cycles. A diagnosis quotes output of students'
# programs, which may contain terminal colors, control characters and endless lines. All of it
# passes through `plain` and is cut to a readable size, with a note of what was omitted.

TITLES = {
    DEADLOCK: ("✗", "Deadlock"),
    TIME_OUT: ("⏱", "Time-out"),
    CRASH: ("✗", "Crash"),
    TRAP: ("✗", "Ended by the jail"),
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
HTML, TEXT = "html.j2", "text.j2"
EXCERPT_WIDTH = 120  # in characters, in HTML
# The lines of text: their length and their prefixes.
WIDTH = 100
INDENT = "  "
GAP = "  "  # between two columns
# A longer diagnosis is stored only as far as it can be shown.
MOST_CHARACTERS = 1 << 20
# Our own text and background colors where the theme's would not be legible: white on red 5.6:1,
# dark on amber 9.5:1, in every theme.
ALARM, MILD_CLASSES = ("#c62f26", "#ffffff"), ("#f5b54a", "#241a00")


def title_of(kind: str) -> tuple[str, str]:
    """(symbol, words) of a kind of diagnosis, e.g. ('✗', 'Deadlock')."""
    return TITLES[kind]


def headline(diagnosis: Diagnosis) -> str:
    """The headline as a full sentence, without the kind, which is shown before it anyway."""
    said = sentence(diagnosis.headline)
    for name in (title_of(diagnosis.kind)[1], diagnosis.kind):
        if said.lower().startswith((f"{name.lower()}: ", f"{name.lower()} ")):
            said = said[len(name) :].removeprefix(":").lstrip()
            break
    first = said.partition(" ")[0]
    return said[:1].upper() + said[1:] if first.isalpha() else said


def speaker(kind: str) -> str:
    """The program that wrote the log of a diagnosis of this kind."""
    return SPEAKERS.get(kind, "Open MPI")


def urgent(kind: str) -> bool:
    """Whether the run or the build failed, so that a screen reader should announce it at once."""
    return kind not in MILD


def cut(text: object, most: int) -> str:
    """`text`, cleaned and cut to at most `most` characters; an ellipsis marks the cut."""
    clean = plain(text)
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def sentence(text: object, most: int = SENTENCES_CHARACTERS) -> str:
    """`text` for a paragraph: cut, with single spaces."""
    return cut(" ".join(plain(text).split()), most)


def last_lines(text: str, most: int) -> tuple[list[str], int]:
    """(lines, number omitted) of `text`: its last `most` lines, long ones cut.

    A program's last output says most about how it ended.
    """
    lines = plain(text).rstrip("\n").split("\n")
    kept = [cut(line.expandtabs(TAB), LINE_CHARACTERS).rstrip() for line in lines[-most:]]
    return kept, max(0, len(lines) - most)


@dataclass(frozen=True)
class Printed:
    """What a rank printed: its last lines, and how many before them are left out."""

    rank: int
    lines: list[str]
    left_out: int


def printed(diagnosis: Diagnosis) -> tuple[list[Printed], list[int]]:
    """What the ranks printed, and the ranks whose output is left out entirely."""
    shown: list[Printed] = []
    left, omitted = ALL_PRINTED_LINES, []
    for rank, text in diagnosis.printed:
        if left <= 0:
            omitted.append(rank)
            continue
        lines, out = last_lines(text, min(PRINTED_LINES, left))
        left -= len(lines)
        shown.append(Printed(rank, lines, out))
    return shown, omitted


@dataclass(frozen=True)
class Grid:
    """A Table to be shown: cells of bounded length.

    right    for each column whether it holds numbers, which are right-aligned.
    heads    whether the entries of the first column are distinct, so that they can be row headers.
    left_out number of rows left out.
    """

    title: str
    columns: list[str]
    rows: list[list[str]]
    right: list[bool]
    heads: bool
    left_out: int


def grid(table: Table) -> Grid:
    """The Grid of a Table."""
    columns = [sentence(name, CELL_CHARACTERS) for name in table.columns[:TABLE_COLUMNS]]
    rows = [
        [sentence(cell, CELL_CHARACTERS) for cell in row[:TABLE_COLUMNS]]
        for row in table.rows[:TABLE_ROWS]
    ]
    right = [all(is_number(row[i]) for row in rows if i < len(row)) for i in range(len(columns))]
    firsts = [row[0] for row in rows if row]
    heads = len(set(firsts)) == len(firsts)
    left_out = max(0, len(table.rows) - TABLE_ROWS)
    return Grid(sentence(table.title), columns, rows, right, heads, left_out)


def is_number(cell: str) -> bool:
    """Whether the cell holds a number (or nothing) and is therefore right-aligned."""
    return re.fullmatch(r"-?[\d.,]*", cell) is not None


def cycle(waiters: Sequence[int]) -> str:
    """'0 → 1 → 0': the ranks in a circular wait; a long one is cut in the middle."""
    shown = [str(rank) for rank in (*waiters, *waiters[:1])]
    if len(shown) > 20:
        shown = [*shown[:10], "…", *shown[-4:]]
    return " → ".join(shown)


def waiting(waiters: Sequence[int]) -> str:
    """'rank 0 waits for rank 1, which waits for rank 0': a short cycle in words, or ''."""
    if not 1 <= len(waiters) <= 4:
        return ""
    first, *others = (*waiters[1:], waiters[0])
    return f"rank {waiters[0]} waits for rank {first}" + "".join(
        f", which waits for rank {rank}" for rank in others
    )


def bounded(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis in the form to be stored: one that is too long is cut to what can be shown.

    The text may come from a hostile program. Omitted parts can no longer be counted, so an ordinary
    diagnosis is left unchanged.
    """
    if _characters(diagnosis) <= MOST_CHARACTERS:
        return diagnosis
    tables = [grid(table) for table in diagnosis.tables[:TABLES]]
    return replace(
        diagnosis,
        headline=sentence(diagnosis.headline),
        pattern=sentence(diagnosis.pattern),
        hint=sentence(diagnosis.hint),
        ranks=diagnosis.ranks[:TABLE_ROWS],
        places=tuple(
            replace(
                place,
                text=cut(place.text, SENTENCES_CHARACTERS),
                label=sentence(place.label),
                file=cut(place.file, CELL_CHARACTERS),
            )
            for place in diagnosis.places[:PLACES]
        ),
        cycle=diagnosis.cycle[:TABLE_ROWS],
        tables=tuple(
            Table(each.title, tuple(each.columns), tuple(map(tuple, each.rows))) for each in tables
        ),
        notes=tuple(map(sentence, diagnosis.notes[:NOTES])),
        printed=tuple((each.rank, "\n".join(each.lines)) for each in printed(diagnosis)[0]),
        log="\n".join(last_lines(diagnosis.log, LOG_LINES)[0]),
    )


def _characters(diagnosis: Diagnosis) -> int:
    """About the number of characters of the diagnosis as JSON."""
    return len(repr(diagnosis.to_json()))


@dataclass(frozen=True)
class Row:
    """A row of an excerpt: line `number` ('' in rows without code), text, and kind."""

    number: str
    text: str
    kind: str  # 'code', 'pointer' or 'file'


def excerpt(places: Iterable[Place], width: int) -> list[Row]:
    """Rows that show the lines of `places`, each with a caret and its labels below.

    width  maximum characters of a row's text; longer lines are cut around their column.
    """
    merged: dict[tuple[str, int], list[Place]] = {}
    for place in places:
        merged.setdefault((place.file, place.line), []).append(place)
    shown = list(merged.items())[:PLACES]
    sources = {key: plain(group[0].text).replace("\n", " ") for key, group in shown}
    wide = [source.expandtabs(TAB) for source in sources.values() if source.strip()]
    margin = min((len(line) - len(line.lstrip()) for line in wide), default=0)
    result: list[Row] = []
    file = ""
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
        result.append(Row("", f"… and {number(len(merged) - PLACES, 'more line')}", "pointer"))
    return result


def _window(source: str, margin: int, column: int, width: int) -> tuple[str, int]:
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


def _pointer(code: str, caret: int, label: str, width: int) -> list[str]:
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


# The parts of a diagnosis, and the templates that show them.


def fragment(diagnosis: Diagnosis, log_link: str = "", *, title: str = "") -> str:
    """HTML of the diagnosis for JupyterLab, with all quoted text escaped and the size bounded.

    log_link  path of the full log, relative to the notebook; '' if it is not kept.
    title     what was run; shown above the headline.

    JupyterLab removes the style sheet, the roles and every color that is a variable from an
    untrusted output. The rest is still readable: the order of the elements shows what belongs
    together, and JupyterLab keeps the few inline styles.
    """
    name = f"mpilab-{secrets.token_hex(4)}"
    view = _view(diagnosis, EXCERPT_WIDTH, name, True, title, log_link)
    return f"<style>{style()}</style>{_rendered(HTML, view)}"


def card(diagnosis: Diagnosis, name: str) -> Markup:
    """Like `fragment`, for a page that already has the style sheet (`style`).

    name   id of the card's title, which no other element of the page has.
    """
    return Markup(_rendered(HTML, _view(diagnosis, EXCERPT_WIDTH, name, False, "", "")))


def text(diagnosis: Diagnosis, log_link: str = "", *, title: str = "") -> str:
    """The diagnosis in lines of at most 100 columns, without the log and a final newline.

    Arguments as for `fragment`. The title is on a separate line, then the kind with the
    headline. Then follow what to try, the lines of the source, the circular wait, tables, notes,
    and what the ranks printed.
    """
    frame = len(f"{INDENT}▶ {'':{_digits(diagnosis.places)}} │ ")
    said = _rendered(TEXT, _view(diagnosis, WIDTH - frame, "", False, title, log_link))
    return re.sub(r"\n{3,}", "\n\n", said).strip("\n")


@cache
def style() -> str:
    """The style sheet of `fragment` and `card`."""
    return Path(__file__).with_name("panel.css").read_text(encoding="utf-8").strip()


@dataclass(frozen=True)
class View:
    """What the template shows of a Diagnosis: its parts as clean text of bounded length.

    `name` is the id of the panel's title, `live` whether a screen reader should announce the panel
    at once, `run` what was run, and `link` the path of the full log.
    """

    name: str
    live: bool
    run: str
    link: str
    kind: str
    urgent: bool
    colors: tuple[str, str]
    symbol: str
    title: str
    headline: str
    pattern: str
    hint: str
    lines: list[Row]
    digits: int
    cycle: str
    waiting: str
    tables: list[Grid]
    notes: list[str]
    printed: list[Printed]
    printed_by: str
    silent: int
    speaker: str
    log: list[str]
    log_left_out: int


def _view(diagnosis: Diagnosis, width: int, name: str, live: bool, run: str, link: str) -> View:
    """The View of a diagnosis; `width` as for `excerpt`."""
    symbol, title = title_of(diagnosis.kind)
    shown, silent = printed(diagnosis)
    log, before = last_lines(diagnosis.log, LOG_LINES) if diagnosis.log.strip() else ([], 0)
    return View(
        name=name,
        live=live,
        run=sentence(run),
        link=link,
        kind=diagnosis.kind,
        urgent=urgent(diagnosis.kind),
        colors=ALARM if urgent(diagnosis.kind) else MILD_CLASSES,
        symbol=symbol,
        title=title,
        headline=headline(diagnosis),
        pattern=sentence(diagnosis.pattern),
        hint=sentence(diagnosis.hint),
        lines=excerpt(diagnosis.places, width),
        digits=_digits(diagnosis.places),
        cycle=cycle(diagnosis.cycle),
        waiting=waiting(diagnosis.cycle),
        tables=list(map(grid, diagnosis.tables[:TABLES])),
        notes=list(map(sentence, diagnosis.notes[:NOTES])),
        printed=shown,
        printed_by=ranks(rank for rank, _ in diagnosis.printed),
        silent=len(silent),
        speaker=speaker(diagnosis.kind),
        log=log,
        log_left_out=before,
    )


def _digits(places: Iterable[Place]) -> int:
    return max((len(str(place.line)) for place in places), default=0)


def _rendered(layout: str, view: View) -> str:
    """The template diagnosis.j2, laid out by the template `layout`."""
    return _environment(layout).get_template("diagnosis.j2").render(layout=layout, d=view)


def _last(lines: list[str], left_out: int) -> str:
    """' (the last 60 of 1000 lines)'; '' if none is left out."""
    return f" (the last {len(lines)} of {len(lines) + left_out} lines)" if left_out else ""


@cache
def _environment(layout: str) -> jinja2.Environment:
    """Templates of this folder; those for HTML escape everything that they are given."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=layout == HTML,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {"number": number, "last": _last}
    environment.filters |= {"wrapped": _wrapped, "drawn": _drawn, "cut": cut}
    return environment


# Lines of text.


def _wrapped(sentence: str, first: str = INDENT, others: str = INDENT) -> str:
    """A sentence in lines, given the prefix of the first and of the other lines."""
    lines = textwrap.wrap(
        sentence, WIDTH, initial_indent=first, subsequent_indent=others, break_on_hyphens=False
    )
    return "\n".join(lines)


def _drawn(table: Grid) -> str:
    """The lines of a table: its columns, a rule, its rows."""
    widths = _widths([table.columns, *table.rows])
    rule = INDENT + GAP.join("─" * width for width in widths)
    lines = [*_row(table.columns, widths, table.right), rule]
    for row in table.rows:
        lines += _row(row, widths, table.right)
    return "\n".join(lines)


def _widths(rows: list[list[str]]) -> list[int]:
    """Widths of the columns; the widest ones shrink until the row fits."""
    widths = [max(len(row[i]) if i < len(row) else 0 for row in rows) for i in range(len(rows[0]))]
    room = WIDTH - len(INDENT) - len(GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row(cells: list[str], widths: list[int], right: list[bool]) -> list[str]:
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
