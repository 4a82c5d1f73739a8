"""Figure of a wrong result: which blocks or elements of the receive buffers are wrong."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
import plotly.graph_objects as go
from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError
from mpilab.plots import style

RIGHT, WRONG, UNTOUCHED, ELSEWHERE, ABSENT = range(5)
NAMES = ("right", "wrong", "never written", "another rank's block", "no receive buffer")
SYMBOLS = ("✓", "✗", "○", "2", "")
# Opaque, so that plotly can choose a legible color for the symbol in a cell.
COLORS = ("#a9d3b6", "#b8372a", "#b9bec6", "#e8a443", "#f1f2f4")
TITLE, TITLE_OF_ELEMENTS = "Blocks of the receive buffers", "Elements of the receive buffers"
# With more cells, check marks in the right ones would hide the other symbols.
TICKED = 256
SENTENCES_A_RANK = 24


def blocks(
    grid: ArrayLike,
    source: ArrayLike | None = None,
    details: Mapping[tuple[int, int], str] | None = None,
    columns: Sequence[str] | None = None,
    title: str | None = None,
) -> go.Figure:
    """Figure of a wrong result: a row for each rank, a column for each block of its buffer.

    grid     int [ranks, columns]: RIGHT, WRONG, UNTOUCHED (never written), ELSEWHERE (it holds
             another rank's block) or ABSENT (the rank has no receive buffer).
    source   int [ranks, columns]: for ELSEWHERE, the rank whose block is there.
    details  {(rank, column): words}, e.g. 'expected 5, got 7', for cells that are not right.
    columns  if a buffer is one block: names of the elements in each column, e.g. '0 to 15'.

    Up to 64 x 64 stays readable. Raises InputError for mismatched shapes or invalid codes.
    """
    grid = np.asarray(grid)
    if grid.ndim != 2 or not np.isin(grid, range(len(NAMES))).all():
        raise InputError(
            f"grid of shape {grid.shape}: give a code of 0 to {len(NAMES) - 1} a rank and block."
        )
    source = np.full(grid.shape, -1) if source is None else np.asarray(source)
    if source.shape != grid.shape:
        raise InputError(f"source of shape {source.shape} does not fit a grid of {grid.shape}.")
    if columns is not None and len(columns) != grid.shape[1]:
        raise InputError(f"{len(columns)} columns named for a grid of shape {grid.shape}.")
    title = title or (TITLE if columns is None else TITLE_OF_ELEMENTS)
    shown = _Shown(grid, source, details or {}, columns)
    figure = go.Figure(_cells(shown))
    for code in np.unique(grid):
        figure.add_trace(_legend_entry(int(code)))
    _lay_out(figure, title, columns, *grid.shape)
    return style.finish(figure, _alt(title, shown))


class _Shown(NamedTuple):
    """What the figure shows, and its wording."""

    grid: NDArray[np.int64]
    source: NDArray[np.int64]
    details: Mapping[tuple[int, int], str]
    columns: Sequence[str] | None

    def place(self, column: int) -> str:
        """'block 2', 'element 7', 'elements 8 to 15'."""
        if self.columns is None:
            return f"block {column}"
        name = self.columns[column]
        return f"element{'s' * (not name.isdigit())} {name}"

    def words(self, rank: int, column: int) -> str:
        """'rank 1, block 2: wrong; expected 5, got 7'."""
        state = _state(self.grid[rank, column], self.source[rank, column])
        words = f"rank {rank}, {self.place(column)}: {state}"
        said = self.details.get((rank, column))
        return f"{words}; {said}" if said else words


def _cells(shown: _Shown) -> go.Heatmap:
    grid, source = shown.grid, shown.source
    steps = [(code + end) / len(NAMES) for code in range(len(NAMES)) for end in (0, 1)]
    return go.Heatmap(
        z=grid.tolist(),
        zmin=-0.5,
        zmax=len(NAMES) - 0.5,
        colorscale=list(zip(steps, np.repeat(COLORS, 2).tolist(), strict=True)),
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
                escape(shown.words(rank, block)).replace("; ", "<br>")
                for block in range(grid.shape[1])
            ]
            for rank in range(grid.shape[0])
        ],
        hoverinfo="text",
        showscale=False,
    )


def _symbol(code: int, whose: int, cells: int) -> str:
    if code == RIGHT and cells > TICKED:
        return ""
    return str(whose) if code == ELSEWHERE and whose >= 0 else SYMBOLS[code]


def _state(code: int, whose: int) -> str:
    return f"rank {whose}'s block" if code == ELSEWHERE and whose >= 0 else NAMES[code]


def _legend_entry(code: int) -> go.Scatter:
    said = "(whose: the number)" if code == ELSEWHERE else SYMBOLS[code]
    name = f"{NAMES[code]} {said}".rstrip()
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(symbol="square", size=14, color=COLORS[code]),
        name=name,
        hoverinfo="skip",
    )


def _lay_out(
    figure: go.Figure, title: str, names: Sequence[str] | None, ranks: int, columns: int
) -> None:
    def ticks(count: int) -> list[int]:
        return list(range(0, count, max(1, -(-count // 16))))

    # A few blocks would fill the page width: keep them about twice as wide as high.
    cell = 30 if ranks <= 16 else 15
    figure.update_layout(
        title=dict(text=title),
        height=max(310, 180 + cell * ranks),
        margin=dict(t=90),
        legend=dict(orientation="h", x=0, xanchor="left", y=1.02, yanchor="bottom"),
        modebar=dict(remove=["select2d", "lasso2d"]),
    )
    named = {} if names is None else dict(ticktext=[names[column] for column in ticks(columns)])
    figure.update_xaxes(
        title="block (rank that it comes from)" if names is None else "elements of the buffer",
        tickvals=ticks(columns),
        **named,
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


def _alt(title: str, shown: _Shown) -> str:
    grid, details = shown.grid, shown.details
    wrong = (grid != RIGHT) & (grid != ABSENT)
    counts = [
        f"{int((grid == code).sum())} {NAMES[code]}"
        for code in (WRONG, UNTOUCHED, ELSEWHERE)
        if (grid == code).any()
    ]
    there = int((grid != ABSENT).sum())
    what = "blocks" if shown.columns is None else "places"
    lines = [
        f"{title}: {int(wrong.sum())} of {there} {what} on "
        f"{int((grid != ABSENT).any(axis=1).sum())} ranks are not right"
        + (f" ({', '.join(counts)})." if counts else ".")
    ]
    for rank in range(grid.shape[0]):
        told = [
            f"{shown.place(block)}: {_state(grid[rank, block], shown.source[rank, block])}"
            + (f" ({details[rank, block]})" if details.get((rank, block)) else "")
            for block in np.flatnonzero(wrong[rank]).tolist()
        ]
        if len(told) > SENTENCES_A_RANK:
            told[SENTENCES_A_RANK:] = [f"and {len(told) - SENTENCES_A_RANK} more"]
        if told:
            lines.append(f"Rank {rank}: {'; '.join(told)}.")
    return "\n".join(lines)
