"""Time against message size or number of ranks: what was measured, with its spread, beside what a
model says."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.plots import style
from mpilab.plots.logarithmic import place, size_axes, time_axes
from mpilab.plots.published_allgather import table_against_published
from mpilab.plots.series import MEASURES, check, series_of, summary
from mpilab.schedules.catalogue import BLOCKWISE

__all__ = ["summary", "table_against_published", "time_against_ranks", "time_against_size"]

# A model with few cores goes through a whole schedule for each point of its curve.
_POINTS, _POINTS_BY_SCHEDULE = 60, 16


def time_against_size(table, models=None, measure="span_s", cores=None):
    """Median time over message size for each algorithm of a sweep; a panel for each P.

    table    rows of a sweep (mpilab.sweeps.table.ROW; algorithm, ranks, bytes, span_s and mean_s
             are needed). Open MPI's have open markers. Algorithms that were tuned in several ways
             are a line for each.
    models   a Hockney, or a mapping of names of algorithms (or of pairs library, algorithm) to one:
             what each should take is then drawn in its colour, dashed (Open MPI's: dotted). Those
             without a schedule (a student's own, "default") get no curve.
    measure  "span_s" or "mean_s".
    cores    the models' cores, where these are fewer than ranks (mpilab.models.predict_schedule);
             Open MPI's algorithms then get no curve.

    Bars reach from the lower to the upper quartile of the repetitions. A table without sizes, of a
    barrier, is drawn over the ranks.
    """
    check(table, measure)
    if not table["bytes"].any():
        return time_against_ranks(table, models, measure, cores)
    panels = [int(ranks) for ranks in np.unique(table["ranks"])]
    figure = _figure(table, "ranks", panels, [f"{ranks} ranks" for ranks in panels], models,
                     measure, cores)  # fmt: skip
    what = _what(table)
    of = "a rank's block" if what == "block" else "the message"
    size_axes(figure, place(table["bytes"]), f"bytes of {of}", len(panels))
    figure.update_layout(title=dict(text=f"Time against {what} size"))
    return style.finish(figure, _alt(table, "ranks", panels, measure, models))


def time_against_ranks(table, models=None, measure="span_s", cores=None):
    """Median time over the number of ranks for each algorithm; a panel for each message size.

    Arguments as for `time_against_size`.
    """
    check(table, measure)
    panels = [int(size) for size in np.unique(table["bytes"])]
    titles = [style.byte_size(size) for size in panels] if any(panels) else [""]
    figure = _figure(table, "bytes", panels, titles, models, measure, cores)
    figure.update_xaxes(title="ranks", tickvals=np.unique(table["ranks"]))
    figure.update_layout(title=dict(text="Time against the number of ranks"))
    return style.finish(figure, _alt(table, "bytes", panels, measure, models))


def _figure(table, panel_field, panels, titles, models, measure, cores):
    """A panel for each value of `panel_field`; "bytes" or "ranks", the other one, is the x axis."""
    field = "bytes" if panel_field == "ranks" else "ranks"
    figure = make_subplots(
        cols=len(panels), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=titles
    )
    in_legend, has_model = set(), False
    for column, panel in enumerate(panels, start=1):
        for series in series_of(table):
            rows = series.rows(table)
            rows = rows[rows[panel_field] == panel]
            if len(rows) == 0:
                continue
            points = summary(rows, measure, field)
            trace = _measured(series, field, *points, series not in in_legend)
            in_legend.add(series)
            figure.add_trace(trace, row=1, col=column)
            model = series.model(models)
            if model is not None:
                trace = _predicted(series, field, panel, points[0], model, cores)
                if trace is not None:
                    has_model = True
                    figure.add_trace(trace, row=1, col=column)
    if has_model:
        figure.add_trace(_dashes("α-β model"), row=1, col=1)
    figure.update_layout(height=560, margin=dict(t=70, b=140), legend=_legend_below())
    times = np.concatenate([trace.y for trace in figure.data if trace.y[0] is not None])
    time_axes(figure, times, f"time ({MEASURES[measure]}), seconds")
    return figure


def _measured(series, field, values, low, median, high, in_legend):
    words = [_said(field, value) for value in values]
    return go.Scatter(
        x=place(values) if field == "bytes" else values,
        y=median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        mode="lines+markers",
        name=series.name,
        legendgroup=series.name,
        showlegend=in_legend,
        line=dict(color=series.colour, width=2, dash=series.dash),
        marker=dict(symbol=series.symbol, size=8),
        customdata=[
            [word, *map(style.duration, quartiles)]
            for word, *quartiles in zip(words, low, median, high, strict=True)
        ],
        hovertemplate=(
            f"{series.name}<br>%{{customdata[0]}}: %{{customdata[2]}} "
            "(%{customdata[1]} to %{customdata[3]})<extra></extra>"
        ),
    )


def _predicted(series, field, panel, values, model, cores):
    """The model's curve over the measured range; None where there is none."""
    if field == "bytes":
        by_schedule = cores is not None and series.collective != "allgather"
        points = _POINTS_BY_SCHEDULE if by_schedule else _POINTS
        x = np.geomspace(max(values.min(), 1), max(values.max(), 1), points)
        y = series.predicted(panel, x, model, cores)
    else:
        x = np.arange(values.min(), values.max() + 1)
        each = [series.predicted(int(ranks), np.array([panel]), model, cores) for ranks in x]
        y = None if any(seconds is None for seconds in each) else np.concatenate(each)
    if y is None:
        return None
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        name=f"{series.name}, model",
        legendgroup=series.name,
        showlegend=False,
        line=dict(color=series.colour, width=1.5, dash="dash" if series.is_ours else "dot"),
        hoverinfo="skip",
    )


def _dashes(name):
    """An entry of the legend that explains a kind of line."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="lines",
        name=name,
        line=dict(color=style.TEXT, width=1.5, dash="dash"),
        hoverinfo="skip",
    )


def _legend_below():
    return dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top")


def _said(field, value):
    return style.byte_size(value) if field == "bytes" else style.plural(int(value), "rank")


# --- As text


def _alt(table, panel_field, panels, measure, models):
    every, field = series_of(table), "bytes" if panel_field == "ranks" else "ranks"
    values = np.unique(table[field])
    counted = style.plural(len(every), "algorithm")
    if field == "bytes":
        rank_counts = _and(panels)
        lines = [
            f"Time against {_what(table)} size, both logarithmic: "
            f"{counted}, {rank_counts} ranks, "
            f"{style.byte_size(values[0])} to {style.byte_size(values[-1])}."
        ]
    else:
        sizes = f", {_and(map(style.byte_size, panels))}" if any(panels) else ""
        lines = [f"Time against the number of ranks: {counted}, {_and(values)} ranks{sizes}."]
    for panel in panels:
        for value in values:
            chosen = table[(table[panel_field] == panel) & (table[field] == value)]
            medians = {
                series.name: float(np.median(rows[measure]))
                for series in every
                if len(rows := series.rows(chosen))
            }
            if not medians:
                continue
            ranks, size = (panel, value) if field == "bytes" else (value, panel)
            of_size = f", {style.byte_size(size)}" if table["bytes"].any() else ""
            order = sorted(medians, key=medians.get)
            lines.append(
                f"{ranks} ranks{of_size}, medians from fastest to slowest: "
                + ", ".join(f"{name} {style.duration(medians[name])}" for name in order)
                + "."
            )
    if isinstance(models, dict):
        named = {" ".join(key) if isinstance(key, tuple) else key: models[key] for key in models}
        lines += [f"Dashed, {name}: the α-β model with {model}." for name, model in named.items()]
    elif models is not None:
        lines.append(f"Dashed: the α-β model with {models}.")
    return "\n".join(lines)


def _what(table):
    """What the sizes of a table are those of: "block", or "message" where it is not that alone."""
    by_block = all(series.collective in BLOCKWISE for series in series_of(table))
    return "block" if by_block else "message"


def _and(words):
    words = [str(word) for word in words]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
