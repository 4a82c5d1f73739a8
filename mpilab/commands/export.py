"""`mpilab export`: marks for Moodle, Canvas, Gradescope, nbgrader, or a spreadsheet."""

import sys
from pathlib import Path

from mpilab.errors import InputError

TARGETS = {"csv": "marks.csv", "moodle": "moodle.csv", "canvas": "canvas.csv",
           "gradescope": "gradescope", "nbgrader": "gradebook.db"}  # fmt: skip

DESCRIPTION = """\
Export the marks of a graded class, after manual points, overrides and late penalties. Who has no
final mark (could not be judged, or waits for a person) is never exported as a zero: the command
lists them and stops, or leaves their cells empty with --partial. The exit status is 1 where a
student has no place in the platform's file.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "export",
        help="export marks to Moodle, Canvas, Gradescope, nbgrader or CSV",
        description=DESCRIPTION,
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder with the gradebook")
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.add_argument("--to", required=True, choices=TARGETS, help="for whom")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="PATH",
        help="file (for gradescope: folder) to write; default: " + ", ".join(
            f"OUT/{name}" for name in TARGETS.values()),
    )  # fmt: skip
    parser.add_argument(
        "--partial", action="store_true", help="leave the cells of unfinished students empty"
    )
    parser.add_argument(
        "--roster", type=Path, metavar="FILE.csv",
        help="who is who: a column 'student' and others with identifiers, such as the "
             "submissions.csv of 'mpilab collect'",
    )  # fmt: skip
    parser.add_argument(
        "--template", type=Path, metavar="FILE.csv",
        help="the platform's own file, to be filled: Canvas's exported gradebook (needed), or the "
             "grading worksheet of a Moodle assignment",
    )  # fmt: skip
    parser.add_argument("--column", default="", help="name of the assignment's column of marks")
    parser.add_argument(
        "--match", default="", metavar="COLUMN", help="column of the template that says who it is"
    )
    parser.add_argument(
        "--id-column", default="username", metavar="NAME",
        help="Moodle: header of the identifying column, as in the roster (default: username)",
    )  # fmt: skip
    parser.add_argument(
        "--scale", action="store_true", help="scale marks to the points that the template gives"
    )
    parser.add_argument(
        "--visibility", default="after_published", metavar="WHEN",
        help="Gradescope: when students see tests: visible, after_due_date, after_published "
             "(default) or hidden",
    )  # fmt: skip
    parser.add_argument(
        "--python", type=Path, metavar="PATH", help="nbgrader: a Python that has nbgrader"
    )
    parser.set_defaults(call=call)


def call(options):
    """Write the export, and say who was left out; 1 where a student has no place in it."""
    from mpilab.instructor.exports.gradescope import gradescope
    from mpilab.instructor.exports.nbgrader import nbgrader
    from mpilab.instructor.marks import class_marks
    from mpilab.plain import plain
    from mpilab.whole_file import write_whole

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
    print(f"{len(marks.students) - len(done.without)} of {len(marks.students)} students: "
          f"{write_whole(target, done.text)}")  # fmt: skip
    for student in done.without:
        print(f"NOT EXPORTED, no identifier or row: {plain(student)}", file=sys.stderr)
    for row in done.unmarked:
        print(f"no mark for the row of: {plain(row)}", file=sys.stderr)
    return 1 if done.without else 0


def _table(options, marks):
    """The Exported for one of the CSV targets."""
    from mpilab.instructor.exports import tables

    if options.to == "csv":
        return tables.plain_csv(marks, options.partial)
    roster = tables.read_roster(options.roster) if options.roster else None
    if options.to == "moodle" and not options.template:
        return tables.moodle(marks, column=options.column, identifier=options.id_column,
                             roster=roster, partial=options.partial)  # fmt: skip
    how = {"roster": roster, "match": options.match, "partial": options.partial,
           "scale": options.scale}  # fmt: skip
    if options.to == "moodle":
        return tables.moodle_worksheet(marks, options.template, **how)
    if not (options.template and options.column):
        raise InputError("--to canvas: export the gradebook of the course from Canvas, and give it "
                         "as --template FILE.csv, the assignment as --column NAME")  # fmt: skip
    return tables.canvas(marks, options.template, options.column, **how)
