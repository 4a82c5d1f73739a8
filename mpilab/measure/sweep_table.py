"""Read, write and summarize the table of a sweep: a tidy CSV file with one row per repetition.

Its options are in a file beside it. A point (one algorithm, number of ranks and size) is written
all at once when it is finished. A killed sweep leaves at most one incomplete point at the end,
which `Store` removes and the next run repeats.
"""

import csv
import json
import os
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError
from mpilab.util.files import atomic_write, csv_text
from mpilab.util.text import aligned

# Library, algorithm, ranks and bytes: what distinguishes the points of a sweep.
Key = tuple[str, str, int, int]
CONFIDENCE = 0.95
_POINT = [
    ("collective", "U16"),
    ("library", "U8"),
    ("algorithm", "U40"),
    ("number", "i4"),
    ("ranks", "i4"),
    ("bytes", "i8"),
    ("segment", "i8"),
    ("fanout", "i4"),
    ("radix", "i4"),
    ("cores", "i4"),
    ("machine", "U80"),
]
SUMMARY = np.dtype(
    [*_POINT, ("repetitions", "i4"), ("median_s", "f8"), ("low_s", "f8"), ("high_s", "f8")]
)
# machine: the processor, or the simulated cluster, which has no cores to share (cores = 0).
# In seconds. span_s: last exit - first entry of a call. mean_s, max_s, min_s: over the ranks, of
# each rank's own duration (OMB averages mean_s over the repetitions).
_COLUMNS = [
    *_POINT,
    ("repetition", "i4"),
    ("span_s", "f8"),
    ("mean_s", "f8"),
    ("max_s", "f8"),
    ("min_s", "f8"),
]
ROW = np.dtype(_COLUMNS)
NAMES = tuple(name for name, _ in _COLUMNS)
HEADER = ",".join(NAMES) + "\n"

# More ranks than cores take turns, so their times are mostly those of waiting for a turn.
OVERSUBSCRIBED = "oversubscribed"


def is_oversubscribed(ranks: int, cores: int) -> bool:
    """Whether ranks had to share cores; False if the number of cores is unknown (0)."""
    return 0 < cores < ranks


# Medians of a sweep, with distribution-free confidence intervals.


