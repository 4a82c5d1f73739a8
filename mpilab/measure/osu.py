"""Run the OSU micro-benchmarks (OMB), or our own equivalents, and read their tables.

table = osu.run("osu_bcast", ranks=4, full=True, sizes="1:65536")
table.rows["size"], table.rows["avg_us"]
osu.parse(Path("bcast.log").read_text())

imb_bcast, imb_reduce and so on measure the same collectives with the sizes, datatypes and numbers
of calls of the Intel MPI Benchmarks (IMB), and print IMB's tables. They are always the kit's own.
"""

import difflib
import os
import re
import selectors
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from typing import IO, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mpilab.cluster.engines import asleep
from mpilab.errors import InputError, MpilabError, SetupError
from mpilab.hosts import slurm
from mpilab.hosts.emulated import EmulatedHosts
from mpilab.kernels import build, openmpi
from mpilab.measure.dataset import processor
from mpilab.measure.origin import here
from mpilab.measure.sweep import check_cores, cores_of
from mpilab.measure.sweep_table import OVERSUBSCRIBED, is_oversubscribed
from mpilab.util.processes import Said, end_family, trouble
from mpilab.util.text import ranges, suggestion
from mpilab.util.units import plural

COLLECTIVE, BARRIER, LATENCY, BANDWIDTH = "collective", "barrier", "latency", "bandwidth"
OMB, IMB = "OMB", "IMB"
IMB_ELEMENT = 4  # bytes of MPI_FLOAT, which IMB adds
_MEBIBYTE = 1 << 20
# MAX, MIN:MAX, MIN: or :MAX as text, or (MIN, MAX).
Sizes = str | int | Sequence[int]
# MCA parameters by name.
Settings = Mapping[str, object] | Iterable[tuple[str, object]]
LARGEST = 2**31 - 1  # MPI counts in int
WITH_MESSAGES = (COLLECTIVE, LATENCY, BANDWIDTH)
# What ompi_info --parsable prints of parameters, and the parameters that choose an algorithm.
_PARAMETER = re.compile(r"^mca:[^:]*:[^:]*:param:([^:]+):(.*)$")
_ENUMERATOR = re.compile(r"enumerator:value:([^:]*):(.*)")
_FORCED = re.compile(r"coll_tuned_\w+_algorithm(_segmentsize|_tree_fanout|_chain_fanout)?$")
DYNAMIC_RULES = "coll_tuned_use_dynamic_rules"
# Prefixes shared with the launcher's own parameters, which no tool lists.
SHARED = {"hwloc", "if", "mca", "pmix"}
# Values that Open MPI reads as true.
_ON = ("1", "true", "t", "yes", "y", "enabled")
# OMB's column names and ours. 'Latency (us)' for two ranks became 'Avg Latency(us)' in 7.4.
FIELDS = {
    "Size": "size",
    "Latency (us)": "avg_us",
    "Latency(us)": "avg_us",
    "Avg Latency(us)": "avg_us",
    "Avg Latency (us)": "avg_us",
    "Min Latency(us)": "min_us",
    "Max Latency(us)": "max_us",
    "Iterations": "iterations",
    "Validation": "valid",
    "Bandwidth (MB/s)": "mb_per_s",
    "MB/s": "mb_per_s",
    "Messages/s": "messages_per_s",
    "P50 Tail Lat(us)": "p50_us",
    "P90 Tail Lat(us)": "p90_us",
    "P99 Tail Lat(us)": "p99_us",
    "Transmit Size": "transmit_size",
    # IMB's.
    "#bytes": "size",
    "#repetitions": "iterations",
    "t_min[usec]": "min_us",
    "t_max[usec]": "max_us",
    "t_avg[usec]": "avg_us",
    "defects": "valid",
}
# The types of our columns that are not double-precision numbers.
_TYPES = {"size": "i8", "iterations": "i8", "transmit_size": "i8", "valid": "?"}
_VALID = {"pass": True, "fail": False}
_CONVERTERS: dict[str, Callable[[str], float]] = {
    "?": lambda word: _VALID[word.lower()] if word.isalpha() else float(word) == 0,
    "i8": int,
    "f8": float,
}
# Lines of a table: the program, the title with its version, the datatype.
_PROGRAM = re.compile(r"^#\s*program:\s*(.+?)\s*$")
_TITLE = re.compile(r"^#?\s*OSU (MPI\S*) (.+?) Test(?: v(\S+))?\s*$")
_DATATYPE = re.compile(r"^#?\s*Datatype:\s*(\w+)")
# The same of IMB.
_IMB_TITLE = re.compile(r"^# Benchmarking (\w+)$")
_IMB_DATATYPE = re.compile(r"^# MPI_Datatype( for reductions)?\s*:\s*(\w+)")
_IMB_COLUMNS = re.compile(r"^(?:#bytes\s+)?#repetitions\s")
# A size, or none (osu_barrier), followed by a column with a unit.
_COLUMNS = re.compile(r"^#?\s*(?:Size\s.*(?:\(us\)|/s\b)|(?:Avg )?Latency ?\(us\)|Overall\(us\))")
# A known name, even if the blanks around it were lost; otherwise words one blank apart.
_COLUMN = re.compile(
    "|".join(map(re.escape, sorted(FIELDS, key=len, reverse=True))) + r"|\S+(?: \S+)*"
)
# A row of the largest messages takes seconds, or a minute if many ranks share a core.
LIMIT_S = 600.0
CHUNK = 1 << 16  # bytes read at once

