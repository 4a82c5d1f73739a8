"""Cannon's algorithm on a grid of ranks, step by step: which blocks of A and B each rank holds."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots.steps import buttons, slider

MOST = 6  # rows of the grid that can still be read


def held(side, step):
    """(A, B): the second index of A's block and the first one of B's that each rank holds; two int
    arrays [side, side], by the rank's row and column.

    step   -1 as the blocks were read; 0 aligned, for the first product; s after s shifts.

    Rank (i, j) multiplies A(i, k) by B(k, j) with k = i + j + step modulo side: the two arrays are
    equal from step 0 on.
    """
    row, column = np.indices((side, side))
    if step < 0:
        return column, row
    together = (row + column + step) % side
    return together, together


def cannon(side):
    """Figure of Cannon's algorithm on a grid of side x side ranks, with a slider: on the left the
    blocks of A, on the right those of B, each coloured by the index that both have to share.

    Raises InputError for a grid that cannot be drawn.
    """
    if not 1 <= side <= MOST:
        raise InputError(f"side={side}: a grid of 1 to {MOST} rows can be read; take fewer ranks")
    steps = range(-1, side)
    labels = ["read", "aligned", *map(str, range(1, side))]
    titles = [f"Cannon's algorithm on {side} x {side} ranks<br><sub>{_words(side, step)}</sub>"
              for step in steps]  # fmt: skip
    figure = make_subplots(cols=2, horizontal_spacing=0.08,
                           subplot_titles=["block of A", "block of B"])  # fmt: skip
    for place, trace in enumerate(_traces(side, -1), start=1):
        figure.add_trace(trace, row=1, col=place)
    figure.frames = [
        go.Frame(name=str(number), data=_traces(side, step), traces=[0, 1],
                 layout=go.Layout(title=dict(text=title)))
        for number, (step, title) in enumerate(zip(steps, titles, strict=True))
    ]  # fmt: skip
    steps_of = slider(labels) | dict(currentvalue=dict(prefix="step: "))
    figure.update_layout(title=dict(text=titles[0]), height=280 + 50 * side,
                         margin=dict(t=110, b=130), sliders=[steps_of],
                         updatemenus=[buttons()])  # fmt: skip
    ticks = list(range(side))
    figure.update_xaxes(tickvals=ticks, title="column of the grid", fixedrange=True, showgrid=False)
    figure.update_yaxes(tickvals=ticks, range=[side - 0.5, -0.5], fixedrange=True, showgrid=False)
    figure.update_yaxes(title="row of the grid", row=1, col=1)
    return style.finish(figure, "\n".join(_alt(side, steps)))


def _traces(side, step):
    of_a, of_b = held(side, step)
    row, column = np.indices((side, side))
    return [_cells("A", row, of_a, of_a), _cells("B", of_b, column, of_b)]


def _cells(matrix, first, second, shared):
    side = len(shared)
    names = [[f"{matrix}({i}, {j})" for i, j in zip(*pair, strict=True)]
             for pair in zip(first.tolist(), second.tolist(), strict=True)]  # fmt: skip
    colours = style.ORDER_COLOURS[:side]
    scale = [[(index + end) / side, colour] for index, colour in enumerate(colours)
             for end in (0, 1)]  # fmt: skip
    return go.Heatmap(
        z=shared.tolist(), zmin=-0.5, zmax=side - 0.5, colorscale=scale, showscale=False, xgap=2,
        ygap=2, text=names, texttemplate="%{text}", textfont=dict(size=13),
        hovertemplate="rank (%{y}, %{x}) holds %{text}<extra></extra>",
    )  # fmt: skip


def _words(side, step):
    if step < 0:
        return "as read: most ranks hold blocks that don't belong together"
    if step == 0:
        return ("row i of A has moved i places to the left, column j of B j places up; "
                "everybody multiplies")  # fmt: skip
    return (f"shift {step} of {side - 1}: A one place to the left, B one place up; "
            "everybody multiplies and adds")  # fmt: skip


def _alt(side, steps):
    yield (f"Cannon's algorithm on {side} x {side} ranks, {len(steps)} pictures: which block of A "
           "and which of B each rank holds.")  # fmt: skip
    for step in steps:
        of_a, of_b = held(side, step)
        ranks = (
            f"({i}, {j}) A({i}, {of_a[i, j]}) B({of_b[i, j]}, {j})"
            for i in range(side)
            for j in range(side)
        )
        yield f"{_words(side, step)}. Rank {'; '.join(ranks)}."
