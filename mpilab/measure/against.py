"""Compare simulated with measured collectives, on a platform calibrated by two-rank messages.

Times on a cluster (rows of mpilab.measure.by_level) are compared with those on a simulated platform
with its α and β (mpilab.measure.level_costs). Three numbers describe the agreement: whether both
rank the kernels in the same order (rank correlation), simulated time divided by measured time
(median ratio), and the time lost by using the kernel that is fastest in the simulation (loss).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from mpilab.cases.case import Case, collective_of
from mpilab.errors import InputError, MpilabError
from mpilab.hosts import description
from mpilab.hosts.platforms import calibrated
from mpilab.kernels.simgrid import kernels
from mpilab.measure import by_level, level_costs
from mpilab.measure.dataset import Dataset
from mpilab.measure.timing import Timed
from mpilab.runners.result import DONE, Result
from mpilab.runners.simgrid import seconds_of, simulate

# simulated_ns: exact; spread: longest over shortest repetition; measured_s: median repetition.
TABLE = Dataset(
    "simulated-four-groups.csv",
    columns="cluster collective kernel order ranks bytes simulated_ns spread:f8 measured_s:f8",
    example="four-groups,bcast,bcast_node,rr,16,16384,2845120,1.25,3.021e-03",
)
ROW = TABLE.row
read, write = TABLE.read, TABLE.write
_GROUP = ["collective", "order", "bytes"]


def against(
    measured: NDArray[Any], distances: NDArray[Any], *, progress: bool = False
) -> NDArray[Any]:
    """Simulate what was measured, on the platform of the measured distances; array of ROW.

    measured    rows of mpilab.measure.by_level, of one cluster. Open MPI's own collectives are
                left out: SMPI does not have its algorithms.
    distances   rows of mpilab.measure.level_costs, of the same cluster.

    Raises InputError for rows of two clusters, MpilabError if a kernel fails.
    """
    names = {*measured["cluster"].tolist(), *distances["cluster"].tolist()}
    if len(names) != 1:
        raise InputError(
            f"measured times and distances of {', '.join(sorted(names)) or 'nowhere'}: they must "
            "be of the same cluster"
        )
    (cluster,) = names
    described = description.read(cluster).part(ppn=int(measured["ppn"].max()))
    costs, overhead = level_costs.costs(distances)
    platform = calibrated(described, costs, overhead=overhead)
    timed = [one for one in by_level.timed_of(measured) if not one.is_openmpis]
    rows = []
    with tqdm(total=len(timed), desc=f"simulated {cluster}", disable=not progress) as bar:
        for order in dict.fromkeys(one.order for one in timed):
            here = [one for one in timed if one.order == order]
            results = simulate(
                kernels(),
                "",
                list(map(_case, here)),
                platform,
                order=order,
                on_result=lambda _: bar.update(),
            )
            rows += [_row(cluster, *pair) for pair in zip(here, results, strict=True)]
    return TABLE.array(rows)


def _case(one: Timed) -> Case:
    """The case that was measured (mpilab.measure.timing): timed after one untimed call."""
    datatype, element = collective_of(one.collective).timed_element
    return Case(
        one.collective,
        len(one.levels.places),
        one.bytes // element,
        datatype,
        record=False,
        dump=False,
        warmup=1,
        function=one.kernel,
    )


def _row(cluster: str, one: Timed, result: Result) -> tuple:
    if result.outcome != DONE:
        raise MpilabError(
            f"{one.kernel} with {result.case.describe()} in a simulation: {result.outcome}: "
            f"{result.hang.describe() if result.hang else result.detail}"
        )
    nanoseconds = round(seconds_of(result) * 1e9)
    return (
        cluster,
        one.collective,
        one.kernel,
        one.order,
        result.case.ranks,
        one.bytes,
        nanoseconds,
        round(max(one.seconds) / min(one.seconds), 2),
        one.median,
    )


@dataclass(frozen=True)
class Agreement:
    """How well the simulated and measured times of some rows agree.

    points   number of rows.
    rho      Spearman's rank correlation: 1 if both give the same order; nan if undefined.
    ratio    median of simulated over measured time.
    loss     how much longer, in measured time, the kernel that is fastest in the simulation takes
             than the fastest one: 0 if they are the same. For several calls: the median.
    spread   variation of the measured times: longest over shortest repetition, median over the
             points.
    """

    points: int
    rho: float
    ratio: float
    loss: float
    spread: float


def agreement(rows: NDArray[Any]) -> Agreement:
    """The Agreement of rows of ROW; InputError if there are none."""
    if len(rows) == 0:
        raise InputError("no rows to compare; simulate what was measured first")
    simulated, measured = rows["simulated_ns"] / 1e9, rows["measured_s"]
    losses = []
    for call in calls(rows).values():
        chosen = call["measured_s"][call["simulated_ns"].argmin()]
        losses.append(chosen / call["measured_s"].min() - 1)
    return Agreement(
        len(rows),
        spearman(simulated, measured),
        float(np.median(simulated / measured)),
        float(np.median(losses)),
        float(np.median(rows["spread"])),
    )


def calls(rows: NDArray[Any]) -> dict[tuple[str, str, int], NDArray[Any]]:
    """{(collective, order, bytes): its rows, one per kernel}, in the order of the rows."""
    return {
        key: rows[rows[_GROUP] == np.array(key, rows[_GROUP].dtype)]
        for key in dict.fromkeys(rows[_GROUP].tolist())
    }


def spearman(a: Sequence[float] | NDArray[Any], b: Sequence[float] | NDArray[Any]) -> float:
    """Spearman's rank correlation of two arrays of the same length: Pearson's of their ranks, where
    equal values share the mean of their ranks. nan for fewer than two points or all-equal values.

    Source: Spearman (1904), "The proof and measurement of association between two things".
    """
    if len(a) != len(b):
        raise InputError(
            f"rank correlation of {len(a)} and {len(b)} values; give the same number of each"
        )
    a, b = (_ranks(values) - (len(values) + 1) / 2 for values in (a, b))
    scale = np.sqrt((a**2).sum() * (b**2).sum())
    return float((a * b).sum() / scale) if scale else float("nan")


def _ranks(values: Sequence[float] | NDArray[Any]) -> NDArray[np.float64]:
    """Ranks of values, 1 for the smallest; equal values get the mean of their ranks."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(sizes) - (sizes - 1) / 2)[group]


