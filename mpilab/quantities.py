"""What a recording shows of each quantity that a rubric may count (mpilab.rubric.QUANTITIES)."""

import numpy as np

from mpilab.recording import (
    COLLECTIVE,
    READS_FILE,
    RECEIVES,
    SENDS,
    WRITES_FILE,
    operations,
)


def counts(recording, levels):
    """What a recording of ranks on these Levels shows of each of mpilab.rubric.QUANTITIES."""
    messages, volume = recording.matrix()
    found = {
        "rounds": recording.rounds,
        "messages": int(messages.sum()),
        "bytes": int(volume.sum()),
        "busiest_messages": int(messages.sum(axis=1).max(initial=0)),
        "busiest_bytes": int(volume.sum(axis=1).max(initial=0)),
        "busiest_received": int(messages.sum(axis=0).max(initial=0)),
    }
    for level, crosses in (("node", levels.between_nodes()), ("group", levels.between_groups())):
        across = np.where(crosses, volume, 0)
        found |= {
            f"{level}_messages": int(messages[crosses].sum()),
            f"{level}_bytes": int(across.sum()),
            f"{level}_received_bytes": int(across.sum(axis=0).max(initial=0)),
        }
    return found | _reads(recording) | _left_behind(recording)


def _reads(recording):
    """What a recording shows of the quantities about files.

    A request for no bytes, as a rank without a share makes it to take part in a collective read,
    asks the disk for nothing: it is not counted.
    """
    requests = recording.requests
    reads = requests[~requests["is_write"] & (requests["bytes"] > 0)]
    size = len(recording.ranks)
    by_rank = np.bincount(reads["rank"], minlength=size)
    volume = np.zeros(size, np.int64)
    np.add.at(volume, reads["rank"], reads["bytes"])
    return {
        "reads": len(reads),
        "busiest_reads": int(by_rank.max(initial=0)),
        "read_bytes": int(volume.sum()),
        "busiest_read_bytes": int(volume.max(initial=0)),
        "largest_read": int(reads["bytes"].max(initial=0)),
        "reading_ranks": int(np.count_nonzero(by_rank)),
        "collective_reads": int(np.count_nonzero(reads["collective"])),
        "unexchanged_bytes": max(map(_unexchanged, recording.ranks), default=0),
    }


def _unexchanged(rank):
    """The most bytes that a rank read between two calls that exchange something with others."""
    flags = rank.records["flags"].astype(int)
    of_file = flags & (READS_FILE | WRITES_FILE) != 0
    exchanges = ~of_file & (flags & (SENDS | RECEIVES | COLLECTIVE) != 0)
    between = np.cumsum(exchanges)
    read = np.where(flags & READS_FILE != 0, rank.records["bytes"], 0)
    return int(np.bincount(between, read).max(initial=0))


def _left_behind(recording):
    """Views other than that which a file is opened with, all of it in bytes; what was not freed.

    A recording tells where a view begins and how many bytes its filetype has. One of single bytes
    with holes in between looks like the default one, but nobody leaves that by mistake.
    """
    set_view = next(code for code, name in operations().items() if name == "MPI_File_set_view")
    with_view = 0
    for rank in recording.ranks:
        views = rank.records[rank.records["operation"] == set_view]
        latest = {view["file"]: (view["offset"], view["bytes"]) for view in views}
        with_view += any(view != (0, 1) for view in latest.values())
    return {
        "views_left": with_view,
        "leaks": sum(len(rank.leaked) for rank in recording.ranks),
    }
