"""Sweeps over the hosts of a cluster: which points there are, and that they are compared."""

import json

import numpy as np
import pytest

from mpilab.cli import main
from mpilab.errors import InputError
from mpilab.hosts import description, platforms
from mpilab.hosts.orders import RankOrder
from mpilab.kernels import simgrid
from mpilab.measure import cluster_sweep
from mpilab.measure.cluster_sweep import TABLE, chosen, shapes, summarize
from mpilab.measure.sweep import Report
from mpilab.runners.simgrid import simulate

needs_simgrid = pytest.mark.skipif(not simgrid.available(), reason="SimGrid is not installed")
QUICK = {"sizes": [64], "progress": False}


def at(rows):
    return [tuple(row[["nodes", "ppn", "ranks"]].tolist()) for row in rows]


def test_without_a_number_of_ranks_all_hosts_are_used():
    found = shapes(platforms.platform("flat-4x8").description, ppn="1-3")
    assert [(s.hosts, s.ppn, s.ranks) for s in found] == [(4, 1, 4), (4, 2, 8), (4, 3, 12)]
    assert found[1].names == ("n0", "n0", "n1", "n1", "n2", "n2", "n3", "n3")


def test_with_a_number_of_ranks_as_many_hosts_as_these_need():
    found = shapes(platforms.platform("flat-8x4").description, "4,8,12", "1,2,4")
    assert [(s.ranks, s.ppn, s.hosts) for s in found] == [
        (4, 1, 4),
        (4, 2, 2),
        (4, 4, 1),
        (8, 1, 8),
        (8, 2, 4),
        (8, 4, 2),
        (12, 2, 6),
        (12, 4, 3),
    ]


def test_hosts_come_from_each_group_in_turn_and_keep_the_order():
    campus = description.read("campus")
    (four,) = shapes(campus, 8, 2, RankOrder("rr"))
    assert four.names == ("csews1", "csews25", "csews31", "csews70") * 2
    assert campus.places(four.names)[1].group == "switch2"


@pytest.mark.parametrize(
    "ranks, ppn, words",
    [
        (None, 9, "ppn=9: flat-4x8 has 8; use 1 to 8"),
        (7, 2, "no number of ranks is 1 to 4 hosts of flat-4x8 with 2 on each"),
        (64, 8, "no number of ranks"),
        ("many", None, "ranks='many': write numbers of 1 or more"),
        (None, "4-2", "ppn='4-2': write numbers of 1 or more, up to 1048576, e.g. 1,2,4 or 1-8"),
    ],
)
def test_what_does_not_fit_is_refused_with_what_does(ranks, ppn, words):
    with pytest.raises(InputError, match=words):
        shapes(platforms.platform("flat-4x8").description, ranks, ppn)


def test_kernels_are_named_as_in_other_sweeps():
    assert chosen("alltoallv", "ours:leaders,openmpi") == ["alltoallv_leaders", "alltoallv_openmpi"]
    assert chosen("bcast", ["openmpi", "bcast_node"], measured=True) == [
        "bcast_openmpi",
        "bcast_openmpi_no_han",
        "bcast_node",
    ]
    remapped = "allreduce_ring_remapped"
    assert chosen("allreduce", "ours:ring_remapped") == [remapped]
    assert remapped not in chosen("allreduce", "ours")
    assert "alltoallv_mine" in chosen("alltoallv", "ours", own=["alltoallv_mine"])
    with pytest.raises(InputError, match="'ours:leader'.*did you mean 'ours:leaders'|leaders"):
        chosen("alltoallv", "ours:leader")
    with pytest.raises(InputError, match="openmpi:no_han"):
        chosen("bcast", "openmpi:no_han")  # not simulated


