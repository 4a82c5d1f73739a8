"""The lines of a sweep's figure: which rows are one algorithm, what it is called, how it looks, and
what a model says of it."""

from dataclasses import dataclass

import numpy as np

from mpilab.datatypes import datatype
from mpilab.errors import InputError
from mpilab.expected import COLLECTIVES
from mpilab.models import predict, predict_schedule
from mpilab.models.costs import cost, formula_of
from mpilab.plots import style
from mpilab.schedules import algorithms, schedule_of

# What tells one line from another, and what it is in tables that do not have the field.
FIELDS = {"collective": "allgather", "library": "ours", "algorithm": "", "segment": 0, "fanout": 0,
          "radix": 0}  # fmt: skip
MEASURES = {"span_s": "last exit − first enter", "mean_s": "mean over the ranks"}
# Of the same algorithm, tuned in several ways.
DASHES = ("solid", "longdash", "longdashdot", "dashdot")


@dataclass(frozen=True)
class Series:
    """One algorithm of a table, as it was tuned; `number` counts those of the same algorithm."""

    collective: str
    library: str
    algorithm: str
    segment: int
    fanout: int
    radix: int
    number: int = 0
    name: str = ""

    @property
    def is_ours(self):
        """Is it a kernel, of the kit or of a student?"""
        return self.library == "ours"

    @property
    def colour(self):
        """The colour of the algorithm."""
        return style.colour(self.algorithm)

    @property
    def symbol(self):
        """The marker: open for Open MPI's."""
        return style.marker(self.algorithm) + ("" if self.is_ours else "-open")

    @property
    def dash(self):
        """The dash of its line."""
        return DASHES[self.number % len(DASHES)]

    def rows(self, table):
        """Its rows of a table."""
        chosen = np.ones(len(table), bool)
        for field in FIELDS:
            if field in table.dtype.names:
                chosen &= table[field] == getattr(self, field)
        return table[chosen]

    def model(self, models):
        """Its Hockney among `models` (see mpilab.plots.sweep.time_against_size), or None."""
        if isinstance(models, dict):
            return models.get(self.name, models.get((self.library, self.algorithm),
                                                    models.get(self.algorithm)))  # fmt: skip
        return models

    def predicted(self, ranks, sizes, model, cores=None):
        """Seconds for an array of sizes in bytes; None where there is no formula or schedule."""
        known = self.is_ours and self.algorithm in algorithms(self.collective)
        tuned = {"segment": self.segment, "fanout": self.fanout, "radix": self.radix}
        if known and self.collective == "allgather":
            return predict(self.algorithm, ranks, sizes, model, cores)
        if cores is not None:
            return np.array([self._scheduled(ranks, size, model, cores, tuned) for size in sizes]
                            ) if known else None  # fmt: skip
        try:
            formula_of(self.collective, self.algorithm, self.library)
        except InputError:
            return None
        return cost(self.collective, self.algorithm, ranks, sizes, model, library=self.library,
                    **tuned)  # fmt: skip

    def _scheduled(self, ranks, size, model, cores, tuned):
        element = datatype("int")[0].size if COLLECTIVES[self.collective].reduces else 1
        schedule = schedule_of(self.collective, self.algorithm, ranks, element_bytes=element,
                               count=int(-(-size // element)), **tuned)  # fmt: skip
        return predict_schedule(schedule, None, model, cores)


def series_of(table):
    """The Series of a table, in the order in which they first appear."""
    present = [field for field in FIELDS if field in table.dtype.names]
    found = [
        {**FIELDS, **dict(zip(present, values, strict=True))}
        for values in dict.fromkeys(table[present].tolist())
    ]
    several = len({each["collective"] for each in found}) > 1
    numbers, made = {}, []
    for each in found:
        key = each["collective"], each["library"], each["algorithm"]
        numbers[key] = numbers.get(key, -1) + 1
        made.append(Series(**each, number=numbers[key], name=_name(each, several)))
    return made


def _name(each, several):
    words = [] if each["library"] == "ours" else ["Open MPI"]
    words += [f"segment {style.byte_size(each['segment'])}"] if each["segment"] else []
    words += [f"{word} {each[word]}" for word in ("fanout", "radix") if each[word]]
    own = f"{each['collective']} {each['algorithm']}" if several else each["algorithm"]
    return f"{own} ({', '.join(words)})" if words else own


def summary(rows, measure="span_s", field="bytes"):
    """Values of `field`, lower quartile, median and upper quartile: four arrays, by value."""
    values = np.unique(rows[field])
    quartiles = [
        np.percentile(rows[measure][rows[field] == value], [25, 50, 75]) for value in values
    ]
    return (values, *np.array(quartiles).reshape(-1, 3).T)


def check(table, measure):
    """InputError for a table that is empty or lacks a field, and for an unknown measure."""
    needed = {"algorithm", "ranks", "bytes", *MEASURES}
    missing = needed - set(table.dtype.names or ())
    if missing:
        raise InputError(
            f"the table of the sweep has no field {', '.join(sorted(missing))}; "
            "give a structured array of mpilab.sweeps.table.ROW."
        )
    if len(table) == 0:
        raise InputError("the table of the sweep is empty; run the sweep first.")
    if measure not in MEASURES:
        raise InputError(f"measure={measure!r}; take 'span_s' or 'mean_s'.")
