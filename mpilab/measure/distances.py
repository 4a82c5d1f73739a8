"""Measure how far apart two ranks are, and what a message costs at each distance.

`read_machine` finds the pairs of CPUs at each distance, `measure` runs ping-pongs between them, and
`fit_distances` fits Hockney, LogP or LogGP. A CPU is a hardware thread, as in the Linux kernel. The
distance of two CPUs is named after the smallest thing that they share:

    same core     two hardware threads of one core
    shared L2     cores with a common level 2 cache
    shared L3     cores with a common level 3 cache
    same socket   cores in one package, without a common cache
    other socket  cores of one machine, in two packages
    other host    two machines
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cluster.engines import asleep
from mpilab.errors import InputError, MpilabError, SetupError
from mpilab.kernels import build, openmpi
from mpilab.measure.dataset import processor
from mpilab.models.point_to_point import Hockney, LogGP, LogP, fit_hockney, fit_loggp, fit_logp
from mpilab.util import processes
from mpilab.util.units import plural

OTHER_HOST = "other host"
DISTANCES = ("same core", "shared L2", "shared L3", "same socket", "other socket", OTHER_HOST)
CPUS = Path("/sys/devices/system/cpu")
CGROUPS = Path("/sys/fs/cgroup")
SIZES = tuple(4**power for power in range(11))  # 1 B to 1 MiB
QUANTITIES = ("one_way", "send_overhead", "receive_overhead", "gap")
# One row per repetition; `seconds` for one message of `bytes` bytes (see distance.c).
ROW = np.dtype(
    [
        ("distance", "U16"),
        ("quantity", "U18"),
        ("bytes", "i8"),
        ("repetition", "i4"),
        ("seconds", "f8"),
    ]
)
MODELS = ("hockney", "logp", "loggp")

# The CPUs of this machine and what they share, from /sys/devices/system/cpu.


@dataclass(frozen=True)
class Cpu:
    """A CPU by its kernel number, and the CPUs that share its core, package and caches."""

    number: int
    core: frozenset[int]
    package: frozenset[int]
    caches: dict[int, frozenset[int]]  # by level; data or unified caches only


@dataclass(frozen=True)
class Machine:
    """The CPUs of a machine.

    cpus     those that the machine allows us to use, by number.
    usable   numbers of those that this process may run on.
    """

    cpus: dict[int, Cpu]
    usable: frozenset[int]

    def distance(self, one: int, other: int) -> str:
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
    def pairs(self) -> dict[str, tuple[int, int]]:
        """{distance: (CPU, CPU)}: the first pair of usable CPUs at each distance, nearest first."""
        found: dict[str, tuple[int, int]] = {}
        for one, other in combinations(sorted(self.usable & set(self.cpus)), 2):
            found.setdefault(self.distance(one, other), (one, other))
        return {name: found[name] for name in DISTANCES if name in found}

    def place(self, number: int) -> int:
        """The number of a CPU in hwloc, and so in mpirun's pe-list.

        Unlike the kernel, hwloc numbers hardware threads along the tree of packages, caches and
        cores, each sorted by its first CPU.
        """
        return sorted(self.cpus, key=self._way).index(number)

    def _way(self, number: int) -> tuple[int, ...]:
        cpu = self.cpus[number]
        levels = sorted(cpu.caches, reverse=True)
        around = [cpu.package, *(cpu.caches[level] for level in levels), cpu.core]
        return *(min(group) for group in around), number


def read_machine(
    cpus: str | Path = CPUS,
    usable: Iterable[int] | None = None,
    allowed: Iterable[int] | None = None,
) -> Machine:
    """The Machine described by the files below `cpus`.

    usable    numbers of the CPUs to use; None: those that this process may run on.
    allowed   numbers of the CPUs of a container or Slurm job; None: those of its cgroup.

    Raises SetupError if there are no such files (on macOS).
    """
    cpus = Path(cpus)
    try:
        online = parse_list((cpus / "online").read_text(encoding="ascii"))
    except OSError as error:
        raise SetupError(
            f"{cpus / 'online'}: cannot be read ({error.strerror}), so distances between cores are "
            "unknown. Only Linux reports them; measure on a Linux machine."
        ) from None
    if allowed is None:
        allowed = _cgroup_cpus()
    known = online if allowed is None else online & frozenset(allowed)
    usable = os.sched_getaffinity(0) if usable is None else usable
    return Machine({one: _read_cpu(cpus, one) for one in sorted(known)}, frozenset(usable))


def parse_list(text: str) -> frozenset[int]:
    """The numbers in a list in the kernel's format: '0-3,8' is {0, 1, 2, 3, 8}."""
    numbers: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def _read_cpu(cpus: Path, number: int) -> Cpu:
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


