"""Seconds for a schedule where messages within a node cost less than between nodes: LogGP twice."""

from collections import defaultdict

from mpilab.errors import InputError


def predict_placed(schedule, levels, block_bytes, near, far, shared=False):
    """Seconds that `schedule` takes with blocks of `block_bytes` bytes, on processes at `levels`.

    near, far   the LogGP of a message within a node (its G is G0), and between nodes (G1).
    shared      the processes of a node share its link: what they send to other nodes in a round
                (and what comes from there) goes one after the other, at far.G a byte.

    A round begins when the one before has ended on every rank; times add up. A process can send
    and receive at a time. Several messages of a round in the same direction follow each other:
    o + (k-1) G, then g + (k'-1) G for each further one, + L + o, each with the parameters of its
    own distance, L and o with the larger ones. A round is as long as its slowest process (or, with
    `shared`, its slowest node).

    Without `shared`, a node has as many ports as processes: a ring then takes as long in RR order
    as in SEQ, in which at least one process gets everything from another node. Source: LogGP with
    a G for each kind of channel, as in Álvarez, Díaz, Rico (TAPEMS 2017); `shared` is ours. Raises
    InputError where the schedule is not one for as many processes, or its blocks differ in size.
    """
    if schedule.ranks != len(levels.places):
        raise InputError(
            f"a schedule for {schedule.ranks} ranks on places for {len(levels.places)}: "
            "give one place a rank"
        )
    if schedule.sizes is not None:
        raise InputError(
            f"the schedule of {schedule.algorithm} has blocks of sizes of their own: give one "
            "whose blocks all have as many bytes"
        )
    between = levels.between_nodes()
    seconds = 0.0
    for transfers in schedule.rounds:
        ports, links = defaultdict(list), defaultdict(list)
        for transfer in transfers:
            byte_count = len(transfer.blocks) * block_bytes
            is_far = bool(between[transfer.source, transfer.dest])
            for way, rank in (("out", transfer.source), ("in", transfer.dest)):
                message = (byte_count, far if is_far else near)
                ports[way, rank].append(message)
                if shared and is_far:
                    links[way, int(levels.node[rank])].append(message)
        seconds += max(map(_one_after_the_other, [*ports.values(), *links.values()]), default=0.0)
    return seconds


def _one_after_the_other(messages):
    """Seconds of [(bytes, LogGP), …] through one port."""
    bytes_s = sum(max(count - 1, 0) * model.G for count, model in messages)
    gaps_s = sum(model.g for _, model in messages[1:])
    return bytes_s + gaps_s + max(model.L + 2 * model.o for _, model in messages)
