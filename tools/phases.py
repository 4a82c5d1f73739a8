"""Show where the processor time of a graded submission goes, as a table in Markdown.

    python tools/phases.py [--submission FILE] [--lab LAB]
    python tools/phases.py --rubric [LAB ...]

Grades one submission (default: ada's of the sample class), one sandboxed job at a time, and adds
up the processor time of the jobs of each kind, including all processes that they start. The rest is
the grader's own. docs/performance.md has such a table.

With --rubric, judges our answers to the labs (default: all) instead, and compares what each job
takes with what the grader expects a right answer to take (mpilab.grading.referee.usual_work, and
notebook_seconds of the rubric). That is what the limits on processor time are made of.
"""

import argparse
import json
import resource
import shutil
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from mpilab.cases.case import Case
from mpilab.grading import referee
from mpilab.grading.answers import answer_id, exercises_only
from mpilab.grading.grade import Assignment, execute, grade, prepare
from mpilab.grading.proving import references_of
from mpilab.grading.release import solutions
from mpilab.grading.sandbox import Outcome, Sandbox, open_sandbox
from mpilab.judging.rubric import TEXT
from mpilab.util.processes import processor_seconds

ROOT = Path(__file__).resolve().parents[1]
SUBMISSION, LAB = ROOT / "grading/sample-class/ada/02-allgather.ipynb", "02-allgather"
# The last word of a job's command line (mpilab.grading.workers): what the job does.
PHASES = {
    "execute": "run the notebook with papermill, for the feedback page",
    "compile": "compile an answer, natively and for the jail",
    "simulate": "simulate an answer's cases in the jail",
    "run": "run an answer's cases on Open MPI",
    "calls.py": "call a Python answer",
}
OTHER, OWN = "check that the sandbox isolates", "the grader: compare, judge, write pages"


def compare(labs: Sequence[str]) -> None:
    """Print what each job of our answers to these labs takes, beside what is expected."""
    sandbox, plain_run = open_sandbox(), Sandbox.run
    print("| lab | answer | job | ranks | taken | expected | ratio |")
    print("|---|---|---|---:|---:|---:|---:|")

    def row(lab: str, name: str, verb: str, ranks: object, taken: float, usual: float) -> None:
        ratio = taken / usual
        print(
            f"| {lab} | {name} | {verb} | {ranks} | {taken:.2f} s | {usual:.2f} s | {ratio:.2f} |"
        )

    for lab in labs:
        assignment = Assignment.load(lab)
        prepare(assignment)
        answers = solutions(ROOT / "labs" / "source" / f"{lab}.py")
        for name, exercise, source in references_of(lab, assignment.rubric):
            asked = assignment.rubric.exercise(exercise)
            if asked.kind == TEXT:
                continue
            label = f"{exercise} ({name.removeprefix('reference').strip() or 'ours'})"

            def run(
                sandbox: Sandbox,
                command: Sequence[str],
                about: tuple[str, str] = (lab, label),
                **options: Any,
            ) -> Outcome:
                outcome = plain_run(sandbox, command, **options)
                verb, ranks, usual = Path(command[-1]).name, 0, referee.CALL_WORK_S
                if verb == "compile":
                    usual = referee.COMPILE_WORK_S
                elif verb in ("simulate", "run"):
                    job = json.loads(options["files"]["job.json"])
                    cases = [Case(**case) for case in job["cases"]]
                    form = referee.SIMULATED if verb == "simulate" else referee.REAL
                    ranks = sum(case.ranks + case.bystanders for case in cases)
                    usual = referee.usual_work(cases, form)
                row(*about, verb, ranks, outcome.cpu_seconds, usual)
                return outcome

            setattr(Sandbox, "run", run)  # noqa: B010 (mypy refuses an assignment to a method)
            referee.Referee(sandbox).judge(asked, source, blank=False)
            setattr(Sandbox, "run", plain_run)  # noqa: B010
        notebook = deepcopy(assignment.notebook)
        for cell in notebook.cells:
            cell.source = answers.get(answer_id(cell) or "", cell.source)
        usual = assignment.rubric.notebook_seconds
        before = processor_seconds(resource.RUSAGE_CHILDREN)
        execute(exercises_only(notebook), assignment.rubric.parameters, sandbox, usual)
        row(lab, "all", "execute", "", processor_seconds(resource.RUSAGE_CHILDREN) - before, usual)


def show(path: Path, lab: str) -> None:
    """Grade a submission to a lab, and print what each phase takes."""
    seconds: dict[str, float] = defaultdict(float)
    jobs = Counter[str]()
    plain_run = Sandbox.run

    def run(sandbox: Sandbox, command: Sequence[str], **options: Any) -> Outcome:
        before = processor_seconds(resource.RUSAGE_CHILDREN)
        outcome = plain_run(sandbox, command, **options)
        phase = PHASES.get(Path(command[-1]).name, OTHER)
        seconds[phase] += processor_seconds(resource.RUSAGE_CHILDREN) - before
        jobs[phase] += 1
        return outcome

    prepare(Assignment.load(lab))  # so that nothing of the kit has to be built below
    with tempfile.TemporaryDirectory(prefix="mpilab-phases-") as scratch:
        student = Path(scratch, "submissions", "student")
        student.mkdir(parents=True)
        shutil.copy(path, student / f"{lab}.ipynb")
        setattr(Sandbox, "run", run)  # noqa: B010 (mypy refuses an assignment to a method)
        begun = processor_seconds(resource.RUSAGE_SELF)
        grade(student.parent, lab, Path(scratch, "out"), jobs=1, progress=False)
        seconds[OWN], jobs[OWN] = processor_seconds(resource.RUSAGE_SELF) - begun, 1
    print("| phase | times | processor time |\n|---|---|---|")
    for phase, total in sorted(seconds.items(), key=lambda each: -each[1]):
        print(f"| {phase} | {jobs[phase]} | {total:.1f} s |")
    print(f"| all | | {sum(seconds.values()):.1f} s |")


def main() -> None:
    """The command line; see above."""
    every = sorted(path.parent.name for path in ROOT.glob("grading/*/rubric.toml"))
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--submission", type=Path, default=SUBMISSION, metavar="FILE")
    parser.add_argument("--lab", choices=every, default=LAB, metavar="LAB")
    parser.add_argument("--rubric", nargs="*", metavar="LAB", help="judge our answers to labs")
    args = parser.parse_args()
    unknown = [lab for lab in args.rubric or () if lab not in every]
    if unknown:
        parser.error(f"--rubric: no lab named {unknown[0]!r}; choose from {', '.join(every)}")
    if args.rubric is not None:
        compare(args.rubric or every)
    else:
        show(args.submission, args.lab)


if __name__ == "__main__":
    main()
