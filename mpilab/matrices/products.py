"""The product of two matrix files by numpy, and how far from it another right one may be."""

import numpy as np

from mpilab.errors import InputError
from mpilab.matrices import files

UNIT_ROUNDOFF = 2.0**-53


def operands(a, b):
    """The matrices of two files that can be multiplied; InputError where they cannot."""
    left, right = files.size(a), files.size(b)
    if left[1] != right[0]:
        raise InputError(
            f"{a} is {left[0]} x {left[1]} and {b} is {right[0]} x {right[1]}: the columns of the "
            f"first have to be as many as the rows of the second ({left[1]} and {right[0]})"
        )
    return files.read(a), files.read(b)


def product(a, b, c, *, text=False):
    """Write the product of the files `a` and `b`, as numpy computes it, into the file `c`."""
    left, right = operands(a, b)
    with np.errstate(all="ignore"):  # infinite elements have products, too
        files.write(c, left @ right, text=text)


def error_bound(left, right):
    """How far two right products of these matrices may be apart, for each element: float64 [n, m].

    Each of them is off by at most k u |A||B|, to first order, with k terms in a sum and u = 2^-53
    (Higham 2002, "Accuracy and stability of numerical algorithms", 2nd ed., section 3.5). What
    Cannon's drops (src_c/cannon/sums.c) is far below it, unless an element is far below the largest
    of its row of A times the largest of its column of B: that is the second term.
    """
    inner = left.shape[1]
    log2 = max(2, (inner - 1).bit_length())
    dropped = np.abs(left).max(axis=1)[:, None] * np.abs(right).max(axis=0)[None, :]
    return (2 * (inner + 1) * UNIT_ROUNDOFF * (np.abs(left) @ np.abs(right))
            + 2.0 ** (3 * log2 - 108) * dropped)  # fmt: skip
