"""The right answers to what lab 05 asks for in Python, found by counting; no formula is trusted."""

import numpy as np

from mpilab.errors import InputError
from mpilab.matrices.distribution import ELEMENT_BYTES, distribution
from mpilab.matrices.patterns import requests_of

METHODS = ("rank 0", "strided", "view", "sieving", "two-phase")


def file_requests(method, N, R, C, buffer, A):  # noqa: N803 (the names of the lab)
    """[requests of the rank that makes most, requests of all ranks, bytes that all ask for].

    method   one of METHODS, for N x N doubles in plain blocks on a grid of R x C ranks.
    buffer   bytes that one request is for at most, in methods that have a buffer: whole elements of
             8 bytes, but at least one.
    A        aggregators of "two-phase", whose domains are as equal as can be.

    Raises InputError for another method.
    """
    fits = max(1, buffer // ELEMENT_BYTES)
    spread = distribution(f"{N}x{N} on {R}x{C}", R * C)
    # For each rank that reads, the elements that each of its requests is for.
    asked = [list(requests) for requests in _asked(method, spread, fits, A)]
    each = [len(requests) for requests in asked]
    return [max(each, default=0), sum(each), ELEMENT_BYTES * sum(map(sum, asked))]


def _asked(method, spread, fits, aggregators):
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
        raise InputError(f"method {method!r}: unknown; write one of {', '.join(METHODS)}")


def _pieces(elements, fits):
    """Sizes of the pieces of so many elements, each as large as fits."""
    return [min(fits, elements - begin) for begin in range(0, elements, fits)]


def unnamed_readers():
    """The requests of the three readers whose names question 2 asks for: {letter: REQUEST}."""
    spread = distribution("12x12", 4)
    readers = {"X": ("two-phase", 384, 2), "Y": ("sieving", 384, 0), "Z": ("strided", 0, 0)}
    return {letter: requests_of(method, spread, buffer, aggregators)
            for letter, (method, buffer, aggregators) in readers.items()}  # fmt: skip
