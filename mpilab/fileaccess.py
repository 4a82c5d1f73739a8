"""What a kernel makes the operating system do with the file that it reads, below MPI.

A call of MPI-IO is one request to MPI; what OMPIO or ROMIO make of it, by data sieving or in two
phases, is another matter. The harness (src_c/harness/requests.c) stands between MPI and the C
library and notes each request that really reaches the operating system; beside it, what the system
counts by itself (/proc/self/io), the high-water mark of the memory, and how much of the file was in
the page cache before the call. Cases ask for it by `requests` and `cold` (mpilab.harness.Case); it
is `access` of a mpilab.result.Result.

Layouts are those of src_c/harness/access.h.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from mpilab.errors import InputError
from mpilab.recording import NONE

MAGIC = b"MPILABI2"
NOT_ASKED, UNSEEN, SEEN = -1, 0, 1
HEADER = np.dtype([
    ("magic", "S8"), ("header_bytes", "i4"), ("call_bytes", "i4"), ("record_bytes", "i4"),
    ("rank", "i4"), ("seen", "i4"), ("calls", "i4"), ("capacity", "i8"), ("count", "i8"),
    ("dropped", "i8"), ("filesystem", "i8"), ("file_bytes", "i8"),
])  # fmt: skip
# One call of the kernel on one rank; NONE stands for what this system does not tell.
CALL = np.dtype([
    ("requests", "i8"), ("bytes", "i8"), ("got_bytes", "i8"), ("largest", "i8"), ("rchar", "i8"),
    ("syscr", "i8"), ("read_bytes", "i8"), ("memory_before", "i8"), ("memory_peak", "i8"),
    ("resident_before", "i8"), ("begin_ns", "i8"), ("end_ns", "i8"),
])  # fmt: skip
_RECORD = np.dtype([
    ("offset", "i8"), ("bytes", "i8"), ("got_bytes", "i8"), ("begin_ns", "i8"), ("end_ns", "i8"),
    ("kind", "S16"), ("call", "i4"), ("pieces", "i4"),
])  # fmt: skip
# One request, with the names of mpilab.recording.REQUEST where it means the same.
REQUEST = np.dtype([
    ("rank", "i4"), ("call", "i4"), ("kind", "U16"), ("pieces", "i4"), ("is_write", "?"),
    ("offset", "i8"), ("bytes", "i8"), ("got_bytes", "i8"), ("begin_ns", "i8"), ("end_ns", "i8"),
])  # fmt: skip
# Magic numbers of statfs(2).
FILESYSTEMS = {
    0x01021994: "tmpfs", 0xEF53: "ext4", 0x6969: "NFS", 0x58465342: "XFS", 0x9123683E: "Btrfs",
    0x794C7630: "overlay", 0x0BD00BD0: "Lustre", 0x2FC12FC1: "ZFS", 0x47504653: "GPFS",
    0x01021997: "9P", 0x65735546: "FUSE",
}  # fmt: skip


class NotWhole(InputError):
    """The evidence of a rank that came to its end too early to write all of it."""


@dataclass(frozen=True)
class RankAccess:
    """What one rank did to the file: its header, its calls (CALL), its requests (REQUEST)."""

    header: np.void
    calls: np.ndarray
    requests: np.ndarray

    @classmethod
    def read(cls, path):
        """Read a file of the harness; NotWhole if it is not a whole one, InputError if another
        version of the harness has written it."""
        path = Path(path)
        with open(path, "rb") as file:
            header = np.fromfile(file, HEADER, 1)
            if len(header) != 1 or header[0]["magic"] != MAGIC:  # which is written last
                raise NotWhole(f"{path}: no evidence of file access; run the case again")
            header = header[0]
            sizes = [int(header[f"{part}_bytes"]) for part in ("header", "call", "record")]
            if sizes != [HEADER.itemsize, CALL.itemsize, _RECORD.itemsize]:
                raise InputError(f"{path}: written by another version of the harness; build again")
            calls = np.fromfile(file, CALL, int(header["calls"]))
            records = np.fromfile(file, _RECORD, int(header["count"]))
        if (len(calls), len(records)) != (header["calls"], header["count"]):
            raise NotWhole(f"{path}: its end is missing; run the case again")
        requests = np.zeros(len(records), REQUEST)
        for name in _RECORD.names:
            requests[name] = records[name]
        requests["rank"] = header["rank"]
        requests["is_write"] = np.char.find(requests["kind"], "write") >= 0
        return cls(header, calls, requests)


@dataclass(frozen=True)
class FileAccess:
    """All ranks of one run: RankAccess of each.

    Calls are counted from 0; -1 is the last one, which is what the methods tell of by default.
    """

    ranks: list

    @property
    def seen(self):
        """Were requests below MPI noted? If not, they are unknown, and not none."""
        return all(rank.header["seen"] == SEEN for rank in self.ranks)

    @property
    def why_unseen(self):
        """Why requests below MPI are unknown, in words; '' if they are known."""
        if self.seen:
            return ""
        if any(rank.header["seen"] == NOT_ASKED for rank in self.ranks):
            return "the case did not ask for requests"
        return (
            "requests below MPI can be seen where mpirun starts the kernel on Linux only, not in "
            "the engines of a notebook; 'mpilab reads' shows them"
        )

    @property
    def calls(self):
        """What is known of each call on each rank: CALL [P, calls]."""
        return np.stack([rank.calls for rank in self.ranks])

    @cached_property
    def requests(self):
        """All requests, as REQUEST: sorted by rank, then in the order of being made.

        offset is a byte of the file, bytes what was asked for, got_bytes what came (NONE where it
        failed), end_ns is 0 where nobody has asked for the end of one in the background. kind is
        the function of the C library; pieces are those in memory. Raises InputError
        where requests are unknown.
        """
        self._need_seen()
        return np.concatenate([rank.requests for rank in self.ranks])

    @property
    def dropped(self):
        """Requests that did not fit into the files: they are counted in `calls`, and no more."""
        return sum(int(rank.header["dropped"]) for rank in self.ranks)

    def counts(self, call=-1):
        """(requests, bytes asked for, bytes of the largest) of each rank in one call: three int64
        [P]; InputError where they are unknown."""
        self._need_seen()
        entry = self.calls[:, call]
        return entry["requests"], entry["bytes"], entry["largest"]

    def memory(self, call=-1):
        """Bytes that each rank held at most during a call beyond what it held before: int64 [P].

        None where the system does not let the high-water mark be reset. Linux counts resident pages
        by the dozen on each core (since 6.2): take it as exact to some hundred KiB.
        """
        entry = self.calls[:, call]
        if (entry["memory_peak"] == NONE).any() or (entry["memory_before"] == NONE).any():
            return None
        return np.maximum(entry["memory_peak"] - entry["memory_before"], 0)

    def resident_share(self, call=-1):
        """How much of the file was in the page cache before a call, on the rank where it was most:
        from 0 (cold) to 1; None where the system does not tell."""
        resident = self.calls[:, call]["resident_before"]
        size = int(self.ranks[0].header["file_bytes"])
        return None if (resident == NONE).any() else float(resident.max() / max(size, 1))

    @property
    def filesystem(self):
        """The file system of the file: 'tmpfs', 'ext4', or the number that statfs(2) gives."""
        number = int(self.ranks[0].header["filesystem"])
        return "unknown" if number == NONE else FILESYSTEMS.get(number, f"{number:#x}")

    def cache(self, call=-1):
        """What the page cache held before a call, in words."""
        share = self.resident_share(call)
        if share is None:
            return "unknown how much of the file was in the page cache"
        if share == 0:
            return "cold: nothing of the file was in the page cache"
        words = f"{share:.0%} of the file was in the page cache"
        if self.filesystem == "tmpfs":
            words += ", where a tmpfs keeps its files; TMPDIR on a disk makes cold reads possible"
        return words

    def _need_seen(self):
        if not self.seen:
            raise InputError(f"requests below MPI are unknown: {self.why_unseen}")


def load(directory, number, case):
    """The FileAccess of case `number`; None if it asked for none, or a rank left none that is
    whole. Raises InputError where another version of the harness has written it."""
    if not (case.requests or case.cold):
        return None
    paths = [Path(directory) / f"{number}.{rank}.io" for rank in range(case.ranks)]
    try:
        return FileAccess([RankAccess.read(path) for path in paths])
    except (FileNotFoundError, NotWhole):
        return None
