"""The scatter algorithms, named after the C kernels `scatter_<name>`: schedules and costs.

P ranks, blocks of m bytes, log to base 2:

    algorithm   rounds        messages   bytes
    linear      P-1           P-1        (P-1) m
    binomial    ceil(log P)   P-1        m x sum of the depths of the ranks
    linear_nb   1             P-1        (P-1) m

A single rank sends nothing.
"""

from mpilab.algorithms import trees
from mpilab.algorithms.algorithm import (
    AMBER,
    BLUE,
    RED,
    Algorithm,
    Call,
    Coefficients,
    ModelCall,
    Plan,
    Step,
    Transfer,
    table,
)
from mpilab.algorithms.formula import ceil_log2


def linear(call: Call) -> Plan:
    """The root sends each rank its block, one after another."""
    return _from_root(call, [[transfer] for transfer in _to_each(call)])


def linear_cost(call: ModelCall) -> Coefficients:
    """(P-1)(α + mβ): one send after the other. Source: Open MPI 5, coll/base, "basic_linear"."""
    others = call.ranks - 1
    return others, others * call.bytes


def linear_nb(call: Call) -> Plan:
    """The root sends each rank its block, all at the same time."""
    return _from_root(call, [_to_each(call)])


def linear_nb_cost(call: ModelCall) -> Coefficients:
    """γ(P) (α + mβ): all sends at the same time, as in the linear broadcast that measures γ."""
    served = call.at_once(call.ranks - 1)
    return served, served * call.bytes


def binomial(call: Call) -> Plan:
    """Each rank of a binomial tree gets the blocks of its whole subtree in one message.

    It forwards them to one child after another, the largest part first.
    """
    steps: list[Step] = []
    for source, child in trees.binomial_sends(call.ranks):
        handed = tuple(call.real(v) for v in trees.subtree(child, call.ranks))
        steps.append([Transfer(call.real(source), call.real(child), handed)])
    return _from_root(call, steps)


def binomial_cost(call: ModelCall) -> Coefficients:
    """⌈log2 P⌉ α + (P-1) mβ. Source: Thakur, Rabenseifner, Gropp (2005), section 4."""
    return ceil_log2(call.ranks), (call.ranks - 1) * call.bytes


def _to_each(call: Call) -> Step:
    return [Transfer(call.root, rank, (rank,)) for rank in range(call.ranks) if rank != call.root]


def _from_root(call: Call, steps: list[Step]) -> Plan:
    return Plan(steps, call.sizes((call.count,) * call.ranks), (call.root,) * call.ranks)


ALGORITHMS = table(
    Algorithm(linear, linear_cost, RED, openmpi="basic_linear"),
    Algorithm(binomial, binomial_cost, BLUE, openmpi="binomial"),
    Algorithm(linear_nb, linear_nb_cost, AMBER, openmpi="linear_nb"),
)
