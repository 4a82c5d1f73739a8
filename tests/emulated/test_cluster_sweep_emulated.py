"""A sweep over emulated hosts: real Open MPI, with and without its hierarchical collectives."""

from mpilab.measure import cluster_sweep
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
