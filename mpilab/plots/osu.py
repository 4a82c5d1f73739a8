"""Tables of OSU micro-benchmarks in one figure."""

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.plots import logarithmic, style


def side_by_side(tables):
    """Latency, or bandwidth, over the message size: a line for each of `tables`.

    tables   mapping of a label to an OsuTable (mpilab.osu), all of latencies or all of bandwidths.
             Bars reach from the least to the largest mean of a rank where the table has them (-f).

    Raises InputError without tables, for a mixture, and for tables without sizes (osu_barrier).
    """
    field = _field(tables)
    figure = make_subplots()
    lines = []
    for place, (label, table) in enumerate(tables.items()):
        rows = table.rows
        colour = style.ORDER_COLOURS[place % len(style.ORDER_COLOURS)]
        # Microseconds become seconds, as in every figure of times.
        values = rows[field] * 1e-6 if field == "avg_us" else rows[field]
        figure.add_trace(_line(label, rows, values, field, colour))
        lines.append(
            f"{label}: "
            + ", ".join(
                f"{style.byte_size(size)} {_said(value, field)}"
                for size, value in zip(rows["size"], values, strict=True)
            )
            + "."
        )
    sizes = np.concatenate([table.rows["size"] for table in tables.values()])
    logarithmic.size_axes(figure, sizes, "bytes of a message")
    if field == "avg_us":
        times = np.concatenate([trace.y for trace in figure.data])
        logarithmic.time_axes(figure, times, "OSU's average latency, seconds")
    else:
        figure.update_yaxes(type="log", title="bandwidth, MB/s")
    what = "latency" if field == "avg_us" else "bandwidth"
    figure.update_layout(title=dict(text=f"OSU {what} against message size"))
    alt = f"OSU {what} against message size, both logarithmic: {', '.join(tables)}."
    return style.finish(figure, "\n".join([alt, *lines]))


def _field(tables):
    if not tables:
        raise InputError("side_by_side({}): give at least one table, e.g. {'default': table}")
    fields = {}
    for label, table in tables.items():
        names = table.rows.dtype.names
        found = next((name for name in ("avg_us", "mb_per_s") if name in names), None)
        if "size" not in names or found is None:
            raise InputError(f"table {label!r} ({table.benchmark}): has no sizes with a latency or "
                             "a bandwidth; show it as text")  # fmt: skip
        fields[label] = found
    if len(set(fields.values())) > 1:
        raise InputError(f"tables of latencies and of bandwidths: {fields}; draw a figure for each")
    return found


def _line(label, rows, values, field, colour):
    bars = None
    if "min_us" in rows.dtype.names:
        bars = dict(
            array=rows["max_us"] * 1e-6 - values,
            arrayminus=values - rows["min_us"] * 1e-6,
            thickness=1,
            width=3,
        )
    return go.Scatter(
        x=rows["size"],
        y=values,
        error_y=bars,
        mode="lines+markers",
        name=label,
        line=dict(color=colour, width=2),
        marker=dict(size=7),
        customdata=[
            [style.byte_size(size), _said(value, field)]
            for size, value in zip(rows["size"], values, strict=True)
        ],
        hovertemplate=f"{label}<br>%{{customdata[0]}}: %{{customdata[1]}}<extra></extra>",
    )


def _said(value, field):
    return style.duration(value) if field == "avg_us" else f"{value:.4g} MB/s"
