"""A barrier that was none: a rank can leave it before all others have come."""

import numpy as np

from mpilab.diagnosis import words
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table
from mpilab.recording import COLLECTIVE

PATTERN = "left too early"
HINT = (
    "After a barrier every rank has to know that every other one has come: for each pair there "
    "must be a way of messages from the one to the other, each sent after the one before has been "
    "received."
)
# From which messages come nobody knows; a barrier may also be made of collectives.
_BLIND = ("MPI_Mrecv", "MPI_Imrecv")


def left_early(evidence):
    """The Diagnosis of a barrier that a rank can leave too early; None where it is one.

    By luck all ranks may have come all the same: what counts is that the messages prove it. None
    also where the recording proves nothing: it is not whole, or other calls than messages may have
    told ranks of each other.
    """
    recording = evidence.result.recording
    if recording is None or not recording.complete or _is_blind(evidence):
        return None
    missing = ~recording.heard()
    ranks = np.flatnonzero(missing.any(axis=1)).tolist()
    if not ranks:
        return None
    early = ranks[0]
    unheard = np.flatnonzero(missing[early]).tolist()
    return Diagnosis(
        WRONG_RESULT,
        f"no barrier: rank {early} can leave it before {words.ranks(unheard)} "
        f"{'has' if len(unheard) == 1 else 'have'} come",
        pattern=PATTERN,
        hint=f"{HINT} {_how_far(evidence, missing)}",
        ranks=tuple(ranks),
        places=evidence.places(_last_calls(evidence, ranks), "make the last call here"),
        tables=(
            Table(
                "Whom each rank has not heard of, by any way",
                ("rank", "has not heard of"),
                tuple((rank, words.runs(np.flatnonzero(missing[rank]).tolist())) for rank in ranks),
            ),
        ),
    )


def _is_blind(evidence):
    """May ranks have learned of each other by calls that are no messages in the recording?"""
    if evidence.result.function.endswith("_openmpi"):
        return True  # MPI's own algorithm sends below what is recorded
    return any(
        ((rank.records["flags"] & COLLECTIVE != 0) & (rank.records["members"] > 1)).any()
        or any(name in _BLIND for name in evidence.names(number))
        for number, rank in enumerate(evidence.ranks)
    )


def _how_far(evidence, missing):
    """How far what ranks know has come, from [P, P] whom they have not heard of."""
    size, messages = evidence.size, evidence.result.recording.messages
    if not len(messages):
        return "Here no message was sent at all."
    power = "" if size & (size - 1) == 0 else f" {size} is no power of two: does that matter here?"
    knowing = np.flatnonzero(~missing.any(axis=1)).tolist()
    if knowing:
        who = words.ranks(knowing)
        has, knows = ("has", "knows") if len(knowing) == 1 else ("have", "know")
        return (
            f"Here {who} {has} heard of all, but what {who} {knows} does not get to the others: "
            f"does somebody answer, and do they wait for the answer?{power}"
        )
    known = size - missing.sum(axis=1)
    rounds = evidence.result.recording.rounds
    least, most = int(known.min()), int(known.max())
    number = str(least) if least == most else f"{least} to {most}"
    end = words.number(rounds, "round")
    said = f"Here, after {end}, each rank has heard of {number} of {size} ranks, itself included."
    if 2**rounds < size:
        return (
            f"{said} What a rank knows can at best double in each round: {size} ranks need at "
            f"least {(size - 1).bit_length()}."
        )
    return f"{said} Look at whom each rank hears from in each round.{power}"


def _last_calls(evidence, ranks):
    calls = (evidence.last_call(rank) for rank in ranks)
    return [call for call in calls if call is not None]
