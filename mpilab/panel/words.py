"""What the panel says in the notebook and on the terminal alike: titles, cuts, excerpts, cycles.

A diagnosis quotes what students' programs wrote: it may hold colours for a terminal, control
characters, lines without end. Everything that is shown goes through `plain` and is cut to a size
that can be read; what was left out is said.
"""

import re
import textwrap
from dataclasses import dataclass

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
from mpilab.plain import plain

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
# These go with a right result: worth knowing, nothing to be alarmed at.
MILD = (LEAK, COMPILE_WARNING)

SENTENCES_CHARACTERS = 1200
CELL_CHARACTERS, TABLE_ROWS, TABLE_COLUMNS, TABLES = 160, 64, 16, 8
PLACES, NOTES = 8, 12
PRINTED_LINES, ALL_PRINTED_LINES, LINE_CHARACTERS = 60, 240, 240
LOG_LINES = 60
TAB = 4


def title(kind):
    """(symbol, words) of a kind of diagnosis, e.g. ('✗', 'Deadlock')."""
    return TITLES[kind]


def headline(diagnosis):
    """The headline as a sentence of its own: without the kind, which stands before it anyway."""
    said = sentence(diagnosis.headline)
    for name in (title(diagnosis.kind)[1], diagnosis.kind):
        if said.lower().startswith((f"{name.lower()}: ", f"{name.lower()} ")):
            said = said[len(name) :].removeprefix(":").lstrip()
            break
    first = said.partition(" ")[0]
    return said[:1].upper() + said[1:] if first.isalpha() else said


def speaker(kind):
    """Whose words the log of such a diagnosis holds."""
    return SPEAKERS.get(kind, "Open MPI")


def urgent(kind):
    """Did the run or the build fail, so that a screen reader should say so at once?"""
    return kind not in MILD


def cut(text, most):
    """`text`, cleaned, with at most `most` characters; an ellipsis stands for what is left out."""
    text = plain(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def sentence(text, most=SENTENCES_CHARACTERS):
    """`text` for a paragraph: cut, with single blanks."""
    return cut(" ".join(plain(text).split()), most)


def last_lines(text, most):
    """(lines, how many were left out) of `text`: its last `most` lines, long ones cut.

    A program's last words tell most about its end.
    """
    lines = plain(text).rstrip("\n").split("\n")
    kept = [cut(line.expandtabs(TAB), LINE_CHARACTERS).rstrip() for line in lines[-most:]]
    return kept, max(0, len(lines) - most)


def printed(diagnosis):
    """((rank, lines, how many lines were left out), ...), and the ranks left out altogether."""
    shown, left, omitted = [], ALL_PRINTED_LINES, []
    for rank, text in diagnosis.printed:
        if left <= 0:
            omitted.append(rank)
            continue
        lines, out = last_lines(text, min(PRINTED_LINES, left))
        left -= len(lines)
        shown.append((rank, lines, out))
    return tuple(shown), tuple(omitted)


def rows(table):
    """(columns, rows, how many rows were left out) of a Table, each cell a short str."""
    columns = [sentence(name, CELL_CHARACTERS) for name in table.columns[:TABLE_COLUMNS]]
    kept = [
        [sentence(cell, CELL_CHARACTERS) for cell in row[:TABLE_COLUMNS]]
        for row in table.rows[:TABLE_ROWS]
    ]
    return columns, kept, max(0, len(table.rows) - TABLE_ROWS)


def is_number(cell):
    """Does the cell hold a number (or nothing), so that it stands on the right?"""
    return re.fullmatch(r"-?[\d.,]*", cell) is not None


def cycle(ranks):
    """'0 → 1 → 0': the ranks that wait for one another; the middle of a long circle is left out."""
    circle = [str(rank) for rank in (*ranks, *ranks[:1])]
    if len(circle) > 20:
        circle = [*circle[:10], "…", *circle[-4:]]
    return " → ".join(circle)


def waiting(ranks):
    """'rank 0 waits for rank 1, which waits for rank 0': a short cycle in words, otherwise ''."""
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
    """A row of an excerpt: `number` of the line ('' in rows of words), the text, and its kind."""

    number: str
    text: str
    kind: str  # 'code', 'pointer' or 'file'


def excerpt(places, width):
    """Rows that show the lines of `places`, each with its labels and a caret under them.

    width  characters of the longest row's text; longer lines are cut around their column.
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
    """The rows under a line of code: a caret or an arrow, and what happened there."""
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
