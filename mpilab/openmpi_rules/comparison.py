"""Measure again: Open MPI by itself, by the rules, and by each of its algorithms, in one mpirun.

A size is tried by all in turn, several times round, so that what disturbs the machine meets all of
them; a time is the median of all repetitions.
"""

import tempfile

import numpy as np

from mpilab import build, openmpi
from mpilab.errors import InputError
from mpilab.launch import run_cases
from mpilab.openmpi_rules import running
from mpilab.openmpi_rules.model import Rule
from mpilab.openmpi_rules.vocabulary import (
    CHAINS,
    CUT,
    TWO_RANKS,
    WITHOUT_SIZE,
    element_bytes,
    shape_of,
)
from mpilab.openmpi_rules.words import choice_words
from mpilab.result import DONE
from mpilab.sweeps import counted
from mpilab.sweeps.openmpi_traffic import PATTERNS, expected
from mpilab.sweeps.openmpi_traffic.shape import CHAIN_FANOUT
from mpilab.sweeps.plan import times_of

# Seconds; best is the fastest of all, of the default and the rules, too. gain = default_s /
# rules_s, regret = rules_s / best_s - 1; nan where the rules' call did not come to its end. proved:
# the calls by the rules sent what the chosen algorithm must send (always, where none is chosen).
COMPARED = np.dtype(
    [
        ("collective", "U24"), ("ranks", "i4"), ("bytes", "i8"), ("rules", "U80"),
        ("best", "U80"), ("default_s", "f8"), ("rules_s", "f8"), ("best_s", "f8"),
        ("gain", "f8"), ("regret", "f8"), ("proved", "?"),
    ]
)  # fmt: skip
ROUNDS, LIMIT_S = 3, 60.0
BY_ITSELF, BY_RULES = "default", "rules"


def compare(rules, path, *, ranks, sizes, collectives=None, repetitions=None, rounds=ROUNDS,
            hosts=None):  # fmt: skip
    """A table of COMPARED: a row for each collective of the file, number of ranks and size.

    rules        what the file `path` says (mpilab.openmpi_rules.read)
    ranks        numbers of ranks
    sizes        bytes of a block (allgather, gather, scatter), or of the whole message
    collectives  only these of the file
    repetitions  timed calls of each in each round; default: a third of a sweep's, at least 7
    hosts        as in mpilab.launch.run_cases

    The candidates for the best are all algorithms of Open MPI, those that cut messages with each
    segment size of the file and without. Raises InputError for a collective without rules.
    """
    if rounds < 1 or (repetitions is not None and repetitions < 1):
        raise InputError(f"rounds={rounds}, repetitions={repetitions}: have to be 1 or more")
    chosen = list(collectives or rules.collectives)
    for collective in chosen:
        if collective not in rules.collectives:
            raise InputError(f"{collective}: {rules.name} has no rules for it, only for "
                             f"{', '.join(rules.collectives) or 'nothing'}")  # fmt: skip
        if collective not in PATTERNS:
            raise InputError(f"{collective}: cannot be measured here; name some of "
                             f"{', '.join(PATTERNS)}")  # fmt: skip
    rows = []
    for number in ranks:
        points = [(one, number, size) for one in chosen for size in _sizes_of(one, sizes)]
        rows += _measured(rules, path, points, repetitions, rounds, hosts)
    return np.array(rows, COMPARED)


