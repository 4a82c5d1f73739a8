"""The pairs as a table for the terminal, and as a page with both answers side by side."""

from itertools import groupby

from mpilab.instructor.page import render
from mpilab.plain import plain
from mpilab.plots.style import plural
from mpilab.similarity.winnowing import GRAM

SHOWN = 50  # pairs side by side: beyond, the page would be too long to read


def table(similar):
    """The pairs above the threshold as lines of text."""
    rows = [("share", "common", "own", "answers")]
    for pair in similar.chosen:
        names = f"{plain(pair.one.student)}  {plain(pair.other.student)}"
        rows.append((percent(pair.share), str(pair.common), _own(pair), names))
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = ["  ".join([*map(str.rjust, row[:3], widths), row[3]]) for row in rows]
    return "\n".join(lines)


def page(similar):
    """The HTML page of a Similar."""
    return render(
        "similarity/page.html.j2",
        title=plain(similar.title),
        lab=similar.lab,
        count=similar.compared,
        threshold=percent(similar.threshold),
        highest=percent(similar.pairs[0].share) if similar.pairs else "",
        notes=similar.notes,
        shown=SHOWN,
        gram=GRAM,
        pairs=[_view(pair, number < SHOWN) for number, pair in enumerate(similar.chosen)],
    )


def percent(share):
    """0.5 -> '50 %'."""
    return f"{100 * share:.0f} %"


def _own(pair):
    return f"{pair.one.own} / {pair.other.own}"


def _view(pair, whole):
    view = {
        "share": percent(pair.share),
        "one": pair.one.student,
        "other": pair.other.student,
        "common": pair.common,
        "own": _own(pair),
        "passages": plural(len(pair.passages), "passage"),
    }
    if whole:
        view["sides"] = [
            {"student": answer.student, "pieces": _pieces(answer, pair.matched(side))}
            for side, answer in enumerate((pair.one, pair.other))
        ]
    return view


def _pieces(answer, marks):
    """The source, cut where what is marked begins and ends."""
    spots = zip(answer.tokens, marks, answer.given, strict=True)
    pieces, at, seen = [], 0, set()
    for (passage, given), run in groupby(spots, key=lambda spot: (spot[1], spot[2])):
        run = list(run)
        begin, end = run[0][0].begin, run[-1][0].end
        if begin > at:
            pieces.append(_piece(answer.source[at:begin]))
        first = passage not in seen
        pieces.append(_piece(answer.source[begin:end], passage, given, first))
        seen.add(passage)
        at = end
    return [*pieces, _piece(answer.source[at:])]


def _piece(text, passage=None, given=False, first=False):
    return {"text": text, "passage": passage, "given": given, "first": first}
