"""Predicted times of schedules, the least time of any algorithm, and orders of ranks in lab 04."""

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mpilab.algorithms import allgather
from mpilab.algorithms.algorithm import Quantity, Schedule, Transfer
from mpilab.errors import InputError
from mpilab.hosts.description import Link
from mpilab.hosts.places import Levels
from mpilab.hosts.platforms import FLAT, SWITCHES, Platform
from mpilab.models.point_to_point import LogGP, Model

# The least seconds of any algorithm, from the links of a platform.

BOUNDED = ("bcast", "reduce", "gather", "scatter", "allgather", "allreduce")


def least_seconds(
    collective: str, platform: Platform, levels: Levels, bytes: float, root: int = 0
) -> float:
    """A lower bound on the seconds of a collective, whatever its algorithm, from the links.

    collective   "bcast", "reduce", "gather", "scatter", "allgather" or "allreduce".
    platform     hosts on one switch, or groups of hosts with an uplink each.
    levels       where the ranks are.
    bytes        m, of a block in gather, scatter and allgather, otherwise of the whole message.
    root         of a collective that has one.

    *Bytes.* Call the ranks of a node (or of a group) a part. Everything that a part exchanges with
    the other ranks crosses its link, to the switch of its group (or to the core). Each direction of
    a link has the full rate, so the fuller direction counts. Of P ranks, p in the part:

        bcast      the root's part sends m, or no other rank ever has the message; each other part
                   receives m.
        reduce     each part sends m: of its data, at least one combined vector must leave it,
                   because every element counts. The root's part receives m.
        scatter    the root's part sends the blocks of the P - p other ranks; another one receives
                   the p blocks of its own ranks.
        gather     the reverse.
        allgather  each part receives the P - p blocks of the others, and its p blocks leave it.
        allreduce  from all n parts together, 2(n - 1)m are sent: for each element, before any part
                   can know the result, each of the n - 1 others has sent something about its own
                   data; afterwards, each of those has yet to receive the result. All links of a
                   level have the same rate, so the fullest carries the mean or more, 2(n - 1)/n m.

    The time is at least that of the link that needs longest for its bytes. The memory of a node
    sets no limit: each pair of its ranks has the full rate.

    *Latency.* No byte is on that link before it has crossed the first part of its path, and the
    last byte has yet to cross the rest. So the latency of the shortest path over it is added.

    What must wait for something else is not counted: filling a pipeline, rounds of messages,
    headers. Nor are the ranks' own overheads, of which a simulation has none for a blocking send of
    a long message. So the bound may be out of reach, above all for short messages.

    Source: the bytes of Chan, Heimlich, van de Geijn, Purkayastha, "Collective communication:
    theory, practice, and experience" (2007), section 3, with parts in the place of processes.
    Raises InputError for other collectives and platforms, and for numbers that do not fit.
    """
    if collective not in BOUNDED:
        raise InputError(
            f"collective {collective!r}: there is no least time; use one of {', '.join(BOUNDED)}"
        )
    if platform.wiring not in (SWITCHES, FLAT) or platform.latencies:
        raise InputError(
            f"{platform.name}: the least time is known for hosts on switches; use a platform such "
            "as 'four-groups', 'groups-4x4x8' or 'flat-16x8'"
        )
    ranks = len(levels.places)
    if bytes < 0 or not 0 <= root < ranks:
        raise InputError(
            f"bytes={bytes}, root={root} with {ranks} ranks: give bytes of 0 or more and a rank"
        )
    if bytes == 0 or ranks == 1:
        return 0.0
    if levels.nodes == 1:
        return platform.memory.latency
    near, far = 2 * platform.host_link.latency, 2 * platform.group_link.latency
    # Some group has two nodes: then a message can leave a node without leaving its group.
    path = near if levels.nodes > levels.groups else near + far
    seconds = path + _link_seconds(collective, levels.node, platform.host_link, bytes, root)
    if levels.groups > 1:
        between = _link_seconds(collective, levels.group, platform.group_link, bytes, root)
        seconds = max(seconds, near + far + between)
    return seconds


