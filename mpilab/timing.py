"""Time kernels over block sizes on the active cluster."""

import warnings

import numpy as np

from mpilab import session
from mpilab.cluster.engines import active_cluster
from mpilab.errors import InputError
from mpilab.harness import Case
from mpilab.kernelrun import KernelRun
from mpilab.remains import remains
from mpilab.result import DONE

# A call of a sweep takes milliseconds; this is for kernels that never end.
LIMIT_S = 20.0


def sweep(functions, *, sizes, ranks=None, repetitions=30, warmup=5, strict=False,
          progress=True):  # fmt: skip
    """Time kernels over block sizes on the active cluster; table with mpilab.plots.sweep.ROW rows.

    functions    kernel names, e.g. ["allgather_ring", "allgather_bruck"].
    sizes        bytes a block (m).
    ranks        list of numbers of ranks; by default the cluster's.
    repetitions  timed calls, after `warmup` calls that are not.
    strict       make buffered sends synchronous, as in `run`.

    Two times of each call: span_s, from the first rank's entry to the last rank's exit, and
    mean_s, the mean over ranks of each one's own duration, which is what the OSU benchmarks
    report. Each size is first run once, recorded and compared, so that no wrong result is timed;
    a kernel that fails there is left out of that size, and one that hangs, crashes or isn't
    defined, of all that follow. One warning a kernel says so.
    """
    from tqdm.auto import tqdm

    from mpilab.plots.sweep import ROW

    cluster = active_cluster()
    known, left_out = _known(functions)
    rows, broken = [], set()
    plan = [
        (function, number, size)
        for function in known
        for number in (ranks or [cluster.n])
        for size in sizes
    ]
    for function, number, size in tqdm(plan, desc="sweep", disable=not progress, leave=False):
        if function in broken:
            continue
        collective, _, algorithm = function.partition("_")
        shape = {"collective": collective, "ranks": number, "count": size, "datatype": "byte",
                 "strict": strict}  # fmt: skip
        cases = [
            Case(**shape),
            Case(**shape, record=False, dump=False, warmup=warmup, repetitions=repetitions),
        ]
        probe, measured = session.run_cases(function, cases, groups=[(0,), (0,)], limit=LIMIT_S)
        trouble = KernelRun(function, probe).trouble
        if not trouble and remains(probe):
            # The timed calls, which are not recorded, have left the same behind.
            trouble = "it leaves messages or requests behind"
            cluster.restart()
        if trouble or measured.outcome != DONE:
            where = f"{number} rank{'s' * (number != 1)} and {size} bytes a block"
            left_out.setdefault(function, []).append(f"with {where}: {trouble or measured.outcome}")
            if measured.outcome != DONE:
                broken.add(function)
            continue
        spans = np.stack([output.spans_ns for output in measured.outputs])
        span = (spans[:, :, 1].max(axis=0) - spans[:, :, 0].min(axis=0)) / 1e9
        mean = (spans[:, :, 1] - spans[:, :, 0]).mean(axis=0) / 1e9
        rows += [(algorithm, number, size, k, span[k], mean[k]) for k in range(repetitions)]
    _warn_of(left_out, broken)
    return np.array(rows, ROW)


def _known(functions):
    """(functions that have a library, {function: [why there is none]}); InputError without any."""
    known, missing = [], {}
    for function in functions:
        try:
            session.library_of(function)
        except InputError as error:
            missing[function] = [str(error)]
        else:
            known.append(function)
    if not known:
        raise InputError(
            "; ".join(reason for (reason,) in missing.values())
            or "sweep([]): name at least one kernel"
        )
    return known, missing


def _warn_of(left_out, broken):
    for function, reasons in left_out.items():
        more = (
            "; it was not tried any further"
            if function in broken
            else (f"; and {len(reasons) - 1} times more" if len(reasons) > 1 else "")
        )
        warnings.warn(f"{function} is left out of the sweep {reasons[0]}{more}", stacklevel=3)
