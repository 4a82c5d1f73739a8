"""Clusters of emulated hosts: what this machine supports; bring one up, run commands, end it."""

import contextlib
import fcntl
import hashlib
import json
import os
import re
import select
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from mpilab.errors import ClusterError, InputError, SetupError
from mpilab.hosts.description import Description, Link, read
from mpilab.hosts.emulated import links
from mpilab.hosts.hostfile import Host
from mpilab.kernels import openmpi
from mpilab.kernels.build import need
from mpilab.util import processes
from mpilab.util.kit import BUILD
from mpilab.util.namespaces import begun_at
from mpilab.util.processes import namespace, outside

# Which features of emulated hosts this machine supports, determined by trying them (trial.py).

TRIAL = Path(__file__).with_name("trial.py")
TRIAL_S = 60  # normally 0.1 s; a few seconds on a busy machine
RELAY = BUILD / "mpilab-relay"
# /usr/sbin is often not on PATH.
SYSTEM = ("/usr/sbin", "/sbin", "/usr/bin", "/bin")
TOOLS = ("ip", "tc", "nsenter")
INSTEAD = (
    "On one host, 'mpilab run KERNEL --places ...' assigns places on several hosts to the ranks, "
    "and 'mpilab simulate KERNEL --platform ...' simulates their times; in Docker, 'docker run "
    "--privileged' allows namespaces."
)


