"""Run sandboxed jobs of a class, several at a time.

A job is what runs in one sandbox: a student's notebook, or the trial of one answer. Jobs of the
same student do not wait for each other: while a notebook's cluster starts, or a deadlock is not yet
certain, the referee judges other answers.
"""

import fnmatch
import json
import os
import queue
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

from mpilab.grading.sandbox import Outcome, Sandbox, open_sandbox, python_paths
from mpilab.kernels import openmpi
from mpilab.util import faults, kit
from mpilab.util.text import plain

# Where mpilab.util.faults logs inside, below HOME, which is the work directory.
LOGS = f".local/state/mpilab/logs/*{faults.SUFFIX}"
# An answer may write there as well, so only a few logs are kept, and only their beginnings.
MOST_LOGS, MOST_CHARACTERS = 3, 20_000


# Run our own code in the sandbox on a job, and collect the files it leaves.


def run_job(
    sandbox: Sandbox,
    command: Sequence[str],
    job: dict[str, Any],
    *,
    readable: Iterable[str | Path],
    files: Mapping[str, bytes] | None = None,
    **options: Any,
) -> Outcome:
    """Run `command` with this Python and `job` in job.json; returns its Outcome.

    `readable` names what it may read besides Python itself; `files` and `options` are those of
    `Sandbox.run`.
    """
    debugger = find_spec("debugpy")
    return sandbox.run(
        [sys.executable, *command],
        files={"job.json": json.dumps(job).encode(), **(files or {})},
        readable=[*map(str, readable), *python_paths(), *kit.user_site()],
        # If the kit is one of this Python's packages, hide all of it that `readable` does not name;
        # and the debugger, which every notebook's kernel would import.
        hidden=[
            str(kit.ROOT),
            str(kit.PACKAGES / "mpilab"),
            *((debugger and debugger.submodule_search_locations) or ()),
        ],
        **options,
    )


def run_inside(
    sandbox: Sandbox, verb: str, job: dict[str, Any], *, ranks: int, **options: Any
) -> Outcome:
    """Run `verb` of mpilab.grading.inside, with Open MPI set up for `ranks` ranks.

    Unexpected errors of mpilab in the sandbox are logged outside.
    """
    environment = {
        **kit.environment(),
        "PYTHONDONTWRITEBYTECODE": "1",
        "OMPI_MCA_btl_tcp_if_include": "lo",
        faults.TOLD: "1",
        **openmpi.settings(ranks),
        # With some datatypes, ROMIO writes beyond what it was given. A notebook may compare both.
        **({} if verb == "execute" else openmpi.mpi_io("ompio")),
    }
    # -P: no module is taken from the work directory, where an answer may write.
    command = ["-P", "-m", "mpilab.grading.inside", verb]
    options["collect"] = [*options.get("collect", ()), LOGS]
    outcome = run_job(sandbox, command, job, environment=environment, **options)
    logs = sorted(name for name in outcome.files if fnmatch.fnmatch(name, LOGS))
    for name in logs[:MOST_LOGS]:
        text = outcome.files[name].decode(errors="replace")[:MOST_CHARACTERS]
        faults.keep(plain(text), f"{verb} in the sandbox")
    return outcome


class Pool(ThreadPoolExecutor):
    """A thread pool that starts nothing new once its `with` block has failed."""

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.shutdown(cancel_futures=kind is not None)


class Workers:
    """`jobs` sandboxes from mpilab.grading.sandbox.open_sandbox, in slots from `first_slot` up.

    By default, there is one more than there are cores, because jobs are sometimes idle. Within
    `with`, jobs start in the order of submission. Raises SetupError if there is no sandbox.
    """

    def __init__(
        self, jobs: int | None = None, *, first_slot: int = 0, unsafe: bool = False
    ) -> None:
        self.jobs = jobs or len(os.sched_getaffinity(0)) + 1
        self._free: queue.SimpleQueue[Sandbox] = queue.SimpleQueue()
        slots = range(first_slot, first_slot + self.jobs)
        sandboxes = [open_sandbox(unsafe=unsafe, slot=slot) for slot in slots]
        self._sandboxes, self.canceled = sandboxes, False
        for sandbox in sandboxes:
            self._free.put(sandbox)
        self.description = "; ".join(dict.fromkeys(one.description for one in sandboxes))
        self._pool = Pool(self.jobs)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *exception: Any) -> None:
        # After an interrupt, do not wait until the running jobs reach their limits.
        if kind is not None and not issubclass(kind, Exception):
            self.canceled = True
            for sandbox in self._sandboxes:
                sandbox.cancel()
        self._pool.__exit__(kind, *exception)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Submit function(sandbox, *arguments) as a job; returns its Future."""
        return self._pool.submit(self._in_a_sandbox, function, *arguments)

    def _in_a_sandbox(self, function: Callable[..., Any], *arguments: Any) -> Any:
        sandbox = self._free.get()
        try:
            return function(sandbox, *arguments)
        finally:
            self._free.put(sandbox)
