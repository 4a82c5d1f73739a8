"""Who talks over which link: the network of a cluster as a drawing, with the bytes of each link.

Each link has two lanes, up at the left and down at the right, the wider and the warmer the more
bytes they carry; the busiest one has a star. Numbers in a box are what goes up and down its link,
and what stays in the memory of a node.
"""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab import links
from mpilab.errors import InputError
from mpilab.links import loads
from mpilab.plots import network_parts as parts
from mpilab.plots import network_words as words
from mpilab.plots import steps, style
from mpilab.plots.network_layout import COLUMN, Layout
from mpilab.plots.tree import ROLES

TITLE = "Who talks over which link"
_ALL = "bytes on a link"
_SIDE, _TOP, _BOTTOM, _TITLE_OF_PANEL = 4, 70, 60, 46  # pixels
_STAR = 8  # pixels at either side for a star beside the outermost boxes
_LEGEND, _SLIDER = 22, 96
_STATIC = 2  # traces that are the same in each frame


def network(matrix, levels, description=None, title=TITLE):
    """Figure of what each link carries.

    matrix        bytes [P, P] from row to column, or (messages, bytes) as Recording.matrix() has
                  them, or MESSAGE records.
    levels        mpilab.places.Levels: where the ranks are.
    description   mpilab.descriptions.Description: with it, the busiest link is the one that needs
                  the longest time at its rate.

    Raises InputError where the ranks are on one node, or the matrix is not of those ranks.
    """
    layout = _layout(levels)
    found = loads(matrix, levels)
    figure = go.Figure(parts.boxes(layout) + _alone(layout, found, description))
    _lay_out(figure, layout)
    figure.update_layout(title=words.titled(title, found, description))
    return style.finish(figure, "\n".join(words.text(title, layout, found, description)))


def by_round(messages, levels, description=None, title=TITLE):
    """Figure of the links that carry messages in each round, with a slider and a play button.

    It opens with all messages together, each round then has a scale in common with the others; a
    rank has a colour for what it does in the round. Arguments as for `network`, but `messages` are
    MESSAGE records (Recording.messages).
    """
    layout = _layout(levels)
    every = [loads(messages, levels), *links.by_round(messages, levels)]
    most = parts.most_bytes(*every[1:])
    frames = [_alone(layout, every[0], description, _roles(messages, levels))]
    for number, found in enumerate(every[1:], start=1):
        roles = _roles(messages[messages["round"] == number], levels)
        frames.append(
            [
                *_drawn(layout, found, most, description, roles),
                parts.scale(most, f"{_ALL} in a round"),
            ]
        )
    labels = ["all", *map(str, range(1, len(every)))]
    titles = [words.titled(title, found, description) for found in every]
    figure = go.Figure(parts.boxes(layout) + frames[0])
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
        figure.add_trace(steps.legend_entry(role, fill))
    _lay_out(figure, layout, above=_LEGEND, below=_SLIDER)
    figure.update_layout(
        title=titles[0],
        legend=dict(orientation="h", x=0.01, y=1, yanchor="bottom"),
        sliders=[steps.slider(labels)],
        updatemenus=[steps.buttons()],
    )
    lines = list(words.text(title, layout, every[0], description))
    for number, found in enumerate(every[1:], start=1):
        lines.append(f"Round {number}: {words.of_round(found, description)}")
    return style.finish(figure, "\n".join(lines))


def before_after(runs, description=None, title=TITLE):
    """Figure of several runs, one network under the other, all in one scale of colours.

    runs   {name: (matrix, levels)}, each as for `network`.

    Raises InputError without a run, and as `network` does.
    """
    if not runs:
        raise InputError("runs={}: nothing to draw; give e.g. {'flat': (matrix, levels)}")
    layouts = [_layout(levels) for _, levels in runs.values()]
    every = [loads(matrix, levels) for matrix, levels in runs.values()]
    most = parts.most_bytes(*every)
    heights = [layout.height for layout in layouts]
    between = _TITLE_OF_PANEL * (len(runs) - 1)
    spacing = _TITLE_OF_PANEL / (sum(heights) + between) if between else None
    figure = make_subplots(
        rows=len(runs),
        row_heights=heights,
        vertical_spacing=spacing,
        subplot_titles=[
            f"{name}, {words.caption(found, description, short=True)}"
            for name, found in zip(runs, every, strict=True)
        ],
    )
    lines = [f"{title}: {style.plural(len(runs), 'run')}, {', '.join(runs)}."]
    for row, (name, layout, found) in enumerate(zip(runs, layouts, every, strict=True), start=1):
        for trace in parts.boxes(layout) + _drawn(layout, found, most, description):
            figure.add_trace(trace, row=row, col=1)
        _axes(figure, layout, row=row, col=1)
        lines += words.text(name, layout, found, description)
    lines.append(words.compared(dict(zip(runs, every, strict=True)), description))
    figure.add_trace(parts.scale(most, _ALL), row=1, col=1)
    figure.update_annotations(x=0.01, xanchor="left", yshift=2)
    _margins(figure, sum(heights) + between)
    figure.update_layout(title=dict(text=title, x=0.01))
    return style.finish(figure, "\n".join(lines))


def _layout(levels):
    if levels.nodes < 2:
        raise InputError(
            f"{len(levels.places)} ranks on one node: there is no network between them; run them "
            "on several hosts, or let them pretend to be there (Case(places=...))"
        )
    return Layout(levels)


def _drawn(layout, found, most, description, roles=None):
    """The traces that differ from run to run, and from round to round."""
    return parts.links(layout, found, most, description) + parts.ranks(layout, roles)


def _alone(layout, found, description, roles=None):
    """Those traces with a scale of their own."""
    most = parts.most_bytes(found)
    return [*_drawn(layout, found, most, description, roles), parts.scale(most, _ALL)]


def _roles(messages, levels):
    """{rank: (what it does, colour)} of all ranks in the messages of a round."""
    roles = {}
    ends = (("sends", messages["source"]), ("receives", messages["dest"]))
    for role, ranks in ends:
        for rank in set(ranks.tolist()):
            roles[rank] = role if rank not in roles else "sends and receives"
    every = ((rank, roles.get(rank, "idle")) for rank in range(len(levels.places)))
    return {rank: (role, ROLES[role]) for rank, role in every}


# --- Axes


def _lay_out(figure, layout, above=0, below=0):
    _axes(figure, layout)
    _margins(figure, layout.height, above, below)


def _axes(figure, layout, **where):
    """Axes without lines; up and down, a unit is a pixel."""
    hidden = dict(showgrid=False, showline=False, ticks="", showticklabels=False)
    room = _STAR * layout.width / COLUMN
    figure.update_xaxes(range=[-room, layout.width + room], **hidden, **where)
    figure.update_yaxes(range=[-1, layout.height + 1], fixedrange=True, **hidden, **where)


def _margins(figure, pixels, above=0, below=0):
    figure.update_layout(
        height=pixels + 2 + _TOP + above + _BOTTOM + below,
        margin=dict(l=_SIDE, r=_SIDE, t=_TOP + above, b=_BOTTOM + below),
        barmode="overlay",
        hovermode="closest",
        modebar=dict(orientation="v", remove=["select2d", "lasso2d"]),
    )
