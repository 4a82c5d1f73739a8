"""Every schedule equals the recording of its kernel, message by message and round by round."""

from collections import Counter
from dataclasses import replace
from itertools import product

import pytest
from c_kernels import asked_for

from mpilab.algorithms import COLLECTIVES, ROOTED, algorithms, message_bytes, schedule_of, tunables
from mpilab.cases.case import Case
from mpilab.kernels.build import KERNELS
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE

RANKS = range(1, 10)
NAMES = [(collective, name) for collective in COLLECTIVES for name in algorithms(collective)]
INT_BYTES = 4
# 13 elements are fewer than some numbers of blocks; 601 leave a remainder for all of them.
COUNTS = (0, 13, 601)


def cases(collective, name, ranks):
    """Odd sizes, the first and the last root, and every tunable of the algorithm."""
    shape = Case(collective, ranks, 0, function=f"{collective}_{name}", dump=False)
    if collective == "barrier":
        return [shape]
    tuned = tunables(collective, name)
    roots = sorted({0, ranks - 1}) if collective in ROOTED else (0,)
    made = [replace(shape, count=count, root=root) for count, root in product(COUNTS, roots)]
    last = replace(shape, count=31, root=roots[-1])
    if "segment" in tuned:
        # 3 bytes are less than an element; 90 are not a whole number of elements.
        made += [replace(last, segment=3), replace(last, count=601, segment=90)]
        made += [replace(last, root=0, segment=8), replace(last, root=0, count=601, segment=1024)]
    if "fanout" in tuned:
        made += [replace(last, segment=16, fanout=k) for k in (1, 2, 3, 20)]
    if "radix" in tuned:
        made += [replace(last, segment=16, radix=k) for k in (2, 3, 5)]
    return list(dict.fromkeys(made))


def planned(case, name):
    """(source, dest, bytes, round) of every message of the schedule, counted."""
    schedule = schedule_of(
        case.collective,
        name,
        case.ranks,
        root=case.root,
        count=case.count,
        element_bytes=INT_BYTES,
        segment=case.segment,
        fanout=case.fanout,
        radix=case.radix,
    )
    return Counter(
        (transfer.source, transfer.dest, message_bytes(schedule, transfer), number)
        for number, transfers in enumerate(schedule.rounds, 1)
        for transfer in transfers
    )


@pytest.fixture(scope="module")
def results(request):
    """A function that returns the Results of all cases on a number of ranks, from one mpirun."""
    done = {}
    asked = {*asked_for(request, "collective", "name")}
    names = [each for each in NAMES if each in asked]

    def of(ranks):
        if ranks not in done:
            wanted = [case for each in names for case in cases(*each, ranks)]
            done[ranks] = run_cases(KERNELS, wanted[0].function, wanted, limit=60.0)
        return done[ranks]

    return of


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("collective, name", NAMES)
def test_a_recording_holds_the_messages_of_the_schedule_in_their_rounds(
    collective, name, ranks, results
):
    tried = [r for r in results(ranks) if r.case.function == f"{collective}_{name}"]
    assert len(tried) == len(cases(collective, name, ranks))
    for result in tried:
        assert result.outcome == DONE, f"{result.case.describe()}: {result.detail}"
        assert result.recording.complete
        recorded = Counter(
            tuple(int(message[field]) for field in ("source", "dest", "bytes", "round"))
            for message in result.recording.messages
        )
        assert recorded == planned(result.case, name), result.case.describe()
