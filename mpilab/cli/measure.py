"""The commands `mpilab sweep`, `bench`, `learn` and `rules`."""

import argparse
import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpilab.cli.common import (
    Commands,
    Parser,
    add_json,
    add_no_progress,
    add_out,
    add_ranks,
    add_root,
    add_segment,
    add_tree,
    mpilab,
    names,
    print_json,
    progress,
    write_page,
)
from mpilab.errors import InputError
from mpilab.util.text import suggestion
from mpilab.util.units import bytes_of, ranks_of, sizes_of

MEASURES = ("span_s", "mean_s", "max_s", "min_s")
COLLECTIVES = "bcast,reduce,gather,allgather,allreduce,alltoallv"
SWEEP_DESCRIPTION = """\
Time algorithms of a collective over ranks and message sizes: our kernels and Open MPI's own.

If interrupted, it continues where it stopped when started again with the same options.

With --hosts, ranks are on the hosts of a cluster, and --ppn is swept as well. The cluster is
simulated, or emulated on this machine with --emulated; 'slurm' is the nodes of this job:

    mpilab sweep alltoallv --hosts flat-4x8,flat-16x8 --ppn 1-8 --sizes 64,1K --plot out/a.html
    mpilab sweep bcast --hosts campus --ranks 8,16,32 --ppn 1,2,4,8 --order shuffled
    mpilab sweep reduce --hosts four-groups --emulated --ppn 1,2

Each point is run and compared before it is timed.
"""
SWEEP_EPILOG = """\
By default, a point is timed a quarter as often as in OMB (1000 times after 100 untimed calls; above
8 KiB, 100 after 10), divided by the number of ranks that share a core, but at least 20 times after
20, or after 3 if ranks share cores. To match OMB: --repetitions 1000 --warmup 100.
"""
LEARN_DESCRIPTION = """\
Time our kernels on the hosts of a cluster description, and learn which one to use for each number
of ranks, ranks per host, groups and bytes. COLLECTIVE_auto reads the resulting rules file:

    mpilab learn four-groups -o my.rules
    MPILAB_RULES=my.rules mpirun ...

The hosts of a description are emulated on this machine. In a Slurm job, 'mpilab learn slurm -o
my.rules' measures on its nodes; their groups are Slurm's switches.
"""
RULES_DESCRIPTION = """\
Rules files in Open MPI's classic format: which of its algorithms to use from a given number of
ranks and bytes upward. Open MPI silently ignores a malformed file; these commands report it.
"""
RULES_EXAMPLES = """\
mpilab sweep bcast --ranks 4,8 --oversubscribe --algorithms openmpi -o bcast.csv
mpilab rules write bcast.csv -o my.rules         choose the fastest measured
mpilab rules show my.rules                       what it means, and how to make Open MPI use it
mpilab rules check my.rules --ranks 4,8          prove by the messages that it takes effect
mpilab rules compare my.rules --ranks 4,8        measure again: default, rules, best
"""
WRITE = """\
Write rules from sweeps of Open MPI's algorithms, or from a model.

    mpilab rules write bcast.csv gather.csv -o my.rules
    mpilab rules write bcast.csv --model-ranks 16,64 -o my.rules
    mpilab rules write --collectives bcast --model-ranks 64,1024 --alpha 20us --beta 1ns -o my.rules

Neighboring sizes share a rule if they have the same choice, or if one choice is good enough for
all. Numbers of ranks below the smallest tried are left to Open MPI.
"""
CHECK = """\
Run each rule's case on Open MPI, with and without the file, and compare the messages between each
pair of ranks with those that the chosen algorithm must send. The exit status is 1 if Open MPI
ignores a rule or substitutes another algorithm, or if the program fails.
"""
COMPARE = """\
Time Open MPI's default, the rules, and each of its algorithms, in turn in one mpirun; the fastest
is the best possible. Sizes are in bytes: of a block in allgather, gather and scatter, otherwise of
the message.
"""


def add_commands(commands: Commands) -> None:
    """Add the commands of this module, except `bench osu_NAME` (see `options`)."""
    _add_sweep(commands)
    _add_bench(commands)
    _add_learn(commands)
    _add_rules(commands)


# `mpilab sweep`: time algorithms over numbers of ranks and message sizes, and print medians.


