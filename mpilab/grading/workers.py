"""Sandboxes in which parts of the work on a class are done, so many at a time.

A part is what runs in one sandbox: a student's notebook, or the trial of one answer. No part waits
for another of the same student: while the cluster of a notebook comes up, or a deadlock has yet to
be certain, the referee is at work on other answers.
"""

import os
import queue
from concurrent.futures import ThreadPoolExecutor

from mpilab.grading.sandbox import open_sandbox


class Pool(ThreadPoolExecutor):
    """Threads of which none begins anything new once the block that they work for has failed."""

    def __exit__(self, kind, *_):
        self.shutdown(cancel_futures=kind is not None)


class Workers:
    """`jobs` sandboxes (of one more than there are cores, by default: a part is idle now and then),
    in slots from `first_slot` on, as mpilab.grading.sandbox.open_sandbox opens them.

    Within `with`, parts are begun in the order of being submitted. Raises SetupError where there is
    no sandbox.
    """

    def __init__(self, jobs=None, *, first_slot=0, unsafe=False):
        self.jobs = jobs or len(os.sched_getaffinity(0)) + 1
        self._free = queue.SimpleQueue()
        slots = range(first_slot, first_slot + self.jobs)
        sandboxes = [open_sandbox(unsafe=unsafe, slot=slot) for slot in slots]
        for sandbox in sandboxes:
            self._free.put(sandbox)
        self.description = "; ".join(dict.fromkeys(one.description for one in sandboxes))
        self._pool = Pool(self.jobs)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self._pool.__exit__(*exception)

    def submit(self, function, *arguments):
        """The Future of function(sandbox, *arguments)."""
        return self._pool.submit(self._in_a_sandbox, function, *arguments)

    def _in_a_sandbox(self, function, *arguments):
        sandbox = self._free.get()
        try:
            return function(sandbox, *arguments)
        finally:
            self._free.put(sandbox)
