"""Figures of sweeps: time against message size or number of ranks, measured, published, modeled."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms import BLOCKWISE, algorithms, schedule_of
from mpilab.cases.case import COLLECTIVES
from mpilab.cases.data import datatype
from mpilab.errors import InputError
from mpilab.measure.origin import below, ranks_label, sentences, shared_ranks
from mpilab.measure.sweep_table import OVERSUBSCRIBED
from mpilab.models import predict, predict_schedule
from mpilab.models.costs import cost, formula_of
from mpilab.models.point_to_point import Hockney
from mpilab.plots import style
from mpilab.plots.style import Figure, Trace, go, place, plotly, size_axes, time_axes

# A model for all lines, or by name of the algorithm, or by (library, algorithm).
Models = Hockney | Mapping[Any, Hockney] | None

# The lines of a sweep's figure: their rows, names, looks and predicted times.

# The fields that distinguish lines, and their values in tables that lack the field.
SERIES_FIELDS = {
    "collective": "allgather",
    "library": "ours",
    "algorithm": "",
    "segment": 0,
    "fanout": 0,
    "radix": 0,
}
MEASURES = {"span_s": "last exit − first enter", "mean_s": "mean over the ranks"}
# For the same algorithm, tuned in several ways.
DASHES = ("solid", "longdash", "longdashdot", "dashdot")
# The fields that distinguish the lines of a sweep.
LINE = ("library", "algorithm", "ranks", "segment", "fanout", "radix")
MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
# With few cores, each point of a model's curve requires a traversal of a whole schedule.
_POINTS, _POINTS_BY_SCHEDULE = 60, 16


@dataclass(frozen=True)
class Series:
    """One tuned algorithm of a table; `number` counts the tunings of the algorithm."""

    collective: str
    library: str
    algorithm: str
    segment: int
    fanout: int
    radix: int
    number: int = 0
    name: str = ""

    @property
    def is_ours(self) -> bool:
        """Is it a kernel of the kit or of a student?"""
        return self.library == "ours"

    @property
    def color(self) -> str:
        """The color of the algorithm."""
        return style.color(self.algorithm)

    @property
    def symbol(self) -> str:
        """The marker: open for Open MPI."""
        return style.marker(self.algorithm) + ("" if self.is_ours else "-open")

    @property
    def dash(self) -> str:
        """The dash of its line."""
        return DASHES[self.number % len(DASHES)]

    def rows(self, table: NDArray[Any]) -> NDArray[Any]:
        """Its rows in a table."""
        chosen = np.ones(len(table), bool)
        for field in SERIES_FIELDS:
            if field in (table.dtype.names or ()):
                chosen &= table[field] == getattr(self, field)
        return table[chosen]

    def model(self, models: Models) -> Hockney | None:
        """Its Hockney among `models` (see time_against_size), or None."""
        if isinstance(models, Mapping):
            return models.get(
                self.name, models.get((self.library, self.algorithm), models.get(self.algorithm))
            )
        return models

    def predicted(
        self, ranks: int, sizes: NDArray[Any], model: Hockney, cores: int | None = None
    ) -> NDArray[np.float64] | None:
        """Predicted seconds for an array of sizes in bytes; None without a formula or schedule."""
        known = self.is_ours and self.algorithm in algorithms(self.collective)
        tuned = {"segment": self.segment, "fanout": self.fanout, "radix": self.radix}
        if known and self.collective == "allgather":
            return np.asarray(predict(self.algorithm, ranks, sizes, model, cores), float)
        if cores is not None:
            return (
                np.array([self._scheduled(ranks, size, model, cores, tuned) for size in sizes])
                if known
                else None
            )
        try:
            formula_of(self.collective, self.algorithm, self.library)
        except InputError:
            return None
        seconds = cost(
            self.collective,
            self.algorithm,
            ranks,
            sizes,
            model,
            segment=self.segment,
            fanout=self.fanout,
            radix=self.radix,
            library=self.library,
        )
        return np.asarray(seconds, float)

    def _scheduled(
        self, ranks: int, size: float, model: Hockney, cores: int | None, tuned: Mapping[str, int]
    ) -> float:
        element = datatype("int")[0].size if COLLECTIVES[self.collective].reduces else 1
        schedule = schedule_of(
            self.collective,
            self.algorithm,
            ranks,
            element_bytes=element,
            count=int(-(-size // element)),
            **tuned,
        )
        return float(predict_schedule(schedule, None, model, cores))


def series_of(table: NDArray[Any]) -> list[Series]:
    """The Series of a table, in order of first appearance."""
    present = [field for field in SERIES_FIELDS if field in (table.dtype.names or ())]
    found = [
        {**SERIES_FIELDS, **dict(zip(present, values, strict=True))}
        for values in dict.fromkeys(table[present].tolist())
    ]
    several = len({each["collective"] for each in found}) > 1
    numbers: dict[tuple[str, str, str], int] = {}
    made = []
    for each in found:
        key = each["collective"], each["library"], each["algorithm"]
        numbers[key] = numbers.get(key, -1) + 1
        made.append(Series(**each, number=numbers[key], name=_name(each, several)))
    return made


def _name(each: Mapping[str, Any], several: bool) -> str:
    words = [] if each["library"] == "ours" else ["Open MPI"]
    words += [f"segment {style.byte_size(each['segment'])}"] if each["segment"] else []
    words += [f"{word} {each[word]}" for word in ("fanout", "radix") if each[word]]
    own = f"{each['collective']} {each['algorithm']}" if several else each["algorithm"]
    return f"{own} ({', '.join(words)})" if words else own


def summary(
    rows: NDArray[Any], measure: str = "span_s", field: str = "bytes"
) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Four arrays: the values of `field`, and the lower quartile, median and upper quartile."""
    values = np.unique(rows[field])
    quartiles = [
        np.percentile(rows[measure][rows[field] == value], [25, 50, 75]) for value in values
    ]
    return (values, *np.array(quartiles).reshape(-1, 3).T)


