"""γ(P): what it costs to serve several receivers at once, in units of serving one.

A rank that starts P-1 sends of a segment and waits for all of them takes γ(P) times as long as with
one receiver: somewhere between 1, if they don't disturb each other at all, and P-1, if they go
one by one. γ(P) is measured as the ratio of linear, non-blocking broadcasts of one segment on P
and on 2 ranks, and is taken not to depend on the segment.

Source: Nuriyev, Rico-Gallego, Lastovetsky, "Model-based selection of optimal MPI broadcast
algorithms for multi-core clusters", Journal of Parallel and Distributed Computing 165, 2022.
Pjesivac-Grbovic et al., "Performance analysis of MPI collective operations", Cluster Computing
10(2), 2007, has the same broadcasts without γ: there, receivers are served one by one.
"""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError
from mpilab.models.points import check_fields, medians


@dataclass(frozen=True)
class Gamma:
    """γ as a function of the number of ranks; a call gives γ(P).

    measured   pairs (P, γ(P)).
    slope      γ(P) ≈ 1 + slope (P - 2) for other P: the paper finds γ to be nearly a straight line.
    """

    measured: tuple[tuple[int, float], ...]
    slope: float

    def __call__(self, ranks):
        """γ(P) for `ranks` ranks, of which all but one receive; 0 where there is no receiver."""
        if ranks < 2:
            return 0.0
        return dict(self.measured).get(int(ranks), max(1.0, 1 + self.slope * (ranks - 2)))


def one_by_one(ranks):
    """γ(P) = P - 1: receivers are served one after the other, the model's single port."""
    return float(max(ranks - 1, 0))


def fit_gamma(table, segment_bytes=None, measure="span_s"):
    """The Gamma that a sweep table shows: medians of linear broadcasts on P and on 2 ranks.

    table           rows of a sweep; those of algorithm "linear" or "basic_linear" are taken.
    segment_bytes   which message size; None: all that were measured with 2 ranks and more, of
                    whose ratios the median is taken.
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
    ratios = {}
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
