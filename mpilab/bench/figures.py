"""The figures: how fast runs, collectives, file reads, simulation and grading are.

`run_figures` measures them and updates a JSON list of {name, value, unit, aim, against, spread, n,
measured, machine}: value is the median, spread half the interquartile range, measured the date.
"""

import fnmatch
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
from nbclient import NotebookClient
from nbformat import NotebookNode
from numpy.typing import ArrayLike, NDArray
from tqdm.auto import tqdm

from mpilab import models
from mpilab.cases.case import Case
from mpilab.cluster.engines import Cluster
from mpilab.cluster.processes import measure_ready
from mpilab.errors import InputError, MpilabError, SetupError
from mpilab.grading.answers import answer_id
from mpilab.grading.release import solutions
from mpilab.hosts import description
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.kernels import openmpi
from mpilab.kernels.build import INCLUDE, build, ping_pong
from mpilab.kernels.simgrid import kernels
from mpilab.measure import by_level, osu, sweep, sweep_table
from mpilab.measure.dataset import machine
from mpilab.measure.distances import measure, read_machine
from mpilab.measure.timing import Timed, speed_ups, time_on
from mpilab.mpiio import readers
from mpilab.notebook import session
from mpilab.runners import simgrid
from mpilab.runners.hang import STANDSTILL_S
from mpilab.runners.result import DONE
from mpilab.util.files import atomic_write
from mpilab.util.kit import NBGRADER_PYTHON, ROOT
from mpilab.util.processes import environment_of, processor_seconds
from mpilab.util.text import suggestion, update

# All ranks immediately wait for each other: the earliest possible deadlock.
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
# {(library, algorithm, ranks, bytes): seconds}.
Medians = dict[tuple[str, str, int, int], float]
# Collectives on emulated hosts: 4 groups of 2 hosts with 2 ranks each, 1 Gbit/s within a group,
# 200 Mbit/s between groups.
BY_LEVEL = ("bcast", "reduce", "gather")
ORDERS = ("seq", "rr", "shuffled")
BY_LEVEL_SIZES = {"16KB": 16 * 1024, "256KB": 256 * 1024, "2MB": 2 * 1024 * 1024}
FLAT = "_binomial"
# The same cluster simulated: our kernels for long messages and, in a scatter, which has none by
# level, the flat ones.
BOUNDED_KERNELS = {
    "bcast": ("pipelined", "multilane"),
    "reduce": ("pipelined",),
    "gather": ("pipelined", "node_group"),
    "scatter": ("linear", "linear_nb"),
    "allgather": ("pipelined", "hierarchical"),
    "allreduce": ("multilane", "hierarchical"),
}
AIMS_VS_BOUND = {"256KB": "≤ 1.15", "2MB": "≤ 1.05"}
# Bytes of a message between two ranks. An allreduce divides a segment among 16 ranks.
SEGMENTS = {"256KB": 1024, "2MB": 4096}
SEGMENTED = {"bcast": 1, "reduce": 1, "allreduce": 16}
_DIRECT = "alltoallv_linear, on 4 groups of 2 hosts of 4 ranks, in one run"
# Reads of a matrix.
MATRIX, READ_RANKS = "2048x2048", 4
# Simulated broadcasts.
SIMULATED_BYTES = 64 * 1024
# Sweeps of our kernels and Open MPI's algorithms.
COLLECTIVES = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather", "barrier")
RANKS = (2, 4)
SIZES = "4,64,1K,8K,64K,512K"
SEGMENT = 8192
SWEEPS = 5
T_95 = 2.776  # of the t distribution with SWEEPS - 1 degrees of freedom: 95 % are within ± T_95
LOST = 1.1
_ITSELF = "what Open MPI chooses by itself"
PING_PONG_SIZES = tuple(1 << power for power in range(21))
# {Open MPI's name: our name} of algorithms with different names.
OURS: dict[str, str | dict[str, str]] = {
    "basic_linear": "linear",
    "split_binary_tree": "split_binary",
    "binary_tree": "binary",
    "in-order_binary": "in_order_binary",
    "neighbor": "neighbor_exchange",
    "bruck": {"barrier": "dissemination", "allgather": "bruck"},
}
# Grading the sample class; the best student answers everything.
LAB = "02-allgather"
SAMPLE_CLASS = ROOT / "grading" / "sample-class"
BEST_STUDENT = "ada"
ROUNDS = 5  # of a comparison of throughputs
KERNELSPEC = "mpilab-bench"
# No cell of the sample class takes this long; nbgrader's default limit is 30 s.
CELL_SECONDS = 600
CONFIG = f"""c = get_config()
c.ExecutePreprocessor.timeout = {CELL_SECONDS}
c.NbGraderAPI.timestamp = "2026-01-01 00:00:00 UTC"
"""

