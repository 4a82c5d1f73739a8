"""Places of ranks: the node and the group of each, and which pairs of ranks cross their boundaries.

A *node* is a host, a *group* the hosts of one switch or rack. Kernels query their own place with
mpilab_place() in C. A case may assign pretended places (`Case.places`), to try on one machine how
an algorithm behaves on a cluster.
"""

import re
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from mpilab.errors import InputError

# No character that ends or repeats a place in a case's line; as in hostfiles and Slurm's switches.
_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,255}")


@dataclass(frozen=True, order=True)
class Place:
    """The node and the group of a rank, by name. Nodes of different groups are different nodes."""

    node: str
    group: str = "-"

    def __post_init__(self) -> None:
        for what in ("node", "group"):
            if not _NAME.fullmatch(getattr(self, what)):
                raise InputError(
                    f"{what}={getattr(self, what)!r}: not a name; letters, digits and _ . : - are "
                    "allowed, up to 255 of them"
                )


@dataclass(frozen=True)
class Levels:
    """The places of all ranks: `places[r]` is the Place of rank r.

    Nodes and groups are numbered in the order of their lowest ranks.
    """

    places: tuple[Place, ...]

    @cached_property
    def node(self) -> NDArray[np.intp]:
        """The node number of each rank: int array [P]."""
        return _numbers([(place.group, place.node) for place in self.places])

    @cached_property
    def group(self) -> NDArray[np.intp]:
        """The group number of each rank: int array [P]."""
        return _numbers([place.group for place in self.places])

    @property
    def nodes(self) -> int:
        """Number of nodes: M in the formulas."""
        return int(self.node.max(initial=-1)) + 1

    @property
    def groups(self) -> int:
        """Number of groups: G in the formulas."""
        return int(self.group.max(initial=-1)) + 1

    @property
    def most_on_a_node(self) -> int:
        """Number of ranks on the fullest node: Q in the formulas."""
        return int(np.bincount(self.node).max(initial=0))

    def between_nodes(self) -> NDArray[np.bool_]:
        """bool [P, P]: True if ranks i and j are on different nodes."""
        return self.node[:, None] != self.node[None, :]

    def between_groups(self) -> NDArray[np.bool_]:
        """bool [P, P]: True if ranks i and j are in different groups."""
        return self.group[:, None] != self.group[None, :]

    def describe(self) -> str:
        """'2 nodes', '4 nodes in 2 groups'."""
        words = f"{self.nodes} node{'s' * (self.nodes != 1)}"
        return words if self.groups == 1 else f"{words} in {self.groups} groups"


def one_node(ranks: int) -> Levels:
    """The Levels of ranks that share one node."""
    return Levels((Place("-"),) * ranks)


def as_text(places: Iterable[Place]) -> str:
    """The places as the C harness reads them: 'n1@left*2,n2@left'."""
    runs = [(place, len(list(same))) for place, same in groupby(places)]
    return ",".join(
        f"{place.node}@{place.group}" + (f"*{times}" if times > 1 else "") for place, times in runs
    )


def _numbers(names: Sequence[Hashable]) -> NDArray[np.intp]:
    """[a, b, a] -> [0, 1, 0]."""
    known = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], np.intp)
