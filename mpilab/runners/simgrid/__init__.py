"""Run kernels on simulated clusters, with SimGrid's SMPI: unchanged C sources, deterministic times,
up to thousands of ranks on a laptop.

`run` simulates cases on a platform (mpilab.hosts.platforms) and returns the Results of a real run,
in simulated time. mpilab.kernels.simgrid builds the programs.
"""

from mpilab.hosts.platforms import Platform, calibrated, platform
from mpilab.kernels.simgrid import kernels
from mpilab.runners.simgrid.run import simulate

__all__ = ["Platform", "calibrated", "kernels", "platform", "simulate"]
