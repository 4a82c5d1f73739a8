"""`mpilab leaderboard`: rank a class by simulated time."""

from pathlib import Path

DESCRIPTION = """\
Rank the answers of a class that has been graded by simulated time, on the clusters of
grading/LAB/leaderboard.toml. Wrong answers are not ranked. Writes leaderboard.csv and
leaderboard.html into the folder OUT, with nicknames in the place of names.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "leaderboard", help="rank a graded class by simulated time", description=DESCRIPTION
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
    parser.set_defaults(call=call)


def call(options):
    """Rank, print the table, and write CSV and page."""
    from mpilab.errors import InputError
    from mpilab.grading import leaderboard, leaderboard_page
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
    leaderboard_page.write_csv(entries, names, board, csv)
    leaderboard_page.write_html(entries, names, board, page, board.title)
    print(leaderboard_page.as_text(entries, names, board))
    print(f"\ntimes: {csv}\npage:  {page}")
    return 0
