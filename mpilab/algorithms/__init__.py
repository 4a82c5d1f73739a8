"""Algorithms: what each one sends, in which round, and what that costs, before anything runs.

One module for each collective (`allgather.py`, `bcast.py` …) holds all that Python knows of its
algorithms: schedule, cost, tunables, color and marker. They are made of the trees and blocks of
`trees.py`; `algorithm.py` says what they consist of, and `catalog.py` finds them by name.
`schedule.py` defines schedules and counts their messages, `formula.py` evaluates the cost formulas
in the headers of the kernels, and `requests.py` computes the file requests of a read.
"""

from mpilab.algorithms.catalog import (
    ALGORITHMS,
    BLOCKWISE,
    COLLECTIVES,
    OPENMPI_COSTS,
    ROOTED,
    Costs,
    algorithm_of,
    algorithms,
    costs_of,
    looks,
    ours_of,
    schedule_in_segments,
    schedule_of,
    tunables,
)
from mpilab.algorithms.schedule import (
    Counts,
    Schedule,
    Transfer,
    counts,
    holdings,
    message_bytes,
    parts,
)

__all__ = [
    "ALGORITHMS",
    "BLOCKWISE",
    "COLLECTIVES",
    "OPENMPI_COSTS",
    "ROOTED",
    "Costs",
    "Counts",
    "Schedule",
    "Transfer",
    "algorithm_of",
    "algorithms",
    "costs_of",
    "counts",
    "holdings",
    "looks",
    "message_bytes",
    "ours_of",
    "parts",
    "schedule_in_segments",
    "schedule_of",
    "tunables",
]
