"""Open MPI's collectives under a rules file, as any program would call them, for these tests."""

import tempfile

from mpilab.kernels import build, openmpi
from mpilab.measure import openmpi_traffic
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.tuning import comparison


def sent(path, points, **how):
    """Counted of each (collective, ranks, bytes) with the rules file `path`; None if the call or
    the program failed."""
    cases = [comparison.case_of_rule(*point, monitor=True, **how) for point in points]
    # Spinning ranks must not wait for one another because of other work on the machine.
    patient = openmpi.yielding(2, cores=1)
    with tempfile.TemporaryDirectory() as kept:
        results = run_cases(
            build.need(build.KERNELS),
            "bcast_openmpi",
            cases,
            keep=kept,
            settings=comparison.settings(path) | patient,
        )
        return [
            openmpi_traffic.read(kept, place, case.ranks) if result.outcome == DONE else None
            for place, (case, result) in enumerate(zip(cases, results, strict=True))
        ]
