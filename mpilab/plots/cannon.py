"""Figures of Cannon's algorithm: measured I/O shares and times, and the blocks step by step."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError
from mpilab.measure.origin import below, sentences
from mpilab.mpiio.cannon import PHASES, WAYS, speed_up
from mpilab.plots import style
from mpilab.plots.style import Figure, Trace, buttons, go, plotly, slider, time_axes

Way = tuple[int, str]  # (stage, kind of files)

# Measured runs: the share of MPI time spent on I/O, and how the phases scale.

# One for each of WAYS, in the same order.
COLORS = dict(zip(WAYS, ("#c9498f", "#d4553e", "#b8740c", "#3b7dd8"), strict=True))
SYMBOLS = dict(zip(WAYS, ("diamond", "triangle-up", "square", "circle"), strict=True))
_PUBLISHED = style.TEXT
IO_PHASES = ("read", "write")
MOST = 6  # rows of a grid that is still legible


def io_shares(
    shares: Mapping[str, float], published: Mapping[str, float], *, where: str = ""
) -> Figure:
    """Figure of the shares of MPI time spent reading and writing, as bars.

    shares, published   {name: from 0 to 1}: ours, and those reported by others.
    where               where ours were measured, in words.

    Raises InputError for a share outside 0 to 1.
    """
    for name, share in {**shares, **published}.items():
        if not 0 <= share <= 1:
            raise InputError(f"share of {name}: {share} is not from 0 to 1")
    title = "Share of MPI time spent reading and writing"
    figure = go.Figure(
        [
            go.Bar(
                orientation="h",
                name=name,
                y=list(values),
                x=[100 * v for v in values.values()],
                text=[f"{value:.0%}" for value in values.values()],
                marker=dict(color=color),
                hovertemplate="%{y}: %{x:.0f} %<extra></extra>",
            )
            for name, values, color in (
                ("measured", shares, "#3b7dd8"),
                ("published", published, _PUBLISHED),
            )
        ]
    )
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    figure.update_xaxes(title="% of the time in MPI, all ranks together", range=[0, 100])
    figure.update_layout(
        title=dict(text=f"{title}<br><sub>{where}</sub>" if where else title),
        barmode="overlay",
        margin=dict(t=90),
        height=200 + 30 * (len(shares) + len(published)),
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
    )
    lines = [f"{name}: {share:.0%}." for name, share in shares.items()]
    lines += [f"{name}, as published: {share:.0%}." for name, share in published.items()]
    return style.finish(figure, "\n".join([f"{title}.", *([f"{where}."] if where else []), *lines]))


def scaling(rows: NDArray[Any], n: int) -> Figure:
    """Figure of the phase times of all WAYS against the number of ranks, for n x n matrices.

    rows   records of mpilab.mpiio.cannon.ROW.

    Shows medians, with quartiles as error bars. Raises InputError if no row has this size.
    """
    rows = _of_size(rows, n)
    found = {(phase, way): _quartiles(rows, way, phase) for phase in PHASES for way in _ways(rows)}
    title = f"Cannon's algorithm, {n:,} x {n:,} doubles"
    figure = _over_ranks(found, below(title, rows), "%{y:.3s}s")
    time_axes(figure, rows["seconds"], dict(text="median of the runs", standoff=10))
    words = _in_words(found, style.duration)
    first = f"{title}: medians of each phase, quartiles in brackets."
    return style.finish(figure, "\n".join([first, *sentences(rows), *words]))


def speed_ups(rows: NDArray[Any], n: int) -> Figure:
    """Figure of the speedup of reading and writing over the base case, for n x n matrices.

    rows   records of mpilab.mpiio.cannon.ROW.

    The base case is stage 1 with text files, on the same number of ranks. Shows ratios of medians,
    with 95 % confidence intervals as error bars. Raises InputError if no row has this size.
    """
    rows = _of_size(rows, n)
    found = {
        (phase, way): speed_up(rows[rows["phase"] == phase], way)
        for phase in IO_PHASES
        for way in _ways(rows)[1:]
    }
    title = f"Speedup over {_name(WAYS[0])}, {n:,} x {n:,} doubles"
    figure = _over_ranks(found, below(title, rows), "%{y:.3g} times as fast")
    figure.add_hline(y=1, line=dict(color=style.LINE, dash="dash"))
    ticks = [digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    figure.update_yaxes(title="times as fast", row=1, col=1)
    words = _in_words(found, "{:.2f}".format)
    first = f"{title}: ratios of medians, 95 % confidence intervals in brackets."
    return style.finish(figure, "\n".join([first, *sentences(rows), *words]))


def _of_size(rows: NDArray[Any], n: int) -> NDArray[Any]:
    rows = rows[rows["n"] == n]
    if len(rows) == 0:
        raise InputError(f"n={n}: no row of that size was measured")
    return rows


def _ways(rows: NDArray[Any]) -> list[Way]:
    there = set(rows[["stage", "files"]].tolist())
    return [way for way in WAYS if way in there]


def _quartiles(rows: NDArray[Any], way: Way, phase: str) -> dict[int, NDArray[np.float64]]:
    """{ranks: (lower quartile, median, upper quartile)} in seconds."""
    stage, kind = way
    chosen = rows[(rows["stage"] == stage) & (rows["files"] == kind) & (rows["phase"] == phase)]
    return {
        ranks: np.percentile(chosen["seconds"][chosen["ranks"] == ranks], [25, 50, 75])
        for ranks in np.unique(chosen["ranks"]).tolist()
    }


def _over_ranks(
    found: Mapping[tuple[str, Way], Mapping[int, Any]], title: str, pointed_at: str
) -> Figure:
    """Figure of {(phase, way): {ranks: (lower, middle, upper)}}, a panel for each phase.

    The caller sets the y axes.

    pointed_at   how the hover text formats a value.
    """
    phases = list(dict.fromkeys(phase for phase, _ in found))
    figure = plotly.subplots.make_subplots(
        cols=len(phases), shared_yaxes=True, horizontal_spacing=0.03, subplot_titles=phases
    )
    for (phase, way), line in found.items():
        lower, middle, upper = np.array(list(line.values())).T
        name = _name(way)
        trace = go.Scatter(
            x=list(line),
            y=middle,
            mode="lines+markers",
            name=name,
            error_y=dict(symmetric=False, array=upper - middle, arrayminus=middle - lower),
            line=dict(color=COLORS[way]),
            marker=dict(symbol=SYMBOLS[way], size=8),
            legendgroup=name,
            showlegend=phase == phases[0],
            hovertemplate=f"{name}, {phase}, %{{x}} ranks: {pointed_at}<extra></extra>",
        )
        figure.add_trace(trace, row=1, col=1 + phases.index(phase))
    ranks = sorted({number for line in found.values() for number in line})
    figure.update_xaxes(type="log", title="ranks", tickvals=ranks, ticktext=list(map(str, ranks)))
    figure.update_yaxes(automargin=True)
    figure.update_layout(
        title=dict(text=title),
        height=420,
        margin=dict(t=90, b=110),
        legend=dict(orientation="h", x=0, y=0, yref="container", yanchor="bottom"),
    )
    return figure


def _in_words(
    found: Mapping[tuple[str, Way], Mapping[int, Any]], told: Callable[[float], str]
) -> Iterator[str]:
    for (phase, way), line in found.items():
        values = (
            f"{style.plural(ranks, 'rank')} {told(middle)} ({told(lower)} to {told(upper)})"
            for ranks, (lower, middle, upper) in line.items()
        )
        yield f"{phase}, {_name(way)}: {', '.join(values)}."


def _name(way: Way) -> str:
    return f"stage {way[0]}, {way[1]} files"


# The blocks on each rank, step by step.


def held(side: int, step: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """(A, B): the second index of each rank's block of A, and the first index of its block of B.

    step   -1: as the blocks were read; 0: aligned, for the first product; s: after s shifts.

    Two int arrays [side, side], by the rank's row and column. Rank (i, j) multiplies A(i, k) by
    B(k, j) with k = (i + j + step) modulo side, so the two arrays are equal from step 0 on.
    """
    row, column = np.indices((side, side))
    if step < 0:
        return column, row
    together = (row + column + step) % side
    return together, together


def cannon(side: int) -> Figure:
    """Figure of Cannon's algorithm on a grid of side x side ranks, with a slider.

    The blocks of A are on the left, those of B on the right, colored by the index that both must
    share. Raises InputError for a grid that cannot be drawn.
    """
    if not 1 <= side <= MOST:
        raise InputError(f"side={side}: a grid of 1 to {MOST} rows can be read; take fewer ranks")
    steps = range(-1, side)
    labels = ["read", "aligned", *map(str, range(1, side))]
    titles = [
        f"Cannon's algorithm on {side} x {side} ranks<br><sub>{_words(side, step)}</sub>"
        for step in steps
    ]
    figure = plotly.subplots.make_subplots(
        cols=2, horizontal_spacing=0.08, subplot_titles=["block of A", "block of B"]
    )
    for place, trace in enumerate(_traces(side, -1), start=1):
        figure.add_trace(trace, row=1, col=place)
    figure.frames = [
        go.Frame(
            name=str(number),
            data=_traces(side, step),
            traces=[0, 1],
            layout=go.Layout(title=dict(text=title)),
        )
        for number, (step, title) in enumerate(zip(steps, titles, strict=True))
    ]
    steps_of = slider(labels) | dict(currentvalue=dict(prefix="step: "))
    figure.update_layout(
        title=dict(text=titles[0]),
        height=280 + 50 * side,
        margin=dict(t=110, b=130),
        sliders=[steps_of],
        updatemenus=[buttons()],
    )
    ticks = list(range(side))
    figure.update_xaxes(tickvals=ticks, title="column of the grid", fixedrange=True, showgrid=False)
    figure.update_yaxes(tickvals=ticks, range=[side - 0.5, -0.5], fixedrange=True, showgrid=False)
    figure.update_yaxes(title="row of the grid", row=1, col=1)
    return style.finish(figure, "\n".join(_alt(side, steps)))


def _traces(side: int, step: int) -> list[Trace]:
    of_a, of_b = held(side, step)
    row, column = np.indices((side, side))
    return [_cells("A", row, of_a, of_a), _cells("B", of_b, column, of_b)]


def _cells(
    matrix: str, first: NDArray[np.intp], second: NDArray[np.intp], shared: NDArray[np.intp]
) -> Trace:
    side = len(shared)
    names = [
        [f"{matrix}({i}, {j})" for i, j in zip(*pair, strict=True)]
        for pair in zip(first.tolist(), second.tolist(), strict=True)
    ]
    colors = style.ORDER_COLORS[:side]
    scale = [[(index + end) / side, color] for index, color in enumerate(colors) for end in (0, 1)]
    return go.Heatmap(
        z=shared.tolist(),
        zmin=-0.5,
        zmax=side - 0.5,
        colorscale=scale,
        showscale=False,
        xgap=2,
        ygap=2,
        text=names,
        texttemplate="%{text}",
        textfont=dict(size=13),
        hovertemplate="rank (%{y}, %{x}) holds %{text}<extra></extra>",
    )


def _words(side: int, step: int) -> str:
    if step < 0:
        return "as read: most ranks hold blocks that don't match"
    if step == 0:
        return (
            "row i of A has moved i places to the left, column j of B j places up; all ranks "
            "multiply"
        )
    return (
        f"shift {step} of {side - 1}: A one place to the left, B one place up; all ranks multiply "
        "and add"
    )


def _alt(side: int, steps: Sequence[int]) -> Iterator[str]:
    yield (
        f"Cannon's algorithm on {side} x {side} ranks, {len(steps)} pictures: which blocks of A "
        "and B each rank holds."
    )
    for step in steps:
        of_a, of_b = held(side, step)
        ranks = (
            f"({i}, {j}) A({i}, {of_a[i, j]}) B({of_b[i, j]}, {j})"
            for i in range(side)
            for j in range(side)
        )
        yield f"{_words(side, step)}. Rank {'; '.join(ranks)}."
