"""The commands `mpilab run`, `costs`, `sweep` and `simulate`."""

import argparse
import sys
import tempfile
from pathlib import Path

from mpilab.errors import InputError
from mpilab.util.arguments import positive, size

# `mpilab costs bcast`: compare the costs declared in the kernels' headers with recordings: rounds,
# messages and bytes; with --places, bytes between nodes and between groups; for reads, requests to
# the file and bytes.


def add_costs(commands):
    """Add the command to `commands`, argparse's subparsers."""
    costs = commands.add_parser(
        "costs",
        help="rounds, messages and bytes of our kernels, or requests of those that read: by their "
        "headers, and as recorded",
    )
    costs.add_argument("collective", help="e.g. bcast, or 'all'")
    costs.add_argument("--ranks", metavar="P,P", help="default: 2,4,8")
    costs.add_argument(
        "--places",
        metavar="WORDS",
        help="where the ranks pretend to be, e.g. 'four-groups rr' or '2x2x4 "
        "shuffled 7': show what crosses between nodes and groups",
    )
    costs.add_argument(
        "--count",
        type=int,
        default=1000,
        metavar="N",
        help="ints of a block, or of the whole message of a bcast, reduce or "
        "allreduce (default: 1000)",
    )
    costs.add_argument("--segment", default="0", metavar="BYTES", help="e.g. 4096 or 1K")
    costs.add_argument("--fanout", type=int, default=0, metavar="K")
    costs.add_argument("--radix", type=int, default=0, metavar="K")
    costs.add_argument("--root", type=int, default=0, metavar="R", help="-1 is the last rank")
    costs.add_argument(
        "--matrix",
        default="64x64",
        metavar="WORDS",
        help="of a read: '12x10', or '12x10 by 4x2 on 2x3' for blocks of 4x2 on a "
        "grid of 2x3 (default: 64x64)",
    )
    costs.add_argument(
        "--buffer", default="0", metavar="BYTES", help="of a read: what one request is for at most"
    )
    costs.add_argument(
        "--aggregators", type=int, default=0, metavar="A", help="of a read: ranks that read for all"
    )
    costs.set_defaults(call=call_costs)


def call_costs(options):
    """Print the table; 1 if a kernel deviates from the costs that its header declares."""
    from mpilab.cases.case import COLLECTIVES
    from mpilab.models.declared import as_text as promises_text
    from mpilab.models.declared import promises
    from mpilab.util.units import bytes_of, ranks_of

    if options.places:
        return _crossings(options)
    names = list(COLLECTIVES) if options.collective == "all" else [options.collective]
    rows = []
    for name in names:
        rows += promises(
            name,
            ranks=ranks_of(options.ranks or "2,4,8"),
            count=options.count,
            segment=bytes_of(options.segment),
            fanout=options.fanout,
            radix=options.radix,
            root=options.root,
            matrix=options.matrix,
            buffer=bytes_of(options.buffer),
            aggregators=options.aggregators,
        )
    print(promises_text(rows))
    broken = sum(not row.kept for row in rows)
    print(f"\n{len(rows) - broken} of {len(rows)} as the header says")
    return 1 if broken else 0


def _crossings(options):
    """Print the traffic between nodes and groups; 1 if it deviates from a header."""
    from mpilab.cases.case import COLLECTIVES
    from mpilab.errors import InputError
    from mpilab.measure.crossings import as_text as crossings_text
    from mpilab.measure.crossings import crosses, crossings
    from mpilab.util.units import bytes_of

    if options.ranks:
        raise InputError("costs: --places says how many ranks there are; leave --ranks out")
    every = options.collective == "all"
    rows = []
    for name in filter(crosses, COLLECTIVES) if every else [options.collective]:
        rows += crossings(
            name,
            options.places,
            count=options.count,
            segment=bytes_of(options.segment),
            fanout=options.fanout,
            radix=options.radix,
            root=options.root,
        )
    print(crossings_text(rows))
    told = [row for row in rows if row.known]
    broken = sum(not row.kept for row in told)
    print(
        f"\n{len(told) - broken} of {len(told)} as the header says; the others' headers say nothing"
    )
    return 1 if broken else 0


