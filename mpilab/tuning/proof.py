"""Prove that the rules of a file take effect: run their cases, and count messages below MPI.

Each case runs twice in one mpirun, with the file and without (src_c/runtime/harness/openmpi.c).
What was sent between every two ranks is compared with what the chosen algorithm must send
(mpilab.measure.openmpi_traffic). If the messages match, and Open MPI sends different ones without
the file, the rule took effect. If it sends the same ones without the file, the case proves nothing.
"""

import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpilab.cases.case import collective_of
from mpilab.errors import InputError
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.slurm import Allocation
from mpilab.kernels import build
from mpilab.measure import guard, openmpi_traffic
from mpilab.measure.openmpi_traffic import PATTERNS, Counted, expected, matching
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.tuning import comparison
from mpilab.tuning.rules import (
    WITHOUT_SIZE,
    Point,
    Rule,
    Rules,
    choice_words,
    looked_up_bytes,
    shape_of,
    substitute,
)

MOST_RANKS = 16  # default; more would overload a laptop
MOST_BYTES = 1 << 22  # of a block, or of the whole message
# Verdicts; those in AMISS are on a rule that does not have the stated effect.
PROVED, SAME, LEFT_ALONE = "took effect", "cannot be told apart", "left to Open MPI"
SUBSTITUTED, IGNORED, OTHER, FAILED = "substituted", "ignored", "something else ran", "failed"
SPOILT = "not tried"
AMISS = (SUBSTITUTED, IGNORED, OTHER, FAILED, SPOILT)
LIMIT_S = 30.0  # for one case

# The cases to run: every rule, near its lower end and well inside its range.


def ranks_to_try(rules: Rules, most: int = MOST_RANKS) -> tuple[int, ...]:
    """The numbers of ranks with rules in the file, from 2 to `most`: ascending tuple."""
    found = {
        max(2, ranks)
        for collective, by_ranks in rules.collectives.items()
        for ranks in by_ranks
        if collective in PATTERNS and max(2, ranks) <= most
    }
    return tuple(sorted(found)) or (4,)


