"""Wrong results of collectives in which each buffer is one block: bcast, scatter and reductions."""

from collections import Counter
from functools import lru_cache
from itertools import permutations, product
from typing import NamedTuple

import numpy as np

from mpilab.cases.data import GUARD_BYTES, OPERATIONS, datatype
from mpilab.diagnosis import memory, model
from mpilab.diagnosis.evidence import received
from mpilab.diagnosis.memory import (
    BLOCK,
    COMBINED,
    MOVED,
    OLD,
    RIGHT,
    UNTOUCHED,
    WRONG,
    Held,
    clause,
    content,
    elements,
    missing,
    repeated,
    runs,
    whereabouts,
)
from mpilab.diagnosis.model import Table

# Bcast: which part of the message is missing or wrong.

WRONG_ROOT, ROOT_CHANGED, NEVER, PARTLY, EARLY, DISPLACED = (
    "wrong root",
    "the root's message changed",
    "message never received",
    "part of the message missing",
    "a message sent on too early",
    "parts in the wrong place",
)
COUNT_FROM_ROOT = (
    "Ranks have to be counted from the root: virtual rank (rank - root + size) % size, and back "
    "with (virtual + root) % size."
)


def explain_message(evidence, case, by_rank):
    """The fields of a Told for {rank: [Part]}, as returned by `read`."""
    taken = _taken_for_root(case, by_rank)
    if taken is not None:
        hint = (
            f"Rank {taken}'s buffer was sent out, also to the root, whose message is lost. "
            f"{COUNT_FROM_ROOT}"
        )
        headline = (
            f"the root, rank {case.root}, and the others have got what was in rank {taken}'s buffer"
        )
        return WRONG_ROOT, hint, memory.of_one_line(evidence, [taken])[1], headline, True
    if case.root in by_rank:
        part = _largest(by_rank[case.root])
        hint = (
            f"In a bcast the root's buffer is the message: rank {case.root} may only read it. Here "
            f"{clause(part, case.count)}."
        )
        return ROOT_CHANGED, hint, (), "the root's own message was overwritten", True
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED:
        return never_written(evidence, case, by_rank)
    if kind == OLD:
        return sent_too_early(evidence, case, by_rank, rank, part)
    if kind == MOVED:
        return displaced(case, rank, part)
    return "", "", ()


def main_part(by_rank):
    """(kind, rank, Part): the most common kind of wrong element, and its largest part."""
    sizes = Counter()
    for of_rank in by_rank.values():
        for part in of_rank:
            if part.held.kind != RIGHT:
                sizes[part.held.kind] += part.elements
    kind = max(sizes, key=lambda one: (sizes[one], one != WRONG))
    return kind, *max(
        (
            (rank, part)
            for rank, of_rank in by_rank.items()
            for part in of_rank
            if part.held.kind == kind
        ),
        key=lambda one: one[1].elements,
    )


def never_written(evidence, case, by_rank):
    """(pattern, hint, Places) for blocks, or parts of them, that are as before the call."""
    whole = [
        rank
        for rank, of_rank in by_rank.items()
        if [part.held.kind for part in of_rank] == [UNTOUCHED]
    ]
    if len(whole) == len(by_rank):
        fact = memory.arrived(evidence, whole[0])
        hint = (
            f"{fact} Nothing was written to {model.ranks(whole)}: does every rank but the root "
            "have one that sends to it, whatever the root, and also if the number of ranks is no "
            "power of two?"
        )
        return NEVER, hint.strip(), ()
    rank, of_rank = next((r, p) for r, p in by_rank.items() if r not in whole)
    part = _largest([part for part in of_rank if part.held.kind == UNTOUCHED] or of_rank)
    facts = [remainder(case, part), memory.arrived(evidence, rank)]
    question = (
        "Are all pieces sent, also the last one, which may be shorter?"
        if part.end == case.count
        else "Does every piece go to its own place?"
    )
    return PARTLY, " ".join(filter(None, [*facts, question])), ()


