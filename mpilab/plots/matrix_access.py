"""Which elements of a matrix in a file each rank's requests cover, and how often."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.matrices.distribution import ELEMENT_BYTES, HEADER_BYTES
from mpilab.plots import style
from mpilab.plots.matrix import SCALE

MOST_CELLS = 48  # rows and columns of a panel: of a larger matrix a cell is many elements
MOST_PANELS = 16


def matrix_access(requests, about, *, title="What each rank reads of the matrix"):
    """Figure of requests (fields rank, offset, bytes: reads of one call) on the matrix `about`, a
    mpilab.matrices.distribution.Distribution: a panel for all ranks, and one for each.

    A cell says how often, on average, its bytes are asked for. Requests whose bytes do not lie
    together (through a view) are not what they look like here: give those below MPI. Raises
    InputError for more than MOST_PANELS ranks, and for a matrix without elements.
    """
    if about.ranks > MOST_PANELS:
        raise InputError(f"{about.ranks} ranks: maps of at most {MOST_PANELS} can be read")
    if not about.bytes:
        raise InputError(f"matrix {about.words()!r}: it has no elements to be read")
    times = [times_read(requests[requests["rank"] == rank], about) for rank in range(about.ranks)]
    panels = [("all ranks", sum(times))] + [(f"rank {r}", own) for r, own in enumerate(times)]
    across = min(len(panels), 5)
    down = -(-len(panels) // across)
    figure = make_subplots(
        rows=down, cols=across, subplot_titles=[name for name, _ in panels],
        horizontal_spacing=0.05, vertical_spacing=0.3 / down,
    )  # fmt: skip
    most = max(1.0, float(panels[0][1].max()))
    for place, (name, cells) in enumerate(panels):
        row, column = divmod(place, across)
        figure.add_trace(_heat(name, cells, about, most), row=row + 1, col=column + 1)
    figure.update_xaxes(side="bottom", showgrid=False, nticks=4)
    figure.update_yaxes(autorange="reversed", showgrid=False, nticks=4)
    figure.update_xaxes(title="column", row=down)
    figure.update_yaxes(title="row", col=1)
    figure.update_layout(title=dict(text=title), height=170 + 200 * down, margin=dict(t=90))
    return style.finish(figure, "\n".join(_alt(title, panels, about)))


def times_read(requests, about):
    """How often each cell of the matrix is asked for, on average of its bytes: float64 [rows,
    columns] of at most MOST_CELLS each, in equal parts of the matrix.

    Requests at an unknown place (offset below 0) do not count. Memory is for the rows of the matrix
    by the columns of cells, and not for its elements.
    """
    known = requests[requests["offset"] >= 0]
    first = known["offset"].astype(np.int64) - HEADER_BYTES
    last = first + known["bytes"]
    rows, columns = (_begins(length) for length in (about.rows, about.columns))
    # A row of cells in one row of the matrix: from one of these bytes to the next.
    edges = np.add.outer(np.arange(about.rows) * about.columns, columns).reshape(-1)
    edges = np.append(edges, about.rows * about.columns) * ELEMENT_BYTES
    asked = np.diff(_asked_before(edges, first) - _asked_before(edges, last))
    asked = np.add.reduceat(asked.reshape(about.rows, len(columns)), rows, axis=0)
    elements = np.outer(np.diff([*rows, about.rows]), np.diff([*columns, about.columns]))
    return asked / (elements * ELEMENT_BYTES)


def _begins(length):
    """The first row (or column) of each cell."""
    cells = min(length, MOST_CELLS)
    return np.arange(cells) * length // cells


def _asked_before(edges, begins):
    """How many bytes before each of `edges` requests cover that begin so and never end: int64."""
    begins = np.sort(begins)
    there = np.searchsorted(begins, edges)
    return there * edges - np.append(0, np.cumsum(begins))[there]


def _heat(name, cells, about, most):
    rows, columns = cells.shape
    return go.Heatmap(
        z=np.where(cells == 0, np.nan, cells),
        x=(np.arange(columns) + 0.5) * about.columns / columns - 0.5,
        y=(np.arange(rows) + 0.5) * about.rows / rows - 0.5,
        zmin=0,
        zmax=most,
        colorscale=SCALE,
        showscale=name == "all ranks",
        colorbar=dict(title="times read", thickness=12),
        hovertemplate=f"{name}: about row %{{y:.0f}}, column %{{x:.0f}}: read %{{z:.3g}} times"
        "<extra></extra>",
    )


def _alt(title, panels, about):
    yield f"{title}: {about.rows} x {about.columns} elements, {style.plural(about.ranks, 'rank')}."
    for name, cells in panels:
        rows, columns = np.nonzero(cells)
        if not len(rows):
            yield f"{name}: nothing."
            continue
        place = [
            (int(index.min() * whole / parts), int(-(-(index.max() + 1) * whole // parts)) - 1)
            for index, whole, parts in ((rows, about.rows, cells.shape[0]),
                                        (columns, about.columns, cells.shape[1]))
        ]  # fmt: skip
        yield (
            f"{name}: {np.count_nonzero(cells) / cells.size:.0%} of the matrix, between rows "
            f"{place[0][0]} and {place[0][1]}, columns {place[1][0]} and {place[1][1]}; what is "
            f"read, {cells[cells > 0].mean():.3g} times on average."
        )
