"""Run Cannon's algorithm (src_c/programs/cannon) on matrix files, and measure the time of its
phases; as a program, over sizes and ranks, for the table shown in lab 05.

    python -m mpilab.mpiio.cannon [data/cannon-scaling.csv [REPETITIONS]]   measure, write it
    python -m mpilab.mpiio.cannon mine.csv 3 --sizes 1024,2048,4096 --ranks 4,9,16
    python -m mpilab.mpiio.cannon mine.csv 3 --sizes 1024,2048,4096 --ranks 4,9,16 --hosts two-hosts
    python -m mpilab.mpiio.cannon --page docs/performance.md         write the tables of data/ to it

Each row of the table is one phase of one run. The files have just been written and are in the page
cache, so this measures the program, not a disk.

The published worksheet reports the share of MPI time spent on reading, distributing, collecting and
writing: 96 % if rank 0 does it all, about 38 % with MPI-IO (data/cannon-worksheet-2016.csv).
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from mpilab.cluster.engines import asleep
from mpilab.cluster.location import SHARED_MEMORY, OnHosts, ThisMachine
from mpilab.cluster.supervisor import MARKER, kill
from mpilab.errors import InputError, MpilabError
from mpilab.hosts.description import Description
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.kernels import build
from mpilab.measure.dataset import DATA, Dataset, stamp
from mpilab.measure.origin import here
from mpilab.mpiio import files
from mpilab.trace.recording import Recording
from mpilab.util import processes
from mpilab.util.text import update
from mpilab.util.units import positive

STAGES = {1: "rank 0, point-to-point", 2: "rank 0, collectives", 3: "MPI-IO"}
PHASES = ("read", "compute", "write")
LIMIT_S = 600.0
LONGEST_S = 1_000_000
_SPEAKS = "mpilab-cannon: "

PUBLISHED = Dataset(
    "cannon-worksheet-2016.csv", columns="stage:i4 n:i4 io_percent:f8", example="3,4096,38"
)


@dataclass(frozen=True)
class CannonRun:
    """The results of one run.

    phases_ns    int64 [ranks, 3, 2]: begin and end (CLOCK_MONOTONIC) of PHASES on each rank.
                 Reading includes distributing; collecting belongs to writing.
    peak_bytes   int64 [ranks]: peak memory of each rank (VmHWM at its end)
    base_bytes   int64 [ranks]: the same before its first phase: that of the program and MPI itself
    recording    mpilab.trace.recording.Recording, or None; for mpilab.plots.timeline
    digest       SHA-256 of the file of C
    where        'AMD EPYC, 2 cores, 4 ranks, oversubscribed'; '' if unknown
    """

    stage: int
    ranks: int
    rows: int
    inner: int
    columns: int
    phases_ns: NDArray[np.int64]
    peak_bytes: NDArray[np.int64]
    base_bytes: NDArray[np.int64]
    recording: Recording
    digest: str
    where: str = ""

    @property
    def seconds(self) -> dict[str, float]:
        """{phase: seconds from the first rank's start to the last one's end}; phases overlap."""
        begin, end = self.phases_ns[:, :, 0].min(axis=0), self.phases_ns[:, :, 1].max(axis=0)
        return dict(zip(PHASES, ((end - begin) / 1e9).tolist(), strict=True))

    @property
    def mpi_seconds(self) -> NDArray[np.float64]:
        """float64 [ranks, 3]: seconds that each rank spent inside MPI calls in each of PHASES.

        Reading and writing with stdio on rank 0 is not MPI time, but the time that other ranks wait
        for it is.
        """
        return mpi_seconds(self.recording, self.phases_ns)

    @property
    def io_share(self) -> float:
        """The fraction of the MPI time of all ranks that is in reading and writing, from 0 to 1.

        NaN if there was none at all. Starting and ending MPI is not counted.
        """
        spent = self.mpi_seconds.sum(axis=0)
        return float((spent[0] + spent[2]) / spent.sum()) if spent.sum() else float("nan")

    def __str__(self) -> str:
        words = f"stage {self.stage} ({STAGES[self.stage]})"
        spent = self.mpi_seconds.mean(axis=0)
        lines = [
            f"Cannon, {words}: {self.rows} x {self.inner} times {self.inner} x {self.columns} "
            f"on {self.ranks} rank{'' if self.ranks == 1 else 's'}",
            f"{'phase':<8}{'seconds':>10}{'in MPI, a rank':>17}",
        ]
        for number, (phase, seconds) in enumerate(self.seconds.items()):
            lines.append(f"{phase:<8}{seconds:>10.4f}{spent[number]:>17.4f}")
        if not np.isnan(self.io_share):
            lines.append(f"reading and writing: {self.io_share:.0%} of all MPI time")
        peak = self.peak_bytes / 2**20
        others = f", others at most {peak[1:].max():.0f} MiB" if self.ranks > 1 else ""
        lines.append(f"most memory: rank 0 {peak[0]:.0f} MiB{others}")
        lines += [f"measured on {self.where}"] if self.where else []
        return "\n".join(lines)


def run(
    stage: int,
    ranks: int,
    a: Path | str,
    b: Path | str,
    c: Path | str | None = None,
    *,
    limit: float = LIMIT_S,
    hosts: EmulatedHosts | None = None,
) -> CannonRun:
    """Compute C = A B by Cannon's algorithm on `ranks` ranks of this machine; return a CannonRun.

    stage   how files are read and written: 1, 2 or 3, see STAGES.
    ranks   a square number.
    a, b    matrix files (mpilab.mpiio.files): binary; in stages 1 and 2 also text.
    c       the file for C, in binary; None: only its digest is kept.
    limit   seconds that the run may take, at most LONGEST_S.
    hosts   emulated hosts that are up: as many ranks run on each as on the others, host by host.
            The files must be in the hosts' directory.

    Raises InputError, in the program's words, for input that it rejects, and leaves `c` unchanged;
    MpilabError for a run that fails or takes too long, ClusterError if a notebook's ranks compute
    meanwhile (mpilab.cluster.engines.asleep).
    """
    if stage not in STAGES:
        raise InputError(f"stage={stage!r}: write one of {', '.join(map(str, STAGES))}")
    if ranks < 1:
        raise InputError(f"ranks={ranks}: must be 1 or more, and a square number")
    if not 0 < limit <= LONGEST_S:
        raise InputError(f"limit={limit:g}: must be above 0 seconds, and at most {LONGEST_S:,}")
    where = ThisMachine(ranks) if hosts is None else _spread(hosts, ranks)
    at = None if hosts is None else hosts.directory
    with tempfile.TemporaryDirectory(prefix="mpilab-cannon-", dir=at) as folder:
        scratch = Path(folder)
        target = scratch / "c" if c is None else Path(c)
        program = [str(build.need(build.CANNON_PROGRAM)), str(stage), str(a), str(b), str(target)]
        try:
            with asleep():
                said = _said([*program, str(scratch)], where, scratch, limit)
        finally:
            with suppress(OSError):  # there is no such file, or it was renamed to C
                (scratch / "unfinished").readlink().unlink()  # see src_c/programs/cannon/output.c
        _check(said, limit)
        rows, columns = files.size(target)
        told = [_told(scratch / f"phases.{rank}.json") for rank in range(ranks)]
        return CannonRun(
            stage,
            ranks,
            rows,
            files.size(a)[1],
            columns,
            np.array([[one[f"{phase}_ns"] for phase in PHASES] for one in told], np.int64),
            np.array([one["peak_bytes"] for one in told], np.int64),
            np.array([one["base_bytes"] for one in told], np.int64),
            Recording.load(scratch, 0, ranks),
            _digest(target),
            here(ranks),
        )


def mpi_seconds(recording: Recording, phases_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 [ranks, phases]: seconds of each rank inside MPI calls, within each of its phases.

    phases_ns   int64 [ranks, phases, 2]. Nested calls count once.
    """
    spent = np.zeros(phases_ns.shape[:2])
    for rank, recorded in enumerate(recording.ranks):
        ended = recorded.records[recorded.records["end_ns"] > 0]
        ended = ended[np.argsort(ended["begin_ns"], kind="stable")]
        ends = np.maximum.accumulate(ended["end_ns"])
        begins = ended["begin_ns"].copy()
        begins[1:] = np.maximum(begins[1:], ends[:-1])
        for phase, (first, last) in enumerate(phases_ns[rank]):
            inside = np.clip(ends, first, last) - np.clip(begins, first, last)
            spent[rank, phase] = np.maximum(inside, 0).sum() / 1e9
    return spent


