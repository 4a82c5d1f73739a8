"""The supervisor: one process per run, which enforces its limits and leaves nothing behind.

The grader has threads and may be killed at any moment. So it never forks itself: it starts this
supervisor, which has no threads and none of the grader's open files. The supervisor

- sets up what only a single-threaded process can (control group, mount namespace, fewer rights),
- is the *subreaper* of the run: orphans become its children, so that it finds and kills them,
- waits until the command ends, time is up, too much memory is used, or the grader cancels the run
  or dies,
- then kills and reaps every descendant, removes the control group and the folder, and reports.

It starts for every run, which explains the unusual imports: without `site`, json, signal or
subprocess, it is up in 20 ms instead of 40 ms. mpilab.grading.run starts it as `python -I -S -c ...
FD`; FD holds the job, a marshalled dict (see `hold`).
"""

import ctypes
import marshal
import os
import resource
import select
import stat
import sys
import time

SIGKILL, SIGPIPE, SIGXFSZ = 9, 13, 25
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS = 1, 36, 38
CLONE_NEWNS = 0x00020000
MS_NOSUID, MS_NODEV, MS_BIND, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x1000, 0x4000, 0x40000

# Where the script of mpilab.grading.run expects the pipe for the files that come back.
ARCHIVE_FD = 3

# Without a control group, memory is sampled this often, and the machine keeps this much free.
SAMPLE_SECONDS = 0.05
# How often the processor time of all processes is added up; one look costs some milliseconds.
LOOK_SECONDS = 1.0
TICKS = os.sysconf("SC_CLK_TCK")
FLOOR_BYTES = 256 << 20
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")

LIBC = ctypes.CDLL(None, use_errno=True)


# Control groups: the operating system limits the memory and the processes of one run. Both versions
# of the interface are in use: v2 has one tree for all controllers, v1 one tree for each.

CGROUPS = "/sys/fs/cgroup"

# The OS does not report when a v1 group becomes empty, so its removal can only be retried.
REMOVAL_SECONDS = 5.0
REMOVAL_PAUSE = 0.005


class ControlGroup:
    """One group; `directories` maps each controller to its folder (in v2, both have the same)."""

    def __init__(self, directories: dict[str, str], memory_events: str) -> None:
        self.directories = directories
        self._memory_events = memory_events

    def join(self) -> None:
        """Move the calling process, and therefore its future children, into the group."""
        for directory in self._folders():
            _set(directory, "cgroup.procs", "0")

    def refusals(self) -> dict[str, int]:
        """How often a limit was enforced: {"memory": kills, "processes": failed forks}."""
        return {
            "memory": _counted(self.directories["memory"], self._memory_events, "oom_kill"),
            "processes": _counted(self.directories["pids"], "pids.events", "max"),
        }

    def remove(self) -> None:
        """Remove the group, if it is still there, after its processes have been reaped; OSError if
        some are left."""
        for directory in self._folders():
            deadline = time.monotonic() + REMOVAL_SECONDS
            while True:
                try:
                    os.rmdir(directory)
                    break
                except FileNotFoundError:
                    break  # a sweep_groups of another process was faster
                except OSError:
                    if time.monotonic() > deadline:
                        raise
                    time.sleep(REMOVAL_PAUSE)

    def _folders(self) -> list[str]:
        return list(dict.fromkeys(self.directories.values()))


def control_groups(root: str = CGROUPS) -> str | None:
    """The version whose memory and pids controllers are mounted at `root`: "v2", "v1" or None."""
    if os.path.exists(f"{root}/cgroup.controllers"):
        with open(f"{root}/cgroup.controllers") as file:
            return "v2" if {"memory", "pids"} <= set(file.read().split()) else None
    if os.path.isdir(f"{root}/memory") and os.path.isdir(f"{root}/pids"):
        return "v1"
    return None


def create_group(version: str, memory: int, processes: int, root: str = CGROUPS) -> ControlGroup:
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


def sweep_groups(root: str = CGROUPS) -> None:
    """Remove the empty groups of supervisors that were killed before they could remove them."""
    folders = {"v1": list(_own_groups(root).values()), "v2": [root]}.get(
        control_groups(root) or "", []
    )
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
        _set(root, "cgroup.subtree_control", "+memory +pids")
    return ControlGroup(dict.fromkeys(("memory", "pids"), f"{root}/{name}"), "memory.events")


def _limit(version: str, group: ControlGroup, memory: int, processes: int) -> None:
    directory = group.directories["memory"]
    if version == "v1":
        _set(directory, "memory.limit_in_bytes", memory)
        swap = "memory.memsw.limit_in_bytes", memory
    else:
        _set(directory, "memory.max", memory)
        swap = "memory.swap.max", 0
    if os.path.exists(f"{directory}/{swap[0]}"):  # absent if the OS does not account for swap
        _set(directory, *swap)
    _set(group.directories["pids"], "pids.max", processes)


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


