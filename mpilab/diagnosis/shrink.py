"""The smallest case that goes wrong as well: fewer ranks, then less data, then simpler."""

from dataclasses import replace

from mpilab.errors import InputError


def smallest(case, fails, *, budget=16):
    """(smallest failing case, cases tried), looking for cases smaller than `case`, which fails.

    `fails(case) -> bool` is called at most `budget` times. The same answers give the same case:
    first the fewest ranks (the root is the last of them, where its own number is too high), then
    the smallest count, then int, a sum and even counts, without MPI_IN_PLACE, reversal, tunables
    and pretended places (of fewer ranks, those of the first ones are kept). Of a read, the matrix
    becomes smaller, and is dealt out in plain blocks.
    """
    search = _Search(fails, budget)
    best = search.least(case, "ranks", range(1, case.ranks))
    best = search.least(best, "count", _counts(best.count))
    best = search.least(best, "matrix", _matrices(best) if best.matrix else ())
    for name, simple in (("datatype", "int"), ("op", "sum"), ("in_place", False),
                         ("reversed", False), ("strict", False), ("root", 0), ("segment", 0),
                         ("fanout", 0), ("radix", 0), ("budget", 0), ("pattern", "even"),
                         ("places", ()), ("buffer", 0), ("aggregators", 0)):  # fmt: skip
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
            ranks = value if name == "ranks" else case.ranks
            kept = {"root": min(case.root, ranks - 1), "places": case.places[:ranks]}
            try:
                smaller = replace(case, **{**kept, name: value})
            except InputError:  # there is no such case: a matrix may say how many ranks it is for
                continue
            self.tried += 1
            if self.fails(smaller):
                return smaller
        return case


def _matrices(case):
    """Smaller matrices worth trying: some that the grid does not divide, then the same one in plain
    blocks."""
    rows, columns = case.distribution.rows, case.distribution.columns
    smaller = [(r, c) for r, c in ((1, 2), (2, 3), (4, 6), (5, 7)) if r * c < rows * columns]
    return [f"{r}x{c}" for r, c in (*smaller, (rows, columns)) if f"{r}x{c}" != case.matrix]


def _counts(count):
    """Smaller counts worth trying: many mistakes need no data, one element or two."""
    return [c for c in (0, 1, 2, 3, 4, 8, 16, 64, 1024) if c < count]
