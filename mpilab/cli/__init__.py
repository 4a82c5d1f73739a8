"""The command `mpilab`: its parser, and the subcommands grade, release, doctor and bench.

The modules below add the others. A command imports what it runs only when it is called.

run       run, costs, sweep, simulate
measure   bench osu_NAME, reads, learn, rules, cannon, matrix
grading   marks, regrade, merge, report, rubric
course    collect, export, similar, leaderboard
cluster   hosts, hostfile, kernelspec, new
"""

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path

from mpilab import __version__
from mpilab.cli import cluster, course, grading, measure, run
from mpilab.errors import InputError, MpilabError
from mpilab.util import door
from mpilab.util.arguments import positive


def main(arguments=None):
    """Run `mpilab ARGUMENTS`; the exit status: 0, 1 if something is wrong, 2 for bad usage."""
    words = sys.argv[1:] if arguments is None else arguments
    where = " ".join(["mpilab", *(word for word in words[:2] if word[:1].isalpha())])
    return door.run("mpilab", lambda: _call(arguments), where=where)


def _call(arguments):
    options = measure.options(arguments) or _parser().parse_args(arguments)
    return options.call(options)


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

    run.add_run(commands)
    run.add_costs(commands)

    doctor = commands.add_parser(
        "doctor",
        help="check this machine and suggest fixes",
        epilog="Exit status: 0 if everything named by --for works, even with limits; "
        "1 if any of it does not.",
    )
    doctor.add_argument("--json", action="store_true", help="print checks and verdicts as JSON")
    doctor.add_argument(
        "--for",
        dest="uses",
        metavar="USE[,USE...]",
        default="labs,grading",
        help="what must work for exit status 0: labs, grading, hosts, simulation, slurm "
        "(default: %(default)s)",
    )
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
    run.add_sweep(commands)
    cluster.add_hostfile(commands)
    cluster.add_hosts(commands)
    cluster.add_kernelspec(commands)
    course.add_leaderboard(commands)
    measure.add_learn(commands)
    grading.add_marks(commands)
    grading.add_regrade(commands)
    grading.add_merge(commands)
    measure.add_matrix(commands)
    measure.add_cannon(commands)
    measure.add_reads(commands)
    cluster.add_new(commands)
    grading.add_rubric(commands)
    measure.add_rules(commands)
    run.add_simulate(commands)
    course.add_collect(commands)
    grading.add_report(commands)
    course.add_export(commands)
    course.add_similar(commands)
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
        print(
            "WARNING: no sandbox. Submissions run with your own rights and can read and change "
            "your files; the gradebook says so.",
            file=sys.stderr,
        )
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
    from mpilab.course.handout import handout, write_start
    from mpilab.grading.release import write_checks, write_release
    from mpilab.judging.rubric import load
    from mpilab.util.kit import ROOT

    sources = sorted((ROOT / "labs" / "source").glob("*.py"))
    known = [source.stem for source in sources]
    if options.lab and options.lab not in known:
        raise InputError(f"lab {options.lab!r}: there is none; write one of {', '.join(known)}")
    if options.handout and not options.lab:
        raise InputError(
            f"--handout {options.handout}: a handout is for one lab, because the answers "
            f"of one lab are given in the next; write e.g. mpilab release {known[0]} --handout DIR"
        )
    labs = [options.lab] if options.lab else known
    may_write = os.access(ROOT / "labs", os.W_OK)
    if not may_write and not options.handout:
        raise InputError(
            f"{ROOT / 'labs'}: you may not write there. 'mpilab release LAB --handout DIR' makes a "
            "folder to hand out, 'mpilab new DIR' one to work in"
        )
    for lab in labs:
        source = ROOT / "labs" / "source" / f"{lab}.py"
        if may_write:
            path = write_release(source, ROOT / "labs" / f"{lab}.ipynb")
            print(f"student version: {path}")
        rubric = ROOT / "grading" / lab / "rubric.toml"
        if may_write and rubric.is_file():
            path = write_checks(rubric, ROOT / "labs" / "checks" / f"{lab}.toml")
            if path:
                print(f"public checks: {path}")
        if options.handout:
            handout(lab, options.handout, load(rubric).references)
            print(f"handout: {options.handout}")
    print(f"first page: {write_start(sources, ROOT / 'labs', ROOT)}")


def _doctor(options):
    from mpilab.doctor import USES, as_json, examine, table, verdicts, work
    from mpilab.kernels.build import KERNELS, need
    from mpilab.util import kit

    uses = [name.strip() for name in options.uses.split(",")]
    unknown = [name for name in uses if name not in USES]
    if unknown:
        raise InputError(f"--for {options.uses}: {unknown[0]!r} is none of {', '.join(USES)}")
    if kit.is_cached():
        with suppress(MpilabError):  # if the build fails, examine() reports why
            need(KERNELS)
    checks = examine()
    print(as_json(checks) if options.json else table(checks))
    return 0 if work(verdicts(checks), uses) else 1


def _bench(options):
    from mpilab.bench import run_figures, write_docs

    entries = run_figures(options.figure, options.out)
    if options.docs:
        write_docs(entries, options.docs)
