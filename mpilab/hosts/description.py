"""Cluster descriptions: hosts with slots, their groups, and the bandwidth and latency of the links.

The description of a real cluster gives its groups; emulated hosts are built from a description.

    title = "Two switches with two hosts each"

    [links.host]              # between a host and the switch of its group
    rate = "1gbit"            # bit, kbit, mbit or gbit a second, in each direction
    latency = "0us"           # one way: ns, us, ms or s; 0 where it is left out

    [links.group]             # between the switch of a group and all others
    rate = "200mbit"

    [[group]]
    name = "left"
    hosts = ["n1", "n2"]      # or, for short, "n[1-2]", as in mpilab.hosts.hostfile
    slots = 2                 # ranks that each host takes, or a list with a number for each host

The *uplink* of a host is its link to the switch; that of a group leads from its switch to the rest.
A link without a rate is as fast as the machine allows.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

from mpilab.errors import InputError
from mpilab.hosts.hostfile import FOLDER, MOST, Host, expand
from mpilab.hosts.places import Place
from mpilab.util import units
from mpilab.util.files import read_text
from mpilab.util.text import suggestion
from mpilab.util.toml import Misplaced, loads, located, quoted, refuse_unknown, table_of, text_of

# The position of a value in a TOML table, as in mpilab.util.toml.
KeyPath = tuple[str | int, ...]

_KEYS = {"title", "links", "group"}
_LINKS = {"host", "group"}
_LINK_KEYS = {"rate", "latency"}
_GROUP_KEYS = {"name", "hosts", "slots"}
# A host name of a hostfile, without a user name; Open MPI and Slurm must know it, too.
_HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,253}[A-Za-z0-9_])?")


@dataclass(frozen=True)
class Link:
    """A link: `rate` in bits per second in each direction (None: as fast as the machine allows),
    and one-way `latency` in seconds."""

    rate: float | None = None
    latency: float = 0.0


@dataclass(frozen=True)
class Description:
    """The hosts of a cluster (mpilab.hosts.hostfile.Host, with slots and group), and their links.

    host_link    between a host and the switch of its group.
    group_link   between the switch of a group and all others.
    """

    name: str
    title: str
    hosts: tuple[Host, ...]
    host_link: Link = Link()
    group_link: Link = Link()

    @property
    def groups(self) -> dict[str, tuple[Host, ...]]:
        """The hosts of each group: {name: tuple of Host}, in the order of the file."""
        found: dict[str, list[Host]] = {}
        for host in self.hosts:
            found.setdefault(host.group, []).append(host)
        return {name: tuple(hosts) for name, hosts in found.items()}

    @property
    def alternating(self) -> tuple[Host, ...]:
        """The hosts, one of each group in turn: the first of each, then the second of each, …"""
        turns = zip_longest(*self.groups.values())
        return tuple(host for host in chain.from_iterable(turns) if host is not None)

    @property
    def slots(self) -> int:
        """The number of slots of the cluster."""
        return sum(host.known_slots for host in self.hosts)

    def places(self, names: Iterable[str]) -> tuple[Place, ...]:
        """The Place of each rank, from the name of each rank's host."""
        group = {host.name: host.group for host in self.hosts}
        for name in names:
            if name not in group:
                raise InputError(f"host {name!r}: not in {self.name}; it has {', '.join(group)}")
        return tuple(Place(name, group[name]) for name in names)

    def part(self, *, hosts: int | None = None, ppn: int | None = None) -> "Description":
        """The same cluster with fewer hosts, or with fewer slots on each.

        hosts   number of hosts, taken from each group in turn, beginning with its first host, which
                keeps as many groups as possible. The hosts keep their order.
        ppn     slots per host; a host with fewer keeps its number.

        Raises InputError if the cluster has fewer.
        """
        fullest = max(host.known_slots for host in self.hosts)
        hosts = len(self.hosts) if hosts is None else hosts
        ppn = fullest if ppn is None else ppn
        for name, number, most in (("hosts", hosts, len(self.hosts)), ("ppn", ppn, fullest)):
            if not 1 <= number <= most:
                raise InputError(f"{name}={number}: {self.name} has {most}; use 1 to {most}")
        kept = set(self.alternating[:hosts])
        return replace(
            self,
            hosts=tuple(
                replace(host, slots=min(host.known_slots, ppn))
                for host in self.hosts
                if host in kept
            ),
        )


def read(path: Path | str) -> Description:
    """Read the Description at `path`; a bare name such as "two-groups" is searched in hostfiles/.

    Raises InputError as 'FILE:LINE: what is wrong; what to write'.
    """
    path = find(path)
    known = sorted(file.stem for file in FOLDER.glob("*.toml"))
    remedy = f"the kit has {', '.join(known)}{suggestion(path.stem, known)}"
    text = read_text(path, remedy, "a cluster description")
    return parse(text, f"hostfiles/{path.name}" if path.parent == FOLDER else str(path))


def find(path: Path | str) -> Path:
    """The Path of a description, with or without '.toml'; a bare name that is not in the current
    folder is searched in hostfiles/."""
    path = Path(path)
    folders = [Path()] if path.name != str(path) else [Path(), FOLDER]
    for folder in folders:
        for file in (folder / path, folder / f"{path}.toml"):
            if file.is_file():
                return file
    return path


