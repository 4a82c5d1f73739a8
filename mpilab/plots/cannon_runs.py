"""Runs of Cannon's algorithm in its stages: what part of MPI time is I/O, and how phases scale."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.matrices.cannon import PHASES
from mpilab.measured_cannon import WAYS, speed_up
from mpilab.plots import style
from mpilab.plots.logarithmic import time_axes

# One for each of mpilab.measured_cannon.WAYS, in that order.
COLOURS = dict(zip(WAYS, ("#c9498f", "#d4553e", "#b8740c", "#3b7dd8"), strict=True))
SYMBOLS = dict(zip(WAYS, ("diamond", "triangle-up", "square", "circle"), strict=True))
_PUBLISHED = style.TEXT
IO_PHASES = ("read", "write")


def io_shares(shares, published):
    """Figure with a bar for each share of the time in MPI that is reading and writing.

    shares, published   {name: from 0 to 1}: ours, and those that others have reported.

    Raises InputError for a share that isn't one.
    """
    for name, share in {**shares, **published}.items():
        if not 0 <= share <= 1:
            raise InputError(f"share of {name}: {share} is not from 0 to 1")
    title = "Reading and writing, of all the time in MPI"
    figure = go.Figure(
        [
            go.Bar(
                orientation="h", name=name, y=list(values), x=[100 * v for v in values.values()],
                text=[f"{value:.0%}" for value in values.values()], marker=dict(color=colour),
                hovertemplate="%{y}: %{x:.0f} %<extra></extra>",
            )
            for name, values, colour in (
                ("measured", shares, "#3b7dd8"), ("published", published, _PUBLISHED))
        ]
    )  # fmt: skip
    figure.update_yaxes(autorange="reversed", showgrid=False, automargin=True)
    figure.update_xaxes(title="% of the time in MPI, all ranks together", range=[0, 100])
    figure.update_layout(
        title=dict(text=title), barmode="overlay", margin=dict(t=90),
        height=200 + 30 * (len(shares) + len(published)),
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
    )  # fmt: skip
    lines = [f"{name}: {share:.0%}." for name, share in shares.items()]
    lines += [f"{name}, as published: {share:.0%}." for name, share in published.items()]
    return style.finish(figure, "\n".join([f"{title}.", *lines]))


def scaling(rows, n):
    """Figure of the phases of all WAYS over the number of ranks, for n x n matrices: medians, and
    quartiles as bars.

    rows   of mpilab.measured_cannon.ROW. Raises InputError where none has this size.
    """
    rows = _of_size(rows, n)
    found = {(phase, way): _quartiles(rows, way, phase) for phase in PHASES for way in _ways(rows)}
    title = f"Cannon's algorithm, {n:,} x {n:,} doubles"
    figure = _over_ranks(found, title, "%{y:.3s}s")
    time_axes(figure, rows["seconds"], dict(text="median of the runs", standoff=10))
    words = _in_words(found, style.duration)
    first = f"{title}: medians of each phase, quartiles in brackets."
    return style.finish(figure, "\n".join([first, *words]))


def speed_ups(rows, n):
    """Figure of the speed-up of reading and of writing over the base case, stage 1 with text files,
    on as many ranks, for n x n matrices: ratios of medians, and 95 % confidence intervals as bars.

    rows   of mpilab.measured_cannon.ROW. Raises InputError where none has this size.
    """
    rows = _of_size(rows, n)
    found = {(phase, way): speed_up(rows[rows["phase"] == phase], way)
             for phase in IO_PHASES for way in _ways(rows)[1:]}  # fmt: skip
    title = f"Speed-up over {_name(WAYS[0])}, {n:,} x {n:,} doubles"
    figure = _over_ranks(found, title, "%{y:.3g} times as fast")
    figure.add_hline(y=1, line=dict(color=style.LINE, dash="dash"))
    ticks = [digit * 10.0**power for power in range(-3, 4) for digit in (1, 2, 5)]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=[f"{tick:g}" for tick in ticks])
    figure.update_yaxes(title="times as fast", row=1, col=1)
    words = _in_words(found, "{:.2f}".format)
    first = f"{title}: ratios of medians, 95 % confidence intervals in brackets."
    return style.finish(figure, "\n".join([first, *words]))


def _of_size(rows, n):
    rows = rows[rows["n"] == n]
    if len(rows) == 0:
        raise InputError(f"n={n}: no row of that size was measured")
    return rows


def _ways(rows):
    there = set(rows[["stage", "files"]].tolist())
    return [way for way in WAYS if way in there]


def _quartiles(rows, way, phase):
    """{ranks: (lower quartile, median, upper quartile)} in seconds."""
    stage, kind = way
    chosen = rows[(rows["stage"] == stage) & (rows["files"] == kind) & (rows["phase"] == phase)]
    return {ranks: np.percentile(chosen["seconds"][chosen["ranks"] == ranks], [25, 50, 75])
            for ranks in np.unique(chosen["ranks"]).tolist()}  # fmt: skip


def _over_ranks(found, title, pointed_at):
    """Figure of {(phase, way): {ranks: (lower, middle, upper)}}, a panel for each phase; vertical
    axes are left to the caller.

    pointed_at   how the pointer tells a value.
    """
    phases = list(dict.fromkeys(phase for phase, _ in found))
    figure = make_subplots(cols=len(phases), shared_yaxes=True, horizontal_spacing=0.03,
                           subplot_titles=phases)  # fmt: skip
    for (phase, way), line in found.items():
        lower, middle, upper = np.array(list(line.values())).T
        name = _name(way)
        trace = go.Scatter(
            x=list(line), y=middle, mode="lines+markers", name=name,
            error_y=dict(symmetric=False, array=upper - middle, arrayminus=middle - lower),
            line=dict(color=COLOURS[way]), marker=dict(symbol=SYMBOLS[way], size=8),
            legendgroup=name, showlegend=phase == phases[0],
            hovertemplate=f"{name}, {phase}, %{{x}} ranks: {pointed_at}<extra></extra>",
        )  # fmt: skip
        figure.add_trace(trace, row=1, col=1 + phases.index(phase))
    ranks = sorted({number for line in found.values() for number in line})
    figure.update_xaxes(type="log", title="ranks", tickvals=ranks, ticktext=list(map(str, ranks)))
    figure.update_yaxes(automargin=True)
    figure.update_layout(title=dict(text=title), height=420, margin=dict(t=90, b=110),
                         legend=dict(orientation="h", x=0, y=0, yref="container",
                                     yanchor="bottom"))  # fmt: skip
    return figure


def _in_words(found, told):
    for (phase, way), line in found.items():
        values = (
            f"{style.plural(ranks, 'rank')} {told(middle)} ({told(lower)} to {told(upper)})"
            for ranks, (lower, middle, upper) in line.items()
        )
        yield f"{phase}, {_name(way)}: {', '.join(values)}."


def _name(way):
    return f"stage {way[0]}, {way[1]} files"
