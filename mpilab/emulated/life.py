"""The life of a cluster of emulated hosts: its files, its keeper, its end."""

import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

from mpilab import pids
from mpilab.emulated import links
from mpilab.emulated.capabilities import RELAY
from mpilab.emulated.namespaces import begun_at
from mpilab.emulated.state import PREFIX, State
from mpilab.errors import ClusterError

KEEPER = str(Path(__file__).with_name("keeper.py"))
LET_GO = b"."  # as in keeper.py
BEGIN_S = 120.0  # what the keeper gets to bring a cluster up, on a machine that is busy too
PATIENCE_S = 10.0  # what it gets to end one; it takes some 0.1 s
LOOK_S = 0.01  # between two looks at a process whose end cannot be awaited


def begin(name, description, capabilities, owner):
    """Bring a cluster up: (its State, the Popen of its keeper). It ends with the process `owner`,
    which has to be this one, or with none (0). Raises ClusterError, and leaves nothing."""
    directory = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base()))
    keeper = None
    try:
        _write_files(directory, description, capabilities)
        keeper = _start_keeper(directory, name, owner)
        told = _listen(keeper, name, directory)
        processes = _processes(name, description, keeper, told)
        state = State(name, directory, description, processes, capabilities.latency_by, owner)
        state.write()
        if not owner:
            _let_go(keeper, name)
    except BaseException:
        if keeper is not None:
            end_keeper(keeper.pid)
            release(keeper)
        shutil.rmtree(directory, ignore_errors=True)
        raise
    return state, keeper


def end(state):
    """End a cluster, whoever brought it up; nothing is left. Raises ClusterError where it does not
    go."""
    number, begun = state.processes["keeper"]
    if begun_at(number) == begun:
        end_keeper(number)
    give_up = time.monotonic() + PATIENCE_S
    while state.is_up and time.monotonic() < give_up:  # a keeper that was killed takes it along
        time.sleep(LOOK_S)
    if state.is_up:
        raise ClusterError(
            f"{state.name}: the hosts did not go within {PATIENCE_S:g} s (process {number}, "
            f"{state.directory}). A process of theirs hangs in the operating system (a network "
            "drive?)"
        )
    shutil.rmtree(state.directory, ignore_errors=True)  # where the keeper was killed


def end_keeper(number):
    """Ask a keeper to end its cluster, and wait until it has; SIGKILL after PATIENCE_S."""
    try:
        process = os.pidfd_open(number)
    except ProcessLookupError:
        return
    except (OSError, AttributeError):  # a kernel before 5.3, or a Python that was built on one
        return _end_by_number(number)
    try:
        for name in signal.SIGTERM, signal.SIGKILL:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                signal.pidfd_send_signal(process, name)
            if select.select([process], [], [], PATIENCE_S)[0]:
                return
    finally:
        os.close(process)


def _end_by_number(number):
    """The same without a file that stands for the process."""
    begun = begun_at(number)
    for name in signal.SIGTERM, signal.SIGKILL:
        give_up = time.monotonic() + PATIENCE_S
        if begun is None or begun_at(number) != begun:
            return
        with contextlib.suppress(ProcessLookupError):  # it has just ended
            os.kill(number, name)
        while begun_at(number) == begun and time.monotonic() < give_up:
            time.sleep(LOOK_S)


def release(keeper):
    """Take leave of a keeper (Popen) that has ended, or is about to."""
    keeper.stdin.close()
    keeper.stdout.close()
    keeper.wait()


def base():
    """Where the directory goes: Open MPI splits the agent's path at blanks, and what is under
    /dev/shm is each host's own."""
    base = tempfile.gettempdir()
    is_shared = not Path(base).resolve().is_relative_to("/dev/shm")
    return base if is_shared and not re.search(r"[\s:,;]", base) else "/tmp"


def _write_files(directory, description, capabilities):
    """What the keeper and mpirun read."""
    (directory / "tmp").mkdir()
    groups = list(description.groups)
    plan = {
        "hosts": [
            {"name": host.name, "group": groups.index(host.group), "address": links.address(number)}
            for number, host in enumerate(description.hosts)
        ],
        "groups": len(groups),
        "host_link": asdict(description.host_link),
        "group_link": asdict(description.group_link),
        "latency_by": capabilities.latency_by,
        "namespaces": capabilities.namespaces,
        "tools": capabilities.tools | {"relay": str(RELAY)},
    }
    (directory / "plan.json").write_text(json.dumps(plan), encoding="utf-8")
    lines = [f"{host.name} slots={host.slots or 1}\n" for host in description.hosts]
    (directory / "hostfile").write_text("".join(lines), encoding="ascii")


def _start_keeper(directory, name, owner):
    new = directory / "lock.new"
    with open(new, "w") as lock, open(directory / "log", "w") as log:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the keeper's from here on, as long as it lives
        os.rename(new, directory / "lock")  # who finds it (found.sweep) finds it locked
        return subprocess.Popen(
            [sys.executable, "-I", "-S", KEEPER, str(directory), name, str(owner)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            pass_fds=[lock.fileno()],
            start_new_session=True,  # ^C is not for it
            env={"PATH": os.defpath},
            cwd="/",
        )


def _listen(keeper, name, directory):
    """What the keeper tells once the hosts are up (keeper.py). Raises ClusterError."""
    # Opened before the keeper removes it.
    with open(directory / "log", encoding="utf-8", errors="replace") as log:
        if select.select([keeper.stdout], [], [], BEGIN_S)[0]:
            line = keeper.stdout.readline()
            told = json.loads(line) if line else {"error": "their keeper ended"}
        else:
            told = {"error": f"their keeper said nothing within {BEGIN_S:g} s"}
        if "error" in told:
            said = " ".join(f"{told['error']} {log.read()}".split())[:1000]
            raise ClusterError(
                f"{name}: the hosts did not come up: {said}. "
                "'mpilab doctor' tells what this machine can do"
            )
    return told


def _let_go(keeper, name):
    """Have the keeper keep the cluster when we end. Raises ClusterError."""
    try:
        os.write(keeper.stdin.fileno(), LET_GO)
    except BrokenPipeError:
        raise _ended_at_once(name) from None


def _processes(name, description, keeper, told):
    """State.processes. Raises ClusterError where one of them has ended already."""
    numbers = {"keeper": keeper.pid, "fabric": told["fabric"]}
    of = pids.namespace(told["fabric"])
    for host, inside in zip(description.hosts, told["hosts"], strict=True):
        numbers[f"host {host.name}"] = pids.outside(inside, of)
    found = {what: (number, begun_at(number)) for what, number in numbers.items()}
    if any(begun is None for _, begun in found.values()):
        raise _ended_at_once(name)
    return found


def _ended_at_once(name):
    return ClusterError(
        f"{name}: the hosts ended as soon as they were up: something has killed one of their "
        "processes (too little memory?). Try again"
    )
