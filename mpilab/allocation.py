"""The nodes that Slurm has given to this job, and the ranks on them.

Slurm tells a job its nodes by name (SLURM_JOB_NODELIST) and how many tasks it may have on each
(SLURM_TASKS_PER_NODE); the rest is asked on the nodes themselves, by one srun: what they call
themselves, which switches are above them (SLURM_TOPOLOGY_ADDR, the groups of the ranks), and
whether they see our files. See srun(1) and sbatch(1), "OUTPUT ENVIRONMENT VARIABLES".
"""

import os
import re
import secrets
import shutil
import subprocess
from dataclasses import replace
from functools import cache
from pathlib import Path

from mpilab import openmpi
from mpilab.descriptions import Description
from mpilab.errors import ClusterError, InputError, SetupError
from mpilab.hosts import Host
from mpilab.orders import order
from mpilab.places import Place

# The value of hosts=, and of MPILAB_HOSTS for whatever says nothing about hosts.
SLURM = "slurm"
HOSTS, SHARED, LAUNCHER = "MPILAB_HOSTS", "MPILAB_SHARED", "MPILAB_LAUNCHER"
LAUNCHERS = ("mpirun", "srun")
_TOLD = ("SLURM_JOB_ID", "SLURM_JOB_NODELIST", "SLURM_TASKS_PER_NODE", SHARED, LAUNCHER)
ANSWER_S = 60.0

_TASKS = re.compile(r"(\d+)(?:\(x(\d+)\))?")
# For each node: Slurm's name, its own, the switches above it, and whether it sees the file $1.
_ASK = 'echo "$SLURMD_NODENAME $(hostname -s) ${SLURM_TOPOLOGY_ADDR:--} $(test -e "$1" && echo y)"'