def _add_sweep(commands: Commands) -> None:
    parser = commands.add_parser(
        "sweep",
        help="time algorithms over ranks and message sizes",
        description=SWEEP_DESCRIPTION,
        epilog=SWEEP_EPILOG,
    )
    parser.add_argument(
        "collective",
        nargs="?",
        metavar="COLLECTIVE",
        help="bcast, gather, scatter, reduce, allgather, allreduce, alltoallv or barrier",
    )
    add_ranks(
        parser,
        "numbers of ranks (default: 2, and 4 if there are as many cores; with --hosts, all hosts)",
        metavar="2,4,8",
        type=str,
    )
    parser.add_argument(
        "--oversubscribe",
        action="store_true",
        help="also time more ranks than cores, which take turns; their rows are labeled",
    )
    parser.add_argument(
        "--sizes",
        metavar="1:1M",
        help=(
            "bytes, or powers of two from:to, of a block in allgather, alltoallv, gather and "
            "scatter, otherwise of the message (default: 1:64K; with --hosts 1K,64K)"
        ),
    )
    parser.add_argument(
        "--algorithms",
        default="ours,openmpi",
        metavar="NAMES",
        help="ours, openmpi, or individual ones: ours:pipeline, openmpi:3, "
        "openmpi:binomial, openmpi:default, and ours:shared, which needs no messages on one node "
        "(default: ours,openmpi)",
    )
    add_segment(parser, type=str)
    add_tree(parser)
    add_root(parser)
    parser.add_argument("--repetitions", type=int, metavar="N", help="timed calls per point")
    parser.add_argument("--warmup", type=int, metavar="N", help="untimed calls before them")
    parser.add_argument(
        "--choose",
        choices=("mpi_t", "mca"),
        help="how to choose Open MPI's algorithms: within one running program, or by the settings "
        "of an mpirun for each (default: mpi_t if Open MPI is 5.0.6 or later)",
    )
    add_out(
        parser,
        "file for the rows (default: out/sweep-COLLECTIVE.csv)",
        metavar="FILE.csv",
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
        choices=MEASURES,
        help=(
            "quantity of the medians: last exit - first entry (span_s), or the mean, maximum or "
            "minimum of the ranks' durations; OMB uses mean_s (default: span_s)"
        ),
    )
    _add_hosts(parser)
    add_no_progress(parser)
    add_json(parser)
    parser.set_defaults(call=_sweep)


def _add_hosts(parser: argparse.ArgumentParser) -> None:
    """Add the options of a sweep over the hosts of a cluster."""
    hosts = parser.add_argument_group("over the hosts of a cluster")
    hosts.add_argument(
        "--hosts",
        metavar="NAMES",
        help="simulated clusters: flat-16x8 (hosts x ranks), groups-4x4x8, fat-tree-16x8, or a "
        "description such as campus; or slurm",
    )
    hosts.add_argument(
        "--ppn", metavar="1-8", help="ranks per host (default: as many as a host has slots)"
    )
    hosts.add_argument(
        "--order",
        metavar="ORDER",
        help="order of the ranks: seq, rr, rr-groups, shuffled or random; 'shuffled 7' has a seed "
        "(default: seq)",
    )
    hosts.add_argument(
        "--emulated",
        action="store_true",
        help="emulate the hosts of the descriptions on this machine, instead of simulating them",
    )
    hosts.add_argument(
        "--plot", type=Path, metavar="FILE.html", help="write a figure of the medians to this file"
    )
    hosts.add_argument(
        "--against",
        choices=("ppn", "ranks", "nodes", "bytes"),
        help="the x axis of the figure: ranks per host, ranks, hosts or bytes (default: ppn)",
    )
    hosts.add_argument(
        "--relative-to",
        metavar="KERNEL",
        help="show how many times as fast as this kernel the others are, e.g. alltoallv_linear",
    )


