"""Descriptions for tests of emulated hosts, and what a cluster leaves on a machine."""

import os
import select
import subprocess
import weakref
from contextlib import ExitStack
from itertools import count

from mpilab.hosts.description import Description, Link
from mpilab.hosts.hostfile import Host
from mpilab.util.namespaces import begun_at

# Tells its number, that it heard the signal (first argument), and, after a line of input, how often
# it heard it since; ends with the second argument as its status. It waits for a byte that Python
# writes for each signal: input() would also wait if the signal came just before, and tell nothing.
HEARER = """
import os, signal, sys
heard, told = os.pipe()
os.set_blocking(told, False)
signal.set_wakeup_fd(told)
signal.signal(int(sys.argv[1]), lambda *_: None)
print(os.getpid(), "listens", flush=True)
os.read(heard, 1)
print("heard", flush=True)
input()
os.set_blocking(heard, False)
os.write(told, b"!")
print(len(os.read(heard, 100)) - 1, "more", flush=True)
sys.exit(int(sys.argv[2]))
"""


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
    """The standard output of a command on a host, which must succeed."""
    done = subprocess.run(
        hosts.command(argv, host), capture_output=True, text=True, timeout=300, **more
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def await_end(process, seconds=120):
    """Wait until the process with this number has ended; False if it does not end in that time.

    That takes long only on a very busy machine.
    """
    try:
        file = os.pidfd_open(process)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([file], [], [], seconds)[0])
    finally:
        os.close(file)


class Traces:
    """Where a running cluster is visible on this machine, to check again when it is down.

    The kernel may number a new namespace as one that has just gone. So one namespace of each kind
    of process is held open here: while it is, a process with its number is of this cluster.
    """

    def __init__(self, hosts):
        self.directory = hosts.directory
        self.supervisor, self.root = (hosts._state.processes[n][0] for n in ("supervisor", "root"))
        self._held = ExitStack()
        weakref.finalize(self, self._held.close)
        self.processes = self._hold(self.root, "pid")
        inside = list(map(self._namespaces_of, map(hosts.process, hosts.names)))
        assert all(self.processes in of_host for of_host in inside)
        assert not any(of_host & self._namespaces_of(os.getpid()) for of_host in inside)
        # A process that runs a command on a host (enter.py) is in all of these but the last.
        self.entered = [of_host - {self.processes} for of_host in inside]
        for name, of_host in zip(hosts.names, self.entered, strict=True):
            assert self._hold(hosts.process(name), "uts") in of_host

    def _hold(self, process, kind):
        """Hold a process's namespace of this kind open; its name in /proc."""
        file = os.open(f"/proc/{process}/ns/{kind}", os.O_RDONLY)
        self._held.callback(os.close, file)
        return os.readlink(f"/proc/self/fd/{file}")

    @staticmethod
    def _namespaces_of(process):
        """The names of its namespaces in /proc; none if it has ended or belongs to another user."""
        try:
            kinds = ("net", "mnt", "uts", "ipc", "pid")
            return {os.readlink(f"/proc/{process}/ns/{kind}") for kind in kinds}
        except OSError:
            return set()

    def left(self):
        """What is still visible: list of str."""
        found = [str(self.directory)] if self.directory.exists() else []
        for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
            if begun_at(process) is None:
                continue  # it has ended; the system's process 1 has yet to reap it
            its = self._namespaces_of(process)
            # Processes outside learn of the end, and may need a moment to end themselves.
            if self.processes in its or (
                any(of_host <= its for of_host in self.entered) and not await_end(process)
            ):
                found.append(f"process {process} in {', '.join(sorted(its))}")
        with open("/proc/self/mountinfo") as file:
            found += [line for line in file if str(self.directory) in line]
        return found
