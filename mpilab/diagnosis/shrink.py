"""The smallest case that goes wrong as well: fewer ranks, then less data, then simpler."""

from dataclasses import replace


def smallest(case, fails, *, budget=16):
    """(smallest failing case, cases tried), looking for cases smaller than `case`, which fails.

    `fails(case) -> bool` is called at most `budget` times. The same answers give the same case:
    first the fewest ranks, then the smallest count, then int without MPI_IN_PLACE and reversal.
    """
    search = _Search(fails, budget)
    best = search.least(case, "ranks", range(1, case.ranks))
    best = search.least(best, "count", _counts(best.count))
    for name, simple in (("datatype", "int"), ("in_place", False), ("reversed", False),
                         ("strict", False)):  # fmt: skip
        if getattr(best, name) != simple:
            best = search.least(best, name, (simple,))
    return best, search.tried


class _Search:
    def __init__(self, fails, budget):
        self.fails, self.budget, self.tried = fails, budget, 0

    def least(self, case, name, values):
        """The case with the first of `values` for field `name` that fails; itself if none does."""
        for value in values:
            if self.tried >= self.budget:
                return case
            smaller = replace(case, **{name: value})
            self.tried += 1
            if self.fails(smaller):
                return smaller
        return case


def _counts(count):
    """Smaller counts worth trying: many mistakes need no data, one element or two."""
    return [c for c in (0, 1, 2, 3, 4, 8, 16, 64, 1024) if c < count]
