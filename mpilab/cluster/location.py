"""Where the processes of a cluster run: on this machine, on emulated hosts, or in a Slurm job.

A location provides the command line and environment of a program there, mpirun's options for the
placement of ranks, and the shared memory of the ranks. end() ends what begin() has started.
"""

import operator
import os
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mpilab.errors import ClusterError, InputError, SetupError
from mpilab.hosts import description, orders, slurm
from mpilab.hosts.description import Description
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.places import Levels, Place
from mpilab.kernels import openmpi

SHARED_MEMORY = Path("/dev/shm")
# What mpilab.Cluster takes as `hosts`.
Hosts = EmulatedHosts | slurm.Allocation | Description | str | os.PathLike[str] | None


def locate(
    n: int | None, hosts: Hosts, order: str | Sequence[str], seed: int
) -> "tuple[int, Location]":
    """(number of ranks, location) from the arguments of mpilab.Cluster. Raises InputError."""
    n = None if n is None else _number_of_ranks(n)
    if hosts == slurm.SLURM:
        hosts = slurm.Allocation()
    elif hosts is None:
        hosts = slurm.wished()
    if hosts is None:
        if order != "seq":
            raise InputError(
                f"order={order!r}: all ranks of this cluster are on one host; say which hosts "
                'there are, e.g. mpilab.Cluster(hosts="two-groups", order="rr")'
            )
        n = n or 4
        return n, ThisMachine(n)
    if isinstance(hosts, str | os.PathLike):
        hosts = description.read(Path(hosts) if isinstance(hosts, os.PathLike) else hosts)
    if isinstance(hosts, Description):
        hosts = EmulatedHosts(hosts)
    if isinstance(order, str) and isinstance(hosts, slurm.Allocation):
        names: Sequence[str] = hosts.order(order, n, seed)
    elif isinstance(order, str):
        ranks = n or hosts.description.slots
        names = orders.order(hosts.description, order, ranks=ranks, seed=seed)
    else:
        names, order = tuple(order), "a custom order"
        if n not in (None, len(names)) or not names:
            raise InputError(
                f"order=… names the hosts of {len(names)} ranks instead of {n or 'some'}:"
                " give one name for each rank"
            )
    return len(names), placed(hosts, names, order)


def hosts_of(cluster: str | Description) -> EmulatedHosts | slurm.Allocation:
    """The hosts for a `with` block: EmulatedHosts that exist for the block, from a Description or
    the name of one; for "slurm", the Allocation of the current job.

    Raises SetupError outside a job, InputError for a description that cannot be read.
    """
    if cluster == slurm.SLURM:
        return slurm.Allocation()
    return EmulatedHosts(cluster)


def placed(
    hosts: EmulatedHosts | slurm.Allocation, names: Sequence[str], order: str = ""
) -> "OnHosts | InAllocation":
    """The location of ranks on EmulatedHosts or on the nodes of an Allocation; see OnHosts."""
    if isinstance(hosts, slurm.Allocation):
        return InAllocation(hosts, names, order)
    return OnHosts(hosts, names, order)


class ThisMachine:
    """All `ranks` on this machine."""

    on_hosts = is_spread = is_remote = False
    is_there = True
    hosts = None
    words = ""

    def __init__(self, ranks: int) -> None:
        self.names = (socket.gethostname(),) * ranks
        # "-", since this machine's own name may be invalid in a hostfile.
        self.places = (Place("-"),) * ranks

    @property
    def folder(self) -> Path:
        """Path for files that all ranks and this process can access."""
        return Path(tempfile.gettempdir())

    def begin(self) -> None:
        """Do nothing: this machine is ready."""

    def confirm(self, names: Sequence[str]) -> None:
        """Accept any host names: this machine's own name does not matter."""

    def end(self) -> None:
        """Do nothing: there is nothing to end."""

    def command(self, argv: list[str]) -> list[str]:
        """The command line that runs `argv` at this location."""
        return argv

    def environment(self, ranks: int, **more: str) -> dict[str, str]:
        """The environment of programs at this location, with `more` (openmpi.environment)."""
        return openmpi.environment(ranks, **more)

    def mpirun(self, ranks: int) -> list[str]:
        """The mpirun command with options for the hosts and the number of ranks."""
        return [openmpi.tool("mpirun"), "-n", str(ranks)]

    def shared_memory(self, name: str) -> list[Path]:
        """Paths, on this machine, of the directory `name` in each host's shared memory."""
        return [SHARED_MEMORY / name] if os.access(SHARED_MEMORY, os.W_OK) else []

    def process_here(self, process: int) -> int | None:
        """The process ID here of `process` at this location; None if it has ended."""
        return process


