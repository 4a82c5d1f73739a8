"""A cluster of emulated hosts: bring it up, run commands in it, take it down."""

import hashlib
import os
import re
import sys
import threading
from pathlib import Path

from mpilab import openmpi, pids
from mpilab.descriptions import Description, read
from mpilab.emulated import life
from mpilab.emulated.capabilities import probe
from mpilab.errors import ClusterError, InputError

ENTER = str(Path(__file__).with_name("enter.py"))
# What the kernel takes for a name of a host; Open MPI cuts a name at its first dot.
_NAME = re.compile(r"[A-Za-z0-9](?:[\w-]{0,62}[A-Za-z0-9])?")


class EmulatedHosts:
    """The hosts of `description` (a Description, or what descriptions.read takes), emulated.

        with EmulatedHosts("two-groups") as hosts: ...

    They end with the block, with `down()`, or with the process that brought them up, even where
    that is killed. Several clusters, also of the same description, do not know of each other.

    description  what they were built from
    names        of the hosts, in the order of the description
    name         of the cluster: the description's, or another one that `mpilab hosts up` was given
    directory    Path of a directory of this cluster's own (mode 0700), the same on all hosts, and
                 gone with it; None while it is down. `directory / "tmp"` is each host's own, in
                 memory

    Raises InputError for a description whose hosts cannot be emulated.
    """

    def __init__(self, description, *, name=None):
        if not isinstance(description, Description):
            description = read(description)
        self.description = description
        self.name = name or description.name
        self.names = tuple(host.name for host in description.hosts)
        for host in self.names:
            if not _NAME.fullmatch(host) or host in ("localhost", "fabric"):
                raise InputError(
                    f"{description.name}: no emulated host can be called {host!r}; take up to 64 "
                    "letters, digits, _ and -, e.g. 'n1'"
                )
        self._state = self._keeper = None

    @classmethod
    def attached(cls, found):
        """The cluster of a State (mpilab.emulated.state) that somebody else brought up."""
        hosts = cls(found.description, name=found.name)
        hosts._state = found
        return hosts

    def __enter__(self):
        return self.up()

    def __exit__(self, *_):
        # What was found running goes on running.
        if self._keeper is not None:
            self.down()

    def __repr__(self):
        where = f"up in {self.directory}" if self.running else "down"
        return f"EmulatedHosts({self.name!r}: {', '.join(self.names)}; {where})"

    @property
    def running(self):
        """Are the hosts up?"""
        return self._state is not None and self._state.is_up

    @property
    def directory(self):
        return None if self._state is None else self._state.directory

    @property
    def owner(self):
        """The process that the hosts end with; 0 where they stay up until they are taken down."""
        return 0 if self._state is None else self._state.owner

    @property
    def latency_by(self):
        """What delays on links with latency: "netem" or "relay"; "" where nothing can."""
        return "" if self._state is None else self._state.latency_by

    def up(self, *, stay=False):
        """Bring the hosts up; returns self. With `stay` they outlive this process.

        Raises SetupError where this machine cannot do that, ClusterError where it fails.
        """
        if not self.running:
            self._forget()
            capabilities = probe()
            capabilities.need(self.description)
            owner = 0 if stay else os.getpid()
            self._state, self._keeper = life.begin(self.name, self.description, capabilities, owner)
        return self

    def down(self):
        """Take the hosts down with all that runs on them; nothing is left. None may be up.

        Raises ClusterError where they do not go.
        """
        if self._state is not None:
            try:
                life.end(self._state)
            finally:
                self._forget()

    def command(self, argv, host=None):
        """The command line that runs `argv` on `host` (default: the first), for subprocess.Popen.

        It takes standard input and output, environment and working directory as they are given,
        passes signals on, ends with its parent, and gives back the exit status (128 + N where
        signal N ended the command, 255 where the host is gone). Processes may start it as long as
        the hosts are up.

        Raises InputError for a host that there is not, ClusterError where they are down.
        """
        host = self.names[0] if host is None else host
        number, begun = self._process(host)
        return [sys.executable, "-I", "-S", ENTER, str(number), str(begun), host, "--",
                *map(str, argv)]  # fmt: skip

    def environment(self, ranks, **more):
        """The whole environment for `ranks` ranks on these hosts: openmpi.environment, and what
        the hosts need. A plain `mpirun -n 8` then uses them in their order, by their slots."""
        self._need()
        groups = {host.name: host.group for host in self.description.hosts}
        return openmpi.environment(ranks, **openmpi.SLOT_BY_SLOT | more) | openmpi.on_hosts(
            agent=self.directory / "agent",
            hostfile=self.directory / "hostfile",
            temporary=self.directory / "tmp",
            groups=groups,
        )

    def hostfile(self, names):
        """Write a hostfile with one line a rank, for `mpirun --map-by seq --hostfile`: its Path.

        Raises InputError for a name that is none of the hosts'.
        """
        self._need()
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise self._no_such(unknown[0])
        text = "".join(f"{name}\n" for name in names)
        path = self.directory / f"hostfile-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        if not path.exists():
            # Whole or not at all: others of this user may ask for the same one.
            partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            partial.write_text(text, encoding="ascii")
            os.replace(partial, path)
        return path

    def process(self, host):
        """The number, here, of a process that lives as long as this host: /proc/NUMBER/root is
        its file system. Raises as `command` does."""
        return self._process(host)[0]

    def host_pid(self, pid_inside):
        """The number, here, of a process that has `pid_inside` on the hosts; None if there is
        none. (All hosts of a cluster share one space of numbers.)"""
        self._need()
        of = pids.namespace(self._process(self.names[0])[0])
        return None if of is None else pids.outside(pid_inside, of)

    def _process(self, host):
        self._need()
        if host not in self.names:
            raise self._no_such(host)
        return self._state.processes[f"host {host}"]

    def _no_such(self, host):
        return InputError(f"host {host!r}: not in {self.name}; it has {', '.join(self.names)}")

    def _need(self):
        if not self.running:
            raise ClusterError(f"{self.name}: the hosts are not up. Call up() first, or write "
                               f"'with EmulatedHosts(...) as hosts:'")  # fmt: skip

    def _forget(self):
        """A cluster that is gone, or belongs to the process that this one was forked from."""
        if self._keeper is not None:
            life.release(self._keeper)
        self._keeper = self._state = None
