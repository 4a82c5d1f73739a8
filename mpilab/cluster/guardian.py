"""What makes sure that a cluster leaves nothing behind.

Every process of a cluster carries the cluster's marker, `MPILAB_CLUSTER=<id>`, in its environment,
and every file that it makes lies in directories of its own. So a sweep (kill whoever carries the
marker, then remove the directories) finds everything, also ranks that are stuck in C, daemons that
detached themselves, and shared memory that nobody closed.

`Cluster.stop` sweeps. Where it can't, because the process that owns the cluster was killed, the
guardian does: this file run as a program in a session of its own, which waits for the owner to
end or to let it go. It imports only the standard library and starts in some 20 ms.
"""

import os
import select
import signal
import subprocess
import sys
import time

MARKER = "MPILAB_CLUSTER"
PATIENCE = 5.0  # seconds that a killed process may take to disappear
LET_GO = b"."


class Guardian:
    """The owner's side: starts the guardian of the cluster `identity` and lets it go."""

    def __init__(self, identity, directories):
        # Without site-packages it starts faster; elsewhere than on Linux it needs psutil.
        isolated = ["-I", "-S"] if sys.platform == "linux" else ["-I"]
        self.process = subprocess.Popen(
            [sys.executable, *isolated, __file__, str(os.getpid()), identity]
            + [str(directory) for directory in directories],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # neither ^C nor the notebook's interrupt is for it
            env={},
            cwd="/",
        )

    def let_go(self):
        """End the guardian without a sweep: nothing is left that it would have to guard."""
        try:
            self.process.communicate(LET_GO, timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def sweep(identity, directories=(), spare=()):
    """Kill every process of the cluster `identity` but those in `spare`; remove `directories`.

    Returns the process ids that are still there after PATIENCE seconds (in an uninterruptible
    system call), normally none.
    """
    left = kill(identity, spare)
    if directories:
        import shutil

        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
    return left


def kill(identity, spare=()):
    """SIGKILL every process that carries the marker, until none is left; return who is left."""
    give_up = time.monotonic() + PATIENCE
    empty_scans = 0
    while True:
        left = [process for process in marked(identity) if process not in spare]
        # A process in the middle of exec shows no environment for an instant: look twice.
        empty_scans = 0 if left else empty_scans + 1
        if empty_scans == 2 or time.monotonic() > give_up:
            return left
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if left:
            # The end of a process that is nobody's child here can't be awaited.
            time.sleep(0.01)


def marked(identity):
    """The ids of the processes whose environment carries `MPILAB_CLUSTER=identity`.

    Processes that have ended but were not waited for have no environment and don't count; those
    of other users can't be read and can't be ours.
    """
    if not sys.platform.startswith("linux"):
        import psutil

        return [
            process.pid
            for process in psutil.process_iter(["environ"])
            if (process.info["environ"] or {}).get(MARKER) == identity
        ]
    needle = f"{MARKER}={identity}".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/environ", "rb") as environment:
                if needle in environment.read().split(b"\0"):
                    found.append(int(name))
        except OSError:  # it ended meanwhile, or is another user's
            continue
    return found


def wait_for_the_end(owner):
    """Wait until `owner` lets us go (returns True) or has ended (returns False).

    The end of the pipe alone is no proof that the owner lives: a process that it forked may hold
    the other end. So the owner itself is watched too.
    """
    watched = [0]
    seconds = 0.5
    if hasattr(os, "pidfd_open"):
        try:
            watched.append(os.pidfd_open(owner))
            seconds = None
        except ProcessLookupError:
            return False
        except OSError:  # a kernel or a sandbox without pidfd: look every half a second
            watched = [0]
    while os.getppid() == owner:
        ready = select.select(watched, [], [], seconds)[0]
        if 0 in ready:
            return os.read(0, 1) == LET_GO
        if ready:
            return False
    return False


def main(owner, identity, *directories):
    """Wait for the end of process `owner`; unless it lets us go, sweep."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if not wait_for_the_end(int(owner)):
        sweep(identity, directories)


if __name__ == "__main__":
    main(*sys.argv[1:])
