"""Run a command on emulated hosts to its end, and end it if it does not end by itself.

mpirun of Open MPI 5 sometimes waits forever if its program ended at once, before all daemons had
reported: after 10 to 40 % of all `mpirun hostname` across hosts, but never after a program that
calls MPI_Init. No process of the program is left then, and neither mpirun nor its daemons use any
processor time.
"""

import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from mpilab.cluster.supervisor import MARKER, kill, marked
from mpilab.util import door

LOOK_S = 1.0  # between checks; one costs some 10 ms
QUIET_S = 5.0  # without a process of the program, and without any work, until mpirun is ended
TELL_S = 15.0  # until the first message on what we wait for; the interval then doubles each time
PATIENCE_S = 5.0  # time for a command to end after a request
DID_NOT_END = 124  # as in timeout(1)
STARTERS = {"mpirun", "mpiexec", "prterun", "orterun"}
_DAEMONS = {"prte", "prted", "orted"}
_OF_PROGRAM = b"PMIX_RANK="  # in the environment of every process that mpirun starts
_PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)


def follow(line: list[str], environment: dict[str, str], *, timeout: float | None = None) -> int:
    """Run the command line of EmulatedHosts.command to its end, with our standard streams.

    Returns its exit status, or DID_NOT_END if it had to be ended: after `timeout` seconds, or
    because its mpirun waits for nothing. The reason is printed on standard error, as is, from time
    to time, what we wait for.

    Signals are forwarded to the command. When it ends, so does everything that it has started.
    """
    return _Followed(line, environment, timeout).status()


class _Followed:
    def __init__(self, line: list[str], environment: dict[str, str], timeout: float | None) -> None:
        self.identity = secrets.token_hex(8)
        # At a terminal the command stays in the foreground group and gets the terminal's signals
        # directly. Otherwise we forward each signal, so that it arrives once.
        self.has_terminal = os.isatty(0)
        self.timeout = timeout
        self.asked: float | None = None
        self.begun = self.quiet_since = time.monotonic()
        self.tell_at = TELL_S
        self.work: list[tuple[int, int]] | None = None
        with door.deferred():
            self.process = subprocess.Popen(
                line,
                env=environment | {MARKER: self.identity},
                process_group=None if self.has_terminal else 0,
            )

    def status(self) -> int:
        try:
            with self._passing_on():
                while True:
                    try:
                        code = self.process.wait(LOOK_S)
                        return code if code >= 0 else 128 - code
                    except subprocess.TimeoutExpired:
                        why = self._why_to_end()
                    if why:
                        self._end()
                        print(f"mpilab: {why}", file=sys.stderr, flush=True)
                        return DID_NOT_END
        finally:
            if self.process.poll() is None:
                self._end()
            kill(self.identity)  # daemons may have detached themselves

    def _why_to_end(self) -> str:
        """Why the command must be ended now, in words; '' while it may continue."""
        now = time.monotonic()
        if self.timeout is not None and now - self.begun >= self.timeout:
            return (
                f"the command was ended: it had not ended after {self.timeout:g} s, the limit of "
                "--timeout; give it more, or look what it waits for"
            )
        if self.asked is not None and now - self.asked >= PATIENCE_S:
            return f"the command was ended: it went on for {PATIENCE_S:g} s after it was asked to"
        seen = [_Seen(number) for number in marked(self.identity)]
        starters = [one for one in seen if one.name in STARTERS]
        programs = [one for one in seen if one.is_program]
        work = [(one.number, one.work) for one in seen if one.name in STARTERS | _DAEMONS]
        if not starters or programs or work != self.work or any(one.is_stopped for one in seen):
            self.quiet_since, self.work = now, work
        elif now - self.quiet_since >= QUIET_S:
            return (
                "mpirun was ended: its program had ended, and it went on waiting for "
                f"nothing for {QUIET_S:g} s. It does that now and then after a program that never "
                "calls MPI_Init; what was printed is above. Run it again, or without mpirun: "
                "mpilab hosts run --host HOST -- PROGRAM"
            )
        if starters and now - self.begun >= self.tell_at:
            self.tell_at *= 2
            count = len(programs)
            print(
                f"mpilab: waiting for mpirun for {now - self.begun:.0f} s; "
                f"{count} process{'es' * (count != 1)} of its program left. Ctrl-C ends it.",
                file=sys.stderr,
                flush=True,
            )
        return ""

    def _end(self) -> None:
        """End the command: SIGTERM, then SIGKILL."""
        for number in signal.SIGTERM, signal.SIGKILL:
            if self.process.poll() is None:
                self.process.send_signal(number)
                try:
                    self.process.wait(PATIENCE_S)
                except subprocess.TimeoutExpired:
                    continue

    @contextmanager
    def _passing_on(self) -> Iterator[None]:
        """Forward signals to the command within the block."""

        def passed_on(number: int, _: FrameType | None) -> None:
            if not (self.has_terminal and number in _FROM_TERMINAL):
                self.process.send_signal(number)
            if number in (signal.SIGTERM, signal.SIGHUP):
                self.asked = time.monotonic()

        before = {
            name: signal.signal(name, passed_on)
            for name in _PASSED_ON
            if name == signal.SIGINT or signal.getsignal(name) != signal.SIG_IGN
        }
        try:
            yield
        finally:
            for name, handler in before.items():
                signal.signal(name, signal.SIG_DFL if handler is None else handler)


class _Seen:
    """A snapshot of a process; one that has just ended has no name and no work."""

    def __init__(self, number: int) -> None:
        self.number, self.name, self.work = number, "", 0
        self.is_program = self.is_stopped = False
        try:
            folder = Path("/proc", str(number))
            self.name = Path(os.readlink(folder / "exe")).name.removesuffix(" (deleted)")
            environment = (folder / "environ").read_bytes().split(b"\0")
            self.is_program = any(word.startswith(_OF_PROGRAM) for word in environment)
            fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            self.is_stopped = fields[0] in b"Tt"
            self.work = int(fields[11]) + int(fields[12])  # processor time, in ticks
        except OSError:
            return
