"""What formulas for the requests of read kernels are made of (mpilab.formula).

It is computed from the numpy arrays of mpilab.matrices.distribution, and from nothing that a kernel
says of itself.
"""

from mpilab.matrices.distribution import ELEMENT_BYTES


def names(about, aggregators):
    """The values of the names in a formula for a matrix of this Distribution.

    aggregators   ranks that read in a two-phase read; 0, or more than there are, is all.

    owners are the ranks that have anything; spans the bytes from the first to the last of each
    rank's part, in order of the ranks; shares those of each aggregator's domain.
    """
    number = min(aggregators or about.ranks, about.ranks)
    return {
        **{name: getattr(about, name) for name in about.__dataclass_fields__},
        "N": about.bytes, "A": number,
        "owners": sum(about.elements_of(rank) > 0 for rank in range(about.ranks)),
        "part_rows": len(about.rows_of(0)), "part_columns": len(about.columns_of(0)),
        "spans": tuple(_span(about, rank) for rank in range(about.ranks)),
        "shares": _shares(about.rows * about.columns, number),
    }  # fmt: skip


def whole_elements(buffer):
    """F, for a buffer of so many bytes: the most that it holds in whole elements, at least one."""
    return max(1, buffer // ELEMENT_BYTES) * ELEMENT_BYTES


def _span(about, rank):
    rows, columns = about.rows_of(rank), about.columns_of(rank)
    if not len(rows) or not len(columns):
        return 0
    first = int(rows[0]) * about.columns + int(columns[0])
    last = int(rows[-1]) * about.columns + int(columns[-1])
    return (last - first + 1) * ELEMENT_BYTES


def _shares(elements, aggregators):
    """Bytes of each domain, where `elements` elements are cut as evenly as can be."""
    least, left = divmod(elements, aggregators)
    return tuple((least + (number < left)) * ELEMENT_BYTES for number in range(aggregators))
