"""Choose rules from measured or predicted times, and estimate what they cost."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import sqrt
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.algorithms.algorithm import GammaFunction
from mpilab.cases.case import collective_of
from mpilab.errors import InputError
from mpilab.kernels import openmpi
from mpilab.measure import sweep_table
from mpilab.measure.openmpi_traffic import CHAIN_FANOUT, PATTERNS, RADIX
from mpilab.measure.sweep_table import summarize
from mpilab.models import Hockney, fit_per_algorithm
from mpilab.models.costs import OPENMPI_FORMULAS, cost
from mpilab.tuning.rules import (
    CHAINS,
    CUT,
    FAILS,
    LEFT,
    MISREAD,
    TWO_RANKS,
    WITHOUT_SIZE,
    Choice,
    Rule,
    Rules,
    algorithm_name,
    as_text,
    looked_up_bytes,
    parse,
    shape_of,
    substitute,
)
from mpilab.util import units
from mpilab.util.units import sizes_of

# For all algorithms, or a function of the algorithm's name.
Model = Hockney | Callable[[str], Hockney | None]
# Candidates where a file may choose anything: bytes of a segment, and numbers of chains.
SEGMENTS = (0, *(1 << power for power in range(9, 21)))
FANOUTS = (2, 4, 8)
# A choice slower than the fastest by up to this share counts as equal: fewer rules, and none due to
# noise.
SLACK = 0.05
EXPECTED = np.dtype(
    [
        ("collective", "U24"),
        ("ranks", "i4"),
        ("bytes", "i8"),
        ("number", "i4"),
        ("chosen_s", "f8"),
        ("best_number", "i4"),
        ("best_s", "f8"),
        ("default_s", "f8"),
        ("regret", "f8"),
    ]
)

# The cost of a rule's choice in the α-β model (mpilab.models.costs).


@cache
def choices(
    collective: str, segments: Iterable[int] = SEGMENTS, fanouts: Iterable[int] = FANOUTS
) -> tuple[Choice, ...]:
    """All (number, fan-out, segment) that a file may choose for a collective and that have a cost,
    as a tuple. It excludes two_proc, which is for two ranks only."""
    found = []
    for number, name in sorted(openmpi.algorithms().get(collective, {}).items()):
        if name not in OPENMPI_FORMULAS.get(collective, {}) or name == TWO_RANKS:
            continue
        cuts = segments if name in CUT.get(collective, ()) else (0,)
        chains = fanouts if name in CHAINS.get(collective, ()) else (0,)
        found += [(number, fanout, segment) for fanout in chains for segment in cuts]
    return tuple(found)


def seconds(
    collective: str,
    ranks: int,
    size: int,
    choice: Choice,
    model: Model,
    gamma: GammaFunction | None = None,
) -> float | None:
    """Predicted seconds of a choice, or of its substitute in Open MPI; None if there is no formula,
    because the choice, or a part of its algorithm, is left to Open MPI.

    size    bytes of a block (allgather, gather, scatter), or of the whole message
    choice  (number, fan-out, segment)
    model   a Hockney; or a function of the algorithm's name that returns one, or None
    gamma   see mpilab.models.costs
    """
    name, segment, fanout = run_as(collective, ranks, size, choice)
    if name not in OPENMPI_FORMULAS.get(collective, {}):
        return None
    own = model if isinstance(model, Hockney) else model(name)
    if own is None:
        return None
    return float(
        cost(
            collective,
            name,
            ranks,
            size,
            own,
            segment=segment,
            fanout=fanout,
            gamma=gamma,
            library="openmpi",
        )
    )


def run_as(collective: str, ranks: int, size: int, choice: Choice) -> tuple[str, int, int]:
    """(name, segment, fan-out) of the algorithm that runs for a choice: perhaps a substitute of
    Open MPI's, and with segments only if it has them. The name is "" if Open MPI chooses."""
    number, fanout, segment = choice
    name = "" if number == LEFT else algorithm_name(collective, number)
    shape = shape_of(collective, ranks, size, segment, fanout)
    instead = substitute(collective, name, shape)
    name = instead.name if instead else name
    return name, segment if name in CUT.get(collective, ()) else 0, shape.fanout


# Times from which rules are chosen: measured by a sweep, or predicted by models.


