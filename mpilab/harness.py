"""Cases: what a kernel is run with, what it should leave behind, and what it did leave.

The C harness (src_c/harness) runs a case and writes down raw buffers; this module knows, from the
seed alone, what must be in them.
"""

from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from mpilab.datatypes import datatype
from mpilab.errors import InputError
from mpilab.expected import COLLECTIVES, GUARD_BYTES, block_places, collective_of

SEND_STREAM, RECEIVE_STREAM = 1, 2
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class Case:
    """One call of a kernel on `ranks` ranks with `count` elements of `datatype` a block.

    A block is what one rank contributes to an allgather or gather, or gets from a scatter; in a
    bcast, reduce and allreduce it is the whole message. A barrier has none: its count is 0.

    root      of a bcast, gather, scatter or reduce.
    op        of a reduce or allreduce: "sum", or "compose", which does not commute.
    segment, fanout, radix   what the algorithm is tuned by (struct mpilab_tuning): bytes of a
              segment, children of a rank, radix of a k-nomial tree; 0 is its own default.
    seed      of everything that is in the buffers before the call.
    reversed  the communicator holds the ranks in reverse order.
    strict    sends that may be buffered become synchronous.
    record, dump   write a recording, write the buffers.
    warmup, repetitions   calls before, and calls that are timed.
    snapshots write what the receive buffer held after each call to MPI (up to 4096 bytes of it).
    openmpi   0 or more: Open MPI's own algorithm of that number is used where the kernel calls the
              MPI function itself, as COLLECTIVE_openmpi does.
    monitor   count the messages of one more call below MPI.
    function  the kernel of this case, where it is not that of the whole run.
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
    openmpi: int = -1
    monitor: bool = False
    function: str = ""

    def __post_init__(self):
        collective = collective_of(self.collective)
        datatype(self.datatype)
        least = {"ranks": 1, "repetitions": 1, "openmpi": -1}
        for name in ("ranks", "count", "repetitions", "warmup", "root", "segment", "fanout",
                     "radix", "openmpi"):  # fmt: skip
            value = getattr(self, name)
            if value < least.get(name, 0):
                raise InputError(f"{name}={value}: has to be {least.get(name, 0)} or more")
        if self.root >= self.ranks:
            raise InputError(
                f"root={self.root} with {self.ranks} rank{'s' * (self.ranks != 1)}: "
                f"has to be below {self.ranks}"
            )
        collective.check(self)

    def line(self, number):
        """The case as the harness reads it; `number` names the files it writes."""
        words = asdict(self)
        del words["ranks"]
        if not self.function:
            del words["function"]
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
            )
            if value
        ]
        if self.in_place:
            words.append("MPI_IN_PLACE")
        if self.reversed:
            words.append("ranks in reverse order")
        if self.strict:
            words.append("strict mode")
        return ", ".join(words)

    @property
    def block_bytes(self):
        """Bytes of data that one block carries (m in the formulas)."""
        return self.count * datatype(self.datatype)[1].size

    def regions(self, rank):
        """(send, receive) memory of `rank` before the call, guard zones included, as uint8."""
        sent, received, factor = datatype(self.datatype)
        shape = COLLECTIVES[self.collective].blocks(self, rank)
        return (
            _fill(self.seed, rank, SEND_STREAM, shape.sent * self.count * factor * sent.extent),
            _fill(self.seed, rank, RECEIVE_STREAM, shape.received * self.count * received.extent),
        )

    def expected(self):
        """Receive memory of every rank after a right call: list of uint8 arrays."""
        before = [self.regions(rank) for rank in range(self.ranks)]
        return COLLECTIVES[self.collective].after(self, before)


def _hash(value):
    """splitmix64's finisher, on uint64 arrays (Steele, Lea, Flood 2014)."""
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def _fill(seed, rank, stream, data_bytes):
    total = data_bytes + 2 * GUARD_BYTES
    with np.errstate(over="ignore"):
        start = np.array([seed], np.uint64) + _GOLDEN * np.uint64(4 * rank + stream)
        words = np.arange(1, -(-total // 8) + 1, dtype=np.uint64) * _GOLDEN + _hash(start)
        return _hash(words).view(np.uint8)[:total].copy()


@dataclass(frozen=True)
class Output:
    """What one rank left behind: its return code, its memory and the time of each call."""

    rank: int
    returned: int
    received: np.ndarray
    sent: np.ndarray
    spans_ns: np.ndarray = field(repr=False)  # [repetitions, 2]: begin, end

    @classmethod
    def read(cls, path):
        """Read a file of the harness; InputError if it is not one, or not a whole one."""
        data = Path(path).read_bytes()
        words = np.frombuffer(data[:64], np.int64) if len(data) >= 64 else np.zeros(8, np.int64)
        _, rank, _, returned, received, sent, repetitions, _ = (int(word) for word in words)
        whole = 64 + received + sent + 16 * repetitions
        if data[:8] != b"MPILABO1" or min(received, sent, repetitions) < 0 or len(data) != whole:
            raise InputError(f"{path}: not a whole output file of the harness; run the case again")
        memory = np.frombuffer(data, np.uint8, received + sent, 64)
        spans = np.frombuffer(data, np.int64, 2 * repetitions, 64 + received + sent)
        return cls(rank, returned, memory[:received], memory[received:], spans.reshape(-1, 2))


@dataclass(frozen=True)
class Difference:
    """What is wrong in one rank's memory; `blocks` are the receive blocks with wrong data."""

    rank: int
    blocks: tuple = ()
    untouched: tuple = ()
    notes: tuple = ()

    def describe(self):
        """One sentence part: 'rank 2: blocks 0, 3 are wrong (3 was never written)'."""
        words = []
        if self.blocks:
            plural = len(self.blocks) > 1
            words.append(
                f"block{'s' * plural} {_listing(self.blocks)} {'are' if plural else 'is'} wrong"
            )
            if self.untouched:
                never = (
                    "none of it was"
                    if self.untouched == self.blocks and not plural
                    else (
                        "none of them was"
                        if self.untouched == self.blocks
                        else f"{_listing(self.untouched)} "
                        f"{'were' if len(self.untouched) > 1 else 'was'} never"
                    )
                )
                words[-1] += f" ({never} written)"
        return f"rank {self.rank}: " + "; ".join([*words, *self.notes])


def _listing(numbers, most=8):
    shown = ", ".join(map(str, numbers[:most]))
    return shown if len(numbers) <= most else f"{shown}, … ({len(numbers)} in all)"


def compare(case, outputs):
    """Hold the outputs of all ranks against what the case should leave: list of Difference.

    Every byte counts: the data, the holes of the datatype, the guard zones around both buffers,
    and the send buffer, which a kernel must not change.
    """
    expected = case.expected()
    return [
        difference
        for rank, output in enumerate(outputs)
        if (difference := _compare_rank(case, rank, output, expected[rank])) is not None
    ]


def _compare_rank(case, rank, output, expected):
    sent_before, received_before = case.regions(rank)
    if output.received.shape != expected.shape or output.sent.shape != sent_before.shape:
        return Difference(rank, notes=("the output has the wrong size",))
    wrong = output.received != expected
    notes = []
    if (output.sent != sent_before).any():
        notes.append("the send buffer was changed")
    data = np.zeros_like(wrong)
    blocks, untouched = [], []
    count = COLLECTIVES[case.collective].blocks(case, rank).received
    for index in range(count):
        places = block_places(case, index)
        data[places] = True
        if wrong[places].any():
            blocks.append(index)
            if (output.received[places] == received_before[places]).all():
                untouched.append(index)
    outside = wrong & ~data
    guard = np.zeros_like(wrong)
    guard[:GUARD_BYTES] = guard[len(guard) - GUARD_BYTES :] = True
    if (outside & guard).any():
        notes.append("memory outside of the receive buffer was overwritten")
    if (outside & ~guard).any():
        notes.append("the holes between the elements of the datatype were overwritten")
    if not blocks and not notes:
        return None
    return Difference(rank, tuple(blocks), tuple(untouched), tuple(notes))
