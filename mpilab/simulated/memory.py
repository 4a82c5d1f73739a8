"""How much memory a simulation takes, and its end where that is too much."""

import os
import signal
import threading
from pathlib import Path

import psutil

LOOK_S = 0.01


class Memory:
    """Watches the resident memory of a process and all below it; ends its group above `most` bytes.

    peak       the most that was seen, by looks each LOOK_S; each process counts with the most that
               it has had by then, which Linux remembers (VmHWM).
    exceeded   was it ended?
    """

    def __init__(self, pid, most):
        self._top, self.most = psutil.Process(pid), most
        self.peak, self.exceeded = 0, False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self):
        self._look()
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._over.set()
        self._thread.join()

    def _watch(self):
        while not self._over.wait(LOOK_S) and self._look():
            pass

    def _look(self):
        """Is there anything left to look at?"""
        try:
            family = self._top, *self._top.children(recursive=True)
            self.peak = max(self.peak, sum(_resident(one.pid) for one in family))
            if self.peak > self.most:
                self.exceeded = True
                os.killpg(self._top.pid, signal.SIGKILL)
        except (psutil.NoSuchProcess, ProcessLookupError):
            return False  # it has ended
        return not self.exceeded


def _resident(pid):
    """Bytes of the most resident memory that a process has had; 0 where it has just ended."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
        return 0
    except OSError:
        return 0
