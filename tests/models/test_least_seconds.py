"""The least time that links allow: examples by hand, and no simulated kernel that takes less."""

import pytest

from mpilab.cases.case import Case, collective_of
from mpilab.errors import InputError
from mpilab.hosts.description import Link
from mpilab.hosts.orders import order
from mpilab.hosts.places import Levels, Place
from mpilab.hosts.platforms import platform
from mpilab.kernels.simgrid import kernels
from mpilab.models import declared, least_seconds
from mpilab.models.textbook import BOUNDED
from mpilab.runners.result import DONE
from mpilab.runners.simgrid import seconds_of, simulate

# Three groups: one with two hosts of two ranks, two with one host of one rank each.
UNEVEN = Levels(
    (Place("n1", "a"),) * 2 + (Place("n2", "a"),) * 2 + (Place("n3", "b"), Place("n4", "c"))
)
PLACED = (
    ("four-groups", "shuffled"),
    ("groups-2x3x1", "rr"),
    ("flat-3x2", "rr"),
    ("flat-1x4", "seq"),
)
BYTE_S = 1e-6  # of a host's link; a group's takes twice as long


def on(host_latency=0.0, group_latency=0.0):
    """A platform with round numbers: 1 µs per byte on a host's link, 2 µs on a group's."""
    found = platform("groups-3x2x2")
    links = {"host_link": Link(8e6, host_latency), "group_link": Link(4e6, group_latency)}
    return platform(found, **links)


@pytest.mark.parametrize(
    ("collective", "blocks"),
    [
        ("bcast", 2 * 1),  # the message into another group
        ("reduce", 2 * 1),
        ("gather", 2 * 2),  # two blocks come from the other groups to the root's
        ("scatter", 2 * 2),
        ("allgather", 2 * 5),  # five blocks come into a group of one rank
        ("allreduce", 2 * 4 / 3),  # 2 (3 - 1) / 3
    ],
)
def test_the_fullest_link_sets_the_least_time(collective, blocks):
    assert least_seconds(collective, on(), UNEVEN, 1000) == pytest.approx(blocks * 1000 * BYTE_S)


def test_the_root_decides_which_blocks_cross_its_link():
    """Rank 4 is alone in its group: five blocks come over its uplink."""
    assert least_seconds("gather", on(), UNEVEN, 1000, root=4) == pytest.approx(10_000e-6)


def test_with_fast_uplinks_the_link_of_the_roots_host_counts():
    """Four blocks come to the root's host, two of them from its own group."""
    fast = platform(on(), group_link=Link(800e6))
    assert least_seconds("gather", fast, UNEVEN, 1000) == pytest.approx(4_000e-6)


def test_in_one_group_there_is_no_uplink():
    levels = Levels(UNEVEN.places[:4])
    assert least_seconds("bcast", on(), levels, 1000) == pytest.approx(1_000e-6)
    assert least_seconds("allreduce", on(), levels, 1000) == pytest.approx(1_000e-6)


def test_the_latency_of_the_path_over_that_link_is_added():
    slow = on(host_latency=10e-6, group_latency=100e-6)
    assert least_seconds("bcast", slow, UNEVEN, 1000) == pytest.approx(2_000e-6 + 220e-6)
    levels = Levels(UNEVEN.places[:4])
    assert least_seconds("bcast", slow, levels, 1000) == pytest.approx(1_000e-6 + 20e-6)
    node = Levels(UNEVEN.places[:2])
    assert least_seconds("bcast", slow, node, 1000) == slow.memory.latency


def test_nothing_to_send_takes_no_time():
    assert least_seconds("bcast", on(), UNEVEN, 0) == 0
    assert least_seconds("allgather", on(), Levels(UNEVEN.places[:1]), 1000) == 0


def test_a_collective_or_a_platform_without_a_bound_is_refused():
    with pytest.raises(InputError, match="'alltoallv': there is no least time; use one of bcast"):
        least_seconds("alltoallv", on(), UNEVEN, 1000)
    with pytest.raises(InputError, match="torus-2x3x1: the least time is known for hosts on sw"):
        least_seconds("bcast", platform("torus-2x3x1"), UNEVEN, 1000)
    with pytest.raises(InputError, match="bytes=-1, root=0 with 6 ranks: give"):
        least_seconds("bcast", on(), UNEVEN, -1)
    with pytest.raises(InputError, match="bytes=1, root=6 with 6 ranks: give"):
        least_seconds("bcast", on(), UNEVEN, 1, root=6)


@pytest.mark.parametrize("collective", BOUNDED)
def test_no_simulated_kernel_takes_less(collective, require_tool):
    """All kernels, from short messages, where latency counts, to long ones, where bytes do."""
    require_tool("smpirun")
    about = collective_of(collective)
    datatype, element = about.timed_element
    for name, ordered in PLACED:
        where = platform(name)
        hosts = order(where.description, ordered)
        levels = Levels(where.description.places(hosts))
        cases = [
            Case(
                collective,
                len(hosts),
                size // element,
                datatype,
                root=root if about.is_rooted else 0,
                record=False,
                dump=False,
                warmup=1,
                function=kernel,
            )
            for kernel in declared.kernels_of(collective)
            for size in (64, 100_000)
            for root in ((0, len(hosts) - 1) if about.is_rooted else (0,))
        ]
        for result in simulate(kernels(), "", cases, where, order=hosts):
            case = result.case
            assert result.outcome == DONE, (case.function, result.detail)
            least = least_seconds(collective, where, levels, case.block_bytes, case.root)
            assert seconds_of(result) >= least * (1 - 1e-6), (case.function, case.describe())