Measure = Callable[..., ArrayLike]  # called without arguments
# {name: (function, unit, aim, what it is compared with)}.
FIGURES: dict[str, tuple[Measure, str, str, str]] = {}


def figure(unit: str, aim: str, against: str) -> Callable[[Measure], Measure]:
    """Register the decorated function, which returns measured values, as a figure of its name."""

    def register(measure: Measure) -> Measure:
        FIGURES[measure.__name__] = (measure, unit, aim, against)
        return measure

    return register


# Notebook runs, the recorder, and hangs.


@figure("", "≤ 0.3", "`mpicc … && mpirun -n 4 …` run directly, with Open MPI's default settings")
def cell_to_result_ratio(repeats: int = 7) -> list[float]:
    """The time from an edited cell to a verified result on 4 ranks, divided by that of the manual
    steps."""
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
def cluster_ready_ratio(repeats: int = 5) -> list[float]:
    """The time from Cluster(4).start() to the first result, divided by the minimum (see
    `against`)."""
    return [ready / floor for ready, floor in measure_ready(4, repeats)]


@figure("ns", "< 100", "the same ping-pong through PMPI_, in turn, in one run")
def recorder_overhead_ns(blocks: int = 41, trips: int = 20_000) -> NDArray[np.float64]:
    """The time that recording adds to one MPI_Send or MPI_Recv in a ping-pong of 8 bytes.

    Work that the recorder does while the message is in transit does not count.
    """
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


@figure("s", "≤ 2.5", "wall time from the call of a kernel that hangs immediately to its panel")
def fault_to_panel_seconds(repeats: int = 5) -> list[float]:
    """The time from the call of a kernel that hangs immediately to its panel.

    It includes 1 s without progress, after which the run counts as hanging.
    """
    return [to_panel for to_panel, _ in _hang_and_recover(repeats)]


@figure("s", "≤ 4", "wall time from the end of the hang to the next correct result")
def recovery_seconds(repeats: int = 5) -> list[float]:
    """The time until the cluster is usable again, including the restart before the panel."""
    return [recovery for _, recovery in _hang_and_recover(repeats)]


def _hang_and_recover(repeats: int) -> list[tuple[float, float]]:
    """(Seconds to the panel, seconds after STANDSTILL_S until a correct result) of each hang."""
    times = []
    with tempfile.TemporaryDirectory() as folder, Cluster(4, progress=False):
        session.kernels["allgather_head_to_head"] = build(HEAD_TO_HEAD, folder)
        for _ in range(repeats):
            begin = time.perf_counter()
            panel = repr(session.run("allgather_head_to_head"))
            shown = time.perf_counter()
            after = session.run("allgather_ring")
            if "Deadlock" not in panel or not after.right:
                raise MpilabError(f"no deadlock was found, or recovery failed: {panel}\n{after!r}")
            times.append((shown - begin, time.perf_counter() - begin - STANDSTILL_S))
        del session.kernels["allgather_head_to_head"]
    return times


# What every command and every notebook waits for.


@figure("s", "≤ 0.15", "processor time of `python -c 'import mpilab'`")
def import_processor_seconds(repeats: int = 15) -> list[float]:
    """The processor time to start Python and import mpilab."""
    return _processor_seconds(["-c", "import mpilab"], repeats)


@figure("s", "≤ 0.15", "processor time of `mpilab --help`")
def help_processor_seconds(repeats: int = 15) -> list[float]:
    """The processor time of a command that loads the parsers of all commands."""
    return _processor_seconds(["-m", "mpilab", "--help"], repeats)


