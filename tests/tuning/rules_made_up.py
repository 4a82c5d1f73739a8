"""Sweeps of Open MPI's algorithms with made-up times, for the tests of this folder."""

from sweeps_made_up import models, sweep

from mpilab.kernels import openmpi

ALGORITHMS = ("basic_linear", "chain", "binomial", "scatter_allgather")


def made_up(collective="bcast", algorithms=ALGORITHMS, **how):
    """A sweep of Open MPI's algorithms, with their numbers."""
    table = sweep(collective, models(collective, algorithms, library="openmpi"), **how)
    numbers = {name: number for number, name in openmpi.algorithms()[collective].items()}
    for name in algorithms:
        table["number"][table["algorithm"] == name] = numbers[name]
    return table
