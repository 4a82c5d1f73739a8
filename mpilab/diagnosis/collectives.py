"""Mistakes in collectives: mismatches, broken barriers, MPI_COMM_WORLD instead of comm.

Also hints on the kernel's arguments: NULL buffers, MPI_IN_PLACE, tunables that are 0.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import COLLECTIVES, Case
from mpilab.diagnosis import model
from mpilab.diagnosis.evidence import (
    CELL,
    Evidence,
    Match,
    all_wants,
    conjugated,
    of_wants,
)
from mpilab.diagnosis.model import COMPILE_WARNING, MPI_ERROR, WRONG_RESULT, Diagnosis, Place, Table
from mpilab.kernels.symbols import used
from mpilab.runners.hang import BLOCKED, FINISHED
from mpilab.runners.result import DONE
from mpilab.trace.callsites import source_line, source_text
from mpilab.trace.matching import ALIKE, MOST_REPORTED, ROOT_DIFFERS
from mpilab.trace.recording import COLLECTIVE, WORLD, Call, operations
from mpilab.util.text import C_COMMENT

# Broken barriers: a rank can leave before all others have entered.

BROKEN_BARRIER = "left too early"
BROKEN_BARRIER_HINT = (
    "After a barrier, every rank must know that every other rank has entered it: each pair needs "
    "a chain of messages from one rank to the other, each message sent after the previous one was "
    "received."
)
# The sources of the messages that these receive are unknown.
_BLIND = ("MPI_Mrecv", "MPI_Imrecv")


def broken_barrier(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of a barrier that a rank can leave too early; None if it is correct.

    All ranks may have entered in time by chance; what counts is that the messages prove it. None
    also if the recording proves nothing: it is incomplete, or ranks may have learned of each other
    by calls other than messages.
    """
    recording = evidence.result.recording
    if recording is None or not recording.complete or _is_blind(evidence):
        return None
    missing = ~recording.heard()
    ranks = np.flatnonzero(missing.any(axis=1)).tolist()
    if not ranks:
        return None
    early = ranks[0]
    unheard = np.flatnonzero(missing[early]).tolist()
    return Diagnosis(
        WRONG_RESULT,
        f"no barrier: rank {early} can leave it before {model.ranks(unheard)} "
        f"{'has' if len(unheard) == 1 else 'have'} come",
        pattern=BROKEN_BARRIER,
        hint=f"{BROKEN_BARRIER_HINT} {_how_far(evidence, missing)}",
        ranks=tuple(ranks),
        places=evidence.places(_last_calls(evidence, ranks), "make the last call here"),
        tables=(
            Table(
                "Ranks that each rank has not heard of, directly or indirectly",
                ("rank", "has not heard of"),
                tuple((rank, model.runs(np.flatnonzero(missing[rank]).tolist())) for rank in ranks),
            ),
        ),
    )


def _is_blind(evidence: Evidence) -> bool:
    """Whether ranks may have learned of each other by means other than recorded messages.

    A barrier may also consist of collectives."""
    if evidence.result.function.endswith("_openmpi"):
        return True  # MPI's own algorithm sends below the recorder
    return any(
        ((rank.records["flags"] & COLLECTIVE != 0) & (rank.records["members"] > 1)).any()
        or any(name in _BLIND for name in evidence.names(number))
        for number, rank in enumerate(evidence.ranks)
    )


def _how_far(evidence: Evidence, missing: NDArray[np.bool_]) -> str:
    """A hint on how far the news spread; `missing` [P, P]: the ranks from which each rank has no
    news."""
    size, recording = evidence.size, evidence.result.recording
    if recording is None or not len(recording.messages):
        return "No message was sent at all."
    power = (
        "" if size & (size - 1) == 0 else f" {size} is not a power of two: does that matter here?"
    )
    knowing = np.flatnonzero(~missing.any(axis=1)).tolist()
    if knowing:
        who = model.ranks(knowing)
        has, knows = ("has", "knows") if len(knowing) == 1 else ("have", "know")
        return (
            f"Here {who} {has} heard of all ranks, but what {who} {knows} does not reach the "
            f"others: does any rank reply, and do they wait for the reply?{power}"
        )
    known = size - missing.sum(axis=1)
    rounds = recording.rounds
    least, most = int(known.min()), int(known.max())
    number = str(least) if least == most else f"{least} to {most}"
    end = model.number(rounds, "round")
    said = f"After {end}, each rank has heard of {number} of {size} ranks, itself included."
    if 2**rounds < size:
        return (
            f"{said} What a rank knows can at best double in each round: {size} ranks need at "
            f"least {(size - 1).bit_length()}."
        )
    return f"{said} Check which rank each rank hears from in each round.{power}"


