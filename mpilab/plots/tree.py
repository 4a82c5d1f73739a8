"""A schedule as a drawing of who sends to whom: a tree, or a circle, with numbered arrows."""

from math import hypot

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.plots import layouts, steps, style
from mpilab.plots import rounds as by_rounds
from mpilab.plots.steps import block_runs
from mpilab.schedules import schedule_in_segments

# What a rank does in a round. The fills are opaque, so that lines end at a rank's rim, and light,
# so that its number is legible in both themes.
ROLES = {
    "idle": "#c4c9d1",
    "sends": style.SLOT_COLOURS["new in this round"],
    "receives": style.SLOT_COLOURS["in its place"],
    "sends and receives": style.SLOT_COLOURS["in another place"],
}
_MOST_LABELS = 60  # more than so many arrows have no room for words
_WIDE = 8  # more ranks side by side leave little room for words
_BOW_POINTS = 13  # that a bowed line is drawn through
_TRACES = 4  # that change from frame to frame in the drawing; the grid is one more


def tree(collective, algorithm, ranks, *, root=0, segments=1, fanout=0, radix=0):
    """Figure of an algorithm of ours on `ranks` ranks, with the message in `segments` segments.

    See `drawing`; arguments and errors as for mpilab.schedules.schedule_in_segments.
    """
    return drawing(
        schedule_in_segments(
            collective, algorithm, ranks, segments, root=root, fanout=fanout, radix=radix
        )
    )


def drawing(schedule):
    """Figure of a Schedule with a slider and a play button. Meant for up to 16 ranks.

    On the left the ranks, a parent above its children where the messages go along a tree, else on
    a circle. It opens with all arrows, each with the numbers of the rounds in which something goes
    along it; then come the start and each round, with the arrows of that round, what they carry,
    and what each rank does. On the right which blocks each rank has by then.
    """
    layout = layouts.place(schedule)
    last = len(schedule.rounds)
    frames = [_overview(schedule, layout)]
    frames += [_round(schedule, layout, number) for number in range(last + 1)]
    titles = [f"{by_rounds.name(schedule)}: arrows numbered by round"]
    titles += [by_rounds.title(schedule, number) for number in range(last + 1)]
    columns = max(1, schedule.blocks)
    share = min(0.42, max(0.16, 0.1 + 0.03 * columns))
    figure = make_subplots(
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
        figure.add_trace(_legend_entry(role, fill), row=1, col=1)
    by_rounds.add_grid_words(figure, schedule, column=2)
    _lay_out(figure, schedule, layout, titles[0])
    return style.finish(figure, _alt(schedule, layout))


def _overview(schedule, layout):
    """All arrows, with the rounds in which each is used, and the grid at the end."""
    used = {}
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
        by_rounds.grid(schedule, len(schedule.rounds), since=len(schedule.rounds)),
    ]


def _round(schedule, layout, number):
    transfers = schedule.rounds[number - 1] if number else ()
    tells_blocks = schedule.blocks > 1
    together = {}
    for transfer in transfers:
        together.setdefault((transfer.source, transfer.dest), []).append(transfer)
    arrows = [
        (
            *ends,
            "; ".join(by_rounds.said(schedule, one.blocks) for one in sent) if tells_blocks else "",
            "<br>".join(by_rounds.hover(schedule, one) for one in sent),
        )
        for ends, sent in together.items()
    ]
    roles = {}
    for source, dest in together:
        for rank, role in ((source, "sends"), (dest, "receives")):
            roles[rank] = role if roles.get(rank, role) == role else "sends and receives"
    return [
        *_drawn(schedule, layout, arrows),
        _nodes(schedule, layout, roles),
        by_rounds.grid(schedule, number),
    ]


def _drawn(schedule, layout, arrows):
    """The faint lines of all messages, the arrows, and their labels; each of `arrows` is (source,
    dest, label, what the pointer tells)."""
    lines = {tuple(sorted((t.source, t.dest))): None for t in schedule.transfers()}
    colour = style.colour(schedule.algorithm)
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
            color=style.translucent(colour, 0.35) if crowded else colour,
            width=1.2 if crowded else 2,
        ),
        marker=dict(
            symbol="arrow",
            angleref="previous",
            color=colour,
            size=[11 * head for head in is_head],
            standoff=[(_node_size(schedule) / 2 + 1) * head for head in is_head],
            opacity=1,
            line=dict(width=0),
        ),
        hoverinfo="skip",
        showlegend=False,
    )
    return [faint, heads, _labels(layout, arrows)]


