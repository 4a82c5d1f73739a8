"""Prove that the rules of a file take effect: run their cases, and count messages below MPI.

Each case runs twice in one mpirun, with the file and without (src_c/harness/openmpi.c), and what
was sent between every two ranks is held against what the wanted algorithm must send
(mpilab.sweeps.openmpi_traffic). Where the messages are right and Open MPI sends others without the
file, the rule took effect. Where it sends the same without the file, that case proves nothing.
"""

import tempfile
from dataclasses import dataclass

from mpilab import build
from mpilab.errors import InputError
from mpilab.launch import run_cases
from mpilab.openmpi_rules import running
from mpilab.openmpi_rules.model import Rule
from mpilab.openmpi_rules.vocabulary import shape_of, substitute
from mpilab.openmpi_rules.words import choice_words
from mpilab.result import DONE
from mpilab.sweeps import counted, guard
from mpilab.sweeps.openmpi_traffic import PATTERNS, expected, matching

PROVED, SAME, LEFT_ALONE = "took effect", "cannot be told apart", "left to Open MPI"
SUBSTITUTED, IGNORED, OTHER, FAILED = "substituted", "ignored", "something else ran", "failed"
SPOILT = "not tried"
AMISS = (SUBSTITUTED, IGNORED, OTHER, FAILED, SPOILT)

LIMIT_S = 30.0  # for one case


@dataclass(frozen=True)
class Proof:
    """What became of a rule at one number of ranks and one size (bytes of a block, or of the whole
    message). `rule` is None where the file has none that decides."""

    collective: str
    ranks: int
    bytes: int
    rule: Rule | None
    verdict: str
    reason: str

    @property
    def is_amiss(self):
        """Is it not as the rule says?"""
        return self.verdict in AMISS


def prove(rules, path, points, *, hosts=None):
    """A Proof for each point, in their order.

    rules    what the file says (mpilab.openmpi_rules.read)
    path     the file itself; all of mpirun's hosts have to see it
    points   (collective, ranks, bytes of a block or of the whole message), e.g. those of
             mpilab.openmpi_rules.trials
    hosts    as in mpilab.launch.run_cases

    Raises InputError for collectives whose messages are not known here.
    """
    points = list(points)
    for collective, _, _ in points:
        if collective not in PATTERNS:
            raise InputError(f"{collective}: what Open MPI's algorithms send is not known here; "
                             f"known are {', '.join(PATTERNS)}")  # fmt: skip
    spoilt = {point: words for point in points if (words := _spoilt(rules, point))}
    with tempfile.TemporaryDirectory(prefix="mpilab-rules-") as kept:
        tried = [point for point in dict.fromkeys(points) if point not in spoilt]
        with_file, without, endings = _run(rules, path, tried, kept, hosts)
    return [
        Proof(*point, rules.deciding(*point), SPOILT, spoilt[point]) if point in spoilt
        else _judge(rules.deciding(*point), *point, endings.get(point), with_file.get(point),
                    without.get(point))
        for point in points
    ]  # fmt: skip


def _run(rules, path, points, kept, hosts):
    """({point: what was sent with the file}, {the same without it}, {point: why there is none})."""
    endings = {}
    runs = []  # (point, is it with the file?, its case)
    for wanted in (False, True):  # those that end the program come last
        chosen = [point for point in points if _is_fatal(rules, point) == wanted]
        # First as in any program; then without rules, which sets variables for the rest of the run.
        how = {"openmpi": 0} if wanted else {}
        runs += [(point, True, running.case(*point, monitor=True, **how)) for point in chosen]
        if not wanted:
            runs += [
                (point, False, running.case(*point, monitor=True, openmpi=0, rules=False))
                for point in chosen
            ]
    results = run_cases(
        build.need(build.KERNELS), "bcast_openmpi", [case for *_, case in runs], keep=kept,
        limit=LIMIT_S, settings=running.settings(path), hosts=hosts,
    ) if runs else []  # fmt: skip
    sent = {True: {}, False: {}}
    for place, ((point, is_with, case), result) in enumerate(zip(runs, results, strict=True)):
        if result.outcome == DONE:
            sent[is_with][point] = counted.read(kept, place, case.ranks)
        elif is_with:
            endings[point] = f"{result.outcome}: {_first_line(result.detail)}"
    return sent[True], sent[False], endings


