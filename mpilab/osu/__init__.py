"""The OSU micro-benchmarks: run them, or our own that measure and print as they do; read tables.

table = osu.run("osu_bcast", ranks=4, full=True, sizes="1:65536")
table.rows["size"], table.rows["avg_us"]
osu.parse(Path("bcast.log").read_text())
"""

from mpilab.osu.averaging import Averaged, both_ways
from mpilab.osu.benchmarks import BENCHMARKS
from mpilab.osu.runs import run
from mpilab.osu.table import OsuTable, parse

__all__ = ["BENCHMARKS", "Averaged", "OsuTable", "both_ways", "parse", "run"]
