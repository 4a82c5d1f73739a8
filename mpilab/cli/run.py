"""The commands `mpilab run`, `costs` and `simulate`."""

import argparse
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpilab.cli.common import (
    Commands,
    add_json,
    add_out,
    add_ranks,
    add_reading,
    add_root,
    add_seed,
    add_segment,
    add_source,
    add_trace,
    add_tree,
    mpilab,
    print_json,
    write_page,
)
from mpilab.errors import BuildError, InputError
from mpilab.util.files import read_text
from mpilab.util.units import positive, ranks_of, size, sizes_of

# Indexes are the values of mpilab.cases.case.Case.remap.
REMAPS = ("by-topology", "seq-to-rr", "rr-to-seq")


def add_commands(commands: Commands) -> None:
    """Add the commands of this module."""
    _add_run(commands)
    _add_simulate(commands)
    _add_costs(commands)


# `mpilab run`: run a kernel once, and print its result, traffic and time.


def _add_run(commands: Commands) -> None:
    parser = commands.add_parser("run", help="run a kernel once, and show what it did")
    parser.add_argument("kernel", help="name of the kernel, e.g. allgather_ring")
    add_ranks(parser, "number of ranks (default: 4, or that of --places)", type=positive)
    parser.add_argument(
        "--places",
        default="",
        metavar="WORDS",
        help="places that the ranks report: '2x2x4 rr' (groups x nodes x ranks and an order: seq, "
        "rr, rr-groups, shuffled or random with a seed), 'four-groups rr', or 'a/n1 a/n1 b/n2'",
    )
    parser.add_argument(
        "--count",
        type=size,
        metavar="N",
        help="elements per block, e.g. 7 or 64K (default: 4; none in a barrier)",
    )
    parser.add_argument(
        "--datatype",
        metavar="NAME",
        help="datatype of the elements (default: int; double in a read)",
    )
    add_root(parser)
    parser.add_argument("--op", default="sum", help="reductions: operation, sum or compose")
    add_segment(parser)
    add_tree(parser)
    add_seed(parser, "the data in the buffers")
    parser.add_argument(
        "--remap",
        choices=REMAPS,
        default=REMAPS[0],
        help=f"how kernels called …_remapped assign ranks to processes (default: {REMAPS[0]})",
    )
    parser.add_argument(
        "--budget",
        type=size,
        default=0,
        metavar="BYTES",
        help="maximum bytes of other ranks' data on a rank (default: the algorithm's own)",
    )
    parser.add_argument(
        "--memory",
        type=size,
        default=0,
        metavar="BYTES",
        help="memory that a rank may have during the call, beyond what it has before (Linux; "
        "default: no limit)",
    )
    parser.add_argument(
        "--pattern", default="even", help="alltoallv: amounts of data: even, ragged or sparse"
    )
    parser.add_argument(
        "--matrix",
        default="",
        metavar="WORDS",
        help="reads: the matrix: '12x10', or '12x10 by 4x2 on 2x3' for blocks of 4x2 on a "
        "grid of 2x3 ranks (default: 12x12)",
    )
    add_reading(parser)
    parser.add_argument("--in-place", action="store_true", help="call the kernel with MPI_IN_PLACE")
    parser.add_argument(
        "--strict",
        action="store_true",
        help="MPI_Send becomes MPI_Ssend: reliance on buffering hangs visibly",
    )
    parser.add_argument(
        "--reversed", action="store_true", help="the communicator has the ranks in reverse order"
    )
    parser.add_argument(
        "--sequence",
        default="",
        metavar="NAME",
        help="call the kernel several times: again, roots (from other roots first), duplicate "
        "(then on a duplicate of the communicator), or parts (on all ranks, on some, on all "
        "again)",
    )
    parser.add_argument(
        "--unused",
        action="store_true",
        help="no valid value where MPI ignores an argument, such as a gather's receive count "
        "except at the root",
    )
    add_source(parser)
    parser.add_argument(
        "--sanitize",
        action="store_true",
        help="compile FILE.c with AddressSanitizer and UndefinedBehaviorSanitizer",
    )
    add_trace(parser)
    add_json(parser)
    parser.set_defaults(call=_run)


