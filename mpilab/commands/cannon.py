"""`mpilab cannon 3 -n 4 a.bin b.bin -o c.bin`: multiply matrix files by Cannon's algorithm."""

import argparse
from pathlib import Path

DESCRIPTION = """\
C = A B by Cannon's algorithm on a square grid of ranks.

Stages: 1 rank 0 reads, and sends blocks point-to-point; 2 the same by collectives; 3 every rank
reads and writes its own blocks with MPI-IO. C is the same, byte by byte, for all stages and ranks.

Files are those of 'mpilab matrix'. Stages 1 and 2 read binary and text ones, stage 3 binary ones
only; C is always binary.
"""


def add(commands):
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "cannon", help="multiply matrix files by Cannon's algorithm, in one of three stages",
        description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("stage", type=int, choices=(1, 2, 3), metavar="STAGE", help="1, 2 or 3")
    parser.add_argument("a", type=Path, metavar="A", help="file of the left matrix")
    parser.add_argument("b", type=Path, metavar="B",
                        help="file of the right one: as many rows as A has columns")  # fmt: skip
    parser.add_argument("-n", "--ranks", type=int, default=4, metavar="P",
                        help="a square number; default: 4")  # fmt: skip
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="C",
        help="file of the product; default: it is thrown away",
    )
    parser.add_argument("--limit", type=float, default=600.0, metavar="SECONDS",
                        help="that it may take; default: 600")  # fmt: skip
    parser.set_defaults(call=call)


def call(options):
    """Print where the time and the memory went."""
    from mpilab.matrices import cannon

    print(cannon.run(options.stage, options.ranks, options.a, options.b, options.out,
                     limit=options.limit))  # fmt: skip
    if options.out is not None:
        print(f"C: {options.out}")
