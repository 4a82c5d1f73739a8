"""From how many bytes on an algorithm overtakes another, over the number of ranks."""

import numpy as np
import plotly.graph_objects as go

from mpilab.errors import InputError
from mpilab.plots import style

# The first of what was found is drawn filled, the second open; more are drawn open and larger.
_SUFFIXES, _SIZES = ("", "-open", "-open"), (9, 13, 17)


def crossover(found, models, title):
    """Figure of crossovers, both axes logarithmic.

    found    {where it comes from: {algorithm: {ranks: bytes}}}, e.g. mpilab.measured_crossover's
             crossings; up to three. What is 0 or nan is left out.
    models   {algorithm: {ranks: bytes}} by a model, drawn as a dashed line.

    Raises InputError where there is nothing to draw.
    """
    points = [
        (source, algorithm, {p: m for p, m in each.items() if np.isfinite(m) and m > 0})
        for source, by_algorithm in found.items()
        for algorithm, each in by_algorithm.items()
    ]
    points = [(source, algorithm, each) for source, algorithm, each in points if each]
    if not points:
        raise InputError("no crossover in the times; simulate more sizes")
    figure = go.Figure()
    for algorithm, each in models.items():
        figure.add_trace(go.Scatter(
            x=list(each), y=list(each.values()), mode="lines", name=f"{algorithm}, α-β model",
            line=dict(color=style.colour(algorithm), width=1.5, dash="dash"), hoverinfo="skip",
        ))  # fmt: skip
    sources = list(found)
    for source, algorithm, each in points:
        place = min(sources.index(source), len(_SIZES) - 1)
        figure.add_trace(go.Scatter(
            x=list(each), y=list(each.values()), mode="markers", name=f"{algorithm}, {source}",
            marker=dict(color=style.colour(algorithm), size=_SIZES[place],
                        symbol=style.marker(algorithm) + _SUFFIXES[place],
                        line=dict(width=2, color=style.colour(algorithm))),
            customdata=[style.byte_size(size) for size in each.values()],
            hovertemplate=f"{algorithm}, {source}<br>%{{x}} ranks: from %{{customdata}} on"
                          "<extra></extra>",
        ))  # fmt: skip
    _axes(figure, points, models)
    figure.update_layout(title=dict(text=title), height=560, margin=dict(l=110, t=60, b=150),
                         legend=dict(orientation="h", x=0, y=-0.22, yanchor="top"))  # fmt: skip
    return style.finish(figure, "\n".join([f"{title}.", *_lines(points, models)]))


def _axes(figure, points, models):
    all_of = [*(each for *_, each in points), *models.values()]
    ranks = sorted({p for each in all_of for p in each})
    sizes = [size for each in all_of for size in each.values()]
    first, last = (int(np.floor(np.log2(one))) for one in (min(sizes), max(sizes)))
    ticks = [1 << power for power in range(first, last + 2, max(1, (last - first) // 7))]
    figure.update_xaxes(
        type="log", title="ranks", tickvals=ranks, ticktext=[f"{p:,}" for p in ranks]
    )
    figure.update_yaxes(
        type="log", title="bytes from which on the tree is slower",
        tickvals=ticks, ticktext=[style.byte_size(tick) for tick in ticks],
    )  # fmt: skip


def _lines(points, models):
    named = [(f"{algorithm}, {source}", each) for source, algorithm, each in points]
    named += [(f"{algorithm}, by the α-β model", each) for algorithm, each in models.items()]
    for name, each in named:
        told = ", ".join(f"{p} ranks from {style.byte_size(m)} on" for p, m in each.items())
        yield f"{name}: {told}."
