"""Measured times of a sweep, and the curve of the model that was fitted to each algorithm."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.models.costs import cost
from mpilab.models.fitting import FIELDS
from mpilab.models.points import check_fields, rows_of, the_collective, variants_of
from mpilab.plots import style
from mpilab.plots.logarithmic import place, size_axes, time_axes
from mpilab.plots.sweep import summary
from mpilab.schedules.catalogue import BLOCKWISE


def measured_and_fitted(table, models, *, collective=None, measure="span_s", gamma=None):
    """Medians of a sweep with quartiles, and each algorithm's fitted cost; a panel for each P.

    table    rows of a sweep (mpilab.sweeps.table).
    models   {(library, algorithm): Hockney}, as mpilab.models.fit_per_algorithm returns it; an
             algorithm without one gets no curve.
    gamma    the γ that the models were fitted with.

    Algorithms of Open MPI are drawn with open markers and dotted lines. A barrier, which has one
    size only, is drawn over the ranks. Raises InputError for a table of several collectives where
    `collective` doesn't say which one.
    """
    check_fields(table, (*FIELDS, measure))
    rows, collective = the_collective(table, collective)
    variants = variants_of(rows)
    panels = [None] if collective == "barrier" else np.unique(rows["ranks"]).tolist()
    figure = make_subplots(
        cols=len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.03,
        subplot_titles=[] if panels == [None] else [f"{ranks} ranks" for ranks in panels],
    )
    named = set()
    for column, ranks in enumerate(panels, start=1):
        for variant in variants:
            chosen = rows_of(rows, variant)
            if ranks is not None:
                chosen = chosen[chosen["ranks"] == ranks]
            if len(chosen) == 0:
                continue
            for trace in _traces(chosen, variant, ranks, collective, models, measure, gamma):
                trace.showlegend = trace.mode != "lines" and variant not in named
                figure.add_trace(trace, row=1, col=column)
            named.add(variant)
    _axes(figure, rows, collective, measure, len(panels))
    figure.update_layout(
        title=dict(text=f"Measured, and the fitted model: {collective}"),
        height=560,
        margin=dict(t=70, b=140),
        legend=dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top"),
    )
    return style.finish(figure, _alt(rows, collective, variants, models, measure, gamma))


def _axes(figure, rows, collective, measure, panels):
    if collective == "barrier":
        figure.update_xaxes(title="ranks")
    else:
        what = "a rank's block" if collective in BLOCKWISE else "the message"
        size_axes(figure, rows["bytes"], f"bytes of {what}", panels)
    time_axes(figure, rows[measure], "time, seconds")


def _traces(rows, variant, ranks, collective, models, measure, gamma):
    """The measured points of one variant, and its curve if it has a model."""
    library, algorithm, *_ = variant
    name = _name(variant)
    is_ours = library == "ours"
    if ranks is None:
        values = np.unique(rows["ranks"])
        quartiles = np.array(
            [np.percentile(rows[measure][rows["ranks"] == value], [25, 50, 75]) for value in values]
        )
        low, median, high = quartiles.T
        x, words = values, [f"{value} ranks" for value in values]
    else:
        values, low, median, high = summary(rows, measure)
        x, words = place(values), [style.byte_size(value) for value in values]
    symbol = style.marker(algorithm)
    yield go.Scatter(
        x=x,
        y=median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        mode="markers",
        name=name,
        legendgroup=name,
        marker=dict(
            symbol=symbol if is_ours else f"{symbol}-open", size=8, color=style.colour(algorithm)
        ),
        customdata=[
            [word, *map(style.duration, three)]
            for word, *three in zip(words, low, median, high, strict=True)
        ],
        hovertemplate=(
            f"{name}<br>%{{customdata[0]}}: %{{customdata[2]}} "
            "(%{customdata[1]} to %{customdata[3]})<extra></extra>"
        ),
    )
    model = models.get((library, algorithm))
    if model is None:
        return
    if ranks is None:
        fine = np.arange(values.min(), values.max() + 1)
        seconds = [predicted(collective, variant, int(one), 0, model, gamma) for one in fine]
    else:
        fine = np.geomspace(max(values.min(), 1), max(values.max(), 1), 80)
        seconds = predicted(collective, variant, ranks, fine, model, gamma)
    yield go.Scatter(
        x=fine,
        y=seconds,
        mode="lines",
        name=f"{name}, model",
        legendgroup=name,
        line=dict(color=style.colour(algorithm), width=1.5, dash="dash" if is_ours else "dot"),
        hoverinfo="skip",
    )


def predicted(collective, variant, ranks, sizes, model, gamma=None):
    """Seconds of a variant (library, algorithm, segment, fanout, radix) by its model."""
    library, algorithm, segment, fanout, radix = variant
    return cost(collective, algorithm, ranks, sizes, model, segment=segment, fanout=fanout,
                radix=radix, gamma=gamma, library=library)  # fmt: skip


def _name(variant):
    library, algorithm, segment, fanout, radix = variant
    words = [] if library == "ours" else [library]
    words += [f"segment {style.byte_size(segment)}"] if segment else []
    words += [f"fanout {fanout}"] if fanout else []
    words += [f"radix {radix}"] if radix else []
    return f"{algorithm} ({', '.join(words)})" if words else algorithm


def _alt(rows, collective, variants, models, measure, gamma):
    lines = [
        f"Measured times of {collective} and the fitted models: "
        f"{style.plural(len(variants), 'algorithm')}, "
        f"{', '.join(map(str, np.unique(rows['ranks'])))} ranks."
    ]
    for variant in variants:
        library, algorithm, *tunables = variant
        model = models.get((library, algorithm))
        chosen = rows_of(rows, variant)
        if model is None:
            lines.append(f"{_name(variant)}: no model.")
            continue
        off = _errors(chosen, collective, variant, model, measure, gamma)
        lines.append(
            f"{_name(variant)}: {model}; the model is off by {100 * np.median(off):.3g} % in the "
            f"middle and {100 * off.max():.3g} % at most."
            if len(off)
            else f"{_name(variant)}: {model}."
        )
    return "\n".join(lines)


def _errors(rows, collective, variant, model, measure, gamma):
    """|model - median| / median at each point of more than one rank."""
    off = []
    for ranks in np.unique(rows["ranks"][rows["ranks"] > 1]).tolist():
        sizes, _, median, _ = summary(rows[rows["ranks"] == ranks], measure)
        seconds = predicted(collective, variant, ranks, sizes, model, gamma)
        off += (abs(seconds - median) / median).tolist()
    return np.array(off)
