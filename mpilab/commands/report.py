"""`mpilab report`: what a class has understood, and what not."""

from pathlib import Path

DESCRIPTION = """\
Report on a graded class: what could not be judged, how marks are distributed, which items were
lost by how many, and what goes wrong most often, with an example. As text, and as one HTML page
with figures that needs no network. Students are not named unless asked for, so that it can be shown
to the class.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "report", help="report on a class: distributions, common failures", description=DESCRIPTION
    )
    parser.add_argument("out", type=Path, metavar="OUT", help="folder with the gradebook")
    parser.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE.html", help="the page (default: OUT/report.html)"
    )
    parser.add_argument("--names", action="store_true", help="say which students, too")
    parser.set_defaults(call=call)


def call(options):
    """Print the report and write the page."""
    from mpilab.instructor import report
    from mpilab.instructor.marks import class_marks
    from mpilab.instructor.summary import summary
    from mpilab.whole_file import write_whole

    found = summary(class_marks(options.out, options.lab))
    print(report.text(found, options.names))
    path = options.output or options.out / "report.html"
    print(f"\npage: {write_whole(path, report.html(found, options.names))}")
