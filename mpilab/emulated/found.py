"""Find clusters of emulated hosts that are up, whoever of the same user brought them up.

There is no list of them that could be wrong: what is up is what has a keeper among the processes.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

from mpilab.emulated import life, state
from mpilab.emulated.hosts import EmulatedHosts
from mpilab.errors import InputError


def attach(name):
    """The EmulatedHosts that `mpilab hosts up` left running, by name or by directory.

    Raises InputError where there is none, or more than one.
    """
    clusters, name = running(), str(name)
    found = [one for one in clusters if name in (one.name, str(one.directory))]
    if len(found) == 1:
        return found[0]
    if found:
        folders = ", ".join(str(one.directory) for one in found)
        raise InputError(f"hosts {name!r}: several are up; name one by its directory: {folders}")
    names = ", ".join(one.name for one in clusters) or "none at all"
    raise InputError(
        f"hosts {name!r}: no such cluster of yours is up ({names}); "
        "bring it up: mpilab hosts up DESCRIPTION"
    )


def running():
    """Every cluster of emulated hosts of this user that is up: list of EmulatedHosts, by name."""
    # Processes of the fabric that became no other program look like their keeper.
    states = filter(None, map(state.read, set(_directories())))
    clusters = [EmulatedHosts.attached(one) for one in states if one.is_up]
    return sorted(clusters, key=lambda one: (one.name, str(one.directory)))


def sweep():
    """Remove directories of clusters whose keeper was killed; returns their paths.

    A keeper holds the lock of its directory as long as it lives.
    """
    removed = []
    folders = {tempfile.gettempdir(), life.base()}
    for directory in (one for name in folders for one in Path(name).glob(f"{state.PREFIX}*")):
        try:
            about = directory.lstat()
            if about.st_uid != os.geteuid() or not stat.S_ISDIR(about.st_mode):
                continue
            with open(directory / "lock", opener=_open_a_file) as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(directory)
                removed.append(directory)
        except OSError:  # it is up, or just being made or removed
            continue
    return removed


def _open_a_file(path, flags):
    """Open it as `open` does, but neither follow a link nor wait for the writer of a FIFO."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _directories():
    """The directories that the keepers among this user's processes keep."""
    user, keeper = os.geteuid(), os.fsencode(life.KEEPER)
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if keeper not in words or os.stat(f"/proc/{name}").st_uid != user:
                continue
        except OSError:  # it has ended meanwhile
            continue
        yield os.fsdecode(words[words.index(keeper) + 1])
