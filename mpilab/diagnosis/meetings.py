"""Patterns of deadlocks in collectives: ranks that do not meet, or meet with different arguments.

Each recogniser takes the Evidence and returns a Match or None.
"""

from collections import defaultdict
from dataclasses import replace

import numpy as np

from mpilab.diagnosis import assemblies, wanted, words
from mpilab.diagnosis.evidence import conjugated
from mpilab.diagnosis.match import Match
from mpilab.diagnosis.model import MPI_ERROR, WRONG_RESULT
from mpilab.hang import ALIKE, BLOCKED, FINISHED, ROOT_DIFFERS
from mpilab.recording import COLLECTIVE
from mpilab.result import DONE

NEVER_ENTERED = "a collective that a rank never enters"
# Collectives whose data flows from the root, or to it: what is mistaken for a send.
FROM_ROOT = ("MPI_Bcast", "MPI_Ibcast", "MPI_Scatter", "MPI_Iscatter", "MPI_Scatterv",
             "MPI_Iscatterv")  # fmt: skip
TO_ROOT = ("MPI_Gather", "MPI_Igather", "MPI_Gatherv", "MPI_Igatherv", "MPI_Reduce", "MPI_Ireduce")


_RULES = {
    "communicator": "Every rank of a communicator has to call a collective",
    "file": "Every rank that has opened a file has to make a collective call on it",
}
_KEPT_AWAY = "look for an if or a return that keeps one away."


def because_of_collectives(found, evidence):
    """The Diagnosis `found` of a run with a wrong result or an MPI error, told by the collective in
    which ranks disagree, where there is one; else `found` as it is.

    Where little data is sent, ranks leave such a collective as if nothing had been wrong.
    """
    if found is None or found.kind not in (MPI_ERROR, WRONG_RESULT):
        return found
    match = disagreement(evidence) or _left_alone(evidence)
    if match is None:
        return found
    lines = {(place.file, place.line) for place in match.places}
    others = [place for place in found.places if (place.file, place.line) not in lines]
    return replace(
        found, headline=f"{found.kind.replace('-', ' ').replace('mpi', 'MPI')}: {match.headline}",
        pattern=match.pattern, hint=match.hint, ranks=match.ranks,
        places=(*match.places, *others),
        notes=(f"{words.capital(found.headline)}.", *found.notes),
    )  # fmt: skip


def disagreement(evidence):
    """The earliest collective to which ranks come with different calls, roots or amounts of data,
    whether they are still inside or not."""
    for calls in assemblies.conflicts(evidence):
        for differs in (_names_differ, _roots_differ, _amounts_differ):
            match = differs(evidence, calls)
            if match is not None:
                return match
    return None


def _names_differ(evidence, calls):
    by_name = _grouped(calls, lambda call: call.name)
    if len(by_name) < 2:
        return None
    others = [f"{words.ranks(c.rank for c in group)} {conjugated('call', len(group))} "
              f"{name}{evidence.at(group[0])}" for name, group in by_name]  # fmt: skip
    hint = (
        f"On the same {_ground(calls[0])}, {words.listing(others)}. All ranks have to call "
        "the same collectives in the same order."
    )
    called = words.listing(name for name, _ in by_name)
    headline = f"ranks call {called} at the same time on one {_ground(calls[0])}"
    return _match("different collectives", evidence, calls, by_name, hint, headline)


def _roots_differ(evidence, calls):
    by_root = _grouped(calls, lambda call: call.peer)
    if len(by_root) < 2:
        return None
    name = calls[0].name
    said = [
        f"{words.ranks(c.rank for c in group)} {conjugated('call', len(group))} {name} "
        f"with {'root ' + str(root) if root >= 0 else 'a root that does not exist'}"
        f"{evidence.at(group[0])}"
        for root, group in by_root
    ]
    if len(said) > 4:
        said = [*said[:3], f"{len(said) - 3} more ranks with yet other roots"]
    hint = (
        f"{words.capital(words.listing(said))}. All ranks have to name the same root: "
        "it must not depend on the rank."
    )
    # Besides those that stand alone, the ranks that were taken for the root.
    odd = [call.rank for call in by_root[0][1]]
    roots = [root for root, _ in by_root if 0 <= root < evidence.size]
    headline = f"ranks call {name} with different roots"
    match = _match("wrong root", evidence, calls, by_root, hint, headline)
    return replace(match, ranks=tuple(dict.fromkeys([*odd, *roots])))


