"""Kernels tried in the sandbox: compiled, simulated, and run with mpirun; what each case left comes
out as a Result."""

import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from mpilab import build
from mpilab.diagnosis.model import Diagnosis
from mpilab.errors import InputError, Ungradable
from mpilab.grading.errand import send_inside
from mpilab.grading.sandbox import Limits
from mpilab.hang import Hang, RankState
from mpilab.harness import Output
from mpilab.recording import RankRecording, Recording
from mpilab.result import (
    CRASH,
    DEADLOCK,
    DONE,
    ERROR,
    SKIPPED,
    TIME_OUT,
    Result,
)
from mpilab.simulated.build import DIFFERENCES, LIBRARY, kernels

ROOT = build.ROOT
# A case takes milliseconds. It is given up when its ranks have computed that long without an MPI
# call, in processor time, so that a busy machine costs nobody a mark. Before that is looked at,
# nothing has happened for a while (of a deadlock the recordings give proof, whenever it is).
CASE_WORK_S = 1.0
STANDSTILL_S = 0.5
CASE_LIMIT_S = 60.0
# Everything that runs inside may read; no rubric, no reference answer, no other submission.
READABLE = (ROOT / "mpilab", build.INCLUDE, ROOT / "src_c" / "recorder" / "record.h")
# A compiler that never ends meets its limit of processor time before that of wall time in
# mpilab.build, which a busy machine may have met as well.
COMPILE_LIMITS = Limits(wall_seconds=90, memory=1 << 30, cpu_seconds=30)
RUN_LIMITS = Limits(wall_seconds=240, output_bytes=128 << 20, disk_bytes=512 << 20,
                    shm_bytes=512 << 20, memory=4 << 30)  # fmt: skip
PROCESSES_A_RANK = 6  # mpirun and its ranks, with their threads
COMPILED = "compiled.json"
_REAL, _SIMULATED = ("kernel.so",), ("simulated.so", "simulated.run")


@dataclass(frozen=True)
class Compiled:
    """What came of compiling an answer.

    said    what the compiler and the look at its symbols said (mpilab.grading.inside).
    files   {name: bytes} of what can be run and simulated.
    """

    said: dict
    files: dict = field(repr=False)


@dataclass(frozen=True)
class Tried:
    """The Results of cases, and the raw files that they left: {"N.RANK.rec": bytes, ...} with the
    number of the case."""

    results: tuple
    files: dict = field(repr=False)

    def keep(self, case, folder):
        """Write what `case` left into `folder`."""
        number = [result.case for result in self.results].index(case)
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in self.files.items():
            first, _, rest = Path(name).name.partition(".")
            if first == str(number):
                (folder / rest).write_bytes(content)


def compile_kernel(sandbox, exercise, source, *, simulated):
    """Compile the C text of an answer, for a simulation as well if that is asked for; Compiled."""
    job = {"function": exercise.function, "allowed": exercise.allowed, "source": source,
           "simulated": simulated}  # fmt: skip
    outcome = send_inside(
        sandbox,
        "compile",
        job,
        limits=COMPILE_LIMITS,
        collect=["*"],
        readable=[*READABLE, build.need(build.RECORDER), *_of_simulation(simulated)],
        ranks=1,
    )
    check_machine(outcome)
    said = read_json(outcome, COMPILED, "compiling")
    if said.get("doubt"):
        raise Ungradable(f"it could not be built: {said['doubt']}")
    files = {}
    if not said["error"] and not said["forbidden"]:
        for name in (*_REAL, *(_SIMULATED if simulated else ())):
            if name not in outcome.files:
                raise Ungradable("the compiled answer did not come out of the sandbox")
            files[name] = outcome.files[name]
    return Compiled(said, files)


def simulate(sandbox, exercise, compiled, plan):
    """Simulate the cases of a plan, (cases, groups); Tried."""
    files = {name: compiled.files[name] for name in _SIMULATED}
    return _try(sandbox, "simulate", exercise, files, plan, _of_simulation(True))


def run(sandbox, exercise, compiled, plan):
    """The same with mpirun."""
    files = {name: compiled.files[name] for name in _REAL}
    readable = [build.need(build.HARNESS), build.need(build.HARNESS_PROGRAM)]
    return _try(sandbox, "run", exercise, files, plan, readable)