def _sweep(options: argparse.Namespace) -> int:
    """Run a sweep, or read one from a file, and print medians with confidence intervals."""
    if options.hosts is not None:
        return _sweep_hosts(options)
    for name in ("ppn", "order", "emulated", "plot", "against", "relative_to"):
        if getattr(options, name):
            raise InputError(
                f"--{name.replace('_', '-')}: belongs to a sweep over hosts; name them, e.g. "
                "--hosts flat-16x8"
            )
    if options.summary is not None:
        _print_summary(mpilab.measure.sweep_table.read(options.summary), options)
        return 0
    if options.collective is None:
        raise InputError(
            "sweep: no collective given; name one, e.g. mpilab sweep bcast, "
            "or a file to summarize with --summary FILE.csv"
        )
    out = options.out or Path("out", f"sweep-{options.collective}.csv")
    report = mpilab.measure.sweep.Report()
    table = mpilab.measure.sweep.sweep(
        options.collective,
        ranks=options.ranks,
        sizes=options.sizes or "1:64K",
        algorithms=options.algorithms,
        segment=bytes_of(options.segment),
        fanout=options.fanout,
        radix=options.radix,
        root=options.root,
        repetitions=options.repetitions,
        warmup=options.warmup,
        out=out,
        progress=not options.no_progress,
        report=report,
        choose=options.choose,
        oversubscribe=options.oversubscribe,
    )
    _print_summary(table, options)
    for line in report.lines():
        print(line, file=sys.stderr)
    print(f"{len(table)} rows: {out}", file=sys.stderr)
    return 0 if len(table) else 1


def _sweep_hosts(options: argparse.Namespace) -> int:
    """Run a sweep over the hosts of a cluster, print its medians, and draw them."""
    for name, default in (
        ("summary", None),
        ("warmup", None),
        ("choose", None),
        ("oversubscribe", False),
        ("fanout", 0),
        ("radix", 0),
    ):
        if getattr(options, name) != default:
            raise InputError(f"--{name} does not work with --hosts; leave one of them out")
    if options.measure != "span_s":
        raise InputError("--measure does not work with --hosts: its times are spans; leave it out")
    if options.collective is None:
        raise InputError("sweep: no collective given; name one, e.g. mpilab sweep bcast --hosts …")
    cluster_sweep = mpilab.measure.cluster_sweep
    out = options.out or Path("out", f"sweep-{options.collective}-hosts.csv")
    report = mpilab.measure.sweep.Report()
    rows = cluster_sweep.sweep(
        options.collective,
        options.hosts,
        ranks=options.ranks,
        ppn=options.ppn,
        sizes=options.sizes or "1K,64K",
        algorithms=options.algorithms,
        order=options.order or "seq",
        root=options.root,
        segment=bytes_of(options.segment),
        emulated=options.emulated,
        repetitions=7 if options.repetitions is None else options.repetitions,
        out=out,
        progress=not options.no_progress,
        report=report,
    )
    summary = cluster_sweep.summarize(rows)
    if options.json:
        print_json(summary)
    else:
        print(cluster_sweep.as_text(summary))
    for line in report.lines():
        print(line, file=sys.stderr)
    print(f"{len(rows)} rows: {out}", file=sys.stderr)
    if options.plot and len(rows):
        figure = mpilab.plots.clusters.time_against(
            rows, options.against or "ppn", relative_to=options.relative_to
        )
        write_page(figure, options.plot)
        print(f"figure: {options.plot}", file=sys.stderr)
    return 0 if len(rows) else 1


def _print_summary(table: Any, options: argparse.Namespace) -> None:
    sweep_table = mpilab.measure.sweep_table
    summary = sweep_table.summarize(table, options.measure)
    if options.json:
        print_json(summary)
    else:
        print(sweep_table.text(summary, options.measure))


# `mpilab learn`: time our kernels on a cluster and write rules that select the fastest.


def _add_learn(commands: Commands) -> None:
    parser = commands.add_parser(
        "learn",
        help="learn which kernel to use on a cluster",
        description=LEARN_DESCRIPTION,
    )
    parser.add_argument(
        "cluster", metavar="CLUSTER", help="a description, e.g. four-groups, or slurm"
    )
    parser.add_argument(
        "--collectives", default=COLLECTIVES, metavar="NAMES", help=f"default: {COLLECTIVES}"
    )
    parser.add_argument(
        "--sizes",
        default="64,16K,256K",
        metavar="64,16K",
        help=(
            "bytes, of a block in gather, allgather and alltoallv, otherwise of the message "
            "(default: 64,16K,256K)"
        ),
    )
    parser.add_argument(
        "--orders",
        default="seq,rr,shuffled",
        metavar="NAMES",
        help="orders of the ranks (default: seq,rr,shuffled)",
    )
    parser.add_argument(
        "--ppn",
        default="",
        metavar="1,2",
        help="ranks per host, to also try fewer than its slots",
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        default=7,
        metavar="N",
        help="timed calls per point (default: 7)",
    )
    add_out(parser, "the rules file to write (default: out/CLUSTER.rules)", metavar="FILE.rules")
    add_no_progress(parser)
    parser.set_defaults(call=_learn)


