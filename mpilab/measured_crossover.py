"""Where one broadcast overtakes another on simulated clusters of 4 to 4,096 ranks: the file that
lab 06 shows beside what it simulates itself.

    python -m mpilab.measured_crossover [data/crossover.csv]      simulate, and write it

SimGrid's times depend on the messages alone, so whoever runs this gets the same file. The clusters
are of two kinds (KINDS): in one, a message costs the same between any two ranks, which is what the
α-β model assumes; in the other, groups of hosts share their uplinks, and the ranks are dealt out to
the hosts in turn.
"""

import argparse
from math import exp, log

import numpy as np
from tqdm import tqdm

from mpilab import models, published_csv
from mpilab.errors import InputError, MpilabError
from mpilab.harness import Case

MEASURED_CSV = published_csv.DATA / "crossover.csv"
FLAT, GROUPS = "flat", "groups"
# kind -> (platform for P ranks, order of the ranks, what P has to be a multiple of, most ranks)
KINDS = {FLAT: ("flat-{0}x1", "seq", 1, 4096), GROUPS: ("groups-4x{1}x8", "rr", 32, 1024)}
TREE = "binomial"
OTHERS = ("scatter_allgather", "scatter_allgather_ring", "pipeline")
RANKS = (4, 16, 64, 256, 1024, 4096)
SIZES = tuple(1 << power for power in range(8, 21))
# A ring's messages grow with the square of the ranks: 4,096 would take an hour.
MOST_RING_RANKS = 256
# Shorter ones are thousands of messages at a time, which take long to simulate.
LEAST_SEGMENT = 4096
# Of all ranks' buffers together.
MOST_BYTES = 512 << 20
# What a message costs on a flat cluster: the kit's usual links (mpilab.simulated.platforms).
LINK = models.Hockney(alpha=1.4e-6, beta=8e-11)
ROW = np.dtype([
    ("kind", "U8"), ("ranks", "i4"), ("algorithm", "U32"), ("bytes", "i8"), ("segment", "i8"),
    ("seconds", "f8"),
])  # fmt: skip
_EXAMPLE = "flat,64,binomial,1024,0,1.234e-05"


def simulate(ranks=RANKS, sizes=SIZES, kinds=tuple(KINDS), algorithms=(TREE, *OTHERS),
             most_bytes=MOST_BYTES, progress=False, on_rows=None):  # fmt: skip
    """Simulated seconds of broadcasts, array of ROW.

    ranks        numbers of ranks; a kind of cluster that has no such number is left out.
    sizes        bytes of the message; left out where all ranks' buffers exceed `most_bytes`.
    algorithms   of our broadcasts. A pipeline has the segments that cost least by the model.
    on_rows      is called with all rows so far whenever a cluster is done.

    Defaults take some ten minutes and 2 GiB of memory. Raises SetupError without SimGrid,
    InputError for an unknown kind, MpilabError for a kernel that does not come to its end.
    """
    from mpilab import simulated
    from mpilab.simulated.scaling import seconds_of

    for kind in kinds:
        if kind not in KINDS:
            raise InputError(f"kind {kind!r}: take one of {', '.join(KINDS)}")
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
            Case("bcast", size, count, "byte", segment=segment, record=False, dump=False,
                 function=f"bcast_{algorithm}")
            for algorithm, count, segment in todo
        ]  # fmt: skip
        results = simulated.simulate(simulated.kernels(), "", cases,
                                     platform.format(size, size // 32), order=order,
                                     limit=3600.0)  # fmt: skip
        for (algorithm, count, segment), result in zip(todo, results, strict=True):
            if result.outcome != "done":
                raise MpilabError(f"bcast_{algorithm} on {size} ranks: {result.outcome}")
            rows.append((kind, size, algorithm, count, segment, seconds_of(result)))
        if on_rows:
            on_rows(np.array(rows, ROW))
    return np.array(rows, ROW)


def _is_there(kind, ranks):
    *_, unit, most = KINDS[kind]
    return ranks % unit == 0 and ranks <= most


def segment_of(algorithm, ranks, size):
    """Bytes of a segment: of a pipeline what costs least by the model, in multiples of 4 KiB; of
    others 0."""
    if algorithm != "pipeline" or ranks < 3:
        return 0
    return max(
        LEAST_SEGMENT, int(models.best_segment("bcast", algorithm, ranks, size, LINK)) >> 12 << 12
    )


def crossings(rows, kind, algorithm, tree=TREE):
    """{ranks: bytes from which on `algorithm` stays faster than `tree`}, of rows of ROW.

    Between two sizes, times are straight lines over logarithms. nan where the tree is faster at the
    largest size, 0 where it never is.
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


def _crossing(sizes, lost):
    """Where `lost`, the logarithm of what the second takes longer, goes below 0 for good."""
    slower = [place for place, one in enumerate(lost) if one >= 0]
    if not slower:
        return 0.0
    last = slower[-1]
    if last == len(sizes) - 1:
        return float("nan")
    share = lost[last] / (lost[last] - lost[last + 1])
    return exp((1 - share) * log(sizes[last]) + share * log(sizes[last + 1]))


def as_sweep(rows):
    """Rows of one kind of cluster as those of a sweep (mpilab.sweeps.ROW), for its figures."""
    from mpilab.sweeps import ROW as SWEPT

    table = np.zeros(len(rows), SWEPT)
    table["collective"], table["library"], table["number"] = "bcast", "ours", -1
    for name in ("algorithm", "ranks", "bytes"):
        table[name] = rows[name]
    # A pipeline with segments that suit each size is one line, not one for each.
    for name in ("span_s", "mean_s", "max_s", "min_s"):
        table[name] = rows["seconds"]
    return table


def read(path=MEASURED_CSV):
    """The rows of a file that `write` has written; InputError where it cannot be read."""
    return published_csv.read(path, ROW, _EXAMPLE)


def write(rows, path=MEASURED_CSV):
    """Write rows of ROW as CSV; InputError where that cannot be."""
    published_csv.write(rows, path)


def main(arguments=None):
    """Simulate all of RANKS and SIZES on both kinds of cluster; the file grows with each."""
    parser = argparse.ArgumentParser(prog="python -m mpilab.measured_crossover")
    parser.add_argument("file", nargs="?", default=MEASURED_CSV, help=f"default: {MEASURED_CSV}")
    file = parser.parse_args(arguments).file
    simulate(progress=True, on_rows=lambda rows: write(rows, file))


if __name__ == "__main__":
    main()
