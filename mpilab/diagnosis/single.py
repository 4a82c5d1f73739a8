"""Wrong results of collectives in which each buffer is one block: bcast, scatter and reductions."""

from typing import NamedTuple

from mpilab.diagnosis import contributions, messages, parts, reductions, shares, words
from mpilab.diagnosis.clauses import clause, content, whereabouts
from mpilab.diagnosis.model import Table
from mpilab.diagnosis.parts import RIGHT
from mpilab.expected import GUARD_BYTES

SHOWN_RANKS, SHOWN_PARTS = 16, 6
_EXPLAINED_BY = {"bcast": messages, "scatter": shares, "reduce": reductions,
                 "allreduce": reductions}  # fmt: skip


class Told(NamedTuple):
    """What the memory tells: pattern, hint and Places as in a Diagnosis; `is_certain` where no
    call could tell it better. `headline` where the pattern knows it better than the parts."""

    pattern: str = ""
    hint: str = ""
    places: tuple = ()
    headline: str = ""
    is_certain: bool = False


def read(case, outputs):
    """{rank: [Part]} of the ranks whose block is not right; of a rank whose memory has the wrong
    size nothing is said."""
    found, expected = {}, case.expected()
    reader = contributions if case.collective in ("reduce", "allreduce") else parts
    for rank, output in enumerate(outputs[: case.ranks]):
        right = expected[rank]
        there = case.count > 0 and len(right) > 2 * GUARD_BYTES
        if there and output.received.shape == right.shape:
            got, wanted = (parts.elements(case, memory) for memory in (output.received, right))
            if (got != wanted).any():
                found[rank] = reader.parts(case, rank, output.received, right)
    return found


def explain(evidence, case, by_rank):
    """Told of the parts that `read` has found; None where there are none."""
    if not by_rank:
        return None
    return Told(*_EXPLAINED_BY[case.collective].explain(evidence, case, by_rank))


def headline(case, by_rank):
    """What is wrong on these ranks, behind 'wrong result on ranks 0 to 3: '."""
    clauses = {rank: _clauses(case, of_rank) for rank, of_rank in by_rank.items()}
    first, said = next(iter(clauses.items()))
    if len(clauses) == 1 or all(other == said for other in clauses.values()):
        return said
    return f"on rank {first}, {said}"


def _clauses(case, of_rank):
    wrong = [part for part in of_rank if part.held.kind != RIGHT]
    said = [clause(part, case.count) for part in wrong[:2]]
    if len(wrong) > 2:
        said.append(f"{len(wrong) - 2} more parts are not right either")
    return words.listing(said)


def table(case, by_rank):
    """Table: what the blocks of the ranks `by_rank` hold, part by part."""
    rows = []
    for rank, of_rank in list(by_rank.items())[:SHOWN_RANKS]:
        wrong = [part for part in of_rank if part.held.kind != RIGHT]
        rows += [(rank, whereabouts(part, case.count), content(part, case.count))
                 for part in wrong[:SHOWN_PARTS]]  # fmt: skip
        if len(wrong) > SHOWN_PARTS:
            rows.append((rank, "…", f"{len(wrong) - SHOWN_PARTS} more parts are not right"))
    more = len(by_rank) - SHOWN_RANKS
    title = "What is not right" + (f" (and on {words.number(more, 'more rank')})" if more > 0
                                   else "")  # fmt: skip
    holds = "is made of" if case.collective in ("reduce", "allreduce") else "holds"
    return Table(title, ("rank", "elements", holds), tuple(rows))
