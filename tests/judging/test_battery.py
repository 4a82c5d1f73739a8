"""The standard battery: no rubric forgets a facet, and its cases find what they are for."""

import pytest
from c_kernels import line_of

from mpilab.cases.case import Case
from mpilab.cases.output import wrong_calls
from mpilab.diagnosis import diagnose
from mpilab.errors import InputError
from mpilab.hosts.places import Levels
from mpilab.judging import agreement, battery
from mpilab.judging.rubric import load
from mpilab.kernels import simgrid as builds
from mpilab.runners.simgrid import simulate
from mpilab.util.kit import ROOT
from tests.right_answers import answers_of

WITH_BATTERY = (
    "00-first-contact",
    "01-collective-algorithms",
    "02-allgather",
    "03-rank-mapping",
    "04-topology",
    "05-parallel-io",
    "06-tune-and-scale",
)
RUBRIC = """
lab = "99-test"
[[exercise]]
id = "x"
title = "X"
kind = "kernel"
collective = "barrier"
function = "barrier_x"
{narrow}
[[exercise.item]]
id = "a"
title = "A"
points = 2
battery = ["powers-of-two", "communicators", "again", "strict"]
[[exercise.item]]
id = "b"
title = "B"
points = 2
ranks = [2]
rounds = "ceil_log2(P)"
"""
HEAD = """
#include "mpilab.h"
#include <string.h>
int gather_x(const void *sendbuf, int sendcount, MPI_Datatype sendtype, void *recvbuf,
             int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm)
{
    int rank;
    %s
    MPI_Comm_rank(comm, &rank);
    if (rank != root)
        return MPI_Send(sendbuf, sendcount, sendtype, root, TAG, comm);
    int err = place_own_block(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, rank);
    for (int source = 0; source < size && err == MPI_SUCCESS; source++)
        if (source != root)
            err = MPI_Recv(block(recvbuf, source, recvcount, recvtype), recvcount, recvtype, %s,
                           TAG, comm, MPI_STATUS_IGNORE);
    return err;
}
"""
SIZE = "int size; MPI_Comm_size(comm, &size);"


@pytest.fixture
def found(tmp_path, require_tool):
    """A function: the results of cases of a gather, simulated."""
    require_tool("smpirun")

    def of(size, source, *cases):
        library = builds.build(HEAD % (size, source), tmp_path)
        return simulate(library.library, "gather_x", cases)

    return of


def _load(tmp_path, narrow):
    path = tmp_path / "rubric.toml"
    path.write_text(RUBRIC.format(narrow=narrow), encoding="utf-8")
    return load(path)


def test_a_rubric_that_forgets_a_facet_is_rejected_with_its_name(tmp_path):
    with pytest.raises(InputError, match="no item is for 'other-sizes', 'arrivals'; add it"):
        _load(tmp_path, "")
    with pytest.raises(InputError, match="narrow: other-sizes = '': say why in a sentence"):
        _load(tmp_path, 'narrow = { other-sizes = "" }')
    with pytest.raises(InputError, match="narrow: 'roots' is no facet of a barrier"):
        _load(tmp_path, 'narrow = { roots = "A barrier has no root at all." }')


def test_counts_hold_in_every_case_of_the_exercise(tmp_path):
    reason = '"Nobody has asked for it here."'
    rubric = _load(tmp_path, f"narrow = {{ other-sizes = {reason}, arrivals = {reason} }}")
    first, counting = rubric.exercise("x").items
    assert first.also == ()  # it counts nothing
    assert counting.cases == (Case("barrier", 2, 0, seed=counting.cases[0].seed),)
    assert set(counting.also) == {
        case for case in (*first.cases, *first.simulated) if case.ranks > 1
    } - set(counting.cases)


def test_on_nodes_only_other_numbers_of_ranks_are_on_nodes_of_different_size():
    for ranks in (2, 4, 8, 16, 32, 64):
        levels = Levels(battery.places_on_nodes(ranks))
        assert levels.nodes > 1 and levels.nodes * levels.most_on_a_node == ranks
    for ranks in (3, 5, 7, 13, 33):
        levels = Levels(battery.places_on_nodes(ranks))
        assert levels.groups == 2 and levels.nodes * levels.most_on_a_node > ranks


