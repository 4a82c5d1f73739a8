"""What wrong receive memory holds instead, and the mistakes to which that points.

The harness fills every buffer with different data, so a wrong element can often be identified as
the one that was there before, as another rank's, or as another element of the same message.
mpilab.diagnosis.single does the same for reductions, with the same Parts.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import COLLECTIVES, Case, Memory, Places, block_places
from mpilab.cases.data import GUARD_BYTES, Layout, datatype
from mpilab.cases.output import Difference, Output
from mpilab.diagnosis import evidence as wanted
from mpilab.diagnosis import model
from mpilab.diagnosis.evidence import Evidence
from mpilab.diagnosis.model import Diagnosis, Place
from mpilab.trace.recording import ANY, COLLECTIVE, RECEIVES, SENDS, Call

# For a block of a rank: pairs of the places where its data should be and where they would be if
# extents were sizes.
PackedPlaces = Callable[[int, int], Iterator[tuple[Places, Places]]]

# What calls reveal about missing data: which ranks have sent and received.


def sends(evidence: Evidence, rank: int) -> list[Call]:
    """[Call]: one send to another rank for each line of `rank` that sends."""
    recorded = evidence.ranks[rank]
    if recorded is None:
        return []
    records = recorded.records
    chosen = (records["flags"] & SENDS != 0) & (records["peer"] >= 0) & (records["peer"] != rank)
    _, first = np.unique(records["site"][chosen], return_index=True)
    return evidence.calls(rank, np.flatnonzero(chosen)[first].tolist())


def peers_sent_to(evidence: Evidence, rank: int) -> set[int]:
    """The other ranks to which `rank` has sent."""
    return _peers(evidence, rank, SENDS)


def peers_received_from(evidence: Evidence, rank: int) -> set[int]:
    """The other ranks that the receives of `rank` name, complete or not."""
    return _peers(evidence, rank, RECEIVES)


def sources_of(evidence: Evidence, rank: int, size: int) -> set[int]:
    """The other ranks from which `rank` has received a message of just `size` bytes."""
    recorded = evidence.ranks[rank]
    if recorded is None:
        return set()
    records = recorded.records
    chosen = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0)
    chosen &= (records["got_bytes"] == size) & (records["got_peer"] >= 0)
    return set(records["got_peer"][chosen].tolist()) - {rank}


def _peers(evidence: Evidence, rank: int, flag: int) -> set[int]:
    recorded = evidence.ranks[rank]
    if recorded is None:
        return set()
    records = recorded.records
    chosen = (records["flags"] & flag != 0) & (records["peer"] >= 0) & (records["error"] == 0)
    return set(records["peer"][chosen].tolist()) - {rank}


def of_one_line(evidence: Evidence, ranks: Iterable[int]) -> tuple[str, tuple[Place, ...]]:
    """(' (line 17)', Places) of the sends of these ranks; ('', ()) if several lines send."""
    calls = [call for rank in sorted(ranks)[:64] for call in sends(evidence, rank)]
    if len({evidence.spot(call.site) for call in calls}) != 1:
        return "", ()  # it is unknown which of several lines it was
    return evidence.at(calls[0]), evidence.places(calls, "send it here")


def arrived(evidence: Evidence, rank: int) -> str:
    """'Rank 2 has received no message …', 'Rank 2 has received 1 message …', or '' if unknown."""
    if not _knows(evidence, rank):
        return ""
    got = wanted.received(evidence, rank)
    if got == 0:
        sent = sum(wanted.sends(evidence, other, rank) for other in range(evidence.size))
        if not sent:
            return f"Rank {rank} has received no message, and no rank has sent one to it."
        were = "was" if sent == 1 else "were"
        return f"Rank {rank} has received no message; {sent} to it {were} sent."
    records = evidence.recorded(rank).records
    taken = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0)
    taken &= (records["got_peer"] >= 0) & (records["got_peer"] != rank)
    total = int(records["got_bytes"][taken].sum())
    return (
        f"Rank {rank} has received {model.number(got, 'message')} with "
        f"{model.number(total, 'byte')} in all."
    )


def only_empty(evidence: Evidence, rank: int) -> bool:
    """Whether all messages that `rank` has received, at least one, are known to be empty."""
    recorded = evidence.ranks[rank]
    if recorded is None or not wanted.received(evidence, rank):
        return False
    records = recorded.records
    taken = (records["flags"] & RECEIVES != 0) & (records["done_ns"] != 0)
    return not records["got_bytes"][taken & (records["got_peer"] != rank)].any()


def sent_to(evidence: Evidence, rank: int) -> tuple[Place, ...]:
    """Places of the sends to `rank`."""
    calls = [
        call
        for other in range(evidence.size)
        for call in (sends(evidence, other) if rank in peers_sent_to(evidence, other) else ())
        if call.peer == rank
    ]
    return evidence.places(calls, "send it here")


def has_sent(evidence: Evidence, size: int) -> bool:
    """Whether a message of `size` bytes, at least 1, was sent; True if no send is recorded."""
    sizes: set[int] = set()
    for rank in evidence.ranks:
        if rank is not None:
            sizes.update(rank.records["bytes"][rank.records["flags"] & SENDS != 0].tolist())
    return size > 0 and (not sizes or size in sizes)


def sent_by(evidence: Evidence, rank: int) -> str:
    """'Rank 3 has sent no message.', 'Rank 3 has sent 1 message, to rank 2.', or '' if unknown."""
    if not _knows(evidence, rank):
        return ""
    peers = peers_sent_to(evidence, rank)
    if not peers:
        return f"Rank {rank} has sent no message."
    number = wanted.sends(evidence, rank)
    return f"Rank {rank} has sent {model.number(number, 'message')}, to {model.ranks(peers)}."


def _knows(evidence: Evidence, rank: int) -> bool:
    """Whether the recording is complete and has no collectives, which could also move data."""
    recorded = evidence.ranks[rank]
    if recorded is None or recorded.header["dropped"] or not recorded.finished:
        return False
    return not (recorded.records["flags"] & COLLECTIVE != 0).any()


# Wrong blocks with the initial contents of a buffer. The harness fills every buffer with different
# data, so anything sent or moved before the correct data arrived is recognized anywhere.

LOOKED_AT_FILLS, BEGINNING = 4096, 16
LEAST_FILL_BYTES = 4  # fewer may match by chance
TOO_EARLY, WRONG_BLOCK, OWN_BLOCK = (
    "a block sent too early",
    "the wrong block sent",
    "own block missing",
)


class Fill(NamedTuple):
    """Block `block` of `rank` holds what was in block `slot` of rank `source` before the call."""

    rank: int
    block: int
    source: int
    slot: int

    @property
    def pattern(self) -> str:
        """The likely mistake."""
        if self.block == self.source != self.rank:
            return OWN_BLOCK if self.slot == self.source else WRONG_BLOCK
        return TOO_EARLY


def fills(case: Case, outputs: Sequence[Output], wrong: Sequence[Sequence[int]]) -> list[Fill]:
    """[Fill] of those blocks in `wrong`, (rank, block), that hold a buffer's initial contents."""
    if case.block_bytes < LEAST_FILL_BYTES or not wrong:
        return []
    held: dict[
        bytes, list[tuple[int, int]]
    ] = {}  # the beginning of a block is enough to find it, and needs less memory
    for rank, block in wrong[:LOOKED_AT_FILLS]:
        memory, places = outputs[rank].received, block_places(case, block, rank)
        if len(places) >= LEAST_FILL_BYTES and places[-1] < memory.size:
            held.setdefault(memory[places[:BEGINNING]].tobytes(), []).append((rank, block))
    found = []
    for source in range(case.ranks):
        before = case.regions(source)[1]
        for slot in range(COLLECTIVES[case.collective].blocks(case, source).received):
            if case.in_place and slot == source:
                continue
            data = before[block_places(case, slot, source)]
            for rank, block in held.get(data[:BEGINNING].tobytes(), ()):
                whole = outputs[rank].received[block_places(case, block, rank)]
                if (rank, block) != (source, slot) and np.array_equal(whole, data):
                    found.append(Fill(rank, block, source, slot))
    return sorted(found)


