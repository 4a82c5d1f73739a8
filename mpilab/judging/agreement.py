"""Verdicts on a kernel that several runs of it, the witnesses, agree on.

Where a kernel can be built for the jail, in which an answer can reach nothing but its own memory
and MPI's calls (mpilab.kernels.jail), the first witness runs it there, so that nobody can forge a
pass. A simulated run takes hundredths of a second, so it is simulated on many cases. On Open MPI,
the native kernel runs on fewer: those that the rubric names for it or, if the first witness found
an item wrong, only that case. An item passes only if both find it right.

Wrong data on Open MPI prove an answer wrong. Where else the two witnesses disagree, or the case has
many ranks, a third one, native, is asked about that case: an item fails if two find it wrong, with
the native run's explanation, unless only SimGrid crashed, twice. Otherwise it is ungradable,
because the jail may be at fault: its addresses and `long` have 32 bits. So it is where both are
right, but not by the same messages.

Without the jail, the first witness is a native simulation, whose wrong data are proof as well, and
there is no third. An answer that calls what SimGrid cannot simulate is run on Open MPI alone,
including the simulated cases that have few ranks. Without SimGrid, the runs on Open MPI decide
alone, and their verdicts are marked as unconfirmed. An item without such runs, because it needs
simulated time or many ranks, is ungradable.

Simulated time is judged here as well, because it is the same on every machine.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from mpilab.cases.case import COLLECTIVES, Case
from mpilab.diagnosis.model import WRONG_RESULT
from mpilab.errors import Ungradable
from mpilab.judging import judge
from mpilab.judging.judge import Plan, Wrong
from mpilab.judging.rubric import KERNEL, Exercise, Item
from mpilab.judging.transfers import differing_calls, is_examined, other_data
from mpilab.judging.verdict import FAIL, PASS, UNGRADABLE, ExerciseVerdict, ItemVerdict
from mpilab.kernels.simgrid import kernels
from mpilab.runners import simgrid
from mpilab.runners.result import CRASH, DONE, ERROR, SKIPPED, SPENT, Result
from mpilab.runners.simgrid import CANNOT_SIMULATE

# One machine cannot run more processes: beyond this, the simulation decides.
MOST_REAL_RANKS = 64
# How many cases of an item, on how many ranks, are tried first where one failure is enough.
FEW, FEW_RANKS = 4, 8
# With more, Open MPI is asked only where nothing else can decide: to start 64 ranks takes 10 s of
# processor time.
USUAL_REAL_RANKS = 16
NOT_TRIED = frozenset({ERROR, SKIPPED})
# What messages are compared by.
_ENDS = ["source", "dest"]
_SENT = [*_ENDS, "bytes"]
# For the feedback page; mpilab.grading.grade.tool_notes tells the instructor the remedy.
NO_SIMULATION = (
    "SimGrid is not installed on the machine that graded this, and the item needs a simulated "
    "cluster."
)
NO_SIMULATION_HERE = (
    "It needs a simulated cluster, and SimGrid is not installed on this machine; 'mpilab doctor' "
    "says how to install it."
)
UNCONFIRMED_HERE = (
    "Right on Open MPI; not confirmed by simulation, because SimGrid is not installed on this "
    "machine (see 'mpilab doctor')."
)


# How a remark begins on an item of a public check that was left out after a run that never ended.
NOT_TRIED_YET = "Not tried"


@dataclass(frozen=True)
class Difference:
    """A case on which the first witness and Open MPI disagree, with both Results."""

    item: str
    first: Result
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
        again = () if alone else map(other_data, _examined(item))
        pairs += [(case, item.id) for case in (*cases, *timings, *again)]
    return judge.each_once(pairs)


def to_isolate(exercise: Exercise) -> Plan:
    """As `to_simulate`, for a first witness that runs on Open MPI in the jail."""
    return judge.each_once(
        (case, item.id)
        for item in exercise.items
        for case in (*item.cases, *map(other_data, _examined(item)))
    )


def _examined(item: Item) -> list[Case]:
    """The case of an item that the first witness runs again with other data, if any.

    The rubric's seed chooses it. An item that only asks for right results has none: useless
    messages would gain nothing there.
    """
    if not item.than and all(what == "leaks" for what, _ in item.counted):
        return []
    cases = item.simulated if item.than else (*item.cases, *item.simulated)
    chosen = min(filter(is_examined, cases), key=lambda case: case.seed, default=None)
    if chosen is None:
        return []
    return [timed(chosen) if item.than else chosen]


def _data_in_calls(item: Item, found: "Witness") -> str:
    """Why the calls of an item's right kernel could carry data without messages; "" if not."""
    for case in _examined(item):
        first, second = found.of(case), found.of(other_data(case))
        about = f"With {case.describe()}"
        if not first.recording or not second.recording:
            return f"{about}: it was not right with other data, too ({second.outcome})"
        if said := differing_calls(first.recording, second.recording):
            return f"{about}: {said}"
    return ""


