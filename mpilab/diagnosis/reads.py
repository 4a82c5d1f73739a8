"""Wrong results of kernels that read a matrix from a file: which element of whose part is wrong
first, and which one stands there instead."""

import numpy as np

from mpilab.diagnosis import certain, read_slips, unfinished, words
from mpilab.diagnosis.model import WRONG_RESULT, Diagnosis, Table
from mpilab.diagnosis.part_contents import (
    HEADER,
    UNTOUCHED,
    MatrixFile,
    PartContents,
    byte_of_element,
)
from mpilab.expected import GUARD_BYTES
from mpilab.recording import READS_FILE

SHOWN_RANKS, SHOWN_ELEMENTS, SHOWN_REQUESTS = 8, 3, 8


def wrong_read(evidence, case, differences):
    """The Diagnosis of a read whose parts are not what they should be.

    differences   of mpilab.harness.compare, at least one.
    """
    parts = _parts(case, evidence.result.outputs)
    ranks = tuple(one.rank for one in differences)
    pattern, hint = certain.explain(case, evidence.result.outputs, differences)
    said = words.listing({note for one in differences for note in one.notes})
    if not parts:
        return Diagnosis(WRONG_RESULT, f"wrong result on {words.ranks(ranks)}: {said}",
                         pattern=pattern, hint=hint, ranks=ranks)  # fmt: skip
    views = [rank for rank in ranks if "MPI_File_set_view" in evidence.names(rank)]
    slip = read_slips.recognise(parts, by_view=bool(views))
    if not pattern and slip is not None:
        pattern, hint = slip
    headline = f"wrong result on {words.ranks(ranks)}: {_headline(parts[0])}"
    found = Diagnosis(
        WRONG_RESULT, f"{headline}; {said}" if said else headline, pattern=pattern, hint=hint,
        ranks=ranks, places=_where_read(evidence, parts[0]), tables=(_table(parts),),
        notes=tuple(filter(None, (_short_reads(evidence),))),
    )  # fmt: skip
    if pattern in certain.PATTERNS:
        return found
    return unfinished.as_the_cause(evidence, found) or found


def _parts(case, outputs):
    """PartContents of the ranks that have wrong elements."""
    file, found = MatrixFile(case), []
    for rank, output in enumerate(outputs[: case.ranks]):
        room = case.distribution.elements_of(rank) * 8 + 2 * GUARD_BYTES
        if output.received.size == room:
            part = PartContents(case, rank, output.received, file)
            if part.wrong.size:
                found.append(part)
    return found


def _headline(part):
    """'8 of 12 elements are not right; on rank 1, element (0, 0) of its part should be ...'."""
    at = part.wrong[0]
    wrong = f"{len(part.wrong)} of {words.number(len(part.got), 'element')}"
    if (part.got[part.wrong] == UNTOUCHED).all():
        was = "was" if len(part.wrong) == 1 else "were"
        return f"on rank {part.rank}, {wrong} {was} never written, {_extent(part)}"
    are = "is" if len(part.wrong) == 1 else "are"
    return (
        f"on rank {part.rank}, {wrong} {are} not right: element {part.place(at)} of its "
        f"part should be {_named(part, part.wanted[at])}, and holds {_content(part, at)}"
    )


def _extent(part):
    """'all of its part', 'rows 2 and 3 of its part', 'the first one at (1, 4)'."""
    columns = part.shape[1]
    if len(part.wrong) == len(part.got):
        return "all of its part"
    is_wrong = np.zeros(len(part.got), bool)
    is_wrong[part.wrong] = True
    is_wrong = is_wrong.reshape(-1, columns)
    for one, axis in (("row", 1), ("column", 0)):
        whole = np.flatnonzero(is_wrong.all(axis=axis))
        if len(whole) * is_wrong.shape[axis] == len(part.wrong):
            plural = "s" * (len(whole) != 1)
            return f"{one}{plural} {words.runs(whole.tolist())} of its part"
    return f"the first one at {part.place(part.wrong[0])}"


def _named(part, number):
    row, column = divmod(int(number), part.about.columns)
    return f"element ({row}, {column}) of the matrix"


def _content(part, at):
    """What the element `at` of the part holds."""
    got = int(part.got[at])
    if got >= 0:
        return _named(part, got)
    if got == HEADER:
        return "the header of the file"
    if got == UNTOUCHED:
        return "what was there before: it was never written"
    byte = part.byte_of(at)
    if byte is not None:
        return f"the 8 bytes from byte {byte} of the file on, parts of two elements"
    return "what is nowhere in the file"


def _table(parts):
    rows = []
    for part in parts[:SHOWN_RANKS]:
        shown = part.wrong[:SHOWN_ELEMENTS].tolist()
        rows += [
            (part.rank, str(part.place(at)), _named(part, part.wanted[at]),
             byte_of_element(part.wanted[at]), _content(part, at))
            for at in shown
        ]  # fmt: skip
        more = len(part.wrong) - len(shown)
        if more:
            rows.append((part.rank, "…", f"{words.number(more, 'more element')}", "", ""))
    left = len(parts) - SHOWN_RANKS
    title = "The first elements that are not right"
    return Table(f"{title} (and on {words.number(left, 'more rank')})" if left > 0 else title,
                 ("rank", "in its part", "should be", "at byte", "holds"), tuple(rows))  # fmt: skip


def _where_read(evidence, part):
    """Place of the request of this rank that brought its first wrong element; () where nobody
    knows. Through a view, the bytes of a request need not lie together: then it has to be the only
    one."""
    recorded = evidence.ranks[part.rank]
    at = part.wrong[0]
    byte = part.byte_of(at) if part.got[at] != UNTOUCHED else None
    if recorded is None or byte is None:
        return ()
    records = recorded.records
    reads = records["flags"] & READS_FILE != 0
    if "MPI_File_set_view" in evidence.names(part.rank):
        calls = evidence.calls(part.rank, np.flatnonzero(reads)[:2].tolist())
        return evidence.places(calls, "read it here") if len(calls) == 1 else ()
    reads &= (records["offset"] >= 0) & (records["offset"] <= byte)
    reads &= byte - records["offset"] < records["bytes"]
    calls = evidence.calls(part.rank, np.flatnonzero(reads)[:1].tolist())
    return evidence.places(calls, f"read byte {byte} here")


def _short_reads(evidence):
    """A sentence on requests that have got less than they asked for, or ''."""
    found = []
    for rank in range(evidence.size):
        recorded = evidence.ranks[rank]
        if recorded is not None:
            records = recorded.records
            short = (records["flags"] & READS_FILE != 0) & (records["done_ns"] != 0)
            short &= (records["error"] == 0) & (records["got_bytes"] < records["bytes"])
            found += evidence.calls(rank, np.flatnonzero(short)[:SHOWN_REQUESTS].tolist())
    if not found:
        return ""
    call = found[0]
    at = f" at byte {call.offset}" if call.offset >= 0 else ""
    return (
        f"Rank {call.rank} asked for {words.number(call.bytes, 'byte')}{at} and got "
        f"{call.got_bytes}{evidence.at(call)}: the file ends there."
    )
