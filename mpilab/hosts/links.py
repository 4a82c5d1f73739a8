"""Traffic on each link of a cluster, from the bytes between ranks and the place of each rank.

                 core                  A message between two nodes crosses the links of both nodes
               ↑↓    ↑↓                to their switches. Between two groups, it also crosses the
        switch of a  switch of b       links of both switches to the core. A message within a node
         ↑↓    ↑↓     ↑↓    ↑↓         goes through its memory.
         n1    n2     n3    n4

Each direction of a link is counted separately: links are full duplex.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError
from mpilab.hosts.description import Description
from mpilab.hosts.places import Levels

MEMORY, NODE, GROUP = "memory", "node", "group"
CORE = "core"


@dataclass(frozen=True)
class Load:
    """The traffic on one link in one direction, or in the memory of a node between its ranks.

    level      NODE: between a node and its switch; GROUP: between a switch and the core; MEMORY.
    number     of the node or group, as in mpilab.hosts.places.Levels.
    up         True: away from the ranks. False for a memory.
    name       'n1 → switch a', 'core → switch b', 'memory of n1'.
    bytes, messages   messages is None if only bytes are known.
    """

    level: str
    number: int
    up: bool
    name: str
    bytes: int
    messages: int | None

    @property
    def carries(self) -> bool:
        """True if there is any traffic, even a message without bytes."""
        return bool(self.bytes or self.messages)

    def rate(self, description: Description | None) -> float | None:
        """The rate of the link in this direction, in bits per second; None: no limit."""
        if description is None or self.level == MEMORY:
            return None
        link = description.group_link if self.level == GROUP else description.host_link
        return link.rate

    def seconds(self, description: Description | None) -> float:
        """The time for the bytes at the rate of the link; 0.0 if there is no limit."""
        rate = self.rate(description)
        return 0.0 if rate is None else self.bytes * 8 / rate


@dataclass(frozen=True)
class Bound:
    """A lower bound: the link of `load` needs `seconds`; load None: no link sets a limit."""

    seconds: float
    load: Load | None


def loads(matrix: ArrayLike, levels: Levels) -> tuple[Load, ...]:
    """The Load of every link: groups first (if there is more than one), then nodes, each up and
    down, then memories.

    matrix   bytes [P, P], or (messages, bytes) as Recording.matrix() has them, or the messages
             themselves (mpilab.trace.recording.MESSAGE records).
    levels   mpilab.hosts.places.Levels of the P ranks.

    Raises InputError if the matrix does not fit P ranks, or contains numbers that are not integers.
    """
    counts, volume = matrices(matrix, levels)
    found: list[Load] = []
    if levels.groups > 1:
        found += _links(GROUP, counts, volume, levels.between_groups(), levels)
    crosses = levels.between_nodes()
    found += _links(NODE, counts, volume, crosses, levels)
    names = node_names(levels)
    messages = _counted(counts, ~crosses, levels.node, levels.nodes)
    for node, size in enumerate(_sums(volume, ~crosses, levels.node, levels.nodes)):
        found.append(Load(MEMORY, node, False, f"memory of {names[node]}", size, messages[node]))
    return tuple(found)


def by_round(messages: NDArray[Any], levels: Levels) -> list[tuple[Load, ...]]:
    """What `loads` returns for each round of MESSAGE records, from round 1: a list."""
    rounds = range(1, int(messages["round"].max(initial=0)) + 1)
    return [loads(messages[messages["round"] == number], levels) for number in rounds]


def busiest(found: Iterable[Load], description: Description | None = None) -> tuple[Load, ...]:
    """The Loads of the busiest links, including ties; () if nothing leaves a node.

    found         what `loads` returned.
    description   mpilab.hosts.description.Description: if given, the busiest link takes the longest
                  time at its rate; otherwise, or if links have no rate, it carries the most bytes.
                  On a tie, it carries the most messages.
    """
    links = [load for load in found if load.level != MEMORY and load.carries]
    if not links:
        return ()

    def business(load: Load) -> tuple[float, int, int]:
        return load.seconds(description), load.bytes, load.messages or 0

    most = max(map(business, links))
    return tuple(load for load in links if business(load) == most)


def lower_bound(description: Description, levels: Levels, matrix: ArrayLike) -> Bound:
    """The Bound from the link rates: the time that the busiest link needs for its bytes.

    It excludes latencies, and waiting for earlier messages. Arguments as for `loads`.
    """
    limited = busiest(loads(matrix, levels), description)
    if not limited or limited[0].rate(description) is None:
        return Bound(0.0, None)
    return Bound(limited[0].seconds(description), limited[0])


def node_names(levels: Levels) -> list[str]:
    """The name of each node, by number; with its group if two nodes have the same name."""
    places = [levels.places[rank] for rank in _first(levels.node)]
    names = [place.node for place in places]
    return [
        place.node if names.count(place.node) == 1 else f"{place.node}@{place.group}"
        for place in places
    ]


def switch_names(levels: Levels) -> list[str]:
    """The name of each group's switch, by number; 'switch' for a group without a name."""
    groups = [levels.places[rank].group for rank in _first(levels.group)]
    return ["switch" if groups == ["-"] else f"switch {group}" for group in groups]


