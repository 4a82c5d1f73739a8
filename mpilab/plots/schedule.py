"""Figures of a schedule: round by round, as a tree or circle, and as a pipeline."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import cos, hypot, pi, sin
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms import ROOTED, counts, holdings, parts, schedule_in_segments
from mpilab.algorithms.algorithm import Schedule, Transfer
from mpilab.plots import style
from mpilab.plots.style import Figure, Trace, block_runs, go, plotly
from mpilab.util.units import plural

# (source, dest, label, hover text).
Arrow = tuple[int, int, str, str]
# (what, rank, round, first block or None, label, hover text).
Cell = tuple[str, int, int, int | None, str, str]

# The layout of the ranks: a tree or a circle.

# Deep, narrow trees are drawn sideways, since a page is wider than high. So are broad ones with
# messages both ways, since the two labels at an edge need a separate line.
_DEEP, _BROAD = 6, 8
_BOW = 0.36  # in levels
# Two trees and an exchange are clearer as a tree than on a circle.
_NEARLY_TREES = (("bcast", "split_binary"),)
# All ranks play the same role, even if two of them happen to form a tree.
_ALIKE = ("allgather", "allreduce")
MISSING, HELD, NEW = 0, 1, 2
HELD_COLOR = style.SLOT_COLORS["in its place"]
NEW_COLOR = style.SLOT_COLORS["new in this round"]
INK = "#1b1f24"  # on the light fills of cells and ranks
# Titles of the block axis.
_BLOCKS = {
    "allgather": "block (rank that owned it)",
    "gather": "block (rank that owned it)",
    "scatter": "block (rank that it is for)",
    "barrier": "ranks heard of",
}
_MOST_COLUMNS = 32  # with more, cells are too narrow for text, and not all have a tick
_MOST_TICKS = 16
# What a rank does in a round. Fills are opaque, so that lines end at a rank's edge, and light, so
# that its number is legible in both themes.
ROLES = {
    "idle": "#c4c9d1",
    "sends": style.SLOT_COLORS["new in this round"],
    "receives": style.SLOT_COLORS["in its place"],
    "sends and receives": style.SLOT_COLORS["in another place"],
}
_MOST_LABELS = 60  # with more arrows, there is no room for text
_WIDE = 8  # with more ranks side by side, there is little room for text
_BOW_POINTS = 13  # of a curved line
_TRACES = 4  # of the drawing that change between frames; the grid is one more
SENDS, RECEIVES = "sends", "receives"
# In the row of a rank, receives are above sends, each _HEIGHT high.
_OFFSET = {RECEIVES: -0.24, SENDS: 0.24}
_HEIGHT = 0.45
_MOST_LABELED = 40  # with more rounds, bars are too narrow for text
_INK = "#ffffff"


@dataclass(frozen=True)
class Layout:
    """The positions x[rank] and y[rank], and their meaning.

    kind     "tree" (root on top), "sideways" (root on the left) or "circle".
    parent   {rank: its parent in the tree}; empty on a circle.
    levels, breadth   of the tree: the number of levels, and of ranks side by side.
    """

    kind: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    parent: dict[int, int]
    levels: int
    breadth: int

    def along(self, source: int, dest: int, share: float) -> tuple[float, float]:
        """The point (x, y) at `share` (0 to 1) of the path from one rank to another.

        Paths are straight, except between two ranks on the same level of a tree: others may be
        between them.
        """
        x = self.x[source] + share * (self.x[dest] - self.x[source])
        y = self.y[source] + share * (self.y[dest] - self.y[source])
        if self.is_bowed(source, dest):
            y -= 4 * share * (1 - share) * _BOW
        return x, y

    def is_bowed(self, source: int, dest: int) -> bool:
        """Is the path between these ranks curved, to avoid the ranks between them?"""
        return self.kind == "tree" and self.y[source] == self.y[dest]


def place(schedule: Schedule) -> Layout:
    """The Layout of a Schedule: a tree if its messages follow the edges of one, else a circle."""
    parent = None if schedule.collective in _ALIKE else _parents(schedule)
    return _circle(schedule.ranks) if parent is None else _tree(schedule, parent)


def _parents(schedule: Schedule) -> dict[int, int] | None:
    """{rank: parent} of all ranks but the root; None if the schedule is not (nearly) a tree."""
    ties: dict[int, dict[int, None]] = {}
    for transfer in schedule.transfers():
        ties.setdefault(transfer.source, {})[transfer.dest] = None
        ties.setdefault(transfer.dest, {})[transfer.source] = None
    edges = sum(len(others) for others in ties.values()) // 2
    nearly = (schedule.collective, schedule.algorithm) in _NEARLY_TREES
    if edges != schedule.ranks - 1 and not nearly:
        return None
    if nearly:
        # The parent of a rank is the first one that sends to it.
        parent: dict[int, int] = {}
        for transfer in schedule.transfers():
            if transfer.dest != schedule.root:
                parent.setdefault(transfer.dest, transfer.source)
        return parent
    parent, waiting = {}, [schedule.root]
    for rank in waiting:
        below = [other for other in ties.get(rank, ()) if parent.get(rank) != other]
        parent.update((other, rank) for other in below)
        waiting += below
    return parent


def _tree(schedule: Schedule, parent: dict[int, int]) -> Layout:
    """The Layout of a tree: leaves side by side, other ranks centered above their children."""
    children: dict[int, list[int]] = {rank: [] for rank in range(schedule.ranks)}
    # In virtual rank order, so that a tree looks the same whatever its root.
    for rank in sorted(parent, key=lambda rank: (rank - schedule.root) % schedule.ranks):
        children[parent[rank]].append(rank)
    across: dict[int, float] = {}
    level, leaves = {schedule.root: 0}, 0
    order = [schedule.root]
    for rank in order:
        for child in children[rank]:
            level[child] = level[rank] + 1
        order += children[rank]

    def visit(rank: int) -> None:
        nonlocal leaves
        for child in children[rank]:
            visit(child)
        if children[rank]:
            across[rank] = (across[children[rank][0]] + across[children[rank][-1]]) / 2
        else:
            across[rank] = leaves
            leaves += 1

    visit(schedule.root)
    levels = 1 + max(level.values())
    ranks = range(schedule.ranks)
    ends = {(transfer.source, transfer.dest) for transfer in schedule.transfers()}
    both_ways = any((dest, source) in ends for source, dest in ends)
    if levels > max(_DEEP, leaves) or (leaves > _BROAD and levels == 2 and both_ways):
        deep, aside = tuple(level[r] for r in ranks), tuple(-across[r] for r in ranks)
        return Layout("sideways", deep, aside, parent, levels, leaves)
    x, y = tuple(across[r] for r in ranks), tuple(-level[r] for r in ranks)
    return Layout("tree", x, y, parent, levels, leaves)


def _circle(ranks: int) -> Layout:
    """The Layout of a circle: rank 0 on top, then clockwise."""
    angles = [2 * pi * rank / ranks for rank in range(ranks)]
    x, y = tuple(sin(angle) for angle in angles), tuple(cos(angle) for angle in angles)
    return Layout("circle", x, y, {}, 1, ranks)


# Round by round: the messages, and the blocks that each rank holds.


def rounds(schedule: Schedule) -> Figure:
    """Figure of a Schedule with a slider and a play button: step 0 is the start, then each round.

    On the left are the messages of the round, as arrows from sender to receiver, each sender with
    the blocks it sends. On the right, in the same rows, are the blocks that each rank holds after
    the round, with new ones marked. In a reduction, the number in a block is how many ranks' parts
    it contains. Meant for up to 16 ranks.
    """
    frames = [_step(schedule, number) for number in range(len(schedule.rounds) + 1)]
    titles = [title(schedule, number) for number in range(len(frames))]
    figure = style.stepped(frames, titles, schedule.ranks, "blocks held after it")
    add_grid_words(figure, schedule, column=2)
    return style.finish(figure, text(schedule))


def add_grid_words(figure: Figure, schedule: Schedule, column: int) -> None:
    """Add the legend and the axis of `grid`, in that column of subplots."""
    held = "held"
    if schedule.owners == ():
        held = "several ranks' parts" if schedule.blocks else "number of ranks heard of"
    for name, fill in ((held, HELD_COLOR), ("new in this round", NEW_COLOR)):
        figure.add_trace(style.legend_entry(name, fill), row=1, col=column)
    apart = -(-schedule.blocks // _MOST_TICKS) if schedule.blocks > _MOST_COLUMNS else 1
    ticks = list(range(0, schedule.blocks, apart)) if schedule.blocks > 1 else []
    figure.update_xaxes(
        title="the message" if schedule.blocks == 1 else _BLOCKS.get(schedule.collective, "block"),
        tickvals=ticks,
        ticktext=[schedule.name(block) for block in ticks],
        row=1,
        col=column,
    )


def _step(schedule: Schedule, number: int) -> list[Any]:
    """The three traces of one step: arrows, what the senders send, the grid of blocks."""
    transfers = schedule.rounds[number - 1] if number else ()
    messages = [
        (transfer.source, transfer.dest, hover(schedule, transfer)) for transfer in transfers
    ]
    return [
        style.arrows(messages, schedule.ranks, style.color(schedule.algorithm)),
        _sent(schedule, transfers),
        grid(schedule, number),
    ]


def hover(schedule: Schedule, transfer: Transfer) -> str:
    """The hover text of a message."""
    return f"rank {transfer.source} → rank {transfer.dest}" + (
        f": {said(schedule, transfer.blocks)}" if transfer.blocks else ", empty"
    )


def said(schedule: Schedule, blocks: Sequence[int]) -> str:
    """The blocks of a message in words, in the order sent: '0–3', 'all', 'go 2'."""
    if schedule.names is not None:
        return ", ".join(schedule.name(block) for block in blocks)
    return block_runs(blocks, schedule.blocks) if blocks else ""


def _sent(schedule: Schedule, transfers: Iterable[Transfer]) -> Trace:
    """Texts at the senders' ends of the arrows: what each sends, once for each set of blocks."""
    by_source: dict[int, dict[tuple[int, ...], None]] = {}
    for transfer in transfers:
        by_source.setdefault(transfer.source, {})[transfer.blocks] = None
    return style.said_by_senders(
        {
            source: "; ".join(said(schedule, blocks) for blocks in sets)
            for source, sets in by_source.items()
        }
    )


