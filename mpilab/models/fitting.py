"""α and β for each algorithm by itself, from runs of that algorithm."""

from math import nan

import numpy as np

from mpilab.errors import InputError
from mpilab.models.costs import FORMULAS, OPENMPI_FORMULAS, coefficients
from mpilab.models.hockney import Hockney
from mpilab.models.points import SHAPE, VARIANT, check_fields, medians, the_collective
from mpilab.models.robust import huber

FIELDS = ("collective", *VARIANT, *SHAPE)


def fit_per_algorithm(table, *, collective=None, measure="span_s", gamma=None):
    """{(library, algorithm): Hockney}: α and β that each algorithm of a sweep shows itself.

    table        rows of a sweep (mpilab.sweeps.table).
    collective   which one, where the table has several.
    measure      field of the table: "span_s", "mean_s", "max_s" or "min_s".
    gamma        γ for the coefficients: see mpilab.models.costs.

    The cost of an algorithm is a(P, m, segment) α + b(P, m, segment) β with known a and b; so α and
    β are a linear regression over all its points, of every P, size and tunable together. A point is
    the median of its repetitions; errors are taken relative to it, so that six decades of sizes
    count alike; and the regression is Huber's (mpilab.models.robust), so that a few wild points do
    not matter. Neither α nor β comes out below 0. What a reduction computes is in its β.

    Source: Nuriyev, Rico-Gallego, Lastovetsky, "Model-based selection of optimal MPI broadcast
    algorithms for multi-core clusters", JPDC 165, 2022, which has the idea: α and β mean something
    else in each algorithm, and belong to it. We differ from the paper:

    - it times the broadcast together with a linear gather after it, on the root's clock, to see the
      end of the broadcast without synchronized clocks, and fits the sum of both costs; we time the
      collective alone, from the first rank's entry to the last one's exit, on one clock;
    - all numbers of ranks that the table has are fitted together;
    - errors are relative to the measured time, not absolute;
    - the paper covers broadcasts, with Open MPI's trees; our formulas cover seven collectives, and
      follow our kernels where they differ.

    A point that takes many times what the model says is off by 100 % and no more: where times are
    of two kinds, the fit keeps to the quicker ones. So fit numbers of ranks that share cores, and
    those that don't, by themselves.

    Algorithms without a formula are left out (Open MPI's "default", a student's own). Raises
    InputError for a table without an algorithm that has one, and for an algorithm whose points
    leave α and β open: of one size, say.
    """
    check_fields(table, (*FIELDS, measure))
    rows, collective = the_collective(table, collective)
    points = {}
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


def has_formula(collective, library, algorithm):
    """Is there a cost formula for this algorithm of "ours" or "openmpi"?"""
    formulas = {"ours": FORMULAS, "openmpi": OPENMPI_FORMULAS}.get(library, {})
    return algorithm in formulas.get(collective, {})


def _fit(collective, library, algorithm, points, gamma):
    design, seconds = [], []
    for segment, fanout, radix, ranks, size, time in points:
        a, b = coefficients(collective, algorithm, ranks, size, segment=segment, fanout=fanout,
                            radix=radix, gamma=gamma, library=library)  # fmt: skip
        if not (np.isfinite(time) and time > 0):
            raise InputError(
                f"{library} {algorithm}, {ranks} ranks, {size} bytes: median time {time} s; "
                "every time must be a positive number of seconds."
            )
        if a > 0:  # one rank alone tells nothing
            design.append((a / time, b / time))
            seconds.append(time)
    design = np.array(design, float).reshape(-1, 2)
    has_bytes = bool(len(design)) and design[:, 1].any()
    # Columns are made comparable before their rank is asked for: β is about 1e-4 of α.
    scaled = design / np.maximum(design.max(axis=0, initial=0), 1e-300)
    if len(design) == 0 or np.linalg.matrix_rank(scaled, tol=1e-6) < 1 + has_bytes:
        raise InputError(
            f"{library} {algorithm}: {len(design)} points that leave α and β open; "
            "sweep at least 2 sizes, small and large, on 2 ranks or more."
        )
    (alpha, beta), (alpha_error, beta_error) = huber(design, np.ones(len(design)))
    return Hockney(
        float(alpha),
        float(beta),
        float(alpha_error),
        float(beta_error) if has_bytes else nan,
    )
