"""A published broadcast beside one that was measured here."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.plots import logarithmic, style

# What tells one line of a sweep from another.
LINE = ("library", "algorithm", "ranks", "segment", "fanout", "radix")
MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")


def bcast_against_published(published_rows, table, measure="mean_s"):
    """Time over message size: published dotted, measured here solid, a colour for each algorithm.

    published_rows  as `mpilab.published_bcast.published_bcast()` returns them.
    table           structured array of a sweep (mpilab.sweeps.table); its rows of other collectives
                    are left out. Medians with their quartiles are drawn.
    measure         'mean_s' is what OSU's tables show, the mean over ranks of each one's own time;
                    'span_s' the true span, which the published tables do not tell.

    Raises InputError for a table without the fields, one without a bcast, and an unknown measure.
    """
    rows = _bcasts(table, measure)
    figure = make_subplots()
    lines = []
    for algorithm in dict.fromkeys(published_rows["algorithm"].tolist()):
        printed = np.sort(published_rows[published_rows["algorithm"] == algorithm], order="bytes")
        figure.add_trace(_published(algorithm, printed))
        lines.append(_in_words(f"{algorithm}, published, P = {printed['ranks'][0]}",
                               printed["bytes"], printed["mean_s"]))  # fmt: skip
    for place, line in enumerate(dict.fromkeys(rows[list(LINE)].tolist())):
        chosen = rows[rows[list(LINE)] == np.array(line, rows[list(LINE)].dtype)]
        sizes, low, median, high = _summary(chosen, measure)
        name = _name(dict(zip(LINE, line, strict=True)))
        marker = MARKERS[place % len(MARKERS)]
        figure.add_trace(_measured(name, line[1], marker, sizes, low, median, high))
        lines.append(_in_words(name, sizes, median))
    sizes = np.concatenate([published_rows["bytes"], rows["bytes"]])
    logarithmic.size_axes(figure, sizes, "bytes of the message")
    what = "mean over the ranks" if measure == "mean_s" else "last exit − first enter"
    times = np.concatenate([trace.y for trace in figure.data])
    logarithmic.time_axes(figure, times, f"time ({what}), seconds")
    figure.update_layout(
        title=dict(text="Broadcast: measured here, and published"),
        height=560,
        margin=dict(t=70, b=140),
        legend=dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top"),
    )
    first = "Broadcast times against message size, both logarithmic; published dotted, ours solid."
    return style.finish(figure, "\n".join([first, *lines]))


def _bcasts(table, measure):
    missing = {"collective", "bytes", *LINE, measure} - set(table.dtype.names or ())
    if measure not in ("mean_s", "span_s"):
        raise InputError(f"measure={measure!r}; take 'mean_s' or 'span_s'.")
    if missing:
        raise InputError(
            f"the table of the sweep has no field {', '.join(sorted(missing))}; give one that "
            "mpilab.sweeps.table.read returns."
        )
    rows = table[table["collective"] == "bcast"]
    if len(rows) == 0:
        raise InputError("the table of the sweep holds no bcast; run a sweep of bcast first.")
    return rows


def _name(line):
    """'pipeline, Open MPI's, P = 4, segments of 8 KiB'."""
    words = [line["algorithm"], "ours" if line["library"] == "ours" else "Open MPI's"]
    words.append(f"P = {line['ranks']}")
    if line["segment"]:
        words.append(f"segments of {style.byte_size(line['segment'])}")
    words += [f"{field} {line[field]}" for field in ("fanout", "radix") if line[field]]
    return ", ".join(words)


def _summary(rows, measure):
    """Sizes, lower quartile, median and upper quartile of `rows`: four arrays."""
    sizes = np.unique(rows["bytes"])
    quartiles = [np.percentile(rows[measure][rows["bytes"] == s], [25, 50, 75]) for s in sizes]
    return (sizes, *np.array(quartiles).T)


def _published(algorithm, printed):
    name = f"{algorithm}, published, P = {printed['ranks'][0]}"
    return _scatter(
        name,
        printed["bytes"],
        printed["mean_s"],
        line=dict(color=style.colour(algorithm), width=1.5, dash="dot"),
        marker=dict(symbol="circle-open", size=6),
    )


def _measured(name, algorithm, marker, sizes, low, median, high):
    return _scatter(
        name,
        sizes,
        median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        line=dict(color=style.colour(algorithm), width=2),
        marker=dict(symbol=marker, size=7),
    )


def _scatter(name, sizes, times, **look):
    return go.Scatter(
        x=sizes,
        y=times,
        name=name,
        mode="lines+markers",
        customdata=[
            [style.byte_size(size), style.duration(time)]
            for size, time in zip(sizes, times, strict=True)
        ],
        hovertemplate=f"{name}<br>%{{customdata[0]}}: %{{customdata[1]}}<extra></extra>",
        **look,
    )


def _in_words(name, sizes, times):
    each = (f"{style.byte_size(s)} {style.duration(t)}" for s, t in zip(sizes, times, strict=True))
    return f"{name}: {', '.join(each)}."
