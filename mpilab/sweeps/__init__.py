"""Sweeps: time our kernels and Open MPI's own algorithms over ranks and message sizes.

`sweep(...)` runs one (run.py) and returns its table (table.py); `summary.py` makes medians with
confidence intervals of a table. No row of Open MPI's gets a name that its messages do not bear out
(guard.py).
"""

from mpilab.sweeps.report import Report
from mpilab.sweeps.run import sweep
from mpilab.sweeps.summary import summarise
from mpilab.sweeps.table import ROW, read

__all__ = ["ROW", "Report", "read", "summarise", "sweep"]
