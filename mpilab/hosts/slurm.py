"""The nodes that Slurm allocated to this job, and the ranks on them.

Slurm gives a job the names of its nodes (SLURM_JOB_NODELIST) and the number of tasks on each
(SLURM_TASKS_PER_NODE). One srun queries the nodes for the rest: their own names, the switches above
them (SLURM_TOPOLOGY_ADDR, the groups of the ranks), and whether they see our files. See srun(1) and
sbatch(1), "OUTPUT ENVIRONMENT VARIABLES".
"""

import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from mpilab.errors import ClusterError, InputError, SetupError
from mpilab.hosts.description import Description
from mpilab.hosts.hostfile import Host
from mpilab.hosts.orders import RankOrder
from mpilab.hosts.places import Place
from mpilab.kernels import openmpi

# The value of hosts=, and of MPILAB_HOSTS, the default for calls without hosts=.
SLURM = "slurm"
HOSTS, SHARED, LAUNCHER = "MPILAB_HOSTS", "MPILAB_SHARED", "MPILAB_LAUNCHER"
LAUNCHERS = ("mpirun", "srun")
_TOLD = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", SHARED, LAUNCHER)
ANSWER_S = 60.0
# For srun --mpi=pmix. With Slurm's default, "mixed", fences without data go along a tree, which
# sometimes lets a rank leave MPI_Init while another is still waiting for the first fence of its
# own. A message to that rank ends it with SIGSEGV: of starts of four ranks on two busy nodes (Open
# MPI 5.0.11, Slurm 22.05), 15 of 80 with "tree", 1 of 480 with "mixed", 0 of 480 with "ring".
FENCE = {"SLURM_PMIX_FENCE": "ring"}

_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")
# For each node: Slurm's name, its own, the switches above it, and whether it sees the file $1.
_ASK = 'echo "$SLURMD_NODENAME $(hostname -s) ${SLURM_TOPOLOGY_ADDR:--} $(test -e "$1" && echo y)"'


