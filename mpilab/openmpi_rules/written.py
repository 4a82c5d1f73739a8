"""What `mpilab rules write` chooses from: sweeps, models that are fitted to them, or α and β."""

import numpy as np

from mpilab import amounts, sweeps
from mpilab.errors import InputError
from mpilab.models import Hockney
from mpilab.openmpi_rules.model import FAILS, MISREAD
from mpilab.openmpi_rules.points import fitted, from_models, from_table, joined
from mpilab.openmpi_rules.reading import parse
from mpilab.openmpi_rules.vocabulary import WITHOUT_SIZE, element_bytes
from mpilab.openmpi_rules.writing import as_text
from mpilab.sweeps.openmpi_traffic import PATTERNS
from mpilab.sweeps.sizes import sizes_of


def points(paths, *, collectives=None, measure="span_s", model_ranks=(), alpha=None, beta=None,
           sizes="1:1M"):  # fmt: skip
    """Points of each collective: an iterator.

    paths        CSV files of sweeps; those of the same collective count together
    model_ranks  numbers of ranks that models stand for: fitted to the sweeps, or of `alpha` and
                 `beta` ("20us", "1ns"), then at `sizes`. What was measured counts before them.

    Raises InputError where there is nothing to choose from.
    """
    model = _model(alpha, beta)
    if not paths and (model is None or not model_ranks or not collectives):
        raise InputError("nothing to choose from: name CSV files of mpilab sweep; or give "
                         "--collectives, --model-ranks, --alpha and --beta")  # fmt: skip
    if model is not None and not model_ranks:
        raise InputError("--alpha and --beta for how many ranks? Add --model-ranks, e.g. 64,1024")
    tables = [sweeps.read(path) for path in paths]
    table = np.concatenate([np.empty(0, sweeps.ROW), *tables])
    there = list(dict.fromkeys(table["collective"].tolist()))
    for name in collectives or there:
        if name not in PATTERNS:
            raise InputError(f"{name!r}: no such collective; take some of {', '.join(PATTERNS)}")
        if paths and name not in there:
            raise InputError(f"{name}: is in none of the sweeps, which have {', '.join(there)}")
        measured = from_table(table, name, measure) if paths else None
        predicted = None
        if model_ranks and model is not None:
            predicted = from_models(name, model_ranks, _sizes(name, sizes), model)
        elif model_ranks:
            predicted = fitted(table, measured, model_ranks, measure)
        found = [one for one in (measured, predicted) if one is not None]
        yield joined(*found) if len(found) == 2 else found[0]
    if not there and paths:
        raise InputError(f"{', '.join(map(str, paths))}: no rows; run the sweep first")


def _model(alpha, beta):
    if alpha is None and beta is None:
        return None
    if alpha is None or beta is None:
        raise InputError("--alpha and --beta go together, e.g. --alpha 20us --beta 1ns")
    return Hockney(amounts.read(alpha, amounts.TIME), amounts.read(beta, amounts.TIME))


def _sizes(collective, given):
    if collective in WITHOUT_SIZE:
        return (0,)
    element = element_bytes(collective)
    return [size for size in sizes_of(given)[0] if size % element == 0]


def basis(found):
    """'4 and 8 ranks measured, 64 ranks by models, 1 to 65536 bytes': what Points are about."""
    measured = [ranks for ranks in found.ranks if ranks not in found.by_models]
    parts = [
        f"{' and '.join(map(str, ranks))} ranks {how}"
        for ranks, how in ((measured, "measured"), (sorted(found.by_models), "by models"))
        if ranks
    ]
    sizes = sorted({size for _, size in found.seconds})
    return ", ".join(parts) + (f", {sizes[0]} to {sizes[-1]} bytes" if sizes[-1] else "")


def checked_text(rules, remark):
    """The text of rules, read back as Open MPI would: InputError where it says something else."""
    text = as_text(rules, remark)
    again = parse(text)
    bad = [one for one in again.remarks if one.kind in (FAILS, MISREAD)]
    if bad or {_key(rule) for rule in again.rules} != {_key(rule) for rule in rules}:
        raise InputError(f"these rules cannot be written: {bad[0].text if bad else 'they overlap'}")
    return text


def _key(rule):
    return rule.collective, rule.ranks, rule.bytes, rule.choice