@needs_simgrid
def test_every_collective_of_the_report_is_swept_over_hosts_and_ranks_per_host():
    for collective in ("bcast", "reduce", "gather", "alltoallv"):
        report = Report()
        rows = cluster_sweep.sweep(
            collective, ["flat-2x2", "flat-4x2"], ppn="1-2", report=report, **QUICK
        )
        assert report.lines() == []
        kernels = chosen(collective, "ours,openmpi")
        assert len(rows) == 4 * len(kernels)
        assert set(at(rows)) == {(2, 1, 2), (2, 2, 4), (4, 1, 4), (4, 2, 8)}
        assert (rows["seconds"] > 0).all() and (rows["repetition"] == 1).all()


@needs_simgrid
def test_a_time_is_that_of_a_second_call_of_the_simulator():
    rows = cluster_sweep.sweep(
        "bcast", "flat-2x4", ppn=3, order="rr", algorithms="ours:node", root=1, **QUICK
    )
    from mpilab.cases.case import Case

    case = Case("bcast", 6, 64, "byte", root=1, record=False, dump=False, warmup=1)
    names = ["n0", "n1"] * 3
    (again,) = simulate(simgrid.kernels(), "bcast_node", [case], "flat-2x4", order=names)
    assert rows["seconds"].tolist() == [again.last_call_ns / 1e9]
    assert rows["order"].tolist() == ["rr"]


WRONG = """
#include "mpilab.h"
int bcast_wrong(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    /* On more than 2 ranks, the last one gets nothing. */
    for (int other = 0; rank == root && other < (size > 2 ? size - 1 : size); other++)
        if (other != root)
            MPI_Send(buffer, count, type, other, TAG, comm);
    if (rank != root && (size == 2 || rank < size - 1))
        MPI_Recv(buffer, count, type, root, TAG, comm, MPI_STATUS_IGNORE);
    return MPI_SUCCESS;
}
"""


@needs_simgrid
def test_a_wrong_result_is_left_out_there_and_the_reason_given(tmp_path):
    own = {"bcast_wrong": simgrid.build(WRONG, tmp_path).library}
    report = Report()
    rows = cluster_sweep.sweep(
        "bcast",
        "flat-2x2",
        ppn="1-2",
        algorithms="ours:wrong,ours:binomial",
        own=own,
        report=report,
        **QUICK,
    )
    assert [(row["kernel"], row["ppn"]) for row in rows] == [
        ("bcast_binomial", 1),
        ("bcast_wrong", 1),
        ("bcast_binomial", 2),
    ]
    (line,) = report.lines()
    assert line.startswith(
        "bcast_wrong with 4 ranks and 64 bytes is omitted: on 2 hosts with 2 each: its result is "
        "wrong: "
    )


@needs_simgrid
def test_what_cannot_be_compared_is_left_out(monkeypatch):
    monkeypatch.setattr(cluster_sweep, "COMPARED_BYTES", 1000)
    report = Report()
    rows = cluster_sweep.sweep(
        "alltoallv",
        "flat-2x2",
        ppn="1-2",
        sizes=[64],
        algorithms="ours:linear",
        progress=False,
        report=report,
    )
    assert at(rows) == [(2, 1, 2)]
    assert (
        "its buffers are 2 KiB in all, and more than 1000 B are not compared" in report.lines()[0]
    )


@needs_simgrid
def test_a_sweep_continues_where_it_stopped(tmp_path, monkeypatch):
    out = tmp_path / "a.csv"
    asked = {"algorithms": "ours:linear", "out": out, **QUICK}
    first = cluster_sweep.sweep("gather", "flat-2x2", ppn=1, **asked)
    ran = []
    monkeypatch.setattr(
        cluster_sweep,
        "simulate",
        lambda *words, **more: ran.append(more["order"]) or simulate(*words, **more),
    )
    both = cluster_sweep.sweep("gather", "flat-2x2", ppn="1-2", **asked)
    assert ran == [("n0", "n0", "n1", "n1")]
    assert both[0] == first[0] and at(both) == [(2, 1, 2), (2, 2, 4)]
    assert np.array_equal(np.sort(TABLE.read(out)["ranks"]), [2, 4])
    with pytest.raises(InputError, match="was made with root 0, not 1"):
        cluster_sweep.sweep("gather", "flat-2x2", ppn=1, root=1, **asked)


