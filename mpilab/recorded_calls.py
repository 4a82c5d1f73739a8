"""One call as a recording tells it, in Python's own types."""

from typing import NamedTuple

from mpilab.recording import ANY, COLLECTIVE, READS_FILE, RECEIVES, SENDS, WRITES_FILE, operations

PROBES = ("MPI_Probe", "MPI_Mprobe", "MPI_Iprobe", "MPI_Improbe")


class Call(NamedTuple):
    """One record, in Python's own types: fields as in mpilab.recording.RECORD."""

    rank: int
    index: int
    name: str
    flags: int
    communicator: int
    peer: int
    tag: int
    bytes: int
    begin_ns: int
    end_ns: int
    done_ns: int
    site: int
    got_bytes: int
    got_peer: int
    got_tag: int
    waiter: int
    count: int
    error: int
    sequence: int
    members: int
    file: int
    offset: int

    @property
    def sends(self):
        """Does a message leave this rank?"""
        return bool(self.flags & SENDS)

    @property
    def receives(self):
        """Does it take a message, or look for one?"""
        return bool(self.flags & RECEIVES) or self.name in PROBES

    @property
    def collective(self):
        """Do all ranks of the communicator have to call it?"""
        return bool(self.flags & COLLECTIVE)

    @property
    def moves_file(self):
        """Is it a request for data of a file?"""
        return bool(self.flags & (READS_FILE | WRITES_FILE))

    @property
    def asks_disk(self):
        """Is it a call on a file that no other rank has to make, too? It takes its time."""
        return self.name.startswith("MPI_File_") and not self.collective

    def takes(self, sent):
        """May this receive (or probe) get the message of the send `sent`?"""
        return (
            sent.peer == self.rank
            and sent.communicator == self.communicator
            and self.peer in (ANY, sent.rank)
            and self.tag in (ANY, sent.tag)
        )


def call_of(rank, number, index):
    """Record `index` of the RankRecording `rank`, the `number`-th, as a Call."""
    operation, *rest = rank.records[index].tolist()
    name = operations().get(operation, "an unknown call")
    return Call(number, int(index), name, *rest)
