"""Cost models of file requests: on one disk, and on a parallel file system.

On a laptop, the page cache makes reading nearly free, whatever the requests. These models estimate
the time that the same requests take if the data must come from storage. Both charge α per request
and β per byte, as Thakur, Gropp, Lusk, "Data sieving and collective I/O in ROMIO" (Frontiers '99)
do to compare many small requests with few large ones.

Requests are arrays of the same length: `ranks` (which make them), `offsets` and `sizes` (bytes of
the file). A rank has one request in flight at a time, in the order of the arrays.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.errors import InputError

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Disk:
    """One disk with one head, which serves the requests of all ranks one after another.

    alpha       seconds to reach the position of a request: seek and half a rotation.
    beta        seconds per byte.
    alpha_next  seconds for a request that begins where the previous one ended: the head is there.

    Source: Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3),
    1994), whose model has a cache and seek times that depend on the distance; ours has no cache,
    and one seek time for all distances.
    """

    alpha: float
    beta: float
    alpha_next: float = 0.0

    def time(self, ranks: ArrayLike, offsets: ArrayLike, sizes: ArrayLike) -> float:
        """Seconds for all requests.

        They are served in turns: the first of each rank, by rank, then the second of each, and so
        on, as if each rank waited for one request before the next.
        """
        ranks, offsets, sizes = _checked(ranks, offsets, sizes)
        order = np.lexsort((ranks, _turns(ranks)))
        begins, ends = offsets[order], (offsets + sizes)[order]
        follows = np.zeros(len(order), bool)
        follows[1:] = begins[1:] == ends[:-1]
        waits = np.where(follows, self.alpha_next, self.alpha)
        return float(waits.sum() + self.beta * sizes.sum())


@dataclass(frozen=True)
class ParallelFileSystem:
    """A file in stripes on several servers; each server handles one request at a time.

    alpha    seconds that a rank waits for a request, whatever its size: network and software. Ranks
             wait at the same time.
    beta     seconds per byte, of one server.
    servers  number of servers with the file.
    stripe   bytes; byte b is on server (b div stripe) mod servers.
    alpha_server   seconds that a server is busy with its part of a request, whatever its size.
    """

    alpha: float
    beta: float
    servers: int
    stripe: int
    alpha_server: float = 0.0

    def __post_init__(self) -> None:
        for name in ("servers", "stripe"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: must be 1 or more")

    def time(self, ranks: ArrayLike, offsets: ArrayLike, sizes: ArrayLike) -> float:
        """Seconds for all requests: the larger of two lower bounds for any schedule.

        These are the time that the busiest server is busy, and the longest time that one rank's
        requests take in sequence.
        """
        ranks, offsets, sizes = _checked(ranks, offsets, sizes)
        if not len(ranks):
            return 0.0
        volume = self.on_servers(offsets, sizes)
        busy = self.alpha_server * (volume > 0) + self.beta * volume
        chains = np.bincount(ranks, self.alpha + busy.max(axis=1))
        return float(max(busy.sum(axis=0).max(), chains.max()))

    def on_servers(self, offsets: ArrayLike, sizes: ArrayLike) -> Whole:
        """Bytes of each request on each server: int64 [requests, servers]."""
        offsets, sizes = np.asarray(offsets, np.int64), np.asarray(sizes, np.int64)
        return self._before(offsets + sizes) - self._before(offsets)

    def _before(self, ends: Whole) -> Whole:
        """Bytes on each server before each of these file offsets: int64 [len(ends), servers]."""
        turn = self.stripe * self.servers
        whole, rest = np.divmod(ends[:, None], turn)
        begins = self.stripe * np.arange(self.servers)
        return whole * self.stripe + np.clip(rest - begins, 0, self.stripe)


# Examples with typical orders of magnitude, not measured on any particular hardware.
STORAGE: dict[str, Disk | ParallelFileSystem] = {
    # A 7200 rpm hard disk: 8 ms for seek and half a rotation, 150 MB/s.
    "hard disk": Disk(alpha=8e-3, beta=1 / 150e6, alpha_next=5e-5),
    # A solid-state disk with flash chips on parallel channels: 8 of 400 MB/s each.
    "solid-state disk": ParallelFileSystem(alpha=8e-5, beta=1 / 400e6, servers=8, stripe=1 << 16),
    # Four storage targets of 500 MB/s each and 1 MiB stripes, as a Lustre user may request.
    "parallel file system": ParallelFileSystem(
        alpha=5e-4, beta=1 / 500e6, servers=4, stripe=1 << 20, alpha_server=1e-4
    ),
}


def modeled(requests: NDArray[Any], storage: str | Disk | ParallelFileSystem) -> float:
    """Seconds that requests take on a storage system: one of STORAGE by name, or your own model.

    requests   with fields rank, offset and bytes, as those of mpilab.trace.recording.Recording and
               of mpilab.trace.file_access.FileAccess.

    Raises InputError for an unknown name, and for requests with unknown offsets.
    """
    if isinstance(storage, str):
        if storage not in STORAGE:
            raise InputError(f"storage {storage!r}: unknown; write one of {', '.join(STORAGE)}")
        storage = STORAGE[storage]
    return storage.time(requests["rank"], requests["offset"], requests["bytes"])


def _checked(ranks: ArrayLike, offsets: ArrayLike, sizes: ArrayLike) -> tuple[Whole, Whole, Whole]:
    arrays = (
        np.asarray(ranks, np.int64),
        np.asarray(offsets, np.int64),
        np.asarray(sizes, np.int64),
    )
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        raise InputError(
            f"requests: ranks, offsets and sizes of shapes {[a.shape for a in arrays]}; give three "
            "one-dimensional arrays of the same length"
        )
    for name, array in zip(("rank", "offset", "size"), arrays, strict=True):
        if (array < 0).any():
            raise InputError(
                f"request {int(np.argmax(array < 0))}: its {name} is {array.min()}; the time of "
                "requests at unknown offsets cannot be predicted"
            )
    return arrays


def _turns(ranks: Whole) -> Whole:
    """The index of each request among those of its rank, from 0."""
    turns = np.zeros(len(ranks), np.int64)
    for rank in np.unique(ranks):
        (mine,) = np.nonzero(ranks == rank)
        turns[mine] = np.arange(len(mine))
    return turns
