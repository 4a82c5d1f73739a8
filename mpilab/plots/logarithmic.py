"""Axes of sizes and times that span decades."""

import numpy as np

from mpilab.plots import style


def size_axes(figure, sizes, title, panels=1):
    """Make the x axes logarithmic, with labels at powers of two of the byte counts `sizes`.

    A size of 0 has no place there: draw it at `place` of it.
    """
    first, last = (int(np.floor(np.log2(max(size, 1)))) for size in (min(sizes), max(sizes)))
    step = max(1, -(-(last - first + 1) // max(3, 10 // panels)))
    ticks = [1 << power for power in range(first, last + 1, step)]
    figure.update_xaxes(
        type="log", title=title, tickvals=ticks, ticktext=[style.byte_size(tick) for tick in ticks]
    )


def time_axes(figure, seconds, title):
    """Make the y axes logarithmic, with labels at 1, 2, 5 or at powers of ten of a second."""
    seconds = np.asarray(seconds, float)
    seconds = seconds[np.isfinite(seconds) & (seconds > 0)]
    first, last = int(np.floor(np.log10(seconds.min()))), int(np.ceil(np.log10(seconds.max())))
    steps = (1, 2, 5) if last - first < 4 else (1,)
    ticks = [float(f"{step}e{power}") for power in range(first, last + 1) for step in steps]
    figure.update_yaxes(type="log", tickvals=ticks, ticktext=list(map(style.duration, ticks)))
    figure.update_yaxes(title=title, row=1, col=1)


def place(sizes):
    """Where sizes stand on a logarithmic axis: that of no bytes where that of one byte is."""
    return np.maximum(np.asarray(sizes, float), 1)
