"""What every slot of every receive buffer holds after each round of a recording."""

import numpy as np

from mpilab.contents import contents_of, held
from mpilab.recording import NONBLOCKING, NONE
from mpilab.snapshots import AT_FINISH, AT_START, UNTOUCHED

EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def buffer_states(recording, case, snapshots):
    """Which content (mpilab.contents) each slot of every receive buffer holds after each round.

    recording, snapshots   of one run of `case`: a mpilab.snapshots.Snapshots for each rank.

    int array [rounds + 1, ranks, slots], or one row more where ranks changed their buffers on their
    own after their last messages (Bruck's rotation). A number is that of a content, in an allgather
    the rank that the block comes from; UNTOUCHED (-1) is what was there before the call, UNKNOWN
    (-2) anything else; slots that a rank doesn't have are UNTOUCHED. Row 0 is before the first
    messages. Raises InputError for a collective whose contents cannot be told apart.

    Row k of a rank is its buffer as late as possible before it gets a message of a later round:
    at the end of its next send (then it has put in order what it sends), and not before all its
    messages of rounds up to k are complete. Where one call completes messages of several rounds,
    nothing in between was seen: then they come together. A block that lies in the buffer before the
    rank could know of it, by a receive that is under way, is shown in the round of its message.
    Messages to memory of the kernel's own show when they are copied to the receive buffer.
    """
    messages = recording.messages
    contents = contents_of(case)
    found = [held(case, shots.memory, rank) for rank, shots in enumerate(snapshots)]
    rounds = recording.rounds
    width = max(states.shape[1] for states in found)
    states = np.full((rounds + 2, len(found), width), UNTOUCHED, np.int64)
    for place, (rank, shots, seen) in enumerate(
        zip(recording.ranks, snapshots, found, strict=True)
    ):
        if not len(seen):
            continue
        times = _times(rank.records, shots.records)
        for number, moment in enumerate(_moments(rank.records, messages, place, rounds)):
            last = np.searchsorted(times, moment, side="right") - 1
            states[number, place, : seen.shape[1]] = seen[max(last, 0)]
        states[-1, place, : seen.shape[1]] = seen[-1]
    _take_back_early_ones(states[:-1], messages, contents.owners)
    if contents.sizes:
        _take_back_early_parts(states[:-1], messages, contents)
    return states if (states[-1] != states[-2]).any() else states[:-1]


def _take_back_early_ones(states, messages, owners):
    """Let no block be where it can only have come with a message of a later round.

    After round k a rank can have a block if a chain of messages of ascending rounds up to k leads
    to it from the block's owner.
    """
    ranks = states.shape[1]
    reach = np.zeros((len(states), ranks, ranks), bool)
    reach[0] = np.eye(ranks, dtype=bool)
    for number in range(1, len(states)):
        reach[number] = reach[number - 1]
        for message in messages[messages["round"] == number]:
            reach[number, message["dest"]] |= reach[number - 1, message["source"]]
    for number, state in enumerate(states):
        known = state >= 0
        owner = owners[np.where(known, state, 0)]
        rank = np.arange(ranks)[:, None]
        early = known & ~reach[number, rank, owner] & reach[-1, rank, owner]
        state[early] = (states[number - 1] if number else np.full_like(state, UNTOUCHED))[early]


def _take_back_early_parts(states, messages, contents):
    """Let no rank hold more bytes than the messages of the rounds so far have brought it.

    For several contents of one owner: of those that were seen at once, the ones in front are taken
    to have come first.
    """
    sizes = np.array(contents.sizes)
    for rank in range(states.shape[1]):
        for number in range(1, len(states)):
            before, row = states[number - 1, rank], states[number, rank]
            had = messages["bytes"][
                (messages["dest"] == rank) & (messages["round"] <= number)
            ].sum()
            fresh = np.flatnonzero((row >= 0) & (before < 0) & (contents.owners[row] != rank))
            room = had - sizes[(row >= 0) & (before >= 0)].sum()
            early = fresh[sizes[fresh].cumsum() > room]
            row[early] = before[early]


def _times(records, taken_after):
    """When each snapshot was taken, ascending; `taken_after` as in Snapshots.records."""
    times = np.full(len(taken_after), EARLIEST)
    known = taken_after >= 0
    times[known] = records["end_ns"][taken_after[known]]
    # One record stands for all repetitions of a poll, and ends with the last one.
    repeated = np.zeros(len(times), bool)
    repeated[:-1] = known[:-1] & (taken_after[:-1] == taken_after[1:])
    times[repeated] = records["begin_ns"][taken_after[repeated]]
    times[taken_after == AT_FINISH] = LATEST
    times[taken_after == AT_START] = EARLIEST
    return np.minimum.accumulate(times[::-1])[::-1]


def _moments(records, messages, rank, rounds):
    """For round 0 (the start), 1, 2, …: when to look at the buffer of `rank`."""
    sent = messages[messages["source"] == rank]
    received = messages[(messages["dest"] == rank) & (messages["receive_record"] != NONE)]
    send_ends = records["end_ns"][sent["send_record"]]
    send_ends = np.where(send_ends == 0, LATEST, send_ends)
    known = _completed(records, received["receive_record"])
    for number in range(rounds + 1):
        before, after = received["round"] <= number, received["round"] > number
        sent_before, sent_after = sent["round"] <= number, sent["round"] > number
        whole = max(
            int(known[before].max(initial=EARLIEST)),
            int(send_ends[sent_before & (send_ends != LATEST)].max(initial=EARLIEST)),
        )
        next_send = int(send_ends[sent_after].min(initial=LATEST))
        next_receive = int(known[after].min(initial=LATEST))
        latest = min(next_send, next_receive - 1)
        yield whole if latest == LATEST - 1 or next_receive <= whole else max(whole, latest)


def _completed(records, receives):
    """When the call returned that completed each of these receives."""
    done, waiter = records["done_ns"][receives], records["waiter"][receives]
    waited = (records["flags"][receives] & NONBLOCKING != 0) & (waiter >= 0)
    ended = np.where(waited, records["end_ns"][np.maximum(waiter, 0)], done)
    return np.maximum(ended, done)
