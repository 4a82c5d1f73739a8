"""A rank that does not exist: which number was given, and how it may have been computed."""

import numpy as np

from mpilab.recording import ANY, NOBODY, RECEIVES

HINT = (
    "Ranks go from 0 to size - 1. Look at rank + 1 and rank - 1 at both ends: "
    "(rank + 1) % size, (rank - 1 + size) % size, or MPI_PROC_NULL for nobody."
)
BELOW = (
    "In C, rank - i is negative where i is larger than rank, and so is (rank - i) % size. Write "
    "(rank - i + size) % size, or MPI_PROC_NULL for nobody."
)
ABOVE = (
    "The last rank is size - 1. Write (rank + i) % size, or leave the call out where there is no "
    "such rank; its partner has to leave its own out, too."
)
ANOTHER = (
    "Every communicator counts its own ranks from 0, and this one has fewer than comm: ask it with "
    "MPI_Comm_rank and MPI_Comm_size, or make the call on comm."
)
MAKERS = tuple(f"MPI_Comm_{n}" for n in ("dup", "split", "split_type", "create", "create_group"))


def given(call):
    """The number that a Call gave for a rank that does not exist; None where it gave none.

    It counts in the communicator of the call, unlike the ranks of other calls.
    """
    if call.peer == NOBODY and call.members > 0:
        return call.got_peer
    return ANY if call.sends and call.peer == ANY else None


def meaning(evidence, call):
    """'there is no rank 6, only ranks 0 to 5', or '' where the number is not known."""
    number = given(call)
    if number is None:
        return ""
    size = _size(evidence, call)
    there_are = {1: "rank 0", 2: "ranks 0 and 1"}.get(size, f"ranks 0 to {size - 1}")
    where = " in its communicator" if size < evidence.size else ""
    return f"there is no rank {number}{where}, only {there_are}"


def hint(evidence, call):
    """What to look at, by the number that was given."""
    number, size = given(call), _size(evidence, call)
    if number is None:
        return HINT
    if number < 0:
        return BELOW
    if size < evidence.size:
        return ANOTHER
    if size & (size - 1) and _flips_a_bit(evidence, call):
        return (
            f"rank ^ dist is a rank for every rank only where size is a power of two, and {size} "
            "is none. Leave the step out where the partner is not below size, both its send and "
            "its receive; and see how these ranks get their blocks all the same."
        )
    return ABOVE


def notes(evidence, call):
    """Sentences on numbers from the same line that only happen to mean something."""
    if given(call) is None:
        return ()
    peers = set()
    for rank in evidence.ranks:
        if rank is not None:
            chosen = (rank.records["site"] == call.site) & (rank.records["flags"] & RECEIVES != 0)
            chosen &= (rank.records["members"] == 0) & (rank.records["error"] == 0)
            peers.update(np.unique(rank.records["peer"][chosen]).tolist())
    if ANY not in peers or not any(peer >= 0 for peer in peers):
        return ()
    found = {"-1": "MPI_ANY_SOURCE", **({"-2": "MPI_PROC_NULL"} if NOBODY in peers else {})}
    are = "it is" if len(found) == 1 else "they are"
    return (f"The same line also came to {' and '.join(found)}, and MPI did not complain: {are} "
            f"{' and '.join(found.values())} as well.",)  # fmt: skip


def makers(evidence, call):
    """[Call] that made the smaller communicator of `call`, as far as they can be told."""
    if given(call) is None or _size(evidence, call) >= evidence.size:
        return []
    made = [one for one in evidence.calls(call.rank, range(call.index)) if one.name in MAKERS]
    return made[:1] if len({one.site for one in made}) == 1 else []


def _size(evidence, call):
    return call.members if call.members > 0 else evidence.size


def _flips_a_bit(evidence, call):
    """Do all calls of this line go to a rank that differs in one bit, as rank ^ dist does?"""
    flips = set()
    for number, rank in enumerate(evidence.ranks):
        if rank is not None:
            same = rank.records[rank.records["site"] == call.site]
            peers = np.where(same["peer"] == NOBODY, same["got_peer"], same["peer"])
            flips.update(int(peer) ^ number for peer in np.unique(peers))
    return bool(flips) and all(flip > 0 and flip & (flip - 1) == 0 for flip in flips)
