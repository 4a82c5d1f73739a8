"""Run kernels on the active cluster, mpilab.run, and time them in jobs of their own, mpilab.sweep.

import mpilab
cluster = mpilab.Cluster(4).start()
mpilab.run("allgather_ring", ranks=4, count=2)

or, to see the inter-node traffic of a cluster,

cluster = mpilab.Cluster(hosts="two-groups", order="rr").start()
mpilab.run("bcast_node_group")
"""

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tqdm.auto import tqdm

from mpilab.cases.case import COLLECTIVES, Case, block_places, collective_of
from mpilab.cases.data import datatype
from mpilab.cluster.engines import active_cluster, asleep
from mpilab.diagnosis import diagnose, smallest
from mpilab.diagnosis.model import LEAK, WRONG_RESULT, Diagnosis
from mpilab.diagnosis.render import text
from mpilab.diagnosis.wrong_result import picture
from mpilab.errors import ClusterError, InputError, MpilabError
from mpilab.hosts import slurm
from mpilab.hosts.orders import places_of
from mpilab.hosts.places import Levels, Place
from mpilab.kernels import simgrid
from mpilab.kernels.build import KERNELS, Built, need
from mpilab.measure.dataset import processor
from mpilab.measure.distances import bound_options
from mpilab.measure.sweep import check_cores, cores_of
from mpilab.measure.sweep_table import ROW
from mpilab.models.declared import counts, nearest_kernel, openmpis_of
from mpilab.notebook import panel
from mpilab.plots import failures, file_access, network, style
from mpilab.plots.matrix import hosts as hosts_of
from mpilab.plots.matrix import messages
from mpilab.plots.recording import buffer_states, recorded
from mpilab.plots.style import Figure
from mpilab.plots.timeline import timeline
from mpilab.runners import engines, mpirun
from mpilab.runners.result import DONE, Result, leaves_state
from mpilab.trace.recording import Recording
from mpilab.trace.snapshots import contents_of
from mpilab.util.kit import ROOT

# One run of a kernel, as shown in a notebook or on the command line.

VIEWS = ("timeline", "matrix", "rounds", "network", "access")
# Most ranks or rounds for which figures show each one, and most ranks for which hosts are listed.
PICTURED = 64
# The default matrix of a read kernel.
USUAL_MATRIX = "12x12"


def usual(
    collective: str, count: int | None = None, datatype: str | None = None, matrix: str = ""
) -> tuple[int, str, str]:
    """(count, datatype, matrix) of a run, with defaults for those not given.

    A read has a count of 1, doubles, and USUAL_MATRIX. Other collectives have blocks of 4 ints, and
    a barrier has a count of 0.
    """
    about = collective_of(collective)
    if about.reads:
        return 1 if count is None else count, datatype or "double", matrix or USUAL_MATRIX
    if count is None:
        count = 4 if about.has_blocks else 0
    return count, datatype or "int", matrix


