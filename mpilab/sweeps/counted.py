"""What was sent from whom to whom: matrices of messages and bytes, as counted or as expected."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mpilab.errors import InputError


@dataclass(frozen=True, eq=False)
class Counted:
    """messages[s, d] and bytes[s, d], int64 matrices [P, P]: from rank s to rank d."""

    messages: np.ndarray
    bytes: np.ndarray

    def __eq__(self, other):
        if not isinstance(other, Counted):
            return NotImplemented
        return np.array_equal(self.messages, other.messages) and np.array_equal(
            self.bytes, other.bytes
        )

    __hash__ = None

    def __add__(self, other):
        return Counted(self.messages + other.messages, self.bytes + other.bytes)

    def describe(self):
        """'6 messages, 6000 bytes: 0→1 2×, 1→2 4×' (the pairs of ranks that sent most first)."""
        pairs = sorted(
            zip(*np.nonzero(self.messages), strict=True), key=lambda pair: -self.messages[pair]
        )
        shown = ", ".join(f"{s}→{d} {self.messages[s, d]}×" for s, d in pairs[:6])
        if len(pairs) > 6:
            shown += f" and {len(pairs) - 6} pairs more"
        return f"{self.messages.sum()} messages, {self.bytes.sum()} bytes" + (
            f": {shown}" if shown else ""
        )


def from_messages(ranks, messages, element_bytes):
    """Counted of `messages`: an iterable of (source, destination, elements)."""
    counted = Counted(np.zeros((ranks, ranks), np.int64), np.zeros((ranks, ranks), np.int64))
    for source, destination, elements in messages:
        counted.messages[source, destination] += 1
        counted.bytes[source, destination] += elements * element_bytes
    return counted


def read(directory, number, ranks):
    """Counted of monitored case `number`, kept by `mpilab.launch.run_cases(keep=directory)`.

    Raises InputError where a rank's file is missing or not whole.
    """
    counted = from_messages(ranks, (), 1)
    for rank in range(ranks):
        path = Path(directory) / f"{number}.{rank}.mon"
        data = path.read_bytes() if path.exists() else b""
        words = np.frombuffer(data[: len(data) // 8 * 8], np.int64)
        if data[:8] != b"MPILABM1" or len(words) != 4 + 2 * ranks or words[1] != rank:
            raise InputError(f"{path}: not a whole count of messages; run the case again")
        counted.messages[rank] = words[4 : 4 + ranks]
        counted.bytes[rank] = words[4 + ranks :]
    return counted
