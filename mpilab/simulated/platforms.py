"""Simulated clusters: hosts, groups, links and their speeds.

    flat-16x8               16 hosts of 8 ranks at one switch
    groups-4x4x8            4 groups of 4 hosts of 8 ranks; all of a group share an uplink
    fat-tree-16x8           16 hosts at leaf switches (here four of four), every leaf with a link to
                            each of as many spine switches as it has hosts
    fat-tree-4x4x8          the same, with the number of leaves
    torus-4x4x4x8           hosts as the points of a torus, 4 x 4 x 4, of 8 ranks each
    dragonfly-4x4x2x8       4 groups of 4 routers with 2 hosts of 8 ranks each; the routers of a
                            group are linked in pairs, and so are the groups
    four-groups             a cluster description of hostfiles/, or the path of one: what emulated
                            hosts are built from

What a message costs, without anybody in its way: `overhead` on the sender and again on the
receiver, the latency of every link on its way, and its bytes (with HEADER_BYTES more) by the rate
of the slowest of them. Messages that share a link share its rate. Ranks of a host share no link:
memory has its rate for each pair of them.
"""

import re
from dataclasses import dataclass, replace
from math import isfinite, isqrt, prod

from mpilab import descriptions
from mpilab.descriptions import Description, Link
from mpilab.errors import InputError
from mpilab.hosts import Host

MOST_SLOTS = 1 << 16  # a slip of the pen should not fill the memory
HEADER_BYTES = 16  # that SMPI 3.32 adds to each message
# Of a current cluster with links of 100 Gbit/s, for what a description leaves open.
HOST_LINK = Link(100e9, 500e-9)
GROUP_LINK = Link(100e9, 500e-9)
MEMORY = Link(80e9, 200e-9)
OVERHEAD_S = 200e-9
LEVELS = ("node", "group", "world")
SWITCHES, FLAT, FAT_TREE, TORUS, DRAGONFLY = "switches", "flat", "fat-tree", "torus", "dragonfly"

_SHAPED = re.compile(r"(flat|groups|fat-tree|torus|dragonfly)-(.*)")
_SHAPE = re.compile(r"[1-9][0-9]{0,5}(x[1-9][0-9]{0,5})*")
_FORMS = {
    "flat": ("HOSTSxRANKS", (2,), "flat-16x8"),
    "groups": ("GROUPSxHOSTSxRANKS", (3,), "groups-4x4x8"),
    "fat-tree": ("HOSTSxRANKS or LEAVESxHOSTSxRANKS", (2, 3), "fat-tree-16x8"),
    "torus": ("its lengths, then ranks a host", (2, 3, 4, 5, 6), "torus-4x4x4x8"),
    "dragonfly": ("GROUPSxROUTERSxHOSTSxRANKS", (4,), "dragonfly-4x4x2x8"),
}


@dataclass(frozen=True)
class Platform:
    """A simulated cluster.

    description   hosts with their slots and groups; its links are those of the switches. Where
                  all links are alike (all but SWITCHES), they are its host_link.
    wiring, shape how hosts are linked: SWITCHES by the description's groups, FLAT, FAT_TREE
                  (leaves, hosts a leaf), TORUS (its lengths), DRAGONFLY (groups, routers, hosts).
    memory        between two ranks of a host.
    overhead      seconds that a rank is busy with each message that it sends or receives.
    """

    description: Description
    wiring: str = SWITCHES
    shape: tuple = ()
    memory: Link = MEMORY
    overhead: float = OVERHEAD_S

    def __post_init__(self):
        if not (isfinite(self.overhead) and self.overhead >= 0):
            raise InputError(f"overhead={self.overhead} s: has to be 0 or more")
        for link in (self.memory, self.host_link, self.group_link):
            if not (link.rate > 0 and isfinite(link.latency) and link.latency >= 0):
                raise InputError(
                    f"{self.name}: {link}: a link needs a rate above 0 and a latency of 0 or more"
                )

    @property
    def name(self):
        """What it is called."""
        return self.description.name

    @property
    def host_link(self):
        """Between a host and its switch, with a rate."""
        return _filled(self.description.host_link, HOST_LINK)

    @property
    def group_link(self):
        """Between the switch of a group and all others, with a rate."""
        return _filled(self.description.group_link, GROUP_LINK)


def _filled(link, usual):
    """A link that a description says nothing about is a usual one."""
    if link == Link():
        return usual
    return link if link.rate is not None else replace(link, rate=usual.rate)


def platform(name, **speeds):
    """The Platform of a name as in the head of this module, or of a Description.

    speeds   host_link, group_link, memory (mpilab.descriptions.Link) and overhead (seconds), in
             place of the description's or the usual ones.

    Raises InputError for a name that is none.
    """
    found = _named(name) if isinstance(name, str) else name
    if isinstance(found, Description):
        found = Platform(found)
    if not isinstance(found, Platform):
        raise InputError(
            f"platform {name!r}: give a name such as 'fat-tree-16x8', or a Description"
        )
    links = {key: speeds.pop(key) for key in ("host_link", "group_link") if key in speeds}
    return replace(found, description=replace(found.description, **links), **speeds)