def _set(directory: str, name: str, value: int | str) -> None:
    with open(f"{directory}/{name}", "w") as file:
        file.write(str(value))


def _counted(directory: str, name: str, key: str) -> int:
    with open(f"{directory}/{name}") as file:
        for line in file:
            word, _, value = line.partition(" ")
            if word == key:
                return int(value)
    return 0


# The run.


def main() -> None:
    """Supervise the run that the job describes; report its end, or a failure, to `status`.

    The report is that of `hold`, with "start": the processor time that our own start took, in
    seconds.
    """
    start = time.process_time()
    with open(int(sys.argv[1]), "rb") as file:
        job = marshal.load(file)
    try:
        report = {**hold(job), "start": start}
    except Exception as error:
        report = {"failure": f"{type(error).__name__}: {error}"}
    os.write(job["status"], marshal.dumps(report))


def hold(job: dict) -> dict:
    """Run `job` to its end. Returns {"returncode", "reason", "seconds", "work", "refusals"}.

    "work" is the processor time of all processes, in seconds. Of a run that was killed, what its
    orphans used since the last look may be missing.

    job: command (argv), environment, grader (pid of our parent), leash (a pipe that the grader
    closes to cancel the run), status (the pipe for the report), archive (the pipe for the files
    that come back), seconds (wall time), total (seconds of processor time of all, or None), cgroup
    ("v1", "v2" or None), memory (bytes), processes (tasks), watch (sample memory ourselves), uid
    (to switch to, or None), stage (folder, or None), readable (paths to mount at stage/0, stage/1,
    …), scratch (folder in which to create a private work folder for the command, or None).
    """
    grader = os.pidfd_open(job["grader"])
    if os.getppid() != job["grader"]:
        return {"failure": "the grader ended before the run started"}
    for descriptor in (job["leash"], job["status"]):
        os.set_inheritable(descriptor, False)
    _call("prctl", PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    group = home = child = None
    refusals, statuses = {}, {}
    began = time.monotonic()
    try:
        if job["scratch"]:
            home = f"{job['scratch']}/mpilab-{os.urandom(6).hex()}"
            os.mkdir(home, 0o700)
        if job["cgroup"]:
            group = create_group(job["cgroup"], job["memory"], job["processes"])
        began = time.monotonic()
        child = start(job, group, home)
        memory = job["memory"] if job["watch"] else None
        deadline = began + job["seconds"]
        reason, work = watch(child, grader, job["leash"], deadline, memory, job["total"])
    finally:
        statuses = end_descendants()
        seconds = time.monotonic() - began
        if group:
            refusals = group.refusals()
            group.remove()
        if home:
            remove(home)
    code = os.waitstatus_to_exitcode(statuses[child])
    return {
        "returncode": code if code >= 0 else 128 - code,
        "reason": reason,
        "seconds": seconds,
        "work": max(work, sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])),
        "refusals": refusals,
    }


def start(job: dict, group: ControlGroup | None, home: str | None) -> int:
    """Start the command; returns its pid once it is executing. OSError if it cannot execute."""
    supervisor = os.getpid()
    heard, told = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            become(job, group, home, supervisor)
        except BaseException as error:
            os.write(told, f"{type(error).__name__}: {error}".encode()[:4000])
        finally:
            os._exit(126)
    os.close(told)
    with open(heard, "rb") as pipe:
        trouble = pipe.read()  # ends when the command is executed: Python's pipes close on exec
    if trouble:
        raise OSError(trouble.decode(errors="replace"))
    return child


def become(job: dict, group: ControlGroup | None, home: str | None, supervisor: int) -> None:
    """Turn this process, a fork of the supervisor, into the command."""
    os.setpgid(0, 0)
    with open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # if memory runs out, a student's process is killed first
    if group:
        group.join()
    if job["stage"]:
        stage(job["readable"], job["stage"])
    if job["uid"] is not None:
        for stream in (1, 2):
            os.fchown(stream, job["uid"], job["uid"])  # so that /dev/stderr can be opened
        os.setgroups([])
        os.setresgid(job["uid"], job["uid"], job["uid"])
        os.setresuid(job["uid"], job["uid"], job["uid"])
    _call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("prctl", PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0)  # after the change of uid, which clears it
    if os.getppid() != supervisor:
        os._exit(126)
    environment = job["environment"]
    if home:
        os.mkdir(f"{home}/lab")
        os.mkdir(f"{home}/tmp")
        environment = {"HOME": f"{home}/lab", "TMPDIR": f"{home}/tmp", **environment}
    os.chdir(f"{home}/lab" if home else "/")
    os.umask(0o022)
    for number in (SIGPIPE, SIGXFSZ):  # Python ignores these, and the command would inherit that
        LIBC.signal(number, None)
    os.dup2(job["archive"], ARCHIVE_FD)
    os.close(job["archive"])
    os.execve(job["command"][0], job["command"], environment)


