"""Traffic matrices as heat maps: how much each rank sends to each other rank."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError
from mpilab.hosts.links import matrices, node_names
from mpilab.hosts.places import Levels
from mpilab.plots import style
from mpilab.plots.network import Layout
from mpilab.plots.style import Figure, Trace, go, plotly
from mpilab.trace.recording import RankRecording, Recording

Counts = NDArray[np.int64]  # [P, P]
Pair = tuple[int, int]  # source, dest
Panel = tuple[str, Counts]  # its name and matrix

# The traffic matrix of a cluster, with the ranks of a node, and of a group, side by side.

# From few bytes to many; opaque and of medium lightness, like SCALE below.
_SCALES = {
    "within a node": ("#a8c8f0", "#2757a5"),
    "between nodes": ("#7cc393", "#1d7a45"),
    "between groups": ("#ec9a80", "#b8371f"),
}
# With more ranks, cells have no room for numbers with units, or for numbers at all.
_MOST_WITH_UNITS, _MOST_NUMBERS, _MOST_DIGITS = 8, 16, 6
_MOST_NAMED, _MOST_NODES = 32, 16  # ticks
_HIGHEST = 560  # pixels of the matrix
# Opaque, so that plotly can choose a legible color for the number in a cell; from light to dark,
# but neither as light as one theme nor as dark as the other.
SCALE = [[0, "#a8c8f0"], [0.5, "#5b94dd"], [1, "#2757a5"]]


def traffic_matrix(
    matrix: ArrayLike, levels: Levels, title: str = "Traffic between ranks"
) -> Figure:
    """Heat map of the bytes from each rank (row) to each other (column), sorted by group and node.

    Traffic within a node, between nodes of a group, and between groups each has its own color,
    darker for more bytes. Thin lines surround nodes, thick ones groups. Arguments as for
    mpilab.plots.network.network, but a single node or group is allowed.
    """
    counts, volume = matrices(matrix, levels)
    layout = Layout(levels)
    order = [rank for node in layout.order for rank in layout.ranks_of[node]]
    # The index in _SCALES of each pair.
    kinds = levels.between_nodes().astype(int) + levels.between_groups()
    talks = volume > 0 if counts is None else counts > 0
    numbers, unit = _numbers(counts, volume, talks)
    figure = go.Figure(_heat_of_traffic(counts, volume, talks, kinds, order, numbers))
    lines = [f"{title}: {style.plural(len(order), 'rank')} on {levels.describe()}."]
    for number, (kind, colors) in enumerate(_SCALES.items()):
        chosen = talks & (kinds == number)
        if chosen.any():
            lines.append(f"{kind[0].upper()}{kind[1:]}: {_sum(counts, volume, chosen)}.")
            size = style.byte_size(int(volume[chosen].sum()))
            figure.add_trace(style.legend_entry(f"{kind}: {size}", colors[1]))
    lines += _rows(counts, volume, talks, kinds, order)
    figure.update_layout(shapes=_borders(layout))
    _lay_out(figure, layout, order, title, unit)
    return style.finish(figure, "\n".join(lines))


def _sum(counts: Counts | None, volume: Counts, chosen: Any) -> str:
    """'2 MiB in 4 messages': the total of the pairs that `chosen` selects."""
    size = style.byte_size(int(volume[chosen].sum()))
    if counts is None:
        return size
    return f"{size} in {style.plural(int(counts[chosen].sum()), 'message')}"


def _numbers(
    counts: Counts | None, volume: Counts, talks: NDArray[np.bool_]
) -> tuple[dict[Pair, str], str]:
    """The texts of the cells, {(source, dest): text}, and their unit if the texts lack it.

    Both are empty if there is no room for them.
    """
    pairs = [(int(source), int(dest)) for source, dest in np.argwhere(talks)]
    if not volume.any():  # messages without bytes
        return {} if counts is None else {pair: f"{counts[pair]}×" for pair in pairs}, ""
    if len(volume) <= _MOST_WITH_UNITS:
        return {pair: style.byte_size(int(volume[pair])) for pair in pairs}, ""
    unit = style.byte_size(int(volume[volume > 0].min())).split()[-1]
    factor = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    numbers = {pair: f"{round(volume[pair] / factor, 1):.9g}" for pair in pairs}
    fit = len(volume) <= _MOST_NUMBERS and max(map(len, numbers.values())) <= _MOST_DIGITS
    return (numbers, unit) if fit else ({}, "")


def _heat_of_traffic(
    counts: Counts | None,
    volume: Counts,
    talks: NDArray[np.bool_],
    kinds: Counts,
    order: Sequence[int],
    numbers: Mapping[Pair, str],
) -> Trace:
    """One heat map, with a third of its color scale for each kind."""
    sorted_pairs = np.ix_(order, order)
    share = volume / max(int(volume.max(initial=0)), 1)
    thirds = np.where(talks, kinds + 0.999 * share, np.nan)[sorted_pairs].astype(np.float32)
    colors = [
        ((number + end) / len(_SCALES), color)
        for number, ends in enumerate(_SCALES.values())
        for end, color in enumerate(ends)
    ]
    names, gap = list(_SCALES), int(len(order) <= _MOST_NAMED)

    def told(pair: Pair) -> str:
        about = f"rank {pair[0]} → rank {pair[1]}, {names[kinds[pair]]}"
        return f"{about}: {_sum(counts, volume, pair)}"

    return go.Heatmap(
        z=thirds,
        zmin=0,
        zmax=len(_SCALES),
        colorscale=colors,
        showscale=False,
        xgap=gap,
        ygap=gap,
        text=[[numbers.get((i, j), "") for j in order] for i in order],
        texttemplate="%{text}",
        textfont=dict(size=11),
        hovertext=[[told((i, j)) if talks[i, j] else "" for j in order] for i in order],
        hoverinfo="text",
        hoverongaps=False,
    )


def _rows(
    counts: Counts | None,
    volume: Counts,
    talks: NDArray[np.bool_],
    kinds: Counts,
    order: Sequence[int],
) -> Iterator[str]:
    """A line of text for each rank: what it sends, by kind."""
    for rank in order:
        sent = [
            f"{_sum(counts, volume, (rank, to))} {kind}"
            for number, kind in enumerate(_SCALES)
            if len(to := np.flatnonzero(talks[rank] & (kinds[rank] == number)))
        ]
        yield f"Rank {rank} sends {', '.join(sent) or 'nothing'}."


def _borders(layout: Layout) -> list[dict[str, Any]]:
    """A square around each node's ranks, and a thicker one around each group's."""
    borders, begin = [], 0
    groups: dict[int, list[int]] = {}
    for node in layout.order:
        end = begin + len(layout.ranks_of[node])
        borders.append(_square(begin, end, 1))
        groups.setdefault(layout.group_of[node], []).extend((begin, end))
        begin = end
    if len(groups) > 1:
        borders += [_square(min(ends), max(ends), 3) for ends in groups.values()]
    return borders


def _square(begin: int, end: int, width: int) -> dict[str, Any]:
    corner, opposite = begin - 0.5, end - 0.5
    return dict(
        type="rect",
        x0=corner,
        x1=opposite,
        y0=corner,
        y1=opposite,
        line=dict(color=style.TEXT, width=width),
    )


def _lay_out(figure: Figure, layout: Layout, order: Sequence[int], title: str, unit: str) -> None:
    edge = 0.5 + len(order) / 250  # room for half of a thick line
    what, names = "rank", [str(rank) for rank in order]
    ticks: Sequence[float] = range(len(order))
    if len(order) > _MOST_NAMED:
        what = "node"
        ticks, names = _node_ticks(layout)
    shown = dict(tickvals=list(ticks), ticktext=names, showgrid=False, tickangle=0)
    across = f"receiver ({what})" + (f"; numbers in {unit}" if unit else "")
    figure.update_xaxes(title=across, range=[-edge, len(order) - 1 + edge], **shown)
    figure.update_yaxes(title=f"sender ({what})", range=[len(order) - 1 + edge, -edge], **shown)
    figure.update_layout(
        title=dict(text=title),
        height=max(200, min(_HIGHEST, 30 * len(order))) + 180,
        margin=dict(t=80, r=12),
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
    )


def _node_ticks(layout: Layout) -> tuple[list[float], list[str]]:
    """(middles of the nodes' ranks, names) of the nodes with a tick, at most _MOST_NODES."""
    names, begin, ticks = node_names(layout.levels), 0, []
    for node in layout.order:
        size = len(layout.ranks_of[node])
        ticks.append((begin + (size - 1) / 2, names[node]))
        begin += size
    shown = [ticks[place] for place in style.rank_ticks(len(ticks), _MOST_NODES)]
    return [middle for middle, _ in shown], [name for _, name in shown]


# Messages and bytes from rank to rank, and from host to host.


def hosts(recording: Recording | Iterable[RankRecording]) -> list[str]:
    """The host name of each rank of a Recording, or of a list of RankRecording."""
    ranks = recording.ranks if isinstance(recording, Recording) else recording
    return [rank.header["host"].decode(errors="replace") for rank in ranks]


def messages(
    message_counts: ArrayLike,
    byte_counts: ArrayLike | None = None,
    title: str = "Messages between ranks",
    hosts: Sequence[str] | None = None,
) -> Figure:
    """Heat map of `message_counts` [P, P], from row (sender) to column (receiver).

    With `byte_counts` [P, P], a second heat map beside it shows the bytes. If `hosts`, the name of
    each rank's host, has more than one name, a second row of heat maps shows the sums from host to
    host; the diagonal is traffic inside a host. Pairs without messages stay empty. Raises
    InputError if a matrix isn't square or the sizes differ.
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
    if hosts is not None and len(hosts) != len(counts):
        raise InputError(
            f"hosts: {len(hosts)} names for {len(counts)} ranks; give the name of each rank's host."
        )
    hosts = hosts or []
    names = list(dict.fromkeys(hosts))
    rows = [_Row("rank", [str(rank) for rank in range(len(counts))], panels)]
    if len(names) > 1:
        rows.append(_Row("host", names, [(n, _by_host(m, hosts, names)) for n, m in panels]))
    figure = _drawn(rows, len(panels))
    figure.update_layout(title=dict(text=title))
    return style.finish(figure, "\n".join([_alt(title, panels), *_hosts_as_text(rows, hosts)]))


@dataclass(frozen=True)
class _Row:
    """One row of panels: 'rank' or 'host', their names, and (name, matrix) of each panel."""

    what: str
    names: list[str]
    panels: list[Panel]

    @property
    def pixels(self) -> int:
        return max(200, min(24 * len(self.names), 420))


def _by_host(matrix: Counts, hosts: Sequence[str], names: Sequence[str]) -> Counts:
    """The sums of a matrix of ranks for each pair of hosts."""
    is_on = np.array([[host == name for host in hosts] for name in names]).astype(matrix.dtype)
    return is_on @ matrix @ is_on.T


def _drawn(rows: Sequence[_Row], columns: int) -> Figure:
    height = sum(row.pixels for row in rows)
    between = 105  # pixels, for the axis title of one row and the titles of the next
    figure = plotly.subplots.make_subplots(
        rows=len(rows),
        cols=columns,
        horizontal_spacing=0.16,
        vertical_spacing=between / (height + between) if len(rows) > 1 else None,
        row_heights=[row.pixels for row in rows],
        subplot_titles=[
            name if row.what == "rank" else f"{name}, by host"
            for row in rows
            for name, _ in row.panels
        ]
        if len(rows) * columns > 1
        else None,
    )
    for place, row in enumerate(rows, start=1):
        for column, (name, matrix) in enumerate(row.panels, start=1):
            across = next(figure.select_xaxes(row=place, col=column))
            down = next(figure.select_yaxes(row=place, col=column))
            bar = dict(x=across.domain[1], y=sum(down.domain) / 2)
            bar["len"] = 0.9 * (down.domain[1] - down.domain[0])
            figure.add_trace(_heat(name, matrix, row, bar), row=place, col=column)
        _label(figure, row, place)
    figure.update_layout(height=max(360, height + 160 + between * (len(rows) - 1)))
    return figure


def _label(figure: Figure, row: _Row, place: int) -> None:
    count = len(row.names)
    ticks = list(range(0, count, max(1, count // 16)))
    shown = dict(tickvals=ticks, ticktext=[row.names[tick] for tick in ticks], showgrid=False)
    figure.update_xaxes(
        title=f"receiver ({row.what})", range=[-0.5, count - 0.5], row=place, **shown
    )
    figure.update_yaxes(title=f"sender ({row.what})", range=[count - 0.5, -0.5], row=place, **shown)


def _heat(name: str, matrix: Counts, row: _Row, bar: dict[str, float]) -> Trace:
    """One panel, with a color bar at `bar` if the numbers don't fit into the cells."""
    numbers = len(matrix) <= (16 if name == "messages" else 8)
    write = style.byte_size if name == "bytes" else str
    words = [[write(int(cell)) if cell else "" for cell in row] for row in matrix.tolist()]
    unit = " messages" if name == "messages" else ""
    most = max(int(matrix.max(initial=0)), 1)
    pair, called = "rank %{y} → rank %{x}", None
    if row.what != "rank":
        pair, called = "%{customdata}", [[f"{s} → {d}" for d in row.names] for s in row.names]
    return go.Heatmap(
        z=np.where(matrix == 0, np.nan, matrix.astype(float)),
        zmin=0,
        zmax=most,
        colorscale=SCALE,
        xgap=1,
        ygap=1,
        text=words,
        texttemplate="%{text}" if numbers else None,
        customdata=called,
        hovertemplate=f"{pair}: %{{text}}{unit}<extra></extra>",
        showscale=not numbers,
        colorbar=dict(
            title=name, tickformat="~s", thickness=12, **bar, dtick=1 if most < 6 else None
        ),
    )


def _alt(title: str, panels: Sequence[Panel]) -> str:
    counts = panels[0][1]
    ranks = len(counts)
    lines = [
        f"{title}: {int(counts.sum())} messages between {int((counts > 0).sum())} "
        f"of {ranks * (ranks - 1)} ordered pairs of {ranks} ranks."
    ]
    for rank in range(ranks):
        receivers = [
            f"{dest} ({_cell(panels, rank, dest)})"
            for dest in np.flatnonzero(counts[rank]).tolist()
        ]
        lines.append(f"Rank {rank} sends to " + (", ".join(receivers) or "no rank") + ".")
    return "\n".join(lines)


def _hosts_as_text(rows: Sequence[_Row], hosts: Sequence[str]) -> Iterator[str]:
    if hosts and len(rows) == 1:
        yield f"All ranks are on one host, {hosts[0]}."
    for row in rows[1:]:
        counts = row.panels[0][1]
        across = int(counts.sum() - np.trace(counts))
        yield (
            f"{style.plural(across, 'message')} of {int(counts.sum()):,} go from one host to "
            f"another, among {len(row.names)} hosts."
        )
        for place, name in enumerate(row.names):
            on_it = ", ".join(str(rank) for rank, host in enumerate(hosts) if host == name)
            sends = [
                f"{'itself' if dest == place else row.names[dest]} "
                f"({_cell(row.panels, place, dest)})"
                for dest in np.flatnonzero(counts[place]).tolist()
            ]
            yield f"Host {name} (ranks {on_it}) sends to " + (", ".join(sends) or "no rank") + "."


def _cell(panels: Sequence[Panel], source: int, dest: int) -> str:
    count = f"{int(panels[0][1][source, dest])}×"
    if len(panels) == 1:
        return count
    return f"{count}, {style.byte_size(int(panels[1][1][source, dest]))}"