def _paths(layout, ends):
    """x, y and is-it-the-head of the points of ways between ranks, with a gap after each way."""
    x, y, is_head = [], [], []
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


def _labels(layout, arrows):
    """What stands at the arrows, and the places at which the pointer finds it."""
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
        # Something to point at: a line itself answers at its ends only.
        marker=dict(size=10, opacity=0),
        hovertext=[told for *_, told in arrows],
        hoverinfo="text",
        showlegend=False,
    )


def _label_place(layout, source, dest, both_ways, number):
    """((x, y), text position) of a label, so that it keeps off its arrow and the next labels."""
    if layout.kind == "circle":
        # On its left-hand side, so that two arrows between the same ranks have one each.
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
    # Where many ranks are side by side, there is room near the leaves only, and only by turns.
    share = 0.5 if layout.breadth <= _WIDE else (0.6, 0.8)[number % 2]
    place = layout.along(source, dest, share if is_down else 1 - share)
    across, up = layout.x[dest] - layout.x[source], layout.y[dest] - layout.y[source]
    side = "left" if across * up > 0 else "right"
    if both_ways:
        return place, f"{'top' if is_down else 'bottom'} {side}"
    return place, f"middle {side}"


def _nodes(schedule, layout, roles):
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
        textfont=dict(color=by_rounds.INK, size=13 if schedule.ranks <= 16 else 10),
        hovertext=[f"rank {rank}: {role}" for rank, role in enumerate(doing)],
        hoverinfo="text",
        showlegend=False,
    )


def _node_size(schedule):
    return 30 if schedule.ranks <= 10 else 24 if schedule.ranks <= 16 else 17


def _legend_entry(role, fill):
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(size=14, color=fill, line=dict(color=style.TEXT, width=1)),
        name=role,
        hoverinfo="skip",
    )


def _lay_out(figure, schedule, layout, title):
    ranks = schedule.ranks
    labels = ["all", "start", *map(str, range(1, len(schedule.rounds) + 1))]
    lines = {"tree": 64 * layout.levels, "sideways": 30 * layout.breadth, "circle": 340}
    height = max(430, 250 + lines[layout.kind], 250 + min(26, max(11, 704 // ranks)) * ranks)
    figure.update_layout(
        title=dict(text=title),
        height=height,
        margin=dict(t=110, b=140),
        # On a line of its own under the title.
        legend=dict(orientation="h", x=0, y=1 - 40 / height, yref="container", yanchor="top"),
        modebar=dict(orientation="v", remove=["select2d", "lasso2d"]),
        sliders=[steps.slider(labels)],
        updatemenus=[steps.buttons()],
    )
    figure.update_xaxes(showgrid=False, showline=False, ticks="", fixedrange=True)
    figure.update_yaxes(showgrid=False, showline=False, ticks="", fixedrange=True)
    room = 0.25 if layout.kind == "circle" else 0.6  # of a unit or a level
    figure.update_xaxes(range=_range(layout.x, room), showticklabels=False, row=1, col=1)
    figure.update_yaxes(range=_range(layout.y, room), showticklabels=False, row=1, col=1)
    if layout.kind == "circle":
        figure.update_yaxes(scaleanchor="x", row=1, col=1)
    figure.update_yaxes(
        title="rank", tickvals=steps.rank_ticks(ranks), range=[ranks - 0.5, -0.5], row=1, col=2
    )


def _range(places, room):
    """From the least to the largest, with room for what stands at the rim."""
    return [min(places) - room, max(places) + room]


def _alt(schedule, layout):
    """What the drawing shows, in front of the text of all rounds."""
    stand = {
        "tree": f"Drawn as a tree of depth {layout.levels - 1} below rank {schedule.root}.",
        "sideways": f"Drawn as a tree of depth {layout.levels - 1} from rank {schedule.root} on.",
        "circle": "Drawn as a circle of ranks.",
    }[layout.kind]
    first, *others = by_rounds.text(schedule).splitlines()
    return "\n".join([first, stand, *others])
