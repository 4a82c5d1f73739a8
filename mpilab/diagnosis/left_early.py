"""A barrier that was none: a rank can leave it before all others have come."""

import numpy as np

from mpilab.diagnosis import words
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table

HINT = (
    "After a barrier every rank has to know that every other one has come: for each pair there "
    "must be a way of messages from the one to the other, each sent after the one before has been "
    "received. Look at how far what a rank knows has come after each round; does it reach all "
    "ranks, also if their number is no power of two?"
)


def left_early(evidence):
    """The Diagnosis of a barrier that a rank can leave too early; None where it is one.

    By luck all ranks may have come all the same: what counts is that the messages prove it. None
    also without a whole recording, which proves nothing.
    """
    recording = evidence.result.recording
    if recording is None or not recording.complete:
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
        pattern="left too early",
        hint=HINT,
        ranks=tuple(ranks),
        tables=(
            Table(
                "Whom each rank has not heard of, by any way",
                ("rank", "has not heard of"),
                tuple((rank, words.runs(np.flatnonzero(missing[rank]).tolist())) for rank in ranks),
            ),
        ),
    )
