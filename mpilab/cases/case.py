"""A call of a kernel (Case), and what the buffers of each rank hold after it (Output).

The C harness (src_c/runtime/harness) runs a case and writes raw buffers; this package computes,
from the seed alone, what they must contain.
"""

from dataclasses import asdict, dataclass, field, fields

import numpy as np

from mpilab.cases import counts
from mpilab.cases.datatypes import datatype
from mpilab.cases.distribution import distribution
from mpilab.cases.expected import COLLECTIVES, collective_of, fill, room, words
from mpilab.errors import InputError
from mpilab.hosts.places import Levels, Place, as_text, one_node

SEND_STREAM, RECEIVE_STREAM, FILE_STREAM = 1, 2, 3
REMAPS = ("", "remapped from SEQ to RR", "remapped from RR to SEQ")
MOST_BUFFER = 2**31 - 1  # above, ROMIO reads nothing and reports no error (Open MPI 5.0.11)


@dataclass(frozen=True)
class Case:
    """One call of a kernel on `ranks` ranks, with `count` elements of `datatype` per block.

    A block is what one rank contributes to an allgather or gather, or gets from a scatter; in a
    bcast, reduce and allreduce, it is the whole message. A barrier has none: its count is 0. In an
    alltoallv, a block is what one rank sends to another one, and `pattern` says how many times
    `count` elements that is.

    root      of a bcast, gather, scatter or reduce.
    op        of a reduce or allreduce: "sum", or "compose", which is not commutative.
    segment, fanout, radix   the tunables of the algorithm (struct mpilab_tuning): bytes of a
              segment, children of a rank, radix of a k-nomial tree; 0 is its own default.
    remap     which rank a process behaves as, in kernels whose names end in _remapped: 0 depends on
              the topology, 1 from SEQ order to RR, 2 from RR order to SEQ.
    budget    bytes of other ranks' data that a rank may hold; 0 is the algorithm's own default.
    matrix    of a read: the matrix in the file and its distribution over the ranks, in the notation
              of mpilab.cases.distribution: "12x10", "12x10 by 4x2 on 2x3".
    buffer    most bytes of one request to a file, below 2 GiB; 0 is the algorithm's own default.
    aggregators   ranks that read for all in a two-phase read; 0 is the algorithm's own default.
    pattern   of an alltoallv: "even", "ragged" or "sparse" (mpilab.cases.counts).
    seed      of everything in the buffers before the call.
    reversed  the communicator holds the ranks in reverse order.
    strict    sends that may be buffered become synchronous.
    record, dump   write a recording, write the buffers.
    warmup, repetitions   untimed calls before, and timed calls.
    snapshots write the contents of the receive buffer after each MPI call (up to 4096 bytes).
    openmpi   0 or more: where the kernel calls the MPI function itself, as COLLECTIVE_openmpi does,
              use Open MPI's own algorithm of that number.
    han       False: there, Open MPI does not use its hierarchical collectives (coll/han), which
              have priority across hosts.
    rules     False: with openmpi=0, Open MPI chooses as if there were no rules file.
    monitor   count the messages of one more call below MPI.
    places    the assumed places of the ranks (a mpilab.hosts.places.Place for each rank of the
              kernel's communicator); () is where they really are.
    platform  "PLATFORM [ORDER [SEED]]" of mpilab.hosts.platforms: the case can only be simulated,
              with a rank on every slot of that platform.
    function  the kernel of this case, if it is not that of the whole run.
    requests  of a read: record the requests to the file below MPI (mpilab.trace.file_access).
    cold      of a read: before each call, evict the file from the page cache, as far as the system
              does that; mpilab.trace.file_access tells how far.
    """

    collective: str
    ranks: int
    count: int
    datatype: str = "int"
    in_place: bool = False
    reversed: bool = False
    strict: bool = False
    seed: int = 1
    record: bool = True
    dump: bool = True
    warmup: int = 0
    repetitions: int = 1
    snapshots: bool = False
    root: int = 0
    op: str = "sum"
    segment: int = 0
    fanout: int = 0
    radix: int = 0
    remap: int = 0
    budget: int = 0
    matrix: str = ""
    buffer: int = 0
    aggregators: int = 0
    pattern: str = counts.EVEN
    openmpi: int = -1
    han: bool = True
    rules: bool = True
    monitor: bool = False
    places: tuple = ()
    function: str = ""
    requests: bool = False
    cold: bool = False
    platform: str = ""

    def __post_init__(self):
        collective = collective_of(self.collective)
        datatype(self.datatype)
        least = {"ranks": 1, "repetitions": 1, "openmpi": -1}
        for name in (
            "ranks",
            "count",
            "repetitions",
            "warmup",
            "root",
            "segment",
            "fanout",
            "radix",
            "remap",
            "budget",
            "buffer",
            "aggregators",
            "openmpi",
        ):
            value = getattr(self, name)
            if value < least.get(name, 0):
                raise InputError(f"{name}={value}: has to be {least.get(name, 0)} or more")
        if self.buffer > MOST_BUFFER:
            raise InputError(
                f"buffer={self.buffer}: MPI-IO takes buffers below 2 GiB only; write {MOST_BUFFER} "
                "or less"
            )
        if self.remap >= len(REMAPS):
            raise InputError(f"remap={self.remap}: has to be 0, 1 (SEQ to RR) or 2 (RR to SEQ)")
        if self.root >= self.ranks:
            raise InputError(
                f"root={self.root} with {self.ranks} rank{'s' * (self.ranks != 1)}: "
                f"has to be below {self.ranks}"
            )
        # Read back from JSON, places are dictionaries.
        places = (Place(**one) if isinstance(one, dict) else one for one in self.places)
        object.__setattr__(self, "places", tuple(places))
        if len(self.places) not in (0, self.ranks):
            raise InputError(
                f"places of {len(self.places)} ranks for {self.ranks}: give one for each rank"
            )
        if self.platform:
            self._check_platform()
        collective.check(self)

    def _check_platform(self):
        if self.places:
            raise InputError("places beside a platform, which has its own; leave one of them out")
        slots = len(self.levels.places)
        if self.ranks != slots:
            raise InputError(
                f"ranks={self.ranks} on platform {self.platform!r}, which has {slots} slots: write "
                f"ranks={slots}"
            )

    def line(self, number):
        """The case as the harness reads it; `number` names the files it writes."""
        words = {field.name: getattr(self, field.name) for field in fields(self)}
        words["places"] = as_text(self.places)
        for name, usual in (
            ("function", ""),
            ("places", ""),
            ("budget", 0),
            ("remap", 0),
            ("buffer", 0),
            ("aggregators", 0),
            ("han", True),
            ("rules", True),
            ("pattern", counts.EVEN),
            ("requests", False),
            ("cold", False),
        ):
            if words[name] == usual:
                del words[name]
        del words["ranks"], words["matrix"], words["platform"]
        if self.matrix:
            words |= asdict(self.distribution)
        return " ".join(
            f"{k}={int(v) if isinstance(v, bool | int) else v}"
            for k, v in {"id": number, **words}.items()
        )

    def describe(self):
        """The case in words, for a message: '3 ranks, count 7, datatype vector, MPI_IN_PLACE'."""
        words = [
            f"{self.ranks} rank{'s' * (self.ranks != 1)}",
            f"count {self.count}",
            f"datatype {self.datatype}",
        ]
        if not COLLECTIVES[self.collective].has_blocks:
            words = words[:1]
        if self.matrix:
            words[1:] = [f"matrix {self.matrix}"]
        if COLLECTIVES[self.collective].is_rooted:
            words.append(f"root {self.root}")
        if COLLECTIVES[self.collective].reduces and self.op != "sum":
            words.append(f"op {self.op}")
        words += [
            f"{name} {value}{unit}"
            for name, value, unit in (
                ("segments of", self.segment, " bytes"),
                ("fan-out", self.fanout, ""),
                ("radix", self.radix, ""),
                ("budget", self.budget, " bytes"),
                ("buffer", self.buffer, " bytes"),
                ("aggregators", self.aggregators, ""),
            )
            if value
        ]
        if self.pattern != counts.EVEN:
            words.append(f"{self.pattern} counts")
        if self.remap:
            words.append(REMAPS[self.remap])
        if self.in_place:
            words.append("MPI_IN_PLACE")
        if self.reversed:
            words.append("ranks in reverse order")
        if self.strict:
            words.append("strict mode")
        if self.places:
            words.append(f"on {self.levels.describe()}")
        if self.platform:
            words.append(f"simulated on {self.platform}")
        return ", ".join(words)

    @property
    def levels(self):
        """The Levels of the ranks, as far as the case says; without places, on one node."""
        if self.platform:
            from mpilab.hosts.platforms import places  # only simulated cases need it

            return Levels(places(self.platform))
        return Levels(self.places) if self.places else one_node(self.ranks)

    @property
    def distribution(self):
        """The distribution of the matrix of a read (mpilab.cases.distribution.Distribution)."""
        return distribution(self.matrix, self.ranks)

    @property
    def block_bytes(self):
        """Bytes of data in one block (m in the formulas)."""
        return self.count * datatype(self.datatype)[1].size

    def regions(self, rank):
        """(send, receive) memory of `rank` before the call, with guard zones, as uint8."""
        return self._regions([rank])[0]

    def before(self):
        """The same for every rank: list of (send, receive)."""
        return self._regions(range(self.ranks))

    def _regions(self, ranks):
        sent, received, factor = datatype(self.datatype)
        rooms = [room(self, rank) for rank in ranks]
        sends = [elements.sent * factor * sent.extent for elements in rooms]
        receives = [elements.received * received.extent for elements in rooms]
        filled = (
            fill(self.seed, ranks, *of) for of in ((SEND_STREAM, sends), (RECEIVE_STREAM, receives))
        )
        return list(zip(*filled, strict=True))

    def elements(self):
        """The elements in the file of a read, as bits: uint64 [rows * columns]."""
        about = self.distribution
        return words(self.seed, [0], FILE_STREAM, about.rows * about.columns)[0]

    def expected(self):
        """Receive memory of every rank after a correct call: list of uint8 arrays."""
        return COLLECTIVES[self.collective].after(self, self.before())


