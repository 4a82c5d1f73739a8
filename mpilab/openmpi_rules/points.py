"""Times that rules are chosen from: measured by a sweep, or predicted by models."""

from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np

from mpilab.errors import InputError
from mpilab.models import fit_per_algorithm
from mpilab.openmpi_rules.predicting import choices, seconds
from mpilab.openmpi_rules.vocabulary import CHAINS, CUT, LEFT, TWO_RANKS
from mpilab.sweeps import summarise
from mpilab.sweeps.openmpi_traffic.shape import CHAIN_FANOUT, RADIX


@dataclass
class Points:
    """Times of a collective at (ranks, bytes): bytes of a block, or of the whole message.

    seconds    {(ranks, bytes): {(number, fan-out, segment): seconds}}
    tied       {(ranks, bytes): choices that may be as fast as the fastest}: the 95 % confidence
               intervals of their medians meet
    defaults   {(ranks, bytes): seconds} of what Open MPI decides by itself, where that was measured
    by_models  the numbers of ranks that nobody measured
    """

    collective: str
    seconds: dict = field(default_factory=lambda: defaultdict(dict))
    tied: dict = field(default_factory=dict)
    defaults: dict = field(default_factory=dict)
    by_models: frozenset = frozenset()

    @property
    def ranks(self):
        """All numbers of ranks, rising."""
        return sorted({ranks for ranks, _ in self.seconds})

    def sizes(self, ranks):
        """All sizes with so many ranks, rising."""
        return sorted(size for one, size in self.seconds if one == ranks)


def from_table(table, collective, measure="span_s"):
    """Points of Open MPI's algorithms in a sweep's table (mpilab.sweeps.ROW): medians.

    Left out is what a file cannot choose, two_proc (which aborts on other than two ranks) and
    k-nomial trees of another radix than 4. InputError where nothing is left.
    """
    rows = table[(table["collective"] == collective) & (table["library"] == "openmpi")]
    points = Points(collective)
    bounds = defaultdict(dict)  # like seconds: (lower, upper) bound of the median
    for row in summarise(rows, measure):
        place, number = (int(row["ranks"]), int(row["bytes"])), int(row["number"])
        name = str(row["algorithm"])
        if number == LEFT:
            points.defaults[place] = float(row["median_s"])
        elif place[0] > 1 and name != TWO_RANKS and row["radix"] in (0, RADIX):
            chains = int(row["fanout"]) or CHAIN_FANOUT
            choice = (
                number,
                chains if name in CHAINS.get(collective, ()) else 0,
                int(row["segment"]) if name in CUT.get(collective, ()) else 0,
            )
            points.seconds[place][choice] = float(row["median_s"])
            bounds[place][choice] = float(row["low_s"]), float(row["high_s"])
    if not points.seconds:
        raise InputError(f"the table has no algorithm of Open MPI's {collective}; measure some: "
                         f"mpilab sweep {collective} --algorithms openmpi -o FILE.csv")  # fmt: skip
    for place, each in points.seconds.items():
        _, most = bounds[place][min(each, key=each.get)]
        # Too few repetitions for an interval have no bounds: comparisons with nan are false.
        points.tied[place] = {choice for choice in each if bounds[place][choice][0] <= most}
    return points


def from_models(collective, ranks, sizes, model, *, candidates=None, gamma=None):
    """Points of what models predict.

    model       a Hockney for all algorithms, or a function of a name that returns one, or None
    candidates  (number, fan-out, segment) to choose from; default: `predicting.choices`
    """
    points = Points(collective, by_models=frozenset(ranks))
    for number in ranks:
        for size in sizes:
            for choice in choices(collective) if candidates is None else candidates:
                predicted = seconds(collective, number, size, choice, model, gamma)
                if predicted is not None:
                    points.seconds[number, size][choice] = predicted
    if not points.seconds:
        raise InputError(f"Open MPI's {collective}: these models predict none of its algorithms")
    return points


def fitted(table, points, ranks, measure="span_s"):
    """Points for other numbers of ranks, by models that are fitted to each algorithm of a table;
    the sizes and the choices are those of `points`, which come from the same table."""
    own = (table["collective"] == points.collective) & (table["library"] == "openmpi")
    models = fit_per_algorithm(table[own], collective=points.collective, measure=measure)
    sizes = sorted({size for _, size in points.seconds})
    measured = sorted({choice for each in points.seconds.values() for choice in each})
    return from_models(points.collective, ranks, sizes, lambda name: models.get(("openmpi", name)),
                       candidates=measured)  # fmt: skip


def joined(points, more):
    """Points of both; with as many ranks, only those of `points`."""
    there = set(points.ranks)
    whole = Points(
        points.collective, defaultdict(dict), {**more.tied, **points.tied},
        {**more.defaults, **points.defaults}, points.by_models | (more.by_models - there),
    )  # fmt: skip
    for place, each in more.seconds.items():
        if place[0] not in there:
            whole.seconds[place] = each
    whole.seconds.update(points.seconds)
    return whole


def medians_of(values):
    """(median, largest) of shares that may hold nan; nan where there is nothing."""
    known = np.asarray(values)[np.isfinite(values)]
    return (float(np.median(known)), float(known.max())) if len(known) else (np.nan, np.nan)
