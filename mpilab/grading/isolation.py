"""The bubblewrap options that isolate a submission, for the sandbox and for programs that try it.

The setup loads this file by its path before anything is installed, so it imports nothing.
"""

USER_ID = 1000  # of a submission, inside the sandbox
OLDEST = "0.8"  # the first bubblewrap with --disable-userns
WHERE = "Debian 12, Ubuntu 24.04 and conda-forge have it"

NAMESPACES = (
    *("--unshare-user", "--disable-userns", "--uid", str(USER_ID), "--gid", str(USER_ID)),
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
    *("--hostname", "sandbox", "--die-with-parent", "--new-session"),
)


def sized_folder(path: str, size: int, mode: str = "1777") -> list[str]:
    """The options that create an empty folder in memory, for at most `size` bytes."""
    return ["--perms", mode, "--size", str(size), "--tmpfs", path]


def trial(program: str) -> list[str]:
    """A command that exits with 0 if `program`, a bubblewrap, can isolate as the sandbox does."""
    shown = ["--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev"]
    rest = [*sized_folder("/tmp", 1 << 20), "--remount-ro", "/", "--chdir", "/", "--clearenv"]
    return [program, *NAMESPACES, *shown, *rest, "--", "/bin/true"]


def is_too_old(said: str) -> bool:
    """True if this output of bubblewrap rejects an option that OLDEST has."""
    return "nknown option" in said