def _amounts_differ(evidence, calls):
    name = calls[0].name
    if name not in ALIKE:
        return None
    counted = [c for c in calls if not (name in ROOT_DIFFERS and c.rank == c.peer)]
    by_bytes = _grouped(counted, lambda call: call.bytes)
    if len(by_bytes) < 2:
        return None
    said = [f"{words.ranks(c.rank for c in group)} {conjugated('call', len(group))} it "
            f"with {words.number(size, 'byte')}{evidence.at(group[0])}"
            for size, group in by_bytes[:4]]  # fmt: skip
    hint = (
        f"{name} wants the same amount of data from every rank: "
        f"{words.listing(said)}. Compare count and datatype."
    )
    headline = f"ranks call {name} with different amounts of data"
    return _match("different counts", evidence, calls, by_bytes, hint, headline)


def _left_alone(evidence):
    """A collective that some ranks have called and left, while others have returned without it."""
    if evidence.result.outcome != DONE or any(
        rank is None or rank.header["dropped"] or rank.records["error"].any()
        for rank in evidence.ranks
    ):
        return None
    for calls in assemblies.incomplete(evidence):
        came = {call.rank for call in calls}
        missing = [rank for rank in range(evidence.size) if rank not in came]
        call = calls[0]
        if call.members != evidence.size or call.name.startswith("MPI_Comm_"):
            continue
        hint = (
            f"Only {words.ranks(came)} called {call.name}{evidence.at(call)}, "
            f"{words.ranks(missing)} never did. {_RULES[_ground(call)]}: {_KEPT_AWAY}"
        )
        headline = f"only {words.ranks(came)} called {call.name}"
        places = evidence.places(calls, "call it here")
        return Match(NEVER_ENTERED, (*missing, *sorted(came)), hint, places, headline)
    return None


def received_instead(evidence):
    """A rank waits in a receive for what the other one has given to a collective."""
    found = [(want, call) for want in wanted.all_wants(evidence)
             if want.call.receives and 0 <= want.call.peer < evidence.size
             for call in _given(evidence, want.call)[:1]]  # fmt: skip
    if not found:
        return None
    given = found[0][1]
    same = [want for want, call in found if (call.rank, call.name) == (given.rank, given.name)]
    waiting, who = same[0].waiting, {want.call.rank for want in same}
    hint = (
        f"Rank {given.rank} has called {given.name}{evidence.at(given)}, but {words.ranks(who)} "
        f"{conjugated('wait in', len(who))} {waiting.name}{evidence.at(waiting)}. No receive gets "
        f"what goes through {given.name}: every rank has to call {given.name} itself."
    )
    headline = (
        f"rank {given.rank} has called {given.name}, {words.ranks(who)} "
        f"{conjugated('wait in', len(who))} {waiting.name}"
    )
    match = wanted.of_wants(NEVER_ENTERED, evidence, same, hint)
    calls = evidence.places([given], "have called it here")
    return replace(match, places=(*match.places, *calls), headline=headline)


def _given(evidence, receive):
    """[Call] of the rank that `receive` waits for: collectives that would bring data to the
    receiving rank, which has not come to them; the earliest first."""
    other = evidence.ranks[receive.peer]
    if other is None or evidence.ranks[receive.rank] is None:
        return []
    records = other.records
    chosen = np.flatnonzero((records["flags"] & COLLECTIVE != 0) & (records["error"] == 0)
                            & (records["communicator"] == receive.communicator)
                            & (records["members"] == evidence.size))  # fmt: skip
    own = evidence.ranks[receive.rank].records
    own = own[(own["flags"] & COLLECTIVE != 0) & (own["communicator"] == receive.communicator)]
    chosen = chosen[~np.isin(records["sequence"][chosen], own["sequence"])][: assemblies.LOOKED_AT]
    return [call for call in evidence.calls(receive.peer, chosen.tolist())
            if (call.name in FROM_ROOT and call.peer == receive.peer)
            or (call.name in TO_ROOT and call.peer == receive.rank)]  # fmt: skip


