"""Run cases of a kernel on the engines of the active cluster.

Cases and results are the same as with mpirun (mpilab/runners/mpirun.py), but nothing is started:
the kernel is loaded into ranks that are already running.
"""

import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpilab.cases.case import Case, check_real
from mpilab.cases.output import Output
from mpilab.cluster import roles
from mpilab.cluster.engines import Cluster
from mpilab.errors import ClusterError, EngineDied, InputError
from mpilab.hosts.places import Place
from mpilab.kernels.build import HARNESS, need
from mpilab.runners.hang import Hang, Watch, read_states
from mpilab.runners.result import CRASH, DONE, TIME_OUT, Result, blame, leaves_state, paths_of
from mpilab.runners.run import Groups, Results, Run, run_in_turn


class _Hung(Exception):
    """Raised in the middle of a call, to abandon it."""

    def __init__(self, hang: Hang) -> None:
        super().__init__(hang.kind)
        self.hang = hang


def run_cases(
    cluster: Cluster,
    library: str | Path,
    function: str,
    cases: Sequence[Case],
    *,
    groups: Groups | None = None,
    limit: float = 10.0,
    standstill: float = 1.0,
    work: float | None = 4.0,
    on_result: Callable[[Result], object] | None = None,
) -> list[Result]:
    """Run `cases` on `cluster`, one after another; list of Result.

    After a hang or a crash, the cluster is restarted and the later cases of the same group are
    skipped, as in mpilab.runners.mpirun; it is also restarted after a run that left messages
    behind. Raises InputError if a case needs more ranks than there are.
    """
    check_real(cases)
    for case in cases:
        if case.memory:  # the engines would be left with whatever MPI could not allocate
            raise InputError(
                f"memory={case.memory}: only in a job of its own; use mpilab.run or mpilab.runners."
                "mpirun"
            )
        if case.ranks > cluster.n:
            raise InputError(
                f"ranks={case.ranks}: the cluster has {cluster.n}; start a larger one: "
                f"cluster = mpilab.Cluster({case.ranks}).start()"
            )
    return run_in_turn(
        cases,
        [[number] for number in range(len(cases))],
        lambda one: _Call(cluster, library, function, one),
        groups=groups,
        on_result=on_result,
        limit=limit,
        standstill=standstill,
        work=work,
    )


class _Call(Run):
    """One case as a call on the engines of a cluster; restarts the cluster if the call has changed
    it."""

    def __init__(
        self, cluster: Cluster, library: str | Path, function: str, cases: Mapping[int, Case]
    ) -> None:
        super().__init__(library, function, cases, "")  # results() makes the directory
        self.cluster = cluster
        self.log_begin = cluster.log_size

    def results(self, **limits: Any) -> Results:
        ((number, case),) = self.cases.items()
        with tempfile.TemporaryDirectory(prefix="mpilab-case-", dir=self.cluster.folder) as folder:
            self.directory = Path(folder)
            result, is_as_before = self._call(number, case, limits)
        if not is_as_before:
            self.cluster.restart()
        yield number, result

    def _call(self, number: int, case: Case, limits: dict[str, Any]) -> tuple[Result, bool]:
        """The Result, and whether the cluster can take the next case."""
        watch = Watch(self.directory, number, case.ranks, **limits)

        def poll() -> None:
            hang = watch.poll() if case.record else None
            if hang is not None:
                raise _Hung(hang)

        was_running = self.cluster.running
        try:
            # Without a recording, only the time limit can end a call.
            self.cluster.apply(
                roles.run_case,
                case.line(number),
                str(self.library),
                self.function,
                str(self.directory),
                str(need(HARNESS)),
                case.ranks,
                ranks=range(case.ranks),
                poll=poll,
                timeout=None if case.record else limits["limit"],
            )
        except _Hung as error:
            return self.hung(number, case, error.hang), False
        except TimeoutError:
            return self.hung(number, case, Hang(TIME_OUT, read_states(watch.read()))), False
        except EngineDied as error:
            return self._crashed(number, case, error), False
        except ClusterError as error:
            if not was_running:
                return self.error(number, case, detail=str(error)), True
            # MPI_Abort ends all ranks, including those that would have reported who died.
            lost = case.record and not self.cluster.running and blame(self.recorded(number, case))
            if lost:
                return self._crashed(number, case, error), False
            return self.error(number, case, detail=str(error)), False
        outputs = [Output.read(path) for path in paths_of(self.directory, number, case, "out")]
        result = self.result(number, case, DONE, outputs=outputs)
        return result, not leaves_state(result)

    def places(self, case: Case) -> Sequence[Place]:
        return self.cluster.places[: case.ranks]

    def said(self) -> str:
        return self.cluster.log_since(self.log_begin)

    def result(self, number: int, case: Case, outcome: str, **more: Any) -> Result:
        return super().result(number, case, outcome, **{"log": self.said()} | more)

    def error(self, number: int, case: Case, **more: Any) -> Result:
        return super().error(number, case, **more | {"log": ""})

    def _crashed(self, number: int, case: Case, error: ClusterError) -> Result:
        """The Result after `error`, with the rank that died, if it is known."""
        ranks = self.recorded(number, case)
        crashed: tuple[int | None, str] | None = blame(ranks)
        if crashed is None:
            rank = next(iter(getattr(error, "ranks", ())), None)
            if rank is not None and case.reversed:
                rank = case.ranks - 1 - rank
            crashed = (rank, _signal(error))
        states = read_states(ranks) if case.record else ()
        return self.result(number, case, CRASH, crashed=crashed, states=states, detail=str(error))


def _signal(error: ClusterError) -> str:
    """The signal named in the message: 'rank 2 died of SIGSEGV (…)'."""
    named = re.search(r"\bSIG[A-Z0-9]+", str(error))
    return named[0] if named else "an error"
