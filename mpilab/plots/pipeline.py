"""Who sends when: ranks by rounds, with the blocks or segments that each sends and receives."""

import plotly.graph_objects as go

from mpilab.plots import rounds as by_rounds
from mpilab.plots import steps, style
from mpilab.plots.style import plural

SENDS, RECEIVES = "sends", "receives"
# In the line of a rank: what it receives above what it sends, each so high.
_OFFSET = {RECEIVES: -0.24, SENDS: 0.24}
_HEIGHT = 0.45
_MOST_LABELLED = 40  # more rounds than so many are too narrow for words
_INK = "#ffffff"


def pipeline(schedule):
    """Figure of a Schedule: a line for each rank, a column for each round.

    In a cell above, what the rank receives in that round; below, what it sends, and to how many
    ranks where there are several. The colour is that of the (first) block. So a pipeline is seen to
    fill and to drain, and who waits for whom.
    """
    cells = _cells(schedule)
    figure = go.Figure()
    for what in (RECEIVES, SENDS):
        figure.add_trace(_bars(schedule, what, [cell for cell in cells if cell[0] == what]))
    ranks, last = schedule.ranks, len(schedule.rounds)
    figure.update_layout(
        title=dict(text=f"{by_rounds.name(schedule)}: who sends when"),
        height=max(300, 150 + 42 * ranks),
        margin=dict(t=80),
        barmode="overlay",
        bargap=0,
        legend=dict(orientation="h", x=0, y=1.01, yanchor="bottom", traceorder="normal"),
        modebar=dict(remove=["select2d", "lasso2d"]),
        # A line between ranks, so that it is plain which two cells are one rank's.
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
    return style.finish(figure, _alt(schedule, cells))


def _cells(schedule):
    """(what, rank, round, first block or None, label, what the pointer tells) of all cells."""
    cells = []
    for number, transfers in enumerate(schedule.rounds, start=1):
        sent, received = {}, {}
        for transfer in transfers:
            sent.setdefault(transfer.source, []).append(transfer)
            received.setdefault(transfer.dest, []).append(transfer)
        for what, by_rank in ((RECEIVES, received), (SENDS, sent)):
            for rank, messages in sorted(by_rank.items()):
                cells.append((what, rank, number, *_words(schedule, what, messages)))
    return cells


def _words(schedule, what, messages):
    contents = {}
    for message in messages:
        other = message.dest if what == SENDS else message.source
        contents.setdefault(message.blocks, []).append(other)
    labels = [_label(schedule, blocks, len(others)) for blocks, others in contents.items()]
    told = [
        f"{by_rounds.said(schedule, blocks) or 'an empty message'} "
        f"{'to' if what == SENDS else 'from'} {steps.block_runs(others, 0)}"
        for blocks, others in contents.items()
    ]
    first = next(iter(contents))
    return (first[0] if first else None), ", ".join(labels), f"{what} {'; '.join(told)}"


def _label(schedule, blocks, messages):
    words = by_rounds.said(schedule, blocks) if schedule.blocks > 1 else ""
    return f"{words} ×{messages}".strip() if messages > 1 else words


def _bars(schedule, what, cells):
    labelled = len(schedule.rounds) <= _MOST_LABELLED
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
        text=[label for *_, label, _ in cells] if labelled else None,
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        textfont=dict(size=11, color=fills if what == RECEIVES else _INK),
        constraintext="inside",
        hovertext=[f"round {number}: rank {rank} {told}" for _, rank, number, *_, told in cells],
        hoverinfo="text",
        name=f"{what} ({'above' if what == RECEIVES else 'below'})",
    )


def _fill(schedule, block):
    """The colour of a block: from cold to warm in their order, so that few look alike."""
    if block is None or schedule.blocks == 1:
        return style.colour(schedule.algorithm)
    place = block * (len(style.ORDER_COLOURS) - 1) / (schedule.blocks - 1)
    return _between(style.ORDER_COLOURS, place)


def _between(colours, place):
    """The colour at a place (0 to len(colours) - 1) in a row of colours."""
    low = min(int(place), len(colours) - 2)
    share = place - low
    pairs = zip(_channels(colours[low]), _channels(colours[low + 1]), strict=True)
    return "#" + "".join(f"{round(a + share * (b - a)):02x}" for a, b in pairs)


def _channels(colour):
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def _alt(schedule, cells):
    first = (
        f"Who sends when in {by_rounds.name(schedule)}: {plural(len(schedule.rounds), 'round')}."
    )
    lines = [first]
    for rank in range(schedule.ranks):
        busy = {what: [] for what in (SENDS, RECEIVES)}
        for what, who, number, *_ in cells:
            if who == rank:
                busy[what].append(number)
        told = [
            f"{what} in round{'s' * (len(numbers) > 1)} {steps.block_runs(numbers, 0)}"
            for what, numbers in busy.items()
            if numbers
        ]
        lines.append(f"Rank {rank} {', '.join(told) or 'neither sends nor receives'}.")
    return "\n".join(lines)