def _link_seconds(
    collective: str, part: NDArray[np.intp], link: Link, bytes: float, root: int
) -> float:
    """Seconds of the fullest link; `part` numbers the part of each rank, [P]."""
    inside = np.bincount(part)
    blocks: float  # what the link carries, in multiples of `bytes`
    if collective == "allreduce":
        blocks = 2 * (len(inside) - 1) / len(inside)
    elif collective == "allgather":
        blocks = max(inside.max(), len(part) - inside.min())
    elif collective in ("gather", "scatter"):
        others = np.delete(inside, part[root])
        blocks = others.sum()  # over the root's link; the other ones carry less
    else:
        blocks = 1
    assert link.rate is not None  # Platform has checked it
    return float(blocks) * bytes * 8 / link.rate


# Seconds for any schedule, round by round: with LogGP within and between nodes, or with Hockney.


def predict_placed(
    schedule: Schedule,
    levels: Levels,
    block_bytes: int,
    near: LogGP,
    far: LogGP,
    shared: bool = False,
) -> float:
    """Seconds that `schedule` takes with blocks of `block_bytes` bytes, on processes at `levels`.

    near, far   the LogGP of a message within a node (its G is G0), and between nodes (G1).
    shared      the processes of a node share its link: what they send to other nodes in a round
                (and what they receive from there) is serialized, at far.G per byte.

    A round begins when the previous one has ended on every rank; times add up. A process can send
    and receive at the same time. Several messages of a round in the same direction follow each
    other: o + (k-1) G, then g + (k'-1) G for each further one, + L + o, each with the parameters of
    its own distance, L and o with the larger ones. A round lasts as long as its slowest process
    (or, with `shared`, its slowest node).

    Without `shared`, a node has as many ports as processes: a ring then takes as long in RR order
    as in SEQ order, in which at least one process gets everything from another node. Source: LogGP
    with a G for each kind of channel, as in Álvarez, Díaz, Rico (TAPEMS 2017); `shared` is ours.
    Raises InputError if the schedule is for another number of processes, or has its own block
    sizes.
    """
    if schedule.ranks != len(levels.places):
        raise InputError(
            f"a schedule for {schedule.ranks} ranks on places for {len(levels.places)}: "
            "give one place per rank"
        )
    if schedule.sizes is not None:
        raise InputError(
            f"the schedule of {schedule.algorithm} has blocks of different sizes: give one whose "
            "blocks all have the same size"
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


def _one_after_the_other(messages: Sequence[tuple[int, LogGP]]) -> float:
    """Seconds of [(bytes, LogGP), …] sent through one port in sequence."""
    bytes_s = sum(max(count - 1, 0) * model.G for count, model in messages)
    gaps_s = sum(model.g for _, model in messages[1:])
    return bytes_s + gaps_s + max(model.L + 2 * model.o for _, model in messages)


def predict(
    name: str, ranks: int, block_bytes: Quantity, model: Model, cores: int | None = None
) -> Quantity:
    """Seconds that allgather algorithm `name` takes on `ranks` ranks with blocks of `block_bytes`.

    name         one of mpilab.algorithms.allgather.ALGORITHMS.
    block_bytes  m, the bytes each rank contributes; a number or an array of them.
    model        a Hockney.
    cores        None: every rank has its own core.

    The same as `predict_schedule` for that algorithm's schedule.
    """
    return predict_schedule(allgather.schedule(name, ranks), block_bytes, model, cores)


def predict_schedule(
    schedule: Schedule, block_bytes: Quantity | None, model: Model, cores: int | None = None
) -> Quantity:
    """Seconds that `schedule` takes with blocks of `block_bytes` bytes (a number or an array).

    For a schedule that has its own block sizes (`schedule.sizes`), pass None.

    Assumptions, from the weakest to the one that is violated first:

    *Rounds.* A round begins when the previous one has ended on every rank; times add up.

    *Single port, full duplex.* A rank can send one message and receive one message at a time.
    Within a round, it takes α for each message and β for each byte, and the round lasts as long as
    the busiest direction of the busiest rank. With one message per rank and round, this is the
    textbook α + β n; the P-1 messages of nonblocking_all cost (P-1)(α + m β), although all of them
    start at the same time.

    *A core for each rank.* If `cores` is given and smaller than the number of ranks, a round also
    takes at least the work of all its messages, Σ (α + β n), divided by the cores: on an
    oversubscribed machine, the number of messages matters even if they could run in parallel.

    Source of the costs of ring, recursive doubling and Bruck, which this reproduces on powers of
    two: Thakur, Rabenseifner, Gropp, "Optimization of Collective Communication Operations in
    MPICH", Int. J. High Performance Computing Applications 19(1), 2005, sections 3 and 4.1.
    """
    if cores is not None and cores < 1:
        raise InputError(f"cores={cores}: give 1 or more, or None for one core per rank.")
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


def _length(transfer: Transfer, sizes: Sequence[int] | None) -> int:
    """Length of a message: in blocks, or in bytes if the blocks have `sizes`."""
    if sizes is None:
        return len(transfer.blocks)
    return sum(sizes[block] for block in transfer.blocks)


def _loads(
    transfers: Sequence[Transfer], lengths: Sequence[int], ranks: int
) -> set[tuple[int, int]]:
    """The distinct (messages, length) loads of the sending and receiving ports in one round."""
    sent = [[0, 0] for _ in range(ranks)]
    received = [[0, 0] for _ in range(ranks)]
    for transfer, length in zip(transfers, lengths, strict=True):
        for load in (sent[transfer.source], received[transfer.dest]):
            load[0] += 1
            load[1] += length
    return {(messages, length) for messages, length in sent + received}


# Lab 04: orders of ranks for a binomial tree, on two groups of two hosts with two slots each.

HOSTS = {"n1": "left", "n2": "left", "n3": "right", "n4": "right"}
SLOTS = 2
BEST, WORST = "best", "worst"


def order_complaint(hosts: list[str], root: int, goal: str) -> str:
    """What is wrong with `hosts` for a binomial broadcast from `root`; "" if nothing is.

    hosts  the host of each rank, on the cluster HOSTS.
    goal   BEST: as few messages as possible cross groups, and nodes. WORST: all messages cross
           groups.
    """
    names, ranks = list(HOSTS), SLOTS * len(HOSTS)
    if not isinstance(hosts, list) or len(hosts) != ranks:
        raise InputError(f"{hosts!r} is not a list of the hosts of {ranks} ranks")
    for name in names:
        if (found := hosts.count(name)) != SLOTS:
            raise InputError(
                f"ranks on {name}: {found}, but it has {SLOTS} slots; name each host twice"
            )
    nodes, groups = order_crossings(hosts, root)
    is_worst = goal == WORST
    wanted = (ranks - 1, ranks - 1) if is_worst else (len(names) - 1, 1)
    if (nodes, groups) == wanted:
        return ""
    return (
        f"from rank {root}, {nodes} of {ranks - 1} messages go between nodes and {groups} between "
        f"groups; the {'most' if is_worst else 'fewest'} possible are {wanted[0]} and {wanted[1]}"
    )


def order_crossings(hosts: Sequence[str], root: int) -> tuple[int, int]:
    """(messages between nodes, messages between groups) of a binomial broadcast from `root`.

    hosts  the host of each rank, as in HOSTS.
    """
    ranks = len(hosts)
    edges = [((v & (v - 1)) + root, v + root) for v in range(1, ranks)]
    pairs = [(hosts[parent % ranks], hosts[child % ranks]) for parent, child in edges]
    return (
        sum(one != other for one, other in pairs),
        sum(HOSTS[one] != HOSTS[other] for one, other in pairs),
    )
