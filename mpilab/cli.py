"""The command line: every command is one call of the package."""

import argparse
import sys
from pathlib import Path

from mpilab import __version__
from mpilab.commands import (
    cannon,
    collect,
    costs,
    export,
    hostfile,
    hosts,
    leaderboard,
    learn,
    marks,
    matrix,
    merge,
    osu,
    reads,
    regrade,
    report,
    rubric,
    rules,
    run,
    similar,
    simulate,
    sweep,
)
from mpilab.commands.arguments import positive
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
        type=positive,
        metavar="N",
        help="notebooks and answers at a time (default: one more than there are cores)",
    )
    grade.add_argument(
        "--unsafe-no-sandbox",
        action="store_true",
        help="run submissions with your own rights; only for ones that you trust",
    )
    grade.add_argument(
        "--share",
        type=_share,
        metavar="K/N",
        help="grade only the K-th of N shares of the class, for 'mpilab merge' to put together",
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

    run.add(commands)
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
    hostfile.add(commands)
    hosts.add(commands)
    leaderboard.add(commands)
    learn.add(commands)
    marks.add(commands)
    regrade.add(commands)
    merge.add(commands)
    matrix.add(commands)
    cannon.add(commands)
    reads.add(commands)
    rubric.add(commands)
    rules.add(commands)
    simulate.add(commands)
    collect.add(commands)
    report.add(commands)
    export.add(commands)
    similar.add(commands)
    return parser


def _share(text):
    """'2/3' -> (2, 3)."""
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is no share; write K/N, e.g. 1/3, 2/3 or 3/3")
    return int(part), int(parts)


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
        share=options.share,
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
    for note in report.notes:
        print(note, file=sys.stderr)


def _release(options):
    from mpilab.build import ROOT
    from mpilab.exercises import load
    from mpilab.grading.handout import handout
    from mpilab.grading.release import write_release

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


def _doctor(options):
    from mpilab.doctor import as_json, examine, healthy, table

    checks = examine()
    print(as_json(checks) if options.json else table(checks))
    return 0 if healthy(checks) else 1


def _bench(options):
    from mpilab import (  # noqa: F401  (they register them)
        figures,
        figures_grading,
        figures_hosts,
        figures_reads,
        figures_simulated,
        figures_sweeps,
    )
    from mpilab.bench import run_figures, write_docs

    entries = run_figures(options.figure, options.out)
    if options.docs:
        write_docs(entries, options.docs)


if __name__ == "__main__":
    sys.exit(main())