def _is_fatal(rules, point):
    rule = rules.deciding(*point)
    return rule is not None and rule.is_fatal(point[1])


def _spoilt(rules, point):
    """Why no program gets as far as this point's collective; "" if it does.

    All need a barrier, and making a communicator an allgather of 8 bytes from each rank.
    """
    collective, ranks, _ = point
    for needed, size in (("barrier", 0), ("allgather", 8)):
        rule = rules.deciding(needed, ranks, size)
        if needed != collective and rule is not None and rule.is_fatal(ranks):
            return f"no program gets this far: {_fatal_words(rule, ranks)} (line {rule.line})"
    return ""


def _fatal_words(rule, ranks):
    if not rule.algorithm:
        return f"MPI_ERR_ARG, as there is no {rule.collective} algorithm {rule.number}"
    return f"{rule.collective} {rule.algorithm} aborts on {ranks} ranks"


def _first_line(text):
    """What an mpirun said first, without the names of hosts."""
    lines = [line.rpartition("***")[2].strip() for line in (text or "").splitlines()]
    return next((line for line in lines if line), "no reason given")


def _judge(rule, collective, ranks, size, ending, with_file, without):
    def said(verdict, reason=""):
        return Proof(collective, ranks, size, rule, verdict, reason)

    left = rule is None or rule.is_left
    if with_file is None:
        fatal = rule is not None and rule.is_fatal(ranks)
        return said(FAILED, _fatal_words(rule, ranks) if fatal else ending)
    shape = shape_of(collective, ranks, size, *(0, 0) if left else (rule.segment, rule.fanout))
    ran = f"it ran like {guard.likeness(collective, with_file, shape) or 'none that is known'}"
    if left and with_file == without:
        return said(LEFT_ALONE, ran)
    if left or not rule.algorithm:
        return said(OTHER, f"{ran}{_deciders(collective)}")
    instead = substitute(collective, rule.algorithm, shape)
    wanted = expected(collective, instead.name if instead else rule.algorithm, shape)
    if with_file not in wanted:
        if with_file == without:
            return said(IGNORED, f"{ran}, as without the file{_deciders(collective)}")
        return said(OTHER, f"{ran}{_deciders(collective)}")
    if instead is not None:
        return said(SUBSTITUTED, f"{instead.where}, Open MPI runs {instead.name} in its place")
    if without is not None and without in wanted:
        return said(SAME, "Open MPI sends the same messages without the file")
    twins = [one for one in matching(collective, with_file, shape) if one != rule.algorithm]
    return said(PROVED, f"{' and '.join(twins)} would send the same messages" if twins else "")


def _deciders(collective):
    found = running.deciders(collective)
    if found:
        return (f"; look at {', '.join(found)}, which may come before the file (so does coll/han "
                "on several hosts, without OMPI_MCA_coll=^han)")  # fmt: skip
    return ("; look for coll settings in ~/.openmpi/mca-params.conf, and whether the file is "
            "readable where the ranks are")  # fmt: skip


def as_text(proofs):
    """A line for each rule, number of ranks and verdict, with the sizes that were tried."""
    alike = {}
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
        lines.append(f"{where}{collective}, {ranks} ranks, {shown * (collective != 'barrier')}"
                     f"{wanted}{verdict}{': ' * bool(reason)}{reason}")  # fmt: skip
    return "\n".join(lines)


def summary(proofs):
    """What all Proofs together show, in a sentence or two."""
    number = {verdict: 0 for verdict in (PROVED, SAME, LEFT_ALONE, *AMISS)}
    for proof in proofs:
        number[proof.verdict] += 1
    words = ", ".join(f"{count} {verdict}" for verdict, count in number.items() if count)
    words = f"{len(proofs)} case{'s' * (len(proofs) != 1)}: {words}"
    if number[SAME] and number[PROVED]:
        # A file is used as a whole, or not at all.
        return (f"{words}. Open MPI uses the file: those that cannot be told apart are decided by "
                "it, too.")  # fmt: skip
    if number[SAME] and not number[PROVED]:
        return (f"{words}. Nothing here shows that Open MPI uses the file: try other --ranks and "
                "--sizes, at which it would decide otherwise by itself.")  # fmt: skip
    return f"{words}." if proofs else "Nothing was tried."
