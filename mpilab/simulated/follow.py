"""One smpirun over several cases, followed to the end of each: what came of a case, as a Result."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from mpilab.errors import InputError
from mpilab.hang import (
    Hang,
    never_began,
    read_states,
)
from mpilab.harness import Output
from mpilab.recording import HEADER, RECORD, peek
from mpilab.remains import remains
from mpilab.result import (
    CRASH,
    DEADLOCK,
    DONE,
    ERROR,
    TIME_OUT,
    blame,
    gather,
    paths_of,
    put_away,
    read_ranks,
    signal_name,
)
from mpilab.sampling import sample
from mpilab.simulated import wiring
from mpilab.simulated.build import tool
from mpilab.simulated.watch import Watch, latest_ns, outside

POLL_S = 0.02
LOOK_S = 0.5  # between looks at whether anything moves
LOG_BYTES = 1 << 20
_DEADLOCK = re.compile("Deadlock detected")
_HARNESS = re.compile(r"^mpilab-harness: (.*)", re.MULTILINE)
# What smpirun repeats of its command line, and SimGrid's marks of time and place.
_NOISE = re.compile(r"^(\./program .*|Execution failed with code .*|Backtrace .*|  ->.*|)\n", re.M)
# Error codes that a kernel may return: SMPI's (smpi.h) -> Open MPI's (mpi.h). Those in recordings
# are Open MPI's already (src_c/simulated/answers.c).
_RETURNED = {1: 5, 2: 13, 3: 3, 4: 7, 5: 17, 6: 2, 7: 6, 8: 4, 9: 15, 10: 9, 11: 10, 12: 16, 13: 18,
             14: 19, 15: 1, 17: 12, 18: 11, 19: 39, 24: 8, 25: 14, 26: 36}  # fmt: skip
_LOGS = ("smpi_config", "xbt_cfg", "smpi_utils", "smpi_coll", "smpi_colls")


class Run:
    """smpirun of `cases`, {number: Case} of the same ranks, on the hosts `names` of `platform`.

    library, function, keep   as in mpilab.simulated.run.simulate; `scratch` is where its files go.
    """

    def __init__(self, library, function, cases, platform, names, scratch, keep):
        self.library, self.function, self.cases = Path(library), function, cases
        self.keep, self.names = keep, names
        self.places = platform.description.places(names)
        self.directory = Path(tempfile.mkdtemp(dir=scratch))
        self._write_files(platform)
        settings = {**wiring.options(platform), **_algorithms(function, cases.values())}
        # smpirun takes a name apart at its blanks: so all names are short, in a directory of ours.
        command = [
            tool("smpirun"), "-np", str(len(names)), "-platform", "platform.xml",
            "-hostfile", "hosts", "./program", "./library.so",
            function or "-", "cases", ".",
            *(f"--cfg={name}:{value}" for name, value in settings.items()),
            *(f"--log={name}.thres:warning" for name in _LOGS),
            "--cfg=smpi/tmpdir:.",
        ]  # fmt: skip
        # A recording is an open file: of thousands of ranks they are more than the usual limit.
        command = ["sh", "-c", 'ulimit -n "$(ulimit -H -n)"; exec "$@"', "sh", *command]
        with open(self.directory / "log", "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=self.directory, env=self._environment(), stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, start_new_session=True)  # fmt: skip

    def _write_files(self, platform):
        stripped = self.library.with_suffix(".run")
        (self.directory / "program").symlink_to(stripped.resolve())
        (self.directory / "library.so").symlink_to(self.library.resolve())
        for name, text in (
            ("platform.xml", wiring.xml(platform)),
            ("hosts", "".join(f"{name}\n" for name in self.names)),
            ("cases", "".join(f"{case.line(i)}\n" for i, case in self.cases.items())),
        ):
            (self.directory / name).write_text(text, encoding="ascii")

    def _environment(self):
        groups = dict.fromkeys(f"{place.node}={place.group}" for place in self.places)
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("OMPI_", "SLURM_", "PMIX_", "PRTE_"))}  # fmt: skip
        return {**kept, "MPILAB_GROUPS": ",".join(groups), "LC_ALL": "C", "TMPDIR": "."}

    def results(self, *, limit, standstill):
        """(number, Result) of each case in turn, up to and including the first that fails or
        leaves something behind."""
        try:
            for number, case in self.cases.items():
                result = self._follow(number, case, limit, standstill)
                yield number, result
                if result.outcome != DONE or remains(result):
                    return
        finally:
            self._end()
            shutil.rmtree(self.directory, ignore_errors=True)

    def _follow(self, number, case, limit, standstill):
        began = looked = time.monotonic()
        watch = Watch(self, number, case, standstill)
        while True:
            ended = self.process.poll() is not None
            if ended or self._is_past(number):
                done = self._done(number, case)
                if done is not None:
                    return done
                if ended:
                    return self._ended(number, case)
            now = time.monotonic()
            if now - looked >= LOOK_S:
                looked = now
                kind = TIME_OUT if now - began >= limit else watch.look()
                if kind:
                    return self._hung(number, case, kind)
            try:
                self.process.wait(POLL_S)
            except subprocess.TimeoutExpired:
                continue

    def _is_past(self, number):
        """Has a rank begun the case after? The harness synchronises its ranks in between."""
        numbers = list(self.cases)
        after = numbers[numbers.index(number) + 1 :][:1]
        return any(os.path.exists(f"{self.directory}/{i}.0.{kind}")
                   for i in after for kind in ("rec", "out"))  # fmt: skip

    def _done(self, number, case):
        """The Result of a case that has come to its end; None while an output is not whole."""
        paths = paths_of(self.directory, number, case, "out")
        try:
            outputs = _as_open_mpi([Output.read(path) for path in paths])
        except (InputError, FileNotFoundError):
            return None
        result = self._result(number, case, DONE, outputs=outputs)
        recorded = [rank.path for rank in result.ranks if rank is not None]
        put_away([*paths, *recorded], self.keep)
        return result

    def _result(self, number, case, outcome, **more):
        places = () if case.places else self.places
        return gather(self.directory, number, case, outcome, library=str(self.library),
                      function=case.function or self.function,
                      places=places[::-1] if case.reversed else places, **more)  # fmt: skip

    def _ended(self, number, case):
        """smpirun has ended without this case: a deadlock, seen at once, or a crash."""
        log = self._said()
        ranks = self._recorded(number, case)
        states = read_states(ranks, latest_ns(ranks))
        harness = _HARNESS.search(log)
        if harness is None and _DEADLOCK.search(log):
            return self._result(number, case, DEADLOCK, hang=Hang(DEADLOCK, states),
                                states=states, log=log)  # fmt: skip
        if harness or (case.record and never_began(states)):
            detail = harness[1].removeprefix(f"{case.line(number)}: ") if harness else _tail(log)
            return self._result(number, case, ERROR, detail=detail, states=states, log=log)
        status = self.process.returncode
        ended = signal_name(status - 128) if status > 128 else f"exit status {status}"
        crashed = blame(ranks) or (None, ended)  # SimGrid itself: by a buffer that it cannot read
        return self._result(number, case, CRASH, crashed=crashed, detail=_tail(log),
                            states=states, log=log)  # fmt: skip

    def _hung(self, number, case, kind):
        samples, computing = {}, []
        if case.record and kind == TIME_OUT:
            recorded = paths_of(self.directory, number, case, "rec")
            computing = outside(map(peek, recorded))
            samples = sample({i: recorded[i] for i in computing})
        self._end()
        for rank in computing:
            if samples and rank not in samples:  # one runs at a time: it has not had its turn
                os.unlink(recorded[rank])
        ranks = self._recorded(number, case)
        states = read_states(ranks, latest_ns(ranks))
        log = self._said()
        if case.record and never_began(states):
            return self._result(number, case, ERROR, states=states, log=log,
                                detail=f"no rank began; smpirun said: {_tail(log)}")  # fmt: skip
        return self._result(number, case, kind, hang=Hang(kind, states), states=states,
                            samples=samples, log=log)  # fmt: skip

    def _recorded(self, number, case):
        """read_ranks of a run that has ended, without the room that its files did not need."""
        for path in paths_of(self.directory, number, case, "rec") if case.record else ():
            header = peek(path)
            used = (
                HEADER.itemsize + int(header["count"]) * RECORD.itemsize
                if header is not None
                else 0
            )
            if HEADER.itemsize <= used < os.path.getsize(path):
                os.truncate(path, used)
        return read_ranks(self.directory, number, case) or [None] * case.ranks

    def _said(self):
        """The end of what SimGrid and the harness have printed."""
        with open(self.directory / "log", "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_BYTES))
            return _NOISE.sub("", log.read().decode(errors="replace"))

    def _end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def _algorithms(function, cases):
    """Which algorithms SMPI's own collectives are: those that Open MPI would take where one is run
    as a kernel, and for the harness and topologies those with the fewest messages to simulate."""
    chosen = {"allgather": "bruck", "allreduce": "rdb"}
    for case in cases:
        if (case.function or function).endswith("_openmpi"):
            chosen[case.collective] = "ompi"
    return {f"smpi/{collective}": name for collective, name in chosen.items()}


def _as_open_mpi(outputs):
    """The same, with the error codes that the kernel returned as Open MPI numbers them.

    Numbers of the kernel's own making stay: its rank, or how many ranks there are.
    """
    codes = {output.rank: output.returned for output in outputs if output.returned}
    is_rank = len(codes) > 1 and all(rank == code for rank, code in codes.items())
    if is_rank or set(codes.values()) == {len(outputs)}:
        return outputs
    return [replace(one, returned=_RETURNED.get(one.returned, one.returned)) for one in outputs]


def _tail(text, lines=12):
    return "\n".join(text.strip().splitlines()[-lines:])
