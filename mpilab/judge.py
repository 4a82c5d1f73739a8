"""From what came of the cases to a verdict on an item.

Used by `check` in the notebook and by the referee: they differ in the cases, and in where those
were run, not in how they are judged.
"""

from mpilab.errors import Ungradable
from mpilab.formula import evaluate
from mpilab.harness import compare
from mpilab.launch import CRASH, DEADLOCK, DONE, ERROR, SKIPPED, TIME_OUT, Result
from mpilab.verdict import FAIL, PASS, UNGRADABLE, ExerciseVerdict, ItemVerdict

_UNITS = {"rounds": "rounds", "messages": "messages", "bytes": "bytes in messages"}


def plan(exercise, most_ranks=None):
    """All cases of a kernel exercise, each once, and for each the items that it is in.

    With `most_ranks`, cases that want more ranks are left out.
    """
    groups = {}
    for item in exercise.items:
        for case in item.cases:
            if most_ranks is None or case.ranks <= most_ranks:
                groups.setdefault(case, []).append(item.id)
    return list(groups), [tuple(names) for names in groups.values()]


def judge_exercise(exercise, results, most_ranks=None):
    """ExerciseVerdict of a kernel from the Results of its planned cases (see `plan`)."""
    by_case = {result.case: result for result in results}

    def of(item):
        wanted = [case for case in item.cases if most_ranks is None or case.ranks <= most_ranks]
        return [
            by_case.get(case) or Result(case, ERROR, detail="nothing came of it") for case in wanted
        ]

    items = tuple(judge_item(exercise, item, of(item)) for item in exercise.items)
    return ExerciseVerdict(exercise.id, exercise.title, items)


def fail_all(exercise, reason, evidence=None):
    """The verdict on an answer that is not run: every item fails for the same reason."""
    return _all(exercise, FAIL, reason, evidence)


def ungradable(exercise, reason):
    """The verdict on an answer that nobody can judge."""
    return _all(exercise, UNGRADABLE, reason, None)


def _all(exercise, outcome, reason, evidence):
    # The evidence is the same for all: it is told once.
    items = tuple(
        ItemVerdict(item.id, item.title, item.points, outcome, reason,
                    (evidence or {}) if number == 0 else {})
        for number, item in enumerate(exercise.items))  # fmt: skip
    return ExerciseVerdict(exercise.id, exercise.title, items)


def judge_item(exercise, item, results):
    """ItemVerdict of a kernel's item: the first case that is proved wrong decides."""
    if not results:
        return ItemVerdict(
            item.id,
            item.title,
            item.points,
            UNGRADABLE,
            "none of its cases was run: the cluster has too few ranks",
        )
    doubts = []
    for result in results:
        if result.outcome == SKIPPED:
            continue
        try:
            trouble = _trouble(exercise, item, result)
        except Ungradable as error:
            doubts.append(f"With {result.case.describe()}: {error}")
            continue
        if trouble:
            reason, evidence = trouble
            return ItemVerdict(item.id, item.title, item.points, FAIL,
                               f"With {result.case.describe()}: {reason}",
                               {**_about(exercise, result.case), **evidence})  # fmt: skip
    if not doubts and any(result.outcome == SKIPPED for result in results):
        doubts.append("a case was skipped, although none before it failed")
    if doubts:
        return ItemVerdict(item.id, item.title, item.points, UNGRADABLE, doubts[0])
    return ItemVerdict(item.id, item.title, item.points, PASS)


def _about(exercise, case):
    options = [f"ranks={case.ranks}", f"count={case.count}"]
    if case.datatype != "int":
        options.append(f'datatype="{case.datatype}"')
    flags = ("in_place", "reversed", "strict")
    options += [f"{name}=True" for name in flags if getattr(case, name)]
    return {
        "ranks": case.ranks, "count": case.count, "datatype": case.datatype,
        "reproduce": f'mpilab.run("{exercise.function}", {", ".join(options)})',
    }  # fmt: skip


def _trouble(exercise, item, result):
    """(reason, evidence) if this case went wrong, else None."""
    if result.outcome == DONE:
        return _wrong_return(result) or _wrong_memory(result) or _wrong_counts(item, result)
    if result.outcome == DEADLOCK:
        return f"deadlock: {result.hang.describe()}.", _hang_evidence(result)
    if result.outcome == TIME_OUT:
        return f"no end in sight: {result.hang.describe()}.", _hang_evidence(result)
    if result.outcome == CRASH:
        return _crash(result)
    raise Ungradable(f"the case could not be run: {result.detail or result.outcome}")


def _hang_evidence(result):
    state = next((s for s in result.hang.states if s.state != "finished"), result.hang.states[0])
    return {"call": state.call, "line": state.line or None, "table": result.hang.table()}


def _crash(result):
    rank, what = result.crashed
    if what == "SIGBUS":
        # Memory of a file that cannot be had: the disk or /dev/shm is full.
        raise Ungradable("a rank was ended by SIGBUS: the disk or the shared memory was full")
    who = f"rank {rank}" if rank is not None else "a rank"
    meaning = {"SIGSEGV": " (it used memory that is not its own)",
               "SIGABRT": " (aborted: memory corrupted, or an assertion failed)",
               "SIGFPE": " (division by zero)"}.get(what, "")  # fmt: skip
    reason = f"{who} crashed with {what}{meaning}"
    evidence = {"table": [state.row() for state in result.states]}
    if rank is not None and rank < len(result.states):
        state = result.states[rank]
        evidence |= {"call": state.call, "line": state.line or None}
        if state.call:
            where = f", line {state.line}" if state.line else ""
            inside = "in" if state.state == "blocked" else "after"
            reason += f", {inside} {state.call}{where}"
    return f"{reason}.", evidence


def _wrong_return(result):
    returned = {output.rank: output.returned for output in result.outputs if output.returned}
    if not returned:
        return None
    rank, code = next(iter(returned.items()))
    return f"the kernel returned error code {code} on rank {rank}.", {}


def _wrong_memory(result):
    differences = compare(result.case, result.outputs)
    if not differences:
        return None
    words = "; ".join(difference.describe() for difference in differences[:3])
    more = len(differences) - 3
    tail = f"; and {more} more rank{'s' * (more > 1)}" if more > 0 else ""
    grid = [{"rank": d.rank, "wrong blocks": ", ".join(map(str, d.blocks)),
             "never written": ", ".join(map(str, d.untouched)), "also": "; ".join(d.notes)}
            for d in differences]  # fmt: skip
    return f"{words}{tail}.", {"table": grid}


def _wrong_counts(item, result):
    if not item.counted:
        return None
    recording = result.recording
    if recording is None or not recording.complete:
        raise Ungradable("the recording of the run is not complete")
    messages = recording.messages
    got = {"rounds": recording.rounds, "messages": len(messages),
           "bytes": int(messages["bytes"].sum())}  # fmt: skip
    case = result.case
    wrong = []
    for what, formula in item.counted:
        expected = evaluate(formula, P=case.ranks, m=case.block_bytes)
        if got[what] != expected:
            wrong.append(f"{got[what]} {_UNITS[what]} where the algorithm has {expected}")
    if not wrong:
        return None
    return (
        f"the result is right, but by another algorithm: {', '.join(wrong)}.",
        {**{f"{what} counted": got[what] for what, _ in item.counted}},
    )
