"""A diagnosis as plain text: for the terminal, for papermill's output and for the feedback."""

import textwrap

from mpilab.panel import words

WIDTH = 100
INDENT = "  "
GAP = "  "


def text(diagnosis):
    """The diagnosis as lines of at most 100 columns, without the log and without a last newline.

    The first line is the kind and the headline; then what to try, the lines of the source, the
    cycle of waiting, tables, notes, and what the ranks printed.
    """
    symbol, kind = words.title(diagnosis.kind)
    paragraphs = [_wrapped(f"{symbol} {kind}: {words.headline(diagnosis)}", "")]
    if diagnosis.pattern:
        paragraphs[0] += _wrapped(f"It looks like: {words.sentence(diagnosis.pattern)}.")
    if diagnosis.hint:
        paragraphs.append(_wrapped(f"What to try: {words.sentence(diagnosis.hint)}"))
    paragraphs += [
        _excerpt(diagnosis.places),
        _cycle(diagnosis.cycle),
        *(_table(table) for table in diagnosis.tables[: words.TABLES]),
        [line for note in diagnosis.notes[: words.NOTES] for line in _note(note)],
        *_printed(diagnosis),
    ]
    return "\n\n".join("\n".join(lines) for lines in paragraphs if lines)


def _wrapped(sentence, indent=INDENT):
    return textwrap.wrap(
        sentence, WIDTH, initial_indent=indent, subsequent_indent=INDENT, break_on_hyphens=False
    )


def _note(note):
    return textwrap.wrap(
        words.sentence(note), WIDTH, initial_indent="  - ", subsequent_indent="    "
    )


def _excerpt(places):
    digits = max((len(str(place.line)) for place in places), default=0)
    frame = len(INDENT) + len("▶ ") + digits + len(" │ ")
    lines = []
    for row in words.excerpt(places, WIDTH - frame):
        if row.kind == "file":
            lines.append(INDENT + row.text)
            continue
        mark = "▶" if row.kind == "code" else " "
        lines.append(f"{INDENT}{mark} {row.number:>{digits}} │ {row.text}".rstrip())
    return lines


def _cycle(ranks):
    if not ranks:
        return []
    told = words.waiting(ranks)
    return _wrapped(f"Cycle of waiting: {words.cycle(ranks)}" + (f" ({told})" if told else ""))


def _table(table):
    columns, rows, left_out = words.rows(table)
    lines = _wrapped(words.sentence(table.title))
    widths = _widths([columns, *rows])
    right = [all(words.is_number(row[i]) for row in rows if i < len(row))
             for i in range(len(columns))]  # fmt: skip
    lines += _row(columns, widths, right)
    lines.append(INDENT + GAP.join("─" * width for width in widths))
    for row in rows:
        lines += _row(row, widths, right)
    if left_out:
        lines.append(f"{INDENT}… and {words.numbered(left_out, 'more row')}")
    return lines


def _widths(rows):
    """Widths of the columns; the widest ones give way until the row fits."""
    widths = [max(len(row[i]) if i < len(row) else 0 for row in rows) for i in range(len(rows[0]))]
    room = WIDTH - len(INDENT) - len(GAP) * (len(widths) - 1)
    while sum(widths) > room and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    return widths


def _row(cells, widths, right):
    """The lines of one row: a cell that is longer than its column goes on below."""
    parts = [
        textwrap.wrap(cell, max(width, 1)) or [""]
        for cell, width in zip(cells, widths, strict=False)
    ]
    return [
        (INDENT + GAP.join(
            f"{part[i] if i < len(part) else '':{'>' if on_right else '<'}{width}}"
            for part, width, on_right in zip(parts, widths, right, strict=False)
        )).rstrip()
        for i in range(max(map(len, parts), default=0))
    ]  # fmt: skip


def _printed(diagnosis):
    shown, omitted = words.printed(diagnosis)
    for rank, lines, left_out in shown:
        said = f" (the last {len(lines)} of {len(lines) + left_out} lines)" if left_out else ""
        yield [
            f"{INDENT}Printed by rank {rank}{said}:",
            *(f"{INDENT}│ {words.cut(line, WIDTH - 4)}".rstrip() for line in lines),
        ]
    if omitted:
        yield _wrapped(f"Not shown: what {words.numbered(len(omitted), 'more rank')} printed.")
