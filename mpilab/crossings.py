"""What crosses between nodes and groups: by the kernels' headers, and as recorded.

    python -m mpilab.crossings docs/topology.md     bring the tables of that page up to date

Ranks pretend to be on the nodes (mpilab.places): a kernel sends the same messages as there.
"""

import sys
from typing import NamedTuple

from mpilab.build import KERNELS, ROOT, need
from mpilab.errors import InputError
from mpilab.expected import COLLECTIVES, collective_of
from mpilab.formula import cost_of
from mpilab.harness import Case
from mpilab.launch import run_cases
from mpilab.orders import places_of
from mpilab.promises import counted, kernels_of
from mpilab.result import DONE
from mpilab.tables_in_pages import update

PAGE = ROOT / "docs" / "topology.md"
PLACES = "four-groups rr"
COUNT = 1 << 16  # ints of a block, or of the message of a bcast, reduce or allreduce: 256 KiB
# What a kernel that knows topologies is held against: the usual one that does not.
FLAT = ("bcast_binomial", "reduce_binomial", "gather_binomial", "allgather_ring", "allreduce_ring",
        "alltoallv_pairwise")  # fmt: skip
ROUTED = ("alltoallv_leaders", "alltoallv_gathervs", "alltoallv_multilane")
PAIR_BYTES = 2_000_000
BUDGET_BYTES = 8 << 20
LIMIT_S = 300.0
_RECORDED = ("node_messages", "node_bytes", "group_messages", "group_bytes")


class Crossing(NamedTuple):
    """Of one call of a kernel: (bytes between nodes, between groups) by the header, None where it
    says nothing; (messages, bytes between nodes, messages, bytes between groups) as recorded."""

    kernel: str
    promised: tuple
    recorded: tuple

    @property
    def known(self):
        """Does the header say what crosses?"""
        return None not in self.promised

    @property
    def kept(self):
        """Is nothing else recorded than the header says?"""
        return all(
            said in (None, found)
            for said, found in zip(self.promised, self.recorded[1::2], strict=True)
        )


def crosses(collective):
    """Are there messages of this collective whose bytes can be counted?"""
    about = collective_of(collective)
    return about.has_blocks and not about.reads


def crossings(collective, places=PLACES, *, count=COUNT, segment=0, fanout=0, radix=0, root=0,
              kernels=None):  # fmt: skip
    """Run kernels of a collective once, their ranks on `places`; list of Crossing.

    places    mpilab.places.Place of each rank, or a text that mpilab.orders.places_of reads.
    count, segment, fanout, radix, root   as in mpilab.promises.promises.
    kernels   names; default: all of the collective.

    Raises InputError for a collective without messages of bytes, or where a kernel did not come to
    its end.
    """
    if not crosses(collective):
        names = ", ".join(filter(crosses, COLLECTIVES))
        raise InputError(f"{collective}: sends no bytes that could cross; take one of {names}")
    places = places_of(places) if isinstance(places, str) else tuple(places)
    ranks = len(places)
    made = [
        Case(collective, ranks, count, function=kernel, places=places, segment=segment,
             fanout=fanout, radix=radix,
             root=root % ranks if collective_of(collective).is_rooted else 0)
        for kernel in (kernels_of(collective) if kernels is None else kernels)
    ]  # fmt: skip
    return [
        Crossing(case.function, cost_of(case.function).across(case),
                 tuple(recorded[name] for name in _RECORDED))
        for case, recorded in counted(made)
    ]  # fmt: skip


def as_text(rows):
    """The rows as a table of text: formula and recording side by side, and whether they agree."""
    width = max(len(row.kernel) for row in rows)
    lines = [
        f"{'':<{width}}  {'between nodes':^32}  {'between groups':^32}".rstrip(),
        f"{'kernel':<{width}}" + f"  {'messages':>8} {'header':>11} {'run':>11}" * 2,
    ]
    for row in rows:
        columns = [
            f"{row.recorded[2 * level]:>8} {'-' if said is None else said:>11} "
            f"{row.recorded[2 * level + 1]:>11}"
            for level, said in enumerate(row.promised)
        ]
        mark = "DIFFERENT" if not row.kept else "=" if row.known else ""
        lines.append(f"{row.kernel:<{width}}  {'  '.join(columns)}  {mark}".rstrip())
    return "\n".join(lines)


def held(places=PLACES, pair_bytes=PAIR_BYTES, budget=BUDGET_BYTES):
    """{kernel: most bytes of other ranks' data that a rank held} in an alltoallv by leaders.

    pair_bytes   from each rank to each other one, in whole ints.

    Raises InputError where a kernel did not come to its end.
    """
    places, found = places_of(places), {}
    cases = [
        Case("alltoallv", len(places), pair_bytes // 4, function=kernel, places=places,
             budget=budget, dump=False)
        for kernel in ROUTED
    ]  # fmt: skip
    for result in run_cases(need(KERNELS), "", cases, limit=LIMIT_S):
        if result.outcome != DONE:
            raise InputError(f"{result.case.function}: {result.outcome}: {result.detail}")
        found[result.case.function] = max(output.held for output in result.outputs)
    return found


def crossings_table():
    """Markdown: the kernels that know topologies, each collective's flat one above them."""
    heads = [f"{what} between {level}" for level in ("nodes", "groups")
             for what in ("messages", "bytes")]  # fmt: skip
    lines = [
        f"| kernel | {' | '.join(heads)} | bytes by the header |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for flat in FLAT:
        collective = flat.partition("_")[0]
        rows = crossings(collective)
        told = [row for row in rows if row.known]
        for row in [row for row in rows if row.kernel == flat and not row.known] + told:
            numbers = " | ".join(f"{number:,}" for number in row.recorded)
            mark = "-" if not row.known else "the same" if row.kept else "DIFFERENT"
            lines.append(f"| `{row.kernel}` | {numbers} | {mark} |")
    return "\n".join(lines)


def held_table():
    """Markdown: what leaders held of others' data, of their budget."""
    lines = ["| kernel | most that a rank held | of its budget of |", "|---|---:|---:|"]
    for kernel, most in held().items():
        lines.append(f"| `{kernel}` | {most / 2**20:.2f} MiB | {BUDGET_BYTES >> 20} MiB |")
    return "\n".join(lines)


def main(arguments):
    """Bring the page up to date."""
    tables = {"crossings": crossings_table(), "held": held_table()}
    update(arguments[0] if arguments else PAGE, tables)


if __name__ == "__main__":
    main(sys.argv[1:])
