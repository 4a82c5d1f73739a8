"""Run a command inside of an emulated host: this file as a program, `python -I -S enter.py`.

    enter.py PROCESS BEGUN HOST -- COMMAND...

PROCESS is the host's process as seen here, BEGUN when it was started (namespaces.begun_at).
Standard input and output, environment and working directory are the command's; signals are passed
on to it, it ends when whoever called us does, and its exit status is given back (128 + N where
signal N ended it; 255 where the host cannot be entered, 127 where there is no such command).

    this process ──signals──▶ attendant ──▶ command           inside: attendant and command
                 ◀──status───

The attendant is a child of the cluster's process 1, which waits for it whoever is killed first. Of
a process whose parent is outside, what is left would be for the system's process 1 to clear away,
and until then the cluster could not end; in a container that may be never.
"""

import os
import select
import signal
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import namespaces  # noqa: E402

CANNOT_ENTER, NO_COMMAND = 255, 127
PASSED_ON = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1,
             signal.SIGUSR2)  # fmt: skip
# What a terminal sends to all processes of its foreground group, the command among them.
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
PARENT_ENDED = signal.SIGRTMIN + 5
PATIENCE_S = 2.0  # for a command that is asked to end


def main(process, begun, host, command):
    """Enter, have the command run, pass signals on until it ends; the exit status."""
    parent, folder = os.getppid(), os.getcwd()
    has_terminal = os.isatty(0)
    heeded = [name for name in PASSED_ON if signal.getsignal(name) != signal.SIG_IGN]
    heard = _listen([*heeded, PARENT_ENDED])
    try:
        namespaces.enter(process, begun)
        os.chdir(folder)
        namespaces.end_with_parent(PARENT_ENDED)  # with other rights this would be forgotten
        if os.getppid() != parent:
            return 128 + signal.SIGTERM
    except ProcessLookupError:
        return _say(f"host {host}: its cluster is gone. Bring it up again: mpilab hosts up ...")
    except OSError as error:
        return _say(f"host {host} cannot be entered: {error}. Are you the user who brought it up, "
                    "and is the working directory on a drive that the host sees?")  # fmt: skip
    orders, status = _start_attendant(command, heeded, has_terminal)
    while True:
        ready = select.select([heard, status], [], [])[0]
        if status in ready:
            # Nothing at all where the attendant was killed.
            return (os.read(status, 1) or bytes([128 + signal.SIGKILL]))[0]
        for number in os.read(heard, 64):
            if number == PARENT_ENDED:
                # It also comes when only the thread that started us has ended.
                if os.getppid() != parent:
                    return 128 + signal.SIGTERM  # the attendant ends the command
            elif not (has_terminal and number in FROM_TERMINAL):
                os.write(orders, bytes([number]))


def _listen(names):
    """A file in which the numbers of these signals come in from now on."""
    heard, told = os.pipe()
    os.set_blocking(told, False)
    signal.set_wakeup_fd(told, warn_on_full_buffer=False)
    for name in names:
        signal.signal(name, lambda *_: None)
    return heard


def _start_attendant(command, heeded, has_terminal):
    """Two files: for signals that the command is to get, and for its status when it has ended."""
    order_end, orders = os.pipe()
    status, status_end = os.pipe()
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [*PASSED_ON, signal.SIGCHLD, PARENT_ENDED])
    child = os.fork()
    if child == 0:
        # An orphan is taken over by process 1 of its PID namespace.
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


def _attend(command, heeded, has_terminal, mask, orders, status):
    """The attendant: start the command, pass signals on, report its end. Where who gives the
    signals has ended, so does the command."""
    for name in (*PASSED_ON, PARENT_ENDED):
        signal.signal(name, signal.SIG_IGN)
    ended = _listen([signal.SIGCHLD])
    child = os.fork()
    if child == 0:
        _become(command, heeded, has_terminal, mask)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    # What the command has of these is not for us to keep open.
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
    try:
        os.write(status, bytes([code if code >= 0 else 128 - code]))
    except BrokenPipeError:
        pass  # nobody wants to know any more
    os._exit(0)


def _become(command, heeded, has_terminal, mask):
    """In the child: become the command."""
    try:
        if not has_terminal:
            # A signal for the whole group of our caller reaches it once, passed on. At a terminal
            # it stays in the group: another one may not read there.
            os.setpgid(0, 0)
        # Python ignores the last two.
        for name in (*heeded, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(name, signal.SIG_DFL)
        namespaces.end_with_parent()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        os.execvp(command[0], command)
    except OSError as error:
        _say(f"{command[0]}: {error.strerror}")
    os._exit(NO_COMMAND)


def _say(words):
    print(f"mpilab: {words}", file=sys.stderr, flush=True)
    return CANNOT_ENTER


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[5:]))
