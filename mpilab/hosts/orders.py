"""Rank orders: which host of a cluster each rank runs on.

    seq         fill a host before the next                               0 0 1 1 2 2 3 3
    rr          one rank to each host in turn, in the order of the file   0 1 2 3 0 1 2 3
    rr-groups   the same, with hosts taken from each group in turn        0 2 1 3 0 2 1 3
    shuffled    hosts in random order; ranks of a host stay together      2 2 0 0 3 3 1 1
    random      each rank on a random host, within the slots              1 2 0 3 3 1 0 2

(Here hosts 0 and 1 form one group, 2 and 3 another.) seq and rr are Open MPI's `--map-by slot` and
`--map-by node`. "shuffled" is the order with which topology-aware collectives were measured,
"random" the "most randomized manner possible" compared with it (Bijlani and Raol, "CS633:
Assignment 2", 2021, section 1.3). `mpirun --map-by seq` can reproduce every order.

Pretended places of ranks have a short text form (`places_of`):

    2x2x4 rr               2 groups of 2 nodes of 4 ranks each: rank r is on node r mod 4, with
                           nodes numbered group by group
    2x2x4 shuffled 7       with seed 7 (default: 1)
    four-groups rr         a cluster description in hostfiles/, or the path of one
    campus hosts=8 ppn=1 shuffled 3      a part of it
    a/n1 a/n1 b/n2         the group and node of every rank
    a/n1*2 b/n2            the same
"""

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import prod
from pathlib import Path

import numpy as np

from mpilab.errors import InputError
from mpilab.hosts import description as descriptions
from mpilab.hosts.description import Description
from mpilab.hosts.hostfile import Host, placement
from mpilab.hosts.places import Levels, Place
from mpilab.util.text import suggestion

ORDERS = ("seq", "rr", "rr-groups", "shuffled", "random")
SEEDED = ("shuffled", "random")
MOST_RANKS = 65536  # so that a typo does not fill the memory
_SHAPE = re.compile(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})")
_OPTION = re.compile(r"(hosts|ppn|ranks)=([0-9]{1,9})")
_RANKS_THERE = re.compile(r"([^/*]+)/([^/*]+)(?:\*([0-9]{1,9}))?")
_EXAMPLES = "write e.g. '2x2x4 rr', 'four-groups shuffled 7' or 'a/n1 a/n1 b/n2'"

# Runs: consecutive members of a topology-aware tree in one place, for formulas of inter-node
# traffic.
#
# The topology-aware kernels order ranks as src_c/common/topology does: the root's group first, the
# others by their lowest ranks; within a group the root's node first, the others by their lowest
# ranks.


@dataclass(frozen=True)
class Runs:
    """Lengths of runs in trees: (2, 3) is two members in one place, then three in another.

    trees   the lengths of the runs, for each tree.
    """

    trees: tuple[tuple[int, ...], ...]


