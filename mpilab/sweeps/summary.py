"""Medians of a sweep, with confidence intervals that assume no distribution."""

from fractions import Fraction
from functools import cache
from math import comb

import numpy as np

from mpilab.errors import InputError

CONFIDENCE = 0.95
SUMMARY = np.dtype(
    [
        ("collective", "U16"), ("library", "U8"), ("algorithm", "U40"), ("number", "i4"),
        ("ranks", "i4"), ("bytes", "i8"), ("segment", "i8"), ("fanout", "i4"), ("radix", "i4"),
        ("repetitions", "i4"), ("median_s", "f8"), ("low_s", "f8"), ("high_s", "f8"),
    ]
)  # fmt: skip
_POINT = SUMMARY.names[:9]


@cache
def interval_ranks(number, confidence=CONFIDENCE):
    """(l, u), from 1: the l-th and the u-th smallest of `number` values bound their median.

    The number of values below the true median is binomially distributed, with p = 1/2, whatever the
    distribution of independent values is; so the interval holds it with probability
    1 - 2 P(B < l). The narrowest symmetric one with at least `confidence` is taken; None where
    there are too few values (5 or less for 95 %).

    Source: Conover, Practical Nonparametric Statistics, 3rd ed. (1999), section 3.2; recommended
    for timings by Hoefler, Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 2015.
    """
    below, lowest = 0, None
    error = Fraction(1) - Fraction(str(confidence))  # exact: 2^number is no float for long
    for l in range(1, number // 2 + 1):  # noqa: E741 (as in the formula)
        below += comb(number, l - 1)
        if 2 * below > error * 2**number:
            break
        lowest = l
    return None if lowest is None else (lowest, number + 1 - lowest)


def median_interval(values, confidence=CONFIDENCE):
    """(median, lower bound, upper bound) of values; bounds are nan where there are too few.

    The values have to be independent. Repetitions that follow each other closely are that only more
    or less: the interval is then too narrow.
    """
    values = np.sort(np.asarray(values, float))
    if not len(values):
        raise InputError("no values: a median needs at least one")
    places = interval_ranks(len(values), confidence)
    low, high = (np.nan, np.nan) if places is None else (values[place - 1] for place in places)
    return float(np.median(values)), float(low), float(high)


def summarise(table, measure="span_s"):
    """The median of each point of a sweep's table, with its 95 % confidence interval.

    table    structured array of mpilab.sweeps.ROW.
    measure  "span_s", or "mean_s", "max_s", "min_s".

    A structured array of SUMMARY, points in the order in which they first come in the table.
    """
    if measure not in ("span_s", "mean_s", "max_s", "min_s"):
        raise InputError(f"measure {measure!r}: write span_s, mean_s, max_s or min_s")
    points = {}
    for index, row in enumerate(table):
        points.setdefault(tuple(row[name].item() for name in _POINT), []).append(index)
    rows = [
        (*point, len(places), *median_interval(table[measure][places]))
        for point, places in points.items()
    ]
    return np.array(rows, SUMMARY)


def text(summary, measure="span_s"):
    """A summary as a table to be printed, in microseconds."""
    if not len(summary):
        return "no rows: nothing was measured"
    unit = f"{measure.removesuffix('_s')} µs"
    head = ["algorithm", "ranks", "bytes", f"median {unit}", "95 % from", "to", "n"]
    order = np.lexsort((np.arange(len(summary)), summary["bytes"], summary["ranks"]))
    lines = [head] + [_line(row) for row in summary[order]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            word.ljust(width) if i == 0 else word.rjust(width)
            for i, (word, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _line(row):
    number = f" ({row['number']})" if row["number"] > 0 else ""
    times = [row[name] * 1e6 for name in ("median_s", "low_s", "high_s")]
    return [
        f"{row['library']}:{row['algorithm']}{number}", str(row["ranks"]), str(row["bytes"]),
        *("–" if np.isnan(time) else f"{time:.2f}" for time in times), str(row["repetitions"]),
    ]  # fmt: skip
