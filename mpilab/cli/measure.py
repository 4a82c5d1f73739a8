"""The commands `mpilab bench osu_NAME`, `reads`, `learn`, `rules`, `cannon` and `matrix`."""

import argparse
import re
import sys
from pathlib import Path
from statistics import median

# `mpilab reads`: compare ways of reading a matrix by requests, bytes, memory and time.

READS_DESCRIPTION = """\
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


def add_reads(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "reads",
        help="ways of reading a matrix: requests, bytes, memory, time",
        description=READS_DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--matrix",
        default="2048x2048",
        metavar="WORDS",
        help="'2048x2048', or '2048x2048 by 64x64 on 2x2' for blocks of 64x64 on "
        "a grid of 2x2 ranks (default: 2048x2048)",
    )
    parser.add_argument("--ranks", type=int, default=4, metavar="P", help="default: 4")
    parser.add_argument(
        "--readers", default="all", metavar="NAMES", help="e.g. strided,two_phase (default: all)"
    )
    parser.add_argument(
        "--buffer",
        default="0",
        metavar="BYTES",
        help="what one request is for at most, e.g. 1M (default: each one's own); "
        "MPI-IO takes it as a hint",
    )
    parser.add_argument(
        "--aggregators",
        type=int,
        default=0,
        metavar="A",
        help="ranks that read for all (default: each one's own); MPI-IO takes "
        "it as a hint, ROMIO from a file",
    )
    parser.add_argument(
        "--repetitions",
        type=int,
        default=3,
        metavar="N",
        help="timed calls of each; 0: count only (default: 3)",
    )
    parser.add_argument(
        "--cold",
        action="store_true",
        help="throw the file out of the page cache before each timed call",
    )
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call_reads)


def call_reads(options):
    """Count the requests, time the reads, and print the table."""
    from dataclasses import replace

    from mpilab.errors import InputError
    from mpilab.mpiio import readers
    from mpilab.util.units import bytes_of

    if options.repetitions < (1 if options.cold else 0):
        needed = "1 or more with --cold" if options.cold else "1 or more, or 0 to count only"
        raise InputError(f"--repetitions {options.repetitions}: has to be {needed}")

    chosen = readers.chosen(options.readers)
    tuned = {"buffer": bytes_of(options.buffer), "aggregators": options.aggregators}
    accounts = readers.count(options.matrix, options.ranks, chosen, **tuned)
    state = "not timed"
    if options.repetitions:
        seconds, share = readers.time(
            options.matrix,
            options.ranks,
            chosen,
            **tuned,
            cold=options.cold,
            repetitions=options.repetitions,
            progress=not options.no_progress,
        )
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
    """The accounts from mpilab.mpiio.readers as a Markdown table; times are medians."""
    from mpilab.models.file_access import STORAGE
    from mpilab.util.units import byte_size, duration

    lines = [
        "| reader | requests | most of a rank | ranks that ask | bytes | largest | read calls "
        "| memory | time | " + " | ".join(f"on a {name}" for name in STORAGE) + " |",
        "|---" + 8 * "|---:" + len(STORAGE) * "|---:" + "|",
    ]
    for one in accounts:
        cells = [
            one.reader.name,
            f"{one.requests:,}",
            f"{one.most_requests:,}",
            str(one.asking),
            byte_size(one.bytes),
            byte_size(one.largest),
            "unknown" if one.read_calls is None else f"{one.read_calls:,}",
            "unknown" if one.memory is None else byte_size(one.memory),
            duration(median(one.seconds)) if one.seconds else "not timed",
            *(duration(one.modelled[name]) for name in STORAGE),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


# `mpilab learn`: time our kernels on a cluster and write rules that select the fastest.

COLLECTIVES = "bcast,reduce,gather,allgather,allreduce,alltoallv"
LEARN_DESCRIPTION = """\
Time our kernels on the hosts of a cluster description, and learn from it which one to use for how
many ranks, ranks a host, groups and bytes. The rules go to a file that COLLECTIVE_auto reads:

    mpilab learn four-groups -o my.rules
    MPILAB_RULES=my.rules mpirun ...

