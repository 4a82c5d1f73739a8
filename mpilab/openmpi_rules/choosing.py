"""Choose rules from times (mpilab.openmpi_rules.points), and tell what they should cost."""

from math import sqrt

import numpy as np

from mpilab.errors import InputError
from mpilab.openmpi_rules.model import Rule, Rules
from mpilab.openmpi_rules.points import medians_of
from mpilab.openmpi_rules.vocabulary import LEFT, looked_up_bytes

# A choice that takes so much longer than the fastest is as good: less rules, and no rules by noise.
SLACK = 0.05

EXPECTED = np.dtype(
    [
        ("collective", "U24"), ("ranks", "i4"), ("bytes", "i8"), ("number", "i4"),
        ("chosen_s", "f8"), ("best_number", "i4"), ("best_s", "f8"), ("default_s", "f8"),
        ("regret", "f8"),
    ]
)  # fmt: skip


def choose(points, slack=SLACK):
    """Rules for all Points: list of Rule, as few as there can be.

    Neighbouring sizes get one rule if a choice is, at each of them, no more than `slack` slower
    than the fastest, or not to be told from it by the measurements; of several, the one that loses
    least. A rule begins at the roundest number between the sizes that were tried. Numbers of ranks
    below the least that was tried are left to Open MPI; one that was tried stands for those up to
    the next.
    """
    if not 0 <= slack < 10:
        raise InputError(f"slack={slack}: write a share of 0 or more, e.g. 0.05 for 5 %")
    found = []
    for ranks in points.ranks:
        begun = _begun(points, ranks, _runs(points, ranks, slack))
        if not found or found[-1][1] != begun:
            found.append((ranks, begun))
    rules = [
        Rule(points.collective, ranks, begin, *choice)
        for ranks, begun in found
        for begin, choice in begun
    ]
    if points.ranks[0] > 2:
        rules.insert(0, Rule(points.collective, 1, 0, LEFT))
    return rules


def expected(rules, points):
    """What following the rules costs, point by point: a table of EXPECTED.

    regret = chosen_s / best_s - 1; default_s is nan where it was not measured, and chosen_s where
    the rules choose what was not.
    """
    whole = rules if isinstance(rules, Rules) else Rules(tuple(rules))
    rows = []
    for (ranks, size), each in sorted(points.seconds.items()):
        rule = whole.deciding(points.collective, ranks, size)
        default = points.defaults.get((ranks, size), np.nan)
        left = rule is None or rule.is_left
        chosen = default if left else each.get(rule.choice, np.nan)
        best = min(each, key=each.get)
        rows.append((points.collective, ranks, size, LEFT if left else rule.number, chosen, best[0],
                     each[best], default, chosen / each[best] - 1))  # fmt: skip
    return np.array(rows, EXPECTED)


def expected_words(table):
    """The regret of a table of EXPECTED in a sentence."""
    if not np.isfinite(table["regret"]).any():
        return "what the rules cost is not known: nothing that they choose was tried"
    worst = table[np.nanargmax(table["regret"])]
    middle, most = medians_of(table["regret"])
    words = (f"expected regret at {len(table)} points: median {middle:.1%}, at most {most:.1%} "
             f"({worst['ranks']} ranks, {worst['bytes']} bytes)")  # fmt: skip
    middle, most = medians_of(table["default_s"] / table["best_s"] - 1)
    if np.isfinite(middle):
        words += f"; Open MPI's own choice: median {middle:.1%}, at most {most:.1%}"
    return words


def _runs(points, ranks, slack):
    """[[first size, last size, choice]]: neighbouring sizes that one choice is good for.

    To go on as long as any choice is good enough makes the fewest runs.
    """
    runs, good = [], {}
    for size in points.sizes(ranks):
        each = points.seconds[ranks, size]
        least = min(each.values())
        tied = points.tied.get((ranks, size), ())
        lost = {
            choice: time / least - 1
            for choice, time in each.items()
            if time <= least * (1 + slack) or choice in tied
        }
        both = {choice: good[choice] + lost[choice] for choice in good.keys() & lost.keys()}
        if both:
            good = both
            runs[-1][1] = size
        else:
            good = lost
            runs.append([size, size, None])
        runs[-1][2] = min(good, key=lambda choice: (good[choice], choice))
    return runs


def _begun(points, ranks, runs):
    """[(bytes as Open MPI looks them up, choice)] of each run."""
    found, before = [], None
    for first, last, choice in runs:
        begin = 0
        if before is not None:
            begin = roundest(looked_up_bytes(points.collective, ranks, before),
                             looked_up_bytes(points.collective, ranks, first))  # fmt: skip
        found.append((begin, choice))
        before = last
    return found


def roundest(below, most):
    """The number above `below` and not above `most` with the fewest binary digits to remember: a
    power of two, or else a multiple of the largest one; of several, the nearest to their geometric
    mean. roundest(1000, 5000) = 2048, roundest(5000, 7000) = 6144."""
    middle = sqrt(max(1, below) * most)
    powers = [1 << place for place in range(below.bit_length(), most.bit_length())]
    if powers:
        return min(powers, key=lambda one: abs(one - middle))
    step = 1 << most.bit_length()
    while (below // step + 1) * step > most:
        step //= 2
    return min(range((below // step + 1) * step, most + 1, step), key=lambda one: abs(one - middle))
