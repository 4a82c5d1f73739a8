"""Measure the performance figures of docs/performance.md, for `make bench`.

A figure is a duration, or the ratio of two alternately measured quantities in the same run; no test
asserts one. The result is a list of {name, value, unit, aim, against, spread, n, measured,
machine}: value is the median, spread half the interquartile range, measured the date.
"""

import json
import os
import subprocess
import tempfile
import time
from datetime import date
from pathlib import Path

import numpy as np

from mpilab.errors import InputError, MpilabError
from mpilab.kernels import openmpi
from mpilab.kernels.build import INCLUDE
from mpilab.measure.dataset import machine
from mpilab.util.files import write_whole
from mpilab.util.kit import ROOT
from mpilab.util.text import update

FIGURES = {}


def figure(unit, aim, against):
    """Register the decorated function, which returns measured values, as a figure of its name."""

    def register(measure):
        FIGURES[measure.__name__] = (measure, unit, aim, against)
        return measure

    return register


def run_figures(name, out):
    """Measure one figure, or 'all', and update the JSON file `out`; the list in it."""
    from tqdm.auto import tqdm

    if name != "all" and name not in FIGURES:
        raise InputError(f"figure {name!r}: unknown; write 'all' or one of {', '.join(FIGURES)}")
    out = Path(out)
    known = {entry["name"]: entry for entry in _read(out)}
    for one in tqdm(list(FIGURES) if name == "all" else [name], desc="bench"):
        measure, unit, aim, against = FIGURES[one]
        values = np.asarray(measure(), float)
        low, median, high = np.percentile(values, [25, 50, 75])
        known[one] = {
            "name": one,
            "value": round(float(median), 4),
            "unit": unit,
            "aim": aim,
            "against": against,
            "spread": round(float(high - low) / 2, 4),
            "n": len(values),
            "measured": str(date.today()),
            "machine": machine(),
        }
        write_whole(out, json.dumps(list(known.values()), indent=1) + "\n")
    print(table(known.values()))
    return list(known.values())


