"""Rates and times with their units, as people write them: "200mbit" is 2e8 bits per second."""

import re
from decimal import Decimal

from mpilab.errors import InputError

# Decimal, so that "0.1us" is 1e-07 and not a neighbour of it. The largest unit first.
RATE = {"gbit": Decimal("1e9"), "mbit": Decimal("1e6"), "kbit": Decimal("1e3"), "bit": Decimal(1)}
TIME = {"s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9")}

_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)")


def read(text, units):
    """ "200 Mbit" -> 2e8, "50us" -> 5e-05: in bits per second, or in seconds.

    units   RATE or TIME. Raises InputError for what is no number with one of them.
    """
    found = _AMOUNT.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        raise InputError(
            f"{text!r} is not understood; write a number and one of {', '.join(units)}, e.g. "
            f'"{"200mbit" if units is RATE else "50us"}"'
        )
    return float(Decimal(found[1]) * units[found[2]])


def as_text(value, units):
    """What `read` reads as `value`, in the largest unit of which it has one: 2e8 -> "200mbit"."""
    exact = Decimal(repr(float(value)))
    unit = next((unit for unit, size in units.items() if exact >= size), list(units)[-1])
    return f"{(exact / units[unit]).normalize():f}{unit}"
