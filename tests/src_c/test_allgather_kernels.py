"""The kit's allgather kernels, compared with numpy, their headers and their schedules."""

from collections import Counter
from dataclasses import dataclass
from itertools import product

import pytest

from mpilab.algorithms.allgather import ALGORITHMS, schedule
from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import Case
from mpilab.cases.data import DATATYPES
from mpilab.cases.output import compare
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE

RANKS = (1, 2, 3, 5, 7, 8, 13)
COUNTS = (0, 1, 7)
LARGE = 4096
# From here up, each count and each datatype still occurs, but not all combinations.
MANY_RANKS = 7


def cases(ranks):
    """The cases for a kernel on this number of ranks."""

    def case(*options, **more):
        return Case("allgather", ranks, *options, **more)

    both = (False, True)
    if ranks < MANY_RANKS:
        chosen = [case(*options) for options in product(COUNTS, DATATYPES, both, both)]
        chosen += [case(LARGE, "int", *options) for options in product(both, both)]
    else:
        chosen = [
            case(7, name, number % 2 == 0, number % 3 == 0) for number, name in enumerate(DATATYPES)
        ]
        chosen += [case(count, "mixed") for count in (0, 1)]
        chosen += [case(count, "shifted", True, True) for count in (0, 1)]
        chosen += [case(LARGE, "int"), case(LARGE, "int", True, True)]
    strict = [
        case(count, "struct", *options, strict=True)
        for count, options in product((0, 7), ((False, False), (True, True)))
    ]
    return chosen + strict + [case(LARGE, "int", strict=True)]


@dataclass
class Run:
    """All cases of one kernel on one number of ranks."""

    algorithm: str
    ranks: int
    results: list


@pytest.fixture(
    scope="module",
    params=product(ALGORITHMS, RANKS),
    ids=lambda parameters: f"{parameters[0]}-on-{parameters[1]}",
)
def run(request):
    algorithm, ranks = request.param
    results = run_cases(KERNELS, f"allgather_{algorithm}", cases(ranks), limit=60.0)
    return Run(algorithm, ranks, results)


def test_each_number_of_ranks_sees_every_count_and_every_datatype():
    for ranks in RANKS:
        assert {case.count for case in cases(ranks)} == {*COUNTS, LARGE}
        assert {case.datatype for case in cases(ranks)} == set(DATATYPES)
        for option in ("in_place", "reversed", "strict"):
            assert {getattr(case, option) for case in cases(ranks)} == {False, True}


def test_every_rank_ends_with_the_right_bytes_and_nothing_else_is_touched(run):
    for result in run.results:
        case = result.case.describe()
        assert result.outcome == DONE, f"{case}: {result.hang or result.detail}"
        assert [output.returned for output in result.outputs] == [0] * run.ranks, case
        assert [output.rank for output in result.outputs] == list(range(run.ranks)), case
        wrong = [difference.describe() for difference in compare(result.case, result.outputs)]
        assert wrong == [], case


def test_rounds_messages_and_bytes_are_those_of_the_files_header(run):
    cost = cost_of(f"allgather_{run.algorithm}")
    for result in run.results:
        recording = result.recording
        assert recording.complete
        messages = recording.messages
        counted = (recording.rounds, len(messages), int(messages["bytes"].sum()))
        assert counted == cost.at(result.case), result.case.describe()


def test_every_message_is_one_of_the_schedule_in_its_round(run):
    rounds = schedule(run.algorithm, run.ranks).rounds
    early = run.algorithm == "recursive_doubling" and run.ranks & (run.ranks - 1)
    for result in run.results:
        planned = [
            (transfer.source, transfer.dest, len(transfer.blocks) * result.case.block_bytes, number)
            for number, transfers in enumerate(rounds, 1)
            for transfer in transfers
        ]
        recorded = [
            tuple(int(message[name]) for name in ("source", "dest", "bytes", "round"))
            for message in result.recording.messages
        ]
        assert result.recording.rounds == len(rounds)
        if early:
            # A rank onto which no rank folds starts its first swap at once.
            assert Counter(m[:3] for m in recorded) == Counter(m[:3] for m in planned)
            for message, plan in zip(sorted(recorded), sorted(planned), strict=True):
                assert message[:3] == plan[:3] and 1 <= message[3] <= plan[3]
        else:
            assert Counter(recorded) == Counter(planned), result.case.describe()


def test_every_message_is_received_once_and_whole(run):
    for result in run.results:
        messages = result.recording.messages
        assert (messages["receive_record"] >= 0).all()
        for message in messages:
            receiver = result.recording.ranks[message["dest"]].records[message["receive_record"]]
            assert receiver["got_bytes"] == message["bytes"]
            assert message["sent_ns"] <= message["received_ns"]


def test_strict_mode_makes_every_standard_send_synchronous(run):
    for result in run.results:
        for rank in result.recording.ranks:
            assert rank.header["strict"] == result.case.strict
