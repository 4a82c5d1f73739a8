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
    add_unsafe,
    mpilab,
    print_json,
)
from mpilab.errors import InputError
from mpilab.util.files import write_whole
from mpilab.util.units import positive

MARKS_DESCRIPTION = """\
What people decide about marks is kept in the gradebook beside the verdicts, with time, login and
reason; nothing is overwritten. Each of these commands brings grades.csv and the feedback pages up
to date. docs/marking.md tells more.
"""
REGRADE_DESCRIPTION = """\
Judge one exercise again for the whole class, after its part of the rubric has changed; verdicts on
the other exercises, and what people have decided, stay. Refused where the rubric of another
exercise has changed as well. Whoever has handed in another file since is named, for 'mpilab grade',
and the exit status is 1.
"""
MERGE_DESCRIPTION = """\
Merge gradebooks into one, with one CSV and one folder of feedback: those that 'mpilab grade --share
K/N' has made, each in a folder of its own. The history is kept; merging twice changes nothing.
Gradebooks of different labs or rubrics are refused. With --submissions, whoever has no verdict (a
share's job failed) is listed as ungradable, and the exit status is 1.
"""
REPORT_DESCRIPTION = """\
Report on a graded class: what could not be judged, how marks are distributed, which items were
lost by how many, and what goes wrong most often, with an example. As text, and as one HTML page
with figures that needs no network. Students are not named unless asked for, so that it can be shown
to the class.
"""
RUBRIC_DESCRIPTION = """\
show LAB: exercises and items, with their points and the cases that they are tried with.
test LAB: judge the reference answers, blank answers and all seeded bugs of a lab
as a student's would be, each twice: references must get every point, blanks none, each bug must
lose the items that grading/LAB/bugs.toml names and no other, and both runs must say the same. Items
that are graded manually are left out. The exit status is 1 if anything is not as it should be, or,
without SimGrid, could not be proved.
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
    return options.lab or mpilab.grading.pages.only_lab(options.folder)


# `mpilab grade`: grade the submissions of a class.


def _add_grade(commands: Commands) -> None:
    parser = commands.add_parser("grade", help="grade the submissions of a class")
    parser.add_argument(
        "submissions",
        type=Path,
        help="a directory (or zip) with STUDENT/LAB.ipynb, or STUDENT.zip files",
    )
    add_lab(parser, "that of the notebooks")
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
        help="grade only the K-th of N shares of the class, for 'mpilab merge' to put together",
    )
    add_no_progress(parser)
    parser.set_defaults(call=_grade)


def _share(text: str) -> tuple[int, int]:
    """'2/3' -> (2, 3)."""
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no share; write K/N, e.g. 1/3, 2/3 or 3/3")
    return int(part), int(parts)


def _grade(options: argparse.Namespace) -> None:
    if options.unsafe_no_sandbox:
        print(
            "WARNING: no sandbox. Submissions run with your own rights and can read and change "
            "your files; the gradebook says so.",
            file=sys.stderr,
        )
    lab = options.lab or mpilab.grading.submission.only_lab(options.submissions)
    report = mpilab.grading.grade.grade(
        options.submissions,
        lab,
        options.out or Path("out", "grades", lab),
        jobs=options.jobs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
        share=options.share,
    )
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
    parser.add_argument("submissions", type=Path, help="the class, as it was graded")
    parser.add_argument("--exercise", required=True, metavar="E", help="its id in the rubric")
    parser.add_argument(
        "--again", action="store_true", help="also where the rubric has not changed"
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
        help="folders that 'mpilab grade --share K/N --out DIR' has filled",
    )
    parser.add_argument(
        "--submissions",
        type=Path,
        metavar="DIR",
        help="the whole class, as it was given to 'mpilab grade'",
    )
    add_lab(parser, "that of the gradebooks")
    parser.set_defaults(call=_merge)


def _merge(options: argparse.Namespace) -> int:
    """Merge, print the table and the missing students; 1 if there are any."""
    done = mpilab.grading.regrade.merge(
        options.out, options.folders, submissions=options.submissions, lab=options.lab
    )
    print(done.table)
    print(
        f"\n{len(done.verdicts)} submissions of {done.lab} merged from {len(options.folders)} "
        f"gradebooks; {done.added} runs were new"
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
        help="points for free text, overrides, lateness, history",
        description=MARKS_DESCRIPTION,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    add_json(_verb(verbs, "show", _show, "print the marks as they count, and write grades.csv"))
    history = _verb(verbs, "history", _history, "where the mark of a student comes from")
    history.add_argument("student", metavar="STUDENT")

    export = _verb(verbs, "export", _export, "write the items that await manual grading as a CSV")
    export.add_argument("file", type=Path, metavar="FILE.csv")
    export.add_argument("--all", action="store_true", help="also what has points already")
    read = _verb(verbs, "import", _import, "read the CSV with points back: all of it, or nothing")
    read.add_argument("file", type=Path, metavar="FILE.csv")
    page = _verb(verbs, "page", _page, "read and mark free text in a browser, on this machine only")
    page.add_argument("--port", type=int, default=0, help="default: any that is free")

    override = _verb(verbs, "override", _override, "set an item, an exercise or the total by hand")
    _on(override)
    points = override.add_mutually_exclusive_group(required=True)
    points.add_argument("--points", type=float, metavar="X")
    points.add_argument("--remove", action="store_true", help="take an override back")
    override.add_argument("--reason", required=True, help="why; the student sees it")
    confirm = _verb(verbs, "confirm", _confirm, "let a stale override count for the changed answer")
    _on(confirm)

    late = _verb(verbs, "late", _late, "take off points for what was handed in late")
    late.add_argument("--due", metavar="TIME", help="e.g. 2026-11-20T23:59 (local time)")
    late.add_argument("--per-day", metavar="SHARE", help="for each day begun, e.g. 10%%")
    late.add_argument("--most", metavar="SHARE", default="100%", help="at most (default: 100%%)")
    late.add_argument("--grace", metavar="TIME", default="0", help="that costs nothing, e.g. 15m")
    late.add_argument(
        "--extension",
        metavar="STUDENT=TIME",
        action="append",
        default=[],
        help="more time for one student, e.g. anna=3d; counts until another one is given",
    )
    times = late.add_mutually_exclusive_group()
    times.add_argument("--times", type=Path, metavar="FILE.csv", help="columns student and time")
    times.add_argument(
        "--submissions", type=Path, metavar="DIR", help="take the times of the files in there"
    )
    late.add_argument("--remove", action="store_true", help="take all lateness of the lab back")


def _verb(
    verbs: Any, name: str, call: Callable[[argparse.Namespace], int | None], words: str
) -> argparse.ArgumentParser:
    parser = verbs.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    add_graded(parser)
    parser.set_defaults(call=call)
    return parser


def _on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--student", required=True, metavar="S")
    parser.add_argument("--exercise", default="", metavar="E", help="default: the total")
    parser.add_argument("--item", default="", metavar="I", help="default: the whole exercise")


def _show(options: argparse.Namespace) -> None:
    pages, lab = mpilab.grading.pages, _lab(options)
    with pages.opened(options.folder, lab) as book:
        verdicts, notes = pages.refresh(book, lab, options.folder)
    if options.json:
        print_json([_mark(each) for each in verdicts])
    else:
        print(mpilab.grading.marks.mark_table(verdicts, pages.points_of(verdicts)))
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
    pages, lab = mpilab.grading.pages, _lab(options)
    with pages.opened(options.folder, lab) as book:
        print(pages.explain(book, lab, options.student))


def _export(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    pages, lab = mpilab.grading.pages, _lab(options)
    with pages.opened(options.folder, lab) as book:
        count = manual.export(book, lab, options.file, everything=options.all)
    print(
        f"{count} answers written to {options.file}; fill in points and comment, then: "
        f"mpilab marks import {options.folder} --lab {lab} {options.file}"
    )


def _import(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    pages, lab = mpilab.grading.pages, _lab(options)
    with pages.opened(options.folder, lab) as book:
        decisions = manual.read(book, lab, options.file)
        book.decide(decisions)
        verdicts, notes = pages.refresh(book, lab, options.folder)
    print(f"{len(decisions)} marks taken from {options.file}")
    _tell_waiting(verdicts)
    _tell(notes)


def _page(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    pages, lab = mpilab.grading.pages, _lab(options)
    with pages.opened(options.folder, lab) as book:
        with manual.MarkingServer(book, lab, options.port) as server:
            print(f"Open {server.url}\nEvery mark is saved at once. End with Ctrl-C.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        verdicts, notes = pages.refresh(book, lab, options.folder)
    print(f"\n{server.given} marks saved")
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
    pages, lab = mpilab.grading.pages, _lab(options)
    with pages.opened(options.folder, lab) as book:
        run = mpilab.grading.gradebook.run_of(book, lab, options.student)
        book.decide([make(run, mpilab.grading.decisions.newest(book.decisions(lab)))])
        verdicts, notes = pages.refresh(book, lab, options.folder)
    points = mpilab.grading.marks.points
    one = next(each for each in verdicts if each.student == options.student)
    total = points(one.total) or "no total yet"
    print(f"{one.student}: {total} of {points(one.points)}, {one.status}")
    _tell([*one.notes, *notes])


def _late(options: argparse.Namespace) -> None:
    manual = mpilab.course.manual
    pages, lab = mpilab.grading.pages, _lab(options)
    with pages.opened(options.folder, lab) as book:
        if options.remove:
            decisions = manual.withdraw(book, lab, "taken back for the whole lab")
        else:
            decisions = manual.decide(book, lab, *_times_and_rule(options, lab))
        book.decide(decisions)
        verdicts, notes = pages.refresh(book, lab, options.folder)
    late = [each for each in verdicts if each.late and each.late.details["days"]]
    unknown = [each.student for each in verdicts if each.late is None]
    for each in late:
        print(f"{each.student}: {each.late.reason}")
    print(f"{len(late)} of {len(verdicts)} late; {len(decisions)} decisions are new")
    if unknown and not options.remove:
        notes = [*notes, f"nothing is known of when these handed in: {', '.join(unknown)}"]
    _tell(notes)


def _times_and_rule(options: argparse.Namespace, lab: str) -> tuple[Any, Any]:
    manual = mpilab.course.manual
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
    if options.times:
        return manual.times_of_csv(options.times), rule
    return manual.times_of_files(options.submissions, lab), rule


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
    parser.add_argument("--names", action="store_true", help="say which students, too")
    parser.set_defaults(call=_report)


def _report(options: argparse.Namespace) -> None:
    """Print the report and write the page."""
    report, marks = mpilab.course.report, mpilab.course.marks
    found = marks.summary(marks.class_marks(options.folder, _lab(options)))
    page = write_whole(
        options.out or options.folder / "report.html", report.html(found, options.names)
    )
    if options.json:
        print_json(report.as_json(found, options.names))
        return
    print(report.text(found, options.names))
    print(f"\npage: {page}")


# `mpilab rubric`: show a rubric, or prove that it takes off the right points.


def _add_rubric(commands: Commands) -> None:
    parser = commands.add_parser(
        "rubric",
        help="show a rubric, or prove that it takes the points it should",
        description=RUBRIC_DESCRIPTION,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="exercises, items, points and cases")
    show.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    show.set_defaults(call=_show_rubric)
    test = verbs.add_parser("test", help="judge references, blanks and seeded bugs")
    test.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    test.add_argument("--exercise", metavar="E", help="only the answers to this exercise")
    add_jobs(test)
    test.add_argument(
        "--runs",
        type=positive,
        default=2,
        metavar="N",
        help="how often each is judged: all runs must say the same (default: 2)",
    )
    add_unsafe(test)
    add_no_progress(test)
    test.set_defaults(call=_test)


def _show_rubric(options: argparse.Namespace) -> None:
    print(
        mpilab.grading.proving.rubric_table(
            mpilab.grading.grade.Assignment.load(options.lab).rubric
        )
    )


def _test(options: argparse.Namespace) -> int:
    """Print the table, deviations, unproved items and counts; 1 unless everything is proved."""
    proof = mpilab.grading.proving.prove(
        options.lab,
        exercise=options.exercise,
        jobs=options.jobs,
        runs=options.runs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
    )
    print(mpilab.grading.proving.proof_table(proof))
    for said in proof.deviations:
        print(f"NOT AS IT SHOULD BE: {said}")
    for said in proof.unproved:
        print(f"NOT PROVED: {said}")
    if proof.unproved or proof.unconfirmed:
        print(
            "\nSimGrid is not installed on this machine: what only a simulation shows is not "
            f"proved, and {proof.unconfirmed} answers were judged on Open MPI alone. Install it "
            f"({mpilab.kernels.simgrid.how_to_install()}), then run this again."
        )
    print(f"\n{mpilab.grading.proving.counts(proof)}")
    return 1 if proof.deviations or proof.unproved or proof.unconfirmed else 0
