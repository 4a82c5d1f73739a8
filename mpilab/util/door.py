"""Entry point of a command-line program: how it reports errors, interrupts and closed pipes; and
modules that are imported late, so that the program starts quickly."""

import contextlib
import errno
import importlib
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from types import FrameType, ModuleType
from typing import Any

from mpilab.errors import MpilabError
from mpilab.util import faults

# Interrupts: requests to end, from Ctrl-C, `kill` or a closed terminal.

# A second signal within this time has the same sender: `timeout` and a shell signal both a process
# and its group.
SAME_S = 1.0
LOOK_S = 0.5


class Interrupted(KeyboardInterrupt):
    """This program was asked to end by the signal `number`."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.number = number

    @property
    def status(self) -> int:
        """The exit status for this signal, as in a shell: 130 for SIGINT, 143 for SIGTERM."""
        return 128 + self.number


@contextlib.contextmanager
def heeded() -> Iterator[None]:
    """Make SIGINT, SIGTERM and SIGHUP raise Interrupted in the main thread within the block.

    The program can then clean up and end what it has started. SIGINT is handled even if it was
    ignored at the start, as in background jobs of scripts and CI runners; an ignored SIGHUP stays
    ignored (nohup). Does nothing in another thread, which gets no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    last: dict[int, float] = {}

    def interrupt(number: int, _: FrameType | None) -> None:
        before, last[number] = last.get(number), time.monotonic()
        if before is None or last[number] - before > SAME_S:
            raise Interrupted(number)

    names = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        names.append(signal.SIGHUP)
    before = {name: signal.signal(name, interrupt) for name in names}
    try:
        yield
    finally:
        for name, handler in before.items():
            # None: the handler was not installed from Python and cannot be restored.
            signal.signal(name, signal.SIG_DFL if handler is None else handler)


@contextlib.contextmanager
def deferred() -> Iterator[None]:
    """Defer interrupts that arrive within the block to its end.

    Use it to start a process: until Popen returns, there is no handle to end the new process.
    A process started in the block has the same signal dispositions as outside.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: dict[int, FrameType | None] = {}
    before: dict[signal.Signals, Callable[[int, FrameType | None], Any]] = {}
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        handler = signal.getsignal(name)
        # Leave ignored signals and default handlers in place: a child inherits them.
        if callable(handler):
            signal.signal(name, lambda number, frame: came.setdefault(number, frame))
            before[name] = handler
    try:
        yield
    finally:
        for name, handler in before.items():
            signal.signal(name, handler)
        for number, frame in came.items():
            before[signal.Signals(number)](number, frame)


def as_completed(futures: Iterable[Future]) -> Iterator[Future]:
    """Like concurrent.futures.as_completed, but an interrupt ends the wait within LOOK_S.

    Python checks for signals before it waits for a lock. A signal that arrives in between, or in
    another thread, does not wake it up: without a time limit, it would wait until everything is
    done.
    """
    pending = set(futures)
    while pending:
        done, pending = wait(pending, timeout=LOOK_S, return_when=FIRST_COMPLETED)
        yield from done


CLOSED_PIPE = 128 + 13  # SIGPIPE, as a shell reports it


def run(name: str, call: Callable[[], int | None], *, where: str = "") -> int:
    """Call `call` as the program `name` and return the exit status.

    Only SystemExit propagates. Other errors are reported on standard error in three parts, with
    the traceback in a log file (mpilab.util.faults). `where` says what was being done (default:
    `name`). If the reader of standard output has gone (`| head`), the program ends silently.
    SIGINT, SIGTERM and SIGHUP end it cleanly, with status 128 + signal number.
    """
    _open_standard_streams()
    with heeded():
        try:
            status = call() or 0
        except MpilabError as error:
            status = _tell(name, str(error))
        except KeyboardInterrupt as error:
            number = getattr(error, "number", None)
            how = "interrupted" if number in (None, 2) else f"ended by {error}"
            _tell(f"\n{name}", f"{how}; finished work is kept.")
            status = getattr(error, "status", 130)
        except SystemExit:
            if _settle() == errno.EPIPE:
                return CLOSED_PIPE
            raise
        except BrokenPipeError as error:
            told = _nobody_reads()
            status = CLOSED_PIPE if told else _tell(name, faults.report(error, where or name))
        except Exception as error:
            status = _tell(name, faults.report(error, where or name))
        trouble = _settle()
    if trouble == errno.EPIPE:
        return CLOSED_PIPE
    if trouble and status == 0:
        return _tell(name, _output(trouble, where or name))
    return status


def _tell(name: str, text: str) -> int:
    """Print `text` on standard error if possible; return the exit status of a failed program."""
    with contextlib.suppress(OSError, ValueError):  # standard error may be full or closed, too
        print(f"{name}: {text}", file=sys.stderr, flush=True)
    return 1


def _output(number: int, where: str) -> str:
    reason = faults.reason(OSError(number, os.strerror(number)))
    return (
        f"standard output: {reason}\n  where:  {where}\n"
        "  remedy: free some space, or write elsewhere, and run the same command again: "
        "finished work is kept."
    )


def _settle() -> int:
    """Flush standard output; return 0, or the error number.

    Output that cannot be written is dropped: otherwise Python would try again at exit, and report
    an error.
    """
    try:
        sys.stdout.flush()
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            nothing = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nothing, sys.stdout.fileno())
            os.close(nothing)
            sys.stdout.flush()
        return error.errno or 0 if isinstance(error, OSError) else 0
    return 0


def _nobody_reads() -> bool:
    """True if the reader of our standard output or standard error has gone."""
    poller = select.poll()
    for descriptor in (1, 2):
        poller.register(descriptor, 0)
    return any(event & select.POLLERR for _, event in poller.poll(0))


def _open_standard_streams() -> None:
    """Open the standard streams that this process was started without (`>&-`).

    Otherwise the next file that it opens, perhaps a gradebook, would receive its children's output.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # open() takes the lowest free number, which is this one.
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show '✓' or '│' gets '?' instead of an exception.
        if hasattr(stream, "reconfigure") and getattr(stream, "errors", "") == "strict":
            stream.reconfigure(errors="replace")


# Modules that are imported late.


class LatePackage:
    """A package that is imported when a name of it is first used.

    With LatePackage("mpilab"), `mpilab.grading.grade.grade` imports mpilab.grading.grade on the
    spot.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        package = importlib.import_module(self._name)
        try:
            value = getattr(package, name)
        except AttributeError:
            value = importlib.import_module(f"{self._name}.{name}")
        is_package = isinstance(value, ModuleType) and hasattr(value, "__path__")
        return LatePackage(value.__name__) if is_package else value
