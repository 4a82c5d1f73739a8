"""One run of a kernel, as a notebook and the command line show it."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mpilab.contents import contents_of
from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import LEAK, WRONG_RESULT
from mpilab.errors import InputError, MpilabError
from mpilab.expected import block_places, collective_of
from mpilab.harness import Case
from mpilab.quantities import counts
from mpilab.result import DONE, Result

VIEWS = ("timeline", "matrix", "rounds", "network", "access")
# Of more ranks or blocks no picture of single ones is drawn; the tables still tell.
PICTURED = 64


# The matrix that a read kernel is run with where nobody names one.
USUAL_MATRIX = "12x12"


def usual(collective, count=None, datatype=None, matrix=""):
    """(count, datatype, matrix) of a run where nobody says them.

    Of a read, the matrix says the others as well. Otherwise there are 4 elements of int a block,
    and none in a barrier.
    """
    about = collective_of(collective)
    if about.reads:
        return 1 if count is None else count, datatype or "double", matrix or USUAL_MATRIX
    if count is None:
        count = 4 if about.has_blocks else 0
    return count, datatype or "int", matrix


@dataclass(frozen=True)
class KernelRun:
    """One run of a kernel: what each rank has, the messages, and what went wrong.

    smallest   the smallest case that goes wrong as well, if one was looked for; `tried` how many
               were.
    """

    function: str
    result: Result
    smallest: Case | None = None
    tried: int = 0

    @property
    def blocks(self):
        """What each rank's receive buffer holds: int32 [rank, block, element], for datatype int.

        A bcast, scatter, reduce or allreduce has one block a rank. Where ranks have different
        numbers of blocks (in a gather or reduce only the root has any), or blocks of different
        lengths (in an alltoallv), the array is a masked one (numpy.ma), and what a rank does not
        have is masked.
        """
        self._need_done()
        case = self.result.case
        if not collective_of(case.collective).has_blocks:
            raise InputError(f"{self.function}: a {case.collective} moves no data; see messages")
        if case.datatype != "int":
            raise InputError(f"datatype {case.datatype!r}: blocks are shown for 'int' only")
        about = collective_of(case.collective)
        rows = [
            [output.received[block_places(case, block, rank)].view(np.int32)
             for block in range(about.blocks(case, rank).received)]
            for rank, output in enumerate(self.result.outputs)
        ]  # fmt: skip
        most = max(map(len, rows))
        lengths = {len(block) for row in rows for block in row}
        if {len(row) for row in rows} == {most} and len(lengths) == 1:
            return np.array(rows, np.int32).reshape(case.ranks, most, *lengths)
        found = np.ma.masked_all((case.ranks, most, max(lengths)), np.int32)
        for rank, row in enumerate(rows):
            for number, block in enumerate(row):
                found[rank, number, : len(block)] = block
        return found

    @property
    def messages(self):
        """The messages of the run (mpilab.recording.MESSAGE records)."""
        return self._recording().messages

    @property
    def rounds(self):
        """Number of rounds."""
        return self._recording().rounds

    @property
    def levels(self):
        """The nodes and groups of the ranks (mpilab.places.Levels), real or pretended."""
        return self.result.levels

    def matrix(self):
        """(messages, bytes) from each rank to each other."""
        return self._recording().matrix()

    @cached_property
    def diagnosis(self):
        """What is wrong with this run (mpilab.diagnosis.model.Diagnosis); None if nothing is."""
        found = diagnose(self.result)
        barrier = self._is_mpis_own and self.result.case.collective == "barrier"
        if barrier and found is not None and found.kind == WRONG_RESULT:
            return None  # that all have come it learns by messages that nobody recorded
        if found is None or found.kind != WRONG_RESULT or self.smallest is None:
            return found
        case = self.smallest
        words = (
            "No smaller case goes wrong"
            if case == self.result.case
            else f"The smallest case that goes wrong as well: {case.describe()}"
        )
        return replace(found, notes=(*found.notes, f"{words} ({self.tried} tried)."))

    @property
    def right(self):
        """Did every rank end with the right bytes, and no call fail?"""
        return self.result.outcome == DONE and (
            self.diagnosis is None or self.diagnosis.kind == LEAK
        )

    @property
    def trouble(self):
        """What went wrong, in a sentence; '' if the result is right."""
        return "" if self.right else self.diagnosis.headline

    def show(self, view="timeline"):
        """Draw the recording of this run in the notebook: one of VIEWS, see `figure`."""
        from mpilab.plots import style

        style.show(self.figure(view))

    def figure(self, view="timeline"):
        """The plotly figure of one view of the recording: 'timeline', 'matrix', 'rounds' or
        'network', the links that its messages go over (InputError where all ranks share a node);
        'access', what a read asks of its file: below MPI where that is known, otherwise of MPI."""
        from mpilab.plots import access_map, matrix, recorded, timeline

        if view not in VIEWS:
            raise InputError(f"view {view!r}: unknown; write one of {', '.join(VIEWS)}")
        if view == "timeline":
            return timeline.timeline(self.result.ranks, title=self._title())
        if view == "access":
            return access_map.of_result(self.result)
        recording = self._recording()
        if view == "matrix":
            hosts = matrix.hosts(recording)
            return matrix.messages(*recording.matrix(), hosts=hosts, title=self._title())
        if view == "network":
            return self._network(recording)
        contents_of(self.result.case)  # an InputError for those that have no such picture
        if not self.result.snapshots:
            raise InputError(
                f"{self.function}: the buffers of this run are too large to be drawn round by "
                "round; run it with a smaller count"
            )
        states = recorded.buffer_states(recording, self.result.case, self.result.snapshots)
        return recorded.recorded(recording, states, title=self._title(), case=self.result.case)

    def _network(self, recording):
        from mpilab.plots import network

        if self._is_mpis_own:
            raise InputError(f"{self.function}: the messages of MPI's own are not recorded")
        if self.levels.nodes == 1:
            raise InputError(
                f"{self.function}: all ranks were on one node, so no message went over a network; "
                "run it on several hosts, or as a Case with places"
            )
        if self.result.case.ranks <= PICTURED and 1 < recording.rounds <= PICTURED:
            return network.by_round(recording.messages, self.levels, title=self._title())
        return network.network(recording.matrix(), self.levels, title=self._title())

    def figures(self):
        """Figures that belong to the diagnosis: who waits for whom, or which blocks are wrong."""
        from mpilab.diagnosis.pictures import picture
        from mpilab.plots import blocks, waiting

        case, found = self.result.case, self.diagnosis
        if found is None or case.ranks > PICTURED:
            return []
        if self.result.hang is not None and any(s.waits_for for s in self.result.states):
            return [waiting.waiting(self.result.states, found.cycle)]
        if found.kind == WRONG_RESULT and collective_of(case.collective).has_blocks:
            return [blocks.blocks(*picture(case, self.result.outputs))]
        return []

    @property
    def _is_mpis_own(self):
        """Is it MPI's own collective (src_c/openmpi)? Its messages are below what we record."""
        return self.function == f"{self.result.case.collective}_openmpi"

    def _title(self):
        return f"{self.function}, {self.result.case.describe()}"

    def _recording(self):
        if self.result.recording is None:
            raise MpilabError(f"{self.function}: this run left no recording; run it again")
        return self.result.recording

    def _need_done(self):
        if self.result.outcome != DONE:
            raise MpilabError(f"{self.function} did not come to its end: {self.trouble}")

    def _lines(self):
        yield f"{self.function} with {self.result.case.describe()}"
        if self.levels.nodes > 1 and self.result.case.ranks <= PICTURED:
            yield f"  hosts:    {self._hosts()}"
        if self.right:
            yield "  result:   right on every rank"
        if self.result.recording is not None and self.result.outcome == DONE:
            spans = [output.spans_ns for output in self.result.outputs]
            last = max(span[-1, 1] for span in spans) - min(span[-1, 0] for span in spans)
            yield from self._traffic()
            yield f"  time:     {last / 1000:.1f} µs from the first rank's start to the last's end"
        for rank, text in sorted(self.result.printed.items()) if self.right else ():
            yield f"  rank {rank} printed:"
            yield from (f"    {line}" for line in text.splitlines())

    def _traffic(self):
        if self._is_mpis_own:
            yield "  messages: MPI's own, not recorded"
            return
        total = int(self.messages["bytes"].sum())
        yield f"  messages: {len(self.messages)} in {self.rounds} rounds, {total} bytes in all"
        yield from self._busiest()
        if collective_of(self.result.case.collective).reads:
            yield f"  requests: {self._requests()}"
        if self.levels.nodes > 1:
            yield f"  crossing: {self._crossing()}"

    def _hosts(self):
        """Which ranks are on which host: 'left: n1 (0 1), n2 (2 3); right: n3 (4 5)'."""
        ranks = {}
        for rank, place in enumerate(self.levels.places):
            ranks.setdefault(place.group, {}).setdefault(place.node, []).append(str(rank))
        hosts = {
            group: ", ".join(f"{node} ({' '.join(on)})" for node, on in nodes.items())
            for group, nodes in ranks.items()
        }
        if len(hosts) == 1:
            return next(iter(hosts.values()))
        return "; ".join(f"{group}: {names}" for group, names in hosts.items())

    def _requests(self):
        """'24 to MPI, 1152 bytes in all; of one rank at most 6, of at most 48 bytes each'."""
        found = counts(self._recording(), self.levels)
        return (
            f"{found['reads']} to MPI, {found['read_bytes']} bytes in all; of one rank at most "
            f"{found['busiest_reads']}, of at most {found['largest_read']} bytes each"
        )

    def _crossing(self):
        """'3 messages, 48 bytes between nodes; 1 message, 16 bytes between groups'."""
        found = counts(self._recording(), self.levels)
        return "; ".join(
            f"{found[f'{level}_messages']} message{'s' * (found[f'{level}_messages'] != 1)}, "
            f"{found[f'{level}_bytes']} bytes between {level}s"
            for level, parts in (("node", self.levels.nodes), ("group", self.levels.groups))
            if parts > 1
        )

    def _busiest(self):
        """Who sends most, where not all send alike: that rank's port is what a run waits for."""
        messages, volume = (sent.sum(axis=1) for sent in self.matrix())
        if len(set(messages)) == len(set(volume)) == 1:
            return
        most = np.flatnonzero(messages == messages.max())
        rank = most[volume[most].argmax()]
        said = f"rank {rank} sends {messages[rank]} message{'s' * int(messages[rank] != 1)}"
        if volume[rank]:
            said += f", {volume[rank]} bytes"
        if volume[rank] < volume.max():
            said += f"; rank {volume.argmax()} sends {volume.max()} bytes"
        yield f"  busiest:  {said}"

    def __repr__(self):
        from mpilab.panel.text import text

        lines = list(self._lines())
        return "\n".join(lines if self.diagnosis is None else [*lines, text(self.diagnosis)])

    def _ipython_display_(self):
        from mpilab.panel import notebook

        summary = "\n".join(self._lines())
        if self.diagnosis is None:
            print(summary)
            return
        if self.right:
            print(summary)  # a leak: the result is right all the same
        notebook.show(self.diagnosis, self.figures(), title=summary.splitlines()[0])
