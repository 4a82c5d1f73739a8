"""Figures of a cluster's network: the bytes on each link, and which rank runs on which host.

Each link has two lanes, up on the left and down on the right, wider and warmer for more bytes; a
star marks the busiest one. The numbers in a box are the traffic up and down its link, and the
traffic through the memory of a node.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, pairwise
from math import sqrt
from typing import Any

from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError
from mpilab.hosts import links
from mpilab.hosts.description import Description
from mpilab.hosts.hostfile import Host, Hostfile, host_changes
from mpilab.hosts.links import GROUP, MEMORY, NODE, Load, busiest, loads, node_names, switch_names
from mpilab.hosts.places import Levels
from mpilab.plots import style
from mpilab.plots.schedule import ROLES
from mpilab.plots.style import Figure, Trace, block_runs, go, plotly

Roles = Mapping[int, tuple[str, str]]  # {rank: (word, color)}
Text = tuple[float, float, str]  # x, y, text

# Which rank runs on which host: a panel for each rank order.

# Opaque and of medium lightness, so that rank numbers are legible in both themes.
GROUP_COLORS = ("#9cc1ee", "#e0b05c", "#8fc9a0", "#c9a5dc", "#e0958c")
INK = "#1d2733"
COLUMN = 676  # pixels: a notebook's column of 700, less the margins
RANK, LINE = 22, 15  # pixels: the square of a rank, and a line of text
LETTER = 7.0  # pixels: width of a character in these texts, at most
_BETWEEN_GROUPS = 0.22
_BOX = 0.92  # width of a node's box, in rooms
_RANK_PITCH = RANK + 3
_MOST_ROWS = 3  # of ranks on a node; for more, only their number is shown
_NUMBER = len("↑ 1.023 MiB") * LETTER * 0.9  # the widest number of bytes; most are narrower
_LINK, _MEMORY, _EDGE = 58, 9, 5  # pixels
_WIDEST, _NARROWEST = 16, 1.5  # pixels: width of a lane
_HEAD = 1.5  # width of the widest lane's arrow head, relative to the lane
STAR = "★"
SCALE = [[0, "#3b7dd8"], [0.45, "#9b5fd0"], [1, "#d4553e"]]
LINK = "link"
_MEMORY_COLOR = "rgba(128, 132, 140, 0.8)"
UP, DOWN, INSIDE = "↑", "↓", "⇄"
TITLE = "Traffic on each link"
_ALL = "bytes on a link"
_SIDE, _TOP, _BOTTOM, _TITLE_OF_PANEL = 4, 70, 60, 46  # pixels
_STAR = 8  # pixels on either side, for a star beside the outermost boxes
_LEGEND, _SLIDER = 22, 96
_STATIC = 2  # traces that are the same in each frame


def placement(
    hostfile: Hostfile, orders: Mapping[str, Sequence[int]], title: str = "Which rank runs where"
) -> Figure:
    """Figure of hosts as columns of slots, numbered ranks, and a line from each rank to the next.

    hostfile   a mpilab.hosts.hostfile.Hostfile.
    orders     {name of an order: the host of each rank, as indices into hostfile.hosts}.

    Hosts of a group share a color. Free slots are faint. Raises InputError for no orders, or an
    index that is not a host.
    """
    hosts = hostfile.hosts
    if not orders:
        raise InputError("orders={}: nothing to draw; give e.g. {'slot': [0, 0, 1, 1]}")
    for name, places in orders.items():
        if wrong := [place for place in places if place not in range(len(hosts))]:
            raise InputError(
                f"order {name!r}: {wrong[0]!r} is not a host; {hostfile.name} has {len(hosts)}, "
                f"numbered from 0 to {len(hosts) - 1}"
            )
    figure = plotly.subplots.make_subplots(
        cols=len(orders),
        shared_yaxes=True,
        horizontal_spacing=0.05,
        subplot_titles=[
            f"{name}: {_neighbors(places, short=True)}" for name, places in orders.items()
        ],
    )
    groups = list(dict.fromkeys(host.group for host in hosts))
    highest, named = 1, set()
    for column, places in enumerate(orders.values(), start=1):
        slots = _slots_of(places)
        highest = max(highest, *(host.slots or 0 for host in hosts), *slots.values(), 1)
        for trace in _panel(hosts, places, slots, groups):
            # Each group once; the first order may leave a group empty.
            trace.update(showlegend=bool(trace.name) and trace.name not in named)
            named.add(trace.name)
            figure.add_trace(trace, row=1, col=column)
    figure.update_xaxes(
        title="host",
        tickvals=list(range(len(hosts))),
        ticktext=[host.name for host in hosts],
        range=[-0.6, len(hosts) - 0.4],
        showgrid=False,
    )
    figure.update_yaxes(range=[0.4, highest + 0.6], dtick=1, showgrid=False)
    figure.update_yaxes(title="slot", row=1, col=1)
    figure.update_layout(title=dict(text=title), height=170 + 48 * min(highest, 12))
    return style.finish(figure, _alt(title, hostfile, orders))


def _slots_of(places: Iterable[int]) -> dict[int, int]:
    """{rank: slot}: its position among the ranks on its host, from 1."""
    taken: dict[int, int] = {}
    slots = {}
    for rank, place in enumerate(places):
        slots[rank] = taken[place] = taken.get(place, 0) + 1
    return slots


def _panel(
    hosts: Sequence[Host], places: Sequence[int], slots: Mapping[int, int], groups: Sequence[str]
) -> Iterator[Trace]:
    free = [
        (place, slot)
        for place, host in enumerate(hosts)
        for slot in range(places.count(place) + 1, (host.slots or 0) + 1)
    ]
    yield _squares(free, style.FAINT, hovertemplate="free<extra></extra>")
    yield go.Scatter(
        x=places,
        y=list(slots.values()),
        mode="lines",
        line=dict(color=style.LINE, width=1.5),
        hoverinfo="skip",
    )
    for number, group in enumerate(groups):
        ranks = [rank for rank, place in enumerate(places) if hosts[place].group == group]
        yield _squares(
            [(places[rank], slots[rank]) for rank in ranks],
            GROUP_COLORS[number % len(GROUP_COLORS)],
            name=f"group {group}" if group else "",
            mode="markers+text",
            text=[str(rank) for rank in ranks],
            textfont=dict(color=INK, size=13),
            customdata=[[hosts[places[rank]].name] for rank in ranks],
            hovertemplate="rank %{text} on %{customdata[0]}, slot %{y}<extra></extra>",
        )


def _squares(points: Iterable[tuple[int, int]], color: str, **options: Any) -> Trace:
    return go.Scatter(
        x=[x for x, _ in points],
        y=[y for _, y in points],
        marker=dict(symbol="square", size=26, color=color),
        **{"mode": "markers", **options},
    )


def _neighbors(places: Sequence[int], short: bool = False) -> str:
    across, pairs = host_changes(places), len(list(pairwise(places)))
    if short:
        return f"{across} of {pairs} steps change hosts"
    return f"from rank to rank, {across} of {style.plural(pairs, 'step')} cross to another host"


def _alt(title: str, hostfile: Hostfile, orders: Mapping[str, Sequence[int]]) -> str:
    ranks = max(map(len, orders.values()))
    lines = [
        f"{title}: {style.plural(ranks, 'rank')} on {style.plural(len(hostfile.hosts), 'host')} of "
        f"{hostfile.name}, in {style.plural(len(orders), 'order')}."
    ]
    for name, places in orders.items():
        held = []
        for place, host in enumerate(hostfile.hosts):
            on_it = ", ".join(str(rank) for rank, at in enumerate(places) if at == place)
            held.append(f"{_called(host)} has {on_it or 'none'}")
        lines.append(f"{name}: {'; '.join(held)}; {_neighbors(places)}.")
    return "\n".join(lines)


def _called(host: Host) -> str:
    return f"{host.name} (group {host.group})" if host.group else host.name


# Layout of the network: a core, the switches of the groups, nodes, ranks.
#
#     ┌───────────  core  ──────────┐
#     └─────↑↓────────────────↑↓────┘      Every box is as wide as everything below it, so all
#     ┌─ switch a ─┐    ┌─ switch b ─┐     links are vertical, with the up lane on the left and the
#     └──↑↓────↑↓──┘    └──↑↓────↑↓──┘     down lane on the right.
#      ┌ n1 ┐┌ n2 ┐      ┌ n3 ┐┌ n4 ┐
#      │0  1││2  3│      │4  5││6  7│
#      └────┘└────┘      └────┘└────┘
#
# The unit of x is the width allotted to one node (its room); the unit of y is a pixel.


@dataclass(frozen=True)
class Box:
    """A box from (left, bottom) to (right, top)."""

    left: float
    right: float
    bottom: float
    top: float

    @property
    def middle(self) -> float:
        """The x of its center."""
        return (self.left + self.right) / 2


@dataclass(frozen=True)
class Layout:
    """The positions of all parts of the drawing, for ranks on `levels`."""

    levels: Levels

    # --- Across

    @cached_property
    def group_of(self) -> list[int]:
        """The group number of each node: list."""
        return [int(self.levels.group[ranks[0]]) for ranks in self.ranks_of]

    @cached_property
    def ranks_of(self) -> list[list[int]]:
        """The ranks of each node: list of lists."""
        ranks: list[list[int]] = [[] for _ in range(self.levels.nodes)]
        for rank, node in enumerate(self.levels.node.tolist()):
            ranks[node].append(rank)
        return ranks

    @cached_property
    def order(self) -> list[int]:
        """The nodes from left to right, by group and node name, regardless of their ranks."""
        names, switches = node_names(self.levels), switch_names(self.levels)

        def key(node: int) -> tuple[Any, ...]:
            group = self.group_of[node]
            return _natural(switches[group]), group, _natural(names[node])

        return sorted(range(self.levels.nodes), key=key)

    @cached_property
    def group_order(self) -> dict[int, int]:
        """The position of each group from left to right: {group: 0, 1, …}."""
        groups = dict.fromkeys(self.group_of[node] for node in self.order)
        return {group: place for place, group in enumerate(groups)}

    @cached_property
    def _rooms(self) -> dict[int, float]:
        """The left edge of each node's room: {node: left}."""
        rooms = {self.order[0]: 0.0}
        for before, node in pairwise(self.order):
            apart = self.group_of[before] != self.group_of[node]
            rooms[node] = rooms[before] + 1 + (_BETWEEN_GROUPS if apart else 0)
        return rooms

    @property
    def width(self) -> float:
        """The total width, in rooms."""
        return max(self._rooms.values()) + 1

    def pixels(self, across: float) -> float:
        """The width of `across` rooms in a notebook's column, in pixels."""
        return across * COLUMN / self.width

    # --- What fits

    @cached_property
    def has_node_numbers(self) -> bool:
        """Do numbers of bytes fit into the boxes of nodes?"""
        return self.pixels(_BOX) >= _NUMBER

    @cached_property
    def has_switch_numbers(self) -> bool:
        """Do numbers of bytes fit into the boxes of switches?"""
        narrowest = min(self.group_of.count(group) for group in set(self.group_of))
        return self.levels.groups > 1 and self.pixels(narrowest - 1 + _BOX) >= _NUMBER

    @cached_property
    def ranks_a_row(self) -> int:
        """The number of rank squares side by side on a node."""
        return max(1, min(int(self.pixels(_BOX) // _RANK_PITCH), self.levels.most_on_a_node))

    @property
    def _rank_rows(self) -> int:
        return -(-self.levels.most_on_a_node // self.ranks_a_row)

    @cached_property
    def has_ranks(self) -> bool:
        """Does a square for each rank fit?"""
        return self._rank_rows <= _MOST_ROWS and self.pixels(_BOX) >= RANK

    def fits(self, text: str, box: Box) -> bool:
        """Is the box wide enough for this text?"""
        return len(text) * LETTER <= self.pixels(box.right - box.left)

    # --- Boxes, from bottom to top

    def node(self, node: int) -> Box:
        """The Box of a node."""
        left = self._rooms[node] + (1 - _BOX) / 2
        ranks = self._rank_rows * _RANK_PITCH if self.has_ranks else LINE
        return Box(left, left + _BOX, 0, self._below_ranks + ranks + self._words_height)

    @property
    def _below_ranks(self) -> float:
        return _EDGE + _MEMORY + (LINE if self.has_node_numbers else 0) + 3

    @property
    def _words_height(self) -> float:
        """The height of a node's name and the numbers of its link."""
        return 3 + LINE + (2 * LINE if self.has_node_numbers else 0) + 3

    def switch(self, group: int) -> Box:
        """The Box of a group's switch."""
        rooms = [self._rooms[node] for node, of in enumerate(self.group_of) if of == group]
        bottom = self.node(0).top + _LINK
        height = 6 + LINE + (2 * LINE if self.has_switch_numbers else 0)
        inset = (1 - _BOX) / 2
        return Box(min(rooms) + inset, max(rooms) + 1 - inset, bottom, bottom + height)

    @property
    def core(self) -> Box | None:
        """The Box of the core; None if there is only one switch."""
        if self.levels.groups == 1:
            return None
        bottom = self.switch(0).top + _LINK
        inset = (1 - _BOX) / 2
        return Box(inset, self.width - inset, bottom, bottom + 6 + LINE)

    @property
    def height(self) -> float:
        """The total height, in pixels."""
        return (self.core or self.switch(0)).top

    # --- What is in and between the boxes

    @property
    def rank_line(self) -> float:
        """The y of the line with the number of ranks."""
        return self._below_ranks + LINE / 2

    def rank(self, node: int, number: int) -> tuple[float, float]:
        """The center (x, y) of the square of a node's rank; `number` counts from 0."""
        box = self.node(node)
        row, column = divmod(number, self.ranks_a_row)
        in_row = min(self.ranks_a_row, len(self.ranks_of[node]) - row * self.ranks_a_row)
        across = (column - (in_row - 1) / 2) * _RANK_PITCH / self.pixels(1)
        down = self._words_height + (row + 0.5) * _RANK_PITCH
        return box.middle + across, box.top - down

    def memory(self, node: int, share: float) -> Box:
        """The Box of a node's memory; `share` (0 to 1) of the largest height."""
        box = self.node(node)
        height = _NARROWEST + share * (_MEMORY - _NARROWEST)
        return Box(box.left + 0.08, box.right - 0.08, _EDGE, _EDGE + height)

    @property
    def memory_line(self) -> float:
        """The y of the line with the traffic through a node's memory."""
        return _EDGE + _MEMORY + LINE / 2

    @property
    def _widest(self) -> float:
        """The width of the widest lane, in pixels."""
        return min(_WIDEST, self.pixels(_BOX) / 4)

    def lane(self, load: Load, share: float) -> Box:
        """The Box of a link's lane in one direction, from one box to the other.

        share   of the largest width: 0 to 1.
        """
        below = self.below(load)
        wide = (_NARROWEST + share * (self._widest - _NARROWEST)) / self.pixels(1)
        middle = below.middle + self._aside(load, self._head_width(1) / 2 + 0.5)
        return Box(middle - wide / 2, middle + wide / 2, below.top, below.top + _LINK)

    def head(self, share: float) -> float:
        """The size of a lane's arrow head; a plotly triangle of size 1 is 2/√3 wide."""
        return self._head_width(share) * sqrt(3) / 2

    def _head_width(self, share: float) -> float:
        return _HEAD * self._widest * (1 + share) / 2

    def star(self, load: Load) -> tuple[float, float]:
        """The position (x, y) of a link's star, on the outer side of its lane."""
        below = self.below(load)
        outside = self._head_width(1) / 2 + self._widest / 2 + 8
        # At different heights, since there is room for only one star between two nodes.
        return (
            below.middle + self._aside(load, outside),
            below.top + _LINK * (0.35 if load.up else 0.65),
        )

    def _aside(self, load: Load, pixels: float) -> float:
        """The x offset from a link's center: to the left for the up lane, else to the right."""
        return (-pixels if load.up else pixels) / self.pixels(1)

    def below(self, load: Load) -> Box:
        """The Box at the lower end of a link."""
        return self.switch(load.number) if load.level == GROUP else self.node(load.number)


def _natural(name: str) -> list[tuple[int, str]]:
    """A sort key that puts n2 before n10."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split("([0-9]+)", name)]


# The network in words: the busiest link, and the text alternative.


def caption(found: Sequence[Load], description: Description | None, short: bool = False) -> str:
    """'busiest: switch a → core, 8 MiB in 4 messages, at least 336 ms at 200 Mbit/s'.

    If `short`, messages are omitted when there is a time.
    """
    most = busiest(found, description)
    if not most:
        return "nothing leaves a node"
    first, others = most[0], len(most) - 1
    said = [first.name, carried(first)]
    if first.rate(description) and first.bytes:
        said = [first.name, style.byte_size(first.bytes) if short else carried(first)]
        said.append(needs(first, description))
    return f"busiest: {', '.join(said)}" + (f"; {others} more like it" if others else "")


def titled(title: str, found: Sequence[Load], description: Description | None) -> dict[str, Any]:
    """The title of a figure, with the busiest link as subtitle."""
    shown = f"{STAR} {caption(found, description, short=True)}"
    return dict(text=title, x=0.01, subtitle=dict(text=shown, font=dict(size=13, color=style.TEXT)))


def text(
    title: str, layout: Layout, found: Sequence[Load], description: Description | None
) -> Iterator[str]:
    """The lines of the text alternative: the totals, the busiest link, then every link."""
    levels = layout.levels
    on = f"{style.plural(len(levels.places), 'rank')} on {levels.describe()}"
    yield f"{title}: {on}; {_totals(found)}."
    said = caption(found, description)
    yield f"{said[0].upper()}{said[1:]}."
    each: defaultdict[tuple[str, int], dict[bool, str]] = defaultdict(dict)
    for load in found:
        each[load.level, load.number][load.up] = carried(load)
    switches, nodes = switch_names(levels), node_names(levels)
    for group in layout.group_order:
        if layout.core:
            up_down = each[GROUP, group]
            yield f"{switches[group]}: {up_down[True]} up to the core, {up_down[False]} down."
        for node in (node for node in layout.order if layout.group_of[node] == group):
            up_down, inside = each[NODE, node], each[MEMORY, node][False]
            yield (
                f"{nodes[node]} ({members(layout, node)}): {up_down[True]} up to "
                f"{switches[group]}, {up_down[False]} down, {inside} inside."
            )


def _totals(found: Sequence[Load]) -> str:
    """'2 MiB in 4 messages inside nodes, 1 MiB in 2 messages between nodes, … between groups'."""
    return ", ".join(
        f"{carried(_sum(found, level))} {where}"
        for level, where in (
            (MEMORY, "inside nodes"),
            (NODE, "between nodes"),
            (GROUP, "of that between groups"),
        )
        if any(load.level == level for load in found)
    )


def _sum(found: Sequence[Load], level: str) -> Load:
    """The total traffic that leaves the nodes or groups, or stays inside, as one Load."""
    some = [load for load in found if load.level == level and (load.up or level == MEMORY)]
    messages = [load.messages for load in some if load.messages is not None]
    return Load(
        level,
        -1,
        False,
        "",
        sum(load.bytes for load in some),
        sum(messages) if len(messages) == len(some) else None,
    )


def of_round(found: Sequence[Load], description: Description | None) -> str:
    """The busiest link of a round, and all links that carry messages, in words."""
    carrying = [load for load in found if load.level != MEMORY and load.carries]
    if not carrying:
        return "nothing leaves a node."
    named = ", ".join(f"{load.name} {style.byte_size(load.bytes)}" for load in carrying)
    return f"{caption(found, description)}. Links: {named}."


def compared(runs: Mapping[str, Sequence[Load]], description: Description | None) -> str:
    """'The busiest link carries 4 MiB in SEQ, 8 MiB in RR.', from {name: loads}."""
    most = {
        name: max((load.bytes for load in busiest(found, description)), default=0)
        for name, found in runs.items()
    }
    said = ", ".join(f"{style.byte_size(size)} in {name}" for name, size in most.items())
    return f"The busiest link carries {said}."


def told(load: Load, description: Description | None = None) -> str:
    """The hover text of a link."""
    return f"{load.name}<br>{carried(load)}" + (
        f"<br>{needs(load, description)}" if load.bytes and load.rate(description) else ""
    )


def carried(load: Load) -> str:
    """'2 MiB in 4 messages', 'nothing'."""
    if not load.carries:
        return "nothing"
    if load.messages is None:
        return style.byte_size(load.bytes)
    return f"{style.byte_size(load.bytes)} in {style.plural(load.messages, 'message')}"


def needs(load: Load, description: Description | None) -> str:
    """'at least 84 ms at 200 Mbit/s', of a link with a rate."""
    rate = load.rate(description) or 0.0
    factor, unit = next((u for u in ((1e9, "G"), (1e6, "M"), (1e3, "k")) if rate >= u[0]), (1, ""))
    return (
        f"at least {style.duration(load.seconds(description))} at {rate / factor:.4g} {unit}bit/s"
    )


def members(layout: Layout, node: int) -> str:
    """'ranks 0–3'."""
    ranks = layout.ranks_of[node]
    return f"rank{'s' * (len(ranks) > 1)} {block_runs(ranks, 0)}"


# The traces of a network: boxes, links by their bytes, numbers, ranks.


def boxes(layout: Layout) -> list[Any]:
    """Two traces: the boxes of nodes, switches and the core, and their names."""
    nodes, switches = node_names(layout.levels), switch_names(layout.levels)
    named = [
        (layout.node(node), name, f"{name}: {members(layout, node)}")
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


def link_traces(
    layout: Layout,
    loads: Sequence[Load],
    most: Mapping[str, int],
    description: Description | None = None,
) -> list[Any]:
    """The traces of links and memories: lanes, arrow heads, numbers, stars.

    The bytes determine color and width; `most` is most_bytes of all loads that are compared.
    """
    lanes, heads, numbers = [], [], []
    marked = busiest(loads, description)
    for load in loads:
        said = told(load, description)
        if load.level == MEMORY:
            share = load.bytes / max(most[MEMORY], 1)
            lanes.append((layout.memory(load.number, share), _MEMORY_COLOR, said))
        else:
            share = load.bytes / max(most[LINK], 1)
            paint = (
                plotly.colors.sample_colorscale(SCALE, [share])[0] if load.carries else style.LINE
            )
            lane = layout.lane(load, share)
            if load.carries:
                size = layout.head(share)
                heads.append((lane, load.up, paint, size))
                lane = _without_head(lane, load.up, size)
            lanes.append((lane, paint, said))
        numbers += _number(layout, load)
    stars = [(*layout.star(load), STAR) for load in marked]
    return [_lanes(lanes), _heads(heads), _texts(numbers, size=11), _texts(stars, size=15)]


def most_bytes(*every: Iterable[Load]) -> dict[str, int]:
    """{LINK: the most bytes on a link, MEMORY: in a memory} in sequences of loads."""
    most = {LINK: 0, MEMORY: 0}
    for load in chain(*every):
        kind = MEMORY if load.level == MEMORY else LINK
        most[kind] = max(most[kind], load.bytes)
    return most


def ranks(layout: Layout, roles: Roles | None = None) -> list[Trace]:
    """The traces of the ranks in their nodes: numbered squares, or the number of ranks.

    roles   {rank: (word, color)} of ranks that don't have the color of their group.
    """
    if not layout.has_ranks:
        return [_crowds(layout)]
    x, y, text, fill, told = [], [], [], [], []
    for node, on_it in enumerate(layout.ranks_of):
        for number, rank in enumerate(on_it):
            place = layout.rank(node, number)
            group = layout.group_of[node]
            usual = ("", GROUP_COLORS[layout.group_order[group] % len(GROUP_COLORS)])
            word, color = (roles or {}).get(rank, usual)
            x.append(place[0])
            y.append(place[1])
            text.append(str(rank))
            fill.append(color)
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


def scale(most: Mapping[str, int], name: str) -> Trace:
    """A trace that only shows the color bar of bytes, below the figure; see `link_traces`."""
    end = most[LINK]
    parts = (0, 0.25, 0.5, 0.75, 1) if end >= 4 else (0, 1)
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(
            color=[0],
            cmin=0,
            cmax=max(end, 1),
            colorscale=SCALE,
            showscale=end > 0,
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
                tickvals=[end * part for part in parts],
                ticktext=[style.byte_size(end * part) for part in parts],
                ticks="outside",
                outlinewidth=0,
            ),
        ),
        hoverinfo="skip",
        showlegend=False,
    )


def _number(layout: Layout, load: Load) -> list[Text]:
    """[(x, y, text)] of the bytes of a link, in the box below it; [] if empty or too narrow."""
    shown = layout.has_switch_numbers if load.level == GROUP else layout.has_node_numbers
    if not (shown and load.carries):
        return []
    box = layout.below(load)
    if load.level == MEMORY:
        return [(box.middle, layout.memory_line, f"{INSIDE} {_short(load)}")]
    line = box.top - 3 - (1.5 if load.up else 2.5) * LINE
    return [(box.middle, line, f"{UP if load.up else DOWN} {_short(load)}")]


def _short(load: Load) -> str:
    """The bytes of a load, or the number of messages if they are empty."""
    return style.byte_size(load.bytes) if load.bytes else f"{load.messages}×"


def _lanes(lanes: Sequence[tuple[Box, str, str]]) -> Trace:
    return _bars(
        [lane for lane, *_ in lanes],
        color=[paint for _, paint, _ in lanes],
        line=dict(width=0),
        told=[said for *_, said in lanes],
    )


def _heads(heads: Sequence[tuple[Box, bool, str, float]]) -> Trace:
    # A plotly triangle extends half its size from its position to the tip, and a quarter back.
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


def _without_head(lane: Box, up: bool, size: float) -> Box:
    """The lane up to its arrow head."""
    height = 0.75 * size - 0.5
    if up:
        return replace(lane, top=lane.top - height)
    return replace(lane, bottom=lane.bottom + height)


def _crowds(layout: Layout) -> Trace:
    """The number of ranks on each node, if squares don't fit."""
    lines = []
    for node, on_it in enumerate(layout.ranks_of):
        box = layout.node(node)
        words = (style.plural(len(on_it), "rank"), f"{len(on_it)} ■", "")
        shown = next(each for each in words if layout.fits(each, box))
        lines.append((box.middle, layout.rank_line, shown))
    return _texts(lines, size=11)


def _shortened(layout: Layout, name: str, box: Box) -> str:
    """The name, its last word, or nothing: the first that fits into the box."""
    return next(shown for shown in (name, name.split()[-1], "") if layout.fits(shown, box))


def _bars(boxes: Sequence[Box], told: Sequence[str], **marker: Any) -> Trace:
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


def _texts(texts: Sequence[Text], size: int) -> Trace:
    return go.Scatter(
        x=[x for x, _, _ in texts],
        y=[y for _, y, _ in texts],
        mode="text",
        text=[text for *_, text in texts],
        textfont=dict(size=size),
        hoverinfo="skip",
        showlegend=False,
    )


def network(
    matrix: ArrayLike, levels: Levels, description: Description | None = None, title: str = TITLE
) -> Figure:
    """Figure of the traffic on each link.

    matrix        bytes [P, P] from row to column, or (messages, bytes) as Recording.matrix()
                  returns them, or MESSAGE records.
    levels        mpilab.hosts.places.Levels: where the ranks are.
    description   mpilab.hosts.description.Description: with it, the busiest link is the one that
                  takes the longest time at its rate.

    Raises InputError if all ranks are on one node, or the matrix doesn't fit the ranks.
    """
    layout = _layout(levels)
    found = loads(matrix, levels)
    figure = go.Figure(boxes(layout) + _alone(layout, found, description))
    _lay_out(figure, layout)
    figure.update_layout(title=titled(title, found, description))
    return style.finish(figure, "\n".join(text(title, layout, found, description)))


def by_round(
    messages: NDArray[Any],
    levels: Levels,
    description: Description | None = None,
    title: str = TITLE,
) -> Figure:
    """Figure of the links that carry messages in each round, with a slider and a play button.

    The first step shows all messages; the rounds share one scale. The color of a rank shows what it
    does in the round. Arguments as for `network`, but `messages` are MESSAGE records
    (Recording.messages).
    """
    layout = _layout(levels)
    every = [loads(messages, levels), *links.by_round(messages, levels)]
    most = most_bytes(*every[1:])
    frames = [_alone(layout, every[0], description, _roles(messages, levels))]
    for number, found in enumerate(every[1:], start=1):
        roles = _roles(messages[messages["round"] == number], levels)
        frames.append(
            [
                *_drawn(layout, found, most, description, roles),
                scale(most, f"{_ALL} in a round"),
            ]
        )
    labels = ["all", *map(str, range(1, len(every)))]
    titles = [titled(title, found, description) for found in every]
    figure = go.Figure(boxes(layout) + frames[0])
    figure.frames = [
        go.Frame(
            name=str(number),
            data=frame,
            traces=list(range(_STATIC, _STATIC + len(frame))),
            layout=go.Layout(title=shown),
        )
        for number, (frame, shown) in enumerate(zip(frames, titles, strict=True))
    ]
    for role, fill in list(ROLES.items())[1:] if layout.has_ranks else ():
        figure.add_trace(style.legend_entry(role, fill))
    _lay_out(figure, layout, above=_LEGEND, below=_SLIDER)
    figure.update_layout(
        title=titles[0],
        legend=dict(orientation="h", x=0.01, y=1, yanchor="bottom"),
        sliders=[style.slider(labels)],
        updatemenus=[style.buttons()],
    )
    lines = list(text(title, layout, every[0], description))
    for number, found in enumerate(every[1:], start=1):
        lines.append(f"Round {number}: {of_round(found, description)}")
    return style.finish(figure, "\n".join(lines))


def before_after(
    runs: Mapping[str, tuple[ArrayLike, Levels]],
    description: Description | None = None,
    title: str = TITLE,
) -> Figure:
    """Figure of several runs, one network below another, with a common color scale.

    runs   {name: (matrix, levels)}, each as for `network`.

    Raises InputError for no runs, and as `network` does.
    """
    if not runs:
        raise InputError("runs={}: nothing to draw; give e.g. {'flat': (matrix, levels)}")
    layouts = [_layout(levels) for _, levels in runs.values()]
    every = [loads(matrix, levels) for matrix, levels in runs.values()]
    most = most_bytes(*every)
    heights = [layout.height for layout in layouts]
    between = _TITLE_OF_PANEL * (len(runs) - 1)
    spacing = _TITLE_OF_PANEL / (sum(heights) + between) if between else None
    figure = plotly.subplots.make_subplots(
        rows=len(runs),
        row_heights=heights,
        vertical_spacing=spacing,
        subplot_titles=[
            f"{name}, {caption(found, description, short=True)}"
            for name, found in zip(runs, every, strict=True)
        ],
    )
    lines = [f"{title}: {style.plural(len(runs), 'run')}, {', '.join(runs)}."]
    for row, (name, layout, found) in enumerate(zip(runs, layouts, every, strict=True), start=1):
        for trace in boxes(layout) + _drawn(layout, found, most, description):
            figure.add_trace(trace, row=row, col=1)
        _axes(figure, layout, row=row, col=1)
        lines += text(name, layout, found, description)
    lines.append(compared(dict(zip(runs, every, strict=True)), description))
    figure.add_trace(scale(most, _ALL), row=1, col=1)
    figure.update_annotations(x=0.01, xanchor="left", yshift=2)
    _margins(figure, sum(heights) + between)
    figure.update_layout(title=dict(text=title, x=0.01))
    return style.finish(figure, "\n".join(lines))


def _layout(levels: Levels) -> Layout:
    if levels.nodes < 2:
        raise InputError(
            f"{len(levels.places)} ranks on one node: there is no network between them; run them "
            "on several hosts, or assign them places (Case(places=...))"
        )
    return Layout(levels)


def _drawn(
    layout: Layout,
    found: Sequence[Load],
    most: Mapping[str, int],
    description: Description | None,
    roles: Roles | None = None,
) -> list[Any]:
    """The traces that differ between runs, and between rounds."""
    return link_traces(layout, found, most, description) + ranks(layout, roles)


def _alone(
    layout: Layout,
    found: Sequence[Load],
    description: Description | None,
    roles: Roles | None = None,
) -> list[Any]:
    """The traces of `_drawn`, with their own scale."""
    most = most_bytes(found)
    return [*_drawn(layout, found, most, description, roles), scale(most, _ALL)]


def _roles(messages: NDArray[Any], levels: Levels) -> Roles:
    """{rank: (role, color)} of all ranks, by the messages of a round."""
    roles = {}
    ends = (("sends", messages["source"]), ("receives", messages["dest"]))
    for role, ranks in ends:
        for rank in set(ranks.tolist()):
            roles[rank] = role if rank not in roles else "sends and receives"
    every = ((rank, roles.get(rank, "idle")) for rank in range(len(levels.places)))
    return {rank: (role, ROLES[role]) for rank, role in every}


# --- Axes


def _lay_out(figure: Figure, layout: Layout, above: float = 0, below: float = 0) -> None:
    _axes(figure, layout)
    _margins(figure, layout.height, above, below)


def _axes(figure: Figure, layout: Layout, **where: int) -> None:
    """Set up hidden axes; the unit of y is a pixel."""
    hidden = dict(showgrid=False, showline=False, ticks="", showticklabels=False)
    room = _STAR * layout.width / COLUMN
    figure.update_xaxes(range=[-room, layout.width + room], **hidden, **where)
    figure.update_yaxes(range=[-1, layout.height + 1], fixedrange=True, **hidden, **where)


def _margins(figure: Figure, pixels: float, above: float = 0, below: float = 0) -> None:
    figure.update_layout(
        height=pixels + 2 + _TOP + above + _BOTTOM + below,
        margin=dict(l=_SIDE, r=_SIDE, t=_TOP + above, b=_BOTTOM + below),
        barmode="overlay",
        hovermode="closest",
        modebar=dict(orientation="v", remove=["select2d", "lasso2d"]),
    )