def runs_by_name(levels: Levels, root: int) -> dict[str, Runs]:
    """{name in a formula: Runs} for ranks at these mpilab.hosts.places.Levels.

    node_ranks      one tree over all ranks, with a run for each node
    group_ranks     one tree over all ranks, with a run for each group
    group_nodes     one tree over the leaders of all nodes, with a run for each group
    ranks_by_group  a tree over the ranks of each group, with a run for each node
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


def _fronted(numbers: Iterable[int], first: int) -> list[int]:
    """The numbers in order, but with `first` moved to the front if it is among them."""
    return sorted(map(int, numbers), key=lambda number: (number != first, number))


@dataclass(frozen=True)
class RankOrder:
    """One of ORDERS; `seed` matters for "shuffled" and "random". As text: "rr", "shuffled 7".

    The same seed gives the same order on every machine. Raises InputError for an unknown order.
    """

    name: str = "seq"
    seed: int = 1

    def __post_init__(self) -> None:
        if self.name not in ORDERS:
            known = f"{', '.join(ORDERS)}{suggestion(self.name, ORDERS)}"
            raise InputError(f"order {self.name!r}: unknown; use one of {known}")

    def __str__(self) -> str:
        return f"{self.name} {self.seed}" if self.is_seeded and self.seed != 1 else self.name

    @classmethod
    def parse(cls, text: str) -> "RankOrder":
        """The order that a text names: "rr", "shuffled" (with seed 1), "shuffled 7"."""
        name, *seed = text.split() or [""]
        if not seed:
            return cls(name)
        if len(seed) > 1 or not re.fullmatch("[0-9]{1,9}", seed[0]):
            raise InputError(f"{' '.join(seed)!r} is not a seed; write one number, e.g. {name} 7")
        return cls(name, int(seed[0]))

    @property
    def is_seeded(self) -> bool:
        """Does it depend on the seed?"""
        return self.name in SEEDED

    def hosts(
        self,
        description: Description,
        *,
        ranks: int | None = None,
        ppn: int | None = None,
        hosts: int | None = None,
    ) -> list[str]:
        """The name of each rank's host.

        ranks        number of ranks; default: all slots.
        ppn, hosts   slots per host and number of hosts, to use only a part: see Description.part.

        Raises InputError for more ranks, hosts or slots than there are.
        """
        part = description.part(hosts=hosts, ppn=ppn)
        ranks = part.slots if ranks is None else ranks
        ordered = part.alternating if self.name == "rr-groups" else part.hosts
        if self.name == "shuffled":
            ordered = tuple(ordered[place] for place in _permutation(len(ordered), self.seed))
        slots = [host.known_slots for host in ordered]
        if not 1 <= ranks <= sum(slots):
            raise InputError(
                f"ranks={ranks}: there are {sum(slots)} slots on {len(slots)} hosts of "
                f"{description.name}; use 1 to {sum(slots)}"
            )
        if self.name == "random":
            by_slot = placement(slots, sum(slots), "slot")
            placed = [by_slot[place] for place in _permutation(len(by_slot), self.seed)[:ranks]]
        else:
            placed = placement(slots, ranks, "node" if self.name.startswith("rr") else "slot")
        return [ordered[host].name for host in placed]


def order(
    description: Description,
    name: str,
    *,
    ranks: int | None = None,
    ppn: int | None = None,
    hosts: int | None = None,
    seed: int = 1,
) -> list[str]:
    """The name of each rank's host in RankOrder(name, seed): see RankOrder.hosts."""
    return RankOrder(name, seed).hosts(description, ranks=ranks, ppn=ppn, hosts=hosts)


def _permutation(number: int, seed: int) -> list[int]:
    """The numbers below `number` in random order.

    random.shuffle may change between Python versions; random.random is guaranteed not to.
    """
    draw = random.Random(seed)
    return sorted(range(number), key=lambda _: draw.random())


def hostfile_text(names: Sequence[str], description: Description) -> str:
    """A hostfile for `mpirun --map-by seq`, with the host of each rank on a separate line.

    names         the host of each rank, from `order`.
    description   of the cluster, whose groups are added as comments that
                  mpilab.hosts.hostfile.read understands.
    """
    lines = [
        f"# For mpirun -n {len(names)} --map-by seq: rank i runs on the host of the i-th line "
        "that names one.",
        f"# The cluster is {description.name}.",
    ]
    places = description.places(names)
    for group, members in groupby(places, lambda place: place.group):
        lines += [f"# group: {group}", *(place.node for place in members)]
    return "\n".join([*lines, ""])


def write_hostfile(path: Path | str, names: Sequence[str], description: Description) -> None:
    """Write `hostfile_text` to a file; InputError if that fails."""
    text = hostfile_text(names, description)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; write to a folder that you own"
        ) from None


def regular(groups: int, nodes: int, ranks: int) -> Description:
    """The Description of `groups` groups g0, g1, … of `nodes` nodes each, with slots for `ranks`
    each; the nodes of all groups are n0, n1, …"""
    name = f"{groups}x{nodes}x{ranks}"
    if not 1 <= groups * nodes * ranks <= MOST_RANKS:
        raise InputError(f"{name}: must be 1 to {MOST_RANKS} ranks")
    return Description(
        name,
        f"{groups} groups of {nodes} nodes with {ranks} slots",
        tuple(Host(f"n{node}", ranks, None, f"g{node // nodes}") for node in range(groups * nodes)),
    )


