"""mpilab: a lab course in MPI collectives."""

__version__ = "0.1.0"
