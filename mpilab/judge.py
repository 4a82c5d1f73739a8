"""From what came of the cases to a verdict on an item.

Used by `check` in the notebook and by the referee: they differ in the cases, and in where those
were run, not in how they are judged.
"""

from dataclasses import replace

from mpilab.diagnosis import diagnose
from mpilab.diagnosis.model import LEAK
from mpilab.errors import Ungradable
from mpilab.expected import COLLECTIVES
from mpilab.formula import evaluate, names_of
from mpilab.orders import text_of
from mpilab.quantities import counts
from mpilab.result import ERROR, SKIPPED, Result
from mpilab.rubric import MOST
from mpilab.verdict import FAIL, PASS, UNGRADABLE, ExerciseVerdict, ItemVerdict

# With more, the line that reproduces a failure has it simulated.
MOST_ON_A_LAPTOP = 16

# quantity -> what a number of it is called, and what the evidence calls it
_WORDS = {
    "rounds": ("round", "", "rounds counted"),
    "messages": ("message", "", "messages counted"),
    "bytes": ("byte", " in messages", "bytes counted"),
    "busiest_messages": ("message", " from one rank", "most messages from one rank"),
    "busiest_bytes": ("byte", " from one rank", "most bytes from one rank"),
    "busiest_received": ("message", " to one rank", "most messages to one rank"),
    "node_messages": ("message", " between nodes", "messages between nodes"),
    "node_bytes": ("byte", " between nodes", "bytes between nodes"),
    "node_received_bytes": ("byte", " from other nodes to one rank",
                            "most bytes from other nodes to one rank"),
    "group_messages": ("message", " between groups", "messages between groups"),
    "group_bytes": ("byte", " between groups", "bytes between groups"),
    "group_received_bytes": ("byte", " from other groups to one rank",
                             "most bytes from other groups to one rank"),
    "reads": ("read request", "", "read requests counted"),
    "busiest_reads": ("read request", " of one rank", "most read requests of one rank"),
    "read_bytes": ("byte", " read", "bytes read"),
    "busiest_read_bytes": ("byte", " read by one rank", "most bytes read by one rank"),
    "largest_read": ("byte", " in one read request", "most bytes in one read request"),
    "reading_ranks": ("rank", " that read", "ranks that read"),
    "collective_reads": ("collective read request", "", "collective read requests counted"),
    "unexchanged_bytes": ("byte", " read by one rank without an exchange in between",
                          "most bytes read without an exchange in between"),
    "views_left": ("rank", " that left a view of its own on a file", "ranks that left a view"),
    "leaks": ("thing", " made and never freed", "things made and never freed"),
}  # fmt: skip


def plan(exercise, most_ranks=None):
    """All cases of a kernel exercise, each once, and for each the items that it is in.

    With `most_ranks`, cases that want more ranks are left out.
    """
    return each_once(
        (case, item.id)
        for item in exercise.items
        for case in item.cases
        if most_ranks is None or case.ranks <= most_ranks
    )


def each_once(pairs):
    """(cases, for each the items that it is in), from pairs of a case and an item's id."""
    groups = {}
    for case, item in pairs:
        groups.setdefault(case, []).append(item)
    return list(groups), [tuple(items) for items in groups.values()]


def judge_exercise(exercise, results, most_ranks=None):
    """ExerciseVerdict of a kernel from the Results of its planned cases (see `plan`)."""
    items = tuple(
        judge_item(exercise, item, of_item(item, results, most_ranks)) for item in exercise.items
    )
    return ExerciseVerdict(exercise.id, exercise.title, items)


def of_item(item, results, most_ranks=None):
    """The Results of an item's cases, in their order; an ERROR for one that nothing came of."""
    by_case = {result.case: result for result in results}
    wanted = [case for case in item.cases if most_ranks is None or case.ranks <= most_ranks]
    return [by_case.get(case) or Result(case, ERROR, detail="nothing came of it")
            for case in wanted]  # fmt: skip


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
    wrong = first_wrong(item, results, doubts)
    if wrong:
        return failed(exercise, item, *wrong)
    if not doubts and any(result.outcome == SKIPPED for result in results):
        doubts.append("a case was skipped, although none before it failed")
    if doubts:
        return ItemVerdict(item.id, item.title, item.points, UNGRADABLE, doubts[0])
    return ItemVerdict(item.id, item.title, item.points, PASS)


def failed(exercise, item, result, reason, evidence):
    """The verdict on an item that a Result proves wrong, for a reason, with evidence."""
    evidence = {**_about(exercise, result.case), **evidence, **_picture(result)}
    return ItemVerdict(item.id, item.title, item.points, FAIL,
                       f"With {result.case.describe()}: {reason}", evidence)  # fmt: skip


def _picture(result):
    """A picture of the run and its text alternative as evidence, or why there is no picture."""
    from mpilab.plots.still import still  # with it comes plotly

    try:
        svg, words = still(result.ranks)
    except Exception:  # a recording may hold anything: the picture is an extra
        return {}
    if not svg:
        return {"svg_alt": words} if words else {}
    return {"svg": svg, "svg_alt": f"What the ranks called. {words}"}


