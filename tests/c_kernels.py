"""Kernels for tests, written in C in the test itself: build them, run one of them with mpirun."""

from mpilab.cases.case import Case
from mpilab.kernels.build import build
from mpilab.runners.mpirun import run_cases

PREAMBLE = """#include "mpilab.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
int usleep(unsigned);
"""


def source_of(bodies, preamble=PREAMBLE):
    """C text with one allgather_NAME for each name of `bodies`; a body knows `rank` and `size`."""
    kernels = [
        f"MPILAB_ALLGATHER({name});\nMPILAB_ALLGATHER({name})\n{{\n    int rank, size;\n"
        "    MPI_Comm_rank(comm, &rank);\n    MPI_Comm_size(comm, &size);\n"
        "    (void)sendbuf, (void)sendcount, (void)sendtype;\n"
        "    (void)recvbuf, (void)recvcount, (void)recvtype;\n"
        f"{body.strip(chr(10))}\n    return MPI_SUCCESS;\n}}\n"
        for name, body in bodies.items()
    ]
    return preamble + "\n".join(kernels)


def build_kernels(directory, bodies, preamble=PREAMBLE):
    """The shared object with these kernels."""
    return build(source_of(bodies, preamble), directory).library


def asked_for(request, *parameters):
    """The values of these parameters in the tests of this module that will run, as tuples.

    -k may have deselected some tests, and then their cases need not be run.
    """
    mine = [item for item in request.session.items if item.module is request.module]
    known = [item.callspec.params for item in mine if hasattr(item, "callspec")]
    return [tuple(map(each.get, parameters)) for each in known if {*parameters} <= {*each}]


def line_of(source, marker):
    """The number of the one line that holds `marker`."""
    (line,) = [number for number, text in enumerate(source.split("\n"), 1) if marker in text]
    return line


def run(library, name, *, ranks=2, count=4, limit=60.0, standstill=1.0, work=None, **case):
    """The Result of one case of allgather_NAME."""
    cases = [Case("allgather", ranks, count, **case)]
    (result,) = run_cases(
        library, f"allgather_{name}", cases, limit=limit, standstill=standstill, work=work
    )
    return result
