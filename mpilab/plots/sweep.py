"""Time against message size: what was measured, with its spread, beside what a model says."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.models import Hockney, predict
from mpilab.plots import style
from mpilab.schedules.allgather import ALGORITHMS

# One row for each repetition: seconds of the whole operation (last exit - first enter), and the
# mean over the ranks of each one's own duration, as the OSU benchmarks report it.
ROW = np.dtype(
    [
        ("algorithm", "U40"),
        ("ranks", "i4"),
        ("bytes", "i8"),
        ("repetition", "i4"),
        ("span_s", "f8"),
        ("mean_s", "f8"),
    ]
)


def time_against_size(table, models=None, measure="span_s", cores=None):
    """Median time over the size of a block for each algorithm of a sweep; a panel for each P.

    table    structured array of ROW.
    models   a Hockney, or a mapping of algorithm to Hockney: each algorithm's predicted time is
             then drawn dashed in its colour (`mpilab.models.predict`, with `cores`). With one
             Hockney, algorithms without a schedule (a student's own, MPI's) get no curve.
    measure  "span_s" or "mean_s".

    Bars reach from the lower to the upper quartile of the repetitions.
    """
    _check(table, measure)
    rank_counts = [int(ranks) for ranks in np.unique(table["ranks"])]
    figure = _panels([f"{ranks} ranks" for ranks in rank_counts])
    algorithms = list(dict.fromkeys(table["algorithm"].tolist()))
    in_legend = set()
    for column, ranks in enumerate(rank_counts, start=1):
        for algorithm in algorithms:
            rows = table[(table["ranks"] == ranks) & (table["algorithm"] == algorithm)]
            if len(rows) == 0:
                continue
            sizes, low, median, high = summary(rows, measure)
            trace = _measured(algorithm, sizes, low, median, high, algorithm not in in_legend)
            in_legend.add(algorithm)
            figure.add_trace(trace, row=1, col=column)
            model = _model_of(algorithm, models)
            if model is not None:
                trace = _predicted(algorithm, ranks, sizes, model, cores)
                figure.add_trace(trace, row=1, col=column)
    if models is not None:
        figure.add_trace(_dashes("α-β model"), row=1, col=1)
    what = "last exit − first enter" if measure == "span_s" else "mean over the ranks"
    _size_and_time_axes(figure, f"time ({what})")
    figure.update_layout(title=dict(text="Time against block size"))
    return style.finish(figure, _alt(table, rank_counts, algorithms, measure, models))


def table_against_published(published_rows, table, measure="span_s"):
    """A measured sweep over a published one: a panel for each method, a line for each P.

    published_rows  as `mpilab.published.published_allgather()` returns them; drawn dotted.
    table           structured array of ROW; medians are drawn solid, in the colour of their P.
    """
    _check(table, measure)
    methods = list(dict.fromkeys(published_rows["method"].tolist()))
    counts = np.union1d(published_rows["processes"], table["ranks"]).tolist()
    colours = {
        ranks: style.ORDER_COLOURS[place % len(style.ORDER_COLOURS)]
        for place, ranks in enumerate(counts)
    }
    figure = _panels(methods)
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
    figure.add_trace(_dashes("published", "dot"), row=1, col=1)
    figure.add_trace(_dashes("measured here", "solid"), row=1, col=1)
    _size_and_time_axes(figure, "time")
    figure.update_layout(title=dict(text="Measured here, and published"))
    return style.finish(figure, _alt_published(published_rows, table, methods, measure))


def summary(rows, measure="span_s"):
    """Sizes, lower quartile, median and upper quartile of `rows`: four arrays, by size."""
    sizes = np.unique(rows["bytes"])
    quartiles = [
        np.percentile(rows[measure][rows["bytes"] == size], [25, 50, 75]) for size in sizes
    ]
    return (sizes, *np.array(quartiles).reshape(-1, 3).T)


def _check(table, measure):
    missing = set(ROW.names) - set(table.dtype.names or ())
    if missing:
        raise InputError(
            f"the table of the sweep has no field {', '.join(sorted(missing))}; "
            "give a structured array of mpilab.plots.sweep.ROW."
        )
    if len(table) == 0:
        raise InputError("the table of the sweep is empty; run the sweep first.")
    if measure not in ("span_s", "mean_s"):
        raise InputError(f"measure={measure!r}; take 'span_s' or 'mean_s'.")


def _model_of(algorithm, models):
    if isinstance(models, Hockney):
        return models if algorithm in ALGORITHMS else None
    return (models or {}).get(algorithm)


def _panels(titles):
    return make_subplots(
        cols=len(titles),
        shared_yaxes=True,
        horizontal_spacing=0.03,
        subplot_titles=titles,
    )


def _measured(algorithm, sizes, low, median, high, in_legend):
    return go.Scatter(
        x=sizes,
        y=median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        mode="lines+markers",
        name=algorithm,
        legendgroup=algorithm,
        showlegend=in_legend,
        line=dict(color=style.colour(algorithm), width=2),
        marker=dict(symbol=style.marker(algorithm), size=8),
        customdata=[
            [style.byte_size(size), *map(style.duration, quartiles)]
            for size, *quartiles in zip(sizes, low, median, high, strict=True)
        ],
        hovertemplate=(
            f"{algorithm}<br>%{{customdata[0]}}: %{{customdata[2]}} "
            "(%{customdata[1]} to %{customdata[3]})<extra></extra>"
        ),
    )


def _predicted(algorithm, ranks, sizes, model, cores):
    fine = np.geomspace(max(sizes.min(), 1), max(sizes.max(), 1), 60)
    return go.Scatter(
        x=fine,
        y=predict(algorithm, ranks, fine, model, cores),
        mode="lines",
        name=f"{algorithm}, model",
        legendgroup=algorithm,
        showlegend=False,
        line=dict(color=style.colour(algorithm), width=1.5, dash="dash"),
        hoverinfo="skip",
    )


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


def _dashes(name, dash="dash"):
    """An entry of the legend that explains a kind of line."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="lines",
        name=name,
        line=dict(color=style.TEXT, width=1.5, dash=dash),
        hoverinfo="skip",
    )


