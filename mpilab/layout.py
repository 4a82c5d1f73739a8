"""How the ranks of a topology-aware tree stand in runs: what formulas of crossings take.

The topology-aware kernels put ranks in the order of src_c/topology: the root's group first, the
others by their lowest ranks; within a group the root's node first, the others likewise.
"""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Runs:
    """Trees whose members stand in runs: (2, 3) is two members in one place, then three in another.

    trees   the lengths of the runs, for each tree.
    """

    trees: tuple


def runs_by_name(levels, root):
    """{name in a formula: Runs} for ranks at these mpilab.places.Levels.

    node_ranks      one tree over all ranks, in runs of a node each
    group_ranks     one tree over all ranks, in runs of a group each
    group_nodes     one tree over the leaders of all nodes, in runs of a group each
    ranks_by_group  a tree over the ranks of each group, in runs of a node each
    """
    on_node = np.bincount(levels.node)
    group_of = levels.group[np.unique(levels.node, return_index=True)[1]]
    by_group = tuple(
        tuple(
            int(on_node[node])
            for node in _fronted(np.flatnonzero(group_of == group), levels.node[root])
        )
        for group in _fronted(range(levels.groups), levels.group[root])
    )
    return {
        "node_ranks": Runs((sum(by_group, ()),)),
        "group_ranks": Runs((tuple(map(sum, by_group)),)),
        "group_nodes": Runs((tuple(map(len, by_group)),)),
        "ranks_by_group": Runs(by_group),
    }


def _fronted(numbers, first):
    """The numbers in their order, but `first` before all others if it is among them."""
    return sorted(map(int, numbers), key=lambda number: (number != first, number))
