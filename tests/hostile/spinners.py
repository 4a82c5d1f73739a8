"""How much more processor time than an honest submission takes one whose every answer burns it.

    python tests/hostile/spinners.py [LAB ...]

Grades our answers to each lab (default: 02-allgather), and then the same answers, each of which
burns processor time at one place: while it is compiled, in each call, in each call on Open MPI
only, in children there, or without end. docs/threat-model.md has the table.
"""

import re
import resource
import sys
import tempfile
from copy import deepcopy
from pathlib import Path

import nbformat

from mpilab.grading.answers import answer_id
from mpilab.grading.grade import Assignment, grade, prepare
from mpilab.grading.release import solutions
from mpilab.judging.rubric import KERNEL, PYTHON
from mpilab.kernels.build import function_of
from mpilab.util.kit import ROOT
from mpilab.util.processes import processor_seconds

BURST = """
    for (int burst = 0; burst < {bursts}; burst++) {{
        for (volatile int i = 0; i < 100 * 1000 * 1000; i++)
            ;
        int flag;
        MPI_Iprobe(MPI_ANY_SOURCE, 9999, {comm}, &flag, MPI_STATUS_IGNORE);
    }}
"""
FORKS = """
    extern int fork(void);
    for (int i = 0; i < 8; i++)
        if (fork() == 0)
            for (;;)
                ;
"""
# 2**24 additions, which gcc folds one by one.
LONG_TO_COMPILE = "#define X0 1+\n" + "".join(
    f"#define X{i + 1} X{i} X{i} X{i} X{i}\n" for i in range(12)
)
SPINNERS = ("compiling", "each call", "each call on Open MPI", "children on Open MPI", "endless")


def kernel(source: str, how: str) -> str:
    """The C answer `source` that burns processor time there."""
    head = re.search(rf"\b{function_of(source)}\s*\([^{{]*\{{", source)
    assert head, source
    communicator = re.search(r"MPI_Comm\s+(\w+)\s*\)", head[0])
    comm = communicator[1] if communicator else "MPI_COMM_WORLD"
    body = {
        "compiling": "\n    volatile int sum = X12 0;\n    (void)sum;\n",
        "each call": BURST.format(bursts=2, comm=comm),
        "each call on Open MPI": "\n#ifndef __wasm__"
        + BURST.format(bursts=2, comm=comm)
        + "#endif\n",
        "children on Open MPI": f"\n#ifndef __wasm__{FORKS}#endif\n",
        "endless": "\n    for (volatile int i = 0;; i++)\n        ;\n",
    }[how]
    changed = source[: head.end()] + body + source[head.end() :]
    if how == "compiling":
        first, rest = changed.split("\n", 1)
        changed = f"{first}\n{LONG_TO_COMPILE}{rest}"
    return changed


def function(source: str) -> str:
    """The answer in Python that never returns."""
    return re.sub(r"(\n|^)(def \w+\([^\n]*\n)", r"\1\2    while True: pass\n", source)


def taken(assignment: Assignment, answers: dict[str, str]) -> float:
    """The processor time of all jobs in which a submission with these answers is graded."""
    notebook = deepcopy(assignment.notebook)
    for cell in notebook.cells:
        cell.source = answers.get(answer_id(cell) or "", cell.source)
    with tempfile.TemporaryDirectory(prefix="mpilab-spinners-") as scratch:
        student = Path(scratch, "class", "student")
        student.mkdir(parents=True)
        nbformat.write(notebook, student / f"{assignment.lab}.ipynb")
        before = processor_seconds(resource.RUSAGE_CHILDREN)
        report = grade(student.parent, assignment.lab, Path(scratch, "out"), progress=False)
        spent = processor_seconds(resource.RUSAGE_CHILDREN) - before
    print(report.table, file=sys.stderr)
    return spent


def main() -> None:
    """Print the table for the labs named on the command line."""
    print("| lab | every answer burns | processor time | beyond an honest one |")
    print("|---|---|---:|---:|")
    for lab in sys.argv[1:] or ["02-allgather"]:
        assignment = Assignment.load(lab)
        prepare(assignment)
        answers = solutions(ROOT / "labs" / "source" / f"{lab}.py")
        honest = taken(assignment, answers)
        print(f"| {lab} | (honest) | {honest:.1f} s | |", flush=True)
        kinds = {exercise.id: exercise.kind for exercise in assignment.rubric.exercises}
        for how in SPINNERS:
            burning = {
                name: kernel(source, how)
                if kinds[name] == KERNEL
                else function(source)
                if kinds[name] == PYTHON
                else source
                for name, source in answers.items()
            }
            total = taken(assignment, burning)
            print(f"| {lab} | {how} | {total:.1f} s | {total - honest:.1f} s |", flush=True)


if __name__ == "__main__":
    main()
