"""Time kernels on the hosts of a cluster, in several orders of the ranks: ours by level, flat ones,
and Open MPI's own with and without its hierarchical collectives (coll/han).

All kernels of one collective and one order run in one mpirun, those of a size in turn, so that
their ratios mean something.
"""

import numpy as np

from mpilab import promises
from mpilab.build import KERNELS, need
from mpilab.errors import MpilabError
from mpilab.expected import collective_of
from mpilab.harness import Case, compare
from mpilab.launch import run_cases
from mpilab.orders import order
from mpilab.places import Levels
from mpilab.result import DONE
from mpilab.timed import HAN, NO_HAN, Timed

LIMIT_S = 300.0


def kernels(collective):
    """Names of what is compared by default: our kernels, and Open MPI's own twice."""
    ours = [name for name in promises.kernels_of(collective) if not name.endswith("_remapped")]
    return [*ours, f"{collective}_{HAN}", f"{collective}_{NO_HAN}"]


def time_on(hosts, collective, *, names=None, sizes=(16384,), orders=("rr",), ranks=None, seed=1,
            repetitions=7, warmup=1, budget=0, library=None, progress=True,
            limit=LIMIT_S):  # fmt: skip
    """Time kernels on EmulatedHosts that are up, or on the nodes of an Allocation; list of Timed.

    names    kernels as in Timed; by default all of `kernels(collective)`.
    sizes    bytes; reductions add up ints, so multiples of 4.
    orders, seed   see mpilab.orders.order; or orders of one's own, {name: the host of each rank}.
    ranks    how many; by default all slots.
    budget   bytes of others' data that a rank may hold (alltoallv), 0 is the default.
    library  the shared object with the kernels; the kit's without.
    limit    seconds that one case, with all its repetitions, may take.

    Each kernel is first run once with the smallest size, and its result compared. Raises
    MpilabError where that is wrong, or a kernel does not come to its end or returns an error.
    """
    from tqdm.auto import tqdm

    names = kernels(collective) if names is None else list(names)
    found = []
    with tqdm(total=len(names) * len(sizes) * len(orders), desc=f"{collective} on {hosts.name}",
              disable=not progress) as bar:  # fmt: skip
        for one in orders:
            if isinstance(orders, dict):
                placed = list(orders[one])[:ranks]
            else:
                placed = order(hosts.description, one, ranks=ranks, seed=seed)
            levels = Levels(hosts.description.places(placed))
            checks = [
                _case(collective, name, len(placed), min(sizes), budget, dump=True)
                for name in names
            ]
            cases = [
                _case(collective, name, len(placed), size, budget, repetitions=repetitions,
                      warmup=warmup)
                for size in sizes for name in names
            ]  # fmt: skip
            results = run_cases(
                library or need(KERNELS), "", checks + cases, limit=limit, hosts=hosts,
                names=placed, guarded=[],
                on_result=lambda result: bar.update(not result.case.dump),
            )  # fmt: skip
            for result, name in zip(results, names, strict=False):
                _check(result, name)
            found += [
                _timed(result, name, one, levels)
                for result, name in zip(results[len(names) :], names * len(sizes), strict=True)
            ]
    return found


def _case(collective, name, ranks, size, budget, **more):
    element = 4 if collective_of(collective).reduces else 1
    without = f"{collective}_{NO_HAN}"
    return Case(
        collective, ranks, size // element, "int" if element == 4 else "byte", record=False,
        budget=budget, han=name != without,
        function=f"{collective}_{HAN}" if name == without else name, **{"dump": False, **more},
    )  # fmt: skip


def _need_done(result, name):
    if result.outcome != DONE or any(output.returned for output in result.outputs):
        why = result.hang.describe() if result.hang else result.detail or "it returned an error"
        raise MpilabError(f"{name} with {result.case.describe()}: {result.outcome}: {why}")


def _check(result, name):
    _need_done(result, name)
    wrong = compare(result.case, result.outputs)
    if wrong:
        raise MpilabError(
            f"{name} with {result.case.describe()}: its result is wrong: {wrong[0].describe()}"
        )


def _timed(result, name, order_name, levels):
    _need_done(result, name)
    spans = np.stack([output.spans_ns for output in result.outputs])
    seconds = (spans[:, :, 1].max(axis=0) - spans[:, :, 0].min(axis=0)) / 1e9
    return Timed(result.case.collective, name, order_name, levels, result.case.block_bytes,
                 tuple(map(float, seconds)))  # fmt: skip
