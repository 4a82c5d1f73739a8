"""Show the effect that each lab teaches, on few ranks and on the lab's own simulated cluster.

python tools/effects.py      print the table, and update docs/instructors.md

The ratios are of simulated times, of requests that are counted in lab 05. They are the same on
every machine.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import mpilab
from mpilab.algorithms.requests import requests_of
from mpilab.cases.distribution import distribution
from mpilab.util.text import update

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "instructors.md"
SOURCES = sorted((ROOT / "labs" / "source").glob("*.py"))
HEAD = (
    "| lab | effect | few | ratio | many | ratio |",
    "|---|---|---|---:|---|---:|",
)


@dataclass(frozen=True)
class Effect:
    """Something that a lab shows: the ratio of two times, or of two counts.

    few, many   where: a platform, or the arguments of a matrix
    ratio       a function of one of these
    """

    lab: str
    what: str
    few: str
    many: str
    ratio: Callable[[str], float]


def seconds(kernel: str, platform: str, size: int, order: str = "seq", **more: int) -> float:
    """The simulated time of a kernel with one rank on each slot."""
    (row,) = mpilab.simulated.sweep([kernel], platform, sizes=[size], order=order, **more)
    return float(row["span_s"])


def faster(slow: str, fast: str, size: int, order: str = "seq") -> Callable[[str], float]:
    """How many times as long `slow` takes as `fast`, by platform."""
    return lambda where: seconds(slow, where, size, order) / seconds(fast, where, size, order)


def by_node(kernel: str, size: int, **more: int) -> Callable[[str], float]:
    """How many times as long a kernel takes with the ranks mapped by node, not by slot."""
    return lambda where: (
        seconds(kernel, where, size, "rr", **more) / seconds(kernel, where, size, "seq", **more)
    )


def requests(where: str) -> float:
    """How many times as many requests strided reads make as a two-phase read, by matrix."""
    matrix, _, ranks = where.partition(" on ")
    about = distribution(matrix, int(ranks.removesuffix(" ranks")))
    return len(requests_of("strided", about)) / len(requests_of("two-phase", about))


def exchange(where: str) -> float:
    """How many times as long rank 0 scatters a matrix as ranks exchange it after a two-phase read,
    by grid: in each of its rows, all ranks exchange blocks of the same size."""
    grid = int(where.partition(" ")[0])
    size = 8 * 2048**2 // grid**3
    scattered = seconds("scatter_linear_nb", f"flat-{grid**2}x1", grid * size)
    return scattered / seconds("alltoallv_pairwise", f"flat-{grid}x1", size)


EFFECTS = (
    Effect(
        "00-first-contact",
        "passing 64 bytes on from rank to rank, mapped by node instead of by slot",
        *("flat-2x2", "flat-8x8"),
        by_node("bcast_chain", 64, fanout=1, segment=64),
    ),
    Effect(
        "01-collective-algorithms",
        "64 bytes down four chains instead of the binomial tree",
        *("flat-4x1", "flat-1024x1"),
        faster("bcast_chain", "bcast_binomial", 64),
    ),
    Effect(
        "01-collective-algorithms",
        "binomial tree for 256 KiB instead of the pipeline",
        *("flat-4x1", "flat-64x1"),
        faster("bcast_binomial", "bcast_pipeline", 262144),
    ),
    Effect(
        "02-allgather",
        "ring for blocks of 32 bytes instead of Bruck's algorithm",
        *("flat-4x1", "flat-64x1"),
        faster("allgather_ring", "allgather_bruck", 32),
    ),
    Effect(
        "03-rank-mapping",
        "ring with blocks of 16 KiB, mapped by node instead of by slot",
        *("flat-2x2", "flat-16x12"),
        by_node("allgather_ring", 16384),
    ),
    Effect(
        "04-topology",
        "binomial broadcast of 1 MiB in RR order instead of the one by node and group",
        *("groups-2x2x2", "groups-6x6x6"),
        faster("bcast_binomial", "bcast_node_group", 1 << 20, "rr"),
    ),
    Effect(
        "05-parallel-io",
        "requests of strided reads instead of the two-phase read",
        *("64x64 on 4 ranks", "4096x4096 on 16 ranks"),
        requests,
    ),
    Effect(
        "05-parallel-io",
        "2048 × 2048 doubles scattered by rank 0 instead of the exchange of a two-phase read",
        *("2 x 2 ranks", "16 x 16 ranks"),
        exchange,
    ),
    Effect(
        "06-tune-and-scale",
        "binomial broadcast of 256 KiB in RR order instead of the pipelined tree",
        *("groups-2x2x1", "groups-4x4x8"),
        faster("bcast_binomial", "bcast_pipelined", 262144, "rr"),
    ),
)


@cache
def table() -> str:
    """A Markdown table with a row for each effect."""
    rows = [
        f"| {each.lab} | {each.what} | {each.few} | {each.ratio(each.few):.2f} | {each.many} | "
        f"{each.ratio(each.many):.2f} |"
        for each in EFFECTS
    ]
    return "\n".join([*HEAD, *rows])


if __name__ == "__main__":
    found = table()
    print(found)
    update(PAGE, {"effects": found})
