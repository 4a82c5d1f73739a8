"""Ask ranks that compute where they are.

The recorder answers a real-time signal by noting the place in the kernel's shared object at which
the rank was met (src_c/recorder/failures.c). It would end any other process: so only one that has
the recording in its memory is asked.
"""

import contextlib
import os
import signal
import time

from mpilab import pids
from mpilab.recording import HEADER, peek

SIGNAL = signal.SIGRTMIN + 7 if hasattr(signal, "SIGRTMIN") else None  # MPILAB_SAMPLE_SIGNAL
LOOKS = 8
KEPT = HEADER["sample_sites"].shape[0]
ANSWER_S = 0.25  # a rank on a busy machine may have to wait for its time slice
TICK_S = 0.005


def sample(paths, looks=LOOKS):
    """Look `looks` times at the ranks whose recordings are `paths` ({rank: path}).

    Returns {rank: [call sites]}, offsets into the kernel's library as in a record, 0 for a look
    that met the rank outside of it. A rank that has ended or does not answer is left out.
    """
    found = {}
    if SIGNAL is None:  # macOS
        return found
    for rank, path in paths.items():
        sites, process = [], process_of(path)
        for _ in range(min(looks, KEPT)):
            header = peek(path)
            if header is None or not _ask(process):
                break
            answered = _answer(path, int(header["samples"]))
            if answered is None:
                break
            last = (int(answered["samples"]) - 1) % KEPT
            sites.append(int(answered["sample_sites"][last]))
        if sites:
            found[rank] = sites
    return found


def process_of(path):
    """The number, here, of the process that writes the recording at `path`; None if it has ended.

    The header has the number that it knows itself by: on emulated hosts that is another one.
    """
    header = peek(path)
    return None if header is None else pids.writer(path, int(header["pid"]))


def _ask(process):
    """Send a process (None: it has ended) the signal, but never a group, init or ourselves."""
    if process is None or process <= 1 or process == os.getpid():
        return False
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, SIGNAL)
        return True
    return False


def _answer(path, before):
    """The header once it holds more samples than `before`; None where the rank stays silent."""
    deadline = time.monotonic() + ANSWER_S
    while time.monotonic() < deadline:
        header = peek(path)
        if header is not None and int(header["samples"]) > before:
            return header
        time.sleep(TICK_S)  # the answer is a word in shared memory: there is nothing to wait on
    return None
