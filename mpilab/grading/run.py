"""The grader's side of a sandboxed run: start a supervisor, drain its pipes, read its report.

The supervisor (supervisor.py) does what a process with threads must not do. This side only moves
bytes, up to a limit: whatever a command prints, the grader holds no more than the limits allow.
"""

import fcntl
import fnmatch
import io
import marshal
import os
import selectors
import shlex
import subprocess
import sys
import tarfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from io import FileIO
from pathlib import Path, PurePosixPath
from statistics import median
from typing import Any, Self

from mpilab.errors import InputError, Ungradable

BLOCK = tarfile.BLOCKSIZE
PROGRAMS = (b"\x7fELF", b"#!")

SUPERVISOR = "import sys; sys.path.append({folder!r}); import supervisor; supervisor.main()"

# The first bytes that come back: the sandbox is up, and the command is about to start.
READY = b"ready\n"

# Seconds to collect the command's files after its time is up.
GRACE_SECONDS = 5.0

# The processor time in which a supervisor starts, in seconds, on the machine on which all other
# processor times in the grader were measured (docs/performance.md). On a slower or busier machine,
# they are multiplied, at most by MOST_PACE.
START_S, MOST_PACE, STARTS = 0.015, 4.0, 5

CHUNK = 1 << 16
MIB = 1 << 20


@dataclass(frozen=True)
class Limits:
    """The limits of one run.

    memory         bytes of all processes together, including files in the sandbox
    processes      processes and threads at once (a 4-rank ipyparallel cluster has 118)
    cpu_seconds    processor time of each process
    total_cpu_seconds   of all processes together, checked every second; None: not checked
    wall_seconds   from the start; afterwards, the work directory is still collected
    file_bytes     size of each file
    disk_bytes     size of the work directory, and of /tmp
    shm_bytes      size of /dev/shm
    output_bytes   size of the tar of collected files: 512 bytes per file, plus its content
    stream_bytes   kept of standard output, and of standard error; the rest is dropped
    """

    memory: int = 2048 * MIB
    processes: int = 256
    cpu_seconds: int = 120
    total_cpu_seconds: float | None = None
    wall_seconds: float = 180
    file_bytes: int = 64 * MIB
    disk_bytes: int = 256 * MIB
    shm_bytes: int = 256 * MIB
    output_bytes: int = 20 * MIB
    stream_bytes: int = 1 * MIB


class Pace:
    """How many times the measured processor time programs take on this machine now: 1 to MOST_PACE.

    It follows from the last starts of supervisors, which all do the same; opening a sandbox is the
    first. Thread-safe.
    """

    def __init__(self) -> None:
        self._starts = deque[float](maxlen=STARTS)

    def saw(self, start: float) -> None:
        """Take into account a start of a supervisor, in seconds of processor time."""
        self._starts.append(start)

    @property
    def factor(self) -> float:
        """The factor by which processor times are multiplied at present."""
        usual = median(tuple(self._starts) or [START_S])
        return min(max(usual / START_S, 1.0), MOST_PACE)


PACE = Pace()


class Budget:
    """The processor time that all runs of one answer have together, in seconds.

    Each run adds what it takes with a right answer. An answer that takes more uses up `reserve`,
    and then its runs end. What a run leaves is there for the next. So the verdict on an answer does
    not depend on other answers, and a submission takes at most the reserves of all its answers
    beyond what right ones take. In seconds of the machine that PACE compares this one with.
    """

    def __init__(self, reserve: float) -> None:
        self.left = reserve

    @contextmanager
    def run(self, usual: float) -> Iterator["Share"]:
        """The Share of one run, in which a right answer takes `usual` seconds.

        Set `share.used` in it: `with budget.run(4.0) as share:`.
        """
        pace = PACE.factor
        self.left += usual
        share = Share(self.left * pace)
        try:
            yield share
        finally:
            self.left = max(self.left - share.used / pace, 0.0)


@dataclass
class Share:
    """What one run may use of a Budget, and what it has used: seconds of processor time here."""

    seconds: float
    used: float = 0.0


# Tar streams into and out of a sandbox. The submission may forge what comes out, so only tarfile's
# check of a single header is used: its reader follows extended headers of any kind (sparse files of
# terabytes; CVE-2025-8194, an endless loop, in versions of Python still in use).


