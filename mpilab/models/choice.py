"""Fit models to a sweep, choose algorithms with them, and compute the regret of wrong choices."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms.algorithm import GammaFunction
from mpilab.errors import InputError
from mpilab.models.costs import FORMULAS, OPENMPI_FORMULAS, coefficients, cost
from mpilab.models.point_to_point import Hockney, Model, huber

Table = NDArray[Any]  # rows of a sweep (mpilab.measure.sweep_table), or of REGRET_ROW
Key = str | tuple[str, str]  # an algorithm of ours, or (library, algorithm)
Models = Model | Mapping[Any, Model]  # one for all algorithms of ours, or by Key
Variant = tuple[str, str, int, int, int]  # library, algorithm, segment, fanout, radix

# The points of a sweep table to which models are fitted: medians over repetitions.

# Rows that agree in these fields are repetitions of one measurement.
VARIANT = ("library", "algorithm", "segment", "fanout", "radix")
SHAPE = ("ranks", "bytes")


def check_fields(table: Table, fields: Iterable[str]) -> None:
    """Raise InputError for a table that is empty or lacks one of `fields`."""
    missing = set(fields) - set(getattr(getattr(table, "dtype", None), "names", None) or ())
    if missing:
        raise InputError(
            f"the sweep table has no field {', '.join(sorted(missing))}; "
            "give a structured array as mpilab.measure.sweep_table.read returns it."
        )
    if len(table) == 0:
        raise InputError("the sweep table is empty; run the sweep first.")


def medians(
    table: Table, keys: Sequence[str], measure: str = "span_s"
) -> dict[tuple[Any, ...], float]:
    """{values of the fields `keys`: median of `measure`}, in the order of first appearance."""
    grouped: dict[tuple[Any, ...], list[float]] = {}
    for key, value in zip(table[list(keys)].tolist(), table[measure].tolist(), strict=True):
        grouped.setdefault(key, []).append(value)
    return {key: float(np.median(values)) for key, values in grouped.items()}


def variants_of(table: Table) -> list[Variant]:
    """The distinct values of the fields VARIANT, in the order of first appearance."""
    return list(dict.fromkeys(table[list(VARIANT)].tolist()))


def rows_of(table: Table, variant: Variant) -> Table:
    """The rows of one variant, given by its values of the fields VARIANT."""
    return table[np.all([table[f] == v for f, v in zip(VARIANT, variant, strict=True)], axis=0)]


def the_collective(table: Table, collective: str | None = None) -> tuple[Table, str]:
    """The rows of one collective, and its name; InputError if it is ambiguous or absent."""
    check_fields(table, ("collective",))
    names = list(dict.fromkeys(table["collective"].tolist()))
    if collective is None and len(names) > 1:
        raise InputError(
            f"the sweep table has {len(names)} collectives ({', '.join(names)}); "
            f"say which one, e.g. collective={names[0]!r}."
        )
    collective = collective or names[0]
    if collective not in names:
        raise InputError(
            f"collective={collective!r} is not in the sweep table, which has {', '.join(names)}."
        )
    return table[table["collective"] == collective], collective


# γ(P): the cost of serving several receivers at the same time, in units of serving one.


@dataclass(frozen=True)
class Gamma:
    """γ as a function of the number of ranks; a call gives γ(P).

    A rank that starts P-1 sends of a segment and waits for all of them takes γ(P) times as long as
    with one receiver: between 1, if the sends do not slow each other down, and P-1, if they are
    sequential. γ(P) is measured as the ratio of linear, nonblocking broadcasts of one segment on P
    and on 2 ranks, and is assumed not to depend on the segment.

    measured   pairs (P, γ(P)).
    slope      γ(P) ≈ 1 + slope (P - 2) for other P: the paper finds that γ is nearly linear.

    Source: Nuriyev, Rico-Gallego, Lastovetsky, "Model-based selection of optimal MPI broadcast
    algorithms for multi-core clusters", Journal of Parallel and Distributed Computing 165, 2022.
    Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing
    10(2), 2007, covers the same broadcasts without γ: there, receivers are served one by one.
    """

    measured: tuple[tuple[int, float], ...]
    slope: float

    def __call__(self, ranks: int) -> float:
        """γ(P) for `ranks` ranks, of which all but one receive; 0 if there is no receiver."""
        if ranks < 2:
            return 0.0
        return dict(self.measured).get(int(ranks), max(1.0, 1 + self.slope * (ranks - 2)))


def one_by_one(ranks: int) -> float:
    """γ(P) = P - 1: receivers are served one after another, as in the single-port model."""
    return float(max(ranks - 1, 0))


def fit_gamma(table: Table, segment_bytes: int | None = None, measure: str = "span_s") -> Gamma:
    """The Gamma of a sweep: medians of linear broadcasts on P ranks, relative to those on 2 ranks.

    table           rows of a sweep; those of algorithm "linear" or "basic_linear" are used.
    segment_bytes   the message size; None: all sizes measured on 2 ranks and on more, with the
                    median of their ratios.
    measure         field of the table.

    Raises InputError for a table without these rows for 2 ranks, or for 2 ranks only.
    """
    check_fields(table, ("collective", "algorithm", "ranks", "bytes", measure))
    rows = table[
        (table["collective"] == "bcast") & np.isin(table["algorithm"], ("linear", "basic_linear"))
    ]
    if segment_bytes is not None:
        rows = rows[rows["bytes"] == segment_bytes]
    points = medians(rows, ("bytes", "ranks"), measure)
    alone = {size: seconds for (size, ranks), seconds in points.items() if ranks == 2}
    ratios: dict[int, list[float]] = {}
    for (size, ranks), seconds in points.items():
        if ranks > 2 and size in alone:
            ratios.setdefault(ranks, []).append(seconds / alone[size])
    if not ratios:
        of = "" if segment_bytes is None else f" of {segment_bytes} bytes"
        raise InputError(
            f"fit_gamma: no linear broadcasts{of} on 2 ranks and on more; the table has "
            f"{len(rows)} rows of them. Sweep bcast 'linear' over ranks 2, 3, 4 … at one size."
        )
    measured = {ranks: max(1.0, float(np.median(values))) for ranks, values in ratios.items()}
    receivers = np.array([ranks - 2 for ranks in measured], float)
    excess = np.array(list(measured.values())) - 1
    slope = float((receivers * excess).sum() / (receivers**2).sum())
    return Gamma(tuple(sorted({2: 1.0, **measured}.items())), slope)


# α and β of each algorithm, fitted to runs of that algorithm.

FIELDS = ("collective", *VARIANT, *SHAPE)


def fit_per_algorithm(
    table: Table,
    *,
    collective: str | None = None,
    measure: str = "span_s",
    gamma: GammaFunction | None = None,
) -> dict[tuple[str, str], Hockney]:
    """{(library, algorithm): Hockney}: α and β of each algorithm of a sweep.

    table        rows of a sweep (mpilab.measure.sweep_table).
    collective   which one, if the table has several.
    measure      field of the table: "span_s", "mean_s", "max_s" or "min_s".
    gamma        γ for the coefficients: see mpilab.models.costs.

    The cost of an algorithm is a(P, m, segment) α + b(P, m, segment) β with known a and b, so α and
    β follow from one linear regression over all its points, for every P, size and tunable. A point
    is the median of its repetitions; errors are relative to it, so that six decades of sizes count
    equally; and the regression is Huber's (mpilab.models.point_to_point), so that a few outliers
    have little influence. Neither α nor β is ever negative. The computation of a reduction is part
    of its β.

    Source: Nuriyev, Rico-Gallego, Lastovetsky, "Model-based selection of optimal MPI broadcast
    algorithms for multi-core clusters", JPDC 165, 2022, for the idea: α and β have a different
    meaning in each algorithm, and belong to it. We differ from the paper:

    - it times the broadcast together with a linear gather after it, on the root's clock, to see the
      end of the broadcast without synchronized clocks, and fits the sum of both costs; we time the
      collective alone, from the first rank's entry to the last one's exit, on one clock;
    - we fit all numbers of ranks in the table together;
    - our errors are relative to the measured time, not absolute;
    - the paper covers broadcasts, with Open MPI's trees; our formulas cover seven collectives, and
      follow our kernels where they differ.

    A point that takes many times as long as predicted has an error of at most 100 %, so if times
    fall into two groups, the fit follows the faster one. Therefore fit numbers of ranks that share
    cores separately from those that do not.

    Algorithms without a formula are left out (Open MPI's "default", a student's own). Raises
    InputError for a table without an algorithm that has a formula, and for an algorithm whose
    points do not determine α and β, for example because all have the same size.
    """
    check_fields(table, (*FIELDS, measure))
    rows, collective = the_collective(table, collective)
    points: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for (library, algorithm, *rest), seconds in medians(rows, (*VARIANT, *SHAPE), measure).items():
        if has_formula(collective, library, algorithm):
            points.setdefault((library, algorithm), []).append((*rest, seconds))
    if not points:
        names = ", ".join(sorted(set(rows["algorithm"].tolist())))
        raise InputError(
            f"the sweep of {collective} has no algorithm with a cost formula, only {names}; "
            f"sweep one of {', '.join(FORMULAS[collective])}."
        )
    return {
        (library, algorithm): _fit(collective, library, algorithm, rows, gamma)
        for (library, algorithm), rows in points.items()
    }


def has_formula(collective: str, library: str, algorithm: str) -> bool:
    """Is there a cost formula for this algorithm of "ours" or "openmpi"?"""
    formulas = {"ours": FORMULAS, "openmpi": OPENMPI_FORMULAS}.get(library, {})
    return algorithm in formulas.get(collective, {})


def _fit(
    collective: str,
    library: str,
    algorithm: str,
    points: Sequence[tuple[Any, ...]],
    gamma: GammaFunction | None,
) -> Hockney:
    rows = []
    for segment, fanout, radix, ranks, size, time in points:
        a, b = coefficients(
            collective,
            algorithm,
            ranks,
            size,
            segment=segment,
            fanout=fanout,
            radix=radix,
            gamma=gamma,
            library=library,
        )
        if not (np.isfinite(time) and time > 0):
            raise InputError(
                f"{library} {algorithm}, {ranks} ranks, {size} bytes: median time {time} s; "
                "every time must be a positive number of seconds."
            )
        if a > 0:  # a single rank has no cost
            rows.append((a / time, b / time))
    design = np.array(rows, float).reshape(-1, 2)
    has_bytes = bool(len(design)) and design[:, 1].any()
    # Scale the columns before computing the matrix rank: β is about 1e-4 of α.
    scaled = design / np.maximum(design.max(axis=0, initial=0), 1e-300)
    if len(design) == 0 or np.linalg.matrix_rank(scaled, tol=1e-6) < 1 + has_bytes:
        raise InputError(
            f"{library} {algorithm}: {len(design)} points that do not determine α and β; sweep at "
            "least 2 sizes, small and large, on 2 ranks or more."
        )
    (alpha, beta), (alpha_error, beta_error) = huber(design, np.ones(len(design)))
    return Hockney(
        float(alpha),
        float(beta),
        float(alpha_error),
        float(beta_error) if has_bytes else nan,
    )


# chosen, best: algorithms as `_label` names them; seconds are measured medians.
REGRET_ROW = np.dtype(
    [
        ("collective", "U16"),
        ("ranks", "i4"),
        ("bytes", "i8"),
        ("chosen", "U80"),
        ("best", "U80"),
        ("chosen_s", "f8"),
        ("best_s", "f8"),
        ("regret", "f8"),
    ]
)


def choose(
    collective: str,
    ranks: int,
    bytes: int,
    models: Models,
    *,
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    gamma: GammaFunction | None = None,
) -> Key:
    """The algorithm with the lowest cost by `models`.

    models   one Hockney (or LogGP) for all our algorithms of the collective, or a mapping to one
             for each: from names of our algorithms, or from pairs (library, algorithm) as
             `fit_per_algorithm` returns them. For a mapping, the best key is returned.

    On a tie, the first one wins. Raises InputError for an empty mapping, and for algorithms without
    a cost formula.
    """
    if not isinstance(models, Mapping):
        if collective not in FORMULAS:
            raise InputError(
                f"collective {collective!r} has no costs; use one of {', '.join(FORMULAS)}."
            )
        candidates: Mapping[Any, Model] = dict.fromkeys(FORMULAS[collective], models)
    else:
        candidates = models
    if not candidates:
        raise InputError(
            f"no models to choose the {collective} from; give a Hockney, or what "
            "fit_per_algorithm returns."
        )

    def seconds(key: Key) -> float:
        library, algorithm = key if isinstance(key, tuple) else ("ours", key)
        found = cost(
            collective,
            algorithm,
            ranks,
            bytes,
            candidates[key],
            segment=segment,
            fanout=fanout,
            radix=radix,
            gamma=gamma,
            library=library,
        )
        return float(found)

    return min(candidates, key=seconds)


def regret(
    table: Table,
    models: Models,
    *,
    collective: str | None = None,
    measure: str = "span_s",
    gamma: GammaFunction | None = None,
) -> Table:
    """The cost of following the models at every (ranks, bytes) of a sweep: a table of REGRET_ROW.

    At each point, the candidates are the algorithms that were measured there, with their tunables;
    the models choose the one with the lowest predicted cost; `best` is the one with the lowest
    median. regret = chosen_s / best_s - 1: 0 if they agree, 0.5 if the choice takes 50 % longer.

    models   a mapping of (library, algorithm) to Hockney; or one Hockney for all of ours. An
             algorithm without a model cannot be chosen, but can be best. Points at which no
             algorithm has a model are left out.

    Raises InputError if no point is left.
    """
    check_fields(table, (*FIELDS, measure))
    rows, collective = the_collective(table, collective)
    label = partial(_label, variants=variants_of(rows))
    points: dict[Any, dict[Any, float]] = {}
    for key, seconds in medians(rows, (*SHAPE, *VARIANT), measure).items():
        points.setdefault(key[:2], {})[key[2:]] = seconds

    judged = []
    for (ranks, size), measured in sorted(points.items()):
        predicted = {}
        for variant in measured:
            library, algorithm, segment, fanout, radix = variant
            model = _model_of(models, collective, library, algorithm)
            if model is not None:
                predicted[variant] = cost(
                    collective,
                    algorithm,
                    ranks,
                    size,
                    model,
                    segment=segment,
                    fanout=fanout,
                    radix=radix,
                    gamma=gamma,
                    library=library,
                )
        if not predicted:
            continue
        chosen, best = (
            min(predicted, key=predicted.__getitem__),
            min(measured, key=measured.__getitem__),
        )
        lost = measured[chosen] / measured[best] - 1
        judged.append(
            (
                collective,
                ranks,
                size,
                label(chosen),
                label(best),
                measured[chosen],
                measured[best],
                lost,
            )
        )
    if not judged:
        raise InputError(
            f"the models know no algorithm of the sweep of {collective}; fit them to it, "
            "or to a sweep with the same algorithms."
        )
    return np.array(judged, REGRET_ROW)


def regret_left_out(
    table: Table,
    *,
    leave: str = "bytes",
    folds: int | None = None,
    fit: Callable[..., Models] = fit_per_algorithm,
    collective: str | None = None,
    measure: str = "span_s",
    gamma: GammaFunction | None = None,
) -> Table:
    """`regret` at points to which the models were not fitted: cross-validation.

    leave    what is left out: "bytes" (message sizes) or "ranks".
    folds    number of parts among which the sizes (or numbers of ranks) are dealt out in turn;
             None: as many as there are sizes, so that one is left out at a time.
    fit      a function of (table, collective=, measure=, gamma=) that returns models.

    Each part is judged by models that are fitted to all other parts. Raises InputError for fewer
    than two parts, and if the rest cannot be fitted.
    """
    if leave not in ("bytes", "ranks"):
        raise InputError(f"leave={leave!r}; use 'bytes' or 'ranks'.")
    rows, collective = the_collective(table, collective)
    values = np.unique(rows[leave])
    folds = len(values) if folds is None else folds
    if not 2 <= folds <= len(values):
        raise InputError(
            f"folds={folds} for {len(values)} different {leave}; give 2 to {len(values)}, "
            "and sweep at least 2 of them."
        )
    parts = []
    for fold in range(folds):
        left_out = np.isin(rows[leave], values[fold::folds])
        models = fit(rows[~left_out], collective=collective, measure=measure, gamma=gamma)
        parts.append(
            regret(rows[left_out], models, collective=collective, measure=measure, gamma=gamma)
        )
    return np.sort(np.concatenate(parts), order=["ranks", "bytes"])


def _model_of(models: Models, collective: str, library: str, algorithm: str) -> Model | None:
    if isinstance(models, Mapping):
        return models.get((library, algorithm))
    return models if library == "ours" and algorithm in FORMULAS[collective] else None


def _label(variant: Variant, variants: Sequence[Variant]) -> str:
    """Label of a variant: 'ring', with its library and tunables if the table has others.

    For example 'ring (openmpi)' or 'pipeline (segment 8192)'.
    """
    library, algorithm, *tunables = variant
    words = []
    if len({one for one, *_ in variants}) > 1:
        words.append(library)
    alike = [rest for one, two, *rest in variants if (one, two) == (library, algorithm)]
    words += [
        f"{name} {value}"
        for place, (name, value) in enumerate(
            zip(("segment", "fanout", "radix"), tunables, strict=True)
        )
        if len({rest[place] for rest in alike}) > 1
    ]
    return f"{algorithm} ({', '.join(words)})" if words else algorithm
