"""The report on a class: a page with figures, and the same as text for the terminal."""

from statistics import median

from mpilab.grading.marks import points
from mpilab.instructor import page
from mpilab.instructor.failures import without_name
from mpilab.plain import plain
from mpilab.plots import marks as plots
from mpilab.plots import style

ROWS = 60  # kinds of failure that a page lists
LINES = 12  # and the terminal
BAR = 40  # characters of the longest bar


def html(summary, names=False):
    """The report as an HTML page; students are named only where `names` is true."""
    marks = summary.marks
    figures = [plots.totals(summary)] if summary.totals else []
    figures += [plots.exercises(summary), plots.lost(summary)]
    return page.render(
        "instructor/report.html.j2",
        figures=[
            # The first one brings plotly.js along for all.
            style.fragment(figure, plotlyjs=number == 0)
            for number, figure in enumerate(filter(None, figures))
        ],
        title=marks.title,
        students=style.plural(len(marks.students), "student"),
        names=names,
        numbers=_numbers(summary),
        ungradable=[
            {"count": len(who), "reason": reason, "names": _named(who, names)}
            for reason, who in summary.ungradable
        ],
        waiting=list(summary.waiting.items()),
        failures=[_failure(each, names) for each in summary.failures[:ROWS]],
        more=max(0, len(summary.failures) - ROWS),
        marks=_marks(marks) if names else [],
        exercises=list(marks.exercises),
        notes=[note for each in marks.students for note in each.notes] if names else [],
        time=_time(summary),
    )


def text(summary, names=False):
    """The report as text."""
    lines = [f"{summary.marks.title}: {style.plural(len(summary.marks.students), 'student')}"]
    lines += [f"  {name}: {value}" for name, value in _numbers(summary)]
    if summary.ungradable:
        lines += ["", "could not be judged (look at them first):"]
        for reason, who in summary.ungradable:
            lines += [f"  {len(who):4}  {reason}", *_under(_named(who, names))]
    if summary.waiting:
        lines += ["", "waiting for a person:"]
        lines += [f"  {count:4}  {exercise}" for exercise, count in summary.waiting.items()]
    if summary.totals:
        lines += ["", "totals:"]
        rows = [(f"{points(low)} to {points(high)}", count) for low, high, count in summary.bins]
        lines += _bars(rows)
    lines += ["", "points of each exercise:"]
    width = max(map(len, summary.bands))
    for exercise, bands in summary.bands.items():
        told = ", ".join(f"{count} {band}" for band, count in bands.items() if count)
        lines.append(f"  {exercise:{width}}  {told}")
    if summary.lost:
        lines += ["", "items by how many lost them:"]
        lines += _bars([(f"{each.exercise}: {each.item}", each.students)
                        for each in summary.lost[:LINES]])  # fmt: skip
    if summary.failures:
        lines += ["", "common failures:"]
        for each in summary.failures[:LINES]:
            told = _failure(each, names)
            lines += [
                f"  {told['count']:4}  {told['exercise']} ({told['items']}): {told['reason']}",
                *_under(told["names"]),
            ]
        if len(summary.failures) > LINES:
            lines.append(f"        and {len(summary.failures) - LINES} rarer ones")
    if names:
        lines += [note for each in summary.marks.students for note in each.notes]
    if time := _time(summary):
        lines += ["", time]
    return "\n".join(plain(line) for line in lines)


def _numbers(summary):
    """Pairs (name, value) of what stands first."""
    status = summary.statuses
    numbers = [("final", str(status.get("graded", 0)))]
    for name, words in (("awaiting-manual", "waiting for a person"), ("ungradable", "ungradable")):
        if name in status:
            numbers.append((words, str(status[name])))
    if summary.middle:
        mean, middle = summary.middle
        low, high = points(summary.totals[0]), points(summary.totals[-1])
        numbers.append(("mean", f"{mean:.1f} of {points(summary.marks.points)}"))
        numbers += [("median", points(middle)), ("range", f"{low} to {high}")]
    return numbers


def _failure(failure, names):
    student, reason = failure.example
    return {
        "count": len(failure.students),
        "exercise": failure.exercise,
        "items": ", ".join(item for item, _ in failure.items),
        "reason": reason if names else without_name(reason, student),
        "names": _named(failure.students, names),
    }


def _marks(marks):
    rows = []
    for each in [*marks.unfinished, *(s for s in marks.students if s.status == "graded")]:
        awarded = {exercise.exercise: exercise.awarded for exercise in each.exercises}
        rows.append({
            "student": each.student,
            "points": [points(awarded.get(exercise)) or "–" for exercise in marks.exercises],
            "total": points(each.total) or "–",
            "status": each.status,
        })  # fmt: skip
    return rows


def _named(students, names):
    return ", ".join(students) if names else ""


def _under(words):
    return [f"        {words}"] if words else []


def _bars(rows):
    most = max(count for _, count in rows) or 1
    width = max(len(name) for name, _ in rows)
    return [
        f"  {name:>{width}}  {'█' * round(BAR * count / most)} {count}".rstrip()
        for name, count in rows
    ]


def _time(summary):
    """How long grading took, in a sentence; '' where no time is known."""
    if not summary.seconds:
        return ""
    return (
        f"Grading took {style.duration(median(summary.seconds))} for the submission in the middle, "
        f"{style.duration(summary.seconds[-1])} for the longest and "
        f"{style.duration(sum(summary.seconds))} for all "
        f"{len(summary.seconds)}, one after the other."
    )
