"""Instructors' pages: self-contained HTML, and the report on a class, as a page or as text."""

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import jinja2
import plotly.graph_objects as go
from markupsafe import Markup

from mpilab.course.marks import (
    BANDS,
    FULL,
    HALF,
    LESS,
    NONE,
    OPEN,
    ClassMarks,
    Failure,
    Lost,
    Summary,
    without_name,
)
from mpilab.grading.feedback import marked_lines
from mpilab.grading.marks import UNCONFIRMED, UNISOLATED, points
from mpilab.grading.referee import LOG
from mpilab.judging.verdict import ABSENT
from mpilab.plots import style
from mpilab.util.text import plain

PACKAGE = Path(__file__).resolve().parents[1]
# In C and in Python; a line of the preprocessor is none.
_COMMENT = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|#(?!\s*(?:include|define|undef|if|ifdef|ifndef|else|elif|endif|pragma)\b)"
    r"[^\n]*",
    re.DOTALL,
)
_SCRIPT = re.compile(r"<script[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)

ITEMS = 25  # bars that fit on a page
# From bad to good, and gray for undecided. The bars have patterns as well.
_COLORS = {NONE: "#d4553e", LESS: "#b8740c", HALF: "#3b7dd8", FULL: "#2f9150", OPEN: "#7a7e85"}
_PATTERNS = {NONE: "x", LESS: "/", HALF: ".", FULL: "", OPEN: "-"}

ROWS = 60  # kinds of failure listed on the page
LINES = 12  # and in the terminal
REASONS = 3  # kinds of reason listed for each item
MISTAKES = 6  # and kinds of mistake for each exercise, each with an example
NEAR = 3  # lines of an answer before and after the one that is to blame
HOW_TO_CONFIRM = "install SimGrid ('mpilab doctor' says how) and run 'mpilab grade' again"
BAR = 40  # characters of the longest bar


# Pages quote students' texts, so all values are escaped, and a page's Content-Security-Policy
# allows only scripts whose hashes it names: those of our figures.


def render(template: str, figures: Sequence[str] = (), **values: Any) -> str:
    """Render a template (a path within mpilab, e.g. 'course/report.html.j2'); the page as text.

    `figures` are trusted HTML fragments whose scripts may run. The template gets them as `figures`,
    the policy as `policy` and the style sheet as `style`; `values` are escaped.
    """
    return (
        _environment()
        .get_template(template)
        .render(
            figures=[Markup(figure) for figure in figures],
            policy=_policy("".join(figures)),
            **values,
        )
    )


def _policy(html: str) -> str:
    """A Content-Security-Policy under which only the scripts in `html` run."""
    hashes = {
        "'sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() + "'"
        for script in _SCRIPT.findall(html)
    }
    scripts = " ".join(sorted(hashes)) or "'none'"
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


@cache
def _environment() -> jinja2.Environment:
    # select_autoescape decides by file name and would not escape in a '.j2'.
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(PACKAGE),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["plain"] = plain
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    environment.globals["style"] = Markup(style)
    return environment


# Figures: totals, exercises, and lost items.


def totals(summary: Summary) -> go.Figure:
    """Figure: a histogram of the totals, or of the subtotals before manual grading."""
    what, number = "Totals", style.plural(len(summary.shown), "final mark")
    title = "Totals of the students with a final mark"
    if summary.is_early:
        what, number = "Subtotals", style.plural(len(summary.shown), "student")
        title = f"Subtotals before manual grading, of {points(summary.most)} points"
    labels = [f"{points(low)} to {points(high)}" for low, high, _ in summary.bins]
    counts = [count for _, _, count in summary.bins]
    figure = go.Figure(
        go.Bar(
            x=labels,
            y=counts,
            marker_color="#3b7dd8",
            text=[count or "" for count in counts],
            textposition="outside",
            cliponaxis=False,
            hovertemplate="%{x} points: %{y}<extra></extra>",
        )
    )
    figure.update_layout(title=title, height=360, bargap=0.1)
    figure.update_xaxes(title="points", automargin=True)
    figure.update_yaxes(title="students", rangemode="tozero", **_whole(max(counts)))
    lines = [f"{what}: {number}."]
    if summary.middle:
        mean, median = summary.middle
        lines.append(
            f"From {points(summary.shown[0])} to {points(summary.shown[-1])} points of "
            f"{points(summary.most)}; mean {mean:.1f}, median {points(median)}."
        )
    lines += [f"{label} points: {count}" for label, count in zip(labels, counts, strict=True)]
    return style.finish(figure, "\n".join(lines))


def exercises(summary: Summary) -> go.Figure:
    """Figure: how many students have all, some, or none of the points of each exercise."""
    names = list(summary.bands)
    figure = go.Figure(
        [
            go.Bar(
                orientation="h",
                y=names,
                x=[summary.bands[name][band] for name in names],
                name=band,
                marker=dict(
                    color=_COLORS[band],
                    pattern=dict(
                        shape=_PATTERNS[band],
                        fgcolor="rgba(255, 255, 255, 0.45)",
                        fillmode="overlay",
                        size=8,
                        solidity=0.2,
                    ),
                ),
                text=[summary.bands[name][band] or "" for name in names],
                textposition="inside",
                insidetextfont=dict(color="#ffffff"),
                textangle=0,
                hovertemplate="%{y}: %{x} with " + band + "<extra></extra>",
            )
            for band in BANDS
        ]
    )
    figure.update_layout(
        title="Points of each exercise",
        barmode="stack",
        height=170 + 42 * len(names),
        legend=dict(orientation="h", y=1, yanchor="bottom", x=0, traceorder="normal"),
        margin=dict(t=90, l=150),
    )
    figure.update_xaxes(title="students", **_whole(len(summary.marks.students)))
    figure.update_yaxes(autorange="reversed")
    lines = ["Each exercise: students by their share of its points."]
    for name in names:
        told = ", ".join(f"{count} {band}" for band, count in summary.bands[name].items() if count)
        lines.append(f"{name}: {told}")
    return style.finish(figure, "\n".join(lines))


def lost(summary: Summary) -> go.Figure | None:
    """Figure: the items on which most students lost points; None if no points were lost."""
    worst = summary.lost[:ITEMS]
    if not worst:
        return None
    names = [f"{each.exercise}: {each.item}" for each in worst]
    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=names,
            x=[each.students for each in worst],
            marker_color="#d4553e",
            text=[f"{each.students} of {each.judged}" for each in worst],
            textposition="outside",
            cliponaxis=False,
            customdata=[each.title for each in worst],
            hovertemplate="%{customdata}: lost by %{x}<extra></extra>",
        )
    )
    figure.update_layout(
        title=("Items by number of students who lost them"),
        height=140 + 26 * len(names),
        margin=dict(l=250, r=60),
    )
    figure.update_xaxes(title="students", rangemode="tozero", **_whole(worst[0].students))
    figure.update_yaxes(autorange="reversed")
    lines = [f"Items by how many students lost points on them: {len(summary.lost)} were lost."]
    lines += [f"{each.exercise}, {each.title}: {each.students} of {each.judged}" for each in worst]
    return style.finish(figure, "\n".join(lines))


