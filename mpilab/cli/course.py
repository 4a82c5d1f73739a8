"""The commands `mpilab collect`, `export`, `feedback`, `similar`, `leaderboard` and `release`."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from mpilab.cli.common import (
    Commands,
    add_graded,
    add_lab,
    add_no_progress,
    add_out,
    add_unsafe,
    mpilab,
)
from mpilab.errors import InputError
from mpilab.util.files import atomic_write
from mpilab.util.kit import ROOT
from mpilab.util.text import plain, suggestion

TARGETS = {
    "csv": "marks.csv",
    "moodle": "moodle.csv",
    "canvas": "canvas.csv",
    "gradescope": "gradescope",
    "nbgrader": "gradebook.db",
    "research": "research",
}
LAYOUTS = ("auto", "moodle", "canvas", "github-classroom", "nbgrader", "gradescope")
RETURNS = (*LAYOUTS, "folders")
EXPORT_DESCRIPTION = """\
Export the marks of a graded class, after manual points, overrides and late penalties. Students
without a final mark (not judged, or awaiting manual grading) are never exported with a zero: the
command lists them and stops, or, with --partial, leaves their cells empty. The exit status is 1 if
a student is missing from the platform's file. With --to research, write anonymous results of the
students who agreed: points and kinds of failure per item, without names, times, code and texts.
"""
EXPORT_EXAMPLES = """\
examples:
  mpilab export out --to moodle --template worksheet-of-moodle.csv
  mpilab export out --to canvas --template gradebook.csv --column "Lab 2"
  mpilab export out --to research --consent consent.csv
"""
FEEDBACK_DESCRIPTION = """\
Return feedback: write the pages and reasons of a graded class in the form that a platform imports,
by default the one that 'mpilab collect' collected from. Nothing is uploaded or pushed; the command
prints what to do with the files. Students without a final mark (not judged, or awaiting manual
grading) get no feedback yet: the command lists them and stops, or, with --partial, leaves them out.
The exit status is 1 if the feedback of a student with a final mark could not be placed.
"""
FEEDBACK_EXAMPLES = """\
what is written (to DIR/PLATFORM):
  moodle            worksheet.csv, a grading worksheet, and feedback.zip
  canvas            feedback.zip for Upload Submissions, and comments.json for its API
  nbgrader          feedback/STUDENT/LAB/, for nbgrader release_feedback
  github-classroom  a commit on the branch feedback-LAB of each clone in --source
  gradescope        autograder.zip, and STUDENT/results.json
  folders           STUDENT/LAB.html
examples:
  mpilab feedback out
  mpilab feedback out --to moodle --template worksheet-of-moodle.csv
  mpilab feedback out --to github-classroom --source mpi-lab-submissions
"""
SIMILAR_DESCRIPTION = """\
Compare all C answers to one exercise, pair by pair, by winnowed fingerprints of their tokens:
changes of names, numbers, layout, comments and the order of functions have no effect. Code that the
lab provides or that matches the reference answer does not count. Prints the pairs, and writes a
page with both answers side by side. A large share is a reason to read both, not a proof.
"""
LEADERBOARD_DESCRIPTION = """\
Rank the answers of a graded class by simulated time on the clusters of
grading/LAB/leaderboard.toml. Wrong answers are not ranked. Writes leaderboard.csv and
leaderboard.html to DIR, with nicknames instead of names.
"""
RELEASE_DESCRIPTION = """\
Create the student versions of labs from their sources, in labs/, with their public checks and
START. With --handout, create or extend a handout instead: one folder for students with these labs,
their public checks, START, README and Makefile for students, help pages and the kit, but without
answers, rubrics and seeded bugs. Labs that are in it already stay, and so does each file that you
added or changed: the command lists them. It is written beside DIR, which is then replaced as a
whole. See docs/instructors.md. With --nbgrader, write the labs into a course of nbgrader instead,
with a configuration by which 'nbgrader autograde' calls 'mpilab grade'. See docs/reporting.md.
"""
RELEASE_EXAMPLES = """\
examples:
  mpilab release 02-allgather --handout mpi-labs        # a new folder
  mpilab release 03-rank-mapping --handout mpi-labs     # weeks later: now it has both
  mpilab release all --handout mpi-labs.zip
  mpilab release 02-allgather --nbgrader mpi-course
