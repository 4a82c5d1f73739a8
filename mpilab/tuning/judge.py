"""Judge a rules file by its cost in the α-β model or in simulation, the same on every machine."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms import ours_of
from mpilab.algorithms.algorithm import GammaFunction
from mpilab.algorithms.formula import ceil_log2, floor_log2
from mpilab.cases.case import Case
from mpilab.errors import InputError, SetupError, Ungradable
from mpilab.hosts.platforms import calibrated
from mpilab.kernels.simgrid import kernels
from mpilab.measure.openmpi_traffic import PATTERNS
from mpilab.models.costs import coefficients
from mpilab.models.declared import kernels_of
from mpilab.models.point_to_point import Hockney
from mpilab.runners import simgrid
from mpilab.runners.simgrid import seconds_of
from mpilab.tuning.choosing import choices, run_as, seconds
from mpilab.tuning.rules import (
    CHAINS,
    CUT,
    FAILS,
    MISREAD,
    WITHOUT_SIZE,
    Choice,
    Point,
    Rule,
    Rules,
    algorithm_name,
    choice_words,
    parse,
)
from mpilab.util.units import bytes_of

# Points as text, 'bcast 64 8K, barrier 64', or as a list.
Given = str | Iterable[str | Sequence[str | int]]
# chosen is in words. Seconds are predicted; chosen_s is nan if nothing with a known cost is chosen.
# ratio = chosen_s / best_s, 1 if best_s is 0.
PREDICTED = np.dtype(
    [
        ("collective", "U24"),
        ("ranks", "i4"),
        ("bytes", "i8"),
        ("line", "i4"),
        ("chosen", "U80"),
        ("chosen_s", "f8"),
        ("best_s", "f8"),
        ("ratio", "f8"),
    ]
)
MOST_TEXT = 1 << 14  # characters of a file to judge
# {Open MPI's name of a broadcast: ours}, where they differ.
# Candidates for the cheapest choice; fewer than for the model, since each is a simulation.
SEGMENTS = (0, 8192, 16384)
FANOUTS = (4,)
# A ring sends P² messages, and a linear broadcast sends all its messages from one rank. They take
# seconds to simulate and are never the cheapest.
MOST_RANKS, NEVER_CHEAPEST = 256, ("basic_linear", "scatter_allgather_ring")
# More would take minutes to simulate, and segments of a byte are useless.
MOST_SEGMENTS = 1024


def predicted(
    rules: Rules,
    points: Given,
    alpha: float,
    beta: float,
    gamma: GammaFunction | None = None,
    eager: int | None = None,
) -> NDArray[Any]:
    """The cost of the rules' choices in the model, beside the cheapest choice: table of PREDICTED.

    points   [(collective, ranks, bytes of a block or of the whole message)], or the same as text:
             'bcast 64 8K, allgather 16 1024, barrier 64'
    alpha, beta   seconds per message and per byte; gamma: see mpilab.models.costs
    eager    bytes above which a message takes 2α more, for a handshake between sender and receiver
             before it (rendezvous); None: no message has one. Only for broadcasts.

    The cheapest choice is that of all algorithms with a cost, without segments and with segments of
    512 bytes to 1 MiB, and with 2, 4 and 8 chains. If Open MPI substitutes another algorithm for
    the chosen one, the substitute's cost counts. Raises InputError for invalid points.
    """
    model = Hockney(alpha, beta)

    def price(point: Point, choice: Choice) -> float | None:
        took = seconds(*point, choice, model, gamma)
        if took is None or eager is None:
            return took
        return took + 2 * alpha * _handshakes(*point, choice, eager)

    rows = []
    for point in points_of(points):
        collective, ranks, size = point
        costs = [price(point, choice) for choice in choices(collective)]
        rule = rules.deciding(collective, ranks, size)
        own = None
        if rule is not None and not rule.is_fatal(ranks):
            own = price(point, rule.choice)
        best = min(cost for cost in (*costs, own) if cost is not None)
        rows.append(row(collective, ranks, size, rule, np.nan if own is None else own, best))
    return np.array(rows, PREDICTED)


def _handshakes(collective: str, ranks: int, size: int, choice: Choice, eager: int) -> float:
    """How many of the messages whose times add up to the cost of a broadcast are longer than
    `eager` bytes."""
    if collective != "bcast":
        raise InputError(
            f"eager={eager}: {collective} is not priced with handshakes; only bcast is"
        )
    name, segment, fanout = run_as(collective, ranks, size, choice)
    counted, _ = coefficients(
        collective, name, ranks, size, segment=segment, fanout=fanout, library="openmpi"
    )
    messages, piece = float(counted), segment or size
    halvings = [size / (2 << step) for step in range(ceil_log2(ranks))]
    if name == "scatter_allgather":
        steps = floor_log2(ranks)
        parts = [(2.0, length) for length in halvings[:steps]]
        parts.append((messages - 2 * steps, float(size)))  # to a rank beyond the power of two
    elif name == "scatter_allgather_ring":
        parts = [*((1.0, length) for length in halvings), (ranks - 1.0, size / ranks)]
    elif name == "split_binary_tree" and ranks > 2:
        parts = [(messages - 1, min(piece, size / 2)), (1.0, size / 2)]  # the last swaps halves
    else:
        parts = [(messages, min(piece, size))]
    return sum(number for number, length in parts if length > eager)


def row(
    collective: str, ranks: int, size: int, rule: Rule | None, chosen_s: float, best_s: float
) -> tuple:
    """A row of PREDICTED; `rule` is None if no rule of the file decides."""
    return (
        collective,
        ranks,
        size,
        0 if rule is None else rule.line,
        "no rule" if rule is None else choice_words(rule),
        chosen_s,
        best_s,
        chosen_s / best_s if best_s else 1.0,
    )


def complaint(
    text: str,
    points: Given,
    alpha: float,
    beta: float,
    most: float = 1.1,
    eager: int | None = None,
) -> str:
    """What is wrong with a rules file (its text); "" if nothing is. For use in rubrics.

    Open MPI must read it as written, it must not make any program fail, and at each of `points` it
    must choose an algorithm that costs at most `most` times as much as the cheapest one
    (`predicted`). A decision left to Open MPI is not a choice.
    """
    rules, wrong = readable(text)
    if rules is None:
        return wrong
    rows = predicted(rules, points, alpha, beta, eager=eager)
    return verdict(rows, most, "by the model", "the model knows")


def readable(text: str) -> tuple[Rules | None, str]:
    """(Rules, "") of a text to judge; (None, what is wrong with it) if Open MPI would not read it
    as written, or a program would fail. InputError if it is not the text of a file."""
    if not isinstance(text, str):
        raise InputError(f"a rules file is text, this is {type(text).__name__}")
    if len(text) > MOST_TEXT:
        raise InputError(f"{len(text)} characters are too many for a rules file; write fewer rules")
    try:
        rules = parse(text, "your rules file")
    except InputError as error:
        return None, str(error)
    for remark in rules.remarks:
        if remark.kind in (FAILS, MISREAD):
            return None, f"{rules.name}:{remark.line}: {remark.text}"
    return rules, ""


def verdict(rows: NDArray[Any], most: float, how: str, known: str) -> str:
    """What is wrong with choices, from their costs in a table of PREDICTED; "" if nothing is.

    how, known   in words: "by the model"; whose cost "the model knows"
    """
    unknown = rows[np.isnan(rows["chosen_s"])]
    if len(unknown):
        row = unknown[0]
        return (
            f"{_where(row)} it says '{row['chosen']}', which chooses no algorithm whose cost "
            f"{known}"
        )
    worst = rows[np.argmax(rows["ratio"])]
    if worst["ratio"] <= most * (1 + 1e-9):
        return ""
    return (
        f"{_where(worst)} it chooses {worst['chosen']} (line {worst['line']}), which takes "
        f"{worst['ratio']:.2f} times as long as the best choice {how}; at most {most:g} times is "
        "allowed"
    )


def _where(row: np.void) -> str:
    size = "" if row["collective"] in WITHOUT_SIZE else f", {row['bytes']} bytes"
    return f"for {row['collective']} on {row['ranks']} ranks{size}"


def points_of(given: Given) -> list[Point]:
    """[(collective, ranks, bytes)] of points as text, or as a list.

    Raises InputError for an invalid point.
    """
    words = given.split(",") if isinstance(given, str) else given
    return [_point(one.split() if isinstance(one, str) else list(one)) for one in words]


def _point(words: Sequence[str | int]) -> Point:
    shown = " ".join(map(str, words))
    if not words or words[0] not in PATTERNS or len(words) > 3:
        raise InputError(
            f"point {shown!r}: write a collective ({', '.join(PATTERNS)}), ranks and "
            "bytes, e.g. 'bcast 64 8K'"
        )
    collective, ranks, size = (*words, 0)[:3] if words[0] in WITHOUT_SIZE else (*words, "", "")[:3]
    if not str(ranks).isdigit() or int(ranks) < 2:
        raise InputError(f"point {shown!r}: {str(ranks)!r} is not a number of ranks, 2 or more")
    return str(collective), int(ranks), bytes_of(size)


# Cost in simulated time: of our kernels of the same algorithms, on a simulated cluster with one
# rank per host where a message costs α + mβ. The α-β model counts messages one after another; in a
# simulation, messages that leave a rank at the same time share its link.


def costs(rules: Rules, points: Given, alpha: float, beta: float) -> NDArray[Any]:
    """The cost of a file's choices in simulated time, beside the cheapest one tried: table of
    PREDICTED; arguments as for `predicted`.

    Only broadcasts, on at most 256 ranks. Raises InputError for other points, SetupError without
    SimGrid.
    """
    rows = []
    for collective, ranks, size in points_of(points):
        if collective != "bcast" or not 2 <= ranks <= MOST_RANKS:
            raise InputError(
                f"{collective} on {ranks} ranks: only broadcasts on 2 to {MOST_RANKS} ranks can be "
                "simulated here"
            )
        tried = tuple(
            choice
            for choice in choices(collective, SEGMENTS, FANOUTS)
            if choice[2] < size and algorithm_name(collective, choice[0]) not in NEVER_CHEAPEST
        )
        rule = rules.deciding(collective, ranks, size)
        took = _seconds(ranks, size, tried, alpha, beta)
        if rule is not None and not rule.is_left and not rule.is_fatal(ranks):
            took = {**_seconds(ranks, size, (rule.choice,), alpha, beta), **took}
        chosen_s = np.nan if rule is None else took.get(rule.choice, np.nan)
        rows.append(row(collective, ranks, size, rule, chosen_s, min(took.values())))
    return np.array(rows, PREDICTED)


def simulated_complaint(
    text: str,
    points: Given,
    alpha: float,
    beta: float,
    most: float = 1.5,
    eager: int | None = None,
) -> str:
    """What is wrong with a rules file (its text); "" if nothing is. For use in rubrics.

    Like `complaint`, but in simulated time, where no message has a handshake; with `eager`, by the
    model, too. Raises Ungradable without SimGrid.
    """
    if eager is not None and (said := complaint(text, points, alpha, beta, most, eager)):
        return said
    rules, wrong = readable(text)
    if rules is None:
        return wrong
    try:
        rows = costs(rules, points, alpha, beta)
    except SetupError as error:
        raise Ungradable(str(error)) from None
    return verdict(rows, most, "in simulated time", "can be simulated")


@cache
def _seconds(
    ranks: int, size: int, tried: tuple[Choice, ...], alpha: float, beta: float
) -> dict[Choice, float]:
    """{choice: simulated seconds} of broadcasts, without those for which we have no kernel."""
    named = {choice: _case(ranks, size, choice) for choice in tried}
    cases = {choice: case for choice, case in named.items() if case is not None}
    # All of α is spent at a message's ends, so ranks are as busy as in the model.
    cluster = calibrated(
        f"flat-{ranks}x1", {"node": (alpha, beta), "group": (alpha, beta)}, overhead=alpha / 2
    )
    distinct = list(dict.fromkeys(cases.values()))
    results = simgrid.simulate(kernels(), "", distinct, cluster, limit=600.0)
    for result in results:
        if result.outcome != "done":
            raise Ungradable(f"{result.case.function} on {ranks} ranks: {result.outcome}")
    took = dict(zip(distinct, map(seconds_of, results), strict=True))
    return {choice: took[case] for choice, case in cases.items()}


def _case(ranks: int, size: int, choice: Choice) -> Case | None:
    """The Case of our kernel that matches a choice of Open MPI's; None if there is none, or for too
    many segments."""
    name, cuts, _ = run_as("bcast", ranks, size, choice)
    kernel = f"bcast_{ours_of('bcast', name)}"
    if kernel not in kernels_of("bcast"):
        return None
    if cuts and size / cuts > MOST_SEGMENTS:
        return None
    return Case(
        "bcast",
        ranks,
        size,
        "byte",
        record=False,
        dump=False,
        function=kernel,
        # Ours segments by default.
        segment=cuts or (max(1, size) if name in CUT["bcast"] else 0),
        fanout=max(1, choice[1]) if name in CHAINS["bcast"] else 0,
    )
