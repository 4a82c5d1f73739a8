"""Run a benchmark under mpirun; its table comes line by line."""

import os
import re
import selectors
import subprocess
import tempfile
import time
from contextlib import closing
from dataclasses import dataclass
from itertools import chain

from mpilab import openmpi
from mpilab.errors import MpilabError
from mpilab.osu.benchmarks import benchmark_of
from mpilab.osu.options import Options, placement
from mpilab.osu.parameters import mca_arguments
from mpilab.osu.program import program_of
from mpilab.osu.table import parse
from mpilab.programs import end_family, trouble

# A row of the largest messages takes seconds, a minute where many ranks share a core.
LIMIT_S = 600.0
CHUNK = 1 << 16


def run(benchmark, *, ranks=None, iterations=None, warmup=None, sizes=None, full=False,
        validate=False, before_each=None, window=None, memory=None, mca=(), cpu_list=None,
        map_by=None, own=False, on_line=None, limit=LIMIT_S):  # fmt: skip
    """Run an OSU micro-benchmark and return its OsuTable.

    benchmark   'osu_bcast', ... (mpilab.osu.BENCHMARKS).
    ranks       by default 2 for osu_latency and osu_bw (which take no other number), else 4.
    iterations, warmup   -i and -x: timed calls of a size, and those before them that aren't.
    sizes       -m: 'MAX', 'MIN:MAX', ... or a pair (MIN, MAX), in bytes.
    full        -f: also least and largest mean of a rank, and the iterations (collectives).
    validate    -c: compare each result; a size that fails is the last one, `table.all_valid` tells.
    before_each, window, memory   -u, -W and -M.
    mca         MCA parameters for mpirun, a mapping or pairs.
    cpu_list    '0,1': rank r on the r-th of these CPUs. map_by: mpirun's --map-by.
    own         take the kit's program even where OMB's is on PATH.
    on_line     called with each line as it comes.
    limit       seconds that may pass without a line.

    What isn't given is OMB's default. OMB's program of that name is taken where it is on PATH, else
    the kit's own; the table's `program` says which. Raises InputError for options that can't be,
    SetupError where the kit's program can't be made, MpilabError where the run breaks down.
    """
    options = Options(benchmark_of(benchmark), ranks, iterations, warmup, sizes, full, validate,
                      before_each, window, memory)  # fmt: skip
    where = [*mca_arguments(mca), *placement(options.ranks, cpu_list, map_by)]
    return launch(options, program_of(benchmark, own), where, on_line, limit)


def launch(options, program, where=(), on_line=None, limit=LIMIT_S):
    """Run `program` with checked `options`, and the words `where` for mpirun; its OsuTable."""
    command = [openmpi.tool("mpirun"), "-n", str(options.ranks), *where, *program.command,
               *options.arguments]  # fmt: skip
    said, got = _Said(), []
    # Ours says itself who measures.
    first = [] if program.is_own else [f"# program: {program.command[0]}"]
    with (
        tempfile.TemporaryDirectory(prefix="mpilab-osu-") as scratch,
        closing(_lines(command, options, scratch, said, limit)) as lines,
    ):
        for line in chain(first, lines):
            got.append(line)
            if on_line:
                on_line(line)
    text = "\n".join(got)
    if said.code != 0 and "DATA VALIDATION ERROR" not in text:
        raise MpilabError(_account(program, options, said))
    return parse(text)


@dataclass
class _Said:
    """How mpirun ended; as `mpilab.programs.trouble` takes it."""

    code: int | None = None
    stderr: str = ""
    stdout: str = ""


def _lines(command, options, scratch, said, limit):
    """Each line that `command` prints; then `said` tells how it ended."""
    environment = openmpi.environment(options.ranks) | {"TMPDIR": scratch}
    if os.access("/dev/shm", os.W_OK):
        segments = tempfile.TemporaryDirectory(prefix="mpilab-osu-", dir="/dev/shm")
        # Segments of killed ranks would otherwise stay in /dev/shm for ever.
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
            yield from _read(process.stdout, limit)
            said.code = process.wait(limit)
        except (TimeoutError, subprocess.TimeoutExpired):
            raise MpilabError(
                f"{options.benchmark.name}: no line for {limit:g} s; the run was ended. Try fewer "
                "iterations (-i), smaller messages (-m) or fewer ranks"
            ) from None
        finally:
            if process.poll() is None:
                end_family(process.pid)
                process.wait()
            process.stdout.close()
        errors.seek(0)
        said.stderr = errors.read().decode(errors="replace")


def _read(pipe, limit):
    """The lines of a pipe as they come; TimeoutError where none comes for `limit` seconds."""
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


def _account(program, options, said):
    """Why a run broke down, and what to do."""
    name = options.benchmark.name
    words = _own_words(said.stderr) or trouble(said)
    if program.is_own:
        return words if words.startswith(name) else f"{name}: {words}"
    account = f"{program.command[0]}: {words}"
    if any(words in said.stderr for words in ("at least two proc", "exactly two proc")):
        return (
            f"{account}. It was started on {options.ranks} ranks: it may be made for another MPI "
            f"than {openmpi.tool('mpirun')}. Leave it off PATH, or run the kit's: --own"
        )
    return f"{account}. To run the kit's own {name} instead: --own"


def _own_words(stderr, lines=3):
    """What the benchmark itself said: mpirun speaks between lines of dashes. Each line once."""
    outside = "\n".join(re.split(r"^-{20,}$", stderr, flags=re.MULTILINE)[::2])
    said = dict.fromkeys(line.strip() for line in outside.splitlines() if line.strip())
    return " / ".join(list(said)[-lines:])
