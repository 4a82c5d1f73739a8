"""The command `mpilab`: its parser, and a light module for each group of subcommands.

In: a command line. Out: text or JSON on standard output, notes and errors on standard error, and
the exit status.

run        run, costs, simulate
matrices   matrix, cannon, reads
measure    sweep, bench, learn, rules
cluster    hosts, hostfile, kernelspec, new, update, doctor
grading    grade, marks, regrade, merge, report, rubric
course     collect, export, feedback, similar, leaderboard, release
common     their shared code
"""

import argparse
import sys
from typing import Any

from mpilab import __version__
from mpilab.cli import cluster, course, grading, matrices, measure, run
from mpilab.cli.common import Commands, Parser
from mpilab.util import door
from mpilab.util.kit import revision

# The commands in the order of `mpilab --help`.
GROUPS = {
    "for students": ("new", "update", "doctor", "run", "simulate", "costs", "matrix", "cannon"),
    "for instructors": (
        "collect",
        "grade",
        "marks",
        "regrade",
        "merge",
        "report",
        "export",
        "feedback",
        "similar",
        "leaderboard",
        "rubric",
        "release",
    ),
    "measure and tune": ("sweep", "bench", "reads", "learn", "rules"),
    "clusters and hosts": ("hosts", "hostfile", "kernelspec"),
}


def main(arguments: list[str] | None = None) -> int:
    """Run `mpilab ARGUMENTS`; the exit status: 0, 1 if something is wrong, 2 for bad usage."""
    words = sys.argv[1:] if arguments is None else arguments
    where = " ".join(["mpilab", *(word for word in words[:2] if word[:1].isalpha())])
    return door.run("mpilab", lambda: _call(words), where=where)


def _call(words: list[str]) -> int | None:
    options = measure.options(words) or _parser().parse_args(words)
    return options.call(options)


class _Version(argparse.Action):
    """--version: git is asked for the commit only if the user asks."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        commit = revision()
        print(f"mpilab {__version__}" + f" ({commit})" * bool(commit))
        parser.exit()


def _parser() -> Parser:
    parser = Parser(
        prog="mpilab", description="A lab course in MPI collectives: run, grade, measure."
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="show the version and exit")
    commands = Commands(parser)
    for group in (run, matrices, measure, cluster, grading, course):
        group.add_commands(commands)
    parser.epilog = commands.listing(GROUPS)
    return parser
