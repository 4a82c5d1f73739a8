"""Run cases of a kernel on the engines of the active cluster.

The same cases and the same results as with mpirun (mpilab/launch.py), without starting anything:
the kernel is loaded into ranks that are already there.
"""

import re
import tempfile
from pathlib import Path

from mpilab.build import HARNESS, need
from mpilab.cluster import worker
from mpilab.errors import ClusterError, EngineDied, InputError
from mpilab.hang import COMPUTING, Hang, Watch, never_began, read_states
from mpilab.harness import Output, check_real
from mpilab.remains import remains
from mpilab.result import (
    CRASH,
    DONE,
    ERROR,
    SKIPPED,
    TIME_OUT,
    Result,
    blame,
    gather,
    read_ranks,
)
from mpilab.sampling import sample


class _Hung(Exception):
    """Raised in the middle of a call, to leave it."""

    def __init__(self, hang):
        super().__init__(hang.kind)
        self.hang = hang


def run_cases(cluster, library, function, cases, *, groups=None, limit=10.0, standstill=1.0,
              work=4.0, on_result=None):  # fmt: skip
    """Run `cases` on `cluster`, one after the other; list of Result.

    After a hang or a crash the cluster is restarted, and the later cases of the same group are
    skipped, as in mpilab.launch; it is restarted too after a run that left messages behind. Raises
    InputError where a case wants more ranks than there are.
    """
    check_real(cases)
    groups = list(groups) if groups is not None else [(i,) for i in range(len(cases))]
    for case in cases:
        if case.ranks > cluster.n:
            raise InputError(
                f"ranks={case.ranks}: the cluster has {cluster.n}; start a larger one: "
                f"cluster = mpilab.Cluster({case.ranks}).start()"
            )
    failed, results = set(), []
    for number, (case, group) in enumerate(zip(cases, groups, strict=True)):
        if failed.issuperset(group):
            results.append(Result(case, SKIPPED))
            continue
        result = _run(
            cluster, library, function, number, case, limit=limit, standstill=standstill, work=work
        )
        if result.outcome != DONE:
            failed.update(group)
        if on_result:
            on_result(result)
        results.append(result)
    return results


def _run(cluster, library, function, number, case, **limits):
    with tempfile.TemporaryDirectory(prefix="mpilab-case-", dir=cluster.folder) as directory:
        run = _Run(cluster, library, function, directory, number, case)
        watch = Watch(directory, number, case.ranks, **limits)

        def poll():
            hang = watch.poll() if case.record else None
            if hang is not None:
                raise _Hung(hang)

        arguments = (case.line(number), str(library), function, directory, str(need(HARNESS)),
                     case.ranks)  # fmt: skip
        was_running = cluster.running
        try:
            # A call that is not recorded cannot be watched, but has an end all the same.
            cluster.apply(worker.run_case, *arguments, ranks=range(case.ranks), poll=poll,
                          timeout=None if case.record else limits["limit"])  # fmt: skip
        except _Hung as error:
            result = run.hung(error.hang)
        except TimeoutError:
            result = run.hung(Hang(TIME_OUT, read_states(watch.read())))
        except EngineDied as error:
            result = run.crashed(error)
        except ClusterError as error:
            if not was_running:
                return Result(case, ERROR, detail=str(error))
            # MPI_Abort takes all down with it, also what would have said who died.
            lost = case.record and not cluster.running and blame(run.ranks())
            result = run.crashed(error) if lost else Result(case, ERROR, detail=str(error))
        else:
            paths = [Path(directory) / f"{number}.{rank}.out" for rank in range(case.ranks)]
            result = run.result(DONE, outputs=[Output.read(path) for path in paths])
            if not remains(result):
                return result
    cluster.restart()
    return result


class _Run:
    """One case on the cluster, and what it leaves in its directory."""

    def __init__(self, cluster, library, function, directory, number, case):
        self.cluster, self.case, self.place = cluster, case, (directory, number, case)
        self.library, self.function = str(library), function
        self.log_begin = cluster.log_size

    def ranks(self):
        return read_ranks(*self.place)

    def result(self, outcome, **more):
        """A Result with all that the case left behind, whatever came of it."""
        log = self.cluster.log_since(self.log_begin)
        places = self.cluster.places[: self.case.ranks]
        return gather(*self.place, outcome, library=self.library, function=self.function, log=log,
                      places=places[::-1] if self.case.reversed else places, **more)  # fmt: skip

    def hung(self, hang):
        if self.case.record and never_began(hang.states):
            return Result(self.case, ERROR, states=hang.states, detail="no rank began it in time")
        computing = [s.rank for s in hang.states if s.state == COMPUTING]
        samples = {}
        if hang.kind == TIME_OUT:
            directory, number, _ = self.place
            samples = sample({r: Path(directory) / f"{number}.{r}.rec" for r in computing})
        return self.result(hang.kind, hang=hang, states=hang.states, samples=samples)

    def crashed(self, error):
        """The Result after `error`, which names who died, if anybody knows."""
        ranks = self.ranks()
        crashed = blame(ranks)
        if crashed is None:
            rank = next(iter(getattr(error, "ranks", ())), None)
            if rank is not None and self.case.reversed:
                rank = self.case.ranks - 1 - rank
            crashed = (rank, _signal(error))
        states = read_states(ranks) if self.case.record else ()
        return self.result(CRASH, crashed=crashed, states=states, detail=str(error))


def _signal(error):
    """The signal that the message names: 'rank 2 died of SIGSEGV (…)'."""
    named = re.search(r"\bSIG[A-Z0-9]+", str(error))
    return named[0] if named else "an error"