def to_run(exercise: Exercise, found: "Witness | None") -> Plan:
    """All cases to run natively on Open MPI, and for each the items that contain it.

    found   the first witness; None if Open MPI is the only one.
    """
    if found is None:
        return judge.plan(exercise)
    pairs = []
    for item in exercise.items:
        wrong = next((case for case in item.every if found.wrong(item, case)), None)
        cases = item.cases if wrong is None else [wrong] * _can_run(found.of(wrong))
        if wrong is not None and found.of(wrong).outcome == SPENT:
            continue
        pairs += [(on_open_mpi(case), item.id) for case in cases]
    return judge.each_once(pairs)


def disputed(exercise: Exercise, real: "Witness", found: "Witness") -> Plan:
    """The cases about which to ask a third witness: the first of each item, if any.

    Before each comes the case that the first witness ran before it in the same process: a fault may
    be in what an earlier call left behind.

    real    the witness of the cases of `to_run`, from native runs.
    found   the first witness, from the jail.
    """
    pairs = []
    for item in exercise.items:
        for case in item.every:
            wrong = found.wrong(item, case)
            really = real.wrong(item, on_open_mpi(case)) if on_open_mpi(case) in real else None
            if _spent(wrong, really):
                break
            if really and (wrong or _is_proved(really)):
                break
            if wrong or really:
                before = found.before(case)
                pairs += [(before, f"before {item.id}")] if before else []
                pairs.append((case, item.id))
                break
    return judge.each_once(pairs)


def without_simulation(exercise: Exercise) -> Exercise:
    """The exercise with only those cases that are run on Open MPI in any event."""
    items = tuple(replace(item, simulated=(), also=(), than="") for item in exercise.items)
    return replace(exercise, items=items)


