"""Emulated hosts: a cluster of Linux namespaces on one machine, with links of a given speed.

    with EmulatedHosts("two-groups") as hosts:
        command = hosts.command(["mpirun", "-n", "8", "./program"])
        subprocess.run(command, env=os.environ | hosts.environment(8))

In: a cluster description. Out: hosts, on which commands run.

Every host has its own name, network interface, /dev/shm and temporary files; all share the
machine's files and processors. Real Open MPI runs on them, over real TCP.

The parts:

    description ──links.py──▶ lines for ip and tc
    owner (hosts.py) ──starts──▶ supervisor.py ──▶ netns_root.py, process 1 ──▶ one process a host
                                                       └─▶ the relay, if links have latency
    any process of the same user ──enter.py──▶ a command inside a host

trial.py finds out what of this the machine supports.

The supervisor waits until the owner ends (or for `mpilab hosts down`), kills the netns root and
removes the directory. When the netns root ends, so do all hosts, everything that runs on them, and
their networks and mounts. See docs/emulated-hosts.md.
"""

from mpilab.hosts.emulated.hosts import Capabilities, EmulatedHosts, attach, probe, running, sweep

__all__ = ["Capabilities", "EmulatedHosts", "attach", "probe", "running", "sweep"]
