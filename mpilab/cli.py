"""The command line: every command is one call of the package."""

import argparse
import sys
from pathlib import Path

from mpilab import __version__
from mpilab.commands import costs, osu, sweep
from mpilab.errors import InputError, MpilabError


def main(arguments=None):
    """Run `mpilab ARGUMENTS`; the exit status: 0, 1 if something is amiss, 2 for bad usage."""
    options = osu.options(arguments) or _parser().parse_args(arguments)
    try:
        return options.call(options) or 0
    except MpilabError as error:
        print(f"mpilab: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        if error.errno != 28:  # ENOSPC
            raise
        print(f"mpilab: {error.filename or 'a file'}: no space left on the disk. Free some, and "
              "run the same command again: what is done is kept.", file=sys.stderr)  # fmt: skip
        return 1
    except KeyboardInterrupt:
        print("\nmpilab: interrupted; what is done is kept.", file=sys.stderr)
        return 130


def _parser():
    parser = argparse.ArgumentParser(
        prog="mpilab", description="A lab course in MPI collectives: run, grade, measure."
    )
    parser.add_argument("--version", action="version", version=f"mpilab {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    grade = commands.add_parser("grade", help="grade the submissions of a class")
    grade.add_argument(
        "submissions",
        type=Path,
        help="a directory (or zip) with STUDENT/LAB.ipynb, or STUDENT.zip files",
    )
    grade.add_argument("--lab", required=True, help="name of the lab, e.g. 02-allgather")
    grade.add_argument(
        "--out",
        type=Path,
        required=True,
        help="directory for gradebook.sqlite, grades.csv and feedback/",
    )
    grade.add_argument(
        "--jobs",
        type=_positive,
        metavar="N",
        help="submissions at a time (default: one more than there are cores)",
    )
    grade.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run submissions with your own rights; only for ones that you trust",
    )
    grade.add_argument("--no-progress", action="store_true", help="show no progress bar")
    grade.set_defaults(call=_grade)

    release = commands.add_parser("release", help="make the student version of a lab")
    release.add_argument("lab", nargs="?", help="name of the lab (default: every lab)")
    release.add_argument(
        "--handout",
        type=Path,
        metavar="DIR",
        help="make a directory to hand out: the lab and all it needs, "
        "without solutions, rubrics and reference answers",
    )
    release.set_defaults(call=_release)

    run = commands.add_parser("run", help="run a kernel once, and show what it did")
    run.add_argument("kernel", help="name of the kernel, e.g. allgather_ring")
    run.add_argument("--ranks", type=_positive, default=4, metavar="P")
    run.add_argument(
        "--count",
        type=_size,
        metavar="N",
        help="elements a block, e.g. 7 or 64K (default: 4; none in a barrier)",
    )
    run.add_argument("--datatype", default="int")
    run.add_argument("--root", type=int, default=0, metavar="R", help="rank of the root")
    run.add_argument("--op", default="sum", help="of a reduction: sum, or compose")
    run.add_argument(
        "--segment",
        type=_size,
        default=0,
        metavar="BYTES",
        help="size of a segment, e.g. 4096 or 64K (default: the algorithm's own)",
    )
    run.add_argument("--fanout", type=int, default=0, metavar="K", help="children of a rank")
    run.add_argument("--radix", type=int, default=0, metavar="K", help="of a k-nomial tree")
    run.add_argument("--in-place", action="store_true")
    run.add_argument(
        "--strict",
        action="store_true",
        help="MPI_Send becomes MPI_Ssend: reliance on buffering hangs visibly",
    )
    run.add_argument(
        "--source",
        type=Path,
        metavar="FILE.c",
        help="C file that defines the kernel (default: the kit's own)",
    )
    run.add_argument(
        "--sanitize",
        action="store_true",
        help="compile FILE.c with AddressSanitizer and UndefinedBehaviorSanitizer",
    )
    run.set_defaults(call=_run)

    costs.add(commands)

    doctor = commands.add_parser("doctor", help="look what works on this machine, with remedies")
    doctor.add_argument("--json", action="store_true", help="print the checks as JSON")
    doctor.set_defaults(call=_doctor)

    bench = commands.add_parser(
        "bench", help="an OSU benchmark (osu_bcast, ...), or the figures of docs/performance.md"
    )
    bench.add_argument(
        "figure",
        help="name of a figure, or 'all'; for OSU's tables see 'mpilab bench osu_bcast --help'",
    )
    bench.add_argument("--out", type=Path, default=Path("out/bench.json"))
    bench.add_argument(
        "--docs",
        type=Path,
        metavar="FILE.md",
        help="also put the table into this file, between its marks",
    )
    bench.set_defaults(call=_bench)
    sweep.add(commands)
    return parser


def _positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text}: has to be 1 or more")
    return number


