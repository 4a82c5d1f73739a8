"""Verdicts on a kernel that simulation and Open MPI agree on.

A simulated run costs hundredths of a second, so an answer is tried broadly there. On Open MPI it
is run with fewer cases: those that a rubric names for it, or, where the simulation found an item
wrong, that case alone. No mark is lost by what one of the two says: where they differ, nobody
knows, and the item is ungradable.

Simulated time is judged here as well: it is the same on every machine.
"""

from dataclasses import dataclass, replace
from functools import cache

from mpilab import judge
from mpilab.expected import COLLECTIVES
from mpilab.result import DONE, ERROR, SKIPPED, Result
from mpilab.verdict import FAIL, PASS, UNGRADABLE, ExerciseVerdict, ItemVerdict

# More processes than these are too many for one machine: there the simulation's word counts.
MOST_REAL_RANKS = 64
NOT_TRIED = frozenset({ERROR, SKIPPED})
NO_SIMULATION = (
    "SimGrid is not installed on the machine that graded this; install it ('mpilab doctor' says "
    "how) and grade again"
)
NO_SIMULATION_HERE = (
    "It is tried on a simulated cluster, and SimGrid is not installed here: 'mpilab doctor' says "
    "how to get it. The grader has it."
)


@dataclass(frozen=True)
class Difference:
    """A case that one of simulation and Open MPI finds right and the other wrong: two Results."""

    item: str
    simulated: Result
    real: Result


def can_be_simulated(exercise):
    """Kernels that read files cannot: SimGrid moves no data of MPI-IO."""
    return not COLLECTIVES[exercise.collective].reads


def to_simulate(exercise, *, alone=False):
    """All cases that are simulated, each once, and for each the items that it is in.

    alone   only those that are not run on Open MPI.
    """
    pairs = []
    for item in exercise.items:
        cases = item.simulated if alone else (*item.cases, *item.simulated)
        timings = map(timed, item.simulated) if item.than else ()
        pairs += [(case, item.id) for case in (*cases, *timings)]
    return judge.each_once(pairs)


def to_run(exercise, simulated):
    """All cases that are run on Open MPI after a simulation, and for each the items that it is in.

    simulated   Simulated; None where there is no simulation.
    """
    if simulated is None:
        return judge.plan(exercise)
    pairs = []
    for item in exercise.items:
        every = (*item.cases, *item.simulated)
        wrong = next((case for case in every if simulated.wrong(item, case)), None)
        cases = item.cases if wrong is None else [wrong] * (wrong.ranks <= MOST_REAL_RANKS)
        pairs += [(on_open_mpi(case), item.id) for case in cases]
    return judge.each_once(pairs)


class Simulated:
    """The Results of a simulation by their cases, each judged once."""

    def __init__(self, results):
        self._results = {result.case: result for result in results}
        self._judged = {}

    def of(self, case):
        """The Result of a case."""
        return self._results.get(case) or Result(
            case, ERROR, detail="nothing came of its simulation"
        )

    def wrong(self, item, case, doubts=None):
        """As mpilab.judge.first_wrong, of one case of an item."""
        if (item.id, case) not in self._judged:
            own = []
            self._judged[item.id, case] = judge.first_wrong(item, [self.of(case)], own), own
        wrong, own = self._judged[item.id, case]
        if doubts is not None:
            doubts += own
        return wrong


def timed(case):
    """The case that tells the time of a call: the second one, and nothing is written."""
    return replace(case, record=False, dump=False, warmup=1)


def on_open_mpi(case):
    """The same for mpirun: on a platform, the ranks pretend to be where they would be."""
    return replace(case, platform="", places=case.levels.places) if case.platform else case


def judge_exercise(exercise, real, simulated):
    """(ExerciseVerdict, list of Difference) of a kernel.

    real       Results of the cases of `to_run`.
    simulated  Simulated, of the cases of `to_simulate`; None where there is no simulation.
    """
    differences = []
    ran = {result.case: result for result in real}
    items = tuple(_item(exercise, item, ran, simulated, differences) for item in exercise.items)
    return ExerciseVerdict(exercise.id, exercise.title, items), differences


