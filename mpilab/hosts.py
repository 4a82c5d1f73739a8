"""Hostfiles: which hosts a program may use, and on which of them each rank runs.

    # group: left                  a comment for Open MPI; for us, the switch of the hosts below
    n1 slots=4                     host n1 takes 4 ranks
    n2 slots=4 max_slots=8         and never more than 8

Orders of the ranks, by the name that `mpirun --map-by` has for them:

    slot   SEQ: fill a host before going on to the next one   0 0 0 0 1 1 1 1
    node   RR: one rank to each host in turn                  0 1 0 1 0 1 0 1
    seq    line by line: rank i runs on the host of line i of the file

Format: https://docs.open-mpi.org/en/v5.0.x/launching-apps/scheduling.html, "hostfile"; what it
leaves open was tried out with Open MPI 5.0.11 (tests/test_mapping.py does so again).
"""

import re
from collections import Counter
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from mpilab.errors import InputError

POLICIES = ("slot", "node", "seq")
FOLDER = Path(__file__).resolve().parent.parent / "hostfiles"

_GROUP = re.compile(r"#\s*group:\s*(.*?)\s*$")
_HOST = re.compile(r"(?:\w+@)?([A-Za-z0-9](?:[\w.-]*\w)?)")
# Open MPI spells the limit in three ways.
_KEYS = {"slots": "slots", "max_slots": "max_slots", "max-slots": "max_slots",
         "slots_max": "max_slots"}  # fmt: skip
_EXAMPLE = "write e.g. 'n1 slots=4'"


@dataclass(frozen=True)
class Host:
    """A computer, and how many ranks it takes.

    slots      None where the file doesn't say: Open MPI takes the number of its cores.
    max_slots  how many it takes when it is told to oversubscribe; None: any number.
    group      of hosts that are near each other (a switch, a rack); "" where there are none.
    """

    name: str
    slots: int | None = None
    max_slots: int | None = None
    group: str = ""


@dataclass(frozen=True)
class Hostfile:
    """The hosts of a file, each once and in its order; `lines` has the host of every line."""

    name: str
    hosts: tuple
    lines: tuple

    @property
    def slots(self):
        """Slots of each host: list of int. InputError where the file leaves one open."""
        for host in self.hosts:
            if host.slots is None:
                raise InputError(
                    f"{self.name}: {host.name} has no number of slots, so it gets as many as "
                    f"it has cores, which nobody knows before mpirun is there; {_EXAMPLE}"
                )
        return [host.slots for host in self.hosts]

    def placement(self, ranks=None, policy="slot"):
        """The host of each rank, as places in `hosts`: list of int; all slots without `ranks`."""
        if policy == "seq":
            return _line_by_line(self, len(self.lines) if ranks is None else ranks)
        return placement(self.slots, sum(self.slots) if ranks is None else ranks, policy)

    def names(self, ranks=None, policy="slot"):
        """The name of the host of each rank."""
        return [self.hosts[place].name for place in self.placement(ranks, policy)]


