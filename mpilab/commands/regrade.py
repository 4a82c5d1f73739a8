"""`mpilab regrade`: judge one exercise again for a whole class."""

import sys
from pathlib import Path

from mpilab.commands.arguments import positive

DESCRIPTION = """\
Judge one exercise again for the whole class, after its part of the rubric has changed; verdicts on
the other exercises, and what people have decided, stay. Refused where the rubric of another
exercise has changed as well. Whoever has handed in another file since is named, for 'mpilab grade',
and the exit status is 1.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "regrade", help="judge one exercise again for a whole class", description=DESCRIPTION
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
    parser.set_defaults(call=call)


def call(options):
    """Regrade, print the table and what has changed; 1 where somebody is left."""
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
