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
from mpilab.hang import Hang, Watch, never_began, read_states
from mpilab.harness import Output
from mpilab.launch import CRASH, DONE, ERROR, SKIPPED, Result
from mpilab.recording import Recording


class _Hung(Exception):
    """Raised in the middle of a call, to leave it."""

    def __init__(self, hang):
        super().__init__(hang.kind)
        self.hang = hang


def run_cases(cluster, library, function, cases, *, groups=None, limit=10.0, standstill=1.0,
              work=4.0, on_result=None):  # fmt: skip
    """Run `cases` on `cluster`, one after the other; list of Result.

    After a hang or a crash the cluster is restarted, and the later cases of the same group are
    skipped, as in mpilab.launch. Raises InputError where a case wants more ranks than there are.
    """
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
    with tempfile.TemporaryDirectory(prefix="mpilab-case-") as directory:
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
            result = _failed(directory, number, case, error.hang.kind, hang=error.hang)
        except TimeoutError:
            hang = Hang("time-out", read_states(watch.read()))
            result = _failed(directory, number, case, hang.kind, hang=hang)
        except EngineDied as error:
            rank = error.ranks[0] if error.ranks else None
            if rank is not None and case.reversed:
                rank = case.ranks - 1 - rank
            result = _failed(directory, number, case, CRASH, crashed=(rank, _signal(error)),
                             states=read_states(watch.read()), detail=str(error))  # fmt: skip
        except ClusterError as error:
            result = Result(case, ERROR, detail=str(error))
            if not was_running:
                return result
        else:
            paths = [Path(directory) / f"{number}.{rank}.out" for rank in range(case.ranks)]
            outputs = [Output.read(path) for path in paths]
            recording = _recording(directory, number, case)
            return Result(case, DONE, outputs=outputs, recording=recording)
    cluster.restart()
    return result


def _failed(directory, number, case, outcome, *, states=(), **more):
    hang = more.get("hang")
    if hang and case.record and never_began(hang.states):
        return Result(case, ERROR, states=hang.states, detail="no rank began it in time")
    return Result(case, outcome, states=hang.states if hang else states,
                  recording=_recording(directory, number, case), **more)  # fmt: skip


def _recording(directory, number, case):
    try:
        return Recording.load(directory, number, case.ranks) if case.record else None
    except InputError:
        return None


def _signal(error):
    """The signal that the message names: 'rank 2 died of SIGSEGV (…)'."""
    named = re.search(r"\bSIG[A-Z0-9]+", str(error))
    return named[0] if named else "an error"
