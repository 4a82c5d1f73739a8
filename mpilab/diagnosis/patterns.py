"""The common mistakes behind a deadlock, in the order in which they are looked for.

A recogniser takes the Evidence of a run in which nothing moves, and returns a Match or None. What
is proved by a call with the wrong arguments comes before what is only likely from who waits.
"""

from mpilab.diagnosis.circles import (
    head_to_head,
    polling_in_vain,
    relying_on_buffering,
    request_never_completed,
)
from mpilab.diagnosis.meetings import (
    different_communicators,
    disagreement,
    never_entered,
    received_instead,
)
from mpilab.diagnosis.strays import (
    loop_ends_early,
    message_left_over,
    message_to_oneself,
    mismatched_tags,
    one_receive_too_many,
    other_communicator,
    wrong_rank,
)

RECOGNISERS = (
    disagreement,
    message_to_oneself,
    mismatched_tags,
    other_communicator,
    different_communicators,
    received_instead,
    polling_in_vain,
    head_to_head,
    relying_on_buffering,
    wrong_rank,
    never_entered,
    loop_ends_early,
    message_left_over,
    request_never_completed,
    one_receive_too_many,
)


def recognise(evidence):
    """The Match of the first recogniser that knows this deadlock, or None."""
    return next(filter(None, (recogniser(evidence) for recogniser in RECOGNISERS)), None)
