"""Time kernels on the hosts of a cluster, in several rank orders."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from mpilab.cases.case import Case, collective_of
from mpilab.cases.output import Output, compare
from mpilab.cluster.engines import asleep
from mpilab.errors import MpilabError
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.hosts.orders import order
from mpilab.hosts.places import Levels
from mpilab.hosts.slurm import Allocation
from mpilab.kernels.build import KERNELS, need
from mpilab.models import declared
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE, Result

# Open MPI's choice, with coll/han and without.
HAN, NO_HAN = "openmpi", "openmpi_no_han"
HOSTS_LIMIT_S = 300.0

# Results, the input of tables, rules and figures.


@dataclass(frozen=True)
class Timed:
    """The times of one kernel, in one rank order, with messages of one size.

    kernel   its name; COLLECTIVE_openmpi is Open MPI's choice, COLLECTIVE_openmpi_no_han its choice
             without coll/han.
    order    of the ranks (mpilab.hosts.orders); levels: where they are.
    bytes    of a block, or of the whole message in a bcast, reduce or allreduce.
    seconds  of each repetition, from the first rank's entry to the last rank's exit.
    """

    collective: str
    kernel: str
    order: str
    levels: Levels
    bytes: int
    seconds: tuple[float, ...]

    @property
    def is_openmpis(self) -> bool:
        """Is the kernel one of Open MPI's?"""
        return self.kernel.endswith((f"_{HAN}", f"_{NO_HAN}"))

    @property
    def median(self) -> float:
        """The median of the repetitions, in seconds."""
        return float(np.median(self.seconds))


def best(timed: Iterable[Timed], wanted: Callable[[Timed], bool] = lambda one: True) -> Timed:
    """The Timed with the smallest median among those for which `wanted(one)`."""
    return min(filter(wanted, timed), key=lambda one: one.median)


def speed_ups(timed: Sequence[Timed], other: Callable[[Timed], bool]) -> list[float]:
    """Speedup of our best kernel over the best of those for which `other(one)`: one value for each
    repetition of `timed`, all Timed of one collective, order and size."""
    ours, against = best(timed, lambda one: not one.is_openmpis), best(timed, other)
    return [b / a for a, b in zip(ours.seconds, against.seconds, strict=True)]


def spans_s(outputs: Sequence[Output]) -> NDArray[np.float64]:
    """Seconds of each repetition, from the first rank's entry to the last rank's exit: array.

    outputs   of the harness, one for each rank (mpilab.runners.result.Result.outputs).
    """
    spans = np.stack([output.spans_ns for output in outputs])
    return (spans[:, :, 1].max(axis=0) - spans[:, :, 0].min(axis=0)) / 1e9


# Measurement: our kernels by level, flat ones, and Open MPI's with and without its hierarchical
# collectives (coll/han). All kernels of one collective and order run in one mpirun, and those of
# one size in succession, so that their ratios are meaningful.


def kernels(collective: str) -> list[str]:
    """The kernels compared by default: ours, and Open MPI's with and without coll/han."""
    ours = [name for name in declared.kernels_of(collective) if not name.endswith("_remapped")]
    return [*ours, f"{collective}_{HAN}", f"{collective}_{NO_HAN}"]


def time_on(
    hosts: EmulatedHosts | Allocation,
    collective: str,
    *,
    names: Sequence[str] | None = None,
    sizes: Sequence[int] = (16384,),
    orders: Sequence[str] | Mapping[str, Sequence[str]] = ("rr",),
    ranks: int | None = None,
    seed: int = 1,
    repetitions: int = 7,
    warmup: int = 1,
    budget: int = 0,
    library: str | Path | None = None,
    progress: bool = True,
    limit: float = HOSTS_LIMIT_S,
) -> list[Timed]:
    """Time kernels on running EmulatedHosts, or on the nodes of an Allocation; list of Timed.

    names    kernels as in Timed; default: all of `kernels(collective)`.
    sizes    bytes; multiples of 4 for reductions, which use ints.
    orders, seed   see mpilab.hosts.orders.order; or custom orders, {name: the host of each rank}.
    ranks    how many; default: all slots.
    budget   bytes of other ranks' data that a rank may hold (alltoallv); 0 is the default.
    library  the shared object with the kernels; default: the kit's.
    limit    seconds for one case with all its repetitions.

    Each kernel first runs once with the smallest size, and its result is checked. Raises
    MpilabError if the result is wrong, or a kernel does not complete or returns an error;
    ClusterError if a notebook's ranks compute meanwhile (mpilab.cluster.engines.asleep).
    """
    names = kernels(collective) if names is None else list(names)
    found = []
    with tqdm(
        total=len(names) * len(sizes) * len(orders),
        desc=f"{collective} on {hosts.name}",
        disable=not progress,
    ) as bar:
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
                _case(
                    collective,
                    name,
                    len(placed),
                    size,
                    budget,
                    repetitions=repetitions,
                    warmup=warmup,
                )
                for size in sizes
                for name in names
            ]
            with asleep():
                results = run_cases(
                    library or need(KERNELS),
                    "",
                    checks + cases,
                    limit=limit,
                    hosts=hosts,
                    names=placed,
                    guarded=[],
                    on_result=lambda result: bar.update(not result.case.dump),
                )
            for result, name in zip(results, names, strict=False):
                _check(result, name)
            found += [
                _timed(result, name, one, levels)
                for result, name in zip(results[len(names) :], names * len(sizes), strict=True)
            ]
    return found


def _case(collective: str, name: str, ranks: int, size: int, budget: int, **more: Any) -> Case:
    datatype, element = collective_of(collective).timed_element
    without = f"{collective}_{NO_HAN}"
    return Case(
        collective,
        ranks,
        size // element,
        datatype,
        record=False,
        budget=budget,
        han=name != without,
        function=f"{collective}_{HAN}" if name == without else name,
        **{"dump": False, **more},
    )


def _need_done(result: Result, name: str) -> None:
    if result.outcome != DONE or any(output.returned for output in result.outputs):
        why = result.hang.describe() if result.hang else result.detail or "it returned an error"
        raise MpilabError(f"{name} with {result.case.describe()}: {result.outcome}: {why}")


def _check(result: Result, name: str) -> None:
    _need_done(result, name)
    wrong = compare(result.case, result.outputs)
    if wrong:
        raise MpilabError(
            f"{name} with {result.case.describe()}: its result is wrong: {wrong[0].describe()}"
        )


def _timed(result: Result, name: str, order_name: str, levels: Levels) -> Timed:
    _need_done(result, name)
    return Timed(
        result.case.collective,
        name,
        order_name,
        levels,
        result.case.block_bytes,
        tuple(spans_s(result.outputs).tolist()),
    )
