"""Cost of each algorithm, in closed form: T = a(P, m, segment) α + b(P, m, segment) β.

One module for each collective, one function for each algorithm, named after the kernel. m is in
bytes: of a block in allgather, gather and scatter; of the whole message in bcast, reduce and
allreduce; unused in a barrier.

A rank has one port that sends and one that receives, at the same time. Serving several children at
the same time costs γ(P) instead of one by one (mpilab.models.choice). Times of rounds add up only
if a rank really waits: a rank that has its message continues at once. For γ = None, and if that
makes no difference, the costs are those of `mpilab.models.predict_schedule`.

Open MPI's algorithms have the same formulas under Open MPI's names (`library="openmpi"`), but there
a segment of 0 bytes means no segments.
"""

from types import FunctionType, ModuleType

import numpy as np

from mpilab.errors import InputError
from mpilab.models.costs import allgather, allreduce, barrier, bcast, gather, reduce, scatter
from mpilab.models.costs.call import Call

LIBRARIES = ("ours", "openmpi")


def _functions(module: ModuleType, without=()):
    return {
        name: value
        for name, value in vars(module).items()
        if isinstance(value, FunctionType)
        and value.__module__ == module.__name__
        and name not in without
    }


_MODULES = {
    "allgather": allgather,
    "bcast": bcast,
    "gather": gather,
    "scatter": scatter,
    "reduce": reduce,
    "allreduce": allreduce,
    "barrier": barrier,
}
_NOT_OURS = ("two_proc", "basic_linear")

# {collective: {algorithm: formula}}, under the names of our kernels.
FORMULAS = {name: _functions(module, _NOT_OURS) for name, module in _MODULES.items()}

# The same under the names of Open MPI 5 (`ompi_info --param coll tuned -l 9`). Left out, because
# they have no formula of their own: "ignore" or "default" (a choice among the others), and
# allreduce "nonoverlapping" (whatever reduce and bcast choose).
OPENMPI_FORMULAS = {
    "allgather": {
        "linear": allgather.nonblocking_gather_bcast,
        "bruck": allgather.bruck,
        "recursive_doubling": allgather.recursive_doubling,
        "ring": allgather.ring,
        "neighbor": allgather.neighbor_exchange,
        "two_proc": allgather.two_proc,
        # As many rounds and bytes as Bruck's. Source: Loch, Koslovski, "Sparbit: a new logarithmic
        # and data locality-aware MPI Allgather algorithm", CCGrid 2021.
        "sparbit": allgather.bruck,
    },
    "bcast": {
        "basic_linear": bcast.linear,
        "chain": bcast.chain,
        "pipeline": bcast.pipeline,
        "split_binary_tree": bcast.split_binary,
        "binary_tree": bcast.binary,
        "binomial": bcast.binomial,
        "knomial": bcast.knomial,
        "scatter_allgather": bcast.scatter_allgather,
        "scatter_allgather_ring": bcast.scatter_allgather_ring,
    },
    "gather": {
        "basic_linear": gather.linear,
        "binomial": gather.binomial,
        "linear_sync": gather.linear_sync,
    },
    "scatter": {
        "basic_linear": scatter.linear,
        "binomial": scatter.binomial,
        "linear_nb": scatter.linear_nb,
    },
    "reduce": {
        "linear": reduce.linear,
        "chain": reduce.chain,
        "pipeline": reduce.pipeline,
        "binary": reduce.binary,
        "binomial": reduce.binomial,
        "in-order_binary": reduce.in_order_binary,
        "rabenseifner": reduce.rabenseifner,
    },
    "allreduce": {
        "basic_linear": allreduce.basic_linear,
        "recursive_doubling": allreduce.recursive_doubling,
        "ring": allreduce.ring,
        "segmented_ring": allreduce.segmented_ring,
        "rabenseifner": allreduce.rabenseifner,
    },
    "barrier": {
        "linear": barrier.linear,
        "double_ring": barrier.double_ring,
        "recursive_doubling": barrier.recursive_doubling,
        "bruck": barrier.dissemination,
        "two_proc": barrier.two_proc,
        "tree": barrier.tree,
    },
}

# The part of the message that is cut into segments, for algorithms whose cost depends on S.
_CUT = {
    ("bcast", "chain"): lambda m, ranks: m,
    ("bcast", "pipeline"): lambda m, ranks: m,
    ("bcast", "binary"): lambda m, ranks: m,
    ("bcast", "binomial"): lambda m, ranks: m,
    ("bcast", "knomial"): lambda m, ranks: m,
    ("bcast", "split_binary"): lambda m, ranks: m / 2,
    ("reduce", "chain"): lambda m, ranks: m,
    ("reduce", "pipeline"): lambda m, ranks: m,
    ("reduce", "binary"): lambda m, ranks: m,
    ("reduce", "binomial"): lambda m, ranks: m,
    ("reduce", "in_order_binary"): lambda m, ranks: m,
    ("allreduce", "segmented_ring"): lambda m, ranks: m / ranks,
}


def formula_of(collective, algorithm, library="ours"):
    """The formula of `algorithm`; InputError, listing the known names, if there is none.

    For `library` "openmpi", Open MPI's names are looked up; for "ours", ours first, then Open
    MPI's.
    """
    if collective not in FORMULAS:
        raise InputError(
            f"collective {collective!r} has no costs; take one of {', '.join(FORMULAS)}."
        )
    if library not in LIBRARIES:
        raise InputError(f"library={library!r}; take one of {', '.join(LIBRARIES)}.")
    known = OPENMPI_FORMULAS[collective]
    if library == "ours":
        known = {**known, **FORMULAS[collective]}
    if algorithm not in known:
        raise InputError(
            f"{collective} {algorithm!r} has no cost formula; take one of {', '.join(known)}."
        )
    return known[algorithm]


def coefficients(
    collective, algorithm, ranks, bytes, *, segment=0, fanout=0, radix=0, gamma=None, library="ours"
):
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
        call = Call(int(ranks), m, segment, fanout, radix, gamma, own)
        a, b = (np.broadcast_to(np.asarray(part, float), m.shape) for part in formula(call))
    return (a, b) if m.ndim else (float(a), float(b))


def cost(
    collective,
    algorithm,
    ranks,
    bytes,
    model,
    *,
    segment=0,
    fanout=0,
    radix=0,
    gamma=None,
    library="ours",
):
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


def best_segment(collective, algorithm, ranks, bytes, model, *, fanout=0, radix=0, gamma=None):
    """The segment size in bytes that minimizes the cost of our algorithm.

    With S segments of the n bytes that are cut, T = const + y α S + x β n / S (see
    mpilab.models.costs.trees), which is minimal for S = √(x n β / (y α)), rounded down or up,
    whichever is better. For the pipeline, x = P - 2 and y = 1: S = √((P-2) m β / α). If segments
    only add cost (x = 0), the answer is one segment: all n bytes.

    Source: Pjesivac-Grbovic et al. (2007), section 3, for the pipeline, which Thakur, Rabenseifner,
    Gropp (2005) do not have; Chan, Heimlich, Purkayastha, van de Geijn, "Collective communication:
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
    length = _CUT[collective, algorithm](bytes, max(ranks, 1))

    def parts(number):
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


def _check(collective, algorithm, ranks, m, segment, fanout, radix):
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