def _last_calls(evidence: Evidence, ranks: Iterable[int]) -> list[Call]:
    calls = (evidence.last_call(rank) for rank in ranks)
    return [call for call in calls if call is not None]


# Kernels that use MPI_COMM_WORLD instead of the communicator passed to them.

WORLD_FOR_COMM = "MPI_COMM_WORLD instead of comm"
WORLD_HINT = (
    "Write comm: a caller may pass any communicator, with fewer ranks or in another order, so a "
    "rank in one is not the same process in the other."
)
SHOWN = 8
_NAME = re.compile(r"\bMPI_COMM_WORLD\b")
# The first line of a function that others may call, such as a kernel; not a prototype.
_DEFINITION = re.compile(r"(?:int\s+(\w+)\s*\(|MPILAB_([A-Z]+)\((\w+)\))(?!.*;\s*$)")
_SYMBOL = "ompi_mpi_comm_world"  # MPI_COMM_WORLD is its address in Open MPI


def diagnose_world(source: str, object_file: str | Path) -> Diagnosis | None:
    """The warning for a source that compiles but uses MPI_COMM_WORLD; None if it does not."""
    if _SYMBOL not in used(object_file):
        return None
    lines = _lines_with_world(source)
    places = [Place(line, text.strip(), "not comm here") for line, text in lines.items()]
    where = f" in line{'s' * (len(lines) > 1)} {model.runs(lines)}" if lines else ""
    return Diagnosis(
        COMPILE_WARNING,
        f"it compiles, but it uses MPI_COMM_WORLD{where} instead of comm",
        pattern=WORLD_FOR_COMM,
        hint=WORLD_HINT,
        places=tuple(places[:SHOWN]),
    )


def _lines_with_world(source: str) -> dict[int, str]:
    """{number: text} of the lines of `source` that use MPI_COMM_WORLD outside of comments."""
    code = C_COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), source)
    texts = source.split("\n")
    return {
        number: texts[number - 1]
        for number, line in enumerate(code.split("\n"), 1)
        if _NAME.search(line)
    }


def beside_world(found: Diagnosis, evidence: Evidence) -> Diagnosis:
    """The Diagnosis `found` with a note on the kernel's own uses of MPI_COMM_WORLD.

    If comm numbers the ranks in another order, they are the cause."""
    is_reversed = evidence.result.case.reversed
    texts = _lines_of_kernel_with_world(evidence) if is_reversed else {}
    lines = texts.keys() | _lines_that_call_on_world(evidence)
    if not lines:
        return found
    said = (
        f"Line{'s' * (len(lines) > 1)} {model.runs(lines)} use{'s' * (len(lines) == 1)} "
        "MPI_COMM_WORLD instead of comm: ranks may be numbered differently there."
    )
    if not is_reversed:
        return replace(found, notes=(*found.notes, said))
    places = [Place(line, text, "not comm here") for line, text in texts.items()][:SHOWN]
    others = [place for place in found.places if place.file or place.line not in texts]
    return replace(
        found,
        pattern=WORLD_FOR_COMM,
        hint=f"{said} Here, comm has the ranks in reverse order. {WORLD_HINT}",
        places=(*places, *others),
    )


def _lines_of_kernel_with_world(evidence: Evidence) -> dict[int, str]:
    """As `_lines_with_world`, in the cell of this run; not in other kernels that it defines.

    Calls such as MPI_Comm_rank are in no recording."""
    if not evidence.library:
        return {}
    source = source_text(evidence.library, CELL)
    inside, own = "", set()
    for number, line in enumerate(source.split("\n"), 1):
        begins = _DEFINITION.match(line)
        if begins:
            inside = begins[1] or f"{begins[2].lower()}_{begins[3]}"
        if inside in ("", evidence.result.function):
            own.add(number)
        if line.startswith("}"):
            inside = ""
    return {line: text for line, text in _lines_with_world(source).items() if line in own}


