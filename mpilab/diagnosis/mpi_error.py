"""MPI errors: the first call that failed, with its arguments, and what is wrong with them."""

from dataclasses import replace

import numpy as np

from mpilab.diagnosis import error_classes, words
from mpilab.diagnosis.evidence import partner
from mpilab.diagnosis.model import MPI_ERROR, Diagnosis, Table
from mpilab.recording import ANY, NONBLOCKING
from mpilab.traffic import EXCHANGES

# class -> (pattern, what is wrong, what to do)
MEANINGS = {
    "MPI_ERR_TRUNCATE": (
        "message truncated", "the message is longer than the receive has room for",
        "Compare count and datatype of the receive with those of the send: the receive may have "
        "more room than comes, never less."),
    "MPI_ERR_RANK": (
        "a rank that does not exist", "there is no such rank in the communicator",
        "Ranks go from 0 to size - 1. Look at rank + 1 and rank - 1 at both ends: "
        "(rank + 1) % size, (rank - 1 + size) % size, or MPI_PROC_NULL for nobody."),
    "MPI_ERR_COUNT": (
        "invalid count", "the count is negative",
        "A count is a number of elements, 0 or more. Look at the subtraction that it comes from."),
    "MPI_ERR_TYPE": (
        "invalid datatype", "the datatype cannot be used",
        "A new datatype has to be committed with MPI_Type_commit before it is used, and not freed "
        "before that. With MPI_IN_PLACE, sendtype means nothing: take recvtype."),
    "MPI_ERR_COMM": (
        "invalid communicator", "the communicator is not, or no longer, valid",
        "It is MPI_COMM_NULL, was freed already, or was never made: MPI_Comm_split with "
        "MPI_UNDEFINED gives MPI_COMM_NULL."),
    "MPI_ERR_REQUEST": (
        "invalid request", "the request cannot be used",
        "A request has to come from a call that starts something, and to be complete before it "
        "is started or given away again."),
    "MPI_ERR_TAG": (
        "invalid tag", "the tag cannot be used",
        "A tag is 0 or more; MPI_ANY_TAG is for receives only."),
    "MPI_ERR_ROOT": (
        "invalid root", "there is no such root in the communicator",
        "The root is a rank of the communicator, from 0 to size - 1."),
    "MPI_ERR_BUFFER": (
        "invalid buffer", "the buffer is no memory",
        "The pointer is NULL, or MPI_IN_PLACE where MPI does not take it. Was it allocated?"),
    "MPI_ERR_TOPOLOGY": (
        "", "the communicator has no such topology",
        "MPI_Cart_shift and the like need a communicator made by MPI_Cart_create."),
    "MPI_ERR_OP": ("", "the operation does not fit the datatype", "Look at the MPI_Op argument."),
    "MPI_ERR_ARG": ("", "an argument is not valid", "Look at the arguments one by one."),
    "MPI_ERR_NO_MEM": ("", "there was no memory left", "Look at how much the kernel allocates."),
}  # fmt: skip
SHOWN = 4


def mpi_error(evidence):
    """The Diagnosis of the earliest call that returned an error; None where none did."""
    failed = _failures(evidence)
    if not failed:
        return None
    call, waiting = failed[0]
    name = error_classes.name(call.error)
    pattern, meaning, hint = MEANINGS.get(name, ("", "", ""))
    meaning = _truncation(call) or meaning if name == "MPI_ERR_TRUNCATE" else meaning
    if name == "MPI_ERR_TYPE" and evidence.result.case.in_place:
        hint = hint.rpartition("With ")[1] + hint.rpartition("With ")[2]
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
        places=(*evidence.places(same, "call it here"), *evidence.places(begun, "started it here")),
        tables=tuple(filter(None, (_arguments(evidence, [c for c, _ in failed]),
                                   evidence.last_calls(call.rank)))),
        notes=_others(evidence, failed),
    )  # fmt: skip


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
    codes = sorted(set(returned.values()))
    known = error_classes.NAMES.get(codes[0])
    code = f"error code {codes[0]}" + (f" ({known})" if known else "")
    rest = ", among others" if len(codes) > 1 else ""
    return Diagnosis(
        MPI_ERROR,
        f"the kernel returned {code} on {words.ranks(returned)}{rest}",
        hint="No recorded MPI call failed: look at what the kernel itself returns. Is a variable "
        "such as err set on every way to the return?",
        ranks=tuple(sorted(returned)),
    )


def with_table_of_ranks(diagnosis, evidence):
    """The same diagnosis, with what each rank did when all stood still."""
    tables = (diagnosis.tables[0], evidence.doing(), *diagnosis.tables[1:])
    stuck = evidence.stuck
    note = f"Then {words.ranks(stuck)} waited for ever." if stuck else ""
    return replace(diagnosis, tables=tables,
                   notes=(*filter(None, (note,)), *diagnosis.notes))  # fmt: skip


def _failures(evidence):
    """[(the call that went wrong, the call that said so)], each once, the earliest first: a wait
    tells of its requests' errors, and a send-receive is two records."""
    found, told = [], set()
    for call in evidence.failed():
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
        "MPI_ERR_RANK": lambda c: c.peer < (0 if c.sends else ANY),
        "MPI_ERR_TAG": lambda c: c.tag < (0 if c.sends else ANY),
        "MPI_ERR_COUNT": lambda c: c.count < 0,
        "MPI_ERR_TYPE": lambda c: c.count > 0 and c.bytes == 0,
    }.get(error_classes.name(call.error), lambda c: c.sends)
    return receive if is_wrong(receive) and not is_wrong(send) else send


def _truncation(call):
    """'the message from rank 0 (tag 3) has 40 bytes, the receive has room for 4', or ''."""
    if not call.receives or call.got_bytes <= call.bytes:
        return ""
    source = f" from rank {call.got_peer}" if call.got_peer >= 0 else ""
    return (
        f"the message{source} (tag {call.got_tag}) has {words.number(call.got_bytes, 'byte')}, "
        f"the receive has room for {call.bytes}"
    )


def _arguments(evidence, calls):
    """Table of calls with their arguments."""
    rows = tuple(
        (call.rank, evidence.name(call), *partner(call)[:2], *_amount(call),
         evidence.line(call) or "", error_classes.name(call.error))
        for call in calls[:SHOWN]
    )  # fmt: skip
    columns = ("rank", "call", "peer", "tag", "count", "bytes", "line", "error")
    return Table(
        "The calls that failed" if len(rows) > 1 else "The call that failed", columns, rows
    )


def _amount(call):
    """(count, bytes) of a call that carries data."""
    if not (call.sends or call.receives or call.collective):
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
