"""Which algorithm the models choose, and what that costs where they are wrong."""

from functools import partial

import numpy as np

from mpilab.errors import InputError
from mpilab.models.costs import FORMULAS, cost
from mpilab.models.fitting import FIELDS, fit_per_algorithm
from mpilab.models.points import (
    SHAPE,
    VARIANT,
    check_fields,
    medians,
    the_collective,
    variants_of,
)

# chosen, best: algorithms as `label` names them; seconds are measured medians.
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


def choose(collective, ranks, bytes, models, *, segment=0, fanout=0, radix=0, gamma=None):
    """The algorithm that costs least by `models`.

    models   a Hockney (or LogGP) for all our algorithms of the collective alike, or a mapping to
             one each: of names of our algorithms, or of pairs (library, algorithm) as
             `fit_per_algorithm` returns them. Of a mapping, the best key is returned.

    Equal costs go to the one that comes first. Raises InputError for an empty mapping, and for
    algorithms without a cost formula.
    """
    if hasattr(models, "alpha"):
        if collective not in FORMULAS:
            raise InputError(
                f"collective {collective!r} has no costs; take one of {', '.join(FORMULAS)}."
            )
        models = dict.fromkeys(FORMULAS[collective], models)
    if not models:
        raise InputError(
            f"no models to choose the {collective} from; give a Hockney, or what "
            "fit_per_algorithm returns."
        )

    def seconds(key):
        library, algorithm = key if isinstance(key, tuple) else ("ours", key)
        return cost(collective, algorithm, ranks, bytes, models[key], segment=segment,
                    fanout=fanout, radix=radix, gamma=gamma, library=library)  # fmt: skip

    return min(models, key=seconds)


def regret(table, models, *, collective=None, measure="span_s", gamma=None):
    """What following the models costs, at every (ranks, bytes) of a sweep: a table of REGRET_ROW.

    At each point the candidates are what the table has measured there, with their tunables; the
    models choose the one whose predicted cost is least; `best` is the one whose median is least.
    regret = chosen_s / best_s - 1: 0 where they agree, 0.5 where the choice takes half as long
    again.

    models   a mapping of (library, algorithm) to Hockney; or one Hockney for all of ours. What has
             no model can't be chosen, but can be best. A point where nothing has is left out.

    Raises InputError where that leaves no point at all.
    """
    check_fields(table, (*FIELDS, measure))
    rows, collective = the_collective(table, collective)
    label = partial(_label, variants=variants_of(rows))
    points = {}
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
                    collective, algorithm, ranks, size, model, segment=segment, fanout=fanout,
                    radix=radix, gamma=gamma, library=library,
                )  # fmt: skip
        if not predicted:
            continue
        chosen, best = min(predicted, key=predicted.get), min(measured, key=measured.get)
        lost = measured[chosen] / measured[best] - 1
        judged.append((collective, ranks, size, label(chosen), label(best), measured[chosen],
                       measured[best], lost))  # fmt: skip
    if not judged:
        raise InputError(
            f"the models know no algorithm of the sweep of {collective}; fit them to it, "
            "or to a sweep with the same algorithms."
        )
    return np.array(judged, REGRET_ROW)


def regret_left_out(table, *, leave="bytes", folds=None, fit=fit_per_algorithm, collective=None,
                    measure="span_s", gamma=None):  # fmt: skip
    """`regret` at points that the models have not seen: cross-validation.

    leave    what is left out: "bytes" (message sizes) or "ranks".
    folds    into how many parts the sizes (or numbers of ranks) are dealt out like cards; None:
             as many as there are, so that one is left out at a time.
    fit      a function of (table, collective=, measure=, gamma=) that returns models.

    Each part is judged by models that are fitted to all other parts. Raises InputError for fewer
    than two parts, and where the rest can't be fitted.
    """
    if leave not in ("bytes", "ranks"):
        raise InputError(f"leave={leave!r}; take 'bytes' or 'ranks'.")
    rows, collective = the_collective(table, collective)
    values = np.unique(rows[leave])
    folds = len(values) if folds is None else folds
    if not 2 <= folds <= len(values):
        raise InputError(
            f"folds={folds} for {len(values)} different {leave}; give 2 to {len(values)}, "
            "and sweep at least 2 of them."
        )
    settings = dict(collective=collective, measure=measure, gamma=gamma)
    parts = []
    for fold in range(folds):
        left_out = np.isin(rows[leave], values[fold::folds])
        models = fit(rows[~left_out], **settings)
        parts.append(regret(rows[left_out], models, **settings))
    return np.sort(np.concatenate(parts), order=["ranks", "bytes"])


def _model_of(models, collective, library, algorithm):
    if not hasattr(models, "alpha"):
        return models.get((library, algorithm))
    return models if library == "ours" and algorithm in FORMULAS[collective] else None


def _label(variant, variants):
    """'ring'; with its library and tunables where the table has others: 'ring (openmpi)',
    'pipeline (segment 8192)'."""
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
