"""Wrong results of collectives in which each buffer is one block: bcast, scatter and reductions."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case, Memory
from mpilab.cases.data import GUARD_BYTES, OPERATIONS, Words, datatype
from mpilab.cases.output import Output
from mpilab.diagnosis import memory, model
from mpilab.diagnosis.evidence import Evidence, received
from mpilab.diagnosis.memory import (
    BLOCK,
    COMBINED,
    MOVED,
    OLD,
    RIGHT,
    UNTOUCHED,
    WRONG,
    Held,
    Part,
    clause,
    content,
    elements,
    missing,
    repeated,
    runs,
    whereabouts,
)
from mpilab.diagnosis.model import Place, Table

# The parts of each rank whose block is wrong, as returned by `read`.
WrongParts = Mapping[int, Sequence[Part]]


class Explanation(NamedTuple):
    """What the memory shows: pattern, hint and places as in a Diagnosis.

    `headline` is given if the pattern says more than the parts; `is_certain` is true if no call
    could explain it better."""

    pattern: str = ""
    hint: str = ""
    places: tuple[Place, ...] = ()
    headline: str = ""
    is_certain: bool = False


# Bcast: which part of the message is missing or wrong.

WRONG_ROOT, ROOT_CHANGED, NEVER, PARTLY, EARLY, DISPLACED = (
    "wrong root",
    "the root's message changed",
    "message never received",
    "part of the message missing",
    "a message forwarded too early",
    "parts in the wrong place",
)
COUNT_FROM_ROOT = (
    "Count ranks from the root: the virtual rank is (rank - root + size) % size, and (virtual + "
    "root) % size converts it back."
)
COMPARE_WITH_ROOT = (
    "The root is an argument and may be any rank: test rank == root, not rank == 0, and name root, "
    "not 0, as the partner of the others and in loops over them."
)
_FLAT_NAME = re.compile(r"_(flat|linear)")
_LEAST_OF_A_TREE = 4  # with fewer ranks, the messages of a tree are those of a flat algorithm


def follow_the_root(evidence: Evidence) -> str:
    """How a kernel that works only with root 0 must change: a flat one compares ranks with the
    root; trees and rings count ranks from it."""
    is_known = any(memory.peers_sent_to(evidence, rank) for rank in range(evidence.size))
    if is_known and not _is_flat(evidence):
        return COUNT_FROM_ROOT
    if (is_known and evidence.size >= _LEAST_OF_A_TREE) or _FLAT_NAME.search(
        evidence.result.function
    ):
        return COMPARE_WITH_ROOT
    return f"{COMPARE_WITH_ROOT} In a tree or a ring, count ranks from the root instead: the " + (
        "virtual rank is (rank - root + size) % size."
    )


def _is_flat(evidence: Evidence) -> bool:
    """Whether one rank is the sender or receiver of every message, as the sends and the receives
    name it; if the run did not end, some have no counterpart."""
    sent, awaited = (
        [{rank, peer} for rank in range(evidence.size) for peer in peers(evidence, rank)]
        for peers in (memory.peers_sent_to, memory.peers_received_from)
    )
    return all(bool(set.intersection(*pairs)) for pairs in (sent, awaited) if pairs)


def explain_message(evidence: Evidence, case: Case, by_rank: WrongParts) -> Explanation:
    """What is wrong with the message of a bcast."""
    taken = _taken_for_root(case, by_rank)
    if taken is not None:
        hint = (
            f"Rank {taken}'s buffer was sent, even to the root, whose message is lost. "
            f"{follow_the_root(evidence)}"
        )
        headline = f"the root, rank {case.root}, and the others received rank {taken}'s buffer"
        places = memory.of_one_line(evidence, [taken])[1]
        return Explanation(WRONG_ROOT, hint, places, headline, is_certain=True)
    if case.root in by_rank:
        part = _largest(by_rank[case.root])
        hint = (
            f"In a bcast the root's buffer is the message: rank {case.root} may only read it. Here "
            f"{clause(part, case.count)}."
        )
        headline = "the root's own message was overwritten"
        return Explanation(ROOT_CHANGED, hint, headline=headline, is_certain=True)
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED:
        return never_written(evidence, case, by_rank)
    if kind == OLD:
        return sent_too_early(evidence, case, by_rank, rank, part)
    if kind == MOVED:
        return displaced(case, rank, part)
    return Explanation()


def main_part(by_rank: WrongParts) -> tuple[str, int, Part]:
    """(kind, rank, Part): the most common kind of wrong element, and its largest part."""
    sizes: Counter[str] = Counter()
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


def never_written(evidence: Evidence, case: Case, by_rank: WrongParts) -> Explanation:
    """The Explanation of blocks, or parts of them, that are as before the call."""
    whole = [
        rank
        for rank, of_rank in by_rank.items()
        if [part.held.kind for part in of_rank] == [UNTOUCHED]
    ]
    if len(whole) == len(by_rank):
        fact = memory.arrived(evidence, whole[0])
        if memory.only_empty(evidence, whole[0]):
            hint = f"{fact} An empty message arrived: check the count of the send."
            return Explanation(NEVER, hint, memory.sent_to(evidence, whole[0]))
        hint = (
            f"{fact} Nothing was written to {model.ranks(whole)}: does every rank except the root "
            "receive from some rank, for any root and any number of ranks, not only powers of two?"
        )
        return Explanation(NEVER, hint.strip())
    rank, of_rank = next((r, p) for r, p in by_rank.items() if r not in whole)
    part = _largest([part for part in of_rank if part.held.kind == UNTOUCHED] or of_rank)
    facts = [remainder(evidence, case, part), memory.arrived(evidence, rank)]
    question = (
        "Are all segments sent, including the last one, which may be shorter?"
        if part.end == case.count
        else "Is every segment stored in its own place?"
    )
    return Explanation(PARTLY, " ".join(filter(None, [*facts, question])))


def remainder(evidence: Evidence, case: Case, part: Part) -> str:
    """Why a message may end before `part`, judged by the counts; '' if unknown.

    A remainder can be missing only if messages of the size of the pieces were sent."""
    size = datatype(case.datatype)[1].size
    if part.end != case.count or part.begin == 0:
        return ""
    cuts = [(case.ranks, case.count // case.ranks, f"parts, one for each of {case.ranks} ranks,")]
    if case.segment:
        elements = max(case.segment // size, 1)
        cuts.insert(0, (case.count // elements, elements, f"segments of {case.segment} bytes"))
    for pieces, elements, what in cuts:
        if part.begin == pieces * elements and memory.has_sent(evidence, elements * size):
            of = model.number(elements, "element")
            return (
                f"{case.count} elements are {pieces} {what} with {of} each, and "
                f"{case.count - pieces * elements} left over: exactly what is missing."
            )
    return ""


def sent_too_early(
    evidence: Evidence, case: Case, by_rank: WrongParts, rank: int, part: Part
) -> Explanation:
    """The Explanation of a rank that forwarded data before receiving it."""
    source = part.held.rank
    senders = {p.held.rank for of_rank in by_rank.values() for p in of_rank if p.held.kind == OLD}
    at, places = memory.of_one_line(evidence, senders)
    hint = (
        f"On rank {rank}, {clause(part, case.count)}: rank {source} forwarded it{at} before the "
        "data arrived there. Receive, or wait for the receive, before you forward."
    )
    return Explanation(EARLY, hint, places)


def displaced(case: Case, rank: int, part: Part) -> Explanation:
    """The Explanation of data in the wrong place of the message."""
    hint = (
        f"On rank {rank}, {clause(part, case.count)}. Check how the place of a segment is "
        "computed: it begins after all elements of the segments before it, each of the datatype's "
        "extent: block(buffer, first element, 1, datatype)."
    )
    return Explanation(DISPLACED, hint)


def _largest(of_rank: Iterable[Part]) -> Part:
    return max((p for p in of_rank if p.held.kind != RIGHT), key=lambda part: part.elements)


def _taken_for_root(case: Case, by_rank: WrongParts) -> int | None:
    """The rank whose buffer reached all others, including the root; else None."""
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


def explain_share(evidence: Evidence, case: Case, by_rank: WrongParts) -> Explanation:
    """What is wrong with the blocks of a scatter."""
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED and list(by_rank) == [case.root] and part.elements == case.count:
        hint = (
            "The root must also put its own block into its receive buffer, unless recvbuf is "
            "MPI_IN_PLACE: take_own_block in mpilab.h does that."
        )
        return Explanation(OWN_MISSING, hint)
    if kind == UNTOUCHED:
        return never_written(evidence, case, by_rank)
    if kind == BLOCK:
        return Explanation(ANOTHER, _of_another(evidence, case, by_rank))
    if kind == OLD:
        return sent_too_early(evidence, case, by_rank, rank, part)
    if kind == MOVED:
        return Explanation(DISPLACED_SHARE, _displaced(case, rank, part))
    return Explanation()


def _of_another(evidence: Evidence, case: Case, by_rank: WrongParts) -> str:
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
    rule = rotation(evidence, case, whose)
    hint = f"{model.capital(model.listing(said))}{more}: block i of the root's send buffer is that "
    hint += f"of rank i. {rule}" if rule else "of rank i. "
    return hint + "Check which block goes to which destination."


def rotation(evidence: Evidence, case: Case, whose: Mapping[int, int]) -> str:
    """A sentence if all of `whose` {rank: rank whose block it has} are off by the root; else ''."""
    steps = {(source - rank) % case.ranks for rank, source in whose.items()}
    if case.root == 0 or len(whose) < 2 or len(steps) != 1:
        return ""
    (step,) = steps
    if step not in (case.root, -case.root % case.ranks):
        return ""
    is_flat = evidence.size >= _LEAST_OF_A_TREE and _is_flat(evidence)
    remedy = "The block of rank i is block i, whatever the root." if is_flat else COUNT_FROM_ROOT
    return (
        f"All are off by {case.root}, the root's rank: one place counts blocks from the root, "
        f"another from rank 0. {remedy} "
    )


def _displaced(case: Case, rank: int, part: Part) -> str:
    return (
        f"On rank {rank}, {clause(part, case.count)}; its own block begins at element "
        f"{part.held.begin}, after {model.number(rank, 'block')} of "
        f"{model.number(case.count, 'element')}. block(sendbuf, rank, sendcount, sendtype) gives "
        "its address."
    )


# Reduce and allreduce: whose contributions are missing, or counted more than once.

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
    "first is unchanged."
)


def explain_reduction(evidence: Evidence, case: Case, by_rank: WrongParts) -> Explanation:
    """What is wrong with the result of a reduction."""
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED:
        return _untouched(evidence, case, by_rank)
    if kind != COMBINED:
        return Explanation()
    pattern, question = _of_set(evidence, case, rank, part.held)
    return Explanation(pattern, f"On rank {rank}, {clause(part, case.count)}. {question}".rstrip())


def _of_set(evidence: Evidence, case: Case, rank: int, held: Held) -> tuple[str, str]:
    """(pattern, what to check) for a wrong set of contributions."""
    if held.rank >= 0:
        return STALE, (
            "What recvbuf holds before the call is not a contribution: copy the rank's own data "
            "there first, unless sendbuf is MPI_IN_PLACE."
        )
    if repeated(held):
        who = model.ranks(repeated(held))
        return TWICE, (
            f"Trace the data of {who}: by which two paths does it get there? Does a rank forward "
            "its own contribution, or a result that already includes it?"
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
        "This operation does not commute: the result must be rank 0 op rank 1 op … in this order. "
        f"{REDUCE_LOCAL} So data from lower ranks must be a, from higher ranks b; use virtual "
        "ranks only if MPI_Op_commutative returns true."
    )


def _lacking(evidence: Evidence, case: Case, lacking: Sequence[int]) -> str:
    fact = memory.sent_by(evidence, lacking[0])
    core = 1 << (case.ranks.bit_length() - 1)
    power = (
        f" {case.ranks} is not a power of two: what do the ranks from {core} upward do?"
        if core != case.ranks and max(lacking) >= core
        else ""
    )
    whose = model.ranks(lacking[:1])
    return f"{fact} Which rank should have combined the data of {whose}?{power}".strip()


def _untouched(evidence: Evidence, case: Case, by_rank: WrongParts) -> Explanation:
    explanation = never_written(evidence, case, by_rank)
    if explanation.pattern != NEVER:
        return explanation
    fact = memory.arrived(evidence, next(iter(by_rank)))
    hint = f"{fact} Is the result copied to recvbuf on this rank, too?"
    return Explanation(NEVER_REDUCED, hint.strip())


# Which contributions are in the result of a reduction. All contributions are known random numbers,
# so a value can be compared with the results of other sets of contributions. Values that many sets
# could match by chance are left unexplained.

# The highest accepted probability that a guess matches by chance.
DOUBT = 1e-3
MOST_GUESSES, MOST_TIMES, TRIES, SAMPLE = 1 << 17, 4, 32, 256
# The order of a composition affects only the upper half of its words.
BITS = {"sum": 32, "compose": 16}
_WORD = np.uint64(0xFFFFFFFF)


def contributed_parts(case: Case, rank: int, received: Memory, right: Memory) -> list[Part]:
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
        explained = sets.explain(got, left)
        if explained is None:
            labels[left[0]] = 0
            continue
        held, matches = explained
        labels[left[matches]] = len(known)
        known.append(held)
    return runs(case, _of_elements(case, labels), known)


def contributions(case: Case) -> Words:
    """What each rank contributes: uint32 [P, words]."""
    return np.stack(
        [
            _words(case, case.regions(rank)[1 if _is_in_place(case, rank) else 0])
            for rank in range(case.ranks)
        ]
    )


def _is_in_place(case: Case, rank: int) -> bool:
    return case.in_place and _receives(case, rank)


def _receives(case: Case, rank: int) -> bool:
    return case.collective == "allreduce" or rank == case.root


def _words(case: Case, memory: Memory) -> Words:
    return np.ascontiguousarray(elements(case, memory)).view(np.uint32).reshape(-1)


def _of_elements(case: Case, labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """One label per element: that of its wrong words, or 0 (WRONG) if they differ."""
    of_words = labels.reshape(-1, datatype(case.datatype)[1].size // 4)
    found = np.ones(len(of_words), int)
    for column in of_words.T:
        found = np.where(column == 1, found, np.where((found == 1) | (found == column), column, 0))
    return found


class _Sets:
    """The sets of contributions with which words are compared."""

    def __init__(self, case: Case, given: Words, before: Sequence[Words | None]) -> None:
        self.op, self.given = case.op, given
        # With MPI_IN_PLACE the receive buffer held the contribution itself.
        self.stale = {
            rank: words
            for rank, words in enumerate(before)
            if words is not None and not _is_in_place(case, rank)
        }

    def explain(self, got: Words, left: NDArray[np.int64]) -> tuple[Held, NDArray[np.bool_]] | None:
        """(Held, bool [left]): the set that explains the first of the words `left`, and which of
        them it explains; None if none is certain enough."""
        guesses = self._of_sums if self.op == "sum" else self._of_orders
        sample = left[:SAMPLE]
        for held, values, number in guesses(got[left[0]], left[0]):
            best: Held | None = None
            most = 0
            for one in held:
                same = int((self._value(one, sample) == got[sample]).sum())
                if same > most:
                    best, most = one, same
            if best is not None and number * 2.0 ** (-values * most) <= DOUBT:
                return best, self._value(best, left) == got[left]
        return None

    def _value(self, held: Held, chosen: NDArray[np.int64]) -> Words:
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

    def _of_sums(self, word: np.uint32, at: int) -> Iterator[tuple[list[Held], int, int]]:
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

    def _of_orders(self, word: np.uint32, at: int) -> Iterator[tuple[list[Held], int, int]]:
        """Like `_of_sums`, for orders in which contributions are composed."""
        column = np.append(self.given[:, at], np.uint32(0))  # index -1: no further rank
        for orders in _orders(len(self.given)):
            value = column[orders[:, 0]]
            for ranks in orders.T[1:]:
                value = np.where(ranks < 0, value, OPERATIONS[self.op](value, column[ranks]))
            hits = [
                tuple(rank for rank in one if rank >= 0) for one in orders[value == word].tolist()
            ]
            yield [_ordered(one, len(self.given)) for one in hits], BITS["compose"], len(orders)


def _ordered(order: tuple[int, ...], ranks: int) -> Held:
    return Held(COMBINED, counts=tuple(order.count(rank) for rank in range(ranks)), order=order)


@lru_cache(maxsize=16)
def _countings(ranks: int) -> list[NDArray[np.int64]]:
    """[int array [n, P]]: how often each rank is in a sum, the more likely counts first."""
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


def _stretch(begin: int, length: int, ranks: int) -> NDArray[np.int64]:
    """The mask [1, P] of `length` consecutive ranks from `begin`, wrapping around to rank 0."""
    return np.isin(np.arange(ranks), (begin + np.arange(length)) % ranks).astype(int)[None]


@lru_cache(maxsize=16)
def _orders(ranks: int) -> list[NDArray[np.int64]]:
    """[int array [n, P]]: orders of some ranks, padded with -1, the more likely ones first."""
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
_EXPLAINED_BY: dict[str, Callable[[Evidence, Case, WrongParts], Explanation]] = {
    "bcast": explain_message,
    "scatter": explain_share,
    "reduce": explain_reduction,
    "allreduce": explain_reduction,
}


def read(case: Case, outputs: Sequence[Output]) -> dict[int, list[Part]]:
    """{rank: [Part]} of the ranks whose block is wrong, without ranks whose memory has the wrong
    size."""
    found: dict[int, list[Part]] = {}
    expected = case.expected()
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


def explain_single(evidence: Evidence, case: Case, by_rank: WrongParts) -> Explanation | None:
    """The Explanation of the parts that `read` returned; None if there are none."""
    if not by_rank:
        return None
    return _EXPLAINED_BY[case.collective](evidence, case, by_rank)


def headline(case: Case, by_rank: WrongParts) -> str:
    """What is wrong on these ranks, to follow 'wrong result on ranks 0 to 3: '."""
    clauses = {rank: _clauses(case, of_rank) for rank, of_rank in by_rank.items()}
    first, said = next(iter(clauses.items()))
    if len(clauses) == 1 or all(other == said for other in clauses.values()):
        return said
    return f"on rank {first}, {said}"


def _clauses(case: Case, of_rank: Iterable[Part]) -> str:
    wrong = [part for part in of_rank if part.held.kind != RIGHT]
    said = [clause(part, case.count) for part in wrong[:2]]
    if len(wrong) > 2:
        said.append(f"{len(wrong) - 2} more parts are wrong")
    return model.listing(said)


def table(case: Case, by_rank: WrongParts) -> Table:
    """Table: what the blocks of the ranks in `by_rank` hold, part by part."""
    rows: list[tuple[str | int, ...]] = []
    for rank, of_rank in list(by_rank.items())[:SHOWN_RANKS]:
        wrong = [part for part in of_rank if part.held.kind != RIGHT]
        rows += [
            (rank, whereabouts(part, case.count), content(part, case.count))
            for part in wrong[:SHOWN_PARTS]
        ]
        if len(wrong) > SHOWN_PARTS:
            rows.append((rank, "…", f"{len(wrong) - SHOWN_PARTS} more parts are wrong"))
    more = len(by_rank) - SHOWN_RANKS
    title = "What is wrong" + (f" (and on {model.number(more, 'more rank')})" if more > 0 else "")
    holds = "is made of" if case.collective in ("reduce", "allreduce") else "holds"
    return Table(title, ("rank", "elements", holds), tuple(rows))
