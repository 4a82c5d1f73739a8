"""Measure kernels on a cluster, learn rules from it, and tell what rules lose."""

from datetime import date

import numpy as np

from mpilab import decisions
from mpilab.allocation import SLURM
from mpilab.bench import machine
from mpilab.cluster.location import hosts_of
from mpilab.onhosts import time_on
from mpilab.orders import order


def measure(cluster, *, collectives, sizes, orders=("seq", "rr", "shuffled"), ppn=None,
            repetitions=7, progress=True):  # fmt: skip
    """Time all kernels of the collectives, Open MPI's own too, on a cluster; list of Timed.

    cluster  a Description or the name of one, whose hosts are emulated; "slurm": the nodes of the
             job that this runs in, their tasks as slots and their switches as groups.
    sizes    bytes, see mpilab.onhosts.time_on.
    orders   of the ranks (mpilab.orders).
    ppn      ranks a host, see Description.part: list of int; by default all its slots.

    Raises InputError, before anything is measured, for more ranks a host than any has slots.
    """
    chosen, found = hosts_of(cluster), []
    parts = [chosen.description.part(ppn=number) for number in ppn or [None]]
    with chosen as hosts:
        for part in parts:
            placed = {name: order(part, name) for name in orders}
            for collective in collectives:
                found += time_on(hosts, collective, sizes=tuple(sizes), orders=placed,
                                 repetitions=repetitions, progress=progress)  # fmt: skip
    return found


def remark(cluster, found):
    """Where rules come from, for the head of their file."""
    repetitions = len(found[0].seconds) if found else 0
    where = "the nodes of a Slurm job" if cluster == SLURM else f"the emulated cluster {cluster}"
    return (
        f"Learned on {where}, {date.today()}, medians of {repetitions}\n"
        f"repetitions, on {machine()}."
    )


def report(rules, found):
    """What the rules, and the published ones, lose against the best of ours that was measured, and
    how the best of ours compares with Open MPI's: a table as text."""
    ours = [one for one in found if not one.is_openmpis]
    published = decisions.regret(decisions.read("published"), ours)
    lines = [f"{'':<12} {'cluster':<24} {'bytes':>9}  {'best of ours':<28} {'learned':>8} "
             f"{'published':>10} {'Open MPI':>9}"]  # fmt: skip
    for lost, theirs in zip(decisions.regret(rules, ours), published, strict=True):
        at = (lost["collective"], lost["levels"], lost["bytes"])
        here = [one for one in found if (one.collective, one.levels, one.bytes) == at]
        best = min(one.median for one in here if not one.is_openmpis)
        openmpi = min((one.median for one in here if one.is_openmpis), default=np.nan)
        where = f"{here[0].order}, {lost['levels'].describe()}"
        lines.append(
            f"{lost['collective']:<12} {where:<24} {lost['bytes']:>9}  {lost['best']:<28} "
            f"{_percent(lost['regret'])} {_percent(theirs['regret'], 10)} {openmpi / best:>8.2f}x"
        )
    return "\n".join(lines)


def _percent(number, width=8):
    return f"{'-':>{width}}" if number is None else f"{number:>{width}.0%}"