def _first_list(folder: Path, names: Iterable[str]) -> frozenset[int] | None:
    """The list in the first of these files that exists: older kernels use other names."""
    for name in names:
        if (folder / name).is_file():
            return parse_list((folder / name).read_text(encoding="ascii"))
    return None


def _cgroup_cpus() -> frozenset[int] | None:
    """The CPUs of this process's cgroup (version 2); None if there is none."""
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


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


# Ping-pongs, overheads and gaps between two ranks at each distance
# (src_c/programs/bench/distance.c). mpirun binds the ranks to two CPUs with the options shown to
# students (`pe-list=A,B:ordered`), and the program reports where they really ran.


def measure(
    *,
    sizes: Sequence[int] = SIZES,
    repetitions: int = 30,
    distances: Iterable[str] | None = None,
    hostfile: str | Path | None = None,
    limit: float = 300.0,
) -> NDArray[Any]:
    """Measure two ranks at every available distance: a table of ROW.

    sizes        bytes, each once.
    repetitions  of each number; each is a mean over as many messages as fit into about 0.2 ms.
    distances    names of those to measure (DISTANCES); None: all that this machine has, and
                 "other host" if there is a hostfile.
    hostfile     for mpirun; the ranks of "other host" run on its first two hosts, unbound (two
                 emulated hosts share their cores: bound ranks would run on the same one).
    limit        seconds for each distance.

    Raises InputError for an unavailable distance, SetupError if mpirun does not place the ranks as
    requested, MpilabError for a run that fails or takes longer than `limit`, ClusterError if a
    notebook's ranks compute meanwhile (mpilab.cluster.engines.asleep).
    """
    _check(sizes, repetitions)
    machine = read_machine()
    known = [*machine.pairs, *([OTHER_HOST] if hostfile else [])]
    names = known if distances is None else list(distances)
    for name in names:
        if name not in known:
            raise InputError(
                f"distance {name!r}: not here, where there {'is' if len(known) == 1 else 'are'} "
                f"{', '.join(known) or 'none, with one CPU to run on'}; of {', '.join(DISTANCES)}, "
                "the last one needs a hostfile."
            )
    if not names:
        raise InputError(
            "distances: this process may run on only one CPU; give it two (taskset, the "
            "container's cpus), or a hostfile."
        )
    program = [str(build.need(build.DISTANCE_PROGRAM)), str(repetitions), *map(str, sizes)]
    rows = []
    with asleep():
        for name in names:
            options = (
                other_host_options(hostfile)
                if hostfile is not None and name == OTHER_HOST
                else pair_options(machine, machine.pairs[name])
            )
            said = _run([openmpi.tool("mpirun"), "-n", "2", *options, *program], name, limit)
            _check_places(said, name, machine.pairs.get(name))
            rows += [(name, *row) for row in parse(said)]
    return np.array(rows, ROW)


def where(machine: Machine | None = None) -> str:
    """Where `measure` takes its times: 'measured on AMD EPYC, 2 cores, 2 ranks'.

    machine   default: this one.
    """
    machine = machine or read_machine()
    cores = len(machine.usable & set(machine.cpus))
    return f"measured on {processor()}, {plural(cores, 'core')}, 2 ranks"


def pair_options(machine: Machine, pair: tuple[int, int]) -> list[str]:
    """mpirun's options for rank 0 on the first CPU of `pair`, rank 1 on the second.

    pe-list uses hwloc's numbers; with `hwtcpus`, they are those of hardware threads.
    """
    return _on_cpus(machine, pair)


def _on_cpus(machine: Machine, cpus: Sequence[int]) -> list[str]:
    places = ",".join(str(machine.place(cpu)) for cpu in cpus)
    return ["--map-by", f"pe-list={places}:ordered:hwtcpus", "--bind-to", "hwthread"]


def bound_options(ranks: int, machine: Machine | None = None) -> list[str]:
    """mpirun's options that bind each rank to a CPU of its own; [] if there are too few CPUs.

    Different cores come first: two ranks share a core only if there are more ranks than cores.
    machine   default: this one.
    """
    machine = machine or read_machine()
    usable = sorted(machine.usable & set(machine.cpus))
    if ranks > len(usable):
        return []

    def threads_before(cpu: int) -> int:
        return sum(other in machine.cpus[cpu].core for other in usable if other < cpu)

    chosen = sorted(usable, key=lambda cpu: (threads_before(cpu), cpu))[:ranks]
    return _on_cpus(machine, chosen)


def other_host_options(hostfile: str | Path) -> list[str]:
    """mpirun's options for two ranks on two hosts of `hostfile`."""
    return ["--hostfile", str(hostfile), "--map-by", "node", "--bind-to", "none"]


def parse(said: str) -> list[tuple[str, int, int, float]]:
    """List of (quantity, bytes, repetition, seconds) from the program's output, in its order."""
    rows = []
    for line in said.splitlines():
        words = line.split()
        if words and words[0] in QUANTITIES:
            quantity, size, repetition, nanoseconds = words
            rows.append((quantity, int(size), int(repetition), float(nanoseconds) / 1e9))
    return rows


