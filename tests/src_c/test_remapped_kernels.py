"""The kernels whose processes behave as other ranks: the correct bytes on any topology and with any
map, and the messages of the plain algorithm in its best placement.
"""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mpilab import remapping
from mpilab.algorithms.formula import cost_of
from mpilab.algorithms.remapping import RR, SEQ, placement
from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.hosts.places import Levels, Place
from mpilab.kernels import openmpi
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.trace.recording import Recording
from tests.right_answers import answers_of
from tests.src_c import remap_on_parts
from tests.src_c.test_topology_kernels import PLACES, cases, placed

ALLGATHERS = [f"allgather_{name}_remapped" for name in remapping.REMAPPED]
NAMES = [*ALLGATHERS, "bcast_binomial_remapped", "allreduce_ring_remapped"]
MORE_PLACES = PLACES | {
    "13 shuffled": placed("c1 a2 b1 a1 a2 c2 a1 b1 c1 c1 a2 b2 a1"),
    "3 of 4, by slot": placement(SEQ, 3, 4).places,
    "4 of 3, by node": placement(RR, 4, 3).places,
}
RIGHT = answers_of("03-rank-mapping")
FORMULAS = {1: RIGHT.seq_to_rr, 2: RIGHT.rr_to_seq}
REGULAR = [(2, 2), (2, 4), (4, 2), (4, 4), (2, 3), (3, 2), (3, 4), (5, 2)]
ERR_ARG = 13  # MPI_ERR_ARG of Open MPI


def in_order(function, order, nodes, each, **more):
    """A case on this number of nodes, placed in SEQ or RR order."""
    return Case(
        function.partition("_")[0],
        nodes * each,
        96,
        function=function,
        places=placement(order, nodes, each).places,
        **more,
    )


def with_a_formula(function, places):
    """Each formula with a root that is not the first, in place if allowed, and datatypes with
    holes."""
    collective = function.partition("_")[0]
    about = {"function": function, "places": places, "segment": 16}
    return [
        Case(
            collective,
            len(places),
            count,
            remap=remap,
            datatype=datatype,
            root=len(places) // 2 if collective == "bcast" else 0,
            in_place=collective != "bcast" and count > 1,
            **about,
        )
        for remap in FORMULAS
        for count, datatype in ((1, "int"), (37, "vector"), (5, "shifted"))
    ]


def all_cases(function, places):
    return cases(function, places) + with_a_formula(function, places)


def fits_formulas(case):
    return case.ranks % case.levels.nodes == 0


@pytest.fixture(scope="module")
def results():
    """A function: the Results of all cases of one kernel on one topology; one mpirun for all."""
    done = {}

    def of(function, name):
        if name not in done:
            places = MORE_PLACES[name]
            wanted = [case for function in NAMES for case in all_cases(function, places)]
            done[name] = run_cases(KERNELS, "", wanted, limit=60.0)
        return [result for result in done[name] if result.case.function == function]

    return of


def run(*wanted):
    came = run_cases(KERNELS, "", list(wanted), limit=60.0)
    for result in came:
        assert result.outcome == DONE, f"{result.case.describe()}: {result.detail}"
        assert compare(result.case, result.outputs) == [], result.case.describe()
    return came


def sent(result, behaves_as=None):
    """Counter of (source, dest, bytes), with the ranks as which processes behave, if given."""
    role = behaves_as or range(result.case.ranks)
    return Counter(
        (role[int(message["source"])], role[int(message["dest"])], int(message["bytes"]))
        for message in result.recording.messages
    )


def planned(schedule, block_bytes):
    return Counter((t.source, t.dest, len(t.blocks) * block_bytes) for t in schedule.transfers())


def order_of(case):
    """Which process behaves as which rank in an allgather."""
    if case.remap:
        return remapping.by_formula(FORMULAS[case.remap], case.levels)
    algorithm = case.function.removeprefix("allgather_").removesuffix("_remapped")
    return remapping.chosen(algorithm, case.levels)


