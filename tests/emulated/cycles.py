"""Bring hosts up, run, crash, take them down, repeatedly, and report what is left: a program for
its test.

    python cycles.py NUMBER LIBRARY

It uses a separate mount namespace and /dev/shm, so that nothing else on the machine can be mistaken
for a leftover, and becomes the parent of all its orphans. Prints JSON.
"""

import ctypes
import json
import os
import sys

import psutil
from small_clusters import Traces, await_end, described

from mpilab.cases.case import Case
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import ERROR, TIME_OUT
from mpilab.util import namespaces

PR_SET_CHILD_SUBREAPER = 36
KINDS = ("place", "crashes", "crossed", "leaves")


def isolate():
    """Mounts of our own, an empty /dev/shm; orphans of ours become our children."""
    if os.geteuid() != 0:
        namespaces.become_root_of_a_user_namespace()
    namespaces.unshare(["mnt"])
    namespaces.mount(None, "/", None, namespaces.MS_REC | namespaces.MS_SLAVE)
    namespaces.mount("tmpfs", "/dev/shm", "tmpfs")
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def cycle(number, library):
    """One cluster, one run on it that succeeds or fails, and its end; returns the outcome."""
    description = described({"a": 1, "b": 1}, rate=1e9, uplink=2e8)
    hosts = EmulatedHosts(description).up()
    traces = Traces(hosts)
    kind = KINDS[number % len(KINDS)]
    (result,) = run_cases(
        library, f"allgather_{kind}", [Case("allgather", 4, 1)], hosts=hosts, limit=100.0
    )
    if number % 3 == 2:
        # Killed from within, not taken down.
        os.kill(traces.root, 9)
        await_end(traces.supervisor)
    hosts.down()
    words = f" ({result.detail} {result.log})" if result.outcome in (ERROR, TIME_OUT) else ""
    return f"{kind}: {result.outcome}{words}", traces.left()


def seen():
    """What a cycle could leave behind in this process and on its machine."""
    with open("/proc/self/mountinfo") as file:
        mounts = file.read().splitlines()
    return {
        "mounts": [line for line in mounts if os.environ["TMPDIR"] in line],
        "shared memory": os.listdir("/dev/shm"),
        "files": os.listdir(os.environ["TMPDIR"]),
        "processes": [child.name() for child in psutil.Process().children(recursive=True)],
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def main(number, library):
    isolate()
    cycle(0, library)  # opens what stays open from now on
    before, outcomes, left = seen(), {}, []
    for i in range(number):
        outcome, traces = cycle(i, library)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
        left += traces
    print(json.dumps({"outcomes": outcomes, "left": left, "before": before, "after": seen()}))


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
