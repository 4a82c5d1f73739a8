"""Measure the cost of simulation by number of ranks: the table of docs/scale.md.

    python -m mpilab.measure.scale data/scale.csv [--ranks 16,64] [--kernels bcast_binomial] …

Each row is one smpirun of a kernel on a fat tree with 8 ranks per host: an untimed call, which
builds topologies, and a timed one, not recorded. Each row is written as soon as it is measured and
replaces the old one for the same kernel and ranks; other rows stay.

A run is skipped if the growth of the kernel's rows so far predicts too much time or memory, and
stopped if it exceeds a limit. Its row says why.
"""

import resource
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from math import log
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray
from tqdm import tqdm

from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import Case, collective_of
from mpilab.errors import InputError
from mpilab.hosts import orders
from mpilab.hosts.platforms import platform
from mpilab.kernels.simgrid import kernels
from mpilab.measure import against, level_costs
from mpilab.measure.dataset import Dataset, stamp, stamps_of
from mpilab.runners.result import DONE, TIME_OUT
from mpilab.runners.simgrid import MOST_RANKS, Memory, Simulation, seconds_of
from mpilab.util.processes import processor_seconds
from mpilab.util.text import update
from mpilab.util.units import byte_size, ranks_of, size

RANKS = (16, 64, 256, 1024, 4096)
RANKS_OF_A_HOST = 8
# Bytes of the message of a bcast, reduce or allreduce, otherwise of a block.
KERNELS = {
    "barrier_dissemination": 0,
    "gather_binomial": 64,
    "reduce_binomial": 64 << 10,
    "bcast_binomial": 64 << 10,
    "bcast_node_group": 64 << 10,
    "bcast_pipelined": 64 << 10,
    "allgather_bruck": 64,
    "bcast_scatter_allgather_ring": 64 << 10,
    "allreduce_ring": 64 << 10,
    "alltoallv_leaders": 16,
}
LIMIT_S = 60.0
# Share of the initially free memory that simulations may use, since the machine may be shared.
SHARE_OF_MEMORY = 0.7
UNKNOWN = -1
# (Title of a column, field of a row): what grows with the ranks. Wall time depends on other load.
GROWING = (
    ("Processor time", "cpu_s"),
    ("Memory", "peak_bytes"),
    ("Messages", "messages"),
    ("Simulated time", "simulated_ns"),
)
OVERALL_FROM = 256  # ranks; with fewer, starting smpirun is most of a run
# messages: of one call, as declared in the kernel's header; peak_bytes (resident) and cpu_s
# (processor time): of all smpirun processes; why: the reason if not measured, when numbers are
# UNKNOWN and times nan.
TABLE = Dataset(
    "scale.csv",
    columns=(
        "date machine kernel platform:U40 ranks bytes messages:i8 simulated_ns peak_bytes:i8 "
        "why:U200 cpu_s:f8 wall_s:f8"
    ),
    example=(
        "2026-11-21,a machine,bcast_binomial,fat-tree-2x8,16,65536,15,27310,41943040,,0.05,5.2e-02"
    ),
    program="mpilab.measure.scale",
)
ROW = TABLE.row
read = TABLE.read


def measure(
    ranks: Sequence[int] = RANKS,
    names: Sequence[str] = tuple(KERNELS),
    *,
    limit: float = LIMIT_S,
    memory: int | None = None,
    before: Iterable[tuple] = (),
    on_row: Callable[[tuple], None] | None = None,
    progress: bool = False,
) -> NDArray[Any]:
    """Simulate kernels on each number of `ranks`, in ascending order; array of ROW.

    names     of KERNELS.
    limit     seconds of wall time for one simulation.
    memory    bytes for one simulation; default: SHARE_OF_MEMORY of the free memory.
    before    rows measured earlier, which also count for the growth.
    on_row    called with each row, a tuple, as soon as it is measured.

    Raises InputError for other names, and for ranks that do not fill hosts or are too many to
    simulate.
    """
    _check(ranks, names)
    if memory is None:
        memory = int(SHARE_OF_MEMORY * psutil.virtual_memory().available)
    about = stamp()
    kernels()  # build before timing
    known = list(map(tuple, before))
    rows = []
    todo = [(number, name) for number in sorted(ranks) for name in names]
    with tqdm(todo, disable=not progress, unit="run") as bar:
        for number, name in bar:
            bar.set_postfix_str(f"{name} on {number} ranks")
            row = (*about, *_measured(name, number, known, limit, memory))
            known = [one for one in known if _of(one) != _of(row)] + [row]
            rows.append(row)
            if on_row:
                on_row(row)
    return TABLE.array(rows)