@dataclass
class Points:
    """Times of a collective at (ranks, bytes): bytes of a block, or of the whole message.

    seconds    {(ranks, bytes): {(number, fan-out, segment): seconds}}
    tied       {(ranks, bytes): choices that may be as fast as the fastest}, because the 95 %
               confidence intervals of their medians overlap
    defaults   {(ranks, bytes): seconds} of Open MPI's own choice, where measured
    by_models  the numbers of ranks that were predicted, not measured
    """

    collective: str
    seconds: dict[tuple[int, int], dict[Choice, float]] = field(
        default_factory=lambda: defaultdict(dict)
    )
    tied: dict[tuple[int, int], set[Choice]] = field(default_factory=dict)
    defaults: dict[tuple[int, int], float] = field(default_factory=dict)
    by_models: frozenset[int] = frozenset()

    @property
    def ranks(self) -> list[int]:
        """All numbers of ranks, ascending."""
        return sorted({ranks for ranks, _ in self.seconds})

    def sizes(self, ranks: int) -> list[int]:
        """All sizes for this number of ranks, ascending."""
        return sorted(size for one, size in self.seconds if one == ranks)


def from_table(table: NDArray[Any], collective: str, measure: str = "span_s") -> Points:
    """Points of Open MPI's algorithms in a sweep's table (mpilab.measure.sweep_table.ROW): medians.

    Leaves out what a file cannot choose: two_proc (which aborts unless there are two ranks) and
    k-nomial trees with a radix other than 4. Raises InputError if nothing is left.
    """
    rows = table[(table["collective"] == collective) & (table["library"] == "openmpi")]
    points = Points(collective)
    # Like seconds: (lower, upper) bound of the median.
    bounds: dict[tuple[int, int], dict[Choice, tuple[float, float]]] = defaultdict(dict)
    for row in summarize(rows, measure):
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
        raise InputError(
            f"the table has no algorithm of Open MPI's {collective}; measure some: "
            f"mpilab sweep {collective} --algorithms openmpi -o FILE.csv"
        )
    for place, each in points.seconds.items():
        _, most = bounds[place][min(each, key=each.__getitem__)]
        # With too few repetitions, the bounds are nan, and comparisons with nan are false.
        points.tied[place] = {choice for choice in each if bounds[place][choice][0] <= most}
    return points


