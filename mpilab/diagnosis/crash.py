"""Crashes (signal, line, last calls, likely cause) and what sanitizers report of them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from mpilab.diagnosis import collectives, memory, model, mpi_error, requests
from mpilab.diagnosis.evidence import CELL, Evidence
from mpilab.diagnosis.model import CRASH, SANITIZER, Diagnosis, Place
from mpilab.diagnosis.model import class_name as error_name
from mpilab.runners.hang import BLOCKED
from mpilab.runners.result import blame, signal_name
from mpilab.trace.callsites import calls_within
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
    Frame,
    Report,
)

# Patterns; mpilab.trace.sanitizer has those that a sanitizer can tell, too.
ASSERTION, EXIT, ABORT, IN_PLACE = (
    "an assertion failed",
    "left with exit()",
    "MPI_Abort was called",
    "MPI_IN_PLACE taken for an address",
)
# pattern -> (what happened, what to do)
MEANINGS = {
    NULL_POINTER: (
        "it used a null pointer",
        "A pointer here is NULL, or was computed from NULL. Was the memory allocated on every "
        "rank, and did malloc succeed?",
    ),
    NOT_YOURS: (
        "it touched memory that is not its own",
        "Look at the index and at the pointer in this line: what values do they have on this rank? "
        "%%kernel --sanitize tells the first access that is out of bounds.",
    ),
    HEAP_CORRUPTED: (
        "the heap was corrupted",
        "Somebody wrote outside of what malloc gave, or called free twice, or for what malloc did "
        "not give. The mistake may lie before this line: %%kernel --sanitize finds where. malloc "
        "counts bytes: n * sizeof *pointer.",
    ),
    STACK_EXHAUSTED: (
        "its stack was used up",
        "The recursion does not end, or an array in a function is too large: look at what ends "
        "the recursion, and use malloc for large arrays.",
    ),
    DIVISION_BY_ZERO: (
        "it divided by zero",
        "Look at the divisor (of / or %) in this line: it is 0 on this rank, or for this number "
        "of ranks.",
    ),
    ASSERTION: (
        "an assertion failed",
        "The condition in this line does not hold here: what did you rely on that is not so for "
        "this number of ranks?",
    ),
    EXIT: (
        "it left with exit()",
        "exit() ends the whole program, also for the other ranks. Return an error code instead; "
        "the others have to learn of it, or they wait for ever.",
    ),
    ABORT: (
        "it called MPI_Abort",
        "MPI_Abort ends all ranks at once. A kernel returns an error code instead.",
    ),
}
ABORTED = (
    "abort() was called",
    "abort() ends the program at once. If it was your kernel: return an error code instead. Look "
    "at what was printed, too.",
)
FIRST_PAGES = 1 << 16
UNKNOWN_ADDRESS = (1 << 64) - 1  # set by the recorder; no pointer can have such an address
# Stacks are in the top 16 GiB of the address space (x86-64, and others with 48 bits); shared
# libraries are below.
STACK_TOPS, STACK_RANGE = (1 << 47, 1 << 48), 1 << 34
_ASSERTION = re.compile(r"Assertion [`'].*' failed")
_HEAP = re.compile(
    r"free\(\)|malloc\(\)|realloc\(\)|double free|corrupted|munmap_chunk|invalid pointer|"
    r"tcache|unsorted bin|smallbin"
)


def crash(evidence: Evidence) -> Diagnosis:
    """The Diagnosis of a run in which a rank crashed or ended itself."""
    rank, what = evidence.result.crashed or (None, "")
    known = blame([r for r in evidence.ranks if r is not None])
    if rank is None and known is not None:
        rank, what = known
    what = str(what)
    rank = rank if rank is not None and 0 <= rank < evidence.size else None
    if what.startswith("MPI_ERR_"):
        return mpi_error.fatal_error(evidence, rank, what)
    if rank is None:
        return _unknown(evidence, what)
    pattern = _pattern(evidence, rank, what)
    meaning, hint = MEANINGS.get(pattern, ABORTED if what == "SIGABRT" else ("", ""))
    if pattern in (NULL_POINTER, NOT_YOURS, "") and _is_in_place(evidence, rank, what):
        pattern, meaning = IN_PLACE, "it took MPI_IN_PLACE for an address"
        hint = collectives.in_place(evidence.result.case)
    unset = _unset(evidence, rank) if pattern in (NULL_POINTER, NOT_YOURS, IN_PLACE) else ""
    if unset:
        pattern, meaning, hint = requests.UNSET, unset, requests.HINT
    place, where = _place(evidence, rank)
    if pattern == NULL_POINTER:
        hint = collectives.null_buffer(evidence.result.case, rank) or hint
    elif pattern == DIVISION_BY_ZERO:
        hint = f"{hint} {collectives.zero_tunables(evidence, place)}".rstrip()
    failed = mpi_error.mpi_error(evidence)
    if failed is not None:
        end = _headline(rank, what, pattern, "" if unset else meaning, where)
        sentence = f"Then {end}.{mpi_error.never_started(evidence, rank)}"
        return mpi_error.with_crash(failed, sentence, filter(None, (place,)))
    again = _recursion(evidence, rank) if pattern == STACK_EXHAUSTED else []
    ranks = (rank, *(other for other in _struck(evidence) if other != rank))
    return Diagnosis(
        CRASH,
        _headline(rank, what, pattern, meaning, where),
        pattern=pattern,
        hint=hint,
        ranks=ranks,
        places=(*filter(None, (place,)), *again),
        tables=tuple(filter(None, (evidence.last_calls(rank),))),
        notes=tuple(_notes(evidence, rank, ranks)),
    )


def _headline(rank: int, what: str, pattern: str, meaning: str, where: str) -> str:
    if pattern == ABORT:
        line = where.rpartition("(")[2].rstrip(")")
        return f"rank {rank} ended all ranks with MPI_Abort" + (f" in {line}" if line else "")
    if pattern == EXIT:
        status = what.rpartition(" ")[2]
        return f"rank {rank} left with exit({status}){where}"
    ended = (
        f"crashed with {what}" if what.startswith("SIG") else f"was ended by {what or 'an error'}"
    )
    return f"rank {rank} {ended}{where}" + (f": {meaning}" if meaning else "")


def _pattern(evidence: Evidence, rank: int, what: str) -> str:
    recorded = evidence.ranks[rank]
    header = None if recorded is None else recorded.header
    last = evidence.last_call(rank)
    number = int(header["signal"]) if header is not None else 0
    if not number and header is not None and header["exited"]:
        return EXIT
    if not number and last is not None and last.name == "MPI_Abort":
        return ABORT
    signal = signal_name(number) if number else what
    if signal == "SIGFPE":
        return DIVISION_BY_ZERO
    if signal == "SIGABRT":
        return _last_words(evidence, rank)
    if signal in ("SIGSEGV", "SIGBUS") and header is not None and number:
        return _of_address(int(header["crash_address"]), evidence, rank)
    return NOT_YOURS if signal == "SIGSEGV" else ""


def _of_address(address: int, evidence: Evidence, rank: int) -> str:
    if _last_words(evidence, rank) == HEAP_CORRUPTED:
        return HEAP_CORRUPTED
    if any(top - STACK_RANGE <= address < top for top in STACK_TOPS):
        return STACK_EXHAUSTED
    return NULL_POINTER if address < FIRST_PAGES else NOT_YOURS


def _last_words(evidence: Evidence, rank: int) -> str:
    """Why abort() was called, judged by what was printed just before."""
    printed = evidence.result.printed.get(rank, "")
    text = printed or evidence.result.log
    if _ASSERTION.search(text[-4096:]):
        return ASSERTION
    return HEAP_CORRUPTED if _HEAP.search(text[-4096:]) else ""


def _unset(evidence: Evidence, rank: int) -> str:
    """What is wrong with the wait that `rank` crashed in; '' if its requests were started."""
    last = evidence.last_call(rank)
    return "" if last is None or last.end_ns else requests.meaning(evidence, last)


def _is_in_place(evidence: Evidence, rank: int, what: str) -> bool:
    """Whether MPI_IN_PLACE, the address 1 in Open MPI, was used as a pointer."""
    recorded = evidence.ranks[rank]
    address = 0 if recorded is None else int(recorded.header["crash_address"])
    return evidence.result.case.in_place and what == "SIGSEGV" and 0 < address < 4096


def _place(evidence: Evidence, rank: int) -> tuple[Place | None, str]:
    """(Place or None, text such as ' in line 14') of the crash."""
    recorded = evidence.ranks[rank]
    site = 0 if recorded is None else int(recorded.header["crash_site"])
    place = evidence.place(site, f"rank {rank} ended here") if site else None
    if place is not None:
        return place, f" in line {place.line}"
    call, state = evidence.last_call(rank), evidence.state(rank)
    if call is None:
        return None, ", before its first MPI call"
    inside = state is not None and state.state == BLOCKED or not call.end_ns
    place = evidence.place(call.site, f"the last call of rank {rank}")
    return place, f" {'in' if inside else 'after'} {call.name}{evidence.at(call)}"


def _recursion(evidence: Evidence, rank: int) -> list[Place]:
    """Places where the function that exhausted the stack calls itself; the signal is raised at the
    beginning of the function."""
    site = int(evidence.recorded(rank).header["crash_site"])
    file, line = evidence.spot(site)
    calls = calls_within(evidence.library, file or CELL, evidence.function(site), line)
    return [
        Place(number, text, "the function calls itself here", file=file) for number, text in calls
    ]


def _struck(evidence: Evidence) -> list[int]:
    """Ranks that were killed by a signal."""
    return [
        number
        for number, rank in enumerate(evidence.ranks)
        if rank is not None and rank.header["signal"]
    ]


def _notes(evidence: Evidence, rank: int, ranks: tuple[int, ...]) -> Iterator[str]:
    recorded = evidence.ranks[rank]
    address = 0 if recorded is None else int(recorded.header["crash_address"])
    if 0 < address < UNKNOWN_ADDRESS and recorded.header["signal"]:
        yield f"The address was {address:#x}."
    if len(ranks) > 1:
        yield f"{model.capital(model.ranks(ranks[1:]))} crashed, too."


def _unknown(evidence: Evidence, what: str) -> Diagnosis:
    """The Diagnosis of a crash if the rank is unknown."""
    inside = [state for state in evidence.states if state.state != "finished"]
    places = evidence.places(
        [call for call in (evidence.last_call(s.rank) for s in inside) if call is not None],
        "make their last call here",
    )
    said = f" with {what}" if what else ""
    return Diagnosis(
        CRASH,
        f"a rank ended the run{said}; nobody knows which one",
        hint="A rank has left without a signal that could be caught: _exit() or quick_exit(), or "
        "it was killed from outside, for instance because the memory was full.",
        ranks=tuple(state.rank for state in inside) if len(inside) == 1 else (),
        places=places,
        tables=(evidence.doing(),) if evidence.states else (),
    )


# Reports of sanitizers, as mpilab.trace.sanitizer reads them.


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


def diagnose_report(rank: int, report: Report, source_line: Callable[[str, int], str]) -> Diagnosis:
    """The Diagnosis of a Report on `rank`; source_line(file, line) gives the text of a line."""
    places = []
    if report.frames:
        label = f"rank {rank} {_verb(report)} here"
        places.append(_report_place(report.frames[0], label, source_line, report.column))
        places += [
            _report_place(frame, f"called from here, in {frame[0]}", source_line)
            for frame in report.frames[1:4]
            if frame[0] != report.frames[0][0]
        ]
    for frames, label in ((report.freed, "freed here"), (report.allocated, "allocated here")):
        if frames:
            places.append(_report_place(frames[0], label, source_line))
    return Diagnosis(
        SANITIZER,
        _report_headline(rank, report),
        report.pattern,
        _HINTS.get(report.pattern, ""),
        (rank,),
        tuple(places),
        notes=tuple(_report_notes(report)),
        log=report.text,
    )


def beside_calls(diagnosis: Diagnosis, report: Report, evidence: Evidence) -> Diagnosis:
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


def _with_what_was_given(
    diagnosis: Diagnosis, report: Report, evidence: Evidence, rank: int
) -> Diagnosis:
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


def _report_place(
    frame: Frame, label: str, source_line: Callable[[str, int], str], column: int = 0
) -> Place:
    _, file, line = frame
    text = source_line(file, line)
    return Place(line, text, label, column, file if file.endswith(".h") else "")


def _verb(report: Report) -> str:
    if report.kind in ("double-free", "bad-free"):
        return "calls free()"
    if report.call:
        return f"is in {report.call}"
    return {"READ": "reads", "WRITE": "writes"}.get(report.access.partition(" ")[0], "is")


def _report_headline(rank: int, report: Report) -> str:
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


def _report_notes(report: Report) -> Iterator[str]:
    touched = report.access.partition(" of size ")
    if touched[2] and report.pattern == OUT_OF_BOUNDS and report.region:
        done = "read" if touched[0] == "READ" else "written"
        bytes_ = f"{touched[2]} byte{'s' * (touched[2] != '1')}"
        were = "was" if touched[2] == "1" else "were"
        yield f"{bytes_} {were} {done}; the first that does not belong there is {report.region}."
    yield f"{report.tool}: {report.summary}"