def read(path):
    """The Hostfile at `path`; a bare name such as "two-groups.txt" is looked for in hostfiles/.

    Raises InputError, as 'FILE:LINE: what is wrong; what to write'.
    """
    path = find(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(
            f"{path}: cannot be read as a hostfile: {reason}; the kit's are in {FOLDER}"
        ) from None
    return parse(text, f"hostfiles/{path.name}" if path.parent == FOLDER else str(path))


def find(path):
    """The Path of a hostfile; a bare name that is not here is looked for in hostfiles/."""
    path = Path(path)
    if not path.exists() and path.name == str(path) and (FOLDER / path).exists():
        return FOLDER / path
    return path


def parse(text, name="hostfile"):
    """The Hostfile of a text; `name` is what messages call it. Raises InputError as `read` does."""
    hosts, lines, group = {}, [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        where = f"{name}:{number}"
        if named := _GROUP.match(line.strip()):
            group = named[1]
        words = _words(line)
        if not words:
            continue
        host = _host(words, group, where)
        twin = hosts.get(host.name)
        if twin is not None and (twin.slots, host.slots) != (None, None):
            raise InputError(
                f"{where}: {host.name} is there already. Name it once, with all its slots "
                "('n1 slots=4'), or once for each slot and without 'slots='"
            )
        if twin is not None and twin.group != host.group:
            raise InputError(
                f"{where}: {host.name} is in the group {twin.group!r} already; a host is in one"
            )
        hosts[host.name] = host
        lines.append(host.name)
    if not hosts:
        raise InputError(f"{name}: there is no host in it; {_EXAMPLE}")
    listed = Counter(lines)
    places = {host: place for place, host in enumerate(hosts)}
    return Hostfile(
        name,
        tuple(_with_slots_of_lines(host, listed[host.name]) for host in hosts.values()),
        tuple(places[host] for host in lines),
    )


def placement(slots, ranks, policy):
    """The host of each of `ranks` ranks: list of places in `slots`, the slots of each host.

    policy   "slot": fill a host before the next; "node": deal one rank to each host in turn, and
             pass over those that are full.

    Raises InputError for more ranks than slots. (Open MPI does too, unless it is told to
    oversubscribe. By node, it also refuses some jobs whose hosts differ much in size, such as
    slots 1 and 3, where this deals on.)
    """
    slots = list(slots)
    if any(number < 0 for number in slots):
        raise InputError(f"slots={slots}: no host has fewer than 0 slots")
    if not 0 <= ranks <= sum(slots):
        raise InputError(
            f"ranks={ranks}: there are {sum(slots)} slots on {len(slots)} hosts; ask for fewer "
            "ranks, or give the hosts more slots"
        )
    if policy == "slot":
        return [host for host, number in enumerate(slots) for _ in range(number)][:ranks]
    if policy != "node":
        raise InputError(f"policy={policy!r}: take 'slot' or 'node'; 'seq' needs a whole hostfile")
    dealt = []
    for turn in count():
        if len(dealt) >= ranks:
            return dealt[:ranks]
        dealt += [host for host, number in enumerate(slots) if turn < number]


def place_ranks(text, ranks, policy):
    """`placement` of `ranks` ranks on the hosts of a hostfile's text."""
    return parse(text).placement(ranks, policy)


def crossings(hosts_of_ranks):
    """How many pairs of neighbours, rank r and r + 1, are on two different hosts."""
    pairs = zip(hosts_of_ranks, hosts_of_ranks[1:], strict=False)
    return sum(one != other for one, other in pairs)


def _words(line):
    """The words of a line without its comment; 'slots = 4' is one word, as for Open MPI."""
    return re.sub(r"\s*=\s*", "=", line.split("#", 1)[0]).split()


def _host(words, group, where):
    host, *options = words
    if host.startswith(("^", "+")):
        raise InputError(
            f"{where}: {host!r} leaves hosts out or counts them, which works only inside a batch "
            f"job; name the host, {_EXAMPLE}"
        )
    named = _HOST.fullmatch(host)
    if named is None:
        raise InputError(f"{where}: {host!r} is no name of a host; {_EXAMPLE}")
    numbers = {}
    for word in options:
        key, equals, value = word.partition("=")
        if not equals or key not in _KEYS:
            raise InputError(f"{where}: {word!r} is not understood; {_EXAMPLE}")
        if not re.fullmatch("[0-9]+", value):
            raise InputError(f"{where}: {word!r} is not a number; {_EXAMPLE}")
        numbers[_KEYS[key]] = int(value)
    if numbers.get("max_slots", numbers.get("slots", 0)) < numbers.get("slots", 0):
        raise InputError(
            f"{where}: max_slots={numbers['max_slots']} is less than slots={numbers['slots']}; "
            "write e.g. 'n1 slots=4 max_slots=8'"
        )
    return Host(named[1], numbers.get("slots"), numbers.get("max_slots"), group)


def _with_slots_of_lines(host, listed):
    """A host that is listed several times has a slot for each of its lines."""
    if host.slots is not None or listed == 1:
        return host
    return Host(host.name, listed, host.max_slots, host.group)


def _line_by_line(hostfile, ranks):
    if not 0 <= ranks <= len(hostfile.lines):
        raise InputError(
            f"ranks={ranks} with policy 'seq': {hostfile.name} names {len(hostfile.lines)} hosts; "
            "it needs one line for each rank"
        )
    return list(hostfile.lines[:ranks])
