"""Figures of sweeps over clusters: times against hosts, ranks per host, ranks or sizes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError
from mpilab.measure.cluster_sweep import ROW, summarize
from mpilab.plots import style
from mpilab.plots.style import Figure, go, place, plotly, size_axes, time_axes

AXES = {"ppn": "ranks per host", "ranks": "ranks", "nodes": "hosts", "bytes": "bytes"}
# In this order, fields that vary become panels: columns first, then rows.
_PANELS = ("bytes", "nodes", "ppn", "order", "cluster")
_SIMULATED = "SimGrid"
_DASHES = ("solid", "dot", "dash", "longdash", "dashdot")


def time_against(
    rows: NDArray[Any], axis: str = "ppn", *, relative_to: str | None = None
) -> Figure:
    """Figure of the median times of a sweep over a cluster; a line for each kernel.

    rows         of one collective (mpilab.measure.cluster_sweep.ROW).
    axis         "ppn" (ranks per host), "ranks", "nodes" (hosts) or "bytes". Of the other fields,
                 those that vary become columns and rows of panels; there may be two. Times against
                 "ranks" have a panel for each number of ranks per host.
    relative_to  a kernel: draw its time divided by that of each kernel, so that a kernel above 1 is
                 faster than this one.

    Raises InputError for rows that it cannot draw.
    """
    table = _checked(rows, axis, relative_to)
    across, down = _panels(table, axis)
    columns, lines = _values(table, across), _values(table, down)
    figure = plotly.subplots.make_subplots(
        rows=len(lines),
        cols=len(columns),
        shared_xaxes=True,
        shared_yaxes=True,
        horizontal_spacing=0.03,
        vertical_spacing=0.09,
        subplot_titles=[
            ", ".join(filter(None, (_said(across, column), _said(down, line))))
            for line in lines
            for column in columns
        ],
    )
    kernels = list(dict.fromkeys(table["kernel"].tolist()))
    named: set[str] = set()
    for row, line in enumerate(lines, start=1):
        for column, value in enumerate(columns, start=1):
            here = table[_is(table, across, value) & _is(table, down, line)]
            for kernel in kernels:
                values, drawn = _line(here, kernel, axis, relative_to)
                if not len(values):
                    continue
                trace = _trace(kernel, axis, values, drawn, kernels.index(kernel), relative_to)
                trace.update(showlegend=kernel not in named)
                named.add(kernel)
                figure.add_trace(trace, row=row, col=column)
    _lay_out(figure, table, axis, len(columns), len(lines), relative_to)
    return style.finish(figure, _alt(table, axis, across, down, kernels, relative_to))


def _checked(rows: NDArray[Any], axis: str, relative_to: str | None) -> NDArray[Any]:
    if axis not in AXES:
        raise InputError(f"axis={axis!r}: write one of {', '.join(AXES)}")
    if missing := set(ROW.names or ()) - set(rows.dtype.names or ()):
        raise InputError(
            f"the rows have no field {', '.join(sorted(missing))}; give those of a sweep over a "
            "cluster (mpilab.measure.cluster_sweep)"
        )
    if not len(rows):
        raise InputError("there are no rows to draw; run the sweep first")
    collectives = np.unique(rows["collective"]).tolist()
    if len(collectives) > 1:
        raise InputError(f"rows of {', '.join(collectives)}: draw one collective at a time")
    if relative_to is not None and relative_to not in rows["kernel"]:
        raise InputError(
            f"relative_to={relative_to!r}: the rows have "
            f"{', '.join(np.unique(rows['kernel']).tolist())}"
        )
    return summarize(rows)


def _panels(table: NDArray[Any], axis: str) -> tuple[str, str]:
    """The fields of the columns and of the rows of panels; "" for none."""
    # Ranks are hosts times ranks per host, so one of these two follows from the rest.
    follows = {"ppn": ("ranks",), "nodes": ("ranks",), "ranks": ("nodes",), "bytes": ("ranks",)}
    found = [
        field
        for field in _PANELS
        if field != axis and field not in follows[axis] and len(np.unique(table[field])) > 1
    ]
    # One cluster of each size: their names say the same as the numbers of hosts.
    if "cluster" in found and len(np.unique(table["cluster"])) == len(np.unique(table["nodes"])):
        found.remove("cluster")
    if len(found) > 2:
        raise InputError(
            f"the rows differ in {', '.join(found)} beside {axis}: choose those of one "
            f"{found[-1]}, e.g. rows[rows['{found[-1]}'] == {table[found[-1]][0].item()!r}]"
        )
    across, down, *_ = [*found, "", ""]
    return across, down


def _values(table: NDArray[Any], field: str) -> list[Any]:
    return np.unique(table[field]).tolist() if field else [None]


def _is(table: NDArray[Any], field: str, value: Any) -> NDArray[np.bool_]:
    return table[field] == value if field else np.ones(len(table), bool)


def _said(field: str, value: Any) -> str:
    if not field:
        return ""
    if field == "bytes":
        return style.byte_size(value)
    if field == "nodes":
        return style.plural(value, "host")
    return f"{value} per host" if field == "ppn" else str(value)


def _line(
    table: NDArray[Any], kernel: str, axis: str, relative_to: str | None
) -> tuple[NDArray[Any], NDArray[np.float64]]:
    """A kernel's values on the axis, ascending, and its times, or those of `relative_to` divided by
    them."""
    of = _medians(table, kernel, axis)
    values = sorted(of)
    if relative_to is not None:
        other = _medians(table, relative_to, axis)
        values = [value for value in values if value in other]
        return np.array(values), np.array([other[value] / of[value] for value in values])
    return np.array(values), np.array([of[value] for value in values])


def _medians(table: NDArray[Any], kernel: str, axis: str) -> dict[Any, float]:
    """{value on the axis: median seconds} of a kernel."""
    mine = table[table["kernel"] == kernel]
    return {row[axis].item(): float(row["median_s"]) for row in mine}


def _trace(
    kernel: str,
    axis: str,
    values: NDArray[Any],
    drawn: NDArray[np.float64],
    number: int,
    relative_to: str | None,
) -> Any:
    name = kernel.partition("_")[2]
    is_openmpis = name.startswith("openmpi")
    words = [
        _said(axis, value) if axis != "ranks" else style.plural(value, "rank")
        for value in values.tolist()
    ]
    shown = [f"{y:.3g}×" if relative_to else style.duration(y) for y in drawn.tolist()]
    return go.Scatter(
        x=place(values) if axis == "bytes" else values,
        y=drawn,
        mode="lines+markers",
        name=name,
        legendgroup=kernel,
        line=dict(color=style.color(name), width=2, dash=_DASHES[number % len(_DASHES)]),
        marker=dict(symbol=style.marker(name) + "-open" * is_openmpis, size=8),
        customdata=list(zip(words, shown, strict=True)),
        hovertemplate=f"{name}<br>%{{customdata[0]}}: %{{customdata[1]}}<extra></extra>",
    )


def _lay_out(
    figure: Figure,
    table: NDArray[Any],
    axis: str,
    columns: int,
    lines: int,
    relative_to: str | None,
) -> None:
    collective = str(table["collective"][0])
    if axis == "bytes":
        size_axes(figure, place(table["bytes"]), "bytes", columns)
    else:
        ticks = np.unique(table[axis]).tolist()
        figure.update_xaxes(tickvals=ticks if len(ticks) <= 16 else None, title=AXES[axis])
    for line in range(1, lines):
        figure.update_xaxes(title="", row=line)
    if relative_to is None:
        time_axes(figure, np.concatenate([t.y for t in figure.data]), "median time, seconds")
        title = f"{collective}: time against {AXES[axis]}"
    else:
        other = relative_to.partition("_")[2]
        figure.update_yaxes(type="log", tickvals=_RATIOS, ticktext=[f"{r:g}" for r in _RATIOS])
        figure.update_yaxes(title=f"times as fast as {other}", row=1, col=1)
        figure.add_hline(y=1, line=dict(color=style.LINE, width=1, dash="dot"))
        title = f"{collective}: speed beside {other}, against {AXES[axis]}"
    figure.update_layout(
        title=dict(text=title),
        height=max(480, 300 * lines + 160),
        margin=dict(t=70, b=130),
        legend=dict(orientation="h", x=0, xanchor="left", y=-0.14, yanchor="top"),
    )


def ratio_map(rows: NDArray[Any], kernel: str, relative_to: str) -> Figure:
    """Heat map of how many times as long as `relative_to` a kernel takes: a row for each number of
    ranks, a column for each size.

    rows   of a sweep with one place for each number of ranks (mpilab.measure.cluster_sweep.ROW).

    Points where a time is 0, as on a single rank, are left out. Raises InputError for rows that it
    cannot draw.
    """
    table = _checked(rows, "ranks", relative_to)
    if kernel not in table["kernel"]:
        raise InputError(
            f"kernel={kernel!r}: the rows have {', '.join(np.unique(table['kernel']))}"
        )
    taken: dict[str, dict[tuple[int, int], float]] = {kernel: {}, relative_to: {}}
    for row in table[np.isin(table["kernel"], list(taken))]:
        of, point = taken[str(row["kernel"])], (int(row["ranks"]), int(row["bytes"]))
        if point in of:
            raise InputError(
                f"{row['kernel']}: there are two places with {point[0]} ranks; choose one"
            )
        of[point] = float(row["median_s"])
    base = taken[relative_to]
    ratios = {
        point: seconds / base[point]
        for point, seconds in taken[kernel].items()
        if seconds > 0 and base.get(point, 0) > 0
    }
    if not ratios:
        raise InputError(f"{kernel} and {relative_to} have no point in common; sweep both")
    ranks, sizes = (sorted({point[axis] for point in ratios}) for axis in (0, 1))
    values = np.array([[ratios.get((each, size), np.nan) for size in sizes] for each in ranks])
    most = max(2.0, float(np.nanmax(np.abs(np.log2(values)))))
    ticks = range(-int(most), int(most) + 1)
    name, other = (one.partition("_")[2] for one in (kernel, relative_to))
    figure = go.Figure(
        go.Heatmap(
            z=np.log2(values),
            zmid=0,
            zmin=-most,
            zmax=most,
            x=[style.byte_size(size) for size in sizes],
            y=[str(each) for each in ranks],
            colorscale=_FASTER_OR_SLOWER,
            xgap=1,
            ygap=1,
            text=[[f"{ratio:.3g}" for ratio in row] for row in values],
            texttemplate="%{text}",
            textfont=dict(size=11),
            hovertemplate="%{y} ranks, %{x}: %{text} times as long<extra></extra>",
            colorbar=dict(
                title="times as long",
                thickness=12,
                tickvals=list(ticks),
                ticktext=[f"{2.0**tick:g}" for tick in ticks],
            ),
        )
    )
    figure.update_xaxes(type="category", title="bytes of a rank's block", showgrid=False)
    figure.update_yaxes(type="category", title="ranks", showgrid=False)
    clusters = ", ".join(np.unique(table["cluster"]).tolist())
    title = f"{name} beside {other}, on {clusters}"
    figure.update_layout(title=dict(text=title), height=max(320, 28 * len(ranks) + 170))
    words = [
        style.plural(each, "rank")
        + ": "
        + ", ".join(
            f"{style.byte_size(size)} {ratios[each, size]:.3g}"
            for size in sizes
            if (each, size) in ratios
        )
        + "."
        for each in ranks
    ]
    return style.finish(
        figure, "\n".join([f"{title}: how many times as long it takes, by size.", *words])
    )


# Blue where the first kernel is faster, red where it is slower; white where both are equal.
_FASTER_OR_SLOWER = [[0, "#3b7dd8"], [0.5, "#f4f1ea"], [1, "#d4553e"]]
_RATIOS = (0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20)


def _alt(
    table: NDArray[Any],
    axis: str,
    across: str,
    down: str,
    kernels: Sequence[str],
    relative_to: str | None,
) -> str:
    collective, what = str(table["collective"][0]), "time"
    if relative_to is not None:
        what = f"how many times as fast as {relative_to}"
    clusters = ", ".join(np.unique(table["cluster"]).tolist())
    lines = [
        f"{collective} on {clusters}: {what}, against {AXES[axis]}, logarithmic; "
        f"{style.plural(len(kernels), 'kernel')}."
    ]
    for column in _values(table, across):
        for row in _values(table, down):
            here = table[_is(table, across, column) & _is(table, down, row)]
            said = ", ".join(filter(None, (_said(across, column), _said(down, row))))
            for kernel in kernels:
                values, drawn = _line(here, kernel, axis, relative_to)
                each = ", ".join(
                    f"{_short(axis, value)}: {f'{y:.2f}' if relative_to else style.duration(y)}"
                    for value, y in zip(values.tolist(), drawn.tolist(), strict=True)
                )
                if each:
                    lines.append(f"{said}{': ' * bool(said)}{kernel}, {each}.")
    return "\n".join(lines)


def _short(axis: str, value: int) -> str:
    return style.byte_size(value) if axis == "bytes" else f"{AXES[axis]} {value}"
