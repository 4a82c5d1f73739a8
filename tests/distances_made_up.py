"""Tables of distances with known parameters."""

import numpy as np

from mpilab.measure.distances import ROW, SIZES
from mpilab.models import LogGP

TRUTH = {
    "same core": LogGP(1e-7, 3e-8, 5e-8, 1e-10),
    "shared L3": LogGP(2e-7, 3e-8, 8e-8, 2e-10),
    "other socket": LogGP(5e-7, 4e-8, 1e-7, 3e-10),
}


def table_of(truth, repetitions=5, noise=0.05, sizes=SIZES, seed=3):
    """What measuring would return if these LogGP models held."""
    random = np.random.default_rng(seed)
    rows = []
    for name, model in truth.items():
        for size in sizes:
            seconds = {
                "one_way": model.time(size),
                "send_overhead": model.o,
                "receive_overhead": model.o,
                "gap": model.g + max(size - 1, 0) * model.G,
            }
            for repetition in range(repetitions):
                rows += [
                    (name, quantity, size, repetition, exact * random.lognormal(0, noise))
                    for quantity, exact in seconds.items()
                ]
    return np.array(rows, ROW)
