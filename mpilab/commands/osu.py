"""`mpilab bench osu_bcast ...`: the table of an OSU micro-benchmark."""

import argparse
import sys


def options(arguments=None):
    """What `mpilab ARGUMENTS` asks of OSU's benchmarks; None where it is about something else."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] != ["bench"] or not arguments[1:2] or not arguments[1].startswith("osu_"):
        return None
    parsed = _parser(arguments[1]).parse_args(arguments[2:])
    parsed.benchmark, parsed.call = arguments[1], call
    return parsed


def _parser(benchmark):
    from mpilab.osu.benchmarks import BENCHMARKS

    if benchmark not in BENCHMARKS:
        argparse.ArgumentParser(prog="mpilab bench", usage="mpilab bench osu_NAME [options]").error(
            f"there is no benchmark {benchmark!r}; take one of {', '.join(BENCHMARKS)}"
        )
    kind = BENCHMARKS[benchmark]
    parser = argparse.ArgumentParser(
        prog=f"mpilab bench {benchmark}",
        description=f"Print the table of OSU's {benchmark}. OMB's own program is run where it is "
        "on PATH, otherwise the kit's, which measures as OMB 7.3 does.",
    )
    usual = "2, and no other" if kind.is_between_two else "4"
    parser.add_argument("--ranks", type=int, metavar="P", help=f"default: {usual}")
    parser.add_argument("-i", "--iterations", type=int, metavar="N",
                        help="timed iterations of a size; default 1000 (10000 in osu_latency, 100 "
                        "in osu_bw), above 8 KiB 100 (1000, 20)")  # fmt: skip
    parser.add_argument("-x", "--warmup", type=int, metavar="N",
                        help="iterations before them that are not timed; default 100 (osu_bw: 10), "
                        "above 8 KiB 10 (2)")  # fmt: skip
    parser.add_argument("-m", "--message-size", metavar="[MIN:]MAX", dest="sizes",
                        help="message sizes in bytes, doubled from MIN on; default "
                        f"1:{kind.largest}")  # fmt: skip
    parser.add_argument("-f", "--full", action="store_true",
                        help="collectives: also the least and the largest mean of a rank, and the "
                        "iterations")  # fmt: skip
    parser.add_argument("-c", "--validation", action="store_true", dest="validate",
                        help="compare each result with what it should be")  # fmt: skip
    parser.add_argument("-u", "--validation-warmup", type=int, metavar="N", dest="before_each",
                        help="calls before each timed one: always in osu_latency and osu_bw, in "
                        "collectives with -c; default 5")  # fmt: skip
    parser.add_argument("-W", "--window-size", type=int, metavar="N", dest="window",
                        help="osu_bw: messages sent before an answer; default 64")  # fmt: skip
    parser.add_argument("-M", "--mem-limit", type=int, metavar="BYTES", dest="memory",
                        help="collectives: memory for the blocks of all ranks; default "
                        "512 MiB")  # fmt: skip
    parser.add_argument("--mca", nargs=2, action="append", default=[], metavar=("NAME", "VALUE"),
                        help="an MCA parameter of Open MPI, e.g. "
                        "--mca coll_tuned_use_dynamic_rules 1 "
                        "--mca coll_tuned_bcast_algorithm 3")  # fmt: skip
    parser.add_argument("--cpu-list", metavar="0,1",
                        help="rank r runs on the r-th of these CPUs (--map-by "
                        "pe-list=0,1:ordered --bind-to core in Open MPI 5)")  # fmt: skip
    parser.add_argument("--map-by", metavar="WORDS", help="mpirun's option, passed on as it is")
    parser.add_argument("--own", action="store_true",
                        help="the kit's program, even where OMB's is on PATH")  # fmt: skip
    return parser


def call(options):
    """Print the table line by line; 1 where a result was wrong."""
    from tqdm import tqdm

    from mpilab.osu.benchmarks import benchmark_of
    from mpilab.osu.options import Options
    from mpilab.osu.runs import run

    asked = {name: getattr(options, name) for name in
             ("ranks", "iterations", "warmup", "sizes", "full", "validate", "before_each",
              "window", "memory")}  # fmt: skip
    rows = Options(benchmark_of(options.benchmark), **asked).row_count
    with tqdm(total=rows, desc=options.benchmark, unit="size", leave=False, file=sys.stderr,
              disable=not sys.stderr.isatty()) as bar:  # fmt: skip

        def show(line):
            # tqdm.write takes the bar away, and puts it back below the line.
            tqdm.write(line, file=sys.stdout)
            sys.stdout.flush()
            bar.update(line.lstrip()[:1].isdigit())

        table = run(options.benchmark, **asked, mca=options.mca, cpu_list=options.cpu_list,
                    map_by=options.map_by, own=options.own, on_line=show)  # fmt: skip
    if table.all_valid is False:
        print(f"mpilab: {options.benchmark}: a result was wrong; see the column Validation",
              file=sys.stderr)  # fmt: skip
        return 1
    return 0