def stage(paths: list[str], folder: str) -> None:
    """Mount each of `paths` at `folder`/0, /1, …, visible only to this process and its children.

    Root's files are often below a folder that only root may enter (/root). Mounted here by root,
    they can be reached after the change of uid; their own permissions still apply.
    """
    _call("unshare", CLONE_NEWNS)
    _mount(None, "/", None, MS_REC | MS_PRIVATE)
    held = [os.open(path, os.O_PATH) for path in paths]  # before `folder` is covered
    _mount("tmpfs", folder, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m")
    for number, descriptor in enumerate(held):
        place = f"{folder}/{number}"
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            os.mkdir(place)
        else:
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
        _mount(f"/proc/self/fd/{descriptor}", place, None, MS_BIND | MS_REC)
        os.close(descriptor)


def watch(
    child: int, grader: int, leash: int, deadline: float, memory: int | None, total: float | None
) -> tuple[str, float]:
    """Wait until `child` ends or must be killed; returns the reason, '' if it ended by itself, and
    the processor time of all descendants at the last look, in seconds.

    child, grader   a pid and a pidfd;  leash  a pipe that is closed to cancel the run
    deadline        on the clock of time.monotonic
    memory          resident bytes allowed for all descendants together; None: not checked
    total           seconds of processor time of all descendants together; None: not checked
    """
    ended = os.pidfd_open(child)
    poller = select.poll()
    for descriptor in (ended, grader, leash):
        poller.register(descriptor, select.POLLIN)
    looked, work = time.monotonic(), 0.0
    while True:
        pause = deadline - time.monotonic()
        if pause <= 0:
            return "wall time", work
        if total is not None:
            pause = min(pause, LOOK_SECONDS)
        if memory is not None:
            pause = min(pause, SAMPLE_SECONDS)
        ready = {descriptor for descriptor, _ in poller.poll(int(pause * 1000) + 1)}
        if ended in ready:
            return "", work
        if ready:
            return "canceled", work
        if total is not None and time.monotonic() - looked >= LOOK_SECONDS:
            looked = time.monotonic()
            work = sum(used for _, _, _, used in descendants().values())
            if work > total:
                return "processor time", work
        if memory is not None:
            if sum(resident for _, _, resident, _ in descendants().values()) > memory:
                return "memory", work
            if _available_memory() < FLOOR_BYTES:
                return "host memory", work


def end_descendants() -> dict[int, int]:
    """Kill and reap every descendant, even those in other sessions.

    Returns {pid: wait status} of those that were, or became, our children.
    """
    statuses = {}
    this = os.getpid()
    while True:
        dying = False
        living = descendants()
        # Whole groups first: a fork cannot escape that, but can escape a signal to each process.
        for group in {group for _, group, _, _ in living.values()} - {os.getpgrp()}:
            kill(-group)
        for pid, (parent, *_) in living.items():
            dying = kill(pid) and parent == this or dying
        try:
            # Wait only for a child that was killed: one forked since the listing might never end.
            pid, status = os.waitpid(-1, 0 if dying else os.WNOHANG)
            while pid:
                statuses[pid] = status
                pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return statuses


def kill(pid: int) -> bool:
    """Kill the process `pid`, or the group -`pid`; False if it has already ended."""
    try:
        os.kill(pid, SIGKILL)
    except ProcessLookupError:
        return False
    return True


def descendants() -> dict[int, tuple[int, int, int, float]]:
    """{pid: (parent, process group, resident bytes, processor time)} of all descendants, including
    zombies. The time, in seconds, includes that of children which have ended."""
    table: dict[int, tuple[int, int, int, float]] = {}
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since the listing
        parent = int(fields[1])
        used = sum(map(int, fields[11:15])) / TICKS
        table[int(name)] = parent, int(fields[2]), int(fields[21]) * PAGE_BYTES, used
        children.setdefault(parent, []).append(int(name))
    found, waiting = {}, [os.getpid()]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            found[pid] = table[pid]
            waiting.append(pid)
    return found


def remove(folder: str) -> None:
    """Remove `folder` with everything in it, whatever the permissions."""
    from shutil import rmtree  # noqa: PLC0415 (3 ms, needed only without a sandbox)

    for path, _, _ in os.walk(folder):  # top down, symbolic links not followed
        for entry in os.scandir(path):
            if entry.is_dir(follow_symlinks=False):
                os.chmod(entry.path, 0o700)
    rmtree(folder)


def _available_memory() -> int:
    with open("/proc/meminfo") as file:
        for line in file:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    raise OSError("/proc/meminfo: no line MemAvailable; the memory of this machine is unknown")


def _mount(
    source: str | None, target: str, kind: str | None, flags: int, data: str | None = None
) -> None:
    texts = [None if text is None else os.fsencode(text) for text in (source, target, kind, data)]
    _call("mount", *texts[:3], ctypes.c_ulong(flags), texts[3])


def _call(name: str, *arguments: object) -> None:
    """Call the C library's function `name`; OSError if it fails."""
    if getattr(LIBC, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
