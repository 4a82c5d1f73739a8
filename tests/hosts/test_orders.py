"""Rank orders: compared with Open MPI's, the same on every machine, and as short texts."""

import subprocess
import sys
from collections import Counter

import pytest

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.hosts import hostfile, mapping
from mpilab.hosts.description import parse, read
from mpilab.hosts.orders import (
    ORDERS,
    SEEDED,
    ClusterOrder,
    RankOrder,
    hostfile_text,
    order,
    places_of,
    regular,
    text_of,
    write_hostfile,
)
from mpilab.hosts.places import Levels, Place
from mpilab.hosts.platforms import PlatformOrder

UNEVEN = parse(
    """
[[group]]
name = "a"
hosts = "a[1-3]"
slots = [2, 1, 2]
[[group]]
name = "b"
hosts = "b1"
""",
    "uneven",
)
CAMPUS = read("campus")


def slots_file(path, description):
    """The description as a hostfile with slots, as Open MPI reads it."""
    path.write_text("".join(f"{host.name} slots={host.slots}\n" for host in description.hosts))
    return path


def test_the_orders_are_what_they_are_called():
    cluster = regular(2, 2, 2)
    assert order(cluster, "seq") == "n0 n0 n1 n1 n2 n2 n3 n3".split()
    assert order(cluster, "rr") == "n0 n1 n2 n3 n0 n1 n2 n3".split()
    assert order(cluster, "rr-groups") == "n0 n2 n1 n3 n0 n2 n1 n3".split()


def test_full_hosts_are_passed_over_and_groups_that_are_used_up():
    assert order(UNEVEN, "seq") == "a1 a1 a2 a3 a3 b1".split()
    assert order(UNEVEN, "rr") == "a1 a2 a3 b1 a1 a3".split()
    assert order(UNEVEN, "rr-groups") == "a1 b1 a2 a3 a1 a3".split()


@pytest.mark.parametrize(
    "cluster", [regular(4, 2, 2), regular(1, 3, 1), UNEVEN], ids=lambda c: c.name
)
@pytest.mark.parametrize("name", ORDERS)
def test_every_order_uses_each_slot_once(cluster, name):
    names = order(cluster, name, seed=3)
    assert Counter(names) == {host.name: host.slots for host in cluster.hosts}
    for ranks in (1, cluster.slots - 1):
        assert order(cluster, name, ranks=ranks, seed=3) == names[:ranks]


@pytest.mark.parametrize(
    "cluster",
    [read("two-groups"), CAMPUS.part(hosts=6, ppn=3), UNEVEN],
    ids=lambda cluster: cluster.name,
)
@pytest.mark.parametrize("name, policy", [("seq", "slot"), ("rr", "node")])
def test_seq_and_rr_are_what_hostfiles_and_open_mpi_make_of_it(tmp_path, cluster, name, policy):
    path = slots_file(tmp_path / "hosts.txt", cluster)
    names = order(cluster, name)
    assert names == hostfile.read(path).names(policy=policy)
    assert names == mapping.mapped(path, cluster.slots, policy)


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_reaches_open_mpi_by_a_hostfile_that_tells_the_groups(tmp_path, name):
    cluster = read("four-groups")
    names = order(cluster, name, seed=5)
    write_hostfile(tmp_path / "hosts.txt", names, cluster)
    assert mapping.mapped(tmp_path / "hosts.txt", 16, "seq") == names
    found = hostfile.read(tmp_path / "hosts.txt")
    assert found.names(policy="seq") == names
    assert {host.name: host.group for host in found.hosts} == {
        host.name: host.group for host in cluster.hosts
    }


def test_shuffled_lines_keep_the_ranks_of_a_host_together():
    names = order(CAMPUS, "shuffled", ppn=8, seed=2)
    assert [names[rank : rank + 8] for rank in range(0, 128, 8)] == [
        [names[rank]] * 8 for rank in range(0, 128, 8)
    ]
    assert list(dict.fromkeys(names)) != [host.name for host in CAMPUS.hosts]


@pytest.mark.parametrize("name", SEEDED)
def test_a_seed_gives_one_order_and_another_seed_another(name):
    assert order(CAMPUS, name, seed=4) == order(CAMPUS, name, seed=4)
    assert order(CAMPUS, name, seed=4) != order(CAMPUS, name, seed=5)
    assert order(CAMPUS, name) == order(CAMPUS, name, seed=1)


