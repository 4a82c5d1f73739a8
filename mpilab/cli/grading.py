"""The commands `mpilab grade`, `marks`, `regrade`, `merge`, `report` and `rubric`."""

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mpilab.cli.common import (
    Commands,
    add_graded,
    add_jobs,
    add_json,
    add_lab,
    add_no_progress,
    add_out,
    add_seed,
    add_unsafe,
    mpilab,
    print_json,
)
from mpilab.errors import InputError
from mpilab.util.files import atomic_write
from mpilab.util.text import composed, plain
from mpilab.util.units import positive

MARKS_DESCRIPTION = """\
Manual decisions about marks are kept in the gradebook beside the verdicts, with time, login and
reason; nothing is overwritten. Each of these commands updates grades.csv and the feedback pages.
See docs/marking.md.
"""
REGRADE_DESCRIPTION = """\
Judge one exercise again for the whole class after its part of the rubric has changed; verdicts on
the other exercises and manual decisions stay. Refused if the rubric of another exercise has changed
as well. Lists students who have handed in another file since then, for 'mpilab grade'; the exit
status is then 1.
"""
MERGE_DESCRIPTION = """\
Merge the gradebooks that 'mpilab grade --share K/N' has written to separate folders into one, with
one CSV and one feedback folder. The history is kept; merging twice changes nothing. Gradebooks of
different labs or rubrics are refused. With --submissions, students without a verdict (because a
share's job failed) are listed as ungradable, and the exit status is 1.
"""
REPORT_DESCRIPTION = """\
Report on a graded class: what could not be judged, the distribution of marks, how many students
lost each item, and the most common failures, with an example each. Prints text, and writes one HTML
page with figures that needs no network. Omits students' names unless --names is given, so that you
can show it to the class.
"""
RUBRIC_DESCRIPTION = """\
show LAB: list exercises and items, with their points and test cases.
test LAB: judge the reference answers, blank answers and all seeded bugs of a lab like students'
answers, each twice: references must get every point, blanks none, each bug must lose exactly the
items that grading/LAB/bugs.toml names, and both runs must agree. Items that are graded manually are
skipped. The exit status is 1 on any deviation, or if something could not be proved without SimGrid.
mutate LAB [EXERCISE ...]: judge mutants of the references of C exercises, answers with one small
mistake each, by simulation. The rubric should detect all of them except those that behave like the
reference, which are listed in grading/LAB/equivalent.toml. Prints a table, the survivors with their
changes, and the score in percent. The exit status is 1 if that of an exercise is below --at-least.
variants LAB: judge honest variants of the reference answers to C exercises, which are written in
other ways and must also get every point. The exit status is 1 if one does not.
See docs/rubrics.md.
"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_grade(commands)
    _add_marks(commands)
    _add_regrade(commands)
    _add_merge(commands)
    _add_report(commands)
    _add_rubric(commands)


def _lab(options: argparse.Namespace) -> str:
    """The lab that the options name, or else the only one in the gradebook."""
    return options.lab or mpilab.grading.marks.only_lab(options.folder)


# `mpilab grade`: grade the submissions of a class.


def _add_grade(commands: Commands) -> None:
    parser = commands.add_parser("grade", help="grade the submissions of a class")
    parser.add_argument(
        "submissions",
        type=Path,
        help="a directory (or zip) with STUDENT/LAB.ipynb, or STUDENT.zip files; or one LAB.ipynb",
    )
    add_lab(parser, "the notebooks' lab")
    parser.add_argument(
        "--student",
        default="",
        metavar="NAME",
        help="the author of a single notebook (default: the name of its folder)",
    )
    add_out(
        parser,
        "directory for gradebook.sqlite, grades.csv and feedback/ (default: out/grades/LAB)",
        metavar="DIR",
    )
    add_jobs(parser, "notebooks and answers")
    add_unsafe(parser)
    parser.add_argument(
        "--share",
        type=_share,
        metavar="K/N",
        help="grade only the K-th of N shares of the class, to be combined by 'mpilab merge'",
    )
    parser.add_argument(
        "--summary",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="also write points and reasons to FILE.md (Markdown) or FILE.xml (JUnit), for the "
        "summary of a CI job",
    )
    _add_roster(parser)
    add_no_progress(parser)
    parser.set_defaults(call=_grade)


def _add_roster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE.csv",
        help="the class: a CSV with a column 'student'; whoever has no notebook is listed as "
        "not handed in (default: the submissions.csv of 'mpilab collect', if it is there)",
    )


def _share(text: str) -> tuple[int, int]:
    """'2/3' -> (2, 3)."""
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a share; write K/N, e.g. 1/3, 2/3 or 3/3"
        )
    return int(part), int(parts)


def _grade(options: argparse.Namespace) -> None:
    if options.unsafe_no_sandbox:
        print(
            "WARNING: no sandbox. Submissions run with your own rights and can read and change "
            "your files; the gradebook says so.",
            file=sys.stderr,
        )
    lab = options.lab or mpilab.grading.submission.only_lab(options.submissions)
    for file in options.summary:  # before hours of grading
        mpilab.course.export.summary([], "", file.suffix)
    report = mpilab.grading.grade.grade(
        options.submissions,
        lab,
        options.out or Path("out", "grades", lab),
        jobs=options.jobs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
        share=options.share,
        student=options.student,
        roster=options.roster,
    )
    for file in options.summary:
        title = report.assignment.rubric.title
        atomic_write(file, mpilab.course.export.summary(report.verdicts, title, file.suffix))
    print(report.table)
    count = len(report.graded)
    print(
        f"\n{count} of {len(report.verdicts)} submissions graded in {report.seconds:.0f} s"
        f"{'' if count else ' (nothing has changed)'}; sandbox: {report.sandbox}"
    )
    print(f"marks:     {report.out / 'grades.csv'}")
    print(f"gradebook: {report.out / 'gradebook.sqlite'}")
    print(f"feedback:  {report.out / 'feedback'}/STUDENT.html")
    for note in report.notes:
        print(note, file=sys.stderr)


# `mpilab regrade`: grade one exercise again for a whole class.


def _add_regrade(commands: Commands) -> None:
    parser = commands.add_parser(
        "regrade",
        help="judge one exercise again for a whole class",
        description=REGRADE_DESCRIPTION,
    )
    add_graded(parser)
    parser.add_argument("submissions", type=Path, help="the submissions that were graded")
    parser.add_argument(
        "--exercise", required=True, metavar="E", help="id of the exercise in the rubric"
    )
    parser.add_argument(
        "--again", action="store_true", help="judge it again even if the rubric has not changed"
    )
    add_jobs(parser)
    add_unsafe(parser)
    add_no_progress(parser)
    parser.set_defaults(call=_regrade)


def _regrade(options: argparse.Namespace) -> int:
    """Regrade, print the table and the changes; 1 if some students were not regraded."""
    points = mpilab.grading.marks.points
    done = mpilab.grading.regrade.regrade(
        options.folder,
        options.submissions,
        _lab(options),
        options.exercise,
        again=options.again,
        jobs=options.jobs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
    )
    print(done.table)
    print(f"\n{options.exercise} judged again for {len(done.changes)} of {len(done.verdicts)}")
    for student, (before, after) in done.changes.items():
        if before != after:
            print(f"  {student}: {points(before) or '-'} -> {points(after) or '-'}")
    for note in done.notes:
        print(note, file=sys.stderr)
    for student, why in done.left.items():
        print(f"NOT JUDGED AGAIN: {student} {why}; use 'mpilab grade'", file=sys.stderr)
    return 1 if done.left else 0


# `mpilab merge`: merge the gradebooks of a class that was graded in shares.


def _add_merge(commands: Commands) -> None:
    parser = commands.add_parser(
        "merge",
        help="merge the gradebooks of a class graded in shares",
        description=MERGE_DESCRIPTION,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder for the merged gradebook")
    parser.add_argument(
        "folders",
        type=Path,
        nargs="+",
        metavar="DIR",
        help="output folders of 'mpilab grade --share K/N --out DIR'",
    )
    parser.add_argument(
        "--submissions",
        type=Path,
        metavar="DIR",
        help="the submissions of the whole class, as for 'mpilab grade'",
    )
    _add_roster(parser)
    add_lab(parser, "the gradebooks' lab")
    parser.set_defaults(call=_merge)


def _merge(options: argparse.Namespace) -> int:
    """Merge, print the table and the missing students; 1 if there are any."""
    done = mpilab.grading.regrade.merge(
        options.out,
        options.folders,
        submissions=options.submissions,
        lab=options.lab,
        roster=options.roster,
    )
    print(done.table)
    print(
        f"\n{len(done.verdicts)} submissions of {done.lab} merged from {len(options.folders)} "
        f"gradebooks; {done.added} new runs"
    )
    print(f"marks:     {done.out / 'grades.csv'}")
    print(f"gradebook: {done.out / 'gradebook.sqlite'}")
    print(f"feedback:  {done.out / 'feedback'}/STUDENT.html")
    for note in done.notes:
        print(note, file=sys.stderr)
    if done.missing:
        print(f"NOT GRADED: {', '.join(done.missing)}", file=sys.stderr)
    return 1 if done.missing else 0


# `mpilab marks`: manual points, overrides and lateness, and the history of a mark.


def _add_marks(commands: Commands) -> None:
    parser = commands.add_parser(
        "marks",
        help="grade free text, override points, deduct for lateness, show history",
        description=MARKS_DESCRIPTION,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    add_json(_verb(verbs, "show", _show, "print the current marks, and write grades.csv"))
    history = _verb(verbs, "history", _history, "show how a student's mark came about")
    history.add_argument("student", type=composed, metavar="STUDENT")

    export = _verb(verbs, "export", _export, "write the items that await manual grading as a CSV")
    export.add_argument("file", type=Path, metavar="FILE.csv")
    export.add_argument(
        "--all", action="store_true", help="also export items that already have points"
    )
    read = _verb(verbs, "import", _import, "import the CSV with points: all of it, or nothing")
    read.add_argument("file", type=Path, metavar="FILE.csv")
    page = _verb(verbs, "page", _page, "grade free text in a browser, on this machine only")
    page.add_argument(
        "--port", type=int, default=0, help="port to listen on (default: any free port)"
    )

    override = _verb(verbs, "override", _override, "set an item, an exercise or the total manually")
    _on(override)
    points = override.add_mutually_exclusive_group(required=True)
    points.add_argument("--points", type=float, metavar="X")
    points.add_argument("--remove", action="store_true", help="withdraw an override")
    override.add_argument("--reason", required=True, help="the reason, which the student sees")
    confirm = _verb(verbs, "confirm", _confirm, "apply a stale override to the changed answer")
    _on(confirm)

    absent = _verb(verbs, "absent", _absent, "list the students who handed in nothing")
    what = absent.add_mutually_exclusive_group()
    what.add_argument("--zero", action="store_true", help="give each of them 0 points")
    what.add_argument("--remove", action="store_true", help="withdraw these 0 points")

    late = _verb(verbs, "late", _late, "deduct points for late submissions")
    late.add_argument("--due", metavar="TIME", help="deadline, e.g. 2026-11-20T23:59 (local time)")
    late.add_argument(
        "--per-day", metavar="SHARE", help="deduction for each day or part of a day, e.g. 10%%"
    )
    late.add_argument(
        "--most", metavar="SHARE", default="100%", help="maximum deduction (default: 100%%)"
    )
    late.add_argument(
        "--grace", metavar="TIME", default="0", help="period without deduction, e.g. 15m"
    )
    late.add_argument(
        "--extension",
        type=composed,
        metavar="STUDENT=TIME",
        action="append",
        default=[],
        help="more time for one student, e.g. anna=3d; valid until you give another",
    )
    times = late.add_mutually_exclusive_group()
    times.add_argument(
        "--times",
        type=Path,
        metavar="FILE.csv",
        help="submission times, with columns student and time (default: DIR/submissions.csv, if "
        "they were collected by 'mpilab collect')",
    )
    times.add_argument(
        "--submissions", type=Path, metavar="DIR", help="use the times of these files"
    )
    late.add_argument("--remove", action="store_true", help="withdraw all lateness of the lab")


def _verb(
    verbs: Any, name: str, call: Callable[[argparse.Namespace], int | None], words: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    add_graded(parser)
    parser.set_defaults(call=call)
    return parser


def _on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--student", type=composed, required=True, metavar="S")
    parser.add_argument("--exercise", default="", metavar="E", help="default: the total")
    parser.add_argument("--item", default="", metavar="I", help="default: the whole exercise")


def _show(options: argparse.Namespace) -> None:
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        verdicts, notes = marks.refresh(book, lab, options.folder)
    if options.json:
        print_json([_mark(each) for each in verdicts])
    else:
        print(marks.mark_table(verdicts, marks.points_of(verdicts)))
    _tell(notes)


def _mark(student: Any) -> dict[str, Any]:
    """The marks of a student that count, for JSON."""
    return {
        "student": student.student,
        "lab": student.lab,
        "status": student.status,
        "total": student.total,
        "points": student.points,
        "exercises": {
            each.exercise: {
                "awarded": each.awarded,
                "points": each.points,
                "items": {
                    item.item: {
                        "title": item.title or item.item,
                        "awarded": item.awarded,
                        "points": item.points,
                        "outcome": item.outcome,
                        "reason": item.reason,
                    }
                    for item in each.items
                },
            }
            for each in student.exercises
        },
        "notes": student.notes,
    }


def _history(options: argparse.Namespace) -> None:
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        print(marks.explain(book, lab, options.student))


def _export(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        count = manual.export(book, lab, options.file, everything=options.all)
    print(
        f"{count} answers written to {options.file}; fill in points and comment, then: "
        f"mpilab marks import {options.folder} --lab {lab} {options.file}"
    )


def _import(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        decisions = manual.read(book, lab, options.file)
        book.decide(decisions)
        verdicts, notes = marks.refresh(book, lab, options.folder)
    print(f"{len(decisions)} marks imported from {options.file}")
    _tell_waiting(verdicts)
    _tell(notes)


def _page(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        with manual.MarkingServer(book, lab, options.port) as server:
            print(f"Open {server.url}\nMarks are saved immediately. End with Ctrl-C.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        verdicts, notes = marks.refresh(book, lab, options.folder)
    count = len(server.marked)
    print(f"\n{count} mark{'s' * (count != 1)} saved")
    _tell_waiting(verdicts)
    _tell(notes)


def _override(options: argparse.Namespace) -> None:
    points = None if options.remove else options.points
    where = (options.exercise, options.item)
    _decide(
        options,
        lambda run, _: mpilab.grading.decisions.override(run, points, options.reason, *where),
    )


def _confirm(options: argparse.Namespace) -> None:
    def again(run: Any, standing: Mapping[tuple, Any]) -> Any:
        where = (options.exercise, options.item)
        found = standing.get((options.student, mpilab.grading.decisions.OVERRIDE, *where))
        if found is None or found.withdrawn:
            raise InputError(
                f"{options.student}, {'/'.join(filter(None, where)) or 'total'}: "
                "there is no override to confirm"
            )
        return mpilab.grading.decisions.override(run, found.points, found.reason, *where)

    _decide(options, again)


def _decide(options: argparse.Namespace, make: Callable[[Any, Mapping[tuple, Any]], Any]) -> None:
    """Add the decision that `make(run, current decisions)` returns, and print the new total."""
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        run = mpilab.grading.gradebook.run_of(book, lab, options.student)
        book.decide([make(run, mpilab.grading.decisions.newest(book.decisions(lab)))])
        verdicts, notes = marks.refresh(book, lab, options.folder)
    points = mpilab.grading.marks.points
    one = next(each for each in verdicts if each.student == options.student)
    total = points(one.total) or "no total yet"
    print(f"{one.student}: {total} of {points(one.points)}, {one.status}")
    _tell([*one.notes, *notes])


def _absent(options: argparse.Namespace) -> None:
    decisions = mpilab.grading.decisions
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        found = [each for each in mpilab.grading.gradebook.effective(book, lab) if each.is_absent]
        if options.zero or options.remove:
            points = None if options.remove else 0.0
            book.decide(
                decisions.override(
                    mpilab.grading.gradebook.run_of(book, lab, each.student),
                    points,
                    mpilab.judging.verdict.NOT_HANDED_IN,
                )
                for each in found
                if (each.decision is None) == options.zero
            )
        verdicts, notes = marks.refresh(book, lab, options.folder)
    for each in verdicts:
        if each.is_absent:
            total = marks.points(each.total)
            print(f"{plain(each.student)}: {f'{total} points' if total else 'no mark'}")
    print(f"{len(found)} of {len(verdicts)} students handed in nothing")
    _tell(notes)


def _late(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    marks, lab = mpilab.grading.marks, _lab(options)
    with marks.opened(options.folder, lab) as book:
        if options.remove:
            decisions = manual.withdraw(book, lab, "withdrawn for the whole lab")
        else:
            decisions = manual.decide(book, lab, *_times_and_rule(options, lab))
        book.decide(decisions)
        verdicts, notes = marks.refresh(book, lab, options.folder)
    late = [each for each in verdicts if each.late and each.late.details["days"]]
    unknown = [each.student for each in verdicts if each.late is None and not each.is_absent]
    for each in late:
        print(f"{each.student}: {each.late.reason}")
    print(f"{len(late)} of {len(verdicts)} late; {len(decisions)} new decisions")
    if options.times:
        notes = [*notes, *manual.contradictions(verdicts, options.times, lab)]
    if unknown and not options.remove:
        notes = [*notes, f"no submission time is known for: {', '.join(unknown)}"]
    _tell(notes)


def _times_and_rule(options: argparse.Namespace, lab: str) -> tuple[Any, Any]:
    manual = mpilab.course.manual
    collected = options.folder / mpilab.grading.submission.TABLE
    if not (options.times or options.submissions) and collected.is_file():
        options.times = collected
    if not (options.due and options.per_day and (options.times or options.submissions)):
        raise InputError(
            "marks late: give --due, --per-day, and --times FILE.csv or "
            "--submissions DIR; or --remove"
        )
    extensions = {}
    for text in options.extension:
        student, equals, length = text.rpartition("=")
        if not equals:
            raise InputError(f"--extension {text!r}: write STUDENT=TIME, e.g. anna=3d")
        extensions[student] = manual.length(length, f"--extension {student}:")
    rule = manual.Rule(
        manual.moment(options.due, "--due"),
        manual.share(options.per_day, "--per-day"),
        manual.share(options.most, "--most"),
        manual.length(options.grace, "--grace"),
        extensions,
    )
    if options.submissions:
        table = options.submissions / mpilab.grading.submission.TABLE
        if not table.is_file():
            return manual.times_of_files(options.submissions, lab), rule
        # The times of collected files are those of the collection, if it knew no others.
        options.times = table
    times = manual.times_of_csv(options.times, lab)
    if not times:
        raise InputError(
            f"{options.times}: no submission of {lab} has a time; collect with --roster, the "
            "platform's list with the times, or fill in the column 'time'"
        )
    return times, rule


def _tell_waiting(verdicts: Sequence[Any]) -> None:
    waiting = [each.student for each in verdicts if any(e.waiting for e in each.exercises)]
    print(f"{len(waiting)} of {len(verdicts)} submissions still await manual grading")


def _tell(notes: Iterable[str]) -> None:
    for note in notes:
        print(note, file=sys.stderr)


# `mpilab report`: report on a graded class.


def _add_report(commands: Commands) -> None:
    parser = commands.add_parser(
        "report",
        help="report on a class: distributions, common failures",
        description=REPORT_DESCRIPTION,
    )
    add_graded(parser)
    add_out(parser, "the page (default: DIR/report.html)", metavar="FILE.html", former="--output")
    add_json(parser)
    parser.add_argument("--names", action="store_true", help="name the students, too")
    parser.set_defaults(call=_report)


def _report(options: argparse.Namespace) -> None:
    """Print the report and write the page."""
    report, marks = mpilab.course.report, mpilab.course.marks
    found = marks.summary(marks.class_marks(options.folder, _lab(options)))
    page = atomic_write(
        options.out or options.folder / "report.html", report.html(found, options.names)
    )
    if options.json:
        print_json(report.as_json(found, options.names))
        return
    print(report.text(found, options.names))
    print(f"\npage: {page}")


# `mpilab rubric`: show a rubric, or prove that it deducts the right points.


def _add_rubric(commands: Commands) -> None:
    parser = commands.add_parser(
        "rubric",
        help="show a rubric, or test it with seeded bugs",
        description=RUBRIC_DESCRIPTION,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="list exercises, items, points and cases")
    show.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    show.set_defaults(call=_show_rubric)
    test = verbs.add_parser("test", help="judge references, blanks and seeded bugs")
    test.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    test.add_argument("--exercise", metavar="E", help="only the answers to this exercise")
    test.add_argument(
        "--runs",
        type=positive,
        default=2,
        metavar="N",
        help="how often to judge each answer; all runs must agree (default: 2)",
    )
    test.add_argument(
        "--quick",
        action="store_true",
        help="judge a seeded bug in C by simulation alone, unless that finds that it loses "
        "anything else than it must: half of the time",
    )
    test.add_argument(
        "--sample",
        type=positive,
        metavar="N",
        help="only N seeded bugs of each exercise, first those that lose other items (default: "
        "all)",
    )
    test.set_defaults(call=_test)
    mutate = verbs.add_parser(
        "mutate", help="judge mutants: references with one small mistake each"
    )
    mutate.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    mutate.add_argument(
        "exercises", nargs="*", metavar="EXERCISE", help="only these (default: all in C)"
    )
    mutate.add_argument(
        "--sample",
        type=positive,
        metavar="N",
        help="how many mutants of each reference are judged (default: all, which takes hours)",
    )
    add_seed(mutate, "the sample")
    mutate.add_argument(
        "--listed",
        action="store_true",
        help="judge the mutants that are listed as equivalent, instead of the others",
    )
    mutate.add_argument(
        "--at-least",
        type=float,
        default=95.0,
        metavar="PERCENT",
        help="the score that is asked for, of each exercise (default: 95)",
    )
    mutate.add_argument(
        "--again", action="store_true", help="judge again what has been judged before"
    )
    mutate.add_argument(
        "--quick",
        action="store_true",
        help="for the score alone: a mutant that loses an item by a few cases is not judged with "
        "the others, so too few items are counted",
    )
    add_json(mutate)
    add_jobs(mutate, "mutants")
    add_unsafe(mutate)
    add_no_progress(mutate)
    mutate.set_defaults(call=_mutate)
    other = verbs.add_parser("variants", help="judge honest variants of the reference answers")
    other.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    other.add_argument("--exercise", metavar="E", help="only the answers to this exercise")
    other.add_argument(
        "--sample", type=positive, metavar="N", help="only N of each function (default: all)"
    )
    other.add_argument(
        "--quick",
        action="store_true",
        help="with a few cases of each item, none of them timed: much faster",
    )
    other.set_defaults(call=_variants)
    for parser in (test, other):
        add_jobs(parser)
        add_unsafe(parser)
        add_no_progress(parser)


def _show_rubric(options: argparse.Namespace) -> None:
    print(
        mpilab.grading.proving.rubric_table(
            mpilab.grading.grade.Assignment.load(options.lab).rubric
        )
    )


def _variants(options: argparse.Namespace) -> int:
    """Print the table, lost points and counts; 1 if an honest variant lost points."""
    proving = mpilab.grading.proving
    proof = proving.prove(
        options.lab,
        exercise=options.exercise,
        jobs=options.jobs,
        runs=1,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
        variants=True,
        sample=options.sample,
        quick=options.quick,
    )
    print(proving.variant_table(proof))
    for said in proof.deviations:
        print(f"NOT AS IT SHOULD BE: {said}")
    print(f"\n{proving.counts(proof)}")
    return 1 if proof.deviations else 0


def _test(options: argparse.Namespace) -> int:
    """Print the table, deviations, unproved items and counts; 1 unless everything is proved."""
    proof = mpilab.grading.proving.prove(
        options.lab,
        exercise=options.exercise,
        jobs=options.jobs,
        runs=options.runs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
        sample=options.sample,
        quick=options.quick,
    )
    print(mpilab.grading.proving.proof_table(proof))
    for said in proof.deviations:
        print(f"DEVIATION: {said}")
    for said in proof.unproved:
        print(f"NOT PROVED: {said}")
    if proof.unproved or proof.unconfirmed:
        print(
            "\nSimGrid is not installed on this machine: properties that need a simulation are "
            f"not proved, and {proof.unconfirmed} answers were judged on Open MPI alone. Install "
            f"it ({mpilab.kernels.simgrid.how_to_install()}), then run this again."
        )
    print(f"\n{mpilab.grading.proving.counts(proof)}")
    return 1 if proof.deviations or proof.unproved or proof.unconfirmed else 0


def _mutate(options: argparse.Namespace) -> int:
    """Print table, survivors and score; 1 if too few mutants were killed.

    Of those listed as equivalent, none may be killed.
    """
    mutation = mpilab.judging.mutation
    scores = mpilab.grading.proving.mutate(
        options.lab,
        options.exercises,
        sample=options.sample,
        seed=options.seed,
        listed=options.listed,
        again=options.again,
        quick=options.quick,
        jobs=options.jobs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
    )
    if options.json:
        print_json(mutation.as_json(options.lab, scores))
    elif options.listed:
        print(mutation.score_table(scores))
    else:
        print(
            f"{mutation.score_table(scores)}\n\n{mutation.kills_table(scores)}\n\n"
            f"{mutation.survivors(scores)}"
        )
    if options.listed:
        wrong = [each for score in scores for each in score.those(mutation.KILLED)]
        for each in wrong:
            lost, reason = next(iter(each.lost.items()))
            print(
                f"NOT EQUIVALENT: {each.mutant.exercise}, line {each.mutant.line}, "
                f"{each.mutant.operator}: {each.mutant.change}: loses {lost}: {reason}",
                file=sys.stderr,
            )
        return 1 if wrong else 0
    if not options.json:
        print(f"{options.lab}: score {mutation.percent(scores):.1f} %")
    return 1 if any(score.percent < options.at_least for score in scores) else 0