def grid(schedule: Schedule, number: int, since: int | None = None) -> Trace:
    """Heat map of the blocks (columns) that each rank (rows) has after round `number`.

    It marks those that are new since round `since` (by default, the one before). In a reduction, it
    shows how many ranks' parts are in each block that a rank has; in a barrier, how many ranks,
    itself included, it knows to have entered.
    """
    since = max(0, number - 1) if since is None else since
    if schedule.owners == ():
        has = _has(schedule)
        state = (has[number] > 1).astype(int) + (has[number] > has[since])
        shown = [[str(n) if n > 1 else "" for n in row] for row in has[number].tolist()]
        words = _part_words(schedule, has[number], has[since])
    else:
        held = _has(schedule)
        state = held[number].astype(int) + (held[number] & ~held[since])
        shown = [["●" if cell == NEW else "" for cell in row] for row in state]
        named = {MISSING: "missing", HELD: "held", NEW: "new in this round"}
        words = [[named[cell] for cell in row] for row in state.tolist()]
    is_wide = len(state[0]) > _MOST_COLUMNS
    return go.Heatmap(
        z=state,
        zmin=MISSING,
        zmax=NEW,
        colorscale=[
            [0, style.FAINT],
            [1 / 3, style.FAINT],
            [1 / 3, HELD_COLOR],
            [2 / 3, HELD_COLOR],
            [2 / 3, NEW_COLOR],
            [1, NEW_COLOR],
        ],
        xgap=2,
        ygap=2,
        text=None if is_wide else shown,
        texttemplate=None if is_wide else "%{text}",
        textfont=dict(color=INK),
        # Megabytes of text would add nothing to the color.
        customdata=None if is_wide else words,
        hovertemplate="rank %{y}"
        + (", block %{x}" if schedule.blocks else "")
        + ("" if is_wide else ": %{customdata}")
        + "<extra></extra>",
        showscale=False,
    )