def _processor_seconds(arguments: Sequence[str], repeats: int) -> list[float]:
    """Processor seconds, user and system, of Python with these arguments, for each repetition."""
    spent = []
    for _ in range(repeats + 1):
        before = processor_seconds(resource.RUSAGE_CHILDREN)
        _seconds([sys.executable, *arguments])
        spent.append(processor_seconds(resource.RUSAGE_CHILDREN) - before)
    return spent[1:]  # the first one may compile modules


# Our topology-aware collectives against flat ones and Open MPI's, on emulated hosts.


@cache
def measured(collective: str) -> list[Timed]:
    """All Timed of a collective on the cluster four-groups, measured in one run."""
    return by_level.measure(
        (collective,), sizes={collective: tuple(BY_LEVEL_SIZES.values())}, orders=ORDERS
    )


def _speed_ups(
    collective: str, order: str, size: str, other: Callable[[Timed], bool]
) -> list[float]:
    chosen = [
        t for t in measured(collective) if (t.order, t.bytes) == (order, BY_LEVEL_SIZES[size])
    ]
    return speed_ups(chosen, other)


def _register_by_level(collective: str, order: str, size: str) -> None:
    def flat() -> list[float]:
        return _speed_ups(collective, order, size, lambda one: one.kernel.endswith(FLAT))

    def openmpi() -> list[float]:
        return _speed_ups(collective, order, size, lambda one: one.is_openmpis)

    # In a gather, the flat tree and Open MPI are within a few percent of what the links allow.
    large = size != "16KB" and collective != "gather"
    flat.__name__ = f"{collective}_{order}_{size}_vs_flat"
    openmpi.__name__ = f"{collective}_{order}_{size}_vs_openmpi"
    figure("×", "≥ 3" if order == "rr" and large else "", f"{collective}{FLAT}, in one run")(flat)
    figure(
        "×",
        "≥ 1.5" if order != "seq" and large else "≥ 0.9",
        "the better of Open MPI with coll/han and without, in one run",
    )(openmpi)


for _collective_by_level in BY_LEVEL:
    for _order in ORDERS:
        for _size in BY_LEVEL_SIZES:
            _register_by_level(_collective_by_level, _order, _size)


def _register_vs_bound(collective: str, order: str, size: str) -> None:
    def bound() -> list[float]:
        over = by_level.over_least(
            collective,
            order,
            BY_LEVEL_SIZES[size],
            names=[f"{collective}_{name}" for name in BOUNDED_KERNELS[collective]],
            segments=segments_of(collective, size),
        )
        return [min(over.values())]

    bound.__name__ = f"{collective}_{order}_{size}_vs_bound"
    figure("", AIMS_VS_BOUND[size], "the least time that the links allow; simulated")(bound)


def segments_of(collective: str, size: str) -> tuple[int, ...]:
    """Bytes of the segments that are tried; 0 is the default of a kernel."""
    return (0, SEGMENTS[size] * SEGMENTED[collective]) if collective in SEGMENTED else (0,)


for _collective_bounded in BOUNDED_KERNELS:
    for _order in ORDERS:
        for _size in AIMS_VS_BOUND:
            _register_vs_bound(_collective_bounded, _order, _size)


@cache
def _exchanged() -> dict[str, list[float]]:
    """{order: speedups of alltoallv_leaders over alltoallv_linear} with 16 bytes per pair."""
    described = description.read("four-groups")
    hosts = tuple(replace(host, slots=4) for host in described.hosts)
    with EmulatedHosts(replace(described, hosts=hosts)) as up:
        found = time_on(
            up,
            "alltoallv",
            names=["alltoallv_linear", "alltoallv_leaders"],
            sizes=(16,),
            orders=("seq", "rr"),
            repetitions=200,
            warmup=5,
            progress=False,
        )
    seconds = {(one.order, one.kernel): one.seconds for one in found}
    return {
        order: [
            a / b
            for a, b in zip(
                seconds[order, "alltoallv_linear"], seconds[order, "alltoallv_leaders"], strict=True
            )
        ]
        for order in ("seq", "rr")
    }


@figure("×", "≥ 3", _DIRECT)
def alltoallv_16B_vs_direct() -> list[float]:  # noqa: N802 (the name of the figure)
    """The speedup of an exchange through leaders over direct messages, 16 bytes per pair, SEQ."""
    return _exchanged()["seq"]