# OMB's averages beside the true time of an operation.


@dataclass(frozen=True)
class Averaged:
    """One measurement, averaged in both ways; in microseconds.

    avg_us, min_us, max_us   OMB's: mean, minimum and maximum over the ranks of each rank's own mean
                             over the repetitions (by MPI_Reduce).
    span_us                  mean over the repetitions of last exit − first entry.
    """

    avg_us: float
    min_us: float
    max_us: float
    span_us: float

    @property
    def ratio(self) -> float:
        """The time of the operation divided by OMB's mean."""
        return self.span_us / self.avg_us


def both_ways(spans_ns: ArrayLike) -> Averaged:
    """OMB's averages and the true span of one collective, as Averaged.

    spans_ns   array [ranks, repetitions, 2] of nanoseconds on one clock: each rank's entry and
               exit; for a list of harness outputs np.stack([o.spans_ns for o in outputs]).

    Raises InputError for an array of another shape or an empty one.
    """
    spans = np.asarray(spans_ns)
    if spans.ndim != 3 or spans.shape[2] != 2 or 0 in spans.shape:
        raise InputError(
            f"spans_ns: an array {spans.shape}; give [ranks, repetitions, 2], the "
            "entry and the exit of each call in nanoseconds"
        )
    entry, leave = spans[:, :, 0], spans[:, :, 1]
    means = (leave - entry).mean(axis=1) / 1e3
    span = (leave.max(axis=0) - entry.min(axis=0)).mean() / 1e3
    return Averaged(float(means.mean()), float(means.min()), float(means.max()), float(span))


# The benchmarks.


@dataclass(frozen=True)
class Benchmark:
    """A benchmark of OMB or IMB; `title` is printed in its table: between '# OSU MPI ' and ' Test',
    or after '# Benchmarking '."""

    name: str
    title: str
    kind: str = COLLECTIVE
    suite: str = OMB

    @property
    def suite_name(self) -> str:
        """'OSU' or 'IMB', as in the name of the benchmark."""
        return "OSU" if self.suite == OMB else IMB

    @property
    def adds(self) -> bool:
        """Does it add numbers?"""
        return self.name.endswith("reduce")

    @property
    def is_between_two(self) -> bool:
        """Does it take exactly two ranks?"""
        return self.kind in (LATENCY, BANDWIDTH)

    @property
    def largest(self) -> int:
        """The default largest message, in bytes."""
        return 4 * _MEBIBYTE if self.is_between_two or self.suite == IMB else _MEBIBYTE


