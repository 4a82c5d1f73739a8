"""Rank a class by simulated time: who wrote the fastest kernel for clusters that nobody has seen?

grading/LAB/leaderboard.toml says by which exercise and where:

    exercise = "own"                    # a kernel exercise of the rubric
    than = "bcast_node_group"           # our kernel that times are compared with
    platforms = ["groups-4x2x4 rr"]     # mpilab.simulated.standing
    counts = [16, 65536]                # all combinations
    roots = [0, -1]                     # the time of a platform and count is the mean over these

The answers, and the verdicts on them, come from a gradebook. Only those are ranked that are right:
that have lost no item but for being slow, and whose results on these clusters are right as well.
The score is the geometric mean, over platforms and counts, of how many times as fast as `than` it
is. It is the same on every machine.
"""

import hashlib
from dataclasses import dataclass, replace
from itertools import product
from math import exp, log
from pathlib import Path
from statistics import fmean

from tqdm import tqdm

from mpilab import confirmed, exercises, judge, kernelcell
from mpilab.build import ROOT
from mpilab.errors import InputError, Ungradable
from mpilab.grading import trials
from mpilab.harness import Case
from mpilab.result import DONE
from mpilab.rubric import KERNEL, Exercise, Item
from mpilab.simulated.standing import places
from mpilab.toml_files import loads
from mpilab.verdict import PASS

_MANNERS = ("brave", "bright", "calm", "clever", "curious", "daring", "eager", "gentle", "happy",
            "keen", "lively", "merry", "nimble", "patient", "quick", "quiet", "silver", "steady",
            "sunny", "swift", "tall", "tidy", "wise", "witty")  # fmt: skip
_BIRDS = ("albatross", "avocet", "bittern", "bunting", "condor", "crane", "curlew", "dipper",
          "egret", "falcon", "finch", "gannet", "heron", "ibis", "jackdaw", "kestrel", "kingfisher",
          "lapwing", "linnet", "merlin", "nightjar", "oriole", "osprey", "plover", "puffin",
          "raven", "redstart", "sandpiper", "siskin", "skylark", "starling",
          "stork", "swallow", "tern", "thrush",
          "wagtail", "warbler", "wren")  # fmt: skip
_KEYS = {"exercise", "than", "platforms", "counts", "roots"}


@dataclass(frozen=True)
class Board:
    """What a class is ranked by.

    exercise  of the rubric, with one item: all cases, for their results.
    title     of the lab.
    than      name of the kernel that is compared with.
    points    {(platform, bytes): cases, one for each root}.
    slow      ids of the rubric's items that are about time: who loses them may still be ranked.
    """

    title: str
    exercise: Exercise
    than: str
    points: dict
    slow: frozenset


@dataclass(frozen=True)
class Entry:
    """A student on the board.

    score    how many times as fast as the board's `than`; None for who is not ranked.
    seconds  {(platform, bytes): simulated seconds}.
    reason   why it is not ranked, else empty.
    """

    student: str
    score: float | None
    seconds: dict
    reason: str = ""


def load(lab, root=ROOT):
    """The Board of a lab; InputError for a lab without one, and for a file that says nonsense."""
    path = Path(root) / "grading" / lab / "leaderboard.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(
            f"{path}: no such file; lab {lab!r} has no leaderboard, or is misspelt"
        ) from None
    table = loads(text, str(path))
    for key in sorted(table.keys() - _KEYS):
        raise InputError(
            f"{path}: the key {key!r} is unknown; known are {', '.join(sorted(_KEYS))}"
        )
    for key in sorted(_KEYS - table.keys()):
        raise InputError(f"{path}: the key {key!r} is missing")
    rubric = exercises.load(Path(root) / "grading" / lab / "rubric.toml")
    try:
        exercise = rubric.exercise(table["exercise"])
        if exercise.kind != KERNEL or exercise.variants:
            raise InputError(f"exercise {exercise.id!r}: only one kernel can be timed")
        return _board(rubric.title, exercise, table)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _board(title, exercise, table):
    points = {}
    for place, count, root in product(table["platforms"], table["counts"], table["roots"]):
        ranks = len(places(place))
        case = Case(exercise.collective, ranks, count, root=root % ranks, platform=place)
        points.setdefault((place, case.block_bytes), []).append(case)
    if not points:
        raise InputError("no case in it; name at least one platform, count and root")
    every = tuple(case for cases in points.values() for case in cases)
    item = Item("all", "Right result", 0, (), simulated=every)
    asked = replace(exercise, items=(item,), variants=())
    slow = frozenset(one.id for one in exercise.items if one.than)
    return Board(title, asked, table["than"], points, slow)