class OnHosts:
    """The ranks on emulated hosts: rank i on the host `names[i]`.

    hosts   mpilab.hosts.emulated.EmulatedHosts; if they are not up, they start and end with the
            cluster.
    order   the name of the rank order.

    Raises InputError for a name that is not one of the hosts.
    """

    on_hosts = is_spread = True
    is_remote = False

    def __init__(self, hosts: EmulatedHosts, names: Sequence[str], order: str) -> None:
        self.hosts, self.names = hosts, tuple(names)
        self.places = hosts.description.places(names)
        self.order = order
        self.is_ours = False

    @property
    def words(self) -> str:
        """For a cluster's repr: ' on 4 nodes in 2 groups (two-groups, rr)'."""
        where = Levels(self.places).describe()
        return f" on {where} ({self.hosts.description.name}, {self.order})"

    @property
    def folder(self) -> Path | None:
        """The hosts' directory, visible on all, whatever TMPDIR is; removed with the hosts, and
        None while they are down."""
        return self.hosts.directory

    def begin(self) -> None:
        """Bring the hosts up, unless they are. Raises SetupError if this machine cannot."""
        if self.hosts.running:
            return
        try:
            self.hosts.up()
        except SetupError as error:
            raise SetupError(
                f"{str(error).rstrip('.')}. In a notebook take mpilab.Cluster({len(self.names)}), "
                f'and let the ranks pretend: mpilab.run(…, places="{orders.text_of(self.places)}")'
            ) from error
        self.is_ours = True

    @property
    def is_there(self) -> bool:
        """True if the hosts are up, so that ranks can be started."""
        return self.hosts.running

    def confirm(self, names: Sequence[str]) -> None:
        """Raise ClusterError if the ranks are on other hosts (`names`) than requested."""
        for rank, (found, ordered) in enumerate(zip(names, self.names, strict=True)):
            if found != ordered:
                raise ClusterError(
                    f"rank {rank} runs on {found}, not on {ordered} as requested: does one of your "
                    "settings (PRTE_MCA_… in the environment) override the request?"
                )

    def end(self) -> None:
        """Take down the hosts that begin() has brought up."""
        if self.is_ours:
            self.is_ours = False
            self.hosts.down()

    def command(self, argv: list[str]) -> list[str]:
        """The command line that runs `argv` on the first host; see ThisMachine."""
        return self.hosts.command(argv)

    def environment(self, ranks: int, **more: str) -> dict[str, str]:
        """The environment of programs at this location, with `more` (openmpi.environment)."""
        return self.hosts.environment(ranks, **more)

    def mpirun(self, ranks: int) -> list[str]:
        """The mpirun command with a hostfile of one line per rank."""
        hostfile = self.hosts.hostfile(self.names)
        return [
            openmpi.tool("mpirun"),
            "-n",
            str(ranks),
            "--hostfile",
            str(hostfile),
            "--map-by",
            "seq",
        ]

    def shared_memory(self, name: str) -> list[Path]:
        """Paths of each host's own /dev/shm, by way of one of its processes."""
        roots = [Path(f"/proc/{self.hosts.process(host)}/root") for host in self.hosts.names]
        return [root / SHARED_MEMORY.relative_to("/") / name for root in roots]

    def process_here(self, process: int) -> int | None:
        """The process ID here: the hosts have their own PID namespace."""
        return self.hosts.host_pid(process)


class InAllocation:
    """The ranks on the nodes of a Slurm job: rank i on the node `names[i]`.

    hosts   mpilab.hosts.slurm.Allocation.

    We cannot reach processes and shared memory on other nodes: what runs there ends with our mpirun
    or srun, or with the job.
    """

    on_hosts = False
    is_spread = is_remote = is_there = True

    def __init__(self, hosts: slurm.Allocation, names: Sequence[str], order: str) -> None:
        self.hosts, self.names, self.order = hosts, tuple(names), order
        self.places = hosts.description.places(names)

    @property
    def words(self) -> str:
        """For a cluster's repr: ' on 2 nodes in 2 groups (slurm job 17, seq)'."""
        return f" on {Levels(self.places).describe()} ({self.hosts.name}, {self.order})"

    @property
    def folder(self) -> Path:
        """A folder that all nodes see."""
        return self.hosts.directory

    @property
    def address(self) -> str:
        """The address or name by which other nodes reach this one."""
        return self.hosts.address

    def begin(self) -> None:
        """Do nothing: the nodes are allocated already."""

    def confirm(self, names: Sequence[str]) -> None:
        """Raise ClusterError if the ranks are on other nodes (`names`) than requested."""
        found = [self.hosts.place(name).node for name in names]
        if found != list(self.names):
            raise ClusterError(
                f"the ranks run on {' '.join(found)}, not on {' '.join(self.names)}: does one of "
                "your settings (PRTE_MCA_… or SLURM_… in the environment) cause this?"
            )

    def end(self) -> None:
        """Do nothing: the nodes belong to Slurm."""

    def command(self, argv: list[str]) -> list[str]:
        """`argv` itself: programs other than ranks run here, on the node of the batch script."""
        return argv

    def environment(self, ranks: int, **more: str) -> dict[str, str]:
        """The environment of programs at this location, with `more` (openmpi.environment)."""
        return self.hosts.environment(self.names, **more)

    def mpirun(self, ranks: int) -> list[str]:
        """The command that starts the ranks: mpirun, or srun."""
        return self.hosts.command(self.names[:ranks])

    def shared_memory(self, name: str) -> list[Path]:
        """Empty: we could not clean it up on every node."""
        return []

    def process_here(self, process: int) -> int | None:
        """`process` itself: only asked for the forkserver, which runs here."""
        return process

    def places_seen(self, names: Sequence[str]) -> tuple[Place, ...]:
        """The Place of each rank, from the node names that the ranks report."""
        return tuple(map(self.hosts.place, names))


Location = ThisMachine | OnHosts | InAllocation


def _number_of_ranks(n: int) -> int:
    """`n` as an int; InputError unless it is an integer of 1 or more."""
    try:
        number = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(
            f"{n!r} is not a number of ranks for mpilab.Cluster: "
            "give a whole number, 1 or more, e.g. mpilab.Cluster(4)"
        )
    return number
