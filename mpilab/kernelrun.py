"""One run of a kernel, as a notebook and the command line show it."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import LEAK, WRONG_RESULT
from mpilab.errors import InputError, MpilabError
from mpilab.harness import GUARD_BYTES, Case
from mpilab.result import DONE, Result

VIEWS = ("timeline", "matrix", "rounds")
# Of more ranks or blocks no picture of single ones is drawn; the tables still tell.
PICTURED = 64


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
        """What each rank's receive buffer holds: int32 [rank, block, element], for datatype int."""
        self._need_done()
        case = self.result.case
        if case.datatype != "int":
            raise InputError(f"datatype {case.datatype!r}: blocks are shown for 'int' only")
        rows = [
            output.received[GUARD_BYTES:][:-GUARD_BYTES].view(np.int32)
            for output in self.result.outputs
        ]
        return np.stack(rows).reshape(case.ranks, -1, case.count)

    @property
    def messages(self):
        """The messages of the run (mpilab.recording.MESSAGE records)."""
        return self._recording().messages

    @property
    def rounds(self):
        """Number of rounds."""
        return self._recording().rounds

    def matrix(self):
        """(messages, bytes) from each rank to each other."""
        return self._recording().matrix()

    @cached_property
    def diagnosis(self):
        """What is wrong with this run (mpilab.diagnosis.model.Diagnosis); None if nothing is."""
        found = diagnose(self.result)
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
        """Draw the recording of this run in the notebook: 'timeline', 'matrix' or 'rounds'."""
        from mpilab.plots import style

        style.show(self.figure(view))

    def figure(self, view="timeline"):
        """The plotly figure of one view of the recording: 'timeline', 'matrix' or 'rounds'."""
        from mpilab.plots import matrix, recorded, timeline

        if view not in VIEWS:
            raise InputError(f"view {view!r}: unknown; write one of {', '.join(VIEWS)}")
        if view == "timeline":
            return timeline.timeline(self.result.ranks, title=self._title())
        recording = self._recording()
        if view == "matrix":
            hosts = matrix.hosts(recording)
            return matrix.messages(*recording.matrix(), hosts=hosts, title=self._title())
        if not self.result.snapshots:
            raise InputError(
                f"{self.function}: the buffers of this run are too large to be drawn round by "
                "round; run it with a smaller count"
            )
        states = recorded.buffer_states(recording, self.result.case, self.result.snapshots)
        return recorded.recorded(recording, states, title=self._title())

    def figures(self):
        """Figures that belong to the diagnosis: who waits for whom, or which blocks are wrong."""
        from mpilab.diagnosis import wrong_result
        from mpilab.plots import blocks, waiting

        case, found = self.result.case, self.diagnosis
        if found is None or case.ranks > PICTURED:
            return []
        if self.result.hang is not None and any(s.waits_for for s in self.result.states):
            return [waiting.waiting(self.result.states, found.cycle)]
        if found.kind == WRONG_RESULT:
            return [blocks.blocks(*wrong_result.picture(case, self.result.outputs))]
        return []

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
        if self.right:
            yield "  result:   right on every rank"
        if self.result.recording is not None and self.result.outcome == DONE:
            spans = [output.spans_ns for output in self.result.outputs]
            last = max(span[-1, 1] for span in spans) - min(span[-1, 0] for span in spans)
            total = int(self.messages["bytes"].sum())
            yield (
                f"  messages: {len(self.messages)} in {self.rounds} rounds, {total} bytes in all"
            )
            yield f"  time:     {last / 1000:.1f} µs from the first rank's start to the last's end"
        for rank, text in sorted(self.result.printed.items()) if self.right else ():
            yield f"  rank {rank} printed:"
            yield from (f"    {line}" for line in text.splitlines())

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
