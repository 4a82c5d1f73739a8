"""The commands `mpilab collect`, `export`, `similar` and `leaderboard`."""

import sys
from pathlib import Path

from mpilab.errors import InputError

# `mpilab export`: export marks to Moodle, Canvas, Gradescope, nbgrader, or a spreadsheet.

TARGETS = {
    "csv": "marks.csv",
    "moodle": "moodle.csv",
    "canvas": "canvas.csv",
    "gradescope": "gradescope",
    "nbgrader": "gradebook.db",
}

EXPORT_DESCRIPTION = """\
Export the marks of a graded class, after manual points, overrides and late penalties. Who has no
final mark (could not be judged, or awaits manual grading) is never exported as a zero: the command
lists them and stops, or leaves their cells empty with --partial. The exit status is 1 where a
student has no place in the platform's file.
"""


def add_export(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "export",
        help="export marks to Moodle, Canvas, Gradescope, nbgrader or CSV",
        description=EXPORT_DESCRIPTION,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder with the gradebook")
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.add_argument("--to", required=True, choices=TARGETS, help="for whom")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="PATH",
        help="file (for gradescope: folder) to write; default: "
        + ", ".join(f"OUT/{name}" for name in TARGETS.values()),
    )
    parser.add_argument(
        "--partial", action="store_true", help="leave the cells of unfinished students empty"
    )
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE.csv",
        help="who is who: a column 'student' and others with identifiers, such as the "
        "submissions.csv of 'mpilab collect'",
    )
    parser.add_argument(
        "--template",
        type=Path,
        metavar="FILE.csv",
        help="the platform's own file, to be filled: Canvas's exported gradebook (needed), or the "
        "grading worksheet of a Moodle assignment",
    )
    parser.add_argument("--column", default="", help="name of the assignment's column of marks")
    parser.add_argument(
        "--match", default="", metavar="COLUMN", help="column of the template that says who it is"
    )
    parser.add_argument(
        "--id-column",
        default="username",
        metavar="NAME",
        help="Moodle: header of the identifying column, as in the roster (default: username)",
    )
    parser.add_argument(
        "--scale", action="store_true", help="scale marks to the points that the template gives"
    )
    parser.add_argument(
        "--visibility",
        default="after_published",
        metavar="WHEN",
        help="Gradescope: when students see tests: visible, after_due_date, after_published "
        "(default) or hidden",
    )
    parser.add_argument(
        "--python", type=Path, metavar="PATH", help="nbgrader: a Python that has nbgrader"
    )
    parser.set_defaults(call=call_export)


def call_export(options):
    """Write the export and list the students left out; 1 if the platform's file lacks a student."""
    from mpilab.course.export import gradescope, nbgrader
    from mpilab.course.marks import class_marks
    from mpilab.util.files import write_whole
    from mpilab.util.text import plain

    marks = class_marks(options.out, options.lab)
    target = options.output or options.out / TARGETS[options.to]
    if options.to == "gradescope":
        done = gradescope(marks, target, visibility=options.visibility, partial=options.partial)
        print(f"{len(done)} of {len(marks.students)} students: {target}/STUDENT/results.json")
        return 0
    if options.to == "nbgrader":
        nbgrader(marks, target, partial=options.partial, python=options.python)
        print(f"{len(marks.students)} students, assignment {marks.lab}: {target}")
        return 0
    done = _table(options, marks)
    print(
        f"{len(marks.students) - len(done.without)} of {len(marks.students)} students: "
        f"{write_whole(target, done.text)}"
    )
    for student in done.without:
        print(f"NOT EXPORTED, no identifier or row: {plain(student)}", file=sys.stderr)
    for row in done.unmarked:
        print(f"no mark for the row of: {plain(row)}", file=sys.stderr)
    return 1 if done.without else 0


def _table(options, marks):
    """The Exported for a CSV target."""
    from mpilab.course import export

    if options.to == "csv":
        return export.plain_csv(marks, options.partial)
    roster = export.read_roster(options.roster) if options.roster else None
    if options.to == "moodle" and not options.template:
        return export.moodle(
            marks,
            column=options.column,
            identifier=options.id_column,
            roster=roster,
            partial=options.partial,
        )
    how = {
        "roster": roster,
        "match": options.match,
        "partial": options.partial,
        "scale": options.scale,
    }
    if options.to == "moodle":
        return export.moodle_worksheet(marks, options.template, **how)
    if not (options.template and options.column):
        raise InputError(
            "--to canvas: export the gradebook of the course from Canvas, and give it "
            "as --template FILE.csv, the assignment as --column NAME"
        )
    return export.canvas(marks, options.template, options.column, **how)


# `mpilab similar`: find C answers in a class that are suspiciously similar.

SIMILAR_DESCRIPTION = """\
Compare all answers in C to one exercise, pair by pair, by winnowed fingerprints of their tokens:
other names, numbers, layout, comments and order of functions change nothing. What the lab gave to
all, and what is as in the reference answer, does not count. Prints the pairs, and writes a page
with both answers side by side. A large share is a reason to read both, not a proof.
"""


