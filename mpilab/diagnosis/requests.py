"""Requests that were never started or never completed, and other leaks."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.diagnosis import model
from mpilab.diagnosis.evidence import CELL, Evidence
from mpilab.diagnosis.model import LEAK, Diagnosis, Place, Table
from mpilab.trace.callsites import source_line
from mpilab.trace.recording import (
    ANY,
    CANCELLED,
    COLLECTIVE,
    LEAKED,
    NONBLOCKING,
    READS_FILE,
    RECEIVES,
    SENDS,
    WAITS,
    WRITES_FILE,
    Call,
    operations,
)

# Requests passed to a wait although no call had started them.

UNSET = "a request that was never started"
HINT = (
    "Set every element of the array to MPI_REQUEST_NULL before the first call, or count the "
    "requests that you start (requests[n++]) and give that number to the wait."
)


def meaning(evidence: Evidence, call: Call) -> str:
    """'MPI_Waitall got 8 requests, but only 6 of them were ever started'; '' if all were.

    MPI_REQUEST_NULL may be among them, so call this only if the wait failed.
    """
    if not call.flags & WAITS or call.rank >= len(evidence.ranks):
        return ""
    started = int(np.count_nonzero(evidence.ranks[call.rank].records["waiter"] == call.index))
    if call.count <= started:
        return ""
    got = f"{call.name} got {model.number(call.count, 'request')}"
    if call.count == 1:
        return f"{got} that no call had started"
    were = "was" if started == 1 else "were"
    return (
        f"{got}, but only {started} of them {were} ever started"
        if started
        else (f"{got}, but none of them was ever started")
    )


# Requests that were started and never completed, and why.

UNFINISHED = "a request never completed"
LOOKED_AT = 256  # calls of a rank that are compared with each other
OWN_ELEMENT = "Every request needs a variable, or an array element, of its own until it is complete"
# The request is the last argument: '&request)', '&requests[n++])'.
_VARIABLE = re.compile(r"&\s*(\w+\s*(?:\[[^\]&]*\])?)\s*\)+$")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
LINES_OF_A_CALL, LINES_BETWEEN = 4, 40


class Reason(NamedTuple):
    """Why requests were not completed: text for the hint, and Places of the calls at fault.

    `asked`: whether any wait or test was called afterwards.
    """

    hint: str
    places: tuple[Place, ...]
    asked: bool


def unfinished(evidence: Evidence) -> list[Call]:
    """[Call] of nonblocking operations that are neither complete nor freed at the end."""
    found = []
    for number, rank in enumerate(evidence.ranks):
        if rank is not None and rank.finished:
            records = rank.records
            flags = records["flags"]
            chosen = (flags & (LEAKED | NONBLOCKING | CANCELLED)) == LEAKED | NONBLOCKING
            chosen &= (records["done_ns"] == 0) & (records["error"] == 0)
            found += evidence.calls(number, np.flatnonzero(chosen).tolist())
    # A split collective is not a request: `leak` reports it.
    return [call for call in found if not call.name.endswith("_begin")]


def bring_data(evidence: Evidence, calls: Sequence[Call]) -> list[Call]:
    """Those of the unfinished `calls` that were to bring in data of other ranks or of a file."""
    under_way = {
        (sent.communicator, sent.peer, peer, tag)
        for sent in evidence.traffic.sent
        for peer in (sent.rank, ANY)
        for tag in (sent.tag, ANY)
    }
    return [
        call
        for call in calls
        if call.flags & (COLLECTIVE | READS_FILE)
        or (
            call.flags & RECEIVES
            and (call.communicator, call.rank, call.peer, call.tag) in under_way
        )
    ]


def as_the_cause(evidence: Evidence, found: Diagnosis) -> Diagnosis | None:
    """The Diagnosis `found` of a wrong result, explained by data still in flight when the kernel
    returned; None if all had arrived."""
    left = unfinished(evidence)
    calls = bring_data(evidence, left)
    if not calls:
        return None
    why = why_unfinished(evidence, calls)
    coming = {(call.rank, call.index) for call in calls}
    rest = [call for call in left if (call.rank, call.index) not in coming]
    return replace(
        found,
        headline=f"wrong result on {model.ranks(found.ranks)}: {told(evidence, calls, why)}: "
        "the data may not be there yet",
        pattern=UNFINISHED,
        hint=why.hint,
        places=(*evidence.places(calls, "start it here"), *why.places),
        notes=(f"The same goes for {counted(evidence, rest)}.",) if rest else (),
    )


def told(evidence: Evidence, calls: Sequence[Call], reason: Reason) -> str:
    """'12 MPI_Irecv (line 16) were started and never waited for'."""
    verb = "completed" if reason.asked else "waited for"
    was = "was" if len(calls) == 1 else "were"
    return f"{counted(evidence, calls)} {was} started and never {verb}"


def counted(evidence: Evidence, calls: Sequence[Call]) -> str:
    """'12 MPI_Irecv (line 16) and 4 MPI_Isend (line 17)'."""
    groups = Counter((evidence.name(call), evidence.at(call)) for call in calls)
    return model.listing([f"{count} {name}{at}" for (name, at), count in groups.items()][:4])


def why_unfinished(evidence: Evidence, calls: Sequence[Call]) -> Reason:
    """The Reason why the unfinished `calls` were not completed, judged by their first rank."""
    first = calls[0].rank
    mine = [call for call in calls if call.rank == first]
    waits = _waits(evidence, first, mine[0].index)
    again = _overwritten(evidence, mine[:LOOKED_AT])
    if not waits:
        hint = "Wait for every request before the data are used, at the latest before the return: "
        hint += "MPI_Waitall does it for an array of requests."
        return Reason(hint + (f" {OWN_ELEMENT}." if again else ""), (), False)
    waiters = {call.waiter for call in mine}
    asked = [wait for wait in waits if wait.index in waiters]
    if waiters <= {wait.index for wait in asked}:
        return _asked_in_vain(evidence, asked[-1])
    if again:
        return _told_overwritten(evidence, *again)
    return _too_few(evidence, waits)


def _started(records: NDArray[Any]) -> NDArray[np.bool_]:
    """Which of a rank's records start an operation: bool [records]."""
    flags = records["flags"]
    started = (flags & NONBLOCKING != 0) & (records["error"] == 0)
    moving = SENDS | RECEIVES | COLLECTIVE | READS_FILE | WRITES_FILE
    return started & (flags & moving != 0)