def explain_fill(evidence: Evidence, found: Sequence[Fill]) -> tuple[str, str, tuple[Place, ...]]:
    """(pattern, hint, Places) of the most common pattern among the Fills `found`."""
    pattern = Counter(fill.pattern for fill in found).most_common(1)[0][0]
    fill = next(fill for fill in found if fill.pattern == pattern)
    whose = "its own" if fill.source == fill.rank else f"rank {fill.source}'s"
    hint = (
        f"Rank {fill.rank}'s block {fill.block} holds what was in {whose} block {fill.slot} "
        "before it was filled: "
    )
    calls = sends(evidence, fill.source)
    lines = {evidence.spot(call.site) for call in calls}
    at = evidence.at(calls[0]) if len(lines) == 1 else ""
    if pattern == OWN_BLOCK:
        hint += (
            f"rank {fill.source} sent its own block{at} before it was put into the receive "
            "buffer: place_own_block in mpilab.h does that."
        )
    elif pattern == WRONG_BLOCK:
        hint += (
            f"rank {fill.source} sent block {fill.slot}{at} instead of its own: "
            "block(recvbuf, rank, recvcount, recvtype)."
        )
    elif fill.source == fill.rank:
        hint += "it was copied before the data arrived."
    else:
        hint += (
            f"it was sent on{at} before it arrived, or the wrong blocks were sent. Wait for a "
            "block before you forward it."
        )
    senders = {fill.source for fill in found if fill.source != fill.rank}
    places = [call for source in sorted(senders)[:64] for call in sends(evidence, source)]
    if fill.source == fill.rank or len({evidence.spot(call.site) for call in places}) > 1:
        return pattern, hint, ()  # it is unknown which of several lines it was
    return pattern, hint, evidence.places(places, "send it here")