def _size_and_time_axes(figure, time_title):
    """Both axes logarithmic; sizes are labelled at powers of two, times with SI prefixes."""
    sizes = np.concatenate([trace.x for trace in figure.data if trace.x[0] is not None])
    first, last = (int(np.floor(np.log2(max(size, 1)))) for size in (sizes.min(), sizes.max()))
    panels = sum(1 for _ in figure.select_xaxes())
    ticks = _powers(first, last, most=max(2, 9 // panels))
    figure.update_xaxes(
        type="log",
        title="bytes of a rank's block",
        tickvals=ticks,
        ticktext=[style.byte_size(tick) for tick in ticks],
    )
    times = np.concatenate([trace.y for trace in figure.data if trace.y[0] is not None])
    ticks = _decades(times[times > 0])
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=list(map(style.duration, ticks)))
    figure.update_yaxes(title=f"{time_title}, seconds", row=1, col=1)
    figure.update_layout(height=560, margin=dict(t=70, b=140), legend=_legend_below())


def _powers(first, last, most):
    """About `most` powers of two from 2^first to 2^last, with the last one where that can be."""
    least = max(1, -(-(last - first + 1) // most))
    even = [step for step in range(least, least + 3) if (last - first) % step == 0]
    return [1 << power for power in range(first, last + 1, even[0] if even else least)]


def _decades(times):
    """Powers of ten around `times`; up to three decades also 2 and 5 times them."""
    first = int(np.floor(np.log10(times.min())))
    last = int(np.ceil(np.log10(times.max())))
    steps = (1, 2, 5) if last - first < 4 else (1,)
    return [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]


def _legend_below():
    return dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top")


def _alt(table, rank_counts, algorithms, measure, models):
    sizes = np.unique(table["bytes"])
    lines = [
        f"Time against block size, both logarithmic: {len(algorithms)} "
        f"algorithm{'s' * (len(algorithms) != 1)}, "
        f"{_and(rank_counts)} ranks, {style.byte_size(sizes[0])} to {style.byte_size(sizes[-1])}."
    ]
    for ranks in rank_counts:
        for size in sizes:
            medians = {
                algorithm: float(np.median(table[measure][chosen]))
                for algorithm in algorithms
                if (
                    chosen := (table["ranks"] == ranks)
                    & (table["bytes"] == size)
                    & (table["algorithm"] == algorithm)
                ).any()
            }
            order = sorted(medians, key=medians.get)
            lines.append(
                f"{ranks} ranks, {style.byte_size(size)}, medians from fastest to slowest: "
                + ", ".join(f"{name} {style.duration(medians[name])}" for name in order)
                + "."
            )
    if isinstance(models, Hockney):
        lines.append(f"Dashed: the α-β model with {models}.")
    elif models:
        lines += [f"Dashed, {name}: the α-β model with {model}." for name, model in models.items()]
    return "\n".join(lines)


def _alt_published(published_rows, table, methods, measure):
    lines = [
        f"Times measured here and published, against block size, both logarithmic: {_and(methods)}."
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


def _and(words):
    words = [str(word) for word in words]
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
