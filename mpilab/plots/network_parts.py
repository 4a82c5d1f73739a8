"""The traces that a drawn network is made of: boxes, links by their bytes, numbers, ranks."""

from dataclasses import replace
from itertools import chain

import plotly.graph_objects as go
from plotly.colors import sample_colorscale

from mpilab.links import GROUP, MEMORY, busiest, node_names, switch_names
from mpilab.plots import network_words as words
from mpilab.plots import style
from mpilab.plots.network_layout import LINE, RANK
from mpilab.plots.placement import GROUP_COLOURS, INK

SCALE = [[0, "#3b7dd8"], [0.45, "#9b5fd0"], [1, "#d4553e"]]
LINK = "link"
_MEMORY = "rgba(128, 132, 140, 0.8)"
UP, DOWN, INSIDE = "↑", "↓", "⇄"


def boxes(layout):
    """The boxes of nodes, switches and the core: a trace, and one of their names."""
    nodes, switches = node_names(layout.levels), switch_names(layout.levels)
    named = [
        (layout.node(node), name, f"{name}: {words.members(layout, node)}")
        for node, name in enumerate(nodes)
    ]
    named += [(layout.switch(group), name, name) for group, name in enumerate(switches)]
    if layout.core:
        named.append((layout.core, "core", "core: the links between the switches"))
    return [
        _bars(
            [box for box, *_ in named],
            color=style.FAINT,
            line=dict(color=style.LINE, width=1),
            told=[told for *_, told in named],
        ),
        _texts(
            [
                (box.middle, box.top - 3 - LINE / 2, _shortened(layout, name, box))
                for box, name, _ in named
            ],
            size=12,
        ),
    ]


def links(layout, loads, most, description=None):
    """The links, coloured and widened by their bytes, and what goes through the memories: lanes,
    arrow heads, numbers, stars. `most` is what most_bytes says of all loads that are compared."""
    lanes, heads, numbers = [], [], []
    marked = busiest(loads, description)
    for load in loads:
        said = words.told(load, description)
        if load.level == MEMORY:
            share = load.bytes / max(most[MEMORY], 1)
            lanes.append((layout.memory(load.number, share), _MEMORY, said))
        else:
            share = load.bytes / max(most[LINK], 1)
            paint = sample_colorscale(SCALE, [share])[0] if load.carries else style.LINE
            lane = layout.lane(load, share)
            if load.carries:
                size = layout.head(share)
                heads.append((lane, load.up, paint, size))
                lane = _without_head(lane, load.up, size)
            lanes.append((lane, paint, said))
        numbers += _number(layout, load)
    stars = [(*layout.star(load), words.STAR) for load in marked]
    return [_lanes(lanes), _heads(heads), _texts(numbers, size=11), _texts(stars, size=15)]


def most_bytes(*every):
    """{LINK: bytes of the link that carries most, MEMORY: of the memory} in sequences of loads."""
    most = {LINK: 0, MEMORY: 0}
    for load in chain(*every):
        kind = MEMORY if load.level == MEMORY else LINK
        most[kind] = max(most[kind], load.bytes)
    return most


def ranks(layout, roles=None):
    """The ranks in their nodes: squares with numbers, or how many there are.

    roles   {rank: (word, colour)} of ranks that are not in the colour of their group.
    """
    if not layout.has_ranks:
        return [_crowds(layout)]
    x, y, text, fill, told = [], [], [], [], []
    for node, on_it in enumerate(layout.ranks_of):
        for number, rank in enumerate(on_it):
            place = layout.rank(node, number)
            group = layout.group_of[node]
            usual = ("", GROUP_COLOURS[layout.group_order[group] % len(GROUP_COLOURS)])
            word, colour = (roles or {}).get(rank, usual)
            x.append(place[0])
            y.append(place[1])
            text.append(str(rank))
            fill.append(colour)
            told.append(f"rank {rank}" + (f" {word}" if word else ""))
    return [
        go.Scatter(
            x=x,
            y=y,
            mode="markers+text",
            marker=dict(symbol="square", size=RANK, color=fill, opacity=1),
            text=text,
            textfont=dict(color=INK, size=12 if len(text) <= 100 else 10),
            hovertext=told,
            hoverinfo="text",
            showlegend=False,
        )
    ]