def _size(text):
    from mpilab.sweeps.sizes import bytes_of

    try:
        return bytes_of(text)
    except InputError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _grade(options):
    from mpilab.grading.grade import grade

    if options.unsafe_no_sandbox:
        print("WARNING: no sandbox. Submissions run with your own rights and can read and change "
              "your files; the gradebook says so.", file=sys.stderr)  # fmt: skip
    report = grade(
        options.submissions,
        options.lab,
        options.out,
        jobs=options.jobs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
    )
    print(report.table)
    count = len(report.graded)
    print(
        f"\n{count} of {len(report.verdicts)} submissions graded in {report.seconds:.0f} s"
        f"{'' if count else ' (nothing has changed)'}; sandbox: {report.sandbox}"
    )
    print(f"marks:     {report.out / 'grades.csv'}")
    print(f"gradebook: {report.out / 'gradebook.sqlite'}")
    print(f"feedback:  {report.out / 'feedback'}/STUDENT.html")


def _release(options):
    from mpilab.build import ROOT
    from mpilab.exercises import load
    from mpilab.grading.release import handout, write_release

    sources = sorted((ROOT / "labs" / "source").glob("*.py"))
    known = [source.stem for source in sources]
    if options.lab and options.lab not in known:
        raise InputError(f"lab {options.lab!r}: there is none; write one of {', '.join(known)}")
    labs = [options.lab] if options.lab else known
    for lab in labs:
        source = ROOT / "labs" / "source" / f"{lab}.py"
        print(f"student version: {write_release(source, ROOT / 'labs' / f'{lab}.ipynb')}")
        if options.handout:
            rubric = load(ROOT / "grading" / lab / "rubric.toml")
            handout(lab, options.handout, rubric.references)
            print(f"handout: {options.handout}")


def _run(options):
    import tempfile

    from mpilab.build import KERNELS, build, need
    from mpilab.diagnosis import slips
    from mpilab.diagnosis.missing_function import missing_function
    from mpilab.diagnosis.world import diagnose_world
    from mpilab.errors import BuildError
    from mpilab.harness import Case
    from mpilab.kernelrun import KernelRun, usual_count
    from mpilab.launch import run_cases
    from mpilab.panel import log
    from mpilab.panel.text import text
    from mpilab.promises import kernels_of
    from mpilab.symbols import defined

    if options.sanitize and options.source is None:
        raise InputError("--sanitize: what is to be compiled? Give it by --source FILE.c")
    collective = options.kernel.partition("_")[0]
    ours = [*kernels_of(collective), f"{collective}_openmpi"]
    if options.source is None and options.kernel not in ours:
        raise InputError(
            f"kernel {options.kernel!r}: the kit has none of that name; it has {', '.join(ours)}. "
            "A file of your own goes by --source FILE.c"
        )
    count = usual_count(collective) if options.count is None else options.count
    case = Case(collective, options.ranks, count, options.datatype, options.in_place,
                strict=options.strict, root=options.root, op=options.op, segment=options.segment,
                fanout=options.fanout, radix=options.radix)  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mpilab-run-") as folder:
        library = None if options.source else need(KERNELS)
        if options.source:
            source = options.source.read_text(encoding="utf-8")
            name = options.source.name
            try:
                built = build(source, folder, name=name, sanitize=options.sanitize)
            except BuildError as error:
                print(text(slips.diagnose_build(error, source)))
                return 1
            warned = slips.diagnose_warnings(built.warnings, source)
            if warned is not None:
                print(text(warned))
            world = diagnose_world(source, built.object)
            if world is not None:
                print(text(world))
            library, names = built.library, defined(built.object)
            if options.kernel not in names:
                print(text(missing_function(options.kernel, names, what=name)))
                return 1
        (result,) = run_cases(library, options.kernel, [case], sanitize=options.sanitize)
        run = KernelRun(options.kernel, result)
        print(run)
        if run.diagnosis is not None and run.diagnosis.log:
            kept = log.keep(run.diagnosis.log, kind=run.diagnosis.kind)
            if kept is not None:
                print(f"What Open MPI itself said: {kept}")
    return 0 if run.right else 1


def _doctor(options):
    from mpilab.doctor import as_json, examine, healthy, table

    checks = examine()
    print(as_json(checks) if options.json else table(checks))
    return 0 if healthy(checks) else 1


def _bench(options):
    from mpilab import figures, figures_sweeps  # noqa: F401  (they register them)
    from mpilab.bench import run_figures, write_docs

    entries = run_figures(options.figure, options.out)
    if options.docs:
        write_docs(entries, options.docs)


if __name__ == "__main__":
    sys.exit(main())
