"""Numbers with as many digits as their errors allow."""

from math import floor, isfinite, log10


def with_error(value, error):
    """'87 ± 20' → '90 ± 20': a value and its standard error, with the error's first digit last.

    Without a known error (nan or 0), three digits of the value.
    """
    if not isfinite(error) or error <= 0 or not isfinite(value):
        return f"{value:.3g} ± {error:.1g}"
    place = floor(log10(error))
    if round(error, -place) >= 10 ** (place + 1):  # 0.096 is 0.1
        place += 1
    digits = max(-place, 0)
    return f"{round(value, -place):.{digits}f} ± {round(error, -place):.{digits}f}"
