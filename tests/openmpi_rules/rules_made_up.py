"""Sweeps of Open MPI's algorithms with made-up times, for the tests of this folder."""

from sweeps_made_up import models, sweep

from mpilab.tuning.rules import algorithm_number

ALGORITHMS = ("basic_linear", "chain", "binomial", "scatter_allgather")


def made_up(collective="bcast", algorithms=ALGORITHMS, **how):
    """A sweep of Open MPI's algorithms, with their numbers."""
    table = sweep(collective, models(collective, algorithms, library="openmpi"), **how)
    for name in algorithms:
        table["number"][table["algorithm"] == name] = algorithm_number(collective, name)
    return table
