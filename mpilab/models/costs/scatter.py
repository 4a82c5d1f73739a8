"""Costs of our scatters of blocks of m bytes; mpilab.models.costs defines a and b."""

from mpilab.algorithms.formula import ceil_log2


def linear(call):
    """(P-1)(α + mβ): one send after the other. Source: Open MPI 5, coll/base, "basic_linear"."""
    others = call.ranks - 1
    return others, others * call.bytes


def binomial(call):
    """⌈log2 P⌉ α + (P-1) mβ. Source: Thakur, Rabenseifner, Gropp (2005), section 4."""
    return ceil_log2(call.ranks), (call.ranks - 1) * call.bytes


def linear_nb(call):
    """γ(P) (α + mβ): all sends at the same time, as in the linear broadcast that measures γ."""
    served = call.at_once(call.ranks - 1)
    return served, served * call.bytes
