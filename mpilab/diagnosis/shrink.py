"""The smallest case that goes wrong as well: fewer ranks, then less data, then simpler."""

from dataclasses import replace


def smallest(case, fails, *, budget=16):
    """(smallest failing case, cases tried), looking for cases smaller than `case`, which fails.

    `fails(case) -> bool` is called at most `budget` times. The same answers give the same case:
    first the fewest ranks (the root is the last of them, where its own number is too high), then
    the smallest count, then int and a sum, without MPI_IN_PLACE, reversal and tunables.
    """
    search = _Search(fails, budget)
    best = search.least(case, "ranks", range(1, case.ranks))
    best = search.least(best, "count", _counts(best.count))
    for name, simple in (("datatype", "int"), ("op", "sum"), ("in_place", False),
                         ("reversed", False), ("strict", False), ("root", 0), ("segment", 0),
                         ("fanout", 0), ("radix", 0)):  # fmt: skip
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
            root = min(case.root, value - 1) if name == "ranks" else case.root
            smaller = replace(case, **{"root": root, name: value})
            self.tried += 1
            if self.fails(smaller):
                return smaller
        return case


def _counts(count):
    """Smaller counts worth trying: many mistakes need no data, one element or two."""
    return [c for c in (0, 1, 2, 3, 4, 8, 16, 64, 1024) if c < count]
