"""Figures of models: the regret of their choices, lower bounds, and fitted curves."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms import BLOCKWISE
from mpilab.algorithms.algorithm import GammaFunction
from mpilab.errors import InputError
from mpilab.measure.origin import below, ranks_label, sentences, shared_ranks
from mpilab.measure.sweep_table import OVERSUBSCRIBED
from mpilab.models.choice import (
    FIELDS,
    REGRET_ROW,
    check_fields,
    rows_of,
    the_collective,
    variants_of,
)
from mpilab.models.costs import cost
from mpilab.models.point_to_point import Hockney
from mpilab.plots import style
from mpilab.plots.style import Figure, Trace, go, place, plotly, size_axes, time_axes
from mpilab.plots.sweep import summary

Fits = Mapping[tuple[str, str], Hockney]  # by library and algorithm
Variant = tuple[str, str, int, int, int]  # library, algorithm, segment, fanout, radix

# The choices of a model: the chosen algorithm at each P and size, with its regret.

# Green if the choice is the best one; opaque, so that plotly can choose a legible color for the
# name in a cell.
SCALE = [[0, "#a9d8b5"], [0.1, "#e8d48b"], [0.5, "#e39a55"], [1, "#c9503c"]]
# The scale ends at a choice that takes twice as long as the best.
MOST = 1.0
_BAR = "#3b7dd8"
_LIMIT = "#d4553e"
_ROW = 30  # pixels


def heat_map(
    table: NDArray[Any],
    title: str = "Choice of the model, and its regret",
    *,
    measured: NDArray[Any] | None = None,
) -> Figure:
    """Heat map of a model's choices for one collective: a row for each P, a column for each size.

    table     records of REGRET_ROW.
    measured  the sweep that they were computed from; the figure then says where that was, and which
              ranks were oversubscribed.

    A cell names the chosen algorithm. Its color is the regret, the time lost as a fraction of the
    best time; the hover text shows the best algorithm and both times. Points missing from the table
    stay empty. Raises InputError for an empty table and for several collectives.
    """
    _check(table)
    sizes, rank_counts = np.unique(table["bytes"]), np.unique(table["ranks"])
    shape = len(rank_counts), len(sizes)
    shared = [] if measured is None else shared_ranks(measured)
    lost = np.full(shape, np.nan)
    names, told = np.full(shape, "", dtype=object), np.full(shape, "", dtype=object)
    for row in table:
        cell = np.searchsorted(rank_counts, row["ranks"]), np.searchsorted(sizes, row["bytes"])
        lost[cell] = row["regret"]
        names[cell] = _wrapped(row["chosen"])
        told[cell] = _told(row)
    figure = go.Figure(
        go.Heatmap(
            z=lost,
            zmin=0,
            zmax=MOST,
            x=[style.byte_size(size) for size in sizes],
            y=[
                f"{ranks}<br>{OVERSUBSCRIBED}" * (ranks in shared) or str(ranks)
                for ranks in rank_counts
            ],
            colorscale=SCALE,
            xgap=1,
            ygap=1,
            text=names,
            texttemplate="%{text}",
            textfont=dict(size=11),
            customdata=told,
            hovertemplate="%{y} ranks, %{x}: %{customdata}<extra></extra>",
            colorbar=dict(
                title="regret",
                thickness=12,
                tickvals=[0, 0.1, 0.25, 0.5, 0.75, 1],
                ticktext=["0", "10 %", "25 %", "50 %", "75 %", "100 % or more"],
            ),
        )
    )
    collective = table["collective"][0]
    what = "a rank's block" if collective in ("allgather", "gather", "scatter") else "the message"
    figure.update_xaxes(type="category", title=f"bytes of {what}", showgrid=False)
    figure.update_yaxes(type="category", title="ranks", showgrid=False)
    figure.update_layout(
        title=dict(text=below(f"{title}: {collective}", measured)),
        height=max(320, 70 * len(rank_counts) + 170),
    )
    said = [] if measured is None else sentences(measured)
    return style.finish(figure, _regret_alt(table, f"{title}: {collective}", said))


def _check(table: NDArray[Any]) -> None:
    missing = set(REGRET_ROW.names or ()) - set(table.dtype.names or ())
    if missing or len(table) == 0:
        raise InputError(
            "the table of regrets is empty or of another kind; give what mpilab.models.regret "
            "returns."
        )
    collectives = np.unique(table["collective"]).tolist()
    if len(collectives) > 1:
        raise InputError(
            f"the table of regrets has {len(collectives)} collectives ({', '.join(collectives)}); "
            "draw one at a time."
        )


def _wrapped(name: str) -> str:
    """'recursive_doubling (ours)' in three lines, since cells are narrow."""
    return name.replace(" (", "<br>(").replace("_", "_<br>" if len(name) > 12 else "_")


def _told(row: np.void) -> str:
    chosen = f"chosen {row['chosen']}, {style.duration(row['chosen_s'])}"
    if row["chosen"] == row["best"]:
        return f"{chosen}: the best"
    return (
        f"{chosen}; best {row['best']}, {style.duration(row['best_s'])}: {_percent(row['regret'])} "
        "lost"
    )


def _percent(regret: float) -> str:
    return f"{100 * regret:.3g} %"


def _regret_alt(table: NDArray[Any], title: str, said: Sequence[str]) -> str:
    lost = table["regret"]
    lines = [
        f"{title}: at {len(table)} points the best algorithm is chosen {int((lost == 0).sum())} "
        f"times; median regret {_percent(np.median(lost))}, largest {_percent(lost.max())}."
    ]
    return "\n".join(
        [*lines, *said]
        + [f"{row['ranks']} ranks, {style.byte_size(row['bytes'])}: {_told(row)}." for row in table]
    )


# Measured times as bars, with the lower bounds set by the links' bandwidth.


LINK_ALONE = "the busiest link alone"


def against_limits(
    measured: Mapping[str, Sequence[float]],
    limits: Mapping[str, float],
    title: str,
    *,
    are: str = "measured: median, quartiles",
    mark: str = LINK_ALONE,
    table: NDArray[Any] | None = None,
    ranks: Sequence[int] = (),
) -> Figure:
    """Figure with a bar for each of `measured` (median, quartiles), and a mark for its limit.

    measured   {name: seconds of each repetition}, drawn from top to bottom.
    limits     {name: the minimum seconds that the links allow}; names may be missing.
    are        what the legend calls the bars.
    mark       what it calls the limits, if they are what a model predicts.
    table      the rows that the times are from; the figure then says where they were measured.
    ranks      their numbers of ranks, if the table has no column for them.

    Raises InputError if there is nothing to draw.
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
                name=are,
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
                name=mark,
                y=limited,
                x=[1e3 * limits[name] for name in limited],
                showlegend=bool(limited),
                marker=dict(
                    symbol="line-ns", size=20, color=_LIMIT, line=dict(width=4, color=_LIMIT)
                ),
                hovertemplate=f"%{{y}}: {mark} takes %{{x:.3g}} ms<extra></extra>",
            ),
        ]
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    figure.update_xaxes(title="ms", rangemode="tozero")
    figure.update_layout(
        title=dict(text=below(title, table, ranks)),
        height=190 + _ROW * len(names),
        margin=dict(t=90 if table is None else 110),
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
    )
    said = [] if table is None else sentences(table, ranks)
    return style.finish(
        figure, "\n".join([f"{title}.", *said, *_lines(names, measured, limits, mark)])
    )


