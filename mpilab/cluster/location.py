"""Where the processes of a cluster run: on this machine, on emulated hosts, or in a Slurm job.

A location says how a command is started there, with which environment, how mpirun is told where
the ranks go, and where the ranks have their shared memory. It can be begun and ended; what it
begins, it ends.
"""

import operator
import os
import socket
import tempfile
from pathlib import Path

from mpilab import allocation, openmpi
from mpilab.errors import ClusterError, InputError, SetupError
from mpilab.orders import text_of
from mpilab.places import Levels, Place

SHARED_MEMORY = Path("/dev/shm")


def locate(n, hosts, order, seed):
    """(number of ranks, location) from the arguments of mpilab.Cluster. Raises InputError."""
    n = None if n is None else _number_of_ranks(n)
    if hosts == allocation.SLURM:
        hosts = allocation.Allocation()
    elif hosts is None:
        hosts = allocation.wished()
    if hosts is None:
        if order != "seq":
            raise InputError(
                f"order={order!r}: all ranks of this cluster are on one host; say which hosts "
                'there are, e.g. mpilab.Cluster(hosts="two-groups", order="rr")'
            )
        n = n or 4
        return n, ThisMachine(n)
    from mpilab import descriptions, emulated, orders

    if isinstance(hosts, str | os.PathLike):
        hosts = descriptions.read(hosts)
    if isinstance(hosts, descriptions.Description):
        hosts = emulated.EmulatedHosts(hosts)
    if isinstance(order, str) and isinstance(hosts, allocation.Allocation):
        names = hosts.order(order, n, seed)
    elif isinstance(order, str):
        ranks = n or hosts.description.slots
        names = orders.order(hosts.description, order, ranks=ranks, seed=seed)
    else:
        names, order = tuple(order), "an order of your own"
        if n not in (None, len(names)) or not names:
            raise InputError(
                f"order=… names the hosts of {len(names)} ranks, and there are to be {n or 'some'}:"
                " give one name for each rank"
            )
    return len(names), placed(hosts, names, order)


def hosts_of(cluster):
    """The hosts of a cluster, for a `with` block: EmulatedHosts that come and go with it, from a
    Description or the name of one, or for "slurm" the Allocation of the job that this runs in.

    Raises SetupError outside of a job, InputError for a description that cannot be read.
    """
    if cluster == allocation.SLURM:
        return allocation.Allocation()
    from mpilab.emulated import EmulatedHosts

    return EmulatedHosts(cluster)


def placed(hosts, names, order=""):
    """The location of ranks on EmulatedHosts or on the nodes of an Allocation; see OnHosts."""
    kind = InAllocation if isinstance(hosts, allocation.Allocation) else OnHosts
    return kind(hosts, names, order)


class ThisMachine:
    """All `ranks` side by side on this machine."""

    on_hosts = is_spread = is_remote = False
    is_there = True
    hosts = None
    words = ""

    def __init__(self, ranks):
        self.names = (socket.gethostname(),) * ranks
        # An own name may be one that no hostfile would take.
        self.places = (Place("-"),) * ranks

    @property
    def folder(self):
        """Where files go that all ranks see, and this process too: a Path."""
        return Path(tempfile.gettempdir())

    def begin(self):
        """Nothing has to be there first."""

    def confirm(self, names):
        """The ranks are on the hosts `names`, whatever this machine is called."""

    def end(self):
        """Nothing is left."""

    def command(self, argv):
        """The command line that runs `argv` there."""
        return argv

    def environment(self, ranks, **more):
        """The environment of the programs that run there, with `more` (openmpi.environment)."""
        return openmpi.environment(ranks, **more)

    def mpirun(self, ranks):
        """mpirun with what it has to know about the hosts, and the number of ranks."""
        return [openmpi.tool("mpirun"), "-n", str(ranks)]

    def shared_memory(self, name):
        """What the directory `name` in the shared memory of each host is called here: [Path]."""
        return [SHARED_MEMORY / name] if os.access(SHARED_MEMORY, os.W_OK) else []

    def process_here(self, process):
        """The process id here of what calls itself `process` there; None where it has ended."""
        return process