def published(path: Path | str | None = None) -> NDArray[Any]:
    """The worksheet's results (data/README.md), rows of PUBLISHED; InputError if it is missing."""
    return PUBLISHED.read(path)


def _spread(hosts: EmulatedHosts, ranks: int) -> OnHosts:
    """`ranks` ranks on emulated hosts, as many on each, whatever their slots."""
    number = len(hosts.names)
    if ranks % number:
        raise InputError(f"ranks={ranks} on {number} hosts: give a multiple of {number}")
    names = [name for name in hosts.names for _ in range(ranks // number)]
    return OnHosts(hosts, names, "seq")


def _said(
    command: Sequence[str], where: ThisMachine | OnHosts, scratch: Path, limit: float
) -> processes.Said:
    """Run `command` under mpirun; return the Said, with code None if it exceeded its time limit."""
    ranks = len(where.names)
    segments = where.shared_memory(scratch.name)
    own = {"TMPDIR": str(scratch)}
    for directory in segments:  # otherwise those of killed ranks would remain
        directory.mkdir(mode=0o700)
        own["OMPI_MCA_btl_sm_backing_directory"] = str(SHARED_MEMORY / scratch.name)
    if where.on_hosts:  # the daemon of each host needs files of its own
        own["TMPDIR"] = str(SHARED_MEMORY / scratch.name)
        own[MARKER] = scratch.name
    try:
        return processes.run(
            where.command([*where.mpirun(ranks), *command]),
            limit,
            environment=where.environment(ranks) | own,
        )
    finally:
        if where.on_hosts:  # daemons on other hosts may have detached themselves
            kill(scratch.name)
        for directory in segments:
            shutil.rmtree(directory, ignore_errors=True)


def _check(said: processes.Said, limit: float) -> None:
    for line in said.stderr.splitlines():
        if line.startswith(_SPEAKS):
            raise InputError(line.removeprefix(_SPEAKS))
    if said.code != 0:
        hint = f"; its limit was {limit:g} s: use smaller matrices or a higher limit"
        why = processes.trouble(said).rstrip(".")
        raise MpilabError(f"mpilab-cannon: {why}{hint if said.code is None else ''}")


def _told(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="ascii"))


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# The phases over sizes and ranks, ways of handling files, and repetitions.

LARGE_CSV = DATA / "cannon-large.csv"  # sizes like the worksheet's, fewer repetitions
TWO_HOSTS_CSV = DATA / "cannon-two-hosts.csv"  # half of the ranks on each of two emulated hosts
TEXT, BINARY = "text", "binary"
# (stage, kind of input files); first the worksheet's base case. Views need binary files.
WAYS = ((1, TEXT), (1, BINARY), (2, BINARY), (3, BINARY))
RANKS = (1, 4, 9, 16)
SIZES = (256, 512)
REPETITIONS = 30
DRAWS, SEED_SLOW, SEED_FAST = 2000, 1, 2  # of the bootstrap
# in_mpi_s: seconds of the phase spent in MPI, mean over the ranks.
TABLE = Dataset(
    "cannon-scaling.csv",
    columns="date machine stage:i4 files:U8 ranks n:i4 repetition phase:U8 in_mpi_s:f8 seconds",
    example="2026-11-21,a machine,3,binary,4,1024,1,read,0.0123,2.5e-02",
    program="mpilab.mpiio.cannon",
)
ROW = TABLE.row
read, write = TABLE.read, TABLE.write


def measure(
    sizes: Sequence[int] = SIZES,
    ranks: Sequence[int] = RANKS,
    ways: Sequence[tuple[int, str]] = WAYS,
    repetitions: int = REPETITIONS,
    seed: int = 1,
    progress: bool = False,
    hosts: str | Description | None = None,
) -> NDArray[Any]:
    """Run each of `ways` on each number of ranks with n x n matrices of each size; array of ROW.

    All combinations run once, then again, so that changes on the machine affect all of them
    equally. All of SIZES and RANKS thirty times takes about five minutes. With `hosts`, the name of
    a cluster such as "two-hosts", the ranks are on these emulated hosts, as many on each: messages
    between hosts go over their links, but the hosts share this machine's cores and page cache.

    Raises InputError for combinations that cannot be run, MpilabError for a run that fails, or
    whose C is not bitwise identical to that of the first run with matrices of this size.
    """
    if repetitions < 1:
        raise InputError(f"repetitions={repetitions}: must be 1 or more")
    about = stamp()
    rows = []
    first: dict[int, tuple[str, str]] = {}
    with ExitStack() as stack:
        there = None if hosts is None else stack.enter_context(EmulatedHosts(hosts))
        at = None if there is None else there.directory
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="mpilab-cannon-", dir=at))
        operands = {
            (n, kind): _operands(Path(folder), n, kind, seed)
            for n in sizes
            for kind in {kind for _, kind in ways}
        }
        todo = [
            (n, size, *way, number)
            for number in range(1, repetitions + 1)
            for n in sizes
            for size in ranks
            for way in ways
        ]
        for n, size, stage, kind, number in tqdm(todo, disable=not progress, unit="run"):
            done = run(stage, size, *operands[n, kind], hosts=there)
            mine = f"stage {stage} with {kind} files on {size} ranks", done.digest
            _check_same(n, first.setdefault(n, mine), mine)
            in_mpi = done.mpi_seconds.mean(axis=0).round(7).tolist()
            for (phase, seconds), spent in zip(done.seconds.items(), in_mpi, strict=True):
                rows.append((*about, stage, kind, size, n, number, phase, spent, seconds))
    return TABLE.array(rows)


