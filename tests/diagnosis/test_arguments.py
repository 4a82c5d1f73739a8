"""A kernel's arguments explain null pointers, MPI_IN_PLACE and divisions by zero."""

import pytest

from mpilab.cases.case import Case
from mpilab.diagnosis import collectives
from mpilab.diagnosis.model import Place


@pytest.mark.parametrize(
    ("collective", "name"), [("gather", "recvbuf"), ("reduce", "recvbuf"), ("scatter", "sendbuf")]
)
def test_the_buffer_that_only_the_root_has_is_null_elsewhere(collective, name):
    case = Case(collective, 4, 2, root=2)
    said = collectives.null_buffer(case, 1)
    assert said.startswith(f"On rank 1 {name} is NULL: in a {collective} only the root has a")
    assert (
        "Does the code assume that rank 0 is the root? It is rank 2 here."
    ) in collectives.null_buffer(case, 0)
    assert collectives.null_buffer(case, 2) == collectives.null_buffer(case, None) == ""


@pytest.mark.parametrize("collective", ["allgather", "allreduce", "bcast"])
def test_where_all_ranks_have_the_same_buffers_none_is_null(collective):
    assert collectives.null_buffer(Case(collective, 3, 2), 1) == ""


@pytest.mark.parametrize(
    ("collective", "said"),
    [
        ("allgather", "there is no send buffer, and your block is already in the receive buffer"),
        ("gather", "there is no send buffer at the root, and your block is"),
        ("reduce", "there is no send buffer at the root, and your data are"),
        ("allreduce", "there is no send buffer, and your data are"),
        (
            "alltoallv",
            "there is no send buffer, and what you send is already in the receive buffer",
        ),
        ("scatter", "the root has no receive buffer, and its own block stays where it is"),
    ],
)
def test_what_in_place_means_differs(collective, said):
    assert said in collectives.in_place(Case(collective, 2, 2, in_place=True))


class Ran:
    """The parts of an Evidence that are needed."""

    library = "kernel.so"

    def __init__(self, case):
        self.result = type("Result", (), {"case": case})()


def said(monkeypatch, case, *lines):
    monkeypatch.setattr(
        "mpilab.diagnosis.collectives.source_line", lambda library, file, line: lines[line - 1]
    )
    return collectives.zero_tunables(Ran(case), Place(len(lines)))


def test_tunables_that_are_zero_are_named_if_the_kernel_uses_them(monkeypatch):
    line = "const long bytes = mpilab_tuning.segment_bytes;"
    assert said(monkeypatch, Case("bcast", 2, 4), line, "count / bytes").startswith(
        "In this run mpilab_tuning.segment_bytes is 0, which means the algorithm's default"
    )
    assert said(monkeypatch, Case("bcast", 2, 4, segment=8), line, "count / bytes") == ""
    assert said(monkeypatch, Case("bcast", 2, 4), "count / bytes", "") == ""
    assert collectives.zero_tunables(Ran(Case("bcast", 2, 4)), None) == ""
