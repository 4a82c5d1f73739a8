"""Where measured times come from: the machine, its cores, the ranks, and which ranks shared cores.

Tables and figures of times say so by these functions. They understand the tables of sweeps, which
have a column `cores`, and those of `mpilab.measure.dataset`, whose column `machine` also holds the
number of cores. A simulated cluster has none.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from numpy.typing import NDArray

from mpilab.measure.dataset import processor
from mpilab.measure.sweep_table import OVERSUBSCRIBED, is_oversubscribed
from mpilab.util.units import plural

# The beginning of mpilab.measure.dataset.machine().
_STAMP = re.compile(r"(?P<processor>.+?), (?P<cores>\d+) cores?,")


def where_of(table: NDArray[Any], ranks: Sequence[int] = ()) -> str:
    """Where the times of a table come from: 'measured on AMD EPYC, 2 cores, 2 and 4 ranks', with
    the date if the table has it.

    ranks   the numbers of ranks, for a table without a column for them.

    "" for a table without machines.
    """
    said = []
    for machine, cores, numbers, dates in _origins(table, ranks):
        words = f"{_and(f'{number:,}' for number in numbers)} rank{'s' * (numbers != [1])}"
        said.append(
            ", ".join([f"measured on {machine}, {plural(cores, 'core')}, {words}", *dates])
            if cores
            else f"simulated on {machine}, {words}"
        )
    return "; ".join(said)


def here(ranks: int, cores: int | None = None) -> str:
    """What was just measured on this machine: 'AMD EPYC, 2 cores, 4 ranks, oversubscribed'.

    cores   default: the CPUs that this process may run on.
    """
    cores = len(os.sched_getaffinity(0)) if cores is None else cores
    words = f"{processor()}, {plural(cores, 'core')}, {plural(ranks, 'rank')}"
    return f"{words}, {OVERSUBSCRIBED}" if is_oversubscribed(ranks, cores) else words


def shared_ranks(table: NDArray[Any], ranks: Sequence[int] = ()) -> list[int]:
    """The numbers of ranks that had to share cores when the table was measured, ascending."""
    return sorted(
        {
            number
            for _, cores, numbers, _ in _origins(table, ranks)
            for number in numbers
            if is_oversubscribed(number, cores)
        }
    )


def ranks_label(table: NDArray[Any], ranks: int) -> str:
    """'4 ranks', or '4 ranks, oversubscribed' if they shared cores when the table was measured."""
    label = f"{ranks:,} rank{'s' * (ranks != 1)}"
    return f"{label}, {OVERSUBSCRIBED}" if ranks in shared_ranks(table) else label


def sentences(table: NDArray[Any], ranks: Sequence[int] = ()) -> list[str]:
    """Where the times come from, and which ranks were oversubscribed: a sentence each."""
    where = where_of(table, ranks)
    lines = [f"Times {where}."] if where else []
    return lines + [
        f"{plural(number, 'rank')}: {OVERSUBSCRIBED}, more ranks than cores."
        for number in shared_ranks(table, ranks)
    ]


def below(title: str, table: NDArray[Any] | None, ranks: Sequence[int] = ()) -> str:
    """The title of a figure with a second, smaller line: where the times come from."""
    if table is None or not (where := where_of(table, ranks)):
        return title
    shared = shared_ranks(table, ranks)
    words = f" ({_and(map(str, shared))} {OVERSUBSCRIBED})" if shared else ""
    return titled(title, where + words)


def titled(title: str, where: str) -> str:
    """The title of a figure with a second, smaller line: `where`, unless that is ""."""
    return f"{title}<br><sub>{where[:1].upper()}{where[1:]}</sub>" if where else title


def _origins(
    table: NDArray[Any], ranks: Sequence[int]
) -> list[tuple[str, int, list[int], list[str]]]:
    """[(processor or simulated cluster, cores, numbers of ranks, dates)], as they first appear."""
    names = set(table.dtype.names or ())
    if "machine" not in names or not ("ranks" in names or len(ranks)):
        return []
    found: dict[tuple[str, int], tuple[set[int], set[str]]] = {}
    fields: list[str] = [one for one in ("machine", "cores", "ranks", "date") if one in names]
    for row in dict.fromkeys(table[fields].tolist()):
        told = dict(zip(fields, row, strict=True))
        machine, cores = told["machine"], told.get("cores")
        if cores is None:
            stamp = _STAMP.match(machine)
            if stamp is None:
                continue
            machine, cores = stamp["processor"], int(stamp["cores"])
        if machine:
            numbers, dates = found.setdefault((machine, cores), (set(), set()))
            numbers.update([told["ranks"]] if "ranks" in told else ranks)
            dates.update([told["date"]] if "date" in told else [])
    return [(*about, sorted(numbers), sorted(dates)) for about, (numbers, dates) in found.items()]


def _and(words: Iterable[str]) -> str:
    """'2', '2 and 4', '2, 4 and 8'."""
    listed = list(words)
    return " and ".join([", ".join(listed[:-1]), listed[-1]] if len(listed) > 1 else listed)