@dataclass(frozen=True)
class KernelRun:
    """One run of a kernel: its results, messages and diagnosis.

    smallest   the smallest failing case, if one was searched for
    tried      how many cases the search tried
    """

    function: str
    result: Result
    smallest: Case | None = None
    tried: int = 0

    @property
    def blocks(self) -> NDArray[np.int32]:
        """The receive buffers: int32 [rank, block, element], for datatype int only.

        A bcast, scatter, reduce or allreduce has one block per rank. If ranks have different
        numbers of blocks (in a gather or reduce only the root has any), or blocks of different
        lengths (in an alltoallv), the array is masked (numpy.ma) where a rank has no data.
        """
        self._need_done()
        case = self.result.case
        if not collective_of(case.collective).has_blocks:
            raise InputError(f"{self.function}: a {case.collective} moves no data; see messages")
        if case.datatype != "int":
            raise InputError(f"datatype {case.datatype!r}: blocks are shown for 'int' only")
        about = collective_of(case.collective)
        rows = [
            [
                output.received[block_places(case, block, rank)].view(np.int32)
                for block in range(about.blocks(case, rank).received)
            ]
            for rank, output in enumerate(self.result.outputs)
        ]
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
    def messages(self) -> NDArray[Any]:
        """The messages of the run (mpilab.trace.recording.MESSAGE records)."""
        return self._recording().messages

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self._recording().rounds

    @property
    def levels(self) -> Levels:
        """The nodes and groups of the ranks (mpilab.hosts.places.Levels), real or assigned."""
        return self.result.levels

    def matrix(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(messages, bytes): two traffic matrices, [sender, receiver]."""
        return self._recording().matrix()

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """The mpilab.diagnosis.model.Diagnosis of this run; None if nothing is wrong."""
        found = diagnose(self.result)
        barrier = self._is_mpis_own and self.result.case.collective == "barrier"
        if barrier and found is not None and found.kind == WRONG_RESULT:
            return None  # its messages are not recorded: no proof that it waits for all ranks
        if found is None or found.kind != WRONG_RESULT or self.smallest is None:
            return found
        case = self.smallest
        words = (
            "No smaller case fails"
            if case == self.result.case
            else f"The smallest failing case: {case.describe()}"
        )
        return replace(found, notes=(*found.notes, f"{words} ({self.tried} tried)."))

    @property
    def right(self) -> bool:
        """Whether every rank ended with the correct bytes and no call failed."""
        return self.result.outcome == DONE and (
            self.diagnosis is None or self.diagnosis.kind == LEAK
        )

    @property
    def trouble(self) -> str:
        """What went wrong, in a sentence; '' if the result is correct."""
        return "" if self.right or self.diagnosis is None else self.diagnosis.headline

    def as_json(self) -> dict[str, Any]:
        """The run as a dict: the case, traffic, time, and the diagnosis; for JSON."""
        result, found = self.result, {"kernel": self.function, "case": self.result.case}
        found |= {"outcome": result.outcome, "right": self.right}
        if result.outcome == DONE and result.recording is not None:
            found["seconds"] = self.result.last_call_ns / 1e9
            if not self._is_mpis_own:
                found |= {
                    name: int(n) for name, n in counts(self._recording(), self.levels).items()
                }
        found["printed"] = result.printed
        found["diagnosis"] = self.diagnosis
        return found

    def show(self, view: str = "timeline") -> None:
        """Display a view of this run in the notebook: one of VIEWS, see `figure`."""
        style.show(self.figure(view))

    def figure(self, view: str = "timeline") -> Figure:
        """The plotly figure of a view of the recording.

        view   'timeline', 'matrix' or 'rounds'; 'network', the links that messages use (InputError
               if all ranks share a node); 'access', the file requests of a read: those below MPI if
               known, otherwise those to MPI.
        """
        if view not in VIEWS:
            raise InputError(f"view {view!r}: unknown; write one of {', '.join(VIEWS)}")
        if view == "timeline":
            return timeline(self.result.ranks, title=self._title())
        if view == "access":
            return file_access.of_result(self.result)
        recording = self._recording()
        if view == "matrix":
            sent, volume = recording.matrix()
            hosts = hosts_of(recording)
            return messages(sent, volume, hosts=hosts, title=self._title())
        if view == "network":
            return self._network(recording)
        contents_of(self.result.case)  # raises InputError if the collective has no such figure
        if not self.result.snapshots:
            raise InputError(
                f"{self.function}: the buffers of this run are too large to be drawn round by "
                "round; run it with a smaller count"
            )
        states = buffer_states(recording, self.result.case, self.result.snapshots)
        return recorded(recording, states, title=self._title(), case=self.result.case)

    def _network(self, recording: Recording) -> Figure:
        if self._is_mpis_own:
            raise InputError(f"{self.function}: messages of MPI's own algorithm are not recorded")
        if self.levels.nodes == 1:
            raise InputError(
                f"{self.function}: all ranks were on one node, so no message went over a network; "
                "run it on several hosts, or as a Case with places"
            )
        if self.result.case.ranks <= PICTURED and 1 < recording.rounds <= PICTURED:
            return network.by_round(recording.messages, self.levels, title=self._title())
        return network.network(recording.matrix(), self.levels, title=self._title())

    def figures(self) -> list[Figure]:
        """The figures for the diagnosis: which rank waits for which, or which blocks are wrong."""
        case, found = self.result.case, self.diagnosis
        if found is None or case.ranks > PICTURED:
            return []
        if self.result.hang is not None and any(s.waits_for for s in self.result.states):
            return [failures.wait_for_graph(self.result.states, found.cycle)]
        if found.kind == WRONG_RESULT and collective_of(case.collective).has_blocks:
            return [failures.blocks(*picture(case, self.result.outputs))]
        return []

    @property
    def _is_mpis_own(self) -> bool:
        """Whether it is one of MPI's own collectives (src_c/runtime/openmpi), whose messages are
        not recorded."""
        return self.function in openmpis_of(self.result.case.collective)

    def _title(self) -> str:
        return f"{self.function}, {self.result.case.describe()}"

    def _recording(self) -> Recording:
        if self.result.recording is None:
            raise MpilabError(f"{self.function}: this run left no recording; run it again")
        return self.result.recording

    def _need_done(self) -> None:
        if self.result.outcome != DONE:
            raise MpilabError(f"{self.function} did not finish: {self.trouble}")

    def _lines(self) -> Iterator[str]:
        yield f"{self.function} with {self.result.case.describe()}"
        if self.levels.nodes > 1 and self.result.case.ranks <= PICTURED:
            yield f"  hosts:    {self._hosts()}"
        if self.right:
            yield "  result:   right on every rank"
        if self.result.recording is not None and self.result.outcome == DONE:
            yield from self._traffic()
            span = self.result.last_call_ns / 1000
            yield f"  time:     {span:.1f} µs from the first rank's start to the last's end"
        for rank, printed in sorted(self.result.printed.items()) if self.right else ():
            yield f"  rank {rank} printed:"
            yield from (f"    {line}" for line in printed.splitlines())

    def _traffic(self) -> Iterator[str]:
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

    def _hosts(self) -> str:
        """The ranks on each host: 'left: n1 (0 1), n2 (2 3); right: n3 (4 5)'."""
        ranks: dict[str, dict[str, list[str]]] = {}
        for rank, place in enumerate(self.levels.places):
            ranks.setdefault(place.group, {}).setdefault(place.node, []).append(str(rank))
        hosts = {
            group: ", ".join(f"{node} ({' '.join(on)})" for node, on in nodes.items())
            for group, nodes in ranks.items()
        }
        if len(hosts) == 1:
            return next(iter(hosts.values()))
        return "; ".join(f"{group}: {names}" for group, names in hosts.items())

    def _requests(self) -> str:
        """'24 to MPI, 1152 bytes in all; of one rank at most 6, of at most 48 bytes each'."""
        found = counts(self._recording(), self.levels)
        return (
            f"{found['reads']} to MPI, {found['read_bytes']} bytes in all; at most "
            f"{found['busiest_reads']} by one rank, each of at most {found['largest_read']} bytes"
        )

    def _crossing(self) -> str:
        """'3 messages, 48 bytes between nodes; 1 message, 16 bytes between groups'."""
        found = counts(self._recording(), self.levels)
        return "; ".join(
            f"{found[f'{level}_messages']} message{'s' * (found[f'{level}_messages'] != 1)}, "
            f"{found[f'{level}_bytes']} bytes between {level}s"
            for level, parts in (("node", self.levels.nodes), ("group", self.levels.groups))
            if parts > 1
        )

    def _busiest(self) -> Iterator[str]:
        """Yield which rank sends most, unless all send the same: its port limits the run."""
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

    def __repr__(self) -> str:
        lines = list(self._lines())
        return "\n".join(lines if self.diagnosis is None else [*lines, text(self.diagnosis)])

    def _ipython_display_(self) -> None:
        summary = "\n".join(self._lines())
        if self.diagnosis is None:
            print(summary)
            return
        if self.right:
            print(summary)  # a leak: the result is correct nevertheless
        panel.show(self.diagnosis, self.figures(), title=summary.splitlines()[0])


# {function: Built} of this notebook's %%kernel cells, in order of definition.
kernels: dict[str, Built] = {}


def library_of(function: str) -> Path:
    """The shared object with this kernel: the notebook's own if defined, otherwise the kit's."""
    if function in kernels:
        return kernels[function].library
    collective, _, algorithm = function.partition("_")
    own = collective in COLLECTIVES and function in openmpis_of(collective)
    if own or (ROOT / "src_c" / collective / f"{algorithm}.c").is_file():
        return need(KERNELS)
    remedy = nearest_kernel(function, kernels) or (
        "Run the cell that defines it, and check the spelling."
    )
    raise InputError(
        f"kernel {function!r}: neither a %%kernel cell of this notebook nor the kit defines it. "
        f"{remedy}"
    )


@cache
def _simulated(built: Built) -> Path:
    stem = f"{built.library.stem}-simulated"
    return simgrid.build(built.source, built.library.parent, stem=stem).library


def simulated_library(function: str) -> Path | None:
    """The SimGrid program of a kernel from a %%kernel cell; None if no cell defines it.

    It is built on first use. Raises BuildError, and SetupError without SimGrid.
    """
    return _simulated(kernels[function]) if function in kernels else None


def is_sanitized(function: str) -> bool:
    """Whether this kernel was compiled with `%%kernel --sanitize`."""
    return function in kernels and kernels[function].sanitized


def run_cases(function: str, cases: Sequence[Case], **options: Any) -> list[Result]:
    """Run cases of a kernel; list of Result (options: see mpilab.runners.engines.run_cases).

    They run on the active cluster. A kernel compiled with sanitizers runs in a separate mpirun on
    the same hosts, because sanitizers must be loaded when a process starts; and so do cases with a
    limit on memory, because MPI itself may fail under it.
    """
    library = library_of(function)
    sanitized = is_sanitized(function)
    if sanitized or any(case.memory for case in cases):
        return mpirun.run_cases(library, function, cases, sanitize=sanitized, **_hosts(), **options)
    return engines.run_cases(active_cluster(), library, function, cases, **options)


def _hosts() -> dict[str, Any]:
    """The active cluster's hosts as options for mpilab.runners.mpirun; {} if there are none."""
    try:
        cluster = active_cluster()
    except ClusterError:
        return {}
    return {"hosts": cluster.hosts, "names": cluster.names} if cluster.hosts else {}


def run(
    function: str,
    *,
    ranks: int | None = None,
    count: int | None = None,
    datatype: str | None = None,
    in_place: bool = False,
    reversed: bool = False,
    strict: bool = False,
    seed: int = 1,
    root: int = 0,
    op: str = "sum",
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    places: str | Iterable[Place] = (),
    budget: int = 0,
    memory: int = 0,
    pattern: str = "even",
    matrix: str = "",
    buffer: int = 0,
    aggregators: int = 0,
    sequence: str = "",
    unused: bool = False,
    shrink: bool = True,
) -> KernelRun:
    """Run a kernel once on the active cluster, and record it; KernelRun.

    ranks          number of ranks; default: all ranks of the cluster, or one per place.
    count          elements per block (of the whole message in a bcast, reduce or allreduce);
                   default: 4; none in a barrier.
    datatype       byte, int (the default), contiguous, vector, struct, shifted, raised, backward or
                   mixed; for a read only double.
    strict         strict mode: sends are synchronous, so a kernel that relies on buffering hangs.
    root           of a bcast, gather, scatter or reduce.
    op             of a reduce or allreduce: "sum", or "compose", which does not commute.
    segment, fanout, radix   tuning of the algorithm (segment in bytes); 0: its default.
    places         hosts and groups assigned to the ranks: a text such as "2x2x2 rr" (see
                   mpilab.hosts.orders), or the mpilab.hosts.places.Place of each rank.
    budget         bytes of other ranks' data that a rank may hold; 0: the algorithm's default.
    memory         bytes of memory that a rank may have during the call, beyond what it has before;
                   0: no limit. Such a run is a job of its own. Linux only.
    pattern        of an alltoallv: "even", "ragged" or "sparse", see mpilab.cases.counts.
    matrix         of a read: "12x12", or "12x10 by 4x2 on 2x3", see mpilab.cases.distribution.
    buffer, aggregators   of a read: maximum bytes of a request, and number of ranks that read for
                   all; 0: the algorithm's default.
    sequence       call the kernel several times: "again", "roots" (from other roots first),
                   "duplicate" (then on a duplicate of the communicator), or "parts" (on all ranks,
                   on some of them, on all again).
    unused         pass no valid value where MPI ignores an argument, such as the receive count of a
                   gather except at the root.
    shrink         after a wrong result, search for the smallest failing case.
    """
    places = places_of(places) if isinstance(places, str) else tuple(places)
    if ranks is None:
        ranks = len(places) or active_cluster().n
    collective = function.partition("_")[0]
    count, datatype, matrix = usual(collective, count, datatype, matrix)
    case = Case(
        collective,
        ranks,
        count,
        datatype,
        in_place,
        reversed,
        strict,
        seed,
        snapshots=True,
        root=root,
        op=op,
        segment=segment,
        fanout=fanout,
        radix=radix,
        places=places,
        budget=budget,
        memory=memory,
        pattern=pattern,
        matrix=matrix,
        buffer=buffer,
        aggregators=aggregators,
        sequence=sequence,
        unused=unused,
    )
    done = _run(function, case)
    if shrink and done.diagnosis is not None and done.diagnosis.kind == WRONG_RESULT:
        least, tried = smallest(case, lambda smaller: _is_wrong(function, smaller))
        done = KernelRun(function, done.result, least, tried)
    return done


def _run(function: str, case: Case) -> KernelRun:
    (result,) = run_cases(function, [case])
    return KernelRun(function, result)


def _is_wrong(function: str, case: Case) -> bool:
    diagnosis = _run(function, case).diagnosis
    return diagnosis is not None and diagnosis.kind == WRONG_RESULT


# Time kernels over message sizes: mpilab.sweep.

# A call takes milliseconds; the limits, of wall time and of processor time without an MPI call, are
# for kernels that never end.
LIMIT_S, WORK_S = 20.0, 2.0


def sweep(
    functions: Iterable[str],
    *,
    sizes: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    repetitions: int = 30,
    warmup: int = 5,
    strict: bool = False,
    root: int = 0,
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    oversubscribe: bool = False,
    progress: bool = True,
) -> NDArray[Any]:
    """Time kernels over message sizes with mpirun; a table (mpilab.measure.sweep_table).

    functions    kernel names, e.g. ["allgather_ring", "bcast_binomial"].
    sizes        bytes (m): of a block in an allgather, gather or scatter, of the whole message in
                 a bcast, reduce or allreduce. Reductions add ints, so their sizes are rounded up to
                 a multiple of 4 bytes. A barrier needs no sizes; its rows have 0 bytes.
    ranks        list of numbers of ranks; default: the cluster's, or 2.
    repetitions  timed calls, after `warmup` untimed calls.
    strict       strict mode, as in `run`.
    root         of the collectives that have one.
    segment, fanout, radix   tuning of all algorithms (segment in bytes); 0: their defaults.
    oversubscribe   allow more ranks than cores: they take turns, and their rows are labeled.

    The ranks are not those of the cluster, which sleep meanwhile: each number of ranks is a job of
    its own, on the cluster's hosts if it has any. On this machine, each rank is bound to a core of
    its own, and waits for messages without sleeping. Kernels of the kit run in one job, in turn;
    each kernel of a cell runs in another.

    Times of each call, in seconds: span_s, from the first rank's entry to the last rank's exit; and
    the mean (mean_s, as the OSU benchmarks report), longest and shortest (max_s, min_s) of the
    ranks' own durations. Each size is first run once, recorded and compared, so that no wrong
    result is timed. A kernel that fails there is left out for that size; one that hangs, crashes or
    is not defined is left out from then on. Each such kernel gets one warning.

    Raises InputError for more ranks than cores without `oversubscribe`, ClusterError if the
    cluster's ranks compute, and warns if they have computed during the sweep.
    """
    ranks = ranks or [_ranks_of_the_cluster()]
    hosts = _hosts()
    cores = cores_of(hosts.get("hosts") or slurm.wished())
    check_cores(ranks, cores, oversubscribe)
    known, left_out = _known(functions)
    tuned = {"segment": segment, "fanout": fanout, "radix": radix}
    plan = [
        (function, case)
        for function in known
        for number in ranks
        for case in _cases(function, number, sizes, root, strict, tuned)
    ]
    return _timed(plan, left_out, cores, repetitions, warmup, progress)


def sweep_reads(
    functions: Iterable[str],
    *,
    matrix: str,
    ranks: int,
    repetitions: int = 30,
    warmup: int = 1,
    seed: int = 1,
    oversubscribe: bool = False,
    progress: bool = True,
) -> NDArray[Any]:
    """Time kernels that read a matrix of doubles from a file, in a job of their own; a table like
    that of `sweep`, whose bytes are those of the matrix.

    matrix   in the notation of mpilab.cases.distribution, e.g. "1024x1024".

    The other options, the check before, the warnings and the errors are those of `sweep`.
    """
    hosts = _hosts()
    cores = cores_of(hosts.get("hosts") or slurm.wished())
    check_cores([ranks], cores, oversubscribe)
    known, left_out = _known(functions)
    case = {
        "collective": "read",
        "ranks": ranks,
        "count": 1,
        "datatype": "double",
        "matrix": matrix,
        "seed": seed,
    }
    plan = [(function, case) for function in known]
    return _timed(plan, left_out, cores, repetitions, warmup, progress)


def _timed(
    plan: Sequence[tuple[str, dict[str, Any]]],
    left_out: dict[str, list[str]],
    cores: int,
    repetitions: int,
    warmup: int,
    progress: bool,
) -> NDArray[Any]:
    """Rows for a plan of (function, arguments of its Case): each is checked, and then timed."""
    hosts = _hosts()
    jobs: dict[tuple[Path, bool], list[tuple[str, dict[str, Any]]]] = {}
    for function, case in plan:
        job = jobs.setdefault((library_of(function), is_sanitized(function)), [])
        job.append((function, case))
    timing = {"record": False, "dump": False, "warmup": warmup, "repetitions": repetitions}
    found: dict[str, list[tuple[Any, ...]]] = {function: [] for function, _ in plan}
    broken: set[str] = set()
    with (
        tqdm(
            total=sum(map(len, jobs.values())), desc="sweep", disable=not progress, leave=False
        ) as bar,
        asleep(),
    ):
        for (library, sanitized), job in jobs.items():
            pairs = [
                (Case(**case, function=function), Case(**case | timing, function=function))
                for function, case in job
            ]
            take = _Taken(cores, found, left_out, broken, bar.update)
            mpirun.run_cases(
                library,
                "",
                [case for pair in pairs for case in pair],
                groups=[(case.function,) for pair in pairs for case in pair],
                limit=LIMIT_S,
                work=WORK_S,
                on_result=take,
                sanitize=sanitized,
                guarded=[],
                bound=bound_options,
                **hosts,
            )
    _warn_of(left_out, broken)
    return np.array([row for rows in found.values() for row in rows], ROW)


def _ranks_of_the_cluster() -> int:
    try:
        return active_cluster().n
    except ClusterError:
        return 2


@dataclass
class _Taken:
    """Takes the Results of a sweep's job, each kernel's checked run before its timed one."""

    cores: int
    found: dict[str, list[tuple[Any, ...]]]
    left_out: dict[str, list[str]]
    broken: set[str]
    done: Callable[[], object]
    trouble: str = ""

    def __call__(self, result: Result) -> None:
        function, case = result.case.function, result.case
        if case.dump:
            self.trouble = KernelRun(function, result).trouble
            if not self.trouble and leaves_state(result):
                # The timed calls are not recorded, but would leave the same state behind.
                self.trouble = "it leaves unreceived messages or incomplete requests"
            trouble = self.trouble
        else:
            trouble = "" if self.trouble or result.outcome == DONE else result.outcome
            if not self.trouble and not trouble:
                self.found[function] += _rows(function, result, self.cores)
            self.done()
        if trouble:
            where = f"{case.ranks} rank{'s' * (case.ranks != 1)}"
            if collective_of(case.collective).reads:
                where += f" and a matrix {case.distribution.words()}"
            elif collective_of(case.collective).has_blocks:
                where += f" and {case.block_bytes} bytes a block"
            self.left_out.setdefault(function, []).append(f"with {where}: {trouble}")
        if result.outcome != DONE:
            self.broken.add(function)
        result.outputs = []  # the buffers of all sizes together would be large


def _cases(
    function: str,
    ranks: int,
    sizes: Sequence[int] | None,
    root: int,
    strict: bool,
    tuned: Mapping[str, int],
) -> list[dict[str, Any]]:
    """The Case arguments for one kernel, a dict for each size."""
    name = function.partition("_")[0]
    collective = collective_of(name)
    element = "int" if collective.reduces else "byte"
    width = datatype(element)[0].size
    counts = [0]
    if collective.has_blocks:
        if sizes is None:
            raise InputError(f"sweep of {function}: no sizes; give bytes, e.g. sizes=[64, 4096]")
        counts = [-(-size // width) for size in sizes]
    shape = {"collective": name, "ranks": ranks, "datatype": element, "strict": strict, **tuned}
    if collective.is_rooted:
        shape["root"] = root
    return [{**shape, "count": count} for count in dict.fromkeys(counts)]


def _rows(function: str, result: Result, cores: int) -> list[tuple[Any, ...]]:
    """A row for each timed call of a Result."""
    case = result.case
    algorithm = function.partition("_")[2]
    mpis_own = function not in kernels and function in openmpis_of(case.collective)
    name = algorithm.removesuffix("openmpi").rstrip("_") or "default" if mpis_own else algorithm
    what = (
        case.collective,
        "openmpi" if mpis_own else "ours",
        name,
        0 if name == "default" and mpis_own else -1,
        case.ranks,
        case.distribution.bytes if collective_of(case.collective).reads else case.block_bytes,
        case.segment,
        case.fanout,
        case.radix,
        cores,
        processor(),
    )
    spans = np.stack([output.spans_ns for output in result.outputs])
    begin, end = spans[:, :, 0], spans[:, :, 1]
    whole, own = end.max(axis=0) - begin.min(axis=0), end - begin
    times = np.stack([whole, own.mean(axis=0), own.max(axis=0), own.min(axis=0)], axis=1) / 1e9
    return [(*what, repetition, *seconds) for repetition, seconds in enumerate(times)]


def _known(functions: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """(Functions with a library, {function: [why it has none]}); InputError if none has one."""
    known, missing = [], {}
    for function in functions:
        try:
            library_of(function)
        except InputError as error:
            missing[function] = [str(error)]
        else:
            known.append(function)
    if not known:
        raise InputError(
            "; ".join(reason for (reason,) in missing.values())
            or "sweep([]): name at least one kernel"
        )
    return known, missing


def _warn_of(left_out: Mapping[str, Sequence[str]], broken: Collection[str]) -> None:
    for function, reasons in left_out.items():
        more = (
            "; it was not tried again"
            if function in broken
            else (f"; and {len(reasons) - 1} more times" if len(reasons) > 1 else "")
        )
        warnings.warn(f"{function} is left out of the sweep {reasons[0]}{more}", stacklevel=4)
