"""The points of a sweep table that models are fitted to: medians over repetitions."""

import numpy as np

from mpilab.errors import InputError

# What makes two rows of a sweep the same measurement, repeated.
VARIANT = ("library", "algorithm", "segment", "fanout", "radix")
SHAPE = ("ranks", "bytes")


def check_fields(table, fields):
    """InputError for a table that is empty or lacks one of `fields`."""
    missing = set(fields) - set(getattr(getattr(table, "dtype", None), "names", None) or ())
    if missing:
        raise InputError(
            f"the sweep table has no field {', '.join(sorted(missing))}; "
            "give a structured array as mpilab.sweeps.table.read returns it."
        )
    if len(table) == 0:
        raise InputError("the sweep table is empty; run the sweep first.")


def medians(table, keys, measure="span_s"):
    """{values of the fields `keys`: median of `measure`}, in the order of first appearance."""
    grouped = {}
    for key, value in zip(table[list(keys)].tolist(), table[measure].tolist(), strict=True):
        grouped.setdefault(key, []).append(value)
    return {key: float(np.median(values)) for key, values in grouped.items()}


def variants_of(table):
    """The different values of the fields VARIANT, in the order of first appearance."""
    return list(dict.fromkeys(table[list(VARIANT)].tolist()))


def rows_of(table, variant):
    """The rows of one variant: values of the fields VARIANT."""
    return table[np.all([table[f] == v for f, v in zip(VARIANT, variant, strict=True)], axis=0)]


def the_collective(table, collective=None):
    """The rows of one collective, and its name; InputError where the table leaves it open."""
    check_fields(table, ("collective",))
    names = list(dict.fromkeys(table["collective"].tolist()))
    if collective is None and len(names) > 1:
        raise InputError(
            f"the sweep table has {len(names)} collectives ({', '.join(names)}); "
            f"say which one, e.g. collective={names[0]!r}."
        )
    collective = collective or names[0]
    if collective not in names:
        raise InputError(
            f"collective={collective!r} is not in the sweep table, which has {', '.join(names)}."
        )
    return table[table["collective"] == collective], collective
