"""Which of several causes a run that failed is told by."""

import re
from dataclasses import replace

from mpilab.diagnosis import arrivals, leaks, mpi_error, wanted, world
from mpilab.diagnosis.crash import crash
from mpilab.diagnosis.deadlock import deadlock
from mpilab.diagnosis.evidence import Evidence
from mpilab.diagnosis.left_early import left_early
from mpilab.diagnosis.meetings import because_of_collectives
from mpilab.diagnosis.model import ERROR, MPI_ERROR, WRONG_RESULT, Diagnosis
from mpilab.diagnosis.sanitizer import beside_calls, diagnose_report, parse
from mpilab.diagnosis.time_out import time_out
from mpilab.diagnosis.wrong_result import wrong_result
from mpilab.result import CRASH, DEADLOCK, DONE, SKIPPED, TIME_OUT
from mpilab.sites import source_line

_NO_FUNCTION = re.compile(r": no function (\w{1,100}) in it$", re.MULTILINE)  # the harness says so


def explain(result):
    """The Diagnosis of a Result, made from what the run left behind; None if nothing is wrong."""
    evidence = Evidence(result)
    found = _first_cause(evidence)
    if found is None:
        return None
    if found.kind in (DEADLOCK, TIME_OUT, MPI_ERROR, WRONG_RESULT):
        found = replace(found, notes=(*found.notes, *filter(None, (world.note(evidence),))))
    printed = tuple(sorted((int(rank), str(text)) for rank, text in result.printed.items()))
    return replace(found, printed=found.printed or printed, log=found.log or result.log)


def _first_cause(evidence):
    result = evidence.result
    reported = _sanitizer(evidence)
    if reported is not None:
        return reported
    if result.outcome == CRASH:
        return crash(evidence)
    if result.outcome in (DEADLOCK, TIME_OUT):
        found = mpi_error.mpi_error(evidence)
        if found is not None:
            return because_of_collectives(mpi_error.with_table_of_ranks(found, evidence), evidence)
        return deadlock(evidence) if result.outcome == DEADLOCK else time_out(evidence)
    if result.outcome == DONE:
        return because_of_collectives(_after_the_end(evidence), evidence)
    return _not_run(result)


def _after_the_end(evidence):
    """What is wrong with a run that came to its end."""
    found = mpi_error.mpi_error(evidence) or mpi_error.returned_code(evidence)
    wrong = None
    if evidence.result.case.collective == "barrier":
        wrong = left_early(evidence)
    elif evidence.result.outputs and evidence.result.case.dump:
        wrong = wrong_result(evidence)
    if found is not None:
        found = arrivals.sharpened(evidence, found)
    if found is not None and wrong is not None:
        return replace(found, notes=(*found.notes, f"Besides: {wrong.headline}."))
    if wrong is not None:
        found = wrong
    if found is not None:
        return replace(found, notes=(*found.notes, *leaks.besides(evidence, found)))
    return leaks.leak(evidence)


def _sanitizer(evidence):
    def text_of(file, line):
        return source_line(evidence.library, file, line)

    reports = [(rank, parse(text)) for rank, text in sorted(evidence.result.sanitizer.items())]
    known = [(rank, report) for rank, report in reports if report is not None]
    # mpirun ends the others in the middle of what they say: a report with a place is a whole one.
    rank, report = min(known, key=lambda one: not one[1].frames, default=(None, None))
    if report is None:
        return None
    found = beside_calls(diagnose_report(rank, report, text_of), report, evidence)
    return wanted.with_requests(found, report.access, evidence)


def _not_run(result):
    """The Diagnosis of a case that could not be run, or was not."""
    if result.outcome == SKIPPED:
        return Diagnosis(ERROR, "this case was not run: one like it had failed before",
                         hint="Mend that one first.")  # fmt: skip
    if found := _NO_FUNCTION.search(result.detail):
        return Diagnosis(ERROR, f"there is no kernel {found[1]}",
                         hint="Is it the name of your function, letter by letter?")  # fmt: skip
    first, _, rest = result.detail.strip().partition("\n")
    return Diagnosis(
        ERROR, f"the kernel could not be run: {first or 'nobody said why'}",
        hint="This is most likely no fault of your kernel: see the log, and mpilab doctor.",
        notes=(rest,) if rest else (),
    )  # fmt: skip
