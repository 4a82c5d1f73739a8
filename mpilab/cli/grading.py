"""The commands `mpilab marks`, `regrade`, `merge`, `report` and `rubric`."""

import contextlib
import sys
from pathlib import Path

from mpilab.errors import InputError
from mpilab.util.arguments import positive

# `mpilab regrade`: grade one exercise again for a whole class.

REGRADE_DESCRIPTION = """\
Judge one exercise again for the whole class, after its part of the rubric has changed; verdicts on
the other exercises, and what people have decided, stay. Refused where the rubric of another
exercise has changed as well. Whoever has handed in another file since is named, for 'mpilab grade',
and the exit status is 1.
"""


def add_regrade(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "regrade",
        help="judge one exercise again for a whole class",
        description=REGRADE_DESCRIPTION,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder that 'mpilab grade' filled")
    parser.add_argument("submissions", type=Path, help="the class, as it was graded")
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.add_argument("--exercise", required=True, metavar="E", help="its id in the rubric")
    parser.add_argument(
        "--again", action="store_true", help="also where the rubric has not changed"
    )
    parser.add_argument("--jobs", type=positive, metavar="N", help="answers at a time")
    parser.add_argument(
        "--unsafe-no-sandbox", action="store_true", help="run submissions with your own rights"
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call_regrade)


def call_regrade(options):
    """Regrade, print the table and the changes; 1 if some students were not regraded."""
    from mpilab.grading.marks import points
    from mpilab.grading.regrade import regrade

    done = regrade(
        options.out,
        options.submissions,
        options.lab,
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

MERGE_DESCRIPTION = """\
Merge gradebooks into one, with one CSV and one folder of feedback: those that 'mpilab grade --share
K/N' has made, each in a folder of its own. The history is kept; merging twice changes nothing.
Gradebooks of different labs or rubrics are refused. With --submissions, whoever has no verdict (a
share's job failed) is listed as ungradable, and the exit status is 1.
"""


def add_merge(commands):
    """Add the command to `commands`, argparse's subparsers."""
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
    parser.add_argument("--lab", help="name of the lab (default: that of the gradebooks)")
    parser.set_defaults(call=call_merge)


def call_merge(options):
    """Merge, print the table and the missing students; 1 if there are any."""
    from mpilab.grading.regrade import merge

    done = merge(options.out, options.folders, submissions=options.submissions, lab=options.lab)
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

MARKS_DESCRIPTION = """\
What people decide about marks is kept in the gradebook beside the verdicts, with time, login and
reason; nothing is overwritten. Each of these commands brings grades.csv and the feedback pages up
to date. docs/marking.md tells more.
"""


def add_marks(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "marks",
        help="points for free text, overrides, lateness, history",
        description=MARKS_DESCRIPTION,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    _verb(verbs, "show", _show, "print the marks as they count, and write grades.csv")
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


def _verb(verbs, name, call, words):
    parser = verbs.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
    parser.add_argument("out", type=Path, metavar="OUT", help="folder that 'mpilab grade' filled")
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.set_defaults(call=call)
    return parser


def _on(parser):
    parser.add_argument("--student", required=True, metavar="S")
    parser.add_argument("--exercise", default="", metavar="E", help="default: the total")
    parser.add_argument("--item", default="", metavar="I", help="default: the whole exercise")


def _show(options):
    from mpilab.grading import marks, pages

    with pages.opened(options.out, options.lab) as book:
        verdicts, notes = pages.refresh(book, options.lab, options.out)
    print(marks.mark_table(verdicts, pages.points_of(verdicts)))
    _tell(notes)


def _history(options):
    from mpilab.grading import pages
    from mpilab.grading.pages import explain

    with pages.opened(options.out, options.lab) as book:
        print(explain(book, options.lab, options.student))


def _export(options):
    from mpilab.course import manual
    from mpilab.grading import pages

    with pages.opened(options.out, options.lab) as book:
        count = manual.export(book, options.lab, options.file, everything=options.all)
    print(
        f"{count} answers written to {options.file}; fill in points and comment, then: "
        f"mpilab marks import {options.out} --lab {options.lab} {options.file}"
    )


def _import(options):
    from mpilab.course import manual
    from mpilab.grading import pages

    with pages.opened(options.out, options.lab) as book:
        decisions = manual.read(book, options.lab, options.file)
        book.decide(decisions)
        verdicts, notes = pages.refresh(book, options.lab, options.out)
    print(f"{len(decisions)} marks taken from {options.file}")
    _tell_waiting(verdicts)
    _tell(notes)


def _page(options):
    from mpilab.course.manual import MarkingServer
    from mpilab.grading import pages

    with pages.opened(options.out, options.lab) as book:
        with MarkingServer(book, options.lab, options.port) as server:
            print(f"Open {server.url}\nEvery mark is saved at once. End with Ctrl-C.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
        verdicts, notes = pages.refresh(book, options.lab, options.out)
    print(f"\n{server.given} marks saved")
    _tell_waiting(verdicts)
    _tell(notes)


def _override(options):
    from mpilab.grading.decisions import override

    points = None if options.remove else options.points
    where = (options.exercise, options.item)
    _decide(options, lambda run, _: override(run, points, options.reason, *where))


def _confirm(options):
    from mpilab.grading.decisions import OVERRIDE, override

    def again(run, standing):
        where = (options.exercise, options.item)
        found = standing.get((options.student, OVERRIDE, *where))
        if found is None or found.withdrawn:
            raise InputError(
                f"{options.student}, {'/'.join(filter(None, where)) or 'total'}: "
                "there is no override to confirm"
            )
        return override(run, found.points, found.reason, *where)

    _decide(options, again)


def _decide(options, make):
    """Add the decision that `make(run, current decisions)` returns, and print the new total."""
    from mpilab.grading import pages
    from mpilab.grading.decisions import newest
    from mpilab.grading.gradebook import run_of
    from mpilab.grading.marks import points

    with pages.opened(options.out, options.lab) as book:
        run = run_of(book, options.lab, options.student)
        book.decide([make(run, newest(book.decisions(options.lab)))])
        verdicts, notes = pages.refresh(book, options.lab, options.out)
    one = next(each for each in verdicts if each.student == options.student)
    total = points(one.total) or "no total yet"
    print(f"{one.student}: {total} of {points(one.points)}, {one.status}")
    _tell([*one.notes, *notes])


def _late(options):
    from mpilab.course import manual
    from mpilab.grading import pages

    with pages.opened(options.out, options.lab) as book:
        if options.remove:
            decisions = manual.withdraw(book, options.lab, "taken back for the whole lab")
        else:
            decisions = manual.decide(book, options.lab, *_times_and_rule(options))
        book.decide(decisions)
        verdicts, notes = pages.refresh(book, options.lab, options.out)
    late = [each for each in verdicts if each.late and each.late.details["days"]]
    unknown = [each.student for each in verdicts if each.late is None]
    for each in late:
        print(f"{each.student}: {each.late.reason}")
    print(f"{len(late)} of {len(verdicts)} late; {len(decisions)} decisions are new")
    if unknown and not options.remove:
        notes = [*notes, f"nothing is known of when these handed in: {', '.join(unknown)}"]
    _tell(notes)


def _times_and_rule(options):
    from mpilab.course import manual

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
    return manual.times_of_files(options.submissions, options.lab), rule


def _tell_waiting(verdicts):
    waiting = [each.student for each in verdicts if any(e.waiting for e in each.exercises)]
    print(f"{len(waiting)} of {len(verdicts)} submissions still await manual grading")


def _tell(notes):
    for note in notes:
        print(note, file=sys.stderr)


# `mpilab report`: report on a graded class.

REPORT_DESCRIPTION = """\
Report on a graded class: what could not be judged, how marks are distributed, which items were
lost by how many, and what goes wrong most often, with an example. As text, and as one HTML page
with figures that needs no network. Students are not named unless asked for, so that it can be shown
to the class.
"""


def add_report(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "report",
        help="report on a class: distributions, common failures",
        description=REPORT_DESCRIPTION,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder with the gradebook")
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.html", help="the page (default: OUT/report.html)"
    )
    parser.add_argument("--names", action="store_true", help="say which students, too")
    parser.set_defaults(call=call_report)


def call_report(options):
    """Print the report and write the page."""
    from mpilab.course import report
    from mpilab.course.marks import class_marks, summary
    from mpilab.util.files import write_whole

    found = summary(class_marks(options.out, options.lab))
    print(report.text(found, options.names))
    path = options.output or options.out / "report.html"
    print(f"\npage: {write_whole(path, report.html(found, options.names))}")


# `mpilab rubric`: show a rubric, or prove that it takes off the right points.

RUBRIC_DESCRIPTION = """\
show LAB: exercises and items, with their points and the cases that they are tried with.
test LAB: judge the reference answers, blank answers and all seeded bugs of a lab
as a student's would be, each twice: references must get every point, blanks none, each bug must
lose the items that grading/LAB/bugs.toml names and no other, and both runs must say the same. What
a person reads is left to a person. The exit status is 1 if anything is not as it should be, or,
without SimGrid, could not be proved.
See docs/rubrics.md.
"""


def add_rubric(commands):
    """Add the command to `commands`, argparse's subparsers."""
    from argparse import RawDescriptionHelpFormatter

    parser = commands.add_parser(
        "rubric",
        help="show a rubric, or prove that it takes the points it should",
        description=RUBRIC_DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="exercises, items, points and cases")
    show.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    show.set_defaults(call=_show_rubric)
    test = verbs.add_parser("test", help="judge references, blanks and seeded bugs")
    test.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    test.add_argument("--exercise", metavar="E", help="only the answers to this exercise")
    test.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="answers at a time (default: one more than there are cores)",
    )
    test.add_argument(
        "--runs",
        type=positive,
        default=2,
        metavar="N",
        help="how often each is judged: all runs must say the same (default: 2)",
    )
    test.add_argument(
        "--unsafe-no-sandbox", action="store_true", help="run the answers with your own rights"
    )
    test.add_argument("--no-progress", action="store_true", help="show no progress bar")
    test.set_defaults(call=_test)


def _show_rubric(options):
    from mpilab.grading.grade import Assignment
    from mpilab.grading.proving import rubric_table

    print(rubric_table(Assignment.load(options.lab).rubric))


def _test(options):
    """Print the table, deviations, unproved items and counts; 1 unless everything is proved."""
    from mpilab.grading.proving import counts, proof_table, prove
    from mpilab.kernels.simgrid import how_to_install

    proof = prove(
        options.lab,
        exercise=options.exercise,
        jobs=options.jobs,
        runs=options.runs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
    )
    print(proof_table(proof))
    for said in proof.deviations:
        print(f"NOT AS IT SHOULD BE: {said}")
    for said in proof.unproved:
        print(f"NOT PROVED: {said}")
    if proof.unproved or proof.unconfirmed:
        print(
            "\nSimGrid is not installed on this machine: what only a simulation shows is not "
            f"proved, and {proof.unconfirmed} answers were judged on Open MPI alone. Install it "
            f"({how_to_install()}), then run this again."
        )
    print(f"\n{counts(proof)}")
    return 1 if proof.deviations or proof.unproved or proof.unconfirmed else 0
