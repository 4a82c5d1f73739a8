"""`mpilab collect`: bring what a platform lets you download into folders that can be graded."""

import sys
from pathlib import Path

LAYOUTS = ("auto", "moodle", "canvas", "github-classroom", "nbgrader")

DESCRIPTION = """\
Collect a class's submissions from a platform's download, a folder or a zip, into
DEST/STUDENT/LAB.ipynb, and write DEST/submissions.csv: who, when, late or not, the platform's
number, and which file it was. Of several files the newest is taken; links are not followed;
whatever was not understood is listed, and the exit status is 1 then. Can be run again after another
download.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "collect", help="collect submissions from a platform's download", description=DESCRIPTION
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
    parser.set_defaults(call=call)


def call(options):
    """Collect, and list what was doubtful and what was not understood; 1 where there is any."""
    from mpilab.instructor.collecting.collect import TABLE, collect
    from mpilab.plain import plain

    done = collect(options.source, options.dest, options.lab, layout=options.layout,
                   prefix=options.prefix, with_ids=options.with_ids)  # fmt: skip
    print(f"{len(done.students)} submissions of {options.lab} from {done.layout}, "
          f"{len(done.changed)} of them new or changed: {options.dest}")  # fmt: skip
    print(f"times: {options.dest / TABLE}")
    unknown = sum(piece.time is None for piece in done.students.values())
    if unknown:
        print(f"{unknown} without a time: the download does not tell it", file=sys.stderr)
    for note in done.notes:
        print(plain(note), file=sys.stderr)
    for line in done.left:
        print(f"NOT COLLECTED: {plain(line)}", file=sys.stderr)
    return 1 if done.left else 0