def _sizes_of(collective, sizes):
    if collective in WITHOUT_SIZE:
        return [0]
    element = element_bytes(collective)
    return sorted({max(element, size // element * element) for size in sizes})


def _measured(rules, path, points, repetitions, rounds, hosts):
    """Rows of COMPARED of points with the same number of ranks, in one mpirun."""
    plan = []  # (point, candidate, its case)
    for point in points:
        timed, warmup = times_of(point[2], point[1])
        timed = max(7, timed // rounds) if repetitions is None else repetitions
        candidates = _candidates(rules, *point)
        for turn in range(rounds):
            # Who comes first is not always the same one.
            first = turn % len(candidates)
            for name, how in candidates[first:] + candidates[:first]:
                case = running.case(*point, repetitions=timed, warmup=warmup, **how)
                plan.append((point, name, case))
    spans, proved = {}, {point: True for point in points}
    with tempfile.TemporaryDirectory(prefix="mpilab-rules-") as kept:
        results = run_cases(
            build.need(build.KERNELS), "bcast_openmpi", [case for *_, case in plan], limit=LIMIT_S,
            groups=[((point, str(name)),) for point, name, _ in plan], keep=kept,
            settings=running.settings(path), hosts=hosts,
        )  # fmt: skip
        for place, ((point, name, _), result) in enumerate(zip(plan, results, strict=True)):
            done = result.outcome == DONE and not any(one.returned for one in result.outputs)
            if done:
                spans.setdefault(point, {}).setdefault(name, []).append(_spans(result.outputs))
            if name == BY_RULES:
                proved[point] &= done and _is_right(rules, point, kept, place)
    return [_row(rules, point, spans.get(point, {}), proved[point]) for point in points]


def _candidates(rules, collective, ranks, size):
    """[(name, how its Case chooses it)]: BY_ITSELF, BY_RULES, and a Rule for each algorithm."""
    found = [(BY_ITSELF, {"openmpi": 0, "rules": False}),
             (BY_RULES, {"openmpi": 0, "monitor": True})]  # fmt: skip
    segments = sorted({0, *(rule.segment for rule in rules.rules if rule.collective == collective)})
    for number, name in sorted(openmpi.algorithms()[collective].items()):
        if not number or (name == TWO_RANKS and ranks != 2):
            continue
        fanout = CHAIN_FANOUT if name in CHAINS.get(collective, ()) else 0
        for segment in segments if name in CUT.get(collective, ()) else (0,):
            if segment <= size:
                rule = Rule(collective, ranks, 0, number, fanout, segment)
                found.append((rule, {"openmpi": number, "segment": segment, "fanout": fanout}))
    return found


def _is_right(rules, point, kept, place):
    """Did the call at `place` send what the rule's algorithm must send?"""
    rule = rules.deciding(*point)
    if rule is None or rule.is_left:
        return True
    shape = shape_of(*point, rule.segment, rule.fanout)
    return counted.read(kept, place, point[1]) in expected(point[0], rule.algorithm, shape)


def _spans(outputs):
    """Seconds of each repetition, from the first entry to the last exit."""
    spans = np.stack([output.spans_ns for output in outputs])
    return (spans[:, :, 1].max(axis=0) - spans[:, :, 0].min(axis=0)) / 1e9


def _row(rules, point, spans, proved):
    medians = {name: float(np.median(np.concatenate(each))) for name, each in spans.items()}
    if not medians:
        raise InputError(f"{point[0]} on {point[1]} ranks: nothing came to its end; look at "
                         "'mpilab rules check' first")  # fmt: skip
    default, ruled = (medians.get(name, np.nan) for name in (BY_ITSELF, BY_RULES))
    best = min(medians, key=medians.get)
    rule = rules.deciding(*point)
    return (*point, "no rule" if rule is None else choice_words(rule),
            best if isinstance(best, str) else choice_words(best), default, ruled, medians[best],
            default / ruled, ruled / medians[best] - 1, proved)  # fmt: skip


def as_text(table):
    """A table of COMPARED to be printed, in microseconds, with the ratios' medians under it."""
    head = ["collective", "ranks", "bytes", "default µs", "rules µs", "best µs", "default/rules",
            "rules/best", "by the rules", "best"]  # fmt: skip
    lines = [head] + [
        [row["collective"], str(row["ranks"]), str(row["bytes"]),
         *(_number(row[name] * 1e6, ".2f") for name in ("default_s", "rules_s", "best_s")),
         _number(row["gain"], ".2f"), _number(row["regret"] + 1, ".2f"), row["rules"], row["best"]]
        for row in table
    ]  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = "\n".join(
        "  ".join(word.ljust(width) if i in (0, 8, 9) else word.rjust(width)
                  for i, (word, width) in enumerate(zip(line, widths, strict=True))).rstrip()
        for line in lines
    )  # fmt: skip
    for row in table[~table["proved"]]:
        where = f"{row['collective']}, {row['ranks']} ranks, {row['bytes']} bytes"
        text += (f"\n{where}: what ran by the rules is not what they say; 'mpilab rules check' "
                 "tells more")  # fmt: skip
    known = table[np.isfinite(table["gain"])]
    if not len(known):
        return f"{text}\nno call by the rules came to its end"
    return (f"{text}\ndefault/rules {np.median(known['gain']):.2f}, rules/best "
            f"{np.median(known['regret'] + 1):.2f} (medians of {len(known)})")  # fmt: skip


def _number(value, form):
    return "–" if not np.isfinite(value) else format(value, form)
