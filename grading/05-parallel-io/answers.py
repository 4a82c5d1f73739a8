"""Right values for the Python exercise of lab 05, and the readers that its question 2 asks to name.

Handouts leave this file out.

    python grading/05-parallel-io/answers.py      # write data/unnamed-readers.csv
"""

from typing import Any

from numpy.typing import NDArray

from mpilab.algorithms.formula import ceil_div
from mpilab.algorithms.requests import UNNAMED, requests_of, write_readers
from mpilab.cases.distribution import ELEMENT_BYTES, distribution
from mpilab.errors import InputError

ANSWERED_METHODS = ("rank 0", "strided", "view", "sieving", "two-phase")


def file_requests(method: str, N: int, R: int, C: int, buffer: int, A: int) -> list[int]:
    """[requests of the busiest rank, requests of all ranks, bytes requested by all].

    method   one of ANSWERED_METHODS, for N x N doubles in plain blocks on a grid of R x C ranks.
    buffer   most bytes of one request, in methods with a buffer: whole elements of 8 bytes, but at
             least one.
    A        aggregators of "two-phase", whose domains are as equal as possible.

    A test compares it with requests that are counted element by element, which takes too long for a
    large matrix. Raises InputError for another method.
    """
    fits = max(1, buffer // ELEMENT_BYTES)
    parts = [(h, w) for h in _parts(N, R) for w in _parts(N, C) if h * w > 0]
    # The elements that each rank that reads asks for, and its requests if not a buffer at a time.
    counts = None
    if method == "rank 0":
        elements = [N * N]
    elif method == "two-phase":
        least, more = divmod(N * N, A)
        elements = [least + 1] * more + [least] * (A - more)
    elif method == "sieving":
        elements = [(h - 1) * N + w for h, w in parts]
    elif method == "strided":
        elements, counts = [h * w for h, w in parts], [h for h, _ in parts]
    elif method == "view":
        elements, counts = [h * w for h, w in parts], [1 for _ in parts]
    else:
        raise InputError(f"method {method!r}: unknown; write one of {', '.join(ANSWERED_METHODS)}")
    each = [ceil_div(number, fits) for number in elements] if counts is None else counts
    return [max(each, default=0), sum(each), ELEMENT_BYTES * sum(elements)]


def _parts(elements: int, parts: int) -> list[int]:
    """Lengths of `parts` plain blocks: all have the same length, but the last ones with elements,
    of which one may be shorter and others empty."""
    length = ceil_div(elements, parts)
    return [max(0, min(length, elements - length * index)) for index in range(parts)]


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