@lru_cache(maxsize=2)
def _has(schedule: Schedule) -> NDArray[Any]:
    """What ranks have, by round, rank and block; cached, since every frame of a figure uses it."""
    has = parts(schedule).sum(axis=3) if schedule.owners == () else holdings(schedule)
    has.setflags(write=False)
    return has


def _part_words(schedule: Schedule, has: NDArray[Any], before: NDArray[Any]) -> list[list[str]]:
    what = "parts of" if schedule.blocks else "heard of"
    return [
        [
            f"{what} {plural(now, 'rank')}" + (f", {now - then} new" if now > then else "")
            for now, then in zip(row, row_before, strict=True)
        ]
        for row, row_before in zip(has.tolist(), before.tolist(), strict=True)
    ]


def name(schedule: Schedule) -> str:
    """'bcast binomial, P = 8, root 2': the schedule in a title."""
    collective = "" if schedule.collective == "allgather" else f"{schedule.collective} "
    root = f", root {schedule.root}" if schedule.collective in ROOTED else ""
    return f"{collective}{schedule.algorithm}, P = {schedule.ranks}{root}"


def title(schedule: Schedule, number: int) -> str:
    """The title of a figure at the start (0), or in round `number`."""
    if number == 0:
        return f"{name(schedule)}: start"
    return (
        f"{name(schedule)}: round {number} of {len(schedule.rounds)}, "
        f"{plural(len(schedule.rounds[number - 1]), 'message')}"
    )