# Misplaced blocks: receives from any rank, and all receives into one block.

TRUNCATED = "message truncated"


def received(evidence: Evidence, rank: int, from_any: bool = False) -> list[Call]:
    """[Call]: receives of `rank` that received another rank's data; `from_any`: MPI_ANY_SOURCE
    only."""
    recorded = evidence.ranks[rank]
    if recorded is None:
        return []
    records = recorded.records
    chosen = (records["flags"] & RECEIVES != 0) & (records["got_bytes"] > 0)
    chosen &= (records["done_ns"] != 0) & (records["got_peer"] >= 0)
    chosen &= records["got_peer"] != rank
    if from_any:
        chosen &= records["peer"] == ANY
    return evidence.calls(rank, np.flatnonzero(chosen).tolist())


def into_one_place(
    evidence: Evidence, codes: NDArray[np.int8], untouched: int
) -> tuple[str, tuple[Place, ...]] | None:
    """(hint, Places) if every rank with wrong blocks received two or more messages into one block,
    its own or one with the same number everywhere; else None.

    codes   [ranks, blocks], those of mpilab.diagnosis.wrong_result.picture.
    """
    ranks = np.flatnonzero((codes != 0).any(axis=1)).tolist()
    of_ranks = {rank: received(evidence, rank) for rank in ranks}
    written = {
        rank: [b for b in np.flatnonzero(codes[rank] != untouched).tolist() if b != rank]
        for rank in ranks
    }
    if any(len(of_ranks[rank]) < 2 or len(written[rank]) > 1 for rank in ranks):
        return None
    same = {block for blocks in written.values() for block in blocks}
    if len(same) > 1 or any(not written[rank] and same - {rank} for rank in ranks):
        return None
    place = min(same, default=None)  # None: each rank's own
    if not any(codes[rank, rank if place is None else place] for rank in ranks):
        return None  # this block is correct: the others went elsewhere
    calls = [call for of_rank in of_ranks.values() for call in of_rank]
    others = "" if place is None else f"block {place} and "
    lines = {evidence.spot(call.site) for call in calls}
    where = f" of {calls[0].name}{evidence.at(calls[0])}" if len(lines) == 1 else ""
    hint = (
        f"Each rank with a wrong block received several messages, but wrote nothing outside "
        f"{others}its own block. Check the receive buffer, such as the index passed to block(), "
        f"and the datatype{where}: a block belongs in the place of the rank that it comes from."
    )
    return hint, evidence.places(calls, "receive it here")


def from_any_rank(
    evidence: Evidence, displaced: Iterable[int]
) -> tuple[str, tuple[Place, ...]] | None:
    """(hint, Places) if ranks in `displaced`, which hold misplaced blocks, received messages of two
    or more senders with MPI_ANY_SOURCE; else None."""
    calls = _of_any(evidence, displaced)
    if not calls:
        return None
    hint = (
        f"{_lines(evidence, calls)} from any rank (MPI_ANY_SOURCE), and messages arrive in any "
        "order: store the block in the place of status.MPI_SOURCE, or name the source."
    )
    return hint, evidence.places(calls, "receive from any rank here")


