"""MPI errors: the first call that failed, its arguments, and what is wrong with them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from mpilab.cases.case import Case
from mpilab.diagnosis import collectives, model, requests
from mpilab.diagnosis.evidence import Evidence, partner
from mpilab.diagnosis.model import MPI_ERROR, Diagnosis, Place, Table
from mpilab.trace.matching import EXCHANGES
from mpilab.trace.recording import ANY, NOBODY, NONBLOCKING, RECEIVES, SENDS, WAITS, Call

# Errors of file calls. By default, file calls return their errors (MPI 4.1, section 14.7), so a
# kernel that ignores return codes continues without any data.

_MODES = "MPI_MODE_RDONLY, MPI_MODE_WRONLY and MPI_MODE_RDWR"

# class -> (pattern, what is wrong, what to do)
FILE_MEANINGS = {
    "MPI_ERR_NO_SUCH_FILE": (
        "no such file",
        "there is no file of this name",
        "Is the path correct relative to the directory in which the ranks run? MPI_MODE_CREATE "
        "creates the file if it is missing.",
    ),
    "MPI_ERR_FILE": (
        "invalid file",
        "the file handle is not, or no longer, valid",
        "It is MPI_FILE_NULL: the file was closed already, or MPI_File_open failed and its "
        "return value was ignored.",
    ),
    "MPI_ERR_AMODE": (
        "invalid access mode",
        "the access modes cannot be combined",
        f"Use exactly one of {_MODES}, and the same modes on all ranks; MPI_MODE_RDONLY excludes "
        "MPI_MODE_CREATE and MPI_MODE_EXCL.",
    ),
    "MPI_ERR_ACCESS": (
        "no access to the file",
        "the file may not be opened or used in this way",
        f"Compare the access mode of MPI_File_open ({_MODES}) with the call, and look at the "
        "permissions of the file.",
    ),
    "MPI_ERR_READ_ONLY": (
        "no access to the file",
        "the file was opened for reading only",
        "To write to a file, open it with MPI_MODE_WRONLY or MPI_MODE_RDWR.",
    ),
    "MPI_ERR_FILE_EXISTS": (
        "",
        "a file of this name already exists",
        "MPI_MODE_EXCL requires a new file: delete the old one, or drop the mode.",
    ),
    "MPI_ERR_FILE_IN_USE": (
        "",
        "the file is still open somewhere",
        "Close it on all ranks before you delete it.",
    ),
    "MPI_ERR_BAD_FILE": ("", "the name of the file cannot be used", "Is it empty, or too long?"),
    "MPI_ERR_NO_SPACE": ("", "the disk is full", "The kernel is not at fault: free some space."),
    "MPI_ERR_QUOTA": (
        "",
        "the disk quota is exceeded",
        "The kernel is not at fault: free some space.",
    ),
    "MPI_ERR_IO": (
        "",
        "the operating system reported an error",
        "Look at the offset and the size that the call asks for, then at the disk.",
    ),
    "MPI_ERR_UNSUPPORTED_OPERATION": (
        "",
        "the file does not support this operation",
        "The view or file pointer does not match the access mode.",
    ),
    "MPI_ERR_INFO": (
        "",
        "the info object is not, or no longer, valid",
        "Create it with MPI_Info_create and free it after its last use, or pass MPI_INFO_NULL.",
    ),
    "MPI_ERR_INFO_KEY": ("", "the key of the hint is too long", "Look at the names of the hints."),
    "MPI_ERR_INFO_VALUE": ("", "the value of the hint is too long", "A value is a short string."),
}
VIEW = (
    "invalid view",
    "the view is not valid",
    "The displacement is in bytes, 0 or more; the filetype must consist of whole etypes, at "
    "displacements that never decrease; both types must be committed.",
)
NEGATIVE = (
    "negative offset",
    "",
    "An offset counts the etypes of the view (bytes, if no view was set) from its beginning, 0 "
    "or more. Check the subtraction that it comes from, and whether an int overflowed: use "
    "MPI_Offset.",
)


def file_error_explained(call: Call, name: str) -> tuple[str, str, str] | None:
    """(pattern, what is wrong, what to do) for a file call that failed with the error class `name`;
    None for other calls, or if the class has no special meaning for files."""
    if not call.name.startswith("MPI_File_"):
        return None
    if call.name == "MPI_File_set_view" and name in ("MPI_ERR_ARG", "MPI_ERR_OTHER"):
        return VIEW
    if "_at" in call.name and call.offset < 0 and name in ("MPI_ERR_ARG", "MPI_ERR_OTHER"):
        pattern, _, hint = NEGATIVE
        return pattern, f"the offset is {call.offset}", hint
    return FILE_MEANINGS.get(name)


# Ranks that do not exist: the number given, and how it may have been computed.

HINT = (
    "Ranks go from 0 to size - 1. Look at rank + 1 and rank - 1 at both ends: "
    "(rank + 1) % size, (rank - 1 + size) % size, or MPI_PROC_NULL for no partner."
)
BELOW = (
    "In C, rank - i is negative if i is larger than rank, and so is (rank - i) % size. Write "
    "(rank - i + size) % size, or MPI_PROC_NULL for no partner."
)
ABOVE = (
    "The last rank is size - 1. Write (rank + i) % size, or skip the call if there is no such "
    "rank; its partner must skip the matching call, too."
)
ANOTHER = (
    "Every communicator numbers its ranks from 0, and this one has fewer than comm: query it with "
    "MPI_Comm_rank and MPI_Comm_size, or make the call on comm."
)
OF_GROUP = (
    "The ranks are those of the first group, from 0 to its size - 1. Does that group have as many "
    "processes as you expect, and is it the right one?"
)
FROM_ROOT = (
    "If you count ranks from the root with rank ^ root, use (rank - root + size) % size, and "
    "(place + root) % size for the way back: they are right for any size."
)
KIT_TAG = 2047  # TAG in src_c/include/mpilab.h
MAKERS = tuple(f"MPI_Comm_{n}" for n in ("dup", "split", "split_type", "create", "create_group"))


def given(call: Call) -> int | None:
    """The number that a Call gave for a rank that does not exist; None if it gave none.

    It is a rank in the communicator of the call, unlike the ranks in other calls.
    """
    if call.peer == NOBODY and call.members > 0:
        return call.got_peer
    return ANY if call.sends and call.peer == ANY else None


def no_such_rank_meaning(evidence: Evidence, call: Call) -> str:
    """'there is no rank 6, only ranks 0 to 5', or '' if the number is unknown."""
    number = given(call)
    if number is None:
        return ""
    size = _size(evidence, call)
    there_are = {1: "rank 0", 2: "ranks 0 and 1"}.get(size, f"ranks 0 to {size - 1}")
    where = " in its communicator" if size < evidence.size else ""
    return f"there is no rank {number}{where}, only {there_are}"


def no_such_rank_hint(evidence: Evidence, call: Call) -> str:
    """What to check, depending on the number given."""
    number, size = given(call), _size(evidence, call)
    if evidence.name(call).startswith("MPI_Group_"):
        return OF_GROUP
    if number is None:
        return HINT
    if _is_swapped(evidence, call):
        return (
            f"{KIT_TAG} is TAG: it stands where the rank should be, and the rank where the tag "
            "should be. The rank comes first: …, datatype, rank, tag, comm."
        )
    if number < 0:
        return BELOW
    if size < evidence.size:
        return ANOTHER
    if size & (size - 1) and _flips_a_bit(evidence, call):
        hint = (
            "The calls of this line go to ranks that differ from their own in one bit, as "
            "rank ^ dist does. With dist = 1, 2, 4, …, all of these exist only if size is a power "
            f"of two, and {size} is not. If you skip the step where the partner is not below "
            "size, on both sides, some ranks may need their data from another rank."
        )
        return f"{hint} {FROM_ROOT}" if evidence.result.case.root else hint
    return ABOVE


def _is_swapped(evidence: Evidence, call: Call) -> bool:
    """Whether a call with a rank that does not exist has a tag for a rank, and a rank for a tag."""
    # A negative tag is MPI_PROC_NULL, or another constant for a rank.
    return given(call) == KIT_TAG and call.tag < _size(evidence, call)


def notes(evidence: Evidence, call: Call) -> tuple[str, ...]:
    """Sentences on numbers passed in the same line that happen to be valid constants."""
    if given(call) is None:
        return ()
    peers = set()
    for rank in evidence.ranks:
        if rank is not None:
            chosen = (rank.records["site"] == call.site) & (rank.records["flags"] & RECEIVES != 0)
            chosen &= (rank.records["members"] == 0) & (rank.records["error"] == 0)
            peers.update(np.unique(rank.records["peer"][chosen]).tolist())
    if ANY not in peers or not any(peer >= 0 for peer in peers):
        return ()
    found = {"-1": "MPI_ANY_SOURCE", **({"-2": "MPI_PROC_NULL"} if NOBODY in peers else {})}
    are = "it is" if len(found) == 1 else "they are"
    return (
        f"The same line also yielded {' and '.join(found)}, which MPI accepts: {are} "
        f"{' and '.join(found.values())} as well.",
    )


def makers(evidence: Evidence, call: Call) -> list[Call]:
    """[Call] that created the smaller communicator of `call`, if it can be identified."""
    if given(call) is None or _size(evidence, call) >= evidence.size:
        return []
    made = [one for one in evidence.calls(call.rank, range(call.index)) if one.name in MAKERS]
    return made[:1] if len({one.site for one in made}) == 1 else []


def _size(evidence: Evidence, call: Call) -> int:
    return call.members if call.members > 0 else evidence.size


def _flips_a_bit(evidence: Evidence, call: Call) -> bool:
    """Whether all calls of this line go to a rank that differs in one bit, like rank ^ dist."""
    flips: set[int] = set()
    for number, rank in enumerate(evidence.ranks):
        if rank is not None:
            same = rank.records[rank.records["site"] == call.site]
            peers = np.where(same["peer"] == NOBODY, same["got_peer"], same["peer"])
            flips.update(int(peer) ^ number for peer in np.unique(peers))
    return bool(flips) and all(flip > 0 and flip & (flip - 1) == 0 for flip in flips)


# What each error class means, in a student's terms, and what to do.

# class -> (pattern, what is wrong, what to do)
MEANINGS = {
    "MPI_ERR_TRUNCATE": (
        "message truncated",
        "the message is longer than the receive allows",
        "Compare count and datatype of the receive with those of the send: the receive may have "
        "more room than the message needs, never less.",
    ),
    "MPI_ERR_RANK": (
        "a rank that does not exist",
        "there is no such rank in the communicator",
        HINT,
    ),
    "MPI_ERR_COUNT": (
        "invalid count",
        "the count is negative",
        "A count is a number of elements, 0 or more. Check the subtraction that it comes from.",
    ),
    "MPI_ERR_TYPE": (
        "invalid datatype",
        "the datatype cannot be used",
        "A new datatype must be committed with MPI_Type_commit before its first use, and freed "
        "only after its last.",
    ),
    "MPI_ERR_COMM": (
        "invalid communicator",
        "the communicator is not, or no longer, valid",
        "It is MPI_COMM_NULL, was already freed, or was never created: MPI_Comm_split with "
        "MPI_UNDEFINED returns MPI_COMM_NULL.",
    ),
    "MPI_ERR_REQUEST": (
        "invalid request",
        "the request cannot be used",
        "A request must come from a call that starts an operation, and must be complete before "
        "you start or pass it again.",
    ),
    "MPI_ERR_TAG": (
        "invalid tag",
        "the tag cannot be used",
        "A tag is 0 or more; MPI_ANY_TAG is for receives only.",
    ),
    "MPI_ERR_ROOT": (
        "invalid root",
        "there is no such root in the communicator",
        "The root is a rank of the communicator, from 0 to size - 1.",
    ),
    "MPI_ERR_BUFFER": (
        "invalid buffer",
        "the buffer is not a valid address",
        "The pointer is NULL, or MPI_IN_PLACE where MPI does not accept it. Was it allocated?",
    ),
    "MPI_ERR_TOPOLOGY": (
        "",
        "the communicator has no such topology",
        "MPI_Cart_shift and the like need a communicator made by MPI_Cart_create.",
    ),
    "MPI_ERR_OP": ("", "the operation does not fit the datatype", "Look at the MPI_Op argument."),
    "MPI_ERR_ARG": ("", "an argument is not valid", "Look at the arguments one by one."),
    "MPI_ERR_NO_MEM": ("", "memory ran out", "Check how much the kernel allocates."),
}
# What is wrong with a buffered send, and what to do.
NO_ROOM = (
    "the message does not fit into the attached buffer",
    "Attach a buffer with MPI_Buffer_attach before the first buffered send. It needs room for each "
    "message that may be under way: its size by MPI_Pack_size, plus MPI_BSEND_OVERHEAD.",
)
IN_PLACE_HINT = (
    "With MPI_IN_PLACE, sendcount and sendtype are ignored: use recvcount, recvtype and the "
    "rank's own block in recvbuf."
)
# Calls that a kernel must not make -> (what is wrong, what to do)
NOT_FOR_KERNELS = {
    "MPI_Init": (
        "MPI is already initialized when a kernel is called",
        "Remove MPI_Init: the program around the kernel has called it once for all kernels.",
    ),
    "MPI_Init_thread": (
        "MPI is already initialized when a kernel is called",
        "Remove MPI_Init_thread: the program around the kernel has initialized MPI once for all "
        "kernels.",
    ),
    "MPI_Finalize": (
        "a kernel must not end MPI",
        "Remove MPI_Finalize: the program around the kernel calls it at the end.",
    ),
}
AROUND_MPI = "MPI initialized or finalized in a kernel"


def explained(evidence: Evidence, call: Call, waiting: Call, name: str) -> tuple[str, str, str]:
    """(pattern, what is wrong, what to do) for a call that failed with the error class `name`."""
    if (forbidden := evidence.name(call)) in NOT_FOR_KERNELS:
        return AROUND_MPI, *NOT_FOR_KERNELS[forbidden]
    if (of_file := file_error_explained(call, name)) is not None:
        return of_file
    pattern, meaning, hint = MEANINGS.get(name, ("", "", ""))
    if name == "MPI_ERR_TRUNCATE":
        meaning = _truncation(call) or meaning
    elif name == "MPI_ERR_RANK":
        meaning = no_such_rank_meaning(evidence, call) or meaning
        hint = no_such_rank_hint(evidence, call)
        if _is_swapped(evidence, call):
            pattern = "rank and tag swapped"
    elif name == "MPI_ERR_REQUEST" and (why := requests.unusable(evidence, waiting)):
        pattern = why.pattern if why.pattern != requests.UNSET else pattern
        meaning, hint = why.meaning, why.hint
    elif name == "MPI_ERR_TYPE" and _no_send_type(evidence.result.case):
        hint = IN_PLACE_HINT
    elif name == "MPI_ERR_BUFFER" and call.name in ("MPI_Bsend", "MPI_Ibsend"):
        meaning, hint = NO_ROOM
    elif name == "MPI_ERR_BUFFER":
        hint = collectives.null_buffer(evidence.result.case, call.rank) or hint
    elif name == "MPI_ERR_COUNT" and call.count < 0:
        meaning = f"the count is {call.count}"
    elif name == "MPI_ERR_TAG" and (call.sends or call.receives):
        meaning = f"the tag is {call.tag}"
        meaning += ", MPI_ANY_TAG, which is for receives only" if call.tag == ANY else ""
    return pattern, meaning, hint


def _no_send_type(case: Case) -> bool:
    """Whether sendtype is MPI_DATATYPE_NULL (src_c/runtime/harness/allgather.c, alltoallv.c)."""
    return case.in_place and case.collective in ("allgather", "alltoallv")


def _truncation(call: Call) -> str:
    """'the message from rank 0 (tag 3) has 40 bytes, but the receive has room for 4', or ''."""
    if not call.receives or call.got_bytes <= call.bytes:
        return ""
    source = f" from rank {call.got_peer}" if call.got_peer >= 0 else ""
    return (
        f"the message{source} (tag {call.got_tag}) has {model.number(call.got_bytes, 'byte')}, "
        f"but the receive has room for {call.bytes}"
    )


# Errors that other ranks get after one has died; their calls are not at fault.
NO_FAULT = frozenset(
    model.NUMBERS[f"MPI_ERR_{name}"]
    for name in ("PROC_ABORTED", "PROC_FAILED", "PROC_FAILED_PENDING", "REVOKED")
)
SHOWN = 4


def mpi_error(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of the earliest call that returned an error; None if none did."""
    failed = _in_order(_failures(evidence))
    if not failed:
        return None
    call, waiting = failed[0]
    name = model.class_name(call.error)
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
        places=(
            *evidence.places(same, "call it here"),
            *evidence.places(begun, "started it here"),
            *_makers(evidence, call, name),
            *_senders(evidence, call, name),
        ),
        tables=tuple(
            filter(
                None, (_arguments(evidence, [c for c, _ in failed]), evidence.last_calls(call.rank))
            )
        ),
        notes=(
            *(notes(evidence, call) if name == "MPI_ERR_RANK" else ()),
            *_others(evidence, failed),
        ),
    )


