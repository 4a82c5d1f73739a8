"""`mpilab reads`: ways of reading a matrix side by side, by requests, bytes, memory and time."""

import argparse
from statistics import median

DESCRIPTION = """\
Let each of the kit's readers read the same matrix, and show what it asks the operating system for
(all ranks together), what the system counts by itself, the memory of the rank that needs most, its
time here, and the time that the same requests would take on other storage, by a model
(mpilab.models.file_access).
"""
EPILOG = """\
Read calls are a cross-check, what /proc/self/io counts: at least the requests, and maybe a few
more, as pipes and sockets count too.

Small requests look cheap where the file is in the page cache. --cold throws it out before each
call; that needs a file system on a disk below TMPDIR, and the virtual disk of a virtual machine may
still be in its host's memory.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "reads", help="ways of reading a matrix: requests, bytes, memory, time",
        description=DESCRIPTION, epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--matrix", default="2048x2048", metavar="WORDS",
                        help="'2048x2048', or '2048x2048 by 64x64 on 2x2' for blocks of 64x64 on "
                        "a grid of 2x2 ranks (default: 2048x2048)")  # fmt: skip
    parser.add_argument("--ranks", type=int, default=4, metavar="P", help="default: 4")
    parser.add_argument("--readers", default="all", metavar="NAMES",
                        help="e.g. strided,two_phase (default: all)")  # fmt: skip
    parser.add_argument("--buffer", default="0", metavar="BYTES",
                        help="what one request is for at most, e.g. 1M (default: each one's own); "
                        "MPI-IO takes it as a hint")  # fmt: skip
    parser.add_argument("--aggregators", type=int, default=0, metavar="A",
                        help="ranks that read for all (default: each one's own); MPI-IO takes "
                        "it as a hint, ROMIO from a file")  # fmt: skip
    parser.add_argument("--repetitions", type=int, default=3, metavar="N",
                        help="timed calls of each; 0: count only (default: 3)")  # fmt: skip
    parser.add_argument(
        "--cold",
        action="store_true",
        help="throw the file out of the page cache before each timed call",
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call)


def call(options):
    """Count, time, and print the table."""
    from dataclasses import replace

    from mpilab import readers
    from mpilab.errors import InputError
    from mpilab.sweeps.sizes import bytes_of

    if options.repetitions < (1 if options.cold else 0):
        needed = "1 or more with --cold" if options.cold else "1 or more, or 0 to count only"
        raise InputError(f"--repetitions {options.repetitions}: has to be {needed}")

    chosen = readers.chosen(options.readers)
    tuned = {"buffer": bytes_of(options.buffer), "aggregators": options.aggregators}
    accounts = readers.count(options.matrix, options.ranks, chosen, **tuned)
    state = "not timed"
    if options.repetitions:
        seconds, share = readers.time(
            options.matrix, options.ranks, chosen, **tuned, cold=options.cold,
            repetitions=options.repetitions, progress=not options.no_progress,
        )  # fmt: skip
        accounts = [replace(one, seconds=seconds[one.reader]) for one in accounts]
        state = _cache(options.cold, share)
    print(f"{options.matrix} doubles on {options.ranks} ranks; {state}\n")
    print(as_text(accounts))


def _cache(cold, share):
    if not cold:
        return "the file was in the page cache"
    if share is None:
        return "this system does not tell what was in the page cache"
    if share == 0:
        return "nothing of the file was in the page cache"
    return (
        f"up to {share:.0%} of the file stayed in the page cache: times are not cold ones; set "
        "TMPDIR to a folder on a disk"
    )


def as_text(accounts):
    """Accounts of mpilab.readers as a Markdown table; times are medians."""
    from mpilab.models.file_access import STORAGE
    from mpilab.plots.style import byte_size, duration

    lines = [
        "| reader | requests | most of a rank | ranks that ask | bytes | largest | read calls "
        "| memory | time | " + " | ".join(f"on a {name}" for name in STORAGE) + " |",
        "|---" + 8 * "|---:" + len(STORAGE) * "|---:" + "|",
    ]
    for one in accounts:
        cells = [
            one.reader.name, f"{one.requests:,}", f"{one.most_requests:,}", str(one.asking),
            byte_size(one.bytes), byte_size(one.largest),
            "unknown" if one.read_calls is None else f"{one.read_calls:,}",
            "unknown" if one.memory is None else byte_size(one.memory),
            duration(median(one.seconds)) if one.seconds else "not timed",
            *(duration(one.modelled[name]) for name in STORAGE),
        ]  # fmt: skip
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