def check(table: NDArray[Any], measure: str) -> None:
    """Raise InputError for a table that is empty or lacks a field, and for an unknown measure."""
    needed = {"algorithm", "ranks", "bytes", *MEASURES}
    missing = needed - set(table.dtype.names or ())
    if missing:
        raise InputError(
            f"the table of the sweep has no field {', '.join(sorted(missing))}; "
            "give a structured array of mpilab.measure.sweep_table.ROW."
        )
    if len(table) == 0:
        raise InputError("the table of the sweep is empty; run the sweep first.")
    if measure not in MEASURES:
        raise InputError(f"measure={measure!r}; take 'span_s' or 'mean_s'.")


# Measured and published times of allgather.


def table_against_published(
    published_rows: NDArray[Any], table: NDArray[Any], measure: str = "span_s"
) -> Figure:
    """Figure of a measured and a published sweep: a panel for each method, a line for each P.

    published_rows  as `mpilab.measure.dataset.published_allgather()` returns them; drawn dotted.
    table           rows of a sweep (mpilab.measure.sweep_table.ROW); medians are drawn solid, in
                    the color of their P.
    """
    check(table, measure)
    methods = list(dict.fromkeys(published_rows["method"].tolist()))
    counts = np.union1d(published_rows["processes"], table["ranks"]).tolist()
    colors = {
        ranks: style.ORDER_COLORS[place % len(style.ORDER_COLORS)]
        for place, ranks in enumerate(counts)
    }
    figure = plotly.subplots.make_subplots(
        cols=len(methods), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=methods
    )
    named = set()
    for column, method in enumerate(methods, start=1):
        for ranks in counts:
            printed = published_rows[
                (published_rows["method"] == method) & (published_rows["processes"] == ranks)
            ]
            rows = table[(table["algorithm"] == method) & (table["ranks"] == ranks)]
            for trace in _pair(printed, rows, measure, colors[ranks]):
                trace.update(legendgroup=str(ranks), name=_p_label(table, ranks))
                trace.update(showlegend=ranks not in named)
                named.add(ranks)
                figure.add_trace(trace, row=1, col=column)
    figure.add_trace(_kind("published", "dot"), row=1, col=1)
    figure.add_trace(_kind("measured here", "solid"), row=1, col=1)
    drawn = [trace for trace in figure.data if trace.x[0] is not None]
    sizes = np.concatenate([trace.x for trace in drawn])
    size_axes(figure, sizes, "bytes of a rank's block", len(methods))
    time_axes(figure, np.concatenate([trace.y for trace in drawn]), "time, seconds")
    figure.update_layout(title=dict(text=below("Measured here, and published", table)))
    figure.update_layout(
        height=560,
        margin=dict(t=70, b=140),
        legend=dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top"),
    )
    return style.finish(figure, _alt_published(published_rows, table, methods, measure))