def _waits(evidence: Evidence, rank: int, since: int) -> list[Call]:
    """The latest waits and tests of `rank` from record `since` on."""
    numbers = [
        number for number, name in operations().items() if name.startswith(("MPI_Wait", "MPI_Test"))
    ]
    made = evidence.recorded(rank).records["operation"][since:]
    indices = since + np.flatnonzero(np.isin(made, numbers))
    return evidence.calls(rank, indices[-LOOKED_AT:].tolist())


def _asked_in_vain(evidence: Evidence, wait: Call) -> Reason:
    name, at = wait.name, evidence.at(wait)
    if name.startswith("MPI_Test"):
        hint = (
            f"{name}{at} does not wait: it only asks, and here the answer was no (flag 0). "
            "Take MPI_Waitall (MPI_Wait for a single request), or ask until the answer is yes."
        )
        label = "only asks here"
    elif name in ("MPI_Waitany", "MPI_Waitsome"):
        hint = (
            f"{name}{at} waits for one of the requests, not for all of them: call it until "
            "none is left, or take MPI_Waitall."
        )
        label = "waits for one request here"
    else:
        return Reason(f"{name}{at} did not complete them.", (), True)
    return Reason(hint, _place(evidence, wait, f"rank {wait.rank} {label}"), True)


class _Source:
    """The source of the kernel; each line is read once."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._lines: dict[tuple[str, int], str] = {}

    def text(self, site: int, lines: int) -> str:
        """The text of `lines` lines, starting at a call site; '' if unknown."""
        file, line = self.evidence.spot(site)
        numbers = range(line, line + lines) if line else ()
        return "\n".join(self._line(file or CELL, number) for number in numbers)

    def _line(self, file: str, number: int) -> str:
        if (file, number) not in self._lines:
            self._lines[file, number] = source_line(self.evidence.library, file, number)
        return self._lines[file, number]

    def variable(self, call: Call) -> str:
        """The request argument of a call: 'request', 'requests[i]'; '' if unknown."""
        text = self.text(call.site, LINES_OF_A_CALL)
        text = text[max(text.find(call.name), 0) :].partition(";")[0]
        found = _VARIABLE.search(_COMMENT.sub("", text).strip())
        name = "".join(found[1].split()) if found else ""
        return "" if "++" in name or "--" in name else name


def _overwritten(evidence: Evidence, mine: Sequence[Call]) -> tuple[str, Call, Call] | None:
    """(variable, unfinished call, later call with the same variable), or None."""
    rank, source = mine[0].rank, _Source(evidence)
    started = np.flatnonzero(_started(evidence.recorded(rank).records))
    others = evidence.calls(rank, started[started > mine[0].index][:LOOKED_AT].tolist())
    by_site = {call.site: call for call in (*mine, *others)}
    names = {
        site: (source.variable(call), evidence.spot(site)[0]) for site, call in by_site.items()
    }
    pairs = {
        (lost.site, other.site): (lost, other)
        for lost in reversed(mine)
        for other in reversed(others)
        if other.index > lost.index and names[lost.site] == names[other.site]
    }
    for lost, other in reversed(pairs.values()):
        name = names[lost.site][0]
        if name and _is_same(source, name, lost, other):
            return name, lost, other
    return None


def _is_same(source: _Source, name: str, lost: Call, other: Call) -> bool:
    """Whether `name` is the same variable in both calls; requests[i] differs once i changes."""
    index = name.partition("[")[2]
    lines = source.evidence.line(other) - source.evidence.line(lost)
    if not index:
        return True
    if not 0 < lines <= LINES_BETWEEN:
        return False
    text = source.text(lost.site, lines)
    return not any(
        re.search(rf"\b{word}\s*(\+\+|--|[-+*/%]?=[^=])|(\+\+|--)\s*{word}\b", text)
        for word in re.findall(r"[A-Za-z_]\w*", index)
    )


def _told_overwritten(evidence: Evidence, name: str, lost: Call, other: Call) -> Reason:
    here, there = evidence.line(lost), evidence.line(other)
    by = f"line {there}" if there != here else "the next round of the loop"
    hint = (
        f"{name} was overwritten by {by} while the request of line {here} was still active, so "
        f"nobody can wait for that one any more. {OWN_ELEMENT}."
    )
    return Reason(hint, _place(evidence, other, f"{name} is overwritten here"), True)


def _too_few(evidence: Evidence, waits: Sequence[Call]) -> Reason:
    wait = next((w for w in reversed(waits) if w.name == "MPI_Waitall"), waits[-1])
    records = evidence.recorded(wait.rank).records
    same = [w.index for w in waits if w.site == wait.site]
    started = _started(records[: same[-1]])
    given = np.isin(records["waiter"][: same[-1]], same)
    got = int((started & given).sum())
    all_ = int((started & (given | (records["done_ns"][: same[-1]] == 0))).sum())
    if wait.name == "MPI_Waitall":
        hint = (
            f"MPI_Waitall{evidence.at(wait)} got {got or 'none'} of {all_} requests: is its "
            "count the number of all requests? And has every request an element of its own?"
        )
    else:
        hint = (
            f"{wait.name}{evidence.at(wait)} was given {got or 'none'} of {all_} requests. "
            f"Wait for each of them. {OWN_ELEMENT}."
        )
    label = f"rank {wait.rank} waits for {got or 'none'} of {all_} requests here"
    return Reason(hint, _place(evidence, wait, label), True)


def _place(evidence: Evidence, call: Call, label: str) -> tuple[Place, ...]:
    place = evidence.place(call.site, label)
    return () if place is None else (place,)


# Leaks: requests not completed, communicators and datatypes not freed, files not closed, split
# collectives not ended, messages not received.

SHOWN = 16
REQUEST, COMMUNICATOR, DATATYPE, MESSAGE = "request", "communicator", "datatype", "message"
SPLIT, FILE = "split collective", "file"
PATTERNS = {
    REQUEST: "request leaked",
    COMMUNICATOR: "communicator leaked",
    DATATYPE: "datatype leaked",
    SPLIT: "split collective never ended",
    FILE: "file never closed",
    MESSAGE: "unexpected message",
}
HINTS = {
    REQUEST: "Every request has to be completed: add MPI_Wait(&request, MPI_STATUS_IGNORE), or "
    "MPI_Waitall, before every return. A persistent one is freed with MPI_Request_free.",
    COMMUNICATOR: "Add MPI_Comm_free(&comm), with the name of your own communicator, before every "
    "return.",
    SPLIT: "What MPI_File_read_all_begin begins, MPI_File_read_all_end ends: only then are the "
    "data there. The same goes for the others that end in _begin.",
    DATATYPE: "Add MPI_Type_free(&type) before every return.",
    FILE: "Add MPI_File_close(&file), with the name of your own file, before every return, on all "
    "ranks that have opened it.",
    MESSAGE: "One send too many, or one receive too few: the message would be taken for another "
    "one by the next call that receives with this tag.",
}


# What was not done to it, and how it came about.
_DONE_MADE = {
    REQUEST: ("completed", "started"),
    SPLIT: ("ended", "begun"),
    FILE: ("closed", "opened"),
}


def leak(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of the leaks of an otherwise correct run; None if there are none."""
    found = _found(evidence)
    if not found:
        return None
    what, calls = next(iter(found.items()))
    verb = {MESSAGE: "have sent", REQUEST: "start", SPLIT: "begin", FILE: "open"}.get(what, "make")
    counted = Counter(
        (call.rank, kind, call.name, evidence.line(call) or "")
        for kind, of_kind in found.items()
        for call in of_kind
    )
    rows = tuple((*row, times) for row, times in list(counted.items())[:SHOWN])
    said, hint = _sentence(evidence, what, calls), HINTS[what]
    places: tuple[Place, ...] = ()
    if what == REQUEST:
        said, hint, places = _never_completed(evidence, calls) or (said, hint, places)
    return Diagnosis(
        LEAK,
        f"the result is right, but {said}",
        pattern=PATTERNS[what],
        hint=hint,
        ranks=tuple(dict.fromkeys(call.rank for call in calls)),
        places=(*evidence.places(calls, f"{verb} it here"), *places),
        tables=(Table("What is left behind", ("rank", "what", "by", "line", "times"), rows),),
        notes=tuple(
            f"Besides, {_sentence(evidence, other, more)}."
            for other, more in found.items()
            if other != what
        ),
    )