@cache
def interval_ranks(number: int, confidence: float = CONFIDENCE) -> tuple[int, int] | None:
    """(l, u), from 1: the l-th and the u-th smallest of `number` values bound their median.

    The number of values below the true median is binomially distributed with p = 1/2, whatever the
    distribution of the independent values, so the interval contains the median with probability
    1 - 2 P(B < l). Returns the narrowest symmetric interval with at least `confidence`; None if
    there are too few values (5 or fewer for 95 %).

    Source: Conover, Practical Nonparametric Statistics, 3rd ed. (1999), section 3.2; recommended
    for timings by Hoefler, Belli, "Scientific Benchmarking of Parallel Computing Systems", SC 2015.
    """
    below, lowest = 0, None
    error = Fraction(1) - Fraction(str(confidence))  # exact: 2^number soon exceeds a float
    for l in range(1, number // 2 + 1):  # noqa: E741 (as in the formula)
        below += comb(number, l - 1)
        if 2 * below > error * 2**number:
            break
        lowest = l
    return None if lowest is None else (lowest, number + 1 - lowest)


def median_interval(
    values: ArrayLike, confidence: float = CONFIDENCE
) -> tuple[float, float, float]:
    """(median, lower bound, upper bound) of values; bounds are nan if there are too few.

    The values must be independent. Repetitions in quick succession are only roughly so: the
    interval is then too narrow.
    """
    values = np.sort(np.asarray(values, float))
    if not len(values):
        raise InputError("no values: a median needs at least one")
    places = interval_ranks(len(values), confidence)
    low, high = (np.nan, np.nan) if places is None else (values[place - 1] for place in places)
    return float(np.median(values)), float(low), float(high)


def summarize(table: NDArray[Any], measure: str = "span_s") -> NDArray[Any]:
    """The median of each point of a sweep's table, with its 95 % confidence interval.

    table    structured array of mpilab.measure.sweep_table.ROW.
    measure  "span_s", or "mean_s", "max_s", "min_s".

    Returns a structured array of SUMMARY, points in order of first appearance in the table.
    """
    if measure not in ("span_s", "mean_s", "max_s", "min_s"):
        raise InputError(f"measure {measure!r}: write span_s, mean_s, max_s or min_s")
    points: dict[tuple, list[int]] = {}
    for index, row in enumerate(table):
        points.setdefault(tuple(row[name].item() for name, _ in _POINT), []).append(index)
    rows = [
        (*point, len(places), *median_interval(table[measure][places]))
        for point, places in points.items()
    ]
    return np.array(rows, SUMMARY)


def text(summary: NDArray[Any], measure: str = "span_s") -> str:
    """A summary as a text table, in microseconds."""
    if not len(summary):
        return "no rows: nothing was measured"
    unit = f"{measure.removesuffix('_s')} µs"
    head = ["algorithm", "ranks", "bytes", f"median {unit}", "95 % from", "to", "n"]
    order = np.lexsort((np.arange(len(summary)), summary["bytes"], summary["ranks"]))
    return aligned([head, *map(_line, summary[order])])


def _line(row: np.void) -> list[str]:
    number = f" ({row['number']})" if row["number"] > 0 else ""
    times = [row[name] * 1e6 for name in ("median_s", "low_s", "high_s")]
    shared = f" {OVERSUBSCRIBED}" if is_oversubscribed(row["ranks"], row["cores"]) else ""
    return [
        f"{row['library']}:{row['algorithm']}{number}",
        f"{row['ranks']}{shared}",
        str(row["bytes"]),
        *("–" if np.isnan(time) else f"{time:.2f}" for time in times),
        str(row["repetitions"]),
    ]


def key_of(row: np.void) -> Key:
    """The key of a row's point, as in `mpilab.measure.sweep.Point.key`."""
    return (str(row["library"]), str(row["algorithm"]), int(row["ranks"]), int(row["bytes"]))


def text_of(rows: NDArray[Any]) -> str:
    """Rows as lines of CSV."""
    return csv_text(rows.tolist())  # numbers in full precision


def read(path: str | Path) -> NDArray[Any]:
    """A CSV file of a sweep as a structured array of ROW.

    Raises InputError, with the line, if it is not such a file; an incomplete last line is ignored.
    """
    return _parse(path, _text(path))[0]


def _text(path: str | Path) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; create one with mpilab sweep -o {path}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not text; name a CSV file of mpilab sweep") from None


def _parse(path: str | Path, text: str) -> tuple[NDArray[Any], list[str]]:
    """(rows, their lines); see `read`."""
    lines = text.splitlines(keepends=True)
    if not HEADER.startswith(text) and lines[0] != HEADER:
        raise InputError(f"{path}:1: not a table of mpilab sweep; its first line is {HEADER}")
    whole = [line for line in lines[1:] if line.endswith("\n")]
    rows = [_row(path, number, line) for number, line in enumerate(whole, start=2)]
    return np.array(rows, ROW), whole


def _row(path: str | Path, number: int, line: str) -> tuple:
    values = next(csv.reader([line]), [])
    try:
        return tuple(
            value if ROW[name].kind == "U" else ROW[name].type(value)
            for name, value in zip(NAMES, values, strict=True)
        )
    except (ValueError, OverflowError):
        raise InputError(
            f"{path}:{number}: {line.strip()!r} is not a row of a sweep; delete the line, and run "
            "the sweep again: it measures what is missing"
        ) from None


class Store:
    """A CSV file that a sweep fills, point by point.

    path     the file; if it exists, only missing points have to run.
    options  dict of what must be the same for all rows of one file, kept in PATH.json.
    repetitions   a function of (ranks, bytes): a point with another number of rows runs again.

    Raises InputError for a file made with other options, or by something else.
    """

    def __init__(
        self, path: str | Path, options: dict[str, Any], repetitions: Callable[[int, int], int]
    ) -> None:
        self.path, self.options = Path(path), options
        self.beside = self.path.with_name(self.path.name + ".json")
        self.rows = np.empty(0, ROW)
        if self.path.exists() and self.path.stat().st_size:
            self._compare()
            self._take(repetitions)
        else:
            atomic_write(self.beside, json.dumps(options, indent=1, ensure_ascii=False) + "\n")
            atomic_write(self.path, HEADER)

    def _compare(self) -> None:
        remedy = f"write to another file with -o, or delete {self.path}"
        try:
            before = json.loads(self.beside.read_text(encoding="utf-8"))
        except (FileNotFoundError, ValueError):
            raise InputError(
                f"{self.path}: its origin is unknown: {self.beside.name} is missing or "
                f"damaged; {remedy}"
            ) from None
        for name in {**before, **self.options}:
            was, is_now = before.get(name), self.options.get(name)
            if was != is_now:
                raise InputError(
                    f"{self.path}: was made with {name} {_shown(was)}, not {_shown(is_now)}; one "
                    f"table must not contain both: {remedy}"
                )

    def _take(self, repetitions: Callable[[int, int], int]) -> None:
        """Keep the complete points; remove incomplete ones from the file."""
        text = _text(self.path)
        rows, lines = _parse(self.path, text)
        keys = [key_of(row) for row in rows]
        counted = Counter(keys)
        whole = [i for i, key in enumerate(keys) if counted[key] == repetitions(*key[2:])]
        kept = HEADER + "".join(lines[i] for i in whole)
        if kept != text:
            atomic_write(self.path, kept)
        self.rows = rows[whole]

    @property
    def done(self) -> set[Key]:
        """The keys of all points in the file."""
        return {key_of(row) for row in self.rows}

    def add(self, rows: NDArray[Any]) -> None:
        """Write the rows of one finished point."""
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(text_of(rows))
            file.flush()
            os.fsync(file.fileno())
        self.rows = np.concatenate([self.rows, rows])


def _shown(value: object) -> str:
    return "its default" if value is None else repr(value) if isinstance(value, str) else str(value)