The hosts of a description are emulated on this machine. 'mpilab learn slurm -o my.rules' in a Slurm
job measures on its nodes; their groups are the switches that Slurm knows.
"""


def add_learn(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "learn",
        help="learn which kernel to use on a cluster",
        description=LEARN_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
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
        help="bytes: of a block in gather, allgather and alltoallv, else of the "
        "message (default: 64,16K,256K)",
    )
    parser.add_argument(
        "--orders",
        default="seq,rr,shuffled",
        metavar="NAMES",
        help="of the ranks (default: seq,rr,shuffled)",
    )
    parser.add_argument(
        "--ppn",
        default="",
        metavar="1,2",
        help="ranks a host, if fewer than its slots are to be tried too",
    )
    parser.add_argument("--repetitions", type=int, default=7, metavar="N")
    parser.add_argument("-o", "--out", type=Path, required=True, metavar="FILE.rules")
    parser.add_argument("--no-progress", action="store_true", help="show no progress bar")
    parser.set_defaults(call=call_learn)


def call_learn(options):
    """Measure, learn and write rules; print how much these and the published rules would lose."""
    from mpilab.errors import InputError
    from mpilab.tuning import decisions
    from mpilab.util.units import sizes_of

    # Check everything first: measuring takes minutes.
    if not options.out.parent.is_dir() or options.out.is_dir():
        raise InputError(f"{options.out}: no file can be made there; write to a folder that exists")
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
        options.out.write_text(decisions.as_text(rules, remark), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{options.out}: cannot be written: {error.strerror}; write to a folder of yours"
        ) from None
    print(f"{len(rules)} rules: {options.out}")
    return 0


def _collectives(options):
    from mpilab.cases.case import collective_of

    names = [name.strip() for name in options.collectives.split(",")]
    for name in names:
        collective_of(name)
    return names


def _orders(options):
    from mpilab.errors import InputError
    from mpilab.hosts.orders import ORDERS

    names = [name.strip() for name in options.orders.split(",")]
    for name in names:
        if name not in ORDERS:
            raise InputError(f"--orders: {name!r} is unknown; take some of {', '.join(ORDERS)}")
    return names


def _ppn(options):
    """Numbers of ranks per host; None for all slots."""
    from mpilab.errors import InputError
    from mpilab.util.units import ranks_of

    if not options.ppn:
        return None
    try:
        return list(ranks_of(options.ppn))
    except InputError:
        raise InputError(f"--ppn {options.ppn}: write ranks a host from 1 on, e.g. 1,2") from None


# `mpilab rules write|show|check|compare`: Open MPI's rules files (mpilab.tuning).

RULES_DESCRIPTION = """\
Rules files in Open MPI's classic format: which of its algorithms to use from how many ranks and
bytes on. Open MPI ignores a malformed one without a word; these commands tell.
"""
RULES_EXAMPLES = """\
mpilab sweep bcast --ranks 4,8 --algorithms openmpi -o bcast.csv
mpilab rules write bcast.csv -o my.rules         the fastest that was measured
mpilab rules show my.rules                       what it says, and how to make Open MPI use it
mpilab rules check my.rules --ranks 4,8          prove that it takes effect, by the messages
mpilab rules compare my.rules --ranks 4,8        measure again: default, rules, best
"""
WRITE = """\
Write rules from sweeps of Open MPI's algorithms, or from a model.

    mpilab rules write bcast.csv gather.csv -o my.rules
    mpilab rules write bcast.csv --model-ranks 16,64 -o my.rules
    mpilab rules write --collectives bcast --model-ranks 64,1024 --alpha 20us --beta 1ns -o my.rules