def test_a_mistyped_battery_on_is_told(tmp_path):
    with pytest.raises(InputError, match="exercise 'x': battery_on = 'node' is unknown; write"):
        _load(tmp_path, 'battery_on = "node"')


@pytest.mark.parametrize("lab", WITH_BATTERY)
def test_each_kernel_of_a_lab_stands_the_whole_battery(lab):
    rubric = load(ROOT / "grading" / lab / "rubric.toml")
    kernels = [
        each
        for exercise in rubric.exercises
        for each in exercise.variants or (exercise,)
        if each.collective
    ]
    assert kernels
    for kernel in kernels:
        cases = [case for item in kernel.items for case in (*item.cases, *item.simulated)]
        known = {name for name, _ in kernel.narrow}
        if kernel.collective == "read":
            assert any(case.bystanders for case in cases), kernel.function
            assert any(case.reversed for case in cases), kernel.function
            assert any(case.calls > 1 for case in cases), kernel.function
            continue
        if "communicators" not in known:
            assert {case.sequence for case in cases} >= {"duplicate", "parts"}, kernel.function
            assert any(case.reversed for case in cases), kernel.function
        if "arrivals" not in known:
            assert len({case.latencies for case in cases}) > 3, kernel.function


def test_an_item_is_not_lost_for_a_wrong_result_in_a_case_that_it_only_counts(
    tmp_path, require_tool
):
    reason = '"Nobody has asked for it here."'
    rubric = _load(tmp_path, f"narrow = {{ other-sizes = {reason}, arrivals = {reason} }}")
    exercise = rubric.exercise("x")
    require_tool("smpirun")
    broken = simulate(builds.kernels(), "barrier_dissemination", [*exercise.items[1].every])
    witness = agreement.Witness(broken)
    passed = agreement.judge_simulated(exercise, witness).items[1]
    assert passed.outcome == "pass", passed.reason
    for result in broken:
        if result.case in exercise.items[1].also:
            result.outcome = "deadlock"
    still = agreement.judge_simulated(exercise, agreement.Witness(broken)).items[1]
    assert still.outcome == "pass", still.reason


def test_a_gather_that_assumes_an_order_of_arrival_is_wrong_only_with_uneven_latencies(found):
    even, *uneven = found(
        SIZE, "MPI_ANY_SOURCE", *(Case("gather", 4, 3, latencies=seed) for seed in range(4))
    )
    assert diagnose(even) is None
    kinds = [told.kind for result in uneven if (told := diagnose(result)) is not None]
    assert kinds and set(kinds) == {"wrong-result"}


def test_a_size_kept_in_a_static_variable_is_wrong_on_a_part_of_the_ranks(found):
    static = "static int size; if (size == 0) MPI_Comm_size(comm, &size);"
    alone, again, parts = found(
        static,
        "source",
        *(Case("gather", 5, 2, sequence=name) for name in ("", "again", "parts")),
    )
    assert diagnose(alone) is None and diagnose(again) is None
    told = diagnose(parts)  # three ranks were asked, and five are waited for
    assert told.kind == "mpi-error" and "rank 0" in told.headline


def test_each_call_of_a_sequence_is_compared_with_its_own_data(found):
    skips = SIZE + " if (size == 3) return MPI_SUCCESS;"
    (result,) = found(skips, "source", Case("gather", 5, 2, sequence="parts"))
    assert wrong_calls(result.case, result.outputs) == {1: (0,)}
    assert diagnose(result).headline == (
        "the second of 3 calls, on a communicator of 3 of the 5 ranks, left a wrong result on "
        "rank 0"
    )


def test_a_rank_that_looks_at_an_ignored_argument_is_noticed(found):
    looks = SIZE + " if (recvcount < 0) return MPI_ERR_COUNT;"
    plain, unused = found(looks, "source", Case("gather", 4, 2), Case("gather", 4, 2, unused=True))
    assert diagnose(plain) is None
    assert diagnose(unused).kind == "deadlock"  # the root waits for ranks that refused


