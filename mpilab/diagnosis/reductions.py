"""Wrong results of a reduce or allreduce: whose contributions are missing, or counted too often."""

from mpilab.diagnosis import deliveries, messages, wanted, words
from mpilab.diagnosis.clauses import clause, missing, repeated
from mpilab.diagnosis.parts import COMBINED, UNTOUCHED

ALONE, MISSING, TWICE, ORDER, STALE, NEVER = (
    "contributions never combined", "a contribution missing", "a contribution counted twice",
    "order of a non-commutative operation", "recvbuf combined before it was set",
    "result never written",
)  # fmt: skip
REDUCE_LOCAL = (
    "MPI_Reduce_local(a, b, …) puts a op b into b: the result is in its second buffer, and the "
    "first one stays as it was."
)


def explain(evidence, case, by_rank):
    """(pattern, hint, Places) of {rank: [Part]}, as mpilab.diagnosis.single has read them."""
    kind, rank, part = messages.main_part(by_rank)
    if kind == UNTOUCHED:
        return _untouched(evidence, case, by_rank)
    if kind != COMBINED:
        return "", "", ()
    pattern, doubt = _of_set(evidence, case, rank, part.held)
    return pattern, f"On rank {rank}, {clause(part, case.count)}. {doubt}".rstrip(), ()


def _of_set(evidence, case, rank, held):
    """(pattern, what to look at) of a set of contributions that is not the right one."""
    if held.rank >= 0:
        return STALE, (
            "What is in recvbuf before the call is nobody's contribution: copy the own data there "
            "first, unless sendbuf is MPI_IN_PLACE."
        )
    if repeated(held):
        who = words.ranks(repeated(held))
        return TWICE, (
            f"Follow the data of {who}: by which two ways do they get there? Is what a rank sends "
            "on its own contribution, or a result that holds it already?"
        )
    is_own = held.counts == tuple(int(rank == other) for other in range(case.ranks))
    fact = deliveries.arrived(evidence, rank) if is_own else ""
    if fact and not wanted.received(evidence, rank):
        return MISSING, f"{fact} Which ranks should send their data to it?"
    if is_own or (sum(held.counts) == 1 and case.ranks > 2):
        return ALONE, f"{fact} {REDUCE_LOCAL}".strip()
    if missing(held):
        return MISSING, _lacking(evidence, case, missing(held))
    return ORDER, (
        "This operation does not commute: the result has to be that of rank 0 op rank 1 op … in "
        f"this order. {REDUCE_LOCAL} So what comes from lower ranks has to be a, from higher ones "
        "b; and virtual ranks may only be used where MPI_Op_commutative says yes."
    )


def _lacking(evidence, case, lacking):
    fact = deliveries.sent_by(evidence, lacking[0])
    core = 1 << (case.ranks.bit_length() - 1)
    power = (
        f" {case.ranks} ranks are no power of two: what becomes of the ranks from {core} on?"
        if core != case.ranks and max(lacking) >= core
        else ""
    )
    whose = words.ranks(lacking[:1])
    return f"{fact} Which rank should have taken in the data of {whose}?{power}".strip()


def _untouched(evidence, case, by_rank):
    pattern, hint, places = messages.never_written(evidence, case, by_rank)
    if pattern != messages.NEVER:
        return pattern, hint, places
    fact = deliveries.arrived(evidence, next(iter(by_rank)))
    return NEVER, f"{fact} Is the result copied to recvbuf, also on this rank?".strip(), ()