Neighbouring sizes with the same choice make one rule, and so do those where one choice is good
enough. Ranks below the least that was tried are left to Open MPI.
"""
CHECK = """\
Run each rule's case on real Open MPI, with the file and without, and hold the messages between
every two ranks against what the wanted algorithm must send. Ends with 1 where a rule is ignored,
substituted by another algorithm, or makes the program fail.
"""
COMPARE = """\
Time Open MPI by itself, by the rules, and by each of its algorithms, in one mpirun and in turn; the
fastest is the best possible. Sizes are bytes of a block in allgather, gather and scatter, else of
the message.
"""


def add_rules(commands):
    """Add the command and its verbs to `commands`, argparse's subparsers."""
    rules = commands.add_parser(
        "rules",
        help="write, explain, prove and measure a rules file of Open MPI",
        description=RULES_DESCRIPTION,
        epilog=RULES_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = rules.add_subparsers(metavar="VERB", required=True)
    _add_write(verbs)
    show = verbs.add_parser("show", help="what a file says, in words, and what is wrong with it")
    show.add_argument("file", type=Path, metavar="FILE")
    show.set_defaults(call=_show)
    _add_check(verbs)
    _add_compare(verbs)


def _add_write(verbs):
    write = verbs.add_parser(
        "write",
        help="write a file from sweeps, or from a model",
        description=WRITE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    write.add_argument(
        "sweeps",
        nargs="*",
        type=Path,
        metavar="SWEEP.csv",
        help="of mpilab sweep, with Open MPI's algorithms",
    )
    write.add_argument("--collectives", metavar="NAMES", help="default: all that the sweeps have")
    write.add_argument(
        "--model-ranks",
        metavar="16,64",
        help="also rules for so many ranks, by models that are fitted to the "
        "sweep's algorithms, or by --alpha and --beta",
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
        help="a choice so much slower than the fastest is good enough: less rules (default: 0.05)",
    )
    write.add_argument(
        "--measure",
        default="span_s",
        choices=("span_s", "mean_s", "max_s", "min_s"),
        help="what medians are of, as in mpilab sweep (default: span_s)",
    )
    write.add_argument("-o", "--out", type=Path, metavar="FILE", help="default: print it")
    write.set_defaults(call=_write)


def _add_check(verbs):
    check = verbs.add_parser(
        "check", help="prove by the messages that the rules take effect", description=CHECK
    )
    check.add_argument("file", type=Path, metavar="FILE")
    check.add_argument("--ranks", metavar="4,8", help="default: those in the file, 2 to 16")
    check.add_argument(
        "--sizes",
        metavar="1:64K",
        help="bytes of a block in allgather, gather and scatter, else of the "
        "message (default: two for each rule)",
    )
    check.set_defaults(call=_check)


def _add_compare(verbs):
    compare = verbs.add_parser(
        "compare", help="time the default, the rules and the best possible", description=COMPARE
    )
    compare.add_argument("file", type=Path, metavar="FILE")
    compare.add_argument("--ranks", default="4", metavar="4,8", help="default: 4")
    compare.add_argument(
        "--sizes", default="64,1K,16K,256K", metavar="1:64K", help="default: 64,1K,16K,256K"
    )
    compare.add_argument("--collectives", metavar="NAMES", help="default: all of the file")
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
        help="how often all take their turn (default: 3)",
    )
    compare.set_defaults(call=_compare)


def _write(options):
    from mpilab.errors import InputError
    from mpilab.tuning import choosing

    if options.out is not None and (options.out.is_dir() or not options.out.parent.is_dir()):
        raise InputError(f"{options.out}: no file can be made there; write to a folder that exists")
    rules, remarks = [], [" ".join(["mpilab rules write", *map(str, options.sweeps)])]
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


def _show(options):
    from mpilab.tuning import explain, read
    from mpilab.tuning.comparison import environment_lines
    from mpilab.tuning.rules import NOTE

    rules = read(options.file)
    print(explain(rules))
    _print_remarks(rules)
    print("\nOpen MPI decides by it with\n")
    print("\n".join(environment_lines(options.file)))
    return 1 if any(remark.kind != NOTE for remark in rules.remarks) else 0


def _check(options):
    from mpilab.tuning import proof, read
    from mpilab.tuning.rules import choice_words, reach_words
    from mpilab.util.units import sizes_of

    rules = read(options.file)
    _print_remarks(rules)
    ranks = _ranks(options.ranks) or proof.ranks_to_try(rules)
    sizes = None if options.sizes is None else sizes_of(options.sizes)[0]
    proofs = proof.prove(rules, options.file, proof.points_of(rules, ranks, sizes))
    if proofs:
        print(proof.as_text(proofs))
    print(proof.summary(proofs))
    for rule in proof.not_tried(rules, proofs):
        print(
            f"line {rule.line}: {reach_words(rules, rule)}: {choice_words(rule)}: not tried; "
            "add --ranks or --sizes that it decides",
            file=sys.stderr,
        )
    return 1 if not proofs or any(one.is_amiss for one in proofs) else 0


def _compare(options):
    from mpilab.tuning import comparison, read
    from mpilab.util.units import sizes_of

    rules = read(options.file)
    _print_remarks(rules)
    table = comparison.compare(
        rules,
        options.file,
        ranks=_ranks(options.ranks),
        sizes=sizes_of(options.sizes)[0],
        collectives=_names(options.collectives),
        repetitions=options.repetitions,
        rounds=options.rounds,
    )
    print(comparison.as_text(table))
    return 0


def _print_remarks(rules):
    for remark in rules.remarks:
        print(f"{rules.name}:{remark.line}: {remark.text}", file=sys.stderr)


def _names(given):
    return None if given is None else [name.strip() for name in given.split(",")]


def _ranks(given):
    from mpilab.util.units import ranks_of

    return () if given is None else ranks_of(given)


# `mpilab cannon 3 -n 4 a.bin b.bin -o c.bin`: multiply matrix files with Cannon's algorithm.

CANNON_DESCRIPTION = """\
C = A B by Cannon's algorithm on a square grid of ranks.

Stages: 1 rank 0 reads, and sends blocks point-to-point; 2 the same by collectives; 3 every rank
reads and writes its own blocks with MPI-IO. C is the same, byte by byte, for all stages and ranks.

Files are those of 'mpilab matrix'. Stages 1 and 2 read binary and text ones, stage 3 binary ones
only; C is always binary.
"""


def add_cannon(commands):
    """Add the command to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "cannon",
        help="multiply matrix files by Cannon's algorithm, in one of three stages",
        description=CANNON_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("stage", type=int, choices=(1, 2, 3), metavar="STAGE", help="1, 2 or 3")
    parser.add_argument("a", type=Path, metavar="A", help="file of the left matrix")
    parser.add_argument(
        "b", type=Path, metavar="B", help="file of the right one: as many rows as A has columns"
    )
    parser.add_argument(
        "-n", "--ranks", type=int, default=4, metavar="P", help="a square number; default: 4"
    )
    parser.add_argument(
        "-o",
        "--out",
        type=Path,
        metavar="C",
        help="file of the product; default: it is thrown away",
    )
    parser.add_argument(
        "--limit",
        type=float,
        default=600.0,
        metavar="SECONDS",
        help="that it may take; default: 600",
    )
    parser.set_defaults(call=call_cannon)


def call_cannon(options):
    """Multiply the matrices, and print the time and memory used."""
    from mpilab.mpiio import cannon

    print(
        cannon.run(
            options.stage, options.ranks, options.a, options.b, options.out, limit=options.limit
        )
    )
    if options.out is not None:
        print(f"C: {options.out}")


# `mpilab matrix make 512x512 a.bin`: create, convert, show, check and multiply matrix files.

MATRIX_DESCRIPTION = """\
Matrix files, binary (two int32, the numbers of rows and columns, then doubles row by row) or text
(a line "ROWS COLUMNS", then a line for each row). Which one a file is, it says itself.
"""


def add_matrix(commands):
    """Add the command and its verbs to `commands`, argparse's subparsers."""
    parser = commands.add_parser(
        "matrix", help="make, convert, show and check matrix files", description=MATRIX_DESCRIPTION
    )
    parts = parser.add_subparsers(metavar="WHAT", required=True)

    make = _part(parts, "make", "write a matrix of any size, the same for the same seed", _make)
    make.add_argument("size", type=_size, metavar="ROWSxCOLUMNS", help="e.g. 512x512")
    make.add_argument("file", type=Path, metavar="FILE")
    make.add_argument("--seed", type=int, default=1, metavar="N", help="default: 1")
    make.add_argument("--text", action="store_true", help="as text; else binary")
    make.add_argument("--integers", action="store_true", help="-9 to 9; else from -1 to 1")

    for name, what in (("to-text", "text"), ("to-binary", "binary")):
        convert = _part(parts, name, f"write a matrix file as {what}; no bit is lost", _convert)
        convert.add_argument("source", type=Path, metavar="FROM")
        convert.add_argument("target", type=Path, metavar="TO")
        convert.set_defaults(text=what == "text")

    for name, words, call in (
        ("show", "print a matrix; of a large one its corners", _show_matrix),
        (
            "check",
            "read files to their end, and say what is in them, or wrong with them",
            _check_matrix,
        ),
    ):
        looked_at = _part(parts, name, words, call)
        looked_at.add_argument("files", type=Path, nargs="+", metavar="FILE")

    product = _part(parts, "product", "C = A B by numpy, to check others against", _product)
    for name in ("a", "b", "c"):
        product.add_argument(name, type=Path, metavar=name.upper())
    product.add_argument("--text", action="store_true", help="write C as text; else binary")


def _part(parts, name, words, call):
    part = parts.add_parser(name, help=words, description=words[0].upper() + words[1:] + ".")
    part.set_defaults(call=call)
    return part


def _size(text):
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    if found is None:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a size; write rows x columns, e.g. 512x512"
        )
    return int(found[1]), int(found[2])