def _senders(evidence: Evidence, call: Call, name: str) -> tuple[Place, ...]:
    """The place where the message was sent for which the receive has no room, if one is known."""
    if name != "MPI_ERR_TRUNCATE" or not call.receives or call.peer < 0:
        return ()
    sender = evidence.ranks[call.peer] if call.peer < evidence.size else None
    if sender is None:
        return ()
    records = sender.records
    chosen = (records["flags"] & SENDS != 0) & (records["peer"] == call.rank)
    chosen &= (records["communicator"] == call.communicator) & (records["bytes"] > call.bytes)
    sent = [
        one
        for one in evidence.calls(call.peer, np.flatnonzero(chosen).tolist())
        if call.tag in (ANY, one.tag)
    ]
    if len({one.site for one in sent}) != 1 or evidence.spot(sent[0].site) == evidence.spot(
        call.site
    ):
        return ()
    return evidence.places(sent[:1], f"have sent {model.number(sent[0].bytes, 'byte')} here")


def _makers(evidence: Evidence, call: Call, name: str) -> tuple[Place, ...]:
    """Places where the communicator that lacks the requested rank was created."""
    made = makers(evidence, call) if name == "MPI_ERR_RANK" else []
    return evidence.places(made, "create the communicator here")


def fatal_error(evidence: Evidence, rank: int | None, name: str) -> Diagnosis:
    """The Diagnosis of an error that ended the run; Open MPI calls it `name`."""
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


