"""The order that messages bring into a run: what must have happened before what.

Source: L. Lamport, "Time, Clocks, and the Ordering of Events in a Distributed System",
Communications of the ACM 21(7), 1978. `ranks` lists the RankRecording of each rank, `messages` are
MESSAGE records (mpilab.recording).
"""

import numpy as np

_BEGAN, _SENT, _RECEIVED = range(3)


def rounds(ranks, messages):
    """Round of every message: int32 array.

    It is 1 + the latest round among the messages that its sender had finished sending or receiving
    before it began to send: the depth of the messages in the happens-before order. So messages that
    a rank starts without waiting in between share a round, and a blocking send ends one.
    """
    found = np.zeros(len(messages), np.int32)
    depth = [0] * len(ranks)
    for what, rank, number in _in_order(ranks, messages):
        if what == _BEGAN:
            found[number] = depth[rank] + 1
        else:
            depth[rank] = max(depth[rank], found[number])
    return found


def heard(ranks, messages):
    """bool [P, P]: does rank i know at its end, by messages, that rank j has begun?

    After a barrier all of it is True: every rank's beginning happens before every rank's end.
    """
    known = np.eye(len(ranks), dtype=bool)
    told = {}
    for what, rank, number in _in_order(ranks, messages):
        if what == _BEGAN:
            told[number] = known[rank].copy()
        elif what == _RECEIVED:
            known[rank] |= told[number]
    return known


def _in_order(ranks, messages):
    """(what, rank, number of the message) of all sends and receives, in an order in which nothing
    comes before what it waited for. _SENT is when the sender may use its buffer again."""
    # Where the clock shows the same instant twice, the order of the calls decides.
    events = [[] for _ in ranks]
    for number, message in enumerate(messages):
        source, dest = events[message["source"]], events[message["dest"]]
        sent, received = message["send_record"], message["receive_record"]
        source.append((message["sent_ns"], sent, _BEGAN, number))
        finished_ns = ranks[message["source"]].records["done_ns"][sent]
        if finished_ns:
            source.append((finished_ns, sent, _SENT, number))
        if received >= 0:
            dest.append((message["received_ns"], received, _RECEIVED, number))
    for list_of_rank in events:
        list_of_rank.sort()
    at, begun, moved = [0] * len(events), set(), True
    while moved:
        moved = False
        for rank, list_of_rank in enumerate(events):
            while at[rank] < len(list_of_rank):
                *_, what, number = list_of_rank[at[rank]]
                if what == _RECEIVED and number not in begun:
                    break  # its sender has not been looked at that far
                if what == _BEGAN:
                    begun.add(number)
                yield what, rank, number
                at[rank] += 1
                moved = True