def text(schedule: Schedule) -> str:
    """The text alternative of a schedule: all messages and the progress, by round."""
    sizes = {"block_bytes": 1} if schedule.sizes is None else {}
    added = counts(schedule, **sizes)
    volume = (
        f"{plural(sum(len(t.blocks) for t in schedule.transfers()), 'block')} sent in all"
        if schedule.blocks
        else "all of them empty"
    )
    root = f" with root {schedule.root}" if schedule.collective in ROOTED else ""
    lines = [
        f"Schedule of {schedule.collective} {schedule.algorithm} on "
        f"{plural(schedule.ranks, 'rank')}{root}: {plural(added.rounds, 'round')}, "
        f"{plural(added.messages, 'message')}, {volume}.",
        _start(schedule),
    ]
    after = _progress(schedule)
    for number, transfers in enumerate(schedule.rounds, start=1):
        by_blocks: dict[tuple[int, tuple[int, ...]], list[int]] = {}
        for transfer in transfers:
            by_blocks.setdefault((transfer.source, transfer.blocks), []).append(transfer.dest)
        sends = "; ".join(
            f"rank {source} sends {f'{said(schedule, blocks)} ' if blocks else ''}to "
            f"rank{'s' * (len(dests) > 1)} {block_runs(sorted(dests), 0)}"
            for (source, blocks), dests in by_blocks.items()
        )
        lines.append(f"Round {number}: {sends}. Then {after[number]}.")
    return "\n".join(lines)


def _start(schedule: Schedule) -> str:
    return {
        "bcast": f"At the start rank {schedule.root} holds {_blocks(schedule)}.",
        "scatter": f"At the start rank {schedule.root} holds {_blocks(schedule)}.",
        "reduce": f"At the start each rank has its own part of {_blocks(schedule)}.",
        "allreduce": f"At the start each rank has its own part of {_blocks(schedule)}.",
        "barrier": "At the start each rank knows only of itself.",
    }.get(schedule.collective, "At the start each rank holds its own block.")


def _blocks(schedule: Schedule) -> str:
    return "the only block" if schedule.blocks == 1 else f"all {schedule.blocks} blocks"


def _progress(schedule: Schedule) -> list[str]:
    """The progress of the collective after each round, in words."""
    ranks, collective = schedule.ranks, schedule.collective
    if schedule.owners == ():
        has = parts(schedule)
        if collective == "reduce":
            taken = has[:, schedule.root].sum(axis=2).min(axis=1)
            return [f"rank {schedule.root} has at least {n} of {ranks} parts" for n in taken]
        done = has.all(axis=(2, 3)).sum(axis=1)
        what = "have heard of all" if collective == "barrier" else "have the whole result"
        return [f"{n} of {ranks} ranks {what}" for n in done]
    held = holdings(schedule)
    if collective == "gather":
        at_root = held[:, schedule.root]
        owners = np.array(schedule.owners if schedule.owners is not None else range(ranks))
        of = [np.flatnonzero(owners == rank) for rank in range(ranks)]
        own = np.sum([at_root[:, blocks].all(axis=1) for blocks in of], axis=0)
        return [f"rank {schedule.root} holds {n} of {ranks} blocks" for n in own]
    if collective == "scatter":
        own = held[:, range(ranks), range(ranks)].sum(axis=1)
        return [f"{n} of {ranks} ranks hold their block" for n in own]
    complete = held.all(axis=2).sum(axis=1)
    return [f"{n} of {ranks} ranks hold every block" for n in complete]


# A schedule as a tree or a circle, with numbered arrows.


def tree(
    collective: str,
    algorithm: str,
    ranks: int,
    *,
    root: int = 0,
    segments: int = 1,
    fanout: int = 0,
    radix: int = 0,
) -> Figure:
    """Figure of one of the kit's algorithms on `ranks` ranks, the message in `segments` segments.

    See `drawing`; arguments and errors as for mpilab.algorithms.schedule_in_segments.
    """
    return drawing(
        schedule_in_segments(
            collective, algorithm, ranks, segments, root=root, fanout=fanout, radix=radix
        )
    )