@dataclass(frozen=True)
class Capabilities:
    """Which features of emulated hosts this machine supports.

    namespaces   "root" (created by root), "rootless" (in a user namespace), or "none"
    reason       why there are none
    tbf          the kernel can limit the rate of links
    netem        the kernel can delay packets on links
    relay        the kit's relay can delay them instead
    tools        {name: path} of the system programs needed
    missing      those not found
    """

    namespaces: str
    reason: str = ""
    tbf: bool = False
    netem: bool = False
    relay: bool = False
    tools: dict[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = ()

    @property
    def latency_by(self) -> str:
        """The source of latency: "netem", "relay", or "" if there is none."""
        return "netem" if self.netem else "relay" if self.relay else ""

    def describe(self) -> str:
        """The capabilities in one line."""
        if self.namespaces == "none":
            return f"no emulated hosts: {self.reason}"
        rate = "rate by tbf" if self.tbf else "no rate limit (no tbf in this kernel)"
        late = {
            "netem": "latency by netem",
            "relay": "latency by the relay (no netem in this kernel)",
            "": "no latency (no netem in this kernel, and no relay)",
        }[self.latency_by]
        by = {"root": "by root", "rootless": "without root"}[self.namespaces]
        return f"namespaces created {by}; {rate}; {late}"

    def need(self, description: Description) -> None:
        """Raise SetupError if this description's hosts and links cannot be created here."""
        if self.namespaces == "none":
            raise SetupError(f"emulated hosts are not possible here: {self.reason}. {INSTEAD}")
        links = (description.host_link, description.group_link)
        if any(link.rate is not None for link in links) and not self.tbf:
            raise SetupError(
                f"{description.name}: its links have a rate, but this kernel cannot limit rates "
                "(no sch_tbf). Load it with 'sudo modprobe sch_tbf', or omit 'rate'"
            )
        if any(link.latency > 0 for link in links) and not self.latency_by:
            remedy = f"Run 'make build', which builds {RELAY}"
            if _has_relay():
                remedy = "The relay may not send raw packets here; run 'sudo modprobe sch_netem'"
            raise SetupError(
                f"{description.name}: its links have a latency, but neither this kernel (no "
                f"sch_netem) nor the relay can add one. {remedy}, or omit 'latency'"
            )


@cache
def probe() -> Capabilities:
    """The Capabilities of this machine; probed once per process, in about 50 ms."""
    if not sys.platform.startswith("linux"):
        return Capabilities("none", f"namespaces need Linux; this is {sys.platform}")
    tools = {name: path for name in TOOLS if (path := find(name)) is not None}
    missing = tuple(name for name in TOOLS if name not in tools)
    if missing:
        remedy = "install them, e.g. with 'apt-get install iproute2 util-linux'"
        reason = f"not found: {', '.join(missing)}; {remedy}"
        return Capabilities("none", reason, missing=missing)
    command = [sys.executable, "-I", "-S", str(TRIAL), tools["ip"], tools["tc"]]
    try:
        said = subprocess.run(command, capture_output=True, text=True, timeout=TRIAL_S, check=False)
        found = json.loads(said.stdout)
    except subprocess.TimeoutExpired:
        return Capabilities("none", f"the trial ({TRIAL}) did not end within {TRIAL_S} s")
    except ValueError:
        return Capabilities("none", f"the trial failed: {said.stderr.strip()[-300:]}")
    packets = found.pop("packets", False)
    return Capabilities(**found, relay=packets and _has_relay(), tools=tools)


def _has_relay() -> bool:
    try:
        return need(RELAY).exists()
    except SetupError:  # reported, with its remedy, when latency is requested
        return False


def find(name: str) -> str | None:
    """The path of a system program, or None."""
    beside = (Path(folder, name) for folder in SYSTEM)
    return shutil.which(name) or next((str(path) for path in beside if path.exists()), None)


# The state of a running cluster: DIRECTORY/state.json.
#
# The directory belongs to the cluster, and only its user may enter it. The file exists once the
# cluster is up, and is removed with it.

PREFIX = "mpilab-hosts-"
FILE = "state.json"
FORMAT = 2  # of the file; increase it with every change
LET_GO = b"."  # as in supervisor.py
BEGIN_S = 120.0  # time for the supervisor to bring a cluster up, even on a busy machine
PATIENCE_S = 10.0  # time for it to end one; normally some 0.1 s
LOOK_S = 0.01  # between checks of a process that cannot be waited for
# Host names that the kernel accepts; without dots, since Open MPI cuts a name at the first one.
_NAME = re.compile(r"[A-Za-z0-9](?:[\w-]{0,62}[A-Za-z0-9])?")


@dataclass(frozen=True)
class State:
    """A cluster that is, or was, up.

    name, directory, description   see EmulatedHosts
    processes    {name: (number, begun_at)} of "supervisor", "root", and each host, as "host NAME"
    latency_by   see Capabilities
    owner        the process with which the cluster ends; 0 for none
    """

    name: str
    directory: Path
    description: Description
    processes: dict[str, tuple[int, int]]
    latency_by: str = ""
    owner: int = 0

    @property
    def is_up(self) -> bool:
        """True if its process 1 is running."""
        number, begun = self.processes["root"]
        return begun is not None and begun_at(number) == begun

    def write(self) -> None:
        """Write it to the cluster's directory atomically."""
        told = {"format": FORMAT, **asdict(self), "directory": str(self.directory)}
        partial = self.directory / "state.partial"
        partial.write_text(json.dumps(told), encoding="utf-8")
        partial.replace(self.directory / FILE)


def read_state(directory: Path | str) -> State | None:
    """The State of the cluster in `directory`; None if there is none (yet), or if another version
    of the kit wrote it."""
    try:
        told = json.loads(Path(directory, FILE).read_text(encoding="utf-8"))
    except OSError:
        return None
    if told.pop("format", None) != FORMAT:
        return None
    described = told.pop("description")
    description = Description(
        **described
        | {
            "hosts": tuple(Host(**host) for host in described["hosts"]),
            "host_link": Link(**described["host_link"]),
            "group_link": Link(**described["group_link"]),
        }
    )
    processes = {name: tuple(pair) for name, pair in told.pop("processes").items()}
    return State(
        **told
        | {"directory": Path(told["directory"]), "description": description, "processes": processes}
    )


# Life cycle of a cluster: its files, its supervisor, its end.

SUPERVISOR = str(Path(__file__).with_name("supervisor.py"))


def begin(
    name: str, description: Description, capabilities: Capabilities, owner: int
) -> tuple[State, subprocess.Popen[bytes]]:
    """Bring a cluster up; return its State and the Popen of its supervisor.

    It ends with the process `owner`, which must be this one, or 0 for none. Raises ClusterError,
    after removing everything.
    """
    directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base()))
    supervisor = None
    try:
        _write_files(directory, description, capabilities)
        supervisor = _start_supervisor(directory, name, owner)
        told = _listen(supervisor, name, directory)
        processes = _processes(name, description, supervisor, told)
        state = State(name, directory, description, processes, capabilities.latency_by, owner)
        state.write()
        if not owner:
            _let_go(supervisor, name)
    except BaseException:
        if supervisor is not None:
            end_supervisor(supervisor.pid)
            release(supervisor)
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return state, supervisor


