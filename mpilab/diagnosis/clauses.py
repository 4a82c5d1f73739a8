"""Parts of a message in words: 'from element 8 on nothing was written'."""

from mpilab.diagnosis import words
from mpilab.diagnosis.parts import BLOCK, COMBINED, MOVED, OLD, UNTOUCHED

TIMES = {2: "twice", 3: "three times", 4: "four times"}


def clause(part, count):
    """What is wrong with a Part of `count` elements, behind 'on rank 2, '."""
    where = _where(part, count)
    kind = part.held.kind
    if kind == UNTOUCHED:
        return _untouched(part, count)
    if kind == COMBINED:
        return _result(part, where)
    return f"{_subject(where)} {_holds(part, where)}"


def whereabouts(part, count):
    """'all', '4', '4 to 7': the elements of a Part, for a table."""
    if part.elements == count:
        return "all"
    return str(part.begin) if part.elements == 1 else f"{part.begin} to {part.end - 1}"


def content(part, count):
    """What a Part holds, for a table: 'nothing was written', 'the block of rank 2'."""
    kind = part.held.kind
    if kind == UNTOUCHED:
        return "nothing was written"
    if kind == COMBINED:
        return counted(part.held)
    return {OLD: _old(part.held), BLOCK: f"the block of rank {part.held.rank}",
            MOVED: moved(part)}.get(kind, "wrong data")  # fmt: skip


def counted(held):
    """'ranks 0 to 2, rank 3 twice': of which contributions a result is made."""
    if held.order:
        said = " ∘ ".join(map(str, held.order))
        return f"{words.ranks(held.order)}, in the order {said}" if len(held.order) > 1 else (
            f"rank {held.order[0]} alone")  # fmt: skip
    said = []
    for times in sorted(set(held.counts) - {0}):
        who = [rank for rank, count in enumerate(held.counts) if count == times]
        said.append(words.ranks(who) + (f" {_times(times)}" if times > 1 else ""))
    if len(said) == 1 and sum(held.counts) == 1 and held.rank < 0:
        return f"{said[0]} alone"
    if held.rank >= 0:
        said.append(_old(held))
    return ", ".join(said)


def missing(held):
    """The ranks whose contributions are not in it."""
    return [rank for rank, count in enumerate(held.counts) if count == 0]


def repeated(held):
    """The ranks whose contributions are in it more than once."""
    return [rank for rank, count in enumerate(held.counts) if count > 1]


def moved(part):
    """Where the data of a MOVED part belong, or lie at the root."""
    first = part.begin + part.held.shift
    if part.held.begin >= 0:
        return f"what begins at element {part.held.begin + first} of the root's send buffer"
    last = first + part.elements - 1
    where = f"element {first}" if first == last else f"elements {first} to {last}"
    return f"what belongs to {where}"


def _where(part, count):
    if part.elements == count:
        return ""
    if part.elements == 1:
        return f"element {part.begin}"
    return f"elements {part.begin} to {part.end - 1}"


def _subject(where):
    return where or "the buffer"


def _untouched(part, count):
    if part.elements == count:
        return "nothing was written"
    if part.end == count:
        return f"from element {part.begin} on nothing was written"
    if part.begin == 0 and part.elements > 1:
        return f"the first {part.elements} elements were never written"
    were = "was" if part.elements == 1 else "were"
    return f"{_where(part, count)} {were} never written"


def _holds(part, where):
    held, many = part.held, where.startswith("elements")
    holds = "hold" if many else "holds"
    if held.kind == OLD:
        return f"{holds} {_old(held)}"
    if held.kind == BLOCK:
        return f"{holds} {'part of ' if where else ''}the block of rank {held.rank}"
    if held.kind == MOVED:
        return f"{holds} {moved(part)}"
    return f"{'are' if many else 'is'} wrong"


def _old(held):
    return f"what was in rank {held.rank}'s receive buffer before the call"


def _result(part, where):
    held, of = part.held, f" of {where}" if where else ""
    if held.rank < 0 and sum(held.counts) == 1:
        return f"the result{of} is the contribution of rank {held.counts.index(1)} alone"
    said = []
    if missing(held):
        said.append(f"lacks {_of_ranks(missing(held))}")
    for times in sorted({count for count in held.counts if count > 1}):
        who = [rank for rank, count in enumerate(held.counts) if count == times]
        said.append(f"counts {words.ranks(who)} {_times(times)}")
    if held.rank >= 0:
        said.append(f"has {_old(held)} in it")
    if held.order and list(held.order) != sorted(held.order):
        said.append(f"takes ranks in the order {', '.join(map(str, held.order))}")
    return f"the result{of} {words.listing(said)}"


def _of_ranks(ranks):
    return f"the contribution{'s' * (len(ranks) > 1)} of {words.ranks(ranks)}"


def _times(times):
    return TIMES.get(times, f"{times} times")
