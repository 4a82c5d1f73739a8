"""The kernels of bcast, gather, scatter, reduce, allreduce and barrier with mpirun: the correct
bytes and nothing else, any root, datatype and segment, and the counts declared in their headers.

All kernels of one number of ranks run in one mpirun.
"""

import re

import pytest
from c_kernels import asked_for

from mpilab.algorithms import COLLECTIVES as SCHEDULED
from mpilab.algorithms import algorithms
from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import COLLECTIVES, REDUCIBLE, Case
from mpilab.cases.output import compare
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util.kit import ROOT

RANKS = (1, 2, 3, 5, 7, 8, 13)
# Those of allgather are in test_allgather_kernels.py.
ALGORITHMS = {
    collective: algorithms(collective) for collective in SCHEDULED if collective != "allgather"
}


def _others(has):
    """{collective: names of the kernels of which has(name, header)} is true."""
    found = {}
    for path in (ROOT / "src_c").glob("*/*.c"):
        if path.parent.name in COLLECTIVES and has(path.stem, path.read_text().split("*/")[0]):
            found.setdefault(path.parent.name, set()).add(path.stem)
    return found


# They are tested on many topologies in test_topology_kernels.py, test_remapped_kernels.py and
# test_decisions.py.
TOPOLOGY_AWARE = _others(lambda name, header: "Between nodes:" in header)
ELSEWHERE = _others(
    lambda name, header: "Between nodes:" in header or name.endswith(("_remapped", "auto"))
)
NAMES = [f"{collective}_{name}" for collective, names in ALGORITHMS.items() for name in names]
# The others rearrange what is combined; an operation that does not commute takes another path.
IN_ORDER = ("reduce_linear", "reduce_in_order_binary", "allreduce_recursive_doubling")
DATATYPES = ("byte", "contiguous", "vector", "struct", "shifted", "mixed")


def cases(function, ranks):
    """The cases for a kernel: each relevant root, sizes with and without a remainder, segments that
    divide a message and some that don't, every datatype, in place, both operations."""
    collective, _, _ = function.partition("_")
    about = COLLECTIVES[collective]
    shape = {"collective": collective, "ranks": ranks, "function": function}
    if not about.has_blocks:
        return [
            Case(**shape, count=0),
            Case(**shape, count=0, reversed=True),
            Case(**shape, count=0, strict=True),
        ]
    last = ranks - 1 if about.is_rooted else 0
    made = [
        Case(**shape, count=count, root=root, segment=segment)
        for root in sorted({0, last // 2 + 1 if last > 1 else 0, last})
        for count, segment in ((0, 0), (1, 0), (ranks + 1, 8), (1001, 256))
    ]
    made += [
        Case(**shape, count=37, root=last, segment=16, fanout=3, radix=3, strict=True),
        Case(**shape, count=37, root=last, segment=3, fanout=1, radix=2, reversed=True),
        Case(**shape, count=3001, root=0, fanout=2, radix=5),
    ]
    known = [name for name in DATATYPES if not about.reduces or name in REDUCIBLE]
    for datatype in known:
        if about.one_type and datatype == "mixed":
            continue
        for op in ("sum", "compose") if about.reduces else ("sum",):
            for in_place in (False, True) if about.in_place else (False,):
                made.append(
                    Case(
                        **shape,
                        count=5,
                        root=last,
                        datatype=datatype,
                        op=op,
                        in_place=in_place,
                        segment=40,
                    )
                )
    return made


@pytest.fixture(scope="module")
def results(request):
    """A function: the Results of all cases of one kernel, run at the first call for their ranks."""
    done = {}
    asked = {function for (function,) in asked_for(request, "function")}
    asked |= {f"barrier_{name}" for (name,) in asked_for(request, "name")}
    names = [name for name in NAMES if name in asked]

    def of(function, ranks):
        if ranks not in done:
            wanted = [case for name in names for case in cases(name, ranks)]
            done[ranks] = run_cases(KERNELS, names[0], wanted, limit=60.0)
        return [result for result in done[ranks] if result.case.function == function]

    return of


def test_every_algorithm_is_a_file_and_every_file_is_tried():
    for collective, names in ALGORITHMS.items():
        files = {path.stem for path in (ROOT / "src_c" / collective).glob("*.c")}
        assert files == set(names) | ELSEWHERE.get(collective, set()), collective


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("function", NAMES)
def test_every_rank_ends_with_the_right_bytes_and_nothing_else_is_touched(function, ranks, results):
    tried = results(function, ranks)
    assert len(tried) == len(cases(function, ranks))
    for result in tried:
        case = result.case.describe()
        assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
        assert [output.returned for output in result.outputs] == [0] * ranks, case
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], case


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("function", NAMES)
def test_rounds_messages_and_bytes_are_those_of_the_header(function, ranks, results):
    cost = cost_of(function)
    compared = 0
    for result in results(function, ranks):
        if function not in IN_ORDER and result.case.op != "sum":
            continue
        recording = result.recording
        assert recording.complete
        messages = recording.messages
        counted = (recording.rounds, len(messages), int(messages["bytes"].sum()))
        assert counted == cost.at(result.case), result.case.describe()
        compared += 1
    assert compared >= 3


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("name", ALGORITHMS["barrier"])
def test_nobody_can_leave_a_barrier_before_all_have_come(name, ranks, results):
    for result in results(f"barrier_{name}", ranks):
        assert result.recording.heard().all(), result.case.describe()


@pytest.mark.parametrize("function", ["bcast_pipeline", "bcast_chain", "reduce_pipeline"])
def test_a_pipeline_passes_a_segment_on_while_the_next_one_comes(function, results):
    """Eight ranks and S segments take P - 2 + S rounds, not (P - 1) S."""
    for result in results(function, 8):
        case = result.case
        if case.fanout == 1 and case.segment:
            segments = -(-case.count // max(1, case.segment // 4))
            assert result.recording.rounds == 6 + segments
            assert segments > 30


def test_the_headers_tell_their_tunables():
    assert cost_of("bcast_pipeline").segment == 8192
    assert cost_of("bcast_split_binary").cut == "m/2"
    assert (cost_of("allreduce_segmented_ring").cut, cost_of("bcast_linear").cut) == ("m/P", "m")
    assert (cost_of("bcast_chain").tuned_by, cost_of("bcast_chain").default) == ("fanout", 4)
    for function in NAMES:
        collective, _, name = function.partition("_")
        text = (ROOT / "src_c" / collective / f"{name}.c").read_text(encoding="utf-8")
        used = set(re.findall(r"mpilab_tuning\.(\w+)", text))
        header = text.partition("*/")[0]
        assert used == {word for word in ("segment_bytes", "fanout", "radix") if word in header}
