"""`mpilab run`: run a kernel once, and show what it did."""

import tempfile
from pathlib import Path

from mpilab.commands.arguments import positive, size
from mpilab.errors import InputError

# As harness.Case numbers them.
REMAPS = ("by-topology", "seq-to-rr", "rr-to-seq")


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
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
    parser.set_defaults(call=call)


def call(options):
    """Run the kernel, and print what it did; 1 if it went wrong."""
    from mpilab.allocation import shared_folder
    from mpilab.build import KERNELS, need
    from mpilab.kernelrun import KernelRun
    from mpilab.launch import run_cases
    from mpilab.panel import log

    case = _case(options)
    with tempfile.TemporaryDirectory(prefix="mpilab-run-", dir=shared_folder()) as folder:
        library = _compile(options, folder) if options.source else need(KERNELS)
        if library is None:
            return 1
        (result,) = run_cases(library, options.kernel, [case], sanitize=options.sanitize)
        run = KernelRun(options.kernel, result)
        print(run)
        if run.diagnosis is not None and run.diagnosis.log:
            kept = log.keep(run.diagnosis.log, kind=run.diagnosis.kind)
            if kept is not None:
                print(f"What Open MPI itself said: {kept}")
    return 0 if run.right else 1


def _case(options):
    """The Case that is asked for; InputError where there is no such kernel."""
    from mpilab.harness import Case
    from mpilab.kernelrun import usual
    from mpilab.orders import places_of
    from mpilab.promises import kernels_of

    if options.sanitize and options.source is None:
        raise InputError("--sanitize: what is to be compiled? Give it by --source FILE.c")
    collective = options.kernel.partition("_")[0]
    ours = [*kernels_of(collective), f"{collective}_openmpi"]
    if options.source is None and options.kernel not in ours:
        raise InputError(
            f"kernel {options.kernel!r}: the kit has none of that name; it has {', '.join(ours)}. "
            "A file of your own goes by --source FILE.c"
        )
    count, datatype, matrix = usual(collective, options.count, options.datatype, options.matrix)
    places = places_of(options.places) if options.places else ()
    ranks = options.ranks or len(places) or 4
    return Case(collective, ranks, count, datatype, options.in_place, places=places,
                strict=options.strict, root=options.root, op=options.op, segment=options.segment,
                fanout=options.fanout, radix=options.radix, remap=REMAPS.index(options.remap),
                budget=options.budget, pattern=options.pattern, matrix=matrix,
                buffer=options.buffer, aggregators=options.aggregators)  # fmt: skip


def _compile(options, folder):
    """The shared object of the user's file; None, and why is printed, where it cannot be one."""
    from mpilab.build import build
    from mpilab.diagnosis import slips
    from mpilab.diagnosis.missing_function import missing_function
    from mpilab.diagnosis.world import diagnose_world
    from mpilab.errors import BuildError
    from mpilab.panel.text import text
    from mpilab.symbols import defined

    source = options.source.read_text(encoding="utf-8")
    name = options.source.name
    try:
        built = build(source, folder, name=name, sanitize=options.sanitize)
    except BuildError as error:
        print(text(slips.diagnose_build(error, source)))
        return None
    for told in (
        slips.diagnose_warnings(built.warnings, source),
        diagnose_world(source, built.object),
    ):
        if told is not None:
            print(text(told))
    names = defined(built.object)
    if options.kernel not in names:
        print(text(missing_function(options.kernel, names, what=name)))
        return None
    return built.library