"""
COLLECT_DESCRIPTION = """\
Collect a class's submissions from a platform's download, a folder or a zip, into
DEST/STUDENT/LAB.ipynb, and write DEST/submissions.csv: student, time, lateness, the platform's
number, and the original file. With --roster, the platform's list of the class, the table has the
times of submission, and lists who handed in nothing. If a student handed in several files, the last
one counts; links are not followed; files that are not recognized are listed, and the exit status is
then 1. Run it again after each download.
"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_collect(commands)
    _add_export(commands)
    _add_feedback(commands)
    _add_similar(commands)
    _add_leaderboard(commands)
    _add_release(commands)


# `mpilab export`: export marks to Moodle, Canvas, Gradescope, nbgrader, a spreadsheet, or research.


def _add_export(commands: Commands) -> None:
    parser = commands.add_parser(
        "export",
        help="export marks to Moodle, Canvas, Gradescope, nbgrader or CSV, or for research",
        description=EXPORT_DESCRIPTION,
        epilog=EXPORT_EXAMPLES,
    )
    add_graded(parser)
    parser.add_argument(
        "--to", default="csv", choices=TARGETS, help="target platform (default: csv)"
    )
    add_out(
        parser,
        "file (for gradescope and research: folder) to write; default: "
        + ", ".join(f"DIR/{name}" for name in TARGETS.values()),
        metavar="PATH",
        former="--output",
    )
    parser.add_argument(
        "--partial", action="store_true", help="leave the cells of unfinished students empty"
    )
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE.csv",
        help=(
            "identifies students: a column 'student' and others with identifiers, such as the "
            "submissions.csv of 'mpilab collect' (with --template, the default is the one in DIR)"
        ),
    )
    parser.add_argument(
        "--template",
        type=Path,
        metavar="FILE.csv",
        help=(
            "the platform's file to fill in: Canvas's exported gradebook (required), or the "
            "grading worksheet of a Moodle assignment"
        ),
    )
    parser.add_argument("--column", default="", help="name of the assignment's mark column")
    parser.add_argument(
        "--match",
        default="",
        metavar="COLUMN",
        help="column of the template that identifies the student",
    )
    parser.add_argument(
        "--id-column",
        default="username",
        metavar="NAME",
        help="Moodle: header of the identifying column, as in the roster (default: username)",
    )
    parser.add_argument(
        "--scale", action="store_true", help="scale marks to the template's maximum points"
    )
    _add_visibility(parser)
    parser.add_argument(
        "--python", type=Path, metavar="PATH", help="nbgrader: a Python installation with nbgrader"
    )
    parser.add_argument(
        "--consent",
        type=Path,
        metavar="FILE.csv",
        help="research (required): columns 'student' and 'consent' (yes or no); students without a "
        "yes are left out",
    )
    parser.set_defaults(call=_export)


def _export(options: argparse.Namespace) -> int:
    """Write the export and list the students left out; 1 if the platform's file lacks a student."""
    lab = options.lab or mpilab.grading.marks.only_lab(options.folder)
    marks = mpilab.course.marks.class_marks(options.folder, lab)
    target = options.out or options.folder / TARGETS[options.to]
    if options.to == "gradescope":
        done = mpilab.course.export.gradescope(
            marks, target, visibility=options.visibility, partial=options.partial
        )
        print(f"{len(done)} of {len(marks.students)} students: {target}/STUDENT/results.json")
        return 0
    if options.to == "nbgrader":
        mpilab.course.export.nbgrader(marks, target, partial=options.partial, python=options.python)
        print(f"{len(marks.students)} students, assignment {marks.lab}: {target}")
        return 0
    if options.to == "research":
        return _research(options, marks, target)
    done = _table(options, marks)
    print(
        f"{len(marks.students) - len(done.without)} of {len(marks.students)} students: "
        f"{atomic_write(target, done.text)}"
    )
    for student in done.without:
        print(f"NOT EXPORTED, no identifier or row: {plain(student)}", file=sys.stderr)
    for row in done.unmarked:
        print(f"no mark for the row of: {plain(row)}", file=sys.stderr)
    return 1 if done.without else 0


