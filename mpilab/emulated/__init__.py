"""Emulated hosts: a cluster on one machine, out of Linux namespaces, with links of a given speed.

    with EmulatedHosts("two-groups") as hosts:
        command = hosts.command(["mpirun", "-n", "8", "./program"])
        subprocess.run(command, env=os.environ | hosts.environment(8))

Every host has a name, a network interface, /dev/shm and temporary files of its own; all share the
machine's files and processors. Real Open MPI runs on them over real TCP.

What consists of what:

    description ──links──▶ lines for ip and tc
    owner (hosts.py) ──starts──▶ keeper ──▶ fabric, process 1 of the cluster ──▶ one process a host
                                                       └─▶ the relay, if links have latency
    anybody of the same user ──enter.py──▶ a command inside of a host

The keeper waits for the owner's end (or for `mpilab hosts down`), ends the fabric, and removes the
directory; with the fabric end all hosts, with them everything that runs there, and their networks
and mounts. docs/emulated-hosts.md tells more.
"""

from mpilab.emulated.capabilities import Capabilities, probe
from mpilab.emulated.found import attach, running, sweep
from mpilab.emulated.hosts import EmulatedHosts

__all__ = ["Capabilities", "EmulatedHosts", "attach", "probe", "running", "sweep"]
