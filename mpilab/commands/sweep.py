"""`mpilab sweep`: time algorithms over ranks and message sizes, and print medians."""

import argparse
import sys
from pathlib import Path

DESCRIPTION = """\
Time algorithms of a collective over ranks and message sizes: our kernels and Open MPI's own.

Killed at any time and started again with the same options, it does only what is missing.
"""
EPILOG = """\
How often a point is timed: by default a quarter of what OMB does (1000 times after 100 that are not
timed; above 8 KiB 100 and 10), divided again by the number of ranks that share a core, but at least
20 after 3. As OMB itself: --repetitions 1000 --warmup 100.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "sweep", help="time algorithms over ranks and message sizes", description=DESCRIPTION,
        epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument(
        "collective",
        nargs="?",
        metavar="COLLECTIVE",
        help="bcast, gather, scatter, reduce, allgather, allreduce or barrier",
    )
    parser.add_argument("--ranks", default="2,4", metavar="2,4,8", help="default: 2,4")
    parser.add_argument("--sizes", default="1:64K", metavar="1:1M",
                        help="bytes, or powers of two from:to; of a block in allgather, gather and "
                        "scatter, else of the message (default: 1:64K)")  # fmt: skip
    parser.add_argument("--algorithms", default="ours,openmpi", metavar="NAMES",
                        help="ours, openmpi, or single ones: ours:pipeline, openmpi:3, "
                        "openmpi:binomial, openmpi:default (default: ours,openmpi)")  # fmt: skip
    parser.add_argument("--segment", default="0", metavar="8K",
                        help="bytes of a segment (default: each algorithm's own)")  # fmt: skip
    parser.add_argument("--fanout", type=int, default=0, metavar="K", help="chains, or children")
    parser.add_argument("--radix", type=int, default=0, metavar="K", help="of k-nomial trees")
    parser.add_argument("--root", type=int, default=0, metavar="R")
    parser.add_argument("--repetitions", type=int, metavar="N", help="timed calls of each point")
    parser.add_argument("--warmup", type=int, metavar="N", help="calls before them")
    parser.add_argument("--choose", choices=("mpi_t", "mca"),
                        help="how Open MPI's algorithms are chosen: in one running program, or by "
                        "settings of an mpirun for each (default: mpi_t where Open MPI is 5.0.6 or "
                        "later)")  # fmt: skip
    parser.add_argument("-o", "--out", type=Path, metavar="FILE.csv",
                        help="where the rows go; needed")  # fmt: skip
    parser.add_argument("--summary", type=Path, metavar="FILE.csv",
                        help="measure nothing, print the medians of this file")  # fmt: skip
    parser.add_argument("--measure", default="span_s",
                        choices=("span_s", "mean_s", "max_s", "min_s"),
                        help="what the medians are of: last exit - first entry (span_s), or the "
                        "ranks' own durations; OMB's is mean_s (default: span_s)")  # fmt: skip
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call)


def call(options):
    """Run the sweep, or read its file, and print medians with confidence intervals."""
    from mpilab import sweeps
    from mpilab.errors import InputError
    from mpilab.sweeps import summary
    from mpilab.sweeps.sizes import bytes_of

    if options.summary is not None:
        print(summary.text(sweeps.summarise(sweeps.read(options.summary), options.measure),
                           options.measure))  # fmt: skip
        return 0
    if options.collective is None:
        raise InputError("sweep: of what? Name a collective, e.g. mpilab sweep bcast -o bcast.csv, "
                         "or a file to summarise with --summary FILE.csv")  # fmt: skip
    if options.out is None:
        raise InputError("sweep: where should the rows go? Add -o FILE.csv")
    report = sweeps.Report()
    table = sweeps.sweep(
        options.collective, ranks=options.ranks, sizes=options.sizes,
        algorithms=options.algorithms, segment=bytes_of(options.segment), fanout=options.fanout,
        radix=options.radix, root=options.root, repetitions=options.repetitions,
        warmup=options.warmup, out=options.out, progress=not options.no_progress, report=report,
        choose=options.choose,
    )  # fmt: skip
    print(summary.text(sweeps.summarise(table, options.measure), options.measure))
    for line in report.lines():
        print(line, file=sys.stderr)
    print(f"{len(table)} rows: {options.out}", file=sys.stderr)
    return 0 if len(table) else 1