def _run(options: argparse.Namespace) -> int:
    """Run the kernel, and print its result, traffic and time; 1 if the result is wrong."""
    case = _case(options)
    if options.trace:
        mpilab.trace.export.check(options.trace)
    shared = mpilab.hosts.slurm.shared_folder()
    with tempfile.TemporaryDirectory(prefix="mpilab-run-", dir=shared) as folder:
        if options.source:
            library, told = _compile(options, folder)
        else:
            build = mpilab.kernels.build
            library, told = build.need(build.KERNELS), []
        if not options.json:
            for diagnosis in told:
                print(mpilab.diagnosis.render.text(diagnosis))
        if library is None:
            if options.json:
                print_json(_not_run(options.kernel, case, told))
            return 1
        run_cases = mpilab.runners.mpirun.run_cases
        (result,) = run_cases(library, options.kernel, [case], sanitize=options.sanitize)
        run = mpilab.notebook.session.KernelRun(options.kernel, result)
        if options.json:
            print_json({**run.as_json(), "compiler": told})
        else:
            _print_run(run)
        if options.trace:
            if result.recording is None:
                raise InputError(f"{options.trace}: no trace, because the run left no recording")
            trace = mpilab.trace.export.write(result.recording, options.trace)
            print(f"trace: {trace}", file=sys.stderr if options.json else sys.stdout)
    return 0 if run.right else 1


def _print_run(run: Any) -> None:
    print(run)
    if run.diagnosis is not None and run.diagnosis.log:
        kept = mpilab.notebook.panel.keep(run.diagnosis.log, kind=run.diagnosis.kind)
        if kept is not None:
            print(f"Output of Open MPI: {kept}")


def _not_run(kernel: str, case: Any, told: Sequence[Any]) -> dict[str, Any]:
    """The JSON of a kernel that did not compile."""
    return {
        "kernel": kernel,
        "case": case,
        "outcome": "not compiled",
        "right": False,
        "compiler": told,
    }


def _case(options: argparse.Namespace) -> Any:
    """The Case that the options describe; InputError if there is no such kernel."""
    if options.sanitize and options.source is None:
        raise InputError("--sanitize: no file to compile; add --source FILE.c")
    collective = options.kernel.partition("_")[0]
    declared = mpilab.models.declared
    ours = declared.runnable(collective)
    if options.source is None and options.kernel not in ours:
        otherwise = "Pass your own file with --source FILE.c"
        raise declared.unknown_kernel(options.kernel, ours, otherwise)
    count, datatype, matrix = mpilab.notebook.session.usual(
        collective, options.count, options.datatype, options.matrix
    )
    places = mpilab.hosts.orders.places_of(options.places) if options.places else ()
    ranks = options.ranks or len(places) or 4
    return mpilab.cases.case.Case(
        collective,
        ranks,
        count,
        datatype,
        options.in_place,
        options.reversed,
        places=places,
        strict=options.strict,
        seed=options.seed,
        root=options.root,
        op=options.op,
        segment=options.segment,
        fanout=options.fanout,
        radix=options.radix,
        remap=REMAPS.index(options.remap),
        budget=options.budget,
        memory=options.memory,
        pattern=options.pattern,
        matrix=matrix,
        buffer=options.buffer,
        aggregators=options.aggregators,
        sequence=options.sequence,
        unused=options.unused,
    )


def _compile(options: argparse.Namespace, folder: str) -> tuple[Any, list[Any]]:
    """Build the user's file: (shared object or None, diagnoses of errors or warnings)."""
    compiler = mpilab.diagnosis.compiler
    source = read_text(options.source, "give a C file")
    name = options.source.name
    try:
        built = mpilab.kernels.build.build(source, folder, name=name, sanitize=options.sanitize)
    except BuildError as error:
        return None, [compiler.diagnose_build(error, source)]
    found = (
        compiler.diagnose_warnings(built.warnings, source),
        mpilab.diagnosis.collectives.diagnose_world(source, built.object),
    )
    told = [one for one in found if one is not None]
    defined = mpilab.kernels.symbols.defined(built.object)
    if options.kernel not in defined:
        missing = compiler.missing_function(options.kernel, defined, what=name)
        return None, [*told, missing]
    return built.library, told


# `mpilab costs bcast`: compare the costs declared in the kernels' headers with recordings: rounds,
# messages and bytes; with --places, bytes between nodes and between groups; for reads, requests to
# the file and bytes.