def _check(sizes: Sequence[int], repetitions: int) -> None:
    if not sizes or any(size < 0 or size >= 1 << 31 for size in sizes):
        raise InputError(f"sizes={sizes}: give one or more, from 0 to {(1 << 31) - 1} bytes.")
    if len(set(sizes)) < len(sizes):
        raise InputError(f"sizes={sizes}: one occurs twice; give each once.")
    if repetitions < 1:
        raise InputError(f"repetitions={repetitions}: give 1 or more.")


def _check_places(said: str, name: str, pair: tuple[int, int] | None) -> None:
    """Raise an error if the ranks ran elsewhere: their times would belong to another distance."""
    places = [line.split()[2:] for line in said.splitlines() if line.startswith("at ")]
    hosts = [words[0] for words in places]
    if len(places) != 2:
        raise MpilabError(f"distance {name!r}: the program did not report its place:\n{said}")
    if pair is None:
        if hosts[0] == hosts[1]:
            raise SetupError(
                f"distance {name!r}: both ranks ran on {hosts[0]}; name two hosts in the hostfile."
            )
        return
    cpus = [frozenset(map(int, words[1:])) for words in places]
    if cpus != [frozenset((cpu,)) for cpu in pair]:
        raise SetupError(
            f"distance {name!r}: ranks 0 and 1 were to run on CPUs {pair[0]} and {pair[1]}, but "
            f"mpirun ran them on {sorted(cpus[0])} and {sorted(cpus[1])}; check the output of "
            "'mpirun --display bind', and the environment for PRTE_MCA settings."
        )


def _run(command: list[str], name: str, limit: float) -> str:
    with tempfile.TemporaryDirectory(prefix="mpilab-distance-") as scratch:
        said = processes.run(
            command, limit, environment=openmpi.environment(2) | {"TMPDIR": scratch}
        )
    if said.code is None:
        raise MpilabError(
            f"distance {name!r}: not finished after {limit:g} s; use fewer sizes or repetitions, "
            f"or a higher limit: {' '.join(command)}"
        )
    if said.code != 0:
        raise MpilabError(
            f"distance {name!r}: {' '.join(command)} ended with {said.code}:\n"
            f"{said.stderr.strip()[-2000:]}"
        )
    return said.stdout


# Models fitted to a table of ROW.


def fit_distances(table: NDArray[Any], model: str = "hockney") -> dict[str, Hockney | LogP | LogGP]:
    """{distance: Hockney, LogP or LogGP} of a table of ROW.

    model   "hockney", "logp" or "loggp".

    Lines (Hockney's and LogGP's) are fitted to the medians of the repetitions at each size; their
    standard errors show how far the medians are from a line, which is more than noise if larger
    messages use another protocol. LogP's numbers are medians over repetitions.

    Raises InputError for any other name, and for a table without the rows that the model needs.
    """
    if model not in MODELS:
        raise InputError(f"model={model!r}; use one of {', '.join(MODELS)}.")
    missing = set(ROW.names or ()) - set(table.dtype.names or ())
    if missing or len(table) == 0:
        raise InputError(
            "the table of distances is empty or of another kind; give what "
            "mpilab.distances.measure() returns."
        )
    return {
        name: _fit(table[table["distance"] == name], name, model)
        for name in dict.fromkeys(table["distance"].tolist())
    }


def _fit(rows: NDArray[Any], name: str, model: str) -> Hockney | LogP | LogGP:
    quantities = QUANTITIES[:1] if model == "hockney" else QUANTITIES
    for quantity in quantities:
        if not (rows["quantity"] == quantity).any():
            raise InputError(
                f"distance {name!r} has no rows of {quantity}, which {model} needs; measure it."
            )
    if model == "hockney":
        return fit_hockney(*_medians(rows, "one_way"))
    if model == "logp":
        one_way, send, receive, gap = (_all(rows, quantity) for quantity in QUANTITIES)
        return fit_logp(one_way, send, receive, gap)
    one_way, gap = (_medians(rows, quantity) for quantity in ("one_way", "gap"))
    send, receive = (_all(rows, f"{who}_overhead") for who in ("send", "receive"))
    return fit_loggp(one_way, send, receive, gap)


def _all(rows: NDArray[Any], quantity: str) -> tuple[NDArray[Any], NDArray[Any]]:
    chosen = rows[rows["quantity"] == quantity]
    return chosen["bytes"], chosen["seconds"]


def _medians(rows: NDArray[Any], quantity: str) -> tuple[NDArray[Any], NDArray[Any]]:
    sizes, seconds = _all(rows, quantity)
    different = np.unique(sizes)
    return different, np.array([np.median(seconds[sizes == size]) for size in different])