class Allocation:
    """The nodes of the Slurm job that this process is part of.

    description  mpilab.descriptions.Description: the nodes as hosts, their tasks as slots, the
                 switches above each as its group
    names        of the nodes as Slurm calls them, in the order of the job
    directory    a folder that all nodes see: MPILAB_SHARED, or the one that sbatch was called in
    launcher     "mpirun", which finds the nodes by itself, or "srun" (`srun --mpi=pmix`, for
                 clusters that want it so), as MPILAB_LAUNCHER says

    Raises SetupError outside of a job, and where `directory` is not seen by every node.
    """

    def __init__(self, environment=None):
        environment = os.environ if environment is None else environment
        job, nodes = environment.get("SLURM_JOB_ID"), environment.get("SLURM_JOB_NODELIST")
        if not (job and nodes):
            raise SetupError(
                f"hosts={SLURM!r}: this is no Slurm job (SLURM_JOB_ID and SLURM_JOB_NODELIST are "
                "not set). Submit it: 'sbatch slurm/kernel.sbatch', or get nodes first: 'salloc'"
            )
        self.name = f"slurm job {job}"
        self.launcher = environment.get(LAUNCHER) or LAUNCHERS[0]
        if self.launcher not in LAUNCHERS:
            raise InputError(f"{LAUNCHER}={self.launcher!r}: take {' or '.join(LAUNCHERS)}")
        self.directory = shared_folder(environment)
        self.names = tuple(_said("scontrol", "show", "hostnames", nodes).split())
        slots = tasks_per_node(environment.get("SLURM_TASKS_PER_NODE", "1"), len(self.names))
        found = self._ask()
        self._own_names = {name: own for name, (own, _) in found.items()}
        hosts = [
            Host(name, number, None, found[name][1])
            for name, number in zip(self.names, slots, strict=True)
        ]
        self.description = Description(self.name, "", tuple(hosts))

    def __enter__(self):
        """The nodes are there already, and remain when the block ends: they are Slurm's."""
        return self

    def __exit__(self, *_):
        pass

    def _ask(self):
        """{node: (what it calls itself, its group)}. Raises as the class does."""
        probe = self.directory / f".mpilab-seen-{secrets.token_hex(6)}"
        try:
            probe.touch()
        except OSError as error:
            raise SetupError(
                f"{self.directory}: the job cannot write there: {error.strerror}. Let {SHARED} "
                "name a folder of yours that all nodes see"
            ) from error
        number = str(len(self.names))
        try:
            said = _said("srun", "--overlap", "--overcommit", "--mpi=none", "--nodes", number,
                         "--ntasks", number, "--ntasks-per-node=1", "sh", "-c", _ASK, "sh",
                         probe)  # fmt: skip
        finally:
            probe.unlink()
        answers = [line.split() for line in said.splitlines()]
        blind = [words[0] for words in answers if words[3:] != ["y"]]
        if blind:
            raise SetupError(
                f"{self.directory}: not seen on {', '.join(blind)}. Submit from a folder that all "
                f"nodes share, or let {SHARED} name one (and keep the kit on such a disk, too)"
            )
        return {node: (own, _group(address, node)) for node, own, address, _ in answers}

    @property
    def address(self):
        """The address or name of this node by which Slurm, and so every other node, reaches it."""
        here = os.environ.get("SLURMD_NODENAME", self.names[0])
        told = re.search(r"\bNodeAddr=(\S+)", _said("scontrol", "show", "node", here))
        return told[1] if told else here

    def place(self, name):
        """The Place of the node that calls itself, or that Slurm calls, `name`."""
        short = name.partition(".")[0]
        for host in self.description.hosts:
            if short in (host.name.partition(".")[0], self._own_names[host.name]):
                return Place(host.name, host.group)
        raise ClusterError(f"{self.name}: a rank ran on {name}, which is none of its nodes: "
                           f"{', '.join(self.names)}")  # fmt: skip

    def order(self, name="seq", ranks=None, seed=1):
        """The node of each rank, as in mpilab.orders.order; nodes take more ranks than they have
        tasks where there are more ranks than tasks."""
        slots = self.description.slots
        times = -(-(ranks or slots) // slots)
        hosts = tuple(replace(host, slots=host.slots * times) for host in self.description.hosts)
        return order(replace(self.description, hosts=hosts), name, ranks=ranks, seed=seed)

    def command(self, names):
        """What starts one rank on each of the nodes `names`, in this order; the program follows."""
        listed = ",".join(names)
        if self.launcher == "mpirun":
            return [openmpi.tool("mpirun"), "-n", str(len(names)), "--host", listed,
                    "--map-by", "seq"]  # fmt: skip
        return ["srun", "--overlap", "--overcommit", "--mpi=pmix", "--kill-on-bad-exit=1",
                "--cpu-bind=none", "--nodes", str(len(set(names))), "--ntasks", str(len(names)),
                "--distribution=arbitrary", "--nodelist", listed]  # fmt: skip

    def environment(self, names, **more):
        """The whole environment of an mpirun or srun that `command(names)` begins."""
        fullest = max(map(list(names).count, set(names)))
        groups = ",".join(
            f"{own}={host.group}"
            for host in self.description.hosts
            if (own := self._own_names[host.name]) and host.group != "-"
        )
        found = openmpi.environment(fullest, **more) | openmpi.IN_ALLOCATION
        if groups:
            found["MPILAB_GROUPS"] = groups
        # These would have a say in how our srun, or mpirun's, spreads its tasks.
        for name in ("SLURM_NTASKS_PER_NODE", "SLURM_DISTRIBUTION", "SLURM_HOSTFILE"):
            found.pop(name, None)
        return found


def wished():
    """The Allocation, where MPILAB_HOSTS asks for it; else None. Raises as Allocation does."""
    value = os.environ.get(HOSTS, "")
    if value not in ("", SLURM):
        raise InputError(f"{HOSTS}={value!r}: only {SLURM!r} is known; unset it for this machine")
    # The nodes of a job stay the same, and asking them takes a while.
    return _known(*(os.environ.get(name) for name in _TOLD)) if value else None


@cache
def _known(*_):
    return Allocation()


def shared_folder(environment=None):
    """The Path of a folder that all nodes of this Slurm job see: MPILAB_SHARED, or the one that
    sbatch was called in. None outside of a job: the usual place for files will do."""
    environment = os.environ if environment is None else environment
    if "SLURM_JOB_ID" not in environment:
        return None
    submitted = environment.get("SLURM_SUBMIT_DIR") or os.getcwd()
    return Path(environment.get(SHARED) or submitted).resolve()


def tasks_per_node(text, nodes):
    """Slurm's list of tasks, "2(x3),1" -> [2, 2, 2, 1]; one number is for all `nodes` nodes.

    Raises InputError for what is no such list.
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


def _group(address, node):
    """The switches above a node, "s0.s3.node7" -> "s0.s3"; "-" where Slurm knows of none."""
    above, dot, last = address.rpartition(".")
    return above if dot and last == node else "-"


def _said(*argv):
    """Standard output of one of Slurm's commands."""
    if shutil.which(argv[0]) is None:
        raise SetupError(f"{argv[0]}: not found on PATH; load Slurm's module on the nodes, too")
    try:
        done = subprocess.run([*map(str, argv)], capture_output=True, text=True, timeout=ANSWER_S,
                              stdin=subprocess.DEVNULL, check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ClusterError(f"{argv[0]}: no answer within {ANSWER_S:g} s; 'squeue -s' lists the "
                           "job's steps: does another one hold all nodes?") from None  # fmt: skip
    if done.returncode:
        raise ClusterError(f"{' '.join(map(str, argv[:3]))}: {done.stderr.strip()[-500:]}")
    return done.stdout