def pack(files: Mapping[str, bytes]) -> bytes:
    """A tar of `files`, {relative path: bytes}. ELF files and scripts with a #! are executable.

    Raises InputError for a path that is absolute or leads out of the work directory.
    """
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, content in files.items():
            if not is_safe(name):
                raise InputError(
                    f"files: {name!r} is not a path inside the work directory; "
                    "give a relative one without '..', e.g. 'answers/ring.c'"
                )
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = 0o755 if content.startswith(PROGRAMS) else 0o644
            archive.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def packing_script(patterns: Iterable[str]) -> str:
    """The shell commands that write the tar stream for `unpack` to descriptor 3.

    It contains the plain files in the current directory that match one of `patterns`; `*` matches
    any characters, including '/'.
    """
    choice = " -o ".join(f"-path {shlex.quote('./' + pattern)}" for pattern in patterns)
    return (
        f"find . -type f \\( {choice} \\) -print0 | tar --create --format=ustar --null "
        "--no-recursion --hard-dereference --files-from=- --file=- >&3"
    )


def unpack(stream: bytes, patterns: Sequence[str]) -> dict[str, bytes]:
    """{relative posix path: bytes} of the plain files in the tar `stream` that match `patterns`.

    Skips links, devices, folders and paths that lead out of the work directory, and stops at the
    first block that is not a header. Takes no more memory than the stream itself.
    """
    files = {}
    position = 0
    while position + BLOCK <= len(stream):
        try:
            entry = tarfile.TarInfo.frombuf(
                stream[position : position + BLOCK], "utf-8", "surrogateescape"
            )
        except tarfile.HeaderError:
            break
        position += BLOCK
        if entry.size < 0 or position + entry.size > len(stream):
            break
        name = entry.name.removeprefix("./")
        is_file = entry.type in (tarfile.REGTYPE, tarfile.AREGTYPE)
        is_wanted = any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)
        if is_file and is_safe(name) and is_wanted:
            files[name] = stream[position : position + entry.size]
        position += -(-entry.size // BLOCK) * BLOCK
    return files


def is_safe(name: str) -> bool:
    """True if `name` is a normalized relative posix path that stays in the work directory."""
    path = PurePosixPath(name)
    return (
        name == str(path) != "."
        and not path.is_absolute()
        and ".." not in path.parts
        and "\0" not in name
    )


# kill(2) with -1 ends all processes that this shell can see, but neither itself nor process 1: also
# those that are just being forked. The loop ends when none is left. It must not begin where
# bubblewrap has not given the shell processes of its own: there, all of the user's would end.
END_ALL = (
    'read -r first </proc/1/comm; if [ "$PPID $first" = "1 bwrap" ]; then '
    "while kill -s KILL -- -1; do :; done; fi"
)


def script(limits: Limits, collect: Sequence[str], filled: bool, alone: bool) -> str:
    """The shell script that runs its arguments as the command inside the sandbox.

    The work directory is filled from standard input if `filled`. The command is stopped when its
    time is up, and its files are still collected, because that is when the recording of a deadlock
    is most useful. If the command and its descendants are `alone` in the shell's view, they have
    all ended by then: none can change what is collected. The shell's own messages are dropped.
    """
    lines = [
        "tar --extract --touch --file=- || exit 125" if filled else "",
        # Process 1 still has it: nobody may read later what the command has removed.
        "true 2>/dev/null >/proc/self/fd/0" if filled else "",
        f"printf {shlex.quote(READY.decode())} >&3",
        "exec 4>&2 2>/dev/null </dev/null",
        f'timeout --signal=KILL {limits.wall_seconds} "$@" 2>&4 3>&- 4>&-',
        "code=$?",
        END_ALL if alone else "",
        packing_script(collect) if collect else "",
        "exit $code",
    ]
    return "\n".join(line for line in lines if line)


def rlimits(limits: Limits, *, processes: bool) -> list[str]:
    """The prlimit command line, to precede a command; with `processes`, limits the user's tasks.

    Processor time is limited per process; the wall time and the cores limit that of the run.
    """
    bounds = {
        "core": "0",
        "cpu": f"{limits.cpu_seconds}:{limits.cpu_seconds + 5}",
        "fsize": limits.file_bytes,
        "nofile": 1024,
    }
    if processes:
        bounds["nproc"] = limits.processes
    return ["/usr/bin/prlimit", *(f"--{name}={bound}" for name, bound in bounds.items()), "--"]


@dataclass
class Ending:
    """The result of a run: the report of supervisor.main, and all data that came back."""

    report: dict[str, Any]
    stdout: bytes
    stderr: bytes
    archive: bytes
    overflowed: bool


class Run:
    """The descriptors of one run: `with Run() as run:`, fill them, then `hold` the run."""

    def __init__(self) -> None:
        self._inherited: list[int] = []
        self._open = ExitStack()
        self._slack: FileIO | None = None
        self._canceled = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._open.close()

    def content(self, data: bytes) -> int:
        """The number of a descriptor, inherited by the command, from which `data` can be read."""
        return self._inherit(self._memory(data)).fileno()

    def hold(self, job: dict[str, Any], limits: Limits, standard_input: bytes = b"") -> Ending:
        """Run `job`, a dict for supervisor.hold without its descriptors and the grader's pid.

        Returns the Ending. Raises Ungradable if the supervisor failed: then nothing is known about
        the command.
        """
        leash, slack = self._pipe()
        self._slack = slack
        if self._canceled:
            slack.close()
        report, status = self._pipe()
        archive, packing = self._pipe()
        theirs = {"leash": leash, "status": status, "archive": packing}
        theirs = {name: self._inherit(file) for name, file in theirs.items()}
        numbers = {name: file.fileno() for name, file in theirs.items()}
        order = self.content(marshal.dumps({**job, **numbers, "grader": os.getpid()}))
        folder = str(Path(__file__).parent)
        supervisor = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", SUPERVISOR.format(folder=folder), str(order)],
            stdin=self._memory(standard_input) if standard_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=self._inherited,
            start_new_session=True,  # the grader handles interrupts from the keyboard
            cwd="/",
        )
        with supervisor:
            try:
                for file in theirs.values():
                    file.close()
                stdout, stderr = Drain(limits.stream_bytes), Drain(limits.stream_bytes)
                packed = Drain(len(READY) + limits.output_bytes, when_full=slack.close)
                reported = Drain(CHUNK)
                files = (supervisor.stdout, supervisor.stderr, archive, report)
                sinks = (stdout, stderr, packed, reported)
                drain(
                    {file.fileno(): sink for file, sink in zip(files, sinks, strict=True) if file}
                )
            finally:
                slack.close()
                supervisor.wait()
        ended = _read_report(bytes(reported.kept), bytes(stderr.kept))
        PACE.saw(ended["start"])
        return Ending(
            report=ended,
            stdout=bytes(stdout.kept),
            stderr=bytes(stderr.kept),
            archive=bytes(packed.kept),
            overflowed=packed.full,
        )

    def cancel(self) -> None:
        """Cancel the run, now or as soon as it begins. Any thread may call it."""
        self._canceled = True
        if self._slack is not None:
            self._slack.close()

    def _memory(self, data: bytes) -> FileIO:
        """An in-memory file from which `data` can be read."""
        file = self._open.enter_context(
            open(os.memfd_create("mpilab", os.MFD_CLOEXEC), "wb", buffering=0)  # noqa: SIM115
        )
        for start in range(0, len(data), 1 << 30):  # one write moves less than 2 GiB
            file.write(data[start : start + (1 << 30)])
        file.seek(0)
        return file

    def _pipe(self) -> tuple[FileIO, FileIO]:
        """(read end, write end) of a pipe, as unbuffered files that close with the run."""
        reader, writer = os.pipe()
        return (
            self._open.enter_context(open(reader, "rb", buffering=0)),
            self._open.enter_context(open(writer, "wb", buffering=0)),
        )

    def _inherit(self, file: FileIO) -> FileIO:
        """`file` under a number that the supervisor inherits; the original is closed.

        Numbers start at 10, because the shell redirects lower ones.
        """
        number = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, 10)
        copy = self._open.enter_context(FileIO(number, file.mode))
        file.close()
        self._inherited.append(number)
        return copy


@dataclass
class Drain:
    """The first `limit` bytes of a stream; `when_full` is called if more arrives."""

    limit: int
    when_full: Callable[[], None] | None = None
    kept: bytearray = field(default_factory=bytearray)
    full: bool = False

    def take(self, data: bytes) -> None:
        """Keep as much of `data` as fits."""
        room = self.limit - len(self.kept)
        self.kept += data[:room]
        if len(data) > room and not self.full:
            self.full = True
            if self.when_full:
                self.when_full()


def drain(outputs: Mapping[int, Drain]) -> None:
    """Read all of `outputs`, {descriptor: Drain}, to the end, concurrently."""
    with selectors.DefaultSelector() as selector:
        for descriptor, sink in outputs.items():
            selector.register(descriptor, selectors.EVENT_READ, sink)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, CHUNK)
                key.data.take(data)
                if not data:
                    selector.unregister(key.fileobj)


def _read_report(data: bytes, stderr: bytes) -> dict[str, Any]:
    said = stderr[-2000:].decode(errors="replace").strip()
    if not data:
        raise Ungradable("the sandbox's supervisor ended without a report", said or "it was killed")
    report = marshal.loads(data)
    if "failure" in report:
        raise Ungradable("the sandbox failed", report["failure"])
    return report
