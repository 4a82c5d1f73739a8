"""Schedules: what each algorithm sends, in which round, before anything runs.

`schedule.py` defines schedules and counts their messages. One module per collective
(`allgather.py`, `bcast.py` …) describes its algorithms in steps, on the trees and blocks of
`trees.py`; `catalogue.py` lists them all. `formula.py` evaluates the cost formulas in the headers
of the kernels, and `requests.py` computes the file requests of a read.
"""

from mpilab.algorithms.catalogue import (
    COLLECTIVES,
    ROOTED,
    Costs,
    algorithms,
    costs_of,
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
    "COLLECTIVES",
    "ROOTED",
    "Costs",
    "Counts",
    "Schedule",
    "Transfer",
    "algorithms",
    "costs_of",
    "counts",
    "holdings",
    "message_bytes",
    "parts",
    "schedule_in_segments",
    "schedule_of",
    "tunables",
]
