"""What a run left behind, read with care: calls, their lines, and the tables that show them."""

from collections import defaultdict
from functools import cached_property

import numpy as np

from mpilab.diagnosis import words
from mpilab.diagnosis.error_classes import NUMBERS
from mpilab.diagnosis.error_classes import name as error_name
from mpilab.diagnosis.model import Place, Table
from mpilab.hang import BLOCKED, COMPUTING, FINISHED, POLLING, calls_of
from mpilab.recording import ANY, NOBODY, POLLS, operations
from mpilab.sites import lines_of, source_line
from mpilab.traffic import Traffic, call_of

CELL = "cell"  # what mpilab.build calls the source of a notebook's cell
LAST_CALLS = 10
# Lines of this many latest calls a rank are looked up at once: each look-up starts a program.
LOOKED_UP, AT_ONCE = 16, 600


class Evidence:
    """The Result of a run as diagnoses need it; every rank of the case has an entry, maybe None."""

    def __init__(self, result):
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
        self._places = {}

    def _begun(self):
        return [rank for rank in self.ranks if rank is not None]

    def state(self, rank):
        """The RankState of `rank`, or None."""
        return next((state for state in self.states if state.rank == rank), None)

    @cached_property
    def stuck(self):
        """Ranks that are in a blocking call, or poll."""
        return tuple(s.rank for s in self.states if s.state in (BLOCKED, POLLING))

    @cached_property
    def finished(self):
        """Ranks that have returned from the kernel."""
        return tuple(s.rank for s in self.states if s.state == FINISHED)

    # --- calls

    def calls(self, rank, chosen=None):
        """[Call] of `rank`: all, or those whose indices are `chosen`."""
        recorded = self.ranks[rank]
        if recorded is None:
            return []
        indices = range(len(recorded.records)) if chosen is None else chosen
        return [call_of(recorded, rank, index) for index in indices]

    def names(self, rank):
        """Names of the calls that `rank` has made, each once."""
        recorded = self.ranks[rank]
        numbers = () if recorded is None else np.unique(recorded.records["operation"]).tolist()
        return {operations().get(number, "an unknown call") for number in numbers}

    def last_call(self, rank):
        """The call that `rank` is in or was in last, or None."""
        recorded = self.ranks[rank]
        if recorded is None or not len(recorded.records):
            return None
        index = recorded.current
        return call_of(recorded, rank, len(recorded.records) - 1 if index is None else index)

    def failed(self):
        """[Call] that returned an error, the earliest first."""
        found = []
        for number, rank in enumerate(self.ranks):
            if rank is not None:
                found += self.calls(number, np.flatnonzero(rank.records["error"])[:LOOKED_UP])
        return sorted(found, key=lambda call: (call.end_ns or call.begin_ns, call.rank, call.index))

    def meeting(self, call):
        """[Call] of all ranks that came to the collective `call`, or to another one in its place:
        the same number on the same communicator."""
        record = self.ranks[call.rank].records[call.index]
        return [
            came for number, rank in enumerate(self.ranks) if rank is not None
            for came in self.calls(number, calls_of(record, rank))
        ]  # fmt: skip

    def name(self, call):
        """The name of a Call, also of one that the recorder does not wrap."""
        if call.name != "MPI_Other":
            return call.name
        said = self.ranks[call.rank].header["unknown_call"].decode(errors="replace")
        return said if said.isidentifier() else "another call"

    # --- lines

    def spot(self, site):
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
    def _latest_sites(self):
        sites = set()
        for rank in self._begun():
            sites.update(rank.records["site"][-LOOKED_UP:].tolist())
        return sorted(sites)

    def function(self, site):
        """Name of the function that a call site is in, '' if unknown."""
        return lines_of(self.library, (int(site),))[0][0] if site else ""

    def line(self, call):
        """Line of a Call, 0 if unknown."""
        return self.spot(call.site)[1]

    def at(self, call):
        """' (line 12)' for a Call, or ''."""
        line = self.line(call)
        return f" (line {line})" if line else ""

    def place(self, site, label):
        """The Place of a call site, or None where its line is unknown."""
        file, line = self.spot(site)
        if not line:
            return None
        return Place(line, source_line(self.library, file or CELL, line), label, file=file)

    def places(self, calls, verb):
        """Places of `calls`, those of one line in one: 'ranks 0 to 3 wait here'.

        `verb` goes behind the ranks: 'wait here', for one rank 'waits here'.
        """
        by_spot = defaultdict(list)
        for call in calls:
            by_spot[self.spot(call.site)].append(call)
        found = []
        for same in by_spot.values():
            numbers = {call.rank for call in same}
            label = f"{words.ranks(numbers)} {conjugated(verb, len(numbers))}"
            found.append(self.place(same[0].site, label))
        return tuple(place for place in found if place is not None)

    # --- tables

    def doing(self):
        """Table: what each rank is doing."""
        rows = tuple(self._row(state) for state in self.states)
        columns = ("rank", "call", "peer", "tag", "bytes", "line", "since")
        return Table("What each rank is doing", columns, rows)

    @staticmethod
    def _row(state):
        call = {FINISHED: "has returned", BLOCKED: state.call, POLLING: f"polls in {state.call}",
                COMPUTING: f"computes after {state.call}" if state.call else "computes"
                }.get(state.state, state.state)  # fmt: skip
        if state.state == FINISHED or not state.call:
            return (state.rank, call, "", "", "", "", "")
        peer = _peer(state.peer, state.sends) if state.peer is not None else ""
        tag = "" if state.tag is None else "any" if state.tag == ANY else state.tag
        bytes_ = "" if state.bytes is None else state.bytes
        return (state.rank, call, peer, tag, bytes_, state.line or "", f"{state.since_s:.1f} s")

    def last_calls(self, rank):
        """Table: the last calls of `rank`, the latest last; None where there are none."""
        recorded = self.ranks[rank]
        count = 0 if recorded is None else len(recorded.records)
        if not count:
            return None
        calls = self.calls(rank, range(max(0, count - LAST_CALLS), count))
        rows = tuple(
            (self.name(call), *partner(call), self.line(call) or "", _took(call),
             error_name(call.error) if call.error else "")
            for call in calls
        )  # fmt: skip
        columns = ("call", "peer", "tag", "bytes", "line", "took", "error")
        if not any(row[-1] for row in rows):
            columns, rows = columns[:-1], tuple(row[:-1] for row in rows)
        return Table(f"The last calls of rank {rank}", columns, rows)


