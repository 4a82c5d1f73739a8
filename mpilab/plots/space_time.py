"""Space-time diagram of the MPI calls of each rank and the messages between them, as SVG.

It shows logical steps instead of time, so it shows the order of events and does not depend on the
speed of the machine: a call comes after the previous call of its rank, and a call that needs a
message ends at least one step after the message was sent (logical clocks: Lamport, "Time, clocks,
and the ordering of events in a distributed system", 1978).
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.plots.style import CALL_COLORS, LOST_MESSAGE_COLOR, MESSAGE_COLOR
from mpilab.plots.timeline import BLOCKED, KINDS, Ranks, calls_of
from mpilab.trace.recording import COLLECTIVE, NONE, call_of, messages_of
from mpilab.util.units import plural

# (sending call, call that completes the receive or None, destination), calls as indices.
Link = tuple[int, int | None, int]

MOST_RANKS, MOST_CALLS = 16, 160
CALLS_IN_TEXT = 40
_LEFT, _TOP, _ROW, _BAR, _LEGEND = 70, 14, 34, 18, 26
_WIDTH, _WIDEST_STEP, _NARROWEST_STEP = 760, 150, 9
_LETTER = 7.2  # pixels, on average


def space_time_diagram(ranks: Ranks) -> tuple[str, str]:
    """(SVG, text alternative) of a list with a RankRecording or None for each rank.

    If there is too much to draw, the SVG is empty and the text says so. Without calls, both are
    empty.
    """
    calls = calls_of(ranks)
    if len(calls) == 0:
        return "", ""
    if len(calls) > MOST_CALLS or len(ranks) > MOST_RANKS:
        return "", f"Not drawn: more than {MOST_RANKS} ranks, or more than {MOST_CALLS} calls."
    links = _links(ranks, calls)
    begins, ends = _steps(calls, links, _collective_calls(ranks, calls))
    return _drawn(ranks, calls, links, begins, ends), _in_words(ranks, calls, links)


def _links(ranks: Ranks, calls: NDArray[Any]) -> list[Link]:
    """[(sending call, call that completes the receive or None, destination)] of all messages.

    Calls are indices into `calls`.
    """
    places = {(int(call["rank"]), int(call["record"])): i for i, call in enumerate(calls)}

    def call_at(rank: int, record: int) -> int | None:
        # The second record of a send-receive belongs to the call of the first.
        return places.get((rank, record), places.get((rank, record - 1)))

    links = []
    for message in messages_of(ranks):
        dest, record, taker = int(message["dest"]), int(message["receive_record"]), None
        if record != NONE:
            receiver = ranks[dest]
            assert receiver is not None  # its record says so
            waiter = int(receiver.records["waiter"][record])
            taker = call_at(dest, waiter if waiter >= 0 else record)
        sender = call_at(int(message["source"]), int(message["send_record"]))
        if sender is not None and dest < len(ranks):
            links.append((sender, taker, dest))
    return links


def _collective_calls(ranks: Ranks, calls: NDArray[Any]) -> list[list[int]]:
    """The calls of each collective, as lists of indices."""
    met = defaultdict(list)
    for i, call in enumerate(calls):
        record = ranks[call["rank"]].records[call["record"]]
        if record["flags"] & COLLECTIVE and record["communicator"]:
            met[int(record["communicator"]), int(record["sequence"])].append(i)
    return list(met.values())


def _steps(
    calls: NDArray[Any], links: Sequence[Link], collectives: Sequence[list[int]]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(first, last) step of each call: two int arrays, counted from 0.

    A call that never returned lasts until the last step.
    """
    needs = defaultdict(list)
    for sender, taker, _ in links:
        if taker is not None:
            needs[taker].append(sender)
    for met in collectives:
        for i in met:
            needs[i] += met
    begins, ends = np.zeros(len(calls), int), np.ones(len(calls), int)
    follows = np.concatenate(([False], calls["rank"][1:] == calls["rank"][:-1]))
    # A dependency chain is no longer than the number of calls, unless a recording is forged.
    for _ in range(len(calls) + 1):
        before = ends.copy()
        for i in range(len(calls)):
            begins[i] = ends[i - 1] if follows[i] else 0
            ends[i] = 1 + max((begins[i], *(begins[j] for j in needs[i])))
        if (ends == before).all():
            break
    ends[calls["kind"] == BLOCKED] = ends.max() + 1
    return begins, ends