def _research(options: argparse.Namespace, marks: Any, folder: Path) -> int:
    """Write the table and its codebook, and warn if a participant is easy to recognize."""
    if not options.consent:
        raise InputError(
            "--to research: say who agreed, with --consent FILE.csv: a CSV with the columns "
            "'student' and 'consent' (yes or no)"
        )
    export = mpilab.course.export
    done = export.research(marks, options.consent, options.partial)
    table = atomic_write(folder / "results.csv", done.table)
    codebook = atomic_write(folder / "codebook.md", done.codebook)
    print(f"{done.participants} of {len(marks.students)} students agreed: {table}, {codebook}")
    for student in done.unknown:
        print(f"agreed, but has no marks in {marks.lab}: {plain(student)}", file=sys.stderr)
    if done.participants < export.FEW:
        print(
            f"only {done.participants} participants (fewer than {export.FEW}): whoever knows the "
            "class may recognize them; don't publish the table",
            file=sys.stderr,
        )
    if done.unique:
        print(
            f"{done.unique} of {done.participants} participants have points that nobody else in the"
            " table has: whoever knows their marks can recognize them",
            file=sys.stderr,
        )
    return 0


def _table(options: argparse.Namespace, marks: Any) -> Any:
    """The Exported for a CSV target."""
    if options.to == "csv":
        return mpilab.course.export.plain_csv(marks, options.partial)
    if options.to == "moodle" and not options.template:
        _refuse_names(options, marks)
        return mpilab.course.export.moodle(
            marks,
            column=options.column,
            identifier=options.id_column,
            roster=_roster(options, marks.lab) if options.roster else None,
            partial=options.partial,
        )
    roster = _roster(options, marks.lab)
    how = {
        "roster": roster,
        "match": options.match,
        "partial": options.partial,
        "scale": options.scale,
    }
    if options.to == "moodle":
        return mpilab.course.export.moodle_worksheet(marks, options.template, **how)
    if not (options.template and options.column):
        raise InputError(
            "--to canvas: export the gradebook of the course from Canvas, and give it "
            "as --template FILE.csv, the assignment as --column NAME"
        )
    return mpilab.course.export.canvas(marks, options.template, options.column, **how)


def _refuse_names(options: argparse.Namespace, marks: Any) -> None:
    """InputError if the students of a Moodle class would be identified by their full names."""
    entries = (_roster(options, marks.lab) or {}).values()
    if not options.roster and any(each.get("platform") == "moodle" for each in entries):
        raise InputError(
            "--to moodle: Moodle finds no student by the full name, which is all that its download "
            "has. Give the assignment's grading worksheet as --template FILE.csv, or a CSV with "
            f"the columns student and {options.id_column} as --roster"
        )


def _add_visibility(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--visibility",
        default="after_published",
        metavar="WHEN",
        help="Gradescope: when students see tests: visible, after_due_date, after_published "
        "(default) or hidden",
    )


def _roster(options: argparse.Namespace, lab: str) -> Any:
    """The roster: by default the table of 'mpilab collect' that was graded; None without one."""
    table = options.roster or options.folder / mpilab.grading.submission.TABLE
    if not options.roster and not table.is_file():
        return None
    return mpilab.grading.submission.read_roster(table, lab)


# `mpilab feedback`: return feedback to students through their platform.


