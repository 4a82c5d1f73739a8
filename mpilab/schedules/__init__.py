"""Schedules: what a collective algorithm sends, in which round, before anything runs.

`schedule.py` says what a schedule is and counts it; one module for each collective holds its
algorithms (`allgather.py`).
"""

from mpilab.schedules.schedule import Counts, Schedule, Transfer, counts, holdings

__all__ = ["Counts", "Schedule", "Transfer", "counts", "holdings"]
