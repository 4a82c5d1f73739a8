"""Time-out: which rank computes, and in which lines."""

from collections import Counter
from dataclasses import replace

from mpilab.diagnosis import words
from mpilab.diagnosis.deadlock import deadlock
from mpilab.diagnosis.evidence import conjugated
from mpilab.diagnosis.model import DEADLOCK, TIME_OUT, Diagnosis, Table
from mpilab.hang import COMPUTING, NOT_BEGUN
from mpilab.recording import POLLS

ENDLESS, POLLING = "an endless loop", "polling in vain"


def time_out(evidence):
    """The Diagnosis of a run that did not come to its end in time."""
    computing = [state for state in evidence.states if state.state in (COMPUTING, NOT_BEGUN)]
    if not computing:
        return _standstill(evidence)
    looks = {state.rank: _lines_met(evidence, state.rank) for state in computing}
    polls = [state.rank for state in computing if _was_polling(evidence, state.rank)]
    ranks = tuple(state.rank for state in computing)
    # Where a rank was met tells more than any rank's last call.
    places = [place for rank in ranks for place in _met(evidence, rank, looks[rank])]
    places += [place for rank in ranks for place in _last_call(evidence, rank)]
    endless = not polls and any(looks.values())
    return Diagnosis(
        TIME_OUT,
        f"time-out: {words.ranks(ranks)} {conjugated('compute', len(ranks))} without end"
        f"{_where(looks)}",
        pattern=POLLING if polls else ENDLESS if endless else "",
        hint=_hint(evidence, polls, looks),
        ranks=ranks,
        places=tuple(places),
        tables=tuple(filter(None, (evidence.doing(), _table(looks)))),
        notes=tuple(_since(evidence, state) for state in computing[:4]),
    )


def _standstill(evidence):
    """Everybody waits, but whether something is under way could not be told for sure."""
    found = deadlock(evidence)
    if found.pattern:
        return found
    if evidence.stuck:
        who = words.ranks(evidence.stuck)
        headline = f"time-out: {who} {conjugated('wait', len(evidence.stuck))} inside MPI, too long"
        hint = "What they wait for is under way, but it took too long: is there very much data?"
        return replace(found, kind=TIME_OUT, headline=headline, hint=hint)
    left = evidence.traffic.sent
    if not left:
        return replace(found, kind=TIME_OUT, headline=found.headline.replace(DEADLOCK, TIME_OUT))
    message = left[0]
    return replace(
        found, kind=TIME_OUT, pattern="a message left over", ranks=(message.rank, message.peer),
        headline="time-out: every rank has returned, but a message was left over",
        hint=f"Rank {message.rank} has sent to rank {message.peer}{evidence.at(message)} what "
        "nobody receives. One send too many, or one receive too few?",
        places=evidence.places([message], "have sent here"),
    )  # fmt: skip


def _lines_met(evidence, rank):
    """Counter of (file, line) at which `rank` was met; line 0: outside of the kernel."""
    return Counter(evidence.spot(site) for site in evidence.result.samples.get(rank, ()))


def _was_polling(evidence, rank):
    call = evidence.last_call(rank)
    return call is not None and bool(call.flags & POLLS)


def _where(looks):
    """' in lines 14 to 17' if the looks agree on a few lines."""
    lines = {line for counter in looks.values() for _, line in counter if line}
    if not lines:
        return ""
    return f" in line{'s' * (len(lines) > 1)} {words.runs(lines)}"


def _hint(evidence, polls, looks):
    if polls:
        call = evidence.last_call(polls[0])
        return (
            f"Rank {polls[0]} asked with {call.name}{evidence.at(call)} {call.count} times, and "
            "never got its answer. A loop that only tests needs an end, or has to do first what "
            "the others wait for."
        )
    if any(line for counter in looks.values() for _, line in counter):
        return (
            "Look at the loop around these lines: does its condition ever become false? A counter "
            "that is not changed, an unsigned number that should fall below 0, or a step of 0 keep "
            "it going."
        )
    return "Look at the loops behind its last MPI call: does each come to its end?"


def _met(evidence, rank, lines):
    met = sum(lines.values())
    sites = {evidence.spot(site): site for site in evidence.result.samples.get(rank, ())}
    label = "rank {} was met here in {} of {} looks"
    found = [evidence.place(sites[spot], label.format(rank, count, met))
             for spot, count in lines.most_common(4)]  # fmt: skip
    return [place for place in found if place is not None]


def _last_call(evidence, rank):
    call = evidence.last_call(rank)
    place = call and evidence.place(call.site, f"the last call of rank {rank}")
    return [place] if place else []


def _table(looks):
    rows = []
    for rank, counter in looks.items():
        known = {line: count for (_, line), count in sorted(counter.items()) if line}
        if known:
            rows.append((rank, words.runs(known),
                         f"{sum(known.values())} of {sum(counter.values())}"))  # fmt: skip
    if not rows:
        return None
    return Table("Where ranks were met computing", ("rank", "lines", "looks"), tuple(rows))


def _since(evidence, state):
    if state.state == NOT_BEGUN:
        return f"Rank {state.rank} never began."
    call = evidence.last_call(state.rank)
    if call is None:
        return f"Rank {state.rank} has made no MPI call at all."
    if evidence.ranks[state.rank].header["dropped"] > 0:
        return (
            f"Rank {state.rank} goes on making MPI calls, more than a recording holds; the last "
            f"one written down was {evidence.name(call)}{evidence.at(call)}."
        )
    return f"The last MPI call of rank {state.rank} was {evidence.name(call)}{evidence.at(call)}."