def _whole(most: int) -> dict[str, Any]:
    """Axis settings for ticks at whole numbers of students only."""
    return {"dtick": 1} if most <= 10 else {"tickformat": "d"}


# The report as HTML and as text.


def html(summary: Summary, names: bool = False) -> str:
    """The report as an HTML page; it names students only if `names` is true."""
    marks = summary.marks
    figures = [totals(summary)] if summary.shown else []
    figures += [exercises(summary), lost(summary)]
    return render(
        "course/report.html.j2",
        figures=[
            # The first figure includes plotly.js for all.
            style.fragment(figure, plotlyjs=number == 0)
            for number, figure in enumerate(filter(None, figures))
        ],
        title=marks.title,
        how_to_confirm=HOW_TO_CONFIRM,
        students=style.plural(len(marks.students), "student"),
        names=names,
        numbers=_numbers(summary),
        ungradable=[
            {"count": len(who), "reason": reason, "names": _named(who, names)}
            for reason, who in summary.ungradable
        ],
        waiting=list(summary.waiting.items()),
        pending=_pending(summary),
        unconfirmed=list(summary.unconfirmed.items()),
        unisolated=summary.unisolated,
        failures=[_failure(each, names) for each in summary.failures[:ROWS]],
        more=max(0, len(summary.failures) - ROWS),
        by_exercise=_by_exercise(summary),
        marks=_marks(marks) if names else [],
        exercises=list(marks.exercises),
        notes=_notes(marks) if names else [],
        time=_time(summary),
    )


