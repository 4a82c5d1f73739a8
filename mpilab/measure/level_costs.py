"""Measure what a message costs within a host, within a group and between groups.

    python -m mpilab.measure.level_costs data/distances-four-groups.csv     measure, write the file
    python -m mpilab.measure.level_costs my-cluster.csv --cluster slurm     in a job

The table, measured on emulated hosts or the nodes of a Slurm job, calibrates a simulated platform.
It contains ping-pongs, overheads and gaps of two ranks (src_c/programs/bench/distance.c), over the
same shaped links and with the same Open MPI settings as the collectives of
mpilab.measure.by_level. There, 16 ranks share the cores of this machine, so waiting ranks sleep
briefly, and so do these two. It takes about a minute.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from mpilab.cluster.location import hosts_of, placed
from mpilab.errors import InputError, MpilabError
from mpilab.hosts.description import Description
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.slurm import Allocation
from mpilab.kernels import build
from mpilab.measure.dataset import Dataset, stamp
from mpilab.measure.distances import parse
from mpilab.util import processes

CLUSTER = "four-groups"
LEVELS = ("node", "group", "world")
SIZES = tuple(4**power for power in range(11))  # 1 B to 1 MiB
SHORT_BYTES = 256  # up to this size, the cost of the bytes is negligible
REPETITIONS = 20
LIMIT_S = 120.0
# distance: one of LEVELS; quantity as in mpilab.measure.distances.
TABLE = Dataset(
    "distances-four-groups.csv",
    columns="date machine cluster distance:U16 quantity:U18 bytes repetition seconds",
    example="2026-11-21,a machine,four-groups,group,one_way,1024,0,6.1e-05",
    program="mpilab.measure.level_costs",
)
ROW = TABLE.row
read, write = TABLE.read, TABLE.write


def measure(
    cluster: str | Description = CLUSTER,
    sizes: Sequence[int] = SIZES,
    repetitions: int = REPETITIONS,
    *,
    progress: bool = False,
    limit: float = LIMIT_S,
) -> NDArray[Any]:
    """Measure two ranks at each of LEVELS that `cluster` has; array of ROW.

    cluster      a Description or the name of one; "slurm": the nodes of the current job.
    sizes        bytes; repetitions of each number, as in mpilab.measure.distances.
    limit        seconds for each level.

    Raises SetupError if hosts cannot be emulated, or outside a job; MpilabError for a run that
    fails or takes longer than `limit`.
    """
    if repetitions < 1:
        raise InputError(f"repetitions={repetitions}: must be 1 or more")
    about = stamp()
    rows = []
    with hosts_of(cluster) as hosts:
        for level, pair in tqdm(pairs(hosts.description).items(), disable=not progress):
            said = _run(hosts, pair, [str(repetitions), *map(str, sizes)], level, limit)
            rows += [(*about, hosts.description.name, level, *row) for row in parse(said)]
    return TABLE.array(rows)


def pairs(description: Description) -> dict[str, tuple[str, str]]:
    """{level: hosts of two ranks that far apart}, for those of LEVELS that exist."""
    hosts = description.hosts
    first = hosts[0]
    found = {
        "node": [first] if (first.slots or 1) > 1 else [],
        "group": [host for host in hosts[1:] if host.group == first.group],
        "world": [host for host in hosts if host.group != first.group],
    }
    return {level: (first.name, others[0].name) for level, others in found.items() if others}


def _run(
    hosts: EmulatedHosts | Allocation,
    pair: tuple[str, str],
    arguments: list[str],
    level: str,
    limit: float,
) -> str:
    where = placed(hosts, pair)
    program = [str(build.need(build.DISTANCE_PROGRAM)), *arguments]
    said = processes.run(
        where.command([*where.mpirun(2), *program]),
        limit,
        environment=where.environment(hosts.description.slots),
    )
    if said.code is None:
        raise MpilabError(
            f"distance {level!r} on {hosts.name}: not finished after {limit:g} s; use fewer sizes "
            "or repetitions, or try again when this machine is less busy"
        )
    if said.code != 0:
        raise MpilabError(f"distance {level!r} on {hosts.name}: {processes.trouble(said)}")
    return said.stdout


def costs(rows: NDArray[Any]) -> tuple[dict[str, tuple[float, float]], float]:
    """Arguments of mpilab.hosts.platforms.calibrated: ({level: (α, β)}, overhead), in seconds and,
    for β, seconds per byte.

    α   median one-way time of messages of up to SHORT_BYTES.
    β   (T - α) / n, where T is the median one-way time of the longest messages, of n bytes; T - α
        is taken as at least T / 2, because α comes from other messages. A line through all sizes
        would underestimate the time: a shaped link lets some kilobytes through before it limits the
        rate.
    overhead   mean of the median times that MPI_Isend and MPI_Recv of short messages between hosts
        keep a rank busy.

    Raises InputError for rows of two clusters, and for a level that lacks a required quantity.
    """
    if len(names := np.unique(rows["cluster"])) != 1:
        raise InputError(f"distances of {len(names)} clusters; give those of one")
    short = rows["bytes"] <= SHORT_BYTES
    longest = rows["bytes"].max()
    found = {}
    for level in dict.fromkeys(rows["distance"].tolist()):
        here = rows["distance"] == level
        alpha = _median(rows[here & short], "one_way", level)
        taken = _median(rows[here & (rows["bytes"] == longest)], "one_way", level)
        found[level] = (alpha, float(max(taken - alpha, taken / 2) / longest))
    between = rows[short & (rows["distance"] != "node")]
    busy = [_median(between, f"{who}_overhead", "group, world") for who in ("send", "receive")]
    return found, sum(busy) / 2


def _median(rows: NDArray[Any], quantity: str, level: str) -> float:
    seconds = rows["seconds"][rows["quantity"] == quantity]
    if len(seconds) == 0:
        raise InputError(f"distance {level!r}: no rows of {quantity}; measure it")
    return float(np.median(seconds))


def as_text(rows: NDArray[Any]) -> str:
    """The result of `costs` as a Markdown table."""
    words = {"node": "two ranks of a host", "group": "two hosts of a group", "world": "two groups"}
    found, overhead = costs(rows)
    lines = ["| between | α | 1/β | a rank is busy |", "|---|---:|---:|---:|"]
    lines += [
        f"| {words[level]} | {alpha * 1e6:.0f} µs | {8e-6 / beta:.0f} Mbit/s "
        f"| {overhead * 1e6:.1f} µs |"
        for level, (alpha, beta) in found.items()
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the file."""
    parser = TABLE.parser()
    parser.add_argument(
        "--cluster",
        default=CLUSTER,
        help=f"a description to emulate, or 'slurm' in a job (default: {CLUSTER})",
    )
    parser.add_argument(
        "--repetitions", type=int, default=REPETITIONS, metavar="N", help=f"default: {REPETITIONS}"
    )
    options = parser.parse_args(arguments)
    write(measure(options.cluster, repetitions=options.repetitions, progress=True), options.file)


if __name__ == "__main__":
    TABLE.run(main)
