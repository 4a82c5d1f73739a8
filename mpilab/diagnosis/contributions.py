"""Which ranks' contributions the result of a reduction is made of.

All contributions are known, and they are random numbers: so a value can be held against what other
sets of contributions come to. Values that many sets could explain by chance are left unexplained.
"""

from functools import lru_cache
from itertools import permutations, product

import numpy as np

from mpilab.datatypes import datatype
from mpilab.diagnosis.parts import COMBINED, RIGHT, UNTOUCHED, WRONG, Held, elements, runs
from mpilab.operations import OPERATIONS

# A guess may be wrong by chance in one of so many cases at most.
DOUBT = 1e-3
MOST_GUESSES, MOST_TIMES, TRIES, SAMPLE = 1 << 17, 4, 32, 256
# Compositions differ in the upper half of their words only, as far as the order is concerned.
BITS = {"sum": 32, "compose": 16}
_WORD = np.uint64(0xFFFFFFFF)


def parts(case, rank, received, right):
    """[Part] of the block that `rank` received in a reduction.

    received, right   its memory, and what it should be: uint8, guard zones included.
    """
    got, wanted = _words(case, received), _words(case, right)
    before = [_words(case, case.regions(other)[1]) if _receives(case, other) else None
              for other in range(case.ranks)]  # fmt: skip
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
    return np.stack([
        _words(case, case.regions(rank)[1 if _is_in_place(case, rank) else 0])
        for rank in range(case.ranks)
    ])  # fmt: skip


def _is_in_place(case, rank):
    return case.in_place and _receives(case, rank)


def _receives(case, rank):
    return case.collective == "allreduce" or rank == case.root


def _words(case, memory):
    return np.ascontiguousarray(elements(case, memory)).view(np.uint32).reshape(-1)


def _of_elements(case, labels):
    """One label an element: one that has words of several kinds is what its wrong words are."""
    of_words = labels.reshape(-1, datatype(case.datatype)[1].size // 4)
    found = np.ones(len(of_words), int)
    for column in of_words.T:
        found = np.where(column == 1, found, np.where((found == 1) | (found == column), column, 0))
    return found


class _Sets:
    """The sets of contributions that words are held against."""

    def __init__(self, case, given, before):
        self.op, self.given = case.op, given
        # With MPI_IN_PLACE the receive buffer held the contribution itself.
        self.stale = {rank: words for rank, words in enumerate(before)
                      if words is not None and not _is_in_place(case, rank)}  # fmt: skip

    def explain(self, got, left):
        """(Held, bool [left]) of the set that explains the first of the words `left`, and which of
        them it explains; (None, None) where none can be told."""
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
        """What the set comes to, for these words."""
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
        """([Held], bits of a word, guesses) of sums that come to `word`, the simpler ones first."""
        ranks = len(self.given)
        column = self.given[:, at].astype(np.uint64)
        for counts in _countings(ranks):
            sums = counts.astype(np.uint64) @ column & _WORD
            hits = counts[sums == word].tolist()
            yield [Held(COMBINED, counts=tuple(one)) for one in hits], BITS["sum"], len(counts)
            if len(counts) * len(self.stale) > MOST_GUESSES:
                continue
            found = [Held(COMBINED, rank, counts=tuple(one)) for rank, words in self.stale.items()
                     for one in counts[(sums + words[at] & _WORD) == word].tolist()]  # fmt: skip
            yield found, BITS["sum"], len(counts) * len(self.stale)

    def _of_orders(self, word, at):
        """The same for orders in which contributions are composed."""
        column = np.append(self.given[:, at], np.uint32(0))  # -1: nothing more
        for orders in _orders(len(self.given)):
            value = column[orders[:, 0]]
            for ranks in orders.T[1:]:
                value = np.where(ranks < 0, value, OPERATIONS[self.op](value, column[ranks]))
            hits = [tuple(rank for rank in one if rank >= 0)
                    for one in orders[value == word].tolist()]  # fmt: skip
            yield [_ordered(one, len(self.given)) for one in hits], BITS["compose"], len(orders)


def _ordered(order, ranks):
    return Held(COMBINED, counts=tuple(order.count(rank) for rank in range(ranks)), order=order)


@lru_cache(maxsize=16)
def _countings(ranks):
    """[int array [n, P]]: how often each rank is in a sum, the likelier ones first."""
    few = [np.ones(ranks, int)[None], np.eye(ranks, dtype=int), 1 - np.eye(ranks, dtype=int),
           1 + np.eye(ranks, dtype=int)]  # fmt: skip
    few += [_stretch(begin, length, ranks) for begin in range(ranks) for length in range(2, ranks)]
    found = [np.unique(np.concatenate(few), axis=0)]
    for most in range(1, MOST_TIMES + 1):
        if (most + 1) ** ranks <= MOST_GUESSES:
            found.append(np.array(list(product(range(most + 1), repeat=ranks))))
    return found


def _stretch(begin, length, ranks):
    """Neighbours, going on at rank 0 after the last one."""
    return np.isin(np.arange(ranks), (begin + np.arange(length)) % ranks).astype(int)[None]


@lru_cache(maxsize=16)
def _orders(ranks):
    """[int array [n, P]]: orders of some ranks, filled up with -1, the likelier ones first."""
    few = [
        [(begin + step * i) % ranks if i < length else -1 for i in range(ranks)]
        for length in range(ranks, 0, -1) for begin in range(ranks) for step in (1, -1)
    ]  # fmt: skip
    found = [np.unique(few, axis=0)]
    if ranks <= 7:
        found.append(np.array([
            [*order, *[-1] * (ranks - length)] for length in range(1, ranks + 1)
            for order in permutations(range(ranks), length)
        ]))  # fmt: skip
    return found
