"""Figures of failed runs: the wait-for graph, wrong blocks, and the space-time diagram.

The wait-for graph has the ranks on a circle, with arrows from each to the ranks it waits for. Wrong
blocks are a grid: a row for each rank, a column for each block of its buffer.

The space-time diagram of the MPI calls of each rank, and of the messages between them, is SVG. It
shows logical steps instead of time, so it shows the order of events and does not depend on the
speed of the machine: a call comes after the previous call of its rank, and a call that needs a
message ends at least one step after the message was sent (logical clocks: Lamport, "Time, clocks,
and the ordering of events in a distributed system", 1978).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError
from mpilab.plots import style, timeline
from mpilab.plots.style import CALL_COLORS, LOST_MESSAGE_COLOR, MESSAGE_COLOR, Figure, Trace, go
from mpilab.plots.timeline import KINDS, Ranks, calls_of
from mpilab.runners.hang import BLOCKED, COMPUTING, FINISHED, NOT_BEGUN, POLLING, RankState
from mpilab.trace.recording import COLLECTIVE, NONE, call_of, messages_of
from mpilab.util.units import plural

# For the wait-for graph.

# (x, y).
Point = tuple[float, float]
Places = dict[int, Point]  # of each rank

GRAPH_TITLE = "Wait-for graph"
ARROW, CYCLE = (
    style.ALGORITHM_COLORS["pairwise"],
    style.ALGORITHM_COLORS["nonblocking_gather_bcast"],
)
# {state: (color, symbol, opacity)}; faint for ranks that have finished or not begun.
LOOKS = {
    BLOCKED: ("#b03a28", "circle", 1.0),
    POLLING: ("#8f5a0a", "hexagon", 1.0),
    COMPUTING: ("#2b68b8", "square", 1.0),
    FINISHED: ("#7a7e85", "circle", 0.12),
    NOT_BEGUN: ("#7a7e85", "diamond", 0.12),
}
# How far an arrow bends from the straight line, relative to its length, so that two ranks that wait
# for each other have two arrows, side by side.
BEND = 0.13
MANY_ARROWS = 100
# Half the width of the drawing, in radii of the circle.
EDGE = 1.3

# For wrong blocks.

RIGHT, WRONG, UNTOUCHED, ELSEWHERE, ABSENT = range(5)
BLOCK_STATES = ("right", "wrong", "never written", "another rank's block", "no receive buffer")
BLOCK_SYMBOLS = ("✓", "✗", "○", "2", "")
# Opaque, so that plotly can choose a legible color for the symbol in a cell.
BLOCK_COLORS = ("#a9d3b6", "#b8372a", "#b9bec6", "#e8a443", "#f1f2f4")
BLOCKS_TITLE, TITLE_OF_ELEMENTS = "Blocks of the receive buffers", "Elements of the receive buffers"
# With more cells, check marks in the correct ones would hide the other symbols.
TICKED = 256
SENTENCES_A_RANK = 24

# For the space-time diagram.

# (sending call, call that completes the receive or None, destination), calls as indices.
Link = tuple[int, int | None, int]

MOST_RANKS, MOST_CALLS = 16, 160
CALLS_IN_TEXT = 40
_LEFT, _TOP, _ROW, _BAR, _LEGEND = 70, 14, 34, 18, 26
_WIDTH, _WIDEST_STEP, _NARROWEST_STEP = 760, 150, 9
_LETTER = 7.2  # pixels, on average


# The wait-for graph.


def wait_for_graph(
    states: Sequence[RankState], cycle: Sequence[int] = (), title: str = GRAPH_TITLE
) -> Figure:
    """Figure of which ranks wait for which, from the RankStates of all ranks (mpilab.runners.hang).

    An arrow leads from a rank to each rank in its `waits_for`; `cycle` is emphasized. Hover over a
    rank for its call, peer, tag, bytes and line. Meant for up to 64 ranks.
    """
    known = {state.rank: state for state in states}
    places = _places(list(known))
    round_trip = set(zip(cycle, (*cycle[1:], *cycle[:1]), strict=True))
    edges = [(s.rank, peer) for s in states for peer in s.waits_for if peer in known]
    radius = _marker_radius(len(known))
    figure = go.Figure()
    for name, color, width, chosen in (
        ("waits for", ARROW, 1.6, [edge for edge in edges if edge not in round_trip]),
        ("the cycle", CYCLE, 3, [edge for edge in edges if edge in round_trip]),
    ):
        if chosen:
            if len(chosen) > MANY_ARROWS:
                # Many arrows must not hide the ranks.
                width, color = 0.8, style.translucent(color, 0.35)
            figure.add_trace(_graph_arrows(name, chosen, places, radius, color, width))
    for look, (color, symbol, opacity) in LOOKS.items():
        ranks = [state for state in states if state.state == look]
        if ranks:
            figure.add_trace(_graph_ranks(look, ranks, places, color, symbol, opacity))
    _lay_out_graph(figure, title, len(known))
    return style.finish(figure, _graph_alt(title, states, cycle))


def _places(ranks: Sequence[int]) -> Places:
    """{rank: (x, y)}: clockwise on a circle of radius 1, the first at the top."""
    turn = 2 * math.pi / max(len(ranks), 1)
    return {
        rank: (math.sin(number * turn), math.cos(number * turn))
        for number, rank in enumerate(ranks)
    }


def _graph_height(count: int) -> int:
    """The height of the drawing, in pixels."""
    return 360 if count <= 16 else 560


def _marker_radius(count: int) -> float:
    """The radius of a rank's marker, in radii of the circle."""
    return min(0.16, 2.1 / max(count, 1))


