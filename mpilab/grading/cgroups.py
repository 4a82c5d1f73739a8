"""Control groups: the kernel's bound on the memory and the processes of one run.

Both versions of the interface are in use: v2 has one tree for all controllers, v1 one tree for
each. Imported by the keeper, which starts for every run: standard library only, and little of it.
"""

import os
import time

ROOT = "/sys/fs/cgroup"

# The kernel reports an emptied v1 group to nobody, so that its removal can only be tried again.
REMOVAL_SECONDS = 5.0
REMOVAL_PAUSE = 0.005


class ControlGroup:
    """One group: `directories` holds its folder by controller (twice the same one in v2)."""

    def __init__(self, directories, memory_events):
        self.directories = directories
        self._memory_events = memory_events

    def join(self):
        """Put the calling process into the group; its children follow."""
        for directory in self._folders():
            _write(directory, "cgroup.procs", "0")

    def refusals(self):
        """How often the kernel enforced a limit: {"memory": processes killed, "processes": forks
        refused}."""
        return {
            "memory": _count(self.directories["memory"], self._memory_events, "oom_kill"),
            "processes": _count(self.directories["pids"], "pids.events", "max"),
        }

    def remove(self):
        """Remove the group. Its processes must have been reaped; OSError if some are left."""
        for directory in self._folders():
            deadline = time.monotonic() + REMOVAL_SECONDS
            while True:
                try:
                    os.rmdir(directory)
                    break
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(REMOVAL_PAUSE)

    def _folders(self):
        return dict.fromkeys(self.directories.values())


def available(root=ROOT):
    """The version whose memory and pids controllers are mounted at `root`: "v2", "v1" or None."""
    if os.path.exists(f"{root}/cgroup.controllers"):
        with open(f"{root}/cgroup.controllers") as file:
            return "v2" if {"memory", "pids"} <= set(file.read().split()) else None
    if os.path.isdir(f"{root}/memory") and os.path.isdir(f"{root}/pids"):
        return "v1"
    return None


def create(version, memory, processes, root=ROOT):
    """A new group with limits of `memory` bytes (swap included) and `processes` tasks.

    Raises OSError where this process may not create one.
    """
    name = f"mpilab-{os.getpid()}-{os.urandom(4).hex()}-{_process_space()}"
    make = {"v1": _create_v1, "v2": _create_v2}[version]
    group = make(root, name)
    try:
        os.mkdir(group.directories["memory"])
        if group.directories["pids"] != group.directories["memory"]:
            os.mkdir(group.directories["pids"])
        _limit(version, group, memory, processes)
    except OSError:
        for directory in group._folders():
            if os.path.isdir(directory):
                os.rmdir(directory)
        raise
    return group


def sweep(root=ROOT):
    """Remove the empty groups of keepers that were killed before they could do so themselves."""
    folders = {"v1": _own_groups(root).values(), "v2": [root]}.get(available(root), ())
    for folder in folders:
        for name in os.listdir(folder):
            kit, keeper, *_, space = [*name.split("-"), "", ""][:4]
            if kit != "mpilab" or not keeper.isdigit() or os.path.exists(f"/proc/{keeper}"):
                continue
            if space not in ("", _process_space()):
                continue  # that keeper, alive or not, is none that we could see
            try:
                os.rmdir(f"{folder}/{name}")
            except OSError:
                continue  # its last processes are still dying; the next sweep gets it


def _process_space():
    """Which PID namespace we are in: containers that share the control groups count processes each
    for itself."""
    return str(os.stat("/proc/self/ns/pid").st_ino)


def _create_v1(root, name):
    parents = _own_groups(root)
    directories = {controller: f"{parents[controller]}/{name}" for controller in ("memory", "pids")}
    return ControlGroup(directories, "memory.oom_control")


def _create_v2(root, name):
    # Directly below the root: a group with processes in it, such as our own, may have no limited
    # children.
    with open(f"{root}/cgroup.subtree_control") as file:
        enabled = set(file.read().split())
    if not {"memory", "pids"} <= enabled:
        _write(root, "cgroup.subtree_control", "+memory +pids")
    return ControlGroup(dict.fromkeys(("memory", "pids"), f"{root}/{name}"), "memory.events")


def _limit(version, group, memory, processes):
    directory = group.directories["memory"]
    if version == "v1":
        _write(directory, "memory.limit_in_bytes", memory)
        swap = "memory.memsw.limit_in_bytes", memory
    else:
        _write(directory, "memory.max", memory)
        swap = "memory.swap.max", 0
    if os.path.exists(f"{directory}/{swap[0]}"):  # absent in kernels that do not account swap
        _write(directory, *swap)
    _write(group.directories["pids"], "pids.max", processes)


def _own_groups(root):
    """The folder of this process's own v1 group by controller, so that limits set on us still hold.

    Inside a container the group named in /proc may lie outside of what is mounted: its root then.
    """
    parents = {"memory": f"{root}/memory", "pids": f"{root}/pids"}
    with open("/proc/self/cgroup") as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            for controller in parents:
                own = f"{root}/{controller}{path.rstrip('/')}"
                if controller in controllers.split(",") and os.path.isdir(own):
                    parents[controller] = own
    return parents


def _write(directory, name, value):
    with open(f"{directory}/{name}", "w") as file:
        file.write(str(value))


def _count(directory, name, key):
    with open(f"{directory}/{name}") as file:
        for line in file:
            word, _, value = line.partition(" ")
            if word == key:
                return int(value)
    return 0
