"""Rank the kernels of a class by simulated time on clusters that the students have not seen.

grading/LAB/leaderboard.toml defines the exercise and the cases, all combinations of these:

    exercise = "own"                    # a kernel exercise of the rubric
    than = "bcast_node_group"           # our kernel, the baseline
    platforms = ["groups-4x2x4 rr"]     # see mpilab.hosts.platforms
    counts = [16, 65536]
    roots = [0, -1]                     # the time of a platform and count is the mean over these

The answers and their verdicts come from a gradebook. Only correct answers are ranked: those that
lost no item except for being slow, and whose results on these clusters are correct as well. The
score is the geometric mean, over platforms and counts, of the speedup over `than`. It is the same
on every machine.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from itertools import product
from math import exp, isfinite, log
from pathlib import Path
from statistics import fmean
from typing import IO, Any

from tqdm import tqdm

from mpilab.cases.case import Case
from mpilab.errors import InputError, Ungradable
from mpilab.grading import referee
from mpilab.grading.run import Budget
from mpilab.grading.sandbox import Sandbox
from mpilab.hosts.platforms import places
from mpilab.judging import agreement, judge
from mpilab.judging.rubric import KERNEL, Exercise, Item
from mpilab.judging.rubric import load as load_rubric
from mpilab.judging.verdict import PASS, SubmissionVerdict
from mpilab.kernels import build
from mpilab.util import faults
from mpilab.util.files import csv_text
from mpilab.util.kit import ROOT
from mpilab.util.text import plain, suggestion
from mpilab.util.toml import loads

# Seconds of processor time for all cases on one platform: many times what a right answer takes.
PLATFORM_WORK_S = 120.0

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem;
       color: #1c1e21; background: #fff; }
table { border-collapse: collapse; width: 100%; }
th, td { padding: .35rem .6rem; text-align: right; border-bottom: 1px solid #d8dbe0; }
th { vertical-align: bottom; font-weight: 600; }
th:nth-child(2), td:nth-child(2), .words { text-align: left; }
.bar { display: inline-block; height: .7rem; background: #3b7dd8; vertical-align: baseline; }
.wide { overflow-x: auto; }
.best { font-weight: 700; }
@media (prefers-color-scheme: dark) {
  body { color: #e3e5e8; background: #17191c; } th, td { border-color: #3a3e44; } }
"""

_MANNERS = (
    "brave bright calm clever curious daring eager gentle happy keen lively merry nimble patient "
    "quick quiet silver steady sunny swift tall tidy wise witty"
).split()
_BIRDS = (
    "albatross avocet bittern bunting condor crane curlew dipper egret falcon finch gannet heron "
    "ibis jackdaw kestrel kingfisher lapwing linnet merlin nightjar oriole osprey plover puffin "
    "raven redstart sandpiper siskin skylark starling stork swallow tern thrush wagtail warbler "
    "wren"
).split()
# A column of the board: (platform, bytes).
Point = tuple[str, int]

_KEYS = {"exercise", "than", "platforms", "counts", "roots"}


@dataclass(frozen=True)
class Board:
    """The criteria by which a class is ranked.

    title     of the lab.
    exercise  the rubric's exercise, reduced to one item that checks the results of all cases.
    than      name of the baseline kernel.
    points    {(platform, bytes): cases, one for each root}.
    slow      ids of the rubric's items about time; students who lose them may still be ranked.
    """

    title: str
    exercise: Exercise
    than: str
    points: dict[Point, list[Case]]
    slow: frozenset[str]


@dataclass(frozen=True)
class Entry:
    """A student on the board.

    score    speedup over the board's `than`; None if not ranked.
    seconds  {(platform, bytes): simulated seconds}.
    reason   why the student is not ranked; otherwise empty.
    """

    student: str
    score: float | None
    seconds: dict[Point, float]
    reason: str = ""


# Rendering: a table for the terminal, a CSV, and an HTML page that needs no network.


def as_text(entries: Sequence[Entry], names: Mapping[str, str], board: Board) -> str:
    """The board as a text table, followed by the students who are not ranked, with reasons."""
    ranked = [one for one in entries if one.score is not None]
    width = max((len(_shown(names[one.student])) for one in entries), default=4)
    lines = [f"{'place':>5}  {'name':{width}}  times as fast as {board.than}"]
    lines += [
        f"{place:>5}  {_shown(names[one.student]):{width}}  {one.score:.2f}"
        for place, one in enumerate(ranked, start=1)
    ]
    lines += [
        f"{'–':>5}  {_shown(names[one.student]):{width}}  {one.reason}"
        for one in entries
        if one.score is None
    ]
    return "\n".join(lines)


