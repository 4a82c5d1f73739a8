"""A schedule, stepped through round by round: who sends what to whom, and who holds what then."""

from functools import lru_cache

import plotly.graph_objects as go

from mpilab.plots import steps, style
from mpilab.plots.steps import block_runs
from mpilab.plots.style import plural
from mpilab.schedules import ROOTED, counts, holdings, parts

MISSING, HELD, NEW = 0, 1, 2
HELD_COLOUR = style.SLOT_COLOURS["in its place"]
NEW_COLOUR = style.SLOT_COLOURS["new in this round"]
INK = "#1b1f24"  # on the light fills of cells and ranks
# What stands on the axis of blocks.
_BLOCKS = {
    "allgather": "block (rank that owned it)",
    "gather": "block (rank that owned it)",
    "scatter": "block (rank that it is for)",
    "barrier": "ranks heard of",
}
_MOST_COLUMNS = 32  # from here on, cells are too narrow for a text, and not all have a tick
_MOST_TICKS = 16


def rounds(schedule):
    """Figure of a Schedule with a slider and a play button: step 0 is the start, then each round.

    On the left the messages of the round, as arrows from the sending to the receiving rank, each
    sender with the blocks it sends; on the right, in the same lines, which blocks each rank holds
    after the round and which of them are new. In a reduction, a number in a block says how many
    ranks' parts are in it. Meant for up to 16 ranks.
    """
    frames = [_step(schedule, number) for number in range(len(schedule.rounds) + 1)]
    titles = [title(schedule, number) for number in range(len(frames))]
    figure = steps.stepped(frames, titles, schedule.ranks, "blocks held after it")
    add_grid_words(figure, schedule, column=2)
    return style.finish(figure, text(schedule))