def scale(most, name):
    """A trace that only shows the colours of bytes, as a bar under the figure; see `links`."""
    most = most[LINK]
    parts = (0, 0.25, 0.5, 0.75, 1) if most >= 4 else (0, 1)
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(
            color=[0],
            cmin=0,
            cmax=max(most, 1),
            colorscale=SCALE,
            showscale=most > 0,
            colorbar=dict(
                orientation="h",
                thickness=10,
                len=0.6,
                x=0.5,
                xanchor="center",
                y=0,
                yanchor="top",
                ypad=14,
                title=dict(text=name, side="right", font=dict(size=12)),
                tickfont=dict(size=11),
                tickvals=[most * part for part in parts],
                ticktext=[style.byte_size(most * part) for part in parts],
                ticks="outside",
                outlinewidth=0,
            ),
        ),
        hoverinfo="skip",
        showlegend=False,
    )


def _number(layout, load):
    """[(x, y, text)] of the bytes of a link, in the box below it; [] where it carries nothing."""
    shown = layout.has_switch_numbers if load.level == GROUP else layout.has_node_numbers
    if not (shown and load.carries):
        return []
    box = layout.below(load)
    if load.level == MEMORY:
        return [(box.middle, layout.memory_line, f"{INSIDE} {_short(load)}")]
    line = box.top - 3 - (1.5 if load.up else 2.5) * LINE
    return [(box.middle, line, f"{UP if load.up else DOWN} {_short(load)}")]


def _short(load):
    """Its bytes; how many messages, where these are empty."""
    return style.byte_size(load.bytes) if load.bytes else f"{load.messages}×"


def _lanes(lanes):
    return _bars(
        [lane for lane, *_ in lanes],
        color=[paint for _, paint, _ in lanes],
        line=dict(width=0),
        told=[said for *_, said in lanes],
    )


def _heads(heads):
    # A triangle of plotly's reaches half its size from its place to its tip, and a quarter back.
    return go.Scatter(
        x=[lane.middle for lane, *_ in heads],
        y=[lane.top - size / 2 if up else lane.bottom + size / 2 for lane, up, _, size in heads],
        mode="markers",
        marker=dict(
            symbol=["triangle-up" if up else "triangle-down" for _, up, _, _ in heads],
            color=[paint for _, _, paint, _ in heads],
            size=[size for *_, size in heads],
            opacity=1,
            line=dict(width=0),
        ),
        hoverinfo="skip",
        showlegend=False,
    )


def _without_head(lane, up, size):
    """The lane as far as the arrow head."""
    height = 0.75 * size - 0.5
    if up:
        return replace(lane, top=lane.top - height)
    return replace(lane, bottom=lane.bottom + height)


def _crowds(layout):
    """How many ranks are on each node, where there is no room for each of them."""
    lines = []
    for node, on_it in enumerate(layout.ranks_of):
        box = layout.node(node)
        words = (style.plural(len(on_it), "rank"), f"{len(on_it)} ■", "")
        shown = next(each for each in words if layout.fits(each, box))
        lines.append((box.middle, layout.rank_line, shown))
    return _texts(lines, size=11)


def _shortened(layout, name, box):
    """The name if the box is wide enough for it, without its first word, or nothing."""
    return next(shown for shown in (name, name.split()[-1], "") if layout.fits(shown, box))


def _bars(boxes, told, **marker):
    return go.Bar(
        x=[box.middle for box in boxes],
        y=[box.top - box.bottom for box in boxes],
        base=[box.bottom for box in boxes],
        width=[box.right - box.left for box in boxes],
        marker=marker,
        hovertext=told,
        hoverinfo="text",
        showlegend=False,
    )


def _texts(texts, size):
    return go.Scatter(
        x=[x for x, _, _ in texts],
        y=[y for _, y, _ in texts],
        mode="text",
        text=[text for *_, text in texts],
        textfont=dict(size=size),
        hoverinfo="skip",
        showlegend=False,
    )
