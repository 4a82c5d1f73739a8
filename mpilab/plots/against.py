"""Simulated against measured times, a point for each kernel, order and size."""

import numpy as np
import plotly.graph_objects as go

from mpilab.plots import style
from mpilab.simulated.against import agreement

_SYMBOLS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down")


def simulated_against_measured(rows):
    """Figure of simulated over measured time, both logarithmic, with the line where they are equal.

    rows   of mpilab.simulated.against.ROW; one colour and marker for each collective.

    Raises InputError where there are none.
    """
    found = agreement(rows)
    title = "Simulated and measured times"
    figure = go.Figure()
    lines = [
        f"{title}: {found.points} points, one for each kernel, order of ranks and size, both axes "
        "logarithmic.",
        f"All: rank correlation {found.rho:.2f}, median of simulated over measured "
        f"{found.ratio:.2f}.",
    ]
    for number, collective in enumerate(dict.fromkeys(rows["collective"].tolist())):
        chosen = rows[rows["collective"] == collective]
        figure.add_trace(_points(collective, chosen, number))
        one = agreement(chosen)
        lines.append(
            f"{collective}: {one.points} points, rank correlation {one.rho:.2f}, median ratio "
            f"{one.ratio:.2f}; measured {style.duration(chosen['measured_s'].min())} to "
            f"{style.duration(chosen['measured_s'].max())}."
        )
    both = np.concatenate([rows["measured_s"], rows["simulated_ns"] / 1e9])
    ends = [both.min() / 1.5, both.max() * 1.5]
    figure.add_trace(go.Scatter(x=ends, y=ends, mode="lines", name="equal", hoverinfo="skip",
                                line=dict(color=style.LINE, dash="dash")))  # fmt: skip
    powers = range(int(np.floor(np.log10(ends[0]))), int(np.ceil(np.log10(ends[1]))) + 1)
    ticks = dict(type="log", tickvals=[10.0**power for power in powers],
                 ticktext=[style.duration(10.0**power) for power in powers],
                 range=np.log10(ends).tolist())  # fmt: skip
    figure.update_xaxes(title="measured, median of the repetitions", **ticks)
    figure.update_yaxes(title="simulated", **ticks)
    figure.update_layout(title=dict(text=title), height=560, legend=dict(
        orientation="h", x=0, y=1, yanchor="bottom"), margin=dict(t=90))  # fmt: skip
    return style.finish(figure, "\n".join(lines))


def _points(collective, rows, number):
    told = [
        f"{row['kernel']}, {row['order']}, {style.byte_size(row['bytes'])}" for row in rows
    ]  # fmt: skip
    return go.Scatter(
        x=rows["measured_s"], y=rows["simulated_ns"] / 1e9, mode="markers", name=collective,
        marker=dict(color=style.ORDER_COLOURS[number % len(style.ORDER_COLOURS)], size=7,
                    symbol=_SYMBOLS[number % len(_SYMBOLS)], opacity=0.75),
        text=told,
        hovertemplate="%{text}<br>measured %{x:.3s}s, simulated %{y:.3s}s<extra></extra>",
    )  # fmt: skip
