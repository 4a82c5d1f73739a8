"""What the topology-aware kernels of bcast and reduce do beyond what test_topology_kernels.py tests
for all such kernels: which rank carries how much, how early, and with many segments at once.
"""

import ctypes
import subprocess

import pytest

from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import COLLECTIVES, Case
from mpilab.cases.output import compare
from mpilab.hosts.places import Place
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT

AHEAD = 4  # MPILAB_AHEAD


def placed(hosts):
    """Places from a text: 'a1 a2 b1' are hosts 1 and 2 of group a and host 1 of group b."""
    return tuple(Place(name, name[0]) for name in hosts.split())


DEALT = placed("a1 b1 c1 a2 b2 c2 a1 b1 c1 a2 b2 c2")
UNEVEN = placed("b1 a1 a2 a1 c1 a1 b1 a2 a3 b2 a3")


def run(cases):
    """The Results of cases, all of which completed with the correct bytes."""
    results = run_cases(KERNELS, "", cases, limit=60.0)
    assert len(results) == len(cases)
    for result in results:
        case = f"{result.case.function}, {result.case.describe()}"
        assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
        assert [output.returned for output in result.outputs] == [0] * result.case.ranks, case
        assert [one.describe() for one in compare(result.case, result.outputs)] == [], case
    return results


def case_of(function, places, **shape):
    return Case(function.partition("_")[0], len(places), function=function, places=places, **shape)


def between(result, level):
    """Bytes from each node (or group) to each other one: int array [from, to]."""
    _, volume = result.recording.matrix()
    at, many = getattr(result.case.levels, level), getattr(result.case.levels, f"{level}s")
    sums = [[int(volume[at == a][:, at == b].sum()) for b in range(many)] for a in range(many)]
    return [[0 if a == b else sums[a][b] for b in range(many)] for a in range(many)]


# More segments than a rank has slots for, with a remainder, and elements with holes.
@pytest.mark.parametrize(
    "function", ["bcast_pipelined", "bcast_multilane", "bcast_circulant", "reduce_pipelined"]
)
def test_many_segments_arrive_whole_whatever_the_datatype(function):
    about = COLLECTIVES[function.partition("_")[0]]
    run(
        [
            case_of(
                function,
                places,
                count=1003,
                root=root,
                segment=segment,
                datatype=datatype,
                in_place=in_place,
                strict=strict,
            )
            for places in (DEALT, UNEVEN)
            for root in (0, len(places) - 1)
            for segment in (60, 512)
            for datatype, strict in (("int", True), ("vector", False), ("shifted", False))
            for in_place in ((False, True) if about.in_place else (False,))
        ]
    )


@pytest.mark.parametrize("places", [DEALT, UNEVEN], ids=["dealt", "uneven"])
def test_a_pipeline_brings_a_message_over_each_link_once_in_each_direction(places):
    cases = [
        case_of(f"{collective}_pipelined", places, count=500, segment=100, root=root)
        for collective in ("bcast", "reduce")
        for root in range(len(places))
    ]
    for result in run(cases):
        carried = between(result, "group")
        into = [sum(column) for column in zip(*carried, strict=True)]
        out = [sum(row) for row in carried]
        # A chain: no rank receives or sends the message twice, and there is one at either end.
        assert sorted(into) == sorted(out) == [0] + [2000] * (len(carried) - 1)
        assert max(map(max, between(result, "node"))) == 2000