# `mpilab sweep`: time algorithms over numbers of ranks and message sizes, and print medians.

SWEEP_DESCRIPTION = """\
Time algorithms of a collective over ranks and message sizes: our kernels and Open MPI's own.

Killed at any time and started again with the same options, it does only what is missing.
"""
EPILOG = """\
How often a point is timed: by default a quarter of what OMB does (1000 times after 100 that are not
timed; above 8 KiB 100 and 10), divided again by the number of ranks that share a core, but at least
20 after 3. As OMB itself: --repetitions 1000 --warmup 100.
"""


def add_sweep(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "sweep",
        help="time algorithms over ranks and message sizes",
        description=SWEEP_DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "collective",
        nargs="?",
        metavar="COLLECTIVE",
        help="bcast, gather, scatter, reduce, allgather, allreduce or barrier",
    )
    parser.add_argument("--ranks", default="2,4", metavar="2,4,8", help="default: 2,4")
    parser.add_argument(
        "--sizes",
        default="1:64K",
        metavar="1:1M",
        help="bytes, or powers of two from:to; of a block in allgather, gather and "
        "scatter, else of the message (default: 1:64K)",
    )
    parser.add_argument(
        "--algorithms",
        default="ours,openmpi",
        metavar="NAMES",
        help="ours, openmpi, or single ones: ours:pipeline, openmpi:3, "
        "openmpi:binomial, openmpi:default (default: ours,openmpi)",
    )
    parser.add_argument(
        "--segment",
        default="0",
        metavar="8K",
        help="bytes of a segment (default: each algorithm's own)",
    )
    parser.add_argument("--fanout", type=int, default=0, metavar="K", help="chains, or children")
    parser.add_argument("--radix", type=int, default=0, metavar="K", help="of k-nomial trees")
    parser.add_argument("--root", type=int, default=0, metavar="R")
    parser.add_argument("--repetitions", type=int, metavar="N", help="timed calls of each point")
    parser.add_argument("--warmup", type=int, metavar="N", help="calls before them")
    parser.add_argument(
        "--choose",
        choices=("mpi_t", "mca"),
        help="how Open MPI's algorithms are chosen: in one running program, or by "
        "settings of an mpirun for each (default: mpi_t where Open MPI is 5.0.6 or "
        "later)",
    )
    parser.add_argument(
        "-o", "--out", type=Path, metavar="FILE.csv", help="where the rows go; needed"
    )
    parser.add_argument(
        "--summary",
        type=Path,
        metavar="FILE.csv",
        help="measure nothing, print the medians of this file",
    )
    parser.add_argument(
        "--measure",
        default="span_s",
        choices=("span_s", "mean_s", "max_s", "min_s"),
        help="what the medians are of: last exit - first entry (span_s), or the "
        "ranks' own durations; OMB's is mean_s (default: span_s)",
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call_sweep)


def call_sweep(options):
    """Run a sweep, or read one from a file, and print medians with confidence intervals."""
    from mpilab.errors import InputError
    from mpilab.measure import sweep, sweep_table
    from mpilab.util.units import bytes_of

    if options.summary is not None:
        rows = sweep_table.read(options.summary)
        print(sweep_table.text(sweep_table.summarise(rows, options.measure), options.measure))
        return 0
    if options.collective is None:
        raise InputError(
            "sweep: of what? Name a collective, e.g. mpilab sweep bcast -o bcast.csv, "
            "or a file to summarise with --summary FILE.csv"
        )
    if options.out is None:
        raise InputError("sweep: where should the rows go? Add -o FILE.csv")
    report = sweep.Report()
    table = sweep.sweep(
        options.collective,
        ranks=options.ranks,
        sizes=options.sizes,
        algorithms=options.algorithms,
        segment=bytes_of(options.segment),
        fanout=options.fanout,
        radix=options.radix,
        root=options.root,
        repetitions=options.repetitions,
        warmup=options.warmup,
        out=options.out,
        progress=not options.no_progress,
        report=report,
        choose=options.choose,
    )
    print(sweep_table.text(sweep_table.summarise(table, options.measure), options.measure))
    for line in report.lines():
        print(line, file=sys.stderr)
    print(f"{len(table)} rows: {options.out}", file=sys.stderr)
    return 0 if len(table) else 1


