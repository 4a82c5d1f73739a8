"""Compare Open MPI's own choice, the rules' choice, and each of its algorithms, timed in one
mpirun.

At each size, all candidates run in turn for several rounds, so that disturbances of the machine
affect all of them; a time is the median of all repetitions.
"""

import os
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case, collective_of
from mpilab.cluster.engines import asleep
from mpilab.errors import InputError
from mpilab.hosts import slurm
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.slurm import Allocation
from mpilab.kernels import build, openmpi
from mpilab.measure import openmpi_traffic
from mpilab.measure.dataset import processor
from mpilab.measure.openmpi_traffic import CHAIN_FANOUT, PATTERNS, expected
from mpilab.measure.origin import sentences, shared_ranks
from mpilab.measure.sweep import cores_of, times_of
from mpilab.measure.sweep_table import OVERSUBSCRIBED
from mpilab.measure.timing import spans_s
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.tuning.rules import (
    CHAINS,
    CUT,
    TWO_RANKS,
    WITHOUT_SIZE,
    Point,
    Rule,
    Rules,
    choice_words,
    shape_of,
)
from mpilab.util.text import aligned

# Settings of the user that may take precedence over the file.
_DECIDERS = ("OMPI_MCA_coll", "OMPI_MCA_coll_tuned_use_dynamic_rules")
# In seconds; best is the fastest of all, including the default and the rules. gain = default_s /
# rules_s, regret = rules_s / best_s - 1; nan if the rules' call did not complete. proved: the calls
# under the rules completed and sent what the chosen algorithm, if any, must send. cores, machine:
# as in a sweep.
COMPARED = np.dtype(
    [
        ("collective", "U24"),
        ("ranks", "i4"),
        ("bytes", "i8"),
        ("rules", "U80"),
        ("best", "U80"),
        ("default_s", "f8"),
        ("rules_s", "f8"),
        ("best_s", "f8"),
        ("gain", "f8"),
        ("regret", "f8"),
        ("proved", "?"),
        ("cores", "i4"),
        ("machine", "U80"),
    ]
)
ROUNDS, LIMIT_S = 3, 60.0
BY_ITSELF, BY_RULES = "default", "rules"

# Running Open MPI's collectives with and without a rules file in one mpirun.


def settings(path: str | Path) -> dict[str, str]:
    """Settings of an mpirun that uses the rules file `path` and counts messages.

    Raises InputError if the user has set another file, which would take precedence.
    """
    path = Path(path).resolve()
    wished = os.environ.get(openmpi.RULES_FILE)
    if wished and Path(wished).resolve() != path:
        raise InputError(f"{openmpi.RULES_FILE}={wished} is set, and overrides {path}; unset it")
    return openmpi.CHOOSING | {openmpi.RULES_FILE: str(path)}


def environment_lines(path: str | Path) -> list[str]:
    """Shell commands that make Open MPI use a rules file: list of lines."""
    return [
        f"export {openmpi.RULES_FILE}={Path(path).resolve()}",
        "export OMPI_MCA_coll_tuned_use_dynamic_rules=true",
        "export OMPI_MCA_coll=^han    # across hosts, coll/han comes before coll/tuned",
    ]


