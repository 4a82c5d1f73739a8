"""The figures that hold our topology-aware collectives against flat ones and against Open MPI's, on
emulated hosts: 4 groups of 2 hosts of 2 ranks, 1 Gbit/s in a group, 200 Mbit/s between groups.
"""

from dataclasses import replace
from functools import cache

from mpilab.bench import figure

COLLECTIVES = ("bcast", "reduce", "gather")
ORDERS = ("seq", "rr", "shuffled")
SIZES = {"16KB": 16 * 1024, "256KB": 256 * 1024, "2MB": 2 * 1024 * 1024}
FLAT = "_binomial"


@cache
def measured(collective):
    """All Timed of a collective on the cluster four-groups, in one run."""
    from mpilab.measured_by_level import measure

    return measure((collective,), sizes={collective: tuple(SIZES.values())}, orders=ORDERS)


def _speed_ups(collective, order, size, other):
    from mpilab.timed import speed_ups

    chosen = [t for t in measured(collective) if (t.order, t.bytes) == (order, SIZES[size])]
    return speed_ups(chosen, other)


def _register(collective, order, size):
    def flat():
        return _speed_ups(collective, order, size, lambda one: one.kernel.endswith(FLAT))

    def openmpi():
        return _speed_ups(collective, order, size, lambda one: one.is_openmpis)

    large = size != "16KB"
    flat.__name__ = f"{collective}_{order}_{size}_vs_flat"
    openmpi.__name__ = f"{collective}_{order}_{size}_vs_openmpi"
    figure("×", "≥ 3" if order == "rr" and large else "", f"{collective}{FLAT}, in one run")(flat)
    figure("×", "≥ 1.5" if order != "seq" and large else "≥ 0.9",
           "the better of Open MPI with coll/han and without, in one run")(openmpi)  # fmt: skip


for _collective in COLLECTIVES:
    for _order in ORDERS:
        for _size in SIZES:
            _register(_collective, _order, _size)


@cache
def _exchanged():
    """{order: speed-ups of alltoallv_leaders over alltoallv_linear} with 16 bytes a pair."""
    from mpilab.descriptions import read
    from mpilab.emulated import EmulatedHosts
    from mpilab.onhosts import time_on

    described = read("four-groups")
    hosts = tuple(replace(host, slots=4) for host in described.hosts)
    with EmulatedHosts(replace(described, hosts=hosts)) as up:
        found = time_on(up, "alltoallv", names=["alltoallv_linear", "alltoallv_leaders"],
                        sizes=(16,), orders=("seq", "rr"), repetitions=200, warmup=5,
                        progress=False)  # fmt: skip
    seconds = {(one.order, one.kernel): one.seconds for one in found}
    return {
        order: [a / b for a, b in zip(seconds[order, "alltoallv_linear"],
                                      seconds[order, "alltoallv_leaders"], strict=True)]
        for order in ("seq", "rr")
    }  # fmt: skip


_DIRECT = "alltoallv_linear, on 4 groups of 2 hosts of 4 ranks, in one run"


@figure("×", "≥ 3", _DIRECT)
def alltoallv_16B_vs_direct():  # noqa: N802 (the name of the figure)
    """How much faster leaders exchange 16 bytes a pair than all ranks do directly, with the ranks
    in the order that mpirun gives them: host by host."""
    return _exchanged()["seq"]


@figure("×", "≥ 3", _DIRECT)
def alltoallv_16B_rr_vs_direct():  # noqa: N802 (the name of the figure)
    """The same with the ranks dealt out to the hosts in turn, where direct messages go faster."""
    return _exchanged()["rr"]
