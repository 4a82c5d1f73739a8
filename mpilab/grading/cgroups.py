"""Control groups: let the operating system limit the memory and the processes of one run.

Both versions of the interface are in use: v2 has one tree for all controllers, v1 one tree for
each. The supervisor imports this module and starts for every run, so the module uses only a small
part of the standard library.
"""

import os
import time

ROOT = "/sys/fs/cgroup"

# The OS does not report when a v1 group becomes empty, so its removal can only be retried.
REMOVAL_SECONDS = 5.0
REMOVAL_PAUSE = 0.005


class ControlGroup:
    """One group; `directories` maps each controller to its folder (in v2, the same for both)."""

    def __init__(self, directories: dict[str, str], memory_events: str) -> None:
        self.directories = directories
        self._memory_events = memory_events

    def join(self) -> None:
        """Move the calling process, and thus its future children, into the group."""
        for directory in self._folders():
            _write(directory, "cgroup.procs", "0")

    def refusals(self) -> dict[str, int]:
        """How often a limit was enforced: {"memory": kills, "processes": failed forks}."""
        return {
            "memory": _count(self.directories["memory"], self._memory_events, "oom_kill"),
            "processes": _count(self.directories["pids"], "pids.events", "max"),
        }

    def remove(self) -> None:
        """Remove the group after its processes were reaped; OSError if some are left."""
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

    def _folders(self) -> list[str]:
        return list(dict.fromkeys(self.directories.values()))


def available(root: str = ROOT) -> str | None:
    """The version whose memory and pids controllers are mounted at `root`: "v2", "v1" or None."""
    if os.path.exists(f"{root}/cgroup.controllers"):
        with open(f"{root}/cgroup.controllers") as file:
            return "v2" if {"memory", "pids"} <= set(file.read().split()) else None
    if os.path.isdir(f"{root}/memory") and os.path.isdir(f"{root}/pids"):
        return "v1"
    return None


def create(version: str, memory: int, processes: int, root: str = ROOT) -> ControlGroup:
    """Create a group with limits of `memory` bytes (swap included) and `processes` tasks.

    Raises OSError if this process may not create one.
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


def sweep(root: str = ROOT) -> None:
    """Remove the empty groups of supervisors that were killed before they could remove them."""
    folders = {"v1": list(_own_groups(root).values()), "v2": [root]}.get(available(root) or "", [])
    for folder in folders:
        for name in os.listdir(folder):
            kit, supervisor, *_, space = [*name.split("-"), "", ""][:4]
            if kit != "mpilab" or not supervisor.isdigit() or os.path.exists(f"/proc/{supervisor}"):
                continue
            if space not in ("", _process_space()):
                continue  # that supervisor is in another PID namespace, invisible to us
            try:
                os.rmdir(f"{folder}/{name}")
            except OSError:
                continue  # its last processes are still exiting; the next sweep removes it


def _process_space() -> str:
    """The ID of our PID namespace: containers that share control groups have their own PIDs."""
    return str(os.stat("/proc/self/ns/pid").st_ino)


def _create_v1(root: str, name: str) -> ControlGroup:
    parents = _own_groups(root)
    directories = {controller: f"{parents[controller]}/{name}" for controller in ("memory", "pids")}
    return ControlGroup(directories, "memory.oom_control")


def _create_v2(root: str, name: str) -> ControlGroup:
    # Directly below the root: a group that contains processes, such as our own, cannot have
    # children with limits.
    with open(f"{root}/cgroup.subtree_control") as file:
        enabled = set(file.read().split())
    if not {"memory", "pids"} <= enabled:
        _write(root, "cgroup.subtree_control", "+memory +pids")
    return ControlGroup(dict.fromkeys(("memory", "pids"), f"{root}/{name}"), "memory.events")


def _limit(version: str, group: ControlGroup, memory: int, processes: int) -> None:
    directory = group.directories["memory"]
    if version == "v1":
        _write(directory, "memory.limit_in_bytes", memory)
        swap = "memory.memsw.limit_in_bytes", memory
    else:
        _write(directory, "memory.max", memory)
        swap = "memory.swap.max", 0
    if os.path.exists(f"{directory}/{swap[0]}"):  # absent if the OS does not account for swap
        _write(directory, *swap)
    _write(group.directories["pids"], "pids.max", processes)


def _own_groups(root: str) -> dict[str, str]:
    """{controller: folder of our own v1 group}, so that limits set on us still apply.

    In a container, the group named in /proc may not be mounted; then the root of the mount.
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


def _write(directory: str, name: str, value: int | str) -> None:
    with open(f"{directory}/{name}", "w") as file:
        file.write(str(value))


def _count(directory: str, name: str, key: str) -> int:
    with open(f"{directory}/{name}") as file:
        for line in file:
            word, _, value = line.partition(" ")
            if word == key:
                return int(value)
    return 0
