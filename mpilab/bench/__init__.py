"""Measure the performance figures of docs/performance.md, for `make bench`.

A figure is a duration, or the ratio of two alternately measured quantities in the same run; no test
asserts one. figures.py measures them, report.py runs and reports them.
"""

from mpilab.bench import figures
from mpilab.bench.report import FIGURES, figure, run_figures, table, write_docs

__all__ = ["FIGURES", "figure", "figures", "run_figures", "table", "write_docs"]
