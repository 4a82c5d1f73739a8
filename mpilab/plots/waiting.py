"""Wait-for graph: the ranks on a circle, with arrows from each to the ranks it waits for."""

import math
from collections.abc import Iterable, Sequence
from html import escape

import plotly.graph_objects as go

from mpilab.plots import style
from mpilab.runners.hang import BLOCKED, COMPUTING, FINISHED, NOT_BEGUN, POLLING, RankState

# (x, y).
Point = tuple[float, float]
Places = dict[int, Point]  # of each rank

TITLE = "Wait-for graph"
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


def waiting(
    states: Sequence[RankState], cycle: Sequence[int] = (), title: str = TITLE
) -> go.Figure:
    """Figure of which ranks wait for which, from the RankStates of all ranks (mpilab.runners.hang).

    An arrow leads from a rank to each rank in its `waits_for`; `cycle` is emphasized. Hover over a
    rank for its call, peer, tag, bytes and line. Meant for up to 64 ranks.
    """
    known = {state.rank: state for state in states}
    places = _places(list(known))
    round_trip = set(zip(cycle, (*cycle[1:], *cycle[:1]), strict=True))
    edges = [(s.rank, peer) for s in states for peer in s.waits_for if peer in known]
    radius = _radius(len(known))
    figure = go.Figure()
    for name, color, width, chosen in (
        ("waits for", ARROW, 1.6, [edge for edge in edges if edge not in round_trip]),
        ("the cycle", CYCLE, 3, [edge for edge in edges if edge in round_trip]),
    ):
        if chosen:
            if len(chosen) > MANY_ARROWS:
                # Many arrows must not hide the ranks.
                width, color = 0.8, style.translucent(color, 0.35)
            figure.add_trace(_arrows(name, chosen, places, radius, color, width))
    for look, (color, symbol, opacity) in LOOKS.items():
        ranks = [state for state in states if state.state == look]
        if ranks:
            figure.add_trace(_ranks(look, ranks, places, color, symbol, opacity))
    _lay_out(figure, title, len(known))
    return style.finish(figure, _alt(title, states, cycle))


def _places(ranks: Sequence[int]) -> Places:
    """{rank: (x, y)}: clockwise on a circle of radius 1, the first at the top."""
    turn = 2 * math.pi / max(len(ranks), 1)
    return {
        rank: (math.sin(number * turn), math.cos(number * turn))
        for number, rank in enumerate(ranks)
    }


def _height(count: int) -> int:
    """The height of the drawing, in pixels."""
    return 360 if count <= 16 else 560


def _radius(count: int) -> float:
    """The radius of a rank's marker, in radii of the circle."""
    return min(0.16, 2.1 / max(count, 1))


def _size(count: int) -> float:
    """The diameter of a rank's marker, in pixels."""
    return 0.95 * 2 * _radius(count) * _height(count) / (2 * EDGE)


def _arrows(
    name: str,
    edges: Iterable[tuple[int, int]],
    places: Places,
    radius: float,
    color: str,
    width: float,
) -> go.Scatter:
    head = min(6 + 2.5 * width, 0.6 * _size(len(places)))
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


def _ranks(
    name: str, states: Sequence[RankState], places: Places, color: str, symbol: str, opacity: float
) -> go.Scatter:
    size = _size(len(places))
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


def _lay_out(figure: go.Figure, title: str, count: int) -> None:
    axis = dict(visible=False, range=[-EDGE, EDGE], fixedrange=True)
    figure.update_layout(
        title=dict(text=title),
        height=_height(count) + 60,
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


def _alt(title: str, states: Sequence[RankState], cycle: Sequence[int]) -> str:
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