def _never_completed(
    evidence: Evidence, calls: Sequence[Call]
) -> tuple[str, str, tuple[Place, ...]] | None:
    """(sentence, hint, Places) for requests that were not completed; None if nothing but the leak
    is known."""
    left = unfinished(evidence)
    coming = bring_data(evidence, left)
    if not left:
        return None
    reason = why_unfinished(evidence, coming or left)
    if not coming:
        if not reason.asked:
            return None
        return _sentence(evidence, REQUEST, calls), reason.hint, reason.places
    luck = f"only by luck: {told(evidence, coming, reason)}"
    early = "Next time the kernel may return before the data are there."
    return luck, f"{early} {reason.hint}", reason.places


def besides(evidence: Evidence, found: Diagnosis) -> tuple[str, ...]:
    """Sentences on leaks for the notes of the Diagnosis `found`, which has another cause."""
    is_told = found.pattern == UNFINISHED
    return tuple(
        f"Besides, {_sentence(evidence, what, calls)}."
        for what, calls in _found(evidence).items()
        if not (is_told and what == REQUEST)
    )


def _found(evidence: Evidence) -> dict[str, list[Call]]:
    """{what: [Call]} in the order of PATTERNS, without empty lists."""
    found: dict[str, list[Call]] = {what: [] for what in PATTERNS}
    for number, rank in enumerate(evidence.ranks):
        if rank is not None:
            leaked = np.flatnonzero(rank.records["flags"] & LEAKED).tolist()
            for call in evidence.calls(number, leaked):
                found[_kind(call)].append(call)
    found[MESSAGE] = _unexpected(evidence)
    return {what: calls for what, calls in found.items() if calls}