# `mpilab simulate bcast_binomial --platform fat-tree-16x8 --sizes 1K,64K`: print simulated times.


def add_simulate(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "simulate", help="a kernel on a simulated cluster: deterministic times, up to 4096 ranks"
    )
    parser.add_argument("kernel", nargs="?", help="e.g. bcast_binomial, or one of --file")
    parser.add_argument(
        "--platform",
        default="flat-4x4",
        metavar="NAME",
        help="flat-16x8 (hosts x ranks), groups-4x4x8, fat-tree-16x8, torus-4x4x4x8, "
        "dragonfly-4x4x2x8, or a cluster description such as four-groups (default: flat-4x4)",
    )
    parser.add_argument(
        "--ranks",
        type=int,
        metavar="P",
        help="default: all slots of the platform; more where each host takes as "
        "many: a multiple of the hosts, e.g. 1024 on fat-tree-16x8",
    )
    parser.add_argument(
        "--sizes",
        default="1K,64K",
        metavar="SIZES",
        help="bytes of a block, e.g. 1K,64K or 1:1M (default: 1K,64K)",
    )
    parser.add_argument(
        "--order",
        default="seq",
        metavar="ORDER",
        help="of the ranks: seq, rr, rr-groups, shuffled or random",
    )
    parser.add_argument(
        "--seed", type=int, default=1, metavar="N", help="of shuffled and random; default: 1"
    )
    parser.add_argument("--root", type=int, default=0, metavar="R")
    parser.add_argument("--segment", default="0", metavar="BYTES", help="e.g. 4096 or 8K")
    parser.add_argument(
        "--file",
        type=Path,
        metavar="FILE.c",
        help="C file that defines the kernel (default: the kit's own)",
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write the rows there, too")
    measured = parser.add_argument_group("simulated against measured times, in place of a kernel")
    measured.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help="times of a cluster, as 'python -m mpilab.datasets.by_level' writes "
        "them, e.g. data/by-level-four-groups.csv",
    )
    measured.add_argument(
        "--distances",
        type=Path,
        metavar="FILE",
        help="what a message costs there, as 'python -m "
        "mpilab.datasets.distances' writes it (default: "
        "data/distances-four-groups.csv)",
    )
    measured.add_argument("--figure", type=Path, metavar="FILE.html", help="draw both there")
    parser.set_defaults(call=call_simulate)


def call_simulate(options):
    """Print the table of simulated times; 1 if the kernel does not build or its run fails."""
    from mpilab.errors import InputError

    if options.against is not None:
        return _against(options)
    if options.kernel is None:
        raise InputError(
            "simulate: what? Name a kernel, e.g. mpilab simulate bcast_binomial, or a "
            "file of measured times with --against"
        )
    return _simulate(options)


def _against(options):
    """Simulate the measured cases, and print how well the times agree."""
    from mpilab.datasets import against, by_level
    from mpilab.datasets import distances as measured_distances
    from mpilab.errors import InputError

    if options.kernel is not None:
        raise InputError(
            f"simulate {options.kernel} --against {options.against}: one or the other; the file "
            "says which kernels there are"
        )
    distances = measured_distances.read(options.distances)
    measured = by_level.read(options.against)
    rows = against.against(measured, distances, progress=True)
    if options.csv:
        against.write(rows, options.csv)
    if options.figure:
        _draw(rows, options.figure)
    print(measured_distances.as_text(distances))
    print(f"\n{against.by_call(rows)}\n\n{against.as_text(rows)}")
    return 0


