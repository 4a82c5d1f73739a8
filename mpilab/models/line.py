"""The line through a table of times, as lab 00 asks for it."""

from mpilab.errors import InputError
from mpilab.models.hockney import fit_hockney


def alpha_beta(text):
    """(α in seconds, β in seconds a byte) of a table as osu_latency prints it.

    text   lines 'BYTES MICROSECONDS'; empty ones and those that begin with '#' don't count.

    Two lines give the line through both points, more the one of `fit_hockney`. Raises InputError
    for fewer than two lines, or one that isn't two numbers.
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