def _kind(call: Call) -> str:
    if call.name.startswith("MPI_Comm_"):
        return COMMUNICATOR
    if call.name.startswith("MPI_Type_"):
        return DATATYPE
    if call.name == "MPI_File_open":
        return FILE
    return SPLIT if call.name.endswith("_begin") else REQUEST


def _unexpected(evidence: Evidence) -> list[Call]:
    """Sends whose message was never received.

    The source of a message received with MPI_Mrecv is unknown, so such ranks are left out.
    """
    blind = {
        number
        for number, rank in enumerate(evidence.ranks)
        if rank is None
        or rank.header["dropped"]
        or any(c in ("MPI_Mrecv", "MPI_Imrecv") for c in evidence.names(number))
    }
    return [
        call
        for call in evidence.traffic.unreceived
        if call.peer not in blind and call.rank not in blind and call.peer < evidence.size
    ]


def _sentence(evidence: Evidence, what: str, calls: Sequence[Call]) -> str:
    by_line: dict[tuple[str, int], list[Call]] = {}
    for call in calls:
        by_line.setdefault(evidence.spot(call.site), []).append(call)
    said = [_clause(evidence, what, same) for same in list(by_line.values())[:3]]
    if len(by_line) > 3:
        said.append(f"the same in {len(by_line) - 3} more lines")
    return model.listing(said)


def _clause(evidence: Evidence, what: str, calls: Sequence[Call]) -> str:
    who, line = {call.rank for call in calls}, evidence.line(calls[0])
    where = f" in line {line}" if line else ""
    many = len(calls) > len(who)
    if what == MESSAGE:
        peers = {call.peer for call in calls}
        number = model.number(len(calls), "message")
        was = "was" if len(calls) == 1 else "were"
        if all(call.peer == call.rank for call in calls):
            whom = "itself" if len(who) == 1 else "themselves"
        else:
            whom = model.ranks(peers)
        return f"{number} that {model.ranks(who)} sent to {whom}{where} {was} never received"
    maybe = "probably " if what == COMMUNICATOR and not _final(evidence, who) else ""
    done, made = _DONE_MADE.get(what, ("freed", "made"))
    if what == REQUEST and not calls[0].flags & NONBLOCKING:
        done = "freed"
    things = f"{len(calls)} {what}s" if many else f"a {what}"
    return f"{model.ranks(who)} {maybe}never {done} {things} {made}{where}"


def _final(evidence: Evidence, ranks: Collection[int]) -> bool:
    """Whether these ranks freed the run's communicator and what was cached on it."""
    return all(evidence.recorded(rank).header["ended_ns"] for rank in ranks)
