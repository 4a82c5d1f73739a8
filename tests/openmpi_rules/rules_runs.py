"""Open MPI's collectives under a rules file, as any program would call them, for these tests."""

import tempfile

from mpilab import build, openmpi
from mpilab.launch import run_cases
from mpilab.openmpi_rules import running
from mpilab.result import DONE
from mpilab.sweeps import counted


def sent(path, points, **how):
    """Counted of each (collective, ranks, bytes) with the rules file `path`; None where the call
    failed, or the program did."""
    cases = [running.case(*point, monitor=True, **how) for point in points]
    # Other work on the machine must not make ranks that spin wait for one another.
    patient = openmpi.yielding(2, cores=1)
    with tempfile.TemporaryDirectory() as kept:
        results = run_cases(build.need(build.KERNELS), "bcast_openmpi", cases, keep=kept,
                            settings=running.settings(path) | patient)  # fmt: skip
        return [
            counted.read(kept, place, case.ranks) if result.outcome == DONE else None
            for place, (case, result) in enumerate(zip(cases, results, strict=True))
        ]
