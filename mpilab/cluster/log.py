"""The log of a cluster: what its processes, and what runs on the ranks, print."""

import os

TAIL_BYTES = 1 << 16

# What ipyparallel 9.2 logs at every start, of ipykernel 7's greeting and of the missing encryption
# (the sockets are files in a directory that only their owner can enter) or, with encryption, of the
# signatures that it makes needless.
NOISE = ("Monitor message without topic", "Not using CurveZMQ security", "debugpy_stream undefined",
         "Message signing is disabled", "heartbeat::")  # fmt: skip


class Log:
    """A file at `path` that processes write to (give it to subprocess.Popen), and we read."""

    def __init__(self, path):
        self._file = open(path, "w+b", buffering=0)
        self.fileno, self.close = self._file.fileno, self._file.close

    @property
    def size(self):
        """How long it is by now, in bytes."""
        return os.fstat(self.fileno()).st_size

    def since(self, begin):
        """What was printed since it was `begin` bytes long, without noise; of much of it, the
        end."""
        size = self.size
        begin = max(begin, size - TAIL_BYTES)
        lines = os.pread(self.fileno(), size - begin, begin).decode(errors="replace")
        kept = [line for line in lines.splitlines() if not any(noise in line for noise in NOISE)]
        return "\n".join(kept)

    def tail(self, lines=15):
        """The last lines."""
        return "\n".join(self.since(0).splitlines()[-lines:]) or "(empty)"