class Allocation:
    """The nodes of the Slurm job that this process is part of.

    description  mpilab.hosts.description.Description: the nodes as hosts, their tasks as slots, the
                 switches above each as its group
    names        Slurm's names of the nodes, in the order of the job
    directory    a folder that all nodes see: MPILAB_SHARED, or the one from which sbatch was called
    launcher     MPILAB_LAUNCHER: "mpirun", which finds the nodes itself, or "srun" (`srun
                 --mpi=pmix`, for clusters that require it)

    Raises SetupError outside a job, and if a node does not see `directory`.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        environment = os.environ if environment is None else environment
        job, nodes = environment.get("SLURM_JOB_ID"), environment.get("SLURM_JOB_NODELIST")
        if not (job and nodes):
            raise SetupError(
                f"hosts={SLURM!r}: not a Slurm job (SLURM_JOB_ID and SLURM_JOB_NODELIST are "
                "not set). Submit it: 'sbatch slurm/kernel.sbatch', or get nodes first: 'salloc'"
            )
        self.name = f"slurm job {job}"
        self.launcher = environment.get(LAUNCHER) or LAUNCHERS[0]
        if self.launcher not in LAUNCHERS:
            raise InputError(f"{LAUNCHER}={self.launcher!r}: take {' or '.join(LAUNCHERS)}")
        self.directory = _shared(environment)
        self.names = tuple(_said("scontrol", "show", "hostnames", nodes).split())
        slots = tasks_per_node(environment.get("SLURM_TASKS_PER_NODE", "1"), len(self.names))
        found = self._ask()
        self._own_names = {name: own for name, (own, _) in found.items()}
        hosts = [
            Host(name, number, None, found[name][1])
            for name, number in zip(self.names, slots, strict=True)
        ]
        self.description = Description(self.name, "", tuple(hosts))

    def __enter__(self) -> "Allocation":
        """Do nothing: the nodes are Slurm's, and remain after the block."""
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def _ask(self) -> dict[str, tuple[str, str]]:
        """{node: (its own name, its group)}. Raises as the class does."""
        probe = self.directory / f".mpilab-seen-{secrets.token_hex(6)}"
        try:
            probe.touch()
        except OSError as error:
            raise SetupError(
                f"{self.directory}: the job cannot write there: {error.strerror}. Let {SHARED} "
                "name a folder that you own that all nodes see"
            ) from error
        number = str(len(self.names))
        try:
            said = _said(
                "srun",
                "--overlap",
                "--overcommit",
                "--mpi=none",
                "--nodes",
                number,
                "--ntasks",
                number,
                "--ntasks-per-node=1",
                "sh",
                "-c",
                _ASK,
                "sh",
                probe,
            )
        finally:
            probe.unlink()
        answers = [line.split() for line in said.splitlines()]
        blind = [words[0] for words in answers if words[3:] != ["y"]]
        if blind:
            raise SetupError(
                f"{self.directory}: not visible on {', '.join(blind)}. Submit from a folder that "
                f"all nodes share, or set {SHARED} to one (and keep the kit on a shared disk, too)"
            )
        return {node: (own, _group(address, node)) for node, own, address, _ in answers}

    @property
    def address(self) -> str:
        """This node's address or name in Slurm, by which every other node can reach it."""
        here = os.environ.get("SLURMD_NODENAME", self.names[0])
        told = re.search(r"\bNodeAddr=(\S+)", _said("scontrol", "show", "node", here))
        return told[1] if told else here

    def place(self, name: str) -> Place:
        """The Place of the node `name`, which is its own name or Slurm's."""
        short = name.partition(".")[0]
        for host in self.description.hosts:
            if short in (host.name.partition(".")[0], self._own_names[host.name]):
                return Place(host.name, host.group)
        raise ClusterError(
            f"{self.name}: a rank ran on {name}, which is not one of its nodes: "
            f"{', '.join(self.names)}"
        )

    def order(self, name: str = "seq", ranks: int | None = None, seed: int = 1) -> list[str]:
        """The node of each rank, as in mpilab.hosts.orders.RankOrder.hosts.

        If there are more ranks than tasks, nodes take more ranks than they have tasks.
        """
        slots = self.description.slots
        times = -(-(ranks or slots) // slots)
        hosts = tuple(
            replace(host, slots=host.known_slots * times) for host in self.description.hosts
        )
        return RankOrder(name, seed).hosts(replace(self.description, hosts=hosts), ranks=ranks)

    def command(self, names: Sequence[str]) -> list[str]:
        """The command that starts one rank on each of the nodes `names`; append the program."""
        listed = ",".join(names)
        if self.launcher == "mpirun":
            return [
                openmpi.tool("mpirun"),
                "-n",
                str(len(names)),
                "--host",
                listed,
                "--map-by",
                "seq",
            ]
        return [
            "srun",
            "--overlap",
            "--overcommit",
            "--mpi=pmix",
            "--kill-on-bad-exit=1",
            "--cpu-bind=none",
            "--nodes",
            str(len(set(names))),
            "--ntasks",
            str(len(names)),
            "--distribution=arbitrary",
            "--nodelist",
            listed,
        ]

    def environment(self, names: Sequence[str], **more: str) -> dict[str, str]:
        """The complete environment of the mpirun or srun in `command(names)`."""
        fullest = max(map(list(names).count, set(names)))
        groups = ",".join(
            f"{own}={host.group}"
            for host in self.description.hosts
            if (own := self._own_names[host.name]) and host.group != "-"
        )
        found = FENCE | openmpi.environment(fullest, **more) | openmpi.IN_ALLOCATION
        if groups:
            found["MPILAB_GROUPS"] = groups
        # These would change how our srun, or mpirun's, distributes its tasks.
        for name in ("SLURM_NTASKS_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_HOSTFILE"):
            found.pop(name, None)
        return found


def wished() -> Allocation | None:
    """The Allocation if MPILAB_HOSTS asks for it, otherwise None. Raises as Allocation does."""
    value = os.environ.get(HOSTS, "")
    if value not in ("", SLURM):
        raise InputError(f"{HOSTS}={value!r}: only {SLURM!r} is known; unset it for this machine")
    # Cached: the nodes of a job do not change, and querying them takes a while.
    return _known(*(os.environ.get(name) for name in _TOLD)) if value else None


@cache
def _known(*_: str | None) -> Allocation:
    return Allocation()


def shared_folder(environment: Mapping[str, str] | None = None) -> Path | None:
    """The Path of a folder that all nodes of this Slurm job see: MPILAB_SHARED, or the one from
    which sbatch was called. None outside a job: use the default place for files."""
    environment = os.environ if environment is None else environment
    if "SLURM_JOB_ID" not in environment:
        return None
    return _shared(environment)


def _shared(environment: Mapping[str, str]) -> Path:
    """The same in a job."""
    submitted = environment.get("SLURM_SUBMIT_DIR") or Path.cwd()
    return Path(environment.get(SHARED) or submitted).resolve()


def tasks_per_node(text: str, nodes: int) -> list[int]:
    """Slurm's task list, "2(x3),1" -> [2, 2, 2, 1]; a single number applies to all `nodes` nodes.

    Raises InputError if the text is not such a list.
    """
    found = []
    for word in text.split(","):
        read = _TASKS.fullmatch(word)
        if read is None:
            raise InputError(f"SLURM_TASKS_PER_NODE={text!r}: not understood at {word!r}")
        found += [int(read[1])] * int(read[2] or 1)
    if len(found) == 1:
        return found * nodes
    if len(found) != nodes:
        raise InputError(f"SLURM_TASKS_PER_NODE={text!r}: {len(found)} numbers for {nodes} nodes")
    return found


def _group(address: str, node: str) -> str:
    """The switches above a node, "s0.s3.node7" -> "s0.s3"; "-" if Slurm reports none."""
    above, dot, last = address.rpartition(".")
    return above if dot and last == node else "-"


def _said(*argv: Path | str) -> str:
    """Standard output of a Slurm command."""
    if shutil.which(argv[0]) is None:
        raise SetupError(f"{argv[0]}: not found on PATH; load Slurm's module on the nodes, too")
    try:
        done = subprocess.run(
            [*map(str, argv)],
            capture_output=True,
            text=True,
            timeout=ANSWER_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(
            f"{argv[0]}: no answer within {ANSWER_S:g} s; 'squeue -s' lists the "
            "job's steps: does another one hold all nodes?"
        ) from None
    if done.returncode:
        raise ClusterError(f"{' '.join(map(str, argv[:3]))}: {done.stderr.strip()[-500:]}")
    return done.stdout