def first_wrong(item, results, doubts=None):
    """(Result, reason, evidence) of the first case that is proved wrong, or None.

    Why others could not be judged is appended to the list `doubts`.
    """
    for result in results:
        if result.outcome == SKIPPED:
            continue
        try:
            trouble = _trouble(item, result)
        except Ungradable as error:
            if doubts is not None:
                doubts.append(f"With {result.case.describe()}: {error}")
            continue
        if trouble:
            return result, *trouble
    return None


def _about(exercise, case):
    """The case as evidence, with the call that shows it again."""
    about, collective = {"ranks": case.ranks}, COLLECTIVES[case.collective]
    if collective.has_blocks and not collective.reads:  # of a read the matrix says it all
        about |= {"count": case.count, "datatype": case.datatype}
    options = [f"{name}={value!r}" for name, value in about.items() if value != "int"]
    for name, usual in (("root", 0), ("op", "sum"), ("segment", 0), ("fanout", 0), ("radix", 0),
                        ("budget", 0), ("pattern", "even"), ("matrix", ""), ("buffer", 0),
                        ("aggregators", 0)):  # fmt: skip
        if (value := getattr(case, name)) != usual:
            about[name] = value
            options.append(f"{name}={value!r}")
    if case.places:
        about["places"] = text_of(case.places)
        options.append(f"places={about['places']!r}")
    flags = ("in_place", "reversed", "strict")
    options += [f"{name}=True" for name in flags if getattr(case, name)]
    run = "mpilab.run"
    if case.platform or case.ranks > MOST_ON_A_LAPTOP:
        run = "mpilab.simulated.run"
    if case.platform:
        about["platform"] = case.platform
        options.append(f"platform={case.platform!r}")
    options = ", ".join(options).replace("'", '"')
    return {**about, "reproduce": f'{run}("{exercise.function}", {options})'}


def _trouble(item, result):
    """(reason, evidence) if this case went wrong, else None."""
    if result.outcome == ERROR:
        raise Ungradable(f"the case could not be run: {result.detail or result.outcome}")
    if result.crashed and result.crashed[1] == "SIGBUS":
        # Memory of a file that cannot be had: the disk or /dev/shm is full.
        raise Ungradable("a rank was ended by SIGBUS: the disk or the shared memory was full")
    # A diagnosis that came along was made where the answer ran: it explains, it does not decide.
    try:
        found = diagnose(replace(result, diagnosis=None))
    except Exception as error:  # whatever a recording holds, the grader goes on
        raise Ungradable(f"what it left behind could not be read: {error!r}") from error
    if found is None or found.kind == LEAK:
        if result.case.collective == "barrier":
            _need_recording(result)  # nothing else tells whether it was one
        return _wrong_counts(item, result)
    told = result.diagnosis if result.diagnosis and result.diagnosis.kind == found.kind else found
    return f"{told.headline.rstrip('.')}.", evidence_of(told)


def evidence_of(diagnosis):
    """A diagnosis as the evidence of an item: what the feedback page shows beside the reason."""
    evidence = {"hint": diagnosis.hint} if diagnosis.hint else {}
    if diagnosis.cycle:
        circle = (*diagnosis.cycle, diagnosis.cycle[0])
        evidence["cycle"] = " waits for ".join(map(str, circle))
    if diagnosis.lines:
        evidence |= {"line": diagnosis.lines[0], "lines": sorted(set(diagnosis.lines))}
    for place in diagnosis.places:
        if place.label and not place.file:
            evidence[f"in line {place.line}"] = place.label
    for table in diagnosis.tables:
        evidence[table.title] = [dict(zip(table.columns, row, strict=False)) for row in table.rows]
    if diagnosis.notes:
        evidence["note"] = "\n".join(diagnosis.notes)
    for rank, text in diagnosis.printed:
        evidence[f"rank {rank} printed"] = text
    return evidence


def _need_recording(result):
    recording = result.recording
    if recording is None or len(recording.ranks) != result.case.ranks or not recording.complete:
        raise Ungradable("the recording of the run is not complete")
    return recording


def _wrong_counts(item, result):
    if not item.counted:
        return None
    recording = _need_recording(result)
    got, names, wrong = counts(recording, result.case.levels), names_of(result.case), []
    for what, formula in item.counted:
        quantity = what.removeprefix(MOST)
        expected, found = evaluate(formula, **names), got[quantity]
        if found > expected or (found < expected and what == quantity):
            unit, where, _ = _WORDS[quantity]
            most = "" if what == quantity else "at most "
            said = f"{found} {unit}{'s' * (found != 1)}{where}"
            wrong.append(f"{said} where the algorithm has {most}{expected}")
    if not wrong:
        return None
    quantities = [what.removeprefix(MOST) for what, _ in item.counted]
    return (
        f"the result is right, but by another algorithm: {', '.join(wrong)}.",
        {_WORDS[quantity][2]: got[quantity] for quantity in quantities},
    )
