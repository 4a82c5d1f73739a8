"""The data that a run left behind, read defensively: calls, their lines, and tables of them."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mpilab.diagnosis import model
from mpilab.diagnosis.model import NUMBERS, SANITIZER, Diagnosis, Place, Table
from mpilab.diagnosis.model import class_name as error_name
from mpilab.runners.hang import BLOCKED, COMPUTING, FINISHED, POLLING, RankState
from mpilab.runners.result import DONE, Result
from mpilab.trace.callsites import lines_of, source_line
from mpilab.trace.matching import EXCHANGES, Collectives, Traffic, Want, communicator_of, entries
from mpilab.trace.recording import (
    ANY,
    NOBODY,
    POLLS,
    RECEIVES,
    SENDS,
    WAITS,
    Call,
    RankRecording,
    call_of,
    operations,
)


@dataclass(frozen=True)
class Match:
    """What a recognizer of a pattern found: pattern, ranks, hint and places as in a Diagnosis.

    `headline` says what happened if the pattern reveals more than 'these ranks wait'."""

    pattern: str
    ranks: tuple[int, ...]
    hint: str
    places: tuple[Place, ...] = ()
    headline: str = ""  # without 'deadlock: '


# Queries on the traffic of a run, for the recognizers of patterns.


def all_wants(evidence: "Evidence") -> list[Want]:
    """[Want] of all ranks, in rank order."""
    wants = evidence.traffic.lacking
    return [want for rank in sorted(wants) for want in wants[rank]]


def from_another(evidence: "Evidence", rank: int) -> tuple[Want, Call] | None:
    """(want, sent) if `rank` waits for a specific rank that never sent to it, and a message that
    would otherwise match came from another; or None."""
    for want in evidence.traffic.lacking[rank]:
        call = want.call
        if call.receives and call.peer >= 0 and not sends(evidence, call.peer, rank):
            for sent in evidence.traffic.unreceived:
                if sent.rank != call.peer and call._replace(peer=sent.rank).takes(sent):
                    return want, sent
    return None


def sends(
    evidence: "Evidence", source: int, dest: int | None = None, communicator: int | None = None
) -> int:
    """Number of messages that `source` began to send to `dest` (default: all others).

    If `communicator` is given, only those on it count."""
    recorded = evidence.ranks[source] if 0 <= source < evidence.size else None
    if recorded is None:
        return 0
    records = recorded.records
    sends = (records["flags"] & SENDS != 0) & (records["error"] == 0) & (records["peer"] >= 0)
    if communicator is not None:
        sends &= records["communicator"] == communicator
    to_others = records["peer"] != source
    return int((sends & (to_others if dest is None else records["peer"] == dest)).sum())


def received(evidence: "Evidence", rank: int, source: int | None = None) -> int:
    """Number of messages known to have reached `rank` from `source`, by default all others."""
    recorded = evidence.ranks[rank] if 0 <= rank < evidence.size else None
    if recorded is None:
        return 0
    records = recorded.records
    got = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0) & (records["error"] == 0)
    sources = records["got_peer"]
    from_others = (sources >= 0) & (sources != rank)
    return int((got & (from_others if source is None else sources == source)).sum())


def receives_at(evidence: "Evidence", rank: int, site: int) -> NDArray[np.int64]:
    """Array of the sources of the receives that `rank` began at this call site."""
    recorded = evidence.ranks[rank] if 0 <= rank < evidence.size else None
    if recorded is None or not site:
        return np.empty(0, int)
    records = recorded.records
    chosen = (records["flags"] & RECEIVES != 0) & (records["site"] == site)
    return records["peer"][chosen & (records["error"] == 0)]


def of_wants(
    pattern: str,
    evidence: "Evidence",
    wants: Sequence[Want],
    hint: str,
    ranks: Iterable[int] | None = None,
) -> Match:
    waiting = [want.waiting for want in wants]
    ranks = ranks if ranks is not None else [call.rank for call in waiting]
    places = (*evidence.places(waiting, "wait here"), *started(evidence, wants))
    return Match(pattern, tuple(dict.fromkeys(ranks)), hint, places)


def with_requests(found: Diagnosis, access: str, evidence: "Evidence") -> Diagnosis:
    """The Diagnosis `found` of a sanitizer report; if it was raised in a wait, also with the lines
    that started the requests, which name the buffer. `access` begins with READ or WRITE."""
    if found.kind != SANITIZER or not found.places:
        return found
    here, reads = found.places[0], access.startswith("READ")
    chosen = [
        want
        for want in evidence.traffic.wants.get(found.ranks[0], ())
        if evidence.line(want.waiting) == here.line
        and (want.call.sends if reads else want.call.receives)
    ]
    # A sanitizer report has its own name for the cell's file.
    more = [replace(place, file=here.file) for place in started(evidence, chosen)]
    return replace(found, places=(*found.places, *more))


def started(evidence: "Evidence", wants: Iterable[Want]) -> tuple[Place, ...]:
    """Places where the requests of these wants were started."""
    calls = [
        want.call
        for want in wants
        if want.call.index != want.waiting.index
        and evidence.spot(want.call.site) != evidence.spot(want.waiting.site)
    ]
    return evidence.places(calls, "have started it here")


CELL = "cell"  # the name that mpilab.kernels.build gives the source of a notebook cell
LAST_CALLS = 10
# The lines of the latest LOOKED_UP calls per rank are looked up together, at most AT_ONCE, because
# each lookup starts a program.
LOOKED_UP, AT_ONCE = 16, 600


class Evidence:
    """The Result of a run in the form that diagnoses need; each rank of the case has an entry or
    None."""

    def __init__(self, result: Result) -> None:
        self.result = result
        self.size = result.case.ranks
        ranks = list(result.ranks or getattr(result.recording, "ranks", None) or [])
        self.ranks = (ranks + [None] * self.size)[: self.size]
        states = result.states or (result.hang.states if result.hang is not None else ())
        self.states = tuple(state for state in states if 0 <= state.rank < self.size)
        self.traffic = Traffic(self.ranks)
        self.library = str(result.library) or next(
            (rank.header["object"].decode(errors="replace") for rank in self._begun()), ""
        )
        self._places: dict[int, tuple[str, int]] = {}

    def _begun(self) -> list[RankRecording]:
        return [rank for rank in self.ranks if rank is not None]

    def recorded(self, rank: int) -> RankRecording:
        """The recording of a rank that has made calls; ValueError for one that never started."""
        recorded = self.ranks[rank]
        if recorded is None:
            raise ValueError(f"rank {rank} never started")
        return recorded

    def state(self, rank: int) -> RankState | None:
        """The RankState of `rank`, or None."""
        return next((state for state in self.states if state.rank == rank), None)

    @cached_property
    def stuck(self) -> tuple[int, ...]:
        """Ranks that are in a blocking call or polling."""
        return tuple(s.rank for s in self.states if s.state in (BLOCKED, POLLING))

    @cached_property
    def finished(self) -> tuple[int, ...]:
        """Ranks that have returned from the kernel."""
        return tuple(s.rank for s in self.states if s.state == FINISHED)

    # --- calls

    def calls(self, rank: int, chosen: Iterable[int] | None = None) -> list[Call]:
        """[Call] of `rank`: all, or those whose indices are `chosen`."""
        recorded = self.ranks[rank]
        if recorded is None:
            return []
        indices = range(len(recorded.records)) if chosen is None else chosen
        return [call_of(recorded, rank, index) for index in indices]

    @cached_property
    def collectives(self) -> Collectives:
        """The Collectives of this run."""
        return Collectives(self.ranks, completed=self.result.outcome == DONE)

    def names(self, rank: int) -> set[str]:
        """The names of the calls that `rank` made, as a set."""
        recorded = self.ranks[rank]
        numbers = () if recorded is None else np.unique(recorded.records["operation"]).tolist()
        return {operations().get(number, "an unknown call") for number in numbers}

    def last_call(self, rank: int) -> Call | None:
        """The current or last call of `rank`, or None."""
        recorded = self.ranks[rank]
        if recorded is None or not len(recorded.records):
            return None
        index = recorded.current
        return call_of(recorded, rank, len(recorded.records) - 1 if index is None else index)

    def failed(self) -> list[Call]:
        """[Call] that returned an error, the earliest first."""
        found: list[Call] = []
        for number, rank in enumerate(self.ranks):
            if rank is not None:
                found += self.calls(number, np.flatnonzero(rank.records["error"])[:LOOKED_UP])
        return sorted(found, key=lambda call: (call.end_ns or call.begin_ns, call.rank, call.index))

    def corresponding_calls(self, call: Call) -> list[Call]:
        """[Call] of all ranks that entered the collective `call`, or another one in its place, with
        the same number on the same communicator."""
        record = self.recorded(call.rank).records[call.index]
        return [
            came
            for number, rank in enumerate(self.ranks)
            if rank is not None
            for came in self.calls(number, entries(record, rank))
        ]

    def name(self, call: Call) -> str:
        """The name of a Call, even if the recorder does not wrap it."""
        if call.name != "MPI_Other":
            return call.name
        said = self.recorded(call.rank).header["unknown_call"].decode(errors="replace")
        return said if said.isidentifier() else "another call"

    # --- lines

    def spot(self, site: int) -> tuple[str, int]:
        """(file, line) of a call site; file is '' for the cell itself, line 0 if unknown."""
        if not site or not self.library:
            return "", 0
        if site not in self._places:
            wanted = dict.fromkeys([int(site), *(self._latest_sites if not self._places else ())])
            sites = tuple(wanted)[:AT_ONCE]
            for one, (_, file, line) in zip(sites, lines_of(self.library, sites), strict=True):
                self._places[one] = ("" if file == CELL else file, line)
        return self._places[site]

    @cached_property
    def _latest_sites(self) -> list[int]:
        sites: set[int] = set()
        for rank in self._begun():
            sites.update(rank.records["site"][-LOOKED_UP:].tolist())
        return sorted(sites)

    def function(self, site: int) -> str:
        """Name of the function that contains a call site, '' if unknown."""
        return lines_of(self.library, (int(site),))[0][0] if site else ""

    def line(self, call: Call) -> int:
        """Line of a Call, 0 if unknown."""
        return self.spot(call.site)[1]

    def at(self, call: Call) -> str:
        """' (line 12)' for a Call, or ''."""
        line = self.line(call)
        return f" (line {line})" if line else ""

    def place(self, site: int, label: str) -> Place | None:
        """The Place of a call site, or None if its line is unknown."""
        file, line = self.spot(site)
        if not line:
            return None
        return Place(line, source_line(self.library, file or CELL, line), label, file=file)

    def places(self, calls: Iterable[Call], verb: str) -> tuple[Place, ...]:
        """Places of `calls`, one per line: 'ranks 0 to 3 wait here'.

        `verb` follows the ranks: 'wait here', which becomes 'waits here' for one rank.
        """
        by_spot: dict[tuple[str, int], list[Call]] = defaultdict(list)
        for call in calls:
            by_spot[self.spot(call.site)].append(call)
        found = []
        for same in by_spot.values():
            numbers = {call.rank for call in same}
            label = f"{model.ranks(numbers)} {conjugated(verb, len(numbers))}"
            found.append(self.place(same[0].site, label))
        return tuple(place for place in found if place is not None)

    # --- tables

    def doing(self) -> Table:
        """Table: what each rank is doing."""
        rows = tuple(self._row(state, self._further(state.rank)) for state in self.states)
        columns = ("rank", "call", "peer", "tag", "bytes", "line", "since")
        return Table("What each rank is doing", columns, rows)

    def _further(self, rank: int) -> int:
        """Number of requests that this rank waits for besides the one that its state shows."""
        wants = self.traffic.lacking.get(rank, ())
        last = self.last_call(rank)
        here = [
            want
            for want in wants
            if last is not None
            and want.waiting.index == last.index
            and want.call.index != last.index
        ]
        return max(len(here) - 1, 0) if last is not None and last.flags & WAITS else 0

    @staticmethod
    def _row(state: RankState, further: int) -> tuple[str | int, ...]:
        call = {
            FINISHED: "has returned",
            BLOCKED: state.call,
            POLLING: f"polls in {state.call}",
            COMPUTING: f"computes after {state.call}" if state.call else "computes",
        }.get(state.state, state.state)
        if state.state == FINISHED or not state.call:
            return (state.rank, call, "", "", "", "", "")
        peer = _peer(state.peer, state.sends) if state.peer is not None else ""
        peer += f" and {further} more" if peer and further else ""
        tag = "" if state.tag is None else "any" if state.tag == ANY else state.tag
        bytes_ = "" if state.bytes is None else state.bytes
        return (state.rank, call, peer, tag, bytes_, state.line or "", f"{state.since_s:.1f} s")

    def last_calls(self, rank: int) -> Table | None:
        """Table: the last calls of `rank`, the latest last; None if there are none."""
        recorded = self.ranks[rank]
        count = 0 if recorded is None else len(recorded.records)
        # A send-receive takes two records.
        calls = self.calls(rank, range(max(0, count - 2 * LAST_CALLS - 2), count))
        told = [pair for pair in _pairs(calls) if not any(map(self.is_copy, pair))][-LAST_CALLS:]
        if not told:
            return None
        rows = tuple(
            (
                self.name(call),
                *_partners(first, call),
                self.line(call) or "",
                _took(call),
                error_name(call.error or first.error) if call.error or first.error else "",
            )
            for first, call in told
        )
        columns: tuple[str, ...] = ("call", "peer", "tag", "bytes", "line", "took", "error")
        if not any(row[-1] for row in rows):
            columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
        return Table(f"The last calls of rank {rank}", columns, rows)

    def is_copy(self, call: Call) -> bool:
        """Whether this is half of a copy within the rank on MPI_COMM_SELF, made by a helper of
        mpilab.h. It is not a message, and no rank waits in it."""
        return (
            call.name == "MPI_Sendrecv"
            and call.peer == call.rank
            and self.size > 1
            and call.communicator == communicator_of((call.rank,))
            and not call.error
            and bool(call.end_ns)
        )


def _pairs(calls: Iterable[Call]) -> list[tuple[Call, Call]]:
    """[(Call, Call)]: the send and the receive of a send-receive, or the same call twice."""
    found: list[tuple[Call, Call]] = []
    for call in calls:
        before = found[-1][1] if found else None
        if (
            before is not None
            and call.name in EXCHANGES
            and (before.name, before.site) == (call.name, call.site)
            and before.sends
            and call.receives
        ):
            found[-1] = (before, call)
        else:
            found.append((call, call))
    return found


def _partners(sent: Call, got: Call) -> tuple[str | int, ...]:
    """(peer, tag, bytes) of a call as a table shows them, 'to 1, from 3' for a send-receive."""
    if sent is got:
        return partner(got)
    columns = zip(partner(sent), partner(got), strict=True)
    return tuple(one if one == other else f"{one}, {other}" for one, other in columns)


def partner(call: Call) -> tuple[str, str | int, str | int]:
    """(peer, tag, bytes) of a Call as a table shows them."""
    if call.moves_file:
        return f"at byte {call.offset}" if call.offset >= 0 else "", "", call.bytes
    if call.collective:
        root = f"root {call.peer}" if call.peer >= 0 else ""
        return root, "", call.bytes if call.bytes > 0 else ""
    if not (call.sends or call.receives):
        return "", "", ""
    tag = "any" if call.tag == ANY and not call.sends else call.tag
    is_wrong = call.error == NUMBERS["MPI_ERR_RANK"] and call.peer < (0 if call.sends else ANY)
    peer = "no such rank" if is_wrong else _peer(call.peer, call.sends)
    return peer, tag, call.bytes if not call.name.endswith("robe") else ""


def _peer(peer: int, sends: bool) -> str:
    if peer == NOBODY or (sends and peer < 0):
        return "nobody"
    return f"{'to' if sends else 'from'} {'any' if peer == ANY else peer}"


def _took(call: Call) -> str:
    if not call.end_ns:
        return "not returned"
    if call.flags & POLLS:
        return f"asked {call.count} times"
    return f"{max(call.end_ns - call.begin_ns, 0) / 1000:.1f} µs"


def conjugated(verb: str, count: int) -> str:
    """'wait here' for several ranks, 'waits here' for one; 'are in', 'is in'; 'have', 'has'."""
    first, _, rest = verb.partition(" ")
    if count == 1:
        first = {"are": "is", "were": "was", "have": "has", "do": "does", "go": "goes"}.get(
            first, first + ("es" if first.endswith(("s", "sh", "ch", "x")) else "s")
        )
    return f"{first} {rest}".strip()