def _operands(folder: Path, n: int, kind: str, seed: int) -> list[Path]:
    operands = [folder / f"{name}-{n}.{kind}" for name in "ab"]
    for number, file in enumerate(operands):
        files.make(file, n, n, seed=seed + number, text=kind == TEXT)
    return operands


def _check_same(n: int, first: tuple[str, str], second: tuple[str, str]) -> None:
    """Raise MpilabError if two runs, each (what was run, digest of C), differ in C."""
    if first[1] != second[1]:
        told = [f"{words}: {digest[:16]}…" for words, digest in (first, second)]
        raise MpilabError(
            f"Cannon, {n} x {n}: C differs, by its SHA-256: {'; '.join(told)}. All stages on all "
            "grids must write the same file: run tests/src_c/test_cannon.py"
        )


def io_share(rows: NDArray[Any]) -> float:
    """The share of these rows' time in MPI that is spent reading and writing; NaN if no time was
    spent in MPI."""
    spent = rows["in_mpi_s"]
    total = spent.sum()
    return float(spent[rows["phase"] != "compute"].sum() / total) if total else float("nan")


def tables() -> dict[str, str]:
    """The tables in docs/performance.md: {name: Markdown}."""
    return {file.stem: share_table(read(file)) for file in (LARGE_CSV, TWO_HOSTS_CSV)}