def _check(ranks: Iterable[int], names: Iterable[str]) -> None:
    for name in names:
        if name not in KERNELS:
            raise InputError(f"kernel {name!r}: use some of {', '.join(KERNELS)}")
    for number in ranks:
        if not RANKS_OF_A_HOST <= number <= MOST_RANKS or number % RANKS_OF_A_HOST:
            raise InputError(
                f"ranks={number}: hosts have {RANKS_OF_A_HOST} ranks; use a multiple of that, at "
                f"most {MOST_RANKS}"
            )


def _of(row: tuple) -> tuple[str, int]:
    return row[TABLE.names.index("kernel")], row[TABLE.names.index("ranks")]


def _measured(name: str, ranks: int, known: list[tuple], limit: float, memory: int) -> tuple:
    """A row without its date and machine."""
    where = platform(f"fat-tree-{ranks // RANKS_OF_A_HOST}x{RANKS_OF_A_HOST}")
    hosts = tuple(orders.order(where.description, "seq", ranks=ranks))
    case = _case(name, ranks)
    placed = replace(case, places=where.description.places(hosts))
    begins = name, where.name, ranks, KERNELS[name], cost_of(name).at(placed)[1]
    why = _too_much(TABLE.array(known), name, ranks, limit, memory)
    if why:
        return (*begins, UNKNOWN, UNKNOWN, why, np.nan, np.nan)
    spent = processor_seconds(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory(prefix="mpilab-scale-") as scratch:
        began = monotonic()
        run = Simulation(kernels(), name, {0: case}, where, hosts, scratch, None)
        with (
            Memory(run.process.pid, memory) as used,
            closing(run.results(limit=limit, standstill=limit)) as came,
        ):
            _, result = next(came)
        taken = monotonic() - began
    if used.exceeded:
        why = f"ended at {byte_size(used.peak)} of memory; {byte_size(memory)} were available"
    elif result.outcome == TIME_OUT:
        why = f"ended after {limit:g} s"
    elif result.outcome != DONE:
        why = f"{result.outcome}: {' '.join(result.detail.split())}"[:200]
    if why:
        return (*begins, UNKNOWN, UNKNOWN, why, np.nan, np.nan)
    spent = round(processor_seconds(resource.RUSAGE_CHILDREN) - spent, 3)
    return (*begins, round(seconds_of(result) * 1e9), used.peak, "", spent, taken)


def _case(name: str, ranks: int) -> Case:
    collective = name.partition("_")[0]
    datatype, element = collective_of(collective).timed_element
    return Case(
        collective,
        ranks,
        KERNELS[name] // element,
        datatype,
        record=False,
        dump=False,
        warmup=1,
    )


def _too_much(known: NDArray[Any], name: str, ranks: int, limit: float, memory: int) -> str:
    """Why to skip a simulation, by the growth between the kernel's last two rows; "" to run it.

    Growth is assumed to be at least linear and at most P^2.5, because the first rows are too short
    to show it. Processor time is used because it depends less on other load than wall time does.
    """
    of_it = known[known["kernel"] == name]
    of_it = np.sort(of_it[of_it["ranks"] < ranks], order="ranks")
    if len(of_it) and of_it["why"][-1]:
        return f"already too much on {of_it['ranks'][-1]} ranks"
    if len(of_it) < 2:
        return ""
    last, factor = of_it[-1], ranks / of_it["ranks"][-1]
    for field, most, say in (
        ("cpu_s", limit, lambda value: f"{value:.3g} s"),
        ("peak_bytes", memory, byte_size),
    ):
        power = min(max(growth(of_it, field)[-1], 1.0), 2.5)
        expected = float(last[field]) * factor**power
        if expected > most:
            return f"about {say(expected)} expected, {say(most)} allowed"
    return ""


def growth(rows: NDArray[Any], field: str) -> list[float]:
    """Exponents: the power of the ranks by which `field` grows from each number of ranks to the
    next; nan where one was not measured. `rows` are of one kernel, in ascending order of ranks."""
    found = []
    for one, two in zip(rows, rows[1:], strict=False):
        unknown = field != "messages" and (one["why"] or two["why"])
        if unknown or min(one[field], two[field]) <= 0:
            found.append(float("nan"))
        else:
            found.append(log(two[field] / one[field]) / log(two["ranks"] / one["ranks"]))
    return found


def as_text(rows: NDArray[Any]) -> str:
    """Markdown tables of wall and processor time, memory, messages and simulated time by kernel and
    ranks, and of their overall growth, with the reasons for what was not measured. Each value has
    its growth since the previous number of ranks, as a power of the ranks, except wall time, which
    depends on other load."""
    tables = [
        _table(rows, *one)
        for one in (
            ("Wall time", "wall_s", _seconds),
            ("Processor time", "cpu_s", _seconds),
            ("Memory", "peak_bytes", _memory),
            ("Messages", "messages", "{:,}".format),
            ("Simulated time", "simulated_ns", lambda value: f"{value / 1000:,.1f} µs"),
        )
    ]
    why = [
        f"- `{row['kernel']}` on {row['ranks']:,} ranks: {row['why']}" for row in rows if row["why"]
    ]
    tables.append(_overall(rows))
    return "\n\n".join([*tables, *(["Not measured:", "\n".join(why)] if why else [])])


def _overall(rows: NDArray[Any]) -> str:
    """A table of the growth from OVERALL_FROM ranks to the most that were measured."""
    lines = [
        f"| Growth from P = {OVERALL_FROM} | to | {' | '.join(title for title, _ in GROWING)} |",
        f"|---|---:|{'---:|' * len(GROWING)}",
    ]
    for name in (name for name in KERNELS if name in rows["kernel"]):
        mine = np.sort(rows[(rows["kernel"] == name) & (rows["why"] == "")], order="ranks")
        mine = mine[mine["ranks"] >= OVERALL_FROM]
        if len(mine) < 2:
            continue
        ends = mine[[0, -1]]
        powers = [f"P^{growth(ends, field)[0]:.2f}" for _, field in GROWING]
        lines.append(f"| `{name}` | {ends['ranks'][1]:,} | {' | '.join(powers)} |")
    return "\n".join(lines)


def _seconds(value: float) -> str:
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def _memory(value: float) -> str:
    return f"{value / 2**20:.0f} MiB" if value < 1 << 30 else f"{value / 2**30:.1f} GiB"


def _table(rows: NDArray[Any], title: str, field: str, say: Callable[[Any], str]) -> str:
    ranks = sorted(set(rows["ranks"].tolist()))
    lines = [
        f"| {title} | bytes | {' | '.join(f'P = {number:,}' for number in ranks)} |",
        f"|---|---:|{'---:|' * len(ranks)}",
    ]
    for name in (name for name in KERNELS if name in rows["kernel"]):
        mine = np.sort(rows[rows["kernel"] == name], order="ranks")
        powers = [float("nan"), *growth(mine, field)]
        cells = dict.fromkeys(ranks, "-")
        for row, power in zip(mine, powers, strict=True):
            if not row["why"] or field == "messages":
                grown = "" if np.isnan(power) or field == "wall_s" else f" (P^{power:.1f})"
                cells[int(row["ranks"])] = f"{say(row[field])}{grown}"
        lines.append(f"| `{name}` | {mine['bytes'][0]:,} | {' | '.join(cells.values())} |")
    return "\n".join(lines)


def write(rows: Iterable[tuple], path: str | Path | None = None) -> None:
    """Write rows of ROW as CSV, by kernel and ranks; InputError if that fails."""
    place = list(KERNELS)
    rows = sorted(map(tuple, rows), key=lambda row: (place.index(_of(row)[0]), _of(row)[1]))
    TABLE.write(TABLE.array(rows), path)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, write each row at once, and print the tables."""
    parser = TABLE.parser()
    parser.add_argument(
        "--ranks",
        default=",".join(map(str, RANKS)),
        metavar="P,P",
        help="default: 16,64,256,1024,4096",
    )
    parser.add_argument(
        "--kernels", default=",".join(KERNELS), metavar="NAMES", help="default: all"
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=LIMIT_S,
        metavar="SECONDS",
        help=f"time limit of one simulation (default: {LIMIT_S:g})",
    )
    parser.add_argument(
        "--memory",
        type=size,
        metavar="BYTES",
        help="memory limit of one simulation, e.g. 8192M (default: "
        f"{SHARE_OF_MEMORY:.0%}% of the free memory)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE.md",
        help="measure nothing, but write the tables of data/ to this page, docs/scale.md",
    )
    options = parser.parse_args(arguments)
    if options.page:
        update(options.page, tables())
        return
    rows = {}
    if options.file.exists():
        rows = {_of(row): row for row in read(options.file).tolist()}

    def keep(row: tuple) -> None:
        rows[_of(row)] = row
        write(rows.values(), options.file)

    names = options.kernels.split(",")
    numbers = ranks_of(options.ranks)
    redone = {(name, number) for name in names for number in numbers}
    before = [row for at, row in rows.items() if at not in redone]
    measure(
        numbers,
        names,
        limit=options.limit,
        memory=options.memory,
        before=before,
        on_row=keep,
        progress=True,
    )
    print(as_text(TABLE.array(rows.values())))


def tables() -> dict[str, str]:
    """{name: Markdown} for docs/scale.md, generated from data/; InputError if a file cannot be
    read."""
    scale, distances = read(), level_costs.read()
    return {
        "scale": f"{stamps_of(scale)}\n\n{as_text(scale)}",
        "distances": f"{stamps_of(distances)}\n\n{level_costs.as_text(distances)}",
        "against": against.as_text(against.read()),
    }


if __name__ == "__main__":
    TABLE.run(main)
