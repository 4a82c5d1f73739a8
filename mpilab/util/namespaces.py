"""Linux namespaces by system call: create new ones, enter those of another process.

For programs that start in milliseconds: standard library only, no site-packages (`python -I -S`).
See namespaces(7), user_namespaces(7), mount(2).
"""

import ctypes
import os
import signal

# The namespaces of a host or a cluster, with their flags in <linux/sched.h>. The user namespace
# comes first: it grants the right to enter, or create, the others.
FLAGS = {
    "user": 0x10000000,
    "pid": 0x20000000,
    "mnt": 0x00020000,
    "net": 0x40000000,
    "uts": 0x04000000,
    "ipc": 0x08000000,
}
CLUSTER = ("pid", "mnt", "net", "uts", "ipc")
HOST = ("mnt", "net", "uts", "ipc")

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_REC, MS_SLAVE = 2, 4, 8, 1 << 12, 1 << 14, 1 << 19
_PR_SET_PDEATHSIG = 1

# Signals that are forwarded to a command on an emulated host, and those of them that a terminal
# itself sends to its whole foreground process group, including the command.
PASSED_ON = (
    signal.SIGINT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
)
FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(names: tuple[str, ...]) -> None:
    """Give this process new namespaces of these kinds (keys of FLAGS). Raises OSError."""
    _check(_libc.unshare(sum(FLAGS[name] for name in names)), f"unshare({' '.join(names)})")


def become_root_of_a_user_namespace() -> None:
    """Create a user namespace in which this process is root; normal users may, if permitted.

    Outside, it keeps its user. Raises OSError.
    """
    user, group = os.geteuid(), os.getegid()
    unshare(("user",))
    _write("/proc/self/setgroups", "deny")
    _write("/proc/self/uid_map", f"0 {user} 1")
    _write("/proc/self/gid_map", f"0 {group} 1")


def enter(process: int, begun: int) -> None:
    """Enter all namespaces of the process with this number and start time (begun_at).

    The PID namespace applies to children only (setns(2)). Raises ProcessLookupError if that
    process has ended, OSError if it may not be entered.
    """
    files = []
    for name in FLAGS:
        path = f"/proc/{process}/ns/{name}"
        try:
            # Entering the current user namespace would be an error.
            if os.stat(path).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino:
                files.append((name, os.open(path, os.O_RDONLY | os.O_CLOEXEC)))
        except FileNotFoundError:
            raise ProcessLookupError(f"process {process} has ended") from None
    # The number may have been reused before the files were opened.
    if begun_at(process) != begun:
        raise ProcessLookupError(f"process {process} has ended")
    for name, file in files:
        _check(_libc.setns(file, FLAGS[name]), f"setns({name})")
        os.close(file)


def begun_at(process: int) -> int | None:
    """The start time of a process, in clock ticks since boot; with its number, it identifies the
    process uniquely. None if it has ended, even if it is still a zombie."""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            # The name, in parentheses, may contain anything.
            fields = file.read().rpartition(b")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if fields[0] in b"ZX" else int(fields[19])


def mount(source: str | None, target: str, kind: str | None = None, flags: int = 0) -> None:
    """mount(2); raises OSError."""
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    _check(_libc.mount(*words, ctypes.c_ulong(flags), None), f"mount {kind or source} on {target}")


def end_with_parent(number: int = signal.SIGKILL) -> None:
    """Send this process the signal `number` when the thread that forked it ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0), "prctl(PR_SET_PDEATHSIG)")


def set_hostname(name: str) -> None:
    """Set the host name of this process's UTS namespace; raises OSError."""
    encoded = name.encode()
    _check(_libc.sethostname(encoded, len(encoded)), f"sethostname({name})")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)
