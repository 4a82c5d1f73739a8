"""Simulate where one broadcast overtakes another on 4 to 4,096 ranks: a table for lab 06.

    python -m mpilab.measure.crossover [data/crossover.csv]      simulate, write the file

Lab 06 shows the file beside its own simulations. SimGrid's times depend only on the messages, so
every run produces the same file. There are two kinds of clusters (KINDS): in one, a message costs
the same between any two ranks, as the α-β model assumes; in the other, groups of hosts share their
uplinks, and the ranks are assigned to the hosts round robin.
"""

from collections.abc import Callable, Sequence
from math import exp, log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from mpilab import models
from mpilab.cases.case import Case
from mpilab.errors import InputError, MpilabError
from mpilab.kernels.simgrid import kernels
from mpilab.measure.dataset import Dataset
from mpilab.measure.sweep_table import ROW as SWEPT
from mpilab.runners import simgrid
from mpilab.runners.simgrid import seconds_of

FLAT, GROUPS = "flat", "groups"
# kind -> (platform for P ranks, rank order, divisor of P, maximum P)
KINDS = {FLAT: ("flat-{0}x1", "seq", 1, 4096), GROUPS: ("groups-4x{1}x8", "rr", 32, 1024)}
TREE = "binomial"
OTHERS = ("scatter_allgather", "scatter_allgather_ring", "pipeline")
RANKS = (4, 16, 64, 256, 1024, 4096)
SIZES = tuple(1 << power for power in range(8, 21))
# The number of a ring's messages grows with the square of the ranks: 4,096 would take an hour.
MOST_RING_RANKS = 256
# Shorter segments mean thousands of simultaneous messages, which take long to simulate.
LEAST_SEGMENT = 4096
# Of all ranks' buffers together.
MOST_BYTES = 512 << 20
# The cost of a message on a flat cluster: that of the kit's default links (mpilab.hosts.platforms).
LINK = models.Hockney(alpha=1.4e-6, beta=8e-11)
TABLE = Dataset(
    "crossover.csv",
    columns="kind:U8 ranks algorithm bytes segment:i8 seconds",
    example="flat,64,binomial,1024,0,1.234e-05",
    program="mpilab.measure.crossover",
)
ROW = TABLE.row
read, write = TABLE.read, TABLE.write


def simulate(
    ranks: Sequence[int] = RANKS,
    sizes: Sequence[int] = SIZES,
    kinds: Sequence[str] = tuple(KINDS),
    algorithms: Sequence[str] = (TREE, *OTHERS),
    most_bytes: int = MOST_BYTES,
    progress: bool = False,
    on_rows: Callable[[NDArray[Any]], None] | None = None,
) -> NDArray[Any]:
    """Simulate broadcasts; array of ROW.

    ranks        numbers of ranks; left out for a kind of cluster that does not support them.
    sizes        bytes of the message; left out if all ranks' buffers together exceed `most_bytes`.
    algorithms   of our broadcasts. A pipeline uses the segments that are cheapest in the model.
    on_rows      called with all rows so far after each cluster.

    The defaults take about ten minutes and 2 GiB of memory. Raises SetupError without SimGrid,
    InputError for an unknown kind, MpilabError if a kernel does not complete.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"kind {kind!r}: use one of {', '.join(KINDS)}")
    jobs = [(kind, size) for size in ranks for kind in kinds if _is_there(kind, size)]
    rows = []
    for kind, size in tqdm(jobs, disable=not progress, unit="cluster"):
        platform, order, *_ = KINDS[kind]
        todo = [
            (algorithm, count, segment_of(algorithm, size, count))
            for algorithm in algorithms
            if algorithm != "scatter_allgather_ring" or size <= MOST_RING_RANKS
            for count in sizes
            if size * count <= most_bytes
        ]
        cases = [
            Case(
                "bcast",
                size,
                count,
                "byte",
                segment=segment,
                record=False,
                dump=False,
                **_kernel_of(algorithm),
            )
            for algorithm, count, segment in todo
        ]
        results = simgrid.simulate(
            kernels(),
            "",
            cases,
            platform.format(size, size // 32),
            order=order,
            limit=3600.0,
        )
        for (algorithm, count, segment), result in zip(todo, results, strict=True):
            if result.outcome != "done":
                raise MpilabError(f"bcast_{algorithm} on {size} ranks: {result.outcome}")
            rows.append((kind, size, algorithm, count, segment, seconds_of(result)))
        if on_rows:
            on_rows(TABLE.array(rows))
    return TABLE.array(rows)


def _kernel_of(algorithm: str) -> dict[str, Any]:
    """What a Case says of the kernel. A pipeline is a single chain; students write bcast_pipeline
    in lab 01, so a handout may be without the kit's."""
    if algorithm == "pipeline":
        return {"function": "bcast_chain", "fanout": 1}
    return {"function": f"bcast_{algorithm}"}


def _is_there(kind: str, ranks: int) -> bool:
    *_, unit, most = KINDS[kind]
    return ranks % unit == 0 and ranks <= most


def segment_of(algorithm: str, ranks: int, size: int) -> int:
    """Bytes of a segment: for a pipeline, the cheapest in the model, in multiples of 4 KiB; for
    other algorithms, 0."""
    if algorithm != "pipeline" or ranks < 3:
        return 0
    return max(
        LEAST_SEGMENT, int(models.best_segment("bcast", algorithm, ranks, size, LINK)) >> 12 << 12
    )


def crossings(rows: NDArray[Any], kind: str, algorithm: str, tree: str = TREE) -> dict[int, float]:
    """{ranks: bytes from which `algorithm` stays faster than `tree`}, from rows of ROW.

    Between two sizes, times are interpolated linearly on logarithmic axes. nan if the tree is
    faster at the largest size, 0 if it never is.
    """
    found = {}
    chosen = rows[rows["kind"] == kind]
    for ranks in np.unique(chosen["ranks"]).tolist():
        here = chosen[chosen["ranks"] == ranks]
        first, second = (
            dict(here[here["algorithm"] == name][["bytes", "seconds"]].tolist())
            for name in (tree, algorithm)
        )
        sizes = sorted(first.keys() & second.keys())
        if sizes:
            found[ranks] = _crossing(sizes, [log(second[one] / first[one]) for one in sizes])
    return found


def _crossing(sizes: list[int], lost: list[float]) -> float:
    """The size from which `lost`, the log of the second's time divided by the first's, is below
    0."""
    slower = [place for place, one in enumerate(lost) if one >= 0]
    if not slower:
        return 0.0
    last = slower[-1]
    if last == len(sizes) - 1:
        return float("nan")
    share = lost[last] / (lost[last] - lost[last + 1])
    return exp((1 - share) * log(sizes[last]) + share * log(sizes[last + 1]))


def as_sweep(rows: NDArray[Any]) -> NDArray[Any]:
    """Rows of one kind of cluster as sweep rows (mpilab.measure.sweep_table.ROW), for figures."""
    table = np.zeros(len(rows), SWEPT)
    table["collective"], table["library"], table["number"] = "bcast", "ours", -1
    for name in ("algorithm", "ranks", "bytes"):
        table[name] = rows[name]
    # Without segments: a pipeline is one line, although its segments differ by size.
    for name in ("span_s", "mean_s", "max_s", "min_s"):
        table[name] = rows["seconds"]
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    """Simulate all of RANKS and SIZES on both kinds of cluster; write the file after each one."""
    file = TABLE.parser().parse_args(arguments).file
    simulate(progress=True, on_rows=lambda rows: write(rows, file))


if __name__ == "__main__":
    TABLE.run(main)