def _p_label(table: NDArray[Any], ranks: int) -> str:
    shared = ranks in shared_ranks(table)
    return f"P = {ranks}" + (f" (here {OVERSUBSCRIBED})" if shared else "")


def _pair(printed: NDArray[Any], rows: NDArray[Any], measure: str, color: str) -> Iterator[Trace]:
    """The published and the measured line of one method and one P, if there are any."""
    if len(printed):
        printed = printed[np.argsort(printed["bytes"])]
        yield go.Scatter(
            x=printed["bytes"],
            y=printed["seconds"],
            mode="lines+markers",
            line=dict(color=color, width=1.5, dash="dot"),
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
            line=dict(color=color, width=2),
            marker=dict(symbol="circle", size=7),
            customdata=[
                [style.byte_size(size), style.duration(time)]
                for size, time in zip(sizes, median, strict=True)
            ],
            hovertemplate="%{customdata[0]}: %{customdata[1]}, measured",
        )


def _kind(name: str, dash: str) -> Trace:
    """A legend entry for a line style."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="lines",
        name=name,
        line=dict(color=style.TEXT, width=1.5, dash=dash),
        hoverinfo="skip",
    )


def _alt_published(
    published_rows: NDArray[Any], table: NDArray[Any], methods: Sequence[str], measure: str
) -> str:
    lines = [
        "Times measured here and published, against block size, both logarithmic: "
        f"{' and '.join(methods)}.",
        *sentences(table),
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
    if not any(", ratio " in line for line in lines):
        lines.append("The tables have no size and number of ranks in common.")
    return "\n".join(lines)


# Measured and published times of broadcast.


def bcast_against_published(
    published_rows: NDArray[Any], table: NDArray[Any], measure: str = "mean_s"
) -> Figure:
    """Figure of time against message size: published dotted, measured solid, a color per algorithm.

    published_rows  as `mpilab.measure.dataset.published_bcast()` returns them.
    table           structured array of a sweep (mpilab.measure.sweep_table); only its rows of bcast
                    are used. Medians with their quartiles are drawn.
    measure         'mean_s' is what OSU's tables show, the mean of the ranks' own times; 'span_s'
                    is the true span, which the published tables lack.

    Raises InputError for a table without the fields or without a bcast, and an unknown measure.
    """
    rows = _bcasts(table, measure)
    figure = plotly.subplots.make_subplots()
    lines = []
    for algorithm in dict.fromkeys(published_rows["algorithm"].tolist()):
        printed = np.sort(published_rows[published_rows["algorithm"] == algorithm], order="bytes")
        figure.add_trace(_published(algorithm, printed))
        lines.append(
            _in_words(
                f"{algorithm}, published, P = {printed['ranks'][0]}",
                printed["bytes"],
                printed["mean_s"],
            )
        )
    for index, line in enumerate(dict.fromkeys(rows[list(LINE)].tolist())):
        chosen = rows[rows[list(LINE)] == np.array(line, rows[list(LINE)].dtype)]
        sizes, low, median, high = _summary(chosen, measure)
        name = _bcast_name(dict(zip(LINE, line, strict=True)))
        name += f", {OVERSUBSCRIBED}" * (line[LINE.index("ranks")] in shared_ranks(rows))
        marker = MARKERS[index % len(MARKERS)]
        figure.add_trace(_measured_bcast(name, line[1], marker, sizes, low, median, high))
        lines.append(_in_words(name, sizes, median))
    sizes = np.concatenate([published_rows["bytes"], rows["bytes"]])
    style.size_axes(figure, sizes, "bytes of the message")
    what = "mean over the ranks" if measure == "mean_s" else "last exit − first enter"
    times = np.concatenate([trace.y for trace in figure.data])
    style.time_axes(figure, times, f"time ({what}), seconds")
    figure.update_layout(title=dict(text=below("Broadcast: measured here, and published", rows)))
    figure.update_layout(
        height=560,
        margin=dict(t=70, b=140),
        legend=dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top"),
    )
    first = "Broadcast times against message size, both logarithmic; published dotted, ours solid."
    return style.finish(figure, "\n".join([first, *sentences(rows), *lines]))


def _bcasts(table: NDArray[Any], measure: str) -> NDArray[Any]:
    missing = {"collective", "bytes", *LINE, measure} - set(table.dtype.names or ())
    if measure not in ("mean_s", "span_s"):
        raise InputError(f"measure={measure!r}; take 'mean_s' or 'span_s'.")
    if missing:
        raise InputError(
            f"the table of the sweep has no field {', '.join(sorted(missing))}; give one that "
            "mpilab.measure.sweep_table.read returns."
        )
    rows = table[table["collective"] == "bcast"]
    if len(rows) == 0:
        raise InputError("the table of the sweep holds no bcast; run a sweep of bcast first.")
    return rows


def _bcast_name(line: Mapping[str, Any]) -> str:
    """'pipeline, Open MPI's, P = 4, segments of 8 KiB'."""
    words = [line["algorithm"], "ours" if line["library"] == "ours" else "Open MPI's"]
    words.append(f"P = {line['ranks']}")
    if line["segment"]:
        words.append(f"segments of {style.byte_size(line['segment'])}")
    words += [f"{field} {line[field]}" for field in ("fanout", "radix") if line[field]]
    return ", ".join(words)