@needs_simgrid
def test_the_command_prints_medians_and_draws_them(tmp_path, capsys):
    out, page = tmp_path / "a.csv", tmp_path / "new" / "a.html"
    words = (
        f"sweep alltoallv --hosts flat-2x4,flat-4x4 --ppn 1-4 --sizes 64 --algorithms "
        f"ours:linear,ours:leaders -o {out} --plot {page} --relative-to alltoallv_linear "
        "--no-progress"
    )
    assert main(words.split()) == 0
    said = capsys.readouterr()
    lines = said.out.splitlines()
    assert lines[0].split() == "kernel order hosts ppn ranks bytes median µs n".split()
    assert len(lines) == 1 + 2 * 4 * 2 and sum(line.endswith("*") for line in lines) >= 8
    assert f"16 rows: {out}" in said.err and f"figure: {page}" in said.err
    html = page.read_text()
    assert "alltoallv: speed beside linear, against ranks per host" in html
    assert "Figure as text" in html
    assert main([*words.split(), "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["median_s"] for row in printed] == summarize(TABLE.read(out))["median_s"].tolist()


@pytest.mark.parametrize(
    "words, message",
    [
        ("sweep bcast --ppn 2", "--ppn: belongs to a sweep over hosts"),
        ("sweep bcast --hosts flat-2x2 --oversubscribe", "--oversubscribe does not work with"),
        ("sweep --hosts flat-2x2", "no collective given"),
        ("sweep bcast --hosts nowhere", "platform 'nowhere': no such shape"),
        ("sweep read --hosts flat-2x2", "files are not swept"),
        ("sweep reduce --hosts flat-2x2 --sizes 3", "reduce adds numbers of 4 bytes"),
        ("sweep bcast --hosts flat-2x2 --root 4", "root"),
    ],
)
@needs_simgrid
def test_what_cannot_be_swept_is_said_in_one_line(words, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 1
    said = capsys.readouterr()
    assert message in said.err and said.err.count("\n") == 1 and said.out == ""


def test_alltoallv_is_also_swept_on_this_machine(tmp_path, capsys):
    words = (
        f"sweep alltoallv --ranks 2 --sizes 64 --repetitions 5 --warmup 1 -o {tmp_path}/a.csv "
        "--no-progress"
    )
    assert main(words.split()) == 0
    said = capsys.readouterr()
    kernels = [line.split()[0] for line in said.out.splitlines()[1:]]
    assert {"ours:linear", "ours:leaders", "openmpi:default"} <= set(kernels)
    assert not [name for name in kernels if name.startswith("openmpi:") and "default" not in name]


# Lab 04's table and what the lab says of it.


def shown(collective, kernel, nodes, size):
    """{ranks per host: seconds} of a kernel in the kit's table."""
    rows = TABLE.read()
    chosen = (rows["collective"] == collective) & (rows["kernel"] == f"{collective}_{kernel}")
    rows = rows[chosen & (rows["nodes"] == nodes) & (rows["bytes"] == size)]
    return dict(rows[["ppn", "seconds"]].tolist())


def test_the_kits_table_has_every_point_once():
    rows = TABLE.read()
    # SimGrid's model of Open MPI's alltoallv stops at 64 ranks.
    assert len(rows) == 3 * 8 * (3 * 5 * 2 + 3 * 3) + (8 + 8 + 4) * 3 == 996
    assert len(set(map(cluster_sweep.key_of, rows))) == len(rows)
    assert set(rows["nodes"]) == {4, 8, 16} and set(rows["ppn"]) == set(range(1, 9))
    assert (rows["ranks"] == rows["nodes"] * rows["ppn"]).all()
    assert set(rows["collective"]) == set(cluster_sweep.SHOWN)


@needs_simgrid
@pytest.mark.parametrize("collective", cluster_sweep.SHOWN)
def test_the_kits_table_is_simulated_again_exactly(collective):
    again = cluster_sweep.shown([collective], ["flat-4x8"], "3-4")
    kits = {cluster_sweep.key_of(row): f"{row['seconds']:.3e}" for row in TABLE.read()}
    assert len(again) == 2 * len(cluster_sweep.SHOWN[collective]) * len(
        cluster_sweep.SHOWN_SIZES[collective]
    )
    for row in again:
        assert kits[cluster_sweep.key_of(row)] == f"{row['seconds']:.3e}", row


def wins(nodes, size):
    """The numbers of ranks per host with which the leaders are faster than the linear alltoallv."""
    leaders, linear = (shown("alltoallv", name, nodes, size) for name in ("leaders", "linear"))
    return [ppn for ppn in range(1, 9) if leaders[ppn] < linear[ppn]]


def test_leaders_lose_up_to_3_ranks_per_host_and_win_from_4_on_as_the_lab_says():
    assert wins(4, 64) == [4, 5, 6, 7, 8]


def test_the_border_moves_with_hosts_and_sizes_as_the_lab_says():
    assert wins(8, 64) == [2, 3, 4, 5, 6, 7, 8]
    assert wins(8, 256) == [4, 5, 6, 7, 8]
    assert wins(16, 64) == wins(16, 256) == [2, 3, 4, 5, 6, 7, 8]
    assert wins(16, 1024) == wins(8, 1024) == wins(4, 1024) == []
    ratios = [
        shown("alltoallv", "linear", nodes, size)[ppn]
        / shown("alltoallv", "leaders", nodes, size)[ppn]
        for nodes in (4, 8, 16)
        for size in (64, 256, 1024)
        for ppn in range(1, 9)
    ]
    assert max(ratios) == pytest.approx(2.3, abs=0.05)


# Lab 02's table, and what the lab says of it.


def test_the_table_of_two_allgathers_has_16_sizes_on_1_to_16_ranks_and_shows_what_the_lab_says():
    rows = cluster_sweep.ALLGATHERS.read()
    assert len(rows) == 512 == len(set(map(cluster_sweep.key_of, rows)))
    assert sorted(set(rows["bytes"].tolist())) == [32 << power for power in range(16)]
    assert set(rows["ranks"]) == set(range(1, 17))
    root, pairs = (
        dict(
            (tuple(point), seconds)
            for *point, seconds in rows[rows["kernel"] == f"allgather_{name}"][
                ["ranks", "bytes", "seconds"]
            ].tolist()
        )
        for name in ("nonblocking_gather_bcast", "pairwise")
    )
    assert [point for point in root if root[point] < pairs[point]] == [
        (5, 32),
        (5, 64),
        (5, 128),
        (5, 256),
    ]
    for ranks in range(2, 17):
        long = ranks, 1 << 20
        assert root[long] / pairs[long] == pytest.approx(ranks + 1, rel=0.02)


@needs_simgrid
def test_the_command_in_the_readme_makes_the_table_of_two_allgathers(tmp_path):
    words = "allgather --hosts flat-16x1 --ppn 1 --ranks 4,5 --sizes 32:256 --algorithms"
    names = "ours:nonblocking_gather_bcast,ours:pairwise"
    assert main(["sweep", *words.split(), names, "-o", str(tmp_path / "a.csv")]) == 0
    kits = {cluster_sweep.key_of(row): row["seconds"] for row in cluster_sweep.ALLGATHERS.read()}
    again = cluster_sweep.ALLGATHERS.read(tmp_path / "a.csv")
    assert len(again) == 2 * 2 * 4
    assert all(kits[cluster_sweep.key_of(row)] == row["seconds"] for row in again)
