"""Who sent how much to whom: the communication matrix as a heat map."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.plots import style

# Opaque, from light to dark, so that plotly can choose a legible colour for the number in a cell.
SCALE = [[0, "#cfe0f5"], [0.5, "#5b94dd"], [1, "#1c3f78"]]


def messages(message_counts, byte_counts=None, title="Messages between ranks"):
    """Heat map of `message_counts` [P, P], from row (sender) to column (receiver).

    With `byte_counts` [P, P] a second heat map beside it shows the bytes. Pairs that exchanged
    nothing stay empty. Raises InputError where a matrix isn't square or the shapes differ.
    """
    counts = np.asarray(message_counts)
    panels = [("messages", counts)]
    if byte_counts is not None:
        panels.append(("bytes", np.asarray(byte_counts)))
    for name, matrix in panels:
        if matrix.ndim != 2 or matrix.shape != counts.shape or len(set(matrix.shape)) != 1:
            raise InputError(
                f"matrix of {name}: shape {matrix.shape}; give one row and one column for each "
                "rank, in both matrices."
            )
    figure = make_subplots(
        cols=len(panels),
        horizontal_spacing=0.16,
        subplot_titles=[name for name, _ in panels] if len(panels) > 1 else None,
    )
    for column, (name, matrix) in enumerate(panels, start=1):
        panel = next(figure.select_xaxes(row=1, col=column))
        figure.add_trace(_heat(name, matrix, panel.domain[1]), row=1, col=column)
    ranks = len(counts)
    ticks = list(range(0, ranks, max(1, ranks // 16)))
    figure.update_xaxes(title="receiver (rank)", tickvals=ticks, showgrid=False)
    figure.update_yaxes(
        title="sender (rank)", tickvals=ticks, showgrid=False, range=[ranks - 0.5, -0.5]
    )
    figure.update_layout(title=dict(text=title), height=max(360, 160 + 24 * ranks))
    return style.finish(figure, _alt(title, panels))


def _heat(name, matrix, right_edge):
    """One panel; where the numbers don't fit into the cells, a colour bar at `right_edge`."""
    numbers = len(matrix) <= (16 if name == "messages" else 8)
    write = style.byte_size if name == "bytes" else str
    words = [[write(int(cell)) if cell else "" for cell in row] for row in matrix.tolist()]
    return go.Heatmap(
        z=np.where(matrix == 0, np.nan, matrix.astype(float)),
        zmin=0,
        colorscale=SCALE,
        xgap=1,
        ygap=1,
        text=words,
        texttemplate="%{text}" if numbers else None,
        hovertemplate=f"rank %{{y}} → rank %{{x}}: %{{text}} {name}<extra></extra>"
        if name == "messages"
        else "rank %{y} → rank %{x}: %{text}<extra></extra>",
        showscale=not numbers,
        colorbar=dict(title=name, tickformat="~s", x=right_edge, thickness=12, len=0.9),
    )


def _alt(title, panels):
    counts = panels[0][1]
    ranks = len(counts)
    lines = [
        f"{title}: {int(counts.sum())} messages between {int((counts > 0).sum())} "
        f"of {ranks * (ranks - 1)} ordered pairs of {ranks} ranks."
    ]
    for rank in range(ranks):
        receivers = [
            f"{dest} ({_cell(panels, rank, dest)})" for dest in np.flatnonzero(counts[rank])
        ]
        lines.append(f"Rank {rank} sends to " + (", ".join(receivers) or "nobody") + ".")
    return "\n".join(lines)


def _cell(panels, source, dest):
    count = f"{int(panels[0][1][source, dest])}×"
    if len(panels) == 1:
        return count
    return f"{count}, {style.byte_size(int(panels[1][1][source, dest]))}"