def text(summary: Summary, names: bool = False) -> str:
    """The report as text; it names students only if `names` is true."""
    lines = [f"{summary.marks.title}: {style.plural(len(summary.marks.students), 'student')}"]
    lines += [f"  {name}: {value}" for name, value in _numbers(summary)]
    if summary.ungradable:
        lines += ["", "could not be judged (review first):"]
        for reason, who in summary.ungradable:
            lines += [f"  {len(who):4}  {reason}", *_under(_named(who, names))]
    if summary.waiting:
        lines += ["", "awaiting manual grading:"]
        lines += [f"  {count:4}  {exercise}" for exercise, count in summary.waiting.items()]
        lines.append(f"  {_pending(summary)}")
    if summary.unconfirmed:
        lines += ["", f"{UNCONFIRMED} ({HOW_TO_CONFIRM}):"]
        lines += [f"  {count:4}  {exercise}" for exercise, count in summary.unconfirmed.items()]
    if summary.unisolated:
        told = f"{summary.unisolated} of {len(summary.marks.students)}"
        lines += ["", f"{UNISOLATED} (install the jail to isolate them): {told}"]
    if summary.shown:
        lines += ["", f"subtotals, of {points(summary.most)}:" if summary.is_early else "totals:"]
        rows = [(f"{points(low)} to {points(high)}", count) for low, high, count in summary.bins]
        lines += _bars(rows)
    lines += ["", "points of each exercise:"]
    width = max(map(len, summary.bands))
    for exercise, bands in summary.bands.items():
        told = ", ".join(f"{count} {band}" for band, count in bands.items() if count)
        lines.append(f"  {exercise:{width}}  {told}")
    if summary.lost:
        lines += ["", "items by number of students who lost them:"]
        lines += _bars(
            [(f"{each.exercise}: {each.item}", each.students) for each in summary.lost[:LINES]]
        )
        lines += ["", "why they were lost:"]
        for item in summary.lost[:LINES]:
            lines.append(f"  {item.exercise}: {item.title}")
            lines += [f"  {count:4}  {reason}" for count, reason in _why(item)]
    if summary.failures:
        lines += ["", "common failures:"]
        for each in summary.failures[:LINES]:
            shown = _failure(each, names)
            lines += [
                f"  {shown['count']:4}  {shown['exercise']} ({shown['items']}): {shown['reason']}",
                *_under(shown["names"]),
            ]
        if len(summary.failures) > LINES:
            lines.append(f"        and {len(summary.failures) - LINES} rarer ones")
    if names:
        lines += _notes(summary.marks)
    if time := _time(summary):
        lines += ["", time]
    return "\n".join(plain(line) for line in lines)


def as_json(summary: Summary, names: bool = False) -> dict[str, Any]:
    """The report as a dict for JSON; it names students only if `names` is true."""
    marks = summary.marks
    found = {
        "lab": marks.lab,
        "students": len(marks.students),
        "points": marks.points,
        "statuses": summary.statuses,
        "totals": summary.totals,
        "exercises": summary.bands,
        "lost": summary.lost,
        "ungradable": [
            {"reason": reason, "students": list(who) if names else len(who)}
            for reason, who in summary.ungradable
        ],
        "waiting": summary.waiting,
        "pending": summary.pending,
        "subtotals": summary.subtotals,
        "unconfirmed": summary.unconfirmed,
        "unisolated": summary.unisolated,
        "failures": [_failure(each, names) for each in summary.failures],
        "seconds": summary.seconds,
    }
    return found | ({"marks": _marks(marks)} if names else {})


def _numbers(summary: Summary) -> list[tuple[str, str]]:
    """Pairs (name, value) for the top of the report."""
    status = summary.statuses
    numbers = [("final", str(status.get("graded", 0)))]
    for name, words in (
        ("awaiting-manual", "awaiting manual grading"),
        ("ungradable", "ungradable"),
        (ABSENT, "handed in nothing"),
    ):
        if name in status:
            numbers.append((words, str(status[name])))
    if summary.middle:
        mean, middle = summary.middle
        low, high = points(summary.shown[0]), points(summary.shown[-1])
        so_far = " of subtotals" if summary.is_early else ""
        numbers.append((f"mean{so_far}", f"{mean:.1f} of {points(summary.most)}"))
        numbers += [(f"median{so_far}", points(middle)), (f"range{so_far}", f"{low} to {high}")]
    return numbers


def _pending(summary: Summary) -> str:
    """What the totals or subtotals leave out, in sentences; '' if nothing is pending."""
    if not summary.pending:
        return ""
    left_out = f"Totals are of the {style.plural(len(summary.totals), 'final mark')} only."
    if summary.is_early:
        left_out = (
            f"Until then, subtotals of the other {points(summary.most)} are shown, of "
            f"{style.plural(len(summary.subtotals), 'student')}, before penalties."
        )
    return (
        f"{points(summary.pending)} of {points(summary.marks.points)} points await manual grading "
        f"(mpilab marks page). {left_out}"
    )


