"""A part of the time of a recording: what happened in it, and where that lies on the time axis."""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError
from mpilab.plots.calls import BLOCKED, calls_of, messages_of

# What never ended is drawn beyond the last thing that happened, by so much of the whole.
TAIL = 0.16


@dataclass
class Span:
    """What is drawn: its ranks, calls and messages, and the time from `begin_ns` to `end_ns`.

    start_ns   the first call of all, from which times are counted.
    tail_ns    so much of it, at its end, is beyond the last thing that was recorded.
    """

    ranks: list
    calls: np.ndarray
    messages: np.ndarray
    start_ns: int
    begin_ns: int
    end_ns: int
    tail_ns: int = 0

    def __post_init__(self):
        seconds = (self.end_ns - self.begin_ns) / 1e9
        units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
        factor, self.unit = next((u for u in units if seconds >= 2 * u[0]), units[-1])
        self.unit_ns = factor * 1e9

    @property
    def recorded_ns(self):
        """How long the recorded part of it lasts."""
        return max(self.end_ns - self.tail_ns - self.begin_ns, 1)

    def at(self, ns):
        """A moment on the axis."""
        return (ns - self.start_ns) / self.unit_ns

    def moment(self, ns):
        """A moment in words, as fine as it can be told apart in the figure: '1.0134 ms'."""
        width = max((self.end_ns - self.begin_ns) / self.unit_ns, 1e-3)
        decimals = int(np.clip(np.ceil(3.3 - np.log10(width)), 0, 6))
        return f"{self.at(int(ns)):.{decimals}f} {self.unit}"

    @property
    def ends_ns(self):
        """When each call ended; one that never returned lasts until the right edge."""
        never = self.calls["kind"] == BLOCKED
        return np.where(never, self.end_ns, self.calls["end_ns"])


def whole(ranks):
    """The Span of everything that was recorded."""
    calls, messages = calls_of(ranks), messages_of(ranks)
    known = [rank for rank in ranks if rank is not None]
    opened = [int(rank.header["opened_ns"]) for rank in known]
    start = int(calls["begin_ns"].min()) if len(calls) else min(opened, default=0)
    moments = [start + 1, *(int(rank.header["closed_ns"]) for rank in known)]
    for values in (calls["begin_ns"], calls["end_ns"], messages["received_ns"]):
        moments.append(int(values.max(initial=0)))
    end = max(moments)
    never = (calls["kind"] == BLOCKED).any()
    tail = max(int((end - start) * TAIL), 1000) if never else 0
    return Span(ranks, calls, messages, start, start, end + tail, tail)


def cut(span, window):
    """The part of a Span in a window of seconds since the first call."""
    if window is None:
        return span
    try:
        first, last = (span.start_ns + round(float(second) * 1e9) for second in window)
    except (TypeError, ValueError):
        first = last = 0
    if not first < last:
        raise InputError(
            f"window={window!r}: no part of the timeline; give two times in seconds since the "
            "first call, such as (0, 1e-3)"
        )
    inside = (span.calls["begin_ns"] < last) & (span.ends_ns > first)
    arrived = np.maximum(span.messages["received_ns"], span.messages["sent_ns"])
    under_way = (span.messages["sent_ns"] < last) & (arrived >= first)
    return Span(span.ranks, span.calls[inside], span.messages[under_way], span.start_ns, first,
                last, max(0, last - (span.end_ns - span.tail_ns)))  # fmt: skip