def test_an_order_is_the_same_on_every_machine():
    cluster = read("two-groups")
    assert order(cluster, "shuffled") == "n1 n1 n4 n4 n3 n3 n2 n2".split()
    assert order(cluster, "random") == "n1 n2 n3 n3 n4 n2 n4 n1".split()


@pytest.mark.parametrize("ppn", [1, 8])
@pytest.mark.parametrize("number", [4, 16])
def test_the_configurations_of_the_published_assignment_can_be_chosen(ppn, number):
    names = order(CAMPUS, "shuffled", ppn=ppn, hosts=number)
    assert set(Counter(names).values()) == {ppn}
    assert len(set(names)) == number
    assert Levels(CAMPUS.places(names)).groups == 4


@pytest.mark.parametrize(
    "wanted, words",
    [
        (
            {"name": "zigzag"},
            "order 'zigzag': unknown; use one of seq, rr, rr-groups, shuffled, r",
        ),
        ({"name": "rr", "ranks": 9}, "ranks=9: there are 8 slots on 4 hosts of two-groups"),
        ({"name": "seq", "ranks": 0}, "ranks=0: .* use 1 to 8"),
        ({"name": "random", "ranks": 9}, "ranks=9: there are 8 slots"),
        ({"name": "rr", "ppn": 3}, "ppn=3: two-groups has 2"),
        ({"name": "rr", "hosts": 5}, "hosts=5: two-groups has 4"),
    ],
)
def test_what_cannot_be_ordered_is_told_with_what_can(wanted, words):
    with pytest.raises(InputError, match=words):
        order(read("two-groups"), **wanted)


def test_a_few_words_say_where_ranks_are():
    assert places_of("2x1x2 seq") == (
        Place("n0", "g0"),
        Place("n0", "g0"),
        Place("n1", "g1"),
        Place("n1", "g1"),
    )
    nodes = [place.node for place in places_of("2x3x2 rr")]
    assert nodes == [f"n{rank % 6}" for rank in range(12)]
    groups = [place.group for place in places_of("2x3x2 rr")]
    assert groups == ["g0", "g0", "g0", "g1", "g1", "g1"] * 2
    cluster = read("four-groups")
    assert places_of("four-groups rr") == cluster.places(order(cluster, "rr"))
    assert places_of("2x2x2 shuffled") == places_of("2x2x2 shuffled 1")
    assert places_of("2x2x2 random 7") != places_of("2x2x2 random 8")
    assert places_of(" a/n1*2  b/n1 ") == (Place("n1", "a"), Place("n1", "a"), Place("n1", "b"))


def test_part_of_a_cluster_may_be_asked_for():
    names = order(CAMPUS, "shuffled", hosts=8, ppn=2, ranks=11, seed=3)
    assert places_of("campus hosts=8 ppn=2 ranks=11 shuffled 3") == CAMPUS.places(names)


