"""Sweeps and OSU tables on emulated hosts: real Open MPI, with and without coll/han."""

from mpilab.cli import main
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.measure import cluster_sweep, osu
from mpilab.measure.sweep import Report


def test_emulated_hosts_are_swept_over_ranks_per_host():
    report = Report()
    rows = cluster_sweep.sweep(
        "bcast",
        "two-groups",
        ppn="1-2",
        sizes=[1024],
        algorithms="ours:binomial,openmpi",
        order="rr",
        emulated=True,
        repetitions=3,
        progress=False,
        report=report,
    )
    assert report.lines() == []
    kernels = ["bcast_binomial", "bcast_openmpi", "bcast_openmpi_no_han"]
    found = cluster_sweep.summarize(rows)
    assert found[["kernel", "nodes", "ppn", "ranks", "n"]].tolist() == [
        (kernel, 4, ppn, 4 * ppn, 3) for ppn in (1, 2) for kernel in kernels
    ]
    assert (rows["seconds"] > 0).all() and "core" in rows["machine"][0]


def test_osus_tables_are_printed_for_two_mappings_of_the_hosts(capsys):
    with EmulatedHosts("two-groups") as hosts:
        few = {"sizes": "64:128", "iterations": 3, "warmup": 1, "validate": True}
        by_slot, by_node = (
            osu.run("osu_allgather", hosts=hosts, map_by=words, **few) for words in ("slot", "node")
        )
    for table in (by_slot, by_node):
        assert table.rows["size"].tolist() == [64, 128] and table.all_valid
        assert "8 ranks, oversubscribed, on the emulated hosts of two-groups" in table.where
    assert main("bench osu_barrier --hosts two-groups --map-by node -i 3 -x 1".split()) == 0
    assert capsys.readouterr().out.startswith("# emulated hosts: two-groups, on ")
