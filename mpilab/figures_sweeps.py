"""The figures that hold our kernels against Open MPI's own algorithms, and models against both."""

from functools import cache

import numpy as np

from mpilab import sweeps
from mpilab.bench import figure
from mpilab.errors import InputError

RANKS = (2, 4)
SIZES = "4,64,1K,8K,64K,512K"
SEGMENT = 8192
SWEEPS = 5
COLLECTIVES = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather", "barrier")
# Open MPI's names of algorithms that we call by another one.
OURS = {
    "basic_linear": "linear", "split_binary_tree": "split_binary", "binary_tree": "binary",
    "in-order_binary": "in_order_binary", "neighbor": "neighbor_exchange",
    "bruck": {"barrier": "dissemination", "allgather": "bruck"},
}  # fmt: skip


def same_algorithm(collective, name):
    """Our name of Open MPI's algorithm `name`, whether or not we have it."""
    ours = OURS.get(name, name)
    return ours.get(collective, name) if isinstance(ours, dict) else ours


@cache
def _medians(collective, number):
    """{(library, algorithm, ranks, bytes): median seconds} of one sweep; `number` counts them."""
    report = sweeps.Report()
    table = sweeps.sweep(collective, ranks=RANKS, sizes=SIZES, segment=SEGMENT, report=report,
                         progress=False)  # fmt: skip
    if not len(table):
        raise InputError(f"{collective}: nothing was measured: {'; '.join(report.warnings())}")
    return {
        tuple(row[name].item() for name in ("library", "algorithm", "ranks", "bytes")): float(
            row["median_s"]
        )
        for row in sweeps.summarise(table)
    }


def same_algorithm_ratios(collective):
    """Ours over Open MPI's same algorithm, for each that both have, each size and each P."""
    medians = _medians(collective, 0)
    return [
        medians[ours] / seconds
        for (library, name, ranks, size), seconds in medians.items()
        if library == "openmpi"
        and (ours := ("ours", same_algorithm(collective, name), ranks, size)) in medians
    ]


def best_ratios(collective):
    """The best of ours over the best of Open MPI's, one value for each of SWEEPS sweeps, at the
    size and P where the median of these is largest.

    The worst of single ratios would be the worst of the noise: between ranks that share cores a
    point can take twice the time in one sweep of several.
    """
    sweeps_of_points = [_best_of(_medians(collective, number)) for number in range(SWEEPS)]
    points = set.intersection(*(set(ratios) for ratios in sweeps_of_points))
    by_point = [[ratios[point] for ratios in sweeps_of_points] for point in points]
    return max(by_point, key=np.median)


def _best_of(medians):
    """{(ranks, bytes): best of ours / best of theirs} of one sweep."""
    best = {}
    for (library, _, *point), seconds in medians.items():
        at = best.setdefault(tuple(point), {})
        at[library] = min(seconds, at.get(library, seconds))
    return {point: at["ours"] / at["openmpi"] for point, at in best.items() if len(at) == 2}


def _register(collective):
    def same(name=collective):
        return same_algorithm_ratios(name)

    def best(name=collective):
        return best_ratios(name)

    same.__name__ = f"{collective}_same_algorithm_ratio"
    best.__name__ = f"{collective}_best_ratio"
    figure("", "≤ 1.1", "the same algorithm of Open MPI, in turn, in one run")(same)
    figure("", "≤ 1.0", "the best of Open MPI's, at the worst size, in turn, in one run")(best)


for _collective in COLLECTIVES:
    _register(_collective)


@figure("", "", "the fastest that was measured; sizes that the model was not fitted to")
def bcast_regret():
    """How much longer the bcast takes that the fitted models choose, for each P and size."""
    from mpilab.models import regret_left_out

    table = sweeps.sweep("bcast", ranks=RANKS, sizes="1:512K", segment=SEGMENT, progress=False,
                         algorithms="ours")  # fmt: skip
    found = [regret_left_out(table[table["ranks"] == ranks])["regret"] for ranks in RANKS]
    return np.concatenate(found)
