"""Collectives by level against flat ones and Open MPI's, timed on emulated hosts: the file that lab
04 shows where hosts cannot be emulated.

    python -m mpilab.measured_by_level data/by-level-four-groups.csv     measure, write the file

Ranks in three orders on the cluster four-groups: real Open MPI and real TCP over shaped links. Each
row is one repetition, from the first rank's entry to the last one's exit.
"""

import sys
from collections import defaultdict
from datetime import UTC, datetime

import numpy as np

from mpilab import descriptions, promises, published_csv
from mpilab.build import KERNELS as KERNELS_LIBRARY
from mpilab.build import need
from mpilab.errors import InputError, MpilabError
from mpilab.expected import collective_of
from mpilab.harness import Case
from mpilab.launch import run_cases
from mpilab.links import lower_bound
from mpilab.onhosts import LIMIT_S, time_on
from mpilab.orders import order
from mpilab.places import Levels
from mpilab.result import DONE
from mpilab.timed import HAN, NO_HAN, Timed

CLUSTER = "four-groups"
MEASURED_CSV = published_csv.DATA / "by-level-four-groups.csv"
ORDERS = ("seq", "rr", "shuffled")
RECORDING_LIMIT_S = 60.0
KERNELS = {
    "bcast": ("binomial", "node", "group", "node_group", "rank_order", "pipelined", "multilane",
              "circulant"),
    "reduce": ("binomial", "node", "group", "node_group", "rank_order", "pipelined"),
    "gather": ("linear", "binomial", "node", "group", "node_group", "rank_order", "pipelined"),
    "alltoallv": ("linear", "leaders", "gathervs", "multilane"),
}  # fmt: skip
# Bytes: of the message in a bcast and reduce, else of a block.
_LONG = (16 << 10, 256 << 10, 2 << 20)
SIZES = {"bcast": _LONG, "reduce": _LONG, "gather": _LONG, "alltoallv": (16, 1 << 10, 16 << 10)}
# ppn: ranks of the fullest host.
ROW = np.dtype([
    ("date", "U10"), ("machine", "U160"), ("cluster", "U40"), ("collective", "U16"),
    ("kernel", "U40"), ("order", "U12"), ("groups", "i4"), ("nodes", "i4"), ("ppn", "i4"),
    ("ranks", "i4"), ("bytes", "i8"), ("repetition", "i4"), ("seconds", "f8"),
])  # fmt: skip
_EXAMPLE = "2026-11-21,a machine,four-groups,bcast,bcast_node,rr,4,8,2,16,16384,1,0.003"


def names(collective):
    """The kernels of a collective that are compared: ours, then Open MPI's own twice."""
    return [f"{collective}_{name}" for name in (*KERNELS[collective], HAN, NO_HAN)]


def measure(collectives=tuple(KERNELS), sizes=None, orders=ORDERS, repetitions=7, own=None,
            progress=False, limit=LIMIT_S):  # fmt: skip
    """Time `names` of the collectives on the hosts of CLUSTER; list of Timed. All takes minutes.

    sizes   {collective: bytes}; default: SIZES.
    own     {kernel: shared object} of kernels that are not the kit's, to be timed as well.
    limit   seconds that a kernel may take for a size, with all its repetitions.

    Raises SetupError where hosts cannot be emulated, MpilabError where a kernel does not end well.
    """
    from mpilab.emulated import EmulatedHosts

    sizes = SIZES if sizes is None else sizes
    with EmulatedHosts(CLUSTER) as hosts:
        return [
            one
            for collective, library, kernels in _runs(collectives, own or {})
            for one in time_on(
                hosts, collective, names=kernels, sizes=sizes[collective], orders=orders,
                repetitions=repetitions, library=library, progress=progress, limit=limit)
        ]  # fmt: skip


def _runs(collectives, own):
    """(collective, shared object or None for the kit's, kernels)."""
    for collective in collectives:
        yield collective, None, names(collective)
        for kernel, library in own.items():
            if kernel.startswith(f"{collective}_"):
                yield collective, library, [kernel]


def rows_of(timed, cluster=CLUSTER):
    """Timed of today, on this machine, as an array of ROW."""
    from mpilab.bench import machine

    about = datetime.now(UTC).date().isoformat(), machine(), cluster
    return np.array(
        [
            (*about, one.collective, one.kernel, one.order, one.levels.groups, one.levels.nodes,
             one.levels.most_on_a_node, len(one.levels.places), one.bytes, number, seconds)
            for one in timed
            for number, seconds in enumerate(one.seconds, start=1)
        ],
        dtype=ROW,
    )  # fmt: skip


def timed_of(rows):
    """Rows as a list of Timed; shuffled orders have seed 1.

    Raises InputError where a row's cluster is not known, or has not its ranks or hosts.
    """
    seconds = defaultdict(list)
    for row in rows:
        at = tuple(row[list(ROW.names[2:-2])].tolist())
        seconds[at].append(float(row["seconds"]))
    found, levels = [], {}
    for (cluster, collective, kernel, ordered, *shape, size), taken in seconds.items():
        where = (cluster, ordered, *shape)
        if where not in levels:
            levels[where] = _levels(*where)
        found.append(Timed(collective, kernel, ordered, levels[where], size, tuple(taken)))
    return found


def _levels(cluster, ordered, groups, nodes, ppn, ranks):
    described = descriptions.read(cluster).part(ppn=ppn)
    levels = Levels(described.places(order(described, ordered, ranks=ranks)))
    if (levels.groups, levels.nodes) != (groups, nodes):
        raise InputError(
            f"{ranks} ranks on {cluster} in order {ordered} are on {levels.describe()}, not on "
            f"{nodes} nodes in {groups} groups; was its description changed? Measure again"
        )
    return levels


def bounds(timed):
    """What the links of CLUSTER allow at best: {(kernel, order, bytes): seconds}.

    It is the time that the busiest link needs for the bytes that it carries in a recording of the
    kernel, with ranks that pretend to be there. Open MPI's own kernels, whose messages are not
    recorded, and those that are not the kit's are not in it.

    Raises MpilabError where a kernel does not come to its end, or its recording is not whole.
    """
    cases = {}
    for one in timed:
        if one.kernel in promises.kernels_of(one.collective):
            element = 4 if collective_of(one.collective).reduces else 1
            cases[one.kernel, one.order, one.bytes] = Case(
                one.collective, len(one.levels.places), one.bytes // element,
                "int" if element == 4 else "byte", dump=False, places=one.levels.places,
                function=one.kernel)  # fmt: skip
    described = descriptions.read(CLUSTER)
    found = {}
    results = run_cases(need(KERNELS_LIBRARY), "", list(cases.values()), limit=RECORDING_LIMIT_S)
    for point, result in zip(cases, results, strict=True):
        if result.outcome != DONE or not result.recording.complete:
            said = result.hang or result.detail or "its recording is not whole"
            raise MpilabError(
                f"{point[0]} with {result.case.describe()}: {result.outcome}: {said}; run it again "
                "when this machine has less to do"
            )
        found[point] = lower_bound(described, result.levels, result.recording.matrix()).seconds
    return found


def read(path=MEASURED_CSV):
    """The rows of a file that `write` has written; InputError where it cannot be read."""
    return published_csv.read(path, ROW, _EXAMPLE)


def write(rows, path=MEASURED_CSV):
    """Write rows of ROW as CSV; InputError where that cannot be."""
    published_csv.write(rows, path)


if __name__ == "__main__":
    write(rows_of(measure(progress=True)), *sys.argv[1:2])
