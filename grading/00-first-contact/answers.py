"""Right values for the Python exercises of lab 00. Handouts leave this file out."""

from mpilab.errors import InputError
from mpilab.hosts.hostfile import parse
from mpilab.models import fit_hockney


def place_ranks(text: str, ranks: int, policy: str) -> list[int]:
    """`placement` of `ranks` ranks on the hosts of a hostfile's text."""
    return parse(text).placement(ranks, policy)


def alpha_beta(text: str) -> tuple[float, float]:
    """(α in seconds, β in seconds per byte) of a table as osu_latency prints it.

    text   rows 'BYTES MICROSECONDS'; empty lines and lines that begin with '#' are ignored.

    Two rows give the line through both points, more rows that of `fit_hockney`. Raises InputError
    for fewer than two rows, or one that is not two numbers.
    """
    rows = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            size, microseconds = map(float, line.split())
        except ValueError:
            raise InputError(
                f"line {number} of the table: {line.strip()!r} is not two numbers; "
                "write e.g. '1024 0.75'"
            ) from None
        rows.append((size, microseconds * 1e-6))
    if len(rows) < 2:
        raise InputError(f"the table has {len(rows)} rows; a line needs 2 points or more")
    if len(rows) > 2:
        fitted = fit_hockney(*zip(*rows, strict=True))
        return fitted.alpha, fitted.beta
    (n1, t1), (n2, t2) = rows
    if n1 == n2:
        raise InputError(f"both rows of the table are of {n1:g} bytes; give two sizes")
    beta = (t2 - t1) / (n2 - n1)
    return t1 - beta * n1, beta