def test_the_battery_has_every_number_of_ranks_and_every_datatype():
    for collective in ("allgather", "alltoallv", "bcast", "gather", "reduce", "scatter"):
        cases = battery.trials(collective, battery.facets_of(collective))
        assert {one.ranks for one in cases} >= {1, 2, 3, 4, 5, 7, 8, 13, 16, 33, 64}
        assert {one.fields.get("datatype") for one in cases} >= {"raised", "backward", "shifted"}


def test_only_the_facets_about_them_have_empty_parts_or_cyclic_blocks_of_reads():
    assert set(battery.facets_of("read")).isdisjoint(battery.facets_of("allgather"))
    sizes = set()
    for name in battery.facets_of("read"):
        cases = [Case("read", one.ranks, **one.fields) for one in battery.trials("read", [name])]
        assert cases and all(one.real for one in battery.trials("read", [name]))
        sizes |= {case.ranks for case in cases}
        parts = [
            [case.distribution.elements_of(rank) for rank in range(case.ranks)] for case in cases
        ]
        has_empty = any(0 in each for each in parts)
        assert has_empty == (name in ("empty-parts", "cyclic")), (name, parts)
        for case in cases:
            about = case.distribution
            is_cyclic = (
                about.block_rows * about.grid_rows < about.rows
                or about.block_columns * about.grid_columns < about.columns
            )
            assert is_cyclic == (name == "cyclic") or name == "cyclic", (name, case.matrix)
    assert sizes == {1, 2, 3, 4, 5, 6, 7, 8, 9}


def test_a_read_has_every_kind_of_grid_part_and_communicator():
    def cases(name):
        return [Case("read", one.ranks, **one.fields) for one in battery.trials("read", [name])]

    for name in ("square-grids", "other-grids"):
        parts = {
            len({case.distribution.elements_of(rank) for rank in range(case.ranks)}) > 1
            for case in cases(name)
        }
        assert parts == {True, False}  # of unequal sizes, and of equal ones
    grids = {(c.distribution.grid_rows, c.distribution.grid_columns) for c in cases("other-grids")}
    assert any(rows == 1 for rows, _ in grids) and any(columns == 1 for _, columns in grids)
    assert {(c.distribution.rows, c.distribution.columns) for c in cases("lines")} >= {(1, 1)}
    assert any(case.distribution.bytes == 0 for case in cases("empty-parts"))
    kinds = {(case.reversed, case.bystanders > 0) for case in cases("communicators-of-reads")}
    assert kinds == {(True, False), (False, True), (True, True)}
    assert all(case.calls == 3 for case in cases("again-of-reads"))
    assert min(case.buffer for case in cases("buffers")) < 8


def test_buffers_and_aggregators_of_an_item_are_taken_in_turn_where_a_case_has_none():
    rubric = load(ROOT / "grading" / "05-parallel-io" / "rubric.toml")
    plain = rubric.exercise("two_phase").items[0]
    assert {case.aggregators for case in plain.cases} == {2, 8}
    sieving = {item.id: item for item in rubric.exercise("sieving").items}
    assert {case.buffer for case in sieving["plain"].cases} == {0, 48}
    assert {case.buffer for case in sieving["buffer"].cases} == {5, 20, 64, 127}


def test_no_call_of_choose_is_a_tie_that_rounding_may_decide():
    rubric = load(ROOT / "grading" / "01-collective-algorithms" / "rubric.toml")
    right = answers_of("01-collective-algorithms")
    for item in rubric.exercise("choose").items:
        for call in item.arguments:
            seconds = sorted(right.means(*call))
            assert seconds[1] == seconds[0] or seconds[1] > 1.001 * seconds[0], call


