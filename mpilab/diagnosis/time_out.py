"""Time-outs: which ranks compute, and in which lines."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from mpilab.diagnosis import model
from mpilab.diagnosis.deadlock import deadlock
from mpilab.diagnosis.evidence import Evidence, conjugated
from mpilab.diagnosis.model import DEADLOCK, TIME_OUT, Diagnosis, Place, Table
from mpilab.runners.hang import BLOCKED, COMPUTING, NOT_BEGUN, RankState
from mpilab.trace.recording import CANCELLED, NONBLOCKING, POLLS, RECEIVES, SENDS, Call

# How often a rank was sampled at each (file, line).
Spots = Counter[tuple[str, int]]

ENDLESS, POLLING = "an endless loop", "polling in vain"
TESTS = ("MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome")
AGAIN = 100  # this many consecutive calls from at most LOOP_SITES places count as a loop
LOOP_SITES = 4
MOVING_S = 0.5  # who entered a call more recently still made progress when time was up
LINES = 4  # at most this many lines in which ranks were sampled are shown


def time_out(evidence: Evidence) -> Diagnosis:
    """The Diagnosis of a run that did not finish in time."""
    computing = [state for state in evidence.states if state.state == COMPUTING]
    computing = computing or _still_calling(evidence)
    not_begun = [state for state in evidence.states if state.state == NOT_BEGUN]
    if not computing:
        return _never_began(evidence, not_begun) if not_begun else _standstill(evidence)
    looks = {state.rank: _lines_met(evidence, state.rank) for state in computing}
    polls = [state.rank for state in computing if _was_polling(evidence, state.rank)]
    ranks = tuple(state.rank for state in computing)
    calling = [rank for rank in ranks if _calls_again(evidence, rank, looks[rank])]
    endless = not polls and (bool(calling) or any(looks.values()))
    return Diagnosis(
        TIME_OUT,
        f"time-out: {model.ranks(ranks)} {_what(evidence, ranks, calling)} without end"
        f"{_where(looks)}",
        pattern=POLLING if polls else ENDLESS if endless else "",
        hint=_hint(evidence, polls, calling, looks),
        ranks=ranks,
        # The place where a rank was sampled reveals more than any rank's last call.
        places=(*_met(evidence, looks), *_last_calls(evidence, ranks)),
        tables=tuple(filter(None, (evidence.doing(), _table(looks)))),
        notes=_since(evidence, [*computing, *not_begun]),
    )


def _still_calling(evidence: Evidence) -> list[RankState]:
    """The states of ranks that were in a call when time was up, but in the latest of many."""
    return [
        state
        for state in evidence.states
        if state.state == BLOCKED
        and state.since_s < MOVING_S
        and _calls_again(evidence, state.rank, Counter())
    ]


def _never_began(evidence: Evidence, states: Sequence[RankState]) -> Diagnosis:
    """The Diagnosis if no rank computes, but some have not reached the kernel."""
    ranks = tuple(state.rank for state in states)
    return Diagnosis(
        TIME_OUT,
        f"time-out: {model.ranks(ranks)} never started",
        hint=(
            "The kernel was not even called there, so its code is not the cause. Run it again, "
            "with fewer ranks if this machine is busy."
        ),
        ranks=ranks,
        tables=(evidence.doing(),),
    )


def _standstill(evidence: Evidence) -> Diagnosis:
    """The Diagnosis if all ranks wait, but something may still be in flight."""
    found = deadlock(evidence)
    if found.pattern:
        return found
    if evidence.stuck:
        who = model.ranks(evidence.stuck)
        headline = (
            f"time-out: {who} {conjugated('wait', len(evidence.stuck))} inside MPI for too long"
        )
        hint = (
            "The data that they wait for is on its way, but takes too long: is the message very "
            "large?"
        )
        return replace(found, kind=TIME_OUT, headline=headline, hint=hint)
    left = evidence.traffic.sent
    if not left:
        return replace(found, kind=TIME_OUT, headline=found.headline.replace(DEADLOCK, TIME_OUT))
    message = left[0]
    return replace(
        found,
        kind=TIME_OUT,
        pattern="a message left over",
        ranks=(message.rank, message.peer),
        headline="time-out: every rank has returned, but a message was left over",
        hint=(
            f"Rank {message.rank} has sent rank {message.peer}{evidence.at(message)} a message "
            "that is never received. One send too many, or one receive too few?"
        ),
        places=evidence.places([message], "have sent here"),
    )


def _lines_met(evidence: Evidence, rank: int) -> Spots:
    """Counter of the (file, line) at which `rank` was sampled; line 0: outside the kernel."""
    return Counter(_spot(evidence, site) for site in evidence.result.samples.get(rank, ()))


def _spot(evidence: Evidence, site: int) -> tuple[str, int]:
    """(file, line); line 0 if the source is not available."""
    file, line = evidence.spot(site)
    place = evidence.place(site, "") if file else None
    return (file, line) if not file or (place and place.text) else ("", 0)


def _was_polling(evidence: Evidence, rank: int) -> bool:
    call = evidence.last_call(rank)
    return call is not None and bool(call.flags & POLLS)


def _calls_again(evidence: Evidence, rank: int, lines: Spots) -> bool:
    """Whether a rank that was sampled in these `lines`, if at all, repeats the same calls."""
    call = evidence.last_call(rank)
    if call is None:
        return False
    recorded = evidence.recorded(rank)
    latest = recorded.records[-AGAIN:]
    sites = np.unique(latest["site"]).tolist()
    is_same = len(sites) <= LOOP_SITES and not np.any(latest["flags"] & POLLS)
    if not is_same or (lines and not any(lines[evidence.spot(site)] for site in sites)):
        return False
    is_inside = not call.end_ns
    is_loop = recorded.header["dropped"] > 0 or ((lines or is_inside) and len(latest) == AGAIN)
    return bool(is_loop)


def _what(evidence: Evidence, ranks: Sequence[int], calling: Sequence[int]) -> str:
    """'compute', or 'call MPI_Sendrecv' if all of them do."""
    loops = {tuple(sorted(_names(evidence, rank))) for rank in calling}
    if len(calling) == len(ranks) and len(loops) == 1:
        return f"{conjugated('call', len(ranks))} {' and '.join(loops.pop())}"
    return conjugated("compute", len(ranks))


def _names(evidence: Evidence, rank: int) -> set[str]:
    """The names of the latest AGAIN calls of `rank`."""
    _, first = np.unique(evidence.recorded(rank).records["operation"][-AGAIN:], return_index=True)
    before = max(0, len(evidence.recorded(rank).records) - AGAIN)
    return {evidence.name(call) for call in evidence.calls(rank, before + first)}


def _where(looks: Mapping[int, Spots]) -> str:
    """' in lines 14 to 17': the lines sampled; '' if unknown."""
    lines = {line for counter in looks.values() for _, line in counter if line}
    if not lines:
        return ""
    return f" in line{'s' * (len(lines) > 1)} {model.runs(lines)}"


def _hint(
    evidence: Evidence, polls: Sequence[int], calling: Sequence[int], looks: Mapping[int, Spots]
) -> str:
    call = evidence.last_call(polls[0]) if polls else None
    if call is not None:
        return (
            f"Rank {polls[0]} asked with {call.name}{evidence.at(call)} {call.count} times, and "
            "never completed it. A loop that only tests must end, or must first do what the other "
            "ranks wait for."
        )
    tested = next(filter(None, (_tests_nothing(evidence, rank, looks) for rank in looks)), None)
    if tested is not None:
        return (
            f"All requests of rank {tested.rank} are complete, but its loop keeps testing them "
            f"with {tested.name}{evidence.at(tested)}: its count never reaches the target. The "
            "call that completes a request sets it to MPI_REQUEST_NULL at once."
        )
    why = (
        "does its condition ever become false? A counter that never changes, an unsigned number "
        "that should fall below 0, or a step of 0 keeps it running."
    )
    call = evidence.last_call(calling[0]) if calling else None
    if call is not None:
        with_itself = ", always with itself" if _is_with_itself(evidence, call) else ""
        return (
            f"Rank {call.rank} calls {evidence.name(call)}{evidence.at(call)} "
            f"repeatedly{with_itself}. Look at the loop around it: {why}"
        )
    if any(line for counter in looks.values() for _, line in counter):
        return f"Look at the loop around these lines: {why}"
    return "Look at the loops after its last MPI call: does each one end?"


def _is_with_itself(evidence: Evidence, call: Call) -> bool:
    latest = evidence.recorded(call.rank).records[-AGAIN:]
    moves = (latest["flags"] & (SENDS | RECEIVES) != 0).all()
    return bool(moves and (latest["peer"] == call.rank).all())


def _tests_nothing(evidence: Evidence, rank: int, looks: Mapping[int, Spots]) -> Call | None:
    """The last call of `rank` if it is a test, the rank was sampled in its line, and no request is
    left to test; or None."""
    call = evidence.last_call(rank)
    if call is None or call.name not in TESTS or evidence.spot(call.site) not in looks[rank]:
        return None
    records = evidence.recorded(rank).records
    is_open = (records["flags"] & (NONBLOCKING | CANCELLED) == NONBLOCKING) & (
        records["done_ns"] == 0
    )
    return None if np.any(is_open) or evidence.recorded(rank).header["dropped"] > 0 else call


def _met(evidence: Evidence, looks: Mapping[int, Spots]) -> list[Place]:
    """Places where ranks were sampled, one per line, the most frequent first."""
    sites = {
        _spot(evidence, site): site
        for rank in looks
        for site in evidence.result.samples.get(rank, ())
    }
    total: Spots = sum(looks.values(), Counter())
    found = []
    for spot, _ in [one for one in total.most_common() if one[0][1]][:LINES]:
        ranks = [rank for rank, counter in looks.items() if counter[spot]]
        label = f"{model.ranks(ranks)} {conjugated('were sampled here', len(ranks))}"
        if len(ranks) == 1:
            counter = looks[ranks[0]]
            label += f" in {counter[spot]} of {sum(counter.values())} samples"
        found.append(evidence.place(sites[spot], label))
    return [place for place in found if place is not None]


def _last_calls(evidence: Evidence, ranks: Iterable[int]) -> list[Place]:
    """Places of the last calls of these ranks."""
    by_spot: dict[tuple[str, int], list[Call]] = defaultdict(list)
    for rank in ranks:
        call = evidence.last_call(rank)
        if call is not None and not evidence.is_copy(call):
            by_spot[evidence.spot(call.site)].append(call)
    found = [
        evidence.place(calls[0].site, f"the last call of {model.ranks(c.rank for c in calls)}")
        for calls in by_spot.values()
    ]
    return [place for place in found if place is not None]


def _table(looks: Mapping[int, Spots]) -> Table | None:
    rows = []
    for rank, counter in looks.items():
        known = {line: count for (_, line), count in sorted(counter.items()) if line}
        if known:
            rows.append(
                (rank, model.runs(known), f"{sum(known.values())} of {sum(counter.values())}")
            )
    if not rows:
        return None
    return Table("Where ranks were found computing", ("rank", "lines", "samples"), tuple(rows))


def _since(evidence: Evidence, states: Iterable[RankState]) -> tuple[str, ...]:
    """Sentences on the last calls, one for all ranks that reached the same point."""
    found: dict[str, list[int]] = defaultdict(list)
    for state in states:
        found[_last_words(evidence, state)].append(state.rank)
    return tuple(
        said.format(
            ranks=model.ranks(ranks),
            Ranks=model.capital(model.ranks(ranks)),
            has=conjugated("have", len(ranks)),
            goes=conjugated("go", len(ranks)),
        )
        for said, ranks in list(found.items())[:4]
    )


def _last_words(evidence: Evidence, state: RankState) -> str:
    if state.state == NOT_BEGUN:
        return "{Ranks} never started."
    call = evidence.last_call(state.rank)
    if call is None:
        return "{Ranks} {has} made no MPI call at all."
    if evidence.is_copy(call):
        return "{Ranks} {has} only copied its own data."
    if evidence.recorded(state.rank).header["dropped"] > 0:
        return (
            "{Ranks} {goes} on making MPI calls, more than a recording holds; the last recorded "
            f"call was {evidence.name(call)}{evidence.at(call)}."
        )
    return f"The last MPI call of {{ranks}} was {evidence.name(call)}{evidence.at(call)}."
