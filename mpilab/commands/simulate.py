"""`mpilab simulate bcast_binomial --platform fat-tree-16x8 --sizes 1K,64K`: simulated times."""

from pathlib import Path


def add(commands):
    """Add the command to argparse's subparsers."""
    parser = commands.add_parser(
        "simulate", help="a kernel on a simulated cluster: deterministic times, up to 4096 ranks"
    )
    parser.add_argument("kernel", nargs="?", help="e.g. bcast_binomial, or one of --file")
    parser.add_argument(
        "--platform", default="flat-4x4", metavar="NAME",
        help="flat-16x8 (hosts x ranks), groups-4x4x8, fat-tree-16x8, torus-4x4x4x8, "
        "dragonfly-4x4x2x8, or a cluster description such as four-groups (default: flat-4x4)",
    )  # fmt: skip
    parser.add_argument("--ranks", type=int, metavar="P",
                        help="default: all slots of the platform; more where each host takes as "
                        "many: a multiple of the hosts, e.g. 1024 on fat-tree-16x8")  # fmt: skip
    parser.add_argument("--sizes", default="1K,64K", metavar="SIZES",
                        help="bytes of a block, e.g. 1K,64K or 1:1M (default: 1K,64K)")  # fmt: skip
    parser.add_argument("--order", default="seq", metavar="ORDER",
                        help="of the ranks: seq, rr, rr-groups, shuffled or random")  # fmt: skip
    parser.add_argument("--seed", type=int, default=1, metavar="N",
                        help="of shuffled and random; default: 1")  # fmt: skip
    parser.add_argument("--root", type=int, default=0, metavar="R")
    parser.add_argument("--segment", default="0", metavar="BYTES", help="e.g. 4096 or 8K")
    parser.add_argument("--file", type=Path, metavar="FILE.c",
                        help="C file that defines the kernel (default: the kit's own)")  # fmt: skip
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows there, too")
    measured = parser.add_argument_group("simulated against measured times, in place of a kernel")
    measured.add_argument("--against", type=Path, metavar="FILE",
                          help="times of a cluster, as 'python -m mpilab.measured_by_level' writes "
                          "them, e.g. data/by-level-four-groups.csv")  # fmt: skip
    measured.add_argument("--distances", type=Path, metavar="FILE",
                          help="what a message costs there, as 'python -m "
                          "mpilab.measured_distances' writes it (default: "
                          "data/distances-four-groups.csv)")  # fmt: skip
    measured.add_argument("--figure", type=Path, metavar="FILE.html", help="draw both there")
    parser.set_defaults(call=call)


def call(options):
    """Print the table; 1 where the kernel does not build or goes wrong."""
    from mpilab.errors import InputError

    if options.against is not None:
        return _against(options)
    if options.kernel is None:
        raise InputError("simulate: what? Name a kernel, e.g. mpilab simulate bcast_binomial, or a "
                         "file of measured times with --against")  # fmt: skip
    return _simulate(options)


def _against(options):
    """Simulate what was measured, and print how well both agree."""
    from mpilab import measured_by_level, measured_distances
    from mpilab.errors import InputError
    from mpilab.simulated import against

    if options.kernel is not None:
        raise InputError(
            f"simulate {options.kernel} --against {options.against}: one or the other; the file "
            "says which kernels there are"
        )
    distances = measured_distances.read(options.distances or measured_distances.MEASURED_CSV)
    measured = measured_by_level.read(options.against)
    rows = against.against(measured, distances, progress=True)
    if options.csv:
        against.write(rows, options.csv)
    if options.figure:
        _draw(rows, options.figure)
    print(measured_distances.as_text(distances))
    print(f"\n{against.by_call(rows)}\n\n{against.as_text(rows)}")
    return 0


def _draw(rows, path):
    """The figure as a page that needs no network."""
    from mpilab.errors import InputError
    from mpilab.plots import style
    from mpilab.plots.against import simulated_against_measured

    figure = simulated_against_measured(rows)
    title = figure.layout.title.text
    page = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f"<title>{title}</title></head>\n<body>\n"
        f"{style.fragment(figure, plotlyjs=True)}\n</body></html>\n"
    )
    try:
        path.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be written: {error.strerror}; name another file"
        ) from None


def _simulate(options):
    import tempfile
    import time

    from mpilab.diagnosis import slips
    from mpilab.errors import BuildError
    from mpilab.panel.text import text
    from mpilab.simulated import build
    from mpilab.simulated.platforms import platform
    from mpilab.simulated.scaling import WrongRun, as_text, scaling, write
    from mpilab.simulated.single import check_kernel
    from mpilab.sweeps.sizes import bytes_of, sizes_of

    sizes, _ = sizes_of(options.sizes)
    where = platform(options.platform)
    ranks = where.description.slots if options.ranks is None else options.ranks
    with tempfile.TemporaryDirectory(prefix="mpilab-simulated-") as folder:
        library = None
        if options.file is None:
            check_kernel(options.kernel)
        else:
            source = _source(options.file)
            try:
                built = build.build(source, folder, name=options.file.name)
            except BuildError as error:
                print(text(slips.diagnose_build(error, source)))
                return 1
            library = built.library
        build.kernels()
        began = time.monotonic()
        try:
            rows = scaling(options.kernel, sizes, where, ranks=ranks, order=options.order,
                           seed=options.seed, root=options.root,
                           segment=bytes_of(options.segment), library=library)  # fmt: skip
        except WrongRun as wrong:
            print(wrong.run)
            return 1
    print(_head(options, where, ranks))
    print(as_text(rows))
    print(f"\nsimulated in {time.monotonic() - began:.1f} s")
    if options.csv:
        write(rows, options.csv)
    return 0


def _head(options, where, ranks):
    """What was simulated, in one line."""
    from mpilab.orders import SEEDED

    order = options.order + (f" with seed {options.seed}" if options.order in SEEDED else "")
    hosts, slots = len(where.description.hosts), where.description.slots
    more = ""
    if ranks > slots:
        more = f" ({ranks // hosts} on each of {hosts} hosts, which have {slots} slots in all)"
    return f"{options.kernel} on {where.name}, {ranks} ranks{more}, {order}"


def _source(file):
    from mpilab.errors import InputError

    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        raise InputError(f"{file}: cannot be read: {reason}; give a C file") from None