def note(evidence: Evidence, ranks: Iterable[int]) -> str:
    """A sentence on the MPI_ANY_SOURCE receives of `ranks`, whatever the fault there, or ''."""
    calls = _of_any(evidence, ranks)
    told = f"{_lines(evidence, calls)} from any rank (MPI_ANY_SOURCE)" if calls else ""
    return f"{told}: a message of a later step may arrive first. Name the source." if told else ""


def _of_any(evidence: Evidence, ranks: Iterable[int]) -> list[Call]:
    """The MPI_ANY_SOURCE receives of those `ranks` where they matched several senders."""
    calls: list[Call] = []
    for rank in ranks:
        mine = received(evidence, rank, from_any=True)
        if len({call.got_peer for call in mine}) > 1:
            calls += mine
    return calls


def _lines(evidence: Evidence, calls: Sequence[Call]) -> str:
    """'Line 3 receives', 'Lines 3 and 5 receive'."""
    lines = sorted({evidence.line(call) for call in calls} - {0})
    if not lines:
        return f"{calls[0].name} receives"
    return (
        f"Line{'s' * (len(lines) > 1)} {model.listing(lines[:4])} receive{'s' * (len(lines) < 2)}"
    )


def sharpened(evidence: Evidence, found: Diagnosis) -> Diagnosis:
    """The Diagnosis `found`, with a better hint if a truncated message was received with
    MPI_ANY_SOURCE."""
    if found.pattern != TRUNCATED:
        return found
    for rank in found.ranks:
        for call in received(evidence, rank, from_any=True):
            if call.error and call.got_bytes > call.bytes and call.got_peer < evidence.size:
                hint = (
                    f"{call.name}{evidence.at(call)} receives from any rank (MPI_ANY_SOURCE), and "
                    f"got rank {call.got_peer}'s message, which was meant for another receive, "
                    "perhaps of a later step. Name the source."
                )
                return replace(found, hint=hint)
    return found


# What the elements of a rank's single block are, in a bcast or a scatter.

LEAST_BYTES = 4  # fewer may match by chance
LOOKED_AT = 1 << 16  # longest message, in elements, that is searched for displaced data
MOST_BYTES = 1 << 27  # limit for comparing all ranks' buffers with each rank's
RIGHT, WRONG, UNTOUCHED, OLD, BLOCK, MOVED, COMBINED = (
    "right",
    "wrong",
    "untouched",
    "old",
    "block",
    "moved",
    "combined",
)


class Held(NamedTuple):
    """What elements hold.

    RIGHT, WRONG (unidentified) or UNTOUCHED (as before the call);
    OLD       what was in the receive buffer of `rank` before the call;
    BLOCK     the same elements of the block of `rank` (scatter);
    MOVED     what is `shift` elements further on in the message, or in the root's send buffer, in
              which the right block begins at element `begin` (scatter);
    COMBINED  contributions: that of rank i `counts[i]` times, in this `order` if known (an
              operation that does not commute); with `rank`, also what was in its receive buffer
              before the call.
    """

    kind: str
    rank: int = -1
    shift: int = 0
    begin: int = -1
    counts: tuple[int, ...] = ()
    order: tuple[int, ...] = ()


class Part(NamedTuple):
    """The elements `begin` to `end` - 1 of a block, all of the same kind."""

    begin: int
    end: int
    held: Held

    @property
    def elements(self) -> int:
        """Number of elements."""
        return self.end - self.begin


def is_single(case: Case) -> bool:
    """Whether every receive buffer is a single block, not divided by ranks."""
    return case.collective in ("bcast", "scatter", "reduce", "allreduce")


def elements(case: Case, memory: Memory, block: int = 0) -> Memory:
    """The data of a block as uint8 [count, bytes of an element]; `memory` has guard zones."""
    size = datatype(case.datatype)[1].size
    return memory[block_places(case, block)].reshape(case.count, size)


