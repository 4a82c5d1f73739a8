"""What a kernel that calls MPI's own collectives sends, counted below MPI; claims of lab 01."""

import numpy as np
import pytest

from mpilab.errors import InputError
from mpilab.measure.openmpi_traffic import count
from mpilab.notebook import session, simulated


@pytest.mark.parametrize(
    ("ranks", "to"), [(2, [1]), (4, [1, 2, 3]), (8, [1, 2, 4]), (6, [1, 2, 4])]
)
def test_the_root_of_an_ibcast_sends_each_segment_to_all_of_four_ranks_or_down_a_binomial_tree(
    ranks, to
):
    sent = count("bcast_ibcast_openmpi", ranks, 5 * 1000 + 7, segment=1000)
    assert np.flatnonzero(sent.messages[0]).tolist() == to
    assert set(sent.messages[0][to]) == {6} and set(sent.bytes[0][to]) == {5007}
    assert sent.messages.sum() == 6 * (ranks - 1)


def test_segments_by_ibcast_are_right_for_every_count_and_timed_as_an_algorithm_of_open_mpi():
    table = session.sweep(
        ["bcast_ibcast_openmpi", "bcast_openmpi"],
        sizes=[0, 1, 8191, 8193, 100_000],
        ranks=[2],
        repetitions=2,
        progress=False,
        oversubscribe=True,
    )  # which compares each size first
    assert len(table) == 2 * 2 * 5 and set(table["library"]) == {"openmpi"}
    assert set(table["algorithm"]) == {"ibcast", "default"}


def test_simgrids_ibcast_is_refused_because_it_is_not_open_mpis():
    with pytest.raises(InputError, match="not simulated.*bcast_knomial with radix=2"):
        simulated.sweep(["bcast_ibcast_openmpi"], "flat-4x1", sizes=[8])


def test_the_tree_of_segments_is_faster_than_the_tree_in_one_piece_and_slower_than_the_chain():
    size = [1 << 18]

    def seconds(function, **tuning):
        (row,) = simulated.sweep([function], "flat-16x1", sizes=size, **tuning)
        return row["span_s"]

    whole, cut = (seconds("bcast_knomial", radix=2, segment=each) for each in (0, 8192))
    chain = seconds("bcast_chain", fanout=1, segment=8192)
    assert chain < cut < whole
    # The root sends log2 16 copies at 12.5 GB/s.
    assert 4 * size[0] / 12.5e9 < cut < 2 * 4 * size[0] / 12.5e9
