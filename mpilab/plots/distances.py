"""Figures of measured times: crossovers, simulation, OSU benchmarks, and messages by distance."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError
from mpilab.measure.against import agreement
from mpilab.measure.distances import DISTANCES, QUANTITIES, ROW
from mpilab.measure.origin import titled
from mpilab.measure.osu import OsuTable
from mpilab.models.point_to_point import with_error
from mpilab.plots import style
from mpilab.plots.style import Figure, Trace, go, place, plotly, size_axes, time_axes
from mpilab.plots.sweep import summary

Crossover = tuple[str, str, dict[int, float]]  # source, algorithm, {ranks: bytes}

# Crossovers: the size from which one algorithm is faster than another, against the number of ranks.

# Markers of the sources: the first is filled, the second open, any others open and larger.
_SUFFIXES, _SIZES = ("", "-open", "-open"), (9, 13, 17)
_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")
# {parameter: (name in the figure, unit, factor from seconds)}
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


def crossover(
    found: Mapping[str, Mapping[str, Mapping[int, float]]],
    models: Mapping[str, Mapping[int, float]],
    title: str,
) -> Figure:
    """Figure of crossovers, both axes logarithmic.

    found    {source: {algorithm: {ranks: bytes}}}, e.g. mpilab.measure.crossover's crossings; up
             to three sources. Values of 0 or nan are left out.
    models   {algorithm: {ranks: bytes}} according to a model, drawn as a dashed line.

    Raises InputError if there is nothing to draw.
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
        figure.add_trace(
            go.Scatter(
                x=list(each),
                y=list(each.values()),
                mode="lines",
                name=f"{algorithm}, α-β model",
                line=dict(color=style.color(algorithm), width=1.5, dash="dash"),
                hoverinfo="skip",
            )
        )
    sources = list(found)
    for source, algorithm, each in points:
        place = min(sources.index(source), len(_SIZES) - 1)
        figure.add_trace(
            go.Scatter(
                x=list(each),
                y=list(each.values()),
                mode="markers",
                name=f"{algorithm}, {source}",
                marker=dict(
                    color=style.color(algorithm),
                    size=_SIZES[place],
                    symbol=style.marker(algorithm) + _SUFFIXES[place],
                    line=dict(width=2, color=style.color(algorithm)),
                ),
                customdata=[style.byte_size(size) for size in each.values()],
                hovertemplate=f"{algorithm}, {source}<br>%{{x}} ranks: from %{{customdata}} on"
                "<extra></extra>",
            )
        )
    _axes(figure, points, models)
    figure.update_layout(
        title=dict(text=title),
        height=560,
        margin=dict(l=110, t=60, b=150),
        legend=dict(orientation="h", x=0, y=-0.22, yanchor="top"),
    )
    return style.finish(figure, "\n".join([f"{title}.", *_lines(points, models)]))


