"""Ranks with pretended places: what MPI tells a kernel about hosts agrees with them."""

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.cases.data import GUARD_BYTES
from mpilab.hosts.orders import places_of
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from tests.c_kernels import build_kernels

# Each kernel writes one number into block 0 of its receive buffer.
TELL = "((int *)recvbuf)[0]"
KERNELS = {
    "size_of_node": f"""
    MPI_Comm node;
    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_size(node, &{TELL});
    return MPI_Comm_free(&node);
""",
    "even_ranks_of_node": f"""
    MPI_Comm node;
    const int type = rank % 2 == 0 ? MPI_COMM_TYPE_SHARED : MPI_UNDEFINED;
    int err = MPI_Comm_split_type(comm, type, 0, MPI_INFO_NULL, &node);
    if (err != MPI_SUCCESS)
        return err;
    {TELL} = 0;
    if (node == MPI_COMM_NULL)
        return MPI_SUCCESS;
    MPI_Comm_size(node, &{TELL});
    return MPI_Comm_free(&node);
""",
    "backwards": f"""
    MPI_Comm node;
    int err = MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, -rank, MPI_INFO_NULL, &node);
    if (err != MPI_SUCCESS)
        return err;
    MPI_Comm_rank(node, &{TELL});
    return MPI_Comm_free(&node);
""",
    "last_letter_of_name": f"""
    char name[MPI_MAX_PROCESSOR_NAME];
    int length;
    const int err = MPI_Get_processor_name(name, &length);
    {TELL} = (unsigned char)name[length - 1];
    return err;
""",
    "first_letter_of_group": f"""
    {TELL} = (unsigned char)mpilab_place()->group[0];
    return MPI_SUCCESS;
""",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return build_kernels(tmp_path_factory.mktemp("placement"), KERNELS)


@pytest.fixture
def told(library):
    """A function: what each rank of a kernel reports on these places."""

    def of(name, places):
        placed = places_of(places)
        case = Case("allgather", len(placed), 1, places=placed)
        (result,) = run_cases(library, f"allgather_{name}", [case])
        assert result.outcome == DONE, result.hang or result.detail
        assert [output.returned for output in result.outputs] == [0] * len(placed)
        return [
            int(output.received[GUARD_BYTES : GUARD_BYTES + 4].view(np.int32)[0])
            for output in result.outputs
        ]

    return of


def test_ranks_of_a_node_share_its_memory(told):
    assert told("size_of_node", "1x2x2 rr") == [2, 2, 2, 2]
    assert told("size_of_node", "a/n1 a/n2 a/n1 a/n1") == [3, 1, 3, 3]


def test_nodes_of_two_groups_may_have_the_same_name(told):
    assert told("size_of_node", "a/n1 b/n1 a/n1 b/n2") == [2, 1, 2, 1]


def test_a_rank_may_take_no_part(told):
    assert told("even_ranks_of_node", "a/n1*4 a/n2*2") == [2, 0, 2, 0, 1, 0]


def test_the_key_decides_the_order_on_a_node(told):
    assert told("backwards", "1x2x2 rr") == [1, 1, 0, 0]


def test_names_are_those_of_the_places(told):
    assert told("last_letter_of_name", "a/n1 b/n7") == [ord("1"), ord("7")]
    assert told("first_letter_of_group", "a/n1 b/n7") == [ord("a"), ord("b")]
