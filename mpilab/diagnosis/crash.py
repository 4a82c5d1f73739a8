"""Crashes (signal, line, last calls, likely cause) and the reports of sanitizers."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from signal import SIGSYS

from mpilab.diagnosis import collectives, memory, model, mpi_error, requests
from mpilab.diagnosis.evidence import CELL, Evidence
from mpilab.diagnosis.model import CRASH, SANITIZER, TRAP, Diagnosis, Place
from mpilab.diagnosis.model import class_name as error_name
from mpilab.runners.hang import BLOCKED
from mpilab.runners.result import blame, signal_name
from mpilab.trace.callsites import (
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
    calls_within,
    source_line,
)

# Patterns; those that a sanitizer can also detect are in mpilab.trace.callsites.
ASSERTION, EXIT, ABORT, IN_PLACE, COMPILERS_TRAP, REFUSED = (
    "an assertion failed",
    "exit() was called",
    "MPI_Abort was called",
    "MPI_IN_PLACE used as an address",
    "undefined behavior",
    "a refused system call",
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
        "%%kernel --sanitize reports the first access out of bounds.",
    ),
    HEAP_CORRUPTED: (
        "the heap was corrupted",
        "Some code wrote outside a block from malloc, freed a block twice, or freed something "
        "that malloc did not return. The mistake may come before this line: %%kernel --sanitize "
        "finds it. malloc counts bytes: n * sizeof *pointer.",
    ),
    STACK_EXHAUSTED: (
        "it ran out of stack",
        "The recursion does not end, or a local array is too large: check what ends the "
        "recursion, and use malloc for large arrays.",
    ),
    DIVISION_BY_ZERO: (
        "it divided by zero",
        "Look at the divisor (of / or %) in this line: it is 0 on this rank, or for this number "
        "of ranks.",
    ),
    COMPILERS_TRAP: (
        "it did what C leaves undefined",
        "The compiler puts a trap where C defines no result: an index outside of its array, for "
        "example, or a division by 0. Which values do the variables in this line have on this "
        "rank? %%kernel --sanitize tells more.",
    ),
    OUT_OF_BOUNDS: (
        "most likely, an index is outside of its array",
        "How many elements does the array in this line have, and which index is used here on this "
        "rank, with this number of ranks? The last index is one less than the number of elements. "
        "If it is a pointer: is it NULL? %%kernel --sanitize tells which.",
    ),
    ASSERTION: (
        "an assertion failed",
        "The condition in this line does not hold here: which of your assumptions fails for this "
        "number of ranks?",
    ),
    EXIT: (
        "it called exit()",
        "exit() ends the whole program, including the other ranks. Return an error code instead, "
        "and tell the other ranks, or they wait forever.",
    ),
    ABORT: (
        "it called MPI_Abort",
        "MPI_Abort ends all ranks at once. A kernel returns an error code instead.",
    ),
}
# What a refused call does, by its number in src_c/runtime/harness/confine.c.
REFUSALS = {
    0: "it tried to start a process, to send a signal, or to change the system",
    1: "it tried to start a process",
    2: "it tried to run a program",
    3: "it tried to send a signal to another process",
    4: "it tried to reach the memory of another process",
    5: "it tried to change the system that it runs on",
}
REFUSED_HINT = (
    "Graded answers may use memory, and the MPI calls that the exercise allows. Remove this call."
)
ABORTED = (
    "abort() was called",
    "abort() ends the program at once. If your kernel called it, return an error code instead. "
    "Look at what was printed, too.",
)
# The line of the kernel does not call abort().
ABORTED_BELOW = (
    "something that this line calls ended the program with abort()",
    "The line itself does not call abort(): a function or macro in it has, for example one of MPI "
    "or of the C library. Look at its arguments, and at what was printed.",
)
# Neither the line nor an MPI call is known.
ABORTED_SOMEWHERE = (
    "the program was ended with abort()",
    "The kernel calls abort(), or something that it calls does: malloc and free do if the heap is "
    "corrupted, for example by a write outside a block. %%kernel --sanitize finds such writes.",
)
# abort() was called, but by MPI itself: the rank was in one of its calls.
GAVE_UP = (
    "MPI itself gave up in this call",
    "MPI ends a program when it finds something in a call that it cannot go on with. Look at the "
    "arguments of this call, and at what was printed.",
)
# SimGrid's last message before it ends a simulation, or that of a C++ program such as SimGrid. It
# is about the simulator's own objects, so only an amount of memory is quoted; the log has the rest.
_SIMULATOR = re.compile(r"^\[.*\[\w+/CRITICAL\] .+$|^terminate called .+$", re.MULTILINE)
_MEMORY = re.compile(r"Memory allocation of (\d+) bytes failed")
SIMULATOR = "the simulator stopped"
SIMULATOR_HINT = (
    "SimGrid ended the simulation by itself; this does not prove that the line is wrong, nor that "
    "your kernel called abort(). Look at the arguments of this call, and run the same case on Open "
    "MPI."
)
# A signal that struck no rank: the simulator copies messages itself, when both sides have come.
WHILE_COPYING = (
    "It happened while a message was copied, or after the kernel had returned. Is a buffer in one "
    "of these calls NULL, too short or already freed? Did the kernel free comm?"
)
_INDEX = re.compile(r"\w\s*\[")
_CALLS_ABORT = re.compile(r"\b(abort|assert)\s*\(")
FIRST_PAGES = 1 << 16
UNKNOWN_ADDRESS = (1 << 64) - 1  # set by the recorder; no pointer can have such an address
# The recorder notes their ranks.
_CAUGHT = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGTRAP", "SIGABRT", "SIGSYS")
# Stacks are in the top 16 GiB of the address space (x86-64, and others with 48 bits); shared
# libraries are below.
STACK_TOPS, STACK_RANGE = (1 << 47, 1 << 48), 1 << 34
_ASSERTION = re.compile(r"Assertion [`'].*' failed")
_ASSERTED_AT = re.compile(r"\b(\w[\w.]*):(\d+): .*Assertion [`'].*' failed")
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
    stopped = _simulator_stopped(evidence, rank, what)
    if stopped is not None:
        return stopped
    pattern = _pattern(evidence, rank, what)
    aborted = GAVE_UP if _is_inside(evidence, rank) else _aborted(evidence, rank)
    meaning, hint = MEANINGS.get(pattern, aborted if what == "SIGABRT" else ("", ""))
    if pattern == REFUSED:
        recorded = evidence.ranks[rank]
        number = 0 if recorded is None else int(recorded.header["crash_address"])
        meaning, hint = REFUSALS.get(number, REFUSALS[0]), REFUSED_HINT
    if pattern in (NULL_POINTER, NOT_YOURS, "") and _is_in_place(evidence, rank, what):
        pattern, meaning = IN_PLACE, "it used MPI_IN_PLACE as an address"
        hint = collectives.in_place(evidence.result.case)
    unset = _unset(evidence, rank) if pattern in (NULL_POINTER, NOT_YOURS, IN_PLACE) else None
    if unset:
        pattern, meaning, hint = unset
    place, where = _asserted_at(evidence, rank) if pattern == ASSERTION else (None, "")
    if place is None:
        place, where = _place(evidence, rank)
    if pattern == NULL_POINTER and not unset:
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


def _simulator_stopped(evidence: Evidence, rank: int, what: str) -> Diagnosis | None:
    """The Diagnosis of a simulation that SimGrid itself has ended; None if it has not."""
    said = _SIMULATOR.search(evidence.result.log) if what == "SIGABRT" else None
    if said is None:
        return None
    place, where = _place(evidence, rank)
    where = where.removeprefix(",")
    shown = None if place is None else replace(place, label=f"rank {rank} was here at that time")
    failed = mpi_error.mpi_error(evidence)
    asked = _MEMORY.search(said[0])
    message = f": it could not allocate {asked[1]} bytes" if asked else ""
    if failed is not None:
        sentence = f"Then the simulator (SimGrid) stopped{message}."
        return mpi_error.with_crash(failed, sentence, filter(None, (shown,)))
    return Diagnosis(
        CRASH,
        f"the simulator (SimGrid) stopped while rank {rank} was{where}{message}",
        pattern=SIMULATOR,
        hint=SIMULATOR_HINT,
        ranks=(rank,),
        places=tuple(filter(None, (shown,))),
        tables=tuple(filter(None, (evidence.last_calls(rank),))),
    )


def _aborted(evidence: Evidence, rank: int) -> tuple[str, str]:
    """(what happened, what to do) after an abort() outside of the recorded MPI calls."""
    place, _ = _place(evidence, rank)
    if place is None:
        return ABORTED_SOMEWHERE
    if not place.text or _CALLS_ABORT.search(place.text):
        return ABORTED
    return ABORTED_BELOW


def trap(evidence: Evidence) -> Diagnosis:
    """The Diagnosis of a kernel that the jail ended. It has no lines: those are of native runs."""
    rank, why = evidence.result.crashed or (None, "the kernel: it was ended")
    if rank is None or not 0 <= rank < evidence.size:
        return Diagnosis(TRAP, why)
    return Diagnosis(
        TRAP,
        f"{why}, rank {rank}",
        hint="A native run of the same case may tell the line.",
        ranks=(rank,),
        tables=tuple(filter(None, (evidence.last_calls(rank),))),
    )


def _headline(rank: int, what: str, pattern: str, meaning: str, where: str) -> str:
    if pattern == ABORT:
        line = where.rpartition("(")[2].rstrip(")")
        return f"rank {rank} ended all ranks with MPI_Abort" + (f" in {line}" if line else "")
    if pattern == REFUSED:
        return f"rank {rank} was stopped{where}: {meaning}, which graded answers may not do"
    if pattern == EXIT:
        status = what.rpartition(" ")[2]
        return f"rank {rank} called exit({status}){where}"
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
    if signal in ("SIGILL", "SIGTRAP"):  # a compiler's trap on x86-64, on aarch64
        place, _ = _place(evidence, rank)
        return OUT_OF_BOUNDS if place and _INDEX.search(place.text) else COMPILERS_TRAP
    if signal == "SIGABRT":
        return _last_words(evidence, rank)
    if signal == "SIGSYS":
        return REFUSED
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


def _asserted_at(evidence: Evidence, rank: int) -> tuple[Place | None, str]:
    """As `_place`, from what the assertion printed: in a simulation, the stack ends below it."""
    said = _ASSERTED_AT.findall(evidence.result.printed.get(rank, ""))
    if not said:
        return None, ""
    file, line = said[-1][0], int(said[-1][1])
    text = source_line(evidence.library, file, line)
    shown = "" if file == CELL else file
    return Place(line, text, f"rank {rank} ended here", file=shown), f" in line {line}"


def _unset(evidence: Evidence, rank: int) -> requests.Unusable | None:
    """What is wrong with the requests of the call in which `rank` crashed; None if nothing is."""
    last = evidence.last_call(rank)
    return None if last is None or last.end_ns else requests.unusable(evidence, last)


def _is_in_place(evidence: Evidence, rank: int, what: str) -> bool:
    """Whether MPI_IN_PLACE, the address 1 in Open MPI, was used as a pointer."""
    recorded = evidence.ranks[rank]
    address = 0 if recorded is None else int(recorded.header["crash_address"])
    return evidence.result.case.in_place and what == "SIGSEGV" and 0 < address < 4096


def _is_inside(evidence: Evidence, rank: int) -> bool:
    """Whether `rank` was in an MPI call when it ended."""
    last = evidence.last_call(rank)
    return last is not None and not last.end_ns


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
    if 0 < address < UNKNOWN_ADDRESS and recorded.header["signal"] not in (0, SIGSYS):
        yield f"The address was {address:#x}."
    if len(ranks) > 1:
        yield f"{model.capital(model.ranks(ranks[1:]))} crashed, too."


def _unknown(evidence: Evidence, what: str) -> Diagnosis:
    """The Diagnosis of a crash if the rank is unknown."""
    inside = [state for state in evidence.states if state.state != "finished"]
    places = evidence.places(
        [call for call in (evidence.last_call(s.rank) for s in inside) if call is not None],
        "were last here",
    )
    said = f" with {what}" if what else ""
    ended = (
        "A rank ended without a signal that could be caught: it called _exit() or "
        "quick_exit(), or it was killed from outside, for instance because memory ran out."
    )
    return Diagnosis(
        CRASH,
        f"a rank ended the run{said}; which one is unknown",
        hint=_while_copying(evidence) if what in _CAUGHT else ended,
        ranks=tuple(state.rank for state in inside) if len(inside) == 1 else (),
        places=places,
        tables=(evidence.doing(),) if evidence.states else (),
    )


def _while_copying(evidence: Evidence) -> str:
    """A hint on the buffers of the calls that have not returned."""
    case = evidence.result.case
    for rank in range(evidence.size):
        last, null = evidence.last_call(rank), collectives.null_buffer(case, rank)
        if not null or last is None or last.end_ns or not (last.sends or last.receives):
            continue
        if last.sends == (case.collective == "scatter"):
            return f"{WHILE_COPYING} {null}"
    return WHILE_COPYING


# Reports of sanitizers, as mpilab.trace.callsites reads them.


_HINTS = {
    OUT_OF_BOUNDS: "Count how many elements the buffer holds and how many this line touches: the "
    "first index is 0, the last is one less than the number of elements.",
    USE_AFTER_FREE: "Memory must not be touched after free(), nor freed twice, nor used after the "
    "function or block that it belongs to has ended. An active request still uses its buffer: "
    "complete it before you free the buffer.",
    NULL_POINTER: "A pointer here is NULL, or was computed from NULL. Was the memory allocated on "
    "every rank, and did malloc() succeed?",
    NOT_YOURS: "The pointer holds no valid address: look at how it was computed.",
    STACK_EXHAUSTED: "The recursion does not end, or a local array is too large: use "
    "malloc() for large arrays.",
    HEAP_CORRUPTED: (
        "free() takes only a pointer that malloc() returned, and each only once. The send and "
        "receive buffers belong to the caller."
    ),
    DIVISION_BY_ZERO: "Check the divisor's value for this number of ranks.",
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
        # Such a report is exact; a wild address (SEGV, BUS) does not show its origin.
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
    if last is not None and not last.end_ns and (unset := requests.unusable(evidence, last)):
        line = evidence.at(last)
        return replace(
            diagnosis,
            pattern=unset.pattern,
            hint=unset.hint,
            headline=f"rank {rank}: {unset.meaning}{line}",
        )
    if evidence.result.case.in_place and 0 < (report.address or 0) < FIRST_PAGE:
        line = f" in line {report.frames[0][2]}" if report.frames else ""
        return replace(
            diagnosis,
            pattern=IN_PLACE,
            hint=collectives.in_place(evidence.result.case),
            headline=f"rank {rank} used MPI_IN_PLACE as an address{line}",
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
    """One sentence: which rank did what, to what, in which line."""
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
            OUT_OF_BOUNDS: "left the bounds of an array",
            NULL_POINTER: "used a null pointer",
            DIVISION_BY_ZERO: "divided by zero",
        }
        words = what.get(report.pattern, "did something that C leaves undefined")
        return f"{who} {words}{line}: {report.summary}"
    return {
        OUT_OF_BOUNDS: f"{who} {did} outside {target}{line}",
        USE_AFTER_FREE: f"{who} {did} memory that was no longer valid{line}: {target}",
        NULL_POINTER: f"{who} used a null pointer{line}",
        NOT_YOURS: f"{who} {did} memory that is not its own{line}",
        STACK_EXHAUSTED: f"{who} ran out of stack{line}",
    }.get(report.pattern, f"{who} was stopped{line}: {report.kind}")


def _report_notes(report: Report) -> Iterator[str]:
    touched = report.access.partition(" of size ")
    if touched[2] and report.pattern == OUT_OF_BOUNDS and report.region:
        done = "read" if touched[0] == "READ" else "written"
        bytes_ = f"{touched[2]} byte{'s' * (touched[2] != '1')}"
        were = "was" if touched[2] == "1" else "were"
        yield f"{bytes_} {were} {done}; the first byte out of bounds is {report.region}."
    yield f"{report.tool}: {report.summary}"