@figure("×", "≥ 3", _DIRECT)
def alltoallv_16B_rr_vs_direct() -> list[float]:  # noqa: N802 (the name of the figure)
    """The same speedup in rank order RR, in which direct messages are faster."""
    return _exchanged()["rr"]


# Our two-phase read against MPI_File_read_all.


@figure("×", "≥ 2", "the better MPI_File_read_all of OMPIO and ROMIO, in turn, in one run")
def two_phase_vs_read_all(repetitions: int = 15) -> list[float]:
    """The time of MPI_File_read_all divided by that of read_two_phase.

    Both read 2048 x 2048 doubles on 4 ranks from the page cache.
    """
    # Check that the results are correct, too.
    readers.count(MATRIX, READ_RANKS, readers.RIVALS)
    seconds, _ = readers.time(MATRIX, READ_RANKS, readers.RIVALS, repetitions=repetitions)
    return readers.speed_ups(seconds)


# The cost of a simulation: wall time of one run under SimGrid.


def _simulated_seconds(platform: str, ranks: int, repetitions: int) -> list[float]:
    """Wall seconds of complete simulated runs of bcast_binomial, one value per repetition."""
    library = kernels()  # built before timing starts
    case = Case("bcast", ranks, SIMULATED_BYTES // 4, record=False, dump=False)
    found = []
    for _ in range(repetitions):
        begin = time.monotonic()
        (result,) = simgrid.simulate(library, "bcast_binomial", [case], platform)
        found.append(time.monotonic() - begin)
        if result.outcome != DONE:
            raise MpilabError(f"bcast_binomial on {platform} failed: {result.outcome}")
    return found


@figure("s", "≤ 0.15", "wall time of one smpirun: 64 KB by bcast_binomial on 2 hosts of 8 ranks")
def simulate_bcast_16_seconds() -> list[float]:
    """The wall time to simulate a broadcast on 16 ranks."""
    return _simulated_seconds("fat-tree-2x8", 16, 15)


@figure("s", "≤ 15", "wall time of one smpirun: 64 KB by bcast_binomial on 128 hosts of 8 ranks")
def simulate_bcast_1024_seconds() -> list[float]:
    """The wall time to simulate a broadcast on 1,024 ranks."""
    return _simulated_seconds("fat-tree-128x8", 1024, 5)


# Our kernels against Open MPI's own algorithms, and the choice of the fitted models.


def same_algorithm(collective: str, name: str) -> str:
    """Our name for Open MPI's algorithm `name`, whether or not we implement it."""
    ours = OURS.get(name, name)
    return ours.get(collective, name) if isinstance(ours, dict) else ours


@cache
def _medians(collective: str, number: int) -> Medians:
    """{(library, algorithm, ranks, bytes): median seconds} of sweep `number`."""
    report = sweep.Report()
    table = sweep.sweep(
        collective,
        ranks=RANKS,
        sizes=SIZES,
        algorithms=("ours", "ours:shared", "openmpi"),
        segment=SEGMENT,
        report=report,
        progress=False,
        oversubscribe=True,
    )
    if not len(table):
        raise InputError(f"{collective}: nothing was measured: {'; '.join(report.warnings())}")
    return {
        tuple(row[name].item() for name in ("library", "algorithm", "ranks", "bytes")): float(
            row["median_s"]
        )
        for row in sweep_table.summarize(table)
    }


def same_algorithm_ratios(collective: str) -> list[float]:
    """The times of our kernels divided by those of Open MPI's, for each common algorithm, size and
    P."""
    medians = _medians(collective, 0)
    return [
        medians[ours] / seconds
        for (library, name, ranks, size), seconds in medians.items()
        if library == "openmpi"
        and (ours := ("ours", same_algorithm(collective, name), ranks, size)) in medians
    ]


def best_ratios(collective: str) -> list[float]:
    """The geometric mean, over all P and sizes, of the time of our best algorithm over that of what
    Open MPI chooses by itself: a value for each of SWEEPS sweeps."""
    return np.exp(np.log(_over_default(collective)).mean(axis=1)).tolist()


def points_lost(collective: str) -> list[int]:
    """At how many P and sizes ours is slower than LOST times what Open MPI chooses by itself, with
    the whole confidence interval of the mean."""
    logs = np.log(_over_default(collective))
    half = T_95 * logs.std(axis=0, ddof=1) / np.sqrt(len(logs))
    return [int((logs.mean(axis=0) - half > np.log(LOST)).sum())]


def _over_default(collective: str) -> NDArray[np.float64]:
    """The time of our best algorithm over that of Open MPI's default, sweeps x points.

    The other sweeps say which of ours is the best at a point, so luck in one sweep is no gain."""
    sweeps = [_medians(collective, number) for number in range(SWEEPS)]
    points = [key[2:] for key in sweeps[0] if key[:2] == ("openmpi", "default")]
    ratios = np.empty((SWEEPS, len(points)))
    for number, medians in enumerate(sweeps):
        others = sweeps[:number] + sweeps[number + 1 :]
        for column, point in enumerate(points):
            ours = [key for key in medians if key[0] == "ours" and key[2:] == point]
            best = min(ours, key=lambda key: np.median([other[key] for other in others]))
            ratios[number, column] = medians[best] / medians["openmpi", "default", *point]
    return ratios


def _register(collective: str) -> None:
    def same(name: str = collective) -> list[float]:
        return same_algorithm_ratios(name)

    def best(name: str = collective) -> list[float]:
        return best_ratios(name)

    def lost(name: str = collective) -> list[int]:
        return points_lost(name)

    same.__name__ = f"{collective}_same_algorithm_ratio"
    best.__name__ = f"{collective}_best_ratio"
    lost.__name__ = f"{collective}_points_lost"
    figure("", "≤ 1.1", "the same algorithm of Open MPI, in turn, in one run")(same)
    figure("", "≤ 0.95", f"{_ITSELF}, in turn; all points")(best)
    figure("", "0", f"{_ITSELF}, in turn: points above {LOST} times, beyond the interval")(lost)


for _collective in COLLECTIVES:
    _register(_collective)


@figure("", "", "the fastest measured; at sizes to which the model was not fitted")
def bcast_regret() -> NDArray[np.float64]:
    """The regret of the bcast that the fitted models choose, for each P and size."""
    table = sweep.sweep(
        "bcast",
        ranks=RANKS,
        sizes="1:512K",
        segment=SEGMENT,
        progress=False,
        algorithms="ours",
        oversubscribe=True,
    )
    found = [models.regret_left_out(table[table["ranks"] == ranks])["regret"] for ranks in RANKS]
    return np.concatenate(found)


# The ping-pong of lab 00 beside the standard one, in turn, on the nearest two cores.


@cache
def ping_pong_beside_osu(
    rounds: int = 7, sizes: tuple[int, ...] = PING_PONG_SIZES, iterations: int = 500
) -> list[tuple[models.Hockney, models.Hockney]]:
    """(fitted to the kit's ping-pong, fitted to osu_latency) of each round, at the same sizes."""
    distance, pair = next(iter(read_machine().pairs.items()))
    found = []
    for _ in range(rounds):
        table = measure(sizes=sizes, distances=[distance])
        one_way = table[table["quantity"] == "one_way"]
        medians = [np.median(one_way["seconds"][one_way["bytes"] == size]) for size in sizes]
        ours = models.fit_hockney(sizes, medians)
        theirs = osu.run(
            "osu_latency",
            sizes=(sizes[0], sizes[-1]),
            iterations=iterations,
            warmup=50,
            cpu_list=pair,
        ).rows
        fitted = models.fit_hockney(theirs["size"], theirs["avg_us"] * 1e-6)
        found.append((ours, fitted))
    return found


@figure("", "0.9 to 1.1", "α of `osu_latency` on the same two cores, in turn")
def pingpong_alpha_vs_osu() -> list[float]:
    """α of the ping-pong of lab 00, divided by that of osu_latency."""
    return [ours.alpha / theirs.alpha for ours, theirs in ping_pong_beside_osu()]


@figure("", "0.9 to 1.1", "β of `osu_latency` on the same two cores, in turn")
def pingpong_beta_vs_osu() -> list[float]:
    """β of the ping-pong of lab 00, divided by that of osu_latency."""
    return [ours.beta / theirs.beta for ours, theirs in ping_pong_beside_osu()]


# The time until a student who opens a lab sees something.


@figure("s", "≤ 3", "wall time from the start of the kernel to the first output, cluster included")
def first_result_seconds(repeats: int = 3) -> list[float]:
    """The time from the start of a notebook's kernel to the first result below the start of the
    cluster, in the lab where it is longest; once per repetition."""
    labs = sorted((ROOT / "labs").glob("[0-9]*.ipynb"))
    return [max(map(_first_result, labs)) for _ in range(repeats)]


def _first_result(notebook: Path) -> float:
    """Wall seconds until a lab's first result."""
    lab = nbformat.read(notebook, 4)
    client = NotebookClient(lab, resources={"metadata": {"path": str(notebook.parent)}})
    begin, is_started = time.perf_counter(), False
    with client.setup_kernel():
        for number, cell in enumerate(lab.cells):
            if cell.cell_type != "code":
                continue
            client.execute_cell(cell, number)
            shown = [out for out in cell.outputs if out.get("name") != "stderr"]
            if is_started and shown:
                return time.perf_counter() - begin
            is_started = is_started or "Cluster(" in cell.source
    raise MpilabError(f"{notebook}: no cell below the start of the cluster has a result")


# Running each lab from top to bottom: blank, as a student may do first, and with all solutions.


def _register_lab(notebook: Path) -> None:
    name = notebook.stem.replace("-", "_")

    def run_all(repeats: int = 3) -> list[float]:
        return [_run_all(notebook) for _ in range(repeats)]

    def run_all_solved(repeats: int = 3) -> list[float]:
        return [_run_all(notebook, solved=True) for _ in range(repeats)]

    run_all.__name__ = f"run_all_{name}_seconds"
    figure("s", "≤ 60", "`papermill` runs the blank lab, with the students' parameters")(run_all)
    run_all_solved.__name__ = f"run_all_solved_{name}_seconds"
    figure("s", "≤ 180", "the same, with all solutions")(run_all_solved)


def _run_all(notebook: Path, solved: bool = False) -> float:
    """Wall seconds of papermill; `solved`: with our answers in their cells."""
    answers = solutions(ROOT / "labs" / "source" / f"{notebook.stem}.py") if solved else {}
    lab = nbformat.read(notebook, nbformat.NO_CONVERT)
    for cell in lab.cells:
        cell.source = answers.get(answer_id(cell) or "", cell.source)
    with tempfile.TemporaryDirectory(prefix="mpilab-bench-") as folder:
        filled, executed = Path(folder) / "filled.ipynb", Path(folder) / notebook.name
        nbformat.write(lab, filled)
        # Written once, at the end, as JupyterLab does.
        options = ["--no-progress-bar", "--no-request-save-on-cell-execute"]
        command: list[str | Path] = [sys.executable, "-m", "papermill", filled, executed]
        seconds = _seconds([*command, *options, "--cwd", notebook.parent])
        _check_executed(executed)
        return seconds


for _notebook in sorted((ROOT / "labs").glob("[0-9]*.ipynb")):
    _register_lab(_notebook)


# Grading the sample class: wall time per submission, and throughput against what an instructor
# would use without mpilab, on the same notebooks in one run.


@figure("s", "≤ 5", "wall time of the whole sample class over its submissions")
def grade_seconds_per_submission(repeats: int = 2) -> list[float]:
    """Wall seconds per submission of the sample class."""
    seconds = []
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            whole = _graded(SAMPLE_CLASS, Path(folder))
            seconds.append(whole / sum(1 for path in SAMPLE_CLASS.iterdir() if path.is_dir()))
    return seconds


@figure("×", "≥ 3", "`nbgrader autograde` of the same notebooks, in one run")
def grade_throughput_vs_nbgrader() -> list[float]:
    """Submissions per second of `mpilab grade`, divided by those of nbgrader."""
    return [_nbgrader(students) / _ours(students) for students in _rounds()]


@figure("×", "≥ 4", "`papermill` over the same notebooks, one after the other, in one run")
def grade_throughput_vs_papermill() -> list[float]:
    """Submissions per second of `mpilab grade`, divided by those of papermill."""
    return [_papermill(students) / _ours(students) for students in _rounds()]


def _rounds() -> list[tuple[str, ...]]:
    """The students with valid notebooks, dealt to ROUNDS rounds: nbgrader takes most of a minute
    for each."""
    students = tuple(_notebooks())
    return [students[number::ROUNDS] for number in range(ROUNDS)]


@cache
def _notebooks() -> dict[str, NotebookNode]:
    """{student: notebook} of the submissions in the sample class that are valid notebooks."""
    found = {}
    for path in sorted(SAMPLE_CLASS.glob(f"*/{LAB}.ipynb")):
        try:
            found[path.parent.name] = nbformat.read(path, as_version=4)
        except ValueError:  # one of them is deliberately invalid
            continue
    return found


@contextmanager
def _submitted(
    students: Iterable[str], *, kernel: str | None = None, deeper: str = ""
) -> Iterator[Path]:
    """Context manager for a folder with their notebooks, submitted/STUDENT/[deeper/]LAB.ipynb.

    kernel   name of the kernel to put into them, instead of their own
    """
    with tempfile.TemporaryDirectory(prefix="mpilab-bench-") as folder:
        for student in students:
            path = Path(folder) / "submitted" / student / deeper / f"{LAB}.ipynb"
            _write(_notebooks()[student], path, kernel)
        yield Path(folder)


def _write(notebook: NotebookNode, path: Path, kernel: str | None) -> None:
    notebook = deepcopy(notebook)
    if kernel is not None:
        notebook.metadata["kernelspec"] = {
            "name": kernel,
            "display_name": kernel,
            "language": "python",
        }
    path.parent.mkdir(parents=True)
    nbformat.write(notebook, path)


def _check_executed(path: Path) -> None:
    """Raise MpilabError unless the notebook ran to its end: otherwise the time means nothing."""
    for cell in nbformat.read(path, as_version=4).cells:
        failed = [out for out in cell.get("outputs", ()) if out.output_type == "error"]
        if failed or (cell.cell_type == "code" and cell.source and not cell.execution_count):
            raise MpilabError(f"{path}: not executed: {failed or cell.source[:200]}")


@cache
def _ours(students: tuple[str, ...]) -> float:
    """Wall seconds of `mpilab grade`."""
    with _submitted(students) as folder:
        return _graded(folder / "submitted", folder / "out")


def _graded(submitted: Path, out: Path) -> float:
    """Wall seconds of `mpilab grade` for the submissions in a folder."""
    grade = [sys.executable, "-m", "mpilab", "grade"]
    return _seconds([*grade, submitted, "--lab", LAB, "--out", out])


@cache
def _papermill(students: tuple[str, ...]) -> float:
    """Wall seconds of papermill."""
    with _submitted(students) as folder:
        # papermill stops at an answer that raises; that is less work and counts in its favor.
        seconds = sum(
            _seconds(
                [
                    sys.executable,
                    "-m",
                    "papermill",
                    path,
                    path.with_suffix(".out.ipynb"),
                    "--no-progress-bar",
                ],
                may_fail=True,
            )
            for path in sorted(folder.glob(f"submitted/*/{LAB}.ipynb"))
        )
        if BEST_STUDENT in students:
            _check_executed(folder / "submitted" / BEST_STUDENT / f"{LAB}.out.ipynb")
        return seconds


@cache
def _nbgrader(students: tuple[str, ...]) -> float:
    """Wall seconds of `nbgrader autograde`; SetupError if nbgrader is not installed."""
    if not NBGRADER_PYTHON.exists():
        raise SetupError(f"{NBGRADER_PYTHON}: no nbgrader; run 'python3 tools/nbgrader_venv.py'")
    with _submitted(students, kernel=KERNELSPEC, deeper=LAB) as folder:
        source = folder / "source" / LAB / f"{LAB}.ipynb"
        # nbgrader copies this notebook's kernel name into the students' notebooks.
        _write(nbformat.read(ROOT / "labs" / f"{LAB}.ipynb", as_version=4), source, KERNELSPEC)
        (folder / "nbgrader_config.py").write_text(CONFIG)
        spec = folder / "jupyter" / "kernels" / KERNELSPEC / "kernel.json"
        spec.parent.mkdir(parents=True)
        launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        spec.write_text(
            json.dumps({"argv": launch, "display_name": KERNELSPEC, "language": "python"})
        )
        env = {**environment_of(NBGRADER_PYTHON), "JUPYTER_PATH": str(folder / "jupyter")}
        nbgrader: list[str | Path] = [NBGRADER_PYTHON, "-m", "nbgrader"]
        _seconds([*nbgrader, "generate_assignment", LAB, "--create"], cwd=folder, env=env)
        seconds = _seconds([*nbgrader, "autograde", LAB, "--create"], cwd=folder, env=env)
        if BEST_STUDENT in students:
            _check_executed(folder / "autograded" / BEST_STUDENT / LAB / f"{LAB}.ipynb")
        return seconds


def _seconds(command: Sequence[str | Path], *, may_fail: bool = False, **options: Any) -> float:
    """Wall seconds of a command; MpilabError, with its last lines of output, if it fails."""
    began = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True, **options)
    seconds = time.perf_counter() - began
    if ran.returncode and not may_fail:
        said = "\n".join(ran.stderr.strip().splitlines()[-5:])
        raise MpilabError(f"{' '.join(map(str, command))}: exit status {ran.returncode}:\n{said}")
    return seconds