def parts(case: Case, rank: int, received: Memory, right: Memory) -> list[Part]:
    """[Part] of the block that `rank` received in a bcast or scatter.

    received, right   its memory, and the expected one: uint8, guard zones included.
    """
    got, wanted = elements(case, received), elements(case, right)
    before = elements(case, case.regions(rank)[1])
    labels = np.full(case.count, -1)
    known = [Held(WRONG), Held(RIGHT), Held(UNTOUCHED)]
    is_right, is_before = _same(got, wanted), _same(got, before)
    labels[is_before], labels[is_right] = 2, 1
    labels[is_right & is_before] = -2
    for held, matches in _candidates(case, rank, got, labels == -1):
        labels[(labels == -1) & matches] = len(known)
        known.append(held)
    return runs(case, _without_doubt(labels), known)


def runs(case: Case, labels: NDArray[np.int64], known: Sequence[Held]) -> list[Part]:
    """[Part] of elements with these `labels`, indices into `known`; known[0] is Held(WRONG)."""
    labels = np.where(labels < 0, 0, labels)
    size = datatype(case.datatype)[1].size
    borders = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), len(labels)]
    found: list[Part] = []
    for begin, end in zip(borders[:-1], borders[1:], strict=True):
        held = known[labels[begin]] if end > begin else None
        if held is None:
            continue
        if held.kind in (OLD, BLOCK, MOVED) and (end - begin) * size < LEAST_BYTES:
            held = known[0]
        if found and found[-1].held == held:
            begin = found.pop().begin
        found.append(Part(begin, end, held))
    return found


def _same(one: Memory, other: Memory) -> NDArray[np.bool_]:
    return (one == other).all(axis=1)


