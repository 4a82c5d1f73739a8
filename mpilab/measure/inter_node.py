"""Traffic between nodes and groups, as declared in the kernels' headers and as recorded.

    python -m mpilab.measure.inter_node docs/topology.md     update the tables of that page

Ranks are only assigned to nodes (mpilab.hosts.places); a kernel sends the same messages as on real
nodes.
"""

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mpilab.algorithms.formula import cost_of
from mpilab.cases.case import COLLECTIVES, Case, collective_of
from mpilab.errors import InputError
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Place
from mpilab.kernels.build import KERNELS, need
from mpilab.models.declared import counted, kernels_of
from mpilab.runners.mpirun import run_cases
from mpilab.runners.result import DONE
from mpilab.util import door
from mpilab.util.kit import ROOT
from mpilab.util.text import update

PAGE = ROOT / "docs" / "topology.md"
PLACES = "four-groups rr"
COUNT = 1 << 16  # ints of a block, or of the message of a bcast, reduce or allreduce: 256 KiB
# The usual kernels that ignore the topology, to compare topology-aware ones with.
FLAT = (
    "bcast_binomial",
    "reduce_binomial",
    "gather_binomial",
    "allgather_ring",
    "allreduce_ring",
    "alltoallv_pairwise",
)
ROUTED = ("alltoallv_leaders", "alltoallv_gathervs", "alltoallv_multilane")
PAIR_BYTES = 2_000_000
BUDGET_BYTES = 8 << 20
LIMIT_S = 300.0
_RECORDED = ("node_messages", "node_bytes", "group_messages", "group_bytes")


class Traffic(NamedTuple):
    """One call of a kernel: (bytes between nodes, between groups) according to the header, None
    where not declared; (messages, bytes between nodes, messages, bytes between groups) as
    recorded."""

    kernel: str
    declared: tuple[int | None, ...]
    recorded: tuple[int, ...]

    @property
    def known(self) -> bool:
        """Does the header declare the traffic?"""
        return None not in self.declared

    @property
    def agrees(self) -> bool:
        """Does the recording match what the header declares?"""
        return all(
            said in (None, found)
            for said, found in zip(self.declared, self.recorded[1::2], strict=True)
        )


def is_counted(collective: str) -> bool:
    """Does this collective send messages whose bytes can be counted?"""
    about = collective_of(collective)
    return about.has_blocks and not about.reads


def traffic(
    collective: str,
    places: str | Iterable[Place] = PLACES,
    *,
    count: int = COUNT,
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    root: int = 0,
    kernels: Iterable[str] | None = None,
) -> list[Traffic]:
    """Run kernels of a collective once, with their ranks on `places`; list of Traffic.

    places    mpilab.hosts.places.Place of each rank, or text for mpilab.hosts.orders.places_of.
    count, segment, fanout, radix, root   as in mpilab.models.declared.check_costs.
    kernels   names; default: all of the collective.

    Raises InputError for a collective that sends no bytes, or if a kernel did not complete.
    """
    if not is_counted(collective):
        names = ", ".join(filter(is_counted, COLLECTIVES))
        raise InputError(f"{collective}: sends no bytes between nodes; use one of {names}")
    places = places_of(places) if isinstance(places, str) else tuple(places)
    ranks = len(places)
    made = [
        Case(
            collective,
            ranks,
            count,
            function=kernel,
            places=places,
            segment=segment,
            fanout=fanout,
            radix=radix,
            root=root % ranks if collective_of(collective).is_rooted else 0,
        )
        for kernel in (kernels_of(collective) if kernels is None else kernels)
    ]
    return [
        Traffic(
            case.function,
            cost_of(case.function).across(case),
            tuple(recorded[name] for name in _RECORDED),
        )
        for case, recorded in counted(made)
    ]


def as_text(rows: Sequence[Traffic]) -> str:
    """The rows as a text table: formula and recording side by side, and whether they agree."""
    width = max(len(row.kernel) for row in rows)
    lines = [
        f"{'':<{width}}  {'between nodes':^32}  {'between groups':^32}".rstrip(),
        f"{'kernel':<{width}}" + f"  {'messages':>8} {'header':>11} {'run':>11}" * 2,
    ]
    for row in rows:
        columns = [
            f"{row.recorded[2 * level]:>8} {'-' if said is None else said:>11} "
            f"{row.recorded[2 * level + 1]:>11}"
            for level, said in enumerate(row.declared)
        ]
        mark = "DIFFERENT" if not row.agrees else "=" if row.known else ""
        lines.append(f"{row.kernel:<{width}}  {'  '.join(columns)}  {mark}".rstrip())
    return "\n".join(lines)


def held(
    places: str = PLACES, pair_bytes: int = PAIR_BYTES, budget: int = BUDGET_BYTES
) -> dict[str, int]:
    """{kernel: most bytes of other ranks' data that a rank held} in an alltoallv by leaders.

    pair_bytes   from each rank to each other rank, in whole ints.

    Raises InputError if a kernel did not complete.
    """
    placed, found = places_of(places), {}
    cases = [
        Case(
            "alltoallv",
            len(placed),
            pair_bytes // 4,
            function=kernel,
            places=placed,
            budget=budget,
            dump=False,
        )
        for kernel in ROUTED
    ]
    for result in run_cases(need(KERNELS), "", cases, limit=LIMIT_S):
        if result.outcome != DONE:
            raise InputError(f"{result.case.function}: {result.outcome}: {result.detail}")
        found[result.case.function] = max(output.held for output in result.outputs)
    return found


def traffic_table() -> str:
    """Markdown: the topology-aware kernels, each collective's flat kernel above them."""
    heads = [
        f"{what} between {level}" for level in ("nodes", "groups") for what in ("messages", "bytes")
    ]
    lines = [
        f"| kernel | {' | '.join(heads)} | bytes by the header |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for flat in FLAT:
        collective = flat.partition("_")[0]
        rows = traffic(collective)
        told = [row for row in rows if row.known]
        for row in [row for row in rows if row.kernel == flat and not row.known] + told:
            numbers = " | ".join(f"{number:,}" for number in row.recorded)
            mark = "-" if not row.known else "the same" if row.agrees else "DIFFERENT"
            lines.append(f"| `{row.kernel}` | {numbers} | {mark} |")
    return "\n".join(lines)


def held_table() -> str:
    """Markdown: the other ranks' data that leaders held, compared with their budget."""
    lines = ["| kernel | most bytes on a rank | of its budget of |", "|---|---:|---:|"]
    for kernel, most in held().items():
        lines.append(f"| `{kernel}` | {most / 2**20:.2f} MiB | {BUDGET_BYTES >> 20} MiB |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> None:
    """Update the page."""
    tables = {"traffic": traffic_table(), "held": held_table()}
    update(arguments[0] if arguments else PAGE, tables)


if __name__ == "__main__":
    sys.exit(door.run("mpilab.measure.inter_node", lambda: main(sys.argv[1:])))
