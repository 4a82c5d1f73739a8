"""Descriptions for tests of emulated hosts, and what a cluster leaves on a machine."""

import math
import os
import select
import subprocess
from itertools import count

from mpilab.hosts.description import Description, Link
from mpilab.hosts.emulated.namespaces import begun_at
from mpilab.hosts.hostfile import Host


def described(
    groups, *, slots=2, rate=None, latency=0.0, uplink=None, uplink_latency=0.0, name="trial"
):
    """A Description with groups of {name: number of hosts}; the hosts are n1, n2, ..."""
    numbers = count(1)
    hosts = [
        Host(f"n{next(numbers)}", slots, None, group)
        for group, size in groups.items()
        for _ in range(size)
    ]
    return Description(name, "", tuple(hosts), Link(rate, latency), Link(uplink, uplink_latency))


def said(hosts, argv, host=None, **more):
    """What a command on a host writes to standard output; it has to end well."""
    done = subprocess.run(
        hosts.command(argv, host), capture_output=True, text=True, timeout=300, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def await_end(process, seconds=20):
    """Wait until the process of this number has ended; False where it does not in that time."""
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([file], [], [], seconds)[0])
    finally:
        os.close(file)


class Traces:
    """Where a cluster that is up can be seen on this machine: look again when it is down."""

    def __init__(self, hosts):
        self.directory = hosts.directory
        self.supervisor, self.root = (hosts._state.processes[n][0] for n in ("supervisor", "root"))
        self.processes = os.readlink(f"/proc/{self.root}/ns/pid")
        inside = list(map(self._namespaces_of, map(hosts.process, hosts.names)))
        assert all(self.processes in of_host for of_host in inside)
        assert not any(of_host & self._namespaces_of(os.getpid()) for of_host in inside)
        # Who has a command run on a host (enter.py) is in these together, and outside of the last.
        self.entered = [of_host - {self.processes} for of_host in inside]

    @staticmethod
    def _namespaces_of(process):
        """What /proc calls its namespaces; nothing where it has ended, or is another user's."""
        try:
            kinds = ("net", "mnt", "uts", "ipc", "pid")
            return {os.readlink(f"/proc/{process}/ns/{kind}") for kind in kinds}
        except OSError:
            return set()

    def left(self, since=math.inf):
        """What can still be seen: list of str.

        since   seconds since boot: a process that was begun later is not of this cluster. Numbers
                of namespaces are given again, on a busy machine at once: so one or two of them
                prove nothing.
        """
        found = [str(self.directory)] if self.directory.exists() else []
        for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
            begun = begun_at(process)
            if begun is None or begun / os.sysconf("SC_CLK_TCK") > since:
                continue  # it has ended; its new parent, the system's process 1, takes its time
            its = self._namespaces_of(process)
            # Who is outside learns of the end, and may need a moment for its own.
            if self.processes in its or (
                any(of_host <= its for of_host in self.entered) and not await_end(process)
            ):
                found.append(f"process {process} in {', '.join(sorted(its))}")
        with open("/proc/self/mountinfo") as file:
            found += [line for line in file if str(self.directory) in line]
        return found