@dataclass(frozen=True)
class ClusterOrder:
    """Ranks on a cluster, or on a part of it, in an order: "campus hosts=8 ppn=1 shuffled 3".

    cluster   "2x2x4", a cluster description in hostfiles/, or the path of one.
    hosts, ppn, ranks   as in RankOrder.hosts.
    """

    cluster: str
    order: RankOrder
    hosts: int | None = None
    ppn: int | None = None
    ranks: int | None = None

    def __str__(self) -> str:
        parts = (("hosts", self.hosts), ("ppn", self.ppn), ("ranks", self.ranks))
        words = [f"{name}={value}" for name, value in parts if value is not None]
        return " ".join([self.cluster, *words, str(self.order)])

    @classmethod
    def parse(cls, text: str) -> "ClusterOrder":
        """The same from such a text; InputError if it is invalid."""
        words = text.split()
        part = {read[1]: int(read[2]) for word in words if (read := _OPTION.fullmatch(word))}
        words = [word for word in words if not _OPTION.fullmatch(word)]
        if len(words) < 2:
            raise InputError(f"a cluster and an order are needed; {_EXAMPLES}")
        cluster, name, *seed = words
        if name not in ORDERS:
            raise InputError(f"the order is {name!r}: use one of {', '.join(ORDERS)}; {_EXAMPLES}")
        if seed and name not in SEEDED:
            raise InputError(f"{seed[0]!r} after {name}, which has no seed; leave it out")
        return cls(cluster, RankOrder.parse(" ".join([name, *seed])), **part)

    @property
    def description(self) -> Description:
        """The Description of the whole cluster."""
        shape = _SHAPE.fullmatch(self.cluster)
        return regular(*map(int, shape.groups())) if shape else descriptions.read(self.cluster)

    def places(self) -> tuple[Place, ...]:
        """The Place of each rank."""
        cluster = self.description
        return cluster.places(
            self.order.hosts(cluster, ranks=self.ranks, ppn=self.ppn, hosts=self.hosts)
        )


def places_of(text: str) -> tuple[Place, ...]:
    """The Place of each rank, from a text as in the module docstring.

    Raises InputError, with the text, if it is invalid.
    """
    words = text.split()
    try:
        if words and all("/" in word for word in words):
            return tuple(place for word in words for place in _there(word))
        return ClusterOrder.parse(text).places()
    except InputError as error:
        raise InputError(f"places {text!r}: {error}") from None


def _there(word: str) -> tuple[Place, ...]:
    """'a/n1*2' -> two ranks on node n1 of group a."""
    read = _RANKS_THERE.fullmatch(word)
    if read is None or not 1 <= int(read[3] or 1) <= MOST_RANKS:
        raise InputError(f"{word!r} is not of the form GROUP/NODE or GROUP/NODE*RANKS; {_EXAMPLES}")
    return (Place(read[2], read[1]),) * int(read[3] or 1)


def text_of(places: Iterable[Place]) -> str:
    """A text that `places_of` reads as these places: '2x2x4 rr' if that fits, otherwise a list."""
    places = tuple(places)
    levels = Levels(places)
    shape = (levels.groups, levels.nodes // levels.groups, levels.most_on_a_node)
    if prod(shape) == len(places) <= MOST_RANKS:
        cluster = regular(*shape)
        for name in ("seq", "rr", "rr-groups"):
            if cluster.places(order(cluster, name)) == places:
                return str(ClusterOrder(cluster.name, RankOrder(name)))
    runs = [(place, len(list(same))) for place, same in groupby(places)]
    return " ".join(
        f"{place.group}/{place.node}" + (f"*{times}" if times > 1 else "") for place, times in runs
    )