def drawing(schedule: Schedule) -> Figure:
    """Figure of a Schedule with a slider and a play button. Meant for up to 16 ranks.

    On the left are the ranks, as a tree if the messages follow one, else on a circle. The first
    step shows all arrows, each with the numbers of the rounds that use it. Then come the start and
    each round, with the arrows of that round, what they carry, and what each rank does. On the
    right are the blocks that each rank has by then.
    """
    layout = place(schedule)
    last = len(schedule.rounds)
    frames = [_overview(schedule, layout)]
    frames += [_round(schedule, layout, number) for number in range(last + 1)]
    titles = [f"{name(schedule)}: arrows numbered by round"]
    titles += [title(schedule, number) for number in range(last + 1)]
    columns = max(1, schedule.blocks)
    share = min(0.42, max(0.16, 0.1 + 0.03 * columns))
    figure = plotly.subplots.make_subplots(
        cols=2,
        horizontal_spacing=0.09,
        column_widths=[1 - share, share],
        subplot_titles=["who sends to whom", "what each rank has"],
    )
    for trace in frames[0][:_TRACES]:
        figure.add_trace(trace, row=1, col=1)
    figure.add_trace(frames[0][_TRACES], row=1, col=2)
    figure.frames = [
        go.Frame(
            name=str(number),
            data=frame,
            traces=list(range(_TRACES + 1)),
            layout=go.Layout(title=dict(text=title)),
        )
        for number, (frame, title) in enumerate(zip(frames, titles, strict=True))
    ]
    for role, fill in list(ROLES.items())[1:]:
        figure.add_trace(
            style.legend_entry(role, fill, symbol=None, line=dict(color=style.TEXT, width=1)),
            row=1,
            col=1,
        )
    add_grid_words(figure, schedule, column=2)
    _lay_out(figure, schedule, layout, titles[0])
    return style.finish(figure, _alt(schedule, layout))


def _overview(schedule: Schedule, layout: Layout) -> list[Any]:
    """All arrows, with the rounds in which each is used, and the grid at the end."""
    used: dict[tuple[int, int], list[int]] = {}
    for number, transfers in enumerate(schedule.rounds, start=1):
        for transfer in transfers:
            used.setdefault((transfer.source, transfer.dest), []).append(number)
    arrows = [
        (
            *ends,
            block_runs(numbers, 0),
            f"rank {ends[0]} → rank {ends[1]}: round{'s' * (len(numbers) > 1)} "
            f"{block_runs(numbers, 0)}",
        )
        for ends, numbers in used.items()
    ]
    return [
        *_drawn(schedule, layout, arrows),
        _nodes(schedule, layout, {}),
        grid(schedule, len(schedule.rounds), since=len(schedule.rounds)),
    ]


def _round(schedule: Schedule, layout: Layout, number: int) -> list[Any]:
    transfers = schedule.rounds[number - 1] if number else ()
    tells_blocks = schedule.blocks > 1
    together: dict[tuple[int, int], list[Transfer]] = {}
    for transfer in transfers:
        together.setdefault((transfer.source, transfer.dest), []).append(transfer)
    arrows = [
        (
            *ends,
            "; ".join(said(schedule, one.blocks) for one in sent) if tells_blocks else "",
            "<br>".join(hover(schedule, one) for one in sent),
        )
        for ends, sent in together.items()
    ]
    roles: dict[int, str] = {}
    for source, dest in together:
        for rank, role in ((source, "sends"), (dest, "receives")):
            roles[rank] = role if roles.get(rank, role) == role else "sends and receives"
    return [
        *_drawn(schedule, layout, arrows),
        _nodes(schedule, layout, roles),
        grid(schedule, number),
    ]