def bandwidths(
    lines: Mapping[str, Mapping[int, float]],
    title: str,
    model: Mapping[str, Mapping[int, float]] | None = None,
) -> Figure:
    """Figure of the bandwidth of a rank against the size of a block.

    lines   {name: {bytes of a block: bytes per second}}; odd lines are drawn dashed, so that lines
            that coincide in pairs can be told apart.
    model   the same as a model predicts it, drawn as dotted lines.

    Raises InputError if there are none.
    """
    return bandwidth_panels({"": lines}, title, {"": model or {}})


def bandwidth_panels(
    panels: Mapping[str, Mapping[str, Mapping[int, float]]],
    title: str,
    models: Mapping[str, Mapping[str, Mapping[int, float]]] | None = None,
) -> Figure:
    """`bandwidths` in several panels: {title of the panel: its lines}, and {title: its model}. A
    name has the same color in all of them."""
    models = models or {}
    every = [line for lines in panels.values() for line in lines.values()]
    if not every or not all(every) or not all(panels.values()):
        raise InputError("bandwidths: no lines, or a line without points; give a size and a rate")
    columns = min(len(panels), 3)
    lines_of_panels = -(-len(panels) // columns)
    figure = plotly.subplots.make_subplots(
        rows=lines_of_panels,
        cols=columns,
        subplot_titles=list(panels),
        vertical_spacing=0.18 / max(lines_of_panels - 1, 1),
    )
    colors = _colors(name for lines in panels.values() for name in lines)

    def rate(value: float) -> str:
        return f"{value / 1e9:.3g} GB/s"

    words = []
    for number, (panel, lines) in enumerate(panels.items()):
        at = {"row": number // columns + 1, "col": number % columns + 1}
        model = models.get(panel, {})
        told = _add_curves(figure, lines, model, colors, style.byte_size, rate, 1e-9, **at)
        words += [f"{panel}{': ' * bool(panel)}{sentence}" for sentence in told]
    sizes = sorted({size for line in every for size in line})
    what = "bytes" if len(panels) > 1 else "bytes of a rank's block"
    style.size_axes(figure, sizes, what, columns)
    figure.update_yaxes(type="log")
    figure.update_yaxes(title="received by a rank, GB/s", col=1)
    figure.update_layout(title=dict(text=title), height=320 * lines_of_panels + 100)
    return style.finish(figure, "\n".join([f"{title}, both axes logarithmic.", *words]))


def seconds_on_ranks(
    lines: Mapping[str, Mapping[int, float]],
    title: str,
    model: Mapping[str, Mapping[int, float]] | None = None,
) -> Figure:
    """Figure of times against the number of ranks.

    lines   {name: {ranks: seconds}}
    model   the same as a model predicts it, drawn as dotted lines.

    Raises InputError if there are none.
    """
    if not lines or not all(lines.values()):
        raise InputError("seconds_on_ranks: no lines, or a line without points; give {ranks: time}")

    def counted(ranks: float) -> str:
        return f"{ranks:,} ranks"

    figure = plotly.subplots.make_subplots()
    words = _add_curves(figure, lines, model or {}, _colors(lines), counted, style.duration, 1)
    ranks = sorted({number for line in lines.values() for number in line})
    figure.update_xaxes(
        type="log", title="ranks", tickvals=ranks, ticktext=[f"{number:,}" for number in ranks]
    )
    every = [
        seconds for line in (*lines.values(), *(model or {}).values()) for seconds in line.values()
    ]
    style.time_axes(figure, every, "time")
    figure.update_layout(title=dict(text=title), height=420)
    return style.finish(figure, "\n".join([f"{title}, both axes logarithmic.", *words]))


def _colors(names: Iterable[str]) -> dict[str, tuple[str, str, int]]:
    """{name: (color, dash, size of its marks)}: odd ones are dashed and smaller, so that lines that
    coincide in pairs can be told apart."""
    return {
        name: (
            style.ORDER_COLORS[number % len(style.ORDER_COLORS)],
            "dash" if number % 2 else "solid",
            7 if number % 2 else 11,
        )
        for number, name in enumerate(dict.fromkeys(names))
    }


def _add_curves(
    figure: Figure,
    lines: Mapping[str, Mapping[int, float]],
    model: Mapping[str, Mapping[int, float]],
    colors: Mapping[str, tuple[str, str, int]],
    of_x: Callable[[float], str],
    of_y: Callable[[float], str],
    scale: float,
    **at: int,
) -> list[str]:
    """Add these lines to a figure, and dotted ones for the model; a sentence for each.

    of_x, of_y   a value as text; `scale` times a value of y is drawn.
    at           the row and column of the panel.
    """
    told = []
    kinds = [(name, line, False) for name, line in lines.items()]
    kinds += [(name, line, True) for name, line in model.items()]
    for name, line, is_model in kinds:
        color, dash, size = (_LIMIT, "dot", 0) if is_model else colors[name]
        full, group = (f"{name}, model", "model") if is_model else (name, name)
        texts = [f"{of_x(x)} {of_y(y)}" for x, y in line.items()]
        is_new = all(trace.legendgroup != group for trace in figure.data)
        figure.add_trace(
            go.Scatter(
                x=list(line),
                y=[scale * value for value in line.values()],
                mode="lines" if is_model else "lines+markers",
                name=group,
                legendgroup=group,
                showlegend=is_new,
                line=dict(color=color, dash=dash),
                marker=dict(size=size),
                customdata=texts,
                hovertemplate=f"{full}<br>%{{customdata}}<extra></extra>",
            ),
            **at,
        )
        told.append(f"{full}: {', '.join(texts)}.")
    return told


def _lines(
    names: Sequence[str],
    measured: Mapping[str, Sequence[float]],
    limits: Mapping[str, float],
    mark: str,
) -> Iterator[str]:
    for name in names:
        told = f"{name}: {style.duration(float(np.median(measured[name])))}"
        if name in limits:
            told += f"; {mark} takes {style.duration(limits[name])}"
        yield f"{told}."


# Measured times of a sweep, and the model fitted to each algorithm.


def measured_and_fitted(
    table: NDArray[Any],
    models: Fits,
    *,
    collective: str | None = None,
    measure: str = "span_s",
    gamma: GammaFunction | None = None,
) -> Figure:
    """Figure of a sweep's medians and quartiles, and each algorithm's fitted cost; a panel per P.

    table    rows of a sweep (mpilab.measure.sweep_table).
    models   {(library, algorithm): Hockney}, as mpilab.models.fit_per_algorithm returns it; an
             algorithm without one gets no curve.
    gamma    the γ with which the models were fitted.

    Open MPI's algorithms have open markers and dotted lines. A barrier, which has only one size, is
    drawn against the number of ranks. Raises InputError for a table of several collectives if
    `collective` selects none.
    """
    check_fields(table, (*FIELDS, measure))
    rows, collective = the_collective(table, collective)
    variants = variants_of(rows)
    panels = [None] if collective == "barrier" else np.unique(rows["ranks"]).tolist()
    figure = plotly.subplots.make_subplots(
        cols=len(panels),
        shared_yaxes=True,
        horizontal_spacing=0.03,
        subplot_titles=[ranks_label(rows, ranks) for ranks in panels if ranks is not None],
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
        title=dict(text=below(f"Measured, and the fitted model: {collective}", rows)),
        height=560,
        margin=dict(t=70, b=140),
        legend=dict(orientation="h", x=0, xanchor="left", y=-0.17, yanchor="top"),
    )
    return style.finish(figure, _models_alt(rows, collective, variants, models, measure, gamma))


def _axes(figure: Figure, rows: NDArray[Any], collective: str, measure: str, panels: int) -> None:
    if collective == "barrier":
        figure.update_xaxes(title="ranks")
    else:
        what = "a rank's block" if collective in BLOCKWISE else "the message"
        size_axes(figure, rows["bytes"], f"bytes of {what}", panels)
    time_axes(figure, rows[measure], "time, seconds")


def _traces(
    rows: NDArray[Any],
    variant: Variant,
    ranks: int | None,
    collective: str,
    models: Fits,
    measure: str,
    gamma: GammaFunction | None,
) -> Iterator[Trace]:
    """The measured points of one variant, and its curve if it has a model."""
    library, algorithm, *_ = variant
    name = _model_name(variant)
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
            symbol=symbol if is_ours else f"{symbol}-open", size=8, color=style.color(algorithm)
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
        line=dict(color=style.color(algorithm), width=1.5, dash="dash" if is_ours else "dot"),
        hoverinfo="skip",
    )


def predicted(
    collective: str,
    variant: Variant,
    ranks: int,
    sizes: Any,
    model: Hockney,
    gamma: GammaFunction | None = None,
) -> Any:
    """Predicted seconds of a variant (library, algorithm, segment, fanout, radix)."""
    library, algorithm, segment, fanout, radix = variant
    return cost(
        collective,
        algorithm,
        ranks,
        sizes,
        model,
        segment=segment,
        fanout=fanout,
        radix=radix,
        gamma=gamma,
        library=library,
    )


def _model_name(variant: Variant) -> str:
    library, algorithm, segment, fanout, radix = variant
    words = [] if library == "ours" else [library]
    words += [f"segment {style.byte_size(segment)}"] if segment else []
    words += [f"fanout {fanout}"] if fanout else []
    words += [f"radix {radix}"] if radix else []
    return f"{algorithm} ({', '.join(words)})" if words else algorithm


def _models_alt(
    rows: NDArray[Any],
    collective: str,
    variants: Sequence[Variant],
    models: Fits,
    measure: str,
    gamma: GammaFunction | None,
) -> str:
    lines = [
        f"Measured times of {collective} and the fitted models: "
        f"{style.plural(len(variants), 'algorithm')}, "
        f"{', '.join(map(str, np.unique(rows['ranks'])))} ranks.",
        *sentences(rows),
    ]
    for variant in variants:
        library, algorithm, *tunables = variant
        model = models.get((library, algorithm))
        chosen = rows_of(rows, variant)
        if model is None:
            lines.append(f"{_model_name(variant)}: no model.")
            continue
        off = _errors(chosen, collective, variant, model, measure, gamma)
        lines.append(
            f"{_model_name(variant)}: {model}; the model's median error is "
            f"{100 * np.median(off):.3g} %, its largest {100 * off.max():.3g} %."
            if len(off)
            else f"{_model_name(variant)}: {model}."
        )
    return "\n".join(lines)


def _errors(
    rows: NDArray[Any],
    collective: str,
    variant: Variant,
    model: Hockney,
    measure: str,
    gamma: GammaFunction | None,
) -> NDArray[np.float64]:
    """|model - median| / median at each point with more than one rank."""
    off = []
    for ranks in np.unique(rows["ranks"][rows["ranks"] > 1]).tolist():
        sizes, _, median, _ = summary(rows[rows["ranks"] == ranks], measure)
        seconds = predicted(collective, variant, ranks, sizes, model, gamma)
        off += (abs(seconds - median) / median).tolist()
    return np.array(off)
