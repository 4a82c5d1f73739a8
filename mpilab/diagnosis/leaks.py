"""Leaks: requests, communicators and datatypes that were not freed, messages not received."""

from collections import Counter

import numpy as np

from mpilab.diagnosis import unfinished, words
from mpilab.diagnosis.model import LEAK, Diagnosis, Table
from mpilab.recording import LEAKED, NONBLOCKING

SHOWN = 16
REQUEST, COMMUNICATOR, DATATYPE, MESSAGE = "request", "communicator", "datatype", "message"
SPLIT, FILE = "split collective", "file"
PATTERNS = {
    REQUEST: "request leaked", COMMUNICATOR: "communicator leaked", DATATYPE: "datatype leaked",
    SPLIT: "split collective never ended", FILE: "file never closed",
    MESSAGE: "unexpected message",
}  # fmt: skip
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
}  # fmt: skip


# What was never done to it, and what was.
_DONE_MADE = {REQUEST: ("completed", "started"), SPLIT: ("ended", "begun"),
              FILE: ("closed", "opened")}  # fmt: skip


def leak(evidence):
    """The Diagnosis of what was left behind by a run that is right otherwise; None if nothing."""
    found = _found(evidence)
    if not found:
        return None
    what, calls = next(iter(found.items()))
    verb = {MESSAGE: "have sent", REQUEST: "start", SPLIT: "begin", FILE: "open"}.get(what, "make")
    counted = Counter(
        (call.rank, kind, call.name, evidence.line(call) or "")
        for kind, of_kind in found.items() for call in of_kind
    )  # fmt: skip
    rows = tuple((*row, times) for row, times in list(counted.items())[:SHOWN])
    said, hint, places = _sentence(evidence, what, calls), HINTS[what], ()
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
            f"Besides, {_sentence(evidence, other, more)}." for other, more in found.items()
            if other != what
        ),
    )  # fmt: skip


def _never_completed(evidence, calls):
    """(sentence, hint, Places) where requests were not completed; None where there is no more to
    be said than that they leaked."""
    left = unfinished.unfinished(evidence)
    coming = unfinished.bring_data(evidence, left)
    if not left:
        return None
    reason = unfinished.reason(evidence, coming or left)
    if not coming:
        return reason.asked and (_sentence(evidence, REQUEST, calls), reason.hint, reason.places)
    luck = f"only by luck: {unfinished.told(evidence, coming, reason)}"
    early = "Next time the kernel may return before the data are there."
    return luck, f"{early} {reason.hint}", reason.places


def besides(evidence, found):
    """The same as sentences for the notes of the Diagnosis `found`, which is about something
    else."""
    is_told = found.pattern == unfinished.PATTERN
    return tuple(
        f"Besides, {_sentence(evidence, what, calls)}." for what, calls in _found(evidence).items()
        if not (is_told and what == REQUEST)
    )  # fmt: skip


def _found(evidence):
    """{what: [Call]} in the order of PATTERNS, without what there is none of."""
    found = {what: [] for what in PATTERNS}
    for number, rank in enumerate(evidence.ranks):
        if rank is not None:
            leaked = np.flatnonzero(rank.records["flags"] & LEAKED).tolist()
            for call in evidence.calls(number, leaked):
                found[_kind(call)].append(call)
    found[MESSAGE] = _unexpected(evidence)
    return {what: calls for what, calls in found.items() if calls}


def _kind(call):
    if call.name.startswith("MPI_Comm_"):
        return COMMUNICATOR
    if call.name.startswith("MPI_Type_"):
        return DATATYPE
    if call.name == "MPI_File_open":
        return FILE
    return SPLIT if call.name.endswith("_begin") else REQUEST


def _unexpected(evidence):
    """Sends whose message nobody has received.

    Of a message taken with MPI_Mrecv nobody knows whence it came: such ranks are left out.
    """
    blind = {
        number
        for number, rank in enumerate(evidence.ranks)
        if rank is None
        or rank.header["dropped"]
        or any(c in ("MPI_Mrecv", "MPI_Imrecv") for c in evidence.names(number))
    }
    return [call for call in evidence.traffic.unreceived
            if call.peer not in blind and call.rank not in blind
            and call.peer < evidence.size]  # fmt: skip


def _sentence(evidence, what, calls):
    by_line = {}
    for call in calls:
        by_line.setdefault(evidence.spot(call.site), []).append(call)
    said = [_clause(evidence, what, same) for same in list(by_line.values())[:3]]
    if len(by_line) > 3:
        said.append(f"the same in {len(by_line) - 3} more lines")
    return words.listing(said)


def _clause(evidence, what, calls):
    who, line = {call.rank for call in calls}, evidence.line(calls[0])
    where = f" in line {line}" if line else ""
    many = len(calls) > len(who)
    if what == MESSAGE:
        peers = {call.peer for call in calls}
        number = words.number(len(calls), "message")
        was = "was" if len(calls) == 1 else "were"
        if all(call.peer == call.rank for call in calls):
            whom = "itself" if len(who) == 1 else "themselves"
        else:
            whom = words.ranks(peers)
        return (f"{number} that {words.ranks(who)} sent to {whom}{where} {was} never "
                "received")  # fmt: skip
    maybe = "probably " if what == COMMUNICATOR and not _final(evidence, who) else ""
    done, made = _DONE_MADE.get(what, ("freed", "made"))
    if what == REQUEST and not calls[0].flags & NONBLOCKING:
        done = "freed"
    things = f"{len(calls)} {what}s" if many else f"a {what}"
    return f"{words.ranks(who)} {maybe}never {done} {things} {made}{where}"


def _final(evidence, ranks):
    """Has the communicator of the run been freed on these ranks, and what was cached on it?"""
    return all(evidence.ranks[rank].header["ended_ns"] for rank in ranks)
