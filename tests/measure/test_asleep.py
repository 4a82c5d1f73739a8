"""Times are measured only while the ranks of a notebook's cluster sleep."""

import os
import re
import time
import warnings
from pathlib import Path

import pytest

from mpilab.cluster.engines import ASLEEP, Cluster, asleep
from mpilab.errors import ClusterError
from mpilab.measure import cluster_sweep, distances, osu, sweep
from mpilab.mpiio import cannon, files, readers
from mpilab.notebook import session
from mpilab.tuning import comparison, rules


def compute_while(path, begun):
    """Use a core as long as there is a file `path`, after opening the FIFO `begun`: on a rank."""
    import os

    os.close(os.open(begun, os.O_WRONLY))
    while os.path.exists(path):  # noqa: PTH110
        pass


@pytest.fixture(scope="module")
def cluster():
    with Cluster(2, progress=False) as cluster:
        yield cluster


@pytest.fixture
def busy(cluster, tmp_path):
    """A function that keeps rank 1 computing until the test ends."""
    until, begun = tmp_path / "until", tmp_path / "begun"
    os.mkfifo(begun)
    pending = []

    def start():
        until.touch()
        pending.append(cluster.view.client[1].apply_async(compute_while, str(until), str(begun)))
        begun.read_bytes()  # until the rank opens it

    yield start
    until.unlink(missing_ok=True)
    for one in pending:
        one.get(60)


def _cannon(folder):
    for name in "ab":
        files.make(folder / name, 4, 4)
    cannon.run(3, 1, folder / "a", folder / "b")


def _rules(folder):
    path = folder / "some.rules"
    path.write_text(rules.as_text([rules.Rule("bcast", 2, 0, 1)]))
    comparison.compare(rules.read(path), path, ranks=[2], sizes=[8])


# Each function that times a job of its own, in the least that it can be asked for.
MEASURED = {
    "mpilab.sweep": lambda _: session.sweep(
        ["barrier_linear"], ranks=[2], repetitions=1, progress=False, oversubscribe=True
    ),
    "mpilab.sweeps.sweep": lambda _: sweep.sweep(
        "barrier",
        ranks=[2],
        algorithms=["ours:linear"],
        repetitions=1,
        progress=False,
        oversubscribe=True,
    ),
    "sweep_reads": lambda _: session.sweep_reads(
        ["read_strided"],
        matrix="8x8",
        ranks=2,
        repetitions=1,
        progress=False,
        oversubscribe=True,
    ),
    "osu.run": lambda _: osu.run(
        "osu_barrier", ranks=2, iterations=1, warmup=0, own=True, oversubscribe=True
    ),
    "distances.measure": lambda _: distances.measure(sizes=[8], repetitions=1),
    "readers.time": lambda _: readers.time("8x8", 2, readers.READERS[:1], repetitions=1),
    "cannon.run": _cannon,
    "comparison.compare": _rules,
}


@pytest.mark.parametrize("name", MEASURED)
def test_nothing_is_timed_while_a_rank_of_the_cluster_computes(name, busy, tmp_path, monkeypatch):
    monkeypatch.setattr("mpilab.cluster.engines.SETTLE_S", 0.0)
    busy()
    with pytest.raises(ClusterError, match=r"are computing \(1 of .*cluster\.restart\(\)"):
        MEASURED[name](tmp_path)


def test_the_ranks_of_an_idle_cluster_sleep_and_are_not_complained_of(cluster):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = osu.run(
            "osu_barrier", ranks=2, iterations=100, warmup=0, own=True, oversubscribe=True
        )
    assert len(table.rows) == 1


def test_a_rank_that_begins_to_compute_meanwhile_is_named_in_a_warning_at_the_callers_line(
    busy, cluster
):
    began = time.monotonic()

    def compute(line):
        """The job waits, until a rank has used more than twice what is allowed."""
        if re.match(r"1 ", line):
            busy()
            spent = cluster.processor_seconds()
            while cluster.processor_seconds() - spent < 2 * ASLEEP * (time.monotonic() - began) + 1:
                time.sleep(0.01)

    with pytest.warns(UserWarning, match=r"used \d+% of a core during the meas") as told:
        osu.run(
            "osu_bcast",
            ranks=2,
            sizes=(1, 1 << 20),
            iterations=200,
            own=True,
            oversubscribe=True,
            on_line=compute,
        )
    assert [Path(one.filename).name for one in told] == [Path(__file__).name]


def test_without_a_cluster_nothing_is_asked(monkeypatch):
    monkeypatch.setattr("mpilab.cluster.engines._active", None)
    with asleep():
        pass


def test_a_sweep_over_emulated_hosts_is_refused_as_well(busy, no_hosts, monkeypatch):
    monkeypatch.setattr("mpilab.cluster.engines.SETTLE_S", 0.0)
    busy()
    with pytest.raises(ClusterError, match="are computing"):
        cluster_sweep.sweep(
            "bcast",
            "two-groups",
            ppn=1,
            sizes=[8],
            algorithms=["ours:node"],
            emulated=True,
            progress=False,
        )