def different_communicators(evidence):
    """Ranks that call the same collective, but on communicators that are not the same."""
    waiting = _waiting(evidence)
    by_name = defaultdict(list)
    for call in waiting:
        by_name[call.name].append(call)
    for name, calls in by_name.items():
        by_communicator = _grouped(calls, lambda call: call.communicator)
        short = [c for c in calls if _still_missing(evidence, c)]
        if len(by_communicator) < 2 or not short:
            continue
        said = [f"{words.ranks(c.rank for c in group)}{evidence.at(group[0])} "
                f"on {_ground(group[0])} {'ABCD'[number]}"
                for number, (_, group) in enumerate(by_communicator[:4])]  # fmt: skip
        hint = (
            f"{words.ranks(c.rank for c in calls).capitalize()} all call {name}, but on different "
            f"{_ground(calls[0])}s: {words.listing(said)}. Ranks meet only on the same "
            f"{_ground(calls[0])}."
        )
        places = evidence.places(calls, "wait here")
        return Match(f"different {_ground(calls[0])}s", _sorted_ranks(calls), hint, places)
    return None


def never_entered(evidence):
    """A collective that some ranks wait in and others never come to."""
    for call in _waiting(evidence):
        missing = _still_missing(evidence, call)
        if not missing:
            continue
        inside = [c for c in _waiting(evidence) if _same_meeting(c, call)]
        doing = [f"{words.ranks(ranks)} {what}"
                 for what, ranks in _whereabouts(evidence, missing)]  # fmt: skip
        who = {c.rank for c in inside}
        hint = (
            f"{words.capital(words.ranks(who))} {conjugated('wait in', len(who))} {call.name}"
            f"{evidence.at(call)}, but {words.ranks(missing)} never "
            f"{conjugated('call', len(missing))} it: {words.listing(doing)}. "
            f"{_RULES[_ground(call)]}: {_KEPT_AWAY}"
        )
        places = evidence.places(inside, "wait here")
        return Match(NEVER_ENTERED, missing, hint, places)
    return None


def _waiting(evidence):
    """Calls of collectives that ranks wait for, by rank."""
    return [want.call for rank in sorted(evidence.traffic.lacking)
            for want in evidence.traffic.lacking[rank] if want.call.collective]  # fmt: skip


def _grouped(calls, key):
    """[(key, calls)]; the smallest group first: it is likely the one that is wrong."""
    groups = defaultdict(list)
    for call in calls:
        groups[key(call)].append(call)
    return sorted(groups.items(), key=lambda item: (len(item[1]), -item[1][0].rank))


def _match(pattern, evidence, calls, groups, hint, headline):
    """A Match for a meeting: ranks that are still inside come first, the smallest group first."""
    ordered = [call for _, group in groups for call in group]
    inside = [call for call in ordered if call.rank in evidence.stuck and not call.done_ns]
    chosen = inside or ordered or calls
    ranks = tuple(dict.fromkeys(call.rank for call in chosen))
    return Match(pattern, ranks, hint, evidence.places(ordered, "call it here"), headline)


def _same_meeting(one, other):
    return (one.communicator, one.sequence, one.name) == (
        other.communicator, other.sequence, other.name)  # fmt: skip


def _still_missing(evidence, call):
    """Ranks that have not come to the collective `call`; () if its members are not known."""
    if call.members != evidence.size:
        return ()
    came = {c.rank for c in evidence.meeting(call)}
    return tuple(rank for rank in range(evidence.size) if rank not in came)


def _whereabouts(evidence, ranks):
    """[(what they do, ranks)]."""
    groups = defaultdict(list)
    for rank in ranks:
        groups[_activity(evidence, rank)].append(rank)
    return [(what if len(who) > 1 else what.replace("wait in", "waits in").replace(
        "have returned", "has returned"), who) for what, who in groups.items()]  # fmt: skip


def _activity(evidence, rank):
    state = evidence.state(rank)
    if state is None or evidence.ranks[rank] is None:
        return "never began"
    if state.state == FINISHED:
        return "have returned"
    line = f" (line {state.line})" if state.line else ""
    if state.state == BLOCKED:
        return f"wait in {state.call}{line}"
    return f"{state.state} after {state.call}{line}"


def _ground(call):
    """On what ranks meet in this collective: 'communicator', or 'file'."""
    return "file" if call.file and call.name != "MPI_File_open" else "communicator"


def _sorted_ranks(calls):
    return tuple(sorted({call.rank for call in calls}))
