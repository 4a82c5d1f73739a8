"""One mpirun of the harness: its process, what it holds on this machine or on hosts, its end."""

import os
import secrets
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from mpilab import build, sanitized
from mpilab.cluster.guardian import MARKER, Guardian, kill, marked
from mpilab.cluster.location import SHARED_MEMORY
from mpilab.programs import end_family

LOG_BYTES = 1 << 20  # a kernel may print without end
LOOK_S = 1.0  # between looks for ranks; one costs some 10 ms
LOOKS = 2  # without a rank, until they are given up
_NOISE = "plm:ssh: Warning: setpgid("  # a daemon was quicker than mpirun: nothing is wrong


class Mpirun:
    """mpirun of the harness over `cases`, {number: Case}, at `where` (mpilab.cluster.location).

    directory   of its files, in `scratch`; the ranks write there, names that begin with a number
    The other arguments are those of mpilab.launch.run_cases.
    """

    def __init__(self, library, function, cases, where, scratch, sanitize, settings, guarded):
        command = where.mpirun(len(where.names))
        self.harness = build.sanitized_harness() if sanitize else build.need(build.HARNESS_PROGRAM)
        self.on_hosts, self.is_remote = where.on_hosts, where.is_remote
        self.directory = Path(tempfile.mkdtemp(dir=scratch))
        self.identity = secrets.token_hex(8)
        # Segments of killed ranks would otherwise stay in the shared memory for ever.
        name = f"mpilab-{self.identity}"
        self.segments = where.shared_memory(name)
        own = {"TMPDIR": str(self.directory)}
        for directory in self.segments:
            directory.mkdir(mode=0o700)
            own["OMPI_MCA_btl_sm_backing_directory"] = str(SHARED_MEMORY / name)
        if where.on_hosts:  # the daemons' files are each host's own, too
            own["TMPDIR"] = str(SHARED_MEMORY / name)
        if where.on_hosts or guarded is not None:
            own[MARKER] = self.identity
        if sanitize:
            own |= sanitized.settings(self.directory)
        listing = self.directory / "cases"
        lines = "".join(case.line(number) + "\n" for number, case in cases.items())
        listing.write_text(lines, encoding="ascii")
        self.guardian = None
        if guarded is not None:
            self.guardian = Guardian(self.identity, [scratch, *self.segments, *guarded])
        command += [str(self.harness), str(library), function, str(listing), str(self.directory)]
        with open(self.directory / "log", "wb") as log:
            self.process = subprocess.Popen(
                where.command(command),
                env=where.environment(len(where.names), **settings) | own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self._looked, self._empty_looks = time.monotonic(), 0

    @property
    def has_ended(self):
        """Has it ended, or should have?

        On several hosts, mpirun of Open MPI 5.0.11 goes on waiting for ever now and then when all
        ranks have ended: after 3 of 120 crashes, and never on one host.
        """
        return self.process.poll() is not None or (self.on_hosts and self._is_deserted())

    @property
    def status(self):
        """Its exit status in words."""
        code = self.process.poll()
        return "all ranks ended, mpirun did not" if code is None else f"exit status {code}"

    def wait(self, seconds):
        """Wait for its end, up to so many seconds."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return

    def said(self):
        """The end of what it and the harness have printed."""
        with open(self.directory / "log", "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - LOG_BYTES))
            text = log.read().decode(errors="replace")
        return "".join(line for line in text.splitlines(keepends=True) if _NOISE not in line)

    def end(self):
        """End everything that it started, and give back what it held."""
        if self.on_hosts:
            kill(self.identity)  # daemons of other hosts may be nobody's children any more
        if self.process.poll() is None:
            # Were mpirun or srun killed, ranks on other nodes might go on.
            end_family(self.process.pid, politely=self.is_remote)
            self.process.wait()
        for directory in (*self.segments, self.directory):
            shutil.rmtree(directory, ignore_errors=True)
        if self.guardian is not None:
            self.guardian.let_go()

    def _is_deserted(self):
        """Have ranks begun, and did the last looks find none any more?"""
        if self._empty_looks < LOOKS and time.monotonic() - self._looked >= LOOK_S:
            there = any(map(self._is_rank, marked(self.identity)))
            begun = any(path.name[0].isdigit() for path in self.directory.iterdir())
            self._empty_looks = self._empty_looks + 1 if begun and not there else 0
            self._looked = time.monotonic()
        return self._empty_looks == LOOKS

    def _is_rank(self, process):
        try:
            return os.path.samefile(f"/proc/{process}/exe", self.harness)
        except OSError:  # it has just ended
            return False
