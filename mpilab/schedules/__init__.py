"""Schedules: what a collective algorithm sends, in which round, before anything runs.

`schedule.py` says what a schedule is and counts it; one module for each collective holds its
algorithms (`allgather.py`, `bcast.py` …), which say them in steps (`steps.py`) on trees
(`trees.py`) and blocks (`blocks.py`, `cutting.py`); `catalogue.py` has them all.
"""

from mpilab.schedules.catalogue import (
    COLLECTIVES,
    ROOTED,
    Costs,
    algorithms,
    costs_of,
    schedule_in_segments,
    schedule_of,
    tunables,
)
from mpilab.schedules.schedule import (
    Counts,
    Schedule,
    Transfer,
    counts,
    holdings,
    message_bytes,
    parts,
)

__all__ = [
    "COLLECTIVES", "ROOTED", "Costs", "Counts", "Schedule", "Transfer", "algorithms", "costs_of",
    "counts", "holdings", "message_bytes", "parts", "schedule_in_segments",
    "schedule_of", "tunables",
]  # fmt: skip
