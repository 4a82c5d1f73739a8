"""Show where the processor time of a graded submission goes, as a table in Markdown.

    python tools/phases.py [SUBMISSION.ipynb LAB]

Grades one submission (default: ada's of the sample class), one sandboxed job at a time, and adds
up the processor time of the jobs of each kind, including all processes that they start. The rest is
the grader's own. docs/performance.md has such a table.
"""

import resource
import shutil
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mpilab.grading.grade import Assignment, grade, prepare
from mpilab.grading.sandbox import Outcome, Sandbox

ROOT = Path(__file__).resolve().parents[1]
DEFAULT = (str(ROOT / "grading/sample-class/ada/02-allgather.ipynb"), "02-allgather")
# The last word of a job's command line (mpilab.grading.workers): what the job does.
PHASES = {
    "execute": "run the notebook with papermill, for the feedback page",
    "compile": "compile an answer, natively and for the jail",
    "simulate": "simulate an answer's cases in the jail",
    "run": "run an answer's cases on Open MPI",
    "calls.py": "call a Python answer",
}
OTHER, OWN = "check that the sandbox isolates", "the grader: compare, judge, write pages"


def used(whose: int) -> float:
    """Seconds of processor time of this process or of its children (RUSAGE_SELF, …)."""
    usage = resource.getrusage(whose)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Grade the submission named on the command line, and print the table."""
    path, lab = sys.argv[1:] or DEFAULT
    seconds: dict[str, float] = defaultdict(float)
    jobs = Counter[str]()
    plain_run = Sandbox.run

    def run(sandbox: Sandbox, command: Sequence[str], **options: Any) -> Outcome:
        before = used(resource.RUSAGE_CHILDREN)
        outcome = plain_run(sandbox, command, **options)
        phase = PHASES.get(Path(command[-1]).name, OTHER)
        seconds[phase] += used(resource.RUSAGE_CHILDREN) - before
        jobs[phase] += 1
        return outcome

    prepare(Assignment.load(lab))  # so that nothing of the kit has to be built below
    with tempfile.TemporaryDirectory(prefix="mpilab-phases-") as scratch:
        student = Path(scratch, "submissions", "student")
        student.mkdir(parents=True)
        shutil.copy(path, student / f"{lab}.ipynb")
        setattr(Sandbox, "run", run)  # noqa: B010 (mypy refuses an assignment to a method)
        begun = used(resource.RUSAGE_SELF)
        grade(student.parent, lab, Path(scratch, "out"), jobs=1, progress=False)
        seconds[OWN], jobs[OWN] = used(resource.RUSAGE_SELF) - begun, 1
    print("| phase | times | processor time |\n|---|---|---|")
    for phase, total in sorted(seconds.items(), key=lambda each: -each[1]):
        print(f"| {phase} | {jobs[phase]} | {total:.1f} s |")
    print(f"| all | | {sum(seconds.values()):.1f} s |")


if __name__ == "__main__":
    main()
