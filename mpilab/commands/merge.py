"""`mpilab merge`: put the gradebooks of a class that was graded in shares together."""

import sys
from pathlib import Path

DESCRIPTION = """\
Merge gradebooks into one, with one CSV and one folder of feedback: those that 'mpilab grade --share
K/N' has made, each in a folder of its own. The history is kept; merging twice changes nothing.
Gradebooks of different labs or rubrics are refused. With --submissions, whoever has no verdict (a
share's job failed) is listed as ungradable, and the exit status is 1.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "merge", help="merge the gradebooks of a class graded in shares", description=DESCRIPTION
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
    parser.set_defaults(call=call)


def call(options):
    """Merge, print the table, and say who is missing; 1 where somebody is."""
    from mpilab.grading.merge import merge

    done = merge(options.out, options.folders, submissions=options.submissions, lab=options.lab)
    print(done.table)
    print(f"\n{len(done.verdicts)} submissions of {done.lab} merged from {len(options.folders)} "
          f"gradebooks; {done.added} runs were new")  # fmt: skip
    print(f"marks:     {done.out / 'grades.csv'}")
    print(f"gradebook: {done.out / 'gradebook.sqlite'}")
    print(f"feedback:  {done.out / 'feedback'}/STUDENT.html")
    for note in done.notes:
        print(note, file=sys.stderr)
    if done.missing:
        print(f"NOT GRADED: {', '.join(done.missing)}", file=sys.stderr)
    return 1 if done.missing else 0
