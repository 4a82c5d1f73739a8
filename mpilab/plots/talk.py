"""Who talks to whom on a cluster: a matrix with the ranks of a node, and a group, side by side."""

import numpy as np
import plotly.graph_objects as go

from mpilab.links import matrices, node_names
from mpilab.plots import steps, style
from mpilab.plots.network_layout import Layout

# From few bytes to many; as opaque and as middling as those of plots/matrix.py.
_SCALES = {
    "within a node": ("#a8c8f0", "#2757a5"),
    "between nodes": ("#7cc393", "#1d7a45"),
    "between groups": ("#ec9a80", "#b8371f"),
}
# Of more ranks the cells have no room for numbers with units, or for any.
_MOST_WITH_UNITS, _MOST_NUMBERS, _MOST_DIGITS = 8, 16, 6
_MOST_NAMED, _MOST_NODES = 32, 16  # ticks
_HIGHEST = 560  # pixels of the matrix


def talk(matrix, levels, title="Who talks to whom"):
    """Heat map of the bytes from each rank (row) to each other (column), sorted by group and node.

    What stays within a node, goes between nodes of a group, and between groups has a colour each,
    the darker the more bytes. Thin lines are drawn around nodes, thick ones around groups.
    Arguments as for mpilab.plots.network.network; one node, or one group, is fine too.
    """
    counts, volume = matrices(matrix, levels)
    layout = Layout(levels)
    order = [rank for node in layout.order for rank in layout.ranks_of[node]]
    # The place in _SCALES of each pair.
    kinds = levels.between_nodes().astype(int) + levels.between_groups()
    talks = volume > 0 if counts is None else counts > 0
    numbers, unit = _numbers(counts, volume, talks)
    figure = go.Figure(_heat(counts, volume, talks, kinds, order, numbers))
    lines = [f"{title}: {style.plural(len(order), 'rank')} on {levels.describe()}."]
    for number, (kind, colours) in enumerate(_SCALES.items()):
        chosen = talks & (kinds == number)
        if chosen.any():
            lines.append(f"{kind[0].upper()}{kind[1:]}: {_sum(counts, volume, chosen)}.")
            size = style.byte_size(int(volume[chosen].sum()))
            figure.add_trace(steps.legend_entry(f"{kind}: {size}", colours[1]))
    lines += _rows(counts, volume, talks, kinds, order)
    figure.update_layout(shapes=_borders(layout))
    _lay_out(figure, layout, order, title, unit)
    return style.finish(figure, "\n".join(lines))


def _sum(counts, volume, chosen):
    """'2 MiB in 4 messages' of the pairs that `chosen` picks from the matrices."""
    size = style.byte_size(int(volume[chosen].sum()))
    if counts is None:
        return size
    return f"{size} in {style.plural(int(counts[chosen].sum()), 'message')}"


def _numbers(counts, volume, talks):
    """What stands in the cells, {(source, dest): text}, and the unit of all that have none of their
    own. Nothing where there is no room for it."""
    pairs = list(zip(*np.nonzero(talks), strict=True))
    if not volume.any():  # messages without bytes
        return {pair: f"{counts[pair]}×" for pair in pairs}, ""
    if len(volume) <= _MOST_WITH_UNITS:
        return {pair: style.byte_size(int(volume[pair])) for pair in pairs}, ""
    unit = style.byte_size(int(volume[volume > 0].min())).split()[-1]
    factor = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}[unit]
    numbers = {pair: f"{round(volume[pair] / factor, 1):.9g}" for pair in pairs}
    fit = len(volume) <= _MOST_NUMBERS and max(map(len, numbers.values())) <= _MOST_DIGITS
    return (numbers, unit) if fit else ({}, "")


def _heat(counts, volume, talks, kinds, order, numbers):
    """One heat map: a third of its scale of colours for each kind."""
    sorted_pairs = np.ix_(order, order)
    share = volume / max(int(volume.max(initial=0)), 1)
    thirds = np.where(talks, kinds + 0.999 * share, np.nan)[sorted_pairs].astype(np.float32)
    colours = [
        ((number + end) / len(_SCALES), colour)
        for number, ends in enumerate(_SCALES.values())
        for end, colour in enumerate(ends)
    ]
    names, gap = list(_SCALES), int(len(order) <= _MOST_NAMED)

    def told(pair):
        about = f"rank {pair[0]} → rank {pair[1]}, {names[kinds[pair]]}"
        return f"{about}: {_sum(counts, volume, pair)}"

    return go.Heatmap(
        z=thirds,
        zmin=0,
        zmax=len(_SCALES),
        colorscale=colours,
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


def _rows(counts, volume, talks, kinds, order):
    """A line of text for each rank: what it sends, by kind."""
    for rank in order:
        sent = [
            f"{_sum(counts, volume, (rank, to))} {kind}"
            for number, kind in enumerate(_SCALES)
            if len(to := np.flatnonzero(talks[rank] & (kinds[rank] == number)))
        ]
        yield f"Rank {rank} sends {', '.join(sent) or 'nothing'}."


def _borders(layout):
    """A square around each node's ranks, and a thicker one around each group's."""
    borders, begin, groups = [], 0, {}
    for node in layout.order:
        end = begin + len(layout.ranks_of[node])
        borders.append(_square(begin, end, 1))
        groups.setdefault(layout.group_of[node], []).extend((begin, end))
        begin = end
    if len(groups) > 1:
        borders += [_square(min(ends), max(ends), 3) for ends in groups.values()]
    return borders


def _square(begin, end, width):
    corner, opposite = begin - 0.5, end - 0.5
    return dict(
        type="rect", x0=corner, x1=opposite, y0=corner, y1=opposite,
        line=dict(color=style.TEXT, width=width),
    )  # fmt: skip


def _lay_out(figure, layout, order, title, unit):
    edge = 0.5 + len(order) / 250  # room for half of a thick line
    what, ticks, names = "rank", list(range(len(order))), [str(rank) for rank in order]
    if len(order) > _MOST_NAMED:
        what, ticks, names = "node", *_node_ticks(layout)
    shown = dict(tickvals=ticks, ticktext=names, showgrid=False, tickangle=0)
    across = f"receiver ({what})" + (f"; numbers in {unit}" if unit else "")
    figure.update_xaxes(title=across, range=[-edge, len(order) - 1 + edge], **shown)
    figure.update_yaxes(title=f"sender ({what})", range=[len(order) - 1 + edge, -edge], **shown)
    figure.update_layout(
        title=dict(text=title),
        height=max(200, min(_HIGHEST, 30 * len(order))) + 180,
        margin=dict(t=80, r=12),
        legend=dict(orientation="h", x=0, y=1, yanchor="bottom"),
    )


def _node_ticks(layout):
    """(middle of each node's ranks, its name), of at most so many nodes as have room."""
    names, begin, ticks = node_names(layout.levels), 0, []
    for node in layout.order:
        size = len(layout.ranks_of[node])
        ticks.append((begin + (size - 1) / 2, names[node]))
        begin += size
    shown = [ticks[place] for place in steps.rank_ticks(len(ticks), _MOST_NODES)]
    return [middle for middle, _ in shown], [name for _, name in shown]
