"""Hostfiles and the orders of ranks on their hosts."""

import os
import subprocess
import sys

import pytest

from mpilab.errors import InputError
from mpilab.hosts.hostfile import FOLDER, Host, host_changes, parse, placement, read
from mpilab.kernels import openmpi
from mpilab.kernels.build import KERNELS, need
from tests.conftest import WITHOUT_MPIRUN


def test_hosts_are_read_with_their_slots_limits_and_groups():
    text = "# group: left\nn1 slots=4\nn2 slots = 2 max_slots=3  # small\n\n# group: right\nn3\n"
    found = parse(text)
    assert found.hosts == (
        Host("n1", 4, None, "left"),
        Host("n2", 2, 3, "left"),
        Host("n3", None, None, "right"),
    )
    assert found.lines == (0, 1, 2)


def test_a_user_before_the_host_is_no_part_of_its_name():
    assert parse("me@n1.example.org slots=2").hosts == (Host("n1.example.org", 2),)


def test_a_host_on_several_lines_has_a_slot_for_each_of_them():
    found = parse("n1\nn2 slots=1\nn1\n")
    assert found.slots == [2, 1]
    assert found.lines == (0, 1, 0)


@pytest.mark.parametrize(
    "text, message",
    [
        ("n1 slots=4\n\nn2 slots=four", "f:3: 'slots=four' is not a number; write e.g. 'n1 slots"),
        ("n1 slots=-1", "f:1: 'slots=-1' is not a number"),
        ("n1 slots=", "f:1: 'slots=' is not a number"),
        ("n1 4", "f:1: '4' is not understood; write e.g. 'n1 slots=4'"),
        ("n1 slot=4", "f:1: 'slot=4' is not understood"),
        ("n1, slots=4", "f:1: 'n1,' is not a valid host name"),
        ("n1 slots=4 max_slots=2", "f:1: max_slots=2 is less than slots=4"),
        ("n1 slots=4\nn1 slots=4", "f:2: n1 is already listed. Name it once, with all its slots"),
        ("n1\nn1 slots=4", "f:2: n1 is already listed"),
        ("# group: a\nn1\n# group: b\nn1", "f:4: n1 is already in the group 'a'"),
        ("^n1", "f:1: '\\^n1' excludes hosts or counts them"),
        ("# nobody\n", "f: it names no host; write e.g. 'n1 slots=4'"),
    ],
)
def test_what_cannot_be_read_is_told_with_file_line_and_remedy(text, message):
    with pytest.raises(InputError, match=message):
        parse(text, "f")


def test_the_kit_s_hostfiles_are_found_by_their_bare_names():
    found = read("two-groups.txt")
    assert found.name == "hostfiles/two-groups.txt"
    assert [host.group for host in found.hosts] == ["left", "left", "right", "right"]
    assert found.slots == [4, 4, 4, 4]


def test_a_file_in_the_current_folder_comes_before_the_kit_s(tmp_path, monkeypatch):
    (tmp_path / "two-groups.txt").write_text("mine slots=1\n")
    monkeypatch.chdir(tmp_path)
    assert read("two-groups.txt").names() == ["mine"]


def test_a_missing_hostfile_is_told_with_the_place_of_the_kit_s():
    with pytest.raises(InputError, match="three-groups.txt: cannot be read as a hostfile: No such"):
        read("three-groups.txt")


def test_what_is_no_text_is_no_hostfile(tmp_path):
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")
    with pytest.raises(InputError, match="it is not text"):
        read(tmp_path / "picture")


def test_every_hostfile_of_the_kit_can_be_read_and_is_told_of():
    about = (FOLDER / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in FOLDER.glob("*.txt")]
    assert len(names) > 2
    for name in names:
        assert read(name).hosts
        assert f"`{name}`" in about


def test_ranks_are_placed_on_the_hosts_of_a_text():
    assert parse("n1 slots=4\nn2 slots=2\n").placement(6, "node") == [0, 1, 0, 1, 0, 0]
    assert parse("a\nb\na\n").placement(2, "seq") == [0, 1]


def test_by_slot_a_host_is_filled_before_the_next():
    assert placement([2, 1, 3], 5, "slot") == [0, 0, 1, 2, 2]


def test_by_node_ranks_are_dealt_and_full_hosts_passed_over():
    assert placement([2, 1, 3], 6, "node") == [0, 1, 2, 0, 2, 2]


@pytest.mark.parametrize("policy", ["slot", "node"])
def test_every_slot_is_used_once_and_a_host_without_slots_never(policy):
    placed = placement([3, 0, 1, 4], 8, policy)
    assert [placed.count(host) for host in range(4)] == [3, 0, 1, 4]
    assert placement([3, 0, 1, 4], 0, policy) == []
    assert placement([3, 0, 1, 4], 5, policy) == placed[:5]