def add_grid_words(figure, schedule, column):
    """The legend and the axis that belong to `grid`, in that column of subplots."""
    held = "held"
    if schedule.owners == ():
        held = "several ranks' parts" if schedule.blocks else "has heard of so many"
    for name, fill in ((held, HELD_COLOUR), ("new in this round", NEW_COLOUR)):
        figure.add_trace(steps.legend_entry(name, fill), row=1, col=column)
    apart = -(-schedule.blocks // _MOST_TICKS) if schedule.blocks > _MOST_COLUMNS else 1
    ticks = list(range(0, schedule.blocks, apart)) if schedule.blocks > 1 else []
    figure.update_xaxes(
        title="the message" if schedule.blocks == 1 else _BLOCKS.get(schedule.collective, "block"),
        tickvals=ticks,
        ticktext=[schedule.name(block) for block in ticks],
        row=1,
        col=column,
    )


def _step(schedule, number):
    """The three traces of one step: arrows, what the senders send, the grid of blocks."""
    transfers = schedule.rounds[number - 1] if number else ()
    messages = [
        (transfer.source, transfer.dest, hover(schedule, transfer)) for transfer in transfers
    ]
    return [
        steps.arrows(messages, schedule.ranks, style.colour(schedule.algorithm)),
        _sent(schedule, transfers),
        grid(schedule, number),
    ]


def hover(schedule, transfer):
    """What the pointer tells of a message."""
    return f"rank {transfer.source} → rank {transfer.dest}" + (
        f": {said(schedule, transfer.blocks)}" if transfer.blocks else ", empty"
    )


def said(schedule, blocks):
    """Blocks of a message in words, in the order sent: '0–3', 'all', 'go 2'."""
    if schedule.names is not None:
        return ", ".join(schedule.name(block) for block in blocks)
    return block_runs(blocks, schedule.blocks) if blocks else ""


def _sent(schedule, transfers):
    """What each sender sends, once for each set of blocks, at the sender's end of the arrows."""
    by_source = {}
    for transfer in transfers:
        by_source.setdefault(transfer.source, {})[transfer.blocks] = None
    return steps.said_by_senders(
        {
            source: "; ".join(said(schedule, blocks) for blocks in sets)
            for source, sets in by_source.items()
        }
    )


def grid(schedule, number, since=None):
    """A heat map: which blocks (columns) each rank (lines) has after round `number`, and what of it
    is new since an earlier one (by default, the one before).

    Of a reduction, how many ranks' parts are in each block that a rank has; of a barrier, how many
    ranks it has heard of, itself included.
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
            [1 / 3, HELD_COLOUR],
            [2 / 3, HELD_COLOUR],
            [2 / 3, NEW_COLOUR],
            [1, NEW_COLOUR],
        ],
        xgap=2,
        ygap=2,
        text=None if is_wide else shown,
        texttemplate=None if is_wide else "%{text}",
        textfont=dict(color=INK),
        # Megabytes of words would say nothing that the colour does not.
        customdata=None if is_wide else words,
        hovertemplate="rank %{y}"
        + (", block %{x}" if schedule.blocks else "")
        + ("" if is_wide else ": %{customdata}")
        + "<extra></extra>",
        showscale=False,
    )


@lru_cache(maxsize=2)
def _has(schedule):
    """What ranks have, by round, rank and block; asked for again by every frame of a figure."""
    has = parts(schedule).sum(axis=3) if schedule.owners == () else holdings(schedule)
    has.setflags(write=False)
    return has


def _part_words(schedule, has, before):
    what = "parts of" if schedule.blocks else "heard of"
    return [
        [
            f"{what} {plural(now, 'rank')}" + (f", {now - then} new" if now > then else "")
            for now, then in zip(row, row_before, strict=True)
        ]
        for row, row_before in zip(has.tolist(), before.tolist(), strict=True)
    ]


def name(schedule):
    """'bcast binomial, P = 8, root 2': the schedule in a title."""
    collective = "" if schedule.collective == "allgather" else f"{schedule.collective} "
    root = f", root {schedule.root}" if schedule.collective in ROOTED else ""
    return f"{collective}{schedule.algorithm}, P = {schedule.ranks}{root}"


def title(schedule, number):
    """The title of a figure at the start (0), or in round `number`."""
    if number == 0:
        return f"{name(schedule)}: start"
    return (
        f"{name(schedule)}: round {number} of {len(schedule.rounds)}, "
        f"{plural(len(schedule.rounds[number - 1]), 'message')}"
    )


def text(schedule):
    """The text alternative of a schedule: all messages, round by round, and what they lead to."""
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
        by_blocks = {}
        for transfer in transfers:
            by_blocks.setdefault((transfer.source, transfer.blocks), []).append(transfer.dest)
        sends = "; ".join(
            f"rank {source} sends {f'{said(schedule, blocks)} ' if blocks else ''}to "
            f"rank{'s' * (len(dests) > 1)} {block_runs(sorted(dests), 0)}"
            for (source, blocks), dests in by_blocks.items()
        )
        lines.append(f"Round {number}: {sends}. Then {after[number]}.")
    return "\n".join(lines)


def _start(schedule):
    return {
        "bcast": f"At the start rank {schedule.root} holds {_blocks(schedule)}.",
        "scatter": f"At the start rank {schedule.root} holds {_blocks(schedule)}.",
        "reduce": f"At the start each rank has its own part of {_blocks(schedule)}.",
        "allreduce": f"At the start each rank has its own part of {_blocks(schedule)}.",
        "barrier": "At the start each rank knows of itself only.",
    }.get(schedule.collective, "At the start each rank holds its own block.")


def _blocks(schedule):
    return "the only block" if schedule.blocks == 1 else f"all {schedule.blocks} blocks"


def _progress(schedule):
    """For each round, in words, how far the collective has come after it."""
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
        of = [[b for b, owner in enumerate(schedule.owners) if owner == r] for r in range(ranks)]
        own = sum(at_root[:, blocks].all(axis=1).astype(int) for blocks in of)
        return [f"rank {schedule.root} holds {n} of {ranks} blocks" for n in own]
    if collective == "scatter":
        own = held[:, range(ranks), range(ranks)].sum(axis=1)
        return [f"{n} of {ranks} ranks hold their block" for n in own]
    complete = held.all(axis=2).sum(axis=1)
    return [f"{n} of {ranks} ranks hold every block" for n in complete]
