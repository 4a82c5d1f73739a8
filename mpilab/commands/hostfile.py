"""`mpilab hostfile four-groups --order shuffled`: a hostfile for `mpirun --map-by seq`."""

from pathlib import Path

DESCRIPTION = """\
Write a hostfile with a line for each rank, for 'mpirun --hostfile FILE --map-by seq'.
"""


def add(commands):
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "hostfile", help="write a hostfile in an order of yours", description=DESCRIPTION
    )  # fmt: skip
    parser.add_argument("cluster", help="a cluster description: four-groups, campus, my.toml")
    parser.add_argument("--order", default="seq", metavar="NAME",
                        help="seq (default), rr, rr-groups, shuffled or random")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="of shuffled and random; default: 1")  # fmt: skip
    parser.add_argument("--ranks", type=int, metavar="P", help="default: all slots")
    parser.add_argument("--ppn", type=int, metavar="N", help="ranks a host, at most")
    parser.add_argument("--hosts", type=int, metavar="N",
                        help="how many, taken from each group in turn")  # fmt: skip
    parser.add_argument("-o", "--out", type=Path, metavar="FILE", help="default: print it")
    parser.set_defaults(call=call)


def call(options):
    """Print the hostfile, or write it to a file."""
    from mpilab import descriptions, orders

    cluster = descriptions.read(options.cluster)
    names = orders.order(cluster, options.order, ranks=options.ranks, ppn=options.ppn,
                         hosts=options.hosts, seed=options.seed)  # fmt: skip
    if options.out is None:
        print(orders.hostfile_text(names, cluster), end="")
        return
    orders.write_hostfile(options.out, names, cluster)
    print(f"{len(names)} ranks on {len(set(names))} hosts: {options.out}")
