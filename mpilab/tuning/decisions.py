"""Rules that choose a kernel for each call, and how to learn them from measurements.

    # collective   conditions                    kernel
    bcast          ppn>=2 bytes<2097152          bcast_node
    bcast                                        bcast_node_group

For each collective, the first line whose conditions all hold decides. The kernels called
COLLECTIVE_auto read the file named by the environment variable MPILAB_RULES
(src_c/common/decision/rules.h defines the names in conditions).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cluster.location import hosts_of
from mpilab.errors import InputError
from mpilab.hosts.description import Description
from mpilab.hosts.orders import order
from mpilab.hosts.places import Levels
from mpilab.hosts.slurm import SLURM
from mpilab.measure.dataset import machine
from mpilab.measure.timing import Timed, time_on
from mpilab.util.files import read_text
from mpilab.util.kit import ROOT

FOLDER = ROOT / "data" / "rules"
NAMES = ("ranks", "ppn", "nodes", "groups", "bytes", "total", "dealt")
_CONDITION = re.compile(rf"({'|'.join(NAMES)})(>=|<)(\d+)")
_KERNEL_NAME = 64  # MPILAB_KERNEL_NAME, including the terminating zero
# The numbers, besides bytes, that distinguish situations, most important first.
_AXES = ("dealt", "groups", "ppn", "ranks")


@dataclass(frozen=True)
class Condition:
    """NAME>=LIMIT (`at_least`) or NAME<LIMIT."""

    name: str
    at_least: bool
    limit: int

    def holds(self, situation: Mapping[str, int]) -> bool:
        """Does it hold in a situation, {name: number}?"""
        return (situation[self.name] >= self.limit) == self.at_least

    def __str__(self) -> str:
        return f"{self.name}{'>=' if self.at_least else '<'}{self.limit}"


@dataclass(frozen=True)
class Rule:
    """One line: the kernel for a collective if all conditions hold."""

    collective: str
    conditions: tuple[Condition, ...]
    kernel: str

    def __str__(self) -> str:
        return f"{self.collective:<10} {' '.join(map(str, self.conditions)):<50} {self.kernel}"


def situation(levels: Levels, size: int) -> dict[str, int]:
    """The values for conditions: {name: number}, for ranks at these Levels and `size` bytes."""
    ranks = len(levels.places)
    by_topology = sorted(range(ranks), key=lambda r: (levels.group[r], _first(levels.node, r), r))
    return {
        "ranks": ranks,
        "ppn": levels.most_on_a_node,
        "nodes": levels.nodes,
        "groups": levels.groups,
        "bytes": size,
        "total": size * ranks,
        "dealt": int(by_topology != list(range(ranks))),
    }


def _first(numbers: NDArray[Any], rank: int) -> int:
    """The lowest rank with the same number."""
    return numbers.tolist().index(numbers[rank])


def choose(rules: Iterable[Rule], collective: str, levels: Levels, size: int) -> str | None:
    """The kernel that the rules choose for `size` bytes; None if none of them applies."""
    at = situation(levels, size)
    for rule in rules:
        if rule.collective == collective and all(c.holds(at) for c in rule.conditions):
            return rule.kernel
    return None


def read(path: str | Path) -> list[Rule]:
    """The Rules of a file; a bare name such as "published" is looked up in data/rules.

    Raises InputError as 'FILE:LINE: what is wrong; what to write'.
    """
    path = find(path)
    return parse(read_text(path, f"the kit's are in {FOLDER}", "rules"), str(path))


def find(path: str | Path) -> Path:
    """The Path of a rules file; a bare name that does not exist is looked up in data/rules."""
    path = Path(path)
    kept = FOLDER / (path if path.suffix else path.with_suffix(".rules"))
    return kept if not path.exists() and path.name == str(path) and kept.exists() else path


def parse(text: str, name: str = "rules") -> list[Rule]:
    """The Rules of a text: list of Rule. Raises InputError as `read` does."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split("#", 1)[0].split()
        if words:
            found.append(_rule(words, f"{name}:{number}"))
    return found


def _rule(words: Sequence[str], where: str) -> Rule:
    example = "write e.g. 'bcast ppn>=2 bytes<65536 bcast_node'"
    if len(words) < 2:
        raise InputError(f"{where}: a collective without a kernel; {example}")
    collective, *conditions, kernel = words
    parsed = []
    for word in conditions:
        match = _CONDITION.fullmatch(word)
        if match is None:
            raise InputError(
                f"{where}: {word!r} is not a condition; it is NAME>=NUMBER or NAME<NUMBER with one "
                f"of {', '.join(NAMES)}; {example}"
            )
        parsed.append(Condition(match[1], match[2] == ">=", int(match[3])))
    if not kernel.startswith(f"{collective}_") or len(kernel) >= _KERNEL_NAME:
        raise InputError(f"{where}: {kernel!r} is not a kernel of {collective}; {example}")
    return Rule(collective, tuple(parsed), kernel)


def as_text(rules: Iterable[Rule], remark: str = "") -> str:
    """The text of a rules file; the lines of `remark` come first, as comments."""
    lines = [f"# {line}" for line in remark.splitlines()]
    return "\n".join([*lines, *map(str, rules)]) + "\n"


