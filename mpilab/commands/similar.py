"""`mpilab similar`: which answers in C of a class resemble each other more than they should."""

from pathlib import Path

DESCRIPTION = """\
Compare all answers in C to one exercise, pair by pair, by winnowed fingerprints of their tokens:
other names, numbers, layout, comments and order of functions change nothing. What the lab gave to
all, and what is as in the reference answer, does not count. Prints the pairs, and writes a page
with both answers side by side. A large share is a reason to read both, not a proof.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "similar", help="which answers of a class resemble each other", description=DESCRIPTION
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
    parser.set_defaults(call=call)


def call(options):
    """Compare, print the pairs and who was left out, write the page."""
    from mpilab.plain import plain
    from mpilab.similarity.page import page, percent, table
    from mpilab.similarity.search import THRESHOLD, search
    from mpilab.whole_file import write_whole

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
    print(f"\n{similar.compared} answers to {options.exercise} compared; "
          f"page: {write_whole(options.output, page(similar))}")  # fmt: skip
