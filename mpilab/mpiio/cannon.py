"""Run Cannon's algorithm (src_c/programs/cannon) on matrix files, and measure the time of its
phases.

The published worksheet reports the share of MPI time spent on reading, distributing, collecting and
writing: 96 % if rank 0 does it all, about 38 % with MPI-IO (data/cannon-worksheet-2016.csv).
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mpilab.cluster.location import ThisMachine
from mpilab.errors import InputError, MpilabError
from mpilab.kernels import build
from mpilab.measure.dataset import Dataset
from mpilab.mpiio import files
from mpilab.trace.recording import Recording
from mpilab.util import processes

STAGES = {1: "rank 0, point-to-point", 2: "rank 0, collectives", 3: "MPI-IO"}
PHASES = ("read", "compute", "write")
LIMIT_S = 600.0
LONGEST_S = 1_000_000
_SPEAKS = "mpilab-cannon: "

PUBLISHED = Dataset(
    "cannon-worksheet-2016.csv", columns="stage:i4 n:i4 io_percent:f8", example="3,4096,38"
)


@dataclass(frozen=True)
class CannonRun:
    """The results of one run.

    phases_ns    int64 [ranks, 3, 2]: begin and end (CLOCK_MONOTONIC) of PHASES on each rank.
                 Reading includes distributing; collecting belongs to writing.
    peak_bytes   int64 [ranks]: peak memory of each rank (VmHWM at its end)
    base_bytes   int64 [ranks]: the same before its first phase: that of the program and MPI itself
    recording    mpilab.trace.recording.Recording, or None; for mpilab.plots.timeline
    digest       SHA-256 of the file of C
    """

    stage: int
    ranks: int
    rows: int
    inner: int
    columns: int
    phases_ns: NDArray[np.int64]
    peak_bytes: NDArray[np.int64]
    base_bytes: NDArray[np.int64]
    recording: Recording
    digest: str

    @property
    def seconds(self) -> dict[str, float]:
        """{phase: seconds from the first rank's start to the last one's end}; phases overlap."""
        begin, end = self.phases_ns[:, :, 0].min(axis=0), self.phases_ns[:, :, 1].max(axis=0)
        return dict(zip(PHASES, ((end - begin) / 1e9).tolist(), strict=True))

    @property
    def mpi_seconds(self) -> NDArray[np.float64]:
        """float64 [ranks, 3]: seconds that each rank spent inside MPI calls in each of PHASES.

        Reading and writing with stdio on rank 0 is not MPI time, but the time that other ranks wait
        for it is.
        """
        return mpi_seconds(self.recording, self.phases_ns)

    @property
    def io_share(self) -> float:
        """The fraction of the MPI time of all ranks that is in reading and writing, from 0 to 1.

        NaN if there was none at all. Starting and ending MPI is not counted.
        """
        spent = self.mpi_seconds.sum(axis=0)
        return float((spent[0] + spent[2]) / spent.sum()) if spent.sum() else float("nan")

    def __str__(self) -> str:
        words = f"stage {self.stage} ({STAGES[self.stage]})"
        spent = self.mpi_seconds.mean(axis=0)
        lines = [
            f"Cannon, {words}: {self.rows} x {self.inner} times {self.inner} x {self.columns} "
            f"on {self.ranks} rank{'' if self.ranks == 1 else 's'}",
            f"{'phase':<8}{'seconds':>10}{'in MPI, a rank':>17}",
        ]
        for number, (phase, seconds) in enumerate(self.seconds.items()):
            lines.append(f"{phase:<8}{seconds:>10.4f}{spent[number]:>17.4f}")
        if not np.isnan(self.io_share):
            lines.append(f"reading and writing: {self.io_share:.0%} of all MPI time")
        peak = self.peak_bytes / 2**20
        others = f", others at most {peak[1:].max():.0f} MiB" if self.ranks > 1 else ""
        lines.append(f"most memory: rank 0 {peak[0]:.0f} MiB{others}")
        return "\n".join(lines)


def run(
    stage: int,
    ranks: int,
    a: Path | str,
    b: Path | str,
    c: Path | str | None = None,
    *,
    limit: float = LIMIT_S,
) -> CannonRun:
    """Compute C = A B by Cannon's algorithm on `ranks` ranks of this machine; return a CannonRun.

    stage   how files are read and written: 1, 2 or 3, see STAGES.
    ranks   a square number.
    a, b    matrix files (mpilab.mpiio.files): binary; in stages 1 and 2 also text.
    c       the file for C, in binary; None: only its digest is kept.
    limit   seconds that the run may take, at most LONGEST_S.

    Raises InputError, in the program's words, for input that it rejects, and leaves `c` unchanged;
    MpilabError for a run that fails or takes too long.
    """
    if stage not in STAGES:
        raise InputError(f"stage={stage!r}: write one of {', '.join(map(str, STAGES))}")
    if ranks < 1:
        raise InputError(f"ranks={ranks}: must be 1 or more, and a square number")
    if not 0 < limit <= LONGEST_S:
        raise InputError(f"limit={limit:g}: must be above 0 seconds, and at most {LONGEST_S:,}")
    with tempfile.TemporaryDirectory(prefix="mpilab-cannon-") as folder:
        scratch = Path(folder)
        target = scratch / "c" if c is None else Path(c)
        program = [str(build.need(build.CANNON_PROGRAM)), str(stage), str(a), str(b), str(target)]
        try:
            said = _said([*program, str(scratch)], ranks, scratch, limit)
        finally:
            with suppress(OSError):  # there is no such file, or it was renamed to C
                (scratch / "unfinished").readlink().unlink()  # see src_c/programs/cannon/output.c
        _check(said, limit)
        rows, columns = files.size(target)
        told = [_told(scratch / f"phases.{rank}.json") for rank in range(ranks)]
        return CannonRun(
            stage,
            ranks,
            rows,
            files.size(a)[1],
            columns,
            np.array([[one[f"{phase}_ns"] for phase in PHASES] for one in told], np.int64),
            np.array([one["peak_bytes"] for one in told], np.int64),
            np.array([one["base_bytes"] for one in told], np.int64),
            Recording.load(scratch, 0, ranks),
            _digest(target),
        )


def mpi_seconds(recording: Recording, phases_ns: NDArray[np.int64]) -> NDArray[np.float64]:
    """float64 [ranks, phases]: seconds of each rank inside MPI calls, within each of its phases.

    phases_ns   int64 [ranks, phases, 2]. Nested calls count once.
    """
    spent = np.zeros(phases_ns.shape[:2])
    for rank, recorded in enumerate(recording.ranks):
        ended = recorded.records[recorded.records["end_ns"] > 0]
        ended = ended[np.argsort(ended["begin_ns"], kind="stable")]
        ends = np.maximum.accumulate(ended["end_ns"])
        begins = ended["begin_ns"].copy()
        begins[1:] = np.maximum(begins[1:], ends[:-1])
        for phase, (first, last) in enumerate(phases_ns[rank]):
            inside = np.clip(ends, first, last) - np.clip(begins, first, last)
            spent[rank, phase] = np.maximum(inside, 0).sum() / 1e9
    return spent


def published(path: Path | str | None = None) -> NDArray[Any]:
    """The worksheet's results (data/README.md), rows of PUBLISHED; InputError if it is missing."""
    return PUBLISHED.read(path)


def _said(command: Sequence[str], ranks: int, scratch: Path, limit: float) -> processes.Said:
    """Run `command` under mpirun; return the Said, with code None if it exceeded its time limit."""
    where = ThisMachine(ranks)
    segments = where.shared_memory(scratch.name)
    own = {"TMPDIR": str(scratch)}
    for directory in segments:  # otherwise those of killed ranks would remain
        directory.mkdir(mode=0o700)
        own["OMPI_MCA_btl_sm_backing_directory"] = str(directory)
    try:
        return processes.run(
            [*where.mpirun(ranks), *command], limit, environment=where.environment(ranks) | own
        )
    finally:
        for directory in segments:
            shutil.rmtree(directory, ignore_errors=True)


def _check(said: processes.Said, limit: float) -> None:
    for line in said.stderr.splitlines():
        if line.startswith(_SPEAKS):
            raise InputError(line.removeprefix(_SPEAKS))
    if said.code != 0:
        hint = f"; its limit was {limit:g} s: use smaller matrices or a higher limit"
        why = processes.trouble(said).rstrip(".")
        raise MpilabError(f"mpilab-cannon: {why}{hint if said.code is None else ''}")


def _told(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="ascii"))


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