@pytest.mark.parametrize("name", MORE_PLACES)
@pytest.mark.parametrize("function", NAMES)
def test_every_rank_ends_with_the_right_bytes_and_nothing_else_is_touched(function, name, results):
    tried = results(function, name)
    assert len(tried) == len(all_cases(function, MORE_PLACES[name]))
    for result in tried:
        case = result.case.describe()
        assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
        if result.case.remap and not fits_formulas(result.case):
            continue
        assert [output.returned for output in result.outputs] == [0] * result.case.ranks, case
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], case


@pytest.mark.parametrize("function", NAMES)
def test_a_formula_on_nodes_that_it_is_not_for_is_refused_on_all_ranks(function, results):
    refused = [r for r in results(function, "one far away") if r.case.remap]
    assert len(refused) == 6 and not any(fits_formulas(result.case) for result in refused)
    for result in refused:
        assert [output.returned for output in result.outputs] == [ERR_ARG] * 5
        assert len(result.recording.messages) == 0


@pytest.mark.parametrize("name", MORE_PLACES)
@pytest.mark.parametrize("function", ALLGATHERS)
def test_an_allgather_sends_what_its_remapped_schedule_says(function, name, results):
    algorithm = function.removeprefix("allgather_").removesuffix("_remapped")
    for result in results(function, name):
        case = result.case
        if case.remap and not fits_formulas(case):
            continue
        schedule = remapping.remapped(algorithm, order_of(case))
        assert sent(result) == planned(schedule, case.block_bytes), case.describe()
        rounds = len(schedule.rounds)
        # A process that behaves as itself has no phase 1, and folds at once on 3, 5, 6, 7, … ranks.
        least = rounds if case.ranks & (case.ranks - 1) == 0 else rounds - 1
        assert least <= result.recording.rounds <= rounds, case.describe()


@pytest.mark.parametrize("name", MORE_PLACES)
@pytest.mark.parametrize("function", NAMES)
def test_counts_are_those_of_the_header_and_of_phase_1(function, name, results):
    """Phase 1 is recursive doubling's: a round, and a message from each process that moves."""
    cost = cost_of(function)
    for result in results(function, name):
        case = result.case
        if case.op != "sum" or (case.remap and not fits_formulas(case)):
            continue
        moved = 0
        if function == "allgather_recursive_doubling_remapped":
            moved = sum(process != v for v, process in enumerate(order_of(case)))
        rounds, messages, volume = cost.at(case)
        if "bcast" in function and case.remap:  # its tree is different, but of the same size
            assert len(result.recording.messages) == messages
            continue
        counted = result.recording.messages
        assert (len(counted), int(counted["bytes"].sum())) == (
            messages + moved,
            volume + moved * case.block_bytes,
        ), case.describe()
        assert rounds <= result.recording.rounds <= rounds + (moved > 0), case.describe()


@pytest.mark.parametrize("remap", (0, 2))
@pytest.mark.parametrize("nodes, each", REGULAR)
@pytest.mark.parametrize("function", NAMES[1:])
def test_in_rr_order_it_is_the_plain_algorithm_in_seq_order(function, nodes, each, remap):
    plain, remapped = run(
        in_order(function.removesuffix("_remapped"), SEQ, nodes, each),
        in_order(function, RR, nodes, each, remap=remap),
    )
    behaves_as = [RIGHT.rr_to_seq(p, nodes, each) for p in range(nodes * each)]
    assert sent(remapped, behaves_as) == sent(plain)
    assert between_nodes(remapped) == between_nodes(plain)
    assert remapped.recording.rounds == plain.recording.rounds


