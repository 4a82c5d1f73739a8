"""Time collectives by level, flat ones and Open MPI's on emulated hosts: a table for lab 04.

    python -m mpilab.measure.by_level data/by-level-four-groups.csv     measure, write the file

Lab 04 shows the file where hosts cannot be emulated. Ranks run in three orders on the cluster
four-groups: real Open MPI and real TCP over shaped links. Each row is one repetition, from the
first rank's entry to the last rank's exit.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from mpilab.cases.case import Case, collective_of
from mpilab.errors import InputError, MpilabError
from mpilab.hosts import description
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.links import lower_bound
from mpilab.hosts.orders import order
from mpilab.hosts.places import Levels
from mpilab.hosts.platforms import platform
from mpilab.kernels.build import KERNELS as KERNELS_LIBRARY
from mpilab.kernels.build import need
from mpilab.kernels.simgrid import kernels as simulated_kernels
from mpilab.measure.dataset import Dataset, stamp
from mpilab.measure.timing import HAN, HOSTS_LIMIT_S, NO_HAN, Timed, time_on
from mpilab.models import declared, least_seconds
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.runners.simgrid import seconds_of, simulate

CLUSTER = "four-groups"
ORDERS = ("seq", "rr", "shuffled")
RECORDING_LIMIT_S = 60.0
KERNELS = {
    "bcast": (
        "binomial",
        "node",
        "group",
        "node_group",
        "rank_order",
        "pipelined",
        "multilane",
        "circulant",
    ),
    "reduce": ("binomial", "node", "group", "node_group", "rank_order", "pipelined"),
    "gather": ("linear", "binomial", "node", "group", "node_group", "rank_order", "pipelined"),
    "alltoallv": ("linear", "leaders", "gathervs", "multilane"),
}
# Bytes of the message in a bcast and reduce, otherwise of a block.
_LONG = (16 << 10, 256 << 10, 2 << 20)
SIZES = {"bcast": _LONG, "reduce": _LONG, "gather": _LONG, "alltoallv": (16, 1 << 10, 16 << 10)}
TABLE = Dataset(
    "by-level-four-groups.csv",
    columns=(
        "date machine cluster collective kernel order groups nodes ppn ranks bytes repetition "
        "seconds"
    ),
    example="2026-11-21,a machine,four-groups,bcast,bcast_node,rr,4,8,2,16,16384,1,0.003",
    program="mpilab.measure.by_level",
)
ROW = TABLE.row
read, write = TABLE.read, TABLE.write


def names(collective: str) -> list[str]:
    """The kernels compared for a collective: ours, then Open MPI's with and without coll/han."""
    return [f"{collective}_{name}" for name in (*KERNELS[collective], HAN, NO_HAN)]


def measure(
    collectives: Sequence[str] = tuple(KERNELS),
    sizes: Mapping[str, Sequence[int]] | None = None,
    orders: Sequence[str] = ORDERS,
    repetitions: int = 7,
    own: Mapping[str, Path] | None = None,
    progress: bool = False,
    limit: float = HOSTS_LIMIT_S,
) -> list[Timed]:
    """Time `names` of the collectives on the hosts of CLUSTER; list of Timed. All take minutes.

    sizes   {collective: bytes}; default: SIZES.
    own     {kernel: shared object} of further kernels to time that are not the kit's.
    limit   seconds for all repetitions of a kernel at one size.

    Raises SetupError if hosts cannot be emulated, MpilabError if a kernel fails.
    """
    sizes = SIZES if sizes is None else sizes
    with EmulatedHosts(CLUSTER) as hosts:
        return [
            one
            for collective, library, kernels in _runs(collectives, own or {})
            for one in time_on(
                hosts,
                collective,
                names=kernels,
                sizes=sizes[collective],
                orders=orders,
                repetitions=repetitions,
                library=library,
                progress=progress,
                limit=limit,
            )
        ]


def _runs(
    collectives: Iterable[str], own: Mapping[str, Path]
) -> Iterator[tuple[str, Path | None, list[str]]]:
    """Yield (collective, shared object or None for the kit's, kernels)."""
    for collective in collectives:
        yield collective, None, names(collective)
        for kernel, library in own.items():
            if kernel.startswith(f"{collective}_"):
                yield collective, library, [kernel]


def rows_of(timed: Iterable[Timed], cluster: str = CLUSTER) -> NDArray[Any]:
    """Timed objects measured today on this machine, as an array of ROW."""
    about = *stamp(), cluster
    return TABLE.array(
        (
            *about,
            one.collective,
            one.kernel,
            one.order,
            one.levels.groups,
            one.levels.nodes,
            one.levels.most_on_a_node,
            len(one.levels.places),
            one.bytes,
            number,
            seconds,
        )
        for one in timed
        for number, seconds in enumerate(one.seconds, start=1)
    )


