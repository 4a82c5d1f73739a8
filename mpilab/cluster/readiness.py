"""How long a cluster takes until it answers, against the least that it could take.

The *floor* is mpirun of as many interpreters as there are ranks, each of which does no more than
import what makes it an engine. A cluster started in the ordinary way cannot be faster.
"""

import os
import subprocess
import sys
import time

from mpilab import openmpi
from mpilab.errors import ClusterError

READY = """
import os, time
from mpilab.cluster.engines import Cluster
begin = time.perf_counter()
with Cluster({n}) as cluster:
    cluster.apply(os.getpid)
    print("ready", time.perf_counter() - begin)
"""

FLOOR = "import ipyparallel.engine.app, mpi4py.MPI"


def measure_ready(n=4, repeats=3):
    """Measure start against floor, in turns, so that both see the same load of the machine.

    Each start is that of a fresh interpreter: from `Cluster(n).start()` to the first result of a
    call on all ranks. Returns `repeats` pairs (seconds until ready, seconds of the floor). Raises
    ClusterError where a run fails.
    """
    return [(_ready(n), _floor(n)) for _ in range(repeats)]


def _ready(n):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}
    run = subprocess.run(
        [sys.executable, "-c", READY.format(n=n)], env=environment, capture_output=True, text=True
    )
    _check(run, f"starting a cluster of {n} ranks")
    return float(run.stdout.split()[-1])


def _floor(n):
    command = [openmpi.tool("mpirun"), "-n", str(n), sys.executable, "-c", FLOOR]
    begin = time.perf_counter()
    run = subprocess.run(command, env=openmpi.environment(n), capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    _check(run, f"mpirun of {n} interpreters")
    return seconds


def _check(run, what):
    if run.returncode:
        raise ClusterError(
            f"{what} failed with exit code {run.returncode}, so there is nothing to measure. "
            f"It said:\n{run.stderr[-2000:]}"
        )
