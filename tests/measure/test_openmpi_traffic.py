"""Open MPI's algorithms send what is stated here, message for message."""

import pytest
from openmpi_runs import monitored

from mpilab.errors import InputError
from mpilab.kernels import openmpi
from mpilab.measure import openmpi_traffic
from mpilab.measure.openmpi_traffic import (
    PATTERNS,
    Counted,
    Shape,
    cut,
    expected,
    from_messages,
    matching,
    read,
    spread,
)

ROOTED = ("bcast", "gather", "scatter", "reduce")
SUMS = ("reduce", "allreduce")
# Numbers of elements, small and large, and relevant segments in bytes.
SEGMENTS = {1: (0,), 5: (0, 10), 1009: (0, 10, 600)}


def shapes(collective, name, ranks):
    """Everything that may change what an algorithm sends, on this number of ranks."""
    if collective == "barrier":
        return [Shape(ranks)]
    size = 4 if collective in SUMS else 1
    roots = {0, 1, ranks - 1} if collective in ROOTED else {0}
    tuned = {"chain": [(0, 0), (2, 0)], "knomial": [(0, 0), (0, 3)]}
    return [
        Shape(ranks, count, size, root, segment, fanout, radix)
        for count, segments in SEGMENTS.items()
        for segment in segments
        for root in roots
        for fanout, radix in tuned.get(name, [(0, 0)])
    ]


def everything(ranks):
    """(collective, number, Shape) of all of Open MPI's algorithms on this number of ranks."""
    return [
        (collective, number, shape)
        for collective in PATTERNS
        for number, name in openmpi.algorithms()[collective].items()
        if name != "two_proc" or ranks == 2
        for shape in shapes(collective, name, ranks)
        if number or not shape.segment
    ]


def run_everything(ranks):
    asked = everything(ranks)
    substituted = set()
    for (collective, number, shape), sent in zip(asked, monitored(asked), strict=True):
        name = openmpi.algorithms()[collective][number]
        where = f"{collective} {name}: {shape}: {sent.describe()}"
        if number == 0:
            plain = Shape(ranks, shape.count, shape.element_bytes, shape.root)
            assert matching(collective, sent, plain), f"nothing fits the default of {where}"
            continue
        patterns = expected(collective, name, shape)
        if patterns:
            assert any(sent == pattern for pattern in patterns), where
        else:
            # Open MPI ran another algorithm, which is detected and known.
            like = matching(collective, sent, shape)
            assert like and name not in like, where
            substituted.add((collective, name))
    return substituted


@pytest.mark.parametrize("ranks", [2, 3, 4, 5])
def test_every_algorithm_sends_what_it_must_and_every_substitution_is_seen(ranks):
    substituted = run_everything(ranks)
    always = {
        ("bcast", "scatter_allgather"),
        ("bcast", "split_binary_tree"),
        ("allreduce", "ring"),
        ("allreduce", "segmented_ring"),
    }
    assert always <= substituted
    assert (("allgather", "recursive_doubling") in substituted) == (ranks in (3, 5))
    assert (("allgather", "neighbor") in substituted) == (ranks in (3, 5))


@pytest.mark.slow
@pytest.mark.parametrize("ranks", [6, 7, 8])
def test_so_does_every_algorithm_on_more_ranks(ranks):
    run_everything(ranks)


@pytest.mark.parametrize("ranks", range(1, 34))
def test_every_tree_reaches_every_rank_once(ranks):
    built = [
        openmpi_traffic.chain(ranks, 1),
        openmpi_traffic.chain(ranks, 4),
        openmpi_traffic.pipeline(ranks),
        openmpi_traffic.binary(ranks),
        openmpi_traffic.binomial(ranks),
        openmpi_traffic.in_order_binomial(ranks),
        openmpi_traffic.knomial(ranks, 3),
    ]
    for edges in built:
        assert sorted(child for _, child in edges) == list(range(1, ranks))
        assert all(parent < child for parent, child in edges)
    edges = openmpi_traffic.in_order_binary(ranks)
    assert sorted(child for _, child in edges) == list(range(ranks - 1))


def test_trees_look_as_open_mpi_draws_them():
    assert set(openmpi_traffic.binary(7)) == {(0, 1), (0, 2), (1, 3), (1, 5), (2, 4), (2, 6)}
    assert set(openmpi_traffic.binomial(8)) == {
        (0, 1),
        (0, 2),
        (1, 3),
        (0, 4),
        (1, 5),
        (2, 6),
        (3, 7),
    }
    assert set(openmpi_traffic.in_order_binary(9)) == {
        (8, 7),
        (8, 3),
        (7, 6),
        (7, 5),
        (5, 4),
        (3, 2),
        (3, 1),
        (1, 0),
    }


def test_a_message_is_cut_where_open_mpi_cuts_it():
    assert Shape(2, 10, 4, segment=12).pieces() == [3, 3, 3, 1]
    assert Shape(2, 10, 4, segment=15).pieces() == [4, 4, 2]  # 3.75 elements count as 4
    assert Shape(2, 10, 4, segment=14).pieces() == [3, 3, 3, 1]
    assert Shape(2, 10, 4, segment=3).pieces() == [10]  # no element fits
    assert Shape(2, 10, 4, segment=40).pieces() == [10]
    assert cut(0, 0) == []
    assert spread(8, 3) == [3, 3, 2]


def test_one_rank_alone_sends_nothing():
    for collective, patterns in PATTERNS.items():
        for name in patterns:
            (nothing,) = expected(collective, name, Shape(1, 8))
            assert nothing.messages.sum() == 0


def test_an_algorithm_whose_messages_nobody_knows_is_an_error_that_names_the_known_ones():
    with pytest.raises(InputError, match="'bine'.*not known here.*linear_sync"):
        expected("gather", "bine", Shape(2, 8))


def test_counts_are_equal_only_if_messages_and_bytes_are():
    one = from_messages(2, [(0, 1, 8)], 1)
    assert one == from_messages(2, [(0, 1, 2)], 4)
    assert one != from_messages(2, [(0, 1, 4), (0, 1, 4)], 1)
    assert one != from_messages(2, [(1, 0, 8)], 1)
    assert one != 8
    assert one + one == Counted(one.messages * 2, one.bytes * 2)
    assert one.describe() == "1 messages, 8 bytes: 0→1 1×"


def test_a_count_that_is_not_whole_is_refused(tmp_path):
    with pytest.raises(InputError, match="3.0.mon: the count of messages"):
        read(tmp_path, 3, 2)
    (tmp_path / "3.0.mon").write_bytes(b"MPILABM1" + bytes(20))
    with pytest.raises(InputError, match="3.0.mon: the count of messages"):
        read(tmp_path, 3, 2)
