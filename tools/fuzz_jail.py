"""Make random calls of the jail's shim: python tools/fuzz_jail.py --seconds 60.

A kernel in the jail (src_c/runtime/jail) can call what the shim offers with any arguments. This
program makes random sequences of these calls, each from a seed, in a build of shim and recorder
with AddressSanitizer and UndefinedBehaviorSanitizer (src_c/runtime/jail/fuzz.c), on 1 to 3 ranks.
A finding is a signal, a report of a sanitizer, or a call that does not return although MPI does not
wait. What it prints reproduces it: the seed, and the calls that remain when all others are left
out.

In a kernel, nothing follows a trap. So a sequence is made again without the calls that trapped,
until none of its calls traps: whatever happens then can happen in a kernel. Calls that wait forever
are left out in the same way.
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from mpilab.hosts import platforms
from mpilab.kernels import build, jail, openmpi, simgrid
from mpilab.kernels.symbols import GROUPS, mpi_calls

# How fuzz.c ends a process: MPI waits, the shim or the recorder does not return, or a trap in a
# callback or in a collective under way.
BLOCKED, STALLED, ENDED_INSIDE = 75, 76, 77
SANITIZED = 99
# SimGrid ends the run at arguments that it does not accept: smpirun's exit status, as a shell's.
ABORTED, GIVEN_UP = 128 + signal.SIGABRT, "given up by SimGrid"
QUIET = {
    # Buffers that overlap are the kernel's own fault, so reports of functions do not end the run.
    "ASAN_OPTIONS": "halt_on_error=0:detect_leaks=0:allow_user_segv_handler=0:handle_abort=0:"
    f"exitcode={SANITIZED}:detect_odr_violation=0:allocator_may_return_null=1:"
    "alloc_dealloc_mismatch=0:"
    # MPI itself has no sanitizer: where it uses what it has freed, it is to find no valid address.
    "max_free_fill_size=65536:free_fill_byte=213",
    "UBSAN_OPTIONS": f"print_stacktrace=1:halt_on_error=1:exitcode={SANITIZED}",
}
GUARD, RESERVED = 1 << 31, 1 << 33  # of addresses, around a kernel's memory: as in wasm2c_runtime.c
CALLS = 400
BUILDS = ("openmpi", "simgrid")
PROGRAM = jail.FOLDER / "fuzz"
SIMULATED_PROGRAM = simgrid.FOLDER / "jail" / "fuzz.so"
_REPORT = re.compile(r"(ERROR: AddressSanitizer: (?!memcpy-param-overlap).*|.*: runtime error: .*)")
_FAULT_AT_NULL = re.compile(r"ERROR: AddressSanitizer: SEGV on unknown address 0x0*[0-9a-f]{1,3} ")
_FAULT_TRAPS = "# a fault at NULL is a trap here"
_GAVE_UP = re.compile(r"/CRITICAL\] (?!Not yet implemented)(.*)")
_CALL = re.compile(r"^(\d+) ((?:MPI|mpilab|fd|proc|sched)_\w+)\([^()]*\)(.*)$")
NESTED = 1 << 20  # the first index of a call that a callback makes: as in fuzz.c
# How often a sequence is made at most, and how many of these runs may end in a call that waits
# forever: each takes seconds.
MOST_RUNS, MOST_BLOCKED = 30, 3

# --- the calls: what each parameter is, in two letters (fuzz.c: argument, buffer)

_HANDLES = {
    "Comm": "C",
    "Datatype": "D",
    "File": "F",
    "Group": "G",
    "Info": "I",
    "Message": "M",
    "Op": "O",
    "Request": "R",
}
# Their prototypes have no names of parameters.
BY_HAND = {
    "MPI_Get_count": "si hD u.",
    "MPI_Get_elements": "si hD u.",
    "MPI_Test_cancelled": "si u.",
    "MPI_Pack": "b. ne hD b. ne p. hC",
    "MPI_Unpack": "b. ne p. b. ne hD hC",
    "MPI_Wtime": "",
    "MPI_Wtick": "",
    "MPI_Comm_get_attr": "hC k. u. u.",
    "MPI_Comm_set_attr": "hC k. i.",
    "MPI_Comm_create_keyval": "f. f. u. i.",
    "MPI_Comm_delete_attr": "hC k.",
    "MPI_Comm_free_keyval": "kp",
    "MPI_Op_create": "f. i. oO",
    "MPI_Op_free": "mO",
    "MPI_Error_string": "i. uc u.",
    "MPI_Get_processor_name": "uc u.",
    "MPI_Abort": "hC i.",
    "MPI_Buffer_attach": "b. ne",
    "MPI_Buffer_detach": "u. u.",
    "MPI_Info_set": "hI x. x.",
    "MPI_Info_get": "hI x. i. uc u.",
    "mpilab_memory_freed": "u.",
    "mpilab_memory_made": "u. ne",
    "mpilab_place": "u.",
    "mpilab_statics": "u. u.",
    "MPI_File_set_view": "hF lp hD eD xn hI",
    "MPI_File_get_view": "hF u. oD oD uc",
    "fd_close": "d.",
    "fd_fdstat_get": "d. uc",
    "fd_seek": "d. l. i. u.",
    "fd_write": "d. w. nw u.",
    "proc_exit": "i.",
    "sched_yield": "",
}
_BLOCKS = {
    "MESSAGE": "Recv Probe Mprobe",
    "ALL_REQUESTS": "Wait Waitall",
    "ANY_REQUEST": "Waitany Waitsome",
    "RECEIVER": "Send Ssend Rsend",
    "OTHERS": "Sendrecv Sendrecv_replace Buffer_detach Comm_disconnect",
    "ENDS": "Abort proc_exit",
}
# More often than the others: what makes the objects that these use.
_WEIGHTS = {
    r"File_set_view": 6,
    r"Type_(commit|free|size|get)": 3,
    r"Type_": 6,
    r"(I|Ib|Is|Ir)send$|Irecv$|_init$": 6,
    r"Start|Test|Wait|fd_write": 5,
    r"Comm_(rank|size|compare)|Group_|Wt|Error|Get_proc|mpilab": 1,
}


def _role(declaration: str, arrays: Collection[str], has_buffer: bool) -> str:
    """The two letters for a parameter such as 'const int ranks[]'."""
    found = re.fullmatch(r"(const )?(\w+) (\*?)(\w+)(\[.*)?", declaration)
    if found is None:
        raise ValueError(declaration)
    is_const, kind, pointer, name, array = found.groups()
    letter = _HANDLES.get(kind.removeprefix("MPI_"))
    if kind == "void":
        return "b."
    if kind == "MPI_Status":
        return "s."
    if letter and array:
        return "a" + letter
    if letter:
        inout = pointer and (name in ("request", "message", "datatype", "info", "comm", "group"))
        return ("m" if inout else "o" if pointer else "h") + letter
    if array:
        is_out = not is_const and name != "ranges"
        wide = "w" if kind == "MPI_Offset" else "c" if "counts" in name else ""
        return "uc" if is_out else "v" + (wide or ("d" if has_buffer or "rank" in name else "."))
    if pointer:
        return "u."
    if kind == "MPI_Offset":
        return "l."
    if name in ("dest", "source", "root"):
        return "r" + name[0]
    if "tag" in name:
        return "tr" if "recv" in name else "t."
    if name == "order":
        return "q."
    if name in ("color", "key", "split_type", "errorcode", "whence"):
        return "i."
    if arrays and not has_buffer:
        return "nl"
    return "ne" if has_buffer else "n."


def roles() -> dict[str, str]:
    """{call: two letters for each of its parameters}, of all that the jail offers."""
    found = {name: words.replace(" ", "") for name, words in BY_HAND.items()}
    text = (jail.SOURCES / "inside" / "prototypes.h").read_text(encoding="utf-8")
    for name, inside in re.findall(r"\bint (MPI_\w+)\((.*)\);", text):
        if name in found:
            continue
        parameters = [p for p in inside.split(", ") if p != "void"]
        arrays = [p for p in parameters if p.endswith("]")]
        has_buffer = any("void *" in p for p in parameters)
        found[name] = "".join(_role(p, arrays, has_buffer) for p in parameters)
        if "recv" in name.lower() or "robe" in name:
            found[name] = found[name].replace("t.", "tr")
    return found


def offered(simulated: bool = False) -> dict[str, str]:
    """{name: type} of what a kernel can call in a build of the shim: MPI, and what printing needs.

    The shim for SimGrid has no files: kernels that read them are not simulated.
    """
    every = {**jail.offered(), **jail.WASI}
    return {n: kind for n, kind in every.items() if not (simulated and "MPI_File_" in n)}


def table(allowed: bool = False, simulated: bool = False) -> str:
    """The calls as fuzz.c includes them; with `allowed`, those that no exercise allows are never
    made."""
    lines, known = [], roles()
    permitted = mpi_calls(GROUPS)
    for name, kind in sorted(offered(simulated).items()):
        short, (takes, _, gives) = name.removeprefix("MPI_"), kind.partition(">")
        if 2 * len(takes) != len(known[name]):
            raise ValueError(f"{name}: {known[name]!r} for {takes!r}")
        blocks = next((word for word, names in _BLOCKS.items() if short in names.split()), "NEVER")
        weight = next((n for pattern, n in _WEIGHTS.items() if re.match(pattern, short)), 3)
        if allowed and name.startswith("MPI_") and not permitted.fullmatch(name):
            weight = 0
        given = [f"({'u64' if letter == 'l' else 'u32'})a[{at}]" for at, letter in enumerate(takes)]
        where = "PRINTED" if name in jail.WASI else "CALLED"
        row = [name, where, f'"{known[name]}"', blocks, str(weight), *given]
        lines.append(f"{'FUZZED' if gives else 'FUZZED_VOID'}({', '.join(row)})")
    return "\n".join(lines) + "\n"


# --- one run


@dataclass(frozen=True)
class Sequence:
    """Which calls a run makes: all `calls` of this seed except those in `skipped`; `simulated`: of
    the shim for SimGrid's SMPI, where all ranks share a process."""

    seed: int
    ranks: int
    calls: int = CALLS
    skipped: frozenset[int] = frozenset()
    simulated: bool = False


