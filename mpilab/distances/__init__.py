"""How far apart two ranks are, and what that costs.

topology.py  which pairs of CPUs of this machine are at which distance
measure.py   ping-pongs, overheads and gaps for a pair at each distance: a table
fits.py      Hockney, LogP or LogGP for each distance
"""

from mpilab.distances.fits import fit_distances
from mpilab.distances.measure import QUANTITIES, ROW, SIZES, measure
from mpilab.distances.topology import DISTANCES, Machine, read_machine

__all__ = [
    "DISTANCES",
    "QUANTITIES",
    "ROW",
    "SIZES",
    "Machine",
    "fit_distances",
    "measure",
    "read_machine",
]
