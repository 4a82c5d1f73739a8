"""Ping-pongs, overheads and gaps between two ranks at each distance.

The program is src_c/bench/distance.c. mpirun binds its two ranks to two CPUs by the options that
students are shown (`pe-list=A,B:ordered`), and the program tells where they really ran.
"""

import tempfile

import numpy as np

from mpilab import build, openmpi, programs
from mpilab.distances.topology import DISTANCES, OTHER_HOST, read_machine
from mpilab.errors import InputError, MpilabError, SetupError

SIZES = tuple(4**power for power in range(11))  # 1 B to 1 MiB
QUANTITIES = ("one_way", "send_overhead", "receive_overhead", "gap")

# One row for each repetition; `seconds` for one message of `bytes` bytes (see distance.c).
ROW = np.dtype(
    [
        ("distance", "U16"),
        ("quantity", "U18"),
        ("bytes", "i8"),
        ("repetition", "i4"),
        ("seconds", "f8"),
    ]
)


def measure(*, sizes=SIZES, repetitions=30, distances=None, hostfile=None, limit=300.0):
    """Measure two ranks at every distance that there is: a table of ROW.

    sizes        bytes, each once.
    repetitions  of each number; each is a mean over as many messages as take about 0.2 ms.
    distances    names of those to measure (topology.DISTANCES); None: all that this machine has,
                 and "other host" where there is a hostfile.
    hostfile     as mpirun takes it; the ranks of "other host" go to its first two hosts, unbound
                 (two emulated hosts share their cores: bound ranks would meet on one).
    limit        seconds for each distance.

    Raises InputError for a distance that there isn't, SetupError where mpirun doesn't put ranks
    where it is told to, MpilabError for a run that fails or takes longer than `limit`.
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
                "the last one wants a hostfile."
            )
    if not names:
        raise InputError(
            "distances: this process may run on one CPU only, so there are no two ranks apart; "
            "give it two (taskset, the container's cpus), or a hostfile."
        )
    program = [str(build.need(build.DISTANCE_PROGRAM)), str(repetitions), *map(str, sizes)]
    rows = []
    for name in names:
        options = (
            other_host_options(hostfile)
            if name == OTHER_HOST
            else pair_options(machine, machine.pairs[name])
        )
        said = _run([openmpi.tool("mpirun"), "-n", "2", *options, *program], name, limit)
        _check_places(said, name, machine.pairs.get(name))
        rows += [(name, *row) for row in parse(said)]
    return np.array(rows, ROW)


def pair_options(machine, pair):
    """mpirun's options for rank 0 on the first CPU of `pair`, rank 1 on the second.

    pe-list counts as hwloc does, in hardware threads with `hwtcpus`.
    """
    places = ",".join(str(machine.place(cpu)) for cpu in pair)
    return ["--map-by", f"pe-list={places}:ordered:hwtcpus", "--bind-to", "hwthread"]


def other_host_options(hostfile):
    """mpirun's options for two ranks on two hosts of `hostfile`."""
    return ["--hostfile", str(hostfile), "--map-by", "node", "--bind-to", "none"]


def parse(said):
    """(quantity, bytes, repetition, seconds) of what the program printed, in its order."""
    rows = []
    for line in said.splitlines():
        words = line.split()
        if words and words[0] in QUANTITIES:
            quantity, size, repetition, nanoseconds = words
            rows.append((quantity, int(size), int(repetition), float(nanoseconds) / 1e9))
    return rows


def _check(sizes, repetitions):
    if not sizes or any(size < 0 or size >= 1 << 31 for size in sizes):
        raise InputError(f"sizes={sizes}: give one or more, from 0 to {(1 << 31) - 1} bytes.")
    if len(set(sizes)) < len(sizes):
        raise InputError(f"sizes={sizes}: one stands there twice; give each once.")
    if repetitions < 1:
        raise InputError(f"repetitions={repetitions}: give 1 or more.")


def _check_places(said, name, pair):
    """Ranks that are not where they should be would be measured under a wrong name."""
    places = [line.split()[2:] for line in said.splitlines() if line.startswith("at ")]
    hosts = [words[0] for words in places]
    if len(places) != 2:
        raise MpilabError(f"distance {name!r}: the program said nothing of its place:\n{said}")
    if pair is None:
        if hosts[0] == hosts[1]:
            raise SetupError(
                f"distance {name!r}: both ranks ran on {hosts[0]}; name two hosts in the hostfile."
            )
        return
    cpus = [frozenset(map(int, words[1:])) for words in places]
    if cpus != [frozenset((cpu,)) for cpu in pair]:
        raise SetupError(
            f"distance {name!r}: ranks 0 and 1 were to run on CPUs {pair[0]} and {pair[1]}, and "
            f"mpirun let them run on {sorted(cpus[0])} and {sorted(cpus[1])}; see what "
            "'mpirun --display bind' says, and whether the environment has other PRTE_MCA settings."
        )


def _run(command, name, limit):
    with tempfile.TemporaryDirectory(prefix="mpilab-distance-") as scratch:
        said = programs.run(command, limit,
                            environment=openmpi.environment(2) | {"TMPDIR": scratch})  # fmt: skip
    if said.code is None:
        raise MpilabError(
            f"distance {name!r}: no end after {limit:g} s; take fewer sizes or repetitions, or a "
            f"higher limit: {' '.join(command)}"
        )
    if said.code != 0:
        raise MpilabError(
            f"distance {name!r}: {' '.join(command)} ended with {said.code}:\n"
            f"{said.stderr.strip()[-2000:]}"
        )
    return said.stdout