def _drawn(schedule: Schedule, layout: Layout, arrows: Sequence[Arrow]) -> list[Any]:
    """Three traces: faint lines for all messages, the arrows, and their labels.

    Each of `arrows` is (source, dest, label, hover text).
    """
    lines = dict.fromkeys(
        (min(t.source, t.dest), max(t.source, t.dest)) for t in schedule.transfers()
    )
    color = style.color(schedule.algorithm)
    crowded = len(arrows) > 3 * schedule.ranks
    faint_x, faint_y, _ = _paths(layout, lines)
    x, y, is_head = _paths(layout, [ends[:2] for ends in arrows])
    faint = go.Scatter(
        x=faint_x,
        y=faint_y,
        mode="lines",
        line=dict(color=style.GRID, width=1.5),
        hoverinfo="skip",
        showlegend=False,
    )
    heads = go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line=dict(
            color=style.translucent(color, 0.35) if crowded else color,
            width=1.2 if crowded else 2,
        ),
        marker=dict(
            symbol="arrow",
            angleref="previous",
            color=color,
            size=[11 * head for head in is_head],
            standoff=[(_node_size(schedule) / 2 + 1) * head for head in is_head],
            opacity=1,
            line=dict(width=0),
        ),
        hoverinfo="skip",
        showlegend=False,
    )
    return [faint, heads, _labels(layout, arrows)]


def _paths(
    layout: Layout, ends: Iterable[tuple[int, int]]
) -> tuple[list[float | None], list[float | None], list[bool]]:
    """x, y and is_head of the points of paths between ranks, with a gap after each path."""
    x: list[float | None] = []
    y: list[float | None] = []
    is_head = []
    for source, dest in ends:
        points = _BOW_POINTS if layout.is_bowed(source, dest) else 2
        for number in range(points):
            place = layout.along(source, dest, number / (points - 1))
            x.append(place[0])
            y.append(place[1])
            is_head.append(number == points - 1)
        x.append(None)
        y.append(None)
        is_head.append(False)
    return x, y, is_head


def _labels(layout: Layout, arrows: Sequence[Arrow]) -> Trace:
    """The labels of the arrows, and the points that show the hover text."""
    ends = {ends[:2] for ends in arrows}
    x, y, texts, positions = [], [], [], []
    for number, (source, dest, label, _) in enumerate(arrows):
        both_ways = (dest, source) in ends
        place, position = _label_place(layout, source, dest, both_ways, number)
        if both_ways and label and layout.parent.get(dest) == source:
            label = f"↓ {label}" if layout.kind == "tree" else f"→ {label}"
        elif both_ways and label and layout.parent.get(source) == dest:
            label = f"↑ {label}" if layout.kind == "tree" else f"← {label}"
        x.append(place[0])
        y.append(place[1])
        texts.append(label)
        positions.append(position)
    shown = len(arrows) <= _MOST_LABELS
    return go.Scatter(
        x=x,
        y=y,
        mode="markers+text" if shown else "markers",
        text=texts,
        textposition=positions or "middle center",
        textfont=dict(size=12),
        # Invisible markers for the hover text, which a line shows only at its ends.
        marker=dict(size=10, opacity=0),
        hovertext=[told for *_, told in arrows],
        hoverinfo="text",
        showlegend=False,
    )


def _label_place(
    layout: Layout, source: int, dest: int, both_ways: bool, number: int
) -> tuple[tuple[float, float], str]:
    """((x, y), text position) of a label, clear of its arrow and the nearest labels."""
    if layout.kind == "circle":
        # On the left of the arrow, so that two arrows between the same ranks each have their own
        # side.
        x, y = layout.along(source, dest, 0.25 if both_ways else 0.5)
        across, up = layout.x[dest] - layout.x[source], layout.y[dest] - layout.y[source]
        length = hypot(across, up)
        return (x - 0.11 * up / length, y + 0.11 * across / length), "middle center"
    is_down = layout.parent.get(dest) == source
    if layout.kind == "sideways" and both_ways:
        leaf = dest if is_down else source
        return (layout.x[leaf] + (0.12 if is_down else 0.32), layout.y[leaf]), "middle right"
    if layout.kind == "sideways":
        return layout.along(source, dest, 0.5), "top center"
    if layout.is_bowed(source, dest):
        return layout.along(source, dest, 0.35 if both_ways else 0.5), "bottom center"
    # With many ranks side by side, there is room only near the leaves, at alternating heights.
    share = 0.5 if layout.breadth <= _WIDE else (0.6, 0.8)[number % 2]
    place = layout.along(source, dest, share if is_down else 1 - share)
    across, up = layout.x[dest] - layout.x[source], layout.y[dest] - layout.y[source]
    side = "left" if across * up > 0 else "right"
    if both_ways:
        return place, f"{'top' if is_down else 'bottom'} {side}"
    return place, f"middle {side}"


