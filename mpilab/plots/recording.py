"""Step-by-step figure of a recording: the messages and the receive buffers after each round."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.plots import style
from mpilab.plots.style import Figure, Trace, block_runs, go
from mpilab.trace.recording import NONBLOCKING, NONE, Recording
from mpilab.trace.snapshots import (
    AT_FINISH,
    AT_START,
    NO_SLOT,
    UNKNOWN,
    UNTOUCHED,
    Contents,
    Snapshots,
    contents_of,
    held,
)
from mpilab.util.units import plural

EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
WRITTEN_RANKS, MOST_RANKS, MOST_CELLS = 16, 64, 300_000
SLOTS = tuple(style.SLOT_COLORS)
FREE, IN_PLACE, ELSEWHERE, NEW, OTHER = range(len(SLOTS))


def buffer_states(
    recording: Recording, case: Case, snapshots: Sequence[Snapshots]
) -> NDArray[np.int64]:
    """The content (mpilab.trace.snapshots) of each slot of every receive buffer after each round.

    recording, snapshots   of one run of `case`: a mpilab.trace.snapshots.Snapshots for each rank.

    int array [rounds + 1, ranks, slots], or one row more if ranks changed their buffers after their
    last messages (Bruck's rotation). A number identifies a content, in an allgather the rank that
    the block comes from; UNTOUCHED (-1) is what was there before the call, UNKNOWN (-2) anything
    else; slots that a rank doesn't have are UNTOUCHED. Row 0 is before the first messages. Raises
    InputError for a collective whose contents cannot be told apart.

    Row k of a rank is its buffer as late as possible before it receives a message of a later round:
    at the end of its next send (when the data to send is in order), but not before all its messages
    of rounds up to k are complete. If one call completes messages of several rounds, they appear
    together, since nothing in between was recorded. A block that a pending receive wrote before its
    completion is shown in the round of its message. Messages to the kernel's own memory appear when
    they are copied to the receive buffer.
    """
    messages = recording.messages
    contents = contents_of(case)
    found = [held(case, shots.memory, rank) for rank, shots in enumerate(snapshots)]
    rounds = recording.rounds
    width = max(states.shape[1] for states in found)
    states = np.full((rounds + 2, len(found), width), UNTOUCHED, np.int64)
    for place, (rank, shots, seen) in enumerate(
        zip(recording.ranks, snapshots, found, strict=True)
    ):
        if not len(seen):
            continue
        times = _times(rank.records, shots.records)
        for number, moment in enumerate(_moments(rank.records, messages, place, rounds)):
            last = int(np.searchsorted(times, moment, side="right")) - 1
            states[number, place, : seen.shape[1]] = seen[max(last, 0)]
        states[-1, place, : seen.shape[1]] = seen[-1]
    _take_back_early_ones(states[:-1], messages, contents.owners)
    if contents.sizes:
        _take_back_early_parts(states[:-1], messages, contents)
    return states if (states[-1] != states[-2]).any() else states[:-1]


def _take_back_early_ones(
    states: NDArray[np.int64], messages: NDArray[Any], owners: NDArray[Any]
) -> None:
    """Remove blocks that can only have come with a message of a later round.

    After round k, a rank can have a block if a chain of messages of ascending rounds up to k leads
    to it from the block's owner.
    """
    ranks = states.shape[1]
    reach = np.zeros((len(states), ranks, ranks), bool)
    reach[0] = np.eye(ranks, dtype=bool)
    for number in range(1, len(states)):
        reach[number] = reach[number - 1]
        for message in messages[messages["round"] == number]:
            reach[number, message["dest"]] |= reach[number - 1, message["source"]]
    for number, state in enumerate(states):
        known = state >= 0
        owner = owners[np.where(known, state, 0)]
        rank = np.arange(ranks)[:, None]
        early = known & ~reach[number, rank, owner] & reach[-1, rank, owner]
        state[early] = (states[number - 1] if number else np.full_like(state, UNTOUCHED))[early]


def _take_back_early_parts(
    states: NDArray[np.int64], messages: NDArray[Any], contents: Contents
) -> None:
    """Remove contents that exceed the bytes that a rank has received in the rounds so far.

    For several contents of one owner: of those first seen together, the ones in front are assumed
    to have arrived first.
    """
    sizes = np.array(contents.sizes)
    for rank in range(states.shape[1]):
        for number in range(1, len(states)):
            before, row = states[number - 1, rank], states[number, rank]
            had = messages["bytes"][
                (messages["dest"] == rank) & (messages["round"] <= number)
            ].sum()
            fresh = np.flatnonzero((row >= 0) & (before < 0) & (contents.owners[row] != rank))
            room = had - sizes[(row >= 0) & (before >= 0)].sum()
            early = fresh[sizes[fresh].cumsum() > room]
            row[early] = before[early]


def _times(records: NDArray[Any], taken_after: NDArray[Any]) -> NDArray[np.int64]:
    """When each snapshot was taken, ascending; `taken_after` as in Snapshots.records."""
    times = np.full(len(taken_after), EARLIEST)
    known = taken_after >= 0
    times[known] = records["end_ns"][taken_after[known]]
    # One record represents all repetitions of a poll, and ends with the last one.
    repeated = np.zeros(len(times), bool)
    repeated[:-1] = known[:-1] & (taken_after[:-1] == taken_after[1:])
    times[repeated] = records["begin_ns"][taken_after[repeated]]
    times[taken_after == AT_FINISH] = LATEST
    times[taken_after == AT_START] = EARLIEST
    return np.minimum.accumulate(times[::-1])[::-1]


def _moments(
    records: NDArray[Any], messages: NDArray[Any], rank: int, rounds: int
) -> Iterator[int]:
    """The times at which to look at the buffer of `rank`, for round 0 (the start), 1, 2, …"""
    sent = messages[messages["source"] == rank]
    received = messages[(messages["dest"] == rank) & (messages["receive_record"] != NONE)]
    send_ends = records["end_ns"][sent["send_record"]]
    send_ends = np.where(send_ends == 0, LATEST, send_ends)
    known = _completed(records, received["receive_record"])
    for number in range(rounds + 1):
        before, after = received["round"] <= number, received["round"] > number
        sent_before, sent_after = sent["round"] <= number, sent["round"] > number
        whole = max(
            int(known[before].max(initial=EARLIEST)),
            int(send_ends[sent_before & (send_ends != LATEST)].max(initial=EARLIEST)),
        )
        next_send = int(send_ends[sent_after].min(initial=LATEST))
        next_receive = int(known[after].min(initial=LATEST))
        latest = min(next_send, next_receive - 1)
        yield whole if latest == LATEST - 1 or next_receive <= whole else max(whole, latest)


def _completed(records: NDArray[Any], receives: NDArray[Any]) -> NDArray[np.int64]:
    """When the call that completed each of these receives returned."""
    done, waiter = records["done_ns"][receives], records["waiter"][receives]
    waited = (records["flags"][receives] & NONBLOCKING != 0) & (waiter >= 0)
    ended = np.where(waited, records["end_ns"][np.maximum(waiter, 0)], done)
    return np.maximum(ended, done)


def recorded(
    recording: Recording,
    states: NDArray[np.int64],
    *,
    title: str = "Recording",
    algorithm: str | None = None,
    case: Case | None = None,
) -> Figure:
    """Figure of each round, with a slider and a play button; step 0 is before the first messages.

    states      as `buffer_states` returns them.
    algorithm   determines the color of the arrows, as in all figures.
    case        the case that was run; without it, an allgather.

    On the left are the messages of the round, as arrows from sender to receiver. On the right, in
    the same rows, is the content (mpilab.trace.snapshots) of each slot of each rank's receive
    buffer after the round: whose block in an allgather, which part of the message in a bcast. It is
    written in the cells for up to 16 ranks, in the hover text for up to 64. Raises InputError for
    more, and if the states don't fit the recording.
    """
    states = np.asarray(states)
    ranks, rounds = len(recording.ranks), recording.rounds
    _check(states, ranks, rounds)
    contents = _contents(states, case)
    messages = recording.messages
    color = style.MESSAGE_COLOR if algorithm is None else style.color(algorithm)
    written = ranks <= WRITTEN_RANKS and states.shape[2] <= WRITTEN_RANKS
    kinds = _kinds(states, contents.right)
    frames, titles = [], []
    for number in range(len(states)):
        chosen = messages[messages["round"] == number]
        arrows = [(int(m["source"]), int(m["dest"]), _message(m)) for m in chosen]
        frames.append(
            [
                style.arrows(arrows, ranks, color),
                style.said_by_senders(_sizes(chosen) if written else {}),
                _grid(states[number], kinds[number], contents, written),
            ]
        )
        titles.append(f"{title}: {_step_name(number, rounds, len(chosen))}")
    labels = ["start", *map(str, range(1, rounds + 1)), "end"][: len(states)]
    figure = style.stepped(frames, titles, ranks, "receive buffers after it", labels)
    for kind, name in enumerate(SLOTS):
        if (kinds == kind).any():
            figure.add_trace(style.legend_entry(name, style.SLOT_COLORS[name]), row=1, col=2)
    figure.update_xaxes(
        title=contents.slot,
        tickvals=style.rank_ticks(states.shape[2], 16),
        range=[-0.5, states.shape[2] - 0.5],
        row=1,
        col=2,
    )
    # Titles are long here, so the legend goes below.
    legend = dict(x=0, xanchor="left", y=0, yref="container", yanchor="bottom")
    figure.update_layout(legend=legend, height=figure.layout.height + 30, margin_b=170)
    return style.finish(figure, "\n".join(_alt(recording, states, contents, title)))


def _check(states: NDArray[np.int64], ranks: int, rounds: int) -> None:
    fits = states.ndim == 3 and states.shape[1] == ranks and states.shape[2] > 0
    if not fits or len(states) not in (rounds + 1, rounds + 2):
        raise InputError(
            f"states: shape {states.shape} for {rounds} rounds of {ranks} ranks; give what "
            "buffer_states returns for the same recording"
        )
    if ranks > MOST_RANKS or states.size > MOST_CELLS:
        raise InputError(
            f"{ranks} ranks, {rounds} rounds: too many to step through; run the kernel on "
            f"fewer ranks (up to {MOST_RANKS}), or look at the timeline"
        )


def _contents(states: NDArray[np.int64], case: Case | None) -> Contents:
    """The Contents of `case`; without one, slot i should hold block i."""
    if case is not None:
        return contents_of(case)
    slots = np.arange(states.shape[2])
    return Contents(np.tile(slots, (states.shape[1], 1)), slots)


def _kinds(states: NDArray[np.int64], right: NDArray[Any]) -> NDArray[np.int8]:
    """The index in SLOTS of each cell: int8, like `states`; NO_SLOT if there is no slot."""
    kinds = np.full(states.shape, FREE, np.int8)
    # If a buffer holds more or fewer blocks than it should, any place counts as in place.
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


def _grid(
    state: NDArray[np.int64], kinds: NDArray[np.int8], contents: Contents, written: bool
) -> Trace:
    words = {UNTOUCHED: "" if written else "–", UNKNOWN: "?"}
    text = [
        [
            "" if kind == NO_SLOT else words.get(cell, f"{cell}•" if kind == NEW else str(cell))
            for cell, kind in zip(*rows, strict=True)
        ]
        for rows in zip(state.tolist(), kinds.tolist(), strict=True)
    ]
    # Short texts if there are very many cells, since they make up most of the page's size.
    said = {UNTOUCHED: "untouched", UNKNOWN: "something else"} if written else words
    block = f"{contents.word} " if written else ""
    colors = list(style.SLOT_COLORS.values())
    return go.Heatmap(
        z=kinds if (kinds != NO_SLOT).all() else np.where(kinds == NO_SLOT, np.nan, kinds),
        hoverongaps=False,
        zmin=-0.5,
        zmax=len(SLOTS) - 0.5,
        colorscale=[
            [edge, color]
            for place, color in enumerate(colors)
            for edge in (place / len(colors), (place + 1) / len(colors))
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


def _message(message: np.void) -> str:
    size = style.byte_size(int(message["bytes"]))
    return f"rank {message['source']} → rank {message['dest']}, tag {message['tag']}, {size}"


def _sizes(messages: NDArray[Any]) -> dict[int, str]:
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


def _step_name(number: int, rounds: int, messages: int) -> str:
    if number == 0:
        return "start"
    if number > rounds:
        return "end, after each rank's local work"
    return f"round {number} of {rounds}, {plural(messages, 'message')}"


# --- As text


def _alt(
    recording: Recording, states: NDArray[np.int64], contents: Contents, title: str
) -> Iterator[str]:
    ranks, rounds = len(recording.ranks), recording.rounds
    yield (
        f"{title}: {plural(ranks, 'rank')}, {plural(rounds, 'round')}, "
        f"{plural(len(recording.messages), 'message')}, and the receive buffers after each round."
    )
    if len(states) > rounds + 1:
        yield (
            "Some messages went to the kernel's own memory, or blocks were reordered at the end: "
            "the last step shows that."
        )
    for number, state in enumerate(states):
        held = _held(state, contents.right)
        if number == 0:
            yield f"At the start {held}."
        elif number > rounds:
            yield f"At the end, after each rank's local work, {held}."
        else:
            yield f"Round {number}: {_sent(recording.messages, number)}. Then {held}."


def _sent(messages: NDArray[Any], number: int) -> str:
    targets: dict[tuple[int, str], list[int]] = {}
    for message in messages[messages["round"] == number]:
        key = int(message["source"]), style.byte_size(int(message["bytes"]))
        targets.setdefault(key, []).append(int(message["dest"]))
    return "; ".join(
        f"{source} sends {size} to {block_runs(dests, 0)}"
        for (source, size), dests in targets.items()
    )


def _held(state: NDArray[np.int64], right: NDArray[Any]) -> str:
    """'rank 0 holds 0, 3 in slot 1, something else in slot 2; …', or counts for many ranks."""
    ranks, slots = state.shape
    right = right if right.shape == state.shape else np.tile(np.arange(slots), (ranks, 1))
    exists = right != NO_SLOT
    if ranks > WRITTEN_RANKS:
        filled, whole = int((state[exists] >= 0).sum()), int((state == right).all(axis=1).sum())
        return (
            f"{filled} of {exists.sum()} slots hold a block, {whole} ranks hold all of them in "
            "place"
        )
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
