"""Explain why a run failed, in terms that a student can act on."""

from mpilab.diagnosis.causes import explain


def diagnose(result):
    """The Diagnosis of a Result (mpilab.runners.result); None if nothing is wrong.

    Of several causes, the first in this order is reported: a sanitizer report, a crash, an MPI
    error, a deadlock, a time-out, a wrong return code, a wrong result, a leak. The others go into
    the notes.
    """
    return result.diagnosis if result.diagnosis is not None else explain(result)
