"""A leaderboard to be read: table for the terminal, CSV, page of HTML that needs no network."""

import csv
from html import escape
from pathlib import Path

from mpilab.errors import InputError

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1e21; background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #d8dbe0; }
th { vertical-align: bottom; font-weight: 600; }
th:nth-child(2), td:nth-child(2), .words { text-align: left; }
.bar { display: inline-block; height: .7rem; background: #3b7dd8; vertical-align: baseline; }
.wide { overflow-x: auto; }
.best { font-weight: 700; }
@media (prefers-color-scheme: dark) {
  body { color: #e3e5e8; background: #17191c; } th, td { border-color: #3a3e44; } }
"""


def as_text(entries, names, board):
    """The board as lines of a table, then who is not on it, and why."""
    ranked = [one for one in entries if one.score is not None]
    width = max((len(names[one.student]) for one in entries), default=4)
    lines = [f"{'place':>5}  {'name':{width}}  times as fast as {board.than}"]
    lines += [f"{place:>5}  {names[one.student]:{width}}  {one.score:.2f}"
              for place, one in enumerate(ranked, start=1)]  # fmt: skip
    lines += [f"{'–':>5}  {names[one.student]:{width}}  {one.reason}"
              for one in entries if one.score is None]  # fmt: skip
    return "\n".join(lines)


def write_csv(entries, names, board, path):
    """One line a student: place, name, score, simulated microseconds of each point, reason."""
    points = list(board.points)
    rows = [["place", "name", f"times_as_fast_as_{board.than}",
             *(f"{platform}, {size} B (us)" for platform, size in points), "reason"]]  # fmt: skip
    for place, one in enumerate(entries, start=1):
        ranked = one.score is not None
        rows.append([place if ranked else "", names[one.student],
                     f"{one.score:.4f}" if ranked else "",
                     *(f"{one.seconds[point] * 1e6:.3f}" if ranked else "" for point in points),
                     one.reason])  # fmt: skip
    _write(path, lambda file: csv.writer(file, lineterminator="\n").writerows(rows))


def write_html(entries, names, board, path, title):
    """A page with a table of all times, the best of each column in bold."""
    text = page(entries, names, board, title)
    _write(path, lambda file: file.write(text))


def page(entries, names, board, title):
    """The page as text."""
    ranked = [one for one in entries if one.score is not None]
    most = max((one.score for one in ranked), default=1.0)
    best = {point: min(one.seconds[point] for one in ranked) for point in board.points if ranked}
    heads = "".join(f"<th scope='col'>{escape(platform)}<br>{size:,} B</th>"
                    for platform, size in board.points)  # fmt: skip
    rows = "\n".join(_row(place, one, names, board, best, most)
                     for place, one in enumerate(ranked, start=1))  # fmt: skip
    left = "".join(f"<li>{escape(names[one.student])}: {escape(one.reason)}</li>"
                   for one in entries if one.score is None)  # fmt: skip
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}: leaderboard</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>
<body><h1>{escape(title)}: leaderboard</h1>
<p>Microseconds of simulated time for <code>{escape(board.exercise.function)}</code> on clusters
that nobody had seen. The score is how many times as fast as <code>{escape(board.than)}</code> it
is, as a geometric mean over all columns. It is the same on every machine.</p>
<div class="wide"><table><thead><tr><th scope="col">place</th><th scope="col">name</th>
<th scope="col" class="words">score</th>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
{"<h2>Not ranked</h2><ul>" + left + "</ul>" if left else ""}
</body></html>
"""


def _row(place, one, names, board, best, most):
    cells = "".join(
        f"<td{' class=best' if one.seconds[point] <= best[point] else ''}>"
        f"{one.seconds[point] * 1e6:,.1f}</td>"
        for point in board.points
    )
    return (f"<tr><td>{place}</td><td>{escape(names[one.student])}</td><td class='words'>"
            f"{one.score:.2f}&nbsp;<span class='bar' style='width:{6 * one.score / most:.2f}rem'>"
            f"</span></td>{cells}</tr>")  # fmt: skip


def _write(path, fill):
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            fill(file)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; name a folder of yours"
        ) from None
