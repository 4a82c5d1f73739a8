"""Prove that a rubric does what it should: what is right gets every point, what is blank none, and
each seeded bug loses the points of the items that it breaks, no more and no fewer; in each run the
same, word for word.

All answers go the way of a student's: the referee judges them in the sandbox.
"""

from concurrent.futures import as_completed
from dataclasses import dataclass, replace

from mpilab.build import ROOT
from mpilab.grading.answers import answer_cells, is_blank
from mpilab.grading.grade import Assignment, prepare
from mpilab.grading.referee import Referee
from mpilab.grading.seeded import bugs_of, references_of
from mpilab.grading.workers import Workers
from mpilab.rubric import TEXT
from mpilab.verdict import FAIL, MANUAL, PASS

REFERENCE, BLANK, BUG = "reference", "blank", "seeded bug"
# Evidence that differs from run to run: for how many seconds a rank of a hang had been waiting, how
# often it was met at a line, how long a call took, and who came first where that is open.
BY_THE_CLOCK = ("since", "looks", "took", "svg", "svg_alt")


@dataclass(frozen=True)
class Answer:
    """One answer whose verdict is known beforehand.

    role   REFERENCE, BLANK or BUG.
    wanted   {item id: outcome} that the referee must come to.
    """

    name: str
    role: str
    exercise: str
    source: str
    wanted: dict


@dataclass(frozen=True)
class Proved:
    """What came of one answer: its verdicts, one a run, and every deviation as a sentence."""

    answer: Answer
    verdicts: tuple
    deviations: tuple

    @property
    def lost(self):
        """Ids of the items that gave no points, in the first run."""
        return tuple(item.item for item in self.verdicts[0].items if item.outcome != PASS)


@dataclass(frozen=True)
class Proof:
    """All of a lab's answers, in the order of the rubric; each was judged `runs` times."""

    lab: str
    runs: int
    proved: tuple

    @property
    def deviations(self):
        """Everything that is not as it should be, as sentences."""
        return [f"{each.answer.exercise}, {each.answer.name}: {said}"
                for each in self.proved for said in each.deviations]  # fmt: skip

    def count(self, role):
        """How many answers have this role."""
        return sum(each.answer.role == role for each in self.proved)


def prove(lab, *, exercise=None, jobs=None, runs=2, first_slot=0, unsafe=False, progress=True,
          root=ROOT):  # fmt: skip
    """Judge the references, the blanks and the seeded bugs of a lab; Proof.

    exercise   only the answers to this one.
    jobs       answers that are judged at a time, in the sandbox's slots from `first_slot` on.
    runs       how often each is judged: all verdicts on it must be equal, reasons and evidence too,
               but for BY_THE_CLOCK.

    Raises InputError for a lab, an exercise or a list of bugs that is not whole, SetupError where
    there is no sandbox.
    """
    from tqdm.auto import tqdm

    assignment = Assignment.load(lab, root)
    answers = answers_of(assignment, exercise, root)
    prepare(assignment)

    def judged(sandbox, answer):
        asked = assignment.rubric.exercise(answer.exercise)
        return Referee(sandbox).judge(asked, answer.source, blank=answer.role == BLANK)

    with (
        Workers(jobs, first_slot=first_slot, unsafe=unsafe) as workers,
        tqdm(
            total=runs * len(answers), desc=f"proving {lab}", unit="answer", disable=not progress
        ) as bar,
    ):
        futures = {workers.submit(judged, answer): (run, number)
                   for run in range(runs) for number, answer in enumerate(answers)}  # fmt: skip
        verdicts = {}
        for future in as_completed(futures):
            verdicts[futures[future]] = future.result()
            bar.update()
    proved = tuple(
        compare(answer, [verdicts[run, number] for run in range(runs)])
        for number, answer in enumerate(answers)
    )
    return Proof(lab, runs, proved)


def answers_of(assignment, exercise=None, root=ROOT):
    """Every Answer of an Assignment, or those to one exercise, in the order of the rubric."""
    rubric = assignment.rubric
    if exercise is not None:
        rubric.exercise(exercise)
    stubs, answers = answer_cells(assignment.notebook), []
    for name, where, source in references_of(assignment.lab, rubric, root):
        by_hand = rubric.exercise(where).kind == TEXT
        wanted = dict.fromkeys(_items(rubric, where, source), MANUAL if by_hand else PASS)
        answers.append(Answer(name, REFERENCE, where, source, wanted))
    for each in rubric.exercises:
        stub = stubs[each.id]
        assert is_blank(stub, stub)
        wanted = dict.fromkeys((item.id for item in each.items), FAIL)
        answers.append(Answer("blank", BLANK, each.id, stub, wanted))
    for bug in bugs_of(assignment.lab, rubric, root):
        wanted = {item: FAIL if item in bug.loses else PASS
                  for item in _items(rubric, bug.exercise, bug.source)}  # fmt: skip
        answers.append(Answer(bug.name, BUG, bug.exercise, bug.source, wanted))
    order = {each.id: number for number, each in enumerate(rubric.exercises)}
    return sorted(
        (answer for answer in answers if exercise in (None, answer.exercise)),
        key=lambda answer: order[answer.exercise],
    )


def _items(rubric, exercise, source):
    from mpilab.kernelcell import function_of

    return [item.id for item in rubric.exercise(exercise).variant(function_of(source)).items]


def compare(answer, verdicts):
    """Proved: the verdicts on an answer beside what they must be, and beside each other."""
    said = [
        f"{item.item} is {item.outcome}, and should be {wanted}"
        + (f": {item.reason}" if item.reason else "")
        for item, wanted in _beside(answer, verdicts[0])
        if item.outcome != wanted
    ]
    said += _differences(verdicts)
    return Proved(answer, tuple(verdicts), tuple(said))


def _beside(answer, verdict):
    got = [item.item for item in verdict.items]
    if got != list(answer.wanted):
        raise AssertionError(f"{answer.name}: judged by {got}, not by {list(answer.wanted)}")
    return zip(verdict.items, answer.wanted.values(), strict=True)


def _is_table(value):
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def _steady(verdict):
    """The verdict without what the clock decides."""

    def without(value):
        if not _is_table(value):
            return value
        return [
            {name: cell for name, cell in row.items() if name not in BY_THE_CLOCK} for row in value
        ]

    items = tuple(
        replace(item, evidence={name: without(value) for name, value in item.evidence.items()
                                if name not in BY_THE_CLOCK})
        for item in verdict.items
    )  # fmt: skip
    return replace(verdict, items=items)


def _differences(verdicts):
    """How a later verdict differs from the first, item by item, as sentences."""
    verdicts = [_steady(verdict) for verdict in verdicts]
    for run, other in enumerate(verdicts[1:], 2):
        for first, later in zip(verdicts[0].items, other.items, strict=True):
            if first.outcome != later.outcome or first.reason != later.reason:
                yield (f"{first.item} in run 1: {first.outcome} {first.reason!r}, in run {run}: "
                       f"{later.outcome} {later.reason!r}")  # fmt: skip
            elif first != later:
                names = [name for name in {**first.evidence, **later.evidence}
                         if first.evidence.get(name) != later.evidence.get(name)]  # fmt: skip
                told = "; ".join(f"{name}: {first.evidence.get(name)!r}, then "
                                 f"{later.evidence.get(name)!r}" for name in names)  # fmt: skip
                yield f"{first.item}: its evidence in run {run} is another one: {told}"
