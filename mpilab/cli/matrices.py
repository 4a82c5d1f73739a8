"""The commands `mpilab matrix`, `cannon` and `reads`: matrices in files."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from mpilab.cli.common import (
    Commands,
    add_former,
    add_json,
    add_no_progress,
    add_out,
    add_ranks,
    add_reading,
    add_seed,
    add_trace,
    mpilab,
    print_json,
    statistics,
)
from mpilab.errors import InputError
from mpilab.util.units import byte_size, duration

CANNON_DESCRIPTION = """\
C = A B by Cannon's algorithm on a square grid of ranks.

Stage 1: rank 0 reads, and sends blocks point-to-point. Stage 2: the same with collectives. Stage 3:
every rank reads and writes its own blocks with MPI-IO. C is byte-for-byte the same for all stages
and numbers of ranks.

Files have the formats of 'mpilab matrix'. Stages 1 and 2 read binary and text files, stage 3 only
binary files; C is always binary.
"""
MATRIX_DESCRIPTION = """\
Matrix files, binary (two int32, the numbers of rows and columns, then doubles row by row) or text
(a line "ROWS COLUMNS", then a line for each row). The format is detected from the file.
"""
READS_DESCRIPTION = """\
Read the same matrix with each of the kit's readers, and show its requests to the operating system
(all ranks together), the system's own counts, the peak memory of a rank, its time here, and the
time that a model (mpilab.models.file_access) predicts for the same requests on other storage.
"""
READS_EPILOG = """\
The column 'read calls' is a cross-check from /proc/self/io: at least the requests, and perhaps a
few more, because pipes and sockets count, too.

Small requests look cheap if the file is in the page cache. --cold evicts it before each call; this
needs TMPDIR on a disk file system, and a virtual machine's disk may still be in its host's memory.
"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_matrix(commands)
    _add_cannon(commands)
    _add_reads(commands)


# `mpilab cannon 3 -n 4 a.bin b.bin -o c.bin`: multiply matrix files with Cannon's algorithm.


def _add_cannon(commands: Commands) -> None:
    parser = commands.add_parser(
        "cannon",
        help="multiply matrix files by Cannon's algorithm, in one of three stages",
        description=CANNON_DESCRIPTION,
    )
    parser.add_argument("stage", type=int, choices=(1, 2, 3), metavar="STAGE", help="1, 2 or 3")
    parser.add_argument("a", type=Path, metavar="A", help="file of the left matrix")
    parser.add_argument(
        "b",
        type=Path,
        metavar="B",
        help="file of the right matrix, with as many rows as A has columns",
    )
    add_ranks(parser, "number of ranks, a square (default: 4)", default=4)
    add_out(parser, "file of the product (default: discard it)", metavar="C")
    parser.add_argument(
        "--timeout",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="time limit (default: 600)",
    )
    add_former(parser, "--limit", "--timeout", type=float)
    add_trace(parser)
    parser.set_defaults(call=_cannon)


def _cannon(options: argparse.Namespace) -> None:
    """Multiply the matrices, and print the time and memory used."""
    if options.trace:
        mpilab.trace.export.check(options.trace)
    files = (options.a, options.b, options.out)
    done = mpilab.mpiio.cannon.run(options.stage, options.ranks, *files, limit=options.timeout)
    print(done)
    if options.out is not None:
        print(f"C: {options.out}")
    if options.trace:
        print(f"trace: {mpilab.trace.export.write(done.recording, options.trace)}")


# `mpilab matrix make 512x512 a.bin`: create, convert, show, check and multiply matrix files.


def _add_matrix(commands: Commands) -> None:
    parser = commands.add_parser(
        "matrix", help="make, convert, show and check matrix files", description=MATRIX_DESCRIPTION
    )
    parts = parser.add_subparsers(metavar="WHAT", required=True)

    make = _part(parts, "make", "write a matrix of any size, determined by its seed", _make)
    make.add_argument("size", type=_size, metavar="ROWSxCOLUMNS", help="e.g. 512x512")
    make.add_argument("file", type=Path, metavar="FILE")
    add_seed(make, "the elements")
    make.add_argument("--text", action="store_true", help="write text instead of binary")
    make.add_argument(
        "--integers",
        action="store_true",
        help="integers from -9 to 9 instead of reals from -1 to 1",
    )

    for name, what in (("to-text", "text"), ("to-binary", "binary")):
        convert = _part(parts, name, f"write a matrix file as {what}, without loss", _convert)
        convert.add_argument("source", type=Path, metavar="FROM")
        convert.add_argument("target", type=Path, metavar="TO")
        convert.set_defaults(text=what == "text")

    for name, words, call in (
        ("show", "print a matrix, or the corners of a large one", _show_matrix),
        (
            "check",
            "read whole files, and report their contents or errors",
            _check_matrix,
        ),
    ):
        looked_at = _part(parts, name, words, call)
        looked_at.add_argument("files", type=Path, nargs="+", metavar="FILE")

    product = _part(parts, "product", "compute C = A B with numpy, as a reference", _product)
    for name in ("a", "b", "c"):
        product.add_argument(name, type=Path, metavar=name.upper())
    product.add_argument("--text", action="store_true", help="write C as text instead of binary")