@pytest.mark.parametrize("nodes, each", REGULAR)
def test_in_seq_order_recursive_doubling_is_that_in_rr_order_after_phase_1(nodes, each):
    function = "allgather_recursive_doubling"
    plain, remapped = run(
        in_order(function, RR, nodes, each),
        in_order(f"{function}_remapped", SEQ, nodes, each, remap=1),
    )
    behaves_as = [RIGHT.seq_to_rr(p, nodes, each) for p in range(nodes * each)]
    m = remapped.case.block_bytes
    phase_1 = Counter(
        (behaves_as[p], behaves_as[behaves_as.index(p)], m)
        for p in range(nodes * each)
        if behaves_as[p] != p
    )
    assert sent(remapped, behaves_as) == sent(plain) + phase_1
    assert remapped.recording.rounds == plain.recording.rounds + 1


def between_nodes(result):
    _, volume = result.recording.matrix()
    return int(volume[result.case.levels.between_nodes()].sum())


@pytest.mark.parametrize("name", MORE_PLACES)
def test_recursive_doubling_never_sends_more_across_than_the_plain_one(name):
    places = MORE_PLACES[name]
    shape = {"count": 10, "places": places}
    plain, remapped = run(
        *(
            Case("allgather", len(places), function=f"allgather_recursive_doubling{end}", **shape)
            for end in ("", "_remapped")
        )
    )
    groups = plain.case.levels.between_groups()

    def across(result):
        _, volume = result.recording.matrix()
        return between_nodes(result) + int(volume[groups].sum())

    assert across(remapped) <= across(plain)


@pytest.mark.parametrize("nodes, each", [(2, 2), (3, 4), (4, 2), (2, 8)])
@pytest.mark.parametrize("order", (SEQ, RR))
def test_a_remapped_bcast_visits_each_node_once_from_any_root(order, nodes, each):
    for result in run(
        *(
            in_order("bcast_binomial_remapped", order, nodes, each, root=root)
            for root in range(nodes * each)
        )
    ):
        assert between_nodes(result) == (nodes - 1) * result.case.block_bytes


@pytest.mark.parametrize("remap", FORMULAS)
def test_a_bcast_by_formula_counts_on_from_the_rank_that_the_root_behaves_as(remap):
    there, back = (SEQ, RR) if remap == 1 else (RR, SEQ)
    behaves_as = [FORMULAS[remap](p, 2, 4) for p in range(8)]
    for root in range(8):
        plain, remapped = run(
            in_order("bcast_binomial", back, 2, 4, root=behaves_as[root]),
            in_order("bcast_binomial_remapped", there, 2, 4, root=root, remap=remap),
        )
        assert sent(remapped, behaves_as) == sent(plain)


@pytest.fixture(scope="module")
def on_parts(tmp_path_factory):
    """The directory in which the program remap_on_parts.py has left its recordings."""
    directory = tmp_path_factory.mktemp("parts")
    command = [
        openmpi.tool("mpirun"),
        "-n",
        "8",
        sys.executable,
        "-m",
        "mpi4py",
        str(Path(__file__).with_name("remap_on_parts.py")),
        str(KERNELS),
        str(directory),
    ]
    said = subprocess.run(
        command, env=openmpi.environment(8), capture_output=True, text=True, timeout=300
    )
    assert said.returncode == 0, said.stdout + said.stderr
    assert said.stdout.count("all right") == 8
    return directory


@pytest.mark.parametrize("number, part", list(enumerate(remap_on_parts.PARTS)))
def test_a_communicator_of_some_ranks_is_mapped_by_the_places_of_its_members(
    number, part, on_parts
):
    """The program has found the results right, on all communicators of a process in turn."""
    members = tuple(Place(*remap_on_parts.PLACES[rank]) for rank in part)
    for place, name in enumerate(remapping.REMAPPED):
        recording = Recording.load(on_parts, 10 * number + place, len(part))
        schedule = remapping.remapped(name, remapping.chosen(name, Levels(members)))
        volume = Counter(
            (int(m["source"]), int(m["dest"]), int(m["bytes"])) for m in recording.messages
        )
        assert volume == planned(schedule, remap_on_parts.BLOCK_BYTES)
        assert not any(len(rank.leaked) for rank in recording.ranks)