@dataclass(frozen=True)
class Run:
    """How a run ended: `why` is what was found, or ""; `log` are the calls of the rank that ended
    first, `logs` those of all ranks."""

    why: str
    ending: str
    log: str
    error: str
    logs: tuple[str, ...]

    def calls(self) -> list[tuple[int, str, bool]]:
        """(index, name, whether it trapped) of each call that was made, on `log`'s rank."""
        return [(index, name, end.startswith(" !")) for index, name, end in _calls(self.log)]

    def trapped(self) -> frozenset[int]:
        """The calls that trapped on any rank, those that callbacks made included."""
        return self._ended(lambda end: end.startswith(" !"))

    def unfinished(self) -> frozenset[int]:
        """The calls during which the ranks ended."""
        return self._ended(lambda end: not end or end.startswith("# no return"))

    def _ended(self, how: Callable[[str], bool]) -> frozenset[int]:
        made = (call for log in self.logs for call in _calls(log))
        return frozenset(index for index, _, end in made if how(end))


def _calls(log: str) -> list[tuple[int, str, str]]:
    """(index, name, how it ended) of each call in a log, without those that callbacks made."""
    made: list[tuple[int, str, str]] = []
    for line in log.splitlines():
        found = _CALL.match(line)
        if found is not None and int(found[1]) < NESTED:
            made.append((int(found[1]), found[2], found[3]))
        elif made and not made[-1][2]:  # a callback has made calls
            end = found[3] if found is not None else line
            if found is None and line.startswith(" =") or end.startswith(" !"):
                made[-1] = (*made[-1][:2], end)
    return made


