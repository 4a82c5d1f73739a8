"""The right answers to what lab 03 asks for in Python, found by counting; no formula is trusted."""

from collections import Counter

from mpilab import hosts
from mpilab.errors import InputError
from mpilab.remapping.orders import placement
from mpilab.schedules import allgather

RANKS, SLOTS = 8, 4
HOSTFILE = "slowest.txt"
LONGEST = 4096  # characters of a hostfile that is read


def inter_node_bytes(algorithm, order, M, Q, m):  # noqa: N803 (the names of the lab)
    """[bytes from other nodes to the process that gets most of them, those of all processes].

    algorithm   of an allgather: "ring", "recursive_doubling", …
    order       "SEQ" or "RR", of M nodes of Q processes; blocks have m bytes.
    """
    crosses = placement(order, M, Q).between_nodes()
    received = Counter()
    for transfer in allgather.schedule(algorithm, M * Q).transfers():
        if crosses[transfer.source, transfer.dest]:
            received[transfer.dest] += len(transfer.blocks) * m
    return [max(received.values(), default=0), sum(received.values())]


def binomial_edges(ranks):
    """(parent, child) of each rank but 0 in the binomial tree from rank 0, by child."""
    return [(child & (child - 1), child) for child in range(1, ranks)]


def rank_hosts(text):
    """The name of the host of each rank, from a hostfile for `--map-by seq`: list of str.

    Raises InputError, as 'FILE:LINE: what is wrong; what to write', for a text that is no such file
    of two hosts with four ranks each.
    """
    if not isinstance(text, str):
        raise InputError(f"a {type(text).__name__} is no hostfile; return a text")
    if len(text) > LONGEST:
        raise InputError(f"{HOSTFILE}: {len(text)} characters; eight short lines are enough")
    names = hosts.parse(text, HOSTFILE).names(policy="seq")
    found = Counter(names)
    told = ", ".join(f"{name} {times} times" for name, times in found.items())
    if len(names) != RANKS:
        raise InputError(
            f"{HOSTFILE}: {len(names)} lines name a host; write one line for each of {RANKS} ranks"
        )
    if sorted(found.values()) != [SLOTS, SLOTS]:
        raise InputError(
            f"{HOSTFILE}: it names {told}; there are two hosts with {SLOTS} slots, so name each of "
            f"them {SLOTS} times"
        )
    return names


def is_no_hostfile(text):
    """What is wrong with a hostfile of eight ranks on two hosts; "" if nothing is."""
    rank_hosts(text)
    return ""


def stays_on_a_host(text):
    """Which messages of the binomial tree from rank 0 do not go from host to host, in a sentence;
    "" if all do."""
    names = rank_hosts(text)
    inside = [
        f"{parent} → {child}"
        for parent, child in binomial_edges(RANKS)
        if names[parent] == names[child]
    ]
    if not inside:
        return ""
    return (
        f"{RANKS - 1 - len(inside)} of {RANKS - 1} messages go from one host to the other; "
        f"{', '.join(inside)} {'do' if len(inside) > 1 else 'does'} not."
    )
