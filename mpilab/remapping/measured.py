"""What remapping saves on emulated hosts: measured here, or read from what we have measured.

    python -m mpilab.remapping.measured data/remapping-two-hosts.csv     measure, and write the file

Eight ranks on the two hosts of hostfiles/two-hosts.toml, whose links are held to 1 Gbit/s: real
Open MPI and real TCP. Each row is one repetition, from the first rank's entry to the last one's
exit.
"""

import sys
from datetime import UTC, datetime

import numpy as np

from mpilab import descriptions, promises, published_csv
from mpilab.onhosts import LIMIT_S, time_on
from mpilab.orders import order

CLUSTER = "two-hosts"
MEASURED_CSV = published_csv.DATA / "remapping-two-hosts.csv"
SIZES = (1024, 32768, 262144)
ROW = np.dtype([
    ("date", "U10"), ("machine", "U160"), ("kernel", "U40"), ("order", "U12"), ("bytes", "i8"),
    ("repetition", "i4"), ("seconds", "f8"),
])  # fmt: skip
ALLGATHERS = tuple(
    f"allgather_{name}{remapped}"
    for name in ("recursive_doubling", "ring")
    for remapped in ("", "_remapped")
)
BCASTS = ("bcast_binomial", "bcast_binomial_remapped")
SLOWEST = "slowest"


def orders_of_bcast(slowest=None):
    """{name: the host of each rank}: seq, rr, and slowest, in which the tree always crosses.

    slowest   the number of each rank's host; default: what has been measured for the kit.
    """
    cluster = descriptions.read(CLUSTER)
    names = [host.name for host in cluster.hosts]
    if slowest is None:
        slowest = [rank.bit_count() % 2 for rank in range(cluster.slots)]
    found = {name: order(cluster, name) for name in ("seq", "rr")}
    return found | {SLOWEST: [names[number] for number in slowest]}


def measure(sizes=SIZES, repetitions=7, bcast_orders=None, own=None, limit=LIMIT_S):
    """Time allgathers and broadcasts, plain and remapped; array of ROW. It takes some 15 s.

    sizes          bytes: of a block in an allgather, of the message in a broadcast.
    bcast_orders   {name: the host of each rank}; default: orders_of_bcast().
    own            {kernel: shared object} of kernels that are not the kit's.
    limit          seconds that a kernel may take for a size, with all its repetitions.

    Kernels that are neither the kit's (students get it without what they are to write) nor one's
    own are left out. Raises SetupError where hosts cannot be emulated, MpilabError where a kernel
    does not end well.
    """
    from mpilab.bench import machine
    from mpilab.emulated import EmulatedHosts

    orders = {"allgather": ("seq", "rr"), "bcast": bcast_orders or orders_of_bcast()}
    with EmulatedHosts(CLUSTER) as hosts:
        timed = [
            one
            for collective, library, names in _runs(own or {})
            for one in time_on(
                hosts, collective, names=names, sizes=sizes, orders=orders[collective],
                repetitions=repetitions, library=library, progress=False, limit=limit)
        ]  # fmt: skip
    about = datetime.now(UTC).date().isoformat(), machine()
    return np.array(
        [
            (*about, one.kernel, one.order, one.bytes, number, seconds)
            for one in timed
            for number, seconds in enumerate(one.seconds, start=1)
        ],
        dtype=ROW,
    )


def _runs(own):
    """(collective, shared object or None for the kit's, its kernels)."""
    for collective, kernels in (("allgather", ALLGATHERS), ("bcast", BCASTS)):
        kits = promises.kernels_of(collective)
        yield collective, None, [name for name in kernels if name in kits and name not in own]
        yield from ((collective, own[name], [name]) for name in kernels if name in own)


def read(path=MEASURED_CSV):
    """What `write` has written; InputError where it cannot be read."""
    return published_csv.read(path, ROW, "2026-11-21,a machine,allgather_ring,rr,1024,1,0.003")


def write(rows, path=MEASURED_CSV):
    """Write rows of ROW as CSV; InputError where that cannot be."""
    published_csv.write(rows, path)


def seconds(rows, kernel, order_name, size):
    """The repetitions of one kernel in one order with one size, in seconds: array, or empty."""
    chosen = (rows["kernel"] == kernel) & (rows["order"] == order_name) & (rows["bytes"] == size)
    return rows["seconds"][chosen]


if __name__ == "__main__":
    write(measure(), *sys.argv[1:2])