def remainder(case, part):
    """Why a message may end before `part`, judged by the counts alone; '' if unknown."""
    size = datatype(case.datatype)[1].size
    if part.end != case.count or part.begin == 0:
        return ""
    cuts = [(case.ranks, case.count // case.ranks, f"parts, one for each of {case.ranks} ranks,")]
    if case.segment:
        elements = max(case.segment // size, 1)
        cuts.insert(0, (case.count // elements, elements, f"segments of {case.segment} bytes"))
    for pieces, elements, what in cuts:
        if elements and part.begin == pieces * elements:
            of = model.number(elements, "element")
            return (
                f"{case.count} elements are {pieces} {what} with {of} each, and "
                f"{case.count - pieces * elements} left over: just what is missing."
            )
    return ""


def sent_too_early(evidence, case, by_rank, rank, part):
    """(pattern, hint, Places) for a rank that forwarded data before receiving it."""
    source = part.held.rank
    senders = {p.held.rank for of_rank in by_rank.values() for p in of_rank if p.held.kind == OLD}
    at, places = memory.of_one_line(evidence, senders)
    hint = (
        f"On rank {rank}, {clause(part, case.count)}: rank {source} has sent it on{at} before "
        "the data had come there. Receive, or wait for the receive, before you send on."
    )
    return EARLY, hint, places


def displaced(case, rank, part):
    """(pattern, hint, Places) for data in the wrong place of the message."""
    hint = (
        f"On rank {rank}, {clause(part, case.count)}. Look at how the place of a piece is "
        "computed: as many elements from the beginning as all pieces before it have, each of "
        "the datatype's extent: block(buffer, first element, 1, datatype)."
    )
    return DISPLACED, hint, ()


def _largest(of_rank):
    return max((p for p in of_rank if p.held.kind != RIGHT), key=lambda part: part.elements)


def _taken_for_root(case, by_rank):
    """The rank whose buffer reached all others, including the root; or None."""
    of_root = by_rank.get(case.root, ())
    if len(of_root) != 1 or of_root[0].held.kind != OLD:
        return None
    source = of_root[0].held.rank
    is_nowhere_right = all(
        rank in by_rank and all(part.held.kind != RIGHT for part in by_rank[rank])
        for rank in range(case.ranks)
    )
    return source if is_nowhere_right else None


# Scatter: whose block, or which part of its own, a rank has received.

OWN_MISSING, ANOTHER, DISPLACED_SHARE = (
    "own block missing",
    "the block of another rank",
    "parts in the wrong place",
)


def explain_share(evidence, case, by_rank):
    """(pattern, hint, Places) of {rank: [Part]}, as returned by `read`."""
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED and list(by_rank) == [case.root] and part.elements == case.count:
        hint = (
            "The root also has to put its own block into its receive buffer, unless recvbuf is "
            "MPI_IN_PLACE: take_own_block in mpilab.h does that."
        )
        return OWN_MISSING, hint, ()
    if kind == UNTOUCHED:
        return never_written(evidence, case, by_rank)
    if kind == BLOCK:
        return ANOTHER, _of_another(case, by_rank), ()
    if kind == OLD:
        return sent_too_early(evidence, case, by_rank, rank, part)
    if kind == MOVED:
        return DISPLACED_SHARE, _displaced(case, rank, part), ()
    return "", "", ()


def _of_another(case, by_rank):
    """A hint on whose blocks these ranks have received, and the rule behind it, if any."""
    whose = {
        rank: part.held.rank
        for rank, of_rank in by_rank.items()
        for part in of_rank
        if part.held.kind == BLOCK
    }
    said = [
        f"rank {rank} has the block of rank {source}" for rank, source in list(whose.items())[:3]
    ]
    more = ", and so on" if len(whose) > 3 else ""
    rule = rotation(case, whose)
    hint = f"{model.capital(model.listing(said))}{more}: block i of the root's send buffer is that "
    hint += f"of rank i. {rule}" if rule else "of rank i. "
    return hint + "Look at which block goes with which destination."


def rotation(case, whose):
    """A sentence if all of `whose` {rank: rank whose block it has} are off by the root; else ''."""
    steps = {(source - rank) % case.ranks for rank, source in whose.items()}
    if case.root == 0 or len(whose) < 2 or len(steps) != 1:
        return ""
    (step,) = steps
    if step not in (case.root, -case.root % case.ranks):
        return ""
    return (
        f"All are off by {case.root}, the number of the root: blocks are counted from the root in "
        f"one place, and from rank 0 in another. {COUNT_FROM_ROOT} "
    )


def _displaced(case, rank, part):
    return (
        f"On rank {rank}, {clause(part, case.count)}; its own block begins at element "
        f"{part.held.begin}, behind {model.number(rank, 'block')} of "
        f"{model.number(case.count, 'element')}. block(sendbuf, rank, sendcount, sendtype) gives "
        "its address."
    )


# Reduce and allreduce: whose contributions are missing, or counted too often.

ALONE, MISSING, TWICE, ORDER, STALE, NEVER_REDUCED = (
    "contributions never combined",
    "a contribution missing",
    "a contribution counted twice",
    "order of a non-commutative operation",
    "recvbuf combined before it was set",
    "result never written",
)
REDUCE_LOCAL = (
    "MPI_Reduce_local(a, b, …) puts a op b into b: the result is in its second buffer, and the "
    "first one stays as it was."
)


def explain_reduction(evidence, case, by_rank):
    """(pattern, hint, Places) of {rank: [Part]}, as returned by `read`."""
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED:
        return _untouched(evidence, case, by_rank)
    if kind != COMBINED:
        return "", "", ()
    pattern, doubt = _of_set(evidence, case, rank, part.held)
    return pattern, f"On rank {rank}, {clause(part, case.count)}. {doubt}".rstrip(), ()


def _of_set(evidence, case, rank, held):
    """(pattern, what to check) for a wrong set of contributions."""
    if held.rank >= 0:
        return STALE, (
            "What is in recvbuf before the call is nobody's contribution: copy the own data there "
            "first, unless sendbuf is MPI_IN_PLACE."
        )
    if repeated(held):
        who = model.ranks(repeated(held))
        return TWICE, (
            f"Follow the data of {who}: by which two ways do they get there? Is what a rank sends "
            "on its own contribution, or a result that holds it already?"
        )
    is_own = held.counts == tuple(int(rank == other) for other in range(case.ranks))
    fact = memory.arrived(evidence, rank) if is_own else ""
    if fact and not received(evidence, rank):
        return MISSING, f"{fact} Which ranks should send their data to it?"
    if is_own or (sum(held.counts) == 1 and case.ranks > 2):
        return ALONE, f"{fact} {REDUCE_LOCAL}".strip()
    if missing(held):
        return MISSING, _lacking(evidence, case, missing(held))
    return ORDER, (
        "This operation does not commute: the result has to be that of rank 0 op rank 1 op … in "
        f"this order. {REDUCE_LOCAL} So what comes from lower ranks has to be a, from higher ones "
        "b; and virtual ranks may only be used where MPI_Op_commutative says yes."
    )


def _lacking(evidence, case, lacking):
    fact = memory.sent_by(evidence, lacking[0])
    core = 1 << (case.ranks.bit_length() - 1)
    power = (
        f" {case.ranks} ranks are no power of two: what becomes of the ranks from {core} on?"
        if core != case.ranks and max(lacking) >= core
        else ""
    )
    whose = model.ranks(lacking[:1])
    return f"{fact} Which rank should have taken in the data of {whose}?{power}".strip()


def _untouched(evidence, case, by_rank):
    pattern, hint, places = never_written(evidence, case, by_rank)
    if pattern != NEVER:
        return pattern, hint, places
    fact = memory.arrived(evidence, next(iter(by_rank)))
    return NEVER_REDUCED, f"{fact} Is the result copied to recvbuf, also on this rank?".strip(), ()


# Which contributions are in the result of a reduction. All contributions are known random numbers,
# so a value can be compared with the results of other sets of contributions. Values that many sets
# could match by chance are left unexplained.

# The highest accepted probability that a guess matches by chance.
DOUBT = 1e-3
MOST_GUESSES, MOST_TIMES, TRIES, SAMPLE = 1 << 17, 4, 32, 256
# The order of a composition affects only the upper half of its words.
BITS = {"sum": 32, "compose": 16}
_WORD = np.uint64(0xFFFFFFFF)


def contributed_parts(case, rank, received, right):
    """[Part] of the block that `rank` received in a reduction.

    received, right   its memory, and the expected one: uint8, guard zones included.
    """
    got, wanted = _words(case, received), _words(case, right)
    before = [
        _words(case, case.regions(other)[1]) if _receives(case, other) else None
        for other in range(case.ranks)
    ]
    sets = _Sets(case, contributions(case), before)
    labels = np.full(len(got), -1)
    known = [Held(WRONG), Held(RIGHT), Held(UNTOUCHED)]
    labels[got == before[rank]], labels[got == wanted] = 2, 1
    for _ in range(TRIES):
        left = np.flatnonzero(labels == -1)
        if not left.size:
            break
        held, matches = sets.explain(got, left)
        if held is None:
            labels[left[0]] = 0
            continue
        labels[left[matches]] = len(known)
        known.append(held)
    return runs(case, _of_elements(case, labels), known)


def contributions(case):
    """What each rank contributes: uint32 [P, words]."""
    return np.stack(
        [
            _words(case, case.regions(rank)[1 if _is_in_place(case, rank) else 0])
            for rank in range(case.ranks)
        ]
    )


def _is_in_place(case, rank):
    return case.in_place and _receives(case, rank)


def _receives(case, rank):
    return case.collective == "allreduce" or rank == case.root


def _words(case, memory):
    return np.ascontiguousarray(elements(case, memory)).view(np.uint32).reshape(-1)


def _of_elements(case, labels):
    """One label per element: that of its wrong words, or 0 (WRONG) if they differ."""
    of_words = labels.reshape(-1, datatype(case.datatype)[1].size // 4)
    found = np.ones(len(of_words), int)
    for column in of_words.T:
        found = np.where(column == 1, found, np.where((found == 1) | (found == column), column, 0))
    return found


class _Sets:
    """The sets of contributions that words are compared with."""

    def __init__(self, case, given, before):
        self.op, self.given = case.op, given
        # With MPI_IN_PLACE the receive buffer held the contribution itself.
        self.stale = {
            rank: words
            for rank, words in enumerate(before)
            if words is not None and not _is_in_place(case, rank)
        }

    def explain(self, got, left):
        """(Held, bool [left]): the set that explains the first of the words `left`, and which of
        them it explains; (None, None) if none is certain enough."""
        guesses = self._of_sums if self.op == "sum" else self._of_orders
        sample = left[:SAMPLE]
        for held, values, number in guesses(got[left[0]], left[0]):
            best, most = None, 0
            for one in held:
                same = int((self._value(one, sample) == got[sample]).sum())
                if same > most:
                    best, most = one, same
            if best is not None and number * 2.0 ** (-values * most) <= DOUBT:
                return best, self._value(best, left) == got[left]
        return None, None

    def _value(self, held, chosen):
        """The result of the set for these words."""
        if held.order:
            value = self.given[held.order[0], chosen]
            for rank in held.order[1:]:
                value = OPERATIONS[self.op](value, self.given[rank, chosen])
            return value
        counts = np.array(held.counts, np.uint64)
        value = (counts[:, None] * self.given[:, chosen]).sum(axis=0)
        value += self.stale[held.rank][chosen] if held.rank >= 0 else np.uint64(0)
        return (value & _WORD).astype(np.uint32)

    def _of_sums(self, word, at):
        """([Held], bits of a word, guesses) of sums that equal `word`, the simpler ones first."""
        ranks = len(self.given)
        column = self.given[:, at].astype(np.uint64)
        for counts in _countings(ranks):
            sums = counts.astype(np.uint64) @ column & _WORD
            hits = counts[sums == word].tolist()
            yield [Held(COMBINED, counts=tuple(one)) for one in hits], BITS["sum"], len(counts)
            if len(counts) * len(self.stale) > MOST_GUESSES:
                continue
            found = [
                Held(COMBINED, rank, counts=tuple(one))
                for rank, words in self.stale.items()
                for one in counts[(sums + words[at] & _WORD) == word].tolist()
            ]
            yield found, BITS["sum"], len(counts) * len(self.stale)

    def _of_orders(self, word, at):
        """As `_of_sums`, for orders in which contributions are composed."""
        column = np.append(self.given[:, at], np.uint32(0))  # index -1: no further rank
        for orders in _orders(len(self.given)):
            value = column[orders[:, 0]]
            for ranks in orders.T[1:]:
                value = np.where(ranks < 0, value, OPERATIONS[self.op](value, column[ranks]))
            hits = [
                tuple(rank for rank in one if rank >= 0) for one in orders[value == word].tolist()
            ]
            yield [_ordered(one, len(self.given)) for one in hits], BITS["compose"], len(orders)


def _ordered(order, ranks):
    return Held(COMBINED, counts=tuple(order.count(rank) for rank in range(ranks)), order=order)


@lru_cache(maxsize=16)
def _countings(ranks):
    """[int array [n, P]]: how often each rank is in a sum, the likelier counts first."""
    few = [
        np.ones(ranks, int)[None],
        np.eye(ranks, dtype=int),
        1 - np.eye(ranks, dtype=int),
        1 + np.eye(ranks, dtype=int),
    ]
    few += [_stretch(begin, length, ranks) for begin in range(ranks) for length in range(2, ranks)]
    found = [np.unique(np.concatenate(few), axis=0)]
    for most in range(1, MOST_TIMES + 1):
        if (most + 1) ** ranks <= MOST_GUESSES:
            found.append(np.array(list(product(range(most + 1), repeat=ranks))))
    return found


def _stretch(begin, length, ranks):
    """The mask [1, P] of `length` consecutive ranks from `begin`, wrapping around to rank 0."""
    return np.isin(np.arange(ranks), (begin + np.arange(length)) % ranks).astype(int)[None]


@lru_cache(maxsize=16)
def _orders(ranks):
    """[int array [n, P]]: orders of some ranks, padded with -1, the likelier ones first."""
    few = [
        [(begin + step * i) % ranks if i < length else -1 for i in range(ranks)]
        for length in range(ranks, 0, -1)
        for begin in range(ranks)
        for step in (1, -1)
    ]
    found = [np.unique(few, axis=0)]
    if ranks <= 7:
        found.append(
            np.array(
                [
                    [*order, *[-1] * (ranks - length)]
                    for length in range(1, ranks + 1)
                    for order in permutations(range(ranks), length)
                ]
            )
        )
    return found


# All four collectives.

SHOWN_RANKS, SHOWN_PARTS = 16, 6
_EXPLAINED_BY = {
    "bcast": explain_message,
    "scatter": explain_share,
    "reduce": explain_reduction,
    "allreduce": explain_reduction,
}


class Told(NamedTuple):
    """What the memory shows: pattern, hint and places as in a Diagnosis.

    `headline` is given if the pattern says more than the parts, and `is_certain` is true if no call
    could explain it better."""

    pattern: str = ""
    hint: str = ""
    places: tuple = ()
    headline: str = ""
    is_certain: bool = False


def read(case, outputs):
    """{rank: [Part]} of the ranks whose block is wrong, without ranks whose memory has the wrong
    size."""
    found, expected = {}, case.expected()
    reduces = case.collective in ("reduce", "allreduce")
    read_parts = contributed_parts if reduces else memory.parts
    for rank, output in enumerate(outputs[: case.ranks]):
        right = expected[rank]
        there = case.count > 0 and len(right) > 2 * GUARD_BYTES
        if there and output.received.shape == right.shape:
            got, wanted = (memory.elements(case, held) for held in (output.received, right))
            if (got != wanted).any():
                found[rank] = read_parts(case, rank, output.received, right)
    return found


def explain_single(evidence, case, by_rank):
    """The Told of the parts that `read` returned; None if there are none."""
    if not by_rank:
        return None
    return Told(*_EXPLAINED_BY[case.collective](evidence, case, by_rank))


def headline(case, by_rank):
    """What is wrong on these ranks, to follow 'wrong result on ranks 0 to 3: '."""
    clauses = {rank: _clauses(case, of_rank) for rank, of_rank in by_rank.items()}
    first, said = next(iter(clauses.items()))
    if len(clauses) == 1 or all(other == said for other in clauses.values()):
        return said
    return f"on rank {first}, {said}"


def _clauses(case, of_rank):
    wrong = [part for part in of_rank if part.held.kind != RIGHT]
    said = [clause(part, case.count) for part in wrong[:2]]
    if len(wrong) > 2:
        said.append(f"{len(wrong) - 2} more parts are not right either")
    return model.listing(said)


def table(case, by_rank):
    """Table: what the blocks of the ranks in `by_rank` hold, part by part."""
    rows = []
    for rank, of_rank in list(by_rank.items())[:SHOWN_RANKS]:
        wrong = [part for part in of_rank if part.held.kind != RIGHT]
        rows += [
            (rank, whereabouts(part, case.count), content(part, case.count))
            for part in wrong[:SHOWN_PARTS]
        ]
        if len(wrong) > SHOWN_PARTS:
            rows.append((rank, "…", f"{len(wrong) - SHOWN_PARTS} more parts are not right"))
    more = len(by_rank) - SHOWN_RANKS
    title = "What is not right" + (
        f" (and on {model.number(more, 'more rank')})" if more > 0 else ""
    )
    holds = "is made of" if case.collective in ("reduce", "allreduce") else "holds"
    return Table(title, ("rank", "elements", holds), tuple(rows))