def check_real(cases):
    """Raise InputError if a case is for a simulated platform."""
    for case in cases:
        if case.platform:
            raise InputError(
                f"platform={case.platform!r}: there only in simulations; use mpilab.simulated, or "
                "places"
            )


@dataclass(frozen=True)
class Output:
    """The output of one rank: its return code, its memory and the time of each call.

    held   the most bytes of other ranks' data that the kernel held at a time, as far as it counts
           them (src_c/common/exchange/exchange.c).
    """

    rank: int
    returned: int
    received: np.ndarray
    sent: np.ndarray
    spans_ns: np.ndarray = field(repr=False)  # [repetitions, 2]: begin, end
    held: int = 0

    @classmethod
    def read(cls, path):
        """Read an output file of the harness; InputError if it is invalid or incomplete."""
        with open(path, "rb") as file:
            return cls.parse(file.read(), path)

    @classmethod
    def parse(cls, data, path):
        """The same from `data`, the content of the file that is, or was, at `path`."""
        words = np.frombuffer(data[:64], np.int64) if len(data) >= 64 else np.zeros(8, np.int64)
        _, rank, _, returned, received, sent, repetitions, held = (int(word) for word in words)
        whole = 64 + received + sent + 16 * repetitions
        if data[:8] != b"MPILABO1" or min(received, sent, repetitions) < 0 or len(data) != whole:
            raise InputError(f"{path}: not a whole output file of the harness; run the case again")
        memory = np.frombuffer(data, np.uint8, received + sent, 64)
        spans = np.frombuffer(data, np.int64, 2 * repetitions, 64 + received + sent)
        spans = spans.reshape(-1, 2)
        return cls(rank, returned, memory[:received], memory[received:], spans, held)
