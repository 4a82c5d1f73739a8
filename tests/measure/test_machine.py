"""Distances between CPUs, read from files like those of Linux."""

import os

import pytest

from mpilab.errors import InputError, SetupError
from mpilab.measure.distances import CPUS, parse_list, read_machine


def written(folder, cpus):
    """Files for CPUs: {number: dict(core=…, package=…, L2=…, L3=…)}, each a list as text."""
    for number, what in cpus.items():
        topology = folder / f"cpu{number}" / "topology"
        topology.mkdir(parents=True)
        (topology / "core_cpus_list").write_text(what["core"] + "\n")
        (topology / "package_cpus_list").write_text(what["package"] + "\n")
        caches = [("1", "Data", what["core"]), ("1", "Instruction", what["core"])]
        caches += [(name[1], "Unified", what[name]) for name in ("L2", "L3") if name in what]
        for index, (level, kind, shared) in enumerate(caches):
            cache = folder / f"cpu{number}" / "cache" / f"index{index}"
            cache.mkdir(parents=True)
            (cache / "level").write_text(level)
            (cache / "type").write_text(kind)
            (cache / "shared_cpu_list").write_text(shared)
    (folder / "online").write_text(f"0-{max(cpus)}\n")
    return folder


def two_sockets(folder):
    """2 sockets of 4 cores with 2 threads, of which 2 cores share an L3; numbered as Linux often
    does it: even CPUs on socket 0, odd ones on socket 1, second threads from 8 on."""
    cpus = {}
    for number in range(16):
        first = number % 8
        socket, core = first % 2, first // 2
        pair = [first, first + 8]
        together = [socket + 2 * (core // 2 * 2), socket + 2 * (core // 2 * 2) + 2]
        cpus[number] = dict(
            core=",".join(map(str, pair)),
            package=",".join(str(one) for one in range(16) if one % 2 == socket),
            L2=",".join(map(str, pair)),
            L3=",".join(str(one + thread) for one in together for thread in (0, 8)),
        )
    return written(folder, cpus)


def test_lists_of_the_kernel_are_ranges_and_numbers():
    assert parse_list("0-3,8,10-11\n") == {0, 1, 2, 3, 8, 10, 11}
    assert parse_list("\n") == frozenset()


def test_two_cpus_are_as_far_apart_as_the_smallest_thing_they_share(tmp_path):
    machine = read_machine(two_sockets(tmp_path), usable=range(16), allowed=range(16))
    assert machine.distance(0, 8) == "same core"
    assert machine.distance(0, 2) == "shared L3"
    assert machine.distance(0, 4) == "same socket"
    assert machine.distance(0, 1) == "other socket"
    assert machine.distance(1, 0) == "other socket"


def test_there_is_one_pair_for_each_distance_and_the_nearest_comes_first(tmp_path):
    machine = read_machine(two_sockets(tmp_path), usable=range(16), allowed=range(16))
    assert machine.pairs == {
        "same core": (0, 8),
        "shared L3": (0, 2),
        "same socket": (0, 4),
        "other socket": (0, 1),
    }


def test_only_usable_cpus_make_pairs(tmp_path):
    machine = read_machine(two_sockets(tmp_path), usable={4, 6, 12}, allowed=range(16))
    assert machine.pairs == {"same core": (4, 12), "shared L3": (4, 6)}
    alone = read_machine(tmp_path, usable={3}, allowed=range(16))
    assert alone.pairs == {}


def test_places_are_counted_along_sockets_caches_and_cores_as_hwloc_does(tmp_path):
    machine = read_machine(two_sockets(tmp_path), usable=range(16), allowed=range(16))
    order = sorted(machine.cpus, key=machine.place)
    assert order == [0, 8, 2, 10, 4, 12, 6, 14, 1, 9, 3, 11, 5, 13, 7, 15]


def test_cpus_that_a_container_does_not_have_are_not_counted(tmp_path):
    machine = read_machine(two_sockets(tmp_path), usable={2, 10}, allowed={2, 3, 10})
    assert [machine.place(cpu) for cpu in (2, 10, 3)] == [0, 1, 2]


def test_a_cluster_of_cores_with_one_l2_is_nearer_than_one_l3(tmp_path):
    shared = dict(package="0-3", L3="0-3")
    cpus = {n: dict(core=str(n), L2="0-1" if n < 2 else "2-3", **shared) for n in range(4)}
    machine = read_machine(written(tmp_path, cpus), usable=range(4), allowed=range(4))
    assert machine.pairs == {"shared L2": (0, 1), "shared L3": (0, 2)}


def test_a_machine_that_tells_nothing_of_caches_has_sockets_all_the_same(tmp_path):
    cpus = {n: dict(core=str(n), package="0-1") for n in range(2)}
    machine = read_machine(written(tmp_path, cpus), usable=range(2), allowed=range(2))
    assert machine.pairs == {"same socket": (0, 1)}


def test_no_such_cpu_and_the_same_one_twice_are_refused(tmp_path):
    machine = read_machine(two_sockets(tmp_path), usable=range(16), allowed=range(16))
    with pytest.raises(InputError, match="CPU 99"):
        machine.distance(0, 99)
    with pytest.raises(InputError, match="are the same"):
        machine.distance(3, 3)


def test_without_the_kernels_files_the_error_says_where_they_are_found(tmp_path):
    with pytest.raises(SetupError, match="Only Linux"):
        read_machine(tmp_path / "nowhere")


@pytest.mark.skipif(not CPUS.is_dir(), reason="this system has no /sys/devices/system/cpu")
def test_this_machine_can_be_read():
    machine = read_machine()
    assert machine.usable <= os.sched_getaffinity(0)
    assert sorted(map(machine.place, machine.cpus)) == list(range(len(machine.cpus)))