def _lines_that_call_on_world(evidence: Evidence) -> set[int]:
    """Lines of the kernel's own source with recorded calls on MPI_COMM_WORLD."""
    sites = set()
    for rank in evidence.ranks:
        if rank is not None:
            chosen = (rank.records["communicator"] == WORLD) & (
                # MPI reports the error of a call without a communicator on MPI_COMM_WORLD.
                ~np.isin(rank.records["operation"], _unknown_calls())
            )
            sites.update(np.unique(rank.records["site"][chosen]).tolist())
    spots = [evidence.spot(site) for site in sorted(sites)[:SHOWN]]
    return {line for file, line in spots if line and not file}


def _unknown_calls() -> list[int]:
    return [number for number, name in operations().items() if name == "MPI_Other"]


# Arguments of the kernel: buffers that are NULL or MPI_IN_PLACE, and tunables that are 0.

LINES = 400
# The buffer that only the root has: its name and its purpose.
_OF_THE_ROOT = {
    "gather": ("recvbuf", "receive"),
    "reduce": ("recvbuf", "receive"),
    "scatter": ("sendbuf", "send"),
}
_TUNABLES = {
    "segment": "segment_bytes",
    "fanout": "fanout",
    "radix": "radix",
    "budget": "budget_bytes",
}


def null_buffer(case: Case, rank: int | None) -> str:
    """'On rank 2 recvbuf is NULL: …', or '' if no buffer is."""
    if rank is None or case.collective not in _OF_THE_ROOT or rank == case.root:
        return ""
    name, kind = _OF_THE_ROOT[case.collective]
    doubt = (
        f" Does the code assume that rank 0 is the root? It is rank {case.root} here."
        if rank == 0
        else " Check that rank == root before you use it."
    )
    return (
        f"On rank {rank} {name} is NULL: in a {case.collective} only the root has a {kind} buffer."
        f"{doubt}"
    )


def in_place(case: Case) -> str:
    """What MPI_IN_PLACE means in this collective, and what to check."""
    if case.collective == "scatter":
        return (
            "MPI_IN_PLACE is not an address: with it the root has no receive buffer, and its own "
            "block stays where it is. Test for recvbuf == MPI_IN_PLACE before you use recvbuf."
        )
    where = "" if case.collective in ("allgather", "allreduce", "alltoallv") else " at the root"
    own = "your data are" if COLLECTIVES[case.collective].reduces else "your block is"
    if COLLECTIVES[case.collective].exchanges:
        own = "what you send is"
    return (
        f"MPI_IN_PLACE is not an address: with it there is no send buffer{where}, and {own} "
        "already in the receive buffer. Test for sendbuf == MPI_IN_PLACE before you read from "
        "sendbuf."
    )


def zero_tunables(evidence: Evidence, place: Place | None) -> str:
    """A sentence on the tunables that are 0 in this run and that the kernel's source uses up to
    `place`; else ''."""
    if place is None:
        return ""
    file = place.file or "cell"
    lines = [
        source_line(evidence.library, file, line)
        for line in range(max(1, place.line - LINES), place.line + 1)
    ]
    text = "\n".join(lines)
    names = [
        f"mpilab_tuning.{member}"
        for field, member in _TUNABLES.items()
        if not getattr(evidence.result.case, field)
    ]
    zero = [name for name in names if name in text]
    if not zero:
        return ""
    are = "is" if len(zero) == 1 else "are"
    return (
        f"In this run {' and '.join(zero)} {are} 0, which means the algorithm's default: replace "
        "it before you divide."
    )


# Collective mismatches: ranks that enter different collectives, or the same one with different
# arguments. Each recognizer takes the Evidence and returns a Match or None.

NEVER_ENTERED = "a collective that a rank never enters"
# Collectives whose data flows from or to the root; they are mistaken for sends.
FROM_ROOT = (
    "MPI_Bcast",
    "MPI_Ibcast",
    "MPI_Scatter",
    "MPI_Iscatter",
    "MPI_Scatterv",
    "MPI_Iscatterv",
)
TO_ROOT = ("MPI_Gather", "MPI_Igather", "MPI_Gatherv", "MPI_Igatherv", "MPI_Reduce", "MPI_Ireduce")


