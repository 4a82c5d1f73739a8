"""Patterns of deadlocks in collectives: ranks that do not meet, or meet with different arguments.

Each recogniser takes the Evidence and returns a Match or None.
"""

from collections import defaultdict
from dataclasses import replace

from mpilab.diagnosis import words
from mpilab.diagnosis.evidence import conjugated
from mpilab.diagnosis.match import Match
from mpilab.hang import ALIKE, BLOCKED, FINISHED, ROOT_DIFFERS


def different_collectives(evidence):
    """Ranks that come to the same communicator with different calls."""
    for calls in _open_meetings(evidence):
        by_name = _grouped(calls, lambda call: call.name)
        if len(by_name) > 1:
            others = [f"{words.ranks(c.rank for c in group)} {conjugated('call', len(group))} "
                      f"{name}{evidence.at(group[0])}" for name, group in by_name]  # fmt: skip
            hint = (
                f"On the same communicator, {words.listing(others)}. All ranks have to call "
                "the same collectives in the same order."
            )
            called = words.listing(name for name, _ in by_name)
            headline = f"ranks call {called} at the same time on one communicator"
            return _match("different collectives", evidence, calls, by_name, hint, headline)
    return None


def wrong_root(evidence):
    """Ranks that come to the same collective with different roots."""
    for calls in _open_meetings(evidence):
        by_root = _grouped(calls, lambda call: (call.name, call.peer))
        if len(by_root) > 1 and len({call.name for call in calls}) == 1:
            name = calls[0].name
            said = [
                f"{words.ranks(c.rank for c in group)} {conjugated('call', len(group))} {name} "
                f"with {'root ' + str(root) if root >= 0 else 'a root that does not exist'}"
                f"{evidence.at(group[0])}"
                for (_, root), group in by_root
            ]
            if len(said) > 4:
                said = [*said[:3], f"{len(said) - 3} more ranks with yet other roots"]
            hint = (
                f"{words.capital(words.listing(said))}. All ranks have to name the same root: "
                "it must not depend on the rank."
            )
            # Besides those that stand alone, the ranks that were taken for the root.
            odd = [call.rank for call in by_root[0][1]]
            roots = [root for (_, root), _ in by_root if 0 <= root < evidence.size]
            headline = f"ranks call {name} with different roots"
            match = _match("wrong root", evidence, calls, by_root, hint, headline)
            return replace(match, ranks=tuple(dict.fromkeys([*odd, *roots])))
    return None


def different_counts(evidence):
    """Ranks that bring different amounts of data to a collective that wants the same of all."""
    for calls in _open_meetings(evidence):
        if len({(call.name, call.peer) for call in calls}) > 1 or calls[0].name not in ALIKE:
            continue
        name = calls[0].name
        counted = [c for c in calls if not (name in ROOT_DIFFERS and c.rank == c.peer)]
        by_bytes = _grouped(counted, lambda call: call.bytes)
        if len(by_bytes) > 1:
            said = [f"{words.ranks(c.rank for c in group)} {conjugated('call', len(group))} it "
                    f"with {words.number(size, 'byte')}{evidence.at(group[0])}"
                    for size, group in by_bytes[:4]]  # fmt: skip
            hint = (
                f"{name} wants the same amount of data from every rank: "
                f"{words.listing(said)}. Compare count and datatype."
            )
            headline = f"ranks call {name} with different amounts of data"
            return _match("different counts", evidence, calls, by_bytes, hint, headline)
    return None


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
                f"on {_letter(number)}"
                for number, (_, group) in enumerate(by_communicator[:4])]  # fmt: skip
        hint = (
            f"{words.ranks(c.rank for c in calls).capitalize()} all call {name}, but on different "
            f"communicators: {words.listing(said)}. Ranks meet only on the same communicator."
        )
        places = evidence.places(calls, "wait here")
        return Match("different communicators", _sorted_ranks(calls), hint, places)
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
            f"{conjugated('call', len(missing))} it: {words.listing(doing)}. Every rank of a "
            "communicator has to call a collective: look for an if or a return that keeps one away."
        )
        places = evidence.places(inside, "wait here")
        return Match("a collective that a rank never enters", missing, hint, places)
    return None


def _open_meetings(evidence):
    """[Call] of all ranks for each meeting that somebody waits in, the earliest first.

    Ranks that have passed by already are among them: their call tells what they brought.
    """
    waited = {(call.sequence, call.communicator): call for call in _waiting(evidence)}
    for _, call in sorted(waited.items()):
        yield evidence.meeting(call)


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


def _letter(number):
    return f"communicator {'ABCD'[number]}"


def _sorted_ranks(calls):
    return tuple(sorted({call.rank for call in calls}))
