"""A schedule, stepped through round by round: who sends what to whom, and who holds what then."""

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from mpilab.plots import style
from mpilab.schedules import counts, holdings

MISSING, HELD, NEW = 0, 1, 2
HELD_COLOUR, NEW_COLOUR = "#9cc1ee", "#e39a35"
STEP_MILLISECONDS = 1200


def rounds(schedule):
    """Figure of a Schedule with a slider and a play button: step 0 is the start, then each round.

    On the left the messages of the round, as arrows from the sending to the receiving rank, each
    sender with the blocks it sends; on the right, in the same lines, which blocks each rank holds
    after the round and which of them are new. Meant for up to 16 ranks.
    """
    steps = [_step(schedule, number) for number in range(len(schedule.rounds) + 1)]
    figure = make_subplots(
        cols=2,
        shared_yaxes=True,
        horizontal_spacing=0.04,
        column_widths=[0.5, 0.5],
        subplot_titles=["messages of the round", "blocks held after it"],
    )
    columns = [1, 1, 2]
    for trace, column in zip(steps[0], columns, strict=True):
        figure.add_trace(trace, row=1, col=column)
    for name, fill in (("held", HELD_COLOUR), ("new in this round", NEW_COLOUR)):
        figure.add_trace(_legend_entry(name, fill), row=1, col=2)
    figure.frames = [
        go.Frame(
            name=str(number),
            data=step,
            traces=list(range(len(columns))),
            layout=go.Layout(title=dict(text=_title(schedule, number))),
        )
        for number, step in enumerate(steps)
    ]
    _lay_out(figure, schedule)
    return style.finish(figure, _alt(schedule))


def _step(schedule, number):
    """The three traces of one step: arrows, what the senders send, the grid of blocks."""
    transfers = schedule.rounds[number - 1] if number else ()
    return [_arrows(schedule, transfers), _sent(schedule, transfers), _grid(schedule, number)]


def _arrows(schedule, transfers):
    x, y, hover = [], [], []
    for transfer in transfers:
        x += [0, 1, None]
        y += [transfer.source, transfer.dest, None]
        text = (
            f"rank {transfer.source} → rank {transfer.dest}: "
            f"{_blocks(transfer.blocks, schedule.ranks)}"
        )
        hover += [text, text, None]
    colour = style.colour(schedule.algorithm)
    crowded = len(transfers) > 3 * schedule.ranks
    return go.Scatter(
        x=x,
        y=y,
        mode="lines+markers",
        line=dict(color=style.translucent(colour, 0.45) if crowded else colour, width=1.5),
        marker=dict(
            symbol="arrow",
            angleref="previous",
            color=colour,
            size=[0 if place == 0 else 10 for place in x],
            opacity=1,
            line=dict(width=0),
        ),
        hovertext=hover,
        hoverinfo="text",
        showlegend=False,
    )


def _sent(schedule, transfers):
    """What each sender sends, once for each set of blocks, at the sender's end of the arrows."""
    by_source = {}
    for transfer in transfers:
        by_source.setdefault(transfer.source, {})[transfer.blocks] = None
    return go.Scatter(
        x=[-0.04] * len(by_source),
        y=list(by_source),
        mode="text",
        text=[
            "; ".join(_blocks(blocks, schedule.ranks) for blocks in sets)
            for sets in by_source.values()
        ],
        textposition="middle left",
        hoverinfo="skip",
        showlegend=False,
    )


def _grid(schedule, number):
    held = holdings(schedule)
    state = held[number].astype(int)
    if number:
        state += held[number] & ~held[number - 1]
    words = {MISSING: "missing", HELD: "held", NEW: "new in this round"}
    return go.Heatmap(
        z=state,
        zmin=MISSING,
        zmax=NEW,
        colorscale=[
            [0, style.FAINT],
            [1 / 3, style.FAINT],
            [1 / 3, HELD_COLOUR],
            [2 / 3, HELD_COLOUR],
            [2 / 3, NEW_COLOUR],
            [1, NEW_COLOUR],
        ],
        xgap=2,
        ygap=2,
        text=[["●" if cell == NEW else "" for cell in row] for row in state],
        texttemplate="%{text}",
        customdata=[[words[cell] for cell in row] for row in state.tolist()],
        hovertemplate="rank %{y}, block %{x}: %{customdata}<extra></extra>",
        showscale=False,
    )


def _legend_entry(name, fill):
    return go.Scatter(
        x=[None],
        y=[None],
        mode="markers",
        marker=dict(symbol="square", size=14, color=fill),
        name=name,
        hoverinfo="skip",
    )


def _lay_out(figure, schedule):
    ranks = list(range(schedule.ranks))
    figure.update_layout(
        title=dict(text=_title(schedule, 0)),
        height=max(380, 250 + 26 * schedule.ranks),
        margin=dict(t=75, b=140),
        legend=dict(orientation="h", x=1, xanchor="right", y=1, yref="container", yanchor="top"),
        # Across, it would lie on the legend; there is nothing to select.
        modebar=dict(orientation="v", remove=["select2d", "lasso2d"]),
        sliders=[_slider(len(schedule.rounds))],
        updatemenus=[_buttons()],
    )
    figure.update_yaxes(
        tickvals=ranks, range=[schedule.ranks - 0.5, -0.5], showgrid=False, fixedrange=True
    )
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
    figure.update_xaxes(title="block (rank that owned it)", tickvals=ranks, row=1, col=2)


def _slider(round_count):
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
                label="start" if number == 0 else str(number),
                method="animate",
                args=[[str(number)], _at_once(0)],
            )
            for number in range(round_count + 1)
        ],
    )


def _buttons():
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


def _at_once(milliseconds):
    """Animation options: jump, don't glide, to a frame, and stay there for `milliseconds`."""
    return dict(
        mode="immediate",
        fromcurrent=True,
        frame=dict(duration=milliseconds, redraw=True),
        transition=dict(duration=0),
    )


def _title(schedule, number):
    name = f"{schedule.algorithm}, P = {schedule.ranks}"
    if number == 0:
        return f"{name}: start"
    return (
        f"{name}: round {number} of {len(schedule.rounds)}, "
        f"{_plural(len(schedule.rounds[number - 1]), 'message')}"
    )


def _blocks(blocks, ranks):
    """'3', '0–3', '7, 0–2', 'all': blocks in the order sent, runs up or down drawn together."""
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


def _alt(schedule):
    added = counts(schedule, block_bytes=1)
    lines = [
        f"Schedule of allgather {schedule.algorithm} on {_plural(schedule.ranks, 'rank')}: "
        f"{_plural(added.rounds, 'round')}, {_plural(added.messages, 'message')}, "
        f"{_plural(added.total_bytes, 'block')} sent in all.",
        "At the start each rank holds its own block.",
    ]
    held = holdings(schedule)
    for number, transfers in enumerate(schedule.rounds, start=1):
        by_blocks = {}
        for transfer in transfers:
            by_blocks.setdefault((transfer.source, transfer.blocks), []).append(transfer.dest)
        sends = "; ".join(
            f"{source} sends {_blocks(blocks, schedule.ranks)} to {_blocks(dests, 0)}"
            for (source, blocks), dests in by_blocks.items()
        )
        complete = int(held[number].all(axis=1).sum())
        lines.append(
            f"Round {number}: {sends}. Then {complete} of {schedule.ranks} ranks hold every block."
        )
    return "\n".join(lines)


def _plural(number, noun):
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