def _learn(options: argparse.Namespace) -> None:
    """Measure, learn and write rules; print how much these rules and the published ones would
    lose."""
    decisions = mpilab.tuning.decisions
    out = options.out or Path("out", f"{Path(options.cluster).stem}.rules")
    # Check everything first: measuring takes minutes.
    if options.out and not out.parent.is_dir() or out.is_dir():
        raise InputError(f"{out}: no file can be created there; write to a folder that exists")
    collectives, orders, ppn = _collectives(options), _orders(options), _ppn(options)
    found = decisions.measure(
        options.cluster,
        collectives=collectives,
        sizes=sizes_of(options.sizes)[0],
        orders=orders,
        ppn=ppn,
        repetitions=options.repetitions,
        progress=not options.no_progress,
    )
    rules = decisions.learn([one for one in found if not one.is_openmpis])
    remark = decisions.remark(options.cluster, found)
    print(decisions.report(rules, found))
    try:
        out.parent.mkdir(exist_ok=True)
        out.write_text(decisions.as_text(rules, remark), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{out}: cannot be written: {error.strerror}; write to a folder that you own"
        ) from None
    print(f"{len(rules)} rules: {out}")


def _collectives(options: argparse.Namespace) -> list[str]:
    found = names(options.collectives)
    for name in found:
        mpilab.cases.case.collective_of(name)
    return found


def _orders(options: argparse.Namespace) -> list[str]:
    found, known = names(options.orders), mpilab.hosts.orders.ORDERS
    for name in found:
        if name not in known:
            listed = f"{', '.join(known)}{suggestion(name, known)}"
            raise InputError(f"--orders: {name!r} is unknown; write some of {listed}")
    return found


def _ppn(options: argparse.Namespace) -> list[int] | None:
    """Numbers of ranks per host; None for all slots."""
    if not options.ppn:
        return None
    try:
        return list(ranks_of(options.ppn))
    except InputError:
        raise InputError(
            f"--ppn {options.ppn}: write numbers of ranks per host, 1 or more, e.g. 1,2"
        ) from None


# `mpilab rules write|show|check|compare`: Open MPI's rules files (mpilab.tuning).


def _add_rules(commands: Commands) -> None:
    rules = commands.add_parser(
        "rules",
        help="write, explain, prove and measure a rules file of Open MPI",
        description=RULES_DESCRIPTION,
        epilog=RULES_EXAMPLES,
    )
    verbs = rules.add_subparsers(metavar="VERB", required=True)
    _add_write(verbs)
    show = verbs.add_parser("show", help="explain a file, and report its errors")
    show.add_argument("file", type=Path, metavar="FILE")
    show.set_defaults(call=_show)
    _add_check(verbs)
    _add_compare(verbs)


def _add_write(verbs: Any) -> None:
    write = verbs.add_parser(
        "write",
        help="write a file from sweeps, or from a model",
        description=WRITE,
    )
    write.add_argument(
        "sweeps",
        nargs="*",
        type=Path,
        metavar="SWEEP.csv",
        help="output of mpilab sweep, with Open MPI's algorithms",
    )
    write.add_argument(
        "--collectives", metavar="NAMES", help="collectives (default: all in the sweeps)"
    )
    write.add_argument(
        "--model-ranks",
        metavar="16,64",
        help=(
            "also write rules for these numbers of ranks, from models fitted to the sweep's "
            "algorithms, or from --alpha and --beta"
        ),
    )
    write.add_argument("--alpha", metavar="20us", help="time of a message, with a unit: ns, us, ms")
    write.add_argument("--beta", metavar="1ns", help="time of a byte, with a unit")
    write.add_argument(
        "--sizes",
        default="1:1M",
        metavar="1:1M",
        help="for --alpha and --beta: bytes, or powers of two (default: 1:1M)",
    )
    write.add_argument(
        "--slack",
        type=float,
        default=0.05,
        metavar="0.05",
        help=(
            "accept a choice slower than the fastest by this share, for fewer rules (default: 0.05)"
        ),
    )
    write.add_argument(
        "--measure",
        default="span_s",
        choices=MEASURES,
        help="quantity of the medians, as in mpilab sweep (default: span_s)",
    )
    add_out(write, "the rules file to write (default: print it)")
    write.set_defaults(call=_write)