def learn(measured: Sequence[Timed]) -> list[Rule]:
    """The rules that choose, in each measured situation, the kernel with the smallest median.

    measured   list of mpilab.measure.timing.Timed, of any number of collectives.

    The boundary between two sizes is their geometric mean; the smallest size covers all below it
    and the largest all above. Any other number covers itself and all up to the next larger one that
    was measured.
    """
    return [
        rule
        for collective in dict.fromkeys(one.collective for one in measured)
        for rule in _learn(collective, [one for one in measured if one.collective == collective])
    ]


def _learn(collective: str, measured: Iterable[Timed]) -> list[Rule]:
    # (dealt, groups, ppn, ranks) -> {bytes: (seconds, kernel)}.
    best: dict[tuple[int, ...], dict[int, tuple[float, str]]] = defaultdict(dict)
    for one in measured:
        at = situation(one.levels, one.bytes)
        sizes = best[tuple(at[name] for name in _AXES)]
        candidate = (one.median, one.kernel)
        sizes[one.bytes] = min(candidate, sizes.get(one.bytes, candidate))
    rules = []
    # The largest values first: a line holds from its own value upward.
    for place in sorted(best, reverse=True):
        held = tuple(
            Condition(name, True, value)
            for name, value in zip(_AXES, place, strict=True)
            if any(other[_AXES.index(name)] < value for other in best)
        )
        rules += _by_size(collective, held, best[place])
    if held:  # the smallest measured values also cover everything below them
        rules += _by_size(collective, (), best[place])
    return rules


def _by_size(
    collective: str, held: tuple[Condition, ...], sizes: Mapping[int, tuple[float, str]]
) -> list[Rule]:
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


def regret(rules: Sequence[Rule], measured: Iterable[Timed]) -> list[dict[str, Any]]:
    """How much longer the chosen kernels take than the fastest measured ones: list of dicts.

    One for each collective, placement and size, with "chosen", "best" and "regret" (0 is none; None
    if the choice was not measured).
    """
    points: dict[tuple[str, Levels, int], dict[str, float]] = defaultdict(dict)
    for one in measured:
        points[one.collective, one.levels, one.bytes][one.kernel] = one.median
    found = []
    for (collective, levels, size), seconds in points.items():
        chosen = choose(rules, collective, levels, size)
        best = min(seconds, key=seconds.__getitem__)
        lost = seconds[chosen] / seconds[best] - 1 if chosen in seconds else None
        found.append(
            {
                "collective": collective,
                "levels": levels,
                "bytes": size,
                "chosen": chosen,
                "best": best,
                "regret": lost,
            }
        )
    return found


# Measuring kernels on a cluster, and reporting what rules lose.


def measure(
    cluster: str | Description,
    *,
    collectives: Iterable[str],
    sizes: Iterable[int],
    orders: Sequence[str] = ("seq", "rr", "shuffled"),
    ppn: Sequence[int] | None = None,
    repetitions: int = 7,
    progress: bool = True,
) -> list[Timed]:
    """Time all kernels of the collectives, including Open MPI's, on a cluster; list of Timed.

    cluster  a Description or the name of one, whose hosts are emulated; "slurm": the nodes of the
             current job, with their tasks as slots and their switches as groups.
    sizes    bytes, see mpilab.measure.timing.time_on.
    orders   of the ranks (mpilab.hosts.orders).
    ppn      ranks per host, see Description.part: list of int; default: all slots.

    Raises InputError, before measuring anything, for more ranks per host than any has slots.
    """
    chosen, found = hosts_of(cluster), []
    whole = chosen.description
    parts = [whole.part(ppn=number) for number in ppn] if ppn else [whole.part()]
    with chosen as hosts:
        for part in parts:
            placed = {name: order(part, name) for name in orders}
            for collective in collectives:
                found += time_on(
                    hosts,
                    collective,
                    sizes=tuple(sizes),
                    orders=placed,
                    repetitions=repetitions,
                    progress=progress,
                )
    return found


def remark(cluster: str, found: Sequence[Timed]) -> str:
    """The origin of rules, for the header of their file."""
    repetitions = len(found[0].seconds) if found else 0
    where = "the nodes of a Slurm job" if cluster == SLURM else f"the emulated cluster {cluster}"
    return (
        f"Learned on {where}, {date.today()}, medians of {repetitions}\n"
        f"repetitions, on {machine()}."
    )


def report(rules: Sequence[Rule], found: Sequence[Timed]) -> str:
    """Text table of what the learned and the published rules lose against our best measured kernel,
    and how that kernel compares with Open MPI's best."""
    ours = [one for one in found if not one.is_openmpis]
    published = regret(read("published"), ours)
    lines = [
        f"{'':<12} {'cluster':<24} {'bytes':>9}  {'best of ours':<28} {'learned':>8} "
        f"{'published':>10} {'Open MPI':>9}"
    ]
    for lost, theirs in zip(regret(rules, ours), published, strict=True):
        at = (lost["collective"], lost["levels"], lost["bytes"])
        here = [one for one in found if (one.collective, one.levels, one.bytes) == at]
        best = min(one.median for one in here if not one.is_openmpis)
        openmpi = min((one.median for one in here if one.is_openmpis), default=np.nan)
        where = f"{here[0].order}, {lost['levels'].describe()}"
        lines.append(
            f"{lost['collective']:<12} {where:<24} {lost['bytes']:>9}  {lost['best']:<28} "
            f"{_percent(lost['regret'])} {_percent(theirs['regret'], 10)} {openmpi / best:>8.2f}x"
        )
    return "\n".join(lines)


def _percent(number: float | None, width: int = 8) -> str:
    return f"{'-':>{width}}" if number is None else f"{number:>{width}.0%}"
