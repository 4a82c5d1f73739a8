"""A message that is changed while it is under way is found in strict mode, whatever has arrived."""

import pytest

from mpilab.cases.case import Case
from mpilab.diagnosis import diagnose
from mpilab.kernels import build, simgrid
from mpilab.runners.mpirun import run_cases
from mpilab.runners.simgrid import simulate

# A ring; CHANGE may change what is sent.
RING = """
MPILAB_ALLGATHER(NAME)
{
    int rank, size, bytes, copy[256], next[256];
    MPI_Request request;
    (void)recvcount, (void)recvtype;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Type_size(sendtype, &bytes);
    memcpy(copy, sendbuf, (size_t)(sendcount * bytes));
    memcpy((char *)recvbuf + rank * sendcount * bytes, copy, (size_t)(sendcount * bytes));
    MAKE
    for (int i = 1; i < size; i++) {
        START /* NAME */
        CHANGE
        MPI_Recv(next, sendcount, sendtype, (rank + size - 1) % size, 1, comm, MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        memcpy(copy, next, sizeof copy);
        memcpy((char *)recvbuf + (rank - i + size) % size * sendcount * bytes, copy,
               (size_t)(sendcount * bytes));
    }
    FREE
    return MPI_SUCCESS;
}
"""
TO_NEXT = "(copy, sendcount, sendtype, (rank + 1) % size, 1, comm, &request);"
# Starts, with what comes before and after.
STARTS = {
    "isend": ("", "MPI_Isend" + TO_NEXT, ""),
    "issend": ("", "MPI_Issend" + TO_NEXT, ""),
    "persistent": (
        "MPI_Send_init" + TO_NEXT,
        "MPI_Start(&request);",
        "MPI_Request_free(&request);",
    ),
}
# A send to MPI_PROC_NULL reads nothing.
TO_NOBODY = """MPI_Request second;
        MPI_Isend(next, 4, MPI_INT, MPI_PROC_NULL, 1, comm, &second);
        memset(next, 0, sizeof next);
        MPI_Wait(&second, MPI_STATUS_IGNORE);"""
CHANGES = {"changed": "copy[0]++;", "unchanged": TO_NOBODY}
CASE = Case("allgather", 3, 4, strict=True)


def ring(start, change):
    text = RING.replace("NAME", f"{start}_{change}").replace("CHANGE", CHANGES[change])
    for word, by in zip(("MAKE", "START", "FREE"), STARTS[start], strict=True):
        text = text.replace(word, by)
    return text


SOURCE = '#include "mpilab.h"\n#include <string.h>\n' + "".join(
    ring(start, change) for start in STARTS for change in CHANGES
)


@pytest.fixture(scope="module", params=["native", "simulated"])
def told(request, tmp_path_factory):
    """A function: the Diagnosis of a ring."""
    folder = tmp_path_factory.mktemp("rings")
    if request.param == "native":
        library, run = build.build(SOURCE, folder).library, run_cases
    else:
        library, run = simgrid.build(SOURCE, folder, stem="rings").library, simulate
    return lambda name: diagnose(run(library, f"allgather_{name}", [CASE])[0])


@pytest.mark.parametrize("start", STARTS)
def test_a_send_that_is_changed_under_way_is_named_with_its_line(start, told):
    name = f"{start}_changed"
    (line,) = [n for n, text in enumerate(SOURCE.split("\n"), 1) if f"/* {name} */" in text]
    found = told(name)
    # Where the changed data has arrived, that is a note.
    said = found.headline if found.kind == "mpi-error" else found.notes[0]
    sends = f"2 {STARTS[start][1].partition('(')[0]} (line {line})"
    assert f"rank 0 changed the data of {sends} before they were complete" in said


@pytest.mark.parametrize("start", STARTS)
def test_a_send_whose_data_is_changed_after_its_end_is_right(start, told):
    assert told(f"{start}_unchanged") is None