def _read(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise InputError(f"{path}: not the JSON of a bench run: {error}; remove it") from None


def table(entries):
    """The figures as a Markdown table."""
    lines = ["| figure | value | spread | n | aim | against |", "|---|---|---|---|---|---|"]
    for entry in entries:
        unit = f" {entry['unit']}" if entry["unit"] else ""
        lines.append(
            f"| `{entry['name']}` | {entry['value']:.3g}{unit} | ± {entry['spread']:.2g} "
            f"| {entry['n']} | {entry['aim']} | {entry['against']} |"
        )
    return "\n".join(lines)


def write_docs(entries, path):
    """Write the figures between the marks in a Markdown file, a table per day and machine."""
    by_run = {}
    for entry in entries:
        by_run.setdefault((entry["measured"], entry["machine"]), []).append(entry)
    tables = [
        f"Measured {day} on {where}.\n\n{table(of_run)}"
        for (day, where), of_run in sorted(by_run.items())
    ]
    update(path, {"bench": "\n\n".join(tables)})


# The figures on notebook runs, the recorder, and hangs; all others are in mpilab.bench.figures.

# All ranks wait for each other at once: the earliest possible deadlock.
HEAD_TO_HEAD = """#include "mpilab.h"
MPILAB_ALLGATHER(head_to_head)
{
    int rank, size;
    (void)sendbuf, (void)sendcount, (void)sendtype;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    return MPI_Recv(recvbuf, recvcount, recvtype, (rank + 1) % size, TAG, comm, MPI_STATUS_IGNORE);
}
"""


@figure("", "≤ 0.3", "`mpicc … && mpirun -n 4 …` by hand, Open MPI's default settings")
def cell_to_result_ratio(repeats=7):
    """The time from an edited cell to a verified result on 4 ranks, over the same by hand."""
    from mpilab.cluster.engines import Cluster
    from mpilab.kernels.build import build
    from mpilab.notebook import session

    kernel = (ROOT / "src_c" / "allgather" / "ring.c").read_text(encoding="utf-8")
    driver = ROOT / "src_c" / "programs" / "bench" / "by_hand.c"
    ratios = []
    defaults = {name: value for name, value in os.environ.items() if "_MCA_" not in name}
    with tempfile.TemporaryDirectory() as folder, Cluster(4, progress=False):
        for number in range(repeats):
            edited = f"{kernel}\n/* edit {number} */\n"
            begin = time.perf_counter()
            session.kernels["allgather_ring"] = build(edited, folder, stem=f"cell{number}")
            run = session.run("allgather_ring", count=64)
            in_notebook = time.perf_counter() - begin
            if not run.right:
                raise InputError(f"allgather_ring: {run.trouble}")

            source = Path(folder) / "hand.c"
            source.write_text(edited, encoding="utf-8")
            begin = time.perf_counter()
            subprocess.run(
                [
                    openmpi.tool("mpicc"),
                    "-O2",
                    f"-I{INCLUDE}",
                    str(source),
                    str(driver),
                    "-o",
                    f"{folder}/hand",
                ],
                check=True,
            )
            subprocess.run(
                [openmpi.tool("mpirun"), "--oversubscribe", "-n", "4", f"{folder}/hand"],
                check=True,
                env={**defaults, **openmpi.ROOT},
                timeout=60,
                stdout=subprocess.DEVNULL,
            )
            by_hand = time.perf_counter() - begin
            ratios.append(in_notebook / by_hand)
        del session.kernels["allgather_ring"]
    return ratios[1:]  # the first one includes one-time loading


@figure("", "≤ 1.3", "mpirun of 4 interpreters that import ipyparallel and mpi4py")
def cluster_ready_ratio(repeats=5):
    """The time from Cluster(4).start() to the first result, over the minimum (see `against`)."""
    from mpilab.cluster.processes import measure_ready

    return [ready / floor for ready, floor in measure_ready(4, repeats)]


@figure("ns", "< 100", "the same ping-pong through PMPI_, in turn, in one run")
def recorder_overhead_ns(blocks=41, trips=20_000):
    """The time that recording adds to one MPI_Send or MPI_Recv in a ping-pong of 8 bytes.

    Work that the recorder does while the message is in transit does not count.
    """
    from mpilab.kernels.build import ping_pong

    with tempfile.TemporaryDirectory() as folder:
        said = subprocess.run(
            [openmpi.tool("mpirun"), "-n", "2", str(ping_pong()), folder, str(blocks), str(trips)],
            check=True,
            capture_output=True,
            text=True,
            timeout=600,
            env=openmpi.environment(2) | {"TMPDIR": folder},
        )
    recorded, direct = np.loadtxt(said.stdout.splitlines()).T
    # A round trip has four successive calls: two sends and two receives.
    return (recorded - direct)[1:] / trips / 4


@figure("s", "≤ 2.5", "wall time from the call of a kernel that hangs at once to its panel")
def fault_to_panel_seconds(repeats=5):
    """The time from the call of a kernel that hangs at once to its panel.

    It includes 1 s without progress, after which the run counts as hanging.
    """
    return [to_panel for to_panel, _ in _hang_and_recover(repeats)]


@figure("s", "≤ 4", "wall time from the end of the standstill to the next right result")
def recovery_seconds(repeats=5):
    """The time until the cluster is usable again, including the restart before the panel."""
    return [recovery for _, recovery in _hang_and_recover(repeats)]


def _hang_and_recover(repeats):
    """(Seconds to the panel, seconds after STANDSTILL_S until a correct result) of each hang."""
    from mpilab.cluster.engines import Cluster
    from mpilab.kernels.build import build
    from mpilab.notebook import session
    from mpilab.runners.hang import STANDSTILL_S

    times = []
    with tempfile.TemporaryDirectory() as folder, Cluster(4, progress=False):
        session.kernels["allgather_head_to_head"] = build(HEAD_TO_HEAD, folder)
        for _ in range(repeats):
            begin = time.perf_counter()
            panel = repr(session.run("allgather_head_to_head"))
            shown = time.perf_counter()
            after = session.run("allgather_ring")
            if "Deadlock" not in panel or not after.right:
                raise MpilabError(f"no deadlock, or no recovery from it: {panel}\n{after!r}")
            times.append((shown - begin, time.perf_counter() - begin - STANDSTILL_S))
        del session.kernels["allgather_head_to_head"]
    return times
