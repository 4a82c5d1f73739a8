"""The figures of docs/performance.md: what each measures, and against what."""

import os
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np

from mpilab import openmpi
from mpilab.bench import figure
from mpilab.build import INCLUDE, ROOT
from mpilab.errors import InputError, MpilabError

# Two ranks that wait for one another: found wanting as soon as anything can be.
HEAD_TO_HEAD = """#include "mpilab.h"
MPILAB_ALLGATHER(head_to_head)
{
    int rank, size;
    (void)sendbuf, (void)sendcount, (void)sendtype;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return MPI_Recv(recvbuf, recvcount, recvtype, (rank + 1) % size, TAG, comm, MPI_STATUS_IGNORE);
}
"""


@figure("", "≤ 0.3", "`mpicc … && mpirun -n 4 …` by hand, Open MPI's default settings")
def cell_to_result_ratio(repeats=7):
    """From an edited cell to a verified result on 4 ranks, over the same by hand."""
    from mpilab import session
    from mpilab.build import build
    from mpilab.cluster.engines import Cluster

    kernel = (ROOT / "src_c" / "allgather" / "ring.c").read_text(encoding="utf-8")
    driver = ROOT / "src_c" / "bench" / "by_hand.c"
    ratios = []
    defaults = {name: value for name, value in os.environ.items() if "_MCA_" not in name}
    with tempfile.TemporaryDirectory() as folder, Cluster(4, progress=False):
        for number in range(repeats):
            edited = f"{kernel}\n/* edit {number} */\n"
            begin = time.perf_counter()
            session.kernels["allgather_ring"] = build(edited, folder, stem=f"cell{number}")
            run = session.run("allgather_ring", count=64)
            in_notebook = time.perf_counter() - begin
            if not run.right:
                raise InputError(f"allgather_ring: {run.trouble}")

            source = Path(folder) / "hand.c"
            source.write_text(edited, encoding="utf-8")
            begin = time.perf_counter()
            subprocess.run([openmpi.tool("mpicc"), "-O2", f"-I{INCLUDE}", str(source), str(driver),
                            "-o", f"{folder}/hand"], check=True)  # fmt: skip
            subprocess.run([openmpi.tool("mpirun"), "--oversubscribe", "-n", "4", f"{folder}/hand"],
                           check=True, env={**defaults, **openmpi.ROOT}, timeout=60,
                           stdout=subprocess.DEVNULL)  # fmt: skip
            by_hand = time.perf_counter() - begin
            ratios.append(in_notebook / by_hand)
        del session.kernels["allgather_ring"]
    return ratios[1:]  # the first one loads what stays loaded


@figure("", "≤ 1.3", "mpirun of 4 interpreters that import ipyparallel and mpi4py")
def cluster_ready_ratio(repeats=5):
    """From Cluster(4).start() to the first result, over the bare floor."""
    from mpilab.cluster.readiness import measure_ready

    return [ready / floor for ready, floor in measure_ready(4, repeats)]


@figure("ns", "< 100", "the same ping-pong through PMPI_, in turn, in one run")
def recorder_overhead_ns(blocks=41, trips=20_000):
    """What recording adds to one MPI_Send or MPI_Recv on the way of a ping-pong of 8 bytes.

    What the recorder does while the message is on its way costs the ping-pong nothing.
    """
    from mpilab.build import ping_pong

    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(
            [openmpi.tool("mpirun"), "-n", "2", str(ping_pong()), folder, str(blocks), str(trips)],
            check=True, capture_output=True, text=True, timeout=600,
            env=openmpi.environment(2) | {"TMPDIR": folder},
        )  # fmt: skip
    recorded, direct = np.loadtxt(said.stdout.splitlines()).T
    # In a round trip four calls follow on one another: two sends and two receives.
    return (recorded - direct)[1:] / trips / 4


@figure("s", "≤ 2.5", "wall time from the call of a kernel that hangs at once to its panel")
def fault_to_panel_seconds(repeats=5):
    """From calling a kernel that hangs at once to its panel; 1 s of it is the standstill."""
    return [to_panel for to_panel, _ in _hang_and_recover(repeats)]


@figure("s", "≤ 4", "wall time from the end of the standstill to the next right result")
def recovery_seconds(repeats=5):
    """Seconds until the cluster is usable again, the restart before the panel included."""
    return [recovery for _, recovery in _hang_and_recover(repeats)]


def _hang_and_recover(repeats):
    """(seconds to the panel, seconds from standing still to a right result) of each hang."""
    from mpilab import session
    from mpilab.build import build
    from mpilab.cluster.engines import Cluster
    from mpilab.hang import STANDSTILL_S

    times = []
    with tempfile.TemporaryDirectory() as folder, Cluster(4, progress=False):
        session.kernels["allgather_head_to_head"] = build(HEAD_TO_HEAD, folder)
        for _ in range(repeats):
            begin = time.perf_counter()
            panel = repr(session.run("allgather_head_to_head"))
            shown = time.perf_counter()
            after = session.run("allgather_ring")
            if "Deadlock" not in panel or not after.right:
                raise MpilabError(f"no deadlock, or no recovery from it: {panel}\n{after!r}")
            times.append((shown - begin, time.perf_counter() - begin - STANDSTILL_S))
        del session.kernels["allgather_head_to_head"]
    return times