def matrices(
    matrix: ArrayLike, levels: Levels
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64]]:
    """(messages, bytes) as int64 [P, P]; messages is None if only bytes were given.

    Accepts the same arguments, and raises the same errors, as `loads`.
    """
    ranks = len(levels.places)
    if isinstance(matrix, np.ndarray) and matrix.dtype.names:
        return _added(matrix, ranks)
    given = np.asarray(matrix)
    if given.shape not in ((ranks, ranks), (2, ranks, ranks)):
        raise InputError(
            f"matrix: shape {given.shape} for {ranks} ranks; give bytes from each rank to each "
            "other, or (messages, bytes) as recording.matrix() returns them"
        )
    if given.dtype.kind not in "iu" or (given.size and given.min() < 0):
        raise InputError(
            f"matrix of {given.dtype}, minimum {given.min()}: give whole numbers of 0 or more"
        )
    given = given.astype(np.int64)
    return (None, given) if given.ndim == 2 else (given[0], given[1])


def _added(messages: NDArray[Any], ranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    ends = messages["source"], messages["dest"]
    highest = max((int(end.max(initial=-1)) for end in ends), default=-1)
    if highest >= ranks:
        raise InputError(
            f"messages: one is from or to rank {highest}, but the levels have {ranks} ranks; give "
            "the place of each rank"
        )
    counts, volume = np.zeros((ranks, ranks), np.int64), np.zeros((ranks, ranks), np.int64)
    np.add.at(counts, ends, 1)
    np.add.at(volume, ends, messages["bytes"])
    return counts, volume


def _links(
    level: str,
    counts: NDArray[np.int64] | None,
    volume: NDArray[np.int64],
    crosses: NDArray[np.bool_],
    levels: Levels,
) -> Iterator[Load]:
    """The Loads of each group or node: up (outgoing) and down (incoming)."""
    switches = switch_names(levels)
    if level == GROUP:
        owner, number = levels.group, levels.groups
        ends = [(switch, CORE) for switch in switches]
    else:
        owner, number = levels.node, levels.nodes
        group = levels.group[_first(levels.node)]
        ends = [(name, switches[group[node]]) for node, name in enumerate(node_names(levels))]
    up = _sums(volume, crosses, owner, number)
    down = _sums(volume.T, crosses, owner, number)
    messages_up = _counted(counts, crosses, owner, number)
    messages_down = _counted(None if counts is None else counts.T, crosses, owner, number)
    for place, (below, above) in enumerate(ends):
        yield Load(level, place, True, f"{below} → {above}", up[place], messages_up[place])
        yield Load(level, place, False, f"{above} → {below}", down[place], messages_down[place])


def _sums(
    matrix: NDArray[np.int64], chosen: NDArray[np.bool_], owner: NDArray[np.intp], number: int
) -> list[int]:
    """The chosen entries of a matrix, summed by the owner of their row."""
    sums = np.zeros(number, np.int64)
    np.add.at(sums, owner, np.where(chosen, matrix, 0).sum(axis=1))
    return sums.tolist()


def _counted(
    counts: NDArray[np.int64] | None,
    chosen: NDArray[np.bool_],
    owner: NDArray[np.intp],
    number: int,
) -> Sequence[int | None]:
    """The same of message counts; None for each owner if they are not known."""
    return [None] * number if counts is None else _sums(counts, chosen, owner, number)


def _first(owner: NDArray[np.intp]) -> NDArray[np.intp]:
    """The lowest rank of each node or group."""
    return np.unique(owner, return_index=True)[1]
