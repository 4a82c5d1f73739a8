"""Figures with one step per round: messages on the left, blocks on the right."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.plots import style

STEP_MILLISECONDS = 1200


def stepped(
    frames: Sequence[Sequence[Any]],
    titles: Sequence[str],
    ranks: int,
    grid_title: str,
    labels: Sequence[str] | None = None,
) -> go.Figure:
    """Figure with a slider and a play button, one step for each of `frames`.

    frames   the three traces of each step: `arrows`, `said_by_senders` and a heat map with a row
             for each of `ranks` ranks.
    titles   the figure's title in each step.
    labels   the labels of the slider; by default 'start', '1', '2', …
    """
    labels = labels or ["start", *map(str, range(1, len(frames)))]
    figure = make_subplots(
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        column_widths=[0.5, 0.5],
        subplot_titles=["messages of the round", grid_title],
    )
    columns = [1, 1, 2]
    for trace, column in zip(frames[0], columns, strict=True):
        figure.add_trace(trace, row=1, col=column)
    figure.frames = [
        go.Frame(
            name=str(number),
            data=frame,
            traces=list(range(len(columns))),
            layout=go.Layout(title=dict(text=title)),
        )
        for number, (frame, title) in enumerate(zip(frames, titles, strict=True))
    ]
    _lay_out(figure, ranks, labels, titles[0])
    return figure


def arrows(messages: Sequence[tuple[int, int, str]], ranks: int, color: str) -> go.Scatter:
    """Arrows from sender to receiver; each of `messages` is (source, dest, hover text).

    With more than 3 messages per rank (of `ranks`), the lines are translucent.
    """
    x, y, hover = [], [], []
    for source, dest, text in messages:
        x += [0, 1, None]
        y += [source, dest, None]
        hover += [text, text, None]
    crowded = len(messages) > 3 * ranks
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line=dict(color=style.translucent(color, 0.45) if crowded else color, width=1.5),
        marker=dict(
            symbol="arrow",
            angleref="previous",
            color=color,
            size=[0 if place == 0 else 10 for place in x],
            opacity=1,
            line=dict(width=0),
        ),
        hovertext=hover,
        hoverinfo="text",
        showlegend=False,
    )


def said_by_senders(words: Mapping[int, str]) -> go.Scatter:
    """Texts at the senders' ends of the arrows, from {rank: text}."""
    return go.Scatter(
        x=[-0.04] * len(words),
        y=list(words),
        mode="text",
        text=list(words.values()),
        textposition="middle left",
        hoverinfo="skip",
        showlegend=False,
    )


def legend_entry(name: str, fill: str) -> go.Scatter:
    """A trace that appears only in the legend: a square of color `fill`."""
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(symbol="square", size=14, color=fill),
        name=name,
        hoverinfo="skip",
    )


def rank_ticks(ranks: int, most: int = 32) -> list[int]:
    """The ranks with a tick: all, or at most `most`, evenly spaced."""
    return list(range(0, ranks, max(1, -(-ranks // most))))


def _lay_out(figure: go.Figure, ranks: int, labels: Sequence[str], title: str) -> None:
    ticks = rank_ticks(ranks)
    figure.update_layout(
        title=dict(text=title),
        height=max(380, 250 + min(26, max(11, 704 // ranks)) * ranks),
        margin=dict(t=75, b=140),
        legend=dict(orientation="h", x=1, xanchor="right", y=1, yref="container", yanchor="top"),
        # A horizontal modebar would cover the legend; there is nothing to select.
        modebar=dict(orientation="v", remove=["select2d", "lasso2d"]),
        sliders=[slider(labels)],
        updatemenus=[buttons()],
    )
    figure.update_yaxes(tickvals=ticks, range=[ranks - 0.5, -0.5], showgrid=False, fixedrange=True)
    figure.update_yaxes(title="rank", showline=False, ticks="", row=1, col=1)
    figure.update_yaxes(showticklabels=True, showline=False, ticks="", row=1, col=2)
    figure.update_xaxes(fixedrange=True, showgrid=False, showline=False, ticks="")
    figure.update_xaxes(
        range=[-0.32, 1.06],
        tickvals=[0, 1],
        ticktext=["sends", "receives"],
        row=1,
        col=1,
    )


def slider(labels: Sequence[str]) -> dict[str, Any]:
    """A slider for a figure's layout, with a step (a frame) for each of `labels`."""
    return dict(
        active=0,
        currentvalue=dict(prefix="round: ", font=dict(size=14)),
        pad=dict(t=45, l=10),
        x=0.16,
        len=0.84,
        font=dict(color=style.TEXT),
        bgcolor=style.GRID,
        bordercolor=style.LINE,
        tickcolor=style.LINE,
        steps=[
            dict(
                label=label,
                method="animate",
                args=[[str(number)], _at_once(0)],
            )
            for number, label in enumerate(labels)
        ],
    )


def buttons() -> dict[str, Any]:
    """Play and pause buttons for a figure's layout."""
    return dict(
        type="buttons",
        direction="left",
        showactive=False,
        x=0,
        xanchor="left",
        y=0,
        yanchor="top",
        pad=dict(t=65, l=0),
        bgcolor="rgba(0,0,0,0)",
        bordercolor=style.LINE,
        buttons=[
            dict(label="▶", method="animate", args=[None, _at_once(STEP_MILLISECONDS)]),
            dict(label="❚❚", method="animate", args=[[None], _at_once(0)]),
        ],
    )


def _at_once(milliseconds: int) -> dict[str, Any]:
    """Animation options: jump to a frame without a transition, and stay for `milliseconds`."""
    return dict(
        mode="immediate",
        fromcurrent=True,
        frame=dict(duration=milliseconds, redraw=True),
        transition=dict(duration=0),
    )


def block_runs(blocks: Sequence[int], ranks: int) -> str:
    """'3', '0–3', '7, 0–2', 'all': blocks in the order sent, with runs up or down joined."""
    if len(blocks) == ranks and ranks > 2:
        return "all"
    runs = [[blocks[0]]]
    for block in blocks[1:]:
        run = runs[-1]
        step = block - run[-1]
        if step in (1, -1) and (len(run) == 1 or step == run[-1] - run[-2]):
            run.append(block)
        else:
            runs.append([block])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