def add_similar(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "similar",
        help="which answers of a class resemble each other",
        description=SIMILAR_DESCRIPTION,
    )
    parser.add_argument(
        "submissions", type=Path, help="the class, as it is given to 'mpilab grade'"
    )
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.add_argument("--exercise", required=True, help="one of its exercises in C")
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="SHARE",
        help="list pairs from this share of the shorter answer on, 0 to 1 (default: 0.7)",
    )
    parser.add_argument(
        "--keep-reference",
        action="store_true",
        help="also count what is as in the reference answer",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        default=Path("similar.html"),
        metavar="FILE.html",
        help="the page (default: similar.html)",
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call_similar)


def call_similar(options):
    """Compare the answers, print the pairs and the answers left out, and write the page."""
    from mpilab.course.similarity import THRESHOLD, page, percent, search, table
    from mpilab.util.files import write_whole
    from mpilab.util.text import plain

    similar = search(
        options.submissions,
        options.lab,
        options.exercise,
        threshold=THRESHOLD if options.threshold is None else options.threshold,
        keep_reference=options.keep_reference,
        progress=not options.no_progress,
    )
    if similar.chosen:
        print(table(similar))
    else:
        largest = f"; the largest is {percent(similar.pairs[0].share)}" if similar.pairs else ""
        print(f"no pair has a share of {percent(similar.threshold)} or more{largest}")
    for note in similar.notes:
        print(f"not compared: {plain(note)}")
    print(
        f"\n{similar.compared} answers to {options.exercise} compared; "
        f"page: {write_whole(options.output, page(similar))}"
    )


# `mpilab leaderboard`: rank a class by simulated time.

LEADERBOARD_DESCRIPTION = """\
Rank the answers of a class that has been graded by simulated time, on the clusters of
grading/LAB/leaderboard.toml. Wrong answers are not ranked. Writes leaderboard.csv and
leaderboard.html into the folder OUT, with nicknames in the place of names.
"""


def add_leaderboard(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "leaderboard",
        help="rank a graded class by simulated time",
        description=LEADERBOARD_DESCRIPTION,
    )
    parser.add_argument("lab", help="name of the lab, e.g. 06-tune-and-scale")
    parser.add_argument(
        "out", type=Path, metavar="OUT", help="folder that 'mpilab grade --out' has filled"
    )
    parser.add_argument("--names", action="store_true", help="show real names")
    parser.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run answers with your own rights; only for ones that you trust",
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call_leaderboard)


def call_leaderboard(options):
    """Rank the class, print the table, and write the CSV and the page."""
    from mpilab.course import leaderboard
    from mpilab.errors import InputError
    from mpilab.grading.pages import opened
    from mpilab.grading.sandbox import open_sandbox

    board = leaderboard.load(options.lab)
    with opened(options.out, options.lab) as book:
        verdicts = [run.verdict for run in book.newest(options.lab)]
    if not verdicts:
        raise InputError(f"{options.out}: no verdict on lab {options.lab!r}; grade it first")
    sandbox = open_sandbox(unsafe=options.unsafe_no_sandbox)
    entries = leaderboard.rank(board, verdicts, sandbox, progress=not options.no_progress)
    students = [one.student for one in entries]
    names = {one: one for one in students}
    if not options.names:
        names = leaderboard.nicknames(students, options.lab)
    csv, page = options.out / "leaderboard.csv", options.out / "leaderboard.html"
    leaderboard.write_csv(entries, names, board, csv)
    leaderboard.write_html(entries, names, board, page, board.title)
    print(leaderboard.as_text(entries, names, board))
    print(f"\ntimes: {csv}\npage:  {page}")
    return 0


# `mpilab collect`: collect a platform's download into folders that can be graded.

LAYOUTS = ("auto", "moodle", "canvas", "github-classroom", "nbgrader")

COLLECT_DESCRIPTION = """\
Collect a class's submissions from a platform's download, a folder or a zip, into
DEST/STUDENT/LAB.ipynb, and write DEST/submissions.csv: who, when, late or not, the platform's
number, and which file it was. Of several files the newest is taken; links are not followed;
whatever was not understood is listed, and the exit status is 1 then. Can be run again after another
download.
"""


def add_collect(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "collect",
        help="collect submissions from a platform's download",
        description=COLLECT_DESCRIPTION,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the download")
    parser.add_argument("dest", type=Path, metavar="DEST", help="folder for 'mpilab grade'")
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.add_argument(
        "--from", dest="layout", choices=LAYOUTS, default="auto", help="which platform's"
    )
    parser.add_argument(
        "--prefix", default="", help="github-classroom: what stands before the user's name"
    )
    parser.add_argument(
        "--with-ids", action="store_true", help="put the platform's number behind each name"
    )
    parser.set_defaults(call=call_collect)


def call_collect(options):
    """Collect the submissions, and list notes and what was not collected; 1 if anything was not."""
    from mpilab.course.collect import TABLE, collect
    from mpilab.util.text import plain

    done = collect(
        options.source,
        options.dest,
        options.lab,
        layout=options.layout,
        prefix=options.prefix,
        with_ids=options.with_ids,
    )
    print(
        f"{len(done.students)} submissions of {options.lab} from {done.layout}, "
        f"{len(done.changed)} of them new or changed: {options.dest}"
    )
    print(f"times: {options.dest / TABLE}")
    unknown = sum(piece.time is None for piece in done.students.values())
    if unknown:
        print(f"{unknown} without a time: the download does not tell it", file=sys.stderr)
    for note in done.notes:
        print(plain(note), file=sys.stderr)
    for line in done.left:
        print(f"NOT COLLECTED: {plain(line)}", file=sys.stderr)
    return 1 if done.left else 0
