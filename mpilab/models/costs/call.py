"""The argument of the cost formulas: one call of a collective."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Call:
    """One call, as the formulas see it.

    ranks     P, 2 or more.
    bytes     m, an array of floats: of a block, or of the whole message (see mpilab.models.costs).
    segment, fanout, radix   0: the algorithm's default.
    gamma     γ(P), or None: messages leave a rank one by one.
    own_defaults   segment 0 means our kernel's default; otherwise it means no segments, as in Open
                   MPI.
    """

    ranks: int
    bytes: np.ndarray
    segment: float = 0
    fanout: int = 0
    radix: int = 0
    gamma: Callable[[int], float] | None = None
    own_defaults: bool = True

    def at_once(self, receivers):
        """Cost of serving `receivers` receivers at the same time, in units of serving one.

        It is γ(receivers + 1), or their number if messages leave one by one.
        """
        return float(receivers) if self.gamma is None else float(self.gamma(receivers + 1))

    def cut(self, length, default=0):
        """(S, bytes of a full segment) if `length` bytes are cut into segments."""
        segment = self.segment or (default if self.own_defaults else 0)
        if not segment:
            return np.ones_like(length), length
        return np.maximum(1, np.ceil(length / segment)), np.minimum(length, segment)