def rank(board, verdicts, sandbox, progress=False):
    """The class in the order of the board, those who are not ranked last: list of Entry.

    verdicts   SubmissionVerdict of each student, with the answers that were judged.
    sandbox    mpilab.grading.sandbox.Sandbox to run the answers in.

    Raises SetupError without SimGrid.
    """
    compared = {place: _mean(confirmed.kernel_ns(board.than, confirmed.timed(case)) / 1e9
                             for case in cases)
                for place, cases in board.points.items()}  # fmt: skip
    entries = [_entry(board, verdict, sandbox, compared)
               for verdict in tqdm(verdicts, disable=not progress, unit="answer")]  # fmt: skip
    return sorted(entries, key=lambda one: (-(one.score or 0.0), one.student))


def _entry(board, verdict, sandbox, compared):
    try:
        seconds = times(board, _answer(board, verdict), sandbox)
    except (Refused, Ungradable) as error:
        return Entry(verdict.student, None, {}, str(error))
    ratios = [log(compared[place] / own) for place, own in seconds.items()]
    return Entry(verdict.student, exp(_mean(ratios)), seconds)


class Refused(Exception):
    """Why an answer is not ranked, in a sentence."""


def _answer(board, verdict):
    """The C text of a student's answer; Refused where the referee found it wrong."""
    if verdict.reason:
        raise Refused(verdict.reason)
    judged = next((one for one in verdict.exercises if one.exercise == board.exercise.id), None)
    if judged is None or judged.answer is None:
        raise Refused("the gradebook has no answer; grade the class with this mpilab")
    for item in judged.items:
        if item.outcome != PASS and item.item not in board.slow:
            raise Refused(f"{item.title}: {item.reason}")
    return kernelcell.split(judged.answer)[1]


def times(board, source, sandbox):
    """{(platform, bytes): simulated seconds} of an answer's C text.

    Raises Refused for one that is wrong on one of the board's clusters, Ungradable where the
    sandbox fails.
    """
    compiled = trials.compile_kernel(sandbox, board.exercise, source, simulated=True)
    wrong = compiled.said["error"] or "; ".join(compiled.said["forbidden"])
    if wrong:
        raise Refused(f"it was not run: {wrong}")
    seconds, (item,) = {}, board.exercise.items
    # A platform at a time: what comes out of the sandbox has a limit.
    for platform in dict.fromkeys(place for place, _ in board.points):
        cases = [case for case in item.simulated if case.platform == platform]
        plan = cases + list(map(confirmed.timed, cases))
        tried = trials.simulate(sandbox, board.exercise, compiled,
                                (plan, [(number,) for number in range(len(plan))]))  # fmt: skip
        found = dict(zip(plan, tried.results, strict=True))
        told = judge.judge_item(board.exercise, item, [found[case] for case in cases])
        if told.outcome != PASS:
            raise Refused(told.reason)
        for place, each in board.points.items():
            if place[0] == platform:
                took = [found[confirmed.timed(case)] for case in each]
                if any(one.outcome != DONE for one in took):
                    raise Refused(f"on {platform} it did not come to its end a second time")
                seconds[place] = _mean(confirmed.simulated_ns(one) / 1e9 for one in took)
    return seconds


def _mean(values):
    return fmean(list(values))


def nicknames(students, lab):
    """{student: a name that does not give them away}: the same for the same lab in every run."""
    found = {}
    for student in sorted(students):
        number = int.from_bytes(hashlib.sha256(f"{lab}/{student}".encode()).digest()[:8], "big")
        name = f"{_MANNERS[number % len(_MANNERS)]} {_BIRDS[number // 64 % len(_BIRDS)]}"
        taken = sum(one == name or one.startswith(f"{name} ") for one in found.values())
        found[student] = f"{name} {taken + 1}" if taken else name
    return found
