"""What a sweep has to run: its options, its points, and how often each one is timed."""

import os
from dataclasses import dataclass

from mpilab.errors import InputError
from mpilab.expected import collective_of
from mpilab.harness import Case
from mpilab.sweeps import algorithms, sizes
from mpilab.sweeps.openmpi_traffic import Shape

# OMB 7's defaults for collectives: (iterations, warm-up) up to 8 KiB, and above.
OMB_SHORT, OMB_LONG, LONG_BYTES = (1000, 100), (100, 10), 8192
# OMB takes a mean; the median and its confidence interval get by with less.
FRACTION, LEAST_REPETITIONS, LEAST_WARMUP = 4, 20, 3


def times_of(bytes, ranks, cores=None):
    """(repetitions, warm-up) of a message of so many bytes, unless somebody says otherwise.

    The rule: a quarter of what OMB does (1000 and 100; above 8 KiB 100 and 10), divided again by
    the number of ranks that share a core, but at least 20 and 3.
    """
    cores = cores or len(os.sched_getaffinity(0))
    divisor = FRACTION * -(-ranks // cores)
    repetitions, warmup = OMB_LONG if bytes > LONG_BYTES else OMB_SHORT
    return max(LEAST_REPETITIONS, repetitions // divisor), max(LEAST_WARMUP, warmup // divisor)


@dataclass(frozen=True)
class Point:
    """One algorithm with one number of ranks and one message size."""

    algorithm: algorithms.Algorithm
    ranks: int
    bytes: int

    @property
    def key(self):
        """What names a point in a table."""
        return (self.algorithm.library, self.algorithm.name, self.ranks, self.bytes)


@dataclass(frozen=True)
class Plan:
    """The options of a sweep; see `mpilab.sweeps.run.sweep`. `named` were asked for singly."""

    collective: str
    ranks: tuple
    sizes: tuple
    algorithms: tuple
    named: frozenset = frozenset()
    segment: int = 0
    fanout: int = 0
    radix: int = 0
    root: int = 0
    repetitions: int | None = None
    warmup: int | None = None

    @classmethod
    def make(cls, collective, ranks, given_sizes, words, **options):
        """Check all options together; InputError for what cannot be run."""
        kind = collective_of(collective)
        chosen, named = algorithms.choose(collective, words)
        if kind.has_blocks:
            swept, is_range = sizes.sizes_of(given_sizes)
            element = _element(kind)[1]
            odd = [size for size in swept if size % element]
            if odd and (not is_range or len(odd) == len(swept)):
                raise InputError(f"sizes {', '.join(map(str, odd))}: {collective} adds up numbers "
                                 f"of {element} bytes; write multiples of {element}")  # fmt: skip
            swept = tuple(size for size in swept if size % element == 0)
        else:
            swept = (0,)
        plan = cls(collective, sizes.ranks_of(ranks), swept, chosen, named, **options)
        plan._check(kind)
        return plan

    def _check(self, kind):
        for name, least in (("repetitions", 1), ("warmup", 0)):
            value = getattr(self, name)
            if value is not None and value < least:
                raise InputError(f"{name}={value}: has to be {least} or more")
        for ranks in self.ranks:
            self.case(Point(self.algorithms[0], ranks, self.sizes[0]))
        two = [a for a in self.named if a.name == "two_proc"]
        if two and any(ranks != 2 for ranks in self.ranks):
            raise InputError(f"algorithms {two[0]}: for 2 ranks only, Open MPI aborts otherwise; "
                             f"leave it out, or write --ranks 2")  # fmt: skip
        if self.radix == 1:
            raise InputError("radix=1 makes no tree; write 2 or more, or 0 for the default")

    def points(self):
        """All points, size after size, and all algorithms of a size in turn: what is compared
        runs close together."""
        return [
            Point(algorithm, ranks, size)
            for ranks in self.ranks
            for size in self.sizes
            for algorithm in self.algorithms
            if algorithm.name != "two_proc" or ranks == 2
        ]

    def remarks(self):
        """What somebody who asks for this should know: sentences."""
        uncut = [a for a in self.algorithms if str(a) == "openmpi:pipeline" and not self.segment]
        return [f"{a}: without segments the message goes in one piece, and nothing is pipelined"
                for a in uncut]  # fmt: skip

    def times(self, point):
        """(repetitions, warm-up) of a point."""
        repetitions, warmup = times_of(point.bytes, point.ranks)
        return (
            repetitions if self.repetitions is None else self.repetitions,
            warmup if self.warmup is None else self.warmup,
        )

    def case(self, point, **more):
        """The Case of a point; `more` says what is done in it."""
        datatype, element = _element(collective_of(self.collective))
        settings = {"record": False, "dump": False, **more}
        return Case(
            self.collective, point.ranks, point.bytes // element, datatype,
            root=self.root, segment=self.segment, fanout=self.fanout, radix=self.radix,
            function=point.algorithm.function(self.collective), openmpi=point.algorithm.number,
            **settings,
        )  # fmt: skip

    def shape(self, point):
        """The Shape of a point, for what Open MPI must send."""
        _, element = _element(collective_of(self.collective))
        return Shape(point.ranks, point.bytes // element, element, self.root, self.segment,
                     self.fanout, self.radix)  # fmt: skip


def _element(kind):
    """(datatype, bytes of an element): what is reduced are numbers, all else are bytes."""
    return ("int", 4) if kind.reduces else ("byte", 1)
