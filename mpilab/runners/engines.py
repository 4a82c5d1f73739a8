"""Run cases of a kernel on the engines of the active cluster.

Cases and results are the same as with mpirun (mpilab/runners/mpirun.py), but nothing is started:
the kernel is loaded into ranks that are already running.
"""

import re
import tempfile
from pathlib import Path

from mpilab.cases.case import check_real
from mpilab.cases.output import Output
from mpilab.cluster import roles
from mpilab.errors import ClusterError, EngineDied, InputError
from mpilab.kernels.build import HARNESS, need
from mpilab.runners.hang import COMPUTING, Hang, Watch, never_began, read_states, sample
from mpilab.runners.result import (
    CRASH,
    DONE,
    ERROR,
    SKIPPED,
    TIME_OUT,
    Result,
    blame,
    gather,
    read_ranks,
    remains,
)


class _Hung(Exception):
    """Raised in the middle of a call, to abandon it."""

    def __init__(self, hang):
        super().__init__(hang.kind)
        self.hang = hang


def run_cases(
    cluster,
    library,
    function,
    cases,
    *,
    groups=None,
    limit=10.0,
    standstill=1.0,
    work=4.0,
    on_result=None,
):
    """Run `cases` on `cluster`, one after the other; list of Result.

    After a hang or a crash, the cluster is restarted and the later cases of the same group are
    skipped, as in mpilab.runners.mpirun; it is also restarted after a run that left messages
    behind. Raises InputError if a case needs more ranks than there are.
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

        arguments = (
            case.line(number),
            str(library),
            function,
            directory,
            str(need(HARNESS)),
            case.ranks,
        )
        was_running = cluster.running
        try:
            # Without a recording, only the time limit can end a call.
            cluster.apply(
                roles.run_case,
                *arguments,
                ranks=range(case.ranks),
                poll=poll,
                timeout=None if case.record else limits["limit"],
            )
        except _Hung as error:
            result = run.hung(error.hang)
        except TimeoutError:
            result = run.hung(Hang(TIME_OUT, read_states(watch.read())))
        except EngineDied as error:
            result = run.crashed(error)
        except ClusterError as error:
            if not was_running:
                return Result(case, ERROR, detail=str(error))
            # MPI_Abort ends all ranks, including those that would have reported who died.
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
    """One case on the cluster, and the files that it leaves in its directory."""

    def __init__(self, cluster, library, function, directory, number, case):
        self.cluster, self.case, self.place = cluster, case, (directory, number, case)
        self.library, self.function = str(library), function
        self.log_begin = cluster.log_size

    def ranks(self):
        return read_ranks(*self.place)

    def result(self, outcome, **more):
        """A Result with all files that the case left behind, whatever the outcome."""
        log = self.cluster.log_since(self.log_begin)
        places = self.cluster.places[: self.case.ranks]
        return gather(
            *self.place,
            outcome,
            library=self.library,
            function=self.function,
            log=log,
            places=places[::-1] if self.case.reversed else places,
            **more,
        )

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
        """The Result after `error`, with the rank that died, if it is known."""
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
    """The signal named in the message: 'rank 2 died of SIGSEGV (…)'."""
    named = re.search(r"\bSIG[A-Z0-9]+", str(error))
    return named[0] if named else "an error"
