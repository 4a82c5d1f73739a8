"""File access below MPI: the requests of a kernel that reach the operating system.

An MPI-IO call is one request to MPI, which OMPIO or ROMIO may turn into others, by data sieving or
two-phase reads. The harness (src_c/runtime/harness/requests.c) is interposed between MPI and the C
library and records each request that reaches the operating system. It also records the system's own
counters (/proc/self/io), the high-water mark of memory, and how much of the file was in the page
cache before the call. Cases turn this on with `requests` and `cold` (mpilab.cases.case.Case); the
data is `access` of a mpilab.runners.result.Result.

The layouts are those of src_c/runtime/harness/access.h.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.trace.recording import NONE

MAGIC = b"MPILABI2"
NOT_ASKED, UNSEEN, SEEN = -1, 0, 1
HEADER = np.dtype(
    [
        ("magic", "S8"),
        ("header_bytes", "i4"),
        ("call_bytes", "i4"),
        ("record_bytes", "i4"),
        ("rank", "i4"),
        ("seen", "i4"),
        ("calls", "i4"),
        ("capacity", "i8"),
        ("count", "i8"),
        ("dropped", "i8"),
        ("filesystem", "i8"),
        ("file_bytes", "i8"),
    ]
)
# One call of the kernel on one rank; NONE is a value that this system does not provide.
CALL = np.dtype(
    [
        ("requests", "i8"),
        ("bytes", "i8"),
        ("got_bytes", "i8"),
        ("largest", "i8"),
        ("rchar", "i8"),
        ("syscr", "i8"),
        ("read_bytes", "i8"),
        ("memory_before", "i8"),
        ("memory_peak", "i8"),
        ("resident_before", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
    ]
)
_RECORD = np.dtype(
    [
        ("offset", "i8"),
        ("bytes", "i8"),
        ("got_bytes", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
        ("kind", "S16"),
        ("call", "i4"),
        ("pieces", "i4"),
    ]
)
# One request; fields with the same meaning are named as in mpilab.trace.recording.REQUEST.
REQUEST = np.dtype(
    [
        ("rank", "i4"),
        ("call", "i4"),
        ("kind", "U16"),
        ("pieces", "i4"),
        ("is_write", "?"),
        ("offset", "i8"),
        ("bytes", "i8"),
        ("got_bytes", "i8"),
        ("begin_ns", "i8"),
        ("end_ns", "i8"),
    ]
)
# Magic numbers of statfs(2).
FILESYSTEMS = {
    0x01021994: "tmpfs",
    0xEF53: "ext4",
    0x6969: "NFS",
    0x58465342: "XFS",
    0x9123683E: "Btrfs",
    0x794C7630: "overlay",
    0x0BD00BD0: "Lustre",
    0x2FC12FC1: "ZFS",
    0x47504653: "GPFS",
    0x01021997: "9P",
    0x65735546: "FUSE",
}


class NotWhole(InputError):
    """The file of a rank that ended too early to write all of it."""


@dataclass(frozen=True)
class RankAccess:
    """The file access of one rank: header, calls (CALL) and requests (REQUEST)."""

    header: np.void
    calls: NDArray[np.void]
    requests: NDArray[np.void]

    @classmethod
    def read(cls, path: str | Path) -> "RankAccess":
        """Read a file of the harness.

        Raises NotWhole if it is incomplete, InputError if another version of the harness wrote it.
        """
        path = Path(path)
        with open(path, "rb") as file:
            header = np.fromfile(file, HEADER, 1)
            if len(header) != 1 or header[0]["magic"] != MAGIC:  # written last
                raise NotWhole(f"{path}: no evidence of file access; run the case again")
            header = header[0]
            sizes = [int(header[f"{part}_bytes"]) for part in ("header", "call", "record")]
            if sizes != [HEADER.itemsize, CALL.itemsize, _RECORD.itemsize]:
                raise InputError(f"{path}: written by another version of the harness; build again")
            calls = np.fromfile(file, CALL, int(header["calls"]))
            records = np.fromfile(file, _RECORD, int(header["count"]))
        if (len(calls), len(records)) != (header["calls"], header["count"]):
            raise NotWhole(f"{path}: the end is missing; run the case again")
        requests = np.zeros(len(records), REQUEST)
        for name in _RECORD.fields or ():
            requests[name] = records[name]
        requests["rank"] = header["rank"]
        requests["is_write"] = np.char.find(requests["kind"], "write") >= 0
        return cls(header, calls, requests)


@dataclass(frozen=True)
class FileAccess:
    """The file access of one run: a RankAccess for each rank.

    Calls are numbered from 0; -1, the default of the methods, is the last.
    """

    ranks: list[RankAccess]

    @property
    def seen(self) -> bool:
        """Were requests below MPI recorded? If not, their number is unknown, not zero."""
        return all(rank.header["seen"] == SEEN for rank in self.ranks)

    @property
    def why_unseen(self) -> str:
        """Why requests below MPI are unknown, in words; '' if they are known."""
        if self.seen:
            return ""
        if any(rank.header["seen"] == NOT_ASKED for rank in self.ranks):
            return "the case did not ask for requests"
        return (
            "requests below MPI can be seen only if mpirun starts the kernel on Linux, not in the "
            "engines of a notebook; 'mpilab reads' shows them"
        )

    @property
    def calls(self) -> NDArray[np.void]:
        """The data of each call on each rank: CALL [P, calls]."""
        return np.stack([rank.calls for rank in self.ranks])

    @cached_property
    def requests(self) -> NDArray[np.void]:
        """All requests, as REQUEST records, sorted by rank, then by order of issue.

        offset is the position in the file. bytes is the amount requested, got_bytes the amount
        transferred (NONE if the request failed). end_ns is 0 if nothing asked for the completion of
        an asynchronous request. kind is the function of the C library; pieces is the number of
        memory segments. Raises InputError if requests are unknown.
        """
        self._need_seen()
        return np.concatenate([rank.requests for rank in self.ranks])

    @property
    def dropped(self) -> int:
        """The number of requests that did not fit into the files; only `calls` counts them."""
        return sum(int(rank.header["dropped"]) for rank in self.ranks)

    def counts(
        self, call: int = -1
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """(requests, their bytes, bytes of the largest) of each rank in one call: three int64 [P].

        Raises InputError if requests are unknown.
        """
        self._need_seen()
        entry = self.calls[:, call]
        return entry["requests"], entry["bytes"], entry["largest"]

    def memory(self, call: int = -1) -> NDArray[np.int64] | None:
        """Peak memory of each rank during a call beyond what it held before, in bytes: int64 [P].

        None if the system cannot reset the high-water mark. Since 6.2, Linux counts resident pages
        in batches of dozens on each core, so values are exact to a few hundred KiB.
        """
        entry = self.calls[:, call]
        if (entry["memory_peak"] == NONE).any() or (entry["memory_before"] == NONE).any():
            return None
        return np.maximum(entry["memory_peak"] - entry["memory_before"], 0)

    def resident_share(self, call: int = -1) -> float | None:
        """The share of the file in the page cache before a call: 0 (cold) to 1; None if unknown.

        It is the largest value of any rank.
        """
        resident = self.calls[:, call]["resident_before"]
        size = int(self.ranks[0].header["file_bytes"])
        return None if (resident == NONE).any() else float(resident.max() / max(size, 1))

    @property
    def filesystem(self) -> str:
        """The file system of the file: 'tmpfs', 'ext4', …, statfs(2)'s number, or 'unknown'."""
        number = int(self.ranks[0].header["filesystem"])
        return "unknown" if number == NONE else FILESYSTEMS.get(number, f"{number:#x}")

    def cache(self, call: int = -1) -> str:
        """What the page cache held before a call, in words."""
        share = self.resident_share(call)
        if share is None:
            return "unknown how much of the file was in the page cache"
        if share == 0:
            return "cold: no part of the file was in the page cache"
        words = f"{share:.0%} of the file was in the page cache"
        if self.filesystem == "tmpfs":
            words += (
                ", which always holds the files of a tmpfs; set TMPDIR to a disk for cold reads"
            )
        return words

    def _need_seen(self) -> None:
        if not self.seen:
            raise InputError(f"requests below MPI are unknown: {self.why_unseen}")


def load(directory: str | Path, number: int, case: Case) -> FileAccess | None:
    """The FileAccess of case `number`; None if not requested, or a file is missing or incomplete.

    Raises InputError if another version of the harness wrote it.
    """
    if not (case.requests or case.cold):
        return None
    paths = [Path(directory) / f"{number}.{rank}.io" for rank in range(case.ranks)]
    try:
        return FileAccess([RankAccess.read(path) for path in paths])
    except (FileNotFoundError, NotWhole):
        return None
