"""`mpilab costs bcast`: what the kernels' headers promise, beside what recordings show.

Of a bcast, rounds, messages and bytes, or with --places, bytes between nodes and between groups; of
a read, requests to the file and bytes.
"""


def add(commands):
    """Add the command to argparse's subparsers."""
    costs = commands.add_parser(
        "costs",
        help="rounds, messages and bytes of our kernels, or requests of those that read: by their "
        "headers, and as recorded",
    )
    costs.add_argument("collective", help="e.g. bcast, or 'all'")
    costs.add_argument("--ranks", metavar="P,P", help="default: 2,4,8")
    costs.add_argument("--places", metavar="WORDS",
                       help="where the ranks pretend to be, e.g. 'four-groups rr' or '2x2x4 "
                       "shuffled 7': show what crosses between nodes and groups")  # fmt: skip
    costs.add_argument("--count", type=int, default=1000, metavar="N",
                       help="ints of a block, or of the whole message of a bcast, reduce or "
                       "allreduce (default: 1000)")  # fmt: skip
    costs.add_argument("--segment", default="0", metavar="BYTES", help="e.g. 4096 or 1K")
    costs.add_argument("--fanout", type=int, default=0, metavar="K")
    costs.add_argument("--radix", type=int, default=0, metavar="K")
    costs.add_argument("--root", type=int, default=0, metavar="R", help="-1 is the last rank")
    costs.add_argument("--matrix", default="64x64", metavar="WORDS",
                       help="of a read: '12x10', or '12x10 by 4x2 on 2x3' for blocks of 4x2 on a "
                       "grid of 2x3 (default: 64x64)")  # fmt: skip
    costs.add_argument("--buffer", default="0", metavar="BYTES",
                       help="of a read: what one request is for at most")  # fmt: skip
    costs.add_argument("--aggregators", type=int, default=0, metavar="A",
                       help="of a read: ranks that read for all")  # fmt: skip
    costs.set_defaults(call=call)


def call(options):
    """Print the table; 1 where a kernel does not keep what its header promises."""
    from mpilab.expected import COLLECTIVES
    from mpilab.promises import as_text, promises
    from mpilab.sweeps.sizes import bytes_of, ranks_of

    if options.places:
        return _crossings(options)
    names = list(COLLECTIVES) if options.collective == "all" else [options.collective]
    rows = []
    for name in names:
        rows += promises(name, ranks=ranks_of(options.ranks or "2,4,8"), count=options.count,
                         segment=bytes_of(options.segment), fanout=options.fanout,
                         radix=options.radix, root=options.root, matrix=options.matrix,
                         buffer=bytes_of(options.buffer),
                         aggregators=options.aggregators)  # fmt: skip
    print(as_text(rows))
    broken = sum(not row.kept for row in rows)
    print(f"\n{len(rows) - broken} of {len(rows)} as the header says")
    return 1 if broken else 0


def _crossings(options):
    """Print what crosses; 1 where it is not what a header says."""
    from mpilab.crossings import as_text, crosses, crossings
    from mpilab.errors import InputError
    from mpilab.expected import COLLECTIVES
    from mpilab.sweeps.sizes import bytes_of

    if options.ranks:
        raise InputError("costs: --places says how many ranks there are; leave --ranks out")
    every = options.collective == "all"
    rows = []
    for name in filter(crosses, COLLECTIVES) if every else [options.collective]:
        rows += crossings(name, options.places, count=options.count,
                          segment=bytes_of(options.segment), fanout=options.fanout,
                          radix=options.radix, root=options.root)  # fmt: skip
    print(as_text(rows))
    told = [row for row in rows if row.known]
    broken = sum(not row.kept for row in told)
    print(f"\n{len(told) - broken} of {len(told)} as the header says; the others' headers say "
          "nothing")  # fmt: skip
    return 1 if broken else 0
