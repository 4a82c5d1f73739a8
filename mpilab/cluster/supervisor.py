"""The supervisor, which makes sure that a cluster leaves nothing behind.

Every process of a cluster has the cluster's marker, `MPILAB_CLUSTER=<id>`, in its environment, and
all its files are in its own directories. So a sweep (kill all processes with the marker, then
remove the directories) finds everything, including ranks stuck in C code, daemons that detached
themselves, and shared memory that was not closed.

`Cluster.stop` sweeps. If it cannot, because the process that owns the cluster was killed, the
supervisor does: this file, run as a program in its own session, waits until the owner ends or
releases it. It imports only the standard library and starts in some 20 ms.
"""

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterable

MARKER = "MPILAB_CLUSTER"
PATIENCE_S = 5.0  # seconds for a killed process to disappear
RELEASE = b"."


class Supervisor:
    """The owner's side: starts and releases the supervisor of the cluster `identity`."""

    def __init__(self, identity: str, directories: Iterable[str | os.PathLike[str]]) -> None:
        # Without site-packages it starts faster; it needs psutil on systems other than Linux.
        isolated = ["-I", "-S"] if sys.platform == "linux" else ["-I"]
        self.process = subprocess.Popen(
            [sys.executable, *isolated, __file__, str(os.getpid()), identity]
            + [str(directory) for directory in directories],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # so that it gets neither ^C nor the notebook's interrupt
            env={},
            cwd="/",
        )

    def release(self) -> None:
        """End the supervisor without a sweep, when nothing is left to clean up."""
        try:
            self.process.communicate(RELEASE, timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def sweep(
    identity: str, directories: Iterable[str | os.PathLike[str]] = (), spare: Collection[int] = ()
) -> list[int]:
    """Kill every process of the cluster `identity` except those in `spare`; remove `directories`.

    Returns the IDs of processes that are still there after PATIENCE_S seconds (in an
    uninterruptible system call), normally none.
    """
    left = kill(identity, spare)
    if directories:
        import shutil  # noqa: PLC0415 (3 ms, which every start of a cluster would wait for)

        for directory in directories:
            shutil.rmtree(directory, ignore_errors=True)
    return left


def kill(identity: str, spare: Collection[int] = ()) -> list[int]:
    """SIGKILL every process with the marker until none is left; return the IDs of any survivors."""
    # From the first signal on: a scan of a busy machine may take longer than a killed process has.
    give_up: float | None = None
    empty_scans = 0
    while True:
        left = [process for process in marked(identity) if process not in spare]
        # During exec a process has no environment for an instant: scan twice.
        empty_scans = 0 if left else empty_scans + 1
        if empty_scans == 2 or (give_up is not None and time.monotonic() > give_up):
            return left
        for process in left:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue
        if left:
            give_up = give_up or time.monotonic() + PATIENCE_S
            # They are not our children, so we cannot wait for them.
            time.sleep(0.01)


def marked(identity: str) -> list[int]:
    """The IDs of the processes with `MPILAB_CLUSTER=identity` in their environment.

    Zombies have no environment and do not count; processes of other users are unreadable and
    cannot be ours.
    """
    if not sys.platform.startswith("linux"):
        import psutil  # noqa: PLC0415 (slow, and not needed on Linux)

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
        except OSError:  # it has just ended, or belongs to another user
            continue
    return found


def wait_for_the_end(owner: int) -> bool:
    """Wait until `owner` releases us (return True) or has ended (return False).

    The pipe alone is not enough: a child of the owner may hold its other end. So the owner itself
    is watched too.
    """
    watched = [0]
    seconds: float | None = 0.5
    if hasattr(os, "pidfd_open"):
        try:
            watched.append(os.pidfd_open(owner))
            seconds = None
        except ProcessLookupError:
            return False
        except OSError:  # a kernel or a sandbox without pidfd: check every half second
            watched = [0]
    while os.getppid() == owner:
        ready = select.select(watched, [], [], seconds)[0]
        if 0 in ready:
            return os.read(0, 1) == RELEASE
        if ready:
            return False
    return False


def main(owner: str, identity: str, *directories: str) -> None:
    """Wait for the end of process `owner`; sweep unless it releases us."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT"):
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    if not wait_for_the_end(int(owner)):
        sweep(identity, directories)


if __name__ == "__main__":
    main(*sys.argv[1:])