def _nodes(schedule: Schedule, layout: Layout, roles: Mapping[int, str]) -> Trace:
    doing = [roles.get(rank, "idle") for rank in range(schedule.ranks)]
    return go.Scatter(
        x=layout.x,
        y=layout.y,
        mode="markers+text",
        marker=dict(
            size=_node_size(schedule),
            color=[ROLES[role] for role in doing],
            line=dict(color=style.TEXT, width=1),
            opacity=1,
        ),
        text=[str(rank) for rank in range(schedule.ranks)],
        textfont=dict(color=INK, size=13 if schedule.ranks <= 16 else 10),
        hovertext=[f"rank {rank}: {role}" for rank, role in enumerate(doing)],
        hoverinfo="text",
        showlegend=False,
    )


def _node_size(schedule: Schedule) -> int:
    return 30 if schedule.ranks <= 10 else 24 if schedule.ranks <= 16 else 17


def _lay_out(figure: Figure, schedule: Schedule, layout: Layout, title: str) -> None:
    ranks = schedule.ranks
    labels = ["all", "start", *map(str, range(1, len(schedule.rounds) + 1))]
    lines = {"tree": 64 * layout.levels, "sideways": 30 * layout.breadth, "circle": 340}
    height = max(430, 250 + lines[layout.kind], 250 + min(26, max(11, 704 // ranks)) * ranks)
    figure.update_layout(
        title=dict(text=title),
        height=height,
        margin=dict(t=110, b=140),
        # On a separate line below the title.
        legend=dict(orientation="h", x=0, y=1 - 40 / height, yref="container", yanchor="top"),
        modebar=dict(orientation="v", remove=["select2d", "lasso2d"]),
        sliders=[style.slider(labels)],
        updatemenus=[style.buttons()],
    )
    figure.update_xaxes(showgrid=False, showline=False, ticks="", fixedrange=True)
    figure.update_yaxes(showgrid=False, showline=False, ticks="", fixedrange=True)
    room = 0.25 if layout.kind == "circle" else 0.6  # in units or levels
    figure.update_xaxes(range=_range(layout.x, room), showticklabels=False, row=1, col=1)
    figure.update_yaxes(range=_range(layout.y, room), showticklabels=False, row=1, col=1)
    if layout.kind == "circle":
        figure.update_yaxes(scaleanchor="x", row=1, col=1)
    figure.update_yaxes(
        title="rank", tickvals=style.rank_ticks(ranks), range=[ranks - 0.5, -0.5], row=1, col=2
    )


def _range(places: Sequence[float], room: float) -> list[float]:
    """From the smallest to the largest, with room for what is drawn at the edge."""
    return [min(places) - room, max(places) + room]


def _alt(schedule: Schedule, layout: Layout) -> str:
    """The text alternative of the drawing: that of the schedule, with a line about the layout."""
    stand = {
        "tree": f"Drawn as a tree of depth {layout.levels - 1} below rank {schedule.root}.",
        "sideways": f"Drawn as a tree of depth {layout.levels - 1} from rank {schedule.root}.",
        "circle": "Drawn as a circle of ranks.",
    }[layout.kind]
    first, *others = text(schedule).splitlines()
    return "\n".join([first, stand, *others])


# Pipelines: ranks by rounds, with the blocks or segments that each sends and receives.


def pipeline(schedule: Schedule) -> Figure:
    """Figure of a Schedule: a row for each rank, a column for each round.

    The upper half of a cell is what the rank receives in that round; the lower half is what it
    sends, and to how many ranks if there are several. The color is that of the (first) block. The
    figure shows how a pipeline fills and drains, and which rank waits for which.
    """
    cells = _cells(schedule)
    figure = go.Figure()
    for what in (RECEIVES, SENDS):
        figure.add_trace(_bars(schedule, what, [cell for cell in cells if cell[0] == what]))
    ranks, last = schedule.ranks, len(schedule.rounds)
    figure.update_layout(
        title=dict(text=f"{name(schedule)}: who sends when"),
        height=max(300, 150 + 42 * ranks),
        margin=dict(t=80),
        barmode="overlay",
        bargap=0,
        legend=dict(orientation="h", x=0, y=1.01, yanchor="bottom", traceorder="normal"),
        modebar=dict(remove=["select2d", "lasso2d"]),
        # Lines between ranks, to show which two bars belong to the same rank.
        shapes=[
            dict(
                type="line",
                xref="paper",
                x0=0,
                x1=1,
                y0=rank - 0.5,
                y1=rank - 0.5,
                line=dict(color=style.GRID, width=1),
            )
            for rank in range(1, ranks)
        ],
    )
    figure.update_xaxes(
        title="round",
        range=[0.45, max(last, 4) + 0.55],
        tickvals=list(range(1, last + 1, -(-last // 32) or 1)),
        showgrid=False,
    )
    figure.update_yaxes(
        title="rank",
        range=[ranks - 0.5, -0.5],
        tickvals=list(range(ranks)),
        showgrid=False,
    )
    return style.finish(figure, _pipeline_alt(schedule, cells))


def _cells(schedule: Schedule) -> list[Cell]:
    """(what, rank, round, first block or None, label, hover text) of all cells."""
    cells = []
    for number, transfers in enumerate(schedule.rounds, start=1):
        sent: dict[int, list[Transfer]] = {}
        received: dict[int, list[Transfer]] = {}
        for transfer in transfers:
            sent.setdefault(transfer.source, []).append(transfer)
            received.setdefault(transfer.dest, []).append(transfer)
        for what, by_rank in ((RECEIVES, received), (SENDS, sent)):
            for rank, messages in sorted(by_rank.items()):
                cells.append((what, rank, number, *_words(schedule, what, messages)))
    return cells


def _words(
    schedule: Schedule, what: str, messages: Sequence[Transfer]
) -> tuple[int | None, str, str]:
    contents: dict[tuple[int, ...], list[int]] = {}
    for message in messages:
        other = message.dest if what == SENDS else message.source
        contents.setdefault(message.blocks, []).append(other)
    labels = [_label(schedule, blocks, len(others)) for blocks, others in contents.items()]
    told = [
        f"{said(schedule, blocks) or 'an empty message'} "
        f"{'to' if what == SENDS else 'from'} {style.block_runs(others, 0)}"
        for blocks, others in contents.items()
    ]
    first = next(iter(contents))
    return (first[0] if first else None), ", ".join(labels), f"{what} {'; '.join(told)}"


def _label(schedule: Schedule, blocks: Sequence[int], messages: int) -> str:
    words = said(schedule, blocks) if schedule.blocks > 1 else ""
    return f"{words} ×{messages}".strip() if messages > 1 else words


def _bars(schedule: Schedule, what: str, cells: Sequence[Cell]) -> Trace:
    labeled = len(schedule.rounds) <= _MOST_LABELED
    fills = [_fill(schedule, block) for *_, block, _, _ in cells]
    return go.Bar(
        orientation="h",
        base=[number - 0.46 for _, _, number, *_ in cells],
        x=[0.92] * len(cells),
        y=[rank + _OFFSET[what] for _, rank, *_ in cells],
        width=_HEIGHT,
        marker=dict(
            color=[style.translucent(fill, 0.25) for fill in fills] if what == RECEIVES else fills,
            line=dict(color=fills, width=1.5),
        ),
        text=[label for *_, label, _ in cells] if labeled else None,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont=dict(size=11, color=fills if what == RECEIVES else _INK),
        constraintext="inside",
        hovertext=[f"round {number}: rank {rank} {told}" for _, rank, number, *_, told in cells],
        hoverinfo="text",
        name=f"{what} ({'above' if what == RECEIVES else 'below'})",
    )


def _fill(schedule: Schedule, block: int | None) -> str:
    """The color of a block: from cold to warm in block order, so that few blocks look alike."""
    if block is None or schedule.blocks == 1:
        return style.color(schedule.algorithm)
    place = block * (len(style.ORDER_COLORS) - 1) / (schedule.blocks - 1)
    return _between(style.ORDER_COLORS, place)


def _between(colors: Sequence[str], place: float) -> str:
    """The color at `place` (0 to len(colors) - 1) in a sequence of colors."""
    low = min(int(place), len(colors) - 2)
    share = place - low
    pairs = zip(_channels(colors[low]), _channels(colors[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)


def _channels(color: str) -> list[int]:
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


def _pipeline_alt(schedule: Schedule, cells: Sequence[Cell]) -> str:
    first = f"Who sends when in {name(schedule)}: {plural(len(schedule.rounds), 'round')}."
    lines = [first]
    for rank in range(schedule.ranks):
        busy: dict[str, list[int]] = {what: [] for what in (SENDS, RECEIVES)}
        for what, who, number, *_ in cells:
            if who == rank:
                busy[what].append(number)
        told = [
            f"{what} in round{'s' * (len(numbers) > 1)} {style.block_runs(numbers, 0)}"
            for what, numbers in busy.items()
            if numbers
        ]
        lines.append(f"Rank {rank} {', '.join(told) or 'neither sends nor receives'}.")
    return "\n".join(lines)