def _add_costs(commands: Commands) -> None:
    parser = commands.add_parser(
        "costs",
        help="compare the declared costs of kernels with recorded ones",
        description="Compare what the headers of our kernels declare with recordings: rounds, "
        "messages and\nbytes, and the requests of kernels that read files.",
    )
    parser.add_argument(
        "collective", nargs="?", default="all", help="e.g. bcast, or 'all' (default: all)"
    )
    add_ranks(parser, "numbers of ranks (default: 2,4,8)", metavar="2,4,8", type=str)
    parser.add_argument(
        "--places",
        metavar="WORDS",
        help="places that the ranks report, e.g. 'four-groups rr' or '2x2x4 "
        "shuffled 7': show the traffic between nodes and groups",
    )
    parser.add_argument(
        "--count",
        type=size,
        default=1000,
        metavar="N",
        help=("ints in a block, or in the message of a bcast, reduce or allreduce (default: 1000)"),
    )
    add_segment(parser)
    add_tree(parser)
    add_root(parser, "; -1 is the last rank")
    parser.add_argument(
        "--matrix",
        default="64x64",
        metavar="WORDS",
        help="reads: the matrix: '12x10', or '12x10 by 4x2 on 2x3' for blocks of 4x2 on a "
        "grid of 2x3 (default: 64x64)",
    )
    add_reading(parser)
    add_json(parser)
    parser.set_defaults(call=_costs)


def _costs(options: argparse.Namespace) -> int:
    """Print the table; 1 if a kernel deviates from the costs that its header declares."""
    if options.places:
        return _internode_costs(options)
    declared, collectives = mpilab.models.declared, mpilab.cases.case.COLLECTIVES
    rows = []
    for name in list(collectives) if options.collective == "all" else [options.collective]:
        rows += declared.check_costs(
            name,
            ranks=ranks_of(options.ranks or "2,4,8"),
            count=options.count,
            segment=options.segment,
            fanout=options.fanout,
            radix=options.radix,
            root=options.root,
            matrix=options.matrix,
            buffer=options.buffer,
            aggregators=options.aggregators,
        )
    broken = sum(not row.agrees for row in rows)
    if options.json:
        print_json([{**row._asdict(), "agrees": row.agrees} for row in rows])
    else:
        print(declared.as_text(rows))
        print(f"\n{len(rows) - broken} of {len(rows)} match their header")
    return 1 if broken else 0


def _internode_costs(options: argparse.Namespace) -> int:
    """Print the traffic between nodes and groups; 1 if it deviates from a header."""
    if options.ranks:
        raise InputError("costs: --places already gives the number of ranks; remove --ranks")
    inter_node, collectives = mpilab.measure.inter_node, mpilab.cases.case.COLLECTIVES
    every = options.collective == "all"
    rows = []
    for name in filter(inter_node.is_counted, collectives) if every else [options.collective]:
        rows += inter_node.traffic(
            name,
            options.places,
            count=options.count,
            segment=options.segment,
            fanout=options.fanout,
            radix=options.radix,
            root=options.root,
        )
    told = [row for row in rows if row.known]
    broken = sum(not row.agrees for row in told)
    if options.json:
        print_json([{**row._asdict(), "known": row.known, "agrees": row.agrees} for row in rows])
        return 1 if broken else 0
    print(inter_node.as_text(rows))
    print(
        f"\n{len(told) - broken} of {len(told)} match their header; the other headers declare "
        "nothing"
    )
    return 1 if broken else 0


# `mpilab simulate bcast_binomial --platform fat-tree-16x8 --sizes 1K,64K`: print simulated times.


