"""A schedule, stepped through round by round: who sends what to whom, and who holds what then."""

import plotly.graph_objects as go

from mpilab.plots import steps, style
from mpilab.plots.steps import block_runs
from mpilab.plots.style import plural
from mpilab.schedules import counts, holdings

MISSING, HELD, NEW = 0, 1, 2
HELD_COLOUR = style.SLOT_COLOURS["in its place"]
NEW_COLOUR = style.SLOT_COLOURS["new in this round"]


def rounds(schedule):
    """Figure of a Schedule with a slider and a play button: step 0 is the start, then each round.

    On the left the messages of the round, as arrows from the sending to the receiving rank, each
    sender with the blocks it sends; on the right, in the same lines, which blocks each rank holds
    after the round and which of them are new. Meant for up to 16 ranks.
    """
    frames = [_step(schedule, number) for number in range(len(schedule.rounds) + 1)]
    titles = [_title(schedule, number) for number in range(len(frames))]
    figure = steps.stepped(frames, titles, schedule.ranks, "blocks held after it")
    for name, fill in (("held", HELD_COLOUR), ("new in this round", NEW_COLOUR)):
        figure.add_trace(steps.legend_entry(name, fill), row=1, col=2)
    figure.update_xaxes(
        title="block (rank that owned it)", tickvals=list(range(schedule.ranks)), row=1, col=2
    )
    return style.finish(figure, _alt(schedule))


def _step(schedule, number):
    """The three traces of one step: arrows, what the senders send, the grid of blocks."""
    transfers = schedule.rounds[number - 1] if number else ()
    messages = [
        (
            transfer.source,
            transfer.dest,
            f"rank {transfer.source} → rank {transfer.dest}: "
            f"{block_runs(transfer.blocks, schedule.ranks)}",
        )
        for transfer in transfers
    ]
    return [
        steps.arrows(messages, schedule.ranks, style.colour(schedule.algorithm)),
        _sent(schedule, transfers),
        _grid(schedule, number),
    ]


def _sent(schedule, transfers):
    """What each sender sends, once for each set of blocks, at the sender's end of the arrows."""
    by_source = {}
    for transfer in transfers:
        by_source.setdefault(transfer.source, {})[transfer.blocks] = None
    return steps.said_by_senders(
        {
            source: "; ".join(block_runs(blocks, schedule.ranks) for blocks in sets)
            for source, sets in by_source.items()
        }
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


def _title(schedule, number):
    name = f"{schedule.algorithm}, P = {schedule.ranks}"
    if number == 0:
        return f"{name}: start"
    return (
        f"{name}: round {number} of {len(schedule.rounds)}, "
        f"{plural(len(schedule.rounds[number - 1]), 'message')}"
    )


def _alt(schedule):
    added = counts(schedule, block_bytes=1)
    lines = [
        f"Schedule of allgather {schedule.algorithm} on {plural(schedule.ranks, 'rank')}: "
        f"{plural(added.rounds, 'round')}, {plural(added.messages, 'message')}, "
        f"{plural(added.total_bytes, 'block')} sent in all.",
        "At the start each rank holds its own block.",
    ]
    held = holdings(schedule)
    for number, transfers in enumerate(schedule.rounds, start=1):
        by_blocks = {}
        for transfer in transfers:
            by_blocks.setdefault((transfer.source, transfer.blocks), []).append(transfer.dest)
        sends = "; ".join(
            f"{source} sends {block_runs(blocks, schedule.ranks)} to {block_runs(dests, 0)}"
            for (source, blocks), dests in by_blocks.items()
        )
        complete = int(held[number].all(axis=1).sum())
        lines.append(
            f"Round {number}: {sends}. Then {complete} of {schedule.ranks} ranks hold every block."
        )
    return "\n".join(lines)
