"""The alltoallv kernels: the correct bytes and nothing else for even, ragged and sparse counts, the
counts declared in their headers, and memory for other ranks' data within the budget.

test_topology_kernels.py tests what they have in common with all topology-aware kernels.
"""

from dataclasses import replace

import pytest

from mpilab.algorithms.formula import cost_of, names_of
from mpilab.cases.case import Case
from mpilab.cases.data import DATATYPES
from mpilab.cases.output import compare
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT
from tests.src_c.counted_memory import build_counted
from tests.src_c.test_topology_kernels import PLACES, REGULAR, placed

FLAT, ROUTED = ("linear", "pairwise"), ("leaders", "gathervs", "multilane")
ALGORITHMS = (*FLAT, *ROUTED)
COUNT = 37  # elements


def least_budget(places):
    """Bytes that are enough for one byte of each pair, whatever the route."""
    return 4 * len(places) ** 2


def cases(name, places):
    """Every pattern in place and not, every datatype, empty blocks, blocks in many pieces, some of
    which end within an element."""
    shape = {
        "collective": "alltoallv",
        "ranks": len(places),
        "places": places,
        "function": f"alltoallv_{name}",
    }
    made = [Case(**shape, count=count) for count in (0, 1, COUNT)]
    for pattern in ("even", "ragged", "sparse"):
        for in_place in (False, True):
            for datatype, budget in (("int", 0), ("mixed", 7 * least_budget(places))):
                made.append(
                    Case(
                        **shape,
                        count=COUNT,
                        pattern=pattern,
                        in_place=in_place,
                        datatype=datatype,
                        budget=budget,
                    )
                )
    made += [
        Case(**shape, count=5, pattern="ragged", datatype=datatype, budget=3 * least_budget(places))
        for datatype in DATATYPES
    ]
    made += [
        Case(**shape, count=COUNT, budget=2 * least_budget(places)),
        Case(**shape, count=COUNT, pattern="ragged", strict=True, budget=least_budget(places)),
        Case(**shape, count=COUNT, pattern="ragged", reversed=True),
    ]
    return made


@pytest.fixture(scope="module")
def results():
    """A function: the Results of all cases of one kernel on one topology; one mpirun for all."""
    done = {}

    def of(algorithm, name):
        if name not in done:
            tried = (*ALGORITHMS, "openmpi")
            wanted = [case for each in tried for case in cases(each, PLACES[name])]
            done[name] = run_cases(KERNELS, "", wanted, limit=60.0)
        return [r for r in done[name] if r.case.function == f"alltoallv_{algorithm}"]

    return of


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("algorithm", [*ALGORITHMS, "openmpi"])
def test_every_rank_ends_with_the_right_bytes_and_nothing_else_is_touched(algorithm, name, results):
    tried = results(algorithm, name)
    assert len(tried) == len(cases(algorithm, PLACES[name]))
    for result in tried:
        case = result.case.describe()
        assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
        assert [output.returned for output in result.outputs] == [0] * result.case.ranks, case
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], case


@pytest.mark.parametrize("name", REGULAR)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_rounds_messages_and_bytes_are_those_of_the_header(algorithm, name, results):
    cost, compared = cost_of(f"alltoallv_{algorithm}"), 0
    for result in results(algorithm, name):
        if result.case.pattern == "even":
            messages = result.recording.messages
            counted = (result.recording.rounds, len(messages), int(messages["bytes"].sum()))
            assert counted == cost.at(result.case), result.case.describe()
            compared += 1
    assert compared >= 8


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_only_what_has_to_crosses_between_nodes_and_groups(algorithm, name, results):
    for result in results(algorithm, name):
        case, levels = result.case, result.case.levels
        _, volume = result.recording.matrix()
        least = names_of(case)
        assert volume[levels.between_nodes()].sum() == least["VM"], case.describe()
        assert volume[levels.between_groups()].sum() == least["VG"], case.describe()


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_no_message_is_empty(algorithm, name, results):
    for result in results(algorithm, name):
        assert (result.recording.messages["bytes"] > 0).all(), result.case.describe()


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("algorithm", ROUTED)
def test_data_of_others_stay_within_the_budget(algorithm, name, results):
    for result in results(algorithm, name):
        held = [output.held for output in result.outputs]
        assert max(held) <= (result.case.budget or 8 << 20), result.case.describe()
        crosses = result.case.levels.nodes > 1 and result.case.count > 1
        assert not crosses or max(held) > 0, result.case.describe()


@pytest.mark.parametrize("algorithm", ROUTED)
def test_a_smaller_budget_takes_more_pieces_and_no_more_bytes_between_nodes(algorithm, results):
    name, found = "2 of 2 of 2, by slot", {}
    for result in results(algorithm, name):
        case = result.case
        across = case.levels.between_nodes()
        messages, volume = result.recording.matrix()
        if (case.count, case.pattern, case.datatype, case.in_place) == (COUNT, "even", "int", 0):
            found[case.budget] = (int(messages[across].sum()), int(volume[across].sum()))
    large, small = found[0], found[2 * least_budget(PLACES[name])]
    assert small[0] >= 5 * large[0] and small[1] == large[1]


