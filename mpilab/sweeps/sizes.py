"""Message sizes and other numbers as a person writes them: '64', '8K', '1:1M'."""

import re

from mpilab.errors import InputError

_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_BYTES = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE | re.ASCII)


def bytes_of(text):
    """Bytes that '512', '8K' or '1MiB' stand for (K is 1024); InputError for anything else."""
    match = _BYTES.fullmatch(str(text).strip())
    if match is None:
        raise InputError(f"{str(text)!r} is no size; write bytes, e.g. 512, 8K or 1M")
    return int(match[1]) * _UNITS[match[2].upper()]


def sizes_of(given):
    """(sizes in bytes, rising; was a range given?) of '1:1M', '1,100,8K' or a list of numbers.

    A range is all powers of two times its first size, up to its last one. Sizes are 1 or more.
    """
    words = given.split(",") if isinstance(given, str) else list(given)
    sizes, is_range = set(), False
    for word in words:
        first, colon, last = str(word).partition(":")
        size = bytes_of(first)
        if size < 1:
            raise InputError(f"size {str(word)!r}: has to be 1 or more bytes")
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


def ranks_of(given):
    """Numbers of ranks, rising, of '2,4,8' or a list; InputError for what is not 1 or more."""
    words = given.split(",") if isinstance(given, str) else list(given)
    numbers = [str(word).strip() for word in words]
    bad = [word for word in numbers if not (word.isascii() and word.isdigit() and int(word) > 0)]
    if bad or not numbers:
        raise InputError(
            f"ranks {', '.join(bad) or 'missing'}: write numbers from 1 on, e.g. 2,4,8"
        )
    return tuple(sorted({int(word) for word in numbers}))
