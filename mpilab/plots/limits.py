"""Measured times as bars, beside the time that no run can beat, because of a link's speed."""

import numpy as np
import plotly.graph_objects as go

from mpilab.errors import InputError
from mpilab.plots import style

_BAR = "#3b7dd8"
_LIMIT = "#d4553e"
_ROW = 30  # pixels


def against_limits(measured, limits, title):
    """Figure with a bar for each of `measured`, median and quartiles, and a mark for its limit.

    measured   {name: seconds of each repetition}, drawn from top to bottom.
    limits     {name: the least seconds that the links allow}; some may be missing.

    Raises InputError where there is nothing to draw.
    """
    if not measured or any(len(seconds) == 0 for seconds in measured.values()):
        raise InputError("measured: nothing to draw; give {name: seconds of each repetition}")
    names = list(measured)
    lower, median, upper = np.array(
        [np.percentile(measured[name], [25, 50, 75]) for name in names]
    ).T
    limited = [name for name in names if name in limits]
    figure = go.Figure(
        [
            go.Bar(
                orientation="h",
                name="measured: median, quartiles",
                y=names,
                x=1e3 * median,
                error_x=dict(
                    symmetric=False, array=1e3 * (upper - median), arrayminus=1e3 * (median - lower)
                ),
                marker=dict(color=_BAR),
                hovertemplate="%{y}: %{x:.3g} ms<extra></extra>",
            ),
            go.Scatter(
                mode="markers",
                name="the busiest link alone",
                y=limited,
                x=[1e3 * limits[name] for name in limited],
                marker=dict(
                    symbol="line-ns", size=20, color=_LIMIT, line=dict(width=4, color=_LIMIT)
                ),
                hovertemplate="%{y}: at least %{x:.3g} ms<extra></extra>",
            ),
        ]
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    figure.update_xaxes(title="ms", rangemode="tozero")
    figure.update_layout(
        title=dict(text=title),
        height=190 + _ROW * len(names),
        margin=dict(t=90),
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
    )
    return style.finish(figure, "\n".join([f"{title}.", *_lines(names, measured, limits)]))


def _lines(names, measured, limits):
    for name in names:
        told = f"{name}: {style.duration(float(np.median(measured[name])))}"
        if name in limits:
            told += f"; the busiest link alone takes {style.duration(limits[name])}"
        yield f"{told}."