BENCHMARKS = {
    benchmark.name: benchmark
    for benchmark in (
        Benchmark("osu_latency", "Latency", LATENCY),
        Benchmark("osu_bw", "Bandwidth", BANDWIDTH),
        Benchmark("osu_allgather", "Allgather Latency"),
        Benchmark("osu_allreduce", "Allreduce Latency"),
        Benchmark("osu_alltoallv", "All-to-Allv Personalized Exchange Latency"),
        Benchmark("osu_barrier", "Barrier Latency", BARRIER),
        Benchmark("osu_bcast", "Broadcast Latency"),
        Benchmark("osu_gather", "Gather Latency"),
        Benchmark("osu_reduce", "Reduce Latency"),
        Benchmark("osu_scatter", "Scatter Latency"),
        Benchmark("imb_allgather", "Allgather", suite=IMB),
        Benchmark("imb_allreduce", "Allreduce", suite=IMB),
        Benchmark("imb_alltoallv", "Alltoallv", suite=IMB),
        Benchmark("imb_barrier", "Barrier", BARRIER, IMB),
        Benchmark("imb_bcast", "Bcast", suite=IMB),
        Benchmark("imb_gather", "Gather", suite=IMB),
        Benchmark("imb_reduce", "Reduce", suite=IMB),
        Benchmark("imb_scatter", "Scatter", suite=IMB),
    )
}


def benchmark_of(name: str) -> Benchmark:
    """The Benchmark called `name`; InputError, with all names, if there is none."""
    if name not in BENCHMARKS:
        known = f"{', '.join(BENCHMARKS)}{suggestion(name, BENCHMARKS)}"
        raise InputError(f"benchmark {name!r}: no such benchmark; use one of {known}")
    return BENCHMARKS[name]


# The options of a benchmark, checked and converted to its program's arguments.


