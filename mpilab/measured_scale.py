"""What it costs to simulate, against the number of ranks: the file that docs/scale.md shows.

    python -m mpilab.measured_scale data/scale.csv [--ranks 16,64] [--kernels bcast_binomial] …

Each row is one smpirun of a kernel on a fat tree with 8 ranks a host: a call that is not timed (in
it topologies are built) and one that is, not recorded. A row is in the file as soon as it is
measured, in the place of the one for the same kernel and ranks that was there; other rows stay.

What would take too long or too much memory by the growth of the kernel's rows so far is not begun,
and what does so all the same is ended. Its row says why.
"""

import argparse
import resource
import tempfile
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from math import log
from pathlib import Path
from time import monotonic

import numpy as np
import psutil
from tqdm import tqdm

from mpilab import orders, published_csv
from mpilab.errors import InputError
from mpilab.expected import collective_of
from mpilab.formula import cost_of
from mpilab.harness import Case
from mpilab.plots.style import byte_size
from mpilab.result import DONE, TIME_OUT
from mpilab.simulated.build import kernels
from mpilab.simulated.follow import Run
from mpilab.simulated.memory import Memory
from mpilab.simulated.platforms import platform
from mpilab.simulated.run import MOST_RANKS
from mpilab.simulated.scaling import seconds_of

MEASURED_CSV = published_csv.DATA / "scale.csv"
RANKS = (16, 64, 256, 1024, 4096)
RANKS_OF_A_HOST = 8
# Bytes of the message of a bcast, reduce or allreduce, else of a block.
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
# Of the memory that is free at first, what simulations may take: the machine is not ours alone.
SHARE_OF_MEMORY = 0.7
UNKNOWN = -1
# messages of one call, as the kernel's header says; peak_bytes: resident, cpu_s: processor time, of
# all of smpirun's processes; why: not measured, and then numbers are UNKNOWN and times nan.
ROW = np.dtype([
    ("date", "U10"), ("machine", "U160"), ("kernel", "U40"), ("platform", "U40"), ("ranks", "i4"),
    ("bytes", "i8"), ("messages", "i8"), ("simulated_ns", "i8"), ("peak_bytes", "i8"),
    ("why", "U200"), ("cpu_s", "f8"), ("wall_s", "f8"),
])  # fmt: skip
_EXAMPLE = (
    "2026-11-21,a machine,bcast_binomial,fat-tree-2x8,16,65536,15,27310,41943040,,0.05,5.2e-02"
)


def measure(ranks=RANKS, names=tuple(KERNELS), *, limit=LIMIT_S, memory=None, before=(),
            on_row=None, progress=False):  # fmt: skip
    """Simulate kernels on each number of `ranks`, fewer first; array of ROW.

    names     of KERNELS.
    limit     seconds of wall time that one simulation may take.
    memory    bytes that it may take; default: SHARE_OF_MEMORY of what is free.
    before    rows that were measured earlier: what they show of growth counts, too.
    on_row    called with each row, a tuple, as it comes.

    Raises InputError for other names, for ranks that do not fill hosts and for more than can be
    simulated.
    """
    _check(ranks, names)
    from mpilab.bench import machine

    if memory is None:
        memory = int(SHARE_OF_MEMORY * psutil.virtual_memory().available)
    about = datetime.now(UTC).date().isoformat(), machine()
    kernels()  # built before the clock runs
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
    return np.array(rows, ROW)


def _check(ranks, names):
    for name in names:
        if name not in KERNELS:
            raise InputError(f"kernel {name!r}: take some of {', '.join(KERNELS)}")
    for number in ranks:
        if not RANKS_OF_A_HOST <= number <= MOST_RANKS or number % RANKS_OF_A_HOST:
            raise InputError(
                f"ranks={number}: hosts have {RANKS_OF_A_HOST} ranks; take a multiple of that, at "
                f"most {MOST_RANKS}"
            )


def _of(row):
    return row[ROW.names.index("kernel")], row[ROW.names.index("ranks")]


def _measured(name, ranks, known, limit, memory):
    """A row without its date and machine."""
    where = platform(f"fat-tree-{ranks // RANKS_OF_A_HOST}x{RANKS_OF_A_HOST}")
    hosts = tuple(orders.order(where.description, "seq", ranks=ranks))
    case = _case(name, ranks)
    placed = replace(case, places=where.description.places(hosts))
    begins = name, where.name, ranks, KERNELS[name], cost_of(name).at(placed)[1]
    why = _too_much(np.array(known, ROW), name, ranks, limit, memory)
    if why:
        return (*begins, UNKNOWN, UNKNOWN, why, np.nan, np.nan)
    spent = _processor_seconds()
    with tempfile.TemporaryDirectory(prefix="mpilab-scale-") as scratch:
        began = monotonic()
        run = Run(kernels(), name, {0: case}, where, hosts, scratch, None)
        with Memory(run.process.pid, memory) as used:
            with closing(run.results(limit=limit, standstill=limit)) as came:
                _, result = next(came)
        taken = monotonic() - began
    if used.exceeded:
        why = f"ended at {byte_size(used.peak)} of memory, {byte_size(memory)} were there for it"
    elif result.outcome == TIME_OUT:
        why = f"ended after {limit:g} s"
    elif result.outcome != DONE:
        why = f"{result.outcome}: {' '.join(result.detail.split())}"[:200]
    if why:
        return (*begins, UNKNOWN, UNKNOWN, why, np.nan, np.nan)
    spent = round(_processor_seconds() - spent, 3)
    return (*begins, round(seconds_of(result) * 1e9), used.peak, "", spent, taken)


