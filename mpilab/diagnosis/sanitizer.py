"""Explain the reports of sanitizers, as mpilab.trace.sanitizer reads them."""

from dataclasses import replace

from mpilab.diagnosis import collectives, memory, mpi_error, requests
from mpilab.diagnosis.crash import IN_PLACE
from mpilab.diagnosis.model import SANITIZER, Diagnosis, Place
from mpilab.diagnosis.model import class_name as error_name
from mpilab.trace.sanitizer import (
    DIVISION_BY_ZERO,
    FIRST_PAGE,
    HEAP_CORRUPTED,
    NOT_YOURS,
    NULL_POINTER,
    OUT_OF_BOUNDS,
    STACK_EXHAUSTED,
    UNDEFINED,
    USE_AFTER_FREE,
)

_HINTS = {
    OUT_OF_BOUNDS: "Count how many elements the buffer holds and how many this line touches: the "
    "first index is 0, the last is one less than the number of elements.",
    USE_AFTER_FREE: "Memory must not be touched after free(), nor freed twice, nor used after the "
    "function or block that it belongs to has ended. A request that is still active counts as a "
    "user: complete it before you free its buffer.",
    NULL_POINTER: "A pointer here is NULL, or was computed from NULL. Was the memory allocated on "
    "every rank, and did malloc() succeed?",
    NOT_YOURS: "The pointer holds no valid address: look at how it was computed.",
    STACK_EXHAUSTED: "The recursion does not end, or an array in a function is too large: use "
    "malloc() for large arrays.",
    HEAP_CORRUPTED: "free() takes only what malloc() has returned, and each of it once. The send "
    "and the receive buffer belong to the caller.",
    DIVISION_BY_ZERO: "Look at what the divisor is for this number of ranks.",
}


def diagnose_report(rank, report, source_line):
    """The Diagnosis of a Report on `rank`; source_line(file, line) gives the text of a line."""
    places = []
    if report.frames:
        label = f"rank {rank} {_verb(report)} here"
        places.append(_place(report.frames[0], label, source_line, report.column))
        places += [
            _place(frame, f"called from here, in {frame[0]}", source_line)
            for frame in report.frames[1:4]
            if frame[0] != report.frames[0][0]
        ]
    for frames, label in ((report.freed, "freed here"), (report.allocated, "allocated here")):
        if frames:
            places.append(_place(frames[0], label, source_line))
    return Diagnosis(
        SANITIZER,
        _headline(rank, report),
        report.pattern,
        _HINTS.get(report.pattern, ""),
        (rank,),
        tuple(places),
        notes=tuple(_notes(report)),
        log=report.text,
    )


def beside_calls(diagnosis, report, evidence):
    """The diagnosis of `report` (see `diagnose_report`), refined by the calls of the run.

    The cause may be an earlier failed call, or requests that were never started."""
    rank = diagnosis.ranks[0]
    diagnosis = _with_what_was_given(diagnosis, report, evidence, rank)
    if report.kind not in ("SEGV", "BUS"):
        # Such a report is exact; a wild address (SEGV, BUS) does not show where it came from.
        before = [call for call in evidence.failed() if call.error not in mpi_error.NO_FAULT][:1]
        notes = [
            f"Before, {evidence.name(call)}{evidence.at(call)} had returned "
            f"{error_name(call.error)} on rank {call.rank}."
            for call in before
        ]
        return replace(diagnosis, notes=(*diagnosis.notes, *notes))
    failed = mpi_error.mpi_error(evidence)
    if failed is not None:
        sentence = f"Then {diagnosis.headline}.{mpi_error.never_started(evidence, rank)}"
        return replace(mpi_error.with_crash(failed, sentence, diagnosis.places), log=report.text)
    last = evidence.last_call(rank) if 0 <= rank < evidence.size else None
    if last is not None and not last.end_ns and (unset := requests.meaning(evidence, last)):
        line = evidence.at(last)
        return replace(
            diagnosis,
            pattern=requests.UNSET,
            hint=requests.HINT,
            headline=f"rank {rank}: {unset}{line}",
        )
    if evidence.result.case.in_place and 0 < (report.address or 0) < FIRST_PAGE:
        line = f" in line {report.frames[0][2]}" if report.frames else ""
        return replace(
            diagnosis,
            pattern=IN_PLACE,
            hint=collectives.in_place(evidence.result.case),
            headline=f"rank {rank} took MPI_IN_PLACE for an address{line}",
        )
    return diagnosis


def _with_what_was_given(diagnosis, report, evidence, rank):
    """The diagnosis, with a hint on the kernel's buffers or tunables if they are involved."""
    case, place = evidence.result.case, diagnosis.places[0] if diagnosis.places else None
    more = ""
    if report.pattern == OUT_OF_BOUNDS and "receive buffer" in report.object:
        more = f"The kernel was given {memory.SIZES[case.collective]}."
    elif report.pattern == NULL_POINTER:
        more = collectives.null_buffer(case, rank)
    elif report.pattern == DIVISION_BY_ZERO:
        more = collectives.zero_tunables(evidence, place)
    return replace(diagnosis, hint=f"{diagnosis.hint} {more}".rstrip()) if more else diagnosis


def _place(frame, label, source_line, column=0):
    _, file, line = frame
    text = source_line(file, line)
    return Place(line, text, label, column, file if file.endswith(".h") else "")


def _verb(report):
    if report.kind in ("double-free", "bad-free"):
        return "calls free()"
    if report.call:
        return f"is in {report.call}"
    return {"READ": "reads", "WRITE": "writes"}.get(report.access.partition(" ")[0], "is")


def _headline(rank, report):
    """One sentence: who did what, to what, in which line."""
    line = f" in line {report.frames[0][2]}" if report.frames else ""
    who = f"{report.call} on rank {rank}" if report.call else f"rank {rank}"
    did = {"READ": "read", "WRITE": "wrote"}.get(report.access.partition(" ")[0], "reached")
    target = report.object or "memory"
    if report.kind == "double-free":
        return f"{who} freed the same memory twice{line}"
    if report.kind == "bad-free":
        return f"{who} called free() on what malloc() did not return{line}"
    if report.tool == UNDEFINED:
        what = {
            OUT_OF_BOUNDS: "left an array",
            NULL_POINTER: "used a null pointer",
            DIVISION_BY_ZERO: "divided by zero",
        }
        words = what.get(report.pattern, "did what C leaves undefined")
        return f"{who} {words}{line}: {report.summary}"
    return {
        OUT_OF_BOUNDS: f"{who} {did} outside of {target}{line}",
        USE_AFTER_FREE: f"{who} {did} memory that was gone already{line}: {target}",
        NULL_POINTER: f"{who} used a null pointer{line}",
        NOT_YOURS: f"{who} {did} memory that is not its own{line}",
        STACK_EXHAUSTED: f"{who} used up its stack{line}",
    }.get(report.pattern, f"{who} was stopped{line}: {report.kind}")


def _notes(report):
    touched = report.access.partition(" of size ")
    if touched[2] and report.pattern == OUT_OF_BOUNDS and report.region:
        done = "read" if touched[0] == "READ" else "written"
        bytes_ = f"{touched[2]} byte{'s' * (touched[2] != '1')}"
        were = "was" if touched[2] == "1" else "were"
        yield f"{bytes_} {were} {done}; the first that does not belong there is {report.region}."
    yield f"{report.tool}: {report.summary}"