def _draw(rows, path):
    """Write the figure as an HTML page that needs no network."""
    from mpilab.errors import InputError
    from mpilab.plots import style
    from mpilab.plots.distances import simulated_against_measured

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

    from mpilab.diagnosis import compiler
    from mpilab.diagnosis.render import text
    from mpilab.errors import BuildError
    from mpilab.hosts.platforms import platform
    from mpilab.kernels import simgrid as simulated_build
    from mpilab.notebook.simulated import WrongRun, as_text, check_kernel, scaling, write
    from mpilab.util.units import bytes_of, sizes_of

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
                built = simulated_build.build(source, folder, name=options.file.name)
            except BuildError as error:
                print(text(compiler.diagnose_build(error, source)))
                return 1
            library = built.library
        simulated_build.kernels()
        began = time.monotonic()
        try:
            rows = scaling(
                options.kernel,
                sizes,
                where,
                ranks=ranks,
                order=options.order,
                seed=options.seed,
                root=options.root,
                segment=bytes_of(options.segment),
                library=library,
            )
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
    """A line that says what was simulated."""
    from mpilab.hosts.orders import RankOrder

    chosen = RankOrder(options.order, options.seed)
    order = chosen.name + (f" with seed {chosen.seed}" if chosen.is_seeded else "")
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


# `mpilab run`: run a kernel once, and print its result, traffic and time.

# Indexes are the values of mpilab.cases.case.Case.remap.
REMAPS = ("by-topology", "seq-to-rr", "rr-to-seq")


def add_run(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser("run", help="run a kernel once, and show what it did")
    parser.add_argument("kernel", help="name of the kernel, e.g. allgather_ring")
    parser.add_argument("--ranks", type=positive, metavar="P", help="default: 4, or that of places")
    parser.add_argument(
        "--places",
        default="",
        metavar="WORDS",
        help="where the ranks pretend to be: '2x2x4 rr' (groups x nodes x ranks and an order: seq, "
        "rr, rr-groups, shuffled or random with a seed), 'four-groups rr', or 'a/n1 a/n1 b/n2'",
    )
    parser.add_argument(
        "--count",
        type=size,
        metavar="N",
        help="elements a block, e.g. 7 or 64K (default: 4; none in a barrier)",
    )
    parser.add_argument("--datatype", metavar="NAME", help="default: int; double in a read")
    parser.add_argument("--root", type=int, default=0, metavar="R", help="rank of the root")
    parser.add_argument("--op", default="sum", help="of a reduction: sum, or compose")
    parser.add_argument(
        "--segment",
        type=size,
        default=0,
        metavar="BYTES",
        help="size of a segment, e.g. 4096 or 64K (default: the algorithm's own)",
    )
    parser.add_argument("--fanout", type=int, default=0, metavar="K", help="children of a rank")
    parser.add_argument("--radix", type=int, default=0, metavar="K", help="of a k-nomial tree")
    parser.add_argument(
        "--remap",
        choices=REMAPS,
        default=REMAPS[0],
        help=f"as which rank a process behaves in kernels called …_remapped (default: {REMAPS[0]})",
    )
    parser.add_argument(
        "--budget",
        type=size,
        default=0,
        metavar="BYTES",
        help="what a rank may hold of other ranks' data (default: the algorithm's own)",
    )
    parser.add_argument(
        "--pattern", default="even", help="who sends how much: even, ragged or sparse (alltoallv)"
    )
    parser.add_argument(
        "--matrix",
        default="",
        metavar="WORDS",
        help="that a read kernel reads: '12x10', or '12x10 by 4x2 on 2x3' for blocks of 4x2 on a "
        "grid of 2x3 ranks (default: 12x12)",
    )
    parser.add_argument(
        "--buffer",
        type=size,
        default=0,
        metavar="BYTES",
        help="what one request to a file is for at most (default: the algorithm's own)",
    )
    parser.add_argument(
        "--aggregators", type=int, default=0, metavar="A", help="ranks that read for all"
    )
    parser.add_argument("--in-place", action="store_true")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="MPI_Send becomes MPI_Ssend: reliance on buffering hangs visibly",
    )
    parser.add_argument(
        "--source",
        type=Path,
        metavar="FILE.c",
        help="C file that defines the kernel (default: the kit's own)",
    )
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="compile FILE.c with AddressSanitizer and UndefinedBehaviorSanitizer",
    )
    parser.set_defaults(call=call_run)