def _without_doubt(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Elements labeled -2, right before and now, count as untouched if their predecessors do."""
    doubtful = labels == -2
    sure = np.flatnonzero(~doubtful)
    if not doubtful.any() or not sure.size:
        return np.where(doubtful, 1, labels)
    nearest = np.searchsorted(sure, np.arange(len(labels)), side="right") - 1
    beside = labels[sure[np.maximum(nearest, 0)]]
    return np.where(doubtful, np.where(beside == 2, 2, 1), labels)


def _candidates(
    case: Case, rank: int, got: Memory, unknown: NDArray[np.bool_]
) -> Iterator[tuple[Held, NDArray[np.bool_]]]:
    """(Held, bool [count]) of what the `unknown` elements may be, the best matches first."""
    if not unknown.any():
        return
    is_scatter = case.collective == "scatter"
    others = [other for other in range(case.ranks) if other != rank]
    is_too_much = case.ranks**2 * case.block_bytes > MOST_BYTES
    source = sent_blocks(case) if is_scatter else elements(case, case.expected()[case.root])[None]
    found = [
        (Held(BLOCK, other), _same(got, source[other]) & unknown) for other in others if is_scatter
    ]
    # What was in a bcast's root before the call is the message.
    found += [
        (Held(OLD, other), _same(got, elements(case, case.regions(other)[1])) & unknown)
        for other in others
        if not is_too_much and (is_scatter or other != case.root)
    ]
    found = [one for one in found if one[1].any()]
    yield from sorted(found, key=lambda one: -int(one[1].sum()))
    left = unknown & ~np.logical_or.reduce([matches for _, matches in found] or [~unknown])
    own = rank * case.count if is_scatter else -1
    yield from _moved(source.reshape(-1, got.shape[1]), got, own, left)


def _moved(
    source: Memory, got: Memory, own: int, unknown: NDArray[np.bool_]
) -> Iterator[tuple[Held, NDArray[np.bool_]]]:
    """(Held, matches) for elements whose data is elsewhere in `source`; `own` is where the block
    begins in it, -1 for the beginning of a message."""
    if got.shape[1] < LEAST_BYTES or len(source) > LOOKED_AT:
        return
    place = {element.tobytes(): at for at, element in enumerate(source)}
    shifts = np.zeros(len(got), np.int64)
    for at in np.flatnonzero(unknown).tolist():
        found = place.get(got[at].tobytes())
        shifts[at] = 0 if found is None else found - max(own, 0) - at
    for shift in np.unique(shifts[shifts != 0]).tolist():
        yield Held(MOVED, shift=shift, begin=own), shifts == shift


@lru_cache(maxsize=1)
def sent_blocks(case: Case) -> Memory:
    """The blocks of a scatter's root, as their receivers should get them: [P, count, bytes]."""
    right = replace(case, in_place=False).expected()
    return np.stack([elements(case, memory) for memory in right])


# Parts of a message in words: 'elements 4 to 7 were never written'.

TIMES = {2: "twice", 3: "three times", 4: "four times"}


def clause(part: Part, count: int) -> str:
    """What is wrong with a Part of a block of `count` elements, to follow 'on rank 2, '."""
    where = _where(part, count)
    kind = part.held.kind
    if kind == UNTOUCHED:
        return _untouched(part, count)
    if kind == COMBINED:
        return _result(part, where)
    return f"{_subject(where)} {_holds(part, where)}"


def whereabouts(part: Part, count: int) -> str:
    """'all', '4', '4 to 7': the elements of a Part, for a table."""
    if part.elements == count:
        return "all"
    return str(part.begin) if part.elements == 1 else f"{part.begin} to {part.end - 1}"


def content(part: Part, count: int) -> str:
    """What a Part holds, for a table: 'nothing was written', 'the block of rank 2'."""
    kind = part.held.kind
    if kind == UNTOUCHED:
        return "nothing was written"
    if kind == COMBINED:
        return counted(part.held)
    return {
        OLD: _old(part.held),
        BLOCK: f"the block of rank {part.held.rank}",
        MOVED: moved(part),
    }.get(kind, "wrong data")


def counted(held: Held) -> str:
    """'ranks 0 to 2, rank 3 twice': the contributions in a result."""
    if held.order:
        order = " ∘ ".join(map(str, held.order))
        return (
            f"{model.ranks(held.order)}, in the order {order}"
            if len(held.order) > 1
            else (f"rank {held.order[0]} alone")
        )
    said: list[str] = []
    for times in sorted(set(held.counts) - {0}):
        who = [rank for rank, count in enumerate(held.counts) if count == times]
        said.append(model.ranks(who) + (f" {_times(times)}" if times > 1 else ""))
    if len(said) == 1 and sum(held.counts) == 1 and held.rank < 0:
        return f"{said[0]} alone"
    if held.rank >= 0:
        said.append(_old(held))
    return ", ".join(said)


def missing(held: Held) -> list[int]:
    """The ranks whose contributions are missing."""
    return [rank for rank, count in enumerate(held.counts) if count == 0]


def repeated(held: Held) -> list[int]:
    """The ranks whose contributions are included more than once."""
    return [rank for rank, count in enumerate(held.counts) if count > 1]


def moved(part: Part) -> str:
    """Where the data of a MOVED part belongs, or where it is at the root."""
    first = part.begin + part.held.shift
    if part.held.begin >= 0:
        return f"what begins at element {part.held.begin + first} of the root's send buffer"
    last = first + part.elements - 1
    where = f"element {first}" if first == last else f"elements {first} to {last}"
    return f"what belongs to {where}"


def _where(part: Part, count: int) -> str:
    if part.elements == count:
        return ""
    if part.elements == 1:
        return f"element {part.begin}"
    return f"elements {part.begin} to {part.end - 1}"


def _subject(where: str) -> str:
    return where or "the buffer"


def _untouched(part: Part, count: int) -> str:
    if part.elements == count:
        return "nothing was written"
    if part.end == count:
        return f"nothing was written from element {part.begin} onward"
    if part.begin == 0 and part.elements > 1:
        return f"the first {part.elements} elements were never written"
    were = "was" if part.elements == 1 else "were"
    return f"{_where(part, count)} {were} never written"


def _holds(part: Part, where: str) -> str:
    held, many = part.held, where.startswith("elements")
    holds = "hold" if many else "holds"
    if held.kind == OLD:
        return f"{holds} {_old(held)}"
    if held.kind == BLOCK:
        return f"{holds} {'part of ' if where else ''}the block of rank {held.rank}"
    if held.kind == MOVED:
        return f"{holds} {moved(part)}"
    return f"{'are' if many else 'is'} wrong"


def _old(held: Held) -> str:
    return f"what was in rank {held.rank}'s receive buffer before the call"


def _result(part: Part, where: str) -> str:
    held, of = part.held, f" of {where}" if where else ""
    if held.rank < 0 and sum(held.counts) == 1:
        return f"the result{of} is the contribution of rank {held.counts.index(1)} alone"
    said = []
    if missing(held):
        said.append(f"lacks {_of_ranks(missing(held))}")
    for times in sorted({count for count in held.counts if count > 1}):
        who = [rank for rank, count in enumerate(held.counts) if count == times]
        said.append(f"counts {model.ranks(who)} {_times(times)}")
    if held.rank >= 0:
        said.append(f"has {_old(held)} in it")
    if held.order and list(held.order) != sorted(held.order):
        said.append(f"takes ranks in the order {', '.join(map(str, held.order))}")
    return f"the result{of} {model.listing(said)}"


def _of_ranks(ranks: Collection[int]) -> str:
    return f"the contribution{'s' * (len(ranks) > 1)} of {model.ranks(ranks)}"


def _times(times: int) -> str:
    return TIMES.get(times, f"{times} times")


# Mistakes that the memory alone proves, whatever the calls were: writes where none are allowed.

OUTSIDE = "memory outside the receive buffer was overwritten"
SEND_CHANGED = "the send buffer was changed"
HOLES = "the holes between the elements of the datatype were overwritten"
BEYOND, CHANGED, EXTENT, OWN_MISSING = (
    "outside the receive buffer",
    "send buffer changed",
    "extent ignored",
    "own block missing",
)
# Every other pattern may have its cause in the calls.
PATTERNS = (BEYOND, EXTENT, CHANGED, OWN_MISSING)

# What a kernel may write, for each collective.
SIZES = {
    "allgather": "a receive buffer of recvcount elements for each rank",
    "gather": "a receive buffer of recvcount elements for each rank, and only at the root",
    "scatter": "a receive buffer of recvcount elements, one block, on every rank",
    "bcast": "one buffer of count elements",
    "reduce": "a receive buffer of count elements, and only at the root",
    "allreduce": "a receive buffer of count elements",
    "alltoallv": "recvcounts[i] elements starting at element rdispls[i], for each rank i",
    "read": "room for the rows of this rank's part by its columns",
    "barrier": "no buffer at all",
}
_EXTENT_HINT = (
    "Elements are MPI_Type_get_extent bytes apart, holes included, not MPI_Type_size bytes; and a "
    "block must be copied with its datatype, not with memcpy. block() and copy_local() in "
    "mpilab.h do both."
)


def explain_certain(
    case: Case, outputs: Sequence[Output], differences: Sequence[Difference]
) -> tuple[str, str]:
    """(pattern, hint) of `differences` (mpilab.cases.output.compare) if the memory alone proves
    the mistake; else ('', '')."""
    notes = {note for difference in differences for note in difference.notes}
    if OUTSIDE in notes:
        return BEYOND, (
            "The kernel writes before or after the memory that it was given: "
            f"{SIZES[case.collective]}. Look at the last index, and at how a block's address is "
            "computed."
        )
    wrong = [(d.rank, block) for d in differences for block in d.blocks]
    if HOLES in notes or _is_packed(case, outputs, wrong):
        return EXTENT, _EXTENT_HINT
    if SEND_CHANGED in notes:
        return CHANGED, (
            "The send buffer belongs to the caller: read it, never write to it. Use the receive "
            "buffer, or memory that you allocate, for intermediate data."
        )
    return "", ""


def _is_packed(case: Case, outputs: Sequence[Output], wrong: Iterable[tuple[int, int]]) -> bool:
    """Whether a block, or an element of it, is where it would be if extents were sizes."""
    layout = datatype(case.datatype)[1]
    if layout.extent == layout.size or case.count == 0:
        return False
    expected = case.expected()
    places = _packed_elements(case, layout) if is_single(case) else _packed_blocks(case, layout)
    for rank, block in wrong:
        for right, packed in places(rank, block):
            memory = outputs[rank].received
            here = expected[rank][right]
            if packed[-1] < memory.size and (memory[packed] == here).all():
                return True
    return False


def _packed_blocks(case: Case, layout: Layout) -> PackedPlaces:
    def places(rank: int, block: int) -> Iterator[tuple[Places, Places]]:
        right = block_places(case, block, rank)
        elements = len(right) // layout.size
        first = (int(right[0]) - GUARD_BYTES) // layout.extent if elements else 0
        if first:
            yield right, GUARD_BYTES + first * layout.size + layout.offsets(elements)

    return places


def _packed_elements(case: Case, layout: Layout) -> PackedPlaces:
    one = layout.offsets(1)

    def places(_rank: int, _block: int) -> Iterator[tuple[Places, Places]]:
        for element in range(1, case.count):
            begin = GUARD_BYTES + element * layout.size
            yield GUARD_BYTES + element * layout.extent + one, begin + one

    return places
