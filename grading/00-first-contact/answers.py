"""Right values for the Python exercises of lab 00. Handouts leave this file out."""

import numpy as np

from mpilab.errors import InputError
from mpilab.hosts.hostfile import parse


def place_rank(text: str, rank: int, policy: str) -> int:
    """The number of the host on which `placement` puts a rank, by arithmetic.

    Until the next host is full, all turns by node are alike. tests/labs/test_counted_answers.py
    compares this with the list of all ranks.
    """
    slots = parse(text).slots
    if not 0 <= rank < sum(slots):
        raise InputError(f"rank {rank}: there are {sum(slots)} slots; give a rank below")
    if policy == "slot":
        return int(np.searchsorted(np.cumsum(slots), rank, side="right"))
    passed = 0  # turns
    for turns in sorted(set(slots)):
        there = [host for host, number in enumerate(slots) if number > passed]
        if rank < (turns - passed) * len(there):
            return there[rank % len(there)]
        rank -= (turns - passed) * len(there)
        passed = turns
    raise AssertionError("unreachable: the rank is below the number of slots")


def alpha_beta(text: str) -> tuple[float, float]:
    """(α in seconds, β in seconds per byte) of a table of times with spreads.

    text   rows 'BYTES MICROSECONDS SPREAD', the spread in microseconds, too; empty lines and lines
           that begin with '#' are ignored.

    The line has the least sum of squared errors in units of the spreads. Source: Press, Teukolsky,
    Vetterling, Flannery, Numerical Recipes, 3rd edition, section 15.2. Raises InputError for fewer
    than two sizes, or a row that is not three numbers, the last two above 0.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            size, time, spread = map(float, line.split())
        except ValueError:
            time = spread = 0.0
        if time <= 0 or spread <= 0:
            raise InputError(
                f"line {number} of the table: {line.strip()!r} is not three numbers, the last two "
                "above 0; write e.g. '1024 0.75 0.1'"
            )
        rows.append((size, time * 1e-6, spread * 1e-6))
    n, t, s = np.array(rows).reshape(-1, 3).T
    if len(np.unique(n)) < 2:
        raise InputError(
            f"the table has {len(np.unique(n))} sizes; a line needs 2 or more: add another size"
        )
    (alpha, beta), *_ = np.linalg.lstsq(np.stack([1 / s, n / s], axis=1), t / s)
    return float(alpha), float(beta)
