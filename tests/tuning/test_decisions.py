"""Rules that choose kernels: read, learned, and followed by the COLLECTIVE_auto kernels."""

import numpy as np
import pytest

from mpilab.cases.case import COLLECTIVES, Case
from mpilab.cases.output import compare
from mpilab.errors import InputError
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Levels
from mpilab.kernels.build import KERNELS
from mpilab.measure.timing import Timed
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.tuning import decisions
from mpilab.tuning.decisions import choose, learn, parse, regret
from mpilab.util.kit import ROOT

RR = places_of("2x2x2 rr")
SEQ = places_of("2x2x2 seq")
THIN = places_of("2x2x1 seq")
AUTO = ("bcast", "reduce", "gather", "allgather", "allreduce", "alltoallv")

RULES = """
# one rule for each thing that a condition may be about
bcast ranks<8 bytes<100   bcast_linear        # small, on few ranks
bcast ranks<8             bcast_chain
bcast dealt>=1 bytes>=4000 bcast_pipelined
bcast dealt>=1            bcast_node
bcast total>=32000        bcast_group
bcast                     bcast_binomial
gather groups>=2 ppn>=2 bytes>=400 gather_node
gather nodes>=4 ppn<2     gather_linear
gather                    gather_binomial
reduce                    reduce_rank_order
allgather bytes<40        allgather_bruck
allgather                 allgather_ring
allreduce                 allreduce_ring
alltoallv bytes<100       alltoallv_pairwise
alltoallv                 alltoallv_gathervs
"""


def cases(collective, function):
    """Calls of several sizes, on several topologies, from two roots."""
    made = []
    for places in (RR, SEQ, THIN):
        last = len(places) - 1 if COLLECTIVES[collective].is_rooted else 0
        made += [
            Case(collective, len(places), count, root=root, places=places, function=function)
            for count in (1, 24, 25, 999, 1000)
            for root in {0, last}
        ]
    return made


@pytest.fixture(scope="module")
def rules_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("rules") / "test.rules"
    path.write_text(RULES, encoding="utf-8")
    return path


def traffic(result):
    """The messages between ranks, with the number of rounds."""
    return [matrix.tolist() for matrix in result.recording.matrix()], result.recording.rounds


@pytest.mark.parametrize("collective", AUTO)
def test_an_auto_kernel_does_what_the_chosen_kernel_does(collective, rules_file):
    rules = decisions.read(rules_file)
    asked = cases(collective, f"{collective}_auto")
    wanted = [choose(rules, collective, case.levels, case.block_bytes) for case in asked]
    if collective == "alltoallv":  # bytes are those of the busiest rank, divided by the ranks
        assert {"alltoallv_pairwise", "alltoallv_gathervs"} == set(wanted)
    chosen = [
        Case(**{**vars(case), "function": kernel})
        for case, kernel in zip(asked, wanted, strict=True)
    ]
    results = run_cases(KERNELS, "", asked + chosen, settings={"MPILAB_RULES": str(rules_file)})
    for result in results:
        assert result.outcome == DONE, result.case.describe()
        assert compare(result.case, result.outputs) == [], result.case.describe()
    for ours, theirs in zip(results[: len(asked)], results[len(asked) :], strict=True):
        assert traffic(ours) == traffic(theirs), ours.case.describe()


def test_every_collective_with_rules_chooses_more_than_one_kernel():
    rules = parse(RULES)
    for collective in ("bcast", "gather", "allgather", "alltoallv"):
        found = {
            choose(rules, collective, case.levels, case.block_bytes)
            for case in cases(collective, "")
        }
        assert found == {rule.kernel for rule in rules if rule.collective == collective}


@pytest.mark.parametrize("collective", AUTO)
def test_without_rules_there_is_a_default(collective):
    (result,) = run_cases(KERNELS, f"{collective}_auto", [Case(collective, 8, 5, places=RR)])
    assert result.outcome == DONE
    assert compare(result.case, result.outputs) == []


@pytest.mark.parametrize(
    ("text", "returned"),
    [
        ("bcast bytes>>3 bcast_node", "MPI_ERR_FILE"),
        ("bcast", "MPI_ERR_FILE"),
        ("bcast hosts>=3 bcast_node", "MPI_ERR_FILE"),
        ("bcast bcast_by_pigeon", "MPI_ERR_ARG"),
        ("bcast bcast_node\nreduce bytes>=many reduce_node", "MPI_ERR_FILE"),
        (None, "MPI_ERR_FILE"),
    ],
)
def test_rules_that_make_no_sense_are_an_error_on_every_rank(text, returned, tmp_path):
    from mpi4py import MPI

    path = tmp_path / "wrong.rules"
    if text is not None:
        path.write_text(text + "\n", encoding="utf-8")
    (result,) = run_cases(
        KERNELS, "bcast_auto", [Case("bcast", 4, 5)], settings={"MPILAB_RULES": str(path)}
    )
    codes = {output.returned for output in result.outputs}
    classes = {"MPI_ERR_FILE": MPI.ERR_FILE, "MPI_ERR_ARG": MPI.ERR_ARG}
    assert codes == {classes[returned]}


