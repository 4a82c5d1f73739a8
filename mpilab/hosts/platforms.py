"""Platforms, that is, simulated clusters: hosts, groups, links and their speeds.

    flat-16x8               16 hosts of 8 ranks on one switch
    groups-4x4x8            4 groups of 4 hosts of 8 ranks; the hosts of a group share an uplink
    fat-tree-16x8           16 hosts on leaf switches (here 4 on each of 4); every leaf is linked to
                            as many spine switches as it has hosts
    fat-tree-4x4x8          the same, with the number of leaves
    torus-4x4x4x8           hosts as the points of a 4 x 4 x 4 torus, of 8 ranks each
    dragonfly-4x4x2x8       4 groups of 4 routers with 2 hosts of 8 ranks each; every two routers of
                            a group are linked, and so are every two groups
    four-groups             a cluster description in hostfiles/, or the path of one, as for emulated
                            hosts

Without contention, a message costs `overhead` at the sender and again at the receiver, the latency
of every link on its route, and its bytes (plus HEADER_BYTES) divided by the rate of the slowest
link. Messages on the same link share its rate. Ranks of a host share no link: each pair gets the
full rate of the memory.
"""

import random
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from html import escape
from math import isfinite, isqrt, prod
from typing import Any, Protocol, runtime_checkable

from mpilab.errors import InputError
from mpilab.hosts.description import Description, Link, find, read
from mpilab.hosts.hostfile import Host
from mpilab.hosts.orders import RankOrder
from mpilab.hosts.places import Place

MOST_SLOTS = 1 << 16  # so that a typo does not fill the memory
HEADER_BYTES = 16  # added to each message by SMPI 3.32
# Defaults for what a description leaves open: a current cluster with links of 100 Gbit/s.
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
    "torus": ("its dimensions, then ranks per host", (2, 3, 4, 5, 6), "torus-4x4x4x8"),
    "dragonfly": ("GROUPSxROUTERSxHOSTSxRANKS", (4,), "dragonfly-4x4x2x8"),
}
# MPI_Send of fewer bytes returns at once (eager), as in Open MPI over TCP: its
# btl_tcp_eager_limit.
EAGER_BYTES = 65536
_HEAD = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
"""


@runtime_checkable
class MessageCost(Protocol):
    """A model of the cost of a message, such as Hockney's: α in seconds, β in seconds per byte."""

    @property
    def alpha(self) -> float: ...

    @property
    def beta(self) -> float: ...


Cost = tuple[float, float] | MessageCost


@dataclass(frozen=True)
class Platform:
    """A simulated cluster.

    description   hosts with their slots and groups; its links are those of the switches. If all
                  links are alike (for all wirings but SWITCHES), they are its host_link.
    wiring, shape how hosts are linked: SWITCHES by the description's groups, FLAT, FAT_TREE
                  (leaves, hosts per leaf), TORUS (its lengths), DRAGONFLY (groups, routers, hosts).
    memory        link between two ranks of a host.
    overhead      seconds that a rank spends on each message that it sends or receives.
    latencies     1 or more: every two hosts have a link of their own, with a latency drawn with
                  this seed: see `uneven`.
    """

    description: Description
    wiring: str = SWITCHES
    shape: tuple[int, ...] = ()
    memory: Link = MEMORY
    overhead: float = OVERHEAD_S
    latencies: int = 0

    def __post_init__(self) -> None:
        if not (isfinite(self.overhead) and self.overhead >= 0):
            raise InputError(f"overhead={self.overhead} s: must be 0 or more")
        for link in (self.memory, self.host_link, self.group_link):
            if not ((link.rate or 0) > 0 and isfinite(link.latency) and link.latency >= 0):
                raise InputError(
                    f"{self.name}: {link}: a link needs a rate above 0 and a latency of 0 or more"
                )

    @property
    def name(self) -> str:
        """The name of its description."""
        return self.description.name

    @property
    def host_link(self) -> Link:
        """The link between a host and its switch, with a rate."""
        return _filled(self.description.host_link, HOST_LINK)

    @property
    def group_link(self) -> Link:
        """The link between the switch of a group and all others, with a rate."""
        return _filled(self.description.group_link, GROUP_LINK)


