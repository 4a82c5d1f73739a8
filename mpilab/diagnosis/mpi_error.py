"""MPI errors: the first call that failed, with its arguments, and what is wrong with them."""

from collections import Counter
from dataclasses import replace

import numpy as np

from mpilab.diagnosis import error_classes, no_such_rank, unset_requests, words
from mpilab.diagnosis.error_meanings import MEANINGS, explained
from mpilab.diagnosis.evidence import partner
from mpilab.diagnosis.model import MPI_ERROR, Diagnosis, Table
from mpilab.recording import ANY, NONBLOCKING, WAITS
from mpilab.traffic import EXCHANGES

# What other ranks are told when one has died: no call of theirs is at fault.
NO_FAULT = frozenset(
    error_classes.NUMBERS[f"MPI_ERR_{name}"]
    for name in ("PROC_ABORTED", "PROC_FAILED", "PROC_FAILED_PENDING", "REVOKED")
)
SHOWN = 4


def mpi_error(evidence):
    """The Diagnosis of the earliest call that returned an error; None where none did."""
    failed = _in_order(_failures(evidence))
    if not failed:
        return None
    call, waiting = failed[0]
    name = error_classes.name(call.error)
    pattern, meaning, hint = explained(evidence, call, waiting, name)
    where = f" in line {evidence.line(waiting)}" if evidence.line(waiting) else ""
    same = [w for c, w in failed if c.error == call.error]
    begun = [c for c, w in failed if c.error == call.error and c != w]
    ranks = dict.fromkeys(c.rank for c, _ in failed)
    return Diagnosis(
        MPI_ERROR,
        f"rank {call.rank}: {evidence.name(waiting)} returned {name}{where}"
        + (f": {meaning}" if meaning else ""),
        pattern=pattern,
        hint=hint,
        ranks=tuple(ranks),
        places=(*evidence.places(same, "call it here"), *evidence.places(begun, "started it here"),
                *_makers(evidence, call, name)),
        tables=tuple(filter(None, (_arguments(evidence, [c for c, _ in failed]),
                                   evidence.last_calls(call.rank)))),
        notes=(*(no_such_rank.notes(evidence, call) if name == "MPI_ERR_RANK" else ()),
               *_others(evidence, failed)),
    )  # fmt: skip


def _makers(evidence, call, name):
    """Places at which the communicator was made that does not have the rank asked for."""
    made = no_such_rank.makers(evidence, call) if name == "MPI_ERR_RANK" else []
    return evidence.places(made, "make the communicator here")


def fatal_error(evidence, rank, name):
    """The Diagnosis of an error that ended the run by itself, as Open MPI called it."""
    found = mpi_error(evidence)
    if found is not None:
        return found
    call = evidence.last_call(rank) if rank is not None else None
    pattern, meaning, hint = MEANINGS.get(name, ("", "", ""))
    who = f"rank {rank}" if rank is not None else "a rank"
    where = f" in line {evidence.line(call)}" if call is not None and evidence.line(call) else ""
    what = f": {call.name} failed with {name}{where}" if call is not None else f" met {name}"
    return Diagnosis(
        MPI_ERROR,
        f"{who}{what}" + (f": {meaning}" if meaning else ""),
        pattern=pattern,
        hint=hint,
        ranks=() if rank is None else (rank,),
        places=() if call is None else evidence.places([call], "call it here"),
        tables=() if rank is None else tuple(filter(None, (evidence.last_calls(rank),))),
    )


def returned_code(evidence):
    """The Diagnosis of a kernel that returned an error although no call did; None where it is 0."""
    returned = {o.rank: o.returned for o in evidence.result.outputs if o.returned}
    if not returned:
        return None
    codes = set(returned.values())
    (code,) = codes if len(codes) == 1 else (None,)
    known = error_classes.NAMES.get(code)
    hint = ("No recorded MPI call failed: look at what the kernel itself returns. Is a variable "
            "such as err set on every way to the return?")  # fmt: skip
    if len(returned) > 1 and all(rank == value for rank, value in returned.items()):
        what = f"{words.ranks(returned)} returned {words.runs(codes)}: their own rank"
        hint = "A kernel returns MPI_SUCCESS, or the error of a call; not its rank."
    elif code is not None:
        named = f" ({known})" if known else ""
        what = f"the kernel returned error code {code}{named} on {words.ranks(returned)}"
        if code == evidence.size and len(returned) == evidence.size:
            hint = f"{code} is the number of ranks, too: a kernel returns MPI_SUCCESS, not size."
    else:
        shown = [f"{value} on rank {rank}" for rank, value in sorted(returned.items())]
        more = ", …" if len(shown) > SHOWN else ""
        what = f"the kernel returned error codes: {', '.join(shown[:SHOWN])}{more}"
    return Diagnosis(MPI_ERROR, what, hint=hint, ranks=tuple(sorted(returned)))


def with_table_of_ranks(diagnosis, evidence):
    """The same diagnosis, with what each rank did when all stood still."""
    tables = (diagnosis.tables[0], evidence.doing(), *diagnosis.tables[1:])
    stuck = evidence.stuck
    note = f"Then {words.ranks(stuck)} waited for ever." if stuck else ""
    return replace(diagnosis, tables=tables,
                   notes=(*filter(None, (note,)), *diagnosis.notes))  # fmt: skip