def from_models(
    collective: str,
    ranks: Sequence[int],
    sizes: Sequence[int],
    model: Model,
    *,
    candidates: Sequence[Choice] | None = None,
    gamma: GammaFunction | None = None,
) -> Points:
    """Points predicted by models.

    model       a Hockney for all algorithms, or a function of a name that returns one, or None
    candidates  (number, fan-out, segment) to choose from; default: `choices`
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


def fitted(
    table: NDArray[Any], points: Points, ranks: Sequence[int], measure: str = "span_s"
) -> Points:
    """Points for other numbers of ranks, by models fitted to each algorithm of a table; sizes and
    choices are those of `points`, which come from the same table."""
    own = (table["collective"] == points.collective) & (table["library"] == "openmpi")
    models = fit_per_algorithm(table[own], collective=points.collective, measure=measure)
    sizes = sorted({size for _, size in points.seconds})
    measured = sorted({choice for each in points.seconds.values() for choice in each})
    return from_models(
        points.collective,
        ranks,
        sizes,
        lambda name: models.get(("openmpi", name)),
        candidates=measured,
    )


def joined(points: Points, more: Points) -> Points:
    """Points of both; for the same number of ranks, only those of `points`."""
    there = set(points.ranks)
    whole = Points(
        points.collective,
        defaultdict(dict),
        {**more.tied, **points.tied},
        {**more.defaults, **points.defaults},
        points.by_models | (more.by_models - there),
    )
    for place, each in more.seconds.items():
        if place[0] not in there:
            whole.seconds[place] = each
    whole.seconds.update(points.seconds)
    return whole


def medians_of(values: ArrayLike) -> tuple[float, float]:
    """(median, largest) of shares, ignoring nan; nan if there are no others."""
    known = np.asarray(values)[np.isfinite(values)]
    return (float(np.median(known)), float(known.max())) if len(known) else (np.nan, np.nan)


# The input of `mpilab rules write`: sweeps, models fitted to them, or α and β.


def points(
    paths: Sequence[str | Path],
    *,
    collectives: Sequence[str] | None = None,
    measure: str = "span_s",
    model_ranks: Sequence[int] = (),
    alpha: str | None = None,
    beta: str | None = None,
    sizes: str = "1:1M",
) -> Iterator[Points]:
    """Yield the Points of each collective.

    paths        CSV files of sweeps; those of the same collective are combined
    model_ranks  numbers of ranks to predict by models: fitted to the sweeps, or of `alpha` and
                 `beta` ("20us", "1ns"), then at `sizes`. Measurements take precedence.

    Raises InputError if there is nothing to choose from.
    """
    model = _model(alpha, beta)
    if not paths and (model is None or not model_ranks or not collectives):
        raise InputError(
            "no sweeps and no model given: name CSV files of mpilab sweep; or give "
            "--collectives, --model-ranks, --alpha and --beta"
        )
    if model is not None and not model_ranks:
        raise InputError(
            "--alpha and --beta need numbers of ranks; add --model-ranks, e.g. 64,1024"
        )
    tables = [sweep_table.read(path) for path in paths]
    table = np.concatenate([np.empty(0, sweep_table.ROW), *tables])
    there = list(dict.fromkeys(table["collective"].tolist()))
    for name in collectives or there:
        if name not in PATTERNS:
            raise InputError(f"{name!r}: no such collective; write some of {', '.join(PATTERNS)}")
        if paths and name not in there:
            raise InputError(f"{name}: in none of the sweeps, which have {', '.join(there)}")
        measured = from_table(table, name, measure) if paths else None
        predicted = None
        if model_ranks and model is not None:
            predicted = from_models(name, model_ranks, _sizes(name, sizes), model)
        elif model_ranks and measured is not None:
            predicted = fitted(table, measured, model_ranks, measure)
        found = [one for one in (measured, predicted) if one is not None]
        yield joined(*found) if len(found) == 2 else found[0]
    if not there and paths:
        raise InputError(f"{', '.join(map(str, paths))}: no rows; run the sweep first")


def _model(alpha: str | None, beta: str | None) -> Hockney | None:
    if alpha is None and beta is None:
        return None
    if alpha is None or beta is None:
        raise InputError("--alpha and --beta go together, e.g. --alpha 20us --beta 1ns")
    return Hockney(units.read(alpha, units.TIME), units.read(beta, units.TIME))


def _sizes(collective: str, given: str) -> Sequence[int]:
    if collective in WITHOUT_SIZE:
        return (0,)
    element = collective_of(collective).timed_element[1]
    return [size for size in sizes_of(given)[0] if size % element == 0]


def basis(found: Points) -> str:
    """What Points cover: '4 and 8 ranks measured, 64 ranks by models, 1 to 65536 bytes'."""
    measured = [ranks for ranks in found.ranks if ranks not in found.by_models]
    parts = [
        f"{' and '.join(map(str, ranks))} ranks {how}"
        for ranks, how in ((measured, "measured"), (sorted(found.by_models), "by models"))
        if ranks
    ]
    sizes = sorted({size for _, size in found.seconds})
    return ", ".join(parts) + (f", {sizes[0]} to {sizes[-1]} bytes" if sizes[-1] else "")


def checked_text(rules: Sequence[Rule], remark: str) -> str:
    """The text of rules, read back as Open MPI would; InputError if it reads differently."""
    text = as_text(rules, remark)
    again = parse(text)
    bad = [one for one in again.remarks if one.kind in (FAILS, MISREAD)]
    if bad or {_key(rule) for rule in again.rules} != {_key(rule) for rule in rules}:
        raise InputError(f"these rules cannot be written: {bad[0].text if bad else 'they overlap'}")
    return text


def _key(rule: Rule) -> tuple:
    return rule.collective, rule.ranks, rule.bytes, rule.choice


def choose(points: Points, slack: float = SLACK) -> list[Rule]:
    """Rules for all Points: list of Rule, as few as possible.

    Neighboring sizes share a rule if one choice is, at each of them, at most `slack` slower than
    the fastest, or indistinguishable from it in the measurements. If there are several such
    choices, the rule takes the one that loses least. A rule begins at the roundest number between
    the sizes tried. Numbers of ranks below the smallest one tried are left to Open MPI; each number
    tried covers those up to the next.
    """
    if not 0 <= slack < 10:
        raise InputError(f"slack={slack}: write a share of 0 or more, e.g. 0.05 for 5 %")
    found: list[tuple[int, list[tuple[int, Choice]]]] = []
    for ranks in points.ranks:
        begun = _begun(points, ranks, _runs(points, ranks, slack))
        if not found or found[-1][1] != begun:
            found.append((ranks, begun))
    rules = [
        Rule(points.collective, ranks, begin, *choice)
        for ranks, begun in found
        for begin, choice in begun
    ]
    if points.ranks[0] > 2:
        rules.insert(0, Rule(points.collective, 1, 0, LEFT))
    return rules


def expected(rules: Rules | Iterable[Rule], points: Points) -> NDArray[Any]:
    """The cost of following the rules, point by point: a table of EXPECTED.

    regret = chosen_s / best_s - 1; default_s is nan if it was not measured, and so is chosen_s if
    the rules' choice was not.
    """
    whole = rules if isinstance(rules, Rules) else Rules(tuple(rules))
    rows = []
    for (ranks, size), each in sorted(points.seconds.items()):
        rule = whole.deciding(points.collective, ranks, size)
        default = points.defaults.get((ranks, size), np.nan)
        number, chosen = LEFT, default
        if rule is not None and not rule.is_left:
            number, chosen = rule.number, each.get(rule.choice, np.nan)
        best = min(each, key=each.__getitem__)
        rows.append(
            (
                points.collective,
                ranks,
                size,
                number,
                chosen,
                best[0],
                each[best],
                default,
                chosen / each[best] - 1,
            )
        )
    return np.array(rows, EXPECTED)


def expected_words(table: NDArray[Any]) -> str:
    """The regret in a table of EXPECTED, in one sentence."""
    if not np.isfinite(table["regret"]).any():
        return "the cost of the rules is unknown: none of their choices was tried"
    worst = table[np.nanargmax(table["regret"])]
    middle, most = medians_of(table["regret"])
    words = (
        f"expected regret at {len(table)} points: median {middle:.1%}, at most {most:.1%} "
        f"({worst['ranks']} ranks, {worst['bytes']} bytes)"
    )
    middle, most = medians_of(table["default_s"] / table["best_s"] - 1)
    if np.isfinite(middle):
        words += f"; Open MPI's own choice: median {middle:.1%}, at most {most:.1%}"
    return words


def _runs(points: Points, ranks: int, slack: float) -> list[tuple[int, int, Choice]]:
    """[(first size, last size, choice)]: runs of neighboring sizes for which one choice is good.

    Extending each run as long as any choice is good enough gives the fewest runs.
    """
    runs: list[tuple[int, int, Choice]] = []
    good: dict[Choice, float] = {}
    for size in points.sizes(ranks):
        each = points.seconds[ranks, size]
        least = min(each.values())
        tied = points.tied.get((ranks, size), set())
        lost = {
            choice: time / least - 1
            for choice, time in each.items()
            if time <= least * (1 + slack) or choice in tied
        }
        both = {choice: good[choice] + lost[choice] for choice in good.keys() & lost.keys()}
        first = runs.pop()[0] if both else size
        good = both or lost
        best = min((share, choice) for choice, share in good.items())[1]
        runs.append((first, size, best))
    return runs


def _begun(
    points: Points, ranks: int, runs: Iterable[tuple[int, int, Choice]]
) -> list[tuple[int, Choice]]:
    """[(bytes as Open MPI looks them up, choice)] of each run."""
    found, before = [], None
    for first, last, choice in runs:
        begin = 0
        if before is not None:
            begin = roundest(
                looked_up_bytes(points.collective, ranks, before),
                looked_up_bytes(points.collective, ranks, first),
            )
        found.append((begin, choice))
        before = last
    return found


def roundest(below: int, most: int) -> int:
    """The number above `below` and not above `most` with the fewest significant bits: a power of
    two, or else a multiple of the largest possible one. On a tie, the nearest to the geometric mean
    of the limits. roundest(1000, 5000) = 2048, roundest(5000, 7000) = 6144."""
    middle = sqrt(max(1, below) * most)
    powers = [1 << place for place in range(below.bit_length(), most.bit_length())]
    if powers:
        return min(powers, key=lambda one: abs(one - middle))
    step = 1 << most.bit_length()
    while (below // step + 1) * step > most:
        step //= 2
    return min(range((below // step + 1) * step, most + 1, step), key=lambda one: abs(one - middle))
