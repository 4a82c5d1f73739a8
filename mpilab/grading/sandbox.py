"""Run a command of a submission where it can do no harm.

    sandbox = open_sandbox()
    outcome = sandbox.run(["./ring", "4"], files={"ring": program}, collect=["*.bin"])

The command starts in a work directory of its own, filled with `files`; what it leaves there can
be brought back. It ends, with everything it started, when `run` returns or the grader dies.

Two kinds: `Bubblewrap` isolates; `Unsafe` does not, and is there for machines without bubblewrap
and for submissions of one's own. `Sandbox.description` says which, for the gradebook.
"""

import os
import shlex
import shutil
import signal
import sys
import tempfile
from dataclasses import dataclass, field

from mpilab.errors import InputError, SetupError, Ungradable
from mpilab.grading import cgroups, view
from mpilab.grading.archive import pack, unpack
from mpilab.grading.run import GRACE_SECONDS, READY, Run, rlimits, script

MIB = 1 << 20

# Root's commands run as this user id plus the slot; it needs no account.
FIRST_USER_ID = 60000

# Root's readable paths are mounted over this folder, in a mount namespace of the run's own: see
# keeper.stage. Every machine has it, and it holds neither programs nor anything to make readable.
STAGE = "/dev/shm"

REMEDY = (
    "Install bubblewrap 0.8 or newer: 'apt-get install bubblewrap' (the packages of that name on "
    "PyPI are something else); in a container, allow user namespaces (docker run --privileged). "
    "Or grade without isolation, if you trust every submission: --unsafe-no-sandbox."
)


@dataclass(frozen=True)
class Limits:
    """What one run may use.

    memory         bytes of all processes together, files in the sandbox included
    processes      processes and threads at once (a 4-rank ipyparallel cluster has 118)
    cpu_seconds    processor time of any one process
    wall_seconds   from the start; the work directory is still collected then
    file_bytes     size of any one file
    disk_bytes     size of the work directory, and of /tmp
    shm_bytes      size of /dev/shm
    output_bytes   size of the tar of what is collected: 512 bytes a file, and its content
    stream_bytes   of standard output and of standard error that are kept; the rest is dropped
    """

    memory: int = 2048 * MIB
    processes: int = 256
    cpu_seconds: int = 120
    wall_seconds: float = 180
    file_bytes: int = 64 * MIB
    disk_bytes: int = 256 * MIB
    shm_bytes: int = 256 * MIB
    output_bytes: int = 20 * MIB
    stream_bytes: int = 1 * MIB


@dataclass(frozen=True)
class Outcome:
    """What came of a run.

    returncode    the command's exit code; 128 + n if signal n ended it
    reason        '' if the command ended by itself within its limits, else the limit that it met:
                  'wall time', 'memory', 'processes', 'processor time', 'file size',
                  'output too large'; or 'host memory': the machine ran low, for whatever cause
    stdout        bytes, at most stream_bytes
    stderr        bytes, at most stream_bytes
    files         {relative posix path: bytes}: plain files that were left in the work directory
                  and match `collect`; empty where the run had to be cut off
    wall_seconds  from the start of the command to the end of the last process
    """

    returncode: int
    reason: str
    stdout: bytes
    stderr: bytes
    files: dict = field(default_factory=dict)
    wall_seconds: float = 0.0


class Sandbox:
    """What both kinds have in common."""

    description = ""
    folders = {}  # variables that name the folders inside, where they are known beforehand
    counts_processes = True  # whether RLIMIT_NPROC counts the run's own processes only

    def run(
        self,
        command,
        *,
        files=None,
        readable=(),
        limits=None,
        environment=None,
        collect=None,
    ):
        """Run `command`, a list of str, to its end, and return its Outcome.

        files        {relative path: bytes} to put into the work directory, where it starts
        readable     files and folders that it may read, each at its own path. They should hold no
                     sockets or pipes: those work both ways.
        limits       Limits; the default ones if None
        environment  variables beside PATH, HOME, LANG, TMPDIR and OMP_NUM_THREADS; what is given
                     here wins. PATH leads to the `bin` of the readable folders first.
        collect      patterns of files to bring back, `*` matching '/' too; None: nothing

        Call it from as many threads as you like. Raises InputError for arguments that cannot be
        used, and Ungradable where the sandbox itself failed: nothing is known of the command then.
        """
        command = _texts("command", command, "['./ring', '4']")
        collect = _texts("collect", collect or (), "['*.bin']")
        readable = _texts("readable", map(os.path.abspath, readable), "['/opt/course']")
        environment = environment or {}
        _texts("environment", [*environment, *environment.values()], "{'OMPI_MCA_pml': 'ob1'}")
        if not command:
            raise InputError("command: nothing to run; give e.g. ['./ring', '4']")
        limits = limits or Limits()
        links, places = view.resolve(readable)
        variables = {**_variables(readable), **self.folders, **environment}
        filling = pack(files) if files else b""
        inner = [
            *rlimits(limits, processes=self.counts_processes),
            *("/bin/sh", "-c", script(limits, collect, bool(filling)), "sh", *command),
        ]
        with Run() as run:
            job = {
                "command": inner,
                "environment": variables,
                "memory": limits.memory,
                "processes": limits.processes,
                "seconds": limits.wall_seconds + GRACE_SECONDS,
                "watch": True,
                **dict.fromkeys(("cgroup", "uid", "stage", "scratch")),
                "readable": places,
            }
            self._enclose(job, run, links, limits)
            return _outcome(run.hold(job, limits, filling), limits, collect)

    def _enclose(self, job, run, links, limits):
        """Change `job`, which would run the command as we are, to what this sandbox does."""
        raise NotImplementedError