def _failure(failure: Failure, names: bool) -> dict[str, Any]:
    student, reason = failure.example
    return {
        "count": len(failure.students),
        "exercise": failure.exercise,
        "items": ", ".join(item for item, _ in failure.items),
        "reason": reason if names else without_name(reason, student),
        "names": _named(failure.students, names),
    }


def _by_exercise(summary: Summary) -> list[dict[str, Any]]:
    """For each exercise: its items with the reasons, and mistakes with an example, nameless."""
    found = []
    for name, (title, _) in summary.marks.exercises.items():
        lost = [each for each in summary.lost if each.exercise == name]
        if not lost:
            continue
        mistakes = [one for one in summary.failures if one.exercise == name][:MISTAKES]
        found.append(
            {
                "id": name,
                "title": title,
                "items": [
                    {
                        "title": each.title,
                        "lost": f"{each.students} of {each.judged}",
                        "reasons": [
                            {"count": count, "reason": reason} for count, reason in _why(each)
                        ],
                    }
                    for each in lost
                ],
                "mistakes": [
                    {**_failure(one, names=False), "excerpt": _excerpt(summary.marks, one)}
                    for one in mistakes
                ],
            }
        )
    return found


def _why(item: Lost) -> list[tuple[int, str]]:
    """(number of students, why they lost points on an item); the numbers add up to all of them."""
    rare = sum(count for count, _ in item.reasons[REASONS:])
    manually = item.students - sum(count for count, _ in item.reasons)
    rest = [(rare, "Other reasons."), (manually, "Points were taken off manually.")]
    return [*item.reasons[:REASONS], *(each for each in rest if each[0])]


def _excerpt(marks: ClassMarks, failure: Failure) -> list[dict[str, Any]]:
    """The lines of the example's answer that are to blame, without comments, which may hold names.

    Empty if the diagnosis names no line.
    """
    author = failure.example[0]
    student = next(each for each in marks.students if each.student == author)
    exercise = next(each for each in student.exercises if each.exercise == failure.exercise)
    items = {item for item, _ in failure.items}
    blamed: set[int] = set()
    for item in exercise.items:
        blamed |= marked_lines(item) if item.item in items else set()
    answer = exercise.answer or ""
    if not blamed or not 1 <= min(blamed) <= len(answer.split("\n")):
        return []
    # A comment keeps its line breaks, so that the lines keep their numbers.
    bare = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), answer).split("\n")
    first = max(1, min(blamed) - NEAR)
    last = min(len(bare), min(blamed) + NEAR)
    return [
        {
            "number": number,
            "text": without_name(bare[number - 1].rstrip(), author),
            "marked": number in blamed,
        }
        for number in range(first, last + 1)
    ]


def _marks(marks: ClassMarks) -> list[dict[str, Any]]:
    rows = []
    for each in [*marks.unfinished, *(s for s in marks.students if s.status == "graded")]:
        awarded = {exercise.exercise: exercise.awarded for exercise in each.exercises}
        rows.append(
            {
                "student": each.student,
                "points": [points(awarded.get(exercise)) or "–" for exercise in marks.exercises],
                "total": points(each.total) or "–",
                "status": each.status,
            }
        )
    return rows


def _notes(marks: ClassMarks) -> list[str]:
    """Notes for the instructor, with names: on decisions, and on logs of grader failures."""
    notes = [note for each in marks.students for note in each.notes]
    for each in marks.students:
        for exercise in each.exercises:
            logs = {item.evidence[LOG] for item in exercise.items if LOG in item.evidence}
            notes += [
                f"{each.student}, {exercise.exercise}: the grader failed, see {log}"
                for log in sorted(logs)
            ]
    return notes


def _named(students: Iterable[str], names: bool) -> str:
    return ", ".join(students) if names else ""


def _under(words: str) -> list[str]:
    return [f"        {words}"] if words else []


def _bars(rows: Sequence[tuple[str, int]]) -> list[str]:
    most = max(count for _, count in rows) or 1
    width = max(len(name) for name, _ in rows)
    return [
        f"  {name:>{width}}  {'█' * round(BAR * count / most)} {count}".rstrip()
        for name, count in rows
    ]


def _time(summary: Summary) -> str:
    """How long grading took, in a sentence; '' if no time is known."""
    if not summary.seconds:
        return ""
    return (
        f"Grading took {style.duration(median(summary.seconds))} for the median submission, "
        f"{style.duration(summary.seconds[-1])} for the longest and "
        f"{style.duration(sum(summary.seconds))} for all "
        f"{len(summary.seconds)}, one after another."
    )
