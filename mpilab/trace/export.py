"""Write recordings as traces that other tools open: Chrome's trace events, and OTF2.

`write(recording, "run.json")` makes a file for https://ui.perfetto.dev, or chrome://tracing;
`write(recording, "run.otf2")` a folder with an OTF2 archive, the format of Score-P, for Vampir. In
both, a rank is a process, a call an interval, and a message goes from its send to the call in which
the receiver got it.
"""

import importlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mpilab.errors import InputError
from mpilab.trace.matching import EXCHANGES
from mpilab.trace.recording import RECEIVES, SENDS, Recording, operations

JSON, OTF2 = ".json", ".otf2"
NS = 1_000_000_000  # ticks of the clock in a second


@dataclass
class Interval:
    """One call of a rank: nanoseconds since the first call of any rank, and what it carried.

    sent, received  (number of the message, partner, tag, bytes, nanoseconds) of each message.
    """

    name: str
    begin: int
    end: int
    sent: list[tuple[int, ...]] = field(default_factory=list)
    received: list[tuple[int, ...]] = field(default_factory=list)


def check(path: str | Path) -> Path:
    """The Path, if a trace can be written there; InputError if not."""
    path = Path(path)
    if path.suffix not in (JSON, OTF2):
        raise InputError(f"{path}: not a kind of trace; write a name that ends in {JSON} or {OTF2}")
    if not path.parent.is_dir():
        raise InputError(f"{path}: no folder {path.parent}; create it, or choose another place")
    if path.suffix == OTF2:
        if path.exists():
            raise InputError(f"{path}: exists already; remove it, or choose another name")
        _otf2(path)
    return path


def write(recording: Recording, path: str | Path) -> Path:
    """Write `recording` to `path`, whose name ends in .json or .otf2; the file to open.

    An OTF2 archive is a folder, which must not exist. Raises InputError.
    """
    path = check(path)
    if not any(len(rank.records) for rank in recording.ranks):
        raise InputError(f"{path}: nothing to write, because the run has no recorded calls")
    if path.suffix == OTF2:
        return _write_otf2(intervals(recording), path)
    try:
        events = list(_chrome(intervals(recording)))
        path.write_text(json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}; choose another place") from None
    return path


def intervals(recording: Recording) -> list[list[Interval]]:
    """The calls of each rank in order, with the messages that each sent or received.

    A send-receive, which has two records, is one call; a call that never returned ends with the
    recording. A message is received by the call during which it arrived, e.g. an MPI_Wait.
    """
    columns = [rank.records for rank in recording.ranks]
    start = min(int(records["begin_ns"].min()) for records in columns if len(records))
    stop = max(int(max(r["begin_ns"].max(), r["end_ns"].max())) for r in columns if len(r))
    names = operations()
    found: list[list[Interval]] = []
    of_record: list[dict[int, Interval]] = []
    for records in columns:
        calls: list[Interval] = []
        by_record: dict[int, Interval] = {}
        for number, record in enumerate(records):
            if not _is_second_half(records, number):
                end = int(record["end_ns"]) or stop
                name = names.get(int(record["operation"]), "an unknown call")
                calls.append(Interval(name, int(record["begin_ns"]) - start, end - start))
            by_record[number] = calls[-1]
        found.append(calls)
        of_record.append(by_record)
    for number, message in enumerate(recording.messages):
        source, dest, tag, size = (int(message[n]) for n in ("source", "dest", "tag", "bytes"))
        send = of_record[source][int(message["send_record"])]
        send.sent.append((number, dest, tag, size, send.begin))
        if message["receive_record"] >= 0:
            at = int(message["received_ns"]) - start
            call = _during(found[dest], at, of_record[dest][int(message["receive_record"])])
            at = min(max(at, call.begin), call.end)
            call.received.append((number, source, tag, size, at))
    return found


