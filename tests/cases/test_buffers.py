"""What is in the buffers before and after, without MPI: layouts, filling, comparing, reading."""

import numpy as np
import pytest

from mpilab.cases.case import Case
from mpilab.cases.data import DATATYPES, GUARD_BYTES, datatype
from mpilab.cases.output import Difference, Output, compare
from mpilab.errors import InputError


def outputs(case):
    return [
        Output(rank, 0, after.copy(), case.regions(rank)[0].copy(), np.zeros((1, 2), np.int64))
        for rank, after in enumerate(case.expected())
    ]


@pytest.mark.parametrize("name", DATATYPES)
def test_data_bytes_of_elements_do_not_overlap_and_stay_in_the_extent(name):
    sent, received, factor = datatype(name)
    assert sent.size * factor == received.size
    for layout in (sent, received):
        places = layout.offsets(5)
        assert len(set(places.tolist())) == len(places) == 5 * layout.size
        assert places.min() >= 0 and places.max() < 5 * layout.extent
        assert len(layout.offsets(0)) == 0


def test_sizes_and_extents_are_those_of_the_c_harness():
    """src_c/runtime/harness/datatypes.c builds them; test_allgather_kernels.py compares."""
    sizes = {name: (datatype(name)[1].size, datatype(name)[1].extent) for name in DATATYPES}
    assert sizes == {
        "byte": (1, 1),
        "int": (4, 4),
        "contiguous": (12, 12),
        "vector": (24, 32),
        "struct": (13, 24),
        "shifted": (4, 16),
        "raised": (4, 28),
        "backward": (12, 20),
        "mixed": (24, 32),
        "double": (8, 8),
    }


def test_buffers_differ_by_seed_rank_and_direction_and_repeat():
    case = Case("allgather", 3, 50)
    sent, received = case.regions(0)
    assert len(sent) == 200 + 2 * GUARD_BYTES and len(received) == 600 + 2 * GUARD_BYTES
    assert (sent == case.regions(0)[0]).all()
    others = [case.regions(1)[0], Case("allgather", 3, 50, seed=2).regions(0)[0], received[:328]]
    for other in others:
        assert (sent == other).mean() < 0.05
    large = Case("allgather", 1, 1, seed=2**56 - 1).regions(0)[0]
    assert len(large) == 4 + 2 * GUARD_BYTES


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("name", DATATYPES)
def test_what_is_expected_holds_every_ranks_block_and_leaves_the_rest(name, in_place):
    case = Case("allgather", 3, 4, name, in_place)
    sent_layout, layout, factor = datatype(name)
    for rank, after in enumerate(case.expected()):
        before = case.regions(rank)[1]
        touched = np.zeros(len(after), bool)
        for source in range(3):
            places = GUARD_BYTES + source * 4 * layout.extent + layout.offsets(4)
            touched[places] = True
            sent, own = case.regions(source)
            block = (
                own[places] if in_place else (sent[GUARD_BYTES + sent_layout.offsets(4 * factor)])
            )
            assert (after[places] == block).all()
        assert (after[~touched] == before[~touched]).all()


@pytest.mark.parametrize("name", DATATYPES)
def test_every_single_byte_counts(name):
    case = Case("allgather", 2, 2, name)
    assert compare(case, outputs(case)) == []
    for place in range(len(case.regions(0)[1])):
        came = outputs(case)
        came[1].received[place] ^= 1
        (difference,) = compare(case, came)
        assert difference.rank == 1
    for place in range(len(case.regions(0)[0])):
        came = outputs(case)
        came[0].sent[place] ^= 1
        assert compare(case, came) == [Difference(0, notes=("the send buffer was changed",))]


def test_an_output_of_another_size_is_different():
    case = Case("allgather", 1, 2)
    (output,) = outputs(case)
    short = Output(0, 0, output.received[:-1], output.sent, output.spans_ns)
    assert compare(case, [short])[0].notes == ("the output has the wrong size",)


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (Difference(2, (3,)), "rank 2: block 3 is wrong"),
        (Difference(2, (3,), (3,)), "rank 2: block 3 is wrong (none of it was written)"),
        (Difference(2, (0, 3), (3,)), "rank 2: blocks 0, 3 are wrong (3 was never written)"),
        (
            Difference(2, (0, 3, 4), (3, 4)),
            "rank 2: blocks 0, 3, 4 are wrong (3, 4 were never written)",
        ),
        (Difference(2, (0, 3), (0, 3)), "rank 2: blocks 0, 3 are wrong (none of them was written)"),
        (
            Difference(1, notes=("the send buffer was changed",)),
            "rank 1: the send buffer was changed",
        ),
        (
            Difference(0, tuple(range(12))),
            "rank 0: blocks 0, 1, 2, 3, 4, 5, 6, 7, … (12 in all) are wrong",
        ),
    ],
)
def test_a_difference_is_told_in_words(difference, words):
    assert difference.describe() == words


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("allgathr", 2, 1), "collective 'allgathr' is unknown; write one of allgather"),
        (("allgather", 2, 1, "float"), "datatype 'float' is unknown; write one of byte, int"),
        (("allgather", 0, 1), "ranks=0: must be 1 or more"),
        (("allgather", 2, -1), "count=-1: must be 0 or more"),
    ],
)
def test_a_case_that_cannot_be_is_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        Case(*arguments)


def test_a_case_is_told_in_words_and_in_a_line():
    case = Case("allgather", 1, 7, "vector", True, True, True, seed=9)
    assert case.describe() == (
        "1 rank, count 7, datatype vector, MPI_IN_PLACE, ranks in reverse order, strict mode"
    )
    assert case.line(3) == (
        "id=3 collective=allgather count=7 datatype=vector in_place=1 reversed=1 strict=1 seed=9 "
        "record=1 dump=1 warmup=0 repetitions=1 snapshots=0 root=0 op=sum segment=0 fanout=0 "
        "radix=0 openmpi=-1 monitor=0"
    )
    assert case.block_bytes == 7 * 24


@pytest.mark.parametrize("keep", [0, 8, 63, 71, 72, 100, 150])
def test_a_torn_output_is_refused_with_its_name(keep, tmp_path):
    words = np.array([0, 1, 2, 0, 30, 20, 1, 0, 2], np.int64).tobytes()
    whole = b"MPILABO2" + words[8:] + bytes(50 + 16 + 32)
    path = tmp_path / "0.1.out"
    path.write_bytes(whole)
    assert Output.read(path).rank == 1
    path.write_bytes(whole[:keep])
    with pytest.raises(InputError, match="0.1.out: the harness's output file"):
        Output.read(path)
