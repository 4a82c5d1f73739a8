"""The file requests of each way of reading, computed without reading.

They are used for figures and models of matrices that would take long to read, and of file systems
that are not available here.
"""

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.distribution import ELEMENT_BYTES, HEADER_BYTES, Distribution
from mpilab.errors import InputError
from mpilab.trace.recording import REQUEST
from mpilab.util.files import atomic_write, csv_text
from mpilab.util.kit import ROOT

METHODS = ("rank 0", "strided", "sieving", "two-phase")
STEP_NS = 1_000_000
# The requests of the readers that question 2 of lab 05 asks to name.
UNNAMED = ROOT / "data" / "unnamed-readers.csv"

Places = NDArray[np.int64]  # indices of elements of a matrix, row by row

# The names in formulas for the requests of read kernels (mpilab.algorithms.formula), computed only
# from the numpy arrays of mpilab.cases.distribution, not from what a kernel reports.


def names(about: Distribution, aggregators: int) -> dict[str, int | tuple[int, ...]]:
    """The values of the names in a formula for a matrix with this Distribution.

    aggregators   ranks that read in a two-phase read; 0, or more than there are, means all.

    owners counts the ranks with any elements; spans are the bytes from the first to the last of
    each rank's part, in rank order; shares are those of each aggregator's domain.
    """
    number = min(aggregators or about.ranks, about.ranks)
    return {
        **{name: getattr(about, name) for name in about.__dataclass_fields__},
        "N": about.bytes,
        "A": number,
        "owners": sum(about.elements_of(rank) > 0 for rank in range(about.ranks)),
        "part_rows": len(about.rows_of(0)),
        "part_columns": len(about.columns_of(0)),
        "spans": tuple(_span(about, rank) for rank in range(about.ranks)),
        "shares": _shares(about.rows * about.columns, number),
    }


def whole_elements(buffer: int) -> int:
    """F, for a buffer of `buffer` bytes: the whole elements that fit into it, at least one."""
    return max(1, buffer // ELEMENT_BYTES) * ELEMENT_BYTES


def _span(about: Distribution, rank: int) -> int:
    rows, columns = about.rows_of(rank), about.columns_of(rank)
    if not len(rows) or not len(columns):
        return 0
    first = int(rows[0]) * about.columns + int(columns[0])
    last = int(rows[-1]) * about.columns + int(columns[-1])
    return (last - first + 1) * ELEMENT_BYTES


def _shares(elements: int, aggregators: int) -> tuple[int, ...]:
    """Bytes of each domain when `elements` elements are divided as evenly as possible."""
    least, left = divmod(elements, aggregators)
    return tuple((least + (number < left)) * ELEMENT_BYTES for number in range(aggregators))


def requests_of(
    method: str, spread: Distribution, buffer: int = 4 << 20, aggregators: int = 0
) -> NDArray[Any]:
    """The requests of one of METHODS on the matrix `spread` (mpilab.cases.distribution).

    They are mpilab.trace.recording.REQUEST records, by rank; each takes one step of a millisecond.

    buffer        maximum bytes of one request, in whole elements, but at least one; a strided read
                  has no buffer.
    aggregators   of a two-phase read; 0, or more than there are ranks, means all ranks. They are
                  spread evenly over the ranks, as in src_c/read/two_phase.c.

    Raises InputError for another method.
    """
    if method not in METHODS:
        raise InputError(f"method {method!r}: unknown; write one of {', '.join(METHODS)}")
    fits = max(1, buffer // ELEMENT_BYTES)
    found = []
    for rank, begins, ends in _stretches(method, spread, aggregators):
        if method != "strided":
            begins, ends = _cut(begins, ends, fits)
        requests = np.zeros(len(begins), REQUEST)
        requests["rank"] = rank
        requests["offset"] = HEADER_BYTES + begins * ELEMENT_BYTES
        requests["bytes"] = requests["got_bytes"] = (ends - begins) * ELEMENT_BYTES
        requests["begin_ns"] = STEP_NS * np.arange(len(begins))
        requests["end_ns"] = requests["begin_ns"] + STEP_NS
        found.append(requests)
    return np.concatenate(found) if found else np.zeros(0, REQUEST)


def _stretches(
    method: str, spread: Distribution, aggregators: int
) -> Iterator[tuple[int, Places, Places]]:
    """(rank, begins, ends) of the stretches of elements that each rank reads: int64 arrays."""
    total = spread.rows * spread.columns
    if method == "rank 0":
        yield 0, np.array([0]), np.array([total])
    elif method == "two-phase":
        domains = aggregators if 0 < aggregators < spread.ranks else spread.ranks
        share, left = divmod(total, domains)
        edges = [share * domain + min(domain, left) for domain in range(domains + 1)]
        for domain in range(domains):
            rank = domain * spread.ranks // domains
            yield rank, np.array([edges[domain]]), np.array([edges[domain + 1]])
    else:
        for rank in range(spread.ranks):
            rows, columns = spread.rows_of(rank), spread.columns_of(rank)
            if not len(rows) or not len(columns):
                continue
            if method == "sieving":
                first = rows[0] * spread.columns + columns[0]
                last = rows[-1] * spread.columns + columns[-1]
                yield rank, np.array([first]), np.array([last + 1])
            else:
                yield rank, *_runs(spread, rows, columns)


def _runs(spread: Distribution, rows: Places, columns: Places) -> tuple[Places, Places]:
    """Begins and ends of the rows of each block; a run never extends into the next block."""
    at_begin = np.ones(len(columns), bool)
    at_begin[1:] = columns[1:] // spread.block_columns != columns[:-1] // spread.block_columns
    begins = np.flatnonzero(at_begin)
    ends = np.append(begins[1:], len(columns)) - 1
    lines = (rows * spread.columns)[:, None]
    return (lines + columns[begins]).reshape(-1), (lines + columns[ends] + 1).reshape(-1)


def _cut(begins: Places, ends: Places, fits: int) -> tuple[Places, Places]:
    """Stretches cut into pieces of `fits` elements; the last piece of each may be shorter."""
    pieces = [np.arange(begin, end, fits) for begin, end in zip(begins, ends, strict=True)]
    limits = [np.minimum(piece + fits, end) for piece, end in zip(pieces, ends, strict=True)]
    return np.concatenate(pieces), np.concatenate(limits)


def unnamed_readers(file: Path = UNNAMED) -> dict[str, NDArray[Any]]:
    """The requests in a file such as data/unnamed-readers.csv: {letter: REQUEST}, in its order."""
    found: dict[str, list[tuple[int, ...]]] = {}
    with open(file, encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            numbers = tuple(int(row[name]) for name in ("rank", "step", "offset", "bytes"))
            found.setdefault(row["reader"], []).append(numbers)
    readers = {}
    for letter, numbers_of in found.items():
        requests = readers[letter] = np.zeros(len(numbers_of), REQUEST)
        requests["rank"], step, requests["offset"], requests["bytes"] = np.array(numbers_of).T
        requests["got_bytes"] = requests["bytes"]
        requests["begin_ns"] = STEP_NS * step
        requests["end_ns"] = requests["begin_ns"] + STEP_NS
    return readers


def write_readers(file: Path, readers: Mapping[str, NDArray[Any]]) -> Path:
    """Write {letter: REQUEST} to the file that `unnamed_readers` reads; its Path."""
    rows = [
        (letter, each["rank"], each["begin_ns"] // STEP_NS, each["offset"], each["bytes"])
        for letter, requests in readers.items()
        for each in requests
    ]
    return atomic_write(file, csv_text([("reader", "rank", "step", "offset", "bytes"), *rows]))
