"""Seconds for any schedule: Hockney's model applied round by round."""

import numpy as np

from mpilab.errors import InputError
from mpilab.schedules import allgather


def predict(name, ranks, block_bytes, model, cores=None):
    """Seconds that allgather algorithm `name` takes on `ranks` ranks with blocks of `block_bytes`.

    name         one of mpilab.schedules.allgather.ALGORITHMS.
    block_bytes  m, the bytes each rank contributes; a number or an array of them.
    model        a Hockney.
    cores        None: every rank has a core of its own.

    It is `predict_schedule` of that algorithm's schedule.
    """
    return predict_schedule(allgather.schedule(name, ranks), block_bytes, model, cores)


def predict_schedule(schedule, block_bytes, model, cores=None):
    """Seconds that `schedule` takes with blocks of `block_bytes` bytes (a number or an array).

    A schedule that says itself how many bytes its blocks have (`schedule.sizes`) takes None.

    Assumptions, from the weakest to the one that is violated first:

    *Rounds.* A round begins when the one before has ended on every rank; times add up.

    *Single port, full duplex.* A rank can send one message and receive one message at a time.
    Within a round it takes α for each message and β for each byte, and the round is as long as
    the busiest direction of the busiest rank. With one message a rank and round this is the
    textbook α + β n; the P-1 messages of nonblocking_all cost (P-1)(α + m β), although all of
    them are started at once.

    *A core for each rank.* Where `cores` is given and smaller than the number of ranks, a round
    also takes at least the work of all its messages, Σ (α + β n), shared by the cores: on an
    oversubscribed machine the number of messages counts even where they could run in parallel.

    Source of the costs of ring, recursive doubling and Bruck, which this reproduces on powers of
    two: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", Int. J. High Performance Computing Applications 19(1), 2005, sections 3 and 4.1.
    """
    if cores is not None and cores < 1:
        raise InputError(f"cores={cores}: give 1 or more, or None for a core for each rank.")
    own_sizes = getattr(schedule, "sizes", None)
    if (block_bytes is None) != (own_sizes is not None):
        raise InputError(
            f"block_bytes={block_bytes} for a schedule of {schedule.algorithm} whose blocks "
            + (
                "have sizes of their own; give None."
                if own_sizes is not None
                else "have no sizes; give bytes."
            )
        )
    unit = np.asarray(1 if block_bytes is None else block_bytes, dtype=float)
    seconds = np.zeros_like(unit)
    for transfers in schedule.rounds:
        lengths = [_length(transfer, own_sizes) for transfer in transfers]
        ports = _loads(transfers, lengths, schedule.ranks)
        work = [model.alpha * messages + model.beta * length * unit for messages, length in ports]
        longest = np.max(work, axis=0)
        if cores is not None and cores < schedule.ranks:
            everything = model.alpha * len(transfers) + model.beta * unit * sum(lengths)
            longest = np.maximum(longest, everything / cores)
        seconds = seconds + longest
    return seconds if seconds.ndim else float(seconds)


def _length(transfer, sizes):
    """Of a message: in blocks, or in bytes where the blocks have `sizes`."""
    if sizes is None:
        return len(transfer.blocks)
    return sum(sizes[block] for block in transfer.blocks)


def _loads(transfers, lengths, ranks):
    """The different (messages, length) loads of the sending and receiving ports in one round."""
    sent = [[0, 0] for _ in range(ranks)]
    received = [[0, 0] for _ in range(ranks)]
    for transfer, length in zip(transfers, lengths, strict=True):
        for load in (sent[transfer.source], received[transfer.dest]):
            load[0] += 1
            load[1] += length
    return {tuple(load) for load in sent + received}