def _marker_size(count: int) -> float:
    """The diameter of a rank's marker, in pixels."""
    return 0.95 * 2 * _marker_radius(count) * _graph_height(count) / (2 * EDGE)


def _graph_arrows(
    name: str,
    edges: Iterable[tuple[int, int]],
    places: Places,
    radius: float,
    color: str,
    width: float,
) -> Trace:
    head = min(6 + 2.5 * width, 0.6 * _marker_size(len(places)))
    x, y = [], []
    for source, dest in edges:
        path = _path(places[source], places[dest], radius)
        x += [*(point[0] for point in path), None]
        y += [*(point[1] for point in path), None]
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines+markers",
        line=dict(color=color, width=width),
        # Only the last point of each line, before the gap, has an arrow head.
        marker=dict(
            symbol="arrow",
            angleref="previous",
            color=color,
            size=[
                head if number + 1 < len(x) and x[number + 1] is None else 0
                for number in range(len(x))
            ],
            opacity=1,
            line=dict(width=0),
        ),
        hoverinfo="skip",
    )


def _path(start: Point, end: Point, radius: float) -> list[Point]:
    """Points of an arrow from border to border of two markers; a loop if they are the same."""
    if start == end:
        x, y = start
        angle = math.atan2(y, x)
        center = (x + 1.5 * radius * math.cos(angle), y + 1.5 * radius * math.sin(angle))
        turns = [angle + math.pi * (1.3 + 1.4 * k / 12) for k in range(13)]
        return [(center[0] + radius * math.cos(t), center[1] + radius * math.sin(t)) for t in turns]
    across = (end[0] - start[0], end[1] - start[1])
    middle = (
        (start[0] + end[0]) / 2 - BEND * across[1],
        (start[1] + end[1]) / 2 + BEND * across[0],
    )
    first, last = _toward(start, middle, radius), _toward(end, middle, 1.15 * radius)
    return [
        (_bezier(t, first[0], middle[0], last[0]), _bezier(t, first[1], middle[1], last[1]))
        for t in (k / 10 for k in range(11))
    ]


def _bezier(t: float, first: float, middle: float, last: float) -> float:
    return (1 - t) ** 2 * first + 2 * t * (1 - t) * middle + t * t * last


def _toward(point: Point, target: Point, distance: float) -> Point:
    """The point at `distance` from `point` in the direction of `target`."""
    (x, y), length = point, math.dist(point, target)
    return x + (target[0] - x) * distance / length, y + (target[1] - y) * distance / length


def _graph_ranks(
    name: str, states: Sequence[RankState], places: Places, color: str, symbol: str, opacity: float
) -> Trace:
    size = _marker_size(len(places))
    return go.Scatter(
        x=[places[state.rank][0] for state in states],
        y=[places[state.rank][1] for state in states],
        name=name,
        mode="markers+text",
        marker=dict(
            symbol=symbol,
            size=size,
            color=style.translucent(color, opacity),
            line=dict(width=1.5, color=color),
        ),
        text=[str(state.rank) for state in states],
        textfont=dict(
            size=max(9, min(16, size * 0.45)), color="#ffffff" if opacity == 1 else style.TEXT
        ),
        hovertext=[_hover(state) for state in states],
        hoverinfo="text",
    )


