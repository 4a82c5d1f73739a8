"""What is cached of a communicator's topology is freed with it (src_c/common/topology/cache.c)."""

import pytest

from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.hosts.orders import places_of
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT
from tests.src_c.counted_memory import build_counted

# The bcasts build trees for two roots; the leaders of groups get a communicator. All of it is
# cached, and must be freed. Bytes are counted here, communicators by the recorder.
KERNEL = """
int mpilab_group_leaders(MPI_Comm comm, MPI_Comm *leaders);

static int cycle(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    const size_t before = held;
    MPI_Comm copy, leaders;
    int size;
    MPI_Comm_size(comm, &size);
    int err = MPI_Comm_dup(comm, &copy);
    if (err == MPI_SUCCESS)
        err = bcast_node_group(buffer, count, datatype, root, copy);
    if (err == MPI_SUCCESS)
        err = bcast_node_group(buffer, count, datatype, (root + 1) % size, copy);
    if (err == MPI_SUCCESS)
        err = mpilab_group_leaders(copy, &leaders);
    const int is_kept = held > before;
    if (err == MPI_SUCCESS)
        err = MPI_Comm_free(&copy);
    return err == MPI_SUCCESS && (!is_kept || held != before) ? MPI_ERR_NO_MEM : err;
}

MPILAB_BCAST(counted)
{
    int err = MPI_SUCCESS;
    for (int i = 0; i < 100 && err == MPI_SUCCESS; i++)
        err = cycle(buffer, count, datatype, root, comm);
    return err == MPI_SUCCESS && held != 0 ? MPI_ERR_NO_MEM : err;
}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The shared object of KERNEL, with all memory of topologies counted."""
    src = ROOT / "src_c"
    watched = [
        *src.glob("common/topology/*.c"),
        *src.glob("common/tree/*.c"),
        src / "bcast" / "node_group.c",
    ]
    return build_counted(tmp_path_factory.mktemp("topology"), KERNEL, watched=watched)


@pytest.mark.parametrize("places", ["2x2x2 rr", "1x1x3 seq", "3x1x1 seq"])
def test_nothing_is_left_after_many_communicators_whose_topology_was_asked_for(places, counted):
    places = places_of(places)
    case = Case("bcast", len(places), 9, places=places, root=1)
    (result,) = run_cases(counted, "bcast_counted", [case], limit=60.0)
    assert result.outcome == DONE, result.hang or result.detail
    assert [output.returned for output in result.outputs] == [0] * case.ranks
    assert [len(rank.leaked) for rank in result.recording.ranks] == [0] * case.ranks
    assert compare(case, result.outputs) == []