def _part(
    parts: Any, name: str, words: str, call: Callable[[argparse.Namespace], int | None]
) -> argparse.ArgumentParser:
    part = parts.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
    part.set_defaults(call=call)
    return part


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write rows x columns, e.g. 512x512"
        )
    return int(found[1]), int(found[2])


def _make(options: argparse.Namespace) -> None:
    mpilab.mpiio.files.make(
        options.file,
        *options.size,
        seed=options.seed,
        text=options.text,
        integers=options.integers,
        progress=sys.stderr.isatty(),
    )
    print(f"{options.size[0]} x {options.size[1]}: {options.file}")


def _convert(options: argparse.Namespace) -> None:
    mpilab.mpiio.files.convert(
        options.source, options.target, text=options.text, progress=sys.stderr.isatty()
    )
    rows, columns = mpilab.mpiio.files.size(options.target)
    print(f"{rows} x {columns}: {options.target}")


def _show_matrix(options: argparse.Namespace) -> None:
    for file in options.files:
        print(f"{file}: {mpilab.mpiio.files.table(file)}")


def _check_matrix(options: argparse.Namespace) -> int:
    wrong = 0
    for file in options.files:
        try:
            print(mpilab.mpiio.files.check(file, progress=sys.stderr.isatty()))
        except InputError as error:
            wrong += 1
            print(f"mpilab: {error}", file=sys.stderr)
    return 1 if wrong else 0


def _product(options: argparse.Namespace) -> None:
    mpilab.mpiio.files.product(options.a, options.b, options.c, text=options.text)
    print(f"{options.a} times {options.b}: {options.c}")


# `mpilab reads`: compare ways of reading a matrix by requests, bytes, memory and time.


def _add_reads(commands: Commands) -> None:
    parser = commands.add_parser(
        "reads",
        help="compare ways to read a matrix: requests, bytes, memory, time",
        description=READS_DESCRIPTION,
        epilog=READS_EPILOG,
    )
    parser.add_argument(
        "--matrix",
        default="2048x2048",
        metavar="WORDS",
        help="'2048x2048', or '2048x2048 by 64x64 on 2x2' for blocks of 64x64 on "
        "a grid of 2x2 ranks (default: 2048x2048)",
    )
    add_ranks(parser, "number of ranks (default: 4)", default=4)
    parser.add_argument(
        "--readers", default="all", metavar="NAMES", help="e.g. strided,two_phase (default: all)"
    )
    add_reading(parser)
    parser.add_argument(
        "--repetitions",
        type=int,
        default=3,
        metavar="N",
        help="timed calls of each reader; 0: count only (default: 3)",
    )
    parser.add_argument(
        "--cold",
        action="store_true",
        help="evict the file from the page cache before each timed call",
    )
    add_no_progress(parser)
    add_json(parser)
    parser.set_defaults(call=_reads)


def _reads(options: argparse.Namespace) -> None:
    """Count the requests, time the reads, and print the table."""
    if options.repetitions < (1 if options.cold else 0):
        needed = "1 or more with --cold" if options.cold else "1 or more, or 0 to count only"
        raise InputError(f"--repetitions {options.repetitions}: must be {needed}")

    chosen = mpilab.mpiio.readers.chosen(options.readers)
    tuned = {"buffer": options.buffer, "aggregators": options.aggregators}
    accounts = mpilab.mpiio.readers.count(options.matrix, options.ranks, chosen, **tuned)
    state = "not timed"
    if options.repetitions:
        seconds, share = mpilab.mpiio.readers.time(
            options.matrix,
            options.ranks,
            chosen,
            **tuned,
            cold=options.cold,
            repetitions=options.repetitions,
            progress=not options.no_progress,
        )
        accounts = [replace(one, seconds=seconds[one.reader]) for one in accounts]
        state = _cache(options.cold, share)
    if options.json:
        print_json(accounts)
        return
    print(f"{options.matrix} doubles on {options.ranks} ranks; {state}\n")
    print(as_text(accounts))


def _cache(cold: bool, share: float | None) -> str:
    if not cold:
        return "the file was in the page cache"
    if share is None:
        return "this system does not report what was in the page cache"
    if share == 0:
        return "no part of the file was in the page cache"
    return (
        f"up to {share:.0%} of the file stayed in the page cache: the times are not cold; set "
        "TMPDIR to a folder on a disk"
    )


def as_text(accounts: Sequence[Any]) -> str:
    """The accounts from mpilab.mpiio.readers as a Markdown table; times are medians."""
    storage = mpilab.models.file_access.STORAGE
    lines = [
        "| reader | requests | most of a rank | ranks that ask | bytes | largest | read calls "
        "| memory | time | " + " | ".join(f"on a {name}" for name in storage) + " |",
        "|---" + 8 * "|---:" + len(storage) * "|---:" + "|",
    ]
    for one in accounts:
        cells = [
            one.reader.name,
            f"{one.requests:,}",
            f"{one.most_requests:,}",
            str(one.asking),
            byte_size(one.bytes),
            byte_size(one.largest),
            "unknown" if one.read_calls is None else f"{one.read_calls:,}",
            "unknown" if one.memory is None else byte_size(one.memory),
            duration(statistics.median(one.seconds)) if one.seconds else "not timed",
            *(duration(one.modeled[name]) for name in storage),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
