"""Schedules of the scatter algorithms, named after the C kernels `scatter_<name>`.

P ranks, blocks of m bytes, log to base 2:

    algorithm   rounds        messages   bytes
    linear      P-1           P-1        (P-1) m
    binomial    ceil(log P)   P-1        m x sum of the depths of the ranks
    linear_nb   1             P-1        (P-1) m

A single rank sends nothing.
"""

from mpilab.algorithms import trees
from mpilab.algorithms.schedule import Plan, Transfer


def linear(call):
    """The root sends each rank its block, one after the other."""
    return _from_root(call, [[transfer] for transfer in _to_each(call)])


def linear_nb(call):
    """The root sends each rank its block, all at the same time."""
    return _from_root(call, [_to_each(call)])


def binomial(call):
    """Each rank of a binomial tree gets the blocks of its whole subtree in one message.

    It forwards them to one child after the other, the largest part first.
    """
    steps = []
    for source, child in trees.binomial_sends(call.ranks):
        handed = tuple(call.real(v) for v in trees.subtree(child, call.ranks))
        steps.append([Transfer(call.real(source), call.real(child), handed)])
    return _from_root(call, steps)


def _to_each(call):
    return [Transfer(call.root, rank, (rank,)) for rank in range(call.ranks) if rank != call.root]


def _from_root(call, steps):
    return Plan(steps, call.sizes((call.count,) * call.ranks), (call.root,) * call.ranks)


ALGORITHMS = {algorithm.__name__: algorithm for algorithm in (linear, binomial, linear_nb)}