def end(state: State) -> None:
    """End a cluster, even one that another process brought up, and remove everything.

    Raises ClusterError if it does not end.
    """
    number, begun = state.processes["supervisor"]
    if begun_at(number) == begun:
        end_supervisor(number)
    give_up = time.monotonic() + PATIENCE_S
    while (
        state.is_up and time.monotonic() < give_up
    ):  # a killed supervisor takes the cluster with it
        time.sleep(LOOK_S)
    if state.is_up:
        raise ClusterError(
            f"{state.name}: the hosts did not end within {PATIENCE_S:g} s (process {number}, "
            f"{state.directory}). One of their processes hangs in the operating system (a network "
            "drive?)"
        )
    shutil.rmtree(state.directory, ignore_errors=True)  # in case the supervisor was killed


def end_supervisor(number: int) -> None:
    """Ask a supervisor to end its cluster, and wait until it has; SIGKILL after PATIENCE_S."""
    try:
        process = os.pidfd_open(number)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):  # a kernel before 5.3, or a Python built for one
        _end_by_number(number)
        return
    try:
        for name in signal.SIGTERM, signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                signal.pidfd_send_signal(process, name)
            if select.select([process], [], [], PATIENCE_S)[0]:
                return
    finally:
        os.close(process)


def _end_by_number(number: int) -> None:
    """End a supervisor without a pidfd."""
    begun = begun_at(number)
    for name in signal.SIGTERM, signal.SIGKILL:
        give_up = time.monotonic() + PATIENCE_S
        if begun is None or begun_at(number) != begun:
            return
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(number, name)
        while begun_at(number) == begun and time.monotonic() < give_up:
            time.sleep(LOOK_S)


def release(supervisor: subprocess.Popen[bytes]) -> None:
    """Close the pipes of a supervisor (Popen) that has ended or is about to, and wait for it."""
    for pipe in (supervisor.stdin, supervisor.stdout):
        if pipe is not None:
            pipe.close()
    supervisor.wait()


def base() -> str:
    """The folder for the cluster's directory: without blanks, at which Open MPI splits the agent's
    path, and not under /dev/shm, which is private to each host."""
    base = tempfile.gettempdir()
    is_shared = not Path(base).resolve().is_relative_to("/dev/shm")
    return base if is_shared and not re.search(r"[\s:,;]", base) else "/tmp"