def partner(call):
    """(peer, tag, bytes) of a Call as a table shows them."""
    if call.collective:
        root = f"root {call.peer}" if call.peer >= 0 else ""
        return root, "", call.bytes if call.bytes > 0 else ""
    if not (call.sends or call.receives):
        return "", "", ""
    tag = "any" if call.tag == ANY and not call.sends else call.tag
    is_wrong = call.error == NUMBERS["MPI_ERR_RANK"] and call.peer < (0 if call.sends else ANY)
    peer = "no such rank" if is_wrong else _peer(call.peer, call.sends)
    return peer, tag, call.bytes if not call.name.endswith("robe") else ""


def _peer(peer, sends):
    if peer == NOBODY or (sends and peer < 0):
        return "nobody"
    return f"{'to' if sends else 'from'} {'any' if peer == ANY else peer}"


def _took(call):
    if not call.end_ns:
        return "not returned"
    if call.flags & POLLS:
        return f"asked {call.count} times"
    return f"{max(call.end_ns - call.begin_ns, 0) / 1000:.1f} µs"


def conjugated(verb, count):
    """'wait here' for several ranks, 'waits here' for one; 'are in', 'is in'; 'have', 'has'."""
    first, _, rest = verb.partition(" ")
    if count == 1:
        first = {"are": "is", "have": "has", "do": "does"}.get(
            first, first + ("es" if first.endswith(("s", "sh", "ch", "x")) else "s")
        )
    return f"{first} {rest}".strip()