def parse(text: str, name: str = "description") -> Description:
    """The Description in a text. `name`, a path, appears in messages, and its stem names the
    cluster. Raises InputError as `read` does."""
    table = loads(text, name)
    with located(text, name):
        refuse_unknown(table, _KEYS, ())
        links = table_of(table, "links", ())
        refuse_unknown(links, _LINKS, ("links",))
        title = text_of(table, "title", (), "")
        host_link, group_link = _link(links, "host"), _link(links, "group")
        return Description(Path(name).stem, title, _hosts(table), host_link, group_link)


def as_text(description: Description) -> str:
    """The text that `parse` reads as this description, with the hosts sorted by group."""
    lines = []
    if description.title:
        lines += [f"title = {quoted(description.title)}", ""]
    for name, link in (("host", description.host_link), ("group", description.group_link)):
        if link == Link():
            continue
        lines.append(f"[links.{name}]")
        if link.rate is not None:
            lines.append(f'rate = "{units.as_text(link.rate, units.RATE)}"')
        lines += [f'latency = "{units.as_text(link.latency, units.TIME)}"', ""]
    for name, hosts in description.groups.items():
        slots = [host.slots for host in hosts]
        names = ", ".join(quoted(host.name) for host in hosts)
        lines += [
            "[[group]]",
            f"name = {quoted(name)}",
            f"hosts = [{names}]",
            f"slots = {slots[0] if len(set(slots)) == 1 else slots}",
            "",
        ]
    return "\n".join(lines)


def _hosts(table: dict[str, Any]) -> tuple[Host, ...]:
    """The Hosts of all groups, in the order of the file."""
    groups = table.get("group", [])
    if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
        raise Misplaced(("group",), "group is not a list of tables; write [[group]] above each")
    if not groups:
        raise Misplaced((), "there is no [[group]] in it; write one, with name and hosts")
    hosts, names = {}, set()
    for number, group in enumerate(groups):
        path = ("group", number)
        refuse_unknown(group, _GROUP_KEYS, path)
        name = text_of(group, "name", path)
        try:
            Place("-", name)
        except InputError as error:
            raise Misplaced((*path, "name"), str(error)) from None
        if name in names:
            raise Misplaced((*path, "name"), f"two groups have the name {name!r}; rename one")
        names.add(name)
        listed = _listed(group, path)
        for (host, place), slots in zip(listed, _slots(group, path, len(listed)), strict=True):
            if host in hosts:
                raise Misplaced(place, f"the host {host!r} is already listed; name each host once")
            hosts[host] = Host(host, slots, None, name)
    if len(hosts) > MOST:
        raise Misplaced(("group",), f"{len(hosts)} hosts; the kit supports up to {MOST}")
    return tuple(hosts.values())


def _listed(group: dict[str, Any], path: KeyPath) -> list[tuple[str, KeyPath]]:
    """The hosts of a group: list of (name, path of the value that names it)."""
    given, path = group.get("hosts", []), (*path, "hosts")
    entries = (
        [(text, (*path, i)) for i, text in enumerate(given)]
        if isinstance(given, list)
        else [(given, path)]
    )
    if not entries:
        raise Misplaced(
            path if "hosts" in group else path[:-1],
            'the group has no hosts; write e.g. hosts = ["n1", "n2"]',
        )
    return [(name, at) for text, at in entries for name in _names(text, at)]


def _names(text: object, path: KeyPath) -> list[str]:
    """The names in a host list such as "n[1-4]"."""
    if not isinstance(text, str):
        raise Misplaced(path, f'{text!r} is not a valid host name; write e.g. "n1" or "n[1-4]"')
    try:
        names = expand(text)
    except InputError as error:
        raise Misplaced(path, str(error)) from None
    for name in names:
        if not _HOST.fullmatch(name):
            raise Misplaced(
                path,
                f"{name!r} is not a valid host name; write letters, digits and "
                "_ . - with a letter or digit first",
            )
    return names


def _slots(group: dict[str, Any], path: KeyPath, hosts: int) -> list[int]:
    """The slots of each of the `hosts` hosts of a group: list of int."""
    given, path = group.get("slots", 1), (*path, "slots")
    numbers = given if isinstance(given, list) else [given] * hosts
    for place, number in enumerate(numbers):
        if type(number) is not int or not 1 <= number <= MOST:
            raise Misplaced(
                (*path, place) if isinstance(given, list) else path,
                f"slots = {number!r}: must be a whole number from 1 to {MOST}",
            )
    if len(numbers) != hosts:
        raise Misplaced(
            path,
            (
                f"slots for {len(numbers)} hosts instead of {hosts}; write one number for each, "
                "or a single one"
            ),
        )
    return numbers


def _link(links: dict[str, Any], name: str) -> Link:
    path = ("links", name)
    link = table_of(links, name, path[:1])
    refuse_unknown(link, _LINK_KEYS, path)
    found = Link()
    for key, table in (("rate", units.RATE), ("latency", units.TIME)):
        if key not in link:
            continue
        try:
            found = replace(found, **{key: units.read(link[key], table)})
        except InputError as error:
            raise Misplaced((*path, key), f"{key} = {error}") from None
    if found.rate == 0:
        raise Misplaced(
            (*path, "rate"),
            'rate: 0 lets nothing through; write e.g. "1gbit", or omit it for no limit',
        )
    return found
