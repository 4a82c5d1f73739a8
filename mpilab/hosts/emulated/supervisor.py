"""Supervise a cluster of emulated hosts, as a program: `python -I -S supervisor.py`.

    supervisor.py DIRECTORY NAME OWNER

It creates the cluster's namespaces and its process 1 (netns_root.py) from DIRECTORY/plan.json,
prints a line of JSON, and waits for the end of that process, for SIGTERM, and, unless OWNER is 0,
for the end of the process OWNER or of standard input, whose other end OWNER holds. Then it ends
everything that is left and removes DIRECTORY. If the supervisor is killed, the cluster ends too.

If OWNER is 0, the process that started the supervisor writes LET_GO to its standard input once the
cluster can be found by others (hosts.py); if standard input ends before that, so does the cluster.

The line is {"root": process, "hosts": [...]} (see netns_root.py) or {"error": message}.
"""

import json
import os
import select
import shutil
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(os.path.dirname(HERE)), "util")]
import namespaces  # noqa: E402
import netns_root  # noqa: E402

LET_GO = b"."


def main(directory: str, owner: int) -> None:
    """Create the cluster, supervise it, remove its directory."""
    os.chdir("/")
    for name in signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGPIPE:
        signal.signal(name, signal.SIG_IGN)
    wake, waker = os.pipe()
    for end in wake, waker:
        os.set_blocking(end, False)
    signal.set_wakeup_fd(waker)
    for name in signal.SIGTERM, signal.SIGCHLD:
        signal.signal(name, lambda *_: None)
    watched = [wake, *_lifelines(owner)]
    try:
        child = _start(directory)
        if child is not None:
            _wait(watched)
            os.kill(child, signal.SIGKILL)  # not reaped yet, so the number is still its own
            os.waitpid(child, 0)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _lifelines(owner: int) -> list[int]:
    """Files that become readable when `owner`, a process number, ends; for 0, when our parent does.

    The pipe alone is not enough: a child of the owner may hold its other end.
    """
    if not owner:
        return [0]
    try:
        return [0, os.pidfd_open(owner)]
    except ProcessLookupError:
        sys.exit(0)
    except (OSError, AttributeError):  # a kernel before 5.3, or a Python built for one
        return [0]


def _wait(watched: list[int]) -> None:
    """Wait until one of these files is readable; ignore LET_GO on standard input."""
    while select.select(watched, [], [])[0] == [0] and os.read(0, 1) == LET_GO:
        watched = [file for file in watched if file != 0]


def _start(directory: str) -> int | None:
    """Start the netns root and report to the owner: its process number, or None if it failed."""
    with open(os.path.join(directory, "plan.json")) as file:
        plan = json.load(file)
    told, tell = os.pipe()
    try:
        if plan["namespaces"] == "rootless":
            namespaces.become_root_of_a_user_namespace()
        namespaces.unshare(namespaces.CLUSTER)
    except OSError as error:
        _say(error=str(error))
        return None
    child = os.fork()
    if child == 0:
        _be_netns_root(plan, directory, told, tell)
    os.close(tell)
    with os.fdopen(told) as report:
        line = report.readline()
    said = json.loads(line) if line else {"error": "process 1 of the cluster ended"}
    if "error" in said:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _say(error=said["error"])
        return None
    _say(root=child, hosts=said["hosts"])
    return child


def _be_netns_root(plan: dict, directory: str, told: int, tell: int) -> None:
    """In the child: process 1 of the new PID namespace."""
    try:
        signal.set_wakeup_fd(-1)
        for name in signal.SIGTERM, signal.SIGCHLD, signal.SIGPIPE:
            signal.signal(name, signal.SIG_DFL)
        namespaces.end_with_parent()
        os.close(told)
        # Standard input belongs to the supervisor; output goes to the log from here on.
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        netns_root.main(plan, directory, tell)
    except BaseException:
        sys.excepthook(*sys.exc_info())  # into the log
    finally:
        os._exit(1)


def _say(**words: object) -> None:
    print(json.dumps(words), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[3]))
