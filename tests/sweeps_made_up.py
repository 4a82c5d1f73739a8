"""Sweep tables with known α and β for each algorithm."""

import numpy as np

from mpilab.measure.sweep_table import ROW
from mpilab.models import Hockney, cost

SIZES = [1 << power for power in range(0, 23, 2)]


def models(collective, algorithms, seed=1, library="ours"):
    """A Hockney for each algorithm, all different."""
    random = np.random.default_rng(seed)
    return {
        (library, name): Hockney(1e-6 * random.uniform(0.5, 2), 1e-9 * random.uniform(0.5, 2))
        for name in algorithms
    }


def sweep(
    collective,
    truth,
    *,
    ranks=(2, 4, 8),
    sizes=SIZES,
    repetitions=5,
    noise=0.03,
    wild=0.0,
    seed=2,
    gamma=None,
    segment=0,
    cores=0,
    machine="",
):
    """A sweep whose times are those of the models `truth`, with some noise.

    wild   share of the points (not repetitions) that take five times as long.
    """
    random = np.random.default_rng(seed)
    rows = []
    for (library, algorithm), model in truth.items():
        for number in ranks:
            for size in sizes:
                seconds = cost(
                    collective,
                    algorithm,
                    number,
                    size,
                    model,
                    gamma=gamma,
                    segment=segment,
                    library=library,
                )
                seconds *= 5 if random.random() < wild else 1
                for repetition in range(repetitions):
                    span = (seconds or 1e-7) * random.lognormal(0, noise)
                    rows.append(
                        (
                            collective,
                            library,
                            algorithm,
                            -1,
                            number,
                            size,
                            segment,
                            0,
                            0,
                            cores,
                            machine,
                            repetition,
                            span,
                            span / 2,
                            span,
                            span / 3,
                        )
                    )
    return np.array(rows, ROW)
