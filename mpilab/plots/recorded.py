"""A recording, stepped through round by round: who sent to whom, and what every rank's receive
buffer held then."""

import numpy as np
import plotly.graph_objects as go

from mpilab.contents import NO_SLOT, Contents, contents_of
from mpilab.errors import InputError
from mpilab.plots import steps, style
from mpilab.plots.buffers import buffer_states
from mpilab.plots.steps import block_runs
from mpilab.plots.style import plural
from mpilab.snapshots import UNKNOWN, UNTOUCHED

__all__ = ["buffer_states", "recorded"]

WRITTEN_RANKS, MOST_RANKS, MOST_CELLS = 16, 64, 300_000
SLOTS = tuple(style.SLOT_COLOURS)
FREE, IN_PLACE, ELSEWHERE, NEW, OTHER = range(len(SLOTS))


def recorded(recording, states, *, title="Recording", algorithm=None, case=None):
    """Figure with a slider and a play button: step 0 is before the first messages, then each round.

    states      as `buffer_states` returns them.
    algorithm   gives the arrows the colour that it has in all figures.
    case        what was run; without it, an allgather.

    On the left the messages of the round, as arrows from the sending to the receiving rank; on the
    right, in the same lines, which content (mpilab.contents) each slot of each rank's receive
    buffer holds after it: in an allgather whose block, in a bcast which part of the message. Up to
    16 ranks the cells say so, up to 64 the pointer does. Raises InputError for more, and where
    states don't fit the recording.
    """
    states = np.asarray(states)
    ranks, rounds = len(recording.ranks), recording.rounds
    _check(states, ranks, rounds)
    contents = _contents(states, case)
    messages = recording.messages
    colour = style.MESSAGE_COLOUR if algorithm is None else style.colour(algorithm)
    written = ranks <= WRITTEN_RANKS and states.shape[2] <= WRITTEN_RANKS
    kinds = _kinds(states, contents.right)
    frames, titles = [], []
    for number in range(len(states)):
        chosen = messages[messages["round"] == number]
        arrows = [(int(m["source"]), int(m["dest"]), _message(m)) for m in chosen]
        frames.append([
            steps.arrows(arrows, ranks, colour),
            steps.said_by_senders(_sizes(chosen) if written else {}),
            _grid(states[number], kinds[number], contents, written),
        ])  # fmt: skip
        titles.append(f"{title}: {_step_name(number, rounds, len(chosen))}")
    labels = ["start", *map(str, range(1, rounds + 1)), "end"][: len(states)]
    figure = steps.stepped(frames, titles, ranks, "receive buffers after it", labels)
    for kind, name in enumerate(SLOTS):
        if (kinds == kind).any():
            figure.add_trace(steps.legend_entry(name, style.SLOT_COLOURS[name]), row=1, col=2)
    figure.update_xaxes(
        title=contents.slot,
        tickvals=steps.rank_ticks(states.shape[2], 16),
        range=[-0.5, states.shape[2] - 0.5],
        row=1,
        col=2,
    )
    # Titles are long here: the legend stands below.
    legend = dict(x=0, xanchor="left", y=0, yref="container", yanchor="bottom")
    figure.update_layout(legend=legend, height=figure.layout.height + 30, margin_b=170)
    return style.finish(figure, "\n".join(_alt(recording, states, contents, title)))


def _check(states, ranks, rounds):
    fits = states.ndim == 3 and states.shape[1] == ranks and states.shape[2] > 0
    if not fits or len(states) not in (rounds + 1, rounds + 2):
        raise InputError(
            f"states: shape {states.shape} for {rounds} rounds of {ranks} ranks; give what "
            "buffer_states returns for the same recording"
        )
    if ranks > MOST_RANKS or states.size > MOST_CELLS:
        raise InputError(
            f"{ranks} ranks, {rounds} rounds: too many to be stepped through; run the kernel on "
            f"fewer ranks (up to {MOST_RANKS}), or look at the timeline"
        )


def _contents(states, case):
    """The Contents of `case`; without one, slot i should hold block i."""
    if case is not None:
        return contents_of(case)
    slots = np.arange(states.shape[2])
    return Contents(np.tile(slots, (states.shape[1], 1)), slots)


def _kinds(states, right):
    """The place in SLOTS of each cell: int8, like `states`; NO_SLOT where there is none."""
    kinds = np.full(states.shape, FREE, np.int8)
    # A buffer may hold more or fewer blocks than it should: then none has a place of its own.
    in_place = (states == right) if right.shape == states.shape[1:] else np.ones_like(states, bool)
    kinds[states >= 0] = np.where(in_place, IN_PLACE, ELSEWHERE)[states >= 0]
    kinds[states == UNKNOWN] = OTHER
    for number in range(1, len(states)):
        for rank, row in enumerate(states[number]):
            fresh = (row >= 0) & ~np.isin(row, states[number - 1, rank])
            kinds[number, rank, fresh] = NEW
    if right.shape == states.shape[1:]:
        kinds[:, right == NO_SLOT] = NO_SLOT
    return kinds