def test_rules_are_read_and_written_back():
    rules = parse(RULES)
    assert len(rules) == 15
    assert parse(decisions.as_text(rules, "two\nlines")) == rules
    assert decisions.as_text(rules, "two\nlines").startswith("# two\n# lines\n")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("bcast", "rules:2: a collective without a kernel"),
        ("bcast ppn=2 bcast_node", "'ppn=2' is not a condition"),
        ("bcast cores>=2 bcast_node", "'cores>=2' is not a condition"),
        ("bcast ppn>=two bcast_node", "'ppn>=two' is not a condition"),
        ("bcast reduce_node", "'reduce_node' is not a kernel of bcast"),
        (f"bcast bcast_{'x' * 64}", "is not a kernel of bcast"),
    ],
)
def test_a_wrong_line_is_named(line, words):
    with pytest.raises(InputError, match=words.replace("'", ".")):
        parse(f"# a remark\n{line}\n")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere.rules: cannot be read as rules"):
        decisions.read(tmp_path / "nowhere.rules")


def test_the_published_rules_choose_as_published():
    rules = decisions.read("published")
    at = {hosts: Levels(places_of(f"1x{hosts}x1 seq")) for hosts in (4, 13, 14)}
    full = Levels(places_of("2x2x8 seq"))
    assert choose(rules, "bcast", at[14], 2 << 20) == "bcast_group"
    assert choose(rules, "bcast", at[13], 2 << 20) == "bcast_rank_order"
    assert choose(rules, "bcast", at[14], 1 << 20) == "bcast_rank_order"
    assert choose(rules, "bcast", full, 1 << 20) == "bcast_node"
    assert choose(rules, "bcast", full, 2 << 20) == "bcast_node_group"
    assert choose(rules, "reduce", full, 1 << 20) == "reduce_node"
    assert choose(rules, "reduce", full, 2 << 20) == "reduce_node_group"
    assert choose(rules, "reduce", at[4], 1 << 20) == "reduce_rank_order"
    assert choose(rules, "reduce", at[4], 2 << 20) == "reduce_group"
    assert choose(rules, "gather", at[13], 1) == "gather_rank_order"
    assert choose(rules, "gather", at[14], 1) == "gather_group"
    assert choose(rules, "alltoallv", full, 16) == "alltoallv_leaders"
    assert choose(rules, "alltoallv", full, 1 << 20) == "alltoallv_linear"
    assert choose(rules, "alltoallv", at[4], 16) == "alltoallv_linear"
    assert choose(rules, "scatter", full, 16) is None


@pytest.mark.parametrize("path", sorted((ROOT / "data" / "rules").glob("*.rules")), ids=str)
def test_rules_of_the_kit_name_kernels_of_the_kit(path):
    for rule in decisions.read(path):
        file = (
            ROOT / "src_c" / rule.collective / f"{rule.kernel.removeprefix(rule.collective)[1:]}.c"
        )
        assert file.is_file(), rule


def sweep(times):
    """Timed from {(collective, places, bytes): {kernel: seconds}}."""
    return [
        Timed(collective, kernel, "", Levels(places_of(places)), size, (seconds, 9.0, seconds / 2))
        for (collective, places, size), found in times.items()
        for kernel, seconds in found.items()
    ]


def test_learned_rules_choose_the_fastest_wherever_it_was_measured():
    rng = np.random.default_rng(7)
    kernels = ["bcast_node", "bcast_group", "bcast_binomial", "bcast_chain"]
    measured = sweep(
        {
            ("bcast", f"{shape} {order}", size): dict(
                zip(kernels, rng.permutation(4) + 1, strict=True)
            )
            for shape in ("2x2x2", "4x2x2", "1x4x2", "2x4x4")
            for order in ("seq", "rr")
            for size in (16, 1024, 65536)
        }
    )
    rules = learn(measured)
    assert parse(decisions.as_text(rules)) == rules
    lost = regret(rules, measured)
    assert len(lost) == 24
    assert [one["regret"] for one in lost] == [0.0] * 24


def test_between_two_sizes_the_border_is_their_geometric_mean():
    rules = learn(
        sweep(
            {
                ("bcast", "2x2x2 rr", 100): {"bcast_node": 1.0, "bcast_group": 2.0},
                ("bcast", "2x2x2 rr", 10000): {"bcast_node": 2.0, "bcast_group": 1.0},
            }
        )
    )
    at = Levels(RR)
    assert [choose(rules, "bcast", at, size) for size in (1, 999, 1000, 10**9)] == [
        "bcast_node",
        "bcast_node",
        "bcast_group",
        "bcast_group",
    ]
    # Nothing else was measured, so it applies to every cluster.
    assert choose(rules, "bcast", Levels(THIN), 1) == "bcast_node"


def test_regret_tells_what_a_bad_choice_costs():
    measured = sweep({("bcast", "2x2x2 rr", 100): {"bcast_node": 1.0, "bcast_group": 3.0}})
    rules = parse("bcast bcast_group")
    (lost,) = regret(rules, measured)
    assert lost["regret"] == 2.0
    assert (lost["chosen"], lost["best"]) == ("bcast_group", "bcast_node")
    assert regret(parse("bcast bcast_chain"), measured)[0]["regret"] is None