def _is_second_half(records: Any, number: int) -> bool:
    """Whether this record is the receive of the send-receive that the record before it began."""
    if number == 0:
        return False
    send, receive = records[number - 1], records[number]
    return bool(
        operations().get(int(receive["operation"])) in EXCHANGES
        and send["operation"] == receive["operation"]
        and send["flags"] & SENDS
        and receive["flags"] & RECEIVES
    )


def _during(calls: list[Interval], at: int, own: Interval) -> Interval:
    """The first call that ends at or after `at`, from the receive `own` on; else `own`."""
    first = next(i for i, call in enumerate(calls) if call is own)
    return next((call for call in calls[first:] if call.end >= at), own)


def _chrome(ranks: list[list[Interval]]) -> Iterator[dict[str, Any]]:
    """Chrome's trace events: times in microseconds, a flow for each message."""
    for rank, calls in enumerate(ranks):
        where = {"pid": rank, "tid": rank}
        yield {"name": "process_name", "ph": "M", **where, "args": {"name": f"rank {rank}"}}
        yield {"name": "process_sort_index", "ph": "M", **where, "args": {"sort_index": rank}}
        for call in calls:
            about = {
                f"{verb} {number}": f"{size} bytes {word} rank {partner}, tag {tag}"
                for verb, word, some in (
                    ("sends", "to", call.sent),
                    ("receives", "from", call.received),
                )
                for number, partner, tag, size, _ in some
            }
            yield {
                "name": call.name,
                "cat": "MPI",
                "ph": "X",
                "ts": call.begin / 1e3,
                "dur": (call.end - call.begin) / 1e3,
                **where,
                "args": about,
            }
            flow = {"name": "message", "cat": "message", **where}
            for number, *_, at in call.sent:
                yield {**flow, "ph": "s", "id": number, "ts": at / 1e3}
            for number, *_, at in call.received:
                yield {**flow, "ph": "f", "bp": "e", "id": number, "ts": at / 1e3}


def _otf2(path: Path) -> Any:
    """The Python package otf2; InputError if it is not installed."""
    try:
        return importlib.import_module("otf2")
    except ImportError:
        raise InputError(
            f"{path}: the Python package otf2 is missing; install it with 'pip install otf2' "
            f"(Linux, Python 3.11), or write a name that ends in {JSON}"
        ) from None


def _write_otf2(ranks: list[list[Interval]], path: Path) -> Path:
    """Write an OTF2 archive: a location group for each rank, a region for each kind of call."""
    otf2 = _otf2(path)
    with otf2.writer.open(str(path), timer_resolution=NS) as trace:
        define = trace.definitions
        machine = define.system_tree_node("machine", class_name="machine")
        names = dict.fromkeys(call.name for calls in ranks for call in calls)
        regions = {
            name: define.region(
                name, region_role=otf2.RegionRole.FUNCTION, paradigm=otf2.Paradigm.MPI
            )
            for name in names
        }
        locations = [
            define.location(
                "main thread",
                type=otf2.LocationType.CPU_THREAD,
                group=define.location_group(f"rank {rank}", system_tree_parent=machine),
            )
            for rank in range(len(ranks))
        ]
        everyone = define.group(
            "ranks",
            group_type=otf2.GroupType.COMM_LOCATIONS,
            paradigm=otf2.Paradigm.MPI,
            members=locations,
        )
        world = define.comm("all ranks of the run", group=everyone)
        for location, calls in zip(locations, ranks, strict=True):
            writer = trace.event_writer_from_location(location)
            for call in calls:
                writer.enter(call.begin, regions[call.name])
                for _, partner, tag, size, at in call.sent:
                    writer.mpi_send(at, partner, world, tag, size)
                for _, partner, tag, size, at in sorted(call.received, key=lambda each: each[-1]):
                    writer.mpi_recv(at, partner, world, tag, size)
                writer.leave(call.end, regions[call.name])
    return path / "traces.otf2"