def _grid(state, kinds, contents, written):
    words = {UNTOUCHED: "" if written else "–", UNKNOWN: "?"}
    text = [
        ["" if kind == NO_SLOT else words.get(cell, f"{cell}•" if kind == NEW else str(cell))
         for cell, kind in zip(*rows, strict=True)]
        for rows in zip(state.tolist(), kinds.tolist(), strict=True)
    ]  # fmt: skip
    # Of very many cells, short words: they are most of what the page has to load.
    said = {UNTOUCHED: "untouched", UNKNOWN: "something else"} if written else words
    block = f"{contents.word} " if written else ""
    colours = list(style.SLOT_COLOURS.values())
    return go.Heatmap(
        z=kinds if (kinds != NO_SLOT).all() else np.where(kinds == NO_SLOT, np.nan, kinds),
        hoverongaps=False,
        zmin=-0.5,
        zmax=len(SLOTS) - 0.5,
        colorscale=[
            [edge, colour]
            for place, colour in enumerate(colours)
            for edge in (place / len(colours), (place + 1) / len(colours))
        ],
        xgap=2 if written else 1,
        ygap=2 if written else 1,
        text=text if written else None,
        texttemplate="%{text}" if written else None,
        textfont=dict(color="#1a1c20"),
        customdata=[[said.get(cell, f"{block}{cell}") for cell in row] for row in state.tolist()],
        hovertemplate=f"rank %{{y}}, slot %{{x}}{'' if written else ', block'}: %{{customdata}}"
        "<extra></extra>",
        showscale=False,
    )


def _message(message):
    size = style.byte_size(int(message["bytes"]))
    return f"rank {message['source']} → rank {message['dest']}, tag {message['tag']}, {size}"


def _sizes(messages):
    """What each sender sends: {rank: '3 × 16 B'}."""
    said = {}
    for source in np.unique(messages["source"]).tolist():
        sizes = messages["bytes"][messages["source"] == source]
        if len(set(sizes.tolist())) == 1:
            times = f"{len(sizes)} × " if len(sizes) > 1 else ""
            said[source] = times + style.byte_size(int(sizes[0]))
        else:
            said[source] = f"{len(sizes)}: {style.byte_size(int(sizes.sum()))}"
    return said


def _step_name(number, rounds, messages):
    if number == 0:
        return "start"
    if number > rounds:
        return "end, after what each rank did on its own"
    return f"round {number} of {rounds}, {plural(messages, 'message')}"


# --- As text


def _alt(recording, states, contents, title):
    ranks, rounds = len(recording.ranks), recording.rounds
    yield (
        f"{title}: {plural(ranks, 'rank')}, {plural(rounds, 'round')}, "
        f"{plural(len(recording.messages), 'message')}, and the receive buffers after each round."
    )
    if len(states) > rounds + 1:
        yield (
            "Part of the messages went to memory of the kernel's own, or blocks were put in order "
            "at the end: that shows in the last step."
        )
    for number, state in enumerate(states):
        held = _held(state, contents.right)
        if number == 0:
            yield f"At the start {held}."
        elif number > rounds:
            yield f"At the end, after what each rank did on its own, {held}."
        else:
            yield f"Round {number}: {_sent(recording.messages, number)}. Then {held}."


def _sent(messages, number):
    targets = {}
    for message in messages[messages["round"] == number]:
        key = int(message["source"]), style.byte_size(int(message["bytes"]))
        targets.setdefault(key, []).append(int(message["dest"]))
    return "; ".join(
        f"{source} sends {size} to {block_runs(dests, 0)}"
        for (source, size), dests in targets.items()
    )


def _held(state, right):
    """'rank 0 holds 0, 3 in slot 1, something else in slot 2; …', and how many hold every block."""
    ranks, slots = state.shape
    right = right if right.shape == state.shape else np.tile(np.arange(slots), (ranks, 1))
    exists = right != NO_SLOT
    if ranks > WRITTEN_RANKS:
        filled, whole = int((state[exists] >= 0).sum()), int((state == right).all(axis=1).sum())
        return f"{filled} of {exists.sum()} slots hold a block, {whole} ranks hold all in place"
    said = []
    for rank in np.flatnonzero(exists.any(axis=1)).tolist():
        row, wanted = state[rank].tolist(), right[rank].tolist()
        proper = [cell for cell, want in zip(row, wanted, strict=True) if cell == want >= 0]
        moved = [
            f"{cell} in slot {slot}" for slot, cell in enumerate(row) if 0 <= cell != wanted[slot]
        ]
        other = [f"something else in slot {slot}" for slot, c in enumerate(row) if c == UNKNOWN]
        runs = [block_runs(proper, slots)] if proper else []
        said.append(f"rank {rank} holds {', '.join([*runs, *moved, *other]) or 'nothing'}")
    return "; ".join(said)
