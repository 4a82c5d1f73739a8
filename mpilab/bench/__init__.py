"""Measure the performance figures of docs/performance.md, for `make bench`.

In: names of figures. Out: their values with spread, in a JSON file and as the table on that page.

A figure is a duration, or the ratio of two alternately measured quantities in the same run; no test
asserts one. `run_figures` measures and stores them; `table` and `write_docs` show them.
"""

from mpilab.bench import figures
from mpilab.bench.figures import FIGURES, figure, run_figures, table, write_docs

__all__ = ["FIGURES", "figure", "figures", "run_figures", "table", "write_docs"]