def holding(found, ranks):
    """The Platform with slots for so many ranks: itself, or with more of them on each host.

    There are more where the hosts take equal shares of the ranks: fat-tree-16x8 with 1024 ranks has
    64 on each of its 16 hosts. What a message costs stays the same.

    Raises InputError, with numbers that fit, where the shares are not equal.
    """
    description = found.description
    hosts, slots = len(description.hosts), description.slots
    if ranks <= slots:
        return found
    share, over = divmod(ranks, hosts)
    if over:
        fits = max(share, slots // hosts + 1) * hosts
        raise InputError(
            f"ranks={ranks}: there are {slots} slots on {hosts} hosts of {found.name}; take 1 to "
            f"{slots}, or a multiple of {hosts}, e.g. {fits}"
        )
    taller = tuple(replace(host, slots=share) for host in description.hosts)
    return replace(found, description=replace(description, hosts=taller))


def _named(name):
    shaped = _SHAPED.fullmatch(name)
    if shaped is None or descriptions.find(name).is_file():
        try:
            return descriptions.read(name)
        except InputError as error:
            forms = ", ".join(example for *_, example in _FORMS.values())
            raise InputError(f"platform {name!r}: no such shape ({forms}), and {error}") from None
    kind, text = shaped.groups()
    form, lengths, example = _FORMS[kind]
    numbers = tuple(map(int, text.split("x"))) if _SHAPE.fullmatch(text) else ()
    if len(numbers) not in lengths:
        raise InputError(f"platform {name!r}: {kind}- is followed by {form}; write e.g. {example}")
    if prod(numbers) > MOST_SLOTS:
        raise InputError(f"platform {name!r}: {prod(numbers)} ranks; {MOST_SLOTS} is the most")
    return _MAKERS[kind](name, *numbers)


def _flat(name, hosts, ranks):
    return Platform(_described(name, hosts, ranks, lambda host: "-"), FLAT)


def _groups(name, groups, hosts, ranks):
    return Platform(_described(name, groups * hosts, ranks, lambda host: f"g{host // hosts}"))


def _fat_tree(name, *numbers):
    *shape, ranks = numbers
    if len(shape) == 1:
        (hosts,) = shape
        leaves = next(n for n in range(isqrt(hosts), 0, -1) if hosts % n == 0)
        shape = (leaves, hosts // leaves)
    described = _described(name, prod(shape), ranks, lambda host: f"leaf{host // shape[1]}")
    return Platform(described, FAT_TREE, tuple(shape))


def _torus(name, *numbers):
    *shape, ranks = numbers
    return Platform(_described(name, prod(shape), ranks, lambda host: "-"), TORUS, tuple(shape))


def _dragonfly(name, groups, routers, hosts, ranks):
    if groups > routers:
        # SimGrid 3.32 ties group i to group j at the router j of i, which has to be there.
        raise InputError(
            f"platform {name!r}: {groups} groups of {routers} routers; a router leads to one other "
            f"group, so write at most {routers} groups"
        )
    described = _described(
        name, groups * routers * hosts, ranks, lambda host: f"g{host // (routers * hosts)}"
    )
    return Platform(described, DRAGONFLY, (groups, routers, hosts))


_MAKERS = {"flat": _flat, "groups": _groups, "fat-tree": _fat_tree, "torus": _torus,
           "dragonfly": _dragonfly}  # fmt: skip


def _described(name, hosts, ranks, group_of):
    """Hosts n0, n1, … with as many slots each."""
    return Description(
        name, name, tuple(Host(f"n{host}", ranks, None, group_of(host)) for host in range(hosts))
    )


def of_places(places, name="places"):
    """The Platform of pretended places: their nodes and groups, with links as for groups-….

    places   mpilab.places.Place of each rank. A node's name may be that of one in another group, so
             the hosts are called n0, n1, … in the order of their lowest ranks.

    Returns (platform, name of each rank's host).
    """
    numbers, slots = {}, {}
    for place in places:
        numbers.setdefault(place, f"n{len(numbers)}")
        slots[place] = slots.get(place, 0) + 1
    hosts = tuple(Host(numbers[place], slots[place], None, place.group) for place in numbers)
    return Platform(Description(name, name, hosts)), [numbers[place] for place in places]


def calibrated(description, measured, *, overhead=OVERHEAD_S):
    """The Platform on which a message costs what was measured.

    description   hosts and groups: a Description, or the name of one.
    measured      {level: (α in seconds, β in seconds a byte)} of one message (a Hockney model with
                  alpha and beta does as well) between ranks of a node ("node"), of two nodes of a
                  group ("group"), and of two groups ("world"). A level without an entry keeps the
                  description's speed; "world" needs "group".
    overhead      seconds of every α that the sender is busy, and again the receiver; at most half
                  of the smallest α is taken.

    An uplink's rate shows only where it is lower than a host's: one message cannot tell how many
    more there is room for.

    Raises InputError for levels or numbers that make no sense.
    """
    base = platform(description)
    costs = {level: _cost(level, one) for level, one in measured.items()}
    if "world" in costs and "group" not in costs:
        raise InputError("measured: 'world' needs 'group', which its messages cross as well")
    overhead = min([overhead, *(alpha / 2 for alpha, _ in costs.values())])
    speeds = {"overhead": overhead}
    if "node" in costs:
        alpha, beta = costs["node"]
        speeds["memory"] = Link(8 / beta, alpha - 2 * overhead)
    if "group" in costs:
        alpha, beta = costs["group"]
        speeds["host_link"] = Link(8 / beta, (alpha - 2 * overhead) / 2)
    if "world" in costs:
        further, beta = costs["world"][0] - costs["group"][0], costs["world"][1]
        speeds["group_link"] = Link(8 / beta, max(further, 0.0) / 2)
    return platform(base, **speeds)


def _cost(level, one):
    if level not in LEVELS:
        raise InputError(f"measured: level {level!r}: take one of {', '.join(LEVELS)}")
    alpha, beta = (one.alpha, one.beta) if hasattr(one, "alpha") else one
    if not (isfinite(alpha) and isfinite(beta) and alpha >= 0 and beta > 0):
        raise InputError(
            f"measured[{level!r}] = ({alpha}, {beta}): α has to be 0 or more seconds, β above 0 "
            "seconds a byte"
        )
    return alpha, beta
