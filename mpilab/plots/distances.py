"""What a message costs at each distance: times over sizes, and the fitted parameters."""

from dataclasses import fields

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.distances.measure import QUANTITIES, ROW
from mpilab.distances.topology import DISTANCES
from mpilab.errors import InputError
from mpilab.models.digits import with_error
from mpilab.plots import style
from mpilab.plots.logarithmic import place, size_axes, time_axes
from mpilab.plots.sweep import summary

# What each parameter is written in: (name in the figure, unit, factor from seconds).
PARAMETERS = {
    "alpha": ("α", "µs", 1e6),
    "beta": ("β", "ns/B", 1e9),
    "L": ("L", "µs", 1e6),
    "o": ("o", "µs", 1e6),
    "g": ("g", "µs", 1e6),
    "G": ("G", "ns/B", 1e9),
}
WORDS = {
    "one_way": "one way",
    "send_overhead": "overhead of sending",
    "receive_overhead": "overhead of receiving",
    "gap": "gap between messages",
}


def time_against_size(table, fits=None, quantity="one_way"):
    """Median time over message size for each distance of a table of mpilab.distances.measure.

    fits      {distance: Hockney, LogP or LogGP}: its `time` is drawn dashed.
    quantity  which of QUANTITIES.

    Bars reach from the lower to the upper quartile. Raises InputError for a table without it.
    """
    rows = _rows(table, quantity)
    names = [name for name in DISTANCES if name in rows["distance"]]
    figure = make_subplots(cols=1)
    lines = [
        f"Time ({WORDS[quantity]}) against message size, both logarithmic: {', '.join(names)}."
    ]
    for name in names:
        sizes, low, median, high = summary(rows[rows["distance"] == name], "seconds")
        figure.add_trace(_measured(name, sizes, low, median, high))
        lines.append(
            f"{name}: "
            + ", ".join(
                f"{style.byte_size(size)} {style.duration(seconds)}"
                for size, seconds in zip(sizes, median, strict=True)
            )
            + "."
        )
        if name in (fits or {}):
            fine = np.geomspace(max(sizes.min(), 1), max(sizes.max(), 1), 120)
            figure.add_trace(_curve(name, fine, fits[name]))
            lines.append(f"{name}, dashed: {fits[name]}.")
    size_axes(figure, rows["bytes"], "bytes of the message")
    time_axes(figure, rows["seconds"], f"time ({WORDS[quantity]}), seconds")
    figure.update_layout(title=dict(text="A message by distance"), height=480)
    return style.finish(figure, "\n".join(lines))


def parameters(fits, title="What a message costs, by distance"):
    """The parameters of `fits`, {distance: Hockney, LogP or LogGP}: a panel each, with error bars.

    Bars are one standard error to either side; a parameter without one has none. Raises InputError
    where there are no fits, or fits of different models.
    """
    kinds = {type(fit) for fit in fits.values()}
    if len(kinds) != 1:
        raise InputError(
            f"fits of {len(kinds)} models; give a mapping from distances to fits of one model, "
            "as mpilab.distances.fit_distances returns it."
        )
    names = [name for name in DISTANCES if name in fits] or list(fits)
    shown = [field.name for field in fields(kinds.pop()) if field.name in PARAMETERS]
    figure = make_subplots(
        cols=len(shown),
        horizontal_spacing=0.08,
        subplot_titles=[f"{PARAMETERS[one][0]}, {PARAMETERS[one][1]}" for one in shown],
    )
    for column, parameter in enumerate(shown, start=1):
        word, unit, factor = PARAMETERS[parameter]
        values = [getattr(fits[name], parameter) * factor for name in names]
        errors = [getattr(fits[name], f"{parameter}_error") * factor for name in names]
        figure.add_trace(
            go.Scatter(
                x=names,
                y=values,
                error_y=dict(array=np.nan_to_num(errors), thickness=1.5, width=6, color=style.TEXT),
                mode="markers",
                marker=dict(size=10, color=[_colour(name) for name in names]),
                showlegend=False,
                customdata=[
                    f"{with_error(value, error)} {unit}"
                    for value, error in zip(values, errors, strict=True)
                ],  # fmt: skip
                hovertemplate=f"%{{x}}: {word} = %{{customdata}}<extra></extra>",
            ),
            row=1,
            col=column,
        )
        figure.update_yaxes(rangemode="tozero", row=1, col=column)
    figure.update_xaxes(type="category", tickangle=-30)
    figure.update_layout(title=dict(text=title), height=400, margin=dict(t=90))
    lines = [f"{title}: {', '.join(PARAMETERS[one][0] for one in shown)}."]
    return style.finish(figure, "\n".join(lines + [f"{name}: {fits[name]}." for name in names]))


def _rows(table, quantity):
    if quantity not in QUANTITIES:
        raise InputError(f"quantity={quantity!r}; take one of {', '.join(QUANTITIES)}.")
    missing = set(ROW.names) - set(table.dtype.names or ())
    rows = table if missing else table[table["quantity"] == quantity]
    if missing or len(rows) == 0:
        raise InputError(
            f"the table of distances has no rows of {quantity}; give what "
            "mpilab.distances.measure() returns."
        )
    return rows


def _colour(name):
    colours = style.ORDER_COLOURS
    return colours[(DISTANCES.index(name) if name in DISTANCES else 0) % len(colours)]


def _measured(name, sizes, low, median, high):
    return go.Scatter(
        x=place(sizes),
        y=median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        mode="markers",
        name=name,
        legendgroup=name,
        marker=dict(size=8, color=_colour(name)),
        customdata=[
            [style.byte_size(size), *map(style.duration, three)]
            for size, *three in zip(sizes, low, median, high, strict=True)
        ],
        hovertemplate=(
            f"{name}<br>%{{customdata[0]}}: %{{customdata[2]}} "
            "(%{customdata[1]} to %{customdata[3]})<extra></extra>"
        ),
    )


def _curve(name, sizes, fit):
    return go.Scatter(
        x=sizes,
        y=fit.time(sizes),
        mode="lines",
        name=f"{name}, model",
        legendgroup=name,
        showlegend=False,
        line=dict(color=_colour(name), width=1.5, dash="dash"),
        hoverinfo="skip",
    )
