"""Wrong results of a scatter: whose block a rank has got, or which part of its own."""

from mpilab.diagnosis import words
from mpilab.diagnosis.clauses import clause
from mpilab.diagnosis.messages import (
    COUNT_FROM_ROOT,
    main_part,
    never_written,
    sent_too_early,
)
from mpilab.diagnosis.parts import BLOCK, MOVED, OLD, UNTOUCHED

OWN_MISSING, ANOTHER, DISPLACED = (
    "own block missing", "the block of another rank", "parts in the wrong place")  # fmt: skip


def explain(evidence, case, by_rank):
    """(pattern, hint, Places) of {rank: [Part]}, as mpilab.diagnosis.single has read them."""
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED and list(by_rank) == [case.root] and part.elements == case.count:
        hint = (
            "The root also has to put its own block into its receive buffer, unless recvbuf is "
            "MPI_IN_PLACE: take_own_block in mpilab.h does that."
        )
        return OWN_MISSING, hint, ()
    if kind == UNTOUCHED:
        return never_written(evidence, case, by_rank)
    if kind == BLOCK:
        return ANOTHER, _of_another(case, by_rank), ()
    if kind == OLD:
        return sent_too_early(evidence, case, by_rank, rank, part)
    if kind == MOVED:
        return DISPLACED, _displaced(case, rank, part), ()
    return "", "", ()


def _of_another(case, by_rank):
    """Whose blocks these ranks have got, and by which rule, if there is one."""
    whose = {
        rank: part.held.rank
        for rank, of_rank in by_rank.items() for part in of_rank if part.held.kind == BLOCK
    }  # fmt: skip
    said = [f"rank {rank} has the block of rank {source}"
            for rank, source in list(whose.items())[:3]]  # fmt: skip
    more = ", and so on" if len(whose) > 3 else ""
    rule = rotation(case, whose)
    hint = f"{words.capital(words.listing(said))}{more}: block i of the root's send buffer is that "
    hint += f"of rank i. {rule}" if rule else "of rank i. "
    return hint + "Look at which block goes with which destination."


def rotation(case, whose):
    """A sentence where all of `whose` {rank: rank whose block it has} are off by the root."""
    steps = {(source - rank) % case.ranks for rank, source in whose.items()}
    if case.root == 0 or len(whose) < 2 or len(steps) != 1:
        return ""
    (step,) = steps
    if step not in (case.root, -case.root % case.ranks):
        return ""
    return (
        f"All are off by {case.root}, the number of the root: blocks are counted from the root in "
        f"one place, and from rank 0 in another. {COUNT_FROM_ROOT} "
    )


def _displaced(case, rank, part):
    return (
        f"On rank {rank}, {clause(part, case.count)}; its own block begins at element "
        f"{part.held.begin}, behind {words.number(rank, 'block')} of "
        f"{words.number(case.count, 'element')}. block(sendbuf, rank, sendcount, sendtype) gives "
        "its address."
    )
