"""Deadlock: who waits for whom, since when, and which mistake it looks like."""

from dataclasses import replace

from mpilab.diagnosis import words
from mpilab.diagnosis.evidence import conjugated
from mpilab.diagnosis.model import DEADLOCK, Diagnosis
from mpilab.diagnosis.patterns import recognise
from mpilab.hang import Hang

STRICT = "Strict mode is on: every MPI_Send waits until its message is being received."


def deadlock(evidence):
    """The Diagnosis of a run in which every unfinished rank waits."""
    cycle = Hang(DEADLOCK, tuple(map(_without_itself, evidence.states))).cycle()
    match = recognise(evidence)
    waiting = [evidence.traffic.wants[rank][0].waiting for rank in sorted(evidence.traffic.wants)]
    places = evidence.places(waiting, "wait here")
    notes = [STRICT] if evidence.result.case.strict else []
    if match is None:
        return Diagnosis(
            DEADLOCK, headline(evidence, cycle), ranks=cycle or evidence.stuck, cycle=cycle,
            hint="Look at the table: which rank should send, or come, so that the next can go on?",
            places=places, tables=(evidence.doing(),), notes=tuple(notes),
        )  # fmt: skip
    return Diagnosis(
        DEADLOCK,
        f"{DEADLOCK}: {match.headline}" if match.headline else headline(evidence, cycle),
        pattern=match.pattern,
        hint=match.hint,
        ranks=match.ranks,
        places=_with_all_who_wait(match.places, places),
        cycle=cycle,
        tables=(evidence.doing(),),
        notes=tuple(notes),
    )


def headline(evidence, cycle=()):
    """'deadlock: rank 0 waits for rank 1 and rank 1 for rank 0'."""
    if len(cycle) == 2:
        one, other = cycle
        return f"deadlock: rank {one} waits for rank {other}, and rank {other} for rank {one}"
    if len(cycle) > 2:
        circle = " waits for ".join(map(str, (*cycle, cycle[0])))
        return f"deadlock: {len(cycle)} ranks wait in a circle, {circle}" if len(cycle) <= 8 else (
            f"deadlock: {len(cycle)} ranks wait in a circle")  # fmt: skip
    stuck = evidence.stuck
    if not stuck:
        return "deadlock: nothing moves, although every rank has returned from the kernel"
    state = evidence.state(stuck[0])
    if len(stuck) == 1:
        return f"deadlock: {state.describe()}, and nobody comes"
    calls = {evidence.state(rank).call.partition(" ")[0] for rank in stuck}
    inside = f" in {calls.pop()}" if len(calls) == 1 else ""
    whom = sorted({p for rank in stuck for p in evidence.state(rank).waits_for} - set(stuck))
    for_whom = f" for {words.ranks(whom)}" if whom else ""
    return (
        f"deadlock: {words.ranks(stuck)} {conjugated('wait', len(stuck))}{inside}{for_whom}, "
        "and none can go on"
    )


def _without_itself(state):
    """The state of a rank that waits for itself and others as one that waits for the others: what
    is shown is a circle of several."""
    others = tuple(rank for rank in state.waits_for if rank != state.rank)
    return replace(state, waits_for=others) if others else state


def _with_all_who_wait(places, waiting):
    """`places` and those at which ranks are `waiting`, each line once. Of a line where the first
    ones say who waits there, all are told who do."""
    found = {}
    for place in (*places, *waiting):
        found.setdefault((place.file, place.line), place)
    for place in waiting:
        first = found[place.file, place.line]
        if first.label.endswith(("wait here", "waits here")):
            found[place.file, place.line] = place
    return tuple(found.values())