def case_of_rule(collective: str, ranks: int, size: int, **more: Any) -> Case:
    """The Case of Open MPI's collective with `size` bytes of a block, or of the whole message.

    By default no algorithm is set (openmpi=-1), so that the file decides as in any program.
    """
    datatype, element = collective_of(collective).timed_element
    usual: dict[str, Any] = {"record": False, "dump": False, "function": f"{collective}_openmpi"}
    return Case(collective, ranks, size // element, datatype, **usual | more)


def deciders(collective: str) -> list[str]:
    """The user's settings that may take precedence over a rules file: 'NAME=value' each."""
    names = (*_DECIDERS, f"OMPI_MCA_coll_tuned_{collective}_algorithm")
    return [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]


def compare(
    rules: Rules,
    path: str | Path,
    *,
    ranks: Iterable[int],
    sizes: Sequence[int],
    collectives: Iterable[str] | None = None,
    repetitions: int | None = None,
    rounds: int = ROUNDS,
    hosts: EmulatedHosts | Allocation | None = None,
) -> NDArray[Any]:
    """A table of COMPARED: one row for each collective of the file, number of ranks and size.

    rules        the content of the file `path` (mpilab.tuning.read)
    ranks        numbers of ranks
    sizes        bytes of a block (allgather, gather, scatter), or of the whole message
    collectives  only these of the file
    repetitions  timed calls per candidate and round; default: a sweep's / `rounds`, at least 7
    hosts        as in mpilab.runners.mpirun.run_cases

    The candidates for the best are all algorithms of Open MPI; those that segment messages, with
    each segment size of the file and without. Raises InputError for a collective without rules,
    ClusterError if a notebook's ranks compute meanwhile (mpilab.cluster.engines.asleep).
    """
    if rounds < 1 or (repetitions is not None and repetitions < 1):
        raise InputError(f"rounds={rounds}, repetitions={repetitions}: must be 1 or more")
    chosen = list(collectives or rules.collectives)
    for collective in chosen:
        if collective not in rules.collectives:
            raise InputError(
                f"{collective}: {rules.name} has no rules for it, only for "
                f"{', '.join(rules.collectives) or 'nothing'}"
            )
        if collective not in PATTERNS:
            raise InputError(
                f"{collective}: cannot be measured here; name some of {', '.join(PATTERNS)}"
            )
    rows = []
    with asleep():
        for number in ranks:
            points = [(one, number, size) for one in chosen for size in _sizes_of(one, sizes)]
            rows += _measured(rules, path, points, repetitions, rounds, hosts)
    return np.array(rows, COMPARED)


def _sizes_of(collective: str, sizes: Iterable[int]) -> list[int]:
    if collective in WITHOUT_SIZE:
        return [0]
    element = collective_of(collective).timed_element[1]
    return sorted({max(element, size // element * element) for size in sizes})


def _measured(
    rules: Rules,
    path: str | Path,
    points: Sequence[Point],
    repetitions: int | None,
    rounds: int,
    hosts: EmulatedHosts | Allocation | None,
) -> list[tuple]:
    """Rows of COMPARED for points with the same number of ranks, timed in one mpirun."""
    plan = []  # (point, candidate, its case)
    for point in points:
        timed, warmup = times_of(point[2], point[1])
        timed = max(7, timed // rounds) if repetitions is None else repetitions
        candidates = _candidates(rules, *point)
        for turn in range(rounds):
            # Another candidate runs first in each round.
            first = turn % len(candidates)
            for name, how in candidates[first:] + candidates[:first]:
                case = case_of_rule(*point, repetitions=timed, warmup=warmup, **how)
                plan.append((point, name, case))
    spans: dict[Point, dict[str | Rule, list[NDArray[np.float64]]]] = {}
    proved = {point: True for point in points}
    with tempfile.TemporaryDirectory(prefix="mpilab-rules-") as kept:
        results = run_cases(
            build.need(build.KERNELS),
            "bcast_openmpi",
            [case for *_, case in plan],
            limit=LIMIT_S,
            groups=[((point, str(name)),) for point, name, _ in plan],
            keep=kept,
            settings=settings(path),
            hosts=hosts,
        )
        for place, ((point, name, _), result) in enumerate(zip(plan, results, strict=True)):
            done = result.outcome == DONE and not any(one.returned for one in result.outputs)
            if done:
                spans.setdefault(point, {}).setdefault(name, []).append(spans_s(result.outputs))
            if name == BY_RULES:
                proved[point] &= done and _is_right(rules, point, kept, place)
    return [_row(rules, point, spans.get(point, {}), proved[point], hosts) for point in points]


def _candidates(
    rules: Rules, collective: str, ranks: int, size: int
) -> list[tuple[str | Rule, dict[str, Any]]]:
    """[(name, arguments of its Case)]: BY_ITSELF, BY_RULES, and a Rule for each algorithm."""
    found: list[tuple[str | Rule, dict[str, Any]]] = [
        (BY_ITSELF, {"openmpi": 0, "rules": False}),
        (BY_RULES, {"openmpi": 0, "monitor": True}),
    ]
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


def _is_right(rules: Rules, point: Point, kept: str, place: int) -> bool:
    """Did the call at `place` send what the rule's algorithm must send?"""
    rule = rules.deciding(*point)
    if rule is None or rule.is_left:
        return True
    shape = shape_of(*point, rule.segment, rule.fanout)
    return openmpi_traffic.read(kept, place, point[1]) in expected(point[0], rule.algorithm, shape)


def _row(
    rules: Rules,
    point: Point,
    spans: dict[str | Rule, list[NDArray[np.float64]]],
    proved: bool,
    hosts: EmulatedHosts | Allocation | None,
) -> tuple:
    medians = {name: float(np.median(np.concatenate(each))) for name, each in spans.items()}
    if not medians:
        raise InputError(
            f"{point[0]} on {point[1]} ranks: nothing finished; run 'mpilab rules check' first"
        )
    default, ruled = (medians.get(name, np.nan) for name in (BY_ITSELF, BY_RULES))
    best = min(medians, key=medians.__getitem__)
    rule = rules.deciding(*point)
    return (
        *point,
        "no rule" if rule is None else choice_words(rule),
        best if isinstance(best, str) else choice_words(best),
        default,
        ruled,
        medians[best],
        default / ruled,
        ruled / medians[best] - 1,
        proved,
        cores_of(hosts or slurm.wished()),
        processor(),
    )


def as_text(table: NDArray[Any]) -> str:
    """A table of COMPARED as text, in microseconds, with the medians of the ratios and where it was
    measured below it."""
    shared = shared_ranks(table)
    head = [
        "collective",
        "ranks",
        "bytes",
        "default µs",
        "rules µs",
        "best µs",
        "default/rules",
        "rules/best",
        "by the rules",
        "best",
    ]
    lines = [head] + [
        [
            row["collective"],
            f"{row['ranks']}{f' {OVERSUBSCRIBED}' * (row['ranks'] in shared)}",
            str(row["bytes"]),
            *(_number(row[name] * 1e6, ".2f") for name in ("default_s", "rules_s", "best_s")),
            _number(row["gain"], ".2f"),
            _number(row["regret"] + 1, ".2f"),
            row["rules"],
            row["best"],
        ]
        for row in table
    ]
    text = aligned(lines, left=(0, 8, 9))
    for row in table[~table["proved"]]:
        where = f"{row['collective']}, {row['ranks']} ranks, {row['bytes']} bytes"
        text += (
            f"\n{where}: the rules did not take effect as written; 'mpilab rules check' explains "
            "why"
        )
    known = table[np.isfinite(table["gain"])]
    if not len(known):
        return f"{text}\nno call with the rules finished"
    where = "\n".join(sentences(table))
    return (
        f"{text}\ndefault/rules {np.median(known['gain']):.2f}, rules/best "
        f"{np.median(known['regret'] + 1):.2f} (medians of {len(known)})\n{where}"
    )


def _number(value: float, form: str) -> str:
    return "–" if not np.isfinite(value) else format(value, form)