class OnHosts:
    """The ranks on emulated hosts: rank i on the host `names[i]`.

    hosts   mpilab.emulated.EmulatedHosts; where they are not up, they come and go with the cluster.
    order   what the order of the names is called.

    Raises InputError for a name that is none of the hosts'.
    """

    on_hosts = is_spread = True
    is_remote = False

    def __init__(self, hosts, names, order):
        self.hosts, self.names = hosts, tuple(names)
        self.places = hosts.description.places(names)
        self.order = order
        self.is_ours = False

    @property
    def words(self):
        """For a cluster's repr: ' on 4 nodes in 2 groups (two-groups, rr)'."""
        where = Levels(self.places).describe()
        return f" on {where} ({self.hosts.description.name}, {self.order})"

    @property
    def folder(self):
        """The hosts' directory: each of them sees it, wherever TMPDIR points; it goes with them."""
        return self.hosts.directory

    def begin(self):
        """Bring the hosts up, unless they are. Raises SetupError where this machine cannot."""
        if self.hosts.running:
            return
        try:
            self.hosts.up()
        except SetupError as error:
            raise SetupError(
                f"{str(error).rstrip('.')}. In a notebook take mpilab.Cluster({len(self.names)}), "
                f'and let the ranks pretend: mpilab.run(…, places="{text_of(self.places)}")'
            ) from error
        self.is_ours = True

    @property
    def is_there(self):
        """Can ranks be started: are the hosts up?"""
        return self.hosts.running

    def confirm(self, names):
        """Raise ClusterError if the ranks are on other hosts (`names`) than they were told to."""
        for rank, (found, ordered) in enumerate(zip(names, self.names, strict=True)):
            if found != ordered:
                raise ClusterError(
                    f"rank {rank} runs on {found}, not on {ordered}, as it was ordered: does a "
                    "setting of your own (PRTE_MCA_… in the environment) tell mpirun otherwise?"
                )

    def end(self):
        """Take down the hosts that begin() has brought up."""
        if self.is_ours:
            self.is_ours = False
            self.hosts.down()

    def command(self, argv):
        """The command line that runs `argv` on the first host; see ThisMachine."""
        return self.hosts.command(argv)

    def environment(self, ranks, **more):
        """The environment of the programs that run there, with `more` (openmpi.environment)."""
        return self.hosts.environment(ranks, **more)

    def mpirun(self, ranks):
        """mpirun with one line of a hostfile for each rank."""
        hostfile = self.hosts.hostfile(self.names)
        return [openmpi.tool("mpirun"), "-n", str(ranks), "--hostfile", str(hostfile),
                "--map-by", "seq"]  # fmt: skip

    def shared_memory(self, name):
        """Every host has a /dev/shm of its own, which is reached through one of its processes."""
        roots = [Path(f"/proc/{self.hosts.process(host)}/root") for host in self.hosts.names]
        return [root / SHARED_MEMORY.relative_to("/") / name for root in roots]

    def process_here(self, process):
        """The hosts count processes from 1 on; here they have other numbers."""
        return self.hosts.host_pid(process)


class InAllocation:
    """The ranks on the nodes of a Slurm job: rank i on the node `names[i]`.

    hosts   mpilab.allocation.Allocation.

    Processes and shared memory of the other nodes are out of our reach: what runs there ends when
    our mpirun or srun does, or with the job.
    """

    on_hosts = False
    is_spread = is_remote = is_there = True

    def __init__(self, hosts, names, order):
        self.hosts, self.names, self.order = hosts, tuple(names), order
        self.places = hosts.description.places(names)

    @property
    def words(self):
        """For a cluster's repr: ' on 2 nodes in 2 groups (slurm job 17, seq)'."""
        return f" on {Levels(self.places).describe()} ({self.hosts.name}, {self.order})"

    @property
    def folder(self):
        """A folder that all nodes see."""
        return self.hosts.directory

    @property
    def address(self):
        """Where the other nodes reach this one."""
        return self.hosts.address

    def begin(self):
        """The nodes are there already."""

    def confirm(self, names):
        """Raise ClusterError if the ranks are on other nodes (`names`) than they were told to."""
        found = [self.hosts.place(name).node for name in names]
        if found != list(self.names):
            raise ClusterError(
                f"the ranks run on {' '.join(found)}, not on {' '.join(self.names)}: does a "
                "setting of your own (PRTE_MCA_… or SLURM_… in the environment) say so?"
            )

    def end(self):
        """The nodes are Slurm's."""

    def command(self, argv):
        """See ThisMachine: what is not a rank runs here, on the node of the batch script."""
        return argv

    def environment(self, ranks, **more):
        """The environment of the programs that run there, with `more` (openmpi.environment)."""
        return self.hosts.environment(self.names, **more)

    def mpirun(self, ranks):
        """What starts the ranks: mpirun, or srun."""
        return self.hosts.command(self.names[:ranks])

    def shared_memory(self, name):
        """None that we could tidy up everywhere."""
        return []

    def process_here(self, process):
        """Only the nursery is asked for, which is here."""
        return process

    def places_seen(self, names):
        """The Place of each rank, from the names of the nodes that the ranks themselves saw."""
        return tuple(map(self.hosts.place, names))


def _number_of_ranks(n):
    """`n` as an int; raises InputError where it isn't a whole number from 1."""
    try:
        number = 0 if isinstance(n, bool) else operator.index(n)
    except TypeError:
        number = 0
    if number < 1:
        raise InputError(
            f"{n!r} is not a number of ranks for mpilab.Cluster: "
            "give a whole number from 1, e.g. mpilab.Cluster(4)"
        )
    return number