def with_crash(diagnosis, sentence, places):
    """The same diagnosis of a call that failed, with how the run ended: a sentence, and where."""
    shown = {(place.file, place.line) for place in diagnosis.places}
    more = tuple(place for place in places if (place.file, place.line) not in shown)
    return replace(diagnosis, places=(*diagnosis.places, *more),
                   notes=(sentence, *diagnosis.notes))  # fmt: skip


def never_started(evidence, rank):
    """' A call that fails starts no request, ...' where `rank` ended in a wait for such requests,
    or ''."""
    last = evidence.last_call(rank)
    if last is None or last.end_ns or not last.flags & WAITS:
        return ""
    lost = any(c.rank == rank and c.flags & NONBLOCKING for c in evidence.failed())
    if not lost or not unset_requests.meaning(evidence, last):
        return ""
    return f" A call that fails starts no request: {last.name} was given one that was never set."


def _in_order(failed):
    """The earliest failure first, and beside it those of the same line: of each rank the first,
    the lowest rank first. Which of them came first in time is left to chance."""
    if not failed:
        return []

    def kind(call):
        return call.name, call.site, call.error

    seen, keys = Counter(), []
    for call, _ in failed:
        is_same = kind(call) == kind(failed[0][0])
        keys.append((False, seen[call.rank], call.rank) if is_same else (True, 0, 0))
        seen[call.rank] += is_same
    order = sorted(range(len(failed)), key=keys.__getitem__)
    return [failed[i] for i in order]


def _failures(evidence):
    """[(the call that went wrong, the call that said so)], each once, the earliest first: a wait
    tells of its requests' errors, and a send-receive is two records."""
    found, told = [], set()
    for call in evidence.failed():
        if call.error in NO_FAULT:
            continue
        culprits = [c for c in _requests(evidence, call)
                    if c.error not in (error_classes.IN_STATUS, error_classes.PENDING)]  # fmt: skip
        for culprit in [_half(evidence, c) for c in culprits] or [_half(evidence, call)]:
            waiting = _told_by(evidence, culprit) if not culprits else call
            if (culprit.rank, culprit.index) not in told:
                told.add((culprit.rank, culprit.index))
                found.append((culprit, waiting))
    return found


def _requests(evidence, waiting):
    """The failed calls whose requests `waiting` was about."""
    records = evidence.ranks[waiting.rank].records
    asked = np.flatnonzero((records["waiter"] == waiting.index) & (records["error"] != 0))
    return evidence.calls(waiting.rank, asked[:SHOWN].tolist())


def _told_by(evidence, call):
    """The wait that told of the error of the request that `call` had started, or `call`."""
    records = evidence.ranks[call.rank].records
    if (
        call.flags & NONBLOCKING
        and 0 <= call.waiter < len(records)
        and (records["error"][call.waiter] != 0)
    ):
        return evidence.calls(call.rank, [call.waiter])[0]
    return call


def _half(evidence, call):
    """Of the two records of a send-receive, the one whose arguments the error is about."""
    if call.name not in EXCHANGES:
        return call
    step = 1 if call.sends else -1
    records = evidence.ranks[call.rank].records
    if not 0 <= call.index + step < len(records):
        return call
    other = evidence.calls(call.rank, [call.index + step])[0]
    if other.name != call.name or other.site != call.site or other.sends == call.sends:
        return call
    send, receive = (call, other) if call.sends else (other, call)
    is_wrong = {
        "MPI_ERR_TRUNCATE": lambda c: c.receives,
        "MPI_ERR_RANK": lambda c: no_such_rank.given(c) is not None,
        "MPI_ERR_TAG": lambda c: c.tag < (0 if c.sends else ANY),
        "MPI_ERR_COUNT": lambda c: c.count < 0,
        "MPI_ERR_TYPE": lambda c: c.count > 0 and c.bytes == 0,
    }.get(error_classes.name(call.error), lambda c: c.sends)
    return receive if is_wrong(receive) and not is_wrong(send) else send


def _arguments(evidence, calls):
    """Table of calls with their arguments."""
    rows = tuple(
        (call.rank, evidence.name(call), *_partner(call), *_amount(call),
         evidence.line(call) or "", error_classes.name(call.error))
        for call in calls[:SHOWN]
    )  # fmt: skip
    columns = ("rank", "call", "peer", "tag", "count", "bytes", "line", "error")
    return Table(
        "The calls that failed" if len(rows) > 1 else "The call that failed", columns, rows
    )


def _partner(call):
    """(peer, tag) of a call, with the number of a rank that does not exist."""
    peer, tag, _ = partner(call)
    number = no_such_rank.given(call)
    if call.error == error_classes.NUMBERS["MPI_ERR_RANK"] and number is not None:
        peer = f"{'to' if call.sends else 'from'} {number}"
    return peer, tag


def _amount(call):
    """(count, bytes) of a call that carries data."""
    if not (call.sends or call.receives or call.collective or call.moves_file):
        return "", ""
    return call.count, call.bytes


def _others(evidence, failed):
    """A note on errors of other classes than the first one."""
    first = failed[0][0].error
    others = [(call, waiting) for call, waiting in failed if call.error != first]
    if not others:
        return ()
    call, waiting = others[0]
    return (f"After that, {evidence.name(waiting)} returned {error_classes.name(call.error)} on "
            f"rank {call.rank}{evidence.at(waiting)}.",)  # fmt: skip