def write_csv(
    entries: Sequence[Entry], names: Mapping[str, str], board: Board, path: str | Path
) -> None:
    """Write a row per student: place, name, score, simulated µs of each point, reason."""
    points = list(board.points)
    rows: list[list[object]] = [
        [
            "place",
            "name",
            f"times_as_fast_as_{board.than}",
            *(f"{platform}, {size} B (us)" for platform, size in points),
            "reason",
        ]
    ]
    for place, one in enumerate(entries, start=1):
        ranked = one.score is not None
        rows.append(
            [
                place if ranked else "",
                _shown(names[one.student]),
                f"{one.score:.4f}" if ranked else "",
                *(f"{one.seconds[point] * 1e6:.3f}" if ranked else "" for point in points),
                one.reason,
            ]
        )
    _write(path, lambda file: file.write(csv_text(rows)))


def write_html(
    entries: Sequence[Entry], names: Mapping[str, str], board: Board, path: str | Path, title: str
) -> None:
    """Write an HTML page with a table of all times, the best of each column in bold."""
    text = page(entries, names, board, title)
    _write(path, lambda file: file.write(text))


def page(entries: Sequence[Entry], names: Mapping[str, str], board: Board, title: str) -> str:
    """The HTML page as text."""
    ranked = [one for one in entries if one.score is not None]
    most = max((one.score or 0.0 for one in ranked), default=1.0)
    best = {point: min(one.seconds[point] for one in ranked) for point in board.points if ranked}
    heads = "".join(
        f"<th scope='col'>{escape(platform)}<br>{size:,} B</th>" for platform, size in board.points
    )
    rows = "\n".join(
        _row(place, one, names, board, best, most) for place, one in enumerate(ranked, start=1)
    )
    left = "".join(
        f"<li>{escape(_shown(names[one.student]))}: {escape(one.reason)}</li>"
        for one in entries
        if one.score is None
    )
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}: leaderboard</title>
<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style></head>
<body><h1>{escape(title)}: leaderboard</h1>
<p>Microseconds of simulated time for <code>{escape(board.exercise.function)}</code> on clusters
that were not announced. The score is how many times as fast as <code>{escape(board.than)}</code> it
is, as a geometric mean over all columns. It is the same on every machine.</p>
<div class="wide"><table><thead><tr><th scope="col">place</th><th scope="col">name</th>
<th scope="col" class="words">score</th>{heads}</tr></thead>
<tbody>
{rows}
</tbody></table></div>
{"<h2>Not ranked</h2><ul>" + left + "</ul>" if left else ""}
</body></html>
"""


def _row(
    place: int,
    one: Entry,
    names: Mapping[str, str],
    board: Board,
    best: Mapping[Point, float],
    most: float,
) -> str:
    cells = "".join(
        f"<td{' class=best' if one.seconds[point] <= best[point] else ''}>"
        f"{one.seconds[point] * 1e6:,.1f}</td>"
        for point in board.points
    )
    width = 6 * (one.score or 0.0) / most
    return (
        f"<tr><td>{place}</td><td>{escape(_shown(names[one.student]))}</td><td class='words'>"
        f"{one.score:.2f}&nbsp;<span class='bar' style='width:{width:.2f}rem'>"
        f"</span></td>{cells}</tr>"
    )


def _shown(name: str) -> str:
    """A name on one line, without control characters."""
    return " ".join(plain(name).split())


def _write(path: str | Path, fill: Callable[[IO[str]], object]) -> None:
    try:
        with Path(path).open("w", encoding="utf-8", newline="") as file:
            fill(file)
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; name a folder that you own"
        ) from None


def load(lab: str, root: str | Path = ROOT) -> Board:
    """The Board of a lab; InputError if it has none, or if the file is invalid."""
    path = Path(root) / "grading" / lab / "leaderboard.toml"
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        boards = path.parents[1].glob(f"*/{path.name}")
        raise InputError(
            f"{path}: no such file; lab {lab!r} has no leaderboard, or its name is misspelled"
            f"{suggestion(lab, [each.parent.name for each in boards])}"
        ) from None
    table = loads(text, str(path))
    for key in sorted(table.keys() - _KEYS):
        raise InputError(
            f"{path}: the key {key!r} is unknown; known are {', '.join(sorted(_KEYS))}"
        )
    for key in sorted(_KEYS - table.keys()):
        raise InputError(f"{path}: the key {key!r} is missing")
    rubric = load_rubric(Path(root) / "grading" / lab / "rubric.toml")
    try:
        exercise = rubric.exercise(table["exercise"])
        if exercise.kind != KERNEL or exercise.variants:
            raise InputError(f"exercise {exercise.id!r}: only one kernel can be timed")
        return _board(rubric.title, exercise, table)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _board(title: str, exercise: Exercise, table: Mapping[str, Any]) -> Board:
    points: dict[Point, list[Case]] = {}
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


def rank(
    board: Board, verdicts: Iterable[SubmissionVerdict], sandbox: Sandbox, progress: bool = False
) -> list[Entry]:
    """Rank the class; list of Entry, best first, those not ranked last.

    verdicts   SubmissionVerdict of each student, with the judged answers.
    sandbox    mpilab.grading.sandbox.Sandbox to run the answers in.

    Raises SetupError if SimGrid is missing.
    """
    compared = {
        place: _mean(agreement.kernel_ns(board.than, agreement.timed(case)) / 1e9 for case in cases)
        for place, cases in board.points.items()
    }
    entries = [
        _entry(board, verdict, sandbox, compared)
        for verdict in tqdm(verdicts, disable=not progress, unit="answer")
    ]
    return sorted(entries, key=lambda one: (-(one.score or 0.0), one.student))


def _entry(
    board: Board, verdict: SubmissionVerdict, sandbox: Sandbox, compared: Mapping[Point, float]
) -> Entry:
    try:
        seconds = times(board, _answer(board, verdict), sandbox)
        for (platform, _), own in seconds.items():
            if not (isfinite(own) and own > 0):
                raise Refused(f"on {platform} it took {own:g} s, which is impossible")
    except (Refused, Ungradable) as error:
        return Entry(verdict.student, None, {}, plain(error))
    except Exception as error:  # one answer must not prevent the leaderboard of the class
        faults.record(error, f"timing the answer of {plain(verdict.student)}")
        return Entry(verdict.student, None, {}, "it could not be timed; see mpilab's log")
    ratios = [log(compared[place] / own) for place, own in seconds.items()]
    return Entry(verdict.student, exp(_mean(ratios)), seconds)


class Refused(Exception):
    """Why an answer is not ranked, in a sentence."""


def _answer(board: Board, verdict: SubmissionVerdict) -> str:
    """The C source of a student's answer; Refused if the referee found it wrong."""
    if verdict.reason:
        raise Refused(verdict.reason)
    judged = next((one for one in verdict.exercises if one.exercise == board.exercise.id), None)
    if judged is None or judged.answer is None:
        raise Refused("the gradebook has no answer; grade the class with this mpilab")
    for item in judged.items:
        if item.outcome != PASS and item.item not in board.slow:
            raise Refused(f"{item.title}: {item.reason}")
    return build.split(judged.answer)[1]