def _hover(state: RankState) -> str:
    words = escape(state.describe())
    if state.state in (BLOCKED, POLLING) and state.since_s:
        words += f"<br>for {style.duration(state.since_s)}"
    return words


def _lay_out_graph(figure: Figure, title: str, count: int) -> None:
    axis = dict(visible=False, range=[-EDGE, EDGE], fixedrange=True)
    figure.update_layout(
        title=dict(text=title),
        height=_graph_height(count) + 60,
        margin=dict(l=10, r=10, t=50, b=10),
        xaxis=axis,
        # Equal scales in x and y, so that the circle stays round.
        yaxis=dict(**axis, scaleanchor="x"),
        legend=dict(x=1, xanchor="right", y=1, yanchor="top", itemsizing="constant"),
        modebar=dict(
            remove=[
                "select2d",
                "lasso2d",
                "zoom2d",
                "pan2d",
                "zoomIn2d",
                "zoomOut2d",
                "autoScale2d",
                "resetScale2d",
            ]
        ),
    )


def _graph_alt(title: str, states: Sequence[RankState], cycle: Sequence[int]) -> str:
    finished = [str(state.rank) for state in states if state.state == FINISHED]
    stuck = [state for state in states if state.state != FINISHED]
    first = f"{title}: {len(stuck)} of {len(states)} ranks have not finished"
    if cycle:
        first += f"; cycle {' → '.join(map(str, (*cycle, cycle[0])))}"
    lines = [first + "."]
    lines += [_sentence(state) for state in stuck]
    if finished:
        lines.append(f"Finished: {', '.join(finished)}.")
    return "\n".join(lines)


def _sentence(state: RankState) -> str:
    words = state.describe()
    if state.waits_for:
        words += f"; it waits for {', '.join(map(str, state.waits_for))}"
    return f"{words[:1].upper()}{words[1:]}."


# Wrong blocks.


def blocks(
    grid: ArrayLike,
    source: ArrayLike | None = None,
    details: Mapping[tuple[int, int], str] | None = None,
    columns: Sequence[str] | None = None,
    title: str | None = None,
) -> Figure:
    """Figure of a wrong result: a row for each rank, a column for each block of its buffer.

    grid     int [ranks, columns]: RIGHT, WRONG, UNTOUCHED (never written), ELSEWHERE (it holds
             another rank's block) or ABSENT (the rank has no receive buffer).
    source   int [ranks, columns]: for ELSEWHERE, the rank whose block is there.
    details  {(rank, column): words}, e.g. 'expected 5, got 7', for cells that are not right.
    columns  if a buffer is one block: names of the elements in each column, e.g. '0 to 15'.

    Up to 64 x 64 stays readable. Raises InputError for mismatched shapes or invalid codes.
    """
    grid = np.asarray(grid)
    if grid.ndim != 2 or not np.isin(grid, range(len(BLOCK_STATES))).all():
        raise InputError(
            f"grid of shape {grid.shape}: give a code of 0 to {len(BLOCK_STATES) - 1} a rank and "
            "block."
        )
    source = np.full(grid.shape, -1) if source is None else np.asarray(source)
    if source.shape != grid.shape:
        raise InputError(f"source of shape {source.shape} does not fit a grid of {grid.shape}.")
    if columns is not None and len(columns) != grid.shape[1]:
        raise InputError(f"{len(columns)} columns named for a grid of shape {grid.shape}.")
    title = title or (BLOCKS_TITLE if columns is None else TITLE_OF_ELEMENTS)
    shown = _Shown(grid, source, details or {}, columns)
    figure = go.Figure(_cells(shown))
    for code in np.unique(grid):
        figure.add_trace(_legend_entry(int(code)))
    _lay_out_blocks(figure, title, columns, *grid.shape)
    return style.finish(figure, _blocks_alt(title, shown))


