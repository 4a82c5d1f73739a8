"""Which blocks came out wrong: ranks against the blocks of their receive buffers."""

from html import escape

import numpy as np
import plotly.graph_objects as go

from mpilab.errors import InputError
from mpilab.plots import style

RIGHT, WRONG, UNTOUCHED, ELSEWHERE = 0, 1, 2, 3
NAMES = ("right", "wrong", "never written", "another rank's block")
SYMBOLS = ("✓", "✗", "○", "2")
# Opaque, so that plotly can choose a legible colour for the symbol in a cell.
COLOURS = ("#a9d3b6", "#b8372a", "#b9bec6", "#e8a443")
TITLE = "Blocks of the receive buffers"
# Above that, a tick in every right cell would hide the others.
TICKED = 256
SENTENCES_A_RANK = 24


def blocks(grid, source=None, details=None, title=TITLE):
    """Figure of a wrong result: a row for each rank, a column for each block of its buffer.

    grid     int [ranks, blocks]: RIGHT, WRONG, UNTOUCHED (never written) or ELSEWHERE (it holds
             another rank's block).
    source   int [ranks, blocks]: for ELSEWHERE, the rank whose block lies there.
    details  {(rank, block): words}, e.g. 'expected 5, got 7', for those that are not right.

    Up to 64 x 64 stays readable. Raises InputError where shapes or codes don't fit.
    """
    grid = np.asarray(grid)
    if grid.ndim != 2 or not np.isin(grid, range(len(NAMES))).all():
        raise InputError(f"grid of shape {grid.shape}: give a code of 0 to 3 a rank and block.")
    source = np.full(grid.shape, -1) if source is None else np.asarray(source)
    if source.shape != grid.shape:
        raise InputError(f"source of shape {source.shape} does not fit a grid of {grid.shape}.")
    details = details or {}
    figure = go.Figure(_cells(grid, source, details))
    for code in np.unique(grid):
        figure.add_trace(_legend_entry(int(code)))
    _lay_out(figure, title, *grid.shape)
    return style.finish(figure, _alt(title, grid, source, details))


def _cells(grid, source, details):
    steps = [(code + end) / len(NAMES) for code in range(len(NAMES)) for end in (0, 1)]
    return go.Heatmap(
        z=grid.tolist(),
        zmin=-0.5,
        zmax=len(NAMES) - 0.5,
        colorscale=list(zip(steps, np.repeat(COLOURS, 2).tolist(), strict=True)),
        xgap=1,
        ygap=1,
        text=[
            [_symbol(code, whose, grid.size) for code, whose in zip(codes, owners, strict=True)]
            for codes, owners in zip(grid.tolist(), source.tolist(), strict=True)
        ],
        texttemplate="%{text}",
        textfont=dict(size=14 if max(grid.shape) <= 16 else 11 if max(grid.shape) <= 32 else 9),
        hovertext=[
            [
                escape(_words(rank, block, grid, source, details)).replace("; ", "<br>")
                for block in range(grid.shape[1])
            ]
            for rank in range(grid.shape[0])
        ],
        hoverinfo="text",
        showscale=False,
    )


def _symbol(code, whose, cells):
    if code == RIGHT and cells > TICKED:
        return ""
    return str(whose) if code == ELSEWHERE and whose >= 0 else SYMBOLS[code]


def _words(rank, block, grid, source, details):
    """'rank 1, block 2: wrong; expected 5, got 7'."""
    words = f"rank {rank}, block {block}: {_state(grid[rank, block], source[rank, block])}"
    said = details.get((rank, block))
    return f"{words}; {said}" if said else words


def _state(code, whose):
    return f"rank {whose}'s block" if code == ELSEWHERE and whose >= 0 else NAMES[code]


def _legend_entry(code):
    name = NAMES[code] + (" (whose: the number)" if code == ELSEWHERE else f" {SYMBOLS[code]}")
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(symbol="square", size=14, color=COLOURS[code]),
        name=name,
        hoverinfo="skip",
    )


def _lay_out(figure, title, ranks, columns):
    def ticks(count):
        return list(range(0, count, max(1, -(-count // 16))))

    # Few blocks would be drawn as wide as the page: leave them about twice as wide as high.
    cell = 30 if ranks <= 16 else 15
    figure.update_layout(
        title=dict(text=title),
        height=max(310, 180 + cell * ranks),
        margin=dict(t=90),
        legend=dict(orientation="h", x=0, xanchor="left", y=1.02, yanchor="bottom"),
        modebar=dict(remove=["select2d", "lasso2d"]),
    )
    figure.update_xaxes(
        title="block (rank that it comes from)",
        tickvals=ticks(columns),
        range=[-0.5, max(columns, 8 if columns <= 8 else columns) - 0.5],
        showgrid=False,
        showline=False,
    )
    figure.update_yaxes(
        title="rank that holds it",
        tickvals=ticks(ranks),
        range=[ranks - 0.5, -0.5],
        showgrid=False,
        showline=False,
    )


def _alt(title, grid, source, details):
    wrong = int((grid != RIGHT).sum())
    counts = [
        f"{int((grid == code).sum())} {NAMES[code]}"
        for code in (WRONG, UNTOUCHED, ELSEWHERE)
        if (grid == code).any()
    ]
    lines = [
        f"{title}: {wrong} of {grid.size} blocks on {grid.shape[0]} ranks are not right"
        + (f" ({', '.join(counts)})." if counts else ".")
    ]
    for rank in range(grid.shape[0]):
        told = [
            f"block {block}: {_state(grid[rank, block], source[rank, block])}"
            + (f" ({details[rank, block]})" if details.get((rank, block)) else "")
            for block in np.flatnonzero(grid[rank] != RIGHT).tolist()
        ]
        if len(told) > SENTENCES_A_RANK:
            told[SENTENCES_A_RANK:] = [f"and {len(told) - SENTENCES_A_RANK} more"]
        if told:
            lines.append(f"Rank {rank}: {'; '.join(told)}.")
    return "\n".join(lines)