NO_MEMORY_HINT = (
    "The kernel itself returned this, as after a malloc that gave NULL: how many bytes does it ask "
    "for, and does it test the pointer that it has just allocated?"
)


def returned_code(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of a kernel that returned an error although no call did; None if it is 0."""
    returned = {o.rank: o.returned for o in evidence.result.outputs if o.returned}
    if not returned:
        return None
    codes = set(returned.values())
    code = next(iter(codes)) if len(codes) == 1 else None
    known = None if code is None else model.NAMES.get(code)
    hint = (
        "No recorded MPI call failed: check what the kernel itself returns. Is a variable such as "
        "err set on every path to the return?"
    )
    if len(returned) > 1 and all(rank == value for rank, value in returned.items()):
        what = f"{model.ranks(returned)} returned {model.runs(codes)}: their own rank"
        hint = "A kernel returns MPI_SUCCESS or the error code of a call, not its rank."
    elif code is not None:
        if known == "MPI_ERR_NO_MEM":
            hint = NO_MEMORY_HINT
        named = f" ({known})" if known else ""
        what = f"the kernel returned error code {code}{named} on {model.ranks(returned)}"
        if code == evidence.size and len(returned) == evidence.size:
            hint = f"{code} is also the number of ranks: a kernel returns MPI_SUCCESS, not size."
    else:
        shown = [f"{value} on rank {rank}" for rank, value in sorted(returned.items())]
        more = ", …" if len(shown) > SHOWN else ""
        what = f"the kernel returned error codes: {', '.join(shown[:SHOWN])}{more}"
    return Diagnosis(MPI_ERROR, what, hint=hint, ranks=tuple(sorted(returned)))


def with_table_of_ranks(diagnosis: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The same diagnosis, with a table of what each rank was doing when progress stopped."""
    tables = (diagnosis.tables[0], evidence.doing(), *diagnosis.tables[1:])
    stuck = evidence.stuck
    note = f"Then {model.ranks(stuck)} waited forever." if stuck else ""
    return replace(diagnosis, tables=tables, notes=(*filter(None, (note,)), *diagnosis.notes))


def with_crash(diagnosis: Diagnosis, sentence: str, places: Iterable[Place]) -> Diagnosis:
    """The same diagnosis of a failed call, with places and a sentence on how the run ended."""
    shown = {(place.file, place.line) for place in diagnosis.places}
    more = tuple(place for place in places if (place.file, place.line) not in shown)
    return replace(diagnosis, places=(*diagnosis.places, *more), notes=(sentence, *diagnosis.notes))


def never_started(evidence: Evidence, rank: int) -> str:
    """' A call that fails starts no request: ...' if `rank` ended in a wait for such requests, or
    ''."""
    last = evidence.last_call(rank)
    if last is None or last.end_ns or not last.flags & WAITS:
        return ""
    lost = any(c.rank == rank and c.flags & NONBLOCKING for c in evidence.failed())
    why = requests.unusable(evidence, last)
    if not lost or why is None or why.pattern != requests.UNSET:
        return ""
    return f" A failed call starts no request: {last.name} was given one that was never set."


def _in_order(failed: Sequence[tuple[Call, Call]]) -> list[tuple[Call, Call]]:
    """Move the failures with the call, line and error of the earliest one to the front.

    Each rank's first failure leads, the lowest rank first: their order in time is random."""
    if not failed:
        return []

    def kind(call: Call) -> tuple[str, int, int]:
        return call.name, call.site, call.error

    seen: Counter[int] = Counter()
    keys = []
    for call, _ in failed:
        is_same = kind(call) == kind(failed[0][0])
        keys.append((False, seen[call.rank], call.rank) if is_same else (True, 0, 0))
        seen[call.rank] += is_same
    order = sorted(range(len(failed)), key=keys.__getitem__)
    return [failed[i] for i in order]


def _failures(evidence: Evidence) -> list[tuple[Call, Call]]:
    """[(call that failed, call that reported it)], each once, the earliest first.

    A wait reports the errors of its requests, and a send-receive is two records."""
    found: list[tuple[Call, Call]] = []
    told: set[tuple[int, int]] = set()
    for call in evidence.failed():
        if call.error in NO_FAULT:
            continue
        culprits = [
            c for c in _requests(evidence, call) if c.error not in (model.IN_STATUS, model.PENDING)
        ]
        for culprit in [_half(evidence, c) for c in culprits] or [_half(evidence, call)]:
            waiting = _told_by(evidence, culprit) if not culprits else call
            if (culprit.rank, culprit.index) not in told:
                told.add((culprit.rank, culprit.index))
                found.append((culprit, waiting))
    return found


def _requests(evidence: Evidence, waiting: Call) -> list[Call]:
    """The failed calls whose requests `waiting` waited for."""
    records = evidence.recorded(waiting.rank).records
    asked = np.flatnonzero((records["waiter"] == waiting.index) & (records["error"] != 0))
    return evidence.calls(waiting.rank, asked[:SHOWN].tolist())


def _told_by(evidence: Evidence, call: Call) -> Call:
    """The wait that reported the error of the request that `call` started, or `call`."""
    records = evidence.recorded(call.rank).records
    if (
        call.flags & NONBLOCKING
        and 0 <= call.waiter < len(records)
        and (records["error"][call.waiter] != 0)
    ):
        return evidence.calls(call.rank, [call.waiter])[0]
    return call


def _half(evidence: Evidence, call: Call) -> Call:
    """Of the two records of a send-receive, the one whose arguments caused the error."""
    if call.name not in EXCHANGES:
        return call
    step = 1 if call.sends else -1
    records = evidence.recorded(call.rank).records
    if not 0 <= call.index + step < len(records):
        return call
    other = evidence.calls(call.rank, [call.index + step])[0]
    if other.name != call.name or other.site != call.site or other.sends == call.sends:
        return call
    send, receive = (call, other) if call.sends else (other, call)
    is_wrong = {
        "MPI_ERR_TRUNCATE": lambda c: c.receives,
        "MPI_ERR_RANK": lambda c: given(c) is not None,
        "MPI_ERR_TAG": lambda c: c.tag < (0 if c.sends else ANY),
        "MPI_ERR_COUNT": lambda c: c.count < 0,
        "MPI_ERR_TYPE": lambda c: c.count > 0 and c.bytes == 0,
    }.get(model.class_name(call.error), lambda c: c.sends)
    return receive if is_wrong(receive) and not is_wrong(send) else send


def _arguments(evidence: Evidence, calls: Sequence[Call]) -> Table:
    """Table of calls with their arguments."""
    rows = tuple(
        (
            call.rank,
            evidence.name(call),
            *_partner(call),
            *_amount(call),
            evidence.line(call) or "",
            model.class_name(call.error),
        )
        for call in calls[:SHOWN]
    )
    columns = ("rank", "call", "peer", "tag", "count", "bytes", "line", "error")
    return Table(
        "The calls that failed" if len(rows) > 1 else "The call that failed", columns, rows
    )


def _partner(call: Call) -> tuple[str | int, str | int]:
    """(peer, tag) of a call, with the number given for a rank that does not exist."""
    peer, tag, _ = partner(call)
    number = given(call)
    if call.error == model.NUMBERS["MPI_ERR_RANK"] and number is not None:
        peer = f"{'to' if call.sends else 'from'} {number}"
    return peer, tag


def _amount(call: Call) -> tuple[str | int, str | int]:
    """(count, bytes) of a call that carries data."""
    if not (call.sends or call.receives or call.collective or call.moves_file):
        return "", ""
    return call.count, call.bytes


def _others(evidence: Evidence, failed: Sequence[tuple[Call, Call]]) -> tuple[str, ...]:
    """A note on errors of classes other than the first one's."""
    first = failed[0][0].error
    others = [(call, waiting) for call, waiting in failed if call.error != first]
    if not others:
        return ()
    call, waiting = others[0]
    return (
        f"After that, {evidence.name(waiting)} returned {model.class_name(call.error)} on "
        f"rank {call.rank}{evidence.at(waiting)}.",
    )