class _Shown(NamedTuple):
    """What the figure shows, and its wording."""

    grid: NDArray[np.int64]
    source: NDArray[np.int64]
    details: Mapping[tuple[int, int], str]
    columns: Sequence[str] | None

    def place(self, column: int) -> str:
        """'block 2', 'element 7', 'elements 8 to 15'."""
        if self.columns is None:
            return f"block {column}"
        name = self.columns[column]
        return f"element{'s' * (not name.isdigit())} {name}"

    def words(self, rank: int, column: int) -> str:
        """'rank 1, block 2: wrong; expected 5, got 7'."""
        state = _block_state(self.grid[rank, column], self.source[rank, column])
        words = f"rank {rank}, {self.place(column)}: {state}"
        said = self.details.get((rank, column))
        return f"{words}; {said}" if said else words


def _cells(shown: _Shown) -> Trace:
    grid, source = shown.grid, shown.source
    steps = [
        (code + end) / len(BLOCK_STATES) for code in range(len(BLOCK_STATES)) for end in (0, 1)
    ]
    return go.Heatmap(
        z=grid.tolist(),
        zmin=-0.5,
        zmax=len(BLOCK_STATES) - 0.5,
        colorscale=list(zip(steps, np.repeat(BLOCK_COLORS, 2).tolist(), strict=True)),
        xgap=1,
        ygap=1,
        text=[
            [_symbol(code, whose, grid.size) for code, whose in zip(codes, owners, strict=True)]
            for codes, owners in zip(grid.tolist(), source.tolist(), strict=True)
        ],
        texttemplate="%{text}",
        textfont=dict(size=14 if max(grid.shape) <= 16 else 11 if max(grid.shape) <= 32 else 9),
        hovertext=[
            [
                escape(shown.words(rank, block)).replace("; ", "<br>")
                for block in range(grid.shape[1])
            ]
            for rank in range(grid.shape[0])
        ],
        hoverinfo="text",
        showscale=False,
    )


def _symbol(code: int, whose: int, cells: int) -> str:
    if code == RIGHT and cells > TICKED:
        return ""
    return str(whose) if code == ELSEWHERE and whose >= 0 else BLOCK_SYMBOLS[code]


def _block_state(code: int, whose: int) -> str:
    return f"rank {whose}'s block" if code == ELSEWHERE and whose >= 0 else BLOCK_STATES[code]


def _legend_entry(code: int) -> Trace:
    said = "(whose: the number)" if code == ELSEWHERE else BLOCK_SYMBOLS[code]
    return style.legend_entry(f"{BLOCK_STATES[code]} {said}".rstrip(), BLOCK_COLORS[code])


