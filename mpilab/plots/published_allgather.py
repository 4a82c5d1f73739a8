"""A measured allgather beside the published one."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.plots import style
from mpilab.plots.logarithmic import size_axes, time_axes
from mpilab.plots.series import check, summary


def table_against_published(published_rows, table, measure="span_s"):
    """A measured sweep over a published one: a panel for each method, a line for each P.

    published_rows  as `mpilab.published.published_allgather()` returns them; drawn dotted.
    table           rows of a sweep (mpilab.sweeps.table.ROW); medians are drawn solid, in the
                    colour of their P.
    """
    check(table, measure)
    methods = list(dict.fromkeys(published_rows["method"].tolist()))
    counts = np.union1d(published_rows["processes"], table["ranks"]).tolist()
    colours = {
        ranks: style.ORDER_COLOURS[place % len(style.ORDER_COLOURS)]
        for place, ranks in enumerate(counts)
    }
    figure = make_subplots(
        cols=len(methods), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=methods
    )
    named = set()
    for column, method in enumerate(methods, start=1):
        for ranks in counts:
            printed = published_rows[
                (published_rows["method"] == method) & (published_rows["processes"] == ranks)
            ]
            rows = table[(table["algorithm"] == method) & (table["ranks"] == ranks)]
            for trace in _pair(printed, rows, measure, colours[ranks]):
                trace.update(legendgroup=str(ranks), name=f"P = {ranks}")
                trace.update(showlegend=ranks not in named)
                named.add(ranks)
                figure.add_trace(trace, row=1, col=column)
    figure.add_trace(_kind("published", "dot"), row=1, col=1)
    figure.add_trace(_kind("measured here", "solid"), row=1, col=1)
    drawn = [trace for trace in figure.data if trace.x[0] is not None]
    sizes = np.concatenate([trace.x for trace in drawn])
    size_axes(figure, sizes, "bytes of a rank's block", len(methods))
    time_axes(figure, np.concatenate([trace.y for trace in drawn]), "time, seconds")
    figure.update_layout(
        title=dict(text="Measured here, and published"),
        height=560,
        margin=dict(t=70, b=140),
        legend=dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top"),
    )
    return style.finish(figure, _alt_published(published_rows, table, methods, measure))


def _pair(printed, rows, measure, colour):
    """The published and the measured line of one method and one P, as far as there are any."""
    if len(printed):
        printed = printed[np.argsort(printed["bytes"])]
        yield go.Scatter(
            x=printed["bytes"],
            y=printed["seconds"],
            mode="lines+markers",
            line=dict(color=colour, width=1.5, dash="dot"),
            marker=dict(symbol="circle-open", size=6),
            customdata=[
                [style.byte_size(row["bytes"]), style.duration(row["seconds"])] for row in printed
            ],
            hovertemplate="%{customdata[0]}: %{customdata[1]}, published",
        )
    if len(rows):
        sizes, low, median, high = summary(rows, measure)
        yield go.Scatter(
            x=sizes,
            y=median,
            error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
            mode="lines+markers",
            line=dict(color=colour, width=2),
            marker=dict(symbol="circle", size=7),
            customdata=[
                [style.byte_size(size), style.duration(time)]
                for size, time in zip(sizes, median, strict=True)
            ],
            hovertemplate="%{customdata[0]}: %{customdata[1]}, measured",
        )


def _kind(name, dash):
    """An entry of the legend that explains a kind of line."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="lines",
        name=name,
        line=dict(color=style.TEXT, width=1.5, dash=dash),
        hoverinfo="skip",
    )


def _alt_published(published_rows, table, methods, measure):
    lines = [
        "Times measured here and published, against block size, both logarithmic: "
        f"{' and '.join(methods)}."
    ]
    for row in published_rows:
        measured = table[measure][
            (table["algorithm"] == row["method"])
            & (table["ranks"] == row["processes"])
            & (table["bytes"] == row["bytes"])
        ]
        if len(measured):
            median = float(np.median(measured))
            lines.append(
                f"{row['method']}, P = {row['processes']}, {style.byte_size(row['bytes'])}: "
                f"measured {style.duration(median)}, published {style.duration(row['seconds'])}, "
                f"ratio {median / row['seconds']:.3g}."
            )
    if len(lines) == 1:
        lines.append("No size and number of ranks is in both tables.")
    return "\n".join(lines)
