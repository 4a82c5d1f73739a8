"""mpirun as in a terminal, where its ranks are, and where it would place them.

    print(mpirun("-n 4 --hostfile localhost.txt python -m mpilab.hosts.mapping"))
    mapped("two-groups.txt", 8, "node")

The module is also a program: under mpirun, each rank prints where it is.
"""

import ctypes
import os
import re
import shlex
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpilab.errors import ClusterError, InputError
from mpilab.hosts.hostfile import POLICIES, find
from mpilab.kernels import openmpi
from mpilab.util import door
from mpilab.util.processes import Said, run
from mpilab.util.text import ranges

# Settings of the kit's own runs, absent in a user's terminal: they allow more ranks than slots and
# disable binding.
_OF_THE_KIT = ("PRTE_MCA_rmaps_default_mapping_policy", "PRTE_MCA_hwloc_default_binding_policy")
_NODE = re.compile(r"Data for node: (\S+)")
_RANK = re.compile(r"Data for proc: \[[^]]*,(\d+)\]")


@dataclass(frozen=True)
class Here:
    """Where a process is: its rank (None outside mpirun), its host, and the cores it may run on.

    core   the core at the time of the query; None if the system does not report it.
    """

    rank: int | None
    ranks: int | None
    host: str
    cores: tuple[int, ...]
    core: int | None

    def __str__(self) -> str:
        who = "no rank" if self.rank is None else f"rank {self.rank} of {self.ranks}"
        bound = f"core{'s' * (len(self.cores) != 1)} {ranges(self.cores)}"
        now = "" if self.core is None else f", now on {self.core}"
        return f"{who}: host {self.host}, may use {bound}{now}"


def here() -> Here:
    """Where this process is (Here), with Linux core numbers."""
    rank, ranks = (os.environ.get(f"OMPI_COMM_WORLD_{what}") for what in ("RANK", "SIZE"))
    allowed = getattr(os, "sched_getaffinity", None)
    current = getattr(ctypes.CDLL(None), "sched_getcpu", None)
    return Here(
        None if rank is None else int(rank),
        None if ranks is None else int(ranks),
        socket.gethostname(),
        tuple(sorted(allowed(0)) if allowed else range(os.cpu_count() or 1)),
        None if current is None else current(),
    )


def mpirun(line: str, *, timeout: float = 30.0) -> str:
    """What `mpirun LINE` prints in a terminal: text, with the exit status unless it is 0.

    line      options and program as typed, e.g. "-n 2 --bind-to core hostname"; a program called
              python is this Python, and the kit's hostfiles can be given by bare name.
    timeout   seconds, after which ClusterError is raised.

    Not for timing: the settings of the kit's own runs, such as room for more ranks than slots, do
    not apply.
    """
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise InputError(f"mpirun {line}: {error}; close the quotation marks") from None
    for place, word in enumerate(words[:-1]):
        if word in ("--hostfile", "--machinefile"):
            words[place + 1] = str(find(words[place + 1]))
    said = _said(words, timeout)
    text = said.stdout.replace("\0", "").rstrip()
    if said.code == 0:
        return text
    return f"{text}\n(exit status {said.code})".lstrip()


def mapped(
    hostfile: Path | str, ranks: int, policy: str = "slot", *, timeout: float = 30.0
) -> list[str]:
    """The host of each rank according to Open MPI: list of names. Nothing is started.

    hostfile   path of a hostfile, or bare name of one of the kit's; its hosts need not exist.
    policy     "slot", "node" or "seq", as in mpilab.hosts.hostfile.

    Open MPI strips domains and uses the local machine's own name, also for "localhost". Raises
    InputError with Open MPI's message if it refuses.
    """
    if policy not in POLICIES:
        raise InputError(f"policy={policy!r}: use one of {', '.join(POLICIES)}")
    hostfile = find(hostfile)
    if not hostfile.is_file():
        raise InputError(f"{hostfile}: no such hostfile; check the path")
    words = [
        "--hostfile",
        str(hostfile),
        "-n",
        str(ranks),
        "--map-by",
        policy,
        "--display",
        "map",
        "--do-not-launch",
        "hostname",
    ]
    said = _said(words, timeout)
    host, found = "", {}
    for at in said.stdout.splitlines():
        if named := _NODE.search(at):
            host = named[1]
        elif ranked := _RANK.search(at):
            found[int(ranked[1])] = host
    if sorted(found) != list(range(ranks)):
        raise InputError(
            f"{hostfile}: Open MPI rejects {ranks} ranks with --map-by {policy}:\n"
            f"{said.stdout.strip()[:1500] or 'nothing'}"
        )
    return [found[rank] for rank in range(ranks)]


def _said(words: Sequence[str], timeout: float) -> Said:
    """The Said of mpirun, with all its output in `stdout`."""
    words = [sys.executable if word == "python" else word for word in words]
    environment = {**openmpi.ROOT, **openmpi.TRANSPORTS, **openmpi.QUIET, **os.environ}
    for name in _OF_THE_KIT:
        environment.pop(name, None)
    said = run([openmpi.tool("mpirun"), *words], timeout, environment=environment, merged=True)
    if said.code is None:
        raise ClusterError(
            f"mpirun {shlex.join(words)}: not finished after {timeout:g} s. Does the program wait "
            f"for something? Its output: {said.stdout.strip()[-500:] or 'nothing'}"
        )
    return said


if __name__ == "__main__":
    sys.exit(door.run("mpilab.hosts.mapping", lambda: print(here())))
