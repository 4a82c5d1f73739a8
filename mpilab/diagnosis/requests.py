"""Requests that were never started or never completed, other leaks, and views left on a file."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.diagnosis import model
from mpilab.diagnosis.evidence import CELL, Evidence
from mpilab.diagnosis.model import LEAK, MPI_ERROR, Diagnosis, Place, Table
from mpilab.trace.callsites import NULL_POINTER, source_line
from mpilab.trace.recording import (
    ANY,
    CANCELLED,
    CHANGED,
    COLLECTIVE,
    LEAKED,
    NONBLOCKING,
    NULL_REQUESTS,
    READS_FILE,
    RECEIVES,
    SENDS,
    WAITS,
    WRITES_FILE,
    Call,
    operations,
)
from mpilab.util.text import C_COMMENT

# Requests passed to a call although no call had started them, or no requests at all: NULL.

UNSET = "a request that was never started"
UNSET_HINT = (
    "Set every element of the array to MPI_REQUEST_NULL before the first call, or count the "
    "requests that you start (requests[n++]) and pass that number to the wait."
)


NULL_HINT = (
    "If the array comes from malloc: was it allocated on this rank and for this number of ranks, "
    "before this line, and with room for at least one request? Without requests, the count is 0."
)
NULL_ADDRESS_HINT = "Declare MPI_Request request, and pass its address, &request."
# Calls whose second argument is an array of requests.
_ARRAYS = frozenset(
    f"MPI_{name}"
    for name in ("Waitall", "Waitany", "Waitsome", "Testall", "Testany", "Testsome", "Startall")
)
_FIRST = ("MPI_Wait", "MPI_Test", "MPI_Start")  # the request is their first argument


class Unusable(NamedTuple):
    """Why a call cannot use its requests: pattern, meaning and hint as in mpi_error.explained."""

    pattern: str
    meaning: str
    hint: str


def unusable(evidence: Evidence, call: Call) -> Unusable | None:
    """Why `call`, which failed or crashed, could not use its requests; None if they were started.

    The array of requests, or the address of the request, may be NULL.
    """
    if call.flags & NULL_REQUESTS:
        return _null(call)
    said = meaning(evidence, call)
    return Unusable(UNSET, said, UNSET_HINT) if said else None


def _null(call: Call) -> Unusable:
    if call.name not in _ARRAYS:
        which = "first" if call.name in _FIRST else "last"
        said = f"the address of the request, the {which} argument of {call.name}, is NULL"
        return Unusable(NULL_POINTER, said, NULL_ADDRESS_HINT)
    count = f", although the count is {call.count}" if call.flags & WAITS else ""
    said = f"the array of requests, argument 2 of {call.name}, is NULL{count}"
    return Unusable(NULL_POINTER, said, NULL_HINT)


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
OWN_ELEMENT = "Until it is complete, every request needs its own variable or array element"
# The request is the last argument: '&request)', '&requests[n++])'.
_VARIABLE = re.compile(r"&\s*(\w+\s*(?:\[[^\]&]*\])?)\s*\)+$")
LINES_OF_A_CALL, LINES_BETWEEN = 4, 40


class Reason(NamedTuple):
    """Why requests were not completed: text for the hint, and Places of the faulty calls.

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
    """Those of the unfinished `calls` that were to receive data from other ranks or a file."""
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
        "the data may not have arrived yet",
        pattern=UNFINISHED,
        hint=why.hint,
        places=(*evidence.places(calls, "start it here"), *why.places),
        notes=(f"The same applies to {counted(evidence, rest)}.",) if rest else (),
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
        hint = (
            "Wait for every request before you use its data, and at the latest before the return: "
        )
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
            f"{name}{at} does not wait: it only tests, and here it set flag to 0. Use MPI_Waitall "
            "(MPI_Wait for a single request), or test until flag is 1."
        )
        label = "only tests here"
    elif name in ("MPI_Waitany", "MPI_Waitsome"):
        hint = (
            f"{name}{at} waits for one of the requests, not for all of them: call it until none is "
            "left, or use MPI_Waitall."
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
        found = _VARIABLE.search(C_COMMENT.sub("", text).strip())
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
    by = f"line {there}" if there != here else "the next iteration of the loop"
    hint = (
        f"{name} was overwritten by {by} while the request of line {here} was still active, so "
        f"nothing can wait for that one anymore. {OWN_ELEMENT}."
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
            f"MPI_Waitall{evidence.at(wait)} got {got or 'none'} of {all_} requests: does its "
            "count include all requests? And does each request have its own array element?"
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


# Sends whose data was changed under way.

_CHANGED_HINT = (
    "MPI may read what it sends until the request is complete. Wait for it (MPI_Wait, MPI_Waitall) "
    "before you write there again, or free that memory; or let each message have memory of its own."
)


def changed(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of sends whose data was changed before they were complete, noticed in strict
    mode; None if there are none. The result may be right by chance."""
    calls = [
        call
        for number, rank in enumerate(evidence.ranks)
        if rank is not None
        for call in evidence.calls(number, np.flatnonzero(rank.records["flags"] & CHANGED).tolist())
    ]
    if not calls:
        return None
    ranks = tuple(sorted({call.rank for call in calls}))
    of_first = [call for call in calls if call.rank == ranks[0]]
    were = "it was" if len(of_first) == 1 else "they were"
    return Diagnosis(
        MPI_ERROR,
        f"rank {ranks[0]} changed the data of {counted(evidence, of_first)} before {were} complete",
        pattern="a message changed under way",
        hint=_CHANGED_HINT,
        places=evidence.places(of_first, "send it here"),
        ranks=ranks,
    )


# Leaks: requests not completed, communicators and datatypes not freed, files not closed, split
# collectives not ended, messages not received.

SHOWN = 16
REQUEST, COMMUNICATOR, DATATYPE, MESSAGE = "request", "communicator", "datatype", "message"
SPLIT, FILE, VIEW = "split collective", "file", "view"
GROUP, MEMORY = "group", "block of memory"
UNRECEIVED = "unexpected message"  # the pattern if nothing else is left
PATTERNS = {
    REQUEST: "request leaked",
    COMMUNICATOR: "communicator leaked",
    DATATYPE: "datatype leaked",
    GROUP: "group leaked",
    MEMORY: "memory leaked",
    SPLIT: "split collective never ended",
    FILE: "file never closed",
    VIEW: "view left on the file",
    MESSAGE: UNRECEIVED,
}
HINTS = {
    REQUEST: "Every request must be completed: add MPI_Wait(&request, MPI_STATUS_IGNORE), or "
    "MPI_Waitall, before every return. Free a persistent request with MPI_Request_free.",
    COMMUNICATOR: "Add MPI_Comm_free(&comm), with the name of your own communicator, before every "
    "return.",
    SPLIT: (
        "MPI_File_read_all_end completes MPI_File_read_all_begin: only then is the data there. "
        "The same applies to the other calls that end in _begin."
    ),
    DATATYPE: "Add MPI_Type_free(&type) before every return.",
    GROUP: "Add MPI_Group_free(&group) before every return, also for what MPI_Comm_group made.",
    MEMORY: "Add free(pointer), or MPI_Free_mem for what MPI_Alloc_mem made, before every return.",
    FILE: "Add MPI_File_close(&file), with the name of your own file, before every return, on all "
    "ranks that have opened it.",
    VIEW: (
        "Whoever uses the file next would read something else. Set the view of the whole file in "
        "bytes before every return: "
        'MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL).'
    ),
    MESSAGE: (
        "One send too many, or one receive too few: the next receive with this tag would get "
        "this message instead of its own."
    ),
}


_VERBS = {
    MEMORY: "allocate",
    MESSAGE: "have sent",
    REQUEST: "start",
    SPLIT: "begin",
    FILE: "open",
    VIEW: "set",
}
_PLURALS = {MEMORY: "blocks of memory"}
# What was not done to it, and why.
_DONE_MADE = {
    REQUEST: ("completed", "started"),
    SPLIT: ("ended", "begun"),
    FILE: ("closed", "opened"),
    MEMORY: ("freed", "allocated"),
}


def leak(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of the leaks of an otherwise correct run; None if there are none."""
    found = _found(evidence)
    if not found:
        return None
    what, calls = next(iter(found.items()))
    verb = _VERBS.get(what, "make")
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
        tables=(Table("What was left behind", ("rank", "what", "by", "line", "times"), rows),),
        notes=tuple(
            f"Besides, {_sentence(evidence, other, more)}."
            for other, more in found.items()
            if other != what
        ),
    )


def _never_completed(
    evidence: Evidence, calls: Sequence[Call]
) -> tuple[str, str, tuple[Place, ...]] | None:
    """(sentence, hint, Places) for requests that were not completed; None if only the leak is
    known."""
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
    early = "Next time, the kernel may return before the data arrives."
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
            found[VIEW] += _views_left(evidence, number)
    found[MESSAGE] = _unexpected(evidence)
    return {what: calls for what, calls in found.items() if calls}


def _kind(call: Call) -> str:
    if not call.name.startswith("MPI_") or call.name == "MPI_Alloc_mem":
        return MEMORY
    if call.name == "MPI_Comm_group" or call.name.startswith("MPI_Group_"):
        return GROUP
    if call.name.startswith("MPI_Comm_"):
        return COMMUNICATOR
    if call.name.startswith("MPI_Type_"):
        return DATATYPE
    if call.name == "MPI_File_open":
        return FILE
    return SPLIT if call.name.endswith("_begin") else REQUEST


def _views_left(evidence: Evidence, rank: int) -> list[Call]:
    """The calls by which `rank` set a view that it left on a file: not that of all bytes."""
    records = evidence.recorded(rank).records
    sets, closes = _of_views()
    made = np.flatnonzero((records["operation"] == sets) | (records["operation"] == closes))
    if not len(made):
        return []
    latest = {int(records["file"][index]): int(index) for index in made}
    chosen = [
        index
        for index in latest.values()
        if records["operation"][index] == sets
        and (records["offset"][index], records["bytes"][index]) != (0, 1)
        and records["error"][index] == 0
    ]
    return evidence.calls(rank, chosen)


@cache
def _of_views() -> tuple[int, int]:
    """The numbers of MPI_File_set_view and MPI_File_close."""
    numbers = {name: number for number, name in operations().items()}
    return numbers["MPI_File_set_view"], numbers["MPI_File_close"]


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
    if what == VIEW:
        return f"{model.ranks(who)} left the view set{where} on the file"
    maybe = "probably " if what == COMMUNICATOR and not _final(evidence, who) else ""
    done, made = _DONE_MADE.get(what, ("freed", "made"))
    if what == REQUEST and not calls[0].flags & NONBLOCKING:
        done = "freed"
    things = model.number(len(calls), what, _PLURALS.get(what, "")) if many else f"a {what}"
    return f"{model.ranks(who)} {maybe}never {done} {things} {made}{where}"


def _final(evidence: Evidence, ranks: Collection[int]) -> bool:
    """Whether these ranks freed the run's communicator and its cached attributes."""
    return all(evidence.recorded(rank).header["ended_ns"] for rank in ranks)