def test_a_description_may_be_a_file_of_ones_own(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('[[group]]\nname = "a"\nhosts = "h[1-2]"\n')
    assert places_of(f"{path} rr") == (Place("h1", "a"), Place("h2", "a"))


@pytest.mark.parametrize(
    "text, words",
    [
        ("", "a cluster and an order are needed; write e.g. '2x2x4 rr'"),
        ("2x2x2", "a cluster and an order are needed"),
        ("ppn=1 rr", "a cluster and an order are needed"),
        ("2x2x2 zigzag", "the order is 'zigzag': use one of seq, rr"),
        ("2x2x2 rr 3", "'3' after rr, which has no seed; leave it out"),
        ("2x2x2 shuffled x", "'x' is not a seed; write one number, e.g. shuffled 7"),
        ("2x2x2 shuffled 1 2", "'1 2' is not a seed"),
        ("2x0x2 rr", "2x0x2: must be 1 to 65536 ranks"),
        ("999999x9999x9 rr", "must be 1 to 65536 ranks"),
        ("2x2x2 rr ranks=9", "ranks=9: there are 8 slots on 4 hosts of 2x2x2"),
        ("five-groups rr", "five-groups: cannot be read as a cluster description"),
        ("a/n1 n2", "the order is 'n2'"),
        ("a/n1 b/", "'b/' is not of the form GROUP/NODE or GROUP/NODE\\*RANKS; write e.g."),
        ("a/n1*0", "'a/n1\\*0' is not of the form"),
        ("a/n1*99999999", "is not of the form"),
        ("a/n1 b/n!", "node='n!': not a name"),
    ],
)
def test_words_that_say_nothing_are_refused_with_the_text(text, words):
    with pytest.raises(InputError, match=f"places {text!r}: ".replace("*", "\\*") + f".*{words}"):
        places_of(text)


@pytest.mark.parametrize(
    "text, shown",
    [
        ("2x2x2 rr", "2x2x2 rr"),
        ("4x2x2 rr-groups", "4x2x2 rr-groups"),
        ("3x1x2 seq", "3x1x2 seq"),
        ("1x4x1 rr", "1x4x1 seq"),
        ("a/n1 a/n1 b/n2", "a/n1*2 b/n2"),
        ("g0/n0 g1/n1 g1/n1", "g0/n0 g1/n1*2"),
        ("-/n1 x:y/n.1 -/n1", "-/n1 x:y/n.1 -/n1"),
        ("two-groups rr", "left/n1 left/n2 right/n3 right/n4 left/n1 left/n2 right/n3 right/n4"),
        ("2x2x2 random 7", None),
        ("campus ppn=1 shuffled 3", None),
    ],
)
def test_places_are_written_as_words_that_say_the_same(text, shown):
    places = places_of(text)
    assert shown in (None, text_of(places))
    assert places_of(text_of(places)) == places


@pytest.mark.parametrize("text", ["seq", "rr-groups", "shuffled", "random 7"])
def test_an_order_reads_back_what_it_is_written_as(text):
    assert str(RankOrder.parse(text)) == text
    assert str(PlatformOrder.parse(f"flat-4x2 {text}")) == f"flat-4x2 {text}"
    assert str(ClusterOrder.parse(f"campus hosts=8 ppn=1 {text}")) == f"campus hosts=8 ppn=1 {text}"


def test_a_platform_without_an_order_is_filled_host_by_host():
    assert PlatformOrder.parse("flat-4x2") == PlatformOrder("flat-4x2", RankOrder("seq"))
    with pytest.raises(InputError, match=r"'flat-4x2 rr x': write PLATFORM \[ORDER \[SEED\]\]"):
        PlatformOrder.parse("flat-4x2 rr x")


def test_the_command_prints_or_writes_a_hostfile(tmp_path, capsys):
    cluster = read("four-groups")
    names = order(cluster, "shuffled", ppn=1, seed=3)
    words = ["hostfile", "four-groups", "--order", "shuffled", "--seed", "3", "--ppn", "1"]
    assert main(words) == 0
    assert capsys.readouterr().out == hostfile_text(names, cluster)
    assert main([*words, "-o", str(tmp_path / "hosts.txt")]) == 0
    assert "8 ranks on 8 hosts" in capsys.readouterr().out
    assert hostfile.read(tmp_path / "hosts.txt").names(policy="seq") == names


def test_the_command_tells_what_it_cannot_do(tmp_path, capsys):
    assert main(["hostfile", "campus", "--hosts", "17"]) == 1
    assert "hosts=17: campus has 16; use 1 to 16" in capsys.readouterr().err
    assert main(["hostfile", "campus", "-o", str(tmp_path / "no" / "where.txt")]) == 1
    assert "where.txt: cannot be written: No such file or directory" in capsys.readouterr().err


def run_on(places, *more):
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "mpilab",
            "run",
            "bcast_node_group",
            "--places",
            places,
            "--count",
            "100",
            *more,
        ],
        capture_output=True,
        text=True,
    )


def test_a_kernel_can_be_run_as_if_its_ranks_were_on_a_cluster():
    said = run_on("2x2x2 rr")
    assert said.returncode == 0, said.stderr
    assert "bcast_node_group with 8 ranks, " in said.stdout
    assert ", on 4 nodes in 2 groups\n" in said.stdout
    assert "right on every rank" in said.stdout
    # Once to each other node, once to the other group.
    assert "3 messages, 1200 bytes between nodes" in said.stdout
    assert "1 message, 400 bytes between groups" in said.stdout


def test_another_number_of_ranks_than_of_places_is_refused():
    said = run_on("2x2x2 rr", "--ranks", "4")
    assert said.returncode == 1
    assert "places of 8 ranks for 4: give one for each rank" in said.stderr