def times(board: Board, source: str, sandbox: Sandbox) -> dict[Point, float]:
    """{(platform, bytes): simulated seconds} of an answer's C source.

    Raises Refused if it is wrong on one of the board's clusters, Ungradable if the sandbox fails.
    """
    form = referee.JAILED_SIMULATED if referee.isolates() else referee.SIMULATED
    compiled = referee.compile_kernel(sandbox, board.exercise, source, [form])
    wrong = compiled.said["error"] or "; ".join(compiled.said["forbidden"])
    if wrong:
        raise Refused(f"it was not run: {wrong}")
    seconds, (item,) = {}, board.exercise.items
    # One platform at a time: the output of a sandbox is limited.
    for platform in dict.fromkeys(place for place, _ in board.points):
        cases = [case for case in item.simulated if case.platform == platform]
        plan = cases + list(map(agreement.timed, cases))
        groups = [(number,) for number in range(len(plan))]
        budget = Budget(PLATFORM_WORK_S)
        tried = referee.run(sandbox, board.exercise, compiled, (plan, groups), form, budget)
        found = dict(zip(plan, tried.results, strict=True))
        told = judge.judge_item(board.exercise, item, [found[case] for case in cases])
        if told.outcome != PASS:
            raise Refused(told.reason)
        for place, each in board.points.items():
            if place[0] == platform:
                took = [found[agreement.timed(case)] for case in each]
                for one in took:
                    if wrong := judge.wrong_later(one):
                        raise Refused(f"on {platform}, {wrong.reason}")
                seconds[place] = _mean(one.last_call_ns / 1e9 for one in took)
    return seconds


def _mean(values: Iterable[float]) -> float:
    return fmean(list(values))


def nicknames(students: Iterable[str], lab: str) -> dict[str, str]:
    """{student: nickname}, the same in every run for the same lab and class."""
    found: dict[str, str] = {}
    for student in sorted(students):
        number = int.from_bytes(hashlib.sha256(f"{lab}/{student}".encode()).digest()[:8], "big")
        name = f"{_MANNERS[number % len(_MANNERS)]} {_BIRDS[number // 64 % len(_BIRDS)]}"
        taken = sum(one == name or one.startswith(f"{name} ") for one in found.values())
        found[student] = f"{name} {taken + 1}" if taken else name
    return found
