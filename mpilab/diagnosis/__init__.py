"""Why a run failed: from what it left behind to words that a student can act on."""


def diagnose(result):
    """The Diagnosis of a Result (mpilab.result); None where nothing is wrong.

    Of several causes the first counts: a sanitizer's report, a crash, an MPI error, a deadlock, a
    time-out, a wrong return code, a wrong result, a leak. The others go into the notes.
    """
    # Not above: mpilab.result needs mpilab.diagnosis.model, and this module needs mpilab.result.
    from mpilab.diagnosis.causes import explain

    return result.diagnosis if result.diagnosis is not None else explain(result)
