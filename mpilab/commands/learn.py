"""`mpilab learn`: time our kernels on a cluster, and write rules that choose the fastest."""

import argparse
from pathlib import Path

COLLECTIVES = "bcast,reduce,gather,allgather,allreduce,alltoallv"
DESCRIPTION = """\
Time our kernels on the hosts of a cluster description, and learn from it which one to use for how
many ranks, ranks a host, groups and bytes. The rules go to a file that COLLECTIVE_auto reads:

    mpilab learn four-groups -o my.rules
    MPILAB_RULES=my.rules mpirun ...

The hosts of a description are emulated on this machine. 'mpilab learn slurm -o my.rules' in a Slurm
job measures on its nodes; their groups are the switches that Slurm knows.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    parser = commands.add_parser(
        "learn", help="learn which kernel to use on a cluster", description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("cluster", metavar="CLUSTER",
                        help="a description, e.g. four-groups, or slurm")  # fmt: skip
    parser.add_argument("--collectives", default=COLLECTIVES, metavar="NAMES",
                        help=f"default: {COLLECTIVES}")  # fmt: skip
    parser.add_argument("--sizes", default="64,16K,256K", metavar="64,16K",
                        help="bytes: of a block in gather, allgather and alltoallv, else of the "
                        "message (default: 64,16K,256K)")  # fmt: skip
    parser.add_argument("--orders", default="seq,rr,shuffled", metavar="NAMES",
                        help="of the ranks (default: seq,rr,shuffled)")  # fmt: skip
    parser.add_argument(
        "--ppn",
        default="",
        metavar="1,2",
        help="ranks a host, if fewer than its slots are to be tried too",
    )
    parser.add_argument("--repetitions", type=int, default=7, metavar="N")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE.rules")
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call)


def call(options):
    """Measure, learn, write, and tell what the rules and the published ones would have lost."""
    from mpilab import decisions, learning
    from mpilab.errors import InputError
    from mpilab.sweeps.sizes import sizes_of

    # All of it now: to measure takes minutes.
    if not options.out.parent.is_dir() or options.out.is_dir():
        raise InputError(f"{options.out}: no file can be made there; write to a folder that exists")
    collectives, orders, ppn = _collectives(options), _orders(options), _ppn(options)
    found = learning.measure(
        options.cluster,
        collectives=collectives,
        sizes=sizes_of(options.sizes)[0],
        orders=orders,
        ppn=ppn,
        repetitions=options.repetitions,
        progress=not options.no_progress,
    )
    rules = decisions.learn([one for one in found if not one.is_openmpis])
    remark = learning.remark(options.cluster, found)
    print(learning.report(rules, found))
    try:
        options.out.write_text(decisions.as_text(rules, remark), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{options.out}: cannot be written: {error.strerror}; write to a folder of yours"
        ) from None
    print(f"{len(rules)} rules: {options.out}")
    return 0


def _collectives(options):
    from mpilab.expected import collective_of

    names = [name.strip() for name in options.collectives.split(",")]
    for name in names:
        collective_of(name)
    return names


def _orders(options):
    from mpilab.errors import InputError
    from mpilab.orders import ORDERS

    names = [name.strip() for name in options.orders.split(",")]
    for name in names:
        if name not in ORDERS:
            raise InputError(f"--orders: {name!r} is unknown; take some of {', '.join(ORDERS)}")
    return names


def _ppn(options):
    """Numbers of ranks a host; None for all slots."""
    from mpilab.errors import InputError
    from mpilab.sweeps.sizes import ranks_of

    if not options.ppn:
        return None
    try:
        return list(ranks_of(options.ppn))
    except InputError:
        raise InputError(f"--ppn {options.ppn}: write ranks a host from 1 on, e.g. 1,2") from None
