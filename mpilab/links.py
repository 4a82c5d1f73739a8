"""What each link of a cluster carries, from who sent how much to whom and where the ranks are.

                 core                  A message between two nodes goes over the link of the one to
               ↑↓    ↑↓                its switch, and over that of the switch to the other. Between
        switch of a  switch of b       two groups it goes over the links of both switches to the
         ↑↓    ↑↓     ↑↓    ↑↓         core as well. What stays on a node goes through its memory.
         n1    n2     n3    n4

Each direction of a link is counted by itself: links are full duplex.
"""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError

MEMORY, NODE, GROUP = "memory", "node", "group"
CORE = "core"


@dataclass(frozen=True)
class Load:
    """What one link carries in one direction, or the memory of a node between its ranks.

    level      NODE: between a node and its switch; GROUP: between a switch and the core; MEMORY.
    number     of the node or group, as in mpilab.places.Levels.
    up         away from the ranks? False for a memory.
    name       'n1 → switch a', 'core → switch b', 'memory of n1'.
    bytes, messages   messages is None where only bytes are known.
    """

    level: str
    number: int
    up: bool
    name: str
    bytes: int
    messages: int | None

    @property
    def carries(self):
        """Does anything go over it, be it a message without bytes?"""
        return bool(self.bytes or self.messages)

    def rate(self, description):
        """Bits per second that the link takes in this direction; None: nobody limits it."""
        if description is None or self.level == MEMORY:
            return None
        link = description.group_link if self.level == GROUP else description.host_link
        return link.rate

    def seconds(self, description):
        """How long the bytes take at the rate of the link; 0.0 where nobody limits it."""
        rate = self.rate(description)
        return 0.0 if rate is None else self.bytes * 8 / rate


@dataclass(frozen=True)
class Bound:
    """No run is shorter than `seconds`, because of the link of `load`; None: no link limits it."""

    seconds: float
    load: Load | None


def loads(matrix, levels):
    """The Load of every link: first those of the groups (where there is more than one), then those
    of the nodes, each up and down, then the memories.

    matrix   bytes [P, P], or (messages, bytes) as Recording.matrix() has them, or the messages
             themselves (mpilab.recording.MESSAGE records).
    levels   mpilab.places.Levels of the P ranks.

    Raises InputError where the matrix is not one of those P ranks, or not of whole numbers.
    """
    counts, volume = matrices(matrix, levels)
    found = []
    if levels.groups > 1:
        found += _links(GROUP, counts, volume, levels.between_groups(), levels)
    crosses = levels.between_nodes()
    found += _links(NODE, counts, volume, crosses, levels)
    names = node_names(levels)
    inside = (_sums(each, ~crosses, levels.node, levels.nodes) for each in (counts, volume))
    for node, (messages, size) in enumerate(zip(*inside, strict=True)):
        found.append(Load(MEMORY, node, False, f"memory of {names[node]}", size, messages))
    return tuple(found)


def by_round(messages, levels):
    """What `loads` returns for each round of MESSAGE records, from round 1 on: a list."""
    rounds = range(1, int(messages["round"].max(initial=0)) + 1)
    return [loads(messages[messages["round"] == number], levels) for number in rounds]


def busiest(found, description=None):
    """The Loads of the busiest links, all that are equally so; () if nothing leaves a node.

    found         what `loads` returned.
    description   mpilab.descriptions.Description: with it, the busiest takes the longest time at
                  its rate; without, or between links without a rate, it carries most bytes.
                  Of those with as many, it carries most messages.
    """
    links = [load for load in found if load.level != MEMORY and load.carries]
    if not links:
        return ()

    def business(load):
        return load.seconds(description), load.bytes, load.messages or 0

    most = max(map(business, links))
    return tuple(load for load in links if business(load) == most)


def lower_bound(description, levels, matrix):
    """The Bound that the rates of the links set: the time the busiest one needs for its bytes.

    Latencies, and waiting for what comes first, are not in it. Arguments as for `loads`.
    """
    limited = busiest(loads(matrix, levels), description)
    if not limited or limited[0].rate(description) is None:
        return Bound(0.0, None)
    return Bound(limited[0].seconds(description), limited[0])


def node_names(levels):
    """The name of each node, by its number; with its group where two nodes have the same name."""
    places = [levels.places[rank] for rank in _first(levels.node)]
    names = [place.node for place in places]
    return [
        place.node if names.count(place.node) == 1 else f"{place.node}@{place.group}"
        for place in places
    ]


def switch_names(levels):
    """The name of each group's switch, by its number; that of a nameless group is 'switch'."""
    groups = [levels.places[rank].group for rank in _first(levels.group)]
    return ["switch" if groups == ["-"] else f"switch {group}" for group in groups]


def matrices(matrix, levels):
    """(messages, bytes) as int64 [P, P]; messages is None where only bytes were given.

    Takes what `loads` takes, and raises what it raises.
    """
    ranks = len(levels.places)
    if getattr(getattr(matrix, "dtype", None), "names", None):
        return _added(matrix, ranks)
    given = np.asarray(matrix)
    if given.shape not in ((ranks, ranks), (2, ranks, ranks)):
        raise InputError(
            f"matrix: shape {given.shape} for {ranks} ranks; give bytes from each rank to each "
            "other, or (messages, bytes) as recording.matrix() returns them"
        )
    if given.dtype.kind not in "iu" or (given.size and given.min() < 0):
        raise InputError(
            f"matrix of {given.dtype}, least {given.min()}: give whole numbers from 0 on"
        )
    given = given.astype(np.int64)
    return (None, given) if given.ndim == 2 else (given[0], given[1])


def _added(messages, ranks):
    ends = messages["source"], messages["dest"]
    highest = max((int(end.max(initial=-1)) for end in ends), default=-1)
    if highest >= ranks:
        raise InputError(
            f"messages: one of rank {highest}, but there are {ranks} ranks in the levels; give "
            "the place of each rank"
        )
    counts, volume = np.zeros((ranks, ranks), np.int64), np.zeros((ranks, ranks), np.int64)
    np.add.at(counts, ends, 1)
    np.add.at(volume, ends, messages["bytes"])
    return counts, volume


def _links(level, counts, volume, crosses, levels):
    """Up and down of each group or node: what leaves it, and what comes to it."""
    switches = switch_names(levels)
    if level == GROUP:
        owner, number = levels.group, levels.groups
        ends = [(switch, CORE) for switch in switches]
    else:
        owner, number = levels.node, levels.nodes
        group = levels.group[_first(levels.node)]
        ends = [(name, switches[group[node]]) for node, name in enumerate(node_names(levels))]
    up = [_sums(each, crosses, owner, number) for each in (counts, volume)]
    down = [_sums(_turned(each), crosses, owner, number) for each in (counts, volume)]
    for place, (below, above) in enumerate(ends):
        yield Load(level, place, True, f"{below} → {above}", up[1][place], up[0][place])
        yield Load(level, place, False, f"{above} → {below}", down[1][place], down[0][place])


def _turned(matrix):
    return None if matrix is None else matrix.T


def _sums(matrix, chosen, owner, number):
    """The chosen numbers of a matrix, added up by the owner of their row: list of int, or None."""
    if matrix is None:
        return [None] * number
    sums = np.zeros(number, np.int64)
    np.add.at(sums, owner, np.where(chosen, matrix, 0).sum(axis=1))
    return sums.tolist()


def _first(owner):
    """The lowest rank of each node or group."""
    return np.unique(owner, return_index=True)[1]
