"""Run a command inside an emulated host, as a program: `python -I -S enter.py`.

    enter.py PROCESS BEGUN HOST -- COMMAND...

PROCESS is the host's process as seen here, BEGUN its start time (namespaces.begun_at). The command
gets our standard input and output, environment and working directory. Signals are forwarded to it,
it ends when our parent does, and its exit status becomes ours (128 + N if signal N ended it; 255 if
the host cannot be entered, 127 if there is no such command).

    this process ──signals──▶ attendant ──▶ command           inside: attendant and command
                 ◀──status───

The attendant is a child of the cluster's process 1, which reaps it whichever process is killed
first. A process with a parent outside would be left to the system's process 1, and the cluster
could not end before it was reaped, which may never happen in a container.
"""

import contextlib
import os
import select
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(HERE)), "util"))
import namespaces  # noqa: E402
from namespaces import FROM_TERMINAL, PASSED_ON  # noqa: E402

CANNOT_ENTER, NO_COMMAND = 255, 127
PARENT_ENDED = signal.SIGRTMIN + 5
PATIENCE_S = 2.0  # time for the command to end after SIGTERM


def main(process: int, begun: int, host: str, command: list[str]) -> int:
    """Enter the host, run the command, forward signals until it ends; return the exit status."""
    parent, folder = os.getppid(), os.getcwd()
    has_terminal = os.isatty(0)
    heeded = [name for name in PASSED_ON if name == signal.SIGINT or not _is_ignored(name)]
    heard = _listen([*heeded, PARENT_ENDED])
    try:
        namespaces.enter(process, begun)
        os.chdir(folder)
        namespaces.end_with_parent(PARENT_ENDED)  # only now: entering resets it
        if os.getppid() != parent:
            return 128 + signal.SIGTERM
    except ProcessLookupError:
        return _say(f"host {host}: its cluster is down. Bring it up again: mpilab hosts up ...")
    except OSError as error:
        return _say(
            f"host {host} cannot be entered: {error}. Are you the user who brought it up, "
            "and is the working directory on a drive that is visible to the host?"
        )
    orders, status = _start_attendant(command, heeded, has_terminal)
    while True:
        ready = select.select([heard, status], [], [])[0]
        if status in ready:
            # Empty if the attendant was killed.
            return (os.read(status, 1) or bytes([128 + signal.SIGKILL]))[0]
        for number in os.read(heard, 64):
            if number == PARENT_ENDED:
                # Also sent if only the thread that started us has ended.
                if os.getppid() != parent:
                    return 128 + signal.SIGTERM  # the attendant ends the command
            elif not (has_terminal and number in FROM_TERMINAL):
                os.write(orders, bytes([number]))


def _is_ignored(name: signal.Signals) -> bool:
    """True if this signal is ignored, as with nohup.

    (Scripts make background jobs ignore SIGINT; it must still reach the command on the host.)
    """
    return signal.getsignal(name) == signal.SIG_IGN


def _listen(names: list[int]) -> int:
    """A file from which the numbers of these signals can be read as they arrive."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for name in names:
        signal.signal(name, lambda *_: None)
    return heard


def _start_attendant(
    command: list[str], heeded: list[signal.Signals], has_terminal: bool
) -> tuple[int, int]:
    """Two files: to write signals for the command, and to read its status when it has ended."""
    order_end, orders = os.pipe()
    status, status_end = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [*PASSED_ON, signal.SIGCHLD, PARENT_ENDED])
    child = os.fork()
    if child == 0:
        # Orphaned, the grandchild becomes a child of process 1 of its PID namespace.
        if os.fork() == 0:
            os.close(orders)
            os.close(status)
            _attend(command, heeded, has_terminal, mask, order_end, status_end)
        os._exit(0)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    os.waitpid(child, 0)
    os.close(order_end)
    os.close(status_end)
    return orders, status


def _attend(
    command: list[str],
    heeded: list[signal.Signals],
    has_terminal: bool,
    mask: set[int],
    orders: int,
    status: int,
) -> None:
    """Run the attendant: start the command, forward signals, report its end.

    If the sender of the signals ends, so does the command.
    """
    for name in (*PASSED_ON, PARENT_ENDED):
        signal.signal(name, signal.SIG_IGN)
    ended = _listen([signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        _become(command, heeded, has_terminal, mask)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    # Do not keep the command's standard streams open.
    nothing = os.open(os.devnull, os.O_RDWR)
    for file in range(3):
        os.dup2(nothing, file)
    heard = [orders, ended]
    patience = None
    while ended not in (ready := select.select(heard, [], [], patience)[0]):
        numbers = os.read(orders, 64) if ready else bytes([signal.SIGKILL])
        for number in numbers or bytes([signal.SIGTERM]):
            os.kill(child, number)
        if not numbers:
            heard, patience = [ended], PATIENCE_S
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with contextlib.suppress(BrokenPipeError):  # no reader is left
        os.write(status, bytes([code if code >= 0 else 128 - code]))
    os._exit(0)


def _become(
    command: list[str], heeded: list[signal.Signals], has_terminal: bool, mask: set[int]
) -> None:
    """In the child: execute the command."""
    try:
        if not has_terminal:
            # So that a signal for our caller's whole group arrives once, forwarded. At a terminal,
            # stay in the foreground group: no other group may read there.
            os.setpgid(0, 0)
        # Python ignores SIGPIPE and SIGXFSZ.
        for name in (*heeded, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(name, signal.SIG_DFL)
        namespaces.end_with_parent()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvp(command[0], command)
    except OSError as error:
        _say(f"{command[0]}: {error.strerror}")
    os._exit(NO_COMMAND)


def _say(words: str) -> int:
    print(f"mpilab: {words}", file=sys.stderr, flush=True)
    return CANNOT_ENTER


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[5:]))