def call_run(options):
    """Run the kernel, and print its result, traffic and time; 1 if the result is wrong."""
    from mpilab.hosts.slurm import shared_folder
    from mpilab.kernels.build import KERNELS, need
    from mpilab.notebook import panel
    from mpilab.notebook.session import KernelRun
    from mpilab.runners.mpirun import run_cases

    case = _case(options)
    with tempfile.TemporaryDirectory(prefix="mpilab-run-", dir=shared_folder()) as folder:
        library = _compile(options, folder) if options.source else need(KERNELS)
        if library is None:
            return 1
        (result,) = run_cases(library, options.kernel, [case], sanitize=options.sanitize)
        run = KernelRun(options.kernel, result)
        print(run)
        if run.diagnosis is not None and run.diagnosis.log:
            kept = panel.keep(run.diagnosis.log, kind=run.diagnosis.kind)
            if kept is not None:
                print(f"What Open MPI itself said: {kept}")
    return 0 if run.right else 1


def _case(options):
    """The Case that the options describe; InputError if there is no such kernel."""
    from mpilab.cases.case import Case
    from mpilab.hosts.orders import places_of
    from mpilab.models.declared import kernels_of, unknown_kernel
    from mpilab.notebook.session import usual

    if options.sanitize and options.source is None:
        raise InputError("--sanitize: what is to be compiled? Give it by --source FILE.c")
    collective = options.kernel.partition("_")[0]
    ours = [*kernels_of(collective), f"{collective}_openmpi"]
    if options.source is None and options.kernel not in ours:
        raise unknown_kernel(options.kernel, ours, "Pass your own file with --source FILE.c")
    count, datatype, matrix = usual(collective, options.count, options.datatype, options.matrix)
    places = places_of(options.places) if options.places else ()
    ranks = options.ranks or len(places) or 4
    return Case(
        collective,
        ranks,
        count,
        datatype,
        options.in_place,
        places=places,
        strict=options.strict,
        root=options.root,
        op=options.op,
        segment=options.segment,
        fanout=options.fanout,
        radix=options.radix,
        remap=REMAPS.index(options.remap),
        budget=options.budget,
        pattern=options.pattern,
        matrix=matrix,
        buffer=options.buffer,
        aggregators=options.aggregators,
    )


def _compile(options, folder):
    """Build the shared object of the user's file; print why and return None if that fails."""
    from mpilab.diagnosis import compiler
    from mpilab.diagnosis.collectives import diagnose_world
    from mpilab.diagnosis.compiler.causes import missing_function
    from mpilab.diagnosis.render import text
    from mpilab.errors import BuildError
    from mpilab.kernels.build import build
    from mpilab.kernels.symbols import defined

    source = options.source.read_text(encoding="utf-8")
    name = options.source.name
    try:
        built = build(source, folder, name=name, sanitize=options.sanitize)
    except BuildError as error:
        print(text(compiler.diagnose_build(error, source)))
        return None
    for told in (
        compiler.diagnose_warnings(built.warnings, source),
        diagnose_world(source, built.object),
    ):
        if told is not None:
            print(text(told))
    names = defined(built.object)
    if options.kernel not in names:
        print(text(missing_function(options.kernel, names, what=name)))
        return None
    return built.library