def _add_check(verbs: Any) -> None:
    check = verbs.add_parser(
        "check", help="prove by the messages that the rules take effect", description=CHECK
    )
    check.add_argument("file", type=Path, metavar="FILE")
    add_ranks(
        check, "numbers of ranks (default: those in the file, 2 to 16)", metavar="4,8", type=str
    )
    check.add_argument(
        "--sizes",
        metavar="1:64K",
        help=(
            "bytes, of a block in allgather, gather and scatter, otherwise of the message "
            "(default: two for each rule)"
        ),
    )
    check.set_defaults(call=_check)


def _add_compare(verbs: Any) -> None:
    compare = verbs.add_parser(
        "compare", help="time the default, the rules and the best possible", description=COMPARE
    )
    compare.add_argument("file", type=Path, metavar="FILE")
    add_ranks(compare, "numbers of ranks (default: 4)", metavar="4,8", type=str, default="4")
    compare.add_argument(
        "--sizes", default="64,1K,16K,256K", metavar="1:64K", help="default: 64,1K,16K,256K"
    )
    compare.add_argument(
        "--collectives", metavar="NAMES", help="collectives (default: all in the file)"
    )
    compare.add_argument(
        "--repetitions",
        type=int,
        metavar="N",
        help="timed calls in each round (default: a third of mpilab sweep's)",
    )
    compare.add_argument(
        "--rounds",
        type=int,
        default=3,
        metavar="N",
        help="number of rounds (default: 3)",
    )
    compare.set_defaults(call=_compare)


def _write(options: argparse.Namespace) -> int:
    if options.out is not None and (options.out.is_dir() or not options.out.parent.is_dir()):
        raise InputError(
            f"{options.out}: no file can be created there; write to a folder that exists"
        )
    choosing = mpilab.tuning.choosing
    rules: list[Any] = []
    remarks = [" ".join(["mpilab rules write", *map(str, options.sweeps)])]
    for points in choosing.points(
        options.sweeps,
        collectives=_names(options.collectives),
        measure=options.measure,
        model_ranks=_ranks(options.model_ranks),
        alpha=options.alpha,
        beta=options.beta,
        sizes=options.sizes,
    ):
        chosen = choosing.choose(points, options.slack)
        expected = choosing.expected_words(choosing.expected(chosen, points))
        remarks.append(f"{points.collective}: {choosing.basis(points)}; {expected}")
        rules += chosen
    text = choosing.checked_text(rules, "\n".join(remarks))
    if options.out is None:
        print(text, end="")
        return 0
    options.out.write_text(text, encoding="utf-8")
    print("\n".join(remarks[1:]))
    print(f"{len(rules)} rules: {options.out}")
    return 0


def _show(options: argparse.Namespace) -> int:
    rules = mpilab.tuning.read(options.file)
    print(mpilab.tuning.explain(rules))
    _print_remarks(rules)
    print("\nTo make Open MPI use it:\n")
    print("\n".join(mpilab.tuning.comparison.environment_lines(options.file)))
    return 1 if any(remark.kind != mpilab.tuning.rules.NOTE for remark in rules.remarks) else 0


def _check(options: argparse.Namespace) -> int:
    proof, words = mpilab.tuning.proof, mpilab.tuning.rules
    rules = mpilab.tuning.read(options.file)
    _print_remarks(rules)
    ranks = _ranks(options.ranks) or proof.ranks_to_try(rules)
    sizes = None if options.sizes is None else sizes_of(options.sizes)[0]
    proofs = proof.prove(rules, options.file, proof.points_of(rules, ranks, sizes))
    if proofs:
        print(proof.as_text(proofs))
    print(proof.summary(proofs))
    for rule in proof.not_tried(rules, proofs):
        print(
            f"line {rule.line}: {words.reach_words(rules, rule)}: {words.choice_words(rule)}: "
            "not tried; add --ranks or --sizes to which it applies",
            file=sys.stderr,
        )
    return 1 if not proofs or any(one.is_amiss for one in proofs) else 0


