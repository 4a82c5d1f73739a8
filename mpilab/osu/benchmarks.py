"""Which benchmarks there are, and what each of them can be asked for."""

from dataclasses import dataclass

from mpilab.errors import InputError

COLLECTIVE, BARRIER, LATENCY, BANDWIDTH = "collective", "barrier", "latency", "bandwidth"
_MEBIBYTE = 1 << 20


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of OMB; `title` is what its table says between '# OSU MPI ' and ' Test'."""

    name: str
    title: str
    kind: str = COLLECTIVE

    @property
    def is_between_two(self):
        """Does it take two ranks, no more and no fewer?"""
        return self.kind in (LATENCY, BANDWIDTH)

    @property
    def largest(self):
        """The largest message that it measures if nobody says otherwise, in bytes."""
        return 4 * _MEBIBYTE if self.is_between_two else _MEBIBYTE


BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("osu_latency", "Latency", LATENCY),
        Benchmark("osu_bw", "Bandwidth", BANDWIDTH),
        Benchmark("osu_allgather", "Allgather Latency"),
        Benchmark("osu_allreduce", "Allreduce Latency"),
        Benchmark("osu_alltoallv", "All-to-Allv Personalized Exchange Latency"),
        Benchmark("osu_barrier", "Barrier Latency", BARRIER),
        Benchmark("osu_bcast", "Broadcast Latency"),
        Benchmark("osu_gather", "Gather Latency"),
        Benchmark("osu_reduce", "Reduce Latency"),
        Benchmark("osu_scatter", "Scatter Latency"),
    )
}


def benchmark_of(name):
    """The Benchmark called `name`; InputError with all names where there is none."""
    if name not in BENCHMARKS:
        raise InputError(f"benchmark {name!r}: there is none; take one of {', '.join(BENCHMARKS)}")
    return BENCHMARKS[name]
