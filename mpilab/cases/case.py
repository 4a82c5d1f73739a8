"""A call of a kernel (Case), and what it must leave in memory, computed only with numpy.

`COLLECTIVES[name]` gives the number of blocks in a rank's buffers, and the contents of the receive
buffers after the call (MPI 4.1, chapter 6). A bcast has one buffer, which counts as the receive
buffer. A barrier has none; `mpilab.diagnosis.collectives` determines from its recording whether it
was one. The C harness (src_c/runtime/harness) runs a case and writes raw buffers; their contents
follow from the seed alone.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpilab.cases import counts
from mpilab.cases.data import GUARD_BYTES, OPERATIONS, Layout, datatype, fill, fold, words
from mpilab.cases.distribution import Distribution, distribution
from mpilab.errors import InputError
from mpilab.hosts import platforms
from mpilab.hosts.places import Levels, Place, as_text, one_node
from mpilab.util.text import suggestion

# What src_c/runtime/harness/buffers.c, which is independent code, adds to the seed for each call.
SEED_STEP = 0x9E3779B97F4A7C15
SEND_STREAM, RECEIVE_STREAM, FILE_STREAM = 1, 2, 3
REMAPS = ("", "remapped from SEQ to RR", "remapped from RR to SEQ")
MOST_BUFFER = 2**31 - 1  # above, ROMIO reads nothing and reports no error (Open MPI 5.0.11)
# The datatypes that consist of 32-bit words, on which operations work.
REDUCIBLE = ("int", "contiguous", "vector", "shifted", "raised", "backward")
# Calls of a kernel that one case makes (src_c/runtime/harness/sequence.c), in words.
SEQUENCES = {
    "": "",
    "again": "called three times",
    "roots": "called with another root, with a third one, then with this one",
    "duplicate": "called on a communicator, then on a duplicate of it",
    "parts": "called on all ranks, on some of them, on all again",
}

# The memory of each rank: uint8 arrays, with guard zones.
Memory = NDArray[np.uint8]
# Indices of bytes in such an array.
Places = NDArray[np.int64]
# (send, receive) memory of every rank.
Before = Sequence[tuple[Memory, Memory]]


@dataclass(frozen=True)
class Case:
    """One call of a kernel on `ranks` ranks, with `count` elements of `datatype` per block.

    A block is what one rank contributes to an allgather or gather, or gets from a scatter; in a
    bcast, reduce and allreduce, it is the whole message. A barrier has none: its count is 0. In an
    alltoallv, a block is what one rank sends to another one, and `pattern` says how many multiples
    of `count` elements that is.

    root      of a bcast, gather, scatter or reduce.
    op        of a reduce or allreduce: "sum", or "compose", which is not commutative.
    segment, fanout, radix   the tunables of the algorithm (struct mpilab_tuning): bytes of a
              segment, children of a rank, radix of a k-nomial tree; 0 is its own default.
    remap     which rank a process behaves as, in kernels whose names end in _remapped: 0 depends on
              the topology, 1 from SEQ order to RR, 2 from RR order to SEQ.
    budget    bytes of other ranks' data that a rank may hold; 0 is the algorithm's own default.
    memory    bytes of memory that a rank may have during the calls, beyond what it has before them;
              0: as many as it gets. Only with mpirun.
    matrix    of a read: the matrix in the file and its distribution over the ranks, in the notation
              of mpilab.cases.distribution: "12x10", "12x10 by 4x2 on 2x3".
    buffer    maximum bytes of one request to a file, below 2 GiB; 0 is the algorithm's own default.
    aggregators   ranks that read for all in a two-phase read; 0 is the algorithm's own default.
    pattern   of an alltoallv: "even", "ragged" or "sparse" (mpilab.cases.counts).
    seed      of everything in the buffers before the call.
    reversed  the communicator holds the ranks in reverse order.
    bystanders   of a read: further ranks of MPI_COMM_WORLD, which take no part. With mpirun only:
              on a cluster, these are its other engines.
    strict    sends that may be buffered become synchronous, and the recorder notices if what a
              nonblocking one sends changes before it is complete.
    sequence  one of SEQUENCES: the kernel is called before, each time with its own data, on this or
              another communicator. The case's own call is the last one; of the others, checksums
              are compared (mpilab.cases.output.wrong_calls).
    unused    arguments that MPI ignores on a rank, such as the receive type of a gather except at
              the root, have no valid value there.
    latencies 1 or more: every two ranks are linked with another latency, drawn with this seed, so
              messages of different ranks arrive in another order. Only in a simulation.
    record, dump   write a recording, write the buffers.
    warmup, repetitions   untimed calls before, and timed calls.
    fresh     before each call, put new data into the buffers, and write a checksum of what each
              call leaves, warm-up included (mpilab.cases.output.wrong_calls).
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
    function  the kernel of this case, if it differs from that of the whole run.
    requests  of a read: record the requests to the file below MPI (mpilab.trace.file_access).
    cold      of a read: before each call, evict the file from the page cache, as far as the system
              does so; mpilab.trace.file_access shows how far.
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
    places: tuple[Place, ...] = ()
    function: str = ""
    requests: bool = False
    cold: bool = False
    platform: str = ""
    fresh: bool = False
    sequence: str = ""
    unused: bool = False
    latencies: int = 0
    bystanders: int = 0
    memory: int = 0

    def __post_init__(self) -> None:
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
            "latencies",
            "bystanders",
            "memory",
        ):
            value = getattr(self, name)
            if value < least.get(name, 0):
                raise InputError(f"{name}={value}: must be {least.get(name, 0)} or more")
        if self.bystanders and not collective.reads:
            raise InputError(
                f"bystanders={self.bystanders} beside the collective {self.collective}: only reads "
                'have them; write sequence="parts"'
            )
        if self.buffer > MOST_BUFFER:
            raise InputError(
                f"buffer={self.buffer}: MPI-IO accepts only buffers below 2 GiB; write "
                f"{MOST_BUFFER} or less"
            )
        if self.remap >= len(REMAPS):
            raise InputError(f"remap={self.remap}: must be 0, 1 (SEQ to RR) or 2 (RR to SEQ)")
        if self.root >= self.ranks:
            raise InputError(
                f"root={self.root} with {self.ranks} rank{'s' * (self.ranks != 1)}: "
                f"must be below {self.ranks}"
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
        if self.latencies and (self.platform or self.places):
            raise InputError(
                f"latencies={self.latencies} beside a platform or places, which have their own; "
                "remove one of them"
            )
        self._check_sequence()
        if self.fresh and self.dump:
            raise InputError(
                "fresh=True, dump=True: fresh data are compared by checksums; write dump=False"
            )
        collective.check(self)

    def _check_platform(self) -> None:
        if self.places:
            raise InputError("places beside a platform, which has its own; remove one of them")
        slots = len(self.levels.places)
        if self.ranks != slots:
            raise InputError(
                f"ranks={self.ranks} on platform {self.platform!r}, which has {slots} slots: write "
                f"ranks={slots}"
            )

    def _check_sequence(self) -> None:
        if self.sequence not in SEQUENCES:
            known = ", ".join(filter(None, SEQUENCES))
            raise InputError(f"sequence {self.sequence!r} is unknown; write one of {known}")
        if self.sequence and (self.calls > 1 or self.fresh or self.matrix):
            raise InputError(
                f"sequence={self.sequence!r} beside warmup, repetitions, fresh data or a read: "
                "remove one of them"
            )
        if self.sequence == "roots" and not COLLECTIVES[self.collective].is_rooted:
            raise InputError(
                f"sequence='roots': {self.collective} has no root; write sequence='again'"
            )

    def line(self, number: int) -> str:
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
            ("fresh", False),
            ("sequence", ""),
            ("unused", False),
            ("bystanders", 0),
            ("memory", 0),
        ):
            if words[name] == usual:
                del words[name]
        del words["ranks"], words["matrix"], words["platform"], words["latencies"]
        if self.matrix:
            words |= asdict(self.distribution)
        return " ".join(
            f"{k}={int(v) if isinstance(v, bool | int) else v}"
            for k, v in {"id": number, **words}.items()
        )

    def describe(self) -> str:
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
                ("memory limit", self.memory, " bytes"),
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
        if self.bystanders:
            words.append(f"{self.bystanders} more in MPI_COMM_WORLD, not in comm")
        if self.strict:
            words.append("strict mode")
        if self.unused:
            words.append("no valid value where an argument is ignored")
        if self.sequence:
            words.append(SEQUENCES[self.sequence])
        if self.latencies:
            words.append(f"simulated with uneven latencies (seed {self.latencies})")
        if self.places:
            words.append(f"on {self.levels.describe()}")
        if self.platform:
            words.append(f"simulated on {self.platform}")
        return ", ".join(words)

    @property
    def levels(self) -> Levels:
        """The Levels of the ranks, as far as the case gives them; without places, on one node."""
        if self.platform:
            return Levels(platforms.places(self.platform))
        return Levels(self.places) if self.places else one_node(self.ranks)

    @property
    def distribution(self) -> Distribution:
        """The distribution of the matrix of a read (mpilab.cases.distribution.Distribution)."""
        return distribution(self.matrix, self.ranks)

    @property
    def block_bytes(self) -> int:
        """Bytes of data in one block (m in the formulas)."""
        return self.count * datatype(self.datatype)[1].size

    def regions(self, rank: int) -> tuple[Memory, Memory]:
        """(send, receive) memory of `rank` before the call, with guard zones, as uint8."""
        return self._regions([rank])[0]

    def before(self) -> list[tuple[Memory, Memory]]:
        """The same for every rank: list of (send, receive)."""
        return self._regions(range(self.ranks))

    def _regions(self, ranks: Sequence[int]) -> list[tuple[Memory, Memory]]:
        sent, received, factor = datatype(self.datatype)
        rooms = [room(self, rank) for rank in ranks]
        sends = [elements.sent * factor * sent.extent for elements in rooms]
        receives = [elements.received * received.extent for elements in rooms]
        filled = (
            fill(self.seed, ranks, *of) for of in ((SEND_STREAM, sends), (RECEIVE_STREAM, receives))
        )
        return list(zip(*filled, strict=True))

    @property
    def calls(self) -> int:
        """How often the kernel is called, warm-up included."""
        return self.warmup + self.repetitions

    def of_call(self, number: int) -> "Case":
        """The case with the data of its call `number`, from 0: different for each if `fresh`."""
        seed = (self.seed ^ number * SEED_STEP) % 2**64
        return replace(self, seed=seed) if self.fresh and number else self

    def earlier(self) -> "list[Case]":
        """The calls of its sequence before its own, each as a case of the same buffers."""
        if not self.sequence:
            return []
        ranks = self.ranks
        part = ranks - (ranks + 1) // 3
        sizes = {
            "again": (ranks, ranks),
            "roots": (ranks, ranks),
            "duplicate": (ranks,),
            "parts": (ranks, part),
        }[self.sequence]
        further = (ranks // 2, 1) if self.sequence == "roots" else (0, 0)
        return [
            replace(
                self,
                ranks=size,
                root=(self.root + further[number]) % size,
                places=self.places[:size],
                platform="",
                latencies=0,
                sequence="",
                seed=(self.seed ^ (number + 1) * SEED_STEP) % 2**64,
            )
            for number, size in enumerate(sizes)
        ]

    def elements(self) -> NDArray[np.uint64]:
        """The elements in the file of a read, as bits: uint64 [rows * columns]."""
        about = self.distribution
        return words(self.seed, [0], FILE_STREAM, about.rows * about.columns)[0]

    def expected(self) -> list[Memory]:
        """Receive memory of every rank after a correct call: list of uint8 arrays."""
        return COLLECTIVES[self.collective].after(self, self.before())


def check_real(cases: Iterable[Case]) -> None:
    """Raise InputError if a case is for a simulated platform."""
    for case in cases:
        if case.platform:
            raise InputError(
                f"platform={case.platform!r}: only for simulations; use mpilab.simulated, or places"
            )
        if case.latencies:
            raise InputError(
                f"latencies={case.latencies}: only for simulations; use mpilab.simulated"
            )


class Blocks(NamedTuple):
    """Number of blocks in a rank's send and receive buffers."""

    sent: int
    received: int


@dataclass(frozen=True)
class Collective:
    """blocks(case, rank) -> Blocks; after(case, before) -> receive memory of every rank.

    `before` lists (send, receive) memory of every rank, with guard zones, as uint8 arrays.

    is_rooted   it has a root.
    reduces     it has an operation, one datatype, and elements that can be combined.
    one_type    it has one datatype, not one to send and one to receive.
    in_place    MPI allows MPI_IN_PLACE.
    has_blocks  it moves data.
    exchanges   its blocks differ in size, and lie anywhere in the buffers (mpilab.cases.counts).
    reads       it reads a matrix from a file: a rank's single block is its part of the matrix,
                which differs from that of others (mpilab.cases.distribution).
    """

    blocks: Callable[[Case, int], Blocks]
    after: Callable[[Case, Before], list[Memory]]
    is_rooted: bool = False
    reduces: bool = False
    one_type: bool = False
    in_place: bool = True
    has_blocks: bool = True
    exchanges: bool = False
    reads: bool = False

    @property
    def timed_element(self) -> tuple[str, int]:
        """(Datatype, bytes of an element) of sweeps and timings: int if it reduces, else byte."""
        return ("int", 4) if self.reduces else ("byte", 1)

    def check(self, case: Case) -> None:
        """Raise InputError if the case asks for something that this collective does not support."""
        name = case.collective
        if case.root and not self.is_rooted:
            raise InputError(f"root={case.root}: {name} has no root; leave it out")
        if case.in_place and not self.in_place:
            raise InputError(f"in_place: {name} takes no MPI_IN_PLACE; leave it out")
        if case.count and not self.has_blocks:
            raise InputError(f"count={case.count}: {name} moves no data; write count 0")
        self._check_matrix(case)
        counts.check(case.pattern)
        if case.pattern != counts.EVEN and not self.exchanges:
            raise InputError(
                f"pattern {case.pattern!r}: all blocks of {name} have the same size; leave it out"
            )
        if self.one_type and case.datatype == "mixed":
            raise InputError(f"datatype 'mixed': {name} has a single datatype; choose another")
        if case.op not in OPERATIONS:
            raise InputError(f"op {case.op!r} is unknown; write one of {', '.join(OPERATIONS)}")
        if case.op != "sum" and not self.reduces:
            raise InputError(f"op {case.op!r}: {name} has no operation; leave it out")
        if self.reduces and case.datatype not in REDUCIBLE:
            raise InputError(
                f"datatype {case.datatype!r}: {name} is run only with {', '.join(REDUCIBLE)}"
            )

    def _check_matrix(self, case: Case) -> None:
        name = case.collective
        if not self.reads:
            for key in ("matrix", "buffer", "aggregators", "requests", "cold"):
                if value := getattr(case, key):
                    raise InputError(f"{key}={value!r}: {name} reads no file; leave it out")
            return
        if case.fresh:
            raise InputError(f"fresh: the file of a {name} stays as it is; leave it out")
        distribution(case.matrix, case.ranks)
        if (case.count, case.datatype) != (1, "double"):
            raise InputError(
                f"count={case.count}, datatype={case.datatype!r}: a {name} reads a matrix of "
                "doubles, whose size is known; write count=1, datatype='double'"
            )


def collective_of(name: str) -> Collective:
    """The Collective of this name; InputError, listing the known ones, if there is none."""
    try:
        return COLLECTIVES[name]
    except KeyError:
        known = f"{', '.join(COLLECTIVES)}{suggestion(name, COLLECTIVES)}"
        raise InputError(f"collective {name!r} is unknown; write one of {known}") from None


def room(case: Case, rank: int) -> Blocks:
    """Blocks(sent, received): the elements, of the receive datatype, that a rank's buffers hold."""
    if COLLECTIVES[case.collective].exchanges:
        return Blocks(counts.sent(case, rank).room, counts.received(case, rank).room)
    if COLLECTIVES[case.collective].reads:
        return Blocks(0, case.distribution.elements_of(rank))
    blocks = COLLECTIVES[case.collective].blocks(case, rank)
    return Blocks(blocks.sent * case.count, blocks.received * case.count)


def block_places(case: Case, index: int, rank: int = 0) -> Places:
    """Places of the data bytes of receive block `index`, of this rank's if ranks differ."""
    begin, elements = index * case.count, case.count
    if COLLECTIVES[case.collective].exchanges:
        begin, elements = _block(counts.received(case, rank), index)
    elif COLLECTIVES[case.collective].reads:
        elements = case.distribution.elements_of(rank)
    return _places(datatype(case.datatype)[1], begin, elements)


def sent_places(case: Case, index: int, rank: int = 0) -> Places:
    """Places of the data bytes of send block `index`; in an alltoallv, of this rank's."""
    layout, _, factor = datatype(case.datatype)
    begin, elements = index * case.count, case.count
    if COLLECTIVES[case.collective].exchanges:
        begin, elements = _block(counts.sent(case, rank), index)
    return _places(layout, begin * factor, elements * factor)


def gap_places(case: Case, rank: int) -> Places:
    """Places of the bytes between two blocks in the receive buffer of this rank."""
    if not COLLECTIVES[case.collective].exchanges:
        return np.zeros(0, np.int64)
    side, extent = counts.received(case, rank), datatype(case.datatype)[1].extent
    is_gap = np.ones(side.room * extent, bool)
    for begin, count in zip(side.begins.tolist(), side.counts.tolist(), strict=True):
        is_gap[begin * extent : (begin + count) * extent] = False
    return GUARD_BYTES + np.flatnonzero(is_gap)


def _block(side: counts.Side, index: int) -> tuple[int, int]:
    """(first element, elements) of the block of a peer."""
    return int(side.begins[index]), int(side.counts[index])


def _places(layout: Layout, begin: int, elements: int) -> Places:
    return GUARD_BYTES + begin * layout.extent + layout.offsets(elements)


def _unchanged(before: Before) -> list[Memory]:
    return [received.copy() for _, received in before]


def _allgather(case: Case, before: Before) -> list[Memory]:
    after = _unchanged(before)
    for source, (sent, received) in enumerate(before):
        places = block_places(case, source)
        block = received[places] if case.in_place else sent[sent_places(case, 0)]
        for memory in after:
            memory[places] = block
    return after


def _bcast(case: Case, before: Before) -> list[Memory]:
    after = _unchanged(before)
    places = block_places(case, 0)
    for memory in after:
        memory[places] = before[case.root][1][places]
    return after


def _gather(case: Case, before: Before) -> list[Memory]:
    after = _unchanged(before)
    for source, (sent, _) in enumerate(before):
        if not (case.in_place and source == case.root):
            after[case.root][block_places(case, source)] = sent[sent_places(case, 0)]
    return after


def _scatter(case: Case, before: Before) -> list[Memory]:
    after = _unchanged(before)
    for dest, memory in enumerate(after):
        if not (case.in_place and dest == case.root):
            memory[block_places(case, 0)] = before[case.root][0][sent_places(case, dest)]
    return after


def _combined(case: Case, before: Before, in_place_on: set[int]) -> Memory:
    """All ranks' contributions combined; ranks `in_place_on` contribute their receive buffer."""
    return fold(
        case.op,
        [
            received[block_places(case, 0)] if rank in in_place_on else sent[sent_places(case, 0)]
            for rank, (sent, received) in enumerate(before)
        ],
    )


def _reduce(case: Case, before: Before) -> list[Memory]:
    after = _unchanged(before)
    in_place_on = {case.root} if case.in_place else set()
    after[case.root][block_places(case, 0)] = _combined(case, before, in_place_on)
    return after


def _allreduce(case: Case, before: Before) -> list[Memory]:
    after = _unchanged(before)
    in_place_on = set(range(case.ranks)) if case.in_place else set()
    combined = _combined(case, before, in_place_on)
    for memory in after:
        memory[block_places(case, 0)] = combined
    return after


def _alltoallv(case: Case, before: Before) -> list[Memory]:
    after = _unchanged(before)
    for dest, memory in enumerate(after):
        for source, (sent, received) in enumerate(before):
            block = (
                received[block_places(case, dest, source)]
                if case.in_place
                else sent[sent_places(case, dest, source)]
            )
            memory[block_places(case, source, dest)] = block
    return after


def _read(case: Case, before: Before) -> list[Memory]:
    after, elements = _unchanged(before), case.elements()
    for rank, memory in enumerate(after):
        part = elements[case.distribution.indices_of(rank)]
        memory[block_places(case, 0, rank)] = part.view(np.uint8)
    return after


def _barrier(case: Case, before: Before) -> list[Memory]:
    return _unchanged(before)


def _at_root(case: Case, rank: int, there: int) -> int:
    return there if rank == case.root else 0


COLLECTIVES = {
    "allgather": Collective(lambda case, rank: Blocks(1, case.ranks), _allgather),
    "alltoallv": Collective(
        lambda case, rank: Blocks(case.ranks, case.ranks), _alltoallv, exchanges=True
    ),
    "bcast": Collective(
        lambda case, rank: Blocks(0, 1), _bcast, is_rooted=True, one_type=True, in_place=False
    ),
    "gather": Collective(
        lambda case, rank: Blocks(1, _at_root(case, rank, case.ranks)), _gather, is_rooted=True
    ),
    "scatter": Collective(
        lambda case, rank: Blocks(_at_root(case, rank, case.ranks), 1), _scatter, is_rooted=True
    ),
    "reduce": Collective(
        lambda case, rank: Blocks(1, _at_root(case, rank, 1)),
        _reduce,
        is_rooted=True,
        reduces=True,
        one_type=True,
    ),
    "allreduce": Collective(
        lambda case, rank: Blocks(1, 1), _allreduce, reduces=True, one_type=True
    ),
    "read": Collective(
        lambda case, rank: Blocks(0, 1), _read, one_type=True, in_place=False, reads=True
    ),
    "barrier": Collective(
        lambda case, rank: Blocks(0, 0), _barrier, in_place=False, has_blocks=False
    ),
}
