"""Run a command of a submission where it can do no harm.

    sandbox = open_sandbox()
    outcome = sandbox.run(["./ring", "4"], files={"ring": program}, collect=["*.bin"])

The command starts in its own work directory, filled with `files`; what it leaves there can be
collected. It ends, with everything it started, when `run` returns or the grader dies.

There are two kinds: `Bubblewrap` isolates; `Unsafe` does not, and is meant for machines without
bubblewrap and for your own submissions. `Sandbox.description` says which, for the gradebook.
"""

import ctypes
import errno
import os
import platform
import shlex
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mpilab.errors import InputError, SetupError, Ungradable
from mpilab.grading.run import (
    GRACE_SECONDS,
    READY,
    Ending,
    Limits,
    Run,
    pack,
    rlimits,
    script,
    unpack,
)
from mpilab.grading.supervisor import control_groups, sweep_groups
from mpilab.util.system import NAMESPACES, USER_ID, namespace_remedy, sized_folder

WORK = "/lab"

SYSTEM_LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}

# Settings of the compiler, the linker, the name service and a system-wide Open MPI.
SETTINGS = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/openmpi",
)

ACCOUNTS = {
    "/etc/passwd": f"root:x:0:0::/root:/bin/false\nstudent:x:{USER_ID}:{USER_ID}::{WORK}:/bin/sh\n",
    "/etc/group": f"root:x:0:\nstudent:x:{USER_ID}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}

# If started by root, commands run as this user id plus the slot; it needs no account.
FIRST_USER_ID = 60000

# If started by root, readable paths are mounted over this folder, in the run's own mount namespace
# (see supervisor.stage). Every machine has it, and it holds no programs and nothing to make
# readable.
STAGE = "/dev/shm"

REMEDY = (
    "Install bubblewrap 0.8 or newer: 'apt-get install bubblewrap' (the PyPI packages of that "
    "name are unrelated). Or grade without isolation, if you trust every submission: "
    "--unsafe-no-sandbox."
)

# Of prctl, and of the system calls of Landlock, which have the same numbers on all machines.
PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 22, 2
LANDLOCK_CREATE_RULESET, LANDLOCK_VERSION = 444, 1

# A probe may fail once because the machine is busy, and the next guard may be weaker.
PROBES = 2
# How often a sandbox may fail to start. Nothing of a submission has run by then.
STARTS = 2

# How systemd-run finds the user's service manager.
BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


# The options of bubblewrap: a command sees a system that can run programs, a work directory, what
# the grader makes readable, and nothing else.


def view_options(
    links: Mapping[str, str],
    binds: Mapping[str, str],
    limits: Limits,
    environment: Mapping[str, str],
    contents: Mapping[str, int],
    hidden: Iterable[str] = (),
) -> list[str]:
    """The options of bubblewrap, a list of str, without the command.

    links        {path inside: target} of symbolic links to create
    binds        {path inside: path outside} to show read-only
    environment  all variables that the command gets
    contents     {path inside: number of a descriptor that holds the text}, for ACCOUNTS
    hidden       real paths of folders in which only binds are visible
    """
    built = [*NAMESPACES, "--ro-bind", "/usr", "/usr"]
    for path, target in SYSTEM_LINKS.items():
        if Path(path).exists():
            built += ["--symlink", target, path]
    for path in SETTINGS:
        built += ["--ro-bind-try", path, path]
    for path, descriptor in contents.items():
        built += ["--perms", "0644", "--ro-bind-data", str(descriptor), path]
    built += ["--proc", "/proc", "--dev", "/dev"]
    built += [*sized_folder("/dev/shm", limits.shm_bytes), "--remount-ro", "/dev"]
    built += sized_folder("/tmp", limits.disk_bytes)
    built += sized_folder(WORK, limits.disk_bytes, mode="0755")
    covers: list[str] = []
    for path in sorted(hidden):
        if below(path, ["/usr", *binds]) and path not in binds and not below(path, covers):
            covers.append(path)
    shown_again = {path for path in binds if below(path, covers)}
    for inside, outside in binds.items():
        if inside not in shown_again:
            built += ["--ro-bind", outside, inside]
    for path in covers:
        built += ["--perms", "0755", "--tmpfs", path]
    for inside in sorted(shown_again):
        built += ["--ro-bind", binds[inside], inside]
    for path in covers:
        built += ["--remount-ro", path]
    for path, target in links.items():
        built += ["--symlink", target, path]
    built += ["--remount-ro", "/", "--chdir", WORK, "--clearenv"]
    for name, value in environment.items():
        built += ["--setenv", name, value]
    return built


def resolve(paths: Iterable[str], hidden: Sequence[str] = ()) -> tuple[dict[str, str], list[str]]:
    """What the sandbox must contain so that each of `paths` is found: (links, places).

    `links` is {path: target}: symbolic links stay links (a Python looks for its library from the
    target of its own name). `places` are the real paths that they lead to. Paths below /usr or
    another place are left out, except those in a folder of `hidden` (real paths), which must be
    shown nevertheless. Raises InputError for a path that does not exist or would cover a part of
    the sandbox.
    """
    links: dict[str, str] = {}
    places: list[str] = []
    for path in paths:
        # Without its "..", but with its links.
        _follow(Path(os.path.abspath(path)), links, places)  # noqa: PTH100
    shown: list[str] = []
    for place in sorted(set(places)):
        around = ["/usr", *shown]
        covers = [path for path in hidden if place != path and below(place, [path])]
        if not below(place, [path for path in around if not covers or below(path, covers)]):
            _refuse_cover(place)
            shown.append(place)
    own = ("/usr", *SYSTEM_LINKS, *shown)
    return {path: target for path, target in links.items() if not below(path, own)}, shown


def _follow(path: Path, links: dict[str, str], places: list[str]) -> None:
    """Add the links on the absolute `path` to `links`, and its real path to `places`."""
    real = Path("/")
    parts = list(path.parts[1:])
    for _ in range(1000):  # the kernel gives up after 40 links
        if not parts:
            places.append(str(real))
            return
        part = parts.pop(0)
        if part == "..":
            real = real.parent
            continue
        step = real / part
        if step.is_symlink():
            target = str(step.readlink())
            links[str(step)] = target
            real = Path("/") if target.startswith("/") else real
            parts = [name for name in Path(target).parts if name != "/"] + parts
        elif os.path.lexists(step):
            real = step
        else:
            break
    raise InputError(
        f"readable: {str(path)!r} does not exist, or is a broken link; "
        "name a file or a folder of this machine"
    )


def below(path: str, folders: Iterable[str]) -> bool:
    """True if `path` is one of `folders`, or inside one."""
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _refuse_cover(place: str) -> None:
    own = ("/proc", "/dev", WORK)
    if place in ("/", "/etc", "/tmp") or below(place, own):
        raise InputError(
            f"readable: {place!r} cannot be mounted, because it would hide the sandbox's own "
            f"{place}; name a folder below it that holds only what the command needs"
        )


@dataclass(frozen=True)
class Outcome:
    """The result of a run.

    returncode    the command's exit code; 128 + n if signal n ended it
    reason        '' if the command ended by itself within its limits, else the limit it reached:
                  'wall time', 'memory', 'processes', 'processor time', 'file size',
                  'output too large'; or 'host memory': the machine ran low, for whatever reason
    stdout        bytes, at most stream_bytes
    stderr        bytes, at most stream_bytes
    files         {relative posix path: bytes}: plain files left in the work directory that match
                  `collect`; empty if the run had to be cut off
    wall_seconds  from the start of the command to the end of the last process
    cpu_seconds   processor time of all processes together
    """

    returncode: int
    reason: str
    stdout: bytes
    stderr: bytes
    files: dict[str, bytes] = field(default_factory=dict)
    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0


class Canceled(Exception):
    """`Sandbox.cancel` canceled a run: nothing is known about the command."""


class Sandbox:
    """The base class of both kinds."""

    description = ""
    folders: Mapping[str, str] = {}  # variables that name the folders inside, if known in advance
    counts_processes = True  # whether RLIMIT_NPROC counts the run's own processes only
    is_alone = True  # whether the run sees no other processes than its own

    def __init__(self) -> None:
        self.canceled = False
        self._runs: set[Run] = set()  # those in progress, one for each thread that is in `run`

    def run(
        self,
        command: Sequence[str],
        *,
        files: Mapping[str, bytes] | None = None,
        readable: Iterable[str | Path] = (),
        limits: Limits | None = None,
        environment: Mapping[str, str] | None = None,
        collect: Sequence[str] | None = None,
        hidden: Sequence[str] = (),
    ) -> Outcome:
        """Run `command`, a list of str, to its end, and return its Outcome.

        files        {relative path: bytes} to put into the work directory, where it starts
        readable     files and folders that it may read, each at its own path. They should contain
                     no sockets or pipes, which work both ways.
        limits       Limits; the default ones if None
        environment  variables besides PATH, HOME, LANG, TMPDIR and OMP_NUM_THREADS; these take
                     precedence. PATH begins with the `bin` of the readable folders.
        collect      patterns of files to collect, `*` also matches '/'; None: nothing
        hidden       folders to hide inside readable ones; paths that `readable` names are still
                     shown

        Several threads may call it at the same time; their runs share the sandbox's slot. Raises
        InputError for unusable arguments, Ungradable if the sandbox itself failed, and Canceled
        after `cancel`: then nothing is known about the command.
        """
        command = _texts("command", command, "['./ring', '4']")
        collect = _texts("collect", collect or (), "['*.bin']")
        readable = _texts("readable", map(os.path.abspath, readable), "['/opt/course']")
        environment = environment or {}
        _texts("environment", [*environment, *environment.values()], "{'OMPI_MCA_pml': 'ob1'}")
        if not command:
            raise InputError("command: nothing to run; give e.g. ['./ring', '4']")
        limits = limits or Limits()
        asked = set(map(os.path.realpath, readable))
        hidden = [os.path.realpath(path) for path in _texts("hidden", hidden, "['/opt/course']")]
        hidden = [path for path in hidden if path not in asked]
        links, places = resolve(readable, hidden)
        variables = {**_variables(readable), **self.folders, **environment}
        filling = pack(files) if files else b""
        inner = [
            *rlimits(limits, processes=self.counts_processes),
            *("/bin/sh", "-c", script(limits, collect, bool(filling), self.is_alone)),
            *("sh", *command),
        ]
        job = {
            "command": inner,
            "environment": variables,
            "memory": limits.memory,
            "processes": limits.processes,
            "seconds": limits.wall_seconds + GRACE_SECONDS,
            "watch": True,
            "total": limits.total_cpu_seconds,
            **dict.fromkeys(("cgroup", "uid", "stage", "scratch")),
            "readable": places,
        }
        for _ in range(STARTS):
            ending = self._attempt(dict(job), links, limits, hidden, filling)
            if ending.archive.startswith(READY):
                break
        return _outcome(ending, limits, collect)

    def _attempt(
        self,
        job: dict[str, Any],
        links: Mapping[str, str],
        limits: Limits,
        hidden: Sequence[str],
        filling: bytes,
    ) -> Ending:
        with Run() as run:
            self._runs.add(run)
            if self.canceled:
                run.cancel()
            try:
                self._enclose(job, run, links, limits, hidden)
                ending = run.hold(job, limits, filling)
            finally:
                self._runs.discard(run)
        if self.canceled:
            raise Canceled
        return ending

    def cancel(self) -> None:
        """Cancel all runs in progress and all later ones: `run` then raises Canceled.

        Any thread may call it.
        """
        # In this order: a run that begins meanwhile is either in the set, or sees the flag.
        self.canceled = True
        for run in list(self._runs):
            run.cancel()

    def _enclose(
        self,
        job: dict[str, Any],
        run: Run,
        links: Mapping[str, str],
        limits: Limits,
        hidden: Sequence[str],
    ) -> None:
        """Change `job`, which would run the command with our rights, to run it in this sandbox."""
        raise NotImplementedError


class Unsafe(Sandbox):
    """No isolation: a private folder, limits against accidents, and no leftover processes."""

    description = "none: ran with the rights of the grader"
    counts_processes = False  # without a user namespace, all of the grader's user's count
    is_alone = False

    def _enclose(
        self,
        job: dict[str, Any],
        run: Run,
        links: Mapping[str, str],
        limits: Limits,
        hidden: Sequence[str],
    ) -> None:
        job["scratch"] = tempfile.gettempdir()


class Bubblewrap(Sandbox):
    """Isolation by namespaces; see `view_options` for what is inside.

    guard  what limits memory and processes: "v1" or "v2", a control group of that version (root
           only); "systemd", a scope of the user's service manager; None, rlimits and a watchdog
    slot   concurrent runs in different slots have different user ids if started by root
    """

    folders = {"HOME": WORK, "TMPDIR": "/tmp"}

    def __init__(self, guard: str | None, slot: int = 0, program: str | None = None) -> None:
        super().__init__()
        self.guard = guard
        self.slot = slot
        self.program = program or shutil.which("bwrap") or "bwrap"
        self.description = (
            "bubblewrap, "
            + {
                "v1": "memory and process limits by cgroup v1",
                "v2": "memory and process limits by cgroup v2",
                "systemd": "memory and process limits by a systemd scope",
                None: "memory limit by a watchdog: guards against accidents only",
            }[guard]
            + "".join(f"; native runs without {name}" for name in not_confined())
        )

    def _enclose(
        self,
        job: dict[str, Any],
        run: Run,
        links: Mapping[str, str],
        limits: Limits,
        hidden: Sequence[str],
    ) -> None:
        binds = {place: place for place in job["readable"]}
        if os.geteuid() == 0:
            binds = {place: f"{STAGE}/{number}" for number, place in enumerate(binds)}
            job.update(uid=FIRST_USER_ID + self.slot, stage=STAGE)
        contents = {path: run.content(text.encode()) for path, text in ACCOUNTS.items()}
        options = view_options(links, binds, limits, job["environment"], contents, hidden)
        # By descriptor, because a command can read the command line of its bubblewrap.
        arguments = run.content("".join(f"{option}\0" for option in options).encode())
        command = [self.program, "--args", str(arguments), "--", *job["command"]]
        job.update(command=command, environment={}, watch=self.guard is None)
        if self.guard == "systemd":
            job.update(
                command=[*_scope(limits), "/usr/bin/env", "-i", *command],
                environment={name: os.environ[name] for name in BUS if name in os.environ},
            )
        elif self.guard:
            job["cgroup"] = self.guard


def open_sandbox(*, unsafe: bool = False, slot: int = 0) -> Sandbox:
    """The best sandbox that works here, verified by a run: a Bubblewrap, or Unsafe if `unsafe`.

    `slot` distinguishes sandboxes that are in use at the same time. Raises SetupError, with the
    remedy, if bubblewrap is missing or does not work.
    """
    if sys.platform != "linux":
        raise SetupError(f"{sys.platform}: grading needs Linux; use WSL2, or a container")
    if unsafe:
        return Unsafe()
    if shutil.which("bwrap") is None:
        raise SetupError(f"bwrap: not found on PATH. {REMEDY}")
    guards: tuple[str | None, ...] = ("systemd", None)
    if os.geteuid() == 0:
        sweep_groups()
        guards = (control_groups(), None)
    trouble = ""
    for guard in dict.fromkeys(guards):
        for _ in range(PROBES):
            sandbox = Bubblewrap(guard, slot)
            trouble = _trouble(sandbox)
            if not trouble:
                return sandbox
    allow = namespace_remedy(program=sandbox.program)
    raise SetupError(
        f"{sandbox.program}: does not work here: {trouble}. To allow namespaces: {allow}. {REMEDY}"
    )


@cache
def not_confined() -> tuple[str, ...]:
    """What this system lacks of what confines the ranks of native runs, by name.

    src_c/runtime/harness/confine.c uses it if it is there, and does without it otherwise.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    missing = []
    # With a filter at address 0, a kernel that has filters finds no filter there.
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, None, 0, 0)
    if ctypes.get_errno() != errno.EFAULT or platform.machine() not in ("x86_64", "aarch64"):
        missing.append("a system call filter (seccomp)")
    if libc.syscall(LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_VERSION) < 1:
        missing.append("a file filter (Landlock)")
    return tuple(missing)


def python_paths() -> tuple[str, ...]:
    """What `sys.executable` must read to run: its environment, and the installation behind that.

    The executable itself is included, for the links that lead from one to the other.
    """
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, sys.executable)))


def _scope(limits: Limits) -> list[str]:
    """The systemd-run command line that puts the command after it into its own scope."""
    bounds = {"MemoryMax": limits.memory, "MemorySwapMax": 0, "TasksMax": limits.processes}
    properties = [f"--property={name}={bound}" for name, bound in bounds.items()]
    program = shutil.which("systemd-run") or "/usr/bin/systemd-run"
    return [program, "--user", "--scope", "--quiet", "--collect", *properties, "--"]


def _trouble(sandbox: Sandbox) -> str:
    """Why `sandbox` does not isolate, in words; '' if it does."""
    ours = shlex.quote(__file__)
    sight = f"id -u; cat /proc/1/comm; test ! -e {ours} || echo {ours}"
    try:
        outcome = sandbox.run(["/bin/sh", "-c", sight], limits=Limits(wall_seconds=60))
    except Ungradable as error:
        return str(error)
    seen = outcome.stdout.decode(errors="replace").split()
    if seen != [str(USER_ID), "bwrap"]:
        return f"a probe saw {' '.join(seen) or 'nothing'} {outcome.reason}".rstrip()
    return ""


def _variables(readable: Iterable[str]) -> dict[str, str]:
    programs = [f"{path}/bin" for path in readable if Path(path, "bin").is_dir()]
    return {
        "PATH": ":".join([*programs, "/usr/local/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
    }


def _outcome(ending: Ending, limits: Limits, collect: Sequence[str]) -> Outcome:
    report = ending.report
    if not ending.archive.startswith(READY):
        said = ending.stderr[-2000:].decode(errors="replace").strip()
        why = said or _reason(ending, limits) or f"exit code {report['returncode']}"
        raise Ungradable("the sandbox did not start", why)
    files = {}
    if collect and not ending.overflowed:
        files = unpack(ending.archive[len(READY) :], collect)
    return Outcome(
        returncode=report["returncode"],
        reason=_reason(ending, limits),
        stdout=ending.stdout,
        stderr=ending.stderr,
        files=files,
        wall_seconds=report["seconds"],
        cpu_seconds=report["work"],
    )


def _reason(ending: Ending, limits: Limits) -> str:
    report = ending.report
    refusals, code = report["refusals"], report["returncode"]
    if ending.overflowed:
        return "output too large"
    if report["reason"]:
        return report["reason"]
    if refusals.get("memory"):
        return "memory"
    if code != 0 and report["seconds"] >= limits.wall_seconds:
        return "wall time"
    if refusals.get("processes") and code != 0:
        return "processes"
    return {128 + signal.SIGXCPU: "processor time", 128 + signal.SIGXFSZ: "file size"}.get(code, "")


def _texts(name: str, texts: Iterable[str], example: str) -> list[str]:
    """`texts` as a list of str without NUL characters, which would end an argument early."""
    listed = [texts] if isinstance(texts, str) else list(texts)
    for text in listed:
        if isinstance(texts, str) or not isinstance(text, str) or "\0" in text:
            raise InputError(f"{name}: {text!r} is not usable here; give e.g. {example}")
    return listed