def _summary(rows: NDArray[Any], measure: str) -> tuple[NDArray[Any], ...]:
    """Sizes, lower quartile, median and upper quartile of `rows`: four arrays."""
    sizes = np.unique(rows["bytes"])
    quartiles = [np.percentile(rows[measure][rows["bytes"] == s], [25, 50, 75]) for s in sizes]
    return (sizes, *np.array(quartiles).T)


def _published(algorithm: str, printed: NDArray[Any]) -> Trace:
    name = f"{algorithm}, published, P = {printed['ranks'][0]}"
    return _scatter(
        name,
        printed["bytes"],
        printed["mean_s"],
        line=dict(color=style.color(algorithm), width=1.5, dash="dot"),
        marker=dict(symbol="circle-open", size=6),
    )


def _measured_bcast(
    name: str,
    algorithm: str,
    marker: str,
    sizes: NDArray[Any],
    low: NDArray[np.float64],
    median: NDArray[np.float64],
    high: NDArray[np.float64],
) -> Trace:
    return _scatter(
        name,
        sizes,
        median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        line=dict(color=style.color(algorithm), width=2),
        marker=dict(symbol=marker, size=7),
    )


def _scatter(name: str, sizes: NDArray[Any], times: NDArray[np.float64], **look: Any) -> Trace:
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


def _in_words(name: str, sizes: NDArray[Any], times: NDArray[np.float64]) -> str:
    each = (f"{style.byte_size(s)} {style.duration(t)}" for s, t in zip(sizes, times, strict=True))
    return f"{name}: {', '.join(each)}."


def time_against_size(
    table: NDArray[Any], models: Models = None, measure: str = "span_s", cores: int | None = None
) -> Figure:
    """Figure of median time against message size for each algorithm of a sweep; a panel per P.

    table    rows of a sweep (mpilab.measure.sweep_table.ROW; algorithm, ranks, bytes, span_s and
             mean_s are needed). Open MPI's algorithms have open markers. Each tuning has its own
             line.
    models   a Hockney, or a mapping of names of algorithms (or of pairs library, algorithm) to one:
             predicted times are drawn in the algorithm's color, dashed (Open MPI's: dotted).
             Algorithms without a schedule (a student's own, "default") get no curve.
    measure  "span_s" or "mean_s".
    cores    the models' cores, if they are fewer than ranks (mpilab.models.predict_schedule);
             Open MPI's algorithms then get no curve.

    Error bars show the quartiles of the repetitions. A table without sizes (of a barrier) is drawn
    against the number of ranks.
    """
    check(table, measure)
    if not table["bytes"].any():
        return time_against_ranks(table, models, measure, cores)
    panels = [int(ranks) for ranks in np.unique(table["ranks"])]
    figure = _figure(
        table,
        "ranks",
        panels,
        [ranks_label(table, ranks) for ranks in panels],
        models,
        measure,
        cores,
    )
    what = _what(table)
    of = "a rank's block" if what == "block" else "the message"
    size_axes(figure, place(table["bytes"]), f"bytes of {of}", len(panels))
    figure.update_layout(title=dict(text=below(f"Time against {what} size", table)))
    return style.finish(figure, _alt(table, "ranks", panels, measure, models))