def _make(options):
    from mpilab.mpiio.files import make

    make(
        options.file,
        *options.size,
        seed=options.seed,
        text=options.text,
        integers=options.integers,
        progress=sys.stderr.isatty(),
    )
    print(f"{options.size[0]} x {options.size[1]}: {options.file}")


def _convert(options):
    from mpilab.mpiio import files
    from mpilab.mpiio.files import convert

    convert(options.source, options.target, text=options.text, progress=sys.stderr.isatty())
    rows, columns = files.size(options.target)
    print(f"{rows} x {columns}: {options.target}")


def _show_matrix(options):
    from mpilab.mpiio.files import table

    for file in options.files:
        print(f"{file}: {table(file)}")


def _check_matrix(options):
    from mpilab.errors import InputError
    from mpilab.mpiio.files import check

    wrong = 0
    for file in options.files:
        try:
            print(check(file, progress=sys.stderr.isatty()))
        except InputError as error:
            wrong += 1
            print(f"mpilab: {error}", file=sys.stderr)
    return 1 if wrong else 0


def _product(options):
    from mpilab.mpiio.files import product

    product(options.a, options.b, options.c, text=options.text)
    print(f"{options.a} times {options.b}: {options.c}")


# `mpilab bench osu_bcast ...`: print the table of an OSU micro-benchmark.