def _add_feedback(commands: Commands) -> None:
    parser = commands.add_parser(
        "feedback",
        help="return feedback through Moodle, Canvas, nbgrader, GitHub Classroom, ...",
        description=FEEDBACK_DESCRIPTION,
        epilog=FEEDBACK_EXAMPLES,
    )
    add_graded(parser)
    parser.add_argument(
        "--to",
        default="auto",
        choices=RETURNS,
        help="platform (default: where the submissions were collected from; else folders)",
    )
    add_out(parser, "folder to write (default: DIR/PLATFORM)", metavar="PATH")
    parser.add_argument(
        "--partial", action="store_true", help="leave out students without a final mark"
    )
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE.csv",
        help="the submissions.csv of 'mpilab collect' (default: DIR/submissions.csv, which 'mpilab "
        "grade' copies there)",
    )
    parser.add_argument(
        "--template",
        type=Path,
        metavar="FILE.csv",
        help="Moodle: the assignment's grading worksheet, to fill in (default: a new one)",
    )
    parser.add_argument(
        "--scale", action="store_true", help="Moodle: scale marks to the template's maximum points"
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="SOURCE",
        help="what was collected: GitHub Classroom's clones, or the course folder of nbgrader",
    )
    _add_visibility(parser)
    parser.set_defaults(call=_feedback)


def _feedback(options: argparse.Namespace) -> int:
    """Write the feedback, and list whose is missing and what to do next; 1 if any is missing."""
    lab = options.lab or mpilab.grading.marks.only_lab(options.folder)
    marks = mpilab.course.marks.class_marks(options.folder, lab)
    platform, done = mpilab.course.feedback.give_back(
        marks,
        options.folder,
        to=options.to,
        target=options.out,
        partial=options.partial,
        roster=options.roster,
        template=options.template,
        source=options.source,
        visibility=options.visibility,
        scale=options.scale,
    )
    written = ", ".join(map(str, done.paths))
    print(f"{platform}: {len(done.students)} of {len(marks.students)} students: {written}")
    for step in done.steps:
        print(f"  {step}")
    for note in done.notes:
        print(plain(note), file=sys.stderr)
    for line in done.without:
        print(f"NOT RETURNED: {plain(line)}", file=sys.stderr)
    return 1 if done.without else 0


# `mpilab similar`: find C answers in a class that are suspiciously similar.


def _add_similar(commands: Commands) -> None:
    parser = commands.add_parser(
        "similar",
        help="find similar answers in a class",
        description=SIMILAR_DESCRIPTION,
    )
    parser.add_argument("submissions", type=Path, help="the submissions, as for 'mpilab grade'")
    add_lab(parser, "the notebooks' lab")
    parser.add_argument(
        "--exercise", metavar="E", help="a C exercise of the lab (default: the only one)"
    )
    parser.add_argument(
        "--threshold",
        type=float,
        metavar="SHARE",
        help="list pairs with at least this share of the shorter answer, 0 to 1 (default: 0.7)",
    )
    parser.add_argument(
        "--keep-reference",
        action="store_true",
        help="also count code that matches the reference answer",
    )
    add_out(parser, "the page (default: similar.html)", metavar="FILE.html", former="--output")
    add_no_progress(parser)
    parser.set_defaults(call=_similar)


def _similar(options: argparse.Namespace) -> None:
    """Compare the answers, print the pairs and the answers left out, and write the page."""
    similarity = mpilab.course.similarity
    lab = options.lab or mpilab.grading.submission.only_lab(options.submissions)
    exercise = options.exercise or similarity.only_exercise(lab)
    similar = similarity.search(
        options.submissions,
        lab,
        exercise,
        threshold=similarity.THRESHOLD if options.threshold is None else options.threshold,
        keep_reference=options.keep_reference,
        progress=not options.no_progress,
    )
    if similar.chosen:
        print(similarity.table(similar))
    else:
        largest = ""
        if similar.pairs:
            largest = f"; the largest is {similarity.percent(similar.pairs[0].share)}"
        print(f"no pair has a share of {similarity.percent(similar.threshold)} or more{largest}")
    for note in similar.notes:
        print(f"not compared: {plain(note)}")
    page = atomic_write(options.out or Path("similar.html"), similarity.page(similar))
    print(f"\n{similar.compared} answers to {exercise} compared; page: {page}")