def time_against_ranks(
    table: NDArray[Any], models: Models = None, measure: str = "span_s", cores: int | None = None
) -> Figure:
    """Figure of median time against the number of ranks for each algorithm; a panel per size.

    Arguments as for `time_against_size`.
    """
    check(table, measure)
    panels = [int(size) for size in np.unique(table["bytes"])]
    titles = [style.byte_size(size) for size in panels] if any(panels) else [""]
    figure = _figure(table, "bytes", panels, titles, models, measure, cores)
    counts = np.unique(table["ranks"]).tolist()
    figure.update_xaxes(
        title="ranks",
        tickvals=counts,
        ticktext=[
            f"{ranks:,}" + (f"<br>{OVERSUBSCRIBED}" if ranks in shared_ranks(table) else "")
            for ranks in counts
        ],
    )
    figure.update_layout(title=dict(text=below("Time against the number of ranks", table)))
    return style.finish(figure, _alt(table, "bytes", panels, measure, models))


def _figure(
    table: NDArray[Any],
    panel_field: str,
    panels: Sequence[int],
    titles: Sequence[str],
    models: Models,
    measure: str,
    cores: int | None,
) -> Figure:
    """A panel for each value of `panel_field` ("bytes" or "ranks"); the other field is the x
    axis."""
    field = "bytes" if panel_field == "ranks" else "ranks"
    figure = plotly.subplots.make_subplots(
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


def _measured(
    series: Series,
    field: str,
    values: NDArray[Any],
    low: NDArray[np.float64],
    median: NDArray[np.float64],
    high: NDArray[np.float64],
    in_legend: bool,
) -> Trace:
    words = [_said(field, value) for value in values]
    return go.Scatter(
        x=place(values) if field == "bytes" else values,
        y=median,
        error_y=dict(array=high - median, arrayminus=median - low, thickness=1, width=3),
        mode="lines+markers",
        name=series.name,
        legendgroup=series.name,
        showlegend=in_legend,
        line=dict(color=series.color, width=2, dash=series.dash),
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


def _predicted(
    series: Series, field: str, panel: int, values: NDArray[Any], model: Hockney, cores: int | None
) -> Trace | None:
    """The model's curve over the measured range; None if there is none."""
    if field == "bytes":
        by_schedule = cores is not None and series.collective != "allgather"
        points = _POINTS_BY_SCHEDULE if by_schedule else _POINTS
        x = np.geomspace(max(values.min(), 1), max(values.max(), 1), points)
        y = series.predicted(panel, x, model, cores)
    else:
        x = np.arange(values.min(), values.max() + 1)
        each = [series.predicted(int(ranks), np.array([panel]), model, cores) for ranks in x]
        known = [seconds for seconds in each if seconds is not None]
        y = np.concatenate(known) if len(known) == len(each) else None
    if y is None:
        return None
    return go.Scatter(
        x=x,
        y=y,
        mode="lines",
        name=f"{series.name}, model",
        legendgroup=series.name,
        showlegend=False,
        line=dict(color=series.color, width=1.5, dash="dash" if series.is_ours else "dot"),
        hoverinfo="skip",
    )


def _dashes(name: str) -> Trace:
    """A legend entry for a line style."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="lines",
        name=name,
        line=dict(color=style.TEXT, width=1.5, dash="dash"),
        hoverinfo="skip",
    )


def _legend_below() -> dict[str, Any]:
    return dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top")


def _said(field: str, value: int) -> str:
    return style.byte_size(value) if field == "bytes" else style.plural(int(value), "rank")


# --- As text


def _alt(
    table: NDArray[Any], panel_field: str, panels: Sequence[int], measure: str, models: Models
) -> str:
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
    lines += sentences(table)
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
            order = sorted(medians, key=medians.__getitem__)
            lines.append(
                f"{ranks} ranks{of_size}, medians from fastest to slowest: "
                + ", ".join(f"{name} {style.duration(medians[name])}" for name in order)
                + "."
            )
    if isinstance(models, Mapping):
        named = {" ".join(key) if isinstance(key, tuple) else key: models[key] for key in models}
        lines += [f"Dashed, {name}: the α-β model with {model}." for name, model in named.items()]
    elif models is not None:
        lines.append(f"Dashed: the α-β model with {models}.")
    return "\n".join(lines)


def _what(table: NDArray[Any]) -> str:
    """The object whose sizes are given: "block" if all collectives work by block, else
    "message"."""
    by_block = all(series.collective in BLOCKWISE for series in series_of(table))
    return "block" if by_block else "message"


def _and(words: Iterable[object]) -> str:
    *first, last = (str(word) for word in words)
    return f"{', '.join(first)} and {last}" if first else last
