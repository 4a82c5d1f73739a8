"""Orders of ranks on the hosts of a cluster: which host each rank runs on.

    seq         fill a host before the next                               0 0 1 1 2 2 3 3
    rr          one rank to each host in turn, in the order of the file   0 1 2 3 0 1 2 3
    rr-groups   the same, the hosts taken from each group in turn         0 2 1 3 0 2 1 3
    shuffled    the lines of the hostfile shuffled: ranks of a host       2 2 0 0 3 3 1 1
                stay together
    random      each rank's host drawn at random, within the slots        1 2 0 3 3 1 0 2

(Hosts 0 and 1 are one group here, 2 and 3 another.) seq and rr are Open MPI's `--map-by slot` and
`--map-by node`. "shuffled" is what topology-aware collectives were measured with, "random" the
"most randomized manner possible" beside it (Bijlani and Raol, "CS633: Assignment 2", 2021, section
1.3). Every order can be handed to mpirun, by `--map-by seq`.

The same in a few words, for where ranks pretend to be (`places_of`):

    2x2x4 rr               2 groups of 2 nodes of 4 ranks each: rank r is on node r mod 4, the nodes
                           being numbered group by group
    2x2x4 shuffled 7       with seed 7; without a number, seed 1
    four-groups rr         a cluster description of hostfiles/, or the path of one
    campus hosts=8 ppn=1 shuffled 3      part of it
    a/n1 a/n1 b/n2         the group and node of every rank
    a/n1*2 b/n2            the same
"""

import random
import re
from itertools import groupby
from math import prod
from pathlib import Path

from mpilab import descriptions
from mpilab.descriptions import Description
from mpilab.errors import InputError
from mpilab.hosts import Host, placement
from mpilab.places import Levels, Place

ORDERS = ("seq", "rr", "rr-groups", "shuffled", "random")
SEEDED = ("shuffled", "random")
MOST_RANKS = 65536  # a slip of the pen should not fill the memory

_SHAPE = re.compile(r"([0-9]{1,9})x([0-9]{1,9})x([0-9]{1,9})")
_OPTION = re.compile(r"(hosts|ppn|ranks)=([0-9]{1,9})")
_RANKS_THERE = re.compile(r"([^/*]+)/([^/*]+)(?:\*([0-9]{1,9}))?")
_EXAMPLES = "write e.g. '2x2x4 rr', 'four-groups shuffled 7' or 'a/n1 a/n1 b/n2'"


def order(description, name, *, ranks=None, ppn=None, hosts=None, seed=1):
    """The name of the host of each rank: list of str.

    description  mpilab.descriptions.Description.
    name         one of ORDERS.
    ranks        how many; all slots without it.
    ppn, hosts   slots of a host, and number of hosts, if there are to be fewer: see
                 Description.part.
    seed         of "shuffled" and "random": the same seed gives the same order on every machine.

    Raises InputError for an unknown order, or more ranks, hosts or slots than there are.
    """
    part = description.part(hosts=hosts, ppn=ppn)
    ranks = part.slots if ranks is None else ranks
    ordered = part.alternating if name == "rr-groups" else part.hosts
    if name == "shuffled":
        ordered = _shuffled(ordered, seed)
    elif name not in ORDERS:
        raise InputError(f"order {name!r}: unknown; take one of {', '.join(ORDERS)}")
    slots = [host.slots for host in ordered]
    if not 1 <= ranks <= sum(slots):
        raise InputError(
            f"ranks={ranks}: there are {sum(slots)} slots on {len(slots)} hosts of "
            f"{description.name}; take 1 to {sum(slots)}"
        )
    if name == "random":
        placed = _shuffled(placement(slots, sum(slots), "slot"), seed)[:ranks]
    else:
        placed = placement(slots, ranks, "node" if name.startswith("rr") else "slot")
    return [ordered[host].name for host in placed]


def _shuffled(items, seed):
    """The items in random order.

    random.shuffle may change from one Python to the next; random.random is promised not to.
    """
    draw = random.Random(seed)
    return sorted(items, key=lambda _: draw.random())