def build_program(allowed: bool = False, simulated: bool = False) -> Path:
    """The program that makes the calls, as in `table`, built with sanitizers."""
    program = SIMULATED_PROGRAM if simulated else PROGRAM
    program.parent.mkdir(parents=True, exist_ok=True)
    listed, wanted = program.parent / "fuzz_calls.inc", table(allowed, simulated)
    if not listed.exists() or listed.read_text(encoding="utf-8") != wanted:
        listed.write_text(wanted, encoding="utf-8")
    if simulated:
        smpicc = simgrid.tool("smpicc")
        said = build.make("simulated-jail-fuzz", timeout=600.0, smpicc=smpicc)
    else:
        said = build.make("jail-fuzz", timeout=600.0)
    if said.returncode != 0:
        raise SystemExit(f"fuzz_jail: it cannot be built:\n{said.stderr[-4000:]}")
    return program


def run(sequence: Sequence, folder: Path) -> Run:
    """Make the calls of a sequence, in new processes."""
    log = folder / f"log-{sequence.seed}-{sequence.ranks}{'-simulated' * sequence.simulated}"
    data = folder / "data"
    if not data.exists():
        data.write_bytes(bytes(range(256)) * 300 + b"end")
    command = [str(sequence.seed), "0", str(sequence.calls), str(data), str(log)]
    command += map(str, sorted(sequence.skipped))
    with (
        tempfile.TemporaryDirectory(dir=folder) as own,
        (folder / f"{log.name}.error").open("w+b") as said,
    ):
        how = _simulating if sequence.simulated else _on_openmpi
        command, settings = how(sequence, command, own)
        process = subprocess.Popen(
            command,
            cwd=own,
            env=settings,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
        try:
            code = process.wait(30 + 0.2 * sequence.calls)
        except subprocess.TimeoutExpired:
            code = BLOCKED
        with contextlib.suppress(ProcessLookupError):  # all of them have ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        said.seek(0)
        error = said.read().decode(errors="replace")
    logs = []
    for rank in range(sequence.ranks):
        path = Path(f"{log}.{rank}")
        logs.append(path.read_text(errors="replace") if path.exists() else "")
        for one in (path, Path(f"{path}.recording")):
            one.unlink(missing_ok=True)
    Path(f"{log}.error").unlink(missing_ok=True)
    if not any(logs):
        raise SystemExit(f"fuzz_jail: it does not begin:\n{error[-4000:]}")
    return _judged(code, error, logs)


def _on_openmpi(sequence: Sequence, given: list[str], own: str) -> tuple[list[str], dict[str, str]]:
    """(command, environment) of a run on Open MPI; `own` is the folder for its files."""
    command = [str(PROGRAM), *given]
    if sequence.ranks > 1:
        command[:0] = [openmpi.tool("mpirun"), "-n", str(sequence.ranks)]
    settings = openmpi.environment(
        sequence.ranks,
        **QUIET,
        **openmpi.mpi_io("ompio"),  # as around an answer (mpilab/grading/workers.py)
        TMPDIR=own,
        # Processes that are killed leave their segments, whose names come again.
        OMPI_MCA_btl_sm_backing_directory=own,
    )
    return command, settings


def _simulating(sequence: Sequence, given: list[str], own: str) -> tuple[list[str], dict[str, str]]:
    """The same for a simulation."""
    where = platforms.platform(f"flat-1x{sequence.ranks}")
    folder = Path(own)
    (folder / "program").symlink_to(SIMULATED_PROGRAM)
    (folder / "preloaded.so").symlink_to(SIMULATED_PROGRAM.with_name("fuzz_preloaded.so"))
    (folder / "sanitizer.so").symlink_to(_runtime_of_sanitizer())
    (folder / "platform.xml").write_text(platforms.xml(where), encoding="utf-8")
    hosts = [where.description.hosts[0].name] * sequence.ranks
    (folder / "hosts").write_text("".join(f"{name}\n" for name in hosts), encoding="utf-8")
    smpirun = simgrid.tool("smpirun")
    settings = {
        **platforms.options(where, simgrid.version_of(smpirun)),
        "smpi/tmpdir": ".",
        "contexts/factory": "thread",  # sanitizers know the stacks of threads only
    }
    command = [
        *(smpirun, "-np", str(sequence.ranks), "-platform", "platform.xml", "-hostfile", "hosts"),
        *("-wrapper", "env LD_PRELOAD=./preloaded.so:./sanitizer.so"),
        *("./program", *given),
        *(f"--cfg={name}:{value}" for name, value in settings.items()),
        *(f"--log={name}.thres:warning" for name in ("smpi_config", "xbt_cfg")),
    ]
    quiet = {**QUIET, "ASAN_OPTIONS": QUIET["ASAN_OPTIONS"] + ":verify_asan_link_order=0"}
    return command, {**os.environ, **quiet, "LC_ALL": "C", "TMPDIR": own}


@cache
def _runtime_of_sanitizer() -> str:
    """The library that a program without sanitizers must load before one that has them."""
    said = build.run([os.environ.get("CC", "cc"), "-print-file-name=libasan.so"], 60.0)
    return said.stdout.strip()


def _judged(code: int, error: str, logs: list[str]) -> Run:
    # SimGrid ends the ranks of a deadlock, or after MPI_Abort, and may crash while it does.
    ending = re.search(r"Deadlock detected|MPI_Abort was called", error)
    if ending is not None:
        error = error[: ending.start()]
        code = BLOCKED if ending[0].startswith("Deadlock") else ABORTED
    gave_up = _GAVE_UP.search(error) if code == ABORTED else None
    # A fault that jail_fault knows is a trap.
    is_trap = any(_FAULT_TRAPS in log for log in logs)
    reports = (r for r in _REPORT.finditer(error) if not _is_in_guard_zone(r[0], logs))
    found = next((r for r in reports if not (is_trap and _FAULT_AT_NULL.match(r[0]))), None)
    if found is not None:
        at = re.search(r"#\d+ \S+ in (.*)", error[found.start() :])
        why = f"{found[1].strip()} {at[1] if at else ''}"
    elif code == STALLED or re.search(rf"Exit code: +{STALLED}\b", error):
        why = "a call does not return"
    elif code < 0 or "exited on signal" in error:
        why = f"signal {-code}" if code < 0 else "signal"
    elif gave_up is not None and "refcount" in gave_up[1]:  # it uses a request that it has freed
        why = f"SimGrid: {gave_up[1]}"
    else:
        why = ""
    ended = [log for log in logs if "\nend\n" not in log and not log.endswith("end\n")]
    stopped = [log for log in ended if not re.search(r"# no return", log)]
    log = (stopped or ended or logs)[0]
    if why:
        for one in logs:  # where it was found, the last call has no result
            if _CALL.match(one.rstrip("\n").rsplit("\n", 1)[-1]) is not None:
                log = one
                break
    # mpirun misses MPI_Finalize, which no kernel calls.
    if code == 1 and "Exit code:" not in error and all(log.endswith("end\n") for log in logs):
        code = 0
    name = {
        0: "end",
        BLOCKED: "blocked",
        ENDED_INSIDE: "a trap that nothing follows",
        ABORTED: GIVEN_UP,
    }
    return Run(
        re.sub(r"0x[0-9a-f]+|pid \d+|==\d+==", "", why),
        name.get(code, str(code)),
        log,
        error,
        tuple(logs),
    )


def _is_in_guard_zone(said: str, logs: list[str]) -> bool:
    """True for a fault where nothing is, around a kernel's memory (wasm2c_runtime.c): it ends a
    kernel like a trap."""
    at = re.search(r"SEGV on unknown address 0x([0-9a-f]+)", said)
    begin = (int(b, 16) for log in logs for b in re.findall(r"^# memory 0x([0-9a-f]+)", log, re.M))
    return at is not None and any(b - GUARD <= int(at[1], 16) < b + RESERVED + GUARD for b in begin)


def run_past_traps(sequence: Sequence, folder: Path) -> Iterator[tuple[Sequence, Run]]:
    """Make the calls of a sequence, and again without those that trapped, until none does.

    Yields each run, with the sequence that was made. The last one has no trap, unless something was
    found in it, or MOST_RUNS were not enough.
    """
    blocked = 0
    for _ in range(MOST_RUNS):
        ended = run(sequence, folder)
        yield sequence, ended
        left_out = ended.trapped()
        if not ended.why and not left_out and ended.ending != "end":
            left_out, blocked = ended.unfinished(), blocked + (ended.ending != GIVEN_UP)
        if not left_out or blocked > MOST_BLOCKED:
            return
        skipped = sequence.skipped | left_out
        sequence = replace(sequence, skipped=skipped)


# --- a finding


def key_of(why: str) -> str:
    """What two runs that found the same have in common."""
    return re.sub(r"\W+", " ", re.sub(r"\d+", "", why)).strip()


def minimized(
    sequence: Sequence, first: Run, folder: Path, deadline: float
) -> tuple[Sequence, Run]:
    """The sequence without the calls that the finding does not need (delta debugging)."""
    best, found = sequence, first
    trapped = first.trapped()
    made = {index for index, _, _ in first.calls()}
    never = frozenset(set(range(sequence.calls)) - made)

    def attempt(skipped: frozenset[int]) -> bool:
        nonlocal best, found
        tried = replace(best, skipped=skipped)
        again = run(tried, folder)
        if key_of(again.why) != key_of(first.why):
            return False
        best, found = tried, again
        return True

    if sequence.ranks == 1:
        attempt(best.skipped | never)
    attempt(best.skipped | trapped)
    size = max(1, len(made) // 2)
    while size >= 1 and time.monotonic() < deadline:
        left = sorted(made - best.skipped)
        removed = False
        for at in range(0, len(left), size):
            if time.monotonic() > deadline:
                break
            removed |= attempt(best.skipped | frozenset(left[at : at + size]))
        if size == 1 and not removed:
            break
        size = size // 2 if size > 1 else 1
    return best, found


def is_real(found: Run) -> bool:
    """False if a trapped call precedes what was found: a kernel would have ended there."""
    return not found.trapped()


def _as_ranges(numbers: Collection[int]) -> str:
    """E.g. '0-7,9'."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(f"{a}" if a == b else f"{a}-{b}" for a, b in found)


def _from_ranges(text: str) -> frozenset[int]:
    found = (word.partition("-") for word in text.split(",") if word)
    return frozenset(n for a, _, b in found for n in range(int(a), int(b or a) + 1))


def report(sequence: Sequence, found: Run) -> str:
    """What was found, how to reproduce it, and the calls that lead there."""
    skipped = _as_ranges(sequence.skipped)
    error = [line for line in found.error.splitlines() if line.strip()]
    lines = [
        f"FOUND {found.why}" + ("" if is_real(found) else " (only after a trap)"),
        f"  tools/fuzz_jail.py --seed {sequence.seed} --ranks {sequence.ranks} "
        f"--calls {sequence.calls} --builds {'simgrid' if sequence.simulated else 'openmpi'}"
        + (f" --skip {skipped}" if skipped else ""),
        *(f"    {line}" for line in found.log.splitlines()[-60:]),
        *(f"  | {line}" for line in error[:45]),
    ]
    return "\n".join(lines)


def _sequences(options: argparse.Namespace) -> Iterator[Sequence]:
    if options.seed is not None:
        skipped = _from_ranges(options.skip)
        for build in options.builds:
            for ranks in options.ranks:
                yield Sequence(options.seed, ranks, options.calls, skipped, build == "simgrid")
        return
    seed = options.first
    while True:
        for ranks in options.ranks:
            calls = options.calls if ranks == 1 else options.calls // 2
            for build in options.builds:
                yield Sequence(seed, ranks, calls, simulated=build == "simgrid")
            seed += 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="how long; default: 60")
    parser.add_argument("--seed", type=int, help="make this sequence only")
    parser.add_argument("--first", type=int, default=int(time.time()), help="the first seed")
    parser.add_argument("--ranks", default="1,1,1,2,3", help="numbers of ranks, in turn")
    parser.add_argument("--calls", type=int, default=CALLS, help=f"in a sequence; default: {CALLS}")
    parser.add_argument("--skip", default="", help="calls to leave out, with --seed")
    parser.add_argument("--jobs", type=int, default=2, help="sequences at a time; default: 2")
    parser.add_argument(
        "--minimize", type=float, default=60.0, help="seconds to shorten a finding; default: 60"
    )
    parser.add_argument(
        "--allowed", action="store_true", help="only calls that an exercise can allow"
    )
    parser.add_argument(
        "--builds",
        default=",".join(BUILDS),
        help="of the shim, in turn; default: all that can be built here, of %(default)s",
    )
    parser.add_argument("--most", type=int, default=3, help="stop after so many findings")
    options = parser.parse_args()
    options.ranks = [int(word) for word in options.ranks.split(",")]
    options.builds = options.builds.split(",")
    if wrong := set(options.builds) - set(BUILDS):
        parser.error(f"--builds {','.join(sorted(wrong))}: there are {', '.join(BUILDS)}")
    if not simgrid.available() and options.builds == list(BUILDS):
        print("SimGrid is not installed: only the build for Open MPI is tried", flush=True)
        options.builds.remove("simgrid")
    for one in options.builds:
        build_program(options.allowed, one == "simgrid")
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="mpilab-fuzz-"))
    endings: Counter[str] = Counter()
    calls: Counter[tuple[str, bool]] = Counter()  # by name and build
    known: set[str] = set()
    sequences = runs = trapped = unreal = 0

    def attempt(sequence: Sequence) -> list[tuple[Sequence, Run]]:
        return list(run_past_traps(sequence, folder))

    try:
        with ThreadPoolExecutor(options.jobs) as pool:
            waiting = _sequences(options)
            while time.monotonic() - began < options.seconds and len(known) < options.most:
                batch = [s for _, s in zip(range(4 * options.jobs), waiting, strict=False)]
                if not batch:
                    break
                for made in pool.map(attempt, batch):
                    sequences, runs = sequences + 1, runs + len(made)
                    sequence, ended = made[-1]
                    where = BUILDS[sequence.simulated]
                    endings[f"{ended.ending}, {where}, {sequence.ranks} ranks"] += 1
                    calls.update(
                        (name, sequence.simulated)
                        for _, name, is_trap in ended.calls()
                        if not is_trap
                    )
                    trapped += sum(len(one.trapped()) for _, one in made)
                    for sequence, ended in made:
                        if not ended.why or key_of(ended.why) in known:
                            continue
                        if not is_real(ended):  # the next run is without these traps
                            unreal += 1
                            continue
                        print(f"found with seed {sequence.seed}: {ended.why}", flush=True)
                        least, found = minimized(
                            sequence, ended, folder, time.monotonic() + options.minimize
                        )
                        print(report(least, found), flush=True)
                        if is_real(found):
                            known.add(key_of(ended.why))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"{sequences} sequences in {time.monotonic() - began:.0f} s, made {runs} times: "
        f"{calls.total()} calls that no trap precedes, {trapped} trapped, {len(known)} findings "
        f"(and {unreal} runs with one only after a trap, which no kernel survives)"
    )
    print("  " + "; ".join(f"{name}: {count}" for name, count in sorted(endings.items())))
    permitted = mpi_calls(GROUPS)
    for one in options.builds if options.seed is None else ():
        simulated = one == "simgrid"
        unused = [
            name
            for name in offered(simulated)
            if not calls[name, simulated]
            and (not options.allowed or permitted.fullmatch(name) or name in jail.WASI)
        ]
        total = sum(count for (_, where), count in calls.items() if where == simulated)
        print(f"  {one}: {total} calls; never without a trap: {' '.join(unused) or 'none'}")
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