def as_text(rows: NDArray[Any]) -> str:
    """The Agreement of each collective and size, of each collective, and of all rows; as Markdown.

    The correlation of a size is the median over its orders. Each is within one call, so it does not
    benefit from the fact that more bytes take longer.
    """
    lines = [
        "| collective | bytes | points | ρ | simulated / measured | loss | spread |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for collective in dict.fromkeys(rows["collective"].tolist()):
        here = rows[rows["collective"] == collective]
        for size in dict.fromkeys(here["bytes"].tolist()):
            some = here[here["bytes"] == size]
            within = [
                spearman(call["simulated_ns"], call["measured_s"]) for call in calls(some).values()
            ]
            lines.append(_line(collective, f"{size:,}", agreement(some), float(np.median(within))))
        found = agreement(here)
        lines.append(_line(collective, "all", found, found.rho))
    found = agreement(rows)
    return "\n".join([*lines, _line("all", "all", found, found.rho)])


def by_call(rows: NDArray[Any]) -> str:
    """The Agreement of each call (collective, order and size), as Markdown."""
    lines = [
        "| collective | order | bytes | kernels | ρ | simulated / measured | loss | spread |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (collective, order, size), call in calls(rows).items():
        found = agreement(call)
        lines.append(_line(f"{collective} | {order}", f"{size:,}", found, found.rho))
    return "\n".join(lines)


def _line(name: str, size: str, found: Agreement, rho: float) -> str:
    correlation = "-" if np.isnan(rho) else f"{rho:.2f}"
    return (
        f"| {name} | {size} | {found.points} | {correlation} | {found.ratio:.2f} "
        f"| {found.loss:.0%} | {found.spread:.2f} |"
    )