def _drawn(
    ranks: Ranks,
    calls: NDArray[Any],
    links: Sequence[Link],
    begins: NDArray[np.int64],
    ends: NDArray[np.int64],
) -> str:
    width = min(max(_WIDTH / max(int(ends.max()), 1), _NARROWEST_STEP), _WIDEST_STEP)
    across, down = _LEFT + width * int(ends.max()) + 20, _TOP + _ROW * len(ranks) + _LEGEND

    def x(step: int) -> float:
        return _LEFT + width * step

    def y(rank: int) -> float:
        return _TOP + _ROW * rank + _ROW / 2

    parts = []
    for number, recorded in enumerate(ranks):
        name = f"rank {number}" if recorded is not None else f"rank {number} –"
        parts.append(f'<text x="8" y="{y(number) + 4:.0f}">{name}</text>')
        parts.append(f'<path d="M{_LEFT} {y(number):.0f}H{across - 10:.0f}" class="line"/>')
    for call, begin, end in zip(calls, begins, ends, strict=True):
        kind, rank = KINDS[call["kind"]], int(call["rank"])
        left, wide = x(begin) + 1, max(x(end) - x(begin) - 2, 3)
        name = _name(ranks, call)
        parts.append(
            f'<rect x="{left:.1f}" y="{y(rank) - _BAR / 2:.1f}" width="{wide:.1f}" '
            f'height="{_BAR}" rx="2" fill="{CALL_COLORS[kind]}">'
            f"<title>{escape(name)}</title></rect>"
        )
        shown = f"✗ {name}" if call["kind"] == BLOCKED else name.removeprefix("MPI_")
        if _LETTER * len(shown) + 10 < wide:
            parts.append(
                f'<text x="{left + 5:.1f}" y="{y(rank) + 4:.1f}" class="in">{escape(shown)}</text>'
            )
    for sender, taker, dest in links:
        start = (x(begins[sender]) + 5, y(int(calls["rank"][sender])))
        end = None if taker is None else (x(ends[taker]) - 4, y(dest))
        parts.append(_arrow(start, end, y(dest)))
    parts += _legend(calls, links, down)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {across:.0f} {down}" '
        f'width="{across:.0f}" height="{down}"><style>text{{font:12px sans-serif;fill:#1f2933}}'
        ".in{fill:#fff}.line{stroke:#c3c8d0}.arrow{fill:none;stroke-width:1.4}</style>"
        f'<rect width="100%" height="100%" fill="#fff"/>{"".join(parts)}</svg>'
    )


def _arrow(start: tuple[float, float], end: tuple[float, float] | None, toward: float) -> str:
    """A message from its send to the end of the call that received it; a lost one ends early."""
    left, top = start
    color = LOST_MESSAGE_COLOR if end is None else MESSAGE_COLOR
    right, bottom = end or (left + 14, top + (toward - top) * 0.4)
    tip = 7 if bottom > top else -7
    return (
        f'<path class="arrow" stroke="{color}" '
        f'd="M{left:.1f} {top:.1f}L{right:.1f} {bottom:.1f}"/>'
        f'<path fill="{color}" d="M{right:.1f} {bottom:.1f}l-4 {-tip}l8 0z"/>'
    )


def _legend(calls: NDArray[Any], links: Sequence[Link], down: float) -> Iterator[str]:
    at, square = _LEFT, '<rect x="{}" y="{}" width="10" height="10" fill="{}"/>'
    line = '<path d="M{} {}l10 8" class="arrow" stroke="{}"/>'
    entries = [
        (KINDS[kind], square, CALL_COLORS[KINDS[kind]])
        for kind in sorted(set(calls["kind"].tolist()))
    ]
    if any(taker is None for _, taker, _ in links):
        entries.append(("message that nobody received", line, LOST_MESSAGE_COLOR))
    for word, mark, color in entries:
        yield mark.format(at, down - 18, color)
        yield f'<text x="{at + 14}" y="{down - 9}">{escape(word)}</text>'
        at += 30 + round(6.6 * len(word))


def _name(ranks: Ranks, call: np.void) -> str:
    """A call in a few words: 'MPI_Send to 2'."""
    told = call_of(ranks[call["rank"]], int(call["rank"]), int(call["record"]))
    if told.peer < 0 or told.collective or not (told.sends or told.receives):
        return told.name
    return f"{told.name} {'to' if told.sends else 'from'} {told.peer}"


def _in_words(ranks: Ranks, calls: NDArray[Any], links: Sequence[Link]) -> str:
    said = []
    for number, rank in enumerate(ranks):
        own = calls[calls["rank"] == number]
        names = [
            _name(ranks, call) + (" (never returned)" if call["kind"] == BLOCKED else "")
            for call in own[:CALLS_IN_TEXT]
        ]
        if len(own) > CALLS_IN_TEXT:
            names.append(f"and {len(own) - CALLS_IN_TEXT} more")
        what = ", ".join(names) if names else "no call" if rank is not None else "never began"
        said.append(f"Rank {number}: {what}.")
    lost = sum(taker is None for _, taker, _ in links)
    if lost:
        said.append(f"Nobody received {plural(lost, 'message')}.")
    return " ".join(said)
