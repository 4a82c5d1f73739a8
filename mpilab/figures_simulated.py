"""What it costs to simulate: wall time of one run under SimGrid."""

import time

from mpilab.bench import figure
from mpilab.errors import MpilabError

BYTES = 64 * 1024


def _seconds(platform, ranks, repetitions):
    """Wall seconds of a whole simulated run of bcast_binomial, each time from its start."""
    from mpilab.harness import Case
    from mpilab.result import DONE
    from mpilab.simulated import kernels, simulate

    library = kernels()  # built before the clock runs
    case = Case("bcast", ranks, BYTES // 4, record=False, dump=False)
    found = []
    for _ in range(repetitions):
        begin = time.monotonic()
        (result,) = simulate(library, "bcast_binomial", [case], platform)
        found.append(time.monotonic() - begin)
        if result.outcome != DONE:
            raise MpilabError(f"bcast_binomial on {platform} did not end well: {result.outcome}")
    return found


@figure("s", "≤ 0.15", "wall time of one smpirun: 64 KB by bcast_binomial on 2 hosts of 8 ranks")
def simulate_bcast_16_seconds():
    """How long it takes to simulate a broadcast on 16 ranks."""
    return _seconds("fat-tree-2x8", 16, 15)


@figure("s", "≤ 15", "wall time of one smpirun: 64 KB by bcast_binomial on 128 hosts of 8 ranks")
def simulate_bcast_1024_seconds():
    """How long it takes to simulate a broadcast on 1,024 ranks."""
    return _seconds("fat-tree-128x8", 1024, 5)