def _processor_seconds():
    """Of all processes that have been started here, and those they started, and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _case(name, ranks):
    collective = name.partition("_")[0]
    element = 4 if collective_of(collective).reduces else 1
    return Case(collective, ranks, KERNELS[name] // element, "int" if element == 4 else "byte",
                record=False, dump=False, warmup=1)  # fmt: skip


def _too_much(known, name, ranks, limit, memory):
    """Why a simulation is not begun: by the growth between the kernel's last two rows, or "".

    Growth is taken for at least linear, and for no more than P^2.5: the first rows are too quick to
    tell. Processor time counts, which depends less than wall time on what else runs here.
    """
    of_it = known[known["kernel"] == name]
    of_it = np.sort(of_it[of_it["ranks"] < ranks], order="ranks")
    if len(of_it) and of_it["why"][-1]:
        return f"too much on {of_it['ranks'][-1]} ranks already"
    if len(of_it) < 2:
        return ""
    last, factor = of_it[-1], ranks / of_it["ranks"][-1]
    for field, most, say in (("cpu_s", limit, lambda value: f"{value:.3g} s"),
                             ("peak_bytes", memory, byte_size)):  # fmt: skip
        power = min(max(growth(of_it, field)[-1], 1.0), 2.5)
        expected = float(last[field]) * factor**power
        if expected > most:
            return f"about {say(expected)} are to be expected, {say(most)} were allowed"
    return ""


def growth(rows, field):
    """From one number of ranks to the next, the power of the ranks that `field` grows with, as a
    list; nan where one was not measured. `rows` are of one kernel, fewer ranks first."""
    found = []
    for one, two in zip(rows, rows[1:], strict=False):
        unknown = field != "messages" and (one["why"] or two["why"])
        if unknown or min(one[field], two[field]) <= 0:
            found.append(float("nan"))
        else:
            found.append(log(two[field] / one[field]) / log(two["ranks"] / one["ranks"]))
    return found


def as_text(rows):
    """A table of each of wall and processor time, memory, messages and simulated time: kernels and
    ranks, with the power of the ranks that it grew with since the number before (but for wall time,
    which depends on what else runs). As Markdown, with the reasons for what was not measured."""
    tables = [_table(rows, *one) for one in (
        ("Wall time", "wall_s", _seconds),
        ("Processor time", "cpu_s", _seconds),
        ("Memory", "peak_bytes", _memory),
        ("Messages", "messages", "{:,}".format),
        ("Simulated time", "simulated_ns", lambda value: f"{value / 1000:,.1f} µs"),
    )]  # fmt: skip
    why = [f"- `{row['kernel']}` on {row['ranks']:,} ranks: {row['why']}"
           for row in rows if row["why"]]  # fmt: skip
    return "\n\n".join([*tables, *(["Not measured:", "\n".join(why)] if why else [])])


def _seconds(value):
    return f"{value:.2g} s" if value < 10 else f"{value:.0f} s"


def _memory(value):
    return f"{value / 2**20:.0f} MiB" if value < 1 << 30 else f"{value / 2**30:.1f} GiB"


def _table(rows, title, field, say):
    ranks = sorted(set(rows["ranks"].tolist()))
    lines = [f"| {title} | bytes | {' | '.join(f'P = {number:,}' for number in ranks)} |",
             f"|---|---:|{'---:|' * len(ranks)}"]  # fmt: skip
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


def read(path=MEASURED_CSV):
    """The rows of a file that `write` has written; InputError where it cannot be read."""
    return published_csv.read(path, ROW, _EXAMPLE)


def write(rows, path=MEASURED_CSV):
    """Write rows of ROW as CSV, by kernel and ranks; InputError where that cannot be."""
    place = list(KERNELS)
    rows = sorted(map(tuple, rows), key=lambda row: (place.index(_of(row)[0]), _of(row)[1]))
    published_csv.write(np.array(rows, ROW), path)


def main(arguments=None):
    """Measure, write each row as it comes, and print the table."""
    from mpilab.commands.arguments import size
    from mpilab.sweeps.sizes import ranks_of

    parser = argparse.ArgumentParser(prog="python -m mpilab.measured_scale")
    parser.add_argument("file", nargs="?", type=Path, default=MEASURED_CSV,
                        help=f"default: {MEASURED_CSV}")  # fmt: skip
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)), metavar="P,P",
                        help="default: 16,64,256,1024,4096")  # fmt: skip
    parser.add_argument("--kernels", default=",".join(KERNELS), metavar="NAMES",
                        help="default: all")  # fmt: skip
    parser.add_argument("--limit", type=float, default=LIMIT_S, metavar="SECONDS",
                        help=f"of one simulation (default: {LIMIT_S:g})")  # fmt: skip
    parser.add_argument("--memory", type=size, metavar="BYTES",
                        help="that one simulation may take, e.g. 8192M (default: "
                        f"{SHARE_OF_MEMORY:.0%}% of what is free)")  # fmt: skip
    options = parser.parse_args(arguments)
    rows = {}
    if options.file.exists():
        rows = {_of(row): row for row in read(options.file).tolist()}

    def keep(row):
        rows[_of(row)] = row
        write(rows.values(), options.file)

    names = options.kernels.split(",")
    numbers = ranks_of(options.ranks)
    redone = {(name, number) for name in names for number in numbers}
    before = [row for at, row in rows.items() if at not in redone]
    measure(numbers, names, limit=options.limit, memory=options.memory, before=before,
            on_row=keep, progress=True)  # fmt: skip
    print(as_text(np.array(list(rows.values()), ROW)))


if __name__ == "__main__":
    main()