TREE_BODY = """
    int parent, bit = 1;
    while (bit < size && !(place & bit))
        bit *= 2;
    parent = (place - bit + root + size) % size;
    if (place > 0)
        MPI_Recv(buffer, count, datatype, SOURCE, 1, comm, MPI_STATUS_IGNORE); /* KERNEL receives */
    for (bit /= 2; bit > 0; bit /= 2)
        if (place + bit < size)
            MPI_Send(buffer, count, datatype, (place + bit + root) % size, 1, comm);
"""
LINEAR_BODY = """
    const int parent = root;
    if (place > 0)
        MPI_Recv(buffer, count, datatype, SOURCE, 1, comm, MPI_STATUS_IGNORE); /* KERNEL receives */
    for (int dest = 0; dest < size && place == 0; dest++)
        if (dest != root)
            MPI_Send(buffer, count, datatype, dest, 1, comm);
"""
# All ranks tell the root that they have it, and it answers: nobody is in the next call before.
MEETING_BODY = (
    LINEAR_BODY
    + """
    for (int from = 1; from < size && place == 0; from++)
        MPI_Recv(NULL, 0, MPI_INT, (root + from) % size, 2, comm, MPI_STATUS_IGNORE);
    for (int to = 1; to < size && place == 0; to++)
        MPI_Send(NULL, 0, MPI_INT, (root + to) % size, 3, comm);
    if (place > 0) {
        MPI_Send(NULL, 0, MPI_INT, root, 2, comm);
        MPI_Recv(NULL, 0, MPI_INT, root, 3, comm, MPI_STATUS_IGNORE);
    }
"""
)


@pytest.fixture(scope="module")
def broadcasts(tmp_path_factory):
    """(source, function): the diagnoses of the calls in a row of a broadcast."""
    bodies = {"tree": TREE_BODY, "linear": LINEAR_BODY, "meeting": MEETING_BODY}
    bodies["barrier"] = LINEAR_BODY + "    MPI_Barrier(comm);\n"
    source = '#include "mpilab.h"\n' + "".join(
        f"MPILAB_BCAST({name}_{kind})\n{{\n    int rank, size;\n"
        "    MPI_Comm_rank(comm, &rank);\n    MPI_Comm_size(comm, &size);\n"
        "    const int place = (rank - root + size) % size;\n"
        f"{body.replace('SOURCE', word).replace('KERNEL', f'{name}_{kind}')}"
        "    return (void)parent, MPI_SUCCESS;\n}\n"
        for name, body in bodies.items()
        for kind, word in (("named", "parent"), ("anybody", "MPI_ANY_SOURCE"))
    )
    library = builds.build(source, tmp_path_factory.mktemp("roots"), stem="roots").library
    cases = [
        Case("bcast", trial.ranks, **trial.fields)
        for trial in battery.trials("bcast", ["roots"])
        if trial.fields.get("sequence") == "roots"
    ]
    return source, lambda name: [diagnose(one) for one in simulate(library, f"bcast_{name}", cases)]


@pytest.mark.parametrize("name", ["tree", "linear"])
def test_a_broadcast_that_receives_from_anybody_may_get_a_message_of_the_next_call(
    name, broadcasts, require_tool
):
    require_tool("smpirun")
    source, told = broadcasts
    wrong = told(f"{name}_anybody")
    assert all(one is not None and one.kind == "wrong-result" for one in wrong)
    assert any("MPI_ANY_SOURCE" in one.hint for one in wrong)
    line = line_of(source, f"/* {name}_anybody receives */")
    lucky = [one for one in wrong if one.pattern == "a message of another call"]
    assert {one.lines for one in lucky} <= {(line,)}
    if name == "linear":
        # The simulator matches messages in the order in which they are sent.
        assert len(lucky) == len(wrong)
        assert lucky[0].headline == (
            f"right only by luck: MPI_Recv (line {line}) of rank 0 receives from any rank "
            "(MPI_ANY_SOURCE), and may get what rank 1 sends it in a later call"
        )


@pytest.mark.parametrize(
    "name", ["tree_named", "linear_named", "meeting_named", "meeting_anybody", "barrier_anybody"]
)
def test_a_broadcast_that_no_message_of_the_next_call_can_reach_is_right(
    name, broadcasts, require_tool
):
    require_tool("smpirun")
    _, told = broadcasts
    assert told(name) == [None, None, None]


def test_only_a_collective_with_a_root_is_called_from_several():
    with pytest.raises(InputError, match="allgather has no root; write sequence='again'"):
        Case("allgather", 4, 1, sequence="roots")