def check_exercise(exercise, real, simulated, most_ranks):
    """ExerciseVerdict for the one who wrote the kernel: an item fails by what either run shows.

    real        Results of judge.plan(exercise, most_ranks).
    simulated   Results of to_simulate(exercise, alone=True); None where there is no simulation.
    """
    found = None if simulated is None else Simulated(simulated)

    def verdict(item):
        if item.cases or not item.simulated:
            run = judge.of_item(item, real, most_ranks)
            said = judge.judge_item(exercise, item, run)
            if said.outcome == FAIL or not item.simulated:
                return said
        if found is None:
            return _verdict(item, UNGRADABLE, NO_SIMULATION_HERE)
        said = judge.judge_item(exercise, item, list(map(found.of, item.simulated)))
        return said if said.outcome != PASS else _slow(exercise, item, found) or said

    items = tuple(map(verdict, exercise.items))
    return ExerciseVerdict(exercise.id, exercise.title, items)


def _item(exercise, item, ran, found, differences):
    if found is None:
        if item.simulated:
            return _verdict(item, UNGRADABLE, NO_SIMULATION)
        return judge.judge_item(exercise, item, judge.of_item(item, ran.values()))
    doubts, differing, unconfirmed = [], "", False
    for case in (*item.cases, *item.simulated):
        real = ran.get(on_open_mpi(case))
        wrong = found.wrong(item, case, doubts)
        really = real and judge.first_wrong(item, [real], doubts)
        if wrong and really:
            return judge.failed(exercise, item, *really)
        if wrong and real is None and case.ranks > MOST_REAL_RANKS:
            return judge.failed(exercise, item, *wrong)
        unconfirmed |= wrong is not None
        if (wrong or really) and real and not {found.of(case).outcome, real.outcome} & NOT_TRIED:
            differences.append(Difference(item.id, found.of(case), real))
            there = ("run on Open MPI", "simulated")[:: 1 if wrong else -1]
            differing = differing or (
                f"With {case.describe()}: right when {there[0]}, but not when {there[1]}: "
                f"{(wrong or really)[1]}"
            )
        elif not wrong and SKIPPED in (found.of(case).outcome, real and real.outcome):
            doubts.append("a case was skipped, although none before it failed")
    if unconfirmed:
        doubts.append("what went wrong in simulation was not tried on Open MPI")
    if differing or doubts:
        return _verdict(item, UNGRADABLE, differing or doubts[0])
    return _slow(exercise, item, found) or _verdict(item, PASS)


def _slow(exercise, item, found):
    """The verdict on an item whose answer is slower than asked for, else None."""
    if not item.than:
        return None
    for case in item.simulated:
        took = found.of(timed(case))
        if took.outcome == ERROR:
            return _verdict(item, UNGRADABLE, f"With {case.describe()}: {took.detail}")
        if took.outcome != DONE:
            reason = f"called a second time, it did not come to its end ({took.outcome})."
            return judge.failed(exercise, item, took, reason, {})
        own, other = simulated_ns(took), kernel_ns(item.than, timed(case))
        if own * item.faster > other:
            reason = (
                f"the result is right, but it takes {own / 1000:.1f} µs of simulated time, where "
                f"{item.than} takes {other / 1000:.1f} µs: {other / own:.2f} times as fast, and "
                f"{item.faster:g} times is asked for."
            )
            times = {"simulated µs": own / 1000, f"simulated µs of {item.than}": other / 1000}
            return judge.failed(exercise, item, replace(took, case=case), reason, times)
    return None


def simulated_ns(result):
    """Simulated ns of a Result's last call, from the first rank's start to the last one's end."""
    spans = [output.spans_ns[-1] for output in result.outputs]
    return int(max(span[1] for span in spans) - min(span[0] for span in spans))


@cache
def kernel_ns(name, case):
    """Simulated ns of the kit's kernel `name` for a timed case."""
    from mpilab.simulated import kernels, simulate

    (result,) = simulate(kernels(), name, [case])
    if result.outcome != DONE:
        raise AssertionError(f"{name} with {case.describe()}: {result.outcome}: {result.detail}")
    return simulated_ns(result)


def _verdict(item, outcome, reason=""):
    return ItemVerdict(item.id, item.title, item.points, outcome, reason)
