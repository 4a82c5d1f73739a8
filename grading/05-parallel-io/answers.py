"""Right values for the Python exercise of lab 05, found by counting, and the readers that its
question 2 asks to name. Handouts leave this file out.

    python grading/05-parallel-io/answers.py      # write data/unnamed-readers.csv
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms.requests import UNNAMED, requests_of, write_readers
from mpilab.cases.distribution import ELEMENT_BYTES, Distribution, distribution
from mpilab.errors import InputError

ANSWERED_METHODS = ("rank 0", "strided", "view", "sieving", "two-phase")


def file_requests(method: str, N: int, R: int, C: int, buffer: int, A: int) -> list[int]:
    """[requests of the busiest rank, requests of all ranks, bytes requested by all].

    method   one of ANSWERED_METHODS, for N x N doubles in plain blocks on a grid of R x C ranks.
    buffer   most bytes of one request, in methods with a buffer: whole elements of 8 bytes, but at
             least one.
    A        aggregators of "two-phase", whose domains are as equal as possible.

    Raises InputError for another method.
    """
    fits = max(1, buffer // ELEMENT_BYTES)
    spread = distribution(f"{N}x{N} on {R}x{C}", R * C)
    # For each rank that reads, the elements of each of its requests.
    asked = [list(requests) for requests in _asked(method, spread, fits, A)]
    each = [len(requests) for requests in asked]
    return [max(each, default=0), sum(each), ELEMENT_BYTES * sum(map(sum, asked))]


def _asked(method: str, spread: Distribution, fits: int, aggregators: int) -> Iterator[list[int]]:
    total = spread.rows * spread.columns
    parts = [spread.indices_of(rank) for rank in range(spread.ranks)]
    if method == "rank 0":
        yield _pieces(total, fits)
    elif method == "two-phase":
        for domain in np.array_split(np.arange(total), aggregators):
            yield _pieces(len(domain), fits)
    elif method == "sieving":
        for part in parts:
            yield _pieces(int(part[-1] - part[0]) + 1 if len(part) else 0, fits)
    elif method == "strided":
        for part in parts:
            rows, elements = np.unique(part // max(1, spread.columns), return_counts=True)
            yield elements.tolist() if len(rows) else []
    elif method == "view":
        for part in parts:
            yield [len(part)] if len(part) else []
    else:
        raise InputError(f"method {method!r}: unknown; write one of {', '.join(ANSWERED_METHODS)}")


def _pieces(elements: int, fits: int) -> list[int]:
    """Sizes of the pieces of `elements` elements, at most `fits` each."""
    return [min(fits, elements - begin) for begin in range(0, elements, fits)]


def unnamed_readers() -> dict[str, NDArray[Any]]:
    """The requests of the three readers that question 2 asks to identify: {letter: REQUEST}."""
    spread = distribution("12x12", 4)
    readers = {"X": ("two-phase", 384, 2), "Y": ("sieving", 384, 0), "Z": ("strided", 0, 0)}
    return {
        letter: requests_of(method, spread, buffer, aggregators)
        for letter, (method, buffer, aggregators) in readers.items()
    }


if __name__ == "__main__":
    write_readers(UNNAMED, unnamed_readers())
