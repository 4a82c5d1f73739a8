"""What a benchmark is asked for: checked here, and put into the words of its program."""

import os
from dataclasses import dataclass, field

from mpilab.errors import InputError
from mpilab.osu.benchmarks import BANDWIDTH, BARRIER, COLLECTIVE, LATENCY, Benchmark

LARGEST = 2**31 - 1  # MPI counts in int
WITH_MESSAGES = (COLLECTIVE, LATENCY, BANDWIDTH)


@dataclass(frozen=True)
class Options:
    """The options of one run; None leaves the program its own default, which is OMB's.

    Raises InputError for what the benchmark can't do, naming the option as it is typed.
    """

    benchmark: Benchmark
    ranks: int | None = None
    iterations: int | None = None
    warmup: int | None = None
    sizes: str | tuple | None = None
    full: bool = False
    validate: bool = False
    before_each: int | None = None
    window: int | None = None
    memory: int | None = None
    smallest: int = field(init=False, default=1)
    largest: int = field(init=False, default=0)

    def __post_init__(self):
        name, kind = self.benchmark.name, self.benchmark.kind
        set_ = object.__setattr__  # frozen: set once, here
        if self.ranks is None:
            set_(self, "ranks", 2 if self.benchmark.is_between_two else 4)
        self._check_ranks()
        for option, value, least in (("-i (iterations)", self.iterations, 1),
                                     ("-x (warm-up)", self.warmup, 0),
                                     ("-u (calls before each timed one)", self.before_each, 0),
                                     ("-W (window)", self.window, 1),
                                     ("-M (memory)", self.memory, 1)):  # fmt: skip
            if value is not None and not least <= value <= LARGEST:
                raise InputError(f"{option} {value}: has to be from {least} to {LARGEST:,}")
        for option, is_set, kinds, why in (
            ("-f", self.full, (COLLECTIVE, BARRIER),
             "only one rank has the clock: there is no least and largest"),
            ("-c", self.validate, WITH_MESSAGES, "a barrier moves no data"),
            ("-m", self.sizes is not None, WITH_MESSAGES,
             "a barrier moves no data"),
            ("-u", self.before_each is not None, WITH_MESSAGES,
             "use -x for the barriers that are not timed"),
            ("-W", self.window is not None, (BANDWIDTH,), "only osu_bw sends a window of messages"),
            ("-M", self.memory is not None, (COLLECTIVE,),
             "only collectives have buffers that grow with the ranks"),
        ):  # fmt: skip
            if is_set and kind not in kinds:
                raise InputError(f"{name} does not have {option}: {why}. Leave it out.")
        smallest, largest = _sizes(self.sizes)
        set_(self, "smallest", smallest or 1)
        set_(self, "largest", largest or max(self.benchmark.largest, self.smallest))

    def _check_ranks(self):
        if self.benchmark.is_between_two and self.ranks != 2:
            raise InputError(f"{self.benchmark.name} runs between two ranks, not {self.ranks}: "
                             "--ranks 2, or leave it out")  # fmt: skip
        if self.ranks < 2:
            raise InputError(f"--ranks {self.ranks}: {self.benchmark.name} needs 2 ranks or more")

    @property
    def row_count(self):
        """How many rows the table will have."""
        if self.benchmark.kind == BARRIER:
            return 1
        return (self.largest // self.smallest).bit_length()

    @property
    def arguments(self):
        """The options in the words of OMB and of our own program."""
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


def _sizes(sizes):
    """(smallest, largest) of 'MAX', 'MIN:MAX', 'MIN:', ':MAX' or a pair; None where it is open."""
    if sizes is None:
        return None, None
    text = ":".join(map(str, sizes)) if isinstance(sizes, tuple | list) else str(sizes)
    before, colon, after = text.partition(":")
    words = (before, after) if colon else ("", before)
    found = [int(word) if word.isascii() and word.isdigit() else None for word in words]
    bad = any(word and number is None for word, number in zip(words, found, strict=True))
    smallest, largest = found
    if bad or found == [None, None] or 0 in found or max(n or 0 for n in found) > LARGEST:
        raise InputError(f"-m {text}: no message sizes; write MAX, MIN:MAX, MIN: or :MAX in bytes, "
                         "from 1 on, e.g. -m 1:65536")  # fmt: skip
    if smallest and largest and smallest > largest:
        raise InputError(f"-m {text}: the smallest size is above the largest; swap them")
    return smallest, largest


def placement(ranks, cpu_list=None, map_by=None):
    """The words of mpirun that say where the ranks run; InputError for a list that can't be.

    cpu_list   CPUs by number, '0,1' or a sequence: rank r runs on the r-th of them (Open MPI 4's
               --cpu-list, which is --map-by pe-list=0,1:ordered --bind-to core in Open MPI 5).
    map_by     passed on as it is, e.g. 'core', 'socket'.
    """
    if cpu_list is not None and map_by is not None:
        raise InputError("--cpu-list and --map-by both say where ranks run; give one of them")
    if map_by is not None:
        return ["--map-by", map_by]
    if cpu_list is None:
        return []
    words = cpu_list.split(",") if isinstance(cpu_list, str) else [str(cpu) for cpu in cpu_list]
    words = [word.strip() for word in words]
    if not words or not all(word.isascii() and word.isdigit() for word in words):
        raise InputError(f"--cpu-list {','.join(words)}: write numbers of CPUs, e.g. 0,1")
    cpus = [int(word) for word in words]
    known = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None
    if missing := [cpu for cpu in cpus if known is not None and cpu not in known]:
        raise InputError(f"--cpu-list {','.join(words)}: this process may not run on CPU "
                         f"{missing[0]}; it may on {_ranges(known)}")  # fmt: skip
    if len(set(cpus)) < ranks or len(cpus) != ranks:
        raise InputError(f"--cpu-list {','.join(words)}: {ranks} ranks need {ranks} different CPUs,"
                         " one each")  # fmt: skip
    return ["--map-by", f"pe-list={','.join(map(str, cpus))}:ordered", "--bind-to", "core"]


def _ranges(numbers):
    """'0-3, 8' for 0, 1, 2, 3, 8."""
    runs = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)