def _write_files(directory: Path, description: Description, capabilities: Capabilities) -> None:
    """Write the files for the supervisor and mpirun."""
    (directory / "tmp").mkdir()
    groups = list(description.groups)
    plan = {
        "hosts": [
            {"name": host.name, "group": groups.index(host.group), "address": links.address(number)}
            for number, host in enumerate(description.hosts)
        ],
        "groups": len(groups),
        "host_link": asdict(description.host_link),
        "group_link": asdict(description.group_link),
        "latency_by": capabilities.latency_by,
        "namespaces": capabilities.namespaces,
        "tools": capabilities.tools | {"relay": str(RELAY)},
    }
    (directory / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    lines = [f"{host.name} slots={host.slots or 1}\n" for host in description.hosts]
    (directory / "hostfile").write_text("".join(lines), encoding="ascii")


def _start_supervisor(directory: Path, name: str, owner: int) -> subprocess.Popen[bytes]:
    new = directory / "lock.new"
    with open(new, "w") as lock, open(directory / "log", "w") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)  # inherited by the supervisor, for its lifetime
        new.rename(directory / "lock")  # so that `sweep` never finds it unlocked
        return subprocess.Popen(
            [sys.executable, "-I", "-S", SUPERVISOR, str(directory), name, str(owner)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=[lock.fileno()],
            start_new_session=True,  # so that it does not get ^C
            env={"PATH": os.defpath},
            cwd="/",
        )


def _listen(supervisor: subprocess.Popen[bytes], name: str, directory: Path) -> dict[str, Any]:
    """The supervisor's report once the hosts are up (supervisor.py). Raises ClusterError."""
    assert supervisor.stdout is not None  # a pipe, as is its standard input
    # Open the log before the supervisor removes it.
    with open(directory / "log", encoding="utf-8", errors="replace") as log:
        if select.select([supervisor.stdout], [], [], BEGIN_S)[0]:
            line = supervisor.stdout.readline()
            told = json.loads(line) if line else {"error": "their supervisor ended"}
        else:
            told = {"error": f"their supervisor did not report within {BEGIN_S:g} s"}
        if "error" in told:
            said = " ".join(f"{told['error']} {log.read()}".split())[:1000]
            raise ClusterError(
                f"{name}: the hosts did not come up: {said}. "
                "'mpilab doctor' shows what this machine supports"
            )
    return told


def _let_go(supervisor: subprocess.Popen[bytes], name: str) -> None:
    """Tell the supervisor to keep the cluster when we end. Raises ClusterError."""
    assert supervisor.stdin is not None
    try:
        os.write(supervisor.stdin.fileno(), LET_GO)
    except BrokenPipeError:
        raise _ended_at_once(name) from None


def _processes(
    name: str, description: Description, supervisor: subprocess.Popen[bytes], told: dict[str, Any]
) -> dict[str, tuple[int, int]]:
    """State.processes. Raises ClusterError if one of them has already ended."""
    numbers = {"supervisor": supervisor.pid, "root": told["root"]}
    of = namespace(told["root"])
    for host, inside in zip(description.hosts, told["hosts"], strict=True):
        numbers[f"host {host.name}"] = outside(inside, of)
    found = {}
    for what, number in numbers.items():
        begun = begun_at(number)
        if begun is None:
            raise _ended_at_once(name)
        found[what] = (number, begun)
    return found


def _ended_at_once(name: str) -> ClusterError:
    return ClusterError(
        f"{name}: the hosts ended as soon as they were up: one of their processes was killed (too "
        "little memory?). Try again"
    )


ENTER = str(Path(__file__).with_name("enter.py"))


class EmulatedHosts:
    """The hosts of `description` (a Description, or what descriptions.read takes), emulated.

        with EmulatedHosts("two-groups") as hosts: ...

    They end with the block, with `down()`, or with the process that brought them up, even if it is
    killed. Several clusters, even of the same description, are independent.

    description  the Description
    names        of the hosts, in the order of the description
    name         of the cluster: the description's, or the one given to `mpilab hosts up`
    directory    Path of this cluster's own directory (mode 0700), the same on all hosts, removed
                 with the cluster; None while it is down. `directory / "tmp"` is private to each
                 host, in memory

    Raises InputError for a description whose hosts cannot be emulated.
    """

    def __init__(self, description: Description | Path | str, *, name: str | None = None) -> None:
        if not isinstance(description, Description):
            description = read(description)
        self.description = description
        self.name = name or description.name
        self.names = tuple(host.name for host in description.hosts)
        for host in self.names:
            if not _NAME.fullmatch(host) or host in ("localhost", "netns-root"):
                raise InputError(
                    f"{description.name}: an emulated host cannot have the name {host!r}; use up "
                    "to 64 letters, digits, _ and -, e.g. 'n1'"
                )
        self._state: State | None = None
        self._supervisor: subprocess.Popen[bytes] | None = None

    @classmethod
    def attached(cls, found: State) -> "EmulatedHosts":
        """The cluster of a State (mpilab.hosts.emulated.hosts) that another process brought up."""
        hosts = cls(found.description, name=found.name)
        hosts._state = found
        return hosts

    def __enter__(self) -> "EmulatedHosts":
        return self.up()

    def __exit__(self, *_: object) -> None:
        # Hosts that were already up stay up.
        if self._supervisor is not None:
            self.down()

    def __repr__(self) -> str:
        where = f"up in {self.directory}" if self.running else "down"
        return f"EmulatedHosts({self.name!r}: {', '.join(self.names)}; {where})"

    @property
    def running(self) -> bool:
        """True if the hosts are up."""
        return self._state is not None and self._state.is_up

    @property
    def directory(self) -> Path | None:
        return None if self._state is None else self._state.directory

    @property
    def owner(self) -> int:
        """The process with which the hosts end; 0 if they stay up until taken down."""
        return 0 if self._state is None else self._state.owner

    @property
    def latency_by(self) -> str:
        """The source of link latency: "netem" or "relay"; "" if there is none."""
        return "" if self._state is None else self._state.latency_by

    def up(self, *, stay: bool = False) -> "EmulatedHosts":
        """Bring the hosts up; return self. With `stay` they outlive this process.

        Raises SetupError if this machine cannot emulate them, ClusterError if starting them fails.
        """
        if not self.running:
            self._forget()
            capabilities = probe()
            capabilities.need(self.description)
            owner = 0 if stay else os.getpid()
            self._state, self._supervisor = begin(self.name, self.description, capabilities, owner)
        return self

    def down(self) -> None:
        """Take down the hosts and everything that runs on them, if they are up; leaves nothing
        behind.

        Raises ClusterError if they do not end.
        """
        if self._state is not None:
            try:
                end(self._state)
            finally:
                self._forget()

    def command(self, argv: Sequence[object], host: str | None = None) -> list[str]:
        """The command line that runs `argv` on `host` (default: the first), for subprocess.Popen.

        The command inherits standard input and output, environment and working directory, gets
        forwarded signals and ends with its parent. The exit status is the command's (128 + N if
        signal N ended it, 255 if the host is gone). Any process may start it while the hosts are
        up.

        Raises InputError for an unknown host, ClusterError if the hosts are down.
        """
        host = self.names[0] if host is None else host
        number, begun = self._process(host)
        return [
            sys.executable,
            "-I",
            "-S",
            ENTER,
            str(number),
            str(begun),
            host,
            "--",
            *map(str, argv),
        ]

    def environment(self, ranks: int, **more: str) -> dict[str, str]:
        """The complete environment for `ranks` ranks on these hosts: openmpi.environment, and what
        the hosts need. A plain `mpirun -n 8` then uses the hosts in order, by their slots."""
        directory = self._need().directory
        groups = {host.name: host.group for host in self.description.hosts}
        return openmpi.environment(ranks, **openmpi.SLOT_BY_SLOT | more) | openmpi.on_hosts(
            agent=directory / "agent",
            hostfile=directory / "hostfile",
            temporary=directory / "tmp",
            groups=groups,
        )

    def hostfile(self, names: Sequence[str]) -> Path:
        """Write a hostfile with one line per rank, for `mpirun --map-by seq --hostfile`: its Path.

        Raises InputError for a name that is not one of the hosts.
        """
        directory = self._need().directory
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise self._no_such(unknown[0])
        text = "".join(f"{name}\n" for name in names)
        path = directory / f"hostfile-{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        if not path.exists():
            # Atomically: other processes of this user may request the same file.
            partial = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            partial.write_text(text, encoding="ascii")
            partial.replace(path)
        return path

    def process(self, host: str) -> int:
        """The number, here, of a process that lives as long as this host: /proc/NUMBER/root is
        the host's file system. Raises as `command` does."""
        return self._process(host)[0]

    def host_pid(self, pid_inside: int) -> int | None:
        """The number, here, of the process with number `pid_inside` on the hosts, or None. (All
        hosts of a cluster share one PID namespace.)"""
        self._need()
        of = processes.namespace(self._process(self.names[0])[0])
        return None if of is None else processes.outside(pid_inside, of)

    def _process(self, host: str) -> tuple[int, int]:
        state = self._need()
        if host not in self.names:
            raise self._no_such(host)
        return state.processes[f"host {host}"]

    def _no_such(self, host: str) -> InputError:
        return InputError(f"host {host!r}: not in {self.name}; it has {', '.join(self.names)}")

    def _need(self) -> State:
        if self._state is None or not self._state.is_up:
            raise ClusterError(
                f"{self.name}: the hosts are not up. Call up() first, or write "
                f"'with EmulatedHosts(...) as hosts:'"
            )
        return self._state

    def _forget(self) -> None:
        """Forget a cluster that is gone, or that belongs to our parent before a fork."""
        if self._supervisor is not None:
            release(self._supervisor)
        self._supervisor = self._state = None


# Find all running clusters of this user, including those of other processes, by their supervisors.
# There is no list that could be out of date.


def attach(name: Path | str) -> EmulatedHosts:
    """The EmulatedHosts that `mpilab hosts up` left running, by name or by directory.

    Raises InputError if there is none, or more than one.
    """
    clusters, name = running(), str(name)
    found = [one for one in clusters if name in (one.name, str(one.directory))]
    if len(found) == 1:
        return found[0]
    if found:
        folders = ", ".join(str(one.directory) for one in found)
        raise InputError(f"hosts {name!r}: several are up; name one by its directory: {folders}")
    names = ", ".join(one.name for one in clusters) or "none"
    raise InputError(
        f"hosts {name!r}: no such cluster of yours is up ({names}); "
        "bring it up: mpilab hosts up DESCRIPTION"
    )


def running() -> list[EmulatedHosts]:
    """All running clusters of emulated hosts of this user: list of EmulatedHosts, by name."""
    # A set: processes of the netns root that have not called exec have the supervisor's command
    # line.
    states = filter(None, map(read_state, set(_directories())))
    clusters = [EmulatedHosts.attached(one) for one in states if one.is_up]
    return sorted(clusters, key=lambda one: (one.name, str(one.directory)))


def sweep() -> list[Path]:
    """Remove directories of clusters whose supervisor was killed; return their paths.

    A supervisor holds the lock of its directory until it ends.
    """
    removed = []
    folders = {tempfile.gettempdir(), base()}
    for directory in (one for name in folders for one in Path(name).glob(f"{PREFIX}*")):
        try:
            about = directory.lstat()
            if about.st_uid != os.geteuid() or not stat.S_ISDIR(about.st_mode):
                continue
            with open(directory / "lock", opener=_open_a_file) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
                removed.append(directory)
        except OSError:  # locked: it is up, or being created or removed
            continue
    return removed


def _open_a_file(path: str, flags: int) -> int:
    """Open it as `open` does, but without following links or waiting for the writer of a FIFO."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _directories() -> Iterator[str]:
    """The directories of the supervisors among this user's processes."""
    user, supervisor = os.geteuid(), os.fsencode(SUPERVISOR)
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
            if supervisor not in words or process.stat().st_uid != user:
                continue
        except OSError:  # it has just ended
            continue
        yield os.fsdecode(words[words.index(supervisor) + 1])