@dataclass(frozen=True)
class Options:
    """The options of one run; None keeps the program's own default, which is OMB's or IMB's.

    Raises InputError for an option that the benchmark does not support, naming it as typed.
    """

    benchmark: Benchmark
    ranks: int | None = None
    iterations: int | None = None
    warmup: int | None = None
    sizes: Sizes | None = None
    full: bool = False
    validate: bool = False
    before_each: int | None = None
    window: int | None = None
    memory: int | None = None
    rank_count: int = field(init=False, default=0)
    smallest: int = field(init=False, default=1)
    largest: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        name, kind = self.benchmark.name, self.benchmark.kind
        set_ = object.__setattr__  # frozen: set once, here
        usual = 2 if self.benchmark.is_between_two else 4
        set_(self, "rank_count", usual if self.ranks is None else self.ranks)
        set_(self, "ranks", self.rank_count)
        self._check_ranks()
        for option, value, least in (
            ("-i (iterations)", self.iterations, 1),
            ("-x (warm-up)", self.warmup, 0),
            ("-u (calls before each timed one)", self.before_each, 0),
            ("-W (window)", self.window, 1),
            ("-M (memory)", self.memory, 1),
        ):
            if value is not None and not least <= value <= LARGEST:
                raise InputError(f"{option} {value}: must be from {least} to {LARGEST:,}")
        for option, is_set, kinds, why in (
            (
                "-f",
                self.full,
                (COLLECTIVE, BARRIER),
                "only one rank has the clock: there is no minimum and maximum",
            ),
            ("-c", self.validate, WITH_MESSAGES, "a barrier moves no data"),
            ("-m", self.sizes is not None, WITH_MESSAGES, "a barrier moves no data"),
            (
                "-u",
                self.before_each is not None,
                WITH_MESSAGES,
                "use -x for untimed barriers",
            ),
            ("-W", self.window is not None, (BANDWIDTH,), "only osu_bw sends a window of messages"),
            (
                "-M",
                self.memory is not None,
                (COLLECTIVE,),
                "only collectives have buffers that grow with the ranks",
            ),
        ):
            if is_set and kind not in kinds:
                raise InputError(f"{name} does not have {option}: {why}. Leave it out.")
        if self.full and self.benchmark.suite == IMB:
            raise InputError(
                f"{name} does not have -f: IMB's tables have all columns. Leave it out."
            )
        smallest, largest = _sizes(self.sizes)
        unit = IMB_ELEMENT if self.benchmark.adds and self.benchmark.suite == IMB else 1
        set_(self, "smallest", -(-(smallest or 1) // unit) * unit)
        set_(self, "largest", largest or max(self.benchmark.largest, self.smallest))

    def _check_ranks(self) -> None:
        if self.benchmark.is_between_two and self.rank_count != 2:
            raise InputError(
                f"{self.benchmark.name} runs between two ranks, not {self.rank_count}: write "
                "--ranks 2, or omit it"
            )
        if self.rank_count < 2:
            raise InputError(
                f"--ranks {self.rank_count}: {self.benchmark.name} needs 2 ranks or more"
            )

    @property
    def row_count(self) -> int:
        """Number of rows that the table will have."""
        if self.benchmark.kind == BARRIER:
            return 1
        without_data = self.benchmark.suite == IMB
        return without_data + (self.largest // self.smallest).bit_length()

    @property
    def arguments(self) -> list[str]:
        """The options as arguments of OMB and of our own program."""
        words = ["-f"] * self.full + ["-c"] * self.validate
        sizes = None if self.sizes is None else f"{self.smallest}:{self.largest}"
        letters = {
            "-i": self.iterations,
            "-x": self.warmup,
            "-m": sizes,
            "-u": self.before_each,
            "-W": self.window,
            "-M": self.memory,
        }
        for letter, value in letters.items():
            if value is not None:
                words += [letter, str(value)]
        return words


def _sizes(sizes: Sizes | None) -> tuple[int | None, int | None]:
    """(smallest, largest) of 'MAX', 'MIN:MAX', 'MIN:', ':MAX' or a pair; None if open."""
    if sizes is None:
        return None, None
    text = ":".join(map(str, sizes)) if isinstance(sizes, tuple | list) else str(sizes)
    before, colon, after = text.partition(":")
    words = (before, after) if colon else ("", before)
    found = [int(word) if word.isascii() and word.isdigit() else None for word in words]
    bad = any(word and number is None for word, number in zip(words, found, strict=True))
    smallest, largest = found
    if bad or found == [None, None] or 0 in found or max(n or 0 for n in found) > LARGEST:
        raise InputError(
            f"-m {text}: not message sizes; write MAX, MIN:MAX, MIN: or :MAX in bytes, 1 or more, "
            "e.g. -m 1:65536"
        )
    if smallest and largest and smallest > largest:
        raise InputError(f"-m {text}: the smallest size is above the largest; swap them")
    return smallest, largest


def placement(
    ranks: int, cpu_list: str | Iterable[int] | None = None, map_by: str | None = None
) -> list[str]:
    """The arguments of mpirun that place the ranks; InputError for an invalid list.

    cpu_list   CPUs by number, '0,1' or a sequence: rank r runs on the r-th of them. In Open MPI
               5, that is --map-by pe-list=0,1:ordered --bind-to core; in Open MPI 4, it was
               --cpu-list 0,1 --bind-to cpu-list:ordered.
    map_by     passed on unchanged, e.g. 'core', 'socket'.
    """
    if cpu_list is not None and map_by is not None:
        raise InputError("--cpu-list and --map-by both place ranks; give only one of them")
    if map_by is not None:
        return ["--map-by", map_by]
    if cpu_list is None:
        return []
    words = cpu_list.split(",") if isinstance(cpu_list, str) else [str(cpu) for cpu in cpu_list]
    words = [word.strip() for word in words]
    if not words or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"--cpu-list {','.join(words)}: write CPU numbers, e.g. 0,1")
    cpus = [int(word) for word in words]
    known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cpus
    if missing := [cpu for cpu in cpus if cpu not in known]:
        raise InputError(
            f"--cpu-list {','.join(words)}: this process may not run on CPU "
            f"{missing[0]}; only on {ranges(known, ', ')}"
        )
    if len(set(cpus)) < ranks or len(cpus) != ranks:
        raise InputError(
            f"--cpu-list {','.join(words)}: {ranks} ranks need {ranks} different CPUs, one each"
        )
    return ["--map-by", f"pe-list={','.join(map(str, cpus))}:ordered", "--bind-to", "core"]


# MCA parameters for mpirun. Open MPI silently ignores unknown ones; we reject them.


def mca_arguments(pairs: Settings) -> list[str]:
    """The arguments of mpirun for `pairs` of MCA names and values (a mapping, or a list of pairs).

    Raises InputError for a name or value that Open MPI would silently ignore: an unknown parameter,
    an unknown algorithm number, an algorithm of coll/tuned without coll_tuned_use_dynamic_rules.
    """
    wanted = [(str(name), str(value)) for name, value in dict(pairs).items()]
    known = _known() if wanted else {}
    frameworks = {name.partition("_")[0] for name in known} - SHARED
    for name, value in wanted:
        if name not in known and name.partition("_")[0] in frameworks:
            near = difflib.get_close_matches(name, known, n=1)
            remedy = f"do you mean {near[0]}?" if near else "see ompi_info --all --level 9"
            raise InputError(
                f"--mca {name} {value}: Open MPI has no such parameter, and would say "
                f"nothing; {remedy}"
            )
        choices = known.get(name)
        if choices and name.endswith("_algorithm") and not _is_among(value, choices):
            raise InputError(
                f"--mca {name} {value}: no such choice, and Open MPI would say "
                f"nothing; use one of {_listed(choices)}"
            )
    forced = [name for name, _ in wanted if _FORCED.match(name)]
    rules = dict(wanted).get(DYNAMIC_RULES, os.environ.get(f"OMPI_MCA_{DYNAMIC_RULES}", ""))
    if forced and rules.lower() not in _ON:
        raise InputError(
            f"--mca {forced[0]}: has no effect without {DYNAMIC_RULES}; add --mca {DYNAMIC_RULES} 1"
        )
    return [word for name, value in wanted for word in ("--mca", name, value)]


def _is_among(value: str, choices: Iterable[tuple[str, str]]) -> bool:
    return any(value.lower() in (number.lower(), name.lower()) for number, name in choices)


def _listed(choices: Iterable[tuple[str, str]]) -> str:
    return ", ".join(f"{number} {name}" for number, name in choices)


@cache
def _known() -> dict[str, list[tuple[str, str]]]:
    """{parameter: [(number, name) of each allowed value], [] if any is allowed}; {} if unknown."""
    try:
        command = [openmpi.tool("ompi_info"), "--parsable", "--all", "--level", "9"]
    except SetupError:
        return {}  # some packages of Open MPI lack ompi_info: then nothing can be checked
    said = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=60)
    known: dict[str, list[tuple[str, str]]] = {}
    for line in said.stdout.splitlines():
        if match := _PARAMETER.match(line):
            choices = known.setdefault(match[1], [])
            found = _ENUMERATOR.match(match[2])
            if found and (found[1], found[2]) not in choices:
                choices.append((found[1], found[2]))
    return known


# The program that measures: OMB's own if it is on PATH, otherwise ours (src_c/programs/osu).


@dataclass(frozen=True)
class Program:
    """What mpirun starts: `command`, followed by the options of the benchmark."""

    command: tuple[str, ...]
    is_own: bool


def program_of(name: str, own: bool = False) -> Program:
    """The Program for the benchmark `name`; with `own`, the kit's even if OMB's is on PATH. That of
    an IMB benchmark is always the kit's.

    Raises SetupError if the kit's is needed and has not been built.
    """
    found = None if own or benchmark_of(name).suite == IMB else shutil.which(name)
    if found is not None:
        return Program((found,), is_own=False)
    return Program((str(build.need(build.OSU_PROGRAM)), name), is_own=True)


# Parsing the output of OMB 5 to 7, of IMB-MPI1 with one benchmark, or of our own program.


@dataclass(frozen=True, eq=False)
class OsuTable:
    """A table of an OSU micro-benchmark, or of IMB.

    benchmark  'osu_bcast'; for a benchmark that the kit does not run, its printed title.
    version    of OMB, as printed ('7.3'); '' if not printed, as in IMB's tables.
    datatype   'MPI_CHAR'; '' if not printed (before OMB 7.1, and osu_barrier).
    columns    OMB's or IMB's column names.
    rows       structured array, one row per message size, with those of these fields that the table
               has: size (bytes), avg_us, min_us, max_us (microseconds), iterations, mb_per_s (10^6
               bytes per second), valid, ...
    program    the program that measured, from a line '# program: ...'; otherwise ''.
    text       the complete output.
    where      'measured on AMD EPYC, 2 cores, 4 ranks, oversubscribed'; '' from `parse`.
    """

    benchmark: str
    version: str
    datatype: str
    columns: tuple[str, ...]
    rows: NDArray[Any]
    program: str = ""
    text: str = ""
    where: str = ""

    @property
    def all_valid(self) -> bool | None:
        """Was every result correct? None if none was validated (no -c)."""
        return bool(self.rows["valid"].all()) if "valid" in (self.rows.dtype.names or ()) else None

    def __repr__(self) -> str:
        return self.text.strip("\n") or f"OsuTable({self.benchmark!r}, {len(self.rows)} rows)"


def parse(text: str) -> OsuTable:
    """The OsuTable in `text`: the output of one run of a benchmark, with any text around it.

    Raises InputError, with the line number, for a text without a table or with several, for a row
    that does not fit its columns or contains a non-number, and for a table without rows.
    """
    found = _Reader()
    for number, line in enumerate(text.splitlines(), start=1):
        found.read(number, line.strip())
    return found.table(text)


class _Reader:
    def __init__(self) -> None:
        self.title = self.version = self.datatype = self.program = ""
        self.imb_datatypes: dict[bool, str] = {}  # of what is moved, and of what is added
        self.columns: tuple[str, ...] = ()
        self.columns_at = 0
        self.rows: list[tuple] = []

    def read(self, number: int, line: str) -> None:
        if match := _PROGRAM.match(line):
            self.program = match[1]
        elif match := _TITLE.match(line):
            self._once(number, line, self.title)
            self.title, self.version = match[2], match[3] or ""
        elif match := _DATATYPE.match(line):
            self._once(number, line, self.rows)
            self.datatype = match[1]
        elif match := _IMB_TITLE.match(line):
            self._once(number, line, self.title)
            self.title = match[1]
        elif match := _IMB_DATATYPE.match(line):
            self.imb_datatypes[bool(match[1])] = match[2]
        elif _IMB_COLUMNS.match(line):
            self._once(number, line, self.columns)
            self.columns, self.columns_at = tuple(line.split()), number
        elif _COLUMNS.match(line):
            self._once(number, line, self.columns)
            self.columns = tuple(_COLUMN.findall(line.lstrip("# ")))
            self.columns_at = number
        elif self.columns and line[:1].isdigit():
            self.rows.append(self._row(number, line))

    @staticmethod
    def _once(number: int, line: str, seen: object) -> None:
        if seen:
            raise InputError(
                f"line {number}: {line!r} starts a second table; give one table at a time"
            )

    def _row(self, number: int, line: str) -> tuple:
        words = line.split()
        if len(words) != len(self.columns):
            raise InputError(
                f"line {number}: {line!r} is not a row of the columns {', '.join(self.columns)} "
                f"(line {self.columns_at}); was the output truncated?"
            )
        row = []
        for column, word in zip(self.columns, words, strict=True):
            kind = _TYPES.get(_field(column), "f8")
            try:
                row.append(_CONVERTERS[kind](word))
            except (KeyError, ValueError):
                wanted = {"?": "Pass, Fail or a number", "i8": "a whole number", "f8": "a number"}[
                    kind
                ]
                raise InputError(
                    f"line {number}: {word!r} in the column {column} is not {wanted}"
                ) from None
        return tuple(row)

    def table(self, text: str) -> OsuTable:
        if not self.columns:
            first = next((line.strip() for line in text.splitlines() if line.strip()), "")
            raise InputError(
                "no line names the columns of an OSU table ('# Size  Avg Latency(us)')"
                f"; the text begins with {first[:80]!r}"
            )
        if not self.rows:
            raise InputError(
                f"line {self.columns_at}: no row follows the columns {', '.join(self.columns)}; "
                "did the benchmark end early?"
            )
        known = {benchmark.title: benchmark for benchmark in BENCHMARKS.values()}
        benchmark = known.get(self.title)
        adds = benchmark is not None and benchmark.adds
        fields = [(_field(column), _TYPES.get(_field(column), "f8")) for column in self.columns]
        return OsuTable(
            self.title if benchmark is None else benchmark.name,
            self.version,
            self.datatype or self.imb_datatypes.get(adds, ""),
            self.columns,
            np.array(self.rows, fields),
            self.program,
            text,
        )


def _field(column: str) -> str:
    """Our name for a column; for an unknown one, its own in lower case."""
    return FIELDS.get(column) or re.sub(r"\W+", "_", column.lower()).strip("_")


# Running a benchmark under mpirun, reading its table line by line.


def run(
    benchmark: str,
    *,
    ranks: int | None = None,
    iterations: int | None = None,
    warmup: int | None = None,
    sizes: Sizes | None = None,
    full: bool = False,
    validate: bool = False,
    before_each: int | None = None,
    window: int | None = None,
    memory: int | None = None,
    mca: Settings = (),
    cpu_list: str | Iterable[int] | None = None,
    map_by: str | None = None,
    own: bool = False,
    oversubscribe: bool = False,
    hosts: EmulatedHosts | None = None,
    on_line: Callable[[str], object] | None = None,
    limit: float = LIMIT_S,
) -> OsuTable:
    """Run an OSU micro-benchmark, or one of IMB's, and return its OsuTable.

    benchmark   'osu_bcast', 'imb_bcast', ... (mpilab.measure.osu.BENCHMARKS).
    ranks       default: 2 for osu_latency and osu_bw, which take no other number; otherwise 4, or 2
                on fewer than 4 cores without `oversubscribe`.
    iterations, warmup   -i and -x: timed calls of a size, and untimed calls before them.
    sizes       -m: 'MAX', 'MIN:MAX', ... or a pair (MIN, MAX), in bytes. IMB's also measure
                0 bytes, and where they add numbers, MIN is rounded up to a multiple of 4.
    full        -f: also the smallest and largest mean of a rank, and the iterations (collectives).
    validate    -c: check each result; the run ends at a size that fails (see `table.all_valid`).
    before_each, window, memory   -u, -W and -M.
    mca         MCA parameters for mpirun, a mapping or pairs.
    cpu_list    '0,1': rank r on the r-th of these CPUs. map_by: mpirun's --map-by.
    own         use the kit's program even if OMB's is on PATH.
    oversubscribe   allow more ranks than cores: they take turns, and the table says so.
    hosts       EmulatedHosts that are up: the ranks are on them, by default as many as they have
                slots, and map_by maps them to the hosts. They share this machine's cores, and sleep
                while they wait. The kit's program runs.
    on_line     called with each line as it is printed.
    limit       maximum seconds without a line.

    Other options have OMB's or IMB's defaults. OMB's program of that name is used if it is on PATH,
    otherwise the kit's own; the table's `program` says which. Raises InputError for invalid
    options, and for more ranks than cores without `oversubscribe`; SetupError if the kit's program
    cannot be built, MpilabError if the run fails, ClusterError if a notebook's ranks compute
    meanwhile (mpilab.cluster.engines.asleep).
    """
    known, cores = benchmark_of(benchmark), cores_of(slurm.wished())
    if hosts is not None:
        own, oversubscribe = True, True
        if cpu_list is not None:
            raise InputError("--cpu-list: emulated hosts share the CPUs; use --map-by, e.g. node")
        if ranks is None and not known.is_between_two:
            ranks = hosts.description.slots
    if ranks is None and not known.is_between_two:
        ranks = 4 if cores >= 4 or oversubscribe else 2
    options = Options(
        known,
        ranks,
        iterations,
        warmup,
        sizes,
        full,
        validate,
        before_each,
        window,
        memory,
    )
    check_cores([options.rank_count], cores, oversubscribe, "mpilab bench")
    placed = [*mca_arguments(mca), *placement(options.rank_count, cpu_list, map_by)]
    where = here(options.rank_count, cores)
    notes = []
    if hosts is not None:
        where += f", on the emulated hosts of {hosts.name}"
        notes.append(f"# emulated hosts: {hosts.name}, on {processor()}, {plural(cores, 'core')}")
    elif is_oversubscribed(options.rank_count, cores):
        notes.append(f"# {OVERSUBSCRIBED}: {where.removesuffix(f', {OVERSUBSCRIBED}')}")
    table = launch(options, program_of(benchmark, own), placed, on_line, limit, notes, hosts)
    return replace(table, where=f"measured on {where}")


def launch(
    options: Options,
    program: Program,
    where: Sequence[str] = (),
    on_line: Callable[[str], object] | None = None,
    limit: float = LIMIT_S,
    notes: Sequence[str] = (),
    hosts: EmulatedHosts | None = None,
) -> OsuTable:
    """Run `program` with checked `options` and the arguments `where` of mpirun; its OsuTable.

    notes   lines of comment that begin its text.
    hosts   EmulatedHosts on which it runs; default: this machine.
    """
    command: list[str] = [
        openmpi.tool("mpirun"),
        "-n",
        str(options.rank_count),
        *where,
        *program.command,
        *options.arguments,
    ]
    said, got = _Said(), []
    # Our own program prints this line itself.
    first = [] if program.is_own else [f"# program: {program.command[0]}"]
    with (
        tempfile.TemporaryDirectory(prefix="mpilab-osu-") as scratch,
        closing(_lines(command, options, scratch, said, limit, hosts)) as lines,
        asleep(),
    ):
        for line in chain(notes, first, lines):
            got.append(line)
            if on_line:
                on_line(line)
    text = "\n".join(got)
    if said.code != 0 and "DATA VALIDATION ERROR" not in text:
        raise MpilabError(_account(program, options, said))
    return parse(text)


@dataclass
class _Said:
    """How mpirun ended, in the form that `mpilab.util.processes.trouble` takes."""

    code: int | None = None
    stderr: str = ""
    stdout: str = ""


def _lines(
    command: Sequence[str],
    options: Options,
    scratch: str,
    said: _Said,
    limit: float,
    hosts: EmulatedHosts | None,
) -> Generator[str, None, None]:
    """Yield each line that `command` prints; then fill in `said`."""
    environment = openmpi.environment(options.rank_count) | {"TMPDIR": scratch}
    if hosts is not None:  # each has a folder and shared memory of its own
        command, environment = hosts.command(command), hosts.environment(options.rank_count)
        segments = tempfile.TemporaryDirectory(prefix="mpilab-osu-")
    elif os.access("/dev/shm", os.W_OK):
        segments = tempfile.TemporaryDirectory(prefix="mpilab-osu-", dir="/dev/shm")
        # Segments of killed ranks would otherwise stay in /dev/shm forever.
        environment["OMPI_MCA_btl_sm_backing_directory"] = segments.name
    else:
        segments = tempfile.TemporaryDirectory(prefix="mpilab-osu-")
    with segments, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None  # it is a pipe
            yield from _read(process.stdout, limit)
            said.code = process.wait(limit)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise MpilabError(
                f"{options.benchmark.name}: no line for {limit:g} s; the run was stopped. Try "
                "fewer iterations (-i), smaller messages (-m) or fewer ranks"
            ) from None
        finally:
            if process.poll() is None:
                end_family(process.pid)
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        errors.seek(0)
        said.stderr = errors.read().decode(errors="replace")


def _read(pipe: IO[bytes], limit: float) -> Iterator[str]:
    """Yield the lines of a pipe as they arrive; TimeoutError after `limit` seconds without one."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        until = time.monotonic() + limit
        while True:
            if not selector.select(max(until - time.monotonic(), 0)):
                raise TimeoutError
            chunk = os.read(pipe.fileno(), CHUNK)
            if not chunk:
                break
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                until = time.monotonic() + limit
                yield line.decode(errors="replace")
    if rest:
        yield rest.decode(errors="replace")


def _account(program: Program, options: Options, said: _Said) -> str:
    """Why a run failed, and what to do."""
    name = options.benchmark.name
    words = _own_words(said.stderr) or trouble(Said(said.code, said.stdout, said.stderr))
    if program.is_own:
        return words if words.startswith(name) else f"{name}: {words}"
    account = f"{program.command[0]}: {words}"
    if any(words in said.stderr for words in ("at least two proc", "exactly two proc")):
        return (
            f"{account}. It was started on {options.rank_count} ranks: it may be built for an MPI "
            f"other than {openmpi.tool('mpirun')}. Remove it from PATH, or run the kit's: --own"
        )
    return f"{account}. To run the kit's own {name} instead: --own"


def _own_words(stderr: str, lines: int = 3) -> str:
    """The benchmark's own messages, each line once: mpirun prints its own between dashed lines."""
    outside = "\n".join(re.split(r"^-{20,}$", stderr, flags=re.MULTILINE)[::2])
    said = dict.fromkeys(line.strip() for line in outside.splitlines() if line.strip())
    return " / ".join(list(said)[-lines:])