# Run figures, and report them as JSON and in the tables of docs/performance.md.


def run_figures(name: str, out: str | Path) -> list[dict[str, Any]]:
    """Measure one figure, those that a pattern such as 'bcast_*' matches, or 'all', and update the
    JSON file `out`; the list in it. What several figures compare is measured once for all."""
    names = list(FIGURES) if name == "all" else fnmatch.filter(FIGURES, name)
    if not names:
        listed = f"{', '.join(FIGURES)}{suggestion(name, FIGURES)}"
        raise InputError(f"figure {name!r}: unknown; write 'all', a pattern, or one of {listed}")
    out = Path(out)
    known = {entry["name"]: entry for entry in _read(out)}
    for one in tqdm(names, desc="bench"):
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
        atomic_write(out, json.dumps(list(known.values()), indent=1) + "\n")
    return list(known.values())


def _read(path: Path) -> list[dict[str, Any]]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return []
    except ValueError as error:
        raise InputError(f"{path}: not the JSON of a bench run: {error}; remove it") from None


_HEADING = "| figure | value | spread | n | aim | against |\n|---|---|---|---|---|---|"
# A row of `table`, or the line above it in a page.
_ROW, _MEASURED = re.compile(r"\| `(\w+)` \|.*"), re.compile(r"Measured (\S+) on (.*)\.")


