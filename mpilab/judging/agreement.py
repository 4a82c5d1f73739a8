"""Verdicts on a kernel that simulation and Open MPI agree on.

A simulated run takes hundredths of a second, so an answer is simulated on many cases. On Open
MPI, it runs on fewer: those that the rubric names for it or, if the simulation found an item wrong,
only that case. Neither of the two alone costs a mark: if they disagree, the item is ungradable.

Without SimGrid, the runs on Open MPI decide alone, and their verdicts are marked as unconfirmed. An
item without such runs, because it needs simulated time or many ranks, is ungradable.

Simulated time is judged here as well, because it is the same on every machine.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from mpilab.cases.case import COLLECTIVES, Case
from mpilab.judging import judge
from mpilab.judging.judge import Plan, Wrong
from mpilab.judging.rubric import KERNEL, Exercise, Item
from mpilab.judging.verdict import FAIL, PASS, UNGRADABLE, ExerciseVerdict, ItemVerdict
from mpilab.runners.result import DONE, ERROR, SKIPPED, Result

# More processes are too many for one machine: beyond this, the simulation decides.
MOST_REAL_RANKS = 64
NOT_TRIED = frozenset({ERROR, SKIPPED})
# For the feedback page; mpilab.grading.grade.simulation_notes tells the instructor the remedy.
NO_SIMULATION = (
    "SimGrid is not installed on the machine that graded this, and the item can only be tried on "
    "a simulated cluster."
)
NO_SIMULATION_HERE = (
    "It is tried on a simulated cluster, and SimGrid is not installed on this machine; run 'mpilab "
    "doctor', which says how to install it."
)
UNCONFIRMED_HERE = (
    "Right on Open MPI; not confirmed by simulation, because SimGrid is not installed on this "
    "machine (see 'mpilab doctor')."
)


@dataclass(frozen=True)
class Difference:
    """A case on which simulation and Open MPI disagree, with both Results."""

    item: str
    simulated: Result
    real: Result


def can_be_simulated(exercise: Exercise) -> bool:
    """True unless the kernel reads files: SimGrid moves no data in MPI-IO."""
    return not COLLECTIVES[exercise.collective].reads


def is_simulated(exercise: Exercise) -> bool:
    """True if a verdict on an exercise, in any variant, depends on simulations."""
    every = exercise.variants or (exercise,)
    return exercise.kind == KERNEL and any(map(can_be_simulated, every))


def to_simulate(exercise: Exercise, *, alone: bool = False) -> Plan:
    """All cases to simulate, each once, and for each the items that contain it.

    alone   only those that are not run on Open MPI.
    """
    pairs = []
    for item in exercise.items:
        cases = item.simulated if alone else (*item.cases, *item.simulated)
        timings = map(timed, item.simulated) if item.than else ()
        pairs += [(case, item.id) for case in (*cases, *timings)]
    return judge.each_once(pairs)


def to_run(exercise: Exercise, simulated: "Simulated | None") -> Plan:
    """All cases to run on Open MPI after a simulation, and for each the items that contain it.

    simulated   Simulated; None if there is no simulation.
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
    """The Results of a simulation by case, each judged once."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = {result.case: result for result in results}
        self._judged: dict[tuple[str, Case], tuple[Wrong | None, list[str]]] = {}

    def of(self, case: Case) -> Result:
        """The Result of a case."""
        return self._results.get(case) or Result(
            case, ERROR, detail="nothing came of its simulation"
        )

    def wrong(self, item: Item, case: Case, doubts: list[str] | None = None) -> Wrong | None:
        """As mpilab.judging.judge.first_wrong, for one case of an item."""
        if (item.id, case) not in self._judged:
            own: list[str] = []
            self._judged[item.id, case] = judge.first_wrong(item, [self.of(case)], own), own
        wrong, own = self._judged[item.id, case]
        if doubts is not None:
            doubts += own
        return wrong


def timed(case: Case) -> Case:
    """The case that measures the time of a call: the second one, and nothing is written."""
    return replace(case, record=False, dump=False, warmup=1)


def on_open_mpi(case: Case) -> Case:
    """The case for mpirun: instead of a platform, the ranks pretend to be at its places."""
    return replace(case, platform="", places=case.levels.places) if case.platform else case


def judge_exercise(
    exercise: Exercise, real: Iterable[Result], simulated: Simulated | None
) -> tuple[ExerciseVerdict, list[Difference]]:
    """(ExerciseVerdict, list of Difference) on a kernel.

    real       Results of the cases of `to_run`.
    simulated  Simulated, of the cases of `to_simulate`; None if there is no simulation.
    """
    differences: list[Difference] = []
    ran = {result.case: result for result in real}
    items = tuple(_item(exercise, item, ran, simulated, differences) for item in exercise.items)
    return ExerciseVerdict(exercise.id, exercise.title, items), differences


def check_exercise(
    exercise: Exercise, real: Sequence[Result], simulated: Iterable[Result] | None, most_ranks: int
) -> ExerciseVerdict:
    """The ExerciseVerdict for the author of the kernel: an item fails if either run shows a fault.

    real        Results of judge.plan(exercise, most_ranks).
    simulated   Results of to_simulate(exercise, alone=True); None if there is no simulation.
    """
    found = None if simulated is None else Simulated(simulated)

    def verdict(item: Item) -> ItemVerdict:
        run = judge.of_item(item, real, most_ranks)
        if item.cases or not item.simulated:
            said = judge.judge_item(exercise, item, run)
            if said.outcome == FAIL or not item.simulated:
                return said
        if found is None:
            if not run:
                return _verdict(item, UNGRADABLE, NO_SIMULATION_HERE)
            return replace(said, unconfirmed=said.outcome == PASS)
        said = judge.judge_item(exercise, item, list(map(found.of, item.simulated)))
        return said if said.outcome != PASS else _slow(exercise, item, found) or said

    items = tuple(map(verdict, exercise.items))
    return ExerciseVerdict(exercise.id, exercise.title, items)


def _item(
    exercise: Exercise,
    item: Item,
    ran: Mapping[Case, Result],
    found: Simulated | None,
    differences: list[Difference],
) -> ItemVerdict:
    if found is None:
        if not item.cases:
            return _verdict(item, UNGRADABLE, NO_SIMULATION)
        said = judge.judge_item(exercise, item, judge.of_item(item, ran.values()))
        unconfirmed = can_be_simulated(exercise) and said.outcome in (PASS, FAIL)
        return replace(said, unconfirmed=unconfirmed)
    doubts: list[str] = []
    differing, unconfirmed = "", False
    for case in (*item.cases, *item.simulated):
        real = ran.get(on_open_mpi(case))
        wrong = found.wrong(item, case, doubts)
        really = None if real is None else judge.first_wrong(item, [real], doubts)
        if wrong and really:
            return judge.failed(exercise, item, really)
        if wrong and real is None and case.ranks > MOST_REAL_RANKS:
            return judge.failed(exercise, item, wrong)
        unconfirmed |= wrong is not None
        either = wrong or really
        if either and real and not {found.of(case).outcome, real.outcome} & NOT_TRIED:
            differences.append(Difference(item.id, found.of(case), real))
            there = ("run on Open MPI", "simulated")[:: 1 if wrong else -1]
            differing = differing or (
                f"With {case.describe()}: right when {there[0]}, but not when {there[1]}: "
                f"{either.reason}"
            )
        elif not wrong and SKIPPED in (found.of(case).outcome, real and real.outcome):
            doubts.append("a case was skipped, although none before it failed")
    if unconfirmed:
        doubts.append("what went wrong in simulation was not tried on Open MPI")
    if differing or doubts:
        return _verdict(item, UNGRADABLE, differing or doubts[0])
    return _slow(exercise, item, found) or _verdict(item, PASS)


def _slow(exercise: Exercise, item: Item, found: Simulated) -> ItemVerdict | None:
    """The verdict on an item if its answer is slower than required, else None."""
    if not item.than:
        return None
    for case in item.simulated:
        took = found.of(timed(case))
        if took.outcome == ERROR:
            return _verdict(item, UNGRADABLE, f"With {case.describe()}: {took.detail}")
        if took.outcome != DONE:
            reason = f"called a second time, it did not come to its end ({took.outcome})."
            return judge.failed(exercise, item, judge.Wrong(took, reason))
        own, other = took.last_call_ns, kernel_ns(item.than, timed(case))
        if own * item.faster > other:
            reason = (
                f"the result is right, but it takes {own / 1000:.1f} µs of simulated time, where "
                f"{item.than} takes {other / 1000:.1f} µs: {other / own:.2f} times as fast, and "
                f"{item.faster:g} times is asked for."
            )
            times = {"simulated µs": own / 1000, f"simulated µs of {item.than}": other / 1000}
            return judge.failed(
                exercise, item, judge.Wrong(replace(took, case=case), reason, times)
            )
    return None


@cache
def kernel_ns(name: str, case: Case) -> int:
    """The simulated time in ns of the kit's kernel `name` for a timed case."""
    from mpilab.runners.simgrid import kernels, simulate

    (result,) = simulate(kernels(), name, [case])
    if result.outcome != DONE:
        raise AssertionError(f"{name} with {case.describe()}: {result.outcome}: {result.detail}")
    return result.last_call_ns


def _verdict(item: Item, outcome: str, reason: str = "") -> ItemVerdict:
    return ItemVerdict(item.id, item.title, item.points, outcome, reason)