class Unsafe(Sandbox):
    """No isolation: a private folder, limits against accidents, and no stragglers."""

    description = "none: ran with the rights of the grader"
    counts_processes = False  # without a user namespace, all of the grader's user's count

    def _enclose(self, job, run, links, limits):
        job["scratch"] = tempfile.gettempdir()


class Bubblewrap(Sandbox):
    """Isolation by namespaces: see view.options for what is inside.

    guard  what bounds memory and processes: "v1" or "v2", a control group of that version (root
           only); "systemd", a scope of the user's service manager; None, rlimits and a watchdog
    slot   runs of different slots, at the same time, have different user ids if started by root
    """

    folders = {"HOME": view.WORK, "TMPDIR": "/tmp"}

    def __init__(self, guard, slot=0, program=None):
        self.guard = guard
        self.slot = slot
        self.program = program or shutil.which("bwrap")
        self.description = (
            "bubblewrap, "
            + {
                "v1": "memory and process limits by cgroup v1",
                "v2": "memory and process limits by cgroup v2",
                "systemd": "memory and process limits by a systemd scope",
                None: "memory limit by a watchdog: guards against accidents only",
            }[guard]
        )

    def _enclose(self, job, run, links, limits):
        binds = {place: place for place in job["readable"]}
        if os.geteuid() == 0:
            binds = {place: f"{STAGE}/{number}" for number, place in enumerate(binds)}
            job.update(uid=FIRST_USER_ID + self.slot, stage=STAGE)
        contents = {path: run.content(text.encode()) for path, text in view.ACCOUNTS.items()}
        options = view.options(links, binds, limits, job["environment"], contents)
        # By descriptor: a command can read the command line of the bubblewrap that started it.
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


def open_sandbox(*, unsafe=False, slot=0):
    """The best sandbox that works here, proved by a run: a Bubblewrap, or Unsafe if asked for.

    `slot` tells apart the sandboxes that are in use at the same time. Raises SetupError, with the
    remedy, where bubblewrap is missing or does not work.
    """
    if sys.platform != "linux":
        raise SetupError(f"{sys.platform}: grading needs Linux; use WSL2, or a container")
    if unsafe:
        return Unsafe()
    if shutil.which("bwrap") is None:
        raise SetupError(f"bwrap: not found on PATH. {REMEDY}")
    guards = ("systemd", None)
    if os.geteuid() == 0:
        cgroups.sweep()
        guards = (cgroups.available(), None)
    trouble = ""
    for guard in dict.fromkeys(guards):
        for _ in range(PROBES):
            sandbox = Bubblewrap(guard, slot)
            trouble = _trouble(sandbox)
            if not trouble:
                return sandbox
    raise SetupError(f"{sandbox.program}: does not work here: {trouble}. {REMEDY}")


def python_paths():
    """What must be readable for `sys.executable` to run: its environment and where that came from.

    The executable itself is one of them, for the links that lead from the one to the other.
    """
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, sys.executable)))


# A probe that failed once may have met a busy machine; the next guard may be a weaker one.
PROBES = 2
# How systemd-run finds the user's service manager.
BUS = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")


def _scope(limits):
    """The command line that puts what follows it into a scope of its own."""
    bounds = {"MemoryMax": limits.memory, "MemorySwapMax": 0, "TasksMax": limits.processes}
    properties = [f"--property={name}={bound}" for name, bound in bounds.items()]
    program = shutil.which("systemd-run") or "/usr/bin/systemd-run"
    return [program, "--user", "--scope", "--quiet", "--collect", *properties, "--"]


def _trouble(sandbox):
    """Why `sandbox` does not isolate, in words; '' if it does."""
    sight = f"id -u; cat /proc/1/comm; test ! -e {shlex.quote(__file__)} || echo {__file__}"
    try:
        outcome = sandbox.run(["/bin/sh", "-c", sight], limits=Limits(wall_seconds=60))
    except Ungradable as error:
        return str(error)
    seen = outcome.stdout.decode(errors="replace").split()
    if seen != [str(view.USER_ID), "bwrap"]:
        return f"a probe saw {' '.join(seen) or 'nothing'} {outcome.reason}".rstrip()
    return ""


def _variables(readable):
    programs = [f"{path}/bin" for path in readable if os.path.isdir(f"{path}/bin")]
    return {
        "PATH": ":".join([*programs, "/usr/local/bin", "/usr/bin", "/bin"]),
        "LANG": "C.UTF-8",
        "OMP_NUM_THREADS": "1",
    }


def _outcome(ending, limits, collect):
    report = ending.report
    if not ending.archive.startswith(READY):
        said = ending.stderr[-2000:].decode(errors="replace").strip()
        why = said or report["reason"] or f"exit code {report['returncode']}"
        raise Ungradable(f"the sandbox did not come up: {why}")
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
    )


def _reason(ending, limits):
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


def _texts(name, texts, example):
    """`texts` as a list of str without NUL characters, which would end an argument early."""
    listed = [texts] if isinstance(texts, str) else list(texts)
    for text in listed:
        if isinstance(texts, str) or not isinstance(text, str) or "\0" in text:
            raise InputError(f"{name}: {text!r} is not usable in this place; give e.g. {example}")
    return listed
