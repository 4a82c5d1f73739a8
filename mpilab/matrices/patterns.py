"""Which requests a way of reading makes, without reading: for pictures and models of matrices that
would take long to read, and of file systems that are not here."""

import numpy as np

from mpilab.errors import InputError
from mpilab.matrices.distribution import ELEMENT_BYTES, HEADER_BYTES
from mpilab.recording import REQUEST

METHODS = ("rank 0", "strided", "sieving", "two-phase")
STEP_NS = 1_000_000


def requests_of(method, spread, buffer=4 << 20, aggregators=0):
    """The requests of one of METHODS on the matrix `spread` (mpilab.matrices.distribution), as
    mpilab.recording.REQUEST by rank: each takes one step, of a millisecond.

    buffer        bytes that one request is for at most, in whole elements, but at least one; a
                  strided read has none.
    aggregators   of a two-phase read; 0, or more than there are ranks: all ranks. They are spread
                  evenly over the ranks, as in src_c/read/two_phase.c.

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


def _stretches(method, spread, aggregators):
    """(rank, begins, ends) of the elements that each rank reads: int64 arrays of stretches."""
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


def _runs(spread, rows, columns):
    """Begins and ends of the blocks' rows: a run of columns never joins the next block's."""
    at_begin = np.ones(len(columns), bool)
    at_begin[1:] = columns[1:] // spread.block_columns != columns[:-1] // spread.block_columns
    begins = np.flatnonzero(at_begin)
    ends = np.append(begins[1:], len(columns)) - 1
    lines = (rows * spread.columns)[:, None]
    return (lines + columns[begins]).reshape(-1), (lines + columns[ends] + 1).reshape(-1)


def _cut(begins, ends, fits):
    """Stretches in pieces of so many elements, the last of each of what is left."""
    pieces = [np.arange(begin, end, fits) for begin, end in zip(begins, ends, strict=True)]
    limits = [np.minimum(piece + fits, end) for piece, end in zip(pieces, ends, strict=True)]
    return np.concatenate(pieces), np.concatenate(limits)