def test_a_pipeline_has_its_first_segments_on_their_way_before_the_last_has_come():
    """Six ranks in a chain: 64 segments take 5 + 63 // 4 rounds, not 5 + 63, nor 5 * 64."""
    places = placed("a1 b1 c1 d1 e1 f1")
    cases = [
        case_of(f"{name}_pipelined", places, count=64, segment=4, root=3)
        for name in ("bcast", "reduce")
    ]
    for result in run(cases):
        messages = result.recording.messages
        assert (result.recording.rounds, len(messages)) == (5 + 63 // AHEAD, 5 * 64)


def test_pipelines_cut_a_long_message_by_themselves():
    places = placed("a1 b1 a1 b1")
    functions = ("bcast_pipelined", "bcast_circulant", "reduce_pipelined")
    cases = [case_of(function, places, count=100000) for function in functions]
    for result in run(cases):
        assert len(result.recording.messages) == 3 * 25  # of 16 KiB
        assert cost_of(result.case.function).at(result.case)[1] == 3 * 25


def test_all_ranks_of_a_node_carry_the_same_share_on_as_many_lanes():
    """12 ranks, two on each of six nodes: every rank gets half of the message from another node."""
    for result in run([case_of("bcast_multilane", DEALT, count=1000, root=7)]):
        _, volume = result.recording.matrix()
        crosses = result.case.levels.between_nodes()
        received = (volume * crosses).sum(axis=0)
        node = result.case.levels.node
        assert [int(bytes) for bytes in received] == [
            0 if node[rank] == node[7] else 2000 for rank in range(12)
        ]


def test_lanes_are_as_many_as_ranks_on_the_smallest_node():
    """Nodes of three and two ranks: the third rank gets everything from its neighbors."""
    places = placed("a1 a2 a1 a2 a1")
    (result,) = run([case_of("bcast_multilane", places, count=100, root=1)])
    _, volume = result.recording.matrix()
    assert volume[1, 0] == volume[3, 2] == 200
    assert volume[0, 4] == volume[2, 4] == 200
    assert volume[1, [2, 4]].sum() == volume[3, [0, 4]].sum() == 0


@pytest.mark.parametrize("ranks", [*range(1, 18), 24])
def test_a_circulant_broadcast_takes_as_few_rounds_as_there_can_be(ranks):
    """The lower bound for S segments, of which a rank sends and receives one in a round."""
    roots = sorted({0, ranks // 2, ranks - 1})
    cases = [
        Case("bcast", ranks, segments, root=root, segment=4, function="bcast_circulant")
        for root in roots
        for segments in (1, 2, 3, 7, 40)
    ]
    for result in run(cases):
        segments, messages = result.case.count, result.recording.messages
        least = (ranks - 1).bit_length() + segments - 1 if ranks > 1 else 0
        assert (result.recording.rounds, len(messages)) == (least, (ranks - 1) * segments)


class Schedule(ctypes.Structure):
    """struct mpilab_circulant."""

    _fields_ = [
        ("rounds", ctypes.c_int),
        ("skip", ctypes.c_int * 33),
        ("send", ctypes.c_int * 32),
        ("receive", ctypes.c_int * 32),
    ]


@pytest.fixture(scope="module")
def schedules(tmp_path_factory):
    """A function: the schedules of all ranks of a size, as (rounds, [skips, sends, receives])."""
    library = tmp_path_factory.mktemp("circulant") / "circulant.so"
    source = ROOT / "src_c" / "common" / "tree" / "circulant.c"
    subprocess.run(["cc", "-std=c11", "-O2", "-shared", "-fPIC", source, "-o", library], check=True)
    compute = ctypes.CDLL(str(library)).mpilab_circulant_schedule

    def of(size):
        found = []
        for rank in range(size):
            one = Schedule()
            compute(rank, size, ctypes.byref(one))
            found.append([list(part)[: one.rounds] for part in (one.skip, one.send, one.receive)])
        return found

    return of


@pytest.mark.parametrize(
    "sizes", [range(1, 70), (127, 128, 129, 500, 1000, 1023, 1025, 4095)], ids=["small", "large"]
)
def test_circulant_schedules_fulfil_the_conditions_of_a_round_optimal_broadcast(sizes, schedules):
    """Träff's conditions, from which it follows that blocks are always there when they are sent."""
    for size in sizes:
        found = schedules(size)
        rounds = (size - 1).bit_length()
        for rank, (skips, sends, receives) in enumerate(found):
            assert len(skips) == rounds
            for skip, sent, k in zip(skips, sends, range(rounds), strict=True):
                assert sent == found[(rank + skip) % size][2][k]
            if rank == 0:
                assert sends == list(range(rounds))
                continue
            # In a phase, all blocks of the previous one, except one that arrived early: the rank's
            # own base.
            (base,) = [block for block in receives if block >= 0]
            assert set(receives) == {base, *range(-rounds, 0)} - {base - rounds}
            for k in range(rounds):
                if (rank + skips[k]) % size != 0:
                    assert sends[k] in [*receives[:k], base - rounds]