def with_few_cases(exercise: Exercise) -> Exercise:
    """The exercise with at most FEW cases of each item, on few ranks, and none that is timed.

    An item that these cases fail is lost; one that passes them may still be.
    """

    def few(cases: Sequence[Case]) -> tuple[Case, ...]:
        most = max(FEW_RANKS, min((case.ranks for case in cases), default=0))
        small = [case for case in cases if case.ranks <= most]
        return tuple(small[:: -(-len(small) // FEW) or 1])

    kept = [few((*item.cases, *item.simulated)) for item in exercise.items]
    every = {case for cases in kept for case in cases}
    items = [
        replace(
            item,
            cases=tuple(case for case in item.cases if case in cases),
            simulated=tuple(case for case in item.simulated if case in cases),
            also=tuple(case for case in item.also if case in every),
            than="",
        )
        for item, cases in zip(exercise.items, kept, strict=True)
    ]
    variants = tuple(map(with_few_cases, exercise.variants))
    return replace(exercise, items=tuple(items), variants=variants)


def run_alone(exercise: Exercise) -> Exercise:
    """The exercise for an answer that cannot be simulated: simulated cases are run on Open MPI.

    Those with many ranks are left out, unless an item has no others.
    """

    def moved(item: Item) -> Item:
        few = [case for case in item.simulated if case.ranks <= USUAL_REAL_RANKS]
        if not few and not item.cases:
            fewest = min((case.ranks for case in item.simulated), default=0)
            few = [case for case in item.simulated if case.ranks == fewest <= MOST_REAL_RANKS]
        cases = dict.fromkeys((*item.cases, *map(on_open_mpi, few)))
        return replace(item, cases=tuple(cases), simulated=(), also=())

    return replace(exercise, items=tuple(map(moved, exercise.items)))


def unconfirmed(exercise: Exercise, verdict: ExerciseVerdict, why: str = "") -> ExerciseVerdict:
    """A verdict from runs on Open MPI alone, marked as such.

    why   that the answer cannot be simulated, a sentence without its period; "" if SimGrid is not
          installed: then items that have simulated cases only are ungradable.
    """

    def marked(item: Item, said: ItemVerdict) -> ItemVerdict:
        if not item.cases:
            told = f"{why}, and it has more ranks than can be run here." if why else NO_SIMULATION
            return _verdict(item, UNGRADABLE, told)
        if why and item.than and said.outcome == PASS:
            return _verdict(item, UNGRADABLE, f"{why}, and only a simulation can time it.")
        return replace(said, unconfirmed=said.outcome in (PASS, FAIL))

    tried = run_alone(exercise) if why else exercise
    return replace(verdict, items=tuple(map(marked, tried.items, verdict.items)))


class Witness:
    """The Results of one kind of run by case, each judged once.

    isolated   they are from the jail.
    cannot     why the answer cannot be simulated, a sentence without its period; "" if it can.
    """

    def __init__(self, results: Iterable[Result], *, isolated: bool = False) -> None:
        self.isolated = isolated
        self._results = {result.case: result for result in results}
        self._judged: dict[tuple[str, Case], tuple[Wrong | None, list[str]]] = {}
        self._known = judge.Known()
        self.cannot = next(
            (
                result.detail
                for result in self._results.values()
                if result.outcome == ERROR and result.detail.startswith(CANNOT_SIMULATE)
            ),
            "",
        )

    def __contains__(self, case: Case) -> bool:
        return case in self._results

    @property
    def results(self) -> Iterable[Result]:
        """The Results, in the order of the runs."""
        return self._results.values()

    def of(self, case: Case) -> Result:
        """The Result of a case."""
        return self._results.get(case) or Result(case, ERROR, detail="it gave no result")

    def before(self, case: Case) -> Case | None:
        """The case that ran just before this one in the same process; None if it was the first."""

        def process(one: Case) -> tuple[object, ...]:
            return one.ranks, one.bystanders, one.places, one.platform, one.latencies

        earlier = list(self._results)
        earlier = earlier[: earlier.index(case)] if case in earlier else []
        return next((one for one in reversed(earlier) if process(one) == process(case)), None)

    def wrong(self, item: Item, case: Case, doubts: list[str] | None = None) -> Wrong | None:
        """As mpilab.judging.judge.first_wrong, for one case of an item."""
        if (item.id, case) not in self._judged:
            own: list[str] = []
            wrong = judge.first_wrong(item, [self.of(case)], own, self._known)
            self._judged[item.id, case] = wrong, own
        wrong, own = self._judged[item.id, case]
        if doubts is not None:
            doubts += own
        return wrong


def timed(case: Case) -> Case:
    """The case that measures the time of a call: the second one, with its own data."""
    return replace(case, dump=False, warmup=1, fresh=True)


def on_open_mpi(case: Case) -> Case:
    """The case for mpirun: instead of a platform, the ranks pretend to be at its places."""
    if case.latencies:
        return replace(case, latencies=0)
    return replace(case, platform="", places=case.levels.places) if case.platform else case


def _can_run(first: Result) -> bool:
    """Whether to ask Open MPI about a case, which has no latencies of its choice there.

    A crash may be SimGrid's own, in any simulation.
    """
    most = MOST_REAL_RANKS if first.outcome == CRASH else USUAL_REAL_RANKS
    return first.case.ranks <= most and not first.case.latencies


def judge_exercise(
    exercise: Exercise,
    real: Witness,
    found: Witness | None,
    third: Witness | None = None,
) -> tuple[ExerciseVerdict, list[Difference]]:
    """(ExerciseVerdict, list of Difference) on a kernel.

    real    the witness of the cases of `to_run`.
    found   the first witness, of all cases; None if Open MPI is the only one.
    third   the witness of the cases of `disputed`; None if there are none, or without the jail.
    """
    differences: list[Difference] = []
    items = tuple(_item(exercise, item, real, found, third, differences) for item in exercise.items)
    return ExerciseVerdict(exercise.id, exercise.title, items), differences


def judge_simulated(exercise: Exercise, found: Witness) -> ExerciseVerdict:
    """The ExerciseVerdict by simulation alone, without evidence.

    found   the witness of the cases of `to_simulate`.
    """

    def verdict(item: Item) -> ItemVerdict:
        doubts: list[str] = []
        for case in item.every:
            wrong = found.wrong(item, case, doubts)
            if wrong:
                return _verdict(item, FAIL, f"With {case.describe()}: {wrong.reason}")
        if doubts:
            return _verdict(item, UNGRADABLE, doubts[0])
        slow = _slow(exercise, item, found)
        return _verdict(item, slow.outcome, slow.reason) if slow else _verdict(item, PASS)

    return ExerciseVerdict(exercise.id, exercise.title, tuple(map(verdict, exercise.items)))


def check_exercise(
    exercise: Exercise, real: Sequence[Result], simulated: Iterable[Result] | None, most_ranks: int
) -> ExerciseVerdict:
    """The ExerciseVerdict for the author of the kernel: an item fails if either run shows a fault.

    An item of which a case was skipped, and that no other case proves wrong, was not tried.

    real        Results of judge.plan(exercise, most_ranks).
    simulated   Results of to_simulate(exercise, alone=True); None if there is no simulation.
    """
    found = None if simulated is None else Witness(simulated)

    def verdict(item: Item) -> ItemVerdict:
        run = judge.of_item(item, real, most_ranks)
        is_whole = all(result.outcome != SKIPPED for result in run)
        if item.cases or not item.simulated:
            said = judge.judge_item(exercise, item, run)
            if said.outcome != FAIL and not is_whole:
                said = _verdict(item, UNGRADABLE, _not_tried_yet(real))
            if said.outcome == FAIL or not item.simulated:
                return said
        if found is None:
            if not run:
                return _verdict(item, UNGRADABLE, NO_SIMULATION_HERE)
            return replace(said, unconfirmed=said.outcome == PASS)
        simulated = judge.judge_item(exercise, item, list(map(found.of, item.simulated)))
        if simulated.outcome == PASS:
            simulated = _slow(exercise, item, found) or simulated
        return simulated if is_whole or simulated.outcome == FAIL else said

    items = tuple(map(verdict, exercise.items))
    return ExerciseVerdict(exercise.id, exercise.title, items)


def _not_tried_yet(results: Iterable[Result]) -> str:
    """The remark on an item without a verdict because a case of another one never ended."""
    first = next((one for one in results if one.outcome not in (DONE, SKIPPED)), None)
    if first is None:
        return f"{NOT_TRIED_YET}: its cases were skipped."
    end = "could not be run" if first.outcome == ERROR else f"ended in a {first.outcome}"
    return f"{NOT_TRIED_YET}: an earlier case ({first.case.describe()}) {end}. Fix that first."


def _item(
    exercise: Exercise,
    item: Item,
    ran: Witness,
    found: Witness | None,
    third: Witness | None,
    differences: list[Difference],
) -> ItemVerdict:
    if found is None:
        return judge.judge_item(exercise, item, judge.of_item(item, ran.results))
    doubts: list[str] = []
    differing, untried, proof = "", False, None
    also = set(item.also)
    for case in item.every:
        if case in also and found.of(case).outcome in NOT_TRIED:
            continue
        there = on_open_mpi(case)
        real = ran.of(there) if there in ran else None
        wrong = found.wrong(item, case, doubts)
        really = None if real is None else ran.wrong(item, there, doubts)
        if spent := _spent(wrong, really):
            return judge.failed(exercise, item, spent)
        if wrong and really:
            return judge.failed(exercise, item, really)
        if wrong and real is None and not _can_run(wrong.result) and not found.isolated:
            return judge.failed(exercise, item, wrong)
        in_dispute = third is not None and case in third and (wrong or really)
        # A third witness for which no time was left has seen nothing.
        asked = third is not None and in_dispute and third.of(case).outcome != SPENT
        again = third.wrong(item, case, doubts) if third and asked else None
        if again and not (real and not really and _may_be_simgrids(found.of(case), again.result)):
            return judge.failed(exercise, item, again)
        untried |= wrong is not None
        for one in (really, None if found.isolated else wrong):
            proof = proof or (one if one and _is_proved(one) else None)
        either = wrong or really
        if either and real and not {found.of(case).outcome, real.outcome} & NOT_TRIED:
            differences.append(Difference(item.id, found.of(case), real))
            first = "run in isolation" if found.isolated else "simulated"
            right, not_right = ("run on Open MPI", first)[:: 1 if wrong else -1]
            differing = differing or (
                f"With {case.describe()}: right when {right}, but not when {not_right}: "
                f"{either.reason}"
            )
        elif not wrong and SKIPPED in (found.of(case).outcome, real and real.outcome):
            doubts.append("a case was skipped, although none before it failed")
        elif real and not either and _other_messages(found.of(case), real):
            differences.append(Difference(item.id, found.of(case), real))
            first = "in isolation" if found.isolated else "when simulated"
            differing = differing or (
                f"With {case.describe()}: right, but it sends other messages {first} than on Open "
                "MPI"
            )
    if proof:
        return judge.failed(exercise, item, proof)
    if untried:
        doubts.append("the case that failed was not tried on Open MPI")
    if differing or doubts:
        return _verdict(item, UNGRADABLE, differing or doubts[0])
    slow = _slow(exercise, item, found)
    for case in _examined(item):
        if slow is None and (spent := _spent(found.wrong(item, other_data(case)))):
            return judge.failed(exercise, item, spent)
    if slow is None and can_be_simulated(exercise) and (said := _data_in_calls(item, found)):
        return _verdict(item, UNGRADABLE, said)
    return slow or _verdict(item, PASS)


def _other_messages(one: Result, other: Result) -> bool:
    """True if both are recorded, and the second sent other messages than the first, in any order.

    In the jail, a message may have half of the bytes: `long`, `size_t` and pointers have 4 there.
    """
    if one.recording is None or other.recording is None:
        return False
    recordings = one.recording, other.recording
    here, there = (np.sort(sent.messages[_SENT], order=_SENT) for sent in recordings)
    if len(here) != len(there) or np.any(here[_ENDS] != there[_ENDS]):
        return True
    least, most = there["bytes"] // 2, there["bytes"]
    return bool(np.any((here["bytes"] < least) | (here["bytes"] > most)))


def _spent(*found: Wrong | None) -> Wrong | None:
    """What to tell if one of these cases was not run for lack of processor time, else None.

    That decides without another witness, which would take as much. What another one has found wrong
    says more.
    """
    told = [wrong for wrong in found if wrong]
    if all(wrong.result.outcome != SPENT for wrong in told):
        return None
    return next((wrong for wrong in told if wrong.result.outcome != SPENT), told[0])


def _may_be_simgrids(first: Result, third: Result) -> bool:
    """Whether SimGrid may have ended both simulations itself, of a case that is right on Open MPI.

    The kernel's own faults are traps in the jail. SimGrid 3.32 aborts on some right programs: one
    that frees a request of MPI_Isend to MPI_PROC_NULL, for example.
    """
    return first.outcome == third.outcome == CRASH


def _is_proved(wrong: Wrong) -> bool:
    """Whether the data prove the fault: the call ended everywhere and left wrong bytes."""
    diagnosis = wrong.diagnosis
    return wrong.result.outcome == DONE and diagnosis is not None and diagnosis.kind == WRONG_RESULT


def _slow(exercise: Exercise, item: Item, found: Witness) -> ItemVerdict | None:
    """The verdict on an item if its answer is slower than required, else None."""
    if not item.than:
        return None
    for case in item.simulated:
        took = found.of(timed(case))
        told = replace(took, case=case)  # as the student knows the case
        try:
            wrong = judge.wrong_later(took)
        except Ungradable as error:
            return _verdict(item, UNGRADABLE, f"With {case.describe()}: {error.public}")
        if wrong is not None:
            return judge.failed(exercise, item, replace(wrong, result=told))
        own, other = took.last_call_ns, kernel_ns(item.than, timed(case))
        if own * item.faster > other:
            reason = (
                f"the result is right, but it takes {own / 1000:.1f} µs of simulated time, where "
                f"{item.than} takes {other / 1000:.1f} µs: {other / own:.2f} times as fast, and "
                f"{item.faster:g} times is required."
            )
            times = {"simulated µs": own / 1000, f"simulated µs of {item.than}": other / 1000}
            return judge.failed(exercise, item, judge.Wrong(told, reason, times))
    return None


@cache
def kernel_ns(name: str, case: Case) -> int:
    """The simulated time in ns of the kit's kernel `name` for a timed case."""
    (result,) = simgrid.simulate(kernels(), name, [case])
    if result.outcome != DONE:
        raise AssertionError(f"{name} with {case.describe()}: {result.outcome}: {result.detail}")
    return result.last_call_ns


def _verdict(item: Item, outcome: str, reason: str = "") -> ItemVerdict:
    return ItemVerdict(item.id, item.title, item.points, outcome, reason)
