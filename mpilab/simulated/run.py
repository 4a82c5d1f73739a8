"""Cases of a kernel on a simulated platform: what mpilab.launch.run_cases does with mpirun, and the
same Results, with every time a simulated one.

One smpirun simulates all cases of the same ranks on the same hosts, one after the other. To compute
takes no simulated time: what a case takes depends on its messages alone, and is the same on every
machine and in every run.
"""

import tempfile
from contextlib import closing
from dataclasses import replace

from mpilab import orders
from mpilab.errors import InputError
from mpilab.result import DONE, ERROR, SKIPPED, TIME_OUT, Result
from mpilab.simulated.build import tool
from mpilab.simulated.follow import Run
from mpilab.simulated.platforms import holding, of_places
from mpilab.simulated.platforms import platform as platform_of
from mpilab.simulated.standing import standing

MOST_RANKS = 4096  # beyond, the system's limit on mappings of a process (vm.max_map_count) is met
ONE_HOST = "flat-1x{ranks}"


def simulate(library, function, cases, platform=None, *, order="seq", seed=1, groups=None,
             limit=60.0, standstill=2.0, on_result=None, keep=None):  # fmt: skip
    """Simulate `cases` of `function` in `library` (mpilab.simulated.build); list of Result.

    platform   a Platform, Description or name (mpilab.simulated.platforms). Without one a case runs
               on the platform of its own, on nodes as its `places` say, or on one host. Its hosts
               take more ranks than they have slots where all take as many (platforms.holding).
    order      on which hosts of the platform the ranks are: one of mpilab.orders.ORDERS (some have
               a `seed`), or a list with the name of each rank's host.
    groups     for each case the groups that it is in, as in mpilab.launch.run_cases.
    limit      seconds of real time that one case may take.
    standstill seconds of processor time without a call, after which the ranks are looked at.
    on_result, keep   as in mpilab.launch.run_cases.

    A case that is not recorded and does not come to its end is simulated again, recorded: its
    Result tells where the ranks are. Where it does come to its end then, the machine was too busy
    for `limit`: its outcome is ERROR.

    Raises SetupError without SimGrid, InputError for what cannot be simulated.
    """
    tool("smpirun")
    cases = list(cases)
    where = [_where(case, platform, order, seed) for case in cases]
    groups = list(groups) if groups is not None else [(i,) for i in range(len(cases))]
    results, failed = [None] * len(cases), set()
    with tempfile.TemporaryDirectory(prefix="mpilab-simulated-") as scratch:
        for place in dict.fromkeys(where):
            left = [i for i, one in enumerate(where) if one == place]
            while left:
                for number in [i for i in left if failed.issuperset(groups[i])]:
                    results[number] = Result(cases[number], SKIPPED)
                left = [i for i in left if results[i] is None]
                if not left:
                    break
                run = Run(library, function, {i: cases[i] for i in left}, *place, scratch, keep)
                with closing(run.results(limit=limit, standstill=standstill)) as came:
                    for number, result in came:
                        if result.outcome != DONE and not cases[number].record:
                            result = _again(library, function, result, place, scratch,
                                            limit=limit, standstill=standstill)  # fmt: skip
                        results[number] = result
                        left.remove(number)
                        if result.outcome != DONE:
                            failed.update(groups[number])
                        if on_result:
                            on_result(result)
    return results


def _again(library, function, result, place, scratch, **limits):
    """What the same case looks like recorded, as a Result of the case that was asked for."""
    case = replace(result.case, record=True)
    with closing(
        Run(library, function, {0: case}, *place, scratch, None).results(**limits)
    ) as came:
        _, recorded = next(came)
    if recorded.outcome != DONE:
        return replace(recorded, case=result.case)
    if result.outcome != TIME_OUT:
        return result
    detail = "it took too long, but came to its end when it was simulated again: a busy machine?"
    return replace(result, outcome=ERROR, detail=detail)


def _where(case, platform, order, seed):
    """(platform, name of each rank's host in MPI_COMM_WORLD) of a case; both can be compared."""
    if case.collective == "read":
        raise InputError("read: files cannot be simulated (SimGrid moves no data of MPI-IO)")
    if case.openmpi >= 0 or case.monitor:
        raise InputError(
            "openmpi=…, monitor=…: Open MPI's own algorithms and counters cannot be simulated; "
            "leave them out, or run the case with mpirun"
        )
    if case.ranks > MOST_RANKS:
        raise InputError(f"ranks={case.ranks}: at most {MOST_RANKS} can be simulated")
    if (case.places or case.platform) and platform is not None:
        raise InputError(
            "the case has places of its own; leave them out where it runs on a platform"
        )
    if case.platform:
        return standing(case.platform)
    if case.places:
        found, names = of_places(case.places)
        # The harness gives a reversed communicator its places in the order of its own ranks.
        return found, tuple(names[::-1] if case.reversed else names)
    found = platform_of(ONE_HOST.format(ranks=case.ranks) if platform is None else platform)
    if not isinstance(order, str):
        names = tuple(order)
        known = {host.name for host in found.description.hosts}
        wrong = [name for name in names if name not in known]
        if wrong or len(names) < case.ranks:
            raise InputError(
                f"order: hosts of {len(names)} ranks for {case.ranks}"
                + (f", and {wrong[0]!r} is none of {found.name}" if wrong else "")
            )
        return found, names[: case.ranks]
    found = holding(found, case.ranks)
    return found, tuple(orders.order(found.description, order, ranks=case.ranks, seed=seed))
