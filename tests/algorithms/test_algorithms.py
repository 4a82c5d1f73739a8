"""The catalog lists all our kernels, their tunables and their costs, and rejects invalid input."""

import re

import pytest

from mpilab.algorithms import (
    COLLECTIVES,
    ROOTED,
    algorithm_of,
    algorithms,
    allgather,
    costs_of,
    counts,
    holdings,
    message_bytes,
    parts,
    schedule_in_segments,
    schedule_of,
    tunables,
)
from mpilab.algorithms.algorithm import blocks, pieces
from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import Case
from mpilab.errors import InputError
from mpilab.util.kit import ROOT
from tests.src_c.test_collective_kernels import ELSEWHERE

NAMES = [(collective, name) for collective in COLLECTIVES for name in algorithms(collective)]


@pytest.mark.parametrize("collective", COLLECTIVES)
def test_every_kernel_of_ours_has_a_schedule(collective):
    """Except topology-aware kernels: a schedule has no places."""
    files = {path.stem for path in (ROOT / "src_c" / collective).glob("*.c")}
    assert set(algorithms(collective)) == files - ELSEWHERE.get(collective, set())


@pytest.mark.parametrize("collective, name", NAMES)
def test_tunables_are_those_that_the_kernel_uses(collective, name):
    text = (ROOT / "src_c" / collective / f"{name}.c").read_text(encoding="utf-8")
    used = {word.removesuffix("_bytes") for word in re.findall(r"mpilab_tuning\.(\w+)", text)}
    assert set(tunables(collective, name)) == used


@pytest.mark.parametrize("collective, name", NAMES)
def test_what_is_cut_and_what_shapes_the_tree_are_as_the_header_says(collective, name):
    algorithm, header = algorithm_of(collective, name), cost_of(f"{collective}_{name}")
    tuned = {"fanout": algorithm.fanout, "radix": algorithm.radix, "": 0}
    assert tuned[header.tuned_by] == header.default
    if algorithm.cut and name != "linear_sync":
        assert algorithm.cut == header.cut


def counted(case, name):
    """(rounds, messages, bytes) of the schedule of a case with elements of 4 bytes."""
    added = counts(
        schedule_of(
            case.collective,
            name,
            case.ranks,
            root=case.root,
            count=case.count,
            element_bytes=4,
            segment=case.segment,
            fanout=case.fanout,
            radix=case.radix,
        )
    )
    return added.rounds, added.messages, added.total_bytes


@pytest.mark.parametrize("collective, name", NAMES)
def test_rounds_messages_and_bytes_are_those_of_the_kernels_header(collective, name):
    cost = cost_of(f"{collective}_{name}")
    for ranks in (*range(1, 18), 33, 64):
        for size, segment in ((0, 0), (1, 0), (61, 30), (40000, 0)):
            root = ranks - 1 if collective in ROOTED else 0
            size = 0 if collective == "barrier" else size
            case = Case(collective, ranks, size, root=root, segment=segment)
            assert counted(case, name) == cost.at(case), case.describe()


@pytest.mark.parametrize("fanout", [1, 2, 3])
def test_fan_out_and_radix_change_the_tree(fanout):
    for collective, name in (("bcast", "chain"), ("bcast", "binary"), ("reduce", "binary")):
        case = Case(collective, 14, 100, segment=36, fanout=fanout)
        assert counted(case, name) == cost_of(f"{collective}_{name}").at(case)
    case = Case("bcast", 14, 100, segment=36, radix=fanout + 1)
    assert counted(case, "knomial") == cost_of("bcast_knomial").at(case)


def test_costs_tell_the_bytes_of_the_busiest_sender():
    assert costs_of("bcast", "binomial", 8, 100).max_bytes_sent == 300
    assert costs_of("bcast", "pipeline", 8, 100, 10) == (16, 70, 700, 100)
    assert costs_of("gather", "binomial", 8, 100).max_bytes_sent == 400