def options(arguments=None):
    """The options of `mpilab bench osu_NAME ...`; None for any other command."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] != ["bench"] or not arguments[1:2] or not arguments[1].startswith("osu_"):
        return None
    parsed = _parser(arguments[1]).parse_args(arguments[2:])
    parsed.benchmark, parsed.call = arguments[1], call_osu
    return parsed


def _parser(benchmark):
    from mpilab.measure.osu import BENCHMARKS

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
    parser.add_argument(
        "-i",
        "--iterations",
        type=int,
        metavar="N",
        help="timed iterations of a size; default 1000 (10000 in osu_latency, 100 "
        "in osu_bw), above 8 KiB 100 (1000, 20)",
    )
    parser.add_argument(
        "-x",
        "--warmup",
        type=int,
        metavar="N",
        help="iterations before them that are not timed; default 100 (osu_bw: 10), "
        "above 8 KiB 10 (2)",
    )
    parser.add_argument(
        "-m",
        "--message-size",
        metavar="[MIN:]MAX",
        dest="sizes",
        help=f"message sizes in bytes, doubled from MIN on; default 1:{kind.largest}",
    )
    parser.add_argument(
        "-f",
        "--full",
        action="store_true",
        help="collectives: also the least and the largest mean of a rank, and the iterations",
    )
    parser.add_argument(
        "-c",
        "--validation",
        action="store_true",
        dest="validate",
        help="compare each result with what it should be",
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
    parser.add_argument("--map-by", metavar="WORDS", help="mpirun's option, passed on as it is")
    parser.add_argument(
        "--own", action="store_true", help="the kit's program, even where OMB's is on PATH"
    )
    return parser


def call_osu(options):
    """Run the benchmark and print its table line by line; 1 if a result was wrong."""
    from tqdm import tqdm

    from mpilab.measure.osu import Options, benchmark_of, run

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
    rows = Options(benchmark_of(options.benchmark), **asked).row_count
    with tqdm(
        total=rows,
        desc=options.benchmark,
        unit="size",
        leave=False,
        file=sys.stderr,
        disable=not sys.stderr.isatty(),
    ) as bar:

        def show(line):
            # tqdm.write removes the bar and redraws it below the line.
            tqdm.write(line, file=sys.stdout)
            sys.stdout.flush()
            bar.update(line.lstrip()[:1].isdigit())

        table = run(
            options.benchmark,
            **asked,
            mca=options.mca,
            cpu_list=options.cpu_list,
            map_by=options.map_by,
            own=options.own,
            on_line=show,
        )
    if table.all_valid is False:
        print(
            f"mpilab: {options.benchmark}: a result was wrong; see the column Validation",
            file=sys.stderr,
        )
        return 1
    return 0
