"""Cost of each algorithm, in closed form: T = a(P, m, segment) α + b(P, m, segment) β.

The formulas are in the module of each collective (mpilab.algorithms). m is in bytes: of a block in
allgather, gather and scatter; of the whole message in bcast, reduce and allreduce; unused in a
barrier.

A rank has one port that sends and one that receives, at the same time. Several children are served
at the same time, at a cost of γ(P), instead of one by one (mpilab.models.choice). Times of rounds
add up only if a rank really waits: a rank that has its message continues at once. For γ = None, and
where that makes no difference, the costs are those of `mpilab.models.predict_schedule`.

Open MPI's algorithms have the same formulas under Open MPI's names (`library="openmpi"`), but there
a segment of 0 bytes means no segments.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.algorithms import ALGORITHMS, OPENMPI_COSTS
from mpilab.algorithms.algorithm import (
    FIRST,
    PARTS,
    Coefficients,
    CostFunction,
    GammaFunction,
    ModelCall,
    Quantity,
)
from mpilab.errors import InputError
from mpilab.models.point_to_point import Model

LIBRARIES = ("ours", "openmpi")

# {collective: {algorithm: formula}}, under the names of our kernels, and of Open MPI 5.
FORMULAS: dict[str, dict[str, CostFunction]] = {
    collective: {name: algorithm.cost for name, algorithm in known.items()}
    for collective, known in ALGORITHMS.items()
}
OPENMPI_FORMULAS = OPENMPI_COSTS

# Algorithms whose cost depends on the number of segments.
_CUT = {
    (collective, name): algorithm.cut
    for collective, known in ALGORITHMS.items()
    for name, algorithm in known.items()
    if algorithm.cut not in ("", FIRST)
}


def formula_of(collective: str, algorithm: str, library: str = "ours") -> CostFunction:
    """The formula of `algorithm`; InputError, listing the known names, if there is none.

    For `library` "openmpi", Open MPI's names are looked up; for "ours", ours first, then Open
    MPI's.
    """
    if collective not in FORMULAS:
        raise InputError(
            f"collective {collective!r} has no costs; use one of {', '.join(FORMULAS)}."
        )
    if library not in LIBRARIES:
        raise InputError(f"library={library!r}; use one of {', '.join(LIBRARIES)}.")
    known = OPENMPI_FORMULAS[collective]
    if library == "ours":
        known = {**known, **FORMULAS[collective]}
    if algorithm not in known:
        raise InputError(
            f"{collective} {algorithm!r} has no cost formula; use one of {', '.join(known)}."
        )
    return known[algorithm]


def coefficients(
    collective: str,
    algorithm: str,
    ranks: int,
    bytes: ArrayLike,
    *,
    segment: float = 0,
    fanout: int = 0,
    radix: int = 0,
    gamma: GammaFunction | None = None,
    library: str = "ours",
) -> Coefficients:
    """(a, b): T = a α + b β, a in messages, b in bytes.

    collective, algorithm   names of our kernels, or of Open MPI's algorithms.
    ranks     P, 1 or more; a single rank sends nothing: (0, 0).
    bytes     m, a number or an array of them (then a and b are arrays).
    segment, fanout, radix   as in struct mpilab_tuning; 0: the algorithm's default.
    gamma     γ: a function of the number of ranks, e.g. a Gamma. None: messages leave a rank one by
              one, γ(P) = P - 1.
    library   "ours" or "openmpi": whose names and default segments these are.

    Raises InputError for an unknown name and for invalid numbers.
    """
    formula = formula_of(collective, algorithm, library)
    m = np.asarray(bytes, dtype=float)
    _check(collective, algorithm, ranks, m, segment, fanout, radix)
    a = b = np.zeros_like(m)
    if ranks > 1:
        own = library == "ours" and algorithm in FORMULAS[collective]
        call = ModelCall(int(ranks), m, segment, fanout, radix, gamma, own)
        a, b = (np.broadcast_to(np.asarray(part, float), m.shape) for part in formula(call))
    return (a, b) if m.ndim else (float(a), float(b))


def cost(
    collective: str,
    algorithm: str,
    ranks: int,
    bytes: ArrayLike,
    model: Model,
    *,
    segment: float = 0,
    fanout: int = 0,
    radix: int = 0,
    gamma: GammaFunction | None = None,
    library: str = "ours",
) -> Quantity:
    """Seconds that the algorithm takes, a α + b β, with the `coefficients` of these arguments.

    model   anything with an `alpha` (seconds) and a `beta` (seconds per byte): a Hockney or a
            LogGP.
    """
    a, b = coefficients(
        collective,
        algorithm,
        ranks,
        bytes,
        segment=segment,
        fanout=fanout,
        radix=radix,
        gamma=gamma,
        library=library,
    )
    return a * model.alpha + b * model.beta


def best_segment(
    collective: str,
    algorithm: str,
    ranks: int,
    bytes: float,
    model: Model,
    *,
    fanout: int = 0,
    radix: int = 0,
    gamma: GammaFunction | None = None,
) -> int:
    """The segment size in bytes that minimizes the cost of our algorithm.

    If the n bytes to be cut are divided into S segments, T = const + y α S + x β n / S (see
    mpilab.algorithms.trees), which is minimal for S = √(x n β / (y α)), rounded down or up,
    whichever is better. For the pipeline, x = P - 2 and y = 1: S = √((P-2) m β / α). If segments
    only add cost (x = 0), the answer is one segment: all n bytes.

    Source: Pjesivac-Grbovic et al. (2007), section 3, for the pipeline, which Thakur, Rabenseifner,
    Gropp (2005) do not cover; Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication:
    theory, practice, and experience", 2007.

    Raises InputError for an algorithm that has no segments, and if m, α or β is not positive.
    """
    if (collective, algorithm) not in _CUT:
        known = ", ".join(f"{one} {two}" for one, two in _CUT)
        raise InputError(
            f"{collective} {algorithm!r}: its cost has no best segment; those that have one: "
            f"{known}."
        )
    if not (bytes > 0 and model.alpha > 0 and model.beta > 0):
        raise InputError(
            f"best segment of {bytes} bytes with α = {model.alpha} s, β = {model.beta} s/B: "
            "all three must be positive."
        )
    length = bytes / PARTS[_CUT[collective, algorithm]](max(ranks, 1))

    def parts(number: int) -> Coefficients:
        return coefficients(
            collective,
            algorithm,
            ranks,
            bytes,
            segment=length / number,
            fanout=fanout,
            radix=radix,
            gamma=gamma,
        )

    (a1, b1), (a2, b2) = parts(1), parts(2)
    per_segment, filling = a2 - a1, 2 * (b1 - b2) / length
    if per_segment <= 0 or filling <= 0:
        return int(np.ceil(length))
    best = np.sqrt(filling * length * model.beta / (per_segment * model.alpha))
    number = min(
        (max(1, int(np.floor(best))), max(1, int(np.ceil(best)))),
        key=lambda count: per_segment * model.alpha * count + filling * model.beta * length / count,
    )
    return max(1, int(np.ceil(length / number)))


def _check(
    collective: str,
    algorithm: str,
    ranks: int,
    m: NDArray[np.float64],
    segment: float,
    fanout: int,
    radix: int,
) -> None:
    of = f"the cost of {collective} {algorithm}"
    if ranks < 1:
        raise InputError(f"ranks={ranks} for {of}: give 1 or more.")
    if not (np.isfinite(m) & (m >= 0)).all():
        raise InputError(f"bytes={m} for {of}: give 0 or more.")
    if algorithm == "two_proc" and ranks > 2:
        raise InputError(f"ranks={ranks} for {of}: it is for 2 ranks only.")
    for name, value, least in (("segment", segment, 0), ("fanout", fanout, 1), ("radix", radix, 2)):
        if value != 0 and value < least:
            raise InputError(
                f"{name}={value} for {of}: give {least} or more, or 0 for its default."
            )
