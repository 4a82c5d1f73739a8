"""`mpilab rules write|show|check|compare`: rules files of Open MPI (mpilab.openmpi_rules)."""

import argparse
import sys
from pathlib import Path

DESCRIPTION = """\
Rules files in Open MPI's classic format: which of its algorithms to use from how many ranks and
bytes on. Open MPI ignores a malformed one without a word; these commands tell.
"""
EXAMPLES = """\
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


def add(commands):
    """Put the command and its verbs among `commands`, argparse's sub-parsers."""
    rules = commands.add_parser(
        "rules", help="write, explain, prove and measure a rules file of Open MPI",
        description=DESCRIPTION, epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    verbs = rules.add_subparsers(metavar="VERB", required=True)
    _add_write(verbs)
    show = verbs.add_parser("show", help="what a file says, in words, and what is wrong with it")
    show.add_argument("file", type=Path, metavar="FILE")
    show.set_defaults(call=_show)
    _add_check(verbs)
    _add_compare(verbs)


def _add_write(verbs):
    write = verbs.add_parser("write", help="write a file from sweeps, or from a model",
                             description=WRITE,
                             formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    write.add_argument("sweeps", nargs="*", type=Path, metavar="SWEEP.csv",
                       help="of mpilab sweep, with Open MPI's algorithms")  # fmt: skip
    write.add_argument("--collectives", metavar="NAMES",
                       help="default: all that the sweeps have")  # fmt: skip
    write.add_argument("--model-ranks", metavar="16,64",
                       help="also rules for so many ranks, by models that are fitted to the "
                       "sweep's algorithms, or by --alpha and --beta")  # fmt: skip
    write.add_argument("--alpha", metavar="20us", help="time of a message, with a unit: ns, us, ms")
    write.add_argument("--beta", metavar="1ns", help="time of a byte, with a unit")
    write.add_argument("--sizes", default="1:1M", metavar="1:1M",
                       help="for --alpha and --beta: bytes, or powers of two "
                       "(default: 1:1M)")  # fmt: skip
    write.add_argument("--slack", type=float, default=0.05, metavar="0.05",
                       help="a choice so much slower than the fastest is good enough: less rules "
                       "(default: 0.05)")  # fmt: skip
    write.add_argument("--measure", default="span_s",
                       choices=("span_s", "mean_s", "max_s", "min_s"),
                       help="what medians are of, as in mpilab sweep "
                       "(default: span_s)")  # fmt: skip
    write.add_argument("-o", "--out", type=Path, metavar="FILE", help="default: print it")
    write.set_defaults(call=_write)


def _add_check(verbs):
    check = verbs.add_parser("check", help="prove by the messages that the rules take effect",
                             description=CHECK)  # fmt: skip
    check.add_argument("file", type=Path, metavar="FILE")
    check.add_argument("--ranks", metavar="4,8", help="default: those in the file, 2 to 16")
    check.add_argument("--sizes", metavar="1:64K",
                       help="bytes of a block in allgather, gather and scatter, else of the "
                       "message (default: two for each rule)")  # fmt: skip
    check.set_defaults(call=_check)


def _add_compare(verbs):
    compare = verbs.add_parser("compare", help="time the default, the rules and the best possible",
                               description=COMPARE)  # fmt: skip
    compare.add_argument("file", type=Path, metavar="FILE")
    compare.add_argument("--ranks", default="4", metavar="4,8", help="default: 4")
    compare.add_argument("--sizes", default="64,1K,16K,256K", metavar="1:64K",
                         help="default: 64,1K,16K,256K")  # fmt: skip
    compare.add_argument("--collectives", metavar="NAMES", help="default: all of the file")
    compare.add_argument("--repetitions", type=int, metavar="N",
                         help="timed calls in each round "
                         "(default: a third of mpilab sweep's)")  # fmt: skip
    compare.add_argument("--rounds", type=int, default=3, metavar="N",
                         help="how often all take their turn (default: 3)")  # fmt: skip
    compare.set_defaults(call=_compare)


def _write(options):
    from mpilab.errors import InputError
    from mpilab.openmpi_rules import choosing, written

    if options.out is not None and (options.out.is_dir() or not options.out.parent.is_dir()):
        raise InputError(f"{options.out}: no file can be made there; write to a folder that exists")
    rules, remarks = [], [" ".join(["mpilab rules write", *map(str, options.sweeps)])]
    for points in written.points(
        options.sweeps, collectives=_names(options.collectives), measure=options.measure,
        model_ranks=_ranks(options.model_ranks), alpha=options.alpha, beta=options.beta,
        sizes=options.sizes,
    ):  # fmt: skip
        chosen = choosing.choose(points, options.slack)
        expected = choosing.expected_words(choosing.expected(chosen, points))
        remarks.append(f"{points.collective}: {written.basis(points)}; {expected}")
        rules += chosen
    text = written.checked_text(rules, "\n".join(remarks))
    if options.out is None:
        print(text, end="")
        return 0
    options.out.write_text(text, encoding="utf-8")
    print("\n".join(remarks[1:]))
    print(f"{len(rules)} rules: {options.out}")
    return 0


def _show(options):
    from mpilab.openmpi_rules import explain, read
    from mpilab.openmpi_rules.model import NOTE
    from mpilab.openmpi_rules.running import environment_lines

    rules = read(options.file)
    print(explain(rules))
    _print_remarks(rules)
    print("\nOpen MPI decides by it with\n")
    print("\n".join(environment_lines(options.file)))
    return 1 if any(remark.kind != NOTE for remark in rules.remarks) else 0


def _check(options):
    from mpilab.openmpi_rules import proof, read, trials
    from mpilab.openmpi_rules.words import choice_words, reach_words
    from mpilab.sweeps.sizes import sizes_of

    rules = read(options.file)
    _print_remarks(rules)
    ranks = _ranks(options.ranks) or trials.ranks_to_try(rules)
    sizes = None if options.sizes is None else sizes_of(options.sizes)[0]
    proofs = proof.prove(rules, options.file, trials.points_of(rules, ranks, sizes))
    if proofs:
        print(proof.as_text(proofs))
    print(proof.summary(proofs))
    for rule in trials.not_tried(rules, proofs):
        print(f"line {rule.line}: {reach_words(rules, rule)}: {choice_words(rule)}: not tried; "
              "add --ranks or --sizes that it decides", file=sys.stderr)  # fmt: skip
    return 1 if not proofs or any(one.is_amiss for one in proofs) else 0


def _compare(options):
    from mpilab.openmpi_rules import comparison, read
    from mpilab.sweeps.sizes import sizes_of

    rules = read(options.file)
    _print_remarks(rules)
    table = comparison.compare(
        rules, options.file, ranks=_ranks(options.ranks), sizes=sizes_of(options.sizes)[0],
        collectives=_names(options.collectives), repetitions=options.repetitions,
        rounds=options.rounds,
    )  # fmt: skip
    print(comparison.as_text(table))
    return 0


def _print_remarks(rules):
    for remark in rules.remarks:
        print(f"{rules.name}:{remark.line}: {remark.text}", file=sys.stderr)


def _names(given):
    return None if given is None else [name.strip() for name in given.split(",")]


def _ranks(given):
    from mpilab.sweeps.sizes import ranks_of

    return () if given is None else ranks_of(given)