def _add_simulate(commands: Commands) -> None:
    parser = commands.add_parser(
        "simulate", help="time a kernel on a simulated cluster, up to 4096 ranks"
    )
    parser.add_argument("kernel", nargs="?", help="name of the kernel, e.g. bcast_binomial")
    parser.add_argument(
        "--platform",
        default="flat-4x4",
        metavar="NAME",
        help="flat-16x8 (hosts x ranks), groups-4x4x8, fat-tree-16x8, torus-4x4x4x8, "
        "dragonfly-4x4x2x8, or a cluster description such as four-groups (default: flat-4x4)",
    )
    add_ranks(
        parser,
        "number of ranks (default: all slots of the platform); for more, a multiple of the "
        "number of hosts, e.g. 1024 on fat-tree-16x8",
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
        help="order of the ranks: seq, rr, rr-groups, shuffled or random",
    )
    add_seed(parser, "the orders shuffled and random")
    add_root(parser)
    add_segment(parser)
    add_source(parser, former="--file")
    add_out(parser, "also write the rows to this file, as CSV", metavar="FILE.csv", former="--csv")
    add_json(parser)
    measured = parser.add_argument_group(
        "compare simulated with measured times, instead of a kernel"
    )
    measured.add_argument(
        "--against",
        type=Path,
        metavar="FILE",
        help=(
            "measured times of a cluster, from 'python -m mpilab.measure.by_level', e.g. "
            "data/by-level-four-groups.csv"
        ),
    )
    measured.add_argument(
        "--distances",
        type=Path,
        metavar="FILE",
        help="cost of a message there, from 'python -m mpilab.measure.level_costs' (default: "
        "data/distances-four-groups.csv)",
    )
    measured.add_argument(
        "--figure", type=Path, metavar="FILE.html", help="write a figure of both to this file"
    )
    parser.set_defaults(call=_simulate)


def _simulate(options: argparse.Namespace) -> int:
    """Print the table of simulated times; 1 if the kernel does not build or its run fails."""
    if options.against is not None:
        return _against(options)
    if options.kernel is None:
        raise InputError(
            "simulate: no kernel given; name one, e.g. mpilab simulate bcast_binomial, or a file "
            "of measured times with --against"
        )
    return _scaling(options)


def _against(options: argparse.Namespace) -> int:
    """Simulate the measured cases, and print how well the times agree."""
    if options.kernel is not None:
        raise InputError(
            f"simulate {options.kernel} --against {options.against}: give only one of them; the "
            "file names its own kernels"
        )
    against, costs = mpilab.measure.against, mpilab.measure.level_costs
    distances = costs.read(options.distances)
    measured = mpilab.measure.by_level.read(options.against)
    rows = against.against(measured, distances, progress=True)
    if options.out:
        against.write(rows, options.out)
    if options.figure:
        write_page(mpilab.plots.distances.simulated_against_measured(rows), options.figure)
    if options.json:
        print_json(rows)
        return 0
    print(costs.as_text(distances))
    print(f"\n{against.by_call(rows)}\n\n{against.as_text(rows)}")
    return 0


def _scaling(options: argparse.Namespace) -> int:
    simulated = mpilab.notebook.simulated
    sizes, _ = sizes_of(options.sizes)
    where = mpilab.hosts.platforms.platform(options.platform)
    ranks = where.description.slots if options.ranks is None else options.ranks
    with tempfile.TemporaryDirectory(prefix="mpilab-simulated-") as folder:
        library = None
        if options.source is None:
            simulated.check_kernel(options.kernel)
        else:
            source, name = read_text(options.source, "give a C file"), options.source.name
            try:
                library = mpilab.kernels.simgrid.build(source, folder, name=name).library
            except BuildError as error:
                found = mpilab.diagnosis.compiler.diagnose_build(error, source)
                if options.json:
                    print_json({"kernel": options.kernel, "right": False, "compiler": [found]})
                else:
                    print(mpilab.diagnosis.render.text(found))
                return 1
        mpilab.kernels.simgrid.kernels()
        began = time.monotonic()
        try:
            rows = simulated.scaling(
                options.kernel,
                sizes,
                where,
                ranks=ranks,
                order=options.order,
                seed=options.seed,
                root=options.root,
                segment=options.segment,
                library=library,
            )
        except simulated.WrongRun as wrong:
            if options.json:
                print_json(wrong.run.as_json())
            else:
                print(wrong.run)
            return 1
    if options.json:
        print_json(rows)
    else:
        print(_head(options, where, ranks))
        print(simulated.as_text(rows))
        print(f"\nsimulated in {time.monotonic() - began:.1f} s")
    if options.out:
        simulated.write(rows, options.out)
    return 0


def _head(options: argparse.Namespace, where: Any, ranks: int) -> str:
    """A line that says what was simulated."""
    chosen = mpilab.hosts.orders.RankOrder(options.order, options.seed)
    order = chosen.name + (f" with seed {chosen.seed}" if chosen.is_seeded else "")
    hosts, slots = len(where.description.hosts), where.description.slots
    more = ""
    if ranks > slots:
        more = f" ({ranks // hosts} on each of {hosts} hosts, which have {slots} slots in all)"
    return f"{options.kernel} on {where.name}, {ranks} ranks{more}, {order}"
