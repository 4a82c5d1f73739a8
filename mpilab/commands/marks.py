"""`mpilab marks`: what people add to the marks of a class, and where a mark comes from."""

import contextlib
import signal
import sys
from pathlib import Path

from mpilab.errors import InputError

DESCRIPTION = """\
What people decide about marks is kept in the gradebook beside the verdicts, with time, login and
reason; nothing is overwritten. Each of these commands brings grades.csv and the feedback pages up
to date. docs/marking.md tells more.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "marks", help="points for free text, overrides, lateness, history", description=DESCRIPTION
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)

    _verb(verbs, "show", _show, "print the marks as they count, and write grades.csv")
    history = _verb(verbs, "history", _history, "where the mark of a student comes from")
    history.add_argument("student", metavar="STUDENT")

    export = _verb(verbs, "export", _export, "write what waits for a person as a CSV")
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
    from mpilab.grading.explain import explain

    with pages.opened(options.out, options.lab) as book:
        print(explain(book, options.lab, options.student))


def _export(options):
    from mpilab.grading import manual_csv, pages

    with pages.opened(options.out, options.lab) as book:
        count = manual_csv.export(book, options.lab, options.file, everything=options.all)
    print(f"{count} answers written to {options.file}; fill in points and comment, then: "
          f"mpilab marks import {options.out} --lab {options.lab} {options.file}")  # fmt: skip


def _import(options):
    from mpilab.grading import manual_csv, pages

    with pages.opened(options.out, options.lab) as book:
        decisions = manual_csv.read(book, options.lab, options.file)
        book.decide(decisions)
        verdicts, notes = pages.refresh(book, options.lab, options.out)
    print(f"{len(decisions)} marks taken from {options.file}")
    _tell_waiting(verdicts)
    _tell(notes)


def _page(options):
    from mpilab.grading import pages
    from mpilab.grading.marking_page import MarkingServer

    def ended(*_):
        raise KeyboardInterrupt

    with pages.opened(options.out, options.lab) as book:
        with MarkingServer(book, options.lab, options.port) as server:
            before = signal.signal(signal.SIGTERM, ended)
            print(f"Open {server.url}\nEvery mark is saved at once. End with Ctrl-C.", flush=True)
            with contextlib.suppress(KeyboardInterrupt):
                server.serve_forever()
            signal.signal(signal.SIGTERM, before)
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
            raise InputError(f"{options.student}, {'/'.join(filter(None, where)) or 'total'}: "
                             "there is no override to confirm")  # fmt: skip
        return override(run, found.points, found.reason, *where)

    _decide(options, again)


def _decide(options, make):
    """Add the decision that `make` returns for a Run and what stands; print what came of it."""
    from mpilab.grading import pages
    from mpilab.grading.effective import newest, run_of
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
    from mpilab.grading import lateness, pages

    with pages.opened(options.out, options.lab) as book:
        if options.remove:
            decisions = lateness.withdraw(book, options.lab, "taken back for the whole lab")
        else:
            decisions = lateness.decide(book, options.lab, *_times_and_rule(options))
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
    from mpilab.grading import lateness

    if not (options.due and options.per_day and (options.times or options.submissions)):
        raise InputError("marks late: give --due, --per-day, and --times FILE.csv or "
                         "--submissions DIR; or --remove")  # fmt: skip
    extensions = {}
    for text in options.extension:
        student, equals, length = text.rpartition("=")
        if not equals:
            raise InputError(f"--extension {text!r}: write STUDENT=TIME, e.g. anna=3d")
        extensions[student] = lateness.length(length, f"--extension {student}:")
    rule = lateness.Rule(
        lateness.moment(options.due, "--due"),
        lateness.share(options.per_day, "--per-day"),
        lateness.share(options.most, "--most"),
        lateness.length(options.grace, "--grace"),
        extensions,
    )
    if options.times:
        return lateness.times_of_csv(options.times), rule
    return lateness.times_of_files(options.submissions, options.lab), rule


def _tell_waiting(verdicts):
    waiting = [each.student for each in verdicts if any(e.waiting for e in each.exercises)]
    print(f"{len(waiting)} of {len(verdicts)} submissions still wait for a person")


def _tell(notes):
    for note in notes:
        print(note, file=sys.stderr)
