"""Sizes, rates and times with units: "8K" is 8192 bytes, "200mbit" is 2e8 bits per second."""

import argparse
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal

from mpilab.errors import InputError

# Message sizes and numbers of ranks: '64', '8K', '1:1M'.

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_BYTES = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE | re.ASCII)

# Decimal, so that "0.1us" is exactly 1e-07. Largest unit first.
RATE = {"gbit": Decimal("1e9"), "mbit": Decimal("1e6"), "kbit": Decimal("1e3"), "bit": Decimal(1)}
TIME = {"s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "ns": Decimal("1e-9")}

# More than anything here runs, simulates or models; a typo such as 1-100000000 must not fill the
# memory.
MOST_RANKS = 1 << 20
# "4", "1-8".
_RANKS = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")
_AMOUNT = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([a-z]+)")


def bytes_of(text: object) -> int:
    """The number of bytes in '512', '8K' or '1MiB' (K is 1024); InputError for anything else."""
    match = _BYTES.fullmatch(str(text).strip())
    if match is None:
        raise InputError(f"{str(text)!r} is not a size; write bytes, e.g. 512, 8K or 1M")
    return int(match[1]) * _UNITS[match[2].upper()]


def sizes_of(given: str | Iterable[object]) -> tuple[tuple[int, ...], bool]:
    """(ascending sizes in bytes, True if a range was given) from '1:1M', '1,100,8K' or a list.

    A range contains the first size times all powers of two, up to the last. Sizes are 1 or more.
    """
    words = str(given).split(",") if isinstance(given, (str, int)) else list(given)
    sizes, is_range = set(), False
    for word in words:
        first, colon, last = str(word).partition(":")
        size = bytes_of(first)
        if size < 1:
            raise InputError(f"size {str(word)!r}: must be 1 or more bytes")
        if not colon:
            sizes.add(size)
            continue
        is_range, end = True, bytes_of(last)
        if end < size:
            raise InputError(f"sizes {str(word)!r}: the first is above the last; swap them")
        while size <= end:
            sizes.add(size)
            size *= 2
    if not sizes:
        raise InputError("no sizes: write e.g. 1:1M, or 1K,64K")
    return tuple(sorted(sizes)), is_range


def ranks_of(given: str | int | Iterable[object]) -> tuple[int, ...]:
    """Numbers of ranks, ascending, from '2,4,8', '1-8', a list or a number; InputError if any is
    below 1 or above MOST_RANKS."""
    if isinstance(given, int):
        given = [given]
    words = given.split(",") if isinstance(given, str) else list(given)
    ranges = {word: _RANKS.fullmatch(word) for word in (str(word).strip() for word in words)}
    bad = [
        word
        for word, found in ranges.items()
        if found is None or not 0 < int(found[1]) <= int(found[2] or found[1]) <= MOST_RANKS
    ]
    if bad or not ranges:
        raise InputError(
            f"ranks {', '.join(bad) or 'missing'}: write numbers of 1 or more, up to {MOST_RANKS}, "
            "e.g. 2,4,8 or 1-8"
        )
    read = [(int(found[1]), int(found[2] or found[1])) for found in ranges.values() if found]
    return tuple(sorted({number for first, last in read for number in range(first, last + 1)}))


def read(text: object, units: Mapping[str, Decimal]) -> float:
    """ "200 Mbit" -> 2e8, "50us" -> 5e-05: in bits per second, or in seconds.

    units   RATE or TIME. Raises InputError for anything but a number with one of these units.
    """
    found = _AMOUNT.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if found is None or found[2] not in units:
        raise InputError(
            f"{text!r} is not understood; write a number and one of {', '.join(units)}, e.g. "
            f'"{"200mbit" if units is RATE else "50us"}"'
        )
    return float(Decimal(found[1]) * units[found[2]])


def as_text(value: float, units: Mapping[str, Decimal]) -> str:
    """The text that `read` reads as `value`, in the largest unit that fits: 2e8 -> "200mbit"."""
    exact = Decimal(repr(float(value)))
    unit = next((unit for unit, size in units.items() if exact >= size), list(units)[-1])
    return f"{(exact / units[unit]).normalize():f}{unit}"


def byte_size(byte_count: float) -> str:
    """'512 B', '4 KiB', '1 MiB': the format of sizes in every figure."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if byte_count >= factor:
            return f"{byte_count / factor:.4g} {unit}"
    return f"{byte_count:.4g} B"


def duration(seconds: float) -> str:
    """'3.2 µs', '1.5 s': the format of times in every text alternative."""
    for factor, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= factor:
            return f"{seconds / factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def plural(number: int, noun: str) -> str:
    """'1 message', '2,000 messages'."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# Types of arguments (argparse).


def positive(text: str) -> int:
    """An integer of 1 or more."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: must be 1 or more")
    return number


def size(text: str) -> int:
    """A size in bytes or elements: 7, 64K, 1M."""
    try:
        return bytes_of(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def seconds(text: str) -> float:
    """A time in seconds, more than 0."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r}: must be a number of seconds, e.g. 60")
    return number