def table(entries: Iterable[dict[str, Any]]) -> str:
    """The figures as a Markdown table."""
    return "\n".join([_HEADING, *map(_row, entries)])


def _row(entry: dict[str, Any]) -> str:
    unit = f" {entry['unit']}" if entry["unit"] else ""
    return (
        f"| `{entry['name']}` | {entry['value']:.3g}{unit} | ± {entry['spread']:.2g} "
        f"| {entry['n']} | {entry['aim']} | {entry['against']} |"
    )


def write_docs(entries: Iterable[dict[str, Any]], path: str | Path) -> None:
    """Write the figures between the marks in a Markdown file, a table per day and machine.

    What the page has of other figures stays: they may have been measured elsewhere.
    """
    rows = _rows(Path(path))
    for entry in entries:
        rows.pop(entry["name"], None)
        rows[entry["name"]] = (entry["measured"], entry["machine"], _row(entry))
    by_run: dict[tuple[str, str], list[str]] = {}
    for day, where, row in rows.values():
        by_run.setdefault((day, where), []).append(row)
    tables = [
        "\n".join([f"Measured {day} on {where}.\n", _HEADING, *of_run])
        for (day, where), of_run in sorted(by_run.items())
    ]
    update(path, {"bench": "\n\n".join(tables)})


def _rows(page: Path) -> dict[str, tuple[str, str, str]]:
    """{figure: (day, machine, row)} of those in a page that are still measured."""
    rows, measured = {}, ("", "")
    for line in page.read_text(encoding="utf-8").splitlines() if page.is_file() else ():
        if above := _MEASURED.fullmatch(line):
            measured = above[1], above[2]
        elif (row := _ROW.fullmatch(line)) and row[1] in FIGURES:
            rows[row[1]] = (*measured, line)
    return rows