def _axes(
    figure: Figure, points: Sequence[Crossover], models: Mapping[str, Mapping[int, float]]
) -> None:
    all_of = [*(each for *_, each in points), *models.values()]
    ranks = sorted({p for each in all_of for p in each})
    sizes = [size for each in all_of for size in each.values()]
    first, last = (int(np.floor(np.log2(one))) for one in (min(sizes), max(sizes)))
    ticks = [1 << power for power in range(first, last + 2, max(1, (last - first) // 7))]
    figure.update_xaxes(
        type="log", title="ranks", tickvals=ranks, ticktext=[f"{p:,}" for p in ranks]
    )
    figure.update_yaxes(
        type="log",
        title="smallest size at which the tree is slower (bytes)",
        tickvals=ticks,
        ticktext=[style.byte_size(tick) for tick in ticks],
    )


def _lines(points: Sequence[Crossover], models: Mapping[str, Mapping[int, float]]) -> Iterator[str]:
    named: list[tuple[str, Mapping[int, float]]] = [
        (f"{algorithm}, {source}", each) for source, algorithm, each in points
    ]
    named += [(f"{algorithm}, by the α-β model", each) for algorithm, each in models.items()]
    for name, each in named:
        told = ", ".join(f"{p} ranks from {style.byte_size(m)}" for p, m in each.items())
        yield f"{name}: {told}."


# Simulated against measured times, a point for each kernel, order and size.


def simulated_against_measured(rows: NDArray[Any]) -> Figure:
    """Figure of simulated against measured time, both logarithmic, with the line of equality.

    rows   records of mpilab.measure.against.ROW; a color and a marker for each collective.

    Raises InputError if there are none.
    """
    found = agreement(rows)
    title = "Simulated and measured times"
    figure = go.Figure()
    lines = [
        f"{title}: {found.points} points, one for each kernel, order of ranks and size, both axes "
        "logarithmic.",
        f"All: rank correlation {found.rho:.2f}, median of simulated over measured "
        f"{found.ratio:.2f}.",
    ]
    for number, collective in enumerate(dict.fromkeys(rows["collective"].tolist())):
        chosen = rows[rows["collective"] == collective]
        figure.add_trace(_points(collective, chosen, number))
        one = agreement(chosen)
        lines.append(
            f"{collective}: {one.points} points, rank correlation {one.rho:.2f}, median ratio "
            f"{one.ratio:.2f}; measured {style.duration(chosen['measured_s'].min())} to "
            f"{style.duration(chosen['measured_s'].max())}."
        )
    both = np.concatenate([rows["measured_s"], rows["simulated_ns"] / 1e9])
    ends = [both.min() / 1.5, both.max() * 1.5]
    figure.add_trace(
        go.Scatter(
            x=ends,
            y=ends,
            mode="lines",
            name="equal",
            hoverinfo="skip",
            line=dict(color=style.LINE, dash="dash"),
        )
    )
    powers = range(int(np.floor(np.log10(ends[0]))), int(np.ceil(np.log10(ends[1]))) + 1)
    ticks = dict(
        type="log",
        tickvals=[10.0**power for power in powers],
        ticktext=[style.duration(10.0**power) for power in powers],
        range=np.log10(ends).tolist(),
    )
    figure.update_xaxes(title="measured, median of the repetitions", **ticks)
    figure.update_yaxes(title="simulated", **ticks)
    figure.update_layout(
        title=dict(text=title),
        height=560,
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
        margin=dict(t=90),
    )
    return style.finish(figure, "\n".join(lines))


def _points(collective: str, rows: NDArray[Any], number: int) -> Trace:
    told = [f"{row['kernel']}, {row['order']}, {style.byte_size(row['bytes'])}" for row in rows]
    return go.Scatter(
        x=rows["measured_s"],
        y=rows["simulated_ns"] / 1e9,
        mode="markers",
        name=collective,
        marker=dict(
            color=style.ORDER_COLORS[number % len(style.ORDER_COLORS)],
            size=7,
            symbol=_SYMBOLS[number % len(_SYMBOLS)],
            opacity=0.75,
        ),
        text=told,
        hovertemplate="%{text}<br>measured %{x:.3s}s, simulated %{y:.3s}s<extra></extra>",
    )


# OSU micro-benchmarks in one figure.


def side_by_side(tables: Mapping[str, OsuTable]) -> Figure:
    """Figure of latency or bandwidth against message size: a line for each of `tables`.

    tables   {label: OsuTable (mpilab.measure.osu)}, all with latencies or all with bandwidths.
             Error bars show the smallest and the largest mean of a rank if the table has them (-f).
             Where they were measured is said below the title, for tables that `run` made.

    Raises InputError for no tables, a mixture, or tables without sizes (osu_barrier).
    """
    field = _field(tables)
    figure = plotly.subplots.make_subplots()
    lines = []
    for index, (label, table) in enumerate(tables.items()):
        rows = table.rows
        color = style.ORDER_COLORS[index % len(style.ORDER_COLORS)]
        # Convert microseconds to seconds, as in every figure of times.
        values = rows[field] * 1e-6 if field == "avg_us" else rows[field]
        figure.add_trace(_line(label, rows, values, field, color))
        lines.append(
            f"{label}: "
            + ", ".join(
                f"{style.byte_size(size)} {_said(value, field)}"
                for size, value in zip(rows["size"], values, strict=True)
            )
            + "."
        )
    sizes = np.concatenate([table.rows["size"] for table in tables.values()])
    style.size_axes(figure, sizes, "bytes of a message")
    if field == "avg_us":
        times = np.concatenate([trace.y for trace in figure.data])
        style.time_axes(figure, times, "OSU's average latency, seconds")
    else:
        figure.update_yaxes(type="log", title="bandwidth, MB/s")
    what = "latency" if field == "avg_us" else "bandwidth"
    where = "; ".join(dict.fromkeys(table.where for table in tables.values() if table.where))
    figure.update_layout(title=dict(text=titled(f"OSU {what} against message size", where)))
    alt = f"OSU {what} against message size, both logarithmic: {', '.join(tables)}."
    return style.finish(figure, "\n".join([alt, *_told(where), *lines]))


def _told(where: str) -> list[str]:
    """The same as lines of a text alternative."""
    return [f"Times {where}."] if where else []


def _field(tables: Mapping[str, OsuTable]) -> str:
    if not tables:
        raise InputError("side_by_side({}): give at least one table, e.g. {'default': table}")
    fields = {}
    for label, table in tables.items():
        names = table.rows.dtype.names or ()
        found = next((name for name in ("avg_us", "mb_per_s") if name in names), None)
        if "size" not in names or found is None:
            raise InputError(
                f"table {label!r} ({table.benchmark}): has no sizes with a latency or "
                "a bandwidth; show it as text"
            )
        fields[label] = found
    if len(set(fields.values())) > 1:
        raise InputError(f"tables of latencies and of bandwidths: {fields}; draw a figure for each")
    return next(iter(fields.values()))


def _line(
    label: str, rows: NDArray[Any], values: NDArray[np.float64], field: str, color: str
) -> Trace:
    bars = None
    if "min_us" in (rows.dtype.names or ()):
        bars = dict(
            array=rows["max_us"] * 1e-6 - values,
            arrayminus=values - rows["min_us"] * 1e-6,
            thickness=1,
            width=3,
        )
    return go.Scatter(
        x=rows["size"],
        y=values,
        error_y=bars,
        mode="lines+markers",
        name=label,
        line=dict(color=color, width=2),
        marker=dict(size=7),
        customdata=[
            [style.byte_size(size), _said(value, field)]
            for size, value in zip(rows["size"], values, strict=True)
        ],
        hovertemplate=f"{label}<br>%{{customdata[0]}}: %{{customdata[1]}}<extra></extra>",
    )


def _said(value: float, field: str) -> str:
    return style.duration(value) if field == "avg_us" else f"{value:.4g} MB/s"


# Messages by distance: times against sizes, and the fitted parameters.


def time_against_size(
    table: NDArray[Any],
    fits: Mapping[str, Any] | None = None,
    quantity: str = "one_way",
    where: str = "",
) -> Figure:
    """Figure of median time against message size for each distance.

    table     of mpilab.measure.distances.
    fits      {distance: Hockney, LogP or LogGP}, whose `time` is drawn dashed.
    quantity  one of QUANTITIES.
    where     where the times come from (mpilab.measure.distances.where), below the title.

    Error bars show the quartiles. Raises InputError if the table lacks the quantity.
    """
    rows = _rows(table, quantity)
    names = [name for name in DISTANCES if name in rows["distance"]]
    figure = plotly.subplots.make_subplots(cols=1)
    lines = [
        f"Time ({WORDS[quantity]}) against message size, both logarithmic: {', '.join(names)}.",
        *_told(where),
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
        if fits and name in fits:
            fine = np.geomspace(max(sizes.min(), 1), max(sizes.max(), 1), 120)
            figure.add_trace(_curve(name, fine, fits[name]))
            lines.append(f"{name}, dashed: {fits[name]}.")
    size_axes(figure, rows["bytes"], "bytes of the message")
    time_axes(figure, rows["seconds"], f"time ({WORDS[quantity]}), seconds")
    figure.update_layout(title=dict(text=titled("A message by distance", where)), height=480)
    return style.finish(figure, "\n".join(lines))


def parameters(
    fits: Mapping[str, Any], title: str = "What a message costs, by distance", where: str = ""
) -> Figure:
    """Figure of the parameters of `fits` {distance: Hockney, LogP or LogGP}, a panel for each.

    Error bars are one standard error to either side, if it is known. `where` the times come from is
    said below the title. Raises InputError for no fits or fits of different models.
    """
    kinds = {type(fit) for fit in fits.values()}
    if len(kinds) != 1:
        raise InputError(
            f"fits of {len(kinds)} models; give a mapping from distances to fits of one model, "
            "as mpilab.distances.fit_distances returns it."
        )
    names = [name for name in DISTANCES if name in fits] or list(fits)
    shown = [field.name for field in fields(kinds.pop()) if field.name in PARAMETERS]
    figure = plotly.subplots.make_subplots(
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
                marker=dict(size=10, color=[_color(name) for name in names]),
                showlegend=False,
                customdata=[
                    f"{with_error(value, error)} {unit}"
                    for value, error in zip(values, errors, strict=True)
                ],
                hovertemplate=f"%{{x}}: {word} = %{{customdata}}<extra></extra>",
            ),
            row=1,
            col=column,
        )
        figure.update_yaxes(rangemode="tozero", row=1, col=column)
    figure.update_xaxes(type="category", tickangle=-30)
    figure.update_layout(title=dict(text=titled(title, where)), height=400, margin=dict(t=90))
    lines = [f"{title}: {', '.join(PARAMETERS[one][0] for one in shown)}.", *_told(where)]
    return style.finish(figure, "\n".join(lines + [f"{name}: {fits[name]}." for name in names]))


def _rows(table: NDArray[Any], quantity: str) -> NDArray[Any]:
    if quantity not in QUANTITIES:
        raise InputError(f"quantity={quantity!r}; use one of {', '.join(QUANTITIES)}.")
    missing = set(ROW.names or ()) - set(table.dtype.names or ())
    rows = table if missing else table[table["quantity"] == quantity]
    if missing or len(rows) == 0:
        raise InputError(
            f"the table of distances has no rows of {quantity}; give what "
            "mpilab.distances.measure() returns."
        )
    return rows


def _color(name: str) -> str:
    colors = style.ORDER_COLORS
    return colors[(DISTANCES.index(name) if name in DISTANCES else 0) % len(colors)]


def _measured(
    name: str,
    sizes: NDArray[Any],
    low: NDArray[np.float64],
    median: NDArray[np.float64],
    high: NDArray[np.float64],
) -> Trace:
    return go.Scatter(
        x=place(sizes),
        y=median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        mode="markers",
        name=name,
        legendgroup=name,
        marker=dict(size=8, color=_color(name)),
        customdata=[
            [style.byte_size(size), *map(style.duration, three)]
            for size, *three in zip(sizes, low, median, high, strict=True)
        ],
        hovertemplate=(
            f"{name}<br>%{{customdata[0]}}: %{{customdata[2]}} "
            "(%{customdata[1]} to %{customdata[3]})<extra></extra>"
        ),
    )


def _curve(name: str, sizes: NDArray[np.float64], fit: Any) -> Trace:
    return go.Scatter(
        x=sizes,
        y=fit.time(sizes),
        mode="lines",
        name=f"{name}, model",
        legendgroup=name,
        showlegend=False,
        line=dict(color=_color(name), width=1.5, dash="dash"),
        hoverinfo="skip",
    )
