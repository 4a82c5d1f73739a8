"""What every answer to a kernel exercise must stand, by *facet*: the standard battery.

An item of a rubric names the facets that it stands for (`battery = ["roots"]`), and gets their
cases. All facets of a collective must be named by the items of an exercise, or be left out with a
reason (`narrow`), so no rubric can forget one. `FACETS` says what each facet is, and which
collectives have it.

The cases are not all combinations: each facet varies one thing thoroughly, and takes the values of
others in turn, so that each value meets many others. Except in the facets about them, numbers of
ranks are powers of two, and the root is rank 0: an answer that is right only there loses those
facets, and no others. Most cases are only simulated; those marked `real` are run on Open MPI, too.

A read has facets of its own: its cases are matrices, of which each rank reads its part. No part is
empty, and no blocks are cyclic, except in the facets about them. Files cannot be simulated, so all
are run on Open MPI, on up to 9 ranks: each number costs the start of a job, for both witnesses.
With 13 and 16 ranks, a run would take a third longer, and their grids are of the same kinds.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from mpilab.cases.case import REDUCIBLE, Collective, collective_of
from mpilab.cases.data import DATATYPES
from mpilab.errors import InputError
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Place
from mpilab.util.text import suggestion

# Elements of a block: one, odd, and such that no other size fits as well.
COUNTS = (1, 7, 2, 33, 3, 100, 5, 12)
# Beyond the size up to which MPI_Send returns at once: in the simulation (65,536 bytes) and, far
# beyond, on Open MPI.
LONG = 16385
OTHER_TYPES = tuple(name for name in DATATYPES if name not in ("int", "double"))


@dataclass(frozen=True)
class Trial:
    """A case of a facet: ranks, the fields of a Case in which it differs from the plainest one,
    and whether it is run on Open MPI, too."""

    ranks: int
    fields: dict[str, Any]
    real: bool = False


@dataclass(frozen=True)
class Facet:
    """One kind of thing that an answer must stand.

    words    completes "It must be right …".
    trials   its Trials for a collective.
    concerns whether a collective has it.
    """

    words: str
    trials: Callable[[Collective], Iterator[Trial]]
    concerns: Callable[[Collective], bool] = lambda collective: not collective.reads


def _sizes(real: Collection[int], simulated: Collection[int]) -> Iterator[Trial]:
    """Two counts for each number of ranks."""
    counts = cycle(COUNTS)
    for ranks in (*real, *simulated):
        for _ in range(2):
            yield Trial(ranks, {"count": next(counts)}, ranks in real)


def _powers(_: Collective) -> Iterator[Trial]:
    yield from _sizes((1, 2, 4, 8), (16, 64))


def _others(_: Collective) -> Iterator[Trial]:
    yield from _sizes((3, 5), (7, 13, 33))


def _roots(_: Collective) -> Iterator[Trial]:
    counts = cycle(COUNTS)
    for ranks, roots, real in (
        (2, (1,), True),
        (4, (1, 2, 3), True),
        (8, (1, 3, 7), False),
        (16, (5, 15), False),
        (64, (40,), False),
    ):
        for root in roots:
            yield Trial(ranks, {"count": next(counts), "root": root}, real)
    # A rank that receives from anybody may get a message of the next call before its own.
    for ranks, seed in ((8, 4), (8, 6), (16, 3)):
        yield Trial(ranks, {"count": next(counts), "sequence": "roots", "latencies": seed})


def _other_roots(_: Collective) -> Iterator[Trial]:
    counts = cycle(COUNTS)
    for ranks, roots in ((5, (2, 4)), (3, (1, 2)), (7, (3, 6)), (13, (1, 6, 12)), (33, (17,))):
        for root in roots:
            yield Trial(ranks, {"count": next(counts), "root": root}, ranks == 5)


def _communicators(_: Collective) -> Iterator[Trial]:
    counts = cycle(COUNTS)
    for ranks, fields, real in (
        (5, {"reversed": True}, True),
        (2, {"reversed": True}, False),
        (8, {"reversed": True}, False),
        (13, {"reversed": True}, False),
        (3, {"sequence": "duplicate"}, True),
        (4, {"sequence": "duplicate"}, False),
        (5, {"sequence": "parts"}, True),
        (2, {"sequence": "parts"}, False),
        (8, {"sequence": "parts"}, False),
        (13, {"sequence": "parts", "reversed": True}, False),
    ):
        yield Trial(ranks, {"count": next(counts), **fields}, real)


def _again(_: Collective) -> Iterator[Trial]:
    counts = cycle(COUNTS)
    for ranks, real in ((4, True), (2, False), (8, False)):
        yield Trial(ranks, {"count": next(counts), "sequence": "again"}, real)


def _counts(_: Collective) -> Iterator[Trial]:
    yield Trial(2, {"count": 0}, True)
    yield Trial(4, {"count": 0}, True)
    yield Trial(1, {"count": 0})
    yield Trial(8, {"count": 0})


def _types_of(collective: Collective) -> Sequence[str]:
    if collective.reduces:
        return [name for name in REDUCIBLE if name != "int"]
    return [name for name in OTHER_TYPES if not (collective.one_type and name == "mixed")]


def _datatypes(collective: Collective) -> Iterator[Trial]:
    ranks, counts = cycle((4, 2)), cycle((3, 1, 2))
    for name in _types_of(collective):
        yield Trial(next(ranks), {"count": next(counts), "datatype": name}, True)
        yield Trial(8, {"count": next(counts), "datatype": name})
        yield Trial(next(ranks), {"count": next(counts), "datatype": name})


def _in_place(collective: Collective) -> Iterator[Trial]:
    counts = cycle((3, 1, 2))
    for number, name in enumerate(("int", *_types_of(collective))):
        few = (4, 2, 8)[number % 3]
        yield Trial(few, {"count": next(counts), "datatype": name, "in_place": True}, few < 8)
    for ranks in (1, 16):
        yield Trial(ranks, {"count": next(counts), "in_place": True})


def _unused(collective: Collective) -> Iterator[Trial]:
    names, counts = cycle(("int", "vector", "mixed")), cycle(COUNTS)
    for ranks, in_place, real in (
        (4, False, True),
        (2, True, True),
        (2, False, False),
        (4, True, False),
        (8, False, False),
        (16, True, False),
    ):
        fields = {"count": next(counts), "datatype": next(names), "unused": True}
        yield Trial(ranks, fields | {"in_place": in_place or not collective.is_rooted}, real)


def _strict(collective: Collective) -> Iterator[Trial]:
    for ranks, real in ((2, True), (4, True), (8, False), (32, False)):
        for count in (1, 64):
            yield Trial(ranks, {"count": count, "strict": True}, real)
    yield Trial(1, {"count": 7, "strict": True})  # who sends to itself
    if collective.has_blocks:
        yield Trial(2, {"count": LONG}, True)
        yield Trial(4, {"count": LONG})


def _arrivals(_: Collective) -> Iterator[Trial]:
    for seed, (ranks, count) in enumerate(((4, 7), (8, 3), (16, 2)), start=1):
        yield Trial(ranks, {"count": count, "latencies": seed})


def _operations(_: Collective) -> Iterator[Trial]:
    counts = cycle(COUNTS)
    for ranks in (2, 5, 3, 4, 7, 8, 13, 16):
        yield Trial(ranks, {"count": next(counts), "op": "compose"}, ranks in (2, 5))


def _patterns(_: Collective) -> Iterator[Trial]:
    counts = cycle((4, 2, 8))
    for ranks, real in ((4, True), (2, True), (1, False), (8, False), (16, False)):
        for pattern in ("ragged", "sparse"):
            yield Trial(ranks, {"count": next(counts), "pattern": pattern}, real)


def _has_blocks(collective: Collective) -> bool:
    return collective.has_blocks and not collective.reads


def _reads(collective: Collective) -> bool:
    return collective.reads


def _read(ranks: int, matrix: str, **fields: Any) -> Trial:
    return Trial(ranks, {"count": 1, "datatype": "double", "matrix": matrix, **fields}, True)


def _square_grids(_: Collective) -> Iterator[Trial]:
    for ranks in (1, 4, 9):
        for matrix in ("18x18", "13x7"):
            yield _read(ranks, matrix)


def _other_grids(_: Collective) -> Iterator[Trial]:
    for ranks, matrix in (
        (2, "13x7 on 1x2"),
        (2, "9x4 on 2x1"),
        (3, "13x7"),
        (5, "14x23"),
        (5, "23x14 on 5x1"),
        (6, "12x12"),
        (6, "13x7 on 3x2"),
        (7, "23x13 on 1x7"),
        (8, "14x23"),
    ):
        yield _read(ranks, matrix)


def _lines(_: Collective) -> Iterator[Trial]:
    for ranks, matrix in (
        (1, "1x1"),
        (1, "5x1"),
        (4, "1x23 on 1x4"),
        (4, "23x1 on 4x1"),
        (6, "6x1 on 6x1"),
    ):
        yield _read(ranks, matrix)


def _empty_parts(_: Collective) -> Iterator[Trial]:
    for ranks, matrix in (
        (6, "3x2 on 3x2"),  # none is empty, but a rank more or less would be
        (6, "1x5 on 3x2"),
        (6, "5x3 on 6x1"),
        (6, "5x2 on 2x3"),
        (6, "1x1 on 2x3"),
        (6, "0x4 on 2x3"),
        (4, "2x3 on 4x1"),
        (4, "0x3"),
    ):
        yield _read(ranks, matrix)


def _cyclic(_: Collective) -> Iterator[Trial]:
    for ranks, matrix in (
        (6, "12x10 by 2x3 on 2x3"),
        (6, "13x11 by 2x3 on 3x2"),
        (6, "9x9 by 1x1 on 2x3"),
        (6, "7x3 by 4x2 on 1x6"),
        (4, "8x9 by 1x2"),
    ):
        yield _read(ranks, matrix)


def _communicators_of_reads(_: Collective) -> Iterator[Trial]:
    for ranks, matrix, fields in (
        (4, "13x7", {"reversed": True}),
        (6, "16x16", {"reversed": True}),
        (4, "16x16", {"bystanders": 2}),
        (4, "13x7", {"bystanders": 2, "reversed": True}),
        (4, "18x18", {"bystanders": 2}),
    ):
        yield _read(ranks, matrix, **fields)


def _again_of_reads(_: Collective) -> Iterator[Trial]:
    for ranks, matrix in ((4, "13x7"), (1, "18x18")):
        yield _read(ranks, matrix, warmup=2)


# From here on, on square grids, with sizes and domains that divide.
def _buffers(_: Collective) -> Iterator[Trial]:
    for size in (5, 20, 64, 127):  # the first one is less than an element
        yield _read(4, "16x16", buffer=size)


def _aggregators(_: Collective) -> Iterator[Trial]:
    for few in (1, 2, 4):
        yield _read(4, "16x16", aggregators=few, buffer=64)


def _strict_of_reads(_: Collective) -> Iterator[Trial]:
    for few in (2, 4):
        yield _read(4, "12x12", strict=True, aggregators=few, buffer=128)


FACETS = {
    "powers-of-two": Facet("on 1, 2, 4, 8, 16 and 64 ranks", _powers),
    "other-sizes": Facet("on 3, 5, 7, 13 and 33 ranks", _others),
    "roots": Facet("from every kind of root", _roots, lambda collective: collective.is_rooted),
    "other-roots": Facet(
        "from every kind of root on 3, 5, 7, 13 and 33 ranks",
        _other_roots,
        lambda collective: collective.is_rooted,
    ),
    "communicators": Facet(
        "on reversed communicators, duplicates and parts, several in one job", _communicators
    ),
    "again": Facet("when it is called several times", _again),
    "counts": Facet("without elements", _counts, _has_blocks),
    "datatypes": Facet(
        "for types with holes, with a nonzero lower bound, or backward in memory",
        _datatypes,
        _has_blocks,
    ),
    "in-place": Facet(
        "with MPI_IN_PLACE",
        _in_place,
        lambda collective: collective.in_place and collective.has_blocks,
    ),
    "unused": Facet(
        "whatever the arguments are that MPI ignores on a rank",
        _unused,
        lambda collective: (
            collective.in_place
            and collective.has_blocks
            and not collective.one_type
            and not collective.exchanges
        ),
    ),
    "operations": Facet(
        "for operations that do not commute", _operations, lambda collective: collective.reduces
    ),
    "patterns": Facet(
        "for blocks of different sizes, anywhere in the buffers",
        _patterns,
        lambda collective: collective.exchanges,
    ),
    "strict": Facet("if no send is buffered, because of strict mode or of long blocks", _strict),
    "arrivals": Facet("in whatever order messages arrive", _arrivals),
    "square-grids": Facet("on 1, 4 and 9 ranks", _square_grids, _reads),
    "other-grids": Facet(
        "on 2, 3, 5, 6, 7 and 8 ranks, also on grids with one row or column",
        _other_grids,
        _reads,
    ),
    "lines": Facet("for matrices of one row, one column or one element", _lines, _reads),
    "empty-parts": Facet("where ranks, or all of them, have empty parts", _empty_parts, _reads),
    "cyclic": Facet("for block-cyclic matrices", _cyclic, _reads),
    "communicators-of-reads": Facet(
        "on reversed communicators and on a part of all ranks, several in one job",
        _communicators_of_reads,
        _reads,
    ),
    "again-of-reads": Facet("when a file is read several times", _again_of_reads, _reads),
    "buffers": Facet("with buffers that hold a few elements, or less than one", _buffers, _reads),
    "aggregators": Facet("with one aggregator, with some, or with all", _aggregators, _reads),
    "strict-reads": Facet("if no send is buffered", _strict_of_reads, _reads),
}


def facets_of(collective: str) -> list[str]:
    """The facets that a collective has."""
    about = collective_of(collective)
    return [name for name, one in FACETS.items() if one.concerns(about)]


def trials(collective: str, names: Sequence[str]) -> list[Trial]:
    """The Trials of these facets of a collective; InputError for one that it does not have."""
    known = facets_of(collective)
    for name in names:
        if name not in known:
            raise InputError(
                f"battery: facet {name!r} is none of a {collective}; it has {', '.join(known)}"
                f"{suggestion(name, known)}"
            )
    about = collective_of(collective)
    found = [trial for name in names for trial in FACETS[name].trials(about)]
    if not about.has_blocks:
        found = [Trial(one.ranks, {**one.fields, "count": 0}, one.real) for one in found]
    return found


def check_complete(collective: str, named: Collection[str], narrow: dict[str, str]) -> None:
    """Raise InputError unless each facet is named by an item, or left out with a reason."""
    known = facets_of(collective)
    for name, reason in narrow.items():
        if name not in known:
            raise InputError(
                f"narrow: {name!r} is no facet of a {collective}; it has {', '.join(known)}"
            )
        if not isinstance(reason, str) or len(reason.split()) < 3:
            raise InputError(f"narrow: {name} = {reason!r}: say why in a sentence")
        if name in named:
            raise InputError(f"narrow: {name!r} is left out, but an item has it; remove one")
    missing = [name for name in known if name not in named and name not in narrow]
    if missing:
        raise InputError(
            f"the battery is not complete: no item is for {', '.join(map(repr, missing))}; add it "
            "to `battery` of an item, or to `narrow` with the reason why it is left out"
        )


# Nodes of the same size, for numbers of ranks that are powers of two.
_REGULAR = {
    2: "1x2x1 rr",
    4: "1x2x2 rr",
    8: "2x2x2 rr",
    16: "2x2x4 rr",
    32: "4x2x4 rr",
    64: "4x4x4 rr",
}


def places_on_nodes(ranks: int) -> tuple[Place, ...]:
    """Places for 2 ranks or more: as the battery varies one thing at a time, powers of two are on
    nodes of the same size, in RR order; others on nodes of different size, in no order."""
    if ranks in _REGULAR:
        return places_of(_REGULAR[ranks])
    nodes = max(2, ranks // 4)
    return tuple(
        Place(f"n{number}", "ab"[number % 2])
        for number in ((7 * rank + rank // 3) % nodes for rank in range(ranks))
    )
