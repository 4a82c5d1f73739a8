"""Kernels on simulated clusters, by SimGrid's SMPI: the C sources as they are, deterministic times,
up to thousands of ranks on a laptop.

platforms   the clusters, by a short name, a description or measured α and β; wiring writes them
            down for SimGrid.
build       the kit's kernels, or one of a C file, as a program of SMPI.
run         cases on a platform: the Results of a real run, in simulated time.
scaling     one kernel over sizes: times and counts, for `mpilab simulate`.
"""

from mpilab.simulated.build import kernels
from mpilab.simulated.platforms import Platform, calibrated, platform
from mpilab.simulated.run import simulate
from mpilab.simulated.single import run

__all__ = ["Platform", "calibrated", "kernels", "platform", "run", "simulate"]
