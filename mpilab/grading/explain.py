"""Where a mark comes from: what counts now, and all that led to it, out of the gradebook."""

from datetime import datetime

from mpilab.grading.decisions import LATE, OVERRIDE, POINTS
from mpilab.grading.effective import newest, of_run, run_of
from mpilab.grading.marks import points as short
from mpilab.plain import plain


def explain(book, lab, student):
    """A text: the points of a student with who gave them, then runs and decisions, oldest first.

    Raises InputError for a student who is not in the gradebook.
    """
    runs = book.history(student, lab) or [run_of(book, lab, student)]
    decisions = book.decisions(lab)
    standing = newest(decisions)
    counted = of_run(runs[0], standing)
    lines = [_head(counted), "", *_parts(counted)]
    if absent := (book.class_list(lab) or {}).get(student):
        lines.insert(1, f"All this is of an older file, and listed is: ungradable. {absent}")
    if counted.late is not None:
        lines.append(f"  lateness: {counted.late.reason} {_by(counted.late)}")
        if counted.decision is not None:
            lines.append("    takes nothing: the total was set by hand")
        elif counted.total is not None:
            lines.append(f"    takes {short(counted.penalty)} of {short(counted.raw_total)}")
    if counted.decision is not None:
        lines.append(f"  total: {_told(counted.decision)}")
    if counted.notes:
        lines += ["", "To be looked at:", *(f"  {note}" for note in counted.notes)]
    lines += ["", "History, oldest first:"]
    events = [(each.recorded, _run_line(each)) for each in runs[::-1]]
    own = [each for each in decisions if each.student == student]
    events += [(each.decided, _decision_line(each, standing)) for each in own]
    lines += [f"  {_time(when)}  {line}" for when, line in sorted(events, key=_when)]
    return plain("\n".join(lines))


def _head(counted):
    total = "no total yet" if counted.total is None else f"{short(counted.total)}"
    return f"{counted.student}, {counted.lab}: {total} of {short(counted.points)}, {counted.status}"


def _parts(counted):
    width = max((len(each.exercise) for each in counted.exercises), default=0)
    for exercise in counted.exercises:
        given = short(exercise.awarded) or "-"
        told = f", {_told(exercise.decision)}" if exercise.decision else ""
        yield f"  {exercise.exercise:<{width}}  {given} of {short(exercise.points)}{told}"
        for item in exercise.items:
            how = _told(item.decision) if item.decision else _judged(item)
            yield f"    {item.item}: {short(item.awarded) or '-'} of {short(item.points)}, {how}"


def _judged(item):
    if item.proposal is not None:
        return f"waits for a person; {short(item.proposal)} had been given for another text"
    return item.outcome + (f": {' '.join(item.reason.split())[:160]}" if item.reason else "")


def _told(decision):
    verb = {POINTS: "read", OVERRIDE: "set"}[decision.kind]
    said = f': "{decision.reason}"' if decision.reason else ""
    return f"{verb} {_by(decision)}{said}"


def _by(decision):
    return f"by {decision.who}, {_time(decision.decided)}"


def _run_line(run):
    total = "no total" if run.verdict.total is None else f"{short(run.verdict.total)} points"
    known = f"rubric {run.assignment[:8] or 'unknown'}, file {run.submission[:8] or 'unknown'}"
    return f"judged: {total}, {run.verdict.status} ({known})"


def _decision_line(decision, standing):
    where = "/".join(filter(None, (decision.exercise, decision.item))) or "total"
    later = "" if standing[decision.on] is decision else " (replaced later)"
    who, said = decision.who, f': "{decision.reason}"' if decision.reason else ""
    if decision.kind == LATE:
        what = "lateness taken back" if decision.withdrawn else "lateness"
    elif decision.withdrawn:
        what = f"{where}: {'points' if decision.kind == POINTS else 'override'} taken back"
    elif decision.kind == POINTS:
        what = f"{where}: {short(decision.points)} points given"
    else:
        what = f"{where}: set to {short(decision.points)}"
    return f"{what} by {who}{said}{later}"


def _when(event):
    return datetime.fromisoformat(event[0])


def _time(text):
    return datetime.fromisoformat(text).astimezone().strftime("%Y-%m-%d %H:%M:%S")
