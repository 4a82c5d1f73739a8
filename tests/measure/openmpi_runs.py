"""Open MPI's own collectives, each called once and monitored, for the tests of this folder."""

import tempfile

from mpilab.cases.case import Case
from mpilab.kernels import build, openmpi
from mpilab.measure import openmpi_traffic
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE


def monitored(asked, settings=None):
    """Counted of each (collective, number, Shape); all with the same number of ranks run in one
    mpirun."""
    cases = [
        Case(
            collective,
            shape.ranks,
            shape.count,
            "int" if shape.element_bytes == 4 else "byte",
            root=shape.root,
            segment=shape.segment,
            fanout=shape.fanout,
            radix=shape.radix,
            record=False,
            dump=False,
            openmpi=number,
            monitor=True,
            function=f"{collective}_openmpi",
        )
        for collective, number, shape in asked
    ]
    # Spinning ranks must not wait for one another because of other work on the machine.
    patient = openmpi.yielding(2, cores=1)
    with tempfile.TemporaryDirectory() as kept:
        results = run_cases(
            build.need(build.KERNELS),
            "bcast_openmpi",
            cases,
            keep=kept,
            settings=(settings or openmpi.CHOOSING) | patient,
        )
        for result in results:
            assert result.outcome == DONE, (result.case, result.detail, result.log)
        return [openmpi_traffic.read(kept, place, case.ranks) for place, case in enumerate(cases)]