def test_allgather_has_its_schedule_with_sizes_and_without():
    known, open_size = schedule_of("allgather", "bruck", 6, count=3), allgather.schedule("bruck", 6)
    assert known.rounds == open_size.rounds
    assert counts(known).total_bytes == counts(open_size, 3).total_bytes == 90
    assert message_bytes(known, known.rounds[1][0]) == 6
    assert message_bytes(open_size, open_size.rounds[1][0], 10) == 20


def test_without_a_count_no_block_is_empty():
    for collective, name in NAMES:
        if collective != "barrier":
            sizes = schedule_of(collective, name, 7).sizes
            assert all(sizes) or name == "split_binary", (collective, name)


def test_a_message_can_be_cut_into_a_number_of_segments():
    for collective, name in NAMES:
        for segments in (1, 5):
            schedule = schedule_in_segments(collective, name, 6, segments)
            if "segment" not in tunables(collective, name):
                assert schedule.rounds == schedule_of(collective, name, 6).rounds
            elif name == "linear_sync":
                assert schedule.blocks == (12 if segments == 1 else 18)
            else:
                cut = {"split_binary": 2, "segmented_ring": 6}.get(name, 1)
                assert schedule.sizes == (1,) * cut * segments
    with pytest.raises(InputError, match="segments=0: a message has at least one"):
        schedule_in_segments("bcast", "pipeline", 6, 0)


def test_a_size_told_twice_or_not_at_all_is_refused():
    with pytest.raises(InputError, match="bruck needs the size of a block; give block_bytes"):
        counts(allgather.schedule("bruck", 3))
    with pytest.raises(InputError, match="block_bytes=8.*linear knows.*omit block_bytes"):
        counts(schedule_of("bcast", "linear", 3), 8)


def test_holdings_are_for_what_is_handed_on_and_parts_for_what_is_put_together():
    with pytest.raises(InputError, match="use mpilab.schedules.parts"):
        holdings(schedule_of("reduce", "linear", 3))
    with pytest.raises(InputError, match="use mpilab.schedules.holdings"):
        parts(schedule_of("bcast", "linear", 3))


@pytest.mark.parametrize(
    "arguments, options, words",
    [
        (("broadcast", "ring", 4), {}, "'broadcast' is unknown; use one of allgather, bcast"),
        (("bcast", "ring", 4), {}, "'ring' is not an algorithm of bcast; use one of linear"),
        (("bcast", "linear", 0), {}, "ranks=0 .* give 1 or more"),
        (("bcast", "linear", 4), {"root": 4}, "root=4 .* give 0 to 3"),
        (("barrier", "tree", 4), {"root": 1}, "root=1 .* it has no root"),
        (("bcast", "linear", 4), {"count": -1}, "count=-1 .* give 0 or more"),
        (("bcast", "chain", 4), {"segment": -8}, "segment=-8"),
        (("bcast", "knomial", 4), {"radix": 1}, "radix=1 makes no tree"),
        (("bcast", "linear", 4), {"element_bytes": 0}, "element_bytes=0"),
    ],
)
def test_what_cannot_be_is_refused_with_the_remedy(arguments, options, words):
    with pytest.raises(InputError, match=words):
        schedule_of(*arguments, **options)


@pytest.mark.parametrize(
    "count, element_bytes, segment, cut",
    [
        (10, 4, 0, (10,)),
        (10, 4, 12, (3, 3, 3, 1)),
        (10, 4, 13, (3, 3, 3, 1)),
        (3, 4, 1, (1, 1, 1)),
        (3, 4, 99, (3,)),
        (0, 4, 8, (0,)),
    ],
)
def test_segments_are_whole_elements_and_only_the_last_is_shorter(
    count, element_bytes, segment, cut
):
    assert pieces(count, element_bytes, segment) == cut


def test_blocks_are_as_equal_as_can_be():
    assert blocks(10, 4) == (2, 3, 2, 3)
    assert blocks(2, 4) == (0, 1, 0, 1)
    assert blocks(0, 3) == (0, 0, 0)
