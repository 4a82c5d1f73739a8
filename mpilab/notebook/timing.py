"""Time kernels over message sizes on the active cluster: mpilab.sweep."""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cases.case import Case, collective_of
from mpilab.cases.data import datatype
from mpilab.cluster.engines import active_cluster
from mpilab.errors import InputError
from mpilab.measure.sweep_table import ROW
from mpilab.notebook import session
from mpilab.notebook.session import KernelRun
from mpilab.runners.result import DONE, Result, leaves_state

# A call takes milliseconds; the limit is for kernels that never end.
LIMIT_S = 20.0


def sweep(
    functions: Iterable[str],
    *,
    sizes: Sequence[int] | None = None,
    ranks: Sequence[int] | None = None,
    repetitions: int = 30,
    warmup: int = 5,
    strict: bool = False,
    root: int = 0,
    segment: int = 0,
    fanout: int = 0,
    radix: int = 0,
    progress: bool = True,
) -> NDArray[Any]:
    """Time kernels over message sizes on the active cluster; a table (mpilab.measure.sweep_table).

    functions    kernel names, e.g. ["allgather_ring", "bcast_binomial"].
    sizes        bytes (m): of a block in an allgather, gather or scatter, of the whole message in
                 a bcast, reduce or allreduce. Reductions add ints, so their sizes are rounded up to
                 a multiple of 4 bytes. A barrier needs no sizes; its rows have 0 bytes.
    ranks        list of numbers of ranks; default: the cluster's.
    repetitions  timed calls, after `warmup` untimed calls.
    strict       strict mode, as in `run`.
    root         of the collectives that have one.
    segment, fanout, radix   tuning of all algorithms (segment in bytes); 0: their defaults.

    Times of each call, in seconds: span_s, from the first rank's entry to the last rank's exit; and
    the mean (mean_s, as the OSU benchmarks report), longest and shortest (max_s, min_s) of the
    ranks' own durations. Each size is first run once, recorded and compared, so that no wrong
    result is timed. A kernel that fails there is left out for that size; one that hangs, crashes or
    is not defined is left out from then on. Each such kernel gets one warning.
    """
    from tqdm.auto import tqdm

    cluster = active_cluster()
    known, left_out = _known(functions)
    rows, broken = [], set()
    tuned = {"segment": segment, "fanout": fanout, "radix": radix}
    plan = [
        (function, case)
        for function in known
        for number in (ranks or [cluster.n])
        for case in _cases(function, number, sizes, root, strict, tuned)
    ]
    for function, case in tqdm(plan, desc="sweep", disable=not progress, leave=False):
        if function in broken:
            continue
        timed = Case(**case, record=False, dump=False, warmup=warmup, repetitions=repetitions)
        cases = [Case(**case), timed]
        probe, measured = session.run_cases(function, cases, groups=[(0,), (0,)], limit=LIMIT_S)
        trouble = KernelRun(function, probe).trouble
        if not trouble and leaves_state(probe):
            # The timed calls, which are not recorded, left the same state behind.
            trouble = "it leaves messages or requests behind"
            cluster.restart()
        if trouble or measured.outcome != DONE:
            where = f"{case['ranks']} rank{'s' * (case['ranks'] != 1)}"
            if collective_of(case["collective"]).has_blocks:
                where += f" and {probe.case.block_bytes} bytes a block"
            left_out.setdefault(function, []).append(f"with {where}: {trouble or measured.outcome}")
            if measured.outcome != DONE:
                broken.add(function)
            continue
        rows += _rows(function, measured)
    _warn_of(left_out, broken)
    return np.array(rows, ROW)


def _cases(
    function: str,
    ranks: int,
    sizes: Sequence[int] | None,
    root: int,
    strict: bool,
    tuned: Mapping[str, int],
) -> list[dict[str, Any]]:
    """The Case arguments for one kernel, a dict for each size."""
    name = function.partition("_")[0]
    collective = collective_of(name)
    element = "int" if collective.reduces else "byte"
    width = datatype(element)[0].size
    counts = [0]
    if collective.has_blocks:
        if sizes is None:
            raise InputError(f"sweep of {function}: no sizes; give bytes, e.g. sizes=[64, 4096]")
        counts = [-(-size // width) for size in sizes]
    shape = {"collective": name, "ranks": ranks, "datatype": element, "strict": strict, **tuned}
    if collective.is_rooted:
        shape["root"] = root
    return [{**shape, "count": count} for count in dict.fromkeys(counts)]


def _rows(function: str, result: Result) -> list[tuple[Any, ...]]:
    """A row for each timed call of a Result."""
    case = result.case
    algorithm = function.partition("_")[2]
    mpis_own = algorithm == "openmpi" and function not in session.kernels
    what = (
        case.collective,
        "openmpi" if mpis_own else "ours",
        "default" if mpis_own else algorithm,
        0 if mpis_own else -1,
        case.ranks,
        case.block_bytes,
        case.segment,
        case.fanout,
        case.radix,
    )
    spans = np.stack([output.spans_ns for output in result.outputs])
    begin, end = spans[:, :, 0], spans[:, :, 1]
    whole, own = end.max(axis=0) - begin.min(axis=0), end - begin
    times = np.stack([whole, own.mean(axis=0), own.max(axis=0), own.min(axis=0)], axis=1) / 1e9
    return [(*what, repetition, *seconds) for repetition, seconds in enumerate(times)]


def _known(functions: Iterable[str]) -> tuple[list[str], dict[str, list[str]]]:
    """(Functions with a library, {function: [why it has none]}); InputError if none has one."""
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


def _warn_of(left_out: Mapping[str, Sequence[str]], broken: Collection[str]) -> None:
    for function, reasons in left_out.items():
        more = (
            "; it was not tried any further"
            if function in broken
            else (f"; and {len(reasons) - 1} times more" if len(reasons) > 1 else "")
        )
        warnings.warn(f"{function} is left out of the sweep {reasons[0]}{more}", stacklevel=3)
