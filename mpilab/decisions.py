"""Rules by which a kernel is chosen for each call, and how they are learned from a sweep.

    # collective   conditions                    kernel
    bcast          ppn>=2 bytes<2097152          bcast_node
    bcast                                        bcast_node_group

The first line of a collective whose conditions all hold decides. The kernels called
COLLECTIVE_auto read such a file, which the environment variable MPILAB_RULES names
(src_c/decision/rules.h tells what the names in conditions mean).
"""

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from mpilab.build import ROOT
from mpilab.errors import InputError

FOLDER = ROOT / "data" / "rules"
NAMES = ("ranks", "ppn", "nodes", "groups", "bytes", "total", "dealt")
_CONDITION = re.compile(rf"({'|'.join(NAMES)})(>=|<)(\d+)")
_KERNEL_NAME = 64  # MPILAB_KERNEL_NAME, with the zero at its end


@dataclass(frozen=True)
class Condition:
    """NAME>=LIMIT (`at_least`) or NAME<LIMIT."""

    name: str
    at_least: bool
    limit: int

    def holds(self, situation):
        """Does it hold in a situation, {name: number}?"""
        return (situation[self.name] >= self.limit) == self.at_least

    def __str__(self):
        return f"{self.name}{'>=' if self.at_least else '<'}{self.limit}"


@dataclass(frozen=True)
class Rule:
    """One line: for a collective, where all conditions hold, a kernel."""

    collective: str
    conditions: tuple
    kernel: str

    def __str__(self):
        return f"{self.collective:<10} {' '.join(map(str, self.conditions)):<50} {self.kernel}"


def situation(levels, size):
    """What conditions are about: {name: number}, for ranks at these Levels and `size` bytes."""
    ranks = len(levels.places)
    by_topology = sorted(range(ranks), key=lambda r: (levels.group[r], _first(levels.node, r), r))
    return {
        "ranks": ranks, "ppn": levels.most_on_a_node, "nodes": levels.nodes,
        "groups": levels.groups, "bytes": size, "total": size * ranks,
        "dealt": int(by_topology != list(range(ranks))),
    }  # fmt: skip


def _first(numbers, rank):
    """The lowest rank with the same number."""
    return numbers.tolist().index(numbers[rank])


def choose(rules, collective, levels, size):
    """The kernel that the rules choose for `size` bytes; None where none of them applies."""
    at = situation(levels, size)
    for rule in rules:
        if rule.collective == collective and all(c.holds(at) for c in rule.conditions):
            return rule.kernel
    return None


def read(path):
    """The Rules of a file; a bare name such as "published" is looked for in data/rules.

    Raises InputError as 'FILE:LINE: what is wrong; what to write'.
    """
    path = find(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(
            f"{path}: cannot be read as rules: {reason}; the kit's are in {FOLDER}"
        ) from None
    return parse(text, str(path))


def find(path):
    """The Path of a file of rules; a bare name that is not here is looked for in data/rules."""
    path = Path(path)
    kept = FOLDER / (path if path.suffix else path.with_suffix(".rules"))
    return kept if not path.exists() and path.name == str(path) and kept.exists() else path


def parse(text, name="rules"):
    """The Rules of a text: list of Rule. Raises InputError as `read` does."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if words:
            found.append(_rule(words, f"{name}:{number}"))
    return found


def _rule(words, where):
    example = "write e.g. 'bcast ppn>=2 bytes<65536 bcast_node'"
    if len(words) < 2:
        raise InputError(f"{where}: a collective without a kernel; {example}")
    collective, *conditions, kernel = words
    parsed = []
    for word in conditions:
        match = _CONDITION.fullmatch(word)
        if match is None:
            raise InputError(
                f"{where}: {word!r} is no condition; it is NAME>=NUMBER or NAME<NUMBER with one "
                f"of {', '.join(NAMES)}; {example}"
            )
        parsed.append(Condition(match[1], match[2] == ">=", int(match[3])))
    if not kernel.startswith(f"{collective}_") or len(kernel) >= _KERNEL_NAME:
        raise InputError(f"{where}: {kernel!r} is no kernel of {collective}; {example}")
    return Rule(collective, tuple(parsed), kernel)


def as_text(rules, remark=""):
    """The rules as a file; the lines of `remark` come first, as comments."""
    lines = [f"# {line}" for line in remark.splitlines()]
    return "\n".join([*lines, *map(str, rules)]) + "\n"


def learn(measured):
    """The rules that choose, in each situation that was measured, the kernel with the least median.

    measured   list of mpilab.timed.Timed, of any number of collectives.

    Between two sizes the border is their geometric mean; the smallest size stands for all below it
    and the largest for all above. Of the other numbers, a situation stands for itself and for all
    up to the next larger one that was measured.
    """
    return [
        rule
        for collective in dict.fromkeys(one.collective for one in measured)
        for rule in _learn(collective, [one for one in measured if one.collective == collective])
    ]


# What tells situations apart, beside bytes; most telling first.
_AXES = ("dealt", "groups", "ppn", "ranks")


def _learn(collective, measured):
    best = defaultdict(dict)  # (dealt, groups, ppn, ranks) -> {bytes: (seconds, kernel)}
    for one in measured:
        at = situation(one.levels, one.bytes)
        sizes = best[tuple(at[name] for name in _AXES)]
        candidate = (one.median, one.kernel)
        sizes[one.bytes] = min(candidate, sizes.get(one.bytes, candidate))
    rules = []
    # The largest values first: a line holds from its own value on.
    for place in sorted(best, reverse=True):
        held = tuple(
            Condition(name, True, value)
            for name, value in zip(_AXES, place, strict=True)
            if any(other[_AXES.index(name)] < value for other in best)
        )
        rules += _by_size(collective, held, best[place])
    if held:  # below the least that was measured of anything, the least stands for it
        rules += _by_size(collective, (), best[place])
    return rules


def _by_size(collective, held, sizes):
    """One line for each run of sizes with the same best kernel, the smallest first."""
    ordered = sorted(sizes)
    rules = []
    for size, following in zip(ordered, [*ordered[1:], None], strict=True):
        kernel = sizes[size][1]
        if following is None:
            rules.append(Rule(collective, held, kernel))
        elif sizes[following][1] != kernel:
            border = round((size * following) ** 0.5)
            rules.append(Rule(collective, (*held, Condition("bytes", False, border)), kernel))
    return rules


def regret(rules, measured):
    """How much longer the chosen kernels take than the fastest that was measured: list of dicts.

    One for each collective, placement and size, with "chosen", "best" and "regret" (0 is none); a
    choice that was not measured has the regret None.
    """
    points = defaultdict(dict)
    for one in measured:
        points[one.collective, one.levels, one.bytes][one.kernel] = one.median
    found = []
    for (collective, levels, size), seconds in points.items():
        chosen = choose(rules, collective, levels, size)
        best = min(seconds, key=seconds.get)
        lost = seconds[chosen] / seconds[best] - 1 if chosen in seconds else None
        found.append({"collective": collective, "levels": levels, "bytes": size,
                      "chosen": chosen, "best": best, "regret": lost})  # fmt: skip
    return found
