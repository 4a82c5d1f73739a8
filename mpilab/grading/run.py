"""One sandboxed run, as the grader sees it: start a keeper, drain its pipes, read its report.

The keeper (keeper.py) does what must not happen in a process with threads. This side only moves
bytes, and bounds them: whatever a command prints, the grader holds no more than the limits say.
"""

import fcntl
import marshal
import os
import selectors
import shlex
import subprocess
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from mpilab.errors import Ungradable
from mpilab.grading.archive import packing_script

KEEPER = "import sys; sys.path.append({folder!r}); import keeper; keeper.main()"

# The first bytes that come back: the sandbox stands, and the command is about to start.
READY = b"ready\n"

# After the command's time is up: seconds for its files to be collected.
GRACE_SECONDS = 5.0

CHUNK = 1 << 16


def script(limits, collect, filled):
    """The shell script that runs its arguments as the command, inside.

    The work directory is filled from standard input if `filled`. The command is stopped when its
    time is up, and its files come back all the same: a recording of a deadlock is of most use
    then. What the shell itself has to say about that is not the command's and is dropped.
    """
    lines = [
        "tar --extract --touch --file=- || exit 125" if filled else "",
        f"printf {shlex.quote(READY.decode())} >&3",
        "exec 4>&2 2>/dev/null </dev/null",
        f'timeout --signal=KILL {limits.wall_seconds} "$@" 2>&4 3>&- 4>&-',
        "code=$?",
        packing_script(collect) if collect else "",
        "exit $code",
    ]
    return "\n".join(line for line in lines if line)


def rlimits(limits, *, processes):
    """The prlimit command line for what follows it; `processes`: count the user's tasks as well.

    Time is a process's own, not the run's: that is bounded by the wall time and the cores.
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
    """What came of a run: the keeper's report (see keeper.hold), and all that came back."""

    report: dict
    stdout: bytes
    stderr: bytes
    archive: bytes
    overflowed: bool


class Run:
    """The descriptors of one run: `with Run() as run:`, fill them, then `hold` it to its end."""

    def __init__(self):
        self._inherited = []
        self._open = ExitStack()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._open.close()

    def content(self, data):
        """The number of a descriptor, inherited by the command, from which `data` can be read."""
        return self._inherit(self._memory(data)).fileno()

    def hold(self, job, limits, standard_input=b""):
        """Run `job`, a dict for keeper.hold but for its descriptors and the grader's pid.

        Returns the Ending. Raises Ungradable where the keeper broke down: nothing is known about
        the command then.
        """
        leash, slack = self._pipe()
        report, status = self._pipe()
        archive, packed = self._pipe()
        theirs = {"leash": leash, "status": status, "archive": packed}
        theirs = {name: self._inherit(file) for name, file in theirs.items()}
        numbers = {name: file.fileno() for name, file in theirs.items()}
        order = self.content(marshal.dumps({**job, **numbers, "grader": os.getpid()}))
        folder = str(Path(__file__).parent)
        keeper = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", KEEPER.format(folder=folder), str(order)],
            stdin=self._memory(standard_input) if standard_input else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=self._inherited,
            start_new_session=True,  # an interrupt from the keyboard is the grader's to handle
            cwd="/",
        )
        with keeper:
            try:
                for file in theirs.values():
                    file.close()
                outputs = {
                    keeper.stdout: Drain(limits.stream_bytes),
                    keeper.stderr: Drain(limits.stream_bytes),
                    archive: Drain(len(READY) + limits.output_bytes, when_full=slack.close),
                    report: Drain(CHUNK),
                }
                drain(outputs)
            finally:
                slack.close()
                keeper.wait()
        stdout, stderr, archive, report = outputs.values()
        return Ending(
            report=_read_report(bytes(report.kept), bytes(stderr.kept)),
            stdout=bytes(stdout.kept),
            stderr=bytes(stderr.kept),
            archive=bytes(archive.kept),
            overflowed=archive.full,
        )

    def _memory(self, data):
        """A file, in memory, from which `data` can be read."""
        file = open(os.memfd_create("mpilab", os.MFD_CLOEXEC), "wb", buffering=0)
        self._open.enter_context(file)
        for start in range(0, len(data), 1 << 30):  # one write moves less than 2 GiB
            file.write(data[start : start + (1 << 30)])
        file.seek(0)
        return file

    def _pipe(self):
        """(read end, write end) of a pipe, as unbuffered files that close with the run."""
        reader, writer = os.pipe()
        return (
            self._open.enter_context(open(reader, "rb", buffering=0)),
            self._open.enter_context(open(writer, "wb", buffering=0)),
        )

    def _inherit(self, file):
        """`file` under a number that the keeper inherits; the original is closed.

        Numbers from 10 on: those below are the shell's to redirect.
        """
        number = fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, 10)
        copy = self._open.enter_context(open(number, file.mode, buffering=0))
        file.close()
        self._inherited.append(number)
        return copy


@dataclass
class Drain:
    """What is kept of a stream: the first `limit` bytes. `when_full` is called when more comes."""

    limit: int
    when_full: object = None
    kept: bytearray = field(default_factory=bytearray)
    full: bool = False

    def take(self, data):
        """Keep of `data` what there is room for."""
        room = self.limit - len(self.kept)
        self.kept += data[:room]
        if len(data) > room and not self.full:
            self.full = True
            if self.when_full:
                self.when_full()


def drain(outputs):
    """Read each file of `outputs`, {file: Drain}, to its end, all at once."""
    with selectors.DefaultSelector() as selector:
        for file, sink in outputs.items():
            selector.register(file, selectors.EVENT_READ, sink)
        while selector.get_map():
            for key, _ in selector.select():
                data = os.read(key.fd, CHUNK)
                key.data.take(data)
                if not data:
                    selector.unregister(key.fileobj)


def _read_report(data, stderr):
    said = stderr[-2000:].decode(errors="replace").strip()
    if not data:
        raise Ungradable(f"the sandbox's keeper ended without a report: {said or 'it was killed'}")
    report = marshal.loads(data)
    if "failure" in report:
        raise Ungradable(f"the sandbox failed: {report['failure']}")
    return report