def timed_of(rows: NDArray[Any]) -> list[Timed]:
    """Rows as a list of Timed; shuffled orders have seed 1.

    Raises InputError if a row's cluster is unknown or does not have the row's ranks or hosts.
    """
    seconds = defaultdict(list)
    for row in rows:
        at = tuple(row[list(TABLE.names[2:-2])].tolist())
        seconds[at].append(float(row["seconds"]))
    found, levels = [], {}
    for (cluster, collective, kernel, ordered, *shape, size), taken in seconds.items():
        where = (cluster, ordered, *shape)
        if where not in levels:
            levels[where] = _levels(*where)
        found.append(Timed(collective, kernel, ordered, levels[where], size, tuple(taken)))
    return found


def _levels(cluster: str, ordered: str, groups: int, nodes: int, ppn: int, ranks: int) -> Levels:
    described = description.read(cluster).part(ppn=ppn)
    levels = Levels(described.places(order(described, ordered, ranks=ranks)))
    if (levels.groups, levels.nodes) != (groups, nodes):
        raise InputError(
            f"{ranks} ranks on {cluster} in order {ordered} are on {levels.describe()}, not on "
            f"{nodes} nodes in {groups} groups; was its description changed? Measure again"
        )
    return levels


def bounds(timed: Iterable[Timed]) -> dict[tuple[str, str, int], float]:
    """Lower bounds from the links of CLUSTER: {(kernel, order, bytes): seconds}.

    A bound is the time that the busiest link needs for the bytes that it carries in a recording of
    the kernel, with ranks only assigned to these places. Open MPI's own kernels, whose messages are
    not recorded, and kernels that are not the kit's have no bound.

    Raises MpilabError if a kernel does not complete or its recording is incomplete.
    """
    cases = {}
    for one in timed:
        if one.kernel in declared.kernels_of(one.collective):
            datatype, element = collective_of(one.collective).timed_element
            cases[one.kernel, one.order, one.bytes] = Case(
                one.collective,
                len(one.levels.places),
                one.bytes // element,
                datatype,
                dump=False,
                places=one.levels.places,
                function=one.kernel,
            )
    described = description.read(CLUSTER)
    found = {}
    results = run_cases(need(KERNELS_LIBRARY), "", list(cases.values()), limit=RECORDING_LIMIT_S)
    for point, result in zip(cases, results, strict=True):
        recording = result.recording
        if result.outcome != DONE or recording is None or not recording.complete:
            said = result.hang or result.detail or "its recording is incomplete"
            raise MpilabError(
                f"{point[0]} with {result.case.describe()}: {result.outcome}: {said}; run it again "
                "when this machine is less busy"
            )
        found[point] = lower_bound(described, result.levels, recording.matrix()).seconds
    return found


def over_least(
    collective: str,
    order_name: str,
    size: int,
    *,
    names: Sequence[str] | None = None,
    segments: Sequence[int] = (0,),
) -> dict[tuple[str, int], float]:
    """How long our kernels take on the links of CLUSTER, as a multiple of the least time: a dict
    {(kernel, segment): simulated seconds over `mpilab.models.least_seconds`}.

    The second of two calls is timed, since the first one finds out where the ranks are. Simulated:
    the same on every machine.

    order_name   of the ranks (mpilab.hosts.orders); a shuffled order has seed 1.
    size         bytes of a block, or of the whole message in a bcast, reduce or allreduce.
    names        kernels; default: all of the collective.
    segments     bytes of a segment; 0 is the default of a kernel.

    Raises SetupError without SimGrid, MpilabError if a kernel fails.
    """
    on = platform(CLUSTER)
    hosts = order(on.description, order_name)
    least = least_seconds(collective, on, Levels(on.description.places(hosts)), size)
    datatype, element = collective_of(collective).timed_element
    cases = [
        Case(
            collective,
            len(hosts),
            size // element,
            datatype,
            segment=segment,
            record=False,
            dump=False,
            warmup=1,
            function=kernel,
        )
        for kernel in names or declared.kernels_of(collective)
        for segment in segments
    ]
    found = {}
    for result in simulate(simulated_kernels(), "", cases, on, order=hosts):
        case = result.case
        if result.outcome != DONE:
            raise MpilabError(
                f"{case.function} with {case.describe()} in a simulation: {result.outcome}: "
                f"{result.hang.describe() if result.hang else result.detail}"
            )
        found[case.function, case.segment] = seconds_of(result) / least
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and write the file."""
    file = TABLE.parser().parse_args(arguments).file
    write(rows_of(measure(progress=True)), file)


if __name__ == "__main__":
    TABLE.run(main)