def test_more_ranks_than_slots_are_refused():
    with pytest.raises(InputError, match="ranks=7: there are 6 slots on 2 hosts"):
        placement([4, 2], 7, "slot")


@pytest.mark.parametrize(
    "slots, policy, message",
    [([1], "core", "policy='core': use 'slot' or 'node'"), ([2, -1], "slot", "0 or more slots")],
)
def test_unknown_policies_and_negative_slots_are_refused(slots, policy, message):
    with pytest.raises(InputError, match=message):
        placement(slots, 1, policy)


def test_line_by_line_rank_i_runs_on_the_host_of_line_i():
    found = parse("n2\nn1\nn2\n")
    assert found.names(policy="seq") == ["n2", "n1", "n2"]
    assert found.placement(2, "seq") == [0, 1]
    with pytest.raises(InputError, match="ranks=4 with policy 'seq': hostfile names 3 hosts"):
        found.placement(4, "seq")


def test_without_a_number_of_ranks_all_slots_are_used():
    assert parse("n1 slots=2\nn2 slots=1").names(policy="node") == ["n1", "n2", "n1"]


def test_a_host_that_takes_as_many_ranks_as_it_has_cores_cannot_be_placed_beforehand():
    with pytest.raises(InputError, match="n2 has no number of slots, so it gets one per core"):
        parse("n1 slots=2\nn2").names(2)


def test_crossings_are_steps_from_one_rank_to_the_next_that_change_the_host():
    assert host_changes([0, 0, 1, 1]) == 1
    assert host_changes([0, 1, 0, 1]) == 3
    assert host_changes([0]) == host_changes([]) == 0


# A process asks the C library for its place; MPI is needed because the library is linked with it.
ASK = """
import ctypes, sys
from mpi4py import MPI
class Place(ctypes.Structure):
    _fields_ = [("node", ctypes.c_char * 256), ("group", ctypes.c_char * 256)]
library = ctypes.CDLL(sys.argv[1])
library.mpilab_place.restype = ctypes.POINTER(Place)
place = library.mpilab_place().contents
print(MPI.Get_processor_name(), place.node.decode(), place.group.decode() or "-")
"""


def place_in_c(**environment):
    """(host, node, group) as reported to a kernel on this machine; the group is "-" if there is
    none."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name not in ("SLURM_TOPOLOGY_ADDR", "MPILAB_GROUPS")
    }
    usual = {**openmpi.ROOT, **WITHOUT_MPIRUN, **openmpi.QUIET}
    said = subprocess.run(
        [sys.executable, "-c", ASK, str(need(KERNELS))],
        capture_output=True,
        text=True,
        env={**inherited, **usual, **environment},
    )
    assert said.returncode == 0, said.stderr
    return tuple(said.stdout.split())


@pytest.fixture(scope="module")
def here():
    """The name of this host according to MPI."""
    return place_in_c()[0]


def test_without_slurm_and_a_list_all_hosts_are_in_one_group(here):
    assert place_in_c() == (here, here, "-")


def test_slurm_s_address_of_this_host_tells_its_group(here):
    assert place_in_c(SLURM_TOPOLOGY_ADDR=f"s0.s3.{here}") == (here, here, "s0.s3")
    both = {"SLURM_TOPOLOGY_ADDR": f"s7.{here}", "MPILAB_GROUPS": f"{here}=left"}
    assert place_in_c(**both)[2] == "s7"


def test_under_mpirun_slurm_s_address_is_that_of_one_host_and_says_nothing(here):
    """Or that host would be in its switch's group, and all others in none."""
    known = {"SLURM_TOPOLOGY_ADDR": f"s0.s3.{here}", "OMPI_COMM_WORLD_RANK": "0"}
    assert place_in_c(**known)[2] == "-"
    assert place_in_c(**known, MPILAB_GROUPS=f"{here}=left")[2] == "left"


@pytest.mark.parametrize("address", ["s0.s3.other{}", "s0.s3.{}x", "{}", "", "s0.{}.s3"])
def test_slurm_s_address_of_another_host_says_nothing_about_this_one(here, address):
    """mpirun passes on the address of the host on which it was started."""
    address = address.format(here)
    assert place_in_c(SLURM_TOPOLOGY_ADDR=address)[2] == "-"
    listed = place_in_c(SLURM_TOPOLOGY_ADDR=address, MPILAB_GROUPS=f"{here}=left")
    assert listed[2] == "left"


@pytest.mark.parametrize(
    "groups, group",
    [
        ("{0}=left", "left"),
        ("n1=a,{0}=b,n2=c", "b"),
        ("{0}x=a,x{0}=b", "-"),
        ("{0}x=a,{0}=b", "b"),
        ("n1=a", "-"),
        ("{0}", "-"),
    ],
)
def test_a_list_of_hosts_tells_the_group_of_this_one(here, groups, group):
    assert place_in_c(MPILAB_GROUPS=groups.format(here)) == (here, here, group)