def _compare(options: argparse.Namespace) -> int:
    rules = mpilab.tuning.read(options.file)
    _print_remarks(rules)
    table = mpilab.tuning.comparison.compare(
        rules,
        options.file,
        ranks=_ranks(options.ranks),
        sizes=sizes_of(options.sizes)[0],
        collectives=_names(options.collectives),
        repetitions=options.repetitions,
        rounds=options.rounds,
    )
    print(mpilab.tuning.comparison.as_text(table))
    return 0


def _print_remarks(rules: Any) -> None:
    for remark in rules.remarks:
        print(f"{rules.name}:{remark.line}: {remark.text}", file=sys.stderr)


def _names(given: str | None) -> list[str] | None:
    return None if given is None else names(given)


def _ranks(given: str | None) -> tuple[int, ...]:
    return () if given is None else ranks_of(given)


# `mpilab bench FIGURE`: the figures of docs/performance.md.


def _add_bench(commands: Commands) -> None:
    parser = commands.add_parser(
        "bench",
        help="run an OSU or IMB benchmark (osu_bcast, imb_bcast, ...), or measure the kit itself",
        description="Measure the figures of docs/performance.md; for OSU's and IMB's tables see\n"
        "'mpilab bench osu_bcast --help' and 'mpilab bench imb_bcast --help'.",
    )
    parser.add_argument("figure", help="name of a figure, a pattern ('bcast_*'), or 'all'")
    add_out(parser, "JSON file of the figures, updated (default: out/bench.json)")
    parser.add_argument(
        "--docs",
        type=Path,
        metavar="FILE.md",
        help="also write the figure into the tables of this page, between its markers",
    )
    add_json(parser)
    parser.set_defaults(call=_bench)


def _bench(options: argparse.Namespace) -> None:
    bench = mpilab.bench
    out = options.out or Path("out", "bench.json")
    entries = bench.run_figures(options.figure, out)
    if options.json:
        print_json(entries)
    else:
        print(bench.table(entries))
    if options.docs:
        bench.write_docs(entries, options.docs)


# `mpilab bench osu_bcast ...`, `imb_bcast ...`: print the table of a benchmark of OSU or IMB.


def options(arguments: Sequence[str]) -> argparse.Namespace | None:
    """The options of `mpilab bench osu_NAME ...` or `imb_NAME ...`; None for any other command."""
    arguments = list(arguments)
    if arguments[:1] != ["bench"] or not arguments[1:2]:
        return None
    if not arguments[1].startswith(("osu_", "imb_")):
        return None
    parsed = _osu_parser(arguments[1]).parse_args(arguments[2:])
    parsed.benchmark, parsed.call = arguments[1], _osu
    return parsed


