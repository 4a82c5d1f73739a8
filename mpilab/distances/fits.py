"""What a message costs at each distance: a model fitted to a table of mpilab.distances.measure."""

import numpy as np

from mpilab.distances.measure import QUANTITIES, ROW
from mpilab.errors import InputError
from mpilab.models.hockney import fit_hockney
from mpilab.models.logp import fit_loggp, fit_logp

MODELS = ("hockney", "logp", "loggp")


def fit_distances(table, model="hockney"):
    """{distance: Hockney, LogP or LogGP} of a table of ROW.

    model   "hockney", "logp" or "loggp".

    Lines (Hockney's, and those of LogGP) are put through the medians of the repetitions at each
    size; their standard errors say how far these are from a line, which is more than noise where a
    larger message takes another protocol. LogP's numbers are medians over repetitions.

    Raises InputError for another name, and for a table without the rows that the model needs.
    """
    if model not in MODELS:
        raise InputError(f"model={model!r}; take one of {', '.join(MODELS)}.")
    missing = set(ROW.names) - set(table.dtype.names or ())
    if missing or len(table) == 0:
        raise InputError(
            "the table of distances is empty or no such table; give what "
            "mpilab.distances.measure() returns."
        )
    return {
        name: _fit(table[table["distance"] == name], name, model)
        for name in dict.fromkeys(table["distance"].tolist())
    }


def _fit(rows, name, model):
    quantities = QUANTITIES[:1] if model == "hockney" else QUANTITIES
    for quantity in quantities:
        if not (rows["quantity"] == quantity).any():
            raise InputError(
                f"distance {name!r} has no rows of {quantity}, which {model} needs; measure it."
            )
    if model == "hockney":
        return fit_hockney(*_medians(rows, "one_way"))
    if model == "logp":
        return fit_logp(*(_all(rows, quantity) for quantity in QUANTITIES))
    way, sending, receiving, gap = QUANTITIES
    return fit_loggp(
        _medians(rows, way), _all(rows, sending), _all(rows, receiving), _medians(rows, gap)
    )


def _all(rows, quantity):
    chosen = rows[rows["quantity"] == quantity]
    return chosen["bytes"], chosen["seconds"]


def _medians(rows, quantity):
    sizes, seconds = _all(rows, quantity)
    different = np.unique(sizes)
    return different, np.array([np.median(seconds[sizes == size]) for size in different])
