"""The machine: shared memory, cores, room on the disk."""

import os
import shutil
import tempfile
from pathlib import Path

from mpilab import openmpi
from mpilab.build import ROOT
from mpilab.doctor.check import FAILED, MISSING, OK, WARNING, Finding, probe

MIB = 1 << 20
# Open MPI 5's btl/sm makes a segment of 16 MiB a rank; pages count when they are touched first.
SEGMENT = 16 * MIB
RANKS = 8  # as many as the labs use at most on a laptop
# A lab's notebook, its kernels and recordings; an installed .venv is there already.
TIGHT, ENOUGH = 100 * MIB, 1024 * MIB
CPU_MAX = Path("/sys/fs/cgroup/cpu.max")
CPU_V1 = Path("/sys/fs/cgroup/cpu")


@probe("shared-memory", needed=True, why="ranks on one machine pass their messages through it")
def shared_memory(around, folder="/dev/shm"):
    """Room for the ranks' segments, and one that can be made."""
    remedy = "mount a tmpfs there; in Docker: docker run --shm-size=1g"
    if not os.path.isdir(folder):
        return Finding(MISSING, f"there is no {folder}", remedy)
    usage = shutil.disk_usage(folder)
    try:
        with tempfile.TemporaryFile(prefix="mpilab-doctor-", dir=folder) as segment:
            segment.truncate(SEGMENT)
            os.posix_fallocate(segment.fileno(), 0, MIB)
    except OSError as error:
        return Finding(FAILED, f"no segment can be made in {folder}: {error.strerror}", remedy)
    ranks = usage.free // SEGMENT
    found = f"{size(usage.free)} of {size(usage.total)} free in {folder}"
    if ranks < 2:
        return Finding(FAILED, f"{found}: too little for two ranks ({size(SEGMENT)} each)", remedy)
    if ranks < RANKS:
        return Finding(WARNING, f"{found}: enough for {ranks} ranks ({size(SEGMENT)} each)", remedy)
    return Finding(OK, f"{found}; a rank takes up to {size(SEGMENT)}")


@probe("cores", why="ranks beyond the cores take turns: right, but slower and noisier")
def cores(around):
    """The cores that this process may use, and what the kit does about more ranks."""
    usable, quota = len(os.sched_getaffinity(0)), _quota()
    found = f"{usable} core{'s' if usable != 1 else ''}"
    if usable < (os.cpu_count() or usable):
        found += f" of {os.cpu_count()}"
    if quota is not None and quota < usable:
        found += f", but {quota:g} of their time (a container's limit)"
        usable = int(quota)
    strategy = openmpi.yielding(usable + 1, usable or 1)
    pause = int(strategy["OMPI_MCA_threads_pthreads_nanosleep_time"]) // 1000
    found += f"; with more ranks, those that wait sleep for {pause} µs or longer"
    if usable < 2:
        return Finding(WARNING, found, "times of runs mean little here: use two cores or more")
    return Finding(OK, found)


@probe("disk", needed=True, why="notebooks, compiled kernels and recordings need room")
def disk(around):
    """Room in the temporary folder and in the kit's."""
    places = {"the temporary folder": tempfile.gettempdir(), "the kit": str(ROOT)}
    told, worst = [], OK
    for name, folder in places.items():
        free = shutil.disk_usage(folder).free
        told.append(f"{size(free)} free in {folder} ({name})")
        if free < TIGHT or not _writable(folder, around):
            worst = FAILED
            if free >= TIGHT:
                told[-1] += ", which cannot be written to"
        elif free < ENOUGH and worst == OK:
            worst = WARNING
    remedy = "" if worst == OK else "free some room, or name another folder: export TMPDIR=..."
    return Finding(worst, "; ".join(told), remedy)


def size(count):
    """A number of bytes in words: '16 MiB'."""
    for unit, bytes_a_unit in (("GiB", 1 << 30), ("MiB", MIB)):
        if count >= bytes_a_unit:
            return f"{count / bytes_a_unit:.3g} {unit}"
    return f"{count / 1024:.3g} KiB"


def _writable(folder, around):
    """The kit's folder may be read-only; the temporary one proves itself by a file."""
    if folder == str(ROOT):
        return True
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _quota():
    """How many cores' time a control group allows; None for no limit."""
    try:
        quota, period = CPU_MAX.read_text().split()
    except (OSError, ValueError):
        try:
            quota = (CPU_V1 / "cpu.cfs_quota_us").read_text().strip()
            period = (CPU_V1 / "cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    return None if quota in ("max", "-1") else int(quota) / int(period)