def _osu_parser(benchmark: str) -> argparse.ArgumentParser:
    known = mpilab.measure.osu.BENCHMARKS
    if benchmark not in known:
        listed = f"{', '.join(known)}{suggestion(benchmark, known)}"
        Parser(prog="mpilab bench", usage=f"mpilab bench {benchmark[:4]}NAME [options]").error(
            f"there is no benchmark {benchmark!r}; use one of {listed}"
        )
    kind = known[benchmark]
    is_imb = kind.suite == "IMB"
    parser = Parser(
        prog=f"mpilab bench {benchmark}",
        description=(
            f"Print the table of IMB-MPI1's {kind.title}. The kit's program measures it like IMB "
            "2021:\nthe smallest, largest and mean of the ranks' mean times."
            if is_imb
            else f"Print the table of OSU's {benchmark}. Runs OMB's own program if it is on "
            "PATH,\notherwise the kit's, which measures like OMB 7.3."
        ),
    )
    usual = "2, and no other" if kind.is_between_two else "4, or 2 if there are fewer cores"
    add_ranks(parser, f"default: {usual}")
    parser.add_argument(
        "-i",
        "--iterations",
        type=int,
        metavar="N",
        help="timed iterations per size; default 1000, but no more than 40 MiB in all"
        if is_imb
        else "timed iterations per size; default 1000 (10000 in osu_latency, 100 "
        "in osu_bw), above 8 KiB 100 (1000, 20)",
    )
    parser.add_argument(
        "--repetitions", type=int, dest="iterations", default=argparse.SUPPRESS, help="the same"
    )
    parser.add_argument(
        "-x",
        "--warmup",
        type=int,
        metavar="N",
        help="untimed iterations before them; default a tenth of the timed ones"
        if is_imb
        else "untimed iterations before them; default 100 (osu_bw: 10), above 8 KiB 10 (2)",
    )
    parser.add_argument(
        "-m",
        "--message-size",
        metavar="[MIN:]MAX",
        dest="sizes",
        help=f"message sizes in bytes,{' 0 and then' * is_imb} doubled from MIN; default "
        f"{4 if is_imb and kind.adds else 1}:{kind.largest}",
    )
    parser.add_argument("--sizes", default=argparse.SUPPRESS, help="the same")
    parser.add_argument(
        "-f",
        "--full",
        action="store_true",
        help="collectives: also print the smallest and largest mean of a rank, and the iterations "
        "(IMB's tables always have them)",
    )
    parser.add_argument(
        "-c",
        "--validation",
        action="store_true",
        dest="validate",
        help="check each result",
    )
    parser.add_argument(
        "-u",
        "--validation-warmup",
        type=int,
        metavar="N",
        dest="before_each",
        help="calls before each timed one: always in osu_latency and osu_bw, in "
        "collectives with -c; default 5",
    )
    parser.add_argument(
        "-W",
        "--window-size",
        type=int,
        metavar="N",
        dest="window",
        help="osu_bw: messages sent before an answer; default 64",
    )
    parser.add_argument(
        "-M",
        "--mem-limit",
        type=int,
        metavar="BYTES",
        dest="memory",
        help="collectives: memory for the blocks of all ranks; default 512 MiB",
    )
    parser.add_argument(
        "--mca",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "VALUE"),
        help="an MCA parameter of Open MPI, e.g. "
        "--mca coll_tuned_use_dynamic_rules 1 "
        "--mca coll_tuned_bcast_algorithm 3",
    )
    parser.add_argument(
        "--cpu-list",
        metavar="0,1",
        help="rank r runs on the r-th of these CPUs (--map-by "
        "pe-list=0,1:ordered --bind-to core in Open MPI 5)",
    )
    parser.add_argument("--map-by", metavar="WORDS", help="passed to mpirun unchanged")
    parser.add_argument(
        "--hosts",
        metavar="NAME",
        help="run on the emulated hosts of this description, e.g. two-groups, by default on all "
        "their slots; see --map-by",
    )
    parser.add_argument(
        "--oversubscribe",
        action="store_true",
        help="allow more ranks than cores, which take turns; the table says so",
    )
    parser.add_argument(
        "--own", action="store_true", help="use the kit's program even if OMB's is on PATH"
    )
    add_json(parser)
    return parser


def _osu(options: argparse.Namespace) -> int:
    """Run the benchmark and print its table line by line; 1 if a result was wrong."""
    asked = {
        name: getattr(options, name)
        for name in (
            "ranks",
            "iterations",
            "warmup",
            "sizes",
            "full",
            "validate",
            "before_each",
            "window",
            "memory",
        )
    }
    osu = mpilab.measure.osu
    rows = osu.Options(osu.benchmark_of(options.benchmark), **asked).row_count
    with progress.tqdm(
        total=rows,
        desc=options.benchmark,
        unit="size",
        leave=False,
        file=sys.stderr,
        disable=not sys.stderr.isatty(),
    ) as bar:

        def show(line: str) -> None:
            # This removes the bar and redraws it below the line.
            if not options.json:
                progress.tqdm.write(line, file=sys.stdout)
                sys.stdout.flush()
            bar.update(line.lstrip()[:1].isdigit())

        hosts = mpilab.hosts.emulated.EmulatedHosts(options.hosts) if options.hosts else None
        with hosts or contextlib.nullcontext():
            table = osu.run(
                options.benchmark,
                **asked,
                mca=options.mca,
                cpu_list=options.cpu_list,
                map_by=options.map_by,
                own=options.own,
                oversubscribe=options.oversubscribe,
                hosts=hosts,
                on_line=show,
            )
    if options.json:
        print_json(table)
    if table.all_valid is False:
        print(
            f"mpilab: {options.benchmark}: a result was wrong; see the column Validation",
            file=sys.stderr,
        )
        return 1
    return 0
