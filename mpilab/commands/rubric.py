"""`mpilab rubric`: what a rubric asks for, and the proof that it takes the points it should."""

from mpilab.commands.arguments import positive

DESCRIPTION = """\
show LAB: exercises and items, with their points and the cases that they are tried with.
test LAB: judge the reference answers, blank answers and all seeded bugs of a lab (grading/LAB/bugs)
as a student's would be, each twice: references must get every point, blanks none, each bug must
lose the items that grading/LAB/bugs.toml names and no other, and both runs must say the same. What
a person reads is left to a person. The exit status is 1 if anything is not as it should be.
See docs/rubrics.md.
"""


def add(commands):
    """Put the command's options among `commands`, argparse's sub-parsers."""
    from argparse import RawDescriptionHelpFormatter

    parser = commands.add_parser(
        "rubric",
        help="show a rubric, or prove that it takes the points it should",
        description=DESCRIPTION,
        formatter_class=RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    show = verbs.add_parser("show", help="exercises, items, points and cases")
    show.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    show.set_defaults(call=_show)
    test = verbs.add_parser("test", help="judge references, blanks and seeded bugs")
    test.add_argument("lab", help="name of the lab, e.g. 02-allgather")
    test.add_argument("--exercise", metavar="E", help="only the answers to this exercise")
    test.add_argument(
        "--jobs",
        type=positive,
        metavar="N",
        help="answers at a time (default: one more than there are cores)",
    )
    test.add_argument(
        "--runs",
        type=positive,
        default=2,
        metavar="N",
        help="how often each is judged: all runs must say the same (default: 2)",
    )
    test.add_argument(
        "--unsafe-no-sandbox", action="store_true", help="run the answers with your own rights"
    )
    test.add_argument("--no-progress", action="store_true", help="show no progress bar")
    test.set_defaults(call=_test)


def _show(options):
    from mpilab.grading.grade import Assignment
    from mpilab.grading.rubric_tables import rubric_table

    print(rubric_table(Assignment.load(options.lab).rubric))


def _test(options):
    """Print the table, every deviation and the counts; 1 where there is a deviation."""
    from mpilab.grading.proving import prove
    from mpilab.grading.rubric_tables import counts, proof_table

    proof = prove(
        options.lab,
        exercise=options.exercise,
        jobs=options.jobs,
        runs=options.runs,
        unsafe=options.unsafe_no_sandbox,
        progress=not options.no_progress,
    )
    print(proof_table(proof))
    for said in proof.deviations:
        print(f"NOT AS IT SHOULD BE: {said}")
    print(f"\n{counts(proof)}")
    return 1 if proof.deviations else 0
