"""Hostfiles: which hosts a program may use, and on which of them each rank runs.

    # group: left                  a comment for Open MPI; for the kit, the next hosts' switch
    n1 slots=4                     host n1 takes 4 ranks
    n2 slots=4 max_slots=8         and at most 8

Rank orders, by their names in `mpirun --map-by`:

    slot   SEQ: fill a host before the next                   0 0 0 0 1 1 1 1
    node   RR: one rank to each host in turn                  0 1 0 1 0 1 0 1
    seq    line by line: rank i runs on the host of line i of the file

Format: https://docs.open-mpi.org/en/v5.0.x/launching-apps/scheduling.html, "hostfile"; details that
it leaves open were tested with Open MPI 5.0.11 (and again in tests/hosts/test_mapping.py).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpilab.errors import InputError
from mpilab.util.files import read_text
from mpilab.util.kit import ROOT

# Host lists: "n[1-3]" is n1, n2, n3 (Slurm's notation).

# No cluster of the kit has more hosts; a typo such as [1-100000000] must not fill the memory.
MOST = 4096

_LIST = re.compile(r"([^][]*)\[([^][]*)\]([^][]*)")
_RANGE = re.compile(r"\s*([0-9]{1,9})(?:\s*-\s*([0-9]{1,9}))?\s*")
POLICIES = ("slot", "node", "seq")
FOLDER = ROOT / "hostfiles"
_GROUP = re.compile(r"#\s*group:\s*(.*?)\s*$")
_HOST = re.compile(r"(?:\w+@)?([A-Za-z0-9](?:[\w.-]*\w)?)")
# Open MPI accepts three spellings of max_slots.
_KEYS = {
    "slots": "slots",
    "max_slots": "max_slots",
    "max-slots": "max_slots",
    "slots_max": "max_slots",
}
_EXAMPLE = "write e.g. 'n1 slots=4'"


def expand(text: str) -> list[str]:
    """The names in a host list: "n[08-10]" -> ["n08", "n09", "n10"]; "csews[1-3,7]", "n1".

    Numbers keep their leading zeros. Raises InputError for anything else.
    """
    if "[" not in text and "]" not in text:
        return [text]
    listed = _LIST.fullmatch(text)
    if listed is None:
        raise InputError(f"{text!r}: only one pair of [ ] is supported; write e.g. 'n[1-4]'")
    before, numbers, behind = listed.groups()
    found = []
    for word in numbers.split(","):
        first, last = _ends(word, text)
        if int(last) - int(first) >= MOST:
            raise InputError(f"{text!r}: more than {MOST} hosts; write a smaller range")
        found += [
            f"{before}{number:0{len(first)}}{behind}" for number in range(int(first), int(last) + 1)
        ]
    return found


def _ends(word: str, text: str) -> tuple[str, str]:
    """("1", "4") for "1-4", ("7", "7") for "7"."""
    ends = _RANGE.fullmatch(word)
    if ends is None:
        raise InputError(f"{text!r}: {word!r} is not a range of numbers; write e.g. 'n[1-3,7]'")
    first, last = ends[1], ends[2] or ends[1]
    if int(first) > int(last):
        raise InputError(f"{text!r}: {first} is above {last}; write 'n[{last}-{first}]'")
    return first, last


@dataclass(frozen=True)
class Host:
    """A computer, and how many ranks it takes.

    slots      None if the file gives no number: Open MPI uses the number of cores.
    max_slots  the most ranks when oversubscribed; None: any number.
    group      name of the group of nearby hosts (a switch, a rack); "" if there is none.
    """

    name: str
    slots: int | None = None
    max_slots: int | None = None
    group: str = ""

    @property
    def known_slots(self) -> int:
        """The slots of the host; InputError if the file does not give their number."""
        if self.slots is None:
            raise InputError(f"{self.name} has no number of slots; {_EXAMPLE}")
        return self.slots


@dataclass(frozen=True)
class Hostfile:
    """The hosts of a file, each once, in file order; `lines` holds the host of every line."""

    name: str
    hosts: tuple[Host, ...]
    lines: tuple[int, ...]

    @property
    def slots(self) -> list[int]:
        """Slots of each host: list of int. InputError if the file omits one."""
        found = []
        for host in self.hosts:
            if host.slots is None:
                raise InputError(
                    f"{self.name}: {host.name} has no number of slots, so it gets one per core, a "
                    f"number that is not known before mpirun runs; {_EXAMPLE}"
                )
            found.append(host.slots)
        return found

    def placement(self, ranks: int | None = None, policy: str = "slot") -> list[int]:
        """The host of each rank, as indices into `hosts`: list of int; default: all slots."""
        if policy == "seq":
            return _line_by_line(self, len(self.lines) if ranks is None else ranks)
        return placement(self.slots, sum(self.slots) if ranks is None else ranks, policy)

    def names(self, ranks: int | None = None, policy: str = "slot") -> list[str]:
        """The name of the host of each rank."""
        return [self.hosts[place].name for place in self.placement(ranks, policy)]


def read(path: Path | str) -> Hostfile:
    """Read the Hostfile at `path`; a bare name ("two-groups.txt") is searched in hostfiles/.

    Raises InputError as 'FILE:LINE: what is wrong; what to write'.
    """
    path = find(path)
    text = read_text(path, f"the kit's are in {FOLDER}", "a hostfile")
    return parse(text, f"hostfiles/{path.name}" if path.parent == FOLDER else str(path))


def find(path: Path | str) -> Path:
    """The Path of a hostfile; a bare name not in the current folder is searched in hostfiles/."""
    path = Path(path)
    if not path.exists() and path.name == str(path) and (FOLDER / path).exists():
        return FOLDER / path
    return path


def parse(text: str, name: str = "hostfile") -> Hostfile:
    """The Hostfile in a text; `name` appears in messages. Raises InputError as `read` does."""
    hosts: dict[str, Host] = {}
    lines, group = [], ""
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
                f"{where}: {host.name} is already listed. Name it once, with all its slots "
                "('n1 slots=4'), or once for each slot and without 'slots='"
            )
        if twin is not None and twin.group != host.group:
            raise InputError(
                f"{where}: {host.name} is already in the group {twin.group!r}; a host belongs to "
                "one group"
            )
        hosts[host.name] = host
        lines.append(host.name)
    if not hosts:
        raise InputError(f"{name}: it names no host; {_EXAMPLE}")
    listed = Counter(lines)
    places = {host: place for place, host in enumerate(hosts)}
    return Hostfile(
        name,
        tuple(_with_slots_of_lines(host, listed[host.name]) for host in hosts.values()),
        tuple(places[host] for host in lines),
    )


def placement(slots: Iterable[int], ranks: int, policy: str) -> list[int]:
    """The host of each of `ranks` ranks: list of indices into `slots`, the slots of each host.

    policy   "slot": fill a host before the next; "node": deal one rank to each host in turn,
             skipping full hosts.

    Raises InputError for more ranks than slots. (So does Open MPI, unless told to oversubscribe.
    By node, it also rejects some jobs whose hosts differ greatly in size, such as slots 1 and 3;
    this function continues to deal.)
    """
    slots = list(slots)
    if any(number < 0 for number in slots):
        raise InputError(f"slots={slots}: give 0 or more slots for each host")
    if not 0 <= ranks <= sum(slots):
        raise InputError(
            f"ranks={ranks}: there are {sum(slots)} slots on {len(slots)} hosts; ask for fewer "
            "ranks, or give the hosts more slots"
        )
    if policy == "slot":
        return [host for host, number in enumerate(slots) for _ in range(number)][:ranks]
    if policy != "node":
        raise InputError(
            f"policy={policy!r}: use 'slot' or 'node'; 'seq' needs a complete hostfile"
        )
    dealt: list[int] = []
    turn = 0
    while len(dealt) < ranks:
        dealt += [host for host, number in enumerate(slots) if turn < number]
        turn += 1
    return dealt[:ranks]


def host_changes(hosts_of_ranks: Sequence[object]) -> int:
    """The number of neighbor pairs, rank r and r + 1, on two different hosts."""
    pairs = zip(hosts_of_ranks, hosts_of_ranks[1:], strict=False)
    return sum(one != other for one, other in pairs)


def _words(line: str) -> list[str]:
    """The words of a line without its comment; 'slots = 4' is one word, as in Open MPI."""
    return re.sub(r"\s*=\s*", "=", line.split("#", 1)[0]).split()


def _host(words: list[str], group: str, where: str) -> Host:
    host, *options = words
    if host.startswith(("^", "+")):
        raise InputError(
            f"{where}: {host!r} excludes hosts or counts them, which works only inside a batch "
            f"job; name the host, {_EXAMPLE}"
        )
    named = _HOST.fullmatch(host)
    if named is None:
        raise InputError(f"{where}: {host!r} is not a valid host name; {_EXAMPLE}")
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


def _with_slots_of_lines(host: Host, listed: int) -> Host:
    """The host; if it is listed several times without slots, it gets one for each line."""
    if host.slots is not None or listed == 1:
        return host
    return Host(host.name, listed, host.max_slots, host.group)


def _line_by_line(hostfile: Hostfile, ranks: int) -> list[int]:
    if not 0 <= ranks <= len(hostfile.lines):
        raise InputError(
            f"ranks={ranks} with policy 'seq': {hostfile.name} names {len(hostfile.lines)} hosts; "
            "it needs one line for each rank"
        )
    return list(hostfile.lines[:ranks])
