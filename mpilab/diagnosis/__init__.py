"""Explain why a run failed, in terms that a student can act on.

In: a Result, or the compiler's messages. Out: a `model.Diagnosis`, which travels as JSON, and its
text, HTML and feedback.

diagnose(result)       the Diagnosis of a Result
smallest(case, fails)  the smallest case that fails

model         Diagnosis and its parts
evidence      what the recordings of a run prove
deadlock, time_out, crash, mpi_error, wrong_result
              one kind of failure each
no_memory     requests for memory that got none
memory        what wrong memory holds instead, and the mistake to which that points
single, reads
              wrong results of bcast, scatter and reductions, and of kernels that read files
collectives   mismatched collectives, broken barriers, and hints on the kernel's arguments
requests      requests that were never started or completed, and other leaks
compiler/     compile errors and warnings
render        every view of a Diagnosis, from one template
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from mpilab.cases.case import Case
from mpilab.cases.output import compare
from mpilab.diagnosis import (
    collectives,
    crash,
    deadlock,
    memory,
    mpi_error,
    no_memory,
    requests,
    time_out,
    wrong_result,
)
from mpilab.diagnosis.collectives import because_of_collectives, broken_barrier
from mpilab.diagnosis.crash import beside_calls, diagnose_report
from mpilab.diagnosis.evidence import Evidence, with_requests
from mpilab.diagnosis.model import ERROR, MPI_ERROR, WRONG_RESULT, Diagnosis
from mpilab.errors import InputError
from mpilab.runners.result import CRASH, DEADLOCK, DONE, SKIPPED, TIME_OUT, TRAP, Result
from mpilab.trace.callsites import parse, source_line
from mpilab.util import faults


def diagnose(result: Result) -> Diagnosis | None:
    """The Diagnosis of a Result (mpilab.runners.result); None if nothing is wrong.

    Of several causes, the first in this order is reported: a sanitizer report, a crash or
    trap, an MPI error, a deadlock, a time-out, a wrong return code, a wrong result, a leak. The
    others go into the notes.
    """
    made = result.diagnosis
    return made if isinstance(made, Diagnosis) else explain(result)


# The smallest failing case: fewer ranks, then less data, then simpler parameters.


def smallest(case: Case, fails: Callable[[Case], bool], *, budget: int = 16) -> tuple[Case, int]:
    """(smallest failing case, cases tried), among the cases smaller than the failing `case`.

    `fails(case) -> bool` is called at most `budget` times. The same answers give the same case:
    first the fewest ranks (if the root no longer exists, the last rank replaces it), then the
    smallest count, then int, a sum and even counts, without MPI_IN_PLACE, reversal, tunables and
    pretended places (with fewer ranks, the first ones keep theirs). For a read, the matrix shrinks
    and is distributed in plain blocks.
    """
    search = _Search(fails, budget)
    best = search.least(case, "ranks", range(1, case.ranks))
    best = search.least(best, "count", _counts(best.count))
    best = search.least(best, "matrix", _matrices(best) if best.matrix else ())
    for name, simple in (
        ("datatype", "int"),
        ("op", "sum"),
        ("in_place", False),
        ("reversed", False),
        ("strict", False),
        ("root", 0),
        ("segment", 0),
        ("fanout", 0),
        ("radix", 0),
        ("budget", 0),
        ("pattern", "even"),
        ("places", ()),
        ("buffer", 0),
        ("aggregators", 0),
        ("unused", False),
        ("sequence", ""),
        ("bystanders", 0),
        ("memory", 0),
    ):
        if getattr(best, name) != simple:
            best = search.least(best, name, (simple,))
    return best, search.tried


class _Search:
    def __init__(self, fails: Callable[[Case], bool], budget: int) -> None:
        self.fails, self.budget, self.tried = fails, budget, 0

    def least(self, case: Case, name: str, values: Iterable[Any]) -> Case:
        """`case` with the first of `values` for field `name` that fails; `case` if none does."""
        for value in values:
            if self.tried >= self.budget:
                return case
            ranks = value if name == "ranks" else case.ranks
            kept = {"root": min(case.root, ranks - 1), "places": case.places[:ranks]}
            try:
                smaller = replace(case, **{**kept, name: value})
            except InputError:  # no such case: a matrix may determine the number of ranks
                continue
            self.tried += 1
            if self.fails(smaller):
                return smaller
        return case


def _matrices(case: Case) -> list[str]:
    """Smaller matrices worth trying: some that the grid does not divide, then the same size in
    plain blocks."""
    rows, columns = case.distribution.rows, case.distribution.columns
    smaller = [(r, c) for r, c in ((1, 2), (2, 3), (4, 6), (5, 7)) if r * c < rows * columns]
    return [f"{r}x{c}" for r, c in (*smaller, (rows, columns)) if f"{r}x{c}" != case.matrix]


def _counts(count: int) -> list[int]:
    """Smaller counts worth trying: many bugs show with no data, or with one or two elements."""
    return [c for c in (0, 1, 2, 3, 4, 8, 16, 64, 1024) if c < count]


_PLAIN = {
    CRASH: "a rank crashed",
    TRAP: "the jail ended a rank",
    DEADLOCK: "deadlock: the ranks wait for one another forever",
    TIME_OUT: "the run did not finish in time",
}
_NO_FUNCTION = re.compile(r": no function (\w{1,100}) in it$", re.MULTILINE)  # from the harness


def explain(result: Result) -> Diagnosis | None:
    """The Diagnosis of a Result, made from what the run left behind; None if nothing is wrong.

    If the explanation itself fails, the Diagnosis states only what is certain: that the run
    crashed, that a rank returned an error, or that buffers are wrong.
    """
    try:
        return _explain(result)
    except Exception as fault:
        if (found := _plain(result)) is None:
            raise
        faults.record(fault, f"explaining {result.case.describe()}")
        return found


def _plain(result: Result) -> Diagnosis | None:
    """The Diagnosis, without a cause, of a run that is certainly wrong; None if nothing proves
    it wrong."""
    if result.outcome in _PLAIN:
        return Diagnosis(result.outcome, _PLAIN[result.outcome])
    if result.outcome != DONE or not result.outputs:
        return None
    refused = [rank for rank, output in enumerate(result.outputs) if output.returned]
    if refused:
        return Diagnosis(MPI_ERROR, f"rank {refused[0]} returned an error", ranks=tuple(refused))
    if result.case.collective == "barrier" or not result.case.dump:
        return None
    wrong = compare(result.case, result.outputs)
    if not wrong:
        return None
    ranks = tuple(difference.rank for difference in wrong)
    return Diagnosis(WRONG_RESULT, wrong[0].describe(), ranks=ranks)


def _explain(result: Result) -> Diagnosis | None:
    evidence = Evidence(result)
    found = _first_cause(evidence)
    if found is None:
        return None
    if found.kind in (DEADLOCK, TIME_OUT, MPI_ERROR, WRONG_RESULT):
        found = collectives.beside_world(found, evidence)
    found = no_memory.because_of_memory(found, evidence)
    printed = tuple(sorted((int(rank), str(text)) for rank, text in result.printed.items()))
    return replace(found, printed=found.printed or printed, log=found.log or result.log)


def _first_cause(evidence: Evidence) -> Diagnosis | None:
    result = evidence.result
    reported = _sanitizer(evidence)
    if reported is not None:
        return reported
    if result.outcome == CRASH:
        return crash.crash(evidence)
    if result.outcome == TRAP:
        return crash.trap(evidence)
    if result.outcome in (DEADLOCK, TIME_OUT):
        found = mpi_error.mpi_error(evidence)
        if found is not None:
            return because_of_collectives(mpi_error.with_table_of_ranks(found, evidence), evidence)
        return (
            deadlock.deadlock(evidence)
            if result.outcome == DEADLOCK
            else time_out.time_out(evidence)
        )
    if result.outcome == DONE:
        return because_of_collectives(_after_the_end(evidence), evidence)
    return _not_run(result)


def _after_the_end(evidence: Evidence) -> Diagnosis | None:
    """The Diagnosis of a run that completed; None if nothing is wrong."""
    found = mpi_error.mpi_error(evidence) or mpi_error.returned_code(evidence)
    wrong = None
    if found is not None and no_memory.is_refused(evidence):
        pass  # no comparison of large buffers that the kernel has given up to fill
    elif evidence.result.case.collective == "barrier":
        last = evidence.result.of_last_call() if evidence.result.case.sequence else None
        wrong = broken_barrier(evidence if last is None else Evidence(last))
    elif evidence.result.outputs and evidence.result.case.dump:
        wrong = wrong_result.wrong_result(evidence) or wrong_result.wrong_earlier(evidence)
    if found is not None:
        found = memory.sharpened(evidence, found)
    if found is not None and wrong is not None:
        return replace(found, notes=(*found.notes, f"Besides: {wrong.headline}."))
    if wrong is not None:
        found = wrong
    if found is not None:
        changed = requests.changed(evidence)
        also = (f"Besides, {changed.headline}.",) if changed is not None else ()
        return replace(found, notes=(*found.notes, *also, *requests.besides(evidence, found)))
    return requests.changed(evidence) or wrong_result.mixed_up(evidence) or requests.leak(evidence)


def _sanitizer(evidence: Evidence) -> Diagnosis | None:
    def text_of(file: str, line: int) -> str:
        return source_line(evidence.library, file, line)

    reports = [(rank, parse(text)) for rank, text in sorted(evidence.result.sanitizer.items())]
    known = [(rank, report) for rank, report in reports if report is not None]
    # mpirun kills the other ranks in mid-report, but a report with a stack frame is complete.
    if not known:
        return None
    rank, report = min(known, key=lambda one: not one[1].frames)
    found = beside_calls(diagnose_report(rank, report, text_of), report, evidence)
    return with_requests(found, report.access, evidence)


def _not_run(result: Result) -> Diagnosis:
    """The Diagnosis of a case that could not be run or was skipped."""
    if result.outcome == SKIPPED:
        return Diagnosis(
            ERROR,
            "this case was not run: a similar one failed before it",
            hint="Fix that one first.",
        )
    if found := _NO_FUNCTION.search(result.detail):
        return Diagnosis(
            ERROR,
            f"there is no kernel {found[1]}",
            hint="Does it match the name of your function exactly?",
        )
    first, _, rest = result.detail.strip().partition("\n")
    return Diagnosis(
        ERROR,
        f"the kernel could not be run: {first or 'no reason was given'}",
        hint="Your kernel is most likely not the cause: see the log, and run mpilab doctor.",
        notes=(rest,) if rest else (),
    )