def points_of(
    rules: Rules, ranks: Iterable[int], sizes: Sequence[int] | None = None
) -> list[Point]:
    """The points at which to try a file: list of (collective, ranks, bytes).

    ranks   numbers of ranks
    sizes   bytes of a block, or of the whole message; default: for every rule the smallest size
            that it decides, and one at which algorithms differ more (some bytes for every rank,
            several segments)
    """
    found: dict[Point, None] = {}
    for collective in rules.collectives:
        if collective not in PATTERNS:
            continue
        for number in ranks:
            if collective in WITHOUT_SIZE:
                found[collective, number, 0] = None
                continue
            tried = _default_sizes(rules, collective, number) if sizes is None else sizes
            element = collective_of(collective).timed_element[1]
            for size in tried:
                found[collective, number, size // element * element] = None
    return list(found)


def _default_sizes(rules: Rules, collective: str, ranks: int) -> list[int]:
    nearest = max(
        (one for one in rules.collectives[collective] if one <= ranks),
        default=min(rules.collectives[collective]),
    )
    element = collective_of(collective).timed_element[1]
    unit = looked_up_bytes(collective, ranks, element)  # what one more element adds
    sizes = []
    for rule in rules.collectives[collective][nearest]:
        least, most = rules.reach(rule)[1]
        first = max(1, -(-least // unit)) * element
        last = MOST_BYTES if most is None else min(MOST_BYTES, most // unit * element)
        if first <= last:
            telling = max(4 * first, 16 * ranks * element, 4 * rule.segment)
            sizes.append(first)
            if not rule.is_fatal(ranks):  # a fatal rule ends the program at any size
                sizes.append(min(last, telling))
    return sizes


@dataclass(frozen=True)
class Proof:
    """The outcome for a rule at one number of ranks and one size (bytes of a block, or of the whole
    message). `rule` is None if no rule of the file decides."""

    collective: str
    ranks: int
    bytes: int
    rule: Rule | None
    verdict: str
    reason: str

    @property
    def is_amiss(self) -> bool:
        """Does the outcome differ from the rule?"""
        return self.verdict in AMISS


def not_tried(rules: Rules, proofs: Iterable[Proof]) -> list[Rule]:
    """The rules of a file that no Proof covers."""
    tried = {proof.rule for proof in proofs}
    return [rule for rule in rules.rules if rule not in tried]


def prove(
    rules: Rules,
    path: str | Path,
    points: Iterable[Point],
    *,
    hosts: EmulatedHosts | Allocation | None = None,
) -> list[Proof]:
    """A Proof for each point, in order.

    rules    the content of the file (mpilab.tuning.read)
    path     the file itself; all of mpirun's hosts must be able to read it
    points   (collective, ranks, bytes of a block or of the whole message), e.g. from `points_of`
    hosts    as in mpilab.runners.mpirun.run_cases

    Raises InputError for collectives whose messages are not known here.
    """
    points = list(points)
    for collective, _, _ in points:
        if collective not in PATTERNS:
            raise InputError(
                f"{collective}: the messages of Open MPI's algorithms are not known here, only "
                f"those of {', '.join(PATTERNS)}"
            )
    spoilt = {point: words for point in points if (words := _spoilt(rules, point))}
    with tempfile.TemporaryDirectory(prefix="mpilab-rules-") as kept:
        tried = [point for point in dict.fromkeys(points) if point not in spoilt]
        with_file, without, endings = _run(rules, path, tried, kept, hosts)
    return [
        Proof(*point, rules.deciding(*point), SPOILT, spoilt[point])
        if point in spoilt
        else _judge(
            rules.deciding(*point),
            *point,
            endings.get(point, ""),
            with_file.get(point),
            without.get(point),
        )
        for point in points
    ]


def _run(
    rules: Rules,
    path: str | Path,
    points: Sequence[Point],
    kept: str,
    hosts: EmulatedHosts | Allocation | None,
) -> tuple[dict[Point, Counted], dict[Point, Counted], dict[Point, str]]:
    """({point: what was sent with the file}, {the same without it}, {point: why nothing was})."""
    endings = {}
    runs = []  # (point, is it with the file?, its case)
    for wanted in (False, True):  # those that end the program come last
        chosen = [point for point in points if _is_fatal(rules, point) == wanted]
        # First as in any program; then without rules, which sets variables for the rest of the run.
        how: dict[str, Any] = {"openmpi": 0} if wanted else {}
        runs += [
            (point, True, comparison.case_of_rule(*point, monitor=True, **how)) for point in chosen
        ]
        if not wanted:
            runs += [
                (
                    point,
                    False,
                    comparison.case_of_rule(*point, monitor=True, openmpi=0, rules=False),
                )
                for point in chosen
            ]
    results = (
        run_cases(
            build.need(build.KERNELS),
            "bcast_openmpi",
            [case for *_, case in runs],
            keep=kept,
            limit=LIMIT_S,
            settings=comparison.settings(path),
            hosts=hosts,
        )
        if runs
        else []
    )
    sent: dict[bool, dict[Point, Counted]] = {True: {}, False: {}}
    for place, ((point, is_with, case), result) in enumerate(zip(runs, results, strict=True)):
        if result.outcome == DONE:
            sent[is_with][point] = openmpi_traffic.read(kept, place, case.ranks)
        elif is_with:
            endings[point] = f"{result.outcome}: {_first_line(result.detail)}"
    return sent[True], sent[False], endings


def _is_fatal(rules: Rules, point: Point) -> bool:
    rule = rules.deciding(*point)
    return rule is not None and rule.is_fatal(point[1])


def _spoilt(rules: Rules, point: Point) -> str:
    """Why no program reaches this point's collective; "" if one does.

    Every program needs a barrier, and an allgather of 8 bytes from each rank to create a
    communicator.
    """
    collective, ranks, _ = point
    for needed, size in (("barrier", 0), ("allgather", 8)):
        rule = rules.deciding(needed, ranks, size)
        if needed != collective and rule is not None and rule.is_fatal(ranks):
            return f"no program gets this far: {_fatal_words(rule, ranks)} (line {rule.line})"
    return ""


def _fatal_words(rule: Rule, ranks: int) -> str:
    if not rule.algorithm:
        return f"MPI_ERR_ARG, as there is no {rule.collective} algorithm {rule.number}"
    return f"{rule.collective} {rule.algorithm} aborts on {ranks} ranks"


def _first_line(text: str) -> str:
    """The first line of an mpirun's messages, without host names."""
    lines = [line.rpartition("***")[2].strip() for line in (text or "").splitlines()]
    return next((line for line in lines if line), "no reason given")


def _judge(
    rule: Rule | None,
    collective: str,
    ranks: int,
    size: int,
    ending: str,
    with_file: Counted | None,
    without: Counted | None,
) -> Proof:
    def said(verdict: str, reason: str = "") -> Proof:
        return Proof(collective, ranks, size, rule, verdict, reason)

    if with_file is None:
        if rule is not None and rule.is_fatal(ranks):
            return said(FAILED, _fatal_words(rule, ranks))
        return said(FAILED, ending)
    chosen = None if rule is None or rule.is_left else rule
    tuning = (0, 0) if chosen is None else (chosen.segment, chosen.fanout)
    shape = shape_of(collective, ranks, size, *tuning)
    ran = f"it ran like {guard.likeness(collective, with_file, shape) or 'no known algorithm'}"
    if chosen is None and with_file == without:
        return said(LEFT_ALONE, ran)
    if chosen is None or not chosen.algorithm:
        return said(OTHER, f"{ran}{_deciders(collective)}")
    instead = substitute(collective, chosen.algorithm, shape)
    wanted = expected(collective, instead.name if instead else chosen.algorithm, shape)
    if with_file not in wanted:
        if with_file == without:
            return said(IGNORED, f"{ran}, as without the file{_deciders(collective)}")
        return said(OTHER, f"{ran}{_deciders(collective)}")
    if instead is not None:
        return said(SUBSTITUTED, f"{instead.where}, Open MPI runs {instead.name} instead")
    if without is not None and without in wanted:
        return said(SAME, "Open MPI sends the same messages without the file")
    twins = [one for one in matching(collective, with_file, shape) if one != chosen.algorithm]
    return said(PROVED, f"{' and '.join(twins)} would send the same messages" if twins else "")


def _deciders(collective: str) -> str:
    found = comparison.deciders(collective)
    if found:
        return (
            f"; look at {', '.join(found)}, which may override the file (as does coll/han on "
            "several hosts, without OMPI_MCA_coll=^han)"
        )
    return (
        "; look for coll settings in ~/.openmpi/mca-params.conf, and check that the ranks can "
        "read the file"
    )


def as_text(proofs: Iterable[Proof]) -> str:
    """A line for each rule, number of ranks and verdict, with the sizes tried."""
    alike: dict[tuple[str, int, Rule | None, str, str], list[int]] = {}
    for proof in proofs:
        key = (proof.collective, proof.ranks, proof.rule, proof.verdict, proof.reason)
        alike.setdefault(key, []).append(proof.bytes)
    lines = []
    for (collective, ranks, rule, verdict, reason), sizes in alike.items():
        wanted = "no rule: " if rule is None else f"{choice_words(rule)}: "
        if verdict == LEFT_ALONE and rule is not None:
            wanted = ""  # the verdict says it
        where = f"line {rule.line}: " if rule is not None and rule.line else ""
        shown = f"{' and '.join(map(str, sizes))} byte{'s' * (sizes != [1])}, "
        lines.append(
            f"{where}{collective}, {ranks} ranks, {shown * (collective != 'barrier')}"
            f"{wanted}{verdict}{': ' * bool(reason)}{reason}"
        )
    return "\n".join(lines)


def summary(proofs: Sequence[Proof]) -> str:
    """What all Proofs together show, in one or two sentences."""
    number = {verdict: 0 for verdict in (PROVED, SAME, LEFT_ALONE, *AMISS)}
    for proof in proofs:
        number[proof.verdict] += 1
    words = ", ".join(f"{count} {verdict}" for verdict, count in number.items() if count)
    words = f"{len(proofs)} case{'s' * (len(proofs) != 1)}: {words}"
    if number[SAME] and number[PROVED]:
        # A file is used as a whole, or not at all.
        return f"{words}. Open MPI uses the file: it also decides those that cannot be told apart."
    if number[SAME] and not number[PROVED]:
        return (
            f"{words}. Nothing here shows that Open MPI uses the file: try other --ranks and "
            "--sizes, at which its own decision would differ."
        )
    return f"{words}." if proofs else "Nothing was tried."
