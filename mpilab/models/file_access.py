"""What requests to a file should cost: on one disk, and on a parallel file system.

A page cache makes reading nearly free on a laptop, whatever the requests are like: these models say
what the same requests would take where the data have to come from somewhere. Both charge α for a
request and β for a byte, as Thakur, Gropp, Lusk, "Data sieving and collective I/O in ROMIO"
(Frontiers '99) argue when they trade many small requests for few large ones.

Requests are arrays of the same length: `ranks` (who asks), `offsets` and `sizes` (bytes of the
file). A rank has one request under way at a time, in the order of the arrays.
"""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError


@dataclass(frozen=True)
class Disk:
    """One disk with one head: requests of all ranks are served one after the other.

    alpha       seconds to get to the place of a request: seek and half a turn.
    beta        seconds a byte.
    alpha_next  seconds for a request that begins where the one before it ended: the head is there.

    Source: Ruemmler and Wilkes, "An introduction to disk drive modeling" (IEEE Computer 27(3),
    1994), whose model has seek times by distance, and a cache; here, they are the same for all
    distances, and there is none.
    """

    alpha: float
    beta: float
    alpha_next: float = 0.0

    def time(self, ranks, offsets, sizes):
        """Seconds for all requests. They come in turns: the first of each rank, by rank, then the
        second of each, as from ranks that wait for one after the other."""
        ranks, offsets, sizes = _checked(ranks, offsets, sizes)
        order = np.lexsort((ranks, _turns(ranks)))
        begins, ends = offsets[order], (offsets + sizes)[order]
        follows = np.zeros(len(order), bool)
        follows[1:] = begins[1:] == ends[:-1]
        waits = np.where(follows, self.alpha_next, self.alpha)
        return float(waits.sum() + self.beta * sizes.sum())


@dataclass(frozen=True)
class ParallelFileSystem:
    """Servers among which a file is dealt out in stripes; each serves one request at a time.

    alpha    seconds that a rank waits for a request, whatever its size: network and software. Ranks
             wait at the same time.
    beta     seconds a byte, of one server.
    servers  that the file is on.
    stripe   bytes; byte b is on server (b div stripe) mod servers.
    alpha_server   seconds that a server is busy with its part of a request, whatever its size.
    """

    alpha: float
    beta: float
    servers: int
    stripe: int
    alpha_server: float = 0.0

    def __post_init__(self):
        for name in ("servers", "stripe"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}={getattr(self, name)}: has to be 1 or more")

    def time(self, ranks, offsets, sizes):
        """Seconds for all requests: no schedule takes less than the busiest server is busy, nor
        less than a rank's requests take one after the other; the larger of both."""
        ranks, offsets, sizes = _checked(ranks, offsets, sizes)
        if not len(ranks):
            return 0.0
        volume = self.on_servers(offsets, sizes)
        busy = self.alpha_server * (volume > 0) + self.beta * volume
        chains = np.bincount(ranks, self.alpha + busy.max(axis=1))
        return float(max(busy.sum(axis=0).max(), chains.max()))

    def on_servers(self, offsets, sizes):
        """Bytes that each server has of each request: int64 [requests, servers]."""
        offsets, sizes = np.asarray(offsets, np.int64), np.asarray(sizes, np.int64)
        return self._before(offsets + sizes) - self._before(offsets)

    def _before(self, ends):
        """Bytes of each server before a byte of the file: int64 [len(ends), servers]."""
        turn = self.stripe * self.servers
        whole, rest = np.divmod(ends[:, None], turn)
        begins = self.stripe * np.arange(self.servers)
        return whole * self.stripe + np.clip(rest - begins, 0, self.stripe)


# Examples, of the order of magnitude that such hardware has; not of any one that was measured.
STORAGE = {
    # 8 ms for seek and half a turn, 150 MB/s: a hard disk of 7200 turns a minute.
    "hard disk": Disk(alpha=8e-3, beta=1 / 150e6, alpha_next=5e-5),
    # A solid-state disk has many flash chips behind as many channels: 8 with 400 MB/s.
    "solid-state disk": ParallelFileSystem(alpha=8e-5, beta=1 / 400e6, servers=8, stripe=1 << 16),
    # Four storage targets with 1 MiB stripes and 500 MB/s each, as a user of Lustre may ask for.
    "parallel file system": ParallelFileSystem(
        alpha=5e-4, beta=1 / 500e6, servers=4, stripe=1 << 20, alpha_server=1e-4
    ),
}


def modelled(requests, storage):
    """Seconds that requests take on a storage: one of STORAGE by name, or a model of your own.

    requests   with fields rank, offset and bytes, as those of mpilab.recording.Recording and of
               mpilab.fileaccess.FileAccess.

    Raises InputError for an unknown name, and for requests whose offset nobody knows.
    """
    if isinstance(storage, str):
        if storage not in STORAGE:
            raise InputError(f"storage {storage!r}: unknown; write one of {', '.join(STORAGE)}")
        storage = STORAGE[storage]
    return storage.time(requests["rank"], requests["offset"], requests["bytes"])


def _checked(ranks, offsets, sizes):
    arrays = tuple(np.asarray(values, np.int64) for values in (ranks, offsets, sizes))
    if len({array.shape for array in arrays}) != 1 or arrays[0].ndim != 1:
        raise InputError(
            f"requests: ranks, offsets and sizes of shapes {[a.shape for a in arrays]}; give three "
            "one-dimensional arrays of the same length"
        )
    for name, array in zip(("rank", "offset", "size"), arrays, strict=True):
        if (array < 0).any():
            raise InputError(
                f"request {int(np.argmax(array < 0))}: its {name} is {array.min()}; the time of "
                "requests at unknown places cannot be told"
            )
    return arrays


def _turns(ranks):
    """Which request of its rank each one is, from 0."""
    turns = np.zeros(len(ranks), np.int64)
    for rank in np.unique(ranks):
        (mine,) = np.nonzero(ranks == rank)
        turns[mine] = np.arange(len(mine))
    return turns