def share_table(rows: NDArray[Any]) -> str:
    """The io_share of each of WAYS, and the medians of the seconds of reading and of writing, in
    Markdown: a row for each way, a column for each size and number of ranks."""
    points = list(product(*(np.unique(rows[name]).tolist() for name in ("n", "ranks"))))
    lines = [["", *(f"{n}², {ranks} ranks" for n, ranks in points)]]
    lines.append(["---", *["--:"] * len(points)])
    for stage, kind in WAYS:
        of_way = rows[(rows["stage"] == stage) & (rows["files"] == kind)]
        at = [of_way[(of_way["n"] == n) & (of_way["ranks"] == ranks)] for n, ranks in points]
        lines.append([f"stage {stage}, {kind}", *map(_share_of, at)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _share_of(rows: NDArray[Any]) -> str:
    reading, writing = (
        np.median(rows["seconds"][rows["phase"] == phase]) for phase in ("read", "write")
    )
    return f"{100 * io_share(rows):.0f} % ({reading:.2f}, {writing:.2f})"


def speed_up(
    rows: NDArray[Any], way: tuple[int, str], base: tuple[int, str] = WAYS[0]
) -> dict[int, tuple[float, float, float]]:
    """Speedup of `way` over `base` (both of WAYS) in the phase of `rows`, on the same ranks:
    {ranks: (lower, ratio of the medians, upper)}.

    rows   of one phase and one size. Raises InputError for rows of several.

    The bounds are a 95 % confidence interval, the percentiles of DRAWS bootstrap samples (Efron and
    Tibshirani, An Introduction to the Bootstrap, 1993, section 13.3), identical on every call.
    """
    if len(np.unique(rows[["n", "phase"]])) != 1:
        raise InputError("speed_up: rows of several phases or sizes; choose one of each")
    found = {}
    for ranks in np.unique(rows["ranks"]).tolist():
        slow, fast = (_seconds(rows, one, ranks) for one in (base, way))
        if len(slow) and len(fast):
            ratios = _medians(slow, SEED_SLOW) / _medians(fast, SEED_FAST)
            lower, upper = np.percentile(ratios, [2.5, 97.5])
            ratio = np.median(slow) / np.median(fast)
            found[ranks] = float(lower), float(ratio), float(upper)
    return found


def _seconds(rows: NDArray[Any], way: tuple[int, str], ranks: int) -> NDArray[np.float64]:
    stage, kind = way
    return rows["seconds"][
        (rows["stage"] == stage) & (rows["files"] == kind) & (rows["ranks"] == ranks)
    ]


def _medians(seconds: NDArray[np.float64], seed: int) -> NDArray[np.float64]:
    """Medians of DRAWS samples of `seconds`, with replacement."""
    drawn = np.random.default_rng(seed).integers(len(seconds), size=(DRAWS, len(seconds)))
    return np.median(seconds[drawn], axis=1)


def numbers(text: str) -> tuple[int, ...]:
    """The numbers in "4,9,16", as an argument's type; ValueError for one below 1."""
    return tuple(positive(word) for word in text.split(","))


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure all sizes and numbers of ranks and write the file."""
    sizes, ranks = (",".join(map(str, usual)) for usual in (SIZES, RANKS))
    parser = TABLE.parser()
    parser.add_argument(
        "repetitions", nargs="?", type=int, default=REPETITIONS, help=f"default: {REPETITIONS}"
    )
    parser.add_argument(
        "--sizes",
        type=numbers,
        default=sizes,
        metavar="N,N",
        help=f"rows of the matrices (default: {sizes})",
    )
    parser.add_argument(
        "--ranks",
        type=numbers,
        default=ranks,
        metavar="P,P",
        help=f"square numbers (default: {ranks})",
    )
    parser.add_argument(
        "--hosts",
        metavar="NAME",
        help="emulated hosts with as many ranks on each, e.g. two-hosts (default: this machine)",
    )
    parser.add_argument(
        "--page",
        type=Path,
        metavar="FILE.md",
        help="measure nothing, but write the tables of data/ to this page, docs/performance.md",
    )
    options = parser.parse_args(arguments)
    if options.page:
        update(options.page, tables())
        return
    on = {} if options.hosts is None else {"hosts": options.hosts}
    rows = measure(
        options.sizes, options.ranks, repetitions=options.repetitions, progress=True, **on
    )
    write(rows, options.file)


if __name__ == "__main__":
    TABLE.run(main)