# `mpilab leaderboard`: rank a class by simulated time.


def _add_leaderboard(commands: Commands) -> None:
    parser = commands.add_parser(
        "leaderboard",
        help="rank a graded class by simulated time",
        description=LEADERBOARD_DESCRIPTION,
    )
    add_graded(parser)
    parser.add_argument("former", nargs="?", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--names", action="store_true", help="show real names")
    add_unsafe(parser)
    add_no_progress(parser)
    parser.set_defaults(call=_leaderboard)


def _leaderboard(options: argparse.Namespace) -> None:
    """Rank the class, print the table, and write the CSV and the page."""
    leaderboard, marks = mpilab.course.leaderboard, mpilab.grading.marks
    folder, lab = options.folder, options.lab
    if options.former is not None:  # mpilab leaderboard LAB DIR, the former syntax
        folder, lab = options.former, str(options.folder)
        print(f"mpilab: write: mpilab leaderboard {folder} --lab {lab}", file=sys.stderr)
    lab = lab or marks.only_lab(folder)
    board = leaderboard.load(lab)
    with marks.opened(folder, lab) as book:
        verdicts = [run.verdict for run in book.newest(lab)]
    sandbox = mpilab.grading.sandbox.open_sandbox(unsafe=options.unsafe_no_sandbox)
    entries = leaderboard.rank(board, verdicts, sandbox, progress=not options.no_progress)
    students = [one.student for one in entries]
    names = {one: one for one in students}
    if not options.names:
        names = leaderboard.nicknames(students, lab)
    csv, page = folder / "leaderboard.csv", folder / "leaderboard.html"
    leaderboard.write_csv(entries, names, board, csv)
    leaderboard.write_html(entries, names, board, page, board.title)
    print(leaderboard.as_text(entries, names, board))
    print(f"\ntimes: {csv}\npage:  {page}")


# `mpilab collect`: collect a platform's download into folders that can be graded.


def _add_collect(commands: Commands) -> None:
    parser = commands.add_parser(
        "collect",
        help="collect submissions from a platform's download",
        description=COLLECT_DESCRIPTION,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE", help="the download")
    parser.add_argument("dest", type=Path, metavar="DEST", help="folder for 'mpilab grade'")
    add_lab(parser)
    parser.add_argument(
        "--from", dest="layout", choices=LAYOUTS, default="auto", help="the platform"
    )
    parser.add_argument(
        "--prefix",
        default="",
        help="github-classroom: prefix of the folders, before the user's name",
    )
    parser.add_argument(
        "--with-ids", action="store_true", help="append the platform's number to each name"
    )
    parser.add_argument(
        "--roster",
        type=Path,
        metavar="FILE",
        help="the class, with the times of submission: Moodle's grading worksheet, Canvas's "
        "submissions as JSON, the CSV of GitHub Classroom or Gradescope, or one with the columns "
        "student and time",
    )
    parser.add_argument(
        "--zone",
        type=_zone,
        metavar="NAME",
        help="the time zone of times in FILE that name none, e.g. Europe/Berlin (default: that of "
        "this machine)",
    )
    parser.set_defaults(call=_collect)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):
        raise argparse.ArgumentTypeError(
            f"{name!r} is not a time zone; write e.g. Europe/Berlin or UTC"
        ) from None


def _collect(options: argparse.Namespace) -> int:
    """Collect the submissions, and list notes and what was not collected; 1 if anything was not."""
    collected = mpilab.course.collect
    done = collected.collect(
        options.source,
        options.dest,
        options.lab,
        layout=options.layout,
        prefix=options.prefix,
        with_ids=options.with_ids,
        roster=options.roster,
        zone=options.zone,
    )
    print(
        f"{len(done.students)} submissions of {options.lab} from {done.layout}, "
        f"{len(done.changed)} of them new or changed: {options.dest}"
    )
    print(f"times: {options.dest / collected.TABLE}")
    if done.absent:
        print(f"{len(done.absent)} handed in nothing: {', '.join(map(plain, done.absent))}")
    if done.timeless:
        print(
            f"{len(done.timeless)} without a time, which the download does not contain: name the "
            "platform's list with --roster (docs/reporting.md), or fill in the column 'time'",
            file=sys.stderr,
        )
    for note in done.notes:
        print(plain(note), file=sys.stderr)
    for line in done.left:
        print(f"NOT COLLECTED: {plain(line)}", file=sys.stderr)
    return 1 if done.left else 0


# `mpilab release`: create the student versions of labs, and the handout with them.


def _add_release(commands: Commands) -> None:
    parser = commands.add_parser(
        "release",
        help="create the students' labs, and a handout with them",
        description=RELEASE_DESCRIPTION,
        epilog=RELEASE_EXAMPLES,
    )
    parser.add_argument(
        "labs", nargs="*", metavar="LAB", help="names of labs, or all (default: all)"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--handout",
        type=Path,
        metavar="DIR",
        help="the handout: a new folder, or one to add labs to; if it ends in .zip, a zip of it",
    )
    where.add_argument(
        "--nbgrader",
        type=Path,
        metavar="COURSE",
        help="put the labs into a course of nbgrader, whose autograde then calls 'mpilab grade'",
    )
    parser.set_defaults(call=_release)


def _release(options: argparse.Namespace) -> None:
    handout, release = mpilab.course.handout, mpilab.grading.release
    sources = sorted((ROOT / "labs" / "source").glob("*.py"))
    known = [source.stem for source in sources]
    labs = [lab for lab in options.labs if lab != "all"]
    if len(labs) < max(1, len(options.labs)):
        labs += [lab for lab in known if lab not in labs]
    for lab in labs:
        if lab not in known:
            listed = f"write one of {', '.join(known)}, or all{suggestion(lab, [*known, 'all'])}"
            raise InputError(f"lab {lab!r}: no such lab; {listed}")
    if options.handout:
        _tell_handout(handout.handout(options.handout, labs))
        return
    if options.nbgrader:
        _tell_nbgrader(options.nbgrader, labs)
        return
    if not os.access(ROOT / "labs", os.W_OK):
        raise InputError(
            f"{ROOT / 'labs'}: not writable. 'mpilab release LAB --handout DIR' creates a folder "
            "to hand out, 'mpilab new DIR' one to work in"
        )
    for lab in labs:
        source = ROOT / "labs" / "source" / f"{lab}.py"
        print(f"student version: {release.write_release(source, ROOT / 'labs' / f'{lab}.ipynb')}")
        rubric = ROOT / "grading" / lab / "rubric.toml"
        if rubric.is_file():
            path = release.write_checks(rubric, ROOT / "labs" / "checks" / f"{lab}.toml")
            if path:
                print(f"public checks: {path}")
    print(f"first page: {handout.write_start(sources, ROOT / 'labs', ROOT)}")


def _tell_nbgrader(course: Path, labs: list[str]) -> None:
    """Put the labs into a course of nbgrader, and print what remains to be done."""
    export = mpilab.course.export
    for path in export.nbgrader_course(course, labs):
        print(f"nbgrader: {path}")
    config = course / "nbgrader_config.py"
    if "mpilab_config.py" not in config.read_text(encoding="utf-8"):
        print(f"add to {config}, after get_config(): {export.NBGRADER_LOADS}", file=sys.stderr)
    print(f"next, in {course}: nbgrader generate_assignment {labs[0]}")


def _tell_handout(done: Any) -> None:
    """Print what the handout holds, and what the instructor should know about it."""
    print(f"handout: {done.path}\nlabs: {', '.join(done.labs)}")
    for name in done.kept:
        print(
            f"kept: {plain(name)}, which was changed after it was released (a newer version, if "
            "there is one, has .new in its name)",
            file=sys.stderr,
        )
    for file, asking, calling in done.revealed:
        print(
            f"still in the handout: src_c/{file}, for which {asking} asks, because {calling}"
            f" calls it; to keep it back, release {calling} once {asking} has been handed in",
            file=sys.stderr,
        )
