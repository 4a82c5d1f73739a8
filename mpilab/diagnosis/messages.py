"""Wrong results of a bcast: which part of the message has not come, or is another one."""

from collections import Counter

from mpilab.datatypes import datatype
from mpilab.diagnosis import deliveries, words
from mpilab.diagnosis.clauses import clause
from mpilab.diagnosis.parts import MOVED, OLD, RIGHT, UNTOUCHED, WRONG

WRONG_ROOT, ROOT_CHANGED, NEVER, PARTLY, EARLY, DISPLACED = (
    "wrong root", "the root's message changed", "message never received",
    "part of the message missing", "a message sent on too early", "parts in the wrong place",
)  # fmt: skip
COUNT_FROM_ROOT = (
    "Ranks have to be counted from the root: virtual rank (rank - root + size) % size, and back "
    "with (virtual + root) % size."
)


def explain(evidence, case, by_rank):
    """(pattern, hint, Places, headline, is certain) of {rank: [Part]}, as mpilab.diagnosis.single
    has read them."""
    taken = _taken_for_root(case, by_rank)
    if taken is not None:
        hint = (
            f"Rank {taken}'s buffer was sent out, also to the root, whose message is lost. "
            f"{COUNT_FROM_ROOT}"
        )
        headline = (
            f"the root, rank {case.root}, and the others have got what was in rank {taken}'s buffer"
        )
        return WRONG_ROOT, hint, deliveries.of_one_line(evidence, [taken])[1], headline, True
    if case.root in by_rank:
        part = _largest(by_rank[case.root])
        hint = (
            f"In a bcast the root's buffer is the message: rank {case.root} may only read it. Here "
            f"{clause(part, case.count)}."
        )
        return ROOT_CHANGED, hint, (), "the root's own message was overwritten", True
    kind, rank, part = main_part(by_rank)
    if kind == UNTOUCHED:
        return never_written(evidence, case, by_rank)
    if kind == OLD:
        return sent_too_early(evidence, case, by_rank, rank, part)
    if kind == MOVED:
        return displaced(case, rank, part)
    return "", "", ()


def main_part(by_rank):
    """(kind, rank, Part): the kind that most wrong elements are of, and the largest such part."""
    sizes = Counter()
    for of_rank in by_rank.values():
        for part in of_rank:
            if part.held.kind != RIGHT:
                sizes[part.held.kind] += part.elements
    kind = max(sizes, key=lambda one: (sizes[one], one != WRONG))
    return kind, *max(
        ((rank, part) for rank, of_rank in by_rank.items() for part in of_rank
         if part.held.kind == kind), key=lambda one: one[1].elements,
    )  # fmt: skip


def never_written(evidence, case, by_rank):
    """(pattern, hint, Places) where blocks, or parts of them, are as before the call."""
    whole = [rank for rank, of_rank in by_rank.items()
             if [part.held.kind for part in of_rank] == [UNTOUCHED]]  # fmt: skip
    if len(whole) == len(by_rank):
        fact = deliveries.arrived(evidence, whole[0])
        hint = (
            f"{fact} Nothing was written to {words.ranks(whole)}: does every rank but the root "
            "have one that sends to it, whatever the root, and also if the number of ranks is no "
            "power of two?"
        )
        return NEVER, hint.strip(), ()
    rank, of_rank = next((r, p) for r, p in by_rank.items() if r not in whole)
    part = _largest([part for part in of_rank if part.held.kind == UNTOUCHED] or of_rank)
    facts = [remainder(case, part), deliveries.arrived(evidence, rank)]
    question = (
        "Are all pieces sent, also the last one, which may be shorter?"
        if part.end == case.count
        else "Does every piece go to its own place?"
    )
    return PARTLY, " ".join(filter(None, [*facts, question])), ()


def remainder(case, part):
    """Why a message may end before `part`, by its numbers alone: ''  where they tell nothing."""
    size = datatype(case.datatype)[1].size
    if part.end != case.count or part.begin == 0:
        return ""
    cuts = [(case.ranks, case.count // case.ranks, f"parts, one for each of {case.ranks} ranks,")]
    if case.segment:
        elements = max(case.segment // size, 1)
        cuts.insert(0, (case.count // elements, elements, f"segments of {case.segment} bytes"))
    for pieces, elements, what in cuts:
        if elements and part.begin == pieces * elements:
            of = words.number(elements, "element")
            return (
                f"{case.count} elements are {pieces} {what} with {of} each, and "
                f"{case.count - pieces * elements} left over: just what is missing."
            )
    return ""


def sent_too_early(evidence, case, by_rank, rank, part):
    """(pattern, hint, Places) where a rank has sent on what it had not got yet."""
    source = part.held.rank
    senders = {p.held.rank for of_rank in by_rank.values() for p in of_rank if p.held.kind == OLD}
    at, places = deliveries.of_one_line(evidence, senders)
    hint = (
        f"On rank {rank}, {clause(part, case.count)}: rank {source} has sent it on{at} before "
        "the data had come there. Receive, or wait for the receive, before you send on."
    )
    return EARLY, hint, places


def displaced(case, rank, part):
    """(pattern, hint, Places) where data lie in another place of the message."""
    hint = (
        f"On rank {rank}, {clause(part, case.count)}. Look at how the place of a piece is "
        "computed: as many elements from the beginning as all pieces before it have, each of "
        "the datatype's extent: block(buffer, first element, 1, datatype)."
    )
    return DISPLACED, hint, ()


def _largest(of_rank):
    return max((p for p in of_rank if p.held.kind != RIGHT), key=lambda part: part.elements)


def _taken_for_root(case, by_rank):
    """The rank whose buffer came to all others, the root among them; or None."""
    of_root = by_rank.get(case.root, ())
    if len(of_root) != 1 or of_root[0].held.kind != OLD:
        return None
    source = of_root[0].held.rank
    is_nowhere_right = all(
        rank in by_rank and all(part.held.kind != RIGHT for part in by_rank[rank])
        for rank in range(case.ranks)
    )
    return source if is_nowhere_right else None