def _lay_out_blocks(
    figure: Figure, title: str, names: Sequence[str] | None, ranks: int, columns: int
) -> None:
    def ticks(count: int) -> list[int]:
        return list(range(0, count, max(1, -(-count // 16))))

    # A few blocks would fill the page width: keep them about twice as wide as they are high.
    cell = 30 if ranks <= 16 else 15
    figure.update_layout(
        title=dict(text=title),
        height=max(310, 180 + cell * ranks),
        margin=dict(t=90),
        legend=dict(orientation="h", x=0, xanchor="left", y=1.02, yanchor="bottom"),
        modebar=dict(remove=["select2d", "lasso2d"]),
    )
    named = {} if names is None else dict(ticktext=[names[column] for column in ticks(columns)])
    figure.update_xaxes(
        title="block (rank that it comes from)" if names is None else "elements of the buffer",
        tickvals=ticks(columns),
        **named,
        range=[-0.5, max(columns, 8 if columns <= 8 else columns) - 0.5],
        showgrid=False,
        showline=False,
    )
    figure.update_yaxes(
        title="rank that holds it",
        tickvals=ticks(ranks),
        range=[ranks - 0.5, -0.5],
        showgrid=False,
        showline=False,
    )


def _blocks_alt(title: str, shown: _Shown) -> str:
    grid, details = shown.grid, shown.details
    wrong = (grid != RIGHT) & (grid != ABSENT)
    counts = [
        f"{int((grid == code).sum())} {BLOCK_STATES[code]}"
        for code in (WRONG, UNTOUCHED, ELSEWHERE)
        if (grid == code).any()
    ]
    there = int((grid != ABSENT).sum())
    what = "blocks" if shown.columns is None else "places"
    lines = [
        f"{title}: {int(wrong.sum())} of {there} {what} on "
        f"{int((grid != ABSENT).any(axis=1).sum())} ranks are wrong"
        + (f" ({', '.join(counts)})." if counts else ".")
    ]
    for rank in range(grid.shape[0]):
        told = [
            f"{shown.place(block)}: {_block_state(grid[rank, block], shown.source[rank, block])}"
            + (f" ({details[rank, block]})" if details.get((rank, block)) else "")
            for block in np.flatnonzero(wrong[rank]).tolist()
        ]
        if len(told) > SENTENCES_A_RANK:
            told[SENTENCES_A_RANK:] = [f"and {len(told) - SENTENCES_A_RANK} more"]
        if told:
            lines.append(f"Rank {rank}: {'; '.join(told)}.")
    return "\n".join(lines)


# The space-time diagram.


def space_time_diagram(ranks: Ranks) -> tuple[str, str]:
    """(SVG, text alternative) of a list with a RankRecording or None for each rank.

    If there is too much to draw, the SVG is empty and the text says so. If there are no calls, both
    are empty.
    """
    calls = calls_of(ranks)
    if len(calls) == 0:
        return "", ""
    if len(calls) > MOST_CALLS or len(ranks) > MOST_RANKS:
        return "", f"Not drawn: more than {MOST_RANKS} ranks, or more than {MOST_CALLS} calls."
    links = _links(ranks, calls)
    begins, ends = _steps(calls, links, _collective_calls(ranks, calls))
    return _diagram(ranks, calls, links, begins, ends), _diagram_alt(ranks, calls, links)


def _links(ranks: Ranks, calls: NDArray[Any]) -> list[Link]:
    """[(sending call, call that completes the receive or None, destination)] of all messages.

    Calls are indices into `calls`.
    """
    places = {(int(call["rank"]), int(call["record"])): i for i, call in enumerate(calls)}

    def call_at(rank: int, record: int) -> int | None:
        # The second record of a send-receive belongs to the call of the first.
        return places.get((rank, record), places.get((rank, record - 1)))

    links = []
    for message in messages_of(ranks):
        dest, record, taker = int(message["dest"]), int(message["receive_record"]), None
        if record != NONE:
            receiver = ranks[dest]
            assert receiver is not None  # its record says so
            waiter = int(receiver.records["waiter"][record])
            taker = call_at(dest, waiter if waiter >= 0 else record)
        sender = call_at(int(message["source"]), int(message["send_record"]))
        if sender is not None and dest < len(ranks):
            links.append((sender, taker, dest))
    return links


def _collective_calls(ranks: Ranks, calls: NDArray[Any]) -> list[list[int]]:
    """The calls of each collective, as lists of indices."""
    met = defaultdict(list)
    for i, call in enumerate(calls):
        record = ranks[call["rank"]].records[call["record"]]
        if record["flags"] & COLLECTIVE and record["communicator"]:
            met[int(record["communicator"]), int(record["sequence"])].append(i)
    return list(met.values())


def _steps(
    calls: NDArray[Any], links: Sequence[Link], collectives: Sequence[list[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(first, last) step of each call: two int arrays, counted from 0.

    A call that never returned lasts until the last step.
    """
    needs = defaultdict(list)
    for sender, taker, _ in links:
        if taker is not None:
            needs[taker].append(sender)
    for met in collectives:
        for i in met:
            needs[i] += met
    begins, ends = np.zeros(len(calls), int), np.ones(len(calls), int)
    follows = np.concatenate(([False], calls["rank"][1:] == calls["rank"][:-1]))
    # A dependency chain is no longer than the number of calls, unless a recording is forged.
    for _ in range(len(calls) + 1):
        before = ends.copy()
        for i in range(len(calls)):
            begins[i] = ends[i - 1] if follows[i] else 0
            ends[i] = 1 + max((begins[i], *(begins[j] for j in needs[i])))
        if (ends == before).all():
            break
    ends[calls["kind"] == timeline.BLOCKED] = ends.max() + 1
    return begins, ends


def _diagram(
    ranks: Ranks,
    calls: NDArray[Any],
    links: Sequence[Link],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> str:
    width = min(max(_WIDTH / max(int(ends.max()), 1), _NARROWEST_STEP), _WIDEST_STEP)
    across, down = _LEFT + width * int(ends.max()) + 20, _TOP + _ROW * len(ranks) + _LEGEND

    def x(step: int) -> float:
        return _LEFT + width * step

    def y(rank: int) -> float:
        return _TOP + _ROW * rank + _ROW / 2

    parts = []
    for number, recorded in enumerate(ranks):
        name = f"rank {number}" if recorded is not None else f"rank {number} –"
        parts.append(f'<text x="8" y="{y(number) + 4:.0f}">{name}</text>')
        parts.append(f'<path d="M{_LEFT} {y(number):.0f}H{across - 10:.0f}" class="line"/>')
    for call, begin, end in zip(calls, begins, ends, strict=True):
        kind, rank = KINDS[call["kind"]], int(call["rank"])
        left, wide = x(begin) + 1, max(x(end) - x(begin) - 2, 3)
        name = _call_in_words(ranks, call)
        parts.append(
            f'<rect x="{left:.1f}" y="{y(rank) - _BAR / 2:.1f}" width="{wide:.1f}" '
            f'height="{_BAR}" rx="2" fill="{CALL_COLORS[kind]}">'
            f"<title>{escape(name)}</title></rect>"
        )
        shown = f"✗ {name}" if call["kind"] == timeline.BLOCKED else name.removeprefix("MPI_")
        if _LETTER * len(shown) + 10 < wide:
            parts.append(
                f'<text x="{left + 5:.1f}" y="{y(rank) + 4:.1f}" class="in">{escape(shown)}</text>'
            )
    for sender, taker, dest in links:
        start = (x(begins[sender]) + 5, y(int(calls["rank"][sender])))
        end = None if taker is None else (x(ends[taker]) - 4, y(dest))
        parts.append(_diagram_arrow(start, end, y(dest)))
    parts += _diagram_legend(calls, links, down)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across:.0f} {down}" '
        f'width="{across:.0f}" height="{down}"><style>text{{font:12px sans-serif;fill:#1f2933}}'
        ".in{fill:#fff}.line{stroke:#c3c8d0}.arrow{fill:none;stroke-width:1.4}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )


def _diagram_arrow(
    start: tuple[float, float], end: tuple[float, float] | None, toward: float
) -> str:
    """A message from its send to the end of the call that received it; a lost one ends early."""
    left, top = start
    color = LOST_MESSAGE_COLOR if end is None else MESSAGE_COLOR
    right, bottom = end or (left + 14, top + (toward - top) * 0.4)
    tip = 7 if bottom > top else -7
    return (
        f'<path class="arrow" stroke="{color}" '
        f'd="M{left:.1f} {top:.1f}L{right:.1f} {bottom:.1f}"/>'
        f'<path fill="{color}" d="M{right:.1f} {bottom:.1f}l-4 {-tip}l8 0z"/>'
    )


def _diagram_legend(calls: NDArray[Any], links: Sequence[Link], down: float) -> Iterator[str]:
    at, square = _LEFT, '<rect x="{}" y="{}" width="10" height="10" fill="{}"/>'
    line = '<path d="M{} {}l10 8" class="arrow" stroke="{}"/>'
    entries = [
        (KINDS[kind], square, CALL_COLORS[KINDS[kind]])
        for kind in sorted(set(calls["kind"].tolist()))
    ]
    if any(taker is None for _, taker, _ in links):
        entries.append(("message never received", line, LOST_MESSAGE_COLOR))
    for word, mark, color in entries:
        yield mark.format(at, down - 18, color)
        yield f'<text x="{at + 14}" y="{down - 9}">{escape(word)}</text>'
        at += 30 + round(6.6 * len(word))


def _call_in_words(ranks: Ranks, call: np.void) -> str:
    """A short description of a call: 'MPI_Send to 2'."""
    told = call_of(ranks[call["rank"]], int(call["rank"]), int(call["record"]))
    if told.peer < 0 or told.collective or not (told.sends or told.receives):
        return told.name
    return f"{told.name} {'to' if told.sends else 'from'} {told.peer}"


def _diagram_alt(ranks: Ranks, calls: NDArray[Any], links: Sequence[Link]) -> str:
    said = []
    for number, rank in enumerate(ranks):
        own = calls[calls["rank"] == number]
        names = [
            _call_in_words(ranks, call)
            + (" (never returned)" if call["kind"] == timeline.BLOCKED else "")
            for call in own[:CALLS_IN_TEXT]
        ]
        if len(own) > CALLS_IN_TEXT:
            names.append(f"and {len(own) - CALLS_IN_TEXT} more")
        what = ", ".join(names) if names else "no call" if rank is not None else "never started"
        said.append(f"Rank {number}: {what}.")
    lost = sum(taker is None for _, taker, _ in links)
    if lost:
        said.append(f"{plural(lost, 'message').capitalize()} never received.")
    return " ".join(said)