def hostfile_text(names, description):
    """A hostfile for `mpirun --map-by seq`: the host of each rank on a line of its own.

    names         the host of each rank, from `order`.
    description   of the cluster: comments tell the groups, and mpilab.hosts.read reads them.
    """
    lines = [f"# For mpirun -n {len(names)} --map-by seq: rank i runs on the host of the i-th line "
             "that names one.",
             f"# The cluster is {description.name}."]  # fmt: skip
    places = description.places(names)
    for group, members in groupby(places, lambda place: place.group):
        lines += [f"# group: {group}", *(place.node for place in members)]
    return "\n".join([*lines, ""])


def write_hostfile(path, names, description):
    """Write `hostfile_text` to a file; InputError where that cannot be."""
    text = hostfile_text(names, description)
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; write to a folder of yours"
        ) from None


def regular(groups, nodes, ranks):
    """The Description of `groups` groups g0, g1, … of as many `nodes` each, with slots for `ranks`
    each; the nodes are n0, n1, … through all groups."""
    name = f"{groups}x{nodes}x{ranks}"
    if not 1 <= groups * nodes * ranks <= MOST_RANKS:
        raise InputError(f"{name}: has to be 1 to {MOST_RANKS} ranks")
    return Description(
        name,
        f"{groups} groups of {nodes} nodes with {ranks} slots",
        tuple(Host(f"n{node}", ranks, None, f"g{node // nodes}") for node in range(groups * nodes)),
    )


def places_of(text):
    """The Place of each rank, from a text as in the head of this module: tuple of Place.

    Raises InputError, with the text, for what is none.
    """
    words = text.split()
    try:
        if words and all("/" in word for word in words):
            return tuple(place for word in words for place in _there(word))
        return _ordered(words)
    except InputError as error:
        raise InputError(f"places {text!r}: {error}") from None


def _there(word):
    """'a/n1*2' -> two ranks on node n1 of group a."""
    read = _RANKS_THERE.fullmatch(word)
    if read is None or not 1 <= int(read[3] or 1) <= MOST_RANKS:
        raise InputError(f"{word!r} is not of the form GROUP/NODE or GROUP/NODE*RANKS; {_EXAMPLES}")
    return (Place(read[2], read[1]),) * int(read[3] or 1)


def _ordered(words):
    """['2x2x4', 'ppn=2', 'shuffled', '7'] -> places."""
    options = {read[1]: int(read[2]) for word in words if (read := _OPTION.fullmatch(word))}
    words = [word for word in words if not _OPTION.fullmatch(word)]
    if len(words) < 2:
        raise InputError(f"a cluster and an order are needed; {_EXAMPLES}")
    cluster, name, *seed = words
    if name not in ORDERS:
        raise InputError(f"the order is {name!r}: take one of {', '.join(ORDERS)}; {_EXAMPLES}")
    if seed and name not in SEEDED:
        raise InputError(f"{seed[0]!r} behind {name}, which has no seed; leave it out")
    if seed:
        if len(seed) > 1 or not re.fullmatch("[0-9]{1,9}", seed[0]):
            raise InputError(f"{' '.join(seed)!r} is no seed; write one number, e.g. {name} 7")
        options["seed"] = int(seed[0])
    shape = _SHAPE.fullmatch(cluster)
    cluster = regular(*map(int, shape.groups())) if shape else descriptions.read(cluster)
    return cluster.places(order(cluster, name, **options))


def text_of(places):
    """A text that `places_of` reads as these places: '2x2x4 rr' if they are those, else a list."""
    places = tuple(places)
    levels = Levels(places)
    shape = (levels.groups, levels.nodes // levels.groups, levels.most_on_a_node)
    if prod(shape) == len(places) <= MOST_RANKS:
        cluster = regular(*shape)
        for name in ("seq", "rr", "rr-groups"):
            if cluster.places(order(cluster, name)) == places:
                return f"{cluster.name} {name}"
    runs = [(place, len(list(same))) for place, same in groupby(places)]
    return " ".join(
        f"{place.group}/{place.node}" + (f"*{times}" if times > 1 else "") for place, times in runs
    )
