"""What a command sees of the machine: the options of bubblewrap.

A system to run programs with, a work directory, what the grader makes readable, and nothing else.
"""

import os
from pathlib import Path

from mpilab.errors import InputError

WORK = "/lab"
USER_ID = 1000

SYSTEM_LINKS = {"/bin": "usr/bin", "/sbin": "usr/sbin", "/lib": "usr/lib", "/lib64": "usr/lib64"}

# The compiler's and linker's choices, the name service's order, a system-wide Open MPI.
SETTINGS = (
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/nsswitch.conf",
    "/etc/localtime",
    "/etc/openmpi",
)

ACCOUNTS = {
    "/etc/passwd": f"root:x:0:0::/root:/bin/false\nstudent:x:{USER_ID}:{USER_ID}::{WORK}:/bin/sh\n",
    "/etc/group": f"root:x:0:\nstudent:x:{USER_ID}:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
}

NAMESPACES = (
    *("--unshare-user", "--disable-userns", "--uid", str(USER_ID), "--gid", str(USER_ID)),
    *("--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup"),
    *("--hostname", "sandbox", "--die-with-parent", "--new-session"),
)


def options(links, binds, limits, environment, contents):
    """bubblewrap's options, a list of str, up to but without the command.

    links        {path inside: target} of symbolic links to make
    binds        {path inside: path outside} to show read-only
    environment  all variables that the command gets
    contents     {path inside: number of a descriptor that holds the text}, for ACCOUNTS
    """
    built = [*NAMESPACES, "--ro-bind", "/usr", "/usr"]
    for path, target in SYSTEM_LINKS.items():
        if Path(path).exists():
            built += ["--symlink", target, path]
    for path in SETTINGS:
        built += ["--ro-bind-try", path, path]
    for path, descriptor in contents.items():
        built += ["--perms", "0644", "--ro-bind-data", str(descriptor), path]
    built += ["--proc", "/proc", "--dev", "/dev"]
    built += ["--perms", "1777", "--size", str(limits.shm_bytes), "--tmpfs", "/dev/shm"]
    built += ["--remount-ro", "/dev"]
    built += ["--perms", "1777", "--size", str(limits.disk_bytes), "--tmpfs", "/tmp"]
    built += ["--perms", "0755", "--size", str(limits.disk_bytes), "--tmpfs", WORK]
    for inside, outside in binds.items():
        built += ["--ro-bind", outside, inside]
    for path, target in links.items():
        built += ["--symlink", target, path]
    built += ["--remount-ro", "/", "--chdir", WORK, "--clearenv"]
    for name, value in environment.items():
        built += ["--setenv", name, value]
    return built


def resolve(paths):
    """What must be there for each of `paths` to be found: (links, places).

    Every symbolic link on the way is kept as one (a Python looks for its library from the target
    of its own name), and the place it finally leads to is shown. `links` is {path: target};
    `places` a list of real paths. What lies below /usr or below another place is left out.
    Raises InputError for a path that does not exist or would cover a part of the sandbox's own.
    """
    links, places = {}, []
    for path in paths:
        _follow(Path(os.path.abspath(path)), links, places)
    shown = []
    for place in sorted(set(places)):
        if not _below(place, ["/usr", *shown]):
            _refuse_cover(place)
            shown.append(place)
    own = ("/usr", *SYSTEM_LINKS, *shown)
    return {path: target for path, target in links.items() if not _below(path, own)}, shown


def _follow(path, links, places):
    """Add to `links` and `places` what the absolute `path` goes through."""
    real = Path("/")
    parts = list(path.parts[1:])
    for _ in range(1000):  # the kernel gives up after 40 links
        if not parts:
            places.append(str(real))
            return
        part = parts.pop(0)
        if part == "..":
            real = real.parent
            continue
        step = real / part
        if step.is_symlink():
            target = os.readlink(step)
            links[str(step)] = target
            real = Path("/") if target.startswith("/") else real
            parts = [name for name in Path(target).parts if name != "/"] + parts
        elif os.path.lexists(step):
            real = step
        else:
            break
    raise InputError(
        f"readable: {str(path)!r} does not exist, or is a link to nothing; "
        "name a file or a folder of this machine"
    )


def _below(path, folders):
    return any(path == folder or path.startswith(f"{folder}/") for folder in folders)


def _refuse_cover(place):
    own = ("/proc", "/dev", WORK)
    if place in ("/", "/etc", "/tmp") or _below(place, own):
        raise InputError(
            f"readable: {place!r} cannot be shown inside, where it would cover the sandbox's own "
            f"{place}; name a folder below it that holds only what the command needs"
        )
