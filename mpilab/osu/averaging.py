"""What OMB's averaging makes of an operation, beside the time that it truly takes."""

from dataclasses import dataclass

import numpy as np

from mpilab.errors import InputError


@dataclass(frozen=True)
class Averaged:
    """One measurement in both ways; all in microseconds.

    avg_us, min_us, max_us   OMB's: the mean, the least and the largest, over the ranks, of each
                             rank's mean over the repetitions (MPI_Reduce of each rank's own mean).
    span_us                  the mean over the repetitions of last exit − first entry.
    """

    avg_us: float
    min_us: float
    max_us: float
    span_us: float

    @property
    def ratio(self):
        """How many times as long as OMB's mean the operation takes."""
        return self.span_us / self.avg_us


def both_ways(spans_ns):
    """OMB's averages and the true span of one collective, as Averaged.

    spans_ns   array [ranks, repetitions, 2] of nanoseconds on one clock: when each rank entered
               and left; for a list of harness outputs np.stack([o.spans_ns for o in outputs]).

    Raises InputError for an array of another shape or an empty one.
    """
    spans = np.asarray(spans_ns)
    if spans.ndim != 3 or spans.shape[2] != 2 or 0 in spans.shape:
        raise InputError(f"spans_ns: an array {spans.shape}; give [ranks, repetitions, 2], the "
                         "entry and the exit of each call in nanoseconds")  # fmt: skip
    entry, leave = spans[:, :, 0], spans[:, :, 1]
    means = (leave - entry).mean(axis=1) / 1e3
    span = (leave.max(axis=0) - entry.min(axis=0)).mean() / 1e3
    return Averaged(float(means.mean()), float(means.min()), float(means.max()), float(span))