@pytest.mark.parametrize("algorithm", ROUTED)
def test_a_budget_that_has_no_room_for_a_byte_of_each_pair_is_refused_on_all_ranks(algorithm):
    places = placed("a1 a1 a2 a2 b1 b1")
    small = Case("alltoallv", 6, 3, places=places, budget=15)
    # Such a block is not sent before its receiver has entered.
    tried = [small, replace(small, in_place=True), replace(small, in_place=True, count=1 << 16)]
    results = run_cases(KERNELS, f"alltoallv_{algorithm}", tried)
    assert len(results) == len(tried)
    for result in results:
        assert result.outcome == DONE, result.detail
        assert len({output.returned for output in result.outputs} - {0}) == 1
        assert 0 not in [output.returned for output in result.outputs]
        assert [len(rank.leaked) for rank in result.recording.ranks] == [0] * 6
        assert len(result.recording.messages) == 0


# --- all memory, not only what the kernel reports

KERNEL = """
MPILAB_ALLTOALLV(counted)
{
    const size_t tables = 1 << 16;
    most = 0;
    int err = alltoallv_%s(sendbuf, sendcounts, sdispls, sendtype, recvbuf, recvcounts, rdispls,
                           recvtype, comm);
    if (err == MPI_SUCCESS && (held != 0 || most > (size_t)mpilab_tuning.budget_bytes + tables))
        err = MPI_ERR_NO_MEM;
    return err;
}
"""


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """A function: the shared object of a kernel `alltoallv_counted`, which runs another kernel,
    counts all its memory, and fails if that exceeds its budget plus 64 KiB for tables."""
    built = {}

    def of(algorithm):
        if algorithm not in built:
            src = ROOT / "src_c"
            shared = [*src.glob("common/topology/*.c"), *src.glob("common/tree/*.c")]
            watched = [*src.glob("common/exchange/*.c"), src / "alltoallv" / f"{algorithm}.c"]
            built[algorithm] = build_counted(
                tmp_path_factory.mktemp(algorithm),
                KERNEL % algorithm,
                watched=watched,
                shared=shared,
            )
        return built[algorithm]

    return of


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ROUTED)
def test_all_memory_that_a_kernel_takes_is_within_its_budget_and_given_back(algorithm, counted):
    """4 groups x 2 hosts x 2 ranks, 64 KiB a pair: a leader's share of others' data is 7 MiB."""
    places = REGULAR["4 of 2 of 2"]
    base = Case("alltoallv", 16, 1 << 14, places=places, budget=1 << 18)
    tried = [
        base,
        replace(base, pattern="ragged", datatype="contiguous", count=5461),
        replace(base, pattern="sparse", budget=1 << 16),
    ]
    for result in run_cases(counted(algorithm), "alltoallv_counted", tried, limit=120.0):
        assert result.outcome == DONE, result.detail
        assert [output.returned for output in result.outputs] == [0] * 16
        assert compare(result.case, result.outputs) == []


@pytest.mark.slow
def test_the_memory_of_a_kernel_without_a_bound_is_found_to_be_too_much(counted):
    """In place, `linear` copies everything that it sends: 1 MiB a rank."""
    case = Case("alltoallv", 16, 1 << 14, in_place=True, budget=1 << 18)
    (result,) = run_cases(counted("linear"), "alltoallv_counted", [case], limit=120.0)
    assert 0 not in [output.returned for output in result.outputs]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("algorithm", ROUTED)
def test_a_leader_holds_no_more_than_its_budget_at_2_mb_a_pair(algorithm, counted):
    """4 groups x 2 hosts x 2 ranks: 64 MB of data a rank, 112 MB of a leader's are others'.

    The buffers of all ranks take 1 GB; they are not written out, since the smaller case above
    compares them.
    """
    case = Case(
        "alltoallv", 16, 2_000_000 // 4, places=REGULAR["4 of 2 of 2"], budget=8 << 20, dump=False
    )
    (result,) = run_cases(counted(algorithm), "alltoallv_counted", [case], limit=500.0)
    assert result.outcome == DONE, result.detail
    assert [output.returned for output in result.outputs] == [0] * 16
    assert 4 << 20 < max(output.held for output in result.outputs) <= 8 << 20
    messages = result.recording.messages
    counted_here = (result.recording.rounds, len(messages), int(messages["bytes"].sum()))
    assert counted_here == cost_of(f"alltoallv_{algorithm}").at(case)


def test_every_algorithm_is_a_file_and_every_file_is_tried():
    files = {path.stem for path in (ROOT / "src_c" / "alltoallv").glob("*.c")}
    assert files - {"auto"} == set(ALGORITHMS)  # test_decisions.py tries that one