_RULES = {
    "communicator": "Every rank of a communicator must call a collective",
    "file": "Every rank that has opened a file must make each collective call on it",
}
_KEPT_AWAY = "look for an if or a return that skips the call on some ranks."


def because_of_collectives(found: Diagnosis | None, evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis `found` of a wrong result or an MPI error, explained by a collective mismatch
    if there is one; else `found` unchanged.

    With little data, ranks complete such a collective as if nothing were wrong.
    """
    if found is None or found.kind not in (MPI_ERROR, WRONG_RESULT):
        return found
    match = disagreement(evidence) or _left_alone(evidence)
    if match is None:
        return found
    lines = {(place.file, place.line) for place in match.places}
    others = [place for place in found.places if (place.file, place.line) not in lines]
    return replace(
        found,
        headline=f"{found.kind.replace('-', ' ').replace('mpi', 'MPI')}: {match.headline}",
        pattern=match.pattern,
        hint=match.hint,
        ranks=match.ranks,
        places=(*match.places, *others),
        notes=(f"{model.capital(found.headline)}.", *found.notes),
    )


def disagreement(evidence: Evidence) -> Match | None:
    """The earliest collective that ranks enter with different calls, roots or amounts of data,
    whether they are still inside or not."""
    for calls in evidence.collectives.conflicts():
        for differs in (_names_differ, _roots_differ, _amounts_differ):
            match = differs(evidence, calls)
            if match is not None:
                return match
    return None


def _names_differ(evidence: Evidence, calls: Sequence[Call]) -> Match | None:
    by_name = _grouped(calls, lambda call: call.name)
    if len(by_name) < 2:
        return None
    others = [
        f"{model.ranks(c.rank for c in group)} {conjugated('call', len(group))} "
        f"{name}{evidence.at(group[0])}"
        for name, group in by_name
    ]
    hint = (
        f"On the same {_ground(calls[0])}, {model.listing(others)}. All ranks must call the same "
        "collectives in the same order."
    )
    called = model.listing(name for name, _ in by_name)
    headline = f"ranks call {called} at the same time on one {_ground(calls[0])}"
    return _match("different collectives", evidence, calls, by_name, hint, headline)


def _roots_differ(evidence: Evidence, calls: Sequence[Call]) -> Match | None:
    by_root = _grouped(calls, lambda call: call.peer)
    if len(by_root) < 2:
        return None
    name = calls[0].name
    said = [
        f"{model.ranks(c.rank for c in group)} {conjugated('call', len(group))} {name} "
        f"with {'root ' + str(root) if root >= 0 else 'a root that does not exist'}"
        f"{evidence.at(group[0])}"
        for root, group in by_root
    ]
    if len(said) > 4:
        said = [*said[:3], f"{len(said) - 3} more ranks with other roots"]
    hint = (
        f"{model.capital(model.listing(said))}. All ranks must pass the same root: it must not "
        "depend on the rank."
    )
    # The smallest group, then the ranks that were named as the root.
    odd = [call.rank for call in by_root[0][1]]
    roots = [root for root, _ in by_root if 0 <= root < evidence.size]
    headline = f"ranks call {name} with different roots"
    match = _match("wrong root", evidence, calls, by_root, hint, headline)
    return replace(match, ranks=tuple(dict.fromkeys([*odd, *roots])))


def _amounts_differ(evidence: Evidence, calls: Sequence[Call]) -> Match | None:
    name = calls[0].name
    if name not in ALIKE:
        return None
    counted = [c for c in calls if not (name in ROOT_DIFFERS and c.rank == c.peer)]
    by_bytes = _grouped(counted, lambda call: call.bytes)
    if len(by_bytes) < 2:
        return None
    said = [
        f"{model.ranks(c.rank for c in group)} {conjugated('call', len(group))} it "
        f"with {model.number(size, 'byte')}{evidence.at(group[0])}"
        for size, group in by_bytes[:4]
    ]
    hint = (
        f"{name} requires the same amount of data from every rank: "
        f"{model.listing(said)}. Compare count and datatype."
    )
    headline = f"ranks call {name} with different amounts of data"
    return _match("different counts", evidence, calls, by_bytes, hint, headline)


def _left_alone(evidence: Evidence) -> Match | None:
    """A collective that some ranks called and left while others returned without calling it."""
    if evidence.result.outcome != DONE or any(
        rank is None or rank.header["dropped"] or rank.records["error"].any()
        for rank in evidence.ranks
    ):
        return None
    for calls in evidence.collectives.incomplete():
        came = {call.rank for call in calls}
        missing = [rank for rank in range(evidence.size) if rank not in came]
        call = calls[0]
        if call.members != evidence.size or call.name.startswith("MPI_Comm_"):
            continue
        hint = (
            f"Only {model.ranks(came)} called {call.name}{evidence.at(call)}, "
            f"{model.ranks(missing)} never did. {_RULES[_ground(call)]}: {_KEPT_AWAY}"
        )
        headline = f"only {model.ranks(came)} called {call.name}"
        places = evidence.places(calls, "call it here")
        return Match(NEVER_ENTERED, (*missing, *sorted(came)), hint, places, headline)
    return None


def received_instead(evidence: Evidence) -> Match | None:
    """A rank waits in a receive for data that the other rank passed to a collective."""
    found = [
        (want, call)
        for want in all_wants(evidence)
        if want.call.receives and 0 <= want.call.peer < evidence.size
        for call in _given(evidence, want.call)[:1]
    ]
    if not found:
        return None
    given = found[0][1]
    same = [want for want, call in found if (call.rank, call.name) == (given.rank, given.name)]
    waiting, who = same[0].waiting, {want.call.rank for want in same}
    hint = (
        f"Rank {given.rank} has called {given.name}{evidence.at(given)}, but {model.ranks(who)} "
        f"{conjugated('wait in', len(who))} {waiting.name}{evidence.at(waiting)}. No receive gets "
        f"the data of {given.name}: every rank must call {given.name} itself."
    )
    headline = (
        f"rank {given.rank} has called {given.name}, {model.ranks(who)} "
        f"{conjugated('wait in', len(who))} {waiting.name}"
    )
    match = of_wants(NEVER_ENTERED, evidence, same, hint)
    calls = evidence.places([given], "have called it here")
    return replace(match, places=(*match.places, *calls), headline=headline)


def _given(evidence: Evidence, receive: Call) -> list[Call]:
    """[Call] of collectives on the rank that `receive` waits for, the earliest first.

    They would deliver data to the receiving rank, which has not entered them."""
    other = evidence.ranks[receive.peer]
    if other is None or evidence.ranks[receive.rank] is None:
        return []
    records = other.records
    chosen = np.flatnonzero(
        (records["flags"] & COLLECTIVE != 0)
        & (records["error"] == 0)
        & (records["communicator"] == receive.communicator)
        & (records["members"] == evidence.size)
    )
    own = evidence.ranks[receive.rank].records
    own = own[(own["flags"] & COLLECTIVE != 0) & (own["communicator"] == receive.communicator)]
    chosen = chosen[~np.isin(records["sequence"][chosen], own["sequence"])][:MOST_REPORTED]
    return [
        call
        for call in evidence.calls(receive.peer, chosen.tolist())
        if (call.name in FROM_ROOT and call.peer == receive.peer)
        or (call.name in TO_ROOT and call.peer == receive.rank)
    ]


def different_communicators(evidence: Evidence) -> Match | None:
    """Ranks that call the same collective on different communicators."""
    waiting = _waiting(evidence)
    by_name = defaultdict(list)
    for call in waiting:
        by_name[call.name].append(call)
    for name, calls in by_name.items():
        by_communicator = _grouped(calls, lambda call: call.communicator)
        short = [c for c in calls if _still_missing(evidence, c)]
        if len(by_communicator) < 2 or not short:
            continue
        said = [
            f"{model.ranks(c.rank for c in group)}{evidence.at(group[0])} "
            f"on {_ground(group[0])} {'ABCD'[number]}"
            for number, (_, group) in enumerate(by_communicator[:4])
        ]
        hint = (
            f"{model.ranks(c.rank for c in calls).capitalize()} all call {name}, but on different "
            f"{_ground(calls[0])}s: {model.listing(said)}. A collective must be called on the same "
            f" {_ground(calls[0])}."
        )
        places = evidence.places(calls, "wait here")
        return Match(f"different {_ground(calls[0])}s", _sorted_ranks(calls), hint, places)
    return None


def never_entered(evidence: Evidence) -> Match | None:
    """A collective in which some ranks wait, but which others never enter."""
    for call in _waiting(evidence):
        missing = _still_missing(evidence, call)
        if not missing:
            continue
        inside = [c for c in _waiting(evidence) if _same_collective(c, call)]
        doing = [f"{model.ranks(ranks)} {what}" for what, ranks in _whereabouts(evidence, missing)]
        who = {c.rank for c in inside}
        hint = (
            f"{model.capital(model.ranks(who))} {conjugated('wait in', len(who))} {call.name}"
            f"{evidence.at(call)}, but {model.ranks(missing)} never "
            f"{conjugated('call', len(missing))} it: {model.listing(doing)}. "
            f"{_RULES[_ground(call)]}: {_KEPT_AWAY}"
        )
        places = evidence.places(inside, "wait here")
        return Match(NEVER_ENTERED, missing, hint, places)
    return None


def _waiting(evidence: Evidence) -> list[Call]:
    """[Call] of collectives that ranks wait for, in rank order."""
    return [
        want.call
        for rank in sorted(evidence.traffic.lacking)
        for want in evidence.traffic.lacking[rank]
        if want.call.collective
    ]


def _grouped(calls: Iterable[Call], key: Callable[[Call], Any]) -> list[tuple[Any, list[Call]]]:
    """[(key, calls)], the smallest group first, because it is probably the wrong one."""
    groups: dict[Any, list[Call]] = defaultdict(list)
    for call in calls:
        groups[key(call)].append(call)
    return sorted(groups.items(), key=lambda item: (len(item[1]), -item[1][0].rank))


def _match(
    pattern: str,
    evidence: Evidence,
    calls: Sequence[Call],
    groups: Iterable[tuple[Any, list[Call]]],
    hint: str,
    headline: str,
) -> Match:
    """A Match for a collective; its ranks are those still inside, or all if none is."""
    ordered = [call for _, group in groups for call in group]
    inside = [call for call in ordered if call.rank in evidence.stuck and not call.done_ns]
    chosen = inside or ordered or calls
    ranks = tuple(dict.fromkeys(call.rank for call in chosen))
    return Match(pattern, ranks, hint, evidence.places(ordered, "call it here"), headline)


def _same_collective(one: Call, other: Call) -> bool:
    return (one.communicator, one.sequence, one.name) == (
        other.communicator,
        other.sequence,
        other.name,
    )


def _still_missing(evidence: Evidence, call: Call) -> tuple[int, ...]:
    """Ranks that have not entered the collective `call`; () if its members are unknown."""
    if call.members != evidence.size:
        return ()
    came = {c.rank for c in evidence.corresponding_calls(call)}
    return tuple(rank for rank in range(evidence.size) if rank not in came)


def _whereabouts(evidence: Evidence, ranks: Iterable[int]) -> list[tuple[str, list[int]]]:
    """[(what they are doing, ranks)]."""
    groups: dict[str, list[int]] = defaultdict(list)
    for rank in ranks:
        groups[_activity(evidence, rank)].append(rank)
    return [
        (
            what
            if len(who) > 1
            else what.replace("wait in", "waits in").replace("have returned", "has returned"),
            who,
        )
        for what, who in groups.items()
    ]


def _activity(evidence: Evidence, rank: int) -> str:
    state = evidence.state(rank)
    if state is None or evidence.ranks[rank] is None:
        return "never started"
    if state.state == FINISHED:
        return "have returned"
    line = f" (line {state.line})" if state.line else ""
    if state.state == BLOCKED:
        return f"wait in {state.call}{line}"
    return f"{state.state} after {state.call}{line}"


def _ground(call: Call) -> str:
    """What the ranks of this collective share: 'communicator' or 'file'."""
    return "file" if call.file and call.name != "MPI_File_open" else "communicator"


def _sorted_ranks(calls: Iterable[Call]) -> tuple[int, ...]:
    return tuple(sorted({call.rank for call in calls}))