def _filled(link: Link, usual: Link) -> Link:
    """`link`, with defaults from `usual` for what the description leaves open."""
    if link == Link():
        return usual
    return link if link.rate is not None else replace(link, rate=usual.rate)


def platform(name: str | Description | Platform, **speeds: Any) -> Platform:
    """The Platform for a Description, or for a name (see the module docstring).

    speeds   host_link, group_link, memory (mpilab.hosts.description.Link) and overhead (seconds),
             instead of the description's or the defaults.

    Raises InputError for an unknown name.
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


def holding(found: Platform, ranks: int) -> Platform:
    """The Platform with slots for `ranks` ranks: the same, or with more slots on each host.

    Slots are added if the hosts take equal shares of the ranks: fat-tree-16x8 with 1024 ranks has
    64 on each of its 16 hosts. The cost of a message stays the same.

    Raises InputError, with numbers that fit, if the shares are not equal.
    """
    description = found.description
    hosts, slots = len(description.hosts), description.slots
    if ranks <= slots:
        return found
    share, over = divmod(ranks, hosts)
    if over:
        fits = max(share, slots // hosts + 1) * hosts
        raise InputError(
            f"ranks={ranks}: there are {slots} slots on {hosts} hosts of {found.name}; use 1 to "
            f"{slots}, or a multiple of {hosts}, e.g. {fits}"
        )
    taller = tuple(replace(host, slots=share) for host in description.hosts)
    return replace(found, description=replace(description, hosts=taller))


def _named(name: str) -> Description | Platform:
    shaped = _SHAPED.fullmatch(name)
    if shaped is None or find(name).is_file():
        try:
            return read(name)
        except InputError as error:
            forms = ", ".join(example for *_, example in _FORMS.values())
            raise InputError(f"platform {name!r}: no such shape ({forms}), and {error}") from None
    kind, text = shaped.groups()
    form, lengths, example = _FORMS[kind]
    numbers = tuple(map(int, text.split("x"))) if _SHAPE.fullmatch(text) else ()
    if len(numbers) not in lengths:
        raise InputError(f"platform {name!r}: {kind}- is followed by {form}; write e.g. {example}")
    if prod(numbers) > MOST_SLOTS:
        raise InputError(f"platform {name!r}: {prod(numbers)} ranks; the maximum is {MOST_SLOTS}")
    return _MAKERS[kind](name, *numbers)


def _flat(name: str, hosts: int, ranks: int) -> Platform:
    return Platform(_described(name, hosts, ranks, lambda host: "-"), FLAT)


def _groups(name: str, groups: int, hosts: int, ranks: int) -> Platform:
    return Platform(_described(name, groups * hosts, ranks, lambda host: f"g{host // hosts}"))


def _fat_tree(name: str, *numbers: int) -> Platform:
    *shape, ranks = numbers
    if len(shape) == 1:
        (hosts,) = shape
        leaves = next(n for n in range(isqrt(hosts), 0, -1) if hosts % n == 0)
        shape = [leaves, hosts // leaves]
    described = _described(name, prod(shape), ranks, lambda host: f"leaf{host // shape[1]}")
    return Platform(described, FAT_TREE, tuple(shape))


def _torus(name: str, *numbers: int) -> Platform:
    *shape, ranks = numbers
    return Platform(_described(name, prod(shape), ranks, lambda host: "-"), TORUS, tuple(shape))


def _dragonfly(name: str, groups: int, routers: int, hosts: int, ranks: int) -> Platform:
    if groups > routers:
        # SimGrid 3.32 links group i to group j at router j of group i, which must exist.
        raise InputError(
            f"platform {name!r}: {groups} groups of {routers} routers; a router leads to one other "
            f"group, so write at most {routers} groups"
        )
    described = _described(
        name, groups * routers * hosts, ranks, lambda host: f"g{host // (routers * hosts)}"
    )
    return Platform(described, DRAGONFLY, (groups, routers, hosts))


_MAKERS: dict[str, Callable[..., Platform]] = {
    "flat": _flat,
    "groups": _groups,
    "fat-tree": _fat_tree,
    "torus": _torus,
    "dragonfly": _dragonfly,
}


def _described(name: str, hosts: int, ranks: int, group_of: Callable[[int], str]) -> Description:
    """A Description of hosts n0, n1, … with `ranks` slots each."""
    return Description(
        name, name, tuple(Host(f"n{host}", ranks, None, group_of(host)) for host in range(hosts))
    )


def uneven(ranks: int, seed: int) -> tuple[Platform, tuple[str, ...]]:
    """(Platform, name of each rank's host): each rank on its own host, latencies from `seed`.

    They range over three decades, so that a message may be later than a chain of several others.
    """
    name = f"uneven-{ranks}"
    return (
        Platform(_described(name, ranks, 1, lambda host: "-"), latencies=seed),
        tuple(f"n{rank}" for rank in range(ranks)),
    )


def of_places(places: Iterable[Place], name: str = "places") -> tuple[Platform, list[str]]:
    """The Platform for pretended places: their nodes and groups, with links as for groups-….

    places   mpilab.hosts.places.Place of each rank. Nodes of different groups may have the same
             name, so the hosts are named n0, n1, … in the order of their lowest ranks.

    Returns (platform, name of each rank's host).
    """
    numbers: dict[Place, str] = {}
    slots: dict[Place, int] = {}
    for place in places:
        numbers.setdefault(place, f"n{len(numbers)}")
        slots[place] = slots.get(place, 0) + 1
    hosts = tuple(Host(numbers[place], slots[place], None, place.group) for place in numbers)
    return Platform(Description(name, name, hosts)), [numbers[place] for place in places]


def calibrated(
    description: str | Description, measured: Mapping[str, Cost], *, overhead: float = OVERHEAD_S
) -> Platform:
    """The Platform on which messages have the measured cost.

    description   hosts and groups: a Description, or the name of one.
    measured      {level: (α in seconds, β in seconds per byte)} of one message (or a Hockney model
                  with alpha and beta) between ranks on one node ("node"), on two nodes of a group
                  ("group"), and in two groups ("world"). A level without an entry keeps the
                  description's speed; "world" requires "group".
    overhead      seconds of every α in which the sender is busy, and again the receiver; reduced to
                  half the smallest α if it is larger.

    A measured uplink rate is meaningful only if it is lower than a host's: one message cannot show
    the capacity for more.

    Raises InputError for invalid levels or numbers.
    """
    base = platform(description)
    costs = {level: _cost(level, one) for level, one in measured.items()}
    if "world" in costs and "group" not in costs:
        raise InputError("measured: 'world' needs 'group', whose links its messages cross as well")
    overhead = min([overhead, *(alpha / 2 for alpha, _ in costs.values())])
    speeds: dict[str, Any] = {"overhead": overhead}
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


def _cost(level: str, one: Cost) -> tuple[float, float]:
    if level not in LEVELS:
        raise InputError(f"measured: level {level!r}: use one of {', '.join(LEVELS)}")
    alpha, beta = (one.alpha, one.beta) if isinstance(one, MessageCost) else one
    if not (isfinite(alpha) and isfinite(beta) and alpha >= 0 and beta > 0):
        raise InputError(
            f"measured[{level!r}] = ({alpha}, {beta}): α must be 0 or more seconds, β above 0 "
            "seconds per byte"
        )
    return alpha, beta


# SimGrid's XML platform files, and the SMPI options that give messages the cost described above.
#
# https://simgrid.org/doc/v3.32/XML_reference.html, Configuring_SimGrid.html


def options(platform: Platform, version: str) -> dict[str, str]:
    """Settings of SMPI, {name: value}, for plain latencies and rates. By default, SMPI scales them
    by factors fitted to one cluster of 2013.

    version   of SimGrid, e.g. "3.32".
    """
    overhead = f"{platform.overhead:.12g}"  # seconds, for any size
    if tuple(map(int, version.split(".")[:2])) < (3, 34):
        overhead = f"0:{overhead}:0"  # from 0 bytes; since 3.34 this form would exclude 0 itself
    return {
        "smpi/simulate-computation": "no",
        "smpi/bw-factor": "0:1",
        "smpi/lat-factor": "0:1",
        "network/TCP-gamma": "0",  # no window: the rate does not depend on the latency
        "network/crosstraffic": "no",  # the two directions of a link are independent
        "smpi/os": overhead,
        "smpi/ois": overhead,
        "smpi/or": overhead,
        "smpi/send-is-detached-thresh": str(EAGER_BYTES),
        # src_c/runtime/simulated/polling.c says how long a poll takes.
        "smpi/test": "0",
        "smpi/iprobe": "0",
        "contexts/guard-size": "64",  # pages: keep endless recursion out of other ranks' stacks
    }


def xml(platform: Platform) -> str:
    """The text of SimGrid's platform file."""
    if platform.latencies:
        return f"{_HEAD}{_pairs(platform)}</platform>\n"
    if platform.wiring == SWITCHES:
        return f"{_HEAD}{_switches(platform)}</platform>\n"
    return f"{_HEAD}{_cluster(platform)}</platform>\n"


def _cluster(platform: Platform) -> str:
    """SimGrid's <cluster> tag, for identical hosts."""
    hosts = platform.description.hosts
    topology = {}
    if platform.wiring != FLAT:
        topology["topology"] = platform.wiring.upper().replace("-", "_")
    if platform.wiring == FAT_TREE:
        leaves, each = platform.shape
        topology["topo_parameters"] = f"2;{each},{leaves};1,{each};1,1"
    elif platform.wiring == TORUS:
        topology["topo_parameters"] = ",".join(map(str, platform.shape))
    elif platform.wiring == DRAGONFLY:
        groups, routers, each = platform.shape
        topology["topo_parameters"] = f"{groups},1;1,1;{routers},1;{each}"
    values = {
        "id": "cluster",
        "prefix": "n",
        "suffix": "",
        "radical": f"0-{len(hosts) - 1}",
        "speed": "1Gf",
        "sharing_policy": "SPLITDUPLEX",
        "bw": _rate(platform.host_link),
        "lat": _seconds(platform.host_link),
        "loopback_bw": _rate(platform.memory),
        "loopback_lat": _seconds(platform.memory),
        **topology,
    }
    # SimGrid 4.0 crashes on a fat tree or torus at the top level; 3.32 accepts it.
    return f'<zone id="world" routing="Full">\n<cluster {_attributes(values)}/>\n</zone>\n'


def _pairs(platform: Platform) -> str:
    """A zone in which a message of each pair of hosts, in each direction, has its own latency."""
    names = [host.name for host in platform.description.hosts]
    draw = random.Random(platform.latencies)
    lines = ['<zone id="world" routing="Full">']
    lines += [f'<host id="{name}" speed="1Gf"/>' for name in names]
    pairs = [(source, dest) for source in names for dest in names]
    for source, dest in pairs:
        link = replace(HOST_LINK, latency=10 ** draw.uniform(-7, -4))
        lines.append(_link(f"{source}-{dest}", link, "FATPIPE"))
    for source, dest in pairs:
        lines.append(
            f'<route src="{source}" dst="{dest}" symmetrical="NO">'
            f'<link_ctn id="{source}-{dest}"/></route>'
        )
    return "\n".join([*lines, "</zone>\n"])


def _switches(platform: Platform) -> str:
    """A zone for each group, with its switch, and links from the switches to a central one."""
    groups = platform.description.groups
    lines = ['<zone id="world" routing="Floyd">']
    for number, hosts in enumerate(groups.values()):
        lines += _group(platform, number, hosts)
    if len(groups) > 1:
        ups = [f"up{number}" for number in range(len(groups))]
        lines.append('<zone id="middle" routing="Full"><router id="switch-middle"/></zone>')
        lines += [_link(up, platform.group_link, "SPLITDUPLEX") for up in ups]
        lines += [
            f'<zoneRoute src="group{number}" dst="middle" gw_src="switch{number}" '
            f'gw_dst="switch-middle"><link_ctn id="{up}" direction="UP"/></zoneRoute>'
            for number, up in enumerate(ups)
        ]
    return "\n".join([*lines, "</zone>\n"])


def _group(platform: Platform, number: int, hosts: Iterable[Host]) -> Iterator[str]:
    """The lines of a group. SimGrid requires hosts, routers, links and routes in this order."""
    names = [host.name for host in hosts]
    yield f'<zone id="group{number}" routing="Floyd">'
    yield from (f'<host id="{name}" speed="1Gf"/>' for name in names)
    yield f'<router id="switch{number}"/>'
    for name in names:
        yield _link(f"link-{name}", platform.host_link, "SPLITDUPLEX")
        yield _link(f"memory-{name}", platform.memory, "FATPIPE")
    for name in names:
        yield (
            f'<route src="{name}" dst="{name}" symmetrical="NO">'
            f'<link_ctn id="memory-{name}"/></route>'
        )
        yield (
            f'<route src="{name}" dst="switch{number}">'
            f'<link_ctn id="link-{name}" direction="UP"/></route>'
        )
    yield "</zone>"


def _link(name: str, link: Link, policy: str) -> str:
    values = {
        "id": name,
        "bandwidth": _rate(link),
        "latency": _seconds(link),
        "sharing_policy": policy,
    }
    return f"<link {_attributes(values)}/>"


def _rate(link: Link) -> str:
    assert link.rate is not None  # Platform has checked it
    return f"{link.rate / 8:.12g}Bps"


def _seconds(link: Link) -> str:
    return f"{link.latency:.12g}s"


def _attributes(values: Mapping[str, str]) -> str:
    return " ".join(f'{name}="{escape(value)}"' for name, value in values.items())


# Platform and rank order as a short text: "PLATFORM [ORDER [SEED]]".
#
# groups-4x4x8 rr             every slot of the platform, in RR order
# fat-tree-16x8 shuffled 7    with seed 7 (default: 1)
# four-groups                 in SEQ order


@dataclass(frozen=True)
class PlatformOrder:
    """A platform, by name, and the order of the ranks on its slots: "fat-tree-16x8 shuffled 7"."""

    platform: str
    order: RankOrder = RankOrder()

    def __str__(self) -> str:
        return f"{self.platform} {self.order}"

    @classmethod
    def parse(cls, text: str) -> "PlatformOrder":
        """The same from such a text; InputError if it is invalid."""
        name, *order = text.split() or [""]
        if len(order) > 2 or not all(seed.isdecimal() for seed in order[1:]):
            raise InputError(
                f"platform {text!r}: write PLATFORM [ORDER [SEED]], e.g. 'groups-4x4x8 shuffled 7'"
            )
        return cls(name, RankOrder.parse(" ".join(order)) if order else RankOrder())


@cache
def standing(text: str) -> tuple[Platform, tuple[str, ...]]:
    """(Platform, name of each rank's host) of a PlatformOrder's text; InputError if invalid."""
    parsed = PlatformOrder.parse(text)
    found = platform(parsed.platform)
    return found, tuple(parsed.order.hosts(found.description))


@cache
def places(text: str) -> tuple[Place, ...]:
    """The Place of each rank for the text of a PlatformOrder."""
    found, names = standing(text)
    return found.description.places(names)
