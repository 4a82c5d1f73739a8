"""Who sent how much to whom: the communication matrix as a heat map."""

from dataclasses import dataclass

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.errors import InputError
from mpilab.plots import style

# Opaque, so that plotly can choose a legible colour for the number in a cell; from light to dark,
# but neither as light as one theme nor as dark as the other.
SCALE = [[0, "#a8c8f0"], [0.5, "#5b94dd"], [1, "#2757a5"]]


def hosts(recording):
    """The name of the host of each rank of a Recording, or of a list of RankRecording."""
    ranks = getattr(recording, "ranks", recording)
    return [rank.header["host"].decode(errors="replace") for rank in ranks]


def messages(message_counts, byte_counts=None, title="Messages between ranks", hosts=None):
    """Heat map of `message_counts` [P, P], from row (sender) to column (receiver).

    With `byte_counts` [P, P] a second heat map beside it shows the bytes. With `hosts`, the name of
    each rank's host, and more than one of them, a second row of heat maps adds up what goes from
    host to host; the diagonal stays inside a host. Pairs that exchanged nothing stay empty. Raises
    InputError where a matrix isn't square or the shapes differ.
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
    names = list(dict.fromkeys(hosts or []))
    rows = [_Row("rank", [str(rank) for rank in range(len(counts))], panels)]
    if len(names) > 1:
        rows.append(_Row("host", names, [(n, _by_host(m, hosts, names)) for n, m in panels]))
    figure = _drawn(rows, len(panels))
    figure.update_layout(title=dict(text=title))
    return style.finish(figure, "\n".join([_alt(title, panels), *_hosts_as_text(rows, hosts)]))


@dataclass(frozen=True)
class _Row:
    """One row of panels: of 'rank' or 'host', the names of those, and (name, matrix) of each."""

    what: str
    names: list
    panels: list

    @property
    def pixels(self):
        return max(200, min(24 * len(self.names), 420))


def _by_host(matrix, hosts, names):
    """Sums of a matrix by rank for each pair of hosts."""
    is_on = np.array([[host == name for host in hosts] for name in names]).astype(matrix.dtype)
    return is_on @ matrix @ is_on.T


def _drawn(rows, columns):
    height = sum(row.pixels for row in rows)
    between = 105  # pixels, for the axis title of one row and the titles of the next
    figure = make_subplots(
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


def _label(figure, row, place):
    count = len(row.names)
    ticks = list(range(0, count, max(1, count // 16)))
    shown = dict(tickvals=ticks, ticktext=[row.names[tick] for tick in ticks], showgrid=False)
    figure.update_xaxes(
        title=f"receiver ({row.what})", range=[-0.5, count - 0.5], row=place, **shown
    )
    figure.update_yaxes(title=f"sender ({row.what})", range=[count - 0.5, -0.5], row=place, **shown)


def _heat(name, matrix, row, bar):
    """One panel; where the numbers don't fit into the cells, with a colour bar placed by `bar`."""
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


def _hosts_as_text(rows, hosts):
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
                for dest in np.flatnonzero(counts[place])
            ]
            yield f"Host {name} (ranks {on_it}) sends to " + (", ".join(sends) or "nobody") + "."


def _cell(panels, source, dest):
    count = f"{int(panels[0][1][source, dest])}×"
    if len(panels) == 1:
        return count
    return f"{count}, {style.byte_size(int(panels[1][1][source, dest]))}"
