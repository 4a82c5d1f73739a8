"""Which of several causes a run that failed is told by."""

from dataclasses import replace

from mpilab.diagnosis import leaks, mpi_error
from mpilab.diagnosis.crash import crash
from mpilab.diagnosis.deadlock import deadlock
from mpilab.diagnosis.evidence import Evidence
from mpilab.diagnosis.model import ERROR, Diagnosis
from mpilab.diagnosis.sanitizer import diagnose_report, parse
from mpilab.diagnosis.time_out import time_out
from mpilab.diagnosis.wrong_result import wrong_result
from mpilab.result import CRASH, DEADLOCK, DONE, SKIPPED, TIME_OUT
from mpilab.sites import source_line


def explain(result):
    """The Diagnosis of a Result, made from what the run left behind; None if nothing is wrong."""
    found = _first_cause(Evidence(result))
    if found is None:
        return None
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
            return mpi_error.with_table_of_ranks(found, evidence)
        return deadlock(evidence) if result.outcome == DEADLOCK else time_out(evidence)
    if result.outcome == DONE:
        return _after_the_end(evidence)
    return _not_run(result)


def _after_the_end(evidence):
    """What is wrong with a run that came to its end."""
    found = mpi_error.mpi_error(evidence) or mpi_error.returned_code(evidence)
    wrong = (
        wrong_result(evidence) if evidence.result.outputs and evidence.result.case.dump else None
    )
    if found is not None and wrong is not None:
        return replace(found, notes=(*found.notes, f"Besides: {wrong.headline}."))
    if wrong is not None:
        found = wrong
    if found is not None:
        return replace(found, notes=(*found.notes, *leaks.besides(evidence)))
    return leaks.leak(evidence)


def _sanitizer(evidence):
    def text_of(file, line):
        return source_line(evidence.library, file, line)

    reports = [(rank, parse(text)) for rank, text in sorted(evidence.result.sanitizer.items())]
    known = [(rank, report) for rank, report in reports if report is not None]
    # mpirun ends the others in the middle of what they say: a report with a place is a whole one.
    rank, report = min(known, key=lambda one: not one[1].frames, default=(None, None))
    return report and diagnose_report(rank, report, text_of)


def _not_run(result):
    """The Diagnosis of a case that could not be run, or was not."""
    if result.outcome == SKIPPED:
        return Diagnosis(ERROR, "this case was not run: one like it had failed before",
                         hint="Mend that one first.")  # fmt: skip
    first, _, rest = result.detail.strip().partition("\n")
    return Diagnosis(
        ERROR, f"the kernel could not be run: {first or 'nobody said why'}",
        hint="This is most likely no fault of your kernel: see the log, and mpilab doctor.",
        notes=(rest,) if rest else (),
    )  # fmt: skip
