"""Time the stages of Cannon's algorithm over sizes and ranks: the table shown in lab 05.

    python -m mpilab.datasets.cannon [data/cannon-scaling.csv [REPETITIONS]]   measure, write it
    python -m mpilab.datasets.cannon mine.csv 3 --sizes 2048,4096 --ranks 4,9,16

Each row is one phase of one run (mpilab.mpiio.cannon). The files have just been written and are in
the page cache, so this measures the program, not a disk.
"""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm import tqdm

from mpilab.errors import InputError, MpilabError
from mpilab.measure.dataset import DATA, Dataset, stamp
from mpilab.mpiio import cannon
from mpilab.mpiio.files import make
from mpilab.util.units import positive

LARGE_CSV = DATA / "cannon-large.csv"  # sizes like the worksheet's, fewer repetitions
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
    program="mpilab.datasets.cannon",
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
) -> NDArray[Any]:
    """Run each of `ways` on each number of ranks with n x n matrices of each size; array of ROW.

    All combinations run once, then again, so that changes on the machine affect all of them
    equally. All of SIZES and RANKS thirty times takes about five minutes.

    Raises InputError for combinations that cannot be run, MpilabError for a run that fails, or
    whose C is not bitwise identical to that of the first run with matrices of this size.
    """
    if repetitions < 1:
        raise InputError(f"repetitions={repetitions}: must be 1 or more")
    about = stamp()
    rows = []
    first: dict[int, tuple[str, str]] = {}
    with tempfile.TemporaryDirectory(prefix="mpilab-cannon-") as folder:
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
            done = cannon.run(stage, size, *operands[n, kind])
            mine = f"stage {stage} with {kind} files on {size} ranks", done.digest
            _check_same(n, first.setdefault(n, mine), mine)
            in_mpi = done.mpi_seconds.mean(axis=0).round(7).tolist()
            for (phase, seconds), spent in zip(done.seconds.items(), in_mpi, strict=True):
                rows.append((*about, stage, kind, size, n, number, phase, spent, seconds))
    return TABLE.array(rows)


def _operands(folder: Path, n: int, kind: str, seed: int) -> list[Path]:
    files = [folder / f"{name}-{n}.{kind}" for name in "ab"]
    for number, file in enumerate(files):
        make(file, n, n, seed=seed + number, text=kind == TEXT)
    return files


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
    options = parser.parse_args(arguments)
    rows = measure(options.sizes, options.ranks, repetitions=options.repetitions, progress=True)
    write(rows, options.file)


if __name__ == "__main__":
    TABLE.run(main)
