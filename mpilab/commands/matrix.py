"""`mpilab matrix make 512x512 a.bin`: make, convert, show, check and multiply matrix files."""

import argparse
import re
import sys
from pathlib import Path

DESCRIPTION = """\
Matrix files, binary (two int32, the numbers of rows and columns, then doubles row by row) or text
(a line "ROWS COLUMNS", then a line for each row). Which one a file is, it says itself.
"""


def add(commands):
    """Add the command, with its own, to argparse's subparsers."""
    parser = commands.add_parser(
        "matrix", help="make, convert, show and check matrix files", description=DESCRIPTION
    )
    parts = parser.add_subparsers(metavar="WHAT", required=True)

    make = _part(parts, "make", "write a matrix of any size, the same for the same seed", _make)
    make.add_argument("size", type=_size, metavar="ROWSxCOLUMNS", help="e.g. 512x512")
    make.add_argument("file", type=Path, metavar="FILE")
    make.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")
    make.add_argument("--text", action="store_true", help="as text; else binary")
    make.add_argument("--integers", action="store_true", help="-9 to 9; else from -1 to 1")

    for name, what in (("to-text", "text"), ("to-binary", "binary")):
        convert = _part(parts, name, f"write a matrix file as {what}; no bit is lost", _convert)
        convert.add_argument("source", type=Path, metavar="FROM")
        convert.add_argument("target", type=Path, metavar="TO")
        convert.set_defaults(text=what == "text")

    for name, words, call in (
        ("show", "print a matrix; of a large one its corners", _show),
        ("check", "read files to their end, and say what is in them, or wrong with them", _check),
    ):
        looked_at = _part(parts, name, words, call)
        looked_at.add_argument("files", type=Path, nargs="+", metavar="FILE")

    product = _part(parts, "product", "C = A B by numpy, to check others against", _product)
    for name in ("a", "b", "c"):
        product.add_argument(name, type=Path, metavar=name.upper())
    product.add_argument("--text", action="store_true", help="write C as text; else binary")


def _part(parts, name, words, call):
    part = parts.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
    part.set_defaults(call=call)
    return part


def _size(text):
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write rows x columns, e.g. 512x512"
        )
    return int(found[1]), int(found[2])


def _make(options):
    from mpilab.matrices.making import make

    make(options.file, *options.size, seed=options.seed, text=options.text,
         integers=options.integers, progress=sys.stderr.isatty())  # fmt: skip
    print(f"{options.size[0]} x {options.size[1]}: {options.file}")


def _convert(options):
    from mpilab.matrices import files
    from mpilab.matrices.making import convert

    convert(options.source, options.target, text=options.text, progress=sys.stderr.isatty())
    rows, columns = files.size(options.target)
    print(f"{rows} x {columns}: {options.target}")


def _show(options):
    from mpilab.matrices.account import table

    for file in options.files:
        print(f"{file}: {table(file)}")


def _check(options):
    from mpilab.errors import InputError
    from mpilab.matrices.account import check

    wrong = 0
    for file in options.files:
        try:
            print(check(file, progress=sys.stderr.isatty()))
        except InputError as error:
            wrong += 1
            print(f"mpilab: {error}", file=sys.stderr)
    return 1 if wrong else 0


def _product(options):
    from mpilab.matrices.products import product

    product(options.a, options.b, options.c, text=options.text)
    print(f"{options.a} times {options.b}: {options.c}")
