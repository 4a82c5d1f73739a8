"""Requests that were started and never completed: which, and why nobody waited for them."""

import re
from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mpilab.diagnosis import words
from mpilab.diagnosis.evidence import CELL
from mpilab.recording import (
    ANY,
    CANCELLED,
    COLLECTIVE,
    LEAKED,
    NONBLOCKING,
    READS_FILE,
    RECEIVES,
    SENDS,
    WRITES_FILE,
    operations,
)
from mpilab.sites import source_line

PATTERN = "a request never completed"
LOOKED_AT = 256  # calls of a rank, where each is held against others
OWN_ELEMENT = "Every request needs a variable, or an array element, of its own until it is complete"
# The request is the last argument: '&request)', '&requests[n++])'.
_VARIABLE = re.compile(r"&\s*(\w+\s*(?:\[[^\]&]*\])?)\s*\)+$")
_COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
LINES_OF_A_CALL, LINES_BETWEEN = 4, 40


class Reason(NamedTuple):
    """Why requests were not completed: words for the hint, and Places of who should have waited.

    `asked`: has a wait or test been called at all since?
    """

    hint: str
    places: tuple
    asked: bool


def unfinished(evidence):
    """[Call]: what was started without waiting, and is neither complete nor freed at the end."""
    found = []
    for number, rank in enumerate(evidence.ranks):
        if rank is not None and rank.finished:
            records = rank.records
            flags = records["flags"]
            chosen = (flags & (LEAKED | NONBLOCKING | CANCELLED)) == LEAKED | NONBLOCKING
            chosen &= (records["done_ns"] == 0) & (records["error"] == 0)
            found += evidence.calls(number, np.flatnonzero(chosen).tolist())
    # A split collective is no request: mpilab.diagnosis.leaks tells of it.
    return [call for call in found if not call.name.endswith("_begin")]


def bring_data(evidence, calls):
    """Those of the unfinished `calls` that data of others, or of a file, were coming in by."""
    under_way = {
        (sent.communicator, sent.peer, peer, tag)
        for sent in evidence.traffic.sent
        for peer in (sent.rank, ANY) for tag in (sent.tag, ANY)
    }  # fmt: skip
    return [
        call for call in calls
        if call.flags & (COLLECTIVE | READS_FILE) or (
            call.flags & RECEIVES
            and (call.communicator, call.rank, call.peer, call.tag) in under_way)
    ]  # fmt: skip


def as_the_cause(evidence, found):
    """The Diagnosis `found` of a wrong result, told by the data that were still coming in when the
    kernel returned; None where all had come."""
    left = unfinished(evidence)
    calls = bring_data(evidence, left)
    if not calls:
        return None
    why = reason(evidence, calls)
    coming = {(call.rank, call.index) for call in calls}
    rest = [call for call in left if (call.rank, call.index) not in coming]
    return replace(
        found,
        headline=f"wrong result on {words.ranks(found.ranks)}: {told(evidence, calls, why)}: "
        "the data may not be there yet",
        pattern=PATTERN,
        hint=why.hint,
        places=(*evidence.places(calls, "start it here"), *why.places),
        notes=(f"The same goes for {counted(evidence, rest)}.",) if rest else (),
    )


def told(evidence, calls, reason):
    """'12 MPI_Irecv (line 16) were started and never waited for'."""
    verb = "completed" if reason.asked else "waited for"
    was = "was" if len(calls) == 1 else "were"
    return f"{counted(evidence, calls)} {was} started and never {verb}"


def counted(evidence, calls):
    """'12 MPI_Irecv (line 16) and 4 MPI_Isend (line 17)'."""
    groups = Counter((evidence.name(call), evidence.at(call)) for call in calls)
    return words.listing([f"{count} {name}{at}" for (name, at), count in groups.items()][:4])


def reason(evidence, calls):
    """The Reason why `calls`, unfinished ones, were not completed, as their first rank shows it."""
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


def _started(records):
    """Which of a rank's records start something: bool [records]."""
    flags = records["flags"]
    started = (flags & NONBLOCKING != 0) & (records["error"] == 0)
    moving = SENDS | RECEIVES | COLLECTIVE | READS_FILE | WRITES_FILE
    return started & (flags & moving != 0)


def _waits(evidence, rank, since):
    """The latest waits and tests of `rank` behind record `since`."""
    numbers = [number for number, name in operations().items()
               if name.startswith(("MPI_Wait", "MPI_Test"))]  # fmt: skip
    made = evidence.ranks[rank].records["operation"][since:]
    indices = since + np.flatnonzero(np.isin(made, numbers))
    return evidence.calls(rank, indices[-LOOKED_AT:].tolist())


def _asked_in_vain(evidence, wait):
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
    """The text of the kernel, each line read once."""

    def __init__(self, evidence):
        self.evidence = evidence
        self._lines = {}

    def text(self, site, lines):
        """The text of `lines` lines from that of a call site on; '' if unknown."""
        file, line = self.evidence.spot(site)
        numbers = range(line, line + lines) if line else ()
        return "\n".join(self._line(file or CELL, number) for number in numbers)

    def _line(self, file, number):
        if (file, number) not in self._lines:
            self._lines[file, number] = source_line(self.evidence.library, file, number)
        return self._lines[file, number]

    def variable(self, call):
        """What a call is given as its request: 'request', 'requests[i]'; '' if unknown."""
        text = self.text(call.site, LINES_OF_A_CALL)
        text = text[max(text.find(call.name), 0) :].partition(";")[0]
        found = _VARIABLE.search(_COMMENT.sub("", text).strip())
        name = "".join(found[1].split()) if found else ""
        return "" if "++" in name or "--" in name else name


def _overwritten(evidence, mine):
    """(variable, the unfinished call, the call that was given the same variable), or None."""
    rank, source = mine[0].rank, _Source(evidence)
    started = np.flatnonzero(_started(evidence.ranks[rank].records))
    others = evidence.calls(rank, started[started > mine[0].index][:LOOKED_AT].tolist())
    by_site = {call.site: call for call in (*mine, *others)}
    names = {site: (source.variable(call), evidence.spot(site)[0])
             for site, call in by_site.items()}  # fmt: skip
    pairs = {
        (lost.site, other.site): (lost, other)
        for lost in reversed(mine) for other in reversed(others)
        if other.index > lost.index and names[lost.site] == names[other.site]
    }  # fmt: skip
    for lost, other in reversed(pairs.values()):
        name = names[lost.site][0]
        if name and _is_same(source, name, lost, other):
            return name, lost, other
    return None


def _is_same(source, name, lost, other):
    """Is `name` the same place for both calls? requests[i] is another one once i has changed."""
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


def _told_overwritten(evidence, name, lost, other):
    here, there = evidence.line(lost), evidence.line(other)
    by = f"line {there}" if there != here else "the next round of the loop"
    hint = (
        f"{name} was overwritten by {by} while the request of line {here} was still active, so "
        f"nobody can wait for that one any more. {OWN_ELEMENT}."
    )
    return Reason(hint, _place(evidence, other, f"{name} is overwritten here"), True)


def _too_few(evidence, waits):
    wait = next((w for w in reversed(waits) if w.name == "MPI_Waitall"), waits[-1])
    records = evidence.ranks[wait.rank].records
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


def _place(evidence, call, label):
    place = evidence.place(call.site, label)
    return () if place is None else (place,)