def _of_simulation(wanted):
    """What a simulation reads, beside what is always readable."""
    if not wanted:
        return []
    kernels()  # with them the library is built: nobody can do that inside
    return [LIBRARY, DIFFERENCES, ROOT / "hostfiles"]


def _try(sandbox, verb, exercise, files, plan, readable):
    cases, groups = plan
    if not cases:
        return Tried((), {})
    job = {"function": exercise.function, "cases": [asdict(case) for case in cases],
           "groups": groups, "limit": CASE_LIMIT_S, "work": CASE_WORK_S,
           "standstill": STANDSTILL_S}  # fmt: skip
    most = max(case.ranks for case in cases)
    outcome = send_inside(
        sandbox,
        verb,
        job,
        limits=replace(RUN_LIMITS, processes=max(RUN_LIMITS.processes, PROCESSES_A_RANK * most)),
        files=files,
        collect=["results/*"],
        readable=[*READABLE, *readable],
        ranks=most,
    )
    check_machine(outcome)
    if outcome.reason or outcome.returncode != 0:
        said = outcome.stderr.decode(errors="replace").strip()[-500:]
        raise Ungradable(
            f"the run ended before all cases were tried: {outcome.reason or said or 'no word'}"
        )
    left = {name.rpartition("/")[2]: content for name, content in outcome.files.items()}
    results = tuple(_result(left, number, case) for number, case in enumerate(cases))
    return Tried(results, outcome.files)


def check_machine(outcome):
    """Raise Ungradable where the machine, not the answer, met a limit."""
    if outcome.reason == "host memory":
        raise Ungradable("the grading machine ran out of memory; grade again when it has more")


def told(said):
    """A diagnosis that came out of the sandbox as JSON."""
    try:
        return Diagnosis.from_json(said)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Ungradable(f"a diagnosis did not come out of the sandbox whole: {error}") from None


def read_json(outcome, name, doing):
    """A JSON file that came out of the sandbox; Ungradable if it is missing or torn."""
    try:
        return json.loads(outcome.files[name])
    except (KeyError, ValueError, RecursionError):
        why = outcome.reason or outcome.stderr.decode(errors="replace").strip()[-500:]
        raise Ungradable(f"no answer from the sandbox while {doing}: {why or 'no word'}") from None


def _result(left, number, case):
    """The Result of a case, from the files that all cases left: {name: bytes}."""
    if f"{number}.json" not in left:
        return Result(case, SKIPPED)
    try:
        said = json.loads(left[f"{number}.json"])
        outcome = said["outcome"]
        states = tuple(
            RankState(**{**state, "waits_for": tuple(state["waits_for"])})
            for state in said["states"]
        )
        diagnosis = said["diagnosis"] and told(said["diagnosis"])
        names = [f"{number}.{rank}.rec" for rank in range(case.ranks if case.record else 0)]
        ranks = [_recording(left, name) for name in names]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Ungradable(f"a result did not come out of the sandbox whole: {error}") from None
    result = Result(case, outcome, detail=said["detail"], states=states, ranks=ranks,
                    diagnosis=diagnosis)  # fmt: skip
    if outcome == DONE:
        try:
            names = [f"{number}.{rank}.out" for rank in range(case.ranks)]
            outputs = [Output.parse(left[name], name) for name in names]
        except (InputError, KeyError) as error:
            raise Ungradable(f"a result did not come out of the sandbox whole: {error}") from None
        if case.record and None in ranks:
            raise Ungradable("a result did not come out of the sandbox whole: a recording is not")
        recording = Recording(ranks) if case.record else None
        return replace(result, outputs=outputs, recording=recording)
    if outcome in (DEADLOCK, TIME_OUT):
        return replace(result, hang=Hang(outcome, states))
    if outcome == CRASH:
        return replace(result, crashed=tuple(said["crashed"]))
    if outcome in (ERROR, SKIPPED):
        return result
    raise Ungradable(f"a result has an unknown outcome: {outcome!r}")


def _recording(left, name):
    """What a rank recorded; None if it never began. One that contradicts itself counts as none."""
    try:
        return RankRecording(name, left[name])
    except (InputError, KeyError):
        return None
