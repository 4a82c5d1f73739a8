"""Which CPUs of this machine share what, as Linux tells it in /sys/devices/system/cpu.

A CPU is what the kernel counts: a hardware thread. Two of them are at the distance of the smallest
thing that they share:

    same core     two hardware threads of one core
    shared L2     cores with a level 2 cache in common
    shared L3     cores with a level 3 cache in common
    same socket   cores in one package, without a common cache
    other socket  cores of one machine, in two packages
    other host    two machines
"""

import os
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path

from mpilab.errors import InputError, SetupError

OTHER_HOST = "other host"
DISTANCES = ("same core", "shared L2", "shared L3", "same socket", "other socket", OTHER_HOST)

CPUS = Path("/sys/devices/system/cpu")
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Cpu:
    """A CPU by its number in the kernel, and the CPUs that share something with it."""

    number: int
    core: frozenset[int]
    package: frozenset[int]
    caches: dict[int, frozenset[int]]  # by level; data or unified caches only


@dataclass(frozen=True)
class Machine:
    """The CPUs of a machine.

    cpus     of the machine, as far as it lets us use them; by number.
    usable   numbers of those that this process may run on.
    """

    cpus: dict[int, Cpu]
    usable: frozenset[int]

    def distance(self, one, other):
        """The name of the distance between two CPUs; InputError for the same one."""
        for number in (one, other):
            if number not in self.cpus:
                raise InputError(
                    f"CPU {number}: not on this machine, which has {_listed(self.cpus)}."
                )
        if one == other:
            raise InputError(f"CPU {one} and CPU {other} are the same; name two.")
        first = self.cpus[one]
        if other in first.core:
            return "same core"
        for level in (2, 3):
            if other in first.caches.get(level, ()):
                return f"shared L{level}"
        return "same socket" if other in first.package else "other socket"

    @cached_property
    def pairs(self):
        """{distance: (CPU, CPU)}: the first pair of usable CPUs at each distance, nearest first."""
        found = {}
        for one, other in combinations(sorted(self.usable & set(self.cpus)), 2):
            found.setdefault(self.distance(one, other), (one, other))
        return {name: found[name] for name in DISTANCES if name in found}

    def place(self, number):
        """The number that hwloc, and so mpirun's pe-list, has for a CPU.

        hwloc counts hardware threads not as the kernel does but along the tree of packages, caches
        and cores, each of which stands where its first CPU does.
        """
        return sorted(self.cpus, key=self._way).index(number)

    def _way(self, number):
        cpu = self.cpus[number]
        levels = sorted(cpu.caches, reverse=True)
        around = [cpu.package, *(cpu.caches[level] for level in levels), cpu.core]
        return *(min(group) for group in around), number


def read_machine(cpus=CPUS, usable=None, allowed=None):
    """The Machine that the files below `cpus` describe.

    usable    numbers of the CPUs to take; None: those that this process may run on.
    allowed   numbers of the CPUs that a container or Slurm job has; None: as its cgroup says.

    Raises SetupError where there are no such files (on macOS).
    """
    cpus = Path(cpus)
    try:
        online = parse_list((cpus / "online").read_text(encoding="ascii"))
    except OSError as error:
        raise SetupError(
            f"{cpus / 'online'}: cannot be read ({error.strerror}), so distances between cores are "
            "unknown. Only Linux tells them; measure on a Linux machine."
        ) from None
    if allowed is None:
        allowed = _cgroup_cpus()
    known = online if allowed is None else online & frozenset(allowed)
    usable = os.sched_getaffinity(0) if usable is None else usable
    return Machine({one: _read_cpu(cpus, one) for one in sorted(known)}, frozenset(usable))


def parse_list(text):
    """The numbers of a list as the kernel writes them: '0-3,8' is {0, 1, 2, 3, 8}."""
    numbers = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def _read_cpu(cpus, number):
    place = cpus / f"cpu{number}"
    alone = frozenset((number,))
    core = _first_list(place / "topology", ("core_cpus_list", "thread_siblings_list")) or alone
    package = _first_list(place / "topology", ("package_cpus_list", "core_siblings_list")) or core
    caches = {}
    for cache in sorted(place.glob("cache/index*")):
        if (cache / "type").read_text(encoding="ascii").strip() != "Instruction":
            level = int((cache / "level").read_text(encoding="ascii"))
            caches[level] = _first_list(cache, ("shared_cpu_list",)) or core
    return Cpu(number, core, package, caches)


def _first_list(folder, names):
    """The list in the first file of these that is there: older kernels have other names."""
    for name in names:
        if (folder / name).is_file():
            return parse_list((folder / name).read_text(encoding="ascii"))
    return None


def _cgroup_cpus():
    """The CPUs of this process's cgroup (version 2); None where there is none."""
    try:
        lines = Path("/proc/self/cgroup").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    path = next((line[3:] for line in lines if line.startswith("0::")), "/")
    here = CGROUPS / path.lstrip("/")
    for folder in (here, *here.parents):
        if folder.is_relative_to(CGROUPS) and (folder / "cpuset.cpus.effective").is_file():
            return parse_list((folder / "cpuset.cpus.effective").read_text(encoding="ascii"))
    return None


def _listed(numbers):
    return ", ".join(map(str, sorted(numbers)))
